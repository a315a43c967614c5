//! Columns of files as columns of tables: the same values in another type, where nothing of them gets lost.
//!
//! What a file has besides is no loss to a table: digits of time that the table's type does not have are cut off, as Flink does
//! it, and whether a time is an instant is up to the table.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, ListArray, MapArray, RecordBatch, StructArray, new_null_array};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{
    ArrowTimestampType, DataType, Field, Fields, Int64Type, SchemaRef, Time32MillisecondType, Time64MicrosecondType,
    Time64NanosecondType, TimeUnit, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType,
};
use arrow::error::ArrowError;
use flott_chunk::batch_of;
use flott_core::Result;

/// The columns of `schema`, found by their names among those of a file; a column that the file does not have is null.
///
/// # Errors
/// Which column cannot be had of the file, and why.
pub fn conform_batch(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, String> {
    let from = batch.schema_ref();
    let mut columns = Vec::with_capacity(schema.fields().len());
    for field in schema.fields() {
        columns.push(match from.index_of(field.name()) {
            Ok(at) => conform(batch.column(at), field)?,
            Err(_) => missing(field, batch.num_rows())?,
        });
    }
    batch_of(schema, columns, batch.num_rows()).map_err(|error| error.message)
}

/// That the values of a column of a file can be those of `to`, as far as types tell.
///
/// # Errors
/// Why not.
pub fn check(from: &Field, to: &Field) -> Result<(), String> {
    conform(&new_null_array(from.data_type(), 0), to).map(drop)
}

fn missing(field: &Field, rows: usize) -> Result<ArrayRef, String> {
    match field.is_nullable() || rows == 0 {
        true => Ok(new_null_array(field.data_type(), rows)),
        false => Err(format!("it has no column '{}', which is NOT NULL in the table", field.name())),
    }
}

/// The column as one of the type of `to`.
fn conform(array: &ArrayRef, to: &Field) -> Result<ArrayRef, String> {
    if !to.is_nullable() && array.null_count() > 0 {
        return Err(format!("the column '{}' is null in a row, and NOT NULL in the table", to.name()));
    }
    converted(array, to.data_type()).map_err(|error| match error {
        Failed::Types => format!(
            "the column '{}' has the type {}, which cannot be read as {}",
            to.name(),
            array.data_type(),
            to.data_type()
        ),
        Failed::Values(reason) => format!("the column '{}': {reason}", to.name()),
    })
}

enum Failed {
    /// The types have nothing in common.
    Types,
    /// What is wrong with a value, or with a part of the type.
    Values(String),
}

impl From<ArrowError> for Failed {
    fn from(error: ArrowError) -> Self {
        Self::Values(error.to_string())
    }
}

fn converted(array: &ArrayRef, to: &DataType) -> Result<ArrayRef, Failed> {
    use DataType::{
        Binary, BinaryView, Date32, Decimal128, Dictionary, FixedSizeBinary, FixedSizeList, Float16, Float32, Float64,
        Int8, Int16, Int32, Int64, LargeBinary, LargeList, LargeUtf8, List, Map, Null, Struct, Time32, Time64,
        Timestamp, UInt8, UInt16, UInt32, Utf8, Utf8View,
    };
    let from = array.data_type();
    match (from, to) {
        _ if from == to => Ok(Arc::clone(array)),
        (Null, _) => Ok(new_null_array(to, array.len())),
        (Dictionary(..), _) => {
            let Dictionary(_, values) = from else { return Err(Failed::Types) };
            converted(&cast(array, values)?, to)
        }
        (Int8, Int16 | Int32 | Int64)
        | (Int16 | UInt8, Int32 | Int64)
        | (UInt8, Int16)
        | (Int32 | UInt16 | UInt32, Int64)
        | (UInt16, Int32)
        | (Float16, Float32 | Float64)
        | (Float32, Float64)
        | (Binary | LargeUtf8 | LargeBinary | Utf8View | BinaryView, Utf8)
        | (FixedSizeBinary(_) | LargeBinary | BinaryView, Binary)
        | (DataType::Date64, Date32) => cast(array, to),
        // What was written for a narrow integer, since the format has no such type: its values say whether it is one.
        (Int32, Int8 | Int16) => cast(array, to),
        (Decimal128(precision, scale), Decimal128(wanted, wanted_scale))
            if scale <= wanted_scale
                && i32::from(*precision) - i32::from(*scale) <= i32::from(*wanted) - i32::from(*wanted_scale) =>
        {
            cast(array, to)
        }
        (Timestamp(..), Timestamp(..)) => timestamps(array, to),
        // Milliseconds since 1970 without a logical type.
        (Int64, Timestamp(..)) => timestamps(&cast(array, &Timestamp(TimeUnit::Millisecond, None))?, to),
        (Time32(TimeUnit::Second), Time32(TimeUnit::Millisecond)) => cast(array, to),
        (Time64(TimeUnit::Microsecond), Time32(TimeUnit::Millisecond)) => {
            let times = array.as_primitive::<Time64MicrosecondType>();
            Ok(Arc::new(times.unary::<_, Time32MillisecondType>(|time| (time / 1000) as i32)))
        }
        (Time64(TimeUnit::Nanosecond), Time32(TimeUnit::Millisecond)) => {
            let times = array.as_primitive::<Time64NanosecondType>();
            Ok(Arc::new(times.unary::<_, Time32MillisecondType>(|time| (time / 1_000_000) as i32)))
        }
        (Struct(_), Struct(fields)) => Ok(Arc::new(row(array.as_struct(), fields)?)),
        (LargeList(field) | FixedSizeList(field, _), List(_)) => converted(&cast(array, &List(Arc::clone(field)))?, to),
        (List(_), List(field)) => {
            let (_, offsets, elements, nulls) = array.as_list::<i32>().clone().into_parts();
            let elements = conform(&elements, field).map_err(Failed::Values)?;
            Ok(Arc::new(ListArray::try_new(Arc::clone(field), offsets, elements, nulls)?))
        }
        (Map(..), Map(field, is_sorted)) => {
            let (_, offsets, entries, nulls, _) = array.as_map().clone().into_parts();
            let Struct(fields) = field.data_type() else { return Err(Failed::Types) };
            let columns = entries.columns().iter().zip(fields).map(|(column, field)| conform(column, field));
            let columns = columns.collect::<Result<Vec<_>, _>>().map_err(Failed::Values)?;
            let entries = StructArray::try_new(fields.clone(), columns, None)?;
            Ok(Arc::new(MapArray::try_new(Arc::clone(field), offsets, entries, nulls, *is_sorted)?))
        }
        _ => Err(Failed::Types),
    }
}

/// A cast that fails where a value has no place in the type.
fn cast(array: &ArrayRef, to: &DataType) -> Result<ArrayRef, Failed> {
    Ok(cast_with_options(array, to, &CastOptions { safe: false, ..CastOptions::default() })?)
}

fn row(rows: &StructArray, fields: &Fields) -> Result<StructArray, Failed> {
    let mut columns = Vec::with_capacity(fields.len());
    for field in fields {
        columns.push(match rows.column_by_name(field.name()) {
            // Where the row is null, so may be its fields.
            Some(column) => conform(column, &field.as_ref().clone().with_nullable(true)),
            None => missing(field, rows.len()),
        });
    }
    let columns = columns.into_iter().collect::<Result<Vec<_>, _>>().map_err(Failed::Values)?;
    match columns.is_empty() {
        true => Ok(StructArray::new_empty_fields(rows.len(), rows.nulls().cloned())),
        false => Ok(StructArray::try_new(fields.clone(), columns, rows.nulls().cloned())?),
    }
}

fn per_second(unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1_000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => 1_000_000_000,
    }
}

/// Timestamps in another unit: what is smaller is cut off, towards the past.
fn timestamps(array: &ArrayRef, to: &DataType) -> Result<ArrayRef, Failed> {
    let (DataType::Timestamp(from, _), DataType::Timestamp(unit, zone)) = (array.data_type(), to) else {
        return Err(Failed::Types);
    };
    let values = cast(array, &DataType::Int64)?;
    let (from, unit_per_second) = (per_second(*from), per_second(*unit));
    let scaled = match from.cmp(&unit_per_second) {
        std::cmp::Ordering::Equal => values.as_primitive::<Int64Type>().clone(),
        std::cmp::Ordering::Greater => {
            let ratio = from / unit_per_second;
            values.as_primitive::<Int64Type>().unary(|value| value.div_euclid(ratio))
        }
        std::cmp::Ordering::Less => {
            let ratio = unit_per_second / from;
            values.as_primitive::<Int64Type>().try_unary(|value| {
                value.checked_mul(ratio).ok_or_else(|| {
                    ArrowError::ComputeError(format!("the time {value} (of {from} a second) has no place in {to}"))
                })
            })?
        }
    };
    fn of<T: ArrowTimestampType>(values: &arrow::array::Int64Array, zone: Option<Arc<str>>) -> ArrayRef {
        Arc::new(values.reinterpret_cast::<T>().with_timezone_opt(zone))
    }
    let zone = zone.clone();
    Ok(match unit {
        TimeUnit::Second => of::<TimestampSecondType>(&scaled, zone),
        TimeUnit::Millisecond => of::<TimestampMillisecondType>(&scaled, zone),
        TimeUnit::Microsecond => of::<TimestampMicrosecondType>(&scaled, zone),
        TimeUnit::Nanosecond => of::<TimestampNanosecondType>(&scaled, zone),
    })
}

#[cfg(test)]
mod tests {
    use arrow::array::{
        BinaryArray, Int16Array, Int32Array, Int64Array, StringArray, TimestampMillisecondArray,
        TimestampNanosecondArray,
    };
    use arrow::datatypes::{Int16Type, Schema};

    use super::*;

    fn one(array: ArrayRef, to: DataType) -> Result<ArrayRef, String> {
        conform(&array, &Field::new("v", to, true))
    }

    #[test]
    fn columns_are_found_by_name_and_widened() {
        let b: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), None]));
        let a: ArrayRef = Arc::new(StringArray::from(vec!["x", "y"]));
        let batch = RecordBatch::try_from_iter([("b", b), ("a", a)]).unwrap();
        let field = |name: &str, of: DataType| Field::new(name, of, true);
        let schema = |fields: Vec<Field>| Arc::new(Schema::new(fields));
        let wanted = schema(vec![field("a", DataType::Utf8), field("c", DataType::Int32), field("b", DataType::Int64)]);
        let found = conform_batch(&batch, &wanted).unwrap();
        assert_eq!(*found.column(2).as_primitive::<Int64Type>(), Int64Array::from(vec![Some(1), None]));
        assert_eq!((found.column(1).null_count(), found.column(0).null_count()), (2, 0));
        let refused = |fields| conform_batch(&batch, &schema(fields)).unwrap_err();
        assert_eq!(
            refused(vec![field("a", DataType::Int32)]),
            "the column 'a' has the type Utf8, which cannot be read as Int32"
        );
        assert!(refused(vec![Field::new("c", DataType::Int32, false)]).contains("no column 'c'"));
        assert!(refused(vec![Field::new("b", DataType::Int32, false)]).contains("'b' is null"));
    }

    #[test]
    fn times_are_cut_towards_the_past() {
        let nanos: ArrayRef = Arc::new(TimestampNanosecondArray::from(vec![-1, 1_999_999, 2_000_000]));
        let millis = one(nanos, DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into()))).unwrap();
        let expected = TimestampMillisecondArray::from(vec![-1, 1, 2]).with_timezone("UTC");
        assert_eq!(*millis.as_primitive::<TimestampMillisecondType>(), expected);
        let far: ArrayRef = Arc::new(TimestampMillisecondArray::from(vec![i64::MAX / 10]));
        assert!(one(far, DataType::Timestamp(TimeUnit::Nanosecond, None)).unwrap_err().contains("no place"));
    }

    #[test]
    fn values_that_do_not_fit_are_errors() {
        let wide: ArrayRef = Arc::new(Int32Array::from(vec![40_000]));
        assert!(one(Arc::clone(&wide), DataType::Int16).unwrap_err().contains("'v'"));
        let narrow: ArrayRef = Arc::new(Int32Array::from(vec![-7]));
        assert_eq!(*one(narrow, DataType::Int16).unwrap().as_primitive::<Int16Type>(), Int16Array::from(vec![-7]));
        let bytes: ArrayRef = Arc::new(BinaryArray::from_vec(vec![b"\xff"]));
        one(bytes, DataType::Utf8).unwrap_err();
        one(wide, DataType::Utf8).unwrap_err();
    }
}
