//! Reads values in the form that [`codec`](super) describes, from bytes that nobody vouches for.

use serde::de::{self, DeserializeSeed, IntoDeserializer, Visitor};

use super::{Failure, ZERO_SIZED_ELEMENTS_MAX, deeper};

/// Reads one value off the front of `input`.
pub(super) struct Deserializer<'i, 'de> {
    input: &'i mut &'de [u8],
    depth: u32,
}

impl<'i, 'de> Deserializer<'i, 'de> {
    #[inline]
    pub(super) fn new(input: &'i mut &'de [u8]) -> Self {
        Self { input, depth: 0 }
    }

    /// A deserializer of the next field.
    #[inline]
    fn field(&mut self) -> Deserializer<'_, 'de> {
        Deserializer { input: self.input, depth: self.depth }
    }

    #[inline]
    fn nested(self) -> Result<Self, Failure> {
        Ok(Self { depth: deeper(self.depth)?, input: self.input })
    }

    #[inline]
    fn array<const N: usize>(&mut self) -> Result<[u8; N], Failure> {
        let input = *self.input;
        match input.split_first_chunk::<N>() {
            Some((head, rest)) => {
                *self.input = rest;
                Ok(*head)
            }
            None => Err(truncated(N as u64, input.len())),
        }
    }

    #[inline]
    fn varint(&mut self) -> Result<u64, Failure> {
        let input = *self.input;
        match input.split_first() {
            Some((&byte, rest)) if byte < 0x80 => {
                *self.input = rest;
                Ok(byte.into())
            }
            _ => self.long_varint(),
        }
    }

    fn long_varint(&mut self) -> Result<u64, Failure> {
        let mut value = 0;
        for shift in (0..u64::BITS).step_by(7) {
            let [byte] = self.array()?;
            if shift == 63 && byte > 1 {
                break;
            }
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Failure::damaged("a length or variant has more than 64 bits"))
    }

    /// A length and that many bytes, which are borrowed and not copied.
    #[inline]
    fn bytes(&mut self) -> Result<&'de [u8], Failure> {
        let length = self.varint()?;
        let input = *self.input;
        match usize::try_from(length).ok().and_then(|length| input.split_at_checked(length)) {
            Some((head, rest)) => {
                *self.input = rest;
                Ok(head)
            }
            None => Err(truncated(length, input.len())),
        }
    }

    #[inline]
    fn str(&mut self) -> Result<&'de str, Failure> {
        std::str::from_utf8(self.bytes()?).map_err(|error| Failure::damaged(format!("text is not UTF-8: {error}")))
    }

    /// The elements that follow, after their number.
    #[inline]
    fn elements(self) -> Result<Elements<'i, 'de>, Failure> {
        let mut inner = self.nested()?;
        let length = inner.varint()?;
        let remaining = inner.input.len();
        // More elements than bytes are only possible if they have none.
        let zero_sized = length > remaining as u64;
        if zero_sized && length > ZERO_SIZED_ELEMENTS_MAX as u64 {
            return Err(truncated(length, remaining));
        }
        Ok(Elements { inner, left: length as usize, must_remain: zero_sized.then_some(remaining) })
    }

    /// The fields of a tuple or struct, whose number the type knows.
    #[inline]
    fn fields(self, count: usize) -> Elements<'i, 'de> {
        Elements { inner: self, left: count, must_remain: None }
    }
}

#[cold]
fn truncated(needed: u64, remaining: usize) -> Failure {
    Failure::damaged(format!("needs {needed} more bytes or elements, and {remaining} bytes are left"))
}

macro_rules! little_endian {
    ($($method:ident $visit:ident $type:ty),*) => {$(
        #[inline]
        fn $method<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Failure> {
            visitor.$visit(<$type>::from_le_bytes(self.array()?))
        }
    )*};
}

macro_rules! refused {
    ($($method:ident),*) => {$(
        fn $method<V: Visitor<'de>>(self, _visitor: V) -> Result<V::Value, Failure> {
            Err(Failure::unsupported(
                "the binary form does not describe itself, so untagged enums, internally tagged enums, #[serde(flatten)] and serde_json::Value cannot be read from it: use a plain struct or enum, or keep such a value as a String of JSON",
            ))
        }
    )*};
}

impl<'de> de::Deserializer<'de> for Deserializer<'_, 'de> {
    type Error = Failure;

    little_endian! {
        deserialize_i8 visit_i8 i8, deserialize_i16 visit_i16 i16, deserialize_i32 visit_i32 i32,
        deserialize_i64 visit_i64 i64, deserialize_i128 visit_i128 i128,
        deserialize_u8 visit_u8 u8, deserialize_u16 visit_u16 u16, deserialize_u32 visit_u32 u32,
        deserialize_u64 visit_u64 u64, deserialize_u128 visit_u128 u128,
        deserialize_f32 visit_f32 f32, deserialize_f64 visit_f64 f64
    }

    refused! { deserialize_any, deserialize_identifier, deserialize_ignored_any }

    #[inline]
    fn deserialize_bool<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Failure> {
        match self.array()? {
            [0] => visitor.visit_bool(false),
            [1] => visitor.visit_bool(true),
            [byte] => Err(Failure::damaged(format!("{byte} is not a bool"))),
        }
    }

    #[inline]
    fn deserialize_char<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Failure> {
        let code = u32::from_le_bytes(self.array()?);
        match char::from_u32(code) {
            Some(char) => visitor.visit_char(char),
            None => Err(Failure::damaged(format!("{code:#x} is not a char"))),
        }
    }

    #[inline]
    fn deserialize_str<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Failure> {
        visitor.visit_borrowed_str(self.str()?)
    }

    #[inline]
    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        self.deserialize_str(visitor)
    }

    #[inline]
    fn deserialize_bytes<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Failure> {
        visitor.visit_borrowed_bytes(self.bytes()?)
    }

    #[inline]
    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        self.deserialize_bytes(visitor)
    }

    #[inline]
    fn deserialize_option<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Failure> {
        match self.array()? {
            [0] => visitor.visit_none(),
            [1] => visitor.visit_some(self.nested()?),
            [byte] => Err(Failure::damaged(format!("{byte} is not the tag of an Option"))),
        }
    }

    #[inline]
    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        visitor.visit_unit()
    }

    #[inline]
    fn deserialize_unit_struct<V: Visitor<'de>>(self, _name: &'static str, visitor: V) -> Result<V::Value, Failure> {
        visitor.visit_unit()
    }

    #[inline]
    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _name: &'static str, visitor: V) -> Result<V::Value, Failure> {
        visitor.visit_newtype_struct(self)
    }

    #[inline]
    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        let mut elements = self.elements()?;
        let value = visitor.visit_seq(&mut elements)?;
        elements.finish()?;
        Ok(value)
    }

    #[inline]
    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        let mut elements = self.elements()?;
        let value = visitor.visit_map(&mut elements)?;
        elements.finish()?;
        Ok(value)
    }

    #[inline]
    fn deserialize_tuple<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, Failure> {
        visitor.visit_seq(self.fields(len))
    }

    #[inline]
    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        len: usize,
        visitor: V,
    ) -> Result<V::Value, Failure> {
        visitor.visit_seq(self.fields(len))
    }

    #[inline]
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Failure> {
        visitor.visit_seq(self.fields(fields.len()))
    }

    #[inline]
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Failure> {
        visitor.visit_enum(self.nested()?)
    }

    #[inline]
    fn is_human_readable(&self) -> bool {
        false
    }
}

impl<'de> de::EnumAccess<'de> for Deserializer<'_, 'de> {
    type Error = Failure;
    type Variant = Self;

    #[inline]
    fn variant_seed<T: DeserializeSeed<'de>>(mut self, seed: T) -> Result<(T::Value, Self), Failure> {
        let index = self.varint()?;
        let index =
            u32::try_from(index).map_err(|_| Failure::damaged(format!("{index} is not the index of a variant")))?;
        let index: de::value::U32Deserializer<Failure> = index.into_deserializer();
        let variant = seed.deserialize(index)?;
        Ok((variant, self))
    }
}

impl<'de> de::VariantAccess<'de> for Deserializer<'_, 'de> {
    type Error = Failure;

    #[inline]
    fn unit_variant(self) -> Result<(), Failure> {
        Ok(())
    }

    #[inline]
    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Failure> {
        seed.deserialize(self)
    }

    #[inline]
    fn tuple_variant<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, Failure> {
        visitor.visit_seq(self.fields(len))
    }

    #[inline]
    fn struct_variant<V: Visitor<'de>>(self, fields: &'static [&'static str], visitor: V) -> Result<V::Value, Failure> {
        visitor.visit_seq(self.fields(fields.len()))
    }
}

/// The elements of a sequence, the entries of a map, or the fields of a struct, in progress.
struct Elements<'i, 'de> {
    inner: Deserializer<'i, 'de>,
    left: usize,
    /// Where elements can only be without bytes: how much input must stay.
    must_remain: Option<usize>,
}

impl<'de> Elements<'_, 'de> {
    #[inline]
    fn one<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, Failure> {
        let value = seed.deserialize(self.inner.field())?;
        match self.must_remain {
            Some(remaining) if remaining != self.inner.input.len() => {
                Err(truncated(self.left as u64 + 1, self.inner.input.len()))
            }
            _ => Ok(value),
        }
    }

    #[inline]
    fn finish(&self) -> Result<(), Failure> {
        match self.left {
            0 => Ok(()),
            left => Err(Failure::damaged(format!("{left} elements more than the type takes"))),
        }
    }
}

impl<'de> de::SeqAccess<'de> for Elements<'_, 'de> {
    type Error = Failure;

    #[inline]
    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Failure> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        self.one(seed).map(Some)
    }

    #[inline]
    fn size_hint(&self) -> Option<usize> {
        Some(self.left)
    }
}

impl<'de> de::MapAccess<'de> for Elements<'_, 'de> {
    type Error = Failure;

    #[inline]
    fn next_key_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Failure> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        self.one(seed).map(Some)
    }

    #[inline]
    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, Failure> {
        self.one(seed)
    }

    #[inline]
    fn size_hint(&self) -> Option<usize> {
        Some(self.left)
    }
}
