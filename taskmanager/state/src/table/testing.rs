//! Tables of every kind, for tests that all of them must pass.

use std::collections::{BTreeMap, BTreeSet};

use flott_core::Data;
use flott_core::key_group::{KeyGroup, KeyGroupRange, range_of};
use proptest::prelude::*;
use tempfile::TempDir;

use super::{KeyedTable, Namespace};
use crate::budget::{MemoryBudget, StateBackend};
use crate::snapshot::{Checkpointed, LocalRun, SnapshotContent, SnapshotReader, SnapshotWriter, StateRuns};

/// Where a table keeps its entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// In memory.
    Memory,
    /// In memory, of which there is hardly any, so that all that is not there for a moment is on disk.
    Spilling,
    /// The same, and on disk before anything happens.
    Disk,
}

pub(super) fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![Just(Kind::Memory), Just(Kind::Spilling), Just(Kind::Disk)]
}

/// Makes tables of one kind.
pub(super) struct Bed {
    pub(super) backend: StateBackend,
    pub(super) disk: TempDir,
}

impl Bed {
    pub(super) fn new(kind: Kind) -> Self {
        let limit = if kind == Kind::Memory { u64::MAX } else { 1000 };
        Self::with_limit(kind, limit)
    }

    pub(super) fn with_limit(kind: Kind, limit: u64) -> Self {
        let disk = tempfile::tempdir().unwrap();
        let directory = disk.path().join("state");
        Self { backend: StateBackend::new(MemoryBudget::new(limit), Some(directory), kind == Kind::Disk), disk }
    }

    pub(super) fn table<K: Data + Eq, N: Namespace, V: Data>(
        &self,
        range: KeyGroupRange,
        groups: u32,
    ) -> KeyedTable<K, N, V> {
        KeyedTable::with_backend("t", range, groups, &self.backend)
    }

    /// One table a subtask.
    pub(super) fn tables<K: Data + Eq, N: Namespace, V: Data>(
        &self,
        parallelism: u32,
        groups: u32,
    ) -> Vec<KeyedTable<K, N, V>> {
        (0..parallelism).map(|index| self.table(range_of(parallelism, index, groups), groups)).collect()
    }
}

/// What a table gave to a snapshot.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub(super) bytes: Vec<u8>,
    pub(super) runs: Option<StateRuns>,
}

impl Part {
    pub(super) fn of(writer: SnapshotWriter) -> Self {
        let (content, mut runs) = writer.finish().unwrap();
        let SnapshotContent::Memory(bytes) = content else { panic!("no place to overflow to") };
        assert!(runs.len() <= 1);
        Self { bytes, runs: runs.pop() }
    }

    /// How many entries it has.
    pub(super) fn entries(&self) -> u64 {
        let mut entries = 0;
        let mut reader = SnapshotReader::new(&self.bytes).unwrap();
        while let Some(section) = reader.next_section().unwrap() {
            entries += section.entries;
        }
        if let Some(runs) = &self.runs {
            let counted = runs.sections(&mut |_, count, _| {
                entries += count;
                Ok(())
            });
            counted.unwrap();
        }
        entries
    }
}

/// Restores all key groups but those in `adopted` from the parts of successive snapshots.
pub(super) fn restore<K: Data + Eq, N: Namespace, V: Data>(
    parts: &[Part],
    tables: &mut [KeyedTable<K, N, V>],
    adopted: &BTreeSet<KeyGroup>,
) {
    // Runs are all that there is of their key groups, whatever was written before.
    let mut by_runs: BTreeMap<KeyGroup, usize> = BTreeMap::new();
    for (index, part) in parts.iter().enumerate() {
        let range = part.runs.as_ref().map(|runs| runs.range);
        by_runs.extend(range.into_iter().flat_map(|range| range.start..range.end).map(|g| (g as KeyGroup, index)));
    }
    for (index, part) in parts.iter().enumerate() {
        if let Some(runs) = &part.runs {
            let files = runs.pinned.files().into_iter();
            let files: Vec<LocalRun> = files.map(|run| LocalRun { path: run.path, dropped: run.dropped }).collect();
            let is_wanted = |group: KeyGroup| by_runs.get(&group) == Some(&index) && !adopted.contains(&group);
            let wanted: Vec<KeyGroup> =
                (runs.range.start..runs.range.end).map(|g| g as KeyGroup).filter(|g| is_wanted(*g)).collect();
            for table in tables.iter_mut().filter(|table| wanted.iter().any(|group| table.owns(*group))) {
                table.restore_runs(&files, &is_wanted).unwrap();
            }
        }
        let mut reader = SnapshotReader::new(&part.bytes).unwrap();
        while let Some(section) = reader.next_section().unwrap() {
            let is_newest = by_runs.get(&section.group).is_none_or(|runs| *runs < index);
            if is_newest && !adopted.contains(&section.group) {
                let owner = tables.iter_mut().find(|table| table.owns(section.group)).unwrap();
                owner.restore(&section).unwrap();
            }
        }
    }
}
