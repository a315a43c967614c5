//! Which operators joins become.

use expect_test::{Expect, expect};

use super::world::planned;

fn check(sql: &str, expected: Expect) {
    expected.assert_eq(&planned(sql));
}

#[test]
fn joins_of_all_rows() {
    check(
        "SELECT b.price, a.item FROM bid b JOIN auction a ON b.auction = a.id WHERE a.category = 10",
        expect![[r#"
            0 TableSourceScan(table=[[bid]], fields=[auction, price, ts]) [I]
            1 WatermarkAssigner(rowtime=[ts], watermark=[ts - INTERVAL '4 s']) [I] <- 0 forward
            2 TableSourceScan(table=[[auction]], fields=[id, item, category, ts]) [I]
            3 WatermarkAssigner(rowtime=[ts], watermark=[ts - INTERVAL '4 s']) [I] <- 2 forward
            4 Calc(select=[id, item], where=[category = 10]) [I] <- 3 forward
            5 Calc(select=[auction, price]) [I] <- 1 forward
            6 Join(joinType=[InnerJoin], where=[auction = id], select=[auction, price, id, item], leftInputSpec=[NoUniqueKey], rightInputSpec=[NoUniqueKey]) [I] <- 5 hash[auction] <- input 1 4 hash[id]
            7 Calc(select=[price, item]) [I] <- 6 forward
            8 Sink(table=[out], fields=[price, item]) [NONE] <- 7 forward
        "#]],
    );
    check(
        "SELECT b.price, a.item FROM bid b LEFT JOIN auction a ON b.auction = a.id AND b.price > a.category AND b.auction + 1 = a.seller",
        expect![[r#"
            0 TableSourceScan(table=[[bid]], fields=[auction, price, ts]) [I]
            1 WatermarkAssigner(rowtime=[ts], watermark=[ts - INTERVAL '4 s']) [I] <- 0 forward
            2 TableSourceScan(table=[[auction]], fields=[id, item, seller, category, ts]) [I]
            3 WatermarkAssigner(rowtime=[ts], watermark=[ts - INTERVAL '4 s']) [I] <- 2 forward
            4 Calc(select=[auction, price, auction + 1 AS $f2]) [I] <- 1 forward
            5 Calc(select=[id, item, seller, category]) [I] <- 3 forward
            6 Join(joinType=[LeftOuterJoin], where=[auction = id AND $f2 = seller AND price > category], select=[auction, price, $f2, id, item, seller, category], leftInputSpec=[NoUniqueKey], rightInputSpec=[NoUniqueKey]) [I,UA,D] <- 4 hash[auction, $f2] <- input 1 5 hash[id, seller]
            7 Calc(select=[price, item]) [I,UA,D] <- 6 forward
            8 Sink(table=[out], fields=[price, item]) [NONE] <- 7 forward
        "#]],
    );
    check(
        "SELECT * FROM (SELECT auction, count(*) AS n FROM bid GROUP BY auction) b FULL JOIN upserts u ON b.auction = u.id",
        expect![[r#"
            0 TableSourceScan(table=[[bid]], fields=[auction, ts]) [I]
            1 WatermarkAssigner(rowtime=[ts], watermark=[ts - INTERVAL '4 s']) [I] <- 0 forward
            2 Calc(select=[auction]) [I] <- 1 forward
            3 GroupAggregate(groupBy=[auction], select=[auction, COUNT(*) AS n]) [I,UB,UA] <- 2 hash[auction]
            4 TableSourceScan(table=[[upserts]], fields=[id, v, w]) [I,UA,D]
            5 ChangelogNormalize(key=[id]) [I,UB,UA,D] <- 4 hash[id]
            6 Join(joinType=[FullOuterJoin], where=[auction = id], select=[auction, n, id, v, w], leftInputSpec=[JoinKeyContainsUniqueKey], rightInputSpec=[JoinKeyContainsUniqueKey]) [I,UB,UA,D] <- 3 forward <- input 1 5 forward
            7 Sink(table=[out], fields=[auction, n, id, v, w]) [NONE] <- 6 forward
        "#]],
    );
    check(
        "SELECT b.n, c.v FROM (SELECT auction, count(*) AS n FROM bid GROUP BY auction) b JOIN changes c ON b.auction = c.v",
        expect![[r#"
            0 TableSourceScan(table=[[bid]], fields=[auction, ts]) [I]
            1 WatermarkAssigner(rowtime=[ts], watermark=[ts - INTERVAL '4 s']) [I] <- 0 forward
            2 Calc(select=[auction]) [I] <- 1 forward
            3 GroupAggregate(groupBy=[auction], select=[auction, COUNT(*) AS n]) [I,UB,UA] <- 2 hash[auction]
            4 TableSourceScan(table=[[changes]], fields=[v]) [I,UB,UA,D]
            5 Join(joinType=[InnerJoin], where=[auction = v], select=[auction, n, v], leftInputSpec=[JoinKeyContainsUniqueKey], rightInputSpec=[NoUniqueKey]) [I,UB,UA,D] <- 3 forward <- input 1 4 hash[v]
            6 Calc(select=[n, v]) [I,UB,UA,D] <- 5 forward
            7 Sink(table=[out], fields=[n, v]) [NONE] <- 6 forward
        "#]],
    );
    check(
        "SELECT a.v, b.v FROM changes a JOIN changes b ON a.id = b.w",
        expect![[r#"
            0 TableSourceScan(table=[[changes]], fields=[id, v, w]) [I,UB,UA,D]
            1 Calc(select=[id, v]) [I,UB,UA,D] <- 0 forward
            2 Calc(select=[v, w]) [I,UB,UA,D] <- 0 forward
            3 Join(joinType=[InnerJoin], where=[id = w], select=[id, v, v0, w], leftInputSpec=[JoinKeyContainsUniqueKey], rightInputSpec=[NoUniqueKey]) [I,UB,UA,D] <- 1 hash[id] <- input 1 2 hash[w]
            4 Calc(select=[v, v0]) [I,UB,UA,D] <- 3 forward
            5 Sink(table=[out], fields=[v, v0]) [NONE] <- 4 forward
        "#]],
    );
    check(
        "SELECT price FROM bid WHERE price > (SELECT avg(price) FROM bid)",
        expect![[r#"
            0 TableSourceScan(table=[[bid]], fields=[price, ts]) [I]
            1 WatermarkAssigner(rowtime=[ts], watermark=[ts - INTERVAL '4 s']) [I] <- 0 forward
            2 Calc(select=[CAST(price AS Float64) AS $f0]) [I] <- 1 forward
            3 GroupAggregate(select=[AVG(CAST(price AS Float64)) AS avg(bid.price)]) [I,UB,UA] x1 <- 2 single
            4 Calc(select=[price]) [I] <- 1 forward
            5 Join(joinType=[InnerJoin], where=[CAST(price AS Float64) > avg(bid.price)], select=[price, avg(bid.price)], leftInputSpec=[NoUniqueKey], rightInputSpec=[JoinKeyContainsUniqueKey]) [I,UB,UA,D] x1 <- 4 single <- input 1 3 forward
            6 Calc(select=[price]) [I,UB,UA,D] x1 <- 5 forward
            7 Sink(table=[out], fields=[price]) [NONE] x1 <- 6 forward
        "#]],
    );
    check(
        "SELECT price FROM bid, auction WHERE price > category",
        expect![[r#"
            0 TableSourceScan(table=[[bid]], fields=[price, ts]) [I]
            1 WatermarkAssigner(rowtime=[ts], watermark=[ts - INTERVAL '4 s']) [I] <- 0 forward
            2 TableSourceScan(table=[[auction]], fields=[category, ts]) [I]
            3 WatermarkAssigner(rowtime=[ts], watermark=[ts - INTERVAL '4 s']) [I] <- 2 forward
            4 Calc(select=[price]) [I] <- 1 forward
            5 Calc(select=[category]) [I] <- 3 forward
            6 Join(joinType=[InnerJoin], where=[price > category], select=[price, category], leftInputSpec=[NoUniqueKey], rightInputSpec=[NoUniqueKey]) [I] x1 <- 4 single <- input 1 5 single
            7 Calc(select=[price]) [I] x1 <- 6 forward
            8 Sink(table=[out], fields=[price]) [NONE] x1 <- 7 forward
        "#]],
    );
}

#[test]
fn subqueries() {
    check(
        "SELECT price FROM bid WHERE auction IN (SELECT id FROM auction WHERE category = 10)",
        expect![[r#"
            0 TableSourceScan(table=[[bid]], fields=[auction, price, ts]) [I]
            1 WatermarkAssigner(rowtime=[ts], watermark=[ts - INTERVAL '4 s']) [I] <- 0 forward
            2 TableSourceScan(table=[[auction]], fields=[id, category, ts]) [I]
            3 WatermarkAssigner(rowtime=[ts], watermark=[ts - INTERVAL '4 s']) [I] <- 2 forward
            4 Calc(select=[id], where=[category = 10]) [I] <- 3 forward
            5 Calc(select=[auction, price]) [I] <- 1 forward
            6 Join(joinType=[LeftSemiJoin], where=[auction = id], select=[auction, price], leftInputSpec=[NoUniqueKey], rightInputSpec=[NoUniqueKey]) [I] <- 5 hash[auction] <- input 1 4 hash[id]
            7 Calc(select=[price]) [I] <- 6 forward
            8 Sink(table=[out], fields=[price]) [NONE] <- 7 forward
        "#]],
    );
    check(
        "SELECT price FROM bid WHERE auction NOT IN (SELECT id FROM auction)",
        expect![[r#"
            0 TableSourceScan(table=[[bid]], fields=[auction, price, ts]) [I]
            1 WatermarkAssigner(rowtime=[ts], watermark=[ts - INTERVAL '4 s']) [I] <- 0 forward
            2 TableSourceScan(table=[[auction]], fields=[id, ts]) [I]
            3 WatermarkAssigner(rowtime=[ts], watermark=[ts - INTERVAL '4 s']) [I] <- 2 forward
            4 Calc(select=[auction, price]) [I] <- 1 forward
            5 Calc(select=[id]) [I] <- 3 forward
            6 Join(joinType=[LeftAntiJoin], where=[auction IS NULL OR id IS NULL OR auction = id], select=[auction, price], leftInputSpec=[NoUniqueKey], rightInputSpec=[NoUniqueKey]) [I,D] x1 <- 4 single <- input 1 5 single
            7 Calc(select=[price]) [I,D] x1 <- 6 forward
            8 Sink(table=[out], fields=[price]) [NONE] x1 <- 7 forward
        "#]],
    );
    check(
        "SELECT price FROM bid b WHERE NOT EXISTS (SELECT 1 FROM auction a WHERE a.id = b.auction AND a.category > b.price)",
        expect![[r#"
            0 TableSourceScan(table=[[bid]], fields=[auction, price, ts]) [I]
            1 WatermarkAssigner(rowtime=[ts], watermark=[ts - INTERVAL '4 s']) [I] <- 0 forward
            2 TableSourceScan(table=[[auction]], fields=[id, category, ts]) [I]
            3 WatermarkAssigner(rowtime=[ts], watermark=[ts - INTERVAL '4 s']) [I] <- 2 forward
            4 Calc(select=[category, id]) [I] <- 3 forward
            5 Calc(select=[auction, price]) [I] <- 1 forward
            6 Join(joinType=[LeftAntiJoin], where=[auction = id AND category > price], select=[auction, price], leftInputSpec=[NoUniqueKey], rightInputSpec=[NoUniqueKey]) [I,D] <- 5 hash[auction] <- input 1 4 hash[id]
            7 Calc(select=[price]) [I,D] <- 6 forward
            8 Sink(table=[out], fields=[price]) [NONE] <- 7 forward
        "#]],
    );
    check(
        "SELECT price FROM bid b WHERE price > 5 OR EXISTS (SELECT 1 FROM auction a WHERE a.id = b.auction)",
        expect![[r#"
            0 TableSourceScan(table=[[bid]], fields=[auction, price, ts]) [I]
            1 WatermarkAssigner(rowtime=[ts], watermark=[ts - INTERVAL '4 s']) [I] <- 0 forward
            2 TableSourceScan(table=[[auction]], fields=[id, ts]) [I]
            3 WatermarkAssigner(rowtime=[ts], watermark=[ts - INTERVAL '4 s']) [I] <- 2 forward
            4 Calc(select=[id]) [I] <- 3 forward
            5 GroupAggregate(groupBy=[id], select=[id]) [I] <- 4 hash[id]
            6 Calc(select=[id, true AS mark]) [I] <- 5 forward
            7 Calc(select=[auction, price]) [I] <- 1 forward
            8 Join(joinType=[LeftOuterJoin], where=[auction = id], select=[auction, price, id, mark], leftInputSpec=[NoUniqueKey], rightInputSpec=[JoinKeyContainsUniqueKey]) [I,UA,D] <- 7 hash[auction] <- input 1 6 forward
            9 Calc(select=[price], where=[price > 5 OR mark IS NOT NULL]) [I,UA,D] <- 8 forward
            10 Sink(table=[out], fields=[price]) [NONE] <- 9 forward
        "#]],
    );
}

#[test]
fn joins_near_in_time() {
    check(
        "SELECT b.price, a.item, b.ts FROM bid b JOIN auction a ON b.auction = a.id AND b.ts BETWEEN a.ts AND a.ts + INTERVAL '1' HOUR",
        expect![[r#"
            0 TableSourceScan(table=[[bid]], fields=[auction, price, ts]) [I]
            1 WatermarkAssigner(rowtime=[ts], watermark=[ts - INTERVAL '4 s']) [I] <- 0 forward
            2 TableSourceScan(table=[[auction]], fields=[id, item, ts]) [I]
            3 WatermarkAssigner(rowtime=[ts], watermark=[ts - INTERVAL '4 s']) [I] <- 2 forward
            4 IntervalJoin(joinType=[InnerJoin], windowBounds=[isRowTime=true, leftLowerBound=0, leftUpperBound=3600000], where=[auction = id], select=[auction, price, ts, id, item, ts0]) [I] <- 1 hash[auction] <- input 1 3 hash[id]
            5 Calc(select=[price, item, ts]) [I] <- 4 forward
            6 Sink(table=[out], fields=[price, item, ts]) [NONE] <- 5 forward
        "#]],
    );
    check(
        "SELECT b.price, a.item FROM bid b LEFT JOIN auction a ON b.auction = a.id AND a.ts > b.ts - INTERVAL '5' SECOND AND a.ts < b.ts AND b.price > a.category",
        expect![[r#"
            0 TableSourceScan(table=[[bid]], fields=[auction, price, ts]) [I]
            1 WatermarkAssigner(rowtime=[ts], watermark=[ts - INTERVAL '4 s']) [I] <- 0 forward
            2 TableSourceScan(table=[[auction]], fields=[id, item, category, ts]) [I]
            3 WatermarkAssigner(rowtime=[ts], watermark=[ts - INTERVAL '4 s']) [I] <- 2 forward
            4 IntervalJoin(joinType=[LeftOuterJoin], windowBounds=[isRowTime=true, leftLowerBound=1, leftUpperBound=4999], where=[auction = id AND price > category], select=[auction, price, ts, id, item, category, ts0]) [I] <- 1 hash[auction] <- input 1 3 hash[id]
            5 Calc(select=[price, item]) [I] <- 4 forward
            6 Sink(table=[out], fields=[price, item]) [NONE] <- 5 forward
        "#]],
    );
    check(
        "SELECT b.price, a.item FROM bid b JOIN auction a ON b.auction = a.id AND b.ts = a.ts",
        expect![[r#"
            0 TableSourceScan(table=[[bid]], fields=[auction, price, ts]) [I]
            1 WatermarkAssigner(rowtime=[ts], watermark=[ts - INTERVAL '4 s']) [I] <- 0 forward
            2 TableSourceScan(table=[[auction]], fields=[id, item, ts]) [I]
            3 WatermarkAssigner(rowtime=[ts], watermark=[ts - INTERVAL '4 s']) [I] <- 2 forward
            4 IntervalJoin(joinType=[InnerJoin], windowBounds=[isRowTime=true, leftLowerBound=0, leftUpperBound=0], where=[auction = id], select=[auction, price, ts, id, item, ts0]) [I] <- 1 hash[auction] <- input 1 3 hash[id]
            5 Calc(select=[price, item]) [I] <- 4 forward
            6 Sink(table=[out], fields=[price, item]) [NONE] <- 5 forward
        "#]],
    );
    check(
        "SELECT a.price FROM bid a JOIN bid b ON a.auction = b.auction AND a.pt BETWEEN b.pt - INTERVAL '1' MINUTE AND b.pt",
        expect![[r#"
            0 TableSourceScan(table=[[bid]], fields=[auction, price, ts]) [I]
            1 Calc(select=[auction, price, ts, proctime() AS pt]) [I] <- 0 forward
            2 WatermarkAssigner(rowtime=[ts], watermark=[ts - INTERVAL '4 s']) [I] <- 1 forward
            3 Calc(select=[auction, price, pt]) [I] <- 2 forward
            4 Calc(select=[auction, pt]) [I] <- 2 forward
            5 IntervalJoin(joinType=[InnerJoin], windowBounds=[isRowTime=false, leftLowerBound=-60000, leftUpperBound=0], where=[auction = auction], select=[auction, price, pt, auction0, pt0]) [I] <- 3 hash[auction] <- input 1 4 hash[auction]
            6 Calc(select=[price]) [I] <- 5 forward
            7 Sink(table=[out], fields=[price]) [NONE] <- 6 forward
        "#]],
    );
    // Bounded on one side only.
    check(
        "SELECT b.price, a.item FROM bid b JOIN auction a ON b.auction = a.id AND b.ts > a.ts",
        expect![[r#"
            0 TableSourceScan(table=[[bid]], fields=[auction, price, ts]) [I]
            1 WatermarkAssigner(rowtime=[ts], watermark=[ts - INTERVAL '4 s']) [I] <- 0 forward
            2 TableSourceScan(table=[[auction]], fields=[id, item, ts]) [I]
            3 WatermarkAssigner(rowtime=[ts], watermark=[ts - INTERVAL '4 s']) [I] <- 2 forward
            4 Join(joinType=[InnerJoin], where=[auction = id AND ts > ts], select=[auction, price, ts, id, item, ts0], leftInputSpec=[NoUniqueKey], rightInputSpec=[NoUniqueKey]) [I] <- 1 hash[auction] <- input 1 3 hash[id]
            5 Calc(select=[price, item]) [I] <- 4 forward
            6 Sink(table=[out], fields=[price, item]) [NONE] <- 5 forward
        "#]],
    );
}

#[test]
fn joins_in_the_same_window() {
    check(
        "SELECT a.auction, a.n, b.m FROM
           (SELECT window_start, window_end, auction, count(*) AS n FROM bid10 GROUP BY window_start, window_end, auction) a
         JOIN (SELECT window_start, window_end, max(price) AS m FROM bid10 GROUP BY window_start, window_end) b
         ON a.window_start = b.window_start AND a.window_end = b.window_end AND a.n >= b.m",
        expect![[r#"
            0 TableSourceScan(table=[[bid]], fields=[auction, price, ts]) [I]
            1 WatermarkAssigner(rowtime=[ts], watermark=[ts - INTERVAL '4 s']) [I] <- 0 forward
            2 Calc(select=[auction, ts]) [I] <- 1 forward
            3 WindowAggregate(groupBy=[auction], window=[TUMBLE(time_col=[ts], size=[10 s])], select=[auction, COUNT(*), start('w$) AS window_start, end('w$) AS window_end]) [I] <- 2 hash[auction]
            4 Calc(select=[window_start, window_end, auction, COUNT(*) AS count(Int64(1))]) [I] <- 3 forward
            5 Calc(select=[price, ts]) [I] <- 1 forward
            6 WindowAggregate(window=[TUMBLE(time_col=[ts], size=[10 s])], select=[MAX(price), start('w$) AS window_start, end('w$) AS window_end]) [I] x1 <- 5 single
            7 Calc(select=[window_start, window_end, MAX(price) AS max(bid10.price)]) [I] x1 <- 6 forward
            8 WindowJoin(leftWindow=[win_end=[window_end]], rightWindow=[win_end=[window_end]], joinType=[InnerJoin], where=[count(Int64(1)) >= max(bid10.price)], select=[window_start, window_end, auction, n, window_start0, window_end0, m]) [I] x1 <- 4 single <- input 1 7 forward
            9 Calc(select=[auction, n, m]) [I] x1 <- 8 forward
            10 Sink(table=[out], fields=[auction, n, m]) [NONE] x1 <- 9 forward
        "#]],
    );
    check(
        "SELECT b.price, a.item FROM bid10 b FULL JOIN auction10 a ON b.auction = a.id AND b.window_start = a.window_start AND b.window_end = a.window_end",
        expect![[r#"
            0 TableSourceScan(table=[[bid]], fields=[auction, price, ts]) [I]
            1 WatermarkAssigner(rowtime=[ts], watermark=[ts - INTERVAL '4 s']) [I] <- 0 forward
            2 WindowTableFunction(window=[TUMBLE(time_col=[ts], size=[10 s])]) [I] <- 1 forward
            3 Calc(select=[auction, price, window_start, window_end]) [I] <- 2 forward
            4 TableSourceScan(table=[[auction]], fields=[id, item, ts]) [I]
            5 WatermarkAssigner(rowtime=[ts], watermark=[ts - INTERVAL '4 s']) [I] <- 4 forward
            6 WindowTableFunction(window=[TUMBLE(time_col=[ts], size=[10 s])]) [I] <- 5 forward
            7 Calc(select=[id, item, window_start, window_end]) [I] <- 6 forward
            8 WindowJoin(leftWindow=[win_end=[window_end]], rightWindow=[win_end=[window_end]], joinType=[FullOuterJoin], where=[auction = id], select=[auction, price, window_start, window_end, id, item, window_start0, window_end0]) [I] <- 3 hash[auction] <- input 1 7 hash[id]
            9 Calc(select=[price, item]) [I] <- 8 forward
            10 Sink(table=[out], fields=[price, item]) [NONE] <- 9 forward
        "#]],
    );
}

#[test]
fn versions_and_look_ups() {
    check(
        "SELECT price * rate AS yen FROM converted",
        expect![[r#"
            0 TableSourceScan(table=[[bid]], fields=[price, channel, ts]) [I]
            1 WatermarkAssigner(rowtime=[ts], watermark=[ts - INTERVAL '4 s']) [I] <- 0 forward
            2 TableSourceScan(table=[[rates]], fields=[currency, rate, ts]) [I,UB,UA,D]
            3 DropUpdateBefore [I,UA,D] <- 2 forward
            4 WatermarkAssigner(rowtime=[ts], watermark=[ts]) [I,UA,D] <- 3 forward
            5 TemporalJoin(joinType=[LeftOuterJoin], where=[channel = currency], leftTime=[time_col=[ts]], select=[price, channel, ts, currency, rate, ts0]) [I] <- 1 hash[channel] <- input 1 4 hash[currency]
            6 Calc(select=[price * rate AS yen]) [I] <- 5 forward
            7 Sink(table=[out], fields=[yen]) [NONE] <- 6 forward
        "#]],
    );
    // A version that does not count ends the one before.
    check(
        "SELECT price * rate AS yen FROM converted_well",
        expect![[r#"
            0 TableSourceScan(table=[[bid]], fields=[price, channel, ts]) [I]
            1 WatermarkAssigner(rowtime=[ts], watermark=[ts - INTERVAL '4 s']) [I] <- 0 forward
            2 TableSourceScan(table=[[rates]], fields=[currency, rate, ts]) [I,UB,UA,D]
            3 DropUpdateBefore [I,UA,D] <- 2 forward
            4 WatermarkAssigner(rowtime=[ts], watermark=[ts]) [I,UA,D] <- 3 forward
            5 TemporalJoin(joinType=[InnerJoin], where=[channel = currency AND rate > 3], leftTime=[time_col=[ts]], select=[price, channel, ts, currency, rate, ts0]) [I] <- 1 hash[channel] <- input 1 4 hash[currency]
            6 Calc(select=[price * rate AS yen]) [I] <- 5 forward
            7 Sink(table=[out], fields=[yen]) [NONE] <- 6 forward
        "#]],
    );
    check(
        "SELECT price * rate AS yen FROM converted_now",
        expect![[r#"
            0 TableSourceScan(table=[[bid]], fields=[price, channel, ts]) [I]
            1 WatermarkAssigner(rowtime=[ts], watermark=[ts - INTERVAL '4 s']) [I] <- 0 forward
            2 TableSourceScan(table=[[rates]], fields=[currency, rate, ts]) [I,UB,UA,D]
            3 DropUpdateBefore [I,UA,D] <- 2 forward
            4 WatermarkAssigner(rowtime=[ts], watermark=[ts]) [I,UA,D] <- 3 forward
            5 Calc(select=[price, channel]) [I] <- 1 forward
            6 Calc(select=[currency, rate]) [I,UA,D] <- 4 forward
            7 TemporalJoin(joinType=[InnerJoin], where=[channel = currency], leftTime=[time_col=[PROCTIME()]], select=[price, channel, currency, rate]) [I] <- 5 hash[channel] <- input 1 6 hash[currency]
            8 Calc(select=[price * rate AS yen]) [I] <- 7 forward
            9 Sink(table=[out], fields=[yen]) [NONE] <- 8 forward
        "#]],
    );
    check(
        "SELECT price, value FROM looked_up",
        expect![[r#"
            0 TableSourceScan(table=[[bid]], fields=[auction, price, ts]) [I]
            1 Calc(select=[auction, price, ts, proctime() AS pt]) [I] <- 0 forward
            2 WatermarkAssigner(rowtime=[ts], watermark=[ts - INTERVAL '4 s']) [I] <- 1 forward
            3 Calc(select=[auction, price, pt]) [I] <- 2 forward
            4 LookupJoin(table=[side], joinType=[LeftOuterJoin], lookup=[key=auction], where=[kind > 1], select=[auction, price, pt, key, value, kind]) [I] <- 3 forward
            5 Calc(select=[price, value]) [I] <- 4 forward
            6 Sink(table=[out], fields=[price, value]) [NONE] <- 5 forward
        "#]],
    );
    check(
        "SELECT id, tag FROM tagged",
        expect![[r#"
            0 TableSourceScan(table=[[orders]], fields=[id, tags]) [I]
            1 Correlate(correlate=[UNNEST(tags)], joinType=[LEFT], select=[id, tag]) [I] <- 0 forward
            2 Sink(table=[out], fields=[id, tag]) [NONE] <- 1 forward
        "#]],
    );
}
