//! Whether a job could work if it was started.

use std::time::Duration;

use flott_core::config::{Configuration, options};
use flott_core::ids::JobId;
use flott_core::{Error, Result};
use flott_graph::JobGraph;
use flott_local::client::Client;
use serde_json::Value;

use crate::format::counted;

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
    use serde_json::json;

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
