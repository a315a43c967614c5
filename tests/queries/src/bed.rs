//! What executions of jobs share: a disk, and threads for I/O.

use flott_checkpoint::Store;
use flott_core::{Error, Result};
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};

/// A folder for checkpoints and a runtime for I/O. The folder goes with it.
pub struct Bed {
    /// Where I/O runs.
    pub runtime: Runtime,
    /// Reads and writes checkpoints.
    pub store: Store,
    /// Everything is below it.
    pub folder: TempDir,
}

impl Bed {
    /// A new one.
    ///
    /// # Errors
    /// The system has no room for it.
    pub fn new() -> Result<Self> {
        let failed = |error: std::io::Error| Error::system(format!("making a bed for jobs: {error}"));
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().map_err(failed)?;
        Ok(Self { runtime, store: Store::default(), folder: TempDir::new().map_err(failed)? })
    }

    /// The URL of a folder of it.
    pub(crate) fn url(&self, name: &str) -> Result<String> {
        Store::normalize(&self.folder.path().join(name).to_string_lossy())
    }
}
