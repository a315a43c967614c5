//! Savepoints and checkpoints that earlier builds wrote are restored by this one.
//!
//! `golden/format-N` holds some of each, at parallelism 2, written by a build whose manifests have format version N:
//! - of the job `windows`, a savepoint and a checkpoint;
//! - of the job `kinds`, whose state is of every kind, since version 2: a savepoint, a checkpoint of a base, changes and
//!   records in flight, and one whose state lies in runs.
//!
//! They are never written again: what a user keeps must stay readable. `UPDATE_GOLDEN=1 cargo test -p flott-e2e --test
//! golden` writes those of this build's version that are not there yet, and checks nothing.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use flott_checkpoint::manifest::{FORMAT_VERSION, METADATA_FILE};
use flott_checkpoint::{Manifest, SubtaskSnapshot};
use flott_e2e::{
    Cluster, KEYS, Setup, assert_same, binary, copy_folder, kinds_lines, local_path, repository, until, visible_lines,
};

const FINISH_TIMEOUT: Duration = Duration::from_secs(60);

/// The first version that has goldens of the job `kinds`.
const KINDS_SINCE: u32 = 2;

/// How many numbers the job `kinds` has: more than it gets through while its goldens are written.
const COUNT: u64 = 100_000;

fn golden(format: u32, kind: &str) -> PathBuf {
    repository().join(format!("tests/e2e/golden/format-{format}/{kind}"))
}

fn is_update() -> bool {
    env::var_os("UPDATE_GOLDEN").is_some()
}

#[test]
fn savepoints_and_checkpoints_of_every_format_are_restored() {
    if is_update() {
        return;
    }
    let cluster = Cluster::start(1, 4);
    for format in 1..=FORMAT_VERSION {
        for (kind, parallelism) in [("savepoint", "2"), ("savepoint", "3"), ("checkpoint", "2"), ("checkpoint", "1")] {
            // A copy, so that the folder is another one than where it was written.
            let copy = cluster.path(&format!("format-{format}-{kind}-{parallelism}"));
            copy_folder(golden(format, kind), &copy);
            let output = cluster.path(&format!("out-{format}-{kind}-{parallelism}"));
            let count = 200 * KEYS;
            let job = cluster.run_job(
                &binary("e2e-job"),
                &["-p", parallelism, "-s", &copy],
                &[
                    "--case",
                    "windows",
                    "--output",
                    &output,
                    "--count",
                    &count.to_string(),
                    "--rows-per-second",
                    "50000",
                ],
            );
            cluster.wait_for_status(&job, "FINISHED", FINISH_TIMEOUT);
            let mut totals: Vec<String> = visible_lines(&output);
            totals.sort();
            let mut expected: Vec<String> = (0..KEYS).map(|key| format!("{key},200")).collect();
            expected.sort();
            assert_eq!(totals, expected, "{kind} of format {format} at parallelism {parallelism}");
        }
    }
}

/// Each is restored over both backends, and at its own parallelism and others.
const KINDS: [(&str, &str, &str); 6] = [
    ("savepoint", "2", "hashmap"),
    ("savepoint", "3", "disk"),
    ("checkpoint", "2", "hashmap"),
    ("checkpoint", "1", "disk"),
    ("runs", "2", "disk"),
    ("runs", "3", "hashmap"),
];

#[test]
fn state_of_every_kind_is_restored_from_every_format() {
    if is_update() {
        return write_kinds();
    }
    let cluster = Cluster::start(1, 4);
    // By when they are restored, all keys have been due to be woken by the wall clock once.
    let expected = kinds_lines(COUNT, 1);
    for format in KINDS_SINCE..=FORMAT_VERSION {
        for (kind, parallelism, backend) in KINDS {
            let what = format!("{kind} of format {format} at parallelism {parallelism} over {backend}");
            let original = golden(format, &format!("kinds/{kind}"));
            let copy = cluster.path(&format!("format-{format}-{kind}-{parallelism}"));
            assert!(original.exists(), "there is no {}: see the top of this file", original.display());
            copy_folder(original, &copy);
            let output = cluster.path(&format!("out-{format}-{kind}-{parallelism}"));
            let backend = format!("state.backend.type={backend}");
            let engine = ["-p", parallelism, "-s", &copy, "-D", &backend];
            let count = COUNT.to_string();
            let arguments = ["--case", "kinds", "--output", &output, "--count", &count, "--rows-per-second", "1000000"];
            let job = cluster.run_job(&binary("e2e-job"), &engine, &arguments);
            cluster.wait_for_status(&job, "FINISHED", FINISH_TIMEOUT);
            assert_same(&what, &visible_lines(&output), &expected);
        }
    }
}

/// Writes the goldens of the job `kinds` that this build's version does not have.
fn write_kinds() {
    let new = |kind: &str| Some(golden(FORMAT_VERSION, &format!("kinds/{kind}"))).filter(|folder| !folder.exists());
    let cluster = Setup::new(2, 1).start();
    let start = |backend: &str| {
        let backend = format!("state.backend.type={backend}");
        let options = [
            "execution.checkpointing.unaligned.enabled=true",
            "execution.checkpointing.externalized-checkpoint-retention=RETAIN_ON_CANCELLATION",
            &backend,
        ];
        let options = options.iter().flat_map(|option| ["-D", *option]);
        let engine: Vec<&str> = ["-p", "2"].into_iter().chain(options).collect();
        let (output, count) = (cluster.path(&backend), COUNT.to_string());
        // Much beside what changes, so that some changes are not as large.
        let arguments = ["--case", "kinds", "--output", &output, "--padding", "6000", "--count", &count];
        let arguments = [&arguments[..], &["--rows-per-second", "5000"]].concat();
        let job = cluster.run_job(&binary("e2e-job"), &engine, &arguments);
        cluster.wait_for_status(&job, "RUNNING", FINISH_TIMEOUT);
        // Without a base nothing has changed.
        until("state of all keys", FINISH_TIMEOUT, || {
            let manifest = read(&cluster.checkpoint(&job));
            let keys = rows_of(&manifest, "count");
            if keys >= KEYS { Ok(()) } else { Err(format!("{keys} keys")) }
        });
        cluster.checkpoint(&job);
        job
    };

    let job = start("hashmap");
    if let Some(folder) = new("savepoint") {
        copy_folder(local_path(&cluster.savepoint(&job, &cluster.path("savepoints"))), &folder);
        check_kinds(&folder);
    }
    let in_flight = cluster.checkpoint_in_flight(&job);
    cluster.cancel(&job);
    if let Some(folder) = new("checkpoint") {
        gather(&in_flight, &folder);
        let manifest = check_kinds(&folder);
        assert!(subtasks(&manifest).any(|subtask| subtask.keyed_files.len() > 1), "no changes build on a base");
        assert!(subtasks(&manifest).filter_map(|subtask| subtask.channel_state.as_ref()).any(|state| state.rows > 0));
    }

    let job = start("disk");
    let last = cluster.checkpoint(&job);
    cluster.cancel(&job);
    if let Some(folder) = new("runs") {
        gather(&last, &folder);
        let manifest = check_kinds(&folder);
        let mut states = subtasks(&manifest).flat_map(|subtask| &subtask.keyed_states);
        assert!(
            states.any(|state| state.runs.as_ref().is_some_and(|runs| runs.len() > 1)),
            "no state has several runs"
        );
    }
}

fn read(folder: &Path) -> Manifest {
    let path = folder.join(METADATA_FILE);
    let bytes = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    Manifest::from_bytes(&path.display().to_string(), &bytes).unwrap_or_else(|error| panic!("{error}"))
}

fn subtasks(manifest: &Manifest) -> impl Iterator<Item = &SubtaskSnapshot> {
    manifest.vertices.iter().flat_map(|vertex| &vertex.subtasks)
}

fn rows_of(manifest: &Manifest, state: &str) -> u64 {
    let states = subtasks(manifest).flat_map(|subtask| &subtask.keyed_states);
    states.filter(|keyed| keyed.name == state).map(|keyed| keyed.rows).sum()
}

/// Copies a checkpoint with the files that it has from earlier ones. It names those in full, so that it cannot be moved as
/// it is; the copy can.
fn gather(folder: &Path, to: &Path) {
    let mut manifest = read(folder);
    let location = format!("file://{}", folder.display());
    fs::create_dir_all(to).unwrap_or_else(|error| panic!("making {}: {error}", to.display()));
    let subtasks = manifest.vertices.iter_mut().flat_map(|vertex| &mut vertex.subtasks);
    for (number, file) in subtasks.flat_map(SubtaskSnapshot::files_mut).enumerate() {
        let from = local_path(&file.resolve(&location).path);
        // Checkpoints give their files the same names.
        let name = from.file_name().and_then(|name| name.to_str()).expect("its name is UTF-8");
        file.path = format!("{number}-{name}");
        fs::copy(&from, to.join(&file.path)).unwrap_or_else(|error| panic!("copying {}: {error}", from.display()));
    }
    let bytes = manifest.to_bytes().unwrap_or_else(|error| panic!("{error}"));
    fs::write(to.join(METADATA_FILE), bytes).unwrap_or_else(|error| panic!("writing {}: {error}", to.display()));
}

/// Whether a golden has what it is for. One that has not must not stay.
fn check_kinds(folder: &Path) -> Manifest {
    let manifest = read(folder);
    let timers = ["_timer_event_time", "_timer_processing_time"];
    for state in ["product", "parity", "step", "note", "recent", "residues"].iter().chain(&timers) {
        assert!(rows_of(&manifest, state) > 0, "{} has no state '{state}': remove it, and try again", folder.display());
    }
    println!("wrote {}", folder.display());
    manifest
}
