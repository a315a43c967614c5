//! Regions that a failure does not reach: their subtasks carry over to the next execution.

use flott_control::{JobSpec, WORKER_STOPPED};
use flott_graph::Partitioning;

use super::*;

const GONE: &str = "signal 9 (SIGKILL)";
const ALL: [(u32, u32); 4] = [(0, 0), (1, 0), (0, 1), (1, 1)];
const BOTH: &[(SessionId, &str, SessionId)] = &[(1, "tm-1", 3), (2, "tm-2", 4)];

/// `Source: Numbers` forwards to `Sink`, and both have two subtasks: two regions.
fn forwarding() -> JobSpec {
    let mut spec = spec();
    spec.graph.edges[0].partitioning = Partitioning::Forward;
    spec.graph = spec.graph.with_parallelism(&[2, 2]);
    spec
}

fn id((vertex, index): (u32, u32)) -> SubtaskId {
    SubtaskId { vertex, index }
}

impl Bed {
    /// Such a job on two TaskManagers, sessions 1 and 2, with workers 3 and 4. It has taken checkpoint 1, at 1000 ms.
    fn forwarded(pairs: &[(&str, &str)]) -> Self {
        let mut bed = Self::new(&[&[EVERY_SECOND][..], pairs].concat());
        for &(session, name, _) in BOTH {
            bed.add_task_manager(session, name, 1);
        }
        bed.request(1, Request::Submit { job: JOB, spec: Box::new(forwarding()) });
        for &(_, name, worker) in BOTH {
            bed.add_worker(worker, name, 1);
        }
        bed.set_tasks(1, &ALL, TaskStatus::Running);
        let execution = ExecutionId { job: JOB, generation: 1 };
        let splits = (1..=6).map(|split| vec![split]).collect();
        bed.say(3, Up::SplitsDiscovered { execution, vertex: 0, splits });
        assert_eq!(bed.split(3, 1, 0), ["3 ← splits [[1]] to 0.0 last false"]);
        bed.wait_until(1000);
        bed.acknowledge_all(1, 1);
        bed
    }

    /// Worker 4 is lost, and another one, with session 5, has registered for generation 2.
    fn lost(pairs: &[(&str, &str)]) -> Self {
        let mut bed = Self::forwarded(pairs);
        bed.step(Event::SessionClosed { session: 4 });
        bed.exited(2, 1, GONE);
        assert_eq!(bed.add_worker(5, "tm-2", 2), ["5 ← registered", "3 ← continue 2 from 1 with 0.0 with 1.0"]);
        bed
    }

    fn set_tasks(&mut self, generation: u64, tasks: &[(u32, u32)], status: TaskStatus) -> Vec<String> {
        tasks.iter().flat_map(|&task| self.set_task(3 + u64::from(task.1), generation, id(task), status)).collect()
    }

    fn acknowledge_all(&mut self, generation: u64, checkpoint: u64) -> Vec<String> {
        let execution = ExecutionId { job: JOB, generation };
        let acknowledged = |task| {
            let (subtask, snapshot) = (id(task), flott_checkpoint::SubtaskSnapshot::default());
            Up::CheckpointAcknowledged { execution, subtask, checkpoint, snapshot }
        };
        let second = if generation == 1 { 4 } else { 5 };
        ALL.iter().flat_map(|&task| self.say(if task.1 == 0 { 3 } else { second }, acknowledged(task))).collect()
    }

    /// A source asks for a split.
    fn split(&mut self, session: SessionId, generation: u64, index: u32) -> Vec<String> {
        let execution = ExecutionId { job: JOB, generation };
        self.say(session, Up::RequestSplit { execution, subtask: id((0, index)) })
    }

    fn attempts(&self) -> Vec<(u64, TaskStatus)> {
        let subtasks = self.job().vertices.into_iter().flat_map(|vertex| vertex.subtasks);
        subtasks.map(|subtask| (subtask.attempt, subtask.status)).collect()
    }
}

#[test]
fn the_region_of_the_surviving_worker_carries_over() {
    use TaskStatus::{Canceled, Deploying, Running};
    let mut bed = Bed::forwarded(&[]);
    assert_eq!(bed.step(Event::SessionClosed { session: 4 }), ["2 ← stop worker 1"]);
    assert_eq!(
        bed.exited(2, 1, GONE),
        ["load s3://c/JOB/g1/chk-1 for generation 2", "propose generation 2", "2 ← start worker 2"]
    );
    assert_eq!(bed.attempts(), [(1, Running), (2, Deploying), (1, Running), (2, Deploying)]);
    assert_eq!(bed.add_worker(5, "tm-2", 2), ["5 ← registered", "3 ← continue 2 from 1 with 0.0 with 1.0"]);
    assert_eq!(
        bed.add_worker(3, "tm-1", 2),
        ["3 ← registered", "3 ← deploy ", "5 ← deploy 0.1 in slot 0 restored, 1.1 in slot 0 restored"]
    );
    assert!(bed.set_tasks(2, &[(0, 0), (1, 0)], Running).is_empty(), "it says how they are");
    assert_eq!(bed.status(), JobStatus::Restarting);
    assert!(bed.wait_until(2500).is_empty(), "no checkpoint before all run");
    for task in [(0, 1), (1, 1)] {
        bed.set_task(5, 2, id(task), Running);
    }
    assert_eq!(bed.status(), JobStatus::Running);
    assert_eq!(bed.attempts(), [(1, Running), (2, Running), (1, Running), (2, Running)]);
    assert_eq!(bed.wait_until(3500), ["3 ← trigger 2", "5 ← trigger 2"]);
    assert_eq!(
        bed.acknowledge_all(2, 2)[..4],
        ["write s3://c/JOB/g2/chk-2", "propose checkpoint 2", "3 ← complete 2", "5 ← complete 2"]
    );
    // What carried over once is lost like anything else.
    bed.step(Event::SessionClosed { session: 3 });
    assert!(bed.exited(1, 1, GONE).is_empty(), "the second restart has its delay");
    assert_eq!(bed.attempts(), [(1, Canceled), (2, Running), (1, Canceled), (2, Running)]);
    assert_eq!(bed.wait_until(3700)[0], "load s3://c/JOB/g2/chk-2 for generation 3");
    assert_eq!(bed.attempts(), [(3, Deploying), (2, Running), (3, Deploying), (2, Running)]);
}

#[test]
fn nothing_carries_over_if_the_option_says_so_or_regions_are_connected() {
    let mut bed = Bed::forwarded(&[("jobmanager.execution.failover-strategy", "full")]);
    bed.step(Event::SessionClosed { session: 4 });
    bed.exited(2, 1, GONE);
    assert_eq!(bed.add_worker(5, "tm-2", 2), ["5 ← registered", "3 ← continue 2 from 1"]);

    let mut bed = Bed::forwarded(&[("execution.state-recovery.from-local", "false")]);
    assert_eq!(bed.step(Event::SessionClosed { session: 4 }), ["1 ← stop worker 1", "2 ← stop worker 1"]);
}

#[test]
fn splits_go_on_to_be_handed_out_and_those_of_the_lost_come_back() {
    let mut bed = Bed::forwarded(&[]);
    assert_eq!(bed.split(4, 1, 1), ["4 ← splits [[2]] to 0.1 last false"]);
    assert_eq!(bed.split(3, 1, 0), ["3 ← splits [[3]] to 0.0 last false"]);
    bed.is_log_slow = true;
    bed.step(Event::SessionClosed { session: 4 });
    assert_eq!(bed.split(3, 1, 0), ["3 ← splits [[4]] to 0.0 last false"], "while it is heard how the worker ended");
    bed.exited(2, 1, GONE);
    assert_eq!(bed.split(3, 1, 0), ["3 ← splits [[5]] to 0.0 last false"], "while the generation becomes durable");
    assert_eq!(bed.make_durable(), ["2 ← start worker 2"]);
    assert_eq!(bed.split(3, 1, 0), ["3 ← splits [[2]] to 0.0 last false"], "which the lost one had");
    bed.add_worker(5, "tm-2", 2);
    assert_eq!(bed.split(3, 1, 0), ["3 ← splits [[6]] to 0.0 last false"], "in the generation that it is told of");
    bed.add_worker(3, "tm-1", 2);
    assert_eq!(bed.split(3, 2, 0), ["3 ← splits [] to 0.0 last true"]);
    assert_eq!(bed.split(5, 2, 1), ["5 ← splits [] to 0.1 last true"]);
}

#[test]
fn a_failed_task_takes_its_region_along_and_leaves_others_of_its_worker() {
    let mut bed = Bed::new(&[EVERY_SECOND]);
    bed.add_task_manager(1, "tm-1", 2);
    bed.request(1, Request::Submit { job: JOB, spec: Box::new(forwarding()) });
    bed.add_worker(3, "tm-1", 1);
    let run = |bed: &mut Bed, generation: u64, tasks: &[(u32, u32)]| {
        tasks.iter().for_each(|&task| drop(bed.set_task(3, generation, id(task), TaskStatus::Running)));
    };
    run(&mut bed, 1, &ALL);
    assert!(bed.set_task(3, 1, id((1, 0)), TaskStatus::Failed).is_empty(), "its worker goes on");
    assert_eq!(bed.status(), JobStatus::Restarting);
    assert_eq!(bed.wait_until(100), ["propose generation 2", "3 ← continue 2 with 0.1 with 1.1"]);
    assert_eq!(bed.add_worker(3, "tm-1", 2), ["3 ← registered", "3 ← deploy 0.0 in slot 0, 1.0 in slot 0"]);
    run(&mut bed, 2, &ALL);
    assert_eq!(bed.status(), JobStatus::Running);
    assert_eq!(bed.job().exceptions.len(), 1);
    assert_eq!(bed.set_task(3, 2, id((1, 0)), TaskStatus::Failed), ["1 ← stop worker 1"], "it has not come further");
}

#[test]
fn a_second_failure_before_the_next_execution_runs_is_one_of_the_whole_worker() {
    let mut bed = Bed::forwarded(&[]);
    bed.step(Event::SessionClosed { session: 4 });
    assert_eq!(bed.set_task(3, 1, id((1, 0)), TaskStatus::Failed), ["1 ← stop worker 1"]);

    let mut bed = Bed::lost(&[]);
    bed.add_worker(3, "tm-1", 2);
    let lines = bed.set_task(3, 2, id((1, 0)), TaskStatus::Failed);
    assert_eq!(lines, ["1 ← stop worker 1", "2 ← stop worker 2"], "it says that it does not go on after all");
}

#[test]
fn nothing_carries_over_where_sources_may_have_stopped() {
    let stop = Request::Savepoint { job: JOB, target: Some("/s".into()), stop: true, drain: false, suffix: "x".into() };
    let mut bed = Bed::forwarded(&[]);
    bed.request(8, stop);
    bed.step(Event::SessionClosed { session: 4 });
    bed.exited(2, 1, GONE);
    assert_eq!(bed.add_worker(5, "tm-2", 2), ["5 ← registered", "3 ← continue 2 from 1"]);
}

#[test]
fn a_checkpoint_that_completes_after_the_failure_is_what_the_others_go_back_to() {
    let mut bed = Bed::forwarded(&[]);
    bed.wait_until(2000);
    bed.is_log_slow = true;
    bed.acknowledge_all(1, 2);
    bed.step(Event::SessionClosed { session: 4 });
    assert!(bed.exited(2, 1, GONE).is_empty(), "it is waited for");
    let lines = bed.make_durable();
    assert!(lines.iter().any(|line| line.starts_with("load s3://c/JOB/g1/chk-2")), "{lines:?}");
    bed.is_log_slow = false;
    while !bed.proposed.is_empty() {
        bed.make_durable();
    }
    assert_eq!(bed.add_worker(5, "tm-2", 2), ["5 ← registered", "3 ← continue 2 from 2 with 0.0 with 1.0"]);
}

#[test]
fn a_rescale_restarts_everything() {
    let mut bed = Bed::forwarded(&[]);
    bed.request(8, Request::Rescale { job: JOB, parallelism: crate::api::Parallelism::All(1) });
    let lines = bed.acknowledge_all(1, 2);
    assert!(lines.iter().any(|line| line == "3 ← continue 2 from 2"), "{lines:?}");
}

#[test]
fn a_savepoint_that_failed_is_deleted_again_when_nobody_writes_to_it_any_more() {
    let savepoint =
        Request::Savepoint { job: JOB, target: Some("/s".into()), stop: false, drain: false, suffix: "x".into() };
    let delete = r#"delete [] ["file:///s/savepoint-ababab-x"]"#.to_owned();
    let mut bed = Bed::forwarded(&[]);
    bed.request(8, savepoint);
    bed.step(Event::SessionClosed { session: 4 });
    bed.exited(2, 1, GONE);
    bed.add_worker(5, "tm-2", 2);
    assert!(bed.add_worker(3, "tm-1", 2).contains(&delete));
    bed.request(9, Request::Cancel { job: JOB });
    bed.exited(1, 1, WORKER_STOPPED);
    assert!(bed.exited(2, 2, WORKER_STOPPED).contains(&delete));
}

/// Two pipelines beside each other: vertices 0 and 1 exchange records between all subtasks, 2 and 3 forward.
fn pair() -> JobSpec {
    let mut spec = forwarding();
    let graph = &mut spec.graph;
    graph.vertices.extend(graph.vertices.clone());
    graph.edges.extend(graph.edges.clone());
    graph.edges[0].partitioning = Partitioning::Hash;
    (graph.edges[1].source, graph.edges[1].target) = (2, 3);
    spec
}

impl Bed {
    /// Such a job on two TaskManagers, with workers 3 and 4.
    fn paired() -> Self {
        let mut bed = Self::new(&[EVERY_SECOND]);
        for &(session, name, _) in BOTH {
            bed.add_task_manager(session, name, 1);
        }
        bed.request(1, Request::Submit { job: JOB, spec: Box::new(pair()) });
        for &(_, name, worker) in BOTH {
            bed.add_worker(worker, name, 1);
        }
        for vertex in 0..4 {
            bed.set_tasks(1, &[(vertex, 0), (vertex, 1)], TaskStatus::Running);
        }
        assert_eq!(bed.status(), JobStatus::Running);
        bed
    }
}

#[test]
fn a_region_on_several_workers_carries_over_if_none_of_them_is_lost() {
    let mut bed = Bed::paired();
    assert!(bed.set_task(4, 1, id((3, 1)), TaskStatus::Failed).is_empty());
    assert_eq!(
        bed.wait_until(100),
        [
            "propose generation 2",
            "3 ← continue 2 with 0.0 with 1.0 with 2.0 with 3.0",
            "4 ← continue 2 with 0.1 with 1.1"
        ]
    );
    let mut bed = Bed::paired();
    bed.set_task(3, 1, id((1, 0)), TaskStatus::Failed);
    assert_eq!(bed.wait_until(100)[1..], ["3 ← continue 2 with 2.0 with 3.0", "4 ← continue 2 with 2.1 with 3.1"]);
}

#[test]
fn a_lost_connection_spares_regions_that_may_not_have_used_it() {
    let lost = || {
        let execution = ExecutionId { job: JOB, generation: 1 };
        Up::ConnectionLost { execution, error: Error::system("the connection to tm-2:1 was lost") }
    };
    let mut bed = Bed::paired();
    bed.say(3, lost());
    assert_eq!(bed.wait_until(100)[1..], ["3 ← continue 2 with 2.0 with 3.0", "4 ← continue 2 with 2.1 with 3.1"]);

    let mut bed = Bed::paired();
    bed.say(3, lost());
    bed.step(Event::SessionClosed { session: 4 });
    bed.exited(2, 1, GONE);
    bed.wait_until(100);
    assert_eq!(bed.add_worker(5, "tm-2", 2)[1..], ["3 ← continue 2 with 2.0 with 3.0"]);
}
