//! A table that is read as a whole, and kept: `lookup.cache` = `FULL`.
//!
//! The table is read when a subtask starts, and again when its time is over: in the background, while the rows of before
//! are still found. It is no state: a restart reads it anew.

use std::mem::size_of;
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::{Array, ArrayRef, RecordBatch};
use arrow::compute::concat_batches;
use arrow::datatypes::SchemaRef;
use flott_chunk::Chunk;
use flott_connector_spi::{IoHandle, Waker};
use flott_core::time::Timestamp;
use flott_core::{Error, Result};
use flott_operators::operator::OpenContext;
use hashbrown::HashTable;

use super::pairing::Pairing;
use super::{LookupCondition, check_keys};
use crate::operator::{Emit, TableOperator};
use crate::program::types_of;
use crate::row::{EncodedRows, KeyEncoder};

/// Reads a table, once from the beginning to the end. It may block.
pub type Load = Arc<dyn Fn() -> Result<Vec<RecordBatch>> + Send + Sync>;

/// A table that is read as a whole.
pub struct WholeTable {
    /// The table's name, for messages.
    pub name: String,
    /// Reads it.
    pub load: Load,
    /// The columns that it reads.
    pub schema: SchemaRef,
    /// How many of them, from the first on, come behind the left columns. The others are of the key alone.
    pub width: usize,
    /// Its columns that the left ones must equal.
    pub keys: Vec<usize>,
    /// When to read it again, in milliseconds after it was read; `None` for never.
    pub reload_ms: Option<u64>,
}

/// The rows of a table by key.
struct Rows {
    columns: Vec<ArrayRef>,
    keys: EncodedRows,
    /// The first row of each key.
    first: HashTable<(u64, u32)>,
    /// Behind each row the next one with the same key; `NONE` behind the last.
    next: Vec<u32>,
}

const NONE: u32 = u32::MAX;

impl Rows {
    fn new(table: &WholeTable) -> Result<Self> {
        let failed = |error: &arrow::error::ArrowError| Error::system(format!("table '{}': {error}", table.name));
        let batches =
            (table.load)().map_err(|error| error.context(format!("reading table '{}' to look rows up", table.name)))?;
        let batch = concat_batches(&table.schema, &batches).map_err(|error| failed(&error))?;
        if batch.num_rows() >= NONE as usize {
            return Err(Error::input(format!(
                "table '{}' has {} rows, more than can be kept in memory to look rows up in: join it as a stream",
                table.name,
                batch.num_rows()
            )));
        }
        let mut encoder = KeyEncoder::new(&table.keys, &types_of(&table.schema))?;
        let keys = encoder.encode(batch.columns(), batch.num_rows(), None)?;
        let key_columns: Vec<&ArrayRef> = table.keys.iter().map(|column| batch.column(*column)).collect();
        let mut first: HashTable<(u64, u32)> = HashTable::with_capacity(batch.num_rows());
        let mut next = vec![NONE; batch.num_rows()];
        // From the last on, so that the first of a key is found first.
        for row in (0..batch.num_rows()).rev() {
            if key_columns.iter().any(|column| column.is_null(row)) {
                continue;
            }
            let (hash, key) = (keys.hashes[row], keys.rows.get(row));
            let is_same = |other: &(u64, u32)| other.0 == hash && keys.rows.get(other.1 as usize) == key;
            match first.find_mut(hash, is_same) {
                Some(found) => {
                    next[row] = found.1;
                    found.1 = row as u32;
                }
                None => {
                    first.insert_unique(hash, (hash, row as u32), |other| other.0);
                }
            }
        }
        let keys = keys.rows.clone();
        Ok(Self { columns: batch.columns()[..table.width].to_vec(), keys, first, next })
    }

    /// The rows with a key, in the table's order.
    fn with(&self, hash: u64, key: &[u8]) -> impl Iterator<Item = u32> {
        let is_same = |other: &(u64, u32)| other.0 == hash && self.keys.get(other.1 as usize) == key;
        let first = self.first.find(hash, is_same).map(|found| found.1);
        std::iter::successors(first, |row| Some(self.next[*row as usize]).filter(|next| *next != NONE))
    }

    fn bytes(&self) -> usize {
        let columns: usize = self.columns.iter().map(|column| column.get_array_memory_size()).sum();
        columns + self.next.len() * size_of::<u32>() + self.first.capacity() * size_of::<(u64, u32)>()
    }
}

/// The table as it was read in the background.
type Reloaded = Arc<Mutex<Option<Result<Rows>>>>;

/// See the module's documentation.
pub struct WholeLookupJoin {
    table: Arc<WholeTable>,
    left_keys: Vec<usize>,
    keys: KeyEncoder,
    pairing: Pairing,
    io: IoHandle,
    waker: Waker,
    rows: Option<Rows>,
    /// When to read the table again.
    reload_at: Option<Timestamp>,
    reloaded: Option<Reloaded>,
}

impl WholeLookupJoin {
    /// A join of rows of `left` with those of `table`.
    ///
    /// # Errors
    /// The types of the keys differ, or cannot be compared.
    pub fn new(
        left: &SchemaRef,
        on: &LookupCondition<'_>,
        table: WholeTable,
        io: IoHandle,
        waker: Waker,
    ) -> Result<Self> {
        let right_keys = table.keys.iter().map(|key| table.schema.field(*key));
        check_keys(&table.name, left, on.left_keys, right_keys)?;
        Ok(Self {
            keys: KeyEncoder::new(on.left_keys, &types_of(left))?,
            left_keys: on.left_keys.to_vec(),
            pairing: Pairing::new(left, table.schema.fields().iter().take(table.width), on)?,
            table: Arc::new(table),
            io,
            waker,
            rows: None,
            reload_at: None,
            reloaded: None,
        })
    }

    /// Takes the table in that was read anew, if it was.
    fn take_reloaded(&mut self) -> Result<()> {
        let Some(reloaded) = &self.reloaded else { return Ok(()) };
        let rows = reloaded.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(rows) = rows {
            self.rows = Some(rows?);
            self.reloaded = None;
            self.reload_at = None;
        }
        Ok(())
    }

    fn reload(&mut self) {
        let reloaded = Reloaded::default();
        self.reloaded = Some(Arc::clone(&reloaded));
        let (table, waker) = (Arc::clone(&self.table), self.waker.clone());
        flott_env::spawn_blocking_on(&self.io, move || {
            let rows = Rows::new(&table);
            *reloaded.lock().unwrap_or_else(PoisonError::into_inner) = Some(rows);
            waker.wake();
        });
    }
}

impl TableOperator for WholeLookupJoin {
    fn process(&mut self, chunk: Chunk, out: &mut Emit<'_>) -> Result<()> {
        self.take_reloaded()?;
        let rows = self.rows.as_ref().ok_or_else(|| Error::system("a lookup join was not opened"))?;
        let keys = self.keys.encode(chunk.batch.columns(), chunk.len(), None)?;
        for row in 0..chunk.len() {
            let has_key = self.left_keys.iter().all(|column| chunk.column(*column).is_valid(row));
            let found = has_key.then(|| rows.with(keys.hashes[row], keys.rows.get(row)));
            self.pairing.add(row, found.into_iter().flatten());
            if self.pairing.is_full() {
                self.pairing.flush(&chunk, &rows.columns, out)?;
            }
        }
        self.pairing.flush(&chunk, &rows.columns, out)
    }

    fn open(&mut self, _: &mut OpenContext<'_>) -> Result<()> {
        // Nothing can be joined before it is there, so a start waits for it as it does for state.
        let rows = Rows::new(&self.table)?;
        tracing::debug!(table = self.table.name, bytes = rows.bytes(), "read a table to look rows up");
        self.rows = Some(rows);
        Ok(())
    }

    fn on_time(&mut self, now: Timestamp, _: &mut Emit<'_>) -> Result<Timestamp> {
        let Some(reload_ms) = self.table.reload_ms else { return Ok(Timestamp::MAX) };
        self.take_reloaded()?;
        if self.reloaded.is_some() {
            return Ok(Timestamp::MAX);
        }
        let due = *self.reload_at.get_or_insert(now.saturating_add_unsigned(reload_ms));
        if due > now {
            return Ok(due);
        }
        self.reload();
        Ok(Timestamp::MAX)
    }
}

#[cfg(test)]
mod tests;
