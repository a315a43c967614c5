//! OVER windows of rows that come and go, anywhere in the order: what a row results in is updated.
//!
//! Rows are kept by key and sort key, each with what was told of it last. So a checkpoint has those that changed and no
//! others, and what is taken back is what was told, however it was computed then. Which sort keys a key has, in order, is an
//! index in memory.
//!
//! A chunk is first brought into state. Then of each key whose rows came or went those are computed anew that this
//! [reaches](super::reach), and what has become of all changes together is put out: whatever went before what came.

use std::collections::BTreeMap;

use arrow::datatypes::SchemaRef;
use flott_chunk::{Chunk, RowKind};
use flott_core::Result;
use flott_core::time::Timestamp;
use flott_operators::operator::StateVisitor;
use flott_state::KeyedTable;
use hashbrown::HashMap;
use serde::{Deserialize, Serialize};

use super::ordered::Ordered;
use super::reach::{Changed, Reach, Sorts};
use super::times::SortTimes;
use super::work::Work;
use crate::aggregates::Arena;
use crate::changes::Changes;
use crate::operator::{Emit, TableOperator};
use crate::operators::retention::Usage;
use crate::program::{OperatorContext, types_of};
use crate::row::{EncodedRows, KeyEncoder, RowBytes, RowDecoder, RowEncoder};
use crate::sort_key::SortKeyEncoder;
use crate::spec::{OverFrame, OverSpec};
use crate::touched::{Met, Touched};

/// About what a sort key takes in the index.
const BYTES_A_SORT_KEY: u64 = 64;

/// A row.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Kept {
    row: RowBytes,
    /// What was told of it last: its aggregates. Empty until the chunk that it came with is through.
    told: RowBytes,
}

impl Kept {
    /// The row as it was put out; none if it was not.
    fn line(&self) -> Option<RowBytes> {
        let told = self.told.as_slice();
        (!told.is_empty()).then(|| line(self.row.as_slice(), told))
    }
}

/// A row with its aggregates behind it, which has the form of both.
fn line(row: &[u8], aggregates: &[u8]) -> RowBytes {
    RowBytes::new(&[row, aggregates].concat())
}

/// Rows as they were put out that are there no more, with how many of each.
type Gone = BTreeMap<RowBytes, usize>;

/// Takes one of them out, if it is among them.
fn take(gone: &mut Gone, line: &RowBytes) -> bool {
    let Some(count) = gone.get_mut(line) else { return false };
    *count -= 1;
    if *count == 0 {
        gone.remove(line);
    }
    true
}

/// What has become of the rows of a key that were computed.
struct Computed {
    hash: u64,
    key: RowBytes,
    /// Their sort keys, each with how many have it.
    sorts: Vec<(RowBytes, usize)>,
    gone: Gone,
}

/// See the module's documentation.
pub struct ChangingOver {
    keys: KeyEncoder,
    order: SortKeyEncoder,
    rows: RowEncoder,
    /// Writes what is told of rows.
    aggregates: RowEncoder,
    /// Where that begins in a row that is put out.
    width: usize,
    frame: OverFrame,
    times: Option<SortTimes>,
    reach: Reach,
    with_update_before: bool,
    /// The rows of a key by their sort key, in the order in which they came.
    table: KeyedTable<RowBytes, RowBytes, Vec<Kept>>,
    index: HashMap<RowBytes, Sorts>,
    /// How many sort keys the index has.
    indexed: u64,
    /// Of each key that the chunk at hand changes: where, and what went.
    touched: Touched<(Changed, Gone)>,
    usage: Usage,
    work: Work,
    arena: Arena,
    computed: Vec<Computed>,
    changes: Changes,
    output: SchemaRef,
    sorts: EncodedRows,
    encoded: EncodedRows,
    key: RowBytes,
    sort: RowBytes,
}

impl ChangingOver {
    /// Makes it, without rows.
    ///
    /// # Errors
    /// An aggregate cannot be computed, or rows cannot be put in the order that is wanted.
    pub fn new(spec: &OverSpec, with_update_before: bool, cx: &OperatorContext<'_>) -> Result<Self> {
        let (types, results) = (cx.types(0), types_of(cx.output));
        let times = SortTimes::of(spec, &types)?;
        let retracts = matches!(spec.frame, OverFrame::Rows(Some(_)) | OverFrame::Range(Some(_)));
        let work = Work::new(spec, retracts, cx)?;
        Ok(Self {
            keys: KeyEncoder::new(&spec.partition, &types)?,
            order: SortKeyEncoder::new(&spec.order, &types)?,
            rows: RowEncoder::new(&types)?,
            aggregates: RowEncoder::new(&results[types.len()..])?,
            width: types.len(),
            frame: spec.frame,
            times,
            reach: Reach::of(spec.frame, times, &work),
            with_update_before,
            table: cx.task.table("rows"),
            index: HashMap::new(),
            indexed: 0,
            touched: Touched::default(),
            usage: Usage::new(spec.ttl_ms, cx),
            arena: work.aggregates.arena(),
            work,
            computed: Vec::new(),
            changes: Changes::new(RowDecoder::new(&results)?),
            output: SchemaRef::clone(cx.output),
            sorts: EncodedRows::default(),
            encoded: EncodedRows::default(),
            key: RowBytes::default(),
            sort: RowBytes::default(),
        })
    }

    /// Brings the change of one row into state and index. The key and the sort key are at hand.
    fn apply(&mut self, hash: u64, row: &[u8], is_addition: bool) {
        let Self { table, index, indexed, touched, .. } = self;
        let (key, sort) = (&self.key, &self.sort);
        let nothing = || (Changed::at(sort), Gone::new());
        if is_addition {
            let rows = table.get_or_insert_with(hash, key, sort.clone(), Vec::new);
            rows.push(Kept { row: RowBytes::new(row), told: RowBytes::default() });
            let is_first = index.entry_ref(key).or_default().add(sort, 1);
            *indexed += u64::from(is_first);
            touched.note(hash, key.as_slice(), nothing).0.note(sort, 1, i64::from(is_first));
            return;
        }
        // What is not there cannot go: it was never seen.
        let Some(rows) = table.get_mut(hash, key, sort) else { return };
        let Some(found) = rows.iter().position(|kept| kept.row.as_slice() == row) else { return };
        let gone = rows.remove(found);
        if rows.is_empty() {
            table.remove(hash, key, sort);
        }
        let is_last = index.get_mut(key).is_some_and(|sorts| sorts.remove(sort));
        *indexed -= u64::from(is_last);
        let (changed, lines) = touched.note(hash, key.as_slice(), nothing);
        changed.note(sort, -1, -i64::from(is_last));
        if let Some(line) = gone.line() {
            *lines.entry(line).or_default() += 1;
        }
    }

    /// Plans that the rows of a key are computed that have been reached.
    fn plan(&mut self, met: Met<(Changed, Gone)>) {
        let Met { hash, key, note: (changed, gone) } = met;
        let mut computed = Computed { hash, key, sorts: Vec::new(), gone };
        if let Some(sorts) = self.index.get(&computed.key) {
            let affected = self.reach.affected(sorts, &changed);
            let needed = self.reach.needed(sorts, &affected);
            let mut ordered = Ordered::new(self.times);
            ordered.all = sorts.rows();
            if self.reach.has_ranks() {
                ordered.before = sorts.place_before(&needed);
            }
            for sort in sorts.within(&needed) {
                let Some(rows) = self.table.get(hash, &computed.key, sort) else { continue };
                let start = ordered.len();
                ordered.add(sort.as_slice(), rows.iter().map(|kept| self.work.row(kept.row.as_slice())));
                if affected.contains(sort) {
                    let first = if computed.sorts.is_empty() { start } else { ordered.put_out.start };
                    ordered.put_out = first..ordered.len();
                    computed.sorts.push((sort.clone(), rows.len()));
                }
            }
            ordered.plan(self.frame, self.arena.add() as u32, &mut self.work);
            if sorts.is_empty() {
                self.index.remove(&computed.key);
            }
        }
        self.computed.push(computed);
    }

    /// Carries out what is planned, and puts out what has become of it.
    fn put_out(&mut self, out: &mut Emit<'_>) -> Result<()> {
        let results = self.work.results(&mut self.arena)?;
        self.arena.clear();
        let mut new = EncodedRows::default();
        if let Some(results) = &results {
            self.aggregates.encode(&results.batch.columns()[self.width..], results.len(), &mut new)?;
        }
        let mut next = 0;
        for Computed { hash, key, sorts, mut gone } in self.computed.drain(..) {
            // Results that were not told yet, with what was told of the same rows.
            let mut come: Vec<(usize, Option<RowBytes>)> = Vec::new();
            for (sort, rows) in sorts {
                let first = next;
                next += rows;
                let is_told = |(place, kept): (usize, &Kept)| kept.told.as_slice() == new.get(first + place);
                // An entry that stays is not to be in the next checkpoint.
                if self.table.get(hash, &key, &sort).is_none_or(|rows| rows.iter().enumerate().all(is_told)) {
                    continue;
                }
                let Some(rows) = self.table.get_mut(hash, &key, &sort) else { continue };
                for (place, kept) in rows.iter_mut().enumerate() {
                    let aggregates = new.get(first + place);
                    if kept.told.as_slice() == aggregates {
                        continue;
                    }
                    let before = kept.line();
                    kept.told.set(aggregates);
                    // One that went and is as this one is now need not go, nor this one come.
                    if !gone.is_empty() && kept.line().is_some_and(|line| take(&mut gone, &line)) {
                        before.into_iter().for_each(|line| *gone.entry(line).or_default() += 1);
                    } else {
                        come.push((first + place, before));
                    }
                }
            }
            for (line, count) in &gone {
                (0..*count).for_each(|_| self.changes.add_kept(line.as_slice(), RowKind::Delete));
            }
            for (result, before) in come {
                let kind = if before.is_some() { RowKind::UpdateAfter } else { RowKind::Insert };
                if let Some(before) = before.filter(|_| self.with_update_before) {
                    self.changes.add_kept(before.as_slice(), RowKind::UpdateBefore);
                }
                self.changes.add_row(result, kind);
                if self.changes.len() >= Chunk::ROWS_MAX {
                    self.changes.emit(results.as_ref(), &self.output, out)?;
                }
            }
        }
        self.changes.emit(results.as_ref(), &self.output, out)
    }
}

impl TableOperator for ChangingOver {
    fn process(&mut self, chunk: Chunk, out: &mut Emit<'_>) -> Result<()> {
        let columns = chunk.batch.columns();
        let keys = self.keys.encode(columns, chunk.len(), chunk.hashes.as_deref())?.clone();
        let (mut sorts, mut encoded) = (std::mem::take(&mut self.sorts), std::mem::take(&mut self.encoded));
        self.order.encode(columns, chunk.len(), &mut sorts)?;
        self.rows.encode(columns, chunk.len(), &mut encoded)?;
        for (row, hash) in keys.hashes.iter().enumerate() {
            self.key.set(keys.rows.get(row));
            self.sort.set(sorts.get(row));
            self.apply(*hash, encoded.get(row), chunk.kind(row).is_addition());
            self.usage.touch(*hash, &self.key);
        }
        (self.sorts, self.encoded) = (sorts, encoded);
        let touched: Vec<_> = self.touched.drain().collect();
        for met in touched {
            self.plan(met);
            if self.work.len() >= Chunk::ROWS_MAX {
                self.put_out(out)?;
            }
        }
        self.put_out(out)
    }

    fn states(&mut self, visit: StateVisitor<'_>) -> Result<()> {
        self.usage.states(visit)?;
        self.table.set_index_bytes(self.indexed * BYTES_A_SORT_KEY);
        visit(&mut self.table)
    }

    fn restored(&mut self) -> Result<()> {
        self.usage.restored()?;
        let Self { table, index, indexed, .. } = self;
        index.clear();
        *indexed = 0;
        table.visit(|key, sort, rows| {
            *indexed += 1;
            index.entry_ref(key).or_default().add(sort, rows.len());
            Ok(())
        })
    }

    fn on_time(&mut self, now: Timestamp, _: &mut Emit<'_>) -> Result<Timestamp> {
        for (hash, key) in self.usage.expire(now) {
            let Some(sorts) = self.index.remove(&key) else { continue };
            self.indexed -= sorts.len() as u64;
            sorts.iter().for_each(|sort| drop(self.table.remove(hash, &key, sort)));
        }
        Ok(self.usage.next())
    }
}

#[cfg(test)]
mod tests;
