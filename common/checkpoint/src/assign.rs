//! Which state goes to which subtask after a restore, at any parallelism.

use flott_core::ids::{OperatorId, SubtaskId};
use flott_core::key_group::range_of;
use flott_core::{Error, Result};
use flott_graph::JobGraph;
use serde::{Deserialize, Serialize};

use crate::manifest::{FileHandle, Manifest, OperatorState, Redistribution, VertexSnapshot};

#[cfg(test)]
mod tests;

/// The state that one subtask starts from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskRestore {
    /// Files of keyed state, with full URLs. Each inner list is one old subtask's: a base, then its changes in order.
    /// Files also hold key groups and operators of other subtasks, which the reader passes over.
    pub keyed_files: Vec<Vec<FileHandle>>,
    /// Whether the one list of `keyed_files` holds exactly this subtask's key groups, and no operator of
    /// another vertex, so that changes can be added to it.
    pub is_same_range: bool,
    /// Whether state that an operator no longer declares is dropped instead of refused.
    pub allow_non_restored_state: bool,
    /// This subtask's share of the operator state.
    pub operator_states: Vec<OperatorState>,
}

/// The state of `subtask` of `graph` in `manifest`, whose folder is `location`.
pub fn task_restore(manifest: &Manifest, location: &str, graph: &JobGraph, subtask: SubtaskId) -> TaskRestore {
    let vertex = &graph.vertices[subtask.vertex as usize];
    let operators: Vec<OperatorId> = vertex.operators.iter().map(|operator| operator.id).collect();
    let range = range_of(vertex.parallelism, subtask.index, vertex.max_parallelism);
    let mut restore = TaskRestore::default();
    for old in &manifest.vertices {
        for (index, snapshot) in old.subtasks.iter().enumerate() {
            let old_range = old.key_groups(index as u32);
            let is_mine = |operator: &OperatorId| operators.contains(operator);
            if old_range.overlaps(range) && operators.iter().any(|operator| snapshot.has_keyed_state(*operator)) {
                // Files that hold more than this vertex's operators must not be carried on: where the operators
                // come together again, one of the two copies would be stale.
                let is_only_mine = snapshot.keyed_operators.iter().all(is_mine);
                restore.is_same_range = is_only_mine && old_range == range && restore.keyed_files.is_empty();
                restore.keyed_files.push(snapshot.keyed_files.iter().map(|file| file.resolve(location)).collect());
            }
        }
        restore.operator_states.extend(share(old, &operators, subtask.index, vertex.parallelism));
    }
    restore
}

/// The share of subtask `index` of `parallelism` in the states that `operators` have in `old`.
fn share(old: &VertexSnapshot, operators: &[OperatorId], index: u32, parallelism: u32) -> Vec<OperatorState> {
    let mut merged: Vec<OperatorState> = Vec::new();
    for state in old.subtasks.iter().flat_map(|subtask| &subtask.operator_states) {
        if !operators.contains(&state.operator) {
            continue;
        }
        match merged.iter_mut().find(|m| m.operator == state.operator && m.name == state.name) {
            Some(same) => same.elements.extend(state.elements.iter().cloned()),
            None => merged.push(state.clone()),
        }
    }
    for state in &mut merged {
        if state.redistribution == Redistribution::Split {
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
            && subtask.operator_states.iter().all(|state| old.operators.contains(&state.operator))
    });
    if named && old.operators.len() == old.operator_names.len() && old.max_parallelism > 0 {
        return Ok(());
    }
    Err(Error::input(format!(
        "the manifest contradicts itself about '{}', it was damaged or written by a faulty build: restore from another checkpoint",
        old.name
    )))
}
