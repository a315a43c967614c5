//! Files as bytes that can be read at any place.

use std::fs::File;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use flott_checkpoint::Store;
use flott_connector_spi::IoHandle;
use flott_core::{Error, Result};
use flott_formats::FileBytes;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};

use crate::system::{
    FilePath, local_error, local_modified_ms, object_error, object_key, object_modified_ms, open_store,
};

/// Opens a file that had so many bytes when it was listed.
pub(crate) fn open(stores: &Store, io: &IoHandle, file: &FilePath, bytes: u64) -> Result<Arc<dyn FileBytes>> {
    let name = file.to_string();
    Ok(match file {
        FilePath::Local(path) => {
            let opened = File::open(path).map_err(|error| local_error(path, &error))?;
            Arc::new(LocalBytes { name, file: opened, bytes })
        }
        FilePath::Object { store, key } => {
            let objects = open_store(stores, io, store)?;
            Arc::new(ObjectBytes { io: io.clone(), objects, key: object_key(key)?, name, bytes })
        }
    })
}

fn became_shorter(name: &str, bytes: u64) -> Error {
    Error::input(format!("{name} became shorter: it had {bytes} bytes when it was listed"))
}

struct LocalBytes {
    name: String,
    file: File,
    bytes: u64,
}

impl FileBytes for LocalBytes {
    fn name(&self) -> &str {
        &self.name
    }

    fn length(&self) -> u64 {
        self.bytes
    }

    fn modified_ms(&self) -> Result<i64> {
        local_modified_ms(&self.name, self.file.metadata())
    }

    fn read_at(&self, range: Range<u64>) -> Result<Bytes> {
        let mut bytes = vec![0; length_of(&self.name, &range, self.bytes)?];
        match read_exact_at(&self.file, &mut bytes, range.start) {
            Ok(()) => Ok(bytes.into()),
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
                Err(became_shorter(&self.name, self.bytes))
            }
            Err(error) => Err(local_error(&self.name, &error)),
        }
    }
}

#[cfg(unix)]
fn read_exact_at(file: &File, bytes: &mut [u8], offset: u64) -> std::io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, offset)
}

#[cfg(not(unix))]
fn read_exact_at(mut file: &File, bytes: &mut [u8], offset: u64) -> std::io::Result<()> {
    use std::io::{Read, Seek, SeekFrom};
    file.seek(SeekFrom::Start(offset))?;
    file.read_exact(bytes)
}

/// The length of a range, which a damaged file may say anything of.
fn length_of(name: &str, range: &Range<u64>, bytes: u64) -> Result<usize> {
    if range.start > range.end || range.end > bytes {
        return Err(Error::input(format!(
            "{name} refers to bytes {} to {} of itself, and has {bytes}: it is truncated or damaged",
            range.start, range.end
        )));
    }
    usize::try_from(range.end - range.start)
        .map_err(|_| Error::input(format!("{name}: a piece of it is larger than this machine's memory")))
}

struct ObjectBytes {
    io: IoHandle,
    objects: Arc<dyn ObjectStore>,
    key: Path,
    name: String,
    bytes: u64,
}

impl FileBytes for ObjectBytes {
    fn name(&self) -> &str {
        &self.name
    }

    fn length(&self) -> u64 {
        self.bytes
    }

    fn modified_ms(&self) -> Result<i64> {
        self.io.block_on(object_modified_ms(&*self.objects, &self.name, &self.key))
    }

    fn read_at(&self, range: Range<u64>) -> Result<Bytes> {
        let length = length_of(&self.name, &range, self.bytes)?;
        if length == 0 {
            return Ok(Bytes::new());
        }
        let read = self.io.block_on(self.objects.get_range(&self.key, range));
        let read = read.map_err(|error| object_error(&self.name, &error))?;
        if read.len() == length { Ok(read) } else { Err(became_shorter(&self.name, self.bytes)) }
    }

    fn read_ahead(&self, ranges: &[Range<u64>]) -> Result<Option<Vec<Bytes>>> {
        for range in ranges {
            length_of(&self.name, range, self.bytes)?;
        }
        let read = self.io.block_on(self.objects.get_ranges(&self.key, ranges));
        read.map(Some).map_err(|error| object_error(&self.name, &error))
    }
}
