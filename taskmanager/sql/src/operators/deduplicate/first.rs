//! The first row of each key.

use arrow::datatypes::SchemaRef;
use flott_core::Result;
use flott_core::hash::stable_hash;
use flott_core::time::Timestamp;
use flott_network::Barrier;
use flott_operators::operator::{OpenContext, OperatorSnapshot, StateVisitor};
use flott_state::{KeyedTable, TimeIndex};
use flott_telemetry::TaskCounters;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

use crate::changes::{Changes, encode_rows};
use crate::operator::{Emit, TableOperator};
use crate::operators::retention::Usage;
use crate::program::OperatorContext;
use crate::row::{EncodedRows, KeyEncoder, RowBytes, RowDecoder, RowEncoder};
use crate::spec::DeduplicateSpec;
use crate::time::{EventClock, event_times};
use flott_chunk::{Chunk, RowKind};

/// Lets the first row of each key that comes through.
pub(super) struct FirstToCome {
    keys: KeyEncoder,
    table: KeyedTable<RowBytes, (), ()>,
    usage: Usage,
    key: RowBytes,
}

impl FirstToCome {
    /// Of the keys of `spec`.
    pub(super) fn new(spec: &DeduplicateSpec, cx: &OperatorContext<'_>) -> Result<Self> {
        let keys = KeyEncoder::new(&spec.partition, &cx.types(0))?;
        let usage = Usage::new(spec.ttl_ms, cx);
        Ok(Self { keys, table: cx.task.table("seen"), usage, key: RowBytes::default() })
    }
}

impl TableOperator for FirstToCome {
    fn process(&mut self, chunk: Chunk, out: &mut Emit<'_>) -> Result<()> {
        super::check(&chunk)?;
        let keys = self.keys.encode(chunk.batch.columns(), chunk.len(), chunk.hashes.as_deref())?;
        let mut first: Vec<u32> = Vec::new();
        for (row, key) in keys.rows.iter().enumerate() {
            self.key.set(key);
            // Asking changes nothing, so that keys that were seen are in no further checkpoint.
            if self.table.get(keys.hashes[row], &self.key, &()).is_none() {
                self.table.put(keys.hashes[row], &self.key, (), ());
                self.usage.touch(keys.hashes[row], &self.key);
                first.push(row as u32);
            }
        }
        match first.len() {
            0 => Ok(()),
            rows if rows == chunk.len() => out.emit(chunk),
            _ => out.emit(chunk.take(&first)?),
        }
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

/// The first row of a key so far.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Kept {
    time: Timestamp,
    /// None, once it has been put out.
    row: Option<RowBytes>,
}

/// Puts the first row of each key by event time out, when no earlier one can come. Of rows with the same time it is the one
/// that came first. A row behind the watermark is late and dropped, even if it is the first of its key, as in Flink.
pub(super) struct FirstByTime {
    time: usize,
    name: String,
    keys: KeyEncoder,
    rows: RowEncoder,
    table: KeyedTable<RowBytes, (), Kept>,
    /// When which key's row is final.
    due: TimeIndex,
    /// Of keys whose row has been put out: until then it stays.
    usage: Usage,
    clock: EventClock,
    counters: Arc<TaskCounters>,
    changes: Changes,
    output: SchemaRef,
    encoded: EncodedRows,
    key: RowBytes,
}

impl FirstByTime {
    /// By the event time in the column `time`.
    pub(super) fn new(spec: &DeduplicateSpec, time: usize, cx: &OperatorContext<'_>) -> Result<Self> {
        let types = cx.types(0);
        Ok(Self {
            time,
            name: cx.inputs[0].field(time).name().clone(),
            keys: KeyEncoder::new(&spec.partition, &types)?,
            rows: RowEncoder::new(&types)?,
            table: cx.task.table("first"),
            due: TimeIndex::default(),
            usage: Usage::new(spec.ttl_ms, cx),
            clock: EventClock::default(),
            counters: Arc::clone(&cx.task.counters),
            changes: Changes::new(RowDecoder::new(&types)?),
            output: SchemaRef::clone(cx.output),
            encoded: EncodedRows::default(),
            key: RowBytes::default(),
        })
    }

    /// Puts out what is final at `time`.
    fn fire(&mut self, time: Timestamp, hash: u64) {
        let is_due = |kept: &Kept| kept.time == time && kept.row.is_some();
        let found = self.table.find_by_hash(hash, &()).find(|(_, kept)| is_due(kept)).map(|(key, _)| key.clone());
        if let Some(key) = found
            && let Some(kept) = self.table.get_mut(hash, &key, &())
            && let Some(row) = kept.row.take()
        {
            self.changes.add_kept(row.as_slice(), RowKind::Insert);
            self.usage.touch(hash, &key);
        }
    }
}

impl TableOperator for FirstByTime {
    fn process(&mut self, chunk: Chunk, _: &mut Emit<'_>) -> Result<()> {
        super::check(&chunk)?;
        let times = event_times(chunk.column(self.time), &self.name)?;
        let keys = self.keys.encode(chunk.batch.columns(), chunk.len(), chunk.hashes.as_deref())?;
        let mut earlier: Vec<u32> = Vec::new();
        let mut late = 0;
        for row in 0..times.len() {
            if times.value(row) < self.clock.now {
                late += 1;
                continue;
            }
            self.key.set(keys.rows.get(row));
            let kept = self.table.get(keys.hashes[row], &self.key, &());
            if kept.is_none_or(|kept| kept.row.is_some() && times.value(row) < kept.time) {
                earlier.push(row as u32);
            }
        }
        self.counters.late_records_dropped.add(late);
        encode_rows(&self.rows, &chunk, &earlier, &mut self.encoded)?;
        for (place, row) in earlier.into_iter().enumerate() {
            let (time, hash) = (times.value(row as usize), keys.hashes[row as usize]);
            self.key.set(keys.rows.get(row as usize));
            let encoded = self.encoded.get(place);
            let mut is_new = false;
            let kept = self.table.get_or_insert_with(hash, &self.key, (), || {
                is_new = true;
                Kept { time, row: Some(RowBytes::new(encoded)) }
            });
            if is_new {
                self.due.insert(time, hash);
            } else if time < kept.time {
                // An earlier row of this chunk may have been before this one.
                self.due.remove(kept.time, hash);
                self.due.insert(time, hash);
                *kept = Kept { time, row: Some(RowBytes::new(encoded)) };
            }
        }
        Ok(())
    }

    fn open(&mut self, cx: &mut OpenContext<'_>) -> Result<()> {
        self.clock.restore(cx)
    }

    fn states(&mut self, visit: StateVisitor<'_>) -> Result<()> {
        self.usage.states(visit)?;
        self.table.set_index_bytes(self.due.bytes());
        visit(&mut self.table)
    }

    fn on_time(&mut self, now: Timestamp, _: &mut Emit<'_>) -> Result<Timestamp> {
        for (hash, key) in self.usage.expire(now) {
            self.table.remove(hash, &key, &());
        }
        Ok(self.usage.next())
    }

    fn restored(&mut self) -> Result<()> {
        self.usage.restored()?;
        let Self { table, due, .. } = self;
        due.clear();
        table.visit(|key, (), kept| {
            if kept.row.is_some() {
                due.insert(kept.time, stable_hash(key));
            }
            Ok(())
        })
    }

    fn on_watermark(&mut self, watermark: Timestamp, out: &mut Emit<'_>) -> Result<()> {
        self.clock.advance(watermark);
        while let Some((time, hashes)) = self.due.pop_until(watermark) {
            hashes.into_iter().for_each(|hash| self.fire(time, hash));
            if self.changes.len() >= Chunk::ROWS_MAX {
                self.changes.emit(None, &self.output, out)?;
            }
        }
        self.changes.emit(None, &self.output, out)
    }

    fn snapshot(&mut self, _: &Barrier, snapshot: &mut OperatorSnapshot<'_>) -> Result<()> {
        self.clock.snapshot(snapshot)
    }
}
