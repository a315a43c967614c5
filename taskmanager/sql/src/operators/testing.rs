//! A bed for operators in tests: as many subtasks as wanted, that rows are dealt out to by key; what comes out as lines;
//! checkpoints, and restarts at another parallelism in between.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use arrow::array::{ArrayRef, Int64Array, StringArray, TimestampMillisecondArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use flott_checkpoint::{OperatorState, Redistribution};
use flott_chunk::display::write_changelog;
use flott_chunk::{Chunk, RowKind};
use flott_control::CheckpointKind;
use flott_core::ids::{JobId, OperatorId, SubtaskId};
use flott_core::key_group::{group_of, owner_of};
use flott_core::time::Timestamp;
use flott_core::{Batch, Result};
use flott_network::Barrier;
use flott_operators::push::{Control, Output, Push, SideOutputs};
use flott_operators::snapshot::{KeyedContents, RestoredState, StateContents, TaskSnapshot};
use flott_operators::timestamps::SplitSet;
use flott_operators::{Maintenance, OperatorNode, TaskContext};
use flott_state::{Freeze, SnapshotContent, SnapshotMode};
use flott_telemetry::TaskCounters;

use crate::expr::Functions;
use crate::operator::{OverChunks, TableOperator};
use crate::program::{OperatorContext, types_of};
use crate::row::KeyEncoder;
use crate::spec::OperatorSpec;

const MAX_PARALLELISM: u32 = 16;
const OPERATOR: OperatorId = OperatorId([1; 16]);

/// A value of a row.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Value {
    Null,
    /// Of a BIGINT, or a time in milliseconds.
    Int(i64),
    Text(String),
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

/// A row of values that become [`Value`]s.
macro_rules! row {
    ($($value:expr),*) => { vec![$($crate::operators::testing::Value::from($value)),*] };
}
pub(crate) use row;

pub(crate) fn int() -> DataType {
    DataType::Int64
}

pub(crate) fn text() -> DataType {
    DataType::Utf8
}

pub(crate) fn timestamp() -> DataType {
    DataType::Timestamp(TimeUnit::Millisecond, None)
}

pub(crate) fn columns(columns: &[(&str, DataType)]) -> SchemaRef {
    let fields = columns.iter().map(|(name, data_type)| Field::new(*name, data_type.clone(), true));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// The chunk of these changes.
pub(crate) fn chunk(schema: &SchemaRef, changes: &[(RowKind, Vec<Value>)]) -> Chunk {
    let column = |index: usize| -> ArrayRef {
        let values = changes.iter().map(|(_, row)| &row[index]);
        let ints = values.clone().map(|value| if let Value::Int(value) = value { Some(*value) } else { None });
        match schema.field(index).data_type() {
            DataType::Int64 => Arc::new(Int64Array::from_iter(ints)),
            DataType::Timestamp(..) => Arc::new(TimestampMillisecondArray::from_iter(ints)),
            _ => Arc::new(StringArray::from_iter(
                values.map(|value| if let Value::Text(value) = value { Some(value.as_str()) } else { None }),
            )),
        }
    };
    let columns = (0..schema.fields().len()).map(column).collect();
    Chunk::of_columns(schema, columns, changes.len(), changes.iter().map(|(kind, _)| *kind).collect()).unwrap()
}

struct Recorder(Arc<Mutex<Vec<String>>>);

impl Push<Chunk> for Recorder {
    fn push(&mut self, batch: &mut Batch<Chunk>) -> Result<()> {
        let mut log = self.0.lock().unwrap();
        for chunk in batch.rows.drain(..) {
            log.extend((0..chunk.len()).map(|row| {
                let mut line = String::new();
                write_changelog(&chunk, row, &mut line);
                line
            }));
        }
        Ok(())
    }

    fn control(&mut self, control: &mut Control<'_>) -> Result<()> {
        let mut log = self.0.lock().unwrap();
        match control {
            Control::Watermark(watermark) => log.push(format!("watermark {watermark}")),
            Control::Idle => log.push("idle".to_owned()),
            Control::Active => log.push("active".to_owned()),
            _ => {}
        }
        Ok(())
    }
}

type Node = OperatorNode<OverChunks<Box<dyn TableOperator>>, Chunk>;

/// Makes the operator of a subtask.
type Make = Box<dyn Fn(&TaskContext) -> Result<Box<dyn TableOperator>>>;

/// The subtasks of an operator. Each input is dealt out by its key.
pub(crate) struct Bed {
    make: Make,
    keys: Vec<Vec<usize>>,
    inputs: Vec<SchemaRef>,
    runtime: tokio::runtime::Runtime,
    nodes: Vec<Node>,
    log: Arc<Mutex<Vec<String>>>,
    splits: Arc<SplitSet>,
    counters: Arc<TaskCounters>,
    checkpoint: u64,
}

impl Bed {
    /// One subtask, whose rows have no key.
    pub(crate) fn new(spec: OperatorSpec, inputs: &[SchemaRef], output: &SchemaRef) -> Self {
        Self::keyed(spec, &[], inputs, output)
    }

    /// One subtask to begin with; for each input the columns of its key.
    pub(crate) fn keyed(spec: OperatorSpec, keys: &[Vec<usize>], inputs: &[SchemaRef], output: &SchemaRef) -> Self {
        let (schemas, output) = (inputs.to_vec(), Arc::clone(output));
        let make = move |task: &TaskContext| {
            let functions = Functions::new([]);
            let cx = OperatorContext { task, functions: &functions, inputs: &schemas, output: &output };
            super::make(&spec, &cx)
        };
        Self::of(make, keys, inputs)
    }

    /// The same of an operator that `make` makes.
    pub(crate) fn of(
        make: impl Fn(&TaskContext) -> Result<Box<dyn TableOperator>> + 'static,
        keys: &[Vec<usize>],
        inputs: &[SchemaRef],
    ) -> Self {
        let mut bed = Self {
            make: Box::new(make),
            keys: keys.to_vec(),
            inputs: inputs.to_vec(),
            runtime: tokio::runtime::Builder::new_current_thread().build().unwrap(),
            nodes: Vec::new(),
            log: Arc::default(),
            splits: Arc::default(),
            counters: Arc::default(),
            checkpoint: 0,
        };
        bed.nodes = vec![bed.node(0, 1).unwrap()];
        bed.nodes[0].control(&mut Control::Open(&mut RestoredState::default())).unwrap();
        bed
    }

    /// What the subtask `index` of so many is made with.
    pub(crate) fn task(&self, index: u32, parallelism: u32) -> TaskContext {
        TaskContext {
            job: JobId([1; 16]),
            generation: 1,
            subtask: SubtaskId { vertex: 0, index },
            name: "tested".to_owned(),
            parallelism,
            max_parallelism: MAX_PARALLELISM,
            config: Default::default(),
            counters: Arc::clone(&self.counters),
            io: self.runtime.handle().clone(),
            waker: flott_connector_spi::Waker::noop(),
            woken: Default::default(),
            outlet: Default::default(),
            splits: Arc::clone(&self.splits),
            state: Default::default(),
        }
    }

    fn node(&self, index: u32, parallelism: u32) -> Result<Node> {
        let task = self.task(index, parallelism);
        let operator = OverChunks::new((self.make)(&task)?);
        let targets = vec![Box::new(Recorder(Arc::clone(&self.log))) as Box<dyn Push<Chunk>>];
        Ok(OperatorNode::new(OPERATOR, "tested", operator, Output::new(targets, SideOutputs::default())))
    }

    /// Changes that come in by `input`, in one chunk for each subtask.
    pub(crate) fn try_change(&mut self, input: usize, split: u32, changes: &[(RowKind, Vec<Value>)]) -> Result<()> {
        let mut chunk = chunk(&self.inputs[input], changes);
        chunk.input = input as u8;
        self.deal(chunk, split)
    }

    /// Deals out the rows of a chunk, whose `input` says where it comes in.
    fn deal(&mut self, mut chunk: Chunk, split: u32) -> Result<()> {
        let input = usize::from(chunk.input);
        let parallelism = self.nodes.len() as u32;
        let mut targets: Vec<Vec<u32>> = vec![Vec::new(); self.nodes.len()];
        match self.keys.get(input) {
            Some(columns) => {
                let mut keys = KeyEncoder::new(columns, &types_of(&self.inputs[input])).unwrap();
                let keys = keys.encode(chunk.batch.columns(), chunk.len(), None).unwrap();
                for (row, hash) in keys.hashes.iter().enumerate() {
                    let group = group_of(*hash, MAX_PARALLELISM);
                    targets[owner_of(group, parallelism, MAX_PARALLELISM) as usize].push(row as u32);
                }
                chunk.hashes = Some(keys.hashes.as_slice().into());
            }
            None => targets[0].extend(0..chunk.len() as u32),
        }
        for (node, rows) in self.nodes.iter_mut().zip(targets) {
            if !rows.is_empty() {
                let rows = vec![chunk.take(&rows).unwrap()];
                node.push(&mut Batch { rows, split, ..Batch::default() })?;
            }
            Push::<Chunk>::control(node, &mut Control::Maintain(&mut Maintenance::default()))?;
        }
        Ok(())
    }

    /// Rows as they are in a chunk, whose `input` says where they come in.
    pub(crate) fn push(&mut self, chunk: &Chunk) {
        self.deal(chunk.clone(), 0).unwrap();
    }

    pub(crate) fn change(&mut self, input: usize, changes: &[(RowKind, Vec<Value>)]) {
        self.try_change(input, 0, changes).unwrap();
    }

    pub(crate) fn try_insert(&mut self, input: usize, rows: &[Vec<Value>]) -> Result<()> {
        let changes: Vec<_> = rows.iter().map(|row| (RowKind::Insert, row.clone())).collect();
        self.try_change(input, 0, &changes)
    }

    pub(crate) fn insert(&mut self, input: usize, rows: &[Vec<Value>]) {
        self.try_insert(input, rows).unwrap();
    }

    pub(crate) fn insert_of_split(&mut self, split: u32, rows: &[Vec<Value>]) {
        let changes: Vec<_> = rows.iter().map(|row| (RowKind::Insert, row.clone())).collect();
        self.try_change(0, split, &changes).unwrap();
    }

    /// Which splits the source reads.
    pub(crate) fn splits(&self, splits: &[u32]) {
        self.splits.set(splits);
    }

    pub(crate) fn try_control(&mut self, mut control: impl FnMut(&mut Node) -> Result<()>) -> Result<()> {
        self.nodes.iter_mut().try_for_each(&mut control)
    }

    pub(crate) fn watermark(&mut self, watermark: Timestamp) {
        self.try_control(|node| node.control(&mut Control::Watermark(watermark))).unwrap();
    }

    /// The wall clock.
    pub(crate) fn time(&mut self, now: Timestamp) {
        let mut next = Timestamp::MAX;
        self.try_control(|node| node.control(&mut Control::Time { now, is_blocked: false, next: &mut next })).unwrap();
    }

    pub(crate) fn end(&mut self) {
        self.try_control(|node| node.control(&mut Control::EndOfInput)).unwrap();
    }

    /// Goes on with new subtasks, as many as that, which are restored from a checkpoint of the old ones.
    pub(crate) fn restart(&mut self, parallelism: u32) {
        let mut contents = Vec::new();
        let mut elements: BTreeMap<String, OperatorState> = BTreeMap::new();
        for node in &mut self.nodes {
            let freeze = Freeze { checkpoint: 1, mode: SnapshotMode::Full, is_rewindable: true };
            let mut snapshot = TaskSnapshot::new(freeze);
            let barrier = Barrier { checkpoint: 1, triggered_ms: 0, kind: CheckpointKind::Checkpoint };
            node.control(&mut Control::Barrier(&barrier, &mut snapshot)).unwrap();
            while snapshot.is_pending {
                snapshot.is_pending = false;
                snapshot.entries_max = 3;
                node.control(&mut Control::Drain(&mut snapshot)).unwrap();
            }
            let (content, _) = snapshot.writer.finish().unwrap();
            let SnapshotContent::Memory(bytes) = content else { panic!("no place to overflow to") };
            let state = |state| StateContents { state, table: None, runs: None };
            contents.push((bytes, snapshot.keyed_states.into_iter().map(state).collect::<Vec<_>>()));
            for state in snapshot.operator_states {
                match elements.get_mut(&state.name) {
                    Some(known) => known.elements.extend(state.elements),
                    None => drop(elements.insert(state.name.clone(), state)),
                }
            }
        }
        self.nodes = (0..parallelism).map(|index| self.node(index, parallelism).unwrap()).collect();
        for (index, node) in self.nodes.iter_mut().enumerate() {
            let keyed = contents.iter().map(|(bytes, states)| {
                let state =
                    |state: &StateContents| StateContents { state: state.state.clone(), table: None, runs: None };
                KeyedContents { files: vec![bytes.clone().into()], states: states.iter().map(state).collect() }
            });
            let own = elements.values().cloned().map(|mut state| {
                if state.redistribution == Redistribution::Split {
                    state.elements = state.elements.into_iter().skip(index).step_by(parallelism as usize).collect();
                }
                state
            });
            let mut restored = RestoredState::new(keyed.collect(), own.collect());
            restored.place = (index as u32, parallelism);
            node.control(&mut Control::Open(&mut restored)).unwrap();
        }
    }

    /// How many bytes a checkpoint has that only says what changed since the last one. The first one has everything.
    pub(crate) fn changed_bytes(&mut self) -> usize {
        let mut bytes = 0;
        for node in &mut self.nodes {
            self.checkpoint += 1;
            let (checkpoint, mode) = (self.checkpoint, SnapshotMode::Incremental);
            let mut snapshot = TaskSnapshot::new(Freeze { checkpoint, mode, is_rewindable: true });
            let barrier = Barrier { checkpoint, triggered_ms: 0, kind: CheckpointKind::Checkpoint };
            Push::<Chunk>::control(node, &mut Control::Barrier(&barrier, &mut snapshot)).unwrap();
            while std::mem::take(&mut snapshot.is_pending) {
                snapshot.entries_max = 1000;
                Push::<Chunk>::control(node, &mut Control::Drain(&mut snapshot)).unwrap();
            }
            let (content, _) = snapshot.writer.finish().unwrap();
            let SnapshotContent::Memory(content) = content else { panic!("no place to overflow to") };
            bytes += content.len();
        }
        bytes
    }

    /// How many entries each keyed state has, in all subtasks together.
    pub(crate) fn entries(&mut self) -> BTreeMap<String, u64> {
        let mut entries = BTreeMap::new();
        for node in &mut self.nodes {
            let mut done = Maintenance::default();
            Push::<Chunk>::control(node, &mut Control::Maintain(&mut done)).unwrap();
            for state in done.states {
                *entries.entry(state.name).or_default() += state.entries;
            }
        }
        entries
    }

    /// Ends the input; what came out since the last look, without watermarks.
    pub(crate) fn finish(mut self) -> Vec<String> {
        self.end();
        let mut log = self.take();
        log.retain(|line| !line.starts_with("watermark"));
        log
    }

    /// What came out since the last look.
    pub(crate) fn take(&mut self) -> Vec<String> {
        std::mem::take(&mut *self.log.lock().unwrap())
    }

    /// The rows that came out since the last look.
    pub(crate) fn take_rows(&mut self) -> Vec<String> {
        self.take().into_iter().filter(|line| line.contains('\t')).collect()
    }

    /// The watermarks that came out since the last look.
    pub(crate) fn take_watermarks(&mut self) -> Vec<i64> {
        self.take().iter().filter_map(|line| line.strip_prefix("watermark ")?.parse().ok()).collect()
    }

    /// How many rows were dropped because they were late.
    pub(crate) fn late(&self) -> u64 {
        self.counters.late_records_dropped.get()
    }
}

/// The rows that a changelog leaves, with how often they are there. Every row that goes must have been there.
pub(crate) fn fold(log: &[String]) -> BTreeMap<String, i64> {
    let mut rows = BTreeMap::new();
    for line in log {
        let (kind, row) = line.split_once('\t').unwrap();
        let count: &mut i64 = rows.entry(row.to_owned()).or_default();
        *count += if kind.starts_with('+') { 1 } else { -1 };
        assert!(*count >= 0, "{row} is taken back before it is there: {log:#?}");
    }
    rows.retain(|_, count| *count != 0);
    rows
}

/// The rows that a changelog without `-U` leaves to someone who knows them by the columns `key`.
pub(crate) fn fold_by_key(log: &[String], key: &[usize]) -> BTreeMap<Vec<String>, String> {
    let mut rows = BTreeMap::new();
    for line in log {
        let (kind, row) = line.split_once('\t').unwrap();
        let fields: Vec<&str> = row.split('\t').collect();
        let key = key.iter().map(|column| fields[*column].to_owned()).collect();
        match kind {
            "-D" => drop(rows.remove(&key)),
            "-U" => panic!("-U is not wanted: {log:#?}"),
            _ => drop(rows.insert(key, row.to_owned())),
        }
    }
    rows
}
