//! Standard error: messages, progress that overwrites itself on a terminal, questions.

use std::fmt::Display;
use std::io::{IsTerminal, Write, stderr, stdin};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use tokio::sync::oneshot;

use crate::progress::{self, Progress};

/// How often a spinner moves.
const TICK: Duration = Duration::from_millis(100);

/// How often a line is printed that brings no other news than higher counts.
const LINE_PAUSE: Duration = Duration::from_secs(10);

/// Prints a line. Nobody may be listening, and that is no reason to fail.
pub(crate) fn say(text: impl Display) {
    let _ = writeln!(stderr(), "{text}");
}

/// Passes on what a program printed.
pub(crate) fn write(bytes: &[u8]) {
    let _ = stderr().write_all(bytes);
}

/// A line that shows that something goes on, until it is finished; nothing when standard error is not a terminal.
pub(crate) fn spinner(text: impl Into<String>) -> ProgressBar {
    let style = ProgressStyle::with_template("{spinner} {wide_msg}");
    let bar = ProgressBar::new_spinner().with_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
    bar.set_message(text.into());
    bar.enable_steady_tick(TICK);
    bar
}

/// A bar that counts bytes; nothing when standard error is not a terminal.
pub(crate) fn byte_bar(text: impl Into<String>) -> ProgressBar {
    let style = ProgressStyle::with_template("{msg} [{bar:30}] {bytes} of {total_bytes}, {bytes_per_sec}");
    let bar = ProgressBar::new(0).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar.with_message(text.into())
}

/// Whether there is someone to ask.
pub(crate) fn can_ask() -> bool {
    stdin().is_terminal() && stderr().is_terminal()
}

/// Asks; the answer is the next line that is typed.
pub(crate) fn ask(question: &str) -> oneshot::Receiver<String> {
    let mut out = stderr();
    let _ = write!(out, "{question} ").and_then(|()| out.flush());
    let (sender, answer) = oneshot::channel();
    // Not a thread of the runtime's: a runtime waits for its threads, and this one waits for someone to type.
    std::thread::spawn(move || {
        let mut line = String::new();
        // Whoever asked may not need the answer any more.
        let _ = stdin().read_line(&mut line).map(|_| sender.send(line));
    });
    answer
}

/// What a job is at: a line that changes on a terminal, a line for each piece of news elsewhere.
pub(crate) struct StatusLine {
    is_terminal: bool,
    bar: Option<ProgressBar>,
    last: Option<(Duration, Progress)>,
}

impl StatusLine {
    pub(crate) fn new() -> Self {
        Self { is_terminal: stderr().is_terminal(), bar: None, last: None }
    }

    /// Shows `progress` as it is at `now`, where records come at `rate` a second.
    pub(crate) fn show(&mut self, progress: &Progress, rate: Option<u64>, now: Duration) {
        if self.is_terminal {
            self.set(progress::line(progress, rate));
        } else if is_due(self.last.as_ref(), progress, now) {
            self.last = Some((now, progress.clone()));
            say(progress::line(progress, rate));
        }
    }

    /// Shows another text on a terminal for now.
    pub(crate) fn set(&mut self, text: String) {
        match &self.bar {
            Some(bar) => bar.set_message(text),
            None if self.is_terminal => self.bar = Some(spinner(text)),
            None => {}
        }
    }

    /// Prints a line that stays.
    pub(crate) fn note(&self, text: impl Display) {
        match &self.bar {
            Some(bar) => bar.suspend(|| say(text)),
            None => say(text),
        }
    }

    /// Takes the changing line away, until something is shown again.
    pub(crate) fn clear(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

fn is_due(last: Option<&(Duration, Progress)>, progress: &Progress, now: Duration) -> bool {
    match last {
        Some((at, last)) => progress.is_news_after(last) || now.saturating_sub(*at) >= LINE_PAUSE,
        None => true,
    }
}

#[cfg(test)]
mod tests {
    use flott_core::status::JobStatus;

    use super::*;

    #[test]
    fn lines_are_for_news_and_else_rare() {
        let at = Duration::from_secs(100);
        let job = Progress { status: JobStatus::Running, ..Progress::default() };
        let last = (at, job.clone());
        assert!(is_due(None, &job, at));
        let counting = Progress { records_read: 7, ..job.clone() };
        assert!(!is_due(Some(&last), &counting, at + Duration::from_secs(9)));
        assert!(is_due(Some(&last), &counting, at + Duration::from_secs(10)));
        let restarting = Progress { status: JobStatus::Restarting, ..job };
        assert!(is_due(Some(&last), &restarting, at));
    }
}
