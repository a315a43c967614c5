use flott_checkpoint::{FileHandle, OperatorState, Redistribution};
use flott_core::ids::OperatorId;
use proptest::prelude::*;

use super::*;
use crate::testing::{JOB, config, graph, show, show_message};

mod beside;
mod orphans;

const RUNNING: Progress = Progress { is_running: true, is_finishing: false };
const FINISHING: Progress = Progress { is_running: true, is_finishing: true };
const SUBTASKS: [SubtaskId; 3] =
    [SubtaskId { vertex: 0, index: 0 }, SubtaskId { vertex: 0, index: 1 }, SubtaskId { vertex: 1, index: 0 }];

/// A coordinator whose first execution runs since time 0, and what it wrote last.
struct Bed {
    coordinator: Coordinator,
    splits: BTreeMap<VertexId, SplitAssigner>,
    written: Option<Checkpoint>,
    proposed: Option<CompletedCheckpoint>,
    now_ms: i64,
}

impl Bed {
    fn new(pairs: &[(&str, &str)]) -> Self {
        let settings = Settings::read(&config(pairs)).unwrap();
        let mut coordinator = Coordinator::new(JOB, graph(), settings);
        coordinator.start(0, 1);
        Self { coordinator, splits: BTreeMap::new(), written: None, proposed: None, now_ms: 0 }
    }

    fn every_second() -> Self {
        Self::new(&[("execution.checkpointing.interval", "1 s")])
    }

    fn show(&mut self, actions: Vec<Action>) -> Vec<String> {
        let mut lines = Vec::new();
        for action in actions {
            lines.push(match &action {
                Action::Broadcast(message) => show_message(message).replace(&JOB.to_string(), "JOB"),
                Action::Command(command) => show(command),
                Action::Fail(error) => format!("fail: {error}"),
                Action::Rescale(Ok(())) => "rescale".into(),
                Action::Rescale(Err(error)) => format!("no rescale: {error}"),
            });
            match action {
                Action::Command(Command::WriteManifest(checkpoint)) => self.written = Some(checkpoint),
                Action::Command(Command::Propose(Fact::CheckpointCompleted { checkpoint, .. })) => {
                    self.proposed = Some(checkpoint);
                }
                _ => {}
            }
        }
        lines
    }

    fn tick(&mut self, now_ms: i64, progress: Progress) -> Vec<String> {
        self.now_ms = now_ms;
        let actions = self.coordinator.tick(now_ms, progress, &self.splits);
        self.show(actions)
    }

    fn acknowledge(&mut self, id: CheckpointId) -> Vec<String> {
        let mut actions = Vec::new();
        for subtask in SUBTASKS {
            actions.extend(self.coordinator.acknowledge(subtask, id, SubtaskSnapshot::default()));
        }
        self.show(actions)
    }

    /// All subtasks have taken the savepoint.
    fn take(&mut self, id: CheckpointId) {
        SUBTASKS.into_iter().for_each(|subtask| self.coordinator.taken(subtask, id));
    }

    fn in_progress(&self) -> Vec<CheckpointId> {
        self.coordinator.view().in_progress.iter().map(|pending| pending.id).collect()
    }

    fn written(&mut self) -> Vec<String> {
        let description = describe(self.written.as_ref().unwrap());
        let (generation, id) = (description.generation, description.id);
        let actions = self.coordinator.manifest_written(self.now_ms, generation, id, Ok(description));
        self.show(actions)
    }

    fn committed(&mut self) -> Vec<String> {
        let proposed = self.proposed.take().unwrap();
        let actions = self.coordinator.committed(self.now_ms, proposed);
        self.show(actions)
    }

    /// The whole way of the checkpoint that was triggered.
    fn complete(&mut self, id: CheckpointId) -> Vec<String> {
        self.acknowledge(id);
        self.written();
        self.committed()
    }

    fn savepoint(&mut self, request: RequestId, stop: bool) {
        let wish = Wish::Savepoint { location: format!("s3://s/{request}"), stop, drain: false };
        self.coordinator.request(request, wish).unwrap();
    }

    fn suspend(&mut self, suspension: Suspension) -> Vec<String> {
        let actions = self.coordinator.suspend(self.now_ms, &suspension);
        self.show(actions)
    }

    fn fail(&mut self) -> Vec<String> {
        self.suspend(Suspension::Failed(Error::system("boom")))
    }
}

fn describe(checkpoint: &Checkpoint) -> CompletedCheckpoint {
    CompletedCheckpoint {
        id: checkpoint.manifest.checkpoint,
        generation: checkpoint.manifest.generation,
        location: checkpoint.location.clone(),
        manifest_sha256: String::new(),
        is_savepoint: checkpoint.manifest.is_savepoint,
        ends_job: false,
        triggered_ms: checkpoint.manifest.triggered_ms,
        completed_ms: 0,
        bytes_written: 0,
        bytes_total: 0,
    }
}

#[test]
fn a_checkpoint_goes_from_trigger_to_commit() {
    let mut bed = Bed::every_second();
    assert!(bed.tick(999, RUNNING).is_empty());
    assert_eq!(bed.coordinator.next_deadline(RUNNING), Some(1000));
    assert_eq!(bed.tick(1000, RUNNING), ["trigger 1"]);
    assert!(bed.tick(5000, RUNNING).is_empty(), "one at a time");
    assert_eq!(bed.acknowledge(1), ["write s3://c/JOB/g1/chk-1"]);
    assert!(bed.coordinator.is_settled());
    assert_eq!(bed.written(), ["propose checkpoint 1"]);
    assert!(!bed.coordinator.is_settled());
    assert_eq!(bed.coordinator.latest(), None, "it does not exist before it is committed");
    assert_eq!(bed.committed(), ["complete 1"]);
    assert_eq!(bed.coordinator.latest().map(|latest| latest.id), Some(1));
    let view = bed.coordinator.view();
    assert_eq!((view.triggered, view.completed, view.failed, view.history.len()), (1, 1, 0, 1));
}

#[test]
fn nothing_is_triggered_before_all_tasks_run() {
    let mut bed = Bed::every_second();
    assert!(bed.tick(5000, Progress::default()).is_empty());
    bed.fail();
    assert!(bed.tick(9000, RUNNING).is_empty());
    assert!(bed.coordinator.request(1, Wish::Checkpoint).is_err());
}

#[test]
fn the_manifest_has_all_snapshots_and_the_splits_at_the_trigger() {
    let mut bed = Bed::every_second();
    let mut assigner = SplitAssigner::default();
    assigner.discover(vec![vec![1], vec![2]], 1);
    bed.splits.insert(0, assigner);
    bed.tick(1000, RUNNING);
    bed.splits.get_mut(&0).unwrap().request(0, 2);
    let file = |path: &str| FileHandle { path: path.into(), bytes: 1, sha256: String::new() };
    let location = format!("s3://c/{JOB}/g1/chk-1");
    let snapshot = SubtaskSnapshot {
        keyed_files: vec![file("s3://c/elsewhere/base"), file(&format!("{location}/1-0.state"))],
        operator_states: vec![OperatorState {
            operator: OperatorId([1; 16]),
            name: "offsets".into(),
            redistribution: Redistribution::Split,
            elements: vec![vec![9]],
        }],
        ..SubtaskSnapshot::default()
    };
    let actions = bed.coordinator.acknowledge(SUBTASKS[2], 1, snapshot);
    bed.show(actions);
    bed.acknowledge(1);
    let manifest = &bed.written.as_ref().unwrap().manifest;
    assert_eq!(manifest.vertices[0].unassigned_splits, [[1], [2]], "as they were when it was triggered");
    assert!(manifest.vertices[0].splits_discovered && !manifest.vertices[1].splits_discovered);
    let paths: Vec<&str> = manifest.files().map(|file| file.path.as_str()).collect();
    assert_eq!(paths, ["s3://c/elsewhere/base".to_owned(), format!("{location}/1-0.state")]);
    assert_eq!(manifest.vertices[1].subtasks[0].operator_states[0].elements, [[9]]);
}

#[test]
fn fault_33_an_acknowledgement_after_the_abort_is_ignored() {
    let mut bed = Bed::new(&[
        ("execution.checkpointing.interval", "1 s"),
        ("execution.checkpointing.timeout", "2 s"),
        ("execution.checkpointing.tolerable-failed-checkpoints", "1"),
    ]);
    bed.tick(1000, RUNNING);
    assert_eq!(bed.coordinator.next_deadline(RUNNING), Some(3000));
    assert_eq!(bed.tick(3000, RUNNING), ["abort 1", "trigger 2"]);
    assert!(bed.acknowledge(1).is_empty());
    // What the late subtask wrote goes with the folder of the aborted checkpoint.
    assert_eq!(bed.complete(2), ["complete 2", "delete [] [\"s3://c/JOB/g1/chk-1\"]"]);
}

#[test]
fn too_many_failures_in_a_row_fail_the_job() {
    let mut bed = Bed::new(&[
        ("execution.checkpointing.interval", "1 s"),
        ("execution.checkpointing.tolerable-failed-checkpoints", "1"),
    ]);
    let decline = |bed: &mut Bed, id| {
        let actions = bed.coordinator.decline(bed.now_ms, "Sink (1/1)", id, Error::system("disk full"));
        bed.show(actions)
    };
    bed.tick(1000, RUNNING);
    assert_eq!(decline(&mut bed, 1), ["abort 1"]);
    bed.tick(2000, RUNNING);
    bed.complete(2);
    bed.tick(3000, RUNNING);
    assert_eq!(decline(&mut bed, 3), ["abort 3"]);
    bed.tick(4000, RUNNING);
    assert_eq!(
        decline(&mut bed, 4),
        [
            "abort 4",
            "fail: more checkpoints failed in a row than execution.checkpointing.tolerable-failed-checkpoints (1): checkpoint 4 failed: Sink (1/1) declined it: disk full"
        ]
    );
    assert!(decline(&mut bed, 4).is_empty());
}

#[test]
fn a_manifest_that_cannot_be_written_is_a_failed_checkpoint() {
    let mut bed = Bed::every_second();
    bed.tick(1000, RUNNING);
    bed.acknowledge(1);
    let actions = bed.coordinator.manifest_written(1000, 1, 1, Err(Error::system("disk full")));
    let lines = bed.show(actions);
    assert_eq!(lines[0], "abort 1");
    assert!(lines[1].contains("writing its manifest: disk full"), "{}", lines[1]);
    assert!(bed.written().is_empty(), "fault 2: an answer after that changes nothing");
}

#[test]
fn old_checkpoints_are_dropped_by_the_log_and_then_deleted() {
    let mut bed = Bed::every_second();
    bed.tick(1000, RUNNING);
    bed.complete(1);
    bed.tick(2000, RUNNING);
    assert_eq!(bed.complete(2), ["complete 2", "propose drop 1"]);
    let commands: Vec<String> = bed.coordinator.dropped(1).iter().map(show).collect();
    assert_eq!(commands, [r#"delete [] ["s3://c/JOB/g1/chk-1"]"#]);
}

#[test]
fn the_pause_counts_from_the_end_of_the_last() {
    let mut bed =
        Bed::new(&[("execution.checkpointing.interval", "1 s"), ("execution.checkpointing.min-pause", "3 s")]);
    bed.tick(1000, RUNNING);
    bed.now_ms = 1500;
    bed.complete(1);
    assert!(bed.tick(4499, RUNNING).is_empty());
    assert_eq!(bed.coordinator.next_deadline(RUNNING), Some(4500));
    assert_eq!(bed.tick(4500, RUNNING), ["trigger 2"]);
}

#[test]
fn a_savepoint_waits_for_the_checkpoint_before_it() {
    let mut bed = Bed::every_second();
    bed.tick(1000, RUNNING);
    bed.savepoint(7, false);
    assert!(bed.tick(1001, RUNNING).is_empty());
    bed.complete(1);
    assert_eq!(bed.tick(1002, RUNNING), ["trigger 2 savepoint s3://s/7 stop false"]);
    assert_eq!(bed.complete(2), ["reply 7 completed s3://s/7"]);
}

#[test]
fn a_rescale_waits_for_a_checkpoint_of_its_own() {
    let mut bed = Bed::every_second();
    bed.tick(1000, RUNNING);
    bed.coordinator.request_for_rescale().unwrap();
    assert_eq!(bed.complete(1), ["complete 1"]);
    assert_eq!(bed.tick(1001, RUNNING), ["trigger 2"]);
    assert_eq!(bed.complete(2), ["complete 2", "rescale", "propose drop 1"]);
    bed.suspend(Suspension::Rescaled);
    bed.coordinator.start(1001, 2);

    // A failure of it is not one of the job's.
    bed.coordinator.request_for_rescale().unwrap();
    bed.tick(1002, RUNNING);
    let actions = bed.coordinator.decline(1002, "Sink (1/1)", 3, Error::system("disk full"));
    assert_eq!(bed.show(actions), ["abort 3", "no rescale: checkpoint 3 failed: Sink (1/1) declined it: disk full"]);

    // Nor does anybody hear of it when the rescale was given up, in the queue or under way.
    bed.coordinator.request_for_rescale().unwrap();
    bed.tick(1003, RUNNING);
    bed.coordinator.request_for_rescale().unwrap();
    bed.coordinator.forget_rescale();
    let lines = bed.complete(4);
    assert_eq!(lines[..3], ["complete 4", "propose drop 2", r#"delete [] ["s3://c/JOB/g2/chk-3"]"#]);
    assert!(bed.tick(1004, RUNNING).is_empty());

    bed.coordinator.request_for_rescale().unwrap();
    assert_eq!(bed.fail(), ["no rescale: the job failed: boom"]);
}

#[test]
fn what_waits_behind_a_rescale_is_for_the_next_execution() {
    let mut bed = Bed::every_second();
    bed.coordinator.request_for_rescale().unwrap();
    bed.tick(0, RUNNING);
    bed.savepoint(7, false);
    bed.savepoint(8, true);
    assert_eq!(bed.complete(1), ["complete 1", "rescale"]);
    assert!(bed.tick(5000, RUNNING).is_empty(), "the new parallelism is on its way to the log");
    assert_eq!(bed.coordinator.next_deadline(RUNNING), None);
    assert!(bed.suspend(Suspension::Rescaled).is_empty(), "nobody is refused");
    bed.coordinator.start(5000, 2);
    assert_eq!(bed.tick(5000, RUNNING), ["trigger 2 savepoint s3://s/7 stop false"]);
    assert_eq!(bed.complete(2), ["reply 7 completed s3://s/7"]);
    assert_eq!(bed.tick(5000, RUNNING), ["trigger 3 savepoint s3://s/8 stop true"]);
    let error = bed.coordinator.request_for_rescale().unwrap_err();
    assert_eq!(error.message, "the job is already stopping");

    let mut bed = Bed::every_second();
    bed.coordinator.request_for_rescale().unwrap();
    bed.tick(0, RUNNING);
    bed.savepoint(7, false);
    bed.complete(1);
    bed.suspend(Suspension::Rescaled);
    assert_eq!(bed.fail(), ["reply 7 error: the job failed: boom"], "there is no next execution");
}

#[test]
fn an_aborted_savepoint_is_deleted_when_nobody_writes_to_it_any_more() {
    let mut bed = Bed::new(&[("execution.checkpointing.timeout", "2 s")]);
    bed.savepoint(7, false);
    bed.tick(0, RUNNING);
    let lines = bed.tick(2000, RUNNING);
    assert_eq!(lines[..2], ["abort 1", r#"delete [] ["s3://s/7"]"#], "the execution may run on for long");
    bed.savepoint(8, false);
    bed.tick(2000, RUNNING);
    assert_eq!(bed.fail(), ["reply 8 error: the job failed: boom"]);
    let command = bed.coordinator.delete_aborted(false);
    assert_eq!(command.as_ref().map(show).as_deref(), Some(r#"delete [] ["s3://s/7", "s3://s/8"]"#));
    assert!(bed.coordinator.delete_aborted(false).is_none());
}

#[test]
fn the_next_execution_counts_the_subtasks_of_the_new_parallelism() {
    let mut bed = Bed::every_second();
    bed.coordinator.set_graph(graph().with_parallelism(&[1, 1]));
    bed.suspend(Suspension::Rescaled);
    bed.coordinator.start(0, 2);
    bed.tick(1000, RUNNING);
    let mut actions = bed.coordinator.acknowledge(SUBTASKS[0], 1, SubtaskSnapshot::default());
    actions.extend(bed.coordinator.acknowledge(SUBTASKS[1], 1, SubtaskSnapshot::default()));
    assert!(actions.is_empty(), "there is no second subtask any more");
    let actions = bed.coordinator.acknowledge(SUBTASKS[2], 1, SubtaskSnapshot::default());
    assert_eq!(bed.show(actions), ["write s3://c/JOB/g2/chk-1"]);
}

#[test]
fn the_queue_is_bounded() {
    let mut bed = Bed::every_second();
    for request in 0..QUEUE_MAX as u64 {
        bed.coordinator.request(request, Wish::Checkpoint).unwrap();
    }
    let error = bed.coordinator.request(99, Wish::Checkpoint).unwrap_err();
    assert!(error.to_string().contains("are waiting already"), "{error}");
    assert_eq!(bed.fail().len(), QUEUE_MAX, "all of them are told");
}

#[test]
fn a_stop_is_answered_when_the_job_has_ended() {
    let mut bed = Bed::every_second();
    bed.savepoint(7, true);
    assert_eq!(bed.tick(1, RUNNING), ["trigger 1 savepoint s3://s/7 stop true"]);
    assert!(bed.coordinator.request(8, Wish::Checkpoint).is_err());
    assert_eq!(bed.complete(1), ["complete 1 last"]);
    assert!(bed.coordinator.is_ending());
    assert!(bed.tick(9000, FINISHING).is_empty(), "FLINK-24161: no final checkpoint after it");
    assert!(bed.suspend(Suspension::Finished).is_empty());
    let actions = bed.coordinator.ended(JobStatus::Finished);
    assert_eq!(bed.show(actions)[0], "reply 7 completed s3://s/7");
}

#[test]
fn a_stop_whose_savepoint_fails_fails_the_execution() {
    let mut bed = Bed::new(&[
        ("execution.checkpointing.timeout", "2 s"),
        ("execution.checkpointing.tolerable-failed-checkpoints", "9"),
    ]);
    bed.savepoint(7, true);
    bed.tick(0, RUNNING);
    let reason = "savepoint 1 failed: it was not complete after 2000 ms: 0 of 3 subtasks acknowledged";
    assert_eq!(
        bed.tick(2000, RUNNING),
        ["abort 1".to_owned(), format!("reply 7 error: {reason}"), format!("fail: {reason}")]
    );
}

#[test]
fn fault_34_savepoint_and_cancel_together_are_decided_by_the_log() {
    let mut bed = Bed::every_second();
    bed.savepoint(7, false);
    bed.tick(0, RUNNING);
    bed.acknowledge(1);
    let lines = bed.suspend(Suspension::Cancelled);
    assert_eq!(lines, ["reply 7 error: the job was cancelled"]);
    assert!(bed.coordinator.delete_aborted(false).is_some());
    assert_eq!(bed.written(), [r#"delete [] ["s3://s/7"]"#], "what was written too late goes too");

    let mut bed = Bed::every_second();
    bed.savepoint(7, true);
    bed.tick(0, RUNNING);
    bed.acknowledge(1);
    bed.written();
    assert!(bed.suspend(Suspension::Cancelled).is_empty(), "its proposal came first");
    assert!(bed.committed().is_empty());
    let actions = bed.coordinator.ended(JobStatus::Canceled);
    assert_eq!(bed.show(actions)[0], "reply 7 completed s3://s/7");
}

#[test]
fn fault_35_a_failure_between_savepoint_and_stop_leaves_a_recovery_point() {
    let mut bed = Bed::every_second();
    bed.savepoint(7, true);
    bed.tick(0, RUNNING);
    bed.complete(1);
    let lines = bed.fail();
    assert!(lines[0].starts_with("reply 7 error: the savepoint s3://s/7 is complete, but the job failed"), "{lines:?}");
    assert_eq!(bed.coordinator.latest().map(|latest| latest.is_savepoint), Some(true));

    let mut bed = Bed::every_second();
    bed.savepoint(7, true);
    bed.tick(0, RUNNING);
    bed.acknowledge(1);
    bed.written();
    assert!(bed.fail().is_empty());
    let lines = bed.committed();
    assert!(lines[0].starts_with("reply 7 error: the savepoint s3://s/7 is complete"), "{lines:?}");
}

#[test]
fn fault_32_the_end_of_all_input_triggers_a_final_checkpoint() {
    let mut bed = Bed::every_second();
    bed.tick(1000, RUNNING);
    assert!(bed.tick(1100, FINISHING).is_empty(), "one at a time");
    assert_eq!(bed.complete(1), ["complete 1"]);
    assert_eq!(bed.tick(1100, FINISHING), ["trigger 2 final"]);
    assert_eq!(bed.complete(2)[0], "complete 2 last");
}

#[test]
fn a_new_leader_goes_on_counting() {
    let mut bed = Bed::every_second();
    bed.tick(1000, RUNNING);
    bed.complete(1);
    let latest = bed.coordinator.latest().cloned().unwrap();
    let settings = Settings::read(&config(&[("execution.checkpointing.interval", "1 s")])).unwrap();
    let mut successor = Coordinator::new(JOB, graph(), settings);
    successor.replay_completed(CompletedCheckpoint { id: 3, ..latest.clone() });
    // A savepoint that was triggered before it, and took longer.
    let savepoint = CompletedCheckpoint { id: 2, is_savepoint: true, location: "s3://s/7".into(), ..latest };
    successor.replay_completed(savepoint);
    assert_eq!(successor.latest().map(|latest| latest.id), Some(3));
    successor.start(0, 2);
    bed.coordinator = successor;
    assert_eq!(bed.tick(1000, RUNNING), ["trigger 4"]);
}

#[test]
fn retention_decides_at_the_end() {
    let ended = |retention, status| {
        let mut bed = Bed::new(&[
            ("execution.checkpointing.interval", "1 s"),
            ("execution.checkpointing.externalized-checkpoint-retention", retention),
        ]);
        bed.tick(1000, RUNNING);
        bed.complete(1);
        let is_deletion = |action: &Action| matches!(action, Action::Command(Command::Delete { .. }));
        bed.coordinator.ended(status).iter().any(is_deletion)
    };
    use JobStatus::{Canceled, Failed, Finished};
    for (retention, status, is_deleted) in [
        ("NO_EXTERNALIZED_CHECKPOINTS", Failed, true),
        ("DELETE_ON_CANCELLATION", Failed, false),
        ("DELETE_ON_CANCELLATION", Canceled, true),
        ("RETAIN_ON_CANCELLATION", Canceled, false),
        ("RETAIN_ON_CANCELLATION", Failed, false),
        ("RETAIN_ON_CANCELLATION", Finished, true),
    ] {
        assert_eq!(ended(retention, status), is_deleted, "{retention} {status}");
    }
}

/// One step of a random run. `back` counts from the last checkpoint that was triggered.
#[derive(Clone, Debug)]
enum Op {
    Wait(i64),
    Finishing(bool),
    Take { subtask: usize, back: u64 },
    Acknowledge { subtask: usize, back: u64 },
    Decline { back: u64 },
    Written { is_ok: bool },
    Commit,
    Request(Wish),
    Rescale,
    Switch,
    Restart,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        2 => (0i64..1500).prop_map(Op::Wait),
        1 => any::<bool>().prop_map(Op::Finishing),
        6 => (0usize..3, 0u64..3).prop_map(|(subtask, back)| Op::Take { subtask, back }),
        10 => (0usize..3, 0u64..4).prop_map(|(subtask, back)| Op::Acknowledge { subtask, back }),
        1 => (0u64..4).prop_map(|back| Op::Decline { back }),
        4 => prop::bool::weighted(0.8).prop_map(|is_ok| Op::Written { is_ok }),
        3 => Just(Op::Commit),
        1 => Just(Op::Request(Wish::Checkpoint)),
        1 => any::<bool>()
            .prop_map(|stop| Op::Request(Wish::Savepoint { location: "s3://s/1".into(), stop, drain: false })),
        1 => Just(Op::Rescale),
        2 => Just(Op::Switch),
        1 => Just(Op::Restart),
    ]
}

/// What must hold over any run, checked as it goes.
struct Checked {
    coordinator: Coordinator,
    generation: Generation,
    triggered: CheckpointId,
    /// Those under way, and which subtasks have yet to take them if that lets a checkpoint begin.
    under_way: BTreeMap<CheckpointId, Option<BTreeSet<SubtaskId>>>,
    acknowledged: BTreeMap<CheckpointId, BTreeSet<SubtaskId>>,
    writing: VecDeque<CompletedCheckpoint>,
    proposed: VecDeque<CompletedCheckpoint>,
    durable: BTreeSet<CheckpointId>,
    completed: BTreeSet<CheckpointId>,
    waiting: BTreeSet<RequestId>,
    is_rescaling: bool,
    /// Whether the checkpoint of a rescale is durable, and its execution goes on nevertheless.
    is_switching: bool,
}

impl Checked {
    fn check(&mut self, actions: Vec<Action>) -> Result<bool, TestCaseError> {
        let mut has_failed = false;
        for action in actions {
            match action {
                Action::Broadcast(Down::TriggerCheckpoint { execution, checkpoint, kind, .. }) => {
                    prop_assert!(checkpoint > self.triggered, "numbers only grow");
                    let is_aside =
                        |missing: &Option<BTreeSet<SubtaskId>>| missing.as_ref().is_some_and(BTreeSet::is_empty);
                    prop_assert!(self.under_way.values().all(is_aside), "barriers met");
                    prop_assert!(
                        self.under_way.is_empty() || kind == CheckpointKind::Checkpoint,
                        "{:?} is not alone",
                        kind
                    );
                    let is_savepoint = matches!(kind, CheckpointKind::Savepoint { stop: false, .. });
                    self.under_way.insert(checkpoint, is_savepoint.then(|| SUBTASKS.into()));
                    prop_assert!(!self.is_switching, "triggered after the checkpoint of a rescale");
                    prop_assert_eq!(execution.generation, self.generation);
                    self.triggered = checkpoint;
                }
                Action::Broadcast(Down::CheckpointAborted { checkpoint, .. }) => {
                    prop_assert!(self.under_way.remove(&checkpoint).is_some(), "aborted twice");
                }
                Action::Broadcast(Down::CheckpointCompleted { execution, checkpoint, .. }) => {
                    prop_assert_eq!(execution.generation, self.generation);
                    prop_assert!(self.durable.contains(&checkpoint), "committed before it was durable");
                    prop_assert!(self.completed.insert(checkpoint), "committed twice");
                }
                Action::Command(Command::WriteManifest(checkpoint)) => {
                    let acknowledged = self.acknowledged.get(&checkpoint.manifest.checkpoint);
                    prop_assert_eq!(acknowledged.map_or(0, BTreeSet::len), SUBTASKS.len(), "not all acknowledged");
                    self.writing.push_back(describe(&checkpoint));
                }
                Action::Command(Command::Propose(Fact::CheckpointCompleted { checkpoint, .. })) => {
                    self.proposed.push_back(checkpoint);
                }
                Action::Command(Command::Reply { id, .. }) => {
                    prop_assert!(self.waiting.remove(&id), "answered twice");
                }
                Action::Rescale(outcome) => {
                    prop_assert!(std::mem::take(&mut self.is_rescaling), "told twice");
                    self.is_switching |= outcome.is_ok();
                    prop_assert!(outcome.is_err() || self.under_way.is_empty(), "a rescale is not alone");
                }
                Action::Fail(_) => has_failed = true,
                Action::Broadcast(_) | Action::Command(_) => {}
            }
        }
        Ok(has_failed)
    }

    fn commit(&mut self, now_ms: i64) -> Result<(), TestCaseError> {
        if let Some(checkpoint) = self.proposed.pop_front() {
            prop_assert!(self.durable.insert(checkpoint.id), "proposed twice");
            self.under_way.remove(&checkpoint.id);
            let actions = self.coordinator.committed(now_ms, checkpoint.clone());
            let is_copy = checkpoint.is_savepoint && !checkpoint.ends_job;
            prop_assert_eq!(self.coordinator.latest() == Some(&checkpoint), !is_copy);
            self.check(actions)?;
        }
        Ok(())
    }

    fn restart(&mut self, now_ms: i64) -> Result<(), TestCaseError> {
        let actions = self.coordinator.suspend(now_ms, &Suspension::Failed(Error::system("boom")));
        self.check(actions)?;
        while !self.coordinator.is_settled() {
            prop_assert!(!self.proposed.is_empty(), "nothing would ever settle it");
            self.commit(now_ms)?;
        }
        self.start(now_ms);
        Ok(())
    }

    fn start(&mut self, now_ms: i64) {
        self.generation += 1;
        self.under_way.clear();
        self.is_switching = false;
        self.coordinator.start(now_ms, self.generation);
    }
}

proptest! {
    #[test]
    fn nothing_is_committed_twice_nor_without_all_acknowledgements(ops in prop::collection::vec(op(), 0..120)) {
        let settings = Settings::read(&config(&[
            ("execution.checkpointing.interval", "1 s"),
            ("execution.checkpointing.timeout", "3 s"),
            ("execution.checkpointing.tolerable-failed-checkpoints", "2"),
        ])).unwrap();
        let mut run = Checked {
            coordinator: Coordinator::new(JOB, graph(), settings),
            generation: 1,
            triggered: 0,
            under_way: BTreeMap::new(),
            acknowledged: BTreeMap::new(),
            writing: VecDeque::new(),
            proposed: VecDeque::new(),
            durable: BTreeSet::new(),
            completed: BTreeSet::new(),
            waiting: BTreeSet::new(),
            is_rescaling: false,
            is_switching: false,
        };
        run.coordinator.start(0, 1);
        let (mut now_ms, mut progress, mut requests) = (0, RUNNING, 0);
        for op in ops {
            let mut has_failed = false;
            match op {
                Op::Wait(ms) => now_ms += ms,
                Op::Finishing(is_finishing) => progress.is_finishing = is_finishing,
                Op::Take { subtask, back } => {
                    let (id, subtask) = (run.triggered.saturating_sub(back), SUBTASKS[subtask]);
                    if let Some(Some(missing)) = run.under_way.get_mut(&id) {
                        missing.remove(&subtask);
                    }
                    run.coordinator.taken(subtask, id);
                }
                Op::Acknowledge { subtask, back } => {
                    let (id, subtask) = (run.triggered.saturating_sub(back), SUBTASKS[subtask]);
                    if let Some(Some(missing)) = run.under_way.get_mut(&id) {
                        missing.remove(&subtask);
                    }
                    run.acknowledged.entry(id).or_default().insert(subtask);
                    let actions = run.coordinator.acknowledge(subtask, id, SubtaskSnapshot::default());
                    has_failed |= run.check(actions)?;
                }
                Op::Decline { back } => {
                    let id = run.triggered.saturating_sub(back);
                    let actions = run.coordinator.decline(now_ms, "Sink (1/1)", id, Error::system("no"));
                    has_failed |= run.check(actions)?;
                }
                Op::Written { is_ok } => {
                    if let Some(checkpoint) = run.writing.pop_front() {
                        let (generation, id) = (checkpoint.generation, checkpoint.id);
                        let result = if is_ok { Ok(checkpoint) } else { Err(Error::system("no")) };
                        let actions = run.coordinator.manifest_written(now_ms, generation, id, result);
                        has_failed |= run.check(actions)?;
                    }
                }
                Op::Commit => run.commit(now_ms)?,
                Op::Request(wish) => {
                    requests += 1;
                    if run.coordinator.request(requests, wish).is_ok() {
                        run.waiting.insert(requests);
                    }
                }
                Op::Rescale => {
                    if !run.is_rescaling {
                        run.is_rescaling = run.coordinator.request_for_rescale().is_ok();
                    }
                }
                Op::Switch => {
                    if run.is_switching {
                        prop_assert!(run.coordinator.is_settled());
                        let actions = run.coordinator.suspend(now_ms, &Suspension::Rescaled);
                        prop_assert!(actions.is_empty(), "{:?}", actions);
                        run.start(now_ms);
                    }
                }
                Op::Restart => run.restart(now_ms)?,
            }
            let actions = run.coordinator.tick(now_ms, progress, &BTreeMap::new());
            has_failed |= run.check(actions)?;
            if has_failed {
                run.restart(now_ms)?;
            }
        }
        // Nobody is left without an answer.
        let actions = run.coordinator.suspend(now_ms, &Suspension::Cancelled);
        run.check(actions)?;
        while !run.proposed.is_empty() {
            run.commit(now_ms)?;
        }
        let actions = run.coordinator.ended(JobStatus::Canceled);
        run.check(actions)?;
        prop_assert!(run.waiting.is_empty(), "{:?} were never answered", run.waiting);
        prop_assert!(!run.is_rescaling, "a rescale was never answered");
    }
}
