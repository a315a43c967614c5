//! Given records.

use std::sync::{Arc, Mutex, PoisonError};

use flott_connector_spi::{Boundedness, DiscoverContext, ReadStatus, ReaderContext, Source, SplitReader};
use flott_core::{Batch, Data, Error, Result};
use serde::{Deserialize, Serialize};

/// The records of a collection, in order. One reader reads them all.
pub struct CollectionSource<T> {
    rows: Rows<T>,
}

/// Shared by the readers. The lock asks less of `T` than sharing it without one would.
type Rows<T> = Arc<Mutex<Vec<T>>>;

impl<T: Data> CollectionSource<T> {
    /// The records of `rows`.
    pub fn new(rows: impl IntoIterator<Item = T>) -> Self {
        Self { rows: Arc::new(Mutex::new(rows.into_iter().collect())) }
    }
}

/// The whole collection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CollectionSplit {
    /// The index of the next record.
    position: u64,
}

impl<T: Data> Source for CollectionSource<T> {
    type Item = T;
    type Split = CollectionSplit;

    fn boundedness(&self) -> Boundedness {
        Boundedness::Bounded
    }

    fn discover(&self, _cx: &DiscoverContext) -> Result<Vec<CollectionSplit>> {
        Ok(vec![CollectionSplit { position: 0 }])
    }

    fn reader(&self, _cx: ReaderContext) -> Result<Box<dyn SplitReader<T, CollectionSplit>>> {
        Ok(Box::new(CollectionReader { rows: self.rows.clone(), split: None }))
    }
}

struct CollectionReader<T> {
    rows: Rows<T>,
    split: Option<CollectionSplit>,
}

impl<T: Data> SplitReader<T, CollectionSplit> for CollectionReader<T> {
    fn add_split(&mut self, split: CollectionSplit) -> Result<()> {
        let length = self.rows.lock().unwrap_or_else(PoisonError::into_inner).len() as u64;
        if split.position > length {
            return Err(Error::input(format!(
                "the collection has {length} records, but {} of it were read before: restore with the collection that the job had",
                split.position
            )));
        }
        self.split = Some(split);
        Ok(())
    }

    fn poll(&mut self, batch: &mut Batch<T>, rows_max: usize) -> Result<ReadStatus> {
        let Some(split) = &mut self.split else { return Ok(ReadStatus::NeedsSplit) };
        let rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        let start = split.position as usize;
        let end = rows.len().min(start.saturating_add(rows_max));
        batch.rows.extend_from_slice(&rows[start..end]);
        split.position = end as u64;
        if end == rows.len() {
            self.split = None;
        }
        Ok(if batch.is_empty() { ReadStatus::NeedsSplit } else { ReadStatus::Progress })
    }

    fn snapshot(&mut self) -> Result<Vec<CollectionSplit>> {
        Ok(self.split.iter().cloned().collect())
    }

    fn active_splits(&self) -> Vec<u32> {
        self.split.iter().map(|_| 0).collect()
    }
}

#[cfg(test)]
mod tests {
    use flott_connector_spi::Waker;
    use flott_connector_spi::conformance::check_source;

    use super::*;

    #[test]
    fn a_collection_survives_restarts_and_rescaling() {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
        for length in [0, 1, 3, 10] {
            let rows: Vec<String> = (0..length).map(|i| format!("row {i}")).collect();
            check_source(&CollectionSource::new(rows.clone()), runtime.handle(), &rows);
        }
    }

    #[test]
    fn another_collection_is_refused() {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
        let io = runtime.handle().clone();
        let cx = ReaderContext { io, waker: Waker::noop(), subtask: 0, parallelism: 1 };
        let mut reader = CollectionSource::new([1, 2]).reader(cx).unwrap();
        let error = reader.add_split(CollectionSplit { position: 3 }).unwrap_err();
        assert!(error.message.starts_with("the collection has 2 records, but 3"), "{error}");
    }
}
