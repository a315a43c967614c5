//! The life of a job on a cluster: it finishes, is cancelled, fails alone, waits for slots, and survives the death of
//! every process.

use std::process::Stdio;
use std::time::Duration;

use flott_e2e::{Cluster, Numbers, assert_same, binary, is_running, signal, until, visible_lines};

const LIMIT: Duration = Duration::from_secs(60);

const CHECKPOINTS: &[&str] = &["-D", "execution.checkpointing.interval=300ms"];

const NO_RESTART: &[&str] = &["-D", "restart-strategy.type=none"];

/// Starts the endless numbers.
fn start_numbers(cluster: &Cluster, parallelism: &str, output: &str) -> String {
    let engine = [CHECKPOINTS, &["-p", parallelism]].concat();
    let job = cluster.run_job(&binary("e2e-job"), &engine, &["--case", "numbers", "--output", output]);
    cluster.wait_for_checkpoints(&job, 1);
    job
}

/// Waits until a job runs again and has been restored from a checkpoint.
fn wait_for_recovery(cluster: &Cluster, job: &str, generation: u64) {
    until(&format!("job {job} to run in generation {generation} or later"), LIMIT, || {
        let details = cluster.try_rest(&format!("/jobs/{job}"))?;
        let runs = details["state"] == "RUNNING" && details["generation"].as_u64() >= Some(generation);
        if runs { Ok(()) } else { Err(format!("{} in {}", details["state"], details["generation"])) }
    });
    let checkpoints = cluster.rest(&format!("/jobs/{job}/checkpoints"));
    assert!(checkpoints["latest"]["restored"]["id"].is_u64(), "it was not restored: {checkpoints}");
    cluster.wait_for_checkpoints(job, checkpoints["latest"]["restored"]["id"].as_u64().unwrap_or(0) + 1);
}

/// Stops the numbers and counts them.
fn stop_and_count(cluster: &Cluster, job: &str, output: &str) {
    cluster.stop(job, &cluster.path("savepoints"), false);
    let numbers = Numbers::read(&visible_lines(output));
    numbers.assert_no_gaps();
    assert!(numbers.len() > 1000, "only {} numbers", numbers.len());
}

fn has_no_workers(cluster: &Cluster, job: &str) {
    until(&format!("the end of the workers of job {job}"), LIMIT, || match cluster.workers_of(job) {
        workers if workers.is_empty() => Ok(()),
        workers => Err(format!("{workers:?}")),
    });
}

/// Workers end with their TaskManager, and with the JobManager that they belong to.
fn wait_for_end(workers: &[u32]) {
    until("workers to end", LIMIT, || match workers.iter().find(|pid| is_running(**pid)) {
        None => Ok(()),
        Some(pid) => Err(format!("{pid} runs")),
    });
}

#[test]
fn a_bounded_job_finishes_with_everything_committed() {
    let cluster = Cluster::start(2, 2);
    let output = cluster.path("out");
    let arguments = ["--case", "numbers", "--output", &output, "--count", "5000", "--rows-per-second", "10000"];
    // Without periodic checkpoints: the final one commits all.
    let followed = cluster.run(&binary("e2e-job"), &["-p", "4"], &arguments).succeeded();
    Numbers::read(&visible_lines(&output)).assert_all_below(5000);
    let job = followed.job();
    cluster.wait_for_status(&job, "FINISHED", LIMIT);
    assert_eq!(cluster.exceptions(&job), "");
    has_no_workers(&cluster, &job);
    let overview = cluster.rest("/overview");
    assert_eq!((&overview["jobs-finished"], &overview["slots-available"]), (&1.into(), &4.into()));
}

#[test]
fn a_cancelled_job_ends_at_once_and_stays_ended() {
    let mut cluster = Cluster::start(1, 2);
    let output = cluster.path("out");
    let job = start_numbers(&cluster, "2", &output);
    cluster.flott("cancel", &[&job]).succeeded();
    cluster.wait_for_status(&job, "CANCELED", LIMIT);
    has_no_workers(&cluster, &job);
    // The last checkpoint's files may be visible in part: nobody waits for the sinks of a cancelled job.
    let committed = visible_lines(&output);
    Numbers::read(&committed);
    cluster.flott("cancel", &[&job]).refused(&["CANCELED"]);
    cluster.flott("savepoint", &[&job, &cluster.path("savepoints")]).refused(&["CANCELED"]);

    cluster.kill_job_manager();
    cluster.start_job_manager();
    cluster.wait_for_task_managers();
    assert_eq!(cluster.rest(&format!("/jobs/{job}"))["state"], "CANCELED");
    assert_same("lines after the end", &visible_lines(&output), &committed);
}

#[test]
fn a_panic_fails_its_job_with_operator_and_backtrace_and_no_other() {
    let cluster = Cluster::start(2, 2);
    let output = cluster.path("numbers");
    let other = start_numbers(&cluster, "2", &output);
    let panic_output = cluster.path("panic");
    let job = cluster.run_job(&binary("e2e-job"), NO_RESTART, &["--case", "panic", "--output", &panic_output]);
    cluster.wait_for_status(&job, "FAILED", LIMIT);
    let exceptions = cluster.exceptions(&job);
    for expected in ["operator 'Explodes' panicked at", "e2e-job.rs", "1000 is unlucky", "e2e_job::"] {
        assert!(exceptions.contains(expected), "no '{expected}' in {exceptions}");
    }
    assert!(exceptions.lines().count() > 5, "there is no backtrace: {exceptions}");
    has_no_workers(&cluster, &job);

    // A crash is worse than a panic: the process is gone. Still it was that job's own.
    let arguments = ["--case", "numbers", "--output", &cluster.path("crash")];
    let crashing = cluster.run_job(&binary("e2e-job"), NO_RESTART, &arguments);
    cluster.wait_for_status(&crashing, "RUNNING", LIMIT);
    let workers = cluster.workers_of(&crashing);
    assert_eq!(workers.len(), 1, "a job of one subtask has one worker");
    signal(workers[0], "ABRT");
    cluster.wait_for_status(&crashing, "FAILED", LIMIT);
    let exceptions = cluster.exceptions(&crashing);
    assert!(exceptions.contains("signal: 6"), "{exceptions}");

    let details = cluster.rest(&format!("/jobs/{other}"));
    assert_eq!((&details["state"], &details["generation"]), (&"RUNNING".into(), &1.into()));
    stop_and_count(&cluster, &other, &output);
}

#[test]
fn jobs_recover_from_the_death_of_every_process() {
    let mut cluster = Cluster::start(2, 1);
    let output = cluster.path("out");
    let job = start_numbers(&cluster, "2", &output);

    let workers = cluster.workers_of(&job);
    assert_eq!(workers.len(), 2, "one on each TaskManager");
    signal(workers[0], "KILL");
    wait_for_recovery(&cluster, &job, 2);

    let (survivors, lost) = (cluster.workers_on(0), cluster.workers_on(1));
    assert!(survivors.iter().any(|pid| workers.contains(pid)) || lost.iter().any(|pid| workers.contains(pid)));
    cluster.kill_task_manager(1);
    wait_for_end(&lost);
    until("the job to say what it waits for", LIMIT, || {
        let details = cluster.try_rest(&format!("/jobs/{job}"))?;
        let reason = details["waiting-for"].as_str().unwrap_or_default();
        if reason.contains("needs 2 slots, holds 1, 0 of 1 free") {
            Ok(())
        } else {
            Err(format!("{}: {reason}", details["state"]))
        }
    });
    cluster.start_task_manager(1);
    wait_for_recovery(&cluster, &job, 3);
    assert_eq!(cluster.workers_on(0), survivors, "a worker that is sound goes on");

    cluster.kill_job_manager();
    cluster.start_job_manager();
    wait_for_recovery(&cluster, &job, 4);

    let workers = cluster.workers_of(&job);
    cluster.kill_job_manager();
    cluster.kill_task_manager(0);
    cluster.kill_task_manager(1);
    wait_for_end(&workers);
    cluster.start_job_manager();
    cluster.start_task_manager(0);
    cluster.start_task_manager(1);
    wait_for_recovery(&cluster, &job, 5);
    stop_and_count(&cluster, &job, &output);
}

#[test]
fn a_job_waits_for_slots_says_so_and_gives_up_with_the_numbers() {
    let mut cluster = Cluster::start(1, 2);
    let output = cluster.path("out");
    let engine = ["-p", "4", "-D", "slot.request.timeout=2s"];
    let arguments = ["--case", "numbers", "--output", &output, "--count", "100"];
    let refusal = cluster.run(&binary("e2e-job"), &engine, &arguments);
    let numbers = "needs 4 slots, 2 of 2 free on 1 TaskManager";
    refusal.refused(&[
        &format!("waiting for slots ({numbers})"),
        numbers,
        "after 2000 ms of waiting (slot.request.timeout)",
    ]);

    let job = cluster.run_job(&binary("e2e-job"), &["-p", "4"], &arguments);
    until("the job to wait", LIMIT, || {
        let details = cluster.try_rest(&format!("/jobs/{job}"))?;
        if details["waiting-for"] == numbers { Ok(()) } else { Err(details.to_string()) }
    });
    assert_eq!(cluster.rest(&format!("/jobs/{job}"))["state"], "CREATED");
    cluster.add_task_manager();
    cluster.wait_for_status(&job, "FINISHED", LIMIT);
    Numbers::read(&visible_lines(&output)).assert_all_below(100);
}

#[test]
fn ctrl_c_without_a_terminal_detaches() {
    let cluster = Cluster::start(1, 1);
    let output = cluster.path("out");
    let mut command = cluster.command();
    command.args(["run", "-m", &cluster.address()]).args(CHECKPOINTS).arg(binary("e2e-job"));
    command.args(["--", "--case", "numbers", "--output", &output]);
    let mut client =
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
    let job = until("the job to run", LIMIT, || {
        let overview = cluster.try_rest("/jobs/overview")?;
        let job = &overview["jobs"][0];
        let runs = job["state"] == "RUNNING";
        if runs { Ok(job["jid"].as_str().unwrap_or_default().to_owned()) } else { Err(overview.to_string()) }
    });
    signal(client.id(), "INT");
    let end = until("the client's end", LIMIT, || match client.try_wait() {
        Ok(Some(status)) => Ok(status),
        other => Err(format!("{other:?}")),
    });
    assert!(end.success(), "{end}");
    assert_eq!(cluster.rest(&format!("/jobs/{job}"))["state"], "RUNNING");
}
