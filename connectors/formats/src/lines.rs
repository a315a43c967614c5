//! Where lines end.

use memchr::memchr;

/// A line of some input.
pub(crate) struct Line<'a> {
    /// Its text, without its line end (`\n` or `\r\n`).
    pub(crate) text: &'a [u8],
    /// Its length with its line end.
    pub(crate) bytes: usize,
}

/// The first line of `input`, if it is all there.
pub(crate) fn first_line(input: &[u8], is_end: bool) -> Option<Line<'_>> {
    match memchr(b'\n', input) {
        Some(at) => {
            let text = &input[..at];
            Some(Line { text: text.strip_suffix(b"\r").unwrap_or(text), bytes: at + 1 })
        }
        None if is_end && !input.is_empty() => Some(Line { text: input, bytes: input.len() }),
        None => None,
    }
}
