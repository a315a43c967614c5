//! The hours of the default arguments, by the job and by `expected.py`.

#[path = "../../golden.rs"]
mod golden;

use std::path::Path;
use std::process::Command;

#[test]
fn hours_of_the_default_orders() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("hours");
    let mut command = Command::new(env!("CARGO_BIN_EXE_orders-sql"));
    command.args(["-p", "2", "-D", "execution.checkpointing.interval=200ms", "--output"]).arg(&output);
    golden::run(&mut command);
    golden::assert_golden(
        &output,
        &Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo runs the tests")).join("golden/hours.csv"),
    );
}
