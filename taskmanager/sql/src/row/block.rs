//! Many rows that are kept together, as one piece of memory.

use serde::{Deserialize, Serialize};

use super::decode::take_length;
use super::encode::write_length;

/// Rows that are added one by one and read all together: each its length as LEB128, then its bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowBlock {
    #[serde(with = "serde_bytes")]
    data: Vec<u8>,
}

impl RowBlock {
    /// Adds a row.
    #[inline]
    pub fn push(&mut self, row: &[u8]) {
        write_length(row.len(), &mut self.data);
        self.data.extend_from_slice(row);
    }

    /// All rows, in the order in which they were added. What is damaged ends them.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let mut rest = &self.data[..];
        std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            let length = take_length(&mut rest).ok()?;
            let (row, behind) = rest.split_at_checked(length)?;
            rest = behind;
            Some(row)
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn rows_come_out_as_they_went_in(rows in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 0..10)) {
            let mut block = RowBlock::default();
            rows.iter().for_each(|row| block.push(row));
            prop_assert_eq!(block.iter().map(<[u8]>::to_vec).collect::<Vec<_>>(), rows);
        }

        #[test]
        fn what_is_damaged_ends_them(data in prop::collection::vec(any::<u8>(), 0..40)) {
            let block = RowBlock { data };
            prop_assert!(block.iter().count() <= 40);
        }
    }
}
