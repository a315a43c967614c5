//! One job: what the log knows of it, and what it is doing.
//!
//! ```text
//! Idle ─→ Loading ─→ Waiting ─→ Starting ─→ Active ─→ Stopping ─→ Ending ─→ Ended
//!           ↑                                            │
//!           └──────────────── Delayed ←──────────────────┘
//! ```
//!
//! `lifecycle` moves a job from phase to phase up to the end of an execution, `stopping` from there on; `messages` is
//! what workers and clients say to it. `keeping` takes sound workers from one execution to the next, `rescaling`
//! changes the parallelism on that way.

use flott_checkpoint::Manifest;
use flott_control::{ClaimMode, CompletedCheckpoint, Down, ExecutionId, Fact, JobEnd, JobSpec};
use flott_core::config::Configuration;
use flott_core::ids::{Generation, JobId, TaskManagerId};
use flott_core::status::JobStatus;
use flott_core::{Error, Result};

use crate::api::{Command, Reply, RequestId, SessionId};
use crate::coordinator::Coordinator;
use crate::execution::{Execution, Restore, view_unplaced};
use crate::job::rescaling::{Drift, Rescale};
use crate::job::stopping::Stopping;
use crate::rescale::parallelism_of;
use crate::resources::Resources;
use crate::restart::RestartStrategy;
use crate::scheduler::Shortage;
use crate::sessions::Sessions;
use crate::settings::Settings;
use crate::submission::{self, Plan};
use crate::view::{ExceptionView, JobView, VertexView};

mod keeping;
mod lifecycle;
mod messages;
mod rescaling;
mod stopping;

/// How many failures a job shows.
const EXCEPTIONS_MAX: usize = 32;

/// What a job acts on besides itself.
#[derive(Debug)]
pub(crate) struct Context<'a> {
    pub(crate) now_ms: i64,
    pub(crate) resources: &'a mut Resources,
    pub(crate) sessions: &'a mut Sessions,
    pub(crate) commands: &'a mut Vec<Command>,
}

impl Context<'_> {
    /// Sends a message.
    pub(crate) fn send(&mut self, session: SessionId, message: Down) {
        self.commands.push(Command::Send { session, message });
    }

    /// Sends a message to a TaskManager, if it is connected.
    fn send_to(&mut self, task_manager: &TaskManagerId, message: Down) {
        if let Some(session) = self.resources.session(task_manager) {
            self.send(session, message);
        }
    }

    /// Tells a process that it is not, or no longer, wanted, and forgets it.
    pub(crate) fn refuse(&mut self, session: SessionId, reason: Error) {
        self.sessions.close(session);
        self.send(session, Down::Refused(reason));
        self.commands.push(Command::Close { session });
    }

    /// Answers a client.
    pub(crate) fn reply(&mut self, id: RequestId, reply: Result<Reply>) {
        self.commands.push(Command::Reply { id, reply });
    }

    fn propose(&mut self, fact: Fact) {
        self.commands.push(Command::Propose(fact));
    }
}

/// What an execution failed of, which tells who of its workers is sound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// A worker was lost, or its session or TaskManager.
    Loss,
    /// A connection between two workers broke. It may come to light who of them is to blame.
    Connection,
    /// A subtask failed.
    Task,
    /// Something that no single worker is to blame for.
    Other,
}

/// What went wrong, and where.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) error: Error,
    pub(crate) cause: Cause,
    /// The name of the subtask.
    pub(crate) task: Option<String>,
    pub(crate) task_manager: Option<TaskManagerId>,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self { error, cause: Cause::Other, task: None, task_manager: None }
    }
}

/// What follows when the workers are gone.
#[derive(Clone, Debug)]
enum Next {
    /// Another generation, not before this time.
    Restart { at_ms: i64 },
    /// The end.
    End { status: JobStatus, error: Option<Error> },
}

#[derive(Clone, Debug)]
enum Phase {
    /// Only known from the log so far.
    Idle,
    /// The checkpoint to start from is being read.
    Loading,
    /// There are not enough free slots.
    Waiting { since_ms: i64, restore: Option<Restore>, shortage: Option<Shortage> },
    /// The next generation is on its way to the log. A TaskManager may be lost meanwhile.
    Starting { slots: Vec<TaskManagerId>, restore: Option<Restore>, lost: Option<Failure> },
    /// Workers are being started, or run.
    Active(Box<Execution>),
    /// Workers are being stopped.
    Stopping(Stopping),
    /// The next generation has its time.
    Delayed { until_ms: i64 },
    /// The end is on its way to the log.
    Ending,
    /// The end is durable.
    Ended,
}

/// See the module's documentation.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    id: JobId,
    spec: JobSpec,
    config: Configuration,
    settings: Settings,
    restart: RestartStrategy,
    coordinator: Coordinator,
    status: JobStatus,
    status_times: Vec<(JobStatus, i64)>,
    submitted_ms: i64,
    ended: Option<JobEnd>,
    /// The latest durable generation.
    generation: Generation,
    phase: Phase,
    /// The last execution, if workers of it are kept for the next one, until that starts.
    kept: Option<Box<Execution>>,
    /// The parallelism of each vertex that the job was submitted with.
    planned: Vec<u32>,
    rescale: Option<Rescale>,
    /// In reactive mode, how the slots that there are differ from those that the job uses.
    drift: Option<Drift>,
    exceptions: Vec<ExceptionView>,
    /// The vertices as the last execution left them.
    vertices: Vec<VertexView>,
    /// Why the job cannot run at all, though the log has accepted it.
    refusal: Option<Error>,
}

impl Job {
    /// A job that is durable. Its configuration was checked at submission; should this JobManager not understand it,
    /// the job fails as soon as it starts.
    pub(crate) fn new(id: JobId, spec: JobSpec, cluster: &Configuration, submitted_ms: i64) -> Self {
        let (plan, refusal) = match submission::plan(&spec, cluster) {
            Ok(plan) => (plan, None),
            Err(error) => {
                let config = Configuration::default();
                let settings = Settings::read(&config).expect("defaults can be read");
                (Plan { config, settings, restart: RestartStrategy::Never }, Some(error))
            }
        };
        let mut coordinator = Coordinator::new(id, spec.graph.clone(), plan.settings.clone());
        if let Some(savepoint) = &spec.savepoint {
            coordinator.starts_from(savepoint, spec.claim_mode == ClaimMode::Claim);
        }
        Self {
            id,
            coordinator,
            vertices: view_unplaced(&spec.graph, submitted_ms),
            planned: parallelism_of(&spec.graph),
            spec,
            config: plan.config,
            settings: plan.settings,
            restart: plan.restart,
            status: JobStatus::Created,
            status_times: vec![(JobStatus::Created, submitted_ms)],
            submitted_ms,
            ended: None,
            generation: 0,
            phase: Phase::Idle,
            kept: None,
            rescale: None,
            drift: None,
            exceptions: Vec::new(),
            refusal,
        }
    }

    /// A fact that the log already had when this JobManager started.
    pub(crate) fn replay(&mut self, fact: Fact) {
        match fact {
            Fact::GenerationStarted { generation, .. } => self.generation = self.generation.max(generation),
            Fact::SavepointRequested { location, .. } => self.coordinator.replay_requested(location),
            Fact::CheckpointCompleted { checkpoint, .. } => self.coordinator.replay_completed(checkpoint),
            Fact::CheckpointDropped { checkpoint, .. } => self.coordinator.replay_dropped(checkpoint),
            Fact::JobRescaled { parallelism, .. } => {
                self.set_parallelism(&parallelism);
                self.vertices = view_unplaced(&self.spec.graph, self.submitted_ms);
            }
            Fact::JobEnded { end, .. } => {
                if let Some(error) = &end.error {
                    self.record(end.ended_ms, &Failure::from(error.clone()));
                }
                self.set_ended(end);
            }
            Fact::JobSubmitted { .. } => {}
        }
    }

    fn set_ended(&mut self, end: JobEnd) {
        self.phase = Phase::Ended;
        self.set_status(end.ended_ms, end.status);
        self.ended = Some(end);
    }

    /// Since when the job waits for slots, if it does.
    pub(crate) fn waiting_since_ms(&self) -> Option<i64> {
        match self.phase {
            Phase::Waiting { since_ms, .. } => Some(since_ms),
            _ => None,
        }
    }

    /// What was submitted, with the parallelism that the job has now.
    pub(crate) fn spec(&self) -> &JobSpec {
        &self.spec
    }

    /// Whether the job is over, durably.
    pub(crate) fn has_ended(&self) -> bool {
        matches!(self.phase, Phase::Ended)
    }

    fn execution_id(&self) -> ExecutionId {
        ExecutionId { job: self.id, generation: self.generation }
    }

    /// The execution that has workers: the current one, or the last if some of its are kept.
    fn execution_mut(&mut self) -> Option<&mut Execution> {
        match &mut self.phase {
            Phase::Active(execution) | Phase::Stopping(Stopping { execution, .. }) => Some(execution.as_mut()),
            _ => self.kept.as_deref_mut(),
        }
    }

    /// The parallelism of each vertex from the next execution on.
    fn set_parallelism(&mut self, parallelism: &[u32]) {
        self.spec.graph = self.spec.graph.with_parallelism(parallelism);
        self.coordinator.set_graph(self.spec.graph.clone());
    }

    fn set_status(&mut self, now_ms: i64, status: JobStatus) {
        if self.status == status {
            return;
        }
        self.status = status;
        // A job may restart for ever: each state keeps its last time only.
        self.status_times.retain(|(other, _)| *other != status);
        self.status_times.push((status, now_ms));
    }

    fn record(&mut self, now_ms: i64, failure: &Failure) {
        let mut message = failure.error.message.clone();
        if let Some(backtrace) = &failure.error.backtrace {
            message = format!("{message}\n{backtrace}");
        }
        let exception = ExceptionView {
            at_ms: now_ms,
            message,
            task: failure.task.clone(),
            task_manager: failure.task_manager.clone(),
            generation: self.generation,
        };
        self.exceptions.insert(0, exception);
        self.exceptions.truncate(EXCEPTIONS_MAX);
    }

    /// What can be seen.
    pub(crate) fn view(&self) -> JobView {
        let waiting_for = match &self.phase {
            Phase::Waiting { shortage, .. } => shortage.map(|shortage| shortage.to_string()),
            _ => None,
        };
        let vertices = match &self.phase {
            Phase::Active(execution) | Phase::Stopping(Stopping { execution, .. }) => execution.view(),
            _ => self.vertices.clone(),
        };
        JobView {
            id: self.id,
            spec: self.spec.clone(),
            status: self.status,
            generation: self.generation,
            submitted_ms: self.submitted_ms,
            ended_ms: self.ended.as_ref().map(|end| end.ended_ms),
            status_times: self.status_times.clone(),
            vertices,
            exceptions: self.exceptions.clone(),
            checkpoints: self.coordinator.view(),
            waiting_for,
            rescaling_to: self.rescale.as_ref().map(|rescale| rescale.parallelism().to_vec()),
        }
    }
}

/// The description of a checkpoint that a user named, as far as its manifest tells it.
fn describe(location: &str, manifest: &Manifest) -> CompletedCheckpoint {
    CompletedCheckpoint {
        id: manifest.checkpoint,
        generation: manifest.generation,
        location: location.to_owned(),
        manifest_sha256: String::new(),
        is_savepoint: manifest.is_savepoint,
        ends_job: false,
        triggered_ms: manifest.triggered_ms,
        completed_ms: manifest.triggered_ms,
        bytes_written: manifest.bytes_written(),
        bytes_total: manifest.bytes_total(),
    }
}
