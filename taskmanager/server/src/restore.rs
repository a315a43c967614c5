//! Fetches the state files of a subtask before it starts.

use bytes::Bytes;
use flott_checkpoint::{Store, TaskRestore};
use flott_core::{Result, ResultExt};
use flott_operators::RestoredState;
use futures::future::try_join_all;

/// Downloads and verifies all files of `restore`. Nothing is restored from a file that is not whole.
pub async fn fetch(store: &Store, restore: &TaskRestore) -> Result<RestoredState> {
    let files = restore.keyed_files.iter().flatten().map(|file| async move {
        let bytes: Bytes = store.get_verified(file).await.context("restoring state")?;
        Ok::<Vec<u8>, flott_core::Error>(bytes.into())
    });
    let contents = try_join_all(files).await?;
    let mut restored = RestoredState::new(contents, restore.operator_states.clone());
    restored.allow_non_restored_state = restore.allow_non_restored_state;
    Ok(restored)
}
