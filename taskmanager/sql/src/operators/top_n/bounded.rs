//! Top-N where what is not among the first never will be by itself: only the first are kept.
//!
//! A key's list is one value of state, sorted. The last of a full list decides with one comparison on most rows: those
//! are neither encoded nor written anywhere.

use arrow::datatypes::DataType;
use flott_core::time::Timestamp;
use flott_core::{Error, Result};
use flott_operators::operator::StateVisitor;
use flott_state::KeyedTable;
use serde::{Deserialize, Serialize};

use super::ranks::{Entry, Ranks};
use crate::changes::encode_rows;
use crate::operator::{Emit, TableOperator};
use crate::operators::retention::Usage;
use crate::program::OperatorContext;
use crate::row::{EncodedRows, KeyEncoder, RowBytes, RowEncoder};
use crate::sort_key::SortKeyEncoder;
use crate::spec::TopNSpec;
use crate::touched::Touched;
use flott_chunk::{Chunk, RowKind};

/// A row of a list.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Ranked {
    /// Its sort key.
    pub sort: RowBytes,
    /// What it is known by, if it may be updated.
    pub id: RowBytes,
    /// Its bytes.
    pub row: RowBytes,
    /// Whether it came with the chunk at hand.
    #[serde(skip)]
    pub is_new: bool,
}

impl Ranked {
    fn entry(&self) -> Entry<'_> {
        Entry { row: self.row.as_slice(), id: self.id.as_slice() }
    }
}

/// Whether a row with this sort key would not get onto a list: there are enough that rank before it.
pub(crate) fn is_beyond(list: &[Ranked], most: usize, sort: &[u8]) -> bool {
    list.len() >= most && list.last().is_none_or(|last| sort >= last.sort.as_slice())
}

/// Puts a row behind those that rank before it or came before it. Returns the row that leaves the list for it, which may be
/// the row itself.
pub(crate) fn insert(list: &mut Vec<Ranked>, most: usize, new: Ranked) -> Option<Ranked> {
    let place = list.partition_point(|other| other.sort <= new.sort);
    if place >= most {
        return Some(new);
    }
    list.insert(place, new);
    if list.len() > most { list.pop() } else { None }
}

/// See the module's documentation.
pub(crate) struct Bounded {
    keys: KeyEncoder,
    order: SortKeyEncoder,
    /// For rows that are updated: what they are known by.
    ids: Option<KeyEncoder>,
    rows: RowEncoder,
    table: KeyedTable<RowBytes, (), Vec<Ranked>>,
    /// Of each key that the chunk at hand changes: the rows that left its list, the last first; if rows are updated, all
    /// that were on it.
    touched: Touched<Vec<Ranked>>,
    usage: Usage,
    ranks: Ranks,
    is_batch: bool,
    sorts: EncodedRows,
    encoded: EncodedRows,
    key: RowBytes,
}

impl Bounded {
    /// `id` has the columns by which rows are updated, if they are.
    pub(crate) fn new(spec: &TopNSpec, id: Option<&Vec<usize>>, cx: &OperatorContext<'_>) -> Result<Self> {
        let types: Vec<DataType> = cx.types(0);
        Ok(Self {
            keys: KeyEncoder::new(&spec.partition, &types)?,
            order: SortKeyEncoder::new(&spec.order, &types)?,
            ids: id.map(|columns| KeyEncoder::new(columns, &types)).transpose()?,
            rows: RowEncoder::new(&types)?,
            table: cx.task.table("first"),
            touched: Touched::default(),
            usage: Usage::new(spec.ttl_ms, cx),
            ranks: Ranks::new((spec.from, spec.to), spec.with_rank, spec.with_update_before, cx)?,
            is_batch: spec.is_batch,
            sorts: EncodedRows::default(),
            encoded: EncodedRows::default(),
            key: RowBytes::default(),
        })
    }

    /// Brings the rows of a chunk onto the lists of their keys.
    fn take_in(&mut self, chunk: &Chunk) -> Result<()> {
        let (columns, most) = (chunk.batch.columns(), self.ranks.most());
        let keys = self.keys.encode(columns, chunk.len(), chunk.hashes.as_deref())?;
        self.order.encode(columns, chunk.len(), &mut self.sorts)?;
        let ids = self.ids.as_mut().map(|ids| ids.encode(columns, chunk.len(), Some(&keys.hashes))).transpose()?;
        // The first look: most rows do not get onto a list, and lists only get harder to get onto.
        let mut chosen: Vec<u32> = Vec::new();
        for row in 0..chunk.len() {
            match chunk.kind(row) {
                RowKind::Insert => {}
                RowKind::UpdateAfter if ids.is_some() => {}
                RowKind::UpdateBefore if ids.is_some() => continue,
                kind => {
                    return Err(Error::system(format!("a Top-N that was planned without '{}' got one", kind.short())));
                }
            }
            self.key.set(keys.rows.get(row));
            let (sort, list) = (self.sorts.get(row), self.table.get(keys.hashes[row], &self.key, &()));
            let is_beyond = match list {
                // A row that is on the list may stay where it is, as the last.
                Some(list) if ids.is_some() => {
                    is_beyond(list, most, sort) && list.last().is_none_or(|last| sort > last.sort.as_slice())
                }
                Some(list) => is_beyond(list, most, sort),
                None => most == 0,
            };
            if !is_beyond {
                chosen.push(row as u32);
            }
        }
        encode_rows(&self.rows, chunk, &chosen, &mut self.encoded)?;
        for (place, row) in chosen.into_iter().enumerate() {
            let (row, hash) = (row as usize, keys.hashes[row as usize]);
            self.key.set(keys.rows.get(row));
            let (sort, bytes) = (self.sorts.get(row), self.encoded.get(place));
            let id = ids.map_or(&[][..], |ids| ids.rows.get(row));
            let list = self.table.get_or_insert_with(hash, &self.key, (), Vec::new);
            let new =
                || Ranked { sort: RowBytes::new(sort), id: RowBytes::new(id), row: RowBytes::new(bytes), is_new: true };
            if ids.is_none() {
                if !is_beyond(list, most, sort) {
                    let left = self.touched.note(hash, self.key.as_slice(), Vec::new);
                    left.extend(insert(list, most, new()).filter(|left| !left.is_new));
                }
                continue;
            }
            let known = list.iter().position(|other| other.id.as_slice() == id);
            if known.is_none() && is_beyond(list, most, sort) {
                continue;
            }
            self.touched.note(hash, self.key.as_slice(), || list.clone());
            match known {
                Some(known) if list[known].sort.as_slice() == sort => list[known].row.set(bytes),
                known => {
                    if let Some(known) = known {
                        list.remove(known);
                    }
                    insert(list, most, new());
                }
            }
        }
        Ok(())
    }

    /// Puts out what has become of the lists that were touched.
    fn put_out(&mut self, out: &mut Emit<'_>) -> Result<()> {
        let (skipped, is_updated) = (self.ranks.skipped(), self.ids.is_some());
        for met in self.touched.drain() {
            let Some(list) = self.table.get_mut(met.hash, &met.key, &()) else { continue };
            self.usage.touch(met.hash, &met.key);
            let left = met.note;
            if self.ranks.is_plain() && !is_updated {
                left.iter().for_each(|old| self.ranks.add(old.row.as_slice(), 0, RowKind::Delete));
                let new = list.iter().filter(|ranked| ranked.is_new);
                new.for_each(|new| self.ranks.add(new.row.as_slice(), 0, RowKind::Insert));
            } else {
                let before: Vec<Entry<'_>> = match is_updated {
                    true => left.iter().skip(skipped).map(Ranked::entry).collect(),
                    false => {
                        let stayed = list.iter().filter(|ranked| !ranked.is_new);
                        stayed.chain(left.iter().rev()).skip(skipped).map(Ranked::entry).collect()
                    }
                };
                let after: Vec<Entry<'_>> = list.iter().skip(skipped).map(Ranked::entry).collect();
                self.ranks.change(&before, &after);
            }
            list.iter_mut().for_each(|ranked| ranked.is_new = false);
            self.ranks.emit(false, out)?;
        }
        self.ranks.emit(true, out)
    }
}

impl TableOperator for Bounded {
    fn process(&mut self, chunk: Chunk, out: &mut Emit<'_>) -> Result<()> {
        self.take_in(&chunk)?;
        match self.is_batch {
            // Nothing is told before the end, so nothing is to be taken back.
            true => self.forget_touched(),
            false => self.put_out(out)?,
        }
        Ok(())
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

    fn on_end(&mut self, out: &mut Emit<'_>) -> Result<()> {
        if !self.is_batch {
            return Ok(());
        }
        let skipped = self.ranks.skipped();
        // Taken out, so that a restore of the last checkpoint does not put anything out again.
        let Self { table, ranks, .. } = self;
        table.take_all(|_, (), list| {
            ranks.insert(list.iter().skip(skipped).map(|ranked| ranked.row.as_slice()));
            ranks.emit(false, out)
        })?;
        self.ranks.emit(true, out)
    }
}

impl Bounded {
    fn forget_touched(&mut self) {
        for met in self.touched.drain() {
            if let Some(list) = self.table.get_mut(met.hash, &met.key, &()) {
                list.iter_mut().for_each(|ranked| ranked.is_new = false);
            }
        }
    }
}
