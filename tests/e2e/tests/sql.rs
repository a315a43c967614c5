//! SQL scripts: `flott sql` gives what Flink gives, and what it refuses it explains.

use std::collections::BTreeMap;
use std::fs;
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

/// The rows that are left when all changes are applied, each as often as it is there.
fn fold(changelog: &str) -> Result<Vec<String>, String> {
    let mut counts: BTreeMap<&str, i64> = BTreeMap::new();
    for line in changelog.lines() {
        let (kind, row) = line.split_once('\t').ok_or_else(|| format!("a line without a kind: {line}"))?;
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
fn mistake(script: &Path, parallelism: &str, is_compared: bool) -> Option<String> {
    let text = fs::read_to_string(script).expect("a script");
    let expected = fs::read_to_string(script.with_extension("expected")).expect("a result");
    let name = script.to_str().expect("its name is UTF-8");
    let mut arguments = vec!["-f", name, "-o", "changelog", "-p", parallelism];
    if text.contains("-- record: batch") {
        arguments.extend(["-D", "execution.runtime-mode=batch"]);
    }
    let answer = sql(&arguments);
    if answer.code != Some(0) {
        return Some(answer.text());
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
    let scripts = recorded();
    assert!(scripts.len() > 370, "only {} scripts", scripts.len());
    let compared = scripts.iter().filter(|script| is_compared(script)).count();
    assert!(compared > 220, "only {compared} scripts are compared");
    let (next, mistakes) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                while let Some(script) = scripts.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Some(mistake) = mistake(script, parallelism, is_compared(script)) {
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
