//! One execution of a job: its subtasks, stepped one at a time.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use flott_checkpoint::assign::{channel_inputs, check, task_restore};
use flott_connector_spi::Waker;
use flott_control::CheckpointKind;
use flott_core::ids::{CheckpointId, Generation, JobId, SubtaskId, VertexId};
use flott_core::status::TaskStatus;
use flott_core::time::Timestamp;
use flott_core::{Error, Result, ResultExt};
use flott_e2e::Random;
use flott_network::{Barrier, Signal};
use flott_operators::program::Head;
use flott_operators::{HeldState, Program, ReleasedState, RestoredState, TaskContext};
use flott_state::{MemoryBudget, StateBackend};
use flott_taskmanager::alignment::Overtaking;
use flott_taskmanager::gate::{InputGate, Records};
use flott_taskmanager::restore::fetch_alone;
use flott_taskmanager::subtask::{Report, Step, Subtask};
use flott_taskmanager::upload::{FinishedSnapshot, upload};

use crate::bed::Bed;
use crate::channels::Channels;
use crate::pending::{Pending, Saved};
use crate::tables::Pace;

/// When the clock starts, in milliseconds since 1970.
const START_MS: Timestamp = 1_700_000_000_000;

/// Turns in which nothing happens before a job is called stuck.
const IDLE_TURNS_MAX: u32 = 200;

/// How far the clock jumps at a time.
const JUMP_MAX_MS: Timestamp = 60_000;

/// How long a turn in which nothing happens waits for I/O.
const PATIENCE: Duration = Duration::from_millis(100);

/// The splits of a source that no subtask has.
#[derive(Clone, Debug, Default)]
pub(crate) struct Splits {
    pub(crate) unassigned: VecDeque<Vec<u8>>,
    pub(crate) is_discovered: bool,
}

/// How an execution is set up.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// The bytes that a channel holds.
    pub channel_bytes: u64,
    /// Whether keyed state is on disk from the start.
    pub is_disk: bool,
    /// The bytes that the keyed state of a subtask may take in memory.
    pub memory_bytes: u64,
}

impl Default for Setup {
    fn default() -> Self {
        Self { channel_bytes: 1 << 20, is_disk: false, memory_bytes: 1 << 24 }
    }
}

/// Where an execution begins.
#[derive(Default)]
pub struct Beginning {
    /// The checkpoint; `None` at the first start.
    pub saved: Option<Saved>,
    /// What subtasks of the execution before hold of it in memory.
    pub held: HeldState,
}

/// See the module's documentation.
pub struct Execution<'a> {
    bed: &'a Bed,
    program: Program,
    job: JobId,
    generation: Generation,
    pace: Pace,
    subtasks: Vec<Subtask>,
    splits: BTreeMap<VertexId, Splits>,
    pending: Option<Pending>,
    /// The last complete checkpoint of this execution, or the one that it began with.
    saved: Option<Saved>,
    signal: Signal,
    now: Timestamp,
    ended: BTreeSet<SubtaskId>,
    /// Whether subtasks are not told that a checkpoint is complete.
    pub is_deaf: bool,
}

impl<'a> Execution<'a> {
    /// Starts a job, from the beginning or from a checkpoint.
    ///
    /// # Errors
    /// An operator cannot be made, or does not take back its state.
    pub fn start(
        bed: &'a Bed,
        program: Program,
        job: JobId,
        generation: Generation,
        pace: Pace,
        setup: Setup,
        beginning: Beginning,
    ) -> Result<Self> {
        let Beginning { saved, mut held } = beginning;
        if let Some(saved) = &saved {
            check(&saved.manifest, &program.job_graph, false)?;
        }
        pace.go_back(saved.as_ref().map_or(0, |saved| saved.handed));
        let signal = Signal::new();
        let overtaking = Overtaking::of(&program.job_graph.config)?;
        let mut channels = Channels::new(&program.job_graph, overtaking, setup.channel_bytes, &signal);
        let mut execution = Self {
            bed,
            program,
            job,
            generation,
            pace,
            subtasks: Vec::new(),
            splits: BTreeMap::new(),
            pending: None,
            saved,
            signal,
            now: START_MS,
            ended: BTreeSet::new(),
            is_deaf: false,
        };
        let vertices = (0..).zip(&execution.program.job_graph.vertices);
        let ids = vertices.flat_map(|(vertex, of)| (0..of.parallelism).map(move |index| SubtaskId { vertex, index }));
        for id in ids.collect::<Vec<_>>() {
            let subtask = execution.subtask(id, setup, &mut channels, &mut held)?;
            execution.subtasks.push(subtask);
        }
        execution.find_splits()?;
        execution.settle()?;
        Ok(execution)
    }

    /// Lets what has been read come through before anything else is. At the start it lets subtasks that get no split end before the
    /// first row: which rows are late must not depend on when they do.
    ///
    /// # Errors
    /// A subtask failed.
    pub fn settle(&mut self) -> Result<()> {
        self.pace.hold(true);
        let mut has_moved = true;
        while has_moved {
            has_moved = false;
            for index in 0..self.subtasks.len() {
                has_moved |= self.step(index, true)?;
            }
        }
        self.pace.hold(false);
        Ok(())
    }

    /// The folder of the checkpoints of a generation.
    fn checkpoint_dir(&self) -> Result<String> {
        self.bed.url(&format!("{}/{}", self.job, self.generation))
    }

    fn subtask(&self, id: SubtaskId, setup: Setup, channels: &mut Channels, held: &mut HeldState) -> Result<Subtask> {
        let graph = &self.program.job_graph;
        let vertex = &graph.vertices[id.vertex as usize];
        let name = format!("tasks/{}-{}-{}-{}", self.job, self.generation, id.vertex, id.index);
        let folder = self.bed.folder.path().join(name);
        let memory = MemoryBudget::new(setup.memory_bytes);
        let (woken, signal) = (Arc::new(AtomicBool::new(false)), self.signal.clone());
        let is_woken = Arc::clone(&woken);
        let cx = TaskContext {
            job: self.job,
            generation: self.generation,
            subtask: id,
            name: vertex.name.clone(),
            parallelism: vertex.parallelism,
            max_parallelism: vertex.max_parallelism,
            config: graph.config.clone(),
            counters: Arc::default(),
            io: self.bed.runtime.handle().clone(),
            waker: Waker::new(move || {
                is_woken.store(true, Ordering::Release);
                signal.notify();
            }),
            woken,
            outlet: Default::default(),
            splits: Arc::default(),
            state: StateBackend::new(memory, Some(folder.join("state")), setup.is_disk),
        };
        let mut restored = RestoredState::default();
        if let Some(saved) = &self.saved {
            let operators: Vec<_> = vertex.operators.iter().map(|operator| operator.id).collect();
            let held = held.take(&operators, cx.key_groups());
            let restore = task_restore(&saved.manifest, &saved.location, graph, id);
            let fetch = fetch_alone(&self.bed.store, &restore, cx.key_groups(), held, &folder);
            restored = self.bed.runtime.block_on(fetch)?;
            restored.rewindable_from = Some(saved.id);
        }
        restored.own_folder = Some(self.bed.url(&self.job.to_string())?);
        restored.place = (id.index, vertex.parallelism);
        let mut senders = channels.senders.remove(&id).unwrap_or_default();
        let outputs = senders.values().flatten().cloned().collect();
        let head = self.program.build(id.vertex, &cx, &mut senders)?;
        let records = match &head {
            Head::Input(task) => Some(Records {
                operator: vertex.operators[0].id,
                inputs: channel_inputs(graph, id.vertex),
                codec: task.codec(),
            }),
            Head::Source(_) => None,
        };
        let receivers = channels.receivers.remove(&id).unwrap_or_default();
        let gate = InputGate::new(receivers, records, Overtaking::of(&graph.config)?);
        let mut subtask = Subtask::new(cx, head, gate, outputs, None)?;
        subtask.open(restored)?;
        Ok(subtask)
    }

    /// Lists the splits of sources, or takes those that a checkpoint has.
    fn find_splits(&mut self) -> Result<()> {
        for subtask in &mut self.subtasks {
            let SubtaskId { vertex, index: 0 } = subtask.cx.subtask else { continue };
            if !subtask.is_source() {
                continue;
            }
            let operators = &self.program.job_graph.vertices[vertex as usize].operators;
            let old = self.saved.as_ref().and_then(|saved| {
                let mut all = saved.manifest.vertices.iter();
                all.find(|old| old.splits_discovered && operators.iter().any(|o| old.operators.contains(&o.id)))
            });
            let unassigned = match old {
                Some(old) => old.unassigned_splits.clone(),
                None => subtask.discover()?,
            };
            self.splits.insert(vertex, Splits { unassigned: unassigned.into(), is_discovered: true });
        }
        Ok(())
    }

    /// Its last complete checkpoint, or the one that it began with.
    pub fn saved(&self) -> Option<&Saved> {
        self.saved.as_ref()
    }

    /// Whether a checkpoint is on its way.
    pub fn is_taking_checkpoint(&self) -> bool {
        self.pending.is_some()
    }

    /// Whether all its input has been read and processed.
    pub fn has_ended(&self) -> bool {
        self.ended.len() == self.subtasks.len()
    }

    /// What its keyed state takes on disk, as far as it was looked at.
    pub fn disk_bytes(&self) -> u64 {
        let states = self.subtasks.iter().flat_map(|subtask| subtask.cx.counters.state.get().states);
        states.map(|state| state.disk_bytes).sum()
    }

    /// Lets time pass.
    pub fn wait(&mut self, millis: Timestamp) {
        self.now += millis;
    }

    /// Steps a subtask by chance; whether anything happened.
    ///
    /// # Errors
    /// A subtask failed.
    pub fn turn(&mut self, random: &mut Random) -> Result<bool> {
        let index = random.below(self.subtasks.len() as u64) as usize;
        let flushes = random.below(3) == 0;
        let has_moved = self.step(index, flushes)?;
        if has_moved {
            return Ok(true);
        }
        // Whoever has nothing to do may wait for what others have buffered.
        let mut has_moved = false;
        for index in (0..self.subtasks.len()).rev() {
            has_moved |= self.step(index, true)?;
        }
        Ok(has_moved)
    }

    fn step(&mut self, index: usize, flushes: bool) -> Result<bool> {
        self.now += 1;
        let handed = self.pace.handed();
        let subtask = &mut self.subtasks[index];
        let named = |subtask: &Subtask| subtask.cx.display_name();
        // Slots tell the time before each step, too.
        subtask.on_time(self.now).with_context(|| named(subtask))?;
        let mut has_moved = subtask.step(self.now).with_context(|| named(subtask))? == Step::Progress;
        if flushes {
            subtask.flush().with_context(|| named(subtask))?;
        }
        subtask.maintain()?;
        has_moved |= self.pace.handed() != handed;
        let id = subtask.cx.subtask;
        let reports: Vec<Report> = subtask.take_reports().collect();
        has_moved |= !reports.is_empty();
        for report in reports {
            match report {
                Report::Status(TaskStatus::Finishing) => {
                    self.ended.insert(id);
                }
                Report::Status(_) => {}
                Report::RequestSplit => {
                    let splits = self.splits.entry(id.vertex).or_default();
                    let next: Vec<Vec<u8>> = splits.unassigned.pop_front().into_iter().collect();
                    self.subtasks[index].add_splits(&next, next.is_empty())?;
                }
                Report::Snapshot(snapshot) => self.save(index, *snapshot)?,
            }
        }
        Ok(has_moved)
    }

    /// Steps until `is_done`.
    ///
    /// # Errors
    /// A subtask failed, or nothing happens any more.
    pub fn run_until(&mut self, random: &mut Random, is_done: impl Fn(&Self) -> bool) -> Result<()> {
        let mut idle = 0;
        while !is_done(self) {
            if self.turn(random)? {
                idle = 0;
                continue;
            }
            idle += 1;
            if idle > IDLE_TURNS_MAX {
                let states = self.subtasks.iter().map(|subtask| {
                    let has_ended = self.ended.contains(&subtask.cx.subtask);
                    format!("{} has{} ended", subtask.cx.display_name(), if has_ended { "" } else { " not" })
                });
                let states: Vec<String> = states.collect();
                return Err(Error::system(format!("the job is stuck: {}", states.join(", "))));
            }
            // Whoever waits for a time need not wait long; but state that goes after hours is to stay.
            let next = self.subtasks.iter().map(Subtask::next_deadline).min().unwrap_or(Timestamp::MAX);
            if next < self.now.saturating_add(JUMP_MAX_MS) {
                self.now = self.now.max(next);
            } else if idle > 2 {
                // Perhaps something is being read in the background.
                self.signal.wait_until(Some(PATIENCE));
            }
        }
        Ok(())
    }

    /// Triggers a checkpoint.
    ///
    /// # Errors
    /// A source failed.
    pub fn trigger(&mut self, id: CheckpointId, kind: CheckpointKind) -> Result<()> {
        let location = match &kind {
            CheckpointKind::Savepoint { dir, .. } => dir.clone(),
            CheckpointKind::Checkpoint | CheckpointKind::Final => format!("{}/chk-{id}", self.checkpoint_dir()?),
        };
        let barrier = Barrier { checkpoint: id, triggered_ms: self.now, kind: kind.clone() };
        self.pending = Some(Pending {
            id,
            kind,
            location,
            handed: self.pace.handed(),
            triggered_ms: self.now,
            acknowledged: BTreeMap::new(),
            splits: self.splits.clone(),
        });
        self.subtasks.iter_mut().try_for_each(|subtask| subtask.trigger(barrier.clone()))
    }

    /// Triggers one, and steps until it is complete.
    ///
    /// # Errors
    /// As for [`Execution::run_until`].
    pub fn checkpoint(&mut self, id: CheckpointId, kind: CheckpointKind, random: &mut Random) -> Result<()> {
        self.trigger(id, kind)?;
        self.run_until(random, |execution| !execution.is_taking_checkpoint())
    }

    /// Gives up the checkpoint that is on its way.
    pub fn give_up(&mut self) {
        if let Some(pending) = self.pending.take() {
            self.subtasks.iter_mut().for_each(|subtask| subtask.aborted(pending.id));
        }
    }

    fn save(&mut self, index: usize, snapshot: FinishedSnapshot) -> Result<()> {
        let checkpoint = snapshot.checkpoint;
        let dir = self.checkpoint_dir()?;
        let graph = &self.program.job_graph;
        let uploaded = self.bed.runtime.block_on(upload(&self.bed.store, graph, &dir, snapshot))?;
        let files = uploaded.snapshot.keyed_files.clone();
        self.subtasks[index].uploaded(checkpoint, files, uploaded.runs);
        let id = self.subtasks[index].cx.subtask;
        let Some(pending) = self.pending.as_mut().filter(|pending| pending.id == checkpoint) else { return Ok(()) };
        pending.acknowledged.insert(id, uploaded.snapshot);
        if pending.acknowledged.len() < self.subtasks.len() {
            return Ok(());
        }
        let Some(mut pending) = self.pending.take() else { return Ok(()) };
        let manifest = pending.manifest(self.job, self.generation, &self.program.job_graph);
        let store = &self.bed.store;
        let (location, manifest) = self.bed.runtime.block_on(async {
            let sha256 = store.write_manifest(&pending.location, &manifest).await?;
            store.load_manifest(&pending.location, Some(&sha256)).await
        })?;
        self.saved = Some(Saved { id: checkpoint, manifest, location, handed: pending.handed });
        if self.is_deaf {
            return Ok(());
        }
        let (is_savepoint, is_last) = (pending.is_savepoint(), pending.is_last());
        self.subtasks.iter_mut().try_for_each(|subtask| subtask.completed(checkpoint, is_savepoint, is_last))
    }

    /// Reads and processes everything, and commits it with the last checkpoint.
    ///
    /// # Errors
    /// As for [`Execution::run_until`].
    pub fn finish(mut self, last: CheckpointId, random: &mut Random) -> Result<()> {
        self.run_until(random, Self::has_ended)?;
        self.checkpoint(last, CheckpointKind::Final, random)
    }

    /// Ends it where it is. Some subtasks are lost; the others go back in place to the last complete checkpoint, and what
    /// they hold of it comes back with it.
    ///
    /// # Errors
    /// State cannot be taken back.
    pub fn kill(self, is_lost: impl Fn(SubtaskId) -> bool) -> Result<Beginning> {
        let Some(saved) = self.saved else { return Ok(Beginning::default()) };
        let mut held = HeldState::default();
        for mut subtask in self.subtasks {
            if !is_lost(subtask.cx.subtask) {
                let mut released = ReleasedState::new(saved.id);
                subtask.release(&mut released)?;
                held.extend(released.held);
            }
        }
        Ok(Beginning { saved: Some(saved), held })
    }
}
