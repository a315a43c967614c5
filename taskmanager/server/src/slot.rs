//! The slot executor: one thread that steps the subtasks of a slot, most downstream first.
//!
//! A step takes a few batches, so that all subtasks get their turn and batches are still in the
//! cache when the next subtask takes them. When nobody can go on, everybody's buffered rows are sent
//! on; when there is nothing to do even then, the thread parks until a channel, a source, the worker
//! or the clock wakes it.

use std::sync::mpsc;
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
    /// Stop, and give keyed state away as it was at this checkpoint.
    Release(CheckpointId),
    /// Stop at once.
    Cancel,
}

/// What a slot tells its worker.
pub enum SlotEvent {
    /// A subtask has something to tell.
    Report(SubtaskId, Report),
    /// The splits of a source.
    Discovered(VertexId, Vec<Vec<u8>>),
    /// A subtask failed; the slot has stopped, and keeps its state until it is asked for it or cancelled.
    Failed(SubtaskId, Error),
    /// The slot stopped, and this is its keyed state.
    Released {
        /// The checkpoint that it was taken back to.
        checkpoint: CheckpointId,
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
    events: &'a dyn Fn(SlotEvent),
}

fn run(
    signal: &Signal,
    makes: Vec<(SubtaskId, MakeSubtask)>,
    orders: &mpsc::Receiver<Order>,
    events: &dyn Fn(SlotEvent),
) {
    let mut slot = Slot { subtasks: Vec::new(), events };
    let end = slot.make_all(makes).and_then(|()| slot.run(signal, orders)).unwrap_or_else(|(subtask, error)| {
        events(SlotEvent::Failed(subtask, error));
        await_end(orders)
    });
    match end {
        End::Release(checkpoint) => {
            let held = slot.release(checkpoint);
            events(SlotEvent::Released { checkpoint, held });
        }
        End::Stop => {
            let unfinished = slot.subtasks.iter().filter(|s| !s.is_finished()).map(|s| s.cx.subtask).collect();
            events(SlotEvent::Stopped { unfinished });
        }
    }
}

/// How a slot ends.
enum End {
    Stop,
    Release(CheckpointId),
}

/// What failed because of another worker still has its state, which the next generation may want.
fn await_end(orders: &mpsc::Receiver<Order>) -> End {
    loop {
        match orders.recv() {
            Ok(Order::Release(checkpoint)) => return End::Release(checkpoint),
            Ok(Order::Cancel) | Err(_) => return End::Stop,
            Ok(_) => {}
        }
    }
}

impl Slot<'_> {
    fn make_all(&mut self, makes: Vec<(SubtaskId, MakeSubtask)>) -> Result<(), (SubtaskId, Error)> {
        for (subtask, make) in makes {
            self.subtasks.push(guard(make).map_err(|error| (subtask, error))?);
        }
        // Most downstream first: vertices are in topological order.
        self.subtasks.sort_by_key(|subtask| std::cmp::Reverse(subtask.cx.subtask.vertex));
        Ok(())
    }

    fn run(&mut self, signal: &Signal, orders: &mpsc::Receiver<Order>) -> Result<End, (SubtaskId, Error)> {
        self.report();
        let timeout = self.subtasks.first().and_then(|subtask| subtask.cx.config.get(options::BUFFER_TIMEOUT).ok());
        let timeout = timeout.unwrap_or(Duration::from_millis(5));
        let mut last_flush = flott_env::monotonic();
        let (mut last_maintenance, mut has_more) = (last_flush, false);
        let mut last_time: Timestamp = 0;
        loop {
            while let Ok(order) = orders.try_recv() {
                match order {
                    Order::Cancel => return Ok(End::Stop),
                    Order::Release(checkpoint) => return Ok(End::Release(checkpoint)),
                    order => self.obey(&order)?,
                }
            }
            if self.subtasks.iter().all(Subtask::is_finished) {
                self.report();
                return Ok(End::Stop);
            }
            let now = flott_env::now_ms();
            if now != last_time {
                last_time = now;
                self.each(|subtask| subtask.on_time(now))?;
            }
            let mut progressed = self.step_all(now)?;
            let monotonic = flott_env::monotonic();
            if !progressed || monotonic.saturating_sub(last_flush) >= timeout {
                last_flush = monotonic;
                let mut flushed = false;
                self.each(|subtask| subtask.flush().map(|any| flushed |= any))?;
                progressed |= flushed;
            }
            if has_more || monotonic.saturating_sub(last_maintenance) >= MAINTENANCE_INTERVAL {
                last_maintenance = monotonic;
                has_more = false;
                self.each(|subtask| subtask.maintain().map(|more| has_more |= more))?;
                progressed |= has_more;
            }
            self.report();
            if !progressed {
                self.park(signal, now);
            }
        }
    }

    fn step_all(&mut self, now: Timestamp) -> Result<bool, (SubtaskId, Error)> {
        let mut progressed = false;
        let mut before = flott_env::monotonic();
        for subtask in &mut self.subtasks {
            let step = guarded(subtask, |subtask| subtask.step(now))?;
            let after = flott_env::monotonic();
            if step == Step::Progress {
                progressed = true;
                subtask.cx.counters.busy_nanos.add_time(after.saturating_sub(before));
            }
            subtask.is_back_pressured = step == Step::BackPressured;
            before = after;
        }
        Ok(progressed)
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

    fn obey(&mut self, order: &Order) -> Result<(), (SubtaskId, Error)> {
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
            Order::Cancel | Order::Release(_) => Ok(()),
        }
    }

    /// Takes the keyed state of all subtasks back to a checkpoint. A subtask that cannot give its own has none left:
    /// the next generation reads it from files.
    fn release(&mut self, checkpoint: CheckpointId) -> HeldState {
        let mut released = ReleasedState::new(checkpoint);
        for subtask in std::mem::take(&mut self.subtasks) {
            let id = subtask.cx.subtask;
            // It is dropped inside the guard: that runs the user's code too.
            let release = || {
                let mut subtask = subtask;
                subtask.release(&mut released)
            };
            if let Err(error) = guard(release) {
                tracing::warn!(subtask = %id, %error, "its state cannot be kept");
            }
        }
        released.held
    }

    fn each(&mut self, mut act: impl FnMut(&mut Subtask) -> Result<()>) -> Result<(), (SubtaskId, Error)> {
        self.subtasks.iter_mut().try_for_each(|subtask| guarded(subtask, &mut act))
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

fn guarded<T>(subtask: &mut Subtask, act: impl FnOnce(&mut Subtask) -> Result<T>) -> Result<T, (SubtaskId, Error)> {
    let id = subtask.cx.subtask;
    guard(|| act(subtask)).map_err(|error| (id, error))
}
