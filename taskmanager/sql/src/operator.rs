//! What an operator over chunks implements.

use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::SchemaRef;
use flott_core::ids::CheckpointId;
use flott_core::time::Timestamp;
use flott_core::{Batch, Result};
use flott_network::Barrier;
use flott_operators::operator::{OpenContext, Operator, OperatorSnapshot, StateVisitor};
use flott_operators::push::{Control, Output};

use flott_chunk::{Chunk, RowKind};

/// Turns changes into changes. Synchronous, and the only owner of its state. It is
/// [`Operator`] for chunks: see there for what each method is for.
pub trait TableOperator: Send {
    /// Takes a chunk, which has at least one row.
    fn process(&mut self, chunk: Chunk, out: &mut Emit<'_>) -> Result<()>;

    /// Takes back operator state.
    fn open(&mut self, cx: &mut OpenContext<'_>) -> Result<()> {
        let _ = cx;
        Ok(())
    }

    /// Shows each keyed state. All of them exist from the beginning.
    fn states(&mut self, visit: StateVisitor<'_>) -> Result<()> {
        let _ = visit;
        Ok(())
    }

    /// Keyed states have been restored: build what is derived from them.
    fn restored(&mut self) -> Result<()> {
        Ok(())
    }

    /// Event time has come this far. The watermark is passed on afterwards.
    fn on_watermark(&mut self, watermark: Timestamp, out: &mut Emit<'_>) -> Result<()> {
        let _ = (watermark, out);
        Ok(())
    }

    /// The watermark that is passed on for one that was received; `None` passes nothing on.
    fn outgoing_watermark(&mut self, watermark: Timestamp) -> Option<Timestamp> {
        Some(watermark)
    }

    /// The wall clock has come this far. Returns the time of its next wish to be called.
    fn on_time(&mut self, now: Timestamp, out: &mut Emit<'_>) -> Result<Timestamp> {
        let _ = (now, out);
        Ok(Timestamp::MAX)
    }

    /// There is no room for its rows at this time; called before [`on_time`](TableOperator::on_time).
    fn on_blocked(&mut self, now: Timestamp) {
        let _ = now;
    }

    /// All rows have been processed, and the highest watermark has been seen.
    fn on_end(&mut self, out: &mut Emit<'_>) -> Result<()> {
        let _ = out;
        Ok(())
    }

    /// The input pauses: let what is buffered be seen.
    fn on_flush(&mut self) -> Result<()> {
        Ok(())
    }

    /// Adds operator state to a checkpoint.
    fn snapshot(&mut self, barrier: &Barrier, snapshot: &mut OperatorSnapshot<'_>) -> Result<()> {
        let _ = (barrier, snapshot);
        Ok(())
    }

    /// The checkpoint is durable.
    fn commit(&mut self, checkpoint: CheckpointId) -> Result<()> {
        let _ = checkpoint;
        Ok(())
    }
}

/// Where an operator's chunks go.
pub struct Emit<'a> {
    out: &'a mut Output<Chunk>,
    batch: &'a mut Batch<Chunk>,
    split: u32,
}

impl<'a> Emit<'a> {
    /// Sends to `out`; `batch` is a buffer to be used again.
    pub fn new(out: &'a mut Output<Chunk>, batch: &'a mut Batch<Chunk>) -> Self {
        Self { out, batch, split: 0 }
    }

    /// The source split that the rows at hand come from; 0 when unknown or mixed. It is that of what is sent, too.
    pub fn split(&self) -> u32 {
        self.split
    }

    /// Says which split the rows are from that are sent next: those of before, if they were kept for a while.
    pub fn set_split(&mut self, split: u32) {
        self.split = split;
    }

    /// Sends a chunk on. An empty one is nothing.
    pub fn emit(&mut self, mut chunk: Chunk) -> Result<()> {
        if chunk.is_empty() {
            return Ok(());
        }
        chunk.input = 0;
        self.batch.rows.push(chunk);
        self.batch.split = self.split;
        let result = self.out.push(self.batch);
        self.batch.clear();
        result
    }

    /// Sends a chunk on, in parts if it has many rows.
    pub fn emit_large(&mut self, chunk: Chunk) -> Result<()> {
        if chunk.len() <= Chunk::ROWS_MAX {
            return self.emit(chunk);
        }
        let starts = (0..chunk.len()).step_by(Chunk::ROWS_MAX);
        starts.into_iter().try_for_each(|start| self.emit(chunk.slice(start, Chunk::ROWS_MAX.min(chunk.len() - start))))
    }

    /// Sends a control that begins here, such as a watermark: behind everything that was emitted.
    pub fn control(&mut self, control: &mut Control<'_>) -> Result<()> {
        self.out.control(control)
    }

    /// Sends these columns on as a chunk of `schema`.
    pub fn emit_columns(&mut self, schema: &SchemaRef, columns: Vec<ArrayRef>, kinds: Vec<RowKind>) -> Result<()> {
        let rows = kinds.len();
        self.emit(Chunk::of_columns(&Arc::clone(schema), columns, rows, kinds)?)
    }
}

/// Makes a [`TableOperator`] part of a chain.
pub struct OverChunks<O> {
    operator: O,
    batch: Batch<Chunk>,
}

impl<O: TableOperator> OverChunks<O> {
    /// Drives `operator`.
    pub fn new(operator: O) -> Self {
        Self { operator, batch: Batch::default() }
    }
}

impl TableOperator for Box<dyn TableOperator> {
    fn process(&mut self, chunk: Chunk, out: &mut Emit<'_>) -> Result<()> {
        (**self).process(chunk, out)
    }

    fn open(&mut self, cx: &mut OpenContext<'_>) -> Result<()> {
        (**self).open(cx)
    }

    fn states(&mut self, visit: StateVisitor<'_>) -> Result<()> {
        (**self).states(visit)
    }

    fn restored(&mut self) -> Result<()> {
        (**self).restored()
    }

    fn on_watermark(&mut self, watermark: Timestamp, out: &mut Emit<'_>) -> Result<()> {
        (**self).on_watermark(watermark, out)
    }

    fn outgoing_watermark(&mut self, watermark: Timestamp) -> Option<Timestamp> {
        (**self).outgoing_watermark(watermark)
    }

    fn on_time(&mut self, now: Timestamp, out: &mut Emit<'_>) -> Result<Timestamp> {
        (**self).on_time(now, out)
    }

    fn on_blocked(&mut self, now: Timestamp) {
        (**self).on_blocked(now);
    }

    fn on_end(&mut self, out: &mut Emit<'_>) -> Result<()> {
        (**self).on_end(out)
    }

    fn on_flush(&mut self) -> Result<()> {
        (**self).on_flush()
    }

    fn snapshot(&mut self, barrier: &Barrier, snapshot: &mut OperatorSnapshot<'_>) -> Result<()> {
        (**self).snapshot(barrier, snapshot)
    }

    fn commit(&mut self, checkpoint: CheckpointId) -> Result<()> {
        (**self).commit(checkpoint)
    }
}

impl<O: TableOperator> Operator<Chunk, Chunk> for OverChunks<O> {
    fn process(&mut self, batch: &mut Batch<Chunk>, out: &mut Output<Chunk>) -> Result<()> {
        let mut emit = Emit { split: batch.split, ..Emit::new(out, &mut self.batch) };
        for chunk in batch.rows.drain(..) {
            if !chunk.is_empty() {
                self.operator.process(chunk, &mut emit)?;
            }
        }
        Ok(())
    }

    fn open(&mut self, cx: &mut OpenContext<'_>) -> Result<()> {
        self.operator.open(cx)
    }

    fn states(&mut self, visit: StateVisitor<'_>) -> Result<()> {
        self.operator.states(visit)
    }

    fn restored(&mut self) -> Result<()> {
        self.operator.restored()
    }

    fn on_watermark(&mut self, watermark: Timestamp, out: &mut Output<Chunk>) -> Result<()> {
        self.operator.on_watermark(watermark, &mut Emit::new(out, &mut self.batch))
    }

    fn outgoing_watermark(&mut self, watermark: Timestamp) -> Option<Timestamp> {
        self.operator.outgoing_watermark(watermark)
    }

    fn on_time(&mut self, now: Timestamp, out: &mut Output<Chunk>) -> Result<Timestamp> {
        self.operator.on_time(now, &mut Emit::new(out, &mut self.batch))
    }

    fn on_blocked(&mut self, now: Timestamp) {
        self.operator.on_blocked(now);
    }

    fn on_end(&mut self, out: &mut Output<Chunk>) -> Result<()> {
        self.operator.on_end(&mut Emit::new(out, &mut self.batch))
    }

    fn on_flush(&mut self) -> Result<()> {
        self.operator.on_flush()
    }

    fn snapshot(&mut self, barrier: &Barrier, snapshot: &mut OperatorSnapshot<'_>) -> Result<()> {
        self.operator.snapshot(barrier, snapshot)
    }

    fn commit(&mut self, checkpoint: CheckpointId) -> Result<()> {
        self.operator.commit(checkpoint)
    }
}
