//! Rows into Avro.

use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use arrow::datatypes::{Schema, SchemaRef};
use arrow_avro::errors::AvroError;
use arrow_avro::writer::format::AvroOcfFormat;
use arrow_avro::writer::{Writer, WriterBuilder};
use flott_chunk::Chunk;
use flott_core::{Error, Result};
use flott_formats::Encoder;

use super::{AvroOptions, avro_schema};
use crate::conform::conform_batch;

/// How many rows a block has, or a few more.
const BLOCK_ROWS: usize = 2048;

/// How many bytes a block has, in memory and about.
const BLOCK_BYTES: u64 = 1 << 20;

/// Where Arrow's writer finds the schema of the file.
const SCHEMA: &str = "avro.schema";

/// Writes one file. Bytes come whenever a block is full.
pub struct AvroEncoder {
    schema: SchemaRef,
    options: AvroOptions,
    output: Output,
    writer: Option<Writer<Output, AvroOcfFormat>>,
    /// Rows that are not written yet, and how many bytes they take in memory.
    kept: Vec<RecordBatch>,
    rows: usize,
    memory_bytes: u64,
}

impl AvroEncoder {
    /// For a table with these columns.
    ///
    /// # Errors
    /// Which column has no form in Avro.
    pub fn new(table: &str, schema: &Schema, options: AvroOptions) -> Result<Self> {
        let (json, columns) = avro_schema(table, schema, &options)?;
        let metadata = HashMap::from([(SCHEMA.to_owned(), json)]);
        let schema = Arc::new(Schema::new_with_metadata(columns.fields().clone(), metadata));
        let output = Output::default();
        Ok(Self { schema, options, output, writer: None, kept: Vec::new(), rows: 0, memory_bytes: 0 })
    }

    /// Writes what is kept as a block; the first call begins the file.
    pub(super) fn write(&mut self, out: &mut Vec<u8>) -> Result<()> {
        let writer = match &mut self.writer {
            Some(writer) => writer,
            writer => {
                let builder = WriterBuilder::new(self.schema.as_ref().clone()).with_compression(self.options.codec);
                writer.insert(builder.build(self.output.clone()).map_err(|error| failed(&error))?)
            }
        };
        if self.rows > 0 {
            let batch = concat_batches(&self.schema, &self.kept);
            let batch = batch.map_err(|error| Error::system(format!("joining rows: {error}")))?;
            writer.write(&batch).map_err(|error| failed(&error))?;
            self.kept.clear();
            (self.rows, self.memory_bytes) = (0, 0);
        }
        out.append(&mut self.output.bytes());
        Ok(())
    }
}

fn failed(error: &AvroError) -> Error {
    Error::system(format!("writing Avro: {error}"))
}

impl Encoder<Chunk> for AvroEncoder {
    fn encode(&mut self, chunks: &[Chunk], _: bool, out: &mut Vec<u8>) -> Result<()> {
        for chunk in chunks {
            let batch = conform_batch(&chunk.batch, &self.schema)
                .map_err(|reason| Error::user_code(format!("a row cannot be written as Avro: {reason}")))?;
            self.rows += batch.num_rows();
            self.memory_bytes += batch.get_array_memory_size() as u64;
            self.kept.push(batch);
            if self.rows >= BLOCK_ROWS || self.memory_bytes >= BLOCK_BYTES {
                self.write(out)?;
            }
        }
        Ok(())
    }

    fn bytes_kept(&self) -> u64 {
        self.memory_bytes
    }

    fn memory_bytes(&self) -> u64 {
        self.memory_bytes
    }

    fn finish(&mut self, out: &mut Vec<u8>) -> Result<()> {
        self.write(out)
    }
}

/// Takes the bytes of a writer, which keeps what it is given.
#[derive(Clone, Debug, Default)]
struct Output(Arc<Mutex<Vec<u8>>>);

impl Output {
    fn bytes(&self) -> std::sync::MutexGuard<'_, Vec<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
