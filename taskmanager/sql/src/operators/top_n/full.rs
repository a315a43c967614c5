//! Top-N of rows that come and go: all are kept, since each may be among the first when others have gone.
//!
//! Rows are kept by key and sort key, so that a checkpoint has those that changed and no others. Which sort keys a key has,
//! in order, is an index in memory. Of each key it also knows the *cut*, the sort key of the last row that is put out: a
//! change behind it is told to nobody, and costs no more than the change of state.

use std::collections::BTreeMap;

use flott_core::Result;
use flott_core::hash::stable_hash;
use flott_core::time::Timestamp;
use flott_operators::operator::StateVisitor;
use flott_state::KeyedTable;
use hashbrown::HashMap;

use super::ranks::{Entry, Ranks};
use crate::operator::{Emit, TableOperator};
use crate::operators::retention::Usage;
use crate::program::OperatorContext;
use crate::row::{EncodedRows, KeyEncoder, RowBytes, RowEncoder};
use crate::sort_key::SortKeyEncoder;
use crate::spec::TopNSpec;
use crate::touched::Touched;
use flott_chunk::Chunk;

/// About what a sort key takes in the index.
const BYTES_A_SORT_KEY: u64 = 64;

/// The sort keys of a key.
#[derive(Default)]
struct Sorts {
    /// Each with how many rows have it.
    counts: BTreeMap<RowBytes, u32>,
    /// The sort key of the last row that is put out; None if there are fewer rows than could be.
    cut: Option<RowBytes>,
}

/// See the module's documentation.
pub(crate) struct Full {
    keys: KeyEncoder,
    order: SortKeyEncoder,
    rows: RowEncoder,
    /// The rows of a key by their sort key, in the order in which they came.
    table: KeyedTable<RowBytes, RowBytes, Vec<RowBytes>>,
    index: HashMap<RowBytes, Sorts>,
    /// How many sort keys the index has.
    indexed: u64,
    /// Of each key of which the chunk at hand changes what is put out: what that was before.
    touched: Touched<Vec<RowBytes>>,
    usage: Usage,
    ranks: Ranks,
    is_batch: bool,
    sorts: EncodedRows,
    encoded: EncodedRows,
    key: RowBytes,
    sort: RowBytes,
}

impl Full {
    /// Makes it, empty.
    pub(crate) fn new(spec: &TopNSpec, cx: &OperatorContext<'_>) -> Result<Self> {
        let types = cx.types(0);
        Ok(Self {
            keys: KeyEncoder::new(&spec.partition, &types)?,
            order: SortKeyEncoder::new(&spec.order, &types)?,
            rows: RowEncoder::new(&types)?,
            table: cx.task.table("rows"),
            index: HashMap::new(),
            indexed: 0,
            touched: Touched::default(),
            usage: Usage::new(spec.ttl_ms, cx),
            ranks: Ranks::new((spec.from, spec.to), spec.with_rank, spec.with_update_before, cx)?,
            is_batch: spec.is_batch,
            sorts: EncodedRows::default(),
            encoded: EncodedRows::default(),
            key: RowBytes::default(),
            sort: RowBytes::default(),
        })
    }

    /// Brings the change of one row into state and index. The key and the sort key are at hand.
    fn apply(&mut self, hash: u64, row: &[u8], is_addition: bool) {
        if is_addition {
            let rows = self.table.get_or_insert_with(hash, &self.key, self.sort.clone(), Vec::new);
            rows.push(RowBytes::new(row));
            let sorts = self.index.entry_ref(&self.key).or_default();
            match sorts.counts.get_mut(&self.sort) {
                Some(count) => *count += 1,
                None => {
                    self.indexed += 1;
                    sorts.counts.insert(self.sort.clone(), 1);
                }
            }
            return;
        }
        // What is not there cannot go: it was never seen.
        let Some(rows) = self.table.get_mut(hash, &self.key, &self.sort) else { return };
        let Some(found) = rows.iter().position(|kept| kept.as_slice() == row) else { return };
        rows.remove(found);
        let is_last = rows.is_empty();
        if is_last {
            self.table.remove(hash, &self.key, &self.sort);
        }
        let Some(sorts) = self.index.get_mut(&self.key) else { return };
        if is_last {
            self.indexed -= 1;
            sorts.counts.remove(&self.sort);
        } else if let Some(count) = sorts.counts.get_mut(&self.sort) {
            *count -= 1;
        }
    }
}

fn entries(rows: &[RowBytes]) -> Vec<Entry<'_>> {
    rows.iter().map(|row| Entry { row: row.as_slice(), id: &[] }).collect()
}

/// The rows of a key that are put out, and its cut.
fn top(
    table: &mut KeyedTable<RowBytes, RowBytes, Vec<RowBytes>>,
    sorts: Option<&Sorts>,
    ranks: &Ranks,
    hash: u64,
    key: &RowBytes,
) -> (Vec<RowBytes>, Option<RowBytes>) {
    let (mut top, mut passed) = (Vec::new(), 0_usize);
    for (sort, count) in sorts.iter().flat_map(|sorts| &sorts.counts) {
        let count = *count as usize;
        let skipped = ranks.skipped().saturating_sub(passed).min(count);
        let wanted = ranks.most().saturating_sub(passed).min(count);
        if skipped < wanted
            && let Some(rows) = table.get(hash, key, sort)
        {
            top.extend(rows.iter().take(wanted).skip(skipped).cloned());
        }
        passed += count;
        if passed >= ranks.most() {
            return (top, Some(sort.clone()));
        }
    }
    (top, None)
}

impl TableOperator for Full {
    fn process(&mut self, chunk: Chunk, out: &mut Emit<'_>) -> Result<()> {
        let columns = chunk.batch.columns();
        let keys = self.keys.encode(columns, chunk.len(), chunk.hashes.as_deref())?.clone();
        let (mut sorts, mut encoded) = (std::mem::take(&mut self.sorts), std::mem::take(&mut self.encoded));
        self.order.encode(columns, chunk.len(), &mut sorts)?;
        self.rows.encode(columns, chunk.len(), &mut encoded)?;
        for row in 0..chunk.len() {
            let (hash, is_addition) = (keys.hashes[row], chunk.kind(row).is_addition());
            self.key.set(keys.rows.get(row));
            self.sort.set(sorts.get(row));
            if !self.is_batch {
                let known = self.index.get(&self.key);
                let is_behind = match known.and_then(|known| known.cut.as_ref()) {
                    // One that comes ranks behind those that are there.
                    Some(cut) if is_addition => self.sort >= *cut,
                    Some(cut) => self.sort > *cut,
                    None => false,
                };
                if !is_behind {
                    let Self { table, ranks, key, .. } = self;
                    let before = || top(table, known, ranks, hash, key).0;
                    self.touched.note(hash, keys.rows.get(row), before);
                }
            }
            self.apply(hash, encoded.get(row), is_addition);
            self.usage.touch(hash, &self.key);
        }
        (self.sorts, self.encoded) = (sorts, encoded);
        for met in self.touched.drain() {
            let sorts = self.index.get_mut(&met.key);
            let (after, cut) = top(&mut self.table, sorts.as_deref(), &self.ranks, met.hash, &met.key);
            self.ranks.change(&entries(&met.note), &entries(&after));
            if let Some(sorts) = sorts {
                sorts.cut = cut;
                if sorts.counts.is_empty() {
                    self.index.remove(&met.key);
                }
            }
            self.ranks.emit(false, out)?;
        }
        self.ranks.emit(true, out)
    }

    fn states(&mut self, visit: StateVisitor<'_>) -> Result<()> {
        self.usage.states(visit)?;
        self.table.set_index_bytes(self.indexed * BYTES_A_SORT_KEY);
        visit(&mut self.table)
    }

    fn on_time(&mut self, now: Timestamp, _: &mut Emit<'_>) -> Result<Timestamp> {
        for (hash, key) in self.usage.expire(now) {
            for (sort, _) in self.index.remove(&key).into_iter().flat_map(|sorts| sorts.counts) {
                self.table.remove(hash, &key, &sort);
                self.indexed -= 1;
            }
        }
        Ok(self.usage.next())
    }

    fn restored(&mut self) -> Result<()> {
        self.usage.restored()?;
        let Self { table, index, indexed, ranks, .. } = self;
        index.clear();
        *indexed = 0;
        table.visit(|key, sort, rows| {
            *indexed += 1;
            index.entry_ref(key).or_default().counts.insert(sort.clone(), rows.len() as u32);
            Ok(())
        })?;
        for (key, sorts) in index {
            let cut = top(table, Some(sorts), ranks, stable_hash(key), key).1;
            sorts.cut = cut;
        }
        Ok(())
    }

    fn on_end(&mut self, out: &mut Emit<'_>) -> Result<()> {
        if !self.is_batch {
            return Ok(());
        }
        for (key, sorts) in std::mem::take(&mut self.index) {
            let (rows, _) = top(&mut self.table, Some(&sorts), &self.ranks, stable_hash(&key), &key);
            self.ranks.insert(rows.iter().map(RowBytes::as_slice));
            self.ranks.emit(false, out)?;
        }
        self.indexed = 0;
        // Taken out, so that a restore of the last checkpoint does not put anything out again.
        self.table.take_all(|_, _, _| Ok(()))?;
        self.ranks.emit(true, out)
    }
}
