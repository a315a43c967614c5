//! A year of flights, counted by the job and by `expected.py`.

#[path = "../../golden.rs"]
mod golden;

use std::path::{Path, PathBuf};
use std::process::Command;

#[test]
fn a_year_of_flights() {
    let example = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo runs the tests");
    let example = Path::new(&example);
    let repository = example.join("../..");
    let data = std::env::var_os("FLOTT_DATA_DIR").filter(|folder| !folder.is_empty());
    let data = repository.join(data.map_or_else(|| PathBuf::from(".data"), PathBuf::from));
    let input = data.join("flights-events.csv");
    assert!(input.exists(), "{} is not there: 'make data' or scripts/fetch-flights.py fetches it", input.display());

    let folder = tempfile::tempdir().unwrap();
    let (hourly, late) = (folder.path().join("hourly"), folder.path().join("late"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_flights"));
    command.args(["-p", "2", "--input"]).arg(&input).arg("--output").arg(&hourly).arg("--late").arg(&late);
    golden::run(&mut command);
    golden::assert_golden(&hourly, &example.join("golden/hourly.csv"));
    golden::assert_golden(&late, &example.join("golden/late.csv"));
}
