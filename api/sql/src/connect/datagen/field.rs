//! One column of made rows.

use std::fmt::Display;
use std::str::FromStr;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, BinaryBuilder, BooleanArray, Date32Array, Decimal128Array, ListArray, PrimitiveArray,
    StringBuilder, StructArray, Time32MillisecondArray, TimestampMillisecondArray,
};
use arrow::buffer::{BooleanBuffer, NullBuffer, OffsetBuffer};
use arrow::compute::cast;
use arrow::compute::kernels::nullif::nullif;
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, FieldRef, Fields, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
};
use flott_core::time::Timestamp;
use flott_core::{Error, Result};
use flott_datagen::{Draws, below, unit};
use flott_sql_functions::types::name_of;
use flott_tables::options::Options;
use flott_tables::scalar;

const DAY_MS: i64 = 86_400_000;
/// Flink's lengths of texts and of collections.
const TEXT_LENGTH: u32 = 100;
const LIST_LENGTH: u32 = 3;
/// The longest that either may be.
const LENGTH_MAX: u32 = 1 << 20;

/// Where a field's options are: `fields.name.…`.
pub(super) struct FieldOptions<'a> {
    pub(super) options: &'a Options,
    /// `fields.name`
    pub(super) name: String,
    /// What it draws with.
    pub(super) seed: u64,
}

/// The rows that are to be made.
pub(super) struct Positions<'a> {
    pub(super) rows: &'a [u64],
    /// When each of them is.
    pub(super) times_ms: &'a [Timestamp],
}

/// Makes a column.
#[derive(Debug)]
pub(super) struct Field {
    data_type: DataType,
    values: Values,
    draws: Draws,
    /// How many of 2^32 values are null, and draws for that.
    nulls: Option<(u64, Draws)>,
}

#[derive(Debug)]
enum Values {
    /// From `start` on, up to `end`.
    Sequence {
        start: i64,
        end: i64,
    },
    Boolean,
    /// From `min` on, so many numbers.
    Integer {
        min: i64,
        count: u128,
    },
    Float {
        min: f64,
        max: f64,
    },
    /// In units of the last digit.
    Decimal {
        min: i128,
        count: u128,
    },
    Text {
        length: u32,
        is_varied: bool,
    },
    Bytes {
        length: u32,
        is_varied: bool,
    },
    /// The row's time, or up to so much before.
    Time {
        past_ms: u64,
    },
    List {
        element: Box<Field>,
        of: FieldRef,
        length: u32,
    },
    Row {
        fields: Vec<Field>,
        of: Fields,
    },
}

impl FieldOptions<'_> {
    fn key(&self, option: &str) -> String {
        format!("{}.{option}", self.name)
    }

    fn nested(&self, name: &str) -> FieldOptions<'_> {
        let name = self.key(name);
        FieldOptions { options: self.options, seed: flott_core::hash::stable_hash(&(self.seed, name.as_str())), name }
    }

    fn length(&self, default: u32) -> Result<u32> {
        let parse = |text: &str| text.parse().ok().filter(|length| *length <= LENGTH_MAX);
        let found = self.options.parsed(&self.key("length"), &format!("a number of up to {LENGTH_MAX}"), parse)?;
        Ok(found.unwrap_or(default))
    }

    fn bounds<T: FromStr + PartialOrd + Copy + Display>(&self, min: T, max: T) -> Result<(T, T)> {
        let found = self.options.number(&self.key("min"))?.unwrap_or(min);
        let max = self.options.number(&self.key("max"))?.unwrap_or(max);
        match found <= max {
            true => Ok((found, max)),
            false => {
                Err(self.options.wrong(&self.key("min"), &found.to_string(), &format!("at most max, which is {max}")))
            }
        }
    }
}

impl Field {
    pub(super) fn new(options: &FieldOptions<'_>, data_type: &DataType) -> Result<Self> {
        let of = options.options;
        let is_sequence = of.choice(&options.key("kind"), &[("random", false), ("sequence", true)])?.unwrap_or(false);
        let rate = |text: &str| text.parse::<f64>().ok().filter(|rate| (0.0..=1.0).contains(rate));
        let rate = of.parsed(&options.key("null-rate"), "a number from 0 to 1", rate)?.unwrap_or(0.0);
        let nulls = (rate > 0.0).then(|| ((rate * (1_u64 << 32) as f64) as u64, Draws::new(options.seed, 1)));
        let values = if is_sequence { sequence(options, data_type)? } else { random(options, data_type)? };
        Ok(Self { data_type: data_type.clone(), values, draws: Draws::new(options.seed, 0), nulls })
    }

    /// How many rows there are, if it is a sequence.
    pub(super) fn count(&self) -> Option<u64> {
        match &self.values {
            Values::Sequence { start, end } => Some((i128::from(*end) - i128::from(*start) + 1).max(0) as u64),
            _ => None,
        }
    }

    pub(super) fn array(&self, positions: &Positions<'_>) -> Result<ArrayRef> {
        let array = self.values(positions)?;
        let Some((count, draws)) = self.nulls else { return Ok(array) };
        let row = |index: usize| draws.at(positions.rows[index]) >> 32 < count;
        let mask = BooleanArray::new(BooleanBuffer::collect_bool(positions.rows.len(), row), None);
        // Rows have no kernel of their own for it.
        if let Some(rows) = array.as_any().downcast_ref::<StructArray>() {
            let valid = NullBuffer::new(!mask.values());
            let (fields, arrays, _) = rows.clone().into_parts();
            let arrays = arrays.iter().map(|array| nullif(array, &mask).map_err(failed)).collect::<Result<_>>()?;
            return Ok(Arc::new(StructArray::try_new(fields, arrays, Some(valid)).map_err(failed)?));
        }
        nullif(&array, &mask).map_err(failed)
    }

    fn values(&self, positions: &Positions<'_>) -> Result<ArrayRef> {
        let rows = positions.rows;
        let drawn = || rows.iter().map(|&row| self.draws.at(row));
        match &self.values {
            Values::Sequence { start, .. } => {
                let numbers = rows.iter().map(|&row| start.wrapping_add_unsigned(row));
                match &self.data_type {
                    DataType::Int64 => Ok(numbers_of::<Int64Type>(numbers)),
                    DataType::Utf8 => {
                        let mut texts = StringBuilder::new();
                        numbers.for_each(|number| texts.append_value(number.to_string()));
                        Ok(Arc::new(texts.finish()))
                    }
                    other => cast(&numbers_of::<Int64Type>(numbers), other).map_err(failed),
                }
            }
            Values::Boolean => {
                Ok(Arc::new(BooleanArray::new(BooleanBuffer::from_iter(drawn().map(|bits| bits >> 63 == 1)), None)))
            }
            Values::Integer { min, count } => {
                let numbers =
                    drawn().map(|bits| min.wrapping_add_unsigned(below_wide(u128::from(bits) << 64, *count) as u64));
                match &self.data_type {
                    DataType::Int8 => Ok(numbers_of::<Int8Type>(numbers.map(|number| number as i8))),
                    DataType::Int16 => Ok(numbers_of::<Int16Type>(numbers.map(|number| number as i16))),
                    DataType::Int32 => Ok(numbers_of::<Int32Type>(numbers.map(|number| number as i32))),
                    _ => Ok(numbers_of::<Int64Type>(numbers)),
                }
            }
            Values::Float { min, max } => {
                let numbers = drawn().map(unit).map(|part| min * (1.0 - part) + max * part);
                match &self.data_type {
                    DataType::Float32 => Ok(numbers_of::<Float32Type>(numbers.map(|number| number as f32))),
                    _ => Ok(numbers_of::<Float64Type>(numbers)),
                }
            }
            Values::Decimal { min, count } => {
                let number = |&row: &u64| {
                    let mut stream = self.draws.stream(row);
                    let bits = u128::from(stream.draw()) << 64 | u128::from(stream.draw());
                    min + below_wide(bits, *count) as i128
                };
                let numbers = Decimal128Array::from_iter_values(rows.iter().map(number));
                Ok(Arc::new(numbers.with_data_type(self.data_type.clone())))
            }
            Values::Text { length, is_varied } => {
                let mut texts = StringBuilder::with_capacity(rows.len(), rows.len() * *length as usize);
                let mut text = Vec::new();
                for &row in rows {
                    self.bytes(row, *length, *is_varied, &mut text);
                    text.iter_mut().for_each(|byte| *byte = b"0123456789abcdef"[usize::from(*byte >> 4)]);
                    texts.append_value(std::str::from_utf8(&text).unwrap_or_default());
                }
                Ok(Arc::new(texts.finish()))
            }
            Values::Bytes { length, is_varied } => {
                let mut all = BinaryBuilder::with_capacity(rows.len(), rows.len() * *length as usize);
                let mut bytes = Vec::new();
                for &row in rows {
                    self.bytes(row, *length, *is_varied, &mut bytes);
                    all.append_value(&bytes);
                }
                Ok(Arc::new(all.finish()))
            }
            Values::Time { past_ms } => {
                let before = |bits| below(bits, past_ms.saturating_add(1)) as i64;
                let times =
                    positions.times_ms.iter().zip(drawn()).map(|(time, bits)| time.saturating_sub(before(bits)));
                match &self.data_type {
                    DataType::Date32 => {
                        Ok(Arc::new(Date32Array::from_iter_values(times.map(|time| time.div_euclid(DAY_MS) as i32))))
                    }
                    DataType::Time32(_) => Ok(Arc::new(Time32MillisecondArray::from_iter_values(
                        times.map(|time| time.rem_euclid(DAY_MS) as i32),
                    ))),
                    DataType::Timestamp(_, zone) => {
                        let times = TimestampMillisecondArray::from_iter_values(times).with_timezone_opt(zone.clone());
                        cast(&times, &self.data_type).map_err(failed)
                    }
                    other => Err(Error::system(format!("{other} is no time"))),
                }
            }
            Values::List { element, of, length } => {
                let each = u64::from(*length);
                let inner: Vec<u64> = rows
                    .iter()
                    .flat_map(|row| (0..each).map(move |n| row.wrapping_mul(each).wrapping_add(n)))
                    .collect();
                let times: Vec<_> = positions.times_ms.iter().flat_map(|time| (0..each).map(move |_| *time)).collect();
                let elements = element.array(&Positions { rows: &inner, times_ms: &times })?;
                let ends = OffsetBuffer::from_lengths(rows.iter().map(|_| *length as usize));
                Ok(Arc::new(ListArray::try_new(Arc::clone(of), ends, elements, None).map_err(failed)?))
            }
            Values::Row { fields, of } => {
                let arrays = fields.iter().map(|field| field.array(positions)).collect::<Result<_>>()?;
                Ok(Arc::new(StructArray::try_new_with_length(of.clone(), arrays, None, rows.len()).map_err(failed)?))
            }
        }
    }

    /// Random bytes for a row.
    fn bytes(&self, row: u64, length: u32, is_varied: bool, out: &mut Vec<u8>) {
        let mut stream = self.draws.stream(row);
        let length = if is_varied { 1 + below(stream.draw(), u64::from(length)) } else { u64::from(length) } as usize;
        out.clear();
        while out.len() < length {
            out.extend_from_slice(&stream.draw().to_le_bytes());
        }
        out.truncate(length);
    }
}

fn sequence(options: &FieldOptions<'_>, data_type: &DataType) -> Result<Values> {
    let wrong = |key: &str, text: &str, what: &str| options.options.wrong(&options.key(key), text, what);
    let is_number = data_type.is_integer() || data_type.is_floating();
    if !(is_number || matches!(data_type, DataType::Utf8 | DataType::Decimal128(..))) {
        return Err(wrong("kind", "sequence", &format!("random: there is no sequence of {}", name_of(data_type))));
    }
    let bound = |key: &str| {
        options.options.number::<i64>(&options.key(key))?.ok_or_else(|| {
            let key = options.key(key);
            Error::input(format!(
                "table '{}' has no option '{key}', which a sequence needs: add it",
                options.options.table()
            ))
        })
    };
    let (start, end) = (bound("start")?, bound("end")?);
    if end < start {
        return Err(wrong("end", &end.to_string(), &format!("at least start, which is {start}")));
    }
    for (key, number) in [("start", start), ("end", end)] {
        // What the type does not hold becomes null.
        let array = cast(&numbers_of::<Int64Type>([number].into_iter()), data_type).map_err(failed)?;
        if array.is_null(0) {
            return Err(wrong(key, &number.to_string(), &format!("a number that fits into {}", name_of(data_type))));
        }
    }
    Ok(Values::Sequence { start, end })
}

fn random(options: &FieldOptions<'_>, data_type: &DataType) -> Result<Values> {
    let integers =
        |(min, max): (i64, i64)| Values::Integer { min, count: (i128::from(max) - i128::from(min) + 1) as u128 };
    let wide = |(min, max): (f64, f64)| Values::Float { min, max };
    let is_varied = || options.options.flag(&options.key("var-len"), false);
    Ok(match data_type {
        DataType::Boolean => Values::Boolean,
        DataType::Int8 => integers(wider(options.bounds(i8::MIN, i8::MAX)?)),
        DataType::Int16 => integers(wider(options.bounds(i16::MIN, i16::MAX)?)),
        DataType::Int32 => integers(wider(options.bounds(i32::MIN, i32::MAX)?)),
        DataType::Int64 => integers(options.bounds(i64::MIN, i64::MAX)?),
        DataType::Float32 => {
            let (min, max) = options.bounds(0.0, f32::MAX)?;
            wide((f64::from(min), f64::from(max)))
        }
        DataType::Float64 => wide(options.bounds(0.0, f64::MAX)?),
        DataType::Decimal128(precision, scale) => decimals(options, *precision, *scale)?,
        DataType::Utf8 => Values::Text { length: options.length(TEXT_LENGTH)?, is_varied: is_varied()? },
        DataType::Binary => Values::Bytes { length: options.length(TEXT_LENGTH)?, is_varied: is_varied()? },
        DataType::Date32 | DataType::Time32(_) => Values::Time { past_ms: 0 },
        DataType::Timestamp(..) => {
            let past = options.options.duration(&options.key("max-past"))?.unwrap_or_default();
            Values::Time { past_ms: u64::try_from(past.as_millis()).unwrap_or(u64::MAX) }
        }
        DataType::List(of) => Values::List {
            element: Box::new(Field::new(&options.nested("element"), of.data_type())?),
            of: Arc::clone(of),
            length: options.length(LIST_LENGTH)?,
        },
        DataType::Struct(of) => {
            let field = |field: &FieldRef| Field::new(&options.nested(field.name()), field.data_type());
            Values::Row { fields: of.iter().map(field).collect::<Result<_>>()?, of: of.clone() }
        }
        other => {
            return Err(Error::input(format!(
                "table '{}': the connector 'datagen' makes no {}, which '{}' is",
                options.options.table(),
                name_of(other),
                options.name
            )));
        }
    })
}

fn decimals(options: &FieldOptions<'_>, precision: u8, scale: i8) -> Result<Values> {
    let bound = |key: &str| {
        let what = format!("a number that fits into DECIMAL({precision}, {scale})");
        options.options.parsed(&options.key(key), &what, |text| scalar::decimal(text, precision, scale).flatten())
    };
    let most = 10_i128.pow(u32::from(precision)) - 1;
    let (min, max) = (bound("min")?.unwrap_or(0), bound("max")?.unwrap_or(most));
    match min <= max {
        true => Ok(Values::Decimal { min, count: (max - min + 1) as u128 }),
        false => Err(Error::input(format!(
            "table '{}': '{}' is more than '{}'",
            options.options.table(),
            options.key("min"),
            options.key("max")
        ))),
    }
}

fn wider<T: Into<i64>>((min, max): (T, T)) -> (i64, i64) {
    (min.into(), max.into())
}

/// A number from 0 to `count - 1` made of 128 random bits.
fn below_wide(bits: u128, count: u128) -> u128 {
    let (high, low) = (bits >> 64, bits & u128::from(u64::MAX));
    let (count_high, count_low) = (count >> 64, count & u128::from(u64::MAX));
    let middle = high * count_low + ((low * count_low) >> 64);
    let other = low * count_high + (middle & u128::from(u64::MAX));
    high * count_high + (middle >> 64) + (other >> 64)
}

fn numbers_of<T: ArrowPrimitiveType>(numbers: impl Iterator<Item = T::Native>) -> ArrayRef {
    Arc::new(PrimitiveArray::<T>::from_iter_values(numbers))
}

fn failed(error: arrow::error::ArrowError) -> Error {
    Error::system(format!("making rows: {error}"))
}
