//! Left rows and rows of the table that have the same key: which pairs of them stay, and what comes out.

use std::sync::Arc;

use arrow::array::{ArrayRef, UInt32Array};
use arrow::compute::take;
use arrow::datatypes::{FieldRef, Schema, SchemaRef};
use flott_chunk::{Chunk, batch_of};
use flott_core::{Error, Result};

use super::LookupCondition;
use crate::expr::Compiled;
use crate::operator::Emit;
use crate::operators::pairs::Choice;

/// See the module's documentation.
pub(super) struct Pairing {
    is_left_outer: bool,
    condition: Option<Compiled>,
    /// The schema that the condition is over, and what comes out.
    joined: SchemaRef,
    choice: Choice,
}

impl Pairing {
    /// Pairs of rows of `left` and rows of these columns.
    pub(super) fn new<'a>(
        left: &SchemaRef,
        right: impl Iterator<Item = &'a FieldRef>,
        on: &LookupCondition<'_>,
    ) -> Result<Self> {
        let nullable = |field: &FieldRef| field.as_ref().clone().with_nullable(true);
        let fields = left.fields().iter().map(nullable).chain(right.map(nullable));
        let joined = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        Ok(Self {
            is_left_outer: on.is_left_outer,
            condition: on.condition.map(|expr| expr.compile(&joined, on.functions)).transpose()?,
            joined,
            choice: Choice::default(),
        })
    }

    /// A left row, and the right ones with its key.
    pub(super) fn add(&mut self, left: usize, right: impl Iterator<Item = u32>) {
        let before = self.choice.len();
        right.for_each(|right| self.choice.add(left as u32, Some(right)));
        if self.is_left_outer && self.choice.len() == before {
            self.choice.add(left as u32, None);
        }
    }

    /// Whether it is time to send them.
    pub(super) fn is_full(&self) -> bool {
        self.choice.len() >= Chunk::ROWS_MAX
    }

    /// Sends the pairs that were added, of rows of `chunk` and of rows in these columns.
    pub(super) fn flush(&mut self, chunk: &Chunk, right: &[ArrayRef], out: &mut Emit<'_>) -> Result<()> {
        if self.choice.is_empty() {
            return Ok(());
        }
        if let Some(condition) = &self.condition {
            let (left, found) = self.choice.positions();
            let columns = [gather(chunk.batch.columns(), &left)?, gather(right, &found)?].concat();
            let mask = condition.mask(&batch_of(&self.joined, columns, left.len())?)?;
            self.choice.keep(&mask, self.is_left_outer);
        }
        let (left, found) = self.choice.positions();
        let left = chunk.take(left.values())?;
        let columns = [left.batch.columns().to_vec(), gather(right, &found)?].concat();
        self.choice.clear();
        if left.is_empty() {
            return Ok(());
        }
        out.emit_large(left.with_batch(batch_of(&self.joined, columns, left.len())?))
    }
}

/// These rows of columns; none is null.
fn gather(columns: &[ArrayRef], rows: &UInt32Array) -> Result<Vec<ArrayRef>> {
    let gathered = columns.iter().map(|column| take(column, rows, None));
    gathered.collect::<std::result::Result<_, _>>().map_err(|error| Error::system(format!("joining rows: {error}")))
}
