//! Rows of a key in order, of which those that count are all there: what comes into the frame of each, and what leaves it.

use std::ops::Range;

use flott_core::time::Timestamp;

use super::positions::{Extent, Place};
use super::times::SortTimes;
use super::work::Work;
use crate::spec::OverFrame;

/// Rows of one place in the order.
#[derive(Debug)]
struct Peers {
    /// Behind the last of them.
    end: usize,
    /// Where frames are times.
    time: Timestamp,
}

/// See the module's documentation.
#[derive(Debug)]
pub struct Ordered {
    times: Option<SortTimes>,
    /// The rows' numbers.
    rows: Vec<u32>,
    peers: Vec<Peers>,
    /// Which of them are put out.
    pub put_out: Range<usize>,
    /// The place of the row before the first.
    pub before: Place,
    /// How many rows the key has.
    pub all: usize,
}

impl Ordered {
    /// No rows yet. `times` reads their sort keys, where frames are times.
    pub fn new(times: Option<SortTimes>) -> Self {
        Self { times, rows: Vec::new(), peers: Vec::new(), put_out: 0..0, before: Place::default(), all: 0 }
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Adds the rows of the next place in the order.
    pub fn add(&mut self, sort: &[u8], rows: impl Iterator<Item = u32>) {
        self.rows.extend(rows);
        let time = self.times.map_or(0, |times| times.millis(sort));
        self.peers.push(Peers { end: self.rows.len(), time });
    }

    /// Plans that rows are put out, with their frames in `group`.
    pub fn plan(&self, frame: OverFrame, group: u32, work: &mut Work) {
        let shifts = work.shifts();
        let (mut place, mut start) = (self.before, 0);
        // The first rows that are still in the frame, where it is a time.
        let (mut oldest, mut kept) = (0, 0);
        for peers in &self.peers {
            if start >= self.put_out.end {
                return;
            }
            if let OverFrame::Range(limit) = frame {
                let since = limit.map_or(Timestamp::MIN, |limit| peers.time.saturating_sub(limit));
                while let Some(gone) = self.peers.get(oldest).filter(|other| other.time < since) {
                    self.rows[kept..gone.end].iter().for_each(|row| work.leave(*row, group));
                    (oldest, kept) = (oldest + 1, gone.end);
                }
                self.rows[start..peers.end].iter().for_each(|row| work.enter(*row, group));
            }
            let with_peers = self.before.row_number as u64 + peers.end as u64;
            let extent = Extent { with_peers, all: self.all as u64 };
            for index in start..peers.end {
                if let OverFrame::Rows(limit) = frame {
                    work.enter(self.rows[index], group);
                    let limit = limit.and_then(|limit| usize::try_from(limit).ok());
                    if let Some(oldest) = limit.and_then(|limit| index.checked_sub(limit)?.checked_sub(1)) {
                        work.leave(self.rows[oldest], group);
                    }
                }
                place = place.next(index > start);
                if self.put_out.contains(&index) {
                    let shifted = shifts.iter().map(|by| {
                        let other = (index as i64).checked_add(*by).and_then(|other| usize::try_from(other).ok());
                        other.and_then(|other| self.rows.get(other).copied())
                    });
                    work.put_out(self.rows[index], group, place, shifted, extent);
                }
            }
            start = peers.end;
        }
    }
}
