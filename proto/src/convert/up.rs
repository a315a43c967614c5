//! Messages to the JobManager.

use flott_control::{ExecutionId, TaskManagerInfo, Up};
use flott_core::ids::TaskManagerId;
use flott_core::{Error, Result};

use super::common::{execution, subtask, task_status};
use super::{from_json, metrics, required, to_json};
use crate::wire;
use crate::wire::up_message::Kind;

impl TryFrom<Up> for wire::UpMessage {
    type Error = Error;

    fn try_from(up: Up) -> Result<Self> {
        let kind = match up {
            Up::RegisterTaskManager(info) => Kind::RegisterTaskManager(wire::TaskManagerInfo {
                id: info.id.0,
                host: info.host,
                pid: info.pid,
                slots: info.slots,
                platform: info.platform,
                protocol_version: info.protocol_version,
            }),
            Up::RegisterWorker { execution, task_manager, data_address } => {
                Kind::RegisterWorker(wire::RegisterWorker {
                    execution: Some(execution.into()),
                    task_manager: task_manager.0,
                    data_address,
                })
            }
            Up::Heartbeat { execution, metrics } => {
                let (metrics, states) = metrics::to_wire(metrics);
                Kind::Heartbeat(wire::HeartbeatUp { execution: execution.map(Into::into), metrics, states })
            }
            Up::WorkerExited { execution, reason } => {
                Kind::WorkerExited(wire::WorkerExited { execution: Some(execution.into()), reason })
            }
            Up::TaskStatus { execution, subtask, status, error } => Kind::TaskStatus(wire::TaskStatusChanged {
                execution: Some(execution.into()),
                subtask: Some(subtask.into()),
                status: wire::TaskStatus::from(status).into(),
                error: error.map(Into::into),
            }),
            Up::SplitsDiscovered { execution, vertex, splits } => {
                Kind::SplitsDiscovered(wire::SplitsDiscovered { execution: Some(execution.into()), vertex, splits })
            }
            Up::RequestSplit { execution, subtask } => Kind::RequestSplit(wire::RequestSplit {
                execution: Some(execution.into()),
                subtask: Some(subtask.into()),
            }),
            Up::ConnectionLost { execution, error } => Kind::ConnectionLost(wire::ConnectionLost {
                execution: Some(execution.into()),
                error: Some(error.into()),
            }),
            Up::SavepointTaken { execution, subtask, checkpoint } => Kind::SavepointTaken(wire::SavepointTaken {
                execution: Some(execution.into()),
                subtask: Some(subtask.into()),
                checkpoint,
            }),
            Up::CheckpointAcknowledged { execution, subtask, checkpoint, snapshot } => {
                Kind::CheckpointAcknowledged(wire::CheckpointAcknowledged {
                    execution: Some(execution.into()),
                    subtask: Some(subtask.into()),
                    checkpoint,
                    snapshot_json: to_json(&snapshot, "snapshot_json")?,
                })
            }
            Up::CheckpointDeclined { execution, subtask, checkpoint, reason } => {
                Kind::CheckpointDeclined(wire::CheckpointDeclined {
                    execution: Some(execution.into()),
                    subtask: Some(subtask.into()),
                    checkpoint,
                    reason: Some(reason.into()),
                })
            }
        };
        Ok(Self { kind: Some(kind) })
    }
}

impl TryFrom<wire::UpMessage> for Up {
    type Error = Error;

    fn try_from(message: wire::UpMessage) -> Result<Self> {
        Ok(match required(message.kind, "kind")? {
            Kind::RegisterTaskManager(info) => Up::RegisterTaskManager(TaskManagerInfo {
                id: TaskManagerId(info.id),
                host: info.host,
                pid: info.pid,
                slots: info.slots,
                platform: info.platform,
                protocol_version: info.protocol_version,
            }),
            Kind::RegisterWorker(worker) => Up::RegisterWorker {
                execution: execution(worker.execution)?,
                task_manager: TaskManagerId(worker.task_manager),
                data_address: worker.data_address,
            },
            Kind::Heartbeat(heartbeat) => Up::Heartbeat {
                execution: heartbeat.execution.map(ExecutionId::try_from).transpose()?,
                metrics: metrics::from_wire(heartbeat.metrics, heartbeat.states)?,
            },
            Kind::WorkerExited(exited) => {
                Up::WorkerExited { execution: execution(exited.execution)?, reason: exited.reason }
            }
            Kind::TaskStatus(changed) => Up::TaskStatus {
                execution: execution(changed.execution)?,
                subtask: subtask(changed.subtask)?,
                status: task_status(changed.status)?,
                error: changed.error.map(Error::try_from).transpose()?,
            },
            Kind::SplitsDiscovered(discovered) => Up::SplitsDiscovered {
                execution: execution(discovered.execution)?,
                vertex: discovered.vertex,
                splits: discovered.splits,
            },
            Kind::RequestSplit(request) => {
                Up::RequestSplit { execution: execution(request.execution)?, subtask: subtask(request.subtask)? }
            }
            Kind::ConnectionLost(lost) => Up::ConnectionLost {
                execution: execution(lost.execution)?,
                error: Error::try_from(required(lost.error, "error")?)?,
            },
            Kind::SavepointTaken(taken) => Up::SavepointTaken {
                execution: execution(taken.execution)?,
                subtask: subtask(taken.subtask)?,
                checkpoint: taken.checkpoint,
            },
            Kind::CheckpointAcknowledged(acknowledged) => Up::CheckpointAcknowledged {
                execution: execution(acknowledged.execution)?,
                subtask: subtask(acknowledged.subtask)?,
                checkpoint: acknowledged.checkpoint,
                snapshot: from_json(&acknowledged.snapshot_json, "snapshot_json")?,
            },
            Kind::CheckpointDeclined(declined) => Up::CheckpointDeclined {
                execution: execution(declined.execution)?,
                subtask: subtask(declined.subtask)?,
                checkpoint: declined.checkpoint,
                reason: Error::try_from(required(declined.reason, "reason")?)?,
            },
        })
    }
}
