//! The hashes of a savepoint's files: its manifest is read with their lengths checked, which damage need not change.

use std::collections::BTreeSet;

use flott_checkpoint::{FileHandle, Manifest, Store};
use flott_core::{Error, Result};
use futures::{StreamExt, TryStreamExt, stream};

use crate::terminal;

/// How many files are read at a time. Each is whole in memory meanwhile.
const VERIFIED_AT_A_TIME: usize = 4;

/// The manifest of a savepoint or checkpoint all of whose files are what it says, and their folder.
///
/// # Errors
/// One is not, or cannot be read.
pub(crate) async fn manifest(savepoint: &str) -> Result<(String, Manifest)> {
    let store = Store::default();
    let (folder, manifest) = store.load_manifest(savepoint, None).await?;
    all(&store, &folder, &manifest).await?;
    Ok((folder, manifest))
}

/// Reads all files of the savepoint or checkpoint in `folder`; returns how many there are, and their bytes.
///
/// # Errors
/// One is not what the manifest says, or cannot be read.
pub(crate) async fn all(store: &Store, folder: &str, manifest: &Manifest) -> Result<(u64, u64)> {
    files(store, manifest.files().map(|file| file.resolve(folder)).collect()).await
}

/// Reads these files, whose paths are full.
pub(crate) async fn files(store: &Store, files: BTreeSet<FileHandle>) -> Result<(u64, u64)> {
    let (count, bytes) = (files.len() as u64, files.iter().map(|file| file.bytes).sum::<u64>());
    let bar = &terminal::byte_bar("verifying");
    bar.set_length(bytes);
    let checks = stream::iter(files).map(|file| async move {
        store.get_verified(&file).await?;
        bar.inc(file.bytes);
        Ok::<(), Error>(())
    });
    let verified = checks.buffer_unordered(VERIFIED_AT_A_TIME).try_collect::<()>().await;
    bar.finish_and_clear();
    verified.map(|()| (count, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_file_that_has_changed_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::default();
        let mut handles = BTreeSet::new();
        for name in ["a", "b"] {
            let url = format!("file://{}/{name}", dir.path().display());
            handles.insert(store.put(&url, name.repeat(9).into()).await.unwrap());
        }
        assert_eq!(files(&store, handles.clone()).await.unwrap(), (2, 18));
        std::fs::write(dir.path().join("b"), "bbbbbbbb!").unwrap();
        let error = files(&store, handles).await.unwrap_err().to_string();
        assert!(error.contains("/b is damaged: its SHA-256 is"), "{error}");
    }
}
