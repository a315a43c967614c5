//! What users of other engines ran into, as far as it takes processes, zones or files of others to see it. The numbers are those of
//! `tests/queries/tests/queries/reports.rs`.

use std::fs;
use std::process::Command;
use std::time::Duration;

use flott_e2e::{Cluster, binary, files_below, repository, run_command, signal, visible_lines};

const LIMIT: Duration = Duration::from_secs(120);

/// Numbers into files that may stay open for an hour, beside further options. `rate` come in a second.
fn script(path: &str, settings: &[(&str, &str)], rows: u64, rate: u64, more: &str) -> String {
    let settings: String = settings.iter().map(|(key, value)| format!("SET '{key}' = '{value}';\n")).collect();
    format!(
        "{settings}CREATE TABLE numbers (n BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '{rate}',
           'fields.n.kind' = 'sequence', 'fields.n.start' = '1', 'fields.n.end' = '{rows}');
         CREATE TABLE files (n BIGINT) WITH ('connector' = 'filesystem', 'path' = '{path}', 'format' = 'csv',
           'sink.rolling-policy.rollover-interval' = '1 h', 'sink.rolling-policy.inactivity-interval' = '1 h'{more});
         INSERT INTO files SELECT n FROM numbers;"
    )
}

#[track_caller]
fn assert_numbers(path: &str, rows: u64) {
    let mut found: Vec<u64> = visible_lines(path).iter().map(|line| line.parse().expect("a number")).collect();
    found.sort_unstable();
    assert_eq!(found.len() as u64, rows);
    assert!(found.into_iter().eq(1..=rows), "each number is there once");
}

/// R25: a checkpoint names all that it needs, also files that were begun before those that are kept.
#[test]
fn a_file_may_be_open_for_longer_than_checkpoints_are_kept() {
    const ROWS: u64 = 30_000;
    let mut cluster = Cluster::start(2, 2);
    let (path, file) = (cluster.path("files"), cluster.path("job.sql"));
    let settings = [
        ("execution.checkpointing.interval", "200ms"),
        ("execution.checkpointing.num-retained", "1"),
        ("restart-strategy.type", "exponential-delay"),
        ("restart-strategy.exponential-delay.initial-backoff", "50ms"),
        ("restart-strategy.exponential-delay.max-backoff", "300ms"),
    ];
    fs::write(&file, script(&path, &settings, ROWS, 2500, "")).expect("written");
    cluster.flott("sql", &["-f", &file, "-p", "2"]).succeeded();
    let job = cluster.running_job();
    cluster.wait_for_checkpoints(&job, 8);
    signal(cluster.workers_of(&job)[0], "KILL");
    cluster.wait_for_checkpoints(&job, cluster.last_checkpoint(&job) + 8);
    cluster.kill_task_manager(1);
    cluster.start_task_manager(1);
    cluster.wait_for_status(&job, "FINISHED", LIMIT);
    assert_numbers(&path, ROWS);
}

/// R27: a last commit belongs to the job, whenever the next checkpoint would have been.
#[test]
fn a_job_that_is_finished_has_committed_all_of_its_rows() {
    const ROWS: u64 = 10;
    let cluster = Cluster::start(1, 2);
    let file = cluster.path("job.sql");
    let write = |path: &str, more: &str| {
        let settings = [("execution.checkpointing.interval", "10 min")];
        fs::write(&file, script(path, &settings, ROWS, 1_000_000, more)).expect("written");
    };
    let there = cluster.path("there");
    write(&there, "");
    let job = cluster.flott("sql", &["-f", &file, "-p", "2"]).succeeded().job();
    cluster.wait_for_status(&job, "FINISHED", LIMIT);
    assert_numbers(&there, ROWS);

    let here = cluster.path("here");
    write(&here, "");
    run_command(cluster.command().args(["sql", "-f", &file, "-p", "2"]), LIMIT).succeeded();
    assert_numbers(&here, ROWS);

    write(&cluster.path("compacted"), ", 'auto-compaction' = 'true'");
    cluster.flott("sql", &["-f", &file]).refused(&["auto-compaction"]);
}

/// A number as Avro has it.
fn zigzag(number: i64) -> Vec<u8> {
    let (mut rest, mut bytes) = (((number << 1) ^ (number >> 63)) as u64, Vec::new());
    while rest > 0x7f {
        bytes.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    bytes.push(rest as u8);
    bytes
}

/// R29: microseconds are written as such, under their name. What others have written is in `tests/sql/files/avro_micros.sql`.
#[test]
fn avro_says_of_microseconds_that_they_are_some() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("table");
    let script = format!(
        "CREATE TABLE t (ts TIMESTAMP(6)) WITH ('connector' = 'filesystem', 'path' = '{}', 'format' = 'avro',
           'avro.codec' = 'null', 'avro.timestamp_mapping.legacy' = 'false');
         INSERT INTO t VALUES (TIMESTAMP '2023-11-14 22:13:20.123456'); SELECT * FROM t;",
        path.display()
    );
    let mut command = Command::new(binary("flott"));
    let shown = run_command(command.args(["sql", "-o", "changelog", "-e", &script]), LIMIT).succeeded().stdout;
    assert_eq!(shown, "+I\t2023-11-14T22:13:20.123456\n");
    let files = files_below(&path, ".avro");
    let bytes = fs::read(files.first().expect("a file")).expect("its bytes");
    let has = |wanted: &[u8]| bytes.windows(wanted.len()).any(|part| part == wanted);
    assert!(has(b"\"logicalType\":\"local-timestamp-micros\"") && has(&zigzag(1_700_000_000_123_456)));
}

/// R31: what clocks show in a file of INT96 is the same on a machine of any zone.
#[test]
fn int96_does_not_depend_on_the_zone_of_the_machine() {
    let scripts = repository().join("tests/sql");
    for zone in ["UTC", "Asia/Shanghai", "America/Los_Angeles"] {
        let mut command = Command::new(binary("flott"));
        command.current_dir(&scripts).env("TZ", zone).args(["sql", "-o", "changelog", "-f", "files/int96.sql"]);
        let shown = run_command(&mut command, LIMIT).succeeded().stdout;
        let expected = "+I\t1\t2024-07-01T12:00:00.123456\n+I\t2\t9999-12-31T00:00\n+I\t3\tnull\n";
        assert_eq!(shown, expected, "{zone}");
    }
}
