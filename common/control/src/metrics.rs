//! The figures of a subtask, as its worker reports them with each heartbeat.

use flott_core::ids::{OperatorId, SubtaskId};
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
    /// What each of its keyed states takes.
    pub states: Vec<StateMetrics>,
    /// Bytes of memory that the keyed state of all subtasks in its slot takes.
    pub slot_state_bytes: u64,
    /// What it may take before it goes to disk.
    pub slot_state_limit: u64,
}

impl TaskMetrics {
    /// Bytes of keyed state in memory, estimated.
    pub fn state_bytes(&self) -> u64 {
        self.states.iter().map(|state| state.memory_bytes).sum()
    }
}

/// What a keyed state takes in one subtask, or in several.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateMetrics {
    /// The operator that it belongs to.
    pub operator: OperatorId,
    /// Its name, unique in the operator.
    pub name: String,
    /// How many entries it has; when some are on disk, it may be fewer.
    pub entries: u64,
    /// Bytes in memory, estimated, with the index.
    pub memory_bytes: u64,
    /// Bytes of its index by time, which is always in memory.
    pub index_bytes: u64,
    /// Bytes on the local disk of its TaskManager.
    pub disk_bytes: u64,
}

impl StateMetrics {
    /// Adds what another subtask, or another state, takes.
    pub fn add(&mut self, other: &Self) {
        self.entries += other.entries;
        self.memory_bytes += other.memory_bytes;
        self.index_bytes += other.index_bytes;
        self.disk_bytes += other.disk_bytes;
    }
}
