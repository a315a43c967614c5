//! What a job's binary is asked: its job, and what it would make of a savepoint.

use std::path::Path;

use flott_checkpoint::Manifest;
use flott_core::Result;
use flott_core::config::Configuration;
use flott_local::EngineArgs;
use flott_local::check::{self, RestoreReport};
use flott_local::plan::{self, Planned};

use crate::terminal;

/// What a job is planned with.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct PlanArgs {
    /// How many subtasks an operator has that does not say so itself
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) parallelism: Option<u32>,

    /// Sets an option over the job's own, such as `-D execution.checkpointing.interval=10s`; may be repeated
    #[arg(short = 'D', value_name = "KEY=VALUE")]
    pub(crate) define: Vec<String>,

    /// The job's own arguments, after `--`
    #[arg(last = true)]
    pub(crate) args: Vec<String>,
}

impl PlanArgs {
    /// Runs the binary in plan mode. What it prints goes to standard error.
    pub(crate) fn plan(&self, binary: &Path) -> Result<Planned> {
        let config = self.config()?;
        let spinner = terminal::spinner(format!("building the graph of {}", binary.display()));
        let planned = plan::plan(binary, &self.args, &config, |printed| {
            spinner.finish_and_clear();
            terminal::write(printed);
        });
        spinner.finish_and_clear();
        planned
    }

    /// Asks the binary what it would make of a savepoint. What it prints goes to standard error.
    pub(crate) fn check(
        &self,
        binary: &Path,
        manifest: &Manifest,
        allow_non_restored_state: bool,
    ) -> Result<RestoreReport> {
        let config = self.config()?;
        let spinner = terminal::spinner(format!("checking {} against the savepoint", binary.display()));
        let report = check::check(binary, &self.args, &config, manifest, allow_non_restored_state, |printed| {
            spinner.finish_and_clear();
            terminal::write(printed);
        });
        spinner.finish_and_clear();
        report
    }

    fn config(&self) -> Result<Configuration> {
        let engine = EngineArgs { parallelism: self.parallelism, define: self.define.clone(), ..EngineArgs::default() };
        engine.config()
    }
}
