//! A filter that says which entries a run certainly does not have: a Bloom filter in blocks of 256 bits, so that a
//! question costs one cache line.
//!
//! An entry's block is `(high 32 bits of its hash × blocks) >> 32`. Entries come in the order of their hashes, so a
//! run is written without jumping about in its filter, and a filter that turns out to be too large is halved by
//! joining its neighbours. In each of the eight little-endian words of the block the entry has one bit: bit
//! `(seed × salt of the word) >> 27`, where `seed` is the lower half of `x ^ (x >> 64)` and `x` is the 128-bit product
//! of `hash ^ (group << 16)` and `MULTIPLIER`.

use flott_core::key_group::KeyGroup;

const BITS_PER_ENTRY: u64 = 10;
const BLOCK_BYTES: usize = 32;
const BLOCK_BITS: u64 = 8 * BLOCK_BYTES as u64;

/// A filter of more blocks than this has a multiple of it, so that it can be halved six times.
const GRANULE_BLOCKS: u64 = 64;

/// The fraction of the golden ratio.
const MULTIPLIER: u64 = 0x9E37_79B9_7F4A_7C15;

/// The first digits of the fraction of pi, made odd.
const SALTS: [u32; 8] =
    [0x243F_6A89, 0x85A3_08D3, 0x1319_8A2F, 0x0370_7345, 0xA409_3823, 0x299F_31D1, 0x082E_FA99, 0xEC4E_6C89];

/// Which entries may be there.
#[derive(Debug)]
pub(super) struct Filter {
    bytes: Vec<u8>,
}

impl Filter {
    /// An empty filter, large enough for so many entries. If there will be more, it answers "maybe" more often.
    pub(super) fn for_entries(entries: u64) -> Self {
        let blocks = match blocks_for(entries) {
            few if few <= GRANULE_BLOCKS => few,
            many => many.next_multiple_of(GRANULE_BLOCKS),
        };
        Self { bytes: vec![0; blocks as usize * BLOCK_BYTES] }
    }

    /// The filter that has this form, if it is one.
    pub(super) fn from_bytes(bytes: Vec<u8>) -> Option<Self> {
        let is_filter = !bytes.is_empty() && bytes.len().is_multiple_of(BLOCK_BYTES);
        is_filter.then_some(Self { bytes })
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Adds an entry.
    #[inline]
    pub(super) fn insert(&mut self, group: KeyGroup, hash: u64) {
        let (blocks, _) = self.bytes.as_chunks_mut::<BLOCK_BYTES>();
        let block = &mut blocks[place(hash, blocks.len())];
        let bits = bits(group, hash);
        for (word, bit) in block.as_chunks_mut::<4>().0.iter_mut().zip(bits) {
            *word = (u32::from_le_bytes(*word) | bit).to_le_bytes();
        }
    }

    /// Whether the entry may have been added; if it was, then surely.
    #[inline]
    pub(super) fn may_contain(&self, group: KeyGroup, hash: u64) -> bool {
        let (blocks, _) = self.bytes.as_chunks::<BLOCK_BYTES>();
        let block = &blocks[place(hash, blocks.len())];
        let mut missing = 0;
        for (word, bit) in block.as_chunks::<4>().0.iter().zip(bits(group, hash)) {
            missing |= bit & !u32::from_le_bytes(*word);
        }
        missing == 0
    }

    /// Makes the filter smaller if it was made for many more entries than there are.
    pub(super) fn shrink_to(&mut self, entries: u64) {
        let wanted = blocks_for(entries) as usize;
        loop {
            let blocks = self.bytes.len() / BLOCK_BYTES;
            if !blocks.is_multiple_of(2) || blocks / 2 < wanted {
                break;
            }
            for block in 0..blocks / 2 {
                for byte in block * BLOCK_BYTES..(block + 1) * BLOCK_BYTES {
                    let first = byte + block * BLOCK_BYTES;
                    self.bytes[byte] = self.bytes[first] | self.bytes[first + BLOCK_BYTES];
                }
            }
            self.bytes.truncate(blocks / 2 * BLOCK_BYTES);
        }
        self.bytes.shrink_to_fit();
    }
}

fn blocks_for(entries: u64) -> u64 {
    // More than 2^31 blocks are 64 GiB of filter.
    entries.saturating_mul(BITS_PER_ENTRY).div_ceil(BLOCK_BITS).clamp(1, 1 << 31)
}

#[inline]
fn place(hash: u64, blocks: usize) -> usize {
    (((hash >> 32) * blocks as u64) >> 32) as usize
}

#[inline]
fn bits(group: KeyGroup, hash: u64) -> [u32; 8] {
    let product = u128::from(hash ^ (u64::from(group) << 16)) * u128::from(MULTIPLIER);
    let seed = (product >> 64) as u32 ^ product as u32;
    SALTS.map(|salt| 1 << (seed.wrapping_mul(salt) >> 27))
}

#[cfg(test)]
mod tests {
    use flott_core::hash::stable_hash;

    use super::*;

    fn false_positives(filter: &Filter) -> usize {
        (0..10_000_u64).filter(|i| filter.may_contain(3, stable_hash(&(i + 1_000_000)))).count()
    }

    #[test]
    fn what_was_added_is_found_and_little_else() {
        let mut filter = Filter::for_entries(20_000);
        for i in 0..20_000_u64 {
            filter.insert(3, stable_hash(&i));
        }
        assert!((0..20_000_u64).all(|i| filter.may_contain(3, stable_hash(&i))));
        assert!(false_positives(&filter) < 250, "{} of 10000", false_positives(&filter));
        let other_group = (0..10_000_u64).filter(|i| filter.may_contain(4, stable_hash(i))).count();
        assert!(other_group < 250, "{other_group} of 10000");
    }

    #[test]
    fn a_filter_for_too_many_becomes_smaller_and_stays_as_good() {
        let mut filter = Filter::for_entries(100_000);
        let large = filter.bytes().len();
        for i in 0..10_000_u64 {
            filter.insert(3, stable_hash(&i));
        }
        filter.shrink_to(10_000);
        assert!(filter.bytes().len() * 7 < large, "{} of {large} bytes", filter.bytes().len());
        assert!((0..10_000_u64).all(|i| filter.may_contain(3, stable_hash(&i))));
        assert!(false_positives(&filter) < 250, "{} of 10000", false_positives(&filter));
    }

    #[test]
    fn a_filter_of_nothing_says_no() {
        let filter = Filter::for_entries(0);
        assert_eq!(filter.bytes().len(), BLOCK_BYTES);
        assert!(!filter.may_contain(0, 0) && !filter.may_contain(u16::MAX, u64::MAX));
        assert!(Filter::from_bytes(Vec::new()).is_none() && Filter::from_bytes(vec![0; 31]).is_none());
    }
}
