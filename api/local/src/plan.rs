//! The plan role: `flott run` runs a job's binary once to get its graph.

use std::path::Path;
use std::process::{Command, Stdio};

use flott_core::config::Configuration;
use flott_core::{Error, Result, ResultExt};
use flott_graph::JobGraph;
use flott_taskmanager::supervisor::worker_env;

use crate::launcher::JobOutcome;

/// The environment variable that names the file for the graph.
const OUTPUT: &str = "FLOTT_PLAN_OUTPUT";

/// Writes the graph where the client asked for it, and ends the process: what follows `execute` in the
/// program is not part of the plan.
pub(crate) fn write(graph: &JobGraph) -> Result<JobOutcome> {
    let path = std::env::var(OUTPUT).map_err(|_| Error::input(format!("{OUTPUT} is not set")))?;
    let json = serde_json::to_vec(graph).map_err(|error| Error::system(format!("writing the graph: {error}")))?;
    std::fs::write(&path, json).with_context(|| format!("writing the graph to {path}"))?;
    std::process::exit(0);
}

/// Runs `binary` with `args` in plan mode; returns its graph. What the program printed goes to `printed`, once it has
/// ended: a client has its own use for the terminal meanwhile, and for standard output altogether.
///
/// # Errors
/// The binary cannot be run here, ends with an error, or is not a job.
pub fn plan(binary: &Path, args: &[String], config: &Configuration, printed: impl FnOnce(&[u8])) -> Result<JobGraph> {
    let shown = binary.display();
    let file = tempfile::NamedTempFile::new().context("making a temporary file for the graph")?;
    let output = Command::new(std::path::absolute(binary).with_context(|| format!("resolving {shown}"))?)
        .args(args)
        .env(worker_env::ROLE, "plan")
        .env(worker_env::CONFIG, config.to_json())
        .env(OUTPUT, file.path())
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
    let json = std::fs::read(file.path()).context("reading the graph")?;
    if json.is_empty() {
        return Err(Error::input(match output.status.success() {
            true => format!("{shown} ended without calling execute(): it is not a Flott job"),
            false => format!("{shown} failed to build its graph: {}", output.status),
        }));
    }
    serde_json::from_slice(&json)
        .map_err(|error| Error::input(format!("{shown} wrote a graph of another version: {error}")))
}
