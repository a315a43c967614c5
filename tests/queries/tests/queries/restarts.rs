//! Every script of `tests/sql` with stops, kills and crashes in between, and in batch mode: the result is Flink's.
//!
//! `SCRIPT=windows/cascade SEED=17` runs that alone.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;

use flott_core::Result;
use flott_core::hash::stable_hash;
use flott_e2e::{has_late_rows, repository};
use flott_queries::bed::Bed;
use flott_queries::script::job_of;
use flott_queries::story::Story;
use flott_sql::session::Job;

/// How often each script runs with other faults.
const SEEDS: u64 = 2;

/// How many scripts run at a time.
const WORKERS: usize = 3;

const BATCH: (&str, &str) = ("execution.runtime-mode", "batch");

const TWO_PHASE: (&str, &str) = ("table.optimizer.agg-phase-strategy", "TWO_PHASE");

struct Script {
    /// As in `windows/cascade`.
    name: String,
    text: String,
    expected: Vec<String>,
    /// What Flink gives in batch mode.
    expected_in_batch_mode: Vec<String>,
}

impl Script {
    fn read(path: &Path, root: &Path) -> Option<Self> {
        let lines = |end: &str| -> Option<Vec<String>> {
            Some(fs::read_to_string(path.with_extension(end)).ok()?.lines().map(str::to_owned).collect())
        };
        let is_script = path.extension().is_some_and(|end| end == "sql");
        let expected = lines("expected").filter(|_| is_script)?;
        let name = path.with_extension("").strip_prefix(root).ok()?.to_str()?.to_owned();
        let text = fs::read_to_string(path).ok()?;
        let expected_in_batch_mode = lines("batch.expected").unwrap_or_else(|| expected.clone());
        Some(Self { name, text, expected, expected_in_batch_mode })
    }

    fn is_recorded_in_batch_mode(&self) -> bool {
        self.text.contains("-- record: batch")
    }

    /// Changes of rows cannot be read in batch mode, not by Flink either.
    fn has_changes(&self) -> bool {
        ["debezium", "canal", "maxwell"].iter().any(|format| self.text.contains(format))
    }

    /// Flink cannot run it in batch mode.
    fn is_of_streams(&self) -> bool {
        self.text.contains("-- not in batch mode")
    }

    fn job(&self, settings: &[(&str, &str)]) -> Result<Job> {
        let batch = if self.is_recorded_in_batch_mode() { vec![BATCH] } else { Vec::new() };
        job_of(&self.text, &[&batch[..], settings].concat())
    }
}

fn scripts() -> Vec<Script> {
    let root = repository().join("tests/sql");
    // The paths in scripts are relative to it.
    std::env::set_current_dir(&root).expect("the folder of the scripts");
    let folders = fs::read_dir(&root).expect("the folder of the scripts").flatten().map(|entry| entry.path());
    let files =
        folders.filter(|path| path.is_dir()).flat_map(|folder| fs::read_dir(folder).expect("a folder").flatten());
    let mut paths: Vec<PathBuf> = files.map(|entry| entry.path()).collect();
    paths.sort();
    let all: Vec<Script> = paths.iter().filter_map(|path| Script::read(path, &root)).collect();
    assert!(all.len() > 370, "only {} scripts", all.len());
    match std::env::var("SCRIPT") {
        Ok(wanted) => all.into_iter().filter(|script| script.name.contains(&wanted)).collect(),
        Err(_) => all,
    }
}

/// Runs `check` for each script, and fails with all that it says.
fn for_each(scripts: &[Script], check: impl Fn(&Script) -> Result<(), String> + Sync) {
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

/// How the result of a job differs from what is expected.
fn compare(story: &Story<'_>, expected: &[String]) -> Result<(), String> {
    let found = story.results().table().map_err(|error| error.to_string())?;
    let only_in = |all: &[String], others: &[String]| {
        all.iter().filter(|row| !others.contains(row)).take(3).cloned().collect::<Vec<_>>()
    };
    if found == expected {
        return Ok(());
    }
    Err(format!(
        "{} rows instead of {}; wrong: {:?}; missing: {:?}",
        found.len(),
        expected.len(),
        only_in(&found, expected),
        only_in(expected, &found)
    ))
}

#[test]
fn scripts_give_the_same_with_stops_kills_and_crashes() {
    let seeds: Vec<u64> = match std::env::var("SEED") {
        Ok(seed) => vec![seed.parse().expect("a seed is a number")],
        Err(_) => (0..SEEDS).collect(),
    };
    let (checkpoints, runs) = (AtomicU64::new(0), AtomicU64::new(0));
    for_each(&scripts(), |script| {
        let text = |error: flott_core::Error| error.to_string();
        let job = script.job(&[]).map_err(text)?;
        let bed = Bed::new().map_err(text)?;
        let mut whole = Story::new(&bed, &job, 0);
        let rows = whole.run(1).map_err(text)?;
        compare(&whole, &script.expected)?;
        for seed in &seeds {
            // In one of two runs aggregates have two phases.
            let phases: &[(&str, &str)] = if seed % 2 == 1 { &[TWO_PHASE] } else { &[] };
            let job = script.job(phases).map_err(text)?;
            let bed = Bed::new().map_err(text)?;
            let mut story = Story::new(&bed, &job, stable_hash(&(&script.name, seed)));
            let result = story.run_with_faults(rows, !has_late_rows(&script.text)).map_err(text);
            let result = result.and_then(|()| compare(&story, &script.expected));
            result.map_err(|mistake| format!("SEED={seed}: {mistake}\n{}", story.told().text))?;
            checkpoints.fetch_add(story.told().checkpoints as u64, Ordering::Relaxed);
            runs.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    });
    let (checkpoints, runs) = (checkpoints.into_inner(), runs.into_inner());
    // Some tables have no rows, and VALUES may come at once.
    assert!(checkpoints > 3 * runs, "only {checkpoints} checkpoints between rows in {runs} jobs");
}

#[test]
fn scripts_give_the_same_in_batch_mode() {
    let mut scripts = scripts();
    scripts.retain(|script| !script.has_changes() && !script.is_of_streams());
    for_each(&scripts, |script| {
        let text = |error: flott_core::Error| error.to_string();
        let runs: [(u32, &[(&str, &str)]); 3] = [(1, &[BATCH]), (3, &[BATCH]), (3, &[BATCH, TWO_PHASE])];
        for (parallelism, settings) in runs {
            let job = job_of(&script.text, settings).map_err(text)?;
            let bed = Bed::new().map_err(text)?;
            let mut story = Story::new(&bed, &job, u64::from(parallelism));
            let result = story.run(parallelism).map_err(text);
            let result = result.and_then(|_| compare(&story, &script.expected_in_batch_mode));
            result.map_err(|mistake| format!("with {parallelism} subtasks and {settings:?}: {mistake}"))?;
        }
        Ok(())
    });
}
