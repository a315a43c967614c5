//! A cluster of real processes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use crate::binaries::binary;
use crate::command::{CommandOutput, run_command};
use crate::http;
use crate::permit::Permit;
use crate::process::{Process, children, environment_of};
use crate::setup::{Setup, free_port};
use crate::wait::until;

/// How long processes may take to start and to find each other.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// How long a command of the client may take. A job's binary is uploaded in it.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(120);

/// How long the REST API may be away when a test does not expect it to be.
const REST_TIMEOUT: Duration = Duration::from_secs(20);

/// How many lines of each log, and how many logs of workers, a failed test shows.
const LOG_LINES_MAX: usize = 30;
const WORKER_LOGS_MAX: usize = 6;

/// The variable that keeps the folder of a failed test.
const KEEP: &str = "FLOTT_E2E_KEEP";

/// One JobManager and some TaskManagers, in a temporary folder and on ports of their own. Whatever happens to the test,
/// they are killed when this is dropped; their workers end with them.
///
/// All methods panic, with what they waited for, if the cluster does not do what it should.
pub struct Cluster {
    setup: Setup,
    rest_port: u16,
    rpc_port: u16,
    job_manager: Option<Process>,
    task_managers: Vec<Option<Process>>,
    dir: Option<TempDir>,
    _permit: Permit,
}

impl Cluster {
    /// Starts a cluster with so many TaskManagers, with so many slots each.
    #[track_caller]
    pub fn start(task_managers: usize, slots: u32) -> Self {
        Setup::new(task_managers, slots).start()
    }

    #[track_caller]
    pub(crate) fn with(setup: Setup) -> Self {
        let permit = Permit::acquire();
        let dir = tempfile::Builder::new().prefix("flott-e2e-").tempdir();
        let dir = dir.unwrap_or_else(|error| panic!("making a temporary folder: {error}"));
        fs::create_dir(dir.path().join("log")).unwrap_or_else(|error| panic!("making the folder for logs: {error}"));
        let task_managers = (0..setup.task_managers).map(|_| None).collect();
        let mut cluster = Self {
            setup,
            rest_port: free_port(),
            rpc_port: free_port(),
            job_manager: None,
            task_managers,
            dir: Some(dir),
            _permit: permit,
        };
        cluster.start_job_manager();
        for index in 0..cluster.task_managers.len() {
            cluster.start_task_manager(index);
        }
        cluster.wait_for_task_managers();
        cluster
    }

    fn dir(&self) -> &Path {
        self.dir.as_ref().expect("it is there until the end").path()
    }

    /// The path of a name in the cluster's temporary folder.
    pub fn path(&self, name: &str) -> String {
        self.dir().join(name).to_str().expect("the temporary folder's name is UTF-8").to_owned()
    }

    /// The address of the REST API.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.rest_port)
    }

    /// The port of the REST API.
    pub fn rest_port(&self) -> u16 {
        self.rest_port
    }

    /// The program `flott` with the cluster's environment.
    pub fn command(&self) -> Command {
        let mut command = Command::new(binary("flott"));
        command.current_dir(self.dir()).env("RUST_LOG", "info").env_remove("FLOTT_ROLE");
        command.envs(self.setup.environment.iter().map(|(name, value)| (name, value)));
        command
    }

    fn process(&self, role: &str, name: &str) -> Process {
        let mut command = self.command();
        command.args([role, "--dir", &self.path(name)]);
        let ports = [("rest.port", self.rest_port), ("jobmanager.rpc.port", self.rpc_port)];
        for (key, port) in ports {
            command.args(["-D", &format!("{key}={port}")]);
        }
        command.args(["-D", &format!("taskmanager.numberOfTaskSlots={}", self.setup.slots)]);
        for (key, value) in &self.setup.options {
            command.args(["-D", &format!("{key}={value}")]);
        }
        Process::start(&mut command, &self.dir().join("log").join(format!("{name}.log")))
    }

    /// Starts the JobManager, with the ports and the folder that it had before.
    #[track_caller]
    pub fn start_job_manager(&mut self) {
        let mut process = self.process("jobmanager", "jobmanager");
        until("the JobManager's REST API", START_TIMEOUT, || {
            assert!(process.end().is_none(), "the JobManager ended:\n{}", self.tail("log/jobmanager.log"));
            self.try_rest("/overview")
        });
        self.job_manager = Some(process);
    }

    /// Kills the JobManager with SIGKILL.
    pub fn kill_job_manager(&mut self) {
        self.job_manager = None;
    }

    /// Starts a TaskManager, with the folder that it had before.
    pub fn start_task_manager(&mut self, index: usize) {
        self.task_managers[index] = Some(self.process("taskmanager", &format!("taskmanager-{index}")));
    }

    /// Starts one more TaskManager.
    pub fn add_task_manager(&mut self) {
        self.task_managers.push(None);
        self.start_task_manager(self.task_managers.len() - 1);
    }

    /// Kills a TaskManager with SIGKILL.
    pub fn kill_task_manager(&mut self, index: usize) {
        self.task_managers[index] = None;
    }

    /// How many TaskManagers there are, running or killed.
    pub fn task_managers(&self) -> usize {
        self.task_managers.len()
    }

    /// Waits until all running TaskManagers are registered.
    #[track_caller]
    pub fn wait_for_task_managers(&self) {
        let running = self.task_managers.iter().flatten().count();
        until(&format!("{running} TaskManagers"), START_TIMEOUT, || {
            let overview = self.try_rest("/overview")?;
            if overview["taskmanagers"] == running { Ok(()) } else { Err(overview.to_string()) }
        });
    }

    /// The worker processes of all TaskManagers.
    pub fn workers(&self) -> Vec<u32> {
        (0..self.task_managers.len()).flat_map(|index| self.workers_on(index)).collect()
    }

    /// The worker processes of one TaskManager; none if it was killed.
    pub fn workers_on(&self, index: usize) -> Vec<u32> {
        self.task_managers[index].iter().flat_map(|process| children(process.pid())).collect()
    }

    /// The worker processes of a job.
    pub fn workers_of(&self, job: &str) -> Vec<u32> {
        let mut workers = self.workers();
        workers.retain(|&pid| environment_of(pid, "FLOTT_JOB").as_deref() == Some(job));
        workers
    }

    /// What `GET path` answers, if something is there.
    ///
    /// # Errors
    /// Nobody answers, or not with success.
    pub fn try_rest(&self, path: &str) -> Result<Value, String> {
        match http::request(self.rest_port, "GET", path, b"")? {
            (200..=299, body) => serde_json::from_str(&body).map_err(|error| format!("{path}: {error} in {body}")),
            (status, body) => Err(format!("{path}: HTTP {status}: {body}")),
        }
    }

    /// What `GET path` answers.
    #[track_caller]
    pub fn rest(&self, path: &str) -> Value {
        until(path, REST_TIMEOUT, || self.try_rest(path))
    }

    /// Status and body of any request.
    #[track_caller]
    pub fn request(&self, method: &str, path: &str, body: &[u8]) -> (u16, Value) {
        let (status, body) =
            http::request(self.rest_port, method, path, body).unwrap_or_else(|error| panic!("{error}"));
        (status, serde_json::from_str(&body).unwrap_or(Value::String(body)))
    }

    /// Runs `flott VERB -m … ARGUMENTS` to its end.
    #[track_caller]
    pub fn flott(&self, verb: &str, arguments: &[&str]) -> CommandOutput {
        let mut command = self.command();
        command.args([verb, "-m", &self.address()]).args(arguments);
        run_command(&mut command, COMMAND_TIMEOUT)
    }

    /// `flott run ENGINE BINARY -- JOB`, which follows the job to its end.
    #[track_caller]
    pub fn run(&self, binary: &Path, engine: &[&str], job: &[&str]) -> CommandOutput {
        let binary = binary.to_str().expect("the name of a program is UTF-8");
        self.flott("run", &[engine, &[binary, "--"], job].concat())
    }

    /// `flott run -d ENGINE BINARY -- JOB`; returns the job's id.
    #[track_caller]
    pub fn run_job(&self, binary: &Path, engine: &[&str], job: &[&str]) -> String {
        self.run(binary, &[&["-d", "-o", "json"][..], engine].concat(), job).succeeded().job()
    }

    /// Waits until a job is in a state, and returns its details.
    ///
    /// # Panics
    /// It is not in time, or it ends in another one.
    #[track_caller]
    pub fn wait_for_status(&self, job: &str, status: &str, limit: Duration) -> Value {
        until(&format!("job {job} to be {status}"), limit, || {
            let details = self.try_rest(&format!("/jobs/{job}"))?;
            let found = details["state"].as_str().unwrap_or_default();
            if found == status {
                return Ok(details);
            }
            let has_ended = ["FINISHED", "CANCELED", "FAILED"].contains(&found);
            assert!(!has_ended, "job {job} is {found} instead of {status}: {}", self.exceptions(job));
            Err(format!("it is {found}, waiting for {}", details["waiting-for"]))
        })
    }

    /// The last failure of a job, with its backtrace; empty if there was none.
    pub fn exceptions(&self, job: &str) -> String {
        let exceptions = self.try_rest(&format!("/jobs/{job}/exceptions"));
        let root = exceptions.map(|exceptions| exceptions["root-exception"].as_str().unwrap_or_default().to_owned());
        root.unwrap_or_else(|error| error)
    }

    /// The number of the last checkpoint that completed under the JobManager that runs now; 0 if there was none.
    pub fn last_checkpoint(&self, job: &str) -> u64 {
        let checkpoints = self.try_rest(&format!("/jobs/{job}/checkpoints")).unwrap_or_default();
        checkpoints["latest"]["completed"]["id"].as_u64().unwrap_or(0)
    }

    /// Waits until a job has completed a checkpoint whose number is at least `number`, which grows over all restarts.
    #[track_caller]
    pub fn wait_for_checkpoints(&self, job: &str, number: u64) {
        until(&format!("checkpoint {number} of job {job}"), START_TIMEOUT, || {
            let last = self.last_checkpoint(job);
            if last >= number { Ok(()) } else { Err(format!("the last is {last}; {}", self.exceptions(job))) }
        });
    }

    /// `flott savepoint`: returns the savepoint's folder.
    #[track_caller]
    pub fn savepoint(&self, job: &str, folder: &str) -> String {
        self.flott("savepoint", &["-o", "json", job, folder]).succeeded().savepoint()
    }

    /// `flott stop`: returns the savepoint's folder when the job has finished.
    #[track_caller]
    pub fn stop(&self, job: &str, folder: &str, drain: bool) -> String {
        let flags: &[&str] = if drain { &["--drain"] } else { &[] };
        let savepoint =
            self.flott("stop", &[&["-o", "json", "-p", folder][..], flags, &[job]].concat()).succeeded().savepoint();
        self.wait_for_status(job, "FINISHED", START_TIMEOUT);
        savepoint
    }

    /// The end of a file in the cluster's folder.
    fn tail(&self, name: &str) -> String {
        let text = fs::read(self.dir().join(name)).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(LOG_LINES_MAX)..].join("\n")
    }

    /// Names of log files: of the processes, and of the latest workers.
    fn logs(&self) -> Vec<String> {
        let mut names = newest(&self.dir().join("log"), usize::MAX);
        for index in 0..self.task_managers.len() {
            names.extend(newest(&self.dir().join(format!("taskmanager-{index}/log")), WORKER_LOGS_MAX));
        }
        let root = self.dir();
        names.iter().filter_map(|path| Some(path.strip_prefix(root).ok()?.to_string_lossy().into_owned())).collect()
    }
}

/// The files of a folder that were written last, without empty ones.
fn newest(folder: &Path, count: usize) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<_> = entries
        .filter_map(|entry| {
            let metadata = entry.metadata().ok().filter(|metadata| metadata.is_file() && metadata.len() > 0)?;
            Some((metadata.modified().ok()?, entry.path()))
        })
        .collect();
    files.sort();
    files.into_iter().rev().take(count).map(|(_, path)| path).collect()
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let has_failed = std::thread::panicking();
        if has_failed {
            for name in self.logs() {
                eprintln!("---- the end of {name}\n{}", self.tail(&name));
            }
        }
        self.task_managers.clear();
        self.job_manager = None;
        if has_failed
            && std::env::var_os(KEEP).is_some()
            && let Some(dir) = self.dir.take()
        {
            eprintln!("{KEEP} is set: {} stays", dir.keep().display());
        }
    }
}
