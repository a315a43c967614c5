//! The graph as the user wrote it: one node an operator, one edge a stream.

use flott_core::{Error, Result};
use serde::{Deserialize, Serialize};

/// The position of a node in its stream graph.
pub type NodeId = usize;

/// How records find their subtask on an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Partitioning {
    /// Subtask `i` to subtask `i`. The edge can be chained.
    Forward,
    /// By the key group of the key's hash.
    Hash,
    /// Round robin, a batch at a time.
    Rebalance,
    /// Every record to every subtask.
    Broadcast,
    /// Every record to subtask 0.
    Global,
}

/// One operator.
#[derive(Clone, Debug)]
pub struct StreamNode {
    /// What kind of operator it is, such as `Map`; part of the graph's hash.
    pub kind: String,
    /// The name that the user gave it, or its kind.
    pub name: String,
    /// The user's stable name for its state.
    pub uid: Option<String>,
    /// The user's parallelism, or the environment's.
    pub parallelism: Option<u32>,
    /// A source has no inputs.
    pub is_source: bool,
    /// Whether it can never have more than one subtask.
    pub is_non_parallel: bool,
    /// Whether it may share a vertex with the operators around it.
    pub is_chainable: bool,
}

/// A stream from one operator to the next.
#[derive(Clone, Debug)]
pub struct StreamEdge {
    /// Where records come from.
    pub source: NodeId,
    /// Where they go.
    pub target: NodeId,
    /// How they find their subtask.
    pub partitioning: Partitioning,
    /// The side output they leave by; `None` is the main output.
    pub side: Option<String>,
}

/// The operators and streams of a program, in the order in which they were built.
#[derive(Clone, Debug, Default)]
pub struct StreamGraph {
    /// The operators; a node's id is its position.
    pub nodes: Vec<StreamNode>,
    /// The streams.
    pub edges: Vec<StreamEdge>,
}

impl StreamGraph {
    /// Adds an operator and returns its id.
    pub fn add_node(&mut self, node: StreamNode) -> NodeId {
        self.nodes.push(node);
        self.nodes.len() - 1
    }

    /// Connects two operators.
    pub fn add_edge(&mut self, edge: StreamEdge) {
        self.edges.push(edge);
    }

    /// The streams that leave `node`, in the order in which they were built.
    pub fn outputs(&self, node: NodeId) -> impl Iterator<Item = (usize, &StreamEdge)> {
        self.edges.iter().enumerate().filter(move |(_, edge)| edge.source == node)
    }

    /// The streams that enter `node`, in the order in which they were built.
    pub fn inputs(&self, node: NodeId) -> impl Iterator<Item = (usize, &StreamEdge)> {
        self.edges.iter().enumerate().filter(move |(_, edge)| edge.target == node)
    }

    /// Refuses what no execution could make sense of.
    pub fn validate(&self) -> Result<()> {
        if self.nodes.is_empty() {
            return Err(Error::input("the job has no operators: add a source and a sink before execute()"));
        }
        let mut uids = std::collections::BTreeMap::new();
        for node in &self.nodes {
            let Some(uid) = &node.uid else { continue };
            if let Some(other) = uids.insert(uid, &node.name) {
                return Err(Error::input(format!(
                    "operators '{other}' and '{}' have the same uid '{uid}': a uid names one operator's state",
                    node.name
                )));
            }
        }
        Ok(())
    }
}
