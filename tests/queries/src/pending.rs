//! A checkpoint on its way, and one that is complete.

use std::collections::BTreeMap;

use flott_checkpoint::{Manifest, SubtaskSnapshot, VertexSnapshot};
use flott_control::CheckpointKind;
use flott_core::ids::{CheckpointId, Generation, JobId, SubtaskId, VertexId};
use flott_core::time::Timestamp;
use flott_graph::JobGraph;

use crate::execution::Splits;

/// A complete checkpoint.
#[derive(Clone, Debug)]
pub struct Saved {
    /// Its number.
    pub id: CheckpointId,
    /// What it is made of, as it was read from its folder.
    pub manifest: Manifest,
    /// Its folder.
    pub location: String,
    /// How many rows tables had handed out before it.
    pub handed: u64,
}

/// A checkpoint that has been triggered.
pub(crate) struct Pending {
    pub(crate) id: CheckpointId,
    pub(crate) kind: CheckpointKind,
    pub(crate) location: String,
    pub(crate) handed: u64,
    pub(crate) triggered_ms: Timestamp,
    pub(crate) acknowledged: BTreeMap<SubtaskId, SubtaskSnapshot>,
    /// The splits that nobody had when it was triggered.
    pub(crate) splits: BTreeMap<VertexId, Splits>,
}

impl Pending {
    /// Whether the job ends with it.
    pub(crate) fn is_last(&self) -> bool {
        matches!(self.kind, CheckpointKind::Final | CheckpointKind::Savepoint { stop: true, .. })
    }

    pub(crate) fn is_savepoint(&self) -> bool {
        matches!(self.kind, CheckpointKind::Savepoint { .. })
    }

    /// What the JobManager would write of it.
    pub(crate) fn manifest(&mut self, job: JobId, generation: Generation, graph: &JobGraph) -> Manifest {
        let vertices = (0..).zip(&graph.vertices).map(|(id, vertex)| {
            let subtasks = (0..vertex.parallelism).map(|index| SubtaskId { vertex: id, index });
            let splits = self.splits.remove(&id).unwrap_or_default();
            VertexSnapshot {
                name: vertex.name.clone(),
                operators: vertex.operators.iter().map(|operator| operator.id).collect(),
                operator_names: vertex.operators.iter().map(|operator| operator.name.clone()).collect(),
                max_parallelism: vertex.max_parallelism,
                subtasks: subtasks.map(|id| self.acknowledged.remove(&id).unwrap_or_default()).collect(),
                unassigned_splits: splits.unassigned.into(),
                splits_discovered: splits.is_discovered,
            }
        });
        Manifest {
            version: flott_checkpoint::manifest::FORMAT_VERSION,
            job,
            job_name: graph.name.clone(),
            generation,
            checkpoint: self.id,
            is_savepoint: matches!(self.kind, CheckpointKind::Savepoint { .. }),
            triggered_ms: self.triggered_ms,
            vertices: vertices.collect(),
        }
    }
}
