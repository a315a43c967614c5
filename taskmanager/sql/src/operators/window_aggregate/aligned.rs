//! Windows that are the same for all keys: TUMBLE, HOP, CUMULATE. And windows that rows have already.
//!
//! State is kept by key and [pane](crate::windows). When a window closes, its panes are put together, and those that no
//! later window has go. A row counts in every window that is still open; if there is none, it is late.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow::array::AsArray;
use flott_chunk::Chunk;
use flott_core::Result;
use flott_core::time::Timestamp;
use flott_network::Barrier;
use flott_operators::operator::{OpenContext, OperatorSnapshot, StateVisitor};
use flott_state::{KeyedTable, TimeWindow};
use flott_telemetry::TaskCounters;
use hashbrown::HashTable;

use super::{WindowClock, WindowOutput, panes};
use crate::aggregates::grouping::Grouping;
use crate::aggregates::partial::rows_of;
use crate::aggregates::{Accumulators, Aggregates, Arena};
use crate::operator::{Emit, TableOperator};
use crate::program::OperatorContext;
use crate::row::{KeyEncoder, RowBytes, hash_of};
use crate::spec::{TimeSpec, WindowAggregateSpec};
use crate::windows::AlignedWindows;

/// See the module's documentation.
pub struct AlignedAggregate {
    keys: KeyEncoder,
    table: KeyedTable<RowBytes, TimeWindow, Accumulators>,
    aggregates: Aggregates,
    arena: Arena,
    grouping: Grouping,
    time: TimeSpec,
    clock: WindowClock,
    /// None if rows have windows already: each of those is a pane.
    windows: Option<AlignedWindows>,
    /// The hashes of the keys that have something in each pane. A key that has lost all its rows may still be noted.
    panes: BTreeMap<TimeWindow, Vec<u64>>,
    /// Ends and starts of windows that are to close. Made of the panes, as those are of the table.
    due: BTreeSet<(Timestamp, Timestamp)>,
    has_partials: bool,
    output: WindowOutput,
    counters: Arc<TaskCounters>,
    key: RowBytes,
}

impl AlignedAggregate {
    /// Makes it, without rows.
    ///
    /// # Errors
    /// An aggregate cannot be computed, a column cannot be a key, or the windows are none.
    pub fn new(spec: &WindowAggregateSpec, cx: &OperatorContext<'_>) -> Result<Self> {
        let aggregates = Aggregates::with(&spec.aggregates, &cx.inputs[0], !spec.is_insert_only, cx.functions)?;
        let windows = match spec.time {
            TimeSpec::Window { .. } => None,
            _ => AlignedWindows::new(spec.window)?,
        };
        Ok(Self {
            keys: KeyEncoder::new(&spec.keys, &cx.types(0))?,
            table: cx.task.table("panes"),
            arena: aggregates.arena(),
            aggregates,
            grouping: Grouping::default(),
            time: spec.time.clone(),
            clock: WindowClock::new(&spec.time, spec.zone.as_deref())?,
            windows,
            panes: BTreeMap::new(),
            due: BTreeSet::new(),
            has_partials: spec.has_partials,
            output: WindowOutput::new(spec, cx)?,
            counters: Arc::clone(&cx.task.counters),
            key: RowBytes::default(),
        })
    }

    /// The pane of each row.
    fn panes_of(&self, chunk: &Chunk) -> Result<Vec<TimeWindow>> {
        panes(self.windows.as_ref(), &self.time, chunk, || self.clock.times(&self.time, chunk))
    }

    /// The end of the last window with a pane.
    fn last_end(&self, pane: TimeWindow) -> Timestamp {
        self.windows.map_or(pane.end, |windows| windows.last_end(pane))
    }

    /// Notes that a key has something in a pane.
    fn note(&mut self, pane: TimeWindow, hash: u64) {
        let is_new = !self.panes.contains_key(&pane);
        self.panes.entry(pane).or_default().push(hash);
        if is_new {
            // What ended by now has been put out, without the pane.
            self.plan(pane, self.clock.now().saturating_add(1));
        }
    }

    /// Notes the first window with a pane that ends after a time.
    fn plan(&mut self, pane: TimeWindow, after: Timestamp) {
        match self.windows {
            None => {
                self.due.insert((pane.end, pane.start));
            }
            Some(windows) => {
                if let Some(end) = windows.next_end(pane, after) {
                    self.due.insert((end, windows.ending_at(end).start));
                }
            }
        }
    }

    /// Puts out the windows that have closed, earliest first.
    fn fire(&mut self, out: &mut Emit<'_>) -> Result<()> {
        while let Some(&(end, start)) = self.due.first()
            && end.saturating_sub(1) <= self.clock.now()
        {
            self.due.pop_first();
            self.close(TimeWindow { start, end }, out)?;
        }
        Ok(())
    }

    /// Puts a window out, and forgets the panes that no later one has.
    fn close(&mut self, window: TimeWindow, out: &mut Emit<'_>) -> Result<()> {
        let panes: Vec<TimeWindow> = match self.windows {
            None => vec![window],
            Some(_) => {
                let (first, behind) = (window.start, window.end);
                let range =
                    TimeWindow { start: first, end: Timestamp::MIN }..TimeWindow { start: behind, end: Timestamp::MIN };
                self.panes.range(range).map(|(pane, _)| *pane).collect()
            }
        };
        let is_single = panes.len() == 1;
        let mut groups: HashTable<usize> = HashTable::new();
        let mut hashes_of_groups: Vec<u64> = Vec::new();
        let mut keys: Vec<RowBytes> = Vec::new();
        for pane in panes {
            if self.last_end(pane) > window.end {
                self.plan(pane, window.end);
                let mut hashes = self.panes.get(&pane).cloned().unwrap_or_default();
                // A key may be noted twice, and keys with equal hashes are found together.
                let mut seen: HashTable<u64> = HashTable::with_capacity(hashes.len());
                hashes.retain(|hash| {
                    let is_new = seen.find(*hash, |known| known == hash).is_none();
                    if is_new {
                        seen.insert_unique(*hash, *hash, |hash| *hash);
                    }
                    is_new
                });
                for hash in hashes {
                    for (key, kept) in self.table.find_by_hash(hash, &pane) {
                        let is_same = |group: &usize| hashes_of_groups[*group] == hash && keys[*group] == *key;
                        match groups.find(hash, is_same) {
                            Some(group) => self.aggregates.merge(&mut self.arena, *group, kept)?,
                            None => {
                                let group = self.arena.load(&mut kept.clone());
                                groups.insert_unique(hash, group, |group| {
                                    hashes_of_groups.get(*group).copied().unwrap_or(hash)
                                });
                                hashes_of_groups.push(hash);
                                keys.push(key.clone());
                            }
                        }
                    }
                }
                continue;
            }
            for hash in self.panes.remove(&pane).unwrap_or_default() {
                let Some((key, mut kept)) = self.table.take_by_hash(hash, &pane) else { continue };
                if is_single {
                    self.arena.load(&mut kept);
                    self.output.add(key, window);
                    if self.output.len() >= Chunk::ROWS_MAX {
                        self.output.send(&self.aggregates, &mut self.arena, out)?;
                    }
                    continue;
                }
                let is_same = |group: &usize| hashes_of_groups[*group] == hash && keys[*group] == key;
                match groups.find(hash, is_same) {
                    Some(group) => self.aggregates.merge(&mut self.arena, *group, &kept)?,
                    None => {
                        let group = self.arena.load(&mut kept);
                        groups
                            .insert_unique(hash, group, |group| hashes_of_groups.get(*group).copied().unwrap_or(hash));
                        hashes_of_groups.push(hash);
                        keys.push(key);
                    }
                }
            }
        }
        keys.into_iter().for_each(|key| self.output.add(key, window));
        self.output.send(&self.aggregates, &mut self.arena, out)
    }

    /// The rows that count in a window that is open, with their panes. The others are late; what is between windows is not.
    fn in_time(&mut self, chunk: Chunk) -> Result<(Chunk, Vec<TimeWindow>)> {
        let panes = self.panes_of(&chunk)?;
        let now = self.clock.now();
        let is_open = |pane: &TimeWindow| self.last_end(*pane).saturating_sub(1) > now;
        let has_window = |pane: &TimeWindow| self.last_end(*pane) > pane.start;
        if panes.iter().all(|pane| is_open(pane) && has_window(pane)) {
            return Ok((chunk, panes));
        }
        let rows: Vec<u32> = (0..chunk.len() as u32)
            .filter(|row| is_open(&panes[*row as usize]) && has_window(&panes[*row as usize]))
            .collect();
        let partials = if self.has_partials { chunk.batch.columns().last() } else { None };
        let partials = partials.and_then(|column| column.as_binary_opt::<i32>());
        for (row, pane) in panes.iter().enumerate() {
            if has_window(pane) && !is_open(pane) {
                let late = partials.map_or(Ok(1), |partials| rows_of(partials, row))?;
                self.counters.late_records_dropped.add(late);
            }
        }
        Ok((chunk.take(&rows)?, rows.iter().map(|row| panes[*row as usize]).collect()))
    }
}

impl TableOperator for AlignedAggregate {
    fn process(&mut self, chunk: Chunk, _: &mut Emit<'_>) -> Result<()> {
        let (chunk, panes) = self.in_time(chunk)?;
        if chunk.is_empty() {
            return Ok(());
        }
        let keys = self.keys.encode(chunk.batch.columns(), chunk.len(), chunk.hashes.as_deref())?;
        self.grouping.assign_by(keys, |row| panes[row]);
        self.arena.clear();
        let mut new: Vec<(TimeWindow, u64)> = Vec::new();
        for &first in &self.grouping.firsts {
            let (hash, pane) = (keys.hashes[first as usize], panes[first as usize]);
            self.key.set(keys.rows.get(first as usize));
            let kept = self.table.get_or_insert_with(hash, &self.key, pane, || {
                new.push((pane, hash));
                Accumulators::default()
            });
            self.arena.load(kept);
        }
        let partials = if self.has_partials { chunk.batch.columns().last() } else { None };
        self.aggregates.take_in(&mut self.arena, &chunk, &self.grouping.groups, partials)?;
        let keys = self.keys.last();
        for (group, &first) in self.grouping.firsts.iter().enumerate() {
            let (hash, pane) = (keys.hashes[first as usize], panes[first as usize]);
            self.key.set(keys.rows.get(first as usize));
            if self.arena.rows[group] == 0 {
                self.table.remove(hash, &self.key, &pane);
            } else if let Some(kept) = self.table.get_mut(hash, &self.key, &pane) {
                self.arena.store(group, kept);
            }
        }
        self.arena.clear();
        new.into_iter().for_each(|(pane, hash)| self.note(pane, hash));
        Ok(())
    }

    fn open(&mut self, cx: &mut OpenContext<'_>) -> Result<()> {
        self.clock.clock.restore(cx)
    }

    fn states(&mut self, visit: StateVisitor<'_>) -> Result<()> {
        let hashes: usize = self.panes.values().map(Vec::capacity).sum();
        self.table.set_index_bytes(((hashes + self.panes.len() * 8 + self.due.len() * 4) * size_of::<u64>()) as u64);
        visit(&mut self.table)
    }

    fn restored(&mut self) -> Result<()> {
        let mut entries = Vec::new();
        self.table.visit(|key, pane, _| {
            entries.push((*pane, hash_of(key.as_slice())));
            Ok(())
        })?;
        entries.into_iter().for_each(|(pane, hash)| self.note(pane, hash));
        Ok(())
    }

    fn on_watermark(&mut self, watermark: Timestamp, out: &mut Emit<'_>) -> Result<()> {
        if self.clock.on_watermark(watermark) { self.fire(out) } else { Ok(()) }
    }

    fn on_time(&mut self, now: Timestamp, out: &mut Emit<'_>) -> Result<Timestamp> {
        if self.clock.on_time(now) {
            self.fire(out)?;
        }
        Ok(self.clock.wish(self.due.first().map(|(end, _)| *end)))
    }

    fn snapshot(&mut self, _: &Barrier, snapshot: &mut OperatorSnapshot<'_>) -> Result<()> {
        self.clock.clock.snapshot(snapshot)
    }
}
