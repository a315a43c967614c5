//! The whole JobManager as one machine: routes events to jobs, sessions and TaskManagers.

use std::collections::BTreeMap;

use flott_control::{Down, ExecutionId, Fact, JobSpec, TaskManagerInfo, Up};
use flott_core::config::{Configuration, options};
use flott_core::ids::{JobId, TaskManagerId};
use flott_core::{Error, Result};

use crate::api::{Command, Event, Reply, Request, RequestId, SessionId};
use crate::job::{Context, Job};
use crate::resources::Resources;
use crate::sessions::{Peer, Sessions};
use crate::settings::millis;
use crate::submission;
use crate::view::{JobView, TaskManagerView};

/// How many submissions may be on their way to the log.
const SUBMISSIONS_MAX: usize = 256;

/// A submission on its way to the log, and who waits for it.
#[derive(Clone, Debug)]
struct Submission {
    spec: Box<JobSpec>,
    requests: Vec<RequestId>,
}

/// The JobManager's state and decisions. See the [crate]'s documentation.
#[derive(Clone, Debug)]
pub struct Cluster {
    config: Configuration,
    sessions: Sessions,
    resources: Resources,
    jobs: BTreeMap<JobId, Job>,
    submissions: BTreeMap<JobId, Submission>,
    is_recovered: bool,
    now_ms: i64,
}

impl Cluster {
    /// A JobManager that has read nothing of its log yet. `config` is the cluster's; a job's own goes over it.
    pub fn new(config: Configuration) -> Self {
        // A configuration that was built by `set` has no other values; the fallbacks are the defaults.
        let interval_ms = config.get(options::HEARTBEAT_INTERVAL).map_or(500, millis).max(1);
        let timeout_ms = config.get(options::HEARTBEAT_TIMEOUT).map_or(5_000, millis).max(1);
        Self {
            config,
            sessions: Sessions::new(interval_ms, timeout_ms),
            resources: Resources::default(),
            jobs: BTreeMap::new(),
            submissions: BTreeMap::new(),
            is_recovered: false,
            now_ms: i64::MIN,
        }
    }

    /// Takes one event at the time `now_ms` (milliseconds since 1970) and returns what to do, in order. Time that
    /// goes backwards is taken to stand still.
    pub fn step(&mut self, now_ms: i64, event: Event) -> Vec<Command> {
        if self.now_ms != i64::MIN {
            self.sessions.forgive(now_ms.saturating_sub(self.now_ms));
        }
        self.now_ms = self.now_ms.max(now_ms);
        let mut commands = Vec::new();
        match event {
            Event::Tick => {}
            Event::Message { session, message } => self.on_message(session, message, &mut commands),
            Event::SessionClosed { session } => self.lose(session, "its connection was closed", &mut commands),
            Event::Request { id, request } => self.on_request(id, request, &mut commands),
            Event::Committed(fact) => self.on_committed(fact, &mut commands),
            Event::Recovered => {
                self.is_recovered = true;
                let ids: Vec<JobId> = self.jobs.keys().copied().collect();
                for id in ids {
                    self.with_job(id, &mut commands, |job, ctx| job.start(ctx));
                }
            }
            Event::ManifestWritten { job, generation, checkpoint, result } => {
                self.with_job(job, &mut commands, |job, ctx| job.manifest_written(ctx, generation, checkpoint, result));
            }
            Event::ManifestLoaded { job, generation, result } => {
                self.with_job(job, &mut commands, |job, ctx| job.manifest_loaded(ctx, generation, result));
            }
            Event::FilesListed { job, result } => {
                self.with_job(job, &mut commands, |job, ctx| job.files_listed(ctx, result));
            }
        }
        self.tick(&mut commands);
        commands
    }

    /// When to send [`Event::Tick`], if nothing else happens before.
    pub fn next_deadline(&self) -> Option<i64> {
        let jobs = self.jobs.values().filter_map(Job::next_deadline);
        jobs.chain(self.sessions.next_deadline()).min()
    }

    /// All jobs, in the order in which they were submitted.
    pub fn jobs(&self) -> Vec<JobView> {
        let mut views: Vec<JobView> = self.jobs.values().map(Job::view).collect();
        views.sort_by_key(|job| (job.submitted_ms, job.id));
        views
    }

    /// One job.
    pub fn job(&self, id: JobId) -> Option<JobView> {
        self.jobs.get(&id).map(Job::view)
    }

    /// The registered TaskManagers, by id.
    pub fn task_managers(&self) -> Vec<TaskManagerView> {
        let view = |(info, session, free_slots): (&TaskManagerInfo, SessionId, u32)| TaskManagerView {
            info: info.clone(),
            free_slots,
            last_heartbeat_ms: self.sessions.heard_ms(session).unwrap_or(self.now_ms),
        };
        self.resources.iter().map(view).collect()
    }

    /// How many slots the TaskManagers offer.
    pub fn slots_total(&self) -> u32 {
        self.resources.iter().map(|(info, _, _)| info.slots).fold(0, u32::saturating_add)
    }

    /// How many of them no job holds.
    pub fn slots_free(&self) -> u32 {
        self.resources.iter().map(|(_, _, free)| free).fold(0, u32::saturating_add)
    }

    /// Whether the log has been read, so that requests are answered.
    pub fn is_recovered(&self) -> bool {
        self.is_recovered
    }

    fn with_job<T>(
        &mut self,
        id: JobId,
        commands: &mut Vec<Command>,
        act: impl FnOnce(&mut Job, &mut Context<'_>) -> T,
    ) -> Option<T> {
        let job = self.jobs.get_mut(&id)?;
        let mut ctx =
            Context { now_ms: self.now_ms, resources: &mut self.resources, sessions: &mut self.sessions, commands };
        Some(act(job, &mut ctx))
    }

    fn refuse(&mut self, session: SessionId, reason: Error, commands: &mut Vec<Command>) {
        self.sessions.close(session);
        commands.push(Command::Send { session, message: Down::Refused(reason) });
        commands.push(Command::Close { session });
    }

    fn on_message(&mut self, session: SessionId, message: Up, commands: &mut Vec<Command>) {
        let peer = self.sessions.peer(session).cloned();
        self.sessions.heard(self.now_ms, session);
        match (message, peer) {
            (Up::RegisterTaskManager(info), None) => self.register_task_manager(session, info, commands),
            (Up::RegisterWorker { execution, task_manager, data_address }, peer)
                if peer.as_ref().is_none_or(|peer| peer.may_become(execution, &task_manager)) =>
            {
                let registered = self.with_job(execution.job, commands, |job, ctx| {
                    job.register_worker(ctx, session, execution, &task_manager, data_address)
                });
                let unknown = || Err(Error::system(format!("the JobManager does not know job {}", execution.job)));
                if let Err(reason) = registered.unwrap_or_else(unknown) {
                    self.lose(session, "it registered for an execution that is over", commands);
                    self.refuse(session, reason, commands);
                }
            }
            (Up::RegisterTaskManager(_) | Up::RegisterWorker { .. }, _) => {
                self.lose(session, "it registered twice", commands);
                self.refuse(session, Error::system("this session has registered already"), commands);
            }
            // Also what was still on its way when the session was ended.
            (_, None) => self.refuse(session, Error::system("this session is not registered"), commands),
            (Up::WorkerExited { execution, reason }, Some(Peer::TaskManager(id))) => {
                self.with_job(execution.job, commands, |job, ctx| job.worker_exited(ctx, &id, execution, &reason));
            }
            (_, Some(Peer::TaskManager(_))) => {}
            (message, Some(Peer::Worker { execution, .. })) => {
                if execution_of(&message) == Some(execution) {
                    self.with_job(execution.job, commands, |job, ctx| job.on_worker_message(ctx, session, message));
                }
            }
        }
    }

    fn register_task_manager(&mut self, session: SessionId, info: TaskManagerInfo, commands: &mut Vec<Command>) {
        if let Err(reason) = Resources::check(&info) {
            return self.refuse(session, reason, commands);
        }
        if let Some(old) = self.resources.session(&info.id) {
            self.lose(old, "it registered again", commands);
            commands.push(Command::Close { session: old });
        }
        self.sessions.open(self.now_ms, session, Peer::TaskManager(info.id.clone()));
        self.resources.register(session, info);
        let heartbeat_interval_ms = self.sessions.interval_ms().unsigned_abs();
        commands.push(Command::Send { session, message: Down::Registered { heartbeat_interval_ms } });
    }

    /// A session is over.
    fn lose(&mut self, session: SessionId, reason: &str, commands: &mut Vec<Command>) {
        match self.sessions.close(session) {
            Some(Peer::TaskManager(id)) => self.lose_task_manager(&id, reason, commands),
            Some(Peer::Worker { execution, .. }) => {
                self.with_job(execution.job, commands, |job, ctx| job.worker_lost(ctx, session, reason));
            }
            None => {}
        }
    }

    fn lose_task_manager(&mut self, id: &TaskManagerId, reason: &str, commands: &mut Vec<Command>) {
        self.resources.remove(id);
        let jobs: Vec<JobId> = self.jobs.keys().copied().collect();
        for job in jobs {
            self.with_job(job, commands, |job, ctx| job.task_manager_lost(ctx, id, reason));
        }
    }

    fn on_request(&mut self, id: RequestId, request: Request, commands: &mut Vec<Command>) {
        if !self.is_recovered {
            let reply = Err(Error::system("the JobManager is starting: try again in a moment"));
            commands.push(Command::Reply { id, reply });
            return;
        }
        let job = match request {
            Request::Submit { job, spec } => return self.submit(id, job, spec, commands),
            Request::Cancel { job } => (
                job,
                self.with_job(job, commands, |job, ctx| {
                    let result = job.cancel(ctx).map(Some);
                    job.answer(ctx, id, result);
                }),
            ),
            Request::Withdraw { job } => (
                job,
                self.with_job(job, commands, |job, ctx| {
                    let result = job.withdraw(ctx).map(Some);
                    job.answer(ctx, id, result);
                }),
            ),
            Request::Savepoint { job, target, stop, drain, suffix } => (
                job,
                self.with_job(job, commands, |job, ctx| {
                    let result = job.savepoint(ctx, id, target, (stop, drain), &suffix).map(|()| None);
                    job.answer(ctx, id, result);
                }),
            ),
            Request::Checkpoint { job } => (
                job,
                self.with_job(job, commands, |job, ctx| {
                    let result = job.checkpoint(id).map(|()| None);
                    job.answer(ctx, id, result);
                }),
            ),
            Request::Rescale { job, parallelism } => (
                job,
                self.with_job(job, commands, |job, ctx| {
                    let result = job.rescale(ctx, id, &parallelism);
                    job.answer(ctx, id, result);
                }),
            ),
        };
        if let (job, None) = job {
            let reply = Err(Error::input(format!("there is no job {job}: `flott list -a` shows the jobs")));
            commands.push(Command::Reply { id, reply });
        }
    }

    fn submit(&mut self, id: RequestId, job: JobId, spec: Box<JobSpec>, commands: &mut Vec<Command>) {
        let taken = || Err(Error::input(format!("another job has been submitted as {job} already")));
        if let Some(submission) = self.submissions.get_mut(&job) {
            if is_same(&submission.spec, &spec) {
                submission.requests.push(id);
            } else {
                commands.push(Command::Reply { id, reply: taken() });
            }
            return;
        }
        if let Some(known) = self.jobs.get(&job) {
            let reply = if is_same(known.spec(), &spec) { Ok(Reply::Submitted) } else { taken() };
            commands.push(Command::Reply { id, reply });
            return;
        }
        match self.accept(&spec) {
            Ok(()) => {
                self.submissions.insert(job, Submission { spec: spec.clone(), requests: vec![id] });
                commands.push(Command::Propose(Fact::JobSubmitted { job, spec, submitted_ms: self.now_ms }));
            }
            Err(error) => commands.push(Command::Reply { id, reply: Err(error) }),
        }
    }

    fn accept(&self, spec: &JobSpec) -> Result<()> {
        if self.submissions.len() >= SUBMISSIONS_MAX {
            return Err(Error::system("too many jobs are being submitted: try again in a moment"));
        }
        submission::plan(spec, &self.config).map(|_| ())
    }

    fn on_committed(&mut self, fact: Fact, commands: &mut Vec<Command>) {
        let id = match &fact {
            Fact::JobSubmitted { job, spec, submitted_ms } => {
                let new = Job::new(*job, (**spec).clone(), &self.config, *submitted_ms);
                self.jobs.insert(*job, new);
                *job
            }
            Fact::GenerationStarted { job, .. }
            | Fact::JobRescaled { job, .. }
            | Fact::SavepointRequested { job, .. }
            | Fact::CheckpointCompleted { job, .. }
            | Fact::CheckpointDropped { job, .. }
            | Fact::JobEnded { job, .. } => *job,
        };
        if !self.is_recovered {
            self.with_job(id, commands, |job, _| job.replay(fact));
            return;
        }
        for request in self.submissions.remove(&id).into_iter().flat_map(|submission| submission.requests) {
            commands.push(Command::Reply { id: request, reply: Ok(Reply::Submitted) });
        }
        self.with_job(id, commands, |job, ctx| match fact {
            Fact::JobSubmitted { .. } => job.start(ctx),
            Fact::GenerationStarted { generation, .. } => job.generation_started(ctx, generation),
            Fact::JobRescaled { parallelism, .. } => job.rescaled(ctx, &parallelism),
            // This leader knows what becomes of it.
            Fact::SavepointRequested { .. } => {}
            Fact::CheckpointCompleted { checkpoint, .. } => job.checkpoint_completed(ctx, checkpoint),
            Fact::CheckpointDropped { checkpoint, .. } => job.checkpoint_dropped(ctx, checkpoint),
            Fact::JobEnded { end, .. } => job.ended(ctx, end),
        });
    }

    /// Lets time act: on sessions, then on jobs, those that wait for slots last and in the order of their waiting.
    fn tick(&mut self, commands: &mut Vec<Command>) {
        for session in self.sessions.silent(self.now_ms) {
            self.lose(session, "it sent no heartbeat in time (heartbeat.timeout)", commands);
            commands.push(Command::Close { session });
        }
        for session in self.sessions.due_heartbeats(self.now_ms) {
            commands.push(Command::Send { session, message: Down::Heartbeat });
        }
        let alive = self.jobs.iter().filter(|(_, job)| !job.has_ended());
        let mut order: Vec<(i64, JobId)> =
            alive.map(|(&id, job)| (job.waiting_since_ms().unwrap_or(i64::MIN), id)).collect();
        order.sort_unstable();
        for (_, id) in order {
            self.with_job(id, commands, |job, ctx| job.tick(ctx));
        }
    }
}

/// Whether two submissions mean the same job. Its parallelism may have changed since.
fn is_same(one: &JobSpec, other: &JobSpec) -> bool {
    let identity = |spec: &JobSpec| {
        let program = (spec.artifact.clone(), spec.args.clone(), spec.payload.clone());
        (program, spec.savepoint.clone(), spec.graph.name.clone())
    };
    identity(one) == identity(other)
}

/// What execution a message is about.
fn execution_of(message: &Up) -> Option<ExecutionId> {
    match message {
        Up::RegisterTaskManager(_) => None,
        Up::Heartbeat { execution, .. } => *execution,
        Up::RegisterWorker { execution, .. }
        | Up::WorkerExited { execution, .. }
        | Up::TaskStatus { execution, .. }
        | Up::SplitsDiscovered { execution, .. }
        | Up::RequestSplit { execution, .. }
        | Up::ConnectionLost { execution, .. }
        | Up::SavepointTaken { execution, .. }
        | Up::CheckpointAcknowledged { execution, .. }
        | Up::CheckpointDeclined { execution, .. } => Some(*execution),
    }
}

#[cfg(test)]
mod tests;
