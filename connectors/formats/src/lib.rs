//! From bytes to records and back: text lines, CSV, JSON lines.
//!
//! A [`Decoder`] takes bytes as they come and appends rows; it knows nothing of files. Whoever feeds it keeps the
//! position, and decides what becomes of a [`Malformed`] record. An [`Encoder`] does the reverse for sinks.
//!
//! ```
//! use flott_formats::{CsvDecoder, CsvOptions, Decoder};
//! #[derive(serde::Deserialize, PartialEq, Debug)]
//! struct Flight { origin: String, delay: Option<i32> }
//!
//! let mut decoder = CsvDecoder::<Flight>::new(&CsvOptions::default());
//! decoder.header(b"delay,origin\n").unwrap();
//! let mut rows = Vec::new();
//! let decoded = decoder.decode(b"7,JFK\n,EWR\nlate,LGA\n", true, 100, &mut rows);
//! assert_eq!(rows[0], Flight { origin: "JFK".into(), delay: Some(7) });
//! assert_eq!(rows[1], Flight { origin: "EWR".into(), delay: None });
//! let malformed = decoded.malformed.unwrap();
//! assert!(malformed.reason.starts_with("field 'delay' (column 1): "));
//! ```
//!
//! - [`TextDecoder`], [`TextEncoder`]: a record is a line
//! - [`CsvDecoder`], [`CsvEncoder`]: a record is a row, matched to the fields of a type by name or by place
//! - [`JsonDecoder`], [`JsonEncoder`]: a record is a line with one JSON value
//! - [`BlockFormat`]: what formats are whose files are read in pieces of their own

mod blocks;
mod csv;
mod json;
mod lines;
mod text;

use flott_core::Result;

pub use crate::blocks::{BlockFormat, BlockReader, FileBytes, Position};
pub use crate::csv::{CsvDecoder, CsvEncoder, CsvOptions};
pub use crate::json::{JsonDecoder, JsonEncoder};
pub use crate::text::{TextDecoder, TextEncoder};

/// What becomes of a record that cannot be decoded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnError {
    /// The job fails, with the file, the line and the reason.
    #[default]
    Fail,
    /// The record is left out and counted.
    Skip,
}

/// A record that cannot be decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// How many bytes it takes, its line end included: where decoding goes on if it is skipped.
    pub bytes: usize,
    /// Which field or column is wrong, and why.
    pub reason: String,
}

/// How far [`Decoder::decode`] came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decoded {
    /// How many bytes of the input the rows took that were appended, and blank lines between them.
    pub bytes: usize,
    /// The record behind those bytes, if it is what stopped the decoder.
    pub malformed: Option<Malformed>,
}

/// What is known of a file besides its name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileInfo {
    /// Its length when it was listed, as it is stored: compressed, if it is.
    pub bytes: u64,
    /// When it was changed last, in milliseconds since 1970.
    pub modified_ms: i64,
}

/// Makes rows of bytes.
pub trait Decoder<T>: Send {
    /// What is known of the file. Comes before everything else, but only if whoever feeds the decoder was asked to find out.
    fn opened(&mut self, info: FileInfo) -> Result<()> {
        let _ = info;
        Ok(())
    }

    /// The file's first line, where that is not a record. Comes before all others.
    fn header(&mut self, line: &[u8]) -> Result<()> {
        let _ = line;
        Ok(())
    }

    /// Decodes whole records from the front of `input` and appends up to `rows_max` rows. `is_end` says that nothing
    /// follows `input`, so that its last record needs no line end, and nothing of `input` is left undecoded if there
    /// was room for its rows. Otherwise a record that `input` holds only a part of is left for the next call.
    fn decode(&mut self, input: &[u8], is_end: bool, rows_max: usize, rows: &mut Vec<T>) -> Decoded;
}

/// Makes the bytes of one file of rows.
pub trait Encoder<T>: Send {
    /// Appends `rows` to `out`, or keeps them for later. `is_first` says that they are the first of the file.
    fn encode(&mut self, rows: &[T], is_first: bool, out: &mut Vec<u8>) -> Result<()>;

    /// How many bytes the rows that it keeps will take, about.
    fn bytes_kept(&self) -> u64 {
        0
    }

    /// How much memory they take, about.
    fn memory_bytes(&self) -> u64 {
        0
    }

    /// Appends what is missing at the end of the file. Nothing is encoded after that.
    fn finish(&mut self, out: &mut Vec<u8>) -> Result<()> {
        let _ = out;
        Ok(())
    }
}
