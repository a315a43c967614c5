//! The keys that a chunk touches.
//!
//! What operators put out is netted a chunk at a time: however often a key changes in a chunk, state is asked once and one
//! change is put out. For that an operator notes something of each key that it meets, in the order of the first meeting.

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

use crate::row::RowBytes;

/// A key that was met.
#[derive(Debug)]
pub struct Met<T> {
    /// Its stable hash.
    pub hash: u64,
    /// Its bytes.
    pub key: RowBytes,
    /// What is noted of it.
    pub note: T,
}

/// The keys that were met since it was last emptied.
#[derive(Debug)]
pub struct Touched<T> {
    places: HashTable<usize>,
    met: Vec<Met<T>>,
}

impl<T> Default for Touched<T> {
    fn default() -> Self {
        Self { places: HashTable::new(), met: Vec::new() }
    }
}

impl<T> Touched<T> {
    /// The note of a key; `make` makes it when the key is met for the first time.
    #[inline]
    pub fn note(&mut self, hash: u64, key: &[u8], make: impl FnOnce() -> T) -> &mut T {
        let met = &mut self.met;
        let is_same = |place: &usize| met[*place].hash == hash && met[*place].key.as_slice() == key;
        let place = match self.places.entry(hash, is_same, |place| met[*place].hash) {
            Entry::Occupied(occupied) => *occupied.get(),
            Entry::Vacant(vacant) => *vacant.insert(met.len()).get(),
        };
        if place == met.len() {
            met.push(Met { hash, key: RowBytes::new(key), note: make() });
        }
        &mut met[place].note
    }

    /// Takes all keys out, in the order in which they were met.
    pub fn drain(&mut self) -> impl Iterator<Item = Met<T>> {
        self.places.clear();
        self.met.drain(..)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::hash_of;

    #[test]
    fn a_key_is_noted_once_and_keys_come_in_order() {
        let mut touched = Touched::default();
        for (row, key) in ["b", "a", "b", "c", "a"].into_iter().enumerate() {
            let rows: &mut Vec<usize> = touched.note(hash_of(key.as_bytes()), key.as_bytes(), Vec::new);
            rows.push(row);
        }
        // Two keys with one hash are two keys.
        touched.note(hash_of(b"a"), b"other", Vec::new);
        let met: Vec<_> = touched.drain().map(|met| (met.key.as_slice().to_vec(), met.note)).collect();
        let expected = [(b"b".to_vec(), vec![0, 2]), (b"a".to_vec(), vec![1, 4]), (b"c".to_vec(), vec![3])];
        assert_eq!(met[..3], expected);
        assert_eq!(met.len(), 4);
        assert_eq!(touched.drain().count(), 0);
    }
}
