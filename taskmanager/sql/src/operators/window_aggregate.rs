//! `WindowAggregate`: GROUP BY with windows. A window's results are put out when it closes, and are final.
//!
//! - [`aligned`]: windows that are the same for all keys, and those that rows have already
//! - [`session`]: sessions, of which every key has its own

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, TimestampMillisecondArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, SchemaRef};
use flott_chunk::{Chunk, RowKind};
use flott_core::time::{Timestamp, WATERMARK_MAX, WATERMARK_MIN};
use flott_core::{Error, Result};
use flott_state::TimeWindow;

use crate::aggregates::{Aggregates, Arena};
use crate::local_time::LocalTime;
use crate::operator::{Emit, TableOperator};
use crate::program::OperatorContext;
use crate::row::{RowBytes, RowDecoder};
use crate::spec::{TimeSpec, WindowAggregateSpec, WindowColumn, WindowSpec};
use crate::time::{EventClock, event_times};
use crate::windows::AlignedWindows;

pub mod aligned;
pub mod session;

/// Makes the operator for the windows that are wanted.
pub fn make(spec: &WindowAggregateSpec, cx: &OperatorContext<'_>) -> Result<Box<dyn TableOperator>> {
    match (spec.window, &spec.time) {
        (WindowSpec::Session { gap_ms }, TimeSpec::Event(_) | TimeSpec::Processing) => {
            Ok(Box::new(session::SessionAggregate::new(spec, gap_ms, cx)?))
        }
        _ => Ok(Box::new(aligned::AlignedAggregate::new(spec, cx)?)),
    }
}

/// The time by which windows close: that of rows, or that of the machine. Windows are those of [local time](LocalTime), and so
/// is all that it says of time.
#[derive(Debug)]
pub(super) struct WindowClock {
    is_processing: bool,
    local: LocalTime,
    /// What clocks show, by the time of the machine.
    shown: Option<Timestamp>,
    /// All windows that end by then, inclusive of their last millisecond, are closed.
    pub(super) clock: EventClock,
}

impl WindowClock {
    /// For windows of local time in a zone, if there is one.
    pub(super) fn new(time: &TimeSpec, zone: Option<&str>) -> Result<Self> {
        let (is_processing, local) = (*time == TimeSpec::Processing, LocalTime::new(zone)?);
        Ok(Self { is_processing, local, shown: None, clock: EventClock::default() })
    }

    /// What ties windows to instants.
    pub(super) fn local(&self) -> LocalTime {
        self.local
    }

    /// The last millisecond of time that is over.
    pub(super) fn now(&self) -> Timestamp {
        self.clock.now
    }

    /// Takes a watermark in. Windows of the machine's time end with the input: what they hold is not lost.
    pub(super) fn on_watermark(&mut self, watermark: Timestamp) -> bool {
        let counts = !self.is_processing || watermark == WATERMARK_MAX;
        if counts {
            self.clock.advance(self.local.passed(watermark));
        }
        counts
    }

    /// Takes the machine's time in.
    pub(super) fn on_time(&mut self, now: Timestamp) -> bool {
        if self.is_processing {
            self.clock.advance(self.local.passed(now.saturating_sub(1)));
            self.shown = Some(self.local.of(now));
        }
        self.is_processing
    }

    /// When to be called next, if the first window ends then.
    pub(super) fn wish(&self, end: Option<Timestamp>) -> Timestamp {
        match end.filter(|_| self.is_processing) {
            Some(end) => self.local.due(end.saturating_sub(1)).saturating_add(1),
            None => Timestamp::MAX,
        }
    }

    /// The time of each row.
    pub(super) fn times(&self, time: &TimeSpec, chunk: &Chunk) -> Result<Int64Array> {
        match time {
            TimeSpec::Event(column) => {
                let times = event_times(chunk.column(*column), chunk.batch.schema().field(*column).name())?;
                Ok(self.local.of_all(times))
            }
            TimeSpec::Processing => {
                let first = if self.now() == WATERMARK_MIN { 0 } else { self.now().saturating_add(1) };
                let now = self.shown.unwrap_or(first);
                Ok(Int64Array::from(vec![now; chunk.len()]))
            }
            TimeSpec::Window { .. } => Err(Error::system("rows that are in windows have no time of their own")),
        }
    }
}

/// The pane of each row of a chunk; rows that have windows already have these. `times` are those of the rows, for others.
pub(super) fn panes(
    windows: Option<&AlignedWindows>,
    time: &TimeSpec,
    chunk: &Chunk,
    times: impl FnOnce() -> Result<Int64Array>,
) -> Result<Vec<TimeWindow>> {
    match (windows, time) {
        (_, TimeSpec::Window { start, end }) => {
            let schema = chunk.batch.schema();
            let starts = event_times(chunk.column(*start), schema.field(*start).name())?;
            let ends = event_times(chunk.column(*end), schema.field(*end).name())?;
            let pairs = starts.values().iter().zip(ends.values());
            Ok(pairs.map(|(start, end)| TimeWindow { start: *start, end: *end }).collect())
        }
        (Some(windows), _) => Ok(times()?.values().iter().map(|time| windows.pane_of(*time)).collect()),
        (None, _) => Err(Error::system("a window aggregate has no windows")),
    }
}

/// Puts results of windows out.
#[derive(Debug)]
pub(super) struct WindowOutput {
    decoder: RowDecoder,
    columns: Vec<WindowColumn>,
    local: LocalTime,
    schema: SchemaRef,
    keys: Vec<RowBytes>,
    windows: Vec<TimeWindow>,
}

impl WindowOutput {
    pub(super) fn new(spec: &WindowAggregateSpec, cx: &OperatorContext<'_>) -> Result<Self> {
        let types = cx.types(0);
        let keys: Vec<DataType> = spec.keys.iter().map(|column| types[*column].clone()).collect();
        Ok(Self {
            decoder: RowDecoder::new(&keys)?,
            columns: spec.window_columns.clone(),
            local: LocalTime::new(spec.zone.as_deref())?,
            schema: SchemaRef::clone(cx.output),
            keys: Vec::new(),
            windows: Vec::new(),
        })
    }

    /// Notes whose results the next group of the arena has.
    pub(super) fn add(&mut self, key: RowBytes, window: TimeWindow) {
        self.keys.push(key);
        self.windows.push(window);
    }

    /// How many groups have been noted.
    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    /// Puts all results out, and has none afterwards. Groups whose rows have all been taken back have none.
    pub(super) fn send(&mut self, aggregates: &Aggregates, arena: &mut Arena, out: &mut Emit<'_>) -> Result<()> {
        let there: Vec<usize> = (0..arena.len()).filter(|group| arena.rows[*group] > 0).collect();
        if !there.is_empty() {
            let mut results = aggregates.collector();
            there.iter().try_for_each(|group| results.push(arena, *group))?;
            let mut columns = self.decoder.decode(there.iter().map(|group| self.keys[*group].as_slice()))?;
            columns.extend(results.finish()?);
            let windows: Vec<TimeWindow> = there.iter().map(|group| self.windows[*group]).collect();
            for column in &self.columns {
                let wanted = self.schema.field(columns.len()).data_type();
                columns.push(window_column(*column, &windows, self.local, wanted)?);
            }
            out.emit_large(Chunk::of_columns(&self.schema, columns, there.len(), vec![RowKind::Insert; there.len()])?)?;
        }
        arena.clear();
        self.keys.clear();
        self.windows.clear();
        Ok(())
    }
}

/// A column that says of windows when they are.
pub(super) fn window_column(
    column: WindowColumn,
    windows: &[TimeWindow],
    local: LocalTime,
    wanted: &DataType,
) -> Result<ArrayRef> {
    let times = windows.iter().map(|window| match column {
        WindowColumn::Start => window.start,
        WindowColumn::End => window.end,
        WindowColumn::Time => local.instant(window.max_timestamp()),
    });
    let times: ArrayRef = Arc::new(TimestampMillisecondArray::from_iter_values(times));
    if times.data_type() == wanted {
        return Ok(times);
    }
    cast(&times, wanted).map_err(|error| Error::system(format!("the times of windows: {error}")))
}

#[cfg(test)]
mod tests;
