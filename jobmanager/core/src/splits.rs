//! Which splits of a source are still to be read, and who asked for one.
//!
//! A split is handed out once. It is part of a checkpoint either here, as unassigned, or in the
//! state of the subtask that got it: a session is ordered, so a subtask knows every split that was
//! handed to it before the checkpoint was triggered, and none that came after.
//!
//! A failure may take some subtasks of a source back to a checkpoint, and leave others alone. So it is remembered who
//! got what since the last checkpoint: what a subtask got that goes back without it can be handed out again.

use std::collections::VecDeque;

use flott_core::ids::CheckpointId;

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
    /// What was handed out since the last checkpoint, in order.
    recent: Vec<Handed>,
}

/// A split that was handed out.
#[derive(Clone, Debug)]
struct Handed {
    subtask: u32,
    split: Vec<u8>,
    /// The first checkpoint that has it in the subtask's state, if it completes.
    part_of: CheckpointId,
}

impl SplitAssigner {
    /// A source whose splits were known when the checkpoint was taken.
    pub(crate) fn restored(unassigned: Vec<Vec<u8>>) -> Self {
        Self { is_discovered: true, unassigned: unassigned.into(), ..Self::default() }
    }

    /// Whether the splits are known.
    pub(crate) fn is_discovered(&self) -> bool {
        self.is_discovered
    }

    /// The splits were found. A second answer changes nothing: the first has been handed out. `next` is the checkpoint
    /// that will be triggered next.
    pub(crate) fn discover(&mut self, splits: Vec<Vec<u8>>, next: CheckpointId) -> Vec<Assignment> {
        if self.is_discovered {
            return Vec::new();
        }
        self.is_discovered = true;
        self.unassigned = splits.into();
        let waiting = std::mem::take(&mut self.waiting);
        waiting.into_iter().filter_map(|subtask| self.request(subtask, next)).collect()
    }

    /// A subtask has nothing left to read. Without an answer it waits for the discovery. `next` is the checkpoint that
    /// will be triggered next.
    pub(crate) fn request(&mut self, subtask: u32, next: CheckpointId) -> Option<Assignment> {
        if !self.is_discovered {
            if !self.waiting.contains(&subtask) {
                self.waiting.push_back(subtask);
            }
            return None;
        }
        let split = self.unassigned.pop_front();
        self.recent.extend(split.iter().map(|split| Handed { subtask, split: split.clone(), part_of: next }));
        Some(Assignment { subtask, is_last: split.is_none(), splits: split.into_iter().collect() })
    }

    /// A checkpoint is durable: nobody goes back to earlier ones.
    pub(crate) fn completed(&mut self, checkpoint: CheckpointId) {
        self.recent.retain(|handed| handed.part_of > checkpoint);
    }

    /// Some subtasks go back to a checkpoint, 0 if there is none: what they got since comes back, to be handed out first.
    /// What they asked for, nobody waits for.
    pub(crate) fn take_back(&mut self, checkpoint: CheckpointId, goes_back: impl Fn(u32) -> bool) {
        self.waiting.retain(|subtask| !goes_back(*subtask));
        let back = self.recent.extract_if(.., |handed| goes_back(handed.subtask) && handed.part_of > checkpoint);
        let back: Vec<Vec<u8>> = back.map(|handed| handed.split).collect();
        back.into_iter().rev().for_each(|split| self.unassigned.push_front(split));
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
        assert_eq!(assigner.request(1, 1), None);
        assert_eq!(assigner.request(0, 1), None);
        assert_eq!(assigner.request(1, 1), None);
        let assigned = assigner.discover(vec![vec![7]], 1);
        assert_eq!(assigned, [assignment(1, Some(7)), assignment(0, None)]);
        assert_eq!(assigner.request(1, 1), Some(assignment(1, None)));
    }

    #[test]
    fn a_second_discovery_changes_nothing() {
        let mut assigner = SplitAssigner::default();
        assigner.discover(vec![vec![1], vec![2]], 1);
        assert_eq!(assigner.request(0, 1), Some(assignment(0, Some(1))));
        assert!(assigner.discover(vec![vec![1], vec![2]], 1).is_empty());
        assert_eq!(assigner.snapshot(), (vec![vec![2]], true));
    }

    #[test]
    fn fault_36_a_checkpoint_keeps_what_no_subtask_got() {
        let mut assigner = SplitAssigner::default();
        assert_eq!(assigner.snapshot(), (vec![], false));
        assigner.discover(vec![vec![1], vec![2], vec![3]], 1);
        assigner.request(0, 1);
        let (unassigned, is_discovered) = assigner.snapshot();
        assert!(is_discovered);
        let mut restored = SplitAssigner::restored(unassigned);
        assert_eq!(restored.request(1, 1), Some(assignment(1, Some(2))));
        assert_eq!(restored.request(1, 1), Some(assignment(1, Some(3))));
        assert_eq!(restored.request(1, 1), Some(assignment(1, None)));
    }

    #[test]
    fn what_a_subtask_got_since_the_checkpoint_comes_back_with_it() {
        let mut assigner = SplitAssigner::default();
        assigner.request(1, 1);
        assigner.take_back(0, |subtask| subtask == 1);
        assert!(assigner.discover(vec![vec![1], vec![2], vec![3], vec![4], vec![5]], 1).is_empty(), "nobody waits");
        assigner.request(0, 1);
        assigner.request(1, 1);
        // Checkpoint 1 is triggered here.
        assigner.request(1, 2);
        assigner.request(0, 2);
        assigner.completed(1);
        assigner.request(1, 2);
        assigner.take_back(1, |subtask| subtask == 1);
        assert_eq!(assigner.snapshot(), (vec![vec![3], vec![5]], true));
        assigner.take_back(1, |subtask| subtask == 1);
        assert_eq!(assigner.snapshot(), (vec![vec![3], vec![5]], true), "once");
        assigner.take_back(1, |_| true);
        assert_eq!(assigner.snapshot(), (vec![vec![4], vec![3], vec![5]], true));
    }

    const SUBTASKS: usize = 3;

    /// Subtasks that hold the splits that they got, and what a checkpoint has of them.
    #[derive(Clone, Default)]
    struct Readers {
        held: [Vec<Vec<u8>>; SUBTASKS],
        saved: [Vec<Vec<u8>>; SUBTASKS],
    }

    impl Readers {
        fn take(&mut self, assignments: impl IntoIterator<Item = Assignment>) {
            for Assignment { subtask, splits, .. } in assignments {
                self.held[subtask as usize].extend(splits);
            }
        }
    }

    proptest! {
        /// A restore goes back to the last snapshot of assigner and readers, for all of them or for some.
        #[test]
        fn splits_are_never_lost_nor_duplicated(count in 0u8..20, steps in prop::collection::vec((0u8..8, 0u8..8), 0..80)) {
            let all: Vec<Vec<u8>> = (0..count).map(|byte| vec![byte]).collect();
            let (mut assigner, mut readers) = (SplitAssigner::default(), Readers::default());
            let mut saved = assigner.snapshot();
            // The last complete checkpoint, and the one that is triggered next.
            let (mut last, mut next): (CheckpointId, CheckpointId) = (0, 1);
            let mut pending = None;
            for (step, argument) in steps {
                match step {
                    0 => readers.take(assigner.discover(all.clone(), next)),
                    1 => {
                        pending = Some((next, assigner.snapshot(), readers.held.clone()));
                        next += 1;
                    }
                    2 => if let Some((id, unassigned, held)) = pending.take() {
                        (last, saved, readers.saved) = (id, unassigned, held);
                        assigner.completed(last);
                    }
                    3 => {
                        let (unassigned, is_discovered) = saved.clone();
                        assigner = if is_discovered { SplitAssigner::restored(unassigned) } else { SplitAssigner::default() };
                        readers.held = readers.saved.clone();
                        pending = None;
                    }
                    4 => {
                        let goes_back = |subtask: u32| argument & (1 << subtask) != 0;
                        assigner.take_back(last, goes_back);
                        for subtask in (0..SUBTASKS).filter(|&subtask| goes_back(subtask as u32)) {
                            readers.held[subtask] = readers.saved[subtask].clone();
                        }
                        pending = None;
                    }
                    _ => readers.take(assigner.request(u32::from(argument) % SUBTASKS as u32, next)),
                }
            }
            readers.take(assigner.discover(all.clone(), next));
            while let Some(assignment @ Assignment { is_last: false, .. }) = assigner.request(0, next) {
                readers.take([assignment]);
            }
            let mut read = readers.held.concat();
            read.sort();
            prop_assert_eq!(read, all);
        }
    }
}
