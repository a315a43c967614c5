//! Changes on their way out of an operator: rows of the chunk at hand, and rows that state had.
//!
//! Rows of the chunk are taken from its columns, so that only what comes from state has to be decoded.

use arrow::array::{Array, ArrayRef};
use arrow::compute::interleave;
use arrow::datatypes::SchemaRef;
use flott_core::{Error, Result};

use crate::operator::Emit;
use crate::row::{EncodedRows, RowDecoder, RowEncoder};
use flott_chunk::{Chunk, RowKind};

/// Changes, in order.
#[derive(Debug)]
pub struct Changes {
    decoder: RowDecoder,
    kept: EncodedRows,
    /// For each change, 0 and the row of the chunk, or 1 and the row of `kept`.
    places: Vec<(usize, usize)>,
    kinds: Vec<RowKind>,
}

impl Changes {
    /// None yet. `decoder` is for rows that state had.
    pub fn new(decoder: RowDecoder) -> Self {
        Self { decoder, kept: EncodedRows::default(), places: Vec::new(), kinds: Vec::new() }
    }

    /// Adds a row of the chunk at hand.
    #[inline]
    pub fn add_row(&mut self, row: usize, kind: RowKind) {
        self.places.push((0, row));
        self.kinds.push(kind);
    }

    /// Adds a row by its bytes.
    #[inline]
    pub fn add_kept(&mut self, bytes: &[u8], kind: RowKind) {
        self.places.push((1, self.kept.len()));
        self.kinds.push(kind);
        self.kept.push(bytes);
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.kinds.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.kinds.is_empty()
    }

    /// Puts them out, and has none afterwards. `chunk` is the one at hand, if there is one.
    pub fn emit(&mut self, chunk: Option<&Chunk>, schema: &SchemaRef, out: &mut Emit<'_>) -> Result<()> {
        if self.is_empty() {
            return Ok(());
        }
        let kept = match self.kept.is_empty() {
            true => Vec::new(),
            false => self.decoder.decode(self.kept.iter())?,
        };
        let columns = match chunk {
            None => kept,
            Some(_) if self.kept.len() == self.len() => kept,
            Some(chunk) => {
                let rows = chunk.batch.columns();
                let column = |index: usize| -> Result<ArrayRef> {
                    let row: &dyn Array = &rows[index];
                    let sources = [row, kept.get(index).map_or(row, |kept| kept)];
                    interleave(&sources, &self.places)
                        .map_err(|error| Error::system(format!("putting changes in order: {error}")))
                };
                (0..rows.len()).map(column).collect::<Result<_>>()?
            }
        };
        self.kept.clear();
        self.places.clear();
        out.emit_columns(schema, columns, std::mem::take(&mut self.kinds))
    }
}

/// Writes the bytes of some rows of a chunk, in place of what `into` had.
pub fn encode_rows(encoder: &RowEncoder, chunk: &Chunk, rows: &[u32], into: &mut EncodedRows) -> Result<()> {
    if rows.len() == chunk.len() {
        return encoder.encode(chunk.batch.columns(), chunk.len(), into);
    }
    let chosen = chunk.take(rows)?;
    encoder.encode(chosen.batch.columns(), chosen.len(), into)
}
