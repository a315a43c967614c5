//! What aggregates result in.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, Decimal128Builder, Float32Array, Float64Array, Float64Builder, Int64Array, Int64Builder, PrimitiveArray,
};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Date32Type, Int32Type, Time32MillisecondType, Time32SecondType, TimeUnit, i256};
use flott_core::{Error, Result};

use super::input::Form;
use super::json;
use super::percentile;
use super::plan::{Aggregate, Aggregates, Kind};
use super::rich::{Rich, Sequence};
use super::state::Arena;
use super::update::{decimal_of, float_of, int_of, read_text, wide};
use crate::row::{EncodedRows, RowBytes, write_length};

/// The greatest number of digits of a decimal.
const DIGITS_MAX: u8 = 38;

/// Results of groups, one column an aggregate.
#[derive(Debug)]
pub struct Results<'a> {
    aggregates: &'a Aggregates,
    columns: Vec<Column>,
    rows: usize,
}

#[derive(Debug)]
enum Column {
    Ints(Int64Builder),
    Doubles(Float64Builder),
    Decimals(Decimal128Builder),
    /// In the form of rows of one column.
    Rows(EncodedRows),
    /// What a function of the program keeps.
    Kept(Vec<Vec<u8>>),
}

impl Aggregates {
    /// No results yet.
    pub fn collector(&self) -> Results<'_> {
        let columns = self.aggregates.iter().map(Aggregate::column).collect();
        Results { aggregates: self, columns, rows: 0 }
    }

    /// The results of all groups of an arena.
    pub fn results(&self, arena: &Arena) -> Result<Vec<ArrayRef>> {
        let mut results = self.collector();
        for (aggregate, column) in self.aggregates.iter().zip(&mut results.columns) {
            (0..arena.len()).try_for_each(|group| aggregate.append(arena, group, column))?;
        }
        results.finish()
    }
}

impl Results<'_> {
    /// Adds those of a group.
    pub fn push(&mut self, arena: &Arena, group: usize) -> Result<()> {
        self.rows += 1;
        let columns = self.aggregates.aggregates.iter().zip(&mut self.columns);
        columns.into_iter().try_for_each(|(aggregate, column)| aggregate.append(arena, group, column))
    }

    /// How many have been added.
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Whether none have.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// The columns.
    pub fn finish(self) -> Result<Vec<ArrayRef>> {
        let columns = self.aggregates.aggregates.iter().zip(self.columns);
        columns.map(|(aggregate, column)| aggregate.finish(column)).collect()
    }
}

impl Aggregate {
    fn column(&self) -> Column {
        let is_decimal = matches!(self.result, DataType::Decimal128(..));
        match (&self.kind, self.form) {
            (Kind::User(_), _) => Column::Kept(Vec::new()),
            (Kind::Count | Kind::Approximate, _) => Column::Ints(Int64Builder::new()),
            (Kind::Spread { .. }, _) => Column::Doubles(Float64Builder::new()),
            (Kind::Percentile { .. }, _) if self.result == DataType::Float64 => Column::Doubles(Float64Builder::new()),
            (Kind::Sum { .. } | Kind::Mean, Form::Decimals) => Column::Decimals(Decimal128Builder::new()),
            (Kind::Mean, Form::Ints) if !is_int(&self.result) => Column::Doubles(Float64Builder::new()),
            (Kind::Sum { .. } | Kind::Mean | Kind::Best { .. } | Kind::Ordered { .. }, form) => match form {
                Form::Ints => Column::Ints(Int64Builder::new()),
                Form::Decimals if is_decimal => Column::Decimals(Decimal128Builder::new()),
                Form::Floats | Form::Doubles => Column::Doubles(Float64Builder::new()),
                _ => Column::Rows(EncodedRows::default()),
            },
            _ => Column::Rows(EncodedRows::default()),
        }
    }

    fn append(&self, arena: &Arena, group: usize, column: &mut Column) -> Result<()> {
        match column {
            Column::Ints(ints) => ints.append_option(self.int(arena, group)),
            Column::Doubles(doubles) => doubles.append_option(self.double(arena, group)),
            Column::Decimals(decimals) => decimals.append_option(self.decimal(arena, group)),
            Column::Kept(kept) => kept.push(match arena.rich_of(group, self.rich) {
                Rich::Value(bytes) => bytes.as_slice().to_vec(),
                _ => Vec::new(),
            }),
            Column::Rows(rows) => {
                match (&self.kind, self.extreme(arena, group)) {
                    (Kind::Ordered { .. }, Some(value)) => write_blob(value, &mut rows.data),
                    (Kind::Ordered { .. }, None) => rows.data.push(0),
                    (Kind::Percentile { .. }, _) => write_doubles(self.percentiles(arena, group), &mut rows.data),
                    _ => self.write(arena.rich_of(group, self.rich), &mut rows.data)?,
                }
                rows.ends.push(rows.data.len());
            }
        }
        Ok(())
    }

    fn int(&self, arena: &Arena, group: usize) -> Option<i64> {
        let words = || arena.words_of(group, self.word);
        match self.kind {
            Kind::Count => Some(words()[0] as i64),
            Kind::Approximate => Some(match arena.rich_of(group, self.rich) {
                Rich::Sketch(sketch) => sketch.estimate() as i64,
                _ => 0,
            }),
            Kind::Sum { is_zero } if words()[0] == 0 => is_zero.then_some(0),
            Kind::Sum { .. } => Some(words()[1] as i64),
            Kind::Mean if words()[0] == 0 => None,
            Kind::Mean => Some((words()[1] as i64).wrapping_div(words()[0] as i64)),
            Kind::Best { .. } => (words()[0] != 0).then(|| int_of(words()[1])),
            _ => self.extreme(arena, group).and_then(eight).map(int_of),
        }
    }

    fn double(&self, arena: &Arena, group: usize) -> Option<f64> {
        let words = || arena.words_of(group, self.word);
        match self.kind {
            Kind::Sum { is_zero } if words()[0] == 0 => is_zero.then_some(0.0),
            Kind::Sum { .. } if self.form == Form::Floats => Some(f64::from(f32::from_bits(words()[1] as u32))),
            Kind::Sum { .. } => Some(f64::from_bits(words()[1])),
            Kind::Mean if words()[0] == 0 => None,
            Kind::Mean if self.form == Form::Ints => Some(words()[1] as i64 as f64 / words()[0] as i64 as f64),
            Kind::Mean => Some(f64::from_bits(words()[1]) / words()[0] as i64 as f64),
            Kind::Spread { is_sample, is_root } => {
                let number = words()[0] as i64 - i64::from(is_sample);
                let squares = f64::from_bits(words()[2]);
                // What is taken back leaves rounding errors, which must not make it negative. NaN stays.
                let squares = if squares < 0.0 { 0.0 } else { squares };
                let variance = (number > 0).then(|| squares / number as f64)?;
                Some(if is_root { variance.sqrt() } else { variance })
            }
            Kind::Best { .. } => (words()[0] != 0).then(|| float_of(words()[1])),
            Kind::Percentile { .. } => self.percentiles(arena, group)?.first().copied(),
            _ => self.extreme(arena, group).and_then(eight).map(float_of),
        }
    }

    fn decimal(&self, arena: &Arena, group: usize) -> Option<i128> {
        let words = || arena.words_of(group, self.word);
        match self.kind {
            Kind::Sum { is_zero } if words()[0] == 0 => is_zero.then_some(0),
            Kind::Mean if words()[0] == 0 => None,
            Kind::Sum { .. } => self.rescaled(wide(&words()[1..]), 1),
            Kind::Mean => self.rescaled(wide(&words()[1..]), words()[0] as i64),
            Kind::Best { .. } => {
                let order = u128::from(words()[1]) | u128::from(words()[2]) << 64;
                (words()[0] != 0).then(|| decimal_of(order))
            }
            _ => {
                let order = self.extreme(arena, group)?.try_into().ok().map(u128::from_be_bytes);
                order.map(decimal_of)
            }
        }
    }

    /// The bytes by which the extreme of an [ordered](Kind::Ordered) state compares.
    fn extreme<'a>(&self, arena: &'a Arena, group: usize) -> Option<&'a [u8]> {
        let Kind::Ordered { is_max } = self.kind else { return None };
        arena.extreme(group, self.rich, is_max)
    }

    /// The values at the places that are wanted; none of nothing.
    fn percentiles(&self, arena: &Arena, group: usize) -> Option<Vec<f64>> {
        let Kind::Percentile { at } = &self.kind else { return None };
        percentile::of(arena.ordered(group, self.rich)?, at)
    }

    /// A decimal of the argument's scale, divided, as one of the result's; none if it does not fit.
    fn rescaled(&self, sum: i256, by: i64) -> Option<i128> {
        let DataType::Decimal128(precision, scale) = self.result else { return None };
        let Some(DataType::Decimal128(_, from)) = self.types.first() else { return None };
        let ten = i256::from_i128(10);
        let up = ten.checked_pow(u32::try_from((i32::from(scale) - i32::from(*from)).max(0)).ok()?)?;
        let down = ten.checked_pow(u32::try_from((i32::from(*from) - i32::from(scale)).max(0)).ok()?)?;
        let divisor = i256::from_i128(i128::from(by)).checked_mul(down)?;
        let value = half_up(sum.checked_mul(up)?, divisor)?.to_i128()?;
        let limit = 10_i128.checked_pow(u32::from(precision.min(DIGITS_MAX)))?;
        (value > -limit && value < limit).then_some(value)
    }

    /// Writes a result that has no fixed size, in the form of a row of one column.
    fn write(&self, state: &Rich, out: &mut Vec<u8>) -> Result<()> {
        let nothing = Sequence::default();
        let sequence = match state {
            Rich::Sequence(sequence) => sequence,
            _ => &nothing,
        };
        match (&self.kind, state) {
            (Kind::BestBlob { .. }, Rich::Value(value)) => write_blob(value.as_slice(), out),
            (Kind::Edge { .. }, Rich::Value(value)) => out.extend_from_slice(value.as_slice()),
            (Kind::Edge { is_first }, Rich::Sequence(sequence)) => {
                let value = if *is_first { sequence.first() } else { sequence.last() };
                out.extend_from_slice(value.unwrap_or(&[0]));
            }
            (Kind::Text { .. }, Rich::Text(text)) => write_blob(text.as_bytes(), out),
            (Kind::Text { separator }, Rich::Sequence(sequence)) if sequence.len() > 0 => {
                write_blob(joined(sequence, separator.as_deref())?.as_bytes(), out);
            }
            (Kind::Bag, _) => {
                let values = match state {
                    Rich::Ordered(values) => values.iter().filter(|(_, count)| **count > 0).collect(),
                    _ => Vec::new(),
                };
                out.push(1);
                write_length(values.len(), out);
                for (value, count) in values {
                    out.extend_from_slice(RowBytes::as_slice(value));
                    out.push(1);
                    out.extend_from_slice(&i32::try_from(*count).unwrap_or(i32::MAX).to_le_bytes());
                }
            }
            (Kind::Array, Rich::Sequence(sequence)) if sequence.len() > 0 => {
                out.push(1);
                write_length(sequence.len(), out);
                sequence.iter().for_each(|value| out.extend_from_slice(value));
            }
            (Kind::Only, Rich::Sequence(sequence)) if sequence.len() > 1 => {
                return Err(Error::input(format!(
                    "{}: a subquery that stands for one value gave {} rows: use an aggregate or LIMIT 1 in it",
                    self.text,
                    sequence.len()
                )));
            }
            (Kind::Only, Rich::Sequence(sequence)) => out.extend_from_slice(sequence.first().unwrap_or(&[0])),
            (Kind::JsonObject { absent_on_null }, _) => {
                write_blob(json::object(self.decoded(sequence)?, *absent_on_null)?.as_bytes(), out);
            }
            (Kind::JsonArray { .. }, _) => write_blob(json::array(self.decoded(sequence)?)?.as_bytes(), out),
            _ => out.push(0),
        }
        Ok(())
    }

    fn decoded(&self, sequence: &Sequence) -> Result<Vec<ArrayRef>> {
        let decoder = self.decoder.as_ref().ok_or_else(|| Error::system("an aggregate cannot read what it keeps"))?;
        decoder.decode(sequence.iter())
    }

    fn finish(&self, column: Column) -> Result<ArrayRef> {
        let failed = |error| Error::system(format!("the result of {}: {error}", self.text));
        Ok(match column {
            Column::Ints(mut ints) => int_result(ints.finish(), &self.result).map_err(failed)?,
            Column::Doubles(mut doubles) => double_result(doubles.finish(), &self.result).map_err(failed)?,
            Column::Decimals(mut decimals) => match self.result {
                DataType::Decimal128(precision, scale) => {
                    Arc::new(decimals.finish().with_precision_and_scale(precision, scale).map_err(failed)?)
                }
                ref other => return Err(Error::system(format!("{} is not of the type {other}", self.text))),
            },
            Column::Kept(kept) => match &self.kind {
                Kind::User(user) => user.function.results(&kept)?,
                _ => return Err(Error::system(format!("{} is no function of the program", self.text))),
            },
            Column::Rows(rows) => self.result_decoder.decode(rows.iter())?.swap_remove(0),
        })
    }
}

fn is_int(data_type: &DataType) -> bool {
    data_type.is_signed_integer()
}

fn eight(bytes: &[u8]) -> Option<u64> {
    bytes.try_into().ok().map(u64::from_be_bytes)
}

fn write_blob(bytes: &[u8], out: &mut Vec<u8>) {
    out.push(1);
    write_length(bytes.len(), out);
    out.extend_from_slice(bytes);
}

/// Writes an array of doubles, or NULL.
fn write_doubles(doubles: Option<Vec<f64>>, out: &mut Vec<u8>) {
    let Some(doubles) = doubles else { return out.push(0) };
    out.push(1);
    write_length(doubles.len(), out);
    for double in doubles {
        out.push(1);
        out.extend_from_slice(&double.to_le_bytes());
    }
}

/// A quotient, rounded to the nearest, and in the middle away from zero.
fn half_up(value: i256, by: i256) -> Option<i256> {
    let (quotient, rest) = (value.checked_div(by)?, value.checked_rem(by)?);
    let is_negative = rest.is_negative() != by.is_negative();
    let rest = rest.wrapping_abs();
    if rest < by.wrapping_abs().wrapping_sub(rest) {
        return Some(quotient);
    }
    let one = if is_negative { i256::MINUS_ONE } else { i256::ONE };
    quotient.checked_add(one)
}

/// Texts with a separator between them: `separator`, or the second column of the later one.
fn joined(sequence: &Sequence, separator: Option<&str>) -> Result<String> {
    let mut all = String::new();
    for (index, value) in sequence.iter().enumerate() {
        let mut rest = value;
        let text = read_text(&mut rest)?;
        if index > 0 {
            all.push_str(match separator {
                Some(separator) => separator,
                None => read_text(&mut rest)?,
            });
        }
        all.push_str(text);
    }
    Ok(all)
}

/// Integers as whatever they stand for. What does not fit wraps, as Flink's sums do.
fn int_result(ints: Int64Array, result: &DataType) -> Result<ArrayRef, arrow::error::ArrowError> {
    let narrow = || ints.unary::<_, Int32Type>(|value| value as i32);
    let as_is: ArrayRef = match result {
        DataType::Int64 => return Ok(Arc::new(ints)),
        DataType::Int32 => return Ok(Arc::new(narrow())),
        DataType::Int16 => return Ok(Arc::new(ints.unary::<_, arrow::datatypes::Int16Type>(|value| value as i16))),
        DataType::Int8 => return Ok(Arc::new(ints.unary::<_, arrow::datatypes::Int8Type>(|value| value as i8))),
        DataType::Date32 => return Ok(Arc::new(narrow().reinterpret_cast::<Date32Type>())),
        DataType::Time32(TimeUnit::Second) => return Ok(Arc::new(narrow().reinterpret_cast::<Time32SecondType>())),
        DataType::Time32(_) => return Ok(Arc::new(narrow().reinterpret_cast::<Time32MillisecondType>())),
        _ => Arc::new(ints),
    };
    cast(&as_is, result)
}

fn double_result(doubles: Float64Array, result: &DataType) -> Result<ArrayRef, arrow::error::ArrowError> {
    Ok(match result {
        DataType::Float64 => Arc::new(doubles),
        DataType::Float32 => {
            let narrow: Float32Array = doubles.unary(|value| value as f32);
            Arc::new(narrow)
        }
        DataType::Decimal128(precision, scale) => {
            let unit = 10_f64.powi(i32::from(*scale));
            let limit = 10_f64.powi(i32::from(*precision));
            let scaled: PrimitiveArray<arrow::datatypes::Decimal128Type> = doubles.unary_opt(|value| {
                let value = (value * unit).round();
                (value.abs() < limit).then_some(value as i128)
            });
            Arc::new(scaled.with_precision_and_scale(*precision, *scale)?)
        }
        other if is_int(other) => {
            let whole: Int64Array = doubles.unary(|value| value as i64);
            int_result(whole, other)?
        }
        other => cast(&doubles, other)?,
    })
}
