//! `filesystem`: tables in files of a folder.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::datatypes::Schema;
use flott_chunk::Chunk;
use flott_connector_spi::IoHandle;
use flott_core::{Error, Result};
use flott_filesystem::{BlockSource, FileSink, FileSource, RollingPolicy};
use flott_formats::Encoder;
use flott_sql_runtime::expr::Functions;
use flott_sql_runtime::operators::lookup_join::whole::WholeTable;
use flott_sql_runtime::spec::{LookupJoinSpec, SinkSpec, SourceSpec};
use flott_tables::avro::{AvroEncoder, AvroOptions};
use flott_tables::csv::{CsvEncoder, CsvOptions};
use flott_tables::json::{ChangeEncoder, ChangeFormat, ChangeOptions, JsonEncoder, JsonOptions};
use flott_tables::options::Options;
use flott_tables::parquet::{ParquetEncoder, ParquetOptions};
use flott_tables::raw::{RawEncoder, RawOptions};

use crate::plan::Changelog;
use commit::CommitPolicy;
use layout::Layout;
use named::Named;

pub(super) mod commit;
mod layout;
mod metadata;
mod named;
mod pruning;
mod reading;

/// Formats by name.
const FORMATS: [&str; 8] = ["csv", "json", "raw", "avro", "parquet", "debezium-json", "canal-json", "maxwell-json"];

/// What the records of a table's format say: rows, or changes of rows.
pub(super) fn changelog(options: &BTreeMap<String, String>) -> Changelog {
    match options.get("format").and_then(|format| ChangeFormat::of(format)) {
        Some(_) => Changelog::All,
        None => Changelog::InsertOnly,
    }
}

/// The files of a table that is read.
pub(super) enum TableFiles {
    /// In lines.
    Lines(FileSource<Chunk>),
    /// In pieces.
    Blocks(BlockSource<Chunk>),
}

/// The files of a table that is read. Planning has no functions, and reads nothing: without them nothing is left out.
pub(super) fn source(spec: &SourceSpec, functions: Option<&Functions>) -> Result<TableFiles> {
    let options = super::scan_options(spec);
    super::whole::reload_ms(&options)?;
    allow(&options, &SINK_OPTIONS);
    let layout = Layout::new(&options, &spec.table_schema, &spec.partition_keys)?;
    let files = reading::files(spec, &options, layout, functions)?;
    options.finish()?;
    Ok(files)
}

/// The files of a table that rows are looked up in.
pub(super) fn lookup(spec: &LookupJoinSpec, functions: &Functions, io: &IoHandle) -> Result<WholeTable> {
    if changelog(&spec.table.options) != Changelog::InsertOnly {
        return Err(Error::input(format!(
            "rows cannot be looked up in table '{}': its files have changes of rows, not rows",
            spec.table.table
        )));
    }
    let reload_ms = super::whole::reload_ms(&super::options(&spec.table.table, &spec.table.options))?;
    let (table, keys) = super::whole::reading(spec);
    let schema = super::projected(&table)?;
    Ok(match source(&table, Some(functions))? {
        TableFiles::Lines(source) => super::whole::table(spec, schema, keys, source, reload_ms, io),
        TableFiles::Blocks(source) => super::whole::table(spec, schema, keys, source, reload_ms, io),
    })
}

/// Options that only say how a table is written. They do not hinder that it is read.
const SINK_OPTIONS: [&str; 17] = [
    "sink.parallelism",
    "sink.rolling-policy.file-size",
    "sink.rolling-policy.rollover-interval",
    "sink.rolling-policy.inactivity-interval",
    "sink.rolling-policy.check-interval",
    "sink.shuffle-by-partition.enable",
    "sink.partition-commit.trigger",
    "sink.partition-commit.delay",
    "sink.partition-commit.watermark-time-zone",
    "sink.partition-commit.policy.kind",
    "sink.partition-commit.success-file.name",
    "partition.time-extractor.kind",
    "partition.time-extractor.timestamp-pattern",
    "partition.time-extractor.timestamp-formatter",
    "auto-compaction",
    "compaction.file-size",
    "compaction.parallelism",
];

/// Options that only say how a table is read.
const SOURCE_OPTIONS: [&str; 2] = ["scan.parallelism", "scan.watermark.idle-timeout"];

/// Makes options known that are of no importance here.
fn allow(options: &Options, keys: &[&str]) {
    for key in keys {
        options.get(key);
    }
}

/// The files of a table that is written, and when its partitions are complete.
pub(super) fn sink(spec: &SinkSpec) -> Result<(FileSink<Chunk>, CommitPolicy)> {
    let options = super::options(&spec.table, &spec.options);
    options.required("connector")?;
    let path = options.required("path")?.to_owned();
    allow(&options, &SOURCE_OPTIONS);
    options.get("sink.parallelism");
    let layout = Layout::new(&options, &spec.table_schema, &spec.partition_keys)?.map(Arc::new);
    if spec.is_overwrite && !spec.is_batch {
        return Err(Error::input(format!(
            "table '{}': INSERT OVERWRITE is there in batch mode only: SET 'execution.runtime-mode' = 'batch', or INSERT INTO",
            spec.table
        )));
    }
    for key in ["auto-compaction", "sink.shuffle-by-partition.enable"] {
        if options.flag(key, false)? {
            return Err(options.wrong(key, "true", "false: it is not there yet"));
        }
    }
    for key in ["compaction.file-size", "compaction.parallelism"] {
        options.get(key);
    }
    let policy = CommitPolicy::read(&options, spec, layout.clone())?;
    let rolling = rolling_policy(&options)?;
    let format = options.required("format")?;
    let schema = match &layout {
        Some(layout) => layout.file_schema(&spec.table_schema),
        None => spec.table_schema.clone(),
    };
    let new_encoder = encoder(&options, format, &schema)?;
    options.finish()?;
    writable(&spec.table, &schema, format)?;
    let mut sink = FileSink::with_encoder(path, new_encoder).rolling(rolling).suffix(format!(".{format}"));
    if let Some(layout) = layout {
        sink = sink.split_by(move |chunk| layout.split(&chunk));
    }
    Ok((sink.held(spec.is_overwrite), policy))
}

/// Flink's options of when a part is closed. Here parts are closed at every checkpoint in every format.
fn rolling_policy(options: &Options) -> Result<RollingPolicy> {
    let half_an_hour = std::time::Duration::from_secs(1800);
    let bytes_max = options.bytes("sink.rolling-policy.file-size")?.unwrap_or(128 << 20);
    let duration_max = options.duration("sink.rolling-policy.rollover-interval")?.unwrap_or(half_an_hour);
    let inactivity_max = options.duration("sink.rolling-policy.inactivity-interval")?.unwrap_or(half_an_hour);
    // Parts are looked at when they are due.
    options.duration("sink.rolling-policy.check-interval")?;
    Ok(RollingPolicy { bytes_max, duration_max, inactivity_max })
}

type NewEncoder = Box<dyn Fn() -> Box<dyn Encoder<Chunk>> + Send + Sync>;

/// Makes encoders of a format for these columns.
fn encoder(options: &Options, format: &str, schema: &Arc<Schema>) -> Result<NewEncoder> {
    let schema = schema.clone();
    Ok(match format {
        "json" => {
            let json = JsonOptions::read(options)?;
            Box::new(move || Box::new(Named::new(Arc::clone(&schema), JsonEncoder::new(json.clone()))))
        }
        "csv" => {
            let csv = CsvOptions::read(options)?;
            Box::new(move || Box::new(CsvEncoder::new(csv.clone())))
        }
        "raw" => {
            let raw = RawOptions::read(options, &schema)?;
            Box::new(move || Box::new(RawEncoder::new(raw)))
        }
        "avro" => {
            let (table, avro) = (options.table().to_owned(), AvroOptions::read(options)?);
            // Once now, so that whoever makes encoders later need not expect a mistake.
            AvroEncoder::new(&table, &schema, avro)?;
            Box::new(move || Box::new(AvroEncoder::new(&table, &schema, avro).expect("it was made once before")))
        }
        "parquet" => {
            let parquet = ParquetOptions::read(options)?;
            flott_tables::parquet::check_columns(options.table(), &schema)?;
            Box::new(move || Box::new(ParquetEncoder::new(&schema, parquet.clone())))
        }
        format => {
            let Some(format) = ChangeFormat::of(format) else { return Err(unknown_format(options, format)) };
            let changes = ChangeOptions::read(options, format)?;
            changes.check_sink(options.table())?;
            Box::new(move || Box::new(Named::new(Arc::clone(&schema), ChangeEncoder::new(changes.clone()))))
        }
    })
}

/// That a format has a form for each column.
fn writable(table: &str, schema: &Schema, format: &str) -> Result<()> {
    use arrow::datatypes::DataType;
    let is_map = |data_type: &DataType| matches!(data_type, DataType::Map(..));
    match schema.fields().iter().find(|field| format == "csv" && is_map(field.data_type())) {
        Some(field) => Err(Error::input(format!(
            "table '{table}': the column '{}' is a MAP, which CSV cannot hold: use 'format' = 'json'",
            field.name()
        ))),
        None => Ok(()),
    }
}

fn unknown_format(options: &Options, format: &str) -> Error {
    options.wrong("format", format, &format!("one of {}", FORMATS.join(", ")))
}

#[cfg(test)]
mod tests;
