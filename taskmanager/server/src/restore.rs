//! Fetches the state of a subtask before it starts.

use bytes::Bytes;
use flott_checkpoint::{FileHandle, KeyedSource, KeyedState, Store, TaskRestore};
use flott_core::key_group::{KeyGroup, KeyGroupRange};
use flott_core::{Result, ResultExt};
use flott_operators::snapshot::ChannelContents;
use flott_operators::{HeldState, KeyedContents, RestoredState};
use futures::future::{try_join, try_join_all};

/// Downloads and verifies the files of `restore` that hold key groups of `range` which `held` does not have. Nothing is
/// restored from a file that is not whole.
pub async fn fetch(
    store: &Store,
    restore: &TaskRestore,
    range: KeyGroupRange,
    held: HeldState,
) -> Result<RestoredState> {
    let needed: Vec<&KeyedSource> = restore.keyed.iter().filter(|source| !is_held(source, range, &held)).collect();
    let sources = needed.into_iter().map(|source| async move {
        let files = source.files.iter().map(|file| get(store, file));
        let states = source.states.iter().map(|state| async move {
            let table = match &state.table {
                Some(table) => Some(get(store, table).await?),
                None => None,
            };
            Ok::<(KeyedState, Option<Bytes>), flott_core::Error>((state.clone(), table))
        });
        let (files, states) = try_join(try_join_all(files), try_join_all(states)).await?;
        Ok::<KeyedContents, flott_core::Error>(KeyedContents { files, states })
    });
    let channels = restore.channels.iter().map(|source| async move {
        let bytes = get(store, &source.file).await?;
        Ok::<ChannelContents, flott_core::Error>(ChannelContents { source: source.clone(), bytes })
    });
    let (contents, channels) = try_join(try_join_all(sources), try_join_all(channels)).await?;
    let mut restored = RestoredState::new(contents, restore.operator_states.clone());
    restored.channels = channels;
    restored.allow_non_restored_state = restore.allow_non_restored_state;
    restored.held = held;
    Ok(restored)
}

async fn get(store: &Store, file: &FileHandle) -> Result<Bytes> {
    store.get_verified(file).await.context("restoring state")
}

/// Whether every state of the old subtask is in memory for all key groups that it shares with `range`.
fn is_held(source: &KeyedSource, range: KeyGroupRange, held: &HeldState) -> bool {
    let mut groups = source.range.start.max(range.start)..source.range.end.min(range.end);
    !held.is_empty()
        && !source.states.is_empty()
        && groups.all(|group| source.states.iter().all(|state| held.has(state.operator, group as KeyGroup)))
}
