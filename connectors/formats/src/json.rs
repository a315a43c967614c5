//! A record is a line with one JSON value.

use std::marker::PhantomData;

use flott_core::{Error, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::lines::first_line;
use crate::{Decoded, Decoder, Encoder, Malformed};

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Makes a `T` of every line; blank lines are passed over.
pub struct JsonDecoder<T> {
    row: PhantomData<fn() -> T>,
}

impl<T> JsonDecoder<T> {
    /// A decoder of JSON lines.
    pub fn new() -> Self {
        Self { row: PhantomData }
    }
}

impl<T> Default for JsonDecoder<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: DeserializeOwned> Decoder<T> for JsonDecoder<T> {
    fn decode(&mut self, input: &[u8], is_end: bool, rows_max: usize, rows: &mut Vec<T>) -> Decoded {
        let rows_end = rows.len() + rows_max;
        let mut at = 0;
        while rows.len() < rows_end {
            let Some(line) = first_line(&input[at..], is_end) else { break };
            let text = line.text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line.text).trim_ascii();
            if !text.is_empty() {
                match serde_json::from_slice(text) {
                    Ok(row) => rows.push(row),
                    Err(error) => {
                        let malformed = Malformed { bytes: line.bytes, reason: reason(&error) };
                        return Decoded { bytes: at, malformed: Some(malformed) };
                    }
                }
            }
            at += line.bytes;
        }
        Decoded { bytes: at, malformed: None }
    }
}

/// serde_json counts lines in what it was given, which is one line.
fn reason(error: &serde_json::Error) -> String {
    let message = error.to_string();
    let what = message.rfind(" at line ").map_or(message.as_str(), |at| &message[..at]);
    format!("column {}: {what}", error.column())
}

/// Writes every record as one line of JSON.
#[derive(Default)]
pub struct JsonEncoder;

impl<T: Serialize> Encoder<T> for JsonEncoder {
    fn encode(&mut self, rows: &[T], _is_first: bool, out: &mut Vec<u8>) -> Result<()> {
        for row in rows {
            serde_json::to_writer(&mut *out, row)
                .map_err(|error| Error::user_code(format!("a record cannot be written as JSON: {error}")))?;
            out.push(b'\n');
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    struct Click {
        user: u32,
        page: String,
    }

    #[test]
    fn lines_become_values_and_come_back() {
        let input = b"\xef\xbb\xbf{\"user\":1,\"page\":\"a\\nb\"}\r\n\n  \n{\"user\":2,\"page\":\"\xc3\xa9\"}";
        let mut rows: Vec<Click> = Vec::new();
        let decoded = JsonDecoder::new().decode(input, true, 10, &mut rows);
        assert_eq!(decoded, Decoded { bytes: input.len(), malformed: None });
        let expected = [Click { user: 1, page: "a\nb".into() }, Click { user: 2, page: "é".into() }];
        assert_eq!(rows, expected);

        let mut out = Vec::new();
        JsonEncoder.encode(&rows, true, &mut out).unwrap();
        let mut again: Vec<Click> = Vec::new();
        JsonDecoder::new().decode(&out, false, 10, &mut again);
        assert_eq!(again, expected);
    }

    #[test]
    fn a_malformed_line_says_where_and_why() {
        let input = b"{\"user\":1,\"page\":\"a\"}\n{\"user\":\"x\",\"page\":\"a\"}\n{}\n";
        let mut rows: Vec<Click> = Vec::new();
        let decoded = JsonDecoder::new().decode(input, true, 10, &mut rows);
        assert_eq!((rows.len(), decoded.bytes), (1, 22));
        let malformed = decoded.malformed.unwrap();
        assert_eq!(malformed.bytes, 24);
        assert!(malformed.reason.starts_with("column 1"), "{}", malformed.reason);
        assert!(malformed.reason.contains(": invalid type: string \"x\", expected u32"), "{}", malformed.reason);
        let decoded = JsonDecoder::new().decode(&input[46..], true, 10, &mut rows);
        assert!(decoded.malformed.unwrap().reason.ends_with(": missing field `user`"));
    }
}
