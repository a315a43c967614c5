//! What the golden tests of the examples share: run a job as a user does, and compare what it wrote.

use std::fs;
use std::path::Path;
use std::process::Command;

/// Runs a job's binary to its end, in an embedded cluster.
#[track_caller]
pub(crate) fn run(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?} cannot be started: {error}"));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?} ended with {}:\n{stderr}", output.status);
}

/// Asserts that the visible files below `folder` have exactly the lines of the file `golden`, in any order.
#[track_caller]
pub(crate) fn assert_golden(folder: &Path, golden: &Path) {
    let mut found = Vec::new();
    collect_lines(folder, &mut found);
    found.sort();
    let expected = fs::read_to_string(golden).unwrap_or_else(|error| panic!("{}: {error}", golden.display()));
    let expected: Vec<&str> = expected.lines().collect();
    let differs = found.iter().map(String::as_str).zip(expected.iter().copied()).find(|(found, line)| found != line);
    if let Some((found, line)) = differs {
        panic!("the first difference to {}: found '{found}' where '{line}' is expected", golden.display());
    }
    assert_eq!(found.len(), expected.len(), "lines found, and in {}", golden.display());
}

/// Names that begin with `.` or `_` are hidden: they are not committed.
fn collect_lines(folder: &Path, lines: &mut Vec<String>) {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    for entry in entries {
        let path = entry.unwrap_or_else(|error| panic!("{}: {error}", folder.display())).path();
        if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(['.', '_'])) {
            continue;
        }
        if path.is_dir() {
            collect_lines(&path, lines);
        } else {
            let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            lines.extend(text.lines().map(str::to_owned));
        }
    }
}
