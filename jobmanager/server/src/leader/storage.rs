//! Commands that take long: manifests, listings and deletions, each in a task of its own.

use std::time::Duration;

use flott_checkpoint::{Manifest, Store};
use flott_control::CompletedCheckpoint;
use flott_core::ids::{Generation, JobId};
use flott_core::{Error, Result};
use flott_jobmanager_core::{Checkpoint, Event};
use tokio::sync::mpsc;

use super::client::Input;

/// How long one access to the checkpoint storage may take. The store has shorter limits of its own for
/// each attempt; this one makes sure that an answer comes.
const STORAGE_TIMEOUT: Duration = Duration::from_secs(600);

/// How many files of a job are listed at most. What is behind them is found another time.
const FILES_MAX: usize = 100_000;

/// Writes a manifest and tells the leader.
pub(super) fn write_manifest(store: Store, inputs: mpsc::Sender<Input>, checkpoint: Checkpoint) {
    let Checkpoint { location, manifest } = checkpoint;
    flott_env::spawn(async move {
        let result = limited(store.write_manifest(&location, &manifest)).await;
        let result = result.map(|sha256| completed(location, sha256, &manifest));
        let event = Event::ManifestWritten {
            job: manifest.job,
            generation: manifest.generation,
            checkpoint: manifest.checkpoint,
            result,
        };
        // A leader that is gone takes no results.
        let _ = inputs.send(Input::Event(event)).await;
    });
}

/// Reads a manifest and tells the leader.
pub(super) fn load_manifest(
    store: Store,
    inputs: mpsc::Sender<Input>,
    job: JobId,
    generation: Generation,
    location: String,
    sha256: Option<String>,
) {
    flott_env::spawn(async move {
        let result = limited(store.load_manifest(&location, sha256.as_deref())).await;
        let result = result.map(|(folder, manifest)| (folder, Box::new(manifest)));
        let event = Event::ManifestLoaded { job, generation, result };
        // A leader that is gone takes no results.
        let _ = inputs.send(Input::Event(event)).await;
    });
}

/// Lists everything below a folder and tells the leader.
pub(super) fn list_files(store: Store, inputs: mpsc::Sender<Input>, job: JobId, folder: String) {
    flott_env::spawn(async move {
        let result = limited(store.list(&folder, FILES_MAX)).await;
        if let Err(error) = &result {
            tracing::warn!(%error, folder, "what earlier executions left behind stays there");
        }
        // A leader that is gone takes no results.
        let _ = inputs.send(Input::Event(Event::FilesListed { job, result })).await;
    });
}

/// Deletes files and folders. What cannot be deleted is left and logged: it costs space, nothing else.
pub(super) fn delete(store: Store, files: Vec<String>, folders: Vec<String>) {
    flott_env::spawn(async move {
        if !files.is_empty()
            && let Err(error) = limited(store.delete_files(&files)).await
        {
            tracing::warn!(%error, files = files.len(), "files of a dropped checkpoint are left behind");
        }
        for folder in folders {
            if let Err(error) = limited(store.delete_folder(&folder)).await {
                tracing::warn!(%error, folder, "a folder of dropped checkpoints is left behind");
            }
        }
    });
}

async fn limited<T>(access: impl Future<Output = Result<T>>) -> Result<T> {
    match tokio::time::timeout(STORAGE_TIMEOUT, access).await {
        Ok(result) => result,
        Err(_) => Err(Error::system(format!("the checkpoint storage did not answer in {STORAGE_TIMEOUT:?}"))),
    }
}

fn completed(location: String, manifest_sha256: String, manifest: &Manifest) -> CompletedCheckpoint {
    CompletedCheckpoint {
        id: manifest.checkpoint,
        generation: manifest.generation,
        location,
        manifest_sha256,
        is_savepoint: manifest.is_savepoint,
        ends_job: false,
        triggered_ms: manifest.triggered_ms,
        // The wall clock may have been set back since.
        completed_ms: flott_env::now_ms().max(manifest.triggered_ms),
        bytes_written: manifest.bytes_written(),
        bytes_total: manifest.bytes_total(),
    }
}
