//! SQL scripts: `flott sql` gives what Flink gives, and what it refuses it explains.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use flott_e2e::{CommandOutput, binary, has_late_rows, repository, run_command};

const LIMIT: Duration = Duration::from_secs(120);

/// How many scripts run at a time.
const WORKERS: usize = 3;

fn scripts() -> PathBuf {
    repository().join("tests/sql")
}

fn sql(arguments: &[&str]) -> CommandOutput {
    let mut command = Command::new(binary("flott"));
    run_command(command.current_dir(scripts()).arg("sql").args(arguments), LIMIT)
}

/// Runs a script in a folder of its own, in which `data` is that of the scripts, and `out` what it writes.
fn run_alone(arguments: &[&str]) -> CommandOutput {
    let folder = tempfile::tempdir().expect("a temporary folder");
    symlink(scripts().join("data"), folder.path().join("data")).expect("a link");
    let mut command = Command::new(binary("flott"));
    run_command(command.current_dir(folder.path()).arg("sql").args(arguments), LIMIT)
}

/// The scripts of which Flink takes nothing back.
fn append_only() -> BTreeSet<PathBuf> {
    let list = fs::read_to_string(scripts().join("append_only.txt")).expect("record.sh writes it");
    list.lines().map(|name| scripts().join(format!("{name}.sql"))).collect()
}

/// All scripts with a recorded result, sorted.
fn recorded() -> Vec<PathBuf> {
    let folders = fs::read_dir(scripts()).expect("the folder of the scripts").flatten().map(|entry| entry.path());
    let files =
        folders.filter(|path| path.is_dir()).flat_map(|folder| fs::read_dir(folder).expect("a folder").flatten());
    let mut found: Vec<PathBuf> = files.map(|entry| entry.path()).filter(|path| is_recorded(path)).collect();
    found.sort();
    found
}

fn is_recorded(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "sql") && path.with_extension("expected").exists()
}

const KINDS: [&str; 4] = ["+I\t", "-U\t", "+U\t", "-D\t"];

/// The lines of a changelog. A value of several lines is one.
fn changes(changelog: &str) -> Vec<String> {
    let mut changes: Vec<String> = Vec::new();
    for line in changelog.lines() {
        let is_change = KINDS.iter().any(|kind| line.starts_with(kind));
        match changes.last_mut().filter(|_| !is_change) {
            Some(change) => {
                change.push_str("\\n");
                change.push_str(line);
            }
            None => changes.push(line.to_owned()),
        }
    }
    changes
}

/// The rows that are left when all changes are applied, each as often as it is there.
fn fold(changelog: &str) -> Result<Vec<String>, String> {
    let changes = changes(changelog);
    let mut counts: BTreeMap<&str, i64> = BTreeMap::new();
    for change in &changes {
        let (kind, row) = change.split_once('\t').ok_or_else(|| format!("a line without a kind: {change}"))?;
        *counts.entry(row).or_default() += match kind {
            "+I" | "+U" => 1,
            "-U" | "-D" => -1,
            _ => return Err(format!("'{kind}' is no kind of a row")),
        };
    }
    let mut rows = Vec::new();
    for (row, count) in counts {
        let count = usize::try_from(count).map_err(|_| format!("taken back, and not there: {row}"))?;
        rows.extend(std::iter::repeat_n(row.to_owned(), count));
    }
    Ok(rows)
}

/// What is wrong with the result of a script. Where its rows are not compared, they must still be a valid changelog.
fn mistake(script: &Path, parallelism: &str, is_compared: bool, is_append_only: bool) -> Option<String> {
    let text = fs::read_to_string(script).expect("a script");
    let expected = fs::read_to_string(script.with_extension("expected")).expect("a result");
    let name = script.to_str().expect("its name is UTF-8");
    let mut arguments = vec!["-f", name, "-o", "changelog", "-p", parallelism];
    if text.contains("-- record: batch") && !text.contains("-- streams here") {
        arguments.extend(["-D", "execution.runtime-mode=batch"]);
    }
    let answer = run_alone(&arguments);
    if answer.code != Some(0) {
        return Some(answer.text());
    }
    let taken_back = changes(&answer.stdout).into_iter().find(|change| !change.starts_with("+I"));
    if let Some(change) = taken_back.filter(|_| is_append_only) {
        return Some(format!("takes back what Flink does not: {change}"));
    }
    let found = match fold(&answer.stdout) {
        Ok(found) => found,
        Err(reason) => return Some(reason),
    };
    let expected: Vec<String> = expected.lines().map(str::to_owned).collect();
    let only_in = |all: &[String], others: &[String]| {
        all.iter().filter(|row| !others.contains(row)).take(3).cloned().collect::<Vec<_>>()
    };
    (is_compared && found != expected).then(|| {
        format!(
            "{} rows instead of {}; wrong: {:?}; missing: {:?}",
            found.len(),
            expected.len(),
            only_in(&found, &expected),
            only_in(&expected, &found)
        )
    })
}

fn assert_all_as_recorded(parallelism: &str, is_compared: impl Fn(&Path) -> bool + Sync) {
    let (scripts, append_only) = (recorded(), append_only());
    assert!(scripts.len() > 410, "only {} scripts", scripts.len());
    assert!(append_only.len() > 150, "only {} scripts of which nothing is taken back", append_only.len());
    let compared = scripts.iter().filter(|script| is_compared(script)).count();
    assert!(compared > 220, "only {compared} scripts are compared");
    let (next, mistakes) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                while let Some(script) = scripts.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let is_append_only = append_only.contains(script);
                    if let Some(mistake) = mistake(script, parallelism, is_compared(script), is_append_only) {
                        mistakes.lock().expect("no panic").push(format!("{}: {mistake}", script.display()));
                    }
                }
            });
        }
    });
    let mistakes = mistakes.into_inner().expect("no panic");
    assert!(mistakes.is_empty(), "{} of {} scripts:\n{}", mistakes.len(), scripts.len(), mistakes.join("\n"));
    println!("{} scripts", scripts.len());
}

#[test]
fn scripts_give_what_flink_gives() {
    assert_all_as_recorded("1", |_| true);
}

#[test]
fn scripts_give_the_same_with_several_subtasks() {
    assert_all_as_recorded("3", |script| !has_late_rows(&fs::read_to_string(script).expect("a script")));
}

#[test]
fn a_script_that_fails_says_where_and_what_ran() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let script = folder.path().join("s.sql");
    fs::write(
        &script,
        "CREATE TABLE t (a INT) WITH ('connector' = 'blackhole');\nSHOW TABLES;\nSELECT b FROM\n  tt;\nSHOW TABLES;\n",
    )
    .expect("written");
    let answer = sql(&["-f", script.to_str().expect("UTF-8"), "-o", "changelog"]);
    assert_eq!((answer.code, answer.stdout.as_str()), (Some(1), "+I\tt\n"), "{}", answer.text());
    for part in [
        "'tt'",
        "did you mean 't'",
        "statement 3",
        "line 3",
        "the 2 statements before it ran",
        "the one after it did not",
    ] {
        assert!(answer.stderr.contains(part), "no \"{part}\" in {}", answer.stderr);
    }
}

#[test]
fn what_is_wrong_is_explained() {
    let cases: &[(&str, &[&str])] = &[
        ("SELEC 1", &["line 1, column 1", "^"]),
        ("SELECT 1 +", &["line 1", "^"]),
        ("SELECT UPER('a')", &["UPER", "did you mean 'UPPER'"]),
        (
            "CREATE TABLE t (a INT, WATERMARK FOR a AS a) WITH ('connector' = 'blackhole')",
            &["watermark", "'a'", "INT", "TIMESTAMP"],
        ),
        ("CREATE TABLE t (a INT) WITH ('connector' = 'nothing'); SELECT * FROM t", &["nothing", "filesystem"]),
        (
            "CREATE TABLE s (a STRING) WITH ('connector' = 'filesystem', 'path' = '/nowhere', 'format' = 'json');
             INSERT INTO s SELECT k FROM (VALUES ('a'), ('b')) AS t(k) GROUP BY k HAVING COUNT(*) > 1",
            &["update", "'default_catalog.default_database.s'"],
        ),
        (
            "CREATE TABLE s (a INT) WITH ('connector' = 'blackhole'); INSERT INTO s SELECT DATE '2024-01-01'",
            &["DATE", "INT"],
        ),
        ("SET 'table.exec.state.ttl' = 'soon'", &["table.exec.state.ttl", "duration"]),
        (
            // What is ignored in silence puts a header among the rows (R30).
            "CREATE TABLE t (a INT) WITH (
               'connector' = 'filesystem', 'path' = 'data/options.csv', 'format' = 'csv', 'csv.ignore-first-line' = 'true');
             SELECT * FROM t",
            &["no option 'csv.ignore-first-line'"],
        ),
        (
            "CREATE TABLE t (a INT, f STRING METADATA FROM 'file.paht') WITH (
               'connector' = 'filesystem', 'path' = 'data/options.csv', 'format' = 'csv'); SELECT f FROM t",
            &["'f'", "metadata 'file.paht'", "'file.path'"],
        ),
        (
            "CREATE TABLE t (a INT) WITH ('connector' = 'datagen');
             SELECT * FROM t MATCH_RECOGNIZE (ORDER BY a MEASURES A.a AS x PATTERN (A) DEFINE A AS A.a = 1)",
            &["MATCH_RECOGNIZE is not supported", "statement 2"],
        ),
    ];
    for (script, parts) in cases {
        let answer = sql(&["-e", script]);
        assert_eq!(answer.code, Some(1), "{script}: {}", answer.text());
        for part in *parts {
            assert!(answer.stderr.contains(part), "{script}: no \"{part}\" in {}", answer.stderr);
        }
    }
}

#[test]
fn rows_are_shown_in_several_forms() {
    let query = "SELECT 1 AS a, 'x' AS b";
    let shown = |form: &str| sql(&["-e", query, "-o", form]).succeeded().stdout;
    assert_eq!(shown("json"), "{\"op\":\"+I\",\"row\":{\"a\":1,\"b\":\"x\"}}\n");
    assert_eq!(shown("changelog"), "+I\t1\tx\n");
    assert!(shown("tableau").contains("| +I |           1 |"), "{}", shown("tableau"));
    assert!(shown("table").ends_with("1 rows, 1 changes\n"), "{}", shown("table"));
    let checked = sql(&["--check", "-e", query]).succeeded();
    assert_eq!(checked.stdout, "");
}

#[test]
fn state_that_grows_without_end_is_warned_of_on_standard_error() {
    let query = "SELECT k, COUNT(*) FROM (VALUES ('a'), ('b'), ('a')) AS t (k) GROUP BY k";
    let answer = sql(&["-e", query, "-o", "changelog"]).succeeded();
    assert_eq!(fold(&answer.stdout), Ok(vec!["a\t2".to_owned(), "b\t1".to_owned()]));
    let warning = "warning: GroupAggregate keeps a row of aggregates for each key for ever: SET 'table.exec.state.ttl'";
    assert!(answer.stderr.contains(warning), "{}", answer.stderr);
    let answer = sql(&["-e", query, "-o", "changelog", "-D", "table.exec.state.ttl=1 h"]).succeeded();
    assert!(!answer.stderr.contains("warning:"), "{}", answer.stderr);
}

#[test]
fn a_setting_that_does_nothing_is_warned_of() {
    let script = "SET 'table.exec.state.tll' = '1 h'; SET 'table.exec.mini-batch.enabled' = 'true'; SELECT 1";
    let answer = sql(&["-e", script, "-o", "changelog", "-D", "execution.checkpointing.intervall=1 s"]).succeeded();
    assert_eq!(answer.stdout, "+I\t1\n");
    for part in ["'table.exec.state.ttl'?", "'execution.checkpointing.interval'?"] {
        assert!(answer.stderr.contains(&format!("did you mean {part}")), "no \"{part}\" in {}", answer.stderr);
    }
    assert_eq!(answer.stderr.matches("warning: SET").count(), 2, "{}", answer.stderr);
}

#[test]
fn explain_shows_the_job_of_the_session() {
    let query = "SELECT k, COUNT(*) FROM (VALUES ('a'), ('b')) AS t (k) GROUP BY k";
    let explain = |details: &str| sql(&["-e", &format!("EXPLAIN {details} {query}"), "-p", "3"]);
    let shown = explain("").succeeded().stdout;
    assert!(shown.contains("GroupAggregate -> ") && shown.contains("(parallelism 3)"), "{shown}");
    assert!(!shown.contains("Execution Plan"), "{shown}");
    let shown = explain("CHANGELOG_MODE, JSON_EXECUTION_PLAN").succeeded().stdout;
    let json = shown.split_once("== Physical Execution Plan ==\n").expect("a plan as JSON").1;
    let json: serde_json::Value = serde_json::from_str(json).unwrap_or_else(|error| panic!("{error}: {json}"));
    let last = json["nodes"].as_array().and_then(|nodes| nodes.last()).expect("operators");
    assert_eq!((last["pact"].as_str(), last["parallelism"].as_u64()), (Some("Data Sink"), Some(3)), "{json}");
    explain("PLAN_ADVICE").refused(&["EXPLAIN PLAN_ADVICE is not supported"]);
    explain("ESTIMATED_COST").refused(&["EXPLAIN ESTIMATED_COST is not supported"]);
}

#[test]
fn a_limit_ends_a_table_that_has_no_end() {
    let script = "CREATE TABLE t (n INT) WITH ('connector' = 'datagen'); SELECT n FROM t LIMIT 3";
    let answer = sql(&["-e", script, "-o", "changelog", "-p", "2"]).succeeded();
    assert_eq!(answer.stdout.lines().count(), 3, "{}", answer.stdout);
}

#[test]
fn a_malformed_record_is_named_with_its_file_and_line() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("rows.json");
    fs::write(&file, "{\"a\": 1, \"b\": 1}\n{\"a\": 2}\n{\"a\": \"x\", \"b\": 3}\n").expect("written");
    let select = |columns: &str, option: &str| {
        let script = format!(
            "CREATE TABLE t (a INT, b INT) WITH ('connector' = 'filesystem', 'path' = '{}', 'format' = 'json'{option});
             SELECT {columns} FROM t",
            file.display()
        );
        sql(&["-e", &script, "-o", "changelog"])
    };
    let place = |line: u32| format!("{}, line {line}", file.display());
    let answer = select("a", "").refused(&[&place(3), "field 'a'"]);
    assert_eq!(answer.code, Some(1), "{}", answer.text());
    let strict = ", 'json.fail-on-missing-field' = 'true'";
    let answer = select("a, b", strict).refused(&[&place(2), "field 'b' is missing"]);
    assert_eq!(answer.code, Some(1), "{}", answer.text());
    let lenient = ", 'json.ignore-parse-errors' = 'true'";
    let answer = select("a, b", lenient).succeeded();
    assert_eq!(answer.stdout, "+I\t1\t1\n+I\t2\tnull\n+I\tnull\t3\n");
}
