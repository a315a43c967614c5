//! Files of a file system or an object store as sources and sinks, and the standard streams as a sink.
//!
//! ```
//! use flott_connector_spi::{DiscoverContext, Source};
//! use flott_filesystem::FileSource;
//!
//! let folder = tempfile::tempdir().unwrap();
//! std::fs::write(folder.path().join("a.txt"), "one\ntwo\n").unwrap();
//! std::fs::write(folder.path().join("_hidden.txt"), "three\n").unwrap();
//!
//! let runtime = tokio::runtime::Builder::new_multi_thread().build().unwrap();
//! let source = FileSource::text(format!("{}/*.txt", folder.path().display()));
//! let splits = source.discover(&DiscoverContext { io: runtime.handle().clone(), parallelism: 2 }).unwrap();
//! assert_eq!(splits.len(), 1);
//! ```
//!
//! A source lists its files once, cuts large ones into byte ranges ([`FileSplit`]), and reads each range on a thread
//! of the I/O runtime that hands chunks of whole lines to the reader over a bounded channel.
//!
//! A sink writes *parts*: hidden files that become visible when the checkpoint is complete that they belong to.
//! Names that begin with `.` or `_` are hidden, for our own source too.
//!
//! - [`FileSource`]: text, CSV, JSON lines; plain, gzip, zstd
//! - [`BlockSource`]: formats that are read in pieces of their own, such as Parquet
//! - [`FileSink`]: formats of both kinds, exactly once
//! - [`PrintSink`]: standard output or error

mod blocks;
mod print;
mod sink;
mod source;
mod system;

pub use blocks::{BlockSource, BlockSplit};
pub use print::PrintSink;
pub use sink::{BegunPart, FileSink, Folders, PartLog, RollingPolicy};
pub use source::{FileSource, FileSplit};
pub use system::FilePath;
