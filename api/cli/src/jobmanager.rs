//! `flott jobmanager`: one JobManager in this process.

use std::process::ExitCode;

use flott_core::Result;
use flott_local::processes::{ProcessArgs, run_jobmanager};

pub(crate) const EXAMPLES: &str = "\
Examples:
  flott jobmanager --dir /var/lib/flott --config flott.yaml
  flott jobmanager -D rest.port=8082 -D jobmanager.rpc.port=6124

It ends in order at SIGTERM or Ctrl-C. Started again with the same folder, it recovers its jobs.";

pub(crate) fn run(args: &ProcessArgs) -> Result<ExitCode> {
    run_jobmanager(args).map(|()| ExitCode::SUCCESS)
}
