//! The entries of the example `accounts`, by either version.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::binaries::repository;
use crate::command::run_command;

const LIMIT: Duration = Duration::from_secs(60);

/// How many entries there are below a folder, if each is right and none is lost or there twice: what an uninterrupted run
/// would write.
///
/// # Panics
/// They are not.
#[track_caller]
pub fn account_entries(output: impl AsRef<Path>) -> u64 {
    let script = repository().join("examples/accounts/expected.py");
    let mut command = Command::new("python3");
    let checked = run_command(command.arg(script).arg("--check").arg(output.as_ref()), LIMIT).succeeded();
    checked.stdout.trim().parse().unwrap_or_else(|error| panic!("{error}: {}", checked.text()))
}
