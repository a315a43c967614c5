//! A seeded simulator of a cluster: the real machines of the JobManager among model TaskManagers,
//! workers and tasks, over a network that delays and breaks, with processes that die.
//!
//! One seed is one run: one or two lines of jobs, each with numbered records of its own, a schedule of requests and faults,
//! and every delay. Two lines compete for slots. Jobs are rescaled, stopped (drained or not) and continued by others, and
//! upgraded to versions that work or do not, by the machine of `flott upgrade`, while processes die, stand still or lose each
//! other, and answers get lost. Where a client ends or dies, its user goes on as it has told. An oracle checks that
//!
//! - facts of the log follow each other as they must, and what can be seen of a job is what the log says;
//! - nothing becomes visible before its checkpoint is durable, and at the end every record is visible exactly once;
//! - the state of every key goes on where it was, and what a worker kept in memory is what the files say;
//! - a checkpoint is made of what the current execution said, and a restore finds every file;
//! - every request is answered once, and no slot is given twice;
//! - no two jobs of a line are there at once, and what the client of an upgrade says at its end is true;
//! - each line comes to its end soon after the last fault.
//!
//! ```
//! let first = flott_sim::run(7, false).unwrap();
//! let second = flott_sim::run(7, false).unwrap();
//! assert_eq!(first.trace_hash, second.trace_hash);
//! ```
//!
//! - `random`: the only source of chance
//! - `scenario`: what a seed stands for; versions of a job
//! - `task`: model sources and sinks; `state`: what sinks count
//! - `world`: time, processes, connections, the log and the store
//! - `oracle`: what must hold

mod oracle;
mod random;
mod scenario;
mod state;
mod task;
mod trace;
mod world;

pub use world::{Outcome, run};
