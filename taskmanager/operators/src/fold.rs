//! `fold`: an accumulator a key, sent with its key after each record; in batch mode only at the end.

use std::sync::Arc;

use flott_core::config::options::{self, RuntimeMode};
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
    mode: RuntimeMode,
    buffer: Batch<(K, A)>,
}

impl<K: Data + Eq, T: Data, A: Data, F> Fold<K, T, A, F> {
    /// `function` adds a record to the accumulator of its key, which starts as `initial`.
    pub fn new(initial: A, function: F, extractor: Arc<dyn KeyExtractor<T, K>>, cx: &TaskContext) -> Result<Self> {
        let table = cx.table("fold");
        let mode = cx.config.get(options::RUNTIME_MODE)?;
        Ok(Self { initial, function, extractor, table, keys: Vec::new(), mode, buffer: Batch::default() })
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
            if self.mode == RuntimeMode::Streaming {
                let result = accumulator.clone();
                self.buffer.rows.push((key, result));
            }
        }
        if self.mode == RuntimeMode::Batch {
            return Ok(());
        }
        std::mem::swap(&mut self.buffer.timestamps, &mut batch.timestamps);
        out.push(&mut self.buffer)
    }

    fn on_end(&mut self, out: &mut Output<(K, A)>) -> Result<()> {
        if self.mode == RuntimeMode::Streaming {
            return Ok(());
        }
        // Taken out, so that a restore of the last checkpoint does not send them again.
        self.table.take_all(|key, (), accumulator| {
            self.buffer.rows.push((key, accumulator));
            if self.buffer.len() < Batch::<(K, A)>::ROWS_MAX { Ok(()) } else { out.push(&mut self.buffer) }
        })?;
        out.push(&mut self.buffer)
    }

    fn states(&mut self, visit: StateVisitor<'_>) -> Result<()> {
        visit(&mut self.table)
    }
}
