//! Sound workers go from one execution to the next.
//!
//! When an execution fails, only the workers that are to blame are stopped. The others keep their processes, sessions and
//! slots, and run on as they did: what they say about the old execution is a sign of life, and nothing more. When the
//! next generation is durable and its new workers have registered, the kept ones are told to continue: they take
//! their state back to the checkpoint, and register in the session that they have.
//!
//! Of a kept worker's subtasks, those that the failure does not reach *carry over* to the next execution: nothing stops
//! them, and all that changes for them is the generation by which their worker speaks of them. Whole regions (see
//! [`flott_graph::Regions`]) carry over, or none of it; connections between workers that both go on stay with those that
//! use them. All others go back to the checkpoint.
//!
//! - The new execution takes no checkpoint before all of its subtasks run. One that was being taken when the old one
//!   failed is settled first, as ever: if it completed, the subtasks that carry over hear so with the order to
//!   continue, and that any other was aborted.
//! - The splits of a source are handed out by the assigner of the old execution, which takes back what subtasks got that go
//!   back to the checkpoint.
//! - Nothing carries over when sources may have stopped for a savepoint, tasks have finished, or the parallelism changes.
//! - A worker with a failed subtask is kept only for what carries over on it.
//! - Until the new execution runs, any further failure ends it and all its workers.
//!
//! That is for executions that have run. One that fails before, or whose connections break again before it has come any
//! further, is started afresh: whatever is wrong with its processes must not be kept for ever.

use flott_control::Down;
use flott_core::ids::TaskManagerId;
use flott_core::status::JobStatus;

use super::{Cause, Context, Failure, Job, Next, Phase};
use crate::api::SessionId;
use crate::execution::{Execution, Sparing};
use crate::worker::Worker;

/// How long a kept worker has to take its state back and register.
pub(super) const REGISTER_TIMEOUT_KEPT_MS: i64 = 10_000;

impl Job {
    /// Whether the sound workers of an execution go on when it has failed.
    pub(super) fn may_keep(&self, execution: &Execution, cause: Cause) -> bool {
        let is_blame_clear = match cause {
            Cause::Loss | Cause::Task => true,
            Cause::Connection => self.is_trusted(execution),
            Cause::Other => false,
        };
        is_blame_clear && execution.has_run && self.settings.keeps_workers
    }

    /// Whether an execution's processes are not to blame for what they failed of before: they are new, or it has come
    /// further with them.
    fn is_trusted(&self, execution: &Execution) -> bool {
        let latest = self.coordinator.latest();
        !execution.is_continued || latest.is_some_and(|latest| latest.generation == execution.id.generation)
    }

    /// The execution has failed: its sound workers go on, and if possible so do the regions that it does not reach.
    pub(super) fn keep_sound(&self, execution: &mut Execution, cause: Cause) {
        execution.sparing = match cause {
            _ if !self.settings.spares_regions || self.coordinator.is_stopping() => Sparing::Nobody,
            Cause::Loss | Cause::Task => Sparing::All,
            Cause::Connection | Cause::Other => Sparing::OnOneWorker,
        };
        execution.keep_sound(&self.spec.graph, self.is_trusted(execution));
    }

    /// Whether a session is that of a kept worker, which still runs the execution before.
    pub(super) fn is_kept(&self, session: SessionId) -> bool {
        let worker = |execution: &Execution, is_kept: fn(&Worker) -> bool| {
            execution.workers.iter().any(|worker| worker.session == Some(session) && is_kept(worker))
        };
        match &self.phase {
            Phase::Active(execution) => worker(execution, |worker| !worker.is_registered && worker.is_reachable()),
            _ => self.kept.as_deref().is_some_and(|execution| worker(execution, |worker| worker.is_kept)),
        }
    }

    /// A worker turned out not to be sound. The execution fails, or, if it has already, the next one goes without it.
    pub(super) fn blame(&mut self, ctx: &mut Context<'_>, task_manager: &TaskManagerId, failure: Failure) {
        if matches!(self.phase, Phase::Active(_)) {
            self.fail(ctx, failure);
        } else if self.stop_keeping(ctx, task_manager) {
            if let Some(execution) = self.execution_mut() {
                execution.blame_worker();
            }
            self.record(ctx.now_ms, &failure);
        }
    }

    /// Stops a worker that was kept. Returns whether it was.
    pub(super) fn stop_keeping(&mut self, ctx: &mut Context<'_>, task_manager: &TaskManagerId) -> bool {
        let worker = self.execution_mut().and_then(|execution| execution.worker_on(task_manager));
        let Some(worker) = worker.filter(|worker| worker.is_kept) else { return false };
        worker.is_kept = false;
        if !worker.is_gone {
            ctx.send_to(task_manager, Down::StopWorker { execution: worker.started_for });
        }
        if let Phase::Stopping(stopping) = &mut self.phase {
            stopping.wait_for_more(ctx.now_ms);
            return true;
        }
        if let Some(kept) = &mut self.kept {
            // What was to carry over on it is gone too.
            kept.end(ctx.now_ms, &self.spec.graph);
            self.vertices = kept.view();
        }
        self.hold_slots(ctx);
        true
    }

    /// The next execution does without all kept workers: they are stopped, and then `next` follows.
    pub(super) fn dismiss(&mut self, ctx: &mut Context<'_>, next: Next) {
        match self.kept.take() {
            Some(mut execution) => {
                if matches!(next, Next::End { status: JobStatus::Failed, .. }) {
                    self.set_status(ctx.now_ms, JobStatus::Failing);
                }
                execution.keep_nobody();
                self.stop(ctx, execution, next);
            }
            None => self.go_on(ctx, next),
        }
    }

    /// Tells kept workers to continue, when everybody else is there.
    pub(super) fn continue_kept(&mut self, ctx: &mut Context<'_>) {
        let Phase::Active(execution) = &mut self.phase else { return };
        let (id, checkpoint) = (execution.id, execution.checkpoint());
        for session in execution.take_continued() {
            execution.register_by_ms = Some(ctx.now_ms + REGISTER_TIMEOUT_KEPT_MS);
            let carried = execution.carried_on(session);
            ctx.send(session, Down::Continue { execution: id, checkpoint, carried });
        }
    }

    /// Gives back all slots but those of the current execution or of kept workers, and what a rescale has reserved.
    pub(super) fn hold_slots(&self, ctx: &mut Context<'_>) {
        match &self.phase {
            Phase::Active(execution) => ctx.resources.hold(self.id, execution.slots()),
            Phase::Stopping(stopping) => ctx.resources.hold(self.id, stopping.execution.slots()),
            Phase::Starting { slots, .. } => ctx.resources.hold(self.id, slots),
            _ => {
                let kept = self.kept.as_ref().map(|execution| execution.kept_slots()).unwrap_or_default();
                ctx.resources.hold(self.id, &kept);
            }
        }
        if let Some(rescale) = &self.rescale {
            ctx.resources.reserve(self.id, rescale.slots());
        }
    }
}
