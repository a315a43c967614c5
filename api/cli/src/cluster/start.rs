//! `flott cluster start`.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use flott_core::config::{Configuration, options};
use flott_core::{Error, Result, ResultExt};
use flott_local::client::Client;
use flott_local::processes::ProcessArgs;
use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};

use super::file::ClusterFile;
use super::log;
use super::process::{Process, Role, Started};
use crate::output::OutputArgs;
use crate::{block_on, format, terminal};

pub(crate) const EXAMPLES: &str = "\
Examples:
  flott cluster start --taskmanagers 2 --slots 2 --dir /tmp/flott
  flott cluster start --dir /tmp/other -D rest.port=8082 -D jobmanager.rpc.port=6124

DIR/cluster.json names the processes. DIR/jobmanager and DIR/taskmanager-1, -2 and so on are their folders, DIR/log
has their logs. The cluster is not supervised: a process that dies stays dead. Started again in the same DIR, it
recovers its jobs.";

/// How long the JobManager may take to recover and the TaskManagers to register.
const READY_TIMEOUT: Duration = Duration::from_secs(60);
const LOOK_PAUSE: Duration = Duration::from_millis(20);

/// The arguments.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// How many TaskManagers
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(0..=1000))]
    taskmanagers: u32,

    /// How many slots each TaskManager has; else taskmanager.numberOfTaskSlots
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    slots: Option<u32>,

    /// The cluster's folder
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,

    /// Reads options from this YAML file
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Sets an option of all processes, such as `-D rest.port=8082`; may be repeated
    #[arg(short = 'D', value_name = "KEY=VALUE")]
    define: Vec<String>,

    #[command(flatten)]
    format: OutputArgs,
}

impl Args {
    /// The configuration that every process will read as well: mistakes show here first.
    fn configuration(&self) -> Result<Configuration> {
        let args = ProcessArgs { config: self.config.clone(), define: self.define.clone(), dir: None };
        let config = args.configuration()?;
        if config.get(options::JOBMANAGER_RPC_PORT)? == 0 {
            return Err(Error::input(format!(
                "{} is 0: TaskManagers must know the port, so choose one",
                options::JOBMANAGER_RPC_PORT.key
            )));
        }
        Ok(config)
    }

    /// The arguments that hand the configuration on.
    fn options(&self) -> Result<Vec<OsString>> {
        let mut options: Vec<OsString> = Vec::new();
        if let Some(config) = &self.config {
            let path = std::path::absolute(config).with_context(|| format!("resolving {}", config.display()))?;
            options.extend([OsString::from("--config"), path.into_os_string()]);
        }
        for pair in &self.define {
            options.extend([OsString::from("-D"), OsString::from(pair)]);
        }
        Ok(options)
    }
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let config = args.configuration()?;
    let dir = create(&args.dir).with_context(|| format!("creating {}", args.dir.display()))?;
    refuse_second(&dir)?;
    let spinner = terminal::spinner(format!("starting a cluster in {}", dir.display()));
    let cluster = block_on(async {
        let mut terminate = signal(SignalKind::terminate()).context("listening for SIGTERM")?;
        tokio::select! {
            cluster = start(args, &config, &dir) => cluster,
            // What has been started ends with the future that started it.
            _ = tokio::signal::ctrl_c() => Err(Error::user_code("interrupted: what had been started is stopped again")),
            _ = terminate.recv() => Err(Error::user_code("ended: what had been started is stopped again")),
        }
    });
    spinner.finish_and_clear();
    let cluster = cluster?;
    let text = describe(&cluster, &dir);
    args.format.output.print(&text, &json!(cluster))?;
    Ok(ExitCode::SUCCESS)
}

/// Makes the folder; returns its absolute path.
fn create(dir: &Path) -> std::io::Result<PathBuf> {
    std::fs::create_dir_all(dir)?;
    dir.canonicalize()
}

fn refuse_second(dir: &Path) -> Result<()> {
    let processes = ClusterFile::read(dir)?.map(|cluster| cluster.processes).unwrap_or_default();
    let running: Vec<String> =
        processes.iter().filter(|process| process.is_running()).map(Process::to_string).collect();
    if running.is_empty() {
        return Ok(());
    }
    Err(Error::input(format!(
        "a cluster runs in {0} already: {1}. Stop it with `flott cluster stop --dir {0}`, or choose another folder",
        dir.display(),
        running.join(", ")
    )))
}

/// Starts all processes and waits for them. They end again unless all goes well.
async fn start(args: &Args, config: &Configuration, dir: &Path) -> Result<ClusterFile> {
    let deadline = flott_env::monotonic() + READY_TIMEOUT;
    let mut handed_on = args.options()?;
    let mut jobmanager = Started::start(Role::JobManager, "jobmanager", dir, &handed_on)?;
    let port = wait_for_jobmanager(&mut jobmanager, deadline).await?;
    let rest = format!("{}:{port}", config.get(options::REST_ADDRESS)?);

    if let Some(slots) = args.slots {
        handed_on.extend([OsString::from("-D"), format!("{}={slots}", options::TASK_SLOTS.key).into()]);
    }
    // Not before the JobManager: if its port is another one's, they would register there.
    let mut processes = vec![jobmanager];
    for number in 1..=args.taskmanagers {
        processes.push(Started::start(Role::TaskManager, &format!("taskmanager-{number}"), dir, &handed_on)?);
    }
    wait_for_taskmanagers(&mut processes, &Client::new(&rest)?, deadline).await?;

    let cluster = ClusterFile { processes: processes.iter().map(|started| started.process.clone()).collect(), rest };
    cluster.write(dir)?;
    processes.into_iter().for_each(Started::release);
    Ok(cluster)
}

/// Returns the port of the REST API.
async fn wait_for_jobmanager(jobmanager: &mut Started, deadline: Duration) -> Result<u16> {
    loop {
        // Before the log is read, so that nothing of it is missed.
        let alive = check(jobmanager);
        let log = log::read(&jobmanager.process.log, jobmanager.log_offset)?;
        if let Some(port) = log::rest_port(&log)? {
            return Ok(port);
        }
        alive?;
        if flott_env::monotonic() >= deadline {
            return Err(late(jobmanager, "is not ready"));
        }
        flott_env::sleep(LOOK_PAUSE).await;
    }
}

/// Waits until every TaskManager is registered with the JobManager.
async fn wait_for_taskmanagers(processes: &mut [Started], client: &Client, deadline: Duration) -> Result<()> {
    loop {
        let answer = client.get("/taskmanagers").await;
        // The end of a process says more than that there was no answer.
        processes.iter_mut().try_for_each(check)?;
        let answer = answer?;
        let registered: BTreeSet<u64> = answer["taskmanagers"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|task_manager| task_manager["pid"].as_u64())
            .collect();
        let is_missing = |started: &&Started| {
            started.process.role == Role::TaskManager && !registered.contains(&u64::from(started.process.pid))
        };
        match processes.iter().find(is_missing) {
            None => return Ok(()),
            Some(missing) if flott_env::monotonic() >= deadline => return Err(late(missing, "has not registered")),
            Some(_) => flott_env::sleep(LOOK_PAUSE).await,
        }
    }
}

/// Fails if the process has ended.
fn check(started: &mut Started) -> Result<()> {
    let Some(status) = started.ended()? else { return Ok(()) };
    let log = log::read(&started.process.log, started.log_offset)?;
    Err(ended(&started.process, &status, &log::reason(&log)))
}

fn ended(process: &Process, status: &str, reason: &str) -> Error {
    let way_out = match reason.contains("the port is in use") {
        true => format!(
            "; give this cluster ports of its own, such as -D {}=8082 -D {}=6124",
            options::REST_PORT.key,
            options::JOBMANAGER_RPC_PORT.key
        ),
        false => String::new(),
    };
    Error::system(format!("{process} ended ({status}): {reason}{way_out} (log: {})", process.log.display()))
}

fn late(started: &Started, what: &str) -> Error {
    let process = &started.process;
    let log = log::read(&process.log, started.log_offset).map(|log| log::reason(&log)).unwrap_or_default();
    Error::system(format!(
        "{process} {what} after {}: {log} (log: {})",
        format::duration(READY_TIMEOUT),
        process.log.display()
    ))
}

fn describe(cluster: &ClusterFile, dir: &Path) -> String {
    let line = |process: &Process| {
        format!("  {:<11}  pid {:<8} log {}\n", process.role.to_string(), process.pid, process.log.display())
    };
    let processes: String = cluster.processes.iter().map(line).collect();
    format!(
        "The cluster is ready: REST API at http://{}\n{processes}`flott cluster stop --dir {}` ends it.",
        cluster.rest,
        dir.display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(define: &[&str]) -> Args {
        Args {
            taskmanagers: 1,
            slots: None,
            dir: PathBuf::from("/nowhere"),
            config: None,
            define: define.iter().map(|pair| (*pair).to_owned()).collect(),
            format: OutputArgs { output: crate::output::Format::Text },
        }
    }

    #[test]
    fn mistakes_show_before_anything_is_started() {
        let error = args(&["jobmanager.rpc.port=0"]).configuration().unwrap_err().to_string();
        assert!(error.contains("jobmanager.rpc.port is 0"), "{error}");
        let error = args(&["rest.prot=1"]).configuration().unwrap_err().to_string();
        assert!(error.contains("did you mean 'rest.port'"), "{error}");
        args(&["rest.port=0"]).configuration().unwrap();
    }

    #[test]
    fn the_configuration_is_handed_on() {
        let mut args = args(&["rest.port=0"]);
        args.config = Some(PathBuf::from("/etc/flott.yaml"));
        assert_eq!(args.options().unwrap(), ["--config", "/etc/flott.yaml", "-D", "rest.port=0"]);
    }

    #[test]
    fn a_port_in_use_comes_with_a_way_out() {
        let process = Process { role: Role::JobManager, pid: 7, log: "/c/log/jobmanager.log".into(), dir: "/c".into() };
        let error = ended(&process, "exit status: 1", "the REST API cannot listen: the port is in use").to_string();
        assert!(error.starts_with("jobmanager (pid 7) ended (exit status: 1): the REST API cannot listen"), "{error}");
        assert!(error.contains("-D rest.port=8082 -D jobmanager.rpc.port=6124"), "{error}");
        assert!(!ended(&process, "exit status: 1", "another reason").to_string().contains("-D"));
    }
}
