//! One process of a local cluster.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::{File, OpenOptions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use flott_core::{Error, Result, ResultExt};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};

/// What a process is, by the verb that it was started with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Role {
    JobManager,
    TaskManager,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::JobManager => "jobmanager",
            Self::TaskManager => "taskmanager",
        })
    }
}

/// A process that was started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Process {
    pub(super) role: Role,
    pub(super) pid: u32,
    /// The file of its output.
    pub(super) log: PathBuf,
    /// Its own folder, which no other process was started with.
    pub(super) dir: PathBuf,
}

impl Process {
    /// Whether it still runs. Another process that has got its pid does not count.
    pub(super) fn is_running(&self) -> bool {
        // A process that has ended and that nobody has waited for has no command line.
        let command_line = std::fs::read(format!("/proc/{}/cmdline", self.pid));
        command_line.is_ok_and(|bytes| was_started_as(&bytes, self.role, &self.dir))
    }

    /// Sends it a signal, unless it has ended.
    pub(super) fn signal(&self, signal: Signal) -> Result<()> {
        let pid = i32::try_from(self.pid).ok().and_then(Pid::from_raw);
        let Some(pid) = pid.filter(|_| self.is_running()) else { return Ok(()) };
        match kill_process(pid, signal) {
            // It has ended just now.
            Ok(()) | Err(Errno::SRCH) => Ok(()),
            Err(error) => Err(Error::system(format!("ending {self}: {error}"))),
        }
    }
}

impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (pid {})", self.role, self.pid)
    }
}

/// Whether a command line, with a zero byte after each argument, is that of the process with this role and folder.
fn was_started_as(command_line: &[u8], role: Role, dir: &Path) -> bool {
    let arguments: Vec<&[u8]> = command_line.split(|byte| *byte == 0).collect();
    arguments.get(1) == Some(&role.to_string().as_bytes()) && arguments.contains(&dir.as_os_str().as_bytes())
}

/// A process that this one has started, and that ends with it unless it is [released](Self::release).
pub(super) struct Started {
    pub(super) process: Process,
    /// Where in the log its own lines begin.
    pub(super) log_offset: u64,
    child: Child,
    is_released: bool,
}

impl Started {
    /// Starts this program as `role` in the background: what the terminal does, or who closes it, is not its concern.
    /// Its folder is `name` in `dir`, its log in `dir/log`.
    pub(super) fn start(role: Role, name: &str, dir: &Path, options: &[OsString]) -> Result<Self> {
        let program = std::env::current_exe().context("finding this program's file")?;
        let (own_dir, log) = (dir.join(name), dir.join("log").join(format!("{name}.log")));
        let (file, log_offset) = open_log(&log).with_context(|| format!("opening {}", log.display()))?;
        let errors = file.try_clone().with_context(|| format!("opening {}", log.display()))?;
        let child = Command::new(&program)
            .arg(role.to_string())
            .args([OsStr::new("--dir"), own_dir.as_os_str()])
            .args(options)
            .stdin(Stdio::null())
            .stdout(file)
            .stderr(errors)
            .process_group(0)
            .spawn()
            .with_context(|| format!("starting {} {role}", program.display()))?;
        let process = Process { role, pid: child.id(), log, dir: own_dir };
        Ok(Self { process, log_offset, child, is_released: false })
    }

    /// How it ended, if it has.
    pub(super) fn ended(&mut self) -> Result<Option<String>> {
        let status = self.child.try_wait().with_context(|| format!("looking after {}", self.process))?;
        Ok(status.map(|status| status.to_string()))
    }

    /// Lets it run on when this process ends.
    pub(super) fn release(mut self) {
        self.is_released = true;
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        if !self.is_released {
            // Both fail only when it has ended and been waited for.
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// Opens a log for appending: what an earlier process wrote may be wanted.
fn open_log(path: &Path) -> std::io::Result<(File, u64)> {
    if let Some(dir) = path.parent() {
        std::fs::create_dir_all(dir)?;
    }
    let file = OpenOptions::new().create(true).append(true).open(path)?;
    let length = file.metadata()?.len();
    Ok((file, length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_process_that_was_started_is_ours() {
        let dir = Path::new("/c/taskmanager-1");
        let ours = |line: &[u8]| was_started_as(line, Role::TaskManager, dir);
        assert!(ours(b"/bin/flott\0taskmanager\0--dir\0/c/taskmanager-1\0-D\0a=b\0"));
        assert!(!ours(b"/bin/flott\0taskmanager\0--dir\0/c/taskmanager-10\0"), "another folder");
        assert!(!ours(b"/bin/flott\0jobmanager\0--dir\0/c/taskmanager-1\0"), "another role");
        assert!(!ours(b"vi\0/c/taskmanager-1\0"), "another program");
        assert!(!ours(b""), "a process that has ended");
    }

    #[test]
    fn a_pid_that_another_process_has_is_left_alone() {
        let process = Process {
            role: Role::JobManager,
            pid: std::process::id(),
            log: PathBuf::from("/nowhere/log"),
            dir: PathBuf::from("/nowhere/jobmanager"),
        };
        assert!(!process.is_running());
        process.signal(Signal::KILL).unwrap();
        assert_eq!(process.to_string(), format!("jobmanager (pid {})", std::process::id()));
    }
}
