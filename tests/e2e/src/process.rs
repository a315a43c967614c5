//! One process, and what the kernel says about others.

use std::fs::{self, OpenOptions};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

/// A process that writes to a log file. It is killed with SIGKILL, and gone with its ports and locks, when this has been
/// dropped.
#[derive(Debug)]
pub struct Process {
    child: Child,
}

impl Process {
    /// Starts it without input. Its output is appended to `log`.
    ///
    /// # Panics
    /// It cannot be started.
    pub fn start(command: &mut Command, log: &Path) -> Self {
        let file = OpenOptions::new().create(true).append(true).open(log);
        let file = file.unwrap_or_else(|error| panic!("{}: {error}", log.display()));
        let errors = file.try_clone().unwrap_or_else(|error| panic!("{}: {error}", log.display()));
        let child = command.stdin(Stdio::null()).stdout(file).stderr(errors).spawn();
        Self { child: child.unwrap_or_else(|error| panic!("starting {command:?}: {error}")) }
    }

    /// Its number.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// How it ended, if it has.
    pub fn end(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().unwrap_or_default()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail only for a process that has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends a signal, for example `KILL`, to a process. One that has ended meanwhile gets none.
///
/// # Panics
/// There is no shell.
pub fn signal(pid: u32, name: &str) {
    // The `kill` of the shell: not every machine has the program of that name.
    let command = format!("kill -{name} {pid} 2>/dev/null");
    let status = Command::new("sh").args(["-c", &command]).status();
    status.unwrap_or_else(|error| panic!("running sh: {error}"));
}

/// A process that does nothing until this is dropped.
#[derive(Debug)]
pub struct Paused(u32);

impl Paused {
    /// Stops the process where it is.
    pub fn new(pid: u32) -> Self {
        signal(pid, "STOP");
        Self(pid)
    }
}

impl Drop for Paused {
    fn drop(&mut self) {
        signal(self.0, "CONT");
    }
}

/// The state and the parent of a process.
fn state_and_parent(pid: u32) -> Option<(char, u32)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name before it is in parentheses and may have anything in it.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    Some((fields.next()?.chars().next()?, fields.next()?.parse().ok()?))
}

/// Whether a process is there and is more than a zombie.
pub fn is_running(pid: u32) -> bool {
    state_and_parent(pid).is_some_and(|(state, _)| state != 'Z')
}

/// The most memory in bytes that a process has had so far (its `VmHWM`), if it is there.
pub fn peak_memory(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(peak.trim().strip_suffix(" kB")?.parse::<u64>().ok()? * 1024)
}

/// The running children of a process.
pub(crate) fn children(parent: u32) -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|&pid| state_and_parent(pid).is_some_and(|(state, of)| of == parent && state != 'Z')).collect()
}

/// The value of a variable in the environment that a process was started with.
pub fn environment_of(pid: u32, name: &str) -> Option<String> {
    let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let mut variables = environment.split(|byte| *byte == 0).map(String::from_utf8_lossy);
    variables.find_map(|variable| variable.strip_prefix(name)?.strip_prefix('=').map(str::to_owned))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::wait::until;

    #[test]
    fn a_peak_is_as_high_as_it_was() {
        drop(std::hint::black_box(vec![1_u8; 64 << 20]));
        assert!(peak_memory(std::process::id()).unwrap() >= 64 << 20);
        assert_eq!(peak_memory(0), None);
    }

    #[test]
    fn processes_are_seen_and_killed() {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 60 & wait"]).env("E2E_TEST", "a=b");
        let mut process = Process::start(&mut command, &folder.path().join("log"));
        let child = until("a child", Duration::from_secs(10), || {
            children(process.pid()).first().copied().ok_or("none".to_owned())
        });
        assert!(is_running(child) && process.end().is_none());
        assert_eq!(environment_of(child, "E2E_TEST").as_deref(), Some("a=b"));
        let state = |expected: char| {
            until(&format!("state {expected}"), Duration::from_secs(10), || match state_and_parent(child) {
                Some((state, _)) if state == expected => Ok(()),
                other => Err(format!("{other:?}")),
            });
        };
        let paused = Paused::new(child);
        state('T');
        drop(paused);
        state('S');
        let pid = process.pid();
        drop(process);
        assert!(!is_running(pid));
        signal(child, "KILL");
        until("the end", Duration::from_secs(10), || if is_running(child) { Err(String::new()) } else { Ok(()) });
    }
}
