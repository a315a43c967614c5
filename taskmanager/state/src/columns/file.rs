//! A table in a Parquet file.

use arrow::array::RecordBatch;
use bytes::Bytes;
use flott_core::key_group::KeyGroup;
use flott_core::{Error, Result};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
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
    sections: impl Iterator<Item = (KeyGroup, u64, &'a [u8])>,
    rows_max: usize,
) -> Result<(u64, Vec<u8>)> {
    let properties = WriterProperties::builder()
        .set_compression(Compression::LZ4_RAW)
        // State has few repetitions that are worth looking for, and nobody looks for its values by their order, but
        // rows are sorted by key group.
        .set_dictionary_enabled(false)
        .set_statistics_enabled(EnabledStatistics::None)
        .set_column_dictionary_enabled(ColumnPath::from(KEY_GROUP), true)
        .set_column_statistics_enabled(ColumnPath::from(KEY_GROUP), EnabledStatistics::Chunk)
        .set_max_row_group_row_count(Some(rows_max))
        .set_max_row_group_bytes(Some(ROW_GROUP_BYTES_MAX))
        .build();
    let failed = |error: ParquetError| Error::system(format!("writing Parquet: {error}"));
    let mut writer = ArrowWriter::try_new(Vec::new(), columns.arrow_schema(), Some(properties)).map_err(failed)?;
    let mut rows = 0;
    for (group, entries, body) in sections {
        columns.batches(group, entries, body, &mut |batch| writer.write(&batch).map_err(failed))?;
        rows += entries;
    }
    Ok((rows, writer.into_inner().map_err(failed)?))
}

/// The rows of a file, in batches.
///
/// # Errors
/// The file is no Parquet file, or damaged; what is wrong inside is found on the way.
pub fn read_table(file: Bytes) -> Result<impl Iterator<Item = Result<RecordBatch>>> {
    let reader = ParquetRecordBatchReaderBuilder::try_new(file)
        .and_then(|builder| builder.with_batch_size(ROWS_MAX).build())
        .map_err(|error| Error::input(format!("not a Parquet file, or a damaged one: {error}")))?;
    Ok(reader.map(|rows| rows.map_err(|error| Error::input(format!("a damaged Parquet file: {error}")))))
}
