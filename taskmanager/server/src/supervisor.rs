//! The TaskManager: offers slots, and supervises one worker a job.
//!
//! A worker is a process of the job's own binary, so that a job's panic, leak or crash never
//! touches another job. It ends with its TaskManager: its standard input is a pipe from here, and a
//! worker whose input closes exits.

use std::collections::{BTreeMap, VecDeque};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use flott_control::{Down, ExecutionId, PROTOCOL_VERSION, TaskManagerInfo, Up, WORKER_STOPPED};
use flott_core::config::{Configuration, options};
use flott_core::ids::TaskManagerId;
use flott_core::{Error, Result, ResultExt};
use flott_operators::Program;
use flott_proto::Session;
use flott_proto::client;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, Command};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use crate::resources::sweep;
use crate::worker::{WorkerOptions, run_worker};

/// The pauses between attempts, at first and at most.
const CONNECT_PAUSE_MIN: Duration = Duration::from_millis(50);
const CONNECT_PAUSE_MAX: Duration = Duration::from_secs(2);

/// How long a TaskManager waits before it opens a new session.
const RECONNECT_PAUSE: Duration = Duration::from_millis(200);

/// How many executions' output is kept.
const LOGS_MAX: usize = 50;

/// How many of the last lines of a worker's standard error are kept for the reason of its end.
const STDERR_LINES_MAX: usize = 20;
const STDERR_LINE_BYTES_MAX: u64 = 64 << 10;

/// How long the last lines may take to come after a worker's end.
const STDERR_WAIT: Duration = Duration::from_secs(1);

/// The names of the environment variables that tell a process that it is a worker, and whose.
pub mod worker_env {
    /// `worker` in a worker, `plan` in a process that is to write its graph.
    pub const ROLE: &str = "FLOTT_ROLE";
    /// `host:port` of the JobManager.
    pub const JOBMANAGER: &str = "FLOTT_JOBMANAGER";
    /// The job's id.
    pub const JOB: &str = "FLOTT_JOB";
    /// The generation.
    pub const GENERATION: &str = "FLOTT_GENERATION";
    /// The TaskManager's id.
    pub const TASK_MANAGER: &str = "FLOTT_TASK_MANAGER";
    /// How many bytes of its standard input are the job's payload.
    pub const PAYLOAD_BYTES: &str = "FLOTT_PAYLOAD_BYTES";
    /// The configuration of the job as JSON.
    pub const CONFIG: &str = "FLOTT_CONFIG";
    /// The configuration of the TaskManager as JSON: addresses and time-outs are not for jobs to choose.
    pub const PROCESS_CONFIG: &str = "FLOTT_PROCESS_CONFIG";
}

/// A session that is being opened.
pub type Opening = Pin<Box<dyn Future<Output = Session> + Send>>;

/// How to reach the JobManager.
#[derive(Clone)]
pub enum JobManagerLink {
    /// At this `host:port`.
    Remote(String),
    /// In this process.
    Embedded(Arc<dyn Fn() -> Opening + Send + Sync>),
}

impl JobManagerLink {
    /// Opens a session whose first message is `first`.
    pub async fn connect(&self, first: Up) -> Result<Session> {
        match self {
            Self::Remote(address) => client::connect(address, first).await,
            Self::Embedded(open) => {
                let session = open().await;
                let sent = session.up.send(first).await;
                sent.map_err(|_| Error::system("the JobManager has stopped"))?;
                Ok(session)
            }
        }
    }

    /// Opens a session, trying again until `timeout` is over if the JobManager is not there.
    async fn connect_patiently(&self, first: &Up, timeout: Duration) -> Result<Session> {
        let began = flott_env::monotonic();
        let mut pause = CONNECT_PAUSE_MIN;
        loop {
            match self.connect(first.clone()).await {
                Ok(session) => return Ok(session),
                Err(error) => {
                    let tried = flott_env::monotonic().saturating_sub(began);
                    if tried >= timeout {
                        let key = options::REGISTRATION_TIMEOUT.key;
                        return Err(error.context(format!("gave up after {} s ({key})", tried.as_secs())));
                    }
                    tracing::warn!(%error, "no JobManager yet, trying again in {pause:?}");
                    flott_env::sleep(pause).await;
                    pause = (pause * 2).min(CONNECT_PAUSE_MAX);
                }
            }
        }
    }
}

/// How workers are started.
pub enum WorkerLauncher {
    /// As processes of the job's binary.
    Process,
    /// As tasks of this process, for a job that is linked into it.
    InProcess(Arc<Program>),
}

/// What a TaskManager is started with.
pub struct TaskManagerOptions {
    /// The cluster's configuration.
    pub config: Configuration,
    /// How to reach the JobManager.
    pub link: JobManagerLink,
    /// How workers are started.
    pub launcher: WorkerLauncher,
    /// How many slots it offers.
    pub slots: u32,
    /// Its folder, for job binaries and the output of workers.
    pub dir: PathBuf,
}

/// A TaskManager.
pub struct TaskManager {
    options: TaskManagerOptions,
    info: TaskManagerInfo,
    workers: BTreeMap<ExecutionId, Worker>,
    exits: mpsc::Sender<Exit>,
    exited: mpsc::Receiver<Exit>,
}

/// Which worker ended, and how.
type Exit = (ExecutionId, String);

/// The host that workers listen on for data, and the one that others reach them at. Whoever reaches a worker can send
/// records into its job, so other hosts than loopback are refused unless the network is said to be trusted.
pub(crate) fn data_hosts(config: &Configuration) -> Result<(String, String)> {
    let bind = config.get(options::TASKMANAGER_BIND_HOST)?;
    let is_loopback =
        bind == "localhost" || bind.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
    if !is_loopback && !config.get(options::INSECURE)? {
        return Err(Error::input(format!(
            "workers will not listen on {bind}: there is no TLS and no password yet. Set {} to 127.0.0.1, or, on a network where everyone is trusted, set {} to true",
            options::TASKMANAGER_BIND_HOST.key,
            options::INSECURE.key
        )));
    }
    let host = match config.get(options::TASKMANAGER_HOST)? {
        host if host.is_empty() => bind.clone(),
        host => host,
    };
    Ok((bind, host))
}

/// A running worker; stopping it waits for its end.
struct Worker {
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl TaskManager {
    /// A TaskManager with a new id.
    pub fn new(options: TaskManagerOptions) -> Result<Self> {
        let (_, host) = data_hosts(&options.config)?;
        let id: String = flott_env::random_id().iter().take(4).map(|byte| format!("{byte:02x}")).collect();
        let info = TaskManagerInfo {
            id: TaskManagerId(format!("{host}-{}-{id}", std::process::id())),
            host,
            pid: std::process::id(),
            slots: options.slots,
            platform: format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS),
            protocol_version: PROTOCOL_VERSION,
        };
        let (exits, exited) = mpsc::channel(1024);
        Ok(Self { options, info, workers: BTreeMap::new(), exits, exited })
    }

    /// Its id.
    pub fn id(&self) -> &TaskManagerId {
        &self.info.id
    }

    /// Serves until the JobManager refuses it or stays away. A lost JobManager is looked for again;
    /// workers do not outlive its session.
    pub async fn run(mut self) -> Result<()> {
        let timeout = self.options.config.get(options::REGISTRATION_TIMEOUT)?;
        loop {
            let register = Up::RegisterTaskManager(self.info.clone());
            let session = self.options.link.connect_patiently(&register, timeout).await?;
            tracing::info!(id = %self.info.id, slots = self.info.slots, "connected to the JobManager");
            let outcome = self.serve(session).await;
            self.stop_all().await;
            outcome?;
            if matches!(self.options.link, JobManagerLink::Embedded(_)) {
                return Ok(());
            }
            tracing::warn!("the session to the JobManager ended");
            // One that ends at once must not be opened in a tight loop.
            flott_env::sleep(RECONNECT_PAUSE).await;
        }
    }

    async fn serve(&mut self, mut session: Session) -> Result<()> {
        let mut heartbeat = tokio::time::interval(Duration::from_millis(500));
        let patience = self.options.config.get(options::HEARTBEAT_TIMEOUT)?;
        let mut heard = flott_env::monotonic();
        loop {
            if flott_env::monotonic().saturating_sub(heard) > patience {
                tracing::warn!("nothing was heard of the JobManager for {patience:?}");
                return Ok(());
            }
            tokio::select! {
                message = session.down.recv() => match message.inspect(|_| heard = flott_env::monotonic()) {
                    Some(Down::Registered { heartbeat_interval_ms }) => {
                        heartbeat = tokio::time::interval(Duration::from_millis(heartbeat_interval_ms.max(10)));
                    }
                    Some(Down::Refused(error)) => return Err(error.context("the JobManager refused this TaskManager")),
                    Some(Down::StartWorker { execution, artifact, args, payload, config }) => {
                        self.start_worker(execution, artifact, (args, payload), config);
                    }
                    Some(Down::StopWorker { execution }) => {
                        if let Some(worker) = self.workers.get(&execution) {
                            worker.stop.send_replace(true);
                        }
                    }
                    Some(_) => {}
                    None => return Ok(()),
                },
                Some((execution, reason)) = self.exited.recv() => {
                    self.workers.remove(&execution);
                    tracing::info!(job = %execution.job, generation = execution.generation, reason, "worker ended");
                    if session.up.send(Up::WorkerExited { execution, reason }).await.is_err() {
                        return Ok(());
                    }
                },
                _ = heartbeat.tick() => {
                    let beat = Up::Heartbeat { execution: None, metrics: Vec::new() };
                    if let Err(mpsc::error::TrySendError::Closed(_)) = session.up.try_send(beat) {
                        return Ok(());
                    }
                }
            }
        }
    }

    async fn stop_all(&mut self) {
        for worker in self.workers.values() {
            worker.stop.send_replace(true);
        }
        for (_, worker) in std::mem::take(&mut self.workers) {
            // A worker that panicked has ended as well.
            let _ = worker.task.await;
        }
        while self.exited.try_recv().is_ok() {}
    }

    fn start_worker(
        &mut self,
        execution: ExecutionId,
        artifact: Option<String>,
        (args, payload): (Vec<String>, Option<String>),
        config: Configuration,
    ) {
        let (stop, stopped) = watch::channel(false);
        let exits = self.exits.clone();
        let work: Pin<Box<dyn Future<Output = String> + Send>> = match (&self.options.launcher, artifact) {
            (WorkerLauncher::InProcess(program), _) => {
                let mut config = self.options.config.clone();
                let slots = self.options.slots.to_string();
                // A number is a number of slots, so it is not refused.
                let _ = config.set(options::TASK_SLOTS.key, &slots);
                let options = WorkerOptions {
                    program: Arc::clone(program),
                    execution,
                    task_manager: self.info.id.clone(),
                    link: self.options.link.clone(),
                    config,
                    has_peers: false,
                };
                Box::pin(run_in_process(options, stopped))
            }
            (WorkerLauncher::Process, Some(artifact)) => {
                let JobManagerLink::Remote(address) = &self.options.link else { return };
                let process = WorkerProcess {
                    execution,
                    artifact,
                    args,
                    payload,
                    config,
                    process_config: self.options.config.clone(),
                    task_manager: self.info.id.clone(),
                    jobmanager: address.clone(),
                    dir: self.options.dir.clone(),
                };
                let config = self.options.config.clone();
                Box::pin(async move {
                    let reason = process.run(stopped).await;
                    // What it had on disk is room for others.
                    flott_env::spawn_blocking_on(&Handle::current(), move || sweep(&config));
                    reason
                })
            }
            (WorkerLauncher::Process, None) => Box::pin(async { "the job has no binary".to_owned() }),
        };
        let task = flott_env::spawn(async move {
            let reason = work.await;
            // A TaskManager that is stopping does not ask.
            let _ = exits.send((execution, reason)).await;
        });
        self.workers.insert(execution, Worker { stop, task });
    }
}

async fn until_stopped(mut stopped: watch::Receiver<bool>) {
    // A TaskManager that is gone stops its workers too.
    let _ = stopped.wait_for(|stopped| *stopped).await;
}

async fn run_in_process(options: WorkerOptions, stopped: watch::Receiver<bool>) -> String {
    tokio::select! {
        outcome = run_worker(options) => match outcome {
            Ok(()) => "its session ended".to_owned(),
            Err(error) => error.message,
        },
        () = until_stopped(stopped) => WORKER_STOPPED.to_owned(),
    }
}

/// A worker in a process of its own.
struct WorkerProcess {
    execution: ExecutionId,
    artifact: String,
    args: Vec<String>,
    payload: Option<String>,
    config: Configuration,
    process_config: Configuration,
    task_manager: TaskManagerId,
    jobmanager: String,
    dir: PathBuf,
}

impl WorkerProcess {
    /// Runs it to its end; returns how it ended.
    async fn run(self, stopped: watch::Receiver<bool>) -> String {
        let mut child = match self.start().await {
            Ok(child) => child,
            Err(error) => return error.message,
        };
        let stderr = child.stderr.take();
        // Held until the worker has ended: waiting for a child would close it.
        let mut input = child.stdin.take();
        let log = self.dir.join("log").join(format!("{}-{}.err", self.execution.job, self.execution.generation));
        let tail = flott_env::spawn(copy_tail(stderr, log));
        if let (Some(input), Some(payload)) = (&mut input, &self.payload) {
            tokio::select! {
                // One that does not read it has ended, or is about to, and its status says why.
                _ = input.write_all(payload.as_bytes()) => {}
                () = until_stopped(stopped.clone()) => {}
            }
        }
        let status = tokio::select! {
            status = child.wait() => status,
            () = until_stopped(stopped) => {
                // It may be dying already, which is why the JobManager lost it and wants it stopped: then its status tells
                // how, whatever is done to it now.
                let _ = child.start_kill();
                match child.wait().await {
                    Ok(status) if status.success() || status.signal() == Some(libc::SIGKILL) => {
                        return WORKER_STOPPED.to_owned();
                    }
                    status => status,
                }
            }
        };
        // A process that the worker started may hold its standard error open for longer.
        let tail = tokio::time::timeout(STDERR_WAIT, tail).await.ok().and_then(Result::ok).unwrap_or_default();
        match status {
            Ok(status) if status.success() => "it ended by itself".to_owned(),
            Ok(status) => format!("worker process of TaskManager {} ended: {status}\n{tail}", self.task_manager),
            Err(error) => format!("worker process of TaskManager {}: {error}", self.task_manager),
        }
    }

    async fn start(&self) -> Result<Child> {
        let binary = self.dir.join("artifacts").join(&self.artifact);
        if !binary.exists() {
            client::fetch_artifact(&self.jobmanager, &self.artifact, &binary).await?;
        }
        let log = self.dir.join("log");
        tokio::fs::create_dir_all(&log).await.with_context(|| format!("creating {}", log.display()))?;
        prune(&log);
        let out = log.join(format!("{}-{}.out", self.execution.job, self.execution.generation));
        let out = std::fs::File::create(&out).with_context(|| format!("creating {}", out.display()))?;
        let payload_bytes = self.payload.as_ref().map_or(0, String::len);
        Command::new(&binary)
            .args(&self.args)
            .env(worker_env::ROLE, "worker")
            .env(worker_env::JOBMANAGER, &self.jobmanager)
            .env(worker_env::JOB, self.execution.job.to_string())
            .env(worker_env::GENERATION, self.execution.generation.to_string())
            .env(worker_env::TASK_MANAGER, &self.task_manager.0)
            .env(worker_env::PAYLOAD_BYTES, payload_bytes.to_string())
            .env(worker_env::CONFIG, self.config.to_json())
            .env(worker_env::PROCESS_CONFIG, self.process_config.to_json())
            .stdin(Stdio::piped())
            .stdout(out)
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("starting the worker process {}", binary.display()))
    }
}

/// Removes the oldest outputs of workers, of which each execution leaves two. Failing to is no reason not to work.
fn prune(log: &Path) {
    let Ok(entries) = std::fs::read_dir(log) else { return };
    let modified = |entry: &std::fs::DirEntry| entry.metadata().and_then(|metadata| metadata.modified()).ok();
    let mut files: Vec<_> = entries.flatten().map(|entry| (modified(&entry), entry.path())).collect();
    files.sort();
    let surplus = files.len().saturating_sub(2 * LOGS_MAX);
    files.drain(..surplus).for_each(|(_, path)| drop(std::fs::remove_file(path)));
}

/// Copies a worker's standard error into a file; returns its last lines.
async fn copy_tail(stderr: Option<tokio::process::ChildStderr>, log: PathBuf) -> String {
    let Some(stderr) = stderr else { return String::new() };
    let mut log = std::fs::File::create(log).ok();
    let mut reader = BufReader::new(stderr);
    let (mut line, mut tail) = (Vec::new(), VecDeque::new());
    loop {
        line.clear();
        // A line without an end is cut into pieces.
        let read = (&mut reader).take(STDERR_LINE_BYTES_MAX).read_until(b'\n', &mut line).await;
        if !matches!(read, Ok(1..)) {
            break;
        }
        if let Some(file) = &mut log {
            // A full disk must not stop the worker.
            let _ = std::io::Write::write_all(file, &line);
        }
        tail.push_back(String::from_utf8_lossy(&line).trim_end().to_owned());
        if tail.len() > STDERR_LINES_MAX {
            tail.pop_front();
        }
    }
    Vec::from(tail).join("\n")
}
