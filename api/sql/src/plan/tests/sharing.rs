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
    let uids = planned.plan.nodes.iter().map(|node| node.uid.clone());
    uids.filter(|uid| uid.starts_with("GroupAggregate-")).collect()
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
    expect![[r#"
        0 TableSourceScan(table=[[bid]], fields=[auction, price, channel, ts]) [I]
        1 WatermarkAssigner(rowtime=[ts], watermark=[ts - INTERVAL '4 s']) [I] <- 0 forward
        2 Calc(select=[auction]) [I] <- 1 forward
        3 GroupAggregate(groupBy=[auction], select=[auction, COUNT(*) AS n]) [I,UB,UA] <- 2 hash[auction]
        4 Sink(table=[a], fields=[auction, n]) [NONE] <- 3 forward
        5 Calc(select=[price, channel], where=[price > 3]) [I] <- 1 forward
        6 Sink(table=[b], fields=[price, channel]) [NONE] <- 5 forward
        7 Calc(select=[auction AS x, n + 1 AS n + Int64(1)]) [I,UB,UA] <- 3 forward
        8 Sink(table=[c], fields=[x, n + Int64(1)]) [NONE] <- 7 forward
    "#]]
    .assert_eq(&planned.to_string());
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
    expect![[r#"
        {
            "GroupAggregate-d9213691cf11b3ba",
        }
    "#]]
    .assert_debug_eq(&uids(&alone));
}

#[test]
fn what_is_random_is_not_shared() {
    let planned =
        plan(&[named("SELECT random() FROM side", "a"), named("SELECT random() FROM side", "b")], &settings());
    expect![[r#"
        0 TableSourceScan(table=[[side]], fields=[key]) [I]
        1 Calc(select=[random()]) [I] <- 0 forward
        2 Sink(table=[a], fields=[random()]) [NONE] <- 1 forward
        3 Calc(select=[random()]) [I] <- 0 forward
        4 Sink(table=[b], fields=[random()]) [NONE] <- 3 forward
    "#]]
    .assert_eq(&planned.expect("a plan").to_string());
    // And is not computed anew where it is used twice.
    let twice = plan(&[select("SELECT r, r + 1 FROM (SELECT random() AS r FROM side)")], &settings()).expect("a plan");
    expect![[r#"
        0 TableSourceScan(table=[[side]], fields=[key]) [I]
        1 Calc(select=[random() AS r]) [I] <- 0 forward
        2 Calc(select=[r, r + 1 AS r + Int64(1)]) [I] <- 1 forward
        3 Sink(table=[out], fields=[r, r + Int64(1)]) [NONE] <- 2 forward
    "#]]
    .assert_eq(&twice.to_string());
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
    expect![[r#"
        == Logical Plan ==
        Sink(table=[a])
          Projection: a.auction, a.n, b.item
            Inner Join: a.auction = b.id
              SubqueryAlias: a
                Projection: bid.auction, count(Int64(1)) AS count(*) AS n
                  Aggregate: groupBy=[[bid.auction]], aggr=[[count(Int64(1))]]
                    TableScan: bid projection=[auction]
              SubqueryAlias: b
                TableScan: auction projection=[id, item]
        Sink(table=[b])
          Projection: bid.auction, count(Int64(1)) AS count(*) AS n
            Aggregate: groupBy=[[bid.auction]], aggr=[[count(Int64(1))]]
              TableScan: bid projection=[auction]

        == Physical Plan ==
        Sink(table=[a], fields=[auction, n, item]) changelogMode=[NONE]
        +- Calc(select=[auction, n, item]) changelogMode=[I,UB,UA]
           +- Join(joinType=[InnerJoin], where=[auction = id], select=[auction, n, id, item], leftInputSpec=[JoinKeyContainsUniqueKey], rightInputSpec=[NoUniqueKey]) changelogMode=[I,UB,UA]
              :- GroupAggregate(groupBy=[auction], select=[auction, COUNT(*) AS n]) [reuse_id=1] changelogMode=[I,UB,UA]
              :  +- Exchange(distribution=[hash[auction]])
              :     +- Calc(select=[auction]) changelogMode=[I]
              :        +- WatermarkAssigner(rowtime=[ts], watermark=[ts - INTERVAL '4 s']) changelogMode=[I]
              :           +- TableSourceScan(table=[[bid]], fields=[auction, ts]) changelogMode=[I]
              +- Exchange(distribution=[hash[id]])
                 +- Calc(select=[id, item]) changelogMode=[I]
                    +- WatermarkAssigner(rowtime=[ts], watermark=[ts - INTERVAL '4 s']) changelogMode=[I]
                       +- TableSourceScan(table=[[auction]], fields=[id, item, ts]) changelogMode=[I]

        Sink(table=[b], fields=[auction, n]) changelogMode=[NONE]
        +- Reused(reference_id=[1])

        == State ==
        GroupAggregate(groupBy=[auction], select=[auction, COUNT(*) AS n]) (GroupAggregate-d9213691cf11b3ba): a row of aggregates for each key, for ever
        Join(joinType=[InnerJoin], where=[auction = id], select=[auction, n, id, item], leftInputSpec=[JoinKeyContainsUniqueKey], rightInputSpec=[NoUniqueKey]) (Join-f9e22b8d6662eae1): all rows of both inputs, for ever

        == Warnings ==
        GroupAggregate keeps a row of aggregates for each key for ever: SET 'table.exec.state.ttl' to for how long an unused one is kept, if keys do not come back
        Join keeps all rows of both inputs for ever: SET 'table.exec.state.ttl' to for how long an unused one is kept, if keys do not come back

        == Job Graph ==
        0: TableSourceScan -> WatermarkAssigner -> Calc (parallelism default)
        1: GroupAggregate -> Sink (parallelism default) <- 0 Hash
        2: TableSourceScan -> WatermarkAssigner -> Calc (parallelism default)
        3: Join -> Calc -> Sink (parallelism default) <- 1 Forward <- 2 Hash
    "#]].assert_eq(&explain(&queries, &settings()).expect("a plan"));
    let settings = Settings { state_ttl_ms: 3_600_000, ..settings() };
    let explained = explain(&[named(COUNTS, "b")], &settings).expect("a plan");
    assert!(explained.contains("1 h after its last use") && !explained.contains("Warnings"), "{explained}");
}
