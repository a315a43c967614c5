//! Files as rows of a table: its formats, and the values that stand in the names of folders.

use std::ops::Range;
use std::sync::Arc;

use arrow::datatypes::{Schema, SchemaRef};
use datafusion::common::ScalarValue;
use flott_chunk::Chunk;
use flott_core::Result;
use flott_filesystem::{BlockSource, FilePath, FileSource};
use flott_formats::{BlockFormat, BlockReader, Decoded, Decoder, FileBytes, Malformed, Position};
use flott_sql_runtime::expr::Functions;
use flott_sql_runtime::spec::SourceSpec;
use flott_tables::avro::{AvroFormat, AvroOptions};
use flott_tables::csv::{CsvDecoder, CsvOptions};
use flott_tables::json::{ChangeDecoder, ChangeFormat, ChangeOptions, JsonDecoder, JsonOptions};
use flott_tables::options::Options;
use flott_tables::parquet::{ParquetFormat, ParquetOptions};
use flott_tables::raw::{RawDecoder, RawOptions};

use super::layout::{Layout, Reading};
use super::{TableFiles, pruning, unknown_format};
use crate::connect::projected;

/// The files of a table in any format.
pub(super) fn files(
    spec: &SourceSpec,
    options: &Options,
    layout: Option<Layout>,
    functions: Option<&Functions>,
) -> Result<TableFiles> {
    let path = options.required("path")?.to_owned();
    let format = options.required("format")?;
    let in_files = match &layout {
        Some(layout) => layout.file_schema(&spec.table_schema),
        None => Arc::clone(&spec.table_schema),
    };
    let reading = layout.as_ref().map(|layout| layout.reading(&spec.table_schema, &spec.projection));
    let schema = match &reading {
        Some(reading) => Arc::clone(&reading.in_files),
        None => projected(spec)?,
    };
    let keys = layout.zip(reading).map(|(layout, reading)| Arc::new(Keys { layout, reading }));
    let folders = match (&keys, functions) {
        (Some(keys), Some(functions)) => pruning::folders(spec, &keys.reading, functions)?,
        _ => None,
    };
    // Which files are read: those whose folders can have rows that are wanted.
    let choose = keys.clone().zip(folders).map(|(keys, wanted)| {
        move |file: &FilePath| keys.layout.values(file).and_then(|values| wanted(&keys.reading.row(&values)?))
    });
    if let Some(format) = block_format(spec, options, format, &schema, functions)? {
        let source = BlockSource::new(path, move |file| match &keys {
            None => Ok(format()),
            Some(keys) => {
                let values = keys.layout.values(file)?;
                Ok(Box::new(WithKeys { inner: format(), keys: Arc::clone(keys), values: values.into() }))
            }
        });
        return Ok(TableFiles::Blocks(match choose {
            Some(choose) => source.choose(choose),
            None => source,
        }));
    }
    // Rows are counted by something.
    let schema = match schema.fields().is_empty() {
        true => Arc::new(Schema::new(in_files.fields()[..1].to_vec())),
        false => schema,
    };
    let (decoder, is_whole) = line_format(options, format, &schema, &in_files)?;
    let source = FileSource::with_decoder(path, move |file| match &keys {
        None => decoder(),
        Some(keys) => {
            let values = keys.layout.values(file)?;
            Ok(Box::new(WithKeys { inner: decoder()?, keys: Arc::clone(keys), values: values.into() }))
        }
    });
    let source = source.whole_files(is_whole);
    Ok(TableFiles::Lines(match choose {
        Some(choose) => source.choose(choose),
        None => source,
    }))
}

type NewFormat = Box<dyn Fn() -> Box<dyn BlockFormat<Chunk>> + Send + Sync>;
type NewDecoder = Box<dyn Fn() -> Result<Box<dyn Decoder<Chunk>>> + Send + Sync>;

/// A format that is read in pieces; `None` if it is another one.
fn block_format(
    spec: &SourceSpec,
    options: &Options,
    format: &str,
    schema: &SchemaRef,
    functions: Option<&Functions>,
) -> Result<Option<NewFormat>> {
    Ok(match format {
        "parquet" => {
            ParquetOptions::read(options)?;
            let row_groups = functions.and_then(|functions| pruning::row_groups(spec, functions));
            let format = ParquetFormat::new(schema).row_groups(row_groups);
            Some(Box::new(move || Box::new(format.clone())))
        }
        "avro" => {
            AvroOptions::read(options)?;
            let format = AvroFormat::new(schema);
            Some(Box::new(move || Box::new(format.clone())))
        }
        _ => None,
    })
}

/// A format that is read in lines, and whether one reader has all of a file.
fn line_format(
    options: &Options,
    format: &str,
    schema: &SchemaRef,
    in_files: &SchemaRef,
) -> Result<(NewDecoder, bool)> {
    let schema = Arc::clone(schema);
    let (new, is_whole): (NewDecoder, bool) = match format {
        "json" => {
            let json = JsonOptions::read(options)?;
            (Box::new(move || Ok(Box::new(JsonDecoder::new(&schema, json.clone())?))), false)
        }
        "csv" => {
            let csv = CsvOptions::read(options)?;
            let names: Vec<String> = in_files.fields().iter().map(|field| field.name().clone()).collect();
            (Box::new(move || Ok(Box::new(CsvDecoder::new(&schema, &names, csv.clone())?))), true)
        }
        "raw" => {
            let raw = RawOptions::read(options, in_files)?;
            (Box::new(move || Ok(Box::new(RawDecoder::new(&schema, raw)?))), false)
        }
        format => {
            let Some(format) = ChangeFormat::of(format) else { return Err(unknown_format(options, format)) };
            let changes = ChangeOptions::read(options, format)?;
            // One reader has all of a file, so that changes come in their order.
            (Box::new(move || Ok(Box::new(ChangeDecoder::new(&schema, changes.clone())?))), true)
        }
    };
    // Once now, so that mistakes are found in planning.
    new()?;
    Ok((new, is_whole))
}

/// Where a table's columns are.
struct Keys {
    layout: Layout,
    reading: Reading,
}

/// Adds the values of a file's folders to its rows.
struct WithKeys<T: ?Sized> {
    keys: Arc<Keys>,
    values: Arc<[ScalarValue]>,
    inner: Box<T>,
}

impl Decoder<Chunk> for WithKeys<dyn Decoder<Chunk>> {
    fn header(&mut self, line: &[u8]) -> Result<()> {
        self.inner.header(line)
    }

    fn decode(&mut self, input: &[u8], is_end: bool, rows_max: usize, rows: &mut Vec<Chunk>) -> Decoded {
        let first = rows.len();
        let decoded = self.inner.decode(input, is_end, rows_max, rows);
        for chunk in &mut rows[first..] {
            match self.keys.reading.complete(chunk, &self.values) {
                Ok(completed) => *chunk = completed,
                Err(error) => {
                    rows.truncate(first);
                    return Decoded { bytes: 0, malformed: Some(Malformed { bytes: 0, reason: error.message }) };
                }
            }
        }
        decoded
    }
}

impl BlockFormat<Chunk> for WithKeys<dyn BlockFormat<Chunk>> {
    fn open(
        &self,
        file: Arc<dyn FileBytes>,
        range: Range<u64>,
        from: Option<Position>,
    ) -> Result<Box<dyn BlockReader<Chunk>>> {
        let inner = self.inner.open(file, range, from)?;
        Ok(Box::new(WithKeys { keys: Arc::clone(&self.keys), values: Arc::clone(&self.values), inner }))
    }
}

impl BlockReader<Chunk> for WithKeys<dyn BlockReader<Chunk>> {
    fn next(&mut self) -> Result<Option<(Chunk, Position)>> {
        let Some((chunk, position)) = self.inner.next()? else { return Ok(None) };
        Ok(Some((self.keys.reading.complete(&chunk, &self.values)?, position)))
    }
}
