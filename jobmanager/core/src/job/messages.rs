//! What workers, TaskManagers and clients say to a job.

use flott_control::{Down, ExecutionId, Fact, Up, WORKER_STOPPED};
use flott_core::ids::{SubtaskId, TaskManagerId, VertexId};
use flott_core::status::TaskStatus;
use flott_core::{Error, Result};

use super::stopping::Stopping;
use super::{Cause, Context, Failure, Job, Next, Phase};
use crate::api::{Reply, RequestId, SessionId};
use crate::coordinator::Wish;
use crate::execution::{Sparing, task_name};
use crate::settings::folder_url;
use crate::splits::Assignment;

impl Job {
    /// A worker process of this job connected, or one that was kept has gone back to the checkpoint. One that nobody
    /// waits for is refused, and ends itself.
    pub(crate) fn register_worker(
        &mut self,
        ctx: &mut Context<'_>,
        session: SessionId,
        execution_id: ExecutionId,
        task_manager: &TaskManagerId,
        data_address: String,
    ) -> Result<()> {
        let stale = Error::system(format!(
            "nobody waits for a worker of generation {} on TaskManager {task_manager}: the job is at generation {}",
            execution_id.generation, self.generation
        ));
        let Phase::Active(execution) = &mut self.phase else { return Err(stale) };
        if execution.id != execution_id || !execution.register(task_manager, session, data_address) {
            return Err(stale);
        }
        let peer = crate::sessions::Peer::Worker { execution: execution_id, task_manager: task_manager.clone() };
        ctx.sessions.open(ctx.now_ms, session, peer);
        let heartbeat_interval_ms = ctx.sessions.interval_ms().unsigned_abs();
        ctx.send(session, Down::Registered { heartbeat_interval_ms });
        self.continue_kept(ctx);
        let Phase::Active(execution) = &mut self.phase else { return Ok(()) };
        let checkpoint_dir = self.coordinator.generation_dir(execution_id.generation);
        let deployments = execution.deploy(ctx.now_ms, &self.spec.graph, &self.config, &checkpoint_dir);
        if !deployments.is_empty() {
            // All that were kept have left the execution before.
            let has_carried = execution.has_carried();
            ctx.commands.extend(self.coordinator.delete_aborted(has_carried));
        }
        for (session, deployment) in deployments {
            ctx.send(session, Down::Deploy { execution: execution_id, deployment });
        }
        Ok(())
    }

    /// A worker said something about the execution that it was registered for.
    pub(crate) fn on_worker_message(&mut self, ctx: &mut Context<'_>, session: SessionId, message: Up) {
        let is_current = match &self.phase {
            Phase::Active(execution) | Phase::Stopping(Stopping { execution, .. }) => {
                execution.sessions().any(|current| current == session)
            }
            _ => false,
        };
        if !matches!(self.phase, Phase::Active(_))
            && let Up::TaskStatus { status: TaskStatus::Failed, error, .. } = &message
        {
            self.kept_worker_failed(ctx, session, error.clone());
        }
        if !is_current
            && self.is_kept(session)
            && let Up::RequestSplit { execution, subtask } = message
        {
            return self.split_requested(ctx, session, execution, subtask);
        }
        if !is_current {
            if !self.is_kept(session) {
                ctx.refuse(session, Error::system("this execution of the job is over"));
            }
            return;
        }
        let now_ms = ctx.now_ms;
        match message {
            Up::Heartbeat { metrics, .. } => {
                if let Phase::Active(execution) | Phase::Stopping(Stopping { execution, .. }) = &mut self.phase {
                    execution.set_metrics(metrics);
                }
            }
            Up::ConnectionLost { error, .. } => {
                self.fail(ctx, Failure { cause: Cause::Connection, ..Failure::from(error) });
            }
            Up::TaskStatus { subtask, status, error, .. } => self.on_task_status(ctx, subtask, status, error),
            Up::SplitsDiscovered { vertex, splits, .. } => {
                let Phase::Active(execution) = &mut self.phase else { return };
                let assigner = execution.splits.get_mut(&vertex);
                let next = self.coordinator.next_checkpoint();
                let assignments = assigner.map(|assigner| assigner.discover(splits, next)).unwrap_or_default();
                let id = execution.id;
                self.assign(ctx, id, vertex, assignments);
            }
            Up::RequestSplit { execution, subtask } => self.split_requested(ctx, session, execution, subtask),
            Up::SavepointTaken { subtask, checkpoint, .. } => {
                if matches!(self.phase, Phase::Active(_)) {
                    self.coordinator.taken(subtask, checkpoint);
                }
            }
            Up::CheckpointAcknowledged { subtask, checkpoint, snapshot, .. } => {
                if matches!(self.phase, Phase::Active(_)) {
                    let actions = self.coordinator.acknowledge(subtask, checkpoint, snapshot);
                    self.carry_out(ctx, actions);
                }
            }
            Up::CheckpointDeclined { subtask, checkpoint, reason, .. } => {
                if matches!(self.phase, Phase::Active(_)) {
                    let task = task_name(&self.spec.graph, subtask);
                    let actions = self.coordinator.decline(now_ms, &task, checkpoint, reason);
                    self.carry_out(ctx, actions);
                }
            }
            Up::RegisterTaskManager(_) | Up::RegisterWorker { .. } | Up::WorkerExited { .. } => {}
        }
    }

    /// A subtask has nothing left to read. One that a failure does not reach is answered also while the others are
    /// restarted: if it is lost after all, what it got comes back with it.
    fn split_requested(
        &mut self,
        ctx: &mut Context<'_>,
        session: SessionId,
        asked_in: ExecutionId,
        subtask: SubtaskId,
    ) {
        let (is_active, next) = (matches!(self.phase, Phase::Active(_)), self.coordinator.next_checkpoint());
        let Some(execution) =
            self.execution_mut().filter(|execution| is_active || execution.sparing != Sparing::Nobody)
        else {
            return;
        };
        if execution.session_of(subtask) != Some(session) {
            return;
        }
        let Some(id) = execution.listens_in(subtask, asked_in) else { return };
        let assigner = execution.splits.get_mut(&subtask.vertex);
        let assignment = assigner.and_then(|assigner| assigner.request(subtask.index, next));
        self.assign(ctx, id, subtask.vertex, assignment.into_iter().collect());
    }

    fn assign(&mut self, ctx: &mut Context<'_>, id: ExecutionId, vertex: VertexId, assignments: Vec<Assignment>) {
        let Some(execution) = self.execution_mut() else { return };
        for Assignment { subtask, splits, is_last } in assignments {
            let subtask = SubtaskId { vertex, index: subtask };
            if let Some(session) = execution.session_of(subtask) {
                ctx.send(session, Down::AddSplits { execution: id, subtask, splits, is_last });
            }
        }
    }

    fn on_task_status(&mut self, ctx: &mut Context<'_>, subtask: SubtaskId, status: TaskStatus, error: Option<Error>) {
        let (execution, is_active) = match &mut self.phase {
            Phase::Active(execution) => (execution, true),
            Phase::Stopping(Stopping { execution, .. }) => (execution, false),
            _ => return,
        };
        if !execution.set_status(ctx.now_ms, subtask, status) || !is_active {
            return;
        }
        let (progress, has_run, is_finished) = (execution.progress(), execution.has_run, execution.is_finished());
        let trouble = match status {
            TaskStatus::Failed => Some(error.unwrap_or_else(|| Error::system("it failed and did not say why"))),
            TaskStatus::Canceled => Some(Error::system("it stopped without being asked to")),
            TaskStatus::Finished if !self.coordinator.is_ending() => {
                Some(Error::system("it finished before the final checkpoint was complete"))
            }
            _ => None,
        };
        if let Some(error) = trouble {
            let task_manager = execution.task_manager_of(subtask).cloned();
            if let Some(id) = &task_manager
                && let Some(worker) = execution.worker_on(id)
            {
                worker.has_failed = true;
            }
            let task = task_name(&self.spec.graph, subtask);
            let error = error.context(&task);
            self.fail(ctx, Failure { error, cause: Cause::Task, task: Some(task), task_manager });
        } else if is_finished {
            self.finish(ctx);
        } else if progress.is_running && !has_run {
            self.all_running(ctx);
        }
    }

    /// A subtask failed in an execution that is over. Its worker is not sound enough to be kept.
    fn kept_worker_failed(&mut self, ctx: &mut Context<'_>, session: SessionId, error: Option<Error>) {
        let worker = self.execution_mut().and_then(|execution| execution.worker_of(session));
        let Some(task_manager) = worker.map(|worker| worker.task_manager.clone()) else { return };
        let error = error.unwrap_or_else(|| Error::system("it did not say why"));
        let error = error.context(format!("the worker on TaskManager {task_manager} failed meanwhile"));
        let failure = Failure { cause: Cause::Task, task_manager: Some(task_manager.clone()), ..Failure::from(error) };
        self.blame(ctx, &task_manager, failure);
    }

    /// The session of a worker ended.
    pub(crate) fn worker_lost(&mut self, ctx: &mut Context<'_>, session: SessionId, reason: &str) {
        let worker = self.execution_mut().and_then(|execution| execution.worker_of(session));
        let Some(worker) = worker.filter(|worker| !worker.is_gone) else { return };
        worker.is_lost = true;
        let task_manager = worker.task_manager.clone();
        let error = Error::system(format!("the worker on TaskManager {task_manager} was lost: {reason}"));
        let failure = Failure { error, cause: Cause::Loss, task: None, task_manager: Some(task_manager.clone()) };
        self.blame(ctx, &task_manager, failure);
    }

    /// A TaskManager says that a worker ended.
    pub(crate) fn worker_exited(
        &mut self,
        ctx: &mut Context<'_>,
        task_manager: &TaskManagerId,
        started_for: ExecutionId,
        reason: &str,
    ) {
        let message = format!("the worker on TaskManager {task_manager} ended: {reason}");
        let worker = self.execution_mut().and_then(|execution| execution.worker_on(task_manager));
        let Some(worker) = worker.filter(|worker| worker.started_for == started_for && !worker.is_gone) else { return };
        worker.is_gone = true;
        // That it ended is no news then, but this is how.
        let explains = worker.is_lost && reason != WORKER_STOPPED;
        if let Phase::Stopping(Stopping { next, .. }) = &mut self.phase
            && explains
        {
            if let Next::End { error: Some(error), .. } = next {
                error.message = format!("{}; {message}", error.message);
            }
            let latest = self.exceptions.first_mut();
            if let Some(exception) = latest.filter(|latest| latest.task_manager.as_ref() == Some(task_manager)) {
                exception.message = format!("{}; {message}", exception.message);
            }
            return;
        }
        let error = Error::system(message);
        let failure = Failure { error, cause: Cause::Loss, task: None, task_manager: Some(task_manager.clone()) };
        self.blame(ctx, task_manager, failure);
    }

    /// A client wants a savepoint. The reply follows when it is complete, or the job has stopped with it.
    pub(crate) fn savepoint(
        &mut self,
        ctx: &mut Context<'_>,
        request: RequestId,
        target: Option<String>,
        (stop, drain): (bool, bool),
        suffix: &str,
    ) -> Result<()> {
        self.check_alive()?;
        if drain && !stop {
            return Err(Error::input("only a job that stops can be drained: ask for a stop with a savepoint"));
        }
        let target = match target {
            Some(target) => folder_url(&target)?,
            None if !self.settings.savepoint_dir.is_empty() => self.settings.savepoint_dir.clone(),
            None => {
                return Err(Error::input(
                    "where should the savepoint go? Name a folder, or set execution.checkpointing.savepoint-dir",
                ));
            }
        };
        let id = self.id.to_string();
        let location = format!("{target}/savepoint-{}-{suffix}", &id[..6]);
        self.coordinator.request(request, Wish::Savepoint { location: location.clone(), stop, drain })?;
        // Before any task writes there: it is proposed before the trigger is sent.
        ctx.propose(Fact::SavepointRequested { job: self.id, location });
        Ok(())
    }

    /// A client wants a checkpoint now. The reply follows when it is complete.
    pub(crate) fn checkpoint(&mut self, request: RequestId) -> Result<()> {
        self.check_alive()?;
        self.coordinator.request(request, Wish::Checkpoint)
    }

    fn check_alive(&self) -> Result<()> {
        if self.status.is_terminal() {
            return Err(Error::input(format!("job {} is {}", self.id, self.status)));
        }
        Ok(())
    }

    /// A client's request that is answered at once, or accepted to be answered later.
    pub(crate) fn answer(&self, ctx: &mut Context<'_>, request: RequestId, result: Result<Option<Reply>>) {
        match result.map_err(|error| error.context(format!("job {}", self.id))) {
            Ok(Some(reply)) => ctx.reply(request, Ok(reply)),
            Ok(None) => {}
            Err(error) => ctx.reply(request, Err(error)),
        }
    }
}
