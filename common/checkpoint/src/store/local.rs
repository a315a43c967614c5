//! Local files that survive a crash of the machine.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use flott_core::{Error, Result, ResultExt};

/// The end of the names of files in progress. They begin with a dot.
const TEMPORARY_SUFFIX: &str = ".part";

/// Writes a file with its folders: first under another name, and under its own when it is on the disk.
pub(super) fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    write_with(path, |file| file.write_all(bytes))
}

/// Like [`write`], with what `content` writes.
pub(super) fn write_with<T>(path: &Path, content: impl FnOnce(&mut File) -> io::Result<T>) -> Result<T> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name().and_then(|name| name.to_str())) else {
        return Err(Error::input(format!("{} is not the path of a file", path.display())));
    };
    create_folder(folder).with_context(|| format!("making the folder {}", folder.display()))?;
    let temporary = folder.join(format!(".{name}-{:016x}{TEMPORARY_SUFFIX}", flott_env::random_u64()));
    let written = write_synced(&temporary, content).and_then(|value| fs::rename(&temporary, path).map(|()| value));
    match written {
        Ok(value) => {
            sync_folder(folder)?;
            Ok(value)
        }
        Err(error) => {
            // Leave the room to others if the disk is full. The first error is the one to report.
            let _ = fs::remove_file(&temporary);
            Err(error.into())
        }
    }
}

fn write_synced<T>(path: &Path, content: impl FnOnce(&mut File) -> io::Result<T>) -> io::Result<T> {
    let mut file = File::options().write(true).create_new(true).open(path)?;
    let value = content(&mut file)?;
    file.sync_all()?;
    Ok(value)
}

/// Creates a folder and those above it. The name of each is on the disk when this returns.
fn create_folder(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    let Some(parent) = folder.parent() else { return Ok(()) };
    create_folder(parent)?;
    match fs::create_dir(folder) {
        // Another thread may have been first, and not have synced it yet.
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists || !folder.is_dir() => Err(error),
        _ => sync_folder(parent),
    }
}

fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Deletes a folder with everything in it, if it is there.
pub(super) fn delete_folder(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn files_appear_whole_and_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b/file");
        write(&path, b"one").unwrap();
        write(&path, b"two").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(names(&folder.path().join("a/b")), ["file"]);
    }

    #[test]
    fn a_failed_write_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("file"), "x").unwrap();
        let error = write(&folder.path().join("file/below"), b"one").unwrap_err();
        assert!(error.to_string().contains("os error"), "{error}");
        // The file is written, and cannot take the name of a folder.
        fs::create_dir(folder.path().join("folder")).unwrap();
        write(&folder.path().join("folder"), b"one").unwrap_err();
        assert_eq!(names(folder.path()), ["file", "folder"]);
        write(&folder.path().join("n".repeat(300)), b"one").unwrap_err();
        assert_eq!(names(folder.path()), ["file", "folder"]);
        write(Path::new("/"), b"one").unwrap_err();
    }
}
