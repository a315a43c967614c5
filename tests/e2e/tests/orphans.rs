//! What was being written when the JobManager died is deleted by the one that follows, and nothing else is.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use flott_e2e::{Cluster, KEYS, Numbers, binary, until, visible_lines};

/// How much state there is in all: to write it takes longer than to see that somebody does.
const STATE_BYTES: u64 = 64 << 20;

const LIMIT: Duration = Duration::from_secs(60);

/// A checkpoint may become complete just before the JobManager is killed. Then it is tried again.
const ATTEMPTS: u32 = 10;

/// The numbers with much state, all of which is in each checkpoint.
fn start_numbers(cluster: &Cluster, interval: &str, output: &str) -> String {
    let checkpoints = format!("execution.checkpointing.dir={}", cluster.path("checkpoints"));
    let interval = format!("execution.checkpointing.interval={interval}");
    let options = [checkpoints.as_str(), &interval, "execution.checkpointing.incremental=false"];
    let engine = [&["-p", "2"][..], &options.map(|option| ["-D", option]).concat()].concat();
    let padding = (STATE_BYTES / KEYS).to_string();
    let arguments = ["--case", "numbers", "--output", output, "--padding", &padding];
    let job = cluster.run_job(&binary("e2e-job"), &engine, &arguments);
    cluster.wait_for_checkpoints(&job, 2);
    job
}

/// What is in a folder, which may vanish meanwhile.
fn entries(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

/// All files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let below = |path: PathBuf| if path.is_dir() { files(&path) } else { vec![path] };
    entries(folder).into_iter().flat_map(below).collect()
}

/// The number behind `prefix` in the name of a folder.
fn number(path: &Path, prefix: &str) -> Option<u64> {
    path.file_name()?.to_str()?.strip_prefix(prefix)?.parse().ok()
}

/// The folder of the last checkpoint that anything was written for.
fn last_checkpoint(job_folder: &Path) -> Option<PathBuf> {
    let last = |folder: &Path, prefix: &str| entries(folder).into_iter().max_by_key(|path| number(path, prefix));
    last(&last(job_folder, "g")?, "chk-")
}

fn is_unfinished(folder: &Path) -> bool {
    !files(folder).is_empty() && !folder.join("_metadata").exists()
}

/// Kills the JobManager while something is being written to the folder that `find` gives, and starts it again. Returns that
/// folder.
fn kill_amid(cluster: &mut Cluster, job: &str, mut find: impl FnMut(&Cluster) -> Option<PathBuf>) -> PathBuf {
    for _ in 0..ATTEMPTS {
        let generation = cluster.generation(job);
        let unfinished = until("something to be half written", LIMIT, || {
            find(cluster).filter(|folder| is_unfinished(folder)).ok_or_else(|| "nothing is".to_owned())
        });
        cluster.kill_job_manager();
        let is_left = is_unfinished(&unfinished);
        cluster.start_job_manager();
        if is_left {
            return unfinished;
        }
        cluster.wait_for_generation(job, generation + 1);
    }
    panic!("{ATTEMPTS} times it was complete before the JobManager was dead");
}

fn wait_until_gone(folder: &Path) {
    until(&format!("{} to be deleted", folder.display()), LIMIT, || match files(folder) {
        files if files.is_empty() && !folder.exists() => Ok(()),
        files => Err(format!("{files:?}")),
    });
}

#[test]
fn fault_1_a_checkpoint_that_the_job_manager_did_not_live_to_complete_is_deleted() {
    let mut cluster = Cluster::start(2, 1);
    let output = cluster.path("out");
    let job = start_numbers(&cluster, "200ms", &output);
    let job_folder = PathBuf::from(cluster.path("checkpoints")).join(&job);
    let notes = job_folder.join("notes");
    fs::write(&notes, "not of the job").expect("it can be written");
    let before = cluster.generation(&job);
    let orphan = kill_amid(&mut cluster, &job, |_| last_checkpoint(&job_folder));
    cluster.wait_for_generation(&job, before + 1);
    wait_until_gone(&orphan);
    // No checkpoint shares a file with an earlier one, so nothing at all is left of the executions before.
    let generation = cluster.generation(&job);
    until("nothing to be left of earlier executions", LIMIT, || {
        let older = (1..generation).flat_map(|generation| files(&job_folder.join(format!("g{generation}"))));
        let older: Vec<PathBuf> = older.collect();
        if older.is_empty() { Ok(()) } else { Err(format!("{older:?}")) }
    });
    assert!(notes.exists(), "it was not the job's");

    // What is kept is whole.
    cluster.kill_task_manager(0);
    cluster.start_task_manager(0);
    cluster.wait_for_generation(&job, generation + 1);
    cluster.stop(&job, &cluster.path("savepoints"), false);
    Numbers::read(&visible_lines(&output)).assert_no_gaps();
}

#[test]
fn a_savepoint_that_the_job_manager_did_not_live_to_complete_is_deleted_and_others_are_not() {
    let mut cluster = Cluster::start(2, 1);
    let output = cluster.path("out");
    let job = start_numbers(&cluster, "1s", &output);
    let savepoints = PathBuf::from(cluster.path("savepoints"));
    let whole = cluster.savepoint(&job, &cluster.path("savepoints"));
    let whole = flott_e2e::local_path(&whole);
    let known: Vec<PathBuf> = entries(&savepoints);
    let mut asked_in = 0;
    let orphan = kill_amid(&mut cluster, &job, |cluster| {
        let generation = cluster.generation(&job);
        if asked_in != generation {
            asked_in = generation;
            let body = format!("{{\"target-directory\": \"{}\", \"cancel-job\": false}}", savepoints.display());
            let (status, accepted) = cluster.request("POST", &format!("/jobs/{job}/savepoints"), body.as_bytes());
            assert_eq!(status, 202, "{accepted}");
        }
        entries(&savepoints).into_iter().find(|folder| !known.contains(folder) && is_unfinished(folder))
    });
    cluster.wait_for_generation(&job, 2);
    wait_until_gone(&orphan);
    assert!(whole.join("_metadata").exists(), "it is the user's");

    let stopped = cluster.stop(&job, &cluster.path("savepoints"), false);
    let before = Numbers::read(&visible_lines(&output));
    before.assert_no_gaps();
    let count = before.end() + 1000;
    for (name, savepoint) in [("running", whole.to_string_lossy().into_owned()), ("stopped", stopped)] {
        let (output, count) = (cluster.path(name), count.to_string());
        let arguments = ["--case", "numbers", "--output", &output, "--count", &count, "--rows-per-second", "20000"];
        let job = cluster.run_job(&binary("e2e-job"), &["-p", "2", "-s", &savepoint], &arguments);
        cluster.wait_for_status(&job, "FINISHED", LIMIT);
        before.union(&Numbers::read(&visible_lines(&output))).assert_all_below(count.parse().expect("it is a number"));
    }
}
