//! Rows and keys as bytes, for state and for dealing rows out by key.
//!
//! Each value of a row in order: a byte 0 for null, else a byte 1 and the value:
//!
//! | type | bytes |
//! |---|---|
//! | boolean | one byte, 0 or 1 |
//! | integers, dates, times, timestamps, durations, intervals, decimals, floats | little-endian, of the type's width |
//! | strings, binary | length as LEB128, then the bytes |
//! | lists, maps | number of elements as LEB128, then each element (of a map: its key, then its value) |
//! | rows | each field |
//!
//! The only NaN is the quiet one, while -0.0 and 0.0 differ, as in Flink's keys. Equal values have equal bytes, and only
//! they: so a key is compared and hashed by its bytes. **The form is kept in savepoints: it never changes.**

use std::fmt;
use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::DataType;
use flott_core::hash::stable_hash;
use flott_core::{Error, Result};
use flott_state::Namespace;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use smallvec::SmallVec;

mod block;
mod decode;
mod encode;
#[cfg(test)]
mod tests;

pub use block::RowBlock;
pub use decode::RowDecoder;
pub(crate) use decode::take_length as read_length;
pub use encode::RowEncoder;
pub(crate) use encode::write_length;

/// The bytes of one row or key, owned. Up to 24 of them need no allocation.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowBytes(SmallVec<[u8; 24]>);

impl RowBytes {
    /// A copy of these bytes.
    #[inline]
    pub fn new(bytes: &[u8]) -> Self {
        Self(SmallVec::from_slice(bytes))
    }

    /// Becomes a copy of these bytes, in the memory that it has: a key to look something up with costs no allocation.
    #[inline]
    pub fn set(&mut self, bytes: &[u8]) {
        self.0.clear();
        self.0.extend_from_slice(bytes);
    }

    /// The bytes.
    #[inline]
    pub fn as_slice(&self) -> &[u8] {
        &self.0
    }

    /// The hash that decides which subtask owns it as a key.
    #[inline]
    pub fn hash(&self) -> u64 {
        stable_hash(self)
    }
}

impl fmt::Debug for RowBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02x?}", self.as_slice())
    }
}

/// So that a map clones a key only when it is new.
impl From<&Self> for RowBytes {
    fn from(bytes: &Self) -> Self {
        bytes.clone()
    }
}

impl AsRef<[u8]> for RowBytes {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Serialize for RowBytes {
    #[inline]
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for RowBytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Bytes;
        impl<'de> de::Visitor<'de> for Bytes {
            type Value = RowBytes;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("bytes")
            }

            fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<RowBytes, E> {
                Ok(RowBytes::new(bytes))
            }
        }
        deserializer.deserialize_bytes(Bytes)
    }
}

impl Namespace for RowBytes {
    fn mix(&self, hash: u64) -> u64 {
        (RowBytes::hash(self) as i64).mix(hash)
    }
}

/// The rows of a batch as bytes, one after the other.
#[derive(Clone, Debug, Default)]
pub struct EncodedRows {
    pub(crate) data: Vec<u8>,
    /// Where each row ends.
    pub(crate) ends: Vec<usize>,
}

impl EncodedRows {
    /// The number of rows.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Adds a row.
    pub fn push(&mut self, bytes: &[u8]) {
        self.data.extend_from_slice(bytes);
        self.ends.push(self.data.len());
    }

    /// Removes all rows and keeps the memory.
    pub fn clear(&mut self) {
        self.data.clear();
        self.ends.clear();
    }

    /// The bytes of a row.
    #[inline]
    pub fn get(&self, row: usize) -> &[u8] {
        let start = if row == 0 { 0 } else { self.ends[row - 1] };
        &self.data[start..self.ends[row]]
    }

    /// All rows in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        (0..self.len()).map(|row| self.get(row))
    }
}

/// The keys of a batch, with their hashes.
#[derive(Clone, Debug, Default)]
pub struct Keys {
    /// Their bytes.
    pub rows: EncodedRows,
    /// The [stable hash](RowBytes::hash) of each.
    pub hashes: Vec<u64>,
}

/// Makes the keys of batches: some of their columns. Reuses its memory.
#[derive(Debug)]
pub struct KeyEncoder {
    columns: Vec<usize>,
    encoder: RowEncoder,
    keys: Keys,
}

impl KeyEncoder {
    /// For keys in these columns of `types`.
    ///
    /// # Errors
    /// A column has a type that cannot be a key.
    pub fn new(columns: &[usize], types: &[DataType]) -> Result<Self> {
        let key_types: Vec<DataType> = columns.iter().map(|column| types[*column].clone()).collect();
        Ok(Self { columns: columns.to_vec(), encoder: RowEncoder::new(&key_types)?, keys: Keys::default() })
    }

    /// The keys of a batch. `hashes` are those that it came with, if it did.
    pub fn encode(&mut self, columns: &[ArrayRef], rows: usize, hashes: Option<&[u64]>) -> Result<&Keys> {
        let chosen: Vec<ArrayRef> = self.columns.iter().map(|column| Arc::clone(&columns[*column])).collect();
        self.encoder.encode(&chosen, rows, &mut self.keys.rows)?;
        self.keys.hashes.clear();
        match hashes {
            Some(hashes) => self.keys.hashes.extend_from_slice(hashes),
            None => self.keys.hashes.extend(self.keys.rows.iter().map(hash_of)),
        }
        Ok(&self.keys)
    }

    /// The keys of the batch before, once more.
    pub fn last(&self) -> &Keys {
        &self.keys
    }
}

/// The stable hash of a key's bytes, as [`RowBytes::hash`].
#[inline]
pub fn hash_of(bytes: &[u8]) -> u64 {
    struct Bytes<'a>(&'a [u8]);
    impl Serialize for Bytes<'_> {
        #[inline]
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.serialize_bytes(self.0)
        }
    }
    stable_hash(&Bytes(bytes))
}

fn unsupported(data_type: &DataType) -> Error {
    Error::input(format!("columns of the type {data_type} cannot be kept in state: cast them to another one"))
}
