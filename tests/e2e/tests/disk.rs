//! A full disk. Where checkpoints and savepoints go: they fail with the reason, and the job goes on as long as it may. Where
//! state goes that memory has no room for: the job fails with the reason, and goes on from its last checkpoint when there
//! is room.
//!
//! It takes root to mount a small disk. Where that is missing the tests are skipped, unless `CI` is set: then they fail.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use std::{env, fs};

use flott_e2e::{Cluster, Numbers, Setup, binary, files_below, local_path, until, visible_lines};
use tempfile::TempDir;

const LIMIT: Duration = Duration::from_secs(60);

/// A file system in memory of 1 MiB, unmounted when this is dropped.
struct SmallDisk {
    path: String,
    /// The folder that it is in, if that goes with it.
    _parent: Option<TempDir>,
}

impl SmallDisk {
    /// Mounts it on a new folder, if this user may.
    fn mount(path: String) -> Option<Self> {
        fs::create_dir(&path).expect("a folder can be made");
        let is_mounted = mount(&["-t", "tmpfs", "-o", "size=1m", "tmpfs", &path]);
        if !is_mounted {
            let why = "a file system of 1 MiB cannot be mounted, which takes root";
            assert!(env::var_os("CI").is_none(), "{why}");
            println!("skipped: {why}");
        }
        is_mounted.then_some(Self { path, _parent: None })
    }

    /// Mounts it before there is a cluster.
    fn mount_anywhere() -> Option<Self> {
        let parent = tempfile::tempdir().expect("a temporary folder");
        let path = parent.path().join("small").to_str().expect("its name is UTF-8").to_owned();
        let mut disk = Self::mount(path)?;
        disk._parent = Some(parent);
        Some(disk)
    }

    /// Leaves no room until this file is removed.
    fn fill(&self) -> PathBuf {
        let path = Path::new(&self.path).join("filler");
        let mut file = File::create(&path).expect("a file can be made");
        while file.write_all(&[0; 4096]).is_ok() {}
        path
    }

    fn enlarge(&self) {
        assert!(mount(&["-o", "remount,size=64m", &self.path]), "{} cannot be enlarged", self.path);
    }
}

fn mount(arguments: &[&str]) -> bool {
    Command::new("mount").args(arguments).output().is_ok_and(|output| output.status.success())
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily, since processes may still have files open there. A mount that stays costs no more than its memory.
        let _ = Command::new("umount").args(["-l", &self.path]).status();
    }
}

/// A cluster with 256 KiB of memory for state in each slot, and a disk of 1 MiB for the rest.
fn cluster_with_small_disk() -> Option<(Cluster, SmallDisk)> {
    let disk = SmallDisk::mount_anywhere()?;
    let setup = Setup::new(1, 4).option("taskmanager.memory.managed.size", "1mb").option("io.tmp.dirs", &disk.path);
    Some((setup.start(), disk))
}

/// What a message about a full disk for state says: whose state it is, where it was to go, and what can be done.
fn is_told(disk: &SmallDisk) -> Vec<String> {
    let folder = format!("the disk of {}/flott-state-", disk.path);
    let parts = ["operator 'Count'", "state 'padding'", &folder, "is full", "No space left on device"];
    let ways_out = ["'io.tmp.dirs'", "'taskmanager.memory.managed.size'"];
    parts.into_iter().chain(ways_out).map(str::to_owned).collect()
}

/// The job has more state than memory and disk together; another one beside it has little.
fn state_outgrows_the_disk(backend: &str) {
    let Some((cluster, disk)) = cluster_with_small_disk() else { return };
    let (output, small_output) = (cluster.path("out"), cluster.path("small-out"));
    let interval = ["-D", "execution.checkpointing.interval=200ms"];
    let small = cluster.run_job(&binary("e2e-job"), &interval, &["--case", "numbers", "--output", &small_output]);
    cluster.wait_for_checkpoints(&small, 1);

    let backend = format!("state.backend.type={backend}");
    let restarts = ["-D", "restart-strategy.type=fixed-delay", "-D", "restart-strategy.fixed-delay.attempts=1000"];
    let tolerant = ["-D", "execution.checkpointing.tolerable-failed-checkpoints=1000", "-D", &backend];
    let engine = [&["-p", "2"][..], &interval, &restarts, &tolerant].concat();
    // 64 keys with 64 KiB each are 4 MiB.
    let arguments = ["--case", "numbers", "--output", &output, "--padding", "65536", "--count", "20000"];
    let job = cluster.run_job(&binary("e2e-job"), &engine, &arguments);
    let told = is_told(&disk);
    until("the job to fail twice for the full disk", LIMIT, || {
        let exceptions = cluster.exceptions(&job);
        let is_told = told.iter().all(|part| exceptions.contains(part));
        if is_told && cluster.generation(&job) >= 3 { Ok(()) } else { Err(exceptions) }
    });
    cluster.wait_for_checkpoints(&small, cluster.last_checkpoint(&small) + 2);
    let details = cluster.rest(&format!("/jobs/{small}"));
    assert_eq!((&details["state"], &details["generation"]), (&"RUNNING".into(), &1.into()), "the other job is harmed");
    assert_eq!(cluster.rest("/overview")["taskmanagers"], 1);

    disk.enlarge();
    cluster.wait_for_status(&job, "FINISHED", LIMIT);
    Numbers::read(&visible_lines(&output)).assert_all_below(20_000);
    cluster.stop(&small, &cluster.path("savepoints"), false);
    Numbers::read(&visible_lines(&small_output)).assert_no_gaps();
}

#[test]
fn state_that_memory_and_disk_have_no_room_for_fails_its_job_until_there_is_room() {
    state_outgrows_the_disk("hashmap");
}

#[test]
fn state_that_the_disk_has_no_room_for_fails_its_job_until_there_is_room() {
    state_outgrows_the_disk("disk");
}

#[test]
fn a_job_without_restarts_ends_with_whose_state_has_no_room() {
    let Some((cluster, disk)) = cluster_with_small_disk() else { return };
    let output = cluster.path("out");
    let engine = ["-D", "execution.checkpointing.interval=200ms", "-D", "restart-strategy.type=none"];
    let arguments = ["--case", "numbers", "--output", &output, "--padding", "65536"];
    let refusal = cluster.run(&binary("e2e-job"), &engine, &arguments);
    let told = is_told(&disk);
    refusal.refused(&told.iter().map(String::as_str).collect::<Vec<_>>());
    until("the TaskManager to have its slots and its disk again", LIMIT, || {
        let slots = cluster.try_rest("/overview")?["slots-available"].clone();
        let left = fs::read_dir(&disk.path).map_err(|error| error.to_string())?.count();
        if slots == 4 && left == 0 { Ok(()) } else { Err(format!("{slots} slots, {left} entries are left")) }
    });
}

#[test]
fn checkpoints_are_declined_on_a_full_disk_and_complete_when_there_is_room() {
    let cluster = Cluster::start(1, 2);
    let Some(disk) = SmallDisk::mount(cluster.path("small")) else { return };
    let output = cluster.path("out");
    let folder = format!("execution.checkpointing.dir=file://{}", disk.path);
    let options = [
        "execution.checkpointing.interval=300ms",
        "execution.checkpointing.tolerable-failed-checkpoints=1000",
        folder.as_str(),
    ];
    let engine: Vec<&str> = ["-p", "2"].into_iter().chain(options.iter().flat_map(|option| ["-D", *option])).collect();
    // 64 keys with 64 KiB each are 4 MiB.
    let arguments = ["--case", "numbers", "--output", &output, "--padding", "65536"];
    let job = cluster.run_job(&binary("e2e-job"), &engine, &arguments);
    let failed = until("two checkpoints that fail", LIMIT, || {
        let checkpoints = cluster.try_rest(&format!("/jobs/{job}/checkpoints"))?;
        let failed = &checkpoints["latest"]["failed"];
        if checkpoints["counts"]["failed"].as_u64() >= Some(2) {
            Ok(failed.clone())
        } else {
            Err(checkpoints.to_string())
        }
    });
    let reason = failed["failure_message"].as_str().unwrap_or_default();
    assert!(reason.contains("declined it") && reason.contains("No space left on device"), "{failed}");
    assert!(reason.contains(&disk.path), "the place is not named: {failed}");
    let details = cluster.rest(&format!("/jobs/{job}"));
    assert_eq!((&details["state"], &details["generation"]), (&"RUNNING".into(), &1.into()));
    assert!(visible_lines(&output).is_empty(), "nothing is committed without a checkpoint");

    disk.enlarge();
    cluster.wait_for_checkpoints(&job, failed["id"].as_u64().unwrap_or(0) + 1);
    cluster.stop(&job, &cluster.path("savepoints"), false);
    Numbers::read(&visible_lines(&output)).assert_no_gaps();
}

#[test]
fn a_savepoint_that_the_disk_has_no_room_for_harms_nothing() {
    let cluster = Cluster::start(1, 2);
    let Some(disk) = SmallDisk::mount(cluster.path("small")) else { return };
    let output = cluster.path("out");
    let engine = ["-p", "2", "-D", "execution.checkpointing.interval=300ms"];
    let job = cluster.run_job(&binary("e2e-job"), &engine, &["--case", "numbers", "--output", &output]);
    cluster.wait_for_checkpoints(&job, 2);
    let target = format!("{}/savepoints", disk.path);
    // A savepoint of this job is small.
    let filler = disk.fill();
    let refused = |verb: &str, arguments: &[&str]| {
        cluster.flott(verb, arguments).refused(&["No space left on device", &disk.path]);
    };
    refused("savepoint", &[&job, &target]);
    let details = cluster.rest(&format!("/jobs/{job}"));
    assert_eq!((&details["state"], &details["generation"]), (&"RUNNING".into(), &1.into()));
    cluster.wait_for_checkpoints(&job, cluster.last_checkpoint(&job) + 2);

    // A stop that fails leaves a job that runs, if not the same execution of it.
    refused("stop", &["-p", &target, &job]);
    cluster.wait_for_status(&job, "RUNNING", LIMIT);
    cluster.wait_for_checkpoints(&job, cluster.last_checkpoint(&job) + 2);

    fs::remove_file(filler).expect("it can be removed");
    let stopped = cluster.stop(&job, &target, false);
    assert_eq!(
        files_below(&target, "_metadata"),
        [local_path(&stopped).join("_metadata")],
        "no half savepoint is left"
    );
    Numbers::read(&visible_lines(&output)).assert_no_gaps();
}

#[test]
fn a_job_that_may_lose_no_checkpoint_fails_with_the_reason() {
    let cluster = Cluster::start(1, 2);
    let Some(disk) = SmallDisk::mount(cluster.path("small")) else { return };
    let output = cluster.path("out");
    let folder = format!("execution.checkpointing.dir=file://{}", disk.path);
    let engine = ["-D", "execution.checkpointing.interval=300ms", "-D", &folder, "-D", "restart-strategy.type=none"];
    let arguments = ["--case", "numbers", "--output", &output, "--padding", "65536"];
    let refusal = cluster.run(&binary("e2e-job"), &engine, &arguments);
    refusal.refused(&[
        "execution.checkpointing.tolerable-failed-checkpoints (0)",
        "No space left on device",
        &disk.path,
    ]);
}
