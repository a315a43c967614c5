//! SQL jobs in another version: what their queries no longer compute is told before anything is stopped, and all others count on
//! where they were.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use flott_e2e::{Cluster, CommandOutput, binary, until, visible_lines};
use serde_json::Value;

const LIMIT: Duration = Duration::from_secs(60);

const SEEN: &str = "INSERT INTO seen SELECT n, k FROM numbers";
const TOTALS: &str = "INSERT INTO totals SELECT k, COUNT(*), SUM(n) FROM numbers GROUP BY k";

/// Counts of the even numbers, and what becomes of it: counts of the odd ones.
const EVENS: &str = "INSERT INTO parts SELECT 0, k, COUNT(*) FROM numbers WHERE MOD(n, 2) = 0 GROUP BY k";
const ODDS: &str = "INSERT INTO parts SELECT 1, k, COUNT(*) FROM numbers WHERE MOD(n, 2) = 1 GROUP BY k";

/// What no row survives.
const BROKEN: &str = "INSERT INTO nowhere SELECT CAST(CONCAT('no number ', CAST(n AS STRING)) AS BIGINT) FROM numbers";

/// Writes a script; returns its path. Its `numbers` have each a key, of a type.
fn script(cluster: &Cluster, name: &str, settings: &[(&str, &str)], key: &str, jobs: &str) -> String {
    let sink = |table: &str, columns: &str, format: &str| {
        let path = cluster.path(table);
        format!(
            "CREATE TABLE {table} ({columns}) WITH ('connector' = 'filesystem', 'path' = '{path}', 'format' = '{format}');\n"
        )
    };
    let settings: String = settings.iter().map(|(key, value)| format!("SET '{key}' = '{value}';\n")).collect();
    let text = [
        settings,
        "SET 'execution.checkpointing.interval' = '200ms';\n".to_owned(),
        format!(
            "CREATE TABLE numbers (n BIGINT, k {key}) WITH ('connector' = 'datagen', 'rows-per-second' = '2000',
               'fields.n.kind' = 'sequence', 'fields.n.start' = '0', 'fields.n.end' = '1000000000',
               'fields.k.min' = '0', 'fields.k.max' = '9');\n"
        ),
        sink("seen", "n BIGINT, k BIGINT", "json"),
        sink("totals", "k BIGINT, c BIGINT, s BIGINT", "debezium-json"),
        sink("parts", "part INT, k BIGINT, c BIGINT", "debezium-json"),
        "CREATE TABLE nowhere (n BIGINT) WITH ('connector' = 'blackhole');\n".to_owned(),
        jobs.to_owned(),
    ]
    .concat();
    let file = cluster.path(name);
    fs::write(&file, text).expect("written");
    file
}

/// A script of one job.
fn set(cluster: &Cluster, name: &str, queries: &[&str]) -> String {
    script(cluster, name, &[], "BIGINT", &statement_set(queries))
}

fn statement_set(queries: &[&str]) -> String {
    format!("EXECUTE STATEMENT SET BEGIN\n{};\nEND;\n", queries.join(";\n"))
}

/// Submits a script's job, and waits until it has got somewhere.
#[track_caller]
fn start(cluster: &Cluster, file: &str, arguments: &[&str]) -> String {
    let job = cluster.flott("sql", &[&["-f", file][..], arguments].concat()).succeeded().job();
    cluster.wait_for_checkpoints(&job, cluster.last_checkpoint(&job) + 3);
    job
}

/// `flott sql --upgrade`.
fn upgrade(cluster: &Cluster, job: &str, file: &str, flags: &[&str]) -> CommandOutput {
    let folder = cluster.path("savepoints");
    let own = ["-f", file, "--upgrade", job, "-o", "json", "--savepoint-dir", &folder, "--timeout", "30s", "-p", "2"];
    cluster.flott("sql", &[&own[..], flags].concat())
}

#[track_caller]
fn json(output: &CommandOutput) -> Value {
    let parsed = serde_json::from_str(&output.stdout);
    parsed.unwrap_or_else(|error| panic!("{}: {error}: {}", output.command, output.text()))
}

/// What becomes of the groups of all GROUP BYs, sorted.
fn outcomes(report: &Value) -> Vec<String> {
    let entries = report["entries"].as_array().unwrap_or_else(|| panic!("no entries in {report}"));
    let is_group = |entry: &&Value| {
        // In one phase, or the second of two.
        entry["state"] == "groups" && entry["operator"].as_str().is_some_and(|name| name.contains("GroupAggregate("))
    };
    let mut found: Vec<String> =
        entries.iter().filter(is_group).map(|entry| entry["outcome"].as_str().unwrap_or_default().to_owned()).collect();
    found.sort();
    found
}

fn numbers<const N: usize>(row: &Value, names: [&str; N]) -> [u64; N] {
    names.map(|name| row[name].as_u64().unwrap_or_else(|| panic!("no {name} in {row}")))
}

fn read(line: &str) -> Value {
    serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}"))
}

/// The rows that are left when all changes of a table are applied.
fn left(path: &str, names: [&str; 3]) -> Vec<[u64; 3]> {
    let mut counts: BTreeMap<[u64; 3], i64> = BTreeMap::new();
    for change in visible_lines(path).iter().map(|line| read(line)) {
        let (row, count) = match change["op"].as_str() {
            Some("c") => (&change["after"], 1),
            Some("d") => (&change["before"], -1),
            _ => panic!("{change} is no change"),
        };
        *counts.entry(numbers(row, names)).or_default() += count;
    }
    counts.retain(|_, count| *count != 0);
    let often: Vec<_> = counts.iter().filter(|(_, count)| **count != 1).take(3).collect();
    assert!(often.is_empty(), "{path}: not there once: {often:?}");
    counts.into_keys().collect()
}

/// Once the job has stopped: each number was seen once, and the totals are those of all that were seen. Returns how many.
#[track_caller]
fn assert_totals(cluster: &Cluster) -> usize {
    let mut seen: Vec<[u64; 2]> =
        visible_lines(cluster.path("seen")).iter().map(|line| numbers(&read(line), ["n", "k"])).collect();
    let all = seen.len();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), all, "numbers were seen twice");
    let mut totals: BTreeMap<u64, [u64; 2]> = BTreeMap::new();
    for [n, k] in seen {
        let [count, sum] = totals.entry(k).or_default();
        (*count, *sum) = (*count + 1, *sum + n);
    }
    let expected: Vec<[u64; 3]> = totals.into_iter().map(|(k, [count, sum])| [k, count, sum]).collect();
    assert_eq!(left(&cluster.path("totals"), ["k", "c", "s"]), expected);
    all
}

/// How many numbers a query has counted into `parts`.
fn counted(cluster: &Cluster, part: u64) -> u64 {
    let rows = left(&cluster.path("parts"), ["part", "k", "c"]);
    rows.iter().filter(|[of, ..]| *of == part).map(|[.., count]| count).sum()
}

#[test]
fn a_query_changes_and_the_others_count_on() {
    let cluster = Cluster::start(2, 2);
    let first = set(&cluster, "first.sql", &[SEEN, TOTALS, EVENS]);
    let second = set(&cluster, "second.sql", &[SEEN, TOTALS, ODDS]);
    let job = start(&cluster, &first, &["-p", "2"]);
    let (generation, workers) = (cluster.generation(&job), cluster.workers_of(&job));

    // The counts of even numbers would be lost.
    let answer = upgrade(&cluster, &job, &second, &[]).refused(&["cannot start from", "keep the query", "groups"]);
    let report = json(&answer);
    assert_eq!((answer.code, &report["outcome"]), (Some(1), &"refused".into()), "{report}");
    assert_eq!(outcomes(&report["check"]), ["new", "refused", "restored"], "{report}");

    // What is no version of it.
    let of = |name: &str, settings: &[(&str, &str)], jobs: &str| script(&cluster, name, settings, "BIGINT", jobs);
    let two = of("two.sql", &[], &format!("{SEEN};\n{TOTALS};\n"));
    upgrade(&cluster, &job, &two, &[]).refused(&["2 jobs", "EXECUTE STATEMENT SET"]);
    let select = of("select.sql", &[], "SELECT n FROM numbers;\n");
    upgrade(&cluster, &job, &select, &[]).refused(&["SELECT", "INSERT"]);
    let from = of("from.sql", &[("execution.state-recovery.path", "/s")], &statement_set(&[SEEN, TOTALS, ODDS]));
    upgrade(&cluster, &job, &from, &[]).refused(&["'/s'", "leave that SET out"]);

    assert_eq!(cluster.running_job(), job);
    assert_eq!((cluster.generation(&job), cluster.workers_of(&job)), (generation, workers));

    let before = visible_lines(cluster.path("seen")).len();
    let report = json(&upgrade(&cluster, &job, &second, &["-n"]).succeeded());
    println!("upgraded with a gap of {} ms", report["gap"]);
    assert_eq!(report["outcome"], "upgraded", "{report}");
    assert_eq!(outcomes(&report["check"]), ["dropped", "new", "restored"], "{report}");
    let new_job = cluster.running_job();
    assert_eq!(report["new-job"], new_job.as_str());
    cluster.wait_for_checkpoints(&new_job, cluster.last_checkpoint(&new_job) + 3);

    cluster.stop(&new_job, &cluster.path("savepoints"), false);
    let after = assert_totals(&cluster);
    assert!(after > before, "{after} numbers, {before} before the upgrade");
    // One query took the place of the other: its counts begin with it, and those of the old one stay as they were written.
    let seen = visible_lines(cluster.path("seen"));
    let odds = seen.iter().filter(|line| numbers(&read(line), ["n"])[0] % 2 == 1).count() as u64;
    let (old, new) = (counted(&cluster, 0), counted(&cluster, 1));
    assert!(old > 0 && new > 0 && new < odds, "{old} even ones, {new} odd ones of {odds}");
}

#[test]
fn a_version_that_fails_makes_room_for_the_one_before() {
    let cluster = Cluster::start(2, 2);
    let first = set(&cluster, "first.sql", &[SEEN, TOTALS]);
    let broken = set(&cluster, "broken.sql", &[SEEN, TOTALS, BROKEN]);
    let more = set(&cluster, "more.sql", &[SEEN, TOTALS, EVENS]);
    let job = start(&cluster, &first, &["-p", "2"]);
    let answer = upgrade(&cluster, &job, &broken, &["-D", "restart-strategy.type=none"]).refused(&["no number"]);
    let report = json(&answer);
    assert_eq!((answer.code, &report["outcome"]), (Some(1), &"rolled-back".into()), "{}", answer.text());
    let again = cluster.running_job();
    assert_eq!(report["new-job"], again.as_str());
    cluster.wait_for_checkpoints(&again, cluster.last_checkpoint(&again) + 2);

    // The plan of a script goes along where `flott` is the binary, too: its workers have no script.
    let (program, folder) = (binary("flott"), cluster.path("savepoints"));
    let program = program.to_str().expect("the name of a program is UTF-8");
    let own = [again.as_str(), program, "-o", "json", "--savepoint-dir", &folder, "-p", "2", "--", "sql", "-f", &more];
    let report = json(&cluster.flott("upgrade", &own).succeeded());
    assert_eq!(report["outcome"], "upgraded", "{report}");
    assert_eq!(outcomes(&report["check"]), ["new", "restored"], "{report}");
    let last = cluster.running_job();
    let worker =
        until("a worker", LIMIT, || cluster.workers_of(&last).first().copied().ok_or_else(|| "none".to_owned()));
    let arguments = fs::read(Path::new("/proc").join(worker.to_string()).join("cmdline")).expect("a process");
    let arguments: Vec<_> = arguments.split(|byte| *byte == 0).filter(|part| !part.is_empty()).collect();
    assert_eq!(arguments[1..], [&b"sql"[..], b"--compiled"], "the plan goes another way");
    cluster.wait_for_checkpoints(&last, cluster.last_checkpoint(&last) + 3);

    cluster.stop(&last, &cluster.path("savepoints"), false);
    assert_totals(&cluster);
    assert!(counted(&cluster, 0) > 0);
}

#[test]
fn a_savepoint_is_restored_at_another_parallelism() {
    let cluster = Cluster::start(2, 2);
    let first = set(&cluster, "first.sql", &[SEEN, TOTALS, EVENS]);
    let second = set(&cluster, "second.sql", &[SEEN, TOTALS, ODDS]);
    let job = start(&cluster, &first, &["-p", "2"]);
    let savepoint = cluster.stop(&job, &cluster.path("savepoints"), false);
    let before = assert_totals(&cluster);

    let check = |file: &str, flags: &[&str]| {
        cluster.flott("sql", &[&["--check", "-s", &savepoint, "-f", file, "-o", "json"][..], flags].concat())
    };
    let report = json(&check(&first, &[]).succeeded());
    assert_eq!((&report["restorable"], outcomes(&report)), (&true.into(), vec!["restored".to_owned(); 2]), "{report}");
    let answer = check(&second, &[]).refused(&["GroupAggregate", "keep the query"]);
    assert_eq!(
        (answer.code, outcomes(&json(&answer))),
        (Some(1), ["new", "refused", "restored"].map(String::from).to_vec())
    );
    let report = json(&check(&second, &["-n"]).succeeded());
    assert_eq!(outcomes(&report), ["dropped", "new", "restored"], "{report}");
    // The binary is asked the same, as that of any job.
    let program = binary("flott");
    let program = program.to_str().expect("the name of a program is UTF-8");
    let asked = cluster.flott("savepoint", &["-o", "json", "--check", program, &savepoint, "--", "sql", "-f", &second]);
    assert_eq!(outcomes(&json(&asked.refused(&["keep the query"]))), ["new", "refused", "restored"]);
    // Keys of another type are other keys, though the query looks the same.
    let typed = script(&cluster, "typed.sql", &[], "INT", &statement_set(&[SEEN, TOTALS, EVENS]));
    let report = json(&check(&typed, &[]).refused(&[]));
    assert_eq!(outcomes(&report), ["new", "new", "refused", "refused"], "{report}");

    let jobs = || cluster.rest("/jobs")["jobs"].as_array().map(Vec::len);
    let submitted = jobs();
    let lossy = cluster.flott("sql", &["-s", &savepoint, "-f", &second]);
    lossy.refused(&["GroupAggregate", "groups", "cannot start from", "-n (--allowNonRestoredState)"]);
    assert_eq!(jobs(), submitted, "it is refused before it is submitted");

    let job = start(&cluster, &first, &["-s", &savepoint, "-p", "3"]);
    assert!(cluster.parallelism(&job).contains(&3), "{:?}", cluster.parallelism(&job));
    let savepoint = cluster.stop(&job, &cluster.path("savepoints"), false);
    let between = assert_totals(&cluster);
    assert!(between > before, "{between} numbers, {before} before");

    // The same by settings, without a query that was there.
    let settings = [
        ("execution.state-recovery.path", savepoint.as_str()),
        ("execution.state-recovery.ignore-unclaimed-state", "true"),
    ];
    let fewer = script(&cluster, "fewer.sql", &settings, "BIGINT", &statement_set(&[SEEN, TOTALS]));
    let job = start(&cluster, &fewer, &["-p", "1"]);
    cluster.stop(&job, &cluster.path("savepoints"), false);
    let after = assert_totals(&cluster);
    assert!(after > between, "{after} numbers, {between} before");
}
