//! State of aggregates that has no fixed size.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};

use hashbrown::HashTable;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::seen::Seen;
use super::sketch::Sketch;
use crate::row::{RowBytes, hash_of};

/// State of one aggregate, or of the distinct values of some. The form is kept in savepoints: variants are only added.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub enum Rich {
    /// Nothing has come yet.
    #[default]
    Nothing,
    /// One value.
    Value(RowBytes),
    /// Values in their order, with how often they are there.
    Ordered(BTreeMap<RowBytes, i64>),
    /// Values in no order, with how often they are there.
    Counted(Counts),
    /// Values in the order in which they came.
    Sequence(Sequence),
    /// A text that only grows.
    Text(String),
    /// Distinct values, estimated.
    Sketch(Sketch),
    /// Distinct values that only come, with which aggregates have seen them.
    Seen(Seen),
}

macro_rules! access {
    ($name:ident, $variant:ident, $type:ty) => {
        /// The state of this kind, which is made if nothing has come yet.
        pub(super) fn $name(&mut self) -> &mut $type {
            if !matches!(self, Self::$variant(_)) {
                *self = Self::$variant(Default::default());
            }
            match self {
                Self::$variant(state) => state,
                _ => unreachable!("it was just made one"),
            }
        }
    };
}

impl Rich {
    access!(ordered, Ordered, BTreeMap<RowBytes, i64>);
    access!(counted, Counted, Counts);
    access!(sequence, Sequence, Sequence);
    access!(sketch, Sketch, Sketch);
    access!(seen, Seen, Seen);
}

/// Adds to the count of a value, and forgets it at 0. Below that, it was taken back before it came.
pub(super) fn count(values: &mut BTreeMap<RowBytes, i64>, value: RowBytes, by: i64) {
    match values.entry(value) {
        Entry::Occupied(mut entry) => {
            *entry.get_mut() += by;
            if *entry.get() == 0 {
                entry.remove();
            }
        }
        Entry::Vacant(entry) => {
            entry.insert(by);
        }
    }
}

/// How often values are there.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    table: HashTable<(RowBytes, i64)>,
}

impl Counts {
    /// A value comes (1) or goes (-1). Returns whether that makes it the first or was the last of its kind.
    #[inline]
    pub(super) fn step(&mut self, value: &[u8], by: i64) -> bool {
        let hash = hash_of(value);
        match self.table.find_entry(hash, |(known, _)| known.as_slice() == value) {
            Ok(mut entry) => {
                let count = &mut entry.get_mut().1;
                let before = *count;
                *count += by;
                let after = *count;
                if after == 0 {
                    entry.remove();
                }
                (before > 0) != (after > 0)
            }
            Err(_) => {
                let rehash = |(known, _): &(RowBytes, i64)| hash_of(known.as_slice());
                self.table.insert_unique(hash, (RowBytes::new(value), by), rehash);
                by > 0
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// All values with their counts, in no particular order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&[u8], i64)> {
        self.table.iter().map(|(value, count)| (value.as_slice(), *count))
    }

    /// In the order of bytes.
    fn sorted(&self) -> Vec<&(RowBytes, i64)> {
        let mut all: Vec<&(RowBytes, i64)> = self.table.iter().collect();
        all.sort_unstable();
        all
    }
}

impl PartialEq for Counts {
    fn eq(&self, other: &Self) -> bool {
        self.sorted() == other.sorted()
    }
}

impl Serialize for Counts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.table.iter())
    }
}

impl<'de> Deserialize<'de> for Counts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let values = Vec::<(RowBytes, i64)>::deserialize(deserializer)?;
        let mut table = HashTable::with_capacity(values.len());
        for value in values {
            table.insert_unique(hash_of(value.0.as_slice()), value, |(known, _)| hash_of(known.as_slice()));
        }
        Ok(Self { table })
    }
}

/// Values in the order in which they came, of which the earliest equal one goes when one is taken back.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sequence {
    next: u64,
    values: BTreeMap<u64, RowBytes>,
    /// Where each value is, earliest first. Empty where nothing is ever taken back.
    places: BTreeMap<RowBytes, VecDeque<u64>>,
    /// How often values were taken back that have not come.
    owed: BTreeMap<RowBytes, u64>,
}

impl Sequence {
    /// A value comes. `retracts` says whether it may go again.
    pub(super) fn push(&mut self, value: RowBytes, retracts: bool) {
        if retracts {
            if let Some(owed) = self.owed.get_mut(&value) {
                *owed -= 1;
                if *owed == 0 {
                    self.owed.remove(&value);
                }
                return;
            }
            self.places.entry(value.clone()).or_default().push_back(self.next);
        }
        self.values.insert(self.next, value);
        self.next += 1;
    }

    /// A value goes.
    pub(super) fn remove(&mut self, value: RowBytes) {
        let Some(places) = self.places.get_mut(&value) else {
            *self.owed.entry(value).or_default() += 1;
            return;
        };
        if let Some(place) = places.pop_front() {
            self.values.remove(&place);
        }
        if places.is_empty() {
            self.places.remove(&value);
        }
    }

    /// All that come after these.
    pub(super) fn append(&mut self, later: &Self, retracts: bool) {
        later.values.values().for_each(|value| self.push(value.clone(), retracts));
        for (value, owed) in &later.owed {
            (0..*owed).for_each(|_| self.remove(value.clone()));
        }
    }

    /// In order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.values.values().map(RowBytes::as_slice)
    }

    pub(super) fn first(&self) -> Option<&[u8]> {
        self.values.first_key_value().map(|(_, value)| value.as_slice())
    }

    pub(super) fn last(&self) -> Option<&[u8]> {
        self.values.last_key_value().map(|(_, value)| value.as_slice())
    }

    pub(super) fn len(&self) -> usize {
        self.values.len()
    }
}
