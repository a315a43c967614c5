//! One subtask: its input, its chain, and the checkpoint that it is part of.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;
use std::time::Duration;

use flott_checkpoint::FileHandle;
use flott_connector_spi::ReadStatus;
use flott_control::CheckpointKind;
use flott_core::config::options;
use flott_core::hash::stable_hash;
use flott_core::ids::CheckpointId;
use flott_core::status::TaskStatus;
use flott_core::time::Timestamp;
use flott_core::{Result, ResultExt};
use flott_network::{Barrier, Sender};
use flott_operators::program::Head;
use flott_operators::{Control, Maintenance, ReleasedState, RestoredState, TaskContext, TaskSnapshot};
use flott_state::{Freeze, SnapshotMode, SnapshotWriter, StateRuns};
use flott_telemetry::StateFigures;

use crate::alignment::Overtaking;
use crate::gate::{Input, InputGate, SavedChannels, Saving};
use crate::upload::{FinishedSnapshot, RunKey};

/// Entries of frozen state that are written between two steps: about half a millisecond.
const DRAIN_ENTRIES_MAX: usize = 2_000;

/// Inputs that are processed in one step, before the other subtasks of the slot get their turn.
const INPUTS_PER_STEP_MAX: usize = 16;

/// How long a step may go on taking inputs: user code may be slow, and barriers wait for the end of a step.
const STEP_TIME_MAX: Duration = Duration::from_millis(2);

/// A file of changes counts for at least this part of its base, however small it is: each makes manifests longer and restoring
/// slower.
const CHANGES_PER_BASE: u64 = 128;

/// What a subtask tells its worker.
pub enum Report {
    /// Its state changed.
    Status(TaskStatus),
    /// It needs something to read.
    RequestSplit,
    /// Its part of a checkpoint is complete in memory.
    Snapshot(Box<FinishedSnapshot>),
}

/// What a step did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It processed something.
    Progress,
    /// There was nothing to process.
    Idle,
    /// There was no room in an output, or what a sink hands out has not been taken.
    BackPressured,
}

/// Where checkpoints of keyed state build on each other.
struct Chain {
    files: Vec<FileHandle>,
    /// The last checkpoint that was snapshotted, and its files once they are written. Savepoints are none.
    last: CheckpointId,
    pending: Option<(CheckpointId, Vec<FileHandle>)>,
    /// Whether the next snapshot must be whole. Changes count from the last snapshot, so one can build only on that,
    /// and only when it is known to be complete.
    needs_base: bool,
    is_incremental: bool,
}

/// The runs of keyed state on disk that checkpoints share.
#[derive(Default)]
struct SharedRuns {
    /// Those of a complete checkpoint that all later ones have too, complete or not. What a checkpoint wrote itself may go
    /// with it, and what a later one does without may go when that is complete.
    known: BTreeMap<RunKey, FileHandle>,
    /// The last checkpoint, and its runs once they are written.
    last: CheckpointId,
    pending: Option<(CheckpointId, Vec<(RunKey, FileHandle)>)>,
}

impl SharedRuns {
    /// A checkpoint has these runs. Returns those whose files it may share.
    fn taken(&mut self, checkpoint: CheckpointId, states: &[StateRuns]) -> BTreeMap<RunKey, FileHandle> {
        let keys = |state: &StateRuns| -> Vec<RunKey> {
            let files = state.pinned.files().into_iter();
            files.map(|file| (state.operator, state.name.clone(), file.id)).collect()
        };
        let keys: BTreeSet<RunKey> = states.iter().flat_map(keys).collect();
        self.known.retain(|key, _| keys.contains(key));
        self.last = checkpoint;
        self.known.clone()
    }

    fn completed(&mut self, checkpoint: CheckpointId) {
        if let Some((pending, runs)) = self.pending.take_if(|(pending, _)| *pending <= checkpoint)
            && pending == checkpoint
            && checkpoint == self.last
        {
            self.known.extend(runs);
        }
    }
}

struct PendingSnapshot {
    barrier: Barrier,
    task: TaskSnapshot,
    /// Whether the gate has to save what is in flight.
    is_unaligned: bool,
    sync: Duration,
    alignment: Duration,
    began: Duration,
}

/// A subtask in its slot.
pub struct Subtask {
    /// What it is.
    pub cx: TaskContext,
    head: Head,
    gate: InputGate,
    outputs: Vec<Sender>,
    chain: Chain,
    runs: SharedRuns,
    snapshot: Option<PendingSnapshot>,
    overtaking: Overtaking,
    /// The barrier that was sent last if it keeps its place, and from when on it should not.
    late_barrier: Option<(CheckpointId, Timestamp)>,
    reports: Vec<Report>,
    has_unflushed: bool,
    has_ended: bool,
    is_finished: bool,
    /// It is done, but for what its sink is still to hand out.
    is_leaving: bool,
    /// Nothing is processed after the barrier of a stop.
    is_stopped: bool,
    no_more_splits: bool,
    has_requested_split: bool,
    /// Whether its keyed state can be taken back to a checkpoint where it is.
    is_rewindable: bool,
    /// When the chain wants to be called, in wall-clock milliseconds.
    next_time: Timestamp,
    /// When its source has something to read again.
    next_poll: Timestamp,
    is_source_waiting: bool,
    /// Whether its last step found no room in an output.
    pub is_back_pressured: bool,
}

impl Subtask {
    /// A subtask that has not been opened. `chain` are the files that its restored state came from, if later
    /// checkpoints can build on them.
    pub fn new(
        cx: TaskContext,
        head: Head,
        gate: InputGate,
        outputs: Vec<Sender>,
        chain: Option<Vec<FileHandle>>,
    ) -> Result<Self> {
        let is_incremental = cx.config.get(options::CHECKPOINT_INCREMENTAL)?;
        let is_rewindable = cx.config.get(options::RECOVERY_FROM_LOCAL)?;
        let overtaking = Overtaking::of(&cx.config)?;
        let chain = Chain {
            needs_base: chain.is_none(),
            files: chain.unwrap_or_default(),
            last: 0,
            pending: None,
            is_incremental,
        };
        Ok(Self {
            cx,
            head,
            gate,
            outputs,
            chain,
            runs: SharedRuns::default(),
            snapshot: None,
            overtaking,
            late_barrier: None,
            reports: Vec::new(),
            has_unflushed: false,
            has_ended: false,
            is_finished: false,
            is_leaving: false,
            is_stopped: false,
            no_more_splits: false,
            has_requested_split: false,
            is_rewindable,
            next_time: Timestamp::MAX,
            next_poll: 0,
            is_source_waiting: false,
            is_back_pressured: false,
        })
    }

    /// Whether it begins with a source.
    pub fn is_source(&self) -> bool {
        matches!(self.head, Head::Source(_))
    }

    /// Whether it is done for good.
    pub fn is_finished(&self) -> bool {
        self.is_finished
    }

    /// What it has to tell since the last call.
    pub fn take_reports(&mut self) -> impl Iterator<Item = Report> {
        std::mem::take(&mut self.reports).into_iter()
    }

    /// The wall-clock time at which it wants to be stepped even if nothing comes.
    pub fn next_deadline(&self) -> Timestamp {
        if self.is_finished {
            return Timestamp::MAX;
        }
        let poll = if self.is_source() && !self.is_source_waiting { self.next_poll } else { Timestamp::MAX };
        let barriers = self.late_barrier.map_or(Timestamp::MAX, |(_, due)| due).min(self.gate.next_due());
        self.next_time.min(barriers).min(if self.is_stopped || self.has_ended { Timestamp::MAX } else { poll })
    }

    fn control(&mut self, mut control: Control<'_>) -> Result<()> {
        match &mut self.head {
            Head::Source(source) => source.control(&mut control),
            Head::Input(task) => task.control(&mut control),
        }
    }

    /// Opens the chain with what was saved.
    pub fn open(&mut self, mut restored: RestoredState) -> Result<()> {
        let channels = std::mem::take(&mut restored.channels);
        self.control(Control::Open(&mut restored))?;
        self.chain.needs_base |= restored.is_migrated;
        if let Some(folder) = restored.own_folder {
            let is_own = |path: &str| path.strip_prefix(&folder).is_some_and(|rest| rest.starts_with('/'));
            let runs = restored.adopted_runs.into_iter().filter(|run| is_own(&run.file.path));
            self.runs.known.extend(runs.map(|run| ((run.operator, run.state, run.id), run.file)));
        }
        let in_flight = self.gate.restore(&channels, self.cx.key_groups(), self.cx.max_parallelism);
        in_flight.with_context(|| format!("'{}'", self.cx.name))?;
        self.reports.push(Report::Status(TaskStatus::Running));
        Ok(())
    }

    /// Gives its keyed state away as it was at a checkpoint. It is of no use afterwards.
    pub fn release(&mut self, released: &mut ReleasedState) -> Result<()> {
        self.control(Control::Release(released))
    }

    /// Lists the splits of its source.
    pub fn discover(&mut self) -> Result<Vec<Vec<u8>>> {
        match &mut self.head {
            Head::Source(source) => source.discover(),
            Head::Input(_) => Ok(Vec::new()),
        }
    }

    /// Takes splits for its source.
    pub fn add_splits(&mut self, splits: &[Vec<u8>], is_last: bool) -> Result<()> {
        if let Head::Source(source) = &mut self.head {
            splits.iter().try_for_each(|split| source.add_split(split))?;
            self.has_requested_split = false;
            self.no_more_splits |= is_last;
            self.is_source_waiting = false;
        }
        Ok(())
    }

    /// Tells the chain the time.
    pub fn on_time(&mut self, now: Timestamp) -> Result<()> {
        if let Some((checkpoint, _)) = self.late_barrier.take_if(|(_, due)| *due <= now) {
            self.outputs.iter().try_for_each(|output| output.overtake(checkpoint))?;
        }
        if self.is_finished || self.has_ended || self.is_stopped {
            self.next_time = Timestamp::MAX;
            return Ok(());
        }
        let mut next = Timestamp::MAX;
        self.control(Control::Time { now, is_blocked: self.is_back_pressured, next: &mut next })?;
        if next <= now {
            // Whoever is due again at once gets the next millisecond.
            next = now + 1;
        }
        self.next_time = next;
        self.has_unflushed = true;
        Ok(())
    }

    /// Keeps keyed state within its memory; whether there is more to do, soon.
    pub fn maintain(&mut self) -> Result<bool> {
        if self.is_finished {
            return Ok(false);
        }
        let mut done = Maintenance::default();
        self.control(Control::Maintain(&mut done))?;
        let (slot_bytes, slot_limit) = (self.cx.state.budget().used(), self.cx.state.budget().limit());
        self.cx.counters.state.set(StateFigures { states: done.states, slot_bytes, slot_limit });
        Ok(done.has_more)
    }

    /// Passes buffered rows on; whether there may have been any.
    pub fn flush(&mut self) -> Result<bool> {
        if !std::mem::take(&mut self.has_unflushed) {
            return Ok(false);
        }
        self.control(Control::Flush)?;
        Ok(true)
    }

    /// Processes some of what is there.
    pub fn step(&mut self, now: Timestamp) -> Result<Step> {
        if self.is_finished {
            return Ok(Step::Idle);
        }
        if self.is_leaving {
            return Ok(if self.leave() { Step::Progress } else { Step::BackPressured });
        }
        let mut step = if self.drain(DRAIN_ENTRIES_MAX)? { Step::Progress } else { Step::Idle };
        if let Some(input) = self.gate.poll_barrier(now)? {
            self.act(input)?;
            step = Step::Progress;
        }
        let until = flott_env::monotonic() + STEP_TIME_MAX;
        for _ in 0..INPUTS_PER_STEP_MAX {
            if self.cx.outlet.is_full() || !self.outputs.iter().all(Sender::is_writable) {
                return Ok(if step == Step::Progress { step } else { Step::BackPressured });
            }
            let progressed = if self.is_source() { self.poll_source(now)? } else { self.take_input(now)? };
            if !progressed {
                break;
            }
            step = Step::Progress;
            self.has_unflushed = true;
            // What was processed may have asked for a time that is near.
            self.next_time = self.next_time.min(now + 1);
            if flott_env::monotonic() >= until {
                break;
            }
        }
        Ok(step)
    }

    fn poll_source(&mut self, now: Timestamp) -> Result<bool> {
        if self.has_ended || self.is_stopped || self.is_source_waiting {
            return Ok(false);
        }
        let was_woken = self.cx.woken.swap(false, Ordering::AcqRel);
        if self.next_poll > now && !was_woken {
            return Ok(false);
        }
        let Head::Source(source) = &mut self.head else { return Ok(false) };
        self.next_poll = 0;
        match source.poll()? {
            ReadStatus::Progress => Ok(true),
            ReadStatus::Pending => {
                // The waker steps the slot; the clock is only there in case a wake-up got lost.
                self.next_poll = now + 1000;
                self.has_unflushed = true;
                Ok(false)
            }
            ReadStatus::PendingUntil(time) => {
                self.next_poll = time.max(now + 1);
                self.has_unflushed = true;
                Ok(false)
            }
            ReadStatus::NeedsSplit if self.no_more_splits => {
                self.end()?;
                Ok(true)
            }
            ReadStatus::NeedsSplit => {
                self.is_source_waiting = true;
                self.has_unflushed = true;
                if !std::mem::replace(&mut self.has_requested_split, true) {
                    self.reports.push(Report::RequestSplit);
                }
                Ok(false)
            }
        }
    }

    fn take_input(&mut self, now: Timestamp) -> Result<bool> {
        match self.gate.poll(now)? {
            Some(input) => self.act(input).map(|()| true),
            None => Ok(false),
        }
    }

    fn act(&mut self, input: Input) -> Result<()> {
        match input {
            Input::Batch(payload) => match &mut self.head {
                Head::Input(task) => task.process(payload),
                Head::Source(_) => Ok(()),
            },
            Input::Watermark(watermark) => {
                self.cx.counters.watermark.set(watermark);
                self.control(Control::Watermark(watermark))
            }
            Input::Idle => self.control(Control::Idle),
            Input::Active => self.control(Control::Active),
            Input::Barrier { barrier, waited, is_unaligned } => self.barrier(barrier, waited, is_unaligned),
            Input::EndOfInput => self.end(),
        }
    }

    fn end(&mut self) -> Result<()> {
        if !std::mem::replace(&mut self.has_ended, true) {
            self.control(Control::EndOfInput)?;
            self.reports.push(Report::Status(TaskStatus::Finishing));
        }
        Ok(())
    }

    /// A checkpoint was triggered: a source sends its barrier.
    pub fn trigger(&mut self, barrier: Barrier) -> Result<()> {
        if !self.is_source() || self.is_finished {
            return Ok(());
        }
        if let CheckpointKind::Savepoint { stop: true, drain: true, .. } = barrier.kind {
            self.end()?;
        }
        self.barrier(barrier, Duration::ZERO, false)
    }

    fn barrier(&mut self, barrier: Barrier, alignment: Duration, is_unaligned: bool) -> Result<()> {
        self.finish_last()?;
        let began = flott_env::monotonic();
        let mode = match barrier.kind {
            // It belongs to the user: nothing may build on it, and nobody goes back to it. So it leaves no trace, and the
            // next checkpoint is as small as if it had not been.
            CheckpointKind::Savepoint { stop: false, .. } => SnapshotMode::Detached,
            // The last one of the job is what it goes back to should it fail before it has stopped.
            CheckpointKind::Savepoint { stop: true, .. } => SnapshotMode::Full,
            CheckpointKind::Checkpoint | CheckpointKind::Final if self.chain.can_grow() => SnapshotMode::Incremental,
            CheckpointKind::Checkpoint | CheckpointKind::Final => SnapshotMode::Full,
        };
        let freeze = Freeze { checkpoint: barrier.checkpoint, mode, is_rewindable: self.is_rewindable };
        let mut task = TaskSnapshot::new(freeze);
        if let Some(folder) = self.cx.state.directory() {
            task.writer = SnapshotWriter::overflowing_to(folder.join(format!("chk-{}.sections", barrier.checkpoint)));
        }
        // A checkpoint that is late already does not try to be aligned further down.
        let due = self.overtaking.due_ms(&barrier);
        task.overtakes = is_unaligned || due <= flott_env::now_ms();
        let may_be_late = !task.overtakes && due < Timestamp::MAX;
        self.late_barrier = may_be_late.then_some((barrier.checkpoint, due));
        if mode != SnapshotMode::Detached {
            self.chain.last = barrier.checkpoint;
            self.chain.needs_base = true;
        }
        if let CheckpointKind::Savepoint { stop: true, .. } = barrier.kind {
            // The restored job begins here: nothing may come out behind this barrier.
            self.is_stopped = true;
        }
        self.control(Control::Barrier(&barrier, &mut task))?;
        self.has_unflushed = false;
        let sync = flott_env::monotonic().saturating_sub(began);
        let snapshot = PendingSnapshot { barrier, task, is_unaligned, sync, alignment, began };
        if snapshot.task.is_pending || is_unaligned {
            self.snapshot = Some(snapshot);
        } else {
            self.report_snapshot(snapshot, None);
        }
        Ok(())
    }

    /// The snapshot before was given up if it is still being written. Its keyed state is written to the end all the same;
    /// what is in flight to it is not saved any more.
    fn finish_last(&mut self) -> Result<()> {
        let Some(mut snapshot) = self.snapshot.take() else { return Ok(()) };
        while snapshot.task.is_pending {
            self.write(&mut snapshot.task, usize::MAX)?;
        }
        if !snapshot.is_unaligned {
            self.report_snapshot(snapshot, None);
        }
        Ok(())
    }

    /// Writes frozen state and saves what is in flight; whether that got on.
    fn drain(&mut self, entries_max: usize) -> Result<bool> {
        let Some(mut snapshot) = self.snapshot.take() else { return Ok(false) };
        let mut has_written = snapshot.task.is_pending;
        if snapshot.task.is_pending {
            self.write(&mut snapshot.task, entries_max)?;
        }
        let mut saving = Saving::Complete(None);
        if snapshot.is_unaligned {
            has_written |= self.gate.save(entries_max as u64)?;
            if !snapshot.task.is_pending {
                saving = self.gate.take_saved(snapshot.barrier.checkpoint);
            }
        }
        match saving {
            Saving::Complete(channels) if !snapshot.task.is_pending => {
                self.report_snapshot(snapshot, channels);
                return Ok(true);
            }
            Saving::Complete(_) | Saving::Pending => self.snapshot = Some(snapshot),
            Saving::GivenUp => {}
        }
        Ok(has_written)
    }

    fn write(&mut self, task: &mut TaskSnapshot, entries_max: usize) -> Result<()> {
        task.entries_max = entries_max;
        task.is_pending = false;
        self.control(Control::Drain(task))
    }

    fn report_snapshot(&mut self, snapshot: PendingSnapshot, channels: Option<SavedChannels>) {
        let PendingSnapshot { barrier, task, is_unaligned: _, sync, alignment, began } = snapshot;
        let savepoint_dir = match barrier.kind {
            CheckpointKind::Savepoint { dir, .. } => Some(dir),
            CheckpointKind::Checkpoint | CheckpointKind::Final => None,
        };
        let is_base = task.is_full();
        let content = task.writer.finish();
        let known_runs = match &content {
            // A savepoint shares nothing, and one that failed has nothing.
            Ok((_, states)) if savepoint_dir.is_none() => self.runs.taken(barrier.checkpoint, states),
            _ => BTreeMap::new(),
        };
        self.reports.push(Report::Snapshot(Box::new(FinishedSnapshot {
            subtask: self.cx.subtask,
            checkpoint: barrier.checkpoint,
            chain: if is_base { Vec::new() } else { self.chain.files.clone() },
            content,
            known_runs,
            scratch: self.cx.state.directory().map(Into::into),
            keyed_operators: task.keyed_operators.into_iter().collect(),
            keyed_states: task.keyed_states,
            columns: task.columns,
            operator_states: task.operator_states,
            channels,
            savepoint_dir,
            sync,
            alignment,
            began,
        })));
    }

    /// The files of a checkpoint have been written. Later ones build on them once it is complete.
    pub fn uploaded(&mut self, checkpoint: CheckpointId, files: Vec<FileHandle>, runs: Vec<(RunKey, FileHandle)>) {
        if checkpoint == self.chain.last {
            self.chain.pending = Some((checkpoint, files));
        }
        if checkpoint == self.runs.last {
            self.runs.pending = Some((checkpoint, runs));
        }
    }

    /// The checkpoint is durable.
    pub fn completed(&mut self, checkpoint: CheckpointId, is_savepoint: bool, is_last: bool) -> Result<()> {
        if !is_savepoint {
            self.chain.completed(checkpoint);
            self.runs.completed(checkpoint);
        }
        self.control(Control::Commit(checkpoint))?;
        if is_last {
            self.is_leaving = true;
            self.leave();
        }
        Ok(())
    }

    /// Finishes, unless somebody is still to take rows from its sink; whether it did.
    fn leave(&mut self) -> bool {
        if self.cx.outlet.has_rows() {
            return false;
        }
        self.is_finished = true;
        self.reports.push(Report::Status(TaskStatus::Finished));
        true
    }

    /// The checkpoint will not complete. If it has been snapshotted, what had changed until then is in no other, so the next
    /// one still has to be whole.
    pub fn aborted(&mut self, checkpoint: CheckpointId) {
        self.chain.pending.take_if(|(pending, _)| *pending == checkpoint);
        self.runs.pending.take_if(|(pending, _)| *pending == checkpoint);
    }
}

impl Chain {
    /// Whether the next snapshot may be of what has changed.
    fn can_grow(&self) -> bool {
        self.is_incremental && !self.needs_base && !self.is_long()
    }

    /// A checkpoint is complete: the next one may build on it, if nothing was snapshotted since but savepoints.
    fn completed(&mut self, checkpoint: CheckpointId) {
        if let Some((_, files)) = self.pending.take_if(|(pending, _)| *pending == checkpoint && checkpoint == self.last)
        {
            self.files = files;
            self.needs_base = false;
        }
    }

    /// Whether the changes have outgrown what they change, so that a new base is cheaper.
    ///
    /// All subtasks may have written their bases for the same checkpoint: so as not to do so ever after, each takes a limit of
    /// its own for each base, from half of it to one and a half. It is equal to the base on average, so what is written is
    /// about twice what has changed; and a base of a checkpoint that is restored has the same limit as before.
    fn is_long(&self) -> bool {
        let Some((base, changes)) = self.files.split_first() else { return false };
        let changed: u64 = changes.iter().map(|file| file.bytes.max(base.bytes / CHANGES_PER_BASE)).sum();
        let (bytes, random) = (u128::from(base.bytes), u128::from(stable_hash(&base.path) >> 32));
        u128::from(changed) > bytes / 2 + ((bytes * random) >> 32)
    }
}

#[cfg(test)]
pub(crate) mod tests;
