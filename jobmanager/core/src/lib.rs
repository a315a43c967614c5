//! The JobManager's decisions as pure state machines.
//!
//! [`Cluster::step`] takes the time and an [`Event`] and returns the [`Command`]s to carry out, in
//! order. There is no tokio here, no clock, no I/O, no randomness, no iteration over hash maps: the
//! same events give the same commands, so the simulator can replay any run from its seed.
//!
//! ```
//! use flott_core::config::Configuration;
//! use flott_core::ids::JobId;
//! use flott_jobmanager_core::{Cluster, Command, Event, Request};
//!
//! let mut cluster = Cluster::new(Configuration::default());
//! cluster.step(0, Event::Recovered);
//! let cancel = Request::Cancel { job: JobId([7; 16]) };
//! let commands = cluster.step(1, Event::Request { id: 1, request: cancel });
//! assert!(matches!(&commands[..], [Command::Reply { id: 1, reply: Err(error) }] if error.message.contains("there is no job")));
//! ```
//!
//! - `cluster`: routes events; `sessions` and `resources` know who is connected and what is free
//! - `submission`, `settings`: what a job asks for, checked
//! - `job`: a job's life from phase to phase; `execution`, `worker`: what runs it; `restart`: whether it goes on
//! - `rescale`: which parallelism a job can have; `scheduler`: which TaskManager gives which slot
//! - `splits`: which subtask reads what
//! - `coordinator`, `pending`: checkpoints; `retention`: which of their files are still needed; `orphans`: which nobody knows of
//! - [`view`]: what can be seen

mod api;
mod cluster;
mod coordinator;
mod execution;
mod job;
mod orphans;
mod pending;
mod rescale;
mod resources;
mod restart;
mod retention;
mod scheduler;
mod sessions;
mod settings;
mod splits;
mod submission;
#[cfg(test)]
mod testing;
pub mod view;
mod worker;

pub use api::{Checkpoint, Command, Event, Parallelism, Reply, Request, RequestId, SessionId};
pub use cluster::Cluster;
pub use resources::platform;
