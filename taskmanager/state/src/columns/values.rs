//! Values in the codec's form that another version of a type wrote: the old shape says what is in the bytes, and serde
//! finds its fields in there by their names, as it does in rows.
//!
//! The shape comes from a manifest, and the bytes from anywhere, so neither is believed: the depth of the recursion is that of
//! the text, and work is bounded by the bytes that there are.

use std::any::type_name;
use std::marker::PhantomData;

use flott_core::codec::Decoder;
use flott_core::{Data, Error, Result};
use serde::de::{self, DeserializeSeed, Deserializer, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;

use super::layout::{Layout, Plan};
use super::raw::{Misfit, array, boolean, bytes, no_variant, truncated, varint};
use super::shape::{Member, Shape, Variant};
use super::{Compatibility, evolution};

/// How many elements without any bytes there may be, as in the codec.
const ZERO_SIZED_ELEMENTS_MAX: u64 = 4096;

/// Reads the values of entries that were written under a schema as the type that they have now.
pub(crate) struct OldValues<V> {
    /// What was written, unless it is what `V` writes.
    shape: Option<Shape>,
    value: PhantomData<fn() -> V>,
}

impl<V: Data> OldValues<V> {
    /// A reader for `schema`, the text of the writer's [`StateColumns::schema`](super::StateColumns::schema). Keys and
    /// namespaces are as they were.
    ///
    /// # Errors
    /// The types cannot read such entries.
    pub(crate) fn new<K: Data, N: Data>(schema: &str) -> Result<Self> {
        let (old, plan) = (Layout::parse(schema)?, Plan::of::<K, N, V>());
        if let Compatibility::Refused(reason) = evolution::compare_entries(&old, &plan.layout) {
            return Err(Error::input(reason));
        }
        let [.., (_, now)] = plan.layout.columns();
        let [.., (_, old)] = old.columns();
        Ok(Self { shape: (old != now).then(|| old.bytes().clone()), value: PhantomData })
    }

    /// Reads the next value.
    pub(crate) fn read(&self, rest: &mut Decoder<'_>) -> Result<V> {
        let Some(shape) = &self.shape else { return rest.read() };
        let mut input = rest.clone().take(rest.remaining() as u64)?;
        let value = V::deserialize(Value { shape, input: &mut input }).map_err(|misfit| {
            misfit.into_error(format_args!("reading a value of another version of {}", type_name::<V>()))
        })?;
        rest.take((rest.remaining() - input.len()) as u64)?;
        Ok(value)
    }
}

/// The next value in some bytes.
struct Value<'s, 'i, 'de> {
    shape: &'s Shape,
    input: &'i mut &'de [u8],
}

impl<'de> Deserializer<'de> for Value<'_, '_, 'de> {
    type Error = Misfit;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        let Self { shape, input } = self;
        match shape {
            Shape::Boolean => visitor.visit_bool(boolean(input, "a bool")?),
            Shape::Int8 => visitor.visit_i8(i8::from_le_bytes(array(input)?)),
            Shape::Int16 => visitor.visit_i16(i16::from_le_bytes(array(input)?)),
            Shape::Int32 => visitor.visit_i32(i32::from_le_bytes(array(input)?)),
            Shape::Int64 => visitor.visit_i64(i64::from_le_bytes(array(input)?)),
            Shape::Int128 => visitor.visit_i128(i128::from_le_bytes(array(input)?)),
            Shape::UInt8 => visitor.visit_u8(u8::from_le_bytes(array(input)?)),
            Shape::UInt16 => visitor.visit_u16(u16::from_le_bytes(array(input)?)),
            Shape::UInt32 => visitor.visit_u32(u32::from_le_bytes(array(input)?)),
            Shape::UInt64 => visitor.visit_u64(u64::from_le_bytes(array(input)?)),
            Shape::UInt128 => visitor.visit_u128(u128::from_le_bytes(array(input)?)),
            Shape::Float32 => visitor.visit_f32(f32::from_le_bytes(array(input)?)),
            Shape::Float64 => visitor.visit_f64(f64::from_le_bytes(array(input)?)),
            Shape::Char => {
                let code = u32::from_le_bytes(array(input)?);
                visitor.visit_char(char::from_u32(code).ok_or_else(|| Misfit::new(format!("{code:#x} is not a char")))?)
            }
            Shape::Utf8 => {
                let text = std::str::from_utf8(bytes(input)?);
                visitor.visit_borrowed_str(text.map_err(|error| Misfit::new(format!("text is not UTF-8: {error}")))?)
            }
            Shape::Binary => visitor.visit_borrowed_bytes(bytes(input)?),
            Shape::Unit => visitor.visit_unit(),
            Shape::Option(inner) => match boolean(input, "the tag of an Option")? {
                false => visitor.visit_none(),
                true => visitor.visit_some(Value { shape: inner, input }),
            },
            Shape::List(element) => {
                let left = elements(input)?;
                Parts { kind: Kind::Equal(element, left), input }.visit(|parts| visitor.visit_seq(parts))
            }
            Shape::Array(element, length) => {
                Parts { kind: Kind::Equal(element, *length), input }.visit(|parts| visitor.visit_seq(parts))
            }
            Shape::Tuple(elements) => {
                Parts { kind: Kind::Tuple(elements), input }.visit(|parts| visitor.visit_seq(parts))
            }
            Shape::Map(key, value) => {
                let left = elements(input)?;
                Parts { kind: Kind::Map(key, value, left), input }.visit(|parts| visitor.visit_map(parts))
            }
            Shape::Struct(members) => {
                Parts { kind: Kind::Struct(members), input }.visit(|parts| visitor.visit_map(parts))
            }
            Shape::Enum(variants) => visitor.visit_enum(Choice { variant: variant(variants, input)?, input }),
            Shape::Unknown => Err(Misfit::new("what it looks like is not known")),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        match self.shape {
            Shape::Option(_) => self.deserialize_any(visitor),
            // It was required once.
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Misfit> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        skip(self.shape, self.input)?;
        visitor.visit_unit()
    }

    fn is_human_readable(&self) -> bool {
        false
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct enum identifier
    }
}

/// The number of elements that follow. Only if they have no bytes they may be more than there are bytes.
fn elements(input: &mut &[u8]) -> Result<usize, Misfit> {
    let length = varint(input)?;
    if length > (input.len() as u64).max(ZERO_SIZED_ELEMENTS_MAX) {
        return Err(truncated(length, input.len()));
    }
    Ok(length as usize)
}

fn variant<'s>(variants: &'s [Variant], input: &mut &[u8]) -> Result<&'s Variant, Misfit> {
    let index = varint(input)?;
    let found = usize::try_from(index).ok().and_then(|index| variants.get(index));
    found.ok_or_else(|| no_variant(index, variants.len()))
}

/// Passes over a value that nobody wants.
fn skip(shape: &Shape, input: &mut &[u8]) -> Result<(), Misfit> {
    match shape {
        Shape::Unit => Ok(()),
        Shape::Boolean | Shape::Int8 | Shape::UInt8 => array::<1>(input).map(drop),
        Shape::Int16 | Shape::UInt16 => array::<2>(input).map(drop),
        Shape::Int32 | Shape::UInt32 | Shape::Float32 | Shape::Char => array::<4>(input).map(drop),
        Shape::Int64 | Shape::UInt64 | Shape::Float64 => array::<8>(input).map(drop),
        Shape::Int128 | Shape::UInt128 => array::<16>(input).map(drop),
        Shape::Utf8 | Shape::Binary => bytes(input).map(drop),
        Shape::Option(inner) => match boolean(input, "the tag of an Option")? {
            false => Ok(()),
            true => skip(inner, input),
        },
        Shape::List(element) => skip_all(elements(input)?, input, |input| skip(element, input)),
        Shape::Array(element, length) => skip_all(*length, input, |input| skip(element, input)),
        Shape::Map(key, value) => skip_all(elements(input)?, input, |input| {
            skip(key, input)?;
            skip(value, input)
        }),
        Shape::Tuple(elements) => elements.iter().try_for_each(|element| skip(element, input)),
        Shape::Struct(members) => members.iter().try_for_each(|member| skip(&member.shape, input)),
        Shape::Enum(variants) => match &variant(variants, input)?.content {
            Some(content) => skip(content, input),
            None => Ok(()),
        },
        Shape::Unknown => Err(Misfit::new("what it looks like is not known")),
    }
}

fn skip_all(count: usize, input: &mut &[u8], one: impl Fn(&mut &[u8]) -> Result<(), Misfit>) -> Result<(), Misfit> {
    for _ in 0..count {
        let before = input.len();
        one(input)?;
        if input.len() == before {
            // What has no bytes never has any, however many there are said to be.
            return Ok(());
        }
    }
    Ok(())
}

/// The parts of a value that are still to be read.
struct Parts<'s, 'i, 'de> {
    kind: Kind<'s>,
    input: &'i mut &'de [u8],
}

#[derive(Clone, Copy)]
enum Kind<'s> {
    Equal(&'s Shape, usize),
    Tuple(&'s [Shape]),
    Map(&'s Shape, &'s Shape, usize),
    Struct(&'s [Member]),
}

impl Kind<'_> {
    fn left(&self) -> usize {
        match self {
            Self::Equal(_, left) | Self::Map(_, _, left) => *left,
            Self::Tuple(elements) => elements.len(),
            Self::Struct(members) => members.len(),
        }
    }
}

impl Parts<'_, '_, '_> {
    fn visit<T>(mut self, visit: impl FnOnce(&mut Self) -> Result<T, Misfit>) -> Result<T, Misfit> {
        let value = visit(&mut self)?;
        match self.kind.left() {
            0 => Ok(value),
            left => Err(Misfit::new(format!("{left} elements more than the type takes"))),
        }
    }
}

impl<'de> de::SeqAccess<'de> for Parts<'_, '_, 'de> {
    type Error = Misfit;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Misfit> {
        let shape = match &mut self.kind {
            Kind::Equal(shape, left @ 1..) => {
                *left -= 1;
                *shape
            }
            Kind::Tuple(elements) => {
                let Some((shape, others)) = elements.split_first() else { return Ok(None) };
                *elements = others;
                shape
            }
            _ => return Ok(None),
        };
        seed.deserialize(Value { shape, input: self.input }).map(Some)
    }
}

impl<'de> de::MapAccess<'de> for Parts<'_, '_, 'de> {
    type Error = Misfit;

    fn next_key_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Misfit> {
        match &self.kind {
            Kind::Map(shape, _, 1..) => seed.deserialize(Value { shape, input: self.input }).map(Some),
            Kind::Struct([member, ..]) => {
                let name: de::value::StrDeserializer<'_, Misfit> = member.name.as_str().into_deserializer();
                seed.deserialize(name).map(Some)
            }
            _ => Ok(None),
        }
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, Misfit> {
        let shape = match &mut self.kind {
            Kind::Map(_, shape, left @ 1..) => {
                *left -= 1;
                *shape
            }
            Kind::Struct(members) => {
                let Some((member, others)) = members.split_first() else { return Err(Misfit::new("no field is left")) };
                *members = others;
                &member.shape
            }
            _ => return Err(Misfit::new("no entry is left")),
        };
        seed.deserialize(Value { shape, input: self.input })
    }
}

/// A variant, and its content.
struct Choice<'s, 'i, 'de> {
    variant: &'s Variant,
    input: &'i mut &'de [u8],
}

impl<'s, 'i, 'de> Choice<'s, 'i, 'de> {
    fn content(self) -> Value<'s, 'i, 'de> {
        Value { shape: self.variant.content.as_ref().unwrap_or(&Shape::Unit), input: self.input }
    }
}

impl<'de> de::EnumAccess<'de> for Choice<'_, '_, 'de> {
    type Error = Misfit;
    type Variant = Self;

    fn variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<(T::Value, Self), Misfit> {
        let name: de::value::StrDeserializer<'_, Misfit> = self.variant.name.as_str().into_deserializer();
        Ok((seed.deserialize(name)?, self))
    }
}

impl<'de> de::VariantAccess<'de> for Choice<'_, '_, 'de> {
    type Error = Misfit;

    fn unit_variant(self) -> Result<(), Misfit> {
        let Value { shape, input } = self.content();
        skip(shape, input)
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Misfit> {
        seed.deserialize(self.content())
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Misfit> {
        self.content().deserialize_any(visitor)
    }

    fn struct_variant<V: Visitor<'de>>(self, _: &'static [&'static str], visitor: V) -> Result<V::Value, Misfit> {
        self.content().deserialize_any(visitor)
    }
}
