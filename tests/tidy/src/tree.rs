//! The files of the repository.

use std::fs;
use std::path::{Path, PathBuf};

/// Folders that hold no source: build output, version control, fetched data.
const SKIPPED_FOLDERS: &[&str] = &[".git", ".venv", ".data", "target", "__pycache__"];

/// A text file of the repository.
pub struct File {
    /// Its path from the repository's root, with `/`.
    pub path: String,
    /// Its content.
    pub text: String,
}

/// The repository's root.
///
/// # Panics
/// When this crate was moved elsewhere.
pub fn repository() -> PathBuf {
    // As it is now and not as it was built: checkouts share their build folder.
    let root = Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo runs the tests")).join("../..");
    root.canonicalize().unwrap_or_else(|error| panic!("{}: {error}", root.display()))
}

/// All files whose name ends in `extension`, by path.
pub fn files(extension: &str) -> Vec<File> {
    let root = repository();
    let mut found = Vec::new();
    visit(&root, &root, extension, &mut found);
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

/// All Rust files, by path.
pub fn rust_files() -> Vec<File> {
    files(".rs")
}

fn visit(root: &Path, folder: &Path, extension: &str, found: &mut Vec<File>) {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    for entry in entries {
        let path = entry.unwrap_or_else(|error| panic!("{}: {error}", folder.display())).path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        // Symbolic links could lead out of the repository, or round in it.
        if path.is_symlink() {
            continue;
        }
        if path.is_dir() {
            if !SKIPPED_FOLDERS.contains(&name.as_str()) {
                visit(root, &path, extension, found);
            }
        } else if name.ends_with(extension) {
            let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            let path = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().replace('\\', "/");
            found.push(File { path, text });
        }
    }
}
