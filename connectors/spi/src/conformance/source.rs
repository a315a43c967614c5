//! Replay, restart between every two steps, rescaling, malformed records.

use std::collections::VecDeque;
use std::fmt::Debug;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use flott_core::{Batch, Error, Result};

use crate::{DiscoverContext, IoHandle, ReadStatus, ReaderContext, Source, SplitReader, Waker};

/// How long a pending reader may take to call its waker.
const WAKE_TIMEOUT: Duration = Duration::from_secs(20);

/// Small batches, so that there are many places to restart at.
const ROWS_MAX: usize = 3;

/// Checks that `source` gives exactly `expected`, in this order if one reader reads it:
///
/// - in the same batches every time;
/// - if reading is interrupted after any batch, and goes on with new readers from a snapshot;
/// - also if there are more or fewer readers than before.
pub fn check_source<S>(source: &S, io: &IoHandle, expected: &[S::Item])
where
    S: Source,
    S::Item: PartialEq + Debug,
{
    let batches = run(source, io, 1, None);
    let rows: Vec<S::Item> = batches.iter().flatten().cloned().collect();
    assert_eq!(rows, expected, "read by one reader");
    assert_eq!(run(source, io, 1, None), batches, "the batches of a second reading differ");

    for stop in 0..=batches.len() {
        let rows: Vec<S::Item> = run(source, io, 1, Some((stop, 1))).into_iter().flatten().collect();
        assert_eq!(rows, expected, "interrupted after {stop} batches");
    }
    for (before, after) in [(1, 2), (2, 1), (2, 3), (3, 2)] {
        for stop in 0..=batches.len() {
            let rows: Vec<S::Item> = run(source, io, before, Some((stop, after))).into_iter().flatten().collect();
            let context = format!("rescaled from {before} to {after} after {stop} batches");
            assert_eq!(sorted(&rows), sorted(expected), "{context}");
        }
    }
}

/// Reads `source` to the error that it is expected to end with, and returns it with the rows before it.
pub fn read_until_error<S: Source>(source: &S, io: &IoHandle) -> (Vec<S::Item>, Error) {
    let mut rows = Vec::new();
    let mut execution = match Execution::start(source, io, 1) {
        Ok(execution) => execution,
        Err(error) => return (rows, error),
    };
    loop {
        match execution.next_batch() {
            Ok(Some(batch)) => rows.extend(batch.rows),
            Ok(None) => panic!("the source was read to its end without an error"),
            Err(error) => return (rows, error),
        }
    }
}

/// The batches of one reading; `stop` is after how many batches to go on with how many new readers.
fn run<S: Source>(source: &S, io: &IoHandle, parallelism: usize, stop: Option<(usize, usize)>) -> Vec<Vec<S::Item>> {
    let mut execution = Execution::start(source, io, parallelism).expect("starting");
    let mut batches = Vec::new();
    loop {
        if let Some((batches_max, after)) = stop
            && batches.len() == batches_max
            && execution.is_first
        {
            execution = execution.restart(after).expect("restarting");
        }
        match execution.next_batch().expect("reading") {
            Some(batch) => batches.push(batch.rows),
            None => break,
        }
    }
    batches
}

fn sorted<T: Debug>(rows: &[T]) -> Vec<String> {
    let mut rows: Vec<String> = rows.iter().map(|row| format!("{row:?}")).collect();
    rows.sort();
    rows
}

/// Readers of a source, with the splits that none of them has been given.
pub struct Execution<'a, S: Source> {
    source: &'a S,
    io: &'a IoHandle,
    readers: Vec<Reader<S>>,
    unassigned: VecDeque<S::Split>,
    next: usize,
    is_first: bool,
}

struct Reader<S: Source> {
    reader: Box<dyn SplitReader<S::Item, S::Split>>,
    wakes: Receiver<()>,
    is_finished: bool,
}

impl<'a, S: Source> Execution<'a, S> {
    /// Starts without state.
    pub fn start(source: &'a S, io: &'a IoHandle, parallelism: usize) -> Result<Self> {
        let splits = source.discover(&DiscoverContext { io: io.clone(), parallelism: parallelism as u32 })?;
        let mut execution = Self::open(source, io, parallelism)?;
        execution.unassigned = splits.into();
        Ok(execution)
    }

    fn open(source: &'a S, io: &'a IoHandle, parallelism: usize) -> Result<Self> {
        let mut readers = Vec::new();
        for subtask in 0..parallelism {
            let (sender, wakes) = sync_channel(1);
            let waker = Waker::new(move || _ = sender.try_send(()));
            let cx = ReaderContext { io: io.clone(), waker, subtask: subtask as u32, parallelism: parallelism as u32 };
            readers.push(Reader { reader: source.reader(cx)?, wakes, is_finished: false });
        }
        Ok(Self { source, io, readers, unassigned: VecDeque::new(), next: 0, is_first: true })
    }

    /// The splits that are not read to their end, as a checkpoint would hold them.
    pub fn snapshot(&mut self) -> Result<Vec<S::Split>> {
        let mut splits = Vec::new();
        for reader in &mut self.readers {
            splits.extend(reader.reader.snapshot()?);
        }
        Ok(splits)
    }

    /// Goes on with `parallelism` new readers from a snapshot.
    pub fn restart(mut self, parallelism: usize) -> Result<Self> {
        let splits = self.snapshot()?;
        let mut execution = Self::open(self.source, self.io, parallelism)?;
        execution.is_first = false;
        execution.unassigned = self.unassigned;
        for (index, split) in splits.iter().enumerate() {
            execution.readers[index % parallelism].reader.add_split(through_bytes(split))?;
        }
        Ok(execution)
    }

    /// The next batch of any reader, in turn; nothing when all are at their end.
    pub fn next_batch(&mut self) -> Result<Option<Batch<S::Item>>> {
        while self.readers.iter().any(|reader| !reader.is_finished) {
            let index = self.next % self.readers.len();
            self.next += 1;
            if !self.readers[index].is_finished
                && let Some(batch) = self.readers[index].next_batch(&mut self.unassigned)?
            {
                return Ok(Some(batch));
            }
        }
        Ok(None)
    }

    /// Malformed records that the readers skipped.
    pub fn skipped(&self) -> u64 {
        self.readers.iter().map(|reader| reader.reader.skipped()).sum()
    }
}

impl<S: Source> Reader<S> {
    fn next_batch(&mut self, unassigned: &mut VecDeque<S::Split>) -> Result<Option<Batch<S::Item>>> {
        let mut batch = Batch::default();
        loop {
            let status = self.reader.poll(&mut batch, ROWS_MAX)?;
            assert!(batch.len() <= ROWS_MAX, "{} rows instead of at most {ROWS_MAX}", batch.len());
            if !batch.is_empty() {
                return Ok(Some(batch));
            }
            match status {
                ReadStatus::Progress => {}
                ReadStatus::Pending => {
                    self.wakes.recv_timeout(WAKE_TIMEOUT).expect("a pending reader was not woken");
                }
                ReadStatus::PendingUntil(_) => _ = self.wakes.recv_timeout(Duration::from_millis(1)),
                ReadStatus::NeedsSplit => match unassigned.pop_front() {
                    Some(split) => self.reader.add_split(through_bytes(&split))?,
                    None => {
                        assert!(self.reader.active_splits().is_empty(), "a finished reader has active splits");
                        self.is_finished = true;
                        return Ok(None);
                    }
                },
            }
        }
    }
}

/// Splits travel between processes and lie in checkpoints.
fn through_bytes<T: serde::Serialize + serde::de::DeserializeOwned>(split: &T) -> T {
    let bytes = serde_json::to_vec(split).expect("encoding a split");
    serde_json::from_slice(&bytes).expect("decoding a split")
}
