//! What is wrong with a query is said in our words, with its place.

use expect_test::{Expect, expect};

use super::world::columns;

fn check(sql: &str, expected: Expect) {
    expected.assert_eq(&columns(sql));
}

#[test]
fn names_that_are_not_there() {
    check(
        "SELECT pricee FROM bid",
        expect![[r#"
        error: error at line 1, column 8: there is no column 'pricee'; did you mean 'price'?
          SELECT pricee FROM bid
                 ^"#]],
    );
    check(
        "SELECT price\nFROM bid AS b\nWHERE b.pricee > 1",
        expect![[r#"
        error: error at line 3, column 7: there is no column 'pricee' in 'b'; did you mean 'price'?
          WHERE b.pricee > 1
                ^"#]],
    );
    check(
        "SELECT x.price FROM bid",
        expect![[r#"
        error: error at line 1, column 8: there is no column 'x.price'; did you mean 'price'?
          SELECT x.price FROM bid
                 ^"#]],
    );
    check(
        "SELECT price FROM bids",
        expect![[r#"
        error: error at line 1, column 19: there is no table 'bids' in default_catalog.default_database; did you mean 'bid'?
          SELECT price FROM bids
                            ^"#]],
    );
    check(
        "SELECT price,\n  UPER(channel) FROM bid",
        expect![[r#"
        error: error at line 2, column 3: there is no function 'UPER'; did you mean 'UPPER'?
            UPER(channel) FROM bid
            ^"#]],
    );
    check(
        "SELECT PARSE_JSON(channel) FROM bid",
        expect![[r#"
        error: error at line 1, column 8: PARSE_JSON is a function of Flink that is not supported: there is no type VARIANT
          SELECT PARSE_JSON(channel) FROM bid
                 ^"#]],
    );
    check(
        "SELECT id FROM person, auction",
        expect![[r#"
        error: error at line 1, column 8: 'id' is a column of several tables: say of which, as in t.id
          SELECT id FROM person, auction
                 ^"#]],
    );
    check(
        "SELECT * FROM TABLE(TUMBEL(TABLE bid, DESCRIPTOR(pt), INTERVAL '1' DAY))",
        expect![[r#"
        error: error at line 1, column 21: there is no table function 'TUMBEL'; did you mean 'TUMBLE'?
          SELECT * FROM TABLE(TUMBEL(TABLE bid, DESCRIPTOR(pt), INTERVAL '1' DAY))
                              ^"#]],
    );
    check(
        "SELECT * FROM TABLE(VECTOR_SEARCH(TABLE bid, DESCRIPTOR(price), 1, 2))",
        expect![[r#"
        error: error at line 1, column 21: VECTOR_SEARCH is a function of Flink that is not supported: no connector searches vectors
          SELECT * FROM TABLE(VECTOR_SEARCH(TABLE bid, DESCRIPTOR(price), 1, 2))
                              ^"#]],
    );
}

#[test]
fn types_that_do_not_fit() {
    check(
        "SELECT price + channel FROM bid",
        expect![[r#"
        error: error at line 1, column 8: '+' is not possible between BIGINT and STRING: CAST one of them
          SELECT price + channel FROM bid
                 ^"#]],
    );
    check("SELECT price FROM bid WHERE channel", expect!["error: the condition 'bid.channel' is STRING, not BOOLEAN"]);
    check(
        "SELECT price FROM bid WHERE price = `dateTime`",
        expect![[r#"
        error: error at line 1, column 29: '=' is not possible between BIGINT and TIMESTAMP(3): CAST one of them
          SELECT price FROM bid WHERE price = `dateTime`
                                      ^"#]],
    );
    check("SELECT UPPER(price) FROM bid", expect!["error: expected UPPER(STRING), found (BIGINT)"]);
    check("SELECT SUM(channel) FROM bid", expect!["error: SUM takes a number, found (STRING)"]);
    check(
        "SELECT CASE WHEN price > 1 THEN price ELSE 'x' END FROM bid",
        expect!["error: CASE has values of different types: BIGINT, STRING; CAST them to one"],
    );
    check(
        "SELECT price FROM bid UNION ALL SELECT channel FROM bid",
        expect!["error: column 1 of UNION has values of different types: BIGINT, STRING; CAST them to one"],
    );
    check(
        "SELECT price FROM bid UNION ALL SELECT channel, price FROM bid",
        expect![[r#"
        error: error at line 1, column 1: UNION queries have different number of columns
          SELECT price FROM bid UNION ALL SELECT channel, price FROM bid
          ^"#]],
    );
    check(
        "SELECT price FROM bid WHERE (auction, price) IN (SELECT id FROM auction)",
        expect!["error: IN compares 2 columns with 1"],
    );
    check(
        "SELECT price FROM bid WHERE (auction, price) IN (SELECT id, seller, category FROM auction)",
        expect!["error: IN compares 2 columns with 3"],
    );
    check(
        "SELECT price FROM bid WHERE (auction, price) IN (SELECT id, `dateTime` FROM auction)",
        expect!["error: IN compares BIGINT with TIMESTAMP(3): CAST one of them"],
    );
    check(
        "SELECT price FROM bid WHERE price > ALL (SELECT tags FROM orders)",
        expect!["error: '>' is not possible between BIGINT and a query of ARRAY<STRING>: CAST one of them"],
    );
    check(
        "SELECT price FROM bid WHERE price = ANY (1)",
        expect!["error: ANY, SOME and ALL compare with a query: IN compares with a list"],
    );
    check(
        "SELECT PERCENTILE(channel, 1) FROM bid",
        expect![
            "error: PERCENTILE takes a number, a percentage or an ARRAY of such, and how often it counts, found (STRING, INT)"
        ],
    );
    check("SELECT NULL", expect!["error: the column 'EXPR$0' is NULL without a type: CAST(NULL AS …)"]);
    check(
        "SELECT * FROM bid CROSS JOIN UNNEST(price) AS t (x)",
        expect!["error: UNNEST needs an ARRAY, a MAP or a MULTISET, found BIGINT"],
    );
}

#[test]
fn grammar_that_does_not_fit() {
    check(
        "SELECT auction, SUM(price) FROM bid",
        expect![[r#"
        error: error at line 1, column 8: 'bid.auction' is neither in GROUP BY nor in an aggregate: add it to GROUP BY, or aggregate it
          SELECT auction, SUM(price) FROM bid
                 ^"#]],
    );
    check(
        "SELECT * FROM bid GROUP BY auction",
        expect!["error: 'bid.bidder' is neither in GROUP BY nor in an aggregate: add it to GROUP BY, or aggregate it"],
    );
    check(
        "SELECT auction FROM bid GROUP BY auction HAVING price > 5",
        expect![[r#"
        error: error at line 1, column 49: 'bid.price' is neither in GROUP BY nor in an aggregate: add it to GROUP BY, or aggregate it
          SELECT auction FROM bid GROUP BY auction HAVING price > 5
                                                          ^"#]],
    );
    check(
        "SELECT x.y.z.auction.b FROM bid",
        expect![[r#"error: compound identifier: ["x", "y", "z", "auction", "b"]"#]],
    );
    check(
        "SELECT ROW_NUMBER() FROM bid",
        expect![[r#"
        error: error at line 1, column 8: ROW_NUMBER needs an OVER clause
          SELECT ROW_NUMBER() FROM bid
                 ^"#]],
    );
    check(
        "SELECT UPPER(channel) OVER (ORDER BY pt) FROM bid",
        expect![[r#"
        error: error at line 1, column 8: UPPER is no aggregate: it has no OVER clause
          SELECT UPPER(channel) OVER (ORDER BY pt) FROM bid
                 ^"#]],
    );
    check(
        "SELECT * FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(pt)))",
        expect![[r#"
        error: error at line 1, column 21: expected TUMBLE(TABLE t, DESCRIPTOR(ts), size [, offset])
          SELECT * FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(pt)))
                              ^"#]],
    );
    check(
        "SELECT * FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(pt), INTERVAL '1' MONTH))",
        expect![[r#"
        error: error at line 1, column 21: SIZE of TUMBLE is an INTERVAL of a fixed length, such as INTERVAL '10' MINUTE
          SELECT * FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(pt), INTERVAL '1' MONTH))
                              ^"#]],
    );
    check(
        "SELECT * FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(price), INTERVAL '1' DAY))",
        expect!["error: windows are made by a TIMESTAMP or TIMESTAMP_LTZ, and 'bid.price' is BIGINT"],
    );
    check(
        "SELECT INTERVAL '1 2' DAY",
        expect![[r#"
        error: error at line 1, column 17: INTERVAL '1 2' DAY is no interval: write it as INTERVAL '10' MINUTE or INTERVAL '1 02:03:04' DAY TO SECOND
          SELECT INTERVAL '1 2' DAY
                          ^"#]],
    );
    check(
        "SELECT \"price\" FROM bid",
        expect![[r#"
        error: error at line 1, column 8: texts stand in single quotes, names in backticks: 'price' or `price`
          SELECT "price" FROM bid
                 ^"#]],
    );
}
