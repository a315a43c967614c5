//! Files of a checkpoint on their way to the subtasks that start from it.
//!
//! A file has the key groups of a whole subtask of before, and no index of them; it is verified as a whole or not at all. So
//! it is fetched as a whole too, but once a worker, however many subtasks need a part of it: after a rescale, or when a failure has
//! left some of its key groups in memory. Whoever needs it first fetches it, the others wait. It is let go of as soon as all
//! have it who were expected.

use std::any::Any;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use flott_checkpoint::{FileHandle, Store};
use flott_core::{Error, Result, ResultExt};
use flott_state::ScratchFile;
use parking_lot::Mutex;
use tokio::sync::OnceCell;

use crate::local_runs::{LocalCopy, LocalRuns};

/// Fetches and verifies the files that the subtasks of one execution start from.
pub(crate) struct Fetcher {
    store: Store,
    /// The runs that are on this machine already.
    local: LocalRuns,
    /// Where files go that are too large for memory.
    folder: PathBuf,
    /// How many files were begun there.
    begun: AtomicU64,
    fetched_bytes: AtomicU64,
    in_memory: Shared<Bytes>,
    on_disk: Shared<Arc<ScratchFile>>,
}

impl Fetcher {
    /// Fetches from `store` into `folder`, but for what `local` has.
    pub(crate) fn new(store: Store, local: LocalRuns, folder: PathBuf) -> Self {
        Self {
            store,
            local,
            folder,
            begun: AtomicU64::new(0),
            fetched_bytes: AtomicU64::new(0),
            in_memory: Shared::default(),
            on_disk: Shared::default(),
        }
    }

    /// One more will call [`Self::read`] with this file.
    pub(crate) fn expect_read(&self, file: &FileHandle) {
        self.in_memory.expect(file);
    }

    /// One more will call [`Self::copy`] or [`Self::run`] with this file.
    pub(crate) fn expect_copy(&self, file: &FileHandle) {
        if self.local.find(file).is_none() {
            self.on_disk.expect(file);
        }
    }

    /// The content of a file.
    pub(crate) async fn read(&self, file: &FileHandle) -> Result<Bytes> {
        let fetch = async {
            let bytes = self.store.get_verified(file).await.context("restoring state")?;
            self.fetched_bytes.fetch_add(file.bytes, Ordering::Relaxed);
            Ok::<Bytes, Error>(bytes)
        };
        self.in_memory.get(file, fetch).await
    }

    /// A copy of a file on this machine.
    pub(crate) async fn copy(&self, file: &FileHandle) -> Result<Arc<ScratchFile>> {
        let fetch = async {
            let number = self.begun.fetch_add(1, Ordering::Relaxed);
            let path = self.folder.join(format!("fetched-{number}"));
            tokio::fs::create_dir_all(&self.folder).await.with_context(|| self.folder.display().to_string())?;
            // Owned before it is there: what is fetched in part goes as well.
            let fetched = ScratchFile::new(path, file.bytes);
            self.store.get_file(file, fetched.path()).await.context("restoring state")?;
            self.fetched_bytes.fetch_add(file.bytes, Ordering::Relaxed);
            Ok::<Arc<ScratchFile>, Error>(Arc::new(fetched))
        };
        self.on_disk.get(file, fetch).await
    }

    /// Like [`Self::copy`], of a run that may be here already.
    pub(crate) async fn run(&self, file: &FileHandle) -> Result<LocalCopy> {
        if let Some(copy) = self.local.find(file) {
            return Ok(copy.clone());
        }
        let fetched = self.copy(file).await?;
        let path = fetched.path().to_owned();
        let owner: Arc<dyn Any + Send + Sync> = fetched;
        Ok(LocalCopy { file: file.clone(), path, owner })
    }

    /// How much was fetched so far.
    pub(crate) fn fetched_bytes(&self) -> u64 {
        self.fetched_bytes.load(Ordering::Relaxed)
    }

    /// How many files it holds, or expects somebody to ask for.
    #[cfg(test)]
    pub(crate) fn files(&self) -> usize {
        self.in_memory.0.lock().len() + self.on_disk.0.lock().len()
    }
}

/// What is made for the first who asks, and given to all.
struct Shared<T>(Mutex<BTreeMap<FileHandle, Made<T>>>);

struct Made<T> {
    /// How many are still to ask.
    expected: usize,
    cell: Arc<OnceCell<T>>,
}

impl<T> Default for Shared<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> Default for Made<T> {
    fn default() -> Self {
        Self { expected: 0, cell: Arc::default() }
    }
}

impl<T: Clone> Shared<T> {
    fn expect(&self, file: &FileHandle) {
        self.0.lock().entry(file.clone()).or_default().expected += 1;
    }

    async fn get(&self, file: &FileHandle, make: impl Future<Output = Result<T>>) -> Result<T> {
        let cell = Arc::clone(&self.0.lock().entry(file.clone()).or_default().cell);
        let made = cell.get_or_try_init(|| make).await?.clone();
        let mut files = self.0.lock();
        if let Some(one) = files.get_mut(file) {
            one.expected = one.expected.saturating_sub(1);
            if one.expected == 0 {
                files.remove(file);
            }
        }
        Ok(made)
    }
}
