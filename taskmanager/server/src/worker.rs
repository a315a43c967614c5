//! A worker: the subtasks of one job that one TaskManager runs.
//!
//! It has a session of its own to the JobManager and obeys it. When the session ends, so does the
//! worker. It can serve several generations of the job one after the other: told to continue, it stops its
//! subtasks, takes their keyed state back to the checkpoint that the next generation starts from, and keeps it
//! for the subtasks that it is given next. Events of subtasks that have been stopped are dropped.
//!
//! Subtasks that carry over are not stopped, and do not notice: their slots' threads run on, and keep the generation that
//! they were started in for the names that they make (of parts, of local files). What changes is how the worker speaks of
//! them, and the folder that their checkpoints go to. What it says between the two generations is lost, since
//! nobody listens, so it says again how they are as soon as it has registered.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use flott_checkpoint::Store;
use flott_control::{CheckpointKind, Down, ExecutionId, JobDeployment, TaskDeployment, Up};
use flott_core::config::{Configuration, options};
use flott_core::ids::{CheckpointId, Generation, SubtaskId, TaskManagerId};
use flott_core::key_group::range_of;
use flott_core::status::TaskStatus;
use flott_core::{Error, ErrorKind, Result, ResultExt};
use flott_graph::JobGraph;
use flott_network::{Barrier, DataPlane, Options};
use flott_operators::{HeldState, Program};
use flott_proto::Session;
use flott_state::MemoryBudget;
use flott_telemetry::TaskCounters;
use parking_lot::Mutex;
use tokio::sync::mpsc;

use crate::fetcher::Fetcher;
use crate::local_runs::LocalRuns;
use crate::resources::{Scratch, slot_memory, sweep};
use crate::restore::Fetched;
use crate::slot::{Order, Release, SlotEvent, SlotHandle};
use crate::subtask::Report;
use crate::supervisor::{JobManagerLink, data_hosts};
use crate::upload::Uploaded;
use crate::{restore, upload};

use self::starting::StartingSlot;

mod carrying;
mod starting;

/// Events of slots, restores and uploads that may wait for the worker.
const EVENTS_MAX: usize = 1024;

/// What a worker is started with.
pub struct WorkerOptions {
    /// The job, as its binary built it.
    pub program: Arc<Program>,
    /// Its execution.
    pub execution: ExecutionId,
    /// The TaskManager that it belongs to.
    pub task_manager: TaskManagerId,
    /// How to reach the JobManager.
    pub link: JobManagerLink,
    /// The TaskManager's configuration.
    pub config: Configuration,
    /// Whether the execution may have other workers.
    pub has_peers: bool,
}

/// A slot's thread: the generation that started it, and the number of the slot. A slot may have several, of subtasks that
/// carried over and of those that were started again beside them.
type SlotId = (Generation, u32);

/// Why a subtask does not run any more.
struct Death {
    error: Error,
    /// Whether it has only lost its connection to others, and its state is as good as theirs.
    is_sound: bool,
}

/// Something that happened in the worker.
enum Event {
    Slot(u32, SlotEvent),
    /// The state of all subtasks of a slot is there.
    Restored(u32, Result<Vec<Fetched>>),
    Uploaded {
        subtask: SubtaskId,
        checkpoint: CheckpointId,
        result: Result<Uploaded>,
    },
    ConnectionLost(Error),
}

/// Runs a worker until its session ends.
pub async fn run_worker(options: WorkerOptions) -> Result<()> {
    let patience = options.config.get(options::HEARTBEAT_TIMEOUT)?;
    let slot_memory = slot_memory(&options.config)?;
    let scratch = Arc::new(Scratch::create(&options.config, options.execution)?);
    let config = options.config.clone();
    // In its own time: what others left behind may be much.
    flott_env::spawn_blocking_on(&tokio::runtime::Handle::current(), move || sweep(&config));
    let (events, mut received) = mpsc::channel(EVENTS_MAX);
    let execution = options.execution;
    let (plane, data_address) = bind(&options, options.execution, &events)?;
    let register =
        Up::RegisterWorker { execution: options.execution, task_manager: options.task_manager.clone(), data_address };
    let Session { up, mut down } = options.link.connect(register).await?;
    let mut worker = Worker {
        graph: options.program.job_graph.clone(),
        program: Arc::clone(&options.program),
        execution,
        options,
        planes: plane.map(|plane| (execution.generation, plane)).into_iter().collect(),
        up,
        events,
        store: Store::default(),
        starting: BTreeMap::new(),
        checkpoint_dir: String::new(),
        slots: BTreeMap::new(),
        slot_of: BTreeMap::new(),
        budgets: BTreeMap::new(),
        statuses: BTreeMap::new(),
        connected: BTreeSet::new(),
        requested: BTreeSet::new(),
        dead: BTreeMap::new(),
        counters: BTreeMap::new(),
        in_flight: BTreeSet::new(),
        savepoints: BTreeSet::new(),
        releasing: None,
        carried: Vec::new(),
        held: Default::default(),
        slot_memory,
        scratch,
        local_runs: LocalRuns::default(),
        has_lost_connection: false,
    };
    let mut heartbeat = tokio::time::interval(Duration::from_millis(500));
    let mut heard = flott_env::monotonic();
    loop {
        if flott_env::monotonic().saturating_sub(heard) > patience {
            return Err(Error::system(format!("nothing was heard of the JobManager for {patience:?}")));
        }
        let outcome = tokio::select! {
            message = down.recv() => match message.inspect(|_| heard = flott_env::monotonic()) {
                Some(Down::Registered { heartbeat_interval_ms }) => {
                    heartbeat = tokio::time::interval(Duration::from_millis(heartbeat_interval_ms.max(10)));
                    Ok(())
                }
                Some(Down::Refused(error)) => return Err(error),
                Some(Down::Heartbeat) => Ok(()),
                Some(message) => worker.obey(message).await,
                None => return Ok(()),
            },
            Some((generation, event)) = received.recv() => worker.on_event(generation, event).await,
            _ = heartbeat.tick() => worker.heartbeat(),
        };
        if outcome.is_err() {
            // Nobody listens any more.
            return Ok(());
        }
    }
}

/// The JobManager cannot be told any more.
struct SessionClosed;

struct Worker {
    options: WorkerOptions,
    program: Arc<Program>,
    /// The program's graph, with the parallelism of this execution.
    graph: JobGraph,
    execution: ExecutionId,
    /// The connections to other workers: those of this execution, and of earlier ones of which subtasks carried over.
    planes: BTreeMap<Generation, DataPlane>,
    up: mpsc::Sender<Up>,
    events: mpsc::Sender<(Generation, Event)>,
    store: Store,
    /// Slots of this execution that wait for their state.
    starting: BTreeMap<u32, StartingSlot>,
    checkpoint_dir: String,
    /// The threads of slots, also of those that are about to end.
    slots: BTreeMap<SlotId, SlotHandle>,
    /// The subtasks of this execution, and where they run.
    slot_of: BTreeMap<SubtaskId, SlotId>,
    /// The memory of each slot.
    budgets: BTreeMap<u32, MemoryBudget>,
    /// What was last said of each subtask.
    statuses: BTreeMap<SubtaskId, TaskStatus>,
    /// Subtasks whose region has others on another worker.
    connected: BTreeSet<SubtaskId>,
    /// Subtasks that wait for a split.
    requested: BTreeSet<SubtaskId>,
    /// Subtasks that have failed.
    dead: BTreeMap<SubtaskId, Death>,
    counters: BTreeMap<SubtaskId, Arc<TaskCounters>>,
    /// Checkpoints and savepoints of which it has not been heard whether they are complete.
    in_flight: BTreeSet<CheckpointId>,
    /// Those of them that are savepoints.
    savepoints: BTreeSet<CheckpointId>,
    /// The slots that are still to give state of the generation before away, while that is waited for.
    releasing: Option<BTreeSet<SlotId>>,
    /// The subtasks of the generation before that carry over.
    carried: Vec<SubtaskId>,
    /// The checkpoint that this generation starts from, and keyed state as it was at it. Nobody shares it: the lock
    /// only says so to the compiler.
    held: (Option<CheckpointId>, Mutex<HeldState>),
    /// How much memory the keyed state of a slot may take.
    slot_memory: u64,
    /// Where state goes that memory has no room for.
    scratch: Arc<Scratch>,
    local_runs: LocalRuns,
    has_lost_connection: bool,
}

/// Listens for data of an execution, if it may have other workers. Returns the address to be told to them.
fn bind(
    options: &WorkerOptions,
    execution: ExecutionId,
    events: &mpsc::Sender<(Generation, Event)>,
) -> Result<(Option<DataPlane>, String)> {
    if !options.has_peers {
        return Ok((None, String::new()));
    }
    let config = &options.config;
    let (bind, host) = data_hosts(config)?;
    let network = Options {
        capacity_bytes: config.get(options::CHANNEL_BYTES)?,
        compression: config.get(options::NETWORK_COMPRESSION)?,
    };
    let io = tokio::runtime::Handle::current();
    let plane = DataPlane::bind(&format!("{bind}:0"), execution, &io, network);
    let plane = plane.context(options::TASKMANAGER_BIND_HOST.key)?;
    let (failure, events) = (plane.failure(), events.clone());
    flott_env::spawn(async move {
        // A worker that is gone has no connections.
        let event = Event::ConnectionLost(failure.await.error);
        let _ = events.send((execution.generation, event)).await;
    });
    let address = format!("{host}:{}", plane.local_addr().port());
    Ok((Some(plane), address))
}

impl Worker {
    async fn tell(&self, message: Up) -> Result<(), SessionClosed> {
        tracing::trace!(?message, "to the JobManager");
        self.up.send(message).await.map_err(|_| SessionClosed)
    }

    async fn status(
        &mut self,
        subtask: SubtaskId,
        status: TaskStatus,
        error: Option<Error>,
    ) -> Result<(), SessionClosed> {
        self.statuses.insert(subtask, status);
        self.tell(Up::TaskStatus { execution: self.execution, subtask, status, error }).await
    }

    /// A sign of life. It is left out where nothing moves: waiting for room would hide that the JobManager is gone.
    fn heartbeat(&self) -> Result<(), SessionClosed> {
        let metrics = self.counters.iter().map(|(subtask, counters)| counters.snapshot(*subtask)).collect();
        match self.up.try_send(Up::Heartbeat { execution: Some(self.execution), metrics }) {
            Err(mpsc::error::TrySendError::Closed(_)) => Err(SessionClosed),
            _ => Ok(()),
        }
    }

    fn order_all(&self, make: impl Fn() -> Order) {
        self.slots.values().for_each(|slot| slot.order(make()));
    }

    async fn obey(&mut self, message: Down) -> Result<(), SessionClosed> {
        tracing::trace!(?message, "from the JobManager");
        match message {
            Down::Continue { execution, checkpoint, carried }
                if execution.job == self.execution.job && execution.generation > self.execution.generation =>
            {
                self.leave_generation(execution, checkpoint, carried).await
            }
            Down::Deploy { execution, deployment } if execution == self.execution => self.deploy(deployment).await,
            Down::DiscoverSplits { execution, vertex } if execution == self.execution => {
                if let Some(slot) = self.slot(SubtaskId { vertex, index: 0 }) {
                    slot.order(Order::Discover(vertex));
                }
                Ok(())
            }
            Down::AddSplits { execution, subtask, splits, is_last } if execution == self.execution => {
                self.requested.remove(&subtask);
                if let Some(slot) = self.slot(subtask) {
                    slot.order(Order::AddSplits { subtask, splits, is_last });
                }
                Ok(())
            }
            Down::TriggerCheckpoint { execution, checkpoint, triggered_ms, kind } if execution == self.execution => {
                self.in_flight.insert(checkpoint);
                if matches!(kind, CheckpointKind::Savepoint { .. }) {
                    self.savepoints.insert(checkpoint);
                }
                self.order_all(|| Order::Trigger(Barrier { checkpoint, triggered_ms, kind: kind.clone() }));
                Ok(())
            }
            Down::CheckpointCompleted { execution, checkpoint, is_last } if execution == self.execution => {
                self.completed(checkpoint, is_last);
                Ok(())
            }
            Down::CheckpointAborted { execution, checkpoint } if execution == self.execution => {
                self.aborted(checkpoint);
                Ok(())
            }
            Down::CancelTasks { execution } if execution == self.execution => {
                self.order_all(|| Order::Cancel);
                self.cancel_starting().await
            }
            other => {
                tracing::debug!(?other, "a message that is not for this worker");
                Ok(())
            }
        }
    }

    fn completed(&mut self, checkpoint: CheckpointId, is_last: bool) {
        let is_savepoint = self.savepoints.remove(&checkpoint);
        // Of other savepoints nothing more is heard.
        self.savepoints.retain(|savepoint| *savepoint > checkpoint);
        self.in_flight.retain(|pending| *pending > checkpoint);
        if !is_savepoint {
            self.local_runs.completed(checkpoint);
        }
        self.order_all(|| Order::Completed { checkpoint, is_savepoint, is_last });
    }

    fn aborted(&mut self, checkpoint: CheckpointId) {
        self.savepoints.remove(&checkpoint);
        self.in_flight.remove(&checkpoint);
        self.local_runs.aborted(checkpoint);
        self.order_all(|| Order::Aborted(checkpoint));
    }

    fn slot(&self, subtask: SubtaskId) -> Option<&SlotHandle> {
        self.slots.get(self.slot_of.get(&subtask)?)
    }

    /// Takes its part of the execution and fetches the state that it starts from.
    async fn deploy(&mut self, deployment: JobDeployment) -> Result<(), SessionClosed> {
        for task in &deployment.tasks {
            self.status(task.subtask, TaskStatus::Initializing, None).await?;
        }
        let first = deployment.tasks.first().map_or(SubtaskId { vertex: 0, index: 0 }, |task| task.subtask);
        // What is written from here on is of this generation, by whatever subtask.
        self.checkpoint_dir = deployment.checkpoint_dir.clone();
        let parallelism: Vec<u32> = deployment.placement.iter().map(|workers| workers.len() as u32).collect();
        self.graph = self.program.job_graph.with_parallelism(&parallelism);
        let description = self.graph.describe();
        if deployment.graph != description {
            let error = flott_graph::difference(&deployment.graph, &description);
            return self.fail(first, error).await;
        }
        let folder = self.scratch.path().join(format!("{}-fetched", self.execution.generation));
        let files = Arc::new(Fetcher::new(self.store.clone(), self.local_runs.clone(), folder));
        let mut fetches: BTreeMap<u32, Vec<_>> = BTreeMap::new();
        for TaskDeployment { subtask, restore, slot, .. } in &deployment.tasks {
            let vertex = &self.graph.vertices[subtask.vertex as usize];
            let operators: Vec<_> = vertex.operators.iter().map(|operator| operator.id).collect();
            let range = range_of(vertex.parallelism, subtask.index, vertex.max_parallelism);
            let held = self.held.1.get_mut().take(&operators, range);
            if let Some(restore) = restore {
                restore::expect(&files, restore, range, &held);
            }
            let (files, restore) = (Arc::clone(&files), restore.clone());
            fetches.entry(*slot).or_default().push(async move {
                match restore {
                    Some(restore) => restore::fetch(&files, &restore, range, held).await,
                    None => Ok(Fetched::default()),
                }
            });
        }
        // What nobody here goes on with is somebody else's now.
        self.held = Default::default();
        if let Err(error) = self.connect(&deployment) {
            return self.fail(first, error).await;
        }
        for (slot, fetches) in fetches {
            let (generation, events, files) = (self.execution.generation, self.events.clone(), Arc::clone(&files));
            flott_env::spawn(async move {
                let restored = futures::future::try_join_all(fetches).await;
                tracing::debug!(slot, bytes = files.fetched_bytes(), "state is there, of all that was fetched so far");
                // A worker that is gone needs no state.
                let _ = events.send((generation, Event::Restored(slot, restored))).await;
            });
        }
        Ok(())
    }

    /// Slots that wait for their state need it no more.
    async fn cancel_starting(&mut self) -> Result<(), SessionClosed> {
        for slot in std::mem::take(&mut self.starting).into_values() {
            for subtask in slot.subtasks() {
                self.status(subtask, TaskStatus::Canceled, None).await?;
            }
        }
        Ok(())
    }

    /// Where a subtask of this generation writes what has no room in memory.
    fn folder_of(&self, subtask: SubtaskId) -> PathBuf {
        let SubtaskId { vertex, index } = subtask;
        self.scratch.path().join(format!("{}-{vertex}-{index}", self.execution.generation))
    }

    /// Whether an event is about something that there still is. It comes with the generation in which what it is about was
    /// started.
    fn is_current(&self, generation: Generation, event: &Event) -> bool {
        let runs_in = |subtask: &SubtaskId, number: u32| self.slot_of.get(subtask) == Some(&(generation, number));
        match event {
            Event::Slot(number, SlotEvent::Report(subtask, _) | SlotEvent::Failed(subtask, _)) => {
                runs_in(subtask, *number)
            }
            Event::Slot(number, SlotEvent::Discovered(vertex, _)) => {
                runs_in(&SubtaskId { vertex: *vertex, index: 0 }, *number)
            }
            Event::Slot(number, SlotEvent::Released { .. } | SlotEvent::Stopped { .. }) => {
                self.slots.contains_key(&(generation, *number))
            }
            Event::Uploaded { subtask, .. } => self.slot_of.get(subtask).is_some_and(|slot| slot.0 == generation),
            // Connections of earlier executions may end, since not all workers keep them. Whoever still uses one fails of it.
            Event::Restored(..) | Event::ConnectionLost(_) => generation == self.execution.generation,
        }
    }

    async fn on_event(&mut self, generation: Generation, event: Event) -> Result<(), SessionClosed> {
        if !self.is_current(generation, &event) {
            return Ok(());
        }
        match event {
            Event::Restored(slot, restored) => {
                let first = self.starting.get(&slot).and_then(|slot| slot.subtasks().next());
                match (restored.and_then(|restored| self.start(slot, restored)), first) {
                    (Err(error), Some(first)) => {
                        self.starting.remove(&slot);
                        self.fail(first, error).await
                    }
                    _ => Ok(()),
                }
            }
            Event::Slot(_, SlotEvent::Report(subtask, Report::Status(status))) => {
                if matches!(status, TaskStatus::Finishing | TaskStatus::Finished) {
                    // The last figures come before the end.
                    self.heartbeat()?;
                }
                self.status(subtask, status, None).await
            }
            Event::Slot(_, SlotEvent::Report(subtask, Report::RequestSplit)) => {
                self.requested.insert(subtask);
                self.tell(Up::RequestSplit { execution: self.execution, subtask }).await
            }
            Event::Slot(_, SlotEvent::Report(subtask, Report::Snapshot(snapshot))) => {
                if snapshot.savepoint_dir.is_some() {
                    let (execution, checkpoint) = (self.execution, snapshot.checkpoint);
                    self.tell(Up::SavepointTaken { execution, subtask, checkpoint }).await?;
                }
                let (store, events, program) = (self.store.clone(), self.events.clone(), Arc::clone(&self.program));
                let (checkpoint, dir) = (snapshot.checkpoint, self.checkpoint_dir.clone());
                flott_env::spawn(async move {
                    let result = upload::upload(&store, &program.job_graph, &dir, *snapshot).await;
                    // A worker that is gone acknowledges nothing.
                    let _ = events.send((generation, Event::Uploaded { subtask, checkpoint, result })).await;
                });
                Ok(())
            }
            Event::Slot(_, SlotEvent::Discovered(vertex, splits)) => {
                self.tell(Up::SplitsDiscovered { execution: self.execution, vertex, splits }).await
            }
            Event::Slot(_, SlotEvent::Failed(subtask, error)) => self.on_failure(subtask, error).await,
            Event::Slot(number, SlotEvent::Released { checkpoint, held }) => {
                self.on_released((generation, number), checkpoint, held).await
            }
            Event::Slot(number, SlotEvent::Stopped { unfinished }) => {
                let slot = (generation, number);
                self.slots.remove(&slot);
                for subtask in unfinished {
                    if self.slot_of.get(&subtask) == Some(&slot) {
                        self.status(subtask, TaskStatus::Canceled, None).await?;
                    }
                }
                self.has_answered(slot).await
            }
            Event::Uploaded { subtask, checkpoint, result } => self.on_uploaded(subtask, checkpoint, result).await,
            Event::ConnectionLost(error) => self.on_connection_lost(error).await,
        }
    }

    async fn on_uploaded(
        &mut self,
        subtask: SubtaskId,
        checkpoint: CheckpointId,
        result: Result<Uploaded>,
    ) -> Result<(), SessionClosed> {
        let execution = self.execution;
        match result {
            Ok(Uploaded { snapshot, runs, copies }) => {
                self.local_runs.add(checkpoint, subtask, copies);
                if let Some(slot) = self.slot(subtask) {
                    // Before the acknowledgement, so that the slot knows its files before it can hear of completion.
                    let files = snapshot.keyed_files.clone();
                    slot.order(Order::Uploaded { subtask, checkpoint, files, runs });
                }
                self.tell(Up::CheckpointAcknowledged { execution, subtask, checkpoint, snapshot }).await
            }
            Err(reason) => self.tell(Up::CheckpointDeclined { execution, subtask, checkpoint, reason }).await,
        }
    }

    /// What fails because its channel to another worker is closed is sound itself: its state is kept where it is.
    async fn on_failure(&mut self, subtask: SubtaskId, error: Error) -> Result<(), SessionClosed> {
        let generation = self.slot_of.get(&subtask).map_or(0, |slot| slot.0);
        let may_be_cut_off = error.kind == ErrorKind::System && self.connected.contains(&subtask);
        let plane = self.planes.get(&generation).filter(|_| may_be_cut_off);
        match plane.and_then(DataPlane::failed) {
            Some(failure) => {
                // An earlier execution may have failed of the first failure of its connections. This is another one then.
                let is_first = generation == self.execution.generation;
                let cause = if is_first { failure.error } else { error.clone() };
                self.dead.insert(subtask, Death { error, is_sound: true });
                self.on_connection_lost(cause).await
            }
            None => self.fail(subtask, error).await,
        }
    }

    async fn on_connection_lost(&mut self, error: Error) -> Result<(), SessionClosed> {
        if std::mem::replace(&mut self.has_lost_connection, true) {
            return Ok(());
        }
        tracing::warn!(%error, "a connection to another worker was lost");
        self.tell(Up::ConnectionLost { execution: self.execution, error }).await
    }

    async fn fail(&mut self, subtask: SubtaskId, error: Error) -> Result<(), SessionClosed> {
        let regions = self.graph.regions();
        let region = regions.of(subtask);
        // What fails afterwards in its region fails because of the first.
        let is_first = !self.dead.iter().any(|(other, death)| !death.is_sound && regions.of(*other) == region);
        self.dead.insert(subtask, Death { error: error.clone(), is_sound: false });
        if !is_first {
            return Ok(());
        }
        tracing::error!(%subtask, %error, "a subtask failed");
        self.status(subtask, TaskStatus::Failed, Some(error)).await
    }
}
