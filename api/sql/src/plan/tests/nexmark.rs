//! Queries of the Nexmark benchmark, as far as they are about planning.

use expect_test::{Expect, expect};

use super::world::planned;

fn check(sql: &str, expected: Expect) {
    expected.assert_eq(&planned(sql));
}

#[test]
fn q4_average_price_for_a_category() {
    check(
        "SELECT q.category, avg(q.final) AS final FROM (
           SELECT max(b.price) AS final, a.category FROM auction a, bid b
           WHERE a.id = b.auction AND b.ts BETWEEN a.ts AND a.expires GROUP BY a.id, a.category
         ) q GROUP BY q.category",
        expect![[r#"
            0 TableSourceScan(table=[[auction]], fields=[id, category, ts, expires]) [I]
            1 WatermarkAssigner(rowtime=[ts], watermark=[ts - INTERVAL '4 s']) [I] <- 0 forward
            2 TableSourceScan(table=[[bid]], fields=[auction, price, ts]) [I]
            3 WatermarkAssigner(rowtime=[ts], watermark=[ts - INTERVAL '4 s']) [I] <- 2 forward
            4 Join(joinType=[InnerJoin], where=[id = auction AND ts >= ts AND ts <= expires], select=[id, category, ts, expires, auction, price, ts0], leftInputSpec=[NoUniqueKey], rightInputSpec=[NoUniqueKey]) [I] <- 1 hash[id] <- input 1 3 hash[auction]
            5 Calc(select=[id, category, price]) [I] <- 4 forward
            6 GroupAggregate(groupBy=[id, category], select=[id, category, MAX(price) AS max(b.price)]) [I,UB,UA] <- 5 hash[id, category]
            7 Calc(select=[category, CAST(max(b.price) AS Float64) AS $f1]) [I,UB,UA] <- 6 forward
            8 GroupAggregate(groupBy=[category], select=[category, AVG(CAST(final AS Float64)) AS final]) [I,UB,UA,D] <- 7 hash[category]
            9 Sink(table=[out], fields=[category, final]) [NONE] <- 8 forward
        "#]],
    );
}

#[test]
fn q5_hot_items() {
    check(
        "SELECT counts.auction, counts.num FROM (
           SELECT auction, count(*) AS num, window_start AS starttime, window_end AS endtime FROM bid_hop
           GROUP BY auction, window_start, window_end
         ) AS counts JOIN (
           SELECT max(c.num) AS maxn, c.starttime, c.endtime FROM (
             SELECT count(*) AS num, window_start AS starttime, window_end AS endtime FROM bid_hop
             GROUP BY auction, window_start, window_end
           ) AS c GROUP BY c.starttime, c.endtime
         ) AS maxes
         ON counts.starttime = maxes.starttime AND counts.endtime = maxes.endtime AND counts.num >= maxes.maxn",
        expect![[r#"
            0 TableSourceScan(table=[[bid]], fields=[auction, ts]) [I]
            1 WatermarkAssigner(rowtime=[ts], watermark=[ts - INTERVAL '4 s']) [I] <- 0 forward
            2 WindowAggregate(groupBy=[auction], window=[HOP(time_col=[ts], size=[10 s], slide=[2 s])], select=[auction, COUNT(*), start('w$) AS window_start, end('w$) AS window_end]) [I] <- 1 hash[auction]
            3 Calc(select=[window_start AS starttime, window_end AS endtime, COUNT(*) AS num]) [I] <- 2 forward
            4 WindowAggregate(window=[HOP(win_start=[starttime], win_end=[endtime], size=[10 s], slide=[2 s])], select=[MAX(num), start('w$) AS window_start, end('w$) AS window_end]) [I] x1 <- 3 single
            5 WindowJoin(leftWindow=[win_end=[window_end]], rightWindow=[win_end=[window_end]], joinType=[InnerJoin], where=[COUNT(*) >= MAX(num)], select=[auction, num, starttime, endtime, maxn, starttime0, endtime0]) [I] x1 <- 2 single <- input 1 4 forward
            6 Calc(select=[auction, num]) [I] x1 <- 5 forward
            7 Sink(table=[out], fields=[auction, num]) [NONE] x1 <- 6 forward
        "#]],
    );
}

#[test]
fn q7_highest_bid() {
    check(
        "SELECT b.auction, b.price, b.bidder, b.ts FROM bid b JOIN (
           SELECT max(price) AS maxprice, window_end AS ts FROM bid10 GROUP BY window_start, window_end
         ) m ON b.price = m.maxprice AND b.ts BETWEEN m.ts - INTERVAL '10' SECOND AND m.ts",
        expect![[r#"
            0 TableSourceScan(table=[[bid]], fields=[auction, bidder, price, ts]) [I]
            1 WatermarkAssigner(rowtime=[ts], watermark=[ts - INTERVAL '4 s']) [I] <- 0 forward
            2 Calc(select=[price, ts]) [I] <- 1 forward
            3 WindowAggregate(window=[TUMBLE(time_col=[ts], size=[10 s])], select=[MAX(price), start('w$) AS window_start, end('w$) AS window_end]) [I] x1 <- 2 single
            4 Calc(select=[MAX(price) AS maxprice, window_end AS ts]) [I] x1 <- 3 forward
            5 Join(joinType=[InnerJoin], where=[price = maxprice AND ts >= ts - INTERVAL '10 s' AND ts <= ts], select=[auction, bidder, price, ts, maxprice, ts0], leftInputSpec=[NoUniqueKey], rightInputSpec=[NoUniqueKey]) [I] <- 1 hash[price] <- input 1 4 hash[maxprice]
            6 Calc(select=[auction, price, bidder, ts]) [I] <- 5 forward
            7 Sink(table=[out], fields=[auction, price, bidder, ts]) [NONE] <- 6 forward
        "#]],
    );
}

#[test]
fn q8_monitor_new_users() {
    check(
        "SELECT p.id, p.starttime FROM (
           SELECT bidder AS id, window_start AS starttime, window_end AS endtime FROM bid10 GROUP BY bidder, window_start, window_end
         ) p JOIN (
           SELECT seller, window_start AS starttime, window_end AS endtime FROM auction10 GROUP BY seller, window_start, window_end
         ) a ON p.id = a.seller AND p.starttime = a.starttime AND p.endtime = a.endtime",
        expect![[r#"
            0 TableSourceScan(table=[[bid]], fields=[bidder, ts]) [I]
            1 WatermarkAssigner(rowtime=[ts], watermark=[ts - INTERVAL '4 s']) [I] <- 0 forward
            2 WindowAggregate(groupBy=[bidder], window=[TUMBLE(time_col=[ts], size=[10 s])], select=[bidder, start('w$) AS starttime, end('w$) AS endtime]) [I] <- 1 hash[bidder]
            3 TableSourceScan(table=[[auction]], fields=[seller, ts]) [I]
            4 WatermarkAssigner(rowtime=[ts], watermark=[ts - INTERVAL '4 s']) [I] <- 3 forward
            5 WindowAggregate(groupBy=[seller], window=[TUMBLE(time_col=[ts], size=[10 s])], select=[seller, start('w$) AS starttime, end('w$) AS endtime]) [I] <- 4 hash[seller]
            6 WindowJoin(leftWindow=[win_end=[endtime]], rightWindow=[win_end=[endtime]], joinType=[InnerJoin], where=[id = seller], select=[id, starttime, endtime, seller, starttime0, endtime0]) [I] <- 2 forward <- input 1 5 forward
            7 Calc(select=[id, starttime]) [I] <- 6 forward
            8 Sink(table=[out], fields=[id, starttime]) [NONE] <- 7 forward
        "#]],
    );
}

#[test]
fn q9_winning_bids() {
    check(
        "SELECT id, item, auction, bidder, price FROM (
           SELECT a.*, b.auction, b.bidder, b.price, row_number() OVER (PARTITION BY a.id ORDER BY b.price DESC, b.ts ASC) AS rownum
           FROM auction a, bid b WHERE a.id = b.auction AND b.ts BETWEEN a.ts AND a.expires
         ) WHERE rownum <= 1",
        expect![[r#"
            0 TableSourceScan(table=[[auction]], fields=[id, item, ts, expires]) [I]
            1 WatermarkAssigner(rowtime=[ts], watermark=[ts - INTERVAL '4 s']) [I] <- 0 forward
            2 TableSourceScan(table=[[bid]], fields=[auction, bidder, price, ts]) [I]
            3 WatermarkAssigner(rowtime=[ts], watermark=[ts - INTERVAL '4 s']) [I] <- 2 forward
            4 Join(joinType=[InnerJoin], where=[id = auction AND ts >= ts AND ts <= expires], select=[id, item, ts, expires, auction, bidder, price, ts0], leftInputSpec=[NoUniqueKey], rightInputSpec=[NoUniqueKey]) [I] <- 1 hash[id] <- input 1 3 hash[auction]
            5 Calc(select=[id, item, auction, bidder, price, ts0 AS ts]) [I] <- 4 forward
            6 Rank(strategy=[AppendFastStrategy], rankType=[ROW_NUMBER], rankRange=[rankStart=1, rankEnd=1], partitionBy=[id], orderBy=[price DESC NULLS FIRST, ts ASC NULLS LAST], select=[id, item, auction, bidder, price, ts]) [I,UB,UA,D] <- 5 forward
            7 Calc(select=[id, item, auction, bidder, price]) [I,UB,UA,D] <- 6 forward
            8 Sink(table=[out], fields=[id, item, auction, bidder, price]) [NONE] <- 7 forward
        "#]],
    );
}

#[test]
fn q16_channel_statistics() {
    check(
        "SELECT channel, date_trunc('day', ts) AS day, count(*) AS total_bids,
           count(*) FILTER (WHERE price < 10000) AS rank1_bids, count(distinct bidder) AS total_bidders,
           count(distinct bidder) FILTER (WHERE price < 10000) AS rank1_bidders
         FROM bid GROUP BY channel, date_trunc('day', ts)",
        expect![[r#"
            0 TableSourceScan(table=[[bid]], fields=[bidder, price, channel, ts]) [I]
            1 WatermarkAssigner(rowtime=[ts], watermark=[ts - INTERVAL '4 s']) [I] <- 0 forward
            2 Calc(select=[channel, date_trunc('day', ts) AS date_trunc(Utf8("day"),bid.ts), price < 10000 AS __common_expr_1, bidder]) [I] <- 1 forward
            3 GroupAggregate(groupBy=[channel, date_trunc(Utf8("day"),bid.ts)], select=[channel, date_trunc(Utf8("day"),bid.ts), COUNT(*) AS total_bids, COUNT(*) FILTER (WHERE __common_expr_1) AS rank1_bids, COUNT(DISTINCT bidder) AS total_bidders, COUNT(DISTINCT bidder) FILTER (WHERE __common_expr_1) AS rank1_bidders]) [I,UB,UA] <- 2 hash[channel, date_trunc(Utf8("day"),bid.ts)]
            4 Sink(table=[out], fields=[channel, day, total_bids, rank1_bids, total_bidders, rank1_bidders]) [NONE] <- 3 forward
        "#]],
    );
}

#[test]
fn q18_last_bid() {
    check(
        "SELECT auction, bidder, price FROM (
           SELECT *, row_number() OVER (PARTITION BY bidder, auction ORDER BY ts DESC) AS rank_number FROM bid
         ) WHERE rank_number <= 1",
        expect![[r#"
            0 TableSourceScan(table=[[bid]], fields=[auction, bidder, price, ts]) [I]
            1 WatermarkAssigner(rowtime=[ts], watermark=[ts - INTERVAL '4 s']) [I] <- 0 forward
            2 Deduplicate(keep=[LastRow], key=[bidder, auction], order=[ROWTIME ts]) [I,UB,UA] <- 1 hash[bidder, auction]
            3 Calc(select=[auction, bidder, price]) [I,UB,UA] <- 2 forward
            4 Sink(table=[out], fields=[auction, bidder, price]) [NONE] <- 3 forward
        "#]],
    );
}
