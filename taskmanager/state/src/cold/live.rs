//! Runs in use, which of their key groups still count, and what a checkpoint holds of them.

use std::path::PathBuf;
use std::sync::Arc;

use flott_core::Result;
use flott_core::key_group::KeyGroup;

use super::run::{GroupPart, Run};
use super::scan::Scan;

/// A set of key groups.
#[derive(Clone, Debug, Default)]
pub(super) struct GroupSet(Vec<u64>);

impl GroupSet {
    pub(super) fn insert(&mut self, group: KeyGroup) {
        let word = usize::from(group / 64);
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1_u64 << (group % 64);
    }

    #[inline]
    pub(super) fn contains(&self, group: KeyGroup) -> bool {
        self.0.get(usize::from(group / 64)).is_some_and(|word| word & (1_u64 << (group % 64)) != 0)
    }
}

/// A run of a store.
#[derive(Clone, Debug)]
pub(super) struct Live {
    pub(super) run: Arc<Run>,
    /// Its key groups that are gone.
    pub(super) dropped: GroupSet,
}

impl Live {
    pub(super) fn new(run: Run, dropped: GroupSet) -> Self {
        Self { run: Arc::new(run), dropped }
    }

    pub(super) fn drop_group(&mut self, group: KeyGroup) {
        // Only its own, so that what a checkpoint notes of it stays short.
        if self.run.has_group(group) {
            self.dropped.insert(group);
        }
    }

    fn parts(&self) -> impl Iterator<Item = &GroupPart> {
        self.run.groups().iter().filter(move |part| !self.dropped.contains(part.group))
    }

    /// Its entries that still count, tombstones among them.
    pub(super) fn entries(&self) -> u64 {
        self.parts().map(|part| part.entries).sum()
    }

    /// What they take in the file.
    pub(super) fn bytes(&self) -> u64 {
        self.parts().map(|part| part.bytes).sum()
    }

    pub(super) fn file(&self) -> RunFile {
        let groups = self.run.groups().iter().map(|part| part.group);
        RunFile {
            id: self.run.location().id(),
            path: self.run.location().path().to_owned(),
            length: self.run.length(),
            entries: self.entries(),
            dropped: groups.filter(|group| self.dropped.contains(*group)).collect(),
        }
    }
}

/// One file of the state. It never changes; what it still counts for does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunFile {
    /// A number that no other file of the store has or will have.
    pub id: u64,
    /// Where it is.
    pub path: PathBuf,
    /// Its length in bytes.
    pub length: u64,
    /// How many entries of it count, at most.
    pub entries: u64,
    /// The key groups whose entries in it are gone. A checkpoint must note them: the file does not know.
    pub dropped: Vec<KeyGroup>,
}

/// The state as it was at one moment. Its files stay on disk, whatever the store does meanwhile, until this value
/// is dropped; that may happen on any thread, and after the store is gone.
#[derive(Clone, Debug)]
pub struct Pinned {
    pub(super) runs: Vec<Live>,
}

impl Pinned {
    /// The files, oldest first.
    pub fn files(&self) -> Vec<RunFile> {
        self.runs.iter().map(Live::file).collect()
    }

    /// The live entries that a key group had, in order.
    pub fn scan_group(&self, group: KeyGroup) -> Result<Scan> {
        Scan::of_group(&self.runs, group)
    }
}
