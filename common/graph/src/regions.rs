//! Pipelined regions: the subtasks of a job that depend on each other, since data goes from one to another.
//!
//! A region is a connected component of subtasks over the channels between them. What is lost with a subtask reaches
//! the subtasks of its region, up and down the stream, and no other one. So a region is what a failure restarts.

use std::collections::BTreeMap;

use flott_core::ids::SubtaskId;

use crate::job_graph::JobGraph;
use crate::stream_graph::Partitioning;

/// The region of each subtask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Regions {
    /// By vertex, then by index.
    regions: Vec<Vec<u32>>,
    count: u32,
}

impl Regions {
    /// How many there are.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// The region of a subtask, if the graph has such a subtask. They are numbered from 0, in the order of their first
    /// subtasks.
    pub fn of(&self, subtask: SubtaskId) -> Option<u32> {
        self.regions.get(subtask.vertex as usize)?.get(subtask.index as usize).copied()
    }
}

impl JobGraph {
    /// The regions of this graph, with the parallelism that it has.
    pub fn regions(&self) -> Regions {
        let mut firsts = Vec::with_capacity(self.vertices.len());
        let mut subtasks = 0;
        for vertex in &self.vertices {
            firsts.push(subtasks);
            subtasks += vertex.parallelism as usize;
        }
        let mut sets = Sets((0..subtasks).collect());
        for edge in &self.edges {
            let [from, to] = [edge.source, edge.target].map(|vertex| {
                let first = firsts[vertex as usize];
                first..first + self.vertices[vertex as usize].parallelism as usize
            });
            // Between vertices of different parallelism nobody forwards; if somebody did, all would belong together.
            if edge.partitioning == Partitioning::Forward && from.len() == to.len() {
                from.zip(to).for_each(|(from, to)| sets.join(from, to));
            } else if let (Some(first), false) = (from.clone().next(), to.is_empty()) {
                from.chain(to).for_each(|subtask| sets.join(first, subtask));
            }
        }
        let mut numbers: BTreeMap<usize, u32> = BTreeMap::new();
        let mut number = |subtask: usize| {
            let next = numbers.len() as u32;
            *numbers.entry(sets.find(subtask)).or_insert(next)
        };
        let vertices = self.vertices.iter().zip(firsts);
        let of_vertex =
            vertices.map(|(vertex, first)| (0..vertex.parallelism as usize).map(|i| number(first + i)).collect());
        let regions = of_vertex.collect();
        Regions { regions, count: numbers.len() as u32 }
    }
}

/// Disjoint sets of numbers. Each names another one of its set, the least one names itself.
struct Sets(Vec<usize>);

impl Sets {
    fn find(&mut self, mut number: usize) -> usize {
        while self.0[number] != number {
            // Halving the way keeps all ways short.
            self.0[number] = self.0[self.0[number]];
            number = self.0[number];
        }
        number
    }

    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.find(a), self.find(b));
        self.0[a.max(b)] = a.min(b);
    }
}

#[cfg(test)]
mod tests {
    use flott_core::config::Configuration;
    use proptest::prelude::*;

    use super::*;
    use crate::job_graph::{JobEdge, JobVertex};

    fn graph(parallelism: &[u32], edges: &[(u32, u32, Partitioning)]) -> JobGraph {
        let vertex = |&parallelism: &u32| JobVertex {
            name: String::new(),
            operators: Vec::new(),
            parallelism,
            max_parallelism: 128,
            is_source: false,
            is_non_parallel: false,
        };
        let edge = |&(source, target, partitioning)| JobEdge { source, target, partitioning, stream_edge: 0 };
        JobGraph {
            name: "job".into(),
            vertices: parallelism.iter().map(vertex).collect(),
            edges: edges.iter().map(edge).collect(),
            config: Configuration::default(),
        }
    }

    fn regions(parallelism: &[u32], edges: &[(u32, u32, Partitioning)]) -> Vec<Vec<u32>> {
        graph(parallelism, edges).regions().regions
    }

    #[test]
    fn who_forwards_to_each_other_is_a_region() {
        assert_eq!(regions(&[3], &[]), [[0, 1, 2]], "a chain");
        assert_eq!(regions(&[2, 2, 2], &[(0, 1, Partitioning::Forward), (1, 2, Partitioning::Forward)]), [[0, 1]; 3]);
    }

    #[test]
    fn any_other_edge_makes_one_region_of_both_sides() {
        for partitioning in [Partitioning::Hash, Partitioning::Rebalance, Partitioning::Broadcast, Partitioning::Global]
        {
            assert_eq!(regions(&[2, 3], &[(0, 1, partitioning)]), [vec![0, 0], vec![0, 0, 0]]);
        }
        let edges = [(0, 1, Partitioning::Forward), (2, 3, Partitioning::Hash)];
        assert_eq!(regions(&[2, 2, 1, 2], &edges), [vec![0, 1], vec![0, 1], vec![2], vec![2, 2]], "two pipelines");
        let joined = [(0, 2, Partitioning::Forward), (1, 2, Partitioning::Forward), (2, 3, Partitioning::Global)];
        assert_eq!(graph(&[2, 2, 2, 1], &joined).regions().count(), 1, "what goes into one sink");
    }

    fn any_graph() -> impl Strategy<Value = JobGraph> {
        let partitioning = prop::sample::select(vec![Partitioning::Forward, Partitioning::Forward, Partitioning::Hash]);
        let edge = (0u32..6, 0u32..6, partitioning);
        (prop::collection::vec(1u32..5, 6), prop::collection::vec(edge, 0..8)).prop_map(|(parallelism, edges)| {
            let edges: Vec<_> = edges.into_iter().filter(|(source, target, _)| source < target).collect();
            graph(&parallelism, &edges)
        })
    }

    proptest! {
        /// The same as following the channels one by one, from each subtask.
        #[test]
        fn regions_are_what_channels_connect(graph in any_graph()) {
            let regions = graph.regions();
            let all: Vec<SubtaskId> = (0..)
                .zip(&graph.vertices)
                .flat_map(|(vertex, of)| (0..of.parallelism).map(move |index| SubtaskId { vertex, index }))
                .collect();
            let is_connected = |a: SubtaskId, b: SubtaskId| graph.edges.iter().any(|edge| {
                let is_edge = (edge.source, edge.target) == (a.vertex, b.vertex) || (edge.target, edge.source) == (a.vertex, b.vertex);
                let same = |vertex: u32| graph.vertices[vertex as usize].parallelism;
                let is_narrow = edge.partitioning == Partitioning::Forward && same(edge.source) == same(edge.target);
                is_edge && (!is_narrow || a.index == b.index)
            });
            for &start in &all {
                let mut reached = vec![start];
                let mut next = 0;
                while next < reached.len() {
                    let from = reached[next];
                    let new: Vec<_> = all.iter().copied().filter(|&to| is_connected(from, to) && !reached.contains(&to)).collect();
                    reached.extend(new);
                    next += 1;
                }
                for &other in &all {
                    prop_assert_eq!(regions.of(start) == regions.of(other), reached.contains(&other), "{} {}", start, other);
                }
            }
            let mut numbers: Vec<u32> = all.iter().filter_map(|&subtask| regions.of(subtask)).collect();
            numbers.sort_unstable();
            numbers.dedup();
            prop_assert_eq!(numbers, (0..regions.count()).collect::<Vec<_>>());
        }
    }
}
