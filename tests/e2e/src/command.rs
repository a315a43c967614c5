//! Commands that end by themselves: what they printed, and how they ended.

use std::fs::{self, File};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tempfile::NamedTempFile;

use crate::wait::until;

/// What a command printed, and how it ended.
#[derive(Clone, Debug)]
pub struct CommandOutput {
    /// The command, for messages.
    pub command: String,
    /// Its exit code; none if a signal ended it.
    pub code: Option<i32>,
    /// What it printed to standard output.
    pub stdout: String,
    /// What it printed to standard error.
    pub stderr: String,
}

/// Runs a command to its end, without input.
///
/// # Panics
/// It cannot be started, or does not end within `limit`; then it is killed.
#[track_caller]
pub fn run_command(command: &mut Command, limit: Duration) -> CommandOutput {
    // Files, since nobody would empty a pipe meanwhile.
    let (stdout, stderr) = (file(), file());
    command.stdin(Stdio::null()).stdout(writer(&stdout)).stderr(writer(&stderr));
    let shown = format!("{command:?}");
    let child = command.spawn().unwrap_or_else(|error| panic!("starting {shown}: {error}"));
    let mut child = KilledOnDrop(child);
    let status = until(&format!("the end of {shown}"), limit, || match child.0.try_wait() {
        Ok(Some(status)) => Ok(status),
        Ok(None) => Err(format!("{}{}", text(&stdout), text(&stderr))),
        Err(error) => panic!("waiting for {shown}: {error}"),
    });
    CommandOutput { command: shown, code: status.code(), stdout: text(&stdout), stderr: text(&stderr) }
}

struct KilledOnDrop(Child);

impl Drop for KilledOnDrop {
    fn drop(&mut self) {
        // Both fail only for a process that has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn file() -> NamedTempFile {
    NamedTempFile::new().unwrap_or_else(|error| panic!("making a temporary file: {error}"))
}

fn writer(file: &NamedTempFile) -> File {
    file.reopen().unwrap_or_else(|error| panic!("opening a temporary file: {error}"))
}

fn text(file: &NamedTempFile) -> String {
    let bytes = fs::read(file.path()).unwrap_or_else(|error| panic!("reading a temporary file: {error}"));
    String::from_utf8_lossy(&bytes).into_owned()
}

impl CommandOutput {
    /// Everything that it printed.
    pub fn text(&self) -> String {
        format!("{}{}", self.stdout, self.stderr)
    }

    /// The same, if it ended well.
    ///
    /// # Panics
    /// It did not.
    #[track_caller]
    pub fn succeeded(self) -> Self {
        assert_eq!(self.code, Some(0), "{} failed:\n{}", self.command, self.text());
        self
    }

    /// The same, if it ended with an error that has all of `expected` in it.
    ///
    /// # Panics
    /// It did not.
    #[track_caller]
    pub fn refused(self, expected: &[&str]) -> Self {
        let (text, command) = (self.text(), &self.command);
        assert!(
            self.code.is_some_and(|code| code != 0),
            "{command} ended with {:?}, expected an error:\n{text}",
            self.code
        );
        for part in expected {
            assert!(text.contains(part), "{command} does not say '{part}':\n{text}");
        }
        assert!(!text.contains("panicked at"), "{command} panicked:\n{text}");
        self
    }

    /// The first id of a job that it printed to standard output, or else to standard error.
    ///
    /// # Panics
    /// There is none.
    #[track_caller]
    pub fn job(&self) -> String {
        let found = find_id(&self.stdout).or_else(|| find_id(&self.stderr));
        found.unwrap_or_else(|| panic!("{} names no job:\n{}", self.command, self.text())).to_owned()
    }

    /// The folder of a savepoint that it printed to standard output.
    ///
    /// # Panics
    /// There is none.
    #[track_caller]
    pub fn savepoint(&self) -> String {
        let mut words = self.stdout.split(|c: char| c.is_whitespace() || "\"',".contains(c));
        let found = words.find(|word| word.contains("/savepoint-"));
        found.unwrap_or_else(|| panic!("{} names no savepoint:\n{}", self.command, self.text())).to_owned()
    }
}

/// The ids of jobs are 32 hexadecimal digits.
fn find_id(text: &str) -> Option<&str> {
    text.split(|c: char| !c.is_ascii_alphanumeric())
        .find(|word| word.len() == 32 && word.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> CommandOutput {
        run_command(Command::new("sh").args(["-c", script]), Duration::from_secs(10))
    }

    #[test]
    fn output_and_exit_code_are_kept() {
        let output = shell("echo out; echo the port is in use >&2; exit 3").refused(&["port is in use"]);
        assert_eq!((output.code, output.stdout.as_str()), (Some(3), "out\n"));
        shell("exit 0").succeeded();
    }

    #[test]
    fn ids_and_folders_are_found() {
        let output =
            shell("echo '{\"jobid\":\"0123456789abcdef0123456789abcdef\", \"l\":\"file:///s/savepoint-1-2\"}'");
        assert_eq!(output.job(), "0123456789abcdef0123456789abcdef");
        assert_eq!(output.savepoint(), "file:///s/savepoint-1-2");
    }
}
