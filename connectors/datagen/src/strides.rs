//! How the indices of a generator are dealt out to its readers.

use std::collections::VecDeque;

use flott_core::{Error, Result};
use serde::{Deserialize, Serialize};

/// There are at least so many strides, so that a job can be scaled up later.
const STRIDES_MIN: u32 = 16;

/// Every `step`-th block of indices, from the index `next` on. There are `step` strides at the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Stride {
    next: u64,
    step: u64,
}

/// The strides of each of `readers` readers, in blocks of `block` indices.
pub(crate) fn deal(readers: u32, block: u64) -> Vec<Vec<Stride>> {
    let readers = u64::from(readers.max(1));
    let strides_each = u64::from(STRIDES_MIN).div_ceil(readers);
    let step = readers * strides_each;
    let stride = |reader: u64, stride: u64| Stride { next: (reader + stride * readers) * block, step };
    (0..readers).map(|reader| (0..strides_each).map(|index| stride(reader, index)).collect()).collect()
}

/// The strides of one reader: it goes through their indices in order.
#[derive(Debug)]
pub(crate) struct Strides {
    /// The one with the lowest next index first.
    strides: VecDeque<Stride>,
    end: u64,
    block: u64,
}

impl Strides {
    /// No strides yet. Indices from `end` on are left out.
    pub(crate) fn new(end: u64, block: u64) -> Self {
        Self { strides: VecDeque::new(), end, block }
    }

    /// Whether no index is left.
    pub(crate) fn is_empty(&self) -> bool {
        self.strides.is_empty()
    }

    /// The strides that are left.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Stride> {
        self.strides.iter().copied()
    }

    /// Which part of all indices these are.
    pub(crate) fn share(&self) -> f64 {
        self.strides.iter().map(|stride| 1.0 / stride.step as f64).sum()
    }

    /// One stride more.
    pub(crate) fn add(&mut self, stride: Stride) -> Result<()> {
        if stride.step == 0 {
            return Err(Error::input("a split of the generator is damaged: its step is 0"));
        }
        self.insert(stride);
        Ok(())
    }

    fn insert(&mut self, stride: Stride) {
        if stride.next >= self.end {
            return;
        }
        // The stride that is advanced is nearly always the last one then.
        let at = match self.strides.back() {
            Some(last) if last.next > stride.next => self.strides.partition_point(|other| other.next < stride.next),
            _ => self.strides.len(),
        };
        self.strides.insert(at, stride);
    }

    /// Takes the next `count` indices, or those that there are.
    pub(crate) fn take(&mut self, count: u64, mut each: impl FnMut(u64)) {
        let mut left = count;
        while left > 0 {
            let Some(Stride { next, step }) = self.strides.pop_front() else { break };
            let in_block = if self.block == 1 { 1 } else { self.block - next % self.block };
            let run = in_block.min(left).min(self.end - next);
            (next..next + run).for_each(&mut each);
            left -= run;
            let skipped = if run == in_block { (step - 1).saturating_mul(self.block) } else { 0 };
            self.insert(Stride { next: (next + run).saturating_add(skipped), step });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_index_is_dealt_once_and_in_order() {
        for (readers, block, end, count) in [(1, 1, 100, 7), (3, 50, 12_345, 64), (20, 4, 333, 1000), (2, 50, 49, 10)] {
            let mut all = Vec::new();
            for own in deal(readers, block) {
                let mut strides = Strides::new(end, block);
                own.into_iter().for_each(|stride| strides.add(stride).unwrap());
                let mut indices = Vec::new();
                while !strides.is_empty() {
                    let before = indices.len();
                    strides.take(count, |index| indices.push(index));
                    assert!(indices.len() - before <= count as usize);
                }
                assert!(indices.is_sorted());
                all.extend(indices);
            }
            all.sort_unstable();
            assert!(all.into_iter().eq(0..end), "{readers} readers, blocks of {block}");
        }
    }
}
