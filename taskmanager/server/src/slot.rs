//! The slot executor: one thread that steps the subtasks of a slot, most downstream first.
//!
//! A step takes a few batches, so that all subtasks get their turn and batches are still in the
//! cache when the next subtask takes them. When nobody can go on, everybody's buffered rows are sent
//! on; when there is nothing to do even then, the thread parks until a channel, a source, the worker
//! or the clock wakes it.
//!
//! A subtask that fails is set aside, with its state and its ends of channels, and the others go on: those that the
//! failure reaches are stopped by the worker, those that it does not reach are not stopped at all.

use std::collections::BTreeSet;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use flott_checkpoint::FileHandle;
use flott_core::config::options;
use flott_core::ids::{CheckpointId, SubtaskId, VertexId};
use flott_core::time::Timestamp;
use flott_core::{Error, Result};
use flott_network::{Barrier, Signal};
use flott_operators::{HeldState, ReleasedState};

use crate::panics::guard;
use crate::subtask::{Report, Step, Subtask};
use crate::upload::RunKey;

/// How often keyed state is looked after, at least.
const MAINTENANCE_INTERVAL: Duration = Duration::from_millis(5);

/// What a worker asks of a slot.
#[derive(Debug)]
pub enum Order {
    /// List a source's splits.
    Discover(VertexId),
    /// Splits for a source.
    AddSplits {
        /// The subtask.
        subtask: SubtaskId,
        /// Encoded splits.
        splits: Vec<Vec<u8>>,
        /// Whether none will follow.
        is_last: bool,
    },
    /// Sources send this barrier.
    Trigger(Barrier),
    /// A subtask's part of a checkpoint lies in these files.
    Uploaded {
        /// The subtask.
        subtask: SubtaskId,
        /// The checkpoint.
        checkpoint: CheckpointId,
        /// All its state files, in order.
        files: Vec<FileHandle>,
        /// All runs of states that are on disk.
        runs: Vec<(RunKey, FileHandle)>,
    },
    /// A checkpoint is durable.
    Completed {
        /// Which.
        checkpoint: CheckpointId,
        /// Whether it is a savepoint.
        is_savepoint: bool,
        /// Whether the job ends with it.
        is_last: bool,
    },
    /// A checkpoint will not complete.
    Aborted(CheckpointId),
    /// Stop subtasks, and give their keyed state away as it was at a checkpoint.
    Release(Arc<Release>),
    /// Stop at once.
    Cancel,
}

/// Which subtasks stop, and what becomes of their state.
#[derive(Debug)]
pub struct Release {
    /// The checkpoint to go back to; without one there is nothing to keep.
    pub checkpoint: Option<CheckpointId>,
    /// Those that do not stop, in whatever slot.
    pub carried: BTreeSet<SubtaskId>,
    /// Those that failed of themselves: nobody trusts their state.
    pub failed: BTreeSet<SubtaskId>,
}

/// What a slot tells its worker.
pub enum SlotEvent {
    /// A subtask has something to tell.
    Report(SubtaskId, Report),
    /// The splits of a source.
    Discovered(VertexId, Vec<Vec<u8>>),
    /// A subtask failed. The slot keeps its state until it is asked for it or cancelled.
    Failed(SubtaskId, Error),
    /// Subtasks have stopped as they were asked to, and this is their keyed state. A slot that has no others has ended.
    Released {
        /// The checkpoint that it was taken back to.
        checkpoint: Option<CheckpointId>,
        /// What could be.
        held: HeldState,
    },
    /// The slot stopped because it was asked to, or all its subtasks finished.
    Stopped {
        /// Subtasks that had not finished.
        unfinished: Vec<SubtaskId>,
    },
}

/// Makes a subtask, on the thread of its slot: opening a chain may take time.
pub type MakeSubtask = Box<dyn FnOnce() -> Result<Subtask> + Send>;

/// A running slot.
pub struct SlotHandle {
    orders: mpsc::Sender<Order>,
    signal: Signal,
}

impl SlotHandle {
    /// Starts the thread of slot `number`. Events come from `events`, which may block.
    pub fn start(
        number: u32,
        signal: Signal,
        makes: Vec<(SubtaskId, MakeSubtask)>,
        events: impl Fn(SlotEvent) + Send + 'static,
    ) -> Result<Self> {
        let (orders, receiver) = mpsc::channel();
        let slot_signal = signal.clone();
        std::thread::Builder::new()
            .name(format!("slot-{number}"))
            .spawn(move || run(&slot_signal, makes, &receiver, &events))
            .map_err(|error| Error::system(format!("starting the thread of slot {number}: {error}")))?;
        Ok(Self { orders, signal })
    }

    /// Asks for something. A slot that has stopped ignores it.
    pub fn order(&self, order: Order) {
        if self.orders.send(order).is_ok() {
            self.signal.notify();
        }
    }
}

impl Drop for SlotHandle {
    /// Nobody is left to obey: the thread ends after the step that it is in. It is not waited for, since a user's
    /// function may take its time; what it still does lies in a dead generation.
    fn drop(&mut self) {
        self.order(Order::Cancel);
    }
}

struct Slot<'a> {
    subtasks: Vec<Subtask>,
    /// Those that failed, and keep what they have until it is known what becomes of it.
    failed: Vec<Subtask>,
    events: &'a dyn Fn(SlotEvent),
}

fn run(
    signal: &Signal,
    makes: Vec<(SubtaskId, MakeSubtask)>,
    orders: &mpsc::Receiver<Order>,
    events: &dyn Fn(SlotEvent),
) {
    let mut slot = Slot { subtasks: Vec::new(), failed: Vec::new(), events };
    let has_unmade = slot.make_all(makes);
    if let End::Stopped = slot.run(signal, orders, has_unmade) {
        let left = slot.subtasks.iter().chain(&slot.failed);
        let unfinished = left.filter(|subtask| !subtask.is_finished()).map(|subtask| subtask.cx.subtask).collect();
        events(SlotEvent::Stopped { unfinished });
    }
}

/// How a slot ends.
enum End {
    Stopped,
    /// It has given everything away, and said so.
    Released,
}

impl Slot<'_> {
    /// Returns whether some could not be made.
    fn make_all(&mut self, makes: Vec<(SubtaskId, MakeSubtask)>) -> bool {
        let count = makes.len();
        for (subtask, make) in makes {
            match guard(make) {
                Ok(made) => self.subtasks.push(made),
                Err(error) => (self.events)(SlotEvent::Failed(subtask, error)),
            }
        }
        // Most downstream first: vertices are in topological order.
        self.subtasks.sort_by_key(|subtask| std::cmp::Reverse(subtask.cx.subtask.vertex));
        self.subtasks.len() < count
    }

    /// Runs until it is told to stop, or has nothing left. If it `has_unmade` subtasks, it waits to be told in any case.
    fn run(&mut self, signal: &Signal, orders: &mpsc::Receiver<Order>, has_unmade: bool) -> End {
        self.report();
        let timeout = self.subtasks.first().and_then(|subtask| subtask.cx.config.get(options::BUFFER_TIMEOUT).ok());
        let timeout = timeout.unwrap_or(Duration::from_millis(5));
        let mut last_flush = flott_env::monotonic();
        let (mut last_maintenance, mut has_more) = (last_flush, false);
        let mut last_time: Timestamp = 0;
        loop {
            while let Ok(order) = orders.try_recv() {
                match order {
                    Order::Cancel => return End::Stopped,
                    Order::Release(release) => {
                        let held = self.release(&release);
                        (self.events)(SlotEvent::Released { checkpoint: release.checkpoint, held });
                        if self.subtasks.is_empty() && self.failed.is_empty() {
                            return End::Released;
                        }
                    }
                    order => self.obey(&order),
                }
            }
            if self.failed.is_empty() && !has_unmade && self.subtasks.iter().all(Subtask::is_finished) {
                self.report();
                return End::Stopped;
            }
            let now = flott_env::now_ms();
            if now != last_time {
                last_time = now;
                self.each(|subtask| subtask.on_time(now));
            }
            let mut progressed = self.step_all(now);
            let monotonic = flott_env::monotonic();
            if !progressed || monotonic.saturating_sub(last_flush) >= timeout {
                last_flush = monotonic;
                let mut flushed = false;
                self.each(|subtask| subtask.flush().map(|any| flushed |= any));
                progressed |= flushed;
            }
            if has_more || monotonic.saturating_sub(last_maintenance) >= MAINTENANCE_INTERVAL {
                last_maintenance = monotonic;
                has_more = false;
                self.each(|subtask| subtask.maintain().map(|more| has_more |= more));
                progressed |= has_more;
            }
            self.report();
            if !progressed {
                self.park(signal, now);
            }
        }
    }

    fn step_all(&mut self, now: Timestamp) -> bool {
        let mut progressed = false;
        let mut before = flott_env::monotonic();
        self.each(|subtask| {
            let step = subtask.step(now)?;
            let after = flott_env::monotonic();
            if step == Step::Progress {
                progressed = true;
                subtask.cx.counters.busy_nanos.add_time(after.saturating_sub(before));
            }
            subtask.is_back_pressured = step == Step::BackPressured;
            before = after;
            Ok(())
        });
        progressed
    }

    fn park(&mut self, signal: &Signal, now: Timestamp) {
        let deadline = self.subtasks.iter().map(Subtask::next_deadline).min().unwrap_or(Timestamp::MAX);
        let wait = deadline.saturating_sub(now).clamp(0, 1000);
        let before = flott_env::monotonic();
        signal.wait_until(Some(Duration::from_millis(wait.unsigned_abs())));
        let parked = flott_env::monotonic().saturating_sub(before);
        for subtask in &mut self.subtasks {
            if subtask.is_back_pressured {
                subtask.cx.counters.back_pressured_nanos.add_time(parked);
            } else {
                subtask.cx.counters.idle_nanos.add_time(parked);
            }
        }
    }

    fn obey(&mut self, order: &Order) {
        match order {
            Order::Discover(vertex) => {
                let events = self.events;
                self.each(|subtask| {
                    if subtask.cx.subtask.vertex == *vertex {
                        events(SlotEvent::Discovered(*vertex, subtask.discover()?));
                    }
                    Ok(())
                })
            }
            Order::AddSplits { subtask: id, splits, is_last } => self
                .each(|subtask| if subtask.cx.subtask == *id { subtask.add_splits(splits, *is_last) } else { Ok(()) }),
            Order::Trigger(barrier) => self.each(|subtask| subtask.trigger(barrier.clone())),
            Order::Uploaded { subtask: id, checkpoint, files, runs } => self.each(|subtask| {
                if subtask.cx.subtask == *id {
                    subtask.uploaded(*checkpoint, files.clone(), runs.clone());
                }
                Ok(())
            }),
            Order::Completed { checkpoint, is_savepoint, is_last } => {
                self.each(|subtask| subtask.completed(*checkpoint, *is_savepoint, *is_last))
            }
            Order::Aborted(checkpoint) => self.each(|subtask| {
                subtask.aborted(*checkpoint);
                Ok(())
            }),
            Order::Cancel | Order::Release(_) => {}
        }
    }

    /// Ends subtasks, and takes their keyed state back to a checkpoint. A subtask that cannot give its own has none left:
    /// the next generation reads it from files.
    fn release(&mut self, release: &Release) -> HeldState {
        let mut released = ReleasedState::new(release.checkpoint.unwrap_or(0));
        let ends = |subtask: &mut Subtask| !release.carried.contains(&subtask.cx.subtask);
        let ended: Vec<Subtask> = self.subtasks.extract_if(.., ends).chain(self.failed.extract_if(.., ends)).collect();
        for subtask in ended {
            let id = subtask.cx.subtask;
            let is_wanted = release.checkpoint.is_some() && !release.failed.contains(&id);
            // It is dropped inside the guard: that runs the user's code too.
            let end = || {
                let mut subtask = subtask;
                if is_wanted { subtask.release(&mut released) } else { Ok(()) }
            };
            if let Err(error) = guard(end) {
                tracing::warn!(subtask = %id, %error, "its state cannot be kept");
            }
        }
        released.held
    }

    /// Does something with every subtask. One that fails of it is set aside.
    fn each(&mut self, mut act: impl FnMut(&mut Subtask) -> Result<()>) {
        let mut index = 0;
        while let Some(subtask) = self.subtasks.get_mut(index) {
            match guard(|| act(subtask)) {
                Ok(()) => index += 1,
                Err(error) => {
                    let subtask = self.subtasks.remove(index);
                    (self.events)(SlotEvent::Failed(subtask.cx.subtask, error));
                    self.failed.push(subtask);
                }
            }
        }
    }

    fn report(&mut self) {
        for subtask in &mut self.subtasks {
            let id = subtask.cx.subtask;
            for report in subtask.take_reports() {
                (self.events)(SlotEvent::Report(id, report));
            }
        }
    }
}

#[cfg(test)]
mod tests;
