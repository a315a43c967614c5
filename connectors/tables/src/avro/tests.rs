use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Int64Type, Schema, SchemaRef, TimeUnit};
use bytes::Bytes;
use expect_test::expect;
use flott_chunk::Chunk;
use flott_chunk::display::write_row;
use flott_core::Result;
use flott_formats::{BlockFormat, Encoder, Position};
use proptest::prelude::*;

use super::*;
use crate::testing::{InMemory, all_types};

fn options(more: &[(&str, &str)]) -> Result<AvroOptions> {
    AvroOptions::read(&Options::new("t", more.iter().copied()))
}

fn schema(fields: &[(&str, DataType)]) -> SchemaRef {
    Arc::new(Schema::new(fields.iter().map(|(name, of)| Field::new(*name, of.clone(), true)).collect::<Vec<_>>()))
}

fn file(batches: &[RecordBatch], options: AvroOptions) -> Bytes {
    let mut encoder = AvroEncoder::new("t", &batches[0].schema(), options).unwrap();
    let mut out = Vec::new();
    for batch in batches {
        encoder.encode(&[Chunk::inserts(batch.clone())], false, &mut out).unwrap();
        encoder.write(&mut out).unwrap();
    }
    encoder.finish(&mut out).unwrap();
    out.into()
}

type Portions = Vec<(RecordBatch, Position)>;

fn read_from(file: &Bytes, schema: &SchemaRef, range: Range<u64>, from: Option<Position>) -> Result<Portions> {
    let mut reader = AvroFormat::new(schema).open(Arc::new(InMemory(file.clone())), range, from)?;
    let mut portions = Vec::new();
    while let Some((chunk, position)) = reader.next()? {
        portions.push((chunk.batch, position));
    }
    Ok(portions)
}

fn read(file: &Bytes, schema: &SchemaRef) -> Result<RecordBatch> {
    let portions = read_from(file, schema, 0..file.len() as u64, None)?;
    let batches: Vec<RecordBatch> = portions.into_iter().map(|(batch, _)| batch).collect();
    Ok(arrow::compute::concat_batches(schema, &batches).unwrap())
}

/// Those types that Avro has.
fn types() -> RecordBatch {
    let all = all_types();
    let wanted: Vec<usize> =
        all.schema().fields().iter().enumerate().filter(|(_, field)| field.name() != "ts9").map(|(at, _)| at).collect();
    all.project(&wanted).unwrap()
}

#[test]
fn values_of_all_types_come_back() {
    let batch = types();
    let new = ("avro.timestamp_mapping.legacy", "false");
    for codec in ["null", "deflate", "snappy", "zstandard"] {
        let file = file(std::slice::from_ref(&batch), options(&[("avro.codec", codec), new]).unwrap());
        let read = read(&file, &batch.schema()).unwrap();
        assert_eq!(format!("{read:?}"), format!("{batch:?}"), "{codec}");
    }
}

#[test]
fn schemas_are_those_that_flink_derives() {
    let of = |name: &str, of: DataType, is_nullable: bool| Field::new(name, of, is_nullable);
    let inner = DataType::Struct(vec![of("z", DataType::Int32, false)].into());
    let element = DataType::Struct(vec![of("w", DataType::Int8, true)].into());
    let fields = vec![
        of("dc", DataType::Decimal128(5, 2), true),
        of("tm", DataType::Time32(TimeUnit::Millisecond), true),
        of("ts", DataType::Timestamp(TimeUnit::Millisecond, None), false),
        of("rr", DataType::Struct(vec![of("q", inner, true)].into()), false),
        of("am", DataType::List(Arc::new(of("element", element, true))), true),
    ];
    let (json, _) = avro_schema("t", &Schema::new(fields), &options(&[]).unwrap()).unwrap();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    expect![[r#"{"fields":[{"default":null,"name":"dc","type":["null",{"logicalType":"decimal","precision":5,"scale":2,"type":"bytes"}]},{"default":null,"name":"tm","type":["null",{"logicalType":"time-millis","type":"int"}]},{"name":"ts","type":{"logicalType":"timestamp-millis","type":"long"}},{"name":"rr","type":{"fields":[{"default":null,"name":"q","type":["null",{"fields":[{"name":"z","type":"int"}],"name":"record_rr_q","namespace":"org.apache.flink.avro.generated","type":"record"}]}],"name":"record_rr","namespace":"org.apache.flink.avro.generated","type":"record"}},{"default":null,"name":"am","type":["null",{"items":["null",{"fields":[{"default":null,"name":"w","type":["null","int"]}],"name":"record_am","namespace":"org.apache.flink.avro.generated","type":"record"}],"type":"array"}]}],"name":"record","namespace":"org.apache.flink.avro.generated","type":"record"}"#]]
    .assert_eq(&json.to_string());
}

#[test]
fn what_avro_has_no_form_for_is_refused() {
    let refused = |name: &str, of: DataType, more: &[(&str, &str)]| {
        avro_schema("t", &schema(&[(name, of)]), &options(more).unwrap()).unwrap_err().to_string()
    };
    let of = |unit| DataType::Timestamp(unit, None);
    let legacy = "needs 'avro.timestamp_mapping.legacy' = 'false'";
    assert!(refused("v", of(TimeUnit::Microsecond), &[]).ends_with(legacy));
    assert!(refused("v", DataType::Timestamp(TimeUnit::Second, Some("UTC".into())), &[]).ends_with(legacy));
    let new = [("avro.timestamp_mapping.legacy", "false")];
    assert!(refused("v", of(TimeUnit::Nanosecond), &new).contains("column 'v' is a TIMESTAMP of more than 6 digits"));
    assert!(refused("a b", DataType::Int32, &[]).contains("letters, digits and underscores"));
    assert!(refused("v", DataType::Duration(TimeUnit::Millisecond), &[]).contains("no form"));
    assert!(options(&[("avro.codec", "xz")]).unwrap_err().to_string().contains("zstandard"));
}

#[test]
fn files_of_flink_are_read() {
    // Its only row, of which Flink says what stands below.
    let file = Bytes::from_static(include_bytes!("testdata/flink.avro"));
    let of = |name: &str, of: DataType| Field::new(name, of, true);
    let row = DataType::Struct(vec![of("x", DataType::Int32), of("y", DataType::Utf8)].into());
    let schema = schema(&[
        ("ts", DataType::Timestamp(TimeUnit::Millisecond, None)),
        ("i8", DataType::Int8),
        ("dc", DataType::Decimal128(5, 2)),
        ("not there", DataType::Utf8),
        ("tm", DataType::Time32(TimeUnit::Millisecond)),
        ("r", row),
        ("a", DataType::List(Arc::new(of("element", DataType::Int32)))),
        ("s", DataType::Utf8),
    ]);
    let read = Chunk::inserts(read(&file, &schema).unwrap());
    let mut text = String::new();
    write_row(&read, 0, &mut text);
    assert_eq!(
        (text.as_str(), read.len()),
        ("+I[2024-01-02T03:04:05.678, 1, 1.25, null, 10:00:01, +I[1, r], [1, 2], ä]", 1)
    );
}

#[test]
fn fields_are_found_by_name() {
    let file = file(&[types()], options(&[("avro.timestamp_mapping.legacy", "false")]).unwrap());
    let wanted = schema(&[("s", DataType::Utf8), ("new", DataType::Int32), ("i8", DataType::Int64)]);
    let found = read(&file, &wanted).unwrap();
    assert_eq!(*found.column(2).as_primitive::<Int64Type>(), Int64Array::from(vec![Some(-1), None]));
    assert_eq!(found.column(1).null_count(), 2);
    assert_eq!(read(&file, &schema(&[])).unwrap().num_rows(), 2);
    assert_eq!(read(&file, &schema(&[("new", DataType::Int32)])).unwrap().num_rows(), 2);
    let error = read(&file, &schema(&[("s", DataType::Int32)])).unwrap_err().to_string();
    assert_eq!(error, "a.file: the column 's' has the type Utf8, which cannot be read as Int32");
}

fn sequence(range: Range<i64>) -> RecordBatch {
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(range.clone()));
    let texts: ArrayRef = Arc::new(StringArray::from_iter_values(range.map(|number| format!("{number:0>200}"))));
    RecordBatch::try_from_iter([("n", numbers), ("s", texts)]).unwrap()
}

fn blocks(rows: i64) -> Bytes {
    let batches: Vec<RecordBatch> = (0..20).map(|block| sequence(block * rows..(block + 1) * rows)).collect();
    file(&batches, options(&[("avro.codec", "null")]).unwrap())
}

fn numbers(portions: &Portions) -> Vec<i64> {
    portions.iter().flat_map(|(batch, _)| batch.column(0).as_primitive::<Int64Type>().values().to_vec()).collect()
}

proptest! {
    #[test]
    fn each_block_is_read_by_one_reader(mut cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..5)) {
        let file = blocks(50);
        let schema = sequence(0..0).schema();
        let mut ends: Vec<u64> = cuts.drain(..).map(|cut| cut.index(file.len()) as u64).collect();
        ends.push(file.len() as u64);
        ends.sort_unstable();
        let (mut start, mut all) = (0, Vec::new());
        for end in ends {
            all.extend(numbers(&read_from(&file, &schema, start..end, None).unwrap()));
            start = end;
        }
        prop_assert_eq!(all, (0..1000).collect::<Vec<i64>>());
    }

    #[test]
    fn damaged_files_are_errors(at in any::<prop::sample::Index>(), byte in any::<u8>(), length in any::<prop::sample::Index>()) {
        let file = blocks(3);
        let schema = sequence(0..0).schema();
        let mut damaged = file.to_vec();
        let at = at.index(damaged.len());
        damaged[at] = byte;
        // Errors, or other values: there is no checksum.
        let _ = read(&damaged.into(), &schema);
        let short = file.slice(..length.index(file.len()));
        if let Ok(rows) = read(&short, &schema) {
            // It ends between two blocks.
            prop_assert_eq!(rows.num_rows() % 3, 0);
        }
    }
}

#[test]
fn reading_goes_on_within_a_block() {
    // More than is read at once, and more rows in each block than a chunk has.
    let file = blocks(9000);
    let schema = schema(&[("n", DataType::Int64)]);
    let all = 0..file.len() as u64;
    let portions = read_from(&file, &schema, all.clone(), None).unwrap();
    assert_eq!(numbers(&portions), (0..180_000).collect::<Vec<i64>>());
    assert_eq!(portions.len(), 40);
    for done in [1, 2, 3, 38, 39, 40] {
        let rest = read_from(&file, &schema, all.clone(), Some(portions[done - 1].1)).unwrap();
        assert_eq!(rest, portions[done..], "after {done}");
    }
}

#[test]
fn damage_is_named_with_its_block() {
    let file = blocks(3);
    let schema = sequence(0..0).schema();
    let second = |bytes: &[u8]| {
        let container = container::Container::read(&InMemory(bytes.to_vec().into())).unwrap();
        container.first_block(&InMemory(bytes.to_vec().into()), container.start + 1).unwrap()
    };
    let at = second(&file);
    let mut marker = file.to_vec();
    marker[at as usize - 1] ^= 1;
    let first = container::Container::read(&InMemory(file.clone())).unwrap().start;
    let error = read(&marker.into(), &schema).unwrap_err().to_string();
    assert_eq!(error, format!("a.file, block at byte {first}: the marker behind it is not the file's: it is damaged"));
    let mut value = file.to_vec();
    // The length of the first text of the second block: rows, bytes, number, then that.
    let length = (at as usize..).find(|&at| file[at..].starts_with(&[0x90, 0x03])).unwrap();
    value[length..length + 2].copy_from_slice(&[0xff, 0x7f]);
    let error = read(&value.into(), &schema).unwrap_err().to_string();
    assert!(error.starts_with(&format!("a.file, block at byte {at}: it cannot be read: ")), "{error}");
    assert!(read(&Bytes::from_static(b"PAR1"), &schema).unwrap_err().to_string().contains("no Avro file"));
}
