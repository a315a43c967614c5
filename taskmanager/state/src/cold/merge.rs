//! Which runs are merged, and a merge under way.
//!
//! Runs are merged when there are more than `runs_max`. From the newest pair on, neighbours in age are looked for of
//! which the older is at most twice the newer; they are merged together with each still older run that is at most twice
//! what has been gathered by then. So a merge makes every entry's run at least half as large again, and an entry is
//! written at most 1 + log₁.₅(size of the state / size of a flush) times: in practice about five times for a thousand
//! flushes and eight for ten thousand, because there are usually many small runs at hand. If nothing can be merged by
//! that rule, each run is more than twice the next, so that there are at most as many as doublings, from 64 blocks on.

use std::ops::Range;

use flott_core::Result;
use flott_core::key_group::KeyGroup;

use super::live::{GroupSet, Live};
use super::scan::Scan;
use super::writer::RunWriter;

/// Runs of fewer blocks count as if they had so many, so that there cannot be many of them.
const BLOCKS_MIN: usize = 64;

/// What the choice depends on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    weight: u64,
    is_mostly_dropped: bool,
}

/// The sizes of runs. A tombstone weighs as much as an entry, so that state that is deleted becomes smaller.
pub(super) fn sizes(runs: &[Live], block_bytes: usize) -> Vec<Size> {
    let weight_min = block_bytes.saturating_mul(BLOCKS_MIN) as u64;
    let (mut bytes, mut entries) = (0_u64, 0_u64);
    let parts: Vec<(u64, u64)> = runs.iter().map(|live| (live.bytes(), live.entries())).collect();
    for (run_bytes, run_entries) in &parts {
        bytes += run_bytes;
        entries += run_entries;
    }
    let mean = bytes / entries.max(1);
    let size = |(live, (bytes, entries)): (&Live, (u64, u64))| Size {
        weight: bytes.max(entries.saturating_mul(mean)).max(weight_min),
        is_mostly_dropped: bytes < live.run.data_bytes() / 2,
    };
    runs.iter().zip(parts).map(size).collect()
}

/// The runs to merge next, of those with these sizes, the oldest first.
pub(super) fn plan(sizes: &[Size], runs_max: usize) -> Option<Range<usize>> {
    if sizes.len() > runs_max.max(1) {
        for end in (2..=sizes.len()).rev() {
            let mut start = end - 1;
            let mut gathered = sizes[start].weight;
            while let Some(older) = start.checked_sub(1)
                && sizes[older].weight / 2 <= gathered
            {
                start = older;
                gathered = gathered.saturating_add(sizes[start].weight);
            }
            if end - start >= 2 {
                return Some(start..end);
            }
        }
    }
    // Key groups that moved away leave their entries behind; when they are most of a run, it is worth writing anew.
    let wasted = sizes.iter().position(|size| size.is_mostly_dropped)?;
    Some(wasted..wasted + 1)
}

/// A merge under way.
pub(super) struct Merge {
    scan: Scan,
    writer: RunWriter,
    /// The first of the runs that are merged.
    first_id: u64,
    /// How many they are.
    runs: usize,
    keeps_tombstones: bool,
    /// Key groups that were dropped since it began: it may have written entries of them already.
    dropped: GroupSet,
}

impl Merge {
    /// Begins to merge `runs`; `is_oldest` says that there are no older ones, so that tombstones have done their work.
    pub(super) fn new(runs: &[Live], is_oldest: bool, create: impl FnOnce(u64) -> Result<RunWriter>) -> Result<Self> {
        let expected = runs.iter().map(Live::entries).sum();
        Ok(Self {
            scan: Scan::of_all(runs)?,
            writer: create(expected)?,
            first_id: runs.first().map_or(0, |live| live.run.location().id()),
            runs: runs.len(),
            keeps_tombstones: !is_oldest,
            dropped: GroupSet::default(),
        })
    }

    /// Merges until about `budget_bytes` are read; true at the end.
    pub(super) fn advance(&mut self, budget_bytes: u64) -> Result<bool> {
        let until = self.scan.bytes_read().saturating_add(budget_bytes);
        while let Some((group, hash, key, value)) = self.scan.next_record()? {
            if value.is_some() || self.keeps_tombstones {
                self.writer.push(group, hash, key, value)?;
            }
            if self.scan.bytes_read() >= until {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// What comes out of it, if anything; to be called when [`Merge::advance`] has returned true.
    pub(super) fn finish(self) -> Result<Option<Live>> {
        let merged = self.writer.finish()?.map(|run| Live::new(run, self.dropped));
        Ok(merged)
    }

    /// Where in `runs` those that are merged stand. They are still there and still neighbours, since others are only
    /// added behind them.
    pub(super) fn place_in(&self, runs: &[Live]) -> Range<usize> {
        let start = runs.iter().position(|live| live.run.location().id() == self.first_id).unwrap_or(runs.len());
        start..runs.len().min(start + self.runs)
    }

    pub(super) fn drop_group(&mut self, group: KeyGroup) {
        self.dropped.insert(group);
    }

    /// What it keeps in memory.
    pub(super) fn memory_bytes(&self) -> u64 {
        self.scan.memory_bytes() as u64 + self.writer.memory_bytes()
    }

    /// What it has written so far.
    pub(super) fn disk_bytes(&self) -> u64 {
        self.writer.disk_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLUSH: u64 = 4 << 20;

    fn of(weights: &[u64]) -> Vec<Size> {
        weights.iter().map(|weight| Size { weight: *weight, is_mostly_dropped: false }).collect()
    }

    #[test]
    fn neighbours_of_about_one_size_are_merged_when_there_are_too_many() {
        assert_eq!(plan(&of(&[]), 2), None);
        assert_eq!(plan(&of(&[5, 5]), 2), None);
        assert_eq!(plan(&of(&[5, 5, 5]), 2), Some(0..3));
        assert_eq!(plan(&of(&[40, 5, 5]), 2), Some(1..3));
        assert_eq!(plan(&of(&[40, 9, 8, 1]), 2), Some(1..3), "the newest is too small for its neighbour");
        assert_eq!(plan(&of(&[80, 30, 10, 3]), 2), None, "each is more than twice the next");
        assert_eq!(plan(&of(&[1, 80, 30, 10]), 2), Some(0..2), "an older one may be small");
    }

    #[test]
    fn a_run_that_is_mostly_dropped_is_written_anew_when_nothing_else_is_to_do() {
        let mut sizes = of(&[40, 5, 5]);
        sizes[1].is_mostly_dropped = true;
        assert_eq!(plan(&sizes, 3), Some(1..2));
        assert_eq!(plan(&sizes, 2), Some(1..3));
    }

    /// Nothing is shadowed here, so that merging is as expensive as it can be.
    #[test]
    fn an_entry_is_written_few_times_and_there_are_few_runs() {
        for (flushes, writes_max, runs_max) in [(100, 4, 8), (1_000, 6, 8), (10_000, 9, 10)] {
            let (mut runs, mut written, mut most) = (Vec::new(), 0_u64, 0);
            for _ in 0..flushes {
                runs.push(FLUSH);
                written += FLUSH;
                while let Some(range) = plan(&of(&runs), 8) {
                    let merged: u64 = runs[range.clone()].iter().sum();
                    written += merged;
                    runs.splice(range, [merged]);
                }
                most = most.max(runs.len());
            }
            assert_eq!(runs.iter().sum::<u64>(), flushes * FLUSH);
            assert!(written <= writes_max * flushes * FLUSH, "{flushes}: {} times", written / (flushes * FLUSH));
            assert!(most <= runs_max, "{flushes}: {most} runs");
        }
    }
}
