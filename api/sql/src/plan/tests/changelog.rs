//! Who tells of rows before updates, and what sinks take.

use expect_test::{Expect, expect};
use flott_sql_runtime::spec::ConflictStrategy;

use super::world::{check, query, query_over, settings, sink, tables};
use crate::plan::{Changelog, Settings, SinkQuery, plan};

fn into(sql: &str, changelog: Changelog, key: &[usize], expected: Expect) {
    let logical = query(sql);
    let sink = sink(&logical, "out", changelog, key);
    match plan(&[SinkQuery { plan: logical, sink }], &settings()) {
        Ok(planned) => {
            check(&planned);
            expected.assert_eq(&planned.to_string());
        }
        Err(error) => expected.assert_eq(&error.to_string()),
    }
}

const COUNTS: &str = "SELECT auction, count(*) AS n FROM bid GROUP BY auction";

#[test]
fn a_sink_by_the_query_s_key_needs_no_rows_before_updates() {
    into(COUNTS, Changelog::Upsert, &[0], expect![[""]]);
    into(COUNTS, Changelog::All, &[], expect![[""]]);
    into("SELECT id, v FROM changes", Changelog::Upsert, &[0], expect![[""]]);
    into("SELECT id, v FROM changes WHERE v > 5", Changelog::Upsert, &[0], expect![[""]]);
    into("SELECT id, v FROM changes WHERE id > 5", Changelog::Upsert, &[0], expect![[""]]);
    into("SELECT id, v FROM upserts", Changelog::All, &[], expect![[""]]);
}

#[test]
fn a_sink_by_another_key_says_what_counts() {
    into(COUNTS, Changelog::Upsert, &[1], expect![[""]]);
    // All keys within the primary key.
    into(COUNTS, Changelog::Upsert, &[0, 1], expect![[""]]);
    let logical = query(COUNTS);
    let mut sink = sink(&logical, "out", Changelog::Upsert, &[1]);
    sink.on_conflict = Some(ConflictStrategy::Deduplicate);
    let planned = plan(&[SinkQuery { plan: logical, sink }], &settings()).expect("a plan");
    expect![[""]].assert_eq(&planned.to_string());
}

#[test]
fn a_sink_that_is_appended_to_refuses_updates_by_name() {
    into(COUNTS, Changelog::InsertOnly, &[], expect![[""]]);
    into(
        "SELECT n + 1 FROM (SELECT auction, count(*) AS n FROM bid GROUP BY auction) WHERE n > 4",
        Changelog::InsertOnly,
        &[],
        expect![[""]],
    );
    into("SELECT v FROM changes", Changelog::InsertOnly, &[], expect![[""]]);
    into(
        "SELECT b.price FROM bid b LEFT JOIN auction a ON b.auction = a.id",
        Changelog::InsertOnly,
        &[],
        expect![[""]],
    );
    into(COUNTS, Changelog::Upsert, &[], expect![[""]]);
    // Final rows are taken.
    into(
        "SELECT window_start, count(*) FROM bid10 GROUP BY window_start, window_end",
        Changelog::InsertOnly,
        &[],
        expect![[""]],
    );
}

#[test]
fn changes_that_repeat_are_completed() {
    let settings = Settings { cdc_events_duplicate: true, ..settings() };
    let logical = query("SELECT sum(v) FROM changes");
    let sink = sink(&logical, "out", Changelog::All, &[]);
    let planned = plan(&[SinkQuery { plan: logical, sink }], &settings).expect("a plan");
    expect![[""]].assert_eq(&planned.to_string());
}

#[test]
fn a_connector_s_own_parallelism_keeps_changes_in_order() {
    let mut changes = tables().into_iter().find(|table| table.name == "changes").expect("a table");
    changes.options.insert("scan.parallelism".to_owned(), "3".to_owned());
    let logical = query_over("SELECT id, v + 1 AS v FROM changes", &[changes]);
    let mut out = sink(&logical, "out", Changelog::Upsert, &[0]);
    out.options.insert("sink.parallelism".to_owned(), "2".to_owned());
    let planned = plan(&[SinkQuery { plan: logical, sink: out }], &settings()).expect("a plan");
    check(&planned);
    expect![[""]].assert_eq(&planned.to_string());
}
