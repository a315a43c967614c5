//! What a file sink has committed.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// How many lines of a difference are shown.
const SHOWN_MAX: usize = 10;

/// The lines of a file, or of all visible files below a folder, sorted. Names that begin with `.` or `_` are hidden: not
/// committed. What does not exist has no lines, since a sink makes its folder with its first part.
///
/// # Panics
/// A file cannot be read.
pub fn visible_lines(path: impl AsRef<Path>) -> Vec<String> {
    let mut lines = Vec::new();
    read(path.as_ref(), &mut lines);
    lines.sort_unstable();
    lines
}

fn read(path: &Path, lines: &mut Vec<String>) {
    if path.is_file() {
        let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        lines.extend(text.lines().map(str::to_owned));
        return;
    }
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| !entry.file_name().to_string_lossy().starts_with(['.', '_'])) {
        read(&entry.path(), lines);
    }
}

/// How many visible files there are below a folder.
pub(crate) fn visible_files(folder: &Path) -> usize {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let visible = entries.filter(|entry| !entry.file_name().to_string_lossy().starts_with(['.', '_']));
    let counts = visible.map(|entry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => visible_files(&entry.path()),
        _ => 1,
    });
    counts.sum()
}

/// Refuses lines that are not, as often as they come, the expected ones. The order does not matter.
///
/// # Panics
/// A line is missing or too many.
#[track_caller]
pub fn assert_same(what: &str, found: &[String], expected: &[String]) {
    let mut balance: BTreeMap<&str, i64> = BTreeMap::new();
    found.iter().for_each(|line| *balance.entry(line).or_default() += 1);
    expected.iter().for_each(|line| *balance.entry(line).or_default() -= 1);
    let lines = |is_shown: fn(i64) -> bool| -> Vec<&str> {
        balance.iter().filter(|(_, count)| is_shown(**count)).map(|(line, _)| *line).collect()
    };
    let (extra, missing) = (lines(|count| count > 0), lines(|count| count < 0));
    assert!(
        extra.is_empty() && missing.is_empty(),
        "{what}: of {} expected lines, {} are missing, for example {:#?}; of {} found, {} are wrong or too many, for example {:#?}",
        expected.len(),
        missing.len(),
        &missing[..missing.len().min(SHOWN_MAX)],
        found.len(),
        extra.len(),
        &extra[..extra.len().min(SHOWN_MAX)]
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn hidden_files_are_not_committed() {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in
            [("b/part-0", "3\n1\n"), ("part-1", "2\n"), (".part-2.pending", "4\n"), ("_staging/x", "5\n")]
        {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        assert_eq!(visible_lines(folder.path()), ["1", "2", "3"]);
        assert_eq!(visible_lines(folder.path().join("b/part-0")), ["1", "3"]);
        assert!(visible_lines(folder.path().join("none")).is_empty());
        assert_eq!((visible_files(folder.path()), visible_files(&folder.path().join("none"))), (2, 0));
    }

    #[test]
    fn order_does_not_matter() {
        assert_same("x", &lines("a b a"), &lines("a a b"));
    }

    #[test]
    #[should_panic(expected = "1 are missing, for example [\n    \"b\",\n]; of 2 found, 1 are wrong or too many")]
    fn what_is_lost_and_repeated_is_shown() {
        assert_same("x", &lines("a a"), &lines("a b"));
    }
}
