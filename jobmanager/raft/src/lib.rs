//! The JobManager's durable facts.
//!
//! What must survive a JobManager is a sequence of [`Fact`]s; everything else is rebuilt from it and from
//! what TaskManagers report. [`FactLog`] is the interface behind which that sequence is replicated: today
//! one node keeps it in a file, later a Raft group will implement the same trait with its own log in the
//! same kind of file, and nothing else will change. That is why `append` returns only when the fact can no
//! longer be lost, and why the caller acts on a fact only after that.
//!
//! ```
//! use flott_control::Fact;
//! use flott_core::ids::JobId;
//! use flott_raft::{FactLog, MemoryLog};
//!
//! # fn main() -> flott_core::Result<()> {
//! let mut log = MemoryLog::default();
//! let fact = Fact::GenerationStarted { job: JobId([1; 16]), generation: 1 };
//! log.append(&fact)?;
//! assert_eq!(log.replay()?, [fact]);
//! # Ok(())
//! # }
//! ```
//!
//! - [`RedbLog`]: a file; survives the process and the machine's power supply
//! - [`MemoryLog`]: for embedded clusters, which end with their process
//! - `entry`: the form of one fact in a file

mod entry;
mod memory_log;
mod redb_log;

pub use memory_log::MemoryLog;
pub use redb_log::{FILE_NAME, RedbLog};

use flott_control::Fact;
use flott_core::Result;

/// A sequence of facts that only grows.
pub trait FactLog: Send {
    /// Makes `fact` durable as the last one. After an error it may or may not be in the log, so the caller
    /// must not go on with this log.
    fn append(&mut self, fact: &Fact) -> Result<()>;

    /// All facts, in the order in which they were appended. Fails rather than leaving one out.
    fn replay(&mut self) -> Result<Vec<Fact>>;
}
