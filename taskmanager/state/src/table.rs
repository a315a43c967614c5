//! A table of keyed state that knows what changed since the last checkpoint, and how to go back to it.
//!
//! Invariants:
//! - `entry.epoch() == table.epoch` exactly if the entry was written since the last freeze. So only the *first* change of
//!   an entry in an epoch is anybody's concern: all others are plain writes to memory.
//! - Changes are counted from the last freeze that was not detached; the epoch that it began is `since` of each group.
//!   `entry.epoch() >= since` exactly if the entry was written since then. It is in its group's `dirty` list then, unless
//!   the group is not tracked, and in its undo log, unless it is new: further changes add nothing to either.
//! - While a group is frozen, its entries with an older epoch still have the value that they had at the
//!   freeze. Whoever changes or removes such an entry writes it to the group's `written` first, unless it is
//!   marked as written already.
//! - A group is tracked after its first full snapshot. Before that, and when the lists outgrow the
//!   table, its next snapshot is a base.
//! - The undo log of a group has each entry of an older epoch as it was before it changed or went.
//!
//! When memory is not enough, a table becomes *cold*: entries go to a store on disk, and its snapshots are lists of that
//! store's files. Then there are these besides:
//! - What is in memory counts. Of a key that is not, a tombstone of its group says that it is gone, and only else the
//!   store is asked. A key has an entry or a tombstone in memory, never both.
//! - A clean entry is in the store as it is. It has an older epoch, so whatever changes it is a first change, and takes
//!   the mark off.
//! - While a snapshot is under way, nothing goes to the store but the snapshot itself: what is younger would lie below
//!   it there, and be shadowed by what was before.
//!
//! - `changes`, `undo`, `checkpoint`: a table in memory; `migrate`: what another version of the job left
//! - `cold`: a table that is on disk too; `evict`: what goes there when; `flush`: its snapshots

use std::sync::{Arc, OnceLock};

use flott_core::hash::stable_hash;
use flott_core::key_group::{KeyGroup, KeyGroupRange, group_of};
use flott_core::{Data, Error, Result};
use hashbrown::HashTable;
use hashbrown::hash_table::Entry as Slot;

use crate::budget::{Account, StateBackend, StateUsage};
use crate::columns::StateColumns;

mod changes;
mod checkpoint;
mod cold;
mod evict;
mod flush;
mod heap;
mod migrate;
mod undo;

use changes::Changes;
use cold::Cold;
use heap::HeapEstimate;

/// What state of one key is divided by: nothing, a window, or a time. Equal ones have the same form in the codec, as
/// equal keys must.
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

/// The bit of [`Entry::epoch`] that says that the store on disk has the entry as it is.
const CLEAN: u32 = 1 << 29;

/// The epoch of an entry that was just read from the store.
const FETCHED: u32 = PERSISTED | CLEAN;

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
        self.epoch & !(PERSISTED | WRITTEN | CLEAN)
    }

    fn is_persisted(&self) -> bool {
        self.epoch & PERSISTED != 0
    }

    fn is_written(&self) -> bool {
        self.epoch & WRITTEN != 0
    }

    fn is_clean(&self) -> bool {
        self.epoch & CLEAN != 0
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
///
/// A table that is on disk too reads from there when it is asked for something. If the disk fails then, it unwinds with
/// the [`Error`] as payload: a state that cannot be read is neither there nor absent, and nothing may be computed from it.
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
    /// What is on disk, once the table has gone there.
    cold: Option<Box<Cold>>,
    backend: StateBackend,
    account: Account,
    usage: StateUsage,
    heap: HeapEstimate,
    /// How many entries were restored.
    restored: u64,
}

impl<K: Data + Eq, N: Namespace, V: Data> KeyedTable<K, N, V> {
    /// An empty table for the key groups of `range`, in memory.
    pub fn new(name: impl Into<String>, range: KeyGroupRange, max_parallelism: u32) -> Self {
        Self::with_backend(name, range, max_parallelism, &StateBackend::default())
    }

    /// An empty table for the key groups of `range`, in memory as far as `backend` lets it.
    pub fn with_backend(
        name: impl Into<String>,
        range: KeyGroupRange,
        max_parallelism: u32,
        backend: &StateBackend,
    ) -> Self {
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
            cold: None,
            backend: backend.clone(),
            account: backend.budget().open_account(),
            usage: StateUsage::default(),
            heap: HeapEstimate::default(),
            restored: 0,
        }
    }

    #[inline]
    fn group_index(&self, hash: u64) -> usize {
        let group = u32::from(group_of(hash, self.max_parallelism));
        debug_assert!(self.range.contains(group as KeyGroup), "a key of another subtask");
        (group - self.range.start) as usize
    }

    fn group_at(&self, index: usize) -> KeyGroup {
        (self.range.start as usize + index) as KeyGroup
    }

    /// Begins the next epoch. When their numbers are used up, after years, they begin anew.
    fn end_epoch(&mut self) {
        if self.epoch + 1 == CLEAN {
            for (table, changes) in self.tables.iter_mut().zip(&mut self.changes) {
                changes.begin_anew(table, self.epoch);
            }
            self.epoch = 1;
        }
        self.epoch += 1;
    }

    /// The number of entries; when some are on disk, it may be fewer.
    pub fn len(&self) -> usize {
        let on_disk = self.cold.as_ref().map_or(0, |cold| cold.entries as usize);
        self.tables.iter().map(HashTable::len).sum::<usize>() + on_disk
    }

    /// Whether entries may be on disk, or have been: what a value does not save of itself is lost there.
    pub fn is_on_disk(&self) -> bool {
        self.cold.is_some()
    }

    /// Says what an index beside the table takes in memory. It counts like the table itself, but cannot go to disk.
    pub fn set_index_bytes(&self, bytes: u64) {
        self.account.set_index(bytes);
    }

    /// Whether there are certainly no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value of a key whose stable hash is `hash`.
    #[inline]
    pub fn get(&mut self, hash: u64, key: &K, namespace: &N) -> Option<&V> {
        let mixed = namespace.mix(hash);
        let index = self.group_index(hash);
        let group = self.group_at(index);
        match self.tables[index].find_entry(mixed, |entry| entry.key == *key && entry.namespace == *namespace) {
            Ok(entry) => Some(&entry.into_mut().value),
            Err(absent) => {
                let cold = self.cold.as_mut()?;
                let entry = cold.fetch_entry(group, mixed, key, namespace, &mut self.changes[index])?;
                Some(&absent.into_table().insert_unique(mixed, entry, Entry::hash).into_mut().value)
            }
        }
    }

    /// The value of a key, to be changed.
    #[inline]
    pub fn get_mut(&mut self, hash: u64, key: &K, namespace: &N) -> Option<&mut V> {
        let mixed = namespace.mix(hash);
        let index = self.group_index(hash);
        let group = self.group_at(index);
        match self.tables[index].find_entry(mixed, |entry| entry.key == *key && entry.namespace == *namespace) {
            Ok(entry) => {
                let entry = entry.into_mut();
                if entry.epoch() != self.epoch {
                    self.changes[index].first_change(entry, mixed, self.epoch, &mut self.error);
                }
                Some(&mut entry.value)
            }
            Err(absent) => {
                let cold = self.cold.as_mut()?;
                let mut entry = cold.fetch_entry(group, mixed, key, namespace, &mut self.changes[index])?;
                self.changes[index].first_change(&mut entry, mixed, self.epoch, &mut self.error);
                Some(&mut absent.into_table().insert_unique(mixed, entry, Entry::hash).into_mut().value)
            }
        }
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
                let changes = &mut self.changes[index];
                let mut epoch = self.epoch;
                if let Some(cold) = &mut self.cold {
                    let place = ((self.range.start as usize + index) as KeyGroup, mixed);
                    match cold.claim(place, key, &namespace, changes, epoch, &mut self.error) {
                        Ok(entry) => return &mut vacant.insert(entry).into_mut().value,
                        Err(bits) => epoch |= bits,
                    }
                }
                changes.insertion(mixed);
                let entry = Entry { epoch, key: key.clone(), namespace, value: make() };
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

    /// Sets the value of a key. Unlike [`Self::insert`], it reads nothing from disk.
    pub fn put(&mut self, hash: u64, key: &K, namespace: N, value: V) {
        if self.cold.is_none() {
            self.insert(hash, key, namespace, value);
            return;
        }
        let mixed = namespace.mix(hash);
        let index = self.group_index(hash);
        let changes = &mut self.changes[index];
        let slot =
            self.tables[index].entry(mixed, |entry| entry.key == *key && entry.namespace == namespace, Entry::hash);
        match slot {
            Slot::Occupied(occupied) => {
                let entry = occupied.into_mut();
                if entry.epoch() != self.epoch {
                    changes.first_change(entry, mixed, self.epoch, &mut self.error);
                }
                entry.value = value;
            }
            Slot::Vacant(vacant) => {
                changes.revive(mixed, key, &namespace);
                changes.insertion(mixed);
                // The store may have it.
                vacant.insert(Entry { epoch: self.epoch | PERSISTED, key: key.clone(), namespace, value });
            }
        }
    }

    /// Removes a key and returns its value.
    pub fn remove(&mut self, hash: u64, key: &K, namespace: &N) -> Option<V> {
        let mixed = namespace.mix(hash);
        let index = self.group_index(hash);
        match self.remove_where(index, mixed, |entry| entry.key == *key && entry.namespace == *namespace) {
            Some((_, _, value)) => Some(value),
            None => {
                let (group, changes) = (self.group_at(index), &mut self.changes[index]);
                let entry: Entry<K, N, V> = self.cold.as_mut()?.fetch_entry(group, mixed, key, namespace, changes)?;
                changes.removal(&entry, self.epoch, &mut self.error);
                Some(entry.value)
            }
        }
    }

    /// Removes one entry of `namespace` whose key has the stable hash `hash`, and returns it. Called again, it
    /// returns the next: keys with equal hashes are rare, but they exist.
    pub fn take_by_hash(&mut self, hash: u64, namespace: &N) -> Option<(K, V)> {
        let mixed = namespace.mix(hash);
        let index = self.group_index(hash);
        let is_wanted = |entry: &Entry<K, N, V>| entry.namespace == *namespace && entry.hash() == mixed;
        let mut taken = self.remove_where(index, mixed, is_wanted);
        if taken.is_none() && self.cold.is_some() {
            self.fetch_by_hash(index, mixed, namespace);
            taken = self.remove_where(index, mixed, is_wanted);
        }
        taken.map(|(key, _, value)| (key, value))
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

    /// Removes all entries and gives each to `take`. When that fails, what it was not given of the key group is gone too.
    pub fn take_all(&mut self, mut take: impl FnMut(K, N, V) -> Result<()>) -> Result<()> {
        self.end_spill()?;
        for index in 0..self.tables.len() {
            let on_disk = self.leave_disk(index)?;
            let (table, changes) = (std::mem::take(&mut self.tables[index]), &mut self.changes[index]);
            // All before the first is taken, since that may fail.
            for entry in &table {
                changes.removal(entry, self.epoch, &mut self.error);
            }
            if let Some(mut on_disk) = on_disk {
                changes.forget_disk();
                while let Some((key, namespace, value)) = on_disk.next_entry(&table, changes)? {
                    take(key, namespace, value)?;
                }
            }
            for entry in table {
                take(entry.key, entry.namespace, entry.value)?;
            }
        }
        Ok(())
    }

    /// The values of `namespace` whose keys have the stable hash `hash`.
    pub fn find_by_hash(&mut self, hash: u64, namespace: &N) -> impl Iterator<Item = (&K, &V)> {
        let mixed = namespace.mix(hash);
        let index = self.group_index(hash);
        if self.cold.is_some() {
            // Another key with this hash may be there, even if one is in memory.
            self.fetch_by_hash(index, mixed, namespace);
        }
        self.tables[index]
            .iter_hash(mixed)
            .filter(move |entry| entry.namespace == *namespace && entry.hash() == mixed)
            .map(|entry| (&entry.key, &entry.value))
    }

    /// Shows all entries, in no particular order. Those on disk are read one after another and stay there.
    pub fn visit(&self, mut visit: impl FnMut(&K, &N, &V) -> Result<()>) -> Result<()> {
        for (index, table) in self.tables.iter().enumerate() {
            table.iter().try_for_each(|entry| visit(&entry.key, &entry.namespace, &entry.value))?;
            if let Some(mut on_disk) = self.on_disk(index)? {
                while let Some((key, namespace, value)) = on_disk.next_entry(table, &self.changes[index])? {
                    visit(&key, &namespace, &value)?;
                }
            }
        }
        Ok(())
    }

    /// All entries that are in memory, in no particular order: all that there are unless the table has gone to disk.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &N, &V)> {
        self.tables.iter().flatten().map(|entry| (&entry.key, &entry.namespace, &entry.value))
    }
}

#[cfg(test)]
mod cold_tests;
#[cfg(test)]
mod migrate_tests;
#[cfg(test)]
mod rewind_tests;
#[cfg(test)]
mod testing;
#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;
