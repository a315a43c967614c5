//! Object container files: a header, then blocks, each with the file's marker behind it.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use bytes::Bytes;
use flott_core::{Error, Result};
use flott_formats::FileBytes;
use memchr::memmem;
use serde_json::{Value, json};

const MAGIC: &[u8] = b"Obj\x01";
const MARKER_BYTES: u64 = 16;

/// How much is read at once.
const PIECE_BYTES: u64 = 1 << 20;

/// A longer header is a sign that the file is not what it was taken for.
const HEADER_BYTES_MAX: u64 = 64 << 20;

/// The header of a file.
pub(super) struct Container {
    /// A header that says the same of every record, but that it is the only field of another one: see [`Container::wrapped`].
    pub(super) header: Bytes,
    /// Whether records are wrapped.
    pub(super) is_wrapped: bool,
    /// The names of the fields of a record, if records are not wrapped.
    pub(super) fields: Vec<String>,
    marker: [u8; MARKER_BYTES as usize],
    /// Where the first block begins.
    pub(super) start: u64,
}

/// A number of variable length at the front of `bytes`, and how many bytes it takes.
fn number(bytes: &[u8]) -> Option<(i64, usize)> {
    let mut value = 0_u64;
    for (at, byte) in bytes.iter().take(10).enumerate() {
        value |= u64::from(byte & 0x7f).checked_shl(7 * at as u32)?;
        if byte & 0x80 == 0 {
            return Some(((value >> 1) as i64 ^ -((value & 1) as i64), at + 1));
        }
    }
    None
}

fn append_number(value: i64, out: &mut Vec<u8>) {
    let mut value = ((value << 1) ^ (value >> 63)) as u64;
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn append_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    append_number(bytes.len() as i64, out);
    out.extend_from_slice(bytes);
}

/// Reads what a header has.
struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    fn number(&mut self) -> Option<i64> {
        let (value, bytes) = number(self.bytes.get(self.at..)?)?;
        self.at += bytes;
        Some(value)
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.number()?).ok()?;
        let bytes = self.bytes.get(self.at..self.at.checked_add(length)?)?;
        self.at += length;
        Some(bytes)
    }
}

/// What a header says of its file, by key.
type Metadata = BTreeMap<String, Vec<u8>>;

/// The metadata of a header, its marker, and its length; `None` if `bytes` has not all of it.
fn metadata(bytes: &[u8]) -> Option<(Metadata, [u8; 16], u64)> {
    let mut cursor = Cursor { bytes, at: MAGIC.len() };
    let mut metadata = Metadata::new();
    loop {
        let count = cursor.number()?;
        if count == 0 {
            break;
        }
        if count < 0 {
            cursor.number()?;
        }
        for _ in 0..count.unsigned_abs() {
            let key = String::from_utf8_lossy(cursor.bytes()?).into_owned();
            metadata.insert(key, cursor.bytes()?.to_vec());
        }
    }
    let marker = cursor.bytes.get(cursor.at..cursor.at + MARKER_BYTES as usize)?.try_into().ok()?;
    Some((metadata, marker, cursor.at as u64 + MARKER_BYTES))
}

impl Container {
    /// Reads the header of a file.
    pub(super) fn read(file: &dyn FileBytes) -> Result<Self> {
        let named = |reason: String| Error::input(format!("{}: {reason}", file.name()));
        let mut bytes = file.read_at(0..file.length().min(PIECE_BYTES))?;
        if !bytes.starts_with(MAGIC) {
            return Err(named("it is no Avro file: it does not begin with 'Obj' and 1".to_owned()));
        }
        let (metadata, marker, start) = loop {
            if let Some(found) = metadata(&bytes) {
                break found;
            }
            let read = bytes.len() as u64;
            if read == file.length() || read > HEADER_BYTES_MAX {
                return Err(named("the header is truncated or damaged".to_owned()));
            }
            bytes = file.read_at(0..file.length().min(4 * read))?;
        };
        let json = metadata.get("avro.schema").ok_or_else(|| named("the header has no schema".to_owned()))?;
        let schema: Value = serde_json::from_slice(json)
            .map_err(|error| named(format!("the schema in the header is no JSON: {error}")))?;
        let codec = metadata.get("avro.codec").map_or_else(|| "null".into(), |codec| String::from_utf8_lossy(codec));
        if !["null", "deflate", "snappy", "zstandard"].contains(&codec.as_ref()) {
            return Err(named(format!(
                "it is compressed with '{codec}', which is not read: there are null, deflate, snappy, zstandard"
            )));
        }
        let (schema, is_wrapped) = Self::wrapped(schema);
        let names = schema.get("fields").and_then(Value::as_array).into_iter().flatten();
        let fields = names.filter_map(|field| field.get("name")?.as_str().map(str::to_owned)).collect();
        let header = Self::header(&schema.to_string(), &codec, &marker).into();
        Ok(Self { header, is_wrapped, fields, marker, start })
    }

    /// Flink's files are unions of null and a record, which Arrow does not read. In bytes it is the same whether such a value
    /// stands alone or as the only field of a record.
    fn wrapped(schema: Value) -> (Value, bool) {
        let is_record = schema.get("type").is_some_and(|of| of == "record");
        match is_record {
            true => (schema, false),
            false => {
                let fields = json!([{ "name": "row", "type": schema }]);
                (json!({ "type": "record", "name": "flott_wrapped_row", "fields": fields }), true)
            }
        }
    }

    fn header(schema: &str, codec: &str, marker: &[u8]) -> Vec<u8> {
        let mut header = MAGIC.to_vec();
        append_number(2, &mut header);
        for (key, value) in [("avro.schema", schema), ("avro.codec", codec)] {
            append_bytes(key.as_bytes(), &mut header);
            append_bytes(value.as_bytes(), &mut header);
        }
        append_number(0, &mut header);
        header.extend_from_slice(marker);
        header
    }

    /// Where the first block begins that does so at `from` or behind it; the file's end if there is none.
    pub(super) fn first_block(&self, file: &dyn FileBytes, from: u64) -> Result<u64> {
        if from <= self.start {
            return Ok(self.start);
        }
        // Its marker, which stands before it, may begin before `from`.
        let mut at = from - MARKER_BYTES;
        while at < file.length() {
            let end = (at + PIECE_BYTES).min(file.length());
            if let Some(found) = memmem::find(&file.read_at(at..end)?, &self.marker) {
                return Ok(at + found as u64 + MARKER_BYTES);
            }
            if end == file.length() {
                break;
            }
            at = end - (MARKER_BYTES - 1);
        }
        Ok(file.length())
    }

    /// The blocks from `start` on, as far as they begin before `end`: at least one, and not many more bytes than are read at
    /// once.
    pub(super) fn stretch(&self, file: &dyn FileBytes, start: u64, end: u64) -> Result<Stretch> {
        let mut bytes = file.read_at(start..file.length().min(start + PIECE_BYTES))?;
        let mut blocks = VecDeque::new();
        let mut at = 0_u64;
        loop {
            let offset = start + at;
            if offset >= end.min(file.length()) || (at > 0 && at == bytes.len() as u64) {
                break;
            }
            let damaged = |reason: &str| Error::input(format!("{}, block at byte {offset}: {reason}", file.name()));
            let mut cursor = Cursor { bytes: &bytes, at: at as usize };
            let sizes = cursor.number().zip(cursor.number());
            let Some((rows, size)) = sizes else {
                if at > 0 && start + (bytes.len() as u64) < file.length() {
                    break;
                }
                return Err(damaged("the file ends within it: it is truncated or damaged"));
            };
            if rows < 0 || size < 0 {
                return Err(damaged("it has a negative number of rows or bytes: it is damaged"));
            }
            let block_end = (cursor.at as u64).saturating_add(size as u64).saturating_add(MARKER_BYTES);
            if start.saturating_add(block_end) > file.length() {
                return Err(damaged("the file ends within it: it is truncated or damaged"));
            }
            if block_end > bytes.len() as u64 {
                if at > 0 {
                    break;
                }
                bytes = file.read_at(start..start + block_end)?;
            }
            if bytes[(block_end - MARKER_BYTES) as usize..block_end as usize] != self.marker {
                return Err(damaged("the marker behind it is not the file's: it is damaged"));
            }
            let rows = usize::try_from(rows).map_err(|_| damaged("it has more rows than this machine can count"))?;
            blocks.push_back(Block { rows, bytes: at as usize..block_end as usize });
            at = block_end;
        }
        Ok(Stretch { start, bytes: bytes.slice(..at as usize), blocks })
    }
}

/// Some blocks.
#[derive(Default)]
pub(super) struct Stretch {
    /// Where they begin in the file.
    pub(super) start: u64,
    pub(super) bytes: Bytes,
    pub(super) blocks: VecDeque<Block>,
}

/// One of them.
pub(super) struct Block {
    /// How many rows it says it has.
    pub(super) rows: usize,
    /// Which of the bytes it has.
    pub(super) bytes: Range<usize>,
}
