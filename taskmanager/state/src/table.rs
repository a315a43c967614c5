//! A table of keyed state that knows what changed since the last checkpoint.
//!
//! Invariants:
//! - `entry.epoch == table.epoch` exactly if the entry was written since the last freeze; it is then in its
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

struct Entry<K, N, V> {
    hash: u64,
    epoch: u32,
    /// Whether an earlier snapshot holds it, so that its removal must be recorded.
    is_persisted: bool,
    key: K,
    namespace: N,
    value: V,
}

/// What a group still has to write for the snapshot under way.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Frozen {
    Nothing,
    Changes,
    Everything,
}

struct Group<K, N, V> {
    table: HashTable<Entry<K, N, V>>,
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

impl<K, N, V> Default for Group<K, N, V> {
    fn default() -> Self {
        Self {
            table: HashTable::new(),
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

/// State of type `V` for every key and namespace of a range of key groups.
pub struct KeyedTable<K, N, V> {
    name: String,
    range: KeyGroupRange,
    max_parallelism: u32,
    groups: Vec<Group<K, N, V>>,
    epoch: u32,
    /// The next group to drain; `groups.len()` when no snapshot is under way.
    draining: usize,
    /// The next of its frozen changes to drain.
    draining_change: usize,
    error: Option<Error>,
}

impl<K: Data + Eq, N: Namespace, V: Data> KeyedTable<K, N, V> {
    /// An empty table for the key groups of `range`.
    pub fn new(name: impl Into<String>, range: KeyGroupRange, max_parallelism: u32) -> Self {
        let groups: Vec<_> = (0..range.len()).map(|_| Group::default()).collect();
        let draining = groups.len();
        Self { name: name.into(), range, max_parallelism, groups, epoch: 1, draining, draining_change: 0, error: None }
    }

    fn group_index(&self, hash: u64) -> usize {
        let group = u32::from(group_of(hash, self.max_parallelism));
        debug_assert!(self.range.contains(group as KeyGroup), "a key of another subtask");
        (group - self.range.start) as usize
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.groups.iter().map(|group| group.table.len()).sum()
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value of a key whose stable hash is `hash`.
    #[inline]
    pub fn get(&self, hash: u64, key: &K, namespace: &N) -> Option<&V> {
        let mixed = namespace.mix(hash);
        self.groups[self.group_index(hash)]
            .table
            .find(mixed, |entry| entry.key == *key && entry.namespace == *namespace)
            .map(|entry| &entry.value)
    }

    /// The value of a key, to be changed.
    #[inline]
    pub fn get_mut(&mut self, hash: u64, key: &K, namespace: &N) -> Option<&mut V> {
        let mixed = namespace.mix(hash);
        let index = self.group_index(hash);
        let Group { table, is_tracked, dirty, frozen, written, written_entries, .. } = &mut self.groups[index];
        let entry = table.find_mut(mixed, |entry| entry.key == *key && entry.namespace == *namespace)?;
        if entry.epoch != self.epoch {
            let mut preimage = PreImage { frozen: *frozen, epoch: self.epoch, written, written_entries };
            first_change(entry, &mut preimage, &mut self.error, *is_tracked, dirty);
        }
        Some(&mut entry.value)
    }

    /// The value of a key, to be changed; `make` provides it if there is none.
    #[inline]
    pub fn get_or_insert_with(&mut self, hash: u64, key: &K, namespace: N, make: impl FnOnce() -> V) -> &mut V {
        let mixed = namespace.mix(hash);
        let index = self.group_index(hash);
        let epoch = self.epoch;
        let Group { table, is_tracked, dirty, frozen, written, written_entries, .. } = &mut self.groups[index];
        let slot = table.entry(
            mixed,
            |entry| entry.hash == mixed && entry.key == *key && entry.namespace == namespace,
            |entry| entry.hash,
        );
        match slot {
            Slot::Occupied(occupied) => {
                let entry = occupied.into_mut();
                if entry.epoch != epoch {
                    let mut preimage = PreImage { frozen: *frozen, epoch, written, written_entries };
                    first_change(entry, &mut preimage, &mut self.error, *is_tracked, dirty);
                }
                &mut entry.value
            }
            Slot::Vacant(vacant) => {
                if *is_tracked {
                    dirty.push(mixed);
                }
                let entry =
                    Entry { hash: mixed, epoch, is_persisted: false, key: key.clone(), namespace, value: make() };
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
        self.remove_where(index, mixed, |entry| entry.hash == mixed && entry.namespace == *namespace)
            .map(|(key, _, value)| (key, value))
    }

    fn remove_where(
        &mut self,
        index: usize,
        mixed: u64,
        mut matches: impl FnMut(&Entry<K, N, V>) -> bool,
    ) -> Option<(K, N, V)> {
        let epoch = self.epoch;
        let Group { table, is_tracked, removed, frozen, written, written_entries, .. } = &mut self.groups[index];
        let occupied = table.find_entry(mixed, |entry| matches(entry)).ok()?;
        let (entry, _) = occupied.remove();
        PreImage { frozen: *frozen, epoch, written, written_entries }.write(&entry, &mut self.error);
        if *is_tracked && (entry.is_persisted || entry.epoch != epoch) {
            removed.push((entry.key.clone(), entry.namespace.clone()));
        }
        if table.len() * 4 < table.capacity() && table.capacity() > 8 {
            // Closed windows and sessions are nobody's: give their memory back.
            table.shrink_to(table.len() * 2, |entry| entry.hash);
        }
        self.bound_lists(index);
        Some((entry.key, entry.namespace, entry.value))
    }

    /// The values of `namespace` whose keys have the stable hash `hash`.
    pub fn find_by_hash(&self, hash: u64, namespace: &N) -> impl Iterator<Item = (&K, &V)> {
        let mixed = namespace.mix(hash);
        self.groups[self.group_index(hash)]
            .table
            .iter_hash(mixed)
            .filter(move |entry| entry.hash == mixed && entry.namespace == *namespace)
            .map(|entry| (&entry.key, &entry.value))
    }

    /// All entries, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &N, &V)> {
        self.groups
            .iter()
            .flat_map(|group| group.table.iter())
            .map(|entry| (&entry.key, &entry.namespace, &entry.value))
    }

    /// When the lists of changes outgrow the table, a base is cheaper than they are.
    fn bound_lists(&mut self, index: usize) {
        let group = &mut self.groups[index];
        if group.is_tracked && group.dirty.len() + group.removed.len() > 2 * group.table.len() + 4096 {
            group.is_tracked = false;
            group.dirty = Vec::new();
            group.removed = Vec::new();
        }
    }

    fn drain_group(&mut self, index: usize, entries_max: usize, out: &mut SnapshotWriter) -> Result<bool> {
        let epoch = self.epoch;
        let group = &mut self.groups[index];
        let mut entries = 0;
        match group.frozen {
            Frozen::Nothing => return Ok(true),
            Frozen::Everything => {
                for entry in group.table.iter().filter(|entry| entry.epoch != epoch) {
                    put(entry, &mut group.written)?;
                    entries += 1;
                }
            }
            Frozen::Changes => {
                let from = self.draining_change;
                let until = group.frozen_dirty.len().min(from + entries_max);
                for &hash in &group.frozen_dirty[from..until] {
                    let same = group.table.iter_hash(hash);
                    for entry in same.filter(|entry| entry.hash == hash && entry.epoch == epoch - 1) {
                        put(entry, &mut group.written)?;
                        entries += 1;
                    }
                }
                if until < group.frozen_dirty.len() {
                    group.written_entries += entries;
                    self.draining_change = until;
                    return Ok(false);
                }
            }
        }
        entries += group.written_entries;
        let kind = if group.frozen == Frozen::Everything { SectionKind::Base } else { SectionKind::Change };
        let body = std::mem::take(&mut group.written);
        // Removals come first: a key that was removed and came back is then put after its removal.
        let mut section = Vec::new();
        for (key, namespace) in group.frozen_removed.drain(..) {
            section.push(1);
            codec::encode_into(&key, &mut section)?;
            codec::encode_into(&namespace, &mut section)?;
            entries += 1;
        }
        section.extend_from_slice(&body);
        if entries > 0 || kind == SectionKind::Base {
            out.section(&self.name, (self.range.start as usize + index) as KeyGroup, kind, entries, &section)?;
        }
        group.frozen = Frozen::Nothing;
        group.frozen_dirty = Vec::new();
        group.frozen_removed = Vec::new();
        group.written_entries = 0;
        self.draining_change = 0;
        Ok(true)
    }
}

/// Where an entry goes that the snapshot under way still needs.
struct PreImage<'a> {
    frozen: Frozen,
    epoch: u32,
    written: &'a mut Vec<u8>,
    written_entries: &'a mut u64,
}

impl PreImage<'_> {
    #[cold]
    fn write<K: Data, N: Data, V: Data>(&mut self, entry: &Entry<K, N, V>, error: &mut Option<Error>) {
        let is_needed = match self.frozen {
            Frozen::Nothing => false,
            Frozen::Everything => entry.epoch != self.epoch,
            Frozen::Changes => entry.epoch == self.epoch - 1,
        };
        if is_needed {
            *self.written_entries += 1;
            if let Err(failure) = put(entry, self.written) {
                error.get_or_insert(failure);
            }
        }
    }
}

/// Notes the first change of an entry since the last freeze.
#[inline(never)]
fn first_change<K: Data, N: Data, V: Data>(
    entry: &mut Entry<K, N, V>,
    preimage: &mut PreImage<'_>,
    error: &mut Option<Error>,
    is_tracked: bool,
    dirty: &mut Vec<u64>,
) {
    if preimage.frozen != Frozen::Nothing {
        preimage.write(entry, error);
    }
    entry.epoch = preimage.epoch;
    entry.is_persisted = true;
    if is_tracked {
        dirty.push(entry.hash);
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
        debug_assert_eq!(self.draining, self.groups.len(), "the snapshot before must be drained");
        self.epoch += 1;
        self.draining = 0;
        self.draining_change = 0;
        for group in &mut self.groups {
            group.frozen_dirty = std::mem::take(&mut group.dirty);
            group.frozen_removed = std::mem::take(&mut group.removed);
            group.frozen = match mode {
                SnapshotMode::Incremental if group.is_tracked => Frozen::Changes,
                _ => {
                    group.frozen_dirty = Vec::new();
                    group.frozen_removed = Vec::new();
                    Frozen::Everything
                }
            };
            group.is_tracked = true;
        }
    }

    fn drain(&mut self, entries_max: usize, out: &mut SnapshotWriter) -> Result<bool> {
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        let mut budget = entries_max;
        while self.draining < self.groups.len() {
            let index = self.draining;
            let cost = self.groups[index].drain_cost();
            if !self.drain_group(index, budget.max(1), out)? {
                return Ok(false);
            }
            self.draining += 1;
            budget = budget.saturating_sub(cost + 1);
            if budget == 0 && self.draining < self.groups.len() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn restore(&mut self, section: &Section<'_>) -> Result<()> {
        let group = &mut self.groups[usize::from(section.group) - self.range.start as usize];
        if section.kind == SectionKind::Base {
            group.table.clear();
        }
        let mut body = Decoder::new(section.body);
        for _ in 0..section.entries {
            let is_removal: bool = body.read()?;
            let key: K = body.read()?;
            let namespace: N = body.read()?;
            let hash = namespace.mix(stable_hash(&key));
            let slot =
                group.table.entry(hash, |entry| entry.key == key && entry.namespace == namespace, |entry| entry.hash);
            match slot {
                Slot::Occupied(occupied) if is_removal => {
                    occupied.remove();
                }
                Slot::Occupied(mut occupied) => occupied.get_mut().value = body.read()?,
                Slot::Vacant(_) if is_removal => {}
                Slot::Vacant(vacant) => {
                    let value = body.read()?;
                    vacant.insert(Entry { hash, epoch: 0, is_persisted: true, key, namespace, value });
                }
            }
        }
        if body.is_empty() {
            // What was restored is the base that later changes build on.
            group.is_tracked = true;
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
        let entries: usize = self.groups.iter().map(|group| group.table.capacity()).sum();
        (entries * (size_of::<Entry<K, N, V>>() + 1)) as u64
    }
}

impl<K, N, V> Group<K, N, V> {
    fn drain_cost(&self) -> usize {
        match self.frozen {
            Frozen::Nothing => 0,
            Frozen::Everything => self.table.len(),
            Frozen::Changes => self.frozen_dirty.len(),
        }
    }
}

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;
