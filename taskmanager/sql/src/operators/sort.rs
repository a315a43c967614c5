//! `Sort`: all rows in order, at the end of bounded input.
//!
//! Rows are kept by their bytes, with how often they are there, so that a delete finds its row. Where only the first rows
//! are wanted and none is ever deleted, no more are kept: a heap of sort keys has the last of them at hand.

use std::collections::BinaryHeap;

use arrow::datatypes::SchemaRef;
use flott_core::{Error, Result};
use flott_operators::operator::StateVisitor;
use flott_state::KeyedTable;
use serde::{Deserialize, Serialize};

use crate::operator::{Emit, TableOperator};
use crate::program::OperatorContext;
use crate::row::{EncodedRows, RowBytes, RowDecoder, RowEncoder};
use crate::sort_key::{SortColumn, SortKeyEncoder};
use flott_chunk::{Chunk, batch_of};

/// A row that is kept; its bytes are the key of its entry.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Kept {
    sort: RowBytes,
    count: u64,
}

/// See the module's documentation.
pub struct Sort {
    offset: u64,
    limit: Option<u64>,
    table: KeyedTable<RowBytes, (), Kept>,
    /// How many rows are enough, if they are only inserted.
    enough: Option<usize>,
    /// The sort keys and rows of those that are kept, if there is a number that is enough. The greatest is on top.
    first: BinaryHeap<(RowBytes, RowBytes)>,
    order: SortKeyEncoder,
    encoder: RowEncoder,
    decoder: RowDecoder,
    sorts: EncodedRows,
    rows: EncodedRows,
    output: SchemaRef,
    key: RowBytes,
}

impl Sort {
    /// Of rows that are only inserted, if `is_insert_only`.
    pub fn new(
        order: &[SortColumn],
        offset: u64,
        limit: Option<u64>,
        is_insert_only: bool,
        cx: &OperatorContext<'_>,
    ) -> Result<Self> {
        let types = cx.types(0);
        let enough =
            limit.filter(|_| is_insert_only).and_then(|limit| usize::try_from(offset.checked_add(limit)?).ok());
        Ok(Self {
            offset,
            limit,
            table: cx.task.table("rows"),
            enough,
            first: BinaryHeap::new(),
            order: SortKeyEncoder::new(order, &types)?,
            encoder: RowEncoder::new(&types)?,
            decoder: RowDecoder::new(&types)?,
            sorts: EncodedRows::default(),
            rows: EncodedRows::default(),
            output: SchemaRef::clone(cx.output),
            key: RowBytes::default(),
        })
    }

    fn add(&mut self, sort: &[u8]) {
        let hash = self.key.hash();
        let kept = self.table.get_or_insert_with(hash, &self.key, (), || Kept { sort: RowBytes::new(sort), count: 0 });
        kept.count += 1;
    }

    /// Takes the row of `self.key` back, once. What is not there was never seen.
    fn subtract(&mut self) {
        let hash = self.key.hash();
        if let Some(kept) = self.table.get_mut(hash, &self.key, &()) {
            kept.count -= 1;
            if kept.count == 0 {
                self.table.remove(hash, &self.key, &());
            }
        }
    }
}

impl TableOperator for Sort {
    fn process(&mut self, chunk: Chunk, _: &mut Emit<'_>) -> Result<()> {
        let (columns, mut sorts, mut rows) =
            (chunk.batch.columns(), std::mem::take(&mut self.sorts), std::mem::take(&mut self.rows));
        self.order.encode(columns, chunk.len(), &mut sorts)?;
        self.encoder.encode(columns, chunk.len(), &mut rows)?;
        for row in 0..chunk.len() {
            let sort = sorts.get(row);
            if let Some(enough) = self.enough {
                if !chunk.kind(row).is_addition() {
                    return Err(Error::system("a sort that was planned for inserted rows got a deleted one"));
                }
                let is_full = self.first.len() >= enough;
                if is_full && self.first.peek().is_none_or(|(last, _)| sort >= last.as_slice()) {
                    continue;
                }
                if is_full && let Some((_, last)) = self.first.pop() {
                    self.key = last;
                    self.subtract();
                }
                self.first.push((RowBytes::new(sort), RowBytes::new(rows.get(row))));
            }
            self.key.set(rows.get(row));
            match chunk.kind(row).is_addition() {
                true => self.add(sort),
                false => self.subtract(),
            }
        }
        (self.sorts, self.rows) = (sorts, rows);
        Ok(())
    }

    fn states(&mut self, visit: StateVisitor<'_>) -> Result<()> {
        visit(&mut self.table)
    }

    fn restored(&mut self) -> Result<()> {
        let Self { table, first, enough, .. } = self;
        first.clear();
        if enough.is_some() {
            table.visit(|row, (), kept| {
                first.extend((0..kept.count).map(|_| (kept.sort.clone(), row.clone())));
                Ok(())
            })?;
        }
        Ok(())
    }

    fn on_end(&mut self, out: &mut Emit<'_>) -> Result<()> {
        self.first.clear();
        let mut all: Vec<(RowBytes, RowBytes, u64)> = Vec::new();
        // Taken out, so that a restore of the last checkpoint does not put anything out again.
        self.table.take_all(|row, (), kept| {
            all.push((kept.sort, row, kept.count));
            Ok(())
        })?;
        all.sort_unstable();
        let rows = all.iter().flat_map(|(_, row, count)| (0..*count).map(move |_| row.as_slice()));
        let offset = usize::try_from(self.offset).unwrap_or(usize::MAX);
        let limit = self.limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
        let mut rows = rows.skip(offset).take(limit).peekable();
        while rows.peek().is_some() {
            let part: Vec<&[u8]> = rows.by_ref().take(Chunk::ROWS_MAX).collect();
            let columns = self.decoder.decode(part.iter().copied())?;
            out.emit(Chunk::inserts(batch_of(&self.output, columns, part.len())?))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use flott_chunk::RowKind;
    use proptest::prelude::*;

    use super::*;
    use crate::operators::testing::{Bed, Value, columns, int, row};
    use crate::spec::OperatorSpec;

    fn bed(offset: u64, limit: Option<u64>, is_insert_only: bool) -> Bed {
        let schema = columns(&[("a", int()), ("b", int())]);
        let order = vec![
            SortColumn { column: 1, is_descending: true, nulls_first: false },
            SortColumn { column: 0, is_descending: false, nulls_first: true },
        ];
        let spec = OperatorSpec::Sort { order, offset, limit, is_insert_only };
        Bed::new(spec, std::slice::from_ref(&schema), &schema)
    }

    proptest! {
        #[test]
        fn rows_come_in_order_and_no_more_than_wanted(
            rows in prop::collection::vec((0..5_i64, 0..3_i64), 0..30),
            (offset, limit) in (0..4_u64, prop::option::of(0..6_u64)),
            restart_at in 0..30_usize,
        ) {
            let mut bed = bed(offset, limit, true);
            for (index, (a, b)) in rows.iter().enumerate() {
                if index == restart_at {
                    bed.restart(1);
                }
                bed.insert(0, &[row![*a, *b]]);
            }
            prop_assert_eq!(bed.take(), Vec::<String>::new(), "nothing before the end");
            bed.end();
            let mut sorted = rows;
            sorted.sort_by_key(|(a, b)| (-b, *a));
            let wanted = sorted.into_iter().skip(offset as usize).take(limit.map_or(usize::MAX, |limit| limit as usize));
            prop_assert_eq!(bed.take(), wanted.map(|(a, b)| format!("+I\t{a}\t{b}")).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_deleted_row_is_in_no_order() {
        let mut bed = bed(0, Some(2), false);
        let change = |kind, a: i64, b: i64| (kind, row![a, b]);
        bed.change(0, &[change(RowKind::Insert, 1, 9), change(RowKind::Insert, 1, 9), change(RowKind::Insert, 2, 8)]);
        bed.change(0, &[change(RowKind::UpdateBefore, 1, 9), change(RowKind::UpdateAfter, 3, 7)]);
        bed.change(0, &[change(RowKind::Delete, 1, 9)]);
        bed.insert(0, &[vec![Value::Null, Value::Null]]);
        bed.end();
        assert_eq!(bed.take(), ["+I\t2\t8", "+I\t3\t7"]);
    }
}
