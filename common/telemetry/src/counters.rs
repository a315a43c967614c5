//! The counters of one subtask.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use flott_control::{StateMetrics, TaskMetrics};
use flott_core::ids::SubtaskId;
use flott_core::time::{Timestamp, WATERMARK_MIN};

// Counters only count: nothing else is published through them, so relaxed ordering is enough.

/// A number that only grows.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds `count`. Call it once a batch, not once a record.
    #[inline]
    pub fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    /// Adds a time, in nanoseconds.
    #[inline]
    pub fn add_time(&self, time: Duration) {
        self.add(time.as_nanos() as u64);
    }

    /// The sum so far.
    #[inline]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A number as it is now.
#[derive(Debug, Default)]
pub struct Gauge(AtomicI64);

impl Gauge {
    /// A gauge that shows `value`.
    pub const fn new(value: i64) -> Self {
        Self(AtomicI64::new(value))
    }

    /// Shows `value` from now on.
    #[inline]
    pub fn set(&self, value: i64) {
        self.0.store(value, Ordering::Relaxed);
    }

    /// What it shows.
    #[inline]
    pub fn get(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// What one subtask counts while it runs. The thread of its slot writes, the heartbeat reads.
#[derive(Debug)]
pub struct TaskCounters {
    /// Records received over all inputs; for a source, those that it read.
    pub records_in: Counter,
    /// Records sent over all outputs.
    pub records_out: Counter,
    /// Bytes received from other subtasks.
    pub bytes_in: Counter,
    /// Bytes sent to other subtasks.
    pub bytes_out: Counter,
    /// Nanoseconds spent processing.
    pub busy_nanos: Counter,
    /// Nanoseconds without anything to process.
    pub idle_nanos: Counter,
    /// Nanoseconds without room in an output.
    pub back_pressured_nanos: Counter,
    /// The current watermark; [`WATERMARK_MIN`] before the first.
    pub watermark: Gauge,
    /// Records that came after their window and went nowhere.
    pub late_records_dropped: Counter,
    /// Malformed records that were skipped by policy.
    pub malformed_records_skipped: Counter,
    /// What its keyed state takes.
    pub state: StateGauge,
}

/// What keyed state takes, as it was last looked at.
#[derive(Debug, Default)]
pub struct StateGauge(Mutex<StateFigures>);

/// What keyed state takes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StateFigures {
    /// Each state of the subtask.
    pub states: Vec<StateMetrics>,
    /// Bytes of memory that all subtasks of its slot take.
    pub slot_bytes: u64,
    /// What they may take.
    pub slot_limit: u64,
}

impl StateGauge {
    /// Shows `figures` from now on.
    pub fn set(&self, figures: StateFigures) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = figures;
    }

    /// What it shows.
    pub fn get(&self) -> StateFigures {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Default for TaskCounters {
    fn default() -> Self {
        Self {
            records_in: Counter::default(),
            records_out: Counter::default(),
            bytes_in: Counter::default(),
            bytes_out: Counter::default(),
            busy_nanos: Counter::default(),
            idle_nanos: Counter::default(),
            back_pressured_nanos: Counter::default(),
            watermark: Gauge::new(WATERMARK_MIN),
            late_records_dropped: Counter::default(),
            malformed_records_skipped: Counter::default(),
            state: StateGauge::default(),
        }
    }
}

impl TaskCounters {
    /// The figures as they are now, for the next heartbeat of `subtask`.
    pub fn snapshot(&self, subtask: SubtaskId) -> TaskMetrics {
        let millis = |nanos: &Counter| nanos.get() / 1_000_000;
        let watermark: Timestamp = self.watermark.get();
        let StateFigures { states, slot_bytes, slot_limit } = self.state.get();
        TaskMetrics {
            subtask,
            records_in: self.records_in.get(),
            records_out: self.records_out.get(),
            bytes_in: self.bytes_in.get(),
            bytes_out: self.bytes_out.get(),
            busy_ms: millis(&self.busy_nanos),
            idle_ms: millis(&self.idle_nanos),
            back_pressured_ms: millis(&self.back_pressured_nanos),
            watermark,
            late_records_dropped: self.late_records_dropped.get(),
            malformed_records_skipped: self.malformed_records_skipped.get(),
            states,
            slot_state_bytes: slot_bytes,
            slot_state_limit: slot_limit,
        }
    }
}

#[cfg(test)]
mod tests {
    use flott_core::ids::OperatorId;

    use super::*;

    #[test]
    fn a_snapshot_shows_what_was_counted() {
        let counters = TaskCounters::default();
        let subtask = SubtaskId { vertex: 2, index: 1 };
        assert_eq!(counters.snapshot(subtask).watermark, WATERMARK_MIN);
        counters.records_in.add(3);
        counters.records_in.add(4);
        counters.bytes_out.add(100);
        counters.busy_nanos.add_time(Duration::from_micros(2_999));
        counters.watermark.set(-5);
        let state = |name: &str, memory_bytes| StateMetrics {
            operator: OperatorId([1; 16]),
            name: name.to_owned(),
            entries: 1,
            memory_bytes,
            index_bytes: 0,
            disk_bytes: 5,
        };
        let states = vec![state("sums", 1 << 20), state("_timers", 1 << 10)];
        counters.state.set(StateFigures { states: states.clone(), slot_bytes: 2 << 20, slot_limit: 4 << 20 });
        let metrics = counters.snapshot(subtask);
        assert_eq!(metrics.subtask, subtask);
        assert_eq!((metrics.records_in, metrics.bytes_out, metrics.busy_ms), (7, 100, 2));
        assert_eq!((metrics.watermark, metrics.state_bytes(), metrics.idle_ms), (-5, (1 << 20) + (1 << 10), 0));
        assert_eq!((metrics.slot_state_bytes, metrics.slot_state_limit), (2 << 20, 4 << 20));
        assert_eq!(metrics.states, states);
    }
}
