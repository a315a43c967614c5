//! The contract between the parts of a chain.

use std::any::Any;

use flott_control::StateMetrics;
use flott_core::ids::{CheckpointId, OperatorId};
use flott_core::time::Timestamp;
use flott_core::{Batch, Data, Result};
use flott_network::Barrier;
use flott_state::StateUsage;

use crate::snapshot::{DeclaredState, ReleasedState, RestoredState, TaskSnapshot};

/// Everything that is not a record.
pub enum Control<'a> {
    /// The chain starts: declare state and take back what was saved.
    Open(&'a mut RestoredState),
    /// Say which keyed states there are, without opening anything.
    Declare(&'a mut Vec<DeclaredState>),
    /// Take keyed state back to a checkpoint and give it away: the chain will not be used again.
    Release(&'a mut ReleasedState),
    /// No record with a timestamp up to this one will follow.
    Watermark(Timestamp),
    /// No record will follow for a while; the watermark waits for others only.
    Idle,
    /// Records follow again.
    Active,
    /// A checkpoint's place in the stream: freeze state, then pass it on.
    Barrier(&'a Barrier, &'a mut TaskSnapshot),
    /// Write more of the frozen state.
    Drain(&'a mut TaskSnapshot),
    /// Between records, every few milliseconds: keep state within its memory.
    Maintain(&'a mut Maintenance),
    /// The checkpoint is durable: make visible what was prepared up to it.
    Commit(CheckpointId),
    /// No record will follow at all. Barriers still can.
    EndOfInput,
    /// The input pauses: pass buffered rows on.
    Flush,
    /// The wall clock. Whoever waits for a time lowers `next` to it.
    Time {
        /// Now, in milliseconds since 1970.
        now: Timestamp,
        /// Whether the chain's output has no room: records that do not come are no sign of an idle source then.
        is_blocked: bool,
        /// The earliest time at which the chain wants to be called again.
        next: &'a mut Timestamp,
    },
}

/// How many states of a subtask have figures of their own: they go with every heartbeat.
const STATES_MAX: usize = 100;

/// What came of looking after the keyed state of a chain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Maintenance {
    /// What each state takes. The last of very many is the sum of those that have no place.
    pub states: Vec<StateMetrics>,
    /// Whether there is more to do, soon.
    pub has_more: bool,
}

impl Maintenance {
    /// Notes what a state takes.
    pub(crate) fn add(&mut self, operator: OperatorId, name: &str, usage: StateUsage) {
        let StateUsage { entries, memory_bytes, index_bytes, disk_bytes } = usage;
        let name = name.to_owned();
        let state = StateMetrics { operator, name, entries, memory_bytes, index_bytes, disk_bytes };
        let is_full = self.states.len() >= STATES_MAX;
        match self.states.last_mut().filter(|_| is_full) {
            Some(last) => {
                last.name = format!("{} and more", STATES_MAX - 1);
                last.add(&state);
            }
            None => self.states.push(state),
        }
    }
}

/// Receives the output of the part before it.
pub trait Push<T>: Send {
    /// Takes all rows of `batch` and leaves it empty, with its buffers for the next rows.
    fn push(&mut self, batch: &mut Batch<T>) -> Result<()>;

    /// Acts on `control` and passes it on to every part behind.
    fn control(&mut self, control: &mut Control<'_>) -> Result<()>;
}

/// Where an operator's records go: to each consumer, and by tag to side outputs.
pub struct Output<T> {
    targets: Vec<Box<dyn Push<T>>>,
    /// The side outputs.
    pub sides: SideOutputs,
    copy: Batch<T>,
}

impl<T: Data> Output<T> {
    /// An output to these consumers.
    pub fn new(targets: Vec<Box<dyn Push<T>>>, sides: SideOutputs) -> Self {
        Self { targets, sides, copy: Batch::default() }
    }

    /// Sends all rows of `batch` and leaves it empty.
    pub fn push(&mut self, batch: &mut Batch<T>) -> Result<()> {
        if batch.is_empty() {
            return Ok(());
        }
        if let Some((last, others)) = self.targets.split_last_mut() {
            for target in others {
                self.copy.rows.extend_from_slice(&batch.rows);
                self.copy.timestamps.extend_from_slice(&batch.timestamps);
                self.copy.hashes.extend_from_slice(&batch.hashes);
                self.copy.split = batch.split;
                target.push(&mut self.copy)?;
                self.copy.clear();
            }
            last.push(batch)?;
        }
        batch.clear();
        Ok(())
    }

    /// Passes `control` on to all consumers and side outputs.
    pub fn control(&mut self, control: &mut Control<'_>) -> Result<()> {
        for target in &mut self.targets {
            target.control(control)?;
        }
        self.sides.control(control)
    }
}

/// The side outputs of an operator, by tag.
#[derive(Default)]
pub struct SideOutputs {
    sides: Vec<(String, Box<dyn AnySide>)>,
}

trait AnySide: Send {
    fn control(&mut self, control: &mut Control<'_>) -> Result<()>;
    fn as_any(&mut self) -> &mut dyn Any;
}

impl<T: Data> AnySide for Output<T> {
    fn control(&mut self, control: &mut Control<'_>) -> Result<()> {
        Self::control(self, control)
    }

    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}

impl SideOutputs {
    /// Adds the consumers of a tag.
    pub fn add<T: Data>(&mut self, tag: &str, targets: Vec<Box<dyn Push<T>>>) {
        let output = Output::new(targets, SideOutputs::default());
        self.sides.push((tag.to_owned(), Box::new(output)));
    }

    /// Whether anything consumes `tag`.
    pub fn has(&self, tag: &str) -> bool {
        self.sides.iter().any(|(name, _)| name == tag)
    }

    /// Sends rows to the consumers of `tag`; false if it has none of this type.
    pub fn push<T: Data>(&mut self, tag: &str, batch: &mut Batch<T>) -> Result<bool> {
        let side = self.sides.iter_mut().find(|(name, _)| name == tag);
        match side.and_then(|(_, side)| side.as_any().downcast_mut::<Output<T>>()) {
            Some(output) => output.push(batch).map(|()| true),
            None => Ok(false),
        }
    }

    fn control(&mut self, control: &mut Control<'_>) -> Result<()> {
        self.sides.iter_mut().try_for_each(|(_, side)| side.control(control))
    }
}
