//! Rows that wait for something that comes later, such as the answer of a service.
//!
//! What several chunks wait for is under way at a time. Chunks leave in the order in which they came, and watermarks keep their
//! place among them. What is under way at a barrier is state: it is asked for again after a restore, so something may be asked
//! twice for a row, and its answer counts once.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use flott_checkpoint::Redistribution;
use flott_chunk::Chunk;
use flott_connector_spi::{IoHandle, Waker};
use flott_core::time::Timestamp;
use flott_core::{Error, Result};
use flott_operators::operator::{OpenContext, OperatorSnapshot};
use flott_operators::push::Control;

use crate::operator::Emit;

/// The name of the operator state with the rows that are under way.
const PENDING: &str = "pending";

/// How soon the operator asks whether something has come, should nobody wake it.
const PAUSE_MS: i64 = 20;

/// Something that is asked for.
pub(crate) struct Request<A> {
    /// What, for messages.
    pub name: String,
    /// The answer.
    pub later: Pin<Box<dyn Future<Output = Result<A>> + Send>>,
}

/// How much may be under way before one waits for the first of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub rows: usize,
    pub requests: usize,
}

impl Bounds {
    /// Nothing may.
    pub(crate) const NONE: Self = Self { rows: 0, requests: 0 };
}

/// Chunks, each with the question `Q` whose answers are an `A` each.
pub(crate) struct UnderWay<Q, A> {
    io: IoHandle,
    waker: Waker,
    queue: VecDeque<Entry<Q, A>>,
    rows: usize,
    requests: usize,
    /// Rows that were under way at a checkpoint, with their splits.
    restored: Vec<(u32, Chunk)>,
    /// Whether the watermark at hand waits in the queue.
    is_held: bool,
}

enum Entry<Q, A> {
    Rows { chunk: Chunk, split: u32, question: Q, requests: usize, answers: Arc<Answers<A>> },
    Watermark(Timestamp),
}

impl<Q, A: Send + 'static> UnderWay<Q, A> {
    /// Nothing yet. Answers come in on `io`, and then `waker` is called.
    pub(crate) fn new(io: IoHandle, waker: Waker) -> Self {
        Self { io, waker, queue: VecDeque::new(), rows: 0, requests: 0, restored: Vec::new(), is_held: false }
    }

    /// Takes back what was under way at a checkpoint.
    pub(crate) fn open(&mut self, cx: &mut OpenContext<'_>) -> Result<()> {
        self.restored = cx.restored.take_state(cx.operator, PENDING)?;
        Ok(())
    }

    /// What was, with its splits: to be asked for before anything else is.
    pub(crate) fn take_restored(&mut self) -> Vec<(u32, Chunk)> {
        std::mem::take(&mut self.restored)
    }

    /// A chunk comes, which waits for all of these requests.
    pub(crate) fn push(&mut self, chunk: Chunk, split: u32, question: Q, requests: Vec<Request<A>>) {
        let answers = Arc::new(Answers::new(requests.len()));
        self.rows += chunk.len();
        self.requests += requests.len();
        let (count, own) = (requests.len(), Arc::clone(&answers));
        self.queue.push_back(Entry::Rows { chunk, split, question, requests: count, answers: own });
        for (at, Request { name, later }) in requests.into_iter().enumerate() {
            // Whatever becomes of the request, something is put in its place.
            let guard = Guard { answers: Arc::clone(&answers), waker: self.waker.clone(), name, at };
            flott_env::spawn_on(&self.io, async move {
                let answer = later.await;
                guard.done(answer);
            });
        }
    }

    /// Lets `finish` send what has its answers, from the front on; waits until no more than `most` is under way.
    pub(crate) fn release(
        &mut self,
        most: Bounds,
        out: &mut Emit<'_>,
        mut finish: impl FnMut(Chunk, Q, Vec<A>, &mut Emit<'_>) -> Result<()>,
    ) -> Result<()> {
        let own = out.split();
        while let Some(entry) = self.queue.front() {
            match entry {
                Entry::Watermark(watermark) => {
                    let watermark = *watermark;
                    self.queue.pop_front();
                    out.control(&mut Control::Watermark(watermark))?;
                }
                Entry::Rows { answers, .. } => {
                    let waits = self.rows > most.rows || self.requests > most.requests;
                    let Some(answers) = answers.take(waits) else { break };
                    let Some(Entry::Rows { chunk, split, question, requests, .. }) = self.queue.pop_front() else {
                        break;
                    };
                    self.rows -= chunk.len();
                    self.requests -= requests;
                    out.set_split(split);
                    let sent = answers.and_then(|answers| finish(chunk, question, answers, out));
                    out.set_split(own);
                    sent?;
                }
            }
        }
        Ok(())
    }

    /// Keeps a watermark behind the rows before it, if there are any.
    pub(crate) fn hold(&mut self, watermark: Timestamp) {
        self.is_held = !self.queue.is_empty();
        match self.queue.back_mut() {
            Some(Entry::Watermark(last)) => *last = watermark,
            Some(Entry::Rows { .. }) => self.queue.push_back(Entry::Watermark(watermark)),
            None => {}
        }
    }

    /// The watermark that is passed on now.
    pub(crate) fn outgoing(&mut self, watermark: Timestamp) -> Option<Timestamp> {
        (!std::mem::take(&mut self.is_held)).then_some(watermark)
    }

    /// When to look whether something has come.
    pub(crate) fn next_time(&self, now: Timestamp) -> Timestamp {
        if self.queue.is_empty() { Timestamp::MAX } else { now.saturating_add(PAUSE_MS) }
    }

    /// Adds what is under way to a checkpoint.
    pub(crate) fn snapshot(&self, snapshot: &mut OperatorSnapshot<'_>) -> Result<()> {
        let under_way = self.queue.iter().filter_map(|entry| match entry {
            Entry::Rows { chunk, split, .. } => Some((*split, chunk.clone())),
            Entry::Watermark(_) => None,
        });
        let all: Vec<(u32, Chunk)> = under_way.chain(self.restored.iter().cloned()).collect();
        snapshot.add(PENDING, Redistribution::Split, &all)
    }
}

/// Where the answers of a chunk come in.
struct Answers<A> {
    arrived: Mutex<Vec<Option<Result<A>>>>,
    all: Condvar,
}

impl<A> Answers<A> {
    fn new(requests: usize) -> Self {
        let arrived = (0..requests).map(|_| None).collect();
        Self { arrived: Mutex::new(arrived), all: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Option<Result<A>>>> {
        self.arrived.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts an answer in its place, if that has none. What was taken already has no places any more.
    fn put(&self, at: usize, answer: impl FnOnce() -> Result<A>) {
        if let Some(place) = self.lock().get_mut(at).filter(|place| place.is_none()) {
            *place = Some(answer());
        }
        self.all.notify_all();
    }

    /// All of them, if they are there, or when they are.
    fn take(&self, waits: bool) -> Option<Result<Vec<A>>> {
        let mut arrived = self.lock();
        while arrived.iter().any(Option::is_none) {
            if !waits {
                return None;
            }
            arrived = self.all.wait(arrived).unwrap_or_else(PoisonError::into_inner);
        }
        Some(arrived.drain(..).flatten().collect())
    }
}

/// Says that a request has failed if its task ends without an answer.
struct Guard<A> {
    answers: Arc<Answers<A>>,
    waker: Waker,
    name: String,
    at: usize,
}

impl<A> Guard<A> {
    fn done(self, answer: Result<A>) {
        self.answers.put(self.at, || answer.map_err(|error| error.context(&self.name)));
    }
}

impl<A> Drop for Guard<A> {
    fn drop(&mut self) {
        let failed = || Err(Error::user_code(format!("{}: the call panicked, or was cancelled", self.name)));
        self.answers.put(self.at, failed);
        self.waker.wake();
    }
}
