//! A cluster of processes on this machine, as `flott cluster start` starts it.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use flott_core::{Error, Result, ResultExt};
use rustix::process::{Pid, Signal, kill_process};
use serde::Deserialize;

use crate::harness::{binary, output};

/// A cluster, which ends with its value.
pub(crate) struct Cluster {
    flott: PathBuf,
    dir: PathBuf,
    file: ClusterFile,
}

/// What `cluster.json` says.
#[derive(Deserialize)]
struct ClusterFile {
    processes: Vec<Process>,
    rest: String,
}

#[derive(Deserialize)]
struct Process {
    role: String,
    pid: u32,
}

impl Cluster {
    /// Starts a cluster in `dir`, with so many TaskManagers of so many slots each.
    pub(crate) fn start(dir: &Path, taskmanagers: u32, slots: u32) -> Result<Self> {
        let flott = binary("flott")?;
        // Both are held until both are known, so that they differ.
        let (rest, rpc) = (TcpListener::bind("127.0.0.1:0")?, TcpListener::bind("127.0.0.1:0")?);
        let rest_port = format!("rest.port={}", rest.local_addr()?.port());
        let rpc_port = format!("jobmanager.rpc.port={}", rpc.local_addr()?.port());
        drop((rest, rpc));
        let mut start = Command::new(&flott);
        start.args(["cluster", "start", "-D", &rest_port, "-D", &rpc_port]);
        start.args(["--taskmanagers", &taskmanagers.to_string(), "--slots", &slots.to_string(), "--dir"]).arg(dir);
        output(&mut start)?;
        let path = dir.join("cluster.json");
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let file =
            serde_json::from_str(&text).map_err(|error| Error::system(format!("{}: {error}", path.display())))?;
        Ok(Self { flott, dir: dir.to_owned(), file })
    }

    /// The `host:port` of its REST API.
    pub(crate) fn rest(&self) -> &str {
        &self.file.rest
    }

    /// The processes that were started as `jobmanager` or `taskmanager`.
    pub(crate) fn pids(&self, role: &str) -> impl Iterator<Item = u32> {
        self.file.processes.iter().filter(move |process| process.role == role).map(|process| process.pid)
    }

    /// What `flott VERB ARGUMENTS` prints, asked of this cluster.
    pub(crate) fn flott(&self, verb: &str, arguments: &[String]) -> Result<String> {
        output(Command::new(&self.flott).args([verb, "-m", self.rest()]).args(arguments))
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let mut stop = Command::new(&self.flott);
        if let Err(error) = output(stop.args(["cluster", "stop", "--dir"]).arg(&self.dir)) {
            eprintln!("error: {error}");
        }
    }
}

/// Ends a process with SIGKILL.
pub(crate) fn kill(pid: u32) -> Result<()> {
    let process = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let process = process.ok_or_else(|| Error::system(format!("{pid} is no process")))?;
    kill_process(process, Signal::KILL).map_err(|error| Error::system(format!("killing process {pid}: {error}")))
}
