//! The states of a savepoint or checkpoint as a list.

use comfy_table::{CellAlignment, Table};
use flott_checkpoint::Manifest;
use flott_core::Result;
use serde_json::{Value, json};

use super::Form;
use super::columns;
use super::rows::csv_line;
use super::states::{Kind, State, TableName, table_names};
use crate::{format, output};

/// Prints the list.
pub(super) fn print(form: Form, folder: &str, manifest: &Manifest, states: &[State]) -> Result<()> {
    let text = match form {
        Form::Table => format!("{}\n", text(folder, manifest, states)),
        Form::Json => format!("{:#}\n", json(folder, manifest, states)),
        Form::Csv => csv(states),
    };
    output::write(text.as_bytes()).map(drop)
}

fn text(folder: &str, manifest: &Manifest, states: &[State]) -> String {
    let what = if manifest.is_savepoint { "Savepoint" } else { "Checkpoint" };
    let mut text = format!(
        "{what} {} of job '{}' ({}), {}\nin {folder}\n\n",
        manifest.checkpoint,
        format::printable(&manifest.job_name),
        manifest.job,
        format::utc(manifest.triggered_ms)
    );
    if states.is_empty() {
        return text + "It has no state.";
    }
    let mut table = Table::new();
    table.set_header(["OPERATOR", "STATE", "COLUMNS OR KIND", "ROWS", "BYTES", "FILES"]);
    for state in states {
        let columns = match state.kind {
            Kind::Keyed if state.is_described => columns::text(&state.schema),
            kind => kind.name().to_owned(),
        };
        table.add_row([
            format::printable(&state.operator),
            format::printable(&state.name),
            format::printable(&columns),
            if state.is_described { format::count(state.rows) } else { "?".to_owned() },
            format::count(state.bytes),
            format::count(state.files.len() as u64),
        ]);
    }
    for index in 3..=5 {
        if let Some(column) = table.column_mut(index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    text += &format::table(table);
    let long: Vec<String> = tables(manifest, states)
        .into_iter()
        .flatten()
        .filter(|name| name.operator.is_some())
        .map(|name| format::printable(&name.to_sql()))
        .collect();
    if !long.is_empty() {
        text += &format!("\n\nTables whose names need the operator: {}", long.join(", "));
    }
    text
}

/// The table of each state, for what can be queried.
fn tables(manifest: &Manifest, states: &[State]) -> Vec<Option<TableName>> {
    if manifest.is_savepoint { table_names(states) } else { vec![None; states.len()] }
}

fn json(folder: &str, manifest: &Manifest, states: &[State]) -> Value {
    let described = states.iter().zip(tables(manifest, states)).map(|(state, table)| {
        let columns: Vec<Value> =
            columns::of(&state.schema).into_iter().map(|(name, kind)| json!({ "name": name, "type": kind })).collect();
        json!({
            "operator": state.operator,
            "operator-id": state.operator_id.to_string(),
            "state": state.name,
            "kind": state.kind.name(),
            "table": table.map(|table| table.to_sql()),
            "columns": columns,
            "rows": state.is_described.then_some(state.rows),
            "bytes": state.bytes,
            "files": state.files.iter().map(|file| &file.path).collect::<Vec<_>>(),
        })
    });
    json!({
        "location": folder,
        "savepoint": manifest.is_savepoint,
        "format-version": manifest.version,
        "job": manifest.job.to_string(),
        "job-name": manifest.job_name,
        "checkpoint": manifest.checkpoint,
        "timestamp": manifest.triggered_ms,
        "states": described.collect::<Vec<Value>>(),
    })
}

fn csv(states: &[State]) -> String {
    let header = ["operator", "state", "kind", "columns", "rows", "bytes", "files"];
    let mut text = csv_line(header.into_iter().map(|name| Some(name.to_owned())));
    for state in states {
        text += &csv_line(
            [
                Some(state.operator.clone()),
                Some(state.name.clone()),
                Some(state.kind.name().to_owned()),
                (state.kind == Kind::Keyed).then(|| columns::text(&state.schema)),
                state.is_described.then(|| state.rows.to_string()),
                Some(state.bytes.to_string()),
                Some(state.files.len().to_string()),
            ]
            .into_iter(),
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use flott_checkpoint::SubtaskSnapshot;

    use super::*;
    use crate::state::states;
    use crate::state::states::tests::{file, keyed, manifest, vertex};

    fn savepoint() -> Manifest {
        let table = |name: &str| Some(file(&format!("Count/{name}/0-0.parquet")));
        let states = vec![keyed(1, "counts", 1_234, table("counts")), keyed(2, "seen", 0, table("seen"))];
        let subtask = SubtaskSnapshot { keyed_states: states, ..SubtaskSnapshot::default() };
        manifest(vec![vertex(&[(1, "Count"), (2, "Dedupe")], vec![subtask])])
    }

    #[test]
    fn a_savepoint_is_listed_by_operator_and_state() {
        let manifest = savepoint();
        let states = states::of(&manifest, "file:///s");
        expect![[r#"
            Savepoint 3 of job 'flights' (07070707070707070707070707070707), 1970-01-01 00:00:00Z
            in file:///s

            OPERATOR  STATE   COLUMNS OR KIND            ROWS   BYTES  FILES
            Count     counts  key string, value uint64  1,234  12,340      1
            Dedupe    seen    key string, value uint64      0       0      1"#]]
        .assert_eq(&text("file:///s", &manifest, &states));
        expect![[r#"
            operator,state,kind,columns,rows,bytes,files
            Count,counts,keyed,"key string, value uint64",1234,12340,1
            Dedupe,seen,keyed,"key string, value uint64",0,0,1
        "#]]
        .assert_eq(&csv(&states));
        let value = json("file:///s", &manifest, &states);
        let state = &value["states"][0];
        assert_eq!((&state["table"], &state["rows"]), (&json!("counts"), &json!(1_234)));
        assert_eq!(state["columns"][1], json!({ "name": "value", "type": "uint64" }));
        assert_eq!(state["files"], json!(["file:///s/Count/counts/0-0.parquet"]));
    }

    #[test]
    fn a_checkpoint_has_no_tables_and_a_long_name_is_told() {
        let mut manifest = savepoint();
        for keyed in &mut manifest.vertices[0].subtasks[0].keyed_states {
            keyed.name = "same".to_owned();
        }
        let states = states::of(&manifest, "file:///s");
        let listed = text("file:///s", &manifest, &states);
        assert!(listed.ends_with("Tables whose names need the operator: Count.same, Dedupe.same"), "{listed}");
        manifest.is_savepoint = false;
        let listed = text("file:///s", &manifest, &states);
        assert!(listed.starts_with("Checkpoint 3") && !listed.contains("Tables"), "{listed}");
        assert!(json("file:///s", &manifest, &states)["states"][0]["table"].is_null());
    }
}
