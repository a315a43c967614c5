//! What several messages are made of.

use flott_control::ExecutionId;
use flott_core::ids::{JobId, SubtaskId};
use flott_core::status::TaskStatus;
use flott_core::{Error, ErrorKind, Result};

use super::{malformed, required};
use crate::wire;

impl From<ExecutionId> for wire::ExecutionId {
    fn from(id: ExecutionId) -> Self {
        Self { job: id.job.0.to_vec(), generation: id.generation }
    }
}

impl TryFrom<wire::ExecutionId> for ExecutionId {
    type Error = Error;

    fn try_from(id: wire::ExecutionId) -> Result<Self> {
        let job = id
            .job
            .as_slice()
            .try_into()
            .map_err(|_| malformed(format_args!("field 'job' has {} bytes instead of 16", id.job.len())))?;
        Ok(Self { job: JobId(job), generation: id.generation })
    }
}

/// The execution of a message that must have one.
pub(crate) fn execution(id: Option<wire::ExecutionId>) -> Result<ExecutionId> {
    ExecutionId::try_from(required(id, "execution")?)
}

impl From<SubtaskId> for wire::SubtaskId {
    fn from(id: SubtaskId) -> Self {
        Self { vertex: id.vertex, index: id.index }
    }
}

/// The subtask of a message that must have one.
pub(super) fn subtask(id: Option<wire::SubtaskId>) -> Result<SubtaskId> {
    let id = required(id, "subtask")?;
    Ok(SubtaskId { vertex: id.vertex, index: id.index })
}

impl From<Error> for wire::Error {
    fn from(error: Error) -> Self {
        let kind = match error.kind {
            ErrorKind::Input => wire::ErrorKind::Input,
            ErrorKind::UserCode => wire::ErrorKind::UserCode,
            ErrorKind::System => wire::ErrorKind::System,
        };
        Self { kind: kind.into(), message: error.message, backtrace: error.backtrace }
    }
}

impl TryFrom<wire::Error> for Error {
    type Error = Error;

    fn try_from(error: wire::Error) -> Result<Self> {
        let kind = match wire::ErrorKind::try_from(error.kind) {
            Ok(wire::ErrorKind::Input) => ErrorKind::Input,
            Ok(wire::ErrorKind::UserCode) => ErrorKind::UserCode,
            Ok(wire::ErrorKind::System) => ErrorKind::System,
            Ok(wire::ErrorKind::Unspecified) | Err(_) => {
                return Err(malformed(format_args!("error kind {} of '{}'", error.kind, error.message)));
            }
        };
        Ok(Self { kind, message: error.message, backtrace: error.backtrace })
    }
}

impl From<TaskStatus> for wire::TaskStatus {
    fn from(status: TaskStatus) -> Self {
        match status {
            TaskStatus::Created => Self::Created,
            TaskStatus::Deploying => Self::Deploying,
            TaskStatus::Initializing => Self::Initializing,
            TaskStatus::Running => Self::Running,
            TaskStatus::Finishing => Self::Finishing,
            TaskStatus::Finished => Self::Finished,
            TaskStatus::Canceling => Self::Canceling,
            TaskStatus::Canceled => Self::Canceled,
            TaskStatus::Failed => Self::Failed,
        }
    }
}

/// The status that a number stands for.
pub(super) fn task_status(number: i32) -> Result<TaskStatus> {
    match wire::TaskStatus::try_from(number) {
        Ok(wire::TaskStatus::Created) => Ok(TaskStatus::Created),
        Ok(wire::TaskStatus::Deploying) => Ok(TaskStatus::Deploying),
        Ok(wire::TaskStatus::Initializing) => Ok(TaskStatus::Initializing),
        Ok(wire::TaskStatus::Running) => Ok(TaskStatus::Running),
        Ok(wire::TaskStatus::Finishing) => Ok(TaskStatus::Finishing),
        Ok(wire::TaskStatus::Finished) => Ok(TaskStatus::Finished),
        Ok(wire::TaskStatus::Canceling) => Ok(TaskStatus::Canceling),
        Ok(wire::TaskStatus::Canceled) => Ok(TaskStatus::Canceled),
        Ok(wire::TaskStatus::Failed) => Ok(TaskStatus::Failed),
        Ok(wire::TaskStatus::Unspecified) | Err(_) => Err(malformed(format_args!("task status {number}"))),
    }
}
