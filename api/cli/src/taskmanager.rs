//! `flott taskmanager`: one TaskManager in this process.

use std::process::ExitCode;

use flott_core::Result;
use flott_local::processes::{ProcessArgs, run_taskmanager};

pub(crate) const EXAMPLES: &str = "\
Examples:
  flott taskmanager -D taskmanager.numberOfTaskSlots=4
  flott taskmanager -D jobmanager.rpc.address=host -D jobmanager.rpc.port=6124 --dir /var/tmp/flott

It looks for its JobManager for a while when that is not there, and ends in order at SIGTERM or Ctrl-C.";

pub(crate) fn run(args: &ProcessArgs) -> Result<ExitCode> {
    run_taskmanager(args).map(|()| ExitCode::SUCCESS)
}
