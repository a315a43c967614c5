//! Upgrades: the example `accounts` goes from its first version to its second, back again when the second one fails, and
//! nowhere when the second one cannot take its state.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use flott_e2e::{
    Cluster, CommandOutput, account_entries as entries, binary, change_file, copy_folder, files_below, local_path,
    run_command, signal, visible_lines,
};
use serde_json::Value;

const LIMIT: Duration = Duration::from_secs(60);

const ENGINE: &[&str] = &["-p", "2", "-D", "execution.checkpointing.interval=200ms"];

/// The end of the name of a file with accounts in it: the second vertex counts them.
const STATE: &str = "/account/1-0.parquet";

/// Starts the first version, endless, and waits until it has committed something.
fn start(cluster: &Cluster, output: &str) -> String {
    let job = cluster.run_job(&binary("accounts-v1"), ENGINE, &["--output", output]);
    cluster.wait_for_checkpoints(&job, 3);
    job
}

/// The path of a version's program.
fn version(number: u32) -> String {
    let path = binary(&format!("accounts-v{number}"));
    path.to_str().expect("the name of a program is UTF-8").to_owned()
}

/// `flott upgrade` to the second version.
fn upgrade(cluster: &Cluster, job: &str, output: &str, engine: &[&str], flags: &[&str]) -> CommandOutput {
    let (program, folder) = (version(2), cluster.path("savepoints"));
    let own = [job, &program, "-o", "json", "--savepoint-dir", &folder, "--timeout", "30s"];
    cluster.flott("upgrade", &[&own[..], ENGINE, engine, &["--", "--output", output], flags].concat())
}

/// `flott savepoint --check`.
fn check(cluster: &Cluster, savepoint: &str, number: u32, engine: &[&str], flags: &[&str]) -> CommandOutput {
    let (program, output) = (version(number), cluster.path("none"));
    let own = ["-o", "json", "--check", &program, savepoint];
    cluster.flott("savepoint", &[&own[..], engine, &["--", "--output", &output], flags].concat())
}

/// `flott state`.
fn state(cluster: &Cluster, arguments: &[&str]) -> CommandOutput {
    run_command(cluster.command().arg("state").args(arguments), LIMIT)
}

#[track_caller]
fn json(output: &CommandOutput) -> Value {
    let parsed = serde_json::from_str(&output.stdout);
    parsed.unwrap_or_else(|error| panic!("{}: {error}: {}", output.command, output.text()))
}

/// What becomes of a keyed state of the operator 'Accounts', and why.
#[track_caller]
fn outcome(report: &Value, state: &str) -> (String, String) {
    let entries = report["entries"].as_array().unwrap_or_else(|| panic!("no entries in {report}"));
    let entry = entries.iter().find(|entry| entry["operator"] == "Accounts" && entry["state"] == state);
    let entry = entry.unwrap_or_else(|| panic!("no state '{state}' in {report}"));
    (entry["outcome"].as_str().unwrap_or_default().to_owned(), entry["notes"].to_string())
}

#[test]
fn the_second_version_goes_on_where_the_first_one_was() {
    let cluster = Cluster::start(2, 2);
    let output = cluster.path("entries");
    let job = start(&cluster, &output);
    let savepoint = cluster.savepoint(&job, &cluster.path("savepoints"));
    let report = json(&check(&cluster, &savepoint, 2, &[], &[]).succeeded());
    assert_eq!(report["restorable"], true, "{report}");
    let ((account, notes), (last_refund, _)) = (outcome(&report, "account"), outcome(&report, "last_refund"));
    assert_eq!((account.as_str(), last_refund.as_str()), ("migrated", "new"), "{report}");
    for field in ["total_cents", "transactions", "note", "largest_cents", "refunds"] {
        assert!(notes.contains(field), "no '{field}' in {notes}");
    }

    let before = entries(&output);
    let answer = json(&upgrade(&cluster, &job, &output, &[], &[]).succeeded());
    println!("upgraded with a gap of {} ms", answer["gap"]);
    assert_eq!((&answer["outcome"], &answer["check"]["restorable"]), (&"upgraded".into(), &true.into()), "{answer}");
    let new_job = cluster.running_job();
    assert_eq!(answer["new-job"], new_job.as_str());
    assert_eq!(cluster.rest(&format!("/jobs/{job}"))["state"], "FINISHED");

    // Its own checkpoints are as good as the savepoint.
    cluster.wait_for_checkpoints(&new_job, cluster.last_checkpoint(&new_job) + 2);
    let generation = cluster.generation(&new_job);
    signal(cluster.workers_of(&new_job)[0], "KILL");
    cluster.wait_for_generation(&new_job, generation + 1);
    let savepoint = cluster.stop(&new_job, &cluster.path("savepoints"), false);
    let after = entries(&output);
    assert!(after > before, "{after} entries, {before} before the upgrade");
    query_state(&cluster, &savepoint, &output);

    // There is no way back with what the first version cannot hold.
    let report = check(&cluster, &savepoint, 1, &[], &[]).refused(&[]);
    assert_eq!(report.code, Some(1));
    assert_eq!(json(&report)["restorable"], false);
    assert_eq!(outcome(&json(&report), "last_refund").0, "refused");
    let report = json(&check(&cluster, &savepoint, 1, &["-n"], &[]).refused(&[]));
    let (account, last_refund) = (outcome(&report, "account").0, outcome(&report, "last_refund").0);
    assert_eq!((account.as_str(), last_refund.as_str()), ("refused", "dropped"), "{report}");
}

#[test]
fn the_second_version_starts_from_a_checkpoint_of_the_first_one() {
    let cluster = Cluster::start(1, 3);
    let output = cluster.path("entries");
    let retained = "execution.checkpointing.externalized-checkpoint-retention=RETAIN_ON_CANCELLATION";
    let engine = [ENGINE, &["-D", retained]].concat();
    let job = cluster.run_job(&binary("accounts-v1"), &engine, &["--output", &output]);
    // A base, and changes that build on it.
    cluster.wait_for_checkpoints(&job, 4);
    cluster.flott("cancel", &[&job]).succeeded();
    cluster.wait_for_status(&job, "CANCELED", LIMIT);
    let checkpoints = cluster.rest(&format!("/jobs/{job}/checkpoints"));
    let checkpoint = checkpoints["latest"]["completed"]["external_path"].as_str().expect("it has one").to_owned();

    let report = json(&check(&cluster, &checkpoint, 2, &[], &[]).succeeded());
    assert_eq!(report["restorable"], true, "{report}");
    let (account, notes) = outcome(&report, "account");
    assert_eq!(account, "migrated", "{report}");
    for field in ["total_cents", "transactions", "note", "largest_cents", "refunds"] {
        assert!(notes.contains(field), "no '{field}' in {notes}");
    }
    check(&cluster, &checkpoint, 2, &[], &["--wrong-key"]).refused(&["account", "key"]);

    // At another parallelism, and then from its own checkpoints.
    let engine = [&engine[2..], &["-p", "3", "-s", &checkpoint]].concat();
    let before = entries(&output);
    let new_job = cluster.run_job(&binary("accounts-v2"), &engine, &["--output", &output]);
    cluster.wait_for_checkpoints(&new_job, cluster.last_checkpoint(&new_job) + 3);
    let generation = cluster.generation(&new_job);
    signal(cluster.workers_of(&new_job)[0], "KILL");
    cluster.wait_for_generation(&new_job, generation + 1);
    cluster.wait_for_checkpoints(&new_job, cluster.last_checkpoint(&new_job) + 2);
    let savepoint = cluster.stop(&new_job, &cluster.path("savepoints"), false);
    let after = entries(&output);
    assert!(after > before, "{after} entries, {before} before the second version");
    query_state(&cluster, &savepoint, &output);
}

#[test]
fn the_second_version_takes_what_was_in_flight_to_the_first_one() {
    let cluster = Cluster::start(2, 1);
    let output = cluster.path("entries");
    let options = [
        "execution.checkpointing.unaligned.enabled=true",
        "execution.checkpointing.externalized-checkpoint-retention=RETAIN_ON_CANCELLATION",
    ];
    let options = options.iter().flat_map(|option| ["-D", *option]);
    let engine: Vec<&str> = ["-p", "2"].into_iter().chain(options).collect();
    let arguments = ["--output", &output, "--rows-per-second", "20000"];
    let job = cluster.run_job(&binary("accounts-v1"), &engine, &arguments);
    cluster.wait_for_status(&job, "RUNNING", LIMIT);
    let checkpoint = cluster.checkpoint_in_flight(&job);
    cluster.cancel(&job);
    let checkpoint = checkpoint.to_str().expect("its name is UTF-8");
    let report = json(&check(&cluster, checkpoint, 2, &[], &[]).succeeded());
    assert_eq!(outcome(&report, "account").0, "migrated", "{report}");

    // At another parallelism, where records in flight go to other subtasks than they were sent to.
    let engine = ["-p", "1", "-s", checkpoint, "-D", "execution.checkpointing.interval=200ms"];
    let new_job = cluster.run_job(&binary("accounts-v2"), &engine, &["--output", &output]);
    cluster.wait_for_checkpoints(&new_job, 2);
    let before = entries(&output);
    cluster.stop(&new_job, &cluster.path("savepoints"), false);
    assert!(entries(&output) > before);
}

/// Lists and queries the second version's state, which must agree with what it wrote.
fn query_state(cluster: &Cluster, savepoint: &str, output: &str) {
    let list = state(cluster, &[savepoint]).succeeded().stdout;
    for expected in ["Transactions", "Accounts", "account", "last_refund", "160"] {
        assert!(list.contains(expected), "no '{expected}' in\n{list}");
    }
    json(&state(cluster, &[savepoint, "-o", "json"]).succeeded());

    // The last entry of each account.
    let mut accounts: BTreeMap<u64, (i64, i64)> = BTreeMap::new();
    for line in visible_lines(output) {
        let numbers: Vec<i64> = line.split(',').map(|number| number.parse().expect("entries are numbers")).collect();
        let [account, _, balance, count] = numbers[..] else { panic!("'{line}' is no entry") };
        let last = accounts.entry(account.unsigned_abs()).or_default();
        *last = (*last).max((count, balance));
    }
    let transactions: i64 = accounts.values().map(|(count, _)| count).sum();
    let cents: i64 = accounts.values().map(|(_, balance)| balance).sum();
    let query = "SELECT count(*) AS accounts, sum(value.transactions) AS transactions, sum(value.balance_cents) AS cents, \
                 count(value.largest_cents) > 0 AS has_largest FROM account";
    let answer = state(cluster, &[savepoint, query, "-o", "csv"]).succeeded();
    let expected = format!("accounts,transactions,cents,has_largest\n{},{transactions},{cents},true\n", accounts.len());
    assert_eq!(answer.stdout, expected);
    state(cluster, &[savepoint, "SELECT nonsense FROM account"]).refused(&["nonsense"]);
    state(cluster, &[savepoint, "SELECT * FROM acount"]).refused(&["acount"]);
}

#[test]
fn a_version_that_fails_makes_room_for_the_one_before() {
    let cluster = Cluster::start(2, 2);
    let output = cluster.path("entries");
    let job = start(&cluster, &output);
    let answer = upgrade(&cluster, &job, &output, &["-D", "restart-strategy.type=none"], &["--broken"]);
    let answer = answer.refused(&["is too much for this version"]);
    assert_eq!((answer.code, &json(&answer)["outcome"]), (Some(1), &"rolled-back".into()), "{}", answer.text());
    let again = cluster.running_job();
    assert_eq!(json(&answer)["new-job"], again.as_str());
    let before = entries(&output);
    cluster.wait_for_checkpoints(&again, cluster.last_checkpoint(&again) + 2);
    assert_eq!(cluster.parallelism(&again), cluster.parallelism(&job));

    let savepoint = cluster.stop(&again, &cluster.path("savepoints"), false);
    let after = entries(&output);
    assert!(after > before, "{after} entries, {before} before the old version went on");
    let report = json(&check(&cluster, &savepoint, 1, &[], &[]).succeeded());
    assert_eq!(outcome(&report, "account").0, "restored", "it is the first version's state");
}

#[test]
fn a_version_that_cannot_take_the_state_is_refused_before_anything_is_stopped() {
    let cluster = Cluster::start(2, 2);
    let output = cluster.path("entries");
    let job = start(&cluster, &output);
    let (generation, workers) = (cluster.generation(&job), cluster.workers_of(&job));
    let answer = upgrade(&cluster, &job, &output, &[], &["--wrong-key"]).refused(&["cannot start from"]);
    let report = json(&answer);
    assert_eq!((answer.code, &report["outcome"]), (Some(1), &"refused".into()), "{report}");
    let (account, notes) = outcome(&report["check"], "account");
    assert!(account == "refused" && notes.contains("key"), "{report}");

    let savepoint = local_path(report["savepoint"].as_str().expect("it was checked against one"));
    let savepoint = savepoint.to_str().expect("its name is UTF-8");
    let report = check(&cluster, savepoint, 2, &[], &["--wrong-key"]).refused(&["account", "key"]);
    assert_eq!(report.code, Some(1));
    let none = cluster.path("none");
    let run = cluster.run(&binary("accounts-v2"), &["-s", savepoint], &["--output", &none, "--wrong-key"]);
    run.refused(&["account", "key"]);
    assert!(visible_lines(&none).is_empty());

    // What is no version of anything.
    let text = cluster.path("job.txt");
    fs::write(&text, "fn main() {}\n").expect("it can be written");
    cluster.flott("upgrade", &[&job, &text]).refused(&[&text]);
    cluster.flott("upgrade", &[&job, &cluster.path("nothing")]).refused(&["nothing"]);

    assert_eq!(cluster.running_job(), job);
    assert_eq!((cluster.generation(&job), cluster.workers_of(&job)), (generation, workers));
    let before = entries(&output);
    cluster.stop(&job, &cluster.path("savepoints"), false);
    assert!(entries(&output) > before);
}

/// A copy of a savepoint in a folder of its own; returns the first of its files whose name ends so.
fn copy_of(cluster: &Cluster, savepoint: &Path, name: &str, end: &str) -> (String, PathBuf) {
    let copy = cluster.path(name);
    copy_folder(savepoint, &copy);
    let file = files_below(&copy, end).into_iter().next().expect("a savepoint has such a file");
    (copy, file)
}

#[test]
fn a_savepoint_is_a_folder_that_can_be_moved_and_must_be_whole() {
    let cluster = Cluster::start(1, 4);
    let output = cluster.path("entries");
    let job = start(&cluster, &output);
    let original = local_path(&cluster.stop(&job, &cluster.path("savepoints"), false));
    let moved = cluster.path("elsewhere");
    fs::rename(&original, &moved).expect("it can be moved");

    let refused = |folder: &str, file: &Path, expected: &str| {
        let expected = [file.to_str().expect("its name is UTF-8"), expected];
        assert_eq!(check(&cluster, folder, 2, &[], &[]).refused(&expected).code, Some(1));
        state(&cluster, &[folder]).refused(&expected);
    };
    let (folder, file) = copy_of(&cluster, moved.as_ref(), "cut", STATE);
    change_file(&file, |bytes| bytes.truncate(bytes.len() - 1));
    refused(&folder, &file, "truncated");
    let (folder, file) = copy_of(&cluster, moved.as_ref(), "incomplete", STATE);
    fs::remove_file(&file).expect("it can be removed");
    refused(&folder, &file, "does not exist");
    let (folder, file) = copy_of(&cluster, moved.as_ref(), "future", "_metadata");
    change_file(&file, |bytes| bytes[b"flott-manifest ".len()] = b'9');
    refused(&folder, &file, "has format version 9");

    // The length is right, so it takes reading to see it.
    let (folder, file) = copy_of(&cluster, moved.as_ref(), "altered", STATE);
    change_file(&file, |bytes| bytes[0] ^= 1);
    let file = file.to_str().expect("its name is UTF-8");
    let altered = [file, "is damaged: its SHA-256 is"];
    state(&cluster, &[&folder, "--verify"]).refused(&altered);
    assert_eq!(check(&cluster, &folder, 2, &[], &[]).refused(&altered).code, Some(1));
    let none = cluster.path("none");
    let run = cluster.run(&binary("accounts-v2"), &["-s", &folder], &["--output", &none]);
    run.refused(&altered);
    assert!(visible_lines(&none).is_empty());

    // The job makes transactions in order, so those that it was stopped after are the first ones.
    let count = (entries(&output) + 2000).to_string();
    let arguments = ["--output", &output, "--count", &count, "--rows-per-second", "20000"];
    let job = cluster.run_job(&binary("accounts-v2"), &["-p", "3", "-s", &moved], &arguments);
    cluster.wait_for_status(&job, "FINISHED", LIMIT);
    assert_eq!(entries(&output).to_string(), count);
}
