//! A record is a line.

use std::fmt::Display;
use std::io::Write;

use flott_core::{Error, Result};
use memchr::memchr_iter;

use crate::{Decoded, Decoder, Encoder, Malformed};

/// Makes a `String` of every line, without its `\n` or `\r\n`. Empty lines are records too.
#[derive(Default)]
pub struct TextDecoder {
    /// Where the lines of a call end, kept for its buffer.
    ends: Vec<usize>,
}

impl TextDecoder {
    /// A decoder of UTF-8 text.
    pub fn new() -> Self {
        Self::default()
    }
}

impl Decoder<String> for TextDecoder {
    fn decode(&mut self, input: &[u8], is_end: bool, rows_max: usize, rows: &mut Vec<String>) -> Decoded {
        self.ends.clear();
        self.ends.extend(memchr_iter(b'\n', input).take(rows_max).map(|at| at + 1));
        let bytes_whole = self.ends.last().copied().unwrap_or(0);
        if is_end && self.ends.len() < rows_max && bytes_whole < input.len() {
            self.ends.push(input.len());
        }

        // One check for all lines is much cheaper than one a line.
        let all = &input[..self.ends.last().copied().unwrap_or(0)];
        let (text, is_valid) = match std::str::from_utf8(all) {
            Ok(text) => (text, true),
            Err(error) => (std::str::from_utf8(&all[..error.valid_up_to()]).unwrap_or_default(), false),
        };
        let mut start = 0;
        for &end in self.ends.iter().take_while(|end| **end <= text.len()) {
            let line = &text[start..end];
            let line = line.strip_suffix('\n').map_or(line, |line| line.strip_suffix('\r').unwrap_or(line));
            rows.push(line.to_owned());
            start = end;
        }
        let end_bad = self.ends.iter().find(|end| **end > start);
        let malformed = match end_bad {
            Some(end) if !is_valid => Some(Malformed {
                bytes: end - start,
                reason: format!("byte {} of the line is not valid UTF-8", text.len() - start + 1),
            }),
            _ => None,
        };
        Decoded { bytes: start, malformed }
    }
}

/// Writes every record as `Display` shows it, with a line end behind it.
#[derive(Default)]
pub struct TextEncoder;

impl<T: Display> Encoder<T> for TextEncoder {
    fn encode(&mut self, rows: &[T], _is_first: bool, out: &mut Vec<u8>) -> Result<()> {
        rows.iter()
            .try_for_each(|row| writeln!(out, "{row}"))
            .map_err(|_| Error::user_code("the Display implementation of a record failed"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(input: &[u8], is_end: bool, rows_max: usize) -> (Vec<String>, Decoded) {
        let mut rows = Vec::new();
        let decoded = TextDecoder::new().decode(input, is_end, rows_max, &mut rows);
        (rows, decoded)
    }

    #[test]
    fn lines_lose_their_ends_and_keep_everything_else() {
        let (rows, decoded) = decode("a\r\n\n b\té \r\nlast\r".as_bytes(), true, 100);
        assert_eq!(rows, ["a", "", " b\té ", "last\r"]);
        assert_eq!(decoded, Decoded { bytes: 17, malformed: None });
    }

    #[test]
    fn an_unfinished_line_waits_for_its_end() {
        let (rows, decoded) = decode(b"one\ntwo", false, 100);
        assert_eq!((rows, decoded.bytes), (vec!["one".to_owned()], 4));
        assert_eq!(decode(b"two", false, 100).1, Decoded::default());
        assert_eq!(decode(b"", true, 100).1, Decoded::default());
    }

    #[test]
    fn no_more_rows_than_asked_for() {
        let (rows, decoded) = decode(b"1\n2\n3", true, 2);
        assert_eq!((rows.len(), decoded.bytes), (2, 4));
    }

    #[test]
    fn invalid_utf8_stops_at_its_line() {
        let (rows, decoded) = decode(b"good\nb\xffd\nmore\n", true, 100);
        assert_eq!((rows, decoded.bytes), (vec!["good".to_owned()], 5));
        let malformed = decoded.malformed.unwrap();
        assert_eq!((malformed.bytes, malformed.reason.as_str()), (4, "byte 2 of the line is not valid UTF-8"));
        // Bytes behind the last whole line are not looked at yet.
        assert_eq!(decode(b"good\n\xff", false, 100).1, Decoded { bytes: 5, malformed: None });
    }

    #[test]
    fn records_become_lines() {
        let mut out = Vec::new();
        TextEncoder.encode(&[1, 20], true, &mut out).unwrap();
        assert_eq!(out, b"1\n20\n");
    }
}
