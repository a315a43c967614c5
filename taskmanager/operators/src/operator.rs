//! What an operator implements, and the part of a chain that drives it.

use std::cell::RefCell;
use std::sync::Arc;

use flott_checkpoint::Redistribution;
use flott_core::config::options;
use flott_core::ids::{CheckpointId, OperatorId};
use flott_core::time::{Timestamp, WATERMARK_MAX};
use flott_core::{Batch, Data, Result};
use flott_network::Barrier;
use flott_state::Checkpointed;

use crate::push::{Control, Output, Push};
use crate::snapshot::{DeclaredState, RestoredState, TaskSnapshot};

/// What an operator may use while it opens.
pub struct OpenContext<'a> {
    /// The operator's id.
    pub operator: OperatorId,
    /// What was saved.
    pub restored: &'a mut RestoredState,
}

/// Visits the keyed states of an operator.
pub type StateVisitor<'a> = &'a mut dyn FnMut(&mut dyn Checkpointed) -> Result<()>;

/// Turns records into records. Synchronous, and the only owner of its state.
///
/// Only [`process`](Operator::process) is required; the defaults fit an operator without state or time.
pub trait Operator<In: Data, Out: Data>: Send {
    /// Takes all rows of `batch`.
    fn process(&mut self, batch: &mut Batch<In>, out: &mut Output<Out>) -> Result<()>;

    /// Declares keyed states that the constructor did not. Has no other effect: it is also called only to list them.
    fn declare(&mut self) -> Result<()> {
        Ok(())
    }

    /// Takes back operator state. Keyed states that [`states`](Operator::states) shows are
    /// restored right after.
    fn open(&mut self, cx: &mut OpenContext<'_>) -> Result<()> {
        let _ = cx;
        Ok(())
    }

    /// Shows each keyed state.
    fn states(&mut self, visit: StateVisitor<'_>) -> Result<()> {
        let _ = visit;
        Ok(())
    }

    /// Keyed states have been restored: build what is derived from them.
    fn restored(&mut self) -> Result<()> {
        Ok(())
    }

    /// Event time has come this far. The watermark is passed on afterwards.
    fn on_watermark(&mut self, watermark: Timestamp, out: &mut Output<Out>) -> Result<()> {
        let _ = (watermark, out);
        Ok(())
    }

    /// The watermark that is passed on for one that was received; `None` passes nothing on.
    fn outgoing_watermark(&mut self, watermark: Timestamp) -> Option<Timestamp> {
        Some(watermark)
    }

    /// The wall clock has come this far. Returns the time of its next wish to be called.
    fn on_time(&mut self, now: Timestamp, out: &mut Output<Out>) -> Result<Timestamp> {
        let _ = (now, out);
        Ok(Timestamp::MAX)
    }

    /// There is no room for its records at this time; called before [`on_time`](Operator::on_time).
    fn on_blocked(&mut self, now: Timestamp) {
        let _ = now;
    }

    /// All records have been processed, and the highest watermark has been seen if the stream has time.
    fn on_end(&mut self, out: &mut Output<Out>) -> Result<()> {
        let _ = out;
        Ok(())
    }

    /// The input pauses: let what is buffered be seen.
    fn on_flush(&mut self) -> Result<()> {
        Ok(())
    }

    /// Adds operator state to a checkpoint.
    fn snapshot(&mut self, barrier: &Barrier, snapshot: &mut OperatorSnapshot<'_>) -> Result<()> {
        let _ = (barrier, snapshot);
        Ok(())
    }

    /// The checkpoint is durable.
    fn commit(&mut self, checkpoint: CheckpointId) -> Result<()> {
        let _ = checkpoint;
        Ok(())
    }
}

/// Where an operator adds its operator state.
pub struct OperatorSnapshot<'a> {
    operator: OperatorId,
    task: &'a mut TaskSnapshot,
}

impl OperatorSnapshot<'_> {
    /// Adds a state, one element a value.
    pub fn add<T: Data>(&mut self, name: &str, redistribution: Redistribution, values: &[T]) -> Result<()> {
        self.task.add_state(self.operator, name, redistribution, values)
    }
}

thread_local! {
    /// The operator that runs on this thread, for the message of a panic in it.
    static CURRENT: RefCell<Option<Arc<str>>> = const { RefCell::new(None) };
}

/// The name of the operator that runs on this thread or panicked on it last.
pub fn current_operator() -> Option<Arc<str>> {
    CURRENT.with(|current| current.borrow().clone())
}

/// Says that `name` runs on this thread from here on; returns who ran before.
fn enter(name: &Arc<str>) -> Option<Arc<str>> {
    CURRENT.with(|current| current.replace(Some(Arc::clone(name))))
}

fn leave(before: Option<Arc<str>>) {
    CURRENT.with(|current| *current.borrow_mut() = before);
}

/// An operator in a chain, with where its records go.
pub struct OperatorNode<O, Out> {
    id: OperatorId,
    name: Arc<str>,
    operator: O,
    out: Output<Out>,
}

impl<O, Out: Data> OperatorNode<O, Out> {
    /// Puts an operator into a chain.
    pub fn new(id: OperatorId, name: &str, operator: O, out: Output<Out>) -> Self {
        Self { id, name: name.into(), operator, out }
    }
}

impl<In: Data, Out: Data, O: Operator<In, Out>> Push<In> for OperatorNode<O, Out> {
    fn push(&mut self, batch: &mut Batch<In>) -> Result<()> {
        let before = enter(&self.name);
        let result = self.operator.process(batch, &mut self.out);
        leave(before);
        batch.clear();
        result.map_err(|error| self.name_error(error))
    }

    fn control(&mut self, control: &mut Control<'_>) -> Result<()> {
        // A panic leaves the name in place, so that the message can tell whose it was.
        let before = enter(&self.name);
        let passes_on = Self::act(self, control);
        leave(before);
        match passes_on.map_err(|error| self.name_error(error))? {
            Passed::AsItIs => self.out.control(control),
            Passed::Watermark(watermark) => self.out.control(&mut Control::Watermark(watermark)),
            Passed::Nothing => Ok(()),
        }
    }
}

/// The job goes on, with more memory than it was given.
#[cold]
fn warn_of_index(operator: &str, state: &dyn Checkpointed, bytes: u64) {
    tracing::warn!(
        operator,
        state = state.name(),
        index_bytes = state.usage().index_bytes,
        "the times of timers and windows take {bytes} bytes in this slot, more than all its keyed state may: they cannot go \
         to disk, so the limit is exceeded; give the TaskManager more in '{}', or the job more slots, or make fewer \
         timers, for example by rounding their times",
        options::MANAGED_MEMORY.key,
    );
}

enum Passed {
    AsItIs,
    Watermark(Timestamp),
    Nothing,
}

impl<O, Out: Data> OperatorNode<O, Out> {
    fn name_error(&self, error: flott_core::Error) -> flott_core::Error {
        // An error from further down the chain has been named there.
        if error.message.starts_with("operator '") { error } else { error.context(format!("operator '{}'", self.name)) }
    }

    fn act<In: Data>(&mut self, control: &mut Control<'_>) -> Result<Passed>
    where
        O: Operator<In, Out>,
    {
        let (operator, out, id, name) = (&mut self.operator, &mut self.out, self.id, &self.name);
        match control {
            Control::Open(restored) => {
                operator.declare()?;
                operator.open(&mut OpenContext { operator: id, restored })?;
                let mut known = Vec::new();
                operator.states(&mut |state| {
                    known.push(state.name().to_owned());
                    restored.restore_keyed(id, state)?;
                    // A state that is to be on disk goes there before anything happens.
                    state.maintain().map(drop)
                })?;
                restored.check_keyed(id, name, &known)?;
                operator.restored()?;
            }
            Control::Declare(declared) => {
                operator.declare()?;
                operator.states(&mut |state| {
                    declared.push(DeclaredState {
                        operator: id,
                        name: state.name().to_owned(),
                        columns: state.columns(),
                    });
                    Ok(())
                })?;
            }
            Control::Release(released) => {
                let mut states = Vec::new();
                operator.states(&mut |state| {
                    states.push((state.name().to_owned(), state.release(released.checkpoint)));
                    Ok(())
                })?;
                released.add(id, states);
            }
            Control::Watermark(watermark) => {
                operator.on_watermark(*watermark, out)?;
                return Ok(match operator.outgoing_watermark(*watermark) {
                    Some(outgoing) => Passed::Watermark(outgoing),
                    None => Passed::Nothing,
                });
            }
            Control::Barrier(barrier, snapshot) => {
                operator.snapshot(barrier, &mut OperatorSnapshot { operator: id, task: snapshot })?;
                operator.states(&mut |state| {
                    snapshot.freeze(id, state);
                    Ok(())
                })?;
            }
            Control::Drain(snapshot) => {
                let had_failed = snapshot.writer.has_failed();
                operator.states(&mut |state| snapshot.drain(id, state))?;
                if !had_failed {
                    snapshot.writer.name_failure(|| format!("operator '{name}'"));
                }
            }
            Control::Maintain(done) => operator.states(&mut |state| {
                done.has_more |= state.maintain()?;
                done.add(id, state.name(), state.usage());
                if let Some(bytes) = state.excess_of_indexes() {
                    warn_of_index(name, state, bytes);
                }
                Ok(())
            })?,
            Control::Commit(checkpoint) => {
                operator.states(&mut |state| {
                    state.confirm(*checkpoint);
                    Ok(())
                })?;
                operator.commit(*checkpoint)?;
            }
            Control::EndOfInput => {
                operator.on_watermark(WATERMARK_MAX, out)?;
                operator.on_end(out)?;
            }
            Control::Time { now, is_blocked, next } => {
                if *is_blocked {
                    operator.on_blocked(*now);
                }
                let wish = operator.on_time(*now, out)?;
                **next = (**next).min(wish);
            }
            Control::Flush => operator.on_flush()?,
            Control::Idle | Control::Active => {}
        }
        Ok(Passed::AsItIs)
    }
}
