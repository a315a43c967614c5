//! Values into columns: a builder for each type that a table can have.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryBuilder, BooleanBuilder, Date32Builder, Decimal128Builder, Float32Builder, Float64Builder,
    Int8Builder, Int16Builder, Int32Builder, Int64Builder, ListArray, MapArray, StringBuilder, StructArray,
    Time32MillisecondBuilder, TimestampMicrosecondBuilder, TimestampMillisecondBuilder, TimestampNanosecondBuilder,
    TimestampSecondBuilder,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::{DataType, FieldRef, Fields, SchemaRef, TimeUnit};
use arrow::error::ArrowError;
use flott_core::{Error, Result};

/// A column that is being filled.
#[derive(Debug)]
pub enum Column {
    /// BOOLEAN
    Boolean(BooleanBuilder),
    /// TINYINT
    Int8(Int8Builder),
    /// SMALLINT
    Int16(Int16Builder),
    /// INT
    Int32(Int32Builder),
    /// BIGINT
    Int64(Int64Builder),
    /// FLOAT
    Float32(Float32Builder),
    /// DOUBLE
    Float64(Float64Builder),
    /// DECIMAL, with precision and scale
    Decimal(Decimal128Builder, u8, i8),
    /// STRING
    Text(StringBuilder),
    /// BYTES
    Bytes(BinaryBuilder),
    /// DATE
    Date(Date32Builder),
    /// TIME, in milliseconds
    Time(Time32MillisecondBuilder),
    /// TIMESTAMP and TIMESTAMP_LTZ
    Timestamp(TimestampColumn),
    /// ARRAY
    List(Box<ListColumn>),
    /// MAP and MULTISET
    Map(Box<MapColumn>),
    /// ROW
    Row(RowColumn),
}

/// A column of timestamps.
#[derive(Debug)]
pub struct TimestampColumn {
    values: Timestamps,
    is_instant: bool,
}

#[derive(Debug)]
enum Timestamps {
    Second(TimestampSecondBuilder),
    Millisecond(TimestampMillisecondBuilder),
    Microsecond(TimestampMicrosecondBuilder),
    Nanosecond(TimestampNanosecondBuilder),
}

/// A column of arrays.
#[derive(Debug)]
pub struct ListColumn {
    field: FieldRef,
    /// Their elements.
    pub elements: Column,
    ends: Ends,
}

/// A column of maps.
#[derive(Debug)]
pub struct MapColumn {
    field: FieldRef,
    /// The keys of their entries.
    pub keys: Column,
    /// The values.
    pub values: Column,
    ends: Ends,
}

/// A column of rows.
#[derive(Debug)]
pub struct RowColumn {
    /// Their fields.
    pub fields: Fields,
    /// A column for each.
    pub columns: Vec<Column>,
    is_valid: Vec<bool>,
}

#[derive(Debug)]
struct Ends {
    offsets: Vec<i32>,
    is_valid: Vec<bool>,
}

impl Ends {
    fn new() -> Self {
        Self { offsets: vec![0], is_valid: Vec::new() }
    }

    fn push(&mut self, elements: usize, is_valid: bool) {
        // A chunk is cut long before it has so many elements.
        self.offsets.push(i32::try_from(elements).unwrap_or(i32::MAX));
        self.is_valid.push(is_valid);
    }

    fn finish(&mut self) -> (OffsetBuffer<i32>, Option<NullBuffer>) {
        let offsets = OffsetBuffer::new(std::mem::replace(&mut self.offsets, vec![0]).into());
        (offsets, nulls(&mut self.is_valid))
    }
}

fn nulls(is_valid: &mut Vec<bool>) -> Option<NullBuffer> {
    Some(NullBuffer::from(std::mem::take(is_valid))).filter(|nulls| nulls.null_count() > 0)
}

/// An empty column for each of a table.
pub fn columns_of(schema: &SchemaRef) -> Result<Vec<Column>> {
    schema.fields().iter().map(|field| Column::new(field.data_type())).collect()
}

impl Column {
    /// An empty column of a type.
    ///
    /// # Errors
    /// Tables have no columns of the type.
    pub fn new(data_type: &DataType) -> Result<Self> {
        Ok(match data_type {
            DataType::Boolean => Self::Boolean(BooleanBuilder::new()),
            DataType::Int8 => Self::Int8(Int8Builder::new()),
            DataType::Int16 => Self::Int16(Int16Builder::new()),
            DataType::Int32 => Self::Int32(Int32Builder::new()),
            DataType::Int64 => Self::Int64(Int64Builder::new()),
            DataType::Float32 => Self::Float32(Float32Builder::new()),
            DataType::Float64 => Self::Float64(Float64Builder::new()),
            DataType::Decimal128(precision, scale) => {
                Self::Decimal(Decimal128Builder::new().with_data_type(data_type.clone()), *precision, *scale)
            }
            DataType::Utf8 => Self::Text(StringBuilder::new()),
            DataType::Binary => Self::Bytes(BinaryBuilder::new()),
            DataType::Date32 => Self::Date(Date32Builder::new()),
            DataType::Time32(TimeUnit::Millisecond) => Self::Time(Time32MillisecondBuilder::new()),
            DataType::Timestamp(unit, zone) => {
                let with_type = data_type.clone();
                let values = match unit {
                    TimeUnit::Second => Timestamps::Second(TimestampSecondBuilder::new().with_data_type(with_type)),
                    TimeUnit::Millisecond => {
                        Timestamps::Millisecond(TimestampMillisecondBuilder::new().with_data_type(with_type))
                    }
                    TimeUnit::Microsecond => {
                        Timestamps::Microsecond(TimestampMicrosecondBuilder::new().with_data_type(with_type))
                    }
                    TimeUnit::Nanosecond => {
                        Timestamps::Nanosecond(TimestampNanosecondBuilder::new().with_data_type(with_type))
                    }
                };
                Self::Timestamp(TimestampColumn { values, is_instant: zone.is_some() })
            }
            DataType::List(field) => Self::List(Box::new(ListColumn {
                field: Arc::clone(field),
                elements: Self::new(field.data_type())?,
                ends: Ends::new(),
            })),
            DataType::Map(field, false) => {
                let DataType::Struct(entries) = field.data_type() else { return Err(unsupported(data_type)) };
                let [key, value] = &entries[..] else { return Err(unsupported(data_type)) };
                Self::Map(Box::new(MapColumn {
                    field: Arc::clone(field),
                    keys: Self::new(key.data_type())?,
                    values: Self::new(value.data_type())?,
                    ends: Ends::new(),
                }))
            }
            DataType::Struct(fields) => Self::Row(RowColumn {
                fields: fields.clone(),
                columns: fields.iter().map(|field| Self::new(field.data_type())).collect::<Result<_>>()?,
                is_valid: Vec::new(),
            }),
            other => return Err(unsupported(other)),
        })
    }

    /// Appends a null.
    pub fn push_null(&mut self) {
        match self {
            Self::Boolean(values) => values.append_null(),
            Self::Int8(values) => values.append_null(),
            Self::Int16(values) => values.append_null(),
            Self::Int32(values) => values.append_null(),
            Self::Int64(values) => values.append_null(),
            Self::Float32(values) => values.append_null(),
            Self::Float64(values) => values.append_null(),
            Self::Decimal(values, ..) => values.append_null(),
            Self::Text(values) => values.append_null(),
            Self::Bytes(values) => values.append_null(),
            Self::Date(values) => values.append_null(),
            Self::Time(values) => values.append_null(),
            Self::Timestamp(column) => match &mut column.values {
                Timestamps::Second(values) => values.append_null(),
                Timestamps::Millisecond(values) => values.append_null(),
                Timestamps::Microsecond(values) => values.append_null(),
                Timestamps::Nanosecond(values) => values.append_null(),
            },
            Self::List(list) => list.ends.push(list.elements.len(), false),
            Self::Map(map) => map.ends.push(map.keys.len(), false),
            Self::Row(row) => {
                row.columns.iter_mut().for_each(Self::push_null);
                row.is_valid.push(false);
            }
        }
    }

    /// How many values it has.
    pub fn len(&self) -> usize {
        use arrow::array::ArrayBuilder;
        match self {
            Self::Boolean(values) => values.len(),
            Self::Int8(values) => values.len(),
            Self::Int16(values) => values.len(),
            Self::Int32(values) => values.len(),
            Self::Int64(values) => values.len(),
            Self::Float32(values) => values.len(),
            Self::Float64(values) => values.len(),
            Self::Decimal(values, ..) => values.len(),
            Self::Text(values) => values.len(),
            Self::Bytes(values) => values.len(),
            Self::Date(values) => values.len(),
            Self::Time(values) => values.len(),
            Self::Timestamp(column) => match &column.values {
                Timestamps::Second(values) => values.len(),
                Timestamps::Millisecond(values) => values.len(),
                Timestamps::Microsecond(values) => values.len(),
                Timestamps::Nanosecond(values) => values.len(),
            },
            Self::List(list) => list.ends.is_valid.len(),
            Self::Map(map) => map.ends.is_valid.len(),
            Self::Row(row) => row.is_valid.len(),
        }
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The column as it was filled; it is empty again.
    pub fn finish(&mut self) -> Result<ArrayRef> {
        let array: Result<ArrayRef, ArrowError> = match self {
            Self::Boolean(values) => Ok(Arc::new(values.finish())),
            Self::Int8(values) => Ok(Arc::new(values.finish())),
            Self::Int16(values) => Ok(Arc::new(values.finish())),
            Self::Int32(values) => Ok(Arc::new(values.finish())),
            Self::Int64(values) => Ok(Arc::new(values.finish())),
            Self::Float32(values) => Ok(Arc::new(values.finish())),
            Self::Float64(values) => Ok(Arc::new(values.finish())),
            Self::Decimal(values, ..) => Ok(Arc::new(values.finish())),
            Self::Text(values) => Ok(Arc::new(values.finish())),
            Self::Bytes(values) => Ok(Arc::new(values.finish())),
            Self::Date(values) => Ok(Arc::new(values.finish())),
            Self::Time(values) => Ok(Arc::new(values.finish())),
            Self::Timestamp(column) => Ok(match &mut column.values {
                Timestamps::Second(values) => Arc::new(values.finish()) as ArrayRef,
                Timestamps::Millisecond(values) => Arc::new(values.finish()),
                Timestamps::Microsecond(values) => Arc::new(values.finish()),
                Timestamps::Nanosecond(values) => Arc::new(values.finish()),
            }),
            Self::List(list) => {
                let ((offsets, nulls), elements) = (list.ends.finish(), list.elements.finish()?);
                ListArray::try_new(Arc::clone(&list.field), offsets, elements, nulls).map(|array| Arc::new(array) as _)
            }
            Self::Map(map) => {
                let ((offsets, nulls), keys, values) = (map.ends.finish(), map.keys.finish()?, map.values.finish()?);
                let DataType::Struct(fields) = map.field.data_type() else {
                    return Err(unsupported(map.field.data_type()));
                };
                StructArray::try_new(fields.clone(), vec![keys, values], None)
                    .and_then(|entries| MapArray::try_new(Arc::clone(&map.field), offsets, entries, nulls, false))
                    .map(|array| Arc::new(array) as _)
            }
            Self::Row(row) => {
                let rows = row.is_valid.len();
                let columns: Vec<ArrayRef> = row.columns.iter_mut().map(Self::finish).collect::<Result<_>>()?;
                let nulls = nulls(&mut row.is_valid);
                if columns.is_empty() {
                    Ok(Arc::new(StructArray::new_empty_fields(rows, nulls)))
                } else {
                    StructArray::try_new(row.fields.clone(), columns, nulls).map(|array| Arc::new(array) as _)
                }
            }
        };
        array.map_err(|error| Error::input(format!("the values of a column do not fit its type: {error}")))
    }
}

impl TimestampColumn {
    /// Whether its values are instants (TIMESTAMP_LTZ).
    pub fn is_instant(&self) -> bool {
        self.is_instant
    }

    /// Appends a time, in nanoseconds since 1970: what is finer than the type is cut off. Whether it can hold it.
    #[must_use]
    pub fn push(&mut self, nanos: i128) -> bool {
        macro_rules! push {
            ($values:expr, $unit:expr) => {{
                // Few times are beyond an i64, and only they need the slow division.
                let value = match i64::try_from(nanos) {
                    Ok(nanos) => nanos.div_euclid($unit),
                    Err(_) => match i64::try_from(nanos.div_euclid($unit)) {
                        Ok(value) => value,
                        Err(_) => return false,
                    },
                };
                $values.append_value(value);
            }};
        }
        match &mut self.values {
            Timestamps::Second(values) => push!(values, 1_000_000_000),
            Timestamps::Millisecond(values) => push!(values, 1_000_000),
            Timestamps::Microsecond(values) => push!(values, 1000),
            Timestamps::Nanosecond(values) => push!(values, 1),
        }
        true
    }
}

impl ListColumn {
    /// Ends an array: its elements have been appended.
    pub fn end(&mut self) {
        self.ends.push(self.elements.len(), true);
    }
}

impl MapColumn {
    /// Ends a map: its keys and values have been appended.
    pub fn end(&mut self) {
        self.ends.push(self.keys.len(), true);
    }
}

impl RowColumn {
    /// Ends a row that is null after all: values may have been appended to some columns.
    pub fn end_null(&mut self) {
        for column in &mut self.columns {
            if column.len() <= self.is_valid.len() {
                column.push_null();
            }
        }
        self.is_valid.push(false);
    }

    /// Ends a row: a value has been appended to each column.
    pub fn end(&mut self) {
        self.is_valid.push(true);
    }
}

fn unsupported(data_type: &DataType) -> Error {
    Error::input(format!("a table cannot have columns of the type {data_type}"))
}
