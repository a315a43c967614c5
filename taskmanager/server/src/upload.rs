//! Writes a subtask's snapshot to the checkpoint store, behind the back of its slot.

use std::time::Duration;

use bytes::Bytes;
use flott_checkpoint::{FileHandle, OperatorState, Store, SubtaskSnapshot};
use flott_core::ids::{CheckpointId, OperatorId, SubtaskId};
use flott_core::{Result, ResultExt};

/// A snapshot that is complete in memory.
#[derive(Debug)]
pub struct FinishedSnapshot {
    /// The subtask.
    pub subtask: SubtaskId,
    /// The checkpoint.
    pub checkpoint: CheckpointId,
    /// The folder of a savepoint; a checkpoint's is derived.
    pub savepoint_dir: Option<String>,
    /// The files that it builds on; empty for a whole one.
    pub chain: Vec<FileHandle>,
    /// The content of its own file; empty if there is nothing to write.
    pub bytes: Vec<u8>,
    /// Operators with keyed state.
    pub keyed_operators: Vec<OperatorId>,
    /// Operator state.
    pub operator_states: Vec<OperatorState>,
    /// How long the subtask did not process.
    pub sync: Duration,
    /// How long its inputs were blocked.
    pub alignment: Duration,
    /// When the barrier came.
    pub began: Duration,
}

/// Makes `snapshot` durable. Returns what to acknowledge.
pub async fn upload(store: &Store, checkpoint_dir: &str, snapshot: FinishedSnapshot) -> Result<SubtaskSnapshot> {
    let FinishedSnapshot { subtask, checkpoint, .. } = snapshot;
    let mut keyed_files = snapshot.chain;
    let mut bytes_written: usize = snapshot.operator_states.iter().flat_map(|s| &s.elements).map(Vec::len).sum();
    if !snapshot.bytes.is_empty() {
        bytes_written += snapshot.bytes.len();
        let folder = snapshot.savepoint_dir.unwrap_or_else(|| format!("{checkpoint_dir}/chk-{checkpoint}"));
        let url = format!("{folder}/{}-{}.state", subtask.vertex, subtask.index);
        let file = store.put(&url, Bytes::from(snapshot.bytes)).await;
        keyed_files.push(file.with_context(|| format!("writing state of checkpoint {checkpoint} to {url}"))?);
    }
    let micros = |duration: Duration| u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
    Ok(SubtaskSnapshot {
        keyed_files,
        keyed_operators: snapshot.keyed_operators,
        operator_states: snapshot.operator_states,
        bytes_written: bytes_written as u64,
        sync_micros: micros(snapshot.sync),
        total_micros: micros(flott_env::monotonic().saturating_sub(snapshot.began)),
        alignment_micros: micros(snapshot.alignment),
    })
}
