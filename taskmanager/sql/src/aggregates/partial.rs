//! Aggregates in two phases: rows that stand for several.
//!
//! In front of an exchange, rows with the same key become one: the first of them, with what is kept of all in a column behind the
//! others. Where that column is null, a row stands for itself. So whoever sends may do either, a chunk at a time, and whoever
//! receives takes both.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BinaryArray, BinaryBuilder, new_null_array};
use arrow::datatypes::{DataType, Field, FieldRef, SchemaRef};
use flott_chunk::{Chunk, RowKind};
use flott_core::{Error, Result, codec};

use super::grouping::{signs, signs_of_part};
use super::input::Form;
use super::plan::{Aggregate, Aggregates, Kind};
use super::rich::Rich;
use super::state::{Accumulators, Arena};
use super::update::Changes;

/// The column behind the others of a row that may stand for several.
pub fn partial_field() -> FieldRef {
    Arc::new(Field::new("$partial", DataType::Binary, true))
}

impl Aggregates {
    /// Whether groups may become one in any order: no result depends on which row came first, nor on whether a row that goes is
    /// in the same chunk as the one that came. Of functions of the program that is not known.
    pub fn are_mergeable(&self) -> bool {
        let is_mergeable = |aggregate: &Aggregate| match (&aggregate.kind, aggregate.form) {
            // These forget what they have when as many values have gone as came.
            (Kind::Sum { .. } | Kind::Mean, Form::Floats | Form::Doubles) | (Kind::Spread { .. }, _) => !self.retracts,
            (Kind::Count | Kind::Sum { .. } | Kind::Mean | Kind::Best { .. } | Kind::BestBlob { .. }, _) => true,
            (Kind::Ordered { .. } | Kind::Percentile { .. } | Kind::Bag | Kind::Approximate, _) => true,
            _ => false,
        };
        self.aggregates.iter().all(is_mergeable)
    }

    /// Takes the rows of a chunk into their groups, or out of them. `partials` is the column of those that stand for several.
    pub fn take_in(&self, arena: &mut Arena, chunk: &Chunk, groups: &[u32], partials: Option<&ArrayRef>) -> Result<()> {
        let Some(partials) = partials else {
            let signs = signs(chunk, groups, &mut arena.rows);
            return self.take_rows_in(arena, chunk, groups, signs);
        };
        let partials = partials.as_binary_opt::<i32>().ok_or_else(no_partials)?;
        if partials.null_count() == partials.len() {
            return self.take_part_in(arena, chunk, groups);
        }
        if partials.null_count() > 0 {
            let rows: Vec<u32> = (0..chunk.len()).filter(|row| partials.is_null(*row)).map(|row| row as u32).collect();
            let groups: Vec<u32> = rows.iter().map(|row| groups[*row as usize]).collect();
            self.take_part_in(arena, &chunk.take(&rows)?, &groups)?;
        }
        for (row, group) in groups.iter().enumerate() {
            if partials.is_valid(row) {
                let mut kept: Accumulators = codec::decode(partials.value(row))?;
                self.merge_taken(arena, *group as usize, &mut kept)?;
            }
        }
        Ok(())
    }

    /// Takes in rows that are not all of their groups, in any order.
    fn take_part_in(&self, arena: &mut Arena, chunk: &Chunk, groups: &[u32]) -> Result<()> {
        let signs = signs_of_part(chunk, groups, &mut arena.rows);
        self.take_rows_in(arena, chunk, groups, signs)
    }

    fn take_rows_in(&self, arena: &mut Arena, chunk: &Chunk, groups: &[u32], signs: Option<Vec<i8>>) -> Result<()> {
        let bound = self.bind(&chunk.batch)?;
        self.update(arena, &bound, 0..chunk.len(), Changes { groups, signs: signs.as_deref() })
    }

    /// The chunk that stands for another: of each group one row, at its place in `firsts`. Groups whose rows have cancelled each
    /// other out have none.
    pub fn partials(
        &self,
        arena: &mut Arena,
        chunk: &Chunk,
        groups: &[u32],
        firsts: &[u32],
        schema: &SchemaRef,
    ) -> Result<Chunk> {
        arena.clear();
        for _ in firsts {
            arena.add();
        }
        self.take_part_in(arena, chunk, groups)?;
        let (mut rows, mut column) = (Vec::with_capacity(firsts.len()), BinaryBuilder::new());
        let (mut kept, mut bytes) = (Accumulators::default(), Vec::new());
        for (group, first) in firsts.iter().enumerate() {
            if arena.is_nothing(group) {
                continue;
            }
            rows.push(*first);
            arena.store(group, &mut kept);
            bytes.clear();
            codec::encode_into(&kept, &mut bytes)?;
            column.append_value(&bytes);
        }
        arena.clear();
        let mut columns = chunk.take(&rows)?.batch.columns().to_vec();
        columns.push(Arc::new(column.finish()));
        Chunk::of_columns(schema, columns, rows.len(), vec![RowKind::Insert; rows.len()])
    }
}

/// The rows of a chunk, each of which stands for itself.
pub fn as_they_are(chunk: &Chunk, schema: &SchemaRef) -> Result<Chunk> {
    let mut columns = chunk.batch.columns().to_vec();
    columns.push(new_null_array(&DataType::Binary, chunk.len()));
    Ok(chunk.with_batch(flott_chunk::batch_of(schema, columns, chunk.len())?))
}

/// How many rows those of a chunk stand for.
pub fn rows_of(partials: &BinaryArray, row: usize) -> Result<u64> {
    match partials.is_valid(row) {
        true => codec::decode::<Accumulators>(partials.value(row)).map(|kept| kept.rows.unsigned_abs()),
        false => Ok(1),
    }
}

impl Arena {
    /// Whether the rows of a group have left no trace.
    fn is_nothing(&self, group: usize) -> bool {
        let is_empty = |rich: &Rich| match rich {
            Rich::Nothing => true,
            Rich::Ordered(values) => values.is_empty(),
            Rich::Counted(values) => values.is_empty(),
            _ => false,
        };
        self.rows[group] == 0
            && self.words[group * self.width..(group + 1) * self.width].iter().all(|word| *word == 0)
            && self.rich[group * self.depth..(group + 1) * self.depth].iter().all(is_empty)
    }
}

fn no_partials() -> Error {
    Error::system("the column of partial aggregates is not one of bytes")
}

#[cfg(test)]
#[path = "partial_tests.rs"]
mod tests;
