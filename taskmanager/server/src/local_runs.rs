//! Which runs of checkpoints are on this machine already: those that a subtask has uploaded or fetched.
//!
//! State on disk is not handed from one generation to the next. It is in the checkpoint, file by file, and whoever needs a
//! file that the worker still has takes that instead of fetching it. So a survivor of a failure goes on at once,
//! whatever key groups it has then.

use std::any::Any;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use flott_checkpoint::FileHandle;
use flott_core::ids::{CheckpointId, SubtaskId};

/// A file of a checkpoint on this machine.
#[derive(Clone, Debug)]
pub(crate) struct LocalCopy {
    /// What it is a copy of.
    pub(crate) file: FileHandle,
    /// Where it is.
    pub(crate) path: PathBuf,
    /// Whoever keeps it there.
    pub(crate) owner: Arc<dyn Any + Send + Sync>,
}

/// The files of checkpoints from which a generation may start.
#[derive(Clone, Debug, Default)]
pub(crate) struct LocalRuns {
    copies: BTreeMap<(CheckpointId, SubtaskId), Vec<LocalCopy>>,
}

impl LocalRuns {
    /// Keeps the files of a subtask's part of a checkpoint.
    pub(crate) fn add(&mut self, checkpoint: CheckpointId, subtask: SubtaskId, copies: Vec<LocalCopy>) {
        if !copies.is_empty() {
            self.copies.insert((checkpoint, subtask), copies);
        }
    }

    /// The checkpoint is durable: no generation will start from an older one.
    pub(crate) fn completed(&mut self, checkpoint: CheckpointId) {
        self.copies.retain(|(older, _), _| *older >= checkpoint);
    }

    /// No generation will start from this checkpoint.
    pub(crate) fn aborted(&mut self, checkpoint: CheckpointId) {
        self.copies.retain(|(aborted, _), _| *aborted != checkpoint);
    }

    /// The copy of a file, if there is one.
    pub(crate) fn find(&self, file: &FileHandle) -> Option<&LocalCopy> {
        self.copies.values().flatten().find(|copy| copy.file == *file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_kept_as_long_as_a_generation_may_start_from_them() {
        let subtask = SubtaskId { vertex: 1, index: 0 };
        let file = |name: &str| FileHandle { path: name.to_owned(), bytes: 1, sha256: String::new() };
        let owner: Arc<dyn Any + Send + Sync> = Arc::new(());
        let copy = |name: &str| LocalCopy { file: file(name), path: name.into(), owner: Arc::clone(&owner) };
        let mut runs = LocalRuns::default();
        runs.add(1, subtask, vec![copy("a"), copy("b")]);
        runs.add(2, subtask, vec![copy("b"), copy("c")]);
        runs.add(3, subtask, vec![copy("d")]);
        runs.aborted(3);
        let found = |runs: &LocalRuns| ["a", "b", "c", "d"].map(|name| runs.find(&file(name)).is_some());
        assert_eq!(found(&runs), [true, true, true, false]);
        runs.completed(2);
        assert_eq!(found(&runs), [false, true, true, false]);
        runs.completed(9);
        assert_eq!(Arc::strong_count(&owner), 1);
    }
}
