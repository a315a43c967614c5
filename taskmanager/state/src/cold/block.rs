//! A block: neighbouring entries of one key group, found by their hash.
//!
//! The hashes stand together, so that a search touches a few cache lines; what they lead to is checked once, when
//! the block is read, and then taken as it is.

use std::cmp::Ordering;
use std::ops::Range;

use flott_core::key_group::KeyGroup;

/// The most that a block may take before compression. Only a single entry, or many with one hash, come near it.
pub(super) const BLOCK_BYTES_MAX: usize = 1 << 30;

/// What an entry takes beside its key and value.
pub(super) const ENTRY_HEAD_BYTES: usize = 16;

const TOMBSTONE: u32 = 1 << 31;

/// What the index knows of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BlockMeta {
    /// The hash of its first entry.
    pub(super) hash: u64,
    /// Where it is in the file.
    pub(super) offset: u64,
    /// What it takes in the file, without its checksum.
    pub(super) length: u32,
    /// What it takes in memory; it is compressed if that is more.
    pub(super) raw_length: u32,
    pub(super) entries: u32,
    pub(super) group: KeyGroup,
}

/// Where an entry's key and value are.
struct Head {
    end: usize,
    key_length: usize,
    is_tombstone: bool,
}

impl Head {
    #[inline]
    fn encode(&self) -> [u8; 8] {
        let tombstone = if self.is_tombstone { TOMBSTONE } else { 0 };
        let key = (self.key_length as u32) | tombstone;
        ((u64::from(key) << 32) | self.end as u64).to_le_bytes()
    }

    #[inline]
    fn decode(bytes: [u8; 8]) -> Self {
        let word = u64::from_le_bytes(bytes);
        let key = (word >> 32) as u32;
        Self { end: word as u32 as usize, key_length: (key & !TOMBSTONE) as usize, is_tombstone: key & TOMBSTONE != 0 }
    }
}

/// Collects the entries of a block.
#[derive(Default)]
pub(super) struct BlockBuilder {
    hashes: Vec<u8>,
    heads: Vec<u8>,
    area: Vec<u8>,
    first_hash: u64,
    last_key: Range<usize>,
}

impl BlockBuilder {
    /// Adds an entry; the caller sees to the order and to [`BLOCK_BYTES_MAX`].
    #[inline]
    pub(super) fn push(&mut self, hash: u64, key: &[u8], value: Option<&[u8]>) {
        if self.hashes.is_empty() {
            self.first_hash = hash;
        }
        self.hashes.extend_from_slice(&hash.to_le_bytes());
        let start = self.area.len();
        self.area.extend_from_slice(key);
        self.last_key = start..self.area.len();
        self.area.extend_from_slice(value.unwrap_or_default());
        let head = Head { end: self.area.len(), key_length: key.len(), is_tombstone: value.is_none() };
        self.heads.extend_from_slice(&head.encode());
    }

    pub(super) fn is_empty(&self) -> bool {
        self.hashes.is_empty()
    }

    pub(super) fn entries(&self) -> u32 {
        (self.hashes.len() / 8) as u32
    }

    pub(super) fn first_hash(&self) -> u64 {
        self.first_hash
    }

    pub(super) fn last_key(&self) -> &[u8] {
        &self.area[self.last_key.clone()]
    }

    /// What the block takes so far.
    pub(super) fn raw_length(&self) -> usize {
        self.hashes.len() + self.heads.len() + self.area.len()
    }

    /// Puts the block into `out` and starts the next.
    pub(super) fn take(&mut self, out: &mut Vec<u8>) {
        out.clear();
        for part in [&mut self.hashes, &mut self.heads, &mut self.area] {
            out.append(part);
        }
        self.last_key = 0..0;
    }
}

/// A block in memory.
#[derive(Debug, Default)]
pub(super) struct Block {
    /// Its content; [`Block::check`] must have agreed before entries are read from it.
    pub(super) bytes: Vec<u8>,
    entries: usize,
}

impl Block {
    /// Whether `bytes` are a block of so many entries.
    pub(super) fn check(&mut self, entries: u32) -> bool {
        let entries = entries as usize;
        let Some(area_length) =
            entries.checked_mul(ENTRY_HEAD_BYTES).and_then(|heads| self.bytes.len().checked_sub(heads))
        else {
            return false;
        };
        self.entries = entries;
        let mut start = 0;
        for head in self.heads() {
            let head = Head::decode(*head);
            let Some(length) = head.end.checked_sub(start) else { return false };
            if head.key_length > length || (head.is_tombstone && head.key_length != length) {
                return false;
            }
            start = head.end;
        }
        start == area_length
    }

    pub(super) fn entries(&self) -> usize {
        self.entries
    }

    /// What it holds of the heap.
    pub(super) fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    #[inline]
    fn hashes(&self) -> &[[u8; 8]] {
        self.bytes[..self.entries * 8].as_chunks::<8>().0
    }

    #[inline]
    fn heads(&self) -> &[[u8; 8]] {
        self.bytes[self.entries * 8..self.entries * ENTRY_HEAD_BYTES].as_chunks::<8>().0
    }

    #[inline]
    pub(super) fn hash(&self, index: usize) -> u64 {
        u64::from_le_bytes(self.hashes()[index])
    }

    /// The key of an entry, and its value unless it is a tombstone.
    #[inline]
    pub(super) fn entry(&self, index: usize) -> (&[u8], Option<&[u8]>) {
        let heads = self.heads();
        let start = index.checked_sub(1).map_or(0, |before| Head::decode(heads[before]).end);
        let head = Head::decode(heads[index]);
        let area = &self.bytes[self.entries * ENTRY_HEAD_BYTES..];
        let (key, value) = area[start..head.end].split_at(head.key_length);
        (key, (!head.is_tombstone).then_some(value))
    }

    /// The entries with this hash, which are in the order of their keys.
    #[inline]
    pub(super) fn range_of(&self, hash: u64) -> Range<usize> {
        let hashes = self.hashes();
        let start = hashes.partition_point(|bytes| u64::from_le_bytes(*bytes) < hash);
        let wanted = hash.to_le_bytes();
        let equal = hashes[start..].iter().take_while(|bytes| **bytes == wanted).count();
        start..start + equal
    }

    /// The entry with this key among those of `range`, which have one hash.
    #[inline]
    pub(super) fn find(&self, range: Range<usize>, key: &[u8]) -> Option<usize> {
        let Range { mut start, mut end } = range;
        while start < end {
            let middle = start + (end - start) / 2;
            match self.entry(middle).0.cmp(key) {
                Ordering::Less => start = middle + 1,
                Ordering::Greater => end = middle,
                Ordering::Equal => return Some(middle),
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Row<'a> = (u64, &'a [u8], Option<&'a [u8]>);

    fn block(entries: &[Row<'_>]) -> Block {
        let mut builder = BlockBuilder::default();
        for (hash, key, value) in entries {
            builder.push(*hash, key, *value);
        }
        let count = builder.entries();
        let mut block = Block::default();
        builder.take(&mut block.bytes);
        assert!(builder.is_empty());
        assert!(block.check(count));
        block
    }

    #[test]
    fn entries_are_found_by_hash_and_key() {
        let block = block(&[
            (3, b"a", Some(b"1")),
            (5, b"", Some(b"")),
            (5, b"b", None),
            (5, b"bb", Some(b"22")),
            (u64::MAX, b"c", Some(b"3")),
        ]);
        let find = |hash, key: &[u8]| block.find(block.range_of(hash), key).map(|index| block.entry(index).1);
        assert_eq!(block.range_of(5), 1..4);
        assert_eq!(find(3, b"a"), Some(Some(&b"1"[..])));
        assert_eq!(find(5, b""), Some(Some(&b""[..])));
        assert_eq!(find(5, b"b"), Some(None));
        assert_eq!(find(5, b"bb"), Some(Some(&b"22"[..])));
        assert_eq!(find(u64::MAX, b"c"), Some(Some(&b"3"[..])));
        assert_eq!((find(3, b"b"), find(4, b"a"), find(5, b"ba")), (None, None, None));
    }

    #[test]
    fn what_contradicts_itself_is_no_block() {
        let good = block(&[(1, b"ab", Some(b"cd")), (2, b"e", None)]);
        let mut bad = Block { bytes: good.bytes.clone(), entries: 0 };
        assert!(!bad.check(1), "bytes are left over");
        assert!(!bad.check(3), "there are fewer");
        assert!(!bad.check(u32::MAX), "there are far fewer");
        for (at, to, what) in [
            (16, 9, "the first entry ends behind the second"),
            (20, 5, "a key is longer than its entry"),
            (24, 4, "a tombstone is shorter than its key"),
            (24, 6, "the last entry ends behind the block"),
            (31, 0x40, "a key is longer than any block"),
        ] {
            bad.bytes.clone_from(&good.bytes);
            bad.bytes[at] = to;
            assert!(!bad.check(2), "{what}");
        }
    }
}
