//! Event time, watermarks, and durations as Flink writes them.

use std::time::Duration;

use crate::error::{Error, Result};

/// Milliseconds since 1970-01-01T00:00:00Z, of an event or of the wall clock.
pub type Timestamp = i64;

/// A watermark of this value says nothing yet.
pub const WATERMARK_MIN: Timestamp = i64::MIN;

/// A watermark of this value says that no record will follow.
pub const WATERMARK_MAX: Timestamp = i64::MAX;

/// Parses a duration such as `5 ms`, `10s`, `1 min`, `2 h`, `1 d`; a bare number is milliseconds.
///
/// ```
/// use std::time::Duration;
/// use flott_core::time::parse_duration;
/// assert_eq!(parse_duration("5 ms").unwrap(), Duration::from_millis(5));
/// assert_eq!(parse_duration("10min").unwrap(), Duration::from_secs(600));
/// assert_eq!(parse_duration("250").unwrap(), Duration::from_millis(250));
/// assert!(parse_duration("3 fortnights").is_err());
/// ```
pub fn parse_duration(text: &str) -> Result<Duration> {
    let trimmed = text.trim();
    let split = trimmed.find(|c: char| !c.is_ascii_digit()).unwrap_or(trimmed.len());
    let (digits, unit) = trimmed.split_at(split);
    let nanos_per_unit: u64 = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "ms" | "milli" | "millis" | "millisecond" | "milliseconds" => 1_000_000,
        "ns" | "nano" | "nanos" | "nanosecond" | "nanoseconds" => 1,
        "us" | "µs" | "micro" | "micros" | "microsecond" | "microseconds" => 1_000,
        "s" | "sec" | "secs" | "second" | "seconds" => 1_000_000_000,
        "m" | "min" | "mins" | "minute" | "minutes" => 60_000_000_000,
        "h" | "hour" | "hours" => 3_600_000_000_000,
        "d" | "day" | "days" => 86_400_000_000_000,
        _ => return Err(not_a_duration(text)),
    };
    let count: u64 = digits.parse().map_err(|_| not_a_duration(text))?;
    count.checked_mul(nanos_per_unit).map(Duration::from_nanos).ok_or_else(|| not_a_duration(text))
}

fn not_a_duration(text: &str) -> Error {
    Error::input(format!(
        "'{text}' is not a duration: write a number and a unit, such as '5 ms', '10 s', '1 min', '2 h' or '1 d'"
    ))
}
