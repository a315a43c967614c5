//! Job binaries are named by the SHA-256 of their content, so that a name cannot lie.

use std::fmt::Write;

use flott_core::{Error, Result};

/// The largest job binary, in bytes.
pub const ARTIFACT_BYTES_MAX: u64 = 2 << 30;

/// Refuses what is not a SHA-256 in lower-case hexadecimal. What passes is safe to use as a file name.
///
/// ```
/// use flott_proto::artifact::check_sha256;
/// assert!(check_sha256(&"0a".repeat(32)).is_ok());
/// assert!(check_sha256("../../etc/passwd").is_err());
/// ```
pub fn check_sha256(text: &str) -> Result<()> {
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    if text.len() == 64 && text.bytes().all(is_digit) {
        return Ok(());
    }
    let shown: String = text.chars().take(80).collect();
    Err(Error::input(format!("'{shown}' is not a SHA-256: expected 64 hexadecimal digits in lower case")))
}

/// Bytes in lower-case hexadecimal.
///
/// ```
/// assert_eq!(flott_proto::artifact::to_hex(&[0, 171]), "00ab");
/// ```
pub fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
