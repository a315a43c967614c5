//! From the end of an execution to what follows it.

use std::mem;

use flott_control::{Down, Fact, JobEnd};
use flott_core::status::{JobStatus, TaskStatus};
use flott_core::{Error, ErrorKind, Result};

use super::{Cause, Context, Failure, Job, Next, Phase};
use crate::api::Reply;
use crate::coordinator::Suspension;
use crate::execution::Execution;
use crate::restart::Decision;

/// How long tasks have to cancel before their workers are ended by force.
const CANCEL_TIMEOUT_MS: i64 = 5_000;

/// How long a TaskManager has to end a worker before the job goes on without its word.
const STOP_TIMEOUT_MS: i64 = 5_000;

/// How long a TaskManager has to say how a worker ended whose connection was lost.
const EXPLAIN_TIMEOUT_MS: i64 = 1_000;

/// How long the loss of a worker may take to show after others have lost their connections to it.
const BLAME_TIMEOUT_MS: i64 = 100;

/// An execution whose workers are being stopped, except for those that are kept.
#[derive(Clone, Debug)]
pub(super) struct Stopping {
    pub(super) execution: Box<Execution>,
    pub(super) next: Next,
    /// When workers that cancel their tasks are ended by force.
    pub(super) kill_at_ms: Option<i64>,
    /// Until when it may show which worker is to blame for a broken connection.
    blame_by_ms: Option<i64>,
    /// Until when a lost worker's TaskManager may say how it ended.
    explain_by_ms: i64,
    /// When the job goes on whatever its workers do.
    give_up_at_ms: i64,
}

impl Stopping {
    fn new(now_ms: i64, execution: Box<Execution>, next: Next) -> Self {
        Self {
            execution,
            next,
            kill_at_ms: None,
            blame_by_ms: None,
            explain_by_ms: now_ms + EXPLAIN_TIMEOUT_MS,
            give_up_at_ms: now_ms + STOP_TIMEOUT_MS,
        }
    }

    /// Another worker is being stopped.
    pub(super) fn wait_for_more(&mut self, now_ms: i64) {
        self.blame_by_ms = None;
        self.explain_by_ms = now_ms + EXPLAIN_TIMEOUT_MS;
        self.give_up_at_ms = now_ms + STOP_TIMEOUT_MS;
    }

    /// When something is to be done, if nothing happens before.
    pub(super) fn next_deadline(&self) -> i64 {
        let explain_by = self.execution.is_unreachable().then_some(self.explain_by_ms);
        [self.kill_at_ms, self.blame_by_ms, explain_by].into_iter().flatten().fold(self.give_up_at_ms, i64::min)
    }

    fn is_over(&self, now_ms: i64) -> bool {
        let is_stopped = self.execution.is_gone()
            || (self.execution.is_unreachable() && now_ms >= self.explain_by_ms)
            || now_ms >= self.give_up_at_ms;
        is_stopped && self.blame_by_ms.is_none()
    }
}

impl Job {
    /// The execution failed: the workers that are to blame are stopped, and the restart strategy decides what follows.
    pub(super) fn fail(&mut self, ctx: &mut Context<'_>, failure: Failure) {
        match mem::replace(&mut self.phase, Phase::Idle) {
            Phase::Active(mut execution) => {
                self.record(ctx.now_ms, &failure);
                let next = self.decide(ctx.now_ms, &failure);
                let is_restarting = matches!(next, Next::Restart { .. });
                self.set_status(ctx.now_ms, if is_restarting { JobStatus::Restarting } else { JobStatus::Failing });
                if is_restarting && self.may_keep(&execution, failure.cause) {
                    self.keep_sound(&mut execution, failure.cause);
                }
                self.stop(ctx, execution, next);
                if let (Cause::Connection, Phase::Stopping(stopping)) = (failure.cause, &mut self.phase)
                    && stopping.execution.has_kept()
                {
                    stopping.blame_by_ms = Some(ctx.now_ms + BLAME_TIMEOUT_MS);
                }
                self.disappoint(ctx, &failure.error);
            }
            other => self.phase = other,
        }
    }

    /// The execution failed, or the next one cannot be started: whoever waits for it is told.
    pub(super) fn disappoint(&mut self, ctx: &mut Context<'_>, error: &Error) {
        let actions = self.coordinator.suspend(ctx.now_ms, &Suspension::Failed(error.clone()));
        self.carry_out(ctx, actions);
        self.interrupt_rescale(ctx, error);
    }

    /// The execution failed before any worker was told of it.
    pub(super) fn fail_without_workers(&mut self, ctx: &mut Context<'_>, failure: Failure) {
        self.record(ctx.now_ms, &failure);
        self.disappoint(ctx, &failure.error);
        match self.decide(ctx.now_ms, &failure) {
            next @ Next::Restart { .. } => {
                self.set_status(ctx.now_ms, JobStatus::Restarting);
                self.go_on(ctx, next);
            }
            next @ Next::End { .. } => self.dismiss(ctx, next),
        }
    }

    pub(super) fn decide(&mut self, now_ms: i64, failure: &Failure) -> Next {
        let (status, error) = (JobStatus::Failed, &failure.error);
        // The same input fails in the same way again.
        if error.kind == ErrorKind::Input {
            return Next::End { status, error: Some(error.clone()) };
        }
        match self.restart.on_failure(now_ms, matches!(failure.cause, Cause::Loss | Cause::Connection)) {
            Decision::Restart { delay_ms } => Next::Restart { at_ms: now_ms + delay_ms },
            Decision::GiveUp { reason } => {
                let mut error = error.clone();
                error.message = format!("{} (not restarted: {reason})", error.message);
                Next::End { status, error: Some(error) }
            }
        }
    }

    /// Ends all workers that are not kept, at once.
    pub(super) fn stop(&mut self, ctx: &mut Context<'_>, execution: Box<Execution>, next: Next) {
        stop_workers(ctx, &execution);
        self.phase = Phase::Stopping(Stopping::new(ctx.now_ms, execution, next));
    }

    pub(super) fn tick_stopping(&mut self, ctx: &mut Context<'_>) {
        let Phase::Stopping(stopping) = &mut self.phase else { return };
        if stopping.kill_at_ms.is_some_and(|kill_at| ctx.now_ms >= kill_at || stopping.execution.has_ended()) {
            stopping.kill_at_ms = None;
            stop_workers(ctx, &stopping.execution);
        }
        stopping.blame_by_ms = stopping.blame_by_ms.filter(|blame_by| ctx.now_ms < *blame_by);
        if !stopping.is_over(ctx.now_ms) {
            return;
        }
        if let Phase::Stopping(Stopping { mut execution, next, .. }) = mem::replace(&mut self.phase, Phase::Idle) {
            let stopped = execution.workers.iter().filter(|worker| !worker.is_kept && worker.is_reachable());
            for session in stopped.filter_map(|worker| worker.session) {
                ctx.refuse(session, Error::system(format!("generation {} of the job is over", self.generation)));
            }
            execution.end(ctx.now_ms, &self.spec.graph);
            self.vertices = execution.view();
            self.kept = execution.has_kept().then_some(execution);
            self.go_on(ctx, next);
        }
    }

    /// No worker is left, but for kept ones.
    pub(super) fn go_on(&mut self, ctx: &mut Context<'_>, next: Next) {
        // Kept ones work on, and write, until they are told to continue.
        if self.kept.is_none() {
            ctx.commands.extend(self.coordinator.delete_aborted(false));
        }
        match next {
            Next::Restart { at_ms } => {
                self.phase = Phase::Delayed { until_ms: at_ms };
                self.hold_slots(ctx);
            }
            Next::End { status, error } => self.end(ctx, status, error),
        }
    }

    /// All tasks have finished.
    pub(super) fn finish(&mut self, ctx: &mut Context<'_>) {
        match mem::replace(&mut self.phase, Phase::Idle) {
            Phase::Active(execution) => {
                self.stop(ctx, execution, Next::End { status: JobStatus::Finished, error: None });
                let actions = self.coordinator.suspend(ctx.now_ms, &Suspension::Finished);
                self.carry_out(ctx, actions);
            }
            other => self.phase = other,
        }
    }

    /// A client wants the job to stop without a savepoint.
    pub(crate) fn cancel(&mut self, ctx: &mut Context<'_>) -> Result<Reply> {
        if self.status == JobStatus::Cancelling {
            return Ok(Reply::Cancelling);
        }
        let is_over = match &self.phase {
            Phase::Ending | Phase::Ended => true,
            Phase::Stopping(Stopping { next: Next::End { status, .. }, .. }) => *status == JobStatus::Finished,
            _ => false,
        };
        if is_over {
            return Err(Error::input(format!("job {} is at its end already: {}", self.id, self.status)));
        }
        let canceled = Next::End { status: JobStatus::Canceled, error: None };
        match mem::replace(&mut self.phase, Phase::Idle) {
            Phase::Active(mut execution) => {
                let id = execution.id;
                execution.set_remaining(ctx.now_ms, TaskStatus::Canceling);
                execution.sessions().for_each(|session| ctx.send(session, Down::CancelTasks { execution: id }));
                // Before the deployment there is no task that could cancel.
                let has_tasks = execution.register_by_ms.is_none();
                let kill_at_ms = ctx.now_ms + if has_tasks { CANCEL_TIMEOUT_MS } else { 0 };
                self.phase = Phase::Stopping(Stopping {
                    kill_at_ms: Some(kill_at_ms),
                    explain_by_ms: ctx.now_ms,
                    give_up_at_ms: ctx.now_ms + CANCEL_TIMEOUT_MS + STOP_TIMEOUT_MS,
                    ..Stopping::new(ctx.now_ms, execution, canceled)
                });
            }
            Phase::Stopping(mut stopping) if stopping.execution.has_kept() => {
                stopping.execution.keep_nobody();
                self.stop(ctx, stopping.execution, canceled);
            }
            Phase::Stopping(stopping) => self.phase = Phase::Stopping(Stopping { next: canceled, ..stopping }),
            _ => self.dismiss(ctx, canceled),
        }
        self.set_status(ctx.now_ms, JobStatus::Cancelling);
        let actions = self.coordinator.suspend(ctx.now_ms, &Suspension::Cancelled);
        self.carry_out(ctx, actions);
        self.interrupt_rescale(ctx, &Error::input("the job was cancelled"));
        Ok(Reply::Cancelling)
    }

    /// A client wants the job to stop as if it had never been.
    pub(crate) fn withdraw(&mut self, ctx: &mut Context<'_>) -> Result<Reply> {
        if !self.coordinator.is_settled() {
            return Err(Error::system("a checkpoint is on its way to the log: try again in a moment"));
        }
        match self.coordinator.latest() {
            Some(latest) => {
                Err(Error::input(format!("checkpoint {} is complete, so what the job wrote counts", latest.id)))
            }
            None => self.cancel(ctx),
        }
    }

    /// The job fails for good, before or between executions.
    pub(super) fn end_with(&mut self, ctx: &mut Context<'_>, error: Error) {
        self.record(ctx.now_ms, &Failure::from(error.clone()));
        self.disappoint(ctx, &error);
        self.dismiss(ctx, Next::End { status: JobStatus::Failed, error: Some(error) });
    }

    fn end(&mut self, ctx: &mut Context<'_>, status: JobStatus, error: Option<Error>) {
        self.interrupt_rescale(ctx, &Error::input("the job has ended"));
        self.rescale = None;
        ctx.resources.hold(self.id, &[]);
        self.phase = Phase::Ending;
        let end = JobEnd { status, error, ended_ms: ctx.now_ms };
        ctx.propose(Fact::JobEnded { job: self.id, end });
    }
}

fn stop_workers(ctx: &mut Context<'_>, execution: &Execution) {
    for worker in execution.workers.iter().filter(|worker| !worker.is_gone && !worker.is_kept) {
        ctx.send_to(&worker.task_manager, Down::StopWorker { execution: worker.started_for });
    }
}
