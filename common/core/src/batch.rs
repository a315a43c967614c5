//! What travels on an edge: rows by the batch, with what was computed for each of them.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::time::Timestamp;

/// What a stream can carry: a value that can be copied to several consumers, sent to another
/// thread, and written to the network or to state.
pub trait Data: Clone + Send + Serialize + DeserializeOwned + 'static {}

impl<T: Clone + Send + Serialize + DeserializeOwned + 'static> Data for T {}

/// Rows in the order in which they arrived, column by column.
///
/// `timestamps` and `hashes` are either empty or as long as `rows`: a column is there when the
/// stream has event time, or was keyed, and all rows of one batch agree on that.
#[derive(Clone, Debug, PartialEq)]
pub struct Batch<T> {
    /// The records.
    pub rows: Vec<T>,
    /// The event time of each record, in milliseconds since 1970; empty before timestamps are assigned.
    pub timestamps: Vec<Timestamp>,
    /// The stable hash of each record's key; empty outside keyed streams.
    pub hashes: Vec<u64>,
    /// The source split that all rows come from, for watermarks per split; 0 when unknown or mixed.
    pub split: u32,
}

impl<T> Default for Batch<T> {
    fn default() -> Self {
        Self { rows: Vec::new(), timestamps: Vec::new(), hashes: Vec::new(), split: 0 }
    }
}

impl<T> Batch<T> {
    /// How many rows a batch has when it is full.
    pub const ROWS_MAX: usize = 1024;

    /// An empty batch with room for a full one.
    pub fn with_capacity(rows: usize) -> Self {
        Self { rows: Vec::with_capacity(rows), ..Self::default() }
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Removes all rows and keeps the buffers.
    pub fn clear(&mut self) {
        self.rows.clear();
        self.timestamps.clear();
        self.hashes.clear();
        self.split = 0;
    }

    /// The rows without timestamps or keys.
    pub fn from_rows(rows: Vec<T>) -> Self {
        Self { rows, ..Self::default() }
    }

    /// The event time of row `index`, if the stream has event time.
    pub fn timestamp(&self, index: usize) -> Option<Timestamp> {
        self.timestamps.get(index).copied()
    }
}
