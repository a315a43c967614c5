//! A checkpoint between its trigger and its commit point.

use std::collections::{BTreeMap, BTreeSet};

use flott_checkpoint::manifest::FORMAT_VERSION;
use flott_checkpoint::{Manifest, SubtaskSnapshot, VertexSnapshot};
use flott_control::CheckpointKind;
use flott_core::ids::{CheckpointId, Generation, JobId, SubtaskId, VertexId};
use flott_graph::JobGraph;

use crate::api::RequestId;
use crate::splits::SplitAssigner;

/// How far it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Subtasks are still to acknowledge.
    Acknowledging,
    /// Its manifest is being written.
    Writing,
    /// Its fact has been proposed: it can no longer be taken back.
    Proposed,
}

/// Who waits for a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waiter {
    /// A client.
    Client(RequestId),
    /// The job's own rescale.
    Rescale,
}

/// A checkpoint that is being taken.
#[derive(Clone, Debug)]
pub(crate) struct Pending {
    pub(crate) id: CheckpointId,
    pub(crate) generation: Generation,
    pub(crate) kind: CheckpointKind,
    /// Its folder, as a URL.
    pub(crate) location: String,
    pub(crate) triggered_ms: i64,
    pub(crate) deadline_ms: i64,
    /// Who waits for it.
    pub(crate) waiters: Vec<Waiter>,
    pub(crate) stage: Stage,
    /// Full URLs of all its files, known once all subtasks have acknowledged.
    pub(crate) files: BTreeSet<String>,
    pub(crate) sync_micros_max: u64,
    pub(crate) alignment_micros_max: u64,
    /// Bytes that were in flight, and are part of it.
    pub(crate) persisted_bytes: u64,
    pub(crate) subtasks: u32,
    /// Which have taken their part, durable or not.
    taken: BTreeSet<SubtaskId>,
    acknowledged: BTreeMap<SubtaskId, SubtaskSnapshot>,
    acknowledged_count: u32,
    splits: BTreeMap<VertexId, (Vec<Vec<u8>>, bool)>,
}

impl Pending {
    /// Triggered now, with the splits that are unassigned at this moment.
    pub(crate) fn new(
        id: CheckpointId,
        generation: Generation,
        kind: CheckpointKind,
        location: String,
        (triggered_ms, timeout_ms): (i64, i64),
        graph: &JobGraph,
        splits: &BTreeMap<VertexId, SplitAssigner>,
    ) -> Self {
        Self {
            id,
            generation,
            kind,
            location,
            triggered_ms,
            deadline_ms: triggered_ms.saturating_add(timeout_ms),
            waiters: Vec::new(),
            stage: Stage::Acknowledging,
            files: BTreeSet::new(),
            sync_micros_max: 0,
            alignment_micros_max: 0,
            persisted_bytes: 0,
            subtasks: graph.vertices.iter().map(|vertex| vertex.parallelism).sum(),
            taken: BTreeSet::new(),
            acknowledged: BTreeMap::new(),
            acknowledged_count: 0,
            splits: splits.iter().map(|(&vertex, assigner)| (vertex, assigner.snapshot())).collect(),
        }
    }

    /// Whether it belongs to the user.
    pub(crate) fn is_savepoint(&self) -> bool {
        matches!(self.kind, CheckpointKind::Savepoint { .. })
    }

    /// Whether the job stops with it on request.
    pub(crate) fn is_stop(&self) -> bool {
        matches!(self.kind, CheckpointKind::Savepoint { stop: true, .. })
    }

    /// Whether nothing of the job follows it.
    pub(crate) fn is_last(&self) -> bool {
        self.is_stop() || self.kind == CheckpointKind::Final
    }

    /// Whether nothing is left of it in the stream, nor in the state of any subtask, and nothing depends on it: a checkpoint
    /// can be taken beside it.
    ///
    /// Barriers of two checkpoints are never on their way at the same time, so they need not be told apart where they wait
    /// for each other or overtake; and frozen state is never in the way of the next freeze. What is left, the conversion to
    /// tables and the upload, is what takes a savepoint minutes: writing frozen state to memory takes seconds, between
    /// records.
    pub(crate) fn is_aside(&self) -> bool {
        self.is_savepoint() && !self.is_stop() && self.taken.len() == self.subtasks as usize
    }

    /// Whether the next execution begins with it.
    pub(crate) fn is_for_rescale(&self) -> bool {
        self.waiters.contains(&Waiter::Rescale)
    }

    /// How many subtasks have acknowledged.
    pub(crate) fn acknowledged(&self) -> u32 {
        self.acknowledged_count
    }

    fn has_subtask(graph: &JobGraph, subtask: SubtaskId) -> bool {
        graph.vertices.get(subtask.vertex as usize).is_some_and(|vertex| subtask.index < vertex.parallelism)
    }

    /// A subtask has taken its part.
    pub(crate) fn take(&mut self, graph: &JobGraph, subtask: SubtaskId) {
        if Self::has_subtask(graph, subtask) {
            self.taken.insert(subtask);
        }
    }

    /// A subtask's part is durable. Returns whether it was the last one that was missing; says nothing new
    /// when it repeats itself, or is none of the graph's.
    pub(crate) fn acknowledge(&mut self, graph: &JobGraph, subtask: SubtaskId, snapshot: SubtaskSnapshot) -> bool {
        let exists = Self::has_subtask(graph, subtask);
        if self.stage != Stage::Acknowledging || !exists || self.acknowledged.contains_key(&subtask) {
            return false;
        }
        self.sync_micros_max = self.sync_micros_max.max(snapshot.sync_micros);
        self.alignment_micros_max = self.alignment_micros_max.max(snapshot.alignment_micros);
        self.persisted_bytes += snapshot.channel_state.as_ref().map_or(0, |channels| channels.file.bytes);
        self.taken.insert(subtask);
        self.acknowledged.insert(subtask, snapshot);
        self.acknowledged_count += 1;
        self.acknowledged_count == self.subtasks
    }

    /// The manifest, made of what the subtasks said.
    pub(crate) fn build_manifest(&mut self, job: JobId, graph: &JobGraph) -> Manifest {
        let mut acknowledged = std::mem::take(&mut self.acknowledged);
        let mut vertices = Vec::with_capacity(graph.vertices.len());
        for (id, vertex) in (0..).zip(&graph.vertices) {
            let mut subtasks = Vec::with_capacity(vertex.parallelism as usize);
            for index in 0..vertex.parallelism {
                let snapshot = acknowledged.remove(&SubtaskId { vertex: id, index }).unwrap_or_default();
                self.files.extend(snapshot.files().map(|file| file.resolve(&self.location).path));
                subtasks.push(snapshot);
            }
            let (unassigned_splits, splits_discovered) = self.splits.remove(&id).unwrap_or_default();
            vertices.push(VertexSnapshot {
                name: vertex.name.clone(),
                operators: vertex.operators.iter().map(|operator| operator.id).collect(),
                operator_names: vertex.operators.iter().map(|operator| operator.name.clone()).collect(),
                max_parallelism: vertex.max_parallelism,
                subtasks,
                unassigned_splits,
                splits_discovered,
            });
        }
        Manifest {
            version: FORMAT_VERSION,
            job,
            job_name: graph.name.clone(),
            generation: self.generation,
            checkpoint: self.id,
            is_savepoint: self.is_savepoint(),
            triggered_ms: self.triggered_ms,
            vertices,
        }
    }
}
