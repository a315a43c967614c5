//! A table of keyed state that knows what changed since the last checkpoint, and how to go back to it.
//!
//! Invariants:
//! - `entry.epoch() == table.epoch` exactly if the entry was written since the last freeze; it is then in its
//!   group's `dirty` list, unless the group is not tracked. So only the *first* change of an entry in an epoch is
//!   anybody's concern: all others are plain writes to memory.
//! - While a group is frozen, its entries with an older epoch still have the value that they had at the
//!   freeze. Whoever changes or removes such an entry writes it to the group's `written` first, unless it is
//!   marked as written already.
//! - A group is tracked after its first full snapshot. Before that, and when the lists outgrow the
//!   table, its next snapshot is a base.
//! - The undo log of a group has each entry of an older epoch as it was before it changed or went.

use std::sync::{Arc, OnceLock};

use flott_core::hash::stable_hash;
use flott_core::key_group::{KeyGroup, KeyGroupRange, group_of};
use flott_core::{Data, Error, Result};
use hashbrown::HashTable;
use hashbrown::hash_table::Entry as Slot;

use crate::columns::StateColumns;

mod changes;
mod checkpoint;
mod undo;

use changes::Changes;

/// What state of one key is divided by: nothing, a window, or a time.
pub trait Namespace: Data + Eq + Ord {
    /// The hash of a key in this namespace.
    fn mix(&self, hash: u64) -> u64;
}

impl Namespace for () {
    fn mix(&self, hash: u64) -> u64 {
        hash
    }
}

impl Namespace for i64 {
    fn mix(&self, hash: u64) -> u64 {
        // One folded multiplication, as in wyhash: spreads neighbouring times over the whole word.
        let product = u128::from(*self as u64 ^ 0x9E37_79B9_7F4A_7C15) * u128::from(hash | 1);
        (product >> 64) as u64 ^ product as u64
    }
}

/// The bit of [`Entry::epoch`] that says that an earlier snapshot holds the entry, so that its removal must be recorded.
const PERSISTED: u32 = 1 << 31;

/// The bit of [`Entry::epoch`] that says that the snapshot under way has the entry. It is set only while the base
/// of a group is written in several steps.
const WRITTEN: u32 = 1 << 30;

/// Small, since the table is as fast as it fits into the caches: the hash is computed again where it is needed.
struct Entry<K, N, V> {
    epoch: u32,
    key: K,
    namespace: N,
    value: V,
}

/// The entries of a key group.
type Group<K, N, V> = HashTable<Entry<K, N, V>>;

impl<K: Data, N: Namespace, V> Entry<K, N, V> {
    fn hash(&self) -> u64 {
        self.namespace.mix(stable_hash(&self.key))
    }

    fn epoch(&self) -> u32 {
        self.epoch & !(PERSISTED | WRITTEN)
    }

    fn is_persisted(&self) -> bool {
        self.epoch & PERSISTED != 0
    }

    fn is_written(&self) -> bool {
        self.epoch & WRITTEN != 0
    }
}

impl<K: Data + Eq, N: Namespace, V> Entry<K, N, V> {
    /// Puts an entry from a file or a log into its group, in place of the one that may be there.
    fn put_into(self, group: &mut Group<K, N, V>) {
        let is_same = |other: &Self| other.key == self.key && other.namespace == self.namespace;
        match group.entry(self.hash(), is_same, Entry::hash) {
            Slot::Occupied(mut occupied) => *occupied.get_mut() = self,
            Slot::Vacant(vacant) => {
                vacant.insert(self);
            }
        }
    }
}

/// State of type `V` for every key and namespace of a range of key groups.
pub struct KeyedTable<K, N, V> {
    name: String,
    range: KeyGroupRange,
    max_parallelism: u32,
    tables: Vec<Group<K, N, V>>,
    changes: Vec<Changes<K, N>>,
    epoch: u32,
    /// The next group to drain; the number of groups when no snapshot is under way.
    draining: usize,
    error: Option<Error>,
    columns: OnceLock<Arc<dyn StateColumns>>,
}

impl<K: Data + Eq, N: Namespace, V: Data> KeyedTable<K, N, V> {
    /// An empty table for the key groups of `range`.
    pub fn new(name: impl Into<String>, range: KeyGroupRange, max_parallelism: u32) -> Self {
        Self {
            name: name.into(),
            range,
            max_parallelism,
            tables: (0..range.len()).map(|_| HashTable::new()).collect(),
            changes: (0..range.len()).map(|_| Changes::default()).collect(),
            epoch: 1,
            draining: range.len(),
            error: None,
            columns: OnceLock::new(),
        }
    }

    #[inline]
    fn group_index(&self, hash: u64) -> usize {
        let group = u32::from(group_of(hash, self.max_parallelism));
        debug_assert!(self.range.contains(group as KeyGroup), "a key of another subtask");
        (group - self.range.start) as usize
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.tables.iter().map(HashTable::len).sum()
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value of a key whose stable hash is `hash`.
    #[inline]
    pub fn get(&self, hash: u64, key: &K, namespace: &N) -> Option<&V> {
        self.tables[self.group_index(hash)]
            .find(namespace.mix(hash), |entry| entry.key == *key && entry.namespace == *namespace)
            .map(|entry| &entry.value)
    }

    /// The value of a key, to be changed.
    #[inline]
    pub fn get_mut(&mut self, hash: u64, key: &K, namespace: &N) -> Option<&mut V> {
        let mixed = namespace.mix(hash);
        let index = self.group_index(hash);
        let entry = self.tables[index].find_mut(mixed, |entry| entry.key == *key && entry.namespace == *namespace)?;
        if entry.epoch() != self.epoch {
            self.changes[index].first_change(entry, mixed, self.epoch, &mut self.error);
        }
        Some(&mut entry.value)
    }

    /// The value of a key, to be changed; `make` provides it if there is none.
    #[inline]
    pub fn get_or_insert_with(&mut self, hash: u64, key: &K, namespace: N, make: impl FnOnce() -> V) -> &mut V {
        let mixed = namespace.mix(hash);
        let index = self.group_index(hash);
        let slot =
            self.tables[index].entry(mixed, |entry| entry.key == *key && entry.namespace == namespace, Entry::hash);
        match slot {
            Slot::Occupied(occupied) => {
                let entry = occupied.into_mut();
                if entry.epoch() != self.epoch {
                    self.changes[index].first_change(entry, mixed, self.epoch, &mut self.error);
                }
                &mut entry.value
            }
            Slot::Vacant(vacant) => {
                self.changes[index].insertion(mixed);
                let entry = Entry { epoch: self.epoch, key: key.clone(), namespace, value: make() };
                &mut vacant.insert(entry).into_mut().value
            }
        }
    }

    /// Sets the value of a key and returns the one before.
    pub fn insert(&mut self, hash: u64, key: &K, namespace: N, value: V) -> Option<V> {
        let mut new = Some(value);
        let slot = self.get_or_insert_with(hash, key, namespace, || new.take().expect("make is called once"));
        new.map(|value| std::mem::replace(slot, value))
    }

    /// Removes a key and returns its value.
    pub fn remove(&mut self, hash: u64, key: &K, namespace: &N) -> Option<V> {
        let mixed = namespace.mix(hash);
        let index = self.group_index(hash);
        self.remove_where(index, mixed, |entry| entry.key == *key && entry.namespace == *namespace)
            .map(|(_, _, value)| value)
    }

    /// Removes one entry of `namespace` whose key has the stable hash `hash`, and returns it. Called again, it
    /// returns the next: keys with equal hashes are rare, but they exist.
    pub fn take_by_hash(&mut self, hash: u64, namespace: &N) -> Option<(K, V)> {
        let mixed = namespace.mix(hash);
        let index = self.group_index(hash);
        self.remove_where(index, mixed, |entry| entry.namespace == *namespace && entry.hash() == mixed)
            .map(|(key, _, value)| (key, value))
    }

    fn remove_where(
        &mut self,
        index: usize,
        mixed: u64,
        matches: impl FnMut(&Entry<K, N, V>) -> bool,
    ) -> Option<(K, N, V)> {
        let (table, changes) = (&mut self.tables[index], &mut self.changes[index]);
        let (entry, _) = table.find_entry(mixed, matches).ok()?.remove();
        changes.removal(&entry, self.epoch, &mut self.error);
        if table.len() * 4 < table.capacity() && table.capacity() > 8 {
            // Closed windows and sessions are nobody's: give their memory back.
            table.shrink_to(table.len() * 2, Entry::hash);
        }
        changes.limit(table.len());
        Some((entry.key, entry.namespace, entry.value))
    }

    /// Removes all entries and gives each to `take`.
    pub fn take_all(&mut self, mut take: impl FnMut(K, N, V) -> Result<()>) -> Result<()> {
        for (table, changes) in self.tables.iter_mut().zip(&mut self.changes) {
            // All before the first is taken: when `take` fails, the others of the group are gone as well.
            for entry in &*table {
                changes.removal(entry, self.epoch, &mut self.error);
            }
            for entry in std::mem::take(table) {
                take(entry.key, entry.namespace, entry.value)?;
            }
        }
        Ok(())
    }

    /// The values of `namespace` whose keys have the stable hash `hash`.
    pub fn find_by_hash(&self, hash: u64, namespace: &N) -> impl Iterator<Item = (&K, &V)> {
        let mixed = namespace.mix(hash);
        self.tables[self.group_index(hash)]
            .iter_hash(mixed)
            .filter(move |entry| entry.namespace == *namespace && entry.hash() == mixed)
            .map(|entry| (&entry.key, &entry.value))
    }

    /// All entries, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &N, &V)> {
        self.tables.iter().flatten().map(|entry| (&entry.key, &entry.namespace, &entry.value))
    }
}

#[cfg(test)]
mod rewind_tests;
#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;
