//! `LocalGroupAggregate`, `LocalWindowAggregate`: the first phase of aggregates in two, in front of an exchange.
//!
//! Rows of a chunk that have the same key, and are in the same window, become one [partial](crate::aggregates::partial) row. It
//! keeps nothing from one chunk to the next, so it delays nothing and has no state. Where keys do not repeat that costs more than
//! it saves: rows go on as they are then, and it is tried again after some chunks.

use arrow::datatypes::SchemaRef;
use flott_chunk::Chunk;
use flott_core::{Error, Result};
use flott_state::TimeWindow;

use crate::aggregates::grouping::Grouping;
use crate::aggregates::partial::as_they_are;
use crate::aggregates::{Aggregates, Arena};
use crate::operator::{Emit, TableOperator};
use crate::operators::window_aggregate::{WindowClock, panes};
use crate::program::OperatorContext;
use crate::row::KeyEncoder;
use crate::spec::{LocalAggregateSpec, TimeSpec};
use crate::windows::AlignedWindows;

/// So many rows must become one for it to pay.
const ROWS_EACH_MIN: usize = 3;

/// It is tried again at the latest after so many chunks.
const PAUSE_MAX: u32 = 64;

/// What windows rows are in.
struct Windows {
    /// None if rows have them already.
    aligned: Option<AlignedWindows>,
    time: TimeSpec,
    clock: WindowClock,
}

impl Windows {
    fn new(spec: &LocalAggregateSpec) -> Result<Option<Self>> {
        let Some((window, time)) = &spec.windows else { return Ok(None) };
        if *time == TimeSpec::Processing {
            return Err(Error::system("windows of the machine's time were planned in two phases"));
        }
        let clock = WindowClock::new(time, spec.zone.as_deref())?;
        Ok(Some(Self { aligned: AlignedWindows::new(*window)?, time: time.clone(), clock }))
    }

    /// The pane of each row.
    fn panes(&self, chunk: &Chunk) -> Result<Vec<TimeWindow>> {
        panes(self.aligned.as_ref(), &self.time, chunk, || self.clock.times(&self.time, chunk))
    }
}

/// See the module's documentation.
pub struct LocalAggregate {
    keys: KeyEncoder,
    aggregates: Aggregates,
    arena: Arena,
    grouping: Grouping,
    windows: Option<Windows>,
    output: SchemaRef,
    /// Whether rows do not leave the subtask.
    is_alone: bool,
    /// How many chunks are still to pass as they are, and how many will after the next that does not pay.
    pause: u32,
    next_pause: u32,
}

impl LocalAggregate {
    /// Makes it.
    ///
    /// # Errors
    /// An aggregate cannot be computed in two phases, or a column cannot be a key.
    pub fn new(spec: &LocalAggregateSpec, cx: &OperatorContext<'_>) -> Result<Self> {
        let aggregates = Aggregates::new(&spec.aggregates, &cx.inputs[0], !spec.is_insert_only)?;
        if !aggregates.are_mergeable() {
            return Err(Error::system("aggregates that depend on the order of rows were planned in two phases"));
        }
        Ok(Self {
            keys: KeyEncoder::new(&spec.keys, &cx.types(0))?,
            arena: aggregates.arena(),
            aggregates,
            grouping: Grouping::default(),
            windows: Windows::new(spec)?,
            output: SchemaRef::clone(cx.output),
            is_alone: cx.task.parallelism == 1,
            pause: 0,
            next_pause: 1,
        })
    }
}

impl TableOperator for LocalAggregate {
    fn process(&mut self, chunk: Chunk, out: &mut Emit<'_>) -> Result<()> {
        if self.is_alone || self.pause > 0 {
            self.pause = self.pause.saturating_sub(1);
            return out.emit(as_they_are(&chunk, &self.output)?);
        }
        let panes = self.windows.as_ref().map(|windows| windows.panes(&chunk)).transpose()?;
        // Hashes that rows have come with are those of another key.
        let keys = self.keys.encode(chunk.batch.columns(), chunk.len(), None)?;
        match &panes {
            Some(panes) => self.grouping.assign_by(keys, |row| panes[row]),
            None => self.grouping.assign(keys),
        }
        let Grouping { groups, firsts, .. } = &self.grouping;
        if firsts.len() * ROWS_EACH_MIN > chunk.len() {
            self.pause = self.next_pause;
            self.next_pause = (self.next_pause * 2).min(PAUSE_MAX);
            return out.emit(as_they_are(&chunk, &self.output)?);
        }
        self.next_pause = 1;
        out.emit(self.aggregates.partials(&mut self.arena, &chunk, groups, firsts, &self.output)?)
    }
}

#[cfg(test)]
mod tests;
