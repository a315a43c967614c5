//! Sessions: as long as rows of a key come within a gap of each other. Those that overlap or touch are one.
//!
//! For a chunk it is first found out which sessions its rows make and join, in the order in which they come. What is kept of
//! sessions is touched afterwards, once each.

use flott_core::time::Timestamp;
use smallvec::SmallVec;

/// A session of a key, as a chunk makes it.
#[derive(Clone, Debug)]
pub struct Open {
    /// The time of its first row.
    pub start: Timestamp,
    /// The gap after that of its last.
    pub end: Timestamp,
    /// Which of the sessions that were kept of the key have become this one, in their order.
    pub kept: SmallVec<[usize; 1]>,
    /// Its number among those of the chunk, if the chunk has rows of it.
    pub number: Option<u32>,
}

/// The sessions of all keys that a chunk has rows of.
#[derive(Debug)]
pub struct Sessions {
    gap: i64,
    /// Those of each key, in the order of time.
    pub keys: Vec<Vec<Open>>,
    /// For each number, the one that it has become part of, or itself.
    parents: Vec<u32>,
}

impl Sessions {
    /// Sessions that end so long after their last row.
    pub fn new(gap: i64) -> Self {
        Self { gap, keys: Vec::new(), parents: Vec::new() }
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.keys.clear();
        self.parents.clear();
    }

    /// The next key, with the sessions that are kept of it: their starts and ends in the order of time.
    pub fn add_key(&mut self, kept: impl Iterator<Item = (Timestamp, Timestamp)>) {
        let open = |(place, (start, end))| Open { start, end, kept: SmallVec::from_slice(&[place]), number: None };
        self.keys.push(kept.enumerate().map(open).collect());
    }

    /// A row comes. Returns the number of its session, or none if that is over by `now`: then the row is late.
    pub fn add(&mut self, key: usize, time: Timestamp, now: Timestamp) -> Option<u32> {
        let opens = &mut self.keys[key];
        let (mut start, mut end) = (time, time.saturating_add(self.gap));
        // Those that touch it: they are in order, and do not touch each other.
        let first = opens.partition_point(|open| open.end < start);
        let behind = first + opens[first..].partition_point(|open| open.start <= end);
        for open in &opens[first..behind] {
            (start, end) = (start.min(open.start), end.max(open.end));
        }
        if end.saturating_sub(1) <= now {
            return None;
        }
        let number = match opens[first..behind].iter().find_map(|open| open.number) {
            Some(number) => number,
            None => {
                self.parents.push(self.parents.len() as u32);
                self.parents.len() as u32 - 1
            }
        };
        let mut kept = SmallVec::new();
        for open in &opens[first..behind] {
            kept.extend(open.kept.iter().copied());
            if let Some(other) = open.number {
                self.parents[other as usize] = number;
            }
        }
        opens.splice(first..behind, [Open { start, end, kept, number: Some(number) }]);
        Some(number)
    }

    /// The number of the session that one has become part of.
    pub fn root(&self, number: u32) -> u32 {
        let mut number = number;
        while self.parents[number as usize] != number {
            number = self.parents[number as usize];
        }
        number
    }

    /// How many numbers there are.
    pub fn numbers(&self) -> usize {
        self.parents.len()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn sessions_are_runs_of_times_within_the_gap(
            kept in prop::collection::vec(0..60_i64, 0..6), new in prop::collection::vec(0..60_i64, 1..12), gap in 1..9_i64,
        ) {
            let runs = |mut times: Vec<i64>| {
                times.sort_unstable();
                let mut runs: Vec<(i64, i64)> = Vec::new();
                for time in times {
                    match runs.last_mut() {
                        Some(run) if time <= run.1 => run.1 = time + gap,
                        _ => runs.push((time, time + gap)),
                    }
                }
                runs
            };
            let mut sessions = Sessions::new(gap);
            let before = runs(kept.clone());
            sessions.add_key(before.iter().copied());
            let numbers: Vec<u32> = new.iter().map(|time| sessions.add(0, *time, i64::MIN).unwrap()).collect();
            let opens = &sessions.keys[0];
            let spans: Vec<(i64, i64)> = opens.iter().map(|open| (open.start, open.end)).collect();
            prop_assert_eq!(spans, runs(kept.iter().chain(&new).copied().collect()));
            for open in opens {
                let parts: Vec<usize> =
                    (0..before.len()).filter(|part| before[*part].0 >= open.start && before[*part].1 <= open.end).collect();
                prop_assert_eq!(&open.kept[..], &parts[..]);
            }
            for (time, number) in new.iter().zip(numbers) {
                let open = opens.iter().find(|open| open.start <= *time && *time < open.end).unwrap();
                prop_assert_eq!(open.number, Some(sessions.root(number)));
            }
        }
    }

    #[test]
    fn a_row_is_late_if_the_session_that_it_would_make_is_over() {
        let mut sessions = Sessions::new(5);
        sessions.add_key([(14, 25)].into_iter());
        assert_eq!(sessions.add(0, 3, 20), None);
        assert!(sessions.add(0, 12, 20).is_some(), "it makes an open one longer");
        assert_eq!(sessions.keys[0][0].start, 12);
    }
}
