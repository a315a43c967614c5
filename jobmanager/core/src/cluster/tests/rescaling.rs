//! Another parallelism for a running job.

use flott_checkpoint::SubtaskSnapshot;
use flott_core::ids::VertexId;

use super::*;
use crate::api::Parallelism;

const REACTIVE: (&str, &str) = ("scheduler-mode", "reactive");

fn rescale(parallelism: Parallelism) -> Request {
    Request::Rescale { job: JOB, parallelism }
}

fn savepoint(stop: bool) -> Request {
    Request::Savepoint { job: JOB, target: Some("/s".into()), stop, drain: false, suffix: "x".into() }
}

/// The subtasks of the source, on these sessions, and the sink's.
fn tasks(sessions: &[SessionId]) -> Vec<(SessionId, SubtaskId)> {
    let source = (0..).zip(sessions).map(|(index, &session)| (session, SubtaskId { vertex: 0, index }));
    source.chain([(sessions[0], SubtaskId { vertex: 1, index: 0 })]).collect()
}

impl Bed {
    /// The job of [`Bed::running`], and another TaskManager, session 5, with two slots.
    fn with_room(pairs: &[(&str, &str)]) -> Self {
        let mut bed = Self::running(pairs);
        bed.add_task_manager(5, "tm-3", 2);
        bed
    }

    fn all_run(&mut self, sessions: &[SessionId], generation: u64) -> Vec<String> {
        let run = |(session, subtask)| self.set_task(session, generation, subtask, TaskStatus::Running);
        tasks(sessions).into_iter().flat_map(run).collect()
    }

    fn all_acknowledge(&mut self, sessions: &[SessionId], generation: u64, checkpoint: u64) -> Vec<String> {
        let execution = ExecutionId { job: JOB, generation };
        let acknowledge = |(session, subtask)| {
            let snapshot = SubtaskSnapshot::default();
            self.say(session, Up::CheckpointAcknowledged { execution, subtask, checkpoint, snapshot })
        };
        tasks(sessions).into_iter().flat_map(acknowledge).collect()
    }

    fn parallelism(&self) -> Vec<u32> {
        self.job().spec.graph.vertices.iter().map(|vertex| vertex.parallelism).collect()
    }

    /// What a request is refused with.
    fn refusal(&mut self, request: Request) -> String {
        let lines = self.request(9, request);
        assert_eq!(lines.len(), 1, "{lines:?}");
        lines[0].strip_prefix("reply 9 error: job JOB: ").unwrap_or_else(|| panic!("{lines:?}")).to_owned()
    }
}

const DONE: [&str; 6] = [
    "3 ← complete 1",
    "4 ← complete 1",
    "propose parallelism [4, 1]",
    "load s3://c/JOB/g1/chk-1 for generation 2",
    "propose generation 2",
    "5 ← start worker 2",
];

#[test]
fn two_become_four_and_four_become_two() {
    let mut bed = Bed::with_room(&[]);
    assert_eq!(bed.request(7, rescale(Parallelism::All(4))), ["3 ← trigger 1", "4 ← trigger 1"]);
    assert_eq!(bed.cluster.slots_free(), 0, "they are reserved");
    assert_eq!((bed.job().rescaling_to, bed.parallelism()), (Some(vec![4, 1]), vec![2, 1]));
    let lines = bed.acknowledge(WORKERS, 1, 1);
    assert_eq!(lines[..2], ["write s3://c/JOB/g1/chk-1", "propose checkpoint 1"]);
    assert_eq!(lines[2..], DONE);
    assert_eq!((bed.status(), bed.parallelism()), (JobStatus::Restarting, vec![4, 1]));
    // Those that are there work on until the new one is ready.
    assert_eq!(bed.add_worker(6, "tm-3", 2), ["6 ← registered", "3 ← continue 2 from 1", "4 ← continue 2 from 1"]);
    assert_eq!(bed.add_worker(3, "tm-1", 2), ["3 ← registered"]);
    assert_eq!(
        bed.add_worker(4, "tm-2", 2),
        [
            "4 ← registered",
            "3 ← deploy 0.0 in slot 0 restored, 1.0 in slot 0 restored",
            "6 ← deploy 0.1 in slot 0 restored, 0.3 in slot 1 restored",
            "4 ← deploy 0.2 in slot 0 restored"
        ]
    );
    assert_eq!(bed.all_run(&[3, 6, 4, 6], 2), ["3 ← discover 0", "reply 7 Rescaled([4, 1])"]);
    assert_eq!((bed.status(), bed.job().rescaling_to), (JobStatus::Running, None));
    assert_eq!(bed.job().vertices[0].subtasks.len(), 4);

    assert_eq!(bed.request(8, rescale(Parallelism::All(2))), ["3 ← trigger 2", "6 ← trigger 2", "4 ← trigger 2"]);
    let lines = bed.all_acknowledge(&[3, 6, 4, 6], 2, 2);
    assert!(lines.contains(&"propose parallelism [2, 1]".to_owned()), "{lines:?}");
    assert_eq!(
        lines[lines.len() - 6..],
        [
            "propose generation 3",
            "5 ← stop worker 2",
            "6 ← refused: the job has no subtask for this worker any more",
            "6 closed",
            "3 ← continue 3 from 2",
            "4 ← continue 3 from 2"
        ]
    );
    assert_eq!(bed.cluster.slots_free(), 2);
    bed.add_worker(3, "tm-1", 3);
    bed.add_worker(4, "tm-2", 3);
    let lines = bed.all_run(&[3, 4], 3);
    assert_eq!(lines.last().map(String::as_str), Some("reply 8 Rescaled([2, 1])"));
    assert_eq!(bed.parallelism(), [2, 1]);
}

#[test]
fn a_vertex_can_be_scaled_alone() {
    let mut bed = Bed::with_room(&[]);
    bed.request(7, rescale(Parallelism::Vertices(BTreeMap::from([(1, 2)]))));
    let lines = bed.acknowledge(WORKERS, 1, 1);
    assert_eq!(lines[4], "propose parallelism [2, 2]");
    bed.add_worker(3, "tm-1", 2);
    let lines = bed.add_worker(4, "tm-2", 2);
    assert_eq!(lines[1], "3 ← deploy 0.0 in slot 0 restored, 1.0 in slot 0 restored");
}

#[test]
fn what_cannot_be_is_refused_and_the_job_runs_on() {
    let mut bed = Bed::with_room(&[]);
    let all = |subtasks| rescale(Parallelism::All(subtasks));
    let vertex = |id: VertexId, subtasks| rescale(Parallelism::Vertices(BTreeMap::from([(id, subtasks)])));
    assert_eq!(bed.refusal(all(0)), "vertex 'Source: Numbers' needs at least 1 subtask, not 0");
    assert_eq!(bed.refusal(all(129)), "vertex 'Source: Numbers' cannot have 129 subtasks: its max-parallelism is 128");
    assert_eq!(
        bed.refusal(all(5)),
        "with that parallelism it needs 5 slots, holds 2, 2 of 4 free on 3 TaskManagers: add TaskManagers or slots, or ask for less"
    );
    assert_eq!(bed.refusal(vertex(3, 1)), "there is no vertex 3: the job's are 0 to 1");
    assert_eq!(bed.request(9, all(2)), ["reply 9 Rescaled([2, 1])"], "it is so already");
    assert_eq!((bed.status(), bed.cluster.slots_free()), (JobStatus::Running, 2));

    bed.request(7, all(3));
    assert_eq!(bed.refusal(all(4)), "it is being rescaled already: wait until it is RUNNING again");

    let mut bed = Bed::with_room(&[]);
    bed.request(7, savepoint(true));
    assert_eq!(bed.refusal(all(4)), "the job is already stopping");
    assert_eq!(bed.cluster.slots_free(), 2);

    let mut bed = Bed::new(&[]);
    bed.submit();
    bed.add_task_manager(1, "tm-1", 2);
    assert_eq!(bed.refusal(all(4)), "it is CREATED: try again when it is RUNNING, or waits for slots");
    bed.request(8, Request::Cancel { job: JOB });
    assert_eq!(bed.refusal(all(4)), "it is CANCELLING: start it again, with the parallelism that it is to have");
    let unknown = Request::Rescale { job: JobId([1; 16]), parallelism: Parallelism::All(1) };
    assert!(bed.request(9, unknown)[0].contains("there is no job"));
}

#[test]
fn a_rescale_waits_for_the_checkpoint_before_it() {
    let mut bed = Bed::with_room(&[EVERY_SECOND]);
    bed.wait_until(1000);
    assert!(bed.request(7, rescale(Parallelism::All(4))).is_empty());
    let lines = bed.acknowledge(WORKERS, 1, 1);
    assert_eq!(lines[lines.len() - 2..], ["3 ← trigger 2", "4 ← trigger 2"]);
    let lines = bed.acknowledge(WORKERS, 1, 2);
    assert!(lines.contains(&"propose parallelism [4, 1]".to_owned()), "{lines:?}");
}

/// The job that [`Bed::with_room`] has, rescaled to 4 with a savepoint waiting. Generation 2 is being started.
fn rescaled_before_a_savepoint() -> Bed {
    let mut bed = Bed::with_room(&[RESTART]);
    bed.request(7, rescale(Parallelism::All(4)));
    assert_eq!(bed.request(8, savepoint(false)), ["propose savepoint file:///s/savepoint-ababab-x"]);
    bed.is_log_slow = true;
    bed.acknowledge(WORKERS, 1, 1);
    assert_eq!(bed.make_durable(), DONE[..3], "nothing is triggered before the switch");
    bed.is_log_slow = false;
    assert_eq!(bed.make_durable(), DONE[3..]);
    bed
}

#[test]
fn a_savepoint_behind_a_rescale_is_taken_of_the_next_execution() {
    let mut bed = rescaled_before_a_savepoint();
    bed.add_worker(6, "tm-3", 2);
    bed.add_worker(3, "tm-1", 2);
    bed.add_worker(4, "tm-2", 2);
    let lines = bed.all_run(&[3, 6, 4, 6], 2);
    assert_eq!(lines[..2], ["3 ← discover 0", "reply 7 Rescaled([4, 1])"]);
    assert_eq!(lines[2], "3 ← trigger 2 savepoint file:///s/savepoint-ababab-x stop false");
    let lines = bed.all_acknowledge(&[3, 6, 4, 6], 2, 2);
    assert_eq!(lines.last().map(String::as_str), Some("reply 8 completed file:///s/savepoint-ababab-x"));

    let mut bed = rescaled_before_a_savepoint();
    let lines = bed.step(Event::SessionClosed { session: 5 });
    let refusal = "reply 8 error: the job failed: TaskManager tm-3 was lost";
    assert!(lines.iter().any(|line| line.starts_with(refusal)), "{lines:?}");
}

#[test]
fn a_job_that_waits_for_slots_can_be_rescaled() {
    let waiting = || {
        let mut bed = Bed::running(&[EVERY_SECOND, ("slot.request.timeout", "10 s")]);
        bed.wait_until(1000);
        bed.acknowledge(WORKERS, 1, 1);
        bed.step(Event::SessionClosed { session: 2 });
        assert!(bed.job().waiting_for.is_some());
        bed
    };
    let mut bed = waiting();
    assert_eq!(
        bed.refusal(rescale(Parallelism::All(3))),
        "with that parallelism it needs 3 slots, holds 1, 0 of 1 free on 1 TaskManager: add TaskManagers or slots, or ask for less"
    );
    assert_eq!(
        bed.request(7, rescale(Parallelism::All(1))),
        ["propose parallelism [1, 1]", "propose generation 2", "3 ← continue 2 from 1"],
        "it has a checkpoint"
    );
    assert_eq!(bed.job().rescaling_to, Some(vec![1, 1]));
    let lines = bed.add_worker(3, "tm-1", 2);
    assert_eq!(lines[1], "3 ← deploy 0.0 in slot 0 restored, 1.0 in slot 0 restored");
    assert_eq!(bed.all_run(&[3], 2), ["3 ← discover 0", "reply 7 Rescaled([1, 1])"]);
    assert_eq!((bed.status(), bed.parallelism()), (JobStatus::Running, vec![1, 1]));

    let mut bed = waiting();
    bed.is_log_slow = true;
    assert_eq!(bed.request(7, rescale(Parallelism::All(1))), ["propose parallelism [1, 1]"]);
    assert!(bed.wait_until(20_000).is_empty(), "the log is waited for");
    assert_eq!(bed.make_durable(), ["propose generation 2"]);
    assert_eq!(bed.make_durable(), ["3 ← continue 2 from 1"]);
    let lines = bed.step(Event::SessionClosed { session: 3 });
    let outcome = "reply 7 error: job JOB: it has its new parallelism, but did not get to run with it: the worker on";
    assert!(lines.iter().any(|line| line.starts_with(outcome)), "{lines:?}");
}

#[test]
fn a_job_that_waits_for_its_first_slots_can_be_rescaled() {
    let mut bed = Bed::new(&[]);
    bed.add_task_manager(1, "tm-1", 1);
    bed.submit();
    assert_eq!(
        bed.request(7, rescale(Parallelism::All(1))),
        ["propose parallelism [1, 1]", "propose generation 1", "1 ← start worker 1"]
    );
    bed.add_worker(3, "tm-1", 1);
    assert_eq!(bed.all_run(&[3], 1), ["3 ← discover 0", "reply 7 Rescaled([1, 1])"]);
}

#[test]
fn the_output_of_a_process_is_no_part_of_the_reply() {
    let mut bed = Bed::with_room(&[RESTART]);
    bed.request(7, rescale(Parallelism::All(4)));
    let lines = bed.exited(2, 1, "signal 9 (SIGKILL)\nlast words");
    let reply = lines.iter().find(|line| line.starts_with("reply 7 error: "));
    assert!(reply.is_some_and(|reply| reply.ends_with("tm-2 ended: signal 9 (SIGKILL)")), "{lines:?}");
    assert!(bed.job().exceptions[0].message.ends_with("last words"));
}

#[test]
fn a_rescale_whose_checkpoint_fails_leaves_the_job_as_it_is() {
    let mut bed = Bed::with_room(&[]);
    bed.request(7, rescale(Parallelism::All(4)));
    let execution = ExecutionId { job: JOB, generation: 1 };
    let reason = Error::system("disk full");
    assert_eq!(
        bed.say(3, Up::CheckpointDeclined { execution, subtask: SUBTASKS[0], checkpoint: 1, reason }),
        [
            "3 ← abort 1",
            "4 ← abort 1",
            "reply 7 error: job JOB: it keeps its parallelism: checkpoint 1 failed: Source: Numbers (1/2) declined it: disk full"
        ]
    );
    assert_eq!((bed.status(), bed.cluster.slots_free(), bed.parallelism()), (JobStatus::Running, 2, vec![2, 1]));
    assert_eq!(
        bed.request(8, rescale(Parallelism::All(4))),
        ["3 ← trigger 2", "4 ← trigger 2"],
        "it can be tried again"
    );
}

#[test]
fn a_rescale_is_given_up_when_its_slots_are_lost() {
    let mut bed = Bed::with_room(&[]);
    bed.request(7, rescale(Parallelism::All(4)));
    assert_eq!(
        bed.step(Event::SessionClosed { session: 5 }),
        [
            "reply 7 error: job JOB: it keeps its parallelism: TaskManager tm-3, which has slots for it, was lost: try again"
        ]
    );
    assert_eq!((bed.status(), bed.job().rescaling_to), (JobStatus::Running, None));
    let lines = bed.acknowledge(WORKERS, 1, 1);
    assert_eq!(lines[2..], ["3 ← complete 1", "4 ← complete 1"], "its checkpoint is one like others");
}

#[test]
fn a_failure_before_the_checkpoint_is_durable_keeps_the_old_parallelism() {
    for is_written in [false, true] {
        let mut bed = Bed::with_room(&[RESTART]);
        bed.request(7, rescale(Parallelism::All(4)));
        bed.is_log_slow = true;
        if is_written {
            bed.acknowledge(WORKERS, 1, 1);
        }
        let lines = bed.step(Event::SessionClosed { session: 4 });
        assert_eq!(lines[0], "2 ← stop worker 1");
        assert!(lines[1].starts_with("reply 7 error: job JOB: it keeps its parallelism: "), "{lines:?}");
        assert_eq!(lines.len(), 2);
        let mut lines = bed.exited(2, 1, "killed");
        if is_written {
            assert!(lines.is_empty(), "it waits for what is on its way to the log: {lines:?}");
            lines = bed.make_durable();
            assert_eq!(lines.remove(0), "load s3://c/JOB/g1/chk-1 for generation 2");
        }
        assert_eq!(lines, ["propose generation 2"]);
        assert_eq!(bed.parallelism(), [2, 1]);
        assert_eq!(bed.cluster.slots_free(), 2, "nothing is reserved any more");
    }
}

#[test]
fn a_failure_before_the_new_parallelism_is_durable_is_decided_by_the_log() {
    let mut bed = Bed::with_room(&[RESTART]);
    bed.request(7, rescale(Parallelism::All(4)));
    bed.is_log_slow = true;
    bed.acknowledge(WORKERS, 1, 1);
    assert_eq!(bed.make_durable(), ["3 ← complete 1", "4 ← complete 1", "propose parallelism [4, 1]"]);
    let lines = bed.step(Event::SessionClosed { session: 4 });
    assert!(
        lines[1].starts_with(
            "reply 7 error: job JOB: its new parallelism was being made durable when it failed: the worker on"
        ),
        "{lines:?}"
    );
    assert!(bed.exited(2, 1, "killed").is_empty(), "the log is waited for");
    assert_eq!(bed.cluster.slots_free(), 0, "what was reserved still is");
    assert_eq!(bed.make_durable(), ["load s3://c/JOB/g1/chk-1 for generation 2", "propose generation 2"]);
    assert_eq!(bed.parallelism(), [4, 1]);
    assert_eq!(bed.make_durable(), ["5 ← start worker 2", "2 ← start worker 2"]);
}

#[test]
fn a_failure_after_the_new_parallelism_is_durable_recovers_with_it() {
    let mut bed = Bed::with_room(&[RESTART]);
    bed.request(7, rescale(Parallelism::All(4)));
    bed.acknowledge(WORKERS, 1, 1);
    let lines = bed.step(Event::SessionClosed { session: 5 });
    assert_eq!(lines[..2], ["1 ← stop worker 1", "2 ← stop worker 1"]);
    assert!(lines[2].contains("did not get to run with it: TaskManager tm-3 was lost"), "{lines:?}");
    assert_eq!((bed.parallelism(), bed.job().rescaling_to), (vec![4, 1], None));
    bed.exited(1, 1, "killed");
    bed.exited(2, 1, "killed");
    let waiting_for = bed.job().waiting_for;
    assert_eq!(waiting_for.as_deref(), Some("needs 4 slots, 2 of 2 free on 2 TaskManagers"));
    let lines = bed.add_task_manager(8, "tm-4", 2);
    assert_eq!(lines[1..], ["propose generation 3", "8 ← start worker 3", "1 ← start worker 3", "2 ← start worker 3"]);
}

#[test]
fn a_cancelled_rescale_is_answered() {
    let mut bed = Bed::with_room(&[]);
    bed.request(7, rescale(Parallelism::All(4)));
    let lines = bed.request(8, Request::Cancel { job: JOB });
    assert!(
        lines.contains(&"reply 7 error: job JOB: it keeps its parallelism: the job was cancelled".to_owned()),
        "{lines:?}"
    );

    let mut bed = Bed::with_room(&[]);
    bed.request(7, rescale(Parallelism::All(4)));
    bed.acknowledge(WORKERS, 1, 1);
    let lines = bed.request(8, Request::Cancel { job: JOB });
    assert_eq!(
        lines,
        [
            "reply 7 error: job JOB: it has its new parallelism, but did not get to run with it: the job was cancelled",
            "reply 8 Cancelling",
            "1 ← stop worker 1",
            "5 ← stop worker 2",
            "2 ← stop worker 1"
        ]
    );
    bed.exited(1, 1, "killed");
    bed.exited(2, 1, "killed");
    bed.exited(5, 2, "killed");
    assert_eq!((bed.status(), bed.cluster.slots_free()), (JobStatus::Canceled, 4));
}

#[test]
fn without_local_recovery_all_workers_start_again() {
    let mut bed = Bed::with_room(&[("execution.state-recovery.from-local", "false")]);
    bed.request(7, rescale(Parallelism::All(4)));
    let lines = bed.acknowledge(WORKERS, 1, 1);
    assert_eq!(lines[5..], ["1 ← stop worker 1", "2 ← stop worker 1"]);
    bed.exited(1, 1, "killed");
    let lines = bed.exited(2, 1, "killed");
    assert_eq!(lines[1..], ["propose generation 2", "5 ← start worker 2", "1 ← start worker 2", "2 ← start worker 2"]);
}

#[test]
fn a_new_leader_knows_the_new_parallelism() {
    let mut bed = Bed::with_room(&[]);
    bed.request(7, rescale(Parallelism::All(4)));
    bed.acknowledge(WORKERS, 1, 1);
    bed.replace_leader(&[]);
    assert_eq!(bed.parallelism(), [4, 1]);
    assert_eq!(bed.job().vertices[0].subtasks.len(), 4);
    assert_eq!(bed.job().waiting_for.as_deref(), Some("needs 4 slots, 0 of 0 free on 0 TaskManagers"));
    // The log ends after the rescale, or before it.
    let generation = bed.log.pop();
    assert!(matches!(generation, Some(Fact::GenerationStarted { generation: 2, .. })));
    bed.replace_leader(&[]);
    assert_eq!(bed.parallelism(), [4, 1]);
    bed.log.pop();
    bed.replace_leader(&[]);
    assert_eq!(bed.parallelism(), [2, 1]);
    // Who was given fewer subtasks is still known.
    bed.add_task_manager(1, "tm-1", 4);
    bed.add_worker(3, "tm-1", 2);
    bed.all_run(&[3, 3], 2);
    assert_eq!(bed.request(8, rescale(Parallelism::All(1))), ["3 ← trigger 2"]);
    bed.all_acknowledge(&[3, 3], 2, 2);
    bed.add_worker(3, "tm-1", 3);
    bed.all_run(&[3], 3);
    assert_eq!(bed.parallelism(), [1, 1]);
    bed.request(9, rescale(Parallelism::All(3)));
    assert_eq!(bed.job().rescaling_to, Some(vec![3, 1]));
}

#[test]
fn a_reactive_job_uses_all_slots_from_the_start() {
    let mut bed = Bed::new(&[REACTIVE]);
    bed.submit();
    assert_eq!(bed.job().waiting_for.as_deref(), Some("needs 1 slot, 0 of 0 free on 0 TaskManagers"));
    assert_eq!(
        bed.add_task_manager(1, "tm-1", 3),
        ["1 ← registered", "propose parallelism [3, 1]", "propose generation 1", "1 ← start worker 1"]
    );
    let lines = bed.add_worker(3, "tm-1", 1);
    assert_eq!(lines[1], "3 ← deploy 0.0 in slot 0, 0.1 in slot 1, 0.2 in slot 2, 1.0 in slot 0");
    assert!(bed.refusal(rescale(Parallelism::All(2))).contains("scheduler-mode: reactive"));
}

#[test]
fn a_reactive_job_follows_the_slots_when_they_have_settled() {
    let mut bed = Bed::running(&[REACTIVE, RESTART]);
    bed.add_task_manager(5, "tm-3", 1);
    assert!(bed.wait_until(1500).is_empty());
    bed.add_task_manager(6, "tm-4", 1);
    assert!(bed.wait_until(3499).is_empty(), "it settles anew with each change");
    assert_eq!(bed.wait_until(3500), ["3 ← trigger 1", "4 ← trigger 1"]);
    let lines = bed.acknowledge(WORKERS, 1, 1);
    assert!(lines.contains(&"propose parallelism [4, 1]".to_owned()), "{lines:?}");
    assert_eq!(lines[lines.len() - 2..], ["5 ← start worker 2", "6 ← start worker 2"]);
    bed.add_worker(7, "tm-3", 2);
    bed.add_worker(8, "tm-4", 2);
    bed.add_worker(3, "tm-1", 2);
    bed.add_worker(4, "tm-2", 2);
    bed.all_run(&[3, 7, 4, 8], 2);
    assert_eq!(bed.status(), JobStatus::Running);

    // It does not wait for what is lost.
    let lines = bed.step(Event::SessionClosed { session: 6 });
    assert_eq!(
        lines[2..],
        [
            "load s3://c/JOB/g1/chk-1 for generation 3",
            "propose parallelism [3, 1]",
            "propose generation 3",
            "3 ← continue 3 from 1",
            "4 ← continue 3 from 1",
            "7 ← continue 3 from 1"
        ]
    );
}

#[test]
fn a_reactive_job_tries_again_later() {
    let mut bed = Bed::running(&[REACTIVE]);
    bed.add_task_manager(5, "tm-3", 1);
    assert_eq!(bed.wait_until(2000), ["3 ← trigger 1", "4 ← trigger 1"]);
    let execution = ExecutionId { job: JOB, generation: 1 };
    let reason = Error::system("disk full");
    let lines = bed.say(3, Up::CheckpointDeclined { execution, subtask: SUBTASKS[0], checkpoint: 1, reason });
    assert_eq!(lines, ["3 ← abort 1", "4 ← abort 1"]);
    assert!(bed.wait_until(3999).is_empty());
    assert_eq!(bed.wait_until(4000), ["3 ← trigger 2", "4 ← trigger 2"]);
}
