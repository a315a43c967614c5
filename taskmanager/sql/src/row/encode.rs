//! From columns to the bytes of rows.

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, FixedSizeBinaryArray, ListArray, MapArray, PrimitiveArray, StructArray,
};
use arrow::datatypes::ToByteSlice;
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Date32Type, Date64Type, Decimal128Type, DurationMicrosecondType,
    DurationMillisecondType, DurationNanosecondType, DurationSecondType, Float32Type, Float64Type, Int8Type, Int16Type,
    Int32Type, Int64Type, IntervalDayTimeType, IntervalMonthDayNanoType, IntervalUnit, IntervalYearMonthType,
    Time32MillisecondType, Time32SecondType, Time64MicrosecondType, Time64NanosecondType, TimeUnit,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType, UInt8Type,
    UInt16Type, UInt32Type, UInt64Type,
};
use flott_core::Result;

use super::{EncodedRows, unsupported};

/// Writes the bytes of rows of one schema.
#[derive(Debug)]
pub struct RowEncoder {
    types: Vec<DataType>,
}

impl RowEncoder {
    /// For rows of columns of these types.
    ///
    /// # Errors
    /// A type has no form.
    pub fn new(types: &[DataType]) -> Result<Self> {
        types.iter().try_for_each(check)?;
        Ok(Self { types: types.to_vec() })
    }

    /// The bytes of each row of `columns`, in place of what `into` had.
    pub fn encode(&self, columns: &[ArrayRef], rows: usize, into: &mut EncodedRows) -> Result<()> {
        into.data.clear();
        into.ends.clear();
        let writers: Vec<Writer<'_>> = columns.iter().map(Writer::new).collect::<Result<_>>()?;
        debug_assert!(columns.iter().zip(&self.types).all(|(column, data_type)| column.data_type() == data_type));
        match &writers[..] {
            // As keys often are.
            [only] if only.is_full() => only.column.rows(rows, into),
            _ => {
                for row in 0..rows {
                    for writer in &writers {
                        writer.write(row, &mut into.data);
                    }
                    into.ends.push(into.data.len());
                }
            }
        }
        Ok(())
    }
}

/// Whether a type has a form.
pub(super) fn check(data_type: &DataType) -> Result<()> {
    match data_type {
        DataType::List(field) => check(field.data_type()),
        DataType::Map(entries, _) => check(entries.data_type()),
        DataType::Struct(fields) => fields.iter().try_for_each(|field| check(field.data_type())),
        DataType::LargeUtf8
        | DataType::LargeBinary
        | DataType::LargeList(_)
        | DataType::Utf8View
        | DataType::BinaryView
        | DataType::ListView(_)
        | DataType::LargeListView(_)
        | DataType::FixedSizeList(..)
        | DataType::Union(..)
        | DataType::Dictionary(..)
        | DataType::RunEndEncoded(..)
        | DataType::Float16
        | DataType::Decimal32(..)
        | DataType::Decimal64(..)
        | DataType::Decimal256(..) => Err(unsupported(data_type)),
        _ => Ok(()),
    }
}

pub(crate) fn write_length(length: usize, out: &mut Vec<u8>) {
    let mut rest = length;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

/// Writes the values of one column.
trait Column {
    /// Appends the value of a row that is not null.
    fn value(&self, row: usize, out: &mut Vec<u8>);

    /// Appends rows that have nothing else, none of which is null.
    fn rows(&self, rows: usize, into: &mut EncodedRows) {
        into.ends.reserve(rows);
        for row in 0..rows {
            into.data.push(1);
            self.value(row, &mut into.data);
            into.ends.push(into.data.len());
        }
    }
}

struct Writer<'a> {
    array: &'a dyn Array,
    has_nulls: bool,
    column: Box<dyn Column + 'a>,
}

impl<'a> Writer<'a> {
    fn new(array: &'a ArrayRef) -> Result<Self> {
        let array: &dyn Array = array;
        Ok(Self { array, has_nulls: array.logical_null_count() > 0, column: column_of(array)? })
    }

    /// Whether no value is null.
    fn is_full(&self) -> bool {
        !self.has_nulls
    }

    #[inline]
    fn write(&self, row: usize, out: &mut Vec<u8>) {
        if self.has_nulls && (matches!(self.array.data_type(), DataType::Null) || self.array.is_null(row)) {
            out.push(0);
        } else {
            out.push(1);
            self.column.value(row, out);
        }
    }
}

struct Nothing;

impl Column for Nothing {
    fn value(&self, _: usize, _: &mut Vec<u8>) {}
}

impl Column for &BooleanArray {
    fn value(&self, row: usize, out: &mut Vec<u8>) {
        out.push(u8::from(BooleanArray::value(self, row)));
    }
}

/// A column of values of fixed width.
struct Fixed<'a, T: ArrowPrimitiveType>(&'a PrimitiveArray<T>);

impl<T: ArrowPrimitiveType> Column for Fixed<'_, T> {
    #[inline]
    fn value(&self, row: usize, out: &mut Vec<u8>) {
        // Arrow's buffers are little-endian, as all machines that it runs on here.
        out.extend_from_slice(self.0.value(row).to_byte_slice());
    }
}

struct Float32<'a>(&'a PrimitiveArray<Float32Type>);

impl Column for Float32<'_> {
    fn value(&self, row: usize, out: &mut Vec<u8>) {
        let value = self.0.value(row);
        out.extend_from_slice(&(if value.is_nan() { f32::NAN } else { value }).to_le_bytes());
    }
}

struct Float64<'a>(&'a PrimitiveArray<Float64Type>);

impl Column for Float64<'_> {
    fn value(&self, row: usize, out: &mut Vec<u8>) {
        let value = self.0.value(row);
        out.extend_from_slice(&(if value.is_nan() { f64::NAN } else { value }).to_le_bytes());
    }
}

struct Texts<'a>(&'a arrow::array::StringArray);

impl Column for Texts<'_> {
    #[inline]
    fn value(&self, row: usize, out: &mut Vec<u8>) {
        let text = self.0.value(row);
        write_length(text.len(), out);
        out.extend_from_slice(text.as_bytes());
    }
}

struct Blobs<'a>(&'a arrow::array::BinaryArray);

impl Column for Blobs<'_> {
    fn value(&self, row: usize, out: &mut Vec<u8>) {
        let bytes = self.0.value(row);
        write_length(bytes.len(), out);
        out.extend_from_slice(bytes);
    }
}

impl Column for &FixedSizeBinaryArray {
    fn value(&self, row: usize, out: &mut Vec<u8>) {
        out.extend_from_slice(FixedSizeBinaryArray::value(self, row));
    }
}

struct Lists<'a> {
    array: &'a ListArray,
    values: Writer<'a>,
}

impl Column for Lists<'_> {
    fn value(&self, row: usize, out: &mut Vec<u8>) {
        let offsets = self.array.value_offsets();
        let (start, end) = (offsets[row] as usize, offsets[row + 1] as usize);
        write_length(end - start, out);
        (start..end).for_each(|element| self.values.write(element, out));
    }
}

struct Maps<'a> {
    array: &'a MapArray,
    keys: Writer<'a>,
    values: Writer<'a>,
}

impl Column for Maps<'_> {
    fn value(&self, row: usize, out: &mut Vec<u8>) {
        let offsets = self.array.value_offsets();
        let (start, end) = (offsets[row] as usize, offsets[row + 1] as usize);
        write_length(end - start, out);
        for entry in start..end {
            self.keys.write(entry, out);
            self.values.write(entry, out);
        }
    }
}

struct Structs<'a>(Vec<Writer<'a>>);

impl<'a> Structs<'a> {
    fn new(array: &'a StructArray) -> Result<Self> {
        array.columns().iter().map(Writer::new).collect::<Result<_>>().map(Self)
    }
}

impl Column for Structs<'_> {
    fn value(&self, row: usize, out: &mut Vec<u8>) {
        self.0.iter().for_each(|field| field.write(row, out));
    }
}

fn fixed<'a, T: ArrowPrimitiveType>(array: &'a dyn Array) -> Box<dyn Column + 'a> {
    Box::new(Fixed(array.as_primitive::<T>()))
}

fn column_of<'a>(array: &'a dyn Array) -> Result<Box<dyn Column + 'a>> {
    Ok(match array.data_type() {
        DataType::Null => Box::new(Nothing),
        DataType::Boolean => Box::new(array.as_boolean()),
        DataType::Int8 => fixed::<Int8Type>(array),
        DataType::Int16 => fixed::<Int16Type>(array),
        DataType::Int32 => fixed::<Int32Type>(array),
        DataType::Int64 => fixed::<Int64Type>(array),
        DataType::UInt8 => fixed::<UInt8Type>(array),
        DataType::UInt16 => fixed::<UInt16Type>(array),
        DataType::UInt32 => fixed::<UInt32Type>(array),
        DataType::UInt64 => fixed::<UInt64Type>(array),
        DataType::Float32 => Box::new(Float32(array.as_primitive())),
        DataType::Float64 => Box::new(Float64(array.as_primitive())),
        DataType::Decimal128(..) => fixed::<Decimal128Type>(array),
        DataType::Date32 => fixed::<Date32Type>(array),
        DataType::Date64 => fixed::<Date64Type>(array),
        DataType::Time32(TimeUnit::Second) => fixed::<Time32SecondType>(array),
        DataType::Time32(_) => fixed::<Time32MillisecondType>(array),
        DataType::Time64(TimeUnit::Microsecond) => fixed::<Time64MicrosecondType>(array),
        DataType::Time64(_) => fixed::<Time64NanosecondType>(array),
        DataType::Timestamp(TimeUnit::Second, _) => fixed::<TimestampSecondType>(array),
        DataType::Timestamp(TimeUnit::Millisecond, _) => fixed::<TimestampMillisecondType>(array),
        DataType::Timestamp(TimeUnit::Microsecond, _) => fixed::<TimestampMicrosecondType>(array),
        DataType::Timestamp(TimeUnit::Nanosecond, _) => fixed::<TimestampNanosecondType>(array),
        DataType::Duration(TimeUnit::Second) => fixed::<DurationSecondType>(array),
        DataType::Duration(TimeUnit::Millisecond) => fixed::<DurationMillisecondType>(array),
        DataType::Duration(TimeUnit::Microsecond) => fixed::<DurationMicrosecondType>(array),
        DataType::Duration(TimeUnit::Nanosecond) => fixed::<DurationNanosecondType>(array),
        DataType::Interval(IntervalUnit::YearMonth) => fixed::<IntervalYearMonthType>(array),
        DataType::Interval(IntervalUnit::DayTime) => fixed::<IntervalDayTimeType>(array),
        DataType::Interval(IntervalUnit::MonthDayNano) => fixed::<IntervalMonthDayNanoType>(array),
        DataType::Utf8 => Box::new(Texts(array.as_string())),
        DataType::Binary => Box::new(Blobs(array.as_binary())),
        DataType::FixedSizeBinary(_) => Box::new(array.as_fixed_size_binary()),
        DataType::List(_) => {
            let array = array.as_list::<i32>();
            Box::new(Lists { array, values: Writer::new(array.values())? })
        }
        DataType::Map(..) => {
            let array = array.as_map();
            Box::new(Maps { array, keys: Writer::new(array.keys())?, values: Writer::new(array.values())? })
        }
        DataType::Struct(_) => Box::new(Structs::new(array.as_struct())?),
        other => return Err(unsupported(other)),
    })
}
