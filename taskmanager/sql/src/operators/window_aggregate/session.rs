//! Sessions, of which every key has its own.

use std::sync::Arc;

use flott_chunk::Chunk;
use flott_core::Result;
use flott_core::time::Timestamp;
use flott_network::Barrier;
use flott_operators::operator::{OpenContext, OperatorSnapshot, StateVisitor};
use flott_telemetry::TaskCounters;

use super::{WindowClock, WindowOutput};
use crate::aggregates::update::Changes;
use crate::aggregates::{Accumulators, Aggregates, Arena};
use crate::operator::{Emit, TableOperator};
use crate::operators::sessions::OpenSessions;
use crate::program::OperatorContext;
use crate::row::KeyEncoder;
use crate::spec::{TimeSpec, WindowAggregateSpec};

/// See the module's documentation.
pub struct SessionAggregate {
    keys: KeyEncoder,
    open: OpenSessions<Accumulators>,
    aggregates: Aggregates,
    arena: Arena,
    time: TimeSpec,
    clock: WindowClock,
    output: WindowOutput,
    counters: Arc<TaskCounters>,
}

impl SessionAggregate {
    /// Makes it, without rows.
    ///
    /// # Errors
    /// An aggregate cannot be computed, or a column cannot be a key.
    pub fn new(spec: &WindowAggregateSpec, gap_ms: i64, cx: &OperatorContext<'_>) -> Result<Self> {
        let aggregates = Aggregates::with(&spec.aggregates, &cx.inputs[0], !spec.is_insert_only, cx.functions)?;
        Ok(Self {
            keys: KeyEncoder::new(&spec.keys, &cx.types(0))?,
            open: OpenSessions::new(gap_ms, cx),
            arena: aggregates.arena(),
            aggregates,
            time: spec.time.clone(),
            clock: WindowClock::new(&spec.time, spec.zone.as_deref())?,
            output: WindowOutput::new(spec, cx)?,
            counters: Arc::clone(&cx.task.counters),
        })
    }

    /// Puts out the sessions that are over, earliest first.
    fn fire(&mut self, out: &mut Emit<'_>) -> Result<()> {
        let Self { open, aggregates, arena, output, clock, .. } = self;
        open.end(clock.now(), |key, mut session| {
            arena.load(&mut session.content);
            output.add(key.clone(), session.window);
            if output.len() >= Chunk::ROWS_MAX { output.send(aggregates, arena, out) } else { Ok(()) }
        })?;
        output.send(aggregates, arena, out)
    }
}

impl TableOperator for SessionAggregate {
    fn process(&mut self, chunk: Chunk, _: &mut Emit<'_>) -> Result<()> {
        let times = self.clock.times(&self.time, &chunk)?;
        let keys = self.keys.encode(chunk.batch.columns(), chunk.len(), chunk.hashes.as_deref())?;
        let mut kept = self.open.load(keys);
        let now = self.clock.now();
        // A row that is taken back from a session that is not there makes none: it was late when it came.
        let mut late = 0;
        let numbers: Vec<Option<u32>> = (0..chunk.len())
            .map(|row| {
                let time = times.value(row);
                if !chunk.kind(row).is_addition() && !self.open.has(row, time) {
                    return None;
                }
                let number = self.open.add(row, time, now);
                late += u64::from(number.is_none());
                number
            })
            .collect();
        self.counters.late_records_dropped.add(late);
        // What is kept of sessions that have rows, as groups.
        self.arena.clear();
        let sessions = self.open.of_chunk();
        let mut groups = vec![0_u32; sessions.numbers()];
        for (key, opens) in sessions.keys.iter().enumerate() {
            for open in opens {
                let Some(number) = open.number else { continue };
                let mut parts = open.kept.iter();
                let group = match parts.next() {
                    Some(first) => self.arena.load(&mut kept[key][*first].content),
                    None => self.arena.add(),
                };
                for part in parts {
                    self.aggregates.merge(&mut self.arena, group, &kept[key][*part].content)?;
                }
                groups[number as usize] = group as u32;
            }
        }
        let group_of = |number: u32| groups[sessions.root(number) as usize];
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
        let arena = &mut self.arena;
        self.open.store(self.keys.last(), |key, open| {
            let Some(number) = open.number else {
                return open.kept.first().map(|place| std::mem::take(&mut kept[key][*place].content));
            };
            let group = groups[number as usize] as usize;
            let mut content = Accumulators::default();
            arena.store(group, &mut content);
            (content.rows > 0).then_some(content)
        });
        self.arena.clear();
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
