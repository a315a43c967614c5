//! What is kept of groups: in keyed state each by itself, in an arena side by side.

use std::collections::BTreeMap;

use flott_core::Result;
use flott_operators::operator::StateVisitor;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use super::counts::{Names, ValueCounts};
use super::rich::{Rich, count};
use crate::row::RowBytes;

/// What is kept of one group. The default is that of a group without rows.
///
/// The form is kept in savepoints.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Accumulators {
    /// How many rows the group has.
    pub rows: i64,
    words: SmallVec<[u64; 4]>,
    rich: Vec<Rich>,
}

/// The accumulators of some groups, by number.
#[derive(Debug, Default)]
pub struct Arena {
    pub(super) width: usize,
    pub(super) depth: usize,
    /// How many rows each group has.
    pub rows: Vec<i64>,
    pub(super) words: Vec<u64>,
    pub(super) rich: Vec<Rich>,
    /// Distinct values and extremes that are entries of their own, by the place of the state without fixed size that they
    /// are instead. Empty where groups have no names.
    pub(super) counts: Vec<Option<ValueCounts>>,
    names: Names,
}

impl Arena {
    /// No groups yet, with so many words and so many states without fixed size each.
    pub(super) fn new(width: usize, depth: usize) -> Self {
        Self { width, depth, ..Self::default() }
    }

    /// The number of groups.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Forgets all groups, but keeps their memory.
    pub fn clear(&mut self) {
        self.rows.clear();
        self.words.clear();
        self.rich.clear();
        self.names.clear();
    }

    /// Adds a group with what was kept of it, which is left as if it had no rows. Returns its number.
    pub fn load(&mut self, kept: &mut Accumulators) -> usize {
        self.rows.push(kept.rows);
        self.words.extend_from_slice(&kept.words);
        self.words.resize(self.rows.len() * self.width, 0);
        self.rich.append(&mut kept.rich);
        self.rich.resize(self.rows.len() * self.depth, Rich::Nothing);
        self.rows.len() - 1
    }

    /// The same of a group with a key, by which its values are known that are entries of their own.
    pub fn load_named(&mut self, hash: u64, key: &RowBytes, kept: &mut Accumulators) -> usize {
        if !self.counts.is_empty() {
            self.names.push(hash, key);
        }
        self.load(kept)
    }

    /// A group with a key goes, and so do its values that are entries of their own.
    pub fn forget(&mut self, hash: u64, key: &RowBytes) {
        self.counts.iter_mut().flatten().for_each(|counts| counts.remove(hash, key));
    }

    /// All groups go.
    pub fn forget_all(&mut self) -> Result<()> {
        self.counts.iter_mut().flatten().try_for_each(ValueCounts::clear)
    }

    /// Shows the values that are entries of their own as keyed state.
    pub fn states(&mut self, visit: StateVisitor<'_>) -> Result<()> {
        self.counts.iter_mut().flatten().try_for_each(|counts| counts.states(visit))
    }

    /// The state has been restored.
    pub fn restored(&mut self) -> Result<()> {
        self.counts.iter_mut().flatten().try_for_each(ValueCounts::restored)
    }

    /// A distinct value of a group comes (1) or goes (-1). Returns whether it is the first or was the last of its kind.
    #[inline]
    pub(super) fn step(&mut self, group: usize, at: usize, value: &[u8], by: i64) -> bool {
        match self.counts.get_mut(at) {
            Some(Some(counts)) => counts.step(self.names.get(group), value, by),
            _ => self.rich_mut(group, at).counted().step(value, by),
        }
    }

    /// A distinct value of a group, where values only come, comes to some views. Returns those to which it is new.
    #[inline]
    pub(super) fn see(&mut self, group: usize, at: usize, value: &[u8], views: u64) -> u64 {
        match self.counts.get_mut(at) {
            Some(Some(counts)) => counts.see(self.names.get(group), value, views),
            _ => self.rich_mut(group, at).seen().see(value, views),
        }
    }

    /// A value that is one of those in order comes or goes.
    #[inline]
    pub(super) fn step_ordered(&mut self, group: usize, at: usize, value: &[u8], by: i64) {
        match self.counts.get_mut(at) {
            Some(Some(counts)) => {
                counts.step(self.names.get(group), value, by);
            }
            _ => count(self.rich_mut(group, at).ordered(), RowBytes::new(value), by),
        }
    }

    /// Those in order, with how often each is there.
    pub(super) fn ordered(&self, group: usize, at: usize) -> Option<&BTreeMap<RowBytes, i64>> {
        if let Some(Some(counts)) = self.counts.get(at) {
            return counts.ordered(self.names.get(group).1);
        }
        match self.rich_of(group, at) {
            Rich::Ordered(values) => Some(values),
            _ => None,
        }
    }

    /// The greatest or least of those in order.
    pub(super) fn extreme(&self, group: usize, at: usize, is_max: bool) -> Option<&[u8]> {
        if let Some(Some(counts)) = self.counts.get(at) {
            return counts.extreme(self.names.get(group).1, is_max);
        }
        let Rich::Ordered(values) = self.rich_of(group, at) else { return None };
        // Those that were taken back before they came are not there.
        let mut there = values.iter().filter(|(_, count)| **count > 0).map(|(value, _)| value.as_slice());
        if is_max { there.next_back() } else { there.next() }
    }

    /// Adds a group without rows. Returns its number.
    pub fn add(&mut self) -> usize {
        self.load(&mut Accumulators::default())
    }

    /// Forgets the last group.
    pub(super) fn pop(&mut self) {
        self.rows.pop();
        self.words.truncate(self.rows.len() * self.width);
        self.rich.truncate(self.rows.len() * self.depth);
    }

    /// Puts what is to be kept of a group in place of what was.
    pub fn store(&mut self, group: usize, kept: &mut Accumulators) {
        kept.rows = self.rows[group];
        kept.words.clear();
        kept.words.extend_from_slice(&self.words[group * self.width..(group + 1) * self.width]);
        kept.rich.clear();
        let rich = &mut self.rich[group * self.depth..(group + 1) * self.depth];
        kept.rich.extend(rich.iter_mut().map(std::mem::take));
    }

    /// Makes a group one without rows again.
    pub fn reset(&mut self, group: usize) {
        self.rows[group] = 0;
        self.words[group * self.width..(group + 1) * self.width].fill(0);
        self.rich[group * self.depth..(group + 1) * self.depth].fill(Rich::Nothing);
    }

    #[inline]
    pub(super) fn cell(&mut self, group: usize, at: usize) -> &mut [u64] {
        &mut self.words[group * self.width + at..]
    }

    #[inline]
    pub(super) fn words_of(&self, group: usize, at: usize) -> &[u64] {
        &self.words[group * self.width + at..]
    }

    pub(super) fn rich_mut(&mut self, group: usize, at: usize) -> &mut Rich {
        &mut self.rich[group * self.depth + at]
    }

    pub(super) fn rich_of(&self, group: usize, at: usize) -> &Rich {
        &self.rich[group * self.depth + at]
    }
}
