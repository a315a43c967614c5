//! A LIMIT right above a table: no more rows are read than are wanted, and never fewer, whatever happens meanwhile.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use flott_queries::bed::Bed;
use flott_queries::script::job_of;
use flott_queries::story::Story;
use flott_sql::session::Job;

const FILES: u64 = 6;
const ROWS_EACH: u64 = 100;

/// The job of a query over the table `t`, whose files are made here.
fn job(folder: &Path, query: &str) -> Job {
    for file in 0..FILES {
        let numbers = file * ROWS_EACH..(file + 1) * ROWS_EACH;
        let lines: String = numbers.map(|n| format!("{{\"n\":{n}}}\n")).collect();
        fs::write(folder.join(format!("{file}.json")), lines).expect("written");
    }
    let script = format!(
        "CREATE TABLE t (n BIGINT) WITH ('connector' = 'filesystem', 'path' = '{}', 'format' = 'json'); {query}",
        folder.display()
    );
    job_of(&script, &[]).expect("a job")
}

#[test]
fn no_more_rows_are_read_than_are_wanted() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (query, read, found) in [
        ("SELECT n FROM t LIMIT 7 OFFSET 3", 10, 7),
        ("SELECT n + 1 FROM t LIMIT 250", 250, 250),
        ("SELECT n FROM t LIMIT 5000", FILES * ROWS_EACH, 600),
        // What is left out does not count, so all may be needed.
        ("SELECT n FROM t WHERE n >= 0 LIMIT 7", FILES * ROWS_EACH, 7),
    ] {
        let job = job(folder.path(), query);
        let bed = Bed::new().expect("a bed");
        let mut story = Story::new(&bed, &job, 0);
        assert_eq!(story.run(1).expect("it runs"), read, "rows that {query} reads");
        assert_eq!(story.results().table().expect("a valid changelog").len(), found, "{query}");
    }
}

#[test]
fn restarts_take_no_rows_away() {
    const LIMIT: u64 = 130;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let job = job(folder.path(), &format!("SELECT n FROM t LIMIT {LIMIT}"));
    for seed in 0..8 {
        let bed = Bed::new().expect("a bed");
        let mut story = Story::new(&bed, &job, seed);
        let run = story.run_with_faults(LIMIT, true);
        let found = run.and_then(|()| story.results().table());
        let found = found.unwrap_or_else(|error| panic!("seed {seed}: {error}\n{}", story.told().text));
        let different: BTreeSet<&String> = found.iter().collect();
        let lengths = [found.len(), different.len()].map(|length| length as u64);
        assert_eq!(lengths, [LIMIT; 2], "seed {seed}:\n{}", story.told().text);
    }
}
