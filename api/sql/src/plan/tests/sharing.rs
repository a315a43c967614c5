//! What queries have in common, and what they are known by.

use std::collections::BTreeSet;

use expect_test::expect;
use flott_core::config::Configuration;

use super::world::{check, planned, planned_with, query, select, settings, sink};
use crate::plan::{Changelog, Planned, Settings, SinkQuery, plan};

fn named(sql: &str, name: &str) -> SinkQuery {
    let plan = query(sql);
    let sink = sink(&plan, name, Changelog::All, &[]);
    SinkQuery { plan, sink }
}

fn uids(planned: &Planned) -> BTreeSet<String> {
    let uids = planned.plan.nodes.iter().map(|node| node.uid.clone());
    uids.filter(|uid| uid.starts_with("GroupAggregate-")).collect()
}

fn configured(settings: &[(&str, &str)]) -> Configuration {
    let mut config = Configuration::default();
    settings.iter().for_each(|(key, value)| config.set(key, value).expect("an option"));
    config
}

fn explained(queries: &[SinkQuery], settings: &Settings, config: &[(&str, &str)]) -> String {
    let planned = plan(queries, settings).expect("a plan");
    planned.explain(queries, &configured(config)).expect("a job")
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
            "GroupAggregate-0f7598fec4516935",
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
        TableSourceScan(table=[[bid]], fields=[auction, ts]) (TableSourceScan-0db91c2c3f173299): how far it has read
        GroupAggregate(groupBy=[auction], select=[auction, COUNT(*) AS n]) (GroupAggregate-0f7598fec4516935): a row of aggregates for each key, for ever
        TableSourceScan(table=[[auction]], fields=[id, item, ts]) (TableSourceScan-950457fd730e9a8e): how far it has read
        Join(joinType=[InnerJoin], where=[auction = id], select=[auction, n, id, item], leftInputSpec=[JoinKeyContainsUniqueKey], rightInputSpec=[NoUniqueKey]) (Join-e543699ba117567e): all rows of both inputs, for ever

        == Warnings ==
        GroupAggregate keeps a row of aggregates for each key for ever: SET 'table.exec.state.ttl' to for how long an unused one is kept, if keys do not come back
        Join keeps all rows of both inputs for ever: SET 'table.exec.state.ttl' to for how long an unused one is kept, if keys do not come back

        == Job Graph ==
        0: TableSourceScan -> WatermarkAssigner -> Calc (parallelism default)
        1: GroupAggregate -> Sink (parallelism default) <- 0 Hash
        2: TableSourceScan -> WatermarkAssigner -> Calc (parallelism default)
        3: Join -> Calc -> Sink (parallelism default) <- 1 Forward <- 2 Hash
    "#]].assert_eq(&explained(&queries, &settings(), &[]));
    let settings = Settings { state_ttl_ms: 3_600_000, ..settings() };
    let explained = explained(&[named(COUNTS, "b")], &settings, &[]);
    assert!(explained.contains("1 h after its last use") && !explained.contains("Warnings"), "{explained}");
}

#[test]
fn the_job_is_that_of_the_session() {
    let queries = [named(COUNTS, "a")];
    let given = explained(&queries, &settings(), &[("parallelism.default", "3")]);
    expect![[r#"
        0: TableSourceScan -> WatermarkAssigner -> Calc (parallelism 3)
        1: GroupAggregate -> Sink (parallelism 3) <- 0 Hash
    "#]]
    .assert_eq(given.split("== Job Graph ==\n").last().expect("a job"));
}

#[test]
fn the_execution_plan_is_json() {
    let planned = plan(&[named("SELECT auction FROM bid LIMIT 5", "a")], &settings()).expect("a plan");
    let text = planned.execution_plan(&configured(&[("parallelism.default", "2")])).expect("a job");
    let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let nodes = json["nodes"].as_array().expect("operators");
    let shown: Vec<String> = nodes
        .iter()
        .map(|node| {
            let sent = node["predecessors"][0]["ship_strategy"].as_str().unwrap_or("-");
            format!("{} {} {} {sent} {}", node["id"], node["pact"], node["parallelism"], node["vertex"])
        })
        .collect();
    expect![[r#"
        0 "Data Source" 2 - 0
        1 "Operator" 2 FORWARD 0
        2 "Operator" 2 FORWARD 0
        3 "Operator" 1 GLOBAL 1
        4 "Data Sink" 1 FORWARD 1"#]]
    .assert_eq(&shown.join("\n"));
}

#[test]
fn a_limit_of_one_query_does_not_shorten_another() {
    let limited = "SELECT key FROM side LIMIT 5";
    let reads = |queries: &[SinkQuery]| {
        let planned = plan(queries, &settings()).expect("a plan");
        let scans = planned.plan.nodes.iter().filter(|node| node.name.starts_with("TableSourceScan"));
        scans.map(|node| node.name.contains("limit=[")).collect::<Vec<bool>>()
    };
    assert_eq!(reads(&[named(limited, "a"), named(limited, "b")]), [true]);
    assert_eq!(reads(&[named(limited, "a"), named("SELECT key FROM side", "b")]), [false]);
}

/// A query of windows of a view, by auction.
fn of_windows(aggregates: &str, rows: &str) -> String {
    format!("SELECT auction, window_end, {aggregates} FROM {rows} GROUP BY auction, window_start, window_end")
}

/// The uids of the window aggregates that queries have together.
fn windowed_with(queries: &[&str], settings: &Settings) -> BTreeSet<String> {
    let queries: Vec<SinkQuery> = queries.iter().zip(["a", "b", "c"]).map(|(sql, name)| named(sql, name)).collect();
    let planned = plan(&queries, settings).expect("a plan");
    check(&planned);
    let uids = planned.plan.nodes.iter().map(|node| node.uid.clone());
    uids.filter(|uid| uid.starts_with("WindowAggregate-")).collect()
}

fn windowed(queries: &[&str]) -> BTreeSet<String> {
    windowed_with(queries, &settings())
}

#[test]
fn equal_windows_are_aggregated_once() {
    let queries = [
        named(&of_windows("count(*) AS n", "bid10"), "a"),
        named(&of_windows("sum(price) AS total", "bid10"), "b"),
        named(&of_windows("max(price) AS most, count(*) AS n", "bid10"), "c"),
    ];
    let planned = plan(&queries, &settings()).expect("a plan");
    check(&planned);
    expect![[r#"
        0 TableSourceScan(table=[[bid]], fields=[auction, price, ts]) [I]
        1 WatermarkAssigner(rowtime=[ts], watermark=[ts - INTERVAL '4 s']) [I] <- 0 forward
        2 WindowAggregate(groupBy=[auction], window=[TUMBLE(time_col=[ts], size=[10 s])], select=[auction, COUNT(*), MAX(price), SUM(price), start('w$) AS window_start, end('w$) AS window_end]) [I] <- 1 hash[auction]
        3 Calc(select=[auction, window_end, COUNT(*) AS n]) [I] <- 2 forward
        4 Sink(table=[a], fields=[auction, window_end, n]) [NONE] <- 3 forward
        5 Calc(select=[auction, window_end, SUM(price) AS total]) [I] <- 2 forward
        6 Sink(table=[b], fields=[auction, window_end, total]) [NONE] <- 5 forward
        7 Calc(select=[auction, window_end, MAX(price) AS most, COUNT(*) AS n]) [I] <- 2 forward
        8 Sink(table=[c], fields=[auction, window_end, most, n]) [NONE] <- 7 forward
    "#]]
    .assert_eq(&planned.to_string());
    // In two phases, too.
    let planned = plan(&queries, &Settings { parallelism: Some(2), ..settings() }).expect("a plan").to_string();
    assert_eq!(planned.matches("LocalWindowAggregate(").count(), 1, "{planned}");
    assert_eq!(planned.matches("GlobalWindowAggregate(").count(), 1, "{planned}");
}

#[test]
fn windows_are_equal_if_rows_windows_and_keys_are() {
    let (counts, totals) = (of_windows("count(*) AS n", "bid10"), of_windows("sum(price) AS total", "bid10"));
    let dear = of_windows("max(price) AS most", "bid10 WHERE price > 3");
    for other in [
        of_windows("sum(price) AS total", "bid_hop"),
        "SELECT seller, window_end, sum(category) AS total FROM auction10 GROUP BY seller, window_start, window_end"
            .into(),
        "SELECT channel, window_end, sum(price) AS total FROM bid10 GROUP BY channel, window_start, window_end".into(),
        dear.clone(),
        // What is random is so for each.
        of_windows("sum(price + random()) AS total", "bid10"),
    ] {
        assert_eq!(windowed(&[&counts, &other]).len(), 2, "{other}");
    }
    let sessions =
        |call: &str| format!("SELECT {call} AS n FROM bid_session GROUP BY bidder, window_start, window_end");
    let by_machine = |call: &str| of_windows(call, "bid_pt10");
    for (one, other) in [
        (counts.clone(), totals.clone()),
        (counts.clone(), of_windows("sum(price + 1) AS total, window_start", "bid10")),
        (counts.clone(), of_windows("count(*) FILTER (WHERE price > 3) AS n", "bid10")),
        (counts.clone(), of_windows("count(DISTINCT bidder) AS n", "bid10")),
        (dear, of_windows("count(*) AS n", "bid10 WHERE price > 3")),
        (sessions("count(*)"), sessions("max(price)")),
        (by_machine("count(*) AS n"), by_machine("max(price) AS most")),
    ] {
        assert_eq!(windowed(&[&one, &other]).len(), 1, "{one}; {other}");
    }
    assert_eq!(windowed_with(&[&counts, &totals], &Settings { shares_windows: false, ..settings() }).len(), 2);
}

#[test]
fn windows_of_one_query_are_shared() {
    let joined = format!(
        "SELECT a.auction, a.n, b.total FROM ({}) a JOIN ({}) b ON a.auction = b.auction AND a.window_start = b.window_start AND a.window_end = b.window_end",
        of_windows("window_start, count(*) AS n", "bid10"),
        of_windows("window_start, sum(price) AS total", "bid10")
    );
    let text = planned(&joined);
    assert_eq!(text.matches(" WindowAggregate(").count(), 1, "{text}");
    // Rows are sent by key once.
    assert!(text.contains("WindowJoin(") && text.matches("hash[").count() == 1, "{text}");
    let apart = planned_with(&joined, &Settings { shares_windows: false, ..settings() });
    assert_eq!(apart.matches(" WindowAggregate(").count(), 2, "{apart}");
}

#[test]
fn windows_of_shared_windows_are_shared() {
    let of = |outer: &str, inner: &str| {
        let below = of_windows(&format!("window_start, {inner} AS x"), "bid10");
        format!("SELECT window_start, {outer}(x) AS y FROM ({below}) GROUP BY window_start, window_end")
    };
    let (most, least) = (of("max", "count(*)"), of("min", "sum(price)"));
    assert_eq!(windowed(&[&most, &least]).len(), 2);
    // What is above keeps its state when what is below is shared.
    let totals = of_windows("sum(price) AS total", "bid10");
    assert_eq!(windowed(&[&most]).len(), 2);
    assert_eq!(windowed(&[&most, &totals]).intersection(&windowed(&[&most])).count(), 1);
}

#[test]
fn uids_of_windows_say_what_is_aggregated() {
    let (counts, totals) = (of_windows("count(*) AS n", "bid10"), of_windows("sum(price) AS total", "bid10"));
    let both = of_windows("count(*) AS n, sum(price) AS total", "bid10");
    // One that has all is as if it were alone: others come and go.
    assert_eq!(windowed(&[&both]), windowed(&[&both, &counts]));
    assert_eq!(windowed(&[&both]), windowed(&[&totals, &both, &counts]));
    // Where none has, they are one that is nobody's, whatever their order is.
    let united = windowed(&[&counts, &totals]);
    assert_eq!(united, windowed(&[&totals, &counts]));
    assert!(united.is_disjoint(&windowed(&[&counts])) && united.is_disjoint(&windowed(&[&totals])));
    assert_eq!(united, windowed(&[&counts, &totals, "SELECT price FROM bid WHERE channel = 'x'"]));
    // Savepoints know operators by them: they never change silently.
    expect!["WindowAggregate-303414f2786ff6c5"].assert_eq(&united.into_iter().collect::<Vec<_>>().join(" "));
}
