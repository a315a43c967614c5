//! The tail of a chain: rows become batches on channels.
//!
//! Rows are scattered straight into one builder a channel. A builder leaves when it is full or when
//! the chain is flushed: as it is to a subtask of this process, encoded to another one.
//!
//! ```text
//! encoded batch = flags(u8: 1 has timestamps, 2 has hashes) row* timestamp(i64)* hash(u64)*
//! ```
//!
//! Hashes are not sent: computing them again is cheaper than eight bytes a row. Only where a barrier may overtake the
//! batch, so that it may be saved in flight, they go with it: a restore deals its rows out by them.

use std::sync::Arc;

use flott_core::codec::{self, Decoder};
use flott_core::key_group::{group_of, owner_of};
use flott_core::{Batch, Data, Error, Result};
use flott_graph::Partitioning;
use flott_network::{Element, Payload, Sender};
use flott_telemetry::TaskCounters;

use crate::push::{Control, Push};

/// Computes the hash column of rows that are partitioned by key.
pub type HashRows<T> = Arc<dyn Fn(&[T], &mut Vec<u64>) + Send + Sync>;

/// How many encoded bytes a batch has when it leaves, if its rows are large.
const BATCH_BYTES_MAX: usize = 64 * 1024;

const HAS_TIMESTAMPS: u8 = 1;
const HAS_HASHES: u8 = 2;

/// Sends the rows of one edge to its channels.
pub struct ChannelWriter<T> {
    partitioning: Partitioning,
    hash: Option<HashRows<T>>,
    max_parallelism: u32,
    /// The channel of each key group, for hash partitioning.
    owners: Vec<u32>,
    channels: Vec<Channel<T>>,
    next: usize,
    counters: Arc<TaskCounters>,
    /// The encoded size of a row, as of the last batch that left.
    row_bytes: usize,
    sample: Vec<u8>,
    /// Whether the rows that wait have timestamps: all rows of a batch agree on that.
    has_timestamps: bool,
}

struct Channel<T> {
    sender: Sender,
    builder: Batch<T>,
}

impl<T: Data> ChannelWriter<T> {
    /// A writer to `senders`: one a subtask of the target, or the one partner for forward partitioning.
    pub fn new(
        partitioning: Partitioning,
        hash: Option<HashRows<T>>,
        max_parallelism: u32,
        subtask: u32,
        senders: Vec<Sender>,
        counters: Arc<TaskCounters>,
    ) -> Self {
        let parallelism = senders.len() as u32;
        let owners = match partitioning {
            Partitioning::Hash => {
                (0..max_parallelism).map(|group| owner_of(group as u16, parallelism, max_parallelism)).collect()
            }
            _ => Vec::new(),
        };
        let channels = senders.into_iter().map(|sender| Channel { sender, builder: Batch::default() }).collect();
        // Senders start their round robin at different targets, so that small streams spread too.
        let next = subtask as usize % parallelism.max(1) as usize;
        Self {
            partitioning,
            hash,
            max_parallelism,
            owners,
            channels,
            next,
            counters,
            row_bytes: size_of::<T>(),
            sample: Vec::new(),
            has_timestamps: false,
        }
    }

    fn scatter(&mut self, batch: &mut Batch<T>) -> Result<()> {
        batch.hashes.clear();
        if let Some(hash) = &self.hash {
            hash(&batch.rows, &mut batch.hashes);
        }
        if let [_only] = &self.channels[..] {
            return self.append(0, batch);
        }
        let rows_max = self.rows_max();
        let has_timestamps = self.has_timestamps;
        for (index, row) in batch.rows.drain(..).enumerate() {
            let hash = batch.hashes[index];
            let target = self.owners[usize::from(group_of(hash, self.max_parallelism))] as usize;
            let builder = &mut self.channels[target].builder;
            builder.rows.push(row);
            builder.hashes.push(hash);
            if has_timestamps {
                builder.timestamps.push(batch.timestamps[index]);
            }
            if builder.rows.len() >= rows_max {
                self.send(target)?;
            }
        }
        Ok(())
    }

    /// How many rows a batch has when it leaves.
    fn rows_max(&self) -> usize {
        (BATCH_BYTES_MAX / self.row_bytes.max(1)).clamp(1, Batch::<T>::ROWS_MAX)
    }

    /// Adds a whole batch to a channel's builder.
    fn append(&mut self, target: usize, batch: &mut Batch<T>) -> Result<()> {
        let rows_max = self.rows_max();
        let builder = &mut self.channels[target].builder;
        // A split's number means nothing to another subtask.
        batch.split = 0;
        if builder.is_empty() {
            std::mem::swap(builder, batch);
        } else {
            builder.rows.append(&mut batch.rows);
            builder.timestamps.append(&mut batch.timestamps);
            builder.hashes.append(&mut batch.hashes);
        }
        if builder.rows.len() >= rows_max { self.send(target) } else { Ok(()) }
    }

    fn send(&mut self, target: usize) -> Result<()> {
        let Channel { sender, builder } = &mut self.channels[target];
        let Some(first) = builder.rows.first() else { return Ok(()) };
        if !sender.is_local() {
            return self.send_encoded(target);
        }
        // One row stands for all: exact sizes would cost as much as encoding.
        self.sample.clear();
        codec::encode_into(first, &mut self.sample)?;
        self.row_bytes = self.sample.len().max(size_of::<T>()).max(1);
        let bytes = (self.row_bytes * builder.rows.len()) as u64;
        let empty = Batch {
            rows: Vec::with_capacity(builder.rows.len()),
            timestamps: Vec::with_capacity(builder.timestamps.len()),
            hashes: Vec::with_capacity(builder.hashes.len()),
            split: 0,
        };
        let rows = builder.rows.len() as u32;
        let payload = Payload::Local { batch: Box::new(std::mem::replace(builder, empty)), rows, bytes };
        self.count_out(rows, bytes);
        self.channels[target].sender.send(Element::Batch(payload))
    }

    /// Sends a builder to another process, in as many frames as large rows need.
    fn send_encoded(&mut self, target: usize) -> Result<()> {
        let rows = self.channels[target].builder.rows.len();
        let mut start = 0;
        while start < rows {
            let Channel { sender, builder } = &mut self.channels[target];
            let mut data = Vec::with_capacity((self.row_bytes * (rows - start)).min(2 * BATCH_BYTES_MAX) + 64);
            let with_hashes = sender.allows_overtaking();
            let end = encode_part(builder, start, with_hashes, BATCH_BYTES_MAX, &mut data)?;
            self.row_bytes = (data.len() / (end - start)).max(1);
            let (sent, bytes) = ((end - start) as u32, data.len() as u64);
            sender.send(Element::Batch(Payload::Encoded { data: data.into(), rows: sent }))?;
            self.count_out(sent, bytes);
            start = end;
        }
        self.channels[target].builder.clear();
        Ok(())
    }

    fn count_out(&self, rows: u32, bytes: u64) {
        self.counters.records_out.add(u64::from(rows));
        self.counters.bytes_out.add(bytes);
    }

    fn send_all(&mut self) -> Result<()> {
        (0..self.channels.len()).try_for_each(|target| self.send(target))
    }
}

impl<T: Data> Push<T> for ChannelWriter<T> {
    fn push(&mut self, batch: &mut Batch<T>) -> Result<()> {
        let has_timestamps = !batch.timestamps.is_empty();
        if has_timestamps != self.has_timestamps {
            self.send_all()?;
            self.has_timestamps = has_timestamps;
        }
        match self.partitioning {
            Partitioning::Hash => self.scatter(batch)?,
            Partitioning::Forward | Partitioning::Global => self.append(0, batch)?,
            Partitioning::Rebalance => {
                let target = self.next;
                self.next = (self.next + 1) % self.channels.len();
                self.append(target, batch)?;
            }
            Partitioning::Broadcast => {
                for target in 1..self.channels.len() {
                    self.append(target, &mut batch.clone())?;
                }
                self.append(0, batch)?;
            }
        }
        batch.clear();
        Ok(())
    }

    fn control(&mut self, control: &mut Control<'_>) -> Result<()> {
        if reaches_receivers(control) {
            self.send_all()?;
        }
        self.channels.iter().try_for_each(|channel| pass_on(control, &channel.sender))
    }
}

/// Whether rows that wait have to leave before `control` is acted on.
pub fn reaches_receivers(control: &Control<'_>) -> bool {
    match control {
        Control::Watermark(_)
        | Control::Idle
        | Control::Active
        | Control::Barrier(..)
        | Control::EndOfInput
        | Control::Flush => true,
        Control::Open(_)
        | Control::Declare(_)
        | Control::Release(_)
        | Control::Drain(_)
        | Control::Maintain(_)
        | Control::Commit(_)
        | Control::Time { .. } => false,
    }
}

/// Tells the receiver of a channel what it has to know of `control`, which may be nothing.
pub fn pass_on(control: &Control<'_>, sender: &Sender) -> Result<()> {
    sender.send(match control {
        Control::Watermark(watermark) => Element::Watermark(*watermark),
        Control::Idle => Element::Idle,
        Control::Active => Element::Active,
        Control::Barrier(barrier, snapshot) => {
            let barrier = (*barrier).clone();
            match snapshot.overtakes && sender.allows_overtaking() {
                true => Element::UnalignedBarrier { barrier, overtaken: 0 },
                false => Element::Barrier(barrier),
            }
        }
        Control::EndOfInput => Element::EndOfInput,
        _ => return Ok(()),
    })
}

/// Appends the binary form of the rows of `batch` from `start` on, as many as fit into a frame, and returns the end of
/// what was taken. Their hashes are left out.
pub fn encode_rows<T: Data>(batch: &Batch<T>, start: usize, out: &mut Vec<u8>) -> Result<usize> {
    encode_part(batch, start, false, BATCH_BYTES_MAX, out)
}

/// Appends the binary form of a whole batch, with its hashes if it has any.
pub fn encode_batch<T: Data>(batch: &Batch<T>, out: &mut Vec<u8>) -> Result<()> {
    encode_part(batch, 0, true, usize::MAX, out).map(|_| ())
}

fn encode_part<T: Data>(
    batch: &Batch<T>,
    start: usize,
    with_hashes: bool,
    bytes_max: usize,
    out: &mut Vec<u8>,
) -> Result<usize> {
    let has_hashes = with_hashes && batch.hashes.len() == batch.rows.len();
    let timestamps_flag = if batch.timestamps.is_empty() { 0 } else { HAS_TIMESTAMPS };
    out.push(timestamps_flag | if has_hashes { HAS_HASHES } else { 0 });
    let mut end = start;
    while end < batch.rows.len() && (out.len() < bytes_max || end == start) {
        codec::encode_into(&batch.rows[end], out)?;
        end += 1;
    }
    for timestamp in batch.timestamps.get(start..end).into_iter().flatten() {
        out.extend_from_slice(&timestamp.to_le_bytes());
    }
    if has_hashes {
        for hash in batch.hashes.get(start..end).into_iter().flatten() {
            out.extend_from_slice(&hash.to_le_bytes());
        }
    }
    Ok(end)
}

/// Reads a batch of `rows` rows into the empty `batch`.
pub fn decode_batch<T: Data>(data: &[u8], rows: u32, batch: &mut Batch<T>) -> Result<()> {
    let mut decoder = Decoder::new(data);
    let flags: u8 = decoder.read()?;
    if flags > HAS_TIMESTAMPS | HAS_HASHES {
        return Err(Error::system(format!("a batch has the flags {flags}, which this build does not know")));
    }
    batch.rows.reserve((rows as usize).min(data.len()));
    for _ in 0..rows {
        batch.rows.push(decoder.read()?);
    }
    if flags & HAS_TIMESTAMPS != 0 {
        for _ in 0..rows {
            batch.timestamps.push(decoder.read()?);
        }
    }
    if flags & HAS_HASHES != 0 {
        for _ in 0..rows {
            batch.hashes.push(decoder.read()?);
        }
    }
    if decoder.is_empty() {
        return Ok(());
    }
    Err(Error::system(format!("{} bytes are left behind the {rows} rows of a batch", decoder.remaining())))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn rows_of_any_size_arrive_in_order(
            rows in prop::collection::vec((any::<u32>(), "[a-z]{0,40}", 0_usize..3), 0..50),
            has_timestamps in any::<bool>(),
        ) {
            let rows: Vec<(u32, String)> =
                rows.into_iter().map(|(n, text, large)| (n, text.repeat(1 + large * 1500))).collect();
            let timestamps = if has_timestamps { (0..rows.len() as i64).collect() } else { Vec::new() };
            let batch = Batch { rows, timestamps, ..Batch::default() };
            let (mut arrived, mut start) = (Batch::<(u32, String)>::default(), 0);
            while start < batch.rows.len() {
                let mut data = Vec::new();
                let end = encode_rows(&batch, start, &mut data).unwrap();
                prop_assert!(data.len() < 4 * BATCH_BYTES_MAX);
                let mut part = Batch::default();
                decode_batch(&data, (end - start) as u32, &mut part).unwrap();
                arrived.rows.append(&mut part.rows);
                arrived.timestamps.append(&mut part.timestamps);
                start = end;
            }
            prop_assert_eq!(arrived, batch);
        }

        #[test]
        fn a_whole_batch_keeps_its_columns(
            rows in prop::collection::vec(any::<(u32, bool)>(), 0..50),
            has_timestamps in any::<bool>(),
            has_hashes in any::<bool>(),
        ) {
            let timestamps = if has_timestamps { (0..rows.len() as i64).collect() } else { Vec::new() };
            let hashes = if has_hashes { rows.iter().map(|(n, _)| u64::from(*n) << 7).collect() } else { Vec::new() };
            let batch = Batch { rows, timestamps, hashes, split: 0 };
            // What stands before it is left alone.
            let mut data = vec![9];
            encode_batch(&batch, &mut data).unwrap();
            let mut arrived = Batch::default();
            decode_batch(&data[1..], batch.rows.len() as u32, &mut arrived).unwrap();
            prop_assert_eq!(arrived, batch);
        }

        #[test]
        fn damaged_batches_are_errors(data in prop::collection::vec(any::<u8>(), 0..200), rows in 0_u32..20) {
            let mut batch = Batch::<(u32, String)>::default();
            // Any bytes may come: what matters is that nothing panics.
            let _ = decode_batch(&data, rows, &mut batch);
        }
    }
}
