//! `flott run`: plans a job, uploads its binary, submits it, follows it to its end.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use flott_checkpoint::Store;
use flott_control::{ClaimMode, JobSpec};
use flott_core::ids::JobId;
use flott_core::status::JobStatus;
use flott_core::{Error, Result};
use flott_local::args::claim_mode;
use flott_local::client::Client;
use flott_local::plan::Planned;
use serde_json::json;

use crate::follow::follow;
use crate::output::{ClientArgs, Format};
use crate::plan::PlanArgs;
use crate::progress::{self, Progress};
use crate::{block_on, check, format, terminal};

pub(crate) const EXAMPLES: &str = "\
Examples:
  flott run ./job -- --input data.csv
  flott run -d -p 4 -D execution.checkpointing.interval=10s ./job -- --input data.csv
  flott run -s /tmp/savepoints/savepoint-1a2b3c-0123456789ab ./job -- --input data.csv

With -s the job is first checked against the savepoint, as `flott savepoint --check` does it.

Ctrl-C asks whether to detach (the job goes on) or to cancel the job; without a terminal it detaches.

Exit codes: 0 the job finished or runs on, 1 it failed or was not accepted, 2 it was cancelled or the usage is wrong";

/// The exit code for a job that was cancelled.
const CANCELED: u8 = 2;

/// The arguments.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Returns when the job is submitted instead of following it
    #[arg(short, long)]
    detached: bool,

    /// Starts from this savepoint or retained checkpoint
    #[arg(short = 's', long = "fromSavepoint", value_name = "PATH")]
    savepoint: Option<String>,

    /// Drops state of the savepoint that no operator of the job claims
    #[arg(short = 'n', long = "allowNonRestoredState")]
    allow_non_restored_state: bool,

    /// Whose the savepoint is from the start on: `no_claim` leaves it to you, `claim` makes it the job's, which deletes
    /// it like any checkpoint of its own once newer ones have taken its place
    #[arg(
        long = "claimMode",
        alias = "restoreMode",
        value_name = "MODE",
        value_parser = claim_mode,
        default_value = "no_claim",
        requires = "savepoint"
    )]
    claim_mode: ClaimMode,

    /// The job's binary
    binary: PathBuf,

    #[command(flatten)]
    pub(crate) plan: PlanArgs,

    #[command(flatten)]
    client: ClientArgs,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let client = args.client.client()?;
    // A relative path means a folder here, not one of the JobManager's.
    let savepoint = args.savepoint.as_deref().map(Store::normalize).transpose()?;
    let planned = args.plan.plan(&args.binary)?;
    if let Some(savepoint) = &savepoint {
        let allow_non_restored_state = args.allow_non_restored_state;
        check::before_start(savepoint, |manifest| args.plan.check(&args.binary, manifest, allow_non_restored_state))?;
    }
    block_on(async {
        let job = submit(&client, planned, savepoint, args).await?;
        let submitted = format!("Job has been submitted with JobID {job}");
        let id = json!({ "jobid": job.to_string() });
        if args.detached {
            args.client.print(&submitted, &id)?;
            return Ok(ExitCode::SUCCESS);
        }
        let is_json = args.client.format.output == Format::Json;
        if is_json {
            // Standard output is for the one value at the end.
            terminal::say(submitted);
        } else {
            args.client.print(&submitted, &id)?;
        }
        match follow(&client, job).await? {
            Some(end) => report(&client, job, &end, args).await,
            None => {
                terminal::say(format_args!(
                    "detached: job {job} goes on; `flott list -m {0}` shows it, `flott cancel -m {0} {job}` ends it",
                    client.address()
                ));
                if is_json {
                    args.client.print("", &id)?;
                }
                Ok(ExitCode::SUCCESS)
            }
        }
    })
}

async fn submit(client: &Client, planned: Planned, savepoint: Option<String>, args: &Args) -> Result<JobId> {
    let artifact = upload(client, &args.binary).await?;
    let spec = JobSpec {
        graph: planned.graph,
        artifact: Some(artifact),
        args: planned.recipe.arguments,
        payload: planned.recipe.payload,
        savepoint,
        allow_non_restored_state: args.allow_non_restored_state,
        claim_mode: args.claim_mode,
    };
    client.submit(&spec).await
}

/// Uploads a binary unless the cluster has it, and shows how far that is.
pub(crate) async fn upload(client: &Client, binary: &Path) -> Result<String> {
    let bar = terminal::byte_bar(format!("uploading {}", binary.display()));
    let shown = bar.clone();
    let sha256 = client.upload(binary, move |sent, bytes| {
        shown.set_length(bytes);
        shown.set_position(sent);
    });
    let sha256 = sha256.await;
    bar.finish_and_clear();
    sha256
}

/// Tells how the job ended.
async fn report(client: &Client, job: JobId, end: &Progress, args: &Args) -> Result<ExitCode> {
    let cause = match end.status {
        JobStatus::Failed => client.status(job).await?.1,
        _ => None,
    };
    let value = json!({
        "jobid": job.to_string(),
        "state": end.status.name(),
        "duration": u64::try_from(end.duration.as_millis()).unwrap_or(u64::MAX),
        "records-read": end.records_read,
        "checkpoints": end.checkpoints,
        "restarts": end.restarts,
        "root-exception": &cause,
    });
    match end.status {
        JobStatus::Failed => {
            if args.client.format.output == Format::Json {
                args.client.print("", &value)?;
            }
            let cause = cause.as_deref().unwrap_or("the JobManager does not know why");
            Err(Error::user_code(format!("job {job} failed after {}: {cause}", format::duration(end.duration))))
        }
        JobStatus::Canceled => {
            args.client.print(&format!("Job {job} was cancelled after {}", progress::summary(end)), &value)?;
            Ok(ExitCode::from(CANCELED))
        }
        _ => {
            args.client.print(&format!("Job {job} has finished after {}", progress::summary(end)), &value)?;
            Ok(ExitCode::SUCCESS)
        }
    }
}
