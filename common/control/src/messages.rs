//! The messages of a session.

use flott_checkpoint::SubtaskSnapshot;
use flott_core::Error;
use flott_core::config::Configuration;
use flott_core::ids::{CheckpointId, Generation, JobId, SubtaskId, TaskManagerId, VertexId};
use flott_core::status::TaskStatus;
use flott_core::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::deployment::JobDeployment;
use crate::metrics::TaskMetrics;

/// One execution of one job: what everything about it is fenced by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ExecutionId {
    /// The job.
    pub job: JobId,
    /// Its execution.
    pub generation: Generation,
}

/// What a TaskManager says of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskManagerInfo {
    /// Its id, new for each process.
    pub id: TaskManagerId,
    /// The host that others reach it at.
    pub host: String,
    /// Its process id.
    pub pid: u32,
    /// How many slots it offers.
    pub slots: u32,
    /// The machine that its binaries must be for, such as `x86_64-linux`.
    pub platform: String,
    /// [`crate::PROTOCOL_VERSION`] of its build.
    pub protocol_version: u32,
}

/// Why a checkpoint is taken, and what follows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CheckpointKind {
    /// Periodic; may be incremental.
    Checkpoint,
    /// All input has ended; what it commits is the last.
    Final,
    /// Whole and self-contained, written into `dir`.
    Savepoint {
        /// Its folder.
        dir: String,
        /// Sources stop after its barrier.
        stop: bool,
        /// Sources send the highest watermark before its barrier, so that all windows fire.
        drain: bool,
    },
}

/// Messages to the JobManager.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Up {
    /// First message of a TaskManager's session.
    RegisterTaskManager(TaskManagerInfo),
    /// First message of a worker's session.
    RegisterWorker {
        /// What it executes.
        execution: ExecutionId,
        /// The TaskManager that started it.
        task_manager: TaskManagerId,
        /// `host:port` that it receives data on.
        data_address: String,
    },
    /// A sign of life, with the metrics of a worker's subtasks.
    Heartbeat {
        /// The execution of a worker; `None` from a TaskManager.
        execution: Option<ExecutionId>,
        /// One entry a subtask.
        metrics: Vec<TaskMetrics>,
    },
    /// A worker process ended, as its TaskManager saw it.
    WorkerExited {
        /// What it executed.
        execution: ExecutionId,
        /// How it ended, with the last lines that it wrote to standard error.
        reason: String,
    },
    /// A subtask changed its state.
    TaskStatus {
        /// The execution.
        execution: ExecutionId,
        /// The subtask.
        subtask: SubtaskId,
        /// Its new state.
        status: TaskStatus,
        /// Why, if it failed.
        error: Option<Error>,
    },
    /// The splits of a source, found by its subtask 0 at a start without state.
    SplitsDiscovered {
        /// The execution.
        execution: ExecutionId,
        /// The source's vertex.
        vertex: VertexId,
        /// The encoded splits, in the order in which they are to be read.
        splits: Vec<Vec<u8>>,
    },
    /// A source's subtask has nothing left to read.
    RequestSplit {
        /// The execution.
        execution: ExecutionId,
        /// The subtask.
        subtask: SubtaskId,
    },
    /// A connection between two workers broke. The one that says so is sound, and keeps its state.
    ConnectionLost {
        /// The execution.
        execution: ExecutionId,
        /// Which connection, and why.
        error: Error,
    },
    /// A subtask's part of a savepoint has been taken: its barrier has come and gone, and all of it is complete where the
    /// subtask runs. Making it durable takes longer, but concerns neither the stream nor the state any more, so the next
    /// checkpoint may begin.
    SavepointTaken {
        /// The execution.
        execution: ExecutionId,
        /// The subtask.
        subtask: SubtaskId,
        /// The savepoint.
        checkpoint: CheckpointId,
    },
    /// A subtask's part of a checkpoint is durable.
    CheckpointAcknowledged {
        /// The execution.
        execution: ExecutionId,
        /// The subtask.
        subtask: SubtaskId,
        /// The checkpoint.
        checkpoint: CheckpointId,
        /// What it wrote.
        snapshot: SubtaskSnapshot,
    },
    /// A subtask cannot take part in a checkpoint.
    CheckpointDeclined {
        /// The execution.
        execution: ExecutionId,
        /// The subtask.
        subtask: SubtaskId,
        /// The checkpoint.
        checkpoint: CheckpointId,
        /// Why.
        reason: Error,
    },
}

/// Messages from the JobManager.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Down {
    /// Answer to a registration: how to stay alive.
    Registered {
        /// Milliseconds between heartbeats.
        heartbeat_interval_ms: u64,
    },
    /// The registration was not accepted; the process ends.
    Refused(Error),
    /// A sign of life.
    Heartbeat,
    /// To a TaskManager: start a worker process.
    StartWorker {
        /// What it executes.
        execution: ExecutionId,
        /// SHA-256 of its binary; `None` runs it inside the TaskManager's process.
        artifact: Option<String>,
        /// Arguments of the job's `main`.
        args: Vec<String>,
        /// What it reads beside them.
        payload: Option<String>,
        /// The configuration to plan with.
        config: Configuration,
    },
    /// To a TaskManager: end a worker process, at once.
    StopWorker {
        /// What it executes.
        execution: ExecutionId,
    },
    /// To a worker of the generation before: stop its subtasks, take its state back to a checkpoint, and register for
    /// this execution in the same session. The failure does not reach some of its subtasks: they carry over, which
    /// means that they run on as they are, and belong to the new execution from here on.
    Continue {
        /// The new execution.
        execution: ExecutionId,
        /// The checkpoint that it starts from; `None` starts empty.
        checkpoint: Option<CheckpointId>,
        /// The worker's subtasks that carry over. What was going on for a later checkpoint is aborted for them.
        carried: Vec<SubtaskId>,
    },
    /// To a worker: run these subtasks.
    Deploy {
        /// The execution.
        execution: ExecutionId,
        /// What to run.
        deployment: JobDeployment,
    },
    /// To a worker: a source's subtask 0 should list its splits.
    DiscoverSplits {
        /// The execution.
        execution: ExecutionId,
        /// The source's vertex.
        vertex: VertexId,
    },
    /// To a worker: more for a source's subtask to read.
    AddSplits {
        /// The execution.
        execution: ExecutionId,
        /// The subtask.
        subtask: SubtaskId,
        /// The encoded splits.
        splits: Vec<Vec<u8>>,
        /// Whether none will follow.
        is_last: bool,
    },
    /// To a worker: its sources should send this barrier.
    TriggerCheckpoint {
        /// The execution.
        execution: ExecutionId,
        /// The checkpoint.
        checkpoint: CheckpointId,
        /// When it was triggered.
        triggered_ms: Timestamp,
        /// Its purpose.
        kind: CheckpointKind,
    },
    /// To a worker: the checkpoint is durable; commit everything up to it.
    CheckpointCompleted {
        /// The execution.
        execution: ExecutionId,
        /// The checkpoint.
        checkpoint: CheckpointId,
        /// Whether the job is over: subtasks commit and finish.
        is_last: bool,
    },
    /// To a worker: the checkpoint will not complete.
    CheckpointAborted {
        /// The execution.
        execution: ExecutionId,
        /// The checkpoint.
        checkpoint: CheckpointId,
    },
    /// To a worker: stop all subtasks and report them canceled.
    CancelTasks {
        /// The execution.
        execution: ExecutionId,
    },
}
