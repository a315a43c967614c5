//! Writes a run.

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write};

use flott_core::key_group::KeyGroup;
use flott_core::{Error, Result};
use lz4_flex::block::{CompressTable, compress_into_with_table, get_maximum_output_size};

use super::ColdOptions;
use super::block::{BLOCK_BYTES_MAX, BlockBuilder, BlockMeta, ENTRY_HEAD_BYTES};
use super::directory::OwnedFile;
use super::filter::Filter;
use super::format::{Footer, MAGIC, encode_index};
use super::run::Run;

/// Blocks can be tiny, if there are many key groups: they are written together.
const BUFFER_BYTES: usize = 128 << 10;

/// A run on its way to the disk. Its file is removed if this is dropped before the run is added to its store.
pub struct RunWriter<W: Write = BufWriter<File>> {
    out: W,
    location: OwnedFile,
    block_bytes: usize,
    compress: bool,
    block: BlockBuilder,
    /// Key group and hash of the last entry.
    last: (KeyGroup, u64),
    raw: Vec<u8>,
    compressed: Vec<u8>,
    table: CompressTable,
    filter: Filter,
    blocks: Vec<BlockMeta>,
    /// What is written so far.
    length: u64,
    entries: u64,
}

impl RunWriter {
    /// Creates the file.
    pub(super) fn create(location: OwnedFile, options: &ColdOptions, expected: u64) -> Result<Self> {
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(location.path());
        let file = file.map_err(|error| location.write_error(&error))?;
        Self::new(BufWriter::with_capacity(BUFFER_BYTES, file), location, options, expected)
    }

    /// The run, unless it has no entries.
    pub(super) fn finish(mut self) -> Result<Option<Run>> {
        if self.entries == 0 {
            return Ok(None);
        }
        self.end()?;
        let file = self.out.into_inner().map_err(|error| self.location.write_error(error.error()))?;
        Ok(Some(Run::new(file, self.location, self.length, self.filter, self.blocks)))
    }
}

impl<W: Write> RunWriter<W> {
    /// Begins a run of about `expected` entries.
    pub(super) fn new(out: W, location: OwnedFile, options: &ColdOptions, expected: u64) -> Result<Self> {
        let mut writer = Self {
            out,
            location,
            block_bytes: options.block_bytes,
            compress: options.compress,
            block: BlockBuilder::default(),
            last: (0, 0),
            raw: Vec::new(),
            compressed: Vec::new(),
            table: CompressTable::default(),
            filter: Filter::for_entries(expected),
            blocks: Vec::new(),
            length: 0,
            entries: 0,
        };
        writer.write(MAGIC)?;
        Ok(writer)
    }

    /// Adds an entry, or a tombstone if there is no value: whatever older runs say of the key, it is gone. Entries
    /// come in the order of their key groups, then hashes, then keys, each key once.
    pub fn push(&mut self, group: KeyGroup, hash: u64, key: &[u8], value: Option<&[u8]>) -> Result<()> {
        let here = (group, hash);
        let is_first = self.entries == 0;
        if !is_first && (here < self.last || (here == self.last && key <= self.block.last_key())) {
            return Err(Error::system(format!(
                "an entry of key group {group} with hash {hash:016x} is out of order in {}",
                self.location.path().display()
            )));
        }
        let bytes = ENTRY_HEAD_BYTES.saturating_add(key.len()).saturating_add(value.map_or(0, <[u8]>::len));
        // Entries with one hash are never divided, so that a lookup reads one block.
        let is_end = group != self.last.0 || self.block.raw_length().saturating_add(bytes) > self.block_bytes;
        if !is_first && here != self.last && is_end {
            self.end_block()?;
        }
        if self.block.raw_length().saturating_add(bytes) > BLOCK_BYTES_MAX {
            return Err(Error::input(format!(
                "an entry of {bytes} bytes is too large for state on disk, which takes up to {BLOCK_BYTES_MAX}: divide \
                 the value, for example into a MapState"
            )));
        }
        self.block.push(hash, key, value);
        self.filter.insert(group, hash);
        self.last = here;
        self.entries += 1;
        Ok(())
    }

    /// How many entries were added.
    pub fn entries(&self) -> u64 {
        self.entries
    }

    /// What was written to disk so far.
    pub fn disk_bytes(&self) -> u64 {
        self.length
    }

    /// What it keeps in memory.
    pub fn memory_bytes(&self) -> u64 {
        let index = self.blocks.capacity() * size_of::<BlockMeta>();
        (self.filter.bytes().len() + index + self.raw.capacity() + self.compressed.capacity() + BUFFER_BYTES) as u64
    }

    fn end_block(&mut self) -> Result<()> {
        let (hash, entries) = (self.block.first_hash(), self.block.entries());
        self.block.take(&mut self.raw);
        let raw_length = self.raw.len();
        let mut length = raw_length;
        if self.compress {
            let bound = get_maximum_output_size(raw_length);
            if self.compressed.len() < bound {
                self.compressed.resize(bound, 0);
            }
            length = compress_into_with_table(&self.raw, &mut self.compressed, &mut self.table)
                .map_or(raw_length, |compressed| compressed.min(raw_length));
        }
        // A block that compression does not make smaller is stored as it is.
        let stored = if length < raw_length { &self.compressed } else { &self.raw };
        let checksum = crc32fast::hash(&stored[..length]);
        let written = self.out.write_all(&stored[..length]);
        written.map_err(|error| self.location.write_error(&error))?;
        self.blocks.push(BlockMeta {
            group: self.last.0,
            hash,
            entries,
            length: length as u32,
            raw_length: raw_length as u32,
            offset: self.length,
        });
        self.length += length as u64;
        self.write(&checksum.to_le_bytes())
    }

    /// Writes what comes behind the last entry.
    pub(super) fn end(&mut self) -> Result<()> {
        if !self.block.is_empty() {
            self.end_block()?;
        }
        let blocks_length = self.length - MAGIC.len() as u64;
        self.filter.shrink_to(self.entries);
        let index = encode_index(&self.blocks);
        let mut checksum = crc32fast::Hasher::new();
        checksum.update(self.filter.bytes());
        checksum.update(&index);
        let footer = Footer {
            blocks_length,
            filter_length: self.filter.bytes().len() as u64,
            index_length: index.len() as u64,
            entries: self.entries,
            checksum: checksum.finalize(),
        };
        let filter = self.out.write_all(self.filter.bytes());
        filter.map_err(|error| self.location.write_error(&error))?;
        self.length += footer.filter_length;
        self.write(&index)?;
        self.write(&footer.encode())?;
        self.out.flush().map_err(|error| self.location.write_error(&error))
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.out.write_all(bytes).map_err(|error| self.location.write_error(&error))?;
        self.length += bytes.len() as u64;
        Ok(())
    }
}
