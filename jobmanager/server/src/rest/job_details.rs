//! One job: its vertices, its graph, its failures, its configuration.

use axum::Json;
use axum::extract::{Path, State};
use flott_control::{StateMetrics, TaskMetrics};
use flott_core::config::{Configuration, options};
use flott_core::status::TaskStatus;
use flott_core::time::Timestamp;
use flott_graph::{JobGraph, JobVertex, OperatorDescriptor};
use flott_jobmanager_core::view::{JobView, SubtaskView, VertexView};
use serde_json::{Map, Value, json};

use super::AppState;
use super::error::ApiError;

/// Flink's task states. Flott has no equivalent of SCHEDULED and RECONCILING; they are always 0.
const TASK_STATES: [&str; 10] = [
    "CREATED",
    "SCHEDULED",
    "DEPLOYING",
    "RUNNING",
    "FINISHED",
    "CANCELING",
    "CANCELED",
    "FAILED",
    "RECONCILING",
    "INITIALIZING",
];

/// Flink's job states. Flott has no equivalent of INITIALIZING, SUSPENDED and RECONCILING.
const JOB_STATES: [&str; 11] = [
    "INITIALIZING",
    "CREATED",
    "RUNNING",
    "FAILING",
    "FAILED",
    "CANCELLING",
    "CANCELED",
    "FINISHED",
    "RESTARTING",
    "SUSPENDED",
    "RECONCILING",
];

/// `GET /jobs/:id`
pub(super) async fn job(State(rest): AppState, Path(id): Path<String>) -> Result<Json<Value>, ApiError> {
    let job = rest.job(id.parse()?).await?;
    let now_ms = flott_env::now_ms();
    let mut timestamps: Map<String, Value> = JOB_STATES.iter().map(|&name| (name.to_owned(), 0.into())).collect();
    for &(status, at_ms) in &job.status_times {
        timestamps.insert(status.name().to_owned(), at_ms.into());
    }
    let mut status_counts = zero_counts(str::to_owned);
    for view in &job.vertices {
        add_one(&mut status_counts, vertex_status(view).name());
    }
    let descriptions: Vec<Value> = vertices(&job).map(|(vertex, view)| describe_vertex(vertex, view, now_ms)).collect();
    Ok(Json(json!({
        "jid": job.id.to_string(),
        "name": job.spec.graph.name,
        "isStoppable": false,
        "state": job.status.name(),
        "job-type": job_type(&job.spec.graph.config),
        "start-time": job.submitted_ms,
        "end-time": job.ended_ms.unwrap_or(-1),
        "duration": job.ended_ms.unwrap_or(now_ms) - job.submitted_ms,
        "maxParallelism": job.spec.graph.vertices.iter().map(|vertex| vertex.max_parallelism).max().unwrap_or(0),
        "now": now_ms,
        "timestamps": timestamps,
        "vertices": descriptions,
        "status-counts": status_counts,
        "plan": describe_plan(&job),
        "waiting-for": job.waiting_for,
        // The parallelism of each vertex that it is being rescaled to.
        "rescaling-to": job.rescaling_to,
        "generation": job.generation,
    })))
}

/// `GET /jobs/:id/plan`
pub(super) async fn plan(State(rest): AppState, Path(id): Path<String>) -> Result<Json<Value>, ApiError> {
    let job = rest.job(id.parse()?).await?;
    Ok(Json(json!({ "plan": describe_plan(&job) })))
}

/// `GET /jobs/:id/vertices/:vertex`
pub(super) async fn vertex(
    State(rest): AppState,
    Path((id, vertex)): Path<(String, String)>,
) -> Result<Json<Value>, ApiError> {
    let job = rest.job(id.parse()?).await?;
    let now_ms = flott_env::now_ms();
    let (description, view) = vertices(&job)
        .find(|(description, _)| vertex_id(description) == vertex)
        .ok_or_else(|| ApiError::not_found(format!("job {} has no vertex '{vertex}'", job.id)))?;
    let subtasks: Vec<Value> = view
        .subtasks
        .iter()
        .enumerate()
        .map(|(index, subtask)| describe_subtask(description, index, subtask, now_ms))
        .collect();
    Ok(Json(json!({
        "id": vertex,
        "name": description.name,
        "parallelism": description.parallelism,
        "maxParallelism": description.max_parallelism,
        "now": now_ms,
        "operators": describe_operators(description, &view.subtasks),
        "subtasks": subtasks,
    })))
}

/// `GET /jobs/:id/config`
pub(super) async fn config(State(rest): AppState, Path(id): Path<String>) -> Result<Json<Value>, ApiError> {
    let job = rest.job(id.parse()?).await?;
    let config = &job.spec.graph.config;
    let user_config: Map<String, Value> = config.iter().map(|(key, value)| (key.to_owned(), value.into())).collect();
    Ok(Json(json!({
        "jid": job.id.to_string(),
        "name": job.spec.graph.name,
        "execution-config": {
            "execution-mode": "PIPELINED",
            "restart-strategy": config.get(options::RESTART_STRATEGY)?,
            "job-parallelism": config.get(options::PARALLELISM_DEFAULT)?,
            "object-reuse-mode": true,
            "user-config": user_config,
        },
    })))
}

/// `GET /jobs/:id/exceptions`
pub(super) async fn exceptions(State(rest): AppState, Path(id): Path<String>) -> Result<Json<Value>, ApiError> {
    let job = rest.job(id.parse()?).await?;
    let entries: Vec<Value> = job
        .exceptions
        .iter()
        .map(|exception| {
            json!({
                "exceptionName": exception.message.lines().next().unwrap_or_default(),
                "stacktrace": exception.message,
                "timestamp": exception.at_ms,
                "taskName": exception.task,
                "endpoint": exception.task_manager.as_ref().map(|id| &id.0),
                "taskManagerId": exception.task_manager.as_ref().map(|id| &id.0),
                "failureLabels": {},
                "concurrentExceptions": [],
                "generation": exception.generation,
            })
        })
        .collect();
    let root = job.exceptions.first();
    Ok(Json(json!({
        "root-exception": root.map(|exception| &exception.message),
        "timestamp": root.map(|exception| exception.at_ms),
        "all-exceptions": [],
        "truncated": false,
        "exceptionHistory": { "entries": entries, "truncated": false },
    })))
}

/// How many subtasks are in each of Flink's states, under names as `case` makes them.
pub(super) fn task_counts<'a>(
    subtasks: impl Iterator<Item = &'a SubtaskView>,
    case: fn(&str) -> String,
) -> Map<String, Value> {
    let mut counts = zero_counts(case);
    for subtask in subtasks {
        add_one(&mut counts, &case(subtask.status.name()));
    }
    counts
}

fn zero_counts(case: fn(&str) -> String) -> Map<String, Value> {
    TASK_STATES.iter().map(|name| (case(name), 0.into())).collect()
}

fn add_one(counts: &mut Map<String, Value>, name: &str) {
    let count = counts.get(name).and_then(Value::as_u64).unwrap_or(0);
    counts.insert(name.to_owned(), (count + 1).into());
}

/// Flink's ids of vertices are 32 hexadecimal digits; ours is that of the first operator.
pub(super) fn vertex_id(vertex: &JobVertex) -> String {
    vertex.operators.first().map(|operator| operator.id.to_string()).unwrap_or_default()
}

fn vertices(job: &JobView) -> impl Iterator<Item = (&JobVertex, &VertexView)> {
    job.spec.graph.vertices.iter().zip(&job.vertices)
}

fn job_type(config: &Configuration) -> &'static str {
    match config.get(options::RUNTIME_MODE) {
        Ok(options::RuntimeMode::Batch) => "BATCH",
        _ => "STREAMING",
    }
}

/// One state for all subtasks, by Flink's rules.
fn vertex_status(view: &VertexView) -> TaskStatus {
    let has = |status| view.subtasks.iter().any(|subtask| subtask.status == status);
    let worst_first = [
        TaskStatus::Failed,
        TaskStatus::Canceling,
        TaskStatus::Canceled,
        TaskStatus::Initializing,
        TaskStatus::Running,
    ];
    if let Some(status) = worst_first.into_iter().find(|&status| has(status)) {
        return status;
    }
    if view.subtasks.iter().all(|subtask| subtask.status == TaskStatus::Finished) {
        TaskStatus::Finished
    } else if has(TaskStatus::Finished) || has(TaskStatus::Finishing) {
        TaskStatus::Running
    } else if has(TaskStatus::Deploying) {
        TaskStatus::Deploying
    } else {
        TaskStatus::Created
    }
}

fn is_over(status: TaskStatus) -> bool {
    matches!(status, TaskStatus::Finished | TaskStatus::Canceled | TaskStatus::Failed)
}

/// Start, end and duration, with Flink's -1 for what has not happened.
fn times(started_ms: Option<Timestamp>, ended_ms: Option<Timestamp>, now_ms: Timestamp) -> [Timestamp; 3] {
    let duration_ms = started_ms.map_or(-1, |started_ms| ended_ms.unwrap_or(now_ms) - started_ms);
    [started_ms.unwrap_or(-1), ended_ms.unwrap_or(-1), duration_ms]
}

fn describe_vertex(vertex: &JobVertex, view: &VertexView, now_ms: Timestamp) -> Value {
    let is_over = view.subtasks.iter().all(|subtask| is_over(subtask.status));
    let started_ms = view.subtasks.iter().filter_map(|subtask| subtask.started_ms).min();
    let ended_ms = view.subtasks.iter().map(|subtask| subtask.since_ms).max().filter(|_| is_over);
    let [start, end, duration] = times(started_ms, ended_ms, now_ms);
    json!({
        "id": vertex_id(vertex),
        "slotSharingGroupId": null,
        "name": vertex.name,
        "maxParallelism": vertex.max_parallelism,
        "parallelism": vertex.parallelism,
        "status": vertex_status(view).name(),
        "start-time": start,
        "end-time": end,
        "duration": duration,
        "tasks": task_counts(view.subtasks.iter(), str::to_owned),
        "metrics": describe_metrics(view.subtasks.iter().filter_map(|subtask| subtask.metrics.as_ref())),
        "operators": describe_operators(vertex, &view.subtasks),
    })
}

fn describe_subtask(vertex: &JobVertex, index: usize, subtask: &SubtaskView, now_ms: Timestamp) -> Value {
    let ended_ms = is_over(subtask.status).then_some(subtask.since_ms);
    let [start, end, duration] = times(subtask.started_ms, ended_ms, now_ms);
    let task_manager = subtask.task_manager.as_ref().map(|id| &id.0);
    json!({
        "subtask": index,
        "status": subtask.status.name(),
        // Flink counts attempts from 0.
        "attempt": subtask.attempt.saturating_sub(1),
        "endpoint": task_manager,
        "start-time": start,
        "end-time": end,
        "duration": duration,
        "metrics": describe_metrics(subtask.metrics.iter()),
        "operators": describe_operators(vertex, std::slice::from_ref(subtask)),
        "slot-state-bytes": subtask.metrics.as_ref().map(|metrics| metrics.slot_state_bytes),
        "slot-state-limit": subtask.metrics.as_ref().map(|metrics| metrics.slot_state_limit),
        "taskmanager-id": task_manager,
    })
}

fn describe_metrics<'a>(metrics: impl Iterator<Item = &'a TaskMetrics> + Clone) -> Value {
    let sum = |figure: fn(&TaskMetrics) -> u64| metrics.clone().map(figure).fold(0, u64::saturating_add);
    let is_complete = metrics.clone().next().is_some();
    json!({
        "read-bytes": sum(|m| m.bytes_in),
        "read-bytes-complete": is_complete,
        "write-bytes": sum(|m| m.bytes_out),
        "write-bytes-complete": is_complete,
        "read-records": sum(|m| m.records_in),
        "read-records-complete": is_complete,
        "write-records": sum(|m| m.records_out),
        "write-records-complete": is_complete,
        "accumulated-backpressured-time": sum(|m| m.back_pressured_ms),
        "accumulated-idle-time": sum(|m| m.idle_ms),
        "accumulated-busy-time": sum(|m| m.busy_ms),
    })
}

/// The operators of a vertex, each with what its keyed states take in all of `subtasks`. Flink does not have this here.
fn describe_operators(vertex: &JobVertex, subtasks: &[SubtaskView]) -> Vec<Value> {
    let states = || subtasks.iter().filter_map(|subtask| subtask.metrics.as_ref()).flat_map(|metrics| &metrics.states);
    let describe = |state: &StateMetrics| {
        json!({
            "name": state.name,
            "entries": state.entries,
            "memory-bytes": state.memory_bytes,
            "index-bytes": state.index_bytes,
            "disk-bytes": state.disk_bytes,
        })
    };
    let operator = |operator: &OperatorDescriptor| {
        let mut sums: Vec<StateMetrics> = Vec::new();
        for state in states().filter(|state| state.operator == operator.id) {
            match sums.iter_mut().find(|sum| sum.name == state.name) {
                Some(sum) => sum.add(state),
                None => sums.push(state.clone()),
            }
        }
        let states: Vec<Value> = sums.iter().map(describe).collect();
        json!({ "id": operator.id.to_string(), "name": operator.name, "states": states })
    };
    vertex.operators.iter().map(operator).collect()
}

fn describe_plan(job: &JobView) -> Value {
    let graph: &JobGraph = &job.spec.graph;
    let nodes: Vec<Value> = graph
        .vertices
        .iter()
        .enumerate()
        .map(|(position, vertex)| {
            let inputs: Vec<Value> = graph
                .inputs(u32::try_from(position).unwrap_or(u32::MAX))
                .enumerate()
                .map(|(number, edge)| {
                    json!({
                        "num": number,
                        "id": graph.vertices.get(edge.source as usize).map(vertex_id),
                        "ship_strategy": edge.partitioning,
                        "exchange": "pipelined_bounded",
                    })
                })
                .collect();
            json!({
                "id": vertex_id(vertex),
                "parallelism": vertex.parallelism,
                "operator": "",
                "operator_strategy": "",
                "description": vertex.name,
                "inputs": inputs,
                "optimizer_properties": {},
            })
        })
        .collect();
    json!({
        "jid": job.id.to_string(),
        "name": graph.name,
        "type": job_type(&graph.config),
        "nodes": nodes,
    })
}

#[cfg(test)]
mod tests {
    use flott_core::status::JobStatus;

    use super::*;

    fn view(statuses: &[TaskStatus]) -> VertexView {
        let subtask = |&status| SubtaskView {
            status,
            task_manager: None,
            since_ms: 5,
            attempt: 1,
            started_ms: None,
            metrics: None,
        };
        VertexView { subtasks: statuses.iter().map(subtask).collect() }
    }

    #[test]
    fn a_vertex_is_as_bad_as_its_worst_subtask() {
        use TaskStatus::*;
        assert_eq!(vertex_status(&view(&[Running, Failed, Canceled])), Failed);
        assert_eq!(vertex_status(&view(&[Running, Initializing])), Initializing);
        assert_eq!(vertex_status(&view(&[Finished, Finished])), Finished);
        assert_eq!(vertex_status(&view(&[Finished, Deploying])), Running);
        assert_eq!(vertex_status(&view(&[Created, Deploying])), Deploying);
        assert_eq!(vertex_status(&view(&[Created])), Created);
    }

    #[test]
    fn every_state_is_counted_under_one_of_flinks_names() {
        use TaskStatus::*;
        let all = [Created, Deploying, Initializing, Running, Finishing, Finished, Canceling, Canceled, Failed];
        let counts = task_counts(view(&all).subtasks.iter(), str::to_owned);
        assert_eq!(counts.len(), TASK_STATES.len());
        assert_eq!(counts["RUNNING"], 2);
        for status in [JobStatus::Created, JobStatus::Cancelling, JobStatus::Restarting, JobStatus::Failing] {
            assert!(JOB_STATES.contains(&status.name()));
        }
    }
}
