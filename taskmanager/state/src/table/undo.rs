//! How a key group gets back to where it was at a checkpoint.
//!
//! A log has one segment for each freeze that was not detached, and a segment has what the freeze found and what has changed since:
//! entries as they were before their first change or removal. To go back, the segments are put back, the newest
//! first, and then the entries that are younger than the freeze go. They need no record, since their epoch tells.
//!
//! Invariants:
//! - An entry is at most once in a segment, and only if it was there at the freeze. Its first change gives it the
//!   segment's epoch or a later one; removed, it can only come back with such a one; and entries of these are not noted.
//! - The segments are without a gap: the last one is of the last such freeze. When one cannot be kept, all older ones go too.
//!
//! A log is bounded, since most of them are never needed: going back is given up for what does not fit, and then
//! the group is read from the checkpoint's files. Each record has a weight, 2 for an entry that changed, which
//! is in memory twice now, and 1 for one that was removed, whose place is free now. The weight of a log is at most
//! the number of entries that the group had at one of its freezes, plus [`WEIGHT_FREE`]: it has up to half of
//! the group's entries beside the group, or all of them when they have left it.

use flott_core::codec::{self, Decoder};
use flott_core::ids::CheckpointId;
use flott_core::{Data, Result};

use super::{Entry, Group, Namespace, PERSISTED};

/// The weight of an entry that changed.
pub(super) const CHANGED: usize = 2;

/// The weight of an entry that was removed.
pub(super) const REMOVED: usize = 1;

/// The weight of a segment itself, so that checkpoints that fail, one after another, do not fill the memory.
const SEGMENT: usize = 16;

/// What a log may weigh however small its group is.
const WEIGHT_FREE: usize = 2048;

/// The undo log of a key group. An empty one notes nothing.
#[derive(Default)]
pub(super) struct Undo {
    segments: Vec<Segment>,
}

/// What changed between a freeze and the next.
struct Segment {
    checkpoint: CheckpointId,
    /// Entries of this epoch or a later one were not there at the freeze.
    epoch: u32,
    /// How many entries the group had at the freeze.
    table_len: usize,
    /// `(epoch key namespace value)*`
    records: Vec<u8>,
    weight: usize,
}

impl Undo {
    /// Notes what changes from here on: the freeze of `checkpoint` found `table_len` entries and began `epoch`.
    pub(super) fn start(&mut self, checkpoint: CheckpointId, epoch: u32, table_len: usize) {
        self.segments.push(Segment { checkpoint, epoch, table_len, records: Vec::new(), weight: SEGMENT });
        self.limit();
    }

    /// Forgets everything, until it is started again.
    pub(super) fn give_up(&mut self) {
        self.segments = Vec::new();
    }

    /// Forgets how to get to where the group was before `checkpoint`.
    pub(super) fn confirm(&mut self, checkpoint: CheckpointId) {
        self.segments.retain(|segment| segment.checkpoint >= checkpoint);
    }

    /// Notes an entry of an older epoch as it is, before it changes or goes.
    pub(super) fn note<K: Data, N: Data, V: Data>(&mut self, entry: &Entry<K, N, V>, weight: usize) {
        let Some(segment) = self.segments.last_mut() else { return };
        segment.weight += weight;
        match segment.push(entry) {
            Ok(()) => self.limit(),
            // The next snapshot will say what is wrong with the entry.
            Err(_) => self.give_up(),
        }
    }

    fn limit(&mut self) {
        while self.weight() > WEIGHT_FREE + self.segments.iter().map(|segment| segment.table_len).max().unwrap_or(0) {
            self.segments.remove(0);
        }
    }

    fn weight(&self) -> usize {
        self.segments.iter().map(|segment| segment.weight).sum()
    }

    /// Bytes in memory.
    pub(super) fn bytes(&self) -> usize {
        self.segments.iter().map(|segment| segment.records.capacity()).sum()
    }

    /// Takes the group back to where it was at `checkpoint`, if that is still known. To a table that adopts them, its
    /// entries look like restored ones.
    pub(super) fn rewind<K: Data + Eq, N: Namespace, V: Data>(
        self,
        mut group: Group<K, N, V>,
        checkpoint: CheckpointId,
    ) -> Option<Group<K, N, V>> {
        let first = self.segments.iter().rposition(|segment| segment.checkpoint == checkpoint)?;
        for segment in self.segments[first..].iter().rev() {
            segment.put_back(&mut group).ok()?;
        }
        let epoch = self.segments[first].epoch;
        group.retain(|entry| {
            let was_there = entry.epoch() < epoch;
            entry.epoch = PERSISTED;
            was_there
        });
        Some(group)
    }
}

impl Segment {
    fn push<K: Data, N: Data, V: Data>(&mut self, entry: &Entry<K, N, V>) -> Result<()> {
        codec::encode_into(&entry.epoch, &mut self.records)?;
        codec::encode_into(&entry.key, &mut self.records)?;
        codec::encode_into(&entry.namespace, &mut self.records)?;
        codec::encode_into(&entry.value, &mut self.records)
    }

    fn put_back<K: Data + Eq, N: Namespace, V: Data>(&self, group: &mut Group<K, N, V>) -> Result<()> {
        let mut records = Decoder::new(&self.records);
        while !records.is_empty() {
            let epoch = records.read()?;
            let (key, namespace, value): (K, N, V) = (records.read()?, records.read()?, records.read()?);
            Entry { epoch, key, namespace, value }.put_into(group);
        }
        Ok(())
    }
}
