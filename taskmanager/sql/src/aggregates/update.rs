//! Rows come and go.

use std::ops::Range;

use arrow::array::{Array, ArrowPrimitiveType, PrimitiveArray};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, i256};
use flott_core::{Error, Result};

use super::input::{Bound, Values};
use super::percentile;
use super::plan::{Aggregate, Aggregates, DistinctSet, Kind, View};
use super::rich::{Rich, count};
use super::state::Arena;
use super::user::UserRow;
use crate::row::{RowBytes, hash_of, read_length};

/// Rows of a batch: which group each belongs to, and whether it comes or goes.
#[derive(Clone, Copy)]
pub struct Changes<'a> {
    /// The group of each row, by its number in the arena.
    pub groups: &'a [u32],
    /// 1 for a row that comes, -1 for one that goes, 0 for one that does not count; `None` if all come.
    pub signs: Option<&'a [i8]>,
}

impl Aggregates {
    /// Takes rows into their groups, or out of them. Does not count them: [`Arena::rows`] is for whoever calls.
    pub fn update(&self, arena: &mut Arena, bound: &Bound, rows: Range<usize>, changes: Changes<'_>) -> Result<()> {
        let visible: Vec<Vec<u64>> =
            self.sets.iter().map(|set| distinct(set, arena, bound, rows.clone(), changes)).collect::<Result<_>>()?;
        let mut seen: Vec<bool> = Vec::new();
        for aggregate in &self.aggregates {
            let mask = match (aggregate.set, aggregate.filter) {
                (Some(View { set, view }), _) => {
                    seen.clear();
                    seen.extend(visible[set].iter().map(|views| (views >> view) & 1 == 1));
                    Some(&seen[..])
                }
                (None, Some(filter)) => Some(&bound.filters[filter][rows.clone()]),
                (None, None) => None,
            };
            let scan = Scan { rows: rows.clone(), mask, changes };
            aggregate.update(arena, bound, &scan, self.retracts)?;
        }
        Ok(())
    }
}

impl Aggregates {
    /// Takes values into the aggregates of distinct ones, each of which is new there, or the last of its kind.
    pub(super) fn update_of_view(
        &self,
        view: View,
        arena: &mut Arena,
        bound: &Bound,
        changes: Changes<'_>,
    ) -> Result<()> {
        for aggregate in self.aggregates.iter().filter(|aggregate| aggregate.set == Some(view)) {
            aggregate.update(arena, bound, &Scan { rows: 0..bound.rows, mask: None, changes }, self.retracts)?;
        }
        Ok(())
    }
}

/// For each row, in which views it is the first with its value, or takes the last of it away.
fn distinct(
    set: &DistinctSet,
    arena: &mut Arena,
    bound: &Bound,
    rows: Range<usize>,
    changes: Changes<'_>,
) -> Result<Vec<u64>> {
    let Values::Rows(values, _) = &bound.values[set.argument] else { return Err(mismatch()) };
    let mut views = vec![0_u64; rows.len()];
    for (view, filter) in set.filters.iter().enumerate() {
        match filter {
            None => views.iter_mut().for_each(|views| *views |= 1 << view),
            Some(filter) => {
                let passes = &bound.filters[*filter][rows.clone()];
                views.iter_mut().zip(passes).for_each(|(views, passes)| *views |= u64::from(*passes) << view);
            }
        }
    }
    let scan = Scan { rows: rows.clone(), mask: None, changes };
    scan.each(None, |row, group, sign| {
        let views = &mut views[row - rows.start];
        if *views != 0 {
            let value = values.get(row);
            *views = match set.is_shared() {
                true => arena.see(group, set.rich, value, *views),
                false => u64::from(arena.step(group, set.rich, value, sign)),
            };
        }
    });
    Ok(views)
}

/// The rows that an aggregate looks at.
struct Scan<'a> {
    rows: Range<usize>,
    /// Which of them count.
    mask: Option<&'a [bool]>,
    changes: Changes<'a>,
}

impl Scan<'_> {
    /// Calls `f` with row, group and sign of each that counts and is not null.
    #[inline]
    fn each(&self, nulls: Option<&NullBuffer>, mut f: impl FnMut(usize, usize, i64)) {
        let groups = self.changes.groups;
        if self.mask.is_none() && nulls.is_none() && self.changes.signs.is_none() {
            for row in self.rows.clone() {
                f(row, groups[row] as usize, 1);
            }
            return;
        }
        for row in self.rows.clone() {
            let sign = self.changes.signs.map_or(1, |signs| i64::from(signs[row]));
            let counts = self.mask.is_none_or(|mask| mask[row - self.rows.start]);
            if sign != 0 && counts && nulls.is_none_or(|nulls| nulls.is_valid(row)) {
                f(row, groups[row] as usize, sign);
            }
        }
    }

    /// The same, with the value of each.
    #[inline]
    fn values<T: ArrowPrimitiveType>(&self, array: &PrimitiveArray<T>, mut f: impl FnMut(T::Native, usize, i64)) {
        let values = array.values();
        let nulls = array.nulls().filter(|nulls| nulls.null_count() > 0);
        self.each(nulls, |row, group, sign| f(values[row], group, sign));
    }
}

impl Aggregate {
    fn update(&self, arena: &mut Arena, bound: &Bound, scan: &Scan<'_>, retracts: bool) -> Result<()> {
        let none = Values::Validity(None);
        let values = self.argument.map_or(&none, |argument| &bound.values[argument]);
        let at = self.word;
        match (&self.kind, values) {
            (Kind::Count, Values::Validity(nulls)) => {
                scan.each(nulls.as_ref(), |_, group, sign| {
                    let cell = &mut arena.cell(group, at)[0];
                    *cell = cell.wrapping_add(sign as u64);
                });
            }
            (Kind::Sum { .. } | Kind::Mean, Values::Ints(array)) => {
                scan.values(array, |value, group, sign| {
                    let cell = arena.cell(group, at);
                    cell[0] = cell[0].wrapping_add(sign as u64);
                    cell[1] = cell[1].wrapping_add(sign.wrapping_mul(value) as u64);
                });
            }
            (Kind::Sum { .. } | Kind::Mean, Values::Doubles(array)) => {
                scan.values(array, |value, group, sign| {
                    let cell = arena.cell(group, at);
                    cell[0] = cell[0].wrapping_add(sign as u64);
                    // With the last value goes what rounding has left behind.
                    let sum = if cell[0] == 0 { 0.0 } else { f64::from_bits(cell[1]) + sign as f64 * value };
                    cell[1] = sum.to_bits();
                });
            }
            (Kind::Sum { .. }, Values::Floats(array)) => {
                scan.values(array, |value, group, sign| {
                    let cell = arena.cell(group, at);
                    cell[0] = cell[0].wrapping_add(sign as u64);
                    let sum = if cell[0] == 0 { 0.0 } else { f32::from_bits(cell[1] as u32) + sign as f32 * value };
                    cell[1] = u64::from(sum.to_bits());
                });
            }
            (Kind::Sum { .. } | Kind::Mean, Values::Decimals(array)) => {
                scan.values(array, |value, group, sign| {
                    let cell = arena.cell(group, at);
                    cell[0] = cell[0].wrapping_add(sign as u64);
                    let value = i256::from_i128(value);
                    let sum = wide(&cell[1..]);
                    let sum = if sign > 0 { sum.wrapping_add(value) } else { sum.wrapping_sub(value) };
                    set_wide(&mut cell[1..], sum);
                });
            }
            (Kind::Spread { .. }, Values::Doubles(array)) => {
                scan.values(array, |value, group, sign| spread(arena.cell(group, at), value, sign));
            }
            (Kind::Spread { .. }, Values::Decimals(array)) => {
                let unit = self.unit();
                scan.values(array, |value, group, sign| spread(arena.cell(group, at), value as f64 / unit, sign));
            }
            (Kind::Best { is_max }, Values::Ints(array)) => {
                scan.values(array, |value, group, _| best(arena.cell(group, at), *is_max, int_order(value)));
            }
            (Kind::Best { is_max }, Values::Floats(array)) => scan.values(array, |value, group, _| {
                best(arena.cell(group, at), *is_max, float_order(f64::from(value), *is_max));
            }),
            (Kind::Best { is_max }, Values::Doubles(array)) => {
                scan.values(array, |value, group, _| best(arena.cell(group, at), *is_max, float_order(value, *is_max)));
            }
            (Kind::Best { is_max }, Values::Decimals(array)) => scan.values(array, |value, group, _| {
                let (cell, value) = (arena.cell(group, at), decimal_order(value));
                let known = u128::from(cell[1]) | u128::from(cell[2]) << 64;
                if cell[0] == 0 || (if *is_max { value > known } else { value < known }) {
                    cell[..3].copy_from_slice(&[1, value as u64, (value >> 64) as u64]);
                }
            }),
            (kind, values) => self.update_rich(kind, values, arena, scan, retracts)?,
        }
        Ok(())
    }

    fn update_rich(
        &self,
        kind: &Kind,
        values: &Values,
        arena: &mut Arena,
        scan: &Scan<'_>,
        retracts: bool,
    ) -> Result<()> {
        let at = self.rich;
        match (kind, values) {
            (Kind::BestBlob { is_max }, Values::Blobs(array)) => scan.each(array.nulls(), |row, group, _| {
                let (value, state) = (array.value(row), arena.rich_mut(group, at));
                match state {
                    Rich::Value(known) if (value > known.as_slice()) == *is_max || value == known.as_slice() => {
                        if value != known.as_slice() {
                            known.set(value);
                        }
                    }
                    Rich::Value(_) => {}
                    _ => *state = Rich::Value(RowBytes::new(value)),
                }
            }),
            (Kind::Ordered { is_max }, values) => {
                let mut note = |key: &[u8], group: usize, sign: i64| arena.step_ordered(group, at, key, sign);
                match values {
                    Values::Ints(array) => {
                        scan.values(array, |value, group, sign| note(&int_order(value).to_be_bytes(), group, sign));
                    }
                    Values::Floats(array) => scan.values(array, |value, group, sign| {
                        note(&float_order(f64::from(value), *is_max).to_be_bytes(), group, sign);
                    }),
                    Values::Doubles(array) => scan.values(array, |value, group, sign| {
                        note(&float_order(value, *is_max).to_be_bytes(), group, sign);
                    }),
                    Values::Decimals(array) => {
                        scan.values(array, |value, group, sign| note(&decimal_order(value).to_be_bytes(), group, sign));
                    }
                    Values::Blobs(array) => {
                        scan.each(array.nulls(), |row, group, sign| note(array.value(row), group, sign));
                    }
                    _ => return Err(mismatch()),
                }
            }
            (Kind::Percentile { .. }, Values::Doubles(array)) => scan.values(array, |value, group, sign| {
                arena.step_ordered(group, at, &percentile::order(value).to_be_bytes(), sign);
            }),
            (Kind::Percentile { .. }, Values::Weighted(array, times)) => {
                let nulls = NullBuffer::union(array.nulls(), times.nulls());
                scan.each(nulls.as_ref(), |row, group, sign| {
                    let times = times.value(row);
                    if times > 0 {
                        let value = percentile::order(array.value(row)).to_be_bytes();
                        arena.step_ordered(group, at, &value, sign * times);
                    }
                });
            }
            (Kind::User(user), values) => {
                let arguments = match values {
                    Values::Columns(columns) => &columns[..],
                    _ => &[],
                };
                // Which of the call's groups each group of the arena is.
                let mut places = vec![u32::MAX; arena.len()];
                let (mut groups, mut rows) = (Vec::new(), Vec::new());
                scan.each(None, |row, group, sign| {
                    if places[group] == u32::MAX {
                        places[group] = groups.len() as u32;
                        groups.push(group);
                    }
                    rows.push(UserRow { row: row as u32, group: places[group], is_addition: sign > 0 });
                });
                let bytes = |group: &usize| match arena.rich_of(*group, at) {
                    Rich::Value(bytes) => bytes.as_slice().to_vec(),
                    _ => Vec::new(),
                };
                let mut kept: Vec<Vec<u8>> = groups.iter().map(bytes).collect();
                user.function.update(arguments, &rows, &mut kept)?;
                for (group, bytes) in groups.iter().zip(&kept) {
                    *arena.rich_mut(*group, at) = Rich::Value(RowBytes::new(bytes));
                }
            }
            (kind, Values::Rows(values, nulls)) => {
                // Nulls that count as rows.
                let keeps_nulls = matches!(kind, Kind::Array | Kind::Only | Kind::JsonObject { .. })
                    || matches!(kind, Kind::JsonArray { absent_on_null: false });
                let nulls = nulls.as_ref().filter(|_| !keeps_nulls);
                let mut failure = None;
                scan.each(nulls, |row, group, sign| {
                    let (value, state) = (values.get(row), arena.rich_mut(group, at));
                    match kind {
                        Kind::Bag => count(state.ordered(), RowBytes::new(value), sign),
                        Kind::Approximate => state.sketch().insert(hash_of(value)),
                        Kind::Edge { is_first } if !retracts => match state {
                            Rich::Value(known) if !is_first => known.set(value),
                            Rich::Value(_) => {}
                            _ => *state = Rich::Value(RowBytes::new(value)),
                        },
                        Kind::Text { separator: Some(separator) } if !retracts => {
                            if let Err(error) = append_text(state, value, separator) {
                                failure = Some(error);
                            }
                        }
                        Kind::JsonObject { .. } if value.first() == Some(&0) => {
                            failure = Some(Error::input(format!("{}: a key is NULL, which JSON has not", self.text)));
                        }
                        _ if sign > 0 => state.sequence().push(RowBytes::new(value), retracts),
                        _ => state.sequence().remove(RowBytes::new(value)),
                    }
                });
                if let Some(error) = failure {
                    return Err(error);
                }
            }
            _ => return Err(mismatch()),
        }
        Ok(())
    }

    /// What the number 1 is as a decimal without its scale.
    pub(super) fn unit(&self) -> f64 {
        match self.types.first() {
            Some(DataType::Decimal128(_, scale)) => 10_f64.powi(i32::from(*scale)),
            _ => 1.0,
        }
    }
}

/// Adds a text, and before it the separator if there is one already.
fn append_text(state: &mut Rich, value: &[u8], separator: &str) -> Result<()> {
    let text = read_text(&mut &value[..])?;
    match state {
        Rich::Text(texts) => {
            texts.push_str(separator);
            texts.push_str(text);
        }
        _ => *state = Rich::Text(text.to_owned()),
    }
    Ok(())
}

fn mismatch() -> Error {
    Error::system("an aggregate's argument does not have the form that it was planned with")
}

/// Reads a text, in the form that it has in rows.
pub(super) fn read_text<'a>(rest: &mut &'a [u8]) -> Result<&'a str> {
    let damaged = || Error::system("a text in the state of an aggregate is damaged");
    *rest = rest.strip_prefix(&[1]).ok_or_else(damaged)?;
    let length = read_length(rest)?;
    let (text, left) = rest.split_at_checked(length).ok_or_else(damaged)?;
    *rest = left;
    std::str::from_utf8(text).map_err(|_| damaged())
}

/// Bits that compare as the numbers do.
#[inline]
pub(super) fn int_order(value: i64) -> u64 {
    value as u64 ^ (1 << 63)
}

/// The number of such bits.
pub(super) fn int_of(order: u64) -> i64 {
    (order ^ (1 << 63)) as i64
}

/// Bits that compare as the numbers do. NaN loses against all, whichever is wanted.
#[inline]
pub(super) fn float_order(value: f64, is_max: bool) -> u64 {
    if value.is_nan() {
        return if is_max { 0 } else { u64::MAX };
    }
    let bits = value.to_bits();
    if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
}

/// The number of such bits.
pub(super) fn float_of(order: u64) -> f64 {
    match order {
        0 | u64::MAX => f64::NAN,
        _ if order >> 63 == 1 => f64::from_bits(order & !(1 << 63)),
        _ => f64::from_bits(!order),
    }
}

/// Bits that compare as the numbers do.
#[inline]
pub(super) fn decimal_order(value: i128) -> u128 {
    value as u128 ^ (1 << 127)
}

/// The number of such bits.
pub(super) fn decimal_of(order: u128) -> i128 {
    (order ^ (1 << 127)) as i128
}

#[inline]
fn best(cell: &mut [u64], is_max: bool, value: u64) {
    if cell[0] == 0 || (if is_max { value > cell[1] } else { value < cell[1] }) {
        cell[0] = 1;
        cell[1] = value;
    }
}

/// Number, mean, and the sum of the squared distances from it: Welford's way, which does not lose digits as sums of squares
/// do.
#[inline]
fn spread(cell: &mut [u64], value: f64, sign: i64) {
    let number = (cell[0] as i64).wrapping_add(sign);
    if number == 0 {
        cell[..3].fill(0);
        return;
    }
    let (mean, squares) = (f64::from_bits(cell[1]), f64::from_bits(cell[2]));
    let distance = value - mean;
    let new_mean = mean + sign as f64 * distance / number as f64;
    let squares = squares + sign as f64 * distance * (value - new_mean);
    cell[..3].copy_from_slice(&[number as u64, new_mean.to_bits(), squares.to_bits()]);
}

#[inline]
pub(super) fn wide(words: &[u64]) -> i256 {
    let low = u128::from(words[0]) | u128::from(words[1]) << 64;
    let high = u128::from(words[2]) | u128::from(words[3]) << 64;
    i256::from_parts(low, high as i128)
}

#[inline]
pub(super) fn set_wide(words: &mut [u64], value: i256) {
    let (low, high) = value.to_parts();
    words[..4].copy_from_slice(&[low as u64, (low >> 64) as u64, high as u64, (high >> 64) as u64]);
}
