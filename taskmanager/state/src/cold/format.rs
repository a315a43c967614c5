//! What stands around the blocks of a run file: its magic, its index and its footer.

use super::block::{BLOCK_BYTES_MAX, BlockMeta, ENTRY_HEAD_BYTES};

/// The first and the last bytes of a run file; a later format has others.
pub(super) const MAGIC: &[u8; 8] = b"FLOTTRN1";

/// What a block's CRC-32 takes.
pub(super) const CHECKSUM_BYTES: usize = 4;

/// What the index takes for a block.
const META_BYTES: usize = 22;

pub(super) const FOOTER_BYTES: usize = 48;

/// LZ4 makes nothing smaller than by this factor, so a length that claims more is no reason to allocate.
const COMPRESSION_MAX: usize = 255;

/// The end of a run file, from which it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Footer {
    pub(super) blocks_length: u64,
    pub(super) filter_length: u64,
    pub(super) index_length: u64,
    pub(super) entries: u64,
    /// The CRC-32 of filter and index.
    pub(super) checksum: u32,
}

impl Footer {
    pub(super) fn encode(&self) -> [u8; FOOTER_BYTES] {
        let mut bytes = [0; FOOTER_BYTES];
        let lengths = [self.blocks_length, self.filter_length, self.index_length, self.entries];
        for (place, length) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(lengths) {
            *place = length.to_le_bytes();
        }
        bytes[32..36].copy_from_slice(&self.checksum.to_le_bytes());
        let own = crc32fast::hash(&bytes[..36]);
        bytes[36..40].copy_from_slice(&own.to_le_bytes());
        bytes[40..].copy_from_slice(MAGIC);
        bytes
    }

    /// The footer, unless these bytes are something else.
    pub(super) fn decode(bytes: &[u8; FOOTER_BYTES]) -> Result<Self, &'static str> {
        if bytes[40..] != MAGIC[..] {
            return Err("it does not end with FLOTTRN1");
        }
        if crc32fast::hash(&bytes[..36]).to_le_bytes() != bytes[36..40] {
            return Err("the footer does not match its checksum");
        }
        Self::read(Fields(bytes)).ok_or("the footer is too short")
    }

    fn read(mut fields: Fields<'_>) -> Option<Self> {
        Some(Self {
            blocks_length: fields.u64()?,
            filter_length: fields.u64()?,
            index_length: fields.u64()?,
            entries: fields.u64()?,
            checksum: fields.u32()?,
        })
    }

    /// What the whole file takes, if there can be such a file.
    pub(super) fn file_length(&self) -> Option<u64> {
        ((MAGIC.len() + FOOTER_BYTES) as u64)
            .checked_add(self.blocks_length)?
            .checked_add(self.filter_length)?
            .checked_add(self.index_length)
    }
}

/// The form of an index.
pub(super) fn encode_index(blocks: &[BlockMeta]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(blocks.len() * META_BYTES);
    for block in blocks {
        bytes.extend_from_slice(&block.group.to_le_bytes());
        bytes.extend_from_slice(&block.hash.to_le_bytes());
        bytes.extend_from_slice(&block.entries.to_le_bytes());
        bytes.extend_from_slice(&block.length.to_le_bytes());
        bytes.extend_from_slice(&block.raw_length.to_le_bytes());
    }
    bytes
}

/// The blocks of an index, which fill `blocks_length` bytes of the file and have `entries` entries. An error says
/// where in `bytes` and what.
pub(super) fn decode_index(
    bytes: &[u8],
    blocks_length: u64,
    entries: u64,
) -> Result<Vec<BlockMeta>, (usize, &'static str)> {
    let mut blocks: Vec<BlockMeta> = Vec::with_capacity(bytes.len() / META_BYTES);
    let mut offset = MAGIC.len() as u64;
    let mut entries_found = 0;
    for (index, chunk) in bytes.chunks(META_BYTES).enumerate() {
        let at = index * META_BYTES;
        let block = decode_meta(chunk, offset).ok_or((at, "the index ends within a block"))?;
        let (length, raw_length) = (block.length as usize, block.raw_length as usize);
        if block.entries == 0 || block.entries as usize > raw_length / ENTRY_HEAD_BYTES {
            return Err((at, "the index has a block with an impossible number of entries"));
        }
        if raw_length > BLOCK_BYTES_MAX || length > raw_length || raw_length / COMPRESSION_MAX > length {
            return Err((at, "the index has a block with an impossible length"));
        }
        if blocks.last().is_some_and(|last| (last.group, last.hash) >= (block.group, block.hash)) {
            return Err((at, "the index is out of order"));
        }
        // The index is in memory, so there are too few blocks for an overflow.
        offset += (length + CHECKSUM_BYTES) as u64;
        entries_found += u64::from(block.entries);
        blocks.push(block);
    }
    if offset - MAGIC.len() as u64 != blocks_length {
        return Err((bytes.len(), "the blocks of the index do not fill their place"));
    }
    if entries_found != entries {
        return Err((bytes.len(), "the blocks of the index do not have as many entries as the footer says"));
    }
    Ok(blocks)
}

fn decode_meta(bytes: &[u8], offset: u64) -> Option<BlockMeta> {
    let mut fields = Fields(bytes);
    Some(BlockMeta {
        group: u16::from_le_bytes(fields.take()?),
        hash: fields.u64()?,
        entries: fields.u32()?,
        length: fields.u32()?,
        raw_length: fields.u32()?,
        offset,
    })
}

/// Takes little-endian numbers off the front of bytes.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (field, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*field)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCKS: [BlockMeta; 2] = [
        BlockMeta { group: 3, hash: 7, entries: 2, length: 50, raw_length: 60, offset: 8 },
        BlockMeta { group: 3, hash: 9, entries: 1, length: 20, raw_length: 20, offset: 62 },
    ];

    #[test]
    fn index_and_footer_come_back() {
        assert_eq!(decode_index(&encode_index(&BLOCKS), 78, 3), Ok(BLOCKS.to_vec()));
        assert_eq!(decode_index(&[], 0, 0), Ok(Vec::new()));
        let footer = Footer { blocks_length: 78, filter_length: 32, index_length: 44, entries: 3, checksum: 5 };
        assert_eq!(Footer::decode(&footer.encode()), Ok(footer));
        assert_eq!(footer.file_length(), Some(8 + 78 + 32 + 44 + 48));
    }

    #[test]
    fn lengths_that_cannot_be_are_refused_before_anything_is_allocated_for_them() {
        let what = |change: fn(&mut BlockMeta)| {
            let mut blocks = BLOCKS;
            change(&mut blocks[1]);
            decode_index(&encode_index(&blocks), 78, 3).unwrap_err().1
        };
        assert!(what(|block| block.raw_length = 1 << 30).contains("impossible length"));
        assert!(what(|block| block.raw_length = u32::MAX).contains("impossible length"));
        assert!(what(|block| block.length = 21).contains("impossible length"));
        assert!(what(|block| block.entries = 0).contains("impossible number"));
        assert!(what(|block| block.entries = 2).contains("impossible number"));
        assert!(what(|block| block.hash = 7).contains("out of order"));
        assert!(what(|block| block.group = 2).contains("out of order"));
        assert!(what(|block| (block.length, block.raw_length) = (30, 30)).contains("fill their place"));
        assert_eq!(decode_index(&encode_index(&BLOCKS)[..43], 78, 3), Err((22, "the index ends within a block")));
        assert!(decode_index(&encode_index(&BLOCKS), 78, 4).unwrap_err().1.contains("as many entries"));

        let huge = Footer { blocks_length: u64::MAX, filter_length: 32, index_length: 44, entries: 3, checksum: 5 };
        assert_eq!(huge.file_length(), None);
    }
}
