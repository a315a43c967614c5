//! Timers: a key asks to be called at a time. They are state: a restore has them all.

use flott_core::hash::stable_hash;
use flott_core::time::Timestamp;
use flott_core::{Data, Result};
use flott_state::{Checkpointed, KeyedTable, TimeIndex};

use crate::context::TaskContext;
use crate::operator::StateVisitor;

/// The timers of one kind of time, of all keys of a subtask. A key has at most one at a time.
pub struct TimerService<K> {
    table: KeyedTable<K, Timestamp, ()>,
    index: TimeIndex,
}

impl<K: Data + Eq> TimerService<K> {
    /// No timers yet. `name` is the name of their state.
    pub fn new(name: &str, cx: &TaskContext) -> Self {
        Self { table: cx.table(name), index: TimeIndex::default() }
    }

    /// Asks for a call at `time`; asking twice is asking once.
    pub fn register(&mut self, hash: u64, key: &K, time: Timestamp) {
        let mut is_new = false;
        self.table.get_or_insert_with(hash, key, time, || is_new = true);
        if is_new {
            self.index.insert(time, hash);
        }
    }

    /// Takes a wish back.
    pub fn delete(&mut self, hash: u64, key: &K, time: Timestamp) {
        if self.table.remove(hash, key, &time).is_some() {
            self.index.remove(time, hash);
        }
    }

    /// The earliest time at which something may be due.
    pub fn next(&self) -> Option<Timestamp> {
        self.index.next()
    }

    /// Removes the keys of the earliest time, if it is not after `limit`, and appends them with
    /// their hashes to `due`. Returns the time.
    pub fn pop_until(&mut self, limit: Timestamp, due: &mut Vec<(u64, K)>) -> Option<Timestamp> {
        let (time, hashes) = self.index.pop_until(limit)?;
        for hash in hashes {
            if let Some((key, ())) = self.table.take_by_hash(hash, &time) {
                due.push((hash, key));
            }
        }
        Some(time)
    }

    /// Shows the timers as keyed state.
    pub fn states(&mut self, visit: StateVisitor<'_>) -> Result<()> {
        self.table.set_index_bytes(self.index.bytes());
        visit(&mut self.table as &mut dyn Checkpointed)
    }

    /// Builds the index of restored timers.
    pub fn restored(&mut self) -> Result<()> {
        let Self { table, index } = self;
        index.clear();
        table.visit(|key, time, ()| {
            index.insert(*time, stable_hash(key));
            Ok(())
        })
    }
}
