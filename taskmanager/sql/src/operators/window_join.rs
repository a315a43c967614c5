//! `WindowJoin`: pairs of rows that are in the same window, put out as it ends.
//!
//! Each side keeps its rows by key and window, as one piece of memory each, and reads nothing of them until the window
//! ends. Then the rows of many keys are decoded together, once each, and pairs are made of their positions.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray, RecordBatch, UInt32Array, new_null_array};
use arrow::compute::{filter_record_batch, take};
use arrow::datatypes::{DataType, SchemaRef};
use flott_chunk::{Chunk, batch_of};
use flott_core::time::Timestamp;
use flott_core::{Error, Result};
use flott_network::Barrier;
use flott_operators::operator::{OpenContext, OperatorSnapshot, StateVisitor};
use flott_state::{KeyedTable, TimeIndex};
use flott_telemetry::TaskCounters;

use crate::expr::Compiled;
use crate::local_time::LocalTime;
use crate::operator::{Emit, TableOperator};
use crate::program::OperatorContext;
use crate::row::{EncodedRows, KeyEncoder, RowBlock, RowBytes, RowDecoder, RowEncoder, hash_of};
use crate::spec::{JoinKind, WindowJoinSpec};
use crate::time::{EventClock, event_times};

/// One side.
struct Side {
    /// By key, and by the end of the window.
    table: KeyedTable<RowBytes, Timestamp, RowBlock>,
    keys: KeyEncoder,
    key_columns: Vec<usize>,
    rows: RowEncoder,
    decoder: RowDecoder,
    types: Vec<DataType>,
    window_end: usize,
    /// What of windows that end was taken out of state: the rows of one key after those of another.
    taken: EncodedRows,
}

impl Side {
    fn new(input: usize, keys: &[usize], window_end: usize, cx: &OperatorContext<'_>) -> Result<Self> {
        let types = cx.types(input);
        Ok(Self {
            table: cx.task.table(["left", "right"][input]),
            keys: KeyEncoder::new(keys, &types)?,
            key_columns: keys.to_vec(),
            rows: RowEncoder::new(&types)?,
            decoder: RowDecoder::new(&types)?,
            types,
            window_end,
            taken: EncodedRows::default(),
        })
    }
}

/// See the module's documentation.
pub struct WindowJoin {
    kind: JoinKind,
    sides: [Side; 2],
    condition: Option<Compiled>,
    joined: SchemaRef,
    output: SchemaRef,
    /// How far the local time of windows has come.
    clock: EventClock,
    local: LocalTime,
    /// The hashes of keys by the last millisecond of windows that they have rows in, on either side.
    due: TimeIndex,
    counters: Arc<TaskCounters>,
    /// For each key in `taken`, where its rows end on both sides.
    ends: Vec<[usize; 2]>,
    encoded: EncodedRows,
    key: RowBytes,
}

impl WindowJoin {
    /// Makes both sides, empty.
    ///
    /// # Errors
    /// A column has a type that cannot be kept.
    pub fn new(spec: &WindowJoinSpec, cx: &OperatorContext<'_>) -> Result<Self> {
        let joined = cx.joined();
        Ok(Self {
            kind: spec.kind,
            sides: [
                Side::new(0, &spec.left_keys, spec.left_window_end, cx)?,
                Side::new(1, &spec.right_keys, spec.right_window_end, cx)?,
            ],
            condition: spec.condition.as_ref().map(|expr| expr.compile(&joined, cx.functions)).transpose()?,
            joined,
            output: SchemaRef::clone(cx.output),
            clock: EventClock::default(),
            local: LocalTime::new(spec.zone.as_deref())?,
            due: TimeIndex::default(),
            counters: Arc::clone(&cx.task.counters),
            ends: Vec::new(),
            encoded: EncodedRows::default(),
            key: RowBytes::default(),
        })
    }

    /// Whether rows of a side are put out when they have no partner.
    fn is_outer(&self, side: usize) -> bool {
        match self.kind {
            JoinKind::Full => true,
            JoinKind::Left | JoinKind::Anti => side == 0,
            JoinKind::Right => side == 1,
            JoinKind::Inner | JoinKind::Semi => false,
        }
    }

    /// Joins what was taken out of state.
    fn join(&mut self, out: &mut Emit<'_>) -> Result<()> {
        let [left, right] = &self.sides;
        let columns = [left.decoder.decode(left.taken.iter())?, right.decoder.decode(right.taken.iter())?];
        let mut joining = Joining {
            has_partner: [vec![false; left.taken.len()], vec![false; right.taken.len()]],
            columns,
            pairs: Default::default(),
            join: self,
        };
        let mut from = [0, 0];
        for index in 0..joining.join.ends.len() {
            let end = joining.join.ends[index];
            if from[0] < end[0] && from[1] < end[1] {
                joining.add(from, end, out)?;
            }
            from = end;
        }
        joining.flush(out)?;
        joining.put_out_alone(out)?;
        self.ends.clear();
        self.sides.iter_mut().for_each(|side| side.taken.clear());
        Ok(())
    }

    /// Sends columns on, of which there may be more than are put out.
    fn send(&self, mut columns: Vec<ArrayRef>, rows: usize, out: &mut Emit<'_>) -> Result<()> {
        columns.truncate(self.output.fields().len());
        let chunk = Chunk::inserts(batch_of(&self.output, columns, rows)?);
        let mut start = 0;
        while start < rows {
            let length = Chunk::ROWS_MAX.min(rows - start);
            out.emit(chunk.slice(start, length))?;
            start += length;
        }
        Ok(())
    }
}

/// A join of decoded rows.
struct Joining<'a> {
    join: &'a WindowJoin,
    columns: [Vec<ArrayRef>; 2],
    /// Pairs to be judged, by the positions of their rows.
    pairs: [Vec<u32>; 2],
    has_partner: [Vec<bool>; 2],
}

impl Joining<'_> {
    /// All rows of a key on one side with all on the other.
    fn add(&mut self, from: [usize; 2], end: [usize; 2], out: &mut Emit<'_>) -> Result<()> {
        if self.join.condition.is_none() {
            for side in [0, 1] {
                self.has_partner[side][from[side]..end[side]].fill(true);
            }
            if matches!(self.join.kind, JoinKind::Semi | JoinKind::Anti) {
                return Ok(());
            }
        }
        for left in from[0]..end[0] {
            for right in from[1]..end[1] {
                self.pairs[0].push(left as u32);
                self.pairs[1].push(right as u32);
                if self.pairs[0].len() >= Chunk::ROWS_MAX {
                    self.flush(out)?;
                }
            }
        }
        Ok(())
    }

    fn gather(&self, side: usize, rows: &[u32]) -> Result<Vec<ArrayRef>> {
        let rows = UInt32Array::from(rows.to_vec());
        let columns = self.columns[side].iter().map(|column| take(column, &rows, None));
        columns.collect::<std::result::Result<_, _>>().map_err(|error| failed(&error))
    }

    /// Judges the pairs, and puts out those that fulfil the condition.
    fn flush(&mut self, out: &mut Emit<'_>) -> Result<()> {
        let rows = self.pairs[0].len();
        if rows == 0 {
            return Ok(());
        }
        let columns = [self.gather(0, &self.pairs[0])?, self.gather(1, &self.pairs[1])?].concat();
        let mut batch = batch_of(&self.join.joined, columns, rows)?;
        if let Some(condition) = &self.join.condition {
            let mask = condition.mask(&batch)?;
            for side in [0, 1] {
                for (pair, row) in self.pairs[side].iter().enumerate() {
                    self.has_partner[side][*row as usize] |= mask.value(pair);
                }
            }
            batch = filter(&batch, &mask)?;
        }
        self.pairs.iter_mut().for_each(Vec::clear);
        match self.join.kind {
            JoinKind::Semi | JoinKind::Anti => Ok(()),
            _ => self.join.send(batch.columns().to_vec(), batch.num_rows(), out),
        }
    }

    /// Rows that are put out by themselves.
    fn put_out_alone(&self, out: &mut Emit<'_>) -> Result<()> {
        for side in [0, 1] {
            let wanted = match self.join.kind {
                JoinKind::Semi if side == 0 => true,
                _ if self.join.is_outer(side) => false,
                _ => continue,
            };
            let has_partner = self.has_partner[side].iter().enumerate();
            let rows: Vec<u32> = has_partner.filter(|(_, has)| **has == wanted).map(|(row, _)| row as u32).collect();
            if rows.is_empty() {
                continue;
            }
            let none = self.join.sides[1 - side].types.iter().map(|data_type| new_null_array(data_type, rows.len()));
            let (own, none) = (self.gather(side, &rows)?, none.collect());
            let columns = if side == 0 { [own, none] } else { [none, own] }.concat();
            self.join.send(columns, rows.len(), out)?;
        }
        Ok(())
    }
}

fn filter(batch: &RecordBatch, mask: &BooleanArray) -> Result<RecordBatch> {
    filter_record_batch(batch, mask).map_err(|error| failed(&error))
}

fn failed(error: &arrow::error::ArrowError) -> Error {
    Error::system(format!("joining rows: {error}"))
}

impl TableOperator for WindowJoin {
    fn process(&mut self, chunk: Chunk, out: &mut Emit<'_>) -> Result<()> {
        let number = usize::from(chunk.input.min(1));
        let side = &mut self.sides[number];
        let columns = chunk.batch.columns();
        let ends = event_times(chunk.column(side.window_end), "window_end")?;
        side.rows.encode(columns, chunk.len(), &mut self.encoded)?;
        let keys = side.keys.encode(columns, chunk.len(), chunk.hashes.as_deref())?;
        let key_columns: Vec<&ArrayRef> = side.key_columns.iter().map(|column| chunk.column(*column)).collect();
        let (mut late, mut alone) = (0, Vec::new());
        for row in 0..chunk.len() {
            let end = ends.value(row);
            if end.saturating_sub(1) <= self.clock.now {
                late += 1;
                continue;
            }
            if key_columns.iter().any(|column| column.is_null(row)) {
                // Nulls are no partners.
                alone.push(row as u32);
                continue;
            }
            let hash = keys.hashes[row];
            self.key.set(keys.rows.get(row));
            let mut is_new = false;
            let block = side.table.get_or_insert_with(hash, &self.key, end, || {
                is_new = true;
                RowBlock::default()
            });
            block.push(self.encoded.get(row));
            if is_new {
                self.due.insert(end.saturating_sub(1), hash);
            }
        }
        if late > 0 {
            self.counters.late_records_dropped.add(late);
        }
        if alone.is_empty() || !self.is_outer(number) {
            return Ok(());
        }
        let own = chunk.take(&alone)?.batch.columns().to_vec();
        let none =
            self.sides[1 - number].types.iter().map(|data_type| new_null_array(data_type, alone.len())).collect();
        let columns = if number == 0 { [own, none] } else { [none, own] }.concat();
        self.send(columns, alone.len(), out)
    }

    fn open(&mut self, cx: &mut OpenContext<'_>) -> Result<()> {
        self.clock.restore(cx)
    }

    fn states(&mut self, visit: StateVisitor<'_>) -> Result<()> {
        self.sides[0].table.set_index_bytes(self.due.bytes());
        self.sides.iter_mut().try_for_each(|side| visit(&mut side.table))
    }

    fn restored(&mut self) -> Result<()> {
        for side in &self.sides {
            side.table.visit(|key, end, _| {
                self.due.insert(end.saturating_sub(1), hash_of(key.as_slice()));
                Ok(())
            })?;
        }
        Ok(())
    }

    fn on_watermark(&mut self, watermark: Timestamp, out: &mut Emit<'_>) -> Result<()> {
        self.clock.advance(self.local.passed(watermark));
        while let Some((last, hashes)) = self.due.pop_until(self.clock.now) {
            let end = last.saturating_add(1);
            for hash in hashes {
                // A key of both sides is there twice, and gone the second time.
                while let Some((key, block)) = self.sides[0].table.take_by_hash(hash, &end) {
                    block.iter().for_each(|row| self.sides[0].taken.push(row));
                    if let Some(block) = self.sides[1].table.remove(hash, &key, &end) {
                        block.iter().for_each(|row| self.sides[1].taken.push(row));
                    }
                    self.ends.push([self.sides[0].taken.len(), self.sides[1].taken.len()]);
                }
                while let Some((_, block)) = self.sides[1].table.take_by_hash(hash, &end) {
                    block.iter().for_each(|row| self.sides[1].taken.push(row));
                    self.ends.push([self.sides[0].taken.len(), self.sides[1].taken.len()]);
                }
                if self.sides.iter().map(|side| side.taken.len()).sum::<usize>() >= Chunk::ROWS_MAX {
                    self.join(out)?;
                }
            }
        }
        if self.ends.is_empty() { Ok(()) } else { self.join(out) }
    }

    fn snapshot(&mut self, _: &Barrier, snapshot: &mut OperatorSnapshot<'_>) -> Result<()> {
        self.clock.snapshot(snapshot)
    }
}

#[cfg(test)]
mod tests;
