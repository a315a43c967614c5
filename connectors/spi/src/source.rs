//! Where records come from.

use flott_core::time::Timestamp;
use flott_core::{Batch, Data, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::io::{IoHandle, Waker};

/// Whether a source ends by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Boundedness {
    /// It has a last record.
    Bounded,
    /// It goes on until the job is stopped.
    Unbounded,
}

/// What the listing of splits may use.
pub struct DiscoverContext {
    /// Where I/O runs.
    pub io: IoHandle,
    /// How many readers there are: a hint for how finely to split.
    pub parallelism: u32,
}

/// What a reader may use.
#[derive(Clone)]
pub struct ReaderContext {
    /// Where I/O runs.
    pub io: IoHandle,
    /// To be called when a pending reader can go on.
    pub waker: Waker,
    /// Which of the readers this is.
    pub subtask: u32,
    /// How many readers there are.
    pub parallelism: u32,
}

/// What a call of [`SplitReader::poll`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadStatus {
    /// It appended rows, or made progress; call again at once.
    Progress,
    /// It has splits, and nothing to read right now; the waker will be called.
    Pending,
    /// It has splits, and nothing to read before this wall-clock time in milliseconds since 1970.
    PendingUntil(Timestamp),
    /// All its splits are read: it needs another one.
    NeedsSplit,
}

/// A description of where records come from; one lives in the graph, and every subtask makes a reader of it.
pub trait Source: Send + Sync + 'static {
    /// What it produces.
    type Item: Data;
    /// A part of it that one reader reads, with the position to read from.
    type Split: Serialize + DeserializeOwned + Clone + Send + 'static;

    /// Whether it ends by itself.
    fn boundedness(&self) -> Boundedness;

    /// Lists its splits, in the order in which they should be read. Called once at a start without state, on one
    /// subtask; never after a restore.
    fn discover(&self, cx: &DiscoverContext) -> Result<Vec<Self::Split>>;

    /// Makes one reader.
    fn reader(&self, cx: ReaderContext) -> Result<Box<dyn SplitReader<Self::Item, Self::Split>>>;
}

/// Reads splits. All methods are called on one thread and must not wait.
pub trait SplitReader<T, S>: Send {
    /// Gives it one more split, new or restored.
    fn add_split(&mut self, split: S) -> Result<()>;

    /// Appends up to `rows_max` rows of one split to the empty `batch`, and sets `batch.split` to a number
    /// that tells this reader's splits apart. For the same split, the same calls give the same
    /// batches, so that watermarks fall in the same places after a restore.
    fn poll(&mut self, batch: &mut Batch<T>, rows_max: usize) -> Result<ReadStatus>;

    /// Its unfinished splits with their positions just behind the last row that `poll` returned.
    fn snapshot(&mut self) -> Result<Vec<S>>;

    /// The numbers (as in `batch.split`) of splits that it has begun and not finished: the watermark is the
    /// minimum over these.
    fn active_splits(&self) -> Vec<u32>;

    /// Malformed records that it skipped by policy so far.
    fn skipped(&self) -> u64 {
        0
    }
}
