//! The job's operators as JSON: `EXPLAIN JSON_EXECUTION_PLAN`, in the form that Flink's visualiser reads.

use flott_core::config::Configuration;
use flott_core::{Error, Result};
use flott_graph::JobGraph;
use flott_sql_runtime::program;
use serde_json::{Value, json};

use super::Planned;

impl Planned {
    /// An object for each operator of the job that `config` makes: who sends it rows and how, how many subtasks it has, and by the
    /// number of its vertex, which others run in the same.
    ///
    /// # Errors
    /// The job cannot be as `config` says.
    pub fn execution_plan(&self, config: &Configuration) -> Result<String> {
        let graph = program::stream_graph(&self.plan);
        let job = JobGraph::from_stream_graph(&self.plan.name, &graph, config)?;
        let mut nodes: Vec<Value> = Vec::new();
        for (id, node) in graph.nodes.iter().enumerate() {
            let mut vertices = job.vertices.iter().enumerate();
            let found = vertices.find(|(_, vertex)| vertex.operators.iter().any(|operator| operator.node == id));
            let (vertex, of) = found.ok_or_else(|| Error::system(format!("'{}' is in no vertex", node.name)))?;
            let pact = match (node.is_source, graph.outputs(id).next()) {
                (true, _) => "Data Source",
                (false, Some(_)) => "Operator",
                (false, None) => "Data Sink",
            };
            let mut object = json!({
                "id": id,
                "type": node.kind,
                "pact": pact,
                "contents": node.name,
                "parallelism": of.parallelism,
                "vertex": vertex,
            });
            let predecessors: Vec<Value> = (graph.inputs(id))
                .map(|(index, edge)| {
                    // What is sent between vertices may be dealt out otherwise than was planned.
                    let sent = job.edges.iter().find(|sent| sent.stream_edge == index);
                    let strategy = sent.map_or(edge.partitioning, |sent| sent.partitioning);
                    let side = if self.plan.edges[index].input == 0 { "first" } else { "second" };
                    json!({ "id": edge.source, "ship_strategy": strategy, "side": side })
                })
                .collect();
            if !predecessors.is_empty() {
                object["predecessors"] = predecessors.into();
            }
            nodes.push(object);
        }
        serde_json::to_string_pretty(&json!({ "nodes": nodes }))
            .map_err(|error| Error::system(format!("showing the plan as JSON: {error}")))
    }
}
