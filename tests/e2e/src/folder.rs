//! Savepoints as what they are: folders.

use std::fs;
use std::path::{Path, PathBuf};

/// Copies a folder to where there is none yet.
///
/// # Panics
/// A file cannot be read or written.
#[track_caller]
pub fn copy_folder(from: impl AsRef<Path>, to: impl AsRef<Path>) {
    let (from, to) = (from.as_ref(), to.as_ref());
    fs::create_dir_all(to).unwrap_or_else(|error| panic!("making {}: {error}", to.display()));
    for entry in fs::read_dir(from).unwrap_or_else(|error| panic!("{}: {error}", from.display())).flatten() {
        let target = to.join(entry.file_name());
        match entry.path() {
            path if path.is_dir() => copy_folder(path, target),
            path => {
                fs::copy(&path, target).unwrap_or_else(|error| panic!("copying {}: {error}", path.display()));
            }
        }
    }
}

/// The files below a folder whose names end so, sorted.
///
/// # Panics
/// It is no folder.
#[track_caller]
pub fn files_below(folder: impl AsRef<Path>, end: &str) -> Vec<PathBuf> {
    let folder = folder.as_ref();
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())).flatten() {
        match entry.path() {
            path if path.is_dir() => found.extend(files_below(path, end)),
            path if path.to_string_lossy().ends_with(end) => found.push(path),
            _ => {}
        }
    }
    found.sort();
    found
}

/// Changes the content of a file.
///
/// # Panics
/// It cannot be read or written.
#[track_caller]
pub fn change_file(path: impl AsRef<Path>, change: impl FnOnce(&mut Vec<u8>)) {
    let path = path.as_ref();
    let mut bytes = fs::read(path).unwrap_or_else(|error| panic!("reading {}: {error}", path.display()));
    change(&mut bytes);
    fs::write(path, bytes).unwrap_or_else(|error| panic!("writing {}: {error}", path.display()));
}

/// The folder that a `file://` URL, or a path, names.
pub fn local_path(url: &str) -> PathBuf {
    PathBuf::from(url.strip_prefix("file://").unwrap_or(url))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_copied_with_what_is_below_them() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        fs::create_dir_all(from.join("b")).unwrap();
        fs::write(from.join("b/1.state"), "1").unwrap();
        fs::write(from.join("_metadata"), "2").unwrap();
        copy_folder(&from, &to);
        assert_eq!(files_below(&to, ""), [to.join("_metadata"), to.join("b/1.state")]);
        assert_eq!(files_below(&to, ".state"), [to.join("b/1.state")]);
        change_file(to.join("b/1.state"), |bytes| bytes.push(b'0'));
        assert_eq!(fs::read_to_string(to.join("b/1.state")).unwrap(), "10");
        assert_eq!(fs::read_to_string(from.join("b/1.state")).unwrap(), "1");
        assert_eq!(local_path("file:///a/b"), local_path("/a/b"));
    }
}
