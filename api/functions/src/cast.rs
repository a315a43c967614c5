//! CAST and TRY_CAST.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, ListArray, MapArray, PrimitiveArray, StringArray, StructArray, make_array,
    new_null_array,
};
use arrow::buffer::NullBuffer;
use arrow::compute::{cast as arrow_cast, nullif};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Date32Type, Decimal128Type, DurationMillisecondType, Field, Float32Type, Float64Type,
    Int8Type, Int16Type, Int32Type, Int64Type, IntervalUnit, IntervalYearMonthType, Time32MillisecondType,
};
use chrono::{Datelike, NaiveDateTime, NaiveTime, Timelike};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::ScalarUDF;

use crate::define::{Call, Column, Function, Takes, Types, Zone, user_error};
use crate::moment::{Moments, from_nanos};
use crate::types::coerce::{decimal_of, is_integer, is_numeric};
use crate::types::{Kind, SqlType, name_of, parse, precision_of};
use crate::{decimal, text};

pub(crate) fn all() -> Vec<Arc<ScalarUDF>> {
    let takes = &[Takes::Any, Takes::Any];
    vec![
        Function::new("flink_cast", takes, target, |call| evaluate(call, false)).make(),
        Function::new("flink_try_cast", takes, target, |call| evaluate(call, true)).make(),
    ]
}

/// The second argument is the name of the type, or a NULL of it.
fn target(types: &Types<'_>) -> Option<DataType> {
    let to = match types.constant(1) {
        Some(name) => parse(name).ok()?.to_arrow(),
        None => types.types[1].clone(),
    };
    is_allowed(&types.types[0], &to).then_some(to)
}

fn evaluate(call: &Call<'_>, is_try: bool) -> Result<ArrayRef> {
    let name = &call.columns[1];
    let kind = match name.array.as_string_opt::<i32>() {
        Some(names) if names.is_valid(0) => parse(names.value(0)).map_err(user_error)?.kind,
        _ => SqlType::from_arrow(call.returns).map_err(user_error)?.kind,
    };
    let cast = Cast { zone: call.zone, is_try };
    let Column { array, is_constant } = &call.columns[0];
    let mut made = cast.kind(array, &kind, call.returns)?;
    if is_try
        && !matches!(array.data_type(), DataType::Utf8)
        && let Some(lost) = unread(array, &made)
    {
        // Not only the element is NULL, but all around it.
        made = nullif(&made, &lost)?;
    }
    if *is_constant && call.rows != 1 {
        return datafusion::common::ScalarValue::try_from_array(&made, 0)?.to_array_of_size(call.rows);
    }
    Ok(made)
}

/// Where a text could not be read, or one within: `None` if nowhere.
fn unread(from: &ArrayRef, made: &ArrayRef) -> Option<BooleanArray> {
    let here = || {
        let lost = (0..from.len()).map(|row| from.is_valid(row) && made.is_null(row)).collect::<Vec<_>>();
        lost.contains(&true).then(|| BooleanArray::from(lost))
    };
    let within = |offsets: &[i32], lost: BooleanArray| -> BooleanArray {
        let any = |bounds: &[i32]| (bounds[0]..bounds[1]).any(|at| lost.value(at as usize));
        offsets.windows(2).map(|bounds| Some(any(bounds))).collect()
    };
    let either = |left: BooleanArray, right: BooleanArray| -> BooleanArray {
        (0..left.len()).map(|row| Some(left.value(row) || right.value(row))).collect()
    };
    let inside = match (from.data_type(), made.data_type()) {
        (DataType::Utf8, _) => return here(),
        (DataType::List(_), DataType::List(_)) => {
            let (from, made) = (from.as_list::<i32>(), made.as_list::<i32>());
            unread(from.values(), made.values()).map(|lost| within(from.value_offsets(), lost))
        }
        (DataType::Map(..), DataType::Map(..)) => {
            let (from, made) = (from.as_map(), made.as_map());
            let pairs = |map: &MapArray| Arc::new(map.entries().clone()) as ArrayRef;
            unread(&pairs(from), &pairs(made)).map(|lost| within(from.value_offsets(), lost))
        }
        (DataType::Struct(_), DataType::Struct(_)) => {
            let columns = from.as_struct().columns().iter().zip(made.as_struct().columns());
            columns.filter_map(|(from, made)| unread(from, made)).reduce(either)
        }
        _ => return None,
    };
    // Where a part cannot be NULL, such as a key, the whole is NULL already.
    here().into_iter().chain(inside).reduce(either)
}

/// Whether some of the values between these bounds are not there.
fn lacks(there: &NullBuffer, bounds: &[i32]) -> bool {
    (bounds[0]..bounds[1]).any(|at| there.is_null(at as usize))
}

/// Which rows are there if those are not that lack something.
fn but_for(nulls: Option<&NullBuffer>, lacking: impl Iterator<Item = bool>) -> Option<NullBuffer> {
    let whole = NullBuffer::from(lacking.map(|lacks| !lacks).collect::<Vec<_>>());
    NullBuffer::union(nulls, Some(&whole))
}

/// What Flink casts at all.
pub(crate) fn is_allowed(from: &DataType, to: &DataType) -> bool {
    use DataType::{
        Binary, Boolean, Date32, Duration, Int32, Int64, Interval, List, Map, Null, Struct, Time32, Timestamp, Utf8,
    };
    match (from, to) {
        _ if from == to => true,
        (Null, _) | (_, Utf8) => true,
        (Utf8, Boolean | Date32 | Time32(_) | Timestamp(..) | Binary) => true,
        (Utf8, to) => is_numeric(to),
        (Boolean, to) | (to, Boolean) => is_numeric(to),
        (Date32, Timestamp(..)) | (Timestamp(..), Date32 | Time32(_) | Timestamp(..)) | (Time32(_), Timestamp(..)) => {
            true
        }
        (Interval(_) | Duration(_), Int32 | Int64) | (Int32 | Int64, Interval(_) | Duration(_)) => true,
        (List(from), List(to)) => is_allowed(from.data_type(), to.data_type()),
        (Map(from, _), Map(to, _)) => is_allowed(from.data_type(), to.data_type()),
        (Struct(from), Struct(to)) => {
            from.len() == to.len() && from.iter().zip(to).all(|(from, to)| is_allowed(from.data_type(), to.data_type()))
        }
        _ => is_numeric(from) && is_numeric(to),
    }
}

/// How values are cast.
#[derive(Clone, Copy)]
pub(crate) struct Cast {
    pub(crate) zone: Zone,
    /// What cannot be cast is NULL.
    pub(crate) is_try: bool,
}

impl Cast {
    /// To a type with a length or a precision that Arrow does not know.
    fn kind(self, from: &ArrayRef, kind: &Kind, to: &DataType) -> Result<ArrayRef> {
        let made = self.cast(from, to)?;
        Ok(match kind {
            Kind::Varchar(most) if *most < i32::MAX as u32 => texts(&made, |text| cut(text, *most as usize).to_owned()),
            Kind::Char(length) => texts(&made, |text| format!("{:1$}", cut(text, *length as usize), *length as usize)),
            Kind::Varbinary(most) if *most < i32::MAX as u32 => bytes(&made, *most as usize, false),
            Kind::Binary(length) => bytes(&made, *length as usize, true),
            Kind::Timestamp(precision) | Kind::TimestampLtz(precision) => {
                let DataType::Timestamp(unit, zone) = to else { return Ok(made) };
                let step = 10i64.pow(u32::from(precision_of(*unit).saturating_sub(*precision)));
                if step == 1 {
                    return Ok(made);
                }
                let ints = arrow_cast(&made, &DataType::Int64)?;
                let cut = ints.as_primitive::<Int64Type>().unary::<_, Int64Type>(|at| at - at.rem_euclid(step));
                arrow_cast(&(Arc::new(cut) as ArrayRef), &DataType::Timestamp(*unit, zone.clone()))?
            }
            Kind::Time(precision) => {
                let step = 10i32.pow(u32::from(3u8.saturating_sub(*precision)));
                let times = made.as_primitive::<Time32MillisecondType>();
                Arc::new(times.unary::<_, Time32MillisecondType>(|at| at - at.rem_euclid(step)))
            }
            _ => made,
        })
    }

    pub(crate) fn cast(self, from: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
        use DataType::{
            Binary, Boolean, Date32, Decimal128, Duration, Float32, Float64, Interval, List, Map, Struct, Time32,
            Timestamp, Utf8,
        };
        let of = from.data_type();
        Ok(match (of, to) {
            _ if of == to => Arc::clone(from),
            (DataType::Null, _) => new_null_array(to, from.len()),
            (_, Utf8) => self.show(from)?,
            (Utf8, Binary) => arrow_cast(from, to)?,
            (Utf8, _) => return self.read(from, to),
            (Boolean, Decimal128(..)) => return self.cast(&arrow_cast(from, &DataType::Int32)?, to),
            (Boolean, _) => arrow_cast(from, to)?,
            (Decimal128(..), Boolean) => {
                let values = from.as_primitive::<Decimal128Type>();
                Arc::new(BooleanArray::from_iter(values.iter().map(|value| Some(value? != 0))))
            }
            (_, Boolean) => arrow_cast(from, to)?,
            (Float32 | Float64, Decimal128(_, scale)) => {
                let doubles = arrow_cast(from, &Float64)?;
                let scale = *scale as u8;
                decimals(from.len(), to, |row| {
                    let doubles = doubles.as_primitive::<Float64Type>();
                    doubles.is_valid(row).then(|| decimal::from_double(doubles.value(row), scale)).flatten()
                })?
            }
            (_, Decimal128(..)) => decimal::rescale(from, to)?,
            (Decimal128(..), Float32 | Float64) => {
                let (_, scale) = decimal_of(of).unwrap_or_default();
                let values = from.as_primitive::<Decimal128Type>();
                let doubles = values.iter().map(|value| text::decimal(value?, scale).parse::<f64>().ok());
                arrow_cast(&(Arc::new(doubles.collect::<PrimitiveArray<Float64Type>>()) as ArrayRef), to)?
            }
            (Decimal128(_, scale), _) if is_integer(to) => {
                let unit = 10i128.pow(*scale as u32);
                let whole = from.as_primitive::<Decimal128Type>().unary::<_, Int64Type>(|value| (value / unit) as i64);
                narrow(&whole, to)?
            }
            (Float32 | Float64, _) if is_integer(to) => {
                let doubles = arrow_cast(from, &Float64)?;
                let doubles = doubles.as_primitive::<Float64Type>();
                // As in Java: to the nearest INT or BIGINT, and from INT the low bits.
                let whole = match to {
                    DataType::Int64 => doubles.unary::<_, Int64Type>(|value| value as i64),
                    _ => doubles.unary::<_, Int64Type>(|value| i64::from(value as i32)),
                };
                narrow(&whole, to)?
            }
            _ if is_integer(of) && is_integer(to) => {
                narrow(arrow_cast(from, &DataType::Int64)?.as_primitive::<Int64Type>(), to)?
            }
            _ if is_numeric(of) && is_numeric(to) => arrow_cast(from, to)?,
            (Date32 | Timestamp(..) | Time32(_), Date32 | Timestamp(..) | Time32(_)) => self.moments(from, to)?,
            (Interval(IntervalUnit::YearMonth), _) => {
                let months = from.as_primitive::<IntervalYearMonthType>().unary::<_, Int64Type>(i64::from);
                narrow(&months, to)?
            }
            (_, Interval(IntervalUnit::YearMonth)) => {
                let months = arrow_cast(from, &DataType::Int32)?;
                Arc::new(months.as_primitive::<Int32Type>().unary::<_, IntervalYearMonthType>(|value| value))
            }
            (Duration(_), _) => narrow(arrow_cast(from, &DataType::Int64)?.as_primitive::<Int64Type>(), to)?,
            (_, Duration(_)) => arrow_cast(&arrow_cast(from, &DataType::Int64)?, to)?,
            (List(_), List(element)) => {
                let list = from.as_list::<i32>();
                let (values, there) = self.part(list.values(), element)?;
                let nulls = match there {
                    Some(there) => {
                        but_for(list.nulls(), list.value_offsets().windows(2).map(|bounds| lacks(&there, bounds)))
                    }
                    None => list.nulls().cloned(),
                };
                Arc::new(ListArray::try_new(Arc::clone(element), list.offsets().clone(), values, nulls)?)
            }
            (Map(..), Map(entries, is_sorted)) => {
                let map = from.as_map();
                // What is lost of a pair, the pair is lost, and with it the map.
                let pairs: ArrayRef = Arc::new(map.entries().clone());
                let (pairs, there) = self.part(&pairs, entries)?;
                let nulls = match there {
                    Some(there) => {
                        but_for(map.nulls(), map.value_offsets().windows(2).map(|bounds| lacks(&there, bounds)))
                    }
                    None => map.nulls().cloned(),
                };
                let (entries, offsets) = (Arc::clone(entries), map.offsets().clone());
                Arc::new(MapArray::try_new(entries, offsets, pairs.as_struct().clone(), nulls, *is_sorted)?)
            }
            (Struct(_), Struct(fields)) => {
                let row = from.as_struct();
                let (mut columns, mut nulls) = (Vec::with_capacity(fields.len()), row.nulls().cloned());
                for (column, field) in row.columns().iter().zip(fields) {
                    let (column, there) = self.part(column, field)?;
                    nulls = NullBuffer::union(nulls.as_ref(), there.as_ref());
                    columns.push(column);
                }
                Arc::new(StructArray::try_new(fields.clone(), columns, nulls)?)
            }
            _ => {
                return Err(DataFusionError::Plan(format!("Flink casts no {} to {}", name_of(of), name_of(to))));
            }
        })
    }

    /// A part of a collection or row. Where it cannot be NULL but is, since it could not be read, something stands for it; then
    /// which are there is said too.
    fn part(self, from: &ArrayRef, to: &Field) -> Result<(ArrayRef, Option<NullBuffer>)> {
        let made = self.cast(from, to.data_type())?;
        match made.nulls().filter(|nulls| self.is_try && !to.is_nullable() && nulls.null_count() > 0).cloned() {
            Some(there) => {
                let data = made.to_data().into_builder().nulls(None).build()?;
                Ok((make_array(data), Some(there)))
            }
            None => Ok((made, None)),
        }
    }

    fn read(self, from: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
        let texts = from.as_string::<i32>();
        let whole = |least: i64, most: i64| {
            move |text: &str| text::read_int(text).filter(|value| (least..=most).contains(value))
        };
        Ok(match to {
            DataType::Boolean => {
                let mut made = arrow::array::BooleanBuilder::with_capacity(texts.len());
                for text in texts {
                    made.append_option(self.one(text, to, text::read_bool)?);
                }
                Arc::new(made.finish())
            }
            DataType::Int8 => self.each::<Int8Type>(texts, to, |text| Some(whole(-128, 127)(text)? as i8))?,
            DataType::Int16 => self.each::<Int16Type>(texts, to, |text| Some(whole(-32768, 32767)(text)? as i16))?,
            DataType::Int32 => {
                let read = whole(i32::MIN.into(), i32::MAX.into());
                self.each::<Int32Type>(texts, to, |text| Some(read(text)? as i32))?
            }
            DataType::Int64 => self.each::<Int64Type>(texts, to, text::read_int)?,
            DataType::Float32 => self.each::<Float32Type>(texts, to, |text| Some(text::read_double(text)? as f32))?,
            DataType::Float64 => self.each::<Float64Type>(texts, to, text::read_double)?,
            DataType::Decimal128(_, scale) => {
                let mut found = Vec::with_capacity(texts.len());
                for text in texts {
                    found.push(self.one(text, to, text::read_decimal)?);
                }
                decimals(texts.len(), to, |row| {
                    let (value, from) = found[row]?;
                    decimal::scaled(value, from, i32::from(*scale))
                })?
            }
            DataType::Date32 => {
                self.each::<Date32Type>(texts, to, |text| Some(text::days_of(text::read_date(text)?)))?
            }
            DataType::Time32(_) => self.each::<Time32MillisecondType>(texts, to, |text| {
                let time = text::read_time(text)?;
                Some((time.num_seconds_from_midnight() * 1000 + time.nanosecond() / 1_000_000) as i32)
            })?,
            DataType::Timestamp(unit, zone) => {
                let per_second = 10i64.pow(u32::from(precision_of(*unit)));
                let made = self.each::<Int64Type>(texts, to, |text| {
                    let at = text::read_timestamp(text)?;
                    let at = if zone.is_some() { self.zone.to_utc(at) } else { at };
                    units(at, per_second)
                })?;
                arrow_cast(&made, to)?
            }
            _ => return Err(DataFusionError::Plan(format!("Flink casts no STRING to {}", name_of(to)))),
        })
    }

    fn one<T>(self, text: Option<&str>, to: &DataType, read: impl Fn(&str) -> Option<T>) -> Result<Option<T>> {
        let Some(text) = text else { return Ok(None) };
        match read(text) {
            None if !self.is_try => {
                Err(user_error(format!("'{text}' is no {}; TRY_CAST gives NULL for it", name_of(to))))
            }
            found => Ok(found),
        }
    }

    fn each<T: ArrowPrimitiveType>(
        self,
        texts: &StringArray,
        to: &DataType,
        read: impl Fn(&str) -> Option<T::Native>,
    ) -> Result<ArrayRef> {
        let mut made = PrimitiveArray::<T>::builder(texts.len());
        for text in texts {
            made.append_option(self.one(text, to, &read)?);
        }
        Ok(Arc::new(made.finish()))
    }

    /// Between dates, times and timestamps.
    fn moments(self, from: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
        let moments = Moments::new(from)?;
        let is_local = |of: &DataType| matches!(of, DataType::Timestamp(_, Some(_)));
        let (from_utc, to_utc) =
            (is_local(from.data_type()) && !is_local(to), !is_local(from.data_type()) && is_local(to));
        let at = |row: usize| {
            let at = moments.get(row)?;
            Some(if from_utc {
                self.zone.to_local(at)
            } else if to_utc {
                self.zone.to_utc(at)
            } else {
                at
            })
        };
        from_nanos(from.len(), to, at)
    }

    /// As a text.
    pub(crate) fn show(self, from: &ArrayRef) -> Result<ArrayRef> {
        use DataType::{
            Binary, Boolean, Date32, Decimal128, Duration, Float32, Float64, Interval, List, Map, Struct, Time32,
            Timestamp, Utf8,
        };
        macro_rules! show {
            ($kind:ty, $show:expr) => {
                from.as_primitive::<$kind>().iter().map(|value| value.map($show)).collect::<StringArray>()
            };
        }
        Ok(Arc::new(match from.data_type() {
            Utf8 => return Ok(Arc::clone(from)),
            Boolean => {
                let shown = from.as_boolean().iter();
                shown.map(|value| value.map(|value| if value { "TRUE" } else { "FALSE" })).collect::<StringArray>()
            }
            of if is_integer(of) => return Ok(arrow_cast(from, &Utf8)?),
            Float32 => show!(Float32Type, text::float),
            Float64 => show!(Float64Type, text::double),
            Decimal128(_, scale) => show!(Decimal128Type, |value| text::decimal(value, *scale as u8)),
            Binary => {
                let shown = from.as_binary::<i32>().iter();
                shown.map(|value| value.map(|value| String::from_utf8_lossy(value).into_owned())).collect()
            }
            Date32 => {
                let shown = from.as_primitive::<Date32Type>().iter();
                shown.map(|value| text::date(value?.into())).collect::<StringArray>()
            }
            Time32(_) => show!(Time32MillisecondType, |value| text::time(value.into())),
            Timestamp(unit, zone) => {
                let moments = Moments::new(from)?;
                let precision = precision_of(*unit);
                (0..from.len())
                    .map(|row| {
                        let at = moments.get(row)?;
                        let at = if zone.is_some() { self.zone.to_local(at) } else { at };
                        Some(text::timestamp(at, precision))
                    })
                    .collect()
            }
            Interval(_) => show!(IntervalYearMonthType, |value| text::months(value.into())),
            Duration(_) => show!(DurationMillisecondType, text::millis),
            List(_) => {
                let list = from.as_list::<i32>();
                let elements = self.show(list.values())?;
                let elements = elements.as_string::<i32>();
                self.joined(from, |row| {
                    let (start, end) = (list.value_offsets()[row] as usize, list.value_offsets()[row + 1] as usize);
                    let shown: Vec<_> = (start..end).map(|at| or_null(elements, at)).collect();
                    format!("[{}]", shown.join(", "))
                })
            }
            Map(..) => {
                let map = from.as_map();
                let (keys, values) = (self.show(map.keys())?, self.show(map.values())?);
                let (keys, values) = (keys.as_string::<i32>(), values.as_string::<i32>());
                self.joined(from, |row| {
                    let (start, end) = (map.value_offsets()[row] as usize, map.value_offsets()[row + 1] as usize);
                    let pair = |at| format!("{}={}", or_null(keys, at), or_null(values, at));
                    format!("{{{}}}", (start..end).map(pair).collect::<Vec<_>>().join(", "))
                })
            }
            Struct(_) => {
                let columns = from.as_struct().columns().iter().map(|column| self.show(column));
                let columns = columns.collect::<Result<Vec<_>>>()?;
                self.joined(from, |row| {
                    let shown: Vec<_> = columns.iter().map(|column| or_null(column.as_string::<i32>(), row)).collect();
                    format!("({})", shown.join(", "))
                })
            }
            of => return Err(DataFusionError::Plan(format!("Flink has no text for {}", name_of(of)))),
        }))
    }

    fn joined(self, from: &ArrayRef, show: impl Fn(usize) -> String) -> StringArray {
        (0..from.len()).map(|row| from.is_valid(row).then(|| show(row))).collect()
    }
}

fn or_null(texts: &StringArray, at: usize) -> &str {
    if texts.is_valid(at) { texts.value(at) } else { "NULL" }
}

/// The low bits.
fn narrow(from: &PrimitiveArray<Int64Type>, to: &DataType) -> Result<ArrayRef> {
    Ok(match to {
        DataType::Int8 => Arc::new(from.unary::<_, Int8Type>(|value| value as i8)),
        DataType::Int16 => Arc::new(from.unary::<_, Int16Type>(|value| value as i16)),
        DataType::Int32 => Arc::new(from.unary::<_, Int32Type>(|value| value as i32)),
        _ => Arc::new(from.clone()),
    })
}

/// Decimals of a type; what has too many digits is NULL.
pub(crate) fn decimals(rows: usize, to: &DataType, of: impl Fn(usize) -> Option<i128>) -> Result<ArrayRef> {
    let DataType::Decimal128(precision, scale) = to else {
        return Err(DataFusionError::Internal(format!("{to} is no decimal")));
    };
    let most = 10i128.pow(u32::from(*precision));
    let made =
        (0..rows).map(|row| of(row).filter(|value| value.abs() < most)).collect::<PrimitiveArray<Decimal128Type>>();
    Ok(Arc::new(made.with_precision_and_scale(*precision, *scale)?))
}

/// A point in time in units of a second.
pub(crate) fn units(at: NaiveDateTime, per_second: i64) -> Option<i64> {
    let seconds = at.and_utc().timestamp().checked_mul(per_second)?;
    seconds.checked_add(i64::from(at.nanosecond()) / (1_000_000_000 / per_second))
}

fn cut(text: &str, most: usize) -> &str {
    text.char_indices().nth(most).map_or(text, |(at, _)| &text[..at])
}

fn texts(from: &ArrayRef, of: impl Fn(&str) -> String) -> ArrayRef {
    Arc::new(from.as_string::<i32>().iter().map(|text| text.map(&of)).collect::<StringArray>())
}

fn bytes(from: &ArrayRef, length: usize, is_padded: bool) -> ArrayRef {
    let cut = |bytes: &[u8]| {
        let mut bytes = bytes[..bytes.len().min(length)].to_vec();
        if is_padded {
            bytes.resize(length, 0);
        }
        bytes
    };
    let made = from.as_binary::<i32>().iter().map(|value| value.map(cut));
    Arc::new(made.collect::<arrow::array::BinaryArray>())
}

/// The day of a point in time, and the milliseconds in it.
pub(crate) fn day_and_millis(at: NaiveDateTime) -> (i32, i32) {
    let midnight = NaiveTime::MIN;
    let millis = at.time().signed_duration_since(midnight).num_milliseconds();
    (at.date().num_days_from_ce() - 719_163, millis as i32)
}
