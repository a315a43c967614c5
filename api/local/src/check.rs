//! The check role: a job's binary says what it would make of a savepoint, field by field, without running.
//!
//! Only the binary knows the types of its states, so it is asked itself, as for its [`plan`](crate::plan).

use std::ffi::OsStr;
use std::path::Path;
use std::thread;

use flott_checkpoint::{Manifest, Store};
use flott_core::config::Configuration;
use flott_core::{Error, Result, ResultExt};
use flott_operators::{Program, check_restore};
pub use flott_operators::{RestoreEntry, RestoreOutcome, RestoreReport};

use crate::launcher::JobOutcome;
use crate::plan::{self, Question};
use crate::processes::runtime;

/// The environment variable that names the file of the savepoint's manifest.
const MANIFEST: &str = "FLOTT_CHECK_MANIFEST";

/// The environment variable that is `true` where state that no operator claims may be dropped.
const ALLOW_NON_RESTORED_STATE: &str = "FLOTT_CHECK_ALLOW_NON_RESTORED_STATE";

/// Writes the report where the client asked for it, and ends the process.
pub(crate) fn write(program: &Program) -> Result<JobOutcome> {
    // An error is an answer as well: the client shows it, rather than that this process failed.
    plan::answer(&report(program))
}

fn report(program: &Program) -> Result<RestoreReport> {
    let path = std::env::var(MANIFEST).map_err(|_| Error::input(format!("{MANIFEST} is not set")))?;
    let bytes = std::fs::read(&path).with_context(|| format!("reading {path}"))?;
    let manifest = Manifest::from_bytes("the savepoint's manifest", &bytes)?;
    let is_allowed = std::env::var(ALLOW_NON_RESTORED_STATE).is_ok_and(|value| value == "true");
    check_restore(program, &manifest, is_allowed, runtime()?.handle())
}

/// Asks `binary`, with its `args` and `config`, what it would make of the savepoint that `manifest` describes. `printed`
/// gets what the program printed.
///
/// # Errors
/// The binary cannot be run here, ends with an error, is not a job, or is of a version that has no answer.
pub fn check(
    binary: &Path,
    args: &[String],
    config: &Configuration,
    manifest: &Manifest,
    allow_non_restored_state: bool,
    printed: impl FnOnce(&[u8]),
) -> Result<RestoreReport> {
    let file = tempfile::NamedTempFile::new().context("making a temporary file for the manifest")?;
    std::fs::write(file.path(), manifest.to_bytes()?).context("writing the manifest to a temporary file")?;
    let is_allowed = if allow_non_restored_state { "true" } else { "false" };
    let question = Question {
        role: "check",
        variables: &[(MANIFEST, file.path().as_os_str()), (ALLOW_NON_RESTORED_STATE, OsStr::new(is_allowed))],
        what: "its check of the savepoint",
    };
    plan::ask::<Result<RestoreReport>>(binary, args, config, &question, printed)?
}

/// What a program of this process would make of the savepoint that `manifest` describes.
///
/// # Errors
/// A chain of it cannot be built.
pub fn check_program(program: &Program, manifest: &Manifest, allow_non_restored_state: bool) -> Result<RestoreReport> {
    // The caller may be in a runtime, where another one must neither be waited for nor end.
    thread::scope(|scope| {
        let check = scope.spawn(|| check_restore(program, manifest, allow_non_restored_state, runtime()?.handle()));
        check.join().unwrap_or_else(|_| Err(Error::system("the check of the savepoint panicked")))
    })
}

/// The manifest of a savepoint, if it can be read from here. The cluster checks a savepoint again in any case, and may
/// reach places that a client does not.
pub async fn manifest_if_readable(store: &Store, savepoint: &str) -> Option<Manifest> {
    match store.load_manifest(savepoint, None).await {
        Ok((_, manifest)) => Some(manifest),
        Err(error) => {
            tracing::debug!(%error, savepoint, "the savepoint is left to the cluster to check");
            None
        }
    }
}
