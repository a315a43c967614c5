//! What a program would make of a savepoint or a checkpoint, found out without running it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use flott_checkpoint::{KeyedState, Manifest};
use flott_connector_spi::{IoHandle, Waker};
use flott_core::Result;
use flott_core::ids::{JobId, OperatorId, SubtaskId, VertexId};
use flott_network::{Signal, local_channel};
use flott_state::{Compatibility, StateBackend};
use flott_telemetry::TaskCounters;
use serde::{Deserialize, Serialize};

use crate::context::TaskContext;
use crate::program::{Head, Program};
use crate::push::Control;
use crate::snapshot::DeclaredState;

/// What becomes of a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RestoreOutcome {
    /// It is taken as it is.
    Restored,
    /// It is taken, and its fields are matched by name.
    Migrated,
    /// The program declares it, the savepoint does not have it: it starts empty.
    New,
    /// The savepoint has it, the program does not declare it, and it may be left behind.
    Dropped,
    /// The program cannot start from this savepoint because of it.
    Refused,
}

/// What becomes of one state, or of all that an operator has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestoreEntry {
    /// The operator's name.
    pub operator: String,
    /// Its id.
    pub operator_id: String,
    /// The keyed state; `None` for what an operator has besides, such as positions and files to commit.
    pub state: Option<String>,
    /// What becomes of it.
    pub outcome: RestoreOutcome,
    /// What changes, or why not.
    pub notes: Vec<String>,
}

/// What a program would make of a savepoint.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestoreReport {
    /// In the order of the savepoint, then what is new.
    pub entries: Vec<RestoreEntry>,
}

impl RestoreReport {
    /// Whether the program cannot start from the savepoint.
    pub fn is_refused(&self) -> bool {
        self.entries.iter().any(|entry| entry.outcome == RestoreOutcome::Refused)
    }
}

impl Program {
    /// The keyed states that its operators declare, in the order of vertices. Chains are built for that, but not opened.
    pub fn declared_states(&self, io: &IoHandle) -> Result<Vec<DeclaredState>> {
        let mut declared = Vec::new();
        for vertex in 0..self.job_graph.vertices.len() {
            let vertex = vertex as VertexId;
            let mut senders = BTreeMap::new();
            let mut receivers = Vec::new();
            for (index, _) in self.job_graph.edges.iter().enumerate().filter(|(_, edge)| edge.source == vertex) {
                let (sender, receiver) = local_channel(1, Signal::new(), Signal::new());
                senders.insert(index, vec![sender]);
                receivers.push(receiver);
            }
            let mut control = Control::Declare(&mut declared);
            match self.build(vertex, &self.idle_context(vertex, io), &mut senders)? {
                Head::Source(mut source) => source.control(&mut control)?,
                Head::Input(mut task) => task.control(&mut control)?,
            }
        }
        Ok(declared)
    }

    fn idle_context(&self, vertex: VertexId, io: &IoHandle) -> TaskContext {
        let description = &self.job_graph.vertices[vertex as usize];
        TaskContext {
            job: JobId([0; 16]),
            generation: 0,
            subtask: SubtaskId { vertex, index: 0 },
            name: description.name.clone(),
            parallelism: 1,
            max_parallelism: description.max_parallelism,
            config: self.job_graph.config.clone(),
            counters: Arc::new(TaskCounters::default()),
            io: io.clone(),
            waker: Waker::new(|| {}),
            woken: Arc::new(AtomicBool::new(false)),
            outlet: Default::default(),
            splits: Arc::default(),
            state: StateBackend::default(),
        }
    }
}

/// Compares what `program` declares with what `manifest` has, field by field.
///
/// # Errors
/// A chain cannot be built, or a function fails while it declares its states.
pub fn check_restore(
    program: &Program,
    manifest: &Manifest,
    allow_non_restored_state: bool,
    io: &IoHandle,
) -> Result<RestoreReport> {
    let declared = program.declared_states(io)?;
    let mut report = RestoreReport::default();
    for old in &manifest.vertices {
        for (&operator, name) in old.operators.iter().zip(&old.operator_names) {
            if !old.has_state(operator) {
                continue;
            }
            let vertex =
                program.job_graph.vertices.iter().find(|vertex| vertex.operators.iter().any(|o| o.id == operator));
            let states = keyed_states(old.subtasks.iter().flat_map(|subtask| &subtask.keyed_states), operator);
            let mut add = |state: Option<&str>, (outcome, notes): (RestoreOutcome, Vec<String>)| {
                report.entries.push(RestoreEntry {
                    operator: name.clone(),
                    operator_id: operator.to_string(),
                    state: state.map(str::to_owned),
                    outcome,
                    notes,
                });
            };
            let Some(vertex) = vertex else {
                let way_out = "the job does not have this operator: give it its old uid (in SQL: keep the query that computes this), or drop its \
                               state with -n (--allowNonRestoredState)";
                let lost = left_behind(allow_non_restored_state, way_out);
                if states.is_empty() {
                    add(None, lost.clone());
                }
                states.keys().for_each(|&state| add(Some(state), lost.clone()));
                continue;
            };
            if vertex.max_parallelism != old.max_parallelism && old.has_keyed_state(operator) {
                let reason = format!(
                    "saved with max-parallelism {}, the job has {}: set pipeline.max-parallelism to {}",
                    old.max_parallelism, vertex.max_parallelism, old.max_parallelism
                );
                add(None, (RestoreOutcome::Refused, vec![reason]));
                continue;
            }
            if states.is_empty() {
                add(None, (RestoreOutcome::Restored, Vec::new()));
            }
            for (state, old_state) in states {
                let new = declared.iter().find(|new| new.operator == operator && new.name == state);
                let way_out = "the operator does not declare it: declare it under its old name, or drop it with -n (--allowNonRestoredState)";
                add(
                    Some(state),
                    match new {
                        Some(new) => compare(new, old_state),
                        None if old_state.rows == 0 => (RestoreOutcome::Dropped, vec!["it is empty".to_owned()]),
                        None => left_behind(allow_non_restored_state, way_out),
                    },
                );
            }
        }
    }
    add_new(program, manifest, &declared, &mut report);
    Ok(report)
}

fn left_behind(is_allowed: bool, way_out: &str) -> (RestoreOutcome, Vec<String>) {
    match is_allowed {
        true => (RestoreOutcome::Dropped, Vec::new()),
        false => (RestoreOutcome::Refused, vec![way_out.to_owned()]),
    }
}

/// One description a state; the one with rows where subtasks differ, since an empty state is no obstacle.
fn keyed_states<'a>(
    states: impl Iterator<Item = &'a KeyedState>,
    operator: OperatorId,
) -> BTreeMap<&'a str, &'a KeyedState> {
    let mut found: BTreeMap<&str, &KeyedState> = BTreeMap::new();
    for state in states.filter(|state| state.operator == operator) {
        let known = found.entry(&state.name).or_insert(state);
        if known.rows == 0 {
            *known = state;
        }
    }
    found
}

fn compare(new: &DeclaredState, old: &KeyedState) -> (RestoreOutcome, Vec<String>) {
    let compatibility = match old.table {
        Some(_) => new.columns.compare(&old.schema),
        None => new.columns.compare_entries(&old.schema),
    };
    match compatibility {
        Compatibility::Same => (RestoreOutcome::Restored, Vec::new()),
        Compatibility::Migrated(notes) => (RestoreOutcome::Migrated, notes),
        Compatibility::Refused(reason) => (RestoreOutcome::Refused, vec![reason]),
    }
}

fn add_new(program: &Program, manifest: &Manifest, declared: &[DeclaredState], report: &mut RestoreReport) {
    for new in declared {
        let is_known = manifest
            .vertices
            .iter()
            .flat_map(|vertex| &vertex.subtasks)
            .flat_map(|subtask| &subtask.keyed_states)
            .any(|state| state.operator == new.operator && state.name == new.name);
        if is_known {
            continue;
        }
        let operators = program.job_graph.vertices.iter().flat_map(|vertex| &vertex.operators);
        let name = operators.into_iter().find(|operator| operator.id == new.operator).map(|o| o.name.clone());
        report.entries.push(RestoreEntry {
            operator: name.unwrap_or_default(),
            operator_id: new.operator.to_string(),
            state: Some(new.name.clone()),
            outcome: RestoreOutcome::New,
            notes: Vec::new(),
        });
    }
}
