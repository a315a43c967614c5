//! Distinct values that only come, shared by all aggregates of one argument.
//!
//! `COUNT(DISTINCT x)`, `COUNT(DISTINCT x) FILTER (WHERE a)` and `… FILTER (WHERE b)` each are a *view* of the values of `x`. A value
//! is kept once, with a bit for each view that has seen it: so a row costs one look, however many views there are.

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::row::{RowBytes, hash_of};

/// Values, and the views that have seen each.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    table: HashTable<(RowBytes, u64)>,
}

impl Seen {
    /// How many views there can be.
    pub(super) const VIEWS_MAX: usize = u64::BITS as usize;

    /// A value comes to some views. Returns those to which it is new.
    #[inline]
    pub(super) fn see(&mut self, value: &[u8], views: u64) -> u64 {
        let hash = hash_of(value);
        let rehash = |(known, _): &(RowBytes, u64)| hash_of(known.as_slice());
        match self.table.entry(hash, |(known, _)| known.as_slice() == value, rehash) {
            Entry::Occupied(mut entry) => {
                let seen = &mut entry.get_mut().1;
                let new = views & !*seen;
                *seen |= new;
                new
            }
            Entry::Vacant(entry) => {
                entry.insert((RowBytes::new(value), views));
                views
            }
        }
    }

    /// All values with their views, in no particular order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&[u8], u64)> {
        self.table.iter().map(|(value, views)| (value.as_slice(), *views))
    }

    /// In the order of bytes.
    fn sorted(&self) -> Vec<&(RowBytes, u64)> {
        let mut all: Vec<&(RowBytes, u64)> = self.table.iter().collect();
        all.sort_unstable();
        all
    }
}

impl PartialEq for Seen {
    fn eq(&self, other: &Self) -> bool {
        self.sorted() == other.sorted()
    }
}

impl Serialize for Seen {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.table.iter())
    }
}

impl<'de> Deserialize<'de> for Seen {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let values = Vec::<(RowBytes, u64)>::deserialize(deserializer)?;
        let mut table = HashTable::with_capacity(values.len());
        for value in values {
            table.insert_unique(hash_of(value.0.as_slice()), value, |(known, _)| hash_of(known.as_slice()));
        }
        Ok(Self { table })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_new_once_to_each_view() {
        let mut seen = Seen::default();
        let new: Vec<u64> = [(b"a", 0b01), (b"a", 0b11), (b"b", 0b10), (b"a", 0b11)]
            .map(|(value, views)| seen.see(value, views))
            .into();
        assert_eq!(new, [0b01, 0b10, 0b10, 0]);
        let mut values: Vec<_> = seen.iter().collect();
        values.sort_unstable();
        assert_eq!(values, [(&b"a"[..], 0b11), (&b"b"[..], 0b10)]);
    }
}
