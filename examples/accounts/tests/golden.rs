//! The first transactions, by each version of the job and by `expected.py`.

#[path = "../../golden.rs"]
mod golden;

use std::path::Path;
use std::process::Command;

/// As many as `golden/entries.csv` has.
const COUNT: &str = "2000";

#[track_caller]
fn check(program: &str, parallelism: &str) {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("entries");
    let mut command = Command::new(program);
    command.args(["-p", parallelism, "--count", COUNT, "--rows-per-second", "1000000", "--output"]).arg(&output);
    golden::run(&mut command);
    let example = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo runs the tests");
    golden::assert_golden(&output, &Path::new(&example).join("golden/entries.csv"));
}

#[test]
fn entries_of_the_first_version() {
    check(env!("CARGO_BIN_EXE_accounts-v1"), "2");
}

#[test]
fn entries_of_the_second_version_are_the_same() {
    check(env!("CARGO_BIN_EXE_accounts-v2"), "3");
}
