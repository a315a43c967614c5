//! What a table has said of the keys that were used last: `lookup.cache` = `PARTIAL`.
//!
//! What is over goes when it is asked for, or when there is no room: nobody looks for it before.

use std::collections::BTreeMap;
use std::sync::Arc;

use flott_core::time::Timestamp;
use hashbrown::HashMap;

use crate::row::{RowBlock, RowBytes};

/// What is kept, and for how long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheOptions {
    /// How many rows at most; a key without rows counts as one.
    pub rows_max: usize,
    /// For how many milliseconds after it was looked up.
    pub expire_after_write_ms: Option<u64>,
    /// For how many milliseconds after it was used last.
    pub expire_after_access_ms: Option<u64>,
    /// Whether that there are no rows is kept, too.
    pub caches_missing_keys: bool,
}

impl Default for CacheOptions {
    fn default() -> Self {
        Self { rows_max: 100_000, expire_after_write_ms: None, expire_after_access_ms: None, caches_missing_keys: true }
    }
}

/// The rows of a key.
#[derive(Debug, Default)]
pub(super) struct KeyRows {
    pub rows: RowBlock,
    pub count: u32,
}

impl KeyRows {
    pub(super) fn push(&mut self, row: &[u8]) {
        self.rows.push(row);
        self.count += 1;
    }

    /// How much room it takes.
    fn weight(&self) -> usize {
        self.count.max(1) as usize
    }
}

/// See the module's documentation.
pub(super) struct Cache {
    options: CacheOptions,
    entries: HashMap<RowBytes, Entry>,
    /// The keys by their last use, of which each has a number.
    by_use: BTreeMap<u64, RowBytes>,
    uses: u64,
    rows: usize,
    /// The key at hand, so that looking it up allocates nothing.
    key: RowBytes,
}

struct Entry {
    rows: Arc<KeyRows>,
    use_number: u64,
    written: Timestamp,
    used: Timestamp,
}

impl Cache {
    pub(super) fn new(options: CacheOptions) -> Self {
        Self { options, entries: HashMap::new(), by_use: BTreeMap::new(), uses: 0, rows: 0, key: RowBytes::default() }
    }

    /// The rows of a key, if it is known what they are.
    pub(super) fn get(&mut self, key: &[u8], now: Timestamp) -> Option<Arc<KeyRows>> {
        self.key.set(key);
        let entry = self.entries.get_mut(&self.key)?;
        let is_over = |since: Timestamp, ms: Option<u64>| ms.is_some_and(|ms| since.saturating_add_unsigned(ms) <= now);
        if is_over(entry.written, self.options.expire_after_write_ms)
            || is_over(entry.used, self.options.expire_after_access_ms)
        {
            self.remove(key);
            return None;
        }
        self.uses += 1;
        if let Some(key) = self.by_use.remove(&entry.use_number) {
            self.by_use.insert(self.uses, key);
        }
        (entry.use_number, entry.used) = (self.uses, now);
        Some(Arc::clone(&entry.rows))
    }

    /// Keeps the rows of a key, in place of those that least have been used.
    pub(super) fn put(&mut self, key: &[u8], rows: KeyRows, now: Timestamp) {
        self.remove(key);
        if rows.weight() > self.options.rows_max || (rows.count == 0 && !self.options.caches_missing_keys) {
            return;
        }
        self.rows += rows.weight();
        while self.rows > self.options.rows_max {
            let Some((_, oldest)) = self.by_use.pop_first() else { break };
            if let Some(entry) = self.entries.remove(&oldest) {
                self.rows -= entry.rows.weight();
            }
        }
        self.uses += 1;
        let key = RowBytes::new(key);
        self.by_use.insert(self.uses, key.clone());
        self.entries.insert(key, Entry { rows: Arc::new(rows), use_number: self.uses, written: now, used: now });
    }

    fn remove(&mut self, key: &[u8]) {
        self.key.set(key);
        if let Some(entry) = self.entries.remove(&self.key) {
            self.by_use.remove(&entry.use_number);
            self.rows -= entry.rows.weight();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(count: u32) -> KeyRows {
        let mut rows = KeyRows::default();
        (0..count).for_each(|row| rows.push(&[row as u8]));
        rows
    }

    fn known(cache: &mut Cache, keys: &[u8], now: Timestamp) -> Vec<Option<u32>> {
        keys.iter().map(|key| cache.get(&[*key], now).map(|rows| rows.count)).collect()
    }

    #[test]
    fn what_was_used_least_goes_first() {
        let mut cache = Cache::new(CacheOptions { rows_max: 4, ..CacheOptions::default() });
        cache.put(&[1], rows(1), 0);
        cache.put(&[2], rows(2), 0);
        // A key without rows is known, too, and takes room.
        cache.put(&[3], rows(0), 0);
        assert_eq!(known(&mut cache, &[1, 3], 0), [Some(1), Some(0)]);
        cache.put(&[4], rows(1), 0);
        assert_eq!(known(&mut cache, &[1, 2, 3, 4], 0), [Some(1), None, Some(0), Some(1)]);
        // A key with too many rows drives nothing out.
        cache.put(&[5], rows(5), 0);
        assert_eq!(known(&mut cache, &[1, 3, 4, 5], 0), [Some(1), Some(0), Some(1), None]);
        // One that is looked up again has its new rows alone.
        cache.put(&[1], rows(2), 0);
        assert_eq!(known(&mut cache, &[1, 3, 4], 0), [Some(2), Some(0), Some(1)]);
        assert_eq!((cache.rows, cache.entries.len(), cache.by_use.len()), (4, 3, 3));
    }

    #[test]
    fn what_is_over_is_not_known_any_more() {
        let options = CacheOptions { expire_after_write_ms: Some(100), ..CacheOptions::default() };
        let mut written = Cache::new(options);
        let options = CacheOptions { expire_after_access_ms: Some(100), ..CacheOptions::default() };
        let mut used = Cache::new(options);
        for cache in [&mut written, &mut used] {
            cache.put(&[1], rows(1), 1000);
            assert_eq!(known(cache, &[1], 1099), [Some(1)]);
        }
        assert_eq!((known(&mut written, &[1], 1100), known(&mut used, &[1], 1100)), (vec![None], vec![Some(1)]));
        assert_eq!(known(&mut used, &[1], 1200), [None]);
        assert_eq!((written.rows, used.rows, used.by_use.len()), (0, 0, 0));
    }

    #[test]
    fn keys_without_rows_are_kept_if_that_is_wanted() {
        let mut cache = Cache::new(CacheOptions { caches_missing_keys: false, ..CacheOptions::default() });
        cache.put(&[1], rows(0), 0);
        cache.put(&[2], rows(1), 0);
        assert_eq!(known(&mut cache, &[1, 2], 0), [None, Some(1)]);
    }
}
