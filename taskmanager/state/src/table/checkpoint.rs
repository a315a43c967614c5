//! How a table takes part in checkpoints: what goes out by snapshot, and what comes back from files or from memory.

use std::sync::Arc;

use arrow::array::{BooleanArray, RecordBatch};
use arrow::compute::filter_record_batch;
use flott_core::codec::Decoder;
use flott_core::hash::stable_hash;
use flott_core::ids::CheckpointId;
use flott_core::key_group::{KeyGroup, group_of};
use flott_core::{Data, Error, Result};

use super::changes::Changes;
use super::{Entry, Group, KeyedTable, Namespace, PERSISTED};
use crate::budget::StateUsage;
use crate::columns::{StateColumns, columns_of, group_column, read_rows};
use crate::snapshot::{Checkpointed, Freeze, GroupState, LocalRun, Section, SectionKind, SnapshotMode, SnapshotWriter};

/// After how many restored entries a table looks whether they take too much memory.
const RESTORED_PER_LOOK: u64 = 4096;

impl<K: Data + Eq, N: Namespace, V: Data> KeyedTable<K, N, V> {
    /// The index of a key group that it owns.
    pub(super) fn index_of(&self, group: KeyGroup) -> usize {
        usize::from(group) - self.range.start as usize
    }

    fn groups(&mut self) -> impl Iterator<Item = (&mut Group<K, N, V>, &mut Changes<K, N>)> {
        self.tables.iter_mut().zip(&mut self.changes)
    }

    /// Whether a snapshot is under way.
    pub(super) fn is_draining(&self) -> bool {
        self.draining < self.tables.len()
    }

    /// What entries take: their tables, and what they hold on the heap.
    pub(super) fn entry_bytes(&self) -> u64 {
        let tables: usize = self.tables.iter().map(Group::<K, N, V>::allocation_size).sum();
        tables as u64 + self.heap.bytes(self.tables.iter().map(Group::<K, N, V>::len).sum())
    }

    /// What else the table takes.
    pub(super) fn other_bytes(&self) -> u64 {
        let changes: usize = self.changes.iter().map(Changes::bytes).sum();
        changes as u64 + self.cold.as_ref().map_or(0, |cold| cold.memory_bytes())
    }

    /// Empties a key group of which a base follows.
    pub(super) fn clear_restored(&mut self, index: usize) -> Result<()> {
        self.end_spill()?;
        self.tables[index].clear();
        let group = self.group_at(index);
        if let Some(cold) = &mut self.cold {
            cold.store.drop_group(group);
            self.changes[index].forget_disk();
        }
        Ok(())
    }

    pub(super) fn no_directory(&self) -> Error {
        Error::input(format!(
            "state '{}' was larger than memory when the checkpoint was taken, and there is no directory for it here: set 'io.tmp.dirs'",
            self.name
        ))
    }

    /// Adds an entry that was saved. State that is larger than memory is restored too.
    pub(super) fn restore_entry(&mut self, index: usize, key: K, namespace: N, value: V) -> Result<()> {
        self.add_restored(index, Entry { epoch: PERSISTED, key, namespace, value });
        self.restored += 1;
        if self.restored.is_multiple_of(RESTORED_PER_LOOK) {
            while self.keep_to_budget()? {}
        }
        Ok(())
    }
}

impl<K: Data + Eq, N: Namespace, V: Data> Checkpointed for KeyedTable<K, N, V> {
    fn name(&self) -> &str {
        &self.name
    }

    fn freeze(&mut self, freeze: Freeze) {
        debug_assert_eq!(self.draining, self.tables.len(), "the snapshot before must be drained");
        if let Err(error) = self.end_spill() {
            self.error.get_or_insert(error);
        }
        self.end_epoch();
        self.draining = 0;
        let (epoch, is_rewindable) = (self.epoch, freeze.is_rewindable && self.cold.is_none());
        for (table, changes) in self.groups() {
            changes.freeze(freeze.mode, epoch);
            match freeze.mode {
                // Nobody goes back to it, and the way back to the checkpoint before leads past it.
                SnapshotMode::Detached => {}
                _ if is_rewindable => changes.undo.start(freeze.checkpoint, epoch, table.len()),
                // Behind a gap nothing can be reached.
                _ => changes.undo.give_up(),
            }
        }
    }

    fn drain(&mut self, entries_max: usize, out: &mut SnapshotWriter) -> Result<bool> {
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        if self.cold.is_some() {
            return self.flush(entries_max, out);
        }
        let mut budget = entries_max.max(1);
        while self.draining < self.tables.len() {
            let changes = &mut self.changes[self.draining];
            if !changes.drain(&mut self.tables[self.draining], self.epoch, &mut budget)? {
                return Ok(false);
            }
            changes.finish(&self.name, (self.range.start as usize + self.draining) as KeyGroup, out)?;
            self.draining += 1;
            // An empty group takes its time too.
            budget = budget.saturating_sub(1);
            if budget == 0 && self.draining < self.tables.len() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn confirm(&mut self, checkpoint: CheckpointId) {
        self.groups().for_each(|(_, changes)| changes.undo.confirm(checkpoint));
    }

    fn maintain(&mut self) -> Result<bool> {
        self.keep_to_budget()
    }

    fn restore(&mut self, section: &Section<'_>) -> Result<()> {
        let index = self.index_of(section.group);
        if section.kind == SectionKind::Base {
            self.clear_restored(index)?;
        }
        let mut body = Decoder::new(section.body);
        for _ in 0..section.entries {
            let is_removal: bool = body.read()?;
            let (key, namespace): (K, N) = (body.read()?, body.read()?);
            if is_removal {
                self.remove_restored(index, &key, &namespace);
            } else {
                self.restore_entry(index, key, namespace, body.read()?)?;
            }
        }
        if body.is_empty() {
            if self.cold.is_none() {
                // What was restored is the base that later changes build on.
                self.changes[index].track();
            }
            return Ok(());
        }
        Err(Error::system(format!(
            "state '{}' of key group {} has {} bytes behind its last entry",
            self.name,
            section.group,
            body.remaining()
        )))
    }

    fn restore_runs(&mut self, runs: &[LocalRun], is_wanted: &dyn Fn(KeyGroup) -> bool) -> Result<Vec<u64>> {
        self.end_spill()?;
        if !self.go_cold()? {
            return Err(self.no_directory());
        }
        let range = self.range;
        let is_mine = |group: &KeyGroup| range.contains(*group) && is_wanted(*group);
        let groups = 0..self.max_parallelism as KeyGroup;
        let others: Vec<KeyGroup> = groups.clone().filter(|group| !is_mine(group)).collect();
        let Some(cold) = &mut self.cold else { return Ok(Vec::new()) };
        for group in groups.filter(is_mine) {
            cold.store.drop_group(group);
        }
        let entries = cold.store.entries();
        let mut ids = Vec::with_capacity(runs.len());
        for run in runs {
            let dropped = [&others[..], &run.dropped[..]].concat();
            ids.push(cold.store.adopt_run(&run.path, &dropped)?);
        }
        cold.entries += cold.store.entries().saturating_sub(entries);
        cold.owe_merging(cold.store.disk_bytes());
        Ok(ids)
    }

    fn restore_old(&mut self, schema: &str, section: &Section<'_>) -> Result<()> {
        self.migrate_section(schema, section)
    }

    fn restore_old_runs(
        &mut self,
        schema: &str,
        runs: &[LocalRun],
        is_wanted: &dyn Fn(KeyGroup) -> bool,
    ) -> Result<()> {
        self.migrate_runs(schema, runs, is_wanted)
    }

    /// The groups stay untracked: no snapshot can build on a table of a savepoint, so the next one has all of it.
    fn restore_rows(&mut self, schema: &str, rows: &RecordBatch, is_wanted: &dyn Fn(KeyGroup) -> bool) -> Result<()> {
        let groups = group_column(rows)?.values().iter();
        let wanted: Vec<bool> = groups.map(|&group| self.owns(group) && is_wanted(group)).collect();
        if !wanted.contains(&true) {
            return Ok(());
        }
        let rows = filter_record_batch(rows, &BooleanArray::from(wanted))
            .map_err(|error| Error::system(format!("choosing rows of state '{}': {error}", self.name)))?;
        let entries: Vec<(K, N, V)> = read_rows(schema, &rows)?;
        for (&group, (key, namespace, value)) in group_column(&rows)?.values().iter().zip(entries) {
            let actual = group_of(stable_hash(&key), self.max_parallelism);
            if actual != group {
                return Err(Error::input(format!(
                    "state '{}' has a key in key group {group} that belongs to key group {actual}: the type of the key or the max-parallelism is not that of the job which took the savepoint, or its files were edited; start the job with the old ones",
                    self.name
                )));
            }
            self.restore_entry(self.index_of(group), key, namespace, value)?;
        }
        Ok(())
    }

    fn rewindable_from(&mut self, checkpoint: CheckpointId) {
        if self.cold.is_some() {
            return;
        }
        let epoch = self.epoch;
        for (table, changes) in self.groups() {
            debug_assert!(changes.is_clean(), "something changed since the restore");
            changes.undo.give_up();
            changes.undo.start(checkpoint, epoch, table.len());
        }
    }

    /// A snapshot under way is dropped. A table that is on disk too gives nothing away: the files of the checkpoint are on
    /// this machine, and whoever takes over reads them.
    fn release(&mut self, checkpoint: CheckpointId) -> Vec<(KeyGroup, GroupState)> {
        self.draining = self.tables.len();
        self.error = None;
        self.cold = None;
        let start = self.range.start as KeyGroup;
        let mut released = Vec::new();
        for (group, (table, changes)) in (start..).zip(self.groups()) {
            let (table, changes) = (std::mem::take(table), std::mem::take(changes));
            // A cold group has no log.
            if let Some(entries) = changes.undo.rewind(table, checkpoint) {
                released.push((group, Box::new(entries) as GroupState));
            }
        }
        released
    }

    fn adopt(&mut self, group: KeyGroup, entries: GroupState) -> Result<()> {
        if !self.owns(group) {
            return Err(Error::system(format!("state '{}' does not own key group {group}", self.name)));
        }
        let entries = entries.downcast::<Group<K, N, V>>().map_err(|_| {
            Error::system(format!(
                "state '{}' cannot take over key group {group}: what was released has other types; read it from the checkpoint's files",
                self.name
            ))
        })?;
        self.end_spill()?;
        let index = self.index_of(group);
        self.tables[index] = *entries;
        self.changes[index] = Changes::default();
        if self.cold.is_some() {
            self.changes[index].go_cold();
        } else {
            self.changes[index].track();
        }
        Ok(())
    }

    fn columns(&self) -> Arc<dyn StateColumns> {
        Arc::clone(self.columns.get_or_init(columns_of::<K, N, V>))
    }

    fn rows(&self) -> u64 {
        self.len() as u64
    }

    fn owns(&self, group: KeyGroup) -> bool {
        self.range.contains(group)
    }

    fn bytes(&self) -> u64 {
        self.entry_bytes() + self.other_bytes()
    }

    fn usage(&self) -> StateUsage {
        self.usage
    }

    fn excess_of_indexes(&self) -> Option<u64> {
        self.account.excess_of_indexes()
    }
}
