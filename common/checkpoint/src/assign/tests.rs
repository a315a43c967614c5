use flott_core::config::Configuration;
use flott_core::ids::JobId;
use flott_core::key_group::KeyGroupRange;
use flott_graph::{JobEdge, JobVertex, OperatorDescriptor};

use super::*;
use crate::manifest::{ChannelState, FORMAT_VERSION, SubtaskSnapshot};

const FOLDER: &str = "file:///c/chk-1";
const SOURCE: u8 = 1;
const WINDOW: u8 = 2;
const COUNT: u8 = 3;

fn id(operator: u8) -> OperatorId {
    OperatorId([operator; 16])
}

/// A graph of unconnected vertices with these operators each.
fn graph(parallelism: u32, max_parallelism: u32, vertices: &[&[u8]]) -> JobGraph {
    let vertices = vertices
        .iter()
        .map(|operators| JobVertex {
            name: format!("{operators:?}"),
            operators: operators
                .iter()
                .map(|operator| OperatorDescriptor {
                    id: id(*operator),
                    uid: None,
                    kind: "Map".to_owned(),
                    name: format!("op-{operator}"),
                    node: 0,
                })
                .collect(),
            parallelism,
            max_parallelism,
            is_source: false,
            is_non_parallel: false,
        })
        .collect();
    JobGraph { name: "job".to_owned(), vertices, edges: Vec::new(), config: Configuration::default() }
}

/// One vertex of `operators`, of which `keyed` have keyed state in one file a subtask.
fn vertex(name: &str, operators: &[u8], keyed: &[u8], parallelism: usize) -> VertexSnapshot {
    let subtask = |index| SubtaskSnapshot {
        keyed_files: if keyed.is_empty() { Vec::new() } else { vec![file(name, index)] },
        keyed_operators: keyed.iter().copied().map(id).collect(),
        ..SubtaskSnapshot::default()
    };
    VertexSnapshot {
        name: name.to_owned(),
        operators: operators.iter().copied().map(id).collect(),
        operator_names: operators.iter().map(|operator| format!("op-{operator}")).collect(),
        max_parallelism: 128,
        subtasks: (0..parallelism).map(subtask).collect(),
        unassigned_splits: Vec::new(),
        splits_discovered: false,
    }
}

fn file(vertex: &str, index: usize) -> FileHandle {
    FileHandle { path: format!("{vertex}-{index}"), bytes: 1, sha256: String::new() }
}

fn with_state(mut vertex: VertexSnapshot, redistribution: Redistribution, elements: &[&[u8]]) -> VertexSnapshot {
    for (subtask, elements) in vertex.subtasks.iter_mut().zip(elements) {
        subtask.operator_states.push(OperatorState {
            operator: vertex.operators[0],
            name: "offsets".to_owned(),
            redistribution,
            elements: elements.iter().map(|element| vec![*element]).collect(),
        });
    }
    vertex
}

fn manifest(vertices: Vec<VertexSnapshot>) -> Manifest {
    Manifest {
        version: FORMAT_VERSION,
        job: JobId([0; 16]),
        job_name: "job".to_owned(),
        generation: 1,
        checkpoint: 1,
        is_savepoint: true,
        triggered_ms: 0,
        vertices,
    }
}

fn restore(manifest: &Manifest, graph: &JobGraph, vertex: u32, index: u32) -> TaskRestore {
    task_restore(manifest, FOLDER, graph, SubtaskId { vertex, index })
}

/// The files of a restore, without the folder.
fn files(restore: &TaskRestore) -> Vec<Vec<&str>> {
    fn name(file: &FileHandle) -> &str {
        file.path.strip_prefix(FOLDER).and_then(|path| path.strip_prefix('/')).unwrap_or(&file.path)
    }
    restore.keyed.iter().map(|source| source.files.iter().map(name).collect()).collect()
}

fn elements(restore: &TaskRestore) -> Vec<u8> {
    restore.operator_states.iter().flat_map(|state| &state.elements).flatten().copied().collect()
}

#[test]
fn the_same_parallelism_carries_its_files_on() {
    let manifest = manifest(vec![vertex("w", &[WINDOW], &[WINDOW], 2)]);
    let graph = graph(2, 128, &[&[WINDOW]]);
    for index in 0..2 {
        let restore = restore(&manifest, &graph, 0, index);
        assert_eq!(files(&restore), [[format!("w-{index}")]]);
        assert!(restore.is_same_range);
    }
}

#[test]
fn rescaling_reads_all_files_that_overlap() {
    let manifest = manifest(vec![vertex("w", &[WINDOW], &[WINDOW], 2)]);
    let expected: [(u32, &[&[&str]]); 3] = [
        (1, &[&["w-0", "w-1"]]),
        (3, &[&["w-0"], &["w-0", "w-1"], &["w-1"]]),
        (4, &[&["w-0"], &["w-0"], &["w-1"], &["w-1"]]),
    ];
    for (parallelism, expected) in expected {
        let graph = graph(parallelism, 128, &[&[WINDOW]]);
        check(&manifest, &graph, false).unwrap();
        for (index, expected) in expected.iter().enumerate() {
            let restore = restore(&manifest, &graph, 0, index as u32);
            assert_eq!(files(&restore).concat(), *expected, "{index} of {parallelism}");
            assert!(restore.keyed.iter().all(|source| source.files.len() == 1));
            assert!(!restore.is_same_range, "{index} of {parallelism}");
        }
    }
}

#[test]
fn every_key_group_is_restored_at_every_parallelism() {
    for old in 1..9 {
        let manifest = manifest(vec![vertex("w", &[WINDOW], &[WINDOW], old)]);
        for new in 1..9 {
            let graph = graph(new, 128, &[&[WINDOW]]);
            for index in 0..new {
                let range: KeyGroupRange = range_of(new, index, 128);
                let restore = restore(&manifest, &graph, 0, index);
                for group in range.start..range.end {
                    let owner = flott_core::key_group::owner_of(group as u16, old as u32, 128);
                    assert!(files(&restore).concat().contains(&format!("w-{owner}").as_str()));
                }
                assert_eq!(restore.is_same_range, new == old as u32);
            }
        }
    }
}

#[test]
fn files_of_operators_that_parted_are_read_and_not_carried_on() {
    let manifest = manifest(vec![vertex("wc", &[WINDOW, COUNT], &[WINDOW, COUNT], 2)]);
    let graph = graph(2, 128, &[&[WINDOW], &[COUNT], &[SOURCE]]);
    for vertex in 0..2 {
        let restore = restore(&manifest, &graph, vertex, 1);
        assert_eq!(files(&restore), [["wc-1"]]);
        assert!(!restore.is_same_range);
    }
    assert_eq!(restore(&manifest, &graph, 2, 0), TaskRestore { checkpoint: 1, ..TaskRestore::default() });
}

#[test]
fn operators_that_come_together_read_the_files_of_both() {
    let manifest = manifest(vec![vertex("w", &[WINDOW], &[WINDOW], 2), vertex("c", &[SOURCE, COUNT], &[COUNT], 2)]);
    let restore = restore(&manifest, &graph(2, 128, &[&[WINDOW, COUNT]]), 0, 0);
    assert_eq!(files(&restore), [["w-0"], ["c-0"]]);
    assert!(!restore.is_same_range);
}

#[test]
fn an_operator_that_only_stood_beside_keyed_state_reads_none() {
    let manifest = manifest(vec![vertex("c", &[SOURCE, COUNT], &[COUNT], 1)]);
    assert_eq!(
        restore(&manifest, &graph(1, 128, &[&[SOURCE]]), 0, 0),
        TaskRestore { checkpoint: 1, ..TaskRestore::default() }
    );
}

#[test]
fn split_state_is_dealt_out_and_union_state_copied() {
    let split = with_state(vertex("s", &[SOURCE], &[], 2), Redistribution::Split, &[&[1, 2, 3], &[4, 5]]);
    let split = manifest(vec![split]);
    let union = with_state(vertex("s", &[SOURCE], &[], 2), Redistribution::Union, &[&[1, 2], &[3]]);
    let union = manifest(vec![union]);
    for parallelism in 1..=6 {
        let graph = graph(parallelism, 128, &[&[SOURCE]]);
        let mut all = Vec::new();
        for index in 0..parallelism {
            let mine = elements(&restore(&split, &graph, 0, index));
            if parallelism == 2 {
                let own: &[u8] = if index == 0 { &[1, 2, 3] } else { &[4, 5] };
                assert_eq!(mine, own, "with the same parallelism it stays where it was");
            }
            assert!(mine.len() <= 5_usize.div_ceil(parallelism as usize));
            all.extend(mine);
            assert_eq!(elements(&restore(&union, &graph, 0, index)), [1, 2, 3]);
        }
        all.sort_unstable();
        assert_eq!(all, [1, 2, 3, 4, 5]);
    }
}

fn refused(manifest: &Manifest, graph: &JobGraph, reason: &str) {
    let error = check(manifest, graph, false).unwrap_err();
    assert!(error.to_string().contains(reason), "{error}");
}

#[test]
fn state_without_an_operator_is_refused_unless_allowed() {
    let keyed = manifest(vec![vertex("w", &[WINDOW, COUNT], &[COUNT], 1)]);
    let states = manifest(vec![with_state(vertex("s", &[SOURCE], &[], 1), Redistribution::Split, &[&[1]])]);
    let mut splits = vertex("s", &[SOURCE], &[], 1);
    splits.unassigned_splits.push(vec![1]);
    let splits = manifest(vec![splits]);
    for (manifest, name) in [(&keyed, "'op-3'"), (&states, "'op-1'"), (&splits, "'op-1'")] {
        let without = graph(1, 128, &[&[WINDOW]]);
        refused(manifest, &without, name);
        refused(manifest, &without, "drop its state with -n");
        check(manifest, &without, true).unwrap();
        check(manifest, &graph(1, 128, &[&[SOURCE, COUNT]]), false).unwrap();
    }
}

#[test]
fn an_operator_without_state_may_go() {
    let mut empty = vertex("w", &[WINDOW, COUNT], &[COUNT], 1);
    empty.subtasks[0].keyed_files.clear();
    check(&manifest(vec![empty]), &graph(1, 128, &[&[SOURCE]]), false).unwrap();
}

#[test]
fn keyed_state_keeps_its_key_groups() {
    let keyed = manifest(vec![vertex("w", &[SOURCE, WINDOW], &[WINDOW], 1)]);
    refused(&keyed, &graph(1, 64, &[&[WINDOW]]), "saved with max-parallelism 128, the job has 64");
    let error = check(&keyed, &graph(1, 64, &[&[WINDOW]]), true).unwrap_err();
    assert!(error.to_string().contains("set pipeline.max-parallelism to 128"), "{error}");
    let states = with_state(vertex("s", &[SOURCE], &[], 1), Redistribution::Split, &[&[1]]);
    check(&manifest(vec![states]), &graph(1, 64, &[&[SOURCE]]), false).unwrap();
}

#[test]
fn a_manifest_that_contradicts_itself_is_refused() {
    let graph = graph(1, 128, &[&[WINDOW]]);
    let damage: [fn(&mut VertexSnapshot); 4] = [
        |vertex| vertex.subtasks[0].keyed_operators.clear(),
        |vertex| vertex.subtasks[0].keyed_operators.push(id(COUNT)),
        |vertex| vertex.operator_names.clear(),
        |vertex| vertex.max_parallelism = 0,
    ];
    for damage in damage {
        let mut vertex = vertex("w", &[WINDOW], &[WINDOW], 1);
        damage(&mut vertex);
        refused(&manifest(vec![vertex]), &graph, "contradicts itself about 'w'");
    }
}

/// A window behind a source by this partitioning.
fn connected(parallelism: u32, partitioning: Partitioning) -> JobGraph {
    let edge = JobEdge { source: 0, target: 1, partitioning, stream_edge: 0 };
    JobGraph { edges: vec![edge], ..graph(parallelism, 128, &[&[SOURCE], &[WINDOW]]) }
}

/// A checkpoint of [`connected`] with something in flight to each window.
fn in_flight(parallelism: u32, partitioning: Partitioning) -> Manifest {
    let inputs = channel_inputs(&connected(parallelism, partitioning), 1);
    let mut window = vertex("w", &[WINDOW, COUNT], &[], parallelism as usize);
    for (index, subtask) in window.subtasks.iter_mut().enumerate() {
        let (operator, file) = (id(WINDOW), file("w", index));
        subtask.channel_state =
            Some(Box::new(ChannelState { operator, schema: "text".to_owned(), inputs: inputs.clone(), rows: 1, file }));
    }
    manifest(vec![vertex("s", &[SOURCE], &[], parallelism as usize), window])
}

fn show_source(source: &ChannelSource) -> (&str, bool, bool) {
    let name = source.file.path.strip_prefix("file:///c/chk-1/").unwrap_or(&source.file.path);
    (name, source.is_whole, source.has_others)
}

/// The files of what was in flight, each with whether it is taken whole and whether with records without a key.
fn channels(restore: &TaskRestore) -> Vec<(&str, bool, bool)> {
    restore.channels.iter().map(show_source).collect()
}

#[test]
fn what_was_in_flight_is_taken_whole_where_nothing_has_changed() {
    for partitioning in [Partitioning::Hash, Partitioning::Rebalance, Partitioning::Forward] {
        let (manifest, graph) = (in_flight(2, partitioning), connected(2, partitioning));
        check(&manifest, &graph, false).unwrap();
        assert_eq!(channels(&restore(&manifest, &graph, 1, 0)), [("w-0", true, true)]);
        assert_eq!(channels(&restore(&manifest, &graph, 1, 1)), [("w-1", true, true)]);
        assert!(restore(&manifest, &graph, 0, 0).channels.is_empty());
    }
}

#[test]
fn at_another_parallelism_keys_find_their_groups_and_the_rest_one_subtask() {
    let manifest = in_flight(2, Partitioning::Hash);
    let graph = connected(3, Partitioning::Hash);
    let all: Vec<_> = (0..3).map(|index| restore(&manifest, &graph, 1, index)).collect();
    assert_eq!(channels(&all[0]), [("w-0", false, true)]);
    assert_eq!(channels(&all[1]), [("w-0", false, false), ("w-1", false, true)]);
    assert_eq!(channels(&all[2]), [("w-1", false, false)]);

    let one = restore(&manifest, &connected(1, Partitioning::Hash), 1, 0);
    assert_eq!(channels(&one), [("w-0", false, true), ("w-1", false, true)]);
}

#[test]
fn other_channels_or_key_groups_are_as_good_as_another_parallelism() {
    let manifest = in_flight(2, Partitioning::Hash);
    let mut graph = connected(2, Partitioning::Hash);
    graph.vertices[0].parallelism = 5;
    assert_eq!(channels(&restore(&manifest, &graph, 1, 0)), [("w-0", false, true)]);
    let mut graph = connected(2, Partitioning::Hash);
    graph.vertices[1].max_parallelism = 64;
    assert_eq!(channels(&restore(&manifest, &graph, 1, 0)), [("w-0", false, true), ("w-1", false, false)]);
}

#[test]
fn what_was_in_flight_needs_its_receiver() {
    let manifest = in_flight(1, Partitioning::Rebalance);
    let gone = graph(1, 128, &[&[SOURCE, COUNT]]);
    refused(&manifest, &gone, "state of operator 'op-2'");
    check(&manifest, &gone, true).unwrap();
    let fused = graph(1, 128, &[&[SOURCE, WINDOW], &[COUNT]]);
    refused(&manifest, &fused, "records on their way to operator 'op-2'");
    assert!(check(&manifest, &fused, true).is_err());
    check(&manifest, &connected(1, Partitioning::Rebalance), false).unwrap();
}
