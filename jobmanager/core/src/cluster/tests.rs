use std::collections::VecDeque;

use flott_checkpoint::Manifest;
use flott_control::{CompletedCheckpoint, JobEnd, PROTOCOL_VERSION};
use flott_core::ErrorKind;
use flott_core::ids::SubtaskId;
use flott_core::status::{JobStatus, TaskStatus};

use super::*;
use crate::resources::platform;
use crate::testing::{JOB, config, show, spec};

mod claiming;
mod keeping;
mod regions;
mod rescaling;

const SUBTASKS: [SubtaskId; 3] =
    [SubtaskId { vertex: 0, index: 0 }, SubtaskId { vertex: 0, index: 1 }, SubtaskId { vertex: 1, index: 0 }];

/// A cluster with a log and a store that answer at once.
struct Bed {
    cluster: Cluster,
    now_ms: i64,
    log: Vec<Fact>,
    manifests: BTreeMap<String, Manifest>,
    /// Whether facts become durable one by one, by [`Self::make_durable`].
    is_log_slow: bool,
    proposed: VecDeque<Fact>,
}

impl Bed {
    fn new(pairs: &[(&str, &str)]) -> Self {
        let mut bed = Self {
            cluster: Cluster::new(config(pairs)),
            now_ms: 0,
            log: Vec::new(),
            manifests: BTreeMap::new(),
            is_log_slow: false,
            proposed: VecDeque::new(),
        };
        bed.step(Event::Recovered);
        bed
    }

    /// What happens, without heartbeats.
    fn step(&mut self, event: Event) -> Vec<String> {
        let mut events = vec![event];
        let mut lines = Vec::new();
        while !events.is_empty() {
            for command in self.cluster.step(self.now_ms, events.remove(0)) {
                let line = show(&command);
                if !line.ends_with("heartbeat") {
                    lines.push(line);
                }
                events.extend(self.carry_out(command));
            }
        }
        lines
    }

    fn carry_out(&mut self, command: Command) -> Option<Event> {
        match command {
            Command::Propose(fact) if self.is_log_slow => {
                self.proposed.push_back(fact);
                None
            }
            Command::Propose(fact) => {
                self.log.push(fact.clone());
                Some(Event::Committed(fact))
            }
            Command::WriteManifest(checkpoint) => {
                let manifest = *checkpoint.manifest;
                let description = CompletedCheckpoint {
                    id: manifest.checkpoint,
                    generation: manifest.generation,
                    location: checkpoint.location.clone(),
                    manifest_sha256: "hash".into(),
                    is_savepoint: manifest.is_savepoint,
                    ends_job: false,
                    triggered_ms: manifest.triggered_ms,
                    completed_ms: self.now_ms,
                    bytes_written: 0,
                    bytes_total: 0,
                };
                let (job, generation, checkpoint) = (manifest.job, manifest.generation, manifest.checkpoint);
                self.manifests.insert(description.location.clone(), manifest);
                Some(Event::ManifestWritten { job, generation, checkpoint, result: Ok(description) })
            }
            Command::LoadManifest { job, generation, location, .. } => {
                let result = match self.manifests.get(&location) {
                    Some(manifest) => Ok((location, Box::new(manifest.clone()))),
                    None => Err(Error::input(format!("{location}/_metadata does not exist"))),
                };
                Some(Event::ManifestLoaded { job, generation, result })
            }
            _ => None,
        }
    }

    /// The first fact that was proposed to a slow log is durable.
    fn make_durable(&mut self) -> Vec<String> {
        let fact = self.proposed.pop_front().unwrap();
        self.log.push(fact.clone());
        self.step(Event::Committed(fact))
    }

    /// Another JobManager reads the log.
    fn replace_leader(&mut self, pairs: &[(&str, &str)]) -> Vec<String> {
        self.cluster = Cluster::new(config(pairs));
        for fact in self.log.clone() {
            assert!(self.step(Event::Committed(fact)).is_empty(), "a replay has no effects");
        }
        self.step(Event::Recovered)
    }

    /// Goes through all deadlines up to `now_ms`, while everybody sends heartbeats.
    fn wait_until(&mut self, now_ms: i64) -> Vec<String> {
        let mut lines = Vec::new();
        while let Some(deadline) = self.cluster.next_deadline().filter(|&deadline| deadline <= now_ms) {
            self.now_ms = self.now_ms.max(deadline);
            lines.extend(self.step(Event::Tick));
            for session in 1..20 {
                self.cluster.sessions.heard(self.now_ms, session);
            }
        }
        self.now_ms = now_ms;
        lines.extend(self.step(Event::Tick));
        lines
    }

    fn say(&mut self, session: SessionId, message: Up) -> Vec<String> {
        self.step(Event::Message { session, message })
    }

    fn request(&mut self, id: RequestId, request: Request) -> Vec<String> {
        self.step(Event::Request { id, request })
    }

    fn submit(&mut self) -> Vec<String> {
        self.request(1, Request::Submit { job: JOB, spec: Box::new(spec()) })
    }

    fn add_task_manager(&mut self, session: SessionId, name: &str, slots: u32) -> Vec<String> {
        let info = TaskManagerInfo {
            id: TaskManagerId(name.into()),
            host: "localhost".into(),
            pid: 1,
            slots,
            platform: platform(),
            protocol_version: PROTOCOL_VERSION,
        };
        self.say(session, Up::RegisterTaskManager(info))
    }

    fn add_worker(&mut self, session: SessionId, name: &str, generation: u64) -> Vec<String> {
        let execution = ExecutionId { job: JOB, generation };
        let task_manager = TaskManagerId(name.into());
        self.say(session, Up::RegisterWorker { execution, task_manager, data_address: format!("{name}:1") })
    }

    fn set_status(&mut self, session: SessionId, generation: u64, index: usize, status: TaskStatus) -> Vec<String> {
        self.set_task(session, generation, SUBTASKS[index], status)
    }

    fn set_task(&mut self, session: SessionId, generation: u64, subtask: SubtaskId, status: TaskStatus) -> Vec<String> {
        let execution = ExecutionId { job: JOB, generation };
        let error = (status == TaskStatus::Failed).then(|| Error::user_code("boom"));
        self.say(session, Up::TaskStatus { execution, subtask, status, error })
    }

    /// All tasks in one state; `sessions` are those of the workers of the three tasks.
    fn set_all(&mut self, sessions: [SessionId; 3], generation: u64, status: TaskStatus) -> Vec<String> {
        (0..3).flat_map(|index| self.set_status(sessions[index], generation, index, status)).collect()
    }

    fn acknowledge(&mut self, sessions: [SessionId; 3], generation: u64, checkpoint: u64) -> Vec<String> {
        let execution = ExecutionId { job: JOB, generation };
        (0..3)
            .flat_map(|index| {
                let (subtask, snapshot) = (SUBTASKS[index], flott_checkpoint::SubtaskSnapshot::default());
                let message = Up::CheckpointAcknowledged { execution, subtask, checkpoint, snapshot };
                self.say(sessions[index], message)
            })
            .collect()
    }

    fn exited(&mut self, session: SessionId, generation: u64, reason: &str) -> Vec<String> {
        let execution = ExecutionId { job: JOB, generation };
        self.say(session, Up::WorkerExited { execution, reason: reason.into() })
    }

    fn job(&self) -> JobView {
        self.cluster.job(JOB).unwrap()
    }

    fn status(&self) -> JobStatus {
        self.job().status
    }

    /// A job that runs on two TaskManagers, sessions 1 and 2, with workers 3 and 4.
    fn running(pairs: &[(&str, &str)]) -> Self {
        let mut bed = Self::new(pairs);
        bed.add_task_manager(1, "tm-1", 1);
        bed.add_task_manager(2, "tm-2", 1);
        bed.submit();
        bed.run_generation(1);
        bed
    }

    fn run_generation(&mut self, generation: u64) {
        for session in [3, 4] {
            self.step(Event::SessionClosed { session });
        }
        self.add_worker(3, "tm-1", generation);
        self.add_worker(4, "tm-2", generation);
        self.set_all(WORKERS, generation, TaskStatus::Running);
        assert_eq!(self.status(), JobStatus::Running);
    }
}

const WORKERS: [SessionId; 3] = [3, 4, 3];
const EVERY_SECOND: (&str, &str) = ("execution.checkpointing.interval", "1 s");
const NO_RESTART: (&str, &str) = ("restart-strategy.type", "none");
const RESTART: (&str, &str) = ("restart-strategy.type", "exponential-delay");

#[test]
fn a_job_runs_from_submission_to_its_end() {
    let mut bed = Bed::new(&[EVERY_SECOND]);
    assert_eq!(bed.add_task_manager(1, "tm-1", 2), ["1 ← registered"]);
    assert_eq!(bed.submit(), ["propose submitted", "reply 1 Submitted", "propose generation 1", "1 ← start worker 1"]);
    assert_eq!((bed.cluster.slots_total(), bed.cluster.slots_free()), (2, 0));
    assert_eq!(
        bed.add_worker(2, "tm-1", 1),
        ["2 ← registered", "2 ← deploy 0.0 in slot 0, 0.1 in slot 1, 1.0 in slot 0"]
    );
    let workers = [2, 2, 2];
    assert!(bed.set_all(workers, 1, TaskStatus::Initializing).is_empty());
    assert_eq!(bed.status(), JobStatus::Created);
    assert_eq!(bed.set_all(workers, 1, TaskStatus::Running), ["2 ← discover 0"]);
    assert_eq!(bed.status(), JobStatus::Running);
    let execution = ExecutionId { job: JOB, generation: 1 };
    let request = |index| Up::RequestSplit { execution, subtask: SUBTASKS[index] };
    assert!(bed.say(2, request(1)).is_empty());
    let discovered = Up::SplitsDiscovered { execution, vertex: 0, splits: vec![vec![7]] };
    assert_eq!(bed.say(2, discovered), ["2 ← splits [[7]] to 0.1 last false"]);
    assert_eq!(bed.say(2, request(0)), ["2 ← splits [] to 0.0 last true"]);
    assert_eq!(bed.set_all(workers, 1, TaskStatus::Finishing), ["2 ← trigger 1 final"]);
    assert_eq!(
        bed.acknowledge(workers, 1, 1),
        ["write s3://c/JOB/g1/chk-1", "propose checkpoint 1", "2 ← complete 1 last"]
    );
    assert_eq!(bed.set_all(workers, 1, TaskStatus::Finished), ["1 ← stop worker 1"]);
    assert_eq!(bed.exited(1, 1, "exit code 0"), ["propose FINISHED", r#"delete [] ["s3://c/JOB"]"#, "propose drop 1"]);
    let job = bed.job();
    assert_eq!((job.status, job.exceptions.len()), (JobStatus::Finished, 0));
    assert_eq!(job.vertices[0].subtasks[1].status, TaskStatus::Finished);
    assert_eq!(bed.cluster.slots_free(), 2);
}

#[test]
fn a_job_without_slots_waits_and_says_the_numbers_and_times_out() {
    let mut bed = Bed::new(&[("slot.request.timeout", "10 s")]);
    bed.add_task_manager(1, "tm-1", 1);
    assert_eq!(bed.submit(), ["propose submitted", "reply 1 Submitted"]);
    assert_eq!(bed.job().waiting_for.as_deref(), Some("needs 2 slots, 1 of 1 free on 1 TaskManager"));
    assert!(bed.wait_until(9_999).is_empty());
    assert_eq!(bed.wait_until(10_000)[0], "propose FAILED");
    let job = bed.job();
    assert_eq!(job.status, JobStatus::Failed);
    assert!(job.exceptions[0].message.contains("needs 2 slots, 1 of 1 free on 1 TaskManager, after 10000 ms"));
}

#[test]
fn a_lost_task_manager_restarts_the_job_from_its_latest_checkpoint() {
    let mut bed = Bed::running(&[EVERY_SECOND]);
    assert_eq!(bed.wait_until(1000), ["3 ← trigger 1", "4 ← trigger 1"]);
    bed.acknowledge(WORKERS, 1, 1);
    let lines = bed.step(Event::SessionClosed { session: 2 });
    assert_eq!(lines[0], "4 ← refused: its TaskManager was lost");
    assert_eq!(lines[1..], ["4 closed", "load s3://c/JOB/g1/chk-1 for generation 2"]);
    assert_eq!(bed.status(), JobStatus::Restarting);
    let waiting_for = bed.job().waiting_for;
    assert_eq!(waiting_for.as_deref(), Some("needs 2 slots, holds 1, 0 of 1 free on 1 TaskManager"));
    assert_eq!(bed.add_task_manager(5, "tm-3", 1), ["5 ← registered", "propose generation 2", "5 ← start worker 2"]);
    let stale = bed.add_worker(6, "tm-3", 1);
    assert!(stale[0].starts_with("6 ← refused: nobody waits for a worker of generation 1"), "{stale:?}");
    assert_eq!(stale[1], "6 closed");
    assert_eq!(bed.add_worker(7, "tm-3", 2), ["7 ← registered", "3 ← continue 2 from 1"]);
    assert_eq!(
        bed.add_worker(3, "tm-1", 2),
        [
            "3 ← registered",
            "3 ← deploy 0.0 in slot 0 restored, 1.0 in slot 0 restored",
            "7 ← deploy 0.1 in slot 0 restored"
        ]
    );
    let checkpoints = bed.job().checkpoints;
    assert_eq!(checkpoints.latest_restored.map(|checkpoint| checkpoint.id), Some(1));
    assert!(bed.job().exceptions[0].message.contains("TaskManager tm-2 was lost: its connection was closed"));
}

#[test]
fn a_silent_task_manager_is_lost_after_the_timeout() {
    let mut bed = Bed::new(&[]);
    bed.add_task_manager(1, "tm-1", 1);
    while bed.now_ms < 5000 {
        bed.now_ms = bed.cluster.next_deadline().unwrap();
        bed.step(Event::Tick);
    }
    assert!(bed.cluster.task_managers().is_empty());
}

#[test]
fn fault_13_a_failed_task_is_named_and_the_job_restarts_or_fails() {
    let mut bed = Bed::running(&[NO_RESTART]);
    let lines = bed.set_status(4, 1, 1, TaskStatus::Failed);
    assert_eq!(lines, ["1 ← stop worker 1", "2 ← stop worker 1"]);
    assert_eq!(bed.status(), JobStatus::Failing);
    bed.exited(1, 1, "killed");
    assert_eq!(bed.exited(2, 1, "killed")[0], "propose FAILED");
    let job = bed.job();
    assert_eq!(job.exceptions[0].message, "Source: Numbers (2/2): boom");
    assert_eq!(job.exceptions[0].task.as_deref(), Some("Source: Numbers (2/2)"));
    assert_eq!(job.exceptions[0].task_manager, Some(TaskManagerId("tm-2".into())));

    let mut bed = Bed::running(&[RESTART]);
    assert_eq!(bed.set_status(4, 1, 1, TaskStatus::Failed), ["2 ← stop worker 1"]);
    assert!(bed.exited(2, 1, "killed").is_empty());
    assert_eq!(bed.wait_until(100), ["propose generation 2", "2 ← start worker 2"]);
    assert_eq!(bed.add_worker(5, "tm-2", 2), ["5 ← registered", "3 ← continue 2"]);
    bed.add_worker(3, "tm-1", 2);
    bed.set_all([3, 5, 3], 2, TaskStatus::Running);
    assert_eq!(bed.status(), JobStatus::Running);
}

#[test]
fn wrong_input_is_not_tried_again() {
    let mut bed = Bed::running(&[]);
    let execution = ExecutionId { job: JOB, generation: 1 };
    let error = Some(Error::input("orders.csv:3: not a number"));
    bed.say(3, Up::TaskStatus { execution, subtask: SUBTASKS[0], status: TaskStatus::Failed, error });
    assert_eq!(bed.status(), JobStatus::Failing);
    bed.exited(1, 1, "killed");
    bed.exited(2, 1, "killed");
    assert_eq!(bed.status(), JobStatus::Failed);
    match bed.log.last() {
        Some(Fact::JobEnded { end: JobEnd { error: Some(error), .. }, .. }) => {
            assert_eq!(error.kind, ErrorKind::Input);
            assert!(error.message.contains("orders.csv:3"));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_crashed_worker_is_explained_by_its_task_manager() {
    let mut bed = Bed::running(&[NO_RESTART]);
    bed.step(Event::SessionClosed { session: 3 });
    assert_eq!(bed.status(), JobStatus::Failing);
    bed.exited(2, 1, "killed");
    assert!(bed.log.iter().all(|fact| !matches!(fact, Fact::JobEnded { .. })), "it waits for the explanation");
    bed.exited(1, 1, "signal 11 (SIGSEGV)");
    assert_eq!(bed.status(), JobStatus::Failed);
    let message = &bed.job().exceptions[0].message;
    assert!(message.contains("the worker on TaskManager tm-1 was lost"), "{message}");
    assert!(message.contains("signal 11 (SIGSEGV)"), "{message}");
}

#[test]
fn a_cancelled_job_stops_its_tasks_and_then_its_workers() {
    let mut bed = Bed::running(&[]);
    assert_eq!(bed.request(9, Request::Cancel { job: JOB }), ["3 ← cancel", "4 ← cancel", "reply 9 Cancelling"]);
    assert_eq!(bed.status(), JobStatus::Cancelling);
    assert_eq!(bed.set_all(WORKERS, 1, TaskStatus::Canceled), ["1 ← stop worker 1", "2 ← stop worker 1"]);
    bed.exited(1, 1, "killed");
    assert_eq!(bed.exited(2, 1, "killed")[0], "propose CANCELED");
    assert_eq!(bed.status(), JobStatus::Canceled);
    let again = bed.request(10, Request::Cancel { job: JOB });
    assert!(again[0].contains("is at its end already: CANCELED"), "{again:?}");
}

#[test]
fn a_job_is_withdrawn_only_while_nothing_of_it_counts() {
    let mut bed = Bed::running(&[EVERY_SECOND]);
    let withdraw = || Request::Withdraw { job: JOB };
    assert_eq!(bed.request(9, withdraw())[2], "reply 9 Cancelling");
    let mut bed = Bed::running(&[EVERY_SECOND]);
    bed.wait_until(1000);
    bed.is_log_slow = true;
    bed.acknowledge(WORKERS, 1, 1);
    let lines = bed.request(9, withdraw());
    assert!(lines[0].contains("on its way to the log"), "nobody knows yet: {lines:?}");
    bed.make_durable();
    let lines = bed.request(10, withdraw());
    assert!(lines[0].contains("checkpoint 1 is complete"), "{lines:?}");
    assert_eq!(bed.status(), JobStatus::Running);
}

#[test]
fn a_submission_that_is_repeated_is_the_same_one() {
    let mut bed = Bed::new(&[]);
    bed.is_log_slow = true;
    assert_eq!(bed.submit(), ["propose submitted"]);
    let again = || Request::Submit { job: JOB, spec: Box::new(spec()) };
    assert!(bed.request(2, again()).is_empty(), "it waits with the first one");
    assert_eq!(bed.make_durable(), ["reply 1 Submitted", "reply 2 Submitted"]);
    assert_eq!(bed.request(3, again()), ["reply 3 Submitted"]);
    bed.replace_leader(&[]);
    assert_eq!(bed.request(4, again()), ["reply 4 Submitted"]);
    assert_eq!(bed.cluster.jobs().len(), 1);
}

#[test]
fn tasks_that_do_not_cancel_are_ended_by_force() {
    let mut bed = Bed::running(&[]);
    bed.request(9, Request::Cancel { job: JOB });
    assert_eq!(bed.wait_until(5000), ["1 ← stop worker 1", "2 ← stop worker 1"]);
    let lines = bed.wait_until(10_000);
    assert!(lines.contains(&"propose CANCELED".to_owned()), "even if nobody answers: {lines:?}");
}

#[test]
fn fault_28_a_checkpoint_that_cannot_be_read_fails_the_job_loudly() {
    let mut bed = Bed::running(&[EVERY_SECOND]);
    bed.wait_until(1000);
    bed.acknowledge(WORKERS, 1, 1);
    bed.manifests.clear();
    bed.set_status(4, 1, 1, TaskStatus::Failed);
    bed.exited(1, 1, "killed");
    bed.exited(2, 1, "killed");
    assert_eq!(bed.wait_until(1100)[..2], ["load s3://c/JOB/g1/chk-1 for generation 2", "propose FAILED"]);
    let message = &bed.job().exceptions[0].message;
    assert!(message.starts_with("restoring checkpoint 1 in "), "{message}");
    assert!(message.ends_with("chk-1/_metadata does not exist"), "{message}");
}

#[test]
fn a_wrong_savepoint_path_fails_the_job_before_it_runs() {
    let mut bed = Bed::new(&[]);
    let spec = JobSpec { savepoint: Some("/nowhere".into()), ..spec() };
    let lines = bed.request(1, Request::Submit { job: JOB, spec: Box::new(spec) });
    assert_eq!(lines[1..4], ["reply 1 Submitted", "load /nowhere for generation 1", "propose FAILED"]);
    assert!(bed.job().exceptions[0].message.starts_with("restoring savepoint /nowhere: "));
}

#[test]
fn fault_1_a_new_leader_restores_the_last_committed_checkpoint() {
    let mut bed = Bed::running(&[EVERY_SECOND]);
    bed.wait_until(1000);
    bed.acknowledge(WORKERS, 1, 1);
    bed.wait_until(2000);
    assert_eq!(bed.replace_leader(&[EVERY_SECOND]), ["load s3://c/JOB/g1/chk-1 for generation 2"]);
    assert!(bed.add_worker(3, "tm-1", 1)[0].contains("refused"));
    bed.add_task_manager(1, "tm-1", 1);
    let lines = bed.add_task_manager(2, "tm-2", 1);
    assert_eq!(lines[1..], ["propose generation 2", "1 ← start worker 2", "2 ← start worker 2"]);
    bed.run_generation(2);
    assert_eq!(bed.wait_until(3000), ["3 ← trigger 2", "4 ← trigger 2"]);
}

#[test]
fn a_new_leader_shows_the_checkpoints_that_the_log_knows() {
    let mut bed = Bed::running(&[EVERY_SECOND]);
    let savepoint =
        Request::Savepoint { job: JOB, target: Some("/s".into()), stop: false, drain: false, suffix: "x".into() };
    bed.request(7, savepoint);
    bed.acknowledge(WORKERS, 1, 1);
    for checkpoint in 2..=40_i64 {
        bed.wait_until((checkpoint - 1) * 1000);
        bed.acknowledge(WORKERS, 1, checkpoint.unsigned_abs());
    }
    let latest = |bed: &Bed| {
        let view = bed.job().checkpoints;
        let completed = view.latest_completed.map(|checkpoint| (checkpoint.id, checkpoint.subtasks));
        let savepoint = view.latest_savepoint.and_then(|savepoint| savepoint.outcome.ok());
        let history: Vec<u64> = view.history.iter().map(|checkpoint| checkpoint.id).collect();
        (view.triggered, view.completed, completed, savepoint.map(|savepoint| savepoint.location), history)
    };
    let history: Vec<u64> = (9..=40).rev().collect();
    let expected = (40, 40, Some((40, 3)), Some("file:///s/savepoint-ababab-x".to_owned()), history);
    assert_eq!(latest(&bed), expected);
    bed.replace_leader(&[EVERY_SECOND]);
    assert_eq!(latest(&bed), expected);
}

#[test]
fn a_savepoint_that_the_last_leader_did_not_complete_is_deleted_by_the_next_one() {
    let mut bed = Bed::running(&[EVERY_SECOND]);
    let savepoint = |suffix: &str| Request::Savepoint {
        job: JOB,
        target: Some("/s".into()),
        stop: false,
        drain: false,
        suffix: suffix.into(),
    };
    bed.request(7, savepoint("x"));
    bed.acknowledge(WORKERS, 1, 1);
    bed.request(8, savepoint("y"));
    bed.replace_leader(&[EVERY_SECOND]);
    bed.add_task_manager(1, "tm-1", 1);
    bed.add_task_manager(2, "tm-2", 1);
    bed.run_generation(2);
    assert_eq!(bed.wait_until(1000), ["3 ← trigger 2", "4 ← trigger 2"]);
    let lines = bed.acknowledge(WORKERS, 2, 2);
    assert_eq!(lines[lines.len() - 2..], [r#"delete [] ["file:///s/savepoint-ababab-y"]"#, "list s3://c/JOB"]);
    let found = vec![format!("s3://c/{JOB}/g1/chk-1/0-0.state"), format!("s3://c/{JOB}/g2/chk-2/_metadata")];
    let lines = bed.step(Event::FilesListed { job: JOB, result: Ok(found) });
    assert_eq!(lines, [r#"delete [] ["s3://c/JOB/g1/chk-1"]"#]);
    let lines = bed.step(Event::FilesListed { job: JOB, result: Err(Error::system("503 Slow Down")) });
    assert!(lines.is_empty(), "{lines:?}");
}

#[test]
fn fault_5_a_job_that_ended_never_runs_again() {
    let mut bed = Bed::running(&[NO_RESTART]);
    bed.set_status(4, 1, 1, TaskStatus::Failed);
    bed.exited(1, 1, "killed");
    bed.exited(2, 1, "killed");
    assert!(bed.replace_leader(&[]).is_empty());
    bed.add_task_manager(1, "tm-1", 2);
    assert_eq!(bed.status(), JobStatus::Failed);
    assert!(bed.job().exceptions[0].message.contains("boom"));
}

#[test]
fn a_task_manager_that_registers_again_replaces_itself() {
    let mut bed = Bed::running(&[RESTART]);
    let lines = bed.add_task_manager(5, "tm-1", 1);
    assert!(lines.contains(&"1 closed".to_owned()), "{lines:?}");
    assert_eq!(lines[lines.len() - 3..], ["5 ← registered", "propose generation 2", "5 ← start worker 2"]);
    assert_eq!(bed.status(), JobStatus::Restarting);
    assert_eq!(bed.cluster.task_managers().len(), 2);
}

#[test]
fn strangers_are_refused() {
    let mut bed = Bed::new(&[]);
    let heartbeat = Up::Heartbeat { execution: None, metrics: Vec::new() };
    assert_eq!(bed.say(1, heartbeat), ["1 ← refused: this session is not registered", "1 closed"]);
    let lines = bed.add_worker(2, "tm-1", 1);
    assert!(lines[0].contains("does not know job"), "{lines:?}");
}

#[test]
fn a_stop_with_savepoint_ends_the_job_and_answers() {
    let mut bed = Bed::running(&[]);
    let stop = Request::Savepoint { job: JOB, target: Some("/s".into()), stop: true, drain: false, suffix: "x".into() };
    let trigger = "trigger 1 savepoint file:///s/savepoint-ababab-x stop true";
    let asked_for = "propose savepoint file:///s/savepoint-ababab-x".to_owned();
    assert_eq!(bed.request(7, stop), [asked_for, format!("3 ← {trigger}"), format!("4 ← {trigger}")]);
    bed.acknowledge(WORKERS, 1, 1);
    bed.set_all(WORKERS, 1, TaskStatus::Finishing);
    bed.set_all(WORKERS, 1, TaskStatus::Finished);
    bed.exited(1, 1, "exit code 0");
    let lines = bed.exited(2, 1, "exit code 0");
    assert_eq!(lines[..2], ["propose FINISHED", "reply 7 completed file:///s/savepoint-ababab-x"]);
}

#[test]
fn requests_that_cannot_be_met_are_answered() {
    let mut bed = Bed::new(&[]);
    assert!(bed.request(1, Request::Cancel { job: JOB })[0].contains("there is no job"));
    bed.submit();
    let another = JobSpec { savepoint: Some("/s/1".into()), ..spec() };
    let lines = bed.request(2, Request::Submit { job: JOB, spec: Box::new(another) });
    assert!(lines[0].contains("another job has been submitted"), "{lines:?}");
    let savepoint = |target| Request::Savepoint { job: JOB, target, stop: false, drain: false, suffix: String::new() };
    assert!(bed.request(3, savepoint(None))[0].contains("where should the savepoint go?"));
    assert!(bed.request(4, savepoint(Some("/s".into())))[0].contains("not all tasks of the job run"));
    let mut empty = spec();
    empty.graph.vertices.clear();
    let other = JobId([1; 16]);
    assert!(bed.request(5, Request::Submit { job: other, spec: Box::new(empty) })[0].contains("has no operators"));
    let mut bed = Bed::new(&[]);
    bed.cluster = Cluster::new(Configuration::default());
    assert!(bed.submit()[0].contains("the JobManager is starting"));
    bed.step(Event::Recovered);
    assert!(bed.submit()[0].contains("execution.checkpointing.dir is not set"));
}
