//! Bytes that compare as rows do: for Top-N, OVER and sorting.
//!
//! Like [`arrow::row`], but of our own making, since it is kept in state: a byte for null or not, and the value such that
//! the bytes of a smaller one are smaller. For descending columns all bits of the value are turned. **The form is kept in
//! savepoints: it never changes.**
//!
//! | type | bytes |
//! |---|---|
//! | boolean | one byte |
//! | signed integers, dates, times, timestamps, decimals | big-endian with the sign bit turned |
//! | floats | their bits, big-endian; all turned if negative, else the sign. NaN is the greatest, -0.0 is less than 0.0 |
//! | strings, binary | the bytes, with 0 written as 0 255, and 0 0 at the end |

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray};
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, DurationMicrosecondType, DurationMillisecondType, DurationNanosecondType,
    DurationSecondType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, Time32MillisecondType,
    Time32SecondType, Time64MicrosecondType, Time64NanosecondType, TimeUnit, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
};
use flott_core::{Error, Result};
use serde::{Deserialize, Serialize};

use crate::row::EncodedRows;

/// By which column rows are ordered, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SortColumn {
    /// The column.
    pub column: usize,
    /// Whether the greatest comes first.
    pub is_descending: bool,
    /// Whether nulls come before all values, in the order of the result.
    pub nulls_first: bool,
}

/// Makes sort keys of batches.
#[derive(Clone, Debug)]
pub struct SortKeyEncoder {
    columns: Vec<SortColumn>,
}

impl SortKeyEncoder {
    /// For rows ordered by these columns of `types`, the first counting most.
    ///
    /// # Errors
    /// A column has no order.
    pub fn new(columns: &[SortColumn], types: &[DataType]) -> Result<Self> {
        for column in columns {
            check(&types[column.column])?;
        }
        Ok(Self { columns: columns.to_vec() })
    }

    /// The sort key of each row, in place of what `into` had.
    pub fn encode(&self, columns: &[ArrayRef], rows: usize, into: &mut EncodedRows) -> Result<()> {
        into.data.clear();
        into.ends.clear();
        for row in 0..rows {
            for sort in &self.columns {
                write(&*columns[sort.column], row, *sort, &mut into.data)?;
            }
            into.ends.push(into.data.len());
        }
        Ok(())
    }
}

fn check(data_type: &DataType) -> Result<()> {
    match data_type {
        DataType::Null
        | DataType::Boolean
        | DataType::Int8
        | DataType::Int16
        | DataType::Int32
        | DataType::Int64
        | DataType::Float32
        | DataType::Float64
        | DataType::Decimal128(..)
        | DataType::Date32
        | DataType::Time32(_)
        | DataType::Time64(_)
        | DataType::Timestamp(..)
        | DataType::Duration(_)
        | DataType::Utf8
        | DataType::Binary => Ok(()),
        other => Err(unordered(other)),
    }
}

fn unordered(data_type: &DataType) -> Error {
    Error::input(format!("rows cannot be ordered by a column of the type {data_type}"))
}

fn write(array: &dyn Array, row: usize, sort: SortColumn, out: &mut Vec<u8>) -> Result<()> {
    if matches!(array.data_type(), DataType::Null) || array.is_null(row) {
        out.push(if sort.nulls_first { 0 } else { 2 });
        return Ok(());
    }
    out.push(1);
    let start = out.len();
    write_value(array, row, out)?;
    if sort.is_descending {
        out[start..].iter_mut().for_each(|byte| *byte = !*byte);
    }
    Ok(())
}

macro_rules! signed {
    ($array:expr, $row:expr, $out:expr, $type:ty) => {{
        let value = $array.as_primitive::<$type>().value($row);
        let flipped = value ^ <<$type as ArrowPrimitiveType>::Native>::MIN;
        $out.extend_from_slice(&flipped.to_be_bytes());
    }};
}

macro_rules! float {
    ($value:expr, $out:expr, $bits:ty, $top:expr) => {{
        let value = if $value.is_nan() { $value.abs() } else { $value };
        let bits = value.to_bits();
        let flipped: $bits = if bits & $top != 0 { !bits } else { bits | $top };
        $out.extend_from_slice(&flipped.to_be_bytes());
    }};
}

fn write_value(array: &dyn Array, row: usize, out: &mut Vec<u8>) -> Result<()> {
    match array.data_type() {
        DataType::Boolean => out.push(u8::from(array.as_boolean().value(row))),
        DataType::Int8 => signed!(array, row, out, Int8Type),
        DataType::Int16 => signed!(array, row, out, Int16Type),
        DataType::Int32 => signed!(array, row, out, Int32Type),
        DataType::Int64 => signed!(array, row, out, Int64Type),
        DataType::Decimal128(..) => signed!(array, row, out, Decimal128Type),
        DataType::Date32 => signed!(array, row, out, Date32Type),
        DataType::Time32(TimeUnit::Second) => signed!(array, row, out, Time32SecondType),
        DataType::Time32(_) => signed!(array, row, out, Time32MillisecondType),
        DataType::Time64(TimeUnit::Microsecond) => signed!(array, row, out, Time64MicrosecondType),
        DataType::Time64(_) => signed!(array, row, out, Time64NanosecondType),
        DataType::Timestamp(TimeUnit::Second, _) => signed!(array, row, out, TimestampSecondType),
        DataType::Timestamp(TimeUnit::Millisecond, _) => signed!(array, row, out, TimestampMillisecondType),
        DataType::Timestamp(TimeUnit::Microsecond, _) => signed!(array, row, out, TimestampMicrosecondType),
        DataType::Timestamp(TimeUnit::Nanosecond, _) => signed!(array, row, out, TimestampNanosecondType),
        DataType::Duration(TimeUnit::Second) => signed!(array, row, out, DurationSecondType),
        DataType::Duration(TimeUnit::Millisecond) => signed!(array, row, out, DurationMillisecondType),
        DataType::Duration(TimeUnit::Microsecond) => signed!(array, row, out, DurationMicrosecondType),
        DataType::Duration(TimeUnit::Nanosecond) => signed!(array, row, out, DurationNanosecondType),
        DataType::Float32 => float!(array.as_primitive::<Float32Type>().value(row), out, u32, 1 << 31),
        DataType::Float64 => float!(array.as_primitive::<Float64Type>().value(row), out, u64, 1 << 63),
        DataType::Utf8 => write_bytes(array.as_string::<i32>().value(row).as_bytes(), out),
        DataType::Binary => write_bytes(array.as_binary::<i32>().value(row), out),
        other => return Err(unordered(other)),
    }
    Ok(())
}

fn write_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    for byte in bytes {
        out.push(*byte);
        if *byte == 0 {
            out.push(255);
        }
    }
    out.extend_from_slice(&[0, 0]);
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;
    use std::sync::Arc;

    use arrow::array::{Float64Array, Int32Array, StringArray};
    use proptest::prelude::*;

    use super::*;

    /// How two values compare in the order of the result.
    fn compare<T: PartialOrd>(a: &Option<T>, b: &Option<T>, sort: SortColumn) -> Ordering {
        let nulls = if sort.nulls_first { Ordering::Less } else { Ordering::Greater };
        match (a, b) {
            (None, None) => Ordering::Equal,
            (None, _) => nulls,
            (_, None) => nulls.reverse(),
            (Some(a), Some(b)) => {
                let order = a.partial_cmp(b).unwrap();
                if sort.is_descending { order.reverse() } else { order }
            }
        }
    }

    proptest! {
        #[test]
        fn keys_compare_as_rows(
            rows in prop::collection::vec(
                (any::<Option<i32>>(), prop::option::of("[a-b\\x00é]{0,4}"), prop::option::of(-1e3..1e3_f64)), 2..20),
            flags in prop::collection::vec(any::<(bool, bool)>(), 3),
        ) {
            let columns: Vec<ArrayRef> = vec![
                Arc::new(Int32Array::from_iter(rows.iter().map(|row| row.0))),
                Arc::new(StringArray::from_iter(rows.iter().map(|row| row.1.clone()))),
                Arc::new(Float64Array::from_iter(rows.iter().map(|row| row.2))),
            ];
            let sorts: Vec<SortColumn> = flags.iter().enumerate()
                .map(|(column, (is_descending, nulls_first))| SortColumn {
                    column, is_descending: *is_descending, nulls_first: *nulls_first,
                }).collect();
            let types: Vec<DataType> = columns.iter().map(|column| column.data_type().clone()).collect();
            let mut keys = EncodedRows::default();
            SortKeyEncoder::new(&sorts, &types).unwrap().encode(&columns, rows.len(), &mut keys).unwrap();
            for (i, a) in rows.iter().enumerate() {
                for (j, b) in rows.iter().enumerate() {
                    let expected = compare(&a.0, &b.0, sorts[0])
                        .then_with(|| compare(&a.1, &b.1, sorts[1]))
                        .then_with(|| compare(&a.2, &b.2, sorts[2]));
                    prop_assert_eq!(keys.get(i).cmp(keys.get(j)), expected);
                }
            }
        }
    }
}
