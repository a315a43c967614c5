//! `csv`: a row a record, with the conversions of Flink's `CsvToRowDataConverters` and back.
//!
//! Columns are matched by place. A quoted field may have delimiters and line ends in it, so files are read whole.

use std::borrow::Cow;
use std::sync::Arc;

use arrow::array::{Array, AsArray};
use arrow::datatypes::{DataType, SchemaRef, TimeUnit};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flott_chunk::display::write_value;
use flott_chunk::{Chunk, batch_of};
use flott_core::{Error, Result};
use flott_formats::{Decoded, Decoder, Encoder, Malformed};

use crate::column::{Column, columns_of};
use crate::options::Options;
use crate::scalar;

/// How many rows a chunk has.
const ROWS_MAX: usize = 2048;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Flink's `csv.*` options.
#[derive(Clone, Debug)]
pub struct CsvOptions {
    /// What stands between fields.
    pub delimiter: u8,
    /// What fields with special characters stand in; `None` if quotes are nothing special.
    pub quote: Option<u8>,
    /// What makes the next character nothing special.
    pub escape: Option<u8>,
    /// Whether lines that begin with `#` are left out.
    pub allow_comments: bool,
    /// Whether what cannot be read is null, and a record with the wrong number of fields is left out.
    pub ignore_parse_errors: bool,
    /// What stands between the elements of arrays and the fields of rows.
    pub element_delimiter: String,
    /// What stands for null.
    pub null_literal: Option<String>,
    /// Whether decimals are written with exponents.
    pub scientific_decimals: bool,
}

impl Default for CsvOptions {
    fn default() -> Self {
        Self {
            delimiter: b',',
            quote: Some(b'"'),
            escape: None,
            allow_comments: false,
            ignore_parse_errors: false,
            element_delimiter: ";".to_owned(),
            null_literal: None,
            scientific_decimals: true,
        }
    }
}

impl CsvOptions {
    /// Reads `csv.*`.
    pub fn read(options: &Options) -> Result<Self> {
        let default = Self::default();
        let quote = options.character("csv.quote-character")?;
        let is_disabled = options.flag("csv.disable-quote-character", false)?;
        if is_disabled && quote.is_some() {
            return Err(Error::input(format!(
                "table '{}': csv.quote-character and csv.disable-quote-character exclude each other",
                options.table()
            )));
        }
        Ok(Self {
            delimiter: options.character("csv.field-delimiter")?.unwrap_or(default.delimiter),
            quote: if is_disabled { None } else { quote.or(default.quote) },
            escape: options.character("csv.escape-character")?,
            allow_comments: options.flag("csv.allow-comments", false)?,
            ignore_parse_errors: options.flag("csv.ignore-parse-errors", false)?,
            element_delimiter: options.get("csv.array-element-delimiter").unwrap_or(";").to_owned(),
            null_literal: options.get("csv.null-literal").map(str::to_owned),
            scientific_decimals: options.flag("csv.write-bigdecimal-in-scientific-notation", true)?,
        })
    }
}

/// Makes chunks of records.
pub struct CsvDecoder {
    schema: SchemaRef,
    options: CsvOptions,
    /// For each field of a record, its column, if it is wanted.
    places: Vec<Option<usize>>,
    columns: Vec<Column>,
    rows: usize,
    fields: Vec<Field>,
}

/// Where a field is in a record.
#[derive(Clone, Debug)]
struct Field {
    start: usize,
    end: usize,
    is_quoted: bool,
    /// Whether quotes or escapes have to be taken out.
    is_special: bool,
}

impl CsvDecoder {
    /// For files with the columns `file_columns` in this order, of which those of `schema` are wanted.
    pub fn new(schema: &SchemaRef, file_columns: &[String], options: CsvOptions) -> Result<Self> {
        let place = |name: &String| schema.fields().iter().position(|field| field.name() == name);
        Ok(Self {
            schema: Arc::clone(schema),
            options,
            places: file_columns.iter().map(place).collect(),
            columns: columns_of(schema)?,
            rows: 0,
            fields: Vec::new(),
        })
    }

    /// Finds the fields of the first record of `input`. Returns how many bytes it takes with its end; `None` if it is not all
    /// there.
    fn split(&mut self, input: &[u8], is_end: bool) -> Option<usize> {
        self.fields.clear();
        let (mut at, mut start) = (0, 0);
        let (mut is_quoted, mut is_open, mut is_special) = (false, false, false);
        loop {
            let Some(byte) = input.get(at).copied() else {
                if !is_end || (input.is_empty()) {
                    return None;
                }
                self.fields.push(Field { start, end: at, is_quoted, is_special });
                return Some(at);
            };
            if Some(byte) == self.options.escape {
                (is_special, at) = (true, (at + 2).min(input.len()));
                continue;
            }
            if is_open {
                if Some(byte) == self.options.quote {
                    if input.get(at + 1).copied() == self.options.quote {
                        (is_special, at) = (true, at + 2);
                        continue;
                    }
                    if at + 1 == input.len() && !is_end {
                        return None;
                    }
                    is_open = false;
                }
                at += 1;
                continue;
            }
            match byte {
                _ if Some(byte) == self.options.quote && at == start => (is_quoted, is_open) = (true, true),
                _ if byte == self.options.delimiter => {
                    self.fields.push(Field { start, end: at, is_quoted, is_special });
                    start = at + 1;
                    (is_quoted, is_special) = (false, false);
                }
                b'\n' => {
                    let end = if at > start && input[at - 1] == b'\r' { at - 1 } else { at };
                    self.fields.push(Field { start, end, is_quoted, is_special });
                    return Some(at + 1);
                }
                _ => {}
            }
            at += 1;
        }
    }

    fn text<'a>(&self, record: &'a [u8], field: &Field) -> Result<Cow<'a, str>, String> {
        let mut bytes = record.get(field.start..field.end.min(record.len())).unwrap_or_default();
        if field.is_quoted {
            bytes = bytes.get(1..).unwrap_or_default();
            bytes = match (bytes.split_last(), self.options.quote) {
                (Some((last, rest)), Some(quote)) if *last == quote => rest,
                _ => bytes,
            };
        }
        let text = std::str::from_utf8(bytes).map_err(|_| "the record is not UTF-8".to_owned())?;
        if !field.is_special {
            return Ok(Cow::Borrowed(text));
        }
        let (mut out, mut characters) = (String::with_capacity(text.len()), text.chars().peekable());
        while let Some(character) = characters.next() {
            let is = |byte: Option<u8>| byte.is_some_and(|byte| char::from(byte) == character);
            if is(self.options.escape) {
                out.extend(characters.next());
                continue;
            }
            if field.is_quoted && is(self.options.quote) && characters.peek() == Some(&character) {
                characters.next();
            }
            out.push(character);
        }
        Ok(Cow::Owned(out))
    }

    /// Appends the record whose fields were found.
    fn push(&mut self, record: &[u8]) -> Result<(), String> {
        if self.fields.len() != self.places.len() {
            return Err(format!("it has {} fields, and the table {}", self.fields.len(), self.places.len()));
        }
        for (field, place) in self.fields.iter().zip(&self.places) {
            let Some(place) = *place else { continue };
            let text = self.text(record, field)?;
            let column = &mut self.columns[place];
            if !field.is_quoted && self.options.null_literal.as_deref() == Some(&*text) {
                column.push_null();
            } else if let Err(reason) = push_text(column, &text, &self.options) {
                if !self.options.ignore_parse_errors {
                    return Err(format!("field '{}': {reason}", self.schema.field(place).name()));
                }
                column.push_null();
            }
        }
        self.rows += 1;
        Ok(())
    }

    /// Reads records until there are `rows_max`, the input ends, or one is malformed. Returns how many bytes they take.
    fn fill(&mut self, input: &[u8], is_end: bool, rows_max: usize) -> (usize, Option<Malformed>) {
        let mut at = 0;
        while self.rows < rows_max {
            if input[at..].starts_with(BYTE_ORDER_MARK) {
                at += BYTE_ORDER_MARK.len();
            }
            let record = &input[at..];
            let Some(bytes) = self.split(record, is_end) else { break };
            if bytes == 0 {
                break;
            }
            let line = record[..bytes].trim_ascii_end();
            let is_blank = line.is_empty() && self.places.len() != 1;
            let is_comment = self.options.allow_comments && line.starts_with(b"#");
            if !is_blank
                && !is_comment
                && let Err(reason) = self.push(record)
                && !self.options.ignore_parse_errors
            {
                return (at, Some(Malformed { bytes, reason }));
            }
            at += bytes;
        }
        (at, None)
    }

    /// The rows so far; there are none then.
    fn finish(&mut self) -> Result<Chunk> {
        let columns = self.columns.iter_mut().map(Column::finish).collect::<Result<_>>()?;
        batch_of(&self.schema, columns, std::mem::take(&mut self.rows)).map(Chunk::inserts)
    }
}

impl Decoder<Chunk> for CsvDecoder {
    fn decode(&mut self, input: &[u8], is_end: bool, rows_max: usize, chunks: &mut Vec<Chunk>) -> Decoded {
        let (bytes, mut malformed) = self.fill(input, is_end, if rows_max > 0 { ROWS_MAX } else { 0 });
        let mut finish = || {
            if malformed.is_some() {
                // What it has left in some columns goes: the records before it are read again, which happens once a job.
                let rows = std::mem::take(&mut self.rows);
                self.columns = columns_of(&self.schema)?;
                self.fill(&input[..bytes], true, rows);
            }
            if self.rows > 0 {
                chunks.push(self.finish()?);
            }
            Ok::<(), Error>(())
        };
        if let Err(error) = finish() {
            malformed.get_or_insert(Malformed { bytes: 0, reason: error.message });
        }
        Decoded { bytes, malformed }
    }
}

/// Appends a value by its text.
fn push_text(column: &mut Column, text: &str, options: &CsvOptions) -> Result<(), String> {
    let wrong = |what: &str| format!("'{text}' is not {what}");
    let trimmed = text.trim();
    match column {
        Column::Boolean(values) => values.append_value(trimmed.eq_ignore_ascii_case("true")),
        Column::Int8(values) => values.append_value(trimmed.parse().map_err(|_| wrong("a TINYINT"))?),
        Column::Int16(values) => values.append_value(trimmed.parse().map_err(|_| wrong("a SMALLINT"))?),
        Column::Int32(values) => values.append_value(trimmed.parse().map_err(|_| wrong("an INT"))?),
        Column::Int64(values) => values.append_value(trimmed.parse().map_err(|_| wrong("a BIGINT"))?),
        Column::Float32(values) => values.append_value(trimmed.parse().map_err(|_| wrong("a FLOAT"))?),
        Column::Float64(values) => values.append_value(trimmed.parse().map_err(|_| wrong("a DOUBLE"))?),
        Column::Decimal(values, precision, scale) => {
            values.append_option(scalar::decimal(trimmed, *precision, *scale).ok_or_else(|| wrong("a DECIMAL"))?);
        }
        Column::Text(values) => values.append_value(text),
        Column::Bytes(values) => {
            values.append_value(STANDARD.decode(text).map_err(|_| wrong("BYTES in base64"))?);
        }
        Column::Date(values) => values.append_value(scalar::date(trimmed).ok_or_else(|| wrong("a DATE"))?),
        Column::Time(values) => {
            let nanos = scalar::time(trimmed).ok_or_else(|| wrong("a TIME"))?;
            values.append_value((nanos / 1_000_000) as i32);
        }
        Column::Timestamp(values) => {
            let local = match values.is_instant() {
                true => trimmed.strip_suffix('Z').ok_or_else(|| wrong("a TIMESTAMP_LTZ, which ends in Z"))?,
                false => trimmed,
            };
            if !scalar::timestamp(local, ' ').is_some_and(|nanos| values.push(nanos)) {
                return Err(wrong("a TIMESTAMP such as '2024-01-01 12:34:56.789'"));
            }
        }
        Column::List(list) => {
            if !text.is_empty() {
                for element in text.split(options.element_delimiter.as_str()) {
                    push_text(&mut list.elements, element, options)?;
                }
            }
            list.end();
        }
        Column::Row(row) => {
            let parts: Vec<&str> = text.split(options.element_delimiter.as_str()).collect();
            if parts.len() != row.columns.len() {
                return Err(wrong(&format!("a ROW of {} fields", row.columns.len())));
            }
            for (column, part) in row.columns.iter_mut().zip(parts) {
                if let Err(reason) = push_text(column, part, options) {
                    if !options.ignore_parse_errors {
                        return Err(reason);
                    }
                    row.end_null();
                    return Ok(());
                }
            }
            row.end();
        }
        Column::Map(_) => return Err("a MAP cannot be read from CSV".to_owned()),
    }
    Ok(())
}

/// Writes rows as records.
pub struct CsvEncoder {
    options: CsvOptions,
    text: String,
}

impl CsvEncoder {
    /// With these options.
    pub fn new(options: CsvOptions) -> Self {
        Self { options, text: String::new() }
    }
}

impl Encoder<Chunk> for CsvEncoder {
    fn encode(&mut self, chunks: &[Chunk], _: bool, out: &mut Vec<u8>) -> Result<()> {
        for chunk in chunks {
            for row in 0..chunk.len() {
                for (index, column) in chunk.batch.columns().iter().enumerate() {
                    if index > 0 {
                        out.push(self.options.delimiter);
                    }
                    self.text.clear();
                    if column.is_null(row) {
                        out.extend_from_slice(self.options.null_literal.as_deref().unwrap_or_default().as_bytes());
                        continue;
                    }
                    write_text(column, row, &self.options, &mut self.text)?;
                    let is_text = matches!(
                        column.data_type(),
                        DataType::Utf8
                            | DataType::Binary
                            | DataType::List(_)
                            | DataType::Struct(_)
                            | DataType::Timestamp(..)
                    );
                    self.write_field(is_text, out);
                }
                out.push(b'\n');
            }
        }
        Ok(())
    }
}

impl CsvEncoder {
    /// Quotes what a reader would take for something else, and, as Jackson does, what begins the ASCII table up to the delimiter.
    fn write_field(&self, is_text: bool, out: &mut Vec<u8>) {
        let CsvOptions { delimiter, quote, escape, .. } = self.options;
        let bytes = self.text.as_bytes();
        let Some(quote) = quote.filter(|quote| {
            let limit = delimiter.max(*quote);
            let is_special = |byte: &u8| *byte <= limit || *byte == b'\r' || *byte == b'\n' || Some(*byte) == escape;
            is_text && bytes.iter().any(is_special)
        }) else {
            out.extend_from_slice(bytes);
            return;
        };
        out.push(quote);
        for byte in bytes {
            if *byte == quote || Some(*byte) == escape {
                out.push(escape.unwrap_or(quote));
            }
            out.push(*byte);
        }
        out.push(quote);
    }
}

/// Appends a value as text.
fn write_text(array: &dyn Array, row: usize, options: &CsvOptions, out: &mut String) -> Result<()> {
    match array.data_type() {
        DataType::Binary => out.push_str(&STANDARD.encode(array.as_binary::<i32>().value(row))),
        DataType::Decimal128(..) => crate::json::write_scalar(array, row, !options.scientific_decimals, out)?,
        DataType::Timestamp(..) | DataType::Time32(TimeUnit::Millisecond) => {
            let start = out.len();
            crate::json::write_scalar(array, row, false, out)?;
            // Without the quotes of JSON.
            let text = out[start..].trim_matches('"').to_owned();
            out.truncate(start);
            out.push_str(&text);
        }
        DataType::List(_) => {
            let elements = array.as_list::<i32>().value(row);
            for element in 0..elements.len() {
                if element > 0 {
                    out.push_str(&options.element_delimiter);
                }
                write_text(&elements, element, options, out)?;
            }
        }
        DataType::Struct(_) => {
            for (index, column) in array.as_struct().columns().iter().enumerate() {
                if index > 0 {
                    out.push_str(&options.element_delimiter);
                }
                write_text(column, row, options, out)?;
            }
        }
        DataType::Map(..) => return Err(Error::input("a MAP cannot be written as CSV")),
        _ => write_value(array, row, out),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::{Field as ArrowField, Schema};
    use flott_chunk::display::write_row;
    use proptest::prelude::*;

    use super::*;

    fn schema(types: &[DataType]) -> SchemaRef {
        let field =
            |(index, data_type): (usize, &DataType)| ArrowField::new(format!("c{index}"), data_type.clone(), true);
        Arc::new(Schema::new(types.iter().enumerate().map(field).collect::<Vec<_>>()))
    }

    fn decode(types: &[DataType], input: &str, options: CsvOptions) -> (Vec<String>, Decoded) {
        let schema = schema(types);
        let names: Vec<String> = schema.fields().iter().map(|field| field.name().clone()).collect();
        let mut chunks = Vec::new();
        let mut decoder = CsvDecoder::new(&schema, &names, options).unwrap();
        let decoded = decoder.decode(input.as_bytes(), true, 1, &mut chunks);
        let mut rows = Vec::new();
        for chunk in chunks {
            rows.extend((0..chunk.len()).map(|row| {
                let mut text = String::new();
                write_row(&chunk, row, &mut text);
                text
            }));
        }
        (rows, decoded)
    }

    #[test]
    fn what_spreadsheets_write_is_read() {
        let types = [DataType::Int32, DataType::Utf8, DataType::Utf8];
        let input = "\u{feff}1,\"a,b\",x\r\n2,\"l1\nl2\",y\r\n3,\"he said \"\"hi\"\"\",\r\n4,,\"\"\r\n";
        let (rows, decoded) = decode(&types, input, CsvOptions::default());
        assert_eq!(decoded, Decoded { bytes: input.len(), malformed: None });
        assert_eq!(rows, ["+I[1, a,b, x]", "+I[2, l1\nl2, y]", "+I[3, he said \"hi\", ]", "+I[4, , ]"]);
    }

    #[test]
    fn options_change_what_is_read() {
        let types = [DataType::Utf8, DataType::new_list(DataType::Int32, true)];
        let options = CsvOptions {
            delimiter: b'|',
            quote: Some(b'\''),
            escape: Some(b'\\'),
            allow_comments: true,
            element_delimiter: "~".to_owned(),
            null_literal: Some("n/a".to_owned()),
            ..CsvOptions::default()
        };
        let (rows, _) = decode(&types, "# no\n'a|\\'b'|1~2\nn/a|\n'n/a'|3\n", options);
        assert_eq!(rows, ["+I[a|'b, [1, 2]]", "+I[null, []]", "+I[n/a, [3]]"]);
    }

    #[test]
    fn malformed_records_say_why() {
        let types = [DataType::Int32, DataType::Utf8];
        let input = "1,a\nx,b\n3\n4,d";
        let (rows, decoded) = decode(&types, input, CsvOptions::default());
        let malformed = decoded.malformed.unwrap();
        assert_eq!((rows.len(), decoded.bytes, malformed.bytes), (1, 4, 4));
        assert_eq!(malformed.reason, "field 'c0': 'x' is not an INT");
        let options = CsvOptions { ignore_parse_errors: true, ..CsvOptions::default() };
        assert_eq!(decode(&types, input, options).0, ["+I[1, a]", "+I[null, b]", "+I[4, d]"]);
        let (_, decoded) = decode(&types, "3\n", CsvOptions::default());
        assert_eq!(decoded.malformed.unwrap().reason, "it has 1 fields, and the table 2");
    }

    proptest! {
        #[test]
        fn rows_come_back(rows in prop::collection::vec((any::<i64>(), "[a-z,;\"\\n\\r é]{0,8}"), 1..20)) {
            let types = [DataType::Int64, DataType::Utf8];
            let columns: Vec<arrow::array::ArrayRef> = vec![
                Arc::new(arrow::array::Int64Array::from_iter_values(rows.iter().map(|row| row.0))),
                Arc::new(arrow::array::StringArray::from_iter_values(rows.iter().map(|row| &row.1))),
            ];
            let chunk = Chunk::inserts(batch_of(&schema(&types), columns, rows.len()).unwrap());
            let mut out = Vec::new();
            CsvEncoder::new(CsvOptions::default()).encode(&[chunk], true, &mut out).unwrap();
            let (again, decoded) = decode(&types, &String::from_utf8(out).unwrap(), CsvOptions::default());
            prop_assert_eq!(decoded.malformed, None);
            let expected: Vec<String> = rows.iter().map(|(n, text)| format!("+I[{n}, {text}]")).collect();
            prop_assert_eq!(again, expected);
        }

        #[test]
        fn nothing_panics(input in "[,\"\\\\a1\\n\\r;-]{0,40}", escape in any::<bool>(), is_end in any::<bool>()) {
            let types = [DataType::Int32, DataType::Utf8, DataType::new_list(DataType::Int32, true)];
            let options = CsvOptions { escape: escape.then_some(b'\\'), ..CsvOptions::default() };
            let schema = schema(&types);
            let names: Vec<String> = schema.fields().iter().map(|field| field.name().clone()).collect();
            let mut decoder = CsvDecoder::new(&schema, &names, options).unwrap();
            let decoded = decoder.decode(input.as_bytes(), is_end, 1, &mut Vec::new());
            prop_assert!(decoded.bytes <= input.len());
        }
    }
}
