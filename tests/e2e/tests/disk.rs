//! A full disk: checkpoints fail with the reason, and the job goes on as long as it may.

use std::fs;
use std::process::Command;
use std::time::Duration;

use flott_e2e::{Cluster, Numbers, binary, until, visible_lines};

const LIMIT: Duration = Duration::from_secs(60);

/// A file system in memory of 1 MiB, unmounted when this is dropped.
struct SmallDisk(String);

impl SmallDisk {
    /// Mounts it on a new folder, if this user may.
    fn mount(path: String) -> Option<Self> {
        fs::create_dir(&path).expect("a folder can be made");
        mount(&["-t", "tmpfs", "-o", "size=1m", "tmpfs", &path]).then(|| Self(path))
    }

    fn enlarge(&self) {
        assert!(mount(&["-o", "remount,size=64m", &self.0]), "{} cannot be enlarged", self.0);
    }
}

fn mount(arguments: &[&str]) -> bool {
    Command::new("mount").args(arguments).output().is_ok_and(|output| output.status.success())
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily, since processes may still have files open there. A mount that stays costs no more than its memory.
        let _ = Command::new("umount").args(["-l", &self.0]).status();
    }
}

#[test]
fn checkpoints_are_declined_on_a_full_disk_and_complete_when_there_is_room() {
    let cluster = Cluster::start(1, 2);
    let Some(disk) = SmallDisk::mount(cluster.path("small")) else {
        println!("skipped: a file system of 1 MiB cannot be mounted, which takes root");
        return;
    };
    let output = cluster.path("out");
    let folder = format!("execution.checkpointing.dir=file://{}", disk.0);
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
    assert!(reason.contains(&disk.0), "the place is not named: {failed}");
    let details = cluster.rest(&format!("/jobs/{job}"));
    assert_eq!((&details["state"], &details["generation"]), (&"RUNNING".into(), &1.into()));
    assert!(visible_lines(&output).is_empty(), "nothing is committed without a checkpoint");

    disk.enlarge();
    cluster.wait_for_checkpoints(&job, failed["id"].as_u64().unwrap_or(0) + 1);
    cluster.stop(&job, &cluster.path("savepoints"), false);
    Numbers::read(&visible_lines(&output)).assert_no_gaps();
}

#[test]
fn a_job_that_may_lose_no_checkpoint_fails_with_the_reason() {
    let cluster = Cluster::start(1, 2);
    let Some(disk) = SmallDisk::mount(cluster.path("small")) else {
        println!("skipped: a file system of 1 MiB cannot be mounted, which takes root");
        return;
    };
    let output = cluster.path("out");
    let folder = format!("execution.checkpointing.dir=file://{}", disk.0);
    let engine = ["-D", "execution.checkpointing.interval=300ms", "-D", &folder, "-D", "restart-strategy.type=none"];
    let arguments = ["--case", "numbers", "--output", &output, "--padding", "65536"];
    let refusal = cluster.run(&binary("e2e-job"), &engine, &arguments);
    refusal.refused(&["execution.checkpointing.tolerable-failed-checkpoints (0)", "No space left on device", &disk.0]);
}
