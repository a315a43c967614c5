//! Sessions, of which every key has its own.
//!
//! A key's open sessions are one value of state. The times at which they end are noted once each: a session that grows is
//! looked at too early once, and noted anew.

use std::sync::Arc;

use flott_chunk::Chunk;
use flott_core::Result;
use flott_core::time::Timestamp;
use flott_network::Barrier;
use flott_operators::operator::{OpenContext, OperatorSnapshot, StateVisitor};
use flott_state::{KeyedTable, TimeIndex, TimeWindow};
use flott_telemetry::TaskCounters;
use serde::{Deserialize, Serialize};

use super::{WindowClock, WindowOutput};
use crate::aggregates::grouping::Grouping;
use crate::aggregates::update::Changes;
use crate::aggregates::{Accumulators, Aggregates, Arena};
use crate::operator::{Emit, TableOperator};
use crate::operators::sessions::Sessions;
use crate::program::OperatorContext;
use crate::row::{KeyEncoder, RowBytes, hash_of};
use crate::spec::{TimeSpec, WindowAggregateSpec};

/// A session that is open.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Session {
    window: TimeWindow,
    accumulators: Accumulators,
}

/// See the module's documentation.
pub struct SessionAggregate {
    keys: KeyEncoder,
    table: KeyedTable<RowBytes, (), Vec<Session>>,
    aggregates: Aggregates,
    arena: Arena,
    grouping: Grouping,
    sessions: Sessions,
    time: TimeSpec,
    clock: WindowClock,
    /// When a session of a key may end; whether one does, its sessions tell.
    due: TimeIndex,
    output: WindowOutput,
    counters: Arc<TaskCounters>,
    key: RowBytes,
}

impl SessionAggregate {
    /// Makes it, without rows.
    ///
    /// # Errors
    /// An aggregate cannot be computed, or a column cannot be a key.
    pub fn new(spec: &WindowAggregateSpec, gap_ms: i64, cx: &OperatorContext<'_>) -> Result<Self> {
        let aggregates = Aggregates::new(&spec.aggregates, &cx.inputs[0], !spec.is_insert_only)?;
        Ok(Self {
            keys: KeyEncoder::new(&spec.keys, &cx.types(0))?,
            table: cx.task.table("sessions"),
            arena: aggregates.arena(),
            aggregates,
            grouping: Grouping::default(),
            sessions: Sessions::new(gap_ms.max(1)),
            time: spec.time.clone(),
            clock: WindowClock::new(&spec.time),
            due: TimeIndex::default(),
            output: WindowOutput::new(spec, cx)?,
            counters: Arc::clone(&cx.task.counters),
            key: RowBytes::default(),
        })
    }

    /// Puts out the sessions that are over, earliest first.
    fn fire(&mut self, out: &mut Emit<'_>) -> Result<()> {
        while let Some((time, mut hashes)) = self.due.pop_until(self.clock.now()) {
            hashes.sort_unstable();
            hashes.dedup();
            for hash in hashes {
                let keys: Vec<RowBytes> = self.table.find_by_hash(hash, &()).map(|(key, _)| key.clone()).collect();
                for key in keys {
                    self.end_sessions(hash, key, time);
                }
                if self.output.len() >= Chunk::ROWS_MAX {
                    self.output.send(&self.aggregates, &mut self.arena, out)?;
                }
            }
        }
        self.output.send(&self.aggregates, &mut self.arena, out)
    }

    /// Takes the sessions of a key out that end at a time, and notes when the next one does.
    fn end_sessions(&mut self, hash: u64, key: RowBytes, time: Timestamp) {
        let Some(sessions) = self.table.get(hash, &key, &()) else { return };
        let is_over = |session: &Session| session.window.max_timestamp() <= time;
        if sessions.iter().any(is_over)
            && let Some(sessions) = self.table.get_mut(hash, &key, &())
        {
            for mut session in std::mem::take(sessions) {
                if is_over(&session) {
                    self.arena.load(&mut session.accumulators);
                    self.output.add(key.clone(), session.window);
                } else {
                    sessions.push(session);
                }
            }
        }
        match self.table.get(hash, &key, &()).and_then(|sessions| sessions.first()) {
            Some(next) => self.due.insert(next.window.max_timestamp(), hash),
            None => drop(self.table.remove(hash, &key, &())),
        }
    }
}

impl TableOperator for SessionAggregate {
    fn process(&mut self, chunk: Chunk, _: &mut Emit<'_>) -> Result<()> {
        let times = self.clock.times(&self.time, &chunk)?;
        let keys = self.keys.encode(chunk.batch.columns(), chunk.len(), chunk.hashes.as_deref())?;
        self.grouping.assign(keys);
        self.sessions.clear();
        let mut kept: Vec<Vec<Session>> = Vec::with_capacity(self.grouping.len());
        for &first in &self.grouping.firsts {
            self.key.set(keys.rows.get(first as usize));
            let hash = keys.hashes[first as usize];
            let sessions = std::mem::take(self.table.get_or_insert_with(hash, &self.key, (), Vec::new));
            self.sessions.add_key(sessions.iter().map(|session| (session.window.start, session.window.end)));
            kept.push(sessions);
        }
        let now = self.clock.now();
        // A row that is taken back from a session that is not there makes none: it was late when it came.
        let mut late = 0;
        let numbers: Vec<Option<u32>> = (0..chunk.len())
            .map(|row| {
                let (key, time) = (self.grouping.groups[row] as usize, times.value(row));
                let is_there = |open: &crate::operators::sessions::Open| open.start <= time && time < open.end;
                if !chunk.kind(row).is_addition() && !self.sessions.keys[key].iter().any(is_there) {
                    return None;
                }
                let number = self.sessions.add(key, time, now);
                late += u64::from(number.is_none());
                number
            })
            .collect();
        self.counters.late_records_dropped.add(late);
        // What is kept of sessions that have rows, as groups.
        self.arena.clear();
        let mut groups = vec![0_u32; self.sessions.numbers()];
        for (key, opens) in self.sessions.keys.iter().enumerate() {
            for open in opens {
                let Some(number) = open.number else { continue };
                let mut parts = open.kept.iter();
                let group = match parts.next() {
                    Some(first) => self.arena.load(&mut kept[key][*first].accumulators),
                    None => self.arena.add(),
                };
                for part in parts {
                    self.aggregates.merge(&mut self.arena, group, &kept[key][*part].accumulators)?;
                }
                groups[number as usize] = group as u32;
            }
        }
        let group_of = |number: u32| groups[self.sessions.root(number) as usize];
        let of_rows: Vec<u32> = numbers.iter().map(|number| number.map_or(0, group_of)).collect();
        let signs: Vec<i8> = (0..chunk.len())
            .map(|row| {
                let Some(number) = numbers[row] else { return 0 };
                let rows = &mut self.arena.rows[group_of(number) as usize];
                let sign = if chunk.kind(row).is_addition() { 1 } else { -i8::from(*rows > 0) };
                *rows += i64::from(sign);
                sign
            })
            .collect();
        let is_plain = chunk.is_insert_only() && late == 0;
        let changes = Changes { groups: &of_rows, signs: (!is_plain).then_some(&signs[..]) };
        let bound = self.aggregates.bind(&chunk.batch)?;
        self.aggregates.update(&mut self.arena, &bound, 0..chunk.len(), changes)?;
        // Back into state.
        let keys = self.keys.last();
        for (key, opens) in self.sessions.keys.iter().enumerate() {
            let first = self.grouping.firsts[key] as usize;
            let hash = keys.hashes[first];
            self.key.set(keys.rows.get(first));
            let mut sessions: Vec<Session> = Vec::with_capacity(opens.len());
            for open in opens {
                let window = TimeWindow { start: open.start, end: open.end };
                let mut accumulators = match (open.number, open.kept.first()) {
                    (None, Some(place)) => std::mem::take(&mut kept[key][*place].accumulators),
                    _ => Accumulators::default(),
                };
                if let Some(number) = open.number {
                    let group = groups[number as usize] as usize;
                    if self.arena.rows[group] == 0 {
                        continue;
                    }
                    self.arena.store(group, &mut accumulators);
                    if open.kept.is_empty() {
                        self.due.insert(window.max_timestamp(), hash);
                    }
                }
                sessions.push(Session { window, accumulators });
            }
            if sessions.is_empty() {
                self.table.remove(hash, &self.key, &());
            } else if let Some(state) = self.table.get_mut(hash, &self.key, &()) {
                *state = sessions;
            }
        }
        self.arena.clear();
        Ok(())
    }

    fn open(&mut self, cx: &mut OpenContext<'_>) -> Result<()> {
        self.clock.clock.restore(cx)
    }

    fn states(&mut self, visit: StateVisitor<'_>) -> Result<()> {
        self.table.set_index_bytes(self.due.bytes());
        visit(&mut self.table)
    }

    fn restored(&mut self) -> Result<()> {
        let due = &mut self.due;
        self.table.visit(|key, (), sessions| {
            let hash = hash_of(key.as_slice());
            sessions.iter().for_each(|session| due.insert(session.window.max_timestamp(), hash));
            Ok(())
        })
    }

    fn on_watermark(&mut self, watermark: Timestamp, out: &mut Emit<'_>) -> Result<()> {
        if self.clock.on_watermark(watermark) { self.fire(out) } else { Ok(()) }
    }

    fn on_time(&mut self, now: Timestamp, out: &mut Emit<'_>) -> Result<Timestamp> {
        if self.clock.on_time(now) {
            self.fire(out)?;
        }
        Ok(self.clock.wish(self.due.next().map(|time| time.saturating_add(1))))
    }

    fn snapshot(&mut self, _: &Barrier, snapshot: &mut OperatorSnapshot<'_>) -> Result<()> {
        self.clock.clock.snapshot(snapshot)
    }
}
