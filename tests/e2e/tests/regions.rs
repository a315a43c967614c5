//! Region-wise restart: a failure stops the subtasks that it reaches, and no others.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use flott_e2e::{Cluster, Numbers, binary, signal, visible_lines};

const COUNT: u64 = 30_000;

const NO_NUMBER: &str = "999999999";

/// The job outlives what happens to it.
const ROWS_PER_SECOND: &str = "1500";

const FINISH_TIMEOUT: Duration = Duration::from_secs(90);

const ENGINE: &[&str] = &[
    "-p",
    "4",
    "-D",
    "execution.checkpointing.interval=200ms",
    "-D",
    "restart-strategy.exponential-delay.initial-backoff=50ms",
];

/// Source, map and sink are tasks of their own, and forward to each other: four regions of three subtasks.
const TASKS: usize = 12;

/// In the pipeline with state, the source sends to all that count.
const TASKS_OF_NUMBERS: usize = 8;

/// How a subtask was started.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Start {
    task_manager: String,
    attempt: u64,
    started_ms: i64,
}

/// All subtasks of a job, by vertex and index.
fn starts(cluster: &Cluster, job: &str) -> BTreeMap<(String, u64), Start> {
    let details = cluster.rest(&format!("/jobs/{job}"));
    let mut starts = BTreeMap::new();
    for vertex in details["vertices"].as_array().into_iter().flatten() {
        let id = vertex["id"].as_str().unwrap_or_default().to_owned();
        let vertex = cluster.rest(&format!("/jobs/{job}/vertices/{id}"));
        for subtask in vertex["subtasks"].as_array().into_iter().flatten() {
            let start = Start {
                task_manager: subtask["taskmanager-id"].as_str().unwrap_or_default().to_owned(),
                attempt: subtask["attempt"].as_u64().unwrap_or(u64::MAX),
                started_ms: subtask["start-time"].as_i64().unwrap_or(-1),
            };
            starts.insert((id.clone(), subtask["subtask"].as_u64().unwrap_or(u64::MAX)), start);
        }
    }
    starts
}

/// Lets `harm` do something to the job, and waits until it gets on. Returns the indexes of the subtasks that were started
/// again for it; all others must be as they were.
fn recover(cluster: &mut Cluster, job: &str, harm: impl FnOnce(&mut Cluster)) -> Vec<u64> {
    let generation = cluster.generation(job);
    let before = starts(cluster, job);
    harm(cluster);
    cluster.wait_for_generation(job, generation + 1);
    assert_eq!(cluster.generation(job), generation + 1, "{}", cluster.exceptions(job));
    let after = starts(cluster, job);
    let mut restarted = Vec::new();
    for (place, before) in &before {
        let after = &after[place];
        if after.attempt == generation {
            restarted.push(place.1);
        } else {
            assert_eq!(before, after, "{place:?} was not to be touched");
        }
    }
    restarted.sort_unstable();
    restarted
}

fn assert_all_below(count: u64, output: &str) {
    let mut numbers: Vec<u64> = visible_lines(output).iter().map(|line| line.parse().expect("a number")).collect();
    numbers.sort_unstable();
    let wrong = numbers.iter().zip(0..).find(|(number, expected)| **number != *expected);
    assert_eq!((numbers.len() as u64, wrong), (count, None));
}

#[test]
fn survivors_of_a_lost_process_are_not_stopped() {
    let mut cluster = Cluster::start(3, 4);
    let (output, count) = (cluster.path("out"), COUNT.to_string());
    let arguments = ["--case", "panic", "--unlucky", NO_NUMBER, "--output", &output, "--count", &count];
    let arguments = [&arguments[..], &["--rows-per-second", ROWS_PER_SECOND]].concat();
    let job = cluster.run_job(&binary("e2e-job"), ENGINE, &arguments);
    cluster.wait_for_checkpoints(&job, 2);
    assert!(cluster.workers_of(&job).len() > 1, "the job is on several TaskManagers");

    let victim = (0..3).find(|index| !cluster.workers_on(*index).is_empty()).expect("there are workers");
    let restarted = recover(&mut cluster, &job, |cluster| signal(cluster.workers_on(victim)[0], "KILL"));
    println!("kill -9 of a worker restarts {restarted:?}");
    assert!(!restarted.is_empty() && restarted.len() < TASKS, "{restarted:?}");

    let restarted = recover(&mut cluster, &job, |cluster| cluster.kill_task_manager(victim));
    println!("kill -9 of a TaskManager restarts {restarted:?}");
    assert!(!restarted.is_empty() && restarted.len() < TASKS, "{restarted:?}");

    cluster.wait_for_status(&job, "FINISHED", FINISH_TIMEOUT);
    assert_all_below(COUNT, &output);
}

#[test]
fn a_failed_task_leaves_the_others_of_its_process_alone() {
    let mut cluster = Cluster::start(1, 4);
    let (output, trigger, count) = (cluster.path("out"), cluster.path("trigger"), COUNT.to_string());
    let arguments = ["--case", "panic", "--unlucky", NO_NUMBER, "--trigger", &trigger, "--output", &output];
    let arguments = [&arguments[..], &["--count", &count, "--rows-per-second", ROWS_PER_SECOND]].concat();
    let job = cluster.run_job(&binary("e2e-job"), ENGINE, &arguments);
    cluster.wait_for_checkpoints(&job, 1);
    let workers = cluster.workers_of(&job);
    let restarted = recover(&mut cluster, &job, |_| fs::write(&trigger, "").expect("the folder is there"));
    println!("a panic restarts {restarted:?}");
    assert_eq!(restarted.len(), 3, "one region: {restarted:?}");
    assert_eq!(cluster.workers_of(&job), workers, "the process stays");
    cluster.wait_for_status(&job, "FINISHED", FINISH_TIMEOUT);
    assert_all_below(COUNT, &output);
}

#[test]
fn a_pipeline_over_several_processes_does_not_notice_a_failure_beside_it() {
    let mut cluster = Cluster::start(2, 2);
    let (output, trigger, count) = (cluster.path("out"), cluster.path("trigger"), COUNT.to_string());
    let arguments = ["--case", "pair", "--unlucky", NO_NUMBER, "--trigger", &trigger, "--output", &output];
    let arguments = [&arguments[..], &["--count", &count, "--rows-per-second", ROWS_PER_SECOND]].concat();
    let job = cluster.run_job(&binary("e2e-job"), ENGINE, &arguments);
    cluster.wait_for_checkpoints(&job, 1);
    let workers = cluster.workers_of(&job);
    assert_eq!(workers.len(), 2, "each TaskManager has a worker");
    let restarted = recover(&mut cluster, &job, |_| fs::write(&trigger, "").expect("the folder is there"));
    println!("a panic beside it restarts {restarted:?}");
    assert_eq!(restarted.len(), 3, "one region: {restarted:?}");
    assert_eq!(cluster.workers_of(&job), workers, "the processes stay");

    // Now a process is lost, and the connections to it.
    let restarted = recover(&mut cluster, &job, |cluster| signal(cluster.workers_on(0)[0], "KILL"));
    println!("kill -9 of a worker restarts {restarted:?}");
    let most = TASKS_OF_NUMBERS + TASKS;
    assert!((TASKS_OF_NUMBERS..most).contains(&restarted.len()), "all that exchange records: {restarted:?}");
    cluster.wait_for_status(&job, "FINISHED", FINISH_TIMEOUT);
    assert_all_below(COUNT, &format!("{output}-beside"));
    Numbers::read(&visible_lines(&output)).assert_all_below(COUNT);
}
