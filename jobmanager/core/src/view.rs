//! What can be seen of the cluster, as plain values: REST and `/metrics` are printed from these.

use flott_control::{CompletedCheckpoint, JobSpec, TaskManagerInfo, TaskMetrics};
use flott_core::ids::{CheckpointId, Generation, JobId, TaskManagerId};
use flott_core::status::{JobStatus, TaskStatus};
use flott_core::time::Timestamp;

/// A job.
#[derive(Clone, Debug)]
pub struct JobView {
    /// Its id.
    pub id: JobId,
    /// What was submitted; its graph has the parallelism that the job has now, or will have when it starts again.
    pub spec: JobSpec,
    /// Its state.
    pub status: JobStatus,
    /// Its current execution; 0 before the first.
    pub generation: Generation,
    /// When it was submitted.
    pub submitted_ms: Timestamp,
    /// When it ended.
    pub ended_ms: Option<Timestamp>,
    /// When it entered each state that it has been in, latest last.
    pub status_times: Vec<(JobStatus, Timestamp)>,
    /// One entry a vertex.
    pub vertices: Vec<VertexView>,
    /// Its failures, latest first; bounded.
    pub exceptions: Vec<ExceptionView>,
    /// Its checkpoints.
    pub checkpoints: CheckpointsView,
    /// Why it is not running yet, if it waits for slots: the numbers.
    pub waiting_for: Option<String>,
    /// The parallelism of each vertex that it is being rescaled to, if it is.
    pub rescaling_to: Option<Vec<u32>>,
}

/// A vertex of a job.
#[derive(Clone, Debug)]
pub struct VertexView {
    /// One entry a subtask.
    pub subtasks: Vec<SubtaskView>,
}

/// A subtask of a vertex.
#[derive(Clone, Debug)]
pub struct SubtaskView {
    /// Its state.
    pub status: TaskStatus,
    /// Where it runs.
    pub task_manager: Option<TaskManagerId>,
    /// When it entered its state.
    pub since_ms: Timestamp,
    /// The execution that it was started in: an earlier one than the job's if the last failures did not reach it.
    pub attempt: Generation,
    /// When it was deployed.
    pub started_ms: Option<Timestamp>,
    /// Its last reported figures.
    pub metrics: Option<TaskMetrics>,
}

/// A failure of a job.
#[derive(Clone, Debug)]
pub struct ExceptionView {
    /// When.
    pub at_ms: Timestamp,
    /// What, with the backtrace if there was one.
    pub message: String,
    /// The name and subtask that failed, such as `Map (2/4)`.
    pub task: Option<String>,
    /// Where it ran.
    pub task_manager: Option<TaskManagerId>,
    /// The execution that it ended.
    pub generation: Generation,
}

/// The checkpoints of a job.
#[derive(Clone, Debug, Default)]
pub struct CheckpointsView {
    /// How many were triggered: by this leader, and before it those that completed.
    pub triggered: u64,
    /// How many completed, savepoints included.
    pub completed: u64,
    /// How many were aborted or declined.
    pub failed: u64,
    /// How many times the job was restored from one.
    pub restored: u64,
    /// The one that is being taken now.
    pub in_progress: Vec<PendingView>,
    /// Recent ones, latest first; bounded.
    pub history: Vec<CheckpointView>,
    /// The latest one that completed and is no savepoint.
    pub latest_completed: Option<CheckpointView>,
    /// The latest savepoint that completed.
    pub latest_savepoint: Option<CheckpointView>,
    /// The latest one that failed.
    pub latest_failed: Option<CheckpointView>,
    /// The one that the job was last restored from.
    pub latest_restored: Option<CompletedCheckpoint>,
}

/// A checkpoint that is being taken.
#[derive(Clone, Debug)]
pub struct PendingView {
    /// Its number.
    pub id: CheckpointId,
    /// Whether it is a savepoint.
    pub is_savepoint: bool,
    /// When it was triggered.
    pub triggered_ms: Timestamp,
    /// How many subtasks acknowledged.
    pub acknowledged: u32,
    /// How many subtasks there are.
    pub subtasks: u32,
}

/// A checkpoint that ended.
#[derive(Clone, Debug)]
pub struct CheckpointView {
    /// Its number.
    pub id: CheckpointId,
    /// Whether it is a savepoint.
    pub is_savepoint: bool,
    /// When it was triggered.
    pub triggered_ms: Timestamp,
    /// When it completed or failed.
    pub ended_ms: Timestamp,
    /// Its description, or why it failed.
    pub outcome: Result<CompletedCheckpoint, String>,
    /// The longest synchronous part of a subtask, in microseconds.
    pub sync_micros_max: u64,
    /// The longest alignment of a subtask, in microseconds.
    pub alignment_micros_max: u64,
    /// Bytes that were in flight between subtasks, and are part of it.
    pub persisted_bytes: u64,
    /// How many subtasks took part.
    pub subtasks: u32,
}

/// A TaskManager.
#[derive(Clone, Debug)]
pub struct TaskManagerView {
    /// What it said of itself.
    pub info: TaskManagerInfo,
    /// How many of its slots no job holds.
    pub free_slots: u32,
    /// When it was last heard.
    pub last_heartbeat_ms: Timestamp,
}
