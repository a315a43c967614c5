//! Rows from files that are read in pieces of their own, such as row groups.

mod bytes;
mod reader;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use flott_checkpoint::Store;
use flott_connector_spi::{Boundedness, DiscoverContext, ReaderContext, Source, SplitReader};
use flott_core::{Data, Error, Result};
use flott_formats::{BlockFormat, Position};
use serde::{Deserialize, Serialize};

use self::reader::BlockFileReader;
use crate::source::{Choose, kept, split_plan};
use crate::system::FilePath;

/// The rows of a file, of all files in a folder and its folders, or of all files that a pattern matches, in a format
/// that is read in pieces. See [`FileSource`](crate::FileSource) for which files these are.
///
/// Large files are cut into byte ranges; each piece is read by the reader of the range that it belongs to.
pub struct BlockSource<T> {
    path: String,
    new_format: NewFormat<T>,
    choose: Option<Choose>,
    split_bytes: u64,
    stores: Store,
}

/// Makes the format of a file.
type NewFormat<T> = Arc<dyn Fn(&FilePath) -> Result<Box<dyn BlockFormat<T>>> + Send + Sync>;

impl<T: Data> BlockSource<T> {
    /// Reads files of a format, which may be another one for each file.
    pub fn new(
        path: impl Into<String>,
        new_format: impl Fn(&FilePath) -> Result<Box<dyn BlockFormat<T>>> + Send + Sync + 'static,
    ) -> Self {
        Self {
            path: path.into(),
            new_format: Arc::new(new_format),
            choose: None,
            split_bytes: 128 << 20,
            stores: Store::default(),
        }
    }

    /// Reads only those files for which `choose` is true.
    #[must_use]
    pub fn choose(mut self, choose: impl Fn(&FilePath) -> Result<bool> + Send + Sync + 'static) -> Self {
        self.choose = Some(Arc::new(choose));
        self
    }

    /// The largest range of a file that one reader reads at a time, in bytes. The default is 128 MiB, less if there would
    /// be too few ranges for all readers.
    #[must_use]
    pub fn split_bytes(mut self, bytes: u64) -> Self {
        self.split_bytes = bytes;
        self
    }
}

/// A part of a file that one reader reads: the pieces that belong to a byte range.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockSplit {
    file: FilePath,
    /// The file's length when it was listed.
    bytes: u64,
    start: u64,
    end: u64,
    /// Behind the last row that was read; `None` before the first.
    position: Option<Position>,
}

impl<T: Data> Source for BlockSource<T> {
    type Item = T;
    type Split = BlockSplit;

    fn boundedness(&self) -> Boundedness {
        Boundedness::Bounded
    }

    fn discover(&self, cx: &DiscoverContext) -> Result<Vec<BlockSplit>> {
        if self.split_bytes == 0 {
            return Err(Error::input("split_bytes is 0: a split needs at least one byte"));
        }
        let files = kept(&self.stores, &cx.io, &self.path, self.choose.as_ref())?;
        let ranges = split_plan(files, self.split_bytes, cx.parallelism);
        Ok(ranges
            .into_iter()
            .map(|(file, bytes, range)| BlockSplit { file, bytes, start: range.start, end: range.end, position: None })
            .collect())
    }

    fn reader(&self, cx: ReaderContext) -> Result<Box<dyn SplitReader<T, BlockSplit>>> {
        Ok(Box::new(BlockFileReader::new(cx, self.stores.clone(), Arc::clone(&self.new_format))))
    }
}
