//! The arguments of a batch, in one of a few forms.

use arrow::array::{Array, ArrayRef, AsArray, BinaryArray, BooleanArray, Decimal128Array, Int64Array};
use arrow::array::{Float32Array, Float64Array, RecordBatch};
use arrow::buffer::NullBuffer;
use arrow::compute::cast;
use arrow::datatypes::{DataType, Decimal128Type, Float32Type, Float64Type, Int32Type, Int64Type, TimeUnit};
use flott_core::{Error, Result};

use crate::row::{EncodedRows, RowEncoder};

/// In which form an aggregate wants its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Only whether they are null.
    Validity,
    /// As integers, whatever integers they stand for.
    Ints,
    /// As FLOAT.
    Floats,
    /// As DOUBLE.
    Doubles,
    /// As DOUBLE, with how often each counts.
    Weighted,
    /// As decimals, without their scale.
    Decimals,
    /// As the bytes of a text or of bytes.
    Blobs,
    /// As the bytes of rows of them.
    Rows,
    /// As they are.
    Columns,
}

impl Form {
    /// The form in which values of a type compare and add up.
    pub(super) fn of(data_type: &DataType) -> Option<Self> {
        Some(match data_type {
            DataType::Boolean
            | DataType::Int8
            | DataType::Int16
            | DataType::Int32
            | DataType::Int64
            | DataType::Date32
            | DataType::Time32(_)
            | DataType::Time64(_)
            | DataType::Timestamp(..)
            | DataType::Duration(_) => Self::Ints,
            DataType::Float32 => Self::Floats,
            DataType::Float64 => Self::Doubles,
            DataType::Decimal128(..) => Self::Decimals,
            DataType::Utf8 | DataType::Binary => Self::Blobs,
            _ => return None,
        })
    }
}

/// Arguments of several aggregates that want the same.
#[derive(Debug)]
pub(super) struct Argument {
    pub(super) columns: Vec<usize>,
    pub(super) form: Form,
    /// For [`Form::Rows`].
    pub(super) encoder: Option<RowEncoder>,
}

/// The values of an argument.
#[derive(Debug)]
pub(super) enum Values {
    Validity(Option<NullBuffer>),
    Ints(Int64Array),
    Floats(Float32Array),
    Doubles(Float64Array),
    Weighted(Float64Array, Int64Array),
    Decimals(Decimal128Array),
    Blobs(BinaryArray),
    /// With whether all columns of a row are there.
    Rows(EncodedRows, Option<NullBuffer>),
    Columns(Vec<ArrayRef>),
}

/// A batch whose arguments have been resolved. See [`super::Aggregates::bind`].
#[derive(Debug)]
pub struct Bound {
    /// The number of rows.
    pub rows: usize,
    pub(super) values: Vec<Values>,
    /// For each filter, whether it lets each row through.
    pub(super) filters: Vec<Vec<bool>>,
}

impl Argument {
    /// Its values in a batch.
    pub(super) fn resolve(&self, columns: &[ArrayRef], rows: usize) -> Result<Values> {
        let nulls = || {
            self.columns.iter().fold(None, |nulls: Option<NullBuffer>, column| {
                NullBuffer::union(nulls.as_ref(), columns[*column].logical_nulls().as_ref())
            })
        };
        let column = || self.columns.first().map(|column| &columns[*column]).ok_or_else(no_column);
        Ok(match self.form {
            Form::Validity => Values::Validity(nulls()),
            Form::Ints => Values::Ints(ints(column()?)?),
            Form::Floats => Values::Floats(column()?.as_primitive_opt::<Float32Type>().ok_or_else(no_column)?.clone()),
            Form::Doubles => Values::Doubles(doubles(column()?)?),
            Form::Weighted => {
                let times = self.columns.get(1).map(|column| &columns[*column]).ok_or_else(no_column)?;
                Values::Weighted(doubles(column()?)?, ints(times)?)
            }
            Form::Decimals => {
                Values::Decimals(column()?.as_primitive_opt::<Decimal128Type>().ok_or_else(no_column)?.clone())
            }
            Form::Blobs => Values::Blobs(match column()?.data_type() {
                DataType::Utf8 => column()?.as_string::<i32>().clone().into(),
                DataType::Binary => column()?.as_binary::<i32>().clone(),
                _ => return Err(no_column()),
            }),
            Form::Columns => {
                Values::Columns(self.columns.iter().map(|column| ArrayRef::clone(&columns[*column])).collect())
            }
            Form::Rows => {
                let mut encoded = EncodedRows::default();
                let chosen: Vec<ArrayRef> =
                    self.columns.iter().map(|column| ArrayRef::clone(&columns[*column])).collect();
                let encoder = self.encoder.as_ref().ok_or_else(no_column)?;
                encoder.encode(&chosen, rows, &mut encoded)?;
                Values::Rows(encoded, nulls())
            }
        })
    }
}

fn no_column() -> Error {
    Error::system("an aggregate's argument is not of the type that it was planned with")
}

/// Numbers, truth values and times as integers.
fn ints(column: &ArrayRef) -> Result<Int64Array> {
    let failed = |error| Error::system(format!("an aggregate's argument: {error}"));
    let wide = match column.data_type() {
        DataType::Int64 => return Ok(column.as_primitive::<Int64Type>().clone()),
        // There is no way from these to BIGINT but by INT.
        DataType::Date32 | DataType::Time32(TimeUnit::Second | TimeUnit::Millisecond) => {
            let narrow = cast(column, &DataType::Int32).map_err(failed)?;
            let narrow = narrow.as_primitive::<Int32Type>();
            return Ok(narrow.unary::<_, Int64Type>(i64::from));
        }
        _ => cast(column, &DataType::Int64).map_err(failed)?,
    };
    wide.as_primitive_opt::<Int64Type>().cloned().ok_or_else(no_column)
}

/// Numbers as DOUBLE.
fn doubles(column: &ArrayRef) -> Result<Float64Array> {
    let wide =
        cast(column, &DataType::Float64).map_err(|error| Error::system(format!("an aggregate's argument: {error}")))?;
    wide.as_primitive_opt::<Float64Type>().cloned().ok_or_else(no_column)
}

/// For which rows a condition is true; null is false.
pub(super) fn filter_of(batch: &RecordBatch, column: usize) -> Result<Vec<bool>> {
    let condition: &BooleanArray = batch.column(column).as_boolean_opt().ok_or_else(|| {
        Error::system(format!("a FILTER is of the type {}, not BOOLEAN", batch.column(column).data_type()))
    })?;
    Ok((0..condition.len()).map(|row| condition.is_valid(row) && condition.value(row)).collect())
}
