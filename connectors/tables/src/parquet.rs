//! `parquet`: files in columns, with Flink's options.
//!
//! Columns are found by their names. A row group belongs to the reader of the byte range that its middle lies in, as in Hadoop.
//! Timestamps are read as they come: INT96, which Flink writes, and INT64 of any unit. They are written as INT64: INT96 has
//! no statistics, and no reader needs it any more.

mod read;
#[cfg(test)]
mod tests;
mod write;

use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef, TimeUnit};
use flott_core::{Error, Result};
use parquet::basic::{Compression, GzipLevel, ZstdLevel};
use parquet::file::properties::{WriterProperties, WriterVersion};

use crate::options::Options;

pub use read::{ParquetFormat, RowGroups};
pub use write::ParquetEncoder;

/// How many rows a chunk has that is read.
const ROWS_MAX: usize = 8192;

/// How many rows a row group has at most.
const ROW_GROUP_ROWS_MAX: usize = 1 << 20;

/// Flink's `parquet.*` options.
#[derive(Clone, Debug)]
pub struct ParquetOptions {
    compression: Compression,
    row_group_bytes: usize,
    page_bytes: usize,
    dictionary_page_bytes: usize,
    has_dictionaries: bool,
    version: WriterVersion,
    /// The unit of timestamps; `None` for what their precision needs.
    unit: Option<TimeUnit>,
}

impl ParquetOptions {
    /// Reads `parquet.*`.
    pub fn read(options: &Options) -> Result<Self> {
        let bytes = |key: &str, default: usize| {
            let parse = |text: &str| text.parse::<usize>().ok().filter(|bytes| *bytes > 0);
            Ok::<_, Error>(options.parsed(key, "a number of bytes", parse)?.unwrap_or(default))
        };
        let units =
            [("millis", TimeUnit::Millisecond), ("micros", TimeUnit::Microsecond), ("nanos", TimeUnit::Nanosecond)];
        let read = Self {
            compression: compression(options)?,
            row_group_bytes: bytes("parquet.block.size", 128 << 20)?,
            page_bytes: bytes("parquet.page.size", 1 << 20)?,
            dictionary_page_bytes: bytes("parquet.dictionary.page.size", 1 << 20)?,
            has_dictionaries: options.flag("parquet.enable.dictionary", true)?,
            version: options
                .choice(
                    "parquet.writer.version",
                    &[
                        ("PARQUET_1_0", WriterVersion::PARQUET_1_0),
                        ("v1", WriterVersion::PARQUET_1_0),
                        ("PARQUET_2_0", WriterVersion::PARQUET_2_0),
                        ("v2", WriterVersion::PARQUET_2_0),
                    ],
                )?
                .unwrap_or(WriterVersion::PARQUET_1_0),
            unit: options.choice("parquet.timestamp.time.unit", &units)?,
        };
        for (key, reason) in [
            (
                "parquet.write.int64.timestamp",
                "true: timestamps are written as INT64, which Flink reads as well as INT96",
            ),
            ("parquet.utc-timezone", "true: timestamps have the same digits in files as in tables, on every machine"),
        ] {
            if !options.flag(key, true)? {
                return Err(options.wrong(key, "false", reason));
            }
        }
        Ok(read)
    }

    fn properties(&self) -> WriterProperties {
        WriterProperties::builder()
            .set_created_by(concat!("flott ", env!("CARGO_PKG_VERSION")).to_owned())
            .set_compression(self.compression)
            .set_max_row_group_row_count(Some(ROW_GROUP_ROWS_MAX))
            .set_max_row_group_bytes(Some(self.row_group_bytes))
            .set_data_page_size_limit(self.page_bytes)
            .set_dictionary_page_size_limit(self.dictionary_page_bytes)
            .set_dictionary_enabled(self.has_dictionaries)
            .set_writer_version(self.version)
            .set_coerce_types(true)
            .build()
    }

    /// The columns of files of a table.
    fn file_schema(&self, schema: &Schema) -> SchemaRef {
        let fields: Vec<Field> = schema.fields().iter().map(|field| self.file_field(field)).collect();
        Arc::new(Schema::new(fields))
    }

    fn file_field(&self, field: &Field) -> Field {
        Field::new(field.name(), self.file_type(field.data_type()), field.is_nullable())
    }

    fn file_type(&self, data_type: &DataType) -> DataType {
        match data_type {
            DataType::Timestamp(unit, zone) => {
                let needed = if *unit == TimeUnit::Nanosecond { *unit } else { TimeUnit::Microsecond };
                DataType::Timestamp(self.unit.unwrap_or(needed), zone.clone())
            }
            DataType::List(field) => DataType::List(Arc::new(self.file_field(field))),
            DataType::Map(field, is_sorted) => DataType::Map(Arc::new(self.file_field(field)), *is_sorted),
            DataType::Struct(fields) => {
                DataType::Struct(fields.iter().map(|field| self.file_field(field)).collect::<Fields>())
            }
            other => other.clone(),
        }
    }
}

fn compression(options: &Options) -> Result<Compression> {
    let key = "parquet.compression";
    let Some(name) = options.get(key) else { return Ok(Compression::SNAPPY) };
    Ok(match name.to_ascii_uppercase().as_str() {
        "UNCOMPRESSED" => Compression::UNCOMPRESSED,
        "SNAPPY" => Compression::SNAPPY,
        "GZIP" => Compression::GZIP(GzipLevel::default()),
        "ZSTD" => Compression::ZSTD(ZstdLevel::default()),
        "LZ4_RAW" => Compression::LZ4_RAW,
        _ => return Err(options.wrong(key, name, "one of UNCOMPRESSED, SNAPPY, GZIP, ZSTD, LZ4_RAW")),
    })
}

/// What the row groups of a file say of their columns, for each row group.
pub trait Statistics {
    /// How many row groups there are.
    fn row_groups(&self) -> usize;

    /// How many rows they have.
    fn rows(&self) -> Option<ArrayRef>;

    /// The smallest value of a column, or less; null where that is not known.
    fn least(&self, column: &str) -> Option<ArrayRef>;

    /// The greatest value of a column, or more; null where that is not known.
    fn greatest(&self, column: &str) -> Option<ArrayRef>;

    /// How many values of a column are null.
    fn nulls(&self, column: &str) -> Option<ArrayRef>;
}

/// That a table can be written in files of the format.
///
/// # Errors
/// Which column it has no form for.
pub fn check_columns(table: &str, schema: &Schema) -> Result<()> {
    fn has_form(data_type: &DataType) -> bool {
        match data_type {
            DataType::Null | DataType::Interval(_) | DataType::Duration(_) => false,
            DataType::List(field) => has_form(field.data_type()),
            DataType::Map(field, _) => has_form(field.data_type()),
            DataType::Struct(fields) => !fields.is_empty() && fields.iter().all(|field| has_form(field.data_type())),
            _ => true,
        }
    }
    match schema.fields().iter().find(|field| !has_form(field.data_type())) {
        Some(field) => Err(Error::input(format!(
            "table '{table}': the column '{}' has the type {}, which 'format' = 'parquet' has no form for",
            field.name(),
            field.data_type()
        ))),
        None => Ok(()),
    }
}
