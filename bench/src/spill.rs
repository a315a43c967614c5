//! State of more and more times its memory: how many records a second a sum per key takes, each of a key at random. All
//! keys are as likely as each other, which is the worst there is: real keys are hot and cold, and memory has the hot ones.
//!
//! Where state is beyond its memory, RocksDB does the same with as much (`flink/RocksSums.java`): no slot, no checkpoints.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use flott_core::{Batch, Error, Result, ResultExt};
use flott_operators::key::BorrowedKey;
use flott_operators::reduce::Reduce;
use flott_operators::{Control, KeyExtractor, Maintenance, Push};
use flott_state::{MemoryBudget, StateBackend};
use serde::Deserialize;

use crate::checkpoint::Row;
use crate::harness::{Sum, Total, chained, output, runtime, scrambled, task_context};
use crate::plot::Curve;
use crate::report::Figure;

/// How many times the budget the state is, in ascending order, and the name of its figure.
const STEPS: [(f64, &str); 8] = [
    (0.1, "spill_0.1x"),
    (0.3, "spill_0.3x"),
    (0.7, "spill_0.7x"),
    (1.5, "spill_1.5x"),
    (2.0, "spill_2x"),
    (3.0, "spill_3x"),
    (5.0, "spill_5x"),
    (10.0, "spill_10x"),
];

/// What an entry of two numbers takes in a hash table that is as full as they are on average.
const ENTRY_BYTES: f64 = 45.0;

/// How often a slot looks after the memory of its state.
const MAINTAIN_EVERY: Duration = Duration::from_millis(5);

fn key(row: &Row) -> &u64 {
    &row.0
}

pub(crate) fn run(is_quick: bool) -> Result<Vec<Figure>> {
    let (budget, seconds) = if is_quick { (8 << 20, 0.5) } else { (64 << 20, 5.0) };
    let mut figures = Vec::new();
    let mut points = Vec::new();
    for (times, name) in STEPS {
        let rate = rate(budget, times, Duration::from_secs_f64(seconds))?;
        points.push((times, rate));
        let peer = if times > 1.0 { rocksdb(budget, keys(budget, times), seconds) } else { None };
        figures.push(match peer {
            Some(peer) => Figure::more(name, "M rows/s", rate, peer).beside("RocksDB, as Flink 2.3 ships it"),
            None => Figure::alone(name, "M rows/s", rate),
        });
    }
    if !is_quick {
        let title = "Sums of keys at random, in millions of records a second, by the size of the state in budgets";
        Curve { title, points: &points }.save("spill")?;
    }
    Ok(figures)
}

/// Millions of records a second, once the state has the size that it stays at.
fn rate(budget: u64, times: f64, how_long: Duration) -> Result<f64> {
    let disk = tempfile::tempdir().context("a temporary folder")?;
    let runtime = runtime()?;
    let mut cx = task_context(runtime.handle());
    cx.state = StateBackend::new(MemoryBudget::new(budget), Some(disk.path().join("state")), false);
    let add = |sum: &Row, next: Row| (next.0, sum.1.wrapping_add(next.1));
    let extractor: Arc<dyn KeyExtractor<Row, u64>> = Arc::new(BorrowedKey::new(key));
    let total = Total::default();
    let mut chain =
        chained::<Row, Row, _>(Reduce::new(add, extractor, &cx)?, Box::new(Sum::new(|row: &Row| row.1, &total)));

    let keys = keys(budget, times);
    let mut maintained = flott_env::monotonic();
    feed(&mut *chain, 0..keys, |key| key, &mut maintained, None)?;
    // Twice as long as it is measured, so that merging has found its pace.
    feed(&mut *chain, 0..u64::MAX, |index| scrambled(index) % keys, &mut maintained, Some(how_long))?;
    let began = flott_env::monotonic();
    let rows = feed(&mut *chain, 1 << 40..u64::MAX, |index| scrambled(index) % keys, &mut maintained, Some(how_long))?;
    Ok(rows as f64 / (flott_env::monotonic() - began).as_secs_f64() / 1e6)
}

/// So many keys take so many times the budget.
fn keys(budget: u64, times: f64) -> u64 {
    (budget as f64 * times / ENTRY_BYTES) as u64
}

/// What `flink/rocksdb.sh` prints.
#[derive(Deserialize)]
struct RocksDb {
    rows_per_second: f64,
}

/// Millions of records a second in RocksDB. Where that cannot be had, our own figures count all the same.
fn rocksdb(budget: u64, keys: u64, seconds: f64) -> Option<f64> {
    let run = || {
        let disk = tempfile::tempdir().context("a temporary folder")?;
        let mut script = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("flink/rocksdb.sh"));
        script.arg(disk.path()).args([budget.to_string(), keys.to_string(), seconds.to_string()]);
        let printed = output(&mut script)?;
        serde_json::from_str(&printed)
            .map_err(|error| Error::system(format!("rocksdb.sh printed '{printed}': {error}")))
    };
    run()
        .map(|peer: RocksDb| peer.rows_per_second / 1e6)
        .map_err(|error| eprintln!("no figure of RocksDB: {error}"))
        .ok()
}

/// Pushes a record for each index, and looks after memory as a slot does. Returns how many there were.
fn feed(
    chain: &mut dyn Push<Row>,
    indexes: std::ops::Range<u64>,
    key: impl Fn(u64) -> u64,
    maintained: &mut Duration,
    how_long: Option<Duration>,
) -> Result<u64> {
    let began = flott_env::monotonic();
    let mut batch = Batch::with_capacity(Batch::<Row>::ROWS_MAX);
    let mut rows = 0;
    for index in indexes {
        batch.rows.push((key(index), 1));
        if batch.len() < Batch::<Row>::ROWS_MAX {
            continue;
        }
        rows += batch.len() as u64;
        chain.push(&mut batch)?;
        if flott_env::monotonic() - *maintained >= MAINTAIN_EVERY {
            let mut done = Maintenance::default();
            chain.control(&mut Control::Maintain(&mut done))?;
            *maintained = flott_env::monotonic();
        }
        if how_long.is_some_and(|how_long| (flott_env::monotonic() - began) >= how_long) {
            break;
        }
    }
    rows += batch.len() as u64;
    chain.push(&mut batch)?;
    Ok(rows)
}
