//! Barrier alignment: when a subtask snapshots, and what in its channels belongs to the snapshot. A pure machine.
//!
//! **Aligned**, a channel that has delivered the barrier is blocked until the others have too, so that no record from
//! behind the barrier gets into the snapshot: that is what makes state exactly-once.
//!
//! **Unaligned**, the subtask does not wait for that. It snapshots when the first barrier comes that has overtaken what
//! waited before it, or when a barrier has waited for the others for too long. What was sent before a channel's barrier
//! and has not been processed then is *in flight*, and is saved with the snapshot: where it lies in the queue once the
//! barrier has come, and until then whenever something is taken. Nothing is blocked. After a restore it is processed
//! before anything else, so each record is still in the state exactly once.
//!
//! On some edges barriers keep their place ([`Overtaking::allows`]). Their channels are aligned in every case, so the
//! snapshot waits for them, and nothing in them is ever in flight.

use flott_control::CheckpointKind;
use flott_core::Result;
use flott_core::config::{Configuration, options};
use flott_core::ids::CheckpointId;
use flott_core::time::Timestamp;
use flott_graph::Partitioning;
use flott_network::Barrier;

#[cfg(test)]
mod tests;

/// Whether and when barriers overtake, as it is configured.
#[derive(Clone, Copy, Debug)]
pub struct Overtaking {
    /// How long after its trigger a checkpoint may be aligned; `None` for ever.
    timeout_ms: Option<i64>,
}

impl Overtaking {
    /// All barriers keep their place.
    pub const NEVER: Self = Self { timeout_ms: None };

    /// Barriers overtake from this time after their trigger on.
    pub const fn after(timeout_ms: i64) -> Self {
        Self { timeout_ms: Some(timeout_ms) }
    }

    /// What a job wants.
    pub fn of(config: &Configuration) -> Result<Self> {
        if !config.get(options::UNALIGNED_CHECKPOINTS)? {
            return Ok(Self::NEVER);
        }
        let timeout = config.get(options::ALIGNED_CHECKPOINT_TIMEOUT)?;
        Ok(Self::after(i64::try_from(timeout.as_millis()).unwrap_or(i64::MAX)))
    }

    /// Whether any barrier may ever overtake.
    pub fn is_enabled(self) -> bool {
        self.timeout_ms.is_some()
    }

    /// Whether barriers may overtake on such an edge. Where every record goes to every subtask, or to the one partner,
    /// subtasks must not differ in what they have seen of the stream when it is restored at another parallelism.
    pub fn allows(self, partitioning: Partitioning) -> bool {
        self.is_enabled()
            && match partitioning {
                Partitioning::Hash | Partitioning::Rebalance | Partitioning::Global => true,
                Partitioning::Forward | Partitioning::Broadcast => false,
            }
    }

    /// From when on this barrier overtakes; [`Timestamp::MAX`] for never, as it is with those of savepoints and of the
    /// last checkpoint. Without a time-out it does not depend on whether clocks agree.
    pub fn due_ms(self, barrier: &Barrier) -> Timestamp {
        match (self.timeout_ms, &barrier.kind) {
            (Some(0), CheckpointKind::Checkpoint) => Timestamp::MIN,
            (Some(timeout), CheckpointKind::Checkpoint) => barrier.triggered_ms.saturating_add(timeout),
            _ => Timestamp::MAX,
        }
    }
}

/// What a barrier leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alignment {
    /// The first barrier of a checkpoint; others are missing.
    Begun,
    /// Another one; others are missing, or the snapshot has been taken already.
    Waiting,
    /// The last one, and nothing is in flight: no channel is blocked any more. Snapshot, and pass the barrier on.
    Complete,
    /// Snapshot, and pass the barrier on; what is in flight belongs to it.
    Unaligned,
    /// It belongs to a checkpoint that a later one has overtaken. Ignore it.
    Stale,
}

/// The barriers of one subtask's channels.
#[derive(Clone, Debug)]
pub struct Aligner {
    channels: Vec<Channel>,
    is_blocked: Vec<bool>,
    current: CheckpointId,
    stage: Stage,
    /// How many channels have not delivered the barrier.
    missing: usize,
    /// Whether the snapshot is not to wait for barriers that can overtake.
    is_due: bool,
}

#[derive(Clone, Debug)]
struct Channel {
    /// Whether barriers keep their place in it, so that they have to be waited for.
    is_ordered: bool,
    has_delivered: bool,
    /// How many elements that came before the barrier are still the next ones in its queue.
    before: u32,
    /// How many of these, from the front, have been saved.
    saved: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// No checkpoint is under way here.
    Done,
    /// The snapshot has not been taken.
    Aligning,
    /// The snapshot has been taken, what is in flight is being saved.
    Saving,
}

impl Aligner {
    /// No barriers yet on channels of which these keep barriers in their place.
    pub fn new(is_ordered: impl IntoIterator<Item = bool>) -> Self {
        let channel = |is_ordered| Channel { is_ordered, has_delivered: false, before: 0, saved: 0 };
        let channels: Vec<Channel> = is_ordered.into_iter().map(channel).collect();
        let is_blocked = vec![false; channels.len()];
        Self { channels, is_blocked, current: 0, stage: Stage::Done, missing: 0, is_due: false }
    }

    /// Whether nothing may be taken from a channel for now.
    #[inline]
    pub fn is_blocked(&self, channel: usize) -> bool {
        self.is_blocked[channel]
    }

    /// Whether [`Aligner::take`] has to be told what is taken.
    #[inline]
    pub fn is_watching(&self) -> bool {
        self.stage != Stage::Done
    }

    /// Whether a snapshot waits for barriers.
    pub fn is_aligning(&self) -> bool {
        self.stage == Stage::Aligning
    }

    /// Whether the barrier of `checkpoint` would be news from this channel.
    pub fn awaits(&self, channel: usize, checkpoint: CheckpointId) -> bool {
        checkpoint > self.current
            || (checkpoint == self.current && self.is_watching() && !self.channels[channel].has_delivered)
    }

    /// Whether the snapshot of `checkpoint` does not wait, or did not, for barriers that can overtake.
    pub fn is_due(&self, checkpoint: CheckpointId) -> bool {
        checkpoint == self.current && self.is_watching() && self.is_due
    }

    /// A channel delivered the barrier of `checkpoint`: in its place, or having overtaken so many elements, which are
    /// the next ones in its queue.
    pub fn on_barrier(&mut self, channel: usize, checkpoint: CheckpointId, overtaken: Option<u32>) -> Alignment {
        if !self.awaits(channel, checkpoint) {
            return Alignment::Stale;
        }
        let begins = checkpoint > self.current;
        if begins {
            // A later checkpoint gives up the one under way. The coordinator has aborted it: it triggers none before all
            // subtasks have taken the one before.
            self.finish();
            self.channels.iter_mut().for_each(|channel| channel.has_delivered = false);
            self.current = checkpoint;
            self.stage = Stage::Aligning;
            self.missing = self.channels.len();
            self.is_due = false;
        }
        self.missing -= 1;
        let state = &mut self.channels[channel];
        state.has_delivered = true;
        state.before = overtaken.unwrap_or(0);
        if self.stage == Stage::Saving {
            return Alignment::Waiting;
        }
        // What it has overtaken may still be processed before the snapshot, what follows may not.
        self.is_blocked[channel] = state.before == 0;
        self.is_due |= overtaken.is_some();
        self.advance(begins)
    }

    /// The snapshot has waited for long enough.
    pub fn expire(&mut self) -> Alignment {
        if self.stage != Stage::Aligning {
            return Alignment::Stale;
        }
        self.is_due = true;
        self.advance(false)
    }

    fn advance(&mut self, begins: bool) -> Alignment {
        if self.missing == 0 && self.channels.iter().all(|channel| channel.before == 0) {
            self.finish();
            return Alignment::Complete;
        }
        let is_awaited = |channel: &Channel| channel.is_ordered && !channel.has_delivered;
        if self.is_due && !self.channels.iter().any(is_awaited) {
            self.is_blocked.fill(false);
            self.stage = Stage::Saving;
            return Alignment::Unaligned;
        }
        if begins { Alignment::Begun } else { Alignment::Waiting }
    }

    /// The next element of a channel's queue was taken, be it what it may. Returns whether it is in flight and has to be
    /// saved before it is processed.
    pub fn take(&mut self, channel: usize) -> bool {
        let state = &mut self.channels[channel];
        if state.before == 0 {
            return self.stage == Stage::Saving && !state.has_delivered;
        }
        state.before -= 1;
        if self.stage != Stage::Saving {
            self.is_blocked[channel] = state.before == 0;
            return false;
        }
        let is_saved = state.saved > 0;
        state.saved = state.saved.saturating_sub(1);
        !is_saved
    }

    /// The position in a channel's queue of the next element that has to be saved.
    pub fn unsaved(&self, channel: usize) -> Option<u32> {
        let Channel { before, saved, .. } = self.channels[channel];
        (self.stage == Stage::Saving && saved < before).then_some(saved)
    }

    /// The element at that position was saved.
    pub fn saved(&mut self, channel: usize) {
        self.channels[channel].saved += 1;
    }

    /// Whether nothing in flight is left to be saved.
    pub fn is_saved(&self) -> bool {
        let is_saved = |channel: &Channel| channel.saved == channel.before;
        self.stage != Stage::Saving || (self.missing == 0 && self.channels.iter().all(is_saved))
    }

    /// Nothing more belongs to the snapshot.
    pub fn finish(&mut self) {
        self.stage = Stage::Done;
        self.is_blocked.fill(false);
        for channel in &mut self.channels {
            (channel.before, channel.saved) = (0, 0);
        }
    }
}
