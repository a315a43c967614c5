//! Every script of `tests/sql` with stops, kills and crashes in between, and in batch mode: the result is Flink's.
//!
//! `SCRIPT=windows/cascade SEED=17` runs that alone.

use std::sync::atomic::{AtomicU64, Ordering};

use flott_core::hash::stable_hash;
use flott_core::{Error, Result, ResultExt};
use flott_e2e::has_late_rows;
use flott_queries::bed::Bed;
use flott_queries::story::Story;
use flott_sql::session::Job;

use super::scripts::{Script, compare, for_each, scripts};

/// How often each script runs with other faults.
const SEEDS: u64 = 2;

/// A job with so many rows has so many checkpoints between them, at least.
const ROWS: u64 = 10;
const CHECKPOINTS: usize = 3;

const BATCH: (&str, &str) = ("execution.runtime-mode", "batch");

const TWO_PHASE: (&str, &str) = ("table.optimizer.agg-phase-strategy", "TWO_PHASE");

/// That a SELECT of which Flink takes nothing back is planned so here, and no other, and that nothing was taken back.
fn check_changes(script: &Script, job: &Job, story: &Story<'_>) -> Result<()> {
    let is_select = !job.schema.fields().is_empty();
    let (Some(is_append_only), Some(planned)) = (script.is_append_only, job.results.first().filter(|_| is_select))
    else {
        return Ok(());
    };
    if planned.is_insert_only != is_append_only {
        let [here, there] = [planned.is_insert_only, is_append_only].map(|is| if is { "nothing" } else { "rows" });
        return Err(Error::system(format!("is planned to take back {here}, and {there} by Flink")));
    }
    let changed = story.results().changelog().into_iter().find(|line| !line.starts_with("+I"));
    match changed.filter(|_| is_append_only) {
        Some(line) => Err(Error::system(format!("takes back what Flink does not: {line}"))),
        None => Ok(()),
    }
}

/// Runs a job with the faults of a seed; what it answers.
fn run_with_faults(script: &Script, job: &Job, story: &mut Story<'_>, rows: u64) -> Result<Vec<String>> {
    story.run_with_faults(rows, !has_late_rows(&script.text))?;
    let told = story.told();
    if told.rows >= ROWS && told.checkpoints < CHECKPOINTS {
        return Err(Error::system(format!("only {} checkpoints between {} rows", told.checkpoints, told.rows)));
    }
    check_changes(script, job, story)?;
    story.results().table()
}

#[test]
fn scripts_give_the_same_with_stops_kills_and_crashes() {
    let seeds: Vec<u64> = match std::env::var("SEED") {
        Ok(seed) => vec![seed.parse().expect("a seed is a number")],
        Err(_) => (0..SEEDS).collect(),
    };
    let (runs, on_disk) = (AtomicU64::new(0), AtomicU64::new(0));
    for_each(&scripts(), |script| {
        // How many rows the tables of each job have.
        let mut rows = Vec::new();
        let bed = Bed::new()?;
        let found = script.answers(&[], |index, job| {
            let mut story = Story::new(&bed, job, index as u64);
            rows.push(story.run(1)?);
            check_changes(script, job, &story)?;
            story.results().table()
        })?;
        compare(&found, &script.expected)?;
        for seed in &seeds {
            // In one of two runs aggregates have two phases.
            let phases: &[(&str, &str)] = if seed % 2 == 1 { &[TWO_PHASE] } else { &[] };
            let bed = Bed::new()?;
            let mut told = String::new();
            let found = script.answers(phases, |index, job| {
                let mut story = Story::new(&bed, job, stable_hash(&(&script.name, seed, index as u64)));
                let found = run_with_faults(script, job, &mut story, rows[index]);
                told += &story.told().text;
                runs.fetch_add(1, Ordering::Relaxed);
                on_disk.fetch_add(u64::from(story.told().disk_bytes > 0), Ordering::Relaxed);
                found
            });
            let compared = found.and_then(|found| compare(&found, &script.expected));
            compared.with_context(|| format!("SEED={seed}:\n{told}"))?;
        }
        Ok(())
    });
    let (runs, on_disk) = (runs.into_inner(), on_disk.into_inner());
    assert!(on_disk >= runs / 8, "only {on_disk} of {runs} jobs had state on disk");
}

#[test]
fn scripts_give_the_same_in_batch_mode() {
    let mut scripts = scripts();
    scripts.retain(Script::is_of_batch_mode);
    for_each(&scripts, |script| {
        let runs: [(u32, &[(&str, &str)]); 3] = [(1, &[BATCH]), (3, &[BATCH]), (3, &[BATCH, TWO_PHASE])];
        for (parallelism, settings) in runs {
            let bed = Bed::new()?;
            let found = script.answers(settings, |index, job| {
                let mut story = Story::new(&bed, job, index as u64);
                story.run(parallelism)?;
                story.results().table()
            });
            let compared = found.and_then(|found| compare(&found, &script.expected_in_batch_mode));
            compared.with_context(|| format!("with {parallelism} subtasks and {settings:?}"))?;
        }
        Ok(())
    });
}
