//! Writes values in the form that [`codec`](super) describes.

use std::fmt::{self, Display, Write};

use serde::Serialize;
use serde::ser;

use super::{Failure, ZERO_SIZED_ELEMENTS_MAX, deeper};

/// The longest varint: 64 bits, seven a byte.
const VARINT_BYTES_MAX: usize = 10;

/// How much room is made ahead for the elements of a sequence, at a byte each.
const RESERVE_MAX: usize = 1024;

/// Appends one value to a buffer.
pub(super) struct Serializer<'a> {
    out: &'a mut Vec<u8>,
    depth: u32,
}

impl<'a> Serializer<'a> {
    #[inline]
    pub(super) fn new(out: &'a mut Vec<u8>) -> Self {
        Self { out, depth: 0 }
    }

    /// A serializer of the next field.
    #[inline]
    fn field(&mut self) -> Serializer<'_> {
        Serializer { out: self.out, depth: self.depth }
    }

    #[inline]
    fn nested(self) -> Result<Self, Failure> {
        Ok(Self { depth: deeper(self.depth)?, out: self.out })
    }

    #[inline]
    fn variant(self, index: u32) -> Result<Self, Failure> {
        write_varint(self.out, index.into());
        self.nested()
    }

    #[inline]
    fn elements(self, announced: Option<usize>) -> Result<Elements<'a>, Failure> {
        let inner = self.nested()?;
        let length_at = inner.out.len();
        write_varint(inner.out, announced.unwrap_or(0) as u64);
        inner.out.reserve(announced.unwrap_or(0).min(RESERVE_MAX));
        let body_at = inner.out.len();
        Ok(Elements { inner, announced, count: 0, length_at, body_at })
    }
}

#[inline]
fn write_varint(out: &mut Vec<u8>, value: u64) {
    if value < 0x80 {
        out.push(value as u8);
    } else {
        let (bytes, len) = varint(value);
        out.extend_from_slice(&bytes[..len]);
    }
}

fn varint(mut value: u64) -> ([u8; VARINT_BYTES_MAX], usize) {
    let mut bytes = [0; VARINT_BYTES_MAX];
    let mut len = 0;
    while value >= 0x80 {
        bytes[len] = value as u8 | 0x80;
        value >>= 7;
        len += 1;
    }
    bytes[len] = value as u8;
    (bytes, len + 1)
}

/// Puts the real length where one byte was kept for it. What follows moves if one byte is too few.
fn patch_length(out: &mut Vec<u8>, at: usize, length: usize) {
    let (bytes, len) = varint(length as u64);
    out.splice(at..=at, bytes[..len].iter().copied());
}

macro_rules! little_endian {
    ($($method:ident $type:ty),*) => {$(
        #[inline]
        fn $method(self, value: $type) -> Result<(), Failure> {
            self.out.extend_from_slice(&value.to_le_bytes());
            Ok(())
        }
    )*};
}

impl<'a> ser::Serializer for Serializer<'a> {
    type Ok = ();
    type Error = Failure;
    type SerializeSeq = Elements<'a>;
    type SerializeMap = Elements<'a>;
    type SerializeTuple = Self;
    type SerializeTupleStruct = Self;
    type SerializeTupleVariant = Self;
    type SerializeStruct = Self;
    type SerializeStructVariant = Self;

    little_endian! {
        serialize_i8 i8, serialize_i16 i16, serialize_i32 i32, serialize_i64 i64, serialize_i128 i128,
        serialize_u8 u8, serialize_u16 u16, serialize_u32 u32, serialize_u64 u64, serialize_u128 u128,
        serialize_f32 f32, serialize_f64 f64
    }

    #[inline]
    fn serialize_bool(self, value: bool) -> Result<(), Failure> {
        self.serialize_u8(value.into())
    }

    #[inline]
    fn serialize_char(self, value: char) -> Result<(), Failure> {
        self.serialize_u32(value.into())
    }

    #[inline]
    fn serialize_str(self, value: &str) -> Result<(), Failure> {
        self.serialize_bytes(value.as_bytes())
    }

    #[inline]
    fn serialize_bytes(self, value: &[u8]) -> Result<(), Failure> {
        write_varint(self.out, value.len() as u64);
        self.out.extend_from_slice(value);
        Ok(())
    }

    /// Like `serialize_str` of the text, without the detour over a string.
    fn collect_str<T: Display + ?Sized>(self, value: &T) -> Result<(), Failure> {
        struct Text<'a>(&'a mut Vec<u8>);

        impl Write for Text<'_> {
            fn write_str(&mut self, text: &str) -> fmt::Result {
                self.0.extend_from_slice(text.as_bytes());
                Ok(())
            }
        }

        let length_at = self.out.len();
        self.out.push(0);
        write!(Text(self.out), "{value}").map_err(|_| Failure::unsupported("its Display failed"))?;
        let length = self.out.len() - length_at - 1;
        patch_length(self.out, length_at, length);
        Ok(())
    }

    #[inline]
    fn serialize_none(self) -> Result<(), Failure> {
        self.serialize_u8(0)
    }

    #[inline]
    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Failure> {
        self.out.push(1);
        value.serialize(self.nested()?)
    }

    #[inline]
    fn serialize_unit(self) -> Result<(), Failure> {
        Ok(())
    }

    #[inline]
    fn serialize_unit_struct(self, _name: &'static str) -> Result<(), Failure> {
        Ok(())
    }

    #[inline]
    fn serialize_unit_variant(self, _name: &'static str, index: u32, _variant: &'static str) -> Result<(), Failure> {
        self.variant(index).map(|_| ())
    }

    #[inline]
    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _name: &'static str, value: &T) -> Result<(), Failure> {
        value.serialize(self)
    }

    #[inline]
    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        index: u32,
        _variant: &'static str,
        value: &T,
    ) -> Result<(), Failure> {
        value.serialize(self.variant(index)?)
    }

    #[inline]
    fn serialize_seq(self, len: Option<usize>) -> Result<Elements<'a>, Failure> {
        self.elements(len)
    }

    #[inline]
    fn serialize_map(self, len: Option<usize>) -> Result<Elements<'a>, Failure> {
        self.elements(len)
    }

    #[inline]
    fn serialize_tuple(self, _len: usize) -> Result<Self, Failure> {
        Ok(self)
    }

    #[inline]
    fn serialize_tuple_struct(self, _name: &'static str, _len: usize) -> Result<Self, Failure> {
        Ok(self)
    }

    #[inline]
    fn serialize_tuple_variant(
        self,
        _name: &'static str,
        index: u32,
        _variant: &'static str,
        _len: usize,
    ) -> Result<Self, Failure> {
        self.variant(index)
    }

    #[inline]
    fn serialize_struct(self, _name: &'static str, _len: usize) -> Result<Self, Failure> {
        Ok(self)
    }

    #[inline]
    fn serialize_struct_variant(
        self,
        _name: &'static str,
        index: u32,
        _variant: &'static str,
        _len: usize,
    ) -> Result<Self, Failure> {
        self.variant(index)
    }

    #[inline]
    fn is_human_readable(&self) -> bool {
        false
    }
}

/// The elements of a sequence, or the entries of a map, in progress.
pub(super) struct Elements<'a> {
    inner: Serializer<'a>,
    announced: Option<usize>,
    count: usize,
    length_at: usize,
    body_at: usize,
}

impl Elements<'_> {
    #[inline]
    fn element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Failure> {
        self.count += 1;
        value.serialize(self.inner.field())
    }

    #[inline]
    fn finish(self) -> Result<(), Failure> {
        let Self { inner: Serializer { out, .. }, announced, count, length_at, body_at } = self;
        if count > ZERO_SIZED_ELEMENTS_MAX && out.len() == body_at {
            return Err(Failure::unsupported(format!(
                "a sequence of {count} elements without content: the most is {ZERO_SIZED_ELEMENTS_MAX}, keep their number instead"
            )));
        }
        match announced {
            Some(announced) if announced == count => Ok(()),
            Some(announced) => {
                Err(Failure::unsupported(format!("a sequence announced {announced} elements and has {count}")))
            }
            None => {
                patch_length(out, length_at, count);
                Ok(())
            }
        }
    }
}

impl ser::SerializeSeq for Elements<'_> {
    type Ok = ();
    type Error = Failure;

    #[inline]
    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Failure> {
        self.element(value)
    }

    #[inline]
    fn end(self) -> Result<(), Failure> {
        self.finish()
    }
}

impl ser::SerializeMap for Elements<'_> {
    type Ok = ();
    type Error = Failure;

    #[inline]
    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Failure> {
        self.element(key)
    }

    #[inline]
    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Failure> {
        value.serialize(self.inner.field())
    }

    #[inline]
    fn end(self) -> Result<(), Failure> {
        self.finish()
    }
}

/// Tuples and structs: one field after another.
macro_rules! fields {
    ($($trait:ident $method:ident $(($key:ident))? $($skip:ident)?;)*) => {$(
        impl ser::$trait for Serializer<'_> {
            type Ok = ();
            type Error = Failure;

            #[inline]
            fn $method<T: Serialize + ?Sized>(&mut self, $($key: &'static str,)? value: &T) -> Result<(), Failure> {
                value.serialize(self.field())
            }

            $(fn $skip(&mut self, key: &'static str) -> Result<(), Failure> {
                Err(Failure::unsupported(format!(
                    "field '{key}' is left out by #[serde(skip_serializing_if)], and could not be missed when read: remove the attribute"
                )))
            })?

            #[inline]
            fn end(self) -> Result<(), Failure> {
                Ok(())
            }
        }
    )*};
}

fields! {
    SerializeTuple serialize_element;
    SerializeTupleStruct serialize_field;
    SerializeTupleVariant serialize_field;
    SerializeStruct serialize_field (_key) skip_field;
    SerializeStructVariant serialize_field (_key) skip_field;
}
