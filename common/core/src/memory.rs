//! Memory sizes as Flink writes them.

use crate::error::{Error, Result};

/// Parses a size such as `64kb`, `128 mb`, `1g`; a bare number is bytes. Units are powers of 1024.
///
/// ```
/// use flott_core::memory::parse_bytes;
/// assert_eq!(parse_bytes("32 kb").unwrap(), 32 * 1024);
/// assert_eq!(parse_bytes("1g").unwrap(), 1 << 30);
/// assert!(parse_bytes("lots").is_err());
/// ```
pub fn parse_bytes(text: &str) -> Result<u64> {
    let trimmed = text.trim();
    let split = trimmed.find(|c: char| !c.is_ascii_digit()).unwrap_or(trimmed.len());
    let (digits, unit) = trimmed.split_at(split);
    let shift = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" | "bytes" => 0,
        "k" | "kb" | "kibibytes" => 10,
        "m" | "mb" | "mebibytes" => 20,
        "g" | "gb" | "gibibytes" => 30,
        "t" | "tb" | "tebibytes" => 40,
        _ => return Err(not_a_size(text)),
    };
    let count: u64 = digits.parse().map_err(|_| not_a_size(text))?;
    count.checked_mul(1 << shift).ok_or_else(|| not_a_size(text))
}

fn not_a_size(text: &str) -> Error {
    Error::input(format!("'{text}' is not a memory size: write a number and a unit, such as '32kb', '64mb' or '1g'"))
}
