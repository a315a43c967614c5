//! The scripts of `tests/sql`, and what Flink gives for them.
//!
//! `SCRIPT=windows/cascade` leaves only those with that in their name.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use flott_core::{Error, Result};
use flott_e2e::repository;
use flott_queries::script;
use flott_sql::session::Job;

/// How many scripts run at a time.
const WORKERS: usize = 3;

const BATCH: (&str, &str) = ("execution.runtime-mode", "batch");

pub(crate) struct Script {
    /// As in `windows/cascade`.
    pub(crate) name: String,
    pub(crate) text: String,
    pub(crate) expected: Vec<String>,
    /// What Flink gives in batch mode.
    pub(crate) expected_in_batch_mode: Vec<String>,
    /// The rows that come in, in order, where that was recorded.
    pub(crate) steps: Option<Vec<String>>,
    /// Whether Flink takes nothing back; `None` if it was not asked, or something else was.
    pub(crate) is_append_only: Option<bool>,
}

impl Script {
    fn read(path: &Path, root: &Path, append_only: &BTreeSet<String>) -> Option<Self> {
        let lines = |end: &str| -> Option<Vec<String>> {
            Some(fs::read_to_string(path.with_extension(end)).ok()?.lines().map(str::to_owned).collect())
        };
        let is_script = path.extension().is_some_and(|end| end == "sql");
        let expected = lines("expected").filter(|_| is_script)?;
        let name = path.with_extension("").strip_prefix(root).ok()?.to_str()?.to_owned();
        let text = fs::read_to_string(path).ok()?;
        let expected_in_batch_mode = lines("batch.expected").unwrap_or_else(|| expected.clone());
        let is_asked = !path.with_extension("flink.sql").exists()
            && !["-- record: batch", "-- changes:"].iter().any(|word| text.contains(word));
        let is_append_only = is_asked.then(|| append_only.contains(&name));
        Some(Self { name, text, expected, expected_in_batch_mode, steps: lines("steps.expected"), is_append_only })
    }

    /// Whether it runs in batch mode alone, in which it was recorded.
    fn is_of_batch_mode_alone(&self) -> bool {
        self.text.contains("-- record: batch") && !self.text.contains("-- streams here")
    }

    /// Whether it can run in batch mode: changes of rows cannot be read there, not by Flink either.
    pub(crate) fn is_of_batch_mode(&self) -> bool {
        let of_changes = ["debezium", "canal", "maxwell"].iter().any(|format| self.text.contains(format));
        !of_changes && !self.text.contains("-- not in batch mode")
    }

    /// What its statements answer, sorted, in the mode that it is for, or with settings. `run` runs its jobs, one after the
    /// other, and says which rows they answer; what they write below `out` is in a folder of its own.
    pub(crate) fn answers(
        &self,
        settings: &[(&str, &str)],
        run: impl FnMut(usize, &Job) -> Result<Vec<String>>,
    ) -> Result<Vec<String>> {
        let out = tempfile::tempdir()?;
        let text = self.text.replace("'out/", &format!("'{}/", out.path().display()));
        let batch: &[(&str, &str)] = if self.is_of_batch_mode_alone() { &[BATCH] } else { &[] };
        let mut rows = script::answers(&text, &[batch, settings].concat(), run)?;
        // A row is a line.
        rows.iter_mut().for_each(|row| *row = row.replace('\n', "\\n"));
        rows.sort_unstable();
        Ok(rows)
    }
}

/// The scripts that are wanted, by name.
pub(crate) fn scripts() -> Vec<Script> {
    let all = all_scripts();
    match std::env::var("SCRIPT") {
        Ok(wanted) => all.into_iter().filter(|script| script.name.contains(&wanted)).collect(),
        Err(_) => all,
    }
}

/// All scripts that have a result, by name.
pub(crate) fn all_scripts() -> Vec<Script> {
    let root = repository().join("tests/sql");
    // The paths in scripts are relative to it.
    std::env::set_current_dir(&root).expect("the folder of the scripts");
    let append_only = fs::read_to_string(root.join("append_only.txt")).expect("record.sh writes it");
    let append_only: BTreeSet<String> = append_only.lines().map(str::to_owned).collect();
    let folders = fs::read_dir(&root).expect("the folder of the scripts").flatten().map(|entry| entry.path());
    let files =
        folders.filter(|path| path.is_dir()).flat_map(|folder| fs::read_dir(folder).expect("a folder").flatten());
    let mut paths: Vec<PathBuf> = files.map(|entry| entry.path()).collect();
    paths.sort();
    let all: Vec<Script> = paths.iter().filter_map(|path| Script::read(path, &root, &append_only)).collect();
    assert!(all.len() > 410, "only {} scripts", all.len());
    let names: BTreeSet<&str> = all.iter().map(|script| script.name.as_str()).collect();
    let unknown: Vec<&String> = append_only.iter().filter(|name| !names.contains(name.as_str())).collect();
    assert!(unknown.is_empty(), "append_only.txt names what is no script: {unknown:?}");
    all
}

/// Runs `check` for each script, and fails with all that it says.
pub(crate) fn for_each(scripts: &[Script], check: impl Fn(&Script) -> Result<()> + Sync) {
    let (next, mistakes) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                while let Some(script) = scripts.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Err(mistake) = check(script) {
                        mistakes.lock().expect("no panic").push(format!("{}: {mistake}", script.name));
                    }
                }
            });
        }
    });
    let mistakes = mistakes.into_inner().expect("no panic");
    assert!(mistakes.is_empty(), "{} of {} scripts:\n{}", mistakes.len(), scripts.len(), mistakes.join("\n"));
}

/// How rows differ from what is expected.
pub(crate) fn compare(found: &[String], expected: &[String]) -> Result<()> {
    if found == expected {
        return Ok(());
    }
    let only_in = |all: &[String], others: &[String]| {
        all.iter().filter(|row| !others.contains(row)).take(3).cloned().collect::<Vec<_>>()
    };
    Err(Error::system(format!(
        "{} rows instead of {}; wrong: {:?}; missing: {:?}",
        found.len(),
        expected.len(),
        only_in(found, expected),
        only_in(expected, found)
    )))
}
