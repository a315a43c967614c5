//! Rows into Parquet.

use arrow::datatypes::{Schema, SchemaRef};
use flott_chunk::Chunk;
use flott_core::{Error, Result};
use flott_formats::Encoder;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::errors::ParquetError;

use super::ParquetOptions;
use crate::conform::conform_batch;

/// Writes one file. Bytes come whenever a row group is full.
pub struct ParquetEncoder {
    schema: SchemaRef,
    options: ParquetOptions,
    writer: Option<ArrowWriter<Vec<u8>>>,
}

impl ParquetEncoder {
    /// For a table with these columns.
    pub fn new(schema: &Schema, options: ParquetOptions) -> Self {
        Self { schema: options.file_schema(schema), options, writer: None }
    }

    fn writer(&mut self) -> Result<&mut ArrowWriter<Vec<u8>>> {
        if self.writer.is_none() {
            let options = ArrowWriterOptions::new()
                .with_properties(self.options.properties())
                .with_skip_arrow_metadata(true)
                .with_schema_root("flott".to_owned());
            let writer = ArrowWriter::try_new_with_options(Vec::new(), self.schema.clone(), options);
            self.writer = Some(writer.map_err(|error| failed(&error))?);
        }
        self.writer.as_mut().ok_or_else(|| Error::system("there is no Parquet writer"))
    }
}

fn failed(error: &ParquetError) -> Error {
    Error::system(format!("writing Parquet: {error}"))
}

impl Encoder<Chunk> for ParquetEncoder {
    fn encode(&mut self, chunks: &[Chunk], _: bool, out: &mut Vec<u8>) -> Result<()> {
        for chunk in chunks {
            let batch = conform_batch(&chunk.batch, &self.schema)
                .map_err(|reason| Error::user_code(format!("a row cannot be written as Parquet: {reason}")))?;
            self.writer()?.write(&batch).map_err(|error| failed(&error))?;
        }
        if let Some(writer) = &mut self.writer {
            out.append(writer.inner_mut());
        }
        Ok(())
    }

    fn bytes_kept(&self) -> u64 {
        self.writer.as_ref().map_or(0, |writer| writer.in_progress_size() as u64)
    }

    fn memory_bytes(&self) -> u64 {
        self.writer.as_ref().map_or(0, |writer| writer.memory_size() as u64)
    }

    fn finish(&mut self, out: &mut Vec<u8>) -> Result<()> {
        let writer = self.writer()?;
        writer.finish().map_err(|error| failed(&error))?;
        out.append(writer.inner_mut());
        Ok(())
    }
}
