use std::collections::BTreeSet;
use std::fmt::Debug;

use flott_checkpoint::{FileHandle, OperatorState, Redistribution, SubtaskSnapshot, TaskRestore};
use flott_control::{
    CheckpointKind, Down, ExecutionId, JobDeployment, StateMetrics, TaskDeployment, TaskManagerInfo, TaskMetrics, Up,
    WorkerAddress,
};
use flott_core::config::Configuration;
use flott_core::ids::{JobId, OperatorId, SubtaskId, TaskManagerId};
use flott_core::status::TaskStatus;
use flott_core::{Error, Result};
use proptest::prelude::*;
use prost::Message;

use crate::wire;

const EXECUTION: ExecutionId = ExecutionId { job: JobId([7; 16]), generation: 3 };
const SUBTASK: SubtaskId = SubtaskId { vertex: 1, index: 2 };

/// Through bytes and back.
fn round_trip<C, W>(value: C)
where
    C: Clone + Debug + PartialEq + TryFrom<W, Error = Error>,
    W: Message + Default + TryFrom<C, Error = Error>,
{
    let bytes = W::try_from(value.clone()).unwrap().encode_to_vec();
    let back = C::try_from(W::decode(bytes.as_slice()).unwrap()).unwrap();
    assert_eq!(back, value);
}

fn config() -> Configuration {
    let mut config = Configuration::default();
    config.set("parallelism.default", "4").unwrap();
    config
}

fn failure() -> Error {
    Error { backtrace: Some("at main".into()), ..Error::user_code("boom") }
}

fn ups() -> Vec<Up> {
    let task_manager = TaskManagerId("tm-1".into());
    let metrics = TaskMetrics {
        subtask: SUBTASK,
        records_in: 1,
        records_out: 2,
        bytes_in: 3,
        bytes_out: u64::MAX,
        busy_ms: 4,
        idle_ms: 5,
        back_pressured_ms: 6,
        watermark: i64::MIN,
        late_records_dropped: 7,
        malformed_records_skipped: 8,
        states: vec![StateMetrics {
            operator: OperatorId([3; 16]),
            name: "sums".into(),
            entries: 9,
            memory_bytes: 10,
            index_bytes: 11,
            disk_bytes: 12,
        }],
        slot_state_bytes: 13,
        slot_state_limit: u64::MAX,
    };
    let snapshot = SubtaskSnapshot {
        keyed_files: vec![FileHandle { path: "a/b".into(), bytes: 5, sha256: "00".into() }],
        keyed_operators: vec![OperatorId([1; 16])],
        keyed_states: vec![],
        channel_state: None,
        operator_states: vec![OperatorState {
            operator: OperatorId([2; 16]),
            name: "offsets".into(),
            redistribution: Redistribution::Union,
            elements: vec![vec![0, 255], vec![]],
        }],
        bytes_written: 1,
        sync_micros: 2,
        total_micros: 3,
        alignment_micros: 4,
    };
    vec![
        Up::RegisterTaskManager(TaskManagerInfo {
            id: task_manager.clone(),
            host: "localhost".into(),
            pid: 12,
            slots: 4,
            platform: "x86_64-linux".into(),
            protocol_version: 1,
        }),
        Up::RegisterWorker { execution: EXECUTION, task_manager, data_address: "localhost:1".into() },
        Up::Heartbeat { execution: None, metrics: vec![] },
        Up::Heartbeat { execution: Some(EXECUTION), metrics: vec![metrics.clone(), metrics] },
        Up::WorkerExited { execution: EXECUTION, reason: "signal 9".into() },
        Up::TaskStatus { execution: EXECUTION, subtask: SUBTASK, status: TaskStatus::Failed, error: Some(failure()) },
        Up::SplitsDiscovered { execution: EXECUTION, vertex: 0, splits: vec![vec![], vec![1, 2]] },
        Up::RequestSplit { execution: EXECUTION, subtask: SUBTASK },
        Up::CheckpointAcknowledged { execution: EXECUTION, subtask: SUBTASK, checkpoint: 9, snapshot },
        Up::CheckpointDeclined { execution: EXECUTION, subtask: SUBTASK, checkpoint: 9, reason: Error::system("full") },
        Up::ConnectionLost { execution: EXECUTION, error: Error::system("reset") },
        Up::SavepointTaken { execution: EXECUTION, subtask: SUBTASK, checkpoint: 9 },
    ]
}

fn downs() -> Vec<Down> {
    let deployment = JobDeployment {
        graph: "vertex 0".into(),
        config: config(),
        checkpoint_dir: "file:///c".into(),
        workers: vec![WorkerAddress { task_manager: TaskManagerId("tm-1".into()), data_address: String::new() }],
        this_worker: 0,
        placement: vec![vec![0, 0]],
        tasks: vec![TaskDeployment { subtask: SUBTASK, slot: 0, restore: Some(TaskRestore::default()) }],
    };
    let trigger = |kind| Down::TriggerCheckpoint { execution: EXECUTION, checkpoint: 4, triggered_ms: -1, kind };
    vec![
        Down::Registered { heartbeat_interval_ms: 500 },
        Down::Refused(Error::input("another version")),
        Down::Heartbeat,
        Down::StartWorker {
            execution: EXECUTION,
            artifact: Some("ab".into()),
            args: vec!["--in".into(), String::new()],
            payload: Some("a plan".into()),
            config: config(),
        },
        Down::StartWorker { execution: EXECUTION, artifact: None, args: vec![], payload: None, config: config() },
        Down::StopWorker { execution: EXECUTION },
        Down::Deploy { execution: EXECUTION, deployment },
        Down::DiscoverSplits { execution: EXECUTION, vertex: 2 },
        Down::AddSplits { execution: EXECUTION, subtask: SUBTASK, splits: vec![vec![9]], is_last: true },
        trigger(CheckpointKind::Checkpoint),
        trigger(CheckpointKind::Final),
        trigger(CheckpointKind::Savepoint { dir: "s3://b/s".into(), stop: true, drain: false }),
        Down::CheckpointCompleted { execution: EXECUTION, checkpoint: 4, is_last: true },
        Down::CheckpointAborted { execution: EXECUTION, checkpoint: 4 },
        Down::CancelTasks { execution: EXECUTION },
        Down::Continue { execution: EXECUTION, checkpoint: Some(3), carried: vec![SUBTASK] },
        Down::Continue { execution: EXECUTION, checkpoint: None, carried: vec![] },
    ]
}

/// A new variant breaks this function's build: give it a number, and an example above.
fn up_number(up: &Up) -> u32 {
    match up {
        Up::RegisterTaskManager(_) => 0,
        Up::RegisterWorker { .. } => 1,
        Up::Heartbeat { .. } => 2,
        Up::WorkerExited { .. } => 3,
        Up::TaskStatus { .. } => 4,
        Up::SplitsDiscovered { .. } => 5,
        Up::RequestSplit { .. } => 6,
        Up::CheckpointAcknowledged { .. } => 7,
        Up::CheckpointDeclined { .. } => 8,
        Up::ConnectionLost { .. } => 9,
        Up::SavepointTaken { .. } => 10,
    }
}

/// See [`up_number`].
fn down_number(down: &Down) -> u32 {
    match down {
        Down::Registered { .. } => 0,
        Down::Refused(_) => 1,
        Down::Heartbeat => 2,
        Down::StartWorker { .. } => 3,
        Down::StopWorker { .. } => 4,
        Down::Deploy { .. } => 5,
        Down::DiscoverSplits { .. } => 6,
        Down::AddSplits { .. } => 7,
        Down::TriggerCheckpoint { .. } => 8,
        Down::CheckpointCompleted { .. } => 9,
        Down::CheckpointAborted { .. } => 10,
        Down::CancelTasks { .. } => 11,
        Down::Continue { .. } => 12,
    }
}

#[test]
fn every_message_arrives_as_it_was_sent() {
    assert_eq!(ups().iter().map(up_number).collect::<BTreeSet<_>>(), (0..11).collect());
    assert_eq!(downs().iter().map(down_number).collect::<BTreeSet<_>>(), (0..13).collect());
    ups().into_iter().for_each(round_trip::<Up, wire::UpMessage>);
    downs().into_iter().for_each(round_trip::<Down, wire::DownMessage>);
}

#[test]
fn every_task_status_arrives_as_it_was_sent() {
    use TaskStatus::*;
    for status in [Created, Deploying, Initializing, Running, Finishing, Finished, Canceling, Canceled, Failed] {
        round_trip::<Up, wire::UpMessage>(Up::TaskStatus {
            execution: EXECUTION,
            subtask: SUBTASK,
            status,
            error: None,
        });
    }
}

#[test]
fn what_is_missing_is_named() {
    let check = |kind: Option<wire::up_message::Kind>, expected: &str| {
        let error = Up::try_from(wire::UpMessage { kind }).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    check(None, "field 'kind' is missing");
    let request = wire::RequestSplit { execution: None, subtask: Some(SUBTASK.into()) };
    check(Some(wire::up_message::Kind::RequestSplit(request)), "field 'execution' is missing");
    let exited = wire::WorkerExited {
        execution: Some(wire::ExecutionId { job: vec![1], generation: 1 }),
        reason: String::new(),
    };
    check(Some(wire::up_message::Kind::WorkerExited(exited)), "field 'job' has 1 bytes instead of 16");
    let acknowledged = wire::CheckpointAcknowledged {
        execution: Some(EXECUTION.into()),
        subtask: Some(SUBTASK.into()),
        checkpoint: 1,
        snapshot_json: b"{".to_vec(),
    };
    check(Some(wire::up_message::Kind::CheckpointAcknowledged(acknowledged)), "field 'snapshot_json'");
}

proptest! {
    #[test]
    fn arbitrary_bytes_are_refused_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _: Option<Result<Up>> = wire::UpMessage::decode(bytes.as_slice()).ok().map(TryInto::try_into);
        let _: Option<Result<Down>> = wire::DownMessage::decode(bytes.as_slice()).ok().map(TryInto::try_into);
    }
}
