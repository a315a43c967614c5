//! Avro into rows.

use std::io::{Chain, Cursor, Read};
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{DataType, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow_avro::reader::{Reader as ArrowReader, ReaderBuilder};
use bytes::Bytes;
use flott_chunk::Chunk;
use flott_core::{Error, Result};
use flott_formats::{BlockFormat, BlockReader, FileBytes, Position};

use super::container::{Container, Stretch};
use crate::conform::{check, conform_batch};

/// How many rows a chunk has.
const ROWS_MAX: usize = 8192;

/// Reads some columns of Avro files.
#[derive(Clone, Debug)]
pub struct AvroFormat {
    schema: SchemaRef,
}

impl AvroFormat {
    /// Reads these columns.
    pub fn new(schema: &SchemaRef) -> Self {
        Self { schema: Arc::clone(schema) }
    }
}

impl BlockFormat<Chunk> for AvroFormat {
    fn open(
        &self,
        file: Arc<dyn FileBytes>,
        range: Range<u64>,
        from: Option<Position>,
    ) -> Result<Box<dyn BlockReader<Chunk>>> {
        let container = Container::read(&*file)?;
        let projection = (!container.is_wrapped && !self.schema.fields().is_empty()).then(|| {
            let read = |name: &String| self.schema.field_with_name(name).is_ok();
            let fields = container.fields.iter().enumerate();
            fields.filter(|(_, name)| read(name)).map(|(at, _)| at).collect::<Vec<_>>()
        });
        // With no column of it, rows are still to be counted.
        let projection = projection.filter(|fields| !fields.is_empty());
        let (next, skip) = match from {
            Some(position) => (position.block, position.row),
            None => (container.first_block(&*file, range.start)?, 0),
        };
        let reader = Reader {
            schema: Arc::clone(&self.schema),
            file,
            container,
            projection,
            end: range.end,
            next,
            skip,
            stretch: Stretch::default(),
            current: None,
        };
        reader.check()?;
        Ok(Box::new(reader))
    }
}

type Decoder = ArrowReader<Chain<Cursor<Bytes>, Cursor<Bytes>>>;

/// The blocks of a range of a file.
struct Reader {
    schema: SchemaRef,
    file: Arc<dyn FileBytes>,
    container: Container,
    /// Which fields of records are decoded; `None` for all.
    projection: Option<Vec<usize>>,
    /// Where the range ends.
    end: u64,
    /// Where the blocks begin that are not read yet from the disk.
    next: u64,
    /// How many rows of the first block were read before.
    skip: u64,
    stretch: Stretch,
    current: Option<Current>,
}

/// The block that is being read.
struct Current {
    start: u64,
    rows: RecordBatch,
    /// How many of its rows are read.
    row: usize,
}

impl Reader {
    fn decoder(&self, blocks: Bytes, rows: usize) -> Result<Decoder, ArrowError> {
        let mut builder = ReaderBuilder::new().with_batch_size(rows);
        if let Some(projection) = &self.projection {
            builder = builder.with_projection(projection.clone());
        }
        builder.build(Cursor::new(self.container.header.clone()).chain(Cursor::new(blocks)))
    }

    /// That the file has the columns in types that can be read.
    fn check(&self) -> Result<()> {
        let name = self.file.name();
        let decoder = self.decoder(Bytes::new(), 1);
        let decoder = decoder.map_err(|error| Error::input(format!("{name}: its schema cannot be read: {error}")))?;
        let schema = decoder.schema();
        let fields = match (self.container.is_wrapped, schema.fields().first().map(|row| row.data_type())) {
            (false, _) => schema.fields(),
            (true, Some(DataType::Struct(fields))) => fields,
            _ => return Err(Error::input(format!("{name}: its schema is no record, so it has no columns"))),
        };
        for field in self.schema.fields() {
            if let Some((_, of_file)) = fields.find(field.name()) {
                check(of_file, field).map_err(|reason| Error::input(format!("{name}: {reason}")))?;
            }
        }
        Ok(())
    }

    /// The columns of the table.
    fn columns(&self, batch: &RecordBatch) -> Result<RecordBatch, String> {
        if !self.container.is_wrapped {
            return conform_batch(batch, &self.schema);
        }
        let rows = batch.column(0).as_struct();
        if rows.null_count() > 0 {
            return Err("a record of it is null".to_owned());
        }
        let schema = Arc::new(Schema::new(rows.fields().clone()));
        let batch = flott_chunk::batch_of(&schema, rows.columns().to_vec(), rows.len());
        conform_batch(&batch.map_err(|error| error.message)?, &self.schema)
    }

    /// The next block that has rows.
    fn begin(&mut self) -> Result<Option<Current>> {
        loop {
            let Some(block) = self.stretch.blocks.pop_front() else {
                if self.next >= self.end.min(self.file.length()) {
                    return Ok(None);
                }
                self.stretch = self.container.stretch(&*self.file, self.next, self.end)?;
                self.next = self.stretch.start + self.stretch.bytes.len() as u64;
                continue;
            };
            let start = self.stretch.start + block.bytes.start as u64;
            let skip = usize::try_from(std::mem::take(&mut self.skip)).unwrap_or(usize::MAX);
            if block.rows == 0 {
                continue;
            }
            let rows = self.rows(self.stretch.bytes.slice(block.bytes), block.rows).map_err(|reason| {
                Error::input(format!("{}, block at byte {start}: it cannot be read: {reason}", self.file.name()))
            })?;
            if skip < rows.num_rows() {
                return Ok(Some(Current { start, rows, row: skip }));
            }
        }
    }

    /// The rows of a block. They are decoded at once: Arrow's reader must not come to the end of the block with a number of
    /// rows that a damaged block denies, since it would wait there for ever.
    fn rows(&self, block: Bytes, rows: usize) -> Result<RecordBatch, String> {
        let batch = self.decoder(block, rows).and_then(|mut decoder| decoder.next().transpose());
        let batch = batch.map_err(|error| error.to_string())?.ok_or("it has fewer rows than it says")?;
        match batch.num_rows() == rows {
            true => self.columns(&batch),
            false => Err(format!("it has {} rows, and says {rows}", batch.num_rows())),
        }
    }
}

impl BlockReader<Chunk> for Reader {
    fn next(&mut self) -> Result<Option<(Chunk, Position)>> {
        if self.current.is_none() {
            self.current = self.begin()?;
        }
        let Some(current) = &mut self.current else { return Ok(None) };
        let left = current.rows.num_rows() - current.row;
        let rows = current.rows.slice(current.row, left.min(ROWS_MAX));
        current.row += rows.num_rows();
        let position = Position { block: current.start, row: current.row as u64 };
        if left <= ROWS_MAX {
            self.current = None;
        }
        Ok(Some((Chunk::inserts(rows), position)))
    }
}
