//! What the processes of a cluster say to each other, as plain values.
//!
//! A TaskManager and each of its workers opens one ordered session to the JobManager. [`Up`] flows
//! to the JobManager, [`Down`] flows back. Within a session nothing is reordered, and the protocol
//! builds on that: a split assigned before a checkpoint is triggered arrives before its barrier.
//!
//! Every message about an execution carries its job and generation; the receiver drops what belongs
//! to another one. The crate `flott-proto` carries these values over gRPC, an embedded cluster over
//! a channel; the pure machines in `jobmanager/core` see nothing else. [`upgrade`] is what a client asks for over REST.

mod deployment;
mod facts;
mod messages;
mod metrics;
pub mod upgrade;

pub use deployment::{ClaimMode, JobDeployment, JobSpec, TaskDeployment, WorkerAddress};
pub use facts::{CompletedCheckpoint, Fact, JobEnd};
pub use messages::{CheckpointKind, Down, ExecutionId, TaskManagerInfo, Up};
pub use metrics::{StateMetrics, TaskMetrics};

/// The version of the protocol between processes. A process of another version is refused.
pub const PROTOCOL_VERSION: u32 = 4;

/// The reason of a [`Up::WorkerExited`] that the JobManager asked for.
pub const WORKER_STOPPED: &str = "stopped";
