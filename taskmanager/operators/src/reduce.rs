//! `reduce`: the running combination of all records of a key, sent with each record; in batch mode only at the end.

use std::sync::Arc;

use flott_core::config::options::{self, RuntimeMode};
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
    mode: RuntimeMode,
    buffer: Batch<T>,
}

impl<K: Data + Eq, T: Data, F> Reduce<K, T, F> {
    /// `function` combines what a key has with one more record.
    pub fn new(function: F, extractor: Arc<dyn KeyExtractor<T, K>>, cx: &TaskContext) -> Result<Self> {
        let table = cx.table("reduce");
        let mode = cx.config.get(options::RUNTIME_MODE)?;
        Ok(Self { function, extractor, table, keys: Vec::new(), mode, buffer: Batch::default() })
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
            if self.mode == RuntimeMode::Streaming {
                self.buffer.rows.push(state.clone());
            }
        }
        if self.mode == RuntimeMode::Batch {
            return Ok(());
        }
        // The result may have another key, so the hashes of the input are not passed on.
        std::mem::swap(&mut self.buffer.timestamps, &mut batch.timestamps);
        out.push(&mut self.buffer)
    }

    fn on_end(&mut self, out: &mut Output<T>) -> Result<()> {
        if self.mode == RuntimeMode::Streaming {
            return Ok(());
        }
        // Taken out, so that a restore of the last checkpoint does not send them again.
        self.table.take_all(|_, (), state| {
            self.buffer.rows.push(state);
            if self.buffer.len() < Batch::<T>::ROWS_MAX { Ok(()) } else { out.push(&mut self.buffer) }
        })?;
        out.push(&mut self.buffer)
    }

    fn states(&mut self, visit: StateVisitor<'_>) -> Result<()> {
        visit(&mut self.table)
    }
}
