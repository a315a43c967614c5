//! The roles of a cluster's own processes.

use std::path::PathBuf;

use flott_core::config::{Configuration, options};
use flott_core::{Error, Result, ResultExt};
use flott_jobmanager::{JobManager, JobManagerOptions};
use flott_raft::RedbLog;
use flott_taskmanager::supervisor::JobManagerLink;
use flott_taskmanager::{TaskManager, TaskManagerOptions, WorkerLauncher};

/// What a JobManager prints in front of its REST API's `host:port` when it can be used.
pub const JOBMANAGER_READY: &str = "JobManager is ready: REST API at http://";

/// Arguments of a `jobmanager` or `taskmanager` process.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct ProcessArgs {
    /// Reads options from this YAML file
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// Sets an option, such as `-D rest.port=8082`; may be repeated
    #[arg(short = 'D', value_name = "KEY=VALUE")]
    pub define: Vec<String>,

    /// The process's folder: durable facts, job binaries, logs of workers
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
}

impl ProcessArgs {
    /// The configuration of file and arguments together.
    pub fn configuration(&self) -> Result<Configuration> {
        let mut config = match &self.config {
            Some(path) => {
                let name = path.display().to_string();
                let text = std::fs::read_to_string(path).with_context(|| format!("reading {name}"))?;
                Configuration::from_yaml(&name, &text)?
            }
            None => Configuration::default(),
        };
        self.define.iter().try_for_each(|pair| config.set_pair(pair))?;
        Ok(config)
    }

    fn dir(&self, role: &str) -> PathBuf {
        self.dir.clone().unwrap_or_else(|| std::env::temp_dir().join(format!("flott-{role}-{}", std::process::id())))
    }
}

/// A runtime for the I/O of one process. Records are processed on threads of their own.
pub(crate) fn runtime() -> Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .thread_name("flott-io")
        .build()
        .context("starting the I/O threads")
}

/// Runs a JobManager until it is told to end (SIGINT, SIGTERM) or fails.
pub fn run_jobmanager(args: &ProcessArgs) -> Result<()> {
    flott_telemetry::init_tracing("info", false)?;
    let config = args.configuration()?;
    let dir = match config.get(options::HA_STORAGE_DIR)? {
        storage if storage.is_empty() => args.dir("jobmanager"),
        storage => PathBuf::from(storage.strip_prefix("file://").unwrap_or(&storage)),
    };
    std::fs::create_dir_all(&dir).with_context(|| format!("creating {}", dir.display()))?;
    runtime()?.block_on(async {
        let log = Box::new(RedbLog::open(&dir)?);
        let handle = JobManager::start(JobManagerOptions { config, dir, log, listen: true, rest: true }).await?;
        if let Some(address) = handle.rest_address() {
            println!("{JOBMANAGER_READY}{address}");
        }
        tokio::select! {
            ended = handle.ended() => ended,
            signal = termination() => {
                signal?;
                handle.shutdown().await
            }
        }
    })
}

/// Runs a TaskManager until it is told to end (SIGINT, SIGTERM), is refused, or finds no JobManager.
pub fn run_taskmanager(args: &ProcessArgs) -> Result<()> {
    flott_telemetry::init_tracing("info", false)?;
    let config = args.configuration()?;
    let host = config.get(options::JOBMANAGER_RPC_ADDRESS)?;
    let port = config.get(options::JOBMANAGER_RPC_PORT)?;
    let dir = args.dir("taskmanager");
    std::fs::create_dir_all(&dir).with_context(|| format!("creating {}", dir.display()))?;
    runtime()?.block_on(async {
        let task_manager = TaskManager::new(TaskManagerOptions {
            slots: config.get(options::TASK_SLOTS)?,
            config,
            link: JobManagerLink::Remote(format!("{host}:{port}")),
            launcher: WorkerLauncher::Process,
            dir,
        })?;
        println!("TaskManager {} is ready", task_manager.id());
        tokio::select! {
            ended = task_manager.run() => ended,
            signal = termination() => signal,
        }
    })
}

/// Waits for SIGINT or SIGTERM.
pub(crate) async fn termination() -> Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate()).context("listening for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("listening for SIGINT")?;
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    Ok(())
}

/// Plays a process role if the arguments name one (`./job jobmanager …`): a job's binary can be all
/// processes of its cluster. Returns the exit code if it did.
pub fn run_role(arguments: &[String]) -> Option<Result<()>> {
    #[derive(clap::Parser)]
    struct Process {
        #[command(flatten)]
        args: ProcessArgs,
    }
    let role = arguments.get(1)?;
    let run = match role.as_str() {
        "jobmanager" => run_jobmanager,
        "taskmanager" => run_taskmanager,
        _ => return None,
    };
    let parsed = <Process as clap::Parser>::try_parse_from(&arguments[1..]);
    Some(match parsed {
        Ok(process) => run(&process.args),
        Err(error) if !error.use_stderr() => {
            // Asked for help: that is not a failure.
            print!("{error}");
            Ok(())
        }
        Err(error) => Err(Error::input(error.to_string())),
    })
}
