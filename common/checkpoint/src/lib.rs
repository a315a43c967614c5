//! What a checkpoint is made of, and where it is kept.
//!
//! - [`manifest`]: the description of a completed checkpoint or savepoint, its `_metadata` file
//! - [`store`]: `file://` and `s3://` folders behind one small interface, with lengths and hashes checked
//! - [`assign`]: which state goes to which subtask, at any parallelism
//!
//! Keyed state lies in files that tasks write; operator state (source positions, files to commit)
//! is small and lies in the manifest itself. A checkpoint exists when the JobManager's log says so:
//! a manifest alone proves nothing.

pub mod assign;
pub mod manifest;
pub mod store;

pub use assign::{KeyedSource, TaskRestore};
pub use manifest::{
    FileHandle, KeyedState, Manifest, OperatorState, Redistribution, RunHandle, SubtaskSnapshot, VertexSnapshot,
};
pub use store::Store;
