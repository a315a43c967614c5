//! The states of a manifest, each over all subtasks, and the names of their tables.

use flott_checkpoint::{FileHandle, Manifest, Redistribution, SubtaskSnapshot, VertexSnapshot};
use flott_core::ids::OperatorId;

/// What kind of state it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// By key.
    Keyed,
    /// Elements, of which each subtask gets some after a restore.
    Split,
    /// Elements, of which each subtask gets all after a restore.
    Union,
    /// Splits of a source that no subtask had been given yet.
    Splits,
}

impl Kind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Keyed => "keyed",
            Self::Split => "operator, split",
            Self::Union => "operator, union",
            Self::Splits => "source splits",
        }
    }
}

/// One state of an operator.
#[derive(Clone, Debug)]
pub(super) struct State {
    /// The operator's name.
    pub(super) operator: String,
    pub(super) operator_id: OperatorId,
    pub(super) name: String,
    pub(super) kind: Kind,
    /// The columns as the manifest has them; empty for what is not keyed.
    pub(super) schema: String,
    /// Entries or elements.
    pub(super) rows: u64,
    pub(super) bytes: u64,
    /// The files that it lies in, with full URLs: a savepoint's are its alone, a checkpoint's hold other states too.
    pub(super) files: Vec<FileHandle>,
    /// Whether the manifest says more of it than that it is there, which version 1 did not for keyed state.
    pub(super) is_described: bool,
}

/// The states of a checkpoint or savepoint whose folder is `folder`, by vertex and operator.
pub(super) fn of(manifest: &Manifest, folder: &str) -> Vec<State> {
    manifest.vertices.iter().flat_map(|vertex| of_vertex(vertex, folder)).collect()
}

fn of_vertex(vertex: &VertexSnapshot, folder: &str) -> Vec<State> {
    let mut states: Vec<State> = Vec::new();
    for subtask in &vertex.subtasks {
        for keyed in &subtask.keyed_states {
            let state = entry(&mut states, vertex, keyed.operator, &keyed.name, Kind::Keyed);
            state.schema.clone_from(&keyed.schema);
            state.rows += keyed.rows;
            state.bytes += keyed.bytes;
            state.files.extend(keyed.files().map(|file| file.resolve(folder)));
            match &keyed.runs {
                Some(runs) => state.bytes += runs.iter().map(|run| run.file.bytes).sum::<u64>(),
                None if keyed.table.is_none() => {
                    state.files.extend(subtask.keyed_files.iter().map(|file| file.resolve(folder)));
                }
                None => {}
            }
        }
        if subtask.keyed_states.is_empty() {
            add_undescribed(&mut states, vertex, subtask, folder);
        }
        for operator in &subtask.operator_states {
            let kind = match operator.redistribution {
                Redistribution::Split => Kind::Split,
                Redistribution::Union => Kind::Union,
            };
            let state = entry(&mut states, vertex, operator.operator, &operator.name, kind);
            state.rows += operator.elements.len() as u64;
            state.bytes += bytes(&operator.elements);
        }
    }
    if let (Some(&source), false) = (vertex.operators.first(), vertex.unassigned_splits.is_empty()) {
        let state = entry(&mut states, vertex, source, "unassigned splits", Kind::Splits);
        state.rows = vertex.unassigned_splits.len() as u64;
        state.bytes = bytes(&vertex.unassigned_splits);
    }
    let position = |state: &State| vertex.operators.iter().position(|operator| *operator == state.operator_id);
    states.sort_by_key(|state| (position(state), state.kind != Kind::Keyed));
    states
}

/// Keyed state as version 1 of the format has it: files, and which operators they are of.
fn add_undescribed(states: &mut Vec<State>, vertex: &VertexSnapshot, subtask: &SubtaskSnapshot, folder: &str) {
    let (Some(&operator), false) = (subtask.keyed_operators.first(), subtask.keyed_files.is_empty()) else { return };
    let state = entry(states, vertex, operator, "(not described)", Kind::Keyed);
    state.is_described = false;
    state.bytes += subtask.keyed_files.iter().map(|file| file.bytes).sum::<u64>();
    state.files.extend(subtask.keyed_files.iter().map(|file| file.resolve(folder)));
}

fn bytes(elements: &[Vec<u8>]) -> u64 {
    elements.iter().map(|element| element.len() as u64).sum()
}

fn entry<'a>(
    states: &'a mut Vec<State>,
    vertex: &VertexSnapshot,
    operator: OperatorId,
    name: &str,
    kind: Kind,
) -> &'a mut State {
    let is_it = |state: &State| state.operator_id == operator && state.name == name && state.kind == kind;
    let position = states.iter().position(is_it).unwrap_or_else(|| {
        let mut names = vertex.operators.iter().zip(&vertex.operator_names);
        let operator_name = names.find(|(id, _)| **id == operator).map(|(_, name)| name.clone());
        states.push(State {
            operator: operator_name.unwrap_or_else(|| operator.to_string()),
            operator_id: operator,
            name: name.to_owned(),
            kind,
            schema: String::new(),
            rows: 0,
            bytes: 0,
            files: Vec::new(),
            is_described: true,
        });
        states.len() - 1
    });
    &mut states[position]
}

/// The name of a state's table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TableName {
    /// The operator, where the state's name alone is not unique.
    pub(super) operator: Option<String>,
    pub(super) state: String,
}

impl TableName {
    /// As it is to be written in a query.
    pub(super) fn to_sql(&self) -> String {
        let operator = self.operator.as_ref().map(|operator| format!("{}.", quoted(operator)));
        format!("{}{}", operator.unwrap_or_default(), quoted(&self.state))
    }
}

/// The table of each state; `None` for those that are none.
pub(super) fn table_names(states: &[State]) -> Vec<Option<TableName>> {
    let keyed = || states.iter().filter(|state| state.kind == Kind::Keyed);
    let name = |state: &State| {
        let same: Vec<&State> = keyed().filter(|other| other.name == state.name).collect();
        let operator = match same[..] {
            [_] => None,
            // Operators may have the same name as well; ids are unique.
            _ if same.iter().filter(|other| other.operator == state.operator).count() > 1 => {
                Some(state.operator_id.to_string())
            }
            _ => Some(state.operator.clone()),
        };
        TableName { operator, state: state.name.clone() }
    };
    states.iter().map(|state| (state.kind == Kind::Keyed).then(|| name(state))).collect()
}

fn quoted(name: &str) -> String {
    let is_plain = name.chars().all(|char| char.is_ascii_alphanumeric() || char == '_')
        && !name.starts_with(|char: char| char.is_ascii_digit())
        && !name.is_empty();
    if is_plain { name.to_owned() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}

#[cfg(test)]
pub(super) mod tests {
    use flott_checkpoint::{KeyedState, OperatorState};
    use flott_core::ids::JobId;

    use super::*;

    pub(in super::super) fn keyed(id: u8, name: &str, rows: u64, table: Option<FileHandle>) -> KeyedState {
        let schema = r#"{"format":1,"key":{"form":"arrow","type":"Utf8"},"namespace":{"form":"absent","type":"Unit"},"value":{"form":"arrow","type":"UInt64"}}"#;
        let (operator, name, schema) = (OperatorId([id; 16]), name.to_owned(), schema.to_owned());
        KeyedState { operator, name, schema, rows, bytes: 10 * rows, table, runs: None }
    }

    pub(in super::super) fn file(path: &str) -> FileHandle {
        FileHandle { path: path.to_owned(), bytes: 7, sha256: "00".repeat(32) }
    }

    pub(in super::super) fn vertex(names: &[(u8, &str)], subtasks: Vec<SubtaskSnapshot>) -> VertexSnapshot {
        VertexSnapshot {
            name: "vertex".to_owned(),
            operators: names.iter().map(|(id, _)| OperatorId([*id; 16])).collect(),
            operator_names: names.iter().map(|(_, name)| (*name).to_owned()).collect(),
            max_parallelism: 128,
            subtasks,
            unassigned_splits: Vec::new(),
            splits_discovered: false,
        }
    }

    pub(in super::super) fn manifest(vertices: Vec<VertexSnapshot>) -> Manifest {
        Manifest {
            version: flott_checkpoint::manifest::FORMAT_VERSION,
            job: JobId([7; 16]),
            job_name: "flights".to_owned(),
            generation: 1,
            checkpoint: 3,
            is_savepoint: true,
            triggered_ms: 0,
            vertices,
        }
    }

    fn subtask(keyed_states: Vec<KeyedState>) -> SubtaskSnapshot {
        SubtaskSnapshot { keyed_states, ..SubtaskSnapshot::default() }
    }

    #[test]
    fn subtasks_are_put_together() {
        let positions = OperatorState {
            operator: OperatorId([1; 16]),
            name: "positions".to_owned(),
            redistribution: Redistribution::Union,
            elements: vec![vec![1, 2], vec![3]],
        };
        let mut source =
            vertex(&[(1, "Source")], vec![SubtaskSnapshot { operator_states: vec![positions], ..Default::default() }]);
        source.unassigned_splits = vec![vec![0; 5]];
        let parts = |index: u8| {
            let path = |name: &str| Some(file(&format!("Sum/{name}/1-{index}.parquet")));
            subtask(vec![keyed(3, "b", 2, path("b")), keyed(2, "a", 1, path("a"))])
        };
        let sums = vertex(&[(2, "Sum"), (3, "Max")], vec![parts(0), parts(1)]);
        let states = of(&manifest(vec![source, sums]), "file:///s");
        let figures: Vec<_> =
            states.iter().map(|s| (s.operator.as_str(), s.name.as_str(), s.kind, s.rows, s.bytes)).collect();
        assert_eq!(
            figures,
            [
                ("Source", "positions", Kind::Union, 2, 3),
                ("Source", "unassigned splits", Kind::Splits, 1, 5),
                ("Sum", "a", Kind::Keyed, 2, 20),
                ("Max", "b", Kind::Keyed, 4, 40),
            ]
        );
        assert_eq!(states[2].files[1].path, "file:///s/Sum/a/1-1.parquet");
    }

    #[test]
    fn version_1_says_only_that_there_is_keyed_state() {
        let old = SubtaskSnapshot {
            keyed_files: vec![file("0-0.state"), file("file:///c/1-0.state")],
            keyed_operators: vec![OperatorId([2; 16])],
            ..SubtaskSnapshot::default()
        };
        let states = of(&manifest(vec![vertex(&[(2, "Sum")], vec![old.clone(), old])]), "file:///s");
        assert_eq!((states.len(), states[0].is_described, states[0].bytes), (1, false, 28));
        assert_eq!(states[0].files[0].path, "file:///s/0-0.state");
    }

    #[test]
    fn a_table_is_named_by_its_state_or_else_by_its_operator_too() {
        let names = |operators: &[(u8, &str)], states: Vec<KeyedState>| -> Vec<String> {
            let states = of(&manifest(vec![vertex(operators, vec![subtask(states)])]), "file:///s");
            table_names(&states).into_iter().map(|name| name.unwrap().to_sql()).collect()
        };
        let two = [(1, "Sum"), (2, "Sum by \"day\"")];
        assert_eq!(
            names(&two, vec![keyed(1, "sum", 1, None), keyed(2, "last seen", 1, None)]),
            ["sum", "\"last seen\""]
        );
        assert_eq!(
            names(&two, vec![keyed(1, "sum", 1, None), keyed(2, "sum", 1, None)]),
            ["Sum.sum", "\"Sum by \"\"day\"\"\".sum"]
        );
        let same = [(1, "Sum"), (2, "Sum")];
        let id = |id: &str| format!("\"{}\".sum", id.repeat(16));
        assert_eq!(names(&same, vec![keyed(1, "sum", 1, None), keyed(2, "sum", 1, None)]), [id("01"), id("02")]);
    }
}
