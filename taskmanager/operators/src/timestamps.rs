//! `assign_timestamps_and_watermarks`: event time begins here.
//!
//! One generator a source split; the operator's watermark is the minimum over the splits that are being read, as
//! [`SplitSet`] tells.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use flott_core::config::options;
use flott_core::time::{Timestamp, WATERMARK_MAX, WATERMARK_MIN};
use flott_core::{Batch, Data, Error, Result};

use flott_checkpoint::Redistribution;
use flott_network::Barrier;

use crate::context::TaskContext;
use crate::operator::{OpenContext, Operator, OperatorSnapshot};
use crate::push::{Control, Output};

/// The name of the operator state that holds how far event time had come.
pub const WATERMARK_STATE: &str = "watermark";

/// How far event time had come when the checkpoint was taken. The end of all time, which a job that was drained has
/// seen, is not believed: records may follow now.
///
/// There is one watermark for each subtask of before. They differ when barriers have overtaken watermarks, and then a subtask
/// that has the same key groups as before goes on with its own: with an earlier one it would fire windows again.
pub fn restored_watermark(cx: &mut OpenContext<'_>) -> Result<Timestamp> {
    let watermarks: Vec<Timestamp> = cx.restored.take_state(cx.operator, WATERMARK_STATE)?;
    let (index, parallelism) = cx.restored.place;
    let own = watermarks.get(index as usize).filter(|_| watermarks.len() == parallelism as usize);
    let restored = own.or(watermarks.iter().min()).copied();
    Ok(restored.filter(|watermark| *watermark != WATERMARK_MAX).unwrap_or(WATERMARK_MIN))
}

/// Says how far event time has come.
pub trait WatermarkGenerator<T>: Send {
    /// Sees each record in order.
    fn on_event(&mut self, event: &T, timestamp: Timestamp);

    /// The watermark after the records seen so far.
    fn watermark(&self) -> Timestamp;

    /// Sees the records of a batch. Whenever the watermark, held back to `limit`, is at least `step_ms` beyond the
    /// last one sent, adds the record's position and the watermark to `sent`.
    ///
    /// Where watermarks are sent depends on the records alone, not on batches or the clock, so a replay judges the same
    /// records late.
    fn advance(
        &mut self,
        rows: &[T],
        timestamps: &[Timestamp],
        limit: Timestamp,
        step_ms: i64,
        mut last: Timestamp,
        sent: &mut Vec<(usize, Timestamp)>,
    ) {
        for (index, (row, timestamp)) in rows.iter().zip(timestamps).enumerate() {
            self.on_event(row, *timestamp);
            let watermark = self.watermark().min(limit);
            if watermark >= last.saturating_add(step_ms) && watermark > last {
                sent.push((index, watermark));
                last = watermark;
            }
        }
    }
}

/// The highest timestamp seen, less a bound and one millisecond, as in Flink.
#[derive(Clone, Copy, Debug)]
pub struct BoundedOutOfOrderness {
    bound_ms: i64,
    highest: Timestamp,
}

impl BoundedOutOfOrderness {
    /// Records are at most `bound` behind the latest one.
    pub fn new(bound: Duration) -> Self {
        Self { bound_ms: i64::try_from(bound.as_millis()).unwrap_or(i64::MAX), highest: WATERMARK_MIN }
    }
}

impl<T> WatermarkGenerator<T> for BoundedOutOfOrderness {
    #[inline]
    fn on_event(&mut self, _: &T, timestamp: Timestamp) {
        self.highest = self.highest.max(timestamp);
    }

    fn watermark(&self) -> Timestamp {
        self.highest.saturating_sub(self.bound_ms).saturating_sub(1)
    }
}

/// Appends the event time of each row.
type AssignRows<T> = dyn Fn(&[T], &mut Vec<Timestamp>) + Send + Sync;

/// How timestamps and watermarks are made.
pub struct WatermarkStrategy<T> {
    /// The event time of a record, in milliseconds since 1970.
    pub(crate) timestamp: Arc<AssignRows<T>>,
    pub(crate) generator: Arc<dyn Fn() -> Box<dyn WatermarkGenerator<T>> + Send + Sync>,
    pub(crate) idleness: Option<Duration>,
}

impl<T> Clone for WatermarkStrategy<T> {
    fn clone(&self) -> Self {
        Self { timestamp: Arc::clone(&self.timestamp), generator: Arc::clone(&self.generator), idleness: self.idleness }
    }
}

impl<T: 'static> WatermarkStrategy<T> {
    /// Records come at most `bound` later than ones with a later timestamp. `timestamp` returns milliseconds
    /// since 1970.
    pub fn bounded_out_of_orderness(
        bound: Duration,
        timestamp: impl Fn(&T) -> Timestamp + Send + Sync + 'static,
    ) -> Self {
        Self::custom(timestamp, move || BoundedOutOfOrderness::new(bound))
    }

    /// Timestamps never decrease.
    pub fn monotonous(timestamp: impl Fn(&T) -> Timestamp + Send + Sync + 'static) -> Self {
        Self::bounded_out_of_orderness(Duration::ZERO, timestamp)
    }

    /// A generator of one's own, made anew for each source split.
    pub fn custom<G: WatermarkGenerator<T> + 'static>(
        timestamp: impl Fn(&T) -> Timestamp + Send + Sync + 'static,
        generator: impl Fn() -> G + Send + Sync + 'static,
    ) -> Self {
        Self {
            timestamp: Arc::new(move |rows, out| out.extend(rows.iter().map(&timestamp))),
            generator: Arc::new(move || Box::new(generator())),
            idleness: None,
        }
    }

    /// A subtask without records for this long no longer holds the watermark back.
    #[must_use]
    pub fn with_idleness(mut self, idleness: Duration) -> Self {
        self.idleness = Some(idleness);
        self
    }
}

/// The splits that a source is reading now, shared with the assigner behind it in the same chain.
#[derive(Debug, Default)]
pub struct SplitSet {
    /// Bit `n % 64` per active split number; splits beyond 64 share bits, which only delays forgetting.
    active: AtomicU64,
    is_bounded: AtomicBool,
}

impl SplitSet {
    /// Replaces the set.
    pub fn set(&self, splits: &[u32]) {
        let bits = splits.iter().fold(0_u64, |bits, split| bits | 1 << (split % 64));
        self.active.store(bits, Ordering::Relaxed);
    }

    /// Says that the source ends by itself.
    pub fn set_bounded(&self) {
        self.is_bounded.store(true, Ordering::Relaxed);
    }

    /// Whether the source ends by itself.
    pub fn is_bounded(&self) -> bool {
        self.is_bounded.load(Ordering::Relaxed)
    }

    /// Whether a split is being read.
    pub fn contains(&self, split: u32) -> bool {
        self.active.load(Ordering::Relaxed) & 1 << (split % 64) != 0
    }
}

/// Assigns timestamps, and sends watermarks between the records that move them.
pub struct AssignTimestamps<T> {
    strategy: WatermarkStrategy<T>,
    /// How far the watermark must move to be sent.
    step_ms: i64,
    splits: BTreeMap<u32, Box<dyn WatermarkGenerator<T>>>,
    source: Arc<SplitSet>,
    watermark: Timestamp,
    /// A restored watermark that has to be sent before anything else: progress is state.
    floor: Option<Timestamp>,
    now: Timestamp,
    last_record: Timestamp,
    is_idle: bool,
    has_ended: bool,
    sent: Vec<(usize, Timestamp)>,
    buffer: Batch<T>,
}

impl<T: Data> AssignTimestamps<T> {
    /// Follows `strategy`.
    pub fn new(strategy: WatermarkStrategy<T>, cx: &TaskContext) -> Result<Self> {
        let step = cx.config.get(options::AUTO_WATERMARK_INTERVAL)?;
        Ok(Self {
            strategy,
            step_ms: i64::try_from(step.as_millis()).unwrap_or(i64::MAX),
            splits: BTreeMap::new(),
            source: Arc::clone(&cx.splits),
            watermark: WATERMARK_MIN,
            floor: None,
            now: 0,
            last_record: 0,
            is_idle: false,
            has_ended: false,
            sent: Vec::new(),
            buffer: Batch::default(),
        })
    }

    /// The lowest watermark of the splits other than `split` that are still being read. A finished split says nothing
    /// about the records of the others.
    fn limit(&mut self, split: u32) -> Timestamp {
        if self.splits.len() > 1 {
            let source = &self.source;
            self.splits.retain(|other, _| *other == split || *other == 0 || source.contains(*other));
        }
        let others = self.splits.iter().filter(|(other, _)| **other != split);
        others.map(|(_, generator)| generator.watermark()).min().unwrap_or(WATERMARK_MAX)
    }

    fn send_floor(&mut self, out: &mut Output<T>) -> Result<()> {
        match self.floor.take() {
            Some(floor) => self.emit(floor, out),
            None => Ok(()),
        }
    }

    fn emit(&mut self, watermark: Timestamp, out: &mut Output<T>) -> Result<()> {
        if watermark > self.watermark {
            self.watermark = watermark;
            out.control(&mut Control::Watermark(watermark))?;
        }
        Ok(())
    }

    /// Sends the rows of `batch` with the watermarks of `self.sent` between them.
    fn send(&mut self, batch: &mut Batch<T>, out: &mut Output<T>) -> Result<()> {
        let sent = std::mem::take(&mut self.sent);
        match &sent[..] {
            [] => out.push(batch)?,
            [(last, watermark)] if last + 1 == batch.len() => {
                out.push(batch)?;
                self.emit(*watermark, out)?;
            }
            _ => {
                let split = batch.split;
                let mut rows = batch.rows.drain(..).zip(batch.timestamps.drain(..)).enumerate();
                for (last, watermark) in &sent {
                    for (index, (row, timestamp)) in rows.by_ref() {
                        self.buffer.rows.push(row);
                        self.buffer.timestamps.push(timestamp);
                        if index == *last {
                            break;
                        }
                    }
                    self.buffer.split = split;
                    out.push(&mut self.buffer)?;
                    self.emit(*watermark, out)?;
                }
                for (_, (row, timestamp)) in rows {
                    self.buffer.rows.push(row);
                    self.buffer.timestamps.push(timestamp);
                }
                self.buffer.split = split;
                out.push(&mut self.buffer)?;
            }
        }
        self.sent = sent;
        self.sent.clear();
        Ok(())
    }
}

impl<T: Data> Operator<T, T> for AssignTimestamps<T> {
    fn open(&mut self, cx: &mut OpenContext<'_>) -> Result<()> {
        self.floor = cx.restored.take_state(cx.operator, WATERMARK_STATE)?.into_iter().min();
        Ok(())
    }

    fn snapshot(&mut self, _: &Barrier, snapshot: &mut OperatorSnapshot<'_>) -> Result<()> {
        // A subtask that has ended holds nobody back, not even after a restore.
        let watermark = (!self.has_ended).then(|| self.floor.unwrap_or(self.watermark));
        snapshot.add(WATERMARK_STATE, Redistribution::Union, watermark.as_slice())
    }

    fn process(&mut self, batch: &mut Batch<T>, out: &mut Output<T>) -> Result<()> {
        batch.timestamps.clear();
        (self.strategy.timestamp)(&batch.rows, &mut batch.timestamps);
        let earliest = batch.timestamps.iter().min();
        if earliest.is_some_and(|earliest| *earliest == WATERMARK_MIN) {
            return Err(Error::user_code(format!("the timestamp function returned {WATERMARK_MIN}: that is no time")));
        }
        self.last_record = self.now;
        self.send_floor(out)?;
        if self.is_idle {
            self.is_idle = false;
            out.control(&mut Control::Active)?;
        }
        let limit = self.limit(batch.split);
        let make = &self.strategy.generator;
        let generator = self.splits.entry(batch.split).or_insert_with(|| make());
        generator.advance(&batch.rows, &batch.timestamps, limit, self.step_ms, self.watermark, &mut self.sent);
        self.send(batch, out)
    }

    // Watermarks from before are replaced by those made here; only the end passes.
    fn outgoing_watermark(&mut self, watermark: Timestamp) -> Option<Timestamp> {
        (watermark == WATERMARK_MAX).then_some(watermark)
    }

    fn on_blocked(&mut self, now: Timestamp) {
        self.last_record = now;
    }

    fn on_end(&mut self, _: &mut Output<T>) -> Result<()> {
        self.has_ended = true;
        Ok(())
    }

    fn on_time(&mut self, now: Timestamp, out: &mut Output<T>) -> Result<Timestamp> {
        if self.now == 0 {
            self.last_record = now;
        }
        self.now = now;
        self.send_floor(out)?;
        // A stream without end may pause for long: what its records said of time is not held back then.
        if !self.source.is_bounded() && now.saturating_sub(self.last_record) >= self.step_ms {
            let lowest = self.splits.values().map(|generator| generator.watermark()).min();
            self.emit(lowest.unwrap_or(WATERMARK_MIN), out)?;
        }
        let pause = if self.source.is_bounded() { Timestamp::MAX } else { now.saturating_add(self.step_ms.max(1)) };
        let Some(idleness) = self.strategy.idleness.filter(|_| !self.is_idle) else { return Ok(pause) };
        let deadline = self.last_record.saturating_add(i64::try_from(idleness.as_millis()).unwrap_or(i64::MAX));
        if now < deadline {
            return Ok(deadline.min(pause));
        }
        self.is_idle = true;
        out.control(&mut Control::Idle)?;
        Ok(pause)
    }
}

#[cfg(test)]
mod tests {
    use flott_checkpoint::OperatorState;
    use flott_core::codec;
    use flott_core::ids::OperatorId;

    use super::*;
    use crate::snapshot::RestoredState;

    #[test]
    fn a_subtask_goes_on_with_its_own_watermark_where_there_are_as_many_as_before() {
        let watermark = |place| {
            let elements = [100_i64, 90].iter().map(|watermark| codec::encode(watermark).unwrap()).collect();
            let (operator, name) = (OperatorId([1; 16]), WATERMARK_STATE.to_owned());
            let state = OperatorState { operator, name, redistribution: Redistribution::Union, elements };
            let mut restored = RestoredState::new(Vec::new(), vec![state]);
            restored.place = place;
            restored_watermark(&mut OpenContext { operator, restored: &mut restored }).unwrap()
        };
        assert_eq!([watermark((0, 2)), watermark((1, 2))], [100, 90]);
        assert_eq!([watermark((0, 1)), watermark((2, 3))], [90, 90], "others start with the earliest");
    }
}
