//! Windows over keyed streams.
//!
//! - [`assigner`]: which windows a record belongs to
//! - [`function`]: what is kept for a window, and what it results in
//! - [`aligned`]: tumbling and sliding windows, which are the same for all keys
//! - [`session`]: session windows, which every key has its own of

pub mod aligned;
pub mod assigner;
pub mod function;
pub mod session;

use flott_checkpoint::Redistribution;
use flott_core::time::{Timestamp, WATERMARK_MAX, WATERMARK_MIN};
use flott_core::{Batch, Data, Error, Result};
use flott_telemetry::TaskCounters;

use crate::operator::{OpenContext, OperatorSnapshot};
use crate::push::Output;
use crate::timestamps::{WATERMARK_STATE, restored_watermark};

/// Whether windows follow the time of the records or of the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowTime {
    /// The records' timestamps and the watermark.
    Event,
    /// The wall clock of the machine.
    Processing,
}

/// What all window operators are told.
#[derive(Clone, Debug)]
pub struct WindowOptions {
    /// Which time counts.
    pub time: WindowTime,
    /// How long after its result a window still takes records, in milliseconds.
    pub allowed_lateness_ms: i64,
    /// The side output for records that are later still; without one they are counted.
    pub late_tag: Option<String>,
}

impl WindowOptions {
    /// When the state of a window that ends at `max_timestamp` goes.
    fn cleanup_time(&self, max_timestamp: Timestamp) -> Timestamp {
        match self.time {
            WindowTime::Event => max_timestamp.saturating_add(self.allowed_lateness_ms),
            WindowTime::Processing => max_timestamp,
        }
    }
}

/// The time by which windows end: that of the records, or that of the clock. It never goes back.
struct WindowClock {
    kind: WindowTime,
    now: Timestamp,
}

impl WindowClock {
    fn new(kind: WindowTime) -> Self {
        Self { kind, now: WATERMARK_MIN }
    }

    /// Takes event time up where it was. The clock of the machine goes on by itself.
    fn restore(&mut self, cx: &mut OpenContext<'_>) -> Result<()> {
        let restored = restored_watermark(cx)?;
        if self.kind == WindowTime::Event {
            self.now = restored;
        }
        Ok(())
    }

    fn snapshot(&self, snapshot: &mut OperatorSnapshot<'_>) -> Result<()> {
        snapshot.add(WATERMARK_STATE, Redistribution::Union, &[self.now])
    }

    /// Whether windows may be due now.
    fn on_watermark(&mut self, watermark: Timestamp) -> bool {
        // Windows of the wall clock end with the input: what they hold is not lost.
        let counts = self.kind == WindowTime::Event || watermark == WATERMARK_MAX;
        if counts {
            self.now = self.now.max(watermark);
        }
        counts
    }

    /// Whether windows may be due now. The clock may be set back; time here never is.
    fn on_time(&mut self, now: Timestamp) -> bool {
        let counts = self.kind == WindowTime::Processing;
        if counts {
            self.now = self.now.max(now);
        }
        counts
    }

    /// Refuses rows that lack the time by which they are put into windows.
    fn check<T>(&self, batch: &Batch<T>) -> Result<()> {
        if self.kind == WindowTime::Event && batch.timestamps.len() != batch.rows.len() {
            return Err(Error::input(
                "records have no timestamps: call assign_timestamps_and_watermarks before an event-time window, or use a processing-time window",
            ));
        }
        Ok(())
    }

    /// The time of row `index`, given the timestamps of its batch.
    fn time_of(&self, timestamps: &[Timestamp], index: usize) -> Timestamp {
        match self.kind {
            WindowTime::Event => timestamps[index],
            WindowTime::Processing => self.now,
        }
    }
}

/// Rows that came too late, on their way to the side output or the counter.
struct LateRows<T> {
    buffer: Batch<T>,
}

impl<T: Data> LateRows<T> {
    fn new() -> Self {
        Self { buffer: Batch::default() }
    }

    fn add(&mut self, row: T, timestamp: Timestamp) {
        self.buffer.rows.push(row);
        self.buffer.timestamps.push(timestamp);
    }

    fn send<Out: Data>(
        &mut self,
        options: &WindowOptions,
        counters: &TaskCounters,
        out: &mut Output<Out>,
    ) -> Result<()> {
        let rows = self.buffer.len() as u64;
        if rows == 0 {
            return Ok(());
        }
        let is_taken = match &options.late_tag {
            Some(tag) => out.sides.push(tag, &mut self.buffer)?,
            None => false,
        };
        if !is_taken {
            counters.late_records_dropped.add(rows);
        }
        self.buffer.clear();
        Ok(())
    }
}
