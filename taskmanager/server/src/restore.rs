//! Fetches the state of a subtask before it starts.

use std::any::Any;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use flott_checkpoint::manifest::RunHandle;
use flott_checkpoint::{FileHandle, KeyedSource, KeyedState, Store, TaskRestore};
use flott_core::key_group::{KeyGroup, KeyGroupRange};
use flott_core::{Result, ResultExt};
use flott_operators::snapshot::ChannelContents;
use flott_operators::{HeldState, KeyedContents, RestoredState, RunContents, StateContents, TableContents};
use flott_state::{LocalRun, ScratchFile};
use futures::future::{try_join, try_join_all};
use futures::stream::{self, StreamExt, TryStreamExt};

use crate::local_runs::{LocalCopy, LocalRuns};

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

/// Where state that is too large for memory is fetched to.
struct Folder {
    path: PathBuf,
    /// How many files were begun.
    files: AtomicU64,
}

impl Folder {
    /// Fetches a file into a local one.
    async fn fetch(&self, store: &Store, file: &FileHandle) -> Result<ScratchFile> {
        let number = self.files.fetch_add(1, Ordering::Relaxed);
        let path = self.path.join(format!("fetched-{number}"));
        tokio::fs::create_dir_all(&self.path).await.with_context(|| self.path.display().to_string())?;
        // Owned before it is there: what is fetched in part goes as well.
        let fetched = ScratchFile::new(path, file.bytes);
        store.get_file(file, fetched.path()).await.context("restoring state")?;
        Ok(fetched)
    }
}

/// Fetches and verifies the files of `restore` that hold key groups of `range` which `held` does not have. Nothing is
/// restored from a file that is not whole. Large files go into `folder`, unless `local` has them.
pub(crate) async fn fetch(
    store: &Store,
    restore: &TaskRestore,
    range: KeyGroupRange,
    held: HeldState,
    local: &LocalRuns,
    folder: &Path,
) -> Result<Fetched> {
    let folder = &Folder { path: folder.to_owned(), files: AtomicU64::new(0) };
    let needed: Vec<&KeyedSource> = restore.keyed.iter().filter(|source| !is_held(source, range, &held)).collect();
    let sources = needed.into_iter().map(|source| async move {
        let files = source.files.iter().map(|file| get(store, file));
        let states = source.states.iter().map(|state| fetch_state(store, state, source.range, local, folder));
        let (files, states) = try_join(try_join_all(files), try_join_all(states)).await?;
        let (states, runs): (Vec<StateContents>, Vec<Vec<LocalCopy>>) = states.into_iter().unzip();
        Ok::<_, flott_core::Error>((KeyedContents { files, states }, runs.concat()))
    });
    let channels = restore.channels.iter().map(|source| async move {
        let bytes = get(store, &source.file).await?;
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
    Ok(fetch(store, restore, range, held, &LocalRuns::default(), folder).await?.restored)
}

async fn get(store: &Store, file: &FileHandle) -> Result<Bytes> {
    store.get_verified(file).await.context("restoring state")
}

async fn fetch_state(
    store: &Store,
    state: &KeyedState,
    range: KeyGroupRange,
    local: &LocalRuns,
    folder: &Folder,
) -> Result<(StateContents, Vec<LocalCopy>)> {
    let table = match &state.table {
        Some(table) if table.bytes > TABLE_BYTES_MAX => Some(TableContents::File(folder.fetch(store, table).await?)),
        Some(table) => Some(TableContents::Memory(get(store, table).await?)),
        None => None,
    };
    let mut copies = Vec::new();
    let mut runs = None;
    if let Some(handles) = &state.runs {
        let fetches: Vec<_> = handles.iter().map(|run| fetch_run(store, run, local, folder)).collect();
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

async fn fetch_run(store: &Store, run: &RunHandle, local: &LocalRuns, folder: &Folder) -> Result<LocalCopy> {
    if let Some(copy) = local.find(&run.file) {
        return Ok(copy.clone());
    }
    let fetched = folder.fetch(store, &run.file).await?;
    let path = fetched.path().to_owned();
    let owner: Arc<dyn Any + Send + Sync> = Arc::new(fetched);
    Ok(LocalCopy { file: run.file.clone(), path, owner })
}

/// Whether every state of the old subtask is in memory for all key groups that it shares with `range`.
fn is_held(source: &KeyedSource, range: KeyGroupRange, held: &HeldState) -> bool {
    let mut groups = source.range.start.max(range.start)..source.range.end.min(range.end);
    !held.is_empty()
        && !source.states.is_empty()
        && groups.all(|group| source.states.iter().all(|state| held.has(state.operator, group as KeyGroup)))
}
