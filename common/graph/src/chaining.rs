//! From operators to chains: an edge is fused when nothing has to move on it.

use flott_core::config::{Configuration, options};
use flott_core::ids::OperatorId;
use flott_core::{Error, Result};
use sha2::{Digest, Sha256};

use crate::job_graph::{JobEdge, JobGraph, JobVertex, OperatorDescriptor};
use crate::stream_graph::{NodeId, Partitioning, StreamEdge, StreamGraph};

pub(crate) fn chain(name: &str, graph: &StreamGraph, config: &Configuration) -> Result<JobGraph> {
    let default_parallelism = config.get(options::PARALLELISM_DEFAULT)?;
    let max_parallelism = config.get(options::MAX_PARALLELISM)?;
    let parallelism: Vec<u32> = graph
        .nodes
        .iter()
        .map(|node| if node.is_non_parallel { 1 } else { node.parallelism.unwrap_or(default_parallelism) })
        .collect();
    for (node, &parallelism) in graph.nodes.iter().zip(&parallelism) {
        if parallelism == 0 || parallelism > max_parallelism {
            return Err(Error::input(format!(
                "operator '{}' has parallelism {parallelism}: it must be between 1 and {max_parallelism} ({})",
                node.name,
                options::MAX_PARALLELISM.key
            )));
        }
    }

    // Nodes are built after their inputs, so their order is a topological one.
    let fused = |edge: &StreamEdge| is_fused(graph, &parallelism, edge);
    let mut vertex_of = vec![usize::MAX; graph.nodes.len()];
    let mut vertices: Vec<JobVertex> = Vec::new();
    for node in 0..graph.nodes.len() {
        let upstream = graph.inputs(node).map(|(_, edge)| edge).find(|edge| fused(edge));
        vertex_of[node] = match upstream {
            Some(edge) => vertex_of[edge.source],
            None => {
                vertices.push(JobVertex {
                    name: String::new(),
                    operators: Vec::new(),
                    parallelism: parallelism[node],
                    max_parallelism,
                    is_source: graph.nodes[node].is_source,
                    is_non_parallel: false,
                });
                vertices.len() - 1
            }
        };
        let description = &graph.nodes[node];
        vertices[vertex_of[node]].is_non_parallel |= description.is_non_parallel;
        vertices[vertex_of[node]].operators.push(OperatorDescriptor {
            id: operator_id(graph, node),
            uid: description.uid.clone(),
            kind: description.kind.clone(),
            name: description.name.clone(),
            node,
        });
    }
    for vertex in &mut vertices {
        let names: Vec<&str> = vertex.operators.iter().map(|operator| operator.name.as_str()).collect();
        vertex.name = names.join(" -> ");
        if vertex.is_source {
            vertex.name.insert_str(0, "Source: ");
        }
    }
    let edges = graph
        .edges
        .iter()
        .enumerate()
        .filter(|(_, edge)| !fused(edge))
        .map(|(stream_edge, edge)| JobEdge {
            source: vertex_of[edge.source] as u32,
            target: vertex_of[edge.target] as u32,
            // A forward edge between different parallelisms has no partner to forward to.
            partitioning: match edge.partitioning {
                Partitioning::Forward if parallelism[edge.source] != parallelism[edge.target] => {
                    Partitioning::Rebalance
                }
                partitioning => partitioning,
            },
            stream_edge,
        })
        .collect();
    Ok(JobGraph { name: name.to_owned(), vertices, edges, config: config.clone() })
}

/// An edge is fused when records stay in their subtask, both ends allow it, and the target has no
/// other input to align with.
fn is_fused(graph: &StreamGraph, parallelism: &[u32], edge: &StreamEdge) -> bool {
    edge.partitioning == Partitioning::Forward
        && parallelism[edge.source] == parallelism[edge.target]
        && graph.nodes[edge.source].is_chainable
        && graph.nodes[edge.target].is_chainable
        && graph.inputs(edge.target).count() == 1
}

/// The `uid`'s hash, or that of the operator's kind and position below its inputs: adding an
/// operator elsewhere in the job does not change it.
fn operator_id(graph: &StreamGraph, node: NodeId) -> OperatorId {
    let mut hasher = Sha256::new();
    let description = &graph.nodes[node];
    match &description.uid {
        Some(uid) => hasher.update(format!("uid:{uid}")),
        None => {
            hasher.update(format!("position:{}", description.kind));
            let mut inputs = 0;
            for (_, edge) in graph.inputs(node) {
                hasher.update(operator_id(graph, edge.source).0);
                // Two equal operators on one stream differ by which of its consumers they are.
                let sibling = graph.outputs(edge.source).position(|(_, other)| other.target == node);
                hasher.update((sibling.unwrap_or(0) as u64).to_le_bytes());
                inputs += 1;
            }
            if inputs == 0 {
                let ordinal = graph.nodes[..node].iter().filter(|other| other.is_source).count();
                hasher.update((ordinal as u64).to_le_bytes());
            }
        }
    }
    let digest = hasher.finalize();
    OperatorId(std::array::from_fn(|i| digest[i]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream_graph::StreamNode;

    fn node(kind: &str) -> StreamNode {
        StreamNode {
            kind: kind.into(),
            name: kind.into(),
            uid: None,
            parallelism: None,
            is_source: kind == "Source",
            is_non_parallel: false,
            is_chainable: true,
        }
    }

    fn edge(source: NodeId, target: NodeId, partitioning: Partitioning) -> StreamEdge {
        StreamEdge { source, target, partitioning, side: None }
    }

    fn pipeline() -> StreamGraph {
        let mut graph = StreamGraph::default();
        for kind in ["Source", "Map", "Reduce", "Sink"] {
            graph.add_node(node(kind));
        }
        graph.add_edge(edge(0, 1, Partitioning::Forward));
        graph.add_edge(edge(1, 2, Partitioning::Hash));
        graph.add_edge(edge(2, 3, Partitioning::Forward));
        graph
    }

    #[test]
    fn forward_edges_are_fused_and_keyed_ones_are_not() {
        let graph = JobGraph::from_stream_graph("job", &pipeline(), &Configuration::default()).unwrap();
        let names: Vec<_> = graph.vertices.iter().map(|vertex| vertex.name.as_str()).collect();
        assert_eq!(names, ["Source: Source -> Map", "Reduce -> Sink"]);
        assert_eq!(graph.edges.len(), 1);
        assert_eq!(graph.edges[0].partitioning, Partitioning::Hash);
    }

    #[test]
    fn a_change_of_parallelism_breaks_the_chain_and_rebalances() {
        let mut stream_graph = pipeline();
        stream_graph.nodes[3].parallelism = Some(3);
        let graph = JobGraph::from_stream_graph("job", &stream_graph, &Configuration::default()).unwrap();
        assert_eq!(graph.vertices.len(), 3);
        assert_eq!(graph.edges[1].partitioning, Partitioning::Rebalance);
        assert_eq!(graph.slots(), 3);
    }

    #[test]
    fn operator_ids_follow_the_uid_or_else_the_position() {
        let mut changed = pipeline();
        let before: Vec<_> = (0..4).map(|n| operator_id(&changed, n)).collect();
        changed.nodes[2].name = "renamed".into();
        assert_eq!(operator_id(&changed, 2), before[2]);
        changed.nodes[2].uid = Some("totals".into());
        assert_ne!(operator_id(&changed, 2), before[2]);
        assert_eq!(operator_id(&changed, 1), before[1]);
        let twin = changed.add_node(node("Map"));
        changed.add_edge(edge(0, twin, Partitioning::Forward));
        assert_ne!(operator_id(&changed, twin), before[1]);
    }

    #[test]
    fn parallelism_is_checked_against_the_key_groups() {
        let mut graph = pipeline();
        graph.nodes[1].parallelism = Some(1000);
        let error = JobGraph::from_stream_graph("job", &graph, &Configuration::default()).unwrap_err();
        assert!(error.to_string().contains("operator 'Map' has parallelism 1000"), "{error}");
    }
}
