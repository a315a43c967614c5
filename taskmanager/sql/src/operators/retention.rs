//! `table.exec.state.ttl`: what has not been used for so long that it goes. Time is that of the machine.
//!
//! An operator is told the time before it gets rows, so what is over is gone before it is asked for.

use flott_core::Result;
use flott_core::hash::stable_hash;
use flott_core::time::Timestamp;
use flott_operators::operator::StateVisitor;
use flott_state::{KeyedTable, TimeIndex};

use crate::program::OperatorContext;
use crate::row::RowBytes;

/// When to look at which key. Whoever has keys knows when what is kept of them was used.
///
/// A key has one note as long as something is kept of it. It is not renewed with each use: when it is due, who looks finds
/// out how much longer the key stays, and [notes](Retention::note) that.
#[derive(Debug)]
pub(crate) struct Retention {
    ttl_ms: i64,
    now: Timestamp,
    due: TimeIndex,
}

impl Retention {
    /// Keeps what was used within so long; with 0, everything.
    pub(crate) fn new(ttl_ms: u64) -> Self {
        Self { ttl_ms: i64::try_from(ttl_ms).unwrap_or(i64::MAX), now: 0, due: TimeIndex::default() }
    }

    /// Whether anything ever goes.
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.ttl_ms > 0
    }

    /// The time that it is.
    #[inline]
    pub(crate) fn now(&self) -> Timestamp {
        self.now
    }

    /// Whether what was used at `used` last has been unused for too long.
    pub(crate) fn is_over(&self, used: Timestamp) -> bool {
        self.is_on() && used.saturating_add(self.ttl_ms) <= self.now
    }

    /// A key of which something is kept, the oldest part of it since `used`.
    pub(crate) fn note(&mut self, used: Timestamp, hash: u64) {
        if self.is_on() {
            self.due.insert(used.saturating_add(self.ttl_ms), hash);
        }
    }

    /// The clock has come this far. Returns the hashes of the keys to look at.
    pub(crate) fn advance(&mut self, now: Timestamp) -> Vec<u64> {
        self.now = self.now.max(now);
        let mut due = Vec::new();
        while let Some((_, hashes)) = self.due.pop_until(self.now) {
            due.extend(hashes);
        }
        due
    }

    /// When to be told the time next.
    pub(crate) fn next(&self) -> Timestamp {
        self.due.next().unwrap_or(Timestamp::MAX)
    }

    /// What the notes take in memory.
    pub(crate) fn bytes(&self) -> u64 {
        self.due.bytes()
    }

    /// Forgets all notes: keys are about to be noted anew.
    pub(crate) fn clear(&mut self) {
        self.due.clear();
    }
}

/// When keys were used last, for operators that keep one thing of a key, or let all of it go together.
///
/// It is a state of its own, and is empty where nothing ever goes. So operators keep their state in whatever form they like,
/// and pay nothing for this where it is not wanted.
pub(crate) struct Usage {
    retention: Retention,
    table: KeyedTable<RowBytes, (), Timestamp>,
}

impl Usage {
    /// Keys go that have been unused for so long; with 0, none does.
    pub(crate) fn new(ttl_ms: u64, cx: &OperatorContext<'_>) -> Self {
        Self { retention: Retention::new(ttl_ms), table: cx.task.table("used") }
    }

    /// Whether keys ever go.
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.retention.is_on()
    }

    /// A key is used.
    #[inline]
    pub(crate) fn touch(&mut self, hash: u64, key: &RowBytes) {
        let now = self.retention.now();
        if self.is_on()
            && self.table.get(hash, key, &()) != Some(&now)
            && self.table.insert(hash, key, (), now).is_none()
        {
            self.retention.note(now, hash);
        }
    }

    /// The clock has come this far. Returns the keys that go, with their hashes. One that must not go is to be
    /// [touched](Usage::touch).
    pub(crate) fn expire(&mut self, now: Timestamp) -> Vec<(u64, RowBytes)> {
        let mut gone = Vec::new();
        for hash in self.retention.advance(now) {
            let found: Vec<(RowBytes, Timestamp)> =
                self.table.find_by_hash(hash, &()).map(|(key, used)| (key.clone(), *used)).collect();
            let mut oldest = None;
            for (key, used) in found {
                if self.retention.is_over(used) {
                    self.table.remove(hash, &key, &());
                    gone.push((hash, key));
                } else {
                    oldest = Some(oldest.map_or(used, |oldest: Timestamp| oldest.min(used)));
                }
            }
            if let Some(oldest) = oldest {
                self.retention.note(oldest, hash);
            }
        }
        gone
    }

    /// When to be told the time next.
    pub(crate) fn next(&self) -> Timestamp {
        self.retention.next()
    }

    /// Shows the keys as keyed state.
    pub(crate) fn states(&mut self, visit: StateVisitor<'_>) -> Result<()> {
        self.table.set_index_bytes(self.retention.bytes());
        visit(&mut self.table)
    }

    /// The state has been restored.
    pub(crate) fn restored(&mut self) -> Result<()> {
        let Self { table, retention } = self;
        retention.clear();
        if !retention.is_on() {
            // What was noted when keys still went is of no use.
            return table.take_all(|_, (), _| Ok(()));
        }
        table.visit(|key, (), used| {
            retention.note(*used, stable_hash(key));
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_looked_at_once_it_may_be_over() {
        let mut retention = Retention::new(10);
        assert_eq!(retention.advance(100), Vec::<u64>::new());
        retention.note(100, 7);
        assert_eq!(retention.next(), 110);
        assert_eq!(retention.advance(109), Vec::<u64>::new());
        assert!(!retention.is_over(100));
        assert_eq!(retention.advance(110), [7]);
        assert!(retention.is_over(100) && !retention.is_over(101));
        assert_eq!(retention.next(), Timestamp::MAX);
    }

    #[test]
    fn nothing_goes_without_a_time_to_live() {
        let mut retention = Retention::new(0);
        retention.note(0, 7);
        assert_eq!(retention.advance(Timestamp::MAX), Vec::<u64>::new());
        assert!(!retention.is_over(0));
    }
}
