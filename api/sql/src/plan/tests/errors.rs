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
    check("SELECT auction FROM bid ORDER BY price", expect![[""]]);
    check("SELECT auction FROM bid ORDER BY ts DESC", expect![[""]]);
    check("SELECT id FROM rates ORDER BY ts".replace("id", "currency").as_str(), expect![[""]]);
    check("SELECT sum(price) OVER (PARTITION BY auction ORDER BY price) FROM bid", expect![[""]]);
    check("SELECT sum(rate) OVER (PARTITION BY currency ORDER BY ts) FROM rates", expect![[""]]);
    check("SELECT lead(price) OVER (PARTITION BY auction ORDER BY ts) FROM bid", expect![[""]]);
    check("SELECT sum(price) OVER (ORDER BY ts ROWS BETWEEN CURRENT ROW AND 1 FOLLOWING) FROM bid", expect![[""]]);
    check("SELECT * FROM (SELECT price, rank() OVER (ORDER BY price) AS r FROM bid) WHERE r < 3", expect![[""]]);
    check("SELECT auction FROM bid ORDER BY price OFFSET 3", expect![[""]]);
    check("SELECT count(*) FROM bid_at GROUP BY window_start, window_end", expect![[""]]);
    check("SELECT price FROM badly_converted", expect![[""]]);
    check(
        "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 3) SELECT n FROM r"
            .replace("RECURSIVE r AS", "r AS")
            .as_str()
            .replace("WITH", "WITH RECURSIVE")
            .as_str(),
        expect![[""]],
    );
}

#[test]
fn batches_read_no_changes() {
    let logical = query("SELECT v FROM changes");
    let sink = sink(&logical, "out", Changelog::All, &[]);
    let error = plan(&[SinkQuery { plan: logical, sink }], &super::world::batch()).expect_err("batch mode");
    expect![[""]].assert_eq(&error.to_string());
}

#[test]
fn sinks_have_the_query_s_columns() {
    let logical = query("SELECT price FROM bid");
    let other = query("SELECT price, channel FROM bid");
    let sink = sink(&other, "out", Changelog::All, &[]);
    let error = plan(&[SinkQuery { plan: logical, sink }], &settings()).expect_err("other columns");
    expect![[""]].assert_eq(&error.to_string());
}

#[test]
fn upserts_need_a_key() {
    let mut keyless = table("keyless", &[("id", arrow::datatypes::DataType::Int64)]);
    keyless.changelog = Changelog::Upsert;
    let logical = query_over("SELECT id FROM keyless", &[keyless]);
    let sink = sink(&logical, "out", Changelog::All, &[]);
    let error = plan(&[SinkQuery { plan: logical, sink }], &settings()).expect_err("no key");
    expect![[""]].assert_eq(&error.to_string());
}

#[test]
fn options_have_types() {
    for (key, value) in [
        ("execution.runtime-mode", "fast"),
        ("table.exec.state.ttl", "soon"),
        ("table.exec.resource.default-parallelism", "0"),
        ("table.exec.source.cdc-events-duplicate", "perhaps"),
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
    expect![[""]].assert_eq(&error.to_string());
}
