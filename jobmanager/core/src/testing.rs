//! What the unit tests share: a small job, and commands as short lines.

use flott_control::{CheckpointKind, ClaimMode, Down, Fact, JobSpec};
use flott_core::config::Configuration;
use flott_core::ids::{JobId, OperatorId};
use flott_graph::{JobEdge, JobGraph, JobVertex, OperatorDescriptor, Partitioning};

use crate::api::{Command, Reply};

pub(crate) const JOB: JobId = JobId([0xab; 16]);

/// The configuration of `pairs` over a cluster's with a folder for checkpoints.
pub(crate) fn config(pairs: &[(&str, &str)]) -> Configuration {
    let mut config = Configuration::default();
    config.set("execution.checkpointing.dir", "s3://c").unwrap();
    for (key, value) in pairs {
        config.set(key, value).unwrap();
    }
    config
}

/// `Source: Numbers` with two subtasks to `Sink` with one.
pub(crate) fn graph() -> JobGraph {
    let vertex = |name: &str, id: u8, parallelism| JobVertex {
        name: name.into(),
        operators: vec![OperatorDescriptor {
            id: OperatorId([id; 16]),
            uid: None,
            kind: name.into(),
            name: name.into(),
            node: usize::from(id),
        }],
        parallelism,
        max_parallelism: 128,
        is_source: id == 0,
        is_non_parallel: false,
    };
    JobGraph {
        name: "numbers".into(),
        vertices: vec![vertex("Source: Numbers", 0, 2), vertex("Sink", 1, 1)],
        edges: vec![JobEdge { source: 0, target: 1, partitioning: Partitioning::Rebalance, stream_edge: 0 }],
        config: Configuration::default(),
    }
}

pub(crate) fn spec() -> JobSpec {
    JobSpec {
        graph: graph(),
        artifact: None,
        args: Vec::new(),
        payload: None,
        savepoint: None,
        allow_non_restored_state: false,
        claim_mode: ClaimMode::NoClaim,
    }
}

fn shorten(text: &str) -> String {
    text.replace(&JOB.to_string(), "JOB")
}

/// A command as a short line.
pub(crate) fn show(command: &Command) -> String {
    shorten(&match command {
        Command::Send { session, message } => format!("{session} ← {}", show_message(message)),
        Command::Close { session } => format!("{session} closed"),
        Command::Propose(fact) => match fact {
            Fact::JobSubmitted { .. } => "propose submitted".into(),
            Fact::GenerationStarted { generation, .. } => format!("propose generation {generation}"),
            Fact::JobRescaled { parallelism, .. } => format!("propose parallelism {parallelism:?}"),
            Fact::SavepointRequested { location, .. } => format!("propose savepoint {location}"),
            Fact::CheckpointCompleted { checkpoint, .. } => format!("propose checkpoint {}", checkpoint.id),
            Fact::CheckpointDropped { checkpoint, .. } => format!("propose drop {checkpoint}"),
            Fact::JobEnded { end, .. } => format!("propose {}", end.status),
        },
        Command::Reply { id, reply } => match reply {
            Ok(Reply::Completed(location)) => format!("reply {id} completed {location}"),
            Ok(reply) => format!("reply {id} {reply:?}"),
            Err(error) => format!("reply {id} error: {error}"),
        },
        Command::WriteManifest(checkpoint) => format!("write {}", checkpoint.location),
        Command::LoadManifest { generation, location, .. } => format!("load {location} for generation {generation}"),
        Command::ListFiles { folder, .. } => format!("list {folder}"),
        Command::Delete { files, folders } => format!("delete {files:?} {folders:?}"),
    })
}

/// A message as a short line.
pub(crate) fn show_message(message: &Down) -> String {
    match message {
        Down::Registered { .. } => "registered".into(),
        Down::Refused(error) => format!("refused: {error}"),
        Down::Heartbeat => "heartbeat".into(),
        Down::StartWorker { execution, .. } => format!("start worker {}", execution.generation),
        Down::StopWorker { execution } => format!("stop worker {}", execution.generation),
        Down::Continue { execution, checkpoint, carried } => {
            let mut line = format!("continue {}", execution.generation);
            if let Some(checkpoint) = checkpoint {
                line = format!("{line} from {checkpoint}");
            }
            carried.iter().fold(line, |line, subtask| format!("{line} with {subtask}"))
        }
        Down::Deploy { deployment, .. } => {
            let task = |task: &flott_control::TaskDeployment| {
                let restored = if task.restore.is_some() { " restored" } else { "" };
                format!("{} in slot {}{restored}", task.subtask, task.slot)
            };
            let tasks: Vec<String> = deployment.tasks.iter().map(task).collect();
            format!("deploy {}", tasks.join(", "))
        }
        Down::DiscoverSplits { vertex, .. } => format!("discover {vertex}"),
        Down::AddSplits { subtask, splits, is_last, .. } => format!("splits {splits:?} to {subtask} last {is_last}"),
        Down::TriggerCheckpoint { checkpoint, kind, .. } => match kind {
            CheckpointKind::Checkpoint => format!("trigger {checkpoint}"),
            CheckpointKind::Final => format!("trigger {checkpoint} final"),
            CheckpointKind::Savepoint { dir, stop, .. } => format!("trigger {checkpoint} savepoint {dir} stop {stop}"),
        },
        Down::CheckpointCompleted { checkpoint, is_last, .. } => {
            format!("complete {checkpoint}{}", if *is_last { " last" } else { "" })
        }
        Down::CheckpointAborted { checkpoint, .. } => format!("abort {checkpoint}"),
        Down::CancelTasks { .. } => "cancel".into(),
    }
}
