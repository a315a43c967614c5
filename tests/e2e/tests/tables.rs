//! Savepoints are tables: Parquet readers that know nothing of Flott find in one what the job has written.

use std::collections::BTreeMap;
use std::process::Command;
use std::time::Duration;

use flott_e2e::{Cluster, binary, local_path, python, repository, run_command, visible_lines};

const LIMIT: Duration = Duration::from_secs(60);

/// Balance and count of each account.
type Accounts = BTreeMap<u64, (i64, i64)>;

/// The numbers of a line.
#[track_caller]
fn numbers(line: &str) -> Vec<i64> {
    line.split(',').map(|number| number.parse().unwrap_or_else(|error| panic!("'{line}': {error}"))).collect()
}

/// The last entry of each account: the one with the highest count.
fn written(output: &str) -> Accounts {
    let mut accounts = Accounts::new();
    for line in visible_lines(output) {
        let [account, _, balance, count] = numbers(&line)[..] else { panic!("'{line}' is no entry") };
        let last = accounts.entry(account.unsigned_abs()).or_default();
        if count > last.1 {
            *last = (balance, count);
        }
    }
    accounts
}

#[test]
fn duckdb_and_pyarrow_read_a_savepoint() {
    let cluster = Cluster::start(1, 2);
    let output = cluster.path("entries");
    let engine = ["-p", "2", "-D", "execution.checkpointing.interval=200ms"];
    let job = cluster.run_job(&binary("accounts-v2"), &engine, &["--output", &output]);
    cluster.wait_for_checkpoints(&job, 5);
    let savepoint = cluster.stop(&job, &cluster.path("savepoints"), false);
    // Everything before the savepoint is committed, and nothing after it.
    let expected = written(&output);
    assert!(expected.len() > 100, "only {} accounts", expected.len());

    let script = repository().join("tests/e2e/tests/tables.py");
    let read = run_command(Command::new(python()).arg(script).arg(local_path(&savepoint)), LIMIT).succeeded();
    for reader in ["duckdb", "pyarrow"] {
        let rows = read.stdout.lines().filter_map(|line| line.strip_prefix(reader)?.strip_prefix(','));
        let found: Accounts = rows
            .map(|row| match numbers(row)[..] {
                [account, balance, count] => (account.unsigned_abs(), (balance, count)),
                _ => panic!("'{row}' is no row"),
            })
            .collect();
        assert_eq!(found, expected, "{reader}");
    }
}
