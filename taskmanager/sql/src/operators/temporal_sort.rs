//! `TemporalSort`: rows in the order of time.
//!
//! By processing time they come in order, but for those of the same millisecond: these wait until it is over.
//!
//! By event time a row waits until the watermark has reached its time. It is late if a row of its time or a later one has been put out
//! already; as in Flink, being behind the watermark alone does not make it late. One subtask sorts.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use flott_checkpoint::Redistribution;
use flott_core::time::{Timestamp, WATERMARK_MAX, WATERMARK_MIN};
use flott_core::{Error, Result};
use flott_network::Barrier;
use flott_operators::operator::{OpenContext, OperatorSnapshot, StateVisitor};
use flott_state::KeyedTable;
use flott_telemetry::TaskCounters;
use serde::{Deserialize, Serialize};

use crate::changes::Changes;
use crate::operator::{Emit, TableOperator};
use crate::program::OperatorContext;
use crate::row::{EncodedRows, RowBytes, RowDecoder, RowEncoder};
use crate::sort_key::{SortColumn, SortKeyEncoder};
use crate::time::event_times;
use flott_chunk::{Chunk, RowKind};

/// The name of the operator state with the latest time that was put out.
const SORTED: &str = "sorted";

/// About what a sort key takes in the index.
const BYTES_A_SORT_KEY: u64 = 64;

/// Rows with the same sort key, in the order in which they came.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Waiting {
    time: Timestamp,
    rows: Vec<RowBytes>,
}

/// See the module's documentation.
pub struct TemporalSort {
    /// The column with event time, and its name; none by the time of the machine.
    time: Option<(usize, String)>,
    order: SortKeyEncoder,
    encoder: RowEncoder,
    table: KeyedTable<RowBytes, (), Waiting>,
    /// The times and sort keys that wait.
    index: BTreeSet<(Timestamp, RowBytes)>,
    /// The latest time that was put out.
    sorted: Timestamp,
    /// The time of the machine.
    now: Timestamp,
    counters: Arc<TaskCounters>,
    changes: Changes,
    output: SchemaRef,
    sorts: EncodedRows,
    rows: EncodedRows,
    key: RowBytes,
}

impl TemporalSort {
    /// The first column of `order` is event time, unless time is the machine's.
    pub fn new(order: &[SortColumn], is_processing: bool, cx: &OperatorContext<'_>) -> Result<Self> {
        let types = cx.types(0);
        let time = match order.first() {
            _ if is_processing => None,
            Some(first) if !first.is_descending => {
                Some((first.column, cx.inputs[0].field(first.column).name().clone()))
            }
            _ => return Err(Error::system("a sort by time was planned that does not begin with time, ascending")),
        };
        Ok(Self {
            time,
            order: SortKeyEncoder::new(order, &types)?,
            encoder: RowEncoder::new(&types)?,
            table: cx.task.table("waiting"),
            index: BTreeSet::new(),
            sorted: WATERMARK_MIN,
            now: 0,
            counters: Arc::clone(&cx.task.counters),
            changes: Changes::new(RowDecoder::new(&types)?),
            output: SchemaRef::clone(cx.output),
            sorts: EncodedRows::default(),
            rows: EncodedRows::default(),
            key: RowBytes::default(),
        })
    }

    /// Puts out the rows up to a time.
    fn put_out(&mut self, until: Timestamp, out: &mut Emit<'_>) -> Result<()> {
        while self.index.first().is_some_and(|(time, _)| *time <= until) {
            let Some((time, sort)) = self.index.pop_first() else { break };
            self.sorted = time;
            if let Some(waiting) = self.table.remove(sort.hash(), &sort, &()) {
                waiting.rows.iter().for_each(|row| self.changes.add_kept(row.as_slice(), RowKind::Insert));
            }
            if self.changes.len() >= Chunk::ROWS_MAX {
                self.changes.emit(None, &self.output, out)?;
            }
        }
        self.changes.emit(None, &self.output, out)
    }
}

impl TableOperator for TemporalSort {
    fn process(&mut self, chunk: Chunk, _: &mut Emit<'_>) -> Result<()> {
        if !chunk.is_insert_only() {
            return Err(Error::system("a sort by time was planned over rows that change"));
        }
        let (columns, rows) = (chunk.batch.columns(), chunk.len());
        let times = match &self.time {
            Some((column, name)) => event_times(chunk.column(*column), name)?.values().to_vec(),
            None => vec![self.now; rows],
        };
        self.order.encode(columns, rows, &mut self.sorts)?;
        self.encoder.encode(columns, rows, &mut self.rows)?;
        let mut late = 0;
        for (row, &time) in times.iter().enumerate() {
            if self.time.is_some() && time <= self.sorted {
                late += 1;
                continue;
            }
            self.key.set(self.sorts.get(row));
            let hash = self.key.hash();
            let mut is_new = false;
            let waiting = self.table.get_or_insert_with(hash, &self.key, (), || {
                is_new = true;
                Waiting { time, rows: Vec::new() }
            });
            waiting.rows.push(RowBytes::new(self.rows.get(row)));
            if is_new {
                self.index.insert((time, self.key.clone()));
            }
        }
        self.counters.late_records_dropped.add(late);
        Ok(())
    }

    fn open(&mut self, cx: &mut OpenContext<'_>) -> Result<()> {
        let sorted: Vec<Timestamp> = cx.restored.take_state(cx.operator, SORTED)?;
        self.sorted = sorted.into_iter().max().unwrap_or(WATERMARK_MIN);
        Ok(())
    }

    fn states(&mut self, visit: StateVisitor<'_>) -> Result<()> {
        self.table.set_index_bytes(self.index.len() as u64 * BYTES_A_SORT_KEY);
        visit(&mut self.table)
    }

    fn restored(&mut self) -> Result<()> {
        let Self { table, index, .. } = self;
        index.clear();
        table.visit(|sort, (), waiting| {
            index.insert((waiting.time, sort.clone()));
            Ok(())
        })
    }

    fn on_watermark(&mut self, watermark: Timestamp, out: &mut Emit<'_>) -> Result<()> {
        match self.time.is_some() || watermark == WATERMARK_MAX {
            true => self.put_out(watermark, out),
            false => Ok(()),
        }
    }

    fn on_time(&mut self, now: Timestamp, out: &mut Emit<'_>) -> Result<Timestamp> {
        if self.time.is_some() {
            return Ok(Timestamp::MAX);
        }
        self.now = now;
        self.put_out(now - 1, out)?;
        Ok(self.index.first().map_or(Timestamp::MAX, |(time, _)| time + 1))
    }

    fn snapshot(&mut self, _: &Barrier, snapshot: &mut OperatorSnapshot<'_>) -> Result<()> {
        snapshot.add(SORTED, Redistribution::Union, &[self.sorted])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operators::testing::{Bed, columns, int, row, timestamp};
    use crate::spec::OperatorSpec;

    fn run(rows: &[(i64, i64)], delay: i64, restarts: bool) -> (Vec<String>, u64) {
        let schema = columns(&[("ts", timestamp()), ("v", int())]);
        let order = vec![
            SortColumn { column: 0, is_descending: false, nulls_first: true },
            SortColumn { column: 1, is_descending: true, nulls_first: false },
        ];
        let spec = OperatorSpec::TemporalSort { order, is_processing: false };
        let mut bed = Bed::new(spec, std::slice::from_ref(&schema), &schema);
        let mut watermark = i64::MIN;
        for (second, v) in rows {
            bed.insert(0, &[row![second * 1000, *v]]);
            if second - delay > watermark {
                watermark = second - delay;
                bed.watermark(watermark * 1000);
            }
            if restarts {
                bed.restart(1);
            }
        }
        bed.end();
        let values = bed.take_rows().iter().map(|line| line.rsplit_once('\t').unwrap().1.to_owned()).collect();
        (values, bed.late())
    }

    /// Flink 2.3, with `ORDER BY ts, v DESC` and watermarks five seconds behind.
    #[test]
    fn rows_come_in_order_as_in_flink() {
        let rows = [
            (10, 1),
            (11, 2),
            (5, 3),
            (11, 4),
            (11, 5),
            (8, 6),
            (20, 7),
            (19, 8),
            (20, 9),
            (40, 10),
            (35, 11),
            (40, 12),
        ];
        for restarts in [false, true] {
            let (values, late) = run(&rows, 5, restarts);
            assert_eq!(values, ["3", "6", "1", "5", "4", "2", "8", "9", "7", "11", "12", "10"]);
            assert_eq!(late, 0);
        }
    }

    /// Flink 2.3: a row behind the watermark is in time as long as no later one was put out.
    #[test]
    fn a_row_is_late_when_a_later_one_was_put_out() {
        let rows = [(10, 1), (10, 2), (10, 3), (9, 4), (20, 5), (12, 6), (15, 7), (10, 8), (26, 9), (22, 10)];
        for restarts in [false, true] {
            let (values, late) = run(&rows, 5, restarts);
            assert_eq!(values, ["4", "3", "2", "1", "6", "7", "5", "10", "9"]);
            assert_eq!(late, 1, "row 8");
        }
    }
    #[test]
    fn rows_of_a_millisecond_of_the_machine_are_sorted_when_it_is_over() {
        let schema = columns(&[("v", int()), ("n", int())]);
        let order = vec![SortColumn { column: 0, is_descending: false, nulls_first: true }];
        let spec = OperatorSpec::TemporalSort { order, is_processing: true };
        let mut bed = Bed::new(spec, std::slice::from_ref(&schema), &schema);
        bed.time(10);
        bed.insert(0, &[row![3_i64, 1_i64], row![1_i64, 2_i64]]);
        bed.insert(0, &[row![2_i64, 3_i64], row![1_i64, 4_i64]]);
        assert!(bed.take_rows().is_empty());
        bed.restart(1);
        bed.time(11);
        assert_eq!(bed.take_rows(), ["+I\t1\t2", "+I\t1\t4", "+I\t2\t3", "+I\t3\t1"]);
        bed.insert(0, &[row![0_i64, 5_i64]]);
        bed.watermark(20);
        assert!(bed.take_rows().is_empty(), "event time says nothing");
        bed.watermark(i64::MAX);
        assert_eq!(bed.take_rows(), ["+I\t0\t5"]);
    }
}
