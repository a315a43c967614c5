//! What is kept of groups: in keyed state each by itself, in an arena side by side.

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use super::rich::Rich;

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
