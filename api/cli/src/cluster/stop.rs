//! `flott cluster stop`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use flott_core::{Error, Result, ResultExt};
use rustix::process::Signal;
use serde_json::json;

use super::file::ClusterFile;
use super::process::Process;
use crate::output::OutputArgs;
use crate::terminal;

pub(crate) const EXAMPLES: &str = "\
Examples:
  flott cluster stop --dir /tmp/flott

Jobs that run then go on when the cluster is started again in the same folder.";

/// How long processes may take to end in order, and then to die.
const TERM_TIMEOUT: Duration = Duration::from_secs(10);
const KILL_TIMEOUT: Duration = Duration::from_secs(5);
const LOOK_PAUSE: Duration = Duration::from_millis(20);

/// The arguments.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The cluster's folder
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,

    #[command(flatten)]
    format: OutputArgs,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let dir = std::path::absolute(&args.dir).with_context(|| format!("resolving {}", args.dir.display()))?;
    let processes = ClusterFile::read(&dir)?.map(|cluster| cluster.processes).unwrap_or_default();
    let running: Vec<&Process> = processes.iter().filter(|process| process.is_running()).collect();
    let spinner = terminal::spinner(format!("stopping the cluster in {}", dir.display()));
    let stopped = stop(&running);
    spinner.finish_and_clear();
    stopped?;
    ClusterFile::remove(&dir)?;
    let text = match running.len() {
        0 => format!("No cluster runs in {}", dir.display()),
        1 => "Stopped 1 process".to_owned(),
        count => format!("Stopped {count} processes"),
    };
    args.format.output.print(&text, &json!({ "stopped": running }))?;
    Ok(ExitCode::SUCCESS)
}

fn stop(processes: &[&Process]) -> Result<()> {
    let steps = [(Signal::TERM, TERM_TIMEOUT), (Signal::KILL, KILL_TIMEOUT)];
    for (signal, timeout) in steps {
        processes.iter().try_for_each(|process| process.signal(signal))?;
        if wait(processes, timeout) {
            return Ok(());
        }
    }
    let left: Vec<String> = processes.iter().filter(|process| process.is_running()).map(|p| p.to_string()).collect();
    Err(Error::system(format!("still running after SIGKILL: {}", left.join(", "))))
}

/// Whether all have ended in time.
fn wait(processes: &[&Process], timeout: Duration) -> bool {
    let deadline = flott_env::monotonic() + timeout;
    loop {
        if !processes.iter().any(|process| process.is_running()) {
            return true;
        }
        if flott_env::monotonic() >= deadline {
            return false;
        }
        std::thread::sleep(LOOK_PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stopping_where_nothing_runs_is_no_error() {
        let dir = tempfile::tempdir().unwrap();
        let format = OutputArgs { output: crate::output::Format::Json };
        for dir in [dir.path().to_owned(), dir.path().join("nowhere")] {
            run(&Args { dir, format: format.clone() }).unwrap();
        }
    }

    #[test]
    fn a_process_that_has_ended_is_forgotten() {
        let dir = tempfile::tempdir().unwrap();
        let process = Process {
            role: super::super::process::Role::JobManager,
            pid: std::process::id(),
            log: dir.path().join("log"),
            dir: dir.path().join("jobmanager"),
        };
        ClusterFile { processes: vec![process], rest: "127.0.0.1:1".into() }.write(dir.path()).unwrap();
        let format = OutputArgs { output: crate::output::Format::Text };
        run(&Args { dir: dir.path().to_owned(), format }).unwrap();
        assert_eq!(ClusterFile::read(dir.path()).unwrap(), None);
    }
}
