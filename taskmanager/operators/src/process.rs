//! `process`: a user's function with state, timers and side outputs.

use std::sync::Arc;

use flott_checkpoint::Redistribution;
use flott_core::time::{Timestamp, WATERMARK_MIN};
use flott_core::{Batch, Data, Result};
use flott_network::Barrier;
use flott_state::{Keyed, KeyedStates};

use crate::context::TaskContext;
use crate::key::{KeyExtractor, ensure_hashes};
use crate::operator::{OpenContext, Operator, OperatorSnapshot, StateVisitor};
use crate::push::Output;
use crate::timers::TimerService;
use crate::timestamps::{WATERMARK_STATE, restored_watermark};

/// Names a side output and its type.
pub struct OutputTag<T> {
    name: String,
    item: std::marker::PhantomData<fn() -> T>,
}

impl<T> OutputTag<T> {
    /// A tag; its name is unique in the operator.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), item: std::marker::PhantomData }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl<T> Clone for OutputTag<T> {
    fn clone(&self) -> Self {
        Self::new(self.name.clone())
    }
}

/// Where a function puts its results.
pub struct Collector<'a, Out> {
    buffer: &'a mut Batch<Out>,
    out: &'a mut Output<Out>,
    timestamp: Option<Timestamp>,
}

impl<Out: Data> Collector<'_, Out> {
    /// Sends a result, with the timestamp of the record or timer that led to it.
    pub fn collect(&mut self, value: Out) {
        self.buffer.rows.push(value);
        if let Some(timestamp) = self.timestamp {
            self.buffer.timestamps.push(timestamp);
        }
    }

    /// Sends a result to a side output. Without a consumer it goes nowhere.
    pub fn side<S: Data>(&mut self, tag: &OutputTag<S>, value: S) -> Result<()> {
        let mut batch = Batch::from_rows(vec![value]);
        batch.timestamps.extend(self.timestamp);
        self.out.sides.push(tag.name(), &mut batch).map(|_| ())
    }
}

/// A function on the records of a stream that is not keyed.
pub trait ProcessFunction<In, Out>: Send {
    /// Called for each record.
    fn process(&mut self, value: In, timestamp: Option<Timestamp>, out: &mut Collector<'_, Out>) -> Result<()>;
}

/// A function on the records of a key, with state and timers of that key.
pub trait KeyedProcessFunction<K: Data + Eq, In, Out>: Send {
    /// Declares its states. It is also called where they are only listed, so it should do nothing else.
    fn open(&mut self, states: &mut KeyedStates<K>) -> Result<()> {
        let _ = states;
        Ok(())
    }

    /// Called for each record.
    fn process(&mut self, value: In, cx: &mut KeyedContext<'_, K>, out: &mut Collector<'_, Out>) -> Result<()>;

    /// Called when a timer is due.
    fn on_timer(&mut self, timer: Timer, cx: &mut KeyedContext<'_, K>, out: &mut Collector<'_, Out>) -> Result<()> {
        let _ = (timer, cx, out);
        Ok(())
    }
}

/// A timer that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timer {
    /// The watermark reached this time.
    EventTime(Timestamp),
    /// The wall clock reached this time.
    ProcessingTime(Timestamp),
}

/// The current key, its states and its timers.
pub struct KeyedContext<'a, K> {
    states: &'a mut KeyedStates<K>,
    event_timers: &'a mut TimerService<K>,
    processing_timers: &'a mut TimerService<K>,
    key: &'a K,
    hash: u64,
    timestamp: Option<Timestamp>,
    watermark: Timestamp,
    now: Timestamp,
}

impl<K: Data + Eq> KeyedContext<'_, K> {
    /// The current key.
    pub fn key(&self) -> &K {
        self.key
    }

    /// The event time of the current record or timer.
    pub fn timestamp(&self) -> Option<Timestamp> {
        self.timestamp
    }

    /// How far event time has come.
    pub fn current_watermark(&self) -> Timestamp {
        self.watermark
    }

    /// The wall clock, in milliseconds since 1970.
    pub fn current_processing_time(&self) -> Timestamp {
        self.now
    }

    /// Asks for a call when the watermark reaches `time`.
    pub fn register_event_time_timer(&mut self, time: Timestamp) {
        self.event_timers.register(self.hash, self.key, time);
    }

    /// Asks for a call when the wall clock reaches `time`.
    pub fn register_processing_time_timer(&mut self, time: Timestamp) {
        self.processing_timers.register(self.hash, self.key, time);
    }

    /// Takes an event-time timer back.
    pub fn delete_event_time_timer(&mut self, time: Timestamp) {
        self.event_timers.delete(self.hash, self.key, time);
    }

    /// Takes a processing-time timer back.
    pub fn delete_processing_time_timer(&mut self, time: Timestamp) {
        self.processing_timers.delete(self.hash, self.key, time);
    }
}

impl<K> Keyed<K> for KeyedContext<'_, K> {
    fn keyed(&mut self) -> (&mut KeyedStates<K>, &K, u64) {
        (self.states, self.key, self.hash)
    }
}

/// Runs a [`ProcessFunction`].
pub struct Process<F, Out> {
    function: F,
    buffer: Batch<Out>,
}

impl<F, Out> Process<F, Out> {
    /// Runs `function` on each record.
    pub fn new(function: F) -> Self {
        Self { function, buffer: Batch::default() }
    }
}

impl<In: Data, Out: Data, F: ProcessFunction<In, Out>> Operator<In, Out> for Process<F, Out> {
    fn process(&mut self, batch: &mut Batch<In>, out: &mut Output<Out>) -> Result<()> {
        let mut timestamps = batch.timestamps.drain(..);
        for row in batch.rows.drain(..) {
            let timestamp = timestamps.next();
            let mut collector = Collector { buffer: &mut self.buffer, out, timestamp };
            self.function.process(row, timestamp, &mut collector)?;
            if self.buffer.len() >= Batch::<Out>::ROWS_MAX {
                out.push(&mut self.buffer)?;
            }
        }
        out.push(&mut self.buffer)
    }
}

/// Runs a [`KeyedProcessFunction`].
pub struct KeyedProcess<K, In, Out, F> {
    function: F,
    extractor: Arc<dyn KeyExtractor<In, K>>,
    states: KeyedStates<K>,
    event_timers: TimerService<K>,
    processing_timers: TimerService<K>,
    watermark: Timestamp,
    now: Timestamp,
    keys: Vec<K>,
    due: Vec<(u64, K)>,
    buffer: Batch<Out>,
}

impl<K: Data + Eq, In: Data, Out: Data, F: KeyedProcessFunction<K, In, Out>> KeyedProcess<K, In, Out, F> {
    /// Runs `function` on each record.
    pub fn new(function: F, extractor: Arc<dyn KeyExtractor<In, K>>, cx: &TaskContext) -> Self {
        Self {
            function,
            extractor,
            states: KeyedStates::new(cx.key_groups(), cx.max_parallelism, &cx.state),
            event_timers: TimerService::new("_timer_event_time", cx),
            processing_timers: TimerService::new("_timer_processing_time", cx),
            watermark: WATERMARK_MIN,
            now: 0,
            keys: Vec::new(),
            due: Vec::new(),
            buffer: Batch::default(),
        }
    }

    fn fire(&mut self, is_event_time: bool, limit: Timestamp, out: &mut Output<Out>) -> Result<()> {
        let mut due = std::mem::take(&mut self.due);
        loop {
            // A timer may register another that is due at once, so look again after each time.
            let timers = if is_event_time { &mut self.event_timers } else { &mut self.processing_timers };
            let Some(time) = timers.pop_until(limit, &mut due) else { break };
            let timer = if is_event_time { Timer::EventTime(time) } else { Timer::ProcessingTime(time) };
            for (hash, key) in due.drain(..) {
                let timestamp = is_event_time.then_some(time);
                let mut cx = KeyedContext {
                    states: &mut self.states,
                    event_timers: &mut self.event_timers,
                    processing_timers: &mut self.processing_timers,
                    key: &key,
                    hash,
                    timestamp,
                    watermark: self.watermark,
                    now: self.now,
                };
                // In a stream without event time, the results of a timer have none either.
                let has_time = is_event_time || self.watermark != WATERMARK_MIN;
                let mut collector = Collector { buffer: &mut self.buffer, out, timestamp: has_time.then_some(time) };
                self.function.on_timer(timer, &mut cx, &mut collector)?;
                if self.buffer.len() >= Batch::<Out>::ROWS_MAX {
                    out.push(&mut self.buffer)?;
                }
            }
            out.push(&mut self.buffer)?;
        }
        self.due = due;
        Ok(())
    }
}

impl<K, In, Out, F> Operator<In, Out> for KeyedProcess<K, In, Out, F>
where
    K: Data + Eq,
    In: Data,
    Out: Data,
    F: KeyedProcessFunction<K, In, Out>,
{
    fn process(&mut self, batch: &mut Batch<In>, out: &mut Output<Out>) -> Result<()> {
        ensure_hashes(batch, &*self.extractor);
        self.keys.clear();
        self.extractor.keys(&batch.rows, &mut self.keys);
        let mut timestamps = batch.timestamps.drain(..);
        for ((row, hash), key) in batch.rows.drain(..).zip(&batch.hashes).zip(&self.keys) {
            let timestamp = timestamps.next();
            let mut cx = KeyedContext {
                states: &mut self.states,
                event_timers: &mut self.event_timers,
                processing_timers: &mut self.processing_timers,
                key,
                hash: *hash,
                timestamp,
                watermark: self.watermark,
                now: self.now,
            };
            let mut collector = Collector { buffer: &mut self.buffer, out, timestamp };
            self.function.process(row, &mut cx, &mut collector)?;
            if self.buffer.len() >= Batch::<Out>::ROWS_MAX {
                out.push(&mut self.buffer)?;
            }
        }
        out.push(&mut self.buffer)
    }

    fn declare(&mut self) -> Result<()> {
        self.function.open(&mut self.states)
    }

    fn open(&mut self, cx: &mut OpenContext<'_>) -> Result<()> {
        self.watermark = restored_watermark(cx)?;
        Ok(())
    }

    fn states(&mut self, visit: StateVisitor<'_>) -> Result<()> {
        self.states.visit(visit)?;
        self.event_timers.states(visit)?;
        self.processing_timers.states(visit)
    }

    fn restored(&mut self) -> Result<()> {
        self.event_timers.restored()?;
        self.processing_timers.restored()
    }

    fn on_watermark(&mut self, watermark: Timestamp, out: &mut Output<Out>) -> Result<()> {
        self.watermark = self.watermark.max(watermark);
        self.fire(true, watermark, out)
    }

    fn on_time(&mut self, now: Timestamp, out: &mut Output<Out>) -> Result<Timestamp> {
        self.now = now;
        self.fire(false, now, out)?;
        Ok(self.processing_timers.next().unwrap_or(Timestamp::MAX))
    }

    fn snapshot(&mut self, _: &Barrier, snapshot: &mut OperatorSnapshot<'_>) -> Result<()> {
        snapshot.add(WATERMARK_STATE, Redistribution::Union, &[self.watermark])
    }
}
