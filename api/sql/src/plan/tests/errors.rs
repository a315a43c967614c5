//! What cannot be planned says so, and what to do.

use std::collections::BTreeMap;

use expect_test::{Expect, expect};

use super::world::{query, query_over, refused, settings, sink, table, tables};
use crate::plan::{Changelog, Settings, SinkQuery, plan};

fn check(sql: &str, expected: Expect) {
    expected.assert_eq(&refused(sql));
}

#[test]
fn streams_have_limits() {
    check(
        "SELECT auction FROM bid ORDER BY price",
        expect![[
            "an unbounded stream cannot be sorted by 'price', which is not a time attribute: sort by time first, add a LIMIT, or run it with SET 'execution.runtime-mode' = 'batch'"
        ]],
    );
    check(
        "SELECT auction FROM bid ORDER BY ts DESC",
        expect![[
            "an unbounded stream cannot be sorted by time in descending order: its last row never comes. Sort ascending, or add a LIMIT"
        ]],
    );
    check(
        "SELECT currency FROM rates ORDER BY ts",
        expect![[
            "a stream with updates or deletes cannot be sorted by time: add a LIMIT, or run it with SET 'execution.runtime-mode' = 'batch'"
        ]],
    );
    for window in
        ["lead(price) OVER (ORDER BY pt)", "sum(price) OVER (ORDER BY pt DESC)", "sum(price) OVER (ORDER BY pt, price)"]
    {
        check(
            &format!("SELECT {window} FROM bid"),
            expect![[
                "OVER windows by PROCTIME() take rows as they come: only inserted, ordered by that alone and ascending, without LEAD, NTILE, PERCENT_RANK and CUME_DIST. Order by another column, or run it with SET 'execution.runtime-mode' = 'batch'"
            ]],
        );
    }
    check(
        "SELECT sum(price) OVER (ORDER BY price RANGE BETWEEN 5 PRECEDING AND CURRENT ROW) FROM bid",
        expect![["OVER (… RANGE BETWEEN … PRECEDING …) is ordered by one column of timestamps"]],
    );
    check(
        "SELECT sum(price) OVER (ORDER BY ts ROWS BETWEEN CURRENT ROW AND 1 FOLLOWING) FROM bid",
        expect![["OVER windows end at the CURRENT ROW: rows before or after it as their end are not supported"]],
    );
    check(
        "SELECT auction FROM bid ORDER BY price OFFSET 3",
        expect![["OFFSET without LIMIT keeps all rows of an unbounded stream: add a LIMIT"]],
    );
    check(
        "SELECT count(*) FROM bid_at GROUP BY window_start, window_end",
        expect![[
            "windows of a stream are made by a time attribute, and 'price' is none: use the column of the table's WATERMARK, or PROCTIME()"
        ]],
    );
    check(
        "SELECT price FROM badly_converted",
        expect![[
            "the right table of FOR SYSTEM_TIME AS OF has a primary key that the join's condition does not have all columns of: compare them with ="
        ]],
    );
    check(
        "SELECT unnest(tags) FROM orders",
        expect![["'Unnest: lists[__unnest_placeholder(orders.tags)|depth=1] structs[]' is not supported in a query"]],
    );
}

#[test]
fn batches_read_no_changes() {
    let logical = query("SELECT v FROM changes");
    let sink = sink(&logical, "out", Changelog::All, &[]);
    let error = plan(&[SinkQuery { plan: logical, sink }], &super::world::batch()).expect_err("batch mode");
    expect![["'changes' tells of updates and deletes, which batch mode has no use for: SET 'execution.runtime-mode' = 'streaming'"]].assert_eq(&error.to_string());
}

#[test]
fn sinks_have_the_query_s_columns() {
    let logical = query("SELECT price FROM bid");
    let other = query("SELECT price, channel FROM bid");
    let sink = sink(&other, "out", Changelog::All, &[]);
    let error = plan(&[SinkQuery { plan: logical, sink }], &settings()).expect_err("other columns");
    expect![["the query's columns are not those of 'out': it gives (Int64), the table has (Int64, Utf8)"]]
        .assert_eq(&error.to_string());
}

#[test]
fn upserts_need_a_key() {
    let mut keyless = table("keyless", &[("id", arrow::datatypes::DataType::Int64)]);
    keyless.changelog = Changelog::Upsert;
    let logical = query_over("SELECT id FROM keyless", &[keyless]);
    let sink = sink(&logical, "out", Changelog::All, &[]);
    let error = plan(&[SinkQuery { plan: logical, sink }], &settings()).expect_err("no key");
    expect![["'keyless' tells of updates by key, but has no PRIMARY KEY (…) NOT ENFORCED: declare one"]]
        .assert_eq(&error.to_string());
}

#[test]
fn options_have_types() {
    for (key, value) in [
        ("execution.runtime-mode", "fast"),
        ("table.exec.state.ttl", "soon"),
        ("table.exec.resource.default-parallelism", "0"),
        ("table.exec.source.cdc-events-duplicate", "perhaps"),
        ("table.optimizer.reuse-sub-plan-enabled", "sometimes"),
    ] {
        let error = Settings::new(&BTreeMap::from([(key.to_owned(), value.to_owned())])).expect_err(value);
        let error = error.to_string();
        assert!(error.contains(key) && error.contains(value), "{error}");
    }
    let mut bid = tables().remove(0);
    bid.options.insert("scan.parallelism".to_owned(), "many".to_owned());
    let logical = query_over("SELECT price FROM bid", &[bid]);
    let sink = sink(&logical, "out", Changelog::All, &[]);
    let error = plan(&[SinkQuery { plan: logical, sink }], &settings()).expect_err("no number");
    expect![["'scan.parallelism' = 'many' of 'bid' is not a number from 1"]].assert_eq(&error.to_string());
}
