//! From one list of first rows to another: what is put out.
//!
//! However many changes led from the one to the other, only the difference is told. Whatever goes is told before what
//! comes, so that whoever knows rows by a key of their own, which may move from one rank to another, does not lose them.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array};
use arrow::datatypes::SchemaRef;
use flott_core::Result;

use crate::operator::Emit;
use crate::program::OperatorContext;
use crate::row::{EncodedRows, RowDecoder};
use flott_chunk::{Chunk, RowKind};

/// A row of a list: its bytes, and what it is known by, which is empty if it is by its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry<'a> {
    pub row: &'a [u8],
    pub id: &'a [u8],
}

/// Which ranks are put out, and how. Collects what is put out.
pub(crate) struct Ranks {
    from: u64,
    to: u64,
    with_rank: bool,
    with_update_before: bool,
    decoder: RowDecoder,
    output: SchemaRef,
    rows: EncodedRows,
    ranks: Vec<i64>,
    kinds: Vec<RowKind>,
}

impl Ranks {
    /// The ranks `from` to `to`, from 1.
    pub(crate) fn new(
        (from, to): (u64, u64),
        with_rank: bool,
        with_update_before: bool,
        cx: &OperatorContext<'_>,
    ) -> Result<Self> {
        Ok(Self {
            from: from.max(1),
            to,
            with_rank,
            with_update_before,
            decoder: RowDecoder::new(&cx.types(0))?,
            output: SchemaRef::clone(cx.output),
            rows: EncodedRows::default(),
            ranks: Vec::new(),
            kinds: Vec::new(),
        })
    }

    /// How many first rows have to be known.
    pub(crate) fn most(&self) -> usize {
        usize::try_from(self.to).unwrap_or(usize::MAX)
    }

    /// How many of them are not put out.
    pub(crate) fn skipped(&self) -> usize {
        usize::try_from(self.from - 1).unwrap_or(usize::MAX)
    }

    /// Whether a row's rank does not matter as long as it is among the first.
    pub(crate) fn is_plain(&self) -> bool {
        !self.with_rank && self.from == 1 && self.to > 1
    }

    /// Adds a row at a place from 0 in what is put out of a list.
    pub(crate) fn add(&mut self, row: &[u8], place: usize, kind: RowKind) {
        self.rows.push(row);
        if self.with_rank {
            self.ranks.push((self.from as i64).saturating_add(place as i64));
        }
        self.kinds.push(kind);
    }

    /// Puts the rows of a list out, as new ones.
    pub(crate) fn insert<'a>(&mut self, rows: impl Iterator<Item = &'a [u8]>) {
        rows.enumerate().for_each(|(place, row)| self.add(row, place, RowKind::Insert));
    }

    /// Adds what leads from one list to another. Both are without what is skipped.
    pub(crate) fn change(&mut self, before: &[Entry<'_>], after: &[Entry<'_>]) {
        match self.with_rank {
            true => self.change_ranks(before, after),
            false => self.change_rows(before, after),
        }
    }

    fn change_ranks(&mut self, before: &[Entry<'_>], after: &[Entry<'_>]) {
        let has_changed =
            |place: usize| before.get(place).map(|entry| entry.row) != after.get(place).map(|entry| entry.row);
        let first = (0..before.len().max(after.len())).find(|place| has_changed(*place));
        let Some(first) = first else { return };
        // Told without -U, a row that is on the list no more would stay with whoever knows it by its own key.
        let mut is_gone = vec![false; before.len()];
        is_gone.iter_mut().skip(after.len()).for_each(|is_gone| *is_gone = true);
        if !self.with_update_before {
            let (gone, _) = difference(&before[first.min(before.len())..], &after[first.min(after.len())..]);
            gone.into_iter().for_each(|place| is_gone[first + place] = true);
        }
        for (place, entry) in before.iter().enumerate().skip(first) {
            if is_gone[place] {
                self.add(entry.row, place, RowKind::Delete);
            }
        }
        for (place, entry) in after.iter().enumerate().skip(first).filter(|(place, _)| has_changed(*place)) {
            match before.get(place).filter(|_| !is_gone[place]) {
                Some(before) => {
                    if self.with_update_before {
                        self.add(before.row, place, RowKind::UpdateBefore);
                    }
                    self.add(entry.row, place, RowKind::UpdateAfter);
                }
                None => self.add(entry.row, place, RowKind::Insert),
            }
        }
    }

    fn change_rows(&mut self, before: &[Entry<'_>], after: &[Entry<'_>]) {
        let (gone, mut come) = difference(before, after);
        // What is the same row with other values is an update; so is the only row of a list of one, if both are told.
        let is_single = self.from == self.to && self.with_update_before;
        let mut updates = Vec::new();
        for place in gone {
            let row = &before[place];
            let is_same = |other: &usize| is_single || (!row.id.is_empty() && after[*other].id == row.id);
            match come.iter().position(is_same) {
                Some(found) => updates.push((place, come.remove(found))),
                None => self.add(row.row, place, RowKind::Delete),
            }
        }
        for (old, new) in updates {
            if self.with_update_before {
                self.add(before[old].row, old, RowKind::UpdateBefore);
            }
            self.add(after[new].row, new, RowKind::UpdateAfter);
        }
        for place in come {
            self.add(after[place].row, place, RowKind::Insert);
        }
    }

    /// Sends what was added, once it is enough for a chunk, or all of it.
    pub(crate) fn emit(&mut self, all: bool, out: &mut Emit<'_>) -> Result<()> {
        if self.kinds.is_empty() || (!all && self.kinds.len() < Chunk::ROWS_MAX) {
            return Ok(());
        }
        let mut columns = self.decoder.decode(self.rows.iter())?;
        self.rows.clear();
        if self.with_rank {
            let ranks: ArrayRef = Arc::new(Int64Array::from(std::mem::take(&mut self.ranks)));
            columns.push(ranks);
        }
        out.emit_columns(&self.output, columns, std::mem::take(&mut self.kinds))
    }
}

/// Which places of `before` have rows that `after` has not, and the other way round. A row may be there several times.
fn difference(before: &[Entry<'_>], after: &[Entry<'_>]) -> (Vec<usize>, Vec<usize>) {
    let same = before.iter().zip(after).take_while(|(before, after)| before.row == after.row).count();
    let tail = before[same..].iter().rev().zip(after[same..].iter().rev());
    let same_at_end = tail.take_while(|(before, after)| before.row == after.row).count();
    let ordered = |entries: &[Entry<'_>]| {
        let mut places: Vec<usize> = (same..entries.len() - same_at_end).collect();
        places.sort_by_key(|place| entries[*place].row);
        places
    };
    let (old, new) = (ordered(before), ordered(after));
    let (mut gone, mut come) = (Vec::new(), Vec::new());
    let (mut i, mut j) = (0, 0);
    while i < old.len() || j < new.len() {
        let order = match (old.get(i), new.get(j)) {
            (Some(old), Some(new)) => before[*old].row.cmp(after[*new].row),
            (Some(_), None) => std::cmp::Ordering::Less,
            _ => std::cmp::Ordering::Greater,
        };
        if order.is_lt() {
            gone.push(old[i]);
        }
        if order.is_gt() {
            come.push(new[j]);
        }
        i += usize::from(order.is_le());
        j += usize::from(order.is_ge());
    }
    gone.sort_unstable();
    come.sort_unstable();
    (gone, come)
}
