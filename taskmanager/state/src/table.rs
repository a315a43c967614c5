//! A table of keyed state that knows what changed since the last checkpoint.
//!
//! Invariants:
//! - `entry.epoch() == table.epoch` exactly if the entry was written since the last freeze; it is then in its
//!   group's `dirty` list, unless the group is not tracked.
//! - While a group is frozen, its entries with an older epoch still have the value that they had at the
//!   freeze. Whoever changes or removes such an entry writes it to the group's `written` first.
//! - A group is tracked after its first full snapshot. Before that, and when the lists outgrow the
//!   table, its next snapshot is a base.

use flott_core::codec::{self, Decoder};
use flott_core::hash::stable_hash;
use flott_core::key_group::{KeyGroup, KeyGroupRange, group_of};
use flott_core::{Data, Error, Result};
use hashbrown::HashTable;
use hashbrown::hash_table::Entry as Slot;

use crate::snapshot::{Checkpointed, Section, SectionKind, SnapshotMode, SnapshotWriter};

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

/// Small, since the table is as fast as it fits into the caches: the hash is computed again where it is needed.
struct Entry<K, N, V> {
    epoch: u32,
    key: K,
    namespace: N,
    value: V,
}

impl<K: Data, N: Namespace, V> Entry<K, N, V> {
    fn hash(&self) -> u64 {
        self.namespace.mix(stable_hash(&self.key))
    }

    fn epoch(&self) -> u32 {
        self.epoch & !PERSISTED
    }

    fn is_persisted(&self) -> bool {
        self.epoch & PERSISTED != 0
    }
}

/// What a group still has to write for the snapshot under way.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Frozen {
    Nothing,
    Changes,
    Everything,
}

/// What changed in a group, apart from its table, which every access touches.
struct Changes<K, N> {
    is_tracked: bool,
    dirty: Vec<u64>,
    removed: Vec<(K, N)>,
    frozen: Frozen,
    frozen_dirty: Vec<u64>,
    frozen_removed: Vec<(K, N)>,
    /// Entries of the snapshot under way that had to be written before they changed.
    written: Vec<u8>,
    written_entries: u64,
}

impl<K, N> Default for Changes<K, N> {
    fn default() -> Self {
        Self {
            is_tracked: false,
            dirty: Vec::new(),
            removed: Vec::new(),
            frozen: Frozen::Nothing,
            frozen_dirty: Vec::new(),
            frozen_removed: Vec::new(),
            written: Vec::new(),
            written_entries: 0,
        }
    }
}

impl<K: Data, N: Namespace> Changes<K, N> {
    /// Notes the first change of an entry since the last freeze; `epoch` is the current one.
    #[inline(never)]
    fn first_change<V: Data>(&mut self, entry: &mut Entry<K, N, V>, hash: u64, epoch: u32, error: &mut Option<Error>) {
        self.save(entry, epoch, error);
        entry.epoch = epoch | PERSISTED;
        if self.is_tracked {
            self.dirty.push(hash);
        }
    }

    /// Writes an entry that the snapshot under way still needs, before it changes or goes.
    fn save<V: Data>(&mut self, entry: &Entry<K, N, V>, epoch: u32, error: &mut Option<Error>) {
        let is_needed = match self.frozen {
            Frozen::Nothing => false,
            Frozen::Everything => entry.epoch() != epoch,
            Frozen::Changes => entry.epoch() == epoch - 1,
        };
        if is_needed {
            self.written_entries += 1;
            if let Err(failure) = put(entry, &mut self.written) {
                error.get_or_insert(failure);
            }
        }
    }

    /// How many entries the snapshot under way has left to write, given the size of the table.
    fn cost(&self, entries: usize) -> usize {
        match self.frozen {
            Frozen::Nothing => 0,
            Frozen::Everything => entries,
            Frozen::Changes => self.frozen_dirty.len(),
        }
    }
}

/// State of type `V` for every key and namespace of a range of key groups.
pub struct KeyedTable<K, N, V> {
    name: String,
    range: KeyGroupRange,
    max_parallelism: u32,
    tables: Vec<HashTable<Entry<K, N, V>>>,
    changes: Vec<Changes<K, N>>,
    epoch: u32,
    /// The next group to drain; the number of groups when no snapshot is under way.
    draining: usize,
    /// The next of its frozen changes to drain.
    draining_change: usize,
    error: Option<Error>,
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
            draining_change: 0,
            error: None,
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
                let changes = &mut self.changes[index];
                if changes.is_tracked {
                    changes.dirty.push(mixed);
                }
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
        changes.save(&entry, self.epoch, &mut self.error);
        if changes.is_tracked && (entry.is_persisted() || entry.epoch() != self.epoch) {
            changes.removed.push((entry.key.clone(), entry.namespace.clone()));
        }
        if table.len() * 4 < table.capacity() && table.capacity() > 8 {
            // Closed windows and sessions are nobody's: give their memory back.
            table.shrink_to(table.len() * 2, Entry::hash);
        }
        if changes.is_tracked && changes.dirty.len() + changes.removed.len() > 2 * table.len() + 4096 {
            // When the lists of changes outgrow the table, a base is cheaper than they are.
            changes.is_tracked = false;
            changes.dirty = Vec::new();
            changes.removed = Vec::new();
        }
        Some((entry.key, entry.namespace, entry.value))
    }

    /// Removes all entries and gives each to `take`.
    pub fn take_all(&mut self, mut take: impl FnMut(K, N, V) -> Result<()>) -> Result<()> {
        for (table, changes) in self.tables.iter_mut().zip(&mut self.changes) {
            for entry in std::mem::take(table) {
                changes.save(&entry, self.epoch, &mut self.error);
                if changes.is_tracked && (entry.is_persisted() || entry.epoch() != self.epoch) {
                    changes.removed.push((entry.key.clone(), entry.namespace.clone()));
                }
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

    fn drain_group(&mut self, index: usize, entries_max: usize, out: &mut SnapshotWriter) -> Result<bool> {
        let epoch = self.epoch;
        let (table, changes) = (&self.tables[index], &mut self.changes[index]);
        match changes.frozen {
            Frozen::Nothing => return Ok(true),
            Frozen::Everything => {
                for entry in table.iter().filter(|entry| entry.epoch() != epoch) {
                    put(entry, &mut changes.written)?;
                    changes.written_entries += 1;
                }
            }
            Frozen::Changes => {
                let from = self.draining_change;
                let until = changes.frozen_dirty.len().min(from + entries_max);
                for &hash in &changes.frozen_dirty[from..until] {
                    let same = table.iter_hash(hash);
                    for entry in same.filter(|entry| entry.epoch() == epoch - 1 && entry.hash() == hash) {
                        put(entry, &mut changes.written)?;
                        changes.written_entries += 1;
                    }
                }
                if until < changes.frozen_dirty.len() {
                    self.draining_change = until;
                    return Ok(false);
                }
            }
        }
        let kind = if changes.frozen == Frozen::Everything { SectionKind::Base } else { SectionKind::Change };
        let body = std::mem::take(&mut changes.written);
        let mut entries = std::mem::take(&mut changes.written_entries);
        // Removals come first: a key that was removed and came back is then put after its removal.
        let mut section = Vec::new();
        for (key, namespace) in changes.frozen_removed.drain(..) {
            section.push(1);
            codec::encode_into(&key, &mut section)?;
            codec::encode_into(&namespace, &mut section)?;
            entries += 1;
        }
        section.extend_from_slice(&body);
        if entries > 0 || kind == SectionKind::Base {
            out.section(&self.name, (self.range.start as usize + index) as KeyGroup, kind, entries, &section)?;
        }
        changes.frozen = Frozen::Nothing;
        changes.frozen_dirty = Vec::new();
        changes.frozen_removed = Vec::new();
        self.draining_change = 0;
        Ok(true)
    }
}

fn put<K: Data, N: Data, V: Data>(entry: &Entry<K, N, V>, out: &mut Vec<u8>) -> Result<()> {
    out.push(0);
    codec::encode_into(&entry.key, out)?;
    codec::encode_into(&entry.namespace, out)?;
    codec::encode_into(&entry.value, out)
}

impl<K: Data + Eq, N: Namespace, V: Data> Checkpointed for KeyedTable<K, N, V> {
    fn name(&self) -> &str {
        &self.name
    }

    fn freeze(&mut self, mode: SnapshotMode) {
        debug_assert_eq!(self.draining, self.tables.len(), "the snapshot before must be drained");
        self.epoch += 1;
        self.draining = 0;
        self.draining_change = 0;
        for changes in &mut self.changes {
            changes.frozen_dirty = std::mem::take(&mut changes.dirty);
            changes.frozen_removed = std::mem::take(&mut changes.removed);
            changes.frozen = match mode {
                SnapshotMode::Incremental if changes.is_tracked => Frozen::Changes,
                _ => {
                    changes.frozen_dirty = Vec::new();
                    changes.frozen_removed = Vec::new();
                    Frozen::Everything
                }
            };
            changes.is_tracked = true;
        }
    }

    fn drain(&mut self, entries_max: usize, out: &mut SnapshotWriter) -> Result<bool> {
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        let mut budget = entries_max;
        while self.draining < self.tables.len() {
            let index = self.draining;
            let cost = self.changes[index].cost(self.tables[index].len());
            if !self.drain_group(index, budget.max(1), out)? {
                return Ok(false);
            }
            self.draining += 1;
            budget = budget.saturating_sub(cost + 1);
            if budget == 0 && self.draining < self.tables.len() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn restore(&mut self, section: &Section<'_>) -> Result<()> {
        let index = usize::from(section.group) - self.range.start as usize;
        let table = &mut self.tables[index];
        if section.kind == SectionKind::Base {
            table.clear();
        }
        let mut body = Decoder::new(section.body);
        for _ in 0..section.entries {
            let is_removal: bool = body.read()?;
            let key: K = body.read()?;
            let namespace: N = body.read()?;
            let hash = namespace.mix(stable_hash(&key));
            let slot = table.entry(hash, |entry| entry.key == key && entry.namespace == namespace, Entry::hash);
            match slot {
                Slot::Occupied(occupied) if is_removal => {
                    occupied.remove();
                }
                Slot::Occupied(mut occupied) => occupied.get_mut().value = body.read()?,
                Slot::Vacant(_) if is_removal => {}
                Slot::Vacant(vacant) => {
                    let value = body.read()?;
                    vacant.insert(Entry { epoch: PERSISTED, key, namespace, value });
                }
            }
        }
        if body.is_empty() {
            // What was restored is the base that later changes build on.
            self.changes[index].is_tracked = true;
            return Ok(());
        }
        Err(Error::system(format!(
            "state '{}' of key group {} has {} bytes behind its last entry",
            self.name,
            section.group,
            body.remaining()
        )))
    }

    fn owns(&self, group: KeyGroup) -> bool {
        self.range.contains(group)
    }

    fn bytes(&self) -> u64 {
        let entries: usize = self.tables.iter().map(HashTable::capacity).sum();
        (entries * (size_of::<Entry<K, N, V>>() + 1)) as u64
    }
}

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;
