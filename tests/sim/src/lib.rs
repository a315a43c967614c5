//! A seeded simulator of a cluster: the real machines of the JobManager among model TaskManagers,
//! workers and tasks, over a network that delays and breaks, with processes that die.
//!
//! One seed is one run: a job of numbered records, a schedule of faults, and every delay. An oracle
//! checks that facts of the log follow each other as they must, that nothing becomes visible before
//! its checkpoint is durable, and that at the end every record is visible exactly once.
//!
//! ```
//! let first = flott_sim::run(7, false).unwrap();
//! let second = flott_sim::run(7, false).unwrap();
//! assert_eq!(first.trace_hash, second.trace_hash);
//! ```
//!
//! - `random`: the only source of chance
//! - `scenario`: what a seed stands for
//! - `task`: model sources and sinks
//! - `world`: time, processes, connections, the log and the store
//! - `oracle`: what must hold

mod oracle;
mod random;
mod scenario;
mod task;
mod trace;
mod world;

pub use world::{Outcome, run};
