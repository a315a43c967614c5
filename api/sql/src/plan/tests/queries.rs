//! Which operators queries become.

use expect_test::{Expect, expect};

use super::world::{batch, planned, planned_with};

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
        expect![[""]],
    );
    check("SELECT a + 1 AS b FROM (SELECT auction + 1 AS a FROM bid) WHERE a > 3", expect![[""]]);
}

#[test]
fn computed_columns_and_metadata_come_before_the_watermark() {
    check("SELECT id, ts FROM person", expect![[""]]);
    check("SELECT count(*) FROM person", expect![[""]]);
    check("SELECT pt, auction FROM bid", expect![[""]]);
}

#[test]
fn groups() {
    check("SELECT auction, count(*) AS n, max(price) AS most FROM bid GROUP BY auction", expect![[""]]);
    check(
        "SELECT n, count(*) FROM (SELECT auction, count(*) AS n FROM bid GROUP BY auction) GROUP BY n HAVING count(*) > 1",
        expect![[""]],
    );
    check("SELECT count(DISTINCT bidder) FILTER (WHERE price > 5), sum(price + 1) FROM bid", expect![[""]]);
    check("SELECT DISTINCT auction, bidder FROM bid", expect![[""]]);
    check("SELECT auction, count(*) FROM (SELECT DISTINCT auction, bidder FROM bid) GROUP BY auction", expect![[""]]);
}

#[test]
fn grouping_sets_are_expanded() {
    check(
        "SELECT auction, channel, count(auction) AS n, grouping(channel) AS g FROM bid GROUP BY GROUPING SETS ((auction, channel), (auction), ())",
        expect![[""]],
    );
}

#[test]
fn windows_are_aggregated_without_making_rows() {
    check(
        "SELECT window_start, auction, count(*) AS n FROM bid10 GROUP BY window_start, window_end, auction",
        expect![[""]],
    );
    check(
        "SELECT window_end, max(price) FROM bid_hop WHERE channel = 'x' GROUP BY window_start, window_end",
        expect![[""]],
    );
    check(
        "SELECT bidder, count(*), window_time FROM bid_session GROUP BY window_start, window_end, window_time, bidder",
        expect![[""]],
    );
    // Sessions of a bidder, and a key that is another.
    check("SELECT count(*), auction FROM bid_session GROUP BY window_start, window_end, auction", expect![[""]]);
    check("SELECT count(*), auction FROM bid_pt10 GROUP BY window_start, window_end, auction", expect![[""]]);
    // One of the window's columns makes no window of it.
    check("SELECT window_start, count(*) FROM bid10 GROUP BY window_start", expect![[""]]);
    // The window's columns are used otherwise.
    check(
        "SELECT window_start, max(window_end) FROM bid10 WHERE window_end > ts GROUP BY window_start, window_end",
        expect![[""]],
    );
    check(
        "SELECT window_start, channel, auction, count(*) FROM bid10 GROUP BY GROUPING SETS ((window_start, window_end, channel), (window_start, window_end, auction))",
        expect![[""]],
    );
}

#[test]
fn windows_of_windows() {
    check(
        "SELECT window_start, window_end, max(n) AS most FROM (
           SELECT window_start, window_end, auction, count(*) AS n FROM bid10 GROUP BY window_start, window_end, auction
         ) GROUP BY window_start, window_end",
        expect![[""]],
    );
}

#[test]
fn first_ranks() {
    check(
        "SELECT auction, price, rn FROM (SELECT *, row_number() OVER (PARTITION BY auction ORDER BY price DESC) AS rn FROM bid) WHERE rn <= 3",
        expect![[""]],
    );
    check(
        "SELECT auction, n FROM (SELECT *, row_number() OVER (ORDER BY n DESC) AS rn FROM (SELECT auction, count(*) AS n FROM bid GROUP BY auction)) WHERE rn < 4 AND auction > 1",
        expect![[""]],
    );
    check(
        "SELECT auction, n FROM (SELECT *, row_number() OVER (ORDER BY n) AS rn FROM (SELECT auction, sum(price) AS n FROM bid GROUP BY auction)) WHERE rn BETWEEN 2 AND 4",
        expect![[""]],
    );
    check(
        "SELECT id, v FROM (SELECT *, row_number() OVER (PARTITION BY v ORDER BY w) AS rn FROM upserts) WHERE rn = 1",
        expect![[""]],
    );
}

#[test]
fn deduplication() {
    for order in ["ts", "ts DESC", "pt", "pt DESC", "ts, price"] {
        let sql = format!(
            "SELECT auction, price, rn FROM (SELECT *, row_number() OVER (PARTITION BY auction ORDER BY {order}) AS rn FROM bid) WHERE rn = 1"
        );
        let expected = match order {
            "ts" => expect![[""]],
            "ts DESC" => expect![[""]],
            "pt" => expect![[""]],
            "pt DESC" => expect![[""]],
            _ => expect![[""]],
        };
        check(&sql, expected);
    }
}

#[test]
fn first_ranks_of_windows() {
    check(
        "SELECT * FROM (SELECT auction, price, window_end, row_number() OVER (PARTITION BY window_start, window_end, channel ORDER BY price DESC) AS rn FROM bid10) WHERE rn <= 2",
        expect![[""]],
    );
    check(
        "SELECT auction, n FROM (SELECT *, row_number() OVER (PARTITION BY window_start, window_end ORDER BY n DESC) AS rn FROM (
           SELECT window_start, window_end, auction, count(*) AS n FROM bid10 GROUP BY window_start, window_end, auction)) WHERE rn = 1",
        expect![[""]],
    );
}

#[test]
fn over_windows() {
    check(
        "SELECT auction, sum(price) OVER (PARTITION BY auction ORDER BY ts RANGE BETWEEN INTERVAL '10' SECOND PRECEDING AND CURRENT ROW) AS s FROM bid",
        expect![[""]],
    );
    check(
        "SELECT auction, count(*) OVER w, max(price + 1) OVER w FROM bid WINDOW w AS (PARTITION BY auction ORDER BY pt ROWS BETWEEN 3 PRECEDING AND CURRENT ROW)",
        expect![[""]],
    );
    check(
        "SELECT auction, lag(price, 2) OVER (PARTITION BY bidder ORDER BY ts), row_number() OVER (PARTITION BY bidder ORDER BY ts) FROM bid",
        expect![[""]],
    );
    check(
        "SELECT sum(price) OVER (PARTITION BY auction ORDER BY ts), count(*) OVER (PARTITION BY bidder ORDER BY ts) FROM bid",
        expect![[""]],
    );
}

#[test]
fn joins_of_all_rows() {
    check("SELECT b.price, a.item FROM bid b JOIN auction a ON b.auction = a.id WHERE a.category = 10", expect![[""]]);
    check(
        "SELECT b.price, a.item FROM bid b LEFT JOIN auction a ON b.auction = a.id AND b.price > a.category AND b.auction + 1 = a.seller",
        expect![[""]],
    );
    check(
        "SELECT * FROM (SELECT auction, count(*) AS n FROM bid GROUP BY auction) b FULL JOIN upserts u ON b.auction = u.id",
        expect![[""]],
    );
    check(
        "SELECT b.n, c.v FROM (SELECT auction, count(*) AS n FROM bid GROUP BY auction) b JOIN changes c ON b.auction = c.v",
        expect![[""]],
    );
    check("SELECT a.v, b.v FROM changes a JOIN changes b ON a.id = b.w", expect![[""]]);
    check("SELECT price FROM bid WHERE price > (SELECT avg(price) FROM bid)", expect![[""]]);
    check("SELECT price FROM bid, auction WHERE price > category", expect![[""]]);
}

#[test]
fn subqueries() {
    check("SELECT price FROM bid WHERE auction IN (SELECT id FROM auction WHERE category = 10)", expect![[""]]);
    check("SELECT price FROM bid WHERE auction NOT IN (SELECT id FROM auction)", expect![[""]]);
    check(
        "SELECT price FROM bid b WHERE NOT EXISTS (SELECT 1 FROM auction a WHERE a.id = b.auction AND a.category > b.price)",
        expect![[""]],
    );
    check(
        "SELECT price FROM bid b WHERE price > 5 OR EXISTS (SELECT 1 FROM auction a WHERE a.id = b.auction)",
        expect![[""]],
    );
}

#[test]
fn joins_near_in_time() {
    check(
        "SELECT b.price, a.item, b.ts FROM bid b JOIN auction a ON b.auction = a.id AND b.ts BETWEEN a.ts AND a.ts + INTERVAL '1' HOUR",
        expect![[""]],
    );
    check(
        "SELECT b.price, a.item FROM bid b LEFT JOIN auction a ON b.auction = a.id AND a.ts > b.ts - INTERVAL '5' SECOND AND a.ts < b.ts AND b.price > a.category",
        expect![[""]],
    );
    check("SELECT b.price, a.item FROM bid b JOIN auction a ON b.auction = a.id AND b.ts = a.ts", expect![[""]]);
    check(
        "SELECT a.price FROM bid a JOIN bid b ON a.auction = b.auction AND a.pt BETWEEN b.pt - INTERVAL '1' MINUTE AND b.pt",
        expect![[""]],
    );
    // Bounded on one side only.
    check("SELECT b.price, a.item FROM bid b JOIN auction a ON b.auction = a.id AND b.ts > a.ts", expect![[""]]);
}

#[test]
fn joins_in_the_same_window() {
    check(
        "SELECT a.auction, a.n, b.m FROM
           (SELECT window_start, window_end, auction, count(*) AS n FROM bid10 GROUP BY window_start, window_end, auction) a
         JOIN (SELECT window_start, window_end, max(price) AS m FROM bid10 GROUP BY window_start, window_end) b
         ON a.window_start = b.window_start AND a.window_end = b.window_end AND a.n >= b.m",
        expect![[""]],
    );
    check(
        "SELECT b.price, a.item FROM bid10 b FULL JOIN auction10 a ON b.auction = a.id AND b.window_start = a.window_start AND b.window_end = a.window_end",
        expect![[""]],
    );
}

#[test]
fn versions_and_look_ups() {
    check("SELECT price * rate AS yen FROM converted", expect![[""]]);
    check("SELECT price * rate AS yen FROM converted_now", expect![[""]]);
    check("SELECT price, value FROM looked_up", expect![[""]]);
    check("SELECT id, tag FROM tagged", expect![[""]]);
}

#[test]
fn sets() {
    check("SELECT auction FROM bid UNION ALL SELECT id FROM auction UNION ALL SELECT id FROM changes", expect![[""]]);
    check("SELECT auction FROM bid UNION SELECT id FROM auction", expect![[""]]);
    check("SELECT auction FROM bid INTERSECT SELECT id FROM auction", expect![[""]]);
    check("SELECT auction FROM bid EXCEPT SELECT id FROM auction", expect![[""]]);
    check("SELECT auction FROM bid UNION ALL SELECT auction FROM bid", expect![[""]]);
}

#[test]
fn orders_and_limits() {
    check("SELECT auction, ts FROM bid ORDER BY ts, price", expect![[""]]);
    check("SELECT auction FROM bid ORDER BY price DESC LIMIT 5", expect![[""]]);
    check("SELECT auction FROM bid ORDER BY price LIMIT 5 OFFSET 2", expect![[""]]);
    check("SELECT auction FROM bid LIMIT 5", expect![[""]]);
    check("SELECT id FROM side LIMIT 5 OFFSET 2".replace("id", "key").as_str(), expect![[""]]);
    check("SELECT a FROM (SELECT auction AS a, price FROM bid ORDER BY price) WHERE a > 3", expect![[""]]);
    check("SELECT count(*) FROM (SELECT auction FROM bid LIMIT 10)", expect![[""]]);
}

#[test]
fn values() {
    check("SELECT 1 AS a, 'x' AS b", expect![[""]]);
    check("SELECT a + 1 FROM (VALUES (1, 'x'), (2, 'y')) AS t (a, b) WHERE b = 'y'", expect![[""]]);
    check("SELECT auction FROM bid WHERE false", expect![[""]]);
}

#[test]
fn batches() {
    check_batch(
        "SELECT auction, count(*) AS n FROM bid WHERE price > 5 GROUP BY auction ORDER BY n DESC LIMIT 3",
        expect![[""]],
    );
    check_batch(
        "SELECT window_start, auction, count(*) AS n FROM bid10 GROUP BY window_start, window_end, auction",
        expect![[""]],
    );
    check_batch(
        "SELECT b.price FROM bid b JOIN auction a ON b.auction = a.id AND b.ts BETWEEN a.ts AND a.expires ORDER BY b.price",
        expect![[""]],
    );
    check_batch(
        "SELECT * FROM (SELECT auction, price, row_number() OVER (PARTITION BY auction ORDER BY ts) AS rn FROM bid) WHERE rn = 1",
        expect![[""]],
    );
    check_batch("SELECT auction, rank() OVER (PARTITION BY auction ORDER BY price) AS r FROM bid", expect![[""]]);
}

#[test]
fn hints_for_connectors() {
    // Without a watermark nobody misses the rows that the connector leaves out.
    check("SELECT value FROM side WHERE kind = 3 AND key > 5 AND value <> lower(value)", expect![[""]]);
}
