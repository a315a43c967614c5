//! `raw`: the bytes of a record are the value of the table's only column. In files a record is a line.

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::datatypes::{
    DataType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, Schema, SchemaRef,
};
use flott_chunk::{Chunk, batch_of};
use flott_core::{Error, Result};
use flott_formats::Encoder;

use crate::column::{Column, columns_of};
use crate::lines::{LineDecoder, LineRows};
use crate::options::Options;

/// Flink's `raw.*` options.
#[derive(Clone, Copy, Debug, Default)]
pub struct RawOptions {
    /// Whether numbers begin with their lowest byte.
    is_little_endian: bool,
}

impl RawOptions {
    /// Reads them.
    ///
    /// # Errors
    /// The columns of the table are not one, or not one that bytes can be.
    pub fn read(options: &Options, schema: &Schema) -> Result<Self> {
        let table = options.table();
        let [field] = &schema.fields()[..] else {
            return Err(Error::input(format!(
                "table '{table}' has {} columns, and 'format' = 'raw' is for one column, which is all of a record",
                schema.fields().len()
            )));
        };
        let is_known = matches!(
            field.data_type(),
            DataType::Utf8 | DataType::Binary | DataType::Boolean | DataType::Float32 | DataType::Float64
        ) || field.data_type().is_signed_integer();
        if !is_known {
            return Err(Error::input(format!(
                "table '{table}': the column '{}' is a {}, which 'format' = 'raw' has no form for: it has one for STRING, BYTES, \
                 BOOLEAN, TINYINT, SMALLINT, INT, BIGINT, FLOAT and DOUBLE",
                field.name(),
                field.data_type()
            )));
        }
        if let Some(charset) = options.get("raw.charset")
            && !charset.eq_ignore_ascii_case("utf-8")
        {
            return Err(options.wrong("raw.charset", charset, "UTF-8, the only charset that there is yet"));
        }
        let endianness = options.choice("raw.endianness", &[("big-endian", false), ("little-endian", true)])?;
        Ok(Self { is_little_endian: endianness.unwrap_or_default() })
    }
}

/// Fills a column with lines.
#[derive(Debug)]
pub struct RawRows {
    schema: SchemaRef,
    /// None if only the number of rows is asked for.
    columns: Vec<Column>,
    options: RawOptions,
    rows: usize,
}

/// Makes chunks of lines.
pub type RawDecoder = LineDecoder<RawRows>;

impl RawDecoder {
    /// For the columns of `schema`, which are one or none.
    pub fn new(schema: &SchemaRef, options: RawOptions) -> Result<Self> {
        Ok(Self::of(RawRows { schema: schema.clone(), columns: columns_of(schema)?, options, rows: 0 }))
    }
}

impl LineRows for RawRows {
    fn rows(&self) -> usize {
        self.rows
    }

    fn push_line(&mut self, line: &[u8]) -> Result<(), String> {
        // As Flink does where it reads lines.
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if let Some(column) = self.columns.first_mut() {
            push(column, line, self.options)?;
        }
        self.rows += 1;
        Ok(())
    }

    fn skips_malformed(&self) -> bool {
        false
    }

    fn clear(&mut self) -> Result<()> {
        self.columns = columns_of(&self.schema)?;
        self.rows = 0;
        Ok(())
    }

    fn finish(&mut self) -> Result<Chunk> {
        let columns = self.columns.iter_mut().map(Column::finish).collect::<Result<Vec<ArrayRef>>>()?;
        batch_of(&self.schema, columns, std::mem::take(&mut self.rows)).map(Chunk::inserts)
    }
}

fn push(column: &mut Column, bytes: &[u8], options: RawOptions) -> Result<(), String> {
    macro_rules! number {
        ($values:expr, $type:ty, $name:literal) => {{
            let size = size_of::<$type>();
            let bytes = bytes
                .try_into()
                .map_err(|_| format!("{} takes {size} bytes, and the record has {}", $name, bytes.len()))?;
            $values.append_value(match options.is_little_endian {
                true => <$type>::from_le_bytes(bytes),
                false => <$type>::from_be_bytes(bytes),
            });
        }};
    }
    match column {
        Column::Text(values) => values.append_value(String::from_utf8_lossy(bytes)),
        Column::Bytes(values) => values.append_value(bytes),
        Column::Boolean(values) => match bytes {
            [byte] => values.append_value(*byte != 0),
            _ => return Err(format!("BOOLEAN takes 1 byte, and the record has {}", bytes.len())),
        },
        Column::Int8(values) => number!(values, i8, "TINYINT"),
        Column::Int16(values) => number!(values, i16, "SMALLINT"),
        Column::Int32(values) => number!(values, i32, "INT"),
        Column::Int64(values) => number!(values, i64, "BIGINT"),
        Column::Float32(values) => number!(values, f32, "FLOAT"),
        Column::Float64(values) => number!(values, f64, "DOUBLE"),
        // Refused by `RawOptions::read`.
        _ => return Err("the column's type has no form in bytes".to_owned()),
    }
    Ok(())
}

/// Writes the bytes of rows, each with a line end behind it.
#[derive(Debug)]
pub struct RawEncoder {
    options: RawOptions,
}

impl RawEncoder {
    /// With these options.
    pub fn new(options: RawOptions) -> Self {
        Self { options }
    }
}

impl Encoder<Chunk> for RawEncoder {
    fn encode(&mut self, chunks: &[Chunk], _: bool, out: &mut Vec<u8>) -> Result<()> {
        chunks.iter().try_for_each(|chunk| write(&chunk.batch, self.options, out))
    }
}

fn write(batch: &RecordBatch, options: RawOptions, out: &mut Vec<u8>) -> Result<()> {
    let array = batch.column(0);
    if array.null_count() > 0 {
        return Err(Error::user_code(format!(
            "the column '{}' is null in a row, which 'format' = 'raw' has no bytes for: leave such rows out, or COALESCE them",
            batch.schema_ref().field(0).name()
        )));
    }
    macro_rules! numbers {
        ($type:ty) => {
            for value in array.as_primitive::<$type>().values() {
                match options.is_little_endian {
                    true => out.extend_from_slice(&value.to_le_bytes()),
                    false => out.extend_from_slice(&value.to_be_bytes()),
                }
                out.push(b'\n');
            }
        };
    }
    let mut texts = |values: &mut dyn Iterator<Item = Option<&[u8]>>| {
        for value in values {
            out.extend_from_slice(value.unwrap_or_default());
            out.push(b'\n');
        }
    };
    match array.data_type() {
        DataType::Utf8 => texts(&mut array.as_string::<i32>().iter().map(|text| text.map(str::as_bytes))),
        DataType::Binary => texts(&mut array.as_binary::<i32>().iter()),
        DataType::Boolean => {
            out.extend(array.as_boolean().values().iter().flat_map(|value| [u8::from(value), b'\n']));
        }
        DataType::Int8 => numbers!(Int8Type),
        DataType::Int16 => numbers!(Int16Type),
        DataType::Int32 => numbers!(Int32Type),
        DataType::Int64 => numbers!(Int64Type),
        DataType::Float32 => numbers!(Float32Type),
        DataType::Float64 => numbers!(Float64Type),
        other => return Err(Error::input(format!("columns of the type {other} cannot be written as bytes"))),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::datatypes::Field;
    use flott_chunk::display::write_row;
    use flott_formats::{Decoded, Decoder};

    use super::*;

    fn schema(data_type: DataType) -> SchemaRef {
        Arc::new(Schema::new(vec![Field::new("v", data_type, true)]))
    }

    fn decode(data_type: DataType, input: &[u8], is_little_endian: bool) -> (Vec<Chunk>, Decoded) {
        let mut chunks = Vec::new();
        let options = RawOptions { is_little_endian };
        let decoded = RawDecoder::new(&schema(data_type), options).unwrap().decode(input, true, 1, &mut chunks);
        (chunks, decoded)
    }

    fn shown(chunks: &[Chunk]) -> String {
        let mut text = String::new();
        for chunk in chunks {
            (0..chunk.len()).for_each(|row| write_row(chunk, row, &mut text));
        }
        text
    }

    #[test]
    fn lines_are_values_and_back() {
        let (chunks, decoded) = decode(DataType::Utf8, b" a b\r\n\nlast", false);
        assert_eq!((decoded.malformed, shown(&chunks)), (None, "+I[ a b]+I[]+I[last]".to_owned()));
        let mut out = Vec::new();
        RawEncoder::new(RawOptions::default()).encode(&chunks, true, &mut out).unwrap();
        assert_eq!(out, b" a b\n\nlast\n");
        let (chunks, _) = decode(DataType::Binary, b"\xff\n", false);
        assert_eq!(shown(&chunks), "+I[x'ff']");
    }

    #[test]
    fn numbers_are_as_their_bytes() {
        for (is_little_endian, expected) in [(false, "+I[257]"), (true, "+I[16842752]")] {
            let (chunks, _) = decode(DataType::Int32, b"\0\0\x01\x01\n", is_little_endian);
            assert_eq!(shown(&chunks), expected);
            let mut out = Vec::new();
            RawEncoder::new(RawOptions { is_little_endian }).encode(&chunks, true, &mut out).unwrap();
            assert_eq!(out, b"\0\0\x01\x01\n");
        }
        let (chunks, decoded) = decode(DataType::Int32, b"\0\0\0\x07\nabc\n", false);
        assert_eq!((shown(&chunks).as_str(), decoded.bytes), ("+I[7]", 5));
        assert_eq!(decoded.malformed.unwrap().reason, "INT takes 4 bytes, and the record has 3");
    }

    #[test]
    fn what_has_no_bytes_is_refused() {
        let options = Options::new("t", [("raw.charset", "GBK")]);
        let reason = RawOptions::read(&options, &schema(DataType::Utf8)).unwrap_err().to_string();
        assert!(reason.contains("'raw.charset' is 'GBK'"), "{reason}");
        let options = Options::new("t", [] as [(&str, &str); 0]);
        let reason = RawOptions::read(&options, &schema(DataType::Date32)).unwrap_err().to_string();
        assert!(reason.contains("column 'v'"), "{reason}");
        let two = Schema::new(vec![Field::new("a", DataType::Utf8, true), Field::new("b", DataType::Utf8, true)]);
        assert!(RawOptions::read(&options, &two).unwrap_err().to_string().contains("2 columns"));
        let null: ArrayRef = Arc::new(arrow::array::StringArray::from(vec![Some("a"), None]));
        let chunk = Chunk::inserts(RecordBatch::try_from_iter([("v", null)]).unwrap());
        let failed = RawEncoder::new(RawOptions::default()).encode(&[chunk], true, &mut Vec::new());
        assert!(failed.unwrap_err().to_string().contains("'v' is null"));
    }
}
