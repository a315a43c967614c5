//! Writes what is only in memory as a run, in the order of hashes: a cold table's part of a snapshot, or room that is made.
//!
//! A group has a *plan* while it is written, the hashes of what it has to write, and is written in steps, between which
//! its entries may change. Of a snapshot they are *saved* first, as they were; of a run that makes room they are then
//! simply not a part. What is written is marked clean. It belongs to the epoch before then, so that each later change is
//! noticed; but it must stay in memory until the run is in the store.

use std::ops::Range;

use flott_core::key_group::KeyGroup;
use flott_core::{Data, Error, Result, codec};
use hashbrown::HashTable;

use super::changes::{Changes, Frozen};
use super::cold::{Cold, ColdPart, Tombstone};
use super::{CLEAN, Entry, Group, KeyedTable, Namespace, PERSISTED};
use crate::cold::{ColdStore, RunWriter};
use crate::snapshot::SnapshotWriter;

/// How many bytes of a record are as much work as another record.
const UNIT_BYTES: usize = 256;

/// The records of one hash, usually one.
#[derive(Default)]
pub(super) struct Records {
    bytes: Vec<u8>,
    /// Where each record's key is, and its value unless it is a tombstone.
    found: Vec<(Range<usize>, Option<Range<usize>>)>,
}

impl Records {
    fn clear(&mut self) {
        self.bytes.clear();
        self.found.clear();
    }

    fn push<K: Data, N: Data, V: Data>(&mut self, key: &K, namespace: &N, value: Option<&V>) -> Result<()> {
        let start = self.bytes.len();
        codec::encode_into(key, &mut self.bytes)?;
        codec::encode_into(namespace, &mut self.bytes)?;
        let middle = self.bytes.len();
        if let Some(value) = value {
            codec::encode_into(value, &mut self.bytes)?;
        }
        self.found.push((start..middle, value.map(|_| middle..self.bytes.len())));
        Ok(())
    }

    fn push_encoded(&mut self, key: &[u8], value: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(key);
        let middle = self.bytes.len();
        self.bytes.extend_from_slice(value);
        self.found.push((start..middle, Some(middle..self.bytes.len())));
    }
}

/// Where a group is written.
struct Sink<'a> {
    group: KeyGroup,
    /// How many entries the run will have, about.
    expected: u64,
    store: &'a mut ColdStore,
    run: &'a mut Option<RunWriter>,
    records: &'a mut Records,
}

impl Sink<'_> {
    /// Writes the records of a hash in the order of their keys. Returns how much work that was.
    fn write(&mut self, hash: u64) -> Result<usize> {
        let Records { bytes, found } = &mut *self.records;
        if found.is_empty() {
            return Ok(1);
        }
        if found.len() > 1 {
            found.sort_by(|(a, _), (b, _)| bytes[a.clone()].cmp(&bytes[b.clone()]));
        }
        let run = match self.run {
            Some(run) => run,
            None => self.run.insert(self.store.new_run(self.expected)?),
        };
        for (key, value) in &*found {
            let value = value.clone().map(|value| &bytes[value]);
            run.push(self.group, hash, &bytes[key.clone()], value)?;
        }
        Ok(1 + bytes.len() / UNIT_BYTES)
    }
}

impl<K: Data + Eq, N: Namespace> Changes<K, N> {
    /// Begins to write the group, unless that has begun.
    fn plan<V: Data>(&mut self, table: &Group<K, N, V>, epoch: u32) {
        let Some(part) = &mut self.cold else { return };
        if part.plan.is_some() {
            return;
        }
        let mut hashes = std::mem::take(&mut self.frozen_dirty);
        if self.frozen != Frozen::Changes {
            let is_wanted = |entry: &&Entry<K, N, V>| !entry.is_clean() && entry.epoch() != epoch;
            hashes.extend(table.iter().filter(is_wanted).map(Entry::hash));
        }
        if self.frozen == Frozen::Nothing {
            part.frozen_tombstones = std::mem::take(&mut part.tombstones);
        }
        hashes.extend(part.saved.keys().map(|(hash, _)| *hash));
        hashes.extend(part.frozen_tombstones.iter().map(|tombstone| tombstone.hash));
        hashes.sort_unstable();
        hashes.dedup();
        part.position = 0;
        part.plan = Some(hashes);
    }

    /// Writes entries of older epochs that are in no run, and tombstones, until `budget` is used up; true when the group
    /// is done.
    fn write_group<V: Data>(
        &mut self,
        table: &mut Group<K, N, V>,
        epoch: u32,
        sink: &mut Sink<'_>,
        budget: &mut usize,
    ) -> Result<bool> {
        self.plan(table, epoch);
        let Some(ColdPart { plan: Some(plan), position, saved, saved_bytes, frozen_tombstones, clean, .. }) =
            self.cold.as_deref_mut()
        else {
            return Ok(true);
        };
        while let Some(&hash) = plan.get(*position) {
            if *budget == 0 {
                return Ok(false);
            }
            sink.records.clear();
            for entry in table.iter_hash_mut(hash) {
                if !entry.is_clean() && entry.epoch() != epoch && entry.hash() == hash {
                    sink.records.push(&entry.key, &entry.namespace, Some(&entry.value))?;
                    entry.epoch = (epoch - 1) | PERSISTED | CLEAN;
                    *clean += 1;
                }
            }
            while let Some(first) = saved.first_entry()
                && first.key().0 <= hash
            {
                let ((_, key), value) = first.remove_entry();
                *saved_bytes = saved_bytes.saturating_sub(key.len() + value.len());
                sink.records.push_encoded(&key, &value);
            }
            for tombstone in frozen_tombstones.iter_hash(hash).filter(|tombstone| tombstone.hash == hash) {
                sink.records.push(&tombstone.key, &tombstone.namespace, None::<&V>)?;
            }
            *budget = budget.saturating_sub(sink.write(hash)?);
            *position += 1;
        }
        Ok(true)
    }

    /// The run is in the store, or would have been if `is_added` is false. What the group has not written stays to be
    /// written, and so does everything in the latter case.
    fn end_run<V: Data>(&mut self, table: &mut Group<K, N, V>, epoch: u32, is_added: bool) {
        let Some(part) = &mut self.cold else { return };
        let is_whole = part.plan.is_none();
        part.plan = None;
        part.saved.clear();
        part.saved_bytes = 0;
        self.frozen = Frozen::Nothing;
        let frozen = std::mem::take(&mut part.frozen_tombstones);
        if is_added && is_whole {
            return;
        }
        for Tombstone { hash, key, namespace } in frozen {
            // An entry that came back in the meantime knows that there was one.
            let is_back = table.find(hash, |entry| entry.key == key && entry.namespace == namespace).is_some();
            if !is_back {
                part.bury(hash, &key, &namespace);
            }
        }
        if !is_added {
            for entry in table.iter_mut().filter(|entry| entry.is_clean() && entry.epoch() == epoch - 1) {
                entry.epoch &= !CLEAN;
                part.clean = part.clean.saturating_sub(1);
            }
            self.frozen_dirty = Vec::new();
            self.untrack();
        }
    }
}

impl<K: Data + Eq, N: Namespace, V: Data> KeyedTable<K, N, V> {
    /// Writes more of group `index`; true when it is done.
    fn write_part(&mut self, index: usize, expected: u64, budget: &mut usize) -> Result<bool> {
        let group = self.group_at(index);
        let Some(Cold { store, run, records, .. }) = self.cold.as_deref_mut() else { return Ok(true) };
        let mut sink = Sink { group, expected, store, run, records };
        let (table, changes) = (&mut self.tables[index], &mut self.changes[index]);
        if !changes.write_group(table, self.epoch, &mut sink, budget)? {
            return Ok(false);
        }
        if let Some(part) = &mut changes.cold {
            part.plan = None;
        }
        changes.limit(table.len());
        Ok(true)
    }

    /// Ends the run that is being written, whether all groups have written to it or not.
    fn end_run(&mut self) -> Result<()> {
        let Some(cold) = &mut self.cold else { return Ok(()) };
        let added = cold.add_run();
        let epoch = self.epoch;
        for (table, changes) in self.tables.iter_mut().zip(&mut self.changes) {
            changes.end_run(table, epoch, added.is_ok());
        }
        added
    }

    /// Writes frozen entries, about `entries_max`; true when the snapshot has all.
    pub(super) fn flush(&mut self, entries_max: usize, out: &mut SnapshotWriter) -> Result<bool> {
        if !self.is_draining() {
            return Ok(true);
        }
        match self.flush_some(entries_max.max(1)) {
            Ok(false) => return Ok(false),
            Ok(true) => match self.end_run() {
                Ok(()) => {
                    if let Some(cold) = &self.cold {
                        out.runs(&self.name, self.range, cold.store.pin());
                    }
                }
                Err(error) => self.flush_failed(error, out),
            },
            Err(error) => {
                self.give_up_run();
                self.flush_failed(error, out);
            }
        }
        self.draining = self.tables.len();
        self.drop_groups();
        Ok(true)
    }

    /// The entries are in memory and go with the next snapshot. Only this one is lost.
    fn flush_failed(&self, error: Error, out: &mut SnapshotWriter) {
        out.fail(error.context(format!("state '{}'", self.name)));
    }

    fn flush_some(&mut self, mut budget: usize) -> Result<bool> {
        while self.draining < self.tables.len() {
            let expected = if self.has_run() { 0 } else { self.unwritten() };
            if !self.write_part(self.draining, expected, &mut budget)? {
                return Ok(false);
            }
            self.draining += 1;
            // An empty group takes its time too.
            budget = budget.saturating_sub(1);
            if budget == 0 && self.draining < self.tables.len() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn has_run(&self) -> bool {
        self.cold.as_ref().is_some_and(|cold| cold.run.is_some())
    }

    /// How many entries the groups have that are in no run, about.
    fn unwritten(&self) -> u64 {
        let groups = self.tables.iter().zip(&self.changes);
        let count = |(table, changes): (&Group<K, N, V>, &Changes<K, N>)| {
            let part = changes.cold.as_deref();
            let (clean, tombstones) =
                part.map_or((0, 0), |p| (p.clean, p.tombstones.len() + p.frozen_tombstones.len()));
            (table.len().saturating_sub(clean) + tombstones) as u64
        };
        groups.map(count).sum()
    }

    /// Drops the run that is being written.
    fn give_up_run(&mut self) {
        if let Some(cold) = &mut self.cold {
            cold.run = None;
            cold.hand.is_spilling = false;
        }
        let epoch = self.epoch;
        for (table, changes) in self.tables.iter_mut().zip(&mut self.changes) {
            changes.end_run(table, epoch, false);
        }
    }

    /// Groups that were left during the snapshot are not needed any more.
    fn drop_groups(&mut self) {
        for index in 0..self.tables.len() {
            let group = self.group_at(index);
            if let (Some(cold), Some(part)) = (&mut self.cold, &mut self.changes[index].cold)
                && std::mem::take(&mut part.is_gone)
            {
                cold.store.drop_group(group);
                part.tombstones = HashTable::new();
            }
        }
    }

    /// Writes some entries of older epochs, so that they can be given up: about `budget`, and `bytes_max` in one run.
    /// The first call of a run ends the epoch. Returns whether there was anything to write.
    pub(super) fn spill(&mut self, mut budget: usize, bytes_max: u64) -> Result<bool> {
        let is_begun = self.cold.as_ref().is_some_and(|cold| cold.hand.is_spilling);
        if !is_begun {
            if self.unwritten() == 0 {
                return Ok(false);
            }
            // Every later change of what is there now is a first change, and noticed.
            self.end_epoch();
        }
        let expected = if self.has_run() { 0 } else { self.unwritten().min(bytes_max / 32) };
        loop {
            let Some(cold) = &mut self.cold else { return Ok(false) };
            let index = cold.hand.spilling;
            cold.hand.is_spilling = true;
            match self.write_part(index, expected, &mut budget) {
                Ok(true) => {}
                Ok(false) => return Ok(true),
                Err(error) => {
                    self.give_up_run();
                    return Err(error.context(format!("state '{}'", self.name)));
                }
            }
            let Some(cold) = &mut self.cold else { return Ok(false) };
            cold.hand.spilling = (index + 1) % self.tables.len();
            let bytes = cold.run.as_ref().map_or(0, RunWriter::disk_bytes);
            if bytes >= bytes_max || cold.hand.spilling == 0 {
                self.end_spill()?;
                return Ok(true);
            }
            // An empty group takes its time too.
            budget = budget.saturating_sub(1);
            if budget == 0 {
                return Ok(true);
            }
        }
    }

    /// Ends a run that makes room, if there is one: the entries that are written can be given up.
    pub(super) fn end_spill(&mut self) -> Result<()> {
        match &mut self.cold {
            Some(cold) if cold.hand.is_spilling => cold.hand.is_spilling = false,
            _ => return Ok(()),
        }
        self.end_run().map_err(|error| error.context(format!("state '{}'", self.name)))
    }
}
