//! The binary form of records and state: compact, fast, and safe to decode from any bytes.
//!
//! | value | form |
//! |---|---|
//! | `bool`, `u8`, `i8` | one byte; a `bool` is 0 or 1 |
//! | other integers and floats | little-endian, at their full width |
//! | `char` | its code point as a `u32` |
//! | `str`, bytes, sequences, maps | length as an unsigned LEB128 varint, then the content |
//! | `Option` | 0, or 1 and the value |
//! | enums | index of the variant as a varint, then its content |
//! | structs, tuples, arrays, units | their fields one after another, without any framing |
//!
//! The form does not describe itself: it is read by the type that wrote it. What serde builds from a
//! description is therefore refused: untagged and internally tagged enums, `#[serde(flatten)]`,
//! `serde_json::Value`, and fields left out by `skip_serializing_if`.
//!
//! ```
//! use flott_core::codec;
//! let record = ("user-17".to_owned(), Some(3.5), vec![1_u32, 2]);
//! let bytes = codec::encode(&record).unwrap();
//! assert_eq!(codec::decode::<(String, Option<f64>, Vec<u32>)>(&bytes).unwrap(), record);
//! assert!(codec::decode::<(String, Option<f64>, Vec<u32>)>(&bytes[1..]).is_err());
//! ```

use std::any::type_name;
use std::fmt;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

mod de;
mod ser;
#[cfg(test)]
mod tests;

/// How deeply options, sequences, maps and enums may be nested: hostile bytes must not overflow the
/// stack, and what could not be read again must not be written.
const DEPTH_MAX: u32 = 128;

/// How many elements without any bytes, such as `()`, a sequence may have. Their number is all
/// that is written of them, so nothing else bounds the work of reading them.
const ZERO_SIZED_ELEMENTS_MAX: usize = 4096;

/// Appends the binary form of `value` to `out`. After an error `out` is as it was before.
///
/// # Errors
/// The type is one that this form cannot carry, or its own `Serialize` failed.
#[inline]
pub fn encode_into<T: Serialize + ?Sized>(value: &T, out: &mut Vec<u8>) -> Result<()> {
    let start = out.len();
    value.serialize(ser::Serializer::new(out)).map_err(|failure| {
        out.truncate(start);
        failure.context(format_args!("encoding {}", type_name::<T>()))
    })
}

/// The binary form of `value`.
///
/// # Errors
/// Those of [`encode_into`].
#[inline]
pub fn encode<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    encode_into(value, &mut out)?;
    Ok(out)
}

/// Reads one value, which must use all of `bytes`.
///
/// # Errors
/// `bytes` are not the binary form of a `T`.
#[inline]
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T> {
    let mut decoder = Decoder::new(bytes);
    let value = decoder.read()?;
    match decoder.remaining() {
        0 => Ok(value),
        rest => Err(Error::system(format!("decoding {}: {rest} bytes are left over", type_name::<T>()))),
    }
}

/// Reads values that were written one after another.
///
/// ```
/// use flott_core::codec::{Decoder, encode_into};
/// let mut bytes = Vec::new();
/// encode_into("a", &mut bytes).unwrap();
/// encode_into(&7_u64, &mut bytes).unwrap();
/// let mut decoder = Decoder::new(&bytes);
/// assert_eq!(decoder.read::<&str>().unwrap(), "a");
/// assert_eq!(decoder.read::<u64>().unwrap(), 7);
/// assert!(decoder.is_empty());
/// ```
#[derive(Clone, Debug)]
pub struct Decoder<'a> {
    rest: &'a [u8],
    total: usize,
}

impl<'a> Decoder<'a> {
    /// A decoder at the start of `bytes`.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, total: bytes.len() }
    }

    /// Reads the next value. After an error what is left means nothing.
    ///
    /// # Errors
    /// The next bytes are not the binary form of a `T`.
    #[inline]
    pub fn read<T: Deserialize<'a>>(&mut self) -> Result<T> {
        let start = self.total - self.rest.len();
        T::deserialize(de::Deserializer::new(&mut self.rest))
            .map_err(|failure| failure.context(format_args!("decoding {} at byte {start}", type_name::<T>())))
    }

    /// Takes the next `length` bytes as they are.
    ///
    /// # Errors
    /// There are not as many left.
    pub fn take(&mut self, length: u64) -> Result<&'a [u8]> {
        let split = usize::try_from(length).ok().and_then(|length| self.rest.split_at_checked(length));
        let Some((head, rest)) = split else {
            return Err(Error::system(format!("{length} bytes are expected, {} are left", self.rest.len())));
        };
        self.rest = rest;
        Ok(head)
    }

    /// How many bytes are left.
    #[inline]
    pub fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// Whether no bytes are left.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }
}

/// An error while a value is in progress. It is a pointer, so that the results of the many small
/// calls travel in registers.
#[derive(Debug)]
struct Failure(Box<Error>);

impl Failure {
    /// The program's type cannot be carried.
    #[cold]
    fn unsupported(message: impl Into<String>) -> Self {
        Self(Box::new(Error::input(message)))
    }

    /// The bytes are not what was written.
    #[cold]
    fn damaged(message: impl Into<String>) -> Self {
        Self(Box::new(Error::system(message)))
    }

    #[cold]
    fn context(self, context: impl fmt::Display) -> Error {
        self.0.context(context)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Failure {}

impl serde::ser::Error for Failure {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::unsupported(message.to_string())
    }
}

impl serde::de::Error for Failure {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::damaged(message.to_string())
    }
}

/// The depth below `depth`, if there is one.
#[inline]
fn deeper(depth: u32) -> Result<u32, Failure> {
    if depth < DEPTH_MAX { Ok(depth + 1) } else { Err(too_deep()) }
}

#[cold]
fn too_deep() -> Failure {
    Failure::unsupported(format!(
        "the value is nested more than {DEPTH_MAX} levels deep: flatten it, for example into a Vec"
    ))
}
