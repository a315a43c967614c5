//! From one generation to the next in the same process: what stops gives its state away, what carries over runs on.

use flott_control::{ExecutionId, Up};
use flott_core::Error;
use flott_core::ids::{CheckpointId, SubtaskId};
use flott_core::status::TaskStatus;
use flott_operators::HeldState;
use parking_lot::Mutex;

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{Order, Release, SessionClosed, SlotId, Worker, bind};
use crate::local_runs::LocalRuns;

impl Worker {
    /// Another generation begins, from `checkpoint`. All subtasks but those of `carried` stop.
    pub(super) async fn leave_generation(
        &mut self,
        execution: ExecutionId,
        checkpoint: Option<CheckpointId>,
        carried: Vec<SubtaskId>,
    ) -> Result<(), SessionClosed> {
        self.execution = execution;
        self.starting.clear();
        self.has_lost_connection = false;
        self.carried = carried;
        let carried: BTreeSet<SubtaskId> = self.carried.iter().copied().collect();
        if !carried.is_empty() {
            // Whatever was going on has been settled without their hearing of it.
            for pending in std::mem::take(&mut self.in_flight) {
                if Some(pending) == checkpoint { self.completed(pending, false) } else { self.aborted(pending) }
            }
        }
        self.in_flight.clear();
        self.savepoints.clear();
        if self.held.0 != checkpoint {
            self.held = (checkpoint, Mutex::default());
        }
        if checkpoint.is_none() {
            self.local_runs = LocalRuns::default();
        }
        // Slots that were asked before are asked again: they have given away, or are about to.
        let mut releasing = self.releasing.take().unwrap_or_default();
        releasing.extend(self.slot_of.iter().filter(|(subtask, _)| !carried.contains(subtask)).map(|(_, slot)| *slot));
        releasing.retain(|slot| self.slots.contains_key(slot));
        let failed = self.dead.iter().filter(|(_, death)| !death.is_sound).map(|(subtask, _)| *subtask).collect();
        self.slot_of.retain(|subtask, _| carried.contains(subtask));
        self.counters.retain(|subtask, _| carried.contains(subtask));
        self.statuses.retain(|subtask, _| carried.contains(subtask));
        self.connected.retain(|subtask| carried.contains(subtask));
        self.requested.retain(|subtask| carried.contains(subtask));
        self.dead.retain(|subtask, _| carried.contains(subtask));
        let release = Arc::new(Release { checkpoint, carried, failed });
        for slot in &releasing {
            self.slots[slot].order(Order::Release(Arc::clone(&release)));
        }
        self.releasing = Some(releasing);
        self.enter_generation().await
    }

    /// A slot has given away what it was asked for.
    pub(super) async fn on_released(
        &mut self,
        slot: SlotId,
        checkpoint: Option<CheckpointId>,
        held: HeldState,
    ) -> Result<(), SessionClosed> {
        // What was taken back to another checkpoint is of no use.
        if self.held.0 == checkpoint {
            self.held.1.get_mut().extend(held);
        }
        if !self.slot_of.values().any(|other| *other == slot) {
            self.slots.remove(&slot);
        }
        self.has_answered(slot).await
    }

    pub(super) async fn has_answered(&mut self, slot: SlotId) -> Result<(), SessionClosed> {
        match &mut self.releasing {
            Some(releasing) => {
                releasing.remove(&slot);
                self.enter_generation().await
            }
            None => Ok(()),
        }
    }

    /// Registers for the new generation once everything has stopped that does not carry over.
    async fn enter_generation(&mut self) -> Result<(), SessionClosed> {
        if self.releasing.as_ref().is_none_or(|slots| !slots.is_empty()) {
            return Ok(());
        }
        self.releasing = None;
        match bind(&self.options, self.execution, &self.events) {
            Ok((plane, data_address)) => {
                // What carries over keeps its connections. Channels of the others just fall silent in them.
                let used: BTreeSet<_> = self.connected.iter().filter_map(|id| Some(self.slot_of.get(id)?.0)).collect();
                self.planes.retain(|generation, _| used.contains(generation));
                self.planes.extend(plane.map(|plane| (self.execution.generation, plane)));
                let task_manager = self.options.task_manager.clone();
                self.tell(Up::RegisterWorker { execution: self.execution, task_manager, data_address }).await?;
                self.introduce_carried().await
            }
            // Without a data plane it is of no use: its end tells the JobManager.
            Err(error) => {
                tracing::error!(%error, "cannot listen for data");
                Err(SessionClosed)
            }
        }
    }

    /// Says of the subtasks that carry over how they are, and what they wait for: whatever they said since the failure
    /// may have been lost.
    async fn introduce_carried(&mut self) -> Result<(), SessionClosed> {
        for subtask in std::mem::take(&mut self.carried) {
            let death = self.dead.get(&subtask).map(|death| death.error.clone());
            match (death, self.statuses.get(&subtask).copied()) {
                (None, Some(status)) if self.slot(subtask).is_some() => self.status(subtask, status, None).await?,
                (death, _) => {
                    let error = death.unwrap_or_else(|| Error::system("it was to go on, but does not run any more"));
                    self.status(subtask, TaskStatus::Failed, Some(error)).await?;
                }
            }
            if self.requested.contains(&subtask) {
                self.tell(Up::RequestSplit { execution: self.execution, subtask }).await?;
            }
        }
        Ok(())
    }
}
