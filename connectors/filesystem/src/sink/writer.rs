//! Writes records to the open parts of their buckets.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use flott_connector_spi::{Committable, SinkWriter};
use flott_core::ids::CheckpointId;
use flott_core::time::Timestamp;
use flott_core::{Batch, Data, Result};
use flott_formats::Encoder;

use crate::sink::part::{ClosedPart, Folder, OpenPart, PartNames};
use crate::sink::{Buckets, PartLog, RollingPolicy, bucket};

/// How many parts are open at once; one more closes the one that has been idle for the longest.
const OPEN_PARTS_MAX: usize = 256;

/// Bytes that are collected before they are written.
const BUFFER_BYTES: usize = 64 << 10;

/// How much memory the rows take that encoders keep, over all open parts; more closes the part that keeps most.
const MEMORY_BYTES_MAX: u64 = 256 << 20;

/// Makes the encoder of a part.
type NewEncoder<T> = Box<dyn Fn() -> Box<dyn Encoder<T>> + Send>;

/// The writer of one subtask.
pub(crate) struct FileWriter<T> {
    folder: Box<dyn Folder>,
    names: PartNames,
    new_encoder: NewEncoder<T>,
    buckets: Buckets<T>,
    rolling: RollingPolicy,
    /// The open part of each bucket.
    open: BTreeMap<String, Part<T>>,
    /// What the encoders of open parts keep.
    memory_bytes: u64,
    /// Parts closed since the last checkpoint.
    closed: Vec<ClosedPart>,
    /// Where parts are noted that are begun, and whether whoever reads that makes them visible.
    log: Option<PartLog>,
    is_held: bool,
}

struct Part<T> {
    output: Box<dyn OpenPart>,
    encoder: Box<dyn Encoder<T>>,
    buffer: Vec<u8>,
    bytes_written: u64,
    opened_ms: Timestamp,
    written_ms: Timestamp,
}

impl<T> Part<T> {
    fn flush(&mut self) -> Result<()> {
        self.output.write(&self.buffer)?;
        self.bytes_written += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    fn bytes(&self) -> u64 {
        self.bytes_written + self.buffer.len() as u64 + self.encoder.bytes_kept()
    }

    fn deadline(&self, rolling: &RollingPolicy) -> Timestamp {
        let after = |start: Timestamp, duration: Duration| {
            start.saturating_add(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX))
        };
        after(self.opened_ms, rolling.duration_max).min(after(self.written_ms, rolling.inactivity_max))
    }
}

impl<T> FileWriter<T> {
    pub(crate) fn new(
        folder: Box<dyn Folder>,
        names: PartNames,
        new_encoder: NewEncoder<T>,
        buckets: Buckets<T>,
        rolling: RollingPolicy,
    ) -> Self {
        Self {
            folder,
            names,
            new_encoder,
            buckets,
            rolling,
            open: BTreeMap::new(),
            memory_bytes: 0,
            closed: Vec::new(),
            log: None,
            is_held: false,
        }
    }

    pub(crate) fn with_log(self, log: Option<PartLog>, is_held: bool) -> Self {
        Self { log, is_held, ..self }
    }

    fn append(&mut self, bucket: &str, rows: &[T], now_ms: Timestamp) -> Result<()> {
        if !self.open.contains_key(bucket) {
            self.begin(bucket, now_ms)?;
        }
        let Some(part) = self.open.get_mut(bucket) else { return Ok(()) };
        let is_first = part.bytes() == 0;
        let before = part.encoder.memory_bytes();
        part.encoder.encode(rows, is_first, &mut part.buffer)?;
        self.memory_bytes = self.memory_bytes - before + part.encoder.memory_bytes();
        part.written_ms = now_ms;
        if part.buffer.len() >= BUFFER_BYTES {
            part.flush()?;
        }
        if part.bytes() >= self.rolling.bytes_max {
            self.close(bucket)?;
        }
        while self.memory_bytes > MEMORY_BYTES_MAX {
            let largest = self.open.iter().max_by_key(|(_, part)| part.encoder.memory_bytes());
            let Some(bucket) = largest.map(|(bucket, _)| bucket.clone()) else { break };
            self.close(&bucket)?;
        }
        Ok(())
    }

    fn begin(&mut self, name: &str, now_ms: Timestamp) -> Result<()> {
        bucket::check(name)?;
        if self.open.len() >= OPEN_PARTS_MAX {
            let idle = self.open.iter().min_by_key(|(_, part)| part.written_ms).map(|(bucket, _)| bucket.clone());
            if let Some(idle) = idle {
                self.close(&idle)?;
            }
        }
        let output = self.folder.create(name, &self.names.next())?;
        if let Some(log) = &self.log {
            log.add(name, output.names());
        }
        let encoder = (self.new_encoder)();
        let part =
            Part { output, encoder, buffer: Vec::new(), bytes_written: 0, opened_ms: now_ms, written_ms: now_ms };
        self.open.insert(name.to_owned(), part);
        Ok(())
    }

    fn close(&mut self, bucket: &str) -> Result<()> {
        if let Some(mut part) = self.open.remove(bucket) {
            self.memory_bytes -= part.encoder.memory_bytes();
            part.encoder.finish(&mut part.buffer)?;
            part.flush()?;
            self.closed.push(part.output.close()?);
        }
        Ok(())
    }

    fn close_where(&mut self, is_due: impl Fn(&Part<T>) -> bool) -> Result<()> {
        let due: Vec<String> =
            self.open.iter().filter(|(_, part)| is_due(part)).map(|(bucket, _)| bucket.clone()).collect();
        due.iter().try_for_each(|bucket| self.close(bucket))
    }
}

impl<T: Data> SinkWriter<T> for FileWriter<T> {
    fn write(&mut self, batch: &mut Batch<T>) -> Result<()> {
        let now_ms = flott_env::now_ms();
        match &self.buckets {
            Buckets::None if batch.rows.is_empty() => {}
            Buckets::None => self.append("", &batch.rows, now_ms)?,
            Buckets::Named(name_of) => {
                let buckets: Vec<String> = batch.rows.iter().map(|row| name_of(row)).collect();
                let mut start = 0;
                for same in buckets.chunk_by(|a, b| a == b) {
                    let end = start + same.len();
                    self.append(&same[0], &batch.rows[start..end], now_ms)?;
                    start = end;
                }
            }
            Buckets::Parts(split) => {
                let split = Arc::clone(split);
                for item in batch.rows.drain(..) {
                    for (bucket, part) in split(item)? {
                        self.append(&bucket, &[part], now_ms)?;
                    }
                }
            }
        }
        batch.clear();
        Ok(())
    }

    fn prepare(&mut self, _is_last: bool) -> Result<Vec<Committable>> {
        self.close_where(|_| true)?;
        self.folder.sync(&self.closed)?;
        let committables = self.closed.iter().map(ClosedPart::encode).collect::<Result<_>>()?;
        self.closed.clear();
        Ok(committables)
    }

    fn commit(&mut self, _checkpoint: CheckpointId, committables: Vec<Committable>) -> Result<()> {
        let parts: Vec<ClosedPart> =
            committables.iter().map(|committable| ClosedPart::decode(committable)).collect::<Result<_>>()?;
        if self.is_held { Ok(()) } else { self.folder.commit(&parts, &self.names) }
    }

    fn deadline(&self) -> Option<Timestamp> {
        self.open.values().map(|part| part.deadline(&self.rolling)).min()
    }

    fn on_time(&mut self, now_ms: Timestamp) -> Result<()> {
        let rolling = self.rolling;
        self.close_where(|part| part.deadline(&rolling) <= now_ms)
    }
}
