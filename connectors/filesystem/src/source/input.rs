//! The bytes of a file from any place on, without their compression.

use std::fs::{self, File};
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::ops::Range;
use std::sync::Arc;

use bytes::{Buf, Bytes};
use flott_checkpoint::Store;
use flott_connector_spi::IoHandle;
use flott_core::{Error, Result};
use flott_formats::FileInfo;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use tokio::task::JoinHandle;

use crate::source::split::FileSplit;
use crate::system::{
    FilePath, local_error, local_modified_ms, object_error, object_key, object_modified_ms, open_store,
};

/// How much of an object one request asks for. One request is under way while the bytes of another are used.
const REQUEST_BYTES: u64 = 8 << 20;

/// How much compressed data is read at once.
const COMPRESSED_BYTES: usize = 128 << 10;

/// How a file is compressed, by the end of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compression {
    None,
    Gzip,
    Zstd,
}

impl Compression {
    pub(crate) fn of(file: &FilePath) -> Self {
        let (FilePath::Local(name) | FilePath::Object { key: name, .. }) = file;
        match name.rsplit_once('.').map(|(_, extension)| extension) {
            Some("gz" | "gzip") => Self::Gzip,
            Some("zst" | "zstd") => Self::Zstd,
            _ => Self::None,
        }
    }
}

/// A file that can be opened again and again. Opening and reading wait for the disk or the network.
#[derive(Clone)]
pub(crate) struct Input {
    pub(crate) stores: Store,
    pub(crate) io: IoHandle,
    pub(crate) file: FilePath,
    /// Its length when it was listed: a shorter file is an error, what is behind it is not read.
    pub(crate) bytes: u64,
}

impl Input {
    pub(crate) fn new(stores: &Store, io: &IoHandle, split: &FileSplit) -> Self {
        Self { stores: stores.clone(), io: io.clone(), file: split.file.clone(), bytes: split.bytes }
    }

    /// What is known of it besides its name.
    pub(crate) fn info(&self) -> Result<FileInfo> {
        let modified_ms = match &self.file {
            FilePath::Local(path) => local_modified_ms(path, fs::metadata(path))?,
            FilePath::Object { store, key } => {
                let objects = open_store(&self.stores, &self.io, store)?;
                self.io.block_on(object_modified_ms(&*objects, &self.file, &object_key(key)?))?
            }
        };
        Ok(FileInfo { bytes: self.bytes, modified_ms })
    }

    /// Its bytes from `from` on, counted without compression.
    pub(crate) fn open(&self, from: u64) -> Result<Reader> {
        let compression = Compression::of(&self.file);
        let inner: Box<dyn Read> = match compression {
            Compression::None => self.open_raw(from)?,
            Compression::Gzip => {
                let raw = BufReader::with_capacity(COMPRESSED_BYTES, self.open_raw(0)?);
                Box::new(flate2::bufread::MultiGzDecoder::new(raw))
            }
            Compression::Zstd => {
                let raw = BufReader::with_capacity(COMPRESSED_BYTES, self.open_raw(0)?);
                Box::new(zstd::stream::read::Decoder::with_buffer(raw)?)
            }
        };
        let mut reader = Reader { inner, file: self.file.clone(), compression };
        if compression != Compression::None && from > 0 {
            reader.skip(from)?;
        }
        Ok(reader)
    }

    fn open_raw(&self, from: u64) -> Result<Box<dyn Read>> {
        let inner: Box<dyn Read> = match &self.file {
            FilePath::Local(path) => {
                let open = || -> io::Result<File> {
                    let mut file = File::open(path)?;
                    file.seek(SeekFrom::Start(from))?;
                    Ok(file)
                };
                Box::new(open().map_err(|error| local_error(path, &error))?)
            }
            FilePath::Object { store, key } => {
                let objects = open_store(&self.stores, &self.io, store)?;
                Box::new(ObjectReader::new(self.io.clone(), objects, &self.file, object_key(key)?, from..self.bytes))
            }
        };
        Ok(Box::new(Listed { inner, file: self.file.clone(), bytes: self.bytes, position: from }))
    }
}

/// An open file, whose errors name it.
pub(crate) struct Reader {
    inner: Box<dyn Read>,
    file: FilePath,
    compression: Compression,
}

impl Reader {
    /// Appends up to `bytes_max` bytes to `buffer`, fewer only at the end of the file. Returns how many.
    pub(crate) fn read(&mut self, buffer: &mut Vec<u8>, bytes_max: usize) -> Result<usize> {
        let start = buffer.len();
        let mut end = start;
        buffer.resize(start + bytes_max, 0);
        while end < buffer.len() {
            match self.inner.read(&mut buffer[end..]) {
                Ok(0) => break,
                Ok(bytes) => end += bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.explain(error)),
            }
        }
        buffer.truncate(end);
        Ok(end - start)
    }

    fn skip(&mut self, bytes: u64) -> Result<()> {
        let skipped = io::copy(&mut (&mut self.inner).take(bytes), &mut io::sink());
        match skipped.map_err(|error| self.explain(error))? {
            skipped if skipped == bytes => Ok(()),
            skipped => Err(Error::input(format!(
                "{} has {skipped} bytes without compression, but was read up to byte {bytes} before: it was changed",
                self.file
            ))),
        }
    }

    /// Errors of the file are ours already; all others are the decompressor's.
    fn explain(&self, error: io::Error) -> Error {
        let name = match self.compression {
            Compression::None => "file",
            Compression::Gzip => "gzip",
            Compression::Zstd => "zstd",
        };
        error.downcast::<Error>().unwrap_or_else(|error| {
            Error::input(format!("{}: the {name} data is truncated or damaged: {error}", self.file))
        })
    }
}

/// The bytes of a file up to its length when it was listed.
struct Listed {
    inner: Box<dyn Read>,
    file: FilePath,
    bytes: u64,
    position: u64,
}

impl Read for Listed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let bytes_max = self.bytes.saturating_sub(self.position).min(buffer.len() as u64) as usize;
        if bytes_max == 0 {
            return Ok(0);
        }
        let bytes = match self.inner.read(&mut buffer[..bytes_max]) {
            Ok(0) => {
                let Self { file, bytes, position, .. } = self;
                Err(io::Error::other(Error::input(format!(
                    "{file} became shorter: it had {bytes} bytes when it was listed, and ends at {position} now"
                ))))
            }
            Err(error) if error.kind() != io::ErrorKind::Interrupted && !is_ours(&error) => {
                Err(io::Error::other(local_error(&self.file, &error)))
            }
            result => result,
        }?;
        self.position += bytes as u64;
        Ok(bytes)
    }
}

fn is_ours(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<Error>())
}

/// A range of an object, requested piece by piece.
struct ObjectReader {
    io: IoHandle,
    objects: Arc<dyn ObjectStore>,
    file: FilePath,
    key: Path,
    next: u64,
    end: u64,
    current: Bytes,
    ahead: Option<Request>,
}

struct Request {
    bytes: u64,
    answer: JoinHandle<object_store::Result<Bytes>>,
}

impl ObjectReader {
    fn new(io: IoHandle, objects: Arc<dyn ObjectStore>, file: &FilePath, key: Path, range: Range<u64>) -> Self {
        let Range { start: next, end } = range;
        Self { io, objects, file: file.clone(), key, next, end, current: Bytes::new(), ahead: None }
    }

    fn request(&mut self) -> Option<Request> {
        if self.next >= self.end {
            return None;
        }
        let range = self.next..self.end.min(self.next + REQUEST_BYTES);
        let bytes = range.end - range.start;
        self.next = range.end;
        let (objects, key) = (self.objects.clone(), self.key.clone());
        let answer = flott_env::spawn_on(&self.io, async move { objects.get_range(&key, range).await });
        Some(Request { bytes, answer })
    }
}

impl Read for ObjectReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.current.is_empty() {
            let Some(request) = self.ahead.take().or_else(|| self.request()) else { return Ok(0) };
            self.ahead = self.request();
            let answer = self.io.block_on(request.answer).map_err(io::Error::other)?;
            self.current = answer.map_err(|error| io::Error::other(object_error(&self.file, &error)))?;
            if (self.current.len() as u64) < request.bytes {
                // The object ends here now; what is asked for behind it would be an error of another kind.
                self.next = self.end;
                if let Some(request) = self.ahead.take() {
                    request.answer.abort();
                }
            }
        }
        let bytes = self.current.len().min(buffer.len());
        self.current.copy_to_slice(&mut buffer[..bytes]);
        Ok(bytes)
    }
}

impl Drop for ObjectReader {
    fn drop(&mut self) {
        if let Some(request) = &self.ahead {
            request.answer.abort();
        }
    }
}

#[cfg(test)]
mod tests {
    use object_store::memory::InMemory;

    use super::*;

    #[test]
    fn objects_are_read_in_pieces() {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let io = runtime.handle().clone();
        let objects = Arc::new(InMemory::new());
        let key = object_key("a").unwrap();
        let file = FilePath::parse("s3://bucket/a").unwrap();
        let content: Vec<u8> = (0..REQUEST_BYTES as usize * 2 + 10).map(|i| (i / 7) as u8).collect();
        runtime.block_on(objects.put(&key, content.clone().into())).unwrap();
        let read = |from: u64, to: u64| {
            let mut bytes = Vec::new();
            let inner = ObjectReader::new(io.clone(), objects.clone(), &file, key.clone(), from..to);
            let mut listed = Listed { inner: Box::new(inner), file: file.clone(), bytes: to, position: from };
            listed.read_to_end(&mut bytes).map(|_| bytes)
        };
        let length = content.len() as u64;
        for from in [0, 5, REQUEST_BYTES, length] {
            assert!(read(from, length).unwrap() == content[from as usize..], "from {from}");
        }
        let error = read(0, length + 1).unwrap_err();
        assert!(error.to_string().contains("s3://bucket/a became shorter"), "{error}");
        runtime.block_on(objects.delete(&key)).unwrap();
        let error = read(0, length).unwrap_err();
        assert!(error.to_string().contains("s3://bucket/a does not exist"), "{error}");
    }

    #[test]
    fn compression_goes_by_the_name() {
        let of = |name: &str| Compression::of(&FilePath::Local(name.into()));
        assert_eq!(of("/a.b/c.txt.gz"), Compression::Gzip);
        assert_eq!(of("/a.b/c.zst"), Compression::Zstd);
        assert_eq!(of("/a.gz/c"), Compression::None);
    }
}
