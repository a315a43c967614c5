//! `WindowTableFunction`: TUMBLE, HOP, CUMULATE and SESSION as tables. Adds `window_start`, `window_end` and `window_time` to
//! each row, once for each window that it is in.
//!
//! Windows that are the same for all keys are known at once. Rows of sessions wait until their session is over.

use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::SchemaRef;
use flott_chunk::{Chunk, RowKind};
use flott_core::time::Timestamp;
use flott_core::{Error, Result};
use flott_network::Barrier;
use flott_operators::operator::{OpenContext, OperatorSnapshot, StateVisitor};
use flott_state::{KeyedTable, TimeIndex, TimeWindow};
use flott_telemetry::TaskCounters;
use serde::{Deserialize, Serialize};

use super::sessions::Sessions;
use super::window_aggregate::{WindowClock, window_column};
use crate::aggregates::grouping::Grouping;
use crate::operator::{Emit, TableOperator};
use crate::program::OperatorContext;
use crate::row::{EncodedRows, KeyEncoder, RowBytes, RowDecoder, RowEncoder, hash_of};
use crate::spec::{TimeSpec, WindowColumn, WindowSpec};
use crate::windows::AlignedWindows;

/// The columns that are added.
const COLUMNS: [WindowColumn; 3] = [WindowColumn::Start, WindowColumn::End, WindowColumn::Time];

/// Makes the operator for the windows that are wanted.
pub fn make(
    window: WindowSpec,
    time: &TimeSpec,
    partition: &[usize],
    cx: &OperatorContext<'_>,
) -> Result<Box<dyn TableOperator>> {
    if matches!(time, TimeSpec::Window { .. }) {
        return Err(Error::system("rows that are in windows get no others"));
    }
    let (clock, output) = (WindowClock::new(time), SchemaRef::clone(cx.output));
    match (window, AlignedWindows::new(window)?) {
        (_, Some(windows)) => Ok(Box::new(AlignedTable { windows, time: time.clone(), clock, output })),
        (WindowSpec::Session { gap_ms }, _) => Ok(Box::new(SessionTable {
            keys: KeyEncoder::new(partition, &cx.types(0))?,
            rows: RowEncoder::new(&cx.types(0))?,
            decoder: RowDecoder::new(&cx.types(0))?,
            table: cx.task.table("sessions"),
            grouping: Grouping::default(),
            sessions: Sessions::new(gap_ms.max(1)),
            time: time.clone(),
            clock,
            due: TimeIndex::default(),
            output,
            counters: Arc::clone(&cx.task.counters),
            key: RowBytes::default(),
        })),
        (other, None) => Err(Error::system(format!("windows of no kind: {other:?}"))),
    }
}

/// The columns of rows, and those of their windows behind.
fn with_windows(mut columns: Vec<ArrayRef>, windows: &[TimeWindow], output: &SchemaRef) -> Result<Vec<ArrayRef>> {
    for column in COLUMNS {
        let wanted = output.field(columns.len()).data_type();
        columns.push(window_column(column, windows, wanted)?);
    }
    Ok(columns)
}

/// TUMBLE, HOP and CUMULATE.
struct AlignedTable {
    windows: AlignedWindows,
    time: TimeSpec,
    clock: WindowClock,
    output: SchemaRef,
}

impl TableOperator for AlignedTable {
    fn process(&mut self, chunk: Chunk, out: &mut Emit<'_>) -> Result<()> {
        let times = self.clock.times(&self.time, &chunk)?;
        let (mut rows, mut windows) = (Vec::with_capacity(chunk.len()), Vec::with_capacity(chunk.len()));
        for (row, time) in times.values().iter().enumerate() {
            let first = windows.len();
            windows.extend(self.windows.all_of(*time));
            if !self.windows.is_growing() {
                // The latest window comes first, as in Flink.
                windows[first..].reverse();
            }
            rows.resize(windows.len(), row as u32);
        }
        for (rows, windows) in rows.chunks(Chunk::ROWS_MAX).zip(windows.chunks(Chunk::ROWS_MAX)) {
            let taken = chunk.take(rows)?;
            let columns = with_windows(taken.batch.columns().to_vec(), windows, &self.output)?;
            let kinds = (0..taken.len()).map(|row| taken.kind(row)).collect();
            out.emit_columns(&self.output, columns, kinds)?;
        }
        Ok(())
    }

    fn on_time(&mut self, now: Timestamp, _: &mut Emit<'_>) -> Result<Timestamp> {
        self.clock.on_time(now);
        Ok(Timestamp::MAX)
    }
}

/// A session that is open, with its rows in the order in which they came, and what each says.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Session {
    window: TimeWindow,
    rows: Vec<(u8, RowBytes)>,
}

/// SESSION.
struct SessionTable {
    keys: KeyEncoder,
    rows: RowEncoder,
    decoder: RowDecoder,
    table: KeyedTable<RowBytes, (), Vec<Session>>,
    grouping: Grouping,
    sessions: Sessions,
    time: TimeSpec,
    clock: WindowClock,
    /// When a session of a key may end; whether one does, its sessions tell.
    due: TimeIndex,
    output: SchemaRef,
    counters: Arc<TaskCounters>,
    key: RowBytes,
}

impl SessionTable {
    /// Puts out the rows of sessions that are over, earliest first.
    fn fire(&mut self, out: &mut Emit<'_>) -> Result<()> {
        let mut over: Vec<Session> = Vec::new();
        while let Some((time, mut hashes)) = self.due.pop_until(self.clock.now()) {
            hashes.sort_unstable();
            hashes.dedup();
            for hash in hashes {
                let keys: Vec<RowBytes> = self.table.find_by_hash(hash, &()).map(|(key, _)| key.clone()).collect();
                for key in keys {
                    let Some(sessions) = self.table.get_mut(hash, &key, &()) else { continue };
                    let (ended, open): (Vec<Session>, Vec<Session>) = std::mem::take(sessions)
                        .into_iter()
                        .partition(|session| session.window.max_timestamp() <= time);
                    over.extend(ended);
                    match open.first() {
                        Some(next) => self.due.insert(next.window.max_timestamp(), hash),
                        None => drop(self.table.remove(hash, &key, &())),
                    }
                    if !open.is_empty()
                        && let Some(sessions) = self.table.get_mut(hash, &key, &())
                    {
                        *sessions = open;
                    }
                }
                if over.len() >= Chunk::ROWS_MAX {
                    self.send(&mut over, out)?;
                }
            }
        }
        self.send(&mut over, out)
    }

    fn send(&self, sessions: &mut Vec<Session>, out: &mut Emit<'_>) -> Result<()> {
        let rows = || sessions.iter().flat_map(|session| session.rows.iter().map(move |row| (session.window, row)));
        let kinds: Vec<RowKind> =
            rows().map(|(_, (kind, _))| RowKind::from_number(*kind).unwrap_or(RowKind::Insert)).collect();
        if !kinds.is_empty() {
            let windows: Vec<TimeWindow> = rows().map(|(window, _)| window).collect();
            let columns = self.decoder.decode(rows().map(|(_, (_, row))| row.as_slice()))?;
            let columns = with_windows(columns, &windows, &self.output)?;
            out.emit_large(Chunk::of_columns(&self.output, columns, kinds.len(), kinds)?)?;
        }
        sessions.clear();
        Ok(())
    }
}

impl TableOperator for SessionTable {
    fn process(&mut self, chunk: Chunk, _: &mut Emit<'_>) -> Result<()> {
        let times = self.clock.times(&self.time, &chunk)?;
        let mut encoded = EncodedRows::default();
        self.rows.encode(chunk.batch.columns(), chunk.len(), &mut encoded)?;
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
        let numbers: Vec<Option<u32>> = (0..chunk.len())
            .map(|row| self.sessions.add(self.grouping.groups[row] as usize, times.value(row), now))
            .collect();
        self.counters.late_records_dropped.add(numbers.iter().filter(|number| number.is_none()).count() as u64);
        let mut new: Vec<Vec<(u8, RowBytes)>> = vec![Vec::new(); self.sessions.numbers()];
        for (row, number) in numbers.iter().enumerate() {
            if let Some(number) = number {
                let row = (chunk.kind(row) as u8, RowBytes::new(encoded.get(row)));
                new[self.sessions.root(*number) as usize].push(row);
            }
        }
        for (key, opens) in self.sessions.keys.iter().enumerate() {
            let first = self.grouping.firsts[key] as usize;
            let hash = keys.hashes[first];
            self.key.set(keys.rows.get(first));
            let mut sessions: Vec<Session> = Vec::with_capacity(opens.len());
            for open in opens {
                let window = TimeWindow { start: open.start, end: open.end };
                let mut rows: Vec<(u8, RowBytes)> = Vec::new();
                open.kept.iter().for_each(|part| rows.append(&mut kept[key][*part].rows));
                if let Some(number) = open.number {
                    rows.append(&mut new[number as usize]);
                    if open.kept.is_empty() {
                        self.due.insert(window.max_timestamp(), hash);
                    }
                }
                sessions.push(Session { window, rows });
            }
            if sessions.is_empty() {
                self.table.remove(hash, &self.key, &());
            } else if let Some(state) = self.table.get_mut(hash, &self.key, &()) {
                *state = sessions;
            }
        }
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
