//! Files as rows of a table: its formats, and the values that are not in files.

use std::ops::Range;
use std::sync::Arc;

use arrow::datatypes::{Schema, SchemaRef};
use datafusion::common::ScalarValue;
use flott_chunk::Chunk;
use flott_core::{Error, Result};
use flott_filesystem::{BlockSource, FilePath, FileSource};
use flott_formats::{BlockFormat, BlockReader, Decoded, Decoder, FileBytes, FileInfo, Malformed, Position};
use flott_sql_runtime::expr::Functions;
use flott_sql_runtime::spec::SourceSpec;
use flott_tables::avro::{AvroFormat, AvroOptions};
use flott_tables::csv::{CsvDecoder, CsvOptions};
use flott_tables::json::{ChangeDecoder, ChangeFormat, ChangeOptions, JsonDecoder, JsonOptions};
use flott_tables::options::Options;
use flott_tables::parquet::{ParquetFormat, ParquetOptions};
use flott_tables::raw::{RawDecoder, RawOptions};

use super::layout::{Layout, Reading};
use super::metadata::Metadata;
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
    let metadata = Metadata::new(spec)?;
    let in_files = in_files(spec, layout.as_ref())?;
    let columns = match layout.is_some() || !metadata.is_empty() {
        true => Some(Arc::new(Columns { reading: Reading::new(spec, layout.as_ref(), &metadata), layout, metadata })),
        false => None,
    };
    let schema = match &columns {
        Some(columns) => Arc::clone(&columns.reading.in_files),
        None => projected(spec)?,
    };
    let folders = match (&columns, functions) {
        (Some(columns), Some(functions)) => pruning::folders(spec, &columns.reading, functions)?,
        _ => None,
    };
    // Which files are read: those whose folders can have rows that are wanted.
    let choose = columns.clone().zip(folders).map(|(columns, wanted)| {
        move |file: &FilePath| columns.keys(file).and_then(|keys| wanted(&columns.reading.row(&keys)?))
    });
    if let Some(format) = block_format(spec, options, format, &schema, functions)? {
        let source = BlockSource::new(path, move |file| match &columns {
            None => Ok(format()),
            Some(columns) => Ok(Box::new(Completing::new(columns, file, format())?)),
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
    let needs_info = columns.as_ref().is_some_and(|columns| columns.metadata.needs_info);
    let source = FileSource::with_decoder(path, move |file| match &columns {
        None => decoder(),
        Some(columns) => Ok(Box::new(Completing::new(columns, file, decoder()?)?)),
    });
    let source = source.whole_files(is_whole).file_info(needs_info);
    Ok(TableFiles::Lines(match choose {
        Some(choose) => source.choose(choose),
        None => source,
    }))
}

/// The columns of the table that are in its files.
fn in_files(spec: &SourceSpec, layout: Option<&Layout>) -> Result<SchemaRef> {
    let is_key = |at: usize| layout.is_some_and(|layout| layout.is_key(at));
    let fields = spec.table_schema.fields().iter().enumerate();
    let fields: Vec<_> = fields
        .filter(|(at, _)| !is_key(*at) && !spec.metadata.contains_key(at))
        .map(|(_, field)| Arc::clone(field))
        .collect();
    if fields.is_empty() {
        return Err(Error::input(format!("table '{}' has no column that is in its files", spec.table)));
    }
    Ok(Arc::new(Schema::new(fields)))
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
struct Columns {
    layout: Option<Layout>,
    metadata: Metadata,
    reading: Reading,
}

impl Columns {
    /// The values in the names of a file's folders.
    fn keys(&self, file: &FilePath) -> Result<Vec<ScalarValue>> {
        self.layout.as_ref().map_or_else(|| Ok(Vec::new()), |layout| layout.values(file))
    }

    /// All values that are not in the file.
    fn values(&self, file: &FilePath, info: FileInfo) -> Result<Arc<[ScalarValue]>> {
        let mut values = self.keys(file)?;
        values.extend(self.metadata.values(file, info)?);
        Ok(values.into())
    }
}

/// Adds to the rows of a file what is not in it.
struct Completing<T: ?Sized> {
    columns: Arc<Columns>,
    file: FilePath,
    values: Arc<[ScalarValue]>,
    inner: Box<T>,
}

impl<T: ?Sized> Completing<T> {
    /// Before the file is opened, no more than its name is known of it.
    fn new(columns: &Arc<Columns>, file: &FilePath, inner: Box<T>) -> Result<Self> {
        let values = columns.values(file, FileInfo::default())?;
        Ok(Self { columns: Arc::clone(columns), file: file.clone(), values, inner })
    }
}

impl Decoder<Chunk> for Completing<dyn Decoder<Chunk>> {
    fn opened(&mut self, info: FileInfo) -> Result<()> {
        self.values = self.columns.values(&self.file, info)?;
        self.inner.opened(info)
    }

    fn header(&mut self, line: &[u8]) -> Result<()> {
        self.inner.header(line)
    }

    fn decode(&mut self, input: &[u8], is_end: bool, rows_max: usize, rows: &mut Vec<Chunk>) -> Decoded {
        let first = rows.len();
        let decoded = self.inner.decode(input, is_end, rows_max, rows);
        for chunk in &mut rows[first..] {
            match self.columns.reading.complete(chunk, &self.values) {
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

impl BlockFormat<Chunk> for Completing<dyn BlockFormat<Chunk>> {
    fn open(
        &self,
        file: Arc<dyn FileBytes>,
        range: Range<u64>,
        from: Option<Position>,
    ) -> Result<Box<dyn BlockReader<Chunk>>> {
        let mut values = Arc::clone(&self.values);
        if self.columns.metadata.needs_info {
            let info = FileInfo { bytes: file.length(), modified_ms: file.modified_ms()? };
            values = self.columns.values(&self.file, info)?;
        }
        let inner = self.inner.open(file, range, from)?;
        Ok(Box::new(Completing { columns: Arc::clone(&self.columns), file: self.file.clone(), values, inner }))
    }
}

impl BlockReader<Chunk> for Completing<dyn BlockReader<Chunk>> {
    fn next(&mut self) -> Result<Option<(Chunk, Position)>> {
        let Some((chunk, position)) = self.inner.next()? else { return Ok(None) };
        Ok(Some((self.columns.reading.complete(&chunk, &self.values)?, position)))
    }
}
