//! `reduce`: the running combination of all records of a key, sent with each record.

use std::sync::Arc;

use flott_core::{Batch, Data, Result};
use flott_state::KeyedTable;

use crate::context::TaskContext;
use crate::key::{KeyExtractor, ensure_hashes};
use crate::operator::{Operator, StateVisitor};
use crate::push::Output;

/// Combines each record with what its key has so far.
pub struct Reduce<K, T, F> {
    function: F,
    extractor: Arc<dyn KeyExtractor<T, K>>,
    table: KeyedTable<K, (), T>,
    keys: Vec<K>,
    buffer: Batch<T>,
}

impl<K: Data + Eq, T: Data, F> Reduce<K, T, F> {
    /// `function` combines what a key has with one more record.
    pub fn new(function: F, extractor: Arc<dyn KeyExtractor<T, K>>, cx: &TaskContext) -> Self {
        let table = KeyedTable::new("reduce", cx.key_groups(), cx.max_parallelism);
        Self { function, extractor, table, keys: Vec::new(), buffer: Batch::default() }
    }
}

impl<K: Data + Eq, T: Data, F: FnMut(&T, T) -> T + Send> Operator<T, T> for Reduce<K, T, F> {
    fn process(&mut self, batch: &mut Batch<T>, out: &mut Output<T>) -> Result<()> {
        ensure_hashes(batch, &*self.extractor);
        self.keys.clear();
        self.extractor.keys(&batch.rows, &mut self.keys);
        for ((row, hash), key) in batch.rows.drain(..).zip(&batch.hashes).zip(&self.keys) {
            let mut row = Some(row);
            let state = self.table.get_or_insert_with(*hash, key, (), || row.take().expect("a state is created once"));
            if let Some(row) = row {
                *state = (self.function)(state, row);
            }
            self.buffer.rows.push(state.clone());
        }
        // The result may have another key, so the hashes of the input are not passed on.
        std::mem::swap(&mut self.buffer.timestamps, &mut batch.timestamps);
        out.push(&mut self.buffer)
    }

    fn states(&mut self, visit: StateVisitor<'_>) -> Result<()> {
        visit(&mut self.table)
    }
}
