//! Arrow arrays straight from bytes of [`flott_core::codec`], as a shape says that they are: no value of the user's type is
//! built in between.
//!
//! Bytes of a shape that has an Arrow form are at least one for each element, so that lengths are bounded by what is there,
//! and the depth of the recursion is that of the shape.

use std::mem;
use std::sync::Arc;

use arrow::array::{
    ArrayData, ArrayRef, BooleanArray, LargeBinaryArray, LargeListArray, LargeStringArray, MapArray, StructArray,
    make_array,
};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer};
use arrow::datatypes::{DataType, Field};
use arrow::error::ArrowError;

use super::raw::{Misfit, array, boolean, bytes, length, no_variant, varint};
use super::shape::Shape;

/// An array in the making, of values that are read one after another.
pub(super) struct Builder {
    /// Which of them are there, of an `Option`.
    presence: Option<Vec<bool>>,
    content: Content,
}

/// The values, in memory as Arrow has them. Numbers of one width have one form, whatever they mean.
enum Content {
    Boolean(Vec<bool>),
    Byte(Vec<u8>),
    Two(Vec<u16>),
    Four(Vec<u32>),
    Eight(Vec<u64>),
    Char(Vec<u32>),
    Bytes(Bytes),
    /// The name of a variant for its number.
    Names(Vec<String>, Bytes),
    List(Box<Builder>, Vec<i64>),
    Array(Box<Builder>, usize, Vec<i64>),
    Map(Box<[Builder; 2]>, Vec<i32>),
    Struct(Vec<Builder>, usize),
}

/// Values of any length, one behind the other, and where each ends.
struct Bytes {
    ends: Vec<i64>,
    bytes: Vec<u8>,
}

impl Bytes {
    fn new() -> Self {
        Self { ends: vec![0], bytes: Vec::new() }
    }

    #[inline]
    fn push(&mut self, value: &[u8]) {
        self.bytes.extend_from_slice(value);
        self.ends.push(self.bytes.len() as i64);
    }

    fn take(&mut self) -> (OffsetBuffer<i64>, Buffer) {
        let bytes = Vec::with_capacity(self.bytes.len());
        (offsets(&mut self.ends), Buffer::from_vec(mem::replace(&mut self.bytes, bytes)))
    }
}

impl Builder {
    /// A builder of the field's type, which is that of the shape.
    pub(super) fn new(shape: &Shape) -> Option<Self> {
        match shape {
            Shape::Option(inner) => {
                let Self { presence: None, content } = Self::new(inner)? else { return None };
                Some(Self { presence: Some(Vec::new()), content })
            }
            _ => Some(Self { presence: None, content: Content::new(shape)? }),
        }
    }

    /// Reads the next value.
    #[inline]
    pub(super) fn push(&mut self, input: &mut &[u8]) -> Result<(), Misfit> {
        if let Some(presence) = &mut self.presence {
            let is_there = boolean(input, "the tag of an Option")?;
            presence.push(is_there);
            if !is_there {
                self.content.push_nothing();
                return Ok(());
            }
        }
        self.content.push(input)
    }

    /// A value that does not count.
    fn push_nothing(&mut self) {
        if let Some(presence) = &mut self.presence {
            presence.push(false);
        }
        self.content.push_nothing();
    }

    /// The values that were read, as an array of this type. The builder is empty then.
    pub(super) fn finish(&mut self, kind: &DataType) -> Result<ArrayRef, ArrowError> {
        let nulls = self.presence.as_mut().map(|presence| NullBuffer::new(bits(presence)));
        self.content.finish(kind, nulls.filter(|nulls| nulls.null_count() > 0))
    }
}

impl Content {
    fn new(shape: &Shape) -> Option<Self> {
        Some(match shape {
            Shape::Boolean => Self::Boolean(Vec::new()),
            Shape::Int8 | Shape::UInt8 => Self::Byte(Vec::new()),
            Shape::Int16 | Shape::UInt16 => Self::Two(Vec::new()),
            Shape::Int32 | Shape::UInt32 | Shape::Float32 => Self::Four(Vec::new()),
            Shape::Int64 | Shape::UInt64 | Shape::Float64 => Self::Eight(Vec::new()),
            Shape::Char => Self::Char(Vec::new()),
            Shape::Utf8 | Shape::Binary => Self::Bytes(Bytes::new()),
            Shape::List(element) if **element == Shape::UInt8 => Self::Bytes(Bytes::new()),
            Shape::List(element) => Self::List(Box::new(Builder::new(element)?), vec![0]),
            Shape::Array(element, length) => Self::Array(Box::new(Builder::new(element)?), *length, vec![0]),
            Shape::Map(key, value) => Self::Map(Box::new([Builder::new(key)?, Builder::new(value)?]), vec![0]),
            Shape::Tuple(elements) => Self::fields(elements.iter())?,
            Shape::Struct(members) => Self::fields(members.iter().map(|member| &member.shape))?,
            Shape::Enum(variants) if variants.iter().all(|variant| variant.content.is_none()) => {
                Self::Names(variants.iter().map(|variant| variant.name.clone()).collect(), Bytes::new())
            }
            Shape::Int128 | Shape::UInt128 | Shape::Unit | Shape::Option(_) | Shape::Enum(_) | Shape::Unknown => {
                return None;
            }
        })
    }

    fn fields<'a>(shapes: impl Iterator<Item = &'a Shape>) -> Option<Self> {
        Some(Self::Struct(shapes.map(Builder::new).collect::<Option<_>>()?, 0))
    }

    #[inline]
    fn push(&mut self, input: &mut &[u8]) -> Result<(), Misfit> {
        match self {
            Self::Boolean(values) => values.push(boolean(input, "a bool")?),
            Self::Byte(values) => values.push(u8::from_le_bytes(array(input)?)),
            Self::Two(values) => values.push(u16::from_le_bytes(array(input)?)),
            Self::Four(values) => values.push(u32::from_le_bytes(array(input)?)),
            Self::Eight(values) => values.push(u64::from_le_bytes(array(input)?)),
            Self::Char(values) => {
                let code = u32::from_le_bytes(array(input)?);
                if char::from_u32(code).is_none() {
                    return Err(Misfit::new(format!("{code:#x} is not a char")));
                }
                values.push(code);
            }
            Self::Bytes(values) => values.push(bytes(input)?),
            Self::Names(names, values) => {
                let index = varint(input)?;
                let name = usize::try_from(index).ok().and_then(|index| names.get(index));
                values.push(name.ok_or_else(|| no_variant(index, names.len()))?.as_bytes());
            }
            Self::List(element, ends) => {
                let length = length(input)?;
                for _ in 0..length {
                    element.push(input)?;
                }
                ends.push(ends[ends.len() - 1] + length as i64);
            }
            Self::Array(element, length, ends) => {
                for _ in 0..*length {
                    element.push(input)?;
                }
                ends.push(ends[ends.len() - 1] + *length as i64);
            }
            Self::Map(entry, ends) => {
                let length = length(input)?;
                for _ in 0..length {
                    entry[0].push(input)?;
                    entry[1].push(input)?;
                }
                let end = i64::from(ends[ends.len() - 1]) + length as i64;
                let end = i32::try_from(end).map_err(|_| Misfit::new("maps of more than 2,147,483,647 entries"))?;
                ends.push(end);
            }
            Self::Struct(fields, rows) => {
                for field in fields {
                    field.push(input)?;
                }
                *rows += 1;
            }
        }
        Ok(())
    }

    fn push_nothing(&mut self) {
        match self {
            Self::Boolean(values) => values.push(false),
            Self::Byte(values) => values.push(0),
            Self::Two(values) => values.push(0),
            Self::Four(values) | Self::Char(values) => values.push(0),
            Self::Eight(values) => values.push(0),
            Self::Bytes(values) | Self::Names(_, values) => values.push(&[]),
            Self::List(_, ends) | Self::Array(_, _, ends) => ends.push(ends[ends.len() - 1]),
            Self::Map(_, ends) => ends.push(ends[ends.len() - 1]),
            Self::Struct(fields, rows) => {
                fields.iter_mut().for_each(Builder::push_nothing);
                *rows += 1;
            }
        }
    }

    fn finish(&mut self, kind: &DataType, nulls: Option<NullBuffer>) -> Result<ArrayRef, ArrowError> {
        Ok(match self {
            Self::Boolean(values) => Arc::new(BooleanArray::new(bits(values), nulls)),
            Self::Byte(values) => numbers(kind, values, nulls)?,
            Self::Two(values) => numbers(kind, values, nulls)?,
            Self::Four(values) | Self::Char(values) => numbers(kind, values, nulls)?,
            Self::Eight(values) => numbers(kind, values, nulls)?,
            Self::Bytes(values) | Self::Names(_, values) => {
                let (ends, values) = values.take();
                match kind {
                    // Text is looked at as a whole, here.
                    DataType::LargeUtf8 => Arc::new(LargeStringArray::try_new(ends, values, nulls)?),
                    DataType::LargeBinary => Arc::new(LargeBinaryArray::try_new(ends, values, nulls)?),
                    _ => return Err(other_type(kind)),
                }
            }
            Self::List(element, ends) | Self::Array(element, _, ends) => {
                let DataType::LargeList(field) = kind else { return Err(other_type(kind)) };
                let elements = element.finish(field.data_type())?;
                Arc::new(LargeListArray::try_new(Arc::clone(field), offsets(ends), elements, nulls)?)
            }
            Self::Map(entry, ends) => {
                let DataType::Map(field, false) = kind else { return Err(other_type(kind)) };
                let entries = structure(field.data_type(), &mut entry[..], None, offsets_end(ends))?;
                Arc::new(MapArray::try_new(Arc::clone(field), offsets(ends), entries, nulls, false)?)
            }
            Self::Struct(fields, rows) => Arc::new(structure(kind, fields, nulls, mem::take(rows))?),
        })
    }
}

fn structure(
    kind: &DataType,
    parts: &mut [Builder],
    nulls: Option<NullBuffer>,
    rows: usize,
) -> Result<StructArray, ArrowError> {
    let DataType::Struct(fields) = kind else { return Err(other_type(kind)) };
    let part = |(part, field): (&mut Builder, &Arc<Field>)| part.finish(field.data_type());
    let arrays = parts.iter_mut().zip(fields).map(part).collect::<Result<_, _>>()?;
    StructArray::try_new_with_length(fields.clone(), arrays, nulls, rows)
}

fn numbers<T: arrow::datatypes::ArrowNativeType>(
    kind: &DataType,
    values: &mut Vec<T>,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef, ArrowError> {
    if kind.primitive_width() != Some(size_of::<T>()) {
        return Err(other_type(kind));
    }
    let length = values.len();
    let values = Buffer::from_vec(mem::replace(values, Vec::with_capacity(length)));
    Ok(make_array(ArrayData::builder(kind.clone()).len(length).add_buffer(values).nulls(nulls).build()?))
}

fn bits(values: &mut Vec<bool>) -> BooleanBuffer {
    let bits = BooleanBuffer::from(&values[..]);
    values.clear();
    bits
}

fn offsets_end(ends: &[i32]) -> usize {
    ends.last().map_or(0, |&end| end as usize)
}

/// Takes ends that begin with zero and do not get smaller.
fn offsets<T: arrow::array::OffsetSizeTrait>(ends: &mut Vec<T>) -> OffsetBuffer<T> {
    let mut next = Vec::with_capacity(ends.len());
    next.push(T::zero());
    OffsetBuffer::new(mem::replace(ends, next).into())
}

fn other_type(kind: &DataType) -> ArrowError {
    ArrowError::SchemaError(format!("a column of the type {kind} is made of another shape"))
}
