//! Records from files.

mod fetch;
mod input;
mod listing;
mod reader;
mod split;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use flott_checkpoint::Store;
use flott_connector_spi::{Boundedness, DiscoverContext, IoHandle, ReaderContext, Source, SplitReader};
use flott_core::{Data, Error, Result};
use flott_formats::{CsvDecoder, CsvOptions, Decoder, JsonDecoder, OnError, TextDecoder};

use self::reader::FileReader;
pub use self::split::FileSplit;
use self::split::Listed;
pub(crate) use self::split::ranges as split_plan;
use crate::system::FilePath;

/// Whether a file is read.
pub(crate) type Choose = Arc<dyn Fn(&FilePath) -> Result<bool> + Send + Sync>;

/// The files that a path means, of those that are chosen.
pub(crate) fn kept(stores: &Store, io: &IoHandle, path: &str, choose: Option<&Choose>) -> Result<Vec<Listed>> {
    let files = listing::list(stores, io, path)?;
    let Some(choose) = choose else { return Ok(files) };
    let mut kept = Vec::new();
    for listed in files {
        if choose(&listed.file)? {
            kept.push(listed);
        }
    }
    Ok(kept)
}

/// How files are read, apart from their format.
#[derive(Clone, Copy)]
pub(crate) struct ReadOptions {
    on_error: OnError,
    split_bytes: u64,
    whole_files: bool,
    has_info: bool,
    has_header: bool,
    chunk_bytes: usize,
    items_max: usize,
}

/// The records of a file, of all files in a folder and its folders, or of all files that a pattern matches.
///
/// Paths are local paths, or URLs of files and object stores. In patterns, `*` and `?` stand for anything within a
/// name and `**` for any number of folders; a folder that matches is read whole. Names that begin with `.` or `_`
/// are passed over. Files that end in `.gz` and `.zst` are decompressed. Files are listed once, at the start of the
/// job.
///
/// Large files are cut into byte ranges, and several readers read them at once; compressed ones are read from end to
/// end by one. A malformed record fails the job with its file, line and reason, unless [`FileSource::on_error`] says
/// otherwise.
pub struct FileSource<T> {
    path: String,
    options: ReadOptions,
    csv: CsvOptions,
    new_decoder: NewDecoder<T>,
    choose: Option<Choose>,
    stores: Store,
}

/// Makes the decoder of a file.
type NewDecoder<T> = Arc<dyn Fn(&CsvOptions, &FilePath) -> Result<Box<dyn Decoder<T>>> + Send + Sync>;

impl FileSource<String> {
    /// The lines of text files in UTF-8, without their ends.
    pub fn text(path: impl Into<String>) -> Self {
        Self::new(path.into(), false, Arc::new(|_, _| Ok(Box::new(TextDecoder::new()))))
    }
}

impl<T: Data> FileSource<T> {
    /// The rows of CSV files whose first line names the columns; see [`FileSource::has_header`].
    pub fn csv(path: impl Into<String>) -> Self {
        Self::new(path.into(), true, Arc::new(|options, _| Ok(Box::new(CsvDecoder::<T>::new(options)))))
    }

    /// The values of files with one JSON value a line.
    pub fn json(path: impl Into<String>) -> Self {
        Self::new(path.into(), false, Arc::new(|_, _| Ok(Box::new(JsonDecoder::<T>::new()))))
    }

    /// What decoders of your own make of files, one for each. A batch has one item at most, since an item may be many rows.
    pub fn with_decoder(
        path: impl Into<String>,
        new_decoder: impl Fn(&FilePath) -> Result<Box<dyn Decoder<T>>> + Send + Sync + 'static,
    ) -> Self {
        let mut source = Self::new(path.into(), false, Arc::new(move |_, file| new_decoder(file)));
        source.options.items_max = 1;
        source
    }

    /// Reads only those files for which `choose` is true.
    #[must_use]
    pub fn choose(mut self, choose: impl Fn(&FilePath) -> Result<bool> + Send + Sync + 'static) -> Self {
        self.choose = Some(Arc::new(choose));
        self
    }

    fn new(path: String, has_header: bool, new_decoder: NewDecoder<T>) -> Self {
        let options = ReadOptions {
            on_error: OnError::Fail,
            split_bytes: 64 << 20,
            whole_files: false,
            has_info: false,
            has_header,
            chunk_bytes: 1 << 20,
            items_max: usize::MAX,
        };
        Self { path, options, csv: CsvOptions::default(), new_decoder, choose: None, stores: Store::default() }
    }

    /// What becomes of malformed records. The default is to fail.
    #[must_use]
    pub fn on_error(mut self, on_error: OnError) -> Self {
        self.options.on_error = on_error;
        self
    }

    /// The largest range of a file that one reader reads at a time, in bytes. The default is 64 MiB, less if
    /// there would be too few ranges for all readers.
    #[must_use]
    pub fn split_bytes(mut self, bytes: u64) -> Self {
        self.options.split_bytes = bytes;
        self
    }

    /// Whether files are read from end to end instead of in ranges. Fields of CSV files may then contain line
    /// breaks, except in the header.
    #[must_use]
    pub fn whole_files(mut self, yes: bool) -> Self {
        self.options.whole_files = yes;
        self.csv.is_multiline = yes;
        self
    }

    /// Whether decoders are told what is known of their files ([`Decoder::opened`]), which asks the file system or the object
    /// store once more a range.
    #[must_use]
    pub fn file_info(mut self, yes: bool) -> Self {
        self.options.has_info = yes;
        self
    }

    /// Whether the first line of every file is no record. In CSV it names the columns, which are then matched to the
    /// fields of `T` by name; without it they are matched by place.
    #[must_use]
    pub fn has_header(mut self, yes: bool) -> Self {
        self.options.has_header = yes;
        self
    }

    /// What stands between two fields of CSV files. The default is a comma.
    #[must_use]
    pub fn delimiter(mut self, delimiter: u8) -> Self {
        self.csv.delimiter = delimiter;
        self
    }

    /// A text that means the same as an empty field in CSV files, for example `NA`.
    #[must_use]
    pub fn null_literal(mut self, text: impl Into<String>) -> Self {
        self.csv.null_literal = Some(text.into());
        self
    }
}

impl<T: Data> Source for FileSource<T> {
    type Item = T;
    type Split = FileSplit;

    fn boundedness(&self) -> Boundedness {
        Boundedness::Bounded
    }

    fn discover(&self, cx: &DiscoverContext) -> Result<Vec<FileSplit>> {
        if self.options.split_bytes == 0 {
            return Err(Error::input("split_bytes is 0: a split needs at least one byte"));
        }
        let files = kept(&self.stores, &cx.io, &self.path, self.choose.as_ref())?;
        Ok(split::plan(files, self.options.split_bytes, cx.parallelism, self.options.whole_files))
    }

    fn reader(&self, cx: ReaderContext) -> Result<Box<dyn SplitReader<T, FileSplit>>> {
        Ok(Box::new(FileReader::new(self, cx)))
    }
}
