//! The local role: a whole cluster in this process, with as many slots as the job needs.

use std::sync::Arc;

use flott_control::JobSpec;
use flott_core::config::options;
use flott_core::ids::JobId;
use flott_core::status::JobStatus;
use flott_core::{Error, Result, ResultExt};
use flott_jobmanager::{JobManager, JobManagerHandle, JobManagerOptions};
use flott_jobmanager_core::view::JobView;
use flott_operators::Program;
use flott_raft::MemoryLog;
use flott_taskmanager::supervisor::JobManagerLink;
use flott_taskmanager::{TaskManager, TaskManagerOptions, WorkerLauncher};

use crate::args::EngineArgs;
use crate::launcher::JobOutcome;
use crate::processes::{runtime, termination};

/// Runs the program to its end, which may be a cancellation: Ctrl-C and SIGTERM cancel the job.
pub(crate) fn run(program: Arc<Program>, args: &EngineArgs) -> Result<JobOutcome> {
    flott_telemetry::init_tracing("warn", false)?;
    let began = flott_env::monotonic();
    let runtime = runtime()?;
    let view = runtime.block_on(run_job(program, args));
    // Threads of a job that was cancelled may still be in a user's function: do not wait for them.
    runtime.shutdown_background();
    let view = view?;
    let duration = flott_env::monotonic().saturating_sub(began);
    match view.status {
        JobStatus::Failed => Err(failure(&view)),
        status => Ok(JobOutcome { job: view.id, status, duration }),
    }
}

/// The error of a program that was to run to its end, and was cancelled.
pub(crate) fn cancelled(program: &str) -> Error {
    Error::user_code(format!("job '{program}' was cancelled"))
}

fn failure(view: &JobView) -> Error {
    let cause = view.exceptions.first().map_or("no cause was recorded", |exception| exception.message.as_str());
    Error::user_code(format!("job '{}' failed: {cause}", view.spec.graph.name))
}

async fn run_job(program: Arc<Program>, args: &EngineArgs) -> Result<JobView> {
    let config = program.job_graph.config.clone();
    let scratch = match config.get(options::IO_TMP_DIRS)? {
        dir if dir.is_empty() => tempfile::Builder::new().prefix("flott-").tempdir(),
        dir => tempfile::Builder::new().prefix("flott-").tempdir_in(dir),
    };
    let scratch = scratch.with_context(|| format!("making a temporary folder ({})", options::IO_TMP_DIRS.key))?;
    let rest = config.is_set(options::REST_PORT);
    let jobmanager = JobManager::start(JobManagerOptions {
        config: config.clone(),
        dir: scratch.path().to_owned(),
        log: Box::new(MemoryLog::default()),
        listen: false,
        rest,
    });
    let jobmanager = Arc::new(jobmanager.await?);
    if let Some(address) = jobmanager.rest_address() {
        println!("REST API at http://{address}");
    }
    let link = Arc::clone(&jobmanager);
    let task_manager = TaskManager::new(TaskManagerOptions {
        slots: program.job_graph.slots(),
        config,
        link: JobManagerLink::Embedded(Arc::new(move || {
            let jobmanager = Arc::clone(&link);
            Box::pin(async move { jobmanager.connect_embedded().await })
        })),
        launcher: WorkerLauncher::InProcess(Arc::clone(&program)),
        dir: scratch.path().to_owned(),
    })?;
    let supervisor = flott_env::spawn(task_manager.run());
    let spec = JobSpec {
        graph: program.job_graph.clone(),
        artifact: None,
        args: Vec::new(),
        payload: None,
        savepoint: args.savepoint.clone(),
        allow_non_restored_state: args.allow_non_restored_state,
        claim_mode: args.claim_mode,
    };
    let job = jobmanager.submit(spec).await?;
    let view = wait(&jobmanager, job, args.is_interactive).await;
    supervisor.abort();
    view
}

async fn wait(jobmanager: &JobManagerHandle, job: JobId, is_quiet: bool) -> Result<JobView> {
    let end = jobmanager.wait(job);
    tokio::pin!(end);
    let mut interrupts = 0;
    loop {
        tokio::select! {
            view = &mut end => return view,
            signal = termination() => {
                signal?;
                interrupts += 1;
                if interrupts > 1 {
                    return Err(Error::user_code("interrupted"));
                }
                if !is_quiet {
                    eprintln!("cancelling the job; Ctrl-C again ends at once");
                }
                jobmanager.cancel(job).await?;
            }
        }
    }
}
