//! A statement set on a cluster whose processes are killed and which is rescaled: each row is written once, and counts are right.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use flott_e2e::{Cluster, signal, visible_lines};
use serde_json::Value;

const LIMIT: Duration = Duration::from_secs(120);

const ROWS: u64 = 45_000;

/// Windows of a second of event time have so many rows each: a row is a millisecond later than the one before.
const ROWS_A_WINDOW: u64 = 1000;

fn script(windows: &str, firsts: &str, pairs: &str) -> String {
    let sink = |name: &str, columns: &str, path: &str| {
        format!(
            "CREATE TABLE {name} ({columns}) WITH ('connector' = 'filesystem', 'path' = '{path}', 'format' = 'json');\n"
        )
    };
    [
        "SET 'execution.checkpointing.interval' = '200ms';\n".to_owned(),
        "SET 'restart-strategy.type' = 'exponential-delay';\n".to_owned(),
        "SET 'restart-strategy.exponential-delay.initial-backoff' = '50ms';\n".to_owned(),
        "SET 'restart-strategy.exponential-delay.max-backoff' = '300ms';\n".to_owned(),
        format!(
            "CREATE TABLE numbers (n BIGINT, ts AS TO_TIMESTAMP_LTZ(n, 3), WATERMARK FOR ts AS ts - INTERVAL '1' SECOND) WITH (
               'connector' = 'datagen', 'rows-per-second' = '2500', 'fields.n.kind' = 'sequence', 'fields.n.start' = '0', 'fields.n.end' = '{}');\n",
            ROWS - 1
        ),
        sink("windows", "w BIGINT, n BIGINT, s BIGINT", windows),
        sink("firsts", "k BIGINT, n BIGINT", firsts),
        sink("pairs", "a BIGINT, b BIGINT", pairs),
        format!(
            "EXECUTE STATEMENT SET BEGIN
             INSERT INTO windows SELECT MIN(n) / {ROWS_A_WINDOW}, COUNT(*), SUM(n)
               FROM TABLE(TUMBLE(TABLE numbers, DESCRIPTOR(ts), INTERVAL '1' SECOND)) GROUP BY window_start, window_end;
             INSERT INTO firsts SELECT k, n FROM (
               SELECT MOD(n, 5000) AS k, n, ROW_NUMBER() OVER (PARTITION BY MOD(n, 5000) ORDER BY ts) AS r FROM numbers) WHERE r = 1;
             INSERT INTO pairs SELECT a.n, b.n FROM numbers AS a, numbers AS b
               WHERE a.n = b.n + 10 AND a.ts BETWEEN b.ts AND b.ts + INTERVAL '1' SECOND AND MOD(a.n, 10) = 0;
             END;\n"
        ),
    ]
    .concat()
}

/// The numbers in the rows of a table, by their names.
fn rows(path: &str, names: &[&str]) -> BTreeMap<Vec<u64>, usize> {
    let mut found: BTreeMap<Vec<u64>, usize> = BTreeMap::new();
    for line in visible_lines(path) {
        let row: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line}: {error}"));
        let row = names.iter().map(|name| row[name].as_u64().unwrap_or_else(|| panic!("no {name} in {line}")));
        *found.entry(row.collect()).or_default() += 1;
    }
    found
}

#[track_caller]
fn assert_rows(path: &str, names: &[&str], expected: impl Iterator<Item = Vec<u64>>) {
    let found = rows(path, names);
    let expected: BTreeMap<Vec<u64>, usize> = expected.map(|row| (row, 1)).collect();
    let missing: Vec<_> = expected.keys().filter(|row| !found.contains_key(*row)).take(5).collect();
    let wrong: Vec<_> = found.iter().filter(|(row, times)| expected.get(*row) != Some(times)).take(5).collect();
    assert!(missing.is_empty() && wrong.is_empty(), "{path}: missing {missing:?}; wrong or too often {wrong:?}");
}

#[test]
fn statements_write_each_row_once_after_kills_and_rescaling() {
    let mut cluster = Cluster::start(2, 2);
    let [windows, firsts, pairs] = ["windows", "firsts", "pairs"].map(|name| cluster.path(name));
    let file = cluster.path("set.sql");
    fs::write(&file, script(&windows, &firsts, &pairs)).expect("written");
    let submitted = cluster.flott("sql", &["-f", &file, "-p", "2"]).succeeded();
    let job = cluster.running_job();
    assert!(submitted.stderr.contains(&job), "{}", submitted.text());

    cluster.wait_for_checkpoints(&job, 2);
    signal(cluster.workers_of(&job)[0], "KILL");
    cluster.wait_for_checkpoints(&job, cluster.last_checkpoint(&job) + 2);
    cluster.flott("rescale", &[&job, "-p", "4"]).succeeded();
    cluster.wait_for_checkpoints(&job, cluster.last_checkpoint(&job) + 2);
    cluster.kill_task_manager(1);
    cluster.start_task_manager(1);
    cluster.wait_for_checkpoints(&job, cluster.last_checkpoint(&job) + 2);
    cluster.kill_job_manager();
    cluster.start_job_manager();
    cluster.wait_for_checkpoints(&job, cluster.last_checkpoint(&job) + 2);
    cluster.flott("rescale", &[&job, "-p", "1"]).succeeded();
    cluster.wait_for_status(&job, "FINISHED", LIMIT);

    let sum = |w: u64| (w * ROWS_A_WINDOW..(w + 1) * ROWS_A_WINDOW).sum();
    assert_rows(&windows, &["w", "n", "s"], (0..ROWS / ROWS_A_WINDOW).map(|w| vec![w, ROWS_A_WINDOW, sum(w)]));
    assert_rows(&firsts, &["k", "n"], (0..5000).map(|k| vec![k, k]));
    assert_rows(&pairs, &["a", "b"], (1..ROWS / 10).map(|tenth| vec![tenth * 10, tenth * 10 - 10]));
}
