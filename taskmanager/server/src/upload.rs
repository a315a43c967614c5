//! Writes a subtask's snapshot to the checkpoint store, behind the back of its slot.

use std::any::Any;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use flott_checkpoint::manifest::ChannelState;
use flott_checkpoint::{FileHandle, KeyedState, OperatorState, RunHandle, Store, SubtaskSnapshot};
use flott_core::ids::{CheckpointId, OperatorId, SubtaskId};
use flott_core::{Error, Result, ResultExt};
use flott_graph::JobGraph;
use flott_state::columns::{SectionVisitor, write_table_to};
use flott_state::{ScratchFile, SnapshotContent, StateColumns, StateRuns};

use crate::gate::SavedChannels;
use crate::local_runs::LocalCopy;

/// A run of a subtask: operator, state, and the number that the state gave it.
pub type RunKey = (OperatorId, String, u64);

/// A snapshot that is complete in memory or on local disk.
pub struct FinishedSnapshot {
    /// The subtask.
    pub subtask: SubtaskId,
    /// The checkpoint.
    pub checkpoint: CheckpointId,
    /// The folder of a savepoint; a checkpoint's is derived.
    pub savepoint_dir: Option<String>,
    /// The files that it builds on; empty for a whole one.
    pub chain: Vec<FileHandle>,
    /// The content of its own file, which may be empty, and the runs of states that are on disk; or why the snapshot could
    /// not be taken.
    pub content: Result<(SnapshotContent, Vec<StateRuns>)>,
    /// The runs that complete checkpoints have.
    pub known_runs: BTreeMap<RunKey, FileHandle>,
    /// Where large files are written on their way; none if there is no place.
    pub scratch: Option<PathBuf>,
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

/// A snapshot that is durable.
pub struct Uploaded {
    /// What to acknowledge.
    pub snapshot: SubtaskSnapshot,
    /// All its runs.
    pub runs: Vec<(RunKey, FileHandle)>,
    /// The same, where they are on this machine.
    pub(crate) copies: Vec<LocalCopy>,
}

/// Makes `snapshot` durable.
pub async fn upload(
    store: &Store,
    graph: &JobGraph,
    checkpoint_dir: &str,
    mut snapshot: FinishedSnapshot,
) -> Result<Uploaded> {
    let FinishedSnapshot { subtask, checkpoint, .. } = snapshot;
    let mut written: u64 = snapshot.operator_states.iter().flat_map(|s| &s.elements).map(|e| e.len() as u64).sum();
    let mut keyed_files = std::mem::take(&mut snapshot.chain);
    let (content, state_runs) = snapshot.content?;
    let mut copies = Vec::new();
    let folder = format!("{checkpoint_dir}/chk-{checkpoint}");
    if let Some(dir) = &snapshot.savepoint_dir {
        let content = Arc::new(content);
        for (index, (state, columns)) in snapshot.keyed_states.iter_mut().zip(&snapshot.columns).enumerate() {
            let is_it = |runs: &&StateRuns| runs.operator == state.operator && runs.name == state.name;
            let source = match state_runs.iter().find(is_it) {
                Some(runs) => Source::Runs(runs.clone()),
                None => Source::Sections(Arc::clone(&content), state.operator, state.name.clone()),
            };
            let scratch = snapshot.scratch.as_ref().map(|dir| dir.join(format!("table-{checkpoint}-{index}")));
            let (name, columns) = (state.name.clone(), Arc::clone(columns));
            let table = flott_env::spawn_blocking_on(&tokio::runtime::Handle::current(), move || {
                source.to_table(&*columns, scratch).with_context(|| format!("state '{name}' as a table"))
            });
            let (rows, table) = table.await.map_err(|error| Error::system(error.to_string())).flatten()?;
            let name = format!("{}-{}.parquet", subtask.vertex, subtask.index);
            let url = format!("{dir}/{}/{}/{name}", operator_folder(graph, state.operator), slug(&state.name));
            let file = put(store, &url, table).await;
            let file = file.with_context(|| format!("writing state '{}' to {url}", state.name))?;
            state.rows = rows;
            state.bytes = file.bytes;
            written += file.bytes;
            state.table = Some(file);
        }
    } else {
        if !content.is_empty() {
            let url = format!("{folder}/{}-{}.state", subtask.vertex, subtask.index);
            let file = put(store, &url, content).await;
            let file = file.with_context(|| format!("writing state of checkpoint {checkpoint} to {url}"))?;
            written += file.bytes;
            keyed_files.push(file);
        }
        for of_state in state_runs {
            let mut states = snapshot.keyed_states.iter_mut();
            let is_it = |state: &&mut KeyedState| state.operator == of_state.operator && state.name == of_state.name;
            let Some(state) = states.find(is_it) else { continue };
            let before = copies.len();
            state.runs = Some(put_runs(store, &folder, subtask, of_state, &snapshot.known_runs, &mut copies).await?);
            let is_new = |copy: &&RunCopy| !snapshot.known_runs.contains_key(&copy.0);
            written += copies[before..].iter().filter(is_new).map(|(_, copy)| copy.file.bytes).sum::<u64>();
        }
    }
    let mut channel_state = None;
    if let Some(SavedChannels { operator, schema, inputs, rows, bytes }) = snapshot.channels.take() {
        written += bytes.len() as u64;
        let url = format!("{folder}/{}-{}.channels", subtask.vertex, subtask.index);
        let file = store.put(&url, Bytes::from(bytes)).await;
        let file = file.with_context(|| format!("writing what was in flight at checkpoint {checkpoint} to {url}"))?;
        channel_state = Some(Box::new(ChannelState { operator, schema, inputs, rows, file }));
    }
    let micros = |duration: Duration| u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
    let snapshot = SubtaskSnapshot {
        keyed_files,
        keyed_operators: snapshot.keyed_operators,
        keyed_states: snapshot.keyed_states,
        operator_states: snapshot.operator_states,
        channel_state,
        bytes_written: written,
        sync_micros: micros(snapshot.sync),
        total_micros: micros(flott_env::monotonic().saturating_sub(snapshot.began)),
        alignment_micros: micros(snapshot.alignment),
    };
    let runs = copies.iter().map(|(key, copy)| (key.clone(), copy.file.clone())).collect();
    Ok(Uploaded { snapshot, runs, copies: copies.into_iter().map(|(_, copy)| copy).collect() })
}

type RunCopy = (RunKey, LocalCopy);

/// Uploads the runs of a state that no complete checkpoint has, and adds all of them to `copies`.
async fn put_runs(
    store: &Store,
    folder: &str,
    subtask: SubtaskId,
    state: StateRuns,
    known: &BTreeMap<RunKey, FileHandle>,
    copies: &mut Vec<RunCopy>,
) -> Result<Vec<RunHandle>> {
    let StateRuns { operator, name, pinned, .. } = state;
    let files = pinned.files();
    let owner: Arc<dyn Any + Send + Sync> = Arc::new(pinned);
    let (operator_id, slug) = (operator.to_string(), slug(&name));
    let mut handles = Vec::with_capacity(files.len());
    for run in files {
        let key = (operator, name.clone(), run.id);
        let file = match known.get(&key) {
            Some(file) => file.clone(),
            None => {
                let (vertex, index) = (subtask.vertex, subtask.index);
                let url = format!("{folder}/{vertex}-{index}-{}-{slug}-{}.run", &operator_id[..8], run.id);
                let file = store.put_file(&url, &run.path).await;
                file.with_context(|| format!("writing state '{name}' of a checkpoint to {url}"))?
            }
        };
        handles.push(RunHandle { file: file.clone(), dropped: run.dropped });
        copies.push((key, LocalCopy { file, path: run.path, owner: Arc::clone(&owner) }));
    }
    Ok(handles)
}

async fn put(store: &Store, url: &str, content: SnapshotContent) -> Result<FileHandle> {
    match content {
        SnapshotContent::Memory(bytes) => store.put(url, Bytes::from(bytes)).await,
        SnapshotContent::File(file) => store.put_file(url, file.path()).await,
    }
}

/// Where the entries of a state are.
enum Source {
    Runs(StateRuns),
    Sections(Arc<SnapshotContent>, OperatorId, String),
}

impl Source {
    /// The entries as a Parquet file, with the number of its rows. State that takes more than memory makes it in `scratch`.
    fn to_table(&self, columns: &dyn StateColumns, scratch: Option<PathBuf>) -> Result<(u64, SnapshotContent)> {
        let is_large = match self {
            Self::Runs(_) => true,
            Self::Sections(content, ..) => matches!(**content, SnapshotContent::File(_)),
        };
        let Some(path) = scratch.filter(|_| is_large) else {
            let (rows, bytes) = write_table_to(columns, Vec::new(), |visit| self.visit(visit))?;
            return Ok((rows, SnapshotContent::Memory(bytes)));
        };
        let failed = || format!("writing {}, in a folder of 'io.tmp.dirs'", path.display());
        // Owned before it is complete: what is written in part goes as well.
        let owned = ScratchFile::new(path.clone(), 0);
        let out = BufWriter::with_capacity(1 << 20, File::create(&path).with_context(failed)?);
        let (rows, out) = write_table_to(columns, out, |visit| self.visit(visit)).with_context(failed)?;
        let file = out.into_inner().map_err(std::io::IntoInnerError::into_error).with_context(failed)?;
        let length = file.metadata().with_context(failed)?.len();
        Ok((rows, SnapshotContent::File(owned.with_length(length))))
    }

    fn visit(&self, visit: SectionVisitor<'_>) -> Result<()> {
        match self {
            Self::Runs(runs) => runs.sections(visit),
            Self::Sections(content, operator, name) => content.sections(*operator, name, visit),
        }
    }
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
