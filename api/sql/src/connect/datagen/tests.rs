use std::sync::Arc;

use arrow::array::{Array, AsArray};
use arrow::datatypes::{
    DataType, Field as ArrowField, Int32Type, Int64Type, Schema, TimeUnit, TimestampMillisecondType,
};
use flott_chunk::display::write_row;
use flott_connector_spi::{Boundedness, Source};

use super::*;

fn spec(columns: &[(&str, DataType)], options: &[(&str, &str)]) -> SourceSpec {
    let fields: Vec<_> = columns.iter().map(|(name, of)| ArrowField::new(*name, of.clone(), true)).collect();
    SourceSpec {
        table: "t".to_owned(),
        options: options.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
        projection: (0..fields.len()).collect(),
        table_schema: Arc::new(Schema::new(fields)),
        metadata: BTreeMap::new(),
        partition_keys: Vec::new(),
        limit: None,
        filters: Vec::new(),
        is_batch: false,
    }
}

fn table(columns: &[(&str, DataType)], options: &[(&str, &str)]) -> DatagenTable {
    let spec = spec(columns, options);
    source(&spec).unwrap();
    let options = super::super::scan_options(&spec);
    let rows_per_second = options.number("rows-per-second").unwrap().unwrap_or(ROWS_PER_SECOND);
    let field = |column: &Arc<ArrowField>| {
        let name = format!("fields.{}", column.name());
        Field::new(&FieldOptions { options: &options, name, seed: 1 }, column.data_type()).unwrap()
    };
    let fields = spec.table_schema.fields().iter().map(field).collect();
    DatagenTable { schema: spec.table_schema, fields, rows_per_second }
}

fn rows(columns: &[(&str, DataType)], options: &[(&str, &str)], count: u64) -> Chunk {
    table(columns, options).make(0, &(0..count).collect::<Vec<_>>()).unwrap()
}

fn refused(columns: &[(&str, DataType)], options: &[(&str, &str)]) -> String {
    source(&spec(columns, options)).err().unwrap().to_string()
}

const TIME: DataType = DataType::Timestamp(TimeUnit::Millisecond, None);

#[test]
fn sequences_count_in_every_type_that_has_one() {
    let columns = [
        ("a", DataType::Int64),
        ("b", DataType::Int8),
        ("c", DataType::Utf8),
        ("d", DataType::Float64),
        ("e", DataType::Decimal128(5, 2)),
    ];
    let mut options = Vec::new();
    let keys: Vec<_> = ["a", "b", "c", "d", "e"]
        .iter()
        .flat_map(|name| {
            [("kind", "sequence"), ("start", "-1"), ("end", "100")]
                .map(|(key, value)| (format!("fields.{name}.{key}"), value))
        })
        .collect();
    options.extend(keys.iter().map(|(key, value)| (key.as_str(), *value)));
    let chunk = rows(&columns, &options, 3);
    let mut text = String::new();
    write_row(&chunk, 2, &mut text);
    assert_eq!(text, "+I[1, 1, 1, 1.0, 1.00]");
}

#[test]
fn the_shortest_sequence_or_the_number_of_rows_ends_the_table() {
    let columns = [("a", DataType::Int32), ("b", DataType::Int32)];
    let sequence = [("fields.a.kind", "sequence"), ("fields.a.start", "1"), ("fields.a.end", "10")];
    assert_eq!(source(&spec(&columns, &sequence)).unwrap().boundedness(), Boundedness::Bounded);
    assert_eq!(source(&spec(&columns, &[])).unwrap().boundedness(), Boundedness::Unbounded);
    assert_eq!(source(&spec(&columns, &[("number-of-rows", "5")])).unwrap().boundedness(), Boundedness::Bounded);
}

#[test]
fn random_numbers_keep_to_their_bounds_and_reach_them() {
    let columns = [("a", DataType::Int32), ("b", DataType::Int64), ("c", DataType::Decimal128(10, 2))];
    let options = [("fields.a.min", "-2"), ("fields.a.max", "2"), ("fields.c.min", "1.5"), ("fields.c.max", "1.53")];
    let chunk = rows(&columns, &options, 2000);
    let mut found: Vec<i32> = chunk.column(0).as_primitive::<Int32Type>().values().to_vec();
    found.sort_unstable();
    found.dedup();
    assert_eq!(found, [-2, -1, 0, 1, 2]);
    let wide = chunk.column(1).as_primitive::<Int64Type>();
    assert!(
        wide.values().iter().any(|number| *number < i64::MIN / 2)
            && wide.values().iter().any(|number| *number > i64::MAX / 2)
    );
    let mut decimals: Vec<i128> = chunk.column(2).as_primitive::<arrow::datatypes::Decimal128Type>().values().to_vec();
    decimals.sort_unstable();
    decimals.dedup();
    assert_eq!(decimals, [150, 151, 152, 153]);
}

#[test]
fn texts_have_their_length_and_nulls_their_rate() {
    let columns = [("a", DataType::Utf8), ("b", DataType::Utf8), ("c", DataType::Binary)];
    let options = [
        ("fields.a.length", "7"),
        ("fields.a.null-rate", "0.25"),
        ("fields.b.var-len", "true"),
        ("fields.c.length", "3"),
    ];
    let chunk = rows(&columns, &options, 4000);
    let texts = chunk.column(0).as_string::<i32>();
    assert!((900..1100).contains(&texts.null_count()), "{}", texts.null_count());
    assert!(texts.iter().flatten().all(|text| text.len() == 7 && text.bytes().all(|byte| byte.is_ascii_hexdigit())));
    let varied = chunk.column(1).as_string::<i32>();
    let lengths = varied.iter().flatten().map(str::len);
    assert_eq!((lengths.clone().min(), lengths.max()), (Some(1), Some(100)));
    assert!(chunk.column(2).as_binary::<i32>().iter().flatten().all(|bytes| bytes.len() == 3));
}

#[test]
fn times_follow_the_rate() {
    let chunk = rows(&[("a", TIME), ("b", TIME)], &[("rows-per-second", "4"), ("fields.b.max-past", "1 s")], 9);
    let times = chunk.column(0).as_primitive::<TimestampMillisecondType>();
    assert_eq!(times.values().to_vec(), [0, 250, 500, 750, 1000, 1250, 1500, 1750, 2000]);
    let past = chunk.column(1).as_primitive::<TimestampMillisecondType>();
    assert!(times.values().iter().zip(past.values()).all(|(time, past)| (0..=1000).contains(&(time - past))));
}

#[test]
fn a_row_is_the_same_however_it_is_made() {
    let row = DataType::Struct(
        vec![ArrowField::new("x", DataType::Int32, true), ArrowField::new("y", DataType::Utf8, true)].into(),
    );
    let columns = [("r", row), ("l", DataType::new_list(DataType::Float64, true)), ("d", DataType::Date32)];
    let options = [
        ("fields.r.x.max", "9"),
        ("fields.l.element.max", "1"),
        ("fields.l.length", "2"),
        ("fields.r.null-rate", "0.3"),
    ];
    let table = table(&columns, &options);
    let all = table.make(0, &(0..50).collect::<Vec<_>>()).unwrap();
    let some = table.make(0, &[3, 17, 40]).unwrap();
    assert_eq!(some.batch, all.take(&[3, 17, 40]).unwrap().batch);
    assert!(all.column(0).null_count() > 0);
    assert_eq!(all.column(1).as_list::<i32>().value_length(0), 2);
}

#[test]
fn mistakes_are_named() {
    let columns = [("a", DataType::Int8)];
    for (options, message) in [
        (vec![("fields.a.min", "5"), ("fields.a.max", "4")], "'fields.a.min' is '5'"),
        (vec![("fields.a.max", "300")], "'fields.a.max' is '300'"),
        (vec![("fields.a.kind", "sequence")], "'fields.a.start'"),
        (vec![("fields.a.kind", "sequence"), ("fields.a.start", "1"), ("fields.a.end", "128")], "fits into TINYINT"),
        (vec![("fields.b.kind", "random")], "no option 'fields.b.kind'"),
        (vec![("rows-per-second", "0")], "at least 1"),
        (vec![("fields.a.null-rate", "2")], "from 0 to 1"),
    ] {
        let error = refused(&columns, &options);
        assert!(error.contains(message), "{error}");
    }
    let error = refused(&[("a", DataType::Duration(TimeUnit::Millisecond))], &[]);
    assert!(error.contains("makes no INTERVAL DAY"), "{error}");
    let error = refused(&[("a", DataType::Boolean)], &[("fields.a.kind", "sequence")]);
    assert!(error.contains("no sequence of BOOLEAN"), "{error}");
}
