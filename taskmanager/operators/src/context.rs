//! What the parts of a chain know about the subtask that they run in.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use flott_connector_spi::{IoHandle, Outlet, SinkContext, Waker};
use flott_core::Data;
use flott_core::config::Configuration;
use flott_core::ids::{Generation, JobId, SubtaskId};
use flott_core::key_group::{KeyGroupRange, range_of};
use flott_state::{KeyedTable, Namespace, StateBackend};
use flott_telemetry::TaskCounters;

use crate::timestamps::SplitSet;

/// The subtask that a chain runs in.
#[derive(Clone)]
pub struct TaskContext {
    /// The job.
    pub job: JobId,
    /// Its execution.
    pub generation: Generation,
    /// The subtask.
    pub subtask: SubtaskId,
    /// The vertex's name.
    pub name: String,
    /// How many subtasks the vertex has.
    pub parallelism: u32,
    /// How many key groups.
    pub max_parallelism: u32,
    /// The configuration of job and cluster.
    pub config: Configuration,
    /// Its figures.
    pub counters: Arc<TaskCounters>,
    /// Where I/O runs.
    pub io: IoHandle,
    /// Says that its source can go on, and wakes its slot's thread.
    pub waker: Waker,
    /// Whether the waker was called since the source was polled.
    pub woken: Arc<AtomicBool>,
    /// What its sink is still to hand out.
    pub outlet: Outlet,
    /// The splits that its source is reading now.
    pub splits: Arc<SplitSet>,
    /// Where its keyed state is kept.
    pub state: StateBackend,
}

impl TaskContext {
    /// The key groups that the subtask owns.
    pub fn key_groups(&self) -> KeyGroupRange {
        range_of(self.parallelism, self.subtask.index, self.max_parallelism)
    }

    /// An empty table for the keyed state `name`.
    pub fn table<K: Data + Eq, N: Namespace, V: Data>(&self, name: &str) -> KeyedTable<K, N, V> {
        KeyedTable::with_backend(name, self.key_groups(), self.max_parallelism, &self.state)
    }

    /// The subtask as users know it: `Map (2/4)`.
    pub fn display_name(&self) -> String {
        format!("{} ({}/{})", self.name, self.subtask.index + 1, self.parallelism)
    }
}

/// What its sink is made with.
impl From<&TaskContext> for SinkContext {
    fn from(cx: &TaskContext) -> Self {
        Self {
            io: cx.io.clone(),
            job: cx.job,
            generation: cx.generation,
            subtask: cx.subtask.index,
            parallelism: cx.parallelism,
            outlet: cx.outlet.clone(),
        }
    }
}
