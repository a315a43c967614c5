use flott_checkpoint::manifest::FORMAT_VERSION;
use flott_checkpoint::{FileHandle, SubtaskSnapshot, VertexSnapshot};

use super::*;
use crate::testing::{JOB, config, graph};

const ID: ExecutionId = ExecutionId { job: JOB, generation: 3 };

fn id(name: &str) -> TaskManagerId {
    TaskManagerId(name.into())
}

fn execution(slots: &[&str], restore: Option<Restore>) -> Execution {
    let slots: Vec<TaskManagerId> = slots.iter().map(|name| id(name)).collect();
    Execution::new(ID, &graph(), slots, restore, &mut BTreeMap::new(), (0, 1000))
}

fn restore(is_own: bool) -> Restore {
    let file = FileHandle { path: "0-0.state".into(), bytes: 1, sha256: String::new() };
    let source = &graph().vertices[0];
    let snapshot = SubtaskSnapshot {
        keyed_files: vec![file],
        keyed_operators: vec![source.operators[0].id],
        ..SubtaskSnapshot::default()
    };
    let vertex = VertexSnapshot {
        name: source.name.clone(),
        operators: vec![source.operators[0].id],
        operator_names: vec![source.name.clone()],
        max_parallelism: 128,
        subtasks: vec![snapshot.clone(), snapshot],
        unassigned_splits: vec![vec![5]],
        splits_discovered: true,
    };
    let manifest = Manifest {
        version: FORMAT_VERSION,
        job: JOB,
        job_name: "numbers".into(),
        generation: 1,
        checkpoint: 9,
        is_savepoint: false,
        triggered_ms: 0,
        vertices: vec![vertex],
    };
    Restore { location: "s3://c/x".into(), manifest: Box::new(manifest), is_own, allow_non_restored_state: false }
}

#[test]
fn subtasks_of_a_slot_go_to_the_same_worker() {
    let mut execution = execution(&["b", "a"], None);
    assert!(execution.register(&id("a"), 1, "a:1".into()));
    assert!(!execution.register(&id("a"), 2, "a:2".into()), "registered already");
    assert!(!execution.register(&id("c"), 2, "c:1".into()), "nobody waits for it");
    assert!(execution.deploy(5, &graph(), &config(&[]), "s3://c/g3").is_empty(), "one is missing");
    assert!(execution.register(&id("b"), 2, "b:1".into()));
    let parts = execution.deploy(5, &graph(), &config(&[]), "s3://c/g3");
    let tasks: Vec<(SessionId, Vec<String>)> = parts
        .iter()
        .map(|(session, part)| (*session, part.tasks.iter().map(|task| task.subtask.to_string()).collect()))
        .collect();
    assert_eq!(tasks, [(2, vec!["0.0".to_owned(), "1.0".to_owned()]), (1, vec!["0.1".to_owned()])]);
    assert_eq!(parts[1].1.placement, [vec![0, 1], vec![0]]);
    assert_eq!(parts[1].1.this_worker, 1);
    assert_eq!(parts[0].1.graph, graph().describe());
    assert!(execution.deploy(5, &graph(), &config(&[]), "s3://c/g3").is_empty(), "deployed once");
}

#[test]
fn several_slots_of_a_worker_are_counted() {
    let mut execution = execution(&["a", "a"], None);
    execution.register(&id("a"), 1, String::new());
    let parts = execution.deploy(0, &graph(), &config(&[]), "");
    let slots: Vec<u32> = parts[0].1.tasks.iter().map(|task| task.slot).collect();
    assert_eq!(slots, [0, 1, 0]);
}

#[test]
fn a_restore_brings_state_and_splits() {
    for is_own in [true, false] {
        let mut execution = execution(&["a", "a"], Some(restore(is_own)));
        assert_eq!(execution.splits[&0].snapshot(), (vec![vec![5]], true));
        execution.register(&id("a"), 1, String::new());
        let parts = execution.deploy(0, &graph(), &config(&[]), "");
        let task = parts[0].1.tasks[0].restore.as_ref().unwrap();
        assert_eq!(task.keyed[0].files[0].path, "s3://c/x/0-0.state");
        assert_eq!(task.is_same_range, is_own, "only the job's own files are built on");
    }
}

#[test]
fn progress_is_what_all_tasks_have_reached() {
    let mut execution = execution(&["a", "a"], None);
    let all = [(0, 0), (0, 1), (1, 0)].map(|(vertex, index)| SubtaskId { vertex, index });
    for subtask in all {
        assert!(!execution.progress().is_running);
        assert!(execution.set_status(1, subtask, TaskStatus::Running));
    }
    execution.set_status(2, all[0], TaskStatus::Finishing);
    assert_eq!(execution.progress(), Progress { is_running: true, is_finishing: false });
    assert!(execution.set_status(3, all[0], TaskStatus::Finished));
    assert!(!execution.set_status(4, all[0], TaskStatus::Running), "nothing follows the end");
    execution.set_remaining(5, TaskStatus::Canceled);
    let statuses: Vec<TaskStatus> =
        execution.view().into_iter().flat_map(|vertex| vertex.subtasks).map(|task| task.status).collect();
    assert_eq!(statuses, [TaskStatus::Finished, TaskStatus::Canceled, TaskStatus::Canceled]);
    assert_eq!(task_name(&graph(), all[1]), "Source: Numbers (2/2)");
}

#[test]
fn kept_workers_register_again_and_new_ones_first() {
    let mut last = execution(&["a", "b", "c"], None);
    for (name, session) in [("a", 1), ("b", 2), ("c", 3)] {
        assert!(last.register(&id(name), session, String::new()));
    }
    last.worker_of(2).unwrap().is_lost = true;
    last.keep_sound(&graph(), false);
    assert!(last.has_kept());
    assert_eq!(last.kept_slots(), [id("a"), id("c")]);
    assert!(!last.is_gone(), "it is to be heard how b ended");
    assert!(last.is_unreachable());
    last.worker_of(2).unwrap().is_gone = true;
    assert!(last.is_gone());

    let mut kept = last.into_kept();
    let slots = vec![id("a"), id("d")];
    let next = ExecutionId { generation: 4, ..ID };
    let mut execution = Execution::new(next, &graph(), slots, None, &mut kept, (0, 1000));
    assert_eq!(kept.into_keys().collect::<Vec<_>>(), [id("c")], "nothing is left to do for it");
    assert!(execution.is_continued);
    assert_eq!(execution.worker_of(1).map(|worker| worker.started_for), Some(ID));
    assert_eq!(execution.sessions().count(), 0, "it does not serve this execution yet");
    assert!(execution.take_continued().is_empty(), "one has to be started first");
    assert!(!execution.register(&id("a"), 9, String::new()), "it has its session");
    assert!(execution.register(&id("d"), 4, "d:1".into()));
    assert_eq!(execution.take_continued(), [1]);
    assert!(execution.take_continued().is_empty(), "once");
    assert!(execution.deploy(5, &graph(), &config(&[]), "").is_empty());
    assert!(execution.register(&id("a"), 1, "a:2".into()));
    let parts = execution.deploy(5, &graph(), &config(&[]), "");
    let addresses: Vec<&str> = parts[0].1.workers.iter().map(|worker| worker.data_address.as_str()).collect();
    assert_eq!(addresses, ["a:2", "d:1"]);
}
