//! What is checked of a job before the leader sees it: a job that cannot run is refused while its user looks on.
//!
//! The leader checks again what its machines rely on. Here stand the limits, and what needs I/O: whether the
//! binary is there, and whether the savepoint fits.

use std::collections::BTreeSet;
use std::path::Path;

use flott_checkpoint::{Store, assign};
use flott_control::JobSpec;
use flott_core::config::Configuration;
use flott_core::ids::JobId;
use flott_core::{Error, Result, ResultExt};
use flott_graph::JobGraph;
use flott_jobmanager_core::Request;

use crate::artifacts::ArtifactStore;

/// The most vertices, edges or operators of a job.
const PARTS_MAX: usize = 10_000;

/// The longest name of a job, vertex or operator, in bytes.
const NAME_BYTES_MAX: usize = 64 << 10;

/// Refuses what could not run.
pub(crate) async fn check(spec: &JobSpec, artifacts: &ArtifactStore, store: &Store) -> Result<()> {
    check_graph(&spec.graph).context("the job's graph is refused")?;
    if let Some(sha256) = &spec.artifact
        && artifacts.path(sha256).is_none()
    {
        return Err(Error::input(format!("the job's binary {sha256} has not been uploaded: PUT /artifacts/{sha256}")));
    }
    if let Some(savepoint) = &spec.savepoint {
        let checked = check_savepoint(spec, savepoint, store).await;
        checked.with_context(|| format!("the job cannot start from savepoint '{savepoint}'"))?;
    }
    Ok(())
}

async fn check_savepoint(spec: &JobSpec, location: &str, store: &Store) -> Result<()> {
    check_location(location)?;
    let (_, manifest) = store.load_manifest(location, None).await?;
    assign::check(&manifest, &spec.graph, spec.allow_non_restored_state)
}

/// The request for a savepoint.
pub(crate) fn savepoint(job: JobId, target: Option<String>, stop: bool, drain: bool) -> Result<Request> {
    if let Some(target) = &target {
        check_location(target)?;
    }
    // Half of a random number tells savepoints of one job apart, as in Flink's folder names.
    let suffix = format!("{:012x}", flott_env::random_u64() >> 16);
    Ok(Request::Savepoint { job, target, stop, drain, suffix })
}

/// Refuses a place that means something else here than where it was typed.
fn check_location(location: &str) -> Result<()> {
    if !location.contains(":/") && !Path::new(location).is_absolute() {
        return Err(Error::input(format!("'{location}' is neither a URL nor an absolute path")));
    }
    Store::normalize(location).map(drop)
}

fn check_graph(graph: &JobGraph) -> Result<()> {
    let operators: usize = graph.vertices.iter().map(|vertex| vertex.operators.len()).sum();
    for (what, count) in [("vertices", graph.vertices.len()), ("edges", graph.edges.len()), ("operators", operators)] {
        if count > PARTS_MAX {
            return Err(Error::input(format!("it has {count} {what}: the most is {PARTS_MAX}")));
        }
    }
    check_name(&graph.name)?;
    let mut config = Configuration::default();
    for (key, value) in graph.config.iter() {
        config.set(key, value)?;
    }
    let mut ids = BTreeSet::new();
    for vertex in &graph.vertices {
        check_name(&vertex.name)?;
        for operator in &vertex.operators {
            check_name(&operator.name)?;
            if !ids.insert(operator.id) {
                return Err(Error::input(format!(
                    "operator '{}' has the id {} of another operator: give both a uid of their own",
                    operator.name, operator.id
                )));
            }
        }
    }
    for (position, edge) in graph.edges.iter().enumerate() {
        // Vertices are in topological order, so an edge that leads back would be a cycle.
        if edge.source >= edge.target {
            return Err(Error::input(format!(
                "edge {position} leads from vertex {} to vertex {}: it must lead from an earlier to a later one",
                edge.source, edge.target
            )));
        }
    }
    let targets: BTreeSet<usize> = graph.edges.iter().map(|edge| edge.target as usize).collect();
    for (id, vertex) in graph.vertices.iter().enumerate() {
        let has_input = targets.contains(&id);
        if vertex.is_source == has_input {
            let what = if has_input { "is a source but has an input" } else { "has no input and is no source" };
            return Err(Error::input(format!("vertex '{}' {what}", vertex.name)));
        }
    }
    Ok(())
}

fn check_name(name: &str) -> Result<()> {
    if name.len() <= NAME_BYTES_MAX {
        return Ok(());
    }
    let start: String = name.chars().take(40).collect();
    Err(Error::input(format!("the name '{start}…' has {} bytes: the most is {NAME_BYTES_MAX}", name.len())))
}

#[cfg(test)]
mod tests {
    use flott_core::ids::OperatorId;
    use flott_graph::{JobEdge, JobVertex, OperatorDescriptor, Partitioning};

    use super::*;

    fn vertex(id: u8, is_source: bool) -> JobVertex {
        let operator = OperatorDescriptor {
            id: OperatorId([id; 16]),
            uid: None,
            kind: "Map".into(),
            name: format!("operator {id}"),
            node: id.into(),
        };
        JobVertex {
            name: format!("vertex {id}"),
            operators: vec![operator],
            parallelism: 2,
            max_parallelism: 128,
            is_source,
            is_non_parallel: false,
        }
    }

    fn graph() -> JobGraph {
        JobGraph {
            name: "job".into(),
            vertices: vec![vertex(0, true), vertex(1, false)],
            edges: vec![JobEdge { source: 0, target: 1, partitioning: Partitioning::Hash, stream_edge: 0 }],
            config: Configuration::default(),
        }
    }

    fn refusal(change: impl FnOnce(&mut JobGraph)) -> String {
        let mut graph = graph();
        change(&mut graph);
        check_graph(&graph).unwrap_err().to_string()
    }

    #[test]
    fn a_sane_graph_is_accepted() {
        check_graph(&graph()).unwrap();
    }

    #[test]
    fn graphs_that_could_not_run_are_refused_by_name() {
        let refused = |change: fn(&mut JobGraph), expected: &str| {
            let error = refusal(change);
            assert!(error.contains(expected), "{error}");
        };
        refused(|graph| graph.vertices[1].operators[0].id = OperatorId([0; 16]), "operator 'operator 1' has the id");
        refused(|graph| graph.edges[0].source = 1, "edge 0 leads from vertex 1 to vertex 1");
        refused(|graph| graph.edges.clear(), "vertex 'vertex 1' has no input");
        refused(|graph| graph.vertices = vec![vertex(0, true); 10_001], "10001 vertices");
        refused(|graph| graph.name = "x".repeat(100_000), "has 100000 bytes");
    }

    #[test]
    fn places_must_mean_the_same_everywhere() {
        for good in ["/tmp/savepoints", "file:///tmp/s", "file:/tmp/s", "s3://bucket/s"] {
            check_location(good).unwrap();
        }
        assert!(check_location("savepoints/1").unwrap_err().to_string().contains("absolute path"));
        assert!(check_location("http://host/x").unwrap_err().to_string().contains("scheme"));
    }
}
