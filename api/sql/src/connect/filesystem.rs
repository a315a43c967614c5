//! `filesystem`: tables in files of a folder.

use std::collections::BTreeMap;

use arrow::datatypes::Schema;
use flott_chunk::Chunk;
use flott_connector_spi::IoHandle;
use flott_core::{Error, Result};
use flott_filesystem::{FileSink, FileSource, RollingPolicy};
use flott_formats::{Decoder, Encoder};
use flott_sql_runtime::operators::lookup_join::LookupTable;
use flott_sql_runtime::spec::{LookupJoinSpec, SinkSpec, SourceSpec};
use flott_tables::csv::{CsvDecoder, CsvEncoder, CsvOptions};
use flott_tables::json::{
    ChangeDecoder, ChangeEncoder, ChangeFormat, ChangeOptions, JsonDecoder, JsonEncoder, JsonOptions,
};
use flott_tables::options::Options;
use flott_tables::raw::{RawDecoder, RawEncoder, RawOptions};

use crate::plan::Changelog;

/// Formats by name.
const FORMATS: [&str; 6] = ["csv", "json", "raw", "debezium-json", "canal-json", "maxwell-json"];

/// What the records of a table's format say: rows, or changes of rows.
pub(super) fn changelog(options: &BTreeMap<String, String>) -> Changelog {
    match options.get("format").and_then(|format| ChangeFormat::of(format)) {
        Some(_) => Changelog::All,
        None => Changelog::InsertOnly,
    }
}

/// The files of a table that is read.
pub(super) fn source(spec: &SourceSpec) -> Result<FileSource<Chunk>> {
    let options = super::options(&spec.table, &spec.options);
    options.required("connector")?;
    let path = options.required("path")?.to_owned();
    refuse_partitions(&spec.table, &spec.partition_keys)?;
    super::refuse_metadata(spec, "filesystem")?;
    let schema = super::projected(spec)?;
    super::whole::reload_ms(&options)?;
    let source = match options.required("format")? {
        "json" => {
            let json = JsonOptions::read(&options)?;
            // Once now, so that whoever makes decoders later need not expect a mistake.
            JsonDecoder::new(&schema, json.clone())?;
            FileSource::with_decoder(path, move || {
                let decoder = JsonDecoder::new(&schema, json.clone()).expect("it was made once before");
                Box::new(decoder) as Box<dyn Decoder<Chunk>>
            })
        }
        "csv" => {
            let csv = CsvOptions::read(&options)?;
            let names: Vec<String> = spec.table_schema.fields().iter().map(|field| field.name().clone()).collect();
            CsvDecoder::new(&schema, &names, csv.clone())?;
            FileSource::with_decoder(path, move || {
                let decoder = CsvDecoder::new(&schema, &names, csv.clone()).expect("it was made once before");
                Box::new(decoder) as Box<dyn Decoder<Chunk>>
            })
            .whole_files(true)
        }
        "raw" => {
            let raw = RawOptions::read(&options, &spec.table_schema)?;
            RawDecoder::new(&schema, raw)?;
            FileSource::with_decoder(path, move || {
                let decoder = RawDecoder::new(&schema, raw).expect("it was made once before");
                Box::new(decoder) as Box<dyn Decoder<Chunk>>
            })
        }
        format => {
            let Some(format) = ChangeFormat::of(format) else { return Err(unknown_format(&options, format)) };
            let changes = ChangeOptions::read(&options, format)?;
            ChangeDecoder::new(&schema, changes.clone())?;
            // One reader has all of a file, so that changes come in their order.
            FileSource::with_decoder(path, move || {
                let decoder = ChangeDecoder::new(&schema, changes.clone()).expect("it was made once before");
                Box::new(decoder) as Box<dyn Decoder<Chunk>>
            })
            .whole_files(true)
        }
    };
    options.finish()?;
    Ok(source)
}

/// The files of a table that rows are looked up in.
pub(super) fn lookup(spec: &LookupJoinSpec, io: &IoHandle) -> Result<LookupTable> {
    if changelog(&spec.table.options) != Changelog::InsertOnly {
        return Err(Error::input(format!(
            "rows cannot be looked up in table '{}': its files have changes of rows, not rows",
            spec.table.table
        )));
    }
    let reload_ms = super::whole::reload_ms(&super::options(&spec.table.table, &spec.table.options))?;
    let (table, keys) = super::whole::reading(spec);
    let schema = super::projected(&table)?;
    Ok(super::whole::table(spec, schema, keys, source(&table)?, reload_ms, io))
}

/// The files of a table that is written.
pub(super) fn sink(spec: &SinkSpec) -> Result<FileSink<Chunk>> {
    let options = super::options(&spec.table, &spec.options);
    options.required("connector")?;
    let path = options.required("path")?.to_owned();
    refuse_partitions(&spec.table, &spec.partition_keys)?;
    let mut rolling = RollingPolicy::default();
    if let Some(duration) = options.duration("sink.rolling-policy.rollover-interval")? {
        rolling.duration_max = duration;
    }
    if let Some(duration) = options.duration("sink.rolling-policy.inactivity-interval")? {
        rolling.inactivity_max = duration;
    }
    let format = options.required("format")?;
    let sink = match format {
        "json" => {
            let json = JsonOptions::read(&options)?;
            FileSink::with_encoder(path, move || Box::new(JsonEncoder::new(json.clone())) as Box<dyn Encoder<Chunk>>)
        }
        "csv" => {
            let csv = CsvOptions::read(&options)?;
            FileSink::with_encoder(path, move || Box::new(CsvEncoder::new(csv.clone())) as Box<dyn Encoder<Chunk>>)
        }
        "raw" => {
            let raw = RawOptions::read(&options, &spec.table_schema)?;
            FileSink::with_encoder(path, move || Box::new(RawEncoder::new(raw)) as Box<dyn Encoder<Chunk>>)
        }
        format => {
            let Some(format) = ChangeFormat::of(format) else { return Err(unknown_format(&options, format)) };
            let changes = ChangeOptions::read(&options, format)?;
            changes.check_sink(&spec.table)?;
            FileSink::with_encoder(path, move || {
                Box::new(ChangeEncoder::new(changes.clone())) as Box<dyn Encoder<Chunk>>
            })
        }
    };
    let suffix = format!(".{format}");
    options.finish()?;
    writable(&spec.table, &spec.table_schema, format)?;
    Ok(sink.rolling(rolling).suffix(suffix))
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

fn refuse_partitions(table: &str, keys: &[String]) -> Result<()> {
    match keys.first() {
        Some(key) => Err(Error::input(format!(
            "table '{table}' is PARTITIONED BY '{key}': partitioned tables are not there yet"
        ))),
        None => Ok(()),
    }
}

fn unknown_format(options: &Options, format: &str) -> Error {
    options.wrong("format", format, &format!("one of {}", FORMATS.join(", ")))
}

#[cfg(test)]
mod tests;
