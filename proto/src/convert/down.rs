//! Messages from the JobManager.

use flott_control::{CheckpointKind, Down};
use flott_core::{Error, Result};

use super::common::{execution, subtask};
use super::{from_json, required, to_json};
use crate::wire;
use crate::wire::down_message::Kind;
use crate::wire::trigger_checkpoint::Kind as TriggerKind;

impl TryFrom<Down> for wire::DownMessage {
    type Error = Error;

    fn try_from(down: Down) -> Result<Self> {
        let kind = match down {
            Down::Registered { heartbeat_interval_ms } => Kind::Registered(wire::Registered { heartbeat_interval_ms }),
            Down::Refused(error) => Kind::Refused(error.into()),
            Down::Heartbeat => Kind::Heartbeat(wire::HeartbeatDown {}),
            Down::StartWorker { execution, artifact, args, payload, config } => Kind::StartWorker(wire::StartWorker {
                execution: Some(execution.into()),
                artifact,
                args,
                payload,
                config_json: to_json(&config, "config_json")?,
            }),
            Down::StopWorker { execution } => Kind::StopWorker(wire::StopWorker { execution: Some(execution.into()) }),
            Down::Deploy { execution, deployment } => Kind::Deploy(wire::Deploy {
                execution: Some(execution.into()),
                deployment_json: to_json(&deployment, "deployment_json")?,
            }),
            Down::Continue { execution, checkpoint, carried } => Kind::Continue(wire::Continue {
                execution: Some(execution.into()),
                checkpoint,
                carried: carried.into_iter().map(Into::into).collect(),
            }),
            Down::DiscoverSplits { execution, vertex } => {
                Kind::DiscoverSplits(wire::DiscoverSplits { execution: Some(execution.into()), vertex })
            }
            Down::AddSplits { execution, subtask, splits, is_last } => Kind::AddSplits(wire::AddSplits {
                execution: Some(execution.into()),
                subtask: Some(subtask.into()),
                splits,
                is_last,
            }),
            Down::TriggerCheckpoint { execution, checkpoint, triggered_ms, kind } => {
                Kind::TriggerCheckpoint(wire::TriggerCheckpoint {
                    execution: Some(execution.into()),
                    checkpoint,
                    triggered_ms,
                    kind: Some(trigger_kind(kind)),
                })
            }
            Down::CheckpointCompleted { execution, checkpoint, is_last } => {
                Kind::CheckpointCompleted(wire::CheckpointCompleted {
                    execution: Some(execution.into()),
                    checkpoint,
                    is_last,
                })
            }
            Down::CheckpointAborted { execution, checkpoint } => {
                Kind::CheckpointAborted(wire::CheckpointAborted { execution: Some(execution.into()), checkpoint })
            }
            Down::CancelTasks { execution } => {
                Kind::CancelTasks(wire::CancelTasks { execution: Some(execution.into()) })
            }
        };
        Ok(Self { kind: Some(kind) })
    }
}

impl TryFrom<wire::DownMessage> for Down {
    type Error = Error;

    fn try_from(message: wire::DownMessage) -> Result<Self> {
        Ok(match required(message.kind, "kind")? {
            Kind::Registered(registered) => {
                Down::Registered { heartbeat_interval_ms: registered.heartbeat_interval_ms }
            }
            Kind::Refused(error) => Down::Refused(Error::try_from(error)?),
            Kind::Heartbeat(wire::HeartbeatDown {}) => Down::Heartbeat,
            Kind::StartWorker(start) => Down::StartWorker {
                execution: execution(start.execution)?,
                artifact: start.artifact,
                args: start.args,
                payload: start.payload,
                config: from_json(&start.config_json, "config_json")?,
            },
            Kind::StopWorker(stop) => Down::StopWorker { execution: execution(stop.execution)? },
            Kind::Deploy(deploy) => Down::Deploy {
                execution: execution(deploy.execution)?,
                deployment: from_json(&deploy.deployment_json, "deployment_json")?,
            },
            Kind::Continue(message) => Down::Continue {
                execution: execution(message.execution)?,
                checkpoint: message.checkpoint,
                carried: message.carried.into_iter().map(|id| subtask(Some(id))).collect::<Result<_>>()?,
            },
            Kind::DiscoverSplits(discover) => {
                Down::DiscoverSplits { execution: execution(discover.execution)?, vertex: discover.vertex }
            }
            Kind::AddSplits(add) => Down::AddSplits {
                execution: execution(add.execution)?,
                subtask: subtask(add.subtask)?,
                splits: add.splits,
                is_last: add.is_last,
            },
            Kind::TriggerCheckpoint(trigger) => Down::TriggerCheckpoint {
                execution: execution(trigger.execution)?,
                checkpoint: trigger.checkpoint,
                triggered_ms: trigger.triggered_ms,
                kind: checkpoint_kind(required(trigger.kind, "kind")?),
            },
            Kind::CheckpointCompleted(completed) => Down::CheckpointCompleted {
                execution: execution(completed.execution)?,
                checkpoint: completed.checkpoint,
                is_last: completed.is_last,
            },
            Kind::CheckpointAborted(aborted) => {
                Down::CheckpointAborted { execution: execution(aborted.execution)?, checkpoint: aborted.checkpoint }
            }
            Kind::CancelTasks(cancel) => Down::CancelTasks { execution: execution(cancel.execution)? },
        })
    }
}

fn trigger_kind(kind: CheckpointKind) -> TriggerKind {
    match kind {
        CheckpointKind::Checkpoint => TriggerKind::Periodic(wire::PeriodicCheckpoint {}),
        CheckpointKind::Final => TriggerKind::Final(wire::FinalCheckpoint {}),
        CheckpointKind::Savepoint { dir, stop, drain } => TriggerKind::Savepoint(wire::Savepoint { dir, stop, drain }),
    }
}

fn checkpoint_kind(kind: TriggerKind) -> CheckpointKind {
    match kind {
        TriggerKind::Periodic(wire::PeriodicCheckpoint {}) => CheckpointKind::Checkpoint,
        TriggerKind::Final(wire::FinalCheckpoint {}) => CheckpointKind::Final,
        TriggerKind::Savepoint(savepoint) => {
            CheckpointKind::Savepoint { dir: savepoint.dir, stop: savepoint.stop, drain: savepoint.drain }
        }
    }
}
