//! The JobManager as a process: the machines of `jobmanager/core` with a log, sockets and a clock.
//!
//! ```no_run
//! use flott_core::config::Configuration;
//! use flott_jobmanager::{JobManager, JobManagerOptions};
//! use flott_raft::RedbLog;
//!
//! # async fn run() -> flott_core::Result<()> {
//! let dir = std::path::PathBuf::from("/var/lib/flott");
//! let log = Box::new(RedbLog::open(&dir)?);
//! let config = Configuration::default();
//! let handle = JobManager::start(JobManagerOptions { config, dir, log, listen: true, rest: true }).await?;
//! handle.ended().await
//! # }
//! ```
//!
//! - `job_manager`: puts the parts together, and the handle on the whole
//! - `leader`: the task that owns the cluster's state, and how to talk to it
//! - `rest`: Flink's REST API and `/metrics`
//! - `artifacts` and `elf`: job binaries
//! - `rows`: rows of queries, on their way to clients
//! - `submission`: what is checked of a job first
//! - `bind`: listening sockets
//!
//! It decides nothing: what to do stands in `jobmanager/core`, what is durable in `jobmanager/raft`.

mod artifacts;
mod bind;
mod elf;
mod job_manager;
mod leader;
mod rest;
mod rows;
mod submission;
#[cfg(test)]
mod tests;

pub use job_manager::{JobManager, JobManagerHandle, JobManagerOptions};
