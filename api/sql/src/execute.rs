//! From a compiled plan to a running job.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, LazyLock};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use flott_chunk::Chunk;
use flott_core::config::{Configuration, options};
use flott_core::{Error, Result};
use flott_local::{JobOutcome, Launcher};
use flott_operators::Program;
use flott_sql_runtime::expr::Functions;
use flott_sql_runtime::program;
use flott_sql_runtime::spec::CompiledPlan;

use crate::connect::TableConnectors;
use crate::results::{ResultSink, results};
use crate::session::Job;
use crate::ship;

/// The functions that every process of a SQL job has.
static FUNCTIONS: LazyLock<Functions> = LazyLock::new(|| Functions::new(flott_sql_functions::all()));

/// The program of a plan. `results` is where the rows of a SELECT go.
///
/// # Errors
/// The plan has something that this build does not know.
pub fn program(plan: &CompiledPlan, config: &Configuration, results: Option<ResultSink>) -> Result<Arc<Program>> {
    let connectors = Arc::new(TableConnectors::new(results));
    program::build(plan, config, connectors, &FUNCTIONS).map(Arc::new)
}

/// Runs a job that writes tables. `arguments` come before the plan in the command line of workers: they make this binary
/// call [`work`].
///
/// # Errors
/// It was not accepted, or failed.
pub fn insert(job: &Job, launcher: &Launcher, arguments: &[&str]) -> Result<JobOutcome> {
    let program = program(&job.plan, &merged(job, launcher), None)?;
    let shipped = ship::to_arguments(&job.plan)?;
    launcher.execute_as(program, || arguments.iter().map(|&text| text.to_owned()).chain(shipped).collect())
}

/// What a worker does with the plan in its arguments.
///
/// # Errors
/// They are no plan of this build, or the job failed.
pub fn work(plan: &[String], launcher: &Launcher) -> Result<JobOutcome> {
    let program = program(&ship::from_arguments(plan)?, launcher.config(), None)?;
    launcher.execute(program)
}

/// A SELECT that runs in this process.
pub struct Running {
    rows: Receiver<Chunk>,
    job: JoinHandle<Result<JobOutcome>>,
}

/// Runs a SELECT in this process.
///
/// # Errors
/// Its rows are for another process; or its operators cannot be made.
pub fn select(job: &Job, launcher: Launcher) -> Result<Running> {
    if !launcher.is_local() {
        return Err(Error::input(
            "the rows of a SELECT are shown by the process that runs the job: leave out -m, or INSERT them INTO a table",
        ));
    }
    let config = merged(job, &launcher);
    let is_exactly_once = config.get(options::CHECKPOINT_INTERVAL)?.is_some();
    let (sink, rows) = results(is_exactly_once);
    let program = program(&job.plan, &config, Some(sink))?;
    let run = move || launcher.execute(program);
    let job = thread::Builder::new().name("select".to_owned()).spawn(run);
    let job = job.map_err(|error| Error::system(format!("starting a thread: {error}")))?;
    Ok(Running { rows, job })
}

/// What comes next of a SELECT.
pub enum Next {
    /// Rows.
    Rows(Chunk),
    /// None came for a while.
    Pause,
    /// The last have come.
    End,
}

impl Running {
    /// Waits so long for the next rows.
    pub fn next(&self, patience: Duration) -> Next {
        match self.rows.recv_timeout(patience) {
            Ok(chunk) => Next::Rows(chunk),
            Err(RecvTimeoutError::Timeout) => Next::Pause,
            Err(RecvTimeoutError::Disconnected) => Next::End,
        }
    }

    /// How it ended.
    ///
    /// # Errors
    /// It failed, or was cancelled.
    pub fn end(self) -> Result<JobOutcome> {
        // Rows that nobody takes any more must not hold the job up.
        drop(self.rows);
        self.job.join().unwrap_or_else(|_| Err(Error::system("the thread of a SELECT panicked")))
    }
}

/// The script's settings below those that were given outside.
fn merged(job: &Job, launcher: &Launcher) -> Configuration {
    let mut config = job.config.clone();
    config.extend(launcher.config());
    config
}
