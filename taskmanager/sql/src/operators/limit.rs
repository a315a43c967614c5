//! `Limit` of rows that are only inserted: the first that come. One subtask counts.
//!
//! Of rows that also change, those count that are there: that is a [`TopN`](super::top_n) without an order.

use flott_checkpoint::Redistribution;
use flott_core::Result;
use flott_network::Barrier;
use flott_operators::operator::{OpenContext, OperatorSnapshot};

use crate::operator::{Emit, TableOperator};
use flott_chunk::Chunk;

/// The name of the operator state with the number of rows seen.
const SEEN: &str = "seen";

/// See the module's documentation.
pub struct Limit {
    offset: u64,
    end: u64,
    seen: u64,
}

impl Limit {
    /// `limit` rows behind `offset` others.
    pub fn new(offset: u64, limit: u64) -> Self {
        Self { offset, end: offset.saturating_add(limit), seen: 0 }
    }
}

impl TableOperator for Limit {
    fn process(&mut self, chunk: Chunk, out: &mut Emit<'_>) -> Result<()> {
        let rows = chunk.len() as u64;
        let skipped = self.offset.saturating_sub(self.seen).min(rows);
        let taken = self.end.saturating_sub(self.seen).min(rows);
        self.seen = self.seen.saturating_add(rows);
        if taken > skipped {
            out.emit(chunk.slice(skipped as usize, (taken - skipped) as usize))?;
        }
        Ok(())
    }

    fn open(&mut self, cx: &mut OpenContext<'_>) -> Result<()> {
        let seen: Vec<u64> = cx.restored.take_state(cx.operator, SEEN)?;
        self.seen = seen.into_iter().max().unwrap_or(0);
        Ok(())
    }

    fn snapshot(&mut self, _: &Barrier, snapshot: &mut OperatorSnapshot<'_>) -> Result<()> {
        snapshot.add(SEEN, Redistribution::Union, &[self.seen])
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::operators::testing::{Bed, columns, int, row};
    use crate::spec::OperatorSpec;

    proptest! {
        #[test]
        fn the_rows_behind_the_offset_come_and_no_more(
            sizes in prop::collection::vec((1..5_i64, any::<bool>()), 0..8),
            (offset, limit) in (0..6_u64, prop_oneof![0..6_u64, Just(u64::MAX)]),
        ) {
            let schema = columns(&[("n", int())]);
            let spec = OperatorSpec::Limit { offset, limit, is_insert_only: true };
            let mut bed = Bed::new(spec, std::slice::from_ref(&schema), &schema);
            let mut next = 0;
            for (size, restarts) in sizes {
                bed.insert(0, &(next..next + size).map(|n| row![n]).collect::<Vec<_>>());
                next += size;
                if restarts {
                    bed.restart(1);
                }
            }
            let wanted = (0..next as u64).skip(offset as usize).take(usize::try_from(limit).unwrap_or(usize::MAX));
            prop_assert_eq!(bed.take(), wanted.map(|n| format!("+I\t{n}")).collect::<Vec<_>>());
        }
    }
}
