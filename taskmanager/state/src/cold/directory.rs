//! Files that belong to whoever holds them: the last holder removes them, and the directory with the last file.
//!
//! They are not synced. What is on the disk is worth something only together with the running process; what must
//! survive it is in a checkpoint.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flott_core::{Error, Result, ResultExt};

/// The directory of one store.
#[derive(Debug)]
pub(super) struct Directory {
    path: PathBuf,
}

impl Directory {
    /// Creates it, with those above it. It may exist, but not with anything in it.
    pub(super) fn create(path: &Path) -> Result<Arc<Self>> {
        let refused = || format!("creating the directory {} for state on disk", path.display());
        fs::create_dir_all(path).map_err(|error| match error.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => full(path, &error),
            _ => Error::from(error).context(refused()),
        })?;
        if fs::read_dir(path).with_context(refused)?.next().is_some() {
            return Err(Error::input(format!(
                "the directory {} is not empty, and state on disk wants one of its own: remove what is in it, or name \
                 another place in 'io.tmp.dirs'",
                path.display()
            )));
        }
        Ok(Arc::new(Self { path: path.to_owned() }))
    }
}

fn full(directory: &Path, error: &io::Error) -> Error {
    Error::system(format!(
        "the disk of {} is full ({error}), so state that memory has no room for cannot be written: make room there, name \
         a directory on a larger disk in 'io.tmp.dirs', or give state more memory in 'taskmanager.memory.managed.size'",
        directory.display()
    ))
}

impl Drop for Directory {
    fn drop(&mut self) {
        // If something of others is in it, it stays.
        let _ = fs::remove_dir(&self.path);
    }
}

/// The place of a run's file, whether it is there yet or not. It goes when this does.
#[derive(Debug)]
pub(super) struct OwnedFile {
    id: u64,
    path: PathBuf,
    directory: Arc<Directory>,
}

impl OwnedFile {
    pub(super) fn new(directory: &Arc<Directory>, id: u64) -> Self {
        Self { id, path: directory.path.join(format!("{id:08}.run")), directory: directory.clone() }
    }

    /// The run's number, unique in its store.
    pub(super) fn id(&self) -> u64 {
        self.id
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Says that it could not be written.
    #[cold]
    pub(super) fn write_error(&self, error: &io::Error) -> Error {
        if matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded) {
            return full(&self.directory.path, error);
        }
        Error::system(format!("writing {}: {error}", self.path.display()))
    }

    /// Says that it could not be read.
    #[cold]
    pub(super) fn read_error(&self, offset: u64, error: &io::Error) -> Error {
        Error::system(format!("reading {} at byte {offset}: {error}", self.path.display()))
    }

    /// Says that it is not what was written.
    #[cold]
    pub(super) fn damaged(&self, offset: u64, what: impl std::fmt::Display) -> Error {
        Error::system(format!(
            "{} is damaged at byte {offset}: {what}; check the disk: a restart takes the state from the last \
             checkpoint instead",
            self.path.display()
        ))
    }
}

impl Drop for OwnedFile {
    fn drop(&mut self) {
        // It may never have been created.
        let _ = fs::remove_file(&self.path);
    }
}
