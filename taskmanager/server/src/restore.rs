//! Fetches the state of a subtask before it starts.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use flott_checkpoint::manifest::RunHandle;
use flott_checkpoint::{FileHandle, KeyedSource, KeyedState, Store, TaskRestore};
use flott_core::key_group::{KeyGroup, KeyGroupRange};
use flott_core::{Result, ResultExt};
use flott_operators::snapshot::ChannelContents;
use flott_operators::{HeldState, KeyedContents, RestoredState, RunContents, StateContents, TableContents};
use flott_state::cold::check_version;
use flott_state::{LocalRun, SnapshotReader};
use futures::future::{try_join, try_join_all};
use futures::stream::{self, StreamExt, TryStreamExt};

use crate::fetcher::Fetcher;
use crate::local_runs::{LocalCopy, LocalRuns};

#[cfg(test)]
mod tests;

/// Tables up to this size are read in memory.
const TABLE_BYTES_MAX: u64 = 16 << 20;

/// How many runs of a state are fetched at a time.
const RUNS_AT_A_TIME: usize = 4;

/// What a subtask starts from.
#[derive(Default)]
pub(crate) struct Fetched {
    /// The state.
    pub(crate) restored: RestoredState,
    /// The runs that are on this machine now.
    pub(crate) runs: Vec<LocalCopy>,
}

/// Says which files [`fetch`] will want, so that they are kept until all subtasks have them.
pub(crate) fn expect(files: &Fetcher, restore: &TaskRestore, range: KeyGroupRange, held: &HeldState) {
    for source in needed(restore, range, held) {
        source.files.iter().for_each(|file| files.expect_read(file));
        for state in &source.states {
            match &state.table {
                Some(table) if table.bytes > TABLE_BYTES_MAX => files.expect_copy(table),
                Some(table) => files.expect_read(table),
                None => {}
            }
            state.runs.iter().flatten().for_each(|run| files.expect_copy(&run.file));
        }
    }
    restore.channels.iter().for_each(|source| files.expect_read(&source.file));
}

/// Fetches and verifies the files of `restore` that hold key groups of `range` which `held` does not have. Nothing is
/// restored from a file that is not whole.
pub(crate) async fn fetch(
    files: &Fetcher,
    restore: &TaskRestore,
    range: KeyGroupRange,
    held: HeldState,
) -> Result<Fetched> {
    let needed = needed(restore, range, &held);
    let sources = needed.into_iter().map(|source| async move {
        let contents = source.files.iter().map(|file| read_state(files, file));
        let states = source.states.iter().map(|state| fetch_state(files, state, source.range));
        let (contents, states) = try_join(try_join_all(contents), try_join_all(states)).await?;
        let (states, runs): (Vec<StateContents>, Vec<Vec<LocalCopy>>) = states.into_iter().unzip();
        Ok::<_, flott_core::Error>((KeyedContents { files: contents, states }, runs.concat()))
    });
    let channels = restore.channels.iter().map(|source| async move {
        let bytes = files.read(&source.file).await?;
        Ok::<ChannelContents, flott_core::Error>(ChannelContents { source: source.clone(), bytes })
    });
    let (sources, channels) = try_join(try_join_all(sources), try_join_all(channels)).await?;
    let (contents, runs): (Vec<KeyedContents>, Vec<Vec<LocalCopy>>) = sources.into_iter().unzip();
    let mut restored = RestoredState::new(contents, restore.operator_states.clone());
    restored.channels = channels;
    restored.allow_non_restored_state = restore.allow_non_restored_state;
    restored.held = held;
    Ok(Fetched { restored, runs: runs.concat() })
}

/// What a subtask starts from that runs without a worker, and so without files of earlier checkpoints on this machine.
/// Large files go into `folder`.
///
/// # Errors
/// A file is not there, or not what it was.
pub async fn fetch_alone(
    store: &Store,
    restore: &TaskRestore,
    range: KeyGroupRange,
    held: HeldState,
    folder: &Path,
) -> Result<RestoredState> {
    let files = Fetcher::new(store.clone(), LocalRuns::default(), folder.to_owned());
    Ok(fetch(&files, restore, range, held).await?.restored)
}

/// Who reads it later does not know its name.
async fn read_state(files: &Fetcher, file: &FileHandle) -> Result<Bytes> {
    let bytes = files.read(file).await?;
    SnapshotReader::new(&bytes).with_context(|| format!("restoring state: {}", file.path))?;
    Ok(bytes)
}

async fn fetch_state(
    files: &Fetcher,
    state: &KeyedState,
    range: KeyGroupRange,
) -> Result<(StateContents, Vec<LocalCopy>)> {
    let table = match &state.table {
        Some(table) if table.bytes > TABLE_BYTES_MAX => Some(TableContents::File(files.copy(table).await?)),
        Some(table) => Some(TableContents::Memory(files.read(table).await?)),
        None => None,
    };
    let mut copies = Vec::new();
    let mut runs = None;
    if let Some(handles) = &state.runs {
        let fetches: Vec<_> = handles.iter().map(|run| fetch_run(files, run)).collect();
        copies = stream::iter(fetches).buffered(RUNS_AT_A_TIME).try_collect::<Vec<LocalCopy>>().await?;
        let files = handles.iter().zip(&copies);
        let files = files.map(|(handle, copy)| {
            (LocalRun { path: copy.path.clone(), dropped: handle.dropped.clone() }, handle.file.clone())
        });
        let owners = copies.iter().map(|copy| Arc::clone(&copy.owner)).collect();
        runs = Some(RunContents { range, runs: files.collect(), owners });
    }
    Ok((StateContents { state: state.clone(), table, runs }, copies))
}

async fn fetch_run(files: &Fetcher, run: &RunHandle) -> Result<LocalCopy> {
    let copy = files.run(&run.file).await?;
    check_version(&copy.path).with_context(|| format!("restoring state: {}", run.file.path))?;
    Ok(copy)
}

/// The old subtasks that have key groups of `range` which `held` does not have.
fn needed<'a>(restore: &'a TaskRestore, range: KeyGroupRange, held: &HeldState) -> Vec<&'a KeyedSource> {
    restore.keyed.iter().filter(|source| !is_held(source, range, held)).collect()
}

/// Whether every state of the old subtask is in memory for all key groups that it shares with `range`.
fn is_held(source: &KeyedSource, range: KeyGroupRange, held: &HeldState) -> bool {
    let mut groups = source.range.start.max(range.start)..source.range.end.min(range.end);
    !held.is_empty()
        && !source.states.is_empty()
        && groups.all(|group| source.states.iter().all(|state| held.has(state.operator, group as KeyGroup)))
}
