//! The TaskManager and its workers: where a job's subtasks run.
//!
//! A [`supervisor`] offers slots to the JobManager and starts one [`worker`] a job. A worker
//! builds the chains of its subtasks and gives each of its slots one thread, the [`slot`] executor,
//! which steps the slot's [`subtask`]s. Between network and chain stands the [`gate`]: it merges
//! channels, watermarks and barriers, by the pure machines [`alignment`] and [`watermarks`].
//!
//! A slot's thread never waits for the network: state files are fetched before it starts ([`restore`]) and
//! written behind its back ([`upload`]). It waits for the local disk only when keyed state is larger than its memory.

pub mod alignment;
mod fetcher;
pub mod gate;
mod local_runs;
mod panics;
mod resources;
pub mod restore;
pub mod slot;
pub mod subtask;
pub mod supervisor;
pub mod upload;
pub mod watermarks;
pub mod worker;

pub use supervisor::{TaskManager, TaskManagerOptions, WorkerLauncher};
pub use worker::{WorkerOptions, run_worker};
