//! Writes a subtask's snapshot to the checkpoint store, behind the back of its slot.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use flott_checkpoint::manifest::ChannelState;
use flott_checkpoint::{FileHandle, KeyedState, OperatorState, Store, SubtaskSnapshot};
use flott_core::ids::{CheckpointId, OperatorId, SubtaskId};
use flott_core::key_group::KeyGroup;
use flott_core::{Error, Result, ResultExt};
use flott_graph::JobGraph;
use flott_state::{SectionKind, SnapshotReader, StateColumns, columns};

use crate::gate::SavedChannels;

/// A snapshot that is complete in memory.
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
    /// Their states.
    pub keyed_states: Vec<KeyedState>,
    /// The columns of each of `keyed_states`.
    pub columns: Vec<Arc<dyn StateColumns>>,
    /// Operator state.
    pub operator_states: Vec<OperatorState>,
    /// What was in flight to the subtask, if anything was.
    pub channels: Option<SavedChannels>,
    /// How long the subtask did not process.
    pub sync: Duration,
    /// How long its inputs were blocked.
    pub alignment: Duration,
    /// When the barrier came.
    pub began: Duration,
}

/// Makes `snapshot` durable. Returns what to acknowledge.
pub async fn upload(
    store: &Store,
    graph: &JobGraph,
    checkpoint_dir: &str,
    mut snapshot: FinishedSnapshot,
) -> Result<SubtaskSnapshot> {
    let FinishedSnapshot { subtask, checkpoint, .. } = snapshot;
    let mut written: u64 = snapshot.operator_states.iter().flat_map(|s| &s.elements).map(|e| e.len() as u64).sum();
    let mut keyed_files = std::mem::take(&mut snapshot.chain);
    let bytes = Bytes::from(std::mem::take(&mut snapshot.bytes));
    if let Some(dir) = &snapshot.savepoint_dir {
        for (state, columns) in snapshot.keyed_states.iter_mut().zip(&snapshot.columns) {
            let (sections, columns, key) = (bytes.clone(), Arc::clone(columns), (state.operator, state.name.clone()));
            let table = flott_env::spawn_blocking_on(&tokio::runtime::Handle::current(), move || {
                to_table(&sections, &key, &*columns)
            });
            let (rows, table) = table.await.map_err(|error| Error::system(error.to_string())).flatten()?;
            let name = format!("{}-{}.parquet", subtask.vertex, subtask.index);
            let url = format!("{dir}/{}/{}/{name}", operator_folder(graph, state.operator), slug(&state.name));
            state.rows = rows;
            state.bytes = table.len() as u64;
            let file = store.put(&url, Bytes::from(table)).await;
            state.table = Some(file.with_context(|| format!("writing state '{}' to {url}", state.name))?);
            written += state.bytes;
        }
    } else if !bytes.is_empty() {
        written += bytes.len() as u64;
        let url = format!("{checkpoint_dir}/chk-{checkpoint}/{}-{}.state", subtask.vertex, subtask.index);
        let file = store.put(&url, bytes).await;
        keyed_files.push(file.with_context(|| format!("writing state of checkpoint {checkpoint} to {url}"))?);
    }
    let mut channel_state = None;
    if let Some(SavedChannels { operator, schema, inputs, rows, bytes }) = snapshot.channels.take() {
        written += bytes.len() as u64;
        let url = format!("{checkpoint_dir}/chk-{checkpoint}/{}-{}.channels", subtask.vertex, subtask.index);
        let file = store.put(&url, Bytes::from(bytes)).await;
        let file = file.with_context(|| format!("writing what was in flight at checkpoint {checkpoint} to {url}"))?;
        channel_state = Some(Box::new(ChannelState { operator, schema, inputs, rows, file }));
    }
    let micros = |duration: Duration| u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
    Ok(SubtaskSnapshot {
        keyed_files,
        keyed_operators: snapshot.keyed_operators,
        keyed_states: snapshot.keyed_states,
        operator_states: snapshot.operator_states,
        channel_state,
        bytes_written: written,
        sync_micros: micros(snapshot.sync),
        total_micros: micros(flott_env::monotonic().saturating_sub(snapshot.began)),
        alignment_micros: micros(snapshot.alignment),
    })
}

/// The sections of one state as a Parquet file, with the number of its rows.
fn to_table(
    bytes: &[u8],
    (operator, name): &(OperatorId, String),
    columns: &dyn StateColumns,
) -> Result<(u64, Vec<u8>)> {
    let mut sections: Vec<(KeyGroup, u64, &[u8])> = Vec::new();
    if !bytes.is_empty() {
        let mut reader = SnapshotReader::new(bytes)?;
        while let Some(section) = reader.next_section()? {
            if section.operator == *operator && section.name == name {
                if section.kind != SectionKind::Base {
                    return Err(Error::system(format!("the snapshot of state '{name}' is not whole")));
                }
                sections.push((section.group, section.entries, section.body));
            }
        }
    }
    columns::write_table(columns, sections.into_iter()).with_context(|| format!("state '{name}' as a table"))
}

/// The folder of an operator in a savepoint: its uid or name for people, its id because names are not unique.
fn operator_folder(graph: &JobGraph, id: OperatorId) -> String {
    let mut operators = graph.vertices.iter().flat_map(|vertex| &vertex.operators);
    let name = operators.find(|operator| operator.id == id).map(|o| o.uid.as_ref().unwrap_or(&o.name).as_str());
    format!("{}-{}", slug(name.unwrap_or("operator")), &id.to_string()[..8])
}

/// A name that is harmless in paths and URLs. Names that it changes stay distinct by the hash of the whole name.
fn slug(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let plain: String = name.chars().map(|c| if is_plain(c) { c } else { '_' }).take(60).collect();
    if plain == name {
        return plain;
    }
    format!("{plain}-{:08x}", flott_core::hash::stable_hash(name) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_harmless_and_distinct() {
        assert_eq!(slug("counts"), "counts");
        assert_eq!(slug("../a b"), format!("___a_b-{:08x}", flott_core::hash::stable_hash("../a b") as u32));
        assert_ne!(slug("a b"), slug("a/b"));
        assert!(slug(&"é".repeat(500)).len() < 80);
    }
}
