//! Which splits of a source are still to be read, and who asked for one.
//!
//! A split is handed out once. It is part of a checkpoint either here, as unassigned, or in the
//! state of the subtask that got it: a session is ordered, so a subtask knows every split that was
//! handed to it before the checkpoint was triggered, and none that came after.

use std::collections::VecDeque;

/// An answer to a subtask's request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Assignment {
    /// The subtask's index.
    pub(crate) subtask: u32,
    /// The encoded splits.
    pub(crate) splits: Vec<Vec<u8>>,
    /// Whether none will follow.
    pub(crate) is_last: bool,
}

/// The splits of one source.
#[derive(Clone, Debug, Default)]
pub(crate) struct SplitAssigner {
    is_discovered: bool,
    unassigned: VecDeque<Vec<u8>>,
    /// Subtasks that asked before the splits were known, in the order in which they asked.
    waiting: VecDeque<u32>,
}

impl SplitAssigner {
    /// A source whose splits were known when the checkpoint was taken.
    pub(crate) fn restored(unassigned: Vec<Vec<u8>>) -> Self {
        Self { is_discovered: true, unassigned: unassigned.into(), waiting: VecDeque::new() }
    }

    /// Whether the splits are known.
    pub(crate) fn is_discovered(&self) -> bool {
        self.is_discovered
    }

    /// The splits were found. A second answer changes nothing: the first has been handed out.
    pub(crate) fn discover(&mut self, splits: Vec<Vec<u8>>) -> Vec<Assignment> {
        if self.is_discovered {
            return Vec::new();
        }
        self.is_discovered = true;
        self.unassigned = splits.into();
        let waiting = std::mem::take(&mut self.waiting);
        waiting.into_iter().filter_map(|subtask| self.request(subtask)).collect()
    }

    /// A subtask has nothing left to read. Without an answer it waits for the discovery.
    pub(crate) fn request(&mut self, subtask: u32) -> Option<Assignment> {
        if !self.is_discovered {
            if !self.waiting.contains(&subtask) {
                self.waiting.push_back(subtask);
            }
            return None;
        }
        let split = self.unassigned.pop_front();
        Some(Assignment { subtask, is_last: split.is_none(), splits: split.into_iter().collect() })
    }

    /// What a checkpoint that is triggered now has to keep: the unassigned splits, and whether they are known.
    pub(crate) fn snapshot(&self) -> (Vec<Vec<u8>>, bool) {
        (self.unassigned.iter().cloned().collect(), self.is_discovered)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn assignment(subtask: u32, split: Option<u8>) -> Assignment {
        let splits: Vec<Vec<u8>> = split.into_iter().map(|byte| vec![byte]).collect();
        Assignment { subtask, is_last: splits.is_empty(), splits }
    }

    #[test]
    fn requests_wait_for_the_discovery() {
        let mut assigner = SplitAssigner::default();
        assert_eq!(assigner.request(1), None);
        assert_eq!(assigner.request(0), None);
        assert_eq!(assigner.request(1), None);
        let assigned = assigner.discover(vec![vec![7]]);
        assert_eq!(assigned, [assignment(1, Some(7)), assignment(0, None)]);
        assert_eq!(assigner.request(1), Some(assignment(1, None)));
    }

    #[test]
    fn a_second_discovery_changes_nothing() {
        let mut assigner = SplitAssigner::default();
        assigner.discover(vec![vec![1], vec![2]]);
        assert_eq!(assigner.request(0), Some(assignment(0, Some(1))));
        assert!(assigner.discover(vec![vec![1], vec![2]]).is_empty());
        assert_eq!(assigner.snapshot(), (vec![vec![2]], true));
    }

    #[test]
    fn fault_36_a_checkpoint_keeps_what_no_subtask_got() {
        let mut assigner = SplitAssigner::default();
        assert_eq!(assigner.snapshot(), (vec![], false));
        assigner.discover(vec![vec![1], vec![2], vec![3]]);
        assigner.request(0);
        let (unassigned, is_discovered) = assigner.snapshot();
        assert!(is_discovered);
        let mut restored = SplitAssigner::restored(unassigned);
        assert_eq!(restored.request(1), Some(assignment(1, Some(2))));
        assert_eq!(restored.request(1), Some(assignment(1, Some(3))));
        assert_eq!(restored.request(1), Some(assignment(1, None)));
    }

    proptest! {
        /// Readers hold the splits that they got; a restore goes back to the last snapshot of both.
        #[test]
        fn splits_are_never_lost_nor_duplicated(count in 0u8..20, steps in prop::collection::vec(0u8..10, 0..80)) {
            let all: Vec<Vec<u8>> = (0..count).map(|byte| vec![byte]).collect();
            let mut assigner = SplitAssigner::default();
            let mut read: Vec<Vec<u8>> = Vec::new();
            let mut saved = (assigner.snapshot(), read.clone());
            for step in steps {
                match step {
                    0 => read.extend(assigner.discover(all.clone()).into_iter().flat_map(|a| a.splits)),
                    1 => saved = (assigner.snapshot(), read.clone()),
                    2 => {
                        let ((unassigned, is_discovered), held) = saved.clone();
                        assigner = if is_discovered { SplitAssigner::restored(unassigned) } else { SplitAssigner::default() };
                        read = held;
                    }
                    subtask => read.extend(assigner.request(u32::from(subtask)).into_iter().flat_map(|a| a.splits)),
                }
            }
            read.extend(assigner.discover(all.clone()).into_iter().flat_map(|a| a.splits));
            while let Some(Assignment { splits, is_last: false, .. }) = assigner.request(0) {
                read.extend(splits);
            }
            read.sort();
            prop_assert_eq!(read, all);
        }
    }
}
