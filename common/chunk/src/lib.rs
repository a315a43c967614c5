//! Rows of a dynamic table on their way: an Arrow batch, and what each row means.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow::compute::{concat_batches, filter_record_batch, take_arrays};
use arrow::datatypes::SchemaRef;
use flott_core::{Error, Result};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

pub mod display;
mod wire;
pub mod zone;

/// What a row says about a dynamic table, with Flink's names and numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[repr(u8)]
pub enum RowKind {
    /// `+I`: a new row.
    Insert = 0,
    /// `-U`: the row as it was before an update.
    UpdateBefore = 1,
    /// `+U`: the row as it is after an update.
    UpdateAfter = 2,
    /// `-D`: a row that is no longer there.
    Delete = 3,
}

impl RowKind {
    /// Whether the row is there from now on.
    #[inline]
    pub fn is_addition(self) -> bool {
        matches!(self, Self::Insert | Self::UpdateAfter)
    }

    /// Its number, as in Flink's `RowKind`.
    pub fn from_number(number: u8) -> Option<Self> {
        [Self::Insert, Self::UpdateBefore, Self::UpdateAfter, Self::Delete].get(usize::from(number)).copied()
    }

    /// How it is written: `+I`, `-U`, `+U`, `-D`.
    pub fn short(self) -> &'static str {
        match self {
            Self::Insert => "+I",
            Self::UpdateBefore => "-U",
            Self::UpdateAfter => "+U",
            Self::Delete => "-D",
        }
    }
}

/// Changes of a dynamic table, in order.
///
/// ```
/// use std::sync::Arc;
/// use arrow::array::{Array, ArrayRef, Int64Array, RecordBatch};
/// use flott_chunk::{Chunk, RowKind};
/// let column: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
/// let batch = RecordBatch::try_from_iter([("n", column)])?;
/// let chunk = Chunk::new(batch, vec![RowKind::Insert, RowKind::Delete]);
/// assert_eq!((chunk.len(), chunk.kind(1).short()), (2, "-D"));
/// # Ok::<(), arrow::error::ArrowError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Chunk {
    /// The rows.
    pub batch: RecordBatch,
    /// The kind of each row; `None` if all are inserted.
    kinds: Option<Arc<[RowKind]>>,
    /// The stable hash of each row's key, if it was sent by key: see `flott_sql_runtime::row`.
    pub hashes: Option<Arc<[u64]>>,
    /// Which input of an operator with several it came in by.
    pub input: u8,
}

impl Chunk {
    /// How many rows a chunk should have at most when it leaves an operator.
    pub const ROWS_MAX: usize = 8192;

    /// New rows.
    pub fn inserts(batch: RecordBatch) -> Self {
        Self { batch, kinds: None, hashes: None, input: 0 }
    }

    /// Rows with their kinds, one a row.
    pub fn new(batch: RecordBatch, kinds: Vec<RowKind>) -> Self {
        debug_assert_eq!(batch.num_rows(), kinds.len());
        let is_insert_only = kinds.iter().all(|kind| *kind == RowKind::Insert);
        Self { batch, kinds: (!is_insert_only).then(|| kinds.into()), hashes: None, input: 0 }
    }

    /// A chunk of these columns; `rows` counts where there are none.
    pub fn of_columns(schema: &SchemaRef, columns: Vec<ArrayRef>, rows: usize, kinds: Vec<RowKind>) -> Result<Self> {
        Ok(Self::new(batch_of(schema, columns, rows)?, kinds))
    }

    /// The same kinds and hashes with other columns: what a projection does.
    pub fn with_batch(&self, batch: RecordBatch) -> Self {
        debug_assert_eq!(batch.num_rows(), self.len());
        Self { batch, kinds: self.kinds.clone(), hashes: None, input: self.input }
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.batch.num_rows()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A column.
    pub fn column(&self, index: usize) -> &ArrayRef {
        self.batch.column(index)
    }

    /// The kind of row `index`.
    #[inline]
    pub fn kind(&self, index: usize) -> RowKind {
        self.kinds.as_ref().map_or(RowKind::Insert, |kinds| kinds[index])
    }

    /// The kinds, unless all rows are inserted.
    pub fn kinds(&self) -> Option<&[RowKind]> {
        self.kinds.as_deref()
    }

    /// Whether all rows are inserted.
    pub fn is_insert_only(&self) -> bool {
        self.kinds.is_none()
    }

    /// The rows for which `mask` is true; null is false.
    pub fn filter(&self, mask: &BooleanArray) -> Result<Self> {
        if mask.true_count() == self.len() {
            return Ok(self.clone());
        }
        let chosen: Vec<u32> =
            (0..self.len()).filter(|&row| mask.is_valid(row) && mask.value(row)).map(|row| row as u32).collect();
        let batch = filter_record_batch(&self.batch, mask).map_err(|error| failed("filtering", &error))?;
        Ok(Self { batch, input: self.input, ..self.pick(&chosen) })
    }

    /// These rows, in this order; a row may be taken several times.
    pub fn take(&self, rows: &[u32]) -> Result<Self> {
        let indices = UInt32Array::from(rows.to_vec());
        let columns = take_arrays(self.batch.columns(), &indices, None);
        let columns = columns.map_err(|error| failed("taking rows", &error))?;
        let batch = batch_of(&self.batch.schema(), columns, rows.len())?;
        Ok(Self { batch, input: self.input, ..self.pick(rows) })
    }

    /// Kinds and hashes of these rows, and no columns yet.
    fn pick(&self, rows: &[u32]) -> Self {
        Self {
            batch: RecordBatch::new_empty(self.batch.schema()),
            kinds: self.kinds.as_ref().map(|kinds| rows.iter().map(|&row| kinds[row as usize]).collect()),
            hashes: self.hashes.as_ref().map(|hashes| rows.iter().map(|&row| hashes[row as usize]).collect()),
            input: 0,
        }
    }

    /// Rows `start..start + length`, without a copy of columns.
    pub fn slice(&self, start: usize, length: usize) -> Self {
        Self {
            batch: self.batch.slice(start, length),
            kinds: self.kinds.as_ref().map(|kinds| kinds[start..start + length].into()),
            hashes: self.hashes.as_ref().map(|hashes| hashes[start..start + length].into()),
            input: self.input,
        }
    }

    /// All rows of chunks of one schema and input, in order.
    pub fn concat(chunks: &[Self]) -> Result<Self> {
        let [first, rest @ ..] = chunks else { return Err(Error::system("no chunks to put together")) };
        if rest.is_empty() {
            return Ok(first.clone());
        }
        let batches = chunks.iter().map(|chunk| &chunk.batch);
        let batch = concat_batches(&first.batch.schema(), batches).map_err(|error| failed("joining chunks", &error))?;
        let kinds = chunks
            .iter()
            .any(|chunk| chunk.kinds.is_some())
            .then(|| chunks.iter().flat_map(|chunk| (0..chunk.len()).map(|row| chunk.kind(row))).collect());
        let hashes = chunks.iter().all(|chunk| chunk.hashes.is_some()).then(|| {
            chunks.iter().flat_map(|chunk| chunk.hashes.iter().flat_map(|hashes| hashes.iter().copied())).collect()
        });
        Ok(Self { batch, kinds, hashes, input: first.input })
    }

    /// What it takes in memory, estimated.
    pub fn bytes(&self) -> u64 {
        self.batch.get_array_memory_size() as u64
    }

    /// Appends its binary form: see `wire`.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<()> {
        wire::encode(self, out)
    }

    /// Reads a chunk from its binary form.
    ///
    /// # Errors
    /// The bytes are not those of a chunk.
    pub fn decode(data: &[u8]) -> Result<Self> {
        wire::decode(data)
    }
}

/// A batch of these columns; `rows` counts where there are none.
pub fn batch_of(schema: &SchemaRef, columns: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)
        .map_err(|error| failed("making a batch", &error))
}

fn failed(what: &str, error: &arrow::error::ArrowError) -> Error {
    Error::system(format!("{what}: {error}"))
}

impl Serialize for Chunk {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut bytes = Vec::new();
        self.encode(&mut bytes).map_err(serde::ser::Error::custom)?;
        serializer.serialize_bytes(&bytes)
    }
}

impl<'de> Deserialize<'de> for Chunk {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Bytes;
        impl<'de> de::Visitor<'de> for Bytes {
            type Value = Chunk;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("the binary form of a chunk")
            }

            fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<Chunk, E> {
                Chunk::decode(bytes).map_err(E::custom)
            }
        }
        deserializer.deserialize_bytes(Bytes)
    }
}

#[cfg(test)]
mod tests;
