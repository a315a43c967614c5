//! What is checked before a job is accepted, since a client may send anything.

use flott_control::JobSpec;
use flott_core::config::Configuration;
use flott_core::key_group::MAX_PARALLELISM_LIMIT;
use flott_core::{Error, Result};
use flott_graph::JobGraph;

use crate::restart::RestartStrategy;
use crate::settings::Settings;

/// How many subtasks a job may have in all.
pub(crate) const SUBTASKS_MAX: u64 = 1 << 17;

/// The merged configuration of a job and what it means.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) config: Configuration,
    pub(crate) settings: Settings,
    pub(crate) restart: RestartStrategy,
}

/// Reads the job's configuration over the cluster's, and refuses a job that could not run.
pub(crate) fn plan(spec: &JobSpec, cluster: &Configuration) -> Result<Plan> {
    let mut config = cluster.clone();
    config.extend(&spec.graph.config);
    let settings = Settings::read(&config)?;
    settings.check()?;
    check_graph(&spec.graph)?;
    let restart = RestartStrategy::read(&config)?;
    Ok(Plan { config, settings, restart })
}

fn check_graph(graph: &JobGraph) -> Result<()> {
    if graph.vertices.is_empty() {
        return Err(Error::input(format!("job '{}' has no operators", graph.name)));
    }
    for vertex in &graph.vertices {
        let parallelism_max = vertex.max_parallelism.min(MAX_PARALLELISM_LIMIT);
        if vertex.operators.is_empty() || vertex.parallelism == 0 || vertex.parallelism > parallelism_max {
            return Err(Error::input(format!(
                "vertex '{}' has {} operators and parallelism {}: it needs an operator, and a parallelism from 1 to {parallelism_max}",
                vertex.name,
                vertex.operators.len(),
                vertex.parallelism
            )));
        }
    }
    let subtasks: u64 = graph.vertices.iter().map(|vertex| u64::from(vertex.parallelism)).sum();
    if subtasks > SUBTASKS_MAX {
        return Err(Error::input(format!("job '{}' has {subtasks} subtasks: the most is {SUBTASKS_MAX}", graph.name)));
    }
    let exists = |vertex: u32| (vertex as usize) < graph.vertices.len();
    match graph.edges.iter().find(|edge| !exists(edge.source) || !exists(edge.target)) {
        Some(edge) => Err(Error::input(format!(
            "job '{}' has an edge from vertex {} to {}, but only {} vertices",
            graph.name,
            edge.source,
            edge.target,
            graph.vertices.len()
        ))),
        None => Ok(()),
    }
}
