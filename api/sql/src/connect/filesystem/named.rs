//! The names that a table's columns have in its files: a query that is written to it may have others.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{Field, Schema};
use flott_chunk::Chunk;
use flott_core::{Error, Result};
use flott_formats::Encoder;

/// An encoder that takes names from its rows, and gets rows with the names of `schema`.
pub(super) struct Named<E> {
    schema: Arc<Schema>,
    encoder: E,
}

impl<E> Named<E> {
    pub(super) fn new(schema: Arc<Schema>, encoder: E) -> Self {
        Self { schema, encoder }
    }

    fn rename(&self, chunk: &Chunk) -> Result<Chunk> {
        let schema = chunk.batch.schema_ref();
        if schema.fields().iter().map(|field| field.name()).eq(self.schema.fields().iter().map(|field| field.name())) {
            return Ok(chunk.clone());
        }
        let fields = schema.fields().iter().zip(self.schema.fields());
        let fields: Vec<Field> = fields.map(|(field, own)| field.as_ref().clone().with_name(own.name())).collect();
        let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), chunk.batch.columns().to_vec());
        let batch = batch.map_err(|error| Error::system(format!("rows are not those of the table: {error}")))?;
        Ok(chunk.with_batch(batch))
    }
}

impl<E: Encoder<Chunk>> Encoder<Chunk> for Named<E> {
    fn encode(&mut self, chunks: &[Chunk], is_first: bool, out: &mut Vec<u8>) -> Result<()> {
        let chunks = chunks.iter().map(|chunk| self.rename(chunk)).collect::<Result<Vec<Chunk>>>()?;
        self.encoder.encode(&chunks, is_first, out)
    }

    fn bytes_kept(&self) -> u64 {
        self.encoder.bytes_kept()
    }

    fn memory_bytes(&self) -> u64 {
        self.encoder.memory_bytes()
    }

    fn finish(&mut self, out: &mut Vec<u8>) -> Result<()> {
        self.encoder.finish(out)
    }
}
