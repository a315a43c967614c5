//! One column in the making, from entries in the codec's form.

use std::any::type_name;
use std::sync::Arc;

use arrow::array::{ArrayRef, LargeBinaryBuilder};
use arrow::datatypes::{DataType, FieldRef};
use flott_core::codec::Decoder;
use flott_core::{Data, Error, Result};
use serde_arrow::ArrayBuilder;

use super::arrays::Builder;
use super::layout::{Column, Form};
use super::rows::failed;

/// How a column is made.
pub(super) enum Writer {
    /// Straight from the bytes.
    Shape(Builder, DataType),
    /// From values, which show themselves in Arrow as something else than to the codec.
    Type(Box<ArrayBuilder>),
    /// The bytes as they are. Only the type knows how many they are.
    Bytes(LargeBinaryBuilder),
    /// Not at all.
    Absent,
}

impl Writer {
    /// A writer of a column; `field` is its Arrow field.
    pub(super) fn new(column: &Column, field: Option<&FieldRef>, is_by_shape: bool) -> Result<Self> {
        Ok(match (column.form, field) {
            (Form::Absent, _) | (_, None) => Self::Absent,
            (Form::Binary, Some(_)) => Self::Bytes(LargeBinaryBuilder::new()),
            (Form::Arrow, Some(field)) => match Builder::new(&column.shape).filter(|_| is_by_shape) {
                Some(builder) => Self::Shape(builder, field.data_type().clone()),
                None => {
                    let builder = ArrayBuilder::from_arrow(&[Arc::clone(field)]);
                    Self::Type(Box::new(builder.map_err(|error| failed("making columns", error))?))
                }
            },
        })
    }

    /// Takes the next value off the front of `rest`.
    #[inline]
    pub(super) fn push<T: Data>(&mut self, rest: &mut &[u8]) -> Result<()> {
        match self {
            Self::Shape(builder, _) => {
                builder.push(rest).map_err(|misfit| misfit.into_error(format_args!("reading {}", type_name::<T>())))
            }
            Self::Type(builder) => {
                let value: T = take(rest)?.0;
                builder.push(&(value,)).map_err(|error| failed(format_args!("{} in a row", type_name::<T>()), error))
            }
            Self::Bytes(builder) => {
                builder.append_value(take::<T>(rest)?.1);
                Ok(())
            }
            Self::Absent => take::<T>(rest).map(drop),
        }
    }

    /// The values that were taken, unless the column is absent.
    pub(super) fn finish(&mut self) -> Result<Option<ArrayRef>> {
        match self {
            Self::Shape(builder, kind) => {
                builder.finish(kind).map(Some).map_err(|error| failed("making columns", error))
            }
            Self::Type(builder) => {
                let mut arrays = builder.to_arrow().map_err(|error| failed("making columns", error))?;
                arrays.pop().map(Some).ok_or_else(|| Error::system("a column has no array"))
            }
            Self::Bytes(builder) => Ok(Some(Arc::new(builder.finish()))),
            Self::Absent => Ok(None),
        }
    }
}

/// Takes a value off the front of `rest`: as such, and its bytes.
pub(super) fn take<'a, T: Data>(rest: &mut &'a [u8]) -> Result<(T, &'a [u8])> {
    let mut decoder = Decoder::new(rest);
    let value = decoder.read()?;
    let (bytes, behind) = rest.split_at(rest.len() - decoder.remaining());
    *rest = behind;
    Ok((value, bytes))
}
