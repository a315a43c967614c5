//! Folders of a sink that are complete, or written anew: what happens to all files of a folder at once.
//!
//! Writers know only their own parts. Whoever completes folders learns the names of all parts from a [`PartLog`] when they
//! are begun, makes them visible itself, which may be done twice, and then says that the folder is complete.

use std::sync::{Arc, Mutex, PoisonError};

use flott_checkpoint::Store;
use flott_connector_spi::SinkContext;
use flott_core::Result;
use serde::{Deserialize, Serialize};

use crate::sink::part::{ClosedPart, Folder, PartNames, UNKNOWN_BYTES};
use crate::sink::{bucket, open_folder};
use crate::system::FilePath;

/// A part that was begun.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BegunPart {
    /// The folder below the sink's that it is in.
    pub folder: String,
    /// How it is called when it is closed, and when it is visible.
    staged: FilePath,
    target: FilePath,
}

/// The parts that the writers of a sink have begun.
#[derive(Clone, Debug, Default)]
pub struct PartLog(Arc<Mutex<Vec<BegunPart>>>);

impl PartLog {
    /// Those that were begun since the last call.
    pub fn take(&self) -> Vec<BegunPart> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn add(&self, folder: &str, (staged, target): (FilePath, FilePath)) {
        let part = BegunPart { folder: folder.to_owned(), staged, target };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(part);
    }
}

/// Completes folders of a sink. All of it is repeatable.
pub struct Folders {
    folder: Box<dyn Folder>,
    names: PartNames,
}

impl Folders {
    /// Those of the sink that writes to `path`.
    pub fn open(path: &str, cx: &SinkContext) -> Result<Self> {
        let folder = open_folder(&Store::default(), path, cx)?;
        Ok(Self { folder, names: PartNames::new("part", "", cx) })
    }

    /// Makes parts visible that are closed and durable.
    pub fn publish(&mut self, parts: &[BegunPart]) -> Result<()> {
        let closed = |part: &BegunPart| ClosedPart::new(part.staged.clone(), part.target.clone(), UNKNOWN_BYTES);
        let closed: Vec<ClosedPart> = parts.iter().map(closed).collect();
        self.folder.commit(&closed, &self.names)
    }

    /// Removes all visible files in and below a folder, but those that this job wrote.
    pub fn clear(&mut self, folder: &str) -> Result<()> {
        bucket::check(folder)?;
        self.folder.clear(folder, &self.names)
    }

    /// Writes an empty file into a folder.
    pub fn touch(&mut self, folder: &str, name: &str) -> Result<()> {
        bucket::check(folder)?;
        self.folder.touch(folder, name)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use flott_connector_spi::{Sink, SinkContext};
    use flott_core::Batch;
    use flott_core::ids::JobId;

    use super::*;
    use crate::FileSink;

    fn context(io: &tokio::runtime::Handle, job: u8) -> SinkContext {
        SinkContext {
            io: io.clone(),
            job: JobId([job; 16]),
            generation: 1,
            subtask: 0,
            parallelism: 1,
            outlet: Default::default(),
        }
    }

    #[test]
    fn folders_are_published_completed_and_cleared() {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let place = tempfile::tempdir().unwrap();
        let path = place.path().to_str().unwrap();
        let visible = |folder: &str| {
            let names = fs::read_dir(place.path().join(folder)).unwrap().map(|entry| entry.unwrap().file_name());
            names.filter(|name| !name.to_string_lossy().starts_with('.')).count()
        };
        let log = PartLog::default();
        let sink = FileSink::text(path).bucket_by(|number: &u32| format!("k={}", number % 2)).log_parts(log.clone());
        let cx = context(runtime.handle(), 7);
        let mut writer = sink.writer(cx.clone(), Vec::new()).unwrap();
        writer.write(&mut Batch::from_rows(vec![1, 2, 3])).unwrap();
        let begun = log.take();
        assert_eq!(begun.iter().map(|part| part.folder.as_str()).collect::<Vec<_>>(), ["k=1", "k=0"]);
        assert_eq!(visible("k=1"), 0);
        let committables = writer.prepare(false).unwrap();
        let mut folders = Folders::open(path, &cx).unwrap();
        folders.publish(&begun).unwrap();
        folders.touch("k=1", "_SUCCESS").unwrap();
        assert_eq!((visible("k=1"), visible("k=0")), (2, 1));
        // Whoever comes second finds it done.
        writer.commit(1, committables).unwrap();
        folders.publish(&begun).unwrap();
        folders.clear("").unwrap();
        assert_eq!((visible("k=1"), visible("k=0")), (2, 1));
        let mut others = Folders::open(path, &context(runtime.handle(), 8)).unwrap();
        others.clear("k=1").unwrap();
        assert_eq!((visible("k=1"), visible("k=0")), (1, 1), "only what is hidden from readers stays");
        fs::remove_file(place.path().join("k=1/_SUCCESS")).unwrap();
        others.publish(&begun).unwrap();
        assert_eq!(visible("k=1"), 0, "what was moved away after it was visible is no loss");
        assert!(others.clear("../elsewhere").is_err());
    }
}
