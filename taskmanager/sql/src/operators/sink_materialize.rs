//! `SinkMaterializer`: one row for each primary key of a sink, of rows of which several may have the same.
//!
//! All rows of a primary key are kept, in the order in which they came. One of them counts, the last or the first; when it
//! goes, another one takes its place. What is put out is the difference that a chunk makes to the one that counts.
//!
//! Whether different rows have the same primary key is known at points where the streams that lead here agree: in between,
//! the row that replaces another may have come before that has gone. So `DO ERROR` looks at a checkpoint and at the end.

use arrow::datatypes::SchemaRef;
use flott_chunk::display::write_row;
use flott_core::time::Timestamp;
use flott_core::{Error, Result};
use flott_network::Barrier;
use flott_operators::operator::{OperatorSnapshot, StateVisitor};
use flott_state::KeyedTable;
use serde::{Deserialize, Serialize};

use crate::changes::Changes;
use crate::operator::{Emit, TableOperator};
use crate::operators::retention::Usage;
use crate::program::OperatorContext;
use crate::row::{EncodedRows, KeyEncoder, RowBytes, RowDecoder, RowEncoder};
use crate::spec::{ConflictStrategy, SinkMaterializeSpec};
use crate::touched::Touched;
use flott_chunk::{Chunk, RowKind, batch_of};

/// A row of a primary key.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Kept {
    /// What it is known by; empty if it is by its bytes.
    id: RowBytes,
    row: RowBytes,
    /// It was there before an update, and the update is still to come: its place is kept for the rest of the chunk.
    #[serde(skip)]
    is_gone: bool,
}

/// See the module's documentation.
pub struct SinkMaterialize {
    conflict: ConflictStrategy,
    keys: KeyEncoder,
    ids: Option<KeyEncoder>,
    rows: RowEncoder,
    table: KeyedTable<RowBytes, (), Vec<Kept>>,
    /// Of each primary key of the chunk at hand: the row that counted before, and how many there were.
    touched: Touched<(Option<RowBytes>, usize)>,
    usage: Usage,
    /// How many primary keys have several rows.
    conflicts: usize,
    decoder: RowDecoder,
    changes: Changes,
    output: SchemaRef,
    encoded: EncodedRows,
    key: RowBytes,
}

/// The row that counts.
fn counting(conflict: ConflictStrategy, kept: &[Kept]) -> Option<&RowBytes> {
    let mut there = kept.iter().filter(|kept| !kept.is_gone);
    let counts = match conflict {
        ConflictStrategy::Nothing => there.next(),
        ConflictStrategy::Deduplicate | ConflictStrategy::Error => there.next_back(),
    };
    counts.map(|kept| &kept.row)
}

impl SinkMaterialize {
    /// Makes it, empty.
    pub fn new(spec: &SinkMaterializeSpec, cx: &OperatorContext<'_>) -> Result<Self> {
        let types = cx.types(0);
        Ok(Self {
            conflict: spec.conflict,
            keys: KeyEncoder::new(&spec.key, &types)?,
            ids: spec.upsert_key.as_ref().map(|columns| KeyEncoder::new(columns, &types)).transpose()?,
            rows: RowEncoder::new(&types)?,
            table: cx.task.table("rows"),
            touched: Touched::default(),
            usage: Usage::new(spec.ttl_ms, cx),
            conflicts: 0,
            decoder: RowDecoder::new(&types)?,
            changes: Changes::new(RowDecoder::new(&types)?),
            output: SchemaRef::clone(cx.output),
            encoded: EncodedRows::default(),
            key: RowBytes::default(),
        })
    }

    /// Brings the change of one row into the rows of its primary key, which is at hand.
    fn apply(&mut self, hash: u64, row: &[u8], id: &[u8], kind: RowKind) {
        let is_same = |kept: &Kept| match id {
            [] => kept.row.as_slice() == row,
            id => kept.id.as_slice() == id,
        };
        let keeps_place = self.conflict == ConflictStrategy::Nothing && !id.is_empty();
        if kind.is_addition() {
            let kept = self.table.get_or_insert_with(hash, &self.key, (), Vec::new);
            let new = Kept { id: RowBytes::new(id), row: RowBytes::new(row), is_gone: false };
            match kept.iter().position(is_same).filter(|_| !id.is_empty()) {
                Some(found) if keeps_place => kept[found] = new,
                Some(found) => {
                    kept.remove(found);
                    kept.push(new);
                }
                None => kept.push(new),
            }
            return;
        }
        // What is not there cannot go: it was never seen.
        let Some(kept) = self.table.get_mut(hash, &self.key, &()) else { return };
        if let Some(found) = kept.iter().position(is_same) {
            if keeps_place && kind == RowKind::UpdateBefore {
                kept[found].is_gone = true;
            } else {
                kept.remove(found);
            }
        }
    }

    /// Refuses what was told to be an error.
    fn check(&self) -> Result<()> {
        if self.conflict != ConflictStrategy::Error || self.conflicts == 0 {
            return Ok(());
        }
        let mut example = None;
        self.table.visit(|_, (), kept| {
            if example.is_none() && kept.len() > 1 {
                example = Some(kept.iter().take(2).map(|kept| kept.row.clone()).collect::<Vec<_>>());
            }
            Ok(())
        })?;
        let example = example.unwrap_or_default();
        let columns = self.decoder.decode(example.iter().map(RowBytes::as_slice))?;
        let example = Chunk::inserts(batch_of(&self.output, columns, example.len())?);
        let rows = (0..example.len()).map(|row| {
            let mut text = String::new();
            write_row(&example, row, &mut text);
            text
        });
        Err(Error::input(format!(
            "different rows have the same primary key of the sink, and ON CONFLICT DO ERROR was said ({} such keys); for example {}: make the query unique by that key, or say ON CONFLICT DO DEDUPLICATE or DO NOTHING",
            self.conflicts,
            rows.collect::<Vec<_>>().join(" and ")
        )))
    }
}

impl TableOperator for SinkMaterialize {
    fn process(&mut self, chunk: Chunk, out: &mut Emit<'_>) -> Result<()> {
        let columns = chunk.batch.columns();
        let keys = self.keys.encode(columns, chunk.len(), chunk.hashes.as_deref())?.clone();
        let ids = self.ids.as_mut().map(|ids| ids.encode(columns, chunk.len(), Some(&keys.hashes)).cloned());
        let ids = ids.transpose()?;
        let mut encoded = std::mem::take(&mut self.encoded);
        self.rows.encode(columns, chunk.len(), &mut encoded)?;
        for (row, hash) in keys.hashes.iter().enumerate() {
            self.key.set(keys.rows.get(row));
            let Self { table, touched, key, conflict, .. } = self;
            touched.note(*hash, keys.rows.get(row), || {
                let kept = table.get(*hash, key, &()).map_or(&[][..], Vec::as_slice);
                (counting(*conflict, kept).cloned(), kept.len())
            });
            let id = ids.as_ref().map_or(&[][..], |ids| ids.rows.get(row));
            self.apply(*hash, encoded.get(row), id, chunk.kind(row));
        }
        self.encoded = encoded;
        for met in self.touched.drain() {
            self.usage.touch(met.hash, &met.key);
            let (before, rows_before) = met.note;
            let mut rows = 0;
            let mut after = None;
            if let Some(kept) = self.table.get_mut(met.hash, &met.key, &()) {
                kept.retain(|kept| !kept.is_gone);
                rows = kept.len();
                after = counting(self.conflict, kept);
            }
            match (&before, after) {
                (Some(before), Some(after)) if before == after => {}
                (None, Some(after)) => self.changes.add_kept(after.as_slice(), RowKind::Insert),
                (Some(_), Some(after)) => self.changes.add_kept(after.as_slice(), RowKind::UpdateAfter),
                (Some(before), None) => self.changes.add_kept(before.as_slice(), RowKind::Delete),
                (None, None) => {}
            }
            if rows == 0 {
                self.table.remove(met.hash, &met.key, &());
            }
            self.conflicts += usize::from(rows > 1);
            self.conflicts -= usize::from(rows_before > 1);
        }
        self.changes.emit(None, &self.output, out)
    }

    fn states(&mut self, visit: StateVisitor<'_>) -> Result<()> {
        self.usage.states(visit)?;
        visit(&mut self.table)
    }

    fn on_time(&mut self, now: Timestamp, _: &mut Emit<'_>) -> Result<Timestamp> {
        for (hash, key) in self.usage.expire(now) {
            let rows = self.table.remove(hash, &key, &()).map_or(0, |kept| kept.len());
            self.conflicts -= usize::from(rows > 1);
        }
        Ok(self.usage.next())
    }

    fn restored(&mut self) -> Result<()> {
        self.usage.restored()?;
        let mut conflicts = 0;
        self.table.visit(|_, (), kept| {
            conflicts += usize::from(kept.len() > 1);
            Ok(())
        })?;
        self.conflicts = conflicts;
        Ok(())
    }

    fn snapshot(&mut self, _: &Barrier, _: &mut OperatorSnapshot<'_>) -> Result<()> {
        self.check()
    }

    fn on_end(&mut self, _: &mut Emit<'_>) -> Result<()> {
        self.check()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use flott_operators::push::{Control, Push};
    use proptest::prelude::*;

    use super::*;
    use crate::operators::testing::{Bed, Value, columns, fold_by_key, int, row};
    use crate::spec::OperatorSpec;

    /// Rows of (id, primary key, value).
    fn bed(conflict: ConflictStrategy, upsert_key: Option<Vec<usize>>) -> Bed {
        let schema = columns(&[("id", int()), ("p", int()), ("v", int())]);
        let spec = SinkMaterializeSpec { key: vec![1], upsert_key, conflict, ttl_ms: 0 };
        Bed::keyed(OperatorSpec::SinkMaterialize(spec), &[vec![1]], std::slice::from_ref(&schema), &schema)
    }

    fn change(kind: RowKind, id: i64, p: i64, v: i64) -> (RowKind, Vec<Value>) {
        (kind, row![id, p, v])
    }

    /// Flink 2.3, with `table.exec.sink.upsert-materialize` = FORCE.
    #[test]
    fn the_latest_counts_and_the_one_before_it_comes_back_as_in_flink() {
        for upsert_key in [None, Some(vec![0])] {
            let mut bed = bed(ConflictStrategy::Deduplicate, upsert_key);
            let steps = [
                vec![change(RowKind::Insert, 1, 1, 5)],
                vec![change(RowKind::Insert, 2, 1, 6)],
                vec![change(RowKind::Delete, 2, 1, 6)],
                vec![change(RowKind::Insert, 3, 1, 6)],
                vec![change(RowKind::UpdateBefore, 1, 1, 5), change(RowKind::UpdateAfter, 1, 1, 8)],
                vec![change(RowKind::Delete, 3, 1, 6)],
                // To another subtask, maybe.
                vec![change(RowKind::UpdateBefore, 1, 1, 8)],
                vec![change(RowKind::UpdateAfter, 1, 2, 8)],
                vec![change(RowKind::Delete, 9, 2, 8)],
            ];
            for step in steps {
                bed.change(0, &step);
                bed.restart(2);
            }
            let expected = [
                "+I\t1\t1\t5",
                "+U\t2\t1\t6",
                "+U\t1\t1\t5",
                "+U\t3\t1\t6",
                "+U\t1\t1\t8",
                "-D\t1\t1\t8",
                "+I\t1\t2\t8",
            ];
            assert_eq!(bed.take(), expected);
        }
    }

    #[test]
    fn the_first_counts_through_its_updates() {
        let mut bed = bed(ConflictStrategy::Nothing, Some(vec![0]));
        bed.change(0, &[change(RowKind::Insert, 1, 1, 5), change(RowKind::Insert, 2, 1, 6)]);
        bed.change(0, &[change(RowKind::UpdateBefore, 1, 1, 5), change(RowKind::UpdateAfter, 1, 1, 7)]);
        bed.change(0, &[change(RowKind::UpdateBefore, 1, 1, 7), change(RowKind::UpdateAfter, 1, 2, 7)]);
        assert_eq!(bed.take(), ["+I\t1\t1\t5", "+U\t1\t1\t7", "+U\t2\t1\t6", "+I\t1\t2\t7"]);
    }

    #[test]
    fn a_conflict_that_stays_is_an_error_that_shows_it() {
        let mut bed = bed(ConflictStrategy::Error, Some(vec![0]));
        bed.change(0, &[change(RowKind::Insert, 1, 1, 5)]);
        // The one that replaces it comes before it has gone.
        bed.change(0, &[change(RowKind::Insert, 2, 1, 6)]);
        bed.change(0, &[change(RowKind::Delete, 1, 1, 5)]);
        bed.restart(1);
        bed.change(0, &[change(RowKind::Insert, 3, 1, 7)]);
        let error = bed.try_control(|node| node.control(&mut Control::EndOfInput)).unwrap_err().to_string();
        assert!(error.contains("+I[2, 1, 6] and +I[3, 1, 7]") && error.contains("DO DEDUPLICATE"), "{error}");
    }

    proptest! {
        #[test]
        fn one_row_of_each_primary_key_counts(
            steps in prop::collection::vec((0..5_i64, 0..3_i64, 0..3_i64, any::<bool>(), 0..8_u32), 1..40),
            by_id in any::<bool>(),
            is_first in any::<bool>(),
        ) {
            let conflict = if is_first { ConflictStrategy::Nothing } else { ConflictStrategy::Deduplicate };
            let mut bed = bed(conflict, by_id.then(|| vec![0]));
            let (mut rows, mut chunk): (Vec<(i64, i64, i64)>, Vec<_>) = Default::default();
            for (id, p, v, ends, restart) in steps {
                match rows.iter().position(|row| row.0 == id) {
                    Some(found) => {
                        let old = rows.remove(found);
                        chunk.push(change(RowKind::Delete, old.0, old.1, old.2));
                    }
                    None => {
                        rows.push((id, p, v));
                        chunk.push(change(RowKind::Insert, id, p, v));
                    }
                }
                if ends || restart < 3 {
                    bed.change(0, &std::mem::take(&mut chunk));
                }
                if restart < 3 {
                    bed.restart(1 + restart);
                }
            }
            bed.change(0, &chunk);
            let mut expected = BTreeMap::new();
            for (id, p, v) in rows {
                let text = format!("{id}\t{p}\t{v}");
                match is_first {
                    true => drop(expected.entry(vec![p.to_string()]).or_insert(text)),
                    false => drop(expected.insert(vec![p.to_string()], text)),
                }
            }
            prop_assert_eq!(fold_by_key(&bed.take(), &[1]), expected);
        }
    }
}
