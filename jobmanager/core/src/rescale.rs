//! Which parallelism a job can be given: a pure function of its graph.
//!
//! A vertex that had fewer subtasks than others when the job was submitted was given fewer by whoever wrote it, as a sink
//! with a single file is. It keeps them when the job as a whole is scaled, however often that happens. So does one that can only
//! have one, such as a source of a collection.

use flott_core::ids::VertexId;
use flott_core::key_group::MAX_PARALLELISM_LIMIT;
use flott_core::{Error, Result};
use flott_graph::{JobGraph, JobVertex, Partitioning};

use crate::api::Parallelism;
use crate::submission::SUBTASKS_MAX;

/// The parallelism of each vertex.
pub(crate) fn parallelism_of(graph: &JobGraph) -> Vec<u32> {
    graph.vertices.iter().map(|vertex| vertex.parallelism).collect()
}

/// The parallelism of each vertex that `wanted` means. `planned` is what they were submitted with.
pub(crate) fn target(graph: &JobGraph, planned: &[u32], wanted: &Parallelism) -> Result<Vec<u32>> {
    let mut parallelism = parallelism_of(graph);
    match wanted {
        Parallelism::All(subtasks) => {
            for vertex in followers(graph, planned) {
                parallelism[vertex as usize] = *subtasks;
            }
        }
        Parallelism::Vertices(vertices) => {
            for (&vertex, &subtasks) in vertices {
                let Some(parallelism) = parallelism.get_mut(vertex as usize) else {
                    let last = graph.vertices.len().saturating_sub(1);
                    return Err(Error::input(format!("there is no vertex {vertex}: the job's are 0 to {last}")));
                };
                *parallelism = subtasks;
            }
        }
    }
    check(graph, &parallelism)?;
    Ok(parallelism)
}

/// What a job whose parallelism follows the slots should have when there are so many.
pub(crate) fn fitting(graph: &JobGraph, planned: &[u32], slots: u32) -> Vec<u32> {
    let mut parallelism = parallelism_of(graph);
    let followers = followers(graph, planned);
    let most = followers.iter().map(|&vertex| parallelism_max(&graph.vertices[vertex as usize])).min().unwrap_or(1);
    for vertex in followers {
        parallelism[vertex as usize] = slots.clamp(1, most);
    }
    parallelism
}

/// The vertices that are scaled when the job is, with those that forward to each other and so must stay equal.
fn followers(graph: &JobGraph, planned: &[u32]) -> Vec<VertexId> {
    let most = planned.iter().max();
    let mut follows: Vec<bool> = planned.iter().map(|parallelism| Some(parallelism) == most).collect();
    follows.resize(graph.vertices.len(), false);
    spread(graph, &mut follows);
    let mut stays: Vec<bool> = graph.vertices.iter().map(|vertex| vertex.is_non_parallel).collect();
    spread(graph, &mut stays);
    let follows = follows.into_iter().zip(stays).map(|(follows, stays)| follows && !stays);
    (0..).zip(follows).filter(|(_, follows)| *follows).map(|(vertex, _)| vertex).collect()
}

/// What holds for a vertex holds for those that it forwards to, and the other way round.
fn spread(graph: &JobGraph, holds: &mut [bool]) {
    // Each round adds a vertex, or is the last.
    while let Some((source, target)) = forward_edges(graph).find(|(source, target)| holds[*source] != holds[*target]) {
        holds[source] = true;
        holds[target] = true;
    }
}

fn forward_edges(graph: &JobGraph) -> impl Iterator<Item = (usize, usize)> {
    let forward = graph.edges.iter().filter(|edge| edge.partitioning == Partitioning::Forward);
    forward.map(|edge| (edge.source as usize, edge.target as usize))
}

fn parallelism_max(vertex: &JobVertex) -> u32 {
    vertex.max_parallelism.min(MAX_PARALLELISM_LIMIT)
}

fn check(graph: &JobGraph, parallelism: &[u32]) -> Result<()> {
    for (vertex, &parallelism) in graph.vertices.iter().zip(parallelism) {
        let most = parallelism_max(vertex);
        if parallelism == 0 {
            return Err(Error::input(format!("vertex '{}' needs at least 1 subtask, not 0", vertex.name)));
        }
        if vertex.is_non_parallel && parallelism != 1 {
            return Err(Error::input(format!("vertex '{}' can have 1 subtask only, not {parallelism}", vertex.name)));
        }
        if parallelism > most {
            return Err(Error::input(format!(
                "vertex '{}' cannot have {parallelism} subtasks: its max-parallelism is {most}",
                vertex.name
            )));
        }
    }
    if let Some((source, target)) = forward_edges(graph).find(|&(a, b)| parallelism[a] != parallelism[b]) {
        return Err(Error::input(format!(
            "vertex '{}' hands its records to '{}' one to one, so both need the same parallelism, not {} and {}",
            graph.vertices[source].name, graph.vertices[target].name, parallelism[source], parallelism[target]
        )));
    }
    let subtasks: u64 = parallelism.iter().copied().map(u64::from).sum();
    if subtasks > SUBTASKS_MAX {
        return Err(Error::input(format!("{subtasks} subtasks are too many: the most is {SUBTASKS_MAX}")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use flott_graph::JobEdge;

    use super::*;
    use crate::testing;

    /// `Source: Numbers` and `Sink` as in [`testing::graph`], and a `Map` that the source forwards to.
    fn graph(parallelism: [u32; 3]) -> JobGraph {
        let mut graph = testing::graph();
        let mut map = graph.vertices[0].clone();
        (map.name, map.is_source) = ("Map".into(), false);
        graph.vertices.push(map);
        let (source, target, partitioning, stream_edge) = (0, 2, Partitioning::Forward, 1);
        graph.edges.push(JobEdge { source, target, partitioning, stream_edge });
        graph.vertices[1].max_parallelism = 8;
        graph.with_parallelism(&parallelism)
    }

    fn vertices<const N: usize>(pairs: [(VertexId, u32); N]) -> Parallelism {
        Parallelism::Vertices(BTreeMap::from(pairs))
    }

    fn refusal(wanted: &Parallelism) -> String {
        target(&graph([2, 1, 2]), &[2, 1, 2], wanted).unwrap_err().message
    }

    #[test]
    fn the_whole_job_is_all_but_what_was_given_fewer() {
        let scaled = |now, to| target(&graph(now), &[2, 1, 2], &Parallelism::All(to)).unwrap();
        assert_eq!(scaled([2, 1, 2], 4), [4, 1, 4]);
        assert_eq!(scaled([4, 1, 4], 1), [1, 1, 1]);
        assert_eq!(scaled([1, 1, 1], 3), [3, 1, 3], "it is remembered who was given fewer");
        assert_eq!(scaled([2, 3, 2], 5), [5, 3, 5], "and keeps what it was given since");
        let mut single = graph([1, 1, 1]);
        single.vertices[0].is_non_parallel = true;
        assert_eq!(target(&single, &[1, 1, 1], &Parallelism::All(4)).unwrap(), [1, 4, 1], "with whom it forwards to");
        let planned_apart = target(&graph([2, 1, 2]), &[2, 1, 1], &Parallelism::All(4)).unwrap();
        assert_eq!(planned_apart, [4, 1, 4], "partners are carried along");
    }

    #[test]
    fn vertices_can_be_scaled_one_by_one() {
        let scaled = |wanted| target(&graph([2, 1, 2]), &[2, 1, 2], &wanted).unwrap();
        assert_eq!(scaled(vertices([(1, 8)])), [2, 8, 2]);
        assert_eq!(scaled(vertices([(0, 3), (2, 3)])), [3, 1, 3]);
        assert_eq!(scaled(vertices([])), [2, 1, 2]);
    }

    #[test]
    fn what_cannot_be_is_refused_with_its_reason() {
        assert_eq!(refusal(&Parallelism::All(0)), "vertex 'Source: Numbers' needs at least 1 subtask, not 0");
        assert_eq!(
            refusal(&Parallelism::All(200)),
            "vertex 'Source: Numbers' cannot have 200 subtasks: its max-parallelism is 128"
        );
        assert_eq!(refusal(&vertices([(1, 9)])), "vertex 'Sink' cannot have 9 subtasks: its max-parallelism is 8");
        assert_eq!(refusal(&vertices([(7, 1)])), "there is no vertex 7: the job's are 0 to 2");
        assert_eq!(
            refusal(&vertices([(0, 4)])),
            "vertex 'Source: Numbers' hands its records to 'Map' one to one, so both need the same parallelism, not 4 and 2"
        );
        let mut wide = graph([2, 1, 2]);
        wide.vertices.iter_mut().for_each(|vertex| vertex.max_parallelism = 1 << 15);
        wide.vertices.extend(vec![wide.vertices[0].clone(); 3]);
        let error = target(&wide, &[2, 1, 2, 2, 2, 2], &Parallelism::All(1 << 15)).unwrap_err();
        assert_eq!(error.message, "163841 subtasks are too many: the most is 131072");
    }

    #[test]
    fn a_reactive_job_takes_what_there_is() {
        let fitted = |slots| fitting(&graph([2, 1, 2]), &[2, 1, 2], slots);
        assert_eq!(fitted(0), [1, 1, 1]);
        assert_eq!(fitted(5), [5, 1, 5]);
        assert_eq!(fitted(500), [128, 1, 128]);
    }
}
