//! How long nothing new comes out of a job.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::output::visible_files;

/// The pause between two looks, which is how precise a gap is.
const PAUSE: Duration = Duration::from_millis(10);

/// Watches what a file sink commits. It commits with checkpoints, so even an undisturbed job has gaps of their interval.
#[derive(Debug)]
pub struct OutputWatch {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<Duration>>,
}

impl OutputWatch {
    /// Watches from now on.
    pub fn start(folder: impl Into<PathBuf>) -> Self {
        let folder = folder.into();
        let is_over = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&is_over);
        let thread = Some(thread::spawn(move || watch(&folder, &flag)));
        Self { is_over, thread }
    }

    /// Ends the watch; returns the longest time in which no file has become visible.
    ///
    /// # Panics
    /// The watching thread has.
    pub fn longest_gap(mut self) -> Duration {
        self.is_over.store(true, Ordering::Relaxed);
        let thread = self.thread.take().expect("only this takes it");
        thread.join().expect("watching cannot fail")
    }
}

impl Drop for OutputWatch {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

fn watch(folder: &Path, is_over: &AtomicBool) -> Duration {
    let (mut files, mut since) = (visible_files(folder), flott_env::monotonic());
    let mut longest = Duration::ZERO;
    loop {
        // Before the look, so that the last look is at all that there was.
        let is_last = is_over.load(Ordering::Relaxed);
        let (now, seen) = (flott_env::monotonic(), visible_files(folder));
        longest = longest.max(now.saturating_sub(since));
        if seen > files {
            (files, since) = (seen, now);
        }
        if is_last {
            return longest;
        }
        thread::sleep(PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_longest_gap_is_between_visible_files() {
        let folder = tempfile::tempdir().unwrap();
        let watch = OutputWatch::start(folder.path());
        for (pause_ms, name) in [(20, "a"), (300, ".hidden"), (300, "b"), (20, "c")] {
            thread::sleep(Duration::from_millis(pause_ms));
            fs::write(folder.path().join(name), "").unwrap();
        }
        let gap = watch.longest_gap();
        assert!(gap >= Duration::from_millis(500), "{gap:?}");
    }
}
