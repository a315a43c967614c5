//! Records into files, each record visible exactly once.

mod bucket;
mod folders;
mod local;
mod object;
mod part;
#[cfg(test)]
mod tests;
mod writer;

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use flott_checkpoint::Store;
use flott_connector_spi::{Sink, SinkContext, SinkWriter};
use flott_core::{Data, Error, Result};
use flott_formats::{CsvEncoder, Encoder, JsonEncoder, TextEncoder};

pub use self::folders::{BegunPart, Folders, PartLog};
use self::local::LocalFolder;
use self::object::ObjectFolder;
use self::part::{Folder, PartNames};
use self::writer::FileWriter;
use crate::system::{FilePath, is_hidden, open_store};

/// When a part is closed and the next one begun. All parts are closed at every checkpoint too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RollingPolicy {
    /// How many bytes a part has at most, up to one batch of records.
    pub bytes_max: u64,
    /// For how long a part is written.
    pub duration_max: Duration,
    /// For how long a part stays open to which nothing is written.
    pub inactivity_max: Duration,
}

impl Default for RollingPolicy {
    fn default() -> Self {
        let minute = Duration::from_secs(60);
        Self { bytes_max: 128 << 20, duration_max: minute, inactivity_max: minute }
    }
}

/// Writes files below a folder, of the file system or of an object store.
///
/// Records go to *parts*, named `part-{subtask}-{counter}-g{generation}-{job}` and a suffix. A part is a hidden file
/// at first: `.….inprogress` while it is written, `.….pending` from the checkpoint that closes it on until that
/// checkpoint is complete; then it gets its name. So whoever reads the folder and passes over names that begin with
/// `.` or `_` sees every record once, and never half a part. In object stores, parts wait below `_staging/` for the
/// checkpoint.
///
/// No name is used twice, by no restart of the job and by no other job: existing parts are never overwritten. After
/// a crash, a subtask that is started again removes the `.inprogress` files that it had left, which no checkpoint can
/// refer to. Pending parts of checkpoints that were never completed stay, hidden, since older savepoints may refer
/// to them.
///
/// Without checkpoints, parts become visible when the job ends.
pub struct FileSink<T> {
    path: String,
    prefix: String,
    suffix: String,
    delimiter: u8,
    has_header: bool,
    new_encoder: NewEncoder<T>,
    buckets: Buckets<T>,
    rolling: RollingPolicy,
    log: Option<PartLog>,
    is_held: bool,
    stores: Store,
}

/// Makes an encoder for a delimiter, and for a header or not.
type NewEncoder<T> = Arc<dyn Fn(u8, bool) -> Box<dyn Encoder<T>> + Send + Sync>;

/// Into which folders below the sink's records go.
pub(crate) enum Buckets<T> {
    /// Into its own.
    None,
    /// Into the folder that this names.
    Named(Arc<dyn Fn(&T) -> String + Send + Sync>),
    /// Parts of each item into the folders that stand before them.
    Parts(Arc<Split<T>>),
}

/// Takes an item apart.
type Split<T> = dyn Fn(T) -> Result<Vec<(String, T)>> + Send + Sync;

impl<T> Clone for Buckets<T> {
    fn clone(&self) -> Self {
        match self {
            Self::None => Self::None,
            Self::Named(name) => Self::Named(Arc::clone(name)),
            Self::Parts(split) => Self::Parts(Arc::clone(split)),
        }
    }
}

impl<T: Data + Display> FileSink<T> {
    /// Every record as a line, as `Display` shows it.
    pub fn text(path: impl Into<String>) -> Self {
        Self::new(path.into(), ".txt", Arc::new(|_, _| Box::new(TextEncoder)))
    }
}

impl<T: Data> FileSink<T> {
    /// Every record as a row of CSV; the first line of every part names the columns.
    pub fn csv(path: impl Into<String>) -> Self {
        let new_encoder: NewEncoder<T> =
            Arc::new(|delimiter, has_header| Box::new(CsvEncoder::new(delimiter, has_header)));
        Self::new(path.into(), ".csv", new_encoder)
    }

    /// Every record as a line of JSON.
    pub fn json(path: impl Into<String>) -> Self {
        Self::new(path.into(), ".json", Arc::new(|_, _| Box::new(JsonEncoder)))
    }

    /// What encoders of your own make of records. Names of parts have no ending unless [`FileSink::suffix`] gives them one.
    pub fn with_encoder(
        path: impl Into<String>,
        new_encoder: impl Fn() -> Box<dyn Encoder<T>> + Send + Sync + 'static,
    ) -> Self {
        Self::new(path.into(), "", Arc::new(move |_, _| new_encoder()))
    }

    fn new(path: String, suffix: &str, new_encoder: NewEncoder<T>) -> Self {
        Self {
            path,
            prefix: "part".to_owned(),
            suffix: suffix.to_owned(),
            delimiter: b',',
            has_header: true,
            new_encoder,
            buckets: Buckets::None,
            rolling: RollingPolicy::default(),
            log: None,
            is_held: false,
            stores: Store::default(),
        }
    }

    /// Puts every record into the folder below the sink's that `bucket` names, for example `day=2013-01-01`. A name
    /// may have several levels, separated by `/`; the empty name is the sink's folder itself. Names that lead out of
    /// the folder, or that readers would pass over, fail the job.
    #[must_use]
    pub fn bucket_by(mut self, bucket: impl Fn(&T) -> String + Send + Sync + 'static) -> Self {
        self.buckets = Buckets::Named(Arc::new(bucket));
        self
    }

    /// Takes every item apart: each part of it goes into the folder below the sink's that stands before it, which is named as
    /// with [`FileSink::bucket_by`].
    #[must_use]
    pub fn split_by(mut self, split: impl Fn(T) -> Result<Vec<(String, T)>> + Send + Sync + 'static) -> Self {
        self.buckets = Buckets::Parts(Arc::new(split));
        self
    }

    /// Notes the parts that its writers begin in `log`.
    #[must_use]
    pub fn log_parts(mut self, log: PartLog) -> Self {
        self.log = Some(log);
        self
    }

    /// Leaves it to whoever reads the log to make parts visible: see [`Folders`].
    #[must_use]
    pub fn held(mut self, yes: bool) -> Self {
        self.is_held = yes;
        self
    }

    /// When a part is closed and the next one begun.
    #[must_use]
    pub fn rolling(mut self, policy: RollingPolicy) -> Self {
        self.rolling = policy;
        self
    }

    /// What names of parts begin with. The default is `part`.
    #[must_use]
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// What names of parts end with. The default is `.txt`, `.csv` or `.json`.
    #[must_use]
    pub fn suffix(mut self, suffix: impl Into<String>) -> Self {
        self.suffix = suffix.into();
        self
    }

    /// What stands between two fields in CSV. The default is a comma.
    #[must_use]
    pub fn delimiter(mut self, delimiter: u8) -> Self {
        self.delimiter = delimiter;
        self
    }

    /// Whether the first line of every CSV part names the columns. The default is yes.
    #[must_use]
    pub fn has_header(mut self, yes: bool) -> Self {
        self.has_header = yes;
        self
    }

    fn new_writer(&self, folder: Box<dyn Folder>, names: PartNames) -> FileWriter<T> {
        let (new_encoder, delimiter, has_header) = (Arc::clone(&self.new_encoder), self.delimiter, self.has_header);
        let new_encoder = Box::new(move || new_encoder(delimiter, has_header));
        let writer = FileWriter::new(folder, names, new_encoder, self.buckets.clone(), self.rolling);
        writer.with_log(self.log.clone(), self.is_held)
    }

    fn names(&self, cx: &SinkContext) -> Result<PartNames> {
        let Self { prefix, suffix, .. } = self;
        if prefix.is_empty() || is_hidden(prefix) || format!("{prefix}{suffix}").contains(['/', '\0']) {
            return Err(Error::input(format!(
                "parts of the file sink cannot be called '{prefix}…{suffix}': the prefix is not empty, does not begin with '.' or '_', and there is no '/' in either"
            )));
        }
        Ok(PartNames::new(prefix, suffix, cx))
    }
}

impl<T: Data> Sink<T> for FileSink<T> {
    fn writer(&self, cx: SinkContext, _restored: Vec<Vec<u8>>) -> Result<Box<dyn SinkWriter<T>>> {
        let names = self.names(&cx)?;
        if let FilePath::Local(path) = FilePath::parse(&self.path)?
            && cx.generation > 1
        {
            LocalFolder::new(path.into()).remove_abandoned(&names)?;
        }
        let folder = open_folder(&self.stores, &self.path, &cx)?;
        Ok(Box::new(self.new_writer(folder, names)))
    }
}

/// The place of the parts of a sink.
fn open_folder(stores: &Store, path: &str, cx: &SinkContext) -> Result<Box<dyn Folder>> {
    Ok(match FilePath::parse(path)? {
        FilePath::Local(path) => Box::new(LocalFolder::new(path.into())),
        FilePath::Object { store, key } => {
            let objects = open_store(stores, &cx.io, &store)?;
            Box::new(ObjectFolder::new(cx.io.clone(), objects, store, &key, cx))
        }
    })
}
