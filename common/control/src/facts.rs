//! What must survive the JobManager's death: the entries of its log.

use flott_core::Error;
use flott_core::ids::{CheckpointId, Generation, JobId};
use flott_core::status::JobStatus;
use flott_core::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::deployment::JobSpec;

/// A durable fact. The state of the cluster is the fold of its log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Fact {
    /// A job was accepted.
    JobSubmitted {
        /// The job.
        job: JobId,
        /// What was submitted.
        spec: Box<JobSpec>,
        /// When.
        submitted_ms: Timestamp,
    },
    /// An execution of a job is about to start: everything of earlier generations is stale from here on.
    GenerationStarted {
        /// The job.
        job: JobId,
        /// The new generation.
        generation: Generation,
    },
    /// The job has another parallelism from the next generation on.
    JobRescaled {
        /// The job.
        job: JobId,
        /// The parallelism of each vertex.
        parallelism: Vec<u32>,
    },
    /// A savepoint was asked for. By this a later leader knows the folder, should it never become complete.
    SavepointRequested {
        /// The job.
        job: JobId,
        /// Its folder, as a URL.
        location: String,
    },
    /// The commit point of a checkpoint or savepoint.
    CheckpointCompleted {
        /// The job.
        job: JobId,
        /// The checkpoint.
        checkpoint: CompletedCheckpoint,
    },
    /// A checkpoint is no longer kept; its files may be deleted from here on.
    CheckpointDropped {
        /// The job.
        job: JobId,
        /// The checkpoint.
        checkpoint: CheckpointId,
    },
    /// A job reached its end. It is never run again.
    JobEnded {
        /// The job.
        job: JobId,
        /// How.
        end: JobEnd,
    },
}

/// A checkpoint that exists.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompletedCheckpoint {
    /// Its number.
    pub id: CheckpointId,
    /// The generation that took it.
    pub generation: Generation,
    /// The folder of its manifest, as a URL.
    pub location: String,
    /// SHA-256 of its manifest in hexadecimal.
    pub manifest_sha256: String,
    /// Whether it is a savepoint, which is the user's and never dropped by us.
    pub is_savepoint: bool,
    /// Whether the job stopped with it. Any other savepoint is a copy for the user: sinks commit nothing with it, and
    /// no recovery starts from it, since the user may delete it at any time.
    pub ends_job: bool,
    /// When it was triggered.
    pub triggered_ms: Timestamp,
    /// When it completed.
    pub completed_ms: Timestamp,
    /// Bytes that it added.
    pub bytes_written: u64,
    /// Bytes that it holds.
    pub bytes_total: u64,
}

/// How a job ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobEnd {
    /// `FINISHED`, `CANCELED` or `FAILED`.
    pub status: JobStatus,
    /// Why, if it failed.
    pub error: Option<Error>,
    /// When.
    pub ended_ms: Timestamp,
}
