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
    into(
        COUNTS,
        Changelog::Upsert,
        &[0],
        expect![[r#"
            0 TableSourceScan(table=[[bid]], fields=[auction, ts]) [I]
            1 WatermarkAssigner(rowtime=[ts], watermark=[ts - INTERVAL '4 s']) [I] <- 0 forward
            2 Calc(select=[auction]) [I] <- 1 forward
            3 GroupAggregate(groupBy=[auction], select=[auction, COUNT(*) AS n]) [I,UA] <- 2 hash[auction]
            4 Sink(table=[out], fields=[auction, n]) [NONE] <- 3 forward
        "#]],
    );
    into(
        COUNTS,
        Changelog::All,
        &[],
        expect![[r#"
            0 TableSourceScan(table=[[bid]], fields=[auction, ts]) [I]
            1 WatermarkAssigner(rowtime=[ts], watermark=[ts - INTERVAL '4 s']) [I] <- 0 forward
            2 Calc(select=[auction]) [I] <- 1 forward
            3 GroupAggregate(groupBy=[auction], select=[auction, COUNT(*) AS n]) [I,UB,UA] <- 2 hash[auction]
            4 Sink(table=[out], fields=[auction, n]) [NONE] <- 3 forward
        "#]],
    );
    into(
        "SELECT id, v FROM changes",
        Changelog::Upsert,
        &[0],
        expect![[r#"
        0 TableSourceScan(table=[[changes]], fields=[id, v]) [I,UB,UA,D]
        1 DropUpdateBefore [I,UA,D] <- 0 forward
        2 Sink(table=[out], fields=[id, v]) [NONE] <- 1 forward
    "#]],
    );
    into(
        "SELECT id, v FROM changes WHERE v > 5",
        Changelog::Upsert,
        &[0],
        expect![[r#"
            0 TableSourceScan(table=[[changes]], fields=[id, v]) [I,UB,UA,D]
            1 Calc(select=[id, v], where=[v > 5]) [I,UB,UA,D] <- 0 forward
            2 Sink(table=[out], fields=[id, v]) [NONE] <- 1 forward
        "#]],
    );
    into(
        "SELECT id, v FROM changes WHERE id > 5",
        Changelog::Upsert,
        &[0],
        expect![[r#"
        0 TableSourceScan(table=[[changes]], fields=[id, v]) [I,UB,UA,D]
        1 DropUpdateBefore [I,UA,D] <- 0 forward
        2 Calc(select=[id, v], where=[id > 5]) [I,UA,D] <- 1 forward
        3 Sink(table=[out], fields=[id, v]) [NONE] <- 2 forward
    "#]],
    );
    into(
        "SELECT id, v FROM upserts",
        Changelog::All,
        &[],
        expect![[r#"
        0 TableSourceScan(table=[[upserts]], fields=[id, v]) [I,UA,D]
        1 ChangelogNormalize(key=[id]) [I,UB,UA,D] <- 0 hash[id]
        2 Sink(table=[out], fields=[id, v]) [NONE] <- 1 forward
    "#]],
    );
}

#[test]
fn a_sink_by_another_key_says_what_counts() {
    into(
        COUNTS,
        Changelog::Upsert,
        &[1],
        expect![[
            "the primary key of 'out' is (n), and the query is unique by (auction): rows of different keys may overwrite each other. Say what counts: ON CONFLICT DO DEDUPLICATE (the latest; keeps all rows), DO ERROR or DO NOTHING"
        ]],
    );
    // All keys within the primary key.
    into(
        COUNTS,
        Changelog::Upsert,
        &[0, 1],
        expect![[r#"
            0 TableSourceScan(table=[[bid]], fields=[auction, ts]) [I]
            1 WatermarkAssigner(rowtime=[ts], watermark=[ts - INTERVAL '4 s']) [I] <- 0 forward
            2 Calc(select=[auction]) [I] <- 1 forward
            3 GroupAggregate(groupBy=[auction], select=[auction, COUNT(*) AS n]) [I,UB,UA] <- 2 hash[auction]
            4 Sink(table=[out], fields=[auction, n]) [NONE] <- 3 forward
        "#]],
    );
    let logical = query(COUNTS);
    let mut sink = sink(&logical, "out", Changelog::Upsert, &[1]);
    sink.on_conflict = Some(ConflictStrategy::Deduplicate);
    let planned = plan(&[SinkQuery { plan: logical, sink }], &settings()).expect("a plan");
    expect![[r#"
        0 TableSourceScan(table=[[bid]], fields=[auction, ts]) [I]
        1 WatermarkAssigner(rowtime=[ts], watermark=[ts - INTERVAL '4 s']) [I] <- 0 forward
        2 Calc(select=[auction]) [I] <- 1 forward
        3 GroupAggregate(groupBy=[auction], select=[auction, COUNT(*) AS n]) [I,UB,UA] <- 2 hash[auction]
        4 SinkMaterializer(key=[n], conflict=[Deduplicate]) [I,UA,D] <- 3 hash[n]
        5 Sink(table=[out], fields=[auction, n]) [NONE] <- 4 forward
    "#]]
    .assert_eq(&planned.to_string());
}

#[test]
fn a_sink_that_is_appended_to_refuses_updates_by_name() {
    into(
        COUNTS,
        Changelog::InsertOnly,
        &[],
        expect![[
            "'out' can only be appended to, and GroupAggregate(groupBy=[auction], select=[auction, COUNT(*) AS n]) makes updates: write to a table that takes them (an upsert or debezium-json one), aggregate by windows, or set 'execution.runtime-mode' = 'batch' for a final result"
        ]],
    );
    into(
        "SELECT n + 1 FROM (SELECT auction, count(*) AS n FROM bid GROUP BY auction) WHERE n > 4",
        Changelog::InsertOnly,
        &[],
        expect![
            "'out' can only be appended to, and GroupAggregate(groupBy=[auction], select=[auction, COUNT(*) AS count(Int64(1))]) makes updates and deletes: write to a table that takes them (an upsert or debezium-json one), aggregate by windows, or set 'execution.runtime-mode' = 'batch' for a final result"
        ],
    );
    into(
        "SELECT v FROM changes",
        Changelog::InsertOnly,
        &[],
        expect![[
            "'out' can only be appended to, and the table 'changes' makes updates and deletes: write to a table that takes them (an upsert or debezium-json one), aggregate by windows, or set 'execution.runtime-mode' = 'batch' for a final result"
        ]],
    );
    into(
        "SELECT b.price FROM bid b LEFT JOIN auction a ON b.auction = a.id",
        Changelog::InsertOnly,
        &[],
        expect![[
            "'out' can only be appended to, and Join(joinType=[LeftOuterJoin], where=[auction = id], select=[auction, price, id], leftInputSpec=[NoUniqueKey], rightInputSpec=[NoUniqueKey]) makes updates and deletes: write to a table that takes them (an upsert or debezium-json one), aggregate by windows, or set 'execution.runtime-mode' = 'batch' for a final result"
        ]],
    );
    into(
        COUNTS,
        Changelog::Upsert,
        &[],
        expect![["'out' takes updates by primary key, and has none: declare PRIMARY KEY (…) NOT ENFORCED"]],
    );
    // Final rows are taken.
    into(
        "SELECT window_start, count(*) FROM bid10 GROUP BY window_start, window_end",
        Changelog::InsertOnly,
        &[],
        expect![[r#"
            0 TableSourceScan(table=[[bid]], fields=[ts]) [I]
            1 WatermarkAssigner(rowtime=[ts], watermark=[ts - INTERVAL '4 s']) [I] <- 0 forward
            2 WindowAggregate(window=[TUMBLE(time_col=[ts], size=[10 s])], select=[COUNT(*), start('w$) AS window_start, end('w$) AS window_end]) [I] x1 <- 1 single
            3 Calc(select=[window_start, COUNT(*) AS count(*)]) [I] x1 <- 2 forward
            4 Sink(table=[out], fields=[window_start, count(*)]) [NONE] x1 <- 3 forward
        "#]],
    );
}

#[test]
fn over_windows_tell_what_is_wanted_of_updates() {
    // By the key of its rows a sink knows which of them is another than before.
    into(
        "SELECT id, rank() OVER (ORDER BY v) AS r FROM changes",
        Changelog::Upsert,
        &[0],
        expect![[r#"
            0 TableSourceScan(table=[[changes]], fields=[id, v]) [I,UB,UA,D]
            1 OverAggregate(orderBy=[v ASC NULLS LAST], window=[ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW], select=[id, v, RANK() AS rank() ORDER BY [changes.v ASC NULLS LAST] RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW]) [I,UA,D] x1 <- 0 single
            2 Calc(select=[id, rank() ORDER BY [changes.v ASC NULLS LAST] RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW AS r]) [I,UA,D] x1 <- 1 forward
            3 Sink(table=[out], fields=[id, r]) [NONE] x1 <- 2 forward
        "#]],
    );
    into(
        "SELECT price, sum(price) OVER (PARTITION BY auction ORDER BY price) AS s FROM bid",
        Changelog::InsertOnly,
        &[],
        expect![[
            "'out' can only be appended to, and OverAggregate(partitionBy=[auction], orderBy=[price ASC NULLS LAST], window=[RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW], select=[auction, price, SUM(price) AS sum(bid.price) PARTITION BY [bid.auction] ORDER BY [bid.price ASC NULLS LAST] RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW]) makes updates: write to a table that takes them (an upsert or debezium-json one), aggregate by windows, or set 'execution.runtime-mode' = 'batch' for a final result"
        ]],
    );
}

#[test]
fn changes_that_repeat_are_completed() {
    let settings = Settings { cdc_events_duplicate: true, ..settings() };
    let logical = query("SELECT sum(v) FROM changes");
    let sink = sink(&logical, "out", Changelog::All, &[]);
    let planned = plan(&[SinkQuery { plan: logical, sink }], &settings).expect("a plan");
    expect![[r#"
        0 TableSourceScan(table=[[changes]], fields=[id, v]) [I,UB,UA,D]
        1 DropUpdateBefore [I,UA,D] <- 0 forward
        2 Calc(select=[v, id]) [I,UA,D] <- 1 forward
        3 ChangelogNormalize(key=[id]) [I,UB,UA,D] <- 2 hash[id]
        4 Calc(select=[v]) [I,UB,UA,D] <- 3 forward
        5 GroupAggregate(select=[SUM(v) AS sum(changes.v)]) [I,UB,UA,D] x1 <- 4 single
        6 Sink(table=[out], fields=[sum(changes.v)]) [NONE] x1 <- 5 forward
    "#]]
    .assert_eq(&planned.to_string());
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
    expect![[r#"
        0 TableSourceScan(table=[[changes]], fields=[id, v]) [I,UB,UA,D] x3
        1 DropUpdateBefore [I,UA,D] x3 <- 0 forward
        2 Calc(select=[id, v + 1 AS v]) [I,UA,D] <- 1 hash[id]
        3 Sink(table=[out], fields=[id, v]) [NONE] x2 <- 2 hash[id]
    "#]]
    .assert_eq(&planned.to_string());
}
