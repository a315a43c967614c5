//! A savepoint of much state takes its time, and checkpoints go on meanwhile: recovery loses nothing by it.

use std::time::Duration;

use flott_e2e::{Cluster, KEYS, Numbers, binary, local_path, signal, until, visible_lines};
use serde_json::Value;

/// How much state there is in all, which is much for a table that is made of it and nothing for a checkpoint of what
/// has changed.
const STATE_BYTES: u64 = 32 << 20;

/// More than a checkpoint of what changes has, and much less than one of everything.
const CHANGES_BYTES_MAX: u64 = 1 << 20;

const LIMIT: Duration = Duration::from_secs(120);

const ENGINE: &[&str] = &[
    "-p",
    "2",
    "-D",
    "execution.checkpointing.interval=100ms",
    "-D",
    "restart-strategy.exponential-delay.initial-backoff=50ms",
];

/// A savepoint that was asked for.
struct Savepoint {
    request: String,
    id: u64,
}

impl Savepoint {
    /// Asks for one, and waits until it is under way.
    fn begin(cluster: &Cluster, job: &str) -> Self {
        let body = format!("{{\"target-directory\": \"{}\", \"cancel-job\": false}}", cluster.path("savepoints"));
        let (status, accepted) = cluster.request("POST", &format!("/jobs/{job}/savepoints"), body.as_bytes());
        assert_eq!(status, 202, "{accepted}");
        let request = accepted["request-id"].as_str().expect("a request id").to_owned();
        let id = until("the savepoint to be under way", LIMIT, || {
            let checkpoints = cluster.try_rest(&format!("/jobs/{job}/checkpoints"))?;
            let history = checkpoints["history"].as_array().cloned().unwrap_or_default();
            let is_it = |one: &&Value| one["is_savepoint"] == true && one["status"] == "IN_PROGRESS";
            history
                .iter()
                .find(is_it)
                .and_then(|one| one["id"].as_u64())
                .ok_or_else(|| checkpoints["counts"].to_string())
        });
        Self { request, id }
    }

    /// How it went, once it has ended.
    fn outcome(&self, cluster: &Cluster, job: &str) -> Option<Value> {
        let answer = cluster.rest(&format!("/jobs/{job}/savepoints/{}", self.request));
        (answer["status"]["id"] == "COMPLETED").then(|| answer["operation"].clone())
    }

    /// Waits until so many checkpoints that were triggered after it are complete, while it is not.
    #[track_caller]
    fn wait_for_checkpoints(&self, cluster: &Cluster, job: &str, count: u64) {
        until("checkpoints beside the savepoint", LIMIT, || {
            let last = cluster.last_checkpoint(job);
            let outcome = self.outcome(cluster, job);
            assert!(
                outcome.is_none(),
                "checkpoint {last} was the last before savepoint {} ended: {outcome:?}",
                self.id
            );
            if last >= self.id + count { Ok(()) } else { Err(format!("the last is {last}")) }
        });
    }
}

#[test]
fn checkpoints_are_taken_beside_a_savepoint() {
    let mut cluster = Cluster::start(2, 2);
    let output = cluster.path("out");
    let padding = (STATE_BYTES / KEYS).to_string();
    let arguments = ["--case", "numbers", "--output", &output, "--padding", &padding];
    let job = cluster.run_job(&binary("e2e-job"), ENGINE, &arguments);
    cluster.wait_for_checkpoints(&job, 3);

    // A failure takes the job back to a checkpoint that is younger than the savepoint, which is lost.
    let lost = Savepoint::begin(&cluster, &job);
    lost.wait_for_checkpoints(&cluster, &job, 2);
    let generation = cluster.generation(&job);
    signal(cluster.workers_on(0)[0], "KILL");
    cluster.wait_for_generation(&job, generation + 1);
    let restored = cluster.rest(&format!("/jobs/{job}/checkpoints"))["latest"]["restored"].clone();
    assert!(restored["is_savepoint"] == false && restored["id"].as_u64() >= Some(lost.id + 2), "{restored}");
    let outcome = lost.outcome(&cluster, &job).expect("it has ended");
    assert!(outcome["failure-cause"].is_object(), "{outcome}");

    // Without one, the savepoint is complete while checkpoints go on, and these have only what has changed.
    let savepoint = Savepoint::begin(&cluster, &job);
    savepoint.wait_for_checkpoints(&cluster, &job, 2);
    let location = until("the savepoint", LIMIT, || {
        let outcome = savepoint.outcome(&cluster, &job).ok_or("it is under way")?;
        outcome["location"].as_str().map(str::to_owned).ok_or_else(|| panic!("{outcome}"))
    });
    let last = cluster.last_checkpoint(&job);
    let took = &cluster.rest(&format!("/jobs/{job}/checkpoints"))["latest"]["savepoint"]["end_to_end_duration"];
    println!("{} checkpoints beside a savepoint that took {took} ms", last - savepoint.id);
    let after = last + 1;
    cluster.wait_for_checkpoints(&job, after);
    let details = cluster.rest(&format!("/jobs/{job}/checkpoints/details/{after}"));
    let (own, all) = (details["checkpointed_size"].as_u64(), details["state_size"].as_u64());
    assert!(own < Some(CHANGES_BYTES_MAX) && all > Some(STATE_BYTES), "{details}");

    // Nor is the savepoint what a later failure takes the job back to.
    let generation = cluster.generation(&job);
    cluster.kill_task_manager(1);
    cluster.start_task_manager(1);
    cluster.wait_for_generation(&job, generation + 1);
    let restored = cluster.rest(&format!("/jobs/{job}/checkpoints"))["latest"]["restored"].clone();
    assert!(restored["is_savepoint"] == false && restored["id"].as_u64() >= Some(after), "{restored}");
    let stopped = cluster.stop(&job, &cluster.path("savepoints"), false);
    let before = Numbers::read(&visible_lines(&output));
    before.assert_no_gaps();

    // The state is right in both. What follows the savepoint is made a second time.
    let count = before.end() + 5000;
    for (name, savepoint) in [("running", &location), ("stopped", &stopped)] {
        assert!(local_path(savepoint).join("_metadata").exists(), "{savepoint}");
        let output = cluster.path(name);
        let count = count.to_string();
        let arguments = ["--case", "numbers", "--output", &output, "--count", &count, "--rows-per-second", "20000"];
        let job = cluster.run_job(&binary("e2e-job"), &["-p", "3", "-s", savepoint], &arguments);
        cluster.wait_for_status(&job, "FINISHED", LIMIT);
    }
    let numbers = |name: &str| Numbers::read(&visible_lines(cluster.path(name)));
    before.union(&numbers("running")).assert_all_below(count);
    let stopped = visible_lines(cluster.path("stopped"));
    Numbers::read(visible_lines(&output).iter().chain(&stopped)).assert_all_below(count);
}
