//! From one parallelism to another, with the processes and the state where they are.
//!
//! 1. The slots of the new placement are reserved, and the coordinator takes a checkpoint in its turn.
//! 2. When that is durable, the fact that the job is rescaled is proposed. From here on the log decides.
//! 3. When the fact is durable, the execution ends, the next one has the new parallelism, and all workers are kept for it.
//!
//! Up to 2 the rescale can be given up, by whatever goes wrong, and the job runs on as it does. From then on whatever goes
//! wrong is a failure of the job like any other: it recovers with the new parallelism.
//!
//! A job that waits for slots, for its first execution or after a failure, needs no checkpoint for it: it begins with 2, and
//! starts from the latest checkpoint with the new parallelism.
//!
//! What clients want meanwhile, savepoints and stops, waits for the next execution.
//!
//! In reactive mode the job rescales itself whenever the slots that there are have been others for a while.

use std::mem;

use flott_control::Fact;
use flott_core::ids::TaskManagerId;
use flott_core::status::JobStatus;
use flott_core::{Error, Result};

use super::{Cause, Context, Job, Next, Phase};
use crate::api::{Parallelism, Reply, RequestId};
use crate::coordinator::Suspension;
use crate::rescale;
use crate::scheduler::{Offer, available, place};

/// How far a rescale is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Its checkpoint is being taken.
    Checkpoint,
    /// Its fact is on its way to the log.
    Proposed,
    /// The execution with the new parallelism is being started.
    Starting,
}

/// A rescale that is under way.
#[derive(Clone, Debug)]
pub(super) struct Rescale {
    /// The client that waits for it; none if the job rescales itself.
    request: Option<RequestId>,
    parallelism: Vec<u32>,
    /// The slots of the new placement, which are reserved.
    slots: Vec<TaskManagerId>,
    stage: Stage,
}

impl Rescale {
    pub(super) fn parallelism(&self) -> &[u32] {
        &self.parallelism
    }

    pub(super) fn slots(&self) -> &[TaskManagerId] {
        &self.slots
    }
}

/// There are other slots than the job uses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Drift {
    /// How many it could use.
    slots: u32,
    /// Since when it is this number.
    since_ms: i64,
}

impl Job {
    /// A client wants another parallelism. Without a reply, that follows when all subtasks run.
    pub(crate) fn rescale(
        &mut self,
        ctx: &mut Context<'_>,
        request: RequestId,
        wanted: &Parallelism,
    ) -> Result<Option<Reply>> {
        if self.settings.is_reactive {
            return Err(Error::input(
                "its parallelism follows the slots that there are (scheduler-mode: reactive): add or remove TaskManagers",
            ));
        }
        if self.rescale.is_some() {
            return Err(Error::input("it is being rescaled already: wait until it is RUNNING again"));
        }
        if self.status != JobStatus::Running && !matches!(self.phase, Phase::Waiting { .. }) {
            let way_out = match self.status {
                JobStatus::Created | JobStatus::Restarting => "try again when it is RUNNING, or waits for slots",
                _ => "start it again, with the parallelism that it is to have",
            };
            return Err(Error::input(format!("it is {}: {way_out}", self.status)));
        }
        let parallelism = rescale::target(&self.spec.graph, &self.planned, wanted)?;
        if parallelism == rescale::parallelism_of(&self.spec.graph) {
            return Ok(Some(Reply::Rescaled(parallelism)));
        }
        self.begin_rescale(ctx, Some(request), parallelism)?;
        Ok(None)
    }

    fn begin_rescale(
        &mut self,
        ctx: &mut Context<'_>,
        request: Option<RequestId>,
        parallelism: Vec<u32>,
    ) -> Result<()> {
        let last = match &self.phase {
            Phase::Active(execution) => Some(execution.as_ref()),
            Phase::Waiting { .. } => self.kept.as_deref(),
            _ => return Err(Error::system("it is not running: try again when it is")),
        };
        let needed = parallelism.iter().copied().max().unwrap_or(0);
        let affinity = last.map(|last| last.affinity(&self.spec.graph, &parallelism)).unwrap_or_default();
        let slots = place(needed, &ctx.resources.offers(self.id), &affinity).map_err(|shortage| {
            Error::input(format!("with that parallelism it {shortage}: add TaskManagers or slots, or ask for less"))
        })?;
        let stage = if matches!(self.phase, Phase::Active(_)) {
            self.coordinator.request_for_rescale()?;
            Stage::Checkpoint
        } else {
            ctx.propose(Fact::JobRescaled { job: self.id, parallelism: parallelism.clone() });
            Stage::Proposed
        };
        ctx.resources.reserve(self.id, &slots);
        self.rescale = Some(Rescale { request, parallelism, slots, stage });
        Ok(())
    }

    /// The checkpoint for the rescale is durable, or failed.
    pub(super) fn rescale_checkpointed(&mut self, ctx: &mut Context<'_>, outcome: Result<()>) {
        let Some(rescale) = self.rescale.as_mut().filter(|rescale| rescale.stage == Stage::Checkpoint) else { return };
        match outcome {
            Ok(()) => {
                rescale.stage = Stage::Proposed;
                let parallelism = rescale.parallelism.clone();
                ctx.propose(Fact::JobRescaled { job: self.id, parallelism });
            }
            Err(error) => self.give_up_rescale(ctx, &error),
        }
    }

    /// Whether the log is about to decide on a rescale.
    pub(super) fn is_rescale_proposed(&self) -> bool {
        self.rescale.as_ref().is_some_and(|rescale| rescale.stage == Stage::Proposed)
    }

    /// The new parallelism is durable.
    pub(crate) fn rescaled(&mut self, ctx: &mut Context<'_>, parallelism: &[u32]) {
        self.set_parallelism(parallelism);
        // Without a rescale, the next generation has been proposed together with it.
        let Some(rescale) = &mut self.rescale else { return };
        rescale.stage = Stage::Starting;
        match mem::replace(&mut self.phase, Phase::Idle) {
            Phase::Active(mut execution) => {
                self.set_status(ctx.now_ms, JobStatus::Restarting);
                if self.may_keep(&execution, Cause::Loss) {
                    execution.keep_sound(&self.spec.graph, false);
                }
                self.stop(ctx, execution, Next::Restart { at_ms: ctx.now_ms });
                let actions = self.coordinator.suspend(ctx.now_ms, &Suspension::Rescaled);
                self.carry_out(ctx, actions);
            }
            // It failed meanwhile, or waits for slots, and goes on from there with the new parallelism.
            other => self.phase = other,
        }
    }

    /// All subtasks run.
    pub(super) fn rescale_done(&mut self, ctx: &mut Context<'_>) {
        if let Some(Rescale { request: Some(request), .. }) = self.rescale.take() {
            ctx.reply(request, Ok(Reply::Rescaled(rescale::parallelism_of(&self.spec.graph))));
        }
    }

    /// The execution failed, or the job ends.
    pub(super) fn interrupt_rescale(&mut self, ctx: &mut Context<'_>, error: &Error) {
        let Some(rescale) = &self.rescale else { return };
        let stage = rescale.stage;
        if stage == Stage::Checkpoint {
            return self.give_up_rescale(ctx, error);
        }
        let outcome = match stage {
            Stage::Starting => "it has its new parallelism, but did not get to run with it",
            Stage::Checkpoint | Stage::Proposed => "its new parallelism was being made durable when it failed",
        };
        let error = error.clone().context(outcome);
        self.reply_to_rescale(ctx, Err(error));
        // What is proposed is still to be heard of.
        if stage == Stage::Starting {
            self.rescale = None;
        }
    }

    /// A TaskManager is gone that had nothing of the job yet.
    pub(super) fn rescale_without(&mut self, ctx: &mut Context<'_>, task_manager: &TaskManagerId) {
        let is_reserved =
            |rescale: &Rescale| rescale.stage == Stage::Checkpoint && rescale.slots.contains(task_manager);
        if self.rescale.as_ref().is_some_and(is_reserved) {
            let error = format!("TaskManager {task_manager}, which has slots for it, was lost: try again");
            self.give_up_rescale(ctx, &Error::system(error));
        }
    }

    fn give_up_rescale(&mut self, ctx: &mut Context<'_>, error: &Error) {
        self.coordinator.forget_rescale();
        self.reply_to_rescale(ctx, Err(error.clone().context("it keeps its parallelism")));
        self.rescale = None;
        self.hold_slots(ctx);
    }

    fn reply_to_rescale(&mut self, ctx: &mut Context<'_>, reply: Result<Reply>) {
        if let Some(request) = self.rescale.as_mut().and_then(|rescale| rescale.request.take()) {
            let explain = |mut error: Error| {
                // What follows is the end of a process's output, which the job shows among its exceptions.
                error.message.truncate(error.message.find('\n').unwrap_or(error.message.len()));
                error.context(format!("job {}", self.id))
            };
            ctx.reply(request, reply.map_err(explain));
        }
    }

    /// What the next execution is to have: in reactive mode what there are slots for.
    pub(super) fn next_parallelism(&self, offers: &[Offer]) -> Vec<u32> {
        if self.settings.is_reactive {
            rescale::fitting(&self.spec.graph, &self.planned, available(offers))
        } else {
            rescale::parallelism_of(&self.spec.graph)
        }
    }

    /// In reactive mode, rescales the job when other slots have been there for long enough.
    pub(super) fn follow_slots(&mut self, ctx: &mut Context<'_>) {
        if !self.settings.is_reactive || self.rescale.is_some() || self.status != JobStatus::Running {
            self.drift = None;
            return;
        }
        let offers = ctx.resources.offers(self.id);
        let parallelism = self.next_parallelism(&offers);
        if parallelism == rescale::parallelism_of(&self.spec.graph) {
            self.drift = None;
            return;
        }
        let now = Drift { slots: available(&offers), since_ms: ctx.now_ms };
        let drift = self.drift.filter(|drift| drift.slots == now.slots).unwrap_or(now);
        self.drift = Some(drift);
        if ctx.now_ms >= drift.since_ms + self.settings.stabilization_ms {
            // If it cannot be done now, it is tried again after as long.
            self.drift = self.begin_rescale(ctx, None, parallelism).is_err().then_some(now);
        }
    }

    /// When [`Self::follow_slots`] may have something to do.
    pub(super) fn drift_deadline(&self) -> Option<i64> {
        self.drift.map(|drift| drift.since_ms + self.settings.stabilization_ms)
    }
}
