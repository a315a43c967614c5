//! From the bytes of rows back to columns.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryBuilder, BooleanBuilder, FixedSizeBinaryBuilder, ListArray, MapArray, NullArray, PrimitiveBuilder,
    StringBuilder, StructArray,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Date32Type, Date64Type, Decimal128Type, DurationMicrosecondType,
    DurationMillisecondType, DurationNanosecondType, DurationSecondType, Fields, Float32Type, Float64Type, Int8Type,
    Int16Type, Int32Type, Int64Type, IntervalDayTimeType, IntervalMonthDayNanoType, IntervalUnit,
    IntervalYearMonthType, Time32MillisecondType, Time32SecondType, Time64MicrosecondType, Time64NanosecondType,
    TimeUnit, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
    UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use flott_core::{Error, Result};

use super::encode::check;
use super::unsupported;

/// Reads the bytes of rows of one schema.
#[derive(Debug)]
pub struct RowDecoder {
    types: Vec<DataType>,
}

impl RowDecoder {
    /// For rows of columns of these types.
    ///
    /// # Errors
    /// A type has no form.
    pub fn new(types: &[DataType]) -> Result<Self> {
        types.iter().try_for_each(check)?;
        Ok(Self { types: types.to_vec() })
    }

    /// The columns of these rows.
    ///
    /// # Errors
    /// The bytes are not those of such rows.
    pub fn decode<'a>(&self, rows: impl IntoIterator<Item = &'a [u8]>) -> Result<Vec<ArrayRef>> {
        let mut readers: Vec<Box<dyn Reader>> = self.types.iter().map(reader_of).collect::<Result<_>>()?;
        // A column at a time, which is one virtual call for all rows, of as many rows as the nearest cache holds.
        let mut rows = rows.into_iter();
        let mut rests: Vec<&[u8]> = Vec::with_capacity(ROWS_AT_ONCE);
        loop {
            rests.clear();
            rests.extend(rows.by_ref().take(ROWS_AT_ONCE));
            if rests.is_empty() {
                break;
            }
            readers.iter_mut().try_for_each(|reader| reader.read_all(&mut rests))?;
            if rests.iter().any(|rest| !rest.is_empty()) {
                return Err(damaged());
            }
        }
        readers.into_iter().map(|mut reader| reader.finish()).collect()
    }
}

/// How many rows are read before the next column is.
const ROWS_AT_ONCE: usize = 256;

/// Collects the values of one column.
trait Reader {
    fn null(&mut self);
    fn value(&mut self, rest: &mut &[u8]) -> Result<()>;
    fn finish(&mut self) -> Result<ArrayRef>;

    /// Takes the next value of each row.
    fn read_all(&mut self, rests: &mut [&[u8]]) -> Result<()> {
        rests.iter_mut().try_for_each(|rest| read(self, rest))
    }
}

#[inline]
fn read<R: Reader + ?Sized>(reader: &mut R, rest: &mut &[u8]) -> Result<()> {
    match take(rest, 1)? {
        [0] => {
            reader.null();
            Ok(())
        }
        [1] => reader.value(rest),
        _ => Err(damaged()),
    }
}

#[inline]
fn take<'a>(rest: &mut &'a [u8], length: usize) -> Result<&'a [u8]> {
    let (bytes, left) = rest.split_at_checked(length).ok_or_else(damaged)?;
    *rest = left;
    Ok(bytes)
}

pub(crate) fn take_length(rest: &mut &[u8]) -> Result<usize> {
    let mut length = 0_u64;
    for shift in (0..=56).step_by(7) {
        let byte = take(rest, 1)?[0];
        length |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return usize::try_from(length).map_err(|_| damaged());
        }
    }
    Err(damaged())
}

fn damaged() -> Error {
    Error::system("a row in state does not have the form of its columns")
}

struct Nulls(usize);

impl Reader for Nulls {
    fn null(&mut self) {
        self.0 += 1;
    }

    fn value(&mut self, _: &mut &[u8]) -> Result<()> {
        self.0 += 1;
        Ok(())
    }

    fn finish(&mut self) -> Result<ArrayRef> {
        Ok(Arc::new(NullArray::new(self.0)))
    }
}

impl Reader for BooleanBuilder {
    fn null(&mut self) {
        self.append_null();
    }

    fn value(&mut self, rest: &mut &[u8]) -> Result<()> {
        match take(rest, 1)? {
            [value @ (0 | 1)] => self.append_value(*value == 1),
            _ => return Err(damaged()),
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<ArrayRef> {
        Ok(Arc::new(Self::finish(self)))
    }
}

/// Reads values of fixed width; `from` makes one of exactly its bytes.
struct Fixed<T: ArrowPrimitiveType> {
    builder: PrimitiveBuilder<T>,
    from: fn(&[u8]) -> Option<T::Native>,
}

impl<T: ArrowPrimitiveType> Reader for Fixed<T> {
    fn null(&mut self) {
        self.builder.append_null();
    }

    #[inline]
    fn value(&mut self, rest: &mut &[u8]) -> Result<()> {
        let bytes = take(rest, size_of::<T::Native>())?;
        self.builder.append_value((self.from)(bytes).ok_or_else(damaged)?);
        Ok(())
    }

    fn finish(&mut self) -> Result<ArrayRef> {
        Ok(Arc::new(self.builder.finish()))
    }
}

impl Reader for StringBuilder {
    fn null(&mut self) {
        self.append_null();
    }

    fn value(&mut self, rest: &mut &[u8]) -> Result<()> {
        let length = take_length(rest)?;
        self.append_value(std::str::from_utf8(take(rest, length)?).map_err(|_| damaged())?);
        Ok(())
    }

    fn finish(&mut self) -> Result<ArrayRef> {
        Ok(Arc::new(Self::finish(self)))
    }
}

impl Reader for BinaryBuilder {
    fn null(&mut self) {
        self.append_null();
    }

    fn value(&mut self, rest: &mut &[u8]) -> Result<()> {
        let length = take_length(rest)?;
        self.append_value(take(rest, length)?);
        Ok(())
    }

    fn finish(&mut self) -> Result<ArrayRef> {
        Ok(Arc::new(Self::finish(self)))
    }
}

struct FixedBytes {
    builder: FixedSizeBinaryBuilder,
    width: usize,
}

impl Reader for FixedBytes {
    fn null(&mut self) {
        self.builder.append_null();
    }

    fn value(&mut self, rest: &mut &[u8]) -> Result<()> {
        self.builder.append_value(take(rest, self.width)?).map_err(|_| damaged())
    }

    fn finish(&mut self) -> Result<ArrayRef> {
        Ok(Arc::new(self.builder.finish()))
    }
}

/// Reads lists and, as lists of entries, maps.
struct Lists {
    data_type: DataType,
    elements: Vec<Box<dyn Reader>>,
    offsets: Vec<i32>,
    end: usize,
    is_valid: Vec<bool>,
}

impl Lists {
    fn push(&mut self, is_valid: bool) -> Result<()> {
        self.offsets.push(i32::try_from(self.end).map_err(|_| Error::system("a batch has too many list elements"))?);
        self.is_valid.push(is_valid);
        Ok(())
    }
}

impl Reader for Lists {
    fn null(&mut self) {
        // The end has not moved, so it fits as it did.
        let _ = self.push(false);
    }

    fn value(&mut self, rest: &mut &[u8]) -> Result<()> {
        let length = take_length(rest)?;
        for _ in 0..length {
            for reader in &mut self.elements {
                read(&mut **reader, rest)?;
            }
        }
        self.end += length;
        self.push(true)
    }

    fn finish(&mut self) -> Result<ArrayRef> {
        let offsets = OffsetBuffer::new(std::mem::replace(&mut self.offsets, vec![0]).into());
        let nulls = Some(NullBuffer::from(std::mem::take(&mut self.is_valid))).filter(|nulls| nulls.null_count() > 0);
        let mut columns: Vec<ArrayRef> =
            self.elements.iter_mut().map(|reader| reader.finish()).collect::<Result<_>>()?;
        self.end = 0;
        let array: Result<ArrayRef, _> = match &self.data_type {
            DataType::Map(field, is_sorted) => {
                let DataType::Struct(fields) = field.data_type() else { return Err(unsupported(&self.data_type)) };
                let entries = StructArray::try_new(fields.clone(), columns, None).map_err(invalid)?;
                MapArray::try_new(Arc::clone(field), offsets, entries, nulls, *is_sorted).map(|map| Arc::new(map) as _)
            }
            DataType::List(field) => {
                let values = columns.swap_remove(0);
                ListArray::try_new(Arc::clone(field), offsets, values, nulls).map(|list| Arc::new(list) as _)
            }
            other => return Err(unsupported(other)),
        };
        array.map_err(invalid)
    }
}

struct Structs {
    fields: Fields,
    readers: Vec<Box<dyn Reader>>,
    is_valid: Vec<bool>,
}

impl Reader for Structs {
    fn null(&mut self) {
        self.readers.iter_mut().for_each(|reader| reader.null());
        self.is_valid.push(false);
    }

    fn value(&mut self, rest: &mut &[u8]) -> Result<()> {
        for reader in &mut self.readers {
            read(&mut **reader, rest)?;
        }
        self.is_valid.push(true);
        Ok(())
    }

    fn finish(&mut self) -> Result<ArrayRef> {
        let is_valid = std::mem::take(&mut self.is_valid);
        let rows = is_valid.len();
        let nulls = Some(NullBuffer::from(is_valid)).filter(|nulls| nulls.null_count() > 0);
        let columns: Vec<ArrayRef> = self.readers.iter_mut().map(|reader| reader.finish()).collect::<Result<_>>()?;
        if columns.is_empty() {
            return Ok(Arc::new(StructArray::new_empty_fields(rows, nulls)));
        }
        // A field that is never null by its type may have been filled with nulls where the whole row is null.
        StructArray::try_new(self.fields.clone(), columns, nulls).map(|array| Arc::new(array) as _).map_err(invalid)
    }
}

fn invalid(error: arrow::error::ArrowError) -> Error {
    Error::system(format!("rows in state do not fit their columns: {error}"))
}

fn fixed<T: ArrowPrimitiveType>(data_type: &DataType, from: fn(&[u8]) -> Option<T::Native>) -> Box<dyn Reader> {
    Box::new(Fixed::<T> { builder: PrimitiveBuilder::new().with_data_type(data_type.clone()), from })
}

macro_rules! number {
    ($native:ty) => {
        |bytes: &[u8]| bytes.try_into().ok().map(<$native>::from_le_bytes)
    };
}

fn reader_of(data_type: &DataType) -> Result<Box<dyn Reader>> {
    Ok(match data_type {
        DataType::Null => Box::new(Nulls(0)),
        DataType::Boolean => Box::new(BooleanBuilder::new()),
        DataType::Int8 => fixed::<Int8Type>(data_type, number!(i8)),
        DataType::Int16 => fixed::<Int16Type>(data_type, number!(i16)),
        DataType::Int32 => fixed::<Int32Type>(data_type, number!(i32)),
        DataType::Int64 => fixed::<Int64Type>(data_type, number!(i64)),
        DataType::UInt8 => fixed::<UInt8Type>(data_type, number!(u8)),
        DataType::UInt16 => fixed::<UInt16Type>(data_type, number!(u16)),
        DataType::UInt32 => fixed::<UInt32Type>(data_type, number!(u32)),
        DataType::UInt64 => fixed::<UInt64Type>(data_type, number!(u64)),
        DataType::Float32 => fixed::<Float32Type>(data_type, number!(f32)),
        DataType::Float64 => fixed::<Float64Type>(data_type, number!(f64)),
        DataType::Decimal128(..) => fixed::<Decimal128Type>(data_type, number!(i128)),
        DataType::Date32 => fixed::<Date32Type>(data_type, number!(i32)),
        DataType::Date64 => fixed::<Date64Type>(data_type, number!(i64)),
        DataType::Time32(TimeUnit::Second) => fixed::<Time32SecondType>(data_type, number!(i32)),
        DataType::Time32(_) => fixed::<Time32MillisecondType>(data_type, number!(i32)),
        DataType::Time64(TimeUnit::Microsecond) => fixed::<Time64MicrosecondType>(data_type, number!(i64)),
        DataType::Time64(_) => fixed::<Time64NanosecondType>(data_type, number!(i64)),
        DataType::Timestamp(TimeUnit::Second, _) => fixed::<TimestampSecondType>(data_type, number!(i64)),
        DataType::Timestamp(TimeUnit::Millisecond, _) => fixed::<TimestampMillisecondType>(data_type, number!(i64)),
        DataType::Timestamp(TimeUnit::Microsecond, _) => fixed::<TimestampMicrosecondType>(data_type, number!(i64)),
        DataType::Timestamp(TimeUnit::Nanosecond, _) => fixed::<TimestampNanosecondType>(data_type, number!(i64)),
        DataType::Duration(TimeUnit::Second) => fixed::<DurationSecondType>(data_type, number!(i64)),
        DataType::Duration(TimeUnit::Millisecond) => fixed::<DurationMillisecondType>(data_type, number!(i64)),
        DataType::Duration(TimeUnit::Microsecond) => fixed::<DurationMicrosecondType>(data_type, number!(i64)),
        DataType::Duration(TimeUnit::Nanosecond) => fixed::<DurationNanosecondType>(data_type, number!(i64)),
        DataType::Interval(IntervalUnit::YearMonth) => fixed::<IntervalYearMonthType>(data_type, number!(i32)),
        DataType::Interval(IntervalUnit::DayTime) => fixed::<IntervalDayTimeType>(data_type, |bytes| {
            let (days, milliseconds) = bytes.split_at_checked(4)?;
            let number = |bytes: &[u8]| bytes.try_into().ok().map(i32::from_le_bytes);
            Some(IntervalDayTimeType::make_value(number(days)?, number(milliseconds)?))
        }),
        DataType::Interval(IntervalUnit::MonthDayNano) => fixed::<IntervalMonthDayNanoType>(data_type, |bytes| {
            let months = bytes.get(..4)?.try_into().ok().map(i32::from_le_bytes)?;
            let days = bytes.get(4..8)?.try_into().ok().map(i32::from_le_bytes)?;
            let nanoseconds = bytes.get(8..)?.try_into().ok().map(i64::from_le_bytes)?;
            Some(IntervalMonthDayNanoType::make_value(months, days, nanoseconds))
        }),
        DataType::Utf8 => Box::new(StringBuilder::new()),
        DataType::Binary => Box::new(BinaryBuilder::new()),
        DataType::FixedSizeBinary(width) => {
            Box::new(FixedBytes { builder: FixedSizeBinaryBuilder::new(*width), width: *width as usize })
        }
        DataType::List(field) => lists(data_type, &[field.data_type()])?,
        DataType::Map(field, _) => match field.data_type() {
            DataType::Struct(fields) => {
                lists(data_type, &fields.iter().map(|field| field.data_type()).collect::<Vec<_>>())?
            }
            _ => return Err(unsupported(data_type)),
        },
        DataType::Struct(fields) => {
            let readers = fields.iter().map(|field| reader_of(field.data_type())).collect::<Result<_>>()?;
            Box::new(Structs { fields: fields.clone(), readers, is_valid: Vec::new() })
        }
        other => return Err(unsupported(other)),
    })
}

fn lists(data_type: &DataType, elements: &[&DataType]) -> Result<Box<dyn Reader>> {
    let elements = elements.iter().map(|element| reader_of(element)).collect::<Result<_>>()?;
    Ok(Box::new(Lists { data_type: data_type.clone(), elements, offsets: vec![0], end: 0, is_valid: Vec::new() }))
}
