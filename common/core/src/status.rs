//! States of jobs and tasks, with Flink's names.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The state of a job, as `GET /jobs` shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum JobStatus {
    /// Accepted and durable; waiting for slots or being deployed.
    Created,
    /// All tasks run.
    Running,
    /// A task failed and the others are being stopped; no restart will follow.
    Failing,
    /// The end after a failure that the restart strategy gave up on.
    Failed,
    /// Cancellation was asked for and is under way.
    Cancelling,
    /// The end after a cancellation.
    Canceled,
    /// The end of bounded input, or of a stop with a savepoint.
    Finished,
    /// A task failed and the job waits for its next generation.
    Restarting,
}

impl JobStatus {
    /// Whether nothing can follow.
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Failed | Self::Canceled | Self::Finished)
    }

    /// Flink's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Created => "CREATED",
            Self::Running => "RUNNING",
            Self::Failing => "FAILING",
            Self::Failed => "FAILED",
            Self::Cancelling => "CANCELLING",
            Self::Canceled => "CANCELED",
            Self::Finished => "FINISHED",
            Self::Restarting => "RESTARTING",
        }
    }
}

impl fmt::Display for JobStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The state of one subtask, as `GET /jobs/:id` counts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum TaskStatus {
    /// Not placed yet.
    Created,
    /// Placed; its worker is starting.
    Deploying,
    /// Its worker restores state and opens operators.
    Initializing,
    /// Processing.
    Running,
    /// All input has been processed; the subtask waits for the final checkpoint that commits it.
    Finishing,
    /// Done.
    Finished,
    /// Being stopped on request.
    Canceling,
    /// Stopped on request or because another task failed.
    Canceled,
    /// Ended with an error.
    Failed,
}

impl TaskStatus {
    /// Flink's name. `Finishing` has none there: Flink shows such a task as RUNNING, and so do we.
    pub fn name(self) -> &'static str {
        match self {
            Self::Created => "CREATED",
            Self::Deploying => "DEPLOYING",
            Self::Initializing => "INITIALIZING",
            Self::Running | Self::Finishing => "RUNNING",
            Self::Finished => "FINISHED",
            Self::Canceling => "CANCELING",
            Self::Canceled => "CANCELED",
            Self::Failed => "FAILED",
        }
    }
}

impl fmt::Display for TaskStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
