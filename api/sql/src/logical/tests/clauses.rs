//! Each clause of a query, down to operators.

use expect_test::{Expect, expect};
use flott_sql_runtime::spec::OperatorSpec;

use super::world::planned;

fn check(sql: &str, expected: Expect) {
    expected.assert_eq(&planned(sql));
}

#[test]
fn windows() {
    check(
        "SELECT window_start, window_end, COUNT(*) FROM TABLE(CUMULATE(TABLE bid, DESCRIPTOR(`dateTime`), INTERVAL '1' HOUR, INTERVAL '1' DAY)) GROUP BY window_start, window_end",
        expect![[r#"
            0 TableSourceScan(table=[[default_catalog, default_database, bid]], fields=[dateTime]) [I]
            1 WatermarkAssigner(rowtime=[dateTime], watermark=[flink_subtract(dateTime, INTERVAL '4 s')]) [I] <- 0 forward
            2 WindowAggregate(window=[CUMULATE(time_col=[dateTime], max_size=[1 d], step=[1 h])], select=[COUNT(*), start('w$) AS window_start, end('w$) AS window_end]) [I] x1 <- 1 single
            3 Calc(select=[window_start, window_end, COUNT(*) AS count(Int64(1))]) [I] x1 <- 2 forward
            4 Sink(table=[SELECT], fields=[window_start, window_end, count(Int64(1))]) [NONE] x1 <- 3 forward
        "#]],
    );
    check(
        "SELECT bidder, window_start, COUNT(*) FROM TABLE(SESSION(TABLE bid PARTITION BY bidder, DESCRIPTOR(`dateTime`), INTERVAL '5' MINUTE)) GROUP BY bidder, window_start, window_end",
        expect![[r#"
            0 TableSourceScan(table=[[default_catalog, default_database, bid]], fields=[bidder, dateTime]) [I]
            1 WatermarkAssigner(rowtime=[dateTime], watermark=[flink_subtract(dateTime, INTERVAL '4 s')]) [I] <- 0 forward
            2 WindowAggregate(groupBy=[bidder], window=[SESSION(time_col=[dateTime], gap=[5 min])], select=[bidder, COUNT(*), start('w$) AS window_start, end('w$) AS window_end]) [I] <- 1 hash[bidder]
            3 Calc(select=[bidder, window_start, COUNT(*) AS EXPR$2]) [I] <- 2 forward
            4 Sink(table=[SELECT], fields=[bidder, window_start, EXPR$2]) [NONE] <- 3 forward
        "#]],
    );
    check(
        "SELECT COUNT(*) FROM TABLE(TUMBLE(DATA => TABLE bid, TIMECOL => DESCRIPTOR(`dateTime`), SIZE => INTERVAL '1' HOUR)) GROUP BY window_start, window_end",
        expect![[r#"
            0 TableSourceScan(table=[[default_catalog, default_database, bid]], fields=[dateTime]) [I]
            1 WatermarkAssigner(rowtime=[dateTime], watermark=[flink_subtract(dateTime, INTERVAL '4 s')]) [I] <- 0 forward
            2 WindowAggregate(window=[TUMBLE(time_col=[dateTime], size=[1 h])], select=[COUNT(*), start('w$) AS window_start, end('w$) AS window_end]) [I] x1 <- 1 single
            3 Calc(select=[COUNT(*) AS EXPR$0]) [I] x1 <- 2 forward
            4 Sink(table=[SELECT], fields=[EXPR$0]) [NONE] x1 <- 3 forward
        "#]],
    );
    check(
        "SELECT w.auction, w.window_end FROM TUMBLE(TABLE bid, DESCRIPTOR(`dateTime`), INTERVAL '1' HOUR) AS w",
        expect![[r#"
            0 TableSourceScan(table=[[default_catalog, default_database, bid]], fields=[auction, dateTime]) [I]
            1 WatermarkAssigner(rowtime=[dateTime], watermark=[flink_subtract(dateTime, INTERVAL '4 s')]) [I] <- 0 forward
            2 WindowTableFunction(window=[TUMBLE(time_col=[dateTime], size=[1 h])]) [I] <- 1 forward
            3 Calc(select=[auction, window_end]) [I] <- 2 forward
            4 Sink(table=[SELECT], fields=[auction, window_end]) [NONE] <- 3 forward
        "#]],
    );
}

#[test]
fn over_windows() {
    check(
        "SELECT SUM(price) OVER w, COUNT(*) OVER w FROM bid WINDOW w AS (PARTITION BY auction ORDER BY `dateTime` RANGE BETWEEN INTERVAL '1' HOUR PRECEDING AND CURRENT ROW)",
        expect![[r#"
            0 TableSourceScan(table=[[default_catalog, default_database, bid]], fields=[auction, price, dateTime]) [I]
            1 WatermarkAssigner(rowtime=[dateTime], watermark=[flink_subtract(dateTime, INTERVAL '4 s')]) [I] <- 0 forward
            2 OverAggregate(partitionBy=[auction], orderBy=[dateTime ASC], window=[RANGE BETWEEN 3600000 PRECEDING AND CURRENT ROW], select=[auction, price, dateTime, SUM(price) AS sum(bid.price) PARTITION BY [bid.auction] ORDER BY [bid.dateTime ASC NULLS FIRST] RANGE BETWEEN 3600000 PRECEDING AND CURRENT ROW, COUNT(*) AS count(Int64(1)) PARTITION BY [bid.auction] ORDER BY [bid.dateTime ASC NULLS FIRST] RANGE BETWEEN 3600000 PRECEDING AND CURRENT ROW]) [I] <- 1 hash[auction]
            3 Calc(select=[sum(bid.price) PARTITION BY [bid.auction] ORDER BY [bid.dateTime ASC NULLS FIRST] RANGE BETWEEN 3600000 PRECEDING AND CURRENT ROW AS EXPR$0, count(Int64(1)) PARTITION BY [bid.auction] ORDER BY [bid.dateTime ASC NULLS FIRST] RANGE BETWEEN 3600000 PRECEDING AND CURRENT ROW AS EXPR$1]) [I] <- 2 forward
            4 Sink(table=[SELECT], fields=[EXPR$0, EXPR$1]) [NONE] <- 3 forward
        "#]],
    );
    check(
        "SELECT LAG(price, 2, 0) OVER (PARTITION BY auction ORDER BY `dateTime`) FROM bid",
        expect![[r#"
        0 TableSourceScan(table=[[default_catalog, default_database, bid]], fields=[auction, price, dateTime]) [I]
        1 WatermarkAssigner(rowtime=[dateTime], watermark=[flink_subtract(dateTime, INTERVAL '4 s')]) [I] <- 0 forward
        2 Calc(select=[auction, price, dateTime, 0 AS $f3]) [I] <- 1 forward
        3 OverAggregate(partitionBy=[auction], orderBy=[dateTime ASC], window=[ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW], select=[auction, price, dateTime, $f3, LAG(price, 0)]) [I] <- 2 hash[auction]
        4 Calc(select=[LAG(price, 0) AS EXPR$0]) [I] <- 3 forward
        5 Sink(table=[SELECT], fields=[EXPR$0]) [NONE] <- 4 forward
    "#]],
    );
    check(
        "SELECT price FROM bid QUALIFY ROW_NUMBER() OVER (PARTITION BY auction ORDER BY `dateTime`) = 1",
        expect![[r#"
            0 TableSourceScan(table=[[default_catalog, default_database, bid]], fields=[auction, price, dateTime]) [I]
            1 WatermarkAssigner(rowtime=[dateTime], watermark=[flink_subtract(dateTime, INTERVAL '4 s')]) [I] <- 0 forward
            2 Deduplicate(keep=[FirstRow], key=[auction], order=[ROWTIME dateTime]) [I] <- 1 hash[auction]
            3 Calc(select=[price]) [I] <- 2 forward
            4 Sink(table=[SELECT], fields=[price]) [NONE] <- 3 forward
        "#]],
    );
}

#[test]
fn collections() {
    check(
        "SELECT id, tag FROM orders CROSS JOIN UNNEST(tags) AS t (tag)",
        expect![[r#"
            0 TableSourceScan(table=[[default_catalog, default_database, orders]], fields=[id, tags]) [I]
            1 Correlate(correlate=[UNNEST(tags)], joinType=[INNER], select=[id, tag]) [I] <- 0 forward
            2 Sink(table=[SELECT], fields=[id, tag]) [NONE] <- 1 forward
        "#]],
    );
    check(
        "SELECT o.id, t.tag, t.n FROM orders AS o LEFT JOIN UNNEST(o.tags) WITH ORDINALITY AS t (tag, n) ON TRUE",
        expect![[r#"
            0 TableSourceScan(table=[[default_catalog, default_database, orders]], fields=[id, tags]) [I]
            1 Correlate(correlate=[UNNEST(tags)], joinType=[LEFT], select=[id, tag, n]) [I] <- 0 forward
            2 Sink(table=[SELECT], fields=[id, tag, n]) [NONE] <- 1 forward
        "#]],
    );
    check(
        "SELECT id, k, v FROM orders, UNNEST(m) AS t (k, v) WHERE v > 1",
        expect![[r#"
            0 TableSourceScan(table=[[default_catalog, default_database, orders]], fields=[id, m]) [I]
            1 Correlate(correlate=[UNNEST(m)], joinType=[INNER], select=[id, k, v]) [I] <- 0 forward
            2 Calc(select=[id, k, v], where=[v > 1]) [I] <- 1 forward
            3 Sink(table=[SELECT], fields=[id, k, v]) [NONE] <- 2 forward
        "#]],
    );
    check(
        "SELECT x FROM UNNEST(ARRAY[1, 2]) AS t (x)",
        expect![[r#"
            0 Values(tuples=[{ 0 }]) [I] x1
            1 Calc(select=[column1, [1, 2] AS $f1]) [I] x1 <- 0 forward
            2 Correlate(correlate=[UNNEST($f1)], joinType=[INNER], select=[column1, EXPR$0]) [I] x1 <- 1 forward
            3 Calc(select=[EXPR$0 AS x]) [I] x1 <- 2 forward
            4 Sink(table=[SELECT], fields=[x]) [NONE] x1 <- 3 forward
        "#]],
    );
}

#[test]
fn versions() {
    check(
        "SELECT b.price, r.rate FROM bid AS b LEFT JOIN rates FOR SYSTEM_TIME AS OF b.`dateTime` AS r ON b.channel = r.currency",
        expect![[r#"
            0 TableSourceScan(table=[[default_catalog, default_database, bid]], fields=[price, channel, dateTime]) [I]
            1 WatermarkAssigner(rowtime=[dateTime], watermark=[flink_subtract(dateTime, INTERVAL '4 s')]) [I] <- 0 forward
            2 TableSourceScan(table=[[default_catalog, default_database, rates]], fields=[currency, rate, ts]) [I,UB,UA,D]
            3 DropUpdateBefore [I,UA,D] <- 2 forward
            4 WatermarkAssigner(rowtime=[ts], watermark=[ts]) [I,UA,D] <- 3 forward
            5 TemporalJoin(joinType=[LeftOuterJoin], where=[channel = currency], leftTime=[time_col=[dateTime]], select=[price, channel, dateTime, currency, rate, ts]) [I] <- 1 hash[channel] <- input 1 4 hash[currency]
            6 Calc(select=[price, rate]) [I] <- 5 forward
            7 Sink(table=[SELECT], fields=[price, rate]) [NONE] <- 6 forward
        "#]],
    );
    check(
        "SELECT b.price, s.`value` FROM bid AS b JOIN side_input FOR SYSTEM_TIME AS OF b.pt AS s ON b.auction = s.key AND s.`value` LIKE 'a%'",
        expect![[r#"
            0 TableSourceScan(table=[[default_catalog, default_database, bid]], fields=[auction, price, dateTime]) [I]
            1 Calc(select=[auction, price, dateTime, proctime() AS pt]) [I] <- 0 forward
            2 WatermarkAssigner(rowtime=[dateTime], watermark=[flink_subtract(dateTime, INTERVAL '4 s')]) [I] <- 1 forward
            3 Calc(select=[auction, price, pt]) [I] <- 2 forward
            4 LookupJoin(table=[default_catalog.default_database.side_input], joinType=[InnerJoin], lookup=[key=auction], where=[value LIKE 'a%'], select=[auction, price, pt, key, value]) [I] <- 3 forward
            5 Calc(select=[price, value]) [I] <- 4 forward
            6 Sink(table=[SELECT], fields=[price, value]) [NONE] <- 5 forward
        "#]],
    );
    // A constant is a key, too. A column is one once: what else it equals is a condition.
    check(
        "SELECT b.price FROM bid AS b LEFT JOIN side_input FOR SYSTEM_TIME AS OF b.pt AS s ON b.auction = s.key AND s.`value` = 'a' AND b.bidder = s.key",
        expect![[r#"
            0 TableSourceScan(table=[[default_catalog, default_database, bid]], fields=[auction, bidder, price, dateTime]) [I]
            1 Calc(select=[auction, bidder, price, dateTime, proctime() AS pt]) [I] <- 0 forward
            2 WatermarkAssigner(rowtime=[dateTime], watermark=[flink_subtract(dateTime, INTERVAL '4 s')]) [I] <- 1 forward
            3 Calc(select=[auction, bidder, price, pt, 'a' AS $f4]) [I] <- 2 forward
            4 LookupJoin(table=[default_catalog.default_database.side_input], joinType=[LeftOuterJoin], lookup=[key=auction, value=$f4], where=[key = bidder], select=[auction, bidder, price, pt, $f4, key, value]) [I] <- 3 forward
            5 Calc(select=[price]) [I] <- 4 forward
            6 Sink(table=[SELECT], fields=[price]) [NONE] <- 5 forward
        "#]],
    );
}

/// That the operators of a query are shown with these.
fn check_parts(sql: &str, parts: &[&str]) {
    let plan = planned(sql);
    parts.iter().for_each(|part| assert!(plan.contains(part), "no \"{part}\" in\n{plan}"));
}

#[test]
fn rows_of_subqueries_are_compared_by_column() {
    let of_two = |condition: &str| format!("SELECT price FROM bid WHERE {condition} (SELECT id, seller FROM auction)");
    for condition in ["(auction, bidder) IN", "ROW(auction, bidder) IN", "(auction, bidder) = ANY"] {
        check_parts(&of_two(condition), &["joinType=[LeftSemiJoin]", "hash[auction, bidder]"]);
    }
    // What may be NULL may be equal to anything: there is no key.
    for condition in ["(auction, bidder) NOT IN", "NOT (auction, bidder) IN", "(auction, bidder) <> ALL"] {
        check_parts(&of_two(condition), &["joinType=[LeftAntiJoin]", "IS NULL", "single"]);
    }
    check_parts(
        "SELECT price FROM bid WHERE (auction, bidder) IN (SELECT id, seller FROM auction WHERE category = price) AND price > 3",
        &["joinType=[LeftSemiJoin]", "price > 3"],
    );
}

#[test]
fn quantified_comparisons_are_with_extremes() {
    let of = |condition: &str| format!("SELECT price FROM bid WHERE {condition} (SELECT id FROM auction)");
    check_parts(&of("price >= ALL"), &["MAX(id)", "joinType=[LeftOuterJoin]"]);
    check_parts(&of("price < ALL"), &["MIN(id)", "joinType=[LeftOuterJoin]"]);
    check_parts(&of("price > ANY"), &["MIN(id)"]);
    check_parts(&of("price <= SOME"), &["MAX(id)"]);
    check_parts(&of("price <> ANY"), &["MIN(id)", "MAX(id)"]);
    check_parts(&of("price = SOME"), &["joinType=[LeftSemiJoin]"]);
    check_parts(
        "SELECT price, price > ALL (SELECT a.id FROM auction AS a WHERE a.seller = b.bidder) FROM bid AS b",
        &["MAX(id)", "joinType=[LeftOuterJoin]", "bidder = seller"],
    );
}

#[test]
fn equal_grouping_sets_are_told_apart() {
    let of = |sets: &str| format!("SELECT auction, GROUP_ID(), COUNT(*) FROM bid GROUP BY {sets}");
    check_parts(&of("GROUPING SETS ((auction), (auction), ())"), &["Expand(", "0 AS $e", "2 AS $e", "1 AS $e"]);
    check_parts(&of("auction"), &["GroupAggregate(groupBy=[auction]"]);
}

#[test]
fn subqueries() {
    check(
        "SELECT price FROM bid WHERE auction IN (SELECT id FROM auction WHERE category = 10)",
        expect![[r#"
        0 TableSourceScan(table=[[default_catalog, default_database, bid]], fields=[auction, price, dateTime]) [I]
        1 WatermarkAssigner(rowtime=[dateTime], watermark=[flink_subtract(dateTime, INTERVAL '4 s')]) [I] <- 0 forward
        2 TableSourceScan(table=[[default_catalog, default_database, auction]], fields=[id, dateTime, category]) [I]
        3 WatermarkAssigner(rowtime=[dateTime], watermark=[flink_subtract(dateTime, INTERVAL '4 s')]) [I] <- 2 forward
        4 Calc(select=[id], where=[category = 10]) [I] <- 3 forward
        5 Calc(select=[auction, price]) [I] <- 1 forward
        6 Join(joinType=[LeftSemiJoin], where=[auction = id], select=[auction, price], leftInputSpec=[NoUniqueKey], rightInputSpec=[NoUniqueKey]) [I] <- 5 hash[auction] <- input 1 4 hash[id]
        7 Calc(select=[price]) [I] <- 6 forward
        8 Sink(table=[SELECT], fields=[price]) [NONE] <- 7 forward
    "#]],
    );
    check(
        "SELECT price FROM bid WHERE auction NOT IN (SELECT id FROM auction)",
        expect![[r#"
            0 TableSourceScan(table=[[default_catalog, default_database, bid]], fields=[auction, price, dateTime]) [I]
            1 WatermarkAssigner(rowtime=[dateTime], watermark=[flink_subtract(dateTime, INTERVAL '4 s')]) [I] <- 0 forward
            2 TableSourceScan(table=[[default_catalog, default_database, auction]], fields=[id, dateTime]) [I]
            3 WatermarkAssigner(rowtime=[dateTime], watermark=[flink_subtract(dateTime, INTERVAL '4 s')]) [I] <- 2 forward
            4 Calc(select=[auction, price]) [I] <- 1 forward
            5 Calc(select=[id]) [I] <- 3 forward
            6 Join(joinType=[LeftAntiJoin], where=[auction IS NULL OR id IS NULL OR auction = id], select=[auction, price], leftInputSpec=[NoUniqueKey], rightInputSpec=[NoUniqueKey]) [I,D] x1 <- 4 single <- input 1 5 single
            7 Calc(select=[price]) [I,D] x1 <- 6 forward
            8 Sink(table=[SELECT], fields=[price]) [NONE] x1 <- 7 forward
        "#]],
    );
    check(
        "SELECT price FROM bid AS b WHERE EXISTS (SELECT 1 FROM auction AS a WHERE a.id = b.auction AND a.seller > 3)",
        expect![[r#"
            0 TableSourceScan(table=[[default_catalog, default_database, bid]], fields=[auction, price, dateTime]) [I]
            1 WatermarkAssigner(rowtime=[dateTime], watermark=[flink_subtract(dateTime, INTERVAL '4 s')]) [I] <- 0 forward
            2 TableSourceScan(table=[[default_catalog, default_database, auction]], fields=[id, dateTime, seller]) [I]
            3 WatermarkAssigner(rowtime=[dateTime], watermark=[flink_subtract(dateTime, INTERVAL '4 s')]) [I] <- 2 forward
            4 Calc(select=[id], where=[seller > 3]) [I] <- 3 forward
            5 Calc(select=[auction, price]) [I] <- 1 forward
            6 Join(joinType=[LeftSemiJoin], where=[auction = id], select=[auction, price], leftInputSpec=[NoUniqueKey], rightInputSpec=[NoUniqueKey]) [I] <- 5 hash[auction] <- input 1 4 hash[id]
            7 Calc(select=[price]) [I] <- 6 forward
            8 Sink(table=[SELECT], fields=[price]) [NONE] <- 7 forward
        "#]],
    );
    check(
        "SELECT price FROM bid WHERE price > (SELECT AVG(price) FROM bid)",
        expect![[r#"
        0 TableSourceScan(table=[[default_catalog, default_database, bid]], fields=[price, dateTime]) [I]
        1 WatermarkAssigner(rowtime=[dateTime], watermark=[flink_subtract(dateTime, INTERVAL '4 s')]) [I] <- 0 forward
        2 Calc(select=[price]) [I] <- 1 forward
        3 GroupAggregate(select=[AVG(price) AS EXPR$0]) [I,UB,UA] x1 <- 2 single
        4 Join(joinType=[InnerJoin], where=[price > EXPR$0], select=[price, EXPR$0], leftInputSpec=[NoUniqueKey], rightInputSpec=[JoinKeyContainsUniqueKey]) [I,UB,UA,D] x1 <- 2 single <- input 1 3 forward
        5 Calc(select=[price]) [I,UB,UA,D] x1 <- 4 forward
        6 Sink(table=[SELECT], fields=[price]) [NONE] x1 <- 5 forward
    "#]],
    );
    check(
        "WITH cheap AS (SELECT * FROM bid WHERE price < 10) SELECT auction, COUNT(*) FROM cheap GROUP BY auction HAVING COUNT(*) > 2",
        expect![[r#"
            0 TableSourceScan(table=[[default_catalog, default_database, bid]], fields=[auction, price, dateTime]) [I]
            1 WatermarkAssigner(rowtime=[dateTime], watermark=[flink_subtract(dateTime, INTERVAL '4 s')]) [I] <- 0 forward
            2 Calc(select=[auction], where=[price < 10]) [I] <- 1 forward
            3 GroupAggregate(groupBy=[auction], select=[auction, COUNT(*) AS count(Int64(1))]) [I,UB,UA] <- 2 hash[auction]
            4 Calc(select=[auction, count(Int64(1))], where=[count(Int64(1)) > 2]) [I,UB,UA,D] <- 3 forward
            5 Sink(table=[SELECT], fields=[auction, count(Int64(1))]) [NONE] <- 4 forward
        "#]],
    );
}

#[test]
fn sets() {
    check(
        "SELECT price FROM bid UNION SELECT id FROM auction",
        expect![[r#"
        0 TableSourceScan(table=[[default_catalog, default_database, bid]], fields=[price, dateTime]) [I]
        1 WatermarkAssigner(rowtime=[dateTime], watermark=[flink_subtract(dateTime, INTERVAL '4 s')]) [I] <- 0 forward
        2 TableSourceScan(table=[[default_catalog, default_database, auction]], fields=[id, dateTime]) [I]
        3 WatermarkAssigner(rowtime=[dateTime], watermark=[flink_subtract(dateTime, INTERVAL '4 s')]) [I] <- 2 forward
        4 Calc(select=[price]) [I] <- 1 forward
        5 Calc(select=[id]) [I] <- 3 forward
        6 GroupAggregate(groupBy=[price], select=[price]) [I] <- 4 hash[price] <- 5 hash[id]
        7 Sink(table=[SELECT], fields=[price]) [NONE] <- 6 forward
    "#]],
    );
    check(
        "SELECT id FROM orders INTERSECT SELECT id FROM auction",
        expect![[r#"
        0 TableSourceScan(table=[[default_catalog, default_database, orders]], fields=[id]) [I]
        1 GroupAggregate(groupBy=[id], select=[id]) [I] <- 0 hash[id]
        2 TableSourceScan(table=[[default_catalog, default_database, auction]], fields=[id, dateTime]) [I]
        3 WatermarkAssigner(rowtime=[dateTime], watermark=[flink_subtract(dateTime, INTERVAL '4 s')]) [I] <- 2 forward
        4 Calc(select=[id, CAST(id AS Int64) AS $f1]) [I] <- 1 forward
        5 Calc(select=[id]) [I] <- 3 forward
        6 Join(joinType=[LeftSemiJoin], where=[$f1 = id], select=[id, $f1], leftInputSpec=[HasUniqueKey], rightInputSpec=[NoUniqueKey]) [I] <- 4 hash[$f1] <- input 1 5 hash[id]
        7 Calc(select=[id]) [I] <- 6 forward
        8 Sink(table=[SELECT], fields=[id]) [NONE] <- 7 forward
    "#]],
    );
    check(
        "SELECT id FROM orders EXCEPT SELECT id FROM auction",
        expect![[r#"
        0 TableSourceScan(table=[[default_catalog, default_database, orders]], fields=[id]) [I]
        1 GroupAggregate(groupBy=[id], select=[id]) [I] <- 0 hash[id]
        2 TableSourceScan(table=[[default_catalog, default_database, auction]], fields=[id, dateTime]) [I]
        3 WatermarkAssigner(rowtime=[dateTime], watermark=[flink_subtract(dateTime, INTERVAL '4 s')]) [I] <- 2 forward
        4 Calc(select=[id, CAST(id AS Int64) AS $f1]) [I] <- 1 forward
        5 Calc(select=[id]) [I] <- 3 forward
        6 Join(joinType=[LeftAntiJoin], where=[$f1 = id], select=[id, $f1], leftInputSpec=[HasUniqueKey], rightInputSpec=[NoUniqueKey]) [I,D] <- 4 hash[$f1] <- input 1 5 hash[id]
        7 Calc(select=[id]) [I,D] <- 6 forward
        8 Sink(table=[SELECT], fields=[id]) [NONE] <- 7 forward
    "#]],
    );
    check(
        "SELECT id FROM orders INTERSECT ALL SELECT id FROM auction",
        expect![[r#"
            0 TableSourceScan(table=[[default_catalog, default_database, orders]], fields=[id]) [I]
            1 Calc(select=[CAST(id AS Int64) AS __c0, 1 AS __l, 0 AS __r]) [I] <- 0 forward
            2 TableSourceScan(table=[[default_catalog, default_database, auction]], fields=[id, dateTime]) [I]
            3 WatermarkAssigner(rowtime=[dateTime], watermark=[flink_subtract(dateTime, INTERVAL '4 s')]) [I] <- 2 forward
            4 Calc(select=[id AS __c0, 0 AS __l, 1 AS __r]) [I] <- 3 forward
            5 GroupAggregate(groupBy=[__c0], select=[__c0, SUM(__l) AS __left, SUM(__r) AS __right]) [I,UB,UA] <- 1 hash[__c0] <- 4 hash[__c0]
            6 Calc(select=[__c0, __left, __right, split(flink_repeat('x', flink_least(__left, __right)), '') AS $f3], where=[flink_least(__left, __right) > 0]) [I,UB,UA,D] <- 5 forward
            7 Correlate(correlate=[UNNEST($f3)], joinType=[INNER], select=[__c0, __left, __right, __times]) [I,UB,UA,D] <- 6 forward
            8 Calc(select=[__c0 AS id]) [I,UB,UA,D] <- 7 forward
            9 Sink(table=[SELECT], fields=[id]) [NONE] <- 8 forward
        "#]],
    );
    check(
        "SELECT id FROM orders EXCEPT ALL SELECT id FROM auction",
        expect![[r#"
            0 TableSourceScan(table=[[default_catalog, default_database, orders]], fields=[id]) [I]
            1 Calc(select=[CAST(id AS Int64) AS __c0, 1 AS __l, 0 AS __r]) [I] <- 0 forward
            2 TableSourceScan(table=[[default_catalog, default_database, auction]], fields=[id, dateTime]) [I]
            3 WatermarkAssigner(rowtime=[dateTime], watermark=[flink_subtract(dateTime, INTERVAL '4 s')]) [I] <- 2 forward
            4 Calc(select=[id AS __c0, 0 AS __l, 1 AS __r]) [I] <- 3 forward
            5 GroupAggregate(groupBy=[__c0], select=[__c0, SUM(__l) AS __left, SUM(__r) AS __right]) [I,UB,UA] <- 1 hash[__c0] <- 4 hash[__c0]
            6 Calc(select=[__c0, __left, __right, split(flink_repeat('x', flink_subtract(__left, __right)), '') AS $f3], where=[flink_subtract(__left, __right) > 0]) [I,UB,UA,D] <- 5 forward
            7 Correlate(correlate=[UNNEST($f3)], joinType=[INNER], select=[__c0, __left, __right, __times]) [I,UB,UA,D] <- 6 forward
            8 Calc(select=[__c0 AS id]) [I,UB,UA,D] <- 7 forward
            9 Sink(table=[SELECT], fields=[id]) [NONE] <- 8 forward
        "#]],
    );
}

#[test]
fn groups() {
    check(
        "SELECT channel, bidder, GROUPING(channel), GROUPING_ID(channel, bidder), SUM(price) FROM bid GROUP BY CUBE (channel, bidder)",
        expect![[r#"
            0 TableSourceScan(table=[[default_catalog, default_database, bid]], fields=[bidder, price, channel, dateTime]) [I]
            1 WatermarkAssigner(rowtime=[dateTime], watermark=[flink_subtract(dateTime, INTERVAL '4 s')]) [I] <- 0 forward
            2 Calc(select=[channel, bidder, price]) [I] <- 1 forward
            3 Expand(projects=[{channel, bidder, price, 0 AS $e}, {channel, NULL AS bidder, price, 1 AS $e}, {NULL AS channel, bidder, price, 2 AS $e}, {NULL AS channel, NULL AS bidder, price, 3 AS $e}]) [I] <- 2 forward
            4 GroupAggregate(groupBy=[channel, bidder, $e], select=[channel, bidder, $e, SUM(price)]) [I,UB,UA] <- 3 hash[channel, bidder, $e]
            5 Calc(select=[channel, bidder, CAST($e AS UInt8) AS __grouping_id, SUM(price) AS sum(bid.price)]) [I,UB,UA] <- 4 forward
            6 Calc(select=[channel, bidder, flink_cast(CAST(__grouping_id & 2 >> 1 AS Int32), 'BIGINT') AS EXPR$2, flink_cast(CAST(__grouping_id & 3 AS Int32), 'BIGINT') AS EXPR$3, sum(bid.price) AS EXPR$4]) [I,UB,UA] <- 5 forward
            7 Sink(table=[SELECT], fields=[channel, bidder, EXPR$2, EXPR$3, EXPR$4]) [NONE] <- 6 forward
        "#]],
    );
    check(
        "SELECT channel, COUNT(*) FROM bid GROUP BY ROLLUP (channel)",
        expect![[r#"
        0 TableSourceScan(table=[[default_catalog, default_database, bid]], fields=[channel, dateTime]) [I]
        1 WatermarkAssigner(rowtime=[dateTime], watermark=[flink_subtract(dateTime, INTERVAL '4 s')]) [I] <- 0 forward
        2 Calc(select=[channel]) [I] <- 1 forward
        3 Expand(projects=[{channel, 0 AS $e}, {NULL AS channel, 1 AS $e}]) [I] <- 2 forward
        4 GroupAggregate(groupBy=[channel, $e], select=[channel, $e, COUNT(*)]) [I,UB,UA] <- 3 hash[channel, $e]
        5 Calc(select=[channel, COUNT(*) AS EXPR$1]) [I,UB,UA] <- 4 forward
        6 Sink(table=[SELECT], fields=[channel, EXPR$1]) [NONE] <- 5 forward
    "#]],
    );
    check(
        "SELECT DISTINCT channel FROM bid",
        expect![[r#"
        0 TableSourceScan(table=[[default_catalog, default_database, bid]], fields=[channel, dateTime]) [I]
        1 WatermarkAssigner(rowtime=[dateTime], watermark=[flink_subtract(dateTime, INTERVAL '4 s')]) [I] <- 0 forward
        2 Calc(select=[channel]) [I] <- 1 forward
        3 GroupAggregate(groupBy=[channel], select=[channel]) [I] <- 2 hash[channel]
        4 Sink(table=[SELECT], fields=[channel]) [NONE] <- 3 forward
    "#]],
    );
    check(
        "SELECT channel, LISTAGG(DISTINCT url, ';'), COUNT(DISTINCT price) FILTER (WHERE price > 3) FROM bid GROUP BY channel",
        expect![[r#"
            0 TableSourceScan(table=[[default_catalog, default_database, bid]], fields=[price, channel, url, dateTime]) [I]
            1 WatermarkAssigner(rowtime=[dateTime], watermark=[flink_subtract(dateTime, INTERVAL '4 s')]) [I] <- 0 forward
            2 Calc(select=[channel, url, price, price > 3 AS $f3]) [I] <- 1 forward
            3 GroupAggregate(groupBy=[channel], select=[channel, LISTAGG(DISTINCT url) AS EXPR$1, COUNT(DISTINCT price) FILTER (WHERE price > 3) AS EXPR$2]) [I,UB,UA] <- 2 hash[channel]
            4 Sink(table=[SELECT], fields=[channel, EXPR$1, EXPR$2]) [NONE] <- 3 forward
        "#]],
    );
}

#[test]
fn expressions() {
    check(
        "SELECT id NOT BETWEEN 1 AND 2, text LIKE 'a!%\\%' ESCAPE '!', text SIMILAR TO 'a+', price IS DISTINCT FROM NULL, flag IS NOT TRUE FROM orders",
        expect![[r#"
            0 TableSourceScan(table=[[default_catalog, default_database, orders]], fields=[id, price, text, flag]) [I]
            1 Calc(select=[id < 1 OR id > 2 AS EXPR$0, text LIKE 'a\%\\%' AS EXPR$1, similar_to(text, 'a+') AS EXPR$2, price IS DISTINCT FROM NULL AS EXPR$3, flag IS DISTINCT FROM true AS EXPR$4]) [I] <- 0 forward
            2 Sink(table=[SELECT], fields=[EXPR$0, EXPR$1, EXPR$2, EXPR$3, EXPR$4]) [NONE] <- 1 forward
        "#]],
    );
    check(
        "SELECT CASE id WHEN 1 THEN 'a' WHEN 2 THEN 'b' END, IF(flag, id, 0), COALESCE(text, 'x'), NULLIF(id, 1) FROM orders",
        expect![[r#"
            0 TableSourceScan(table=[[default_catalog, default_database, orders]], fields=[id, text, flag]) [I]
            1 Calc(select=[CASE WHEN id = 1 THEN 'a' WHEN id = 2 THEN 'b' END AS EXPR$0, CASE WHEN flag THEN id ELSE 0 END AS EXPR$1, flink_coalesce(text, 'x') AS EXPR$2, flink_nullif(id, 1) AS EXPR$3]) [I] <- 0 forward
            2 Sink(table=[SELECT], fields=[EXPR$0, EXPR$1, EXPR$2, EXPR$3]) [NONE] <- 1 forward
        "#]],
    );
    check(
        "SELECT price > 1 OR price = 2, id IN (1, 2, 3), text IN ('a'), price IN (1.5, 2), text = 1 FROM orders",
        expect![[r#"
            0 TableSourceScan(table=[[default_catalog, default_database, orders]], fields=[id, price, text]) [I]
            1 Calc(select=[flink_less(1, price) OR flink_equal(price, 2) AS EXPR$0, id = 1 OR id = 2 OR id = 3 AS EXPR$1, text = 'a' AS EXPR$2, flink_equal(price, 1.5) OR flink_equal(price, 2) AS EXPR$3, flink_cast(text, NULL) = 1 AS EXPR$4]) [I] <- 0 forward
            2 Sink(table=[SELECT], fields=[EXPR$0, EXPR$1, EXPR$2, EXPR$3, EXPR$4]) [NONE] <- 1 forward
        "#]],
    );
    check(
        "SELECT JSON_VALUE(text, '$.a' RETURNING INT), JSON_QUERY(text, '$.b' WITH WRAPPER), text IS JSON OBJECT, JSON_OBJECT('a' VALUE id) FROM orders",
        expect![[r#"
            0 TableSourceScan(table=[[default_catalog, default_database, orders]], fields=[id, text]) [I]
            1 Calc(select=[flink_try_cast(json_value(text, '$.a'), 'INT') AS EXPR$0, json_query(text, '$.b', 'UNCONDITIONAL', 'NULL', 'NULL') AS EXPR$1, is_json(text, 'OBJECT') AS EXPR$2, json_object(true, 'a', id) AS EXPR$3]) [I] <- 0 forward
            2 Sink(table=[SELECT], fields=[EXPR$0, EXPR$1, EXPR$2, EXPR$3]) [NONE] <- 1 forward
        "#]],
    );
    check(
        "SELECT FLOOR(`dateTime` TO HOUR), CAST(`dateTime` AS DATE), `dateTime` + INTERVAL '1' DAY, CURRENT_TIMESTAMP IS NULL FROM bid",
        expect![[r#"
            0 TableSourceScan(table=[[default_catalog, default_database, bid]], fields=[dateTime]) [I]
            1 WatermarkAssigner(rowtime=[dateTime], watermark=[flink_subtract(dateTime, INTERVAL '4 s')]) [I] <- 0 forward
            2 Calc(select=[flink_floor(dateTime, 'HOUR') AS EXPR$0, flink_cast(dateTime, 'DATE') AS EXPR$1, flink_add(dateTime, INTERVAL '1 d') AS EXPR$2, false AS EXPR$3]) [I] <- 1 forward
            3 Sink(table=[SELECT], fields=[EXPR$0, EXPR$1, EXPR$2, EXPR$3]) [NONE] <- 2 forward
        "#]],
    );
    check(
        "SELECT id FROM orders WHERE day = '2024-01-01' AND amount > 10 AND flag",
        expect![[r#"
        0 TableSourceScan(table=[[default_catalog, default_database, orders, filter=[day = 2024-01-01 AND amount > Some(1000),10,2 AND flag]]], fields=[id, amount, day, flag]) [I]
        1 Calc(select=[id], where=[day = 2024-01-01 AND amount > Some(1000),10,2 AND flag]) [I] <- 0 forward
        2 Sink(table=[SELECT], fields=[id]) [NONE] <- 1 forward
    "#]],
    );
}

#[test]
fn orders() {
    check(
        "SELECT price FROM bid ORDER BY `dateTime`",
        expect![[r#"
        0 TableSourceScan(table=[[default_catalog, default_database, bid]], fields=[price, dateTime]) [I]
        1 WatermarkAssigner(rowtime=[dateTime], watermark=[flink_subtract(dateTime, INTERVAL '4 s')]) [I] <- 0 forward
        2 TemporalSort(orderBy=[dateTime ASC]) [I] x1 <- 1 single
        3 Calc(select=[price]) [I] x1 <- 2 forward
        4 Sink(table=[SELECT], fields=[price]) [NONE] x1 <- 3 forward
    "#]],
    );
    check(
        "SELECT channel, price FROM bid ORDER BY 2 DESC LIMIT 3 OFFSET 1",
        expect![[r#"
        0 TableSourceScan(table=[[default_catalog, default_database, bid]], fields=[price, channel, dateTime]) [I]
        1 WatermarkAssigner(rowtime=[dateTime], watermark=[flink_subtract(dateTime, INTERVAL '4 s')]) [I] <- 0 forward
        2 Calc(select=[channel, price]) [I] <- 1 forward
        3 Rank(strategy=[AppendFastStrategy], rankType=[ROW_NUMBER], rankRange=[rankStart=2, rankEnd=4], partitionBy=[], orderBy=[price DESC], select=[channel, price]) [I,UB,UA,D] x1 <- 2 single
        4 Sink(table=[SELECT], fields=[channel, price]) [NONE] x1 <- 3 forward
    "#]],
    );
    check(
        "SELECT price FROM bid ORDER BY price FETCH FIRST 2 ROWS ONLY",
        expect![[r#"
        0 TableSourceScan(table=[[default_catalog, default_database, bid]], fields=[price, dateTime]) [I]
        1 WatermarkAssigner(rowtime=[dateTime], watermark=[flink_subtract(dateTime, INTERVAL '4 s')]) [I] <- 0 forward
        2 Calc(select=[price]) [I] <- 1 forward
        3 Rank(strategy=[AppendFastStrategy], rankType=[ROW_NUMBER], rankRange=[rankStart=1, rankEnd=2], partitionBy=[], orderBy=[price ASC], select=[price]) [I,UB,UA,D] x1 <- 2 single
        4 Sink(table=[SELECT], fields=[price]) [NONE] x1 <- 3 forward
    "#]],
    );
}

#[test]
fn hints() {
    check(
        "SELECT price FROM bid /*+ OPTIONS('scan.parallelism' = '3') */ AS b",
        expect![[r#"
        0 TableSourceScan(table=[[default_catalog, default_database, bid]], fields=[price, dateTime]) [I] x3
        1 WatermarkAssigner(rowtime=[dateTime], watermark=[flink_subtract(dateTime, INTERVAL '4 s')]) [I] x3 <- 0 forward
        2 Calc(select=[price]) [I] <- 1 rebalance
        3 Sink(table=[SELECT], fields=[price]) [NONE] <- 2 forward
    "#]],
    );
}

#[test]
fn state_that_goes() {
    let ttls = |sql: &str| -> Vec<String> {
        let plan = super::world::plan_of(sql);
        let ttl = |operator: &OperatorSpec| match operator {
            OperatorSpec::Join(join) => Some(format!("join {} {}", join.left.ttl_ms, join.right.ttl_ms)),
            OperatorSpec::GroupAggregate(group) => Some(format!("group {}", group.ttl_ms)),
            _ => None,
        };
        plan.nodes.iter().filter_map(|node| ttl(&node.operator)).collect()
    };
    let join = "FROM auction AS a JOIN person ON a.seller = person.id";
    assert_eq!(ttls(&format!("SELECT a.id {join}")), ["join 0 0"]);
    assert_eq!(
        ttls(&format!("SELECT /*+ BROADCAST(a), STATE_TTL('a' = '1 s', 'person' = '2 min') */ a.id {join}")),
        ["join 1000 120000"]
    );
    // Of the query that it stands in, and of what reads the table right away.
    assert_eq!(
        ttls(&format!("SELECT /*+ STATE_TTL('a' = '1 s') */ a.id, COUNT(*) {join} WHERE a.reserve > 5 GROUP BY a.id")),
        ["join 1000 0", "group 0"]
    );
    assert_eq!(
        ttls(
            "WITH b AS (SELECT auction FROM bid WHERE price > 5) SELECT /*+ STATE_TTL('b' = '1 h') */ COUNT(*) FROM b GROUP BY auction"
        ),
        ["group 3600000"]
    );
    // The same join with and without a hint is two.
    assert_eq!(
        ttls(&format!("SELECT a.id {join} UNION ALL SELECT /*+ STATE_TTL('a' = '1 s') */ a.id {join}")),
        ["join 0 0", "join 1000 0"]
    );
}

#[test]
fn hints_that_name_nothing() {
    check(
        "SELECT /*+ STATE_TTL('auction' = '1 s') */ 1 FROM auction AS a",
        expect![[r#"
        error: syntax error at line 1, column 8: STATE_TTL names 'auction', which is no table of this FROM, or has an alias
          SELECT /*+ STATE_TTL('auction' = '1 s') */ 1 FROM auction AS a
                 ^
    "#]],
    );
    check(
        "SELECT /*+ STATE_TTL('a' = 'soon') */ 1 FROM auction AS a",
        expect![[r#"
        error: syntax error at line 1, column 8: STATE_TTL of 'a' is 'soon', which is no duration such as '1 d'
          SELECT /*+ STATE_TTL('a' = 'soon') */ 1 FROM auction AS a
                 ^
    "#]],
    );
    check(
        "SELECT /*+ STATE_TTL('s' = '1 s') */ 1 FROM (SELECT id FROM auction) AS s",
        expect![[r#"
        error: syntax error at line 1, column 8: STATE_TTL names 's', which is not a table or a view by itself: make the subquery a view, or use WITH
          SELECT /*+ STATE_TTL('s' = '1 s') */ 1 FROM (SELECT id FROM auction) AS s
                 ^
    "#]],
    );
    check(
        "SELECT /*+ STATE_TTL(a) */ 1 FROM auction AS a",
        expect![[r#"
        error: syntax error at line 1, column 8: the hint '/*+ STATE_TTL(a) */' is not of the form /*+ STATE_TTL('table' = '1 d') */
          SELECT /*+ STATE_TTL(a) */ 1 FROM auction AS a
                 ^
    "#]],
    );
}
