//! The places that a URL or path can name.

use std::fmt;
use std::path::PathBuf;

use flott_core::{Error, Result, ResultExt};
use object_store::path::Path;

/// A file or folder. Its text is its URL in the one normal form. URLs are taken literally: `%20` is three characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Location {
    /// In the file system of this machine; an absolute path without `.` and `..`.
    Local(PathBuf),
    /// In an S3 bucket.
    Bucket {
        /// The bucket.
        bucket: String,
        /// The key, without slashes at its ends.
        key: String,
    },
}

impl Location {
    pub(super) fn parse(text: &str) -> Result<Self> {
        if text.is_empty() {
            return Err(Error::input("a path or URL is empty"));
        }
        if let Some(char) = text.chars().find(|char| char.is_control()) {
            return Err(Error::input(format!("{text:?} is not a path or URL: it has the control character {char:?}")));
        }
        match text.split_once("://").filter(|(scheme, _)| !scheme.contains('/')) {
            Some((scheme, rest)) => Self::from_url(text, &scheme.to_ascii_lowercase(), rest),
            None => match text.strip_prefix("file:/") {
                Some(rest) => Self::from_url(text, "file", &format!("/{rest}")),
                None => Self::from_path(text),
            },
        }
    }

    fn from_url(text: &str, scheme: &str, rest: &str) -> Result<Self> {
        let segments = || {
            let segments: Vec<&str> = rest.split('/').skip(1).filter(|segment| !segment.is_empty()).collect();
            match segments.iter().find(|segment| matches!(**segment, "." | "..")) {
                Some(dots) => Err(Error::input(format!("'{text}' is not accepted: a URL cannot have '{dots}' in it"))),
                None => Ok(segments.join("/")),
            }
        };
        match scheme {
            "file" if rest.starts_with('/') => Ok(Self::Local(PathBuf::from(format!("/{}", segments()?)))),
            "file" => Err(Error::input(format!("'{text}' names no absolute path: write file:///folder/file"))),
            "s3" | "s3a" => {
                let bucket = rest.split('/').next().unwrap_or_default();
                if bucket.is_empty() {
                    return Err(Error::input(format!("'{text}' names no bucket: write s3://bucket/key")));
                }
                Ok(Self::Bucket { bucket: bucket.to_owned(), key: segments()? })
            }
            _ => Err(Error::input(format!(
                "'{text}' has the unknown scheme '{scheme}': known are file://, s3:// and s3a://"
            ))),
        }
    }

    /// `..` is resolved as a shell's `cd` does it, by the text alone.
    fn from_path(text: &str) -> Result<Self> {
        let mut path = if text.starts_with('/') {
            PathBuf::from("/")
        } else {
            std::env::current_dir().with_context(|| format!("resolving the relative path '{text}'"))?
        };
        for segment in text.split('/') {
            match segment {
                "" | "." => {}
                ".." => {
                    path.pop();
                }
                name => path.push(name),
            }
        }
        match path.to_str() {
            Some(_) => Ok(Self::Local(path)),
            None => Err(Error::input(format!("'{}' is not UTF-8: use another folder", path.display()))),
        }
    }

    /// The path that `object_store` knows it by.
    pub(super) fn object_path(&self) -> Result<Path> {
        let parsed = match self {
            Self::Local(path) => Path::parse(path.to_string_lossy()),
            Self::Bucket { key, .. } => Path::parse(key),
        };
        parsed.map_err(|error| Error::input(format!("{self}: {error}")))
    }

    /// The URL of another path in the same file system or bucket.
    pub(super) fn sibling(&self, path: &Path) -> String {
        match self {
            Self::Local(_) => format!("file:///{path}"),
            Self::Bucket { bucket, .. } => format!("s3://{bucket}/{path}"),
        }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local(path) => write!(f, "file://{}", path.display()),
            Self::Bucket { bucket, key } if key.is_empty() => write!(f, "s3://{bucket}"),
            Self::Bucket { bucket, key } => write!(f, "s3://{bucket}/{key}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn normal(text: &str) -> String {
        Location::parse(text).unwrap().to_string()
    }

    fn refused(text: &str, reason: &str) {
        let error = Location::parse(text).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    }

    #[test]
    fn the_same_place_has_one_url() {
        for text in ["file:///a/b c", "file:/a/b c", "FILE:///a//b c/", "/a/b c", "/a/./x/../b c/", "//a/b c"] {
            assert_eq!(normal(text), "file:///a/b c", "{text}");
        }
        for text in ["s3://bucket/a/b", "s3a://bucket//a/b/"] {
            assert_eq!(normal(text), "s3://bucket/a/b", "{text}");
        }
        assert_eq!(normal("s3://bucket/"), "s3://bucket");
        assert_eq!(normal("/"), "file:///");
        assert_eq!(normal("/a/s3://b"), "file:///a/s3:/b");
        assert_eq!(normal("/a%20b"), "file:///a%20b");
    }

    #[test]
    fn relative_paths_start_in_the_current_folder() {
        let here = std::env::current_dir().unwrap();
        assert_eq!(normal("chk-1"), format!("file://{}/chk-1", here.display()));
        assert_eq!(normal("."), format!("file://{}", here.display()));
        assert_eq!(normal("../x"), format!("file://{}/x", here.parent().unwrap().display()));
    }

    #[test]
    fn what_names_no_place_is_refused() {
        refused("", "empty");
        refused("gs://bucket/key", "unknown scheme 'gs': known are file://, s3:// and s3a://");
        refused("file:///a/../b", "cannot have '..'");
        refused("s3://bucket/./b", "cannot have '.'");
        refused("file://host/a", "no absolute path");
        refused("s3:///key", "no bucket");
        refused("/a\0b", "control character");
        refused("s3://bucket/a\nb", "control character");
    }

    proptest! {
        #[test]
        fn normal_forms_are_stable(text in "(file://|s3://b|)/[a-z.%# /é]{0,20}") {
            if let Ok(location) = Location::parse(&text) {
                let url = location.to_string();
                let again = Location::parse(&url).unwrap();
                prop_assert_eq!(&again, &location);
                let path = location.object_path().unwrap();
                let sibling = location.sibling(&path);
                prop_assert_eq!(sibling.trim_end_matches('/'), url.trim_end_matches('/'));
            }
        }
    }
}
