//! The figures of a subtask, as its worker reports them with each heartbeat.

use flott_core::ids::SubtaskId;
use flott_core::time::Timestamp;
use serde::{Deserialize, Serialize};

/// Counters since the subtask started, and gauges as they are now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskMetrics {
    /// The subtask.
    pub subtask: SubtaskId,
    /// Records received over all inputs; for a source, those that it read.
    pub records_in: u64,
    /// Records sent over all outputs; for a sink 0.
    pub records_out: u64,
    /// Bytes received from other subtasks.
    pub bytes_in: u64,
    /// Bytes sent to other subtasks.
    pub bytes_out: u64,
    /// Milliseconds spent processing.
    pub busy_ms: u64,
    /// Milliseconds without anything to process.
    pub idle_ms: u64,
    /// Milliseconds without room in an output.
    pub back_pressured_ms: u64,
    /// The current watermark; `i64::MIN` before the first.
    pub watermark: Timestamp,
    /// Records that came after their window and went nowhere.
    pub late_records_dropped: u64,
    /// Malformed records that were skipped by policy.
    pub malformed_records_skipped: u64,
    /// Bytes of keyed state, estimated.
    pub state_bytes: u64,
}
