//! The last row of each key.

use arrow::datatypes::SchemaRef;
use flott_core::Result;
use flott_core::time::Timestamp;
use flott_operators::operator::StateVisitor;
use flott_state::KeyedTable;
use serde::{Deserialize, Serialize};

use crate::changes::Changes;
use crate::operator::{Emit, TableOperator};
use crate::operators::retention::Usage;
use crate::program::OperatorContext;
use crate::row::{EncodedRows, KeyEncoder, RowBytes, RowDecoder, RowEncoder};
use crate::spec::DeduplicateSpec;
use crate::time::event_times;
use crate::touched::Touched;
use flott_chunk::{Chunk, RowKind};

/// The last row of a key.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Kept {
    /// Its event time; 0 where that does not matter.
    time: Timestamp,
    row: RowBytes,
}

/// Keeps the last row of each key. Of rows with the same event time it is the one that came last.
pub(super) struct Last {
    /// The column with event time, and its name; without one, arrival counts.
    time: Option<(usize, String)>,
    with_update_before: bool,
    keys: KeyEncoder,
    rows: RowEncoder,
    table: KeyedTable<RowBytes, (), Kept>,
    /// The last row of each key of the chunk at hand, with its time.
    touched: Touched<(u32, Timestamp)>,
    usage: Usage,
    changes: Changes,
    output: SchemaRef,
}

impl Last {
    /// By the event time in the column `time`, or by arrival.
    pub(super) fn new(spec: &DeduplicateSpec, time: Option<usize>, cx: &OperatorContext<'_>) -> Result<Self> {
        let types = cx.types(0);
        Ok(Self {
            time: time.map(|column| (column, cx.inputs[0].field(column).name().clone())),
            with_update_before: spec.with_update_before,
            keys: KeyEncoder::new(&spec.partition, &types)?,
            rows: RowEncoder::new(&types)?,
            table: cx.task.table("last"),
            touched: Touched::default(),
            usage: Usage::new(spec.ttl_ms, cx),
            changes: Changes::new(RowDecoder::new(&types)?),
            output: SchemaRef::clone(cx.output),
        })
    }

    /// Notes the last row of each key of a chunk.
    fn meet(&mut self, chunk: &Chunk) -> Result<()> {
        let times = match &self.time {
            Some((column, name)) => Some(event_times(chunk.column(*column), name)?),
            None => None,
        };
        let keys = self.keys.encode(chunk.batch.columns(), chunk.len(), chunk.hashes.as_deref())?;
        for row in 0..chunk.len() {
            let time = times.as_ref().map_or(0, |times| times.value(row));
            let last = self.touched.note(keys.hashes[row], keys.rows.get(row), || (row as u32, time));
            if time >= last.1 {
                *last = (row as u32, time);
            }
        }
        Ok(())
    }
}

impl TableOperator for Last {
    fn process(&mut self, chunk: Chunk, out: &mut Emit<'_>) -> Result<()> {
        super::check(&chunk)?;
        self.meet(&chunk)?;
        let met: Vec<_> = self.touched.drain().collect();
        let last: Vec<u32> = met.iter().map(|met| met.note.0).collect();
        // Rows that are not the last of their key in this chunk are neither encoded nor looked up.
        let chosen = if last.len() == chunk.len() { chunk } else { chunk.take(&last)? };
        let mut rows = EncodedRows::default();
        self.rows.encode(chosen.batch.columns(), chosen.len(), &mut rows)?;
        for (place, met) in met.into_iter().enumerate() {
            let (row, time) = (rows.get(place), met.note.1);
            let mut is_new = false;
            let make = || {
                is_new = true;
                Kept { time, row: RowBytes::new(row) }
            };
            if let Some(before) = self.table.get(met.hash, &met.key, &())
                // Where keys go that are unused, whoever comes next has to hear of those that are not.
                && (before.time > time || (before.row.as_slice() == row && !self.usage.is_on()))
            {
                continue;
            }
            self.usage.touch(met.hash, &met.key);
            let kept = self.table.get_or_insert_with(met.hash, &met.key, (), make);
            if is_new {
                self.changes.add_row(place, RowKind::Insert);
                continue;
            }
            if self.with_update_before {
                self.changes.add_kept(kept.row.as_slice(), RowKind::UpdateBefore);
            }
            self.changes.add_row(place, RowKind::UpdateAfter);
            kept.time = time;
            kept.row.set(row);
        }
        self.changes.emit(Some(&chosen), &self.output, out)
    }

    fn states(&mut self, visit: StateVisitor<'_>) -> Result<()> {
        self.usage.states(visit)?;
        visit(&mut self.table)
    }

    fn restored(&mut self) -> Result<()> {
        self.usage.restored()
    }

    fn on_time(&mut self, now: Timestamp, _: &mut Emit<'_>) -> Result<Timestamp> {
        for (hash, key) in self.usage.expire(now) {
            self.table.remove(hash, &key, &());
        }
        Ok(self.usage.next())
    }
}
