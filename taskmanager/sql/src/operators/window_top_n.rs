//! `WindowRank`: the first rows of each key and window, put out when the window ends.
//!
//! What is put out is final. A row whose window has ended is late: it is dropped and counted.

use std::sync::Arc;

use flott_core::hash::stable_hash;
use flott_core::time::Timestamp;
use flott_core::{Error, Result};
use flott_network::Barrier;
use flott_operators::operator::{OpenContext, OperatorSnapshot, StateVisitor};
use flott_state::{KeyedTable, TimeIndex};
use flott_telemetry::TaskCounters;

use super::top_n::bounded::{Ranked, insert, is_beyond};
use super::top_n::ranks::Ranks;
use crate::changes::encode_rows;
use crate::local_time::LocalTime;
use crate::operator::{Emit, TableOperator};
use crate::program::OperatorContext;
use crate::row::{EncodedRows, KeyEncoder, RowBytes, RowEncoder};
use crate::sort_key::SortKeyEncoder;
use crate::spec::WindowTopNSpec;
use crate::time::{EventClock, event_times};
use flott_chunk::Chunk;

/// See the module's documentation.
pub struct WindowTopN {
    window_end: usize,
    name: String,
    keys: KeyEncoder,
    order: SortKeyEncoder,
    rows: RowEncoder,
    /// The first rows of each key by the end of the window.
    table: KeyedTable<RowBytes, Timestamp, Vec<Ranked>>,
    /// By the last millisecond of a window, the keys that have it.
    due: TimeIndex,
    /// How far the local time of windows has come.
    clock: EventClock,
    local: LocalTime,
    counters: Arc<TaskCounters>,
    ranks: Ranks,
    sorts: EncodedRows,
    encoded: EncodedRows,
    key: RowBytes,
}

impl WindowTopN {
    /// Makes it, empty.
    pub fn new(spec: &WindowTopNSpec, cx: &OperatorContext<'_>) -> Result<Self> {
        let types = cx.types(0);
        Ok(Self {
            window_end: spec.window_end,
            name: cx.inputs[0].field(spec.window_end).name().clone(),
            keys: KeyEncoder::new(&spec.partition, &types)?,
            order: SortKeyEncoder::new(&spec.order, &types)?,
            rows: RowEncoder::new(&types)?,
            table: cx.task.table("windows"),
            due: TimeIndex::default(),
            clock: EventClock::default(),
            local: LocalTime::new(spec.zone.as_deref())?,
            counters: Arc::clone(&cx.task.counters),
            ranks: Ranks::new((spec.from, spec.to), spec.with_rank, false, cx)?,
            sorts: EncodedRows::default(),
            encoded: EncodedRows::default(),
            key: RowBytes::default(),
        })
    }
}

impl TableOperator for WindowTopN {
    fn process(&mut self, chunk: Chunk, _: &mut Emit<'_>) -> Result<()> {
        if !chunk.is_insert_only() {
            return Err(Error::system("a Top-N of windows was planned over rows that change"));
        }
        let (columns, most) = (chunk.batch.columns(), self.ranks.most());
        let ends = event_times(chunk.column(self.window_end), &self.name)?;
        let keys = self.keys.encode(columns, chunk.len(), chunk.hashes.as_deref())?;
        self.order.encode(columns, chunk.len(), &mut self.sorts)?;
        // The first look: most rows do not get onto a list, and lists only get harder to get onto.
        let (mut chosen, mut late) = (Vec::new(), 0);
        for row in 0..chunk.len() {
            let end = ends.value(row);
            if end.saturating_sub(1) <= self.clock.now {
                late += 1;
                continue;
            }
            self.key.set(keys.rows.get(row));
            let list = self.table.get(keys.hashes[row], &self.key, &end);
            if most > 0 && list.is_none_or(|list| !is_beyond(list, most, self.sorts.get(row))) {
                chosen.push(row as u32);
            }
        }
        self.counters.late_records_dropped.add(late);
        encode_rows(&self.rows, &chunk, &chosen, &mut self.encoded)?;
        for (place, row) in chosen.into_iter().enumerate() {
            let (row, hash) = (row as usize, keys.hashes[row as usize]);
            self.key.set(keys.rows.get(row));
            let (end, sort) = (ends.value(row), self.sorts.get(row));
            let mut is_new = false;
            let list = self.table.get_or_insert_with(hash, &self.key, end, || {
                is_new = true;
                Vec::new()
            });
            if is_new {
                self.due.insert(end - 1, hash);
            }
            if !is_beyond(list, most, sort) {
                let row = RowBytes::new(self.encoded.get(place));
                insert(list, most, Ranked { sort: RowBytes::new(sort), id: RowBytes::default(), row, is_new: false });
            }
        }
        Ok(())
    }

    fn open(&mut self, cx: &mut OpenContext<'_>) -> Result<()> {
        self.clock.restore(cx)
    }

    fn states(&mut self, visit: StateVisitor<'_>) -> Result<()> {
        self.table.set_index_bytes(self.due.bytes());
        visit(&mut self.table)
    }

    fn restored(&mut self) -> Result<()> {
        let Self { table, due, .. } = self;
        due.clear();
        table.visit(|key, end, _| {
            due.insert(end - 1, stable_hash(key));
            Ok(())
        })
    }

    fn on_watermark(&mut self, watermark: Timestamp, out: &mut Emit<'_>) -> Result<()> {
        self.clock.advance(self.local.passed(watermark));
        let skipped = self.ranks.skipped();
        while let Some((last, hashes)) = self.due.pop_until(self.clock.now) {
            for hash in hashes {
                if let Some((_, list)) = self.table.take_by_hash(hash, &(last + 1)) {
                    self.ranks.insert(list.iter().skip(skipped).map(|ranked| ranked.row.as_slice()));
                    self.ranks.emit(false, out)?;
                }
            }
        }
        self.ranks.emit(true, out)
    }

    fn snapshot(&mut self, _: &Barrier, snapshot: &mut OperatorSnapshot<'_>) -> Result<()> {
        self.clock.snapshot(snapshot)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use crate::operators::testing::{Bed, columns, int, row, timestamp};
    use crate::sort_key::SortColumn;
    use crate::spec::{OperatorSpec, WindowTopNSpec};

    fn bed(from: u64, to: u64, with_rank: bool) -> Bed {
        let order = vec![SortColumn { column: 2, is_descending: true, nulls_first: false }];
        let spec = WindowTopNSpec { window_end: 0, zone: None, partition: vec![1], order, from, to, with_rank };
        let input = columns(&[("window_end", timestamp()), ("k", int()), ("v", int()), ("n", int())]);
        let mut output: Vec<_> = vec![("window_end", timestamp()), ("k", int()), ("v", int()), ("n", int())];
        output.extend(with_rank.then(|| ("rank", int())));
        Bed::keyed(OperatorSpec::WindowTopN(spec), &[vec![1]], &[input], &columns(&output))
    }

    proptest! {
        #[test]
        fn windows_give_their_first_rows_once_and_late_rows_are_counted(
            rows in prop::collection::vec((0..12_i64, 0..3_i64, 0..4_i64, 0..6_u32), 1..50),
            (from, more) in (1..3_u64, 0..3_u64),
            restarts in any::<bool>(),
        ) {
            let to = from + more;
            let mut bed = bed(from, to, true);
            let (mut windows, mut watermark, mut late) = (BTreeMap::new(), i64::MIN, 0);
            for (n, (window, k, v, what)) in rows.into_iter().enumerate() {
                let end = (window + 1) * 10;
                bed.insert(0, &[row![end, k, v, n as i64]]);
                if end - 1 <= watermark {
                    late += 1;
                } else {
                    windows.entry((end, k)).or_insert_with(Vec::new).push((v, n));
                }
                if what == 0 {
                    watermark = watermark.max(window * 10);
                    bed.watermark(watermark);
                }
                if restarts && what < 3 {
                    bed.restart(1 + what);
                }
            }
            bed.end();
            let mut expected = Vec::new();
            for ((_, k), mut rows) in windows {
                rows.sort_by_key(|(v, _)| -v);
                let ranks = (1..).zip(rows).skip(from as usize - 1).take((to - from + 1) as usize);
                expected.extend(ranks.map(|(rank, (v, n))| format!("{k}\t{v}\t{n}\t{rank}")));
            }
            let mut lines: Vec<String> = bed.take_rows().iter().map(|line| line[3..].split_once('\t').unwrap().1.to_owned()).collect();
            lines.sort();
            expected.sort();
            prop_assert_eq!(lines, expected);
            prop_assert_eq!(bed.late(), late);
        }
    }

    #[test]
    fn windows_end_in_order_and_at_their_last_millisecond() {
        let mut bed = bed(1, 1, false);
        bed.insert(0, &[row![20_i64, 1_i64, 1_i64, 1_i64], row![10_i64, 1_i64, 2_i64, 2_i64]]);
        bed.watermark(8);
        assert_eq!(bed.take(), ["watermark 8"]);
        bed.watermark(19);
        let expected = ["+I\t1970-01-01T00:00:00.010\t1\t2\t2", "+I\t1970-01-01T00:00:00.020\t1\t1\t1", "watermark 19"];
        assert_eq!(bed.take(), expected);
    }
}
