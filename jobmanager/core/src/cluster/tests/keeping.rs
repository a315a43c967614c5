//! Workers that survive a failure.

use flott_control::WORKER_STOPPED;

use super::*;

const GONE: &str = "signal 9 (SIGKILL)";

fn connection_lost(generation: u64) -> Up {
    let execution = ExecutionId { job: JOB, generation };
    Up::ConnectionLost { execution, error: Error::system("the connection to tm-2:1 was lost") }
}

impl Bed {
    /// The job runs and has taken checkpoint 1, at 1000 ms.
    fn checkpointed(pairs: &[(&str, &str)]) -> Self {
        let mut bed = Self::running(&[&[EVERY_SECOND][..], pairs].concat());
        bed.wait_until(1000);
        bed.acknowledge(WORKERS, 1, 1);
        bed
    }

    fn close(&mut self, session: SessionId) -> Vec<String> {
        self.step(Event::SessionClosed { session })
    }

    /// Generation 2 runs with the workers of generation 1.
    fn continued(pairs: &[(&str, &str)]) -> Self {
        let mut bed = Self::checkpointed(pairs);
        bed.say(3, connection_lost(1));
        bed.wait_until(1100);
        bed.add_worker(3, "tm-1", 2);
        bed.add_worker(4, "tm-2", 2);
        bed.set_all(WORKERS, 2, TaskStatus::Running);
        assert_eq!(bed.status(), JobStatus::Running);
        bed
    }
}

#[test]
fn only_the_lost_worker_is_replaced_and_the_other_continues() {
    let mut bed = Bed::checkpointed(&[]);
    assert_eq!(bed.close(4), ["2 ← stop worker 1"]);
    assert_eq!(bed.status(), JobStatus::Restarting);
    assert_eq!(
        bed.exited(2, 1, GONE),
        ["load s3://c/JOB/g1/chk-1 for generation 2", "propose generation 2", "2 ← start worker 2"],
        "a machine's loss is no reason to wait"
    );
    let message = &bed.job().exceptions[0].message;
    assert!(message.contains("the worker on TaskManager tm-2 was lost") && message.contains(GONE), "{message}");
    assert_eq!(bed.cluster.slots_free(), 0);
    assert_eq!(bed.add_worker(5, "tm-2", 2), ["5 ← registered", "3 ← continue 2 from 1"]);
    assert_eq!(
        bed.add_worker(3, "tm-1", 2),
        [
            "3 ← registered",
            "3 ← deploy 0.0 in slot 0 restored, 1.0 in slot 0 restored",
            "5 ← deploy 0.1 in slot 0 restored"
        ]
    );
    assert_eq!(bed.set_all([3, 5, 3], 2, TaskStatus::Running), ["3 ← discover 0"]);
    assert_eq!(bed.status(), JobStatus::Running);
    // Its TaskManager knows it by the generation that it was started in.
    assert_eq!(bed.close(3), ["1 ← stop worker 1"]);
    assert!(bed.exited(1, 2, GONE).is_empty(), "there is none of that name");
    assert!(bed.exited(1, 1, GONE).is_empty(), "the second restart has its delay");
    assert_eq!(bed.job().exceptions.len(), 2);
}

#[test]
fn what_a_kept_worker_says_of_the_old_generation_changes_nothing() {
    let mut bed = Bed::checkpointed(&[]);
    let execution = ExecutionId { job: JOB, generation: 1 };
    let stale = |bed: &mut Bed| {
        let snapshot = flott_checkpoint::SubtaskSnapshot::default();
        for message in [
            Up::Heartbeat { execution: Some(execution), metrics: Vec::new() },
            Up::RequestSplit { execution, subtask: SUBTASKS[0] },
            Up::SplitsDiscovered { execution, vertex: 0, splits: vec![vec![1]] },
            Up::CheckpointAcknowledged { execution, subtask: SUBTASKS[0], checkpoint: 1, snapshot },
            Up::TaskStatus { execution, subtask: SUBTASKS[0], status: TaskStatus::Finishing, error: None },
            connection_lost(1),
        ] {
            assert!(bed.say(3, message.clone()).is_empty(), "{message:?}");
        }
    };
    bed.close(4);
    stale(&mut bed);
    bed.exited(2, 1, GONE);
    stale(&mut bed);
    bed.add_worker(5, "tm-2", 2);
    stale(&mut bed);
    bed.add_worker(3, "tm-1", 2);
    stale(&mut bed);
    bed.set_all([3, 5, 3], 2, TaskStatus::Running);
    assert_eq!(bed.status(), JobStatus::Running);
}

#[test]
fn a_lost_connection_waits_for_whom_to_blame() {
    let mut bed = Bed::checkpointed(&[]);
    assert!(bed.say(3, connection_lost(1)).is_empty());
    assert_eq!(bed.status(), JobStatus::Restarting);
    assert!(bed.wait_until(1099).is_empty());
    assert_eq!(
        bed.wait_until(1100),
        [
            "load s3://c/JOB/g1/chk-1 for generation 2",
            "propose generation 2",
            "3 ← continue 2 from 1",
            "4 ← continue 2 from 1"
        ],
        "nobody is to blame"
    );

    let mut bed = Bed::checkpointed(&[]);
    bed.say(3, connection_lost(1));
    assert_eq!(bed.close(4), ["2 ← stop worker 1"]);
    let lines = bed.exited(2, 1, GONE);
    assert_eq!(lines[1..], ["propose generation 2", "2 ← start worker 2"]);
    let messages: Vec<String> = bed.job().exceptions.into_iter().map(|exception| exception.message).collect();
    assert!(messages[0].contains("tm-2 was lost") && messages[0].contains(GONE), "{messages:?}");
    assert_eq!(messages[1], "the connection to tm-2:1 was lost");
}

#[test]
fn connections_that_break_again_without_a_checkpoint_between_end_all_workers() {
    let mut bed = Bed::continued(&[]);
    assert_eq!(bed.say(4, connection_lost(2)), ["1 ← stop worker 1", "2 ← stop worker 1"]);

    let mut bed = Bed::continued(&[]);
    assert_eq!(bed.wait_until(2100), ["3 ← trigger 2", "4 ← trigger 2"]);
    bed.acknowledge(WORKERS, 2, 2);
    assert!(bed.say(4, connection_lost(2)).is_empty(), "it has come further");
}

#[test]
fn nobody_is_kept_of_an_execution_that_never_ran() {
    let mut bed = Bed::new(&[RESTART]);
    bed.add_task_manager(1, "tm-1", 1);
    bed.add_task_manager(2, "tm-2", 1);
    bed.submit();
    bed.add_worker(3, "tm-1", 1);
    bed.add_worker(4, "tm-2", 1);
    assert_eq!(bed.close(4), ["1 ← stop worker 1", "2 ← stop worker 1"]);

    let mut bed = Bed::checkpointed(&[]);
    bed.close(4);
    bed.exited(2, 1, GONE);
    bed.add_worker(5, "tm-2", 2);
    assert_eq!(bed.close(3), ["1 ← stop worker 1", "2 ← stop worker 2"], "nor of the next one");
    let lines = bed.add_worker(5, "tm-2", 3);
    assert!(lines[0].contains("5 ← refused: nobody waits for a worker of generation 3"), "{lines:?}");
}

#[test]
fn nobody_is_kept_if_the_option_says_so_or_nobody_is_to_blame() {
    let mut bed = Bed::checkpointed(&[("execution.state-recovery.from-local", "false")]);
    assert_eq!(bed.close(4), ["1 ← stop worker 1", "2 ← stop worker 1"]);

    let mut bed = Bed::running(&[EVERY_SECOND]);
    bed.wait_until(1000);
    let execution = ExecutionId { job: JOB, generation: 1 };
    let reason = Error::system("disk full");
    let lines = bed.say(3, Up::CheckpointDeclined { execution, subtask: SUBTASKS[0], checkpoint: 1, reason });
    assert_eq!(lines[2..], ["1 ← stop worker 1", "2 ← stop worker 1"], "too many checkpoints failed");
}

#[test]
fn a_kept_worker_that_does_not_go_back_in_time_fails_the_next_execution() {
    let mut bed = Bed::checkpointed(&[]);
    bed.say(3, connection_lost(1));
    bed.wait_until(1100);
    bed.add_worker(3, "tm-1", 2);
    let lines = bed.wait_until(11_100);
    assert_eq!(lines, ["1 ← stop worker 1", "2 ← stop worker 1"]);
    let message = &bed.job().exceptions[0].message;
    assert_eq!(message, "the worker on tm-2 did not go back to the checkpoint within 10000 ms");
    let lines = bed.add_worker(4, "tm-2", 2);
    assert!(lines[0].contains("4 ← refused"), "it comes too late: {lines:?}");
}

#[test]
fn kept_workers_hold_their_slots_until_they_are_lost_too() {
    let mut bed = Bed::checkpointed(&[]);
    bed.close(2);
    assert_eq!(bed.cluster.slots_free(), 0, "the survivor's is held");
    assert_eq!(bed.close(3), ["1 ← stop worker 1"]);
    assert_eq!(bed.cluster.slots_free(), 1);
    assert!(bed.job().exceptions[0].message.contains("the worker on TaskManager tm-1 was lost"));
    assert!(bed.exited(1, 1, GONE).is_empty());
    let lines = bed.add_task_manager(5, "tm-3", 1);
    assert_eq!(lines[1..], ["propose generation 2", "1 ← start worker 2", "5 ← start worker 2"]);
}

#[test]
fn a_kept_worker_lost_while_the_next_generation_is_being_logged_is_replaced() {
    let mut bed = Bed::checkpointed(&[]);
    bed.is_log_slow = true;
    bed.close(4);
    bed.exited(2, 1, GONE);
    assert_eq!(bed.close(3), ["1 ← stop worker 1"]);
    assert_eq!(bed.make_durable(), ["1 ← start worker 2", "2 ← start worker 2"]);

    let mut bed = Bed::checkpointed(&[]);
    bed.is_log_slow = true;
    bed.close(4);
    bed.exited(2, 1, GONE);
    bed.close(1);
    let lines = bed.make_durable();
    assert_eq!(bed.status(), JobStatus::Restarting);
    assert!(lines.is_empty(), "generation 2 has no TaskManager for its first slot: {lines:?}");
    assert_eq!(bed.wait_until(1100), ["load s3://c/JOB/g1/chk-1 for generation 3"]);
}

#[test]
fn a_kept_worker_whose_task_fails_after_all_is_stopped() {
    let mut bed = Bed::checkpointed(&[]);
    bed.close(4);
    assert_eq!(bed.set_status(3, 1, 0, TaskStatus::Failed), ["1 ← stop worker 1"]);
    assert!(bed.exited(2, 1, GONE).is_empty(), "it is waited for");
    let lines = bed.exited(1, 1, WORKER_STOPPED);
    assert_eq!(lines[1..], ["propose generation 2", "1 ← start worker 2", "2 ← start worker 2"]);

    let mut bed = Bed::checkpointed(&[]);
    bed.close(2);
    let lines = bed.set_status(3, 1, 0, TaskStatus::Failed);
    assert_eq!(lines[0], "1 ← stop worker 1");
    assert!(lines[1].starts_with("3 ← refused"), "{lines:?}");
}

#[test]
fn kept_workers_are_stopped_when_the_job_is_cancelled_or_fails() {
    let mut bed = Bed::checkpointed(&[]);
    bed.close(2);
    assert_eq!(bed.request(9, Request::Cancel { job: JOB }), ["1 ← stop worker 1", "reply 9 Cancelling"]);
    assert_eq!(bed.exited(1, 1, WORKER_STOPPED)[0], "propose CANCELED");

    let mut bed = Bed::checkpointed(&[]);
    bed.close(4);
    let lines = bed.request(9, Request::Cancel { job: JOB });
    assert_eq!(lines, ["1 ← stop worker 1", "2 ← stop worker 1", "reply 9 Cancelling"]);

    let mut bed = Bed::checkpointed(&[]);
    bed.manifests.clear();
    bed.close(4);
    let lines = bed.exited(2, 1, GONE);
    assert_eq!(lines, ["load s3://c/JOB/g1/chk-1 for generation 2", "1 ← stop worker 1"]);
    assert_eq!(bed.status(), JobStatus::Failing);
    assert_eq!(bed.exited(1, 1, WORKER_STOPPED)[0], "propose FAILED");
}

#[test]
fn who_waits_too_long_for_slots_gives_back_those_that_it_holds() {
    let mut bed = Bed::checkpointed(&[("slot.request.timeout", "2 s")]);
    bed.close(2);
    assert_eq!(bed.wait_until(3000), ["1 ← stop worker 1"]);
    bed.exited(1, 1, WORKER_STOPPED);
    assert_eq!(bed.cluster.slots_free(), 1);
    assert_eq!(bed.status(), JobStatus::Restarting);
}

#[test]
fn a_savepoint_that_failed_is_deleted_when_no_worker_writes_to_it_any_more() {
    let savepoint =
        || Request::Savepoint { job: JOB, target: Some("/s".into()), stop: false, drain: false, suffix: "x".into() };
    let delete = r#"delete [] ["file:///s/savepoint-ababab-x"]"#;
    let mut bed = Bed::checkpointed(&[]);
    bed.request(8, savepoint());
    let mut lines = bed.close(4);
    lines.extend(bed.exited(2, 1, GONE));
    lines.extend(bed.add_worker(5, "tm-2", 2));
    assert!(lines.iter().any(|line| line.starts_with("reply 8 error: ")), "{lines:?}");
    assert!(!lines.iter().any(|line| line == delete), "a kept worker runs on: {lines:?}");
    let lines = bed.add_worker(3, "tm-1", 2);
    assert_eq!(lines[..2], ["3 ← registered", delete]);

    let mut bed = Bed::checkpointed(&[]);
    bed.request(8, savepoint());
    let lines = bed.request(9, Request::Cancel { job: JOB });
    assert_eq!(lines, ["3 ← cancel", "4 ← cancel", "reply 8 error: the job was cancelled", "reply 9 Cancelling"]);
    bed.set_all(WORKERS, 1, TaskStatus::Canceled);
    assert!(bed.exited(1, 1, "killed").is_empty());
    assert_eq!(bed.exited(2, 1, "killed")[..2], [delete, "propose CANCELED"]);
}

#[test]
fn slots_stay_where_they_were() {
    let mut bed = Bed::checkpointed(&[]);
    // It comes first by its id, and would get the first slot.
    bed.add_task_manager(6, "tm-0", 1);
    bed.close(4);
    bed.exited(2, 1, GONE);
    bed.add_worker(5, "tm-2", 2);
    let lines = bed.add_worker(3, "tm-1", 2);
    assert_eq!(lines[1], "3 ← deploy 0.0 in slot 0 restored, 1.0 in slot 0 restored");
}
