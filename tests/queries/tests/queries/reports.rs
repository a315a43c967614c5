//! What users of other engines ran into, by the numbers of the collection of such reports: `-- R17` in a script of `tests/sql` says
//! that it is such a case. Here are those that a script alone does not show.

use std::collections::BTreeSet;

use flott_core::Result;
use flott_e2e::repository;
use flott_queries::bed::Bed;
use flott_queries::script::{answers, job_of};
use flott_queries::story::{Event, Story};

use super::scripts::{all_scripts, compare};

/// Cases that SQL can express.
const IN_SQL: [&str; 18] = [
    "R02", "R05", "R06", "R08", "R10", "R12", "R14", "R17", "R20", "R22", "R23", "R24", "R25", "R27", "R28", "R29",
    "R30", "R31",
];

/// Those that it cannot, and why.
const NOT_IN_SQL: [(&str, &str); 12] = [
    ("R26", "a start without state is no statement"),
    ("R33", "there is no connector to Kafka"),
    ("R34", "there is no connector to Kafka"),
    ("R35", "there is no connector to Kafka"),
    ("R36", "there is no connector to Kafka"),
    ("R37", "there is no connector to Kafka"),
    ("R40", "there is no connector to MySQL"),
    ("R41", "there is no connector to MySQL"),
    ("R42", "there is no connector to MySQL"),
    ("R43", "there is no connector to MySQL"),
    ("R44", "to stop and to resume a job are no statements"),
    ("R45", "the file of the configuration is read before any script"),
];

/// The numbers in lines such as `-- R17, R22`.
fn numbers(script: &str) -> impl Iterator<Item = &str> {
    let is_number = |word: &str| {
        let digits = word.strip_prefix('R').unwrap_or_default();
        digits.len() == 2 && digits.bytes().all(|digit| digit.is_ascii_digit())
    };
    let lines = script.lines().filter_map(|line| line.strip_prefix("-- "));
    lines.filter(move |line| line.split(", ").all(is_number)).flat_map(|line| line.split(", "))
}

#[test]
fn reports_are_among_the_scripts() {
    let scripts = all_scripts();
    let named: BTreeSet<&str> = scripts.iter().flat_map(|script| numbers(&script.text)).collect();
    assert_eq!(named, BTreeSet::from(IN_SQL));
    assert!(NOT_IN_SQL.iter().all(|(number, _)| !named.contains(number)));
}

/// Runs a script again and again, each time with an event behind another of its `rows` rows.
fn assert_unbroken(name: &str, event: Event, rows: u64) {
    let scripts = all_scripts();
    let script = scripts.iter().find(|script| script.name == name).unwrap_or_else(|| panic!("there is no {name}"));
    for behind in 0..=rows {
        let run = || -> Result<()> {
            let found = script.answers(&[], |_, job| {
                let bed = Bed::new()?;
                let mut story = Story::new(&bed, job, behind);
                story.run_with(event, behind)?;
                story.results().table()
            })?;
            compare(&found, &script.expected)
        };
        run().unwrap_or_else(|mistake| panic!("{name}, {event:?} behind row {behind}: {mistake}"));
    }
}

/// R22: how far event time has come is state, and so is which windows have fired.
#[test]
fn rows_are_late_after_a_stop_if_they_are_without_it() {
    for name in ["windows/late_hop", "windows/late_cumulate", "windows/late_tumble"] {
        assert_unbroken(name, Event::Stop, 5);
    }
}

/// R23: a timer is state.
#[test]
fn windows_of_keys_without_rows_end_after_a_crash() {
    assert_unbroken("windows/idle_key", Event::Crash, 12);
}

/// R14: an unchanged result is told of again, so that what is made of it lives as long as it does.
#[test]
fn unchanged_results_keep_what_is_made_of_them() {
    let script = format!(
        "CREATE TABLE t (k STRING, v INT) WITH ('connector' = 'filesystem', 'path' = '{}', 'format' = 'json');
         SELECT k, COUNT(*) FROM (SELECT k, MAX(v) AS m FROM t GROUP BY k) GROUP BY k",
        repository().join("tests/sql/data/unchanged.json").display()
    );
    for mini_batch in ["false", "true"] {
        let settings = [
            ("table.exec.state.ttl", "10 s"),
            ("table.exec.mini-batch.enabled", mini_batch),
            ("table.exec.mini-batch.allow-latency", "1 s"),
            ("table.exec.mini-batch.size", "100"),
        ];
        let job = job_of(&script, &settings).expect("a job");
        let bed = Bed::new().expect("a bed");
        let mut story = Story::new(&bed, &job, 0);
        // Unlike the greatest value, the count is not touched in the 32 seconds but by rows that change nothing.
        story.run_row_by_row(4000).expect("it runs");
        let changelog = story.results().changelog();
        assert!(changelog.iter().all(|line| line.ends_with("\ta\t1")), "{changelog:?}");
        assert_eq!(story.results().table(), Ok(vec!["a\t1".to_owned()]), "{changelog:?}");
    }
}

/// R24: of sessions that are over nothing is kept.
#[test]
fn a_million_closed_sessions_leave_nothing_behind() {
    const KEYS: u64 = 1_000_000;
    // Each row is a millisecond later than the one before, so of all sessions a few thousand are open at a time.
    let script = format!(
        "CREATE TABLE t (n BIGINT, ts AS TO_TIMESTAMP_LTZ(n, 3), WATERMARK FOR ts AS ts - INTERVAL '1' SECOND) WITH (
           'connector' = 'datagen', 'rows-per-second' = '1000000000', 'fields.n.kind' = 'sequence', 'fields.n.start' = '1', 'fields.n.end' = '{KEYS}');
         CREATE TABLE sessions (n BIGINT, rows_ BIGINT) WITH ('connector' = 'blackhole');
         INSERT INTO sessions SELECT n, COUNT(*) FROM TABLE(SESSION(TABLE t PARTITION BY n, DESCRIPTOR(ts), INTERVAL '1' SECOND))
         GROUP BY n, window_start, window_end"
    );
    let run = answers(&script, &[], |_, job| {
        let bed = Bed::new()?;
        let (saved, entries) = Story::new(&bed, job, 0).kept_after(KEYS - 1)?;
        let subtasks = saved.manifest.vertices.iter().flat_map(|vertex| &vertex.subtasks);
        let bytes: u64 = subtasks.flat_map(|subtask| &subtask.keyed_files).map(|file| file.bytes).sum();
        assert!(entries < KEYS / 50, "{entries} entries");
        assert!(bytes < KEYS, "{bytes} bytes, which each restart would read");
        Ok(Vec::new())
    });
    run.expect("it runs");
}
