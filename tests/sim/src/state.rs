//! The keyed state of a sink: how many records of each key it has counted.
//!
//! A key is every [`KEYS_PER_SPLIT`]-th record of a split. Its records come in order, so its count says which one must be
//! next: a record that was lost, repeated, or sent to the wrong subtask shows at once, and so does state that was.

use std::collections::{BTreeMap, BTreeSet};

use flott_core::hash::stable_hash;
use flott_core::ids::CheckpointId;
use flott_core::key_group::{KeyGroup, KeyGroupRange, group_of};

use crate::oracle::Violation;

const KEYS_PER_SPLIT: u32 = 5;

/// What state files hold: keys, and how many of their records were counted.
pub(crate) type Entries = BTreeMap<Key, u32>;

/// The number of a record: its split and its position there.
pub(crate) fn record_of(split: u32, position: u32) -> u64 {
    (u64::from(split) << 32) | u64::from(position)
}

/// What is counted apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    split: u32,
    residue: u32,
}

impl Key {
    /// The key of a record.
    pub(crate) fn of(record: u64) -> Self {
        Self { split: (record >> 32) as u32, residue: record as u32 % KEYS_PER_SPLIT }
    }

    /// Its key group.
    pub(crate) fn group(self, max_parallelism: u32) -> KeyGroup {
        group_of(stable_hash(&(self.split, self.residue)), max_parallelism)
    }

    /// A key that no record has, of one of these key groups.
    fn within(range: KeyGroupRange, max_parallelism: u32) -> Self {
        let keys = (0..).map(|residue| Self { split: u32::MAX, residue });
        let mut keys = keys.take_while(|_| range.start < range.end);
        keys.find(|key| range.contains(key.group(max_parallelism))).unwrap_or(Self { split: u32::MAX, residue: 0 })
    }
}

/// What a worker has of the execution before, as it was at a checkpoint.
#[derive(Clone, Debug, Default)]
pub(crate) struct Held {
    pub(crate) checkpoint: Option<CheckpointId>,
    pub(crate) groups: BTreeMap<KeyGroup, Entries>,
}

/// The keyed state of one subtask.
#[derive(Clone, Debug)]
pub(crate) struct Counts {
    range: KeyGroupRange,
    max_parallelism: u32,
    /// What all records count for, where they do not come by key.
    single: Option<Key>,
    entries: Entries,
    /// What changed since the last checkpoint that was no savepoint.
    changed: BTreeSet<Key>,
    /// How it was at checkpoints, up to the last one that is durable; `None` if it cannot go back.
    frozen: Option<BTreeMap<CheckpointId, Entries>>,
}

impl Counts {
    /// What was restored for some key groups. It can go back to `rewindable_from`, if it can go back at all.
    pub(crate) fn new(
        range: KeyGroupRange,
        max_parallelism: u32,
        entries: Entries,
        rewindable_from: Option<CheckpointId>,
        (is_keyed, is_rewindable): (bool, bool),
    ) -> Self {
        let single = (!is_keyed).then(|| Key::within(range, max_parallelism));
        let first = rewindable_from.map(|checkpoint| (checkpoint, entries.clone()));
        let frozen = is_rewindable.then(|| first.into_iter().collect());
        Self { range, max_parallelism, single, entries, changed: BTreeSet::new(), frozen }
    }

    /// Counts a record, which has to be the next of its key if it comes by key.
    pub(crate) fn add(&mut self, record: u64) -> Result<(), Violation> {
        if let Some(key) = self.single {
            *self.entries.entry(key).or_default() += 1;
            self.changed.insert(key);
            return Ok(());
        }
        let key = Key::of(record);
        if !self.range.contains(key.group(self.max_parallelism)) {
            return Err(format!("got record {record:#x} of {key:?}, but has the key groups {:?}", self.range));
        }
        let count = self.entries.entry(key).or_default();
        let next = record_of(key.split, *count * KEYS_PER_SPLIT + key.residue);
        if record != next {
            return Err(format!("got record {record:#x}, but the next of {key:?} is {next:#x}"));
        }
        *count += 1;
        self.changed.insert(key);
        Ok(())
    }

    /// All of it.
    pub(crate) fn entries(&self) -> &Entries {
        &self.entries
    }

    /// How many records were counted.
    pub(crate) fn total(&self) -> u64 {
        self.entries.values().copied().map(u64::from).sum()
    }

    /// What changed since the last call.
    pub(crate) fn take_changes(&mut self) -> Entries {
        let changed = std::mem::take(&mut self.changed);
        changed.into_iter().filter_map(|key| Some((key, *self.entries.get(&key)?))).collect()
    }

    /// A checkpoint is taken, which may be gone back to.
    pub(crate) fn freeze(&mut self, checkpoint: CheckpointId) {
        if let Some(frozen) = &mut self.frozen {
            frozen.insert(checkpoint, self.entries.clone());
        }
    }

    /// A checkpoint is durable: nobody goes back to earlier ones.
    pub(crate) fn confirm(&mut self, checkpoint: CheckpointId) {
        if let Some(frozen) = &mut self.frozen {
            *frozen = frozen.split_off(&checkpoint);
        }
    }

    /// All key groups as they were at a checkpoint, if that is still known.
    pub(crate) fn release(mut self, checkpoint: CheckpointId) -> BTreeMap<KeyGroup, Entries> {
        let Some(entries) = self.frozen.as_mut().and_then(|frozen| frozen.remove(&checkpoint)) else {
            return BTreeMap::new();
        };
        let groups = self.range.start..self.range.end;
        let mut groups: BTreeMap<KeyGroup, Entries> = groups.map(|group| (group as KeyGroup, Entries::new())).collect();
        for (key, count) in entries {
            groups.entry(key.group(self.max_parallelism)).or_default().insert(key, count);
        }
        groups
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: KeyGroupRange = KeyGroupRange { start: 0, end: 8 };

    fn counts(rewindable_from: Option<CheckpointId>) -> Counts {
        Counts::new(ALL, 8, Entries::new(), rewindable_from, (true, true))
    }

    fn count(counts: &mut Counts, positions: std::ops::Range<u32>) {
        positions.for_each(|position| counts.add(record_of(3, position)).unwrap());
    }

    #[test]
    fn a_record_that_is_lost_or_repeated_shows() {
        let mut counts = counts(None);
        count(&mut counts, 0..7);
        assert!(counts.add(record_of(3, 6)).is_err(), "it was there already");
        assert!(counts.add(record_of(3, 12)).is_err(), "7 is of the same key, and was not there");
        count(&mut counts, 7..8);
        counts.add(record_of(3, 12)).unwrap();
        assert_eq!(counts.total(), 9);
        let mut nobody = Counts::new(KeyGroupRange { start: 0, end: 0 }, 8, Entries::new(), None, (true, true));
        assert!(nobody.add(record_of(3, 0)).is_err(), "it has no key group");
    }

    #[test]
    fn state_goes_back_to_what_may_be_restored() {
        let mut counts = counts(Some(4));
        count(&mut counts, 0..10);
        counts.freeze(5);
        let saved = counts.entries().clone();
        count(&mut counts, 10..20);
        counts.freeze(6);
        counts.confirm(5);
        assert!(counts.clone().release(4).is_empty(), "nobody starts from there any more");
        let released = counts.clone().release(5);
        assert_eq!(released.len(), ALL.len(), "groups without a key are held too");
        assert_eq!(released.into_values().flatten().collect::<Entries>(), saved);
        counts.confirm(6);
        assert!(counts.release(5).is_empty());
    }
}
