//! From a record to its key, a batch at a time.

use std::marker::PhantomData;

use flott_core::hash::stable_hash;
use flott_core::{Batch, Data};

/// Finds the keys of records. One virtual call a batch, none a record.
pub trait KeyExtractor<T, K>: Send + Sync {
    /// Appends the [stable hash](stable_hash) of each row's key.
    fn hashes(&self, rows: &[T], hashes: &mut Vec<u64>);

    /// Appends each row's key.
    fn keys(&self, rows: &[T], keys: &mut Vec<K>);
}

/// Makes keys by a function that returns them owned.
pub struct OwnedKey<F>(pub F);

impl<T, K: Data, F: Fn(&T) -> K + Send + Sync> KeyExtractor<T, K> for OwnedKey<F> {
    fn hashes(&self, rows: &[T], hashes: &mut Vec<u64>) {
        hashes.extend(rows.iter().map(|row| stable_hash(&(self.0)(row))));
    }

    fn keys(&self, rows: &[T], keys: &mut Vec<K>) {
        keys.extend(rows.iter().map(&self.0));
    }
}

/// Finds keys that are part of the record, by a function that returns a reference.
pub struct BorrowedKey<F, K>(F, PhantomData<fn() -> K>);

impl<F, K> BorrowedKey<F, K> {
    /// Keys that `select` points to.
    pub fn new(select: F) -> Self {
        Self(select, PhantomData)
    }
}

impl<T, K: Data, F: Fn(&T) -> &K + Send + Sync> KeyExtractor<T, K> for BorrowedKey<F, K> {
    fn hashes(&self, rows: &[T], hashes: &mut Vec<u64>) {
        hashes.extend(rows.iter().map(|row| stable_hash((self.0)(row))));
    }

    fn keys(&self, rows: &[T], keys: &mut Vec<K>) {
        keys.extend(rows.iter().map(|row| (self.0)(row).clone()));
    }
}

/// Fills the hash column of a batch that came from another process without it.
pub fn ensure_hashes<T, K>(batch: &mut Batch<T>, extractor: &dyn KeyExtractor<T, K>) {
    if batch.hashes.len() != batch.rows.len() {
        batch.hashes.clear();
        extractor.hashes(&batch.rows, &mut batch.hashes);
    }
}
