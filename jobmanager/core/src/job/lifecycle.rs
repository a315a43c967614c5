//! From phase to phase, up to the end of an execution.

use std::collections::BTreeSet;
use std::mem;

use flott_checkpoint::{Manifest, assign};
use flott_control::{CompletedCheckpoint, Down, Fact, JobEnd};
use flott_core::ids::{CheckpointId, Generation, SubtaskId, TaskManagerId};
use flott_core::status::JobStatus;
use flott_core::{Error, ErrorKind, Result};

use super::keeping::REGISTER_TIMEOUT_KEPT_MS;
use super::{Cause, Context, Failure, Job, Phase, describe};
use crate::api::Command;
use crate::coordinator::Action;
use crate::execution::{Execution, Restore};
use crate::rescale::parallelism_of;
use crate::retention::is_below;
use crate::scheduler::place;

/// How long a TaskManager has to start a worker: it may have to fetch the job's binary first.
const REGISTER_TIMEOUT_MS: i64 = 120_000;

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
                self.load_claim(ctx);
                self.start_generation(ctx);
            }
        }
    }

    /// The files of a claimed checkpoint that the job has left behind are needed to delete it.
    fn load_claim(&self, ctx: &mut Context<'_>) {
        if let Some(location) = self.spec.savepoint.clone().filter(|_| self.coordinator.has_unknown_claim()) {
            ctx.commands.push(Command::LoadManifest { job: self.id, generation: 0, location, sha256: None });
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
        if generation == 0 {
            // What cannot be read is left where it is.
            if let Ok((location, manifest)) = result
                && !self.has_ended()
            {
                let files = files_of(&manifest, &location);
                let actions = self.coordinator.claimed(location, files);
                self.carry_out(ctx, actions);
            }
            return;
        }
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

    /// The end of looking for what nothing refers to.
    pub(crate) fn files_listed(&mut self, ctx: &mut Context<'_>, result: Result<Vec<String>>) {
        match result {
            Ok(files) => ctx.commands.extend(self.coordinator.files_listed(files)),
            Err(_) => self.coordinator.listing_failed(),
        }
    }

    fn accept(
        &mut self,
        location: String,
        manifest: Box<Manifest>,
        latest: Option<CompletedCheckpoint>,
    ) -> Result<Restore> {
        let files = files_of(&manifest, &location);
        if latest.is_none() {
            assign::check(&manifest, &self.spec.graph, self.spec.allow_non_restored_state)?;
            // There are no others that could take its place yet.
            let _ = self.coordinator.claimed(location.clone(), files.clone());
        }
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
                Phase::Waiting { .. } => {
                    // How many it needs is about to be known.
                    if !self.is_rescale_proposed() {
                        self.acquire_slots(ctx);
                    }
                }
                Phase::Active(_) => self.tick_active(ctx),
                Phase::Stopping(_) => self.tick_stopping(ctx),
                Phase::Delayed { until_ms } => {
                    if ctx.now_ms >= *until_ms && self.is_settled() {
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
            Phase::Waiting { since_ms, .. } => {
                (!self.is_rescale_proposed()).then_some(since_ms + self.settings.slot_timeout_ms)
            }
            Phase::Active(execution) => {
                let coordinator = self.coordinator.next_deadline(execution.progress());
                execution.register_by_ms.into_iter().chain(coordinator).chain(self.drift_deadline()).min()
            }
            Phase::Stopping(stopping) => Some(stopping.next_deadline()),
            Phase::Delayed { until_ms } => self.is_settled().then_some(*until_ms),
            Phase::Idle | Phase::Loading | Phase::Starting { .. } | Phase::Ending | Phase::Ended => None,
        }
    }

    /// Whether the log says where and how to go on: neither a checkpoint nor a rescale is on its way to it.
    fn is_settled(&self) -> bool {
        self.coordinator.is_settled() && !self.is_rescale_proposed()
    }

    fn acquire_slots(&mut self, ctx: &mut Context<'_>) {
        let offers = ctx.resources.offers(self.id);
        let parallelism = self.next_parallelism(&offers);
        let last = self.kept.as_ref().map(|last| last.affinity(&self.spec.graph, &parallelism));
        let needed = parallelism.iter().copied().max().unwrap_or(0);
        let Phase::Waiting { since_ms, restore, shortage } = &mut self.phase else { return };
        match place(needed, &offers, &last.unwrap_or_default()) {
            Ok(slots) => {
                ctx.resources.reserve(self.id, &slots);
                self.phase = Phase::Starting { slots, restore: restore.take(), lost: None };
                if parallelism != parallelism_of(&self.spec.graph) {
                    ctx.propose(Fact::JobRescaled { job: self.id, parallelism });
                }
                ctx.propose(Fact::GenerationStarted { job: self.id, generation: self.generation + 1 });
            }
            Err(missing) if ctx.now_ms >= *since_ms + self.settings.slot_timeout_ms => {
                let error = Error::system(format!(
                    "job '{}' {missing}, after {} ms of waiting (slot.request.timeout): add TaskManagers or slots, or lower the parallelism",
                    self.spec.graph.name, self.settings.slot_timeout_ms
                ));
                if self.generation == 0 {
                    self.end_with(ctx, error);
                } else {
                    // It ran before, so the slots may come back with a machine. What it holds is for others meanwhile.
                    let failure = Failure::from(error);
                    self.record(ctx.now_ms, &failure);
                    self.disappoint(ctx, &failure.error);
                    let next = self.decide(ctx.now_ms, &failure);
                    self.dismiss(ctx, next);
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
            Phase::Starting { slots, restore, lost: None } => self.start_workers(ctx, slots, restore),
            other => self.phase = other,
        }
    }

    fn start_workers(&mut self, ctx: &mut Context<'_>, slots: Vec<TaskManagerId>, restore: Option<Restore>) {
        let (id, graph) = (self.execution_id(), &self.spec.graph);
        let mut last = self.kept.take();
        let checkpoint = restore.as_ref().map(|restore| restore.manifest.checkpoint);
        let carried = last.as_mut().map(|last| last.take_carried(graph, &slots, checkpoint)).unwrap_or_default();
        let mut kept = last.map(|last| last.into_kept()).unwrap_or_default();
        ctx.resources.hold(self.id, &slots);
        let times = (ctx.now_ms, ctx.now_ms + REGISTER_TIMEOUT_MS);
        let mut execution = Execution::new(id, graph, slots, restore, &mut kept, times);
        execution.carry(carried);
        for worker in kept.into_values() {
            ctx.send_to(&worker.task_manager, Down::StopWorker { execution: worker.started_for });
            if let Some(session) = worker.session {
                ctx.refuse(session, Error::system("the job has no subtask for this worker any more"));
            }
        }
        for worker in execution.workers.iter().filter(|worker| worker.session.is_none()) {
            let start = Down::StartWorker {
                execution: id,
                artifact: self.spec.artifact.clone(),
                args: self.spec.args.clone(),
                payload: self.spec.payload.clone(),
                config: graph.config.clone(),
            };
            ctx.send_to(&worker.task_manager, start);
        }
        self.phase = Phase::Active(Box::new(execution));
        self.continue_kept(ctx);
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
        self.rescale_done(ctx);
    }

    fn tick_active(&mut self, ctx: &mut Context<'_>) {
        let Phase::Active(execution) = &self.phase else { return };
        if execution.register_by_ms.is_some_and(|register_by| ctx.now_ms >= register_by) {
            let missing = execution.workers.iter().find(|worker| !worker.is_registered);
            let task_manager = missing.map(|worker| worker.task_manager.clone());
            let name = task_manager.as_ref().map_or_else(String::new, |id| format!(" on {id}"));
            let what = match missing.and_then(|worker| worker.session) {
                Some(_) => format!("go back to the checkpoint within {REGISTER_TIMEOUT_KEPT_MS} ms"),
                None => format!("start within {REGISTER_TIMEOUT_MS} ms"),
            };
            let error = Error::system(format!("the worker{name} did not {what}"));
            self.fail(ctx, Failure { task_manager, ..Failure::from(error) });
            return;
        }
        // Before the coordinator, which is to take the checkpoint for it.
        self.follow_slots(ctx);
        let Phase::Active(execution) = &self.phase else { return };
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
                Action::Rescale(outcome) => self.rescale_checkpointed(ctx, outcome),
                Action::Fail(error) => failure = Some(error),
            }
        }
        if let Some(error) = failure {
            self.fail(ctx, Failure::from(error));
        }
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
        let latest = self.coordinator.latest().map_or(0, |latest| latest.id);
        if let Some(execution) = self.execution_mut() {
            execution.splits.values_mut().for_each(|assigner| assigner.completed(latest));
        }
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
        let failure = Failure {
            error: Error::system(format!("TaskManager {id} was lost: {reason}")),
            cause: Cause::Loss,
            task: None,
            task_manager: Some(id.clone()),
        };
        let worker = self.execution_mut().and_then(|execution| execution.worker_on(id));
        let has_worker = worker.is_some();
        if let Some(worker) = worker.filter(|worker| !worker.is_gone) {
            worker.is_gone = true;
            if let Some(session) = worker.session.filter(|_| !worker.is_lost) {
                ctx.refuse(session, Error::system("its TaskManager was lost"));
            }
        }
        match &mut self.phase {
            Phase::Starting { slots, lost, .. } if slots.contains(id) => {
                *lost = Some(failure);
                self.stop_keeping(ctx, id);
            }
            _ if has_worker => self.blame(ctx, id, failure),
            _ => self.rescale_without(ctx, id),
        }
    }
}

/// The full URLs of a checkpoint's files.
fn files_of(manifest: &Manifest, location: &str) -> BTreeSet<String> {
    manifest.files().map(|file| file.resolve(location).path).collect()
}
