//! The words of the licence, counted by the job and by `expected.py`.

#[path = "../../golden.rs"]
mod golden;

use std::path::Path;
use std::process::Command;

#[test]
fn the_words_of_the_licence() {
    let example = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo runs the tests");
    let example = Path::new(&example);
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("counts");
    let mut command = Command::new(env!("CARGO_BIN_EXE_wordcount"));
    command.args(["-p", "2", "--input"]).arg(example.join("../../LICENSE")).arg("--output").arg(&output);
    golden::run(&mut command);
    golden::assert_golden(&output, &example.join("golden/licence.csv"));
}
