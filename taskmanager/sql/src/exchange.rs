//! Chunks on channels: the tail of a chain that deals rows out, and the head of one that receives them.
//!
//! Rows are dealt out by the hash of their key a chunk at a time: one pass finds each row's channel, then each channel
//! takes its rows as columns. What a channel has is kept back until it is enough for a batch, or until the chain is
//! flushed, so that a P-way split does not make P-fold fragments.

use std::sync::Arc;

use flott_core::key_group::{group_of, owner_of};
use flott_core::{Batch, Error, Result};
use flott_graph::Partitioning;
use flott_network::{Element, Payload, Sender};
use flott_operators::exchange::{pass_on, reaches_receivers};
use flott_operators::push::{Control, Push};
use flott_operators::task::PayloadCodec;
use flott_operators::{Task, TaskContext};
use flott_telemetry::TaskCounters;

use crate::row::KeyEncoder;
use flott_chunk::Chunk;

/// How many rows leave a channel's builder at once. Less than [`Chunk::ROWS_MAX`], so that queues, whose bound is in bytes,
/// stay soft by little.
const ROWS_MAX: usize = 4096;

/// How many bytes do.
const BYTES_MAX: u64 = 256 * 1024;

/// Sends the rows of one edge to its channels.
pub struct ChunkWriter {
    partitioning: Partitioning,
    /// For hash partitioning.
    keys: Option<KeyEncoder>,
    max_parallelism: u32,
    owners: Vec<u32>,
    channels: Vec<Channel>,
    next: usize,
    input: u8,
    counters: Arc<TaskCounters>,
    /// For each channel, the rows of the chunk at hand.
    chosen: Vec<Vec<u32>>,
}

struct Channel {
    sender: Sender,
    waiting: Vec<Chunk>,
    rows: usize,
    bytes: u64,
}

impl ChunkWriter {
    /// A writer to `senders`: one a subtask of the target, or the one partner for forward partitioning. `keys` makes the
    /// keys of rows that are dealt out by them; `input` is which of the target's inputs this is.
    pub fn new(
        partitioning: Partitioning,
        keys: Option<KeyEncoder>,
        input: u8,
        max_parallelism: u32,
        senders: Vec<Sender>,
        cx: &TaskContext,
    ) -> Self {
        let parallelism = senders.len() as u32;
        let owner = |group| owner_of(group as u16, parallelism, max_parallelism);
        let owners = match partitioning {
            Partitioning::Hash => (0..max_parallelism).map(owner).collect(),
            _ => Vec::new(),
        };
        let channel = |sender| Channel { sender, waiting: Vec::new(), rows: 0, bytes: 0 };
        Self {
            partitioning,
            keys,
            max_parallelism,
            owners,
            chosen: vec![Vec::new(); senders.len()],
            channels: senders.into_iter().map(channel).collect(),
            // Senders start their round robin at different targets, so that small streams spread too.
            next: cx.subtask.index as usize % parallelism.max(1) as usize,
            input,
            counters: Arc::clone(&cx.counters),
        }
    }

    fn deal_out(&mut self, mut chunk: Chunk) -> Result<()> {
        let keys = self.keys.as_mut().ok_or_else(|| Error::system("an edge by key has no key"))?;
        let keys = keys.encode(chunk.batch.columns(), chunk.len(), None)?;
        chunk.hashes = Some(keys.hashes.as_slice().into());
        if let [_only] = &self.channels[..] {
            return self.append(0, chunk);
        }
        self.chosen.iter_mut().for_each(Vec::clear);
        for (row, hash) in keys.hashes.iter().enumerate() {
            let group = usize::from(group_of(*hash, self.max_parallelism));
            self.chosen[self.owners[group] as usize].push(row as u32);
        }
        for target in 0..self.channels.len() {
            let part = match self.chosen[target].len() {
                0 => continue,
                rows if rows == chunk.len() => chunk.clone(),
                _ => chunk.take(&self.chosen[target])?,
            };
            self.append(target, part)?;
        }
        Ok(())
    }

    fn append(&mut self, target: usize, mut chunk: Chunk) -> Result<()> {
        chunk.input = self.input;
        let channel = &mut self.channels[target];
        channel.rows += chunk.len();
        channel.bytes += chunk.bytes();
        channel.waiting.push(chunk);
        if channel.rows >= ROWS_MAX || channel.bytes >= BYTES_MAX { self.send(target) } else { Ok(()) }
    }

    fn send(&mut self, target: usize) -> Result<()> {
        let channel = &mut self.channels[target];
        if channel.waiting.is_empty() {
            return Ok(());
        }
        let chunk = Chunk::concat(&channel.waiting)?;
        channel.waiting.clear();
        (channel.rows, channel.bytes) = (0, 0);
        let rows = chunk.len() as u32;
        let payload = if channel.sender.is_local() {
            let bytes = chunk.bytes();
            Payload::Local { batch: Box::new(chunk), rows, bytes }
        } else {
            let mut data = Vec::new();
            chunk.encode(&mut data)?;
            Payload::Encoded { data: data.into(), rows }
        };
        self.counters.records_out.add(u64::from(rows));
        self.counters.bytes_out.add(match &payload {
            Payload::Local { bytes, .. } => *bytes,
            Payload::Encoded { data, .. } => data.len() as u64,
        });
        channel.sender.send(Element::Batch(payload))
    }

    fn send_all(&mut self) -> Result<()> {
        (0..self.channels.len()).try_for_each(|target| self.send(target))
    }
}

impl Push<Chunk> for ChunkWriter {
    fn push(&mut self, batch: &mut Batch<Chunk>) -> Result<()> {
        for chunk in batch.rows.drain(..) {
            match self.partitioning {
                Partitioning::Hash => self.deal_out(chunk)?,
                Partitioning::Forward | Partitioning::Global => self.append(0, chunk)?,
                Partitioning::Rebalance => {
                    let target = self.next;
                    self.next = (self.next + 1) % self.channels.len();
                    self.append(target, chunk)?;
                }
                Partitioning::Broadcast => {
                    for target in 0..self.channels.len() {
                        self.append(target, chunk.clone())?;
                    }
                }
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

/// Receives chunks and pushes them into a chain.
pub struct ChunkHead {
    chain: Box<dyn Push<Chunk>>,
    counters: Arc<TaskCounters>,
    buffer: Batch<Chunk>,
}

impl ChunkHead {
    /// The head in front of `chain`.
    pub fn new(chain: Box<dyn Push<Chunk>>, counters: Arc<TaskCounters>) -> Self {
        Self { chain, counters, buffer: Batch::default() }
    }
}

impl Task for ChunkHead {
    fn process(&mut self, payload: Payload) -> Result<()> {
        let chunk = match payload {
            Payload::Local { batch, rows, bytes } => {
                self.counters.records_in.add(u64::from(rows));
                self.counters.bytes_in.add(bytes);
                *batch.downcast::<Chunk>().map_err(|_| wrong_type())?
            }
            Payload::Encoded { data, rows } => {
                self.counters.records_in.add(u64::from(rows));
                self.counters.bytes_in.add(data.len() as u64);
                Chunk::decode(&data)?
            }
        };
        self.buffer.rows.push(chunk);
        self.chain.push(&mut self.buffer)
    }

    fn control(&mut self, control: &mut Control<'_>) -> Result<()> {
        self.chain.control(control)
    }

    fn codec(&self) -> PayloadCodec {
        PayloadCodec { schema: || "chunk 1".to_owned(), encode, select }
    }
}

fn encode(payload: &Payload, out: &mut Vec<u8>) -> Result<()> {
    match payload {
        Payload::Local { batch, .. } => batch.downcast_ref::<Chunk>().ok_or_else(wrong_type)?.encode(out),
        Payload::Encoded { data, .. } => {
            out.extend_from_slice(data);
            Ok(())
        }
    }
}

fn select(data: &[u8], _: u32, is_wanted: &dyn Fn(u64) -> bool) -> Result<(u32, Vec<u8>)> {
    let chunk = Chunk::decode(data)?;
    let hashes = chunk.hashes.clone().ok_or_else(|| Error::system("rows that were sent by key have no hashes"))?;
    let rows: Vec<u32> = (0..chunk.len()).filter(|&row| is_wanted(hashes[row])).map(|row| row as u32).collect();
    let chosen = chunk.take(&rows)?;
    let mut out = Vec::new();
    chosen.encode(&mut out)?;
    Ok((chosen.len() as u32, out))
}

fn wrong_type() -> Error {
    Error::system("a channel delivered records of another type")
}
