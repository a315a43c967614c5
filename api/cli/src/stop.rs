//! `flott stop`: ends a job with a savepoint.

use std::process::ExitCode;

use flott_core::Result;
use flott_local::client::Drain;

use crate::output::ClientArgs;
use crate::savepoint;

pub(crate) const EXAMPLES: &str = "\
Examples:
  flott stop -p /tmp/savepoints 1a2b3c   to go on later with `flott run -s SAVEPOINT`
  flott stop --drain 'word count'        for good: open windows fire first";

/// The arguments.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The job: its id, the beginning of its id, or its name
    job: String,

    /// Sends the highest watermark first, so that all windows fire: not for jobs that will go on from the savepoint
    #[arg(short = 'd', long)]
    drain: bool,

    /// The folder or URL that the savepoint gets a folder in; else execution.checkpointing.savepoint-dir
    #[arg(short = 'p', long = "savepointPath", value_name = "DIR")]
    target: Option<String>,

    #[command(flatten)]
    client: ClientArgs,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    savepoint::take(&args.client, &args.job, args.target.as_deref(), Some(Drain(args.drain)))
}
