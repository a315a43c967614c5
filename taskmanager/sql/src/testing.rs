//! A bed for tests of operators: several subtasks that rows are dealt out to by key, snapshots, and restores at another
//! parallelism.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use arrow::datatypes::SchemaRef;
use flott_checkpoint::{KeyedState, OperatorState};
use flott_chunk::Chunk;
use flott_chunk::display::write_changelog;
use flott_control::CheckpointKind;
use flott_core::ids::{JobId, OperatorId, SubtaskId};
use flott_core::key_group::{group_of, owner_of};
use flott_core::time::Timestamp;
use flott_core::{Batch, Result};
use flott_network::Barrier;
use flott_operators::push::{Control, Output, Push, SideOutputs};
use flott_operators::{
    KeyedContents, Maintenance, OperatorNode, RestoredState, StateContents, TaskContext, TaskSnapshot,
};
use flott_state::{Freeze, SnapshotContent, SnapshotMode};

use crate::expr::Functions;
use crate::operator::{OverChunks, TableOperator};
use crate::program::{OperatorContext, types_of};
use crate::row::KeyEncoder;
use crate::spec::OperatorSpec;

const OPERATOR: OperatorId = OperatorId([7; 16]);
const GROUPS: u32 = 16;

/// What came out, in order: changes as they are shown, and watermarks.
type Log = Arc<Mutex<Vec<String>>>;

struct Recorder(Log);

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
        if let Control::Watermark(watermark) = control {
            self.0.lock().unwrap().push(format!("watermark {watermark}"));
        }
        Ok(())
    }
}

/// Makes the operator of a subtask.
type Make = Box<dyn Fn(&TaskContext) -> Box<dyn TableOperator>>;

/// An operator in as many subtasks as wanted.
pub(crate) struct Bed {
    make: Make,
    keys: Vec<KeyEncoder>,
    subtasks: Vec<Box<dyn Push<Chunk>>>,
    log: Log,
    runtime: tokio::runtime::Runtime,
}

impl Bed {
    /// One subtask of `spec`; `keys` are the columns by which each input is dealt out.
    pub(crate) fn new(spec: OperatorSpec, inputs: Vec<SchemaRef>, output: SchemaRef, keys: &[Vec<usize>]) -> Self {
        let schemas = inputs.clone();
        let make = move |task: &TaskContext| {
            let functions = Functions::new([]);
            let cx = OperatorContext { task, functions: &functions, inputs: &schemas, output: &output };
            crate::operators::make(&spec, &cx).unwrap()
        };
        Self::of(make, &inputs, keys)
    }

    /// One subtask of an operator that `make` makes.
    pub(crate) fn of(
        make: impl Fn(&TaskContext) -> Box<dyn TableOperator> + 'static,
        inputs: &[SchemaRef],
        keys: &[Vec<usize>],
    ) -> Self {
        let keys = inputs.iter().zip(keys).map(|(input, keys)| KeyEncoder::new(keys, &types_of(input)).unwrap());
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (make, keys) = (Box::new(make), keys.collect());
        let mut bed = Self { make, keys, subtasks: Vec::new(), log: Log::default(), runtime };
        bed.subtasks = vec![bed.subtask(0, 1)];
        bed.subtasks[0].control(&mut Control::Open(&mut RestoredState::default())).unwrap();
        bed
    }

    fn subtask(&self, index: u32, parallelism: u32) -> Box<dyn Push<Chunk>> {
        let task = TaskContext {
            job: JobId([1; 16]),
            generation: 1,
            subtask: SubtaskId { vertex: 0, index },
            name: "tested".to_owned(),
            parallelism,
            max_parallelism: GROUPS,
            config: Default::default(),
            counters: Default::default(),
            io: self.runtime.handle().clone(),
            waker: flott_connector_spi::Waker::noop(),
            woken: Default::default(),
            splits: Default::default(),
            state: Default::default(),
        };
        let operator = (self.make)(&task);
        let out = Output::new(vec![Box::new(Recorder(Arc::clone(&self.log))) as _], SideOutputs::default());
        Box::new(OperatorNode::<_, Chunk>::new(OPERATOR, "tested", OverChunks::new(operator), out))
    }

    /// Deals out the rows of a chunk, whose `input` says where it comes in.
    pub(crate) fn push(&mut self, chunk: &Chunk) {
        let keys = &mut self.keys[usize::from(chunk.input)];
        let hashes = keys.encode(chunk.batch.columns(), chunk.len(), None).unwrap().hashes.clone();
        let parallelism = self.subtasks.len() as u32;
        for (index, subtask) in self.subtasks.iter_mut().enumerate() {
            let owner = |hash: u64| owner_of(group_of(hash, GROUPS), parallelism, GROUPS) as usize;
            let rows: Vec<u32> =
                (0..chunk.len()).filter(|row| owner(hashes[*row]) == index).map(|row| row as u32).collect();
            subtask.push(&mut Batch::from_rows(vec![chunk.take(&rows).unwrap()])).unwrap();
            subtask.control(&mut Control::Maintain(&mut Maintenance::default())).unwrap();
        }
    }

    /// Sends a watermark to all subtasks.
    pub(crate) fn watermark(&mut self, watermark: Timestamp) {
        self.subtasks.iter_mut().for_each(|subtask| subtask.control(&mut Control::Watermark(watermark)).unwrap());
    }

    /// Says what time it is.
    pub(crate) fn time(&mut self, now: Timestamp) {
        for subtask in &mut self.subtasks {
            let mut next = Timestamp::MAX;
            subtask.control(&mut Control::Time { now, is_blocked: false, next: &mut next }).unwrap();
        }
    }

    /// How many entries each keyed state has, in all subtasks together.
    pub(crate) fn entries(&mut self) -> BTreeMap<String, u64> {
        let mut entries = BTreeMap::new();
        for subtask in &mut self.subtasks {
            let mut done = Maintenance::default();
            subtask.control(&mut Control::Maintain(&mut done)).unwrap();
            for state in done.states {
                *entries.entry(state.name).or_default() += state.entries;
            }
        }
        entries
    }

    /// Takes a snapshot, and goes on from it with so many new subtasks.
    pub(crate) fn restart(&mut self, parallelism: u32) {
        let mut operator_states: Vec<OperatorState> = Vec::new();
        let mut parts: Vec<(Vec<u8>, Vec<KeyedState>)> = Vec::new();
        for subtask in &mut self.subtasks {
            let mode = SnapshotMode::Full;
            let mut snapshot = TaskSnapshot::new(Freeze { checkpoint: 1, mode, is_rewindable: true });
            let barrier = Barrier { checkpoint: 1, triggered_ms: 0, kind: CheckpointKind::Checkpoint };
            subtask.control(&mut Control::Barrier(&barrier, &mut snapshot)).unwrap();
            while std::mem::take(&mut snapshot.is_pending) {
                snapshot.entries_max = 3;
                subtask.control(&mut Control::Drain(&mut snapshot)).unwrap();
            }
            for state in snapshot.operator_states {
                match operator_states.iter_mut().find(|other| other.name == state.name) {
                    Some(other) => other.elements.extend(state.elements),
                    None => operator_states.push(state),
                }
            }
            let (content, _) = snapshot.writer.finish().unwrap();
            let SnapshotContent::Memory(bytes) = content else { panic!("no place to overflow to") };
            parts.push((bytes, snapshot.keyed_states));
        }
        self.subtasks = (0..parallelism).map(|index| self.subtask(index, parallelism)).collect();
        for (index, subtask) in self.subtasks.iter_mut().enumerate() {
            let contents = |(bytes, states): &(Vec<u8>, Vec<KeyedState>)| KeyedContents {
                files: vec![bytes.clone().into()],
                states: states
                    .iter()
                    .map(|state| StateContents { state: state.clone(), table: None, runs: None })
                    .collect(),
            };
            let mut restored = RestoredState::new(parts.iter().map(contents).collect(), operator_states.clone());
            restored.place = (index as u32, parallelism);
            subtask.control(&mut Control::Open(&mut restored)).unwrap();
        }
    }

    /// What came out since the last time.
    pub(crate) fn take(&mut self) -> Vec<String> {
        std::mem::take(&mut self.log.lock().unwrap())
    }

    /// Ends the input; what came out since the last time, without watermarks.
    pub(crate) fn finish(mut self) -> Vec<String> {
        self.subtasks.iter_mut().for_each(|subtask| subtask.control(&mut Control::EndOfInput).unwrap());
        let mut log = self.take();
        log.retain(|line| !line.starts_with("watermark"));
        log
    }
}
