//! `IntervalJoin`: pairs of rows that are near each other in time.
//!
//! Each side keeps its rows by key, in the order of their time. A row that comes meets those of the other side whose time
//! is near enough; the condition is evaluated once for all pairs of a chunk. A row leaves when the watermark says that no
//! partner can come any more, and only then is it put out without one.
//!
//! As in Flink, each key has one timer a side: for the first row that was kept when it had none. So a row that came out of
//! order may stay a little longer, and a late row meets those that have not left yet. That, and when a row without partner
//! comes, is Flink's to the row: `expired` is what Flink calls the expiration time, for all keys together.

use arrow::array::{Array, ArrayRef, UInt32Array};
use arrow::compute::take_record_batch;
use arrow::datatypes::{DataType, SchemaRef};
use flott_checkpoint::Redistribution;
use flott_chunk::{Chunk, batch_of};
use flott_core::time::{Timestamp, WATERMARK_MAX, WATERMARK_MIN};
use flott_core::{Error, Result};
use flott_network::Barrier;
use flott_operators::operator::{OpenContext, OperatorSnapshot, StateVisitor};
use flott_state::{KeyedTable, TimeIndex};
use serde::{Deserialize, Serialize};

use super::pairs::Pairs;
use crate::expr::Compiled;
use crate::operator::{Emit, TableOperator};
use crate::program::OperatorContext;
use crate::row::{EncodedRows, KeyEncoder, RowBytes, RowDecoder, RowEncoder, hash_of};
use crate::spec::{IntervalJoinSpec, JoinKind, TimeSpec};
use crate::time::{EventClock, millis};

/// The name of the operator state with what has expired on each side.
const EXPIRED: &str = "expired";

/// No timer.
const NEVER: Timestamp = Timestamp::MAX;

/// A row of one side.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Kept {
    time: Timestamp,
    row: RowBytes,
    has_partner: bool,
}

/// The rows of one side and key.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Waiting {
    /// By time; equal ones in the order in which they came.
    rows: Vec<Kept>,
    /// How many at the front have left. It is 0 except while a chunk is being processed.
    gone: u32,
    /// When to look for rows that have expired.
    timer: Timestamp,
}

impl Waiting {
    fn new() -> Self {
        Self { rows: Vec::new(), gone: 0, timer: NEVER }
    }

    /// How many rows at the front are not after `time`.
    fn until(&self, time: Timestamp) -> usize {
        // Mostly none or few are.
        self.rows
            .iter()
            .take(4)
            .position(|kept| kept.time > time)
            .unwrap_or_else(|| self.rows.partition_point(|kept| kept.time <= time))
    }
}

/// One side.
struct Side {
    table: KeyedTable<RowBytes, (), Waiting>,
    /// The hashes of keys by their timers.
    timers: TimeIndex,
    keys: KeyEncoder,
    key_columns: Vec<usize>,
    rows: RowEncoder,
    decoder: RowDecoder,
    types: Vec<DataType>,
    /// All columns null.
    null_row: Vec<u8>,
    /// How much later than a row the last partner may be.
    wait_ms: i64,
    /// Rows up to this time had expired when somebody looked last.
    expired: Timestamp,
    /// The column with event time.
    time: Option<usize>,
}

impl Side {
    fn new(input: usize, keys: &[usize], time: &TimeSpec, wait_ms: i64, cx: &OperatorContext<'_>) -> Result<Self> {
        let types = cx.types(input);
        let time = match time {
            TimeSpec::Event(column) => Some(*column),
            TimeSpec::Processing => None,
            TimeSpec::Window { .. } => {
                return Err(Error::system("an interval join was planned with the time of windows"));
            }
        };
        Ok(Self {
            table: cx.task.table(["left", "right"][input]),
            timers: TimeIndex::default(),
            keys: KeyEncoder::new(keys, &types)?,
            key_columns: keys.to_vec(),
            rows: RowEncoder::new(&types)?,
            decoder: RowDecoder::new(&types)?,
            null_row: vec![0; types.len()],
            types,
            wait_ms,
            expired: WATERMARK_MIN,
            time,
        })
    }

    /// Up to which time rows of this side have expired.
    fn expiry(&self, now: Timestamp) -> Timestamp {
        match now {
            WATERMARK_MAX => WATERMARK_MAX,
            WATERMARK_MIN => WATERMARK_MIN,
            now => now.saturating_sub(self.wait_ms).saturating_sub(1),
        }
    }
}

/// When to look for whether a row of this time, which waits so long, has expired.
fn timer_of(time: Timestamp, wait_ms: i64) -> Timestamp {
    time.saturating_add(wait_ms).saturating_add(1).min(NEVER - 1)
}

/// What a row of the chunk at hand may become: ends of ranges of pairs, one after the other.
#[derive(Clone, Copy)]
struct Range {
    /// Of the pairs with rows of the other side.
    candidates: usize,
    /// Of the rows of the other side that leave.
    leaving: usize,
    /// Of itself without a partner, if that may be put out now.
    alone: usize,
}

/// See the module's documentation.
pub struct IntervalJoin {
    kind: JoinKind,
    sides: [Side; 2],
    condition: Option<Compiled>,
    joined: SchemaRef,
    output: SchemaRef,
    /// Whether no pair can be near enough.
    is_empty: bool,
    is_event_time: bool,
    clock: EventClock,
    /// How much later than watermarks that come others leave: what is put out may be older.
    delay_ms: i64,
    pairs: Pairs,
    /// For each pair, where its kept row is among those of its key.
    places: Vec<u32>,
    ranges: Vec<Range>,
    /// The rows at hand for which some of the other side have left.
    cleaned: Vec<usize>,
    encoded: EncodedRows,
    key: RowBytes,
}

impl IntervalJoin {
    /// Makes both sides, empty.
    ///
    /// # Errors
    /// A column has a type that cannot be kept.
    pub fn new(spec: &IntervalJoinSpec, cx: &OperatorContext<'_>) -> Result<Self> {
        let joined = cx.joined();
        let (left_wait, right_wait) = (spec.lower_ms.saturating_neg(), spec.upper_ms);
        let sides = [
            Side::new(0, &spec.left_keys, &spec.left_time, left_wait, cx)?,
            Side::new(1, &spec.right_keys, &spec.right_time, right_wait, cx)?,
        ];
        Ok(Self {
            kind: spec.kind,
            condition: spec.condition.as_ref().map(|expr| expr.compile(&joined, cx.functions)).transpose()?,
            joined,
            output: SchemaRef::clone(cx.output),
            is_empty: spec.lower_ms > spec.upper_ms,
            is_event_time: sides.iter().all(|side| side.time.is_some()),
            clock: EventClock::default(),
            delay_ms: left_wait.max(right_wait).max(0),
            sides,
            pairs: Pairs::default(),
            places: Vec::new(),
            ranges: Vec::new(),
            cleaned: Vec::new(),
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

    /// Whether only left rows are put out.
    fn is_half(&self) -> bool {
        matches!(self.kind, JoinKind::Semi | JoinKind::Anti)
    }

    /// Collects what rows from `start` on may become, until it is enough for once; returns up to where.
    fn gather(&mut self, side: usize, chunk: &Chunk, start: usize, times: &[Option<Timestamp>]) -> usize {
        let now = self.clock.now;
        let (is_outer, other_is_outer) = (self.is_outer(side), self.is_outer(1 - side));
        let [left, right] = &mut self.sides;
        let (own, other) = if side == 0 { (left, right) } else { (right, left) };
        let keys = own.keys.last();
        for (row, time) in times.iter().enumerate().skip(start) {
            let at_hand = Some(row as u32);
            let mut range = Range { candidates: self.pairs.len(), leaving: self.pairs.len(), alone: 0 };
            if let Some(time) = time.filter(|_| !self.is_empty) {
                let (low, high) = (time.saturating_sub(other.wait_ms), time.saturating_add(own.wait_ms));
                self.key.set(keys.rows.get(row));
                // Else all of them have left, or should have.
                if other.expired < high {
                    other.expired = other.expiry(now);
                    if let Some(waiting) = other.table.get(keys.hashes[row], &self.key, &()) {
                        let gone = waiting.gone as usize;
                        let first = waiting.rows.partition_point(|kept| kept.time < low).max(gone);
                        for (place, kept) in waiting.rows.iter().enumerate().skip(first) {
                            if kept.time > high {
                                break;
                            }
                            self.pairs.add(at_hand, kept.row.as_slice());
                            self.places.push(place as u32);
                        }
                        range.candidates = self.pairs.len();
                        let expired = waiting.until(other.expired);
                        if expired > gone {
                            if other_is_outer {
                                for (place, kept) in waiting.rows[..expired].iter().enumerate().skip(gone) {
                                    self.pairs.add(None, kept.row.as_slice());
                                    self.places.push(place as u32);
                                }
                            }
                            self.cleaned.push(row);
                            if let Some(waiting) = other.table.get_mut(keys.hashes[row], &self.key, &()) {
                                waiting.gone = expired as u32;
                            }
                        }
                        range.leaving = self.pairs.len();
                    }
                }
            }
            let waits = time.is_some_and(|time| !self.is_empty && own.waits(time, now));
            if is_outer && !waits {
                self.pairs.add(at_hand, &other.null_row);
                self.places.push(0);
            }
            range.alone = self.pairs.len();
            self.ranges.push(range);
            if self.pairs.len() >= Chunk::ROWS_MAX {
                return row + 1;
            }
        }
        chunk.len()
    }

    /// Decides what becomes of the rows from `start` on that were gathered, and keeps them.
    fn settle(
        &mut self,
        side: usize,
        chunk: &Chunk,
        start: usize,
        times: &[Option<Timestamp>],
        out: &mut Emit<'_>,
    ) -> Result<()> {
        let mut batch = None;
        let mut mask = None;
        if !self.pairs.is_empty() {
            let at_hand = self.pairs.columns_at_hand(chunk.batch.columns())?;
            let kept = self.pairs.columns_kept(&self.sides[1 - side].decoder)?;
            let columns = if side == 0 { [at_hand, kept] } else { [kept, at_hand] }.concat();
            let joined = batch_of(&self.joined, columns, self.pairs.len())?;
            mask = self.condition.as_ref().map(|condition| condition.mask(&joined)).transpose()?;
            batch = Some(joined);
        }
        let fulfils = |pair: usize| mask.as_ref().is_none_or(|mask| mask.value(pair));
        let now = self.clock.now;
        let (is_outer, is_half, kind) = (self.is_outer(side), self.is_half(), self.kind);
        let other_counts = self.is_outer(1 - side) || (is_half && side == 1);
        let mut chosen: Vec<u32> = Vec::with_capacity(self.pairs.len());
        let [left, right] = &mut self.sides;
        let (own, other) = if side == 0 { (left, right) } else { (right, left) };
        let mut from = 0;
        for (row, range) in (start..).zip(&self.ranges) {
            let hash = own.keys.last().hashes[row];
            self.key.set(own.keys.last().rows.get(row));
            let candidates = from..range.candidates;
            let leaving = range.candidates..range.leaving;
            let has_partner = candidates.clone().any(fulfils);
            if has_partner && !is_half {
                chosen.extend(candidates.clone().filter(|pair| fulfils(*pair)).map(|pair| pair as u32));
            }
            if has_partner && kind == JoinKind::Semi && side == 0 {
                chosen.extend(candidates.clone().find(|pair| fulfils(*pair)).map(|pair| pair as u32));
            }
            if other_counts
                && (has_partner || !leaving.is_empty())
                && let Some(waiting) = other.table.get_mut(hash, &self.key, &())
            {
                for pair in candidates.filter(|pair| fulfils(*pair)) {
                    let kept = &mut waiting.rows[self.places[pair] as usize];
                    if kind == JoinKind::Semi && !kept.has_partner {
                        chosen.push(pair as u32);
                    }
                    kept.has_partner = true;
                }
                let is_alone = |pair: &usize| !waiting.rows[self.places[*pair] as usize].has_partner;
                chosen.extend(leaving.filter(is_alone).map(|pair| pair as u32));
            }
            let waits = times[row].is_some_and(|time| !self.is_empty && own.waits(time, now));
            match times[row] {
                // A left row of which all is said need not wait.
                Some(_) if waits && is_half && side == 0 && has_partner => {}
                Some(time) if waits => {
                    own.keep(hash, &self.key, time, self.encoded.get(row), has_partner);
                }
                _ if is_outer && !has_partner => chosen.push(range.leaving as u32),
                _ => {}
            }
            from = range.alone;
        }
        for row in self.cleaned.drain(..) {
            let keys = own.keys.last();
            self.key.set(keys.rows.get(row));
            if let Some(waiting) = other.table.get_mut(keys.hashes[row], &self.key, &()) {
                // Empty ones stay until their timer is due: it decides when the next is.
                waiting.rows.drain(..waiting.gone as usize);
                waiting.gone = 0;
            }
        }
        self.ranges.clear();
        self.places.clear();
        self.pairs.clear();
        match batch {
            Some(batch) if !chosen.is_empty() => self.send(batch, chosen, out),
            _ => Ok(()),
        }
    }

    /// Puts out the chosen rows of a batch of pairs.
    fn send(&self, batch: arrow::array::RecordBatch, chosen: Vec<u32>, out: &mut Emit<'_>) -> Result<()> {
        let is_all = chosen.len() == batch.num_rows() && chosen.iter().zip(0..).all(|(pair, all)| *pair == all);
        let batch = if is_all {
            batch
        } else {
            take_record_batch(&batch, &UInt32Array::from(chosen))
                .map_err(|error| Error::system(format!("joining rows: {error}")))?
        };
        let mut columns = batch.columns().to_vec();
        columns.truncate(self.output.fields().len());
        let chunk = Chunk::inserts(batch_of(&self.output, columns, batch.num_rows())?);
        let mut start = 0;
        while start < chunk.len() {
            let rows = Chunk::ROWS_MAX.min(chunk.len() - start);
            out.emit(chunk.slice(start, rows))?;
            start += rows;
        }
        Ok(())
    }

    /// Lets go the rows that have expired, where a timer is due.
    fn fire(&mut self, out: &mut Emit<'_>) -> Result<()> {
        let now = self.clock.now;
        for side in [0, 1] {
            let puts_out = self.is_outer(side);
            while let Some((time, hashes)) = self.sides[side].timers.pop_until(now) {
                self.sides[side].expired = self.sides[side].expiry(now);
                for hash in hashes {
                    self.sides[side].release(hash, time, puts_out, &mut self.pairs);
                    if self.pairs.len() >= Chunk::ROWS_MAX {
                        self.put_out_alone(side, out)?;
                    }
                }
            }
            self.put_out_alone(side, out)?;
        }
        Ok(())
    }

    /// Puts out rows of a side without partners.
    fn put_out_alone(&mut self, side: usize, out: &mut Emit<'_>) -> Result<()> {
        if self.pairs.is_empty() {
            return Ok(());
        }
        let none = self.pairs.none_at_hand(&self.sides[1 - side].types);
        let kept = self.pairs.columns_kept(&self.sides[side].decoder)?;
        let mut columns = if side == 0 { [kept, none] } else { [none, kept] }.concat();
        columns.truncate(self.output.fields().len());
        let batch = batch_of(&self.output, columns, self.pairs.len())?;
        self.pairs.clear();
        out.emit(Chunk::inserts(batch))
    }
}

impl Side {
    /// Whether a row may still find a partner.
    fn waits(&self, time: Timestamp, now: Timestamp) -> bool {
        now < time.saturating_add(self.wait_ms)
    }

    fn keep(&mut self, hash: u64, key: &RowBytes, time: Timestamp, row: &[u8], has_partner: bool) {
        let timer = timer_of(time, self.wait_ms);
        let waiting = self.table.get_or_insert_with(hash, key, (), Waiting::new);
        let kept = Kept { time, row: RowBytes::new(row), has_partner };
        match waiting.rows.last() {
            // Out of order.
            Some(last) if last.time > time => {
                let place = waiting.rows.partition_point(|other| other.time <= time);
                waiting.rows.insert(place, kept);
            }
            _ => waiting.rows.push(kept),
        }
        if waiting.timer == NEVER {
            waiting.timer = timer;
            self.timers.insert(timer, hash);
        }
    }

    /// Lets go what has expired of the keys with this hash and timer; adds those that had no partner to `alone`.
    fn release(&mut self, hash: u64, timer: Timestamp, puts_out: bool, alone: &mut Pairs) {
        let due: Vec<RowBytes> = (self.table.find_by_hash(hash, &()))
            .filter(|(_, waiting)| waiting.timer == timer)
            .map(|(key, _)| key.clone())
            .collect();
        for key in due {
            let Some(waiting) = self.table.get_mut(hash, &key, &()) else { continue };
            let expired = waiting.until(self.expired);
            for kept in waiting.rows.drain(..expired) {
                if puts_out && !kept.has_partner {
                    alone.add(None, kept.row.as_slice());
                }
            }
            match waiting.rows.first().map(|first| first.time) {
                None => {
                    self.table.remove(hash, &key, &());
                }
                Some(time) => {
                    waiting.timer = timer_of(time, self.wait_ms);
                    if waiting.rows.len() * 4 < waiting.rows.capacity() {
                        waiting.rows.shrink_to(waiting.rows.len() * 2);
                    }
                    self.timers.insert(waiting.timer, hash);
                }
            }
        }
    }
}

impl TableOperator for IntervalJoin {
    fn process(&mut self, chunk: Chunk, out: &mut Emit<'_>) -> Result<()> {
        let side = usize::from(chunk.input.min(1));
        let columns = chunk.batch.columns();
        let own = &mut self.sides[side];
        own.rows.encode(columns, chunk.len(), &mut self.encoded)?;
        own.keys.encode(columns, chunk.len(), chunk.hashes.as_deref())?;
        // A row whose key or time is null has no partners.
        let keys: Vec<&ArrayRef> = own.key_columns.iter().map(|column| chunk.column(*column)).collect();
        let has_key = |row: usize| keys.iter().all(|key| key.is_valid(row));
        let times: Vec<Option<Timestamp>> = match own.time {
            Some(column) => {
                let times = millis(chunk.column(column))?;
                (0..chunk.len()).map(|row| (times.is_valid(row) && has_key(row)).then(|| times.value(row))).collect()
            }
            None => (0..chunk.len()).map(|row| has_key(row).then_some(self.clock.now)).collect(),
        };
        let mut start = 0;
        while start < chunk.len() {
            let end = self.gather(side, &chunk, start, &times);
            self.settle(side, &chunk, start, &times, out)?;
            start = end;
        }
        Ok(())
    }

    fn open(&mut self, cx: &mut OpenContext<'_>) -> Result<()> {
        if self.is_event_time {
            self.clock.restore(cx)?;
        }
        let expired: Vec<(Timestamp, Timestamp)> = cx.restored.take_state(cx.operator, EXPIRED)?;
        let (index, parallelism) = cx.restored.place;
        let own = expired.get(index as usize).filter(|_| expired.len() == parallelism as usize);
        if let Some((left, right)) = own.or(expired.iter().min()) {
            // The end of all time is not believed: records may follow now.
            let believed = |expired: &Timestamp| if *expired == WATERMARK_MAX { WATERMARK_MIN } else { *expired };
            (self.sides[0].expired, self.sides[1].expired) = (believed(left), believed(right));
        }
        Ok(())
    }

    fn states(&mut self, visit: StateVisitor<'_>) -> Result<()> {
        self.sides.iter_mut().try_for_each(|side| {
            side.table.set_index_bytes(side.timers.bytes());
            visit(&mut side.table)
        })
    }

    fn restored(&mut self) -> Result<()> {
        for Side { table, timers, .. } in &mut self.sides {
            table.visit(|key, (), waiting| {
                if waiting.timer != NEVER {
                    timers.insert(waiting.timer, hash_of(key.as_slice()));
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    fn on_watermark(&mut self, watermark: Timestamp, out: &mut Emit<'_>) -> Result<()> {
        // With the input the wall clock ends, too: no partner can come any more.
        if self.is_event_time || watermark == WATERMARK_MAX {
            self.clock.advance(watermark);
            self.fire(out)?;
        }
        Ok(())
    }

    fn outgoing_watermark(&mut self, watermark: Timestamp) -> Option<Timestamp> {
        Some(match watermark {
            WATERMARK_MAX => WATERMARK_MAX,
            _ if !self.is_event_time => watermark,
            watermark => watermark.saturating_sub(self.delay_ms),
        })
    }

    fn on_time(&mut self, now: Timestamp, out: &mut Emit<'_>) -> Result<Timestamp> {
        if self.is_event_time {
            return Ok(Timestamp::MAX);
        }
        self.clock.advance(now);
        self.fire(out)?;
        Ok(self.sides.iter().filter_map(|side| side.timers.next()).min().unwrap_or(Timestamp::MAX))
    }

    fn snapshot(&mut self, _: &Barrier, snapshot: &mut OperatorSnapshot<'_>) -> Result<()> {
        if self.is_event_time {
            self.clock.snapshot(snapshot)?;
        }
        snapshot.add(EXPIRED, Redistribution::Union, &[(self.sides[0].expired, self.sides[1].expired)])
    }
}

#[cfg(test)]
mod tests;
