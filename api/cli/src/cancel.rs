//! `flott cancel`: ends a job without a savepoint.

use std::process::ExitCode;
use std::time::Duration;

use flott_core::Result;
use flott_core::ids::JobId;
use flott_core::status::JobStatus;
use flott_local::client::Client;
use serde_json::json;

use crate::output::ClientArgs;
use crate::{block_on, jobs, terminal};

pub(crate) const EXAMPLES: &str = "\
Examples:
  flott cancel 1a2b3c         the job whose id begins so
  flott cancel 'word count'   the only running job of that name";

/// How long the end of the job is waited for: functions of the user may take their time to stop.
const WAIT_MAX: Duration = Duration::from_secs(30);
const LOOK_PAUSE: Duration = Duration::from_millis(100);

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
        client.cancel(job).await?;
        let spinner = terminal::spinner(format!("cancelling job {job}"));
        let status = wait(&client, job).await;
        spinner.finish_and_clear();
        let status = status?;
        let text = match status {
            JobStatus::Canceled => format!("Job {job} is cancelled"),
            status if status.is_terminal() => format!("Job {job} has ended by itself: it is {status}"),
            status => format!("Job {job} is {status}: it is being cancelled, but has not ended yet"),
        };
        args.client.print(&text, &json!({ "jobid": job.to_string(), "state": status.name() }))?;
        Ok(ExitCode::SUCCESS)
    })
}

/// The state of the job when it has ended, or after a while.
pub(crate) async fn wait(client: &Client, job: JobId) -> Result<JobStatus> {
    let began = flott_env::monotonic();
    loop {
        let (status, _) = client.status(job).await?;
        if status.is_terminal() || flott_env::monotonic().saturating_sub(began) >= WAIT_MAX {
            return Ok(status);
        }
        flott_env::sleep(LOOK_PAUSE).await;
    }
}
