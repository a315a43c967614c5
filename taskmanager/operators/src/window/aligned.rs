//! Tumbling and sliding windows.
//!
//! State is kept by key and window. When time reaches the end of a window, every key that has it
//! gives its result; with allowed lateness each later record gives another one, until the window is
//! cleaned up. A record that all its windows are closed for is late.

use std::collections::HashSet;
use std::sync::Arc;

use flott_core::hash::stable_hash;
use flott_core::time::Timestamp;
use flott_core::{Batch, Data, Result};
use flott_network::Barrier;
use flott_state::{KeyedTable, TimeIndex, TimeWindow};
use flott_telemetry::TaskCounters;

use super::assigner::AlignedWindows;
use super::function::WindowFunction;
use super::{LateRows, WindowClock, WindowOptions, WindowTime};
use crate::context::TaskContext;
use crate::key::{KeyExtractor, ensure_hashes};
use crate::operator::{OpenContext, Operator, OperatorSnapshot, StateVisitor};
use crate::push::Output;

/// Runs a [`WindowFunction`] over aligned windows.
pub struct AlignedWindowOperator<K, T, Out, F: WindowFunction<K, T, Out>> {
    function: F,
    windows: AlignedWindows,
    options: WindowOptions,
    extractor: Arc<dyn KeyExtractor<T, K>>,
    counters: Arc<TaskCounters>,
    table: KeyedTable<K, TimeWindow, F::State>,
    /// By the last timestamp of a window, the keys that have it. The window's length follows from the assigner.
    due: TimeIndex,
    /// By the clean-up time, for windows that outlive their first result.
    cleanup: TimeIndex,
    clock: WindowClock,
    keys: Vec<K>,
    late: LateRows<T>,
    buffer: Batch<Out>,
}

impl<K, T, Out, F> AlignedWindowOperator<K, T, Out, F>
where
    K: Data + Eq,
    T: Data,
    Out: Data,
    F: WindowFunction<K, T, Out>,
{
    /// Runs `function` over `windows`.
    pub fn new(
        function: F,
        windows: AlignedWindows,
        options: WindowOptions,
        extractor: Arc<dyn KeyExtractor<T, K>>,
        cx: &TaskContext,
    ) -> Self {
        Self {
            function,
            windows,
            clock: WindowClock::new(options.time),
            options,
            extractor,
            counters: Arc::clone(&cx.counters),
            table: cx.table("windows"),
            due: TimeIndex::default(),
            cleanup: TimeIndex::default(),
            keys: Vec::new(),
            late: LateRows::new(),
            buffer: Batch::default(),
        }
    }

    fn has_lateness(&self) -> bool {
        self.options.cleanup_time(0) > 0
    }

    /// Gives the results of all windows that end by `self.clock.now`, earliest first.
    fn fire(&mut self, out: &mut Output<Out>) -> Result<()> {
        while let Some((max_timestamp, hashes)) = self.due.pop_until(self.clock.now) {
            let window = self.windows.ending_at(max_timestamp);
            let keeps = self.options.cleanup_time(max_timestamp) > self.clock.now;
            let mut seen = HashSet::new();
            for hash in hashes {
                if keeps {
                    // Keys with equal hashes are found together, and must not be found twice.
                    if !seen.insert(hash) {
                        continue;
                    }
                    for (key, state) in self.table.find_by_hash(hash, &window) {
                        self.function.results(key, window, state, &mut self.buffer.rows)?;
                    }
                } else if let Some((key, state)) = self.table.take_by_hash(hash, &window) {
                    self.function.results(&key, window, &state, &mut self.buffer.rows)?;
                }
                if self.buffer.len() >= Batch::<Out>::ROWS_MAX {
                    self.send(max_timestamp, out)?;
                }
            }
            self.send(max_timestamp, out)?;
        }
        while let Some((cleanup_time, hashes)) = self.cleanup.pop_until(self.clock.now) {
            let window = self.windows.ending_at(cleanup_time.saturating_sub(self.options.allowed_lateness_ms));
            for hash in hashes {
                self.table.take_by_hash(hash, &window);
            }
        }
        Ok(())
    }

    /// Sends the results of a window with its last millisecond as their time.
    fn send(&mut self, max_timestamp: Timestamp, out: &mut Output<Out>) -> Result<()> {
        self.buffer.timestamps.resize(self.buffer.rows.len(), max_timestamp);
        out.push(&mut self.buffer)
    }

    fn index(&mut self, hash: u64, window: TimeWindow) {
        let max_timestamp = window.max_timestamp();
        // A window of event time that is already due has fired, or fires with this record. One of the clock fires in its
        // last millisecond, in which more records can come.
        if max_timestamp > self.clock.now || self.options.time == WindowTime::Processing {
            self.due.insert(max_timestamp, hash);
        }
        if self.has_lateness() {
            self.cleanup.insert(self.options.cleanup_time(max_timestamp), hash);
        }
    }
}

impl<K, T, Out, F> Operator<T, Out> for AlignedWindowOperator<K, T, Out, F>
where
    K: Data + Eq,
    T: Data,
    Out: Data,
    F: WindowFunction<K, T, Out>,
{
    fn process(&mut self, batch: &mut Batch<T>, out: &mut Output<Out>) -> Result<()> {
        ensure_hashes(batch, &*self.extractor);
        self.keys.clear();
        self.extractor.keys(&batch.rows, &mut self.keys);
        self.clock.check(batch)?;
        let is_event_time = self.options.time == WindowTime::Event;
        let keys = std::mem::take(&mut self.keys);
        for (index, row) in batch.rows.drain(..).enumerate() {
            let timestamp = self.clock.time_of(&batch.timestamps, index);
            let (hash, key) = (batch.hashes[index], &keys[index]);
            let (mut row, mut is_late) = (Some(row), true);
            let mut windows = self.windows.windows(timestamp).peekable();
            while let Some(window) = windows.next() {
                if is_event_time && self.options.cleanup_time(window.max_timestamp()) <= self.clock.now {
                    continue;
                }
                is_late = false;
                // The last window takes the row itself, the others a copy.
                let value = if windows.peek().is_some() { row.clone() } else { row.take() };
                let Some(value) = value else { break };
                let (mut is_new, function) = (false, &mut self.function);
                let mut value = Some(value);
                let state = self.table.get_or_insert_with(hash, key, window, || {
                    is_new = true;
                    function.create(value.take().expect("a state is created once"))
                });
                if let Some(value) = value {
                    function.add(state, value);
                }
                if is_event_time && window.max_timestamp() <= self.clock.now {
                    // Within the allowed lateness: the window gives its result again.
                    function.results(key, window, state, &mut self.buffer.rows)?;
                    self.buffer.timestamps.resize(self.buffer.rows.len(), window.max_timestamp());
                }
                if is_new {
                    self.index(hash, window);
                }
            }
            // With gaps between windows a record may be in none, and in time all the same.
            let is_late = is_late && is_event_time && self.options.cleanup_time(timestamp) <= self.clock.now;
            if is_late && let Some(row) = row {
                self.late.add(row, timestamp);
            }
        }
        self.keys = keys;
        out.push(&mut self.buffer)?;
        self.late.send(&self.options, &self.counters, out)
    }

    fn open(&mut self, cx: &mut OpenContext<'_>) -> Result<()> {
        self.clock.restore(cx)
    }

    fn states(&mut self, visit: StateVisitor<'_>) -> Result<()> {
        self.table.set_index_bytes(self.due.bytes() + self.cleanup.bytes());
        visit(&mut self.table)
    }

    fn restored(&mut self) -> Result<()> {
        let mut entries = Vec::new();
        self.table.visit(|key, window, _| {
            entries.push((stable_hash(key), *window));
            Ok(())
        })?;
        for (hash, window) in entries {
            self.index(hash, window);
        }
        Ok(())
    }

    fn on_watermark(&mut self, watermark: Timestamp, out: &mut Output<Out>) -> Result<()> {
        if self.clock.on_watermark(watermark) { self.fire(out) } else { Ok(()) }
    }

    fn on_time(&mut self, now: Timestamp, out: &mut Output<Out>) -> Result<Timestamp> {
        if !self.clock.on_time(now) {
            return Ok(Timestamp::MAX);
        }
        self.fire(out)?;
        Ok(self.due.next().unwrap_or(Timestamp::MAX))
    }

    fn snapshot(&mut self, _: &Barrier, snapshot: &mut OperatorSnapshot<'_>) -> Result<()> {
        self.clock.snapshot(snapshot)
    }
}
