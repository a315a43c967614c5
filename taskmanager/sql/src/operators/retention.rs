//! `table.exec.state.ttl`: what has not been used for so long goes.

use flott_core::Data;
use flott_core::time::{Timestamp, WATERMARK_MIN};
use flott_state::{KeyedTable, TimeIndex};

use crate::row::RowBytes;

/// Says which keys are unused. Time is that of the machine.
#[derive(Debug)]
pub struct Retention {
    ttl_ms: i64,
    now: Timestamp,
    /// When to look at a key next: it has at most one note, which is renewed when it has been used.
    due: TimeIndex,
}

impl Retention {
    /// Keeps what was used within so long; with 0, everything.
    pub fn new(ttl_ms: u64) -> Self {
        Self { ttl_ms: i64::try_from(ttl_ms).unwrap_or(i64::MAX), now: WATERMARK_MIN, due: TimeIndex::default() }
    }

    /// Whether anything ever goes.
    pub fn is_on(&self) -> bool {
        self.ttl_ms > 0
    }

    /// The time that it is, as far as is known.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// Whether what was used at `used` has been unused for too long.
    pub fn is_over(&self, used: Timestamp) -> bool {
        self.is_on() && self.now != WATERMARK_MIN && used.saturating_add(self.ttl_ms) <= self.now
    }

    /// Notes a key that is new, or was restored.
    pub fn note(&mut self, used: Timestamp, hash: u64) {
        if self.is_on() {
            self.due.insert(used.saturating_add(self.ttl_ms), hash);
        }
    }

    /// The clock has come this far: forgets what is over. `used` says when a value was used last. Returns when to look again.
    pub fn expire<V: Data>(
        &mut self,
        now: Timestamp,
        table: &mut KeyedTable<RowBytes, (), V>,
        used: impl Fn(&V) -> Timestamp,
    ) -> Timestamp {
        self.now = self.now.max(now);
        while let Some((_, hashes)) = self.due.pop_until(self.now) {
            for hash in hashes {
                let found: Vec<(RowBytes, Timestamp)> =
                    table.find_by_hash(hash, &()).map(|(key, value)| (key.clone(), used(value))).collect();
                for (key, used) in found {
                    if self.is_over(used) {
                        table.remove(hash, &key, &());
                    } else {
                        self.due.insert(used.saturating_add(self.ttl_ms).max(self.now + 1), hash);
                    }
                }
            }
        }
        table.set_index_bytes(self.due.bytes());
        self.due.next().unwrap_or(Timestamp::MAX)
    }
}
