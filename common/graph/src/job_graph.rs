//! The graph as it is executed: vertices are chains of operators.

use std::fmt::Write;

use flott_core::config::Configuration;
use flott_core::ids::{OperatorId, VertexId};
use flott_core::{Error, Result};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::chaining;
use crate::stream_graph::{Partitioning, StreamGraph};

/// One operator of a vertex.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperatorDescriptor {
    /// Names its state.
    pub id: OperatorId,
    /// The user's name for its state, if given.
    pub uid: Option<String>,
    /// What kind of operator it is.
    pub kind: String,
    /// The name shown to users.
    pub name: String,
    /// Its position in the stream graph.
    pub node: usize,
}

/// The error to show when a worker built another graph than was submitted, given both
/// [descriptions](JobGraph::describe).
pub fn difference(submitted: &str, built: &str) -> Error {
    let mut pairs = submitted.lines().zip(built.lines());
    let detail = match pairs.find(|(a, b)| a != b) {
        Some((a, b)) => format!("submitted '{a}', the worker built '{b}'"),
        None => {
            format!("submitted {} lines, the worker built {}", submitted.lines().count(), built.lines().count())
        }
    };
    Error::input(format!(
        "the job's graph is not deterministic: {detail}. Build the graph from the program's arguments alone, not from the clock, the environment or random numbers"
    ))
}

/// A chain of operators that run in one subtask.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobVertex {
    /// The names of its operators, as Flink joins them: `Source: x -> Map -> Filter`.
    pub name: String,
    /// Its operators; the first one receives the vertex's input.
    pub operators: Vec<OperatorDescriptor>,
    /// How many subtasks it has.
    pub parallelism: u32,
    /// How many key groups its keyed state has.
    pub max_parallelism: u32,
    /// Whether its first operator is a source.
    pub is_source: bool,
    /// Whether one of its operators can have one subtask only.
    #[serde(default)]
    pub is_non_parallel: bool,
}

/// A stream between two vertices.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobEdge {
    /// The vertex that sends.
    pub source: VertexId,
    /// The vertex that receives.
    pub target: VertexId,
    /// How records find their subtask.
    pub partitioning: Partitioning,
    /// The edge of the stream graph that it carries.
    pub stream_edge: usize,
}

/// What is submitted: vertices in topological order, and the job's own configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobGraph {
    /// The job's name.
    pub name: String,
    /// The chains, sources first.
    pub vertices: Vec<JobVertex>,
    /// The streams between them.
    pub edges: Vec<JobEdge>,
    /// The configuration that the job was planned with.
    pub config: Configuration,
}

impl JobGraph {
    /// Chains the operators of `graph`. The parallelism of an operator without one is
    /// `parallelism.default`; its key groups are `pipeline.max-parallelism`.
    pub fn from_stream_graph(name: &str, graph: &StreamGraph, config: &Configuration) -> Result<Self> {
        graph.validate()?;
        chaining::chain(name, graph, config)
    }

    /// The SHA-256 of all that must be the same where the graph is built again, in hexadecimal.
    pub fn hash(&self) -> String {
        let mut hasher = Sha256::new();
        hasher.update(self.describe());
        hasher.finalize().iter().fold(String::new(), |mut text, byte| {
            // Writing to a string cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
    }

    /// One line a vertex, operator and edge, in order; equal text means an equal graph.
    pub fn describe(&self) -> String {
        let mut text = String::new();
        for (id, vertex) in self.vertices.iter().enumerate() {
            let _ = writeln!(text, "vertex {id} parallelism {} of {}", vertex.parallelism, vertex.max_parallelism);
            for operator in &vertex.operators {
                let _ = writeln!(text, "operator {} {} '{}'", operator.id, operator.kind, operator.name);
            }
        }
        for edge in &self.edges {
            let _ = writeln!(text, "edge {} -> {} {:?}", edge.source, edge.target, edge.partitioning);
        }
        text
    }

    /// The same graph with this many subtasks of each vertex.
    #[must_use]
    pub fn with_parallelism(&self, parallelism: &[u32]) -> Self {
        let mut graph = self.clone();
        for (vertex, parallelism) in graph.vertices.iter_mut().zip(parallelism) {
            vertex.parallelism = *parallelism;
        }
        graph
    }

    /// How many slots the job needs: slot sharing puts one subtask of every vertex into each.
    pub fn slots(&self) -> u32 {
        self.vertices.iter().map(|vertex| vertex.parallelism).max().unwrap_or(0)
    }

    /// The edges that enter `vertex`.
    pub fn inputs(&self, vertex: VertexId) -> impl Iterator<Item = &JobEdge> {
        self.edges.iter().filter(move |edge| edge.target == vertex)
    }

    /// The edges that leave `vertex`.
    pub fn outputs(&self, vertex: VertexId) -> impl Iterator<Item = &JobEdge> {
        self.edges.iter().filter(move |edge| edge.source == vertex)
    }
}
