//! Files that are read in pieces of their own, with a header or footer that says how: Parquet, Avro.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use flott_core::Result;
use serde::{Deserialize, Serialize};

/// The bytes of a file. Reading waits for the disk or the network; errors name the file.
pub trait FileBytes: Send + Sync {
    /// The file, for messages.
    fn name(&self) -> &str;

    /// Its length in bytes, when it was listed.
    fn length(&self) -> u64;

    /// When it was changed last, in milliseconds since 1970.
    ///
    /// # Errors
    /// The file is gone, or cannot be reached.
    fn modified_ms(&self) -> Result<i64>;

    /// A range of it.
    ///
    /// # Errors
    /// The file ends before the range does, or cannot be read.
    fn read_at(&self, range: Range<u64>) -> Result<Bytes>;

    /// Several ranges of it, where that can be faster than one after the other. `None` if it cannot.
    fn read_ahead(&self, ranges: &[Range<u64>]) -> Result<Option<Vec<Bytes>>> {
        let _ = ranges;
        Ok(None)
    }
}

/// Where in a file reading goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Position {
    /// A number of the piece, by which its format finds it again.
    pub block: u64,
    /// How many rows of it were read before.
    pub row: u64,
}

/// A format whose files are read in pieces.
pub trait BlockFormat<T>: Send + Sync {
    /// Begins to read the pieces that belong to `range`, which is a part of the file's bytes: each piece belongs to one of
    /// the ranges that a file is cut into. Reading begins at the start of the range, or at a position that a reader of the same
    /// range gave.
    fn open(
        &self,
        file: Arc<dyn FileBytes>,
        range: Range<u64>,
        from: Option<Position>,
    ) -> Result<Box<dyn BlockReader<T>>>;
}

/// Reads pieces of one file.
pub trait BlockReader<T>: Send {
    /// The next rows, and where reading goes on behind them. From the same position on, rows come in the same portions.
    fn next(&mut self) -> Result<Option<(T, Position)>>;
}
