//! Tables in partitioned files: partitions are complete once, under kills; and other programs read the files.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use flott_e2e::{Cluster, binary, python, repository, run_command, signal, visible_lines};
use serde_json::Value;

const LIMIT: Duration = Duration::from_secs(120);

/// A row is a millisecond later than the one before, and a partition has the rows of a second.
const PARTITIONS: u64 = 40;
const ROWS: u64 = PARTITIONS * 1000;

/// The folders of the partitions that are there.
fn partitions(table: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(table).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    found.sort();
    found
}

/// The numbers in the visible files of a partition.
fn numbers(partition: &Path) -> Vec<u64> {
    let number = |line: &String| -> u64 {
        let row: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}"));
        assert!(row.get("sec").is_none(), "the partition column is in the file: {line}");
        row["n"].as_u64().unwrap_or_else(|| panic!("no n in {line}"))
    };
    let mut numbers: Vec<u64> = visible_lines(partition).iter().map(number).collect();
    numbers.sort_unstable();
    numbers
}

/// Checks the partitions that are said to be complete; returns how many.
#[track_caller]
fn assert_complete(table: &str) -> u64 {
    let mut complete = 0;
    for partition in partitions(table).iter().filter(|partition| partition.join("_SUCCESS").exists()) {
        let found = numbers(partition);
        let second = found.first().copied().unwrap_or_default() / 1000;
        let name = partition.file_name().unwrap_or_default().to_string_lossy().into_owned();
        assert_eq!(name, format!("sec=1970-01-01 00%3A00%3A{second:02}"));
        assert_eq!(found, (second * 1000..(second + 1) * 1000).collect::<Vec<u64>>(), "{name} is not complete");
        complete += 1;
    }
    complete
}

#[test]
fn partitions_are_complete_once_after_kills_and_rescaling() {
    let mut cluster = Cluster::start(2, 2);
    let table = cluster.path("table");
    let file = cluster.path("job.sql");
    let script = format!(
        "SET 'execution.checkpointing.interval' = '200ms';
         SET 'restart-strategy.type' = 'exponential-delay';
         SET 'restart-strategy.exponential-delay.initial-backoff' = '50ms';
         SET 'restart-strategy.exponential-delay.max-backoff' = '300ms';
         CREATE TABLE numbers (n BIGINT, ts AS TO_TIMESTAMP_LTZ(n, 3), WATERMARK FOR ts AS ts - INTERVAL '1' SECOND) WITH (
           'connector' = 'datagen', 'rows-per-second' = '2500', 'fields.n.kind' = 'sequence', 'fields.n.start' = '0',
           'fields.n.end' = '{}');
         CREATE TABLE files (n BIGINT, sec STRING) PARTITIONED BY (sec) WITH (
           'connector' = 'filesystem', 'path' = '{table}', 'format' = 'json',
           'sink.partition-commit.trigger' = 'partition-time', 'sink.partition-commit.delay' = '1 s',
           'sink.partition-commit.policy.kind' = 'success-file');
         INSERT INTO files SELECT n, DATE_FORMAT(CAST(ts AS TIMESTAMP(3)), 'yyyy-MM-dd HH:mm:ss') FROM numbers;",
        ROWS - 1
    );
    fs::write(&file, script).expect("written");
    cluster.flott("sql", &["-f", &file, "-p", "2"]).succeeded();
    let job = cluster.running_job();
    let after_two = |cluster: &Cluster| {
        cluster.wait_for_checkpoints(&job, cluster.last_checkpoint(&job) + 2);
        assert_complete(&table)
    };
    after_two(&cluster);
    signal(cluster.workers_of(&job)[0], "KILL");
    after_two(&cluster);
    cluster.flott("rescale", &[&job, "-p", "4"]).succeeded();
    after_two(&cluster);
    cluster.kill_task_manager(1);
    cluster.start_task_manager(1);
    let before_the_end = after_two(&cluster);
    cluster.kill_job_manager();
    cluster.start_job_manager();
    after_two(&cluster);
    cluster.wait_for_status(&job, "FINISHED", LIMIT);
    assert!(before_the_end > 0, "no partition was complete before the end");
    assert_eq!((assert_complete(&table), partitions(&table).len() as u64), (PARTITIONS, PARTITIONS));
}

/// Runs a script in this process.
fn run(script: &str) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("script.sql");
    fs::write(&file, script).expect("written");
    let mut command = Command::new(binary("flott"));
    command.arg("sql").arg("-f").arg(&file).args(["-p", "2", "-o", "changelog"]);
    let mut lines: Vec<String> =
        run_command(&mut command, LIMIT).succeeded().stdout.lines().map(str::to_owned).collect();
    lines.sort_unstable();
    lines.join("\n")
}

#[test]
fn duckdb_and_pyarrow_read_parquet_and_we_read_theirs() {
    let place = tempfile::tempdir().expect("a folder");
    let path = |name: &str| place.path().join(name).to_string_lossy().into_owned();
    let columns =
        "id INT NOT NULL, name STRING, price DECIMAL(10, 2), seen TIMESTAMP(3), instant TIMESTAMP_LTZ(3), d DATE,
        list ARRAY<INT>, counts MAP<STRING, BIGINT>, inner_row ROW<x INT, y STRING>, dt STRING";
    let table = |name: &str, path: &str| {
        format!(
            "CREATE TABLE {name} ({columns}) PARTITIONED BY (dt) WITH ('connector' = 'filesystem', 'path' = '{path}', 'format' = 'parquet');\n"
        )
    };
    run(&format!(
        "{} INSERT INTO ours VALUES
           (1, 'ä', 1.25, TIMESTAMP '2024-01-02 03:04:05.678', TO_TIMESTAMP_LTZ(1700000000123, 3), DATE '2024-02-29',
            ARRAY[1, 2], MAP['k', CAST(5 AS BIGINT)], ROW(7, 'seven'), 'a/b'),
           (2, CAST(NULL AS STRING), -0.01, TIMESTAMP '1969-12-31 23:59:59.999', CAST(NULL AS TIMESTAMP_LTZ(3)), CAST(NULL AS DATE),
            CAST(NULL AS ARRAY<INT>), CAST(NULL AS MAP<STRING, BIGINT>), CAST(NULL AS ROW<x INT, y STRING>), 'a/b');",
        table("ours", &path("ours"))
    ));
    let script = repository().join("tests/e2e/tests/sql_files.py");
    let mut python = Command::new(python());
    python.arg(script).arg(path("ours")).arg(path("theirs"));
    let read = run_command(&mut python, LIMIT).succeeded().stdout;
    let lines: Vec<&str> = read.lines().collect();
    let expected = [
        "1|ä|1.25|2024-01-02 03:04:05.678000|2023-11-14 22:13:20.123000+00:00|2024-02-29|[1, 2]|5|7|a/b",
        "2|None|-0.01|1969-12-31 23:59:59.999000|None|None|None|None|None|a/b",
    ];
    for reader in ["duckdb", "pyarrow"] {
        let of: Vec<&str> = lines.iter().filter_map(|line| line.strip_prefix(reader)?.strip_prefix('|')).collect();
        assert_eq!(of, expected, "{reader}");
    }
    // What pyarrow has written, with its own names of folders and its own types.
    let found = run(&format!("{} SELECT * FROM theirs WHERE dt > 'a';", table("theirs", &path("theirs"))));
    assert_eq!(
        found,
        "+I\t1\tä\t1.25\t2024-01-02T03:04:05.678\t2023-11-14T22:13:20.123Z\t2024-02-29\t[1, 2]\t{k=5}\t+I[7, seven]\ta/b\n\
         +I\t2\tnull\t-0.01\t1969-12-31T23:59:59.999\tnull\tnull\tnull\tnull\tnull\ta/b"
    );
}

#[test]
fn insert_overwrite_replaces_the_partitions_that_it_writes() {
    let place = tempfile::tempdir().expect("a folder");
    let path = place.path().join("table").to_string_lossy().into_owned();
    let whole = place.path().join("whole").to_string_lossy().into_owned();
    // Flink 2.3 gives the same for these statements.
    let tables = format!(
        "SET 'execution.runtime-mode' = 'batch';
         CREATE TABLE p (v INT, k INT, h INT) PARTITIONED BY (k, h) WITH ('connector' = 'filesystem', 'path' = '{path}', 'format' = 'csv',
           'sink.partition-commit.policy.kind' = 'success-file', 'sink.partition-commit.success-file.name' = '_done');
         CREATE TABLE w (v INT) WITH ('connector' = 'filesystem', 'path' = '{whole}', 'format' = 'avro');\n"
    );
    let steps = [
        ("INSERT INTO p VALUES (1, 1, 1), (2, 2, 2);", "p", "1 1 1|2 2 2"),
        ("INSERT OVERWRITE p VALUES (3, 2, 2), (4, 3, 3);", "p", "1 1 1|3 2 2|4 3 3"),
        ("INSERT OVERWRITE p PARTITION (k = 1, h = 1) SELECT v FROM p WHERE v > 100;", "p", "1 1 1|3 2 2|4 3 3"),
        ("INSERT OVERWRITE p PARTITION (k = 2) SELECT 9, 9;", "p", "1 1 1|3 2 2|4 3 3|9 2 9"),
        ("INSERT INTO p PARTITION (k = 5) SELECT 10, 11;", "p", "1 1 1|10 5 11|3 2 2|4 3 3|9 2 9"),
        ("INSERT INTO w VALUES (1), (2);", "w", "1|2"),
        ("INSERT INTO w VALUES (3);", "w", "1|2|3"),
        ("INSERT OVERWRITE w SELECT v FROM w WHERE v > 2;", "w", "3"),
        ("INSERT OVERWRITE w SELECT v FROM w WHERE v > 100;", "w", ""),
    ];
    for (statement, table, expected) in steps {
        let found = run(&format!("{tables}{statement}\nSELECT * FROM {table};"));
        let rows: Vec<String> = found.lines().map(|line| line.replace("+I\t", "").replace('\t', " ")).collect();
        assert_eq!(rows.join("|"), expected, "{statement}");
    }
    let done: BTreeMap<String, bool> = [("k=1/h=1", true), ("k=2/h=9", true), ("k=5/h=11", true), ("k=4/h=4", false)]
        .map(|(folder, _)| (folder.to_owned(), Path::new(&path).join(folder).join("_done").exists()))
        .into();
    assert_eq!(done.values().filter(|is_done| **is_done).count(), 3, "{done:?}");
}
