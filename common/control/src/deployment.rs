//! What a job is, and which part of it a worker runs.

use flott_checkpoint::TaskRestore;
use flott_core::config::Configuration;
use flott_core::ids::{SubtaskId, TaskManagerId};
use flott_graph::JobGraph;
use serde::{Deserialize, Serialize};

/// A job as it was submitted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobSpec {
    /// Its graph, with the configuration that it was planned with.
    pub graph: JobGraph,
    /// The SHA-256 of its binary, in hexadecimal; `None` where it runs in the JobManager's own process.
    pub artifact: Option<String>,
    /// The arguments of its `main`.
    pub args: Vec<String>,
    /// What its workers are given beside them, for what has no place in a command line: that is short, and for all to read.
    #[serde(default)]
    pub payload: Option<String>,
    /// The savepoint or retained checkpoint to start from.
    pub savepoint: Option<String>,
    /// Whether state of the savepoint that no operator claims may be dropped.
    pub allow_non_restored_state: bool,
    /// Whose the savepoint is from the start on.
    #[serde(default)]
    pub claim_mode: ClaimMode,
}

/// What becomes of the savepoint or checkpoint that a job starts from, as Flink's
/// `execution.state-recovery.claim-mode` says it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ClaimMode {
    /// It stays the user's: nothing builds on it, so the first checkpoint is whole.
    #[default]
    NoClaim,
    /// It is the job's: dropped like any other checkpoint once newer ones have taken its place.
    Claim,
}

/// Where a worker can be reached by the job's other workers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerAddress {
    /// The TaskManager that it belongs to.
    pub task_manager: TaskManagerId,
    /// `host:port` of its data plane; empty in an embedded cluster, which has one worker.
    pub data_address: String,
}

/// One subtask for one worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskDeployment {
    /// Which subtask.
    pub subtask: SubtaskId,
    /// The slot of the worker in which it runs; subtasks of one slot share a thread.
    pub slot: u32,
    /// The state to start from; `None` starts empty.
    pub restore: Option<TaskRestore>,
}

/// One worker's part of an execution.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobDeployment {
    /// [`JobGraph::describe`] of the graph that was submitted: the worker's must say the same.
    pub graph: String,
    /// The configuration of job and cluster together.
    pub config: Configuration,
    /// The folder that tasks write checkpoint files into: it belongs to this generation alone.
    pub checkpoint_dir: String,
    /// All workers of the execution.
    pub workers: Vec<WorkerAddress>,
    /// Which of `workers` is the receiver of this message.
    pub this_worker: u32,
    /// For every vertex the position in `workers` of each of its subtasks. There are as many as the vertex has
    /// subtasks in this execution, which may differ from what the job was planned with.
    pub placement: Vec<Vec<u32>>,
    /// The subtasks of this worker that are to be started: all but those that carry over.
    pub tasks: Vec<TaskDeployment>,
}
