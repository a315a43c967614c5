//! What can be seen of a job.

use flott_control::upgrade::{LastSavepoint, Seen};
use flott_core::ids::JobId;
use flott_core::status::JobStatus;
use flott_core::{Error, Result};
use flott_local::client::Client;
use serde_json::Value;

pub(super) async fn look(client: &Client, job: JobId) -> Result<Seen> {
    let details = client.get(&format!("/jobs/{job}")).await?;
    // What has never run has no more to show. A state that nothing can follow is read first, so what is read after it is final.
    if details["state"] == JobStatus::Created.name() {
        return seen(&details, &Value::Null, &Value::Null);
    }
    let checkpoints = client.get(&format!("/jobs/{job}/checkpoints")).await?;
    let exceptions = client.get(&format!("/jobs/{job}/exceptions")).await?;
    seen(&details, &checkpoints, &exceptions)
}

fn seen(details: &Value, checkpoints: &Value, exceptions: &Value) -> Result<Seen> {
    let status = serde_json::from_value(details["state"].clone())
        .map_err(|_| Error::system(format!("{} is no state of a job", details["state"])))?;
    let savepoint = &checkpoints["latest"]["savepoint"];
    let failure = exceptions["root-exception"].as_str();
    Ok(Seen {
        status,
        checkpoint: checkpoints["latest"]["completed"]["id"].as_u64(),
        savepoint: savepoint["external_path"].as_str().map(|location| LastSavepoint {
            id: savepoint["id"].as_u64().unwrap_or_default(),
            location: location.to_owned(),
            ends_job: savepoint["ends_job"].as_bool().unwrap_or_default(),
        }),
        waiting_for: details["waiting-for"].as_str().map(str::to_owned),
        // The whole of it is for whoever looks for the cause of an end.
        failure: match status {
            JobStatus::Failed => failure,
            _ => failure.and_then(|text| text.lines().next()),
        }
        .map(str::to_owned),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_job_is_seen_as_rest_shows_it() {
        let created = seen(&json!({ "state": "CREATED", "waiting-for": "needs 4 slots" }), &Value::Null, &Value::Null);
        let created = created.unwrap();
        assert_eq!((created.status, created.waiting_for.as_deref()), (JobStatus::Created, Some("needs 4 slots")));
        assert_eq!((created.checkpoint, created.savepoint, created.failure), (None, None, None));

        let savepoint = json!({ "id": 7, "external_path": "s3://b/savepoint-1", "ends_job": true });
        let checkpoints = json!({ "latest": { "completed": { "id": 6 }, "savepoint": savepoint } });
        let exceptions = json!({ "root-exception": "boom\nat main" });
        let stopped = seen(&json!({ "state": "FINISHED" }), &checkpoints, &exceptions).unwrap();
        assert_eq!((stopped.checkpoint, stopped.stopped_with()), (Some(6), Some("s3://b/savepoint-1")));
        assert_eq!(stopped.failure.as_deref(), Some("boom"));
        let failed = seen(&json!({ "state": "FAILED" }), &checkpoints, &exceptions).unwrap();
        assert_eq!((failed.failure.as_deref(), failed.stopped_with()), (Some("boom\nat main"), None));
        assert!(seen(&json!({ "errors": [] }), &Value::Null, &Value::Null).is_err());
    }
}
