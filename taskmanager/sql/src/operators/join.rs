//! `Join`: all pairs of rows that there are, as they change, without windows and without an end.
//!
//! Each side keeps its rows by key. A row that comes meets those of the other side, which do not change meanwhile; so the
//! condition is evaluated once a chunk, over all pairs that have the same key. For outer, semi and anti joins each row
//! knows its *degree*, how many partners it has: a row without partner is a test for zero.
//!
//! With a time to live, each row goes by itself when it has not been written for so long: nobody is told, and those behind
//! keep what they had of it. So a row may be taken back that is not known any more; its pairs are taken back all the same.

use arrow::array::{Array, ArrayRef};
use arrow::datatypes::{DataType, SchemaRef};
use flott_chunk::{Chunk, RowKind, batch_of};
use flott_core::time::Timestamp;
use flott_core::{Error, Result};
use flott_operators::operator::StateVisitor;
use flott_state::KeyedTable;
use serde::{Deserialize, Serialize};

use crate::expr::Compiled;
use crate::operator::{Emit, TableOperator};
use crate::operators::pairs::Pairs as RowPairs;
use crate::operators::retention::Retention;
use crate::program::OperatorContext;
use crate::row::{EncodedRows, KeyEncoder, Keys, RowBytes, RowDecoder, RowEncoder, hash_of};
use crate::spec::{JoinInput, JoinKind, JoinSpec};

/// A row of one side, as often as it is there.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Kept {
    row: RowBytes,
    /// How often.
    count: u32,
    /// How many partners it has, where that matters.
    degree: u32,
    /// When it was written last.
    used: Timestamp,
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
    /// Whether no row ever goes: then equal ones need not be found.
    rows_stay: bool,
    columns: usize,
    retention: Retention,
}

impl Side {
    fn new(
        name: &str,
        input: usize,
        spec: &JoinInput,
        (nulls_equal, is_batch): (&[bool], bool),
        cx: &OperatorContext<'_>,
    ) -> Result<Self> {
        let types: Vec<DataType> = cx.types(input);
        let rejecting = spec.keys.iter().zip(nulls_equal).filter(|(_, equal)| !**equal).map(|(column, _)| *column);
        let unique = spec.unique_key.as_ref().filter(|_| !spec.is_insert_only);
        let retention = Retention::new(if is_batch { 0 } else { spec.ttl_ms });
        Ok(Self {
            table: cx.task.table(name),
            keys: KeyEncoder::new(&spec.keys, &types)?,
            null_rejecting: rejecting.collect(),
            rows: RowEncoder::new(&types)?,
            decoder: RowDecoder::new(&types)?,
            null_row: vec![0; types.len()],
            unique: unique.map(|columns| KeyEncoder::new(columns, &types)).transpose()?,
            rows_stay: spec.is_insert_only && !retention.is_on(),
            columns: types.len(),
            retention,
        })
    }

    /// Rows go that have not been written for too long. Keys without rows do, too.
    fn expire(&mut self, now: Timestamp) {
        for hash in self.retention.advance(now) {
            let keys: Vec<RowBytes> = self.table.find_by_hash(hash, &()).map(|(key, _)| key.clone()).collect();
            let mut oldest = None;
            for key in keys {
                let is_over = |kept: &Kept| self.retention.is_over(kept.used);
                let Some(kept) = self.table.get(hash, &key, &()) else { continue };
                if kept.iter().any(is_over)
                    && let Some(kept) = self.table.get_mut(hash, &key, &())
                {
                    kept.retain(|kept| !is_over(kept));
                }
                match self.table.get(hash, &key, &()).and_then(|kept| kept.iter().map(|kept| kept.used).min()) {
                    Some(used) => oldest = Some(oldest.map_or(used, |oldest: Timestamp| oldest.min(used))),
                    None => drop(self.table.remove(hash, &key, &())),
                }
            }
            if let Some(oldest) = oldest {
                self.retention.note(oldest, hash);
            }
        }
    }

    /// The state has been restored.
    fn restored(&mut self) -> Result<()> {
        let Self { table, retention, .. } = self;
        retention.clear();
        table.visit(|key, (), kept| {
            // A key without rows is looked at at once, and goes.
            let oldest = kept.iter().map(|kept| kept.used).min().unwrap_or(0);
            retention.note(oldest, hash_of(key.as_slice()));
            Ok(())
        })
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

/// Which pairs fulfil the condition.
#[derive(Default)]
struct Matches {
    fulfilled: Vec<bool>,
    /// Where the pairs of each row end. Empty if there is no condition.
    ends: Vec<usize>,
}

impl Matches {
    /// Those of a row, one for each row of the other side with its key.
    fn of(&self, row: usize) -> &[bool] {
        let Some(&end) = self.ends.get(row) else { return &[] };
        let start = if row == 0 { 0 } else { self.ends[row - 1] };
        &self.fulfilled[start..end]
    }
}

/// See the module's documentation.
pub struct Join {
    kind: JoinKind,
    sides: [Side; 2],
    condition: Option<Compiled>,
    inputs: [SchemaRef; 2],
    joined: SchemaRef,
    output: SchemaRef,
    is_batch: bool,
    /// Whether right rows without a partner are not put out, since left ones are still to come.
    waits_for_left: bool,
    pairs: Pairs,
    candidates: Pairs,
    /// Pairs of rows that stay.
    met: RowPairs,
    /// The bytes of the rows of the chunk at hand.
    rows: EncodedRows,
    key: RowBytes,
}

impl Join {
    /// Makes both sides, empty.
    ///
    /// # Errors
    /// A column has a type that cannot be kept.
    pub fn new(spec: &JoinSpec, cx: &OperatorContext<'_>) -> Result<Self> {
        let joined = cx.joined();
        let [left, right] = cx.inputs else { return Err(Error::system("a join has two inputs")) };
        let inputs = [SchemaRef::clone(left), SchemaRef::clone(right)];
        let condition = spec.condition.as_ref().map(|expr| expr.compile(&joined, cx.functions)).transpose()?;
        Ok(Self {
            kind: spec.kind,
            sides: [
                Side::new("left", 0, &spec.left, (&spec.nulls_equal, spec.is_batch), cx)?,
                Side::new("right", 1, &spec.right, (&spec.nulls_equal, spec.is_batch), cx)?,
            ],
            condition,
            inputs,
            joined,
            output: SchemaRef::clone(cx.output),
            is_batch: spec.is_batch,
            waits_for_left: false,
            pairs: Pairs::default(),
            candidates: Pairs::default(),
            met: RowPairs::default(),
            rows: EncodedRows::default(),
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
        if self.kind == JoinKind::Inner && self.sides.iter().all(|side| side.rows_stay) {
            return self.join_inserts(chunk, out);
        }
        let side = usize::from(chunk.input.min(1));
        let (keys, rows) = self.encode(side, chunk)?;
        let joins = self.may_join(side, chunk);
        let matches = self.matches(side, &rows, &keys, &joins)?;
        for (row, joins) in joins.into_iter().enumerate() {
            self.key.set(keys.rows.get(row));
            let (hash, bytes) = (keys.hashes[row], rows.get(row));
            let is_addition = chunk.kind(row).is_addition();
            // The row that goes. An update may be told of without it, where a unique key says which it is; joins that have
            // a condition are told of it.
            if !is_addition || self.sides[side].unique.is_some() {
                let known = match self.known(side, hash, bytes)? {
                    // What is not there cannot be taken back: it was never seen, unless rows go by themselves.
                    None if !is_addition && self.sides[side].retention.is_on() => Some(bytes.to_vec()),
                    known => known,
                };
                if let Some(known) = known {
                    let matches = if is_addition { &[] } else { matches.of(row) };
                    self.change(side, hash, &known, false, joins, matches);
                }
            }
            if is_addition {
                self.change(side, hash, bytes, true, joins, matches.of(row));
            }
            if self.pairs.len() >= Chunk::ROWS_MAX {
                self.flush(out)?;
            }
        }
        self.flush(out)
    }

    /// Pairs of rows that stay: all of a chunk are gathered, the condition chooses once, and what is left is put out as it is.
    fn join_inserts(&mut self, chunk: &Chunk, out: &mut Emit<'_>) -> Result<()> {
        let side = usize::from(chunk.input.min(1));
        let joins = self.may_join(side, chunk);
        let [left, right] = &mut self.sides;
        let (this, other) = if side == 0 { (left, right) } else { (right, left) };
        let used = this.retention.now();
        let columns = chunk.batch.columns();
        this.rows.encode(columns, chunk.len(), &mut self.rows)?;
        let keys = this.keys.encode(columns, chunk.len(), chunk.hashes.as_deref())?;
        for (row, joins) in joins.into_iter().enumerate() {
            self.key.set(keys.rows.get(row));
            let hash = keys.hashes[row];
            let others = if joins { other.table.get(hash, &self.key, &()) } else { None };
            for other in others.into_iter().flatten() {
                (0..other.count).for_each(|_| self.met.add(Some(row as u32), other.row.as_slice()));
            }
            let kept = this.table.get_or_insert_with(hash, &self.key, (), Vec::new);
            kept.push(Kept { row: RowBytes::new(self.rows.get(row)), count: 1, degree: 0, used });
            if self.met.len() >= Chunk::ROWS_MAX || (row + 1 == chunk.len() && !self.met.is_empty()) {
                let (mut left, mut right) =
                    (self.met.columns_at_hand(columns)?, self.met.columns_kept(&other.decoder)?);
                if side == 1 {
                    std::mem::swap(&mut left, &mut right);
                }
                left.append(&mut right);
                let pairs = Chunk::inserts(batch_of(&self.joined, left, self.met.len())?);
                self.met.clear();
                let chosen = match &self.condition {
                    Some(condition) => pairs.filter(&condition.mask(&pairs.batch)?)?,
                    None => pairs,
                };
                let columns = chosen.batch.columns().to_vec();
                out.emit_large(Chunk::inserts(batch_of(&self.output, columns, chosen.len())?))?;
            }
        }
        Ok(())
    }

    /// The keys and the bytes of a chunk's rows.
    fn encode(&mut self, side: usize, chunk: &Chunk) -> Result<(Keys, EncodedRows)> {
        let side = &mut self.sides[side];
        let columns = chunk.batch.columns();
        let mut rows = EncodedRows::default();
        side.rows.encode(columns, chunk.len(), &mut rows)?;
        Ok((side.keys.encode(columns, chunk.len(), chunk.hashes.as_deref())?.clone(), rows))
    }

    /// For each row, whether it may have partners at all: it has no null where nulls are not equal.
    fn may_join(&self, side: usize, chunk: &Chunk) -> Vec<bool> {
        let columns: Vec<&ArrayRef> =
            self.sides[side].null_rejecting.iter().map(|column| chunk.column(*column)).collect();
        (0..chunk.len()).map(|row| columns.iter().all(|column| column.is_valid(row))).collect()
    }

    /// A row comes or goes: it meets the other side, and is kept or forgotten.
    fn change(&mut self, side: usize, hash: u64, row: &[u8], is_addition: bool, joins: bool, matches: &[bool]) {
        let partners = if joins { self.meet(side, hash, row, is_addition, matches) } else { 0 };
        self.put_out_alone(side, row, is_addition, partners);
        self.keep(side, hash, row, is_addition, partners);
    }

    /// For each row and each row of the other side with the same key, in order, whether they fulfil the condition.
    fn matches(&mut self, side: usize, rows: &EncodedRows, keys: &Keys, joins: &[bool]) -> Result<Matches> {
        let mut matches = Matches::default();
        let Some(condition) = &self.condition else { return Ok(matches) };
        self.candidates.clear();
        for (row, joins) in joins.iter().enumerate() {
            if *joins {
                self.key.set(keys.rows.get(row));
                let others = self.sides[1 - side].table.get(keys.hashes[row], &self.key, &());
                for other in others.into_iter().flatten() {
                    let (this, other) = (rows.get(row), other.row.as_slice());
                    let (left, right) = if side == 0 { (this, other) } else { (other, this) };
                    self.candidates.add(left, right, RowKind::Insert);
                }
            }
            matches.ends.push(self.candidates.len());
        }
        if self.candidates.len() > 0 {
            let columns = decode(&self.sides, &self.candidates, false)?;
            let mask = condition.mask(&batch_of(&self.joined, columns, self.candidates.len())?)?;
            matches.fulfilled.extend((0..mask.len()).map(|pair| mask.value(pair)));
        }
        Ok(matches)
    }

    /// A row meets its partners. Returns how many it has.
    fn meet(&mut self, side: usize, hash: u64, row: &[u8], is_addition: bool, matches: &[bool]) -> u32 {
        let mut matches = matches.iter();
        let (is_half, other_counts, other_outer) =
            (self.is_half(), self.counts_partners(1 - side), self.is_outer(1 - side));
        let (kind, opposite) = match is_addition {
            true => (RowKind::Insert, RowKind::Delete),
            false => (RowKind::Delete, RowKind::Insert),
        };
        // What was not put out alone is not taken back either.
        let was_alone = other_outer && !(side == 0 && self.waits_for_left);
        let is_anti = self.kind == JoinKind::Anti;
        let has_condition = self.condition.is_some();
        let [left_side, right_side] = &mut self.sides;
        let (other, null_row) =
            if side == 0 { (right_side, &left_side.null_row) } else { (left_side, &right_side.null_row) };
        // Only who counts its partners is changed.
        let now = other.retention.now();
        let others = match other_counts {
            true => other.table.get_mut(hash, &self.key, &()),
            false => None,
        };
        let mut partners = 0;
        let mut meet = |row_of_other: &[u8], count: u32, kept: Option<(&mut u32, &mut Timestamp)>| {
            if has_condition && !matches.next().copied().unwrap_or(false) {
                return;
            }
            partners += count;
            let before = kept.as_ref().map(|(degree, _)| **degree);
            if let Some((degree, used)) = kept {
                *degree = if is_addition { *degree + 1 } else { degree.saturating_sub(1) };
                *used = now;
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
                if turns && was_alone && is_addition {
                    let (left, right) =
                        if side == 0 { (&null_row[..], row_of_other) } else { (row_of_other, &null_row[..]) };
                    self.pairs.add(left, right, RowKind::Delete);
                }
                let (left, right) = if side == 0 { (row, row_of_other) } else { (row_of_other, row) };
                self.pairs.add(left, right, kind);
                if turns && was_alone && !is_addition {
                    let (left, right) =
                        if side == 0 { (&null_row[..], row_of_other) } else { (row_of_other, &null_row[..]) };
                    self.pairs.add(left, right, RowKind::Insert);
                }
            }
        };
        match others {
            Some(others) => others.iter_mut().for_each(|other| {
                meet(other.row.as_slice(), other.count, Some((&mut other.degree, &mut other.used)));
            }),
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
            _ if partners == 0 && self.is_outer(side) && !(side == 1 && self.waits_for_left) => {
                let null_row = std::mem::take(&mut self.sides[1 - side].null_row);
                let (left, right) = if side == 0 { (row, &null_row[..]) } else { (&null_row[..], row) };
                self.pairs.add(left, right, kind);
                self.sides[1 - side].null_row = null_row;
            }
            _ => {}
        }
    }

    /// Keeps a row, or forgets one that is [known](Self::known).
    fn keep(&mut self, side: usize, hash: u64, row: &[u8], is_addition: bool, partners: u32) {
        let Side { table, retention, rows_stay, .. } = &mut self.sides[side];
        let rows_stay = *rows_stay;
        let is_same = |kept: &Kept| kept.row.as_slice() == row;
        let used = retention.now();
        if is_addition {
            let mut is_new = false;
            let kept = table.get_or_insert_with(hash, &self.key, (), || {
                is_new = true;
                Vec::new()
            });
            let known = if rows_stay { None } else { kept.iter_mut().find(|kept| is_same(kept)) };
            match known {
                Some(same) => (same.count, same.used) = (same.count + 1, used),
                None => kept.push(Kept { row: RowBytes::new(row), count: 1, degree: partners, used }),
            }
            if is_new {
                retention.note(used, hash);
            }
            return;
        }
        let Some(kept) = table.get_mut(hash, &self.key, &()) else { return };
        if let Some(found) = kept.iter().position(is_same) {
            (kept[found].count, kept[found].used) = (kept[found].count - 1, used);
            if kept[found].count == 0 {
                kept.remove(found);
            }
        }
        // A key with a note stays until that is due, so that it never has two.
        if kept.is_empty() && !retention.is_on() {
            table.remove(hash, &self.key, &());
        }
    }

    /// The row that is kept and that `row` stands for: the same one, or the one with the same unique key.
    fn known(&mut self, side: usize, hash: u64, row: &[u8]) -> Result<Option<Vec<u8>>> {
        let side = &mut self.sides[side];
        let Some(kept) = side.table.get(hash, &self.key, &()) else { return Ok(None) };
        if kept.iter().any(|kept| kept.row.as_slice() == row) {
            return Ok(Some(row.to_vec()));
        }
        let Some(unique) = &mut side.unique else { return Ok(None) };
        let rows = std::iter::once(row).chain(kept.iter().map(|kept| kept.row.as_slice()));
        let columns = side.decoder.decode(rows)?;
        let keys = &unique.encode(&columns, kept.len() + 1, None)?.rows;
        let found = (1..keys.len()).find(|other| keys.get(*other) == keys.get(0));
        Ok(found.map(|other| kept[other - 1].row.as_slice().to_vec()))
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
fn decode(sides: &[Side; 2], pairs: &Pairs, is_half: bool) -> Result<Vec<ArrayRef>> {
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
        if self.is_batch { self.keep_all(&chunk) } else { self.join(&chunk, out) }
    }

    fn on_end(&mut self, out: &mut Emit<'_>) -> Result<()> {
        if !self.is_batch {
            return Ok(());
        }
        // The side whose rows are put out without partners, if there is one, comes last: what is put out then is final.
        let last = usize::from(self.kind == JoinKind::Right);
        self.waits_for_left = self.kind == JoinKind::Full;
        for chunk in self.take_side(last)? {
            self.join(&chunk, out)?;
        }
        if self.waits_for_left {
            self.put_out_left_alone(out)?;
        }
        // Taken out, so that a restore of the last checkpoint does not put anything out again.
        self.sides.iter_mut().try_for_each(|side| side.table.take_all(|_, (), _| Ok(())))
    }

    fn states(&mut self, visit: StateVisitor<'_>) -> Result<()> {
        self.sides.iter_mut().try_for_each(|side| {
            side.table.set_index_bytes(side.retention.bytes());
            visit(&mut side.table)
        })
    }

    fn restored(&mut self) -> Result<()> {
        self.sides.iter_mut().try_for_each(Side::restored)
    }

    fn on_time(&mut self, now: Timestamp, _: &mut Emit<'_>) -> Result<Timestamp> {
        self.sides.iter_mut().for_each(|side| side.expire(now));
        Ok(self.sides.iter().map(|side| side.retention.next()).min().unwrap_or(Timestamp::MAX))
    }
}

impl Join {
    /// Keeps rows until the end, in batch mode.
    fn keep_all(&mut self, chunk: &Chunk) -> Result<()> {
        let side = usize::from(chunk.input.min(1));
        let (keys, rows) = self.encode(side, chunk)?;
        for row in 0..chunk.len() {
            self.key.set(keys.rows.get(row));
            self.keep(side, keys.hashes[row], rows.get(row), chunk.kind(row).is_addition(), 0);
        }
        Ok(())
    }

    /// The rows that a side has kept, as new ones.
    fn take_side(&mut self, side: usize) -> Result<Vec<Chunk>> {
        let mut rows: Vec<RowBytes> = Vec::new();
        self.sides[side].table.take_all(|_, (), kept| {
            for Kept { row, count, .. } in kept {
                rows.extend(std::iter::repeat_n(row, count as usize));
            }
            Ok(())
        })?;
        let chunk = |rows: &[RowBytes]| {
            let columns = self.sides[side].decoder.decode(rows.iter().map(RowBytes::as_slice))?;
            let mut chunk = Chunk::inserts(batch_of(&self.inputs[side], columns, rows.len())?);
            chunk.input = side as u8;
            Ok(chunk)
        };
        rows.chunks(Chunk::ROWS_MAX).map(chunk).collect()
    }

    /// Right rows that have found no partner: in batch mode they are put out at the end only.
    fn put_out_left_alone(&mut self, out: &mut Emit<'_>) -> Result<()> {
        self.waits_for_left = false;
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
}

#[cfg(test)]
mod tests;
