//! The queries of the Nexmark benchmark, as they are in Flink's dialect.

use expect_test::{Expect, expect};

use super::world::planned;

macro_rules! check {
    ($query:literal, $expected:expr) => {
        let expected: Expect = $expected;
        expected.assert_eq(&planned(include_str!(concat!("../../../tests/nexmark/", $query, ".sql"))));
    };
}

#[test]
fn q0_pass_through() {
    check!(
        "q0",
        expect![[r#"
        0 TableSourceScan(table=[[default_catalog, default_database, bid]], fields=[auction, bidder, price, dateTime, extra]) [I]
        1 WatermarkAssigner(rowtime=[dateTime], watermark=[flink_subtract(dateTime, INTERVAL '4 s')]) [I] <- 0 forward
        2 Sink(table=[SELECT], fields=[auction, bidder, price, dateTime, extra]) [NONE] <- 1 forward
    "#]]
    );
}

#[test]
fn q1_currency_conversion() {
    check!(
        "q1",
        expect![[r#"
        0 TableSourceScan(table=[[default_catalog, default_database, bid]], fields=[auction, bidder, price, dateTime, extra]) [I]
        1 WatermarkAssigner(rowtime=[dateTime], watermark=[flink_subtract(dateTime, INTERVAL '4 s')]) [I] <- 0 forward
        2 Calc(select=[auction, bidder, flink_multiply(Some(908),3,3, price) AS price, dateTime, extra]) [I] <- 1 forward
        3 Sink(table=[SELECT], fields=[auction, bidder, price, dateTime, extra]) [NONE] <- 2 forward
    "#]]
    );
}

#[test]
fn q2_selection() {
    check!(
        "q2",
        expect![[r#"
        0 TableSourceScan(table=[[default_catalog, default_database, bid]], fields=[auction, price, dateTime]) [I]
        1 WatermarkAssigner(rowtime=[dateTime], watermark=[flink_subtract(dateTime, INTERVAL '4 s')]) [I] <- 0 forward
        2 Calc(select=[auction, price], where=[flink_mod(auction, 123) = 0]) [I] <- 1 forward
        3 Sink(table=[SELECT], fields=[auction, price]) [NONE] <- 2 forward
    "#]]
    );
}

#[test]
fn q3_local_item_suggestion() {
    check!(
        "q3",
        expect![[r#"
        0 TableSourceScan(table=[[default_catalog, default_database, auction]], fields=[id, dateTime, seller, category]) [I]
        1 WatermarkAssigner(rowtime=[dateTime], watermark=[flink_subtract(dateTime, INTERVAL '4 s')]) [I] <- 0 forward
        2 Calc(select=[id, seller], where=[category = 10]) [I] <- 1 forward
        3 TableSourceScan(table=[[default_catalog, default_database, person]], fields=[id, name, city, state, dateTime]) [I]
        4 WatermarkAssigner(rowtime=[dateTime], watermark=[flink_subtract(dateTime, INTERVAL '4 s')]) [I] <- 3 forward
        5 Calc(select=[id, name, city, state], where=[state = 'OR' OR state = 'ID' OR state = 'CA']) [I] <- 4 forward
        6 Join(joinType=[InnerJoin], where=[seller = id], select=[id, seller, id0, name, city, state], leftInputSpec=[NoUniqueKey], rightInputSpec=[NoUniqueKey]) [I] <- 2 hash[seller] <- input 1 5 hash[id]
        7 Calc(select=[name, city, state, id]) [I] <- 6 forward
        8 Sink(table=[SELECT], fields=[name, city, state, id]) [NONE] <- 7 forward
    "#]]
    );
}

#[test]
fn q4_average_price_for_a_category() {
    check!(
        "q4",
        expect![[r#"
        0 TableSourceScan(table=[[default_catalog, default_database, auction]], fields=[id, dateTime, expires, category]) [I]
        1 WatermarkAssigner(rowtime=[dateTime], watermark=[flink_subtract(dateTime, INTERVAL '4 s')]) [I] <- 0 forward
        2 TableSourceScan(table=[[default_catalog, default_database, bid]], fields=[auction, price, dateTime]) [I]
        3 WatermarkAssigner(rowtime=[dateTime], watermark=[flink_subtract(dateTime, INTERVAL '4 s')]) [I] <- 2 forward
        4 Join(joinType=[InnerJoin], where=[id = auction AND dateTime >= dateTime AND dateTime <= expires], select=[id, dateTime, expires, category, auction, price, dateTime0], leftInputSpec=[NoUniqueKey], rightInputSpec=[NoUniqueKey]) [I] <- 1 hash[id] <- input 1 3 hash[auction]
        5 Calc(select=[id, category, price]) [I] <- 4 forward
        6 GroupAggregate(groupBy=[id, category], select=[id, category, MAX(price) AS max(B.price)]) [I,UB,UA] <- 5 hash[id, category]
        7 Calc(select=[category, max(B.price) AS final]) [I,UB,UA] <- 6 forward
        8 GroupAggregate(groupBy=[category], select=[category, AVG(final) AS EXPR$1]) [I,UB,UA,D] <- 7 hash[category]
        9 Sink(table=[SELECT], fields=[category, EXPR$1]) [NONE] <- 8 forward
    "#]]
    );
}

#[test]
fn q5_hot_items() {
    check!(
        "q5",
        expect![[r#"
        0 TableSourceScan(table=[[default_catalog, default_database, bid]], fields=[auction, dateTime]) [I]
        1 WatermarkAssigner(rowtime=[dateTime], watermark=[flink_subtract(dateTime, INTERVAL '4 s')]) [I] <- 0 forward
        2 WindowAggregate(groupBy=[auction], window=[HOP(time_col=[dateTime], size=[10 s], slide=[2 s])], select=[auction, COUNT(*), start('w$) AS window_start, end('w$) AS window_end]) [I] <- 1 hash[auction]
        3 Calc(select=[window_start AS starttime, window_end AS endtime, COUNT(*) AS num]) [I] <- 2 forward
        4 WindowAggregate(window=[HOP(win_start=[starttime], win_end=[endtime], size=[10 s], slide=[2 s])], select=[MAX(num), start('w$) AS window_start, end('w$) AS window_end]) [I] x1 <- 3 single
        5 WindowJoin(leftWindow=[win_end=[window_end]], rightWindow=[win_end=[window_end]], joinType=[InnerJoin], where=[COUNT(*) >= MAX(num)], select=[auction, num, starttime, endtime, maxn, starttime0, endtime0]) [I] x1 <- 2 single <- input 1 4 forward
        6 Calc(select=[auction, num]) [I] x1 <- 5 forward
        7 Sink(table=[SELECT], fields=[auction, num]) [NONE] x1 <- 6 forward
    "#]]
    );
}

#[test]
fn q6_average_selling_price_by_seller() {
    check!(
        "q6",
        expect![[r#"
            0 TableSourceScan(table=[[default_catalog, default_database, auction]], fields=[id, dateTime, expires, seller]) [I]
            1 WatermarkAssigner(rowtime=[dateTime], watermark=[flink_subtract(dateTime, INTERVAL '4 s')]) [I] <- 0 forward
            2 TableSourceScan(table=[[default_catalog, default_database, bid]], fields=[auction, price, dateTime]) [I]
            3 WatermarkAssigner(rowtime=[dateTime], watermark=[flink_subtract(dateTime, INTERVAL '4 s')]) [I] <- 2 forward
            4 Join(joinType=[InnerJoin], where=[id = auction AND dateTime >= dateTime AND dateTime <= expires], select=[id, dateTime, expires, seller, auction, price, dateTime0], leftInputSpec=[NoUniqueKey], rightInputSpec=[NoUniqueKey]) [I] <- 1 hash[id] <- input 1 3 hash[auction]
            5 Calc(select=[id, seller, dateTime0 AS dateTime, price]) [I] <- 4 forward
            6 GroupAggregate(groupBy=[id, seller, dateTime], select=[id, seller, dateTime, MAX(price) AS max(B.price)]) [I,UB,UA] <- 5 hash[id, seller, dateTime]
            7 Calc(select=[max(B.price) AS final, seller, dateTime]) [I,UB,UA] <- 6 forward
            8 OverAggregate(partitionBy=[seller], orderBy=[dateTime ASC], window=[ROWS BETWEEN 10 PRECEDING AND CURRENT ROW], select=[final, seller, dateTime, AVG(final) AS avg(Q.final) PARTITION BY [Q.seller] ORDER BY [Q.dateTime ASC NULLS FIRST] ROWS BETWEEN 10 PRECEDING AND CURRENT ROW]) [I,UB,UA,D] <- 7 hash[seller]
            9 Calc(select=[seller, avg(Q.final) PARTITION BY [Q.seller] ORDER BY [Q.dateTime ASC NULLS FIRST] ROWS BETWEEN 10 PRECEDING AND CURRENT ROW AS EXPR$1]) [I,UB,UA,D] <- 8 forward
            10 Sink(table=[SELECT], fields=[seller, EXPR$1]) [NONE] <- 9 forward
        "#]]
    );
}

#[test]
fn q7_highest_bid() {
    check!(
        "q7",
        expect![[r#"
        0 TableSourceScan(table=[[default_catalog, default_database, bid]], fields=[auction, bidder, price, dateTime, extra]) [I]
        1 WatermarkAssigner(rowtime=[dateTime], watermark=[flink_subtract(dateTime, INTERVAL '4 s')]) [I] <- 0 forward
        2 Calc(select=[price, dateTime]) [I] <- 1 forward
        3 WindowAggregate(window=[TUMBLE(time_col=[dateTime], size=[10 s])], select=[MAX(price), start('w$) AS window_start, end('w$) AS window_end]) [I] x1 <- 2 single
        4 Calc(select=[MAX(price) AS maxprice, window_end AS dateTime]) [I] x1 <- 3 forward
        5 Join(joinType=[InnerJoin], where=[price = maxprice AND dateTime >= flink_subtract(dateTime, INTERVAL '10 s') AND dateTime >= dateTime], select=[auction, bidder, price, dateTime, extra, maxprice, dateTime0], leftInputSpec=[NoUniqueKey], rightInputSpec=[NoUniqueKey]) [I] <- 1 hash[price] <- input 1 4 hash[maxprice]
        6 Calc(select=[auction, price, bidder, dateTime, extra]) [I] <- 5 forward
        7 Sink(table=[SELECT], fields=[auction, price, bidder, dateTime, extra]) [NONE] <- 6 forward
    "#]]
    );
}

#[test]
fn q8_monitor_new_users() {
    check!(
        "q8",
        expect![[r#"
        0 TableSourceScan(table=[[default_catalog, default_database, person]], fields=[id, name, dateTime]) [I]
        1 WatermarkAssigner(rowtime=[dateTime], watermark=[flink_subtract(dateTime, INTERVAL '4 s')]) [I] <- 0 forward
        2 WindowAggregate(groupBy=[id, name], window=[TUMBLE(time_col=[dateTime], size=[10 s])], select=[id, name, start('w$) AS starttime, end('w$) AS endtime]) [I] <- 1 hash[id, name]
        3 TableSourceScan(table=[[default_catalog, default_database, auction]], fields=[dateTime, seller]) [I]
        4 WatermarkAssigner(rowtime=[dateTime], watermark=[flink_subtract(dateTime, INTERVAL '4 s')]) [I] <- 3 forward
        5 Calc(select=[seller, dateTime]) [I] <- 4 forward
        6 WindowAggregate(groupBy=[seller], window=[TUMBLE(time_col=[dateTime], size=[10 s])], select=[seller, start('w$) AS starttime, end('w$) AS endtime]) [I] <- 5 hash[seller]
        7 WindowJoin(leftWindow=[win_end=[endtime]], rightWindow=[win_end=[endtime]], joinType=[InnerJoin], where=[id = seller], select=[id, name, starttime, endtime, seller, starttime0, endtime0]) [I] <- 2 hash[id] <- input 1 6 forward
        8 Calc(select=[id, name, starttime]) [I] <- 7 forward
        9 Sink(table=[SELECT], fields=[id, name, starttime]) [NONE] <- 8 forward
    "#]]
    );
}

#[test]
fn q9_winning_bids() {
    check!(
        "q9",
        expect![[r#"
        0 TableSourceScan(table=[[default_catalog, default_database, auction]], fields=[id, itemName, description, initialBid, reserve, dateTime, expires, seller, category, extra]) [I]
        1 WatermarkAssigner(rowtime=[dateTime], watermark=[flink_subtract(dateTime, INTERVAL '4 s')]) [I] <- 0 forward
        2 TableSourceScan(table=[[default_catalog, default_database, bid]], fields=[auction, bidder, price, dateTime, extra]) [I]
        3 WatermarkAssigner(rowtime=[dateTime], watermark=[flink_subtract(dateTime, INTERVAL '4 s')]) [I] <- 2 forward
        4 Join(joinType=[InnerJoin], where=[id = auction AND dateTime >= dateTime AND dateTime <= expires], select=[id, itemName, description, initialBid, reserve, dateTime, expires, seller, category, extra, auction, bidder, price, dateTime0, extra0], leftInputSpec=[NoUniqueKey], rightInputSpec=[NoUniqueKey]) [I] <- 1 hash[id] <- input 1 3 hash[auction]
        5 Rank(strategy=[AppendFastStrategy], rankType=[ROW_NUMBER], rankRange=[rankStart=1, rankEnd=1], partitionBy=[id], orderBy=[price DESC, dateTime0 ASC], select=[id, itemName, description, initialBid, reserve, dateTime, expires, seller, category, extra, auction, bidder, price, dateTime0, extra0]) [I,UB,UA,D] <- 4 forward
        6 Sink(table=[SELECT], fields=[id, itemName, description, initialBid, reserve, dateTime, expires, seller, category, extra, auction, bidder, price, dateTime0, extra0]) [NONE] <- 5 forward
    "#]]
    );
}

#[test]
fn q10_log_to_file_system() {
    check!(
        "q10",
        expect![[r#"
        0 TableSourceScan(table=[[default_catalog, default_database, bid]], fields=[auction, bidder, price, dateTime, extra]) [I]
        1 WatermarkAssigner(rowtime=[dateTime], watermark=[flink_subtract(dateTime, INTERVAL '4 s')]) [I] <- 0 forward
        2 Calc(select=[auction, bidder, price, dateTime, extra, flink_date_format(dateTime, 'yyyy-MM-dd') AS EXPR$5, flink_date_format(dateTime, 'HH:mm') AS EXPR$6]) [I] <- 1 forward
        3 Sink(table=[SELECT], fields=[auction, bidder, price, dateTime, extra, EXPR$5, EXPR$6]) [NONE] <- 2 forward
    "#]]
    );
}

#[test]
fn q11_user_sessions() {
    check!(
        "q11",
        expect![[r#"
        0 TableSourceScan(table=[[default_catalog, default_database, bid]], fields=[bidder, dateTime]) [I]
        1 WatermarkAssigner(rowtime=[dateTime], watermark=[flink_subtract(dateTime, INTERVAL '4 s')]) [I] <- 0 forward
        2 WindowAggregate(groupBy=[bidder], window=[SESSION(time_col=[dateTime], gap=[10 s])], select=[bidder, COUNT(*), start('w$) AS window_start, end('w$) AS window_end, rowtime('w$) AS window_time]) [I] <- 1 hash[bidder]
        3 Calc(select=[bidder, COUNT(*) AS bid_count, window_start AS starttime, window_end AS endtime]) [I] <- 2 forward
        4 Sink(table=[SELECT], fields=[bidder, bid_count, starttime, endtime]) [NONE] <- 3 forward
    "#]]
    );
}

#[test]
fn q12_processing_time_windows() {
    check!(
        "q12",
        expect![[r#"
        0 TableSourceScan(table=[[default_catalog, default_database, bid]], fields=[bidder, dateTime]) [I]
        1 WatermarkAssigner(rowtime=[dateTime], watermark=[flink_subtract(dateTime, INTERVAL '4 s')]) [I] <- 0 forward
        2 Calc(select=[bidder]) [I] <- 1 forward
        3 WindowAggregate(groupBy=[bidder], window=[TUMBLE(time_col=[PROCTIME()], size=[10 s])], select=[bidder, COUNT(*), start('w$) AS window_start, end('w$) AS window_end]) [I] <- 2 hash[bidder]
        4 Sink(table=[SELECT], fields=[bidder, COUNT(*), window_start, window_end]) [NONE] <- 3 forward
    "#]]
    );
}

#[test]
fn q13_bounded_side_input() {
    check!(
        "q13",
        expect![[r#"
        0 TableSourceScan(table=[[default_catalog, default_database, bid]], fields=[auction, bidder, price, dateTime]) [I]
        1 WatermarkAssigner(rowtime=[dateTime], watermark=[flink_subtract(dateTime, INTERVAL '4 s')]) [I] <- 0 forward
        2 Calc(select=[auction, bidder, price, dateTime, proctime() AS p_time, CAST(flink_mod(auction, 10000) AS Int64) AS $f5]) [I] <- 1 forward
        3 LookupJoin(table=[default_catalog.default_database.side_input], joinType=[InnerJoin], lookup=[key=$f5], select=[auction, bidder, price, dateTime, p_time, $f5, key, value]) [I] <- 2 forward
        4 Calc(select=[auction, bidder, price, dateTime, value]) [I] <- 3 forward
        5 Sink(table=[SELECT], fields=[auction, bidder, price, dateTime, value]) [NONE] <- 4 forward
    "#]]
    );
}

#[test]
fn q14_calculation() {
    check!(
        "q14",
        expect![[r#"
        0 TableSourceScan(table=[[default_catalog, default_database, bid]], fields=[auction, bidder, price, dateTime, extra]) [I]
        1 WatermarkAssigner(rowtime=[dateTime], watermark=[flink_subtract(dateTime, INTERVAL '4 s')]) [I] <- 0 forward
        2 Calc(select=[flink_multiply(Some(908),3,3, price) AS __common_expr_4, auction, bidder, price, dateTime, extra]) [I] <- 1 forward
        3 Calc(select=[hour(dateTime) AS __common_expr_1, auction, bidder, price, dateTime, extra], where=[__common_expr_4 > Some(1000000000),23,3 AND __common_expr_4 < Some(50000000000),23,3]) [I] <- 2 forward
        4 Calc(select=[auction, bidder, flink_multiply(Some(908),3,3, price) AS price, CASE WHEN __common_expr_1 >= 8 AND __common_expr_1 <= 18 THEN 'dayTime' WHEN __common_expr_1 <= 6 OR __common_expr_1 >= 20 THEN 'nightTime' ELSE 'otherTime' END AS bidTimeType, dateTime, extra, flink_subtract(flink_char_length(extra), flink_char_length(flink_replace(extra, 'c', ''))) AS c_counts]) [I] <- 3 forward
        5 Sink(table=[SELECT], fields=[auction, bidder, price, bidTimeType, dateTime, extra, c_counts]) [NONE] <- 4 forward
    "#]]
    );
}

#[test]
fn q15_bidding_statistics() {
    check!(
        "q15",
        expect![[r#"
        0 TableSourceScan(table=[[default_catalog, default_database, bid]], fields=[auction, bidder, price, dateTime]) [I]
        1 WatermarkAssigner(rowtime=[dateTime], watermark=[flink_subtract(dateTime, INTERVAL '4 s')]) [I] <- 0 forward
        2 Calc(select=[flink_date_format(dateTime, 'yyyy-MM-dd') AS flink_date_format(bid.dateTime,Utf8("yyyy-MM-dd")), price < 10000 AS __common_expr_1, price >= 10000 AND price < 1000000 AS __common_expr_2, price >= 1000000 AS __common_expr_3, bidder, auction]) [I] <- 1 forward
        3 GroupAggregate(groupBy=[flink_date_format(bid.dateTime,Utf8("yyyy-MM-dd"))], select=[flink_date_format(bid.dateTime,Utf8("yyyy-MM-dd")), COUNT(*) AS total_bids, COUNT(*) FILTER (WHERE __common_expr_1) AS rank1_bids, COUNT(*) FILTER (WHERE __common_expr_2) AS rank2_bids, COUNT(*) FILTER (WHERE __common_expr_3) AS rank3_bids, COUNT(DISTINCT bidder) AS total_bidders, COUNT(DISTINCT bidder) FILTER (WHERE __common_expr_1) AS rank1_bidders, COUNT(DISTINCT bidder) FILTER (WHERE __common_expr_2) AS rank2_bidders, COUNT(DISTINCT bidder) FILTER (WHERE __common_expr_3) AS rank3_bidders, COUNT(DISTINCT auction) AS total_auctions, COUNT(DISTINCT auction) FILTER (WHERE __common_expr_1) AS rank1_auctions, COUNT(DISTINCT auction) FILTER (WHERE __common_expr_2) AS rank2_auctions, COUNT(DISTINCT auction) FILTER (WHERE __common_expr_3) AS rank3_auctions]) [I,UB,UA] <- 2 hash[flink_date_format(bid.dateTime,Utf8("yyyy-MM-dd"))]
        4 Sink(table=[SELECT], fields=[day, total_bids, rank1_bids, rank2_bids, rank3_bids, total_bidders, rank1_bidders, rank2_bidders, rank3_bidders, total_auctions, rank1_auctions, rank2_auctions, rank3_auctions]) [NONE] <- 3 forward
    "#]]
    );
}

#[test]
fn q16_channel_statistics() {
    check!(
        "q16",
        expect![[r#"
        0 TableSourceScan(table=[[default_catalog, default_database, bid]], fields=[auction, bidder, price, channel, dateTime]) [I]
        1 WatermarkAssigner(rowtime=[dateTime], watermark=[flink_subtract(dateTime, INTERVAL '4 s')]) [I] <- 0 forward
        2 Calc(select=[channel, flink_date_format(dateTime, 'yyyy-MM-dd') AS flink_date_format(bid.dateTime,Utf8("yyyy-MM-dd")), flink_date_format(dateTime, 'HH:mm') AS $f2, price < 10000 AS __common_expr_1, price >= 10000 AND price < 1000000 AS __common_expr_2, price >= 1000000 AS __common_expr_3, bidder, auction]) [I] <- 1 forward
        3 GroupAggregate(groupBy=[channel, flink_date_format(bid.dateTime,Utf8("yyyy-MM-dd"))], select=[channel, flink_date_format(bid.dateTime,Utf8("yyyy-MM-dd")), MAX(flink_date_format(dateTime, 'HH:mm')) AS minute, COUNT(*) AS total_bids, COUNT(*) FILTER (WHERE __common_expr_1) AS rank1_bids, COUNT(*) FILTER (WHERE __common_expr_2) AS rank2_bids, COUNT(*) FILTER (WHERE __common_expr_3) AS rank3_bids, COUNT(DISTINCT bidder) AS total_bidders, COUNT(DISTINCT bidder) FILTER (WHERE __common_expr_1) AS rank1_bidders, COUNT(DISTINCT bidder) FILTER (WHERE __common_expr_2) AS rank2_bidders, COUNT(DISTINCT bidder) FILTER (WHERE __common_expr_3) AS rank3_bidders, COUNT(DISTINCT auction) AS total_auctions, COUNT(DISTINCT auction) FILTER (WHERE __common_expr_1) AS rank1_auctions, COUNT(DISTINCT auction) FILTER (WHERE __common_expr_2) AS rank2_auctions, COUNT(DISTINCT auction) FILTER (WHERE __common_expr_3) AS rank3_auctions]) [I,UB,UA] <- 2 hash[channel, flink_date_format(bid.dateTime,Utf8("yyyy-MM-dd"))]
        4 Sink(table=[SELECT], fields=[channel, day, minute, total_bids, rank1_bids, rank2_bids, rank3_bids, total_bidders, rank1_bidders, rank2_bidders, rank3_bidders, total_auctions, rank1_auctions, rank2_auctions, rank3_auctions]) [NONE] <- 3 forward
    "#]]
    );
}

#[test]
fn q17_auction_statistics() {
    check!(
        "q17",
        expect![[r#"
        0 TableSourceScan(table=[[default_catalog, default_database, bid]], fields=[auction, price, dateTime]) [I]
        1 WatermarkAssigner(rowtime=[dateTime], watermark=[flink_subtract(dateTime, INTERVAL '4 s')]) [I] <- 0 forward
        2 Calc(select=[auction, flink_date_format(dateTime, 'yyyy-MM-dd') AS flink_date_format(bid.dateTime,Utf8("yyyy-MM-dd")), price < 10000 AS $f2, price >= 10000 AND price < 1000000 AS $f3, price >= 1000000 AS $f4, price]) [I] <- 1 forward
        3 GroupAggregate(groupBy=[auction, flink_date_format(bid.dateTime,Utf8("yyyy-MM-dd"))], select=[auction, flink_date_format(bid.dateTime,Utf8("yyyy-MM-dd")), COUNT(*) AS total_bids, COUNT(*) FILTER (WHERE price < 10000) AS rank1_bids, COUNT(*) FILTER (WHERE price >= 10000 AND price < 1000000) AS rank2_bids, COUNT(*) FILTER (WHERE price >= 1000000) AS rank3_bids, MIN(price) AS min_price, MAX(price) AS max_price, AVG(price) AS avg_price, SUM(price) AS sum_price]) [I,UB,UA] <- 2 hash[auction, flink_date_format(bid.dateTime,Utf8("yyyy-MM-dd"))]
        4 Sink(table=[SELECT], fields=[auction, day, total_bids, rank1_bids, rank2_bids, rank3_bids, min_price, max_price, avg_price, sum_price]) [NONE] <- 3 forward
    "#]]
    );
}

#[test]
fn q18_last_bid() {
    check!(
        "q18",
        expect![[r#"
        0 TableSourceScan(table=[[default_catalog, default_database, bid]], fields=[auction, bidder, price, channel, url, dateTime, extra]) [I]
        1 WatermarkAssigner(rowtime=[dateTime], watermark=[flink_subtract(dateTime, INTERVAL '4 s')]) [I] <- 0 forward
        2 Deduplicate(keep=[LastRow], key=[bidder, auction], order=[ROWTIME dateTime]) [I,UB,UA] <- 1 hash[bidder, auction]
        3 Sink(table=[SELECT], fields=[auction, bidder, price, channel, url, dateTime, extra]) [NONE] <- 2 forward
    "#]]
    );
}

#[test]
fn q19_top_ten() {
    check!(
        "q19",
        expect![[r#"
        0 TableSourceScan(table=[[default_catalog, default_database, bid]], fields=[auction, bidder, price, channel, url, dateTime, extra]) [I]
        1 Calc(select=[auction, bidder, price, channel, url, dateTime, extra, proctime() AS pt]) [I] <- 0 forward
        2 WatermarkAssigner(rowtime=[dateTime], watermark=[flink_subtract(dateTime, INTERVAL '4 s')]) [I] <- 1 forward
        3 Rank(strategy=[AppendFastStrategy], rankType=[ROW_NUMBER], rankRange=[rankStart=1, rankEnd=10], partitionBy=[auction], orderBy=[price DESC], select=[auction, bidder, price, channel, url, dateTime, extra, pt, rank_number]) [I,UB,UA,D] <- 2 hash[auction]
        4 Sink(table=[SELECT], fields=[auction, bidder, price, channel, url, dateTime, extra, pt, rank_number]) [NONE] <- 3 forward
    "#]]
    );
}

#[test]
fn q20_expand_bid() {
    check!(
        "q20",
        expect![[r#"
        0 TableSourceScan(table=[[default_catalog, default_database, bid]], fields=[auction, bidder, price, channel, url, dateTime, extra]) [I]
        1 WatermarkAssigner(rowtime=[dateTime], watermark=[flink_subtract(dateTime, INTERVAL '4 s')]) [I] <- 0 forward
        2 TableSourceScan(table=[[default_catalog, default_database, auction]], fields=[id, itemName, description, initialBid, reserve, dateTime, expires, seller, category, extra]) [I]
        3 WatermarkAssigner(rowtime=[dateTime], watermark=[flink_subtract(dateTime, INTERVAL '4 s')]) [I] <- 2 forward
        4 Calc(select=[id, itemName, description, initialBid, reserve, dateTime, expires, seller, category, extra], where=[category = 10]) [I] <- 3 forward
        5 Join(joinType=[InnerJoin], where=[auction = id], select=[auction, bidder, price, channel, url, dateTime, extra, id, itemName, description, initialBid, reserve, dateTime0, expires, seller, category, extra0], leftInputSpec=[NoUniqueKey], rightInputSpec=[NoUniqueKey]) [I] <- 1 hash[auction] <- input 1 4 hash[id]
        6 Calc(select=[auction, bidder, price, channel, url, dateTime AS bid_dateTime, extra AS bid_extra, itemName, description, initialBid, reserve, dateTime0 AS auction_dateTime, expires, seller, category, extra0 AS auction_extra]) [I] <- 5 forward
        7 Sink(table=[SELECT], fields=[auction, bidder, price, channel, url, bid_dateTime, bid_extra, itemName, description, initialBid, reserve, auction_dateTime, expires, seller, category, auction_extra]) [NONE] <- 6 forward
    "#]]
    );
}

#[test]
fn q21_channel_id() {
    check!(
        "q21",
        expect![[r#"
        0 TableSourceScan(table=[[default_catalog, default_database, bid]], fields=[auction, bidder, price, channel, url, dateTime]) [I]
        1 WatermarkAssigner(rowtime=[dateTime], watermark=[flink_subtract(dateTime, INTERVAL '4 s')]) [I] <- 0 forward
        2 Calc(select=[flink_lower(channel) AS __common_expr_1, auction, bidder, price, channel, url], where=[regexp_extract(url, '(&|^)channel_id=([^&]*)', 2) IS NOT NULL OR flink_lower(channel) IN ('apple', 'google', 'facebook', 'baidu')]) [I] <- 1 forward
        3 Calc(select=[auction, bidder, price, channel, CASE WHEN __common_expr_1 = 'apple' THEN '0' WHEN __common_expr_1 = 'google' THEN '1' WHEN __common_expr_1 = 'facebook' THEN '2' WHEN __common_expr_1 = 'baidu' THEN '3' ELSE regexp_extract(url, '(&|^)channel_id=([^&]*)', 2) END AS channel_id]) [I] <- 2 forward
        4 Sink(table=[SELECT], fields=[auction, bidder, price, channel, channel_id]) [NONE] <- 3 forward
    "#]]
    );
}

#[test]
fn q22_url_directories() {
    check!(
        "q22",
        expect![[r#"
        0 TableSourceScan(table=[[default_catalog, default_database, bid]], fields=[auction, bidder, price, channel, url, dateTime]) [I]
        1 WatermarkAssigner(rowtime=[dateTime], watermark=[flink_subtract(dateTime, INTERVAL '4 s')]) [I] <- 0 forward
        2 Calc(select=[auction, bidder, price, channel, split_index(url, '/', 3) AS dir1, split_index(url, '/', 4) AS dir2, split_index(url, '/', 5) AS dir3]) [I] <- 1 forward
        3 Sink(table=[SELECT], fields=[auction, bidder, price, channel, dir1, dir2, dir3]) [NONE] <- 2 forward
    "#]]
    );
}

#[test]
fn q23_three_tables() {
    check!(
        "q23",
        expect![[r#"
        0 TableSourceScan(table=[[default_catalog, default_database, bid]], fields=[auction, bidder, price, channel, dateTime]) [I]
        1 WatermarkAssigner(rowtime=[dateTime], watermark=[flink_subtract(dateTime, INTERVAL '4 s')]) [I] <- 0 forward
        2 TableSourceScan(table=[[default_catalog, default_database, person]], fields=[id, name, dateTime]) [I]
        3 WatermarkAssigner(rowtime=[dateTime], watermark=[flink_subtract(dateTime, INTERVAL '4 s')]) [I] <- 2 forward
        4 Calc(select=[auction, bidder, price, channel]) [I] <- 1 forward
        5 Calc(select=[id, name]) [I] <- 3 forward
        6 Join(joinType=[InnerJoin], where=[bidder = id], select=[auction, bidder, price, channel, id, name], leftInputSpec=[NoUniqueKey], rightInputSpec=[NoUniqueKey]) [I] <- 4 hash[bidder] <- input 1 5 hash[id]
        7 Calc(select=[auction, bidder, price, channel, name]) [I] <- 6 forward
        8 TableSourceScan(table=[[default_catalog, default_database, auction]], fields=[id, itemName, dateTime]) [I]
        9 WatermarkAssigner(rowtime=[dateTime], watermark=[flink_subtract(dateTime, INTERVAL '4 s')]) [I] <- 8 forward
        10 Calc(select=[id, itemName]) [I] <- 9 forward
        11 Join(joinType=[InnerJoin], where=[auction = id], select=[auction, bidder, price, channel, name, id, itemName], leftInputSpec=[NoUniqueKey], rightInputSpec=[NoUniqueKey]) [I] <- 7 hash[auction] <- input 1 10 hash[id]
        12 Calc(select=[auction, bidder, price, channel, name, itemName]) [I] <- 11 forward
        13 Sink(table=[SELECT], fields=[auction, bidder, price, channel, name, itemName]) [NONE] <- 12 forward
    "#]]
    );
}
