//! `flott checkpoint`: takes a checkpoint of a job now, whatever its interval.

use std::process::ExitCode;

use flott_core::Result;
use serde_json::json;

use crate::output::ClientArgs;
use crate::{block_on, jobs, terminal};

pub(crate) const EXAMPLES: &str = "\
Examples:
  flott checkpoint 1a2b3c
  flott checkpoint 'word count' -o json

A checkpoint is the job's: newer ones take its place. What is to stay is a savepoint.";

/// The arguments.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The job: its id, the beginning of its id, or its name
    job: String,

    #[command(flatten)]
    client: ClientArgs,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let client = args.client.client()?;
    block_on(async {
        let job = jobs::find(&client, &args.job).await?;
        let spinner = terminal::spinner(format!("taking a checkpoint of job {job}"));
        let taken = client.checkpoint(job).await;
        spinner.finish_and_clear();
        let (checkpoint, location) = taken?;
        // Only the place goes to standard output, as with savepoints.
        let value = json!({ "jobid": job.to_string(), "checkpointId": checkpoint, "location": location });
        args.client.print(&location, &value)?;
        Ok(ExitCode::SUCCESS)
    })
}
