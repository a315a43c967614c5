//! The binary form of a chunk.
//!
//! ```text
//! chunk = flags(u8: 1 has kinds, 2 has hashes) input(u8) rows(u32) kind(u8)* hash(u64)* Arrow IPC stream
//! ```
//!
//! Numbers are little-endian. The IPC stream has the schema and one batch, so whoever receives it needs to know nothing.

use std::io::Cursor;

use arrow::error::ArrowError;
use arrow::ipc::reader::StreamReader;
use arrow::ipc::writer::StreamWriter;
use flott_core::{Error, Result};

use super::{Chunk, RowKind};

const HAS_KINDS: u8 = 1;
const HAS_HASHES: u8 = 2;

pub(super) fn encode(chunk: &Chunk, out: &mut Vec<u8>) -> Result<()> {
    let kinds = if chunk.kinds.is_some() { HAS_KINDS } else { 0 };
    let hashes = if chunk.hashes.is_some() { HAS_HASHES } else { 0 };
    out.extend_from_slice(&[kinds | hashes, chunk.input]);
    out.extend_from_slice(&(chunk.len() as u32).to_le_bytes());
    out.extend(chunk.kinds.iter().flat_map(|kinds| kinds.iter().map(|kind| *kind as u8)));
    out.extend(chunk.hashes.iter().flat_map(|hashes| hashes.iter().flat_map(|hash| hash.to_le_bytes())));
    let schema = chunk.batch.schema();
    let written = StreamWriter::try_new(&mut *out, &schema).and_then(|mut writer| {
        writer.write(&chunk.batch)?;
        writer.finish()
    });
    written.map_err(|error| Error::system(format!("encoding a batch: {error}")))
}

pub(super) fn decode(data: &[u8]) -> Result<Chunk> {
    let mut rest = data;
    let [flags, input] = take::<2>(&mut rest)?;
    if flags > HAS_KINDS | HAS_HASHES {
        return Err(Error::system(format!("a chunk has the flags {flags}, which this build does not know")));
    }
    let rows = u32::from_le_bytes(take::<4>(&mut rest)?) as usize;
    let kinds = match flags & HAS_KINDS {
        0 => None,
        _ => {
            let numbers = split(&mut rest, rows)?;
            let kinds: Option<Vec<RowKind>> = numbers.iter().map(|number| RowKind::from_number(*number)).collect();
            Some(kinds.ok_or_else(damaged)?.into())
        }
    };
    let hashes = match flags & HAS_HASHES {
        0 => None,
        _ => {
            let bytes = split(&mut rest, rows.checked_mul(8).ok_or_else(damaged)?)?;
            let (words, _) = bytes.as_chunks::<8>();
            Some(words.iter().map(|word| u64::from_le_bytes(*word)).collect())
        }
    };
    let unreadable = |error: ArrowError| Error::system(format!("a chunk cannot be decoded: {error}"));
    let mut reader = StreamReader::try_new(Cursor::new(rest), None).map_err(unreadable)?;
    let batch = reader.next().ok_or_else(damaged)?.map_err(unreadable)?;
    if batch.num_rows() != rows {
        return Err(damaged());
    }
    Ok(Chunk { batch, kinds, hashes, input })
}

fn take<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N]> {
    let (bytes, left) = rest.split_first_chunk::<N>().ok_or_else(damaged)?;
    *rest = left;
    Ok(*bytes)
}

fn split<'a>(rest: &mut &'a [u8], length: usize) -> Result<&'a [u8]> {
    let (bytes, left) = rest.split_at_checked(length).ok_or_else(damaged)?;
    *rest = left;
    Ok(bytes)
}

fn damaged() -> Error {
    Error::system("a chunk is damaged: its length does not fit its content")
}
