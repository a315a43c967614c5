//! A whole job: its graph, and how to build the chain of each vertex.
//!
//! The API that users write against knows the types of records; the executor does not. Between them
//! stand factories: closures that were made where the types were known, and that exchange chains as
//! [`AnyPush`].

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;

use flott_core::ids::{OperatorId, VertexId};
use flott_core::{Data, Error, Result};
use flott_graph::{JobGraph, Partitioning, StreamGraph};
use flott_network::Sender;

use crate::context::TaskContext;
use crate::exchange::{ChannelWriter, HashRows};
use crate::push::{Output, Push, SideOutputs};
use crate::task::{InputHead, SourceTask, Task};

/// A `Box<dyn Push<T>>` whose `T` only its factories know.
pub struct AnyPush(Box<dyn Any + Send>);

impl AnyPush {
    /// Hides the type.
    pub fn new<T: Data>(push: Box<dyn Push<T>>) -> Self {
        Self(Box::new(push))
    }

    /// Shows the type again.
    pub fn typed<T: Data>(self) -> Result<Box<dyn Push<T>>> {
        self.0.downcast::<Box<dyn Push<T>>>().map(|push| *push).map_err(|_| {
            Error::system(format!(
                "a stream of {} was connected to an operator of another type",
                std::any::type_name::<T>()
            ))
        })
    }
}

/// What stands behind an operator: its consumers, by edge.
pub struct NodeTargets<'a> {
    /// The operator.
    pub id: OperatorId,
    /// Its name.
    pub name: &'a str,
    /// Consumers of its main output.
    pub main: Vec<AnyPush>,
    /// Consumers of side outputs, each with the edge that leads to it.
    sides: BTreeMap<String, Vec<(usize, AnyPush)>>,
    edges: &'a [EdgeFactory],
}

impl NodeTargets<'_> {
    /// The output of an operator that produces `Out`.
    pub fn output<Out: Data>(&mut self) -> Result<Output<Out>> {
        let main = std::mem::take(&mut self.main).into_iter().map(AnyPush::typed).collect::<Result<_>>()?;
        let mut sides = SideOutputs::default();
        for (tag, targets) in std::mem::take(&mut self.sides) {
            // Consumers of one tag agree on its type, so any of their edges can collect them.
            let Some((edge, _)) = targets.first() else { continue };
            let collect = &self.edges[*edge].add_side;
            collect(&mut sides, &tag, targets.into_iter().map(|(_, target)| target).collect())?;
        }
        Ok(Output::new(main, sides))
    }
}

type AddSide = Box<dyn Fn(&mut SideOutputs, &str, Vec<AnyPush>) -> Result<()> + Send + Sync>;
type MakeWriter = Box<dyn Fn(Partitioning, &TaskContext, u32, Vec<Sender>) -> AnyPush + Send + Sync>;

/// Makes the parts of an edge between two operators.
pub struct EdgeFactory {
    add_side: AddSide,
    writer: MakeWriter,
}

impl EdgeFactory {
    /// An edge that carries records of type `T`; `hash` computes the hashes of their keys where it is keyed.
    pub fn new<T: Data>(hash: Option<HashRows<T>>) -> Self {
        Self::with_writer::<T>(move |partitioning, cx, max_parallelism, senders| {
            let (index, counters) = (cx.subtask.index, Arc::clone(&cx.counters));
            Box::new(ChannelWriter::new(partitioning, hash.clone(), max_parallelism, index, senders, counters))
        })
    }

    /// An edge whose records of type `T` find their channels in a way of their own.
    pub fn with_writer<T: Data>(
        writer: impl Fn(Partitioning, &TaskContext, u32, Vec<Sender>) -> Box<dyn Push<T>> + Send + Sync + 'static,
    ) -> Self {
        Self {
            add_side: Box::new(|sides, tag, targets| {
                let targets = targets.into_iter().map(AnyPush::typed::<T>).collect::<Result<_>>()?;
                sides.add(tag, targets);
                Ok(())
            }),
            writer: Box::new(move |partitioning, cx, max_parallelism, senders| {
                AnyPush::new::<T>(writer(partitioning, cx, max_parallelism, senders))
            }),
        }
    }
}

type MakeSource = Box<dyn Fn(&TaskContext, NodeTargets<'_>) -> Result<Box<dyn SourceTask>> + Send + Sync>;
type MakeOperator = Box<dyn Fn(&TaskContext, NodeTargets<'_>) -> Result<AnyPush> + Send + Sync>;
type MakeHead = Box<dyn Fn(&TaskContext, AnyPush) -> Result<Box<dyn Task>> + Send + Sync>;

/// Makes an operator.
pub enum NodeFactory {
    /// A source, which is always the head of its chain.
    Source(MakeSource),
    /// Any other operator.
    Operator {
        /// Makes the operator with what stands behind it.
        make: MakeOperator,
        /// Makes the head that receives its input, if it is the first of its chain.
        head: MakeHead,
    },
}

impl NodeFactory {
    /// An operator that takes records of type `In`.
    pub fn operator<In: Data>(
        make: impl Fn(&TaskContext, NodeTargets<'_>) -> Result<Box<dyn Push<In>>> + Send + Sync + 'static,
    ) -> Self {
        Self::Operator {
            make: Box::new(move |cx, targets| make(cx, targets).map(AnyPush::new)),
            head: Box::new(|cx, chain| {
                Ok(Box::new(InputHead::new(chain.typed::<In>()?, Arc::clone(&cx.counters))) as Box<dyn Task>)
            }),
        }
    }
}

/// The head of a built chain.
pub enum Head {
    /// It begins with a source.
    Source(Box<dyn SourceTask>),
    /// It receives from other subtasks.
    Input(Box<dyn Task>),
}

/// A job's graph and factories, as its binary built them.
pub struct Program {
    /// The graph that is executed.
    pub job_graph: JobGraph,
    stream_graph: StreamGraph,
    nodes: Vec<NodeFactory>,
    edges: Vec<EdgeFactory>,
}

impl Program {
    /// A program of one factory a node and edge of `stream_graph`, in order.
    pub fn new(
        job_graph: JobGraph,
        stream_graph: StreamGraph,
        nodes: Vec<NodeFactory>,
        edges: Vec<EdgeFactory>,
    ) -> Self {
        debug_assert_eq!(stream_graph.nodes.len(), nodes.len());
        debug_assert_eq!(stream_graph.edges.len(), edges.len());
        Self { job_graph, stream_graph, nodes, edges }
    }

    /// Builds the chain of a vertex. `senders` gives the channels of each of its job edges, by the
    /// edge's position in the job graph.
    pub fn build(
        &self,
        vertex: VertexId,
        cx: &TaskContext,
        senders: &mut BTreeMap<usize, Vec<Sender>>,
    ) -> Result<Head> {
        let head = self.job_graph.vertices[vertex as usize].operators[0].node;
        let targets = self.targets(vertex, head, cx, senders)?;
        match &self.nodes[head] {
            NodeFactory::Source(make) => make(cx, targets).map(Head::Source),
            NodeFactory::Operator { make, head } => head(cx, make(cx, targets)?).map(Head::Input),
        }
    }

    /// Builds everything behind `node`, last part first.
    fn targets<'a>(
        &'a self,
        vertex: VertexId,
        node: usize,
        cx: &TaskContext,
        senders: &mut BTreeMap<usize, Vec<Sender>>,
    ) -> Result<NodeTargets<'a>> {
        let operators = &self.job_graph.vertices[vertex as usize].operators;
        let Some(descriptor) = operators.iter().find(|operator| operator.node == node) else {
            return Err(Error::system(format!("node {node} is not part of vertex {vertex}")));
        };
        let mut targets = NodeTargets {
            id: descriptor.id,
            name: &descriptor.name,
            main: Vec::new(),
            sides: BTreeMap::new(),
            edges: &self.edges,
        };
        for (index, edge) in self.stream_graph.outputs(node) {
            let job_edge = self.job_graph.edges.iter().position(|job_edge| job_edge.stream_edge == index);
            let target = match job_edge {
                Some(job_edge) => {
                    let channels = senders
                        .remove(&job_edge)
                        .ok_or_else(|| Error::system(format!("edge {job_edge} of vertex {vertex} has no channels")))?;
                    let description = &self.job_graph.edges[job_edge];
                    let receiver = &self.job_graph.vertices[description.target as usize];
                    (self.edges[index].writer)(description.partitioning, cx, receiver.max_parallelism, channels)
                }
                None => {
                    let NodeFactory::Operator { make, .. } = &self.nodes[edge.target] else {
                        return Err(Error::system("a source cannot have an input"));
                    };
                    make(cx, self.targets(vertex, edge.target, cx, senders)?)?
                }
            };
            match &edge.side {
                Some(tag) => targets.sides.entry(tag.clone()).or_default().push((index, target)),
                None => targets.main.push(target),
            }
        }
        Ok(targets)
    }
}
