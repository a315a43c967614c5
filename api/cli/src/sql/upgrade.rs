//! `flott sql --upgrade`: the job of a script in place of one that runs.

use std::path::Path;
use std::process::ExitCode;

use flott_core::{Error, Result, ResultExt};
use flott_local::Launcher;
use flott_local::client::{Client, DEFAULT_ADDRESS};
use flott_sql::execute;
use flott_sql::session::{Job, Recovery};

use super::{Args, COMPILED};
use crate::upgrade::{NewVersion, Order, Start, replace, target};

/// Makes `job` the new version of `old`, which is named as users do.
pub(super) fn run(args: &Args, old: &str, job: &Job, launcher: &Launcher, recovery: &Recovery) -> Result<ExitCode> {
    if let Some(path) = &recovery.path {
        return Err(Error::input(format!(
            "the script SETs a savepoint to start from, '{path}', but the new version starts from the one that the old job is stopped \
             with: leave that SET out"
        )));
    }
    let allow_non_restored_state = recovery.allow_non_restored_state;
    let files = [("-i", args.init.as_deref()), ("-f", args.file.as_deref())];
    let files: Vec<(&str, &Path)> = files.into_iter().filter_map(|(flag, file)| Some((flag, file?))).collect();
    replace(Order {
        job: old,
        client: Client::new(args.engine.jobmanager.as_deref().unwrap_or(DEFAULT_ADDRESS))?,
        format: args.format(),
        target: target(args.savepoint_dir.as_deref())?,
        timeout: args.timeout,
        version: NewVersion {
            binary: std::env::current_exe().context("finding this program's file")?,
            planned: execute::planned(job, launcher, &COMPILED)?,
            allow_non_restored_state,
            check: Box::new(move |manifest| execute::check(job, launcher, manifest, allow_non_restored_state)),
            start: Start::of_script(args.engine.parallelism, &args.engine.define, &files),
        },
    })
}
