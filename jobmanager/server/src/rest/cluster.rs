//! The cluster as a whole, and its TaskManagers.

use axum::Json;
use axum::extract::{Path, State};
use flott_core::ids::TaskManagerId;
use flott_core::status::JobStatus;
use flott_jobmanager_core::view::{JobView, SubtaskView, TaskManagerView};
use serde_json::{Map, Value, json};

use super::AppState;
use super::error::ApiError;

/// `GET /overview`
pub(super) async fn overview(State(rest): AppState) -> Result<Json<Value>, ApiError> {
    let (jobs, task_managers) = rest.leader.view(|cluster| (cluster.jobs(), cluster.task_managers())).await?;
    let count = |is_counted: fn(JobStatus) -> bool| jobs.iter().filter(|job| is_counted(job.status)).count();
    Ok(Json(json!({
        "taskmanagers": task_managers.len(),
        "slots-total": task_managers.iter().map(|manager| u64::from(manager.info.slots)).sum::<u64>(),
        "slots-available": task_managers.iter().map(|manager| u64::from(manager.free_slots)).sum::<u64>(),
        // As in Flink, a job that is restarting or failing counts as running.
        "jobs-running": count(|status| !status.is_terminal()),
        "jobs-finished": count(|status| status == JobStatus::Finished),
        "jobs-cancelled": count(|status| status == JobStatus::Canceled),
        "jobs-failed": count(|status| status == JobStatus::Failed),
        "flink-version": env!("CARGO_PKG_VERSION"),
        "flink-commit": "flott",
    })))
}

/// `GET /config`: what the dashboard is set up with.
pub(super) async fn config() -> Json<Value> {
    Json(json!({
        "refresh-interval": 3000,
        "timezone-name": "Coordinated Universal Time",
        "timezone-offset": 0,
        "flink-version": env!("CARGO_PKG_VERSION"),
        "flink-revision": "flott",
        "features": { "web-submit": false, "web-cancel": true, "web-rescale": true, "web-history": false },
    }))
}

/// `GET /jobmanager/config`: the options that were given.
pub(super) async fn job_manager_config(State(rest): AppState) -> Json<Value> {
    let options = rest.config.iter().map(|(key, value)| json!({ "key": key, "value": value }));
    Json(Value::Array(options.collect()))
}

/// `GET /taskmanagers`
pub(super) async fn task_managers(State(rest): AppState) -> Result<Json<Value>, ApiError> {
    let task_managers = rest.leader.view(|cluster| cluster.task_managers()).await?;
    let list: Vec<Value> = task_managers.iter().map(|view| Value::Object(describe(view))).collect();
    Ok(Json(json!({ "taskmanagers": list })))
}

/// `GET /taskmanagers/:id`
pub(super) async fn task_manager(State(rest): AppState, Path(id): Path<String>) -> Result<Json<Value>, ApiError> {
    let id = TaskManagerId(id);
    let (jobs, task_managers) = rest.leader.view(|cluster| (cluster.jobs(), cluster.task_managers())).await?;
    let view = task_managers
        .iter()
        .find(|view| view.info.id == id)
        .ok_or_else(|| ApiError::not_found(format!("TaskManager {id} not found")))?;
    let mut description = describe(view);
    description.insert("allocatedSlots".into(), jobs.iter().flat_map(|job| allocated_slots(job, &id)).collect());
    Ok(Json(Value::Object(description)))
}

fn describe(view: &TaskManagerView) -> Map<String, Value> {
    let info = &view.info;
    let description = json!({
        "id": info.id.0,
        "path": info.host,
        // Flink's name for the time of the last heartbeat. Ports and memory of its JVM have no counterpart.
        "timeSinceLastHeartbeat": view.last_heartbeat_ms,
        "slotsNumber": info.slots,
        "freeSlots": view.free_slots,
        "dataPort": -1,
        "jmxPort": -1,
        "blocked": false,
        "pid": info.pid,
        "platform": info.platform,
    });
    match description {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

/// One entry for each slot of the TaskManager that runs subtasks of the job. Slots are shared by vertices, so the vertex
/// with the most subtasks there tells their number.
fn allocated_slots(job: &JobView, task_manager: &TaskManagerId) -> Vec<Value> {
    let subtasks_here = job.vertices.iter().map(|vertex| {
        let is_here = |subtask: &&SubtaskView| subtask.task_manager.as_ref() == Some(task_manager);
        vertex.subtasks.iter().filter(is_here).count()
    });
    let slots = if job.status.is_terminal() { 0 } else { subtasks_here.max().unwrap_or(0) };
    vec![json!({ "jobId": job.id.to_string() }); slots]
}
