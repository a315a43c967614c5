//! The hash that decides which subtask owns a key.
//!
//! Keyed state is partitioned by it, so the same key must have the same hash in every process, on
//! every machine and in every version, forever. This is the algorithm:
//!
//! - The state is one `u64`, at first `SEED`.
//! - A word is *folded* into it by `state = mix(state ^ word, MULTIPLIER)`, where `mix(a, b)` is the upper half
//!   of the 128-bit product of `a` and `b`, xor its lower half.
//! - An integer is folded as a word, extended to 64 bits by its sign or by zeros; an `i128` or `u128` as two
//!   words, the lower first; a `bool` as 0 or 1, a `char` as its code point. A float is folded as the bits of its
//!   value as an `f64`, with a single zero and a single NaN, so that equal keys have equal hashes.
//! - Text and bytes: `state = XXH3-64(bytes, seed = state)`.
//! - `None` folds 0; `Some` folds 1, then hashes its value. An enum folds the index of its variant, then hashes its
//!   content. Sequences and maps hash their elements, then fold their number. Structs, tuples, arrays and
//!   newtypes hash their fields and nothing else; a unit hashes nothing.
//! - At the end `mix(state ^ FINISH, MULTIPLIER)` makes every bit depend on all others.
//!
//! Only what a key gives to serde matters: `"a"` and `String::from("a")`, or `5_u32` and `5_u64`, have the same
//! hash. A key must give its parts in a fixed order, which a `HashMap` does not.

use std::fmt::{self, Display, Write};

use serde::Serialize;
use serde::ser;
use xxhash_rust::xxh3::{Xxh3, xxh3_64_with_seed};

/// The fraction of e: digits that nobody chose.
const SEED: u64 = 0xb7e1_5162_8aed_2a6a;
/// The next 64 binary digits of e, made odd so that multiplying loses nothing.
const MULTIPLIER: u64 = 0xbf71_5880_9cf4_f3c7;
/// The next.
const FINISH: u64 = 0x62e7_160f_38b4_da56;

/// The hash of a key: the same in every process and version.
///
/// If the key's own `Serialize` fails, it is the hash of what came before the failure, so that the
/// key still has one owner.
///
/// ```
/// use flott_core::hash::stable_hash;
/// assert_eq!(stable_hash("user-17"), stable_hash(&String::from("user-17")));
/// assert_eq!(stable_hash(&5_u32), stable_hash(&5_u64));
/// assert_ne!(stable_hash(&(1, 2)), stable_hash(&(2, 1)));
/// ```
#[inline]
pub fn stable_hash<T: Serialize + ?Sized>(value: &T) -> u64 {
    let mut state = SEED;
    let _ = value.serialize(Hasher { state: &mut state });
    mix(state ^ FINISH, MULTIPLIER)
}

#[inline]
fn mix(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product >> 64) as u64 ^ product as u64
}

/// Folds what serde shows it of a value into `state`.
struct Hasher<'a> {
    state: &'a mut u64,
}

impl Hasher<'_> {
    #[inline]
    fn fold(self, word: u64) -> Self {
        *self.state = mix(*self.state ^ word, MULTIPLIER);
        self
    }

    /// A hasher of the next field.
    #[inline]
    fn field(&mut self) -> Hasher<'_> {
        Hasher { state: self.state }
    }
}

/// The error of a key's own `Serialize`; the hasher has none.
#[derive(Debug)]
struct Failed;

impl Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the key cannot be serialised")
    }
}

impl std::error::Error for Failed {}

impl ser::Error for Failed {
    fn custom<T: Display>(_message: T) -> Self {
        Self
    }
}

macro_rules! integers {
    ($($method:ident $type:ty),*) => {$(
        #[inline]
        fn $method(self, value: $type) -> Result<(), Failed> {
            // From a signed type this extends the sign.
            self.fold(value as u64);
            Ok(())
        }
    )*};
}

impl<'a> ser::Serializer for Hasher<'a> {
    type Ok = ();
    type Error = Failed;
    type SerializeSeq = Elements<'a>;
    type SerializeMap = Elements<'a>;
    type SerializeTuple = Self;
    type SerializeTupleStruct = Self;
    type SerializeTupleVariant = Self;
    type SerializeStruct = Self;
    type SerializeStructVariant = Self;

    integers! {
        serialize_bool bool, serialize_char char,
        serialize_i8 i8, serialize_i16 i16, serialize_i32 i32, serialize_i64 i64,
        serialize_u8 u8, serialize_u16 u16, serialize_u32 u32
    }

    #[inline]
    fn serialize_u64(self, value: u64) -> Result<(), Failed> {
        self.fold(value);
        Ok(())
    }

    #[inline]
    fn serialize_i128(self, value: i128) -> Result<(), Failed> {
        self.serialize_u128(value as u128)
    }

    #[inline]
    fn serialize_u128(self, value: u128) -> Result<(), Failed> {
        self.fold(value as u64).fold((value >> 64) as u64);
        Ok(())
    }

    #[inline]
    fn serialize_f32(self, value: f32) -> Result<(), Failed> {
        self.serialize_f64(value.into())
    }

    #[inline]
    fn serialize_f64(self, value: f64) -> Result<(), Failed> {
        let canonical = if value.is_nan() {
            0x7ff8_0000_0000_0000
        } else if value == 0.0 {
            0 // also for -0.0
        } else {
            value.to_bits()
        };
        self.serialize_u64(canonical)
    }

    #[inline]
    fn serialize_str(self, value: &str) -> Result<(), Failed> {
        self.serialize_bytes(value.as_bytes())
    }

    #[inline]
    fn serialize_bytes(self, value: &[u8]) -> Result<(), Failed> {
        *self.state = xxh3_64_with_seed(value, *self.state);
        Ok(())
    }

    /// Like `serialize_str` of the text, without building it.
    fn collect_str<T: Display + ?Sized>(self, value: &T) -> Result<(), Failed> {
        struct Text(Xxh3);

        impl Write for Text {
            fn write_str(&mut self, text: &str) -> fmt::Result {
                self.0.update(text.as_bytes());
                Ok(())
            }
        }

        let mut text = Text(Xxh3::with_seed(*self.state));
        let written = write!(text, "{value}");
        *self.state = text.0.digest();
        written.map_err(|_| Failed)
    }

    #[inline]
    fn serialize_none(self) -> Result<(), Failed> {
        self.serialize_u64(0)
    }

    #[inline]
    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Failed> {
        value.serialize(self.fold(1))
    }

    #[inline]
    fn serialize_unit(self) -> Result<(), Failed> {
        Ok(())
    }

    #[inline]
    fn serialize_unit_struct(self, _name: &'static str) -> Result<(), Failed> {
        Ok(())
    }

    #[inline]
    fn serialize_unit_variant(self, _name: &'static str, index: u32, _variant: &'static str) -> Result<(), Failed> {
        self.serialize_u32(index)
    }

    #[inline]
    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _name: &'static str, value: &T) -> Result<(), Failed> {
        value.serialize(self)
    }

    #[inline]
    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        index: u32,
        _variant: &'static str,
        value: &T,
    ) -> Result<(), Failed> {
        value.serialize(self.fold(index.into()))
    }

    #[inline]
    fn serialize_seq(self, _len: Option<usize>) -> Result<Elements<'a>, Failed> {
        Ok(Elements { hasher: self, count: 0 })
    }

    #[inline]
    fn serialize_map(self, _len: Option<usize>) -> Result<Elements<'a>, Failed> {
        Ok(Elements { hasher: self, count: 0 })
    }

    #[inline]
    fn serialize_tuple(self, _len: usize) -> Result<Self, Failed> {
        Ok(self)
    }

    #[inline]
    fn serialize_tuple_struct(self, _name: &'static str, _len: usize) -> Result<Self, Failed> {
        Ok(self)
    }

    #[inline]
    fn serialize_tuple_variant(
        self,
        _name: &'static str,
        index: u32,
        _variant: &'static str,
        _len: usize,
    ) -> Result<Self, Failed> {
        Ok(self.fold(index.into()))
    }

    #[inline]
    fn serialize_struct(self, _name: &'static str, _len: usize) -> Result<Self, Failed> {
        Ok(self)
    }

    #[inline]
    fn serialize_struct_variant(
        self,
        _name: &'static str,
        index: u32,
        _variant: &'static str,
        _len: usize,
    ) -> Result<Self, Failed> {
        Ok(self.fold(index.into()))
    }

    #[inline]
    fn is_human_readable(&self) -> bool {
        false
    }
}

/// A sequence or map in progress. Its length is folded last, since not every sequence knows it before.
struct Elements<'a> {
    hasher: Hasher<'a>,
    count: u64,
}

impl ser::SerializeSeq for Elements<'_> {
    type Ok = ();
    type Error = Failed;

    #[inline]
    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Failed> {
        self.count += 1;
        value.serialize(self.hasher.field())
    }

    #[inline]
    fn end(self) -> Result<(), Failed> {
        self.hasher.fold(self.count);
        Ok(())
    }
}

impl ser::SerializeMap for Elements<'_> {
    type Ok = ();
    type Error = Failed;

    #[inline]
    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Failed> {
        self.count += 1;
        key.serialize(self.hasher.field())
    }

    #[inline]
    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Failed> {
        value.serialize(self.hasher.field())
    }

    #[inline]
    fn end(self) -> Result<(), Failed> {
        self.hasher.fold(self.count);
        Ok(())
    }
}

/// Tuples and structs: one field after another.
macro_rules! fields {
    ($($trait:ident $method:ident $(($key:ident))?;)*) => {$(
        impl ser::$trait for Hasher<'_> {
            type Ok = ();
            type Error = Failed;

            #[inline]
            fn $method<T: Serialize + ?Sized>(&mut self, $($key: &'static str,)? value: &T) -> Result<(), Failed> {
                value.serialize(self.field())
            }

            #[inline]
            fn end(self) -> Result<(), Failed> {
                Ok(())
            }
        }
    )*};
}

fields! {
    SerializeTuple serialize_element;
    SerializeTupleStruct serialize_field;
    SerializeTupleVariant serialize_field;
    SerializeStruct serialize_field (_key);
    SerializeStructVariant serialize_field (_key);
}

#[cfg(test)]
mod tests;
