//! Which state goes to which subtask after a restore, at any parallelism.

use flott_core::ids::{CheckpointId, OperatorId, SubtaskId, VertexId};
use flott_core::key_group::{KeyGroupRange, range_of};
use flott_core::{Error, Result};
use flott_graph::{JobGraph, Partitioning};
use serde::{Deserialize, Serialize};

use crate::manifest::{ChannelInput, FileHandle, KeyedState, Manifest, OperatorState, Redistribution, VertexSnapshot};

#[cfg(test)]
mod tests;

/// The keyed state of one old subtask. Its files also hold key groups and operators of other subtasks, which the
/// reader passes over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyedSource {
    /// The key groups of the old subtask.
    pub range: KeyGroupRange,
    /// State files, with full URLs: a base, then its changes in order.
    pub files: Vec<FileHandle>,
    /// Its states, with the full URLs of their own files, which are tables if it is a savepoint's.
    pub states: Vec<KeyedState>,
}

/// What was in flight to one old subtask, or a part of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChannelSource {
    /// Its file, with a full URL.
    pub file: FileHandle,
    /// The text that tells whether records look as they did.
    pub schema: String,
    /// Whether the subtask is what the old one was, down to its channels: it takes everything as it is. Otherwise it takes
    /// records that were sent by key if their key groups are its own.
    pub is_whole: bool,
    /// Whether it takes also the records that were not sent by key: one subtask does.
    pub has_others: bool,
}

/// The state that one subtask starts from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskRestore {
    /// The checkpoint that it is of.
    pub checkpoint: CheckpointId,
    /// Keyed state, by old subtask.
    pub keyed: Vec<KeyedSource>,
    /// Whether the one entry of `keyed` holds exactly this subtask's key groups, and no operator of
    /// another vertex, so that changes can be added to it.
    pub is_same_range: bool,
    /// Whether state that an operator no longer declares is dropped instead of refused.
    pub allow_non_restored_state: bool,
    /// This subtask's share of the operator state.
    pub operator_states: Vec<OperatorState>,
    /// What was in flight, by old subtask.
    #[serde(default)]
    pub channels: Vec<ChannelSource>,
}

/// The state of `subtask` of `graph` in `manifest`, whose folder is `location`.
pub fn task_restore(manifest: &Manifest, location: &str, graph: &JobGraph, subtask: SubtaskId) -> TaskRestore {
    let vertex = &graph.vertices[subtask.vertex as usize];
    let operators: Vec<OperatorId> = vertex.operators.iter().map(|operator| operator.id).collect();
    let range = range_of(vertex.parallelism, subtask.index, vertex.max_parallelism);
    let mut restore = TaskRestore { checkpoint: manifest.checkpoint, ..TaskRestore::default() };
    for old in &manifest.vertices {
        for (index, snapshot) in old.subtasks.iter().enumerate() {
            let old_range = old.key_groups(index as u32);
            let is_mine = |operator: &OperatorId| operators.contains(operator);
            if old_range.overlaps(range) && operators.iter().any(|operator| snapshot.has_keyed_state(*operator)) {
                // Files that hold more than this vertex's operators must not be carried on: where the operators
                // come together again, one of the two copies would be stale.
                let is_only_mine = snapshot.keyed_operators.iter().all(is_mine);
                restore.is_same_range = is_only_mine && old_range == range && restore.keyed.is_empty();
                let resolve = |state: &KeyedState| {
                    let mut state = state.clone();
                    state.files_mut().for_each(|file| *file = file.resolve(location));
                    state
                };
                restore.keyed.push(KeyedSource {
                    range: old_range,
                    files: snapshot.keyed_files.iter().map(|file| file.resolve(location)).collect(),
                    states: snapshot.keyed_states.iter().filter(|s| is_mine(&s.operator)).map(resolve).collect(),
                });
            }
        }
        restore.operator_states.extend(share(old, &operators, subtask.index, vertex.parallelism));
        restore.channels.extend(channel_sources(old, location, graph, subtask));
    }
    restore
}

/// The edges that lead to a subtask of `vertex`, in the order of their channels.
pub fn channel_inputs(graph: &JobGraph, vertex: VertexId) -> Vec<ChannelInput> {
    let input = |edge: &flott_graph::JobEdge| {
        let source = &graph.vertices[edge.source as usize];
        ChannelInput {
            sender: source.operators[0].id,
            is_keyed: edge.partitioning == Partitioning::Hash,
            channels: if edge.partitioning == Partitioning::Forward { 1 } else { source.parallelism },
        }
    };
    graph.inputs(vertex).map(input).collect()
}

/// What was in flight to subtasks of `old` and is now for `subtask`: rows that were sent by key go where their key groups
/// are, others from one old subtask stay together.
fn channel_sources(old: &VertexSnapshot, location: &str, graph: &JobGraph, subtask: SubtaskId) -> Vec<ChannelSource> {
    let vertex = &graph.vertices[subtask.vertex as usize];
    let range = range_of(vertex.parallelism, subtask.index, vertex.max_parallelism);
    let has_same_groups = old.max_parallelism == vertex.max_parallelism;
    let mut sources = Vec::new();
    for (index, snapshot) in (0..).zip(&old.subtasks) {
        let head = vertex.operators.first().map(|operator| operator.id);
        let Some(state) = snapshot.channel_state.as_ref().filter(|state| head == Some(state.operator)) else {
            continue;
        };
        let is_same_vertex = has_same_groups
            && old.subtasks.len() == vertex.parallelism as usize
            && state.inputs == channel_inputs(graph, subtask.vertex);
        let is_whole = is_same_vertex && index == subtask.index;
        let has_others = is_whole || (!is_same_vertex && index % vertex.parallelism == subtask.index);
        // Groups of another division cannot be compared: then all files are read.
        let has_keys = !is_same_vertex && (!has_same_groups || old.key_groups(index).overlaps(range));
        if has_others || has_keys {
            let (file, schema) = (state.file.resolve(location), state.schema.clone());
            sources.push(ChannelSource { file, schema, is_whole, has_others });
        }
    }
    sources
}

/// The share of subtask `index` of `parallelism` in the states that `operators` have in `old`. With the parallelism of
/// before, what is split stays with its subtask: a subtask that goes back to a checkpoint alone must find what it had
/// there, and nothing of those that did not go back with it.
fn share(old: &VertexSnapshot, operators: &[OperatorId], index: u32, parallelism: u32) -> Vec<OperatorState> {
    let is_same = old.subtasks.len() == parallelism as usize;
    let mut merged: Vec<OperatorState> = Vec::new();
    for (old_index, state) in
        (0..).zip(&old.subtasks).flat_map(|(i, old)| old.operator_states.iter().map(move |s| (i, s)))
    {
        let is_others = is_same && old_index != index && state.redistribution == Redistribution::Split;
        if is_others || !operators.contains(&state.operator) {
            continue;
        }
        match merged.iter_mut().find(|m| m.operator == state.operator && m.name == state.name) {
            Some(same) => same.elements.extend(state.elements.iter().cloned()),
            None => merged.push(state.clone()),
        }
    }
    for state in &mut merged {
        if state.redistribution == Redistribution::Split && !is_same {
            let elements = std::mem::take(&mut state.elements);
            state.elements = elements.into_iter().skip(index as usize).step_by(parallelism as usize).collect();
        }
    }
    merged
}

/// Refuses a restore that would lose state or put it under the wrong key groups.
///
/// # Errors
/// An operator with state is not in the graph, unless `allow_non_restored_state`; an operator with keyed
/// state has another number of key groups; or the manifest contradicts itself.
pub fn check(manifest: &Manifest, graph: &JobGraph, allow_non_restored_state: bool) -> Result<()> {
    for old in &manifest.vertices {
        check_consistent(old)?;
        for (operator, name) in old.operators.iter().zip(&old.operator_names) {
            let vertex = graph.vertices.iter().find(|v| v.operators.iter().any(|o| o.id == *operator));
            match vertex {
                Some(vertex) if vertex.max_parallelism != old.max_parallelism && old.has_keyed_state(*operator) => {
                    return Err(Error::input(format!(
                        "operator '{name}' was saved with max-parallelism {}, the job has {}: set pipeline.max-parallelism to {}",
                        old.max_parallelism, vertex.max_parallelism, old.max_parallelism
                    )));
                }
                Some(vertex) if vertex.operators[0].id != *operator && old.has_channel_state(*operator) => {
                    return Err(Error::input(format!(
                        "the checkpoint has records on their way to operator '{name}', which receives none from other subtasks any more: take a savepoint with the old job, and start the new one from that"
                    )));
                }
                None if old.has_state(*operator) && !allow_non_restored_state => {
                    return Err(Error::input(format!(
                        "the savepoint has state of operator '{name}' ({operator}), which the job does not have: give the operator its old uid, or drop its state with -n (--allowNonRestoredState)"
                    )));
                }
                _ => {}
            }
        }
    }
    Ok(())
}

/// Everything is found by operator, so state that names none, or one that the vertex has not, would be lost.
fn check_consistent(old: &VertexSnapshot) -> Result<()> {
    let named = old.subtasks.iter().all(|subtask| {
        (subtask.keyed_files.is_empty() || !subtask.keyed_operators.is_empty())
            && subtask.keyed_operators.iter().all(|operator| old.operators.contains(operator))
            && subtask.keyed_states.iter().all(|state| old.operators.contains(&state.operator))
            && subtask.operator_states.iter().all(|state| old.operators.contains(&state.operator))
            && subtask.channel_state.iter().all(|state| old.operators.contains(&state.operator))
    });
    if named && old.operators.len() == old.operator_names.len() && old.max_parallelism > 0 {
        return Ok(());
    }
    Err(Error::input(format!(
        "the manifest contradicts itself about '{}', it was damaged or written by a faulty build: restore from another checkpoint",
        old.name
    )))
}
