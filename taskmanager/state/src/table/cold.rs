//! The part of a table that is on disk.

use std::collections::BTreeMap;

use flott_core::codec::{self, Decoder};
use flott_core::hash::stable_hash;
use flott_core::key_group::KeyGroup;
use flott_core::{Data, Error, Result, ResultExt};
use hashbrown::HashTable;

use super::changes::Changes;
use super::evict::Hand;
use super::flush::Records;
use super::{Entry, FETCHED, Group, KeyedTable, Namespace, PERSISTED};
use crate::cold::{ColdOptions, ColdStore, Lookup, RunWriter, Scan};

/// The most that blocks of the store take in memory, and which part of the budget.
const CACHE_BYTES_MAX: u64 = 8 << 20;
const CACHE_PART: u64 = 32;

/// How many bytes are merged for each byte that is added, so that the runs stay few.
const MERGED_PER_BYTE: u64 = 10;

/// What is merged in one step: a few milliseconds' worth, and more when merging falls behind.
const MERGE_BYTES_MIN: u64 = 512 << 10;
const MERGE_BYTES_MAX: u64 = 4 << 20;

/// When so much is left to merge, records wait for it.
const MERGE_DEBT_MAX: u64 = 1 << 30;

/// What a table has on disk.
pub(super) struct Cold {
    name: String,
    pub(super) store: ColdStore,
    /// How many entries are on disk and not in memory, at most: a key that was [put](KeyedTable::put) or restored twice
    /// counts twice.
    pub(super) entries: u64,
    pub(super) hand: Hand,
    /// The run that is being written, for a snapshot or to make room, once it has an entry.
    pub(super) run: Option<RunWriter>,
    pub(super) records: Records,
    merge_debt: u64,
    key: Vec<u8>,
    value: Vec<u8>,
}

impl Cold {
    /// Adds the run that is being written as the newest.
    pub(super) fn add_run(&mut self) -> Result<()> {
        let Some(run) = self.run.take() else { return Ok(()) };
        let bytes = run.disk_bytes();
        self.store.add_run(run)?;
        self.owe_merging(bytes);
        Ok(())
    }

    /// What is in memory for what is on disk, with the run that is being written.
    pub(super) fn memory_bytes(&self) -> u64 {
        self.store.memory_bytes() + self.run.as_ref().map_or(0, RunWriter::memory_bytes)
    }

    pub(super) fn disk_bytes(&self) -> u64 {
        self.store.disk_bytes() + self.run.as_ref().map_or(0, RunWriter::disk_bytes)
    }

    /// Says that so many bytes came to the store.
    pub(super) fn owe_merging(&mut self, bytes: u64) {
        self.merge_debt = self.merge_debt.saturating_add(bytes.saturating_mul(MERGED_PER_BYTE));
    }

    /// Merges a little; true if it is urgent to merge more.
    pub(super) fn merge(&mut self) -> Result<bool> {
        if self.merge_debt == 0 {
            return Ok(false);
        }
        let step = (self.merge_debt / 64).clamp(MERGE_BYTES_MIN, MERGE_BYTES_MAX);
        let is_unfinished = self.store.maintain(step)?;
        self.merge_debt = if is_unfinished { self.merge_debt.saturating_sub(step) } else { 0 };
        Ok(self.merge_debt > MERGE_DEBT_MAX)
    }

    /// The entry of a key that is not in memory, if it is on disk. It is in memory from here on, or gone.
    #[inline(never)]
    pub(super) fn fetch_entry<K: Data + Eq, N: Namespace, V: Data>(
        &mut self,
        group: KeyGroup,
        hash: u64,
        key: &K,
        namespace: &N,
        changes: &mut Changes<K, N>,
    ) -> Option<Entry<K, N, V>> {
        if changes.hides(hash, key, namespace) {
            return None;
        }
        let value = self.read(group, hash, key, namespace).unwrap_or_else(|error| self.fail(error))?;
        self.entries = self.entries.saturating_sub(1);
        changes.count_clean(1);
        Some(Entry { epoch: FETCHED, key: key.clone(), namespace: namespace.clone(), value })
    }

    /// The entry of a key that is not in memory, about to change in `epoch`, if it is on disk. Otherwise a new one is made,
    /// whose epoch has the returned bits.
    #[inline(never)]
    pub(super) fn claim<K: Data + Eq, N: Namespace, V: Data>(
        &mut self,
        (group, hash): (KeyGroup, u64),
        key: &K,
        namespace: &N,
        changes: &mut Changes<K, N>,
        epoch: u32,
        error: &mut Option<Error>,
    ) -> Result<Entry<K, N, V>, u32> {
        match self.fetch_entry(group, hash, key, namespace, changes) {
            Some(mut entry) => {
                changes.first_change(&mut entry, hash, epoch, error);
                Ok(entry)
            }
            None => Err(changes.revive(hash, key, namespace)),
        }
    }

    fn read<K: Data, N: Data, V: Data>(
        &mut self,
        group: KeyGroup,
        hash: u64,
        key: &K,
        namespace: &N,
    ) -> Result<Option<V>> {
        self.key.clear();
        codec::encode_into(key, &mut self.key)?;
        codec::encode_into(namespace, &mut self.key)?;
        match self.store.get(group, hash, &self.key, &mut self.value)? {
            Lookup::Found => codec::decode(&self.value).map(Some),
            Lookup::Deleted | Lookup::Absent => Ok(None),
        }
    }

    /// Ends the processing of this record, and of this task: whoever runs it expects that.
    #[cold]
    pub(super) fn fail(&self, error: Error) -> ! {
        std::panic::resume_unwind(Box::new(error.context(format!("state '{}'", self.name))))
    }
}

/// A key that is gone, while a run may still have it.
pub(super) struct Tombstone<K, N> {
    pub(super) hash: u64,
    pub(super) key: K,
    pub(super) namespace: N,
}

/// What a key group has to remember of its entries on disk.
pub(super) struct ColdPart<K, N> {
    /// How many entries in memory are clean.
    pub(super) clean: usize,
    /// They are written with the next run.
    pub(super) tombstones: HashTable<Tombstone<K, N>>,
    /// Those of the run that is being written, until it is in the store.
    pub(super) frozen_tombstones: HashTable<Tombstone<K, N>>,
    /// Entries of the snapshot under way that changed before they were written, as they were, by hash and key.
    pub(super) saved: BTreeMap<(u64, Vec<u8>), Vec<u8>>,
    pub(super) saved_bytes: usize,
    /// The hashes of all that the run that is being written has of the group, in order, while it is the group's turn.
    pub(super) plan: Option<Vec<u64>>,
    /// The next one.
    pub(super) position: usize,
    /// What the store has of the group does not count, but for the snapshot under way, after which it goes.
    pub(super) is_gone: bool,
}

impl<K, N> Default for ColdPart<K, N> {
    fn default() -> Self {
        Self {
            clean: 0,
            tombstones: HashTable::new(),
            frozen_tombstones: HashTable::new(),
            saved: BTreeMap::new(),
            saved_bytes: 0,
            plan: None,
            position: 0,
            is_gone: false,
        }
    }
}

impl<K: Data + Eq, N: Namespace> ColdPart<K, N> {
    /// Notes that a key is gone.
    pub(super) fn bury(&mut self, hash: u64, key: &K, namespace: &N) {
        if !has(&self.tombstones, hash, key, namespace) {
            let tombstone = Tombstone { hash, key: key.clone(), namespace: namespace.clone() };
            self.tombstones.insert_unique(hash, tombstone, |tombstone| tombstone.hash);
        }
    }

    /// Keeps an entry for the snapshot under way as it is.
    pub(super) fn save<V: Data>(&mut self, entry: &Entry<K, N, V>) -> Result<()> {
        let mut key = codec::encode(&entry.key)?;
        codec::encode_into(&entry.namespace, &mut key)?;
        let value = codec::encode(&entry.value)?;
        self.saved_bytes += key.len() + value.len();
        self.saved.insert((entry.hash(), key), value);
        Ok(())
    }
}

fn has<K: Eq, N: Eq>(tombstones: &HashTable<Tombstone<K, N>>, hash: u64, key: &K, namespace: &N) -> bool {
    tombstones.find(hash, |tombstone| tombstone.key == *key && tombstone.namespace == *namespace).is_some()
}

impl<K: Data + Eq, N: Namespace> Changes<K, N> {
    fn has_tombstone(&self, hash: u64, key: &K, namespace: &N) -> bool {
        self.cold.as_ref().is_some_and(|part| {
            has(&part.tombstones, hash, key, namespace) || has(&part.frozen_tombstones, hash, key, namespace)
        })
    }

    /// Whether a key is certainly gone, whatever the store has.
    fn hides(&self, hash: u64, key: &K, namespace: &N) -> bool {
        self.cold.as_ref().is_some_and(|part| part.is_gone) || self.has_tombstone(hash, key, namespace)
    }

    /// A key comes back: its tombstone is not needed any more, but its entry's removal would need one. Returns the bit
    /// that says so.
    pub(super) fn revive(&mut self, hash: u64, key: &K, namespace: &N) -> u32 {
        let Some(part) = &mut self.cold else { return 0 };
        let is_same = |tombstone: &Tombstone<K, N>| tombstone.key == *key && tombstone.namespace == *namespace;
        if let Ok(tombstone) = part.tombstones.find_entry(hash, is_same) {
            tombstone.remove();
            return PERSISTED;
        }
        if has(&part.frozen_tombstones, hash, key, namespace) { PERSISTED } else { 0 }
    }

    /// So many entries in memory have become clean.
    pub(super) fn count_clean(&mut self, entries: usize) {
        if let Some(part) = &mut self.cold {
            part.clean += entries;
        }
    }

    /// What the store had of the group is gone, so nothing need be said of single keys. Nothing is in memory either.
    pub(super) fn forget_disk(&mut self) {
        if let Some(part) = &mut self.cold {
            part.tombstones = HashTable::new();
            part.clean = 0;
        }
    }
}

/// The entries of a key group that are on disk and not in memory.
pub(super) struct OnDisk<K, N> {
    scan: Option<Scan>,
    /// Tombstones that the group has no more.
    tombstones: HashTable<Tombstone<K, N>>,
}

impl<K: Data + Eq, N: Namespace> OnDisk<K, N> {
    /// The next one; `group` is what is in memory.
    pub(super) fn next_entry<V: Data>(
        &mut self,
        group: &Group<K, N, V>,
        changes: &Changes<K, N>,
    ) -> Result<Option<(K, N, V)>> {
        let Some(scan) = &mut self.scan else { return Ok(None) };
        while let Some(entry) = scan.next_entry()? {
            let hash = entry.hash;
            let mut parts = Decoder::new(entry.key);
            let (key, namespace): (K, N) = (parts.read()?, parts.read()?);
            let is_hidden = group.find(hash, |other| other.key == key && other.namespace == namespace).is_some()
                || has(&self.tombstones, hash, &key, &namespace)
                || changes.has_tombstone(hash, &key, &namespace);
            if !is_hidden {
                let value = codec::decode(entry.value)?;
                return Ok(Some((key, namespace, value)));
            }
        }
        Ok(None)
    }
}

impl<K: Data + Eq, N: Namespace, V: Data> KeyedTable<K, N, V> {
    /// Lets entries go to disk from here on, unless the table has no place there. No snapshot may be under way.
    pub(super) fn go_cold(&mut self) -> Result<bool> {
        if self.cold.is_some() {
            return Ok(true);
        }
        debug_assert!(!self.is_draining(), "the snapshot under way needs what is in memory");
        let Some(directory) = self.backend.table_directory(&self.name) else { return Ok(false) };
        let cache_bytes = CACHE_BYTES_MAX.min(self.backend.budget().limit() / CACHE_PART) as usize;
        let store = ColdStore::open(&directory, ColdOptions { cache_bytes, ..ColdOptions::default() })
            .with_context(|| format!("state '{}'", self.name))?;
        self.changes.iter_mut().for_each(Changes::go_cold);
        self.cold = Some(Box::new(Cold {
            name: self.name.clone(),
            store,
            entries: 0,
            hand: Hand::default(),
            run: None,
            records: Records::default(),
            merge_debt: 0,
            key: Vec::new(),
            value: Vec::new(),
        }));
        Ok(true)
    }

    /// Brings all entries of `namespace` whose hash is `mixed` into memory.
    pub(super) fn fetch_by_hash(&mut self, index: usize, mixed: u64, namespace: &N) {
        let group = self.group_at(index);
        let (table, changes) = (&mut self.tables[index], &mut self.changes[index]);
        let Some(cold) = &mut self.cold else { return };
        if changes.cold.as_ref().is_some_and(|part| part.is_gone) {
            return;
        }
        let mut fetched = 0;
        let read = cold.store.get_by_hash(group, mixed, |key, value| {
            let mut parts = Decoder::new(key);
            let (key, own): (K, N) = (parts.read()?, parts.read()?);
            let is_in_memory = || table.find(mixed, |entry| entry.key == key && entry.namespace == own).is_some();
            if own != *namespace || changes.has_tombstone(mixed, &key, &own) || is_in_memory() {
                return Ok(());
            }
            let entry = Entry { epoch: FETCHED, key, namespace: own, value: codec::decode(value)? };
            table.insert_unique(mixed, entry, Entry::hash);
            fetched += 1;
            Ok(())
        });
        cold.entries = cold.entries.saturating_sub(fetched as u64);
        changes.count_clean(fetched);
        if let Err(error) = read {
            cold.fail(error);
        }
    }

    /// What a group has on disk only.
    pub(super) fn on_disk(&self, index: usize) -> Result<Option<OnDisk<K, N>>> {
        let Some(cold) = &self.cold else { return Ok(None) };
        let is_gone = self.changes[index].cold.as_ref().is_some_and(|part| part.is_gone);
        let scan = if is_gone { None } else { Some(cold.store.scan_group(self.group_at(index))?) };
        Ok(Some(OnDisk { scan, tombstones: HashTable::new() }))
    }

    /// Removes what a group has on disk, and returns it. The snapshot under way still has it.
    pub(super) fn leave_disk(&mut self, index: usize) -> Result<Option<OnDisk<K, N>>> {
        let Some(mut on_disk) = self.on_disk(index)? else { return Ok(None) };
        let (group, is_draining) = (self.group_at(index), self.is_draining());
        if let (Some(cold), Some(part)) = (&mut self.cold, &mut self.changes[index].cold) {
            on_disk.tombstones = std::mem::take(&mut part.tombstones);
            if is_draining {
                part.is_gone = true;
            } else {
                cold.store.drop_group(group);
            }
            if index + 1 == self.tables.len() {
                cold.entries = 0;
            }
        }
        Ok(Some(on_disk))
    }

    /// Adds an entry that was restored from somewhere else than the table's own store.
    pub(super) fn add_restored(&mut self, index: usize, entry: Entry<K, N, V>) {
        if self.cold.is_some() {
            self.changes[index].revive(entry.hash(), &entry.key, &entry.namespace);
        }
        entry.put_into(&mut self.tables[index]);
    }

    /// Removes a key while the table is restored.
    pub(super) fn remove_restored(&mut self, index: usize, key: &K, namespace: &N) {
        let hash = namespace.mix(stable_hash(key));
        let same = self.tables[index].find_entry(hash, |entry| entry.key == *key && entry.namespace == *namespace);
        if let Ok(entry) = same {
            entry.remove();
        }
        if let Some(part) = &mut self.changes[index].cold {
            part.bury(hash, key, namespace);
        }
    }
}
