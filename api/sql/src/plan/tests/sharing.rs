//! What queries have in common, and what they are known by.

use std::collections::BTreeSet;

use expect_test::expect;

use super::world::{check, query, select, settings, sink};
use crate::plan::{Changelog, Planned, Settings, SinkQuery, explain, plan};

fn named(sql: &str, name: &str) -> SinkQuery {
    let plan = query(sql);
    let sink = sink(&plan, name, Changelog::All, &[]);
    SinkQuery { plan, sink }
}

fn uids(planned: &Planned) -> BTreeSet<String> {
    planned.plan.nodes.iter().filter(|node| node.name.contains("Aggregate")).map(|node| node.uid.clone()).collect()
}

const COUNTS: &str = "SELECT auction, count(*) AS n FROM bid GROUP BY auction";

#[test]
fn a_table_is_read_once() {
    let queries = [
        named(COUNTS, "a"),
        named("SELECT price, channel FROM bid WHERE price > 3", "b"),
        named("SELECT auction AS x, n + 1 FROM (SELECT auction, count(*) AS n FROM bid GROUP BY auction)", "c"),
    ];
    let planned = plan(&queries, &settings()).expect("a plan");
    check(&planned);
    expect![[""]].assert_eq(&planned.to_string());
}

#[test]
fn uids_say_what_is_computed() {
    let alone = plan(&[named(COUNTS, "a")], &settings()).expect("a plan");
    let others = [
        named("SELECT price, channel, ts FROM bid WHERE price > 3", "b"),
        named("SELECT bidder AS b, count(*) AS many FROM bid GROUP BY bidder", "c"),
        named("SELECT auction AS other, count(*) AS name FROM bid GROUP BY auction", "a"),
    ];
    let together = plan(&others, &settings()).expect("a plan");
    // Neither other queries nor names nor settings change them, and another query has another.
    assert_eq!(uids(&alone).len(), 1);
    assert!(uids(&together).is_superset(&uids(&alone)), "{:?} {:?}", uids(&alone), uids(&together));
    assert_eq!(uids(&together).len(), 2);
    let settings = Settings { state_ttl_ms: 3_600_000, parallelism: Some(2), ..settings() };
    assert_eq!(uids(&plan(&[named(COUNTS, "a")], &settings).expect("a plan")), uids(&alone));
    let filtered = named("SELECT auction, count(*) AS n FROM bid WHERE price > 3 GROUP BY auction", "a");
    assert_ne!(uids(&plan(&[filtered], &settings).expect("a plan")), uids(&alone));
    // Savepoints know operators by them: they never change silently.
    expect![[""]].assert_debug_eq(&uids(&alone));
}

#[test]
fn what_is_random_is_not_shared() {
    let planned =
        plan(&[named("SELECT random() FROM side", "a"), named("SELECT random() FROM side", "b")], &settings());
    expect![[""]].assert_eq(&planned.expect("a plan").to_string());
    // And is not computed anew where it is used twice.
    let twice = plan(&[select("SELECT r, r + 1 FROM (SELECT random() AS r FROM side)")], &settings()).expect("a plan");
    expect![[""]].assert_eq(&twice.to_string());
}

#[test]
fn the_plan_is_explained() {
    let queries = [
        named(
            "SELECT a.auction, a.n, b.item FROM (SELECT auction, count(*) AS n FROM bid GROUP BY auction) a JOIN auction b ON a.auction = b.id",
            "a",
        ),
        named(COUNTS, "b"),
    ];
    expect![[""]].assert_eq(&explain(&queries, &settings()).expect("a plan"));
    let settings = Settings { state_ttl_ms: 3_600_000, ..settings() };
    let explained = explain(&[named(COUNTS, "b")], &settings).expect("a plan");
    assert!(explained.contains("1 h after its last use") && !explained.contains("Warnings"), "{explained}");
}
