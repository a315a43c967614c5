//! `table.exec.state.ttl`: which keys have not been used for so long that what is kept of them goes.
//!
//! When a key was used is a state of its own, and is empty where nothing ever goes. So operators keep their state in whatever
//! form they like, and pay nothing for this where it is not wanted.

use flott_core::Result;
use flott_core::hash::stable_hash;
use flott_core::time::Timestamp;
use flott_operators::operator::StateVisitor;
use flott_state::{KeyedTable, TimeIndex};

use crate::program::OperatorContext;
use crate::row::RowBytes;

/// When keys were used last, by the clock of the machine.
pub(crate) struct Usage {
    ttl_ms: i64,
    now: Timestamp,
    table: KeyedTable<RowBytes, (), Timestamp>,
    /// When to look at a key next. It has at most one note, which is renewed when the key has been used meanwhile.
    due: TimeIndex,
}

impl Usage {
    /// Keys go that have been unused for so long; with 0, none does.
    pub(crate) fn new(ttl_ms: u64, cx: &OperatorContext<'_>) -> Self {
        let ttl_ms = i64::try_from(ttl_ms).unwrap_or(i64::MAX);
        Self { ttl_ms, now: 0, table: cx.task.table("used"), due: TimeIndex::default() }
    }

    /// Whether keys ever go.
    pub(crate) fn is_on(&self) -> bool {
        self.ttl_ms > 0
    }

    /// A key is used.
    #[inline]
    pub(crate) fn touch(&mut self, hash: u64, key: &RowBytes) {
        if self.is_on()
            && self.table.get(hash, key, &()) != Some(&self.now)
            && self.table.insert(hash, key, (), self.now).is_none()
        {
            self.due.insert(self.now.saturating_add(self.ttl_ms), hash);
        }
    }

    /// The clock has come this far. Returns the keys that go, with their hashes.
    pub(crate) fn expire(&mut self, now: Timestamp) -> Vec<(u64, RowBytes)> {
        self.now = self.now.max(now);
        let mut gone = Vec::new();
        while let Some((_, hashes)) = self.due.pop_until(self.now) {
            for hash in hashes {
                let found: Vec<(RowBytes, Timestamp)> =
                    self.table.find_by_hash(hash, &()).map(|(key, used)| (key.clone(), *used)).collect();
                for (key, used) in found {
                    let end = used.saturating_add(self.ttl_ms);
                    if end <= self.now {
                        self.table.remove(hash, &key, &());
                        gone.push((hash, key));
                    } else {
                        self.due.insert(end, hash);
                    }
                }
            }
        }
        gone
    }

    /// When to be told the time next.
    pub(crate) fn next(&self) -> Timestamp {
        self.due.next().unwrap_or(Timestamp::MAX)
    }

    /// Shows the keys as keyed state.
    pub(crate) fn states(&mut self, visit: StateVisitor<'_>) -> Result<()> {
        self.table.set_index_bytes(self.due.bytes());
        visit(&mut self.table)
    }

    /// The state has been restored.
    pub(crate) fn restored(&mut self) -> Result<()> {
        let Self { table, due, ttl_ms, .. } = self;
        due.clear();
        if *ttl_ms == 0 {
            // What was noted when keys still went is of no use.
            return table.take_all(|_, (), _| Ok(()));
        }
        table.visit(|key, (), used| {
            due.insert(used.saturating_add(*ttl_ms), stable_hash(key));
            Ok(())
        })
    }
}
