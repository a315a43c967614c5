//! Pairs of a row of the chunk at hand and a row that is kept as bytes, of either of which there may be none.
//!
//! Joins collect all that a chunk could become, evaluate their condition over that once, and choose.

use arrow::array::{ArrayRef, BooleanArray, UInt32Array, new_null_array};
use arrow::compute::take;
use arrow::datatypes::DataType;
use flott_core::{Error, Result};

use crate::row::RowDecoder;

/// See the module's documentation.
#[derive(Default)]
pub struct Pairs {
    at_hand: Vec<Option<u32>>,
    /// The bytes of kept rows, one after the other.
    bytes: Vec<u8>,
    /// Where each pair's kept row is among them.
    kept: Vec<(usize, usize)>,
}

impl Pairs {
    /// Adds a pair.
    #[inline]
    pub fn add(&mut self, at_hand: Option<u32>, kept: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(kept);
        self.kept.push((start, self.bytes.len()));
        self.at_hand.push(at_hand);
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.kept.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// Forgets all, and keeps the memory.
    pub fn clear(&mut self) {
        self.at_hand.clear();
        self.bytes.clear();
        self.kept.clear();
    }

    /// The columns of the rows at hand, which are some of `columns`.
    pub fn columns_at_hand(&self, columns: &[ArrayRef]) -> Result<Vec<ArrayRef>> {
        let rows = UInt32Array::from(self.at_hand.clone());
        let gathered = columns.iter().map(|column| take(column, &rows, None));
        gathered.collect::<std::result::Result<_, _>>().map_err(|error| Error::system(format!("joining rows: {error}")))
    }

    /// The columns of no row at hand in any pair.
    pub fn none_at_hand(&self, columns: &[DataType]) -> Vec<ArrayRef> {
        columns.iter().map(|data_type| new_null_array(data_type, self.len())).collect()
    }

    /// The columns of the kept rows.
    pub fn columns_kept(&self, decoder: &RowDecoder) -> Result<Vec<ArrayRef>> {
        decoder.decode(self.kept.iter().map(|(start, end)| &self.bytes[*start..*end]))
    }
}

/// Pairs by the positions of their rows, of which the right one may be none. The pairs of a left row are together.
#[derive(Default)]
pub struct Choice {
    left: Vec<u32>,
    right: Vec<Option<u32>>,
}

impl Choice {
    /// Adds a pair.
    #[inline]
    pub fn add(&mut self, left: u32, right: Option<u32>) {
        self.left.push(left);
        self.right.push(right);
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.left.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.left.is_empty()
    }

    /// Forgets all, and keeps the memory.
    pub fn clear(&mut self) {
        self.left.clear();
        self.right.clear();
    }

    /// The positions, left and right.
    pub fn positions(&self) -> (UInt32Array, UInt32Array) {
        (UInt32Array::from(self.left.clone()), UInt32Array::from(self.right.clone()))
    }

    /// Leaves out the pairs for which `mask` is false; a left row of which none is left stays by itself if it `is_outer`.
    pub fn keep(&mut self, mask: &BooleanArray, is_outer: bool) {
        let mut kept = Self::default();
        let mut pair = 0;
        while pair < self.len() {
            let (left, before) = (self.left[pair], kept.len());
            while self.left.get(pair) == Some(&left) {
                if self.right[pair].is_some() && mask.value(pair) {
                    kept.add(left, self.right[pair]);
                }
                pair += 1;
            }
            if is_outer && kept.len() == before {
                kept.add(left, None);
            }
        }
        *self = kept;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outer_row_stays_when_no_pair_of_it_does() {
        let pairs = [(0, Some(5)), (0, Some(6)), (1, None), (2, Some(7)), (2, Some(8))];
        let mask = BooleanArray::from(vec![false, true, true, false, false]);
        for (is_outer, expected) in [(true, vec![(0, Some(6)), (1, None), (2, None)]), (false, vec![(0, Some(6))])] {
            let mut choice = Choice::default();
            pairs.iter().for_each(|(left, right)| choice.add(*left, *right));
            choice.keep(&mask, is_outer);
            assert_eq!(choice.left.iter().copied().zip(choice.right.iter().copied()).collect::<Vec<_>>(), expected);
        }
    }
}
