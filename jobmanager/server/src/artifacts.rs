//! Job binaries, each under the SHA-256 of its content.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use flott_core::{Error, Result, ResultExt};
use flott_proto::artifact::{ARTIFACT_BYTES_MAX, check_sha256, to_hex};
use futures::{Stream, StreamExt};
use sha2::{Digest, Sha256};
use tokio::fs::File;
use tokio::io::AsyncWriteExt;

use crate::elf;

/// How long the next part of an upload may take.
const CHUNK_TIMEOUT: Duration = Duration::from_secs(60);

/// The end of the name of a file that is being uploaded.
const TEMPORARY: &str = ".tmp";

/// A folder of job binaries.
#[derive(Clone)]
pub(crate) struct ArtifactStore {
    dir: Arc<Path>,
}

impl ArtifactStore {
    /// Opens the folder `dir`, and removes what interrupted uploads have left there.
    pub(crate) fn open(dir: PathBuf) -> Result<Self> {
        let place = || format!("opening the folder of job binaries {}", dir.display());
        std::fs::create_dir_all(&dir).with_context(place)?;
        for entry in std::fs::read_dir(&dir).with_context(place)? {
            let path = entry.with_context(place)?.path();
            if path.to_string_lossy().ends_with(TEMPORARY) {
                std::fs::remove_file(&path).with_context(place)?;
            }
        }
        Ok(Self { dir: dir.into() })
    }

    /// The file with this content, if it is there.
    pub(crate) fn path(&self, sha256: &str) -> Option<PathBuf> {
        check_sha256(sha256).ok()?;
        let path = self.dir.join(sha256);
        path.is_file().then_some(path)
    }

    /// Stores an upload under `sha256`, durably, whole or not at all. Refuses one with other content, and
    /// one that no machine of the cluster could run.
    pub(crate) async fn put<E: fmt::Display>(
        &self,
        sha256: &str,
        body: impl Stream<Item = Result<Bytes, E>> + Unpin,
    ) -> Result<()> {
        check_sha256(sha256)?;
        let name = format!(".{sha256}.{:016x}{TEMPORARY}", flott_env::random_u64());
        let temporary = Temporary(self.dir.join(name));
        let file = File::create(&temporary.0).await.with_context(|| format!("writing {}", temporary.0.display()))?;
        receive(file, &temporary.0, sha256, body).await?;
        let path = self.dir.join(sha256);
        tokio::fs::rename(&temporary.0, &path).await.with_context(|| format!("writing {}", path.display()))?;
        let dir = File::open(&self.dir).await?;
        dir.sync_all().await.with_context(|| format!("writing {}", self.dir.display()))
    }
}

/// Removes its file unless it has been renamed, also when the upload's connection is lost.
struct Temporary(PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        // Usually it is not there any more.
        let _ = std::fs::remove_file(&self.0);
    }
}

async fn receive<E: fmt::Display>(
    mut file: File,
    path: &Path,
    sha256: &str,
    mut body: impl Stream<Item = Result<Bytes, E>> + Unpin,
) -> Result<()> {
    let place = || format!("writing {}", path.display());
    let mut hasher = Sha256::new();
    let mut head = Vec::with_capacity(elf::HEADER_BYTES);
    let mut bytes = 0;
    loop {
        let chunk = tokio::time::timeout(CHUNK_TIMEOUT, body.next())
            .await
            .map_err(|_| Error::input(format!("the upload stood still for {CHUNK_TIMEOUT:?}")))?;
        let Some(chunk) = chunk else { break };
        let chunk = chunk.map_err(|error| Error::input(format!("the upload broke off: {error}")))?;
        bytes += chunk.len() as u64;
        if bytes > ARTIFACT_BYTES_MAX {
            return Err(too_large());
        }
        let missing = elf::HEADER_BYTES - head.len();
        head.extend_from_slice(&chunk[..chunk.len().min(missing)]);
        hasher.update(&chunk);
        file.write_all(&chunk).await.with_context(place)?;
    }
    let actual = to_hex(&hasher.finalize());
    if actual != sha256 {
        return Err(Error::input(format!(
            "the upload was announced with SHA-256 {sha256}, but its {bytes} bytes have {actual}: upload it again"
        )));
    }
    elf::check(&head)?;
    file.flush().await.with_context(place)?;
    file.sync_all().await.with_context(place)
}

/// The refusal of a binary above the limit.
pub(crate) fn too_large() -> Error {
    Error::input(format!("the binary is larger than {ARTIFACT_BYTES_MAX} bytes: strip its debug information"))
}

#[cfg(test)]
mod tests {
    use futures::stream;

    use super::*;

    type Part = Result<Bytes, String>;

    fn parts(content: &[u8]) -> impl Stream<Item = Part> + Unpin {
        let parts: Vec<Part> = content.chunks(7_000).map(|part| Ok(Bytes::copy_from_slice(part))).collect();
        stream::iter(parts)
    }

    fn binary() -> (Vec<u8>, String) {
        let content = elf::example();
        let sha256 = to_hex(&Sha256::digest(&content));
        (content, sha256)
    }

    #[tokio::test]
    async fn what_was_put_is_there_after_reopening() {
        let dir = tempfile::tempdir().unwrap();
        let store = ArtifactStore::open(dir.path().join("artifacts")).unwrap();
        let (content, sha256) = binary();
        assert!(store.path(&sha256).is_none());
        for _ in 0..2 {
            store.put(&sha256, parts(&content)).await.unwrap();
        }
        std::fs::write(dir.path().join("artifacts/.interrupted.tmp"), "half").unwrap();
        let store = ArtifactStore::open(dir.path().join("artifacts")).unwrap();
        assert_eq!(std::fs::read(store.path(&sha256).unwrap()).unwrap(), content);
        assert_eq!(std::fs::read_dir(dir.path().join("artifacts")).unwrap().count(), 1);
    }

    #[tokio::test]
    async fn refused_uploads_leave_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let store = ArtifactStore::open(dir.path().to_owned()).unwrap();
        let (content, sha256) = binary();
        let check = async |sha256: &str, body: Vec<Part>, expected: &str| {
            let error = store.put(sha256, stream::iter(body)).await.unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
            assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        };
        let text = Bytes::from_static(b"fn main() {}\n");
        check(&to_hex(&Sha256::digest(&text)), vec![Ok(text)], "not an ELF executable").await;
        check(&sha256, vec![Ok(Bytes::copy_from_slice(&content[..100]))], "its 100 bytes have").await;
        check(&sha256, vec![Ok(content.into()), Err("reset".into())], "the upload broke off: reset").await;
        check("../passwd", vec![], "'../passwd' is not a SHA-256").await;
        assert!(store.path("../passwd").is_none());
    }
}
