//! Keeps a table to its share of memory.
//!
//! Clean entries can be dropped at any time. When there are none left, entries are written to a new run first
//! (`flush`), and are clean then. Which goes is decided by a clock: groups take turns, and of a group all that did
//! not change since it was written goes, until its table can be made half as large. Whether an entry is read is not noted, since
//! that would burden every access: one that is needed comes back.

use flott_core::{Data, Result};

use super::changes::Changes;
use super::{Entry, Group, KeyedTable, Namespace};
use crate::budget::StateUsage;

/// Places of a table that are looked at in one step: well below a millisecond's worth.
const VISITS: usize = 16 << 10;

/// Entries that are written in one step: about two milliseconds' worth, and twice that when the limit is exceeded.
const SPILL_ENTRIES: usize = 8 << 10;

/// How large runs become that make room, and which part of the budget: until a run is complete its entries stay.
const RUN_BYTES_MAX: u64 = 32 << 20;
const RUN_PART: u64 = 16;

/// Tables with no more room than this are emptied: half of them is not worth anything.
const SMALL: usize = 64;

/// What is not worth being written, as a part of the budget: what fills the memory then is something else.
const DIRTY_PART: u64 = 1024;

/// How far a table has come.
#[derive(Debug, Default)]
pub(super) struct Hand {
    /// The group that gives up entries, its next bucket, and how many entries it keeps.
    group: usize,
    bucket: usize,
    keep: usize,
    /// The group that is written.
    pub(super) spilling: usize,
    /// Whether a run is being written to make room.
    pub(super) is_spilling: bool,
}

impl<K: Data + Eq, N: Namespace, V: Data> KeyedTable<K, N, V> {
    /// Says what the table takes, and gives up a little if that is too much. Returns whether there is more to do.
    pub(super) fn keep_to_budget(&mut self) -> Result<bool> {
        self.heap.sample(&self.tables);
        if self.backend.is_disk() && !self.is_draining() {
            self.go_cold()?;
        }
        let mut has_more = match &mut self.cold {
            Some(cold) => cold.merge()?,
            None => false,
        };
        self.settle();
        if self.account.must_shrink() {
            if self.cold.is_none() && (self.is_draining() || !self.go_cold()?) {
                return Ok(false);
            }
            let gave_way = self.evict() || (!self.is_draining() && self.make_room()?);
            self.settle();
            has_more |= gave_way && self.account.must_shrink();
        }
        Ok(has_more)
    }

    fn settle(&mut self) {
        let entries = self.entry_bytes();
        let bytes = entries + self.other_bytes();
        self.account.set(bytes, entries);
        let index_bytes = self.account.index();
        self.usage = StateUsage {
            entries: self.len() as u64,
            memory_bytes: bytes + index_bytes,
            index_bytes,
            disk_bytes: self.cold.as_ref().map_or(0, |cold| cold.disk_bytes()),
        };
    }

    /// Writes some more entries. Returns whether it makes sense to go on.
    fn make_room(&mut self) -> Result<bool> {
        let limit = self.backend.budget().limit();
        let is_begun = self.cold.as_ref().is_some_and(|cold| cold.hand.is_spilling);
        if !is_begun && self.dirty_bytes() < limit / DIRTY_PART {
            return Ok(false);
        }
        let budget = if self.account.is_exceeded() { 2 * SPILL_ENTRIES } else { SPILL_ENTRIES };
        self.spill(budget, RUN_BYTES_MAX.min(limit / RUN_PART))
    }

    /// What entries take that cannot be dropped yet, tombstones among them.
    fn dirty_bytes(&self) -> u64 {
        let groups = self.tables.iter().zip(&self.changes);
        let count = |(table, changes): (&Group<K, N, V>, &Changes<K, N>)| {
            let (clean, tombstones) =
                changes.cold.as_deref().map_or((0, 0), |part| (part.clean, part.tombstones.len()));
            table.len().saturating_sub(clean) + tombstones
        };
        let entries: usize = groups.map(count).sum();
        (entries * size_of::<Entry<K, N, V>>()) as u64 + self.heap.bytes(entries)
    }

    /// Drops clean entries, and makes tables smaller. Returns whether there was any of either.
    fn evict(&mut self) -> bool {
        let is_writing = self.is_draining() || self.cold.as_ref().is_some_and(|cold| cold.hand.is_spilling);
        let surplus = self.account.surplus();
        let bytes_each = size_of::<Entry<K, N, V>>() as u64 + self.heap.bytes(1);
        let Self { tables, changes, cold, epoch, .. } = self;
        let Some(cold) = cold.as_deref_mut() else { return false };
        let hand = &mut cold.hand;
        let (mut visits, mut passed, mut evicted, mut has_shrunk) = (VISITS, 0, 0_u64, false);
        while visits > 0 && passed <= tables.len() && evicted * bytes_each < surplus {
            let table = &mut tables[hand.group];
            let mut no_clean = 0;
            let clean = changes[hand.group].cold.as_deref_mut().map_or(&mut no_clean, |part| &mut part.clean);
            if hand.bucket == 0 {
                hand.keep = if table.capacity() > SMALL { table.capacity() / 4 } else { 0 };
            }
            let mut is_done = *clean == 0 || table.len() <= hand.keep;
            while !is_done && visits > 0 {
                if let Ok(slot) = table.get_bucket_entry(hand.bucket) {
                    let entry = slot.get();
                    // What the run that is being written has is not in the store yet.
                    if entry.is_clean() && (!is_writing || entry.epoch() + 1 < *epoch) {
                        slot.remove();
                        *clean = clean.saturating_sub(1);
                        evicted += 1;
                    }
                }
                hand.bucket += 1;
                visits -= 1;
                is_done = *clean == 0 || table.len() <= hand.keep || hand.bucket >= table.num_buckets();
            }
            if is_done {
                // With some room, so that it does not grow again at once.
                let (room, before) = (table.len() + table.len() / 4, table.capacity());
                if room < before / 2 || table.is_empty() {
                    table.shrink_to(room, Entry::hash);
                    has_shrunk |= table.capacity() < before;
                }
                hand.bucket = 0;
                hand.group = (hand.group + 1) % tables.len();
                passed += 1;
            }
        }
        cold.entries += evicted;
        evicted > 0 || has_shrunk
    }
}
