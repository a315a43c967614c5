//! Which Rust types are values of SQL, and how they are read from columns and written to them.

use std::marker::PhantomData;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, BinaryArray, BinaryBuilder, BooleanArray, BooleanBuilder, ListArray,
    PrimitiveArray, PrimitiveBuilder, StringArray, StringBuilder, UInt32Array,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute::take;
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Field, FieldRef, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, TimestampMillisecondType,
};
use flott_core::{Error, Result};
use flott_sql::types::array_of;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_arrow::utils::{Item, Items};
use serde_arrow::{ArrayBuilder, Deserializer};

use crate::shape::Shape;

/// A type whose values SQL has: `bool`, integers, floats, `String`, [`Bytes`], [`Date`], [`Timestamp`], [`TimestampLtz`],
/// [`Decimal`], a `Vec` of such, and with serde any struct as a [`Row`].
pub trait SqlValue: Sized + Send + 'static {
    /// A column that values are read from.
    type Column;
    /// A column that is being made.
    type Builder;

    /// What holds its values.
    ///
    /// # Errors
    /// SQL has no such type.
    fn data_type() -> Result<DataType>;

    /// A column of that type, ready to be read.
    ///
    /// # Errors
    /// The column is of another type.
    fn column(array: &ArrayRef) -> Result<Self::Column>;

    /// The value of a row, which is not NULL.
    ///
    /// # Errors
    /// The value has NULL in it where the type has none.
    fn get(column: &mut Self::Column, row: usize) -> Result<Self>;

    /// A column without rows.
    ///
    /// # Errors
    /// SQL has no such type.
    fn builder(rows: usize) -> Result<Self::Builder>;

    /// Adds a row.
    ///
    /// # Errors
    /// The value does not fit.
    fn append(builder: &mut Self::Builder, value: Option<Self>) -> Result<()>;

    /// The rows that were added.
    ///
    /// # Errors
    /// They are too many for a column.
    fn finish(builder: Self::Builder) -> Result<ArrayRef>;
}

/// A parameter of a function: a [`SqlValue`], or an `Option` of one. A call with NULL for one that is no `Option` is not
/// made: its result is NULL.
pub trait Argument: Sized + Send + 'static {
    /// The value's type.
    type Value: SqlValue;
    /// Whether the function is called with NULL.
    const TAKES_NULL: bool;

    /// The parameter of a value; none is NULL, for those that take it.
    ///
    /// # Errors
    /// It is NULL.
    fn of(value: Option<Self::Value>) -> Result<Self>;
}

/// What a function gives: a [`SqlValue`], an `Option` of one, or a `Result` of either.
pub trait Returned: Send + 'static {
    /// The value's type.
    type Value: SqlValue;

    /// The value; none is NULL.
    ///
    /// # Errors
    /// The function failed.
    fn value(self) -> Result<Option<Self::Value>>;
}

impl<T: SqlValue> Argument for Option<T> {
    type Value = T;
    const TAKES_NULL: bool = true;

    fn of(value: Option<T>) -> Result<Self> {
        Ok(value)
    }
}

/// That types are parameters and results.
macro_rules! parameters_and_results {
    ($([$($generics:tt)*] $type:ty;)*) => {$(
        impl<$($generics)*> Argument for $type {
            type Value = Self;
            const TAKES_NULL: bool = false;

            fn of(value: Option<Self>) -> Result<Self> {
                value.ok_or_else(|| Error::input("NULL is no value of a type that is no Option"))
            }
        }

        impl<$($generics)*> Returned for $type {
            type Value = Self;

            fn value(self) -> Result<Option<Self>> {
                Ok(Some(self))
            }
        }

        impl<$($generics)*> Returned for Option<$type> {
            type Value = $type;

            fn value(self) -> Result<Option<$type>> {
                Ok(self)
            }
        }

        impl<$($generics)*> Returned for Result<$type> {
            type Value = $type;

            fn value(self) -> Result<Option<$type>> {
                self.map(Some)
            }
        }

        impl<$($generics)*> Returned for Result<Option<$type>> {
            type Value = $type;

            fn value(self) -> Result<Option<$type>> {
                self
            }
        }
    )*};
}

parameters_and_results! {
    [] bool;
    [] i8;
    [] i16;
    [] i32;
    [] i64;
    [] f32;
    [] f64;
    [] String;
    [] Bytes;
    [] Date;
    [] Timestamp;
    [] TimestampLtz;
    [const P: u8, const S: i8] Decimal<P, S>;
    [T: Argument + Returned<Value = <T as Argument>::Value>] Vec<T>;
    [T: Serialize + DeserializeOwned + Send + 'static] Row<T>;
}

/// BYTES.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Bytes(pub Vec<u8>);

/// DATE: days since 1970.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Date(pub i32);

/// TIMESTAMP(3): milliseconds since 1970 of a clock without a time zone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub i64);

/// TIMESTAMP_LTZ(3): milliseconds since 1970 in UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimestampLtz(pub i64);

/// DECIMAL(P, S): the digits without the point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Decimal<const P: u8, const S: i8>(pub i128);

/// ROW: a struct or tuple whose fields serde knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Row<T>(pub T);

fn other_type(array: &ArrayRef) -> Error {
    Error::system(format!("a function was planned for other types: it got {}", array.data_type()))
}

/// Values that are numbers in Arrow.
macro_rules! primitives {
    ($([$($generics:tt)*] $type:ty, $arrow:ty, $of:expr, $wrap:expr, $unwrap:expr;)*) => {$(
        impl<$($generics)*> SqlValue for $type {
            type Column = PrimitiveArray<$arrow>;
            type Builder = PrimitiveBuilder<$arrow>;

            fn data_type() -> Result<DataType> {
                Ok($of)
            }

            fn column(array: &ArrayRef) -> Result<Self::Column> {
                array.as_primitive_opt::<$arrow>().cloned().ok_or_else(|| other_type(array))
            }

            #[inline]
            fn get(column: &mut Self::Column, row: usize) -> Result<Self> {
                let wrap: fn(<$arrow as ArrowPrimitiveType>::Native) -> Self = $wrap;
                Ok(wrap(column.value(row)))
            }

            fn builder(rows: usize) -> Result<Self::Builder> {
                Ok(PrimitiveBuilder::with_capacity(rows).with_data_type($of))
            }

            #[inline]
            fn append(builder: &mut Self::Builder, value: Option<Self>) -> Result<()> {
                let unwrap: fn(Self) -> <$arrow as ArrowPrimitiveType>::Native = $unwrap;
                builder.append_option(value.map(unwrap));
                Ok(())
            }

            fn finish(mut builder: Self::Builder) -> Result<ArrayRef> {
                Ok(Arc::new(builder.finish()))
            }
        }
    )*};
}

primitives! {
    [] i8, Int8Type, DataType::Int8, |value| value, |value| value;
    [] i16, Int16Type, DataType::Int16, |value| value, |value| value;
    [] i32, Int32Type, DataType::Int32, |value| value, |value| value;
    [] i64, Int64Type, DataType::Int64, |value| value, |value| value;
    [] f32, Float32Type, DataType::Float32, |value| value, |value| value;
    [] f64, Float64Type, DataType::Float64, |value| value, |value| value;
    [] Date, Date32Type, DataType::Date32, Self, |value| value.0;
    [] Timestamp, TimestampMillisecondType, DataType::Timestamp(arrow::datatypes::TimeUnit::Millisecond, None), Self, |value| value.0;
    [] TimestampLtz, TimestampMillisecondType, DataType::Timestamp(arrow::datatypes::TimeUnit::Millisecond, Some("UTC".into())), Self, |value| value.0;
    [const P: u8, const S: i8] Decimal<P, S>, Decimal128Type, DataType::Decimal128(P, S), Self, |value| value.0;
}

/// Values that have a builder of their own in Arrow.
macro_rules! others {
    ($($type:ty, $array:ty, $builder:ty, $of:expr, $make:expr, $get:expr, $bytes:expr;)*) => {$(
        impl SqlValue for $type {
            type Column = $array;
            type Builder = $builder;

            fn data_type() -> Result<DataType> {
                Ok($of)
            }

            fn column(array: &ArrayRef) -> Result<Self::Column> {
                array.as_any().downcast_ref::<$array>().cloned().ok_or_else(|| other_type(array))
            }

            #[inline]
            fn get(column: &mut Self::Column, row: usize) -> Result<Self> {
                let get: fn(&$array, usize) -> Self = $get;
                Ok(get(column, row))
            }

            fn builder(rows: usize) -> Result<Self::Builder> {
                let make: fn(usize) -> $builder = $make;
                Ok(make(rows))
            }

            #[inline]
            fn append(builder: &mut Self::Builder, value: Option<Self>) -> Result<()> {
                builder.append_option(value.map($bytes));
                Ok(())
            }

            fn finish(mut builder: Self::Builder) -> Result<ArrayRef> {
                Ok(Arc::new(builder.finish()))
            }
        }
    )*};
}

others! {
    bool, BooleanArray, BooleanBuilder, DataType::Boolean, BooleanBuilder::with_capacity, |array, row| array.value(row), |value| value;
    String, StringArray, StringBuilder, DataType::Utf8, |rows| StringBuilder::with_capacity(rows, rows * 16), |array, row| array.value(row).to_owned(), |value| value;
    Bytes, BinaryArray, BinaryBuilder, DataType::Binary, |rows| BinaryBuilder::with_capacity(rows, rows * 16), |array, row| Bytes(array.value(row).to_vec()), |value: Bytes| value.0;
}

/// The elements of arrays that are being made.
pub struct ListBuilder<T: SqlValue> {
    elements: T::Builder,
    length: usize,
    lengths: Vec<usize>,
    validity: Vec<bool>,
}

/// Arrays, and their elements.
pub struct ListColumn<T: SqlValue> {
    list: ListArray,
    elements: T::Column,
}

impl<T: Argument + Returned<Value = <T as Argument>::Value>> SqlValue for Vec<T> {
    type Column = ListColumn<<T as Argument>::Value>;
    type Builder = ListBuilder<<T as Argument>::Value>;

    fn data_type() -> Result<DataType> {
        Ok(array_of(Field::new("element", <T as Argument>::Value::data_type()?, true)))
    }

    fn column(array: &ArrayRef) -> Result<Self::Column> {
        let list = array.as_list_opt::<i32>().cloned().ok_or_else(|| other_type(array))?;
        let elements = <T as Argument>::Value::column(list.values())?;
        Ok(ListColumn { list, elements })
    }

    fn get(column: &mut Self::Column, row: usize) -> Result<Self> {
        let offsets = column.list.value_offsets();
        let (start, end) = (offsets[row] as usize, offsets[row + 1] as usize);
        let (values, elements) = (column.list.values(), &mut column.elements);
        let element = |at| match values.is_null(at) {
            true => None,
            false => Some(<T as Argument>::Value::get(elements, at)),
        };
        (start..end).map(element).map(|value| T::of(value.transpose()?)).collect()
    }

    fn builder(rows: usize) -> Result<Self::Builder> {
        Ok(ListBuilder {
            elements: <T as Argument>::Value::builder(rows)?,
            length: 0,
            lengths: Vec::with_capacity(rows),
            validity: Vec::with_capacity(rows),
        })
    }

    fn append(builder: &mut Self::Builder, value: Option<Self>) -> Result<()> {
        builder.validity.push(value.is_some());
        let before = builder.length;
        for element in value.into_iter().flatten() {
            <T as Argument>::Value::append(&mut builder.elements, element.value()?)?;
            builder.length += 1;
        }
        builder.lengths.push(builder.length - before);
        Ok(())
    }

    fn finish(builder: Self::Builder) -> Result<ArrayRef> {
        if i32::try_from(builder.length).is_err() {
            return Err(Error::input(format!(
                "a function gave arrays with {} elements at once, which are too many",
                builder.length
            )));
        }
        let DataType::List(element) = Self::data_type()? else { return Err(Error::system("an array is no list")) };
        let values = <T as Argument>::Value::finish(builder.elements)?;
        let offsets = OffsetBuffer::from_lengths(builder.lengths);
        let nulls = (!builder.validity.iter().all(|is_valid| *is_valid)).then(|| NullBuffer::from(builder.validity));
        let list = ListArray::try_new(element, offsets, values, nulls);
        Ok(Arc::new(list.map_err(|error| Error::system(format!("making an array: {error}")))?))
    }
}

/// Rows that are being made by serde.
pub struct RowBuilder<T> {
    builder: ArrayBuilder,
    /// Where each row is among those that serde has made, unless it is NULL.
    places: Vec<Option<u32>>,
    made: u32,
    type_of: PhantomData<T>,
}

fn row_field<T: DeserializeOwned>() -> Result<FieldRef> {
    Ok(Arc::new(Field::new("item", Shape::of::<T>()?.data_type()?, true)))
}

fn unfit<T>(error: &serde_arrow::Error) -> Error {
    Error::input(format!("a value of {}: {}", std::any::type_name::<T>(), error.message()))
}

/// Rows that serde reads, all at once.
pub struct RowColumn<T> {
    array: ArrayRef,
    values: Vec<Option<T>>,
}

/// The values of rows, none of which is NULL.
fn read_rows<T: DeserializeOwned>(rows: ArrayRef) -> Result<Vec<T>> {
    let field: FieldRef = Arc::new(Field::new("item", rows.data_type().clone(), false));
    let read = Deserializer::from_arrow(&[field], &[rows]).and_then(<Items<Vec<T>> as serde::Deserialize>::deserialize);
    read.map(|Items(values)| values).map_err(|error| unfit::<T>(&error))
}

impl<T: Serialize + DeserializeOwned + Send + 'static> SqlValue for Row<T> {
    type Column = RowColumn<T>;
    type Builder = RowBuilder<T>;

    fn data_type() -> Result<DataType> {
        Shape::of::<T>()?.data_type()
    }

    fn column(array: &ArrayRef) -> Result<Self::Column> {
        // Rows that are NULL are not read: serde would want a value of T for them.
        let valid: UInt32Array = (0..array.len() as u32).filter(|&row| array.is_valid(row as usize)).collect();
        let some = take(array, &valid, None).map_err(|error| Error::system(format!("taking rows: {error}")))?;
        let mut values: Vec<Option<T>> = (0..array.len()).map(|_| None).collect();
        for (row, value) in valid.values().iter().zip(read_rows(some)?) {
            values[*row as usize] = Some(value);
        }
        Ok(RowColumn { array: Arc::clone(array), values })
    }

    fn get(column: &mut Self::Column, row: usize) -> Result<Self> {
        let value = match column.values[row].take() {
            Some(value) => Some(value),
            // It was taken already, by a row that comes into a frame and leaves it again.
            None => read_rows(column.array.slice(row, 1))?.pop(),
        };
        value.map(Row).ok_or_else(|| Error::system("a row of a function's argument is not there"))
    }

    fn builder(rows: usize) -> Result<Self::Builder> {
        let builder = ArrayBuilder::from_arrow(&[row_field::<T>()?]).map_err(|error| unfit::<T>(&error))?;
        Ok(RowBuilder { builder, places: Vec::with_capacity(rows), made: 0, type_of: PhantomData })
    }

    fn append(builder: &mut Self::Builder, value: Option<Self>) -> Result<()> {
        let Some(Row(value)) = value else {
            builder.places.push(None);
            return Ok(());
        };
        builder.builder.push(Item(&value)).map_err(|error| unfit::<T>(&error))?;
        builder.places.push(Some(builder.made));
        builder.made += 1;
        Ok(())
    }

    fn finish(mut builder: Self::Builder) -> Result<ArrayRef> {
        let mut made = builder.builder.to_arrow().map_err(|error| unfit::<T>(&error))?;
        let made = made.pop().ok_or_else(|| Error::system("a row without columns"))?;
        if builder.places.iter().all(Option::is_some) {
            return Ok(made);
        }
        let places: UInt32Array = builder.places.into_iter().collect();
        take(&made, &places, None).map_err(|error| Error::system(format!("taking rows: {error}")))
    }
}
