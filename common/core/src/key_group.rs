//! Key groups: the unit in which keyed state is owned, checkpointed and moved.
//!
//! A key belongs to group `(low 32 bits of its hash × max_parallelism) >> 32`, and subtask `i` of `p`
//! owns a contiguous range of groups, as in Flink's `KeyGroupRangeAssignment`. The group is taken
//! from bits 31 downwards so that hash tables, which use the highest and the lowest bits, still see
//! random ones within a group.

use serde::{Deserialize, Serialize};

/// The number of a key group, below `max_parallelism`.
pub type KeyGroup = u16;

/// The highest max-parallelism that can be configured, as in Flink.
pub const MAX_PARALLELISM_LIMIT: u32 = 1 << 15;

/// The groups `start..end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyGroupRange {
    /// The first group.
    pub start: u32,
    /// One past the last group.
    pub end: u32,
}

impl KeyGroupRange {
    /// Whether `group` is in the range.
    pub fn contains(self, group: KeyGroup) -> bool {
        (self.start..self.end).contains(&u32::from(group))
    }

    /// Whether a group is in both.
    pub fn overlaps(self, other: Self) -> bool {
        self.start < other.end && other.start < self.end
    }

    /// How many groups.
    pub fn len(self) -> usize {
        (self.end - self.start) as usize
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.start == self.end
    }
}

/// The key group of a key with this [stable hash](crate::hash::stable_hash).
pub fn group_of(hash: u64, max_parallelism: u32) -> KeyGroup {
    ((u64::from(hash as u32) * u64::from(max_parallelism)) >> 32) as KeyGroup
}

/// The groups that subtask `index` of `parallelism` owns.
pub fn range_of(parallelism: u32, index: u32, max_parallelism: u32) -> KeyGroupRange {
    let bound = |i: u32| ((u64::from(i) * u64::from(max_parallelism)).div_ceil(u64::from(parallelism))) as u32;
    KeyGroupRange { start: bound(index), end: bound(index + 1) }
}

/// The subtask of `parallelism` that owns `group`.
pub fn owner_of(group: KeyGroup, parallelism: u32, max_parallelism: u32) -> u32 {
    (u64::from(group) * u64::from(parallelism) / u64::from(max_parallelism)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_tile_all_groups_and_agree_with_owners() {
        for max_parallelism in [1, 2, 7, 128, 1000] {
            for parallelism in 1..=max_parallelism.min(130) {
                let mut next = 0;
                for index in 0..parallelism {
                    let range = range_of(parallelism, index, max_parallelism);
                    assert_eq!(range.start, next);
                    assert!(!range.is_empty());
                    for group in range.start..range.end {
                        assert_eq!(owner_of(group as KeyGroup, parallelism, max_parallelism), index);
                    }
                    next = range.end;
                }
                assert_eq!(next, max_parallelism);
            }
        }
    }

    #[test]
    fn groups_are_below_max_parallelism() {
        for hash in [0, 1, u64::from(u32::MAX), u64::MAX] {
            assert!(group_of(hash, 128) < 128);
        }
        assert_eq!(group_of(u64::MAX, 128), 127);
    }
}
