//! The program as it is being built: the graph, and a factory for each of its nodes and edges.

use std::any::Any;
use std::cell::RefCell;
use std::collections::HashSet;
use std::rc::Rc;
use std::sync::Arc;

use flott_core::config::Configuration;
use flott_core::config::options::{self, RuntimeMode};
use flott_core::{Data, Error, Result};
use flott_graph::{JobGraph, NodeId, Partitioning, StreamEdge, StreamGraph, StreamNode};
use flott_operators::exchange::HashRows;
use flott_operators::{EdgeFactory, NodeFactory, Operator, OperatorNode, Program, TaskContext};

use crate::embed::Part;
use crate::stream::DataStream;

/// Shared by an environment and all its streams, which live on one thread.
pub(crate) type SharedBuilder = Rc<RefCell<Builder>>;

/// A graph under construction. The first mistake is kept and reported by `execute`, so that streams
/// can be chained without a `?` at every step.
#[derive(Default)]
pub(crate) struct Builder {
    pub(crate) config: Configuration,
    pub(crate) graph: StreamGraph,
    nodes: Vec<NodeFactory>,
    edges: Vec<EdgeFactory>,
    error: Option<Error>,
    /// Sources that never end.
    unbounded: Vec<NodeId>,
    /// How many programs have been executed: each leaves an empty graph behind.
    pub(crate) epoch: u32,
    /// Set by what only works where the job runs in this process.
    pub(crate) local_only: Option<&'static str>,
    /// What other crates keep here.
    pub(crate) attached: Vec<Rc<dyn Any>>,
}

/// Where the records of a stream come from, and how they find the next operator's subtasks.
#[derive(Clone)]
pub(crate) struct Upstream<T> {
    pub(crate) node: NodeId,
    pub(crate) side: Option<String>,
    pub(crate) partitioning: Partitioning,
    pub(crate) hash: Option<HashRows<T>>,
    /// How many programs had been executed when the stream was made: it belongs to the next one.
    pub(crate) epoch: u32,
}

impl Builder {
    pub(crate) fn new(config: Configuration) -> Self {
        Self { config, ..Self::default() }
    }

    pub(crate) fn fail(&mut self, error: Error) {
        self.error.get_or_insert(error);
    }

    pub(crate) fn add_node(&mut self, kind: &str, is_source: bool, factory: NodeFactory) -> NodeId {
        self.nodes.push(factory);
        self.graph.add_node(StreamNode {
            kind: kind.to_owned(),
            name: kind.to_owned(),
            uid: None,
            parallelism: None,
            is_source,
            is_non_parallel: false,
            is_chainable: true,
        })
    }

    /// Notes that a source never ends.
    pub(crate) fn set_unbounded(&mut self, source: NodeId) {
        self.unbounded.push(source);
    }

    /// Gives the operator that `stream` comes from one subtask for good.
    pub(crate) fn set_non_parallel<T>(&mut self, stream: &DataStream<T>) {
        for upstream in &stream.upstreams {
            self.graph.nodes[upstream.node].is_non_parallel = true;
        }
    }

    /// Adds an operator behind `upstreams`.
    pub(crate) fn add_operator<In, Out, O>(
        &mut self,
        kind: &str,
        upstreams: Vec<Upstream<In>>,
        make: impl Fn(&TaskContext) -> Result<O> + Send + Sync + 'static,
    ) -> NodeId
    where
        In: Data,
        Out: Data,
        O: Operator<In, Out> + 'static,
    {
        let factory = NodeFactory::operator::<In>(move |cx, mut targets| {
            let operator = make(cx)?;
            let out = targets.output::<Out>()?;
            Ok(Box::new(OperatorNode::new(targets.id, targets.name, operator, out)))
        });
        let node = self.add_node(kind, false, factory);
        self.connect(upstreams, node);
        node
    }

    /// Adds the edges from `upstreams` to an operator.
    pub(crate) fn connect<In: Data>(&mut self, upstreams: Vec<Upstream<In>>, target: NodeId) {
        for Upstream { node: source, side, partitioning, hash, epoch } in upstreams {
            if epoch != self.epoch {
                self.fail(Error::input(
                    "a stream of a program that was executed already has no records any more: read its source again",
                ));
                return;
            }
            self.edges.push(EdgeFactory::new::<In>(hash));
            self.graph.add_edge(StreamEdge { source, target, partitioning, side });
        }
    }

    /// Adds operators that are connected with each other already. Returns the number of the first.
    pub(crate) fn embed(&mut self, part: Part) -> NodeId {
        let first = self.graph.nodes.len();
        let taken: HashSet<String> = self.graph.nodes.iter().filter_map(|node| node.uid.clone()).collect();
        for mut node in part.graph.nodes {
            if let Some(uid) = &mut node.uid {
                // What is computed twice has its state twice.
                let numbered = (2..).map(|number| format!("{uid}#{number}"));
                *uid =
                    std::iter::once(uid.clone()).chain(numbered).find(|uid| !taken.contains(uid)).unwrap_or_default();
            }
            self.graph.add_node(node);
        }
        for edge in part.graph.edges {
            self.graph.add_edge(StreamEdge { source: first + edge.source, target: first + edge.target, ..edge });
        }
        self.nodes.extend(part.nodes);
        self.edges.extend(part.edges);
        first
    }

    /// The finished program.
    pub(crate) fn finish(&mut self, name: &str) -> Result<Arc<Program>> {
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        let stream_graph = std::mem::take(&mut self.graph);
        self.epoch += 1;
        if let Some(source) = std::mem::take(&mut self.unbounded).first()
            && self.config.get(options::RUNTIME_MODE)? == RuntimeMode::Batch
        {
            return Err(Error::input(format!(
                "{} is BATCH, and the source '{}' has no end: bound it, or use STREAMING",
                options::RUNTIME_MODE.key,
                stream_graph.nodes[*source].name
            )));
        }
        let mut job_graph = JobGraph::from_stream_graph(name, &stream_graph, &self.config)?;
        job_graph.config = self.config.clone();
        let (nodes, edges) = (std::mem::take(&mut self.nodes), std::mem::take(&mut self.edges));
        Ok(Arc::new(Program::new(job_graph, stream_graph, nodes, edges)))
    }
}
