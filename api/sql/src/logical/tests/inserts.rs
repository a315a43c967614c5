//! INSERT: which columns go where.

use expect_test::{Expect, expect};
use flott_sql_runtime::spec::ConflictStrategy;

use super::world::{logical, sink};

fn check(sql: &str, expected: Expect) {
    expected.assert_eq(&logical(sql));
}

#[test]
fn columns_are_converted_if_nothing_is_lost() {
    check(
        "INSERT INTO sink SELECT id, text, price FROM orders",
        expect![[r#"
        Projection: CAST(orders.id AS Int64) AS a, orders.text AS b, flink_cast(orders.price, Decimal128(None,10,2)) AS c
          TableScan: orders projection=[id, price, text]
    "#]],
    );
    check(
        "INSERT INTO sink (b, a) SELECT text, id FROM orders",
        expect![[r#"
        Projection: CAST(orders.id AS Int64) AS a, orders.text AS b, Decimal128(None,10,2) AS c
          TableScan: orders projection=[id, text]
    "#]],
    );
    check(
        "INSERT INTO sink SELECT text, text, price FROM orders",
        expect![[r#"
        error: Column types of query result and sink for 'default_catalog.default_database.sink' do not match.
        Cause: Incompatible types for sink column 'a' at position 1.

        Query schema: [text: STRING, text0: STRING, price: DOUBLE]
        Sink schema:  [a: BIGINT, b: STRING, c: DECIMAL(10, 2)]
    "#]],
    );
    check(
        "INSERT INTO sink SELECT id, text FROM orders",
        expect![[r#"
        error: Column types of query result and sink for 'default_catalog.default_database.sink' do not match.
        Cause: Different number of columns.

        Query schema: [id: INT, text: STRING]
        Sink schema:  [a: BIGINT, b: STRING, c: DECIMAL(10, 2)]
    "#]],
    );
    check(
        "INSERT INTO sink (b, aa) SELECT text, id FROM orders",
        expect![[r#"
        error: error at line 1, column 13: 'default_catalog.default_database.sink' has no column 'aa' that can be written; did you mean 'a'?
          INSERT INTO sink (b, aa) SELECT text, id FROM orders
                      ^
    "#]],
    );
    check(
        "INSERT INTO sink (b, b) SELECT text, id FROM orders",
        expect![[r#"
        error: error at line 1, column 13: the column 'b' is given twice
          INSERT INTO sink (b, b) SELECT text, id FROM orders
                      ^
    "#]],
    );
    check(
        "INSERT INTO keyed (b) SELECT text FROM orders",
        expect![[r#"
        error: the column 'a' of 'default_catalog.default_database.keyed' is NOT NULL: the INSERT must give it a value
    "#]],
    );
    check(
        "INSERT INTO nosuch SELECT 1",
        expect![[r#"
        error: error at line 1, column 13: there is no table 'nosuch' in default_catalog.default_database
          INSERT INTO nosuch SELECT 1
                      ^
    "#]],
    );
}

#[test]
fn conflicts_are_what_is_said() {
    let on_conflict =
        |clause: &str| sink(&format!("INSERT INTO keyed SELECT id, text FROM orders {clause}")).on_conflict;
    assert_eq!(on_conflict(""), None);
    assert_eq!(on_conflict("ON CONFLICT DO ERROR"), Some(ConflictStrategy::Error));
    assert_eq!(on_conflict("ON CONFLICT DO NOTHING"), Some(ConflictStrategy::Nothing));
    assert_eq!(on_conflict("ON CONFLICT DO DEDUPLICATE"), Some(ConflictStrategy::Deduplicate));
}
