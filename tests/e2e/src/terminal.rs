//! A command on a terminal, and someone who types.

use std::io::{Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use crate::binaries::{python, repository};
use crate::wait::until;

/// How long the terminal may take to show what is expected.
const LIMIT: Duration = Duration::from_secs(60);

/// A command on a terminal of its own. It ends with this.
#[derive(Debug)]
pub struct Terminal {
    child: Child,
    keys: ChildStdin,
    shown: Arc<Mutex<Vec<u8>>>,
    /// How much of what was shown has been expected.
    seen: usize,
}

impl Terminal {
    /// Runs `command` on a terminal of this size. Its environment is the command's.
    ///
    /// # Panics
    /// It cannot be started.
    pub fn start(command: &Command, (lines, columns): (u16, u16)) -> Self {
        let mut terminal = Command::new(python());
        terminal.arg(repository().join("tests/e2e/src/terminal.py"));
        terminal.args([lines.to_string(), columns.to_string()]);
        terminal.arg(command.get_program()).args(command.get_args()).env("TERM", "xterm");
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => terminal.env(name, value),
                None => terminal.env_remove(name),
            };
        }
        let child = terminal.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = child.unwrap_or_else(|error| panic!("starting {terminal:?}: {error}"));
        let (keys, mut output) = child.stdin.take().zip(child.stdout.take()).expect("both are pipes");
        let shown = Arc::new(Mutex::new(Vec::new()));
        let shared = Arc::clone(&shown);
        thread::spawn(move || {
            let mut buffer = [0; 65536];
            while let Ok(bytes @ 1..) = output.read(&mut buffer) {
                shared.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(&buffer[..bytes]);
            }
        });
        Self { child, keys, shown, seen: 0 }
    }

    /// Types a text. Enter is `\r`, Tab `\t`, Ctrl-C `\x03`, Ctrl-D `\x04`, up `\x1b[A`.
    ///
    /// # Panics
    /// The command has ended.
    pub fn enter(&mut self, text: &str) {
        let typed = self.keys.write_all(text.as_bytes()).and_then(|()| self.keys.flush());
        typed.unwrap_or_else(|error| panic!("typing {text:?}: {error}; {}", self.shown()));
    }

    /// All that was shown, with what moves the cursor.
    pub fn shown(&self) -> String {
        String::from_utf8_lossy(&self.shown.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
    }

    /// Waits until `text` is shown, behind what was expected before; returns what stands between.
    ///
    /// # Panics
    /// It is not in time.
    #[track_caller]
    pub fn expect(&mut self, text: &str) -> String {
        let (at, between) = until(&format!("{text:?} on the terminal"), LIMIT, || {
            let shown = self.shown();
            let rest = shown.get(self.seen..).unwrap_or_default();
            let found = rest.find(text).map(|at| (at, rest[..at].to_owned()));
            found.ok_or_else(|| format!("{:?}", rest))
        });
        self.seen += at + text.len();
        between
    }

    /// Waits for the command's end; its exit code.
    ///
    /// # Panics
    /// It does not end in time.
    #[track_caller]
    pub fn end(mut self) -> Option<i32> {
        until("the end of the command", LIMIT, || match self.child.try_wait() {
            Ok(Some(status)) => Ok(status.code()),
            Ok(None) => Err(self.shown()),
            Err(error) => panic!("waiting for the terminal: {error}"),
        })
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // The command hears that its terminal is gone. Both fail only for a process that has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
