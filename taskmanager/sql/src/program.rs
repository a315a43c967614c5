//! From a compiled plan to a program that workers execute.

use std::sync::Arc;

use arrow::datatypes::{DataType, Schema, SchemaRef};
use flott_core::config::Configuration;
use flott_core::{Error, Result};
use flott_graph::{JobGraph, Partitioning, StreamEdge, StreamGraph, StreamNode};
use flott_operators::program::NodeTargets;
use flott_operators::{AnyPush, EdgeFactory, NodeFactory, OperatorNode, Program, Push, SourceTask, Task, TaskContext};

use crate::aggregates::user::check;
use crate::exchange::{ChunkHead, ChunkWriter};
use crate::expr::Functions;
use crate::operator::{OverChunks, TableOperator};
use crate::operators;
use crate::operators::lookup_join::{self, LookupTable};
use crate::row::KeyEncoder;
use crate::spec::{CompiledPlan, Exchange, LookupJoinSpec, OperatorSpec, PlanNode, SinkSpec, SourceSpec};
use flott_chunk::Chunk;

/// The setting that names the session's time zone, in which expressions are evaluated; UTC if it is not set.
const TIME_ZONE: &str = "table.local-time-zone";

/// Makes what reads and writes tables. The runtime knows no connector; whoever builds programs gives it some.
pub trait Connectors: Send + Sync {
    /// The head of a chain that reads a table. Its filters may call `functions`.
    fn source(
        &self,
        spec: &SourceSpec,
        functions: &Functions,
        cx: &TaskContext,
        targets: NodeTargets<'_>,
    ) -> Result<Box<dyn SourceTask>>;

    /// The operator that writes a table.
    fn sink(&self, spec: &SinkSpec, cx: &TaskContext, targets: NodeTargets<'_>) -> Result<Box<dyn Push<Chunk>>>;

    /// The operator behind those that write a table that completes what they have written.
    fn commit(&self, spec: &SinkSpec, cx: &TaskContext, targets: NodeTargets<'_>) -> Result<Box<dyn Push<Chunk>>>;

    /// A table that rows are looked up in. What it leaves out may call `functions`.
    fn lookup(&self, spec: &LookupJoinSpec, functions: &Functions, cx: &TaskContext) -> Result<LookupTable>;
}

/// What operators are made with.
pub struct OperatorContext<'a> {
    /// The subtask.
    pub task: &'a TaskContext,
    /// The functions that expressions may call.
    pub functions: &'a Functions,
    /// The schema of each input.
    pub inputs: &'a [SchemaRef],
    /// The schema of the output.
    pub output: &'a SchemaRef,
}

impl OperatorContext<'_> {
    /// The types of the columns of an input.
    pub fn types(&self, input: usize) -> Vec<DataType> {
        types_of(&self.inputs[input])
    }

    /// The schema that conditions of joins are over: the left columns, then the right ones, all of which may be null.
    pub fn joined(&self) -> SchemaRef {
        let fields = self.inputs.iter().flat_map(|schema| schema.fields()).map(|field| {
            let field = field.as_ref().clone();
            field.with_nullable(true)
        });
        Arc::new(Schema::new(fields.collect::<Vec<_>>()))
    }
}

/// The types of columns.
pub fn types_of(schema: &SchemaRef) -> Vec<DataType> {
    schema.fields().iter().map(|field| field.data_type().clone()).collect()
}

/// Builds the program of a plan.
///
/// # Errors
/// The plan has something that its connectors or functions do not know.
pub fn build(
    plan: &CompiledPlan,
    config: &Configuration,
    connectors: Arc<dyn Connectors>,
    functions: &Functions,
) -> Result<Program> {
    let Parts { graph, nodes, edges } = parts(plan, connectors, functions)?;
    let mut job_graph = JobGraph::from_stream_graph(&plan.name, &graph, config)?;
    job_graph.config = config.clone();
    Ok(Program::new(job_graph, graph, nodes, edges))
}

/// What a plan is made of, to become part of another program.
pub struct Parts {
    /// The operators and edges, in the plan's order.
    pub graph: StreamGraph,
    /// How each operator is made.
    pub nodes: Vec<NodeFactory>,
    /// How each edge is made.
    pub edges: Vec<EdgeFactory>,
}

/// The parts of a plan's program.
///
/// # Errors
/// As for [`build`].
pub fn parts(plan: &CompiledPlan, connectors: Arc<dyn Connectors>, functions: &Functions) -> Result<Parts> {
    let graph = stream_graph(plan);
    plan.nodes.iter().try_for_each(|node| check(&node.operator, functions))?;
    let zone = plan.config.get(TIME_ZONE).map(|zone| zone.trim()).filter(|zone| *zone != "default");
    let functions = zone.map_or_else(|| functions.clone(), |zone| functions.in_zone(zone));
    let nodes = (plan.nodes.iter().enumerate())
        .map(|(index, node)| factory_of(plan, index, node, Arc::clone(&connectors), functions.clone()))
        .collect();
    let edges = (plan.edges.iter())
        .map(|edge| edge_factory(&edge.exchange, edge.input, &plan.nodes[edge.source].schema))
        .collect::<Result<_>>()?;
    Ok(Parts { graph, nodes, edges })
}

/// The operators and edges of a plan, without what they do.
pub fn stream_graph(plan: &CompiledPlan) -> StreamGraph {
    let mut graph = StreamGraph::default();
    for node in &plan.nodes {
        graph.add_node(StreamNode {
            kind: kind_of(&node.operator).to_owned(),
            name: node.name.clone(),
            uid: Some(node.uid.clone()),
            parallelism: node.parallelism,
            is_source: matches!(node.operator, OperatorSpec::Source(_) | OperatorSpec::Values { .. }),
            is_non_parallel: node.parallelism == Some(1),
            is_chainable: true,
        });
    }
    for edge in &plan.edges {
        let partitioning = match &edge.exchange {
            Exchange::Forward => Partitioning::Forward,
            Exchange::Hash(_) => Partitioning::Hash,
            Exchange::Global => Partitioning::Global,
            Exchange::Rebalance => Partitioning::Rebalance,
            Exchange::Broadcast => Partitioning::Broadcast,
        };
        graph.add_edge(StreamEdge { source: edge.source, target: edge.target, partitioning, side: None });
    }
    graph
}

fn edge_factory(exchange: &Exchange, input: u8, schema: &SchemaRef) -> Result<EdgeFactory> {
    let columns = match exchange {
        Exchange::Hash(columns) => Some(columns.clone()),
        _ => None,
    };
    let types = types_of(schema);
    if let Some(columns) = &columns {
        KeyEncoder::new(columns, &types)?;
    }
    Ok(EdgeFactory::with_writer::<Chunk>(move |partitioning, cx, max_parallelism, senders| {
        let keys = columns.as_ref().and_then(|columns| KeyEncoder::new(columns, &types).ok());
        Box::new(ChunkWriter::new(partitioning, keys, input, max_parallelism, senders, cx))
    }))
}

fn factory_of(
    plan: &CompiledPlan,
    index: usize,
    node: &PlanNode,
    connectors: Arc<dyn Connectors>,
    functions: Functions,
) -> NodeFactory {
    let spec = node.operator.clone();
    let output = Arc::clone(&node.schema);
    let inputs = inputs_of(plan, index);
    match spec {
        OperatorSpec::Source(source) => {
            NodeFactory::Source(Box::new(move |cx, targets| connectors.source(&source, &functions, cx, targets)))
        }
        OperatorSpec::Values { rows } => NodeFactory::Source(Box::new(move |cx, mut targets| {
            let (id, out) = (targets.id, targets.output::<Chunk>()?);
            operators::values::source(id, &rows, &output, &functions, cx, out)
        })),
        spec => NodeFactory::Operator {
            make: Box::new(move |cx, mut targets| {
                let operator: Box<dyn TableOperator> = match &spec {
                    OperatorSpec::Sink(sink) => return connectors.sink(sink, cx, targets).map(AnyPush::new),
                    OperatorSpec::Commit(sink) => return connectors.commit(sink, cx, targets).map(AnyPush::new),
                    OperatorSpec::LookupJoin(lookup) => {
                        let input = inputs.first().ok_or_else(|| Error::system("a lookup join has no input"))?;
                        let table = connectors.lookup(lookup, &functions, cx)?;
                        lookup_join::make(lookup, table, input, &functions, cx)?
                    }
                    spec => {
                        let cx = OperatorContext { task: cx, functions: &functions, inputs: &inputs, output: &output };
                        operators::make(spec, &cx)?
                    }
                };
                let (id, name) = (targets.id, targets.name.to_owned());
                let out = targets.output::<Chunk>()?;
                let node: Box<dyn Push<Chunk>> = Box::new(OperatorNode::new(id, &name, OverChunks::new(operator), out));
                Ok(AnyPush::new(node))
            }),
            head: Box::new(|cx, chain| {
                let head: Box<dyn Task> = Box::new(ChunkHead::new(chain.typed::<Chunk>()?, Arc::clone(&cx.counters)));
                Ok(head)
            }),
        },
    }
}

/// The schema of each input of an operator. The edges of a union agree on it.
fn inputs_of(plan: &CompiledPlan, index: usize) -> Vec<SchemaRef> {
    let mut inputs: Vec<SchemaRef> = Vec::new();
    for edge in plan.edges.iter().filter(|edge| edge.target == index) {
        if usize::from(edge.input) >= inputs.len() {
            inputs.push(Arc::clone(&plan.nodes[edge.source].schema));
        }
    }
    inputs
}

/// How an operator is called, as Flink calls it.
pub fn kind_of(operator: &OperatorSpec) -> &'static str {
    match operator {
        OperatorSpec::Source(_) => "TableSourceScan",
        OperatorSpec::Sink(_) => "Sink",
        OperatorSpec::Commit(_) => "PartitionCommitter",
        OperatorSpec::Watermark(_) => "WatermarkAssigner",
        OperatorSpec::Calc { .. } => "Calc",
        OperatorSpec::Expand { .. } => "Expand",
        OperatorSpec::WindowTable { .. } => "WindowTableFunction",
        OperatorSpec::LocalAggregate(local) if local.windows.is_some() => "LocalWindowAggregate",
        OperatorSpec::LocalAggregate(_) => "LocalGroupAggregate",
        OperatorSpec::GroupAggregate(_) => "GroupAggregate",
        OperatorSpec::WindowAggregate(_) => "WindowAggregate",
        OperatorSpec::Over(_) => "OverAggregate",
        OperatorSpec::TopN(_) => "Rank",
        OperatorSpec::Deduplicate(_) => "Deduplicate",
        OperatorSpec::WindowTopN(_) => "WindowRank",
        OperatorSpec::Join(_) => "Join",
        OperatorSpec::IntervalJoin(_) => "IntervalJoin",
        OperatorSpec::WindowJoin(_) => "WindowJoin",
        OperatorSpec::TemporalJoin(_) => "TemporalJoin",
        OperatorSpec::LookupJoin(_) => "LookupJoin",
        OperatorSpec::Unnest { .. } => "Correlate",
        OperatorSpec::ChangelogNormalize { .. } => "ChangelogNormalize",
        OperatorSpec::DropUpdateBefore => "DropUpdateBefore",
        OperatorSpec::TemporalSort { .. } => "TemporalSort",
        OperatorSpec::Sort { .. } => "Sort",
        OperatorSpec::Limit { .. } => "Limit",
        OperatorSpec::Values { .. } => "Values",
        OperatorSpec::SinkMaterialize(_) => "SinkMaterializer",
    }
}
