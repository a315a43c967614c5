//! Another parallelism for a running job: every record is there once, processes stay, what cannot be is refused, and a
//! failure in the middle leaves the job on one of the two sides. In reactive mode the job follows the slots by itself.

use std::collections::BTreeSet;
use std::thread;
use std::time::Duration;

use flott_e2e::{
    Cluster, CommandOutput, Numbers, OutputWatch, Paused, Random, Setup, binary, run_command, until, visible_lines,
};

/// How long a rescale may take whose cluster loses a process on the way.
const LIMIT: Duration = Duration::from_secs(60);

/// No machine that tests run on is slower than that; what is usual stands in the documentation.
const GAP_MAX: Duration = Duration::from_secs(15);

const ENGINE: &[&str] = &[
    "-D",
    "execution.checkpointing.interval=200ms",
    "-D",
    "restart-strategy.exponential-delay.initial-backoff=50ms",
    "-D",
    "restart-strategy.exponential-delay.max-backoff=300ms",
];

/// Starts the endless numbers at parallelism 2.
fn start_numbers(cluster: &Cluster, output: &str) -> String {
    let engine = [ENGINE, &["-p", "2"]].concat();
    let job = cluster.run_job(&binary("e2e-job"), &engine, &["--case", "numbers", "--output", output]);
    cluster.wait_for_checkpoints(&job, 2);
    job
}

/// Stops the numbers and counts them.
fn stop_and_count(cluster: &Cluster, job: &str, output: &str) {
    cluster.stop(job, &cluster.path("savepoints"), false);
    let numbers = Numbers::read(&visible_lines(output));
    numbers.assert_no_gaps();
    assert!(numbers.len() > 1000, "only {} numbers", numbers.len());
}

fn workers(cluster: &Cluster, job: &str) -> BTreeSet<u32> {
    cluster.workers_of(job).into_iter().collect()
}

/// A rescale at the command line, in a thread of its own.
fn rescale_meanwhile(cluster: &Cluster, job: &str, parallelism: u64) -> thread::JoinHandle<CommandOutput> {
    let mut command = cluster.command();
    command.args(["rescale", "-m", &cluster.address(), job, "-p", &parallelism.to_string()]);
    thread::spawn(move || run_command(&mut command, LIMIT))
}

#[test]
fn a_running_job_grows_and_shrinks() {
    let cluster = Cluster::start(2, 2);
    let output = cluster.path("out");
    let job = start_numbers(&cluster, &output);
    for parallelism in [4, 1, 3] {
        let before = workers(&cluster, &job);
        let watch = OutputWatch::start(&output);
        cluster.flott("rescale", &[&job, "-p", &parallelism.to_string()]).succeeded();
        cluster.wait_for_parallelism(&job, &[parallelism, parallelism]);
        let gap = watch.longest_gap();
        println!("rescaled to {parallelism}: output gap {} ms", gap.as_millis());
        assert!(gap < GAP_MAX, "no output for {gap:?}");
        let after = workers(&cluster, &job);
        match parallelism {
            // Both TaskManagers worked for it, and still do.
            4 => assert_eq!(after, before, "the processes are not the same"),
            _ => assert!(!after.is_disjoint(&before), "of {before:?} none is left: {after:?}"),
        }
    }

    // One vertex alone, as tools do it.
    let path = format!("/jobs/{job}/resource-requirements");
    let vertex = cluster.rest(&format!("/jobs/{job}"))["vertices"][1]["id"].clone();
    let vertex = vertex.as_str().expect("a vertex has an id");
    let body = format!("{{\"{vertex}\": {{\"parallelism\": {{\"lowerBound\": 1, \"upperBound\": 2}}}}}}");
    let (status, answer) = cluster.request("PUT", &path, body.as_bytes());
    assert_eq!(status, 200, "{answer}");
    cluster.wait_for_parallelism(&job, &[3, 2]);
    assert_eq!(cluster.rest(&path)[vertex]["parallelism"]["upperBound"], 2);
    stop_and_count(&cluster, &job, &output);
}

#[test]
fn what_cannot_be_is_refused_and_harms_nothing() {
    let cluster = Cluster::start(2, 2);
    let output = cluster.path("out");
    let job = start_numbers(&cluster, &output);
    let (generation, processes) = (cluster.generation(&job), workers(&cluster, &job));
    let refused = |arguments: &[&str], expected: &[&str]| {
        let arguments = [&[job.as_str()], arguments].concat();
        cluster.flott("rescale", &arguments).refused(expected);
    };
    refused(&["-p", "0"], &["0"]);
    refused(&["-p", "129"], &["128"]);
    refused(&["-p", "5"], &["slots", "5", "4"]);
    refused(&["-p", "many"], &["many"]);
    refused(&["--vertex", "nonsense=2"], &["nonsense"]);
    refused(&["--vertex", "1=0"], &["'0'"]);
    refused(&[], &["--parallelism"]);
    let nobody = "0123456789abcdef0123456789abcdef";
    cluster.flott("rescale", &[nobody, "-p", "2"]).refused(&[nobody]);
    let path = format!("/jobs/{job}/resource-requirements");
    assert_eq!(cluster.request("PUT", &path, b"{\"parallelism\": 0}").0, 400);

    cluster.wait_for_checkpoints(&job, cluster.last_checkpoint(&job) + 1);
    assert_eq!(cluster.rest(&format!("/jobs/{job}"))["state"], "RUNNING");
    assert_eq!((cluster.generation(&job), workers(&cluster, &job)), (generation, processes));
    assert_eq!(cluster.parallelism(&job), [2, 2]);
    stop_and_count(&cluster, &job, &output);
    refused(&["-p", "1"], &["FINISHED"]);
}

#[test]
fn one_rescale_at_a_time() {
    let cluster = Cluster::start(2, 2);
    let output = cluster.path("out");
    let job = start_numbers(&cluster, &output);
    // While a worker is paused no rescale can come to its end, and the checkpoint that is due cannot either.
    let paused = Paused::new(cluster.workers_of(&job)[0]);
    thread::sleep(Duration::from_millis(400));
    let first = rescale_meanwhile(&cluster, &job, 4);
    thread::sleep(Duration::from_secs(1));
    let second = cluster.flott("rescale", &[&job, "-p", "3"]);
    drop(paused);
    first.join().expect("the command ends").succeeded();
    second.refused(&["being rescaled already"]);
    cluster.wait_for_parallelism(&job, &[4, 4]);
    stop_and_count(&cluster, &job, &output);
}

#[test]
fn a_rescale_waits_for_the_checkpoint_that_is_under_way() {
    let cluster = Cluster::start(2, 2);
    let output = cluster.path("out");
    let job = cluster.run_job(&binary("e2e-job"), &["-p", "2"], &["--case", "numbers", "--output", &output]);
    cluster.wait_for_status(&job, "RUNNING", LIMIT);
    let generation = cluster.generation(&job);
    // While a worker is paused the checkpoint cannot come to its end.
    let paused = Paused::new(cluster.workers_of(&job)[0]);
    let mut command = cluster.command();
    command.args(["checkpoint", "-m", &cluster.address(), &job]);
    let checkpoint = thread::spawn(move || run_command(&mut command, LIMIT));
    until("the checkpoint to be under way", LIMIT, || match cluster.checkpoints_under_way(&job) {
        0 => Err("none is".to_owned()),
        _ => Ok(()),
    });
    let rescale = rescale_meanwhile(&cluster, &job, 4);
    thread::sleep(Duration::from_secs(1));
    assert_eq!((cluster.generation(&job), cluster.checkpoints_under_way(&job)), (generation, 1), "neither has ended");
    drop(paused);
    checkpoint.join().expect("the command ends").succeeded();
    rescale.join().expect("the command ends").succeeded();
    cluster.wait_for_status(&job, "RUNNING", LIMIT);
    assert_eq!((cluster.parallelism(&job), cluster.generation(&job)), (vec![4, 4], generation + 1));
    stop_and_count(&cluster, &job, &output);
}

#[test]
fn in_reactive_mode_the_parallelism_follows_the_slots() {
    let setup = Setup::new(1, 2).option("scheduler-mode", "reactive");
    let patience = "jobmanager.adaptive-scheduler.executing.resource-stabilization-timeout";
    let mut cluster = setup.option(patience, "500ms").start();
    let output = cluster.path("out");
    let job = start_numbers(&cluster, &output);
    cluster.wait_for_parallelism(&job, &[2, 2]);
    let first = workers(&cluster, &job);

    cluster.add_task_manager();
    cluster.wait_for_parallelism(&job, &[4, 4]);
    assert!(first.is_subset(&workers(&cluster, &job)), "the worker that was there has not stayed");
    cluster.flott("rescale", &[&job, "-p", "3"]).refused(&["scheduler-mode: reactive", "add or remove TaskManagers"]);

    cluster.kill_task_manager(1);
    cluster.wait_for_parallelism(&job, &[2, 2]);
    cluster.start_task_manager(1);
    cluster.wait_for_parallelism(&job, &[4, 4]);
    stop_and_count(&cluster, &job, &output);
}

#[test]
fn a_kill_in_the_middle_leaves_the_job_on_one_of_the_two_sides() {
    let mut cluster = Cluster::start(2, 2);
    let output = cluster.path("out");
    let job = start_numbers(&cluster, &output);
    let seed = flott_env::random_u64();
    println!("seed {seed}");
    let mut random = Random::new(seed);
    let mut from = 2;
    for round in 0..3 {
        let to = if from == 2 { 4 } else { 2 };
        // The first kill is certain to be in the middle, since the other TaskManager's worker is paused then.
        let paused = (round == 0).then(|| Paused::new(cluster.workers_on(0)[0]));
        let command = rescale_meanwhile(&cluster, &job, to);
        thread::sleep(if round == 0 { Duration::from_secs(1) } else { random.millis(0, 600) });
        cluster.kill_task_manager(1);
        drop(paused);
        cluster.start_task_manager(1);
        let answer = command.join().expect("the command ends");
        assert!(!answer.text().contains("panicked at"), "{}", answer.text());
        cluster.wait_for_task_managers();
        // Nobody completes a checkpoint without the worker that was killed.
        cluster.wait_for_checkpoints(&job, cluster.last_checkpoint(&job) + 1);
        cluster.wait_for_status(&job, "RUNNING", LIMIT);
        let now = cluster.parallelism(&job);
        assert!(now == [from, from] || now == [to, to], "between {from} and {to} the job is at {now:?}");
        println!("from {from} to {to}: at {now:?}, exit code {:?}", answer.code);
        from = now[0];
    }
    stop_and_count(&cluster, &job, &output);
}
