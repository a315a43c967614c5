//! A record is a row of fields.

use std::marker::PhantomData;

use csv::ByteRecord;
use csv_core::ReadRecordResult;
use flott_core::{Error, Result};
use memchr::memchr;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{Decoded, Decoder, Encoder, Malformed};

/// How much of a bad value an error shows.
const VALUE_CHARS_MAX: usize = 40;

/// How a CSV file is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CsvOptions {
    /// What stands between two fields.
    pub delimiter: u8,
    /// Whether quoted fields may contain line breaks. Then a file cannot be read from the middle, and a quote that is
    /// never closed swallows everything behind it.
    pub is_multiline: bool,
    /// A text that means the same as an empty field, for example `NA`.
    pub null_literal: Option<String>,
}

impl Default for CsvOptions {
    fn default() -> Self {
        Self { delimiter: b',', is_multiline: false, null_literal: None }
    }
}

/// Makes a `T` of every row. With a header, columns are matched to the fields of `T` by name and every row has as many
/// fields as the header; without, by place. Blank lines are passed over; an empty field is a `None`.
pub struct CsvDecoder<T> {
    options: CsvOptions,
    parser: csv_core::Reader,
    header: Option<ByteRecord>,
    record: ByteRecord,
    /// The fields of a record without quotes, one behind the other, and where each ends; kept for their buffers.
    fields: Vec<u8>,
    ends: Vec<usize>,
    row: PhantomData<fn() -> T>,
}

impl<T: DeserializeOwned> CsvDecoder<T> {
    /// A decoder of CSV as RFC 4180 describes it.
    pub fn new(options: &CsvOptions) -> Self {
        // Only `\n` ends a record for the parser, so that a stray `\r` in a field does not tear it apart.
        let parser = csv_core::ReaderBuilder::new()
            .delimiter(options.delimiter)
            .terminator(csv_core::Terminator::Any(b'\n'))
            .build();
        Self {
            options: options.clone(),
            parser,
            header: None,
            record: ByteRecord::new(),
            fields: vec![0; 1024],
            ends: vec![0; 32],
            row: PhantomData,
        }
    }

    /// Parses the record at the front of `input`, which is not empty, into `self.record`. Returns its length with
    /// its line end, or nothing if it does not end in `input`.
    fn parse(&mut self, input: &[u8], is_end: bool) -> Option<usize> {
        self.parser.reset();
        let (mut read, mut written, mut ended) = (0, 0, 0);
        let mut rest = input;
        let mut needs_end = is_end && !input.ends_with(b"\n");
        let bytes = loop {
            let (result, bytes_in, bytes_out, ends) =
                self.parser.read_record(rest, &mut self.fields[written..], &mut self.ends[ended..]);
            rest = &rest[bytes_in..];
            read += bytes_in;
            written += bytes_out;
            ended += ends;
            match result {
                ReadRecordResult::OutputFull => self.fields.resize(self.fields.len() * 2, 0),
                ReadRecordResult::OutputEndsFull => self.ends.resize(self.ends.len() * 2, 0),
                ReadRecordResult::InputEmpty if needs_end => {
                    needs_end = false;
                    rest = b"\n";
                }
                ReadRecordResult::InputEmpty => return None,
                ReadRecordResult::Record | ReadRecordResult::End => break read.min(input.len()),
            }
        };
        if input[..bytes].ends_with(b"\r\n") && ended > 0 {
            // The parser took the `\r` for the end of the last field.
            written -= 1;
            self.ends[ended - 1] = written;
        }
        self.record.clear();
        let null = self.options.null_literal.as_deref().map(str::as_bytes);
        let mut start = 0;
        for &end in &self.ends[..ended] {
            let field = &self.fields[start..end];
            self.record.push_field(if Some(field) == null { b"" } else { field });
            start = end;
        }
        Some(bytes)
    }

    /// The row of `self.record`, or why there is none.
    fn row(&self) -> Result<T, String> {
        if let Some(header) = &self.header
            && header.len() != self.record.len()
        {
            return Err(format!("the row has {} fields, the header has {}", self.record.len(), header.len()));
        }
        self.record.deserialize(self.header.as_ref()).map_err(|error| self.explain(&error))
    }

    fn explain(&self, error: &csv::Error) -> String {
        let csv::ErrorKind::Deserialize { err, .. } = error.kind() else { return error.to_string() };
        let Some(index) = err.field().map(|field| field as usize) else { return err.kind().to_string() };
        let column = index + 1;
        let field = match self.header.as_ref().and_then(|header| header.get(index)) {
            Some(name) => format!("field '{}' (column {column})", String::from_utf8_lossy(name)),
            None => format!("column {column}"),
        };
        let found = match self.record.get(index) {
            Some(value) => {
                let value: String = String::from_utf8_lossy(value).chars().take(VALUE_CHARS_MAX).collect();
                format!(", found '{value}'")
            }
            None => String::new(),
        };
        format!("{field}: {}{found}", err.kind())
    }
}

impl<T: DeserializeOwned> Decoder<T> for CsvDecoder<T> {
    fn header(&mut self, line: &[u8]) -> Result<()> {
        if blank_bytes(line) == line.len() {
            return Err(Error::input("line 1: the header is empty: give the columns names, or read without a header"));
        }
        if self.parse(line, true).is_none() {
            return Err(Error::input("line 1: a quoted column name does not end on the header's line"));
        }
        self.header = Some(self.record.clone());
        Ok(())
    }

    fn decode(&mut self, input: &[u8], is_end: bool, rows_max: usize, rows: &mut Vec<T>) -> Decoded {
        let rows_end = rows.len() + rows_max;
        let mut at = 0;
        while rows.len() < rows_end {
            at += blank_bytes(&input[at..]);
            let rest = &input[at..];
            let line_end = if self.options.is_multiline { None } else { memchr(b'\n', rest) };
            let record = match line_end {
                _ if rest.is_empty() => break,
                Some(end) => &rest[..=end],
                None if is_end || self.options.is_multiline => rest,
                None => break,
            };
            let (bytes, row) = match self.parse(record, is_end) {
                Some(bytes) => (bytes, self.row()),
                None if self.options.is_multiline && !is_end => break,
                None if self.options.is_multiline => (record.len(), Err("a quoted field is never closed".to_owned())),
                None => (record.len(), Err(UNCLOSED.to_owned())),
            };
            match row {
                Ok(row) => rows.push(row),
                Err(reason) => return Decoded { bytes: at, malformed: Some(Malformed { bytes, reason }) },
            }
            at += bytes;
        }
        Decoded { bytes: at, malformed: None }
    }
}

const UNCLOSED: &str =
    "a quoted field does not end on its line: if fields contain line breaks, read the file with whole_files(true)";

/// The length of the blank lines at the front of `input`.
fn blank_bytes(input: &[u8]) -> usize {
    let mut at = 0;
    loop {
        match &input[at..] {
            [b'\n', ..] => at += 1,
            [b'\r', b'\n', ..] => at += 2,
            _ => return at,
        }
    }
}

/// Writes every record as a row of its fields.
pub struct CsvEncoder {
    delimiter: u8,
    has_header: bool,
}

impl CsvEncoder {
    /// An encoder that writes the names of the fields as the first line of every file if `has_header`, for
    /// records that have any: structs do, tuples do not.
    pub fn new(delimiter: u8, has_header: bool) -> Self {
        Self { delimiter, has_header }
    }
}

impl<T: Serialize> Encoder<T> for CsvEncoder {
    fn encode(&mut self, rows: &[T], is_first: bool, out: &mut Vec<u8>) -> Result<()> {
        let failed = |error: csv::Error| Error::user_code(format!("a record cannot be written as CSV: {error}"));
        let mut writer = csv::WriterBuilder::new()
            .delimiter(self.delimiter)
            .has_headers(self.has_header && is_first)
            .buffer_capacity((rows.len() * 64).clamp(512, 64 << 10))
            .from_writer(out);
        for row in rows {
            writer.serialize(row).map_err(failed)?;
        }
        writer.flush().map_err(|error| failed(error.into()))
    }
}

#[cfg(test)]
mod tests;
