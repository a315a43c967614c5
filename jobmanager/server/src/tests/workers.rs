//! A TaskManager and its workers, reduced to the protocol.

use std::sync::Arc;

use flott_checkpoint::SubtaskSnapshot;
use flott_control::{Down, ExecutionId, PROTOCOL_VERSION, StateMetrics, TaskManagerInfo, TaskMetrics, Up};
use flott_core::ids::{OperatorId, SubtaskId, TaskManagerId};
use flott_core::status::TaskStatus;
use flott_proto::Session;

use crate::JobManagerHandle;

/// Registers a TaskManager with so many slots, which plays its part until the JobManager ends.
pub(super) async fn add_task_manager(handle: &Arc<JobManagerHandle>, id: &str, slots: u32) {
    let info = TaskManagerInfo {
        id: TaskManagerId(id.into()),
        host: "localhost".into(),
        pid: 4711,
        slots,
        platform: flott_jobmanager_core::platform(),
        protocol_version: PROTOCOL_VERSION,
    };
    let mut session = handle.connect_embedded().await;
    session.up.send(Up::RegisterTaskManager(info.clone())).await.unwrap();
    assert!(matches!(session.down.recv().await, Some(Down::Registered { .. })));
    flott_env::spawn(task_manager(handle.clone(), session, info.id));
}

async fn task_manager(handle: Arc<JobManagerHandle>, mut session: Session, id: TaskManagerId) {
    while let Some(message) = session.down.recv().await {
        match message {
            Down::StartWorker { execution, .. } => {
                flott_env::spawn(worker(handle.connect_embedded().await, execution, id.clone()));
            }
            Down::StopWorker { execution } => {
                // A JobManager that has ended hears no more.
                let _ = session.up.send(Up::WorkerExited { execution, reason: "stopped".into() }).await;
            }
            _ => {}
        }
    }
}

/// Acknowledges, completes and cancels as it is told, at once.
async fn worker(mut session: Session, mut execution: ExecutionId, task_manager: TaskManagerId) {
    let register = Up::RegisterWorker { execution, task_manager: task_manager.clone(), data_address: String::new() };
    let _ = session.up.send(register).await;
    let mut tasks: Vec<SubtaskId> = Vec::new();
    while let Some(message) = session.down.recv().await {
        let mut answers = Vec::new();
        let status = |status| move |subtask| Up::TaskStatus { execution, subtask, status, error: None };
        match message {
            Down::Deploy { deployment, .. } => {
                tasks = deployment.tasks.iter().map(|task| task.subtask).collect();
                answers.extend(tasks.iter().copied().map(status(TaskStatus::Running)));
                let metrics = tasks.iter().copied().map(metrics).collect();
                answers.push(Up::Heartbeat { execution: Some(execution), metrics });
            }
            Down::Continue { execution: next, .. } => {
                execution = next;
                tasks.clear();
                let task_manager = task_manager.clone();
                answers.push(Up::RegisterWorker { execution, task_manager, data_address: String::new() });
            }
            Down::DiscoverSplits { vertex, .. } => {
                answers.push(Up::SplitsDiscovered { execution, vertex, splits: vec![b"split".to_vec()] });
            }
            Down::TriggerCheckpoint { checkpoint, .. } => {
                answers.extend(tasks.iter().map(|&subtask| {
                    let snapshot = SubtaskSnapshot { sync_micros: 7, ..SubtaskSnapshot::default() };
                    Up::CheckpointAcknowledged { execution, subtask, checkpoint, snapshot }
                }));
            }
            Down::CheckpointCompleted { is_last: true, .. } => {
                answers.extend(tasks.iter().copied().map(status(TaskStatus::Finished)));
            }
            Down::CancelTasks { .. } => answers.extend(tasks.iter().copied().map(status(TaskStatus::Canceled))),
            _ => {}
        }
        for answer in answers {
            let _ = session.up.send(answer).await;
        }
    }
}

fn metrics(subtask: SubtaskId) -> TaskMetrics {
    TaskMetrics {
        subtask,
        records_in: 10,
        records_out: 20,
        bytes_in: 30,
        bytes_out: 40,
        busy_ms: 50,
        idle_ms: 60,
        back_pressured_ms: 70,
        watermark: 80,
        late_records_dropped: 1,
        malformed_records_skipped: 2,
        states: vec![StateMetrics {
            operator: OperatorId([subtask.vertex as u8; 16]),
            name: "sums".to_owned(),
            entries: 100,
            memory_bytes: 1000,
            index_bytes: 10,
            disk_bytes: 500,
        }],
        slot_state_bytes: 2000,
        slot_state_limit: 4000,
    }
}
