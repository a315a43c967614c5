//! State that does not fit into memory, and checkpoints under backpressure: with kills, and every record counted.

use std::fs;
use std::path::Path;
use std::time::Duration;

use flott_e2e::{
    Cluster, Numbers, Paused, Setup, assert_same, binary, files_below, line, peak_memory, signal, until, visible_lines,
};

/// With 64 keys ten times as much as the memory that is allowed.
const PADDING: &str = "160000";

fn bytes_below(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let size = |entry: fs::DirEntry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => bytes_below(&entry.path()),
        metadata => metadata.map_or(0, |metadata| metadata.len()),
    };
    entries.map(size).sum()
}

fn survives(backend: &str) {
    let scratch = tempfile::tempdir().expect("a temporary folder");
    let setup =
        Setup::new(2, 2).option("taskmanager.memory.managed.size", "512kb").option("state.backend.type", backend);
    let mut cluster = setup.option("io.tmp.dirs", scratch.path().to_str().expect("its name is UTF-8")).start();
    let output = cluster.path("out");
    let engine = ["-p", "2", "-D", "execution.checkpointing.interval=200ms", "-D", "restart-strategy.type=fixed-delay"];
    let engine = [&engine[..], &["-D", "restart-strategy.fixed-delay.attempts=100"]].concat();
    let arguments = ["--case", "numbers", "--output", &output, "--padding", PADDING, "--rows-per-second", "3000"];
    let job = cluster.run_job(&binary("e2e-job"), &engine, &arguments);
    cluster.wait_for_checkpoints(&job, 3);
    let spilled = bytes_below(scratch.path());
    assert!(spilled > 1_000_000, "only {spilled} bytes are on disk");

    signal(cluster.workers_of(&job)[0], "KILL");
    cluster.wait_for_generation(&job, 2);
    cluster.flott("rescale", &[&job, "-p", "4"]).succeeded();
    cluster.wait_for_parallelism(&job, &[4, 4]);
    cluster.kill_task_manager(0);
    cluster.start_task_manager(0);
    cluster.wait_for_generation(&job, 4);

    // From tables, into a memory that has room for them.
    let savepoint = cluster.stop(&job, &cluster.path("savepoints"), false);
    let first = visible_lines(&output);
    let before = Numbers::read(&first);
    before.assert_no_gaps();
    let (rest, count) = (cluster.path("rest"), before.end() + 5_000);
    let count_text = count.to_string();
    let arguments = ["--case", "numbers", "--output", &rest, "--padding", PADDING, "--count", &count_text];
    let arguments = [&arguments[..], &["--rows-per-second", "10000"]].concat();
    cluster.run(&binary("e2e-job"), &["-p", "3", "-s", &savepoint], &arguments).succeeded();
    Numbers::read(first.iter().chain(&visible_lines(&rest))).assert_all_below(count);
}

#[test]
fn what_memory_has_no_room_for_is_on_disk_and_survives() {
    survives("hashmap");
}

#[test]
fn state_on_disk_survives() {
    survives("disk");
}

/// Ten times what all keyed state of a TaskManager may take: so many keys, with so much each.
const BUDGET: u64 = 30 << 20;
const WIDE_KEYS: u64 = 30_720;
const WIDE_PADDING: u64 = 10_240;

/// What a worker may take beside its budget and what it takes without state: snapshots on their way, indexes and filters,
/// merging, and what the allocator keeps.
const OVERHEAD: u64 = 100 << 20;

/// Runs the numbers of all keys twice, to their end. Returns the most memory that the worker has had, and the most that was
/// on disk.
fn peaks(cluster: &Cluster, scratch: &Path, backend: &str, padding: u64) -> (u64, u64) {
    let (output, count) = (cluster.path(&format!("out-{padding}")), 2 * WIDE_KEYS);
    let backend = format!("state.backend.type={backend}");
    let engine = ["-p", "2", "-D", "execution.checkpointing.interval=2s", "-D", &backend];
    let [keys, padding, count_text] = [WIDE_KEYS, padding, count].map(|number| number.to_string());
    let sizes = ["--keys", &keys, "--padding", &padding, "--count", &count_text, "--rows-per-second", "4000"];
    let arguments = [&["--case", "numbers", "--output", &output][..], &sizes].concat();
    let job = cluster.run_job(&binary("e2e-job"), &engine, &arguments);
    let (mut memory, mut disk) = (0, 0);
    until("the end of the job", Duration::from_secs(180), || {
        memory = cluster.workers_of(&job).into_iter().filter_map(peak_memory).fold(memory, u64::max);
        disk = disk.max(bytes_below(scratch));
        let state = cluster.try_rest(&format!("/jobs/{job}"))?["state"].clone();
        assert_ne!(state, "FAILED", "{}", cluster.exceptions(&job));
        if state == "FINISHED" { Ok(()) } else { Err(state.to_string()) }
    });
    let expected: Vec<String> = (0..count).map(|number| line(number, number / WIDE_KEYS + 1)).collect();
    assert_same("numbers of many keys", &visible_lines(&output), &expected);
    (memory, disk)
}

/// State that is ten times the budget costs a worker the budget, and not the state.
fn keeps_to_its_memory(backend: &str) {
    let scratch = tempfile::tempdir().expect("a temporary folder");
    let setup = Setup::new(1, 2).option("taskmanager.memory.managed.size", &BUDGET.to_string());
    let cluster = setup.option("io.tmp.dirs", scratch.path().to_str().expect("its name is UTF-8")).start();
    let (without, _) = peaks(&cluster, scratch.path(), backend, 0);
    let (with, disk) = peaks(&cluster, scratch.path(), backend, WIDE_PADDING);
    println!("{backend}: {} MB with {} MB on disk, {} MB without", with >> 20, disk >> 20, without >> 20);
    assert!(disk > 8 * BUDGET, "only {disk} bytes are on disk");
    assert!(with < without + BUDGET + OVERHEAD, "{with} bytes of memory, {without} without state");
}

#[test]
fn memory_keeps_to_its_budget_with_ten_times_the_state() {
    keeps_to_its_memory("hashmap");
}

#[test]
fn state_on_disk_keeps_to_its_budget_with_ten_times_the_state() {
    keeps_to_its_memory("disk");
}

#[test]
fn times_that_memory_has_no_room_for_are_told_and_the_job_goes_on() {
    // The times of 64 windows take more than the 512 bytes that a slot has.
    let setup = Setup::new(1, 2).option("taskmanager.memory.managed.size", "1kb");
    let cluster = setup.start();
    let output = cluster.path("out");
    let interval = ["-D", "execution.checkpointing.interval=200ms"];
    let job = cluster.run_job(&binary("e2e-job"), &interval, &["--case", "windows", "--output", &output]);
    until("the figures of the windows", Duration::from_secs(60), || {
        let details = cluster.try_rest(&format!("/jobs/{job}"))?;
        let operators = details["vertices"].as_array().into_iter().flatten().flat_map(|v| v["operators"].as_array());
        let state = operators.flatten().find(|operator| operator["name"] == "Count").map(|count| &count["states"][0]);
        let state = state.ok_or_else(|| details.to_string())?;
        let figures = ["entries", "index-bytes", "memory-bytes", "disk-bytes"].map(|name| state[name].as_u64());
        let [entries, Some(index), Some(memory), disk] = figures else { return Err(state.to_string()) };
        let is_all = state["name"] == "windows" && entries == Some(64) && disk > Some(0);
        if is_all && index > 512 && memory >= index { Ok(()) } else { Err(state.to_string()) }
    });
    cluster.wait_for_checkpoints(&job, cluster.last_checkpoint(&job) + 2);
    let log =
        fs::read_to_string(cluster.path(&format!("taskmanager-0/log/{job}-1.err"))).expect("the worker has a log");
    let warnings: Vec<&str> = log.lines().filter(|line| line.contains("cannot go to disk")).collect();
    assert_eq!(warnings.len(), 1, "{log}");
    for part in ["WARN", "operator=\"Count\"", "state=\"windows\"", "taskmanager.memory.managed.size"] {
        assert!(warnings[0].contains(part), "{part} is not in {}", warnings[0]);
    }
    cluster.stop(&job, &cluster.path("savepoints"), true);
    assert_eq!(visible_lines(&output).len(), 64);
}

#[test]
fn unaligned_checkpoints_count_each_record_once() {
    for timeout in ["0s", "20ms"] {
        let cluster = Cluster::start(2, 4);
        let output = cluster.path("out");
        let is_late = timeout != "0s";
        let timeout = format!("execution.checkpointing.aligned-checkpoint-timeout={timeout}");
        let options =
            ["execution.checkpointing.interval=100ms", "execution.checkpointing.unaligned.enabled=true", &timeout];
        let options: Vec<&str> = options.iter().flat_map(|option| ["-D", *option]).collect();
        // Faster than the sink can write: the channels are full.
        let arguments = ["--case", "numbers", "--output", &output, "--rows-per-second", "1000000"];
        let engine = [&["-p", "4"][..], &options].concat();
        let job = cluster.run_job(&binary("e2e-job"), &engine, &arguments);
        for generation in 2..=4 {
            cluster.wait_for_checkpoints(&job, cluster.last_checkpoint(&job) + 2);
            signal(cluster.workers_of(&job)[0], "KILL");
            cluster.wait_for_generation(&job, generation);
        }
        // With a timeout it depends on the machine whether any barrier waits so long.
        until("a checkpoint with records in flight", Duration::from_secs(60), || {
            let is_there = is_late || !files_below(cluster.path("jobmanager"), ".channels").is_empty();
            if is_there {
                return Ok(());
            }
            // What the others send to this one fills its channels.
            let _paused = Paused::new(cluster.workers_of(&job)[0]);
            std::thread::sleep(Duration::from_millis(300));
            Err("none".to_owned())
        });
        // Records in flight go to other subtasks.
        cluster.flott("rescale", &[&job, "-p", "2"]).succeeded();
        cluster.wait_for_parallelism(&job, &[2, 2]);
        cluster.stop(&job, &cluster.path("savepoints"), false);
        Numbers::read(&visible_lines(&output)).assert_no_gaps();
    }
}
