//! A checkpoint of ten million keys of which one in a hundred changed: how long the stream stands still for it, and how
//! much is written, beside a snapshot of all.

use std::sync::Arc;

use flott_control::CheckpointKind;
use flott_core::ids::CheckpointId;
use flott_core::{Batch, Result};
use flott_network::Barrier;
use flott_operators::key::BorrowedKey;
use flott_operators::reduce::Reduce;
use flott_operators::{Control, KeyExtractor, Push, TaskSnapshot};
use flott_state::{Freeze, SnapshotMode};

use crate::harness::{Sum, Total, chained, check_same, medians, runtime, task_context, timed};
use crate::report::Figure;

/// A key and a value.
pub(crate) type Row = (u64, u64);

/// One key in so many changes between two checkpoints.
pub(crate) const UNCHANGED: u64 = 100;

/// How many entries a subtask writes at a time, between its batches.
pub(crate) const ENTRIES_PER_STEP: usize = 2_000;

fn key(row: &Row) -> &u64 {
    &row.0
}

pub(crate) fn run(is_quick: bool) -> Result<Vec<Figure>> {
    let (keys, rounds) = if is_quick { (1_000_000, 3) } else { (10_000_000, 9) };
    let runtime = runtime()?;
    let cx = task_context(runtime.handle());
    let add = |sum: &Row, next: Row| (next.0, sum.1.wrapping_add(next.1));
    let extractor: Arc<dyn KeyExtractor<Row, u64>> = Arc::new(BorrowedKey::new(key));
    let total = Total::default();
    let end = Box::new(Sum::new(|row: &Row| row.1, &total));
    let mut chain = chained::<Row, Row, _>(Reduce::new(add, extractor, &cx)?, end);
    let chain = &mut *chain;

    feed(chain, 0..keys)?;
    check_same("the sum of all keys", total.take(), keys)?;
    let full = snapshot(chain, freeze(SnapshotMode::Full, 1))?;

    let mut checkpoint = 1;
    let [pause_ms, step_ms, write_ms, bytes] = medians(rounds, || {
        feed(chain, (checkpoint..keys).step_by(UNCHANGED as usize))?;
        checkpoint += 1;
        let changes = freeze(SnapshotMode::Incremental, checkpoint);
        let Snapshot { pause_ms, step_ms, write_ms, bytes } = snapshot(chain, changes)?;
        Ok([pause_ms, step_ms, write_ms, bytes])
    })?;

    Ok(vec![
        Figure::limited("checkpoint_pause", "ms", pause_ms, 10.0),
        Figure::alone("checkpoint_longest_step", "ms", step_ms),
        Figure::alone("checkpoint_write", "ms", write_ms),
        // A few bytes a section come on top of the entries: not quite a hundredth.
        Figure::less("checkpoint_bytes", "MB", bytes / 1e6, full.bytes / 1e6)
            .against("a full snapshot", UNCHANGED as f64 * 0.9),
    ])
}

/// As a job freezes its state: it can be taken back to each checkpoint.
fn freeze(mode: SnapshotMode, checkpoint: CheckpointId) -> Freeze {
    Freeze { checkpoint, mode, is_rewindable: true }
}

/// Adds one to each of these keys.
pub(crate) fn feed(chain: &mut dyn Push<Row>, keys: impl Iterator<Item = u64>) -> Result<()> {
    let mut batch = Batch::with_capacity(Batch::<Row>::ROWS_MAX);
    for key in keys {
        batch.rows.push((key, 1));
        if batch.len() == Batch::<Row>::ROWS_MAX {
            chain.push(&mut batch)?;
        }
    }
    chain.push(&mut batch)
}

pub(crate) struct Snapshot {
    /// From the barrier's arrival until the next record.
    pause_ms: f64,
    /// The longest time between two records afterwards.
    step_ms: f64,
    /// All steps together.
    write_ms: f64,
    bytes: f64,
}

/// Takes a snapshot as a subtask does, and makes it durable.
pub(crate) fn snapshot(chain: &mut dyn Push<Row>, freeze: Freeze) -> Result<Snapshot> {
    let barrier = Barrier { checkpoint: freeze.checkpoint, triggered_ms: 0, kind: CheckpointKind::Checkpoint };
    let mut task = TaskSnapshot::new(freeze);
    let (pause_s, frozen) = timed(|| chain.control(&mut Control::Barrier(&barrier, &mut task)));
    frozen?;
    let (mut step_ms, mut write_ms) = (0.0_f64, 0.0);
    while task.is_pending {
        task.is_pending = false;
        task.entries_max = ENTRIES_PER_STEP;
        let (step_s, drained) = timed(|| chain.control(&mut Control::Drain(&mut task)));
        drained?;
        step_ms = step_ms.max(step_s * 1e3);
        write_ms += step_s * 1e3;
    }
    chain.control(&mut Control::Commit(freeze.checkpoint))?;
    Ok(Snapshot { pause_ms: pause_s * 1e3, step_ms, write_ms, bytes: task.writer.into_bytes().len() as f64 })
}
