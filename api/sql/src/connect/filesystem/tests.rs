use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use arrow::array::{ArrayRef, Int32Array, Int64Array, RecordBatch, StringArray, TimestampMillisecondArray};
use arrow::compute::concat_batches;
use arrow::datatypes::{DataType, Field, TimeUnit};
use flott_connector_spi::Source;
use flott_connector_spi::conformance::Execution;

use super::*;
use crate::connect::{SourceVisitor, check_sink, describe_source, with_source};

fn options(format: &str, more: &[(&str, &str)]) -> BTreeMap<String, String> {
    let all = [("connector", "filesystem"), ("path", "/nowhere"), ("format", format)];
    all.iter().chain(more).map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn schema(columns: usize) -> Arc<Schema> {
    let fields = [Field::new("id", DataType::Int32, true), Field::new("name", DataType::Utf8, true)];
    Arc::new(Schema::new(fields[..columns].to_vec()))
}

fn source(columns: usize, format: &str, more: &[(&str, &str)]) -> SourceSpec {
    SourceSpec {
        table: "t".to_owned(),
        options: options(format, more),
        table_schema: schema(columns),
        metadata: BTreeMap::new(),
        partition_keys: Vec::new(),
        projection: vec![0],
        limit: None,
        filters: Vec::new(),
        is_batch: false,
    }
}

fn sink(columns: usize, format: &str, more: &[(&str, &str)]) -> SinkSpec {
    SinkSpec {
        table: "t".to_owned(),
        options: options(format, more),
        table_schema: schema(columns),
        metadata: BTreeMap::new(),
        partition_keys: Vec::new(),
        primary_key: Vec::new(),
        is_overwrite: false,
        is_batch: false,
    }
}

#[test]
fn formats_say_which_changes_they_have() {
    let cases = [
        ("csv", 2, Changelog::InsertOnly),
        ("json", 2, Changelog::InsertOnly),
        ("raw", 1, Changelog::InsertOnly),
        ("avro", 2, Changelog::InsertOnly),
        ("parquet", 2, Changelog::InsertOnly),
        ("debezium-json", 2, Changelog::All),
        ("canal-json", 2, Changelog::All),
        ("maxwell-json", 2, Changelog::All),
    ];
    assert_eq!(cases.map(|(format, ..)| format), FORMATS);
    for (format, columns, changelog) in cases {
        let described = describe_source(&source(columns, format, &[])).unwrap();
        assert_eq!((described.changelog, described.is_lookup), (changelog, changelog == Changelog::InsertOnly));
        assert_eq!(check_sink(&sink(columns, format, &[])).unwrap(), changelog, "{format}");
    }
}

#[test]
fn what_a_format_cannot_do_is_refused() {
    let message = |spec: &SourceSpec| describe_source(spec).unwrap_err().to_string();
    assert!(message(&source(2, "raw", &[])).contains("2 columns"));
    assert!(message(&source(2, "orc", &[])).contains("debezium-json"));
    let unknown = [("debezium-json.fail-on-missing-field", "true")];
    assert!(message(&source(2, "debezium-json", &unknown)).contains(unknown[0].0));
    let with_schema = [("debezium-json.schema-include", "true")];
    describe_source(&source(2, "debezium-json", &with_schema)).unwrap();
    let refused = check_sink(&sink(2, "debezium-json", &with_schema)).unwrap_err().to_string();
    assert!(refused.contains(with_schema[0].0), "{refused}");
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let table = source(2, "debezium-json", &[]);
    let spec = LookupJoinSpec {
        table,
        left_keys: vec![0],
        right_keys: vec![0],
        is_left_outer: false,
        condition: None,
        is_insert_only: true,
        timeout_ms: 1000,
        requests_max: 1,
    };
    let refused = lookup(&spec, &Functions::new([]), runtime.handle()).err().unwrap().to_string();
    assert!(refused.contains("changes of rows"), "{refused}");
}

/// All rows of a table.
struct Rows<'a>(&'a IoHandle);

impl SourceVisitor for Rows<'_> {
    type Output = RecordBatch;

    fn visit<S: Source<Item = Chunk>>(self, source: S) -> Result<RecordBatch> {
        let mut execution = Execution::start(&source, self.0, 1)?;
        let mut rows = Vec::new();
        while let Some(batch) = execution.next_batch()? {
            rows.extend(batch.rows.into_iter().map(|chunk| chunk.batch));
        }
        Ok(concat_batches(&rows[0].schema(), &rows).unwrap())
    }
}

/// A table in a folder, PARTITIONED BY (p), with one column in its files.
fn with_metadata(format: &str, path: &str) -> SourceSpec {
    let instant = DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into()));
    let columns = [
        ("size", DataType::Int64, Some("file.size")),
        ("v", DataType::Int32, None),
        ("path", DataType::Utf8, Some("file.path")),
        ("p", DataType::Int64, None),
        ("time", instant, Some("file.modification-time")),
        ("name", DataType::Utf8, Some("file.name")),
    ];
    let key = |(at, key): (usize, Option<&str>)| key.map(|key| (at, key.to_owned()));
    let metadata = columns.iter().map(|(_, _, key)| *key).enumerate().filter_map(key).collect();
    let fields = columns.into_iter().map(|(name, of, key)| Field::new(name, of, key.is_none()));
    SourceSpec {
        table_schema: Arc::new(Schema::new(fields.collect::<Vec<_>>())),
        metadata,
        partition_keys: vec!["p".to_owned()],
        projection: (0..6).collect(),
        ..source(0, format, &[("path", path)])
    }
}

#[test]
fn rows_say_of_which_file_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let schema = Arc::new(Schema::new(vec![Field::new("v", DataType::Int32, true)]));
    let numbers: ArrayRef = Arc::new(Int32Array::from(vec![1, 2]));
    let rows = Chunk::inserts(RecordBatch::try_new(Arc::clone(&schema), vec![Arc::clone(&numbers)]).unwrap());
    for format in ["csv", "json", "avro", "parquet"] {
        let table = folder.path().join(format);
        let file = table.join("p=7/a.b");
        let mut encoder = encoder(&Options::new("t", [] as [(&str, &str); 0]), format, &schema).unwrap()();
        let mut bytes = Vec::new();
        encoder.encode(std::slice::from_ref(&rows), true, &mut bytes).unwrap();
        encoder.finish(&mut bytes).unwrap();
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, &bytes).unwrap();
        let modified = UNIX_EPOCH + Duration::from_millis(1_700_000_000_123);
        fs::File::options().write(true).open(&file).unwrap().set_modified(modified).unwrap();

        let mut spec = with_metadata(format, table.to_str().unwrap());
        let read = |spec: &SourceSpec| with_source(spec, None, Rows(runtime.handle())).unwrap();
        let name: ArrayRef = Arc::new(StringArray::from(vec!["a.b"; 2]));
        let expected: Vec<ArrayRef> = vec![
            Arc::new(Int64Array::from(vec![bytes.len() as i64; 2])),
            Arc::clone(&numbers),
            Arc::new(StringArray::from(vec![file.to_str().unwrap(); 2])),
            Arc::new(Int64Array::from(vec![7; 2])),
            Arc::new(TimestampMillisecondArray::from(vec![1_700_000_000_123; 2]).with_timezone("UTC")),
            Arc::clone(&name),
        ];
        assert_eq!(read(&spec).columns(), &expected[..], "{format}");
        // Also if nothing is wanted that is in the file.
        spec.projection = vec![5];
        assert_eq!(read(&spec).columns(), &[name], "{format}");
    }
}

#[test]
fn metadata_is_beside_what_is_in_files_and_is_not_written() {
    let mut spec = with_metadata("csv", "/nowhere");
    describe_source(&spec).unwrap();
    spec.metadata.insert(1, "file.name".to_owned());
    let message = |spec: &SourceSpec| describe_source(spec).unwrap_err().to_string();
    assert!(message(&spec).contains("'v' is the metadata 'file.name', which is STRING"));
    let metadata = BTreeMap::from([(1, "file.name".to_owned())]);
    let partition_keys = vec!["id".to_owned()];
    let nothing_else = SourceSpec { metadata: metadata.clone(), partition_keys, ..source(2, "csv", &[]) };
    assert!(message(&nothing_else).contains("no column that is in its files"));
    let refused = check_sink(&SinkSpec { metadata, ..sink(2, "csv", &[]) }).unwrap_err().to_string();
    assert!(refused.contains("'name' is the metadata 'file.name'") && refused.contains("VIRTUAL"), "{refused}");
}
