//! Values as Flink prints them, and what Flink reads from texts.

use std::fmt::{LowerExp, Write};
use std::str::FromStr;

use chrono::{DateTime, Datelike, NaiveDate, NaiveDateTime, NaiveTime, Timelike};

/// A DECIMAL with all digits of its scale.
pub(crate) fn decimal(value: i128, scale: u8) -> String {
    let digits = value.unsigned_abs().to_string();
    let scale = usize::from(scale);
    let sign = if value < 0 { "-" } else { "" };
    if scale == 0 {
        return format!("{sign}{digits}");
    }
    let padded = format!("{digits:0>width$}", width = scale + 1);
    let (whole, fraction) = padded.split_at(padded.len() - scale);
    format!("{sign}{whole}.{fraction}")
}

/// As Java prints a number, from the shortest digits in scientific form (`1.5e-7`).
fn java_number(scientific: &str) -> String {
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let (sign, mantissa) = mantissa.strip_prefix('-').map_or(("", mantissa), |rest| ("-", rest));
    let digits = mantissa.replace('.', "");
    if digits.bytes().all(|digit| digit == b'0') {
        return format!("{sign}0.0");
    }
    if (-3..7).contains(&exponent) {
        if exponent < 0 {
            return format!("{sign}0.{}{digits}", "0".repeat((-exponent - 1) as usize));
        }
        let whole = exponent as usize + 1;
        let digits = format!("{digits:0<width$}", width = whole + 1);
        return format!("{sign}{}.{}", &digits[..whole], &digits[whole..]);
    }
    let fraction = if digits.len() > 1 { &digits[1..] } else { "0" };
    format!("{sign}{}.{fraction}E{exponent}", &digits[..1])
}

/// A DOUBLE.
pub(crate) fn double(value: f64) -> String {
    match value {
        _ if value.is_nan() => "NaN".to_owned(),
        _ if value.is_infinite() => if value > 0.0 { "Infinity" } else { "-Infinity" }.to_owned(),
        _ => java_number(&shortest(value, value.is_subnormal())),
    }
}

/// The fewest digits that say the number, as `1.5e-7`. Of the least numbers one digit says several: Java then shows two, the
/// nearest to the number.
fn shortest<T: LowerExp + FromStr + PartialEq + Copy>(value: T, is_subnormal: bool) -> String {
    let shown = format!("{value:e}");
    if is_subnormal && !shown.contains('.') {
        let nearer = format!("{value:.1e}");
        if nearer.parse().is_ok_and(|read: T| read == value) {
            return nearer;
        }
    }
    shown
}

/// A FLOAT.
pub(crate) fn float(value: f32) -> String {
    if value.is_finite() { java_number(&shortest(value, value.is_subnormal())) } else { double(f64::from(value)) }
}

/// A day as a date.
pub(crate) fn date_of(days: i64) -> Option<NaiveDate> {
    Some(DateTime::from_timestamp(days.checked_mul(86_400)?, 0)?.date_naive())
}

/// A date as days since 1970.
pub(crate) fn days_of(date: NaiveDate) -> i32 {
    date.num_days_from_ce() - 719_163
}

/// `2024-02-29`
pub(crate) fn date(days: i64) -> Option<String> {
    let date = date_of(days)?;
    Some(format!("{:04}-{:02}-{:02}", date.year(), date.month(), date.day()))
}

/// `12:34:56`, with what there is behind the second.
pub(crate) fn time(millis: i64) -> String {
    let (seconds, millis) = (millis.div_euclid(1000), millis.rem_euclid(1000));
    let mut shown = format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    if millis != 0 {
        let _ = write!(shown, ".{}", format!("{millis:03}").trim_end_matches('0'));
    }
    shown
}

/// `2024-02-29 12:34:56.123`, with so many digits.
pub(crate) fn timestamp(at: NaiveDateTime, precision: u8) -> String {
    let mut shown = format!(
        "{:04}-{:02}-{:02} {:02}:{:02}:{:02}",
        at.year(),
        at.month(),
        at.day(),
        at.hour(),
        at.minute(),
        at.second()
    );
    if precision > 0 {
        let _ = write!(shown, ".{}", &format!("{:09}", at.nanosecond())[..usize::from(precision)]);
    }
    shown
}

/// `+1-02`
pub(crate) fn months(value: i64) -> String {
    let sign = if value < 0 { '-' } else { '+' };
    format!("{sign}{}-{:02}", value.abs() / 12, value.abs() % 12)
}

/// `+1 02:03:04.000`
pub(crate) fn millis(value: i64) -> String {
    let sign = if value < 0 { '-' } else { '+' };
    let value = value.unsigned_abs();
    let seconds = value / 1000;
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    format!("{sign}{days} {hours:02}:{minutes:02}:{:02}.{:03}", seconds % 60, value % 1000)
}

/// A whole number; what follows a point is dropped.
pub(crate) fn read_int(text: &str) -> Option<i64> {
    let text = text.trim_matches(|c: char| c <= ' ');
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let is_number = fraction.bytes().all(|digit| digit.is_ascii_digit());
    match whole {
        "" | "+" | "-" if fraction.is_empty() => None,
        "" | "+" | "-" => is_number.then_some(0),
        _ => whole.parse().ok().filter(|_| is_number),
    }
}

/// As Java's `Double.parseDouble`.
pub(crate) fn read_double(text: &str) -> Option<f64> {
    let text = text.trim_matches(|c: char| c <= ' ');
    let rest = text.trim_start_matches(['+', '-']);
    match rest {
        "NaN" => return Some(f64::NAN),
        "Infinity" => return Some(if text.starts_with('-') { f64::NEG_INFINITY } else { f64::INFINITY }),
        _ if !rest.starts_with(|c: char| c.is_ascii_digit() || c == '.') => return None,
        _ => {}
    }
    text.strip_suffix(['d', 'D', 'f', 'F']).unwrap_or(text).parse().ok()
}

/// The digits and the scale of a decimal number, with up to 76 digits.
pub(crate) fn read_decimal(text: &str) -> Option<(i128, i32)> {
    let text = text.trim_matches(|c: char| c <= ' ');
    let (mantissa, exponent) = match text.find(['e', 'E']) {
        Some(at) => (&text[..at], text[at + 1..].parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (is_negative, mantissa) = match mantissa.as_bytes().first()? {
        b'-' => (true, &mantissa[1..]),
        b'+' => (false, &mantissa[1..]),
        _ => (false, mantissa),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let mut value = 0i128;
    let mut scale = -exponent;
    for (at, digit) in whole.bytes().chain(fraction.bytes()).enumerate() {
        if !digit.is_ascii_digit() {
            return None;
        }
        let behind = at >= whole.len();
        // What is behind the 38th digit cannot count; what is before it makes the number too large.
        match value.checked_mul(10).and_then(|value| value.checked_add(i128::from(digit - b'0'))) {
            Some(next) => {
                value = next;
                scale += i32::from(behind);
            }
            None => scale -= i32::from(!behind),
        }
    }
    Some((if is_negative { -value } else { value }, scale))
}

/// TRUE and FALSE, and what else says so.
pub(crate) fn read_bool(text: &str) -> Option<bool> {
    match text.trim().to_ascii_lowercase().as_str() {
        "t" | "true" | "y" | "yes" | "1" => Some(true),
        "f" | "false" | "n" | "no" | "0" => Some(false),
        _ => None,
    }
}

fn number(text: &str) -> Option<u32> {
    let is_number = !text.is_empty() && text.len() <= 9 && text.bytes().all(|digit| digit.is_ascii_digit());
    is_number.then(|| text.parse().ok())?
}

/// `2024-02-29`, `2024-2-9`, `2024-02`, `2024`; a time behind it is dropped.
pub(crate) fn read_date(text: &str) -> Option<NaiveDate> {
    let text = text.trim();
    let text = text.split_once([' ', 'T']).map_or(text, |(date, _)| date);
    let mut parts = text.split('-');
    let year = number(parts.next()?)?;
    let month = parts.next().map_or(Some(1), number)?;
    let day = parts.next().map_or(Some(1), number)?;
    if parts.next().is_some() || year > 9999 {
        return None;
    }
    NaiveDate::from_ymd_opt(year as i32, month, day)
}

/// `12:34:56.789`, `12:34`, `12`.
pub(crate) fn read_time(text: &str) -> Option<NaiveTime> {
    let (text, fraction) = text.trim().split_once('.').unwrap_or((text.trim(), ""));
    let mut parts = text.split(':');
    let hour = number(parts.next()?)?;
    let minute = parts.next().map_or(Some(0), number)?;
    let second = parts.next().map_or(Some(0), number)?;
    let nanos = if fraction.is_empty() { 0 } else { number(&format!("{fraction:0<9}")[..9.max(fraction.len())])? };
    if parts.next().is_some() {
        return None;
    }
    NaiveTime::from_hms_nano_opt(hour, minute, second, nanos)
}

/// A date, and a time if there is one. Unlike a DATE, it needs a month and a day.
pub(crate) fn read_timestamp(text: &str) -> Option<NaiveDateTime> {
    let text = text.trim();
    if text.split([' ', 'T']).next()?.split('-').count() < 3 {
        return None;
    }
    match text.split_once([' ', 'T']) {
        Some((date, time)) => Some(read_date(date)?.and_time(read_time(time)?)),
        None => Some(read_date(text)?.and_time(NaiveTime::MIN)),
    }
}
