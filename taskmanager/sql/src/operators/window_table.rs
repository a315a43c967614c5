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
use flott_state::TimeWindow;
use flott_telemetry::TaskCounters;

use super::sessions::{OpenSessions, Session};
use super::window_aggregate::{WindowClock, window_column};
use crate::local_time::LocalTime;
use crate::operator::{Emit, TableOperator};
use crate::program::OperatorContext;
use crate::row::{EncodedRows, KeyEncoder, RowBytes, RowDecoder, RowEncoder};
use crate::spec::{TimeSpec, WindowColumn, WindowSpec};
use crate::windows::AlignedWindows;

/// The columns that are added.
const COLUMNS: [WindowColumn; 3] = [WindowColumn::Start, WindowColumn::End, WindowColumn::Time];

/// Makes the operator for the windows that are wanted, which close by `clock`.
pub(super) fn make(
    window: WindowSpec,
    time: &TimeSpec,
    partition: &[usize],
    clock: WindowClock,
    cx: &OperatorContext<'_>,
) -> Result<Box<dyn TableOperator>> {
    if matches!(time, TimeSpec::Window { .. }) {
        return Err(Error::system("rows that are in windows get no others"));
    }
    let output = SchemaRef::clone(cx.output);
    match (window, AlignedWindows::new(window)?) {
        (_, Some(windows)) => Ok(Box::new(AlignedTable { windows, time: time.clone(), clock, output })),
        (WindowSpec::Session { gap_ms }, _) => Ok(Box::new(SessionTable {
            keys: KeyEncoder::new(partition, &cx.types(0))?,
            rows: RowEncoder::new(&cx.types(0))?,
            decoder: RowDecoder::new(&cx.types(0))?,
            open: OpenSessions::new(gap_ms, cx),
            time: time.clone(),
            clock,
            output,
            counters: Arc::clone(&cx.task.counters),
        })),
        (other, None) => Err(Error::system(format!("windows of no kind: {other:?}"))),
    }
}

/// The columns of rows, and those of their windows behind.
fn with_windows(
    mut columns: Vec<ArrayRef>,
    windows: &[TimeWindow],
    local: LocalTime,
    output: &SchemaRef,
) -> Result<Vec<ArrayRef>> {
    for column in COLUMNS {
        let wanted = output.field(columns.len()).data_type();
        columns.push(window_column(column, windows, local, wanted)?);
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
            let columns = with_windows(taken.batch.columns().to_vec(), windows, self.clock.local(), &self.output)?;
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

/// The rows of a session in the order in which they came, and what each says.
type Rows = Vec<(u8, RowBytes)>;

/// SESSION.
struct SessionTable {
    keys: KeyEncoder,
    rows: RowEncoder,
    decoder: RowDecoder,
    open: OpenSessions<Rows>,
    time: TimeSpec,
    clock: WindowClock,
    output: SchemaRef,
    counters: Arc<TaskCounters>,
}

impl SessionTable {
    /// Puts out the rows of sessions that are over, earliest first.
    fn fire(&mut self, out: &mut Emit<'_>) -> Result<()> {
        let Self { open, decoder, clock, output, .. } = self;
        let (mut over, mut rows) = (Vec::new(), 0);
        open.end(clock.now(), |_, session| {
            rows += session.content.len();
            over.push(session);
            if rows < Chunk::ROWS_MAX {
                return Ok(());
            }
            rows = 0;
            send(&mut over, decoder, clock.local(), output, out)
        })?;
        send(&mut over, decoder, clock.local(), output, out)
    }
}

/// Puts out the rows of sessions, and forgets them.
fn send(
    sessions: &mut Vec<Session<Rows>>,
    decoder: &RowDecoder,
    local: LocalTime,
    output: &SchemaRef,
    out: &mut Emit<'_>,
) -> Result<()> {
    let rows = || sessions.iter().flat_map(|session| session.content.iter().map(move |row| (session.window, row)));
    let kinds: Vec<RowKind> =
        rows().map(|(_, (kind, _))| RowKind::from_number(*kind).unwrap_or(RowKind::Insert)).collect();
    if !kinds.is_empty() {
        let windows: Vec<TimeWindow> = rows().map(|(window, _)| window).collect();
        let columns = decoder.decode(rows().map(|(_, (_, row))| row.as_slice()))?;
        let columns = with_windows(columns, &windows, local, output)?;
        out.emit_large(Chunk::of_columns(output, columns, kinds.len(), kinds)?)?;
    }
    sessions.clear();
    Ok(())
}

impl TableOperator for SessionTable {
    fn process(&mut self, chunk: Chunk, _: &mut Emit<'_>) -> Result<()> {
        let times = self.clock.times(&self.time, &chunk)?;
        let mut encoded = EncodedRows::default();
        self.rows.encode(chunk.batch.columns(), chunk.len(), &mut encoded)?;
        let keys = self.keys.encode(chunk.batch.columns(), chunk.len(), chunk.hashes.as_deref())?;
        let mut kept = self.open.load(keys);
        let now = self.clock.now();
        let numbers: Vec<Option<u32>> = (0..chunk.len()).map(|row| self.open.add(row, times.value(row), now)).collect();
        self.counters.late_records_dropped.add(numbers.iter().filter(|number| number.is_none()).count() as u64);
        let sessions = self.open.of_chunk();
        let mut new: Vec<Rows> = vec![Vec::new(); sessions.numbers()];
        for (row, number) in numbers.iter().enumerate() {
            if let Some(number) = number {
                let row = (chunk.kind(row) as u8, RowBytes::new(encoded.get(row)));
                new[sessions.root(*number) as usize].push(row);
            }
        }
        self.open.store(self.keys.last(), |key, open| {
            let mut rows = Rows::new();
            open.kept.iter().for_each(|part| rows.append(&mut kept[key][*part].content));
            if let Some(number) = open.number {
                rows.append(&mut new[number as usize]);
            }
            Some(rows)
        });
        Ok(())
    }

    fn open(&mut self, cx: &mut OpenContext<'_>) -> Result<()> {
        self.clock.clock.restore(cx)
    }

    fn states(&mut self, visit: StateVisitor<'_>) -> Result<()> {
        self.open.states(visit)
    }

    fn restored(&mut self) -> Result<()> {
        self.open.restored()
    }

    fn on_watermark(&mut self, watermark: Timestamp, out: &mut Emit<'_>) -> Result<()> {
        if self.clock.on_watermark(watermark) { self.fire(out) } else { Ok(()) }
    }

    fn on_time(&mut self, now: Timestamp, out: &mut Emit<'_>) -> Result<Timestamp> {
        if self.clock.on_time(now) {
            self.fire(out)?;
        }
        Ok(self.clock.wish(self.open.next_end()))
    }

    fn snapshot(&mut self, _: &Barrier, snapshot: &mut OperatorSnapshot<'_>) -> Result<()> {
        self.clock.clock.snapshot(snapshot)
    }
}
