//! The graphs of a job: what the user wrote, and what is executed.
//!
//! - [`StreamGraph`]: one node an operator, as the API built it
//! - [`JobGraph`]: chains of operators, the unit of deployment; serialised, hashed and submitted
//!
//! Both hold descriptions only. The operators themselves are closures in the job's binary, which
//! every worker builds again; the graph's [hash](JobGraph::hash) proves that it built the same.

mod chaining;
mod job_graph;
mod regions;
mod stream_graph;

pub use job_graph::{JobEdge, JobGraph, JobVertex, OperatorDescriptor, difference};
pub use regions::Regions;
pub use stream_graph::{NodeId, Partitioning, StreamEdge, StreamGraph, StreamNode};
