//! Reads what the form of [`flott_core::codec`] is made of, from bytes that nobody vouches for, without a type to read.

use std::fmt::{self, Display};

use flott_core::Error;
use serde::de;

/// Why bytes are not of a shape. It is a pointer, so that the results of the many small calls travel in registers.
#[derive(Debug)]
#[expect(clippy::box_collection, reason = "a pointer is returned faster than a text")]
pub(super) struct Misfit(Box<String>);

impl Misfit {
    #[cold]
    pub(super) fn new(reason: impl Into<String>) -> Self {
        Self(Box::new(reason.into()))
    }

    #[cold]
    pub(super) fn into_error(self, what: impl Display) -> Error {
        Error::system(format!("{what}: {}", self.0))
    }
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Misfit {}

impl de::Error for Misfit {
    fn custom<T: Display>(message: T) -> Self {
        Self::new(message.to_string())
    }
}

#[cold]
pub(super) fn truncated(needed: u64, left: usize) -> Misfit {
    Misfit::new(format!("needs {needed} more bytes or elements, and {left} bytes are left"))
}

#[cold]
pub(super) fn no_variant(index: u64, variants: usize) -> Misfit {
    Misfit::new(format!("variant index {index} of {variants} variants"))
}

#[inline]
pub(super) fn array<const N: usize>(input: &mut &[u8]) -> Result<[u8; N], Misfit> {
    match input.split_first_chunk::<N>() {
        Some((head, rest)) => {
            *input = rest;
            Ok(*head)
        }
        None => Err(truncated(N as u64, input.len())),
    }
}

#[inline]
pub(super) fn boolean(input: &mut &[u8], what: &str) -> Result<bool, Misfit> {
    match array(input)? {
        [0] => Ok(false),
        [1] => Ok(true),
        [byte] => Err(Misfit::new(format!("{byte} is not {what}"))),
    }
}

#[inline]
pub(super) fn varint(input: &mut &[u8]) -> Result<u64, Misfit> {
    match input.split_first() {
        Some((&byte, rest)) if byte < 0x80 => {
            *input = rest;
            Ok(byte.into())
        }
        _ => long_varint(input),
    }
}

fn long_varint(input: &mut &[u8]) -> Result<u64, Misfit> {
    let mut value = 0;
    for shift in (0..u64::BITS).step_by(7) {
        let [byte] = array(input)?;
        if shift == 63 && byte > 1 {
            break;
        }
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(value);
        }
    }
    Err(Misfit::new("a length or variant has more than 64 bits"))
}

/// A length of something that has at least a byte for each part.
#[inline]
pub(super) fn length(input: &mut &[u8]) -> Result<usize, Misfit> {
    let length = varint(input)?;
    if length > input.len() as u64 {
        return Err(truncated(length, input.len()));
    }
    Ok(length as usize)
}

/// A length and that many bytes, which are borrowed and not copied.
#[inline]
pub(super) fn bytes<'a>(input: &mut &'a [u8]) -> Result<&'a [u8], Misfit> {
    let length = length(input)?;
    let (bytes, rest) = input.split_at(length);
    *input = rest;
    Ok(bytes)
}
