//! Which entries of a table are due when. The index is derived: after a restore it is built from
//! the table again, so it is never part of a snapshot.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use flott_core::time::Timestamp;

/// What a time takes in the tree, with its share of nodes that are not full: between 66 and 72 bytes were measured.
const BYTES_A_TIME: usize = 72;

/// The hashes of entries by the time at which something is due for them.
///
/// A hash may stand for an entry that is gone, or for several: whoever pops it looks. All of it is in memory, always.
///
/// ```
/// use flott_state::TimeIndex;
/// let mut index = TimeIndex::default();
/// index.insert(20, 7);
/// index.insert(10, 8);
/// assert_eq!(index.next(), Some(10));
/// assert_eq!(index.pop_until(15), Some((10, vec![8])));
/// assert_eq!(index.pop_until(15), None);
/// ```
#[derive(Debug, Default)]
pub struct TimeIndex {
    due: BTreeMap<Timestamp, Vec<u64>>,
    /// For how many hashes the vectors have room.
    capacity: usize,
}

impl TimeIndex {
    /// Notes that something is due at `time` for the key with this hash.
    pub fn insert(&mut self, time: Timestamp, hash: u64) {
        let hashes = self.due.entry(time).or_default();
        let before = hashes.capacity();
        hashes.push(hash);
        self.capacity += hashes.capacity() - before;
    }

    /// Takes back one note of `hash` at `time`.
    pub fn remove(&mut self, time: Timestamp, hash: u64) {
        if let Entry::Occupied(mut hashes) = self.due.entry(time) {
            if let Some(position) = hashes.get().iter().position(|noted| *noted == hash) {
                hashes.get_mut().remove(position);
            }
            if hashes.get().is_empty() {
                self.capacity -= hashes.remove().capacity();
            }
        }
    }

    /// The earliest time at which something is due.
    pub fn next(&self) -> Option<Timestamp> {
        self.due.first_key_value().map(|(time, _)| *time)
    }

    /// Removes and returns the earliest time, if it is not after `limit`, with the hashes in the
    /// order in which they were inserted.
    pub fn pop_until(&mut self, limit: Timestamp) -> Option<(Timestamp, Vec<u64>)> {
        let first = self.due.first_entry().filter(|first| *first.key() <= limit)?;
        let (time, hashes) = first.remove_entry();
        self.capacity -= hashes.capacity();
        Some((time, hashes))
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// What it takes in memory: hashes to the byte, times by an estimate.
    pub fn bytes(&self) -> u64 {
        (self.due.len() * BYTES_A_TIME + self.capacity * size_of::<u64>()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_it_takes_follows_what_is_in_it() {
        let mut index = TimeIndex::default();
        assert_eq!(index.bytes(), 0);
        for hash in 0..1000 {
            index.insert(hash as i64 / 100, hash);
        }
        let ten_times = index.bytes();
        assert!((8_720..20_000).contains(&ten_times), "{ten_times}");
        for hash in 1000..2000 {
            index.insert(hash as i64, hash);
        }
        let sparse = index.bytes() - ten_times;
        assert!((80_000..120_000).contains(&sparse), "{sparse}");
        (1000..2000).for_each(|hash| index.remove(hash as i64, hash));
        assert_eq!(index.bytes(), ten_times);
        index.remove(5, 7);
        assert_eq!(index.bytes(), ten_times, "it was not there");
        while index.pop_until(4).is_some() {}
        assert!(index.bytes() <= ten_times / 2 && index.bytes() > 0, "{}", index.bytes());
        while index.pop_until(Timestamp::MAX).is_some() {}
        assert_eq!(index.bytes(), 0);
    }
}
