//! What an operator reads in the JobManager's log: what was decided about jobs, and what made it necessary.

use flott_control::{Fact, Up, WORKER_STOPPED};
use flott_core::status::TaskStatus;
use flott_jobmanager_core::Event;

/// Something was decided.
pub(super) fn decided(fact: &Fact) {
    match fact {
        Fact::JobSubmitted { job, spec, .. } => tracing::info!(%job, name = spec.graph.name, "job accepted"),
        Fact::GenerationStarted { job, generation } => tracing::info!(%job, generation, "execution starts"),
        Fact::JobRescaled { job, parallelism } => tracing::info!(%job, ?parallelism, "job rescaled"),
        Fact::SavepointRequested { job, location } => tracing::debug!(%job, location, "savepoint requested"),
        Fact::CheckpointCompleted { job, checkpoint } => {
            let (id, bytes) = (checkpoint.id, checkpoint.bytes_written);
            tracing::debug!(%job, id, bytes, location = checkpoint.location, "checkpoint completed");
        }
        Fact::CheckpointDropped { job, checkpoint } => tracing::debug!(%job, id = checkpoint, "checkpoint dropped"),
        Fact::JobEnded { job, end } => {
            let reason = end.error.as_ref().map_or("", |error| error.message.as_str());
            tracing::info!(%job, status = %end.status, reason, "job ended");
        }
    }
}

/// Something happened to a process or task that may lead to a decision.
pub(super) fn happened(event: &Event) {
    let Event::Message { message, .. } = event else { return };
    match message {
        Up::RegisterTaskManager(info) => tracing::info!(id = %info.id, slots = info.slots, "TaskManager registers"),
        Up::TaskStatus { execution, subtask, status: TaskStatus::Failed, error } => {
            let reason = error.as_ref().map_or("", |error| error.message.as_str());
            tracing::warn!(job = %execution.job, generation = execution.generation, %subtask, reason, "task failed");
        }
        Up::WorkerExited { execution, reason } if reason != WORKER_STOPPED => {
            tracing::warn!(job = %execution.job, generation = execution.generation, reason, "worker ended");
        }
        Up::ConnectionLost { execution, error } => {
            tracing::warn!(job = %execution.job, generation = execution.generation, %error, "connection lost");
        }
        Up::CheckpointDeclined { execution, subtask, checkpoint, reason } => {
            tracing::warn!(job = %execution.job, %subtask, id = checkpoint, %reason, "checkpoint declined");
        }
        _ => {}
    }
}
