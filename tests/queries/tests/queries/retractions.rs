//! Any interleaving of inserts, updates and deletes, with faults in between, gives what the query gives in batch mode over the
//! rows that are left.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use flott_core::Result;
use flott_e2e::Random;
use flott_queries::bed::Bed;
use flott_queries::script::job_of;
use flott_queries::story::Story;

/// How many interleavings each query gets.
const SEEDS: u64 = 6;

const WORKERS: usize = 3;

/// Over the tables `a` and `b`, which have the columns `id INT, k INT, v INT, s STRING`, each of which but `id` may be null.
const QUERIES: [&str; 52] = [
    "SELECT id, v + 1, UPPER(s) FROM a WHERE k <> 1",
    "SELECT DISTINCT k, s FROM a",
    "SELECT k, COUNT(*), COUNT(v), SUM(v), MIN(v), MAX(s), AVG(v) FROM a GROUP BY k",
    "SELECT COUNT(*), SUM(v), MAX(v), COUNT(DISTINCT s) FROM a",
    "SELECT k, COUNT(DISTINCT v), SUM(DISTINCT v), COUNT(DISTINCT s) FILTER (WHERE v > 1) FROM a GROUP BY k",
    "SELECT k, SUM(v) FILTER (WHERE s = 'x'), COUNT(*) FILTER (WHERE v IS NULL) FROM a GROUP BY k",
    "SELECT k, s, COUNT(*) FROM a GROUP BY GROUPING SETS ((k, s), (s), ())",
    "SELECT k, s, SUM(v) FROM a GROUP BY CUBE (k, s)",
    "SELECT k, SUM(v) FROM a GROUP BY k HAVING COUNT(*) > 2",
    "SELECT n, COUNT(*) FROM (SELECT k, COUNT(*) AS n FROM a GROUP BY k) GROUP BY n",
    "SELECT MAX(t), MIN(t) FROM (SELECT SUM(v) AS t FROM a GROUP BY s)",
    "SELECT k, VAR_POP(v) IS NULL, MAX(v) - MIN(v) FROM a GROUP BY k",
    "SELECT k, PERCENTILE(v, 0.5), PERCENTILE(v, 0.3) FILTER (WHERE s = 'x') FROM a GROUP BY k",
    "SELECT CAST(PERCENTILE(v, ARRAY[0.9, 0.1]) AS STRING), PERCENTILE(v, 0.5, k), PERCENTILE(DISTINCT v, 0.5) FROM a",
    "SELECT k, s, SUM(v), GROUP_ID() FROM a GROUP BY GROUPING SETS ((k, s), (s), (k, s), ())",
    "SELECT a.id, b.id FROM a JOIN b ON a.k = b.k",
    "SELECT a.id, b.id FROM a JOIN b ON a.k = b.k AND a.v < b.v",
    "SELECT a.id, b.id FROM a LEFT JOIN b ON a.k = b.k AND a.s = b.s",
    "SELECT a.id, b.id FROM a RIGHT JOIN b ON a.k = b.k AND a.v >= b.v",
    "SELECT a.id, b.id FROM a FULL JOIN b ON a.v = b.v",
    "SELECT a.id, b.s FROM a JOIN b ON a.id = b.id",
    "SELECT id FROM a WHERE k IN (SELECT k FROM b)",
    "SELECT id FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND b.v > a.v)",
    "SELECT id FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.k = a.k)",
    "SELECT id FROM a WHERE v > (SELECT AVG(v) FROM b)",
    "SELECT id FROM a WHERE (k, s) IN (SELECT k, s FROM b)",
    "SELECT id FROM a WHERE (k, v) NOT IN (SELECT k, v FROM b WHERE s = 'x')",
    "SELECT id FROM a WHERE (k, v) IN (SELECT k, v FROM b WHERE b.s = a.s)",
    "SELECT id FROM a WHERE v >= ALL (SELECT v FROM b)",
    "SELECT id FROM a WHERE v < ANY (SELECT v FROM b WHERE v IS NOT NULL)",
    "SELECT id, v > ALL (SELECT v FROM b WHERE b.k = a.k) FROM a",
    "SELECT id FROM a WHERE v <> ANY (SELECT v FROM b) OR k = 1",
    "SELECT id FROM a WHERE k <> ALL (SELECT k FROM b WHERE v > 3)",
    "SELECT x.k, x.n, y.n FROM (SELECT k, COUNT(*) AS n FROM a GROUP BY k) AS x
     LEFT JOIN (SELECT k, COUNT(*) AS n FROM b GROUP BY k) AS y ON x.k = y.k",
    "SELECT a.k, COUNT(*), SUM(b.v) FROM a JOIN b ON a.k = b.k GROUP BY a.k",
    "SELECT k FROM a UNION SELECT k FROM b",
    "SELECT k, v FROM a UNION ALL SELECT v, k FROM b",
    "SELECT k FROM a INTERSECT SELECT k FROM b",
    "SELECT k, s FROM a INTERSECT ALL SELECT k, s FROM b",
    "SELECT k FROM a EXCEPT SELECT k FROM b",
    "SELECT s FROM a EXCEPT ALL SELECT s FROM b",
    "SELECT id, v FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC, id) AS r FROM a) WHERE r <= 2",
    "SELECT id, v, r FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY s ORDER BY v, id) AS r FROM a) WHERE r BETWEEN 2 AND 3",
    "SELECT k, n, r FROM (
       SELECT *, ROW_NUMBER() OVER (ORDER BY n DESC, k) AS r FROM (SELECT k, COUNT(*) AS n FROM a GROUP BY k)) WHERE r <= 3",
    "SELECT a.id, u.x FROM a CROSS JOIN UNNEST(ARRAY[k, v, 7]) AS u(x)",
    "SELECT id, k, SUM(v) OVER (PARTITION BY k ORDER BY id), COUNT(DISTINCT s) OVER (PARTITION BY k ORDER BY id) FROM a",
    "SELECT id, AVG(v) OVER w, MAX(s) OVER w FROM a WINDOW w AS (PARTITION BY s ORDER BY v DESC, id ROWS BETWEEN 2 PRECEDING AND CURRENT ROW)",
    "SELECT id, RANK() OVER w, DENSE_RANK() OVER w, COUNT(*) OVER w, CUME_DIST() OVER w FROM a WINDOW w AS (PARTITION BY k ORDER BY v)",
    "SELECT id, LAG(v, 2) OVER w, LEAD(id) OVER w, NTILE(3) OVER w, PERCENT_RANK() OVER w FROM a WINDOW w AS (ORDER BY s DESC, id)",
    "SELECT k, n, SUM(n) OVER (ORDER BY n, k ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM (SELECT k, COUNT(*) AS n FROM a GROUP BY k)",
    "SELECT k, MAX(t) FROM (SELECT k, SUM(v) OVER (PARTITION BY s ORDER BY id) AS t FROM a) GROUP BY k",
    "SELECT id, r FROM (SELECT *, RANK() OVER (PARTITION BY k ORDER BY v DESC) AS r FROM a) WHERE r <= 2",
];

/// A row as the columns of a JSON object.
type Row = String;

fn row(id: u64, random: &mut Random) -> Row {
    let mut number = |most: u64| match random.below(most + 1) {
        0 => "null".to_owned(),
        n => (n - 1).to_string(),
    };
    let (k, v) = (number(4), number(6));
    let s = ["null", "\"\"", "\"x\"", "\"é\""][random.below(4) as usize];
    format!(r#"{{"id":{id},"k":{k},"v":{v},"s":{s}}}"#)
}

/// Writes the changes of a table, and the rows that they leave.
fn write(folder: &Path, table: &str, random: &mut Random) {
    let mut rows: BTreeMap<u64, Row> = BTreeMap::new();
    let mut changes = String::new();
    for next in 0..10 + random.below(40) {
        let known = rows.keys().nth(random.below(rows.len().max(1) as u64) as usize).copied();
        // Writing to a string cannot fail.
        let _ = match (known, random.below(5)) {
            (Some(id), 0) => {
                let before = rows.remove(&id).expect("it is known");
                writeln!(changes, r#"{{"before":{before},"after":null,"op":"d"}}"#)
            }
            (Some(id), 1 | 2) => {
                let after = row(id, random);
                let before = rows.insert(id, after.clone()).expect("it is known");
                writeln!(changes, r#"{{"before":{before},"after":{after},"op":"u"}}"#)
            }
            _ => {
                let after = row(next, random);
                rows.insert(next, after.clone());
                writeln!(changes, r#"{{"before":null,"after":{after},"op":"c"}}"#)
            }
        };
    }
    fs::write(folder.join(format!("{table}-changes.json")), changes).expect("written");
    let left: String = rows.into_values().map(|row| row + "\n").collect();
    fs::write(folder.join(format!("{table}-rows.json")), left).expect("written");
}

fn script(folder: &Path, files: &str, format: &str, query: &str) -> String {
    let table = |name: &str| {
        let path = folder.join(format!("{name}-{files}.json"));
        format!(
            "CREATE TABLE {name} (id INT, k INT, v INT, s STRING) WITH (
               'connector' = 'filesystem', 'path' = '{}', 'format' = '{format}');\n",
            path.display()
        )
    };
    [table("a"), table("b"), query.to_owned()].concat()
}

fn check(query: &str) -> Result<(), String> {
    let text = |error: flott_core::Error| error.to_string();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let changes = script(folder.path(), "changes", "debezium-json", query);
    let in_phases = |strategy| job_of(&changes, &[("table.optimizer.agg-phase-strategy", strategy)]).map_err(text);
    let changing = [in_phases("ONE_PHASE")?, in_phases("TWO_PHASE")?];
    let batch = [("execution.runtime-mode", "batch")];
    let whole = job_of(&script(folder.path(), "rows", "json", query), &batch).map_err(text)?;
    for seed in 0..SEEDS {
        let mut random = Random::new(seed);
        write(folder.path(), "a", &mut random);
        write(folder.path(), "b", &mut random);
        let run = || -> Result<Vec<String>> {
            let bed = Bed::new()?;
            let mut story = Story::new(&bed, &whole, seed);
            story.run(2)?;
            story.results().table()
        };
        let expected = run().map_err(|error| format!("in batch mode: {error}"))?;
        let changing = &changing[seed as usize % 2];
        let bed = Bed::new().map_err(text)?;
        let rows = Story::new(&bed, changing, seed).run(1).map_err(text)?;
        let bed = Bed::new().map_err(text)?;
        let mut story = Story::new(&bed, changing, seed);
        let found = story.run_with_faults(rows, true).and_then(|()| story.results().table());
        let told = &story.told().text;
        let found = found.map_err(|error| format!("seed {seed}: {error}\n{told}"))?;
        if found != expected {
            return Err(format!("seed {seed}: {found:?} instead of {expected:?}\n{told}"));
        }
    }
    Ok(())
}

#[test]
fn changes_fold_to_the_result_over_the_rows_that_are_left() {
    let (next, mistakes) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                while let Some(query) = QUERIES.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Err(mistake) = check(query) {
                        mistakes.lock().expect("no panic").push(format!("{query}\n{mistake}"));
                    }
                }
            });
        }
    });
    let mistakes = mistakes.into_inner().expect("no panic");
    assert!(mistakes.is_empty(), "{} of {} queries:\n{}", mistakes.len(), QUERIES.len(), mistakes.join("\n"));
}
