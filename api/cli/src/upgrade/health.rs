//! Whether a job can work, and does once it was started: it runs, and what it wrote could be recovered.

use std::time::Duration;

use flott_core::config::{Configuration, options};
use flott_core::ids::JobId;
use flott_core::status::JobStatus;
use flott_core::{Error, Result};
use flott_graph::JobGraph;
use flott_local::client::{Client, Outage};
use serde_json::{Value, json};

use crate::format::counted;

/// How often the job is looked at: the gap is measured by it.
const LOOK_PAUSE: Duration = Duration::from_millis(20);

/// A job that is being watched.
pub(super) struct Health<'a> {
    client: &'a Client,
    job: JobId,
    needs_checkpoint: bool,
    timeout: Duration,
    running_since: Option<Duration>,
}

impl<'a> Health<'a> {
    pub(super) fn new(client: &'a Client, job: JobId, needs_checkpoint: bool, timeout: Duration) -> Self {
        Self { client, job, needs_checkpoint, timeout, running_since: None }
    }

    /// Since when it runs without a failure, if it does.
    pub(super) fn running_since(&self) -> Option<Duration> {
        self.running_since
    }

    /// Waits until it runs and has completed a checkpoint, or has finished.
    ///
    /// # Errors
    /// It failed, was cancelled, or is not that far in time; or the JobManager stays away.
    pub(super) async fn wait(&mut self) -> Result<()> {
        let deadline = flott_env::monotonic() + self.timeout;
        let mut outage = Outage::default();
        // An execution is asked for a checkpoint once, rather than waited for until its interval is over.
        let mut is_asked = false;
        loop {
            let status = self.client.status(self.job).await;
            let now = flott_env::monotonic();
            let missing = match status {
                Ok((JobStatus::Finished, _)) => {
                    self.running_since.get_or_insert(now);
                    return Ok(());
                }
                Ok((status, cause)) if status.is_terminal() => {
                    let cause = cause.map(|cause| format!(": {cause}")).unwrap_or_default();
                    return Err(Error::user_code(format!("job {} is {status}{cause}", self.job)));
                }
                Ok((JobStatus::Running, _)) => {
                    self.running_since.get_or_insert(now);
                    if !self.needs_checkpoint || has_checkpoint(self.client, self.job).await {
                        return Ok(());
                    }
                    if !is_asked {
                        let path = format!("/jobs/{}/checkpoints", self.job);
                        is_asked = self.client.post(&path, &json!({})).await.is_ok();
                    }
                    "it has not completed its first checkpoint".to_owned()
                }
                Ok((status, _)) => {
                    (is_asked, self.running_since) = (false, None);
                    format!("it is {status}")
                }
                Err(error) => {
                    let message = error.message.clone();
                    outage.tolerate(error, now)?;
                    message
                }
            };
            if now >= deadline {
                let why = self.why().await;
                return Err(Error::system(format!(
                    "job {} does not work after {:?}: {missing}{why}",
                    self.job, self.timeout
                )));
            }
            flott_env::sleep(LOOK_PAUSE).await;
        }
    }

    /// What it waits for and its last failure, to be put behind a message.
    async fn why(&self) -> String {
        let details = self.client.get(&format!("/jobs/{}", self.job)).await.unwrap_or_default();
        let waiting = details["waiting-for"].as_str().map(|what| format!("; it {what}")).unwrap_or_default();
        let exceptions = self.client.get(&format!("/jobs/{}/exceptions", self.job)).await.unwrap_or_default();
        let failure = exceptions["root-exception"].as_str().and_then(|text| text.lines().next());
        waiting + &failure.map(|text| format!("; its last failure: {text}")).unwrap_or_default()
    }
}

/// Refuses a new version of `job` for which there will not be slots.
pub(super) async fn check_slots(client: &Client, job: JobId, graph: &JobGraph) -> Result<()> {
    let overview = client.get("/overview").await?;
    let details = client.get(&format!("/jobs/{job}")).await?;
    fits(u64::from(graph.slots()), &overview, &details)
}

/// There are the free slots and those that the old job leaves, one for each subtask of its widest vertex.
fn fits(needed: u64, overview: &Value, details: &Value) -> Result<()> {
    let Some(free) = overview["slots-available"].as_u64() else { return Ok(()) };
    let vertices = details["vertices"].as_array().into_iter().flatten();
    let held = vertices.filter_map(|vertex| vertex["parallelism"].as_u64()).max().unwrap_or(0);
    if needed <= free + held {
        return Ok(());
    }
    Err(Error::input(format!(
        "the new version needs {}: {free} are free, and {held} are the old one's. Start TaskManagers, or give another -p",
        counted(needed, "slot")
    )))
}

/// Whether the job has completed a checkpoint that is not a savepoint.
pub(super) async fn has_checkpoint(client: &Client, job: JobId) -> bool {
    let checkpoints = client.get(&format!("/jobs/{job}/checkpoints")).await;
    checkpoints.is_ok_and(|checkpoints| !checkpoints["latest"]["completed"].is_null())
}

/// Whether a job of this graph takes checkpoints on the cluster, whose options are below the job's own.
pub(super) async fn takes_checkpoints(client: &Client, graph: &JobGraph) -> Result<bool> {
    let cluster = client.get("/jobmanager/config").await?;
    interval(&cluster, &graph.config).map(|interval| interval.is_some())
}

fn interval(cluster: &Value, job: &Configuration) -> Result<Option<Duration>> {
    let mut config = Configuration::default();
    let key = options::CHECKPOINT_INTERVAL.key;
    let given = cluster.as_array().into_iter().flatten().find(|option| option["key"] == key);
    if let Some(value) = given.and_then(|option| option["value"].as_str()) {
        config.set(key, value)?;
    }
    config.extend(job);
    config.get(options::CHECKPOINT_INTERVAL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_old_jobs_slots_are_the_new_ones() {
        let overview = json!({ "slots-available": 2 });
        let details = json!({ "vertices": [{ "parallelism": 1 }, { "parallelism": 4 }] });
        fits(6, &overview, &details).unwrap();
        let error = fits(7, &overview, &details).unwrap_err().to_string();
        assert!(error.contains("needs 7 slots: 2 are free, and 4 are the old one's"), "{error}");
        fits(7, &json!({}), &details).unwrap();
    }

    #[test]
    fn the_jobs_interval_goes_over_the_clusters() {
        let cluster = json!([{ "key": "rest.port", "value": "0" }, { "key": options::CHECKPOINT_INTERVAL.key, "value": "1 min" }]);
        let mut job = Configuration::default();
        assert_eq!(interval(&json!([]), &job).unwrap(), None);
        assert_eq!(interval(&cluster, &job).unwrap(), Some(Duration::from_secs(60)));
        job.set(options::CHECKPOINT_INTERVAL.key, "1 s").unwrap();
        assert_eq!(interval(&cluster, &job).unwrap(), Some(Duration::from_secs(1)));
        job.set(options::CHECKPOINT_INTERVAL.key, "").unwrap();
        assert_eq!(interval(&cluster, &job).unwrap(), None, "switched off");
    }
}
