//! `GET /metrics`: Flink's metrics, under the names that its Prometheus reporter gives them, with `flott_`
//! in place of `flink_`. Like there, all of them are gauges.

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use flott_control::{StateMetrics, TaskMetrics};
use flott_jobmanager_core::view::{CheckpointView, JobView, SubtaskView, TaskManagerView};
use flott_telemetry::prometheus::{self, Family, Kind, Writer};

use super::AppState;
use super::error::ApiError;
use super::job_details::vertex_id;

const fn gauge(name: &'static str, help: &'static str) -> Family {
    Family { name, kind: Kind::Gauge, help }
}

/// A figure of a cluster.
type ClusterFigure = (Family, fn(&[JobView], &[TaskManagerView]) -> f64);

const CLUSTER: &[ClusterFigure] = &[
    (gauge("flott_jobmanager_numRegisteredTaskManagers", "TaskManagers that are registered."), |_, managers| {
        managers.len() as f64
    }),
    (gauge("flott_jobmanager_taskSlotsTotal", "Slots of all TaskManagers."), |_, managers| {
        managers.iter().map(|manager| f64::from(manager.info.slots)).sum()
    }),
    (gauge("flott_jobmanager_taskSlotsAvailable", "Slots that no job holds."), |_, managers| {
        managers.iter().map(|manager| f64::from(manager.free_slots)).sum()
    }),
    (gauge("flott_jobmanager_numRunningJobs", "Jobs that have not ended."), |jobs, _| {
        jobs.iter().filter(|job| !job.status.is_terminal()).count() as f64
    }),
];

/// A figure of a job; none before there is one.
type JobFigure = (Family, fn(&JobView) -> Option<f64>);

const JOB: &[JobFigure] = &[
    (gauge("flott_jobmanager_job_numRestarts", "Restarts since the job was submitted."), |job| {
        Some(job.generation.saturating_sub(1) as f64)
    }),
    (gauge("flott_jobmanager_job_totalNumberOfCheckpoints", "Checkpoints that were triggered."), |job| {
        Some(job.checkpoints.triggered as f64)
    }),
    (gauge("flott_jobmanager_job_numberOfCompletedCheckpoints", "Checkpoints that completed."), |job| {
        Some(job.checkpoints.completed as f64)
    }),
    (gauge("flott_jobmanager_job_numberOfFailedCheckpoints", "Checkpoints that failed."), |job| {
        Some(job.checkpoints.failed as f64)
    }),
    (gauge("flott_jobmanager_job_numberOfInProgressCheckpoints", "Checkpoints that are being taken."), |job| {
        Some(job.checkpoints.in_progress.len() as f64)
    }),
    (
        gauge("flott_jobmanager_job_lastCheckpointDuration", "Milliseconds that the last completed checkpoint took."),
        |job| last_completed(job).map(|checkpoint| (checkpoint.ended_ms - checkpoint.triggered_ms) as f64),
    ),
    (gauge("flott_jobmanager_job_lastCheckpointSize", "Bytes that the last completed checkpoint added."), |job| {
        last_completed(job)?.outcome.as_ref().ok().map(|done| done.bytes_written as f64)
    }),
    (gauge("flott_jobmanager_job_lastCheckpointFullSize", "Bytes that the last completed checkpoint holds."), |job| {
        last_completed(job)?.outcome.as_ref().ok().map(|done| done.bytes_total as f64)
    }),
    (
        gauge(
            "flott_jobmanager_job_lastCheckpointSyncMicrosMax",
            "Microseconds that a subtask stopped for the last completed checkpoint, at most.",
        ),
        |job| last_completed(job).map(|checkpoint| checkpoint.sync_micros_max as f64),
    ),
];

/// A figure of a subtask.
type TaskFigure = (Family, fn(&TaskMetrics) -> f64);

const TASK: &[TaskFigure] = &[
    (gauge("flott_taskmanager_job_task_numRecordsIn", "Records received."), |task| task.records_in as f64),
    (gauge("flott_taskmanager_job_task_numRecordsOut", "Records sent."), |task| task.records_out as f64),
    (gauge("flott_taskmanager_job_task_numBytesIn", "Bytes received from other subtasks."), |task| {
        task.bytes_in as f64
    }),
    (gauge("flott_taskmanager_job_task_numBytesOut", "Bytes sent to other subtasks."), |task| task.bytes_out as f64),
    (gauge("flott_taskmanager_job_task_accumulateBusyTimeMs", "Milliseconds spent processing."), |task| {
        task.busy_ms as f64
    }),
    (gauge("flott_taskmanager_job_task_accumulateIdleTimeMs", "Milliseconds without anything to process."), |task| {
        task.idle_ms as f64
    }),
    (
        gauge("flott_taskmanager_job_task_accumulateBackPressuredTimeMs", "Milliseconds without room in an output."),
        |task| task.back_pressured_ms as f64,
    ),
    (
        gauge(
            "flott_taskmanager_job_task_currentInputWatermark",
            "Watermark in milliseconds since 1970; the least possible before the first.",
        ),
        |task| task.watermark as f64,
    ),
    (gauge("flott_taskmanager_job_task_numLateRecordsDropped", "Records that came after their window."), |task| {
        task.late_records_dropped as f64
    }),
    (gauge("flott_taskmanager_job_task_numMalformedRecordsSkipped", "Records that could not be read."), |task| {
        task.malformed_records_skipped as f64
    }),
    (gauge("flott_taskmanager_job_task_stateBytes", "Bytes of keyed state in memory, estimated."), |task| {
        task.state_bytes() as f64
    }),
    (
        gauge("flott_taskmanager_job_task_slotStateBytes", "Bytes of keyed state in memory, of all tasks in the slot."),
        |task| task.slot_state_bytes as f64,
    ),
    (
        gauge("flott_taskmanager_job_task_slotStateLimit", "Bytes of keyed state that the slot may have in memory."),
        |task| task.slot_state_limit as f64,
    ),
];

/// A figure of a keyed state in a subtask.
type StateFigure = (Family, fn(&StateMetrics) -> u64);

const STATE: &[StateFigure] = &[
    (gauge("flott_taskmanager_job_task_operator_stateEntries", "Entries of the state."), |state| state.entries),
    (
        gauge(
            "flott_taskmanager_job_task_operator_stateMemoryBytes",
            "Bytes of the state in memory, estimated, with the index by time.",
        ),
        |state| state.memory_bytes,
    ),
    (
        gauge(
            "flott_taskmanager_job_task_operator_stateIndexBytes",
            "Bytes of the state's index by time, which is always in memory.",
        ),
        |state| state.index_bytes,
    ),
    (gauge("flott_taskmanager_job_task_operator_stateDiskBytes", "Bytes of the state on local disk."), |state| {
        state.disk_bytes
    }),
];

/// `GET /metrics`
pub(super) async fn metrics(State(rest): AppState) -> Result<impl IntoResponse, ApiError> {
    let (jobs, task_managers) = rest.leader.view(|cluster| (cluster.jobs(), cluster.task_managers())).await?;
    Ok(([(CONTENT_TYPE, prometheus::CONTENT_TYPE)], print(&jobs, &task_managers)))
}

fn print(jobs: &[JobView], task_managers: &[TaskManagerView]) -> String {
    let mut writer = Writer::default();
    for (family, figure) in CLUSTER {
        writer.sample(family, &[], figure(jobs, task_managers));
    }
    // Ended jobs have no figures any more, else the page would only grow.
    for job in jobs.iter().filter(|job| !job.status.is_terminal()) {
        print_job(&mut writer, job);
    }
    writer.finish()
}

fn print_job(writer: &mut Writer, job: &JobView) {
    let id = job.id.to_string();
    let labels = [("job_id", id.as_str()), ("job_name", job.spec.graph.name.as_str())];
    for (family, figure) in JOB {
        if let Some(value) = figure(job) {
            writer.sample(family, &labels, value);
        }
    }
    for (vertex, view) in job.spec.graph.vertices.iter().zip(&job.vertices) {
        let task_id = vertex_id(vertex);
        for (index, subtask) in view.subtasks.iter().enumerate() {
            let SubtaskView { metrics: Some(metrics), task_manager, .. } = subtask else { continue };
            let index = index.to_string();
            let labels = [
                ("job_id", id.as_str()),
                ("job_name", job.spec.graph.name.as_str()),
                ("task_id", task_id.as_str()),
                ("task_name", vertex.name.as_str()),
                ("subtask_index", index.as_str()),
                ("tm_id", task_manager.as_ref().map_or("", |id| id.0.as_str())),
            ];
            for (family, figure) in TASK {
                writer.sample(family, &labels, figure(metrics));
            }
            for state in &metrics.states {
                let operator_id = state.operator.to_string();
                let operator = vertex.operators.iter().find(|operator| operator.id == state.operator);
                let of_state = [
                    ("operator_id", operator_id.as_str()),
                    ("operator_name", operator.map_or("", |operator| operator.name.as_str())),
                    ("state_name", state.name.as_str()),
                ];
                let labels: Vec<(&str, &str)> = labels.into_iter().chain(of_state).collect();
                for (family, figure) in STATE {
                    writer.sample(family, &labels, figure(state) as f64);
                }
            }
        }
    }
}

fn last_completed(job: &JobView) -> Option<&CheckpointView> {
    job.checkpoints.history.iter().find(|checkpoint| checkpoint.outcome.is_ok())
}
