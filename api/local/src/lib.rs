//! The roles that every binary of Flott can play.
//!
//! A job's binary is a client, an embedded cluster, a worker, and all processes of a cluster. Which
//! of them it is, [`Launcher`] finds out from the environment and the arguments; what it does in
//! that role stands in one module each:
//!
//! - [`embedded`]: a whole cluster in this process, the default
//! - [`client`]: submits to a cluster, by REST
//! - [`plan`]: writes the graph for `flott run`
//! - [`check`]: compares the program with a savepoint
//! - [`worker`]: executes subtasks for the TaskManager that started it
//! - [`processes`]: a JobManager or TaskManager

pub mod args;
pub mod check;
pub mod client;
pub mod embedded;
mod launcher;
pub mod plan;
pub mod processes;
pub mod worker;

pub use args::EngineArgs;
pub use launcher::{JobOutcome, Launcher, Recipe};
