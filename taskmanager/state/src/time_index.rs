//! Which entries of a table are due when. The index is derived: after a restore it is built from
//! the table again, so it is never part of a snapshot.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use flott_core::time::Timestamp;

/// The hashes of entries by the time at which something is due for them.
///
/// A hash may stand for an entry that is gone, or for several: whoever pops it looks.
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
}

impl TimeIndex {
    /// Notes that something is due at `time` for the key with this hash.
    pub fn insert(&mut self, time: Timestamp, hash: u64) {
        self.due.entry(time).or_default().push(hash);
    }

    /// Takes back one note of `hash` at `time`.
    pub fn remove(&mut self, time: Timestamp, hash: u64) {
        if let Entry::Occupied(mut hashes) = self.due.entry(time) {
            if let Some(position) = hashes.get().iter().position(|noted| *noted == hash) {
                hashes.get_mut().remove(position);
            }
            if hashes.get().is_empty() {
                hashes.remove();
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
        let first = self.due.first_entry()?;
        (*first.key() <= limit).then(|| first.remove_entry())
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.due.clear();
    }
}
