//! Rows as text, as Flink's `Row.toString` has them: what `print` and `flott sql -o changelog` put out.
//!
//! Values look as Java shows them: `1.0E10`, `2024-01-01T00:00`, `{x=1, y=null}`, and a row in a row as `+I[1, é]`. Java shows
//! arrays and bytes by their address; here they are `[1, null]` and `x'6869'`.

use std::fmt::Write;

use arrow::array::{Array, AsArray};
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, DurationMicrosecondType, DurationMillisecondType, DurationNanosecondType,
    DurationSecondType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, IntervalDayTimeType,
    IntervalMonthDayNanoType, IntervalUnit, IntervalYearMonthType, Time32MillisecondType, Time32SecondType,
    Time64MicrosecondType, Time64NanosecondType, TimeUnit, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType,
};

use crate::{Chunk, RowKind};

const NANOS_A_SECOND: i128 = 1_000_000_000;
const SECONDS_A_DAY: i64 = 86_400;

/// Appends a row: its kind, then its values, each behind a tab.
pub fn write_changelog(chunk: &Chunk, row: usize, out: &mut String) {
    out.push_str(chunk.kind(row).short());
    for column in chunk.batch.columns() {
        out.push('\t');
        write_value(column, row, out);
    }
}

/// Appends a row as `+I[1, a]`.
pub fn write_row(chunk: &Chunk, row: usize, out: &mut String) {
    write_fields(chunk.kind(row), chunk.batch.columns().iter().map(AsRef::as_ref), row, out);
}

fn write_fields<'a>(kind: RowKind, columns: impl Iterator<Item = &'a dyn Array>, row: usize, out: &mut String) {
    out.push_str(kind.short());
    out.push('[');
    for (index, column) in columns.enumerate() {
        if index > 0 {
            out.push_str(", ");
        }
        write_value(column, row, out);
    }
    out.push(']');
}

/// Appends a value.
pub fn write_value(array: &dyn Array, row: usize, out: &mut String) {
    if matches!(array.data_type(), DataType::Null) || array.is_null(row) {
        out.push_str("null");
        return;
    }
    // Writing to a string cannot fail.
    macro_rules! plain {
        ($type:ty) => {{
            let _ = write!(out, "{}", array.as_primitive::<$type>().value(row));
        }};
    }
    macro_rules! number {
        ($type:ty) => {
            array.as_primitive::<$type>().value(row)
        };
    }
    match array.data_type() {
        DataType::Boolean => out.push_str(if array.as_boolean().value(row) { "true" } else { "false" }),
        DataType::Int8 => plain!(Int8Type),
        DataType::Int16 => plain!(Int16Type),
        DataType::Int32 => plain!(Int32Type),
        DataType::Int64 => plain!(Int64Type),
        DataType::Float32 => {
            let value = number!(Float32Type);
            write_float(f64::from(value), &format!("{value:e}"), out);
        }
        DataType::Float64 => {
            let value = number!(Float64Type);
            write_float(value, &format!("{value:e}"), out);
        }
        DataType::Decimal128(_, scale) => write_decimal(number!(Decimal128Type), i32::from(*scale), out),
        DataType::Utf8 => out.push_str(array.as_string::<i32>().value(row)),
        DataType::Binary => write_bytes(array.as_binary::<i32>().value(row), out),
        DataType::FixedSizeBinary(_) => write_bytes(array.as_fixed_size_binary().value(row), out),
        DataType::Date32 => write_date(i64::from(number!(Date32Type)), out),
        DataType::Time32(TimeUnit::Second) => write_time(i128::from(number!(Time32SecondType)) * NANOS_A_SECOND, out),
        DataType::Time32(_) => write_time(i128::from(number!(Time32MillisecondType)) * 1_000_000, out),
        DataType::Time64(TimeUnit::Microsecond) => write_time(i128::from(number!(Time64MicrosecondType)) * 1000, out),
        DataType::Time64(_) => write_time(i128::from(number!(Time64NanosecondType)), out),
        DataType::Timestamp(unit, zone) => {
            let nanos = match unit {
                TimeUnit::Second => i128::from(number!(TimestampSecondType)) * NANOS_A_SECOND,
                TimeUnit::Millisecond => i128::from(number!(TimestampMillisecondType)) * 1_000_000,
                TimeUnit::Microsecond => i128::from(number!(TimestampMicrosecondType)) * 1000,
                TimeUnit::Nanosecond => i128::from(number!(TimestampNanosecondType)),
            };
            write_timestamp(nanos, zone.is_some(), out);
        }
        DataType::Duration(unit) => {
            let nanos = match unit {
                TimeUnit::Second => i128::from(number!(DurationSecondType)) * NANOS_A_SECOND,
                TimeUnit::Millisecond => i128::from(number!(DurationMillisecondType)) * 1_000_000,
                TimeUnit::Microsecond => i128::from(number!(DurationMicrosecondType)) * 1000,
                TimeUnit::Nanosecond => i128::from(number!(DurationNanosecondType)),
            };
            write_duration(nanos, out);
        }
        DataType::Interval(IntervalUnit::YearMonth) => write_period(number!(IntervalYearMonthType), out),
        DataType::Interval(IntervalUnit::DayTime) => {
            let value = number!(IntervalDayTimeType);
            let seconds = i128::from(value.days) * i128::from(SECONDS_A_DAY);
            write_duration(seconds * NANOS_A_SECOND + i128::from(value.milliseconds) * 1_000_000, out);
        }
        DataType::Interval(IntervalUnit::MonthDayNano) => {
            let value = number!(IntervalMonthDayNanoType);
            let seconds = i128::from(value.days) * i128::from(SECONDS_A_DAY);
            match value.months {
                0 => write_duration(seconds * NANOS_A_SECOND + i128::from(value.nanoseconds), out),
                months => write_period(months, out),
            }
        }
        DataType::List(_) => {
            let elements = array.as_list::<i32>().value(row);
            out.push('[');
            for index in 0..elements.len() {
                if index > 0 {
                    out.push_str(", ");
                }
                write_value(&elements, index, out);
            }
            out.push(']');
        }
        DataType::Map(..) => {
            let entries = array.as_map().value(row);
            out.push('{');
            for index in 0..entries.len() {
                if index > 0 {
                    out.push_str(", ");
                }
                write_value(entries.column(0), index, out);
                out.push('=');
                write_value(entries.column(1), index, out);
            }
            out.push('}');
        }
        DataType::Struct(_) => {
            write_fields(RowKind::Insert, array.as_struct().columns().iter().map(AsRef::as_ref), row, out);
        }
        other => {
            let _ = write!(out, "<{other}>");
        }
    }
}

/// As `Double.toString`: digits as few as tell the value from its neighbours, with an exponent below 10^-3 and from 10^7 on.
/// `scientific` is the value as Rust writes it with an exponent.
fn write_float(value: f64, scientific: &str, out: &mut String) {
    if value.is_nan() {
        out.push_str("NaN");
        return;
    }
    if value.is_sign_negative() {
        out.push('-');
    }
    if value.is_infinite() {
        out.push_str("Infinity");
        return;
    }
    // Java looks among numbers of two digits, at least, for the nearest one: it has 4.9E-324 where 5E-324 would do.
    let two = format!("{value:.1e}");
    let is_nearer = !scientific.contains('.') && !two.contains(".0e") && two.parse() == Ok(value);
    let scientific = if is_nearer { two.as_str() } else { scientific };
    let (mantissa, exponent) = scientific.trim_start_matches('-').split_once('e').unwrap_or((scientific, "0"));
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if value == 0.0 {
        out.push_str("0.0");
    } else if (-3..7).contains(&exponent) {
        if exponent < 0 {
            out.push_str("0.");
            (1..-exponent).for_each(|_| out.push('0'));
            out.push_str(&digits);
            return;
        }
        let whole = exponent as usize + 1;
        out.extend((0..whole).map(|index| digits.as_bytes().get(index).map_or('0', |digit| char::from(*digit))));
        out.push('.');
        out.push_str(digits.get(whole..).filter(|rest| !rest.is_empty()).unwrap_or("0"));
    } else {
        let (first, rest) = digits.split_at(1);
        let rest = if rest.is_empty() { "0" } else { rest };
        let _ = write!(out, "{first}.{rest}E{exponent}");
    }
}

/// As `BigDecimal.toString`: with an exponent if there would be more than six zeros behind the point.
fn write_decimal(value: i128, scale: i32, out: &mut String) {
    let digits = value.unsigned_abs().to_string();
    if value < 0 {
        out.push('-');
    }
    let adjusted = digits.len() as i32 - 1 - scale;
    if scale < 0 || adjusted < -6 {
        let (first, rest) = digits.split_at(1);
        out.push_str(first);
        if !rest.is_empty() {
            let _ = write!(out, ".{rest}");
        }
        let _ = write!(out, "E{}{adjusted}", if adjusted < 0 { "" } else { "+" });
        return;
    }
    let scale = scale as usize;
    let padded = format!("{digits:0>width$}", width = scale + 1);
    let (whole, fraction) = padded.split_at(padded.len() - scale);
    out.push_str(whole);
    if !fraction.is_empty() {
        let _ = write!(out, ".{fraction}");
    }
}

fn write_bytes(bytes: &[u8], out: &mut String) {
    out.push_str("x'");
    for byte in bytes {
        let _ = write!(out, "{byte:02x}");
    }
    out.push('\'');
}

/// As `LocalDate.toString`.
fn write_date(days: i64, out: &mut String) {
    let (year, month, day) = civil(days);
    let _ = match year {
        0..=9999 => write!(out, "{year:04}"),
        10_000.. => write!(out, "+{year}"),
        _ => write!(out, "-{:04}", -year),
    };
    let _ = write!(out, "-{month:02}-{day:02}");
}

/// Year, month and day of a day since 1970, in the proleptic Gregorian calendar. After Howard Hinnant, "chrono-Compatible
/// Low-Level Date Algorithms", `civil_from_days`.
fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_shifted + 2) / 5 + 1;
    let month = if month_shifted < 10 { month_shifted + 3 } else { month_shifted - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

/// As `LocalTime.toString`: without seconds if there are none.
fn write_time(nanos: i128, out: &mut String) {
    write_clock(nanos, false, out);
}

fn write_clock(nanos: i128, with_seconds: bool, out: &mut String) {
    let seconds = (nanos / NANOS_A_SECOND) as i64;
    let fraction = (nanos % NANOS_A_SECOND) as u32;
    let _ = write!(out, "{:02}:{:02}", seconds / 3600, seconds / 60 % 60);
    if with_seconds || seconds % 60 != 0 || fraction != 0 {
        let _ = write!(out, ":{:02}", seconds % 60);
        write_fraction(fraction, out);
    }
}

/// Three, six or nine digits, as many as are needed.
fn write_fraction(nanos: u32, out: &mut String) {
    let _ = match nanos {
        0 => Ok(()),
        _ if nanos.is_multiple_of(1_000_000) => write!(out, ".{:03}", nanos / 1_000_000),
        _ if nanos.is_multiple_of(1000) => write!(out, ".{:06}", nanos / 1000),
        _ => write!(out, ".{nanos:09}"),
    };
}

/// As `LocalDateTime.toString`, or, if it is an instant, as `Instant.toString`.
fn write_timestamp(nanos: i128, is_instant: bool, out: &mut String) {
    let nanos_a_day = i128::from(SECONDS_A_DAY) * NANOS_A_SECOND;
    write_date(nanos.div_euclid(nanos_a_day) as i64, out);
    out.push('T');
    write_clock(nanos.rem_euclid(nanos_a_day), is_instant, out);
    if is_instant {
        out.push('Z');
    }
}

/// As `Duration.toString`.
fn write_duration(nanos: i128, out: &mut String) {
    out.push_str("PT");
    if nanos == 0 {
        out.push_str("0S");
        return;
    }
    let seconds = nanos / NANOS_A_SECOND;
    let fraction = (nanos % NANOS_A_SECOND) as i64;
    let (hours, minutes, rest) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if hours != 0 {
        let _ = write!(out, "{hours}H");
    }
    if minutes != 0 {
        let _ = write!(out, "{minutes}M");
    }
    if rest != 0 || fraction != 0 {
        if nanos < 0 && rest == 0 {
            out.push('-');
        }
        let _ = write!(out, "{rest}");
        if fraction != 0 {
            let digits = format!("{:09}", fraction.unsigned_abs());
            let _ = write!(out, ".{}", digits.trim_end_matches('0'));
        }
        out.push('S');
    }
}

/// As `Period.toString`.
fn write_period(months: i32, out: &mut String) {
    let _ = match months {
        0 => write!(out, "P0D"),
        months => write!(out, "P{months}M"),
    };
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{
        ArrayRef, BinaryArray, Date32Array, Decimal128Array, DurationMillisecondArray, Float32Array, Float64Array,
        Time32MillisecondArray, TimestampMillisecondArray,
    };

    use super::*;

    fn all(array: impl Array + 'static) -> Vec<String> {
        let array: ArrayRef = Arc::new(array);
        let text = |row| {
            let mut out = String::new();
            write_value(&array, row, &mut out);
            out
        };
        (0..array.len()).map(text).collect()
    }

    #[test]
    fn numbers_look_as_in_java() {
        let floats =
            vec![1.0, 1e7, 1e-3, 1e-4, 123.456, 9_999_999.5, -0.0, 1.234e10, 5e-324, f64::NAN, f64::NEG_INFINITY];
        let shown = [
            "1.0",
            "1.0E7",
            "0.001",
            "1.0E-4",
            "123.456",
            "9999999.5",
            "-0.0",
            "1.234E10",
            "4.9E-324",
            "NaN",
            "-Infinity",
        ];
        assert_eq!(all(Float64Array::from(floats)), shown);
        assert_eq!(all(Float32Array::from(vec![0.1, 16_777_216.0])), ["0.1", "1.6777216E7"]);
        let decimals = Decimal128Array::from(vec![Some(12_345), Some(-5), Some(0), None]);
        let decimals = decimals.with_precision_and_scale(10, 2).unwrap();
        assert_eq!(all(decimals), ["123.45", "-0.05", "0.00", "null"]);
        let small = Decimal128Array::from(vec![1, 0]).with_precision_and_scale(20, 10).unwrap();
        assert_eq!(all(small), ["1E-10", "0E-10"]);
    }

    #[test]
    fn times_look_as_in_java() {
        assert_eq!(all(Date32Array::from(vec![0, -719_529, 2_932_897])), ["1970-01-01", "-0001-12-31", "+10000-01-01"]);
        let times = Time32MillisecondArray::from(vec![3_723_000, 3_660_000, 1, 86_399_999]);
        assert_eq!(all(times), ["01:02:03", "01:01", "00:00:00.001", "23:59:59.999"]);
        let stamps = vec![1_704_067_201_000, 1_704_067_200_000, -1];
        let local = TimestampMillisecondArray::from(stamps.clone());
        assert_eq!(all(local), ["2024-01-01T00:00:01", "2024-01-01T00:00", "1969-12-31T23:59:59.999"]);
        let instants = TimestampMillisecondArray::from(stamps).with_timezone("UTC");
        assert_eq!(all(instants), ["2024-01-01T00:00:01Z", "2024-01-01T00:00:00Z", "1969-12-31T23:59:59.999Z"]);
        let durations = DurationMillisecondArray::from(vec![90_000, 0, 500, 3_600_000, -500]);
        assert_eq!(all(durations), ["PT1M30S", "PT0S", "PT0.5S", "PT1H", "PT-0.5S"]);
        assert_eq!(all(BinaryArray::from(vec![&b"hi"[..]])), ["x'6869'"]);
    }
}
