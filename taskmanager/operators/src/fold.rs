//! `fold`: an accumulator a key, sent with its key after each record.

use std::sync::Arc;

use flott_core::{Batch, Data, Result};
use flott_state::KeyedTable;

use crate::context::TaskContext;
use crate::key::{KeyExtractor, ensure_hashes};
use crate::operator::{Operator, StateVisitor};
use crate::push::Output;

/// Adds each record to what its key has accumulated.
pub struct Fold<K, T, A, F> {
    initial: A,
    function: F,
    extractor: Arc<dyn KeyExtractor<T, K>>,
    table: KeyedTable<K, (), A>,
    keys: Vec<K>,
    buffer: Batch<(K, A)>,
}

impl<K: Data + Eq, T: Data, A: Data, F> Fold<K, T, A, F> {
    /// `function` adds a record to the accumulator of its key, which starts as `initial`.
    pub fn new(initial: A, function: F, extractor: Arc<dyn KeyExtractor<T, K>>, cx: &TaskContext) -> Self {
        let table = KeyedTable::new("fold", cx.key_groups(), cx.max_parallelism);
        Self { initial, function, extractor, table, keys: Vec::new(), buffer: Batch::default() }
    }
}

impl<K, T, A, F> Operator<T, (K, A)> for Fold<K, T, A, F>
where
    K: Data + Eq,
    T: Data,
    A: Data,
    F: FnMut(&mut A, T) + Send,
{
    fn process(&mut self, batch: &mut Batch<T>, out: &mut Output<(K, A)>) -> Result<()> {
        ensure_hashes(batch, &*self.extractor);
        self.keys.clear();
        self.extractor.keys(&batch.rows, &mut self.keys);
        for ((row, hash), key) in batch.rows.drain(..).zip(&batch.hashes).zip(self.keys.drain(..)) {
            let accumulator = self.table.get_or_insert_with(*hash, &key, (), || self.initial.clone());
            (self.function)(accumulator, row);
            let result = accumulator.clone();
            self.buffer.rows.push((key, result));
        }
        std::mem::swap(&mut self.buffer.timestamps, &mut batch.timestamps);
        out.push(&mut self.buffer)
    }

    fn states(&mut self, visit: StateVisitor<'_>) -> Result<()> {
        visit(&mut self.table)
    }
}
