//! The checkpoint coordinator of one job, over all its executions.
//!
//! A checkpoint goes through `Acknowledging → Writing → Proposed → committed`:
//!
//! 1. [`Coordinator::tick`] triggers it at all workers, when all tasks run;
//! 2. all subtasks acknowledge, and the manifest is written;
//! 3. its fact is proposed, and with [`Coordinator::committed`] it exists: workers commit.
//!
//! Until it is proposed it can be aborted; from then on it can only become durable, or the leader is
//! gone. The job never decides what to restore while that is open, see [`Coordinator::is_settled`].
//!
//! There is one at a time, with an exception: a savepoint that all subtasks have taken steps [aside](Pending::is_aside), and
//! while it is made durable, checkpoints come and go. They may be durable before it although it was triggered first. Nothing
//! depends on that order: recovery, retention and sinks do not lean on a savepoint, and what it found prepared in the sinks is
//! part of the checkpoint that follows it too. What ends an execution, be it a stop, the final checkpoint or that of a
//! rescale, has nothing beside it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use flott_checkpoint::{Store, SubtaskSnapshot};
use flott_control::{CheckpointKind, CompletedCheckpoint, Down, ExecutionId, Fact};
use flott_core::config::options::Retention;
use flott_core::ids::{CheckpointId, Generation, JobId, SubtaskId, VertexId};
use flott_core::status::JobStatus;
use flott_core::{Error, Result};
use flott_graph::JobGraph;

use crate::api::{Checkpoint, Command, Reply, RequestId};
use crate::orphans::Orphans;
use crate::pending::{Pending, Stage, Waiter};
use crate::retention::{CompletedCheckpoints, is_below};
use crate::settings::Settings;
use crate::splits::SplitAssigner;
use crate::view::{CheckpointView, CheckpointsView, PendingView};

/// How many savepoints and checkpoints may be waiting for their turn.
const QUEUE_MAX: usize = 16;

/// How many checkpoints the history shows.
const HISTORY_MAX: usize = 32;

/// How long to wait after a final checkpoint that failed before the next is tried.
const RETRY_PAUSE_MS: i64 = 500;

/// What the job has to do for its coordinator.
#[derive(Clone, Debug)]
pub(crate) enum Action {
    /// Send this to every worker of the execution.
    Broadcast(Down),
    /// Carry this out.
    Command(Command),
    /// Too many checkpoints failed, or one failed in a way that the execution cannot go on from.
    Fail(Error),
    /// The checkpoint that [`Coordinator::request_for_rescale`] asked for exists, or why there is none.
    Rescale(Result<()>),
}

/// What the tasks of an execution are doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Progress {
    /// All of them run, or have processed all their input.
    pub(crate) is_running: bool,
    /// All of them have processed all their input.
    pub(crate) is_finishing: bool,
}

/// What a client wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    /// A checkpoint now.
    Checkpoint,
    /// A savepoint.
    Savepoint {
        /// Its folder, as a URL.
        location: String,
        /// Whether the job stops with it.
        stop: bool,
        /// Whether all windows fire first.
        drain: bool,
    },
}

impl Wish {
    fn is_stop(&self) -> bool {
        matches!(self, Self::Savepoint { stop: true, .. })
    }
}

/// Why an execution takes no more checkpoints.
#[derive(Clone, Debug)]
pub(crate) enum Suspension {
    /// It failed, and what follows.
    Failed(Error),
    /// The job is being cancelled.
    Cancelled,
    /// All its tasks have finished.
    Finished,
    /// The next one, with another parallelism, takes its place.
    Rescaled,
}

#[derive(Clone, Debug)]
struct Active {
    generation: Generation,
    next_periodic_ms: Option<i64>,
    /// The end of the pause after the last checkpoint, for periodic ones.
    not_before_ms: i64,
    /// The end of the pause after a final checkpoint that failed.
    final_not_before_ms: i64,
    /// Whether the last checkpoint of the job is durable.
    is_ending: bool,
    /// Whether the checkpoint of a rescale is durable: the next one is for the execution that follows.
    is_rescaling: bool,
}

/// Clients that wait for the end of the job, whose savepoint is durable.
#[derive(Clone, Debug)]
struct Stop {
    waiters: Vec<Waiter>,
    location: String,
}

/// See the module's documentation.
#[derive(Clone, Debug)]
pub(crate) struct Coordinator {
    job: JobId,
    graph: JobGraph,
    settings: Settings,
    next_id: CheckpointId,
    completed: CompletedCheckpoints,
    active: Option<Active>,
    /// At most two: a savepoint that has stepped aside, and a checkpoint.
    pending: Vec<Pending>,
    queue: VecDeque<(Waiter, Wish)>,
    stop: Option<Stop>,
    is_cancelled: bool,
    failures_in_a_row: u32,
    /// The folders of savepoints that were aborted, into which subtasks may still be writing.
    aborted: Vec<String>,
    /// What earlier leaders left behind.
    orphans: Orphans,
    view: CheckpointsView,
}

impl Coordinator {
    /// The coordinator of a job that has not run yet.
    pub(crate) fn new(job: JobId, graph: JobGraph, settings: Settings) -> Self {
        Self {
            completed: CompletedCheckpoints::new(job, &settings.checkpoint_dir, settings.retained_max),
            orphans: Orphans::new(settings.cleans_orphans),
            job,
            graph,
            settings,
            next_id: 1,
            active: None,
            pending: Vec::new(),
            queue: VecDeque::new(),
            stop: None,
            is_cancelled: false,
            failures_in_a_row: 0,
            aborted: Vec::new(),
            view: CheckpointsView::default(),
        }
    }

    /// The job starts from this savepoint or checkpoint. If it owns that, it is dropped like one of its own.
    pub(crate) fn starts_from(&mut self, savepoint: &str, is_claimed: bool) {
        if is_claimed {
            self.completed.claim();
        }
        // In its own folder, it is what an earlier job of the same id has left to its user, perhaps with others of which
        // nothing is known.
        if !Store::normalize(savepoint).is_ok_and(|url| !is_below(&url, self.completed.job_dir())) {
            self.orphans.give_up();
        }
    }

    /// The job has another parallelism. Its next execution takes checkpoints accordingly.
    pub(crate) fn set_graph(&mut self, graph: JobGraph) {
        self.graph = graph;
    }

    /// A fact that the log already had when this JobManager started.
    pub(crate) fn replay_requested(&mut self, location: String) {
        self.orphans.requested(location);
    }

    /// A fact that the log already had when this JobManager started.
    pub(crate) fn replay_completed(&mut self, checkpoint: CompletedCheckpoint) {
        self.orphans.completed(&checkpoint.location);
        self.next_id = self.next_id.max(checkpoint.id + 1);
        self.view.triggered += 1;
        self.view.completed += 1;
        // What the log does not know is left out.
        self.show(CheckpointView {
            id: checkpoint.id,
            is_savepoint: checkpoint.is_savepoint,
            triggered_ms: checkpoint.triggered_ms,
            ended_ms: checkpoint.completed_ms,
            outcome: Ok(checkpoint.clone()),
            sync_micros_max: 0,
            alignment_micros_max: 0,
            persisted_bytes: 0,
            subtasks: self.graph.vertices.iter().map(|vertex| vertex.parallelism).sum(),
        });
        self.completed.add(checkpoint, None);
    }

    /// A fact that the log already had when this JobManager started.
    pub(crate) fn replay_dropped(&mut self, id: CheckpointId) {
        // What its claimed checkpoint was made of is deleted, or was lost with the last leader.
        let _ = self.completed.drop_checkpoint(id);
    }

    /// Whether the files of the claimed checkpoint are needed, and would never become known otherwise.
    pub(crate) fn has_unknown_claim(&self) -> bool {
        self.completed.has_unknown_claim() && self.latest().is_some()
    }

    /// The files of the claimed checkpoint, which lies in `location`.
    pub(crate) fn claimed(&mut self, location: String, files: BTreeSet<String>) -> Vec<Action> {
        self.completed.claimed(location, files);
        let mut actions = Vec::new();
        self.drop_surplus(&mut actions);
        actions
    }

    /// The checkpoint to recover from.
    pub(crate) fn latest(&self) -> Option<&CompletedCheckpoint> {
        self.completed.latest()
    }

    /// Whether [`Self::latest`] is final: no proposal of a later checkpoint is on its way to the log.
    pub(crate) fn is_settled(&self) -> bool {
        self.pending.iter().all(|pending| pending.stage != Stage::Proposed)
    }

    /// The number of the checkpoint that is triggered next.
    pub(crate) fn next_checkpoint(&self) -> CheckpointId {
        self.next_id
    }

    /// Whether sources may have stopped for good, or tasks have finished: then no task can just go on.
    pub(crate) fn is_stopping(&self) -> bool {
        self.is_ending() || self.pending.iter().any(Pending::is_stop)
    }

    /// The folder that tasks of a generation write into.
    pub(crate) fn generation_dir(&self, generation: Generation) -> String {
        format!("{}/g{generation}", self.completed.job_dir())
    }

    /// The job starts from this checkpoint, of its own or of another job. `files` are those that it needs.
    pub(crate) fn restored(&mut self, checkpoint: CompletedCheckpoint, files: BTreeSet<String>) {
        self.next_id = self.next_id.max(checkpoint.id + 1);
        if self.latest().is_some_and(|latest| latest.location == checkpoint.location) {
            self.completed.set_files(checkpoint.id, files);
        }
        self.view.restored += 1;
        self.view.latest_restored = Some(checkpoint);
    }

    /// All tasks of a new execution run.
    pub(crate) fn start(&mut self, now_ms: i64, generation: Generation) {
        self.active = Some(Active {
            generation,
            next_periodic_ms: self.settings.interval_ms.map(|interval| now_ms + interval),
            not_before_ms: now_ms,
            final_not_before_ms: now_ms,
            is_ending: false,
            is_rescaling: false,
        });
        self.failures_in_a_row = 0;
        self.orphans.begin(generation);
    }

    /// Whether the last checkpoint of the execution is durable, so that its tasks may finish.
    pub(crate) fn is_ending(&self) -> bool {
        self.active.as_ref().is_some_and(|active| active.is_ending)
    }

    /// A client asks for a checkpoint or savepoint.
    pub(crate) fn request(&mut self, id: RequestId, wish: Wish) -> Result<()> {
        self.enqueue(Waiter::Client(id), wish)
    }

    /// The job is to be rescaled from a checkpoint that is still to be taken. It takes its turn like a client's, and if it
    /// fails the execution is none the worse. [`Action::Rescale`] says how it ended.
    pub(crate) fn request_for_rescale(&mut self) -> Result<()> {
        self.enqueue(Waiter::Rescale, Wish::Checkpoint)
    }

    /// The rescale was given up: nobody waits for its checkpoint.
    pub(crate) fn forget_rescale(&mut self) {
        self.queue.retain(|(waiter, _)| *waiter != Waiter::Rescale);
        for pending in &mut self.pending {
            pending.waiters.retain(|waiter| *waiter != Waiter::Rescale);
        }
        if let Some(active) = &mut self.active {
            active.is_rescaling = false;
        }
    }

    fn enqueue(&mut self, waiter: Waiter, wish: Wish) -> Result<()> {
        let Some(active) = &self.active else {
            return Err(Error::system("not all tasks of the job run: try again when it is RUNNING"));
        };
        let is_stopping = self.queue.iter().any(|(_, wish)| wish.is_stop())
            || self.pending.iter().any(Pending::is_stop)
            || active.is_ending;
        if is_stopping {
            return Err(Error::input("the job is already stopping"));
        }
        if self.queue.len() >= QUEUE_MAX {
            return Err(Error::system(format!(
                "{QUEUE_MAX} checkpoints and savepoints of the job are waiting already: try again later"
            )));
        }
        self.queue.push_back((waiter, wish));
        Ok(())
    }

    /// Gives up what is late, and triggers what is due.
    pub(crate) fn tick(
        &mut self,
        now_ms: i64,
        progress: Progress,
        splits: &BTreeMap<VertexId, SplitAssigner>,
    ) -> Vec<Action> {
        let mut actions = Vec::new();
        let is_late = |pending: &mut Pending| pending.stage != Stage::Proposed && now_ms >= pending.deadline_ms;
        let late: Vec<Pending> = self.pending.extract_if(.., is_late).collect();
        for pending in late {
            let reason = format!(
                "it was not complete after {} ms: {} of {} subtasks acknowledged",
                self.settings.timeout_ms,
                pending.acknowledged(),
                pending.subtasks
            );
            self.abort(now_ms, pending, &Error::system(reason), &mut actions);
        }
        let is_failing = actions.iter().any(|action| matches!(action, Action::Fail(_)));
        if progress.is_running && !is_failing {
            self.trigger_next(now_ms, progress, splits, &mut actions);
        }
        actions
    }

    /// Whether one more may be triggered: a checkpoint after which the execution goes on, or anything else.
    fn has_room(&self, is_checkpoint: bool) -> bool {
        if is_checkpoint { self.pending.iter().all(Pending::is_aside) } else { self.pending.is_empty() }
    }

    /// When it is time for a checkpoint that nobody asked for, if nothing is in its way.
    fn next_due(&self, progress: Progress) -> Option<i64> {
        let active = self.active.as_ref().filter(|active| !active.is_ending && !active.is_rescaling)?;
        if !progress.is_running || !self.has_room(!progress.is_finishing) {
            return None;
        }
        if progress.is_finishing {
            return Some(active.final_not_before_ms);
        }
        active.next_periodic_ms.map(|next| next.max(active.not_before_ms))
    }

    /// What is to be triggered now, and who waits for it: the first wish in the queue that may be, or what is due.
    fn choose(&mut self, now_ms: i64, progress: Progress) -> Option<(Wish, Option<Waiter>)> {
        let (alone, beside) = (self.has_room(false), self.has_room(true));
        let may_be_triggered = |(waiter, wish): &(Waiter, Wish)| {
            alone || (beside && *wish == Wish::Checkpoint && *waiter != Waiter::Rescale)
        };
        if let Some(position) = self.queue.iter().position(may_be_triggered) {
            return self.queue.remove(position).map(|(waiter, wish)| (wish, Some(waiter)));
        }
        self.next_due(progress).filter(|due| now_ms >= *due).map(|_| (Wish::Checkpoint, None))
    }

    fn trigger_next(
        &mut self,
        now_ms: i64,
        progress: Progress,
        splits: &BTreeMap<VertexId, SplitAssigner>,
        actions: &mut Vec<Action>,
    ) {
        if self.active.as_ref().is_none_or(|active| active.is_ending || active.is_rescaling) {
            return;
        }
        let Some((wish, waiter)) = self.choose(now_ms, progress) else { return };
        let Some(active) = &mut self.active else { return };
        let id = self.next_id;
        let private = format!("{}/g{}/chk-{id}", self.completed.job_dir(), active.generation);
        let (kind, location) = match wish {
            Wish::Savepoint { location, stop, drain } => {
                (CheckpointKind::Savepoint { dir: location.clone(), stop, drain }, location)
            }
            Wish::Checkpoint if waiter.is_none() && progress.is_finishing => (CheckpointKind::Final, private),
            Wish::Checkpoint => (CheckpointKind::Checkpoint, private),
        };
        if kind == CheckpointKind::Checkpoint {
            active.next_periodic_ms = self.settings.interval_ms.map(|interval| now_ms + interval);
        }
        let times = (now_ms, self.settings.timeout_ms);
        let generation = active.generation;
        let mut pending = Pending::new(id, generation, kind.clone(), location, times, &self.graph, splits);
        pending.waiters.extend(waiter);
        self.pending.push(pending);
        self.next_id += 1;
        self.view.triggered += 1;
        actions.push(Action::Broadcast(Down::TriggerCheckpoint {
            execution: self.execution(generation),
            checkpoint: id,
            triggered_ms: now_ms,
            kind,
        }));
    }

    fn execution(&self, generation: Generation) -> ExecutionId {
        ExecutionId { job: self.job, generation }
    }

    /// A subtask has taken its part of a savepoint. What comes too late or twice changes nothing.
    pub(crate) fn taken(&mut self, subtask: SubtaskId, id: CheckpointId) {
        if let Some(pending) = self.pending.iter_mut().find(|pending| pending.id == id) {
            pending.take(&self.graph, subtask);
        }
    }

    /// A subtask's part is durable. What comes too late or twice changes nothing.
    pub(crate) fn acknowledge(
        &mut self,
        subtask: SubtaskId,
        id: CheckpointId,
        snapshot: SubtaskSnapshot,
    ) -> Vec<Action> {
        let Some(pending) = self.pending.iter_mut().find(|pending| pending.id == id) else { return Vec::new() };
        if !pending.acknowledge(&self.graph, subtask, snapshot) {
            return Vec::new();
        }
        pending.stage = Stage::Writing;
        let manifest = Box::new(pending.build_manifest(self.job, &self.graph));
        vec![Action::Command(Command::WriteManifest(Checkpoint { location: pending.location.clone(), manifest }))]
    }

    /// A subtask cannot take part.
    pub(crate) fn decline(&mut self, now_ms: i64, task: &str, id: CheckpointId, reason: Error) -> Vec<Action> {
        let mut actions = Vec::new();
        let is_it = |pending: &mut Pending| pending.id == id && pending.stage == Stage::Acknowledging;
        let declined = self.pending.extract_if(.., is_it).next();
        if let Some(pending) = declined {
            self.abort(now_ms, pending, &reason.context(format!("{task} declined it")), &mut actions);
        }
        actions
    }

    /// The end of writing a manifest.
    pub(crate) fn manifest_written(
        &mut self,
        now_ms: i64,
        generation: Generation,
        id: CheckpointId,
        result: Result<CompletedCheckpoint>,
    ) -> Vec<Action> {
        let mut actions = Vec::new();
        let is_expected =
            |pending: &Pending| pending.id == id && pending.generation == generation && pending.stage == Stage::Writing;
        let position = self.pending.iter().position(is_expected);
        match (result, position) {
            (Ok(mut checkpoint), Some(position)) => {
                let pending = &mut self.pending[position];
                pending.stage = Stage::Proposed;
                checkpoint.ends_job = pending.is_stop();
                let fact = Fact::CheckpointCompleted { job: self.job, checkpoint };
                actions.push(Action::Command(Command::Propose(fact)));
            }
            (Err(reason), Some(position)) => {
                let pending = self.pending.remove(position);
                self.abort(now_ms, pending, &reason.context("writing its manifest"), &mut actions);
            }
            // It was aborted meanwhile. A regular one's folder is already known as garbage.
            (Ok(checkpoint), None) if checkpoint.is_savepoint => actions.push(delete_folder(checkpoint.location)),
            _ => {}
        }
        actions
    }

    /// A checkpoint is durable: its commit point is behind it.
    pub(crate) fn committed(&mut self, now_ms: i64, checkpoint: CompletedCheckpoint) -> Vec<Action> {
        let mut actions = Vec::new();
        let is_it = |pending: &mut Pending| pending.id == checkpoint.id && pending.stage == Stage::Proposed;
        let proposed = self.pending.extract_if(.., is_it).next();
        self.failures_in_a_row = 0;
        let Some(pending) = proposed else {
            // The leader before this one proposed it.
            self.replay_completed(checkpoint);
            return actions;
        };
        self.next_id = self.next_id.max(checkpoint.id + 1);
        self.view.completed += 1;
        self.remember(now_ms, &pending, Ok(checkpoint.clone()));
        let (generation, is_last, location) = (pending.generation, pending.is_last(), checkpoint.location.clone());
        let (is_stop, is_for_rescale) = (pending.is_stop(), pending.is_for_rescale());
        let is_copy = pending.is_savepoint() && !is_stop;
        self.completed.add(checkpoint.clone(), Some(pending.files));
        if let Some(active) = self.active.as_mut().filter(|active| active.generation == generation) {
            active.is_ending |= is_last;
            active.is_rescaling |= is_for_rescale;
            if !is_copy {
                active.not_before_ms = now_ms + self.settings.min_pause_ms;
                actions.push(Action::Broadcast(Down::CheckpointCompleted {
                    execution: self.execution(generation),
                    checkpoint: pending.id,
                    is_last,
                }));
            }
            if is_last {
                self.refuse_queue(&Error::input("the job is finishing"), &mut actions);
            }
        }
        if !is_stop {
            reply_all(pending.waiters, &Ok(Reply::Completed(location)), &mut actions);
        } else if self.active.is_some() || self.is_cancelled {
            self.stop = Some(Stop { waiters: pending.waiters, location });
        } else {
            reply_all(pending.waiters, &Err(stopped_too_late(&location)), &mut actions);
        }
        self.drop_surplus(&mut actions);
        actions.extend(self.clean_up().into_iter().map(Action::Command));
        actions
    }

    fn drop_surplus(&mut self, actions: &mut Vec<Action>) {
        let job = self.job;
        let surplus = self.completed.surplus();
        let dropped = surplus.into_iter().map(|checkpoint| Fact::CheckpointDropped { job, checkpoint });
        actions.extend(dropped.map(|fact| Action::Command(Command::Propose(fact))));
    }

    /// A checkpoint is no longer kept.
    pub(crate) fn dropped(&mut self, id: CheckpointId) -> Vec<Command> {
        let claimed = self.completed.drop_checkpoint(id);
        claimed.into_iter().chain(self.clean_up()).collect()
    }

    /// Deletes what is known to be of no use. When the execution has come as far as a checkpoint, nobody goes back to what
    /// was before it, and its processes have long taken over: then it is time to look for what is not known.
    fn clean_up(&mut self) -> Vec<Command> {
        let mut commands: Vec<Command> = self.completed.sweep().into_iter().collect();
        let newest = self.completed.newest().map(|newest| newest.generation);
        let is_ahead = self.active.as_ref().is_some_and(|active| Some(active.generation) == newest);
        if is_ahead && self.completed.knows_files() && self.orphans.take_due() {
            commands.extend(self.delete_unfinished_savepoints());
            commands.push(self.list_files());
        }
        commands
    }

    fn list_files(&self) -> Command {
        Command::ListFiles { job: self.job, folder: self.completed.job_dir().to_owned() }
    }

    fn delete_unfinished_savepoints(&mut self) -> Option<Command> {
        let mut folders = self.orphans.take_savepoints();
        folders.retain(|folder| !self.completed.has_below(folder));
        (!folders.is_empty()).then_some(Command::Delete { files: Vec::new(), folders })
    }

    /// What lies in the job's folder.
    pub(crate) fn files_listed(&mut self, files: Vec<String>) -> Option<Command> {
        self.completed.found(files, self.orphans.has_ended())
    }

    /// Nobody knows what lies in the job's folder.
    pub(crate) fn listing_failed(&mut self) {
        self.orphans.failed();
    }

    /// The execution takes no more checkpoints: what is pending is aborted, and whoever waits is told. Over a rescale they
    /// wait on, for the next execution to run: then nothing is pending, since nothing follows the rescale's own checkpoint.
    pub(crate) fn suspend(&mut self, now_ms: i64, suspension: &Suspension) -> Vec<Action> {
        let mut actions = Vec::new();
        self.active = None;
        let reason = match suspension {
            Suspension::Failed(error) => error.clone().context("the job failed"),
            Suspension::Cancelled => Error::input("the job was cancelled"),
            Suspension::Finished => Error::input("the job has finished"),
            Suspension::Rescaled => return actions,
        };
        self.is_cancelled |= matches!(suspension, Suspension::Cancelled);
        let given_up: Vec<Pending> = self.pending.extract_if(.., |pending| pending.stage != Stage::Proposed).collect();
        for pending in given_up {
            self.give_up(now_ms, pending, &reason, &mut actions);
        }
        self.refuse_queue(&reason, &mut actions);
        if let Suspension::Failed(_) = suspension
            && let Some(stop) = self.stop.take()
        {
            reply_all(stop.waiters, &Err(stopped_too_late(&stop.location)), &mut actions);
        }
        actions
    }

    /// No worker writes for the last execution any more: deletes what is left of its savepoints that were aborted. If
    /// some tasks carry over, they may still be writing, and the rest goes at the end of the next execution.
    pub(crate) fn delete_aborted(&mut self, has_carried: bool) -> Option<Command> {
        let folders = if has_carried { self.aborted.clone() } else { std::mem::take(&mut self.aborted) };
        (!folders.is_empty()).then_some(Command::Delete { files: Vec::new(), folders })
    }

    /// The job is over, durably.
    pub(crate) fn ended(&mut self, status: JobStatus) -> Vec<Action> {
        let mut actions = Vec::new();
        if let Some(stop) = self.stop.take() {
            reply_all(stop.waiters, &Ok(Reply::Completed(stop.location)), &mut actions);
        }
        if !self.is_kept_after(status) {
            let ids = self.completed.discard_all();
            // The job's end is what the log says about these files; the facts keep its picture complete.
            actions.extend(self.completed.delete_everything().map(Action::Command));
            let job = self.job;
            let dropped = ids.into_iter().map(|checkpoint| Fact::CheckpointDropped { job, checkpoint });
            actions.extend(dropped.map(|fact| Action::Command(Command::Propose(fact))));
        }
        actions.extend(self.delete_unfinished_savepoints().map(Action::Command));
        if self.orphans.end() && self.is_kept_after(status) {
            actions.push(Action::Command(self.list_files()));
        }
        actions
    }

    /// Whether the log still has checkpoints of the job, which has ended, that it should not keep: the last
    /// leader died before it had dropped them.
    pub(crate) fn has_leftovers(&self, status: JobStatus) -> bool {
        !self.is_kept_after(status) && self.completed.has_regular()
    }

    fn is_kept_after(&self, status: JobStatus) -> bool {
        match status {
            JobStatus::Failed => self.settings.retention != Retention::Never,
            JobStatus::Canceled => self.settings.retention == Retention::OnCancellation,
            _ => false,
        }
    }

    /// When [`Self::tick`] has something to do, if nothing else happens before.
    pub(crate) fn next_deadline(&self, progress: Progress) -> Option<i64> {
        let open = self.pending.iter().filter(|pending| pending.stage != Stage::Proposed);
        open.map(|pending| pending.deadline_ms).chain(self.next_due(progress)).min()
    }

    /// What can be seen.
    pub(crate) fn view(&self) -> CheckpointsView {
        let in_progress = self.pending.iter().map(|pending| PendingView {
            id: pending.id,
            is_savepoint: pending.is_savepoint(),
            triggered_ms: pending.triggered_ms,
            acknowledged: pending.acknowledged(),
            subtasks: pending.subtasks,
        });
        CheckpointsView { in_progress: in_progress.collect(), ..self.view.clone() }
    }

    /// A checkpoint failed while its execution goes on.
    fn abort(&mut self, now_ms: i64, pending: Pending, reason: &Error, actions: &mut Vec<Action>) {
        let name = if pending.is_savepoint() { "savepoint" } else { "checkpoint" };
        let error = reason.clone().context(format!("{name} {} failed", pending.id));
        let is_stop = pending.is_stop();
        let is_savepoint = pending.is_savepoint();
        let counts = !is_savepoint && !pending.is_for_rescale();
        actions.push(Action::Broadcast(Down::CheckpointAborted {
            execution: self.execution(pending.generation),
            checkpoint: pending.id,
        }));
        if is_savepoint && !is_stop {
            // The execution may run on for long. What subtasks write after this goes at its end.
            actions.push(delete_folder(pending.location.clone()));
        }
        self.give_up(now_ms, pending, &error, actions);
        if let Some(active) = &mut self.active {
            if !is_savepoint {
                active.not_before_ms = now_ms + self.settings.min_pause_ms;
            }
            active.final_not_before_ms = now_ms + RETRY_PAUSE_MS;
        }
        if is_stop {
            // Sources have sent its barrier and nothing after it: only a restart makes them go on.
            actions.push(Action::Fail(error));
        } else if counts {
            self.failures_in_a_row += 1;
            let tolerable = self.settings.tolerable_failures;
            if self.failures_in_a_row > tolerable {
                actions.push(Action::Fail(error.context(format!(
                    "more checkpoints failed in a row than execution.checkpointing.tolerable-failed-checkpoints ({tolerable})"
                ))));
            }
        }
    }

    /// Forgets a checkpoint that will never be durable, and whatever was written for it.
    fn give_up(&mut self, now_ms: i64, pending: Pending, reason: &Error, actions: &mut Vec<Action>) {
        self.view.failed += 1;
        self.remember(now_ms, &pending, Err(reason.message.clone()));
        if pending.is_savepoint() {
            // Nothing else refers to a savepoint's files, but subtasks may still be writing some.
            self.aborted.push(pending.location);
        } else {
            self.completed.abandon(pending.id, pending.location);
        }
        reply_all(pending.waiters, &Err(reason.clone()), actions);
    }

    fn refuse_queue(&mut self, reason: &Error, actions: &mut Vec<Action>) {
        reply_all(self.queue.drain(..).map(|(waiter, _)| waiter), &Err(reason.clone()), actions);
    }

    fn remember(&mut self, now_ms: i64, pending: &Pending, outcome: Result<CompletedCheckpoint, String>) {
        self.show(CheckpointView {
            id: pending.id,
            is_savepoint: pending.is_savepoint(),
            triggered_ms: pending.triggered_ms,
            ended_ms: now_ms,
            outcome,
            sync_micros_max: pending.sync_micros_max,
            alignment_micros_max: pending.alignment_micros_max,
            persisted_bytes: pending.persisted_bytes,
            subtasks: pending.subtasks,
        });
    }

    fn show(&mut self, checkpoint: CheckpointView) {
        let latest = match (&checkpoint.outcome, checkpoint.is_savepoint) {
            (Err(_), _) => &mut self.view.latest_failed,
            (Ok(_), true) => &mut self.view.latest_savepoint,
            (Ok(_), false) => &mut self.view.latest_completed,
        };
        *latest = Some(checkpoint.clone());
        self.view.history.insert(0, checkpoint);
        self.view.history.truncate(HISTORY_MAX);
    }
}

fn reply_all(waiters: impl IntoIterator<Item = Waiter>, reply: &Result<Reply>, actions: &mut Vec<Action>) {
    let reply = |waiter| match waiter {
        Waiter::Client(id) => Action::Command(Command::Reply { id, reply: reply.clone() }),
        Waiter::Rescale => Action::Rescale(reply.clone().map(drop)),
    };
    actions.extend(waiters.into_iter().map(reply));
}

fn delete_folder(folder: String) -> Action {
    Action::Command(Command::Delete { files: Vec::new(), folders: vec![folder] })
}

fn stopped_too_late(location: &str) -> Error {
    Error::system(format!(
        "the savepoint {location} is complete, but the job failed before it had stopped: unless its restart strategy gave up, it goes on from there, so stop it again"
    ))
}

#[cfg(test)]
mod tests;
