//! Parquet into rows, a row group after the other.

use std::collections::VecDeque;
use std::io::{self, Read};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::{Array, ArrayRef};
use arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema, SchemaRef, TimeUnit};
use bytes::Bytes;
use flott_chunk::Chunk;
use flott_core::{Error, Result};
use flott_formats::{BlockFormat, BlockReader, FileBytes, Position};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::statistics::StatisticsConverter;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use parquet::basic::Type;
use parquet::errors::ParquetError;
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::reader::{ChunkReader, Length};
use parquet::schema::types::SchemaDescriptor;

use super::{ROWS_MAX, Statistics};
use crate::conform::{check, conform_batch};

/// How much is read at once where it is not known how much is needed.
const PIECE_BYTES: u64 = 4 << 10;

/// Says which row groups can have rows that are wanted.
pub type RowGroups = Arc<dyn Fn(&dyn Statistics) -> Result<Vec<bool>> + Send + Sync>;

/// Reads some columns of Parquet files.
#[derive(Clone)]
pub struct ParquetFormat {
    schema: SchemaRef,
    row_groups: Option<RowGroups>,
}

impl ParquetFormat {
    /// Reads these columns.
    pub fn new(schema: &SchemaRef) -> Self {
        Self { schema: Arc::clone(schema), row_groups: None }
    }

    /// Reads only the row groups that are chosen.
    #[must_use]
    pub fn row_groups(mut self, choose: Option<RowGroups>) -> Self {
        self.row_groups = choose;
        self
    }
}

impl BlockFormat<Chunk> for ParquetFormat {
    fn open(
        &self,
        file: Arc<dyn FileBytes>,
        range: Range<u64>,
        from: Option<Position>,
    ) -> Result<Box<dyn BlockReader<Chunk>>> {
        let chunks = Chunks { file: Arc::clone(&file), ahead: Arc::default(), failed: Arc::default() };
        let plain = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
        let metadata = ArrowReaderMetadata::load(&chunks, plain.clone()).map_err(|error| chunks.explain(&error))?;
        let of_file = with_hints(metadata.schema(), metadata.parquet_schema(), &self.schema);
        let metadata = ArrowReaderMetadata::try_new(Arc::clone(metadata.metadata()), plain.with_schema(of_file))
            .map_err(|error| chunks.explain(&error))?;
        let named = |reason: String| Error::input(format!("{}: {reason}", file.name()));
        let mut roots = Vec::new();
        for field in self.schema.fields() {
            if let Ok(at) = metadata.schema().index_of(field.name()) {
                check(metadata.schema().field(at), field).map_err(named)?;
                roots.push(at);
            }
        }
        let mask = ProjectionMask::roots(metadata.parquet_schema(), roots);
        let groups = metadata.metadata().row_groups();
        let is_chosen = match &self.row_groups {
            Some(choose) => choose(&FileStatistics { metadata: &metadata, schema: &self.schema })?,
            None => vec![true; groups.len()],
        };
        let from = from.unwrap_or_default();
        let queue: VecDeque<usize> = (0..groups.len())
            .filter(|&group| group as u64 >= from.block && is_chosen[group])
            .filter(|&group| range.contains(&middle(&groups[group]).min(file.length().saturating_sub(1))))
            .collect();
        Ok(Box::new(Reader { schema: Arc::clone(&self.schema), chunks, metadata, mask, queue, from, current: None }))
    }
}

/// The middle of the bytes of a row group.
fn middle(group: &RowGroupMetaData) -> u64 {
    let ranges = || group.columns().iter().map(|column| column.byte_range());
    let start = ranges().map(|(start, _)| start).min().unwrap_or(0);
    let bytes: u64 = ranges().fold(0, |sum, (_, bytes)| sum.saturating_add(bytes));
    start.saturating_add(bytes / 2)
}

/// The columns of a file in Arrow's types: INT96 in a unit that has all the table's times.
fn with_hints(of_file: &Schema, parquet: &SchemaDescriptor, table: &Schema) -> SchemaRef {
    fn hinted(field: &FieldRef, parquet: &SchemaDescriptor, leaf: &mut usize, unit: TimeUnit) -> FieldRef {
        let mut of = |field: &FieldRef| hinted(field, parquet, leaf, unit);
        let data_type = match field.data_type() {
            DataType::List(element) => DataType::List(of(element)),
            DataType::Map(entries, is_sorted) => DataType::Map(of(entries), *is_sorted),
            DataType::Struct(fields) => DataType::Struct(fields.iter().map(of).collect::<Fields>()),
            other => {
                let is_int96 = *leaf < parquet.num_columns() && parquet.column(*leaf).physical_type() == Type::INT96;
                *leaf += 1;
                if is_int96 { DataType::Timestamp(unit, None) } else { other.clone() }
            }
        };
        Arc::new(field.as_ref().clone().with_data_type(data_type))
    }
    let mut leaf = 0;
    let field_of = |field: &FieldRef| {
        let has_nanos = table.field_with_name(field.name()).is_ok_and(|wanted| has_nanos(wanted.data_type()));
        let unit = if has_nanos { TimeUnit::Nanosecond } else { TimeUnit::Microsecond };
        hinted(field, parquet, &mut leaf, unit)
    };
    let fields: Vec<FieldRef> = of_file.fields().iter().map(field_of).collect();
    Arc::new(Schema::new(fields))
}

fn has_nanos(data_type: &DataType) -> bool {
    match data_type {
        DataType::Timestamp(unit, _) => *unit == TimeUnit::Nanosecond,
        DataType::List(field) | DataType::Map(field, _) => has_nanos(field.data_type()),
        DataType::Struct(fields) => fields.iter().any(|field| has_nanos(field.data_type())),
        _ => false,
    }
}

/// The row groups of a range of a file.
struct Reader {
    schema: SchemaRef,
    chunks: Chunks,
    metadata: ArrowReaderMetadata,
    mask: ProjectionMask,
    /// The row groups that are not begun.
    queue: VecDeque<usize>,
    /// Where reading began.
    from: Position,
    current: Option<RowGroup>,
}

/// The row group that is being read.
struct RowGroup {
    number: u64,
    /// How many of its rows are read.
    row: u64,
    batches: ParquetRecordBatchReader,
}

impl Reader {
    fn begin(&self, group: usize) -> Result<RowGroup> {
        let columns = self.metadata.metadata().row_group(group).columns();
        let ranges: Vec<Range<u64>> = (columns.iter().enumerate())
            .filter(|(leaf, _)| self.mask.leaf_included(*leaf))
            .map(|(_, column)| {
                let (start, bytes) = column.byte_range();
                start..start.saturating_add(bytes)
            })
            .collect();
        let ahead = match self.chunks.file.read_ahead(&ranges)? {
            Some(read) => ranges.iter().map(|range| range.start).zip(read).collect(),
            None => Vec::new(),
        };
        let chunks = Chunks { ahead: ahead.into(), ..self.chunks.clone() };
        let number = group as u64;
        let row = if number == self.from.block { self.from.row } else { 0 };
        let offset = usize::try_from(row).unwrap_or(usize::MAX);
        let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(chunks, self.metadata.clone())
            .with_row_groups(vec![group])
            .with_projection(self.mask.clone())
            .with_batch_size(ROWS_MAX)
            .with_offset(offset);
        Ok(RowGroup { number, row, batches: builder.build().map_err(|error| self.chunks.explain(&error))? })
    }
}

impl BlockReader<Chunk> for Reader {
    fn next(&mut self) -> Result<Option<(Chunk, Position)>> {
        loop {
            let Some(current) = &mut self.current else {
                let Some(group) = self.queue.pop_front() else { return Ok(None) };
                self.current = Some(self.begin(group)?);
                continue;
            };
            let Some(batch) = current.batches.next() else {
                self.current = None;
                continue;
            };
            let place = |reason: &str| format!("{}, row group {}: {reason}", self.chunks.file.name(), current.number);
            let batch = batch.map_err(|error| {
                self.chunks.failure().unwrap_or_else(|| Error::input(place(&format!("the data is damaged: {error}"))))
            })?;
            let position = Position { block: current.number, row: current.row + batch.num_rows() as u64 };
            let batch = conform_batch(&batch, &self.schema).map_err(|reason| Error::input(place(&reason)))?;
            current.row = position.row;
            return Ok(Some((Chunk::inserts(batch), position)));
        }
    }
}

/// A file as Parquet's reader wants it.
#[derive(Clone)]
struct Chunks {
    file: Arc<dyn FileBytes>,
    /// Ranges that were read before they are asked for, by their starts.
    ahead: Arc<[(u64, Bytes)]>,
    /// What went wrong with the file, which Parquet's errors do not say.
    failed: Arc<Mutex<Option<Error>>>,
}

impl Chunks {
    fn failure(&self) -> Option<Error> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn explain(&self, error: &ParquetError) -> Error {
        self.failure().unwrap_or_else(|| {
            Error::input(format!("{} is no Parquet file, or it is truncated or damaged: {error}", self.file.name()))
        })
    }

    fn read_at(&self, range: Range<u64>) -> Result<Bytes> {
        for (start, bytes) in self.ahead.iter() {
            if range.start >= *start && range.end <= start + bytes.len() as u64 && range.start <= range.end {
                return Ok(bytes.slice((range.start - start) as usize..(range.end - start) as usize));
            }
        }
        self.file.read_at(range).inspect_err(|error| {
            *self.failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.clone());
        })
    }
}

impl Length for Chunks {
    fn len(&self) -> u64 {
        self.file.length()
    }
}

impl ChunkReader for Chunks {
    type T = Pieces;

    fn get_read(&self, start: u64) -> Result<Pieces, ParquetError> {
        Ok(Pieces { chunks: self.clone(), next: start, piece: Bytes::new() })
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        let range = start..start.saturating_add(length as u64);
        self.read_at(range).map_err(|error| ParquetError::External(Box::new(error)))
    }
}

/// The bytes of a file from some place on.
struct Pieces {
    chunks: Chunks,
    next: u64,
    piece: Bytes,
}

impl Read for Pieces {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.piece.is_empty() {
            let end = (self.next + PIECE_BYTES).min(self.chunks.file.length());
            if self.next >= end {
                return Ok(0);
            }
            self.piece = self.chunks.read_at(self.next..end).map_err(io::Error::other)?;
            self.next = end;
        }
        let bytes = self.piece.len().min(buffer.len());
        buffer[..bytes].copy_from_slice(&self.piece.split_to(bytes));
        Ok(bytes)
    }
}

struct FileStatistics<'a> {
    metadata: &'a ArrowReaderMetadata,
    schema: &'a SchemaRef,
}

impl FileStatistics<'_> {
    fn of(
        &self,
        column: &str,
        read: impl Fn(&StatisticsConverter<'_>, &[RowGroupMetaData]) -> parquet::errors::Result<ArrayRef>,
    ) -> Option<ArrayRef> {
        let parquet = self.metadata.parquet_schema();
        let converter = StatisticsConverter::try_new(column, self.metadata.schema(), parquet).ok()?;
        // What is missing in a file says nothing.
        read(&converter.with_missing_null_counts_as_zero(false), self.metadata.metadata().row_groups()).ok()
    }

    /// Bounds as values of the table. Those of floating point numbers leave NaN out.
    fn bounds(
        &self,
        column: &str,
        read: impl Fn(&StatisticsConverter<'_>, &[RowGroupMetaData]) -> parquet::errors::Result<ArrayRef>,
    ) -> Option<ArrayRef> {
        let wanted = self.schema.field_with_name(column).ok()?;
        if wanted.data_type().is_floating() || wanted.data_type().is_nested() {
            return None;
        }
        let bounds = self.of(column, read)?;
        let field = Field::new(column, bounds.data_type().clone(), true);
        let batch = arrow::array::RecordBatch::try_new(Arc::new(Schema::new(vec![field])), vec![bounds]).ok()?;
        let wanted = Arc::new(Schema::new(vec![wanted.clone().with_nullable(true)]));
        conform_batch(&batch, &wanted).ok().map(|batch| Arc::clone(batch.column(0)))
    }
}

impl Statistics for FileStatistics<'_> {
    fn row_groups(&self) -> usize {
        self.metadata.metadata().num_row_groups()
    }

    fn rows(&self) -> Option<ArrayRef> {
        let rows = self.metadata.metadata().row_groups().iter().map(|group| group.num_rows().max(0) as u64);
        Some(Arc::new(arrow::array::UInt64Array::from_iter_values(rows)))
    }

    fn least(&self, column: &str) -> Option<ArrayRef> {
        self.bounds(column, |converter, groups| converter.row_group_mins(groups))
    }

    fn greatest(&self, column: &str) -> Option<ArrayRef> {
        self.bounds(column, |converter, groups| converter.row_group_maxes(groups))
    }

    fn nulls(&self, column: &str) -> Option<ArrayRef> {
        self.of(column, |converter, groups| Ok(Arc::new(converter.row_group_null_counts(groups)?)))
            .filter(|nulls| nulls.null_count() == 0)
    }
}
