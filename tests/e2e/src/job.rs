//! What a running job is at, and waiting until it has got further.

use std::time::Duration;

use serde_json::Value;

use crate::cluster::Cluster;
use crate::wait::until;

/// How long a job may take to get somewhere.
const LIMIT: Duration = Duration::from_secs(60);

impl Cluster {
    /// The execution that a job is in. Every restart and every rescale is a new one.
    #[track_caller]
    pub fn generation(&self, job: &str) -> u64 {
        let details = self.rest(&format!("/jobs/{job}"));
        details["generation"].as_u64().unwrap_or_else(|| panic!("job {job} has no generation: {details}"))
    }

    /// How many subtasks each vertex of a job has.
    #[track_caller]
    pub fn parallelism(&self, job: &str) -> Vec<u64> {
        parallelism(&self.rest(&format!("/jobs/{job}")))
    }

    /// Waits until a job runs in `generation` or a later one, and gets on there.
    #[track_caller]
    pub fn wait_for_generation(&self, job: &str, generation: u64) {
        self.wait_for_progress(job, &format!("generation {generation}"), |details| {
            details["generation"].as_u64() >= Some(generation)
        });
    }

    /// Waits until a job runs with so many subtasks of each vertex, and gets on so.
    #[track_caller]
    pub fn wait_for_parallelism(&self, job: &str, expected: &[u64]) {
        self.wait_for_progress(job, &format!("parallelism {expected:?}"), |details| parallelism(details) == expected);
    }

    /// Waits until a job runs, is as `is_there` wants it, and then completes a checkpoint.
    #[track_caller]
    fn wait_for_progress(&self, job: &str, what: &str, is_there: impl Fn(&Value) -> bool) {
        until(&format!("job {job} to run at {what}"), LIMIT, || {
            let details = self.try_rest(&format!("/jobs/{job}"))?;
            if details["state"] == "RUNNING" && is_there(&details) {
                return Ok(());
            }
            let (state, generation) = (&details["state"], &details["generation"]);
            Err(format!("{state} in {generation} at {:?}; {}", parallelism(&details), self.exceptions(job)))
        });
        self.wait_for_checkpoints(job, self.last_checkpoint(job) + 1);
    }

    /// The id of the one job that has not ended.
    #[track_caller]
    pub fn running_job(&self) -> String {
        let overview = self.rest("/jobs/overview");
        let jobs = overview["jobs"].as_array().map(Vec::as_slice).unwrap_or_default();
        let has_ended = |job: &Value| ["FINISHED", "CANCELED", "FAILED"].iter().any(|state| job["state"] == *state);
        let mut running = jobs.iter().filter(|job| !has_ended(job));
        match (running.next(), running.next()) {
            (Some(job), None) => job["jid"].as_str().unwrap_or_default().to_owned(),
            _ => panic!("there is not one running job in {overview}"),
        }
    }
}

fn parallelism(details: &Value) -> Vec<u64> {
    let vertices = details["vertices"].as_array().into_iter().flatten();
    vertices.map(|vertex| vertex["parallelism"].as_u64().unwrap_or_default()).collect()
}
