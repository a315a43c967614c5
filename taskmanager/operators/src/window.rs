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

use flott_core::time::Timestamp;
use flott_core::{Batch, Data, Result};
use flott_telemetry::TaskCounters;

use crate::push::Output;

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
