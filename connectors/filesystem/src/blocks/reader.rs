//! Reads splits one after another, each on a thread of the I/O runtime.

use std::collections::VecDeque;
use std::sync::Arc;

use flott_checkpoint::Store;
use flott_connector_spi::{IoHandle, ReadStatus, ReaderContext, SplitReader, Waker};
use flott_core::{Batch, Data, Error, Result};
use flott_formats::{BlockFormat, Position};
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TryRecvError;

use super::{BlockSplit, NewFormat, bytes};

/// How many portions of rows wait for the reader.
const PORTIONS_MAX: usize = 4;

/// Rows, and where reading goes on behind them; nothing at the end of the split.
type Portion<T> = Option<(T, Position)>;

/// A reader of files. It never waits.
pub(crate) struct BlockFileReader<T> {
    cx: ReaderContext,
    stores: Store,
    new_format: NewFormat<T>,
    /// The splits behind the current one, in order.
    queue: VecDeque<BlockSplit>,
    current: Option<Current<T>>,
    splits_begun: u32,
}

/// The split that is being read.
struct Current<T> {
    number: u32,
    /// Its position is behind the last rows that were returned.
    split: BlockSplit,
    portions: mpsc::Receiver<Result<Portion<T>>>,
}

impl<T: Data> BlockFileReader<T> {
    pub(crate) fn new(cx: ReaderContext, stores: Store, new_format: NewFormat<T>) -> Self {
        Self { cx, stores, new_format, queue: VecDeque::new(), current: None, splits_begun: 0 }
    }

    fn begin(&mut self, split: BlockSplit) -> Result<Current<T>> {
        let format = (self.new_format)(&split.file)?;
        let (sender, portions) = mpsc::channel(PORTIONS_MAX);
        let mut output = Output { sender: Some(sender), waker: self.cx.waker.clone() };
        let (stores, io, of) = (self.stores.clone(), self.cx.io.clone(), split.clone());
        flott_env::spawn_blocking_on(&self.cx.io, move || {
            if let Err(error) = produce(&stores, &io, &of, &*format, &mut output) {
                output.send(Err(error));
            }
        });
        self.splits_begun += 1;
        Ok(Current { number: self.splits_begun, split, portions })
    }
}

/// Sends the rows of a split from its position on.
fn produce<T: Data>(
    stores: &Store,
    io: &IoHandle,
    split: &BlockSplit,
    format: &dyn BlockFormat<T>,
    output: &mut Output<T>,
) -> Result<()> {
    let file = bytes::open(stores, io, &split.file, split.bytes)?;
    let mut reader = format.open(Arc::clone(&file), split.start..split.end, split.position)?;
    loop {
        let portion = reader.next()?;
        let is_last = portion.is_none();
        if !output.send(Ok(portion)) || is_last {
            return Ok(());
        }
    }
}

/// The other end of the reader's channel.
struct Output<T> {
    sender: Option<mpsc::Sender<Result<Portion<T>>>>,
    waker: Waker,
}

impl<T> Output<T> {
    /// Waits until there is room. Returns whether anyone still listens.
    fn send(&mut self, portion: Result<Portion<T>>) -> bool {
        let is_sent = self.sender.as_ref().is_some_and(|sender| sender.blocking_send(portion).is_ok());
        self.waker.wake();
        is_sent
    }
}

impl<T> Drop for Output<T> {
    fn drop(&mut self) {
        // The reader must learn of the end also if it came by a panic.
        self.sender = None;
        self.waker.wake();
    }
}

impl<T: Data> SplitReader<T, BlockSplit> for BlockFileReader<T> {
    fn add_split(&mut self, split: BlockSplit) -> Result<()> {
        self.queue.push_back(split);
        Ok(())
    }

    fn poll(&mut self, batch: &mut Batch<T>, _rows_max: usize) -> Result<ReadStatus> {
        loop {
            let Some(current) = &mut self.current else {
                match self.queue.pop_front() {
                    Some(split) => self.current = Some(self.begin(split)?),
                    None => return Ok(ReadStatus::NeedsSplit),
                }
                continue;
            };
            match current.portions.try_recv() {
                Ok(Ok(Some((rows, position)))) => {
                    batch.split = current.number;
                    current.split.position = Some(position);
                    batch.rows.push(rows);
                    return Ok(ReadStatus::Progress);
                }
                Ok(Ok(None)) => self.current = None,
                Ok(Err(error)) => return Err(error),
                Err(TryRecvError::Empty) => return Ok(ReadStatus::Pending),
                Err(TryRecvError::Disconnected) => {
                    return Err(Error::input(format!(
                        "{}: the file is damaged in a way that its format's reader does not survive",
                        current.split.file
                    )));
                }
            }
        }
    }

    fn snapshot(&mut self) -> Result<Vec<BlockSplit>> {
        Ok(self.current.iter().map(|current| &current.split).chain(&self.queue).cloned().collect())
    }

    fn active_splits(&self) -> Vec<u32> {
        self.current.iter().map(|current| current.number).collect()
    }
}
