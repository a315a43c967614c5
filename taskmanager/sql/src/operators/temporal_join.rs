//! `TemporalJoin`: each left row with the version of its key on the right that was valid at its time.
//!
//! By event time, left rows wait for the watermark, and versions are kept in the order of their time. A key is looked at
//! when the watermark reaches its earliest waiting row or new version; then all rows that are due leave in the order in
//! which they came, and of the versions up to the watermark only the last stays.
//!
//! As in Flink, rows that are late still meet the versions that are left, and a version that begins when another one does
//! replaces it. By the wall clock there is one version a key, and nobody waits.
//!
//! With a time to live, a key goes whose rows have not come for so long on either side, unless left rows wait.

use arrow::array::{Array, ArrayRef, BooleanArray, UInt32Array};
use arrow::compute::take;
use arrow::datatypes::SchemaRef;
use flott_chunk::{Chunk, RowKind, batch_of};
use flott_core::time::{Timestamp, WATERMARK_MIN};
use flott_core::{Error, Result};
use flott_network::Barrier;
use flott_operators::operator::{OpenContext, OperatorSnapshot, StateVisitor};
use flott_state::{KeyedTable, TimeIndex};
use serde::{Deserialize, Serialize};

use crate::expr::Compiled;
use crate::operator::{Emit, TableOperator};
use crate::operators::retention::Usage;
use crate::program::OperatorContext;
use crate::row::{EncodedRows, KeyEncoder, RowBytes, RowDecoder, RowEncoder, hash_of};
use crate::spec::{TemporalJoinSpec, TimeSpec};
use crate::time::{EventClock, event_times, millis};

/// No timer.
const NEVER: Timestamp = Timestamp::MAX;

/// A left row that waits for the watermark.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Waiting {
    time: Timestamp,
    /// The number of its [`RowKind`].
    kind: u8,
    row: RowBytes,
}

/// What a key is from some time on.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Version {
    from: Timestamp,
    /// Nothing, if it was deleted.
    row: Option<RowBytes>,
}

/// All of a key.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Key {
    /// As they came.
    waiting: Vec<Waiting>,
    /// By their time, each once.
    versions: Vec<Version>,
    /// When to look at it.
    timer: Timestamp,
}

impl Key {
    fn new() -> Self {
        Self { waiting: Vec::new(), versions: Vec::new(), timer: NEVER }
    }

    /// What was valid at a time.
    fn at(&self, time: Timestamp) -> Option<&RowBytes> {
        let behind = self.versions.partition_point(|version| version.from <= time);
        self.versions[..behind].last()?.row.as_ref()
    }

    fn put(&mut self, from: Timestamp, row: Option<RowBytes>) {
        let place = self.versions.partition_point(|version| version.from < from);
        match self.versions.get_mut(place) {
            Some(version) if version.from == from => version.row = row,
            _ => self.versions.insert(place, Version { from, row }),
        }
    }

    /// Forgets versions that rows after `time` cannot see.
    fn forget(&mut self, time: Timestamp) {
        let behind = self.versions.partition_point(|version| version.from <= time);
        let Some(last) = behind.checked_sub(1) else { return };
        // That there is none any more need not be known when there is none before.
        let is_gone = self.versions[last].row.is_none();
        self.versions.drain(..last + usize::from(is_gone));
    }

    fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.versions.is_empty()
    }
}

/// One side.
struct Side {
    keys: KeyEncoder,
    key_columns: Vec<usize>,
    rows: RowEncoder,
    decoder: RowDecoder,
    /// The column with event time.
    time: Option<usize>,
}

impl Side {
    fn new(input: usize, keys: &[usize], time: &TimeSpec, cx: &OperatorContext<'_>) -> Result<Self> {
        let types = cx.types(input);
        let time = match time {
            TimeSpec::Event(column) => Some(*column),
            TimeSpec::Processing => None,
            TimeSpec::Window { .. } => {
                return Err(Error::system("a temporal join was planned with the time of windows"));
            }
        };
        Ok(Self {
            keys: KeyEncoder::new(keys, &types)?,
            key_columns: keys.to_vec(),
            rows: RowEncoder::new(&types)?,
            decoder: RowDecoder::new(&types)?,
            time,
        })
    }
}

/// Left rows, and what was found for each.
#[derive(Default)]
struct Found {
    left: EncodedRows,
    right: EncodedRows,
    has_version: Vec<bool>,
    kinds: Vec<RowKind>,
}

impl Found {
    fn add(&mut self, left: &[u8], version: Option<&RowBytes>, null_row: &[u8], kind: RowKind) {
        self.left.push(left);
        self.right.push(version.map_or(null_row, RowBytes::as_slice));
        self.has_version.push(version.is_some());
        self.kinds.push(kind);
    }

    fn clear(&mut self) {
        self.left.clear();
        self.right.clear();
        self.has_version.clear();
        self.kinds.clear();
    }
}

/// See the module's documentation.
pub struct TemporalJoin {
    is_left_outer: bool,
    is_event_time: bool,
    sides: [Side; 2],
    /// The right side with all columns null.
    null_row: Vec<u8>,
    condition: Option<Compiled>,
    joined: SchemaRef,
    output: SchemaRef,
    clock: EventClock,
    table: KeyedTable<RowBytes, (), Key>,
    /// The hashes of keys by their timers. A timer that was replaced by an earlier one stays until it is due.
    timers: TimeIndex,
    usage: Usage,
    found: Found,
    encoded: EncodedRows,
    key: RowBytes,
}

impl TemporalJoin {
    /// Makes it, without rows.
    ///
    /// # Errors
    /// A column has a type that cannot be kept.
    pub fn new(spec: &TemporalJoinSpec, cx: &OperatorContext<'_>) -> Result<Self> {
        let joined = cx.joined();
        let sides = [
            Side::new(0, &spec.left_keys, &spec.left_time, cx)?,
            Side::new(1, &spec.right_keys, &spec.right_time, cx)?,
        ];
        Ok(Self {
            is_left_outer: spec.is_left_outer,
            is_event_time: sides.iter().all(|side| side.time.is_some()),
            sides,
            null_row: vec![0; cx.inputs[1].fields().len()],
            condition: spec.condition.as_ref().map(|expr| expr.compile(&joined, cx.functions)).transpose()?,
            joined,
            output: SchemaRef::clone(cx.output),
            clock: EventClock::default(),
            table: cx.task.table("versions"),
            timers: TimeIndex::default(),
            usage: Usage::new(spec.ttl_ms, cx),
            found: Found::default(),
            encoded: EncodedRows::default(),
            key: RowBytes::default(),
        })
    }

    fn take_left(&mut self, chunk: &Chunk, out: &mut Emit<'_>) -> Result<()> {
        let side = &self.sides[0];
        // A row without time has no version.
        let times = side.time.map(|column| millis(chunk.column(column))).transpose()?;
        for row in 0..chunk.len() {
            let keys = self.sides[0].keys.last();
            let (hash, kind) = (keys.hashes[row], chunk.kind(row));
            self.key.set(keys.rows.get(row));
            let Some(times) = &times else {
                let version = self.table.get(hash, &self.key, &()).and_then(|key| key.at(0));
                if version.is_some() {
                    self.usage.touch(hash, &self.key);
                }
                self.found.add(self.encoded.get(row), version, &self.null_row, kind);
                continue;
            };
            let time = if times.is_valid(row) { times.value(row) } else { WATERMARK_MIN };
            let key = self.table.get_or_insert_with(hash, &self.key, (), Key::new);
            key.waiting.push(Waiting { time, kind: kind as u8, row: RowBytes::new(self.encoded.get(row)) });
            if key.timer > time {
                key.timer = time;
                self.timers.insert(time, hash);
            }
            self.usage.touch(hash, &self.key);
        }
        self.flush(out)
    }

    fn take_right(&mut self, chunk: &Chunk) -> Result<()> {
        let side = &self.sides[1];
        let schema = chunk.batch.schema_ref();
        let times = side.time.map(|column| event_times(chunk.column(column), schema.field(column).name()));
        let times = times.transpose()?;
        let key_columns: Vec<&ArrayRef> = side.key_columns.iter().map(|column| chunk.column(*column)).collect();
        for row in 0..chunk.len() {
            let kind = chunk.kind(row);
            // The version after an update ends the one before it. And nothing equals a null.
            if kind == RowKind::UpdateBefore || key_columns.iter().any(|column| column.is_null(row)) {
                continue;
            }
            let keys = self.sides[1].keys.last();
            let hash = keys.hashes[row];
            self.key.set(keys.rows.get(row));
            self.usage.touch(hash, &self.key);
            let version = kind.is_addition().then(|| RowBytes::new(self.encoded.get(row)));
            match &times {
                Some(times) => {
                    let from = times.value(row);
                    let key = self.table.get_or_insert_with(hash, &self.key, (), Key::new);
                    key.put(from, version);
                    if key.timer > from {
                        key.timer = from;
                        self.timers.insert(from, hash);
                    }
                }
                None if version.is_none() => {
                    self.table.remove(hash, &self.key, &());
                }
                None => self.table.get_or_insert_with(hash, &self.key, (), Key::new).put(0, version),
            }
        }
        Ok(())
    }

    /// Looks at the keys with this hash whose timer is due.
    fn fire(&mut self, hash: u64, timer: Timestamp) {
        let now = self.clock.now;
        let due: Vec<RowBytes> = (self.table.find_by_hash(hash, &()))
            .filter(|(_, key)| key.timer == timer)
            .map(|(key, _)| key.clone())
            .collect();
        for name in due {
            let Some(key) = self.table.get_mut(hash, &name, &()) else { continue };
            let waiting = std::mem::take(&mut key.waiting);
            for left in waiting {
                if left.time > now {
                    key.waiting.push(left);
                    continue;
                }
                let kind = RowKind::from_number(left.kind).unwrap_or(RowKind::Insert);
                self.found.add(left.row.as_slice(), key.at(left.time), &self.null_row, kind);
            }
            key.forget(now);
            key.timer = key.waiting.iter().map(|left| left.time).min().unwrap_or(NEVER);
            if key.timer != NEVER {
                self.timers.insert(key.timer, hash);
            } else if key.is_empty() {
                self.table.remove(hash, &name, &());
            }
        }
    }

    /// Puts out what was found.
    fn flush(&mut self, out: &mut Emit<'_>) -> Result<()> {
        let rows = self.found.kinds.len();
        if rows == 0 {
            return Ok(());
        }
        let left = self.sides[0].decoder.decode(self.found.left.iter())?;
        let right = self.sides[1].decoder.decode(self.found.right.iter())?;
        let mut columns: Vec<ArrayRef> = left.iter().chain(&right).cloned().collect();
        let mut kinds = std::mem::take(&mut self.found.kinds);
        let mut matches = BooleanArray::from(std::mem::take(&mut self.found.has_version));
        let mut is_nulled = false;
        if let Some(condition) = &self.condition
            && matches.true_count() > 0
        {
            let fulfilled = condition.mask(&batch_of(&self.joined, columns.clone(), rows)?)?;
            let both = arrow::compute::and(&matches, &fulfilled).map_err(|error| failed(&error))?;
            is_nulled = both.true_count() < matches.true_count();
            matches = both;
        }
        if !self.is_left_outer && matches.true_count() < rows {
            let chosen: Vec<u32> = (0..rows).filter(|row| matches.value(*row)).map(|row| row as u32).collect();
            kinds = chosen.iter().map(|row| kinds[*row as usize]).collect();
            let chosen = UInt32Array::from(chosen);
            for column in &mut columns {
                *column = take(column, &chosen, None).map_err(|error| failed(&error))?;
            }
        } else if is_nulled {
            // The version does not fulfil the condition: the left row has none.
            let chosen = UInt32Array::from_iter((0..rows).map(|row| matches.value(row).then_some(row as u32)));
            for column in &mut columns[left.len()..] {
                *column = take(column, &chosen, None).map_err(|error| failed(&error))?;
            }
        }
        self.found.clear();
        out.emit_columns(&self.output, columns, kinds)
    }
}

fn failed(error: &arrow::error::ArrowError) -> Error {
    Error::system(format!("joining rows: {error}"))
}

impl TableOperator for TemporalJoin {
    fn process(&mut self, chunk: Chunk, out: &mut Emit<'_>) -> Result<()> {
        let side = &mut self.sides[usize::from(chunk.input.min(1))];
        side.rows.encode(chunk.batch.columns(), chunk.len(), &mut self.encoded)?;
        side.keys.encode(chunk.batch.columns(), chunk.len(), chunk.hashes.as_deref())?;
        if chunk.input == 0 { self.take_left(&chunk, out) } else { self.take_right(&chunk) }
    }

    fn open(&mut self, cx: &mut OpenContext<'_>) -> Result<()> {
        self.clock.restore(cx)
    }

    fn states(&mut self, visit: StateVisitor<'_>) -> Result<()> {
        self.usage.states(visit)?;
        self.table.set_index_bytes(self.timers.bytes());
        visit(&mut self.table)
    }

    fn on_time(&mut self, now: Timestamp, _: &mut Emit<'_>) -> Result<Timestamp> {
        for (hash, name) in self.usage.expire(now) {
            match self.table.get(hash, &name, &()) {
                Some(key) if !key.waiting.is_empty() => self.usage.touch(hash, &name),
                _ => drop(self.table.remove(hash, &name, &())),
            }
        }
        Ok(self.usage.next())
    }

    fn restored(&mut self) -> Result<()> {
        self.usage.restored()?;
        let Self { table, timers, .. } = self;
        table.visit(|name, (), key| {
            if key.timer != NEVER {
                timers.insert(key.timer, hash_of(name.as_slice()));
            }
            Ok(())
        })
    }

    fn on_watermark(&mut self, watermark: Timestamp, out: &mut Emit<'_>) -> Result<()> {
        self.clock.advance(watermark);
        while let Some((timer, hashes)) = self.timers.pop_until(self.clock.now) {
            for hash in hashes {
                self.fire(hash, timer);
                if self.found.kinds.len() >= Chunk::ROWS_MAX {
                    self.flush(out)?;
                }
            }
        }
        self.flush(out)
    }

    fn snapshot(&mut self, _: &Barrier, snapshot: &mut OperatorSnapshot<'_>) -> Result<()> {
        if self.is_event_time { self.clock.snapshot(snapshot) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests;
