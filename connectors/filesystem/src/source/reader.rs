//! Reads splits one after another.

use std::collections::VecDeque;

use flott_checkpoint::Store;
use flott_connector_spi::{ReadStatus, ReaderContext, SplitReader};
use flott_core::{Batch, Data, Result, ResultExt};
use flott_formats::{CsvOptions, Decoder, OnError};

use crate::source::fetch::{Chunk, Fetch, Message, RECORD_BYTES_MAX, too_long};
use crate::source::input::Input;
use crate::source::split::FileSplit;
use crate::source::{FileSource, NewDecoder, ReadOptions};

/// A reader of files. It never waits: what a poll cannot have yet, it keeps its rows for.
pub(crate) struct FileReader<T> {
    cx: ReaderContext,
    stores: Store,
    options: ReadOptions,
    csv: CsvOptions,
    new_decoder: NewDecoder<T>,
    /// The splits behind the current one, in order.
    queue: VecDeque<FileSplit>,
    current: Option<Current<T>>,
    splits_begun: u32,
    skipped: u64,
}

/// The split that is being read.
struct Current<T> {
    number: u32,
    /// Its position is behind the last row that was returned.
    split: FileSplit,
    input: Input,
    decoder: Box<dyn Decoder<T>>,
    fetch: Fetch,
    /// Bytes of the file at `offset`; those before `at` are decoded.
    bytes: Vec<u8>,
    offset: u64,
    at: usize,
    is_last: bool,
    /// Rows that are decoded and not yet returned: a batch is full unless the split ends with it, so that batches do
    /// not depend on how fast bytes come.
    rows: Vec<T>,
}

/// How far one attempt to fill a batch came.
enum Filled {
    /// The batch is full.
    Full,
    /// The split ends with it.
    Ended,
    /// Enough for one call, though the batch is not full.
    Partly,
    /// There are no bytes yet.
    Waiting,
}

impl<T: Data> SplitReader<T, FileSplit> for FileReader<T> {
    fn add_split(&mut self, split: FileSplit) -> Result<()> {
        self.queue.push_back(split);
        Ok(())
    }

    fn poll(&mut self, batch: &mut Batch<T>, rows_max: usize) -> Result<ReadStatus> {
        let rows_max = rows_max.min(self.options.items_max);
        loop {
            let Some(current) = &mut self.current else {
                match self.queue.pop_front() {
                    Some(split) => self.current = Some(self.begin(split)?),
                    None => return Ok(ReadStatus::NeedsSplit),
                }
                continue;
            };
            std::mem::swap(&mut batch.rows, &mut current.rows);
            let filled = current.fill(&mut batch.rows, rows_max, &self.cx, self.options.on_error, &mut self.skipped)?;
            match filled {
                Filled::Full | Filled::Ended => {
                    batch.split = current.number;
                    current.split.position = current.offset + current.at as u64;
                    if matches!(filled, Filled::Ended) {
                        self.current = None;
                    }
                    if !batch.is_empty() {
                        return Ok(ReadStatus::Progress);
                    }
                }
                Filled::Partly | Filled::Waiting => {
                    std::mem::swap(&mut batch.rows, &mut current.rows);
                    let is_waiting = matches!(filled, Filled::Waiting);
                    return Ok(if is_waiting { ReadStatus::Pending } else { ReadStatus::Progress });
                }
            }
        }
    }

    fn snapshot(&mut self) -> Result<Vec<FileSplit>> {
        Ok(self.current.iter().map(|current| &current.split).chain(&self.queue).cloned().collect())
    }

    fn active_splits(&self) -> Vec<u32> {
        self.current.iter().map(|current| current.number).collect()
    }

    fn skipped(&self) -> u64 {
        self.skipped
    }
}

impl<T: Data> FileReader<T> {
    pub(crate) fn new(source: &FileSource<T>, cx: ReaderContext) -> Self {
        Self {
            cx,
            stores: source.stores.clone(),
            options: source.options,
            csv: source.csv.clone(),
            new_decoder: source.new_decoder.clone(),
            queue: VecDeque::new(),
            current: None,
            splits_begun: 0,
            skipped: 0,
        }
    }

    fn begin(&mut self, split: FileSplit) -> Result<Current<T>> {
        let decoder = (self.new_decoder)(&self.csv, &split.file)?;
        let input = Input::new(&self.stores, &self.cx.io, &split);
        let fetch = Fetch::start(input.clone(), split.clone(), self.options, self.cx.waker.clone());
        self.splits_begun += 1;
        Ok(Current {
            number: self.splits_begun,
            split,
            input,
            decoder,
            fetch,
            bytes: Vec::new(),
            offset: 0,
            at: 0,
            is_last: false,
            rows: Vec::new(),
        })
    }
}

impl<T: Data> Current<T> {
    /// Appends rows to `rows` until there are `rows_max`, and looks at no more than one new chunk.
    fn fill(
        &mut self,
        rows: &mut Vec<T>,
        rows_max: usize,
        cx: &ReaderContext,
        on_error: OnError,
        skipped: &mut u64,
    ) -> Result<Filled> {
        let mut has_new_chunk = false;
        loop {
            while self.at < self.bytes.len() && rows.len() < rows_max {
                let input = &self.bytes[self.at..];
                let decoded = self.decoder.decode(input, self.is_last, rows_max - rows.len(), rows);
                self.at += decoded.bytes;
                match decoded.malformed {
                    Some(malformed) if on_error == OnError::Skip => {
                        let (file, offset) = (&self.split.file, self.offset + self.at as u64);
                        tracing::debug!(%file, offset, reason = %malformed.reason, "a malformed record is skipped");
                        self.at += malformed.bytes;
                        *skipped += 1;
                    }
                    Some(malformed) => self.fail(malformed.reason, cx),
                    None if decoded.bytes == 0 => break,
                    None => {}
                }
            }
            if rows.len() >= rows_max {
                return Ok(Filled::Full);
            }
            if self.is_last {
                return Ok(Filled::Ended);
            }
            if has_new_chunk {
                return Ok(Filled::Partly);
            }
            if self.bytes.len() - self.at > RECORD_BYTES_MAX {
                self.fail(too_long(), cx);
            }
            match self.fetch.try_next()? {
                Some(Message::Info(info)) => self.decoder.opened(info).with_context(|| &self.split.file)?,
                Some(Message::Header(line)) => {
                    self.decoder.header(&line).with_context(|| &self.split.file)?;
                }
                Some(Message::Chunk(chunk)) => {
                    has_new_chunk = true;
                    self.append(chunk);
                }
                None => return Ok(Filled::Waiting),
            }
        }
    }

    fn append(&mut self, chunk: Chunk) {
        if self.at == self.bytes.len() {
            self.fetch.recycle(std::mem::replace(&mut self.bytes, chunk.bytes));
            self.offset = chunk.offset;
        } else {
            // A record of several lines goes on in this chunk.
            self.bytes.drain(..self.at);
            self.offset += self.at as u64;
            self.bytes.extend_from_slice(&chunk.bytes);
            self.fetch.recycle(chunk.bytes);
        }
        self.at = 0;
        self.is_last = chunk.is_last;
    }

    /// From now on there comes nothing but the error, as soon as it is known in which line the record stands.
    fn fail(&mut self, reason: String, cx: &ReaderContext) {
        let offset = self.offset + self.at as u64;
        self.fetch = Fetch::malformed(self.input.clone(), offset, reason, cx.waker.clone());
        self.bytes.clear();
        self.at = 0;
        self.is_last = false;
    }
}
