//! Aggregates in two phases.

use std::collections::BTreeMap;

use expect_test::{Expect, expect};

use super::world::{check, query, settings, sink};
use crate::plan::{AggregatePhases, Changelog, Planned, Settings, SinkQuery, plan};

fn planned(sql: &str, settings: &Settings) -> Planned {
    let logical = query(sql);
    let sink = sink(&logical, "out", Changelog::All, &[]);
    let planned = plan(&[SinkQuery { plan: logical, sink }], settings).expect("a plan");
    check(&planned);
    planned
}

fn parallel() -> Settings {
    Settings { parallelism: Some(2), ..settings() }
}

fn shown(sql: &str, expected: Expect) {
    expected.assert_eq(&planned(sql, &parallel()).to_string());
}

fn has_local(sql: &str, settings: &Settings) -> bool {
    planned(sql, settings).to_string().contains("Local")
}

const COUNTS: &str = "SELECT auction, count(*) AS n, max(price) AS dearest FROM bid GROUP BY auction";

#[test]
fn rows_are_aggregated_before_they_are_sent() {
    shown(
        COUNTS,
        expect![[r#"
        0 TableSourceScan(table=[[bid]], fields=[auction, price, ts]) [I] x2
        1 WatermarkAssigner(rowtime=[ts], watermark=[ts - INTERVAL '4 s']) [I] x2 <- 0 forward
        2 Calc(select=[auction, price]) [I] x2 <- 1 forward
        3 LocalGroupAggregate(groupBy=[auction], select=[auction, COUNT(*), MAX(price)]) [I] x2 <- 2 forward
        4 GlobalGroupAggregate(groupBy=[auction], select=[auction, COUNT(*) AS n, MAX(price) AS dearest]) [I,UB,UA] x2 <- 3 hash[auction]
        5 Sink(table=[out], fields=[auction, n, dearest]) [NONE] x2 <- 4 forward
    "#]],
    );
    shown(
        "SELECT auction, count(*) AS n, window_end FROM bid_hop GROUP BY auction, window_start, window_end",
        expect![[r#"
            0 TableSourceScan(table=[[bid]], fields=[auction, ts]) [I] x2
            1 WatermarkAssigner(rowtime=[ts], watermark=[ts - INTERVAL '4 s']) [I] x2 <- 0 forward
            2 LocalWindowAggregate(groupBy=[auction], window=[HOP(time_col=[ts], size=[10 s], slide=[2 s])], select=[auction, COUNT(*)]) [I] x2 <- 1 forward
            3 GlobalWindowAggregate(groupBy=[auction], window=[HOP(time_col=[ts], size=[10 s], slide=[2 s])], select=[auction, COUNT(*), start('w$) AS window_start, end('w$) AS window_end]) [I] x2 <- 2 hash[auction]
            4 Calc(select=[auction, COUNT(*) AS n, window_end]) [I] x2 <- 3 forward
            5 Sink(table=[out], fields=[auction, n, window_end]) [NONE] x2 <- 4 forward
        "#]],
    );
    shown(
        "SELECT count(*) AS n FROM bid",
        expect![[r#"
        0 TableSourceScan(table=[[bid]], fields=[ts]) [I] x2
        1 WatermarkAssigner(rowtime=[ts], watermark=[ts - INTERVAL '4 s']) [I] x2 <- 0 forward
        2 Calc(select=[]) [I] x2 <- 1 forward
        3 LocalGroupAggregate(select=[COUNT(*)]) [I] x2 <- 2 forward
        4 GlobalGroupAggregate(select=[COUNT(*) AS n]) [I,UB,UA] x1 <- 3 single
        5 Sink(table=[out], fields=[n]) [NONE] x1 <- 4 forward
    "#]],
    );
}

#[test]
fn only_where_that_may_pay_and_results_stay_the_same() {
    assert!(!has_local(COUNTS, &settings()));
    assert!(!has_local(COUNTS, &Settings { aggregate_phases: AggregatePhases::One, ..parallel() }));
    assert!(has_local(COUNTS, &Settings { aggregate_phases: AggregatePhases::Two, ..settings() }));
    assert!(has_local(COUNTS, &Settings { job_parallelism: Some(3), ..settings() }));
    // Which price is first depends on the order of rows.
    assert!(!has_local("SELECT auction, first_value(price) AS p FROM bid GROUP BY auction", &parallel()));
    // A row may be taken back of which the group is forgotten.
    let (of_changes, ttl) =
        ("SELECT v, count(*) AS n FROM changes GROUP BY v", Settings { state_ttl_ms: 1, ..parallel() });
    assert!(has_local(of_changes, &parallel()) && has_local(COUNTS, &ttl));
    assert!(!has_local(of_changes, &ttl));
}

#[test]
fn state_is_that_of_one_phase() {
    let uid = |settings: &Settings| {
        let planned = planned(COUNTS, settings);
        let node = planned.plan.nodes.iter().find(|node| node.uid.starts_with("GroupAggregate-"));
        node.expect("an aggregate").uid.clone()
    };
    assert_eq!(uid(&settings()), uid(&parallel()));
}

#[test]
fn a_strategy_is_one_that_there_is() {
    let read = |value: &str| {
        let config = BTreeMap::from([("table.optimizer.agg-phase-strategy".to_owned(), value.to_owned())]);
        Settings::new(&config).map(|settings| settings.aggregate_phases).map_err(|error| error.message)
    };
    assert_eq!(read("two_phase"), Ok(AggregatePhases::Two));
    let error = read("three").expect_err("no such strategy");
    assert!(error.contains("'three'") && error.contains("ONE_PHASE"), "{error}");
}
