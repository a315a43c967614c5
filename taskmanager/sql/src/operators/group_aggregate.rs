//! `GroupAggregate`: GROUP BY without windows. What a key results in is updated as rows come.
//!
//! What a chunk does to a key is put out once: nothing if its result is what it was, a new row if the key had none, `-D` if
//! it has no rows any more, else `-U` and `+U`. So the work that follows goes with keys, not with rows.

use arrow::array::{ArrayRef, UInt32Array};
use arrow::compute::kernels::cmp::distinct;
use arrow::compute::{concat, take};
use arrow::datatypes::{DataType, SchemaRef};
use flott_checkpoint::Redistribution;
use flott_chunk::{Chunk, RowKind};
use flott_core::time::Timestamp;
use flott_core::{Error, Result};
use flott_network::Barrier;
use flott_operators::operator::{OpenContext, OperatorSnapshot, StateVisitor};
use flott_state::KeyedTable;

use super::retention::Usage;
use crate::aggregates::grouping::Grouping;
use crate::aggregates::{Accumulators, Aggregates, Arena};
use crate::operator::{Emit, TableOperator};
use crate::program::OperatorContext;
use crate::row::{EncodedRows, KeyEncoder, Keys, RowBytes, RowDecoder, RowEncoder};
use crate::spec::GroupAggregateSpec;

/// The name of the operator state that says that the final rows of a batch job have been put out.
const ENDED: &str = "ended";

/// Whether columns of a type can be compared as they are.
fn is_comparable(data_type: &DataType) -> bool {
    !data_type.is_nested() && *data_type != DataType::Null
}

/// See the module's documentation.
pub struct GroupAggregate {
    key_columns: Vec<usize>,
    keys: KeyEncoder,
    key_decoder: RowDecoder,
    table: KeyedTable<RowBytes, (), Accumulators>,
    aggregates: Aggregates,
    /// The results that are compared as columns, and what compares the others as bytes.
    comparable: Vec<usize>,
    others: RowEncoder,
    arena: Arena,
    grouping: Grouping,
    usage: Usage,
    output: SchemaRef,
    with_update_before: bool,
    is_batch: bool,
    has_partials: bool,
    has_ended: bool,
    /// Whether this subtask answers for a table without rows, if there is no key.
    is_first: bool,
    key: RowBytes,
}

impl GroupAggregate {
    /// Makes it, without rows.
    ///
    /// # Errors
    /// An aggregate cannot be computed, or a column cannot be a key.
    pub fn new(spec: &GroupAggregateSpec, cx: &OperatorContext<'_>) -> Result<Self> {
        let types = cx.types(0);
        let key_types: Vec<DataType> = spec.keys.iter().map(|column| types[*column].clone()).collect();
        let results: Vec<DataType> = spec.aggregates.iter().map(|aggregate| aggregate.result.clone()).collect();
        let ttl_ms = if spec.is_batch { 0 } else { spec.ttl_ms };
        let aggregates = Aggregates::with(&spec.aggregates, &cx.inputs[0], !spec.is_insert_only, cx.functions)?;
        Ok(Self {
            key_columns: spec.keys.clone(),
            keys: KeyEncoder::new(&spec.keys, &types)?,
            key_decoder: RowDecoder::new(&key_types)?,
            table: cx.task.table("groups"),
            arena: aggregates.named_arena(ttl_ms > 0, cx),
            aggregates,
            comparable: (0..results.len()).filter(|column| is_comparable(&results[*column])).collect(),
            others: RowEncoder::new(
                &results.iter().filter(|data_type| !is_comparable(data_type)).cloned().collect::<Vec<_>>(),
            )?,
            grouping: Grouping::default(),
            usage: Usage::new(ttl_ms, cx),
            output: SchemaRef::clone(cx.output),
            with_update_before: spec.with_update_before,
            is_batch: spec.is_batch,
            has_partials: spec.has_partials,
            has_ended: false,
            is_first: cx.task.subtask.index == 0,
            key: RowBytes::default(),
        })
    }

    /// Loads the groups of a chunk into the arena.
    fn load(
        table: &mut KeyedTable<RowBytes, (), Accumulators>,
        keys: &Keys,
        grouping: &Grouping,
        arena: &mut Arena,
        key: &mut RowBytes,
        usage: &mut Usage,
    ) {
        arena.clear();
        for &first in &grouping.firsts {
            let (hash, bytes) = (keys.hashes[first as usize], keys.rows.get(first as usize));
            key.set(bytes);
            arena.load_named(hash, key, table.get_or_insert_with(hash, key, (), Accumulators::default));
            usage.touch(hash, key);
        }
    }

    /// Puts the groups of a chunk back; those without rows go.
    fn store(
        table: &mut KeyedTable<RowBytes, (), Accumulators>,
        keys: &Keys,
        grouping: &Grouping,
        arena: &mut Arena,
        key: &mut RowBytes,
    ) {
        for (group, &first) in grouping.firsts.iter().enumerate() {
            let (hash, bytes) = (keys.hashes[first as usize], keys.rows.get(first as usize));
            key.set(bytes);
            if arena.rows[group] == 0 {
                table.remove(hash, key, &());
                arena.forget(hash, key);
            } else if let Some(kept) = table.get_mut(hash, key, &()) {
                arena.store(group, kept);
            }
        }
    }

    /// For each group, whether its results are others than they were.
    fn have_changed(&self, old: &[ArrayRef], new: &[ArrayRef], groups: usize) -> Result<Vec<bool>> {
        let mut changed = vec![false; groups];
        for column in &self.comparable {
            let distinct = distinct(&old[*column], &new[*column])
                .map_err(|error| Error::system(format!("comparing results: {error}")))?;
            changed.iter_mut().enumerate().for_each(|(group, changed)| *changed |= distinct.value(group));
        }
        if self.comparable.len() < new.len() {
            let others = |columns: &[ArrayRef]| -> Result<EncodedRows> {
                let is_other = |column: &usize| !self.comparable.contains(column);
                let chosen: Vec<ArrayRef> =
                    (0..columns.len()).filter(is_other).map(|column| ArrayRef::clone(&columns[column])).collect();
                let mut encoded = EncodedRows::default();
                self.others.encode(&chosen, groups, &mut encoded)?;
                Ok(encoded)
            };
            let (before, after) = (others(old)?, others(new)?);
            changed
                .iter_mut()
                .enumerate()
                .for_each(|(group, changed)| *changed |= before.get(group) != after.get(group));
        }
        Ok(changed)
    }

    /// What the chunk has done to the results, as rows.
    fn changes(
        &mut self,
        chunk: &Chunk,
        existed: &[bool],
        old: &[ArrayRef],
        new: &[ArrayRef],
        out: &mut Emit<'_>,
    ) -> Result<()> {
        let groups = existed.len();
        let has_changed = self.have_changed(old, new, groups)?;
        let mut chosen: Vec<u32> = Vec::with_capacity(groups);
        let mut firsts: Vec<u32> = Vec::with_capacity(groups);
        let mut kinds = Vec::with_capacity(groups);
        for (group, existed) in existed.iter().enumerate() {
            let (old_row, new_row) = (group as u32, (groups + group) as u32);
            let mut add = |row, kind| {
                chosen.push(row);
                firsts.push(self.grouping.firsts[group]);
                kinds.push(kind);
            };
            match (*existed, self.arena.rows[group] > 0) {
                (false, true) => add(new_row, RowKind::Insert),
                (true, false) => add(old_row, RowKind::Delete),
                // With a TTL an unchanged row is put out all the same: whoever comes next must not forget it sooner. Keys alone
                // have no updates, so nobody expects any.
                (true, true) if has_changed[group] || (self.usage.is_on() && !new.is_empty()) => {
                    if self.with_update_before {
                        add(old_row, RowKind::UpdateBefore);
                    }
                    add(new_row, RowKind::UpdateAfter);
                }
                _ => {}
            }
        }
        if chosen.is_empty() {
            return Ok(());
        }
        let failed = |error| Error::system(format!("putting results together: {error}"));
        let (chosen, firsts) = (UInt32Array::from(chosen), UInt32Array::from(firsts));
        let mut columns = Vec::with_capacity(self.key_columns.len() + new.len());
        for column in &self.key_columns {
            columns.push(take(chunk.column(*column), &firsts, None).map_err(failed)?);
        }
        for (old, new) in old.iter().zip(new) {
            let both = concat(&[old.as_ref(), new.as_ref()]).map_err(failed)?;
            columns.push(take(&both, &chosen, None).map_err(failed)?);
        }
        out.emit_large(Chunk::of_columns(&self.output, columns, kinds.len(), kinds)?)
    }
}

impl TableOperator for GroupAggregate {
    fn process(&mut self, chunk: Chunk, out: &mut Emit<'_>) -> Result<()> {
        let keys = self.keys.encode(chunk.batch.columns(), chunk.len(), chunk.hashes.as_deref())?;
        self.grouping.assign(keys);
        Self::load(&mut self.table, keys, &self.grouping, &mut self.arena, &mut self.key, &mut self.usage);
        let existed: Vec<bool> = self.arena.rows.iter().map(|rows| *rows > 0).collect();
        let old = if self.is_batch { Vec::new() } else { self.aggregates.results(&self.arena)? };
        let partials = if self.has_partials { chunk.batch.columns().last() } else { None };
        self.aggregates.take_in(&mut self.arena, &chunk, &self.grouping.groups, partials)?;
        if !self.is_batch {
            let new = self.aggregates.results(&self.arena)?;
            self.changes(&chunk, &existed, &old, &new, out)?;
        }
        let keys = self.keys.last();
        Self::store(&mut self.table, keys, &self.grouping, &mut self.arena, &mut self.key);
        Ok(())
    }

    fn open(&mut self, cx: &mut OpenContext<'_>) -> Result<()> {
        let ended: Vec<bool> = cx.restored.take_state(cx.operator, ENDED)?;
        self.has_ended = ended.contains(&true);
        Ok(())
    }

    fn states(&mut self, visit: StateVisitor<'_>) -> Result<()> {
        self.usage.states(visit)?;
        self.arena.states(visit)?;
        visit(&mut self.table)
    }

    fn restored(&mut self) -> Result<()> {
        self.arena.restored()?;
        self.usage.restored()
    }

    fn on_time(&mut self, now: Timestamp, _: &mut Emit<'_>) -> Result<Timestamp> {
        for (hash, key) in self.usage.expire(now) {
            self.table.remove(hash, &key, &());
            self.arena.forget(hash, &key);
        }
        Ok(self.usage.next())
    }

    fn on_end(&mut self, out: &mut Emit<'_>) -> Result<()> {
        if !self.is_batch || std::mem::replace(&mut self.has_ended, true) {
            return Ok(());
        }
        self.arena.clear();
        let mut keys = Vec::new();
        let Self { table, arena, key_columns, is_first, .. } = self;
        // Taken out, so that a restore of the last checkpoint does not put anything out again.
        table.take_all(|key, (), mut group| {
            if group.rows > 0 {
                arena.load_named(key.hash(), &key, &mut group);
                keys.push(key);
            }
            Ok(())
        })?;
        if key_columns.is_empty() && keys.is_empty() && *is_first {
            // No rows have a result too.
            let key = RowBytes::default();
            self.arena.load_named(key.hash(), &key, &mut Accumulators::default());
            keys.push(key);
        }
        let mut columns = self.key_decoder.decode(keys.iter().map(RowBytes::as_slice))?;
        columns.extend(self.aggregates.results(&self.arena)?);
        let all = Chunk::of_columns(&self.output, columns, keys.len(), vec![RowKind::Insert; keys.len()])?;
        self.arena.clear();
        self.arena.forget_all()?;
        for start in (0..all.len()).step_by(Chunk::ROWS_MAX) {
            out.emit(all.slice(start, Chunk::ROWS_MAX.min(all.len() - start)))?;
        }
        Ok(())
    }

    fn snapshot(&mut self, _: &Barrier, snapshot: &mut OperatorSnapshot<'_>) -> Result<()> {
        match self.is_batch {
            true => snapshot.add(ENDED, Redistribution::Union, &[self.has_ended]),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
