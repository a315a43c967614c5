//! Parts in the file system: a rename makes them visible.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use flott_core::{Error, Result};

use crate::sink::part::{ClosedPart, Folder, OpenPart, PartNames, UNKNOWN_BYTES};
use crate::system::{FilePath, is_hidden, local_error};

/// A folder of the file system.
pub(crate) struct LocalFolder {
    root: PathBuf,
}

impl LocalFolder {
    pub(crate) fn new(root: PathBuf) -> Self {
        Self { root }
    }

    /// Removes files that the writer's subtask was writing in earlier executions.
    pub(crate) fn remove_abandoned(&self, names: &PartNames) -> Result<()> {
        remove_abandoned(&self.root, names).map_err(|(path, error)| local_error(path.display(), &error))
    }
}

/// Makes the names in the folders of `files` durable.
fn sync_folders<'a>(files: impl Iterator<Item = &'a FilePath>) -> Result<()> {
    let mut folders = BTreeSet::new();
    for file in files {
        let FilePath::Local(file) = file else { continue };
        folders.extend(Path::new(file).parent());
    }
    for folder in folders {
        sync(folder).map_err(|error| local_error(folder.display(), &error))?;
    }
    Ok(())
}

fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Creates a folder, and those above it, so that they survive a crash of the machine.
fn create_folder(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    let above = folder.parent();
    above.map_or(Ok(()), create_folder)?;
    match fs::create_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && folder.is_dir() => Ok(()),
        Err(error) => Err(error),
        Ok(()) => above.map_or(Ok(()), sync),
    }
}

fn remove_abandoned(folder: &Path, names: &PartNames) -> Result<(), (PathBuf, io::Error)> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err((folder.to_owned(), error)),
    };
    for entry in entries {
        let entry = entry.map_err(|error| (folder.to_owned(), error))?;
        let path = entry.path();
        let kind = match entry.file_type() {
            // Others write here as well, and their files change their names.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            kind => kind.map_err(|error| (path.clone(), error))?,
        };
        if kind.is_dir() {
            remove_abandoned(&path, names)?;
        } else if entry.file_name().to_str().is_some_and(|name| names.is_abandoned(name)) {
            match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err((path, error)),
                _ => {}
            }
        }
    }
    Ok(())
}

impl Folder for LocalFolder {
    fn create(&mut self, bucket: &str, name: &str) -> Result<Box<dyn OpenPart>> {
        let folder = if bucket.is_empty() { self.root.clone() } else { self.root.join(bucket) };
        create_folder(&folder).map_err(|error| local_error(folder.display(), &error))?;
        let path = folder.join(PartNames::in_progress(name));
        let file = File::create_new(&path).map_err(|error| local_error(path.display(), &error))?;
        let (pending, target) = (folder.join(PartNames::pending(name)), folder.join(name));
        Ok(Box::new(LocalPart { file, path, pending, target, bytes: 0, is_closed: false }))
    }

    fn sync(&mut self, parts: &[ClosedPart]) -> Result<()> {
        sync_folders(parts.iter().map(|part| &part.staged))
    }

    fn commit(&mut self, parts: &[ClosedPart], names: &PartNames) -> Result<()> {
        let mut renamed = Vec::new();
        for part in parts {
            if commit(part, names)? {
                renamed.push(&part.target);
            }
        }
        sync_folders(renamed.into_iter())
    }

    fn clear(&mut self, bucket: &str, names: &PartNames) -> Result<()> {
        clear(&self.root.join(bucket), names).map_err(|(path, error)| local_error(path.display(), &error))
    }

    fn touch(&mut self, bucket: &str, name: &str) -> Result<()> {
        let folder = self.root.join(bucket);
        let path = folder.join(name);
        let touch = || {
            create_folder(&folder)?;
            File::create(&path)?;
            sync(&folder)
        };
        touch().map_err(|error| local_error(path.display(), &error))
    }
}

/// Removes the visible files below a folder, but those of the job.
fn clear(folder: &Path, names: &PartNames) -> Result<(), (PathBuf, io::Error)> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err((folder.to_owned(), error)),
    };
    for entry in entries {
        let entry = entry.map_err(|error| (folder.to_owned(), error))?;
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        if is_hidden(&name) {
            continue;
        }
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            clear(&path, names)?;
        } else if !names.is_own(&name) {
            fs::remove_file(&path).map_err(|error| (path, error))?;
        }
    }
    Ok(())
}

/// Makes a part visible. Returns whether it was not before.
fn commit(part: &ClosedPart, names: &PartNames) -> Result<bool> {
    let (FilePath::Local(staged), FilePath::Local(target)) = (&part.staged, &part.target) else {
        return Err(Error::input(format!(
            "the part {} was written to an object store, and the sink writes to a local folder now: restore with the old path",
            part.target
        )));
    };
    let target_exists = fs::exists(target).map_err(|error| local_error(target, &error))?;
    match fs::metadata(staged) {
        Ok(metadata) if part.bytes != UNKNOWN_BYTES && metadata.len() != part.bytes => Err(Error::input(format!(
            "{staged} has {} bytes, but was closed with {}: it was changed or damaged",
            metadata.len(),
            part.bytes
        ))),
        Ok(_) if target_exists => Err(Error::input(format!(
            "{target} exists already, and is not overwritten: move it away; its part waits as {staged}"
        ))),
        Ok(_) => match fs::rename(staged, target) {
            // A zombie of an earlier execution may commit at the same time: either way it is done.
            Err(error) if error.kind() == io::ErrorKind::NotFound && fs::exists(target).unwrap_or(false) => Ok(true),
            renamed => renamed.map(|()| true).map_err(|error| local_error(target, &error)),
        },
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(local_error(staged, &error)),
        // The folder may not have been synced when the last execution died. Or somebody else has just committed it.
        Err(_) if target_exists || fs::exists(target).unwrap_or(false) => Ok(true),
        Err(_) => part.missing(names).map(|()| false),
    }
}

/// A file that is being written.
struct LocalPart {
    file: File,
    path: PathBuf,
    pending: PathBuf,
    target: PathBuf,
    bytes: u64,
    is_closed: bool,
}

impl OpenPart for LocalPart {
    fn names(&self) -> (FilePath, FilePath) {
        let name = |path: &Path| FilePath::Local(path.to_string_lossy().into_owned());
        (name(&self.pending), name(&self.target))
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write_all(bytes).map_err(|error| local_error(self.path.display(), &error))?;
        self.bytes += bytes.len() as u64;
        Ok(())
    }

    fn close(mut self: Box<Self>) -> Result<ClosedPart> {
        let closed = self.file.sync_all().and_then(|()| fs::rename(&self.path, &self.pending));
        closed.map_err(|error| local_error(self.path.display(), &error))?;
        self.is_closed = true;
        Ok(ClosedPart::new(FilePath::local(&self.pending)?, FilePath::local(&self.target)?, self.bytes))
    }
}

impl Drop for LocalPart {
    fn drop(&mut self) {
        if !self.is_closed
            && let Err(error) = fs::remove_file(&self.path)
        {
            tracing::warn!(path = %self.path.display(), %error, "an unfinished part could not be removed");
        }
    }
}
