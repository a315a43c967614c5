//! How long it takes from the start of a job's process to its first result, and how much memory idle processes of a
//! cluster take, beside the limits that we set ourselves.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use flott_core::{Error, Result, ResultExt};

use crate::cluster::Cluster;
use crate::harness::{binary, median, medians};
use crate::report::Figure;

/// How long processes are left alone before their memory is measured.
const SETTLING: Duration = Duration::from_secs(5);

pub(crate) fn run(is_quick: bool) -> Result<Vec<Figure>> {
    let rounds = if is_quick { 3 } else { 10 };
    let job = binary("wordcount")?;
    let [first_result_ms] = medians(rounds, || Ok([first_result_ms(&job)?]))?;
    let (jobmanager_mb, taskmanager_mb) = idle_memory()?;
    Ok(vec![
        Figure::limited("startup", "ms", first_result_ms, 300.0),
        Figure::limited("idle_jobmanager", "MB", jobmanager_mb, 30.0),
        Figure::limited("idle_taskmanager", "MB", taskmanager_mb, 50.0),
    ])
}

/// The time until the job prints its first count of a word of the licence.
fn first_result_ms(job: &Path) -> Result<f64> {
    let licence = Path::new(env!("CARGO_MANIFEST_DIR")).join("../LICENSE");
    let mut command = Command::new(job);
    command.args(["--updates", "--input"]).arg(licence).stdout(Stdio::piped());
    let start = flott_env::monotonic();
    let mut child = command.spawn().with_context(|| format!("starting {command:?}"))?;
    let mut line = String::new();
    let mut stdout = BufReader::new(child.stdout.take().ok_or_else(|| Error::system("the job has no output"))?);
    let read = stdout.read_line(&mut line);
    let elapsed = flott_env::monotonic() - start;
    // The rest is of no interest, but the job must not find its output closed.
    let rest = std::io::copy(&mut stdout, &mut std::io::sink());
    let status = child.wait()?;
    read.and(rest)?;
    if !status.success() || line.is_empty() {
        return Err(Error::system(format!("{command:?} ended with {status} and printed '{}' first", line.trim_end())));
    }
    Ok(elapsed.as_secs_f64() * 1e3)
}

/// The resident memory of the JobManager and of a TaskManager of a new cluster, in megabytes.
fn idle_memory() -> Result<(f64, f64)> {
    let folder = tempfile::tempdir()?;
    let cluster = Cluster::start(&folder.path().join("cluster"), 2, 2)?;
    std::thread::sleep(SETTLING);
    let memory = |role: &str| -> Result<f64> {
        let resident = cluster.pids(role).map(resident_mb).collect::<Result<Vec<f64>>>()?;
        if resident.is_empty() {
            return Err(Error::system(format!("the cluster has no {role}")));
        }
        Ok(median(resident))
    };
    Ok((memory("jobmanager")?, memory("taskmanager")?))
}

/// The resident memory of a process.
fn resident_mb(pid: u32) -> Result<f64> {
    let path = format!("/proc/{pid}/status");
    let status = fs::read_to_string(&path).with_context(|| path.clone())?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<f64>().ok());
    kilobytes.map(|kilobytes| kilobytes * 1024.0 / 1e6).ok_or_else(|| Error::system(format!("{path} has no VmRSS")))
}
