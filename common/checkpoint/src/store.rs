//! Folders of checkpoint files in a file system or an object store.
//!
//! What is written is durable when the call returns, and appears under its name whole or not at all. Local files are
//! therefore written by this crate and synced with their folders; `object_store` would leave that to the
//! kernel, and a machine that crashes would take the checkpoint with it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use flott_core::{Error, Result, ResultExt};
use futures::stream::{self, StreamExt, TryStreamExt};
use object_store::aws::AmazonS3Builder;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{MultipartUpload, ObjectStore, ObjectStoreExt};
use sha2::{Digest, Sha256};
use tokio::runtime::Handle;
use tracing::warn;

use crate::manifest::{FileHandle, METADATA_FILE, Manifest};

mod files;
mod local;
mod location;
#[cfg(test)]
mod tests;

use location::Location;

/// Objects above this size are uploaded in parts of it.
const PART_BYTES: usize = 8 << 20;

/// How many requests about one call are under way at a time.
const CONCURRENCY: usize = 8;

/// How often a file that does not read as it should is read before it is called damaged.
const READ_ATTEMPTS: u32 = 3;

/// The pause before the second reading; it doubles.
const READ_BACKOFF: Duration = Duration::from_millis(100);

/// No manifest is larger: what is in it is small state, and a restore must fit into memory.
const MANIFEST_BYTES_MAX: u64 = 512 << 20;

/// Reads and writes files by URL: `file:///folder/file`, `s3://bucket/key`, or a plain path.
///
/// For S3 the credentials, endpoint and region come from the environment (`AWS_ACCESS_KEY_ID`,
/// `AWS_SECRET_ACCESS_KEY`, `AWS_ENDPOINT_URL`, `AWS_REGION`, `AWS_ALLOW_HTTP`, and so on). One client a
/// bucket is made and kept; clones share them. All methods must be called inside a tokio runtime.
///
/// ```
/// use flott_checkpoint::Store;
/// assert_eq!(Store::normalize("s3a://bucket//chk-1/").unwrap(), "s3://bucket/chk-1");
/// assert_eq!(Store::normalize("/tmp/../data/chk-1").unwrap(), "file:///data/chk-1");
/// assert!(Store::normalize("ftp://host/chk-1").unwrap_err().to_string().contains("file://, s3://"));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Store {
    clients: Arc<Mutex<BTreeMap<String, Arc<dyn ObjectStore>>>>,
}

impl Store {
    /// The URL that means the same as `path_or_url`, in the one form that compares equal: a relative
    /// path is resolved against the current folder, `s3a://` becomes `s3://`, and slashes that do nothing go.
    ///
    /// # Errors
    /// An unknown scheme, a control character, or a URL with `.` or `..` in it.
    pub fn normalize(path_or_url: &str) -> Result<String> {
        Ok(Location::parse(path_or_url)?.to_string())
    }

    /// The object store of `url` and the path in it, for readers and writers that stream.
    ///
    /// # Errors
    /// `url` cannot be read, or the environment's settings for S3 cannot.
    pub fn open(&self, url: &str) -> Result<(Arc<dyn ObjectStore>, Path)> {
        self.client(&Location::parse(url)?)
    }

    fn client(&self, location: &Location) -> Result<(Arc<dyn ObjectStore>, Path)> {
        let name = match location {
            Location::Local(_) => "",
            Location::Bucket { bucket, .. } => bucket.as_str(),
        };
        let path = location.object_path()?;
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = clients.get(name) {
            return Ok((client.clone(), path));
        }
        let client: Arc<dyn ObjectStore> = match location {
            Location::Local(_) => Arc::new(LocalFileSystem::new()),
            Location::Bucket { bucket, .. } => {
                let built = AmazonS3Builder::from_env().with_bucket_name(bucket).build();
                Arc::new(built.map_err(|error| {
                    Error::input(format!(
                        "s3://{bucket}: {error}; S3 is configured by AWS_ variables of the environment"
                    ))
                })?)
            }
        };
        clients.insert(name.to_owned(), client.clone());
        Ok((client, path))
    }

    /// Writes a file, over one that may be there already, so that a write can be tried again. The handle has
    /// the normalised URL.
    ///
    /// # Errors
    /// The file cannot be written. Nothing of it is left under its name.
    pub async fn put(&self, url: &str, bytes: Bytes) -> Result<FileHandle> {
        let location = Location::parse(url)?;
        let path = location.to_string();
        let content = bytes.clone();
        let write = async {
            match &location {
                Location::Local(file) => {
                    let file = file.clone();
                    blocking(move || {
                        local::write(&file, &content)?;
                        Ok(sha256_hex(&content))
                    })
                    .await
                }
                Location::Bucket { .. } => {
                    let (client, key) = self.client(&location)?;
                    upload(&*client, &key, &bytes).await?;
                    blocking(move || Ok(sha256_hex(&content))).await
                }
            }
        };
        let sha256 = write.await.with_context(|| format!("writing {path}"))?;
        Ok(FileHandle { path, bytes: bytes.len() as u64, sha256 })
    }

    /// Reads a file of at most `bytes_max` bytes.
    ///
    /// # Errors
    /// It is missing, larger, or cannot be read.
    pub async fn get(&self, url: &str, bytes_max: u64) -> Result<Bytes> {
        let accept = |bytes: u64| {
            if bytes <= bytes_max {
                return Ok(());
            }
            Err(Error::input(format!("{url} has {bytes} bytes, the most that is read is {bytes_max}")))
        };
        self.read(url, accept).await
    }

    /// Reads a file whose length `accept` accepts.
    async fn read(&self, url: &str, accept: impl FnOnce(u64) -> Result<()>) -> Result<Bytes> {
        let location = Location::parse(url)?;
        let (client, path) = self.client(&location)?;
        let result = client.get(&path).await.map_err(|error| failed(&location, error))?;
        accept(result.meta.size)?;
        result.bytes().await.map_err(|error| failed(&location, error))
    }

    /// Reads a file and checks that it is the one that was written. A reading that is not right is
    /// repeated, since it may be the network's fault.
    ///
    /// # Errors
    /// It is missing, truncated, altered, or cannot be read.
    pub async fn get_verified(&self, handle: &FileHandle) -> Result<Bytes> {
        let mut attempt = 1;
        loop {
            let error = match self.get_checked(handle).await {
                Ok(bytes) => return Ok(bytes),
                Err(error) if attempt == READ_ATTEMPTS => return Err(error),
                Err(error) => error,
            };
            warn!(%error, attempt, "a checkpoint file could not be read, trying again");
            flott_env::sleep(READ_BACKOFF * 2_u32.pow(attempt - 1)).await;
            attempt += 1;
        }
    }

    async fn get_checked(&self, handle: &FileHandle) -> Result<Bytes> {
        let bytes = self.read(&handle.path, |bytes| check_length(handle, bytes)).await?;
        let content = bytes.clone();
        let sha256 = blocking(move || Ok(sha256_hex(&content))).await?;
        check_sha256(handle, &sha256)?;
        Ok(bytes)
    }

    /// Writes the manifest of the checkpoint whose folder is `location`, with paths relative to it
    /// where they lie below it, and returns its SHA-256 in hexadecimal.
    ///
    /// # Errors
    /// It is too large, or cannot be written.
    pub async fn write_manifest(&self, location: &str, manifest: &Manifest) -> Result<String> {
        let folder = Self::normalize(location)?;
        let url = format!("{folder}/{METADATA_FILE}");
        let bytes = manifest.relative_to(&folder).to_bytes()?;
        if bytes.len() as u64 > MANIFEST_BYTES_MAX {
            return Err(Error::system(format!(
                "{url} would have {} bytes, the most is {MANIFEST_BYTES_MAX}: keep large state by key, not as operator state",
                bytes.len()
            )));
        }
        Ok(self.put(&url, bytes.into()).await?.sha256)
    }

    /// Reads a manifest, given its folder or its own path, and returns the folder's URL with it. All files that
    /// it names must be there with their lengths; their content is checked when it is read. `sha256` is the
    /// hash that the log has of the manifest, if the checkpoint is from the log.
    ///
    /// # Errors
    /// There is no manifest, it is damaged or of another version, or a file that it names is missing or truncated.
    pub async fn load_manifest(&self, path_or_url: &str, sha256: Option<&str>) -> Result<(String, Manifest)> {
        let url = Self::normalize(path_or_url)?;
        let folder = url.strip_suffix(METADATA_FILE).and_then(|url| url.strip_suffix('/')).unwrap_or(&url).to_owned();
        let url = format!("{folder}/{METADATA_FILE}");
        let bytes = self.get(&url, MANIFEST_BYTES_MAX).await.with_context(|| {
            format!(
                "no checkpoint or savepoint can be read from {folder}, whose {METADATA_FILE} file should describe it"
            )
        })?;
        let (actual, manifest) = {
            let url = url.clone();
            blocking(move || Ok((sha256_hex(&bytes), Manifest::from_bytes(&url, &bytes)?))).await?
        };
        if let Some(expected) = sha256.filter(|expected| *expected != actual) {
            return Err(Error::input(format!(
                "{url} is not the manifest of the completed checkpoint: its SHA-256 is {actual}, the log says {expected}"
            )));
        }
        self.check_files(&folder, &manifest).await?;
        Ok((folder, manifest))
    }

    async fn check_files(&self, folder: &str, manifest: &Manifest) -> Result<()> {
        let files: BTreeSet<FileHandle> = manifest.files().map(|file| file.resolve(folder)).collect();
        let checks = stream::iter(files).map(|file| async move {
            let location = Location::parse(&file.path)?;
            let (client, path) = self.client(&location)?;
            let meta = client.head(&path).await.map_err(|error| failed(&location, error));
            check_length(&file, meta.context("the manifest needs a file that cannot be read")?.size)
        });
        checks.buffer_unordered(CONCURRENCY).try_collect().await
    }

    /// Deletes files. One that is not there is deleted already.
    ///
    /// # Errors
    /// A file cannot be deleted; those that can are.
    pub async fn delete_files(&self, urls: &[String]) -> Result<()> {
        let deletions = stream::iter(urls.to_vec()).map(|url| async move {
            let location = Location::parse(&url)?;
            let (client, path) = self.client(&location)?;
            match client.delete(&path).await {
                Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
                Err(error) => Err(failed(&location, error)),
            }
        });
        let results: Vec<Result<()>> = deletions.buffer_unordered(CONCURRENCY).collect().await;
        results.into_iter().collect::<Result<()>>().context("deleting")
    }

    /// Deletes a folder with everything in it. One that is not there is deleted already.
    ///
    /// # Errors
    /// Something in it cannot be deleted, or it is the root of a file system or bucket.
    pub async fn delete_folder(&self, url: &str) -> Result<()> {
        let location = Location::parse(url)?;
        if location.object_path()?.is_root() {
            return Err(Error::input(format!("{location} is a root and is not deleted")));
        }
        let deleted = match &location {
            Location::Local(folder) => {
                let folder = folder.clone();
                blocking(move || Ok(local::delete_folder(&folder)?)).await
            }
            Location::Bucket { .. } => {
                let (client, prefix) = self.client(&location)?;
                let paths = client.list(Some(&prefix)).map_ok(|meta| meta.location).boxed();
                let results = client
                    .delete_stream(paths)
                    .filter(|result| std::future::ready(!matches!(result, Err(object_store::Error::NotFound { .. }))));
                results.map_ok(|_| ()).try_collect().await.map_err(|error| failed(&location, error))
            }
        };
        deleted.with_context(|| format!("deleting {location}"))
    }

    /// The URLs of all files below a folder, also of those that writers which died have not finished; none if there is no such
    /// folder. If there are more than `files_max`, it is any so many of them.
    ///
    /// # Errors
    /// The folder cannot be listed.
    pub async fn list(&self, url: &str, files_max: usize) -> Result<Vec<String>> {
        let location = Location::parse(url)?;
        let (client, prefix) = self.client(&location)?;
        let files = client.list(Some(&prefix)).take(files_max).map_ok(|meta| location.sibling(&meta.location));
        files.try_collect().await.map_err(|error| failed(&location, error))
    }
}

async fn upload(client: &dyn ObjectStore, key: &Path, bytes: &Bytes) -> Result<()> {
    if bytes.len() <= PART_BYTES {
        client.put(key, bytes.clone().into()).await.map_err(system)?;
        return Ok(());
    }
    let mut upload = client.put_multipart(key).await.map_err(system)?;
    let sent = match upload_parts(&mut *upload, bytes).await {
        Ok(()) => upload.complete().await.map(|_| ()),
        Err(error) => Err(error),
    };
    if let Err(error) = sent {
        // The parts would be paid for until someone finds them.
        if let Err(error) = upload.abort().await {
            warn!(%error, %key, "the parts of a failed upload could not be deleted");
        }
        return Err(system(error));
    }
    Ok(())
}

async fn upload_parts(upload: &mut dyn MultipartUpload, bytes: &Bytes) -> object_store::Result<()> {
    let mut running = stream::FuturesUnordered::new();
    for start in (0..bytes.len()).step_by(PART_BYTES) {
        if running.len() == CONCURRENCY {
            running.try_next().await?;
        }
        let part = bytes.slice(start..bytes.len().min(start + PART_BYTES));
        running.push(upload.put_part(part.into()));
    }
    running.try_collect().await
}

fn check_length(handle: &FileHandle, bytes: u64) -> Result<()> {
    if bytes == handle.bytes {
        return Ok(());
    }
    let what = if bytes < handle.bytes { "truncated" } else { "damaged" };
    Err(Error::input(format!("{} is {what}: it has {bytes} bytes, the manifest says {}", handle.path, handle.bytes)))
}

fn check_sha256(handle: &FileHandle, sha256: &str) -> Result<()> {
    if sha256 == handle.sha256 {
        return Ok(());
    }
    Err(Error::input(format!(
        "{} is damaged: its SHA-256 is {sha256}, the manifest says {}",
        handle.path, handle.sha256
    )))
}

fn failed(location: &Location, error: object_store::Error) -> Error {
    match error {
        object_store::Error::NotFound { .. } => Error::input(format!("{location} does not exist")),
        error => system(error).context(location),
    }
}

fn system(error: object_store::Error) -> Error {
    Error::system(error.to_string())
}

pub(crate) fn sha256_hex(bytes: &[u8]) -> String {
    format!("{:x}", Sha256::digest(bytes))
}

/// Runs `f`, which waits for a disk or computes for long, where it holds up nobody.
async fn blocking<T: Send + 'static>(f: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    let done = flott_env::spawn_blocking_on(&Handle::current(), f).await;
    done.map_err(|error| Error::system(format!("a file operation did not end: {error}")))?
}
