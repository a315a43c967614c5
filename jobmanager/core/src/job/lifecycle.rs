//! From phase to phase.

use std::collections::BTreeSet;
use std::mem;

use flott_checkpoint::{Manifest, assign};
use flott_control::{CompletedCheckpoint, Down, Fact, JobEnd};
use flott_core::ids::{CheckpointId, Generation, SubtaskId, TaskManagerId};
use flott_core::status::{JobStatus, TaskStatus};
use flott_core::{Error, ErrorKind, Result};

use super::{Context, Failure, Job, Next, Phase, describe};
use crate::api::{Command, Reply};
use crate::coordinator::{Action, Suspension};
use crate::execution::{Execution, Restore};
use crate::restart::Decision;
use crate::retention::is_below;
use crate::scheduler::place;

/// How long a TaskManager has to start a worker: it may have to fetch the job's binary first.
const REGISTER_TIMEOUT_MS: i64 = 120_000;

/// How long tasks have to cancel before their workers are ended by force.
const CANCEL_TIMEOUT_MS: i64 = 5_000;

/// How long a TaskManager has to end a worker before the job goes on without its word.
const STOP_TIMEOUT_MS: i64 = 5_000;

/// How long a TaskManager has to say how a worker ended whose connection was lost.
const EXPLAIN_TIMEOUT_MS: i64 = 1_000;

impl Job {
    /// The job may run: it is new, or the JobManager has read its log.
    pub(crate) fn start(&mut self, ctx: &mut Context<'_>) {
        match (self.ended.as_ref().map(|end| end.status), self.refusal.take()) {
            (Some(status), _) => {
                if self.coordinator.has_leftovers(status) {
                    let actions = self.coordinator.ended(status);
                    self.carry_out(ctx, actions);
                }
            }
            (None, Some(refusal)) => self.end_with(ctx, refusal),
            (None, None) => {
                if self.generation > 0 {
                    self.set_status(ctx.now_ms, JobStatus::Restarting);
                }
                self.start_generation(ctx);
            }
        }
    }

    /// From the latest checkpoint, else from the savepoint that was submitted, else empty.
    fn start_generation(&mut self, ctx: &mut Context<'_>) {
        let source = match self.coordinator.latest() {
            Some(latest) => Some((latest.location.clone(), Some(latest.manifest_sha256.clone()))),
            None => self.spec.savepoint.clone().map(|savepoint| (savepoint, None)),
        };
        let Some((location, sha256)) = source else {
            self.phase = Phase::Waiting { since_ms: ctx.now_ms, restore: None, shortage: None };
            return;
        };
        let generation = self.generation + 1;
        ctx.commands.push(Command::LoadManifest { job: self.id, generation, location, sha256 });
        self.phase = Phase::Loading;
    }

    /// The end of reading the checkpoint to start from. A job never starts without it, nor from an older one.
    pub(crate) fn manifest_loaded(
        &mut self,
        ctx: &mut Context<'_>,
        generation: Generation,
        result: Result<(String, Box<Manifest>)>,
    ) {
        if !matches!(self.phase, Phase::Loading) || generation != self.generation + 1 {
            return;
        }
        let latest = self.coordinator.latest().cloned();
        let name = match &latest {
            Some(latest) if latest.is_savepoint => format!("restoring savepoint {} in {}", latest.id, latest.location),
            Some(latest) => format!("restoring checkpoint {} in {}", latest.id, latest.location),
            None => format!("restoring savepoint {}", self.spec.savepoint.as_deref().unwrap_or_default()),
        };
        match result.and_then(|(location, manifest)| self.accept(location, manifest, latest)) {
            Ok(restore) => {
                self.phase = Phase::Waiting { since_ms: ctx.now_ms, restore: Some(restore), shortage: None };
            }
            // What is damaged or missing stays so; a store that does not answer may be back soon.
            Err(error) if error.kind == ErrorKind::System => {
                self.fail_without_workers(ctx, Failure::from(error.context(name)));
            }
            Err(error) => self.end_with(ctx, error.context(name)),
        }
    }

    fn accept(
        &mut self,
        location: String,
        manifest: Box<Manifest>,
        latest: Option<CompletedCheckpoint>,
    ) -> Result<Restore> {
        if latest.is_none() {
            assign::check(&manifest, &self.spec.graph, self.spec.allow_non_restored_state)?;
        }
        let files: BTreeSet<String> = manifest.files().map(|file| file.resolve(&location).path).collect();
        let dir = self.coordinator.generation_dir(manifest.generation);
        let is_own = latest.is_some() && !manifest.is_savepoint && is_below(&location, &dir);
        self.coordinator.restored(latest.unwrap_or_else(|| describe(&location, &manifest)), files);
        let allow_non_restored_state = self.spec.allow_non_restored_state;
        Ok(Restore { location, manifest, is_own, allow_non_restored_state })
    }

    /// Time passed, or something changed.
    pub(crate) fn tick(&mut self, ctx: &mut Context<'_>) {
        // Each round moves to another phase at most, and no phase follows itself: this ends.
        loop {
            let before = mem::discriminant(&self.phase);
            match &self.phase {
                Phase::Waiting { .. } => self.acquire_slots(ctx),
                Phase::Active(_) => self.tick_active(ctx),
                Phase::Stopping { .. } => self.tick_stopping(ctx),
                Phase::Delayed { until_ms } => {
                    if ctx.now_ms >= *until_ms && self.coordinator.is_settled() {
                        self.start_generation(ctx);
                    }
                }
                Phase::Idle | Phase::Loading | Phase::Starting { .. } | Phase::Ending | Phase::Ended => {}
            }
            if mem::discriminant(&self.phase) == before {
                break;
            }
        }
    }

    /// When [`Self::tick`] has something to do, if nothing else happens before.
    pub(crate) fn next_deadline(&self) -> Option<i64> {
        match &self.phase {
            Phase::Waiting { since_ms, .. } => Some(since_ms + self.settings.slot_timeout_ms),
            Phase::Active(execution) => {
                let coordinator = self.coordinator.next_deadline(execution.progress());
                execution.register_by_ms.into_iter().chain(coordinator).min()
            }
            Phase::Stopping { execution, kill_at_ms, explain_by_ms, give_up_at_ms, .. } => {
                let explain_by = execution.is_unreachable().then_some(*explain_by_ms);
                kill_at_ms.iter().chain(&explain_by).chain([give_up_at_ms]).copied().min()
            }
            Phase::Delayed { until_ms } => self.coordinator.is_settled().then_some(*until_ms),
            Phase::Idle | Phase::Loading | Phase::Starting { .. } | Phase::Ending | Phase::Ended => None,
        }
    }

    fn acquire_slots(&mut self, ctx: &mut Context<'_>) {
        let Phase::Waiting { since_ms, restore, shortage } = &mut self.phase else { return };
        match place(self.spec.graph.slots(), &ctx.resources.offers()) {
            Ok(slots) => {
                ctx.resources.allocate(self.id, &slots);
                let generation = self.generation + 1;
                self.phase = Phase::Starting { slots, restore: restore.take(), lost: None };
                ctx.propose(Fact::GenerationStarted { job: self.id, generation });
            }
            Err(missing) if ctx.now_ms >= *since_ms + self.settings.slot_timeout_ms => {
                let error = Error::system(format!(
                    "job '{}' {missing}, after {} ms of waiting (slot.request.timeout): add TaskManagers or slots, or lower the parallelism",
                    self.spec.graph.name, self.settings.slot_timeout_ms
                ));
                if self.generation == 0 {
                    self.end_with(ctx, error);
                } else {
                    // It ran before, so the slots may come back with a machine.
                    self.fail_without_workers(ctx, Failure::from(error));
                }
            }
            Err(missing) => *shortage = Some(missing),
        }
    }

    /// The next generation is durable: everything before it is stale, and its workers can be started.
    pub(crate) fn generation_started(&mut self, ctx: &mut Context<'_>, generation: Generation) {
        self.generation = self.generation.max(generation);
        match mem::replace(&mut self.phase, Phase::Idle) {
            Phase::Starting { lost: Some(failure), .. } => self.fail_without_workers(ctx, failure),
            Phase::Starting { slots, restore, lost: None } => {
                let (id, graph, now_ms) = (self.execution_id(), &self.spec.graph, ctx.now_ms);
                let execution = Execution::new(id, graph, &slots, restore, now_ms, now_ms + REGISTER_TIMEOUT_MS);
                for worker in &execution.workers {
                    let start = Down::StartWorker {
                        execution: id,
                        artifact: self.spec.artifact.clone(),
                        args: self.spec.args.clone(),
                        config: graph.config.clone(),
                    };
                    ctx.send_to(&worker.task_manager, start);
                }
                self.phase = Phase::Active(Box::new(execution));
            }
            other => self.phase = other,
        }
    }

    /// All tasks run for the first time in this execution.
    pub(super) fn all_running(&mut self, ctx: &mut Context<'_>) {
        let Phase::Active(execution) = &mut self.phase else { return };
        execution.has_run = true;
        self.coordinator.start(ctx.now_ms, execution.id.generation);
        for (&vertex, assigner) in &execution.splits {
            let first = SubtaskId { vertex, index: 0 };
            if let Some(session) = execution.session_of(first).filter(|_| !assigner.is_discovered()) {
                ctx.send(session, Down::DiscoverSplits { execution: execution.id, vertex });
            }
        }
        self.set_status(ctx.now_ms, JobStatus::Running);
    }

    fn tick_active(&mut self, ctx: &mut Context<'_>) {
        let Phase::Active(execution) = &mut self.phase else { return };
        if execution.register_by_ms.is_some_and(|register_by| ctx.now_ms >= register_by) {
            let missing = execution.workers.iter().find(|worker| worker.session.is_none());
            let task_manager = missing.map(|worker| worker.task_manager.clone());
            let name = task_manager.as_ref().map_or_else(String::new, |id| format!(" on {id}"));
            let error = Error::system(format!("the worker{name} did not start within {REGISTER_TIMEOUT_MS} ms"));
            self.fail(ctx, Failure { error, task: None, task_manager });
            return;
        }
        let actions = self.coordinator.tick(ctx.now_ms, execution.progress(), &execution.splits);
        self.carry_out(ctx, actions);
    }

    /// Does what the coordinator wants.
    pub(super) fn carry_out(&mut self, ctx: &mut Context<'_>, actions: Vec<Action>) {
        let mut failure = None;
        for action in actions {
            match action {
                Action::Broadcast(message) => {
                    if let Phase::Active(execution) = &self.phase {
                        execution.sessions().for_each(|session| ctx.send(session, message.clone()));
                    }
                }
                Action::Command(command) => ctx.commands.push(command),
                Action::Fail(error) => failure = Some(error),
            }
        }
        if let Some(error) = failure {
            self.fail(ctx, Failure::from(error));
        }
    }

    /// The execution failed: its workers are stopped, and the restart strategy decides what follows.
    pub(super) fn fail(&mut self, ctx: &mut Context<'_>, failure: Failure) {
        match mem::replace(&mut self.phase, Phase::Idle) {
            Phase::Active(execution) => {
                self.record(ctx.now_ms, &failure);
                let next = self.decide(ctx.now_ms, &failure.error);
                let status = match next {
                    Next::Restart { .. } => JobStatus::Restarting,
                    Next::End { .. } => JobStatus::Failing,
                };
                self.set_status(ctx.now_ms, status);
                self.stop(ctx, execution, next);
                let actions = self.coordinator.suspend(ctx.now_ms, &Suspension::Failed(failure.error));
                self.carry_out(ctx, actions);
            }
            other => self.phase = other,
        }
    }

    /// The execution failed before any worker was started.
    fn fail_without_workers(&mut self, ctx: &mut Context<'_>, failure: Failure) {
        self.record(ctx.now_ms, &failure);
        ctx.resources.release(self.id);
        match self.decide(ctx.now_ms, &failure.error) {
            Next::Restart { at_ms } => {
                self.set_status(ctx.now_ms, JobStatus::Restarting);
                self.phase = Phase::Delayed { until_ms: at_ms };
            }
            Next::End { status, error } => self.end(ctx, status, error),
        }
    }

    fn decide(&mut self, now_ms: i64, error: &Error) -> Next {
        let status = JobStatus::Failed;
        // The same input fails in the same way again.
        if error.kind == ErrorKind::Input {
            return Next::End { status, error: Some(error.clone()) };
        }
        match self.restart.on_failure(now_ms) {
            Decision::Restart { delay_ms } => Next::Restart { at_ms: now_ms + delay_ms },
            Decision::GiveUp { reason } => {
                let mut error = error.clone();
                error.message = format!("{} (not restarted: {reason})", error.message);
                Next::End { status, error: Some(error) }
            }
        }
    }

    /// Ends all workers, at once.
    pub(super) fn stop(&mut self, ctx: &mut Context<'_>, execution: Box<Execution>, next: Next) {
        stop_workers(ctx, &execution);
        self.phase = Phase::Stopping {
            execution,
            next,
            kill_at_ms: None,
            explain_by_ms: ctx.now_ms + EXPLAIN_TIMEOUT_MS,
            give_up_at_ms: ctx.now_ms + STOP_TIMEOUT_MS,
        };
    }

    fn tick_stopping(&mut self, ctx: &mut Context<'_>) {
        let Phase::Stopping { execution, kill_at_ms, explain_by_ms, give_up_at_ms, .. } = &mut self.phase else {
            return;
        };
        if kill_at_ms.is_some_and(|kill_at| ctx.now_ms >= kill_at || execution.has_ended()) {
            *kill_at_ms = None;
            stop_workers(ctx, execution);
        }
        let is_over = execution.is_gone()
            || (execution.is_unreachable() && ctx.now_ms >= *explain_by_ms)
            || ctx.now_ms >= *give_up_at_ms;
        if !is_over {
            return;
        }
        if let Phase::Stopping { mut execution, next, .. } = mem::replace(&mut self.phase, Phase::Idle) {
            let sessions: Vec<_> = execution.sessions().collect();
            for session in sessions {
                ctx.refuse(session, Error::system(format!("generation {} of the job is over", self.generation)));
            }
            execution.set_remaining(ctx.now_ms, TaskStatus::Canceled);
            self.vertices = execution.view(&self.spec.graph);
            ctx.resources.release(self.id);
            match next {
                Next::Restart { at_ms } => self.phase = Phase::Delayed { until_ms: at_ms },
                Next::End { status, error } => self.end(ctx, status, error),
            }
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
            Phase::Stopping { next: Next::End { status, .. }, .. } => *status == JobStatus::Finished,
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
                let kill_at_ms = ctx.now_ms + CANCEL_TIMEOUT_MS;
                let has_all_workers = execution.register_by_ms.is_none();
                self.phase = Phase::Stopping {
                    execution,
                    next: canceled,
                    // Before the deployment there is no task that could cancel.
                    kill_at_ms: Some(if has_all_workers { kill_at_ms } else { ctx.now_ms }),
                    explain_by_ms: ctx.now_ms,
                    give_up_at_ms: kill_at_ms + STOP_TIMEOUT_MS,
                };
            }
            Phase::Stopping { execution, kill_at_ms, explain_by_ms, give_up_at_ms, .. } => {
                self.phase = Phase::Stopping { execution, next: canceled, kill_at_ms, explain_by_ms, give_up_at_ms };
            }
            _ => {
                ctx.resources.release(self.id);
                self.end(ctx, JobStatus::Canceled, None);
            }
        }
        self.set_status(ctx.now_ms, JobStatus::Cancelling);
        let actions = self.coordinator.suspend(ctx.now_ms, &Suspension::Cancelled);
        self.carry_out(ctx, actions);
        Ok(Reply::Cancelling)
    }

    /// The job fails for good, before or between executions.
    fn end_with(&mut self, ctx: &mut Context<'_>, error: Error) {
        self.record(ctx.now_ms, &Failure::from(error.clone()));
        ctx.resources.release(self.id);
        self.end(ctx, JobStatus::Failed, Some(error));
    }

    fn end(&mut self, ctx: &mut Context<'_>, status: JobStatus, error: Option<Error>) {
        self.phase = Phase::Ending;
        let end = JobEnd { status, error, ended_ms: ctx.now_ms };
        ctx.propose(Fact::JobEnded { job: self.id, end });
    }

    /// The end is durable.
    pub(crate) fn ended(&mut self, ctx: &mut Context<'_>, end: JobEnd) {
        let status = end.status;
        self.set_ended(end);
        let actions = self.coordinator.ended(status);
        self.carry_out(ctx, actions);
    }

    /// A checkpoint is durable.
    pub(crate) fn checkpoint_completed(&mut self, ctx: &mut Context<'_>, checkpoint: CompletedCheckpoint) {
        let actions = self.coordinator.committed(ctx.now_ms, checkpoint);
        self.carry_out(ctx, actions);
    }

    /// The end of writing a manifest.
    pub(crate) fn manifest_written(
        &mut self,
        ctx: &mut Context<'_>,
        generation: Generation,
        checkpoint: CheckpointId,
        result: Result<CompletedCheckpoint>,
    ) {
        let actions = self.coordinator.manifest_written(ctx.now_ms, generation, checkpoint, result);
        self.carry_out(ctx, actions);
    }

    /// A checkpoint is no longer kept.
    pub(crate) fn checkpoint_dropped(&mut self, ctx: &mut Context<'_>, checkpoint: CheckpointId) {
        ctx.commands.extend(self.coordinator.dropped(checkpoint));
    }

    /// A TaskManager is gone, and with it everything that it ran.
    pub(crate) fn task_manager_lost(&mut self, ctx: &mut Context<'_>, id: &TaskManagerId, reason: &str) {
        let failure = || Failure {
            error: Error::system(format!("TaskManager {id} was lost: {reason}")),
            task: None,
            task_manager: Some(id.clone()),
        };
        match &mut self.phase {
            Phase::Starting { slots, lost, .. } if slots.contains(id) => *lost = Some(failure()),
            Phase::Active(execution) | Phase::Stopping { execution, .. } => {
                let Some(worker) = execution.worker_on(id) else { return };
                worker.is_gone = true;
                if let Some(session) = worker.session.filter(|_| !worker.is_lost) {
                    ctx.refuse(session, Error::system("its TaskManager was lost"));
                }
                self.fail(ctx, failure());
            }
            _ => {}
        }
    }
}

fn stop_workers(ctx: &mut Context<'_>, execution: &Execution) {
    for worker in execution.workers.iter().filter(|worker| !worker.is_gone) {
        ctx.send_to(&worker.task_manager, Down::StopWorker { execution: execution.id });
    }
}
