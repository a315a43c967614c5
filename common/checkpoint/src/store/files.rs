//! Files that may be larger than memory: they go through in pieces.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::path::Path as FilePath;

use bytes::Bytes;
use flott_core::{Error, Result, ResultExt};
use futures::stream::{FuturesUnordered, TryStreamExt};
use object_store::path::Path;
use object_store::{MultipartUpload, ObjectStore, ObjectStoreExt};
use sha2::{Digest, Sha256};
use tracing::warn;

use super::location::Location;
use super::{
    CONCURRENCY, PART_BYTES, READ_ATTEMPTS, READ_BACKOFF, Store, blocking, check_length, check_sha256, failed, local,
    system,
};
use crate::manifest::FileHandle;

/// How much is read, hashed and written at once.
const PIECE_BYTES: usize = 1 << 20;

impl Store {
    /// Like [`Store::put`], with a local file's content.
    ///
    /// # Errors
    /// It cannot be read or written. Nothing of it is left under its name.
    pub async fn put_file(&self, url: &str, source: &FilePath) -> Result<FileHandle> {
        let location = Location::parse(url)?;
        let path = location.to_string();
        let source = source.to_owned();
        let write = async {
            match &location {
                Location::Local(target) => {
                    let target = target.clone();
                    blocking(move || {
                        let source = File::open(&source).with_context(|| format!("reading {}", source.display()))?;
                        local::write_with(&target, |target| copy(source, target))
                    })
                    .await
                }
                Location::Bucket { .. } => {
                    let (client, key) = self.client(&location)?;
                    upload(&*client, &key, &source).await
                }
            }
        };
        let (bytes, sha256) = write.await.with_context(|| format!("writing {path}"))?;
        Ok(FileHandle { path, bytes, sha256 })
    }

    /// Like [`Store::get_verified`], into a local file, which may be there already. After an error its content means
    /// nothing.
    ///
    /// # Errors
    /// The file is missing, truncated, altered, or cannot be read; or the local one cannot be written.
    pub async fn get_file(&self, handle: &FileHandle, target: &FilePath) -> Result<()> {
        let mut attempt = 1;
        loop {
            let error = match self.download(handle, target).await {
                Ok(()) => return Ok(()),
                Err(error) if attempt == READ_ATTEMPTS => return Err(error),
                Err(error) => error,
            };
            warn!(%error, attempt, "a checkpoint file could not be fetched, trying again");
            flott_env::sleep(READ_BACKOFF * 2_u32.pow(attempt - 1)).await;
            attempt += 1;
        }
    }

    async fn download(&self, handle: &FileHandle, target: &FilePath) -> Result<()> {
        let location = Location::parse(&handle.path)?;
        let path = target.to_owned();
        let mut pieces = blocking(move || {
            let file = File::create(&path).map_err(|error| unwritable(&path, &error))?;
            Ok(Pieces { file, hash: Sha256::new() })
        })
        .await?;
        let path = target.to_owned();
        let sha256 = match &location {
            Location::Local(source) => {
                let (source, handle) = (source.clone(), handle.clone());
                let copied = blocking(move || {
                    let file = File::open(&source).map_err(|error| match error.kind() {
                        ErrorKind::NotFound => Error::input(format!("file://{} does not exist", source.display())),
                        _ => Error::from(error).context(source.display()),
                    })?;
                    check_length(&handle, file.metadata()?.len())?;
                    copy(file, &mut pieces.file).map_err(|error| unwritable(&path, &error))
                });
                copied.await?.1
            }
            Location::Bucket { .. } => {
                let (client, key) = self.client(&location)?;
                let result = client.get(&key).await.map_err(|error| failed(&location, error))?;
                check_length(handle, result.meta.size)?;
                let mut stream = result.into_stream();
                let mut piece = Vec::with_capacity(PIECE_BYTES);
                while let Some(chunk) = stream.try_next().await.map_err(|error| failed(&location, error))? {
                    piece.extend_from_slice(&chunk);
                    if piece.len() >= PIECE_BYTES {
                        let full = std::mem::replace(&mut piece, Vec::with_capacity(PIECE_BYTES));
                        pieces = pieces.add(full, target).await?;
                    }
                }
                format!("{:x}", pieces.add(piece, target).await?.hash.finalize())
            }
        };
        check_sha256(handle, &sha256)
    }
}

/// A local file that is being written.
struct Pieces {
    file: File,
    hash: Sha256,
}

impl Pieces {
    async fn add(mut self, piece: Vec<u8>, path: &FilePath) -> Result<Self> {
        let path = path.to_owned();
        blocking(move || {
            self.hash.update(&piece);
            self.file.write_all(&piece).map_err(|error| unwritable(&path, &error))?;
            Ok(self)
        })
        .await
    }
}

fn unwritable(path: &FilePath, error: &io::Error) -> Error {
    let way_out = match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            ": make room there, or name a directory on a larger disk in 'io.tmp.dirs'"
        }
        _ => "",
    };
    Error::system(format!("writing {}: {error}{way_out}", path.display()))
}

/// Copies everything; returns how much it was, and its SHA-256.
fn copy(mut source: File, target: &mut File) -> io::Result<(u64, String)> {
    let (mut hash, mut bytes) = (Sha256::new(), 0);
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let length = source.read(&mut piece)?;
        if length == 0 {
            return Ok((bytes, format!("{:x}", hash.finalize())));
        }
        hash.update(&piece[..length]);
        target.write_all(&piece[..length])?;
        bytes += length as u64;
    }
}

/// Uploads a file, a large one in parts, of which a few are in memory at a time.
async fn upload(client: &dyn ObjectStore, key: &Path, source: &FilePath) -> Result<(u64, String)> {
    let path = source.to_owned();
    let (file, length) = blocking(move || {
        let opened = File::open(&path).and_then(|file| file.metadata().map(|meta| (file, meta.len())));
        opened.with_context(|| format!("reading {}", path.display()))
    })
    .await?;
    let mut parts = Parts { file, hash: Sha256::new(), bytes: 0 };
    if length <= PART_BYTES as u64 {
        let part = parts.read().await?;
        client.put(key, part.into()).await.map_err(system)?;
        return Ok(parts.finish());
    }
    let mut upload = client.put_multipart(key).await.map_err(system)?;
    let sent = match parts.send(&mut *upload).await {
        Ok(()) => upload.complete().await.map(|_| ()).map_err(system),
        Err(error) => Err(error),
    };
    if let Err(error) = sent {
        // The parts would be paid for until someone finds them.
        if let Err(error) = upload.abort().await {
            warn!(%error, %key, "the parts of a failed upload could not be deleted");
        }
        return Err(error);
    }
    Ok(parts.finish())
}

/// A local file that is being read.
struct Parts {
    file: File,
    hash: Sha256,
    bytes: u64,
}

impl Parts {
    /// The next part; it is empty at the end.
    async fn read(&mut self) -> Result<Bytes> {
        let (mut file, mut hash) = (self.file.try_clone()?, self.hash.clone());
        let read = blocking(move || {
            let mut part = Vec::with_capacity(PART_BYTES);
            (&mut file).take(PART_BYTES as u64).read_to_end(&mut part)?;
            hash.update(&part);
            Ok((hash, part))
        });
        let (hash, part) = read.await?;
        self.hash = hash;
        self.bytes += part.len() as u64;
        Ok(Bytes::from(part))
    }

    async fn send(&mut self, upload: &mut dyn MultipartUpload) -> Result<()> {
        let mut running = FuturesUnordered::new();
        loop {
            let part = self.read().await?;
            if part.is_empty() {
                break;
            }
            if running.len() == CONCURRENCY {
                running.try_next().await.map_err(system)?;
            }
            running.push(upload.put_part(part.into()));
        }
        running.try_collect::<()>().await.map_err(system)
    }

    /// How much it was, and its SHA-256.
    fn finish(self) -> (u64, String) {
        (self.bytes, format!("{:x}", self.hash.finalize()))
    }
}
