//! What keys and values hold on the heap, estimated: nobody can ask them.

use std::mem::needs_drop;

use flott_core::{Data, codec};

use super::{Group, Namespace};

/// How many entries are looked at in one go, and how many places for it.
const SAMPLES: usize = 8;
const PLACES_MAX: usize = 64;

/// Over how many entries the mean runs: what many have become counts soon, what a few are does not count for long.
const MEAN_OVER: u32 = 128;

/// The mean of what an entry holds on the heap.
///
/// That is taken to be half as much again as its binary form: the form has about the bytes that are on the heap, and
/// vectors and allocators leave room. Entries are looked at in turn, a few at a time. Where no type has anything to drop,
/// nothing is on the heap, and nothing is looked at.
#[derive(Debug, Default)]
pub(super) struct HeapEstimate {
    mean: f64,
    samples: u32,
    group: usize,
    bucket: usize,
    scratch: Vec<u8>,
}

impl HeapEstimate {
    /// Bytes that so many entries hold.
    pub(super) fn bytes(&self, entries: usize) -> u64 {
        (self.mean * entries as f64) as u64
    }

    /// Looks at the next few entries.
    pub(super) fn sample<K: Data, N: Namespace, V: Data>(&mut self, groups: &[Group<K, N, V>]) {
        if !needs_drop::<(K, N, V)>() || groups.is_empty() {
            return;
        }
        let (mut samples, mut places) = (SAMPLES, PLACES_MAX);
        while samples > 0 && places > 0 {
            places -= 1;
            self.group %= groups.len();
            let group = &groups[self.group];
            if self.bucket >= group.num_buckets() || group.is_empty() {
                self.group += 1;
                self.bucket = 0;
                continue;
            }
            if let Some(entry) = group.get_bucket(self.bucket) {
                samples -= 1;
                self.scratch.clear();
                // What cannot be encoded fails the next snapshot; here it has no size.
                let form = codec::encode_into(&entry.key, &mut self.scratch)
                    .and_then(|()| codec::encode_into(&entry.value, &mut self.scratch));
                let bytes = form.map_or(0, |()| self.scratch.len());
                self.samples = (self.samples + 1).min(MEAN_OVER);
                self.mean += (1.5 * bytes as f64 - self.mean) / f64::from(self.samples);
            }
            self.bucket += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use flott_core::hash::stable_hash;
    use flott_core::key_group::range_of;

    use super::super::KeyedTable;

    #[test]
    fn what_is_on_the_heap_is_estimated_and_followed() {
        let mut table: KeyedTable<u64, (), String> = KeyedTable::new("t", range_of(1, 0, 16), 16);
        let set = |table: &mut KeyedTable<u64, (), String>, length: usize| {
            for key in 0..1000_u64 {
                table.insert(stable_hash(&key), &key, (), "x".repeat(length));
            }
            for _ in 0..200 {
                table.heap.sample(&table.tables);
            }
            table.heap.bytes(1000)
        };
        let small = set(&mut table, 100);
        assert!((150_000..200_000).contains(&small), "{small}");
        let large = set(&mut table, 10_000);
        assert!((14_000_000..16_000_000).contains(&large), "{large}");
    }

    #[test]
    fn plain_values_hold_nothing() {
        let mut table: KeyedTable<u64, (), [u64; 4]> = KeyedTable::new("t", range_of(1, 0, 16), 16);
        table.insert(7, &7, (), [1; 4]);
        table.heap.sample(&table.tables);
        assert_eq!(table.heap.bytes(1), 0);
    }
}
