//! The frames of a data connection, to and from bytes; no I/O.
//!
//! A frame is a header of 40 bytes and a payload, all numbers little-endian:
//!
//! | bytes | what |
//! |---|---|
//! | 0..4 | length of the payload as it follows, at most 64 MiB |
//! | 4 | kind |
//! | 5 | flags: 1 = the payload is compressed with LZ4 |
//! | 6..8 | 0 |
//! | 8..20 | channel: edge, from, to |
//! | 20..24 | rows of a batch, else 0 |
//! | 24..28 | length of the payload before compression, at most 64 MiB |
//! | 28..36 | XXH3 (64 bits) of the payload as it follows |
//! | 36..40 | the low half of XXH3 (64 bits) of bytes 0..36 |
//!
//! The header has a checksum of its own, so that a wrong length is found before anything is
//! allocated for it or waited for.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use flott_core::{Error, Result};
use lz4_flex::block;
use xxhash_rust::xxh3::xxh3_64;

use crate::element::{Barrier, ChannelId, Element, Payload};

/// The length of a header.
pub const HEADER_BYTES: usize = 40;

/// The longest payload, before and after compression.
pub const PAYLOAD_BYTES_MAX: usize = 64 << 20;

/// A payload of at least this length is cut out of the buffer that it was read into, a shorter one
/// is copied: it would keep the whole buffer alive, and a queue of them would take many times the
/// memory that it accounts for.
const SLICE_BYTES_MIN: usize = 32 << 10;

/// A shorter payload is not worth compressing.
const COMPRESS_BYTES_MIN: usize = 512;

const CHECKED_BYTES: usize = 36;
const FLAG_LZ4: u8 = 1;

const KIND_OPEN: u8 = 1;
const KIND_CREDIT: u8 = 2;
const KIND_BATCH: u8 = 3;
const KIND_WATERMARK: u8 = 4;
const KIND_IDLE: u8 = 5;
const KIND_ACTIVE: u8 = 6;
const KIND_BARRIER: u8 = 7;
const KIND_END_OF_INPUT: u8 = 8;
const KIND_UNALIGNED_BARRIER: u8 = 9;

/// What one side tells the other about a channel.
#[derive(Debug)]
pub struct Frame {
    /// Which channel.
    pub channel: ChannelId,
    /// What of it.
    pub body: Body,
}

/// The content of a frame.
#[derive(Debug)]
pub enum Body {
    /// From the sender: the channel will be used; credit, please.
    Open,
    /// From the receiver: so many bytes more may be sent.
    Credit(u64),
    /// From the sender: the next element.
    Element(Element),
}

/// A frame as it goes over the wire.
#[derive(Clone, Debug)]
pub struct EncodedFrame {
    /// Comes first.
    pub header: [u8; HEADER_BYTES],
    /// Follows.
    pub payload: Bytes,
}

impl EncodedFrame {
    /// Whether it carries an element of `channel` that keeps its place in the order of the channel.
    pub(crate) fn is_element_of(&self, channel: ChannelId) -> bool {
        let [edge, from, to] = [channel.edge, channel.from, channel.to].map(u32::to_le_bytes);
        (KIND_BATCH..=KIND_END_OF_INPUT).contains(&self.header[4])
            && (&self.header[8..12], &self.header[12..16], &self.header[16..20]) == (&edge[..], &from[..], &to[..])
    }

    /// Whether it carries a barrier that keeps its place.
    pub(crate) fn is_barrier(&self) -> bool {
        self.header[4] == KIND_BARRIER
    }
}

/// The frame that opens a channel.
pub fn encode_open(channel: ChannelId) -> EncodedFrame {
    encode(channel, KIND_OPEN, Bytes::new())
}

/// The frame that grants credit.
pub fn encode_credit(channel: ChannelId, bytes: u64) -> EncodedFrame {
    encode(channel, KIND_CREDIT, Bytes::copy_from_slice(&bytes.to_le_bytes()))
}

/// The frame that carries an element, with its batch compressed if that is wished and makes it
/// smaller. Fails if the element cannot leave the process: its batch is not encoded, or too large.
pub fn encode_element(channel: ChannelId, element: Element, compress: bool) -> Result<EncodedFrame> {
    Ok(match element {
        Element::Batch(Payload::Encoded { data, rows }) => encode_batch(channel, data, rows, compress)?,
        Element::Batch(Payload::Local { .. }) => {
            return Err(Error::system(format!(
                "the channel of {channel} leads to another process, but got a batch that is not encoded"
            )));
        }
        Element::Watermark(watermark) => {
            encode(channel, KIND_WATERMARK, Bytes::copy_from_slice(&watermark.to_le_bytes()))
        }
        Element::Idle => encode(channel, KIND_IDLE, Bytes::new()),
        Element::Active => encode(channel, KIND_ACTIVE, Bytes::new()),
        Element::Barrier(barrier) => encode(channel, KIND_BARRIER, encode_barrier(Vec::new(), &barrier)?),
        Element::UnalignedBarrier { barrier, overtaken } => {
            let payload = encode_barrier(overtaken.to_le_bytes().to_vec(), &barrier)?;
            encode(channel, KIND_UNALIGNED_BARRIER, payload)
        }
        Element::EndOfInput => encode(channel, KIND_END_OF_INPUT, Bytes::new()),
    })
}

fn encode_barrier(mut payload: Vec<u8>, barrier: &Barrier) -> Result<Bytes> {
    serde_json::to_writer(&mut payload, barrier)
        .map_err(|error| Error::system(format!("encoding the barrier {barrier:?}: {error}")))?;
    Ok(payload.into())
}

fn encode_batch(channel: ChannelId, data: Bytes, rows: u32, compress: bool) -> Result<EncodedFrame> {
    if data.len() > PAYLOAD_BYTES_MAX {
        return Err(Error::input(format!(
            "a batch of {rows} rows takes {} bytes, and {PAYLOAD_BYTES_MAX} are the most that one worker can send \
             to another at once: make its records smaller",
            data.len()
        )));
    }
    let mut header = Header { channel, kind: KIND_BATCH, flags: 0, rows, size: data.len(), length: data.len() };
    if compress && data.len() >= COMPRESS_BYTES_MIN {
        let compressed = block::compress(&data);
        if compressed.len() < data.len() {
            header.flags = FLAG_LZ4;
            header.length = compressed.len();
            return Ok(header.seal(compressed.into()));
        }
    }
    Ok(header.seal(data))
}

fn encode(channel: ChannelId, kind: u8, payload: Bytes) -> EncodedFrame {
    Header { channel, kind, flags: 0, rows: 0, size: payload.len(), length: payload.len() }.seal(payload)
}

/// Takes the next frame off the front of `buffer`; `None` if it is not complete yet. After an error
/// the stream is lost.
pub fn decode(buffer: &mut BytesMut) -> Result<Option<Frame>> {
    let Some((fixed, rest)) = buffer.split_first_chunk::<HEADER_BYTES>() else { return Ok(None) };
    let (header, checksum) = Header::decode(fixed)?;
    let Some(payload) = rest.get(..header.length) else { return Ok(None) };
    if xxh3_64(payload) != checksum {
        return Err(corrupt(&format!("the payload of a frame on {} does not match its checksum", header.channel)));
    }
    let decompressed = (header.flags == FLAG_LZ4).then(|| decompress(payload, header.size)).transpose()?;
    buffer.advance(HEADER_BYTES);
    let payload = match decompressed {
        Some(decompressed) => {
            buffer.advance(header.length);
            decompressed
        }
        None if header.length >= SLICE_BYTES_MIN => buffer.split_to(header.length).freeze(),
        None => {
            let copy = Bytes::copy_from_slice(&buffer[..header.length]);
            buffer.advance(header.length);
            copy
        }
    };
    Ok(Some(Frame { channel: header.channel, body: decode_body(&header, payload)? }))
}

fn decompress(payload: &[u8], size: usize) -> Result<Bytes> {
    let mut data = vec![0; size];
    match block::decompress_into(payload, &mut data) {
        Ok(written) if written == size => Ok(data.into()),
        Ok(written) => Err(corrupt(&format!("a payload decompresses to {written} bytes instead of {size}"))),
        Err(error) => Err(corrupt(&format!("a payload does not decompress: {error}"))),
    }
}

fn decode_body(header: &Header, payload: Bytes) -> Result<Body> {
    let body = match header.kind {
        KIND_BATCH => Body::Element(Element::Batch(Payload::Encoded { data: payload, rows: header.rows })),
        KIND_BARRIER => Body::Element(Element::Barrier(decode_barrier(&payload)?)),
        KIND_UNALIGNED_BARRIER => {
            let Some((overtaken, barrier)) = payload.split_first_chunk::<4>() else {
                return Err(corrupt(&format!("a payload of {} bytes where a barrier belongs", payload.len())));
            };
            let overtaken = u32::from_le_bytes(*overtaken);
            Body::Element(Element::UnalignedBarrier { barrier: decode_barrier(barrier)?, overtaken })
        }
        KIND_CREDIT => Body::Credit(u64::from_le_bytes(fixed(&payload)?)),
        KIND_WATERMARK => Body::Element(Element::Watermark(i64::from_le_bytes(fixed(&payload)?))),
        kind => {
            fixed::<0>(&payload)?;
            match kind {
                KIND_OPEN => Body::Open,
                KIND_IDLE => Body::Element(Element::Idle),
                KIND_ACTIVE => Body::Element(Element::Active),
                KIND_END_OF_INPUT => Body::Element(Element::EndOfInput),
                _ => return Err(corrupt(&format!("frames of kind {kind} do not exist"))),
            }
        }
    };
    Ok(body)
}

fn decode_barrier(json: &[u8]) -> Result<Barrier> {
    serde_json::from_slice(json).map_err(|error| corrupt(&format!("not a barrier: {error}")))
}

fn fixed<const N: usize>(payload: &[u8]) -> Result<[u8; N]> {
    payload.try_into().map_err(|_| corrupt(&format!("a payload of {} bytes where {N} belong", payload.len())))
}

struct Header {
    channel: ChannelId,
    kind: u8,
    flags: u8,
    rows: u32,
    /// The length of the payload before compression.
    size: usize,
    /// The length of the payload as it follows.
    length: usize,
}

impl Header {
    fn seal(&self, payload: Bytes) -> EncodedFrame {
        let mut header = [0; HEADER_BYTES];
        let mut out = &mut header[..];
        // Lengths fit: batches are checked, everything else is small.
        out.put_u32_le(self.length as u32);
        out.put_u8(self.kind);
        out.put_u8(self.flags);
        out.put_u16_le(0);
        out.put_u32_le(self.channel.edge);
        out.put_u32_le(self.channel.from);
        out.put_u32_le(self.channel.to);
        out.put_u32_le(self.rows);
        out.put_u32_le(self.size as u32);
        out.put_u64_le(xxh3_64(&payload));
        let check = header_check(&header);
        header[CHECKED_BYTES..].copy_from_slice(&check.to_le_bytes());
        EncodedFrame { header, payload }
    }

    /// The header, and the checksum of the payload.
    fn decode(encoded: &[u8; HEADER_BYTES]) -> Result<(Self, u64)> {
        let mut rest = &encoded[..];
        let length = rest.get_u32_le() as usize;
        let kind = rest.get_u8();
        let flags = rest.get_u8();
        let zero = rest.get_u16_le();
        let channel = ChannelId { edge: rest.get_u32_le(), from: rest.get_u32_le(), to: rest.get_u32_le() };
        let rows = rest.get_u32_le();
        let size = rest.get_u32_le() as usize;
        let checksum = rest.get_u64_le();
        if rest.get_u32_le() != header_check(encoded) {
            return Err(corrupt("the header of a frame does not match its checksum"));
        }
        if length > PAYLOAD_BYTES_MAX || size > PAYLOAD_BYTES_MAX {
            return Err(corrupt(&format!(
                "a frame of {length} bytes ({size} uncompressed): the most is {PAYLOAD_BYTES_MAX}"
            )));
        }
        let is_consistent = match flags {
            0 => length == size,
            FLAG_LZ4 => kind == KIND_BATCH,
            _ => false,
        };
        if !is_consistent || zero != 0 {
            return Err(corrupt(&format!("a frame of kind {kind} with flags {flags}, {length} and {size} bytes")));
        }
        Ok((Self { channel, kind, flags, rows, size, length }, checksum))
    }
}

fn header_check(header: &[u8; HEADER_BYTES]) -> u32 {
    xxh3_64(&header[..CHECKED_BYTES]) as u32
}

fn corrupt(what: &str) -> Error {
    Error::system(format!("corrupt data: {what}"))
}

#[cfg(test)]
mod tests;
