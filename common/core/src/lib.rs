//! The vocabulary of Flott: ids, time, batches, key groups, errors, configuration.
//!
//! Everything here is pure: no tokio, no I/O, no clock, no randomness. Every other crate depends
//! on this one and it depends on none of them.
//!
//! ```
//! use flott_core::{hash::stable_hash, key_group};
//! let hash = stable_hash(&"user-17");
//! let group = key_group::group_of(hash, 128);
//! assert!(key_group::range_of(2, 0, 128).contains(group) || key_group::range_of(2, 1, 128).contains(group));
//! ```
//!
//! - [`ids`]: who is who: jobs, operators, subtasks, generations
//! - [`time`]: event time in milliseconds, and durations as Flink writes them
//! - [`batch`]: what travels on an edge
//! - [`hash`] and [`key_group`]: from a key to the subtask that owns it
//! - [`codec`]: the binary form of records and state
//! - [`config`]: Flink's option keys, checked
//! - [`memory`]: sizes as Flink writes them
//! - [`magic`]: the first bytes of our files, and the version in them
//! - [`error`]: one error type that crosses processes
//! - [`status`]: job and task states with Flink's names

pub mod batch;
pub mod codec;
pub mod config;
pub mod error;
pub mod hash;
pub mod ids;
pub mod key_group;
pub mod magic;
pub mod memory;
pub mod status;
pub mod time;

pub use batch::{Batch, Data};
pub use error::{Error, ErrorKind, Result, ResultExt};
