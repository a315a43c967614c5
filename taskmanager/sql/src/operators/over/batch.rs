//! OVER windows of all rows, at the end of bounded input.

use std::ops::Range;

use arrow::array::Array;
use flott_chunk::Chunk;
use flott_core::time::Timestamp;
use flott_core::{Error, Result};
use flott_operators::operator::StateVisitor;
use flott_state::KeyedTable;

use super::positions::Place;
use super::work::Work;
use crate::aggregates::Arena;
use crate::operator::{Emit, TableOperator};
use crate::program::OperatorContext;
use crate::row::{EncodedRows, KeyEncoder, RowBytes, RowDecoder, RowEncoder};
use crate::sort_key::{SortColumn, SortKeyEncoder};
use crate::spec::{OverFrame, OverSpec};
use crate::time::millis;

/// See the module's documentation.
pub struct BatchOver {
    keys: KeyEncoder,
    rows: RowEncoder,
    decoder: RowDecoder,
    order: Vec<SortColumn>,
    sort_keys: SortKeyEncoder,
    frame: OverFrame,
    table: KeyedTable<RowBytes, (), Vec<RowBytes>>,
    work: Work,
    arena: Arena,
}

impl BatchOver {
    /// Makes it, without rows.
    ///
    /// # Errors
    /// An aggregate cannot be computed, or rows cannot be put in the order that is wanted.
    pub fn new(spec: &OverSpec, cx: &OperatorContext<'_>) -> Result<Self> {
        let types = cx.types(0);
        if matches!(spec.frame, OverFrame::Range(Some(_))) {
            let is_time = |sort: &SortColumn| matches!(types[sort.column], arrow::datatypes::DataType::Timestamp(..));
            if spec.order.len() != 1 || !spec.order.iter().all(is_time) {
                return Err(Error::input(
                    "OVER (… RANGE BETWEEN … PRECEDING …) is ordered by one column of timestamps",
                ));
            }
        }
        let retracts = matches!(spec.frame, OverFrame::Rows(Some(_)) | OverFrame::Range(Some(_)));
        let work = Work::new(spec, retracts, cx)?;
        Ok(Self {
            keys: KeyEncoder::new(&spec.partition, &types)?,
            rows: RowEncoder::new(&types)?,
            decoder: RowDecoder::new(&types)?,
            order: spec.order.clone(),
            sort_keys: SortKeyEncoder::new(&spec.order, &types)?,
            frame: spec.frame,
            table: cx.task.table("rows"),
            arena: work.aggregates.arena(),
            work,
        })
    }

    /// Plans that the rows of a key are put out, and carries it out.
    fn partition(&mut self, rows: &[RowBytes], out: &mut Emit<'_>) -> Result<()> {
        let columns = self.decoder.decode(rows.iter().map(RowBytes::as_slice))?;
        let mut keys = EncodedRows::default();
        self.sort_keys.encode(&columns, rows.len(), &mut keys)?;
        let mut order: Vec<usize> = (0..rows.len()).collect();
        order.sort_by(|a, b| keys.get(*a).cmp(keys.get(*b)));
        let times: Option<Vec<Timestamp>> = match (self.frame, &self.order[..]) {
            (OverFrame::Range(Some(_)), [sort]) => {
                let times = millis(&columns[sort.column])?;
                // Rows without a time are near each other alone.
                let far = if sort.nulls_first { Timestamp::MIN } else { Timestamp::MAX };
                let time = |row: &usize| match (times.is_valid(*row), sort.is_descending) {
                    (false, _) => far,
                    (true, true) => times.value(*row).saturating_neg(),
                    (true, false) => times.value(*row),
                };
                Some(order.iter().map(time).collect())
            }
            _ => None,
        };
        let numbers: Vec<u32> = order.iter().map(|row| self.work.row(rows[*row].as_slice())).collect();
        let group = self.arena.add() as u32;
        let (mut place, mut oldest, mut start) = (Place::default(), 0, 0);
        while start < rows.len() {
            let is_peer = |index: &usize| keys.get(order[*index]) == keys.get(order[start]);
            let end = (start + 1..rows.len()).find(|index| !is_peer(index)).unwrap_or(rows.len());
            if let OverFrame::Range(limit) = self.frame {
                if let (Some(limit), Some(times)) = (limit, &times) {
                    while times[oldest] < times[start].saturating_sub(limit) {
                        self.work.leave(numbers[oldest], group);
                        oldest += 1;
                    }
                }
                numbers[start..end].iter().for_each(|row| self.work.enter(*row, group));
            }
            self.put_out(start..end, &numbers, group, &mut place);
            start = end;
        }
        self.work.run(&mut self.arena, out)?;
        self.arena.clear();
        Ok(())
    }

    /// Plans that rows of one place in the order are put out.
    fn put_out(&mut self, peers: Range<usize>, numbers: &[u32], group: u32, place: &mut Place) {
        let shifts = self.work.shifts();
        for index in peers.clone() {
            if let OverFrame::Rows(limit) = self.frame {
                self.work.enter(numbers[index], group);
                let oldest =
                    limit.and_then(|limit| usize::try_from(limit).ok()).and_then(|limit| index.checked_sub(limit + 1));
                if let Some(oldest) = oldest {
                    self.work.leave(numbers[oldest], group);
                }
            }
            *place = place.next(index > peers.start);
            let shifted = shifts.iter().map(|by| {
                let other = (index as i64).checked_add(*by).and_then(|other| usize::try_from(other).ok());
                other.and_then(|other| numbers.get(other).copied())
            });
            self.work.put_out(numbers[index], group, *place, shifted, numbers.len() as u64);
        }
    }
}

impl TableOperator for BatchOver {
    fn process(&mut self, chunk: Chunk, _: &mut Emit<'_>) -> Result<()> {
        let mut encoded = EncodedRows::default();
        self.rows.encode(chunk.batch.columns(), chunk.len(), &mut encoded)?;
        let keys = self.keys.encode(chunk.batch.columns(), chunk.len(), chunk.hashes.as_deref())?;
        for row in 0..chunk.len() {
            let key = RowBytes::new(keys.rows.get(row));
            let rows = self.table.get_or_insert_with(keys.hashes[row], &key, (), Vec::new);
            let bytes = RowBytes::new(encoded.get(row));
            if chunk.kind(row).is_addition() {
                rows.push(bytes);
            } else if let Some(found) = rows.iter().position(|other| *other == bytes) {
                rows.remove(found);
            }
        }
        Ok(())
    }

    fn states(&mut self, visit: StateVisitor<'_>) -> Result<()> {
        visit(&mut self.table)
    }

    fn on_end(&mut self, out: &mut Emit<'_>) -> Result<()> {
        let mut partitions = Vec::new();
        // Taken out, so that a restore of the last checkpoint does not put anything out again.
        self.table.take_all(|_, (), rows| {
            partitions.push(rows);
            Ok(())
        })?;
        partitions.iter().try_for_each(|rows| self.partition(rows, out))
    }
}
