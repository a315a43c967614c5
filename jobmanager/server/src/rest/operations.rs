//! What takes long is asked for with one request and asked after with others, by its trigger id.

use std::collections::VecDeque;
use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use flott_core::ids::JobId;
use flott_core::{Error, Result};
use flott_jobmanager_core::{Reply, Request};
use parking_lot::Mutex;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::body::Body;
use super::error::ApiError;
use super::{AppState, Rest};
use crate::submission::savepoint;

/// How many operations are remembered; the oldest are forgotten first.
const OPERATIONS_MAX: usize = 1000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Savepoint,
    Checkpoint,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Key {
    job: JobId,
    kind: Kind,
    trigger: String,
}

/// The operations of all jobs, with the results of those that are over.
#[derive(Default)]
pub(crate) struct Operations {
    entries: Mutex<VecDeque<(Key, Option<Value>)>>,
}

impl Operations {
    /// Whether the operation is new: a client that repeats a request with its own trigger id means the same one.
    fn begin(&self, key: Key) -> bool {
        let mut entries = self.entries.lock();
        if entries.iter().any(|(other, _)| *other == key) {
            return false;
        }
        if entries.len() >= OPERATIONS_MAX {
            entries.pop_front();
        }
        entries.push_back((key, None));
        true
    }

    fn finish(&self, key: &Key, result: Value) {
        if let Some((_, entry)) = self.entries.lock().iter_mut().find(|(other, _)| other == key) {
            *entry = Some(result);
        }
    }

    /// `None`: never heard of; `Some(None)`: not over yet.
    fn get(&self, key: &Key) -> Option<Option<Value>> {
        self.entries.lock().iter().find(|(other, _)| other == key).map(|(_, result)| result.clone())
    }
}

/// The body of [`trigger_savepoint`].
#[derive(Default, Deserialize)]
#[serde(default)]
struct SavepointBody {
    #[serde(rename = "target-directory")]
    target_directory: Option<String>,
    #[serde(rename = "cancel-job")]
    cancel_job: bool,
    #[serde(rename = "triggerId")]
    trigger_id: Option<String>,
}

/// `POST /jobs/:id/savepoints`
pub(super) async fn trigger_savepoint(
    State(rest): AppState,
    Path(id): Path<String>,
    Body(body): Body,
) -> Result<(StatusCode, Json<Value>), ApiError> {
    let body: SavepointBody = parse(&body)?;
    let job = running_job(&rest, &id).await?;
    let request = savepoint(job, body.target_directory, false, false)?;
    let key = key(job, Kind::Savepoint, body.trigger_id)?;
    let (leader, cancel_job) = (rest.leader.clone(), body.cancel_job);
    Ok(start(&rest, key, async move {
        let location = completed(leader.request(request).await?)?;
        if cancel_job {
            leader.request(Request::Cancel { job }).await?;
        }
        Ok(json!({ "location": location }))
    }))
}

/// The body of [`stop`].
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct StopBody {
    target_directory: Option<String>,
    drain: bool,
    trigger_id: Option<String>,
}

/// `POST /jobs/:id/stop`
pub(super) async fn stop(
    State(rest): AppState,
    Path(id): Path<String>,
    Body(body): Body,
) -> Result<(StatusCode, Json<Value>), ApiError> {
    let body: StopBody = parse(&body)?;
    let job = running_job(&rest, &id).await?;
    let request = savepoint(job, body.target_directory, true, body.drain)?;
    let key = key(job, Kind::Savepoint, body.trigger_id)?;
    let leader = rest.leader.clone();
    Ok(start(&rest, key, async move {
        let location = completed(leader.request(request).await?)?;
        Ok(json!({ "location": location }))
    }))
}

/// The body of [`trigger_checkpoint`].
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct CheckpointBody {
    trigger_id: Option<String>,
}

/// `POST /jobs/:id/checkpoints`
pub(super) async fn trigger_checkpoint(
    State(rest): AppState,
    Path(id): Path<String>,
    Body(body): Body,
) -> Result<(StatusCode, Json<Value>), ApiError> {
    let body: CheckpointBody = parse(&body)?;
    let job = running_job(&rest, &id).await?;
    let key = key(job, Kind::Checkpoint, body.trigger_id)?;
    let leader = rest.leader.clone();
    Ok(start(&rest, key, async move {
        let location = completed(leader.request(Request::Checkpoint { job }).await?)?;
        let view = leader.view(move |cluster| cluster.job(job)).await?;
        let history = view.map(|view| view.checkpoints.history).unwrap_or_default();
        let mut recent = history.iter().filter_map(|entry| entry.outcome.as_ref().ok());
        let checkpoint = recent.find(|checkpoint| checkpoint.location == location);
        Ok(json!({ "checkpointId": checkpoint.map(|checkpoint| checkpoint.id), "location": location }))
    }))
}

/// `GET /jobs/:id/savepoints/:trigger`, also for stops.
pub(super) async fn savepoint_status(
    State(rest): AppState,
    Path((id, trigger)): Path<(String, String)>,
) -> Result<Json<Value>, ApiError> {
    status(&rest, Key { job: id.parse()?, kind: Kind::Savepoint, trigger })
}

/// `GET /jobs/:id/checkpoints/:trigger`
pub(super) async fn checkpoint_status(
    State(rest): AppState,
    Path((id, trigger)): Path<(String, String)>,
) -> Result<Json<Value>, ApiError> {
    status(&rest, Key { job: id.parse()?, kind: Kind::Checkpoint, trigger })
}

/// Runs `operation` beside the request, and answers with its trigger id.
fn start(
    rest: &Arc<Rest>,
    key: Key,
    operation: impl Future<Output = Result<Value>> + Send + 'static,
) -> (StatusCode, Json<Value>) {
    let answer = json!({ "request-id": key.trigger });
    if rest.operations.begin(key.clone()) {
        let rest = rest.clone();
        flott_env::spawn(async move {
            let result = operation.await.unwrap_or_else(|error| failure(key.kind, &error));
            rest.operations.finish(&key, result);
        });
    }
    (StatusCode::ACCEPTED, Json(answer))
}

fn status(rest: &Rest, key: Key) -> Result<Json<Value>, ApiError> {
    let result = rest.operations.get(&key).ok_or_else(|| {
        ApiError::not_found(format!(
            "job {} has no operation '{}': the JobManager remembers the last {OPERATIONS_MAX} since its start",
            key.job, key.trigger
        ))
    })?;
    let id = if result.is_some() { "COMPLETED" } else { "IN_PROGRESS" };
    Ok(Json(json!({ "status": { "id": id }, "operation": result })))
}

/// Flink's two names for the same thing.
fn failure(kind: Kind, error: &Error) -> Value {
    let name = match kind {
        Kind::Savepoint => "failure-cause",
        Kind::Checkpoint => "failureCause",
    };
    let mut trace = error.message.clone();
    for line in error.backtrace.iter().flat_map(|backtrace| backtrace.lines()) {
        trace.push('\n');
        trace.push_str(line);
    }
    json!({ name: { "class": format!("flott.{:?}Error", error.kind), "stack-trace": trace } })
}

fn completed(reply: Reply) -> Result<String> {
    match reply {
        Reply::Completed(location) => Ok(location),
        other => {
            Err(Error::system(format!("the leader answered {other:?} where the place of a checkpoint was asked for")))
        }
    }
}

/// Refuses at once what could not succeed.
pub(super) async fn running_job(rest: &Rest, id: &str) -> Result<JobId, ApiError> {
    let view = rest.job(id.parse()?).await?;
    if view.status.is_terminal() {
        return Err(ApiError::conflict(format!("job {} has already ended: it is {}", view.id, view.status)));
    }
    Ok(view.id)
}

/// The operation's key, with the client's trigger id or a new one.
fn key(job: JobId, kind: Kind, trigger: Option<String>) -> Result<Key, ApiError> {
    let is_hex = |text: &String| text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let trigger = match trigger {
        Some(trigger) if is_hex(&trigger) => trigger,
        Some(trigger) => {
            return Err(ApiError::bad_request(format!(
                "'{}' is not a trigger id: expected 32 hexadecimal digits",
                trigger.chars().take(80).collect::<String>()
            )));
        }
        None => JobId(flott_env::random_id()).to_string(),
    };
    Ok(Key { job, kind, trigger })
}

/// An empty body is one without fields, whatever its content type: so it is in Flink.
fn parse<T: DeserializeOwned + Default>(body: &[u8]) -> Result<T, ApiError> {
    if body.is_empty() {
        return Ok(T::default());
    }
    serde_json::from_slice(body).map_err(|error| ApiError::bad_request(format!("the body is not as expected: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: usize) -> Key {
        Key { job: JobId([1; 16]), kind: Kind::Savepoint, trigger: number.to_string() }
    }

    #[test]
    fn the_oldest_operations_are_forgotten() {
        let operations = Operations::default();
        for number in 0..=OPERATIONS_MAX {
            assert!(operations.begin(key(number)));
            assert!(!operations.begin(key(number)), "the same again is the same");
        }
        assert_eq!(operations.get(&key(0)), None);
        operations.finish(&key(0), json!(0));
        assert_eq!(operations.get(&key(1)), Some(None));
        operations.finish(&key(1), json!({ "location": "x" }));
        assert_eq!(operations.get(&key(1)), Some(Some(json!({ "location": "x" }))));
    }

    #[test]
    fn failures_carry_message_and_backtrace() {
        let error = Error { backtrace: Some("at main\nat start".into()), ..Error::user_code("boom") };
        let value = failure(Kind::Savepoint, &error);
        assert_eq!(value["failure-cause"]["class"], "flott.UserCodeError");
        assert_eq!(value["failure-cause"]["stack-trace"], "boom\nat main\nat start");
    }
}
