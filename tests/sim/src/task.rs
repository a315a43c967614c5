//! Model tasks: a source that numbers its records, and a sink that commits them in two phases, some of them only when a
//! window has closed.
//!
//! They do by the contract what real tasks do with batches and files: snapshot at the barrier,
//! restore from what they are given, go back to a checkpoint where they are, and commit when they are told to,
//! or when they are restored.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;

use flott_checkpoint::{FileHandle, KeyedState, OperatorState, Redistribution, SubtaskSnapshot, TaskRestore};
use flott_control::{CheckpointKind, ExecutionId};
use flott_core::ids::{CheckpointId, JobId, SubtaskId};
use flott_core::key_group::{KeyGroup, owner_of};

use crate::oracle::Violation;
use crate::scenario::{SINK, SINK_OPERATOR, SOURCE_OPERATOR};
use crate::state::{Counts, Entries, Key, record_of};

/// How many records or elements one step handles.
pub(crate) const STEP_ELEMENTS: usize = 4;

/// After how many changes a sink writes all of its state again.
const CHAIN_FILES_MAX: usize = 4;

/// One record in so many belongs to a window that only the end of the input closes.
const WINDOW_RECORDS: u64 = 7;

/// What travels from a source to a sink.
#[derive(Clone, Debug)]
pub(crate) enum Element {
    Record(u64),
    Barrier(CheckpointId, CheckpointKind),
    End,
}

/// What a task did.
#[derive(Clone, Debug)]
pub(crate) enum Effect {
    /// It sent an element to this subtask.
    Push(SubtaskId, Element),
    /// It wants a split.
    RequestSplit,
    /// It took its part of a checkpoint.
    Snapshot(CheckpointId, Box<SubtaskSnapshot>),
    /// It wrote a file.
    Write(String, Entries),
    /// It made records visible.
    Commit(Committable),
    /// It has processed all its input.
    Finishing,
    /// It got something that it must not get.
    Violation(Violation),
}

/// Records that become visible together, once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Committable {
    /// Repeating a commit with the same token changes nothing.
    pub(crate) token: String,
    /// The execution in which the subtask was started that made it.
    pub(crate) execution: ExecutionId,
    pub(crate) subtask: SubtaskId,
    /// The checkpoint that first covered it.
    pub(crate) checkpoint: CheckpointId,
    pub(crate) records: Vec<u64>,
}

impl Committable {
    fn encode(&self) -> Vec<u8> {
        let mut bytes = self.execution.job.0.to_vec();
        bytes.extend(self.execution.generation.to_le_bytes());
        bytes.extend(self.checkpoint.to_le_bytes());
        bytes.extend(self.subtask.vertex.to_le_bytes());
        bytes.extend(self.subtask.index.to_le_bytes());
        bytes.extend((self.token.len() as u64).to_le_bytes());
        bytes.extend(self.token.as_bytes());
        bytes.extend(self.records.iter().flat_map(|record| record.to_le_bytes()));
        bytes
    }

    fn decode(bytes: &[u8]) -> Self {
        let (header, rest) = bytes.split_at(48);
        let (token, records) = rest.split_at(number(&header[40..]) as usize);
        let job = JobId(std::array::from_fn(|i| header[i]));
        Self {
            token: String::from_utf8_lossy(token).into_owned(),
            execution: ExecutionId { job, generation: number(&header[16..24]) },
            checkpoint: number(&header[24..32]),
            subtask: SubtaskId { vertex: number(&header[32..36]) as u32, index: number(&header[36..40]) as u32 },
            records: records.chunks_exact(8).map(number).collect(),
        }
    }
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, &byte| (number << 8) | u64::from(byte))
}

/// A range of a split that is still to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Split {
    pub(crate) id: u32,
    pub(crate) count: u32,
    pub(crate) position: u32,
}

impl Split {
    /// As the JobManager and checkpoints carry it.
    pub(crate) fn encode(self) -> Vec<u8> {
        [self.id, self.count, self.position].iter().flat_map(|number| number.to_le_bytes()).collect()
    }

    fn decode(bytes: &[u8]) -> Self {
        let part = |i: usize| number(&bytes[i * 4..i * 4 + 4]) as u32;
        Self { id: part(0), count: part(1), position: part(2) }
    }
}

fn state(source: bool, name: &str, elements: Vec<Vec<u8>>) -> OperatorState {
    let operator = if source { SOURCE_OPERATOR } else { SINK_OPERATOR };
    OperatorState { operator, name: name.into(), redistribution: Redistribution::Split, elements }
}

fn file(path: String) -> FileHandle {
    FileHandle { path, bytes: 1, sha256: String::new() }
}

fn restored<'a>(restore: Option<&'a TaskRestore>, name: &'a str) -> impl Iterator<Item = &'a Vec<u8>> {
    let states = restore.into_iter().flat_map(|restore| &restore.operator_states);
    states.filter(move |state| state.name == name).flat_map(|state| &state.elements)
}

/// A subtask of the source.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    /// The sinks that it sends to: all of them by key, or one of them everything.
    sinks: Range<u32>,
    max_parallelism: u32,
    splits: VecDeque<Split>,
    has_requested: bool,
    has_all: bool,
    has_ended: bool,
}

impl Source {
    pub(crate) fn new(sinks: Range<u32>, max_parallelism: u32, restore: Option<&TaskRestore>) -> Self {
        let splits = restored(restore, "splits").map(|bytes| Split::decode(bytes)).collect();
        Self { sinks, max_parallelism, splits, has_requested: false, has_all: false, has_ended: false }
    }

    /// Reads a little. Returns whether it can go on at once.
    pub(crate) fn step(&mut self, effects: &mut Vec<Effect>) -> bool {
        if self.has_ended {
            return false;
        }
        for _ in 0..STEP_ELEMENTS {
            while self.splits.front().is_some_and(|split| split.position == split.count) {
                self.splits.pop_front();
            }
            let Some(split) = self.splits.front_mut() else { break };
            let record = record_of(split.id, split.position);
            split.position += 1;
            let index = match self.sinks.len() as u32 {
                1 => self.sinks.start,
                sinks => owner_of(Key::of(record).group(self.max_parallelism), sinks, self.max_parallelism),
            };
            effects.push(Effect::Push(SubtaskId { vertex: SINK, index }, Element::Record(record)));
        }
        if !self.splits.is_empty() {
            return true;
        }
        if self.has_all {
            self.end(effects);
        } else if !self.has_requested {
            self.has_requested = true;
            effects.push(Effect::RequestSplit);
        }
        false
    }

    fn end(&mut self, effects: &mut Vec<Effect>) {
        self.has_ended = true;
        self.broadcast(&Element::End, effects);
        effects.push(Effect::Finishing);
    }

    fn broadcast(&self, element: &Element, effects: &mut Vec<Effect>) {
        effects
            .extend(self.sinks.clone().map(|index| Effect::Push(SubtaskId { vertex: SINK, index }, element.clone())));
    }

    pub(crate) fn add_splits(&mut self, splits: &[Vec<u8>], is_last: bool) {
        self.has_requested = false;
        self.has_all |= is_last;
        self.splits.extend(splits.iter().map(|bytes| Split::decode(bytes)));
    }

    pub(crate) fn trigger(&mut self, checkpoint: CheckpointId, kind: &CheckpointKind, effects: &mut Vec<Effect>) {
        // Windows are to close in front of the barrier, so that what they give belongs to the checkpoint.
        if matches!(kind, CheckpointKind::Savepoint { stop: true, drain: true, .. }) && !self.has_ended {
            self.end(effects);
        }
        self.broadcast(&Element::Barrier(checkpoint, kind.clone()), effects);
        let elements = self.splits.iter().map(|split| split.encode()).collect();
        let snapshot =
            SubtaskSnapshot { operator_states: vec![state(true, "splits", elements)], ..SubtaskSnapshot::default() };
        effects.push(Effect::Snapshot(checkpoint, Box::new(snapshot)));
        if matches!(kind, CheckpointKind::Savepoint { stop: true, .. }) && !self.has_ended {
            self.end(effects);
        }
    }
}

/// A subtask of the sink.
#[derive(Clone, Debug)]
pub(crate) struct Sink {
    execution: ExecutionId,
    subtask: SubtaskId,
    sources: Range<u32>,
    checkpoint_dir: String,
    counts: Counts,
    current: Vec<u64>,
    /// What is in windows that have not closed: state that belongs to no key.
    open: Vec<u64>,
    pending: BTreeMap<CheckpointId, Committable>,
    /// Its incremental state: a base and what changed since.
    chain: Vec<FileHandle>,
    aligning: Option<(CheckpointId, BTreeSet<u32>)>,
    /// The last checkpoint that is behind it, taken or aborted.
    last: CheckpointId,
    ended: BTreeSet<u32>,
}

impl Sink {
    pub(crate) fn new(
        execution: ExecutionId,
        subtask: SubtaskId,
        sources: Range<u32>,
        checkpoint_dir: &str,
        counts: Counts,
        restore: Option<&TaskRestore>,
        effects: &mut Vec<Effect>,
    ) -> Self {
        // The checkpoint is durable, so what it covers is to be visible.
        effects.extend(restored(restore, "pending").map(|bytes| Effect::Commit(Committable::decode(bytes))));
        let same = restore.filter(|restore| restore.is_same_range).and_then(|restore| restore.keyed.first());
        Self {
            execution,
            subtask,
            sources,
            checkpoint_dir: checkpoint_dir.to_owned(),
            counts,
            current: Vec::new(),
            open: restored(restore, "open").map(|bytes| number(bytes)).collect(),
            pending: BTreeMap::new(),
            chain: same.map(|source| source.files.clone()).unwrap_or_default(),
            aligning: None,
            last: 0,
            ended: BTreeSet::new(),
        }
    }

    /// How many records it has counted in all, over all executions.
    pub(crate) fn total(&self) -> u64 {
        self.counts.total()
    }

    /// It goes on in another execution, whose checkpoints lie elsewhere.
    pub(crate) fn carry_over(&mut self, checkpoint_dir: &str) {
        self.checkpoint_dir = checkpoint_dir.to_owned();
    }

    /// It stops, and its keyed state goes back to a checkpoint.
    pub(crate) fn release(self, checkpoint: CheckpointId) -> BTreeMap<KeyGroup, Entries> {
        self.counts.release(checkpoint)
    }

    /// Handles a little of its input, where `pop` takes the next element from a source. Returns whether it can go
    /// on at once.
    pub(crate) fn step(&mut self, mut pop: impl FnMut(u32) -> Option<Element>, effects: &mut Vec<Effect>) -> bool {
        let mut has_more = false;
        for source in self.sources.clone() {
            for taken in 0..STEP_ELEMENTS {
                let is_blocked = self.aligning.as_ref().is_some_and(|(_, arrived)| arrived.contains(&source));
                let element = if is_blocked { None } else { pop(source) };
                match element {
                    None => break,
                    Some(Element::Record(record)) => match self.counts.add(record) {
                        Ok(()) if record.is_multiple_of(WINDOW_RECORDS) => self.open.push(record),
                        Ok(()) => self.current.push(record),
                        Err(violation) => effects.push(Effect::Violation(format!("{} {violation}", self.subtask))),
                    },
                    // What was blocked before can go on after the last barrier.
                    Some(Element::Barrier(checkpoint, kind)) => {
                        has_more |= self.align(source, checkpoint, &kind, effects);
                    }
                    Some(Element::End) => {
                        self.ended.insert(source);
                        if self.ended.len() == self.sources.len() {
                            self.current.append(&mut self.open);
                            effects.push(Effect::Finishing);
                        }
                    }
                }
                has_more |= taken + 1 == STEP_ELEMENTS;
            }
        }
        has_more
    }

    /// Returns whether it was the last barrier that was missing.
    fn align(
        &mut self,
        source: u32,
        checkpoint: CheckpointId,
        kind: &CheckpointKind,
        effects: &mut Vec<Effect>,
    ) -> bool {
        if checkpoint <= self.last {
            return false;
        }
        // A barrier of a later checkpoint means that the earlier one was aborted.
        if self.aligning.as_ref().is_none_or(|(current, _)| *current < checkpoint) {
            self.aligning = Some((checkpoint, BTreeSet::new()));
        }
        let Some((current, arrived)) = &mut self.aligning else { return false };
        if *current != checkpoint {
            return false;
        }
        arrived.insert(source);
        if arrived.len() < self.sources.len() {
            return false;
        }
        self.aligning = None;
        self.last = checkpoint;
        self.snapshot(checkpoint, kind, effects);
        true
    }

    fn snapshot(&mut self, checkpoint: CheckpointId, kind: &CheckpointKind, effects: &mut Vec<Effect>) {
        let records = std::mem::take(&mut self.current);
        if !records.is_empty() {
            let ExecutionId { job, generation } = self.execution;
            let token = format!("{job}-{generation}-{}-{checkpoint}", self.subtask);
            let (execution, subtask) = (self.execution, self.subtask);
            self.pending.insert(checkpoint, Committable { token, execution, subtask, checkpoint, records });
        }
        let SubtaskId { vertex, index } = self.subtask;
        let (keyed_files, table) = match kind {
            CheckpointKind::Savepoint { dir, .. } => {
                let path = format!("{dir}/{vertex}-{index}.parquet");
                effects.push(Effect::Write(path.clone(), self.counts.entries().clone()));
                (Vec::new(), Some(file(path)))
            }
            _ => {
                let path = format!("{}/chk-{checkpoint}/{vertex}-{index}.state", self.checkpoint_dir);
                (self.extend_chain(path, effects), None)
            }
        };
        self.counts.freeze(checkpoint);
        let open = self.open.iter().map(|record| record.to_le_bytes().to_vec()).collect();
        let keyed = KeyedState {
            operator: SINK_OPERATOR,
            name: "counts".into(),
            schema: "[]".into(),
            rows: self.counts.entries().len() as u64,
            bytes: 1,
            table,
            runs: None,
        };
        let snapshot = SubtaskSnapshot {
            keyed_files,
            keyed_operators: vec![SINK_OPERATOR],
            keyed_states: vec![keyed],
            operator_states: vec![
                state(false, "pending", self.pending.values().map(Committable::encode).collect()),
                state(false, "open", open),
            ],
            ..SubtaskSnapshot::default()
        };
        effects.push(Effect::Snapshot(checkpoint, Box::new(snapshot)));
    }

    /// Writes what changed, or everything if that is too many changes. Returns all files of the state.
    fn extend_chain(&mut self, path: String, effects: &mut Vec<Effect>) -> Vec<FileHandle> {
        let mut content = self.counts.take_changes();
        if self.chain.is_empty() || self.chain.len() >= CHAIN_FILES_MAX {
            self.chain.clear();
            content = self.counts.entries().clone();
        }
        effects.push(Effect::Write(path.clone(), content));
        self.chain.push(file(path));
        self.chain.clone()
    }

    /// The checkpoint is durable: everything up to it becomes visible.
    pub(crate) fn complete(&mut self, checkpoint: CheckpointId, effects: &mut Vec<Effect>) {
        self.counts.confirm(checkpoint);
        let later = self.pending.split_off(&(checkpoint + 1));
        effects.extend(std::mem::replace(&mut self.pending, later).into_values().map(Effect::Commit));
    }

    /// The checkpoint will not complete.
    pub(crate) fn abort(&mut self, checkpoint: CheckpointId) {
        if self.aligning.as_ref().is_some_and(|(current, _)| *current == checkpoint) {
            self.aligning = None;
        }
        self.last = self.last.max(checkpoint);
    }
}
