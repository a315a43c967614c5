//! OVER windows of a stream.
//!
//! By event time a row waits until the watermark has come to it; then it is put out with all others of its time. By the time of
//! the machine rows are put out as they come.
//!
//! Which rows are late is as in Flink: with a frame that has a beginning, those that are not after the last row of their key
//! that was put out; with one of all rows before, those that are not after the watermark.

use std::collections::VecDeque;
use std::sync::Arc;

use flott_chunk::Chunk;
use flott_core::time::Timestamp;
use flott_core::{Error, Result};
use flott_network::Barrier;
use flott_operators::operator::{OpenContext, OperatorSnapshot, StateVisitor};
use flott_state::{KeyedTable, TimeIndex};
use flott_telemetry::TaskCounters;
use hashbrown::HashTable;
use serde::{Deserialize, Serialize};

use super::positions::{Extent, Place};
use super::work::Work;
use crate::aggregates::{Accumulators, Arena};
use crate::operator::{Emit, TableOperator};
use crate::operators::retention::Usage;
use crate::program::OperatorContext;
use crate::row::{EncodedRows, KeyEncoder, RowBytes, RowEncoder, hash_of};
use crate::spec::{OverFrame, OverSpec, TimeSpec};
use crate::time::{EventClock, event_times};

/// What is kept of a key.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Partition {
    /// The last time that was put out.
    put_out: Option<Timestamp>,
    /// When it is forgotten if no later rows come, where the frame is a time.
    forget_at: Option<Timestamp>,
    /// Rows that wait for the watermark, in the order of time.
    waiting: Vec<(Timestamp, RowBytes)>,
    /// The rows in the frame, where rows leave frames.
    frame: VecDeque<(Timestamp, RowBytes)>,
    /// The rows before, as many as LAG looks back.
    before: VecDeque<RowBytes>,
    place: Place,
    accumulators: Accumulators,
}

/// How rows of a key are planned.
#[derive(Debug)]
struct Rules {
    frame: OverFrame,
    /// By how many rows LAG looks back, in order, and the most.
    lags: Vec<usize>,
    lag_max: usize,
}

impl Rules {
    /// Plans that rows of one time are put out.
    fn plan(&self, partition: &mut Partition, time: Timestamp, rows: Vec<RowBytes>, group: u32, work: &mut Work) {
        let mut known: Vec<u32> = Vec::new();
        if self.lag_max > 0 {
            known.extend(partition.before.iter().map(|row| work.row(row.as_slice())));
        }
        let first = known.len();
        known.extend(rows.iter().map(|row| work.row(row.as_slice())));
        if let OverFrame::Range(limit) = self.frame {
            if let Some(limit) = limit {
                let oldest = time.saturating_sub(limit);
                while let Some((_, row)) = partition.frame.pop_front_if(|(time, _)| *time < oldest) {
                    let row = work.row(row.as_slice());
                    work.leave(row, group);
                }
                partition.frame.extend(rows.iter().map(|row| (time, row.clone())));
            }
            known[first..].iter().for_each(|row| work.enter(*row, group));
        }
        for (index, row) in rows.iter().enumerate() {
            let number = known[first + index];
            if let OverFrame::Rows(limit) = self.frame {
                work.enter(number, group);
                if let Some(limit) = limit {
                    partition.frame.push_back((time, row.clone()));
                    if partition.frame.len() as u64 > limit.saturating_add(1)
                        && let Some((_, oldest)) = partition.frame.pop_front()
                    {
                        let oldest = work.row(oldest.as_slice());
                        work.leave(oldest, group);
                    }
                }
            }
            partition.place = partition.place.next(index > 0);
            let lagged = self.lags.iter().map(|lag| (first + index).checked_sub(*lag).map(|place| known[place]));
            work.put_out(number, group, partition.place, lagged, Extent::default());
        }
        if self.lag_max > 0 {
            partition.before.extend(rows);
            let excess = partition.before.len().saturating_sub(self.lag_max);
            partition.before.drain(..excess);
        }
    }
}

/// See the module's documentation.
pub struct StreamOver {
    keys: KeyEncoder,
    rows: RowEncoder,
    table: KeyedTable<RowBytes, (), Partition>,
    rules: Rules,
    /// The column with event time; none by the time of the machine.
    time: Option<usize>,
    work: Work,
    arena: Arena,
    /// The keys in the arena, by their groups.
    touched: Vec<(u64, RowBytes)>,
    groups: HashTable<u32>,
    /// When rows of a key are to be put out, or a frame has lost its last row.
    due: TimeIndex,
    /// Keys whose frame may have lost its last row.
    idle: Vec<(u64, RowBytes)>,
    /// How long a frame is, if a key without rows in it is like one that never was.
    forgets_after: Option<i64>,
    clock: EventClock,
    usage: Usage,
    counters: Arc<TaskCounters>,
    key: RowBytes,
}

impl StreamOver {
    /// Makes it, without rows.
    ///
    /// # Errors
    /// An aggregate cannot be computed, or the order is not that of time.
    pub fn new(spec: &OverSpec, cx: &OperatorContext<'_>) -> Result<Self> {
        let time = match (&spec.time, &spec.order[..]) {
            (TimeSpec::Event(column), [order]) if order.column == *column && !order.is_descending => Some(*column),
            (TimeSpec::Processing, [] | [_]) => None,
            _ => {
                return Err(Error::input(
                    "OVER windows of a stream are ordered by one time attribute, ascending: leave the other columns of ORDER BY out",
                ));
            }
        };
        let retracts = matches!(spec.frame, OverFrame::Rows(Some(_)) | OverFrame::Range(Some(_)));
        let work = Work::new(spec, retracts, cx)?;
        let lags: Vec<usize> = (work.shifts().into_iter())
            .map(|by| {
                usize::try_from(-by).map_err(|_| {
                    Error::input(
                        "LEAD needs rows that come later, which a stream cannot wait for: run it in batch mode",
                    )
                })
            })
            .collect::<Result<_>>()?;
        if work.needs_all_rows() {
            return Err(Error::input(
                "NTILE, PERCENT_RANK and CUME_DIST need all rows of a key, which a stream never has: run it in batch mode",
            ));
        }
        let forgets_after = match spec.frame {
            OverFrame::Range(Some(limit)) if time.is_some() && !work.has_positions() => Some(limit),
            _ => None,
        };
        let types = cx.types(0);
        Ok(Self {
            keys: KeyEncoder::new(&spec.partition, &types)?,
            rows: RowEncoder::new(&types)?,
            table: cx.task.table("partitions"),
            rules: Rules { frame: spec.frame, lag_max: lags.iter().copied().max().unwrap_or(0), lags },
            time,
            arena: work.aggregates.named_arena(true, cx),
            work,
            touched: Vec::new(),
            groups: HashTable::new(),
            due: TimeIndex::default(),
            idle: Vec::new(),
            forgets_after,
            clock: EventClock::default(),
            usage: Usage::new(spec.ttl_ms, cx),
            counters: Arc::clone(&cx.task.counters),
            key: RowBytes::default(),
        })
    }

    /// The key's group in the arena; it is loaded when it is met first.
    fn group(
        (groups, touched, arena): (&mut HashTable<u32>, &mut Vec<(u64, RowBytes)>, &mut Arena),
        hash: u64,
        key: &RowBytes,
        partition: &mut Partition,
    ) -> u32 {
        let is_same = |group: &u32| touched[*group as usize].0 == hash && touched[*group as usize].1 == *key;
        if let Some(group) = groups.find(hash, is_same) {
            return *group;
        }
        let group = arena.load_named(hash, key, &mut partition.accumulators) as u32;
        groups.insert_unique(hash, group, |group| touched[*group as usize].0);
        touched.push((hash, key.clone()));
        group
    }

    /// Carries out what is planned, and puts aggregates back into state.
    fn flush(&mut self, out: &mut Emit<'_>) -> Result<()> {
        self.work.run(&mut self.arena, out)?;
        for (group, (hash, key)) in self.touched.drain(..).enumerate() {
            if let Some(partition) = self.table.get_mut(hash, &key, &()) {
                self.arena.store(group, &mut partition.accumulators);
            }
        }
        self.groups.clear();
        self.arena.clear();
        self.forget();
        Ok(())
    }

    /// Forgets keys without rows in their frame.
    fn forget(&mut self) {
        for (hash, key) in self.idle.drain(..) {
            let Some(partition) = self.table.get(hash, &key, &()) else { continue };
            let is_over = partition.forget_at.is_some_and(|at| at <= self.clock.now);
            if is_over && partition.waiting.is_empty() {
                self.table.remove(hash, &key, &());
                self.arena.forget(hash, &key);
            }
        }
    }

    /// Puts out all rows up to a watermark, earliest first.
    fn fire(&mut self, out: &mut Emit<'_>) -> Result<()> {
        while let Some((time, hashes)) = self.due.pop_until(self.clock.now) {
            for hash in hashes {
                let keys: Vec<RowBytes> = self.table.find_by_hash(hash, &()).map(|(key, _)| key.clone()).collect();
                keys.into_iter().for_each(|key| self.fire_key(hash, &key, time));
                if self.work.len() >= Chunk::ROWS_MAX {
                    self.flush(out)?;
                }
            }
        }
        self.flush(out)
    }

    fn fire_key(&mut self, hash: u64, key: &RowBytes, time: Timestamp) {
        let Some(partition) = self.table.get(hash, key, &()) else { return };
        let ready = partition.waiting.partition_point(|(other, _)| *other <= time);
        if ready == 0 {
            // It may be at work in the arena, and is forgotten afterwards.
            self.idle.push((hash, key.clone()));
            return;
        }
        let Some(partition) = self.table.get_mut(hash, key, &()) else { return };
        let rows: Vec<RowBytes> = partition.waiting.drain(..ready).map(|(_, row)| row).collect();
        let arena = (&mut self.groups, &mut self.touched, &mut self.arena);
        let group = Self::group(arena, hash, key, partition);
        partition.put_out = Some(time);
        self.rules.plan(partition, time, rows, group, &mut self.work);
    }
}

impl TableOperator for StreamOver {
    fn process(&mut self, chunk: Chunk, out: &mut Emit<'_>) -> Result<()> {
        if !chunk.is_insert_only() {
            return Err(Error::system("OVER windows got rows that are updated or deleted"));
        }
        let mut encoded = EncodedRows::default();
        self.rows.encode(chunk.batch.columns(), chunk.len(), &mut encoded)?;
        let times =
            self.time.map(|column| event_times(chunk.column(column), chunk.batch.schema().field(column).name()));
        let times = times.transpose()?;
        let keys = self.keys.encode(chunk.batch.columns(), chunk.len(), chunk.hashes.as_deref())?;
        let mut late = 0;
        for row in 0..chunk.len() {
            let (hash, bytes) = (keys.hashes[row], encoded.get(row));
            self.key.set(keys.rows.get(row));
            self.usage.touch(hash, &self.key);
            let mut is_new = false;
            let partition = self.table.get_or_insert_with(hash, &self.key, (), || {
                is_new = true;
                Partition::default()
            });
            match &times {
                Some(times) => {
                    let time = times.value(row);
                    let is_late = match self.rules.frame {
                        OverFrame::Rows(None) | OverFrame::Range(None) => time <= self.clock.now,
                        _ => partition.put_out.is_some_and(|last| time <= last),
                    };
                    if is_late {
                        late += 1;
                        if is_new {
                            self.table.remove(hash, &self.key, &());
                        }
                        continue;
                    }
                    // To the millisecond when Flink does: what is forgotten decides which rows are late later on.
                    if let Some(limit) = self.forgets_after {
                        let empty = time.saturating_add(limit).saturating_add(1);
                        if partition.forget_at.is_none_or(|at| at < empty) {
                            let at = empty.saturating_add(limit / 2);
                            partition.forget_at = Some(at);
                            self.due.insert(at, hash);
                        }
                    }
                    let place = partition.waiting.partition_point(|(other, _)| *other <= time);
                    if place == 0 || partition.waiting[place - 1].0 != time {
                        self.due.insert(time, hash);
                    }
                    partition.waiting.insert(place, (time, RowBytes::new(bytes)));
                }
                None => {
                    let arena = (&mut self.groups, &mut self.touched, &mut self.arena);
                    let group = Self::group(arena, hash, &self.key, partition);
                    self.rules.plan(partition, self.clock.now, vec![RowBytes::new(bytes)], group, &mut self.work);
                }
            }
        }
        self.counters.late_records_dropped.add(late);
        self.flush(out)
    }

    fn open(&mut self, cx: &mut OpenContext<'_>) -> Result<()> {
        self.clock.restore(cx)
    }

    fn snapshot(&mut self, _: &Barrier, snapshot: &mut OperatorSnapshot<'_>) -> Result<()> {
        self.clock.snapshot(snapshot)
    }

    fn states(&mut self, visit: StateVisitor<'_>) -> Result<()> {
        self.usage.states(visit)?;
        self.arena.states(visit)?;
        self.table.set_index_bytes(self.due.bytes());
        visit(&mut self.table)
    }

    fn restored(&mut self) -> Result<()> {
        self.usage.restored()?;
        self.arena.restored()?;
        let due = &mut self.due;
        self.table.visit(|key, (), partition| {
            let hash = hash_of(key.as_slice());
            let mut last = None;
            for (time, _) in &partition.waiting {
                if last.replace(*time) != Some(*time) {
                    due.insert(*time, hash);
                }
            }
            if let Some(at) = partition.forget_at {
                due.insert(at, hash);
            }
            Ok(())
        })
    }

    fn on_watermark(&mut self, watermark: Timestamp, out: &mut Emit<'_>) -> Result<()> {
        if self.time.is_none() {
            return Ok(());
        }
        self.clock.advance(watermark);
        self.fire(out)
    }

    fn on_time(&mut self, now: Timestamp, _: &mut Emit<'_>) -> Result<Timestamp> {
        if self.time.is_none() {
            self.clock.advance(now);
        }
        for (hash, key) in self.usage.expire(now) {
            match self.table.get(hash, &key, &()) {
                // A key with rows that wait is in use.
                Some(partition) if !partition.waiting.is_empty() => self.usage.touch(hash, &key),
                _ => {
                    self.table.remove(hash, &key, &());
                    self.arena.forget(hash, &key);
                }
            }
        }
        Ok(self.usage.next())
    }
}
