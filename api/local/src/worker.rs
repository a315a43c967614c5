//! The worker role: executes subtasks for the TaskManager that started this process.

use std::io::Read;
use std::str::FromStr;
use std::sync::Arc;

use flott_control::ExecutionId;
use flott_core::config::Configuration;
use flott_core::ids::{JobId, TaskManagerId};
use flott_core::{Error, Result, ResultExt};
use flott_operators::Program;
use flott_taskmanager::supervisor::{JobManagerLink, worker_env};
use flott_taskmanager::{WorkerOptions, run_worker};

use crate::launcher::JobOutcome;
use crate::processes::runtime;

/// Works until the session to the JobManager, or the TaskManager, ends; then ends the process.
pub(crate) fn run(program: Arc<Program>) -> Result<JobOutcome> {
    flott_telemetry::init_tracing("info", false)?;
    let generation = variable(worker_env::GENERATION)?;
    let options = WorkerOptions {
        program,
        execution: ExecutionId {
            job: JobId::from_str(&variable(worker_env::JOB)?)?,
            generation: generation
                .parse()
                .map_err(|_| Error::input(format!("{}={generation} is not a number", worker_env::GENERATION)))?,
        },
        task_manager: TaskManagerId(variable(worker_env::TASK_MANAGER)?),
        link: JobManagerLink::Remote(variable(worker_env::JOBMANAGER)?),
        config: Configuration::from_json(&variable(worker_env::PROCESS_CONFIG)?)?,
        has_peers: true,
    };
    end_with_parent();
    let outcome = runtime()?.block_on(run_worker(options));
    match outcome {
        Ok(()) => std::process::exit(0),
        Err(error) => {
            tracing::error!(%error, "the worker ends");
            std::process::exit(1);
        }
    }
}

/// Ends the process when its standard input closes: the TaskManager holds the other end, and it closes
/// however the TaskManager dies.
fn end_with_parent() {
    std::thread::spawn(|| {
        let mut byte = [0];
        // Behind the payload nothing is written, so a read returns when there is no writer any more.
        while matches!(std::io::stdin().read(&mut byte), Ok(1..)) {}
        eprintln!("the TaskManager has ended, and its worker with it");
        std::process::exit(1);
    });
}

/// What the TaskManager has written to standard input.
pub(crate) fn payload() -> Result<String> {
    let name = worker_env::PAYLOAD_BYTES;
    let bytes: usize = variable(name)?.parse().map_err(|_| Error::input(format!("{name} is not a number")))?;
    if bytes == 0 {
        return Err(Error::input("the job was submitted without a payload"));
    }
    let mut payload = Vec::new();
    let read = std::io::stdin().lock().take(bytes as u64).read_to_end(&mut payload);
    read.context("reading the payload")?;
    let text = String::from_utf8(payload).ok().filter(|text| text.len() == bytes);
    text.ok_or_else(|| Error::system("the payload did not arrive whole"))
}

pub(crate) fn variable(name: &str) -> Result<String> {
    std::env::var(name).map_err(|_| Error::input(format!("{name} is not set: only a TaskManager starts workers")))
}
