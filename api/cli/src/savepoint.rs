//! `flott savepoint`: takes a savepoint of a job that goes on, or checks one against a new version of the job.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use flott_checkpoint::{Manifest, Store};
use flott_core::{Error, Result};
use flott_local::client::Drain;
use serde_json::json;

use crate::output::ClientArgs;
use crate::plan::PlanArgs;
use crate::{block_on, check, jobs, terminal};

pub(crate) const EXAMPLES: &str = "\
Examples:
  flott savepoint 1a2b3c savepoints
  flott run -s \"$(flott savepoint 'word count' s3://bucket/savepoints)\" -p 4 ./job
  flott savepoint --check ./new-job savepoints/savepoint-1a2b3c-0123456789ab -- --input data.csv

--check runs no job. It reads all files of the savepoint, and exits with 1 if one is damaged or the new job could not start
from it.";

/// The arguments.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The job: its id, the beginning of its id, or its name; with --check the savepoint
    job: String,

    /// The folder or URL that the savepoint gets a folder in; else execution.checkpointing.savepoint-dir
    #[arg(value_name = "DIR", conflicts_with = "check")]
    target: Option<String>,

    /// Takes no savepoint: tells what this binary would make of the savepoint that is named instead of a job
    #[arg(long, value_name = "BINARY")]
    check: Option<PathBuf>,

    /// With --check: drops state of the savepoint that no operator of the job claims
    #[arg(short = 'n', long = "allowNonRestoredState", requires = "check")]
    allow_non_restored_state: bool,

    #[command(flatten)]
    plan: PlanArgs,

    #[command(flatten)]
    client: ClientArgs,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    if let Some(binary) = &args.check {
        return check(binary, args);
    }
    let PlanArgs { parallelism, define, args: job_args } = &args.plan;
    if parallelism.is_some() || !define.is_empty() || !job_args.is_empty() {
        return Err(Error::input("-p, -D and what follows -- are for the binary of --check, which is not given"));
    }
    take(&args.client, &args.job, args.target.as_deref(), None)
}

/// Compares a job's binary with a savepoint; the exit code tells whether it could start from it.
fn check(binary: &Path, args: &Args) -> Result<ExitCode> {
    let check = |manifest: &Manifest| args.plan.check(binary, manifest, args.allow_non_restored_state);
    let is_refused = check::print(args.client.format.output, &args.job, check)?;
    Ok(if is_refused { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Takes a savepoint of the job, ends the job with it if `stop` says so, and prints where it is.
pub(crate) fn take(args: &ClientArgs, job: &str, target: Option<&str>, stop: Option<Drain>) -> Result<ExitCode> {
    let client = args.client()?;
    // A relative path means a folder here, not one of the JobManager's.
    let target = target.map(Store::normalize).transpose()?;
    block_on(async {
        let job = jobs::find(&client, job).await?;
        let spinner = terminal::spinner(format!("taking a savepoint of job {job}"));
        let location = client.savepoint(job, target.as_deref(), stop).await;
        spinner.finish_and_clear();
        let location = location?;
        // Only the place goes to standard output, so that a shell can pass it on.
        args.print(&location, &json!({ "jobid": job.to_string(), "location": location }))?;
        Ok(ExitCode::SUCCESS)
    })
}
