//! Session windows: a key's records that follow each other within a gap are one window.
//!
//! A key's open sessions are one value of state, in the order of their time. A record opens a session of
//! the length of the gap; sessions that overlap or touch become one. When time reaches the end of a
//! session it gives its result; within the allowed lateness it can still grow and give another.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use flott_core::hash::stable_hash;
use flott_core::time::Timestamp;
use flott_core::{Batch, Data, Error, Result};
use flott_network::Barrier;
use flott_state::{KeyedTable, TimeIndex, TimeWindow};
use flott_telemetry::TaskCounters;
use serde::{Deserialize, Serialize};

use super::function::WindowFunction;
use super::{LateRows, WindowClock, WindowOptions, WindowTime};
use crate::context::TaskContext;
use crate::key::{KeyExtractor, ensure_hashes};
use crate::operator::{OpenContext, Operator, OperatorSnapshot, StateVisitor};
use crate::push::Output;

/// A session that has not been cleaned up.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Session<S> {
    window: TimeWindow,
    state: S,
    has_fired: bool,
    /// The time at which the index has the session, if that is not its own [`next_time`](Session::next_time): a session
    /// that grows keeps its place and is looked at too early once, instead of being noted with every record. It is
    /// forgotten when the session goes to disk.
    #[serde(skip)]
    noted: Option<Timestamp>,
}

impl<S> Session<S> {
    /// When something is due for it: its result, then its end.
    fn next_time(&self, options: &WindowOptions) -> Timestamp {
        let end = self.window.max_timestamp();
        if self.has_fired { options.cleanup_time(end) } else { end }
    }

    fn noted_time(&self, options: &WindowOptions) -> Timestamp {
        self.noted.unwrap_or_else(|| self.next_time(options))
    }
}

/// Runs a [`WindowFunction`] over session windows.
pub struct SessionWindowOperator<K, T, Out, F: WindowFunction<K, T, Out>> {
    function: F,
    gap_ms: i64,
    options: WindowOptions,
    extractor: Arc<dyn KeyExtractor<T, K>>,
    counters: Arc<TaskCounters>,
    table: KeyedTable<K, (), Vec<Session<F::State>>>,
    /// The times at which a session of a key may be due or to be cleaned up; whether one is, its sessions tell.
    due: TimeIndex,
    clock: WindowClock,
    keys: Vec<K>,
    late: LateRows<T>,
    buffer: Batch<Out>,
}

impl<K, T, Out, F> SessionWindowOperator<K, T, Out, F>
where
    K: Data + Eq,
    T: Data,
    Out: Data,
    F: WindowFunction<K, T, Out>,
{
    /// Runs `function` over sessions that end `gap` after their last record.
    pub fn new(
        function: F,
        gap: Duration,
        options: WindowOptions,
        extractor: Arc<dyn KeyExtractor<T, K>>,
        cx: &TaskContext,
    ) -> Result<Self> {
        let gap_ms = i64::try_from(gap.as_millis()).unwrap_or(i64::MAX);
        if gap_ms == 0 {
            return Err(Error::input("a session's gap must be at least one millisecond"));
        }
        Ok(Self {
            function,
            gap_ms,
            clock: WindowClock::new(options.time),
            options,
            extractor,
            counters: Arc::clone(&cx.counters),
            table: cx.table("sessions"),
            due: TimeIndex::default(),
            keys: Vec::new(),
            late: LateRows::new(),
            buffer: Batch::default(),
        })
    }

    /// Gives the results of the sessions that ended by `self.clock.now` and forgets those past their lateness.
    fn fire(&mut self, out: &mut Output<Out>) -> Result<()> {
        while let Some((time, hashes)) = self.due.pop_until(self.clock.now) {
            let mut seen = HashSet::new();
            for hash in hashes.into_iter().filter(|hash| seen.insert(*hash)) {
                let mut is_noted = false;
                // Two keys may share a hash: each look takes the next key that is noted for this time.
                while let Some(key) = self.noted_key(hash, time) {
                    is_noted = true;
                    self.wake_key(hash, &key, time)?;
                }
                if !is_noted || self.table.is_on_disk() {
                    self.note_again(hash, time);
                }
                if self.buffer.len() >= Batch::<Out>::ROWS_MAX {
                    out.push(&mut self.buffer)?;
                }
            }
        }
        out.push(&mut self.buffer)
    }

    fn noted_key(&mut self, hash: u64, time: Timestamp) -> Option<K> {
        let mut keys = self.table.find_by_hash(hash, &());
        let options = &self.options;
        keys.find(|(_, sessions)| sessions.iter().any(|session| session.noted_time(options) <= time))
            .map(|(key, _)| key.clone())
    }

    /// Sessions that were on disk in the meantime have forgotten where they are noted, which may have been here, beside
    /// another one that is: they are, for when they are due.
    fn note_again(&mut self, hash: u64, time: Timestamp) {
        for (_, sessions) in self.table.find_by_hash(hash, &()) {
            let next = sessions.iter().map(|session| session.next_time(&self.options)).filter(|next| *next > time);
            next.for_each(|next| self.due.insert(next, hash));
        }
    }

    /// Does what is due at `time` for the sessions that are noted for it, and notes when to look at them next.
    fn wake_key(&mut self, hash: u64, key: &K, time: Timestamp) -> Result<()> {
        let Some(sessions) = self.table.get_mut(hash, key, &()) else { return Ok(()) };
        let options = &self.options;
        for session in sessions.iter_mut().filter(|session| session.noted_time(options) <= time) {
            session.noted = None;
            let end = session.window.max_timestamp();
            if !session.has_fired && end <= time {
                session.has_fired = true;
                self.function.results(key, session.window, &session.state, &mut self.buffer.rows)?;
                self.buffer.timestamps.resize(self.buffer.rows.len(), end);
            }
            let next = session.next_time(options);
            if next > time {
                self.due.insert(next, hash);
            }
        }
        sessions.retain(|session| !session.has_fired || session.next_time(options) > time);
        if sessions.is_empty() {
            self.table.remove(hash, key, &());
        }
        Ok(())
    }

    /// Adds a record to the sessions of its key. Returns it if it is late for all of them.
    fn add(&mut self, hash: u64, key: &K, row: T, timestamp: Timestamp) -> Result<Option<T>> {
        let mut window = TimeWindow { start: timestamp, end: timestamp.saturating_add(self.gap_ms) };
        // Met sessions decide whether the record is late: they may reach further than it does itself.
        let mut covered = window;
        if let Some(sessions) = self.table.get(hash, key, &()) {
            sessions.iter().filter(|s| s.window.intersects(window)).for_each(|s| covered = covered.cover(s.window));
        }
        let is_late = self.options.time == WindowTime::Event
            && self.options.cleanup_time(covered.max_timestamp()) <= self.clock.now;
        if is_late {
            return Ok(Some(row));
        }
        let function = &mut self.function;
        let sessions = self.table.get_or_insert_with(hash, key, (), Vec::new);
        let first = sessions.partition_point(|session| session.window.end < window.start);
        let mut merged: Option<F::State> = None;
        let mut noted: Option<Timestamp> = None;
        while first < sessions.len() && sessions[first].window.intersects(window) {
            let session = sessions.remove(first);
            window = window.cover(session.window);
            let time = session.noted_time(&self.options);
            noted = Some(noted.map_or(time, |earlier| earlier.min(time)));
            match &mut merged {
                Some(state) => function.merge(state, session.state),
                None => merged = Some(session.state),
            }
        }
        let state = match merged {
            Some(mut state) => {
                function.add(&mut state, row);
                state
            }
            None => function.create(row),
        };
        let is_due = window.max_timestamp() <= self.clock.now;
        if is_due {
            // Within the allowed lateness: the session gives its result again.
            function.results(key, window, &state, &mut self.buffer.rows)?;
            self.buffer.timestamps.resize(self.buffer.rows.len(), window.max_timestamp());
        }
        let mut session = Session { window, state, has_fired: is_due, noted: None };
        let next = session.next_time(&self.options);
        match noted {
            Some(time) if time > self.clock.now && time <= next => session.noted = Some(time),
            _ => self.due.insert(next, hash),
        }
        sessions.insert(first, session);
        Ok(None)
    }
}

impl<K, T, Out, F> Operator<T, Out> for SessionWindowOperator<K, T, Out, F>
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
        let keys = std::mem::take(&mut self.keys);
        for (index, row) in batch.rows.drain(..).enumerate() {
            let timestamp = self.clock.time_of(&batch.timestamps, index);
            if let Some(late) = self.add(batch.hashes[index], &keys[index], row, timestamp)? {
                self.late.add(late, timestamp);
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
        self.table.set_index_bytes(self.due.bytes());
        visit(&mut self.table)
    }

    fn restored(&mut self) -> Result<()> {
        let Self { table, due, options, .. } = self;
        table.visit(|key, (), sessions| {
            let hash = stable_hash(key);
            sessions.iter().for_each(|session| due.insert(session.next_time(options), hash));
            Ok(())
        })
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
