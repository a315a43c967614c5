//! Checkpoints when a test wants them. The folders stay as long as the job keeps the checkpoint.

use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use crate::cluster::Cluster;
use crate::command::run_command;
use crate::folder::{files_below, local_path};
use crate::process::Paused;
use crate::wait::until;

const LIMIT: Duration = Duration::from_secs(60);

/// How long a worker stands still, so that what the others send to it waits in channels.
const PAUSE: Duration = Duration::from_millis(300);

impl Cluster {
    /// `flott checkpoint`: returns the checkpoint's folder.
    #[track_caller]
    pub fn checkpoint(&self, job: &str) -> PathBuf {
        local_path(self.flott("checkpoint", &[job]).succeeded().stdout.trim())
    }

    /// A checkpoint of a job with unaligned checkpoints that has records in flight. The job has no interval, so that this
    /// is its last checkpoint, and it is on several TaskManagers.
    #[track_caller]
    pub fn checkpoint_in_flight(&self, job: &str) -> PathBuf {
        let mut attempts = 0;
        until("a checkpoint with records in flight", LIMIT, || {
            // One after the other, since the source may be in one of them alone.
            let workers = self.workers_of(job);
            let paused = Paused::new(workers[attempts % workers.len()]);
            attempts += 1;
            thread::sleep(PAUSE);
            let mut command = self.command();
            command.args(["checkpoint", "-m", &self.address(), job]);
            let taken = thread::spawn(move || run_command(&mut command, LIMIT));
            until("the checkpoint to be under way", LIMIT, || match self.checkpoints_under_way(job) {
                0 => Err(String::new()),
                _ => Ok(()),
            });
            thread::sleep(PAUSE);
            drop(paused);
            let taken = taken.join().expect("the command ends").succeeded();
            let folder = local_path(taken.stdout.trim());
            if files_below(&folder, ".channels").is_empty() { Err(folder.display().to_string()) } else { Ok(folder) }
        })
    }

    /// How many checkpoints of a job have begun and not ended.
    pub fn checkpoints_under_way(&self, job: &str) -> u64 {
        let checkpoints = self.try_rest(&format!("/jobs/{job}/checkpoints")).unwrap_or_default();
        checkpoints["counts"]["in_progress"].as_u64().unwrap_or(0)
    }

    /// `flott cancel`: returns when the job has ended.
    #[track_caller]
    pub fn cancel(&self, job: &str) {
        self.flott("cancel", &[job]).succeeded();
        self.wait_for_status(job, "CANCELED", LIMIT);
    }
}
