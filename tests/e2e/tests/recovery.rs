//! Local recovery: when a process of a job with much state dies, the other ones go on from what they have in memory.

use std::collections::BTreeSet;
use std::time::Duration;

use flott_e2e::{Cluster, KEYS, Numbers, OutputWatch, binary, is_running, signal, visible_lines};

/// How much state there is in all.
const STATE_BYTES: u64 = 100 << 20;

const COUNT: u64 = 36_000;

/// The job outlives both kills.
const ROWS_PER_SECOND: &str = "2000";

const FINISH_TIMEOUT: Duration = Duration::from_secs(90);

/// No machine that tests run on is slower than that; what is usual stands in the documentation.
const GAP_MAX: Duration = Duration::from_secs(20);

const ENGINE: &[&str] = &[
    "-p",
    "4",
    "-D",
    "execution.checkpointing.interval=200ms",
    "-D",
    "restart-strategy.exponential-delay.initial-backoff=50ms",
];

/// Lets `kill` end one of the job's processes, and waits until the job gets on. All others must be the same as before.
fn recover(cluster: &mut Cluster, job: &str, output: &str, what: &str, kill: impl FnOnce(&mut Cluster) -> Vec<u32>) {
    let generation = cluster.generation(job);
    let before: BTreeSet<u32> = cluster.workers_of(job).into_iter().collect();
    let watch = OutputWatch::start(output);
    let killed: BTreeSet<u32> = kill(cluster).into_iter().collect();
    cluster.wait_for_generation(job, generation + 1);
    let gap = watch.longest_gap();
    println!("{what}: output again after {} ms, with {} MB of state", gap.as_millis(), STATE_BYTES >> 20);
    assert!(gap < GAP_MAX, "no output for {gap:?}");
    let after: BTreeSet<u32> = cluster.workers_of(job).into_iter().collect();
    let survivors: BTreeSet<u32> = before.difference(&killed).copied().collect();
    assert!(!killed.is_empty() && !survivors.is_empty(), "{killed:?} of {before:?}");
    assert!(survivors.is_subset(&after), "{survivors:?} should have survived: {after:?}");
    assert!(after.is_disjoint(&killed) && after.iter().all(|worker| is_running(*worker)), "{after:?}");
}

#[test]
fn survivors_keep_their_state() {
    let mut cluster = Cluster::start(3, 2);
    let output = cluster.path("out");
    let (count, padding) = (COUNT.to_string(), (STATE_BYTES / KEYS).to_string());
    let arguments = ["--case", "numbers", "--output", &output, "--count", &count, "--padding", &padding];
    let arguments = [&arguments[..], &["--rows-per-second", ROWS_PER_SECOND]].concat();
    let job = cluster.run_job(&binary("e2e-job"), ENGINE, &arguments);
    cluster.wait_for_checkpoints(&job, 2);
    assert_eq!(cluster.workers_of(&job).len(), 3, "each TaskManager has a worker");

    recover(&mut cluster, &job, &output, "kill -9 of a worker", |cluster| {
        let victim = cluster.workers_on(1)[0];
        signal(victim, "KILL");
        vec![victim]
    });
    // What is left has room for all.
    recover(&mut cluster, &job, &output, "kill -9 of a TaskManager", |cluster| {
        let victims = cluster.workers_on(2);
        cluster.kill_task_manager(2);
        victims
    });

    cluster.wait_for_status(&job, "FINISHED", FINISH_TIMEOUT);
    Numbers::read(&visible_lines(&output)).assert_all_below(COUNT);
}
