//! What travels on a channel.

use std::any::Any;
use std::fmt;

use bytes::Bytes;
use flott_control::CheckpointKind;
use flott_core::ids::CheckpointId;
use flott_core::time::Timestamp;
use serde::{Deserialize, Serialize};

/// What an element costs beside its payload, so that a queue of tiny elements is bounded as well.
pub(crate) const ELEMENT_OVERHEAD_BYTES: u64 = 64;

/// One thing in the order of a channel.
#[derive(Debug)]
pub enum Element {
    /// Rows.
    Batch(Payload),
    /// No row with an earlier timestamp is expected any more.
    Watermark(Timestamp),
    /// The channel's watermark does not count until it is active again.
    Idle,
    /// The channel's watermark counts again.
    Active,
    /// What came before belongs to the checkpoint, what follows does not.
    Barrier(Barrier),
    /// A barrier that does not wait: it goes in front of everything that is queued on the way to its receiver.
    UnalignedBarrier {
        /// The barrier.
        barrier: Barrier,
        /// How many elements it went in front of. They are the next ones on its channel, and came before it in the
        /// stream; what follows them did not. A sender says 0: the count is made on the way.
        overtaken: u32,
    },
    /// No row follows. Barriers still can: the last checkpoint comes after the end of all input.
    EndOfInput,
}

/// The rows of a batch, as the way to their receiver needs them.
#[derive(Debug)]
pub enum Payload {
    /// The batch itself, for a receiver in the same process.
    Local {
        /// What the receiver downcasts.
        batch: Box<dyn Any + Send>,
        /// How many rows it has.
        rows: u32,
        /// How much memory it takes, estimated.
        bytes: u64,
    },
    /// The batch in its binary form.
    Encoded {
        /// That form.
        data: Bytes,
        /// How many rows it has.
        rows: u32,
    },
}

/// The mark of a checkpoint in the stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Barrier {
    /// Which checkpoint.
    pub checkpoint: CheckpointId,
    /// When it was triggered.
    pub triggered_ms: Timestamp,
    /// Its purpose.
    pub kind: CheckpointKind,
}

/// One channel of an execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ChannelId {
    /// The position of the edge in the job graph.
    pub edge: u32,
    /// Which subtask of the edge's source sends.
    pub from: u32,
    /// Which subtask of the edge's target receives.
    pub to: u32,
}

impl fmt::Display for ChannelId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "edge {} from subtask {} to subtask {}", self.edge, self.from, self.to)
    }
}

impl Payload {
    /// How many rows the batch has.
    pub fn rows(&self) -> u32 {
        match self {
            Self::Local { rows, .. } | Self::Encoded { rows, .. } => *rows,
        }
    }

    /// How many bytes the batch takes.
    pub fn bytes(&self) -> u64 {
        match self {
            Self::Local { bytes, .. } => *bytes,
            Self::Encoded { data, .. } => data.len() as u64,
        }
    }
}

impl Element {
    /// How many bytes of its channel the element takes, never 0.
    pub(crate) fn cost_bytes(&self) -> u64 {
        match self {
            Self::Batch(payload) => ELEMENT_OVERHEAD_BYTES.saturating_add(payload.bytes()),
            _ => ELEMENT_OVERHEAD_BYTES,
        }
    }

    /// How many bytes of credit the element takes. What overtakes needs none: it must pass where there is none.
    pub(crate) fn credit_bytes(&self) -> u64 {
        match self {
            Self::UnalignedBarrier { .. } => 0,
            _ => self.cost_bytes(),
        }
    }
}
