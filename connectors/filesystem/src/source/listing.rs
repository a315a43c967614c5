//! Which files a path means: a file, a folder, or a pattern.

use std::fs::{self, File};
use std::path::Path as LocalPath;

use flott_checkpoint::Store;
use flott_connector_spi::IoHandle;
use flott_core::{Error, Result};
use futures::TryStreamExt;
use globset::{GlobBuilder, GlobMatcher};
use object_store::{ObjectStore, ObjectStoreExt};

use crate::source::split::Listed;
use crate::system::{FilePath, is_hidden, local_error, object_error, object_key, open_store};

/// Folders deeper than this are links that lead in a circle.
const DEPTH_MAX: u32 = 64;

/// The files that `text` means, in the order of their names. Hidden files and folders below it are passed over. This
/// happens once, before anything was read: what is wrong with the path is the user's mistake then.
pub(crate) fn list(stores: &Store, io: &IoHandle, text: &str) -> Result<Vec<Listed>> {
    let listed = match FilePath::parse(text)? {
        FilePath::Local(path) => list_local(&path),
        FilePath::Object { store, key } => {
            let objects = open_store(stores, io, &store)?;
            io.block_on(list_objects(&*objects, &store, &key))
        }
    };
    let mut files = listed?;
    files.sort_by(|a, b| a.file.cmp(&b.file));
    Ok(files)
}

fn list_local(path: &str) -> Result<Vec<Listed>> {
    list_path(path).map_err(|error| Error::input(error.message))
}

fn list_path(path: &str) -> Result<Vec<Listed>> {
    let mut files = Vec::new();
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => {
            walk(LocalPath::new(path), &Wanted::All, 0, &mut files)?;
            if files.is_empty() {
                tracing::warn!(path, "the folder has no files to read");
            }
        }
        Ok(_) => files.push(open(LocalPath::new(path))?),
        Err(_) if is_pattern(path) => {
            let (base, pattern) = split_pattern(path);
            let base = if base.is_empty() { "/" } else { base };
            let wanted = Wanted::pattern(path, base, pattern)?;
            walk(LocalPath::new(base), &wanted, 0, &mut files)
                .map_err(|error| error.context(format!("listing {path}")))?;
            if files.is_empty() {
                return Err(no_match(path));
            }
        }
        Err(error) => return Err(local_error(path, &error)),
    }
    Ok(files)
}

/// What of a folder's tree is wanted.
enum Wanted<'a> {
    All,
    Pattern {
        base: &'a LocalPath,
        whole: GlobMatcher,
        /// One matcher a level that has one of its own: those before the first `**`.
        levels: Vec<GlobMatcher>,
    },
}

impl<'a> Wanted<'a> {
    fn pattern(text: &str, base: &'a str, pattern: &str) -> Result<Self> {
        let levels: Vec<&str> = pattern.split('/').take_while(|level| !level.contains("**")).collect();
        let levels = levels.into_iter().map(|level| compile(text, level)).collect::<Result<_>>()?;
        Ok(Self::Pattern { base: LocalPath::new(base), whole: compile(text, pattern)?, levels })
    }

    /// Whether files of this path are wanted.
    fn file(&self, path: &LocalPath) -> bool {
        match self {
            Self::All => true,
            Self::Pattern { base, whole, .. } => path.strip_prefix(base).is_ok_and(|relative| matches(whole, relative)),
        }
    }

    /// Whether there can be wanted files below the folder `name`, which lies at this depth. Below a folder that the
    /// whole pattern matches all of them are.
    fn folder(&self, name: &LocalPath, depth: u32) -> bool {
        match self {
            Self::All => true,
            Self::Pattern { levels, .. } => levels.get(depth as usize).is_none_or(|level| level.is_match(name)),
        }
    }
}

fn walk(folder: &LocalPath, wanted: &Wanted<'_>, depth: u32, files: &mut Vec<Listed>) -> Result<()> {
    if depth > DEPTH_MAX {
        let folder = folder.display();
        return Err(Error::input(format!("{folder} lies more than {DEPTH_MAX} folders deep: is a link circular?")));
    }
    for entry in fs::read_dir(folder).map_err(|error| local_error(folder.display(), &error))? {
        let entry = entry.map_err(|error| local_error(folder.display(), &error))?;
        let (name, path) = (entry.file_name(), entry.path());
        let (file, below) = (wanted.file(&path), wanted.folder(LocalPath::new(&name), depth));
        if is_hidden(&name.to_string_lossy()) || !(file || below) {
            continue;
        }
        let metadata = fs::metadata(&path).map_err(|error| local_error(path.display(), &error))?;
        if metadata.is_dir() && below {
            walk(&path, wanted, depth + 1, files)?;
        } else if metadata.is_file() && file {
            files.push(open(&path)?);
        }
    }
    Ok(())
}

/// Opens the file, so that one that may not be read is found before the job runs.
fn open(path: &LocalPath) -> Result<Listed> {
    let is_regular = fs::metadata(path).is_ok_and(|metadata| metadata.is_file());
    if path.exists() && !is_regular {
        return Err(Error::input(format!("{} is neither a file nor a folder", path.display())));
    }
    let metadata =
        File::open(path).and_then(|file| file.metadata()).map_err(|error| local_error(path.display(), &error))?;
    Ok(Listed { file: FilePath::local(path)?, bytes: metadata.len() })
}

async fn list_objects(objects: &dyn ObjectStore, store: &str, key: &str) -> Result<Vec<Listed>> {
    let listed = |key: String, bytes| Listed { file: FilePath::Object { store: store.to_owned(), key }, bytes };
    let place = format!("{store}/{key}");
    let key = key.trim_end_matches('/');
    let (base, pattern) = if is_pattern(key) { split_pattern(key) } else { (key, "**") };
    let matcher = compile(&place, pattern)?;
    let prefix = object_key(base)?;
    let mut found = objects.list(Some(&prefix));
    let mut files = Vec::new();
    while let Some(object) = found.try_next().await.map_err(|error| object_error(&place, &error))? {
        let key = object.location.to_string();
        let relative = key.strip_prefix(base).map(|key| key.trim_start_matches('/')).unwrap_or_default();
        let is_visible = !relative.is_empty() && !relative.split('/').any(is_hidden);
        if is_visible && matches(&matcher, LocalPath::new(relative)) {
            files.push(listed(key, object.size));
        }
    }
    // Only what is no folder is asked for by name: some servers take the name of a folder amiss.
    if files.is_empty() && !key.is_empty() {
        match objects.head(&object_key(key)?).await {
            Ok(object) => files.push(listed(key.to_owned(), object.size)),
            Err(object_store::Error::NotFound { .. }) => {}
            Err(error) => return Err(object_error(place, &error)),
        }
    }
    if files.is_empty() { Err(no_match(&place)) } else { Ok(files) }
}

fn no_match(path: &str) -> Error {
    Error::input(format!("no file matches {path} (names that begin with '.' or '_' are passed over)"))
}

fn is_pattern(path: &str) -> bool {
    path.contains(['*', '?', '[', '{'])
}

/// Splits a path at its last folder without wildcards.
fn split_pattern(path: &str) -> (&str, &str) {
    let wildcard = path.find(['*', '?', '[', '{']).unwrap_or(path.len());
    match path[..wildcard].rfind('/') {
        Some(slash) => (&path[..slash], &path[slash + 1..]),
        None => ("", path),
    }
}

fn compile(path: &str, pattern: &str) -> Result<GlobMatcher> {
    let glob = GlobBuilder::new(pattern)
        .literal_separator(true)
        .build()
        .map_err(|error| Error::input(format!("{path} is not a pattern: {error}")))?;
    Ok(glob.compile_matcher())
}

/// Whether the file or a folder that it lies in is meant.
fn matches(matcher: &GlobMatcher, relative: &LocalPath) -> bool {
    relative.ancestors().filter(|path| !path.as_os_str().is_empty()).any(|path| matcher.is_match(path))
}

#[cfg(test)]
mod tests {
    use object_store::memory::InMemory;

    use super::*;

    const FILES: [&str; 7] =
        ["a.txt", "b.csv", "x/a.txt", "x/y/b.txt", "2013-01/b.txt", ".hidden/a.txt", "x/_part.txt"];

    fn local(root: &LocalPath, pattern: &str) -> Result<Vec<String>> {
        let files = list_local(&format!("{}/{pattern}", root.display()))?;
        let root = format!("{}/", root.display());
        let mut names: Vec<String> =
            files.iter().map(|listed| listed.file.to_string().replacen(&root, "", 1)).collect();
        names.sort();
        Ok(names)
    }

    #[test]
    fn files_folders_and_patterns() {
        let root = tempfile::tempdir().unwrap();
        for file in FILES {
            let path = root.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "1\n").unwrap();
        }
        let check = |pattern: &str, expected: &[&str]| assert_eq!(local(root.path(), pattern).unwrap(), expected);
        check("a.txt", &["a.txt"]);
        check("", &["2013-01/b.txt", "a.txt", "b.csv", "x/a.txt", "x/y/b.txt"]);
        check("x", &["x/a.txt", "x/y/b.txt"]);
        check("*.txt", &["a.txt"]);
        check("?.*", &["a.txt", "b.csv"]);
        check("**/b.txt", &["2013-01/b.txt", "x/y/b.txt"]);
        check("x/**", &["x/a.txt", "x/y/b.txt"]);
        check("2013-*", &["2013-01/b.txt"]);
        check("x/_part.txt", &["x/_part.txt"]);
    }

    #[test]
    fn what_is_not_there_is_named() {
        let root = tempfile::tempdir().unwrap();
        let error = |pattern: &str| local(root.path(), pattern).unwrap_err();
        for pattern in ["missing.txt", "*.txt", "missing/*.txt"] {
            let error = error(pattern);
            assert_eq!(error.kind, flott_core::ErrorKind::Input);
            assert!(error.message.contains(&format!("{}/{pattern}", root.path().display())), "{error}");
        }
        assert!(error("[.txt").message.contains("is not a pattern"));
        assert_eq!(local(root.path(), "").unwrap(), Vec::<String>::new());
        #[cfg(unix)]
        {
            std::os::unix::net::UnixListener::bind(root.path().join("socket")).unwrap();
            assert!(error("socket").message.contains("neither a file nor a folder"));
        }
    }

    #[tokio::test]
    async fn objects_are_listed_the_same_way() {
        let objects = InMemory::new();
        for file in FILES {
            objects.put(&object_key(&format!("root/{file}")).unwrap(), "12".into()).await.unwrap();
        }
        for (key, expected) in
            [("root/a.txt", 1), ("root", 5), ("root/", 5), ("root/*.txt", 1), ("root/**/b.txt", 2), ("", 5)]
        {
            let files = list_objects(&objects, "s3://bucket", key).await.unwrap();
            assert_eq!(files.len(), expected, "{key}: {files:?}");
            assert!(
                files
                    .iter()
                    .all(|listed| listed.bytes == 2 && listed.file.to_string().starts_with("s3://bucket/root/"))
            );
        }
        for key in ["missing", "root/*.json"] {
            let error = list_objects(&objects, "s3://bucket", key).await.unwrap_err();
            assert!(error.message.contains(&format!("s3://bucket/{key}")), "{error}");
        }
    }
}
