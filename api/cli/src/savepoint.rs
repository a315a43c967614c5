//! `flott savepoint`: takes a savepoint of a job that goes on.

use std::process::ExitCode;

use flott_checkpoint::Store;
use flott_core::Result;
use flott_local::client::Drain;
use serde_json::json;

use crate::output::ClientArgs;
use crate::{block_on, jobs, terminal};

pub(crate) const EXAMPLES: &str = "\
Examples:
  flott savepoint 1a2b3c savepoints
  flott run -s \"$(flott savepoint 'word count' s3://bucket/savepoints)\" -p 4 ./job";

/// The arguments.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The job: its id, the beginning of its id, or its name
    job: String,

    /// The folder or URL that the savepoint gets a folder in; else execution.checkpointing.savepoint-dir
    #[arg(value_name = "DIR")]
    target: Option<String>,

    #[command(flatten)]
    client: ClientArgs,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    take(&args.client, &args.job, args.target.as_deref(), None)
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
