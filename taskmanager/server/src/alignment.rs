//! Barrier alignment: a subtask snapshots when every channel has delivered the barrier. A pure machine.
//!
//! A channel that has delivered it is blocked until the others have too, so that no record from
//! behind the barrier gets into the snapshot: that is what makes state exactly-once.

use flott_core::ids::CheckpointId;

/// What a barrier leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alignment {
    /// The first barrier of a checkpoint; its channel is blocked now.
    Begun,
    /// Another one; its channel is blocked now.
    Waiting,
    /// The last one: no channel is blocked any more. Snapshot, and pass the barrier on.
    Complete,
    /// It belongs to a checkpoint that a later one has overtaken. Ignore it.
    Stale,
}

/// The barriers of one subtask's channels.
#[derive(Clone, Debug)]
pub struct Aligner {
    is_blocked: Vec<bool>,
    current: CheckpointId,
    missing: usize,
}

impl Aligner {
    /// No barriers yet on `channels` channels.
    pub fn new(channels: usize) -> Self {
        Self { is_blocked: vec![false; channels], current: 0, missing: 0 }
    }

    /// Whether nothing may be taken from a channel for now.
    pub fn is_blocked(&self, channel: usize) -> bool {
        self.is_blocked[channel]
    }

    /// Whether a checkpoint is being aligned.
    pub fn is_aligning(&self) -> bool {
        self.missing > 0
    }

    /// A channel delivered the barrier of `checkpoint`.
    pub fn on_barrier(&mut self, channel: usize, checkpoint: CheckpointId) -> Alignment {
        if checkpoint < self.current || (checkpoint == self.current && self.missing == 0) {
            return Alignment::Stale;
        }
        let begins = checkpoint > self.current;
        if begins {
            // A later checkpoint gives up the one under way: the coordinator has aborted it.
            self.is_blocked.fill(false);
            self.current = checkpoint;
            self.missing = self.is_blocked.len();
        }
        if !std::mem::replace(&mut self.is_blocked[channel], true) {
            self.missing -= 1;
        }
        match (self.missing, begins) {
            (0, _) => {
                self.is_blocked.fill(false);
                Alignment::Complete
            }
            (_, true) => Alignment::Begun,
            (_, false) => Alignment::Waiting,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn all_channels_must_deliver() {
        let mut aligner = Aligner::new(3);
        assert_eq!(aligner.on_barrier(1, 1), Alignment::Begun);
        assert!(aligner.is_blocked(1) && !aligner.is_blocked(0));
        assert_eq!(aligner.on_barrier(0, 1), Alignment::Waiting);
        assert_eq!(aligner.on_barrier(2, 1), Alignment::Complete);
        assert!(!aligner.is_blocked(1) && !aligner.is_aligning());
    }

    #[test]
    fn one_channel_needs_no_waiting() {
        let mut aligner = Aligner::new(1);
        assert_eq!(aligner.on_barrier(0, 1), Alignment::Complete);
        assert_eq!(aligner.on_barrier(0, 1), Alignment::Stale);
        assert_eq!(aligner.on_barrier(0, 2), Alignment::Complete);
    }

    #[test]
    fn a_later_checkpoint_gives_up_an_earlier_one() {
        let mut aligner = Aligner::new(2);
        assert_eq!(aligner.on_barrier(0, 1), Alignment::Begun);
        assert_eq!(aligner.on_barrier(1, 2), Alignment::Begun);
        assert!(!aligner.is_blocked(0));
        assert_eq!(aligner.on_barrier(0, 2), Alignment::Complete);
    }

    proptest! {
        /// Whatever the order in which channels deliver, each checkpoint completes exactly once, and
        /// between two of them nothing is blocked.
        #[test]
        fn each_checkpoint_completes_once(channels in 1_usize..6, order in prop::collection::vec(any::<prop::sample::Index>(), 60)) {
            let mut aligner = Aligner::new(channels);
            let mut delivered = vec![0_u64; channels];
            let mut completed = 0;
            for index in order {
                let open: Vec<usize> = (0..channels).filter(|c| !aligner.is_blocked(*c)).collect();
                let channel = open[index.index(open.len())];
                delivered[channel] += 1;
                if aligner.on_barrier(channel, delivered[channel]) == Alignment::Complete {
                    completed += 1;
                    prop_assert!(delivered.iter().all(|d| *d == completed));
                    prop_assert!((0..channels).all(|c| !aligner.is_blocked(c)));
                }
            }
        }
    }
}
