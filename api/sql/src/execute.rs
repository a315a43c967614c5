//! From a compiled plan to a running job.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, LazyLock};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use flott_checkpoint::Manifest;
use flott_chunk::Chunk;
use flott_core::config::{Configuration, options};
use flott_core::{Error, Result};
use flott_local::check::{RestoreReport, check_program};
use flott_local::plan::Planned;
use flott_local::{JobOutcome, Launcher, Recipe};
use flott_operators::Program;
use flott_sql_runtime::expr::Functions;
use flott_sql_runtime::program;
use flott_sql_runtime::spec::{CompiledPlan, Exchange, OperatorSpec};

use crate::connect::TableConnectors;
use crate::plan::COLLECT;
use crate::results::{Results, channel, fetch, results};
use crate::session::Job;
use crate::ship;

/// The functions that every process of a SQL job has.
static FUNCTIONS: LazyLock<Functions> = LazyLock::new(|| Functions::new(flott_sql_functions::all()));

/// The functions that every process of a SQL job has. A program may have more.
pub fn functions() -> &'static Functions {
    &FUNCTIONS
}

/// The program of a plan. `results` is where the rows of a SELECT go.
///
/// # Errors
/// The plan has something that this build does not know.
pub fn program(plan: &CompiledPlan, config: &Configuration, results: Option<Results>) -> Result<Arc<Program>> {
    let connectors = Arc::new(TableConnectors::new(results));
    program::build(plan, config, connectors, &FUNCTIONS).map(Arc::new)
}

/// Runs a job that writes tables. `arguments` are those of workers: they make this binary call [`work`].
///
/// # Errors
/// It was not accepted, or failed.
pub fn insert(job: &Job, launcher: &Launcher, arguments: &[&str]) -> Result<JobOutcome> {
    let program = program(&job.plan, &merged(job, launcher), None)?;
    launcher.execute_as(program, || recipe(&job.plan, arguments))
}

/// A job that writes tables as it is submitted, for whoever does that. `arguments` are those of workers, as for [`insert`].
///
/// # Errors
/// Its operators cannot be made.
pub fn planned(job: &Job, launcher: &Launcher, arguments: &[&str]) -> Result<Planned> {
    let program = program(&job.plan, &merged(job, launcher), None)?;
    Ok(Planned { graph: program.job_graph.clone(), recipe: recipe(&job.plan, arguments)? })
}

/// What a job would make of the savepoint that `manifest` describes, found out without running it.
///
/// # Errors
/// Its operators cannot be made.
pub fn check(
    job: &Job,
    launcher: &Launcher,
    manifest: &Manifest,
    allow_non_restored_state: bool,
) -> Result<RestoreReport> {
    // A SELECT wants to know where its rows go, though none will come.
    let (sink, _) = results(false);
    let program = program(&job.plan, &merged(job, launcher), Some(Results::Here(sink)))?;
    check_program(&program, manifest, allow_non_restored_state)
}

/// How workers build the program of a plan.
fn recipe(plan: &CompiledPlan, arguments: &[&str]) -> Result<Recipe> {
    let arguments = arguments.iter().map(|&text| text.to_owned()).collect();
    Ok(Recipe { arguments, payload: Some(ship::to_text(plan)?) })
}

/// What a worker does with the plan that it was given.
///
/// # Errors
/// It is no plan of this build, or the job failed.
pub fn work(launcher: &Launcher) -> Result<JobOutcome> {
    let plan = ship::from_text(&launcher.payload()?)?;
    let results = Results::Offered(launcher.jobmanager()?);
    let program = program(&plan, launcher.config(), Some(results))?;
    launcher.execute(program)
}

/// A SELECT that runs, in this process or in a cluster.
pub struct Running {
    rows: Receiver<Chunk>,
    job: JoinHandle<Result<JobOutcome>>,
    is_local: bool,
}

/// Runs a SELECT, in a cluster if the launcher has one. `arguments` are those of workers, as for [`insert`].
///
/// # Errors
/// Its operators cannot be made, or the cluster does not accept it.
pub fn select(job: &Job, launcher: Launcher, arguments: &[&str]) -> Result<Running> {
    let config = merged(job, &launcher);
    let make = |plan: &CompiledPlan, results| program(plan, &config, results);
    select_with(&config, &job.plan, launcher, make, |plan, _| recipe(plan, arguments))
}

/// The same for a program that `make` makes of the plan, with where the rows go, and workers by the recipe. In a process that
/// plans, checks or works, it ends here.
///
/// # Errors
/// As for [`select`].
pub fn select_with(
    config: &Configuration,
    plan: &CompiledPlan,
    launcher: Launcher,
    make: impl FnOnce(&CompiledPlan, Option<Results>) -> Result<Arc<Program>>,
    recipe: impl FnOnce(&CompiledPlan, &Launcher) -> Result<Recipe>,
) -> Result<Running> {
    if launcher.is_local() {
        let is_exactly_once = config.get(options::CHECKPOINT_INTERVAL)?.is_some();
        let (sink, rows) = results(is_exactly_once);
        let program = make(plan, Some(Results::Here(sink)))?;
        return Running::start(rows, true, move || launcher.run_here(program));
    }
    let plan = gathered(plan);
    let program = make(&plan, launcher.jobmanager().ok().map(Results::Offered))?;
    let (client, id) = launcher.submit(program, || recipe(&plan, &launcher))?;
    let (sender, rows) = channel();
    Running::start(rows, false, move || fetch::run(client, id, sender))
}

/// The plan of a SELECT, with all rows coming out of one subtask.
fn gathered(plan: &CompiledPlan) -> CompiledPlan {
    let mut plan = plan.clone();
    let is_collected = |operator: &OperatorSpec| match operator {
        OperatorSpec::Sink(sink) => sink.options.get("connector").is_some_and(|name| name == COLLECT),
        _ => false,
    };
    for (index, node) in plan.nodes.iter_mut().enumerate().filter(|(_, node)| is_collected(&node.operator)) {
        node.parallelism = Some(1);
        for edge in plan.edges.iter_mut().filter(|edge| edge.target == index) {
            edge.exchange = Exchange::Global;
        }
    }
    plan
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
    fn start(
        rows: Receiver<Chunk>,
        is_local: bool,
        run: impl FnOnce() -> Result<JobOutcome> + Send + 'static,
    ) -> Result<Self> {
        let job = thread::Builder::new().name("select".to_owned()).spawn(run);
        let job = job.map_err(|error| Error::system(format!("starting a thread: {error}")))?;
        Ok(Self { rows, job, is_local })
    }

    /// Waits so long for the next rows.
    pub fn next(&self, patience: Duration) -> Next {
        match self.rows.recv_timeout(patience) {
            Ok(chunk) => Next::Rows(chunk),
            // A thread that the job left behind may keep the channel open.
            Err(RecvTimeoutError::Timeout) if self.job.is_finished() => {
                self.rows.try_recv().map_or(Next::End, Next::Rows)
            }
            Err(RecvTimeoutError::Timeout) => Next::Pause,
            Err(RecvTimeoutError::Disconnected) => Next::End,
        }
    }

    /// How it ended: it may have been cancelled.
    ///
    /// # Errors
    /// It failed.
    pub fn end(self) -> Result<JobOutcome> {
        // Rows that nobody takes any more must not hold the job up.
        drop(self.rows);
        self.job.join().unwrap_or_else(|_| Err(Error::system("the thread of a SELECT panicked")))
    }

    /// Nobody wants more rows. A job of a cluster would go on for ever, so it is cancelled; one of this process ends with it.
    ///
    /// # Errors
    /// The cluster could not be told.
    pub fn give_up(self) -> Result<()> {
        if self.is_local { Ok(()) } else { self.end().map(drop) }
    }
}

/// The script's settings below those that were given outside.
fn merged(job: &Job, launcher: &Launcher) -> Configuration {
    let mut config = job.config.clone();
    config.extend(launcher.config());
    config
}
