//! The file of what was in flight: what was sent to a subtask before a barrier and not processed before its snapshot.
//!
//! ```text
//! file   = "FLOTTCH1" record*
//! record = channel(u32) kind(u8) content
//! kind 1, rows sent by key, and 2, other rows:  content = rows(u32) length(u64) encoded batch
//! kind 3, a watermark:                          content = timestamp(i64)
//! ```
//!
//! Integers are little-endian, batches are in the form of [`flott_operators::exchange`]. The channel is its position among
//! the inputs that the manifest lists, or [`u32::MAX`] for rows that were restored from channels which the subtask does
//! not have. Records of one channel are in its order. The file's length and SHA-256 stand in the manifest.
//!
//! The end of a channel is not in it, nor that a channel is idle: whoever sent that says it again after a restore.

use bytes::{Buf, Bytes};
use flott_core::time::Timestamp;
use flott_core::{Error, Result, magic};
use flott_network::Element;
use flott_operators::task::PayloadCodec;

const MAGIC: &[u8; 8] = b"FLOTTCH1";
const NO_CHANNEL: u32 = u32::MAX;

const KIND_ROWS_BY_KEY: u8 = 1;
const KIND_ROWS: u8 = 2;
const KIND_WATERMARK: u8 = 3;

/// Something that was in flight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct InFlight {
    /// The position of its channel, if the subtask has it.
    pub(super) channel: Option<usize>,
    pub(super) content: Content,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Content {
    Rows { is_keyed: bool, rows: u32, data: Bytes },
    Watermark(Timestamp),
}

/// Writes the file.
#[derive(Debug)]
pub(super) struct Writer {
    bytes: Vec<u8>,
    rows: u64,
}

impl Writer {
    pub(super) fn new() -> Self {
        Self { bytes: MAGIC.to_vec(), rows: 0 }
    }

    /// How many rows it has.
    pub(super) fn rows(&self) -> u64 {
        self.rows
    }

    /// Whether nothing was added.
    pub(super) fn is_empty(&self) -> bool {
        self.bytes.len() == MAGIC.len()
    }

    /// The file's content.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Adds an element of a channel, if it is one that has to be saved.
    pub(super) fn add(
        &mut self,
        channel: usize,
        is_keyed: bool,
        element: &Element,
        codec: &PayloadCodec,
    ) -> Result<()> {
        match element {
            Element::Batch(payload) => {
                let rows = payload.rows();
                self.begin_rows(channel as u32, is_keyed, rows);
                let length_at = self.bytes.len();
                self.bytes.extend_from_slice(&0_u64.to_le_bytes());
                let start = self.bytes.len();
                (codec.encode)(payload, &mut self.bytes)?;
                let length = (self.bytes.len() - start) as u64;
                self.bytes[length_at..start].copy_from_slice(&length.to_le_bytes());
            }
            Element::Watermark(watermark) => self.add_watermark(channel as u32, *watermark),
            Element::Idle
            | Element::Active
            | Element::Barrier(_)
            | Element::UnalignedBarrier { .. }
            | Element::EndOfInput => {}
        }
        Ok(())
    }

    /// Adds what was restored and is still in flight.
    pub(super) fn add_again(&mut self, in_flight: &InFlight) {
        let channel = in_flight.channel.map_or(NO_CHANNEL, |channel| channel as u32);
        match &in_flight.content {
            Content::Rows { is_keyed, rows, data } => {
                self.begin_rows(channel, *is_keyed, *rows);
                self.bytes.extend_from_slice(&(data.len() as u64).to_le_bytes());
                self.bytes.extend_from_slice(data);
            }
            Content::Watermark(watermark) => self.add_watermark(channel, *watermark),
        }
    }

    fn begin_rows(&mut self, channel: u32, is_keyed: bool, rows: u32) {
        self.bytes.extend_from_slice(&channel.to_le_bytes());
        self.bytes.push(if is_keyed { KIND_ROWS_BY_KEY } else { KIND_ROWS });
        self.bytes.extend_from_slice(&rows.to_le_bytes());
        self.rows += u64::from(rows);
    }

    fn add_watermark(&mut self, channel: u32, watermark: Timestamp) {
        self.bytes.extend_from_slice(&channel.to_le_bytes());
        self.bytes.push(KIND_WATERMARK);
        self.bytes.extend_from_slice(&watermark.to_le_bytes());
    }
}

/// Reads a file of a subtask with this many channels.
pub(super) fn read(file: &Bytes, channels: usize) -> Result<Vec<InFlight>> {
    let mut rest = file.clone();
    if rest.get(..MAGIC.len()) != Some(&MAGIC[..]) {
        return Err(magic::other_version(MAGIC, file).unwrap_or_else(|| damaged("its first bytes are not FLOTTCH1")));
    }
    rest.advance(MAGIC.len());
    let mut records = Vec::new();
    while !rest.is_empty() {
        let channel = match take(&mut rest, 4)?.get_u32_le() {
            NO_CHANNEL => None,
            channel if (channel as usize) < channels => Some(channel as usize),
            channel => return Err(damaged(&format!("channel {channel} of {channels}"))),
        };
        let content = match take(&mut rest, 1)?.get_u8() {
            kind @ (KIND_ROWS_BY_KEY | KIND_ROWS) => {
                let rows = take(&mut rest, 4)?.get_u32_le();
                let length = take(&mut rest, 8)?.get_u64_le();
                let data = take(&mut rest, usize::try_from(length).unwrap_or(usize::MAX))?;
                Content::Rows { is_keyed: kind == KIND_ROWS_BY_KEY, rows, data }
            }
            KIND_WATERMARK => Content::Watermark(take(&mut rest, 8)?.get_i64_le()),
            kind => return Err(damaged(&format!("records of kind {kind} do not exist"))),
        };
        records.push(InFlight { channel, content });
    }
    Ok(records)
}

fn take(rest: &mut Bytes, length: usize) -> Result<Bytes> {
    if rest.len() < length {
        return Err(damaged("it is truncated"));
    }
    Ok(rest.split_to(length))
}

fn damaged(reason: &str) -> Error {
    Error::input(format!("a file of records in flight is damaged: {reason}"))
}

#[cfg(test)]
mod tests {
    use flott_core::Batch;
    use flott_network::Payload;
    use proptest::prelude::*;

    use super::*;

    fn written() -> Vec<u8> {
        let codec = PayloadCodec::of::<u16>();
        let batch = Batch { hashes: vec![7, 8], ..Batch::from_rows(vec![1_u16, 2]) };
        let mut writer = Writer::new();
        assert!(writer.is_empty());
        let local = Element::Batch(Payload::Local { batch: Box::new(batch), rows: 2, bytes: 4 });
        writer.add(3, true, &local, &codec).unwrap();
        writer.add(0, false, &Element::Watermark(-9), &codec).unwrap();
        writer.add(0, false, &Element::EndOfInput, &codec).unwrap();
        let encoded = Element::Batch(Payload::Encoded { data: Bytes::from_static(&[0, 5, 0]), rows: 1 });
        writer.add(0, false, &encoded, &codec).unwrap();
        assert_eq!(writer.rows(), 3);
        writer.into_bytes()
    }

    #[test]
    fn the_format_is_the_golden_one() {
        // Retained checkpoints must stay readable: a change here needs another magic word, and a reader of both.
        let mut golden = b"FLOTTCH1\x03\0\0\0\x01\x02\0\0\0\x15\0\0\0\0\0\0\0".to_vec();
        golden.extend(b"\x02\x01\0\x02\0\x07\0\0\0\0\0\0\0\x08\0\0\0\0\0\0\0");
        golden.extend(b"\0\0\0\0\x03\xf7\xff\xff\xff\xff\xff\xff\xff");
        golden.extend(b"\0\0\0\0\x02\x01\0\0\0\x03\0\0\0\0\0\0\0\0\x05\0");
        assert_eq!(written(), golden);
    }

    #[test]
    fn what_was_written_is_read_and_written_again() {
        let file = Bytes::from(written());
        let records = read(&file, 4).unwrap();
        assert_eq!(records.len(), 3);
        assert_eq!(records[1], InFlight { channel: Some(0), content: Content::Watermark(-9) });
        let last = Content::Rows { is_keyed: false, rows: 1, data: Bytes::from_static(&[0, 5, 0]) };
        assert_eq!(records[2].content, last);
        let mut again = Writer::new();
        records.iter().for_each(|record| again.add_again(record));
        assert_eq!(again.into_bytes(), file);
        let mut without = Writer::new();
        without.add_again(&InFlight { channel: None, content: last });
        assert_eq!(read(&without.into_bytes().into(), 0).unwrap()[0].channel, None);
    }

    #[test]
    fn another_version_is_refused_by_its_number() {
        let error = read(&Bytes::from_static(b"FLOTTCH2"), 4).unwrap_err().message;
        assert!(error.starts_with("it has format version 2, this build reads versions up to 1"), "{error}");
    }

    proptest! {
        #[test]
        fn damaged_files_are_errors_at_most(at in any::<prop::sample::Index>(), change in 1_u8..) {
            let mut file = written();
            let at = at.index(file.len());
            // The store has checked the hash: what matters here is that nothing panics.
            let _ = read(&file[..at].to_vec().into(), 4);
            file[at] ^= change;
            let _ = read(&file.into(), 4);
        }
    }
}
