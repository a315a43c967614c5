//! The end of a stream: a writer with two-phase commit.

use flott_checkpoint::Redistribution;
use flott_connector_spi::{Committable, Sink, SinkContext, SinkWriter};
use flott_core::ids::CheckpointId;
use flott_core::time::Timestamp;
use flott_core::{Batch, Data, Result};
use flott_network::Barrier;

use crate::context::TaskContext;
use crate::operator::{OpenContext, Operator, OperatorSnapshot};
use crate::push::Output;

const PENDING: &str = "committables";
const WRITER: &str = "writer";

/// Drives a sink's writer.
///
/// What `prepare` returned for a checkpoint is state until the checkpoint is complete, and is then
/// committed. A restored committable belongs to a checkpoint that is complete, since it was
/// restored from, so it is committed at once.
pub struct SinkOperator<T: Data, S> {
    sink: S,
    cx: SinkContext,
    writer: Option<Box<dyn SinkWriter<T>>>,
    pending: Vec<(CheckpointId, Vec<Committable>)>,
    has_ended: bool,
}

impl<T: Data, S: Sink<T>> SinkOperator<T, S> {
    /// Writes into `sink`.
    pub fn new(sink: S, cx: &TaskContext) -> Self {
        Self { sink, cx: cx.into(), writer: None, pending: Vec::new(), has_ended: false }
    }

    fn writer(&mut self) -> &mut dyn SinkWriter<T> {
        &mut **self.writer.as_mut().expect("a sink is opened before it is used")
    }
}

impl<T: Data, S: Sink<T>> Operator<T, ()> for SinkOperator<T, S> {
    fn process(&mut self, batch: &mut Batch<T>, _: &mut Output<()>) -> Result<()> {
        self.writer().write(batch)
    }

    fn open(&mut self, cx: &mut OpenContext<'_>) -> Result<()> {
        let restored = cx.restored.take_state(cx.operator, WRITER)?;
        let pending: Vec<(CheckpointId, Committable)> = cx.restored.take_state(cx.operator, PENDING)?;
        let mut writer = self.sink.writer(self.cx.clone(), restored)?;
        for (checkpoint, committable) in pending {
            writer.commit(checkpoint, vec![committable])?;
        }
        self.writer = Some(writer);
        Ok(())
    }

    fn on_time(&mut self, now: Timestamp, _: &mut Output<()>) -> Result<Timestamp> {
        let writer = self.writer();
        if writer.deadline().is_some_and(|deadline| deadline <= now) {
            writer.on_time(now)?;
        }
        Ok(writer.deadline().unwrap_or(Timestamp::MAX))
    }

    fn on_end(&mut self, _: &mut Output<()>) -> Result<()> {
        self.has_ended = true;
        self.writer().flush()
    }

    fn on_flush(&mut self) -> Result<()> {
        self.writer().flush()
    }

    fn snapshot(&mut self, barrier: &Barrier, snapshot: &mut OperatorSnapshot<'_>) -> Result<()> {
        let is_last = self.has_ended;
        let prepared = self.writer().prepare(is_last)?;
        if !prepared.is_empty() {
            self.pending.push((barrier.checkpoint, prepared));
        }
        let pending: Vec<(CheckpointId, Committable)> = self
            .pending
            .iter()
            .flat_map(|(checkpoint, prepared)| prepared.iter().map(|one| (*checkpoint, one.clone())))
            .collect();
        snapshot.add(PENDING, Redistribution::Split, &pending)?;
        let writer = self.writer().snapshot()?;
        snapshot.add(WRITER, Redistribution::Split, &writer)
    }

    fn commit(&mut self, checkpoint: CheckpointId) -> Result<()> {
        // A commit for n commits everything up to n: notifications may be lost or come late.
        let due: Vec<_> = self.pending.extract_if(.., |(prepared_for, _)| *prepared_for <= checkpoint).collect();
        due.into_iter().try_for_each(|(prepared_for, prepared)| self.writer().commit(prepared_for, prepared))
    }
}
