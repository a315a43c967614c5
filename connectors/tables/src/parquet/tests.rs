use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int32Array, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Int32Type, Int64Type, Schema, SchemaRef, TimeUnit};
use bytes::Bytes;
use flott_chunk::Chunk;
use flott_formats::{BlockFormat, Encoder, Position};
use proptest::prelude::*;

use super::*;
use crate::testing::{InMemory, all_types};

fn options(more: &[(&str, &str)]) -> Result<ParquetOptions> {
    ParquetOptions::read(&Options::new("t", more.iter().copied()))
}

/// A file with a row group for each batch.
fn file(batches: &[RecordBatch], options: &ParquetOptions) -> Bytes {
    let mut encoder =
        ParquetEncoder::new(&batches[0].schema(), ParquetOptions { row_group_bytes: 1, ..options.clone() });
    let mut out = Vec::new();
    for batch in batches {
        encoder.encode(&[Chunk::inserts(batch.clone())], false, &mut out).unwrap();
    }
    encoder.finish(&mut out).unwrap();
    out.into()
}

type Portions = Vec<(RecordBatch, Position)>;

fn read_from(file: &Bytes, format: &ParquetFormat, range: Range<u64>, from: Option<Position>) -> Result<Portions> {
    let mut reader = format.open(Arc::new(InMemory(file.clone())), range, from)?;
    let mut portions = Vec::new();
    while let Some((chunk, position)) = reader.next()? {
        portions.push((chunk.batch, position));
    }
    Ok(portions)
}

fn read(file: &Bytes, schema: &SchemaRef) -> Result<RecordBatch> {
    let portions = read_from(file, &ParquetFormat::new(schema), 0..file.len() as u64, None)?;
    let batches: Vec<RecordBatch> = portions.into_iter().map(|(batch, _)| batch).collect();
    Ok(arrow::compute::concat_batches(schema, &batches).unwrap())
}

fn schema(fields: &[(&str, DataType)]) -> SchemaRef {
    Arc::new(Schema::new(fields.iter().map(|(name, of)| Field::new(*name, of.clone(), true)).collect::<Vec<_>>()))
}

#[test]
fn values_of_all_types_come_back() {
    let batch = all_types();
    for more in [
        vec![],
        vec![("parquet.compression", "zstd"), ("parquet.writer.version", "PARQUET_2_0")],
        vec![("parquet.compression", "GZIP"), ("parquet.enable.dictionary", "false")],
        vec![("parquet.compression", "UNCOMPRESSED"), ("parquet.timestamp.time.unit", "nanos")],
    ] {
        let file = file(std::slice::from_ref(&batch), &options(&more).unwrap());
        let read = read(&file, &batch.schema()).unwrap();
        assert_eq!(format!("{read:?}"), format!("{batch:?}"), "{more:?}");
    }
}

#[test]
fn columns_are_projected_by_name() {
    let batch = all_types();
    let file = file(&[batch], &options(&[]).unwrap());
    let wanted = schema(&[("s", DataType::Utf8), ("new", DataType::Int32), ("i8", DataType::Int32)]);
    let read_back = read(&file, &wanted).unwrap();
    assert_eq!(*read_back.column(2).as_primitive::<Int32Type>(), Int32Array::from(vec![Some(-1), None]));
    assert_eq!((read_back.column(1).null_count(), read_back.column(0).null_count()), (2, 1));
    let none = read(&file, &schema(&[])).unwrap();
    assert_eq!(none.num_rows(), 2);
    let error = read(&file, &schema(&[("s", DataType::Int32)])).unwrap_err().to_string();
    assert_eq!(error, "a.file: the column 's' has the type Utf8, which cannot be read as Int32");
}

fn groups() -> (Vec<RecordBatch>, Bytes) {
    let batches: Vec<RecordBatch> = (0..6).map(|group| sequence(group * 100..group * 100 + 100)).collect();
    let file = file(&batches, &options(&[]).unwrap());
    (batches, file)
}

fn sequence(range: Range<i64>) -> RecordBatch {
    let column: ArrayRef = Arc::new(Int64Array::from_iter_values(range));
    RecordBatch::try_from_iter([("n", column)]).unwrap()
}

fn values(portions: &Portions) -> Vec<i64> {
    let of = |batch: &RecordBatch| batch.column(0).as_primitive::<Int64Type>().values().to_vec();
    portions.iter().flat_map(|(batch, _)| of(batch)).collect()
}

proptest! {
    #[test]
    fn each_row_group_is_read_by_one_reader(mut cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..5)) {
        let (batches, file) = groups();
        let format = ParquetFormat::new(&batches[0].schema());
        let mut ends: Vec<u64> = cuts.drain(..).map(|cut| cut.index(file.len()) as u64).collect();
        ends.push(file.len() as u64);
        ends.sort_unstable();
        let mut start = 0;
        let mut all = Vec::new();
        for end in ends {
            all.extend(values(&read_from(&file, &format, start..end, None).unwrap()));
            start = end;
        }
        prop_assert_eq!(all, (0..600).collect::<Vec<i64>>());
    }

    #[test]
    fn damaged_files_are_errors(at in any::<prop::sample::Index>(), byte in any::<u8>(), length in any::<prop::sample::Index>()) {
        let (batches, file) = groups();
        let mut damaged = file.to_vec();
        let at = at.index(damaged.len());
        damaged[at] = byte;
        // Errors, or other values: there is no checksum. Some of it the reader does not survive, which ends its task alone.
        let (damaged, schema) = (Bytes::from(damaged), batches[0].schema());
        let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| read(&damaged, &schema).map(drop)));
        let short = file.slice(..length.index(file.len()));
        let error = read(&short, &batches[0].schema()).unwrap_err().to_string();
        prop_assert!(error.starts_with("a.file "), "{}", error);
    }
}

#[test]
fn reading_goes_on_within_a_row_group() {
    let batch = sequence(0..20_000);
    let mut encoder = ParquetEncoder::new(&batch.schema(), options(&[]).unwrap());
    let mut out = Vec::new();
    encoder.encode(&[Chunk::inserts(batch.clone())], true, &mut out).unwrap();
    assert!(out.is_empty() && encoder.bytes_kept() > 0 && encoder.memory_bytes() > 0);
    encoder.finish(&mut out).unwrap();
    let file = Bytes::from(out);
    let format = ParquetFormat::new(&batch.schema());
    let all = 0..file.len() as u64;
    let portions = read_from(&file, &format, all.clone(), None).unwrap();
    assert_eq!(portions.len(), 3);
    for done in 1..=portions.len() {
        let rest = read_from(&file, &format, all.clone(), Some(portions[done - 1].1)).unwrap();
        assert_eq!(rest, portions[done..], "after {done}");
    }
}

#[test]
fn row_groups_are_left_out_by_their_statistics() {
    let (batches, file) = groups();
    let choose: RowGroups = Arc::new(|statistics| {
        let (least, greatest) = (statistics.least("n").unwrap(), statistics.greatest("n").unwrap());
        let (least, greatest) = (least.as_primitive::<Int64Type>(), greatest.as_primitive::<Int64Type>());
        assert_eq!((statistics.row_groups(), statistics.nulls("n").map(|nulls| nulls.len())), (6, Some(6)));
        assert!(statistics.least("unknown").is_none());
        Ok((0..6).map(|group| least.value(group) <= 250 && greatest.value(group) >= 250).collect())
    });
    let format = ParquetFormat::new(&batches[0].schema()).row_groups(Some(choose));
    let read = read_from(&file, &format, 0..file.len() as u64, None).unwrap();
    assert_eq!(values(&read), (200..300).collect::<Vec<i64>>());
}

#[test]
fn int96_is_read_in_the_tables_unit() {
    // Flink 2.3 wrote these: 2024-01-02 03:04:05.123456789 and 9999-01-02 03:04:05.123.
    let file = Bytes::from_static(include_bytes!("testdata/flink_int96.parquet"));
    for unit in [TimeUnit::Second, TimeUnit::Millisecond, TimeUnit::Microsecond] {
        let read = read(&file, &schema(&[("far", DataType::Timestamp(unit, None))])).unwrap();
        let mut text = String::new();
        flott_chunk::display::write_value(read.column(0), 0, &mut text);
        assert!(text.starts_with("9999-01-02T03:04:05"), "{text}");
    }
    let read =
        read(&file, &schema(&[("near", DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into())))])).unwrap();
    let mut text = String::new();
    flott_chunk::display::write_value(read.column(0), 0, &mut text);
    assert_eq!(text, "2024-01-02T03:04:05.123456789Z");
}

#[test]
fn options_are_checked() {
    for (key, value) in [
        ("parquet.compression", "LZO"),
        ("parquet.block.size", "0"),
        ("parquet.utc-timezone", "false"),
        ("parquet.write.int64.timestamp", "false"),
        ("parquet.timestamp.time.unit", "hours"),
        ("parquet.writer.version", "3"),
    ] {
        let error = options(&[(key, value)]).unwrap_err().to_string();
        assert!(error.contains(&format!("option '{key}' is '{value}'")), "{error}");
    }
    let interval = schema(&[("i", DataType::Duration(TimeUnit::Millisecond))]);
    assert!(check_columns("t", &interval).unwrap_err().to_string().contains("column 'i'"));
}
