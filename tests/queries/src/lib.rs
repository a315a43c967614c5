//! SQL jobs that run step by step on one thread, so that a seed decides what happens to them and when.
//!
//! What runs is what a worker runs: the compiled plan's [`Program`](flott_operators::Program), its subtasks with their gates
//! and channels, barriers, snapshots as files of a store, manifests, and the way back from them. What is played by this
//! crate is what drives them: the slots' threads ([`execution`] steps subtasks in an order of chance), the clock, and the
//! JobManager, which triggers checkpoints, notes what they are made of, hands out splits, and starts the next execution.
//!
//! Tables hand out a few rows at a time ([`tables`]), so a barrier can fall between any two rows of an input, however
//! small. A [`story`] is what happens to a job:
//!
//! - a *stop* takes a savepoint, whose tables are all that the next execution has
//! - a *crash* loses every subtask, maybe in the middle of a checkpoint: the next execution has the files of the last one
//! - a *kill* loses some subtasks: the others go back in place to the last checkpoint and give their state away
//! - a checkpoint is *given up* when some subtasks have taken their part of it
//! - the news that a checkpoint is complete may get lost with those whom it was for
//!
//! Each can change the parallelism. Other processes, sockets and the JobManager itself are not here; tests with real ones
//! are in `tests/e2e`.
//!
//! - [`script`]: from a script to its jobs
//! - [`execution`]: one execution; [`channels`]: how its subtasks are connected; [`pending`]: a checkpoint on its way
//! - [`results`]: the rows that the job has committed, and what is left when its changes are applied

pub mod bed;
mod channels;
pub mod execution;
pub mod pending;
pub mod results;
pub mod script;
pub mod story;
pub mod tables;
