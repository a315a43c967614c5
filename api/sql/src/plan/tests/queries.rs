//! Which operators queries become.

use expect_test::{Expect, expect};

use super::world::{batch, planned, planned_with, query_over, settings, sink, tables};
use crate::plan::{Changelog, SinkQuery};

fn check(sql: &str, expected: Expect) {
    expected.assert_eq(&planned(sql));
}

fn check_batch(sql: &str, expected: Expect) {
    expected.assert_eq(&planned_with(sql, &batch()));
}

#[test]
fn columns_and_conditions_are_one_calculation() {
    check(
        "SELECT auction, price * 2 AS double FROM (SELECT * FROM bid WHERE price > 5) WHERE bidder < 9",
        expect![[r#"
            0 TableSourceScan(table=[[bid]], fields=[auction, bidder, price, ts]) [I]
            1 WatermarkAssigner(rowtime=[ts], watermark=[ts - INTERVAL '4 s']) [I] <- 0 forward
            2 Calc(select=[auction, price * 2 AS double], where=[price > 5 AND bidder < 9]) [I] <- 1 forward
            3 Sink(table=[out], fields=[auction, double]) [NONE] <- 2 forward
        "#]],
    );
    check(
        "SELECT a + 1 AS b FROM (SELECT auction + 1 AS a FROM bid) WHERE a > 3",
        expect![[r#"
            0 TableSourceScan(table=[[bid]], fields=[auction, ts]) [I]
            1 WatermarkAssigner(rowtime=[ts], watermark=[ts - INTERVAL '4 s']) [I] <- 0 forward
            2 Calc(select=[auction + 1 + 1 AS b], where=[auction + 1 > 3]) [I] <- 1 forward
            3 Sink(table=[out], fields=[b]) [NONE] <- 2 forward
        "#]],
    );
}

#[test]
fn computed_columns_and_metadata_come_before_the_watermark() {
    check(
        "SELECT id, ts FROM person",
        expect![[r#"
        0 TableSourceScan(table=[[person]], fields=[id, at]) [I]
        1 Calc(select=[id, CAST(at AS Timestamp(Millisecond, None)) AS ts]) [I] <- 0 forward
        2 WatermarkAssigner(rowtime=[ts], watermark=[ts]) [I] <- 1 forward
        3 Sink(table=[out], fields=[id, ts]) [NONE] <- 2 forward
    "#]],
    );
    check(
        "SELECT count(*) FROM person",
        expect![[r#"
        0 TableSourceScan(table=[[person]], fields=[at]) [I]
        1 Calc(select=[CAST(at AS Timestamp(Millisecond, None)) AS ts]) [I] <- 0 forward
        2 WatermarkAssigner(rowtime=[ts], watermark=[ts]) [I] <- 1 forward
        3 Calc(select=[]) [I] <- 2 forward
        4 GroupAggregate(select=[COUNT(*) AS count(*)]) [I,UB,UA] x1 <- 3 single
        5 Sink(table=[out], fields=[count(*)]) [NONE] x1 <- 4 forward
    "#]],
    );
    check(
        "SELECT pt, auction FROM bid",
        expect![[r#"
            0 TableSourceScan(table=[[bid]], fields=[auction, ts]) [I]
            1 Calc(select=[auction, ts, proctime() AS pt]) [I] <- 0 forward
            2 WatermarkAssigner(rowtime=[ts], watermark=[ts - INTERVAL '4 s']) [I] <- 1 forward
            3 Calc(select=[pt, auction]) [I] <- 2 forward
            4 Sink(table=[out], fields=[pt, auction]) [NONE] <- 3 forward
        "#]],
    );
}

#[test]
fn groups() {
    check(
        "SELECT auction, count(*) AS n, max(price) AS most FROM bid GROUP BY auction",
        expect![[r#"
            0 TableSourceScan(table=[[bid]], fields=[auction, price, ts]) [I]
            1 WatermarkAssigner(rowtime=[ts], watermark=[ts - INTERVAL '4 s']) [I] <- 0 forward
            2 Calc(select=[auction, price]) [I] <- 1 forward
            3 GroupAggregate(groupBy=[auction], select=[auction, COUNT(*) AS n, MAX(price) AS most]) [I,UB,UA] <- 2 hash[auction]
            4 Sink(table=[out], fields=[auction, n, most]) [NONE] <- 3 forward
        "#]],
    );
    check(
        "SELECT n, count(*) FROM (SELECT auction, count(*) AS n FROM bid GROUP BY auction) GROUP BY n HAVING count(*) > 1",
        expect![[r#"
            0 TableSourceScan(table=[[bid]], fields=[auction, ts]) [I]
            1 WatermarkAssigner(rowtime=[ts], watermark=[ts - INTERVAL '4 s']) [I] <- 0 forward
            2 Calc(select=[auction]) [I] <- 1 forward
            3 GroupAggregate(groupBy=[auction], select=[auction, COUNT(*) AS count(Int64(1))]) [I,UB,UA] <- 2 hash[auction]
            4 Calc(select=[count(Int64(1)) AS n]) [I,UB,UA] <- 3 forward
            5 GroupAggregate(groupBy=[n], select=[n, COUNT(*) AS count(Int64(1))]) [I,UB,UA,D] <- 4 hash[n]
            6 Calc(select=[n, count(Int64(1))], where=[count(Int64(1)) > 1]) [I,UB,UA,D] <- 5 forward
            7 Sink(table=[out], fields=[n, count(Int64(1))]) [NONE] <- 6 forward
        "#]],
    );
    check(
        "SELECT count(DISTINCT bidder) FILTER (WHERE price > 5), sum(price + 1) FROM bid",
        expect![[r#"
            0 TableSourceScan(table=[[bid]], fields=[bidder, price, ts]) [I]
            1 WatermarkAssigner(rowtime=[ts], watermark=[ts - INTERVAL '4 s']) [I] <- 0 forward
            2 Calc(select=[bidder, price > 5 AS $f1, price + 1 AS $f2]) [I] <- 1 forward
            3 GroupAggregate(select=[COUNT(DISTINCT bidder) FILTER (WHERE price > 5) AS count(DISTINCT bid.bidder) FILTER (WHERE bid.price > Int64(5)), SUM(price + 1) AS sum(bid.price + Int64(1))]) [I,UB,UA] x1 <- 2 single
            4 Sink(table=[out], fields=[count(DISTINCT bid.bidder) FILTER (WHERE bid.price > Int64(5)), sum(bid.price + Int64(1))]) [NONE] x1 <- 3 forward
        "#]],
    );
    check(
        "SELECT DISTINCT auction, bidder FROM bid",
        expect![[r#"
            0 TableSourceScan(table=[[bid]], fields=[auction, bidder, ts]) [I]
            1 WatermarkAssigner(rowtime=[ts], watermark=[ts - INTERVAL '4 s']) [I] <- 0 forward
            2 Calc(select=[auction, bidder]) [I] <- 1 forward
            3 GroupAggregate(groupBy=[auction, bidder], select=[auction, bidder]) [I] <- 2 hash[auction, bidder]
            4 Sink(table=[out], fields=[auction, bidder]) [NONE] <- 3 forward
        "#]],
    );
    check(
        "SELECT auction, count(*) FROM (SELECT DISTINCT auction, bidder FROM bid) GROUP BY auction",
        expect![[r#"
            0 TableSourceScan(table=[[bid]], fields=[auction, bidder, ts]) [I]
            1 WatermarkAssigner(rowtime=[ts], watermark=[ts - INTERVAL '4 s']) [I] <- 0 forward
            2 Calc(select=[auction, bidder]) [I] <- 1 forward
            3 GroupAggregate(groupBy=[auction, bidder], select=[auction, bidder]) [I] <- 2 hash[auction, bidder]
            4 Calc(select=[auction]) [I] <- 3 forward
            5 GroupAggregate(groupBy=[auction], select=[auction, COUNT(*) AS count(*)]) [I,UB,UA] <- 4 hash[auction]
            6 Sink(table=[out], fields=[auction, count(*)]) [NONE] <- 5 forward
        "#]],
    );
}

#[test]
fn grouping_sets_are_expanded() {
    check(
        "SELECT auction, channel, count(auction) AS n, grouping(channel) AS g FROM bid GROUP BY GROUPING SETS ((auction, channel), (auction), ())",
        expect![[r#"
            0 TableSourceScan(table=[[bid]], fields=[auction, channel, ts]) [I]
            1 WatermarkAssigner(rowtime=[ts], watermark=[ts - INTERVAL '4 s']) [I] <- 0 forward
            2 Calc(select=[auction, channel, auction AS auction0]) [I] <- 1 forward
            3 Expand(projects=[{auction, channel, auction0, 0 AS $e}, {auction, NULL AS channel, auction0, 1 AS $e}, {NULL AS auction, NULL AS channel, auction0, 3 AS $e}]) [I] <- 2 forward
            4 GroupAggregate(groupBy=[auction, channel, $e], select=[auction, channel, $e, COUNT(auction)]) [I,UB,UA] <- 3 hash[auction, channel, $e]
            5 Calc(select=[auction, channel, COUNT(auction) AS n, CAST(CAST($e AS UInt8) & 1 AS Int32) AS g]) [I,UB,UA] <- 4 forward
            6 Sink(table=[out], fields=[auction, channel, n, g]) [NONE] <- 5 forward
        "#]],
    );
}

#[test]
fn windows_are_aggregated_without_making_rows() {
    check(
        "SELECT window_start, auction, count(*) AS n FROM bid10 GROUP BY window_start, window_end, auction",
        expect![[r#"
            0 TableSourceScan(table=[[bid]], fields=[auction, ts]) [I]
            1 WatermarkAssigner(rowtime=[ts], watermark=[ts - INTERVAL '4 s']) [I] <- 0 forward
            2 WindowAggregate(groupBy=[auction], window=[TUMBLE(time_col=[ts], size=[10 s])], select=[auction, COUNT(*), start('w$) AS window_start, end('w$) AS window_end]) [I] <- 1 hash[auction]
            3 Calc(select=[window_start, auction, COUNT(*) AS n]) [I] <- 2 forward
            4 Sink(table=[out], fields=[window_start, auction, n]) [NONE] <- 3 forward
        "#]],
    );
    check(
        "SELECT window_end, max(price) FROM bid_hop WHERE channel = 'x' GROUP BY window_start, window_end",
        expect![[r#"
            0 TableSourceScan(table=[[bid]], fields=[price, channel, ts]) [I]
            1 WatermarkAssigner(rowtime=[ts], watermark=[ts - INTERVAL '4 s']) [I] <- 0 forward
            2 Calc(select=[price, ts], where=[channel = 'x']) [I] <- 1 forward
            3 WindowAggregate(window=[HOP(time_col=[ts], size=[10 s], slide=[2 s])], select=[MAX(price), start('w$) AS window_start, end('w$) AS window_end]) [I] x1 <- 2 single
            4 Calc(select=[window_end, MAX(price) AS max(bid_hop.price)]) [I] x1 <- 3 forward
            5 Sink(table=[out], fields=[window_end, max(bid_hop.price)]) [NONE] x1 <- 4 forward
        "#]],
    );
    check(
        "SELECT bidder, count(*), window_time FROM bid_session GROUP BY window_start, window_end, window_time, bidder",
        expect![[r#"
            0 TableSourceScan(table=[[bid]], fields=[bidder, ts]) [I]
            1 WatermarkAssigner(rowtime=[ts], watermark=[ts - INTERVAL '4 s']) [I] <- 0 forward
            2 WindowAggregate(groupBy=[bidder], window=[SESSION(time_col=[ts], gap=[5 s])], select=[bidder, COUNT(*), start('w$) AS window_start, end('w$) AS window_end, rowtime('w$) AS window_time]) [I] <- 1 hash[bidder]
            3 Calc(select=[bidder, COUNT(*) AS count(*), window_time]) [I] <- 2 forward
            4 Sink(table=[out], fields=[bidder, count(*), window_time]) [NONE] <- 3 forward
        "#]],
    );
    // Sessions of a bidder, and a key that is another.
    check(
        "SELECT count(*), auction FROM bid_session GROUP BY window_start, window_end, auction",
        expect![[r#"
            0 TableSourceScan(table=[[bid]], fields=[auction, bidder, ts]) [I]
            1 WatermarkAssigner(rowtime=[ts], watermark=[ts - INTERVAL '4 s']) [I] <- 0 forward
            2 WindowTableFunction(window=[SESSION(time_col=[ts], gap=[5 s])], partition keys=[bidder]) [I] <- 1 hash[bidder]
            3 Calc(select=[window_start, window_end, auction]) [I] <- 2 forward
            4 WindowAggregate(groupBy=[auction], window=[SESSION(win_start=[window_start], win_end=[window_end], gap=[5 s])], select=[auction, COUNT(*), start('w$) AS window_start, end('w$) AS window_end]) [I] <- 3 hash[auction]
            5 Calc(select=[COUNT(*) AS count(*), auction]) [I] <- 4 forward
            6 Sink(table=[out], fields=[count(*), auction]) [NONE] <- 5 forward
        "#]],
    );
    check(
        "SELECT count(*), auction FROM bid_pt10 GROUP BY window_start, window_end, auction",
        expect![[r#"
            0 TableSourceScan(table=[[bid]], fields=[auction, ts]) [I]
            1 WatermarkAssigner(rowtime=[ts], watermark=[ts - INTERVAL '4 s']) [I] <- 0 forward
            2 Calc(select=[auction]) [I] <- 1 forward
            3 WindowAggregate(groupBy=[auction], window=[TUMBLE(time_col=[PROCTIME()], size=[10 s])], select=[auction, COUNT(*), start('w$) AS window_start, end('w$) AS window_end]) [I] <- 2 hash[auction]
            4 Calc(select=[COUNT(*) AS count(*), auction]) [I] <- 3 forward
            5 Sink(table=[out], fields=[count(*), auction]) [NONE] <- 4 forward
        "#]],
    );
    // One of the window's columns makes no window of it.
    check(
        "SELECT window_start, count(*) FROM bid10 GROUP BY window_start",
        expect![[r#"
            0 TableSourceScan(table=[[bid]], fields=[ts]) [I]
            1 WatermarkAssigner(rowtime=[ts], watermark=[ts - INTERVAL '4 s']) [I] <- 0 forward
            2 WindowTableFunction(window=[TUMBLE(time_col=[ts], size=[10 s])]) [I] <- 1 forward
            3 Calc(select=[window_start]) [I] <- 2 forward
            4 GroupAggregate(groupBy=[window_start], select=[window_start, COUNT(*) AS count(*)]) [I,UB,UA] <- 3 hash[window_start]
            5 Sink(table=[out], fields=[window_start, count(*)]) [NONE] <- 4 forward
        "#]],
    );
    // The window's columns are used otherwise.
    check(
        "SELECT window_start, max(window_end) FROM bid10 WHERE window_end > ts GROUP BY window_start, window_end",
        expect![[r#"
            0 TableSourceScan(table=[[bid]], fields=[ts]) [I]
            1 WatermarkAssigner(rowtime=[ts], watermark=[ts - INTERVAL '4 s']) [I] <- 0 forward
            2 WindowTableFunction(window=[TUMBLE(time_col=[ts], size=[10 s])]) [I] <- 1 forward
            3 Calc(select=[window_start, window_end], where=[ts < window_end]) [I] <- 2 forward
            4 WindowAggregate(window=[TUMBLE(win_start=[window_start], win_end=[window_end], size=[10 s])], select=[MAX(window_end), start('w$) AS window_start, end('w$) AS window_end]) [I] x1 <- 3 single
            5 Calc(select=[window_start, MAX(window_end) AS max(bid10.window_end)]) [I] x1 <- 4 forward
            6 Sink(table=[out], fields=[window_start, max(bid10.window_end)]) [NONE] x1 <- 5 forward
        "#]],
    );
    check(
        "SELECT window_start, channel, auction, count(*) FROM bid10 GROUP BY GROUPING SETS ((window_start, window_end, channel), (window_start, window_end, auction))",
        expect![[r#"
            0 TableSourceScan(table=[[bid]], fields=[auction, channel, ts]) [I]
            1 WatermarkAssigner(rowtime=[ts], watermark=[ts - INTERVAL '4 s']) [I] <- 0 forward
            2 WindowTableFunction(window=[TUMBLE(time_col=[ts], size=[10 s])]) [I] <- 1 forward
            3 Calc(select=[window_start, window_end, channel, auction]) [I] <- 2 forward
            4 Expand(projects=[{window_start, window_end, channel, NULL AS auction, 1 AS $e}, {window_start, window_end, NULL AS channel, auction, 2 AS $e}]) [I] <- 3 forward
            5 WindowAggregate(groupBy=[channel, auction, $e], window=[TUMBLE(win_start=[window_start], win_end=[window_end], size=[10 s])], select=[channel, auction, $e, COUNT(*), start('w$) AS window_start, end('w$) AS window_end]) [I] <- 4 hash[channel, auction, $e]
            6 Calc(select=[window_start, channel, auction, COUNT(*) AS count(*)]) [I] <- 5 forward
            7 Sink(table=[out], fields=[window_start, channel, auction, count(*)]) [NONE] <- 6 forward
        "#]],
    );
}

#[test]
fn windows_of_windows() {
    check(
        "SELECT window_start, window_end, max(n) AS most FROM (
           SELECT window_start, window_end, auction, count(*) AS n FROM bid10 GROUP BY window_start, window_end, auction
         ) GROUP BY window_start, window_end",
        expect![[r#"
            0 TableSourceScan(table=[[bid]], fields=[auction, ts]) [I]
            1 WatermarkAssigner(rowtime=[ts], watermark=[ts - INTERVAL '4 s']) [I] <- 0 forward
            2 WindowAggregate(groupBy=[auction], window=[TUMBLE(time_col=[ts], size=[10 s])], select=[auction, COUNT(*), start('w$) AS window_start, end('w$) AS window_end]) [I] <- 1 hash[auction]
            3 Calc(select=[window_start, window_end, COUNT(*) AS n]) [I] <- 2 forward
            4 WindowAggregate(window=[TUMBLE(win_start=[window_start], win_end=[window_end], size=[10 s])], select=[MAX(n), start('w$) AS window_start, end('w$) AS window_end]) [I] x1 <- 3 single
            5 Calc(select=[window_start, window_end, MAX(n) AS max(n)]) [I] x1 <- 4 forward
            6 Sink(table=[out], fields=[window_start, window_end, max(n)]) [NONE] x1 <- 5 forward
        "#]],
    );
}

#[test]
fn first_ranks() {
    check(
        "SELECT auction, price, rn FROM (SELECT *, row_number() OVER (PARTITION BY auction ORDER BY price DESC) AS rn FROM bid) WHERE rn <= 3",
        expect![[r#"
            0 TableSourceScan(table=[[bid]], fields=[auction, price, ts]) [I]
            1 WatermarkAssigner(rowtime=[ts], watermark=[ts - INTERVAL '4 s']) [I] <- 0 forward
            2 Calc(select=[auction, price]) [I] <- 1 forward
            3 Rank(strategy=[AppendFastStrategy], rankType=[ROW_NUMBER], rankRange=[rankStart=1, rankEnd=3], partitionBy=[auction], orderBy=[price DESC NULLS FIRST], select=[auction, price, rank]) [I,UB,UA,D] <- 2 hash[auction]
            4 Calc(select=[auction, price, CAST(rank AS UInt64) AS row_number() PARTITION BY [bid.auction] ORDER BY [bid.price DESC NULLS FIRST] RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW]) [I,UB,UA,D] <- 3 forward
            5 Sink(table=[out], fields=[auction, price, row_number() PARTITION BY [bid.auction] ORDER BY [bid.price DESC NULLS FIRST] RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW]) [NONE] <- 4 forward
        "#]],
    );
    check(
        "SELECT auction, n FROM (SELECT *, row_number() OVER (ORDER BY n DESC) AS rn FROM (SELECT auction, count(*) AS n FROM bid GROUP BY auction)) WHERE rn < 4 AND auction > 1",
        expect![[r#"
            0 TableSourceScan(table=[[bid]], fields=[auction, ts]) [I]
            1 WatermarkAssigner(rowtime=[ts], watermark=[ts - INTERVAL '4 s']) [I] <- 0 forward
            2 Calc(select=[auction]) [I] <- 1 forward
            3 GroupAggregate(groupBy=[auction], select=[auction, COUNT(*) AS n]) [I,UA] <- 2 hash[auction]
            4 Rank(strategy=[UpdateFastStrategy[0]], rankType=[ROW_NUMBER], rankRange=[rankStart=1, rankEnd=3], partitionBy=[], orderBy=[n DESC NULLS FIRST], select=[auction, n]) [I,UB,UA,D] x1 <- 3 single
            5 Calc(select=[auction, n], where=[auction > 1]) [I,UB,UA,D] x1 <- 4 forward
            6 Sink(table=[out], fields=[auction, n]) [NONE] x1 <- 5 forward
        "#]],
    );
    check(
        "SELECT auction, n FROM (SELECT *, row_number() OVER (ORDER BY n) AS rn FROM (SELECT auction, sum(price) AS n FROM bid GROUP BY auction)) WHERE rn BETWEEN 2 AND 4",
        expect![[r#"
            0 TableSourceScan(table=[[bid]], fields=[auction, price, ts]) [I]
            1 WatermarkAssigner(rowtime=[ts], watermark=[ts - INTERVAL '4 s']) [I] <- 0 forward
            2 Calc(select=[auction, price]) [I] <- 1 forward
            3 GroupAggregate(groupBy=[auction], select=[auction, SUM(price) AS n]) [I,UB,UA] <- 2 hash[auction]
            4 Rank(strategy=[RetractStrategy], rankType=[ROW_NUMBER], rankRange=[rankStart=2, rankEnd=4], partitionBy=[], orderBy=[n ASC NULLS LAST], select=[auction, n]) [I,UB,UA,D] x1 <- 3 single
            5 Sink(table=[out], fields=[auction, n]) [NONE] x1 <- 4 forward
        "#]],
    );
    // A count that leaves the condition leaves the ranking.
    check(
        "SELECT auction, n FROM (SELECT *, row_number() OVER (ORDER BY n DESC) AS rn FROM (SELECT auction, count(*) AS n FROM bid GROUP BY auction HAVING count(*) < 9)) WHERE rn < 4",
        expect![[r#"
            0 TableSourceScan(table=[[bid]], fields=[auction, ts]) [I]
            1 WatermarkAssigner(rowtime=[ts], watermark=[ts - INTERVAL '4 s']) [I] <- 0 forward
            2 Calc(select=[auction]) [I] <- 1 forward
            3 GroupAggregate(groupBy=[auction], select=[auction, COUNT(*) AS count(Int64(1))]) [I,UB,UA] <- 2 hash[auction]
            4 Calc(select=[auction, count(Int64(1))], where=[count(Int64(1)) < 9]) [I,UB,UA,D] <- 3 forward
            5 Rank(strategy=[RetractStrategy], rankType=[ROW_NUMBER], rankRange=[rankStart=1, rankEnd=3], partitionBy=[], orderBy=[count(Int64(1)) DESC NULLS FIRST], select=[auction, n]) [I,UB,UA,D] x1 <- 4 single
            6 Sink(table=[out], fields=[auction, n]) [NONE] x1 <- 5 forward
        "#]],
    );
    check(
        "SELECT id, v FROM (SELECT *, row_number() OVER (PARTITION BY v ORDER BY w) AS rn FROM upserts) WHERE rn = 1",
        expect![[r#"
            0 TableSourceScan(table=[[upserts]], fields=[id, v, w]) [I,UA,D]
            1 ChangelogNormalize(key=[id]) [I,UB,UA,D] <- 0 hash[id]
            2 Rank(strategy=[RetractStrategy], rankType=[ROW_NUMBER], rankRange=[rankStart=1, rankEnd=1], partitionBy=[v], orderBy=[w ASC NULLS LAST], select=[id, v, w]) [I,UB,UA,D] <- 1 hash[v]
            3 Calc(select=[id, v]) [I,UB,UA,D] <- 2 forward
            4 Sink(table=[out], fields=[id, v]) [NONE] <- 3 forward
        "#]],
    );
}

#[test]
fn deduplication() {
    for order in ["ts", "ts DESC", "pt", "pt DESC", "ts, price"] {
        let sql = format!(
            "SELECT auction, price, rn FROM (SELECT *, row_number() OVER (PARTITION BY auction ORDER BY {order}) AS rn FROM bid) WHERE rn = 1"
        );
        let expected = match order {
            "ts" => expect![[r#"
                0 TableSourceScan(table=[[bid]], fields=[auction, price, ts]) [I]
                1 WatermarkAssigner(rowtime=[ts], watermark=[ts - INTERVAL '4 s']) [I] <- 0 forward
                2 Deduplicate(keep=[FirstRow], key=[auction], order=[ROWTIME ts]) [I] <- 1 hash[auction]
                3 Calc(select=[auction, price, 1 AS row_number() PARTITION BY [bid.auction] ORDER BY [bid.ts ASC NULLS LAST] RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW]) [I] <- 2 forward
                4 Sink(table=[out], fields=[auction, price, row_number() PARTITION BY [bid.auction] ORDER BY [bid.ts ASC NULLS LAST] RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW]) [NONE] <- 3 forward
            "#]],
            "ts DESC" => expect![[r#"
                0 TableSourceScan(table=[[bid]], fields=[auction, price, ts]) [I]
                1 WatermarkAssigner(rowtime=[ts], watermark=[ts - INTERVAL '4 s']) [I] <- 0 forward
                2 Deduplicate(keep=[LastRow], key=[auction], order=[ROWTIME ts]) [I,UB,UA] <- 1 hash[auction]
                3 Calc(select=[auction, price, 1 AS row_number() PARTITION BY [bid.auction] ORDER BY [bid.ts DESC NULLS FIRST] RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW]) [I,UB,UA] <- 2 forward
                4 Sink(table=[out], fields=[auction, price, row_number() PARTITION BY [bid.auction] ORDER BY [bid.ts DESC NULLS FIRST] RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW]) [NONE] <- 3 forward
            "#]],
            "pt" => expect![[r#"
                0 TableSourceScan(table=[[bid]], fields=[auction, price, ts]) [I]
                1 Calc(select=[auction, price, ts, proctime() AS pt]) [I] <- 0 forward
                2 WatermarkAssigner(rowtime=[ts], watermark=[ts - INTERVAL '4 s']) [I] <- 1 forward
                3 Calc(select=[auction, price, pt]) [I] <- 2 forward
                4 Deduplicate(keep=[FirstRow], key=[auction], order=[PROCTIME]) [I] <- 3 hash[auction]
                5 Calc(select=[auction, price, 1 AS row_number() PARTITION BY [bid.auction] ORDER BY [bid.pt ASC NULLS LAST] RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW]) [I] <- 4 forward
                6 Sink(table=[out], fields=[auction, price, row_number() PARTITION BY [bid.auction] ORDER BY [bid.pt ASC NULLS LAST] RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW]) [NONE] <- 5 forward
            "#]],
            "pt DESC" => expect![[r#"
                0 TableSourceScan(table=[[bid]], fields=[auction, price, ts]) [I]
                1 Calc(select=[auction, price, ts, proctime() AS pt]) [I] <- 0 forward
                2 WatermarkAssigner(rowtime=[ts], watermark=[ts - INTERVAL '4 s']) [I] <- 1 forward
                3 Calc(select=[auction, price, pt]) [I] <- 2 forward
                4 Deduplicate(keep=[LastRow], key=[auction], order=[PROCTIME]) [I,UB,UA] <- 3 hash[auction]
                5 Calc(select=[auction, price, 1 AS row_number() PARTITION BY [bid.auction] ORDER BY [bid.pt DESC NULLS FIRST] RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW]) [I,UB,UA] <- 4 forward
                6 Sink(table=[out], fields=[auction, price, row_number() PARTITION BY [bid.auction] ORDER BY [bid.pt DESC NULLS FIRST] RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW]) [NONE] <- 5 forward
            "#]],
            _ => expect![[r#"
                0 TableSourceScan(table=[[bid]], fields=[auction, price, ts]) [I]
                1 WatermarkAssigner(rowtime=[ts], watermark=[ts - INTERVAL '4 s']) [I] <- 0 forward
                2 Rank(strategy=[AppendFastStrategy], rankType=[ROW_NUMBER], rankRange=[rankStart=1, rankEnd=1], partitionBy=[auction], orderBy=[ts ASC NULLS LAST, price ASC NULLS LAST], select=[auction, price, ts]) [I,UB,UA,D] <- 1 hash[auction]
                3 Calc(select=[auction, price, 1 AS row_number() PARTITION BY [bid.auction] ORDER BY [bid.ts ASC NULLS LAST, bid.price ASC NULLS LAST] RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW]) [I,UB,UA,D] <- 2 forward
                4 Sink(table=[out], fields=[auction, price, row_number() PARTITION BY [bid.auction] ORDER BY [bid.ts ASC NULLS LAST, bid.price ASC NULLS LAST] RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW]) [NONE] <- 3 forward
            "#]],
        };
        check(&sql, expected);
    }
}

#[test]
fn first_ranks_of_windows() {
    check(
        "SELECT * FROM (SELECT auction, price, window_end, row_number() OVER (PARTITION BY window_start, window_end, channel ORDER BY price DESC) AS rn FROM bid10) WHERE rn <= 2",
        expect![[r#"
            0 TableSourceScan(table=[[bid]], fields=[auction, price, channel, ts]) [I]
            1 WatermarkAssigner(rowtime=[ts], watermark=[ts - INTERVAL '4 s']) [I] <- 0 forward
            2 WindowTableFunction(window=[TUMBLE(time_col=[ts], size=[10 s])]) [I] <- 1 forward
            3 Calc(select=[auction, price, channel, window_start, window_end]) [I] <- 2 forward
            4 WindowRank(window=[win_end=[window_end]], rankType=[ROW_NUMBER], rankRange=[rankStart=1, rankEnd=2], partitionBy=[channel], orderBy=[price DESC NULLS FIRST], select=[auction, price, channel, window_start, window_end, rank]) [I] <- 3 hash[channel]
            5 Calc(select=[auction, price, window_end, CAST(rank AS UInt64) AS row_number() PARTITION BY [bid10.window_start, bid10.window_end, bid10.channel] ORDER BY [bid10.price DESC NULLS FIRST] RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW]) [I] <- 4 forward
            6 Sink(table=[out], fields=[auction, price, window_end, row_number() PARTITION BY [bid10.window_start, bid10.window_end, bid10.channel] ORDER BY [bid10.price DESC NULLS FIRST] RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW]) [NONE] <- 5 forward
        "#]],
    );
    check(
        "SELECT auction, n FROM (SELECT *, row_number() OVER (PARTITION BY window_start, window_end ORDER BY n DESC) AS rn FROM (
           SELECT window_start, window_end, auction, count(*) AS n FROM bid10 GROUP BY window_start, window_end, auction)) WHERE rn = 1",
        expect![[r#"
            0 TableSourceScan(table=[[bid]], fields=[auction, ts]) [I]
            1 WatermarkAssigner(rowtime=[ts], watermark=[ts - INTERVAL '4 s']) [I] <- 0 forward
            2 WindowAggregate(groupBy=[auction], window=[TUMBLE(time_col=[ts], size=[10 s])], select=[auction, COUNT(*), start('w$) AS window_start, end('w$) AS window_end]) [I] <- 1 hash[auction]
            3 Calc(select=[window_start, window_end, auction, COUNT(*) AS count(Int64(1))]) [I] <- 2 forward
            4 WindowRank(window=[win_end=[window_end]], rankType=[ROW_NUMBER], rankRange=[rankStart=1, rankEnd=1], partitionBy=[], orderBy=[count(Int64(1)) DESC NULLS FIRST], select=[window_start, window_end, auction, count(Int64(1))]) [I] x1 <- 3 single
            5 Calc(select=[auction, count(Int64(1)) AS n]) [I] x1 <- 4 forward
            6 Sink(table=[out], fields=[auction, n]) [NONE] x1 <- 5 forward
        "#]],
    );
}

#[test]
fn over_windows() {
    check(
        "SELECT auction, sum(price) OVER (PARTITION BY auction ORDER BY ts RANGE BETWEEN INTERVAL '10' SECOND PRECEDING AND CURRENT ROW) AS s FROM bid",
        expect![[r#"
            0 TableSourceScan(table=[[bid]], fields=[auction, price, ts]) [I]
            1 WatermarkAssigner(rowtime=[ts], watermark=[ts - INTERVAL '4 s']) [I] <- 0 forward
            2 OverAggregate(partitionBy=[auction], orderBy=[ts ASC NULLS LAST], window=[RANGE BETWEEN 10000 PRECEDING AND CURRENT ROW], select=[auction, price, ts, SUM(price) AS sum(bid.price) PARTITION BY [bid.auction] ORDER BY [bid.ts ASC NULLS LAST] RANGE BETWEEN 10 SECOND PRECEDING AND CURRENT ROW]) [I] <- 1 hash[auction]
            3 Calc(select=[auction, sum(bid.price) PARTITION BY [bid.auction] ORDER BY [bid.ts ASC NULLS LAST] RANGE BETWEEN 10 SECOND PRECEDING AND CURRENT ROW AS s]) [I] <- 2 forward
            4 Sink(table=[out], fields=[auction, s]) [NONE] <- 3 forward
        "#]],
    );
    check(
        "SELECT auction, count(*) OVER w, max(price + 1) OVER w FROM bid WINDOW w AS (PARTITION BY auction ORDER BY pt ROWS BETWEEN 3 PRECEDING AND CURRENT ROW)",
        expect![[r#"
            0 TableSourceScan(table=[[bid]], fields=[auction, price, ts]) [I]
            1 Calc(select=[auction, price, ts, proctime() AS pt]) [I] <- 0 forward
            2 WatermarkAssigner(rowtime=[ts], watermark=[ts - INTERVAL '4 s']) [I] <- 1 forward
            3 Calc(select=[auction, price, pt, price + 1 AS $f3]) [I] <- 2 forward
            4 OverAggregate(partitionBy=[auction], orderBy=[pt ASC NULLS LAST], window=[ROWS BETWEEN 3 PRECEDING AND CURRENT ROW], select=[auction, price, pt, $f3, COUNT(*), MAX(price + 1)]) [I] <- 3 hash[auction]
            5 Calc(select=[auction, COUNT(*) AS count(*) PARTITION BY [bid.auction] ORDER BY [bid.pt ASC NULLS LAST] ROWS BETWEEN 3 PRECEDING AND CURRENT ROW, MAX(price + 1) AS max(bid.price + Int64(1)) PARTITION BY [bid.auction] ORDER BY [bid.pt ASC NULLS LAST] ROWS BETWEEN 3 PRECEDING AND CURRENT ROW]) [I] <- 4 forward
            6 Sink(table=[out], fields=[auction, count(*) PARTITION BY [bid.auction] ORDER BY [bid.pt ASC NULLS LAST] ROWS BETWEEN 3 PRECEDING AND CURRENT ROW, max(bid.price + Int64(1)) PARTITION BY [bid.auction] ORDER BY [bid.pt ASC NULLS LAST] ROWS BETWEEN 3 PRECEDING AND CURRENT ROW]) [NONE] <- 5 forward
        "#]],
    );
    check(
        "SELECT auction, lag(price, 2) OVER (PARTITION BY bidder ORDER BY ts), row_number() OVER (PARTITION BY bidder ORDER BY ts) FROM bid",
        expect![[r#"
            0 TableSourceScan(table=[[bid]], fields=[auction, bidder, price, ts]) [I]
            1 WatermarkAssigner(rowtime=[ts], watermark=[ts - INTERVAL '4 s']) [I] <- 0 forward
            2 OverAggregate(partitionBy=[bidder], orderBy=[ts ASC NULLS LAST], window=[ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW], select=[auction, bidder, price, ts, LAG(price) AS lag(bid.price,Int64(2)) PARTITION BY [bid.bidder] ORDER BY [bid.ts ASC NULLS LAST] RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW, ROW_NUMBER() AS row_number() PARTITION BY [bid.bidder] ORDER BY [bid.ts ASC NULLS LAST] RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW]) [I] <- 1 hash[bidder]
            3 Calc(select=[auction, lag(bid.price,Int64(2)) PARTITION BY [bid.bidder] ORDER BY [bid.ts ASC NULLS LAST] RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW, row_number() PARTITION BY [bid.bidder] ORDER BY [bid.ts ASC NULLS LAST] RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW]) [I] <- 2 forward
            4 Sink(table=[out], fields=[auction, lag(bid.price,Int64(2)) PARTITION BY [bid.bidder] ORDER BY [bid.ts ASC NULLS LAST] RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW, row_number() PARTITION BY [bid.bidder] ORDER BY [bid.ts ASC NULLS LAST] RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW]) [NONE] <- 3 forward
        "#]],
    );
    check(
        "SELECT sum(price) OVER (PARTITION BY auction ORDER BY ts), count(*) OVER (PARTITION BY bidder ORDER BY ts) FROM bid",
        expect![[r#"
            0 TableSourceScan(table=[[bid]], fields=[auction, bidder, price, ts]) [I]
            1 WatermarkAssigner(rowtime=[ts], watermark=[ts - INTERVAL '4 s']) [I] <- 0 forward
            2 OverAggregate(partitionBy=[auction], orderBy=[ts ASC NULLS LAST], window=[RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW], select=[auction, bidder, price, ts, SUM(price) AS sum(bid.price) PARTITION BY [bid.auction] ORDER BY [bid.ts ASC NULLS LAST] RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW]) [I] <- 1 hash[auction]
            3 Calc(select=[bidder, ts, sum(bid.price) PARTITION BY [bid.auction] ORDER BY [bid.ts ASC NULLS LAST] RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW]) [I] <- 2 forward
            4 OverAggregate(partitionBy=[bidder], orderBy=[ts ASC NULLS LAST], window=[RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW], select=[bidder, ts, sum(bid.price) PARTITION BY [bid.auction] ORDER BY [bid.ts ASC NULLS LAST] RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW, COUNT(*) AS count(Int64(1)) PARTITION BY [bid.bidder] ORDER BY [bid.ts ASC NULLS LAST] RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW]) [I] <- 3 hash[bidder]
            5 Calc(select=[sum(bid.price) PARTITION BY [bid.auction] ORDER BY [bid.ts ASC NULLS LAST] RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW, count(Int64(1)) PARTITION BY [bid.bidder] ORDER BY [bid.ts ASC NULLS LAST] RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW AS count(*) PARTITION BY [bid.bidder] ORDER BY [bid.ts ASC NULLS LAST] RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW]) [I] <- 4 forward
            6 Sink(table=[out], fields=[sum(bid.price) PARTITION BY [bid.auction] ORDER BY [bid.ts ASC NULLS LAST] RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW, count(*) PARTITION BY [bid.bidder] ORDER BY [bid.ts ASC NULLS LAST] RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW]) [NONE] <- 5 forward
        "#]],
    );
}

#[test]
fn over_windows_of_changes() {
    check(
        "SELECT id, sum(v) OVER (PARTITION BY w ORDER BY v) AS s FROM changes",
        expect![[r#"
            0 TableSourceScan(table=[[changes]], fields=[id, v, w]) [I,UB,UA,D]
            1 OverAggregate(partitionBy=[w], orderBy=[v ASC NULLS LAST], window=[RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW], select=[id, v, w, SUM(v) AS sum(changes.v) PARTITION BY [changes.w] ORDER BY [changes.v ASC NULLS LAST] RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW]) [I,UB,UA,D] <- 0 hash[w]
            2 Calc(select=[id, sum(changes.v) PARTITION BY [changes.w] ORDER BY [changes.v ASC NULLS LAST] RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW AS s]) [I,UB,UA,D] <- 1 forward
            3 Sink(table=[out], fields=[id, s]) [NONE] <- 2 forward
        "#]],
    );
    // Rows that are only inserted are not deleted either, but what they result in changes.
    check(
        "SELECT auction, lead(price) OVER (PARTITION BY auction ORDER BY ts) AS next FROM bid",
        expect![[r#"
            0 TableSourceScan(table=[[bid]], fields=[auction, price, ts]) [I]
            1 WatermarkAssigner(rowtime=[ts], watermark=[ts - INTERVAL '4 s']) [I] <- 0 forward
            2 OverAggregate(partitionBy=[auction], orderBy=[ts ASC NULLS LAST], window=[ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW], select=[auction, price, ts, LEAD(price) AS lead(bid.price) PARTITION BY [bid.auction] ORDER BY [bid.ts ASC NULLS LAST] RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW]) [I,UB,UA] <- 1 hash[auction]
            3 Calc(select=[auction, lead(bid.price) PARTITION BY [bid.auction] ORDER BY [bid.ts ASC NULLS LAST] RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW AS next]) [I,UB,UA] <- 2 forward
            4 Sink(table=[out], fields=[auction, next]) [NONE] <- 3 forward
        "#]],
    );
}

#[test]
fn only_one_time_ascending_is_an_order_in_which_rows_come() {
    let is_final = |window: &str| {
        let plan = planned(&format!("SELECT auction, sum(price) OVER ({window}) FROM bid"));
        let over = plan.lines().find(|line| line.contains("OverAggregate(")).expect("the operator");
        over.contains(") [I] ")
    };
    assert!(is_final("PARTITION BY auction ORDER BY ts") && is_final("PARTITION BY auction ORDER BY pt"));
    for order in ["ts DESC", "ts, price", "price", "price, ts"] {
        assert!(!is_final(&format!("PARTITION BY auction ORDER BY {order}")), "{order}");
    }
    // A bound of ranks that rows share is one of what all have.
    let plan = planned("SELECT price, r FROM (SELECT price, rank() OVER (ORDER BY price) AS r FROM bid) WHERE r < 3");
    assert!(plan.contains("RANK()") && plan.contains("where=[") && !plan.contains("Rank("), "{plan}");
}

#[test]
fn sets() {
    check(
        "SELECT auction FROM bid UNION ALL SELECT id FROM auction UNION ALL SELECT id FROM changes",
        expect![[r#"
            0 TableSourceScan(table=[[bid]], fields=[auction, ts]) [I]
            1 WatermarkAssigner(rowtime=[ts], watermark=[ts - INTERVAL '4 s']) [I] <- 0 forward
            2 TableSourceScan(table=[[auction]], fields=[id, ts]) [I]
            3 WatermarkAssigner(rowtime=[ts], watermark=[ts - INTERVAL '4 s']) [I] <- 2 forward
            4 TableSourceScan(table=[[changes]], fields=[id]) [I,UB,UA,D]
            5 Calc(select=[auction]) [I] <- 1 forward
            6 Calc(select=[id]) [I] <- 3 forward
            7 Sink(table=[out], fields=[auction]) [NONE] <- 5 forward <- 6 forward <- 4 forward
        "#]],
    );
    check(
        "SELECT auction FROM bid UNION SELECT id FROM auction",
        expect![[r#"
            0 TableSourceScan(table=[[bid]], fields=[auction, ts]) [I]
            1 WatermarkAssigner(rowtime=[ts], watermark=[ts - INTERVAL '4 s']) [I] <- 0 forward
            2 TableSourceScan(table=[[auction]], fields=[id, ts]) [I]
            3 WatermarkAssigner(rowtime=[ts], watermark=[ts - INTERVAL '4 s']) [I] <- 2 forward
            4 Calc(select=[auction]) [I] <- 1 forward
            5 Calc(select=[id]) [I] <- 3 forward
            6 GroupAggregate(groupBy=[auction], select=[auction]) [I] <- 4 hash[auction] <- 5 hash[id]
            7 Sink(table=[out], fields=[auction]) [NONE] <- 6 forward
        "#]],
    );
    check(
        "SELECT auction FROM bid INTERSECT SELECT id FROM auction",
        expect![[r#"
            0 TableSourceScan(table=[[bid]], fields=[auction, ts]) [I]
            1 WatermarkAssigner(rowtime=[ts], watermark=[ts - INTERVAL '4 s']) [I] <- 0 forward
            2 Calc(select=[auction]) [I] <- 1 forward
            3 GroupAggregate(groupBy=[auction], select=[auction]) [I] <- 2 hash[auction]
            4 TableSourceScan(table=[[auction]], fields=[id, ts]) [I]
            5 WatermarkAssigner(rowtime=[ts], watermark=[ts - INTERVAL '4 s']) [I] <- 4 forward
            6 Calc(select=[id]) [I] <- 5 forward
            7 Join(joinType=[LeftSemiJoin], where=[auction = id], select=[auction], leftInputSpec=[JoinKeyContainsUniqueKey], rightInputSpec=[NoUniqueKey]) [I] <- 3 forward <- input 1 6 hash[id]
            8 Sink(table=[out], fields=[auction]) [NONE] <- 7 forward
        "#]],
    );
    check(
        "SELECT auction FROM bid EXCEPT SELECT id FROM auction",
        expect![[r#"
            0 TableSourceScan(table=[[bid]], fields=[auction, ts]) [I]
            1 WatermarkAssigner(rowtime=[ts], watermark=[ts - INTERVAL '4 s']) [I] <- 0 forward
            2 Calc(select=[auction]) [I] <- 1 forward
            3 GroupAggregate(groupBy=[auction], select=[auction]) [I] <- 2 hash[auction]
            4 TableSourceScan(table=[[auction]], fields=[id, ts]) [I]
            5 WatermarkAssigner(rowtime=[ts], watermark=[ts - INTERVAL '4 s']) [I] <- 4 forward
            6 Calc(select=[id]) [I] <- 5 forward
            7 Join(joinType=[LeftAntiJoin], where=[auction = id], select=[auction], leftInputSpec=[JoinKeyContainsUniqueKey], rightInputSpec=[NoUniqueKey]) [I,D] <- 3 forward <- input 1 6 hash[id]
            8 Sink(table=[out], fields=[auction]) [NONE] <- 7 forward
        "#]],
    );
    check(
        "SELECT auction FROM bid UNION ALL SELECT auction FROM bid",
        expect![[r#"
            0 TableSourceScan(table=[[bid]], fields=[auction, ts]) [I]
            1 WatermarkAssigner(rowtime=[ts], watermark=[ts - INTERVAL '4 s']) [I] <- 0 forward
            2 Calc(select=[auction]) [I] <- 1 forward
            3 Calc(select=[auction]) [I] <- 1 forward
            4 Sink(table=[out], fields=[auction]) [NONE] <- 2 forward <- 3 forward
        "#]],
    );
}

#[test]
fn orders_and_limits() {
    check(
        "SELECT auction FROM bid ORDER BY pt, price",
        expect![[r#"
        0 TableSourceScan(table=[[bid]], fields=[auction, price, ts]) [I]
        1 Calc(select=[auction, price, ts, proctime() AS pt]) [I] <- 0 forward
        2 WatermarkAssigner(rowtime=[ts], watermark=[ts - INTERVAL '4 s']) [I] <- 1 forward
        3 Calc(select=[auction, pt, price]) [I] <- 2 forward
        4 TemporalSort(orderBy=[PROCTIME(), price ASC NULLS LAST]) [I] x1 <- 3 single
        5 Calc(select=[auction]) [I] x1 <- 4 forward
        6 Sink(table=[out], fields=[auction]) [NONE] x1 <- 5 forward
    "#]],
    );
    check(
        "SELECT auction, ts FROM bid ORDER BY ts, price",
        expect![[r#"
            0 TableSourceScan(table=[[bid]], fields=[auction, price, ts]) [I]
            1 WatermarkAssigner(rowtime=[ts], watermark=[ts - INTERVAL '4 s']) [I] <- 0 forward
            2 Calc(select=[auction, ts, price]) [I] <- 1 forward
            3 TemporalSort(orderBy=[ts ASC NULLS LAST, price ASC NULLS LAST]) [I] x1 <- 2 single
            4 Calc(select=[auction, ts]) [I] x1 <- 3 forward
            5 Sink(table=[out], fields=[auction, ts]) [NONE] x1 <- 4 forward
        "#]],
    );
    check(
        "SELECT auction FROM bid ORDER BY price DESC LIMIT 5",
        expect![[r#"
            0 TableSourceScan(table=[[bid]], fields=[auction, price, ts]) [I]
            1 WatermarkAssigner(rowtime=[ts], watermark=[ts - INTERVAL '4 s']) [I] <- 0 forward
            2 Calc(select=[auction, price]) [I] <- 1 forward
            3 Rank(strategy=[AppendFastStrategy], rankType=[ROW_NUMBER], rankRange=[rankStart=1, rankEnd=5], partitionBy=[], orderBy=[price DESC NULLS FIRST], select=[auction, price]) [I,UB,UA,D] x1 <- 2 single
            4 Calc(select=[auction]) [I,UB,UA,D] x1 <- 3 forward
            5 Sink(table=[out], fields=[auction]) [NONE] x1 <- 4 forward
        "#]],
    );
    check(
        "SELECT auction FROM bid ORDER BY price LIMIT 5 OFFSET 2",
        expect![[r#"
            0 TableSourceScan(table=[[bid]], fields=[auction, price, ts]) [I]
            1 WatermarkAssigner(rowtime=[ts], watermark=[ts - INTERVAL '4 s']) [I] <- 0 forward
            2 Calc(select=[auction, price]) [I] <- 1 forward
            3 Rank(strategy=[AppendFastStrategy], rankType=[ROW_NUMBER], rankRange=[rankStart=3, rankEnd=7], partitionBy=[], orderBy=[price ASC NULLS LAST], select=[auction, price]) [I,UB,UA,D] x1 <- 2 single
            4 Calc(select=[auction]) [I,UB,UA,D] x1 <- 3 forward
            5 Sink(table=[out], fields=[auction]) [NONE] x1 <- 4 forward
        "#]],
    );
    check(
        "SELECT auction FROM bid LIMIT 5",
        expect![[r#"
            0 TableSourceScan(table=[[bid, limit=[5]]], fields=[auction, ts]) [I]
            1 WatermarkAssigner(rowtime=[ts], watermark=[ts - INTERVAL '4 s']) [I] <- 0 forward
            2 Calc(select=[auction]) [I] <- 1 forward
            3 Limit(offset=[0], fetch=[5]) [I] x1 <- 2 single
            4 Sink(table=[out], fields=[auction]) [NONE] x1 <- 3 forward
        "#]],
    );
    check(
        "SELECT key FROM side LIMIT 5 OFFSET 2",
        expect![[r#"
        0 TableSourceScan(table=[[side, limit=[7]]], fields=[key]) [I]
        1 Limit(offset=[2], fetch=[5]) [I] x1 <- 0 single
        2 Sink(table=[out], fields=[key]) [NONE] x1 <- 1 forward
    "#]],
    );
    check(
        "SELECT a FROM (SELECT auction AS a, price FROM bid ORDER BY price) WHERE a > 3",
        expect![[r#"
            0 TableSourceScan(table=[[bid]], fields=[auction, ts]) [I]
            1 WatermarkAssigner(rowtime=[ts], watermark=[ts - INTERVAL '4 s']) [I] <- 0 forward
            2 Calc(select=[auction], where=[auction > 3]) [I] <- 1 forward
            3 Sink(table=[out], fields=[auction]) [NONE] <- 2 forward
        "#]],
    );
    check(
        "SELECT count(*) FROM (SELECT auction FROM bid LIMIT 10)",
        expect![[r#"
            0 TableSourceScan(table=[[bid, limit=[10]]], fields=[ts]) [I]
            1 WatermarkAssigner(rowtime=[ts], watermark=[ts - INTERVAL '4 s']) [I] <- 0 forward
            2 Calc(select=[]) [I] <- 1 forward
            3 Limit(offset=[0], fetch=[10]) [I] x1 <- 2 single
            4 GroupAggregate(select=[COUNT(*) AS count(*)]) [I,UB,UA] x1 <- 3 forward
            5 Sink(table=[out], fields=[count(*)]) [NONE] x1 <- 4 forward
        "#]],
    );
}

#[test]
fn values() {
    check(
        "SELECT 1 AS a, 'x' AS b",
        expect![[r#"
            0 Values(tuples=[{ 1, 'x' }]) [I] x1
            1 Sink(table=[out], fields=[a, b]) [NONE] x1 <- 0 forward
        "#]],
    );
    check(
        "SELECT a + 1 FROM (VALUES (1, 'x'), (2, 'y')) AS t (a, b) WHERE b = 'y'",
        expect![[r#"
            0 Values(tuples=[{ 1, 'x' }, { 2, 'y' }]) [I] x1
            1 Calc(select=[column1 + 1 AS t.a + Int64(1)], where=[column2 = 'y']) [I] x1 <- 0 forward
            2 Sink(table=[out], fields=[t.a + Int64(1)]) [NONE] x1 <- 1 forward
        "#]],
    );
    check(
        "SELECT auction FROM bid WHERE false",
        expect![[r#"
        0 Values(tuples=[]) [I] x1
        1 Sink(table=[out], fields=[auction]) [NONE] x1 <- 0 forward
    "#]],
    );
}

#[test]
fn batches() {
    check_batch(
        "SELECT auction, count(*) AS n FROM bid WHERE price > 5 GROUP BY auction ORDER BY n DESC LIMIT 3",
        expect![[r#"
            0 TableSourceScan(table=[[bid, filter=[price > 5]]], fields=[auction, price]) [I]
            1 Calc(select=[auction], where=[price > 5]) [I] <- 0 forward
            2 GroupAggregate(groupBy=[auction], select=[auction, COUNT(*) AS n]) [I] <- 1 hash[auction]
            3 Sort(orderBy=[n DESC NULLS FIRST], offset=[0], fetch=[3]) [I] x1 <- 2 single
            4 Sink(table=[out], fields=[auction, n]) [NONE] x1 <- 3 forward
        "#]],
    );
    check_batch(
        "SELECT window_start, auction, count(*) AS n FROM bid10 GROUP BY window_start, window_end, auction",
        expect![[r#"
            0 TableSourceScan(table=[[bid]], fields=[auction, ts]) [I]
            1 WindowAggregate(groupBy=[auction], window=[TUMBLE(time_col=[ts], size=[10 s])], select=[auction, COUNT(*), start('w$) AS window_start, end('w$) AS window_end]) [I] <- 0 hash[auction]
            2 Calc(select=[window_start, auction, COUNT(*) AS n]) [I] <- 1 forward
            3 Sink(table=[out], fields=[window_start, auction, n]) [NONE] <- 2 forward
        "#]],
    );
    check_batch(
        "SELECT b.price FROM bid b JOIN auction a ON b.auction = a.id AND b.ts BETWEEN a.ts AND a.expires ORDER BY b.price",
        expect![[r#"
            0 TableSourceScan(table=[[bid]], fields=[auction, price, ts]) [I]
            1 TableSourceScan(table=[[auction]], fields=[id, ts, expires]) [I]
            2 Join(joinType=[InnerJoin], where=[auction = id AND ts >= ts AND ts <= expires], select=[auction, price, ts, id, ts0, expires], leftInputSpec=[NoUniqueKey], rightInputSpec=[NoUniqueKey]) [I] <- 0 hash[auction] <- input 1 1 hash[id]
            3 Calc(select=[price]) [I] <- 2 forward
            4 Sort(orderBy=[price ASC NULLS LAST]) [I] x1 <- 3 single
            5 Sink(table=[out], fields=[price]) [NONE] x1 <- 4 forward
        "#]],
    );
    check_batch(
        "SELECT * FROM (SELECT auction, price, row_number() OVER (PARTITION BY auction ORDER BY ts) AS rn FROM bid) WHERE rn = 1",
        expect![[r#"
            0 TableSourceScan(table=[[bid]], fields=[auction, price, ts]) [I]
            1 Rank(strategy=[AppendFastStrategy], rankType=[ROW_NUMBER], rankRange=[rankStart=1, rankEnd=1], partitionBy=[auction], orderBy=[ts ASC NULLS LAST], select=[auction, price, ts]) [I] <- 0 hash[auction]
            2 Calc(select=[auction, price, 1 AS row_number() PARTITION BY [bid.auction] ORDER BY [bid.ts ASC NULLS LAST] RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW]) [I] <- 1 forward
            3 Sink(table=[out], fields=[auction, price, row_number() PARTITION BY [bid.auction] ORDER BY [bid.ts ASC NULLS LAST] RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW]) [NONE] <- 2 forward
        "#]],
    );
    check_batch(
        "SELECT auction, rank() OVER (PARTITION BY auction ORDER BY price) AS r FROM bid",
        expect![[r#"
        0 TableSourceScan(table=[[bid]], fields=[auction, price]) [I]
        1 OverAggregate(partitionBy=[auction], orderBy=[price ASC NULLS LAST], window=[ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW], select=[auction, price, RANK() AS rank() PARTITION BY [bid.auction] ORDER BY [bid.price ASC NULLS LAST] RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW]) [I] <- 0 hash[auction]
        2 Calc(select=[auction, rank() PARTITION BY [bid.auction] ORDER BY [bid.price ASC NULLS LAST] RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW AS r]) [I] <- 1 forward
        3 Sink(table=[out], fields=[auction, r]) [NONE] <- 2 forward
    "#]],
    );
}

#[test]
fn hints_for_connectors() {
    // Without a watermark nobody misses the rows that the connector leaves out.
    check(
        "SELECT value FROM side WHERE kind = 3 AND key > 5 AND value <> lower(value)",
        expect![[r#"
        0 TableSourceScan(table=[[side, filter=[kind = 3 AND key > 5 AND value != lower(value)]]], fields=[key, value, kind]) [I]
        1 Calc(select=[value], where=[kind = 3 AND key > 5 AND value != lower(value)]) [I] <- 0 forward
        2 Sink(table=[out], fields=[value]) [NONE] <- 1 forward
    "#]],
    );
}

#[test]
fn a_limit_goes_to_the_table_right_below_it() {
    let is_told = |planned: &str| planned.lines().next().is_some_and(|source| source.contains("limit=["));
    assert!(is_told(&planned("SELECT key FROM side LIMIT 5")));
    for sql in [
        // What is left out does not count.
        "SELECT key FROM side WHERE kind = 3 LIMIT 5",
        "SELECT key FROM side ORDER BY key LIMIT 5",
        "SELECT DISTINCT key FROM side LIMIT 5",
        // Rows may go again.
        "SELECT v FROM changes LIMIT 5",
        "SELECT v FROM upserts LIMIT 5",
    ] {
        assert!(!is_told(&planned(sql)), "{sql}");
    }
    // A data stream goes on for others.
    let mut stream = tables().into_iter().find(|table| table.name == "side").expect("a table");
    stream.takes_limit = false;
    let plan = query_over("SELECT key FROM side LIMIT 5", &[stream]);
    let sink = sink(&plan, "out", Changelog::All, &[]);
    let planned = crate::plan::plan(&[SinkQuery { plan, sink }], &settings()).expect("a plan");
    assert!(!is_told(&planned.to_string()), "{planned}");
}

#[test]
fn rows_come_in_the_order_of_processing_time() {
    check(
        "SELECT auction FROM bid ORDER BY pt",
        expect![[r#"
        0 TableSourceScan(table=[[bid]], fields=[auction, ts]) [I]
        1 WatermarkAssigner(rowtime=[ts], watermark=[ts - INTERVAL '4 s']) [I] <- 0 forward
        2 Calc(select=[auction]) [I] <- 1 forward
        3 Sink(table=[out], fields=[auction]) [NONE] <- 2 forward
    "#]],
    );
}
