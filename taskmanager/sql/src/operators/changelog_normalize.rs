//! `ChangelogNormalize`: the full changelog of a table of which only the latest rows and deletes are told, maybe repeatedly.
//!
//! The last row of each primary key is kept. What is told again changes nothing, a delete puts out the row as it was,
//! whatever it came with, and a delete of what is not there is nothing. With a time to live, what is told again is passed on,
//! so that those behind know that it is in use.

use arrow::datatypes::SchemaRef;
use flott_core::Result;
use flott_core::time::Timestamp;
use flott_operators::operator::StateVisitor;
use flott_state::KeyedTable;

use crate::changes::{Changes, encode_rows};
use crate::operator::{Emit, TableOperator};
use crate::operators::retention::Usage;
use crate::program::OperatorContext;
use crate::row::{EncodedRows, KeyEncoder, RowBytes, RowDecoder, RowEncoder};
use crate::touched::Touched;
use flott_chunk::{Chunk, RowKind};

/// See the module's documentation.
pub struct ChangelogNormalize {
    with_update_before: bool,
    keys: KeyEncoder,
    rows: RowEncoder,
    table: KeyedTable<RowBytes, (), RowBytes>,
    /// The last change of each key of the chunk at hand.
    touched: Touched<u32>,
    usage: Usage,
    changes: Changes,
    output: SchemaRef,
    encoded: EncodedRows,
}

impl ChangelogNormalize {
    /// By the primary key in the columns `key`; unused keys go after `ttl_ms`, unless that is 0.
    pub fn new(key: &[usize], with_update_before: bool, ttl_ms: u64, cx: &OperatorContext<'_>) -> Result<Self> {
        let types = cx.types(0);
        Ok(Self {
            with_update_before,
            keys: KeyEncoder::new(key, &types)?,
            rows: RowEncoder::new(&types)?,
            table: cx.task.table("rows"),
            touched: Touched::default(),
            usage: Usage::new(ttl_ms, cx),
            changes: Changes::new(RowDecoder::new(&types)?),
            output: SchemaRef::clone(cx.output),
            encoded: EncodedRows::default(),
        })
    }
}

impl TableOperator for ChangelogNormalize {
    fn process(&mut self, chunk: Chunk, out: &mut Emit<'_>) -> Result<()> {
        let keys = self.keys.encode(chunk.batch.columns(), chunk.len(), chunk.hashes.as_deref())?;
        // The last change of a key says it all. A row before an update is a delete: if the update has the same key, it comes
        // later, and if it has another one, the row is gone.
        for row in 0..chunk.len() {
            *self.touched.note(keys.hashes[row], keys.rows.get(row), || 0) = row as u32;
        }
        let met: Vec<_> = self.touched.drain().collect();
        let is_addition = |row: u32| chunk.kind(row as usize).is_addition();
        let added: Vec<u32> = met.iter().map(|met| met.note).filter(|row| is_addition(*row)).collect();
        encode_rows(&self.rows, &chunk, &added, &mut self.encoded)?;
        let mut added = 0;
        for met in met {
            let row = met.note as usize;
            if !is_addition(met.note) {
                if let Some(before) = self.table.remove(met.hash, &met.key, &()) {
                    self.changes.add_kept(before.as_slice(), RowKind::Delete);
                }
                continue;
            }
            let bytes = self.encoded.get(added);
            added += 1;
            match self.table.get(met.hash, &met.key, &()) {
                Some(before) if before.as_slice() == bytes && !self.usage.is_on() => continue,
                Some(before) => {
                    if self.with_update_before {
                        self.changes.add_kept(before.as_slice(), RowKind::UpdateBefore);
                    }
                    self.changes.add_row(row, RowKind::UpdateAfter);
                }
                None => self.changes.add_row(row, RowKind::Insert),
            }
            self.table.insert(met.hash, &met.key, (), RowBytes::new(bytes));
            self.usage.touch(met.hash, &met.key);
        }
        self.changes.emit(Some(&chunk), &self.output, out)
    }

    fn states(&mut self, visit: StateVisitor<'_>) -> Result<()> {
        self.usage.states(visit)?;
        visit(&mut self.table)
    }

    fn restored(&mut self) -> Result<()> {
        self.usage.restored()
    }

    fn on_time(&mut self, now: Timestamp, _: &mut Emit<'_>) -> Result<Timestamp> {
        for (hash, key) in self.usage.expire(now) {
            self.table.remove(hash, &key, &());
        }
        Ok(self.usage.next())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::operators::testing::{Bed, Value, columns, fold, fold_by_key, int, row};
    use crate::spec::OperatorSpec;

    fn bed(with_update_before: bool, ttl_ms: u64) -> Bed {
        let schema = columns(&[("id", int()), ("v", int())]);
        let spec = OperatorSpec::ChangelogNormalize { key: vec![0], with_update_before, ttl_ms };
        Bed::keyed(spec, &[vec![0]], std::slice::from_ref(&schema), &schema)
    }

    fn change(kind: RowKind, id: i64, v: i64) -> (RowKind, Vec<Value>) {
        (kind, row![id, v])
    }

    /// Flink 2.3, with `table.exec.source.cdc-events-duplicate`.
    #[test]
    fn repetitions_go_and_deletes_are_of_the_row_that_was_as_in_flink() {
        let mut bed = bed(true, 0);
        let changes = [
            change(RowKind::Insert, 1, 5),
            change(RowKind::Insert, 1, 5),
            change(RowKind::Insert, 1, 6),
            change(RowKind::UpdateAfter, 1, 7),
            change(RowKind::Delete, 2, 6),
            change(RowKind::UpdateAfter, 3, 9),
            change(RowKind::Delete, 1, 99),
            change(RowKind::Delete, 1, 7),
            change(RowKind::Insert, 1, 1),
        ];
        for one in changes {
            bed.change(0, &[one]);
        }
        let expected = ["+I\t1\t5", "-U\t1\t5", "+U\t1\t6", "-U\t1\t6", "+U\t1\t7", "+I\t3\t9", "-D\t1\t7", "+I\t1\t1"];
        assert_eq!(bed.take(), expected);
    }

    #[test]
    fn unused_keys_go_and_used_ones_are_told_of_again() {
        let mut bed = bed(true, 1000);
        bed.time(5000);
        bed.change(0, &[change(RowKind::Insert, 1, 5), change(RowKind::Insert, 2, 6)]);
        bed.time(5900);
        bed.change(0, &[change(RowKind::Insert, 2, 6)]);
        assert_eq!(bed.take(), ["+I\t1\t5", "+I\t2\t6", "-U\t2\t6", "+U\t2\t6"]);
        bed.restart(2);
        bed.time(6100);
        // Key 1 is not known any more: deleting it is nothing, and coming again it is new.
        bed.change(0, &[change(RowKind::Delete, 1, 5)]);
        bed.change(0, &[change(RowKind::Delete, 2, 6)]);
        bed.change(0, &[change(RowKind::UpdateAfter, 1, 7)]);
        assert_eq!(bed.take(), ["-D\t2\t6", "+I\t1\t7"]);
        bed.time(7100);
        assert_eq!(bed.entries()["rows"], 0);
    }

    proptest! {
        #[test]
        fn the_last_row_of_each_key_is_left(
            steps in prop::collection::vec((0..4_i64, 0..4_i64, any::<bool>(), any::<bool>(), 0..8_u32), 1..40),
            with_update_before in any::<bool>(),
        ) {
            let mut bed = bed(with_update_before, 0);
            let (mut rows, mut chunk) = (BTreeMap::new(), Vec::new());
            for (id, v, is_addition, ends, restart) in steps {
                if is_addition {
                    rows.insert(id, v);
                } else {
                    rows.remove(&id);
                }
                chunk.push(change(if is_addition { RowKind::UpdateAfter } else { RowKind::Delete }, id, v));
                if ends || restart < 3 {
                    bed.change(0, &std::mem::take(&mut chunk));
                }
                if restart < 3 {
                    bed.restart(1 + restart);
                }
            }
            bed.change(0, &chunk);
            let lines = bed.take();
            let left: Vec<String> = match with_update_before {
                true => fold(&lines).into_keys().collect(),
                false => fold_by_key(&lines, &[0]).into_values().collect(),
            };
            prop_assert_eq!(left, rows.iter().map(|(id, v)| format!("{id}\t{v}")).collect::<Vec<_>>());
        }
    }
}
