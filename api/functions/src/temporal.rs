//! Functions of dates, times and timestamps.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray};
use arrow::compute::cast as arrow_cast;
use arrow::datatypes::{DataType, Int32Type, Int64Type, IntervalYearMonthType, TimeUnit};
use chrono::{DateTime, Datelike, Days, NaiveDate, NaiveDateTime, NaiveTime, TimeDelta, Timelike};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::ScalarUDF;

use crate::arithmetic::{self, plus_months};
use crate::define::{Call, Function, Takes, Texts, Types, Zone, is, user_error, zone_of};
use crate::moment::{Moments, from_nanos};
use crate::patterns::{Pattern, USUAL, read_usual};
use crate::text;
use crate::types::coerce::{
    Arithmetic, arithmetic_type, common_type, is_approximate, is_interval, is_numeric, is_temporal,
};
use crate::types::time_unit;

use Takes::{Any, Number, Temporal, Text};

fn timestamp(_: &Types<'_>) -> Option<DataType> {
    Some(DataType::Timestamp(TimeUnit::Millisecond, None))
}

fn timestamp_ltz(_: &Types<'_>) -> Option<DataType> {
    Some(DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into())))
}

/// A constant precision of a number is that of the type too, if it is finer than milliseconds.
fn ltz_of_number(of: &Types<'_>) -> Option<DataType> {
    let precision = match of.constants.get(1).copied().flatten() {
        Some(precision) if is_numeric(&of.types[0]) => match precision.cast_to(&DataType::Int64).ok()? {
            ScalarValue::Int64(Some(precision)) => u8::try_from(precision).ok().filter(|precision| *precision <= 9)?,
            _ => 3,
        },
        _ => 3,
    };
    Some(DataType::Timestamp(time_unit(precision.max(3)), Some("UTC".into())))
}

fn date(_: &Types<'_>) -> Option<DataType> {
    Some(DataType::Date32)
}

fn time(_: &Types<'_>) -> Option<DataType> {
    Some(DataType::Time32(TimeUnit::Millisecond))
}

fn now(call: &Call<'_>, is_local: bool) -> Result<ArrayRef> {
    let now = DateTime::from_timestamp_millis(flott_env::now_ms()).map(|now| now.naive_utc());
    let now = if is_local { now.map(|now| call.zone.to_local(now)) } else { now };
    from_nanos(call.rows, call.returns, |_| now)
}

macro_rules! part {
    ($name:literal, $unit:literal) => {
        Function::new($name, &[Temporal], is::long, |call| extract(call, 0, |_| Some($unit))).strict()
    };
}

pub(crate) fn all() -> Vec<Arc<ScalarUDF>> {
    let functions = vec![
        Function::new("flink_current_timestamp", &[], timestamp_ltz, |call| now(call, false))
            .alias(&["flink_now"])
            .volatile()
            .never_null(),
        Function::new("current_row_timestamp", &[], timestamp_ltz, |call| now(call, false)).volatile().never_null(),
        Function::new("proctime", &[], timestamp_ltz, |call| now(call, false)).volatile().never_null(),
        Function::new("localtimestamp", &[], timestamp, |call| now(call, true)).volatile().never_null(),
        Function::new("flink_current_date", &[], date, |call| now(call, true)).volatile().never_null(),
        Function::new("flink_current_time", &[], time, |call| now(call, true))
            .alias(&["localtime"])
            .volatile()
            .never_null(),
        Function::new("unix_timestamp", &[Text, Text], is::long, unix_timestamp).least(0).volatile(),
        Function::new("flink_from_unixtime", &[Number, Text], is::text, |call| {
            let seconds = call.ints(0)?;
            let patterns = Patterns::of(call, 1)?;
            call.try_texts(|row| {
                let Some(at) = seconds.get(row).and_then(|seconds| DateTime::from_timestamp(seconds, 0)) else {
                    return Ok(None);
                };
                patterns.show(row, call.zone.to_local(at.naive_utc()))
            })
        })
        .least(1),
        Function::new("flink_to_timestamp", &[Text, Text], timestamp, |call| {
            let texts = call.texts(0)?;
            let patterns = Patterns::of(call, 1)?.check()?;
            from_nanos(call.rows, call.returns, |row| patterns.read(row, texts.get(row)?))
        })
        .least(1),
        Function::new("to_timestamp_ltz", &[Any, Any, Text], ltz_of_number, to_timestamp_ltz).least(1),
        Function::new("flink_to_date", &[Text, Text], date, |call| {
            let texts = call.texts(0)?;
            let patterns = Patterns::of(call, 1)?.check()?;
            from_nanos(call.rows, call.returns, |row| match call.has(1) {
                true => patterns.read(row, texts.get(row)?),
                false => Some(text::read_date(texts.get(row)?)?.and_time(NaiveTime::MIN)),
            })
        })
        .least(1),
        Function::new("flink_date_format", &[Any, Text], formatted, date_format),
        Function::new("timestampadd", &[Text, Number, Temporal], added_type, timestamp_add),
        Function::new("timestampdiff", &[Text, Temporal, Temporal], is::int, timestamp_diff),
        Function::new("flink_extract", &[Text, Temporal], extracted, |call| {
            let units = call.texts(0)?;
            let unit = units.get(0).map(str::to_uppercase);
            extract(call, 1, |_| unit.as_deref())
        })
        .strict(),
        part!("year", "YEAR"),
        part!("quarter", "QUARTER"),
        part!("month", "MONTH"),
        part!("week", "WEEK"),
        part!("dayofyear", "DOY"),
        part!("dayofmonth", "DAY"),
        part!("dayofweek", "DOW"),
        part!("hour", "HOUR"),
        part!("minute", "MINUTE"),
        part!("second", "SECOND"),
        Function::new("convert_tz", &[Text, Text, Text], is::text, |call| {
            let (texts, from, to) = (call.texts(0)?, call.texts(1)?, call.texts(2)?);
            let usual = Pattern::new(USUAL).expect("the usual pattern is one");
            call.make_texts(|row| {
                let at = read_usual(texts.get(row)?)?;
                let at = zone_of(to.get(row)?)?.to_local(zone_of(from.get(row)?)?.to_utc_late(at));
                let mut shown = String::new();
                usual.show(at, &mut shown);
                Some(shown)
            })
        }),
        // Two periods: where each starts, and where it ends or how long it is.
        Function::new("flink_overlaps", &[Temporal; 4], overlaps_type, overlaps).strict(),
        // An operator that keeps its watermark puts that in place of the call, which it knows by this name.
        Function::new("current_watermark", &[Temporal], watermark_type, |_| {
            Err(user_error("CURRENT_WATERMARK has a value only in a query's SELECT list and its conditions"))
        })
        .volatile(),
    ];
    functions.into_iter().map(Function::make).collect()
}

/// Of a date or time, or of a text that is one.
fn formatted(of: &Types<'_>) -> Option<DataType> {
    (Text.accepts(&of.types[0]) || is_temporal(&of.types[0])).then_some(DataType::Utf8)
}

/// A TIME has no part of a date.
fn extracted(of: &Types<'_>) -> Option<DataType> {
    let of_time = ["HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND", "NANOSECOND", "EPOCH"];
    let is_there = match (&of.types[1], of.constant(0)) {
        (DataType::Time32(_), Some(unit)) => of_time.contains(&unit.to_uppercase().as_str()),
        _ => true,
    };
    is_there.then_some(DataType::Int64)
}

fn watermark_type(of: &Types<'_>) -> Option<DataType> {
    is::first(of).filter(|of| matches!(of, DataType::Timestamp(..)))
}

fn overlaps_type(of: &Types<'_>) -> Option<DataType> {
    let end = |start: &DataType, end: &DataType| match is_interval(end) {
        true => arithmetic_type(Arithmetic::Add, start, end),
        false => Some(end.clone()),
    };
    let ends = [end(&of.types[0], &of.types[1])?, end(&of.types[2], &of.types[3])?];
    let starts = [&of.types[0], &of.types[2]];
    if starts.iter().any(|of| is_interval(of)) {
        return None;
    }
    common_type(starts.into_iter().chain(&ends)).map(|_| DataType::Boolean)
}

/// Periods that only touch overlap too, and a period may be given from its end to its start.
fn overlaps(call: &Call<'_>) -> Result<ArrayRef> {
    let period = |at: usize| -> Result<_> {
        let (start, mut end) = (call.array(at)?, call.array(at + 1)?);
        if is_interval(end.data_type()) {
            let to = arithmetic_type(Arithmetic::Add, start.data_type(), end.data_type())
                .ok_or_else(|| user_error("OVERLAPS takes a time and an interval"))?;
            end = arithmetic::apply(Arithmetic::Add, &start, &end, &to)?;
        }
        let is_local = [&start, &end].map(|of| matches!(of.data_type(), DataType::Timestamp(_, Some(_))));
        let (start, end) = (Moments::new(&start)?, Moments::new(&end)?);
        let at = move |row: usize| {
            let clock = |at: NaiveDateTime, is_local: bool| if is_local { call.zone.to_local(at) } else { at };
            let (start, end) = (clock(start.get(row)?, is_local[0]), clock(end.get(row)?, is_local[1]));
            Some(if start <= end { (start, end) } else { (end, start) })
        };
        Ok(at)
    };
    let (left, right) = (period(0)?, period(2)?);
    call.make_bools(|row| {
        let ((left_start, left_end), (right_start, right_end)) = (left(row)?, right(row)?);
        Some(left_start <= right_end && right_start <= left_end)
    })
}

/// The patterns of a call; a constant one is taken apart once a batch.
struct Patterns {
    /// `None`: the usual one.
    texts: Option<Texts>,
    first: Option<(String, Option<Pattern>)>,
}

impl Patterns {
    fn of(call: &Call<'_>, at: usize) -> Result<Self> {
        let texts = if call.has(at) { Some(call.texts(at)?) } else { None };
        let first = match &texts {
            Some(texts) if call.rows > 0 => texts.get(0).map(str::to_owned),
            _ => Some(USUAL.to_owned()),
        };
        let first = first.map(|pattern| {
            let taken_apart = Pattern::new(&pattern);
            (pattern, taken_apart)
        });
        Ok(Self { texts, first })
    }

    /// Fails if the first pattern, which mostly is that of all rows, is none.
    fn check(self) -> Result<Self> {
        match &self.first {
            Some((text, None)) => {
                Err(user_error(format!("'{text}' is no pattern of a date, or has letters that are not supported")))
            }
            _ => Ok(self),
        }
    }

    /// `None` for NULL; `Some(None)` if it is no pattern.
    fn with<T>(&self, row: usize, of: impl FnOnce(&str, Option<&Pattern>) -> T) -> Option<T> {
        let text = match &self.texts {
            Some(texts) => texts.get(row)?,
            None => USUAL,
        };
        match &self.first {
            Some((first, pattern)) if first == text => Some(of(text, pattern.as_ref())),
            _ => Some(of(text, Pattern::new(text).as_ref())),
        }
    }

    fn show(&self, row: usize, at: NaiveDateTime) -> Result<Option<String>> {
        let show = |text: &str, pattern: Option<&Pattern>| match pattern {
            Some(pattern) => {
                let mut shown = String::with_capacity(text.len());
                pattern.show(at, &mut shown);
                Ok(shown)
            }
            None => Err(user_error(format!("'{text}' is no pattern of a date"))),
        };
        self.with(row, show).transpose()
    }

    fn read(&self, row: usize, text: &str) -> Option<NaiveDateTime> {
        match self.texts {
            Some(_) => self.with(row, |_, pattern| pattern?.read(text))?,
            None => read_usual(text),
        }
    }
}

fn unix_timestamp(call: &Call<'_>) -> Result<ArrayRef> {
    if !call.has(0) {
        return call.make::<Int64Type>(|_| Some(flott_env::now_ms().div_euclid(1000)));
    }
    let texts = call.texts(0)?;
    let patterns = Patterns::of(call, 1)?.check()?;
    call.make::<Int64Type>(|row| {
        let text = texts.get(row)?;
        Some(patterns.read(row, text).map_or(i64::MIN, |at| call.zone.to_utc_late(at).and_utc().timestamp()))
    })
}

/// Of a number and its precision, or of a text, its pattern and its zone.
fn to_timestamp_ltz(call: &Call<'_>) -> Result<ArrayRef> {
    if Text.accepts(call.data_type(0)) {
        let texts = call.texts(0)?;
        let patterns = Patterns::of(call, 1)?.check()?;
        let zones = if call.has(2) { Some(call.texts(2)?) } else { None };
        return from_nanos(call.rows, call.returns, |row| {
            let zone = match &zones {
                Some(zones) => zone_of(zones.get(row)?)?,
                // Not the session's.
                None => Zone::Offset(0),
            };
            Some(zone.to_utc(patterns.read(row, texts.get(row)?)?))
        });
    }
    let precision = if call.has(1) { Some(call.ints(1)?) } else { None };
    let unit = |row: usize| {
        let precision = precision.as_ref().map_or(Some(3), |precision| precision.get(row))?;
        u32::try_from(precision).ok().filter(|precision| *precision <= 9).map(|precision| 10i64.pow(precision))
    };
    if is_approximate(call.data_type(0)) {
        let values = call.doubles(0)?;
        return from_nanos(call.rows, call.returns, |row| {
            let millis = (values.get(row)? / unit(row)? as f64 * 1000.0) as i64;
            DateTime::from_timestamp_millis(millis).map(|at| at.naive_utc())
        });
    }
    let values = call.ints(0)?;
    from_nanos(call.rows, call.returns, |row| {
        let (value, unit) = (values.get(row)?, unit(row)?);
        let nanos = value.rem_euclid(unit).checked_mul(1_000_000_000 / unit)?;
        Some(DateTime::from_timestamp(value.div_euclid(unit), u32::try_from(nanos).ok()?)?.naive_utc())
    })
}

/// What a clock of the session shows.
fn local<'a>(call: &'a Call<'_>, at: usize) -> Result<impl Fn(usize) -> Option<NaiveDateTime> + 'a> {
    let column = &call.columns[at];
    let moments = Moments::new(&column.array)?;
    let is_local = matches!(column.array.data_type(), DataType::Timestamp(_, Some(_)));
    Ok(move |row: usize| {
        let found = moments.get(if column.is_constant { 0 } else { row })?;
        Some(if is_local { call.zone.to_local(found) } else { found })
    })
}

fn date_format(call: &Call<'_>) -> Result<ArrayRef> {
    let patterns = Patterns::of(call, 1)?;
    if Text.accepts(call.data_type(0)) {
        let texts = call.texts(0)?;
        return call.try_texts(|row| match texts.get(row).and_then(read_usual) {
            Some(at) => patterns.show(row, at),
            None => Ok(None),
        });
    }
    let moments = local(call, 0)?;
    call.try_texts(|row| match moments(row) {
        Some(at) => patterns.show(row, at),
        None => Ok(None),
    })
}

/// A unit as months or milliseconds.
fn length(unit: &str) -> Option<(i64, i64)> {
    Some(match unit.to_uppercase().trim_start_matches("SQL_TSI_") {
        "YEAR" => (12, 0),
        "QUARTER" => (3, 0),
        "MONTH" => (1, 0),
        "WEEK" => (0, 7 * 86_400_000),
        "DAY" => (0, 86_400_000),
        "HOUR" => (0, 3_600_000),
        "MINUTE" => (0, 60_000),
        "SECOND" => (0, 1000),
        "MILLISECOND" => (0, 1),
        _ => return None,
    })
}

/// A date with hours is a timestamp.
fn added_type(of: &Types<'_>) -> Option<DataType> {
    let is_day = |(months, millis): (i64, i64)| months > 0 || millis % 86_400_000 == 0;
    match of.types[2] {
        DataType::Date32 if !of.constant(0).and_then(length).is_none_or(is_day) => {
            Some(DataType::Timestamp(TimeUnit::Microsecond, None))
        }
        _ => Some(of.types[2].clone()),
    }
}

fn unit_length(units: &Texts) -> Result<(i64, i64)> {
    let unit = units.get(0).unwrap_or_default();
    length(unit).ok_or_else(|| user_error(format!("'{unit}' is no unit of time")))
}

fn timestamp_add(call: &Call<'_>) -> Result<ArrayRef> {
    let (months, millis) = unit_length(&call.texts(0)?)?;
    let counts = call.ints(1)?;
    let moments = Moments::new(&call.array(2)?)?;
    from_nanos(call.rows, call.returns, |row| {
        let (at, count) = (moments.get(row)?, counts.get(row)?);
        match months {
            0 => at.checked_add_signed(TimeDelta::try_milliseconds(count.checked_mul(millis)?)?),
            _ => plus_months(at, count.checked_mul(months)?),
        }
    })
}

fn timestamp_diff(call: &Call<'_>) -> Result<ArrayRef> {
    let (months, millis) = unit_length(&call.texts(0)?)?;
    let (from, to) = (local(call, 1)?, local(call, 2)?);
    call.make::<Int32Type>(|row| {
        let (from, to) = (from(row)?, to(row)?);
        Some(match months {
            0 => (to.signed_duration_since(from).num_milliseconds() / millis) as i32,
            _ => (months_between(from, to) / months) as i32,
        })
    })
}

/// Whole months.
fn months_between(from: NaiveDateTime, to: NaiveDateTime) -> i64 {
    if to < from {
        return -months_between(to, from);
    }
    let months = i64::from(to.year() - from.year()) * 12 + i64::from(to.month()) - i64::from(from.month());
    // The last day of a shorter month completes one.
    match plus_months(from, months) {
        Some(reached) if reached > to => months - 1,
        _ => months,
    }
}

fn extract<'u>(call: &Call<'_>, at: usize, unit: impl Fn(usize) -> Option<&'u str>) -> Result<ArrayRef> {
    let Some(unit) = unit(0) else { return call.nulls() };
    let unknown = || user_error(format!("{unit} cannot be extracted"));
    match call.data_type(at) {
        DataType::Interval(_) => {
            let array = call.array(at)?;
            let months = array.as_primitive::<IntervalYearMonthType>();
            let of: fn(i64) -> i64 = match unit {
                "YEAR" => |months| months / 12,
                "QUARTER" => |months| months % 12 / 3 + 1,
                "MONTH" => |months| months % 12,
                _ => return Err(unknown()),
            };
            return Ok(Arc::new(months.unary::<_, Int64Type>(|months| of(months.into()))));
        }
        DataType::Duration(_) => {
            let array = arrow_cast(&call.array(at)?, &DataType::Int64)?;
            let (each, of) = match unit {
                "DAY" => (86_400_000, i64::MAX),
                "HOUR" => (3_600_000, 24),
                "MINUTE" => (60_000, 60),
                "SECOND" => (1000, 60),
                "MILLISECOND" => (1, 1000),
                "EPOCH" => (1000, i64::MAX),
                _ => return Err(unknown()),
            };
            return Ok(Arc::new(array.as_primitive::<Int64Type>().unary::<_, Int64Type>(|value| value / each % of)));
        }
        _ => {}
    }
    let of: fn(NaiveDateTime) -> i64 = match unit {
        "YEAR" => |at| at.year().into(),
        "ISOYEAR" => |at| at.iso_week().year().into(),
        "QUARTER" => |at| (at.month0() / 3 + 1).into(),
        "MONTH" => |at| at.month().into(),
        "WEEK" => |at| at.iso_week().week().into(),
        "DAY" => |at| at.day().into(),
        "DOY" => |at| at.ordinal().into(),
        "DOW" => |at| (at.weekday().num_days_from_sunday() + 1).into(),
        "ISODOW" => |at| at.weekday().number_from_monday().into(),
        "DECADE" => |at| (at.year().div_euclid(10)).into(),
        "CENTURY" => |at| ((at.year() + 99).div_euclid(100)).into(),
        "MILLENNIUM" => |at| ((at.year() + 999).div_euclid(1000)).into(),
        "EPOCH" => |at| at.and_utc().timestamp(),
        "HOUR" => |at| at.hour().into(),
        "MINUTE" => |at| at.minute().into(),
        "SECOND" => |at| at.second().into(),
        "MILLISECOND" => |at| (at.nanosecond() / 1_000_000).into(),
        "MICROSECOND" => |at| (at.nanosecond() / 1000).into(),
        "NANOSECOND" => |at| at.nanosecond().into(),
        _ => return Err(unknown()),
    };
    if unit == "EPOCH" {
        // Wherever the clock is.
        let moments = Moments::new(&call.array(at)?)?;
        return call.make::<Int64Type>(|row| moments.get(row).map(of));
    }
    let moments = local(call, at)?;
    call.make::<Int64Type>(|row| moments(row).map(of))
}

/// FLOOR and CEIL of a date or time.
pub(crate) fn to_unit(call: &Call<'_>, is_up: bool) -> Result<ArrayRef> {
    let units = call.texts(1)?;
    let unit = units.get(0).unwrap_or_default().to_uppercase();
    let is_local = matches!(call.data_type(0), DataType::Timestamp(_, Some(_)));
    let moments = local(call, 0)?;
    floor(NaiveDateTime::default(), &unit).ok_or_else(|| user_error(format!("'{unit}' is no unit of time")))?;
    from_nanos(call.rows, call.returns, |row| {
        let at = moments(row)?;
        let mut found = floor(at, &unit)?;
        if is_up && found < at {
            found = next(found, &unit)?;
        }
        Some(if is_local { call.zone.to_utc(found) } else { found })
    })
}

fn floor(at: NaiveDateTime, unit: &str) -> Option<NaiveDateTime> {
    let (date, midnight) = (at.date(), NaiveTime::MIN);
    let day = |year: i32, month: u32| Some(NaiveDate::from_ymd_opt(year, month, 1)?.and_time(midnight));
    let year = at.year();
    match unit {
        "MILLENNIUM" => day((year - 1).div_euclid(1000) * 1000 + 1, 1),
        "CENTURY" => day((year - 1).div_euclid(100) * 100 + 1, 1),
        "DECADE" => day(year.div_euclid(10) * 10, 1),
        "YEAR" => day(year, 1),
        "QUARTER" => day(year, at.month0() / 3 * 3 + 1),
        "MONTH" => day(year, at.month()),
        // From Sunday, as in Flink.
        "WEEK" => {
            Some(date.checked_sub_days(Days::new(date.weekday().num_days_from_sunday().into()))?.and_time(midnight))
        }
        _ => {
            let step = match unit {
                "DAY" => 86_400_000_000_000,
                "HOUR" => 3_600_000_000_000,
                "MINUTE" => 60_000_000_000,
                "SECOND" => 1_000_000_000,
                "MILLISECOND" => 1_000_000,
                "MICROSECOND" => 1000,
                _ => return None,
            };
            let nanos = i64::from(at.num_seconds_from_midnight()) * 1_000_000_000 + i64::from(at.nanosecond());
            date.and_time(midnight).checked_add_signed(TimeDelta::nanoseconds(nanos / step * step))
        }
    }
}

fn next(at: NaiveDateTime, unit: &str) -> Option<NaiveDateTime> {
    match unit {
        "MILLENNIUM" => plus_months(at, 12_000),
        "CENTURY" => plus_months(at, 1200),
        "DECADE" => plus_months(at, 120),
        "MICROSECOND" => at.checked_add_signed(TimeDelta::microseconds(1)),
        _ => match length(unit)? {
            (0, millis) => at.checked_add_signed(TimeDelta::milliseconds(millis)),
            (months, _) => plus_months(at, months),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::define::Zone;

    #[test]
    fn zones_have_gaps_and_overlaps() {
        let berlin = zone_of("Europe/Berlin").expect("a zone");
        let at = |text: &str| read_usual(text).expect("a timestamp");
        assert_eq!(berlin.to_utc_late(at("2024-10-27 02:30:00")), at("2024-10-27 01:30:00"));
        assert_eq!(berlin.to_utc(at("2024-10-27 02:30:00")), at("2024-10-27 00:30:00"));
        assert_eq!(berlin.to_utc(at("2024-03-31 02:30:00")), at("2024-03-31 01:30:00"));
        assert!(matches!(zone_of("GMT+08:00"), Some(Zone::Offset(28_800))));
    }
}
