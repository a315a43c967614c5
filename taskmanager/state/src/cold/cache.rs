//! Blocks that were read lately, up to a number of bytes. The page cache of the system has them too, but asking it
//! costs a system call, a checksum and often a decompression.

use std::sync::Arc;

use flott_core::Result;
use hashbrown::HashMap;

use super::block::Block;
use super::run::Run;

/// A block that would take more than this part of the cache is not kept: it would drive out too many others.
const PART_MAX: usize = 8;

struct Slot {
    key: (u64, usize),
    block: Arc<Block>,
    bytes: usize,
    was_used: bool,
}

/// Keeps blocks by run and number, and gives up one that was not used since the clock's hand passed it last.
/// Blocks of runs that are gone are never used, so they go like others.
pub(super) struct BlockCache {
    bytes_max: usize,
    bytes: usize,
    slots: Vec<Slot>,
    places: HashMap<(u64, usize), usize>,
    hand: usize,
    scratch: Vec<u8>,
}

impl BlockCache {
    pub(super) fn new(bytes_max: usize) -> Self {
        Self { bytes_max, bytes: 0, slots: Vec::new(), places: HashMap::new(), hand: 0, scratch: Vec::new() }
    }

    /// What it keeps in memory.
    pub(super) fn memory_bytes(&self) -> usize {
        self.bytes + self.scratch.capacity()
    }

    /// A block of a run.
    #[inline]
    pub(super) fn block(&mut self, run: &Run, index: usize) -> Result<Arc<Block>> {
        let key = (run.location().id(), index);
        match self.places.get(&key) {
            Some(&place) => {
                let slot = &mut self.slots[place];
                slot.was_used = true;
                Ok(slot.block.clone())
            }
            None => self.read(run, key),
        }
    }

    #[inline(never)]
    fn read(&mut self, run: &Run, key: (u64, usize)) -> Result<Arc<Block>> {
        let wanted = run.block(key.1).raw_length as usize;
        let is_kept = wanted <= self.bytes_max / PART_MAX;
        let mut given_up = None;
        while is_kept && !self.slots.is_empty() && self.bytes + wanted > self.bytes_max {
            given_up = Some(self.give_up());
        }
        // Its buffer is used again, unless somebody still reads it, or it is so large that it would be a waste.
        let fits = |block: &Arc<Block>| block.capacity() <= 2 * wanted;
        let mut block = given_up.filter(fits).and_then(Arc::into_inner).unwrap_or_default();
        run.read_block(key.1, &mut block, &mut self.scratch)?;
        let block = Arc::new(block);
        if is_kept {
            let bytes = block.capacity();
            self.bytes += bytes;
            self.places.insert(key, self.slots.len());
            self.slots.push(Slot { key, block: block.clone(), bytes, was_used: false });
        }
        Ok(block)
    }

    /// Removes one block; there is one.
    fn give_up(&mut self) -> Arc<Block> {
        self.hand %= self.slots.len();
        while std::mem::take(&mut self.slots[self.hand].was_used) {
            self.hand = (self.hand + 1) % self.slots.len();
        }
        let slot = self.slots.swap_remove(self.hand);
        self.places.remove(&slot.key);
        if let Some(moved) = self.slots.get(self.hand) {
            self.places.insert(moved.key, self.hand);
        }
        // The block that took its place is the youngest: its turn is a round later.
        self.hand += 1;
        self.bytes -= slot.bytes;
        slot.block
    }
}
