//! Entries of several runs as one sequence, in which the newest run that knows a key decides.

use std::cmp::Ordering;
use std::ops::Range;

use flott_core::Result;
use flott_core::key_group::KeyGroup;

use super::block::Block;
use super::live::Live;
use super::run::Run;

/// A live entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Its key group.
    pub group: KeyGroup,
    /// Its mixed hash.
    pub hash: u64,
    /// Its key and namespace.
    pub key: &'a [u8],
    /// Its value.
    pub value: &'a [u8],
}

/// Key group, hash, key, and the value unless it is a tombstone.
pub(super) type Record<'a> = (KeyGroup, u64, &'a [u8], Option<&'a [u8]>);

/// Goes through entries in the order of their key groups, hashes and keys. It sees the state as it was when the
/// scan began, whatever the store does meanwhile, and reads a block of each run at a time. After an error it is over.
pub struct Scan {
    /// Those of newer runs come first.
    cursors: Vec<Cursor>,
    /// The one at the current entry.
    current: Option<usize>,
    bytes_read: u64,
}

impl Scan {
    /// What `runs`, the oldest first, have of a key group.
    pub(super) fn of_group(runs: &[Live], group: KeyGroup) -> Result<Self> {
        Self::new(runs, |run| run.blocks_of(group))
    }

    /// All that `runs`, the oldest first, have.
    pub(super) fn of_all(runs: &[Live]) -> Result<Self> {
        Self::new(runs, Run::all_blocks)
    }

    fn new(runs: &[Live], blocks: impl Fn(&Run) -> Range<usize>) -> Result<Self> {
        let mut scan = Self { cursors: Vec::with_capacity(runs.len()), current: None, bytes_read: 0 };
        for live in runs.iter().rev() {
            let mut cursor = Cursor::new(live.clone(), blocks(&live.run));
            scan.bytes_read += cursor.next_block()?;
            if cursor.head.is_some() {
                scan.cursors.push(cursor);
            }
        }
        Ok(scan)
    }

    /// The next live entry, or none at the end.
    pub fn next_entry(&mut self) -> Result<Option<Entry<'_>>> {
        let index = loop {
            let Some(index) = self.step()? else { return Ok(None) };
            if self.cursors[index].record().3.is_some() {
                break index;
            }
        };
        let (group, hash, key, value) = self.cursors[index].record();
        Ok(value.map(|value| Entry { group, hash, key, value }))
    }

    /// The next entry or tombstone, or none at the end.
    pub(super) fn next_record(&mut self) -> Result<Option<Record<'_>>> {
        let index = self.step()?;
        Ok(index.map(|index| self.cursors[index].record()))
    }

    /// How much was read from the files so far.
    pub(super) fn bytes_read(&self) -> u64 {
        self.bytes_read
    }

    /// What it keeps in memory.
    pub(super) fn memory_bytes(&self) -> usize {
        self.cursors.iter().map(|cursor| cursor.block.capacity() + cursor.scratch.capacity()).sum()
    }

    /// Goes to the next key; the cursor that decides about it, or none at the end.
    fn step(&mut self) -> Result<Option<usize>> {
        if let Some(current) = self.current.take() {
            self.bytes_read += self.cursors[current].advance()?;
        }
        let Some(least) = self.least() else { return Ok(None) };
        // Newer runs have only greater keys, and what older ones say of this key no longer counts.
        let (newer, older) = self.cursors.split_at_mut(least + 1);
        for cursor in older {
            if cursor.order(&newer[least]) == Ordering::Equal {
                self.bytes_read += cursor.advance()?;
            }
        }
        self.current = Some(least);
        Ok(Some(least))
    }

    /// The cursor with the least key; of several, that of the newest run.
    fn least(&self) -> Option<usize> {
        let mut least: Option<(usize, &Cursor)> = None;
        for (index, cursor) in self.cursors.iter().enumerate().filter(|(_, cursor)| cursor.head.is_some()) {
            if least.is_none_or(|(_, least)| cursor.order(least) == Ordering::Less) {
                least = Some((index, cursor));
            }
        }
        least.map(|(index, _)| index)
    }
}

/// A position in one run.
struct Cursor {
    live: Live,
    /// Those that were not read yet.
    blocks: Range<usize>,
    block: Block,
    scratch: Vec<u8>,
    /// The current entry of `block`.
    position: usize,
    /// Its key group and hash; none at the end.
    head: Option<(KeyGroup, u64)>,
}

impl Cursor {
    fn new(live: Live, blocks: Range<usize>) -> Self {
        Self { live, blocks, block: Block::default(), scratch: Vec::new(), position: 0, head: None }
    }

    /// The current entry; there is one.
    #[inline]
    fn record(&self) -> Record<'_> {
        let (group, hash) = self.head.unwrap_or_default();
        let (key, value) = self.block.entry(self.position);
        (group, hash, key, value)
    }

    #[inline]
    fn order(&self, other: &Self) -> Ordering {
        self.head.cmp(&other.head).then_with(|| match self.head {
            Some(_) => self.block.entry(self.position).0.cmp(other.block.entry(other.position).0),
            None => Ordering::Equal,
        })
    }

    /// Goes to the next entry, and returns how much was read for it.
    #[inline]
    fn advance(&mut self) -> Result<u64> {
        let Some((group, _)) = self.head else { return Ok(0) };
        self.position += 1;
        if self.position == self.block.entries() {
            return self.next_block();
        }
        self.head = Some((group, self.block.hash(self.position)));
        Ok(0)
    }

    /// Goes to the first entry of the next block whose key group is still there, and returns how much was read.
    fn next_block(&mut self) -> Result<u64> {
        self.head = None;
        let is_there = |index: &usize| !self.live.dropped.contains(self.live.run.block(*index).group);
        let Some(index) = self.blocks.by_ref().find(is_there) else { return Ok(0) };
        self.live.run.read_block(index, &mut self.block, &mut self.scratch)?;
        let meta = self.live.run.block(index);
        self.position = 0;
        self.head = Some((meta.group, self.block.hash(0)));
        Ok(meta.length.into())
    }
}
