//! One run: an immutable file whose index and filter are in memory.

use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

use flott_core::Result;
use flott_core::key_group::KeyGroup;
use flott_core::magic::other_version;
use lz4_flex::block::decompress_into;

use super::block::{Block, BlockMeta};
use super::directory::OwnedFile;
use super::filter::Filter;
use super::format::{CHECKSUM_BYTES, FOOTER_BYTES, Footer, MAGIC, decode_index};

/// What a run has of one key group.
#[derive(Clone, Debug)]
pub(super) struct GroupPart {
    pub(super) group: KeyGroup,
    /// Its blocks.
    pub(super) blocks: Range<usize>,
    /// Its entries, tombstones among them.
    pub(super) entries: u64,
    /// Its bytes in the file.
    pub(super) bytes: u64,
}

/// Refuses a run of another version. Whether the file is a run at all is for [`super::ColdStore::adopt_run`] to see.
///
/// # Errors
/// What goes behind the file's name: its version and the way out, or why it cannot be read.
pub fn check_version(file: &Path) -> Result<()> {
    let mut magic = Vec::new();
    File::open(file)?.take(MAGIC.len() as u64).read_to_end(&mut magic)?;
    other_version(MAGIC, &magic).map_or(Ok(()), Err)
}

/// A file of sorted entries, removed with this value.
#[derive(Debug)]
pub(super) struct Run {
    file: File,
    location: OwnedFile,
    length: u64,
    filter: Filter,
    blocks: Vec<BlockMeta>,
    groups: Vec<GroupPart>,
}

impl Run {
    /// A run that was just written.
    pub(super) fn new(file: File, location: OwnedFile, length: u64, filter: Filter, blocks: Vec<BlockMeta>) -> Self {
        let mut groups: Vec<GroupPart> = Vec::new();
        for (index, block) in blocks.iter().enumerate() {
            let bytes = u64::from(block.length) + CHECKSUM_BYTES as u64;
            match groups.last_mut() {
                Some(part) if part.group == block.group => {
                    part.blocks.end = index + 1;
                    part.entries += u64::from(block.entries);
                    part.bytes += bytes;
                }
                _ => groups.push(GroupPart {
                    group: block.group,
                    blocks: index..index + 1,
                    entries: u64::from(block.entries),
                    bytes,
                }),
            }
        }
        Self { file, location, length, filter, blocks, groups }
    }

    /// A file that may be anything. All but its blocks is checked now, each block when it is read.
    pub(super) fn open(location: OwnedFile) -> Result<Self> {
        let unreadable = |error: io::Error| location.read_error(0, &error);
        let file = File::open(location.path()).map_err(unreadable)?;
        let length = file.metadata().map_err(unreadable)?.len();
        let read = |buffer: &mut [u8], offset| {
            file.read_exact_at(buffer, offset).map_err(|error| location.read_error(offset, &error))
        };

        let Some(footer_at) = length.checked_sub(FOOTER_BYTES as u64) else {
            return Err(location.damaged(0, "it is shorter than the footer of a run"));
        };
        let mut magic = [0; MAGIC.len()];
        read(&mut magic, 0)?;
        if magic != *MAGIC {
            let other = other_version(MAGIC, &magic).map(|error| error.context(location.path().display()));
            return Err(other.unwrap_or_else(|| location.damaged(0, "it does not begin with FLOTTRN1")));
        }
        let mut footer = [0; FOOTER_BYTES];
        read(&mut footer, footer_at)?;
        let footer = Footer::decode(&footer).map_err(|what| location.damaged(footer_at, what))?;
        if footer.file_length() != Some(length) {
            return Err(location.damaged(footer_at, "the lengths in the footer do not add up to that of the file"));
        }

        // Both are parts of the file, so that neither is longer than it.
        let filter_at = MAGIC.len() as u64 + footer.blocks_length;
        let index_at = filter_at + footer.filter_length;
        let mut filter = vec![0; footer.filter_length as usize];
        read(&mut filter, filter_at)?;
        let mut index = vec![0; footer.index_length as usize];
        read(&mut index, index_at)?;
        let mut checksum = crc32fast::Hasher::new();
        checksum.update(&filter);
        checksum.update(&index);
        if checksum.finalize() != footer.checksum {
            return Err(location.damaged(filter_at, "filter and index do not match their checksum"));
        }
        let Some(filter) = Filter::from_bytes(filter) else {
            return Err(location.damaged(filter_at, "the filter is not made of whole blocks"));
        };
        let blocks = decode_index(&index, footer.blocks_length, footer.entries)
            .map_err(|(at, what)| location.damaged(index_at + at as u64, what))?;
        Ok(Self::new(file, location, length, filter, blocks))
    }

    pub(super) fn location(&self) -> &OwnedFile {
        &self.location
    }

    /// The length of the file.
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// What its blocks take in the file.
    pub(super) fn data_bytes(&self) -> u64 {
        self.groups.iter().map(|part| part.bytes).sum()
    }

    /// What it keeps in memory.
    pub(super) fn memory_bytes(&self) -> usize {
        self.filter.bytes().len()
            + self.blocks.capacity() * size_of::<BlockMeta>()
            + self.groups.capacity() * size_of::<GroupPart>()
    }

    /// What it has of each of its key groups.
    pub(super) fn groups(&self) -> &[GroupPart] {
        &self.groups
    }

    pub(super) fn has_group(&self, group: KeyGroup) -> bool {
        self.groups.binary_search_by_key(&group, |part| part.group).is_ok()
    }

    /// All its blocks.
    pub(super) fn all_blocks(&self) -> Range<usize> {
        0..self.blocks.len()
    }

    /// The blocks of a key group.
    pub(super) fn blocks_of(&self, group: KeyGroup) -> Range<usize> {
        match self.groups.binary_search_by_key(&group, |part| part.group) {
            Ok(index) => self.groups[index].blocks.clone(),
            Err(_) => 0..0,
        }
    }

    /// What the index knows of a block.
    pub(super) fn block(&self, index: usize) -> BlockMeta {
        self.blocks[index]
    }

    /// The only block that can have entries with this hash, unless it is certain that there are none.
    #[inline]
    pub(super) fn block_with(&self, group: KeyGroup, hash: u64) -> Option<usize> {
        if !self.filter.may_contain(group, hash) {
            return None;
        }
        let index = self.blocks.partition_point(|block| (block.group, block.hash) <= (group, hash)).checked_sub(1)?;
        (self.blocks[index].group == group).then_some(index)
    }

    /// Reads a block. After an error `block` holds nothing that may be used.
    pub(super) fn read_block(&self, index: usize, block: &mut Block, scratch: &mut Vec<u8>) -> Result<()> {
        let meta = self.blocks[index];
        if meta.length == meta.raw_length {
            self.read_checked(&meta, &mut block.bytes)?;
        } else {
            self.read_checked(&meta, scratch)?;
            resize(&mut block.bytes, meta.raw_length as usize);
            match decompress_into(scratch.as_slice(), &mut block.bytes) {
                Ok(length) if length == block.bytes.len() => {}
                Ok(length) => {
                    let what = format!("a block decompresses to {length} bytes instead of {}", meta.raw_length);
                    return Err(self.location.damaged(meta.offset, what));
                }
                Err(error) => {
                    return Err(self.location.damaged(meta.offset, format!("a block does not decompress: {error}")));
                }
            }
        }
        if !block.check(meta.entries) {
            return Err(self.location.damaged(meta.offset, "a block contradicts itself"));
        }
        Ok(())
    }

    /// Reads what the file has of a block, and removes its checksum if it matches.
    fn read_checked(&self, meta: &BlockMeta, buffer: &mut Vec<u8>) -> Result<()> {
        // The index has been checked against the length of the file.
        resize(buffer, meta.length as usize + CHECKSUM_BYTES);
        self.file.read_exact_at(buffer, meta.offset).map_err(|error| self.location.read_error(meta.offset, &error))?;
        let (body, checksum) = buffer.split_at(meta.length as usize);
        if crc32fast::hash(body).to_le_bytes() != *checksum {
            return Err(self.location.damaged(meta.offset, "a block does not match its checksum"));
        }
        buffer.truncate(meta.length as usize);
        Ok(())
    }
}

/// Gives a buffer that is used again and again this length, and no more memory than it needs.
fn resize(buffer: &mut Vec<u8>, length: usize) {
    buffer.reserve_exact(length.saturating_sub(buffer.len()));
    buffer.resize(length, 0);
}
