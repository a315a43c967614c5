//! One subtask: its input, its chain, and the checkpoint that it is part of.

use std::sync::atomic::Ordering;
use std::time::Duration;

use flott_checkpoint::FileHandle;
use flott_connector_spi::ReadStatus;
use flott_control::CheckpointKind;
use flott_core::Result;
use flott_core::ids::CheckpointId;
use flott_core::status::TaskStatus;
use flott_core::time::Timestamp;
use flott_network::{Barrier, Sender};
use flott_operators::program::Head;
use flott_operators::{Control, RestoredState, TaskContext, TaskSnapshot};
use flott_state::SnapshotMode;

use crate::gate::{Input, InputGate};
use crate::upload::FinishedSnapshot;

/// Entries of frozen state that are written between two steps: about half a millisecond.
const DRAIN_ENTRIES_MAX: usize = 2_000;

/// Inputs that are processed in one step, before the other subtasks of the slot get their turn.
const INPUTS_PER_STEP_MAX: usize = 16;

/// How long a step may go on taking inputs: user code may be slow, and barriers wait for the end of a step.
const STEP_TIME_MAX: Duration = Duration::from_millis(2);

/// What a subtask tells its worker.
#[derive(Debug)]
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
    /// There was no room in an output.
    BackPressured,
}

/// Where checkpoints of keyed state build on each other.
struct Chain {
    files: Vec<FileHandle>,
    /// The last checkpoint that was snapshotted, and its files once they are written.
    last: CheckpointId,
    pending: Option<(CheckpointId, Vec<FileHandle>)>,
    /// Whether the next snapshot must be whole. Changes count from the last snapshot, so one can build only on that,
    /// and only when it is known to be complete.
    needs_base: bool,
    is_incremental: bool,
}

struct PendingSnapshot {
    barrier: Barrier,
    task: TaskSnapshot,
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
    snapshot: Option<PendingSnapshot>,
    reports: Vec<Report>,
    has_unflushed: bool,
    has_ended: bool,
    is_finished: bool,
    /// Nothing is processed after the barrier of a stop.
    is_stopped: bool,
    no_more_splits: bool,
    has_requested_split: bool,
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
        let is_incremental = cx.config.get(flott_core::config::options::CHECKPOINT_INCREMENTAL)?;
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
            snapshot: None,
            reports: Vec::new(),
            has_unflushed: false,
            has_ended: false,
            is_finished: false,
            is_stopped: false,
            no_more_splits: false,
            has_requested_split: false,
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
        let poll = if self.is_source() && !self.is_source_waiting { self.next_poll } else { Timestamp::MAX };
        self.next_time.min(if self.is_stopped || self.has_ended { Timestamp::MAX } else { poll })
    }

    fn control(&mut self, mut control: Control<'_>) -> Result<()> {
        match &mut self.head {
            Head::Source(source) => source.control(&mut control),
            Head::Input(task) => task.control(&mut control),
        }
    }

    /// Opens the chain with what was saved.
    pub fn open(&mut self, mut restored: RestoredState) -> Result<()> {
        self.control(Control::Open(&mut restored))?;
        self.reports.push(Report::Status(TaskStatus::Running));
        Ok(())
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
        let mut step = if self.drain(DRAIN_ENTRIES_MAX)? { Step::Progress } else { Step::Idle };
        let until = flott_env::monotonic() + STEP_TIME_MAX;
        for _ in 0..INPUTS_PER_STEP_MAX {
            if !self.outputs.iter().all(Sender::is_writable) {
                return Ok(if step == Step::Progress { step } else { Step::BackPressured });
            }
            let progressed = if self.is_source() { self.poll_source(now)? } else { self.take_input()? };
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

    fn take_input(&mut self) -> Result<bool> {
        let Some(input) = self.gate.poll() else { return Ok(false) };
        match input {
            Input::Batch(payload) => {
                let Head::Input(task) = &mut self.head else { return Ok(false) };
                task.process(payload)?;
            }
            Input::Watermark(watermark) => {
                self.cx.counters.watermark.set(watermark);
                self.control(Control::Watermark(watermark))?;
            }
            Input::Idle => self.control(Control::Idle)?,
            Input::Active => self.control(Control::Active)?,
            Input::Barrier(barrier, alignment) => self.barrier(barrier, alignment)?,
            Input::EndOfInput => self.end()?,
        }
        Ok(true)
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
        self.barrier(barrier, Duration::ZERO)
    }

    fn barrier(&mut self, barrier: Barrier, alignment: Duration) -> Result<()> {
        // The one before was given up if it is still being written: finish with it first.
        while self.drain(usize::MAX)? {}
        let began = flott_env::monotonic();
        let is_savepoint = matches!(barrier.kind, CheckpointKind::Savepoint { .. });
        let needs_base = is_savepoint || self.chain.needs_base || !self.chain.is_incremental || self.chain.is_long();
        let mode = if needs_base { SnapshotMode::Full } else { SnapshotMode::Incremental };
        let mut task = TaskSnapshot::new(mode);
        self.chain.last = barrier.checkpoint;
        self.chain.needs_base = true;
        if let CheckpointKind::Savepoint { stop: true, .. } = barrier.kind {
            // The restored job begins here: nothing may come out behind this barrier.
            self.is_stopped = true;
        }
        self.control(Control::Barrier(&barrier, &mut task))?;
        self.has_unflushed = false;
        self.cx.counters.state_bytes.set(i64::try_from(task.state_bytes).unwrap_or(i64::MAX));
        let sync = flott_env::monotonic().saturating_sub(began);
        self.snapshot = Some(PendingSnapshot { barrier, task, sync, alignment, began });
        if self.snapshot.as_ref().is_some_and(|snapshot| !snapshot.task.is_pending) {
            self.finish_snapshot();
        }
        Ok(())
    }

    /// Writes frozen state; whether there was any left to write.
    fn drain(&mut self, entries_max: usize) -> Result<bool> {
        let Some(mut snapshot) = self.snapshot.take() else { return Ok(false) };
        snapshot.task.entries_max = entries_max;
        snapshot.task.is_pending = false;
        self.control(Control::Drain(&mut snapshot.task))?;
        let is_pending = snapshot.task.is_pending;
        self.snapshot = Some(snapshot);
        if !is_pending {
            self.finish_snapshot();
        }
        Ok(true)
    }

    fn finish_snapshot(&mut self) {
        let Some(snapshot) = self.snapshot.take() else { return };
        let PendingSnapshot { barrier, task, sync, alignment, began } = snapshot;
        let savepoint_dir = match barrier.kind {
            CheckpointKind::Savepoint { dir, .. } => Some(dir),
            CheckpointKind::Checkpoint | CheckpointKind::Final => None,
        };
        let is_base = task.mode == SnapshotMode::Full;
        self.reports.push(Report::Snapshot(Box::new(FinishedSnapshot {
            subtask: self.cx.subtask,
            checkpoint: barrier.checkpoint,
            chain: if is_base { Vec::new() } else { self.chain.files.clone() },
            bytes: if task.writer.is_empty() { Vec::new() } else { task.writer.into_bytes() },
            keyed_operators: task.keyed_operators.into_iter().collect(),
            operator_states: task.operator_states,
            savepoint_dir,
            sync,
            alignment,
            began,
        })));
    }

    /// The files of a checkpoint have been written. Later ones build on them once it is complete.
    pub fn uploaded(&mut self, checkpoint: CheckpointId, files: Vec<FileHandle>) {
        self.chain.pending = Some((checkpoint, files));
    }

    /// The checkpoint is durable.
    pub fn completed(&mut self, checkpoint: CheckpointId, is_savepoint: bool, is_last: bool) -> Result<()> {
        match self.chain.pending.take() {
            // A savepoint belongs to the user, so nothing may build on it.
            Some((pending, files)) if pending == checkpoint && checkpoint == self.chain.last && !is_savepoint => {
                self.chain.files = files;
                self.chain.needs_base = false;
            }
            _ => self.chain.needs_base = true,
        }
        self.control(Control::Commit(checkpoint))?;
        if is_last {
            self.is_finished = true;
            self.reports.push(Report::Status(TaskStatus::Finished));
        }
        Ok(())
    }

    /// The checkpoint will not complete: what changed since the last one must not be forgotten.
    pub fn aborted(&mut self) {
        self.chain.pending = None;
        self.chain.needs_base = true;
    }
}

impl Chain {
    /// Whether the changes have outgrown what they change, so that a new base is cheaper.
    fn is_long(&self) -> bool {
        let Some((base, changes)) = self.files.split_first() else { return false };
        let changed: u64 = changes.iter().map(|file| file.bytes).sum();
        changed > base.bytes || changes.len() >= 64
    }
}
