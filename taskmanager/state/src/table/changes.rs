//! What a key group has to write for the snapshot under way and for the next one.

use flott_core::codec;
use flott_core::key_group::KeyGroup;
use flott_core::{Data, Error, Result};

use super::cold::ColdPart;
use super::undo::{self, Undo};
use super::{CLEAN, Entry, Group, Namespace, PERSISTED, WRITTEN};
use crate::snapshot::{SectionKind, SnapshotMode, SnapshotWriter};

/// What a group still has to write for the snapshot under way.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Frozen {
    Nothing,
    Changes,
    Everything,
}

/// What changed in a group, apart from its table, which every access touches.
pub(super) struct Changes<K, N> {
    is_tracked: bool,
    /// The epoch from which on changes are in the lists. A detached snapshot ends an epoch too, but nothing builds on it, so
    /// what changed before it still counts. Unused by a table that is on disk too: whatever it has written lies there, and
    /// is part of all later snapshots.
    since: u32,
    dirty: Vec<u64>,
    removed: Vec<(K, N)>,
    pub(super) frozen: Frozen,
    /// The `since` of `frozen_dirty`.
    frozen_since: u32,
    pub(super) frozen_dirty: Vec<u64>,
    frozen_removed: Vec<(K, N)>,
    /// The next to be written of `frozen_dirty`, or of the table's buckets.
    position: usize,
    /// Entries of the snapshot under way: those whose turn came, and those that had to be written before they changed.
    written: Vec<u8>,
    written_entries: u64,
    pub(super) undo: Undo,
    /// What a table that is on disk too has to remember. Then it has neither removals nor an undo log, and what a snapshot
    /// writes of it is a matter of `flush`.
    pub(super) cold: Option<Box<ColdPart<K, N>>>,
}

impl<K, N> Default for Changes<K, N> {
    fn default() -> Self {
        Self {
            is_tracked: false,
            // What was there before anything changed is of epoch 0.
            since: 1,
            dirty: Vec::new(),
            removed: Vec::new(),
            frozen: Frozen::Nothing,
            frozen_since: 1,
            frozen_dirty: Vec::new(),
            frozen_removed: Vec::new(),
            position: 0,
            written: Vec::new(),
            written_entries: 0,
            undo: Undo::default(),
            cold: None,
        }
    }
}

impl<K, N> Changes<K, N> {
    /// Changes are noted from here on: what the group has now is in a checkpoint that a later snapshot can build on.
    pub(super) fn track(&mut self) {
        self.is_tracked = true;
    }

    /// The next snapshot looks at all entries.
    pub(super) fn untrack(&mut self) {
        self.is_tracked = false;
        self.dirty = Vec::new();
        self.removed = Vec::new();
    }

    /// The table goes to disk, where nothing of the group is.
    pub(super) fn go_cold(&mut self) {
        self.untrack();
        self.undo.give_up();
        self.cold = Some(Box::default());
    }

    /// Bytes in memory, without what keys hold on the heap.
    pub(super) fn bytes(&self) -> usize {
        let cold = self.cold.as_ref().map_or(0, |part| {
            let tombstones = part.tombstones.allocation_size() + part.frozen_tombstones.allocation_size();
            tombstones + part.saved_bytes + part.plan.as_ref().map_or(0, |plan| plan.capacity() * 8)
        });
        let hashes = self.dirty.capacity() + self.frozen_dirty.capacity();
        self.undo.bytes() + hashes * 8 + self.removed.capacity() * size_of::<(K, N)>() + cold
    }

    /// Whether nothing is noted.
    pub(super) fn is_clean(&self) -> bool {
        self.dirty.is_empty() && self.removed.is_empty()
    }

    /// Notes a new entry. To go back needs no note of it: its epoch tells that it is new.
    #[inline]
    pub(super) fn insertion(&mut self, hash: u64) {
        if self.is_tracked {
            self.dirty.push(hash);
        }
    }

    /// When the lists of changes outgrow the table, a base is cheaper than they are.
    pub(super) fn limit(&mut self, table_len: usize) {
        if self.is_tracked && self.dirty.len() + self.removed.len() > 2 * table_len + 4096 {
            self.untrack();
        }
    }

    /// Starts a snapshot, and `epoch`.
    pub(super) fn freeze(&mut self, mode: SnapshotMode, epoch: u32) {
        if mode == SnapshotMode::Detached && self.cold.is_none() {
            self.frozen = Frozen::Everything;
            return;
        }
        self.frozen_since = std::mem::replace(&mut self.since, epoch);
        let (dirty, removed) = (std::mem::take(&mut self.dirty), std::mem::take(&mut self.removed));
        if let Some(part) = &mut self.cold {
            // Whatever the mode, it is the files that there are, and a new one.
            self.frozen = if self.is_tracked { Frozen::Changes } else { Frozen::Everything };
            self.frozen_dirty = dirty;
            part.frozen_tombstones = std::mem::take(&mut part.tombstones);
        } else if mode == SnapshotMode::Incremental && self.is_tracked {
            self.frozen = Frozen::Changes;
            self.frozen_dirty = dirty;
            self.frozen_removed = removed;
        } else {
            self.frozen = Frozen::Everything;
        }
        self.is_tracked = true;
    }
}

impl<K: Data + Eq, N: Namespace> Changes<K, N> {
    /// Whether the lists have what becomes of an entry already; `epoch` is the current one.
    fn is_noted<V: Data>(&self, entry: &Entry<K, N, V>, epoch: u32) -> bool {
        entry.epoch() >= if self.cold.is_some() { epoch } else { self.since }
    }

    /// Numbers epochs from 1 again, which is then the one that was `epoch`.
    pub(super) fn begin_anew<V: Data>(&mut self, table: &mut Group<K, N, V>, epoch: u32) {
        self.undo.give_up();
        for entry in table.iter_mut() {
            let number = u32::from(self.is_noted(entry, epoch));
            entry.epoch = (entry.epoch & (PERSISTED | WRITTEN | CLEAN)) | number;
        }
        self.since = 1;
    }

    /// Notes the first change of an entry since the last freeze; `epoch` is the current one.
    #[inline(never)]
    pub(super) fn first_change<V: Data>(
        &mut self,
        entry: &mut Entry<K, N, V>,
        hash: u64,
        epoch: u32,
        error: &mut Option<Error>,
    ) {
        self.save(entry, error);
        if self.is_noted(entry, epoch) {
            // Since a detached snapshot only.
            entry.epoch = epoch | (entry.epoch & PERSISTED);
            return;
        }
        self.undo.note(entry, undo::CHANGED);
        self.forget_clean(entry);
        entry.epoch = epoch | PERSISTED;
        if self.is_tracked {
            self.dirty.push(hash);
        }
    }

    /// Notes that an entry goes.
    pub(super) fn removal<V: Data>(&mut self, entry: &Entry<K, N, V>, epoch: u32, error: &mut Option<Error>) {
        if entry.epoch() != epoch {
            self.save(entry, error);
        }
        let is_noted = self.is_noted(entry, epoch);
        if !is_noted {
            self.undo.note(entry, undo::REMOVED);
        }
        self.forget_clean(entry);
        let is_known = !is_noted || entry.is_persisted();
        match &mut self.cold {
            Some(part) if is_known => part.bury(entry.hash(), &entry.key, &entry.namespace),
            None if is_known && self.is_tracked => self.removed.push((entry.key.clone(), entry.namespace.clone())),
            _ => {}
        }
    }

    /// An entry changes or goes.
    fn forget_clean<V: Data>(&mut self, entry: &Entry<K, N, V>) {
        if entry.is_clean()
            && let Some(part) = &mut self.cold
        {
            part.clean = part.clean.saturating_sub(1);
        }
    }

    /// Writes an entry of an older epoch that the snapshot under way still needs, before it changes or goes.
    fn save<V: Data>(&mut self, entry: &Entry<K, N, V>, error: &mut Option<Error>) {
        if let Some(part) = &mut self.cold {
            if self.frozen != Frozen::Nothing
                && !entry.is_clean()
                && let Err(failure) = part.save(entry)
            {
                error.get_or_insert(failure);
            }
            return;
        }
        let is_needed = match self.frozen {
            Frozen::Nothing => false,
            Frozen::Everything => !entry.is_written(),
            Frozen::Changes => entry.epoch() >= self.frozen_since,
        };
        if is_needed && let Err(failure) = self.write(entry) {
            error.get_or_insert(failure);
        }
    }

    fn write<V: Data>(&mut self, entry: &Entry<K, N, V>) -> Result<()> {
        self.written_entries += 1;
        self.written.push(0);
        codec::encode_into(&entry.key, &mut self.written)?;
        codec::encode_into(&entry.namespace, &mut self.written)?;
        codec::encode_into(&entry.value, &mut self.written)
    }

    /// Writes frozen entries, about as many as are left of `budget`; true when all are written.
    pub(super) fn drain<V: Data>(
        &mut self,
        table: &mut Group<K, N, V>,
        epoch: u32,
        budget: &mut usize,
    ) -> Result<bool> {
        match self.frozen {
            Frozen::Nothing => Ok(true),
            Frozen::Changes => self.drain_changes(table, epoch, budget),
            Frozen::Everything => self.drain_everything(table, epoch, budget),
        }
    }

    fn drain_changes<V: Data>(&mut self, table: &Group<K, N, V>, epoch: u32, budget: &mut usize) -> Result<bool> {
        while self.position < self.frozen_dirty.len() {
            if *budget == 0 {
                return Ok(false);
            }
            let hash = self.frozen_dirty[self.position];
            let same = table.iter_hash(hash);
            let frozen = self.frozen_since..epoch;
            for entry in same.filter(|entry| frozen.contains(&entry.epoch()) && entry.hash() == hash) {
                self.write(entry)?;
            }
            self.position += 1;
            *budget -= 1;
        }
        Ok(true)
    }

    /// A large group is written bucket by bucket, in several steps, and what is written is marked, so that it is
    /// not written again when it changes. Between two steps entries may have moved to buckets that were passed, so at
    /// the end all marks are looked at, and taken off.
    fn drain_everything<V: Data>(
        &mut self,
        table: &mut Group<K, N, V>,
        epoch: u32,
        budget: &mut usize,
    ) -> Result<bool> {
        if table.len() > *budget {
            while self.position < table.num_buckets() {
                if *budget == 0 {
                    return Ok(false);
                }
                if let Some(entry) = table.get_bucket_mut(self.position)
                    && entry.epoch() != epoch
                    && !entry.is_written()
                {
                    self.write(entry)?;
                    entry.epoch |= WRITTEN;
                    *budget -= 1;
                }
                self.position += 1;
            }
        }
        for entry in table.iter_mut() {
            if entry.is_written() {
                entry.epoch &= !WRITTEN;
            } else if entry.epoch() != epoch {
                self.write(entry)?;
                *budget = budget.saturating_sub(1);
            }
        }
        Ok(true)
    }

    /// Adds what was written to the snapshot, as the section of key group `group` of state `name`.
    pub(super) fn finish(&mut self, name: &str, group: KeyGroup, out: &mut SnapshotWriter) -> Result<()> {
        let kind = match self.frozen {
            Frozen::Nothing => return Ok(()),
            Frozen::Changes => SectionKind::Change,
            Frozen::Everything => SectionKind::Base,
        };
        let mut body = std::mem::take(&mut self.written);
        let mut entries = std::mem::take(&mut self.written_entries);
        let removed = std::mem::take(&mut self.frozen_removed);
        if !removed.is_empty() {
            // Removals come first: a key that was removed and came back is then put after its removal.
            let mut section = Vec::new();
            for (key, namespace) in &removed {
                section.push(1);
                codec::encode_into(key, &mut section)?;
                codec::encode_into(namespace, &mut section)?;
                entries += 1;
            }
            section.append(&mut body);
            body = section;
        }
        if entries > 0 || kind == SectionKind::Base {
            out.section(name, group, kind, entries, &body)?;
        }
        self.frozen = Frozen::Nothing;
        self.frozen_dirty = Vec::new();
        self.position = 0;
        Ok(())
    }
}
