//! `Join`: all pairs of rows that there are, as they change, without windows and without an end.
//!
//! Each side keeps its rows by key. A row that comes meets those of the other side, which do not change meanwhile; so the
//! condition is evaluated once a chunk, over all pairs that have the same key. For outer, semi and anti joins each row
//! knows its *degree*, how many partners it has: a row without partner is a test for zero.

use arrow::array::BooleanArray;
use arrow::datatypes::{DataType, SchemaRef};
use flott_chunk::{Chunk, RowKind, batch_of};
use flott_core::{Error, Result};
use flott_operators::operator::StateVisitor;
use flott_state::KeyedTable;
use serde::{Deserialize, Serialize};

use crate::expr::Compiled;
use crate::operator::{Emit, TableOperator};
use crate::program::OperatorContext;
use crate::row::{EncodedRows, KeyEncoder, RowBytes, RowDecoder, RowEncoder};
use crate::spec::{JoinInput, JoinKind, JoinSpec};

/// A row of one side, as often as it is there.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Kept {
    row: RowBytes,
    /// How often.
    count: u32,
    /// How many partners it has, where that matters.
    degree: u32,
}

/// The rows of one side.
struct Side {
    table: KeyedTable<RowBytes, (), Vec<Kept>>,
    keys: KeyEncoder,
    /// The columns of the key for which nulls are no partners of each other.
    null_rejecting: Vec<usize>,
    rows: RowEncoder,
    decoder: RowDecoder,
    /// All columns null.
    null_row: Vec<u8>,
    /// Whether at most one row has the same unique key, so that an addition replaces it.
    unique: Option<KeyEncoder>,
    columns: usize,
}

impl Side {
    fn new(name: &str, input: usize, spec: &JoinInput, nulls_equal: &[bool], cx: &OperatorContext<'_>) -> Result<Self> {
        let types: Vec<DataType> = cx.types(input);
        let rejecting = spec.keys.iter().zip(nulls_equal).filter(|(_, equal)| !**equal).map(|(column, _)| *column);
        let unique = spec.unique_key.as_ref().filter(|_| !spec.is_insert_only);
        Ok(Self {
            table: cx.task.table(name),
            keys: KeyEncoder::new(&spec.keys, &types)?,
            null_rejecting: rejecting.collect(),
            rows: RowEncoder::new(&types)?,
            decoder: RowDecoder::new(&types)?,
            null_row: vec![0; types.len()],
            unique: unique.map(|columns| KeyEncoder::new(columns, &types)).transpose()?,
            columns: types.len(),
        })
    }

    /// The key of a row of this side that was kept.
    fn unique_of(&mut self, row: &[u8]) -> Result<Option<Vec<u8>>> {
        let Some(unique) = &mut self.unique else { return Ok(None) };
        let columns = self.decoder.decode([row])?;
        Ok(Some(unique.encode(&columns, 1, None)?.rows.get(0).to_vec()))
    }
}

/// Rows to be put out: for each, the bytes of its left and its right part.
#[derive(Default)]
struct Pairs {
    bytes: Vec<u8>,
    left: Vec<(usize, usize)>,
    right: Vec<(usize, usize)>,
    kinds: Vec<RowKind>,
}

impl Pairs {
    fn add(&mut self, left: &[u8], right: &[u8], kind: RowKind) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(left);
        let middle = self.bytes.len();
        self.bytes.extend_from_slice(right);
        self.left.push((start, middle));
        self.right.push((middle, self.bytes.len()));
        self.kinds.push(kind);
    }

    fn len(&self) -> usize {
        self.kinds.len()
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.left.clear();
        self.right.clear();
        self.kinds.clear();
    }
}

/// See the module's documentation.
pub struct Join {
    kind: JoinKind,
    sides: [Side; 2],
    condition: Option<Compiled>,
    joined: SchemaRef,
    output: SchemaRef,
    is_batch: bool,
    /// In batch mode, the rows of each side until the end.
    waiting: [Vec<Chunk>; 2],
    pairs: Pairs,
    candidates: Pairs,
    encoded: EncodedRows,
    key: RowBytes,
}

impl Join {
    /// Makes both sides, empty.
    ///
    /// # Errors
    /// A column has a type that cannot be kept.
    pub fn new(spec: &JoinSpec, cx: &OperatorContext<'_>) -> Result<Self> {
        if spec.is_null_aware {
            return Err(Error::input(
                "NOT IN over columns that may be NULL cannot be executed yet: use NOT EXISTS, or declare the columns NOT NULL",
            ));
        }
        if spec.left.ttl_ms > 0 || spec.right.ttl_ms > 0 {
            return Err(Error::input("joins cannot be executed with table.exec.state.ttl yet: leave it out"));
        }
        let joined = cx.joined();
        let condition = spec.condition.as_ref().map(|expr| expr.compile(&joined, cx.functions)).transpose()?;
        Ok(Self {
            kind: spec.kind,
            sides: [
                Side::new("left", 0, &spec.left, &spec.nulls_equal, cx)?,
                Side::new("right", 1, &spec.right, &spec.nulls_equal, cx)?,
            ],
            condition,
            joined,
            output: SchemaRef::clone(cx.output),
            is_batch: spec.is_batch,
            waiting: [Vec::new(), Vec::new()],
            pairs: Pairs::default(),
            candidates: Pairs::default(),
            encoded: EncodedRows::default(),
            key: RowBytes::default(),
        })
    }

    /// Whether rows of a side are put out even without a partner.
    fn is_outer(&self, side: usize) -> bool {
        match self.kind {
            JoinKind::Full => true,
            JoinKind::Left => side == 0,
            JoinKind::Right => side == 1,
            JoinKind::Inner | JoinKind::Semi | JoinKind::Anti => false,
        }
    }

    /// Whether only left rows are put out.
    fn is_half(&self) -> bool {
        matches!(self.kind, JoinKind::Semi | JoinKind::Anti)
    }

    /// Whether rows of a side have to know how many partners they have.
    fn counts_partners(&self, side: usize) -> bool {
        self.is_outer(side) || (self.is_half() && side == 0)
    }

    fn join(&mut self, chunk: &Chunk, out: &mut Emit<'_>) -> Result<()> {
        let side = usize::from(chunk.input.min(1));
        let columns = chunk.batch.columns();
        let mut encoded = std::mem::take(&mut self.encoded);
        self.sides[side].rows.encode(columns, chunk.len(), &mut encoded)?;
        let keys = self.sides[side].keys.encode(columns, chunk.len(), chunk.hashes.as_deref())?.clone();
        let has_null = |row: usize| {
            use arrow::array::Array;
            self.sides[side].null_rejecting.iter().any(|column| columns[*column].is_null(row))
        };
        let joins: Vec<bool> = (0..chunk.len()).map(|row| !has_null(row)).collect();
        let matches = self.matches(side, &encoded, &keys, &joins)?;
        let mut matches = matches.iter();
        for (row, joins) in joins.into_iter().enumerate() {
            self.key.set(keys.rows.get(row));
            let is_addition = chunk.kind(row).is_addition();
            let partners = match joins {
                true => self.meet(side, keys.hashes[row], encoded.get(row), is_addition, &mut matches),
                false => 0,
            };
            self.put_out_alone(side, encoded.get(row), is_addition, partners);
            self.keep(side, keys.hashes[row], encoded.get(row), is_addition, partners)?;
            if self.pairs.len() >= Chunk::ROWS_MAX {
                self.flush(out)?;
            }
        }
        self.encoded = encoded;
        self.flush(out)
    }

    /// For each row and each row of the other side with the same key, in order, whether they fulfil the condition.
    fn matches(
        &mut self,
        side: usize,
        encoded: &EncodedRows,
        keys: &crate::row::Keys,
        joins: &[bool],
    ) -> Result<Vec<bool>> {
        let Some(condition) = &self.condition else { return Ok(Vec::new()) };
        self.candidates.clear();
        for (row, joins) in joins.iter().enumerate() {
            if !joins {
                continue;
            }
            self.key.set(keys.rows.get(row));
            let others = self.sides[1 - side].table.get(keys.hashes[row], &self.key, &());
            for other in others.into_iter().flatten() {
                let (this, other) = (encoded.get(row), other.row.as_slice());
                let (left, right) = if side == 0 { (this, other) } else { (other, this) };
                self.candidates.add(left, right, RowKind::Insert);
            }
        }
        if self.candidates.len() == 0 {
            return Ok(Vec::new());
        }
        let columns = decode(&self.sides, &self.candidates, false)?;
        let mask: BooleanArray = condition.mask(&batch_of(&self.joined, columns, self.candidates.len())?)?;
        Ok((0..mask.len()).map(|row| mask.value(row)).collect())
    }

    /// A row meets its partners. Returns how many it has.
    fn meet<'a>(
        &mut self,
        side: usize,
        hash: u64,
        row: &[u8],
        is_addition: bool,
        matches: &mut impl Iterator<Item = &'a bool>,
    ) -> u32 {
        let (is_half, other_counts, other_outer) =
            (self.is_half(), self.counts_partners(1 - side), self.is_outer(1 - side));
        let (kind, opposite) = match is_addition {
            true => (RowKind::Insert, RowKind::Delete),
            false => (RowKind::Delete, RowKind::Insert),
        };
        let is_anti = self.kind == JoinKind::Anti;
        let has_condition = self.condition.is_some();
        let [left_side, right_side] = &mut self.sides;
        let (other, null_row) =
            if side == 0 { (right_side, &left_side.null_row) } else { (left_side, &right_side.null_row) };
        // Only who counts its partners is changed.
        let others = match other_counts {
            true => other.table.get_mut(hash, &self.key, &()),
            false => None,
        };
        let mut partners = 0;
        let mut meet = |row_of_other: &[u8], count: u32, degree: Option<&mut u32>| {
            if has_condition && !matches.next().copied().unwrap_or(false) {
                return;
            }
            partners += count;
            let before = degree.as_ref().map(|degree| **degree);
            if let Some(degree) = degree {
                *degree = if is_addition { *degree + 1 } else { degree.saturating_sub(1) };
            }
            // The other row gets its first partner, or loses its last.
            let turns = before == Some(if is_addition { 0 } else { 1 });
            for _ in 0..count {
                if is_half {
                    if side == 1 && turns {
                        self.pairs.add(row_of_other, &[], if is_anti { opposite } else { kind });
                    }
                    continue;
                }
                if turns && other_outer && is_addition {
                    let (left, right) =
                        if side == 0 { (&null_row[..], row_of_other) } else { (row_of_other, &null_row[..]) };
                    self.pairs.add(left, right, RowKind::Delete);
                }
                let (left, right) = if side == 0 { (row, row_of_other) } else { (row_of_other, row) };
                self.pairs.add(left, right, kind);
                if turns && other_outer && !is_addition {
                    let (left, right) =
                        if side == 0 { (&null_row[..], row_of_other) } else { (row_of_other, &null_row[..]) };
                    self.pairs.add(left, right, RowKind::Insert);
                }
            }
        };
        match others {
            Some(others) => {
                others.iter_mut().for_each(|other| meet(other.row.as_slice(), other.count, Some(&mut other.degree)))
            }
            None if other_counts => {}
            None => {
                let others = other.table.get(hash, &self.key, &());
                others.into_iter().flatten().for_each(|other| meet(other.row.as_slice(), other.count, None));
            }
        }
        partners
    }

    /// What a row is put out as that has no partner, or that only its having one decides on.
    fn put_out_alone(&mut self, side: usize, row: &[u8], is_addition: bool, partners: u32) {
        let kind = if is_addition { RowKind::Insert } else { RowKind::Delete };
        match self.kind {
            JoinKind::Semi if side == 0 && partners > 0 => self.pairs.add(row, &[], kind),
            JoinKind::Anti if side == 0 && partners == 0 => self.pairs.add(row, &[], kind),
            _ if partners == 0 && self.is_outer(side) => {
                let null_row = std::mem::take(&mut self.sides[1 - side].null_row);
                let (left, right) = if side == 0 { (row, &null_row[..]) } else { (&null_row[..], row) };
                self.pairs.add(left, right, kind);
                self.sides[1 - side].null_row = null_row;
            }
            _ => {}
        }
    }

    /// Keeps a row, or forgets it.
    fn keep(&mut self, side: usize, hash: u64, row: &[u8], is_addition: bool, partners: u32) -> Result<()> {
        let side = &mut self.sides[side];
        if is_addition {
            let kept = side.table.get_or_insert_with(hash, &self.key, (), Vec::new);
            match kept.iter_mut().find(|kept| kept.row.as_slice() == row) {
                Some(same) => same.count += 1,
                None => kept.push(Kept { row: RowBytes::new(row), count: 1, degree: partners }),
            }
            return Ok(());
        }
        let Some(kept) = side.table.get(hash, &self.key, &()) else { return Ok(()) };
        let mut found = kept.iter().position(|kept| kept.row.as_slice() == row);
        if found.is_none() && side.unique.is_some() {
            // A row that is told of by its key only: the one with this key is meant.
            let rows: Vec<Vec<u8>> = kept.iter().map(|kept| kept.row.as_slice().to_vec()).collect();
            let wanted = side.unique_of(row)?;
            for (index, row) in rows.iter().enumerate() {
                if side.unique_of(row)? == wanted {
                    found = Some(index);
                }
            }
        }
        // What is not there cannot be taken back: it was never seen.
        let Some(found) = found else { return Ok(()) };
        let Some(kept) = side.table.get_mut(hash, &self.key, &()) else { return Ok(()) };
        kept[found].count -= 1;
        if kept[found].count == 0 {
            kept.remove(found);
        }
        if kept.is_empty() {
            side.table.remove(hash, &self.key, &());
        }
        Ok(())
    }

    fn flush(&mut self, out: &mut Emit<'_>) -> Result<()> {
        if self.pairs.len() == 0 {
            return Ok(());
        }
        let columns = decode(&self.sides, &self.pairs, self.is_half())?;
        let kinds = self.pairs.kinds.clone();
        self.pairs.clear();
        out.emit_columns(&self.output, columns, kinds)
    }
}

/// The columns of pairs; of `is_half` ones, the left columns alone.
fn decode(sides: &[Side; 2], pairs: &Pairs, is_half: bool) -> Result<Vec<arrow::array::ArrayRef>> {
    let part = |ranges: &[(usize, usize)], side: &Side| {
        side.decoder.decode(ranges.iter().map(|(start, end)| &pairs.bytes[*start..*end]))
    };
    let mut columns = part(&pairs.left, &sides[0])?;
    debug_assert_eq!(columns.len(), sides[0].columns);
    if !is_half {
        columns.extend(part(&pairs.right, &sides[1])?);
    }
    Ok(columns)
}

impl TableOperator for Join {
    fn process(&mut self, chunk: Chunk, out: &mut Emit<'_>) -> Result<()> {
        if self.is_batch {
            self.waiting[usize::from(chunk.input.min(1))].push(chunk);
            return Ok(());
        }
        self.join(&chunk, out)
    }

    fn on_end(&mut self, out: &mut Emit<'_>) -> Result<()> {
        if !self.is_batch {
            return Ok(());
        }
        // The side whose rows need partners to be put out comes first: what the other one then puts out is final.
        let first = if self.kind == JoinKind::Right { 0 } else { 1 };
        let waiting = std::mem::take(&mut self.waiting);
        if self.kind == JoinKind::Full {
            return self.join_full(waiting, out);
        }
        let [left, right] = waiting;
        let order = if first == 0 { [left, right] } else { [right, left] };
        order.iter().flatten().try_for_each(|chunk| self.join(chunk, out))
    }

    fn states(&mut self, visit: StateVisitor<'_>) -> Result<()> {
        self.sides.iter_mut().try_for_each(|side| visit(&mut side.table))
    }
}

impl Join {
    /// All pairs and left rows first, then the right rows that have found no partner.
    fn join_full(&mut self, [left, right]: [Vec<Chunk>; 2], out: &mut Emit<'_>) -> Result<()> {
        for chunk in &right {
            let encoded_before = self.pairs.len();
            self.kind = JoinKind::Inner;
            let joined = self.join(chunk, out);
            self.kind = JoinKind::Full;
            joined?;
            debug_assert_eq!(encoded_before, self.pairs.len());
        }
        // Left rows are put out alone where they have no partner, and count for the right ones; those were not put out yet,
        // so nothing is taken back.
        for chunk in &left {
            let before = std::mem::replace(&mut self.kind, JoinKind::Left);
            let joined = self.join_counting(chunk, out);
            self.kind = before;
            joined?;
        }
        let mut alone = Vec::new();
        self.sides[1].table.take_all(|_, (), kept| {
            alone.extend(kept.into_iter().filter(|kept| kept.degree == 0));
            Ok(())
        })?;
        for Kept { row, count, .. } in alone {
            for _ in 0..count {
                self.put_out_alone(1, row.as_slice(), true, 0);
            }
            if self.pairs.len() >= Chunk::ROWS_MAX {
                self.flush(out)?;
            }
        }
        self.flush(out)
    }

    /// Joins left rows of a full join in batch mode: right rows note that they have partners.
    fn join_counting(&mut self, chunk: &Chunk, out: &mut Emit<'_>) -> Result<()> {
        let columns = chunk.batch.columns();
        let keys = self.sides[0].keys.encode(columns, chunk.len(), chunk.hashes.as_deref())?.clone();
        let mut encoded = EncodedRows::default();
        self.sides[0].rows.encode(columns, chunk.len(), &mut encoded)?;
        let rejects: Vec<bool> = {
            use arrow::array::Array;
            let columns_of = &self.sides[0].null_rejecting;
            (0..chunk.len()).map(|row| columns_of.iter().any(|column| columns[*column].is_null(row))).collect()
        };
        let joins: Vec<bool> = rejects.iter().map(|rejects| !rejects).collect();
        let matches = self.matches(0, &encoded, &keys, &joins)?;
        let mut matches = matches.iter();
        let has_condition = self.condition.is_some();
        for (row, joins) in joins.into_iter().enumerate() {
            self.key.set(keys.rows.get(row));
            if joins && let Some(others) = self.sides[1].table.get_mut(keys.hashes[row], &self.key, &()) {
                for other in others {
                    if !has_condition || matches.next().copied().unwrap_or(false) {
                        other.degree += 1;
                    }
                }
            }
        }
        self.join(chunk, out)
    }
}

#[cfg(test)]
mod tests;
