//! Tables that hand out a few rows at a time, and the result of a SELECT.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arrow::array::RecordBatch;
use flott_chunk::Chunk;
use flott_connector_spi::{Boundedness, DiscoverContext, ReadStatus, ReaderContext, Source, SplitReader, Waker};
use flott_core::{Batch, Error, Result};
use flott_e2e::Random;
use flott_network::Signal;
use flott_operators::program::NodeTargets;
use flott_operators::sink::SinkOperator;
use flott_operators::source::SourceHead;
use flott_operators::{OperatorNode, Push, SourceTask, TaskContext};
use flott_sql::connect::{SourceVisitor, TableConnectors, with_source};
use flott_sql::plan::COLLECT;
use flott_sql_runtime::expr::Functions;
use flott_sql_runtime::operators::lookup_join::LookupTable;
use flott_sql_runtime::operators::values::evaluate;
use flott_sql_runtime::program::Connectors;
use flott_sql_runtime::spec::{CompiledPlan, LookupJoinSpec, OperatorSpec, SinkSpec, SourceSpec};

use crate::results::Results;

/// The connector that VALUES get so that they too come a few rows at a time.
const ROWS: &str = "__rows";

/// How long a reader waits for bytes before it looks again, should nobody wake it.
const PATIENCE: Duration = Duration::from_millis(100);

/// How many rows tables hand out at a time, and how many they have. Clones are the same.
#[derive(Clone)]
pub struct Pace(Arc<PaceOfAll>);

struct PaceOfAll {
    most: u64,
    random: Mutex<Random>,
    handed: AtomicU64,
    limit: AtomicU64,
    is_held: AtomicBool,
}

impl Pace {
    /// From 1 to `most` rows at a time.
    pub fn new(most: u64, seed: u64) -> Self {
        let random = Mutex::new(Random::new(seed));
        let (handed, limit, is_held) = (AtomicU64::new(0), AtomicU64::new(u64::MAX), AtomicBool::new(false));
        Self(Arc::new(PaceOfAll { most: most.max(1), random, handed, limit, is_held }))
    }

    /// How many rows of all tables have been handed out, by this execution and by those that it builds on.
    pub fn handed(&self) -> u64 {
        self.0.handed.load(Ordering::Relaxed)
    }

    /// An execution begins where so many had been handed out.
    pub fn go_back(&self, handed: u64) {
        self.0.handed.store(handed, Ordering::Relaxed);
    }

    /// Hands out no more than so many rows in all for now.
    pub fn limit(&self, rows: u64) {
        self.0.limit.store(rows, Ordering::Relaxed);
    }

    /// How many more rows may be handed out for now.
    fn left(&self) -> u64 {
        self.0.limit.load(Ordering::Relaxed).saturating_sub(self.handed())
    }

    /// Whether no rows are handed out for now.
    pub fn hold(&self, is_held: bool) {
        self.0.is_held.store(is_held, Ordering::Relaxed);
    }

    fn is_held(&self) -> bool {
        self.0.is_held.load(Ordering::Relaxed) || self.left() == 0
    }

    /// How many of `rows` are handed out next.
    fn next(&self, rows: usize) -> usize {
        let most = 1 + self.0.random.lock().unwrap_or_else(PoisonError::into_inner).below(self.0.most);
        let rows = rows.min(usize::try_from(most.min(self.left())).unwrap_or(usize::MAX));
        self.0.handed.fetch_add(rows as u64, Ordering::Relaxed);
        rows
    }
}

/// The connectors of SQL, at a pace.
pub struct PacedTables {
    tables: TableConnectors,
    rows: BTreeMap<String, RecordBatch>,
    pace: Pace,
    results: Results,
}

impl PacedTables {
    /// The tables that a plan has.
    pub fn new(pace: Pace, results: Results) -> Self {
        Self { tables: TableConnectors::new(None), rows: BTreeMap::new(), pace, results }
    }

    /// Makes tables of the VALUES of `plan`. Returns how many rows they have.
    ///
    /// # Errors
    /// A value cannot be computed.
    pub fn take_values(&mut self, plan: &mut CompiledPlan, functions: &Functions) -> Result<u64> {
        let mut taken = 0;
        for (index, node) in plan.nodes.iter_mut().enumerate() {
            let OperatorSpec::Values { rows } = &node.operator else { continue };
            let table = format!("{ROWS}-{index}");
            let rows = evaluate(rows, &node.schema, functions)?;
            taken += rows.num_rows() as u64;
            self.rows.insert(table.clone(), rows);
            node.operator = OperatorSpec::Source(SourceSpec {
                table,
                options: [("connector".to_owned(), ROWS.to_owned())].into(),
                table_schema: Arc::clone(&node.schema),
                metadata: BTreeMap::new(),
                partition_keys: Vec::new(),
                projection: (0..node.schema.fields().len()).collect(),
                limit: None,
                filters: Vec::new(),
                is_batch: false,
            });
        }
        Ok(taken)
    }
}

fn connector(options: &BTreeMap<String, String>) -> Option<&str> {
    options.get("connector").map(String::as_str)
}

impl Connectors for PacedTables {
    fn source(
        &self,
        spec: &SourceSpec,
        functions: &Functions,
        cx: &TaskContext,
        targets: NodeTargets<'_>,
    ) -> Result<Box<dyn SourceTask>> {
        let head = PacedHead { cx, targets, pace: self.pace.clone() };
        if connector(&spec.options) != Some(ROWS) {
            return with_source(spec, Some(functions), head);
        }
        let rows = self.rows.get(&spec.table).ok_or_else(|| Error::system(format!("no rows of {}", spec.table)))?;
        head.visit(Rows(rows.clone()))
    }

    fn sink(&self, spec: &SinkSpec, cx: &TaskContext, mut targets: NodeTargets<'_>) -> Result<Box<dyn Push<Chunk>>> {
        if connector(&spec.options) != Some(COLLECT) {
            return self.tables.sink(spec, cx, targets);
        }
        let sink = SinkOperator::new(self.results.clone(), cx);
        let out = targets.output::<()>()?;
        Ok(Box::new(OperatorNode::new(targets.id, targets.name, sink, out)))
    }

    fn commit(&self, spec: &SinkSpec, cx: &TaskContext, targets: NodeTargets<'_>) -> Result<Box<dyn Push<Chunk>>> {
        self.tables.commit(spec, cx, targets)
    }

    fn lookup(&self, spec: &LookupJoinSpec, functions: &Functions, cx: &TaskContext) -> Result<LookupTable> {
        self.tables.lookup(spec, functions, cx)
    }
}

struct PacedHead<'a> {
    cx: &'a TaskContext,
    targets: NodeTargets<'a>,
    pace: Pace,
}

impl SourceVisitor for PacedHead<'_> {
    type Output = Box<dyn SourceTask>;

    fn visit<S: Source<Item = Chunk>>(mut self, source: S) -> Result<Self::Output> {
        let out = self.targets.output::<Chunk>()?;
        let source = Arc::new(Paced { source, pace: self.pace });
        Ok(Box::new(SourceHead::new(self.targets.id, self.targets.name, source, self.cx, out)?))
    }
}

/// A source whose readers hand out a few rows at a time.
struct Paced<S> {
    source: S,
    pace: Pace,
}

/// A split of the source itself, and how many rows from there have been handed out.
type PacedSplit<S> = (S, u64);

impl<S: Source<Item = Chunk>> Source for Paced<S> {
    type Item = Chunk;
    type Split = PacedSplit<S::Split>;

    fn boundedness(&self) -> Boundedness {
        self.source.boundedness()
    }

    fn discover(&self, cx: &DiscoverContext) -> Result<Vec<Self::Split>> {
        // As few as possible: rows of one split keep their order, and which of them are late.
        let cx = DiscoverContext { io: cx.io.clone(), parallelism: 1 };
        Ok(self.source.discover(&cx)?.into_iter().map(|split| (split, 0)).collect())
    }

    fn reader(&self, cx: ReaderContext) -> Result<Box<dyn SplitReader<Chunk, Self::Split>>> {
        let woken = Signal::new();
        let signal = woken.clone();
        let cx = ReaderContext { waker: Waker::new(move || signal.notify()), ..cx };
        let reader = self.source.reader(cx)?;
        let (pace, waiting) = (self.pace.clone(), Vec::new());
        Ok(Box::new(PacedReader { reader, woken, pace, waiting, current: None, begun: 0 }))
    }
}

struct PacedReader<S> {
    reader: Box<dyn SplitReader<Chunk, S>>,
    woken: Signal,
    pace: Pace,
    /// The splits behind the current one, the next one last.
    waiting: Vec<PacedSplit<S>>,
    current: Option<Current<S>>,
    begun: u32,
}

/// The split that is being read.
struct Current<S> {
    /// Where the reader was before it read `rows`.
    before: S,
    /// What is left of them.
    rows: Chunk,
    /// How many of them have been handed out.
    handed: u64,
}

impl<S: Clone + Send> PacedReader<S> {
    /// Reads rows of the current split; `None` at its end.
    fn read(&mut self) -> Result<Option<Chunk>> {
        let mut batch = Batch::default();
        loop {
            let status = self.reader.poll(&mut batch, Batch::<Chunk>::ROWS_MAX)?;
            if !batch.is_empty() {
                return Chunk::concat(&batch.rows).map(Some);
            }
            match status {
                ReadStatus::Progress => {}
                ReadStatus::NeedsSplit => return Ok(None),
                // The order of steps must not depend on how fast a disk is.
                ReadStatus::Pending | ReadStatus::PendingUntil(_) => {
                    self.woken.wait_until(Some(PATIENCE));
                }
            }
        }
    }

    /// The next rows of the current split, if it has some. How many come at a time may be another than before a restart.
    fn advance(&mut self, mut before: S, mut to_skip: u64) -> Result<()> {
        self.current = None;
        while let Some(rows) = self.read()? {
            if rows.len() as u64 > to_skip {
                let skipped = to_skip as usize;
                let rows = rows.slice(skipped, rows.len() - skipped);
                self.current = Some(Current { before, rows, handed: to_skip });
                return Ok(());
            }
            to_skip -= rows.len() as u64;
            before = self.reader.snapshot()?.pop().unwrap_or(before);
        }
        Ok(())
    }
}

impl<S: Clone + Send> SplitReader<Chunk, PacedSplit<S>> for PacedReader<S> {
    fn add_split(&mut self, split: PacedSplit<S>) -> Result<()> {
        self.waiting.insert(0, split);
        Ok(())
    }

    fn poll(&mut self, batch: &mut Batch<Chunk>, _: usize) -> Result<ReadStatus> {
        loop {
            match &mut self.current {
                Some(current) if !current.rows.is_empty() && self.pace.is_held() => {
                    return Ok(ReadStatus::PendingUntil(0));
                }
                Some(current) if !current.rows.is_empty() => {
                    let (rows, all) = (self.pace.next(current.rows.len()), current.rows.len());
                    batch.rows.push(current.rows.slice(0, rows));
                    batch.split = self.begun;
                    current.rows = current.rows.slice(rows, all - rows);
                    current.handed += rows as u64;
                    // Others have their turn before the next rows.
                    return Ok(ReadStatus::PendingUntil(0));
                }
                Some(current) => {
                    let before = self.reader.snapshot()?.pop();
                    let before = before.unwrap_or_else(|| current.before.clone());
                    self.advance(before, 0)?;
                }
                None => {
                    let Some((split, handed)) = self.waiting.pop() else { return Ok(ReadStatus::NeedsSplit) };
                    self.reader.add_split(split.clone())?;
                    self.begun += 1;
                    self.advance(split, handed)?;
                }
            }
        }
    }

    fn snapshot(&mut self) -> Result<Vec<PacedSplit<S>>> {
        let current = self.current.iter().map(|current| (current.before.clone(), current.handed));
        Ok(current.chain(self.waiting.iter().rev().cloned()).collect())
    }

    fn active_splits(&self) -> Vec<u32> {
        self.current.iter().map(|_| self.begun).collect()
    }

    fn skipped(&self) -> u64 {
        self.reader.skipped()
    }
}

/// Rows as a table.
struct Rows(RecordBatch);

impl Source for Rows {
    type Item = Chunk;
    type Split = ();

    fn boundedness(&self) -> Boundedness {
        Boundedness::Bounded
    }

    fn discover(&self, _: &DiscoverContext) -> Result<Vec<()>> {
        Ok(vec![()])
    }

    fn reader(&self, _: ReaderContext) -> Result<Box<dyn SplitReader<Chunk, ()>>> {
        Ok(Box::new(RowsReader { rows: self.0.clone(), has_split: false }))
    }
}

struct RowsReader {
    rows: RecordBatch,
    has_split: bool,
}

impl SplitReader<Chunk, ()> for RowsReader {
    fn add_split(&mut self, (): ()) -> Result<()> {
        self.has_split = true;
        Ok(())
    }

    fn poll(&mut self, batch: &mut Batch<Chunk>, _: usize) -> Result<ReadStatus> {
        if std::mem::take(&mut self.has_split) && self.rows.num_rows() > 0 {
            batch.rows.push(Chunk::inserts(self.rows.clone()));
            return Ok(ReadStatus::Progress);
        }
        Ok(ReadStatus::NeedsSplit)
    }

    fn snapshot(&mut self) -> Result<Vec<()>> {
        Ok(self.has_split.then_some(()).into_iter().collect())
    }

    fn active_splits(&self) -> Vec<u32> {
        Vec::new()
    }
}
