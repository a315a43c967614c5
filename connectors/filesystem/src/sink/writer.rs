//! Writes records to the open parts of their buckets.

use std::collections::BTreeMap;
use std::time::Duration;

use flott_connector_spi::{Committable, SinkWriter};
use flott_core::ids::CheckpointId;
use flott_core::time::Timestamp;
use flott_core::{Batch, Data, Result};
use flott_formats::Encoder;

use crate::sink::part::{ClosedPart, Folder, OpenPart, PartNames};
use crate::sink::{Bucket, RollingPolicy, bucket};

/// How many parts are open at once; one more closes the one that has been idle for the longest.
const OPEN_PARTS_MAX: usize = 256;

/// Bytes that are collected before they are written.
const BUFFER_BYTES: usize = 64 << 10;

/// The writer of one subtask.
pub(crate) struct FileWriter<T> {
    folder: Box<dyn Folder>,
    names: PartNames,
    encoder: Box<dyn Encoder<T>>,
    bucket: Option<Bucket<T>>,
    rolling: RollingPolicy,
    /// The open part of each bucket.
    open: BTreeMap<String, Part>,
    /// Parts closed since the last checkpoint.
    closed: Vec<ClosedPart>,
}

struct Part {
    output: Box<dyn OpenPart>,
    buffer: Vec<u8>,
    bytes_written: u64,
    opened_ms: Timestamp,
    written_ms: Timestamp,
}

impl Part {
    fn flush(&mut self) -> Result<()> {
        self.output.write(&self.buffer)?;
        self.bytes_written += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    fn bytes(&self) -> u64 {
        self.bytes_written + self.buffer.len() as u64
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
        encoder: Box<dyn Encoder<T>>,
        bucket: Option<Bucket<T>>,
        rolling: RollingPolicy,
    ) -> Self {
        Self { folder, names, encoder, bucket, rolling, open: BTreeMap::new(), closed: Vec::new() }
    }

    fn append(&mut self, bucket: &str, rows: &[T], now_ms: Timestamp) -> Result<()> {
        if !self.open.contains_key(bucket) {
            self.begin(bucket, now_ms)?;
        }
        let Some(part) = self.open.get_mut(bucket) else { return Ok(()) };
        let is_first = part.bytes() == 0;
        self.encoder.encode(rows, is_first, &mut part.buffer)?;
        part.written_ms = now_ms;
        if part.buffer.len() >= BUFFER_BYTES {
            part.flush()?;
        }
        if part.bytes() >= self.rolling.bytes_max {
            self.close(bucket)?;
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
        let part = Part { output, buffer: Vec::new(), bytes_written: 0, opened_ms: now_ms, written_ms: now_ms };
        self.open.insert(name.to_owned(), part);
        Ok(())
    }

    fn close(&mut self, bucket: &str) -> Result<()> {
        if let Some(mut part) = self.open.remove(bucket) {
            part.flush()?;
            self.closed.push(part.output.close()?);
        }
        Ok(())
    }

    fn close_where(&mut self, is_due: impl Fn(&Part) -> bool) -> Result<()> {
        let due: Vec<String> =
            self.open.iter().filter(|(_, part)| is_due(part)).map(|(bucket, _)| bucket.clone()).collect();
        due.iter().try_for_each(|bucket| self.close(bucket))
    }
}

impl<T: Data> SinkWriter<T> for FileWriter<T> {
    fn write(&mut self, batch: &mut Batch<T>) -> Result<()> {
        let now_ms = flott_env::now_ms();
        let rows = &batch.rows[..];
        match self.bucket.clone() {
            None if rows.is_empty() => {}
            None => self.append("", rows, now_ms)?,
            Some(bucket) => {
                let buckets: Vec<String> = rows.iter().map(|row| bucket(row)).collect();
                let mut start = 0;
                for same in buckets.chunk_by(|a, b| a == b) {
                    let end = start + same.len();
                    self.append(&same[0], &rows[start..end], now_ms)?;
                    start = end;
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
        self.folder.commit(&parts, &self.names)
    }

    fn deadline(&self) -> Option<Timestamp> {
        self.open.values().map(|part| part.deadline(&self.rolling)).min()
    }

    fn on_time(&mut self, now_ms: Timestamp) -> Result<()> {
        let rolling = self.rolling;
        self.close_where(|part| part.deadline(&rolling) <= now_ms)
    }
}
