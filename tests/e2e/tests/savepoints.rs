//! Savepoints: taken, restored at another parallelism, and refused when they do not fit or are damaged.

use std::fs;
use std::path::Path;
use std::time::Duration;

use flott_e2e::{
    Cluster, KEYS, Numbers, binary, change_file, copy_folder, files_below, local_path, signal, until, visible_lines,
};

const FINISH_TIMEOUT: Duration = Duration::from_secs(60);

/// The end of the name of a file with counts in it: the second vertex counts.
const STATE: &str = "/count/1-0.parquet";

const CHECKPOINTS: &[&str] = &["-D", "execution.checkpointing.interval=300ms"];

/// Starts the endless numbers at parallelism 2.
fn start_numbers(cluster: &Cluster, output: &str) -> String {
    let engine = [CHECKPOINTS, &["-p", "2"]].concat();
    let job = cluster.run_job(&binary("e2e-job"), &engine, &["--case", "numbers", "--output", output]);
    cluster.wait_for_checkpoints(&job, 2);
    job
}

/// Runs the numbers up to `count` from a savepoint to their end.
fn finish_numbers(cluster: &Cluster, savepoint: &str, parallelism: &str, output: &str, count: u64) {
    let engine = [CHECKPOINTS, &["-p", parallelism, "-s", savepoint]].concat();
    let count = count.to_string();
    let arguments = ["--case", "numbers", "--output", output, "--count", &count, "--rows-per-second", "20000"];
    let job = cluster.run_job(&binary("e2e-job"), &engine, &arguments);
    cluster.wait_for_status(&job, "FINISHED", FINISH_TIMEOUT);
}

#[test]
fn a_savepoint_of_two_subtasks_is_restored_at_one_three_and_four() {
    let cluster = Cluster::start(2, 2);
    let first = cluster.path("first");
    let job = start_numbers(&cluster, &first);
    let running = cluster.savepoint(&job, &cluster.path("savepoints"));
    cluster.wait_for_checkpoints(&job, cluster.last_checkpoint(&job) + 1);
    let stopped = cluster.stop(&job, &cluster.path("savepoints"), false);
    assert_ne!(running, stopped);
    let before = Numbers::read(&visible_lines(&first));
    before.assert_no_gaps();

    let count = before.end() + 20_000;
    for parallelism in ["1", "3", "4"] {
        let output = cluster.path(&format!("second-{parallelism}"));
        finish_numbers(&cluster, &stopped, parallelism, &output, count);
        // Together, so that a number that both have committed is found.
        let (first, second) = (visible_lines(&first), visible_lines(&output));
        Numbers::read(first.iter().chain(&second)).assert_all_below(count);
    }

    // The job went on after the first savepoint, so what follows it is made a second time.
    let output = cluster.path("third");
    finish_numbers(&cluster, &running, "4", &output, count);
    let after = Numbers::read(&visible_lines(&output));
    assert!(after.len() > 20_000, "{} numbers follow the first savepoint", after.len());
    before.union(&after).assert_all_below(count);
}

#[test]
fn a_stop_keeps_windows_open_unless_it_drains() {
    let cluster = Cluster::start(1, 2);
    let start = |output: &str| {
        let engine = [CHECKPOINTS, &["-p", "2"]].concat();
        let arguments = ["--case", "windows", "--output", output, "--rows-per-second", "500"];
        let job = cluster.run_job(&binary("e2e-job"), &engine, &arguments);
        cluster.wait_for_checkpoints(&job, 2);
        job
    };
    let totals = |output: &str| -> Vec<u64> {
        let lines = visible_lines(output);
        lines.iter().map(|line| line.split(',').nth(1).and_then(|count| count.parse().ok()).expect("a count")).collect()
    };

    let kept = cluster.path("kept");
    let savepoint = cluster.stop(&start(&kept), &cluster.path("savepoints"), false);
    assert!(visible_lines(&kept).is_empty(), "the window is not over: {:?}", visible_lines(&kept));
    let count = 200 * KEYS;
    let rest = cluster.path("rest");
    let job = cluster.run_job(
        &binary("e2e-job"),
        &["-p", "1", "-s", &savepoint],
        &["--case", "windows", "--output", &rest, "--count", &count.to_string(), "--rows-per-second", "20000"],
    );
    cluster.wait_for_status(&job, "FINISHED", FINISH_TIMEOUT);
    assert_eq!(totals(&rest), vec![200; KEYS as usize]);

    let drained = cluster.path("drained");
    cluster.stop(&start(&drained), &cluster.path("savepoints"), true);
    let totals = totals(&drained);
    assert_eq!(totals.len(), KEYS as usize, "every key's window fires");
    assert!(totals.iter().all(|total| *total > 0));
}

#[test]
fn a_savepoint_that_does_not_fit_is_refused() {
    let cluster = Cluster::start(1, 2);
    let output = cluster.path("out");
    let job = start_numbers(&cluster, &output);
    let savepoint = cluster.stop(&job, &cluster.path("savepoints"), false);
    let run = |engine: &[&str], job: &[&str]| {
        let job = [&["--case", "numbers", "--output", &output][..], job].concat();
        cluster.run(&binary("e2e-job"), engine, &job)
    };

    let nowhere = cluster.path("nowhere");
    run(&["-s", &nowhere], &[]).refused(&[&nowhere, "_metadata"]);

    let other = ["--count-uid", "other"];
    run(&["-s", &savepoint], &other).refused(&[
        "Count",
        "the job does not have this operator",
        "-n (--allowNonRestoredState)",
    ]);
    let engine = ["-p", "2", "-s", &savepoint, "-n"];
    let other_output = cluster.path("other");
    let arguments = ["--case", "numbers", "--output", &other_output, "--count-uid", "other"];
    let job = cluster.run_job(&binary("e2e-job"), &[CHECKPOINTS, &engine].concat(), &arguments);
    cluster.wait_for_checkpoints(&job, 1);
    until("lines of the job without its state", FINISH_TIMEOUT, || {
        let lines = visible_lines(&other_output);
        // Its counts begin again, while its numbers go on.
        let goes_on = |line: &String| {
            let mut fields = line.split(',').skip(1).map(|field| field.parse::<u64>());
            matches!((fields.next(), fields.next()), (Some(Ok(number)), Some(Ok(1))) if number >= KEYS)
        };
        if lines.iter().any(goes_on) { Ok(()) } else { Err(format!("{} lines", lines.len())) }
    });
    cluster.flott("cancel", &[&job]).succeeded();
    cluster.wait_for_status(&job, "CANCELED", FINISH_TIMEOUT);

    let expected = ["saved with max-parallelism 128, the job has 64"];
    run(&["-D", "pipeline.max-parallelism=64", "-s", &savepoint], &[]).refused(&expected);
}

fn cut(bytes: &mut Vec<u8>) {
    bytes.pop();
}

fn alter(bytes: &mut Vec<u8>) {
    let last = bytes.pop().expect("it is not empty");
    bytes.push(last ^ 1);
}

/// The version stands behind the first word.
fn of_the_future(bytes: &mut [u8]) {
    bytes[b"flott-manifest ".len()] = b'9';
}

#[test]
fn a_damaged_savepoint_is_refused_with_the_name_of_the_file() {
    let cluster = Cluster::start(1, 2);
    let output = cluster.path("out");
    let job = start_numbers(&cluster, &output);
    let savepoint = local_path(&cluster.stop(&job, &cluster.path("savepoints"), false));

    // A savepoint can be moved, so a copy that is whole is as good.
    let count = Numbers::read(&visible_lines(&output)).end() + 1000;
    let whole = cluster.path("whole");
    copy_folder(&savepoint, &whole);
    finish_numbers(&cluster, &whole, "2", &output, count);
    Numbers::read(&visible_lines(&output)).assert_all_below(count);

    type Damage = fn(&mut Vec<u8>);
    let cases: [(&str, &str, Damage, &str); 5] = [
        ("cut-state", STATE, cut, "truncated"),
        ("altered-state", STATE, alter, "is damaged: its SHA-256 is"),
        ("cut-metadata", "_metadata", cut, "truncated or damaged"),
        ("altered-metadata", "_metadata", alter, "truncated or damaged"),
        (
            "future-metadata",
            "_metadata",
            |bytes| of_the_future(bytes),
            "has format version 9, this build reads versions up to",
        ),
    ];
    let refused = |folder: &str, file: &Path, expected: &str| {
        let arguments = ["--case", "numbers", "--output", &cluster.path("none")];
        let refusal = cluster.run(&binary("e2e-job"), &["-p", "2", "-s", folder], &arguments);
        refusal.refused(&[file.to_str().expect("its name is UTF-8"), expected]);
    };
    for (name, end, damage, expected) in cases {
        let damaged = cluster.path(name);
        copy_folder(&savepoint, &damaged);
        let file = files_below(&damaged, end).into_iter().next().expect("a savepoint has such a file");
        change_file(&file, damage);
        refused(&damaged, &file, expected);
    }
    for (name, end) in [("without-state", STATE), ("without-metadata", "_metadata")] {
        let incomplete = cluster.path(name);
        copy_folder(&savepoint, &incomplete);
        let file = files_below(&incomplete, end).into_iter().next().expect("a savepoint has such a file");
        fs::remove_file(&file).expect("it can be removed");
        refused(&incomplete, &file, "does not exist");
    }
    assert!(visible_lines(cluster.path("none")).is_empty());
}

#[test]
fn a_claimed_savepoint_goes_when_the_job_has_checkpoints_of_its_own_and_any_other_stays() {
    let cluster = Cluster::start(1, 4);
    let first = cluster.path("first");
    let job = start_numbers(&cluster, &first);
    let savepoint = local_path(&cluster.stop(&job, &cluster.path("savepoints"), false));
    let (claimed, kept) = (cluster.path("claimed"), cluster.path("kept"));
    copy_folder(&savepoint, &claimed);
    copy_folder(&savepoint, &kept);
    let files = files_below(&kept, "");

    let start = |folder: &str, mode: &str, output: &str| {
        let engine = [CHECKPOINTS, &["-p", "2", "-s", folder, "--claimMode", mode]].concat();
        cluster.run_job(&binary("e2e-job"), &engine, &["--case", "numbers", "--output", output])
    };
    let (output, other_output) = (cluster.path("second"), cluster.path("third"));
    let (job, other) = (start(&claimed, "claim", &output), start(&kept, "no_claim", &other_output));
    until("the claimed savepoint to go", FINISH_TIMEOUT, || match Path::new(&claimed).exists() {
        false => Ok(()),
        true => Err(format!("it is there after checkpoint {}", cluster.last_checkpoint(&job))),
    });
    // It needs nothing of it any more: what it starts from now are its own files.
    signal(cluster.workers_of(&job)[0], "KILL");
    cluster.wait_for_generation(&job, 2);
    cluster.wait_for_checkpoints(&other, cluster.last_checkpoint(&other) + 2);
    assert_eq!(files_below(&kept, ""), files, "a savepoint that is not claimed is the user's");
    for (job, output) in [(&job, &output), (&other, &other_output)] {
        cluster.stop(job, &cluster.path("savepoints"), false);
        let (first, rest) = (visible_lines(&first), visible_lines(output));
        Numbers::read(first.iter().chain(&rest)).assert_no_gaps();
    }
    assert_eq!(files_below(&kept, ""), files);
}

#[test]
fn a_retained_checkpoint_is_restored_unless_it_is_damaged() {
    let cluster = Cluster::start(1, 2);
    let output = cluster.path("out");
    let retained = "execution.checkpointing.externalized-checkpoint-retention=RETAIN_ON_CANCELLATION";
    let engine = [CHECKPOINTS, &["-p", "2", "-D", retained]].concat();
    let job = cluster.run_job(&binary("e2e-job"), &engine, &["--case", "numbers", "--output", &output]);
    cluster.wait_for_checkpoints(&job, 3);
    cluster.flott("cancel", &[&job]).succeeded();
    cluster.wait_for_status(&job, "CANCELED", FINISH_TIMEOUT);
    let checkpoints = cluster.rest(&format!("/jobs/{job}/checkpoints"));
    let checkpoint = checkpoints["latest"]["completed"]["external_path"].as_str().expect("it has one").to_owned();

    // What was not committed before the cancellation is committed, or made again.
    let count = Numbers::read(&visible_lines(&output)).end() + 20_000;
    finish_numbers(&cluster, &checkpoint, "1", &output, count);
    Numbers::read(&visible_lines(&output)).assert_all_below(count);

    let job_folder = local_path(&checkpoint).ancestors().nth(2).expect("it lies in the job's folder").to_owned();
    for file in files_below(&job_folder, ".state") {
        change_file(&file, alter);
    }
    let none = cluster.path("none");
    let arguments = ["--case", "numbers", "--output", &none];
    let refusal = cluster.run(&binary("e2e-job"), &["-p", "2", "-s", &checkpoint], &arguments);
    refusal.refused(&[job_folder.to_str().expect("its name is UTF-8"), ".state is damaged: its SHA-256 is"]);
}
