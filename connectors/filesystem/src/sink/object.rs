//! Parts in an object store: a copy under another key makes them visible.

use std::sync::Arc;

use bytes::Bytes;
use flott_connector_spi::{IoHandle, SinkContext};
use flott_core::{Error, Result};
use futures::stream::{self, TryStreamExt};
use object_store::buffered::BufWriter;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use tokio::io::AsyncWriteExt;

use crate::sink::part::{ClosedPart, Folder, OpenPart, PartNames};
use crate::system::{FilePath, is_hidden, object_error, object_key};

/// A part up to this size is one request; a larger one is uploaded in pieces of it.
const PIECE_BYTES: usize = 8 << 20;

/// How many pieces of a part are on their way at once; the next waits.
const PIECES_MAX: usize = 4;

/// How many parts are made visible at once.
const COMMITS_MAX: usize = 16;

/// Parts below a key of an object store.
pub(crate) struct ObjectFolder {
    io: IoHandle,
    objects: Arc<dyn ObjectStore>,
    store: String,
    root: String,
    staging: String,
}

impl ObjectFolder {
    /// The folder `key` of `objects`, whose name is `store`.
    pub(crate) fn new(io: IoHandle, objects: Arc<dyn ObjectStore>, store: String, key: &str, cx: &SinkContext) -> Self {
        let root = key.trim_matches('/').to_owned();
        let staging = join(&[&root, "_staging", &cx.job.to_string(), &cx.generation.to_string()]);
        Self { io, objects, store, root, staging }
    }
}

fn join(parts: &[&str]) -> String {
    let parts: Vec<&str> = parts.iter().copied().filter(|part| !part.is_empty()).collect();
    parts.join("/")
}

impl Folder for ObjectFolder {
    fn create(&mut self, bucket: &str, name: &str) -> Result<Box<dyn OpenPart>> {
        let object = |key| FilePath::Object { store: self.store.clone(), key };
        let staged = join(&[&self.staging, bucket, name]);
        let writer = BufWriter::with_capacity(self.objects.clone(), object_key(&staged)?, PIECE_BYTES);
        Ok(Box::new(ObjectPart {
            io: self.io.clone(),
            writer: Some(writer.with_max_concurrency(PIECES_MAX)),
            staged: object(staged),
            target: object(join(&[&self.root, bucket, name])),
            bytes: 0,
        }))
    }

    fn sync(&mut self, _parts: &[ClosedPart]) -> Result<()> {
        Ok(())
    }

    fn commit(&mut self, parts: &[ClosedPart], names: &PartNames) -> Result<()> {
        let (objects, store) = (&*self.objects, self.store.as_str());
        let commits = stream::iter(parts.iter().map(Ok))
            .try_for_each_concurrent(COMMITS_MAX, |part| commit(objects, store, part, names));
        self.io.block_on(commits)
    }

    fn clear(&mut self, bucket: &str, names: &PartNames) -> Result<()> {
        let folder = join(&[&self.root, bucket]);
        let place = format!("{}/{folder}", self.store);
        let clear = async {
            let prefix = object_key(&folder)?;
            let found: Vec<_> =
                self.objects.list(Some(&prefix)).try_collect().await.map_err(|error| object_error(&place, &error))?;
            for object in found {
                let key = object.location.as_ref();
                let relative = key.strip_prefix(&folder).unwrap_or(key).trim_start_matches('/');
                if relative.split('/').any(is_hidden) || names.is_own(relative) {
                    continue;
                }
                match self.objects.delete(&object.location).await {
                    Ok(()) | Err(object_store::Error::NotFound { .. }) => {}
                    Err(error) => return Err(object_error(format!("{}/{key}", self.store), &error)),
                }
            }
            Ok(())
        };
        self.io.block_on(clear)
    }

    fn touch(&mut self, bucket: &str, name: &str) -> Result<()> {
        let key = join(&[&self.root, bucket, name]);
        let put = self.io.block_on(self.objects.put(&object_key(&key)?, Bytes::new().into()));
        put.map(drop).map_err(|error| object_error(format!("{}/{key}", self.store), &error))
    }
}

/// Copying again what was copied before changes nothing, since no name is used twice.
async fn commit(objects: &dyn ObjectStore, store: &str, part: &ClosedPart, names: &PartNames) -> Result<()> {
    let (staged, target) = (key_in(store, part, &part.staged)?, key_in(store, part, &part.target)?);
    match objects.copy(&staged, &target).await {
        Ok(()) => {}
        Err(object_store::Error::NotFound { .. }) => {
            return match objects.head(&target).await {
                Ok(_) => Ok(()),
                Err(object_store::Error::NotFound { .. }) => part.missing(names),
                Err(error) => Err(object_error(&part.target, &error)),
            };
        }
        Err(error) => return Err(object_error(&part.target, &error)),
    }
    match objects.delete(&staged).await {
        Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
        Err(error) => Err(object_error(&part.staged, &error)),
    }
}

fn key_in(store: &str, part: &ClosedPart, path: &FilePath) -> Result<Path> {
    match path {
        FilePath::Object { store: other, key } if other == store => object_key(key),
        _ => Err(Error::input(format!(
            "the part {} was written somewhere else than to {store}, where the sink writes now: restore with the old path",
            part.target
        ))),
    }
}

/// An object that is being uploaded; it exists when the upload is complete.
struct ObjectPart {
    io: IoHandle,
    writer: Option<BufWriter>,
    staged: FilePath,
    target: FilePath,
    bytes: u64,
}

impl OpenPart for ObjectPart {
    fn names(&self) -> (FilePath, FilePath) {
        (self.staged.clone(), self.target.clone())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let Some(writer) = &mut self.writer else { return Ok(()) };
        self.bytes += bytes.len() as u64;
        self.io.block_on(writer.put(Bytes::copy_from_slice(bytes))).map_err(|error| object_error(&self.staged, &error))
    }

    fn close(mut self: Box<Self>) -> Result<ClosedPart> {
        if let Some(mut writer) = self.writer.take() {
            self.io
                .block_on(writer.shutdown())
                .map_err(|error| Error::system(format!("{}: the upload failed: {error}", self.staged)))?;
        }
        Ok(ClosedPart::new(self.staged.clone(), self.target.clone(), self.bytes))
    }
}

impl Drop for ObjectPart {
    fn drop(&mut self) {
        // What was uploaded of a part that is not closed is of no use. Nobody waits for the end of this.
        if let Some(mut writer) = self.writer.take() {
            flott_env::spawn_on(&self.io, async move {
                if let Err(error) = writer.abort().await {
                    tracing::warn!(%error, "an unfinished upload could not be aborted");
                }
            });
        }
    }
}
