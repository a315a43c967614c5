//! The plan role: `flott run` runs a job's binary once to get its graph, and how its workers come to the same.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};

use flott_core::config::Configuration;
use flott_core::{Error, Result, ResultExt};
use flott_graph::JobGraph;
use flott_taskmanager::supervisor::worker_env;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::launcher::{JobOutcome, Recipe};

/// The environment variable that names the file for the answer.
const OUTPUT: &str = "FLOTT_PLAN_OUTPUT";

/// A job as it is submitted, beside its binary.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Planned {
    /// Its graph.
    pub graph: JobGraph,
    /// How workers build it: by the arguments that the binary was asked with, unless it has told of others.
    pub recipe: Recipe,
}

/// What a binary is asked, and what it needs to know for that.
pub(crate) struct Question<'a> {
    /// The role that it is to play.
    pub(crate) role: &'static str,
    /// Environment variables beside those of every question.
    pub(crate) variables: &'a [(&'static str, &'a OsStr)],
    /// What it is asked for, for messages.
    pub(crate) what: &'static str,
}

/// Writes the answer where the client asked for it, and ends the process: what follows `execute` in the program is
/// not part of the answer.
pub(crate) fn answer(answer: &impl Serialize) -> Result<JobOutcome> {
    let path = std::env::var(OUTPUT).map_err(|_| Error::input(format!("{OUTPUT} is not set")))?;
    let json = serde_json::to_vec(answer).map_err(|error| Error::system(format!("writing the answer: {error}")))?;
    std::fs::write(&path, json).with_context(|| format!("writing the answer to {path}"))?;
    std::process::exit(0);
}

/// Runs `binary` with `args` to answer `question`. What the program printed goes to `printed`, once it has ended: a
/// client has its own use for the terminal meanwhile, and for standard output altogether.
pub(crate) fn ask<T: DeserializeOwned>(
    binary: &Path,
    args: &[String],
    config: &Configuration,
    question: &Question<'_>,
    printed: impl FnOnce(&[u8]),
) -> Result<T> {
    let (shown, what) = (binary.display(), question.what);
    let file = tempfile::NamedTempFile::new().with_context(|| format!("making a temporary file for {what}"))?;
    let output = Command::new(std::path::absolute(binary).with_context(|| format!("resolving {shown}"))?)
        .args(args)
        .env(worker_env::ROLE, question.role)
        .env(worker_env::CONFIG, config.to_json())
        .env(OUTPUT, file.path())
        .envs(question.variables.iter().copied())
        .stdin(Stdio::null())
        .output()
        .map_err(|error| match error.raw_os_error() {
            // ENOEXEC: not a program for this machine.
            Some(8) => Error::input(format!(
                "{shown} cannot run on this machine: it is no program for {}, build it here or for this target",
                std::env::consts::ARCH
            )),
            _ => Error::input(format!("running {shown}: {error}")),
        })?;
    printed(&[output.stdout, output.stderr].concat());
    let json = std::fs::read(file.path()).with_context(|| format!("reading {what}"))?;
    if json.is_empty() {
        return Err(Error::input(match output.status.success() {
            true => format!("{shown} ended without calling execute(): it is not a Flott job"),
            false => format!("{shown} failed to build {what}: {}", output.status),
        }));
    }
    serde_json::from_slice(&json)
        .map_err(|error| Error::input(format!("{shown} is of another version, {what} cannot be read: {error}")))
}

/// Runs `binary` with `args` in plan mode; returns its job. `printed` gets what the program printed.
///
/// # Errors
/// The binary cannot be run here, ends with an error, or is not a job.
pub fn plan(binary: &Path, args: &[String], config: &Configuration, printed: impl FnOnce(&[u8])) -> Result<Planned> {
    let question = Question { role: "plan", variables: &[], what: "its graph" };
    ask(binary, args, config, &question, printed)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn plan_of(script: &str) -> (Result<Planned>, String) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("job");
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        let mut printed = Vec::new();
        let planned = plan(&path, &[], &Configuration::default(), |bytes| printed.extend_from_slice(bytes));
        (planned, String::from_utf8(printed).unwrap())
    }

    #[test]
    fn what_answers_is_a_job_of_this_version() {
        let (planned, printed) = plan_of("echo building as $FLOTT_ROLE");
        assert!(planned.unwrap_err().to_string().contains("ended without calling execute()"));
        assert_eq!(printed, "building as plan\n");
        let (planned, printed) = plan_of("echo no such file >&2; exit 3");
        let error = planned.unwrap_err().to_string();
        assert!(error.contains("failed to build its graph: exit status: 3"), "{error}");
        assert_eq!(printed, "no such file\n");
        let (planned, _) = plan_of("echo '[1]' > $FLOTT_PLAN_OUTPUT");
        let error = planned.unwrap_err().to_string();
        assert!(error.contains("is of another version, its graph cannot be read"), "{error}");
    }
}
