//! OVER windows of all rows, at the end of bounded input.

use flott_chunk::Chunk;
use flott_core::Result;
use flott_operators::operator::StateVisitor;
use flott_state::KeyedTable;

use super::ordered::Ordered;
use super::times::SortTimes;
use super::work::Work;
use crate::aggregates::Arena;
use crate::operator::{Emit, TableOperator};
use crate::program::OperatorContext;
use crate::row::{EncodedRows, KeyEncoder, RowBytes, RowDecoder, RowEncoder};
use crate::sort_key::SortKeyEncoder;
use crate::spec::{OverFrame, OverSpec};

/// See the module's documentation.
pub struct BatchOver {
    keys: KeyEncoder,
    rows: RowEncoder,
    decoder: RowDecoder,
    sort_keys: SortKeyEncoder,
    frame: OverFrame,
    times: Option<SortTimes>,
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
        let retracts = matches!(spec.frame, OverFrame::Rows(Some(_)) | OverFrame::Range(Some(_)));
        let work = Work::new(spec, retracts, cx)?;
        Ok(Self {
            keys: KeyEncoder::new(&spec.partition, &types)?,
            rows: RowEncoder::new(&types)?,
            decoder: RowDecoder::new(&types)?,
            sort_keys: SortKeyEncoder::new(&spec.order, &types)?,
            frame: spec.frame,
            times: SortTimes::of(spec, &types)?,
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
        let mut ordered = Ordered::new(self.times);
        for peers in order.chunk_by(|a, b| keys.get(*a) == keys.get(*b)) {
            let numbers = peers.iter().map(|row| self.work.row(rows[*row].as_slice()));
            ordered.add(keys.get(peers[0]), numbers);
        }
        (ordered.put_out, ordered.all) = (0..rows.len(), rows.len());
        ordered.plan(self.frame, self.arena.add() as u32, &mut self.work);
        self.work.run(&mut self.arena, out)?;
        self.arena.clear();
        Ok(())
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
