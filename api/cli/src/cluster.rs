//! `flott cluster`: a local cluster of processes.
//!
//! - `start`: starts the processes and waits until they can be used
//! - `stop`: ends them
//! - `file`: `cluster.json`, which names them
//! - `process`: one process: how it is started, and whether it still is what was started
//! - `log`: what a process has written since its start

mod file;
mod log;
mod process;
mod start;
mod stop;

use std::process::ExitCode;

use flott_core::Result;

/// What to do with the cluster.
#[derive(clap::Subcommand, Debug)]
pub(crate) enum Verb {
    /// Starts a JobManager and TaskManagers in the background, and returns when they can be used
    #[command(after_help = start::EXAMPLES)]
    Start(start::Args),
    /// Ends the processes that `start` started; does nothing when there are none
    #[command(after_help = stop::EXAMPLES)]
    Stop(stop::Args),
}

pub(crate) fn run(verb: &Verb) -> Result<ExitCode> {
    match verb {
        Verb::Start(args) => start::run(args),
        Verb::Stop(args) => stop::run(args),
    }
}
