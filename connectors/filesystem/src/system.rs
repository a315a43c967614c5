//! Names of files, here or in an object store.

use std::fmt;
use std::fs::Metadata;
use std::io;
use std::path::Path as LocalPath;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use flott_checkpoint::Store;
use flott_connector_spi::IoHandle;
use flott_core::{Error, Result};
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use serde::{Deserialize, Serialize};

/// The name of a file, the same on all machines.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum FilePath {
    /// An absolute path of the file system.
    Local(String),
    /// An object.
    Object {
        /// The store with its bucket, for example `s3://bucket`.
        store: String,
        /// The object's key in it.
        key: String,
    },
}

impl FilePath {
    /// Reads a path, absolute or relative to the working folder, or a URL such as `file:///folder/file` or
    /// `s3://bucket/key`. URLs are taken literally: `%20` is three characters.
    pub fn parse(text: &str) -> Result<Self> {
        if text.is_empty() {
            return Err(Error::input("the path is empty: give a file, a folder, a pattern or a URL"));
        }
        match text.split_once("://") {
            Some(("file", path)) if path.starts_with('/') => Self::local(LocalPath::new(path)),
            Some(("file", _)) => {
                Err(Error::input(format!("'{text}' names no absolute path: write file:///folder/file")))
            }
            Some((scheme, rest)) if is_scheme(scheme) => {
                let (bucket, key) = rest.split_once('/').unwrap_or((rest, ""));
                if bucket.is_empty() {
                    return Err(Error::input(format!("'{text}' names no bucket: write {scheme}://bucket/key")));
                }
                Ok(Self::Object { store: format!("{scheme}://{bucket}"), key: key.to_owned() })
            }
            _ => {
                let path = std::path::absolute(text)
                    .map_err(|error| Error::input(format!("'{text}' cannot be made an absolute path: {error}")))?;
                Self::local(&path)
            }
        }
    }

    /// A path of this machine.
    pub(crate) fn local(path: &LocalPath) -> Result<Self> {
        path.to_str()
            .map(|path| Self::Local(path.to_owned()))
            .ok_or_else(|| Error::input(format!("the name '{}' is not valid UTF-8: rename the file", path.display())))
    }
}

impl fmt::Display for FilePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local(path) => f.write_str(path),
            Self::Object { store, key } => write!(f, "{store}/{key}"),
        }
    }
}

fn is_scheme(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
}

/// Whether readers of a folder pass over a file or folder of this name.
pub(crate) fn is_hidden(name: &str) -> bool {
    name.starts_with(['.', '_'])
}

/// Opens the object store `root`, for example `s3://bucket`.
pub(crate) fn open_store(stores: &Store, io: &IoHandle, root: &str) -> Result<Arc<dyn ObjectStore>> {
    let _inside = io.enter();
    Ok(stores.open(root)?.0)
}

/// The key of an object as its store takes it.
pub(crate) fn object_key(key: &str) -> Result<Path> {
    Path::parse(key).map_err(|error| Error::input(format!("'{key}' is not the key of an object: {error}")))
}

/// When a local file was changed last, in milliseconds since 1970.
pub(crate) fn local_modified_ms(path: impl fmt::Display, metadata: io::Result<Metadata>) -> Result<i64> {
    let modified = metadata.and_then(|metadata| metadata.modified()).map_err(|error| local_error(path, &error))?;
    let ms = |time: Duration| i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
    Ok(modified.duration_since(UNIX_EPOCH).map_or_else(|before| -ms(before.duration()), ms))
}

/// When an object was changed last, likewise.
pub(crate) async fn object_modified_ms(objects: &dyn ObjectStore, name: impl fmt::Display, key: &Path) -> Result<i64> {
    let object = objects.head(key).await.map_err(|error| object_error(name, &error))?;
    Ok(object.last_modified.timestamp_millis())
}

/// What went wrong with a local file. A path that was there may be back soon, so the restart strategy decides; only
/// what can never work is the user's mistake.
pub(crate) fn local_error(path: impl fmt::Display, error: &io::Error) -> Error {
    use io::ErrorKind::*;
    match error.kind() {
        NotFound => Error::system(format!("{path} does not exist")),
        PermissionDenied => Error::system(format!("{path} may not be opened: permission denied")),
        IsADirectory | InvalidInput => Error::input(format!("{path}: {error}")),
        AlreadyExists | NotADirectory => Error::system(format!("{path}: there is a file where a folder is needed")),
        StorageFull | QuotaExceeded => {
            Error::system(format!("{path}: no space is left on the disk ({error}): free some, or write elsewhere"))
        }
        _ => Error::system(format!("{path}: {error}")),
    }
}

/// What went wrong with an object, likewise.
pub(crate) fn object_error(path: impl fmt::Display, error: &object_store::Error) -> Error {
    match error {
        object_store::Error::NotFound { .. } => Error::system(format!("{path} does not exist")),
        object_store::Error::PermissionDenied { .. } | object_store::Error::Unauthenticated { .. } => {
            Error::system(format!("{path} may not be accessed: check the credentials: {error}"))
        }
        _ => Error::system(format!("{path}: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_and_urls() {
        let check = |text: &str, expected: &str| assert_eq!(FilePath::parse(text).unwrap().to_string(), expected);
        check("/a/b c.txt", "/a/b c.txt");
        check("file:///a/b%20c?.txt", "/a/b%20c?.txt");
        check("s3://bucket/a%20b/*.csv", "s3://bucket/a%20b/*.csv");
        check("/odd/a://b", "/odd/a:/b");
        assert!(matches!(FilePath::parse("data/x").unwrap(), FilePath::Local(path) if path.ends_with("/data/x")));
        for wrong in ["", "file://host/a", "s3:///key"] {
            assert!(FilePath::parse(wrong).is_err(), "{wrong}");
        }
    }
}
