use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field};

use super::*;
use crate::connect::{check_sink, describe_source};

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
    let spec = LookupJoinSpec { table, left_keys: vec![0], right_keys: vec![0], is_left_outer: false, condition: None };
    let refused = lookup(&spec, &Functions::new([]), runtime.handle()).err().unwrap().to_string();
    assert!(refused.contains("changes of rows"), "{refused}");
}
