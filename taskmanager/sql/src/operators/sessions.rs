//! Sessions: as long as rows of a key come within a gap of each other. Those that overlap or touch are one.
//!
//! For a chunk it is first found out which sessions its rows make and join, in the order in which they come. What is kept of
//! sessions is touched afterwards, once each.
//!
//! A key's open sessions are one value of state. The times at which they end are noted once each: a session that grows is
//! looked at too early once, and noted anew.

use flott_core::time::Timestamp;
use flott_core::{Data, Result};
use flott_operators::operator::StateVisitor;
use flott_state::{KeyedTable, TimeIndex, TimeWindow};
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use crate::aggregates::grouping::Grouping;
use crate::program::OperatorContext;
use crate::row::{Keys, RowBytes, hash_of};

/// A session that is open, and what is kept of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Session<T> {
    /// From its first row to the gap after its last.
    pub window: TimeWindow,
    /// What is kept.
    pub content: T,
}

/// The open sessions of all keys.
pub struct OpenSessions<T> {
    table: KeyedTable<RowBytes, (), Vec<Session<T>>>,
    /// When a session of a key may end; whether one does, its sessions tell.
    due: TimeIndex,
    /// The keys of the chunk at hand.
    grouping: Grouping,
    /// Their sessions.
    sessions: Sessions,
    key: RowBytes,
}

impl<T: Data> OpenSessions<T> {
    /// None yet, that end so long after their last row.
    pub fn new(gap_ms: i64, cx: &OperatorContext<'_>) -> Self {
        Self {
            table: cx.task.table("sessions"),
            due: TimeIndex::default(),
            grouping: Grouping::default(),
            sessions: Sessions::new(gap_ms.max(1)),
            key: RowBytes::default(),
        }
    }

    /// Takes the sessions of a chunk's keys out, in their order. They are to be [put back](Self::store).
    pub fn load(&mut self, keys: &Keys) -> Vec<Vec<Session<T>>> {
        self.grouping.assign(keys);
        self.sessions.clear();
        let mut kept = Vec::with_capacity(self.grouping.len());
        for &first in &self.grouping.firsts {
            self.key.set(keys.rows.get(first as usize));
            let hash = keys.hashes[first as usize];
            let sessions = std::mem::take(self.table.get_or_insert_with(hash, &self.key, (), Vec::new));
            self.sessions.add_key(sessions.iter().map(|session| (session.window.start, session.window.end)));
            kept.push(sessions);
        }
        kept
    }

    /// A row of the chunk comes. Returns the number of its session, or none if it is late.
    pub fn add(&mut self, row: usize, time: Timestamp, now: Timestamp) -> Option<u32> {
        self.sessions.add(self.grouping.groups[row] as usize, time, now)
    }

    /// Whether a session of the key of a row has a time.
    pub fn has(&self, row: usize, time: Timestamp) -> bool {
        let opens = &self.sessions.keys[self.grouping.groups[row] as usize];
        opens.iter().any(|open| open.start <= time && time < open.end)
    }

    /// The sessions of the chunk's keys, as its rows have made them.
    pub fn of_chunk(&self) -> &Sessions {
        &self.sessions
    }

    /// Puts sessions of the chunk's keys back with what `content` says is kept of each, by the number of the key. Without that
    /// there is no session any more.
    pub fn store(&mut self, keys: &Keys, mut content: impl FnMut(usize, &Open) -> Option<T>) {
        for (number, opens) in self.sessions.keys.iter().enumerate() {
            let first = self.grouping.firsts[number] as usize;
            let hash = keys.hashes[first];
            self.key.set(keys.rows.get(first));
            let mut sessions: Vec<Session<T>> = Vec::with_capacity(opens.len());
            for open in opens {
                let Some(content) = content(number, open) else { continue };
                let window = TimeWindow { start: open.start, end: open.end };
                if open.kept.is_empty() {
                    self.due.insert(window.max_timestamp(), hash);
                }
                sessions.push(Session { window, content });
            }
            if sessions.is_empty() {
                self.table.remove(hash, &self.key, &());
            } else if let Some(state) = self.table.get_mut(hash, &self.key, &()) {
                *state = sessions;
            }
        }
    }

    /// Gives the sessions that are over by `now` to `take`, earliest first.
    pub fn end(&mut self, now: Timestamp, mut take: impl FnMut(&RowBytes, Session<T>) -> Result<()>) -> Result<()> {
        while let Some((time, mut hashes)) = self.due.pop_until(now) {
            hashes.sort_unstable();
            hashes.dedup();
            for hash in hashes {
                let keys: Vec<RowBytes> = self.table.find_by_hash(hash, &()).map(|(key, _)| key.clone()).collect();
                keys.iter().try_for_each(|key| self.end_of_key(hash, key, time, &mut take))?;
            }
        }
        Ok(())
    }

    /// Takes the sessions of a key out that end at a time, and notes when the next one does.
    fn end_of_key(
        &mut self,
        hash: u64,
        key: &RowBytes,
        time: Timestamp,
        take: &mut impl FnMut(&RowBytes, Session<T>) -> Result<()>,
    ) -> Result<()> {
        let is_over = |session: &Session<T>| session.window.max_timestamp() <= time;
        if self.table.get(hash, key, &()).is_some_and(|sessions| sessions.iter().any(is_over))
            && let Some(sessions) = self.table.get_mut(hash, key, &())
        {
            for session in std::mem::take(sessions) {
                if is_over(&session) {
                    take(key, session)?;
                } else {
                    sessions.push(session);
                }
            }
        }
        match self.table.get(hash, key, &()).and_then(|sessions| sessions.first()) {
            Some(next) => self.due.insert(next.window.max_timestamp(), hash),
            None => drop(self.table.remove(hash, key, &())),
        }
        Ok(())
    }

    /// When the first session may end.
    pub fn next_end(&self) -> Option<Timestamp> {
        self.due.next().map(|time| time.saturating_add(1))
    }

    /// Shows them as keyed state.
    pub fn states(&mut self, visit: StateVisitor<'_>) -> Result<()> {
        self.table.set_index_bytes(self.due.bytes());
        visit(&mut self.table)
    }

    /// The state has been restored.
    pub fn restored(&mut self) -> Result<()> {
        let Self { table, due, .. } = self;
        due.clear();
        table.visit(|key, (), sessions| {
            let hash = hash_of(key.as_slice());
            sessions.iter().for_each(|session| due.insert(session.window.max_timestamp(), hash));
            Ok(())
        })
    }
}

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
