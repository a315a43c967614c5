//! From a deployment to running slots: the subtasks of this worker, their channels, and what each is built from. All are connected
//! first; a slot starts as soon as it has its state, whatever the others wait for.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use flott_checkpoint::FileHandle;
use flott_checkpoint::assign::channel_inputs;
use flott_checkpoint::manifest::ChannelInput;
use flott_connector_spi::{Outlet, Waker};
use flott_control::{JobDeployment, TaskDeployment};
use flott_core::config::options;
use flott_core::config::options::StateBackendType;
use flott_core::ids::{CheckpointId, OperatorId, SubtaskId};
use flott_core::{Error, Result};
use flott_graph::Partitioning;
use flott_network::{ChannelId, DataPlane, Sender, Signal, local_channel};
use flott_operators::program::Head;
use flott_operators::{Program, RestoredState, TaskContext};
use flott_state::{MemoryBudget, StateBackend};
use flott_telemetry::TaskCounters;

use crate::alignment::Overtaking;
use crate::gate::{InputChannel, InputGate, Records};
use crate::restore::Fetched;
use crate::slot::{MakeSubtask, SlotHandle};
use crate::subtask::Subtask;

use super::{Event, Worker};

/// A slot whose subtasks have their channels and wait for the state that they start from.
pub(super) struct StartingSlot {
    signal: Signal,
    tasks: Vec<PreparedTask>,
}

impl StartingSlot {
    /// The subtasks that wait.
    pub(super) fn subtasks(&self) -> impl Iterator<Item = SubtaskId> {
        self.tasks.iter().map(|task| task.cx.subtask)
    }
}

impl Worker {
    /// Connects all subtasks of this worker. Each slot starts when it has its state: whoever sends to one that has not, does so until
    /// the channel is full.
    pub(super) fn connect(&mut self, deployment: &JobDeployment) -> Result<()> {
        let numbers: BTreeSet<u32> = deployment.tasks.iter().map(|task| task.slot).collect();
        let generation = self.execution.generation;
        let is_disk = deployment.config.get(options::STATE_BACKEND)? == StateBackendType::Disk;
        let signals: BTreeMap<u32, Signal> = numbers.into_iter().map(|number| (number, Signal::new())).collect();
        self.connected.extend(self.with_partners_elsewhere(deployment));
        for task in &deployment.tasks {
            self.slot_of.insert(task.subtask, (generation, task.slot));
            // Beside subtasks that carried over, it is shared with them.
            self.budgets.entry(task.slot).or_insert_with(|| MemoryBudget::new(self.slot_memory));
        }
        let mut channels = self.channels(deployment, &signals)?;
        for task in &deployment.tasks {
            let signal = &signals[&task.slot];
            let state =
                StateBackend::new(self.budgets[&task.slot].clone(), Some(self.folder_of(task.subtask)), is_disk);
            let prepared = self.prepare(task, deployment, state, &mut channels, signal.clone());
            let slot = self.starting.entry(task.slot);
            slot.or_insert_with(|| StartingSlot { signal: signal.clone(), tasks: Vec::new() }).tasks.push(prepared);
        }
        Ok(())
    }

    /// Starts a slot with the state of its subtasks, in their order.
    pub(super) fn start(&mut self, number: u32, fetched: Vec<Fetched>) -> Result<()> {
        let Some(StartingSlot { signal, tasks }) = self.starting.remove(&number) else { return Ok(()) };
        let generation = self.execution.generation;
        let mut makes = Vec::with_capacity(tasks.len());
        for (task, Fetched { restored, runs }) in tasks.into_iter().zip(fetched) {
            if let Some(checkpoint) = task.restored_from {
                self.local_runs.add(checkpoint, task.cx.subtask, runs);
            }
            let (subtask, program) = (task.cx.subtask, Arc::clone(&self.program));
            let make: MakeSubtask = Box::new(move || task.build(restored, &program));
            makes.push((subtask, make));
        }
        let events = self.events.clone();
        let handle = SlotHandle::start(number, signal, makes, move |event| {
            // The slot waits while the worker is busy; a worker that is gone hears nothing.
            let _ = events.blocking_send((generation, Event::Slot(number, event)));
        })?;
        self.slots.insert((generation, number), handle);
        Ok(())
    }

    fn prepare(
        &mut self,
        task: &TaskDeployment,
        deployment: &JobDeployment,
        state: StateBackend,
        channels: &mut Channels,
        signal: Signal,
    ) -> PreparedTask {
        let vertex = &self.graph.vertices[task.subtask.vertex as usize];
        let counters = Arc::new(TaskCounters::default());
        self.counters.insert(task.subtask, Arc::clone(&counters));
        let woken = Arc::new(AtomicBool::new(false));
        let is_woken = Arc::clone(&woken);
        let waker = Waker::new(move || {
            is_woken.store(true, Ordering::Release);
            signal.notify();
        });
        let cx = TaskContext {
            job: self.execution.job,
            generation: self.execution.generation,
            subtask: task.subtask,
            name: vertex.name.clone(),
            parallelism: vertex.parallelism,
            max_parallelism: vertex.max_parallelism,
            config: deployment.config.clone(),
            counters,
            io: tokio::runtime::Handle::current(),
            outlet: Outlet::new(waker.clone()),
            waker,
            woken,
            splits: Arc::default(),
            state,
        };
        PreparedTask {
            senders: channels.senders.remove(&task.subtask).unwrap_or_default(),
            receivers: channels.receivers.remove(&task.subtask).unwrap_or_default(),
            inputs: channel_inputs(&self.graph, task.subtask.vertex),
            operator: vertex.operators[0].id,
            chain: task.restore.as_ref().and_then(|restore| continued_chain(restore, &deployment.checkpoint_dir)),
            restored_from: task.restore.as_ref().map(|restore| restore.checkpoint),
            own_folder: job_folder(&deployment.checkpoint_dir).map(str::to_owned),
            cx,
        }
    }

    /// Makes the ends of all channels that begin or end here.
    fn channels(&self, deployment: &JobDeployment, signals: &BTreeMap<u32, Signal>) -> Result<Channels> {
        let graph = &self.graph;
        let capacity = deployment.config.get(options::CHANNEL_BYTES)?;
        let overtaking = Overtaking::of(&deployment.config)?;
        let mut channels = Channels::default();
        // What carried over has its channels, and none to what is started now.
        let new: BTreeMap<SubtaskId, u32> = deployment.tasks.iter().map(|task| (task.subtask, task.slot)).collect();
        let signal_of = |subtask: SubtaskId| new.get(&subtask).map(|slot| signals[slot].clone());
        for (index, edge) in graph.edges.iter().enumerate() {
            let senders = graph.vertices[edge.source as usize].parallelism;
            let receivers = graph.vertices[edge.target as usize].parallelism;
            let overtakes = overtaking.allows(edge.partitioning);
            for from in 0..senders {
                for to in 0..receivers {
                    if edge.partitioning == Partitioning::Forward && from != to {
                        continue;
                    }
                    let source = SubtaskId { vertex: edge.source, index: from };
                    let target = SubtaskId { vertex: edge.target, index: to };
                    let id = ChannelId { edge: index as u32, from, to };
                    let (sender, receiver) = match (signal_of(source), signal_of(target)) {
                        (Some(producer), Some(consumer)) => {
                            let (sender, receiver) = local_channel(capacity, producer, consumer);
                            (Some(sender), Some(receiver))
                        }
                        (Some(producer), None) => {
                            let peer = self.peer(deployment, target)?;
                            (Some(self.plane()?.sender(id, peer, producer)), None)
                        }
                        (None, Some(consumer)) => (None, Some(self.plane()?.receiver(id, consumer))),
                        (None, None) => (None, None),
                    };
                    if let Some(sender) = sender {
                        let sender = if overtakes { sender.with_overtaking() } else { sender };
                        channels.senders.entry(source).or_default().entry(index).or_default().push(sender);
                    }
                    if let Some(receiver) = receiver {
                        let is_keyed = edge.partitioning == Partitioning::Hash;
                        let channel = InputChannel { receiver, is_keyed, is_ordered: !overtakes };
                        channels.receivers.entry(target).or_default().push(channel);
                    }
                }
            }
        }
        Ok(channels)
    }

    fn plane(&self) -> Result<&DataPlane> {
        let plane = self.planes.get(&self.execution.generation);
        plane.ok_or_else(|| Error::system("an embedded cluster has one worker only"))
    }

    /// The subtasks to be started whose regions have others on other workers.
    fn with_partners_elsewhere(&self, deployment: &JobDeployment) -> Vec<SubtaskId> {
        let regions = self.graph.regions();
        let all = (0..).zip(&deployment.placement).flat_map(|(vertex, workers)| {
            (0..).zip(workers).map(move |(index, worker)| (SubtaskId { vertex, index }, *worker))
        });
        let elsewhere: BTreeSet<_> = all
            .filter(|(_, worker)| *worker != deployment.this_worker)
            .map(|(subtask, _)| regions.of(subtask))
            .collect();
        let new = deployment.tasks.iter().map(|task| task.subtask);
        new.filter(|subtask| elsewhere.contains(&regions.of(*subtask))).collect()
    }

    fn peer<'a>(&self, deployment: &'a JobDeployment, subtask: SubtaskId) -> Result<&'a str> {
        let placement = deployment.placement.get(subtask.vertex as usize);
        placement
            .and_then(|workers| workers.get(subtask.index as usize))
            .and_then(|worker| deployment.workers.get(*worker as usize))
            .map(|worker| worker.data_address.as_str())
            .ok_or_else(|| Error::system(format!("subtask {subtask} has no worker")))
    }
}

/// The ends of the channels of this worker's subtasks.
#[derive(Default)]
struct Channels {
    senders: BTreeMap<SubtaskId, BTreeMap<usize, Vec<Sender>>>,
    receivers: BTreeMap<SubtaskId, Vec<InputChannel>>,
}

/// Everything that a subtask is built from, on its way to the slot's thread.
struct PreparedTask {
    cx: TaskContext,
    senders: BTreeMap<usize, Vec<Sender>>,
    receivers: Vec<InputChannel>,
    inputs: Vec<ChannelInput>,
    /// The first operator of the chain.
    operator: OperatorId,
    restored_from: Option<CheckpointId>,
    /// The folder of the job's checkpoints.
    own_folder: Option<String>,
    chain: Option<Vec<FileHandle>>,
}

impl PreparedTask {
    fn build(mut self, mut restored: RestoredState, program: &Program) -> Result<Subtask> {
        let is_rewindable = self.cx.config.get(options::RECOVERY_FROM_LOCAL)?;
        restored.rewindable_from = self.restored_from.filter(|_| is_rewindable);
        restored.place = (self.cx.subtask.index, self.cx.parallelism);
        restored.own_folder = self.own_folder;
        let outputs = self.senders.values().flatten().cloned().collect();
        let head = program.build(self.cx.subtask.vertex, &self.cx, &mut self.senders)?;
        let records = match &head {
            Head::Input(task) => Some(Records { operator: self.operator, inputs: self.inputs, codec: task.codec() }),
            Head::Source(_) => None,
        };
        let gate = InputGate::new(self.receivers, records, Overtaking::of(&self.cx.config)?);
        let mut subtask = Subtask::new(self.cx, head, gate, outputs, self.chain)?;
        subtask.open(restored)?;
        Ok(subtask)
    }
}

/// The restored files that later checkpoints can build on: those of the same key groups, written by
/// this job. Files of a savepoint are the user's and may go any time.
fn continued_chain(restore: &flott_checkpoint::TaskRestore, checkpoint_dir: &str) -> Option<Vec<FileHandle>> {
    let job_dir = job_folder(checkpoint_dir)?;
    let source = restore.keyed.first().filter(|source| restore.is_same_range && !source.files.is_empty())?;
    let is_ours = |file: &FileHandle| file.path.strip_prefix(job_dir).is_some_and(|rest| rest.starts_with('/'));
    source.files.iter().all(is_ours).then(|| source.files.clone())
}

/// The folder of all checkpoints of a job, given that of the checkpoints of one generation.
fn job_folder(checkpoint_dir: &str) -> Option<&str> {
    checkpoint_dir.rsplit_once('/').map(|(folder, _)| folder)
}
