//! `WatermarkAssigner`: says how far event time has come.
//!
//! One highest watermark a source split; the subtask's is the lowest of the splits that are being read. A watermark is sent
//! right behind the row that moves it by more than `pipeline.auto-watermark-interval`, so a chunk is cut there: where
//! watermarks are depends on rows alone, not on batches or the clock, and a replay judges the same rows late. Flink does
//! that too, and sends one now and then besides; here that is done only where a stream without end pauses.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{Array, PrimitiveArray};
use arrow::compute::max;
use arrow::datatypes::Int64Type;
use flott_checkpoint::Redistribution;
use flott_core::Result;
use flott_core::config::options;
use flott_core::time::{Timestamp, WATERMARK_MAX, WATERMARK_MIN};
use flott_network::Barrier;
use flott_operators::operator::{OpenContext, OperatorSnapshot};
use flott_operators::push::Control;
use flott_operators::timestamps::{SplitSet, WATERMARK_STATE};

use crate::expr::Compiled;
use crate::operator::{Emit, TableOperator};
use crate::program::OperatorContext;
use crate::spec::WatermarkSpec;
use crate::time::{event_times, millis};
use flott_chunk::Chunk;

/// See the module's documentation.
pub struct Watermark {
    column: usize,
    name: String,
    expr: Compiled,
    idle_timeout_ms: Option<i64>,
    /// By how much more than this the watermark must move to be sent.
    step_ms: i64,
    /// The highest watermark of each split.
    splits: BTreeMap<u32, Timestamp>,
    source: Arc<SplitSet>,
    /// The last one sent.
    sent: Timestamp,
    /// A restored one that has to be sent before anything else: progress is state.
    floor: Option<Timestamp>,
    now: Timestamp,
    last_row: Timestamp,
    is_idle: bool,
    has_ended: bool,
    /// Of the chunk at hand: behind which rows which watermarks are sent.
    cuts: Vec<(usize, Timestamp)>,
}

impl Watermark {
    /// Compiles its expression.
    pub fn new(spec: &WatermarkSpec, cx: &OperatorContext<'_>) -> Result<Self> {
        let step = cx.task.config.get(options::AUTO_WATERMARK_INTERVAL)?;
        Ok(Self {
            column: spec.column,
            name: cx.inputs[0].field(spec.column).name().clone(),
            expr: spec.watermark.compile(&cx.inputs[0], cx.functions)?,
            idle_timeout_ms: Some(i64::try_from(spec.idle_timeout_ms).unwrap_or(i64::MAX)).filter(|time| *time > 0),
            step_ms: i64::try_from(step.as_millis()).unwrap_or(i64::MAX),
            splits: BTreeMap::new(),
            source: Arc::clone(&cx.task.splits),
            sent: WATERMARK_MIN,
            floor: None,
            now: 0,
            last_row: 0,
            is_idle: false,
            has_ended: false,
            cuts: Vec::new(),
        })
    }

    /// The lowest watermark of the splits other than `split` that are still being read. A finished split says nothing
    /// about the rows of the others.
    fn limit(&mut self, split: u32) -> Timestamp {
        if self.splits.len() > 1 {
            let source = &self.source;
            self.splits.retain(|other, _| *other == split || *other == 0 || source.contains(*other));
        }
        let others = self.splits.iter().filter(|(other, _)| **other != split);
        others.map(|(_, highest)| *highest).min().unwrap_or(WATERMARK_MAX)
    }

    /// Whether `watermark` is so far from the last one that it is sent.
    fn is_due(&self, watermark: Timestamp, last: Timestamp) -> bool {
        watermark > last.saturating_add(self.step_ms)
    }

    /// Takes in the watermarks of a chunk's rows, and finds where it has to be cut.
    fn advance(&mut self, split: u32, watermarks: &PrimitiveArray<Int64Type>) {
        self.cuts.clear();
        let limit = self.limit(split);
        let before = self.splits.get(&split).copied().unwrap_or(WATERMARK_MIN);
        let after = max(watermarks).map_or(before, |highest| highest.max(before));
        self.splits.insert(split, after);
        if !self.is_due(after.min(limit), self.sent) {
            return;
        }
        let (mut highest, mut last) = (before, self.sent);
        let has_nulls = watermarks.null_count() > 0;
        for (row, watermark) in watermarks.values().iter().enumerate() {
            if *watermark <= highest || (has_nulls && watermarks.is_null(row)) {
                continue;
            }
            highest = *watermark;
            if self.is_due(highest.min(limit), last) {
                last = highest.min(limit);
                self.cuts.push((row, last));
            }
        }
        // What splits that are read no more held back is free with the first row.
        if self.cuts.is_empty() {
            self.cuts.push((0, after.min(limit)));
        }
    }

    fn send(&mut self, watermark: Timestamp, out: &mut Emit<'_>) -> Result<()> {
        if watermark > self.sent {
            self.sent = watermark;
            out.control(&mut Control::Watermark(watermark))?;
        }
        Ok(())
    }

    fn send_floor(&mut self, out: &mut Emit<'_>) -> Result<()> {
        match self.floor.take() {
            Some(floor) => self.send(floor, out),
            None => Ok(()),
        }
    }
}

impl TableOperator for Watermark {
    fn open(&mut self, cx: &mut OpenContext<'_>) -> Result<()> {
        self.floor = cx.restored.take_state(cx.operator, WATERMARK_STATE)?.into_iter().min();
        Ok(())
    }

    fn snapshot(&mut self, _: &Barrier, snapshot: &mut OperatorSnapshot<'_>) -> Result<()> {
        // A subtask that has ended holds nobody back, not even after a restore.
        let watermark = (!self.has_ended).then(|| self.floor.unwrap_or(self.sent));
        snapshot.add(WATERMARK_STATE, Redistribution::Union, watermark.as_slice())
    }

    fn process(&mut self, chunk: Chunk, out: &mut Emit<'_>) -> Result<()> {
        event_times(chunk.column(self.column), &self.name)?;
        let watermarks = millis(&self.expr.evaluate(&chunk.batch)?)?;
        self.last_row = self.now;
        self.send_floor(out)?;
        if std::mem::take(&mut self.is_idle) {
            out.control(&mut Control::Active)?;
        }
        self.advance(out.split(), &watermarks);
        let mut start = 0;
        for (row, watermark) in std::mem::take(&mut self.cuts) {
            out.emit(chunk.slice(start, row + 1 - start))?;
            start = row + 1;
            self.send(watermark, out)?;
        }
        match start {
            0 => out.emit(chunk),
            _ => out.emit(chunk.slice(start, chunk.len() - start)),
        }
    }

    // Watermarks from before are replaced by those made here; only the end passes.
    fn outgoing_watermark(&mut self, watermark: Timestamp) -> Option<Timestamp> {
        (watermark == WATERMARK_MAX).then_some(watermark)
    }

    fn on_blocked(&mut self, now: Timestamp) {
        self.last_row = now;
    }

    fn on_time(&mut self, now: Timestamp, out: &mut Emit<'_>) -> Result<Timestamp> {
        if self.now == 0 {
            self.last_row = now;
        }
        self.now = now;
        self.send_floor(out)?;
        // A stream without end may pause for long: what its rows said of time is not held back then.
        if !self.source.is_bounded() && now.saturating_sub(self.last_row) >= self.step_ms {
            self.limit(0);
            let lowest = self.splits.values().min().copied().unwrap_or(WATERMARK_MIN);
            self.send(lowest, out)?;
        }
        let pause = match self.source.is_bounded() {
            true => Timestamp::MAX,
            false => now.saturating_add(self.step_ms.max(1)),
        };
        let Some(timeout) = self.idle_timeout_ms.filter(|_| !self.is_idle) else { return Ok(pause) };
        let deadline = self.last_row.saturating_add(timeout);
        if now < deadline {
            return Ok(deadline.min(pause));
        }
        self.is_idle = true;
        out.control(&mut Control::Idle)?;
        Ok(pause)
    }

    fn on_end(&mut self, _: &mut Emit<'_>) -> Result<()> {
        self.has_ended = true;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::ExprSpec;
    use crate::operators::testing::{Bed, Value, columns, text, timestamp};
    use crate::spec::OperatorSpec;

    fn bed(idle_timeout_ms: u64) -> Bed {
        let schema = columns(&[("k", text()), ("ts", timestamp())]);
        let watermark = ExprSpec::column("ts", 1).unwrap();
        let spec = OperatorSpec::Watermark(WatermarkSpec { column: 1, watermark, idle_timeout_ms });
        Bed::new(spec, std::slice::from_ref(&schema), &schema)
    }

    fn rows(times: &[i64]) -> Vec<Vec<Value>> {
        times.iter().map(|time| vec![Value::Text("x".into()), Value::Int(*time)]).collect()
    }

    #[test]
    fn a_watermark_follows_the_row_that_moves_it_by_more_than_the_step() {
        let mut bed = bed(0);
        bed.insert(0, &rows(&[1000, 1200, 900, 1201, 1300, 1402]));
        bed.insert(0, &rows(&[1403, 1500]));
        let short: Vec<String> = bed.take().iter().map(|line| line.replace("1970-01-01T00:00:0", "")).collect();
        assert_eq!(
            short,
            [
                "+I\tx\t1",
                "watermark 1000",
                "+I\tx\t1.200",
                "+I\tx\t0.900",
                "+I\tx\t1.201",
                "watermark 1201",
                "+I\tx\t1.300",
                "+I\tx\t1.402",
                "watermark 1402",
                "+I\tx\t1.403",
                "+I\tx\t1.500",
            ]
        );
        bed.end();
        assert_eq!(bed.take(), Vec::<String>::new(), "the end passes by itself");
    }

    #[test]
    fn the_lowest_split_counts_as_long_as_it_is_read() {
        let mut bed = bed(0);
        bed.splits(&[1, 2]);
        bed.insert_of_split(1, &rows(&[1000]));
        bed.insert_of_split(2, &rows(&[500]));
        bed.insert_of_split(1, &rows(&[9000]));
        bed.insert_of_split(2, &rows(&[2000, 8000]));
        assert_eq!(bed.take_watermarks(), [1000, 2000, 8000]);
        bed.splits(&[1]);
        bed.insert_of_split(1, &rows(&[8500]));
        assert_eq!(bed.take_watermarks(), [9000], "split 2 is finished");
    }

    #[test]
    fn progress_is_state_and_comes_before_rows() {
        let mut bed = bed(0);
        bed.insert(0, &rows(&[1000]));
        bed.restart(1);
        bed.take();
        bed.insert(0, &rows(&[500, 1100]));
        assert_eq!(bed.take()[0], "watermark 1000");
    }

    #[test]
    fn a_pause_lets_the_rest_out_and_then_makes_idle() {
        let mut bed = bed(5000);
        bed.time(10_000);
        bed.insert(0, &rows(&[1000, 1100]));
        bed.time(10_200);
        assert_eq!(bed.take_watermarks(), [1000, 1100]);
        bed.time(15_000);
        bed.time(15_100);
        assert_eq!(bed.take(), ["idle"]);
        bed.insert(0, &rows(&[1150]));
        assert_eq!(bed.take()[0], "active");
    }

    #[test]
    fn a_row_without_time_is_an_error_that_names_the_column() {
        let mut bed = bed(0);
        let error = bed.try_insert(0, &[vec![Value::Text("x".into()), Value::Null]]).unwrap_err().to_string();
        assert!(error.contains("'ts'"), "{error}");
    }
}
