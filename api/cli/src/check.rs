//! What a new version of a job would make of a savepoint, for people.

use comfy_table::Table;
use flott_checkpoint::{Manifest, Store};
use flott_core::{Error, Result};
use flott_local::check::{RestoreEntry, RestoreOutcome, RestoreReport, manifest_if_readable};
use serde_json::{Value, json};

use crate::output::Format;
use crate::{block_on, format, terminal, verify};

/// Refuses a job that cannot start from the savepoint before it is submitted, and tells what changes on the way. `check` is asked
/// what the job would make of it.
pub(crate) fn before_start(savepoint: &str, check: impl FnOnce(&Manifest) -> Result<RestoreReport>) -> Result<()> {
    let store = Store::default();
    let Some(manifest) = block_on(async { Ok(manifest_if_readable(&store, savepoint).await) })? else { return Ok(()) };
    let report = check(&manifest)?;
    if !is_plain(&report) {
        terminal::say(table(&report));
    }
    refusal(&report, savepoint)
}

/// Prints what a job would make of a savepoint; whether it could not start from it. `check` is asked.
pub(crate) fn print(
    format: Format,
    savepoint: &str,
    check: impl FnOnce(&Manifest) -> Result<RestoreReport>,
) -> Result<bool> {
    // The answer is to be relied on, so it is no use if a file is damaged.
    let (folder, manifest) = block_on(verify::manifest(savepoint))?;
    let report = check(&manifest)?;
    let mut value = json(&report);
    value["savepoint"] = folder.into();
    format.print(&table(&report), &value)?;
    Ok(report.is_refused())
}

/// The report as a table.
pub(crate) fn table(report: &RestoreReport) -> String {
    if report.entries.is_empty() {
        return "Neither the savepoint nor the job has state.".to_owned();
    }
    let mut table = Table::new();
    table.set_header(["OPERATOR", "STATE", "OUTCOME", "NOTES"]);
    for entry in &report.entries {
        let RestoreEntry { operator, state, outcome, notes, .. } = entry;
        // What an operator has besides keyed state, such as positions, has no name that the user gave.
        let state = state.as_deref().unwrap_or("-");
        let notes = notes.join("; ");
        table.add_row([
            format::printable(operator),
            format::printable(state),
            name(*outcome).to_owned(),
            format::printable(&notes),
        ]);
    }
    format::table(table)
}

/// The report as JSON.
pub(crate) fn json(report: &RestoreReport) -> Value {
    json!({ "restorable": !report.is_refused(), "entries": report.entries })
}

/// Whether everything is taken as it is, so that there is nothing to tell.
pub(crate) fn is_plain(report: &RestoreReport) -> bool {
    let plain = [RestoreOutcome::Restored, RestoreOutcome::New];
    report.entries.iter().all(|entry| plain.contains(&entry.outcome))
}

/// The error for a job that cannot start from a savepoint; the table tells why.
pub(crate) fn refusal(report: &RestoreReport, savepoint: &str) -> Result<()> {
    let refused = report.entries.iter().filter(|entry| entry.outcome == RestoreOutcome::Refused).count() as u64;
    if refused == 0 {
        return Ok(());
    }
    Err(Error::input(format!("the job cannot start from {savepoint}: {} refused", format::counted(refused, "state"))))
}

fn name(outcome: RestoreOutcome) -> &'static str {
    match outcome {
        RestoreOutcome::Restored => "restored",
        RestoreOutcome::Migrated => "migrated",
        RestoreOutcome::New => "new",
        RestoreOutcome::Dropped => "dropped",
        RestoreOutcome::Refused => "refused",
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn report(outcomes: &[(Option<&str>, RestoreOutcome, &[&str])]) -> RestoreReport {
        let entry = |(state, outcome, notes): &(Option<&str>, RestoreOutcome, &[&str])| RestoreEntry {
            operator: "Totals".into(),
            operator_id: "01".repeat(16),
            state: state.map(str::to_owned),
            outcome: *outcome,
            notes: notes.iter().map(|&note| note.to_owned()).collect(),
        };
        RestoreReport { entries: outcomes.iter().map(entry).collect() }
    }

    #[test]
    fn a_report_is_a_table_of_states() {
        use RestoreOutcome::*;
        let report = report(&[
            (None, Restored, &[]),
            (Some("totals"), Migrated, &["'tips' is added", "'sum' is widened from Int32 to Int64"]),
            (Some("seen"), Refused, &["the key was Int64 and is Utf8"]),
        ]);
        expect![[r#"
            OPERATOR  STATE   OUTCOME   NOTES
            Totals    -       restored
            Totals    totals  migrated  'tips' is added; 'sum' is widened from Int32 to Int64
            Totals    seen    refused   the key was Int64 and is Utf8"#]]
        .assert_eq(&table(&report));
        assert_eq!(json(&report)["restorable"], false);
        assert_eq!(json(&report)["entries"][1]["outcome"], "migrated");
        assert!(!is_plain(&report));
        let error = refusal(&report, "file:///s").unwrap_err().to_string();
        assert_eq!(error, "the job cannot start from file:///s: 1 state refused");
    }

    #[test]
    fn there_is_nothing_to_tell_of_what_is_taken_as_it_is() {
        let plain = report(&[(Some("totals"), RestoreOutcome::Restored, &[]), (Some("a"), RestoreOutcome::New, &[])]);
        assert!(is_plain(&plain));
        refusal(&plain, "s").unwrap();
        assert!(!is_plain(&report(&[(Some("a"), RestoreOutcome::Dropped, &[])])));
        assert!(is_plain(&RestoreReport::default()));
    }
}
