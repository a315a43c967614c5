//! What tests of several formats need.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, Date32Array, Decimal128Array, Float64Array, Int8Array, Int64Builder, ListBuilder, MapBuilder,
    RecordBatch, StringArray, StringBuilder, StructArray, Time32MillisecondArray, TimestampMillisecondArray,
    TimestampNanosecondArray,
};
use arrow::datatypes::{DataType, Field};
use bytes::Bytes;
use flott_core::{Error, Result};
use flott_formats::FileBytes;

/// A file.
pub(crate) struct InMemory(pub(crate) Bytes);

impl FileBytes for InMemory {
    fn name(&self) -> &str {
        "a.file"
    }

    fn length(&self) -> u64 {
        self.0.len() as u64
    }

    fn modified_ms(&self) -> Result<i64> {
        Ok(0)
    }

    fn read_at(&self, range: Range<u64>) -> Result<Bytes> {
        match range.start <= range.end && range.end <= self.length() {
            true => Ok(self.0.slice(range.start as usize..range.end as usize)),
            false => Err(Error::input("a.file is too short")),
        }
    }

    fn read_ahead(&self, ranges: &[Range<u64>]) -> Result<Option<Vec<Bytes>>> {
        ranges.iter().map(|range| self.read_at(range.clone())).collect::<Result<_>>().map(Some)
    }
}

/// One row of every type, and one of nulls.
pub(crate) fn all_types() -> RecordBatch {
    let mut list = ListBuilder::new(StringBuilder::new()).with_field(Field::new("element", DataType::Utf8, true));
    list.append_value([Some("a"), None]);
    list.append_null();
    let mut map = MapBuilder::new(None, StringBuilder::new(), Int64Builder::new());
    map.keys().append_value("k");
    map.values().append_value(5);
    map.append(true).unwrap();
    map.append(false).unwrap();
    let inner: ArrayRef = Arc::new(TimestampMillisecondArray::from(vec![Some(-1), None]));
    let inner_field = Field::new("t", inner.data_type().clone(), true);
    let row = StructArray::new(vec![inner_field].into(), vec![inner], Some(vec![true, false].into()));
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("i8", Arc::new(Int8Array::from(vec![Some(-1), None]))),
        ("d", Arc::new(Float64Array::from(vec![Some(f64::NAN), None]))),
        ("dc", Arc::new(Decimal128Array::from(vec![Some(-125), None]).with_precision_and_scale(5, 2).unwrap())),
        (
            "dd",
            Arc::new(Decimal128Array::from(vec![Some(10_i128.pow(37)), None]).with_precision_and_scale(38, 0).unwrap()),
        ),
        ("s", Arc::new(StringArray::from(vec![Some("ä"), None]))),
        ("dt", Arc::new(Date32Array::from(vec![Some(-1), None]))),
        ("tm", Arc::new(Time32MillisecondArray::from(vec![Some(1001), None]))),
        ("ts", Arc::new(TimestampMillisecondArray::from(vec![Some(-1), None]))),
        ("ts9", Arc::new(TimestampNanosecondArray::from(vec![Some(-1), None]))),
        ("tz", Arc::new(TimestampMillisecondArray::from(vec![Some(7), None]).with_timezone("UTC"))),
        ("a", Arc::new(list.finish())),
        ("m", Arc::new(map.finish())),
        ("r", Arc::new(row)),
    ];
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, column)| (name, column, true))).unwrap()
}
