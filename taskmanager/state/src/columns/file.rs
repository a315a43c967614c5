//! A table in a Parquet file.

use std::io::Write;

use arrow::array::RecordBatch;
use arrow::datatypes::Schema;
use flott_core::key_group::KeyGroup;
use flott_core::{Error, Result};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::arrow::{ArrowSchemaConverter, ArrowWriter};
use parquet::basic::{Compression, Encoding, Type};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::reader::ChunkReader;
use parquet::schema::types::ColumnPath;

use super::StateColumns;
use super::layout::KEY_GROUP;
use super::rows::ROWS_MAX;

/// How large a row group becomes: it is what a reader can skip, and what a writer holds.
const ROW_GROUP_ROWS_MAX: usize = 1 << 20;
const ROW_GROUP_BYTES_MAX: usize = 64 << 20;

/// Writes base sections as one file; returns the number of its rows, and the file.
///
/// # Errors
/// A section is not what its state's types write, or one of them has no columns that give back what was put into them.
pub fn write_table<'a>(
    columns: &dyn StateColumns,
    sections: impl Iterator<Item = (KeyGroup, u64, &'a [u8])>,
) -> Result<(u64, Vec<u8>)> {
    write_row_groups(columns, sections, ROW_GROUP_ROWS_MAX)
}

/// Like [`write_table`], with row groups of at most this many rows.
pub(super) fn write_row_groups<'a>(
    columns: &dyn StateColumns,
    mut sections: impl Iterator<Item = (KeyGroup, u64, &'a [u8])>,
    rows_max: usize,
) -> Result<(u64, Vec<u8>)> {
    write(
        columns,
        Vec::new(),
        |visit| sections.try_for_each(|(group, entries, body)| visit(group, entries, body)),
        rows_max,
    )
}

/// Takes key group, number of entries, and entries of a section.
pub type SectionVisitor<'a> = &'a mut dyn FnMut(KeyGroup, u64, &[u8]) -> Result<()>;

/// Like [`write_table`], for state that is larger than memory: the file goes into `out`, which is given back, and the
/// sections are those that `sections` gives to its visitor, each of which may be a part of its key group.
///
/// # Errors
/// Those of [`write_table`] and of `sections`, and `out` cannot be written.
pub fn write_table_to<W: Write + Send>(
    columns: &dyn StateColumns,
    out: W,
    sections: impl FnOnce(SectionVisitor<'_>) -> Result<()>,
) -> Result<(u64, W)> {
    write(columns, out, sections, ROW_GROUP_ROWS_MAX)
}

fn write<W: Write + Send>(
    columns: &dyn StateColumns,
    out: W,
    sections: impl FnOnce(SectionVisitor<'_>) -> Result<()>,
    rows_max: usize,
) -> Result<(u64, W)> {
    let failed = |error: ParquetError| Error::system(format!("writing Parquet: {error}"));
    let schema = columns.arrow_schema();
    let properties = properties(&schema, rows_max).map_err(failed)?;
    let mut writer = ArrowWriter::try_new(out, schema, Some(properties)).map_err(failed)?;
    let mut rows = 0;
    sections(&mut |group, entries, body| {
        rows += entries;
        columns.batches(group, entries, body, &mut |batch| writer.write(&batch).map_err(failed))
    })?;
    Ok((rows, writer.into_inner().map_err(failed)?))
}

fn properties(schema: &Schema, rows_max: usize) -> Result<WriterProperties, ParquetError> {
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::LZ4_RAW)
        // State has few repetitions that are worth looking for, and nobody looks for its values by their order, but
        // rows are sorted by key group.
        .set_dictionary_enabled(false)
        .set_statistics_enabled(EnabledStatistics::None)
        .set_column_dictionary_enabled(ColumnPath::from(KEY_GROUP), true)
        .set_column_statistics_enabled(ColumnPath::from(KEY_GROUP), EnabledStatistics::Chunk)
        .set_max_row_group_row_count(Some(rows_max))
        .set_max_row_group_bytes(Some(ROW_GROUP_BYTES_MAX));
    // Most numbers are small, and texts lie one behind the other without their lengths in between: both take less space than
    // they do plainly, and less time, since compression has less to go through.
    for column in ArrowSchemaConverter::new().convert(schema)?.columns() {
        let encoding = match column.physical_type() {
            Type::INT32 | Type::INT64 => Encoding::DELTA_BINARY_PACKED,
            Type::BYTE_ARRAY => Encoding::DELTA_LENGTH_BYTE_ARRAY,
            _ => continue,
        };
        properties = properties.set_column_encoding(column.path().clone(), encoding);
    }
    Ok(properties.build())
}

/// The rows of a file, which may be in memory or not, in batches.
///
/// # Errors
/// The file is no Parquet file, or damaged; what is wrong inside is found on the way.
pub fn read_table(file: impl ChunkReader + 'static) -> Result<impl Iterator<Item = Result<RecordBatch>>> {
    let reader = ParquetRecordBatchReaderBuilder::try_new(file)
        .and_then(|builder| builder.with_batch_size(ROWS_MAX).build())
        .map_err(|error| Error::input(format!("not a Parquet file, or a damaged one: {error}")))?;
    Ok(reader.map(|rows| rows.map_err(|error| Error::input(format!("a damaged Parquet file: {error}")))))
}
