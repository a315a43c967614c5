use std::fmt::Write;

use expect_test::{Expect, expect};

use super::*;

/// A statement in one line.
fn show(statement: &Statement) -> String {
    match statement {
        Statement::Query(query) => format!("Query {query}"),
        Statement::Insert(insert) => show_insert(insert),
        Statement::StatementSet(inserts) => inserts.iter().map(show_insert).collect::<Vec<_>>().join("\n"),
        Statement::CreateTable(table) => show_table(table),
        Statement::CreateView(view) => {
            format!(
                "CreateView {} {:?} alter={} {:?} {}",
                view.name, view.columns, view.is_alter, view.comment, view.query
            )
        }
        Statement::Explain { details, statement } => format!("Explain {details:?} {}", show(statement)),
        other => format!("{other:?}"),
    }
}

fn show_insert(insert: &Insert) -> String {
    let partition: Vec<_> = insert.partition.iter().map(|(column, value)| format!("{column}={value}")).collect();
    let (columns, overwrite) = (&insert.columns, insert.is_overwrite);
    format!(
        "Insert {} {:?} {partition:?} {columns:?} overwrite={overwrite} {}",
        insert.table, insert.hints, insert.query
    )
}

fn show_table(table: &CreateTable) -> String {
    let mut out = format!("CreateTable {}", table.name);
    for (set, word) in [(table.is_temporary, "temporary"), (table.if_not_exists, "if not exists")] {
        out += &if set { format!(" {word}") } else { String::new() };
    }
    for column in &table.columns {
        let kind = match &column.kind {
            ColumnDefinitionKind::Physical(data_type) => data_type.to_string(),
            ColumnDefinitionKind::Metadata { data_type, key, is_virtual } => {
                format!("{data_type} metadata {key:?} virtual={is_virtual}")
            }
            ColumnDefinitionKind::Computed(expr) => format!("AS {expr}"),
        };
        write!(out, "\n  {} {kind} {}", column.name, column.comment.as_deref().unwrap_or_default()).expect("a String");
    }
    if let Some(watermark) = &table.watermark {
        write!(out, "\n  watermark {:?} {}", watermark.column, watermark.expr).expect("a String");
    }
    write!(out, "\n  key {:?} partitions {:?} options {:?}", table.primary_key, table.partition_keys, table.options)
        .expect("a String");
    if let Some(like) = &table.like {
        write!(out, "\n  like {like:?}").expect("a String");
    }
    if let Some(query) = &table.query {
        write!(out, "\n  as {query}").expect("a String");
    }
    out
}

fn check(script: &str, shown: Expect) {
    let pieces = match split(script) {
        Ok(pieces) => pieces,
        Err(error) => return shown.assert_eq(&error.message),
    };
    let lines: Vec<String> = pieces
        .iter()
        .map(|piece| match piece.statement() {
            Ok(statement) => show(&statement).lines().map(str::trim_end).collect::<Vec<_>>().join("\n"),
            Err(error) => error.message,
        })
        .collect();
    shown.assert_eq(&lines.join("\n"));
}

#[test]
fn scripts_are_cut_at_their_semicolons() {
    let script = "-- a comment; with a semicolon\nSET 'a' = 'b;c';\n\n/* ; */ SELECT 'it''s;' AS `a;b` FROM t -- ;\n;;\nEXECUTE STATEMENT SET BEGIN\n  INSERT INTO a SELECT CASE WHEN x THEN 1 END FROM t;\n  INSERT INTO b SELECT 1;\nEND;\nBEGIN STATEMENT SET; INSERT INTO a SELECT 1; END;\nSELECT 1";
    let pieces = split(script).expect("a script");
    let shown: Vec<_> = pieces.iter().map(|piece| format!("{}: {}", piece.line, piece.text)).collect();
    expect![[r#"
        2: SET 'a' = 'b;c'
        4: SELECT 'it''s;' AS `a;b` FROM t
        6: EXECUTE STATEMENT SET BEGIN
          INSERT INTO a SELECT CASE WHEN x THEN 1 END FROM t;
          INSERT INTO b SELECT 1;
        END
        10: BEGIN STATEMENT SET; INSERT INTO a SELECT 1; END
        11: SELECT 1"#]]
    .assert_eq(&shown.join("\n"));
    check(
        script,
        expect![[r#"
            Set(Some(("a", "b;c")))
            Query SELECT 'it''s;' AS `a;b` FROM t
            Insert a {} [] [] overwrite=false SELECT CASE WHEN x THEN 1 END FROM t
            Insert b {} [] [] overwrite=false SELECT 1
            Insert a {} [] [] overwrite=false SELECT 1
            Query SELECT 1"#]],
    );
}

#[test]
fn tables() {
    check(
        "CREATE TEMPORARY TABLE IF NOT EXISTS `my cat`.db.Orders (
            id BIGINT NOT NULL COMMENT 'the id',
            price DECIMAL(32, 2),
            tags MAP<STRING, ARRAY<ROW<a INT, b TIMESTAMP(3) NOT NULL>>>,
            ts TIMESTAMP_LTZ(3) METADATA FROM 'timestamp' VIRTUAL,
            `offset` BIGINT METADATA VIRTUAL COMMENT 'where',
            headers MAP<STRING, BYTES> METADATA,
            cost AS price * quantity COMMENT 'computed',
            quantity INT PRIMARY KEY NOT ENFORCED,
            WATERMARK FOR ts AS ts - INTERVAL '5' SECOND
        ) COMMENT 'all orders' PARTITIONED BY (id, quantity) WITH ('connector' = 'kafka', 'topic' = 'it''s',)",
        expect![[r#"
            CreateTable my cat.db.Orders temporary if not exists
              id BIGINT NOT NULL the id
              price DECIMAL(32, 2)
              tags MAP<STRING, ARRAY<ROW<`a` INT, `b` TIMESTAMP(3) NOT NULL>>>
              ts TIMESTAMP_LTZ(3) metadata Some("timestamp") virtual=true
              offset BIGINT metadata None virtual=true where
              headers MAP<STRING, BYTES> metadata None virtual=false
              cost AS price * quantity computed
              quantity INT
              watermark ["ts"] ts - INTERVAL '5' SECOND
              key ["quantity"] partitions ["id", "quantity"] options {"connector": "kafka", "topic": "it's"}"#]],
    );
    check(
        "CREATE TABLE t (a ROW<b TIMESTAMP(3)>, CONSTRAINT pk PRIMARY KEY (a) NOT ENFORCED, WATERMARK FOR a.b AS a.b) WITH ('x' = 'y')
         LIKE d.s (EXCLUDING ALL INCLUDING GENERATED OVERWRITING OPTIONS);
         CREATE TABLE t WITH ('connector' = 'blackhole') LIKE s;
         CREATE TABLE t WITH ('connector' = 'print') AS SELECT * FROM s;
         CREATE TABLE t (key STRING, `constraint` INT, comment INT, watermark INT)",
        expect![[r#"
            CreateTable t
              a ROW<`b` TIMESTAMP(3)>
              watermark ["a", "b"] a.b
              key ["a"] partitions [] options {"x": "y"}
              like Like { table: d.s, options: [(All, Excluding), (Generated, Including), (Options, Overwriting)] }
            CreateTable t
              key [] partitions [] options {"connector": "blackhole"}
              like Like { table: s, options: [] }
            CreateTable t
              key [] partitions [] options {"connector": "print"}
              as SELECT * FROM s
            CreateTable t
              key STRING
              constraint INT
              comment INT
              watermark INT
              key [] partitions [] options {}"#]],
    );
}

#[test]
fn other_definitions() {
    check(
        "CREATE TEMPORARY VIEW IF NOT EXISTS v (a, b COMMENT 'x') COMMENT 'c' AS SELECT 1, 2;
         ALTER VIEW v AS SELECT 3;
         ALTER VIEW v RENAME TO w;
         CREATE TEMPORARY SYSTEM FUNCTION IF NOT EXISTS f AS 'score' LANGUAGE rust;
         CREATE FUNCTION db.f AS 'score';
         CREATE CATALOG IF NOT EXISTS c COMMENT 'x' WITH ('type' = 'generic_in_memory');
         CREATE DATABASE c.d;
         DROP TABLE IF EXISTS a.b.c;
         DROP TEMPORARY VIEW v;
         DROP TEMPORARY SYSTEM FUNCTION IF EXISTS f;
         DROP DATABASE d CASCADE;
         DROP CATALOG c;
         ALTER TABLE IF EXISTS t RENAME TO u;
         ALTER TABLE t SET ('a' = 'b');
         ALTER TABLE t RESET ('a', 'b')",
        expect![[r#"
            CreateView v ["a", "b"] alter=false Some("c") SELECT 1, 2
            CreateView v [] alter=true None SELECT 3
            AlterTable(AlterTable { name: v, is_view: true, if_exists: false, action: Rename(w) })
            CreateFunction(CreateFunction { name: f, is_temporary: true, is_system: true, if_not_exists: true, identifier: "score", language: Some("RUST") })
            CreateFunction(CreateFunction { name: db.f, is_temporary: false, is_system: false, if_not_exists: false, identifier: "score", language: None })
            CreateCatalog(CreateSpace { name: c, if_not_exists: true, comment: Some("x"), options: {"type": "generic_in_memory"} })
            CreateDatabase(CreateSpace { name: c.d, if_not_exists: false, comment: None, options: {} })
            Drop(Drop { object: Table, name: a.b.c, is_temporary: false, if_exists: true, is_cascade: false })
            Drop(Drop { object: View, name: v, is_temporary: true, if_exists: false, is_cascade: false })
            Drop(Drop { object: Function, name: f, is_temporary: true, if_exists: true, is_cascade: false })
            Drop(Drop { object: Database, name: d, is_temporary: false, if_exists: false, is_cascade: true })
            Drop(Drop { object: Catalog, name: c, is_temporary: false, if_exists: false, is_cascade: false })
            AlterTable(AlterTable { name: t, is_view: false, if_exists: true, action: Rename(u) })
            AlterTable(AlterTable { name: t, is_view: false, if_exists: false, action: Set({"a": "b"}) })
            AlterTable(AlterTable { name: t, is_view: false, if_exists: false, action: Reset(["a", "b"]) })"#]],
    );
}

#[test]
fn the_session() {
    check(
        "USE CATALOG c; USE d; USE c.d; SET; SET 'a.b' = 'c'; SET table.exec.state.ttl = 1 h; RESET; RESET 'a.b';
         SHOW CATALOGS; SHOW CURRENT DATABASE; SHOW TABLES; SHOW TABLES FROM d NOT LIKE 'a%'; SHOW VIEWS; SHOW USER FUNCTIONS LIKE 'f%';
         SHOW COLUMNS IN c.d.t; SHOW CREATE TABLE t; SHOW FULL MODULES; SHOW JOBS;
         DESCRIBE t; DESC EXTENDED c.d.t;
         EXPLAIN SELECT 1; EXPLAIN PLAN FOR SELECT 1; EXPLAIN CHANGELOG_MODE, ESTIMATED_COST INSERT INTO t SELECT 1;
         EXPLAIN STATEMENT SET BEGIN INSERT INTO a SELECT 1; INSERT INTO b SELECT 2; END",
        expect![[r#"
            UseCatalog(c)
            UseDatabase(d)
            UseDatabase(c.d)
            Set(None)
            Set(Some(("a.b", "c")))
            Set(Some(("table.exec.state.ttl", "1h")))
            Reset(None)
            Reset(Some("a.b"))
            Show(Catalogs)
            Show(CurrentDatabase)
            Show(Tables(ShowFilter { from: None, like: None, is_negated: false }))
            Show(Tables(ShowFilter { from: Some(d), like: Some("a%"), is_negated: true }))
            Show(Views(ShowFilter { from: None, like: None, is_negated: false }))
            Show(Functions { is_user_only: true, filter: ShowFilter { from: None, like: Some("f%"), is_negated: false } })
            Show(Columns(c.d.t, ShowFilter { from: None, like: None, is_negated: false }))
            Show(CreateTable(t))
            Show(Modules)
            Show(Jobs)
            Describe(t)
            Describe(c.d.t)
            Explain [] Query SELECT 1
            Explain [] Query SELECT 1
            Explain [ChangelogMode, EstimatedCost] Insert t {} [] [] overwrite=false SELECT 1
            Explain [] Insert a {} [] [] overwrite=false SELECT 1
            Insert b {} [] [] overwrite=false SELECT 2"#]],
    );
}

#[test]
fn inserts() {
    check(
        "INSERT INTO t SELECT * FROM s;
         INSERT OVERWRITE d.t PARTITION (p = 'x', q = 1) (a, b) SELECT a, b FROM s;
         INSERT INTO t /*+ OPTIONS('sink.parallelism' = '2') */ (a) VALUES (1), (2);
         INSERT INTO t (SELECT 1);
         EXECUTE INSERT INTO t WITH x AS (SELECT 1) SELECT * FROM x",
        expect![[r#"
            Insert t {} [] [] overwrite=false SELECT * FROM s
            Insert d.t {} ["p='x'", "q=1"] ["a", "b"] overwrite=true SELECT a, b FROM s
            Insert t {"sink.parallelism": "2"} [] ["a"] overwrite=false VALUES (1), (2)
            Insert t {} [] [] overwrite=false (SELECT 1)
            Insert t {} [] [] overwrite=false WITH x AS (SELECT 1) SELECT * FROM x"#]],
    );
}

#[test]
fn queries() {
    check(
        "SELECT * FROM TABLE(TUMBLE(TABLE Bid, DESCRIPTOR(ts), INTERVAL '10' MINUTE));
         SELECT * FROM HOP(DATA => TABLE d.Bid, TIMECOL => DESCRIPTOR(ts), SLIDE => INTERVAL '5' SECOND, SIZE => INTERVAL '1:30' MINUTE TO SECOND) AS w;
         SELECT * FROM TABLE(SESSION(TABLE Bid PARTITION BY (bidder, auction), DESCRIPTOR(ts), INTERVAL '5' MINUTES));
         SELECT * FROM o JOIN r FOR SYSTEM_TIME AS OF o.proctime AS r ON o.c = r.c;
         SELECT * FROM t /*+ OPTIONS('a' = 'b', 'c' = 'd') */ AS x JOIN u /*+ OPTIONS('e'='f') */ ON TRUE;
         SELECT /*+ BROADCAST(t) */ * FROM t, UNNEST(t.xs) WITH ORDINALITY AS u (x, n);
         SELECT * FROM t CROSS JOIN LATERAL TABLE(split(s)) AS u (w) LEFT JOIN LATERAL TABLE(split(s)) ON TRUE;
         SELECT a, COUNT(*) FILTER (WHERE b > 1) FROM t GROUP BY GROUPING SETS ((a), ()), CUBE (a, b), ROLLUP (a);
         SELECT SUM(a) OVER (PARTITION BY b ORDER BY ts RANGE BETWEEN INTERVAL '1' HOUR PRECEDING AND CURRENT ROW) FROM t;
         (SELECT 1 UNION ALL SELECT 2) ORDER BY 1 LIMIT 10 OFFSET 2;
         SELECT * FROM t MATCH_RECOGNIZE (ORDER BY ts MEASURES A.x AS x PATTERN (A B+) DEFINE A AS TRUE) AS m;
         VALUES (1, 'a'), (2, 'b')",
        expect![[r#"
            Query SELECT * FROM TABLE(TUMBLE(TABLE(Bid), DESCRIPTOR(ts), INTERVAL '10' MINUTE))
            Query SELECT * FROM HOP(DATA => TABLE(d.Bid), TIMECOL => DESCRIPTOR(ts), SLIDE => INTERVAL '5' SECOND, SIZE => INTERVAL '1:30' MINUTE TO SECOND) AS w
            Query SELECT * FROM TABLE(SESSION(TABLE(bidder, auction)(Bid), DESCRIPTOR(ts), INTERVAL '5' MINUTES))
            Query SELECT * FROM o JOIN r AS r FOR SYSTEM_TIME AS OF o.proctime ON o.c = r.c
            Query SELECT * FROM t AS x WITH ('a' = 'b', 'c' = 'd') JOIN u WITH ('e' = 'f') ON true
            Query SELECT * FROM t, UNNEST(t.xs) WITH ORDINALITY AS u (x, n)
            Query SELECT * FROM t CROSS JOIN LATERAL TABLE(split(s)) AS u (w) LEFT JOIN LATERAL TABLE(split(s)) ON true
            Query SELECT a, COUNT(*) FILTER (WHERE b > 1) FROM t GROUP BY GROUPING SETS ((a), ()), CUBE (a, b), ROLLUP (a)
            Query SELECT SUM(a) OVER (PARTITION BY b ORDER BY ts RANGE BETWEEN INTERVAL '1' HOUR PRECEDING AND CURRENT ROW) FROM t
            Query (SELECT 1 UNION ALL SELECT 2) ORDER BY 1 LIMIT 10 OFFSET 2
            Query SELECT * FROM t MATCH_RECOGNIZE(ORDER BY ts MEASURES A.x AS x PATTERN (A B+) DEFINE A AS true) AS m
            Query VALUES (1, 'a'), (2, 'b')"#]],
    );
}

#[test]
fn expressions() {
    check(
        "SELECT CAST(a AS TIMESTAMP_LTZ(3)), TRY_CAST(b AS ROW<x INT, y ARRAY<MAP<STRING, INT>>>), CAST(c AS MULTISET<STRING NOT NULL>), CAST(d AS BYTES);
         SELECT MAP['a', 1, 'b', 2], MAP[], ARRAY[1, 2], ROW(1, 'x'), (1, 2), m['k'], a[1].x, r.f.g, (r).f, f(x).y;
         SELECT INTERVAL '10' SECOND, INTERVAL '1 10:00:00.5' DAY TO SECOND, INTERVAL -'1' DAY(3), DATE '2020-01-01', TIMESTAMP '2020-01-01 00:00:00', TIME '10:00:00';
         SELECT CEIL(ts TO DAY), FLOOR(x), EXTRACT(EPOCH FROM ts), OVERLAY(a PLACING 'x' FROM 2 FOR 1), POSITION('a' IN s), TRIM(BOTH 'x' FROM s), TRIM(s), SUBSTRING(s FROM 2 FOR 3), SUBSTR(s, 1, 2);
         SELECT TIMESTAMPADD(DAY, 1, ts), TIMESTAMPDIFF(SECOND, a, b), LISTAGG(DISTINCT s, ','), CURRENT_DATE, LOCALTIMESTAMP, NOW();
         SELECT s IS JSON, s IS NOT JSON ARRAY, a BETWEEN SYMMETRIC b AND c, a NOT BETWEEN 1 AND 2, a IS NOT DISTINCT FROM b, a IS UNKNOWN, s LIKE 'a' ESCAPE '!', s NOT SIMILAR TO 'x';
         SELECT JSON_VALUE(d, '$.a'), JSON_VALUE(d, '$.a' RETURNING INT NULL ON EMPTY DEFAULT -1 ON ERROR), JSON_QUERY(d, '$' RETURNING ARRAY<STRING> WITH CONDITIONAL ARRAY WRAPPER EMPTY ARRAY ON EMPTY ERROR ON ERROR), JSON_EXISTS(d, '$.a' TRUE ON ERROR);
         SELECT JSON_OBJECT('a' VALUE 1, KEY 'b' VALUE JSON_ARRAY(1, x NULL ON NULL), 'c' : 2 ABSENT ON NULL), JSON_OBJECT(), JSON_ARRAY(), JSON_OBJECTAGG(KEY k VALUE v ABSENT ON NULL), JSON_ARRAYAGG(x) FILTER (WHERE x > 1);
         SELECT x'45F0', U&'\\00e4', 'it''s', 1.5e3, .5, -3, a || b, a <> b, NOT a, a % 2, date, `order`, value;
         SELECT a IN (1, 2), (a, b) IN (SELECT 1, 2), EXISTS (SELECT 1), (SELECT MAX(x) FROM t), a > ALL (SELECT 1), IF(a, b, c), LEFT(s, 2), CASE a WHEN 1 THEN 'x' ELSE 'y' END",
        expect![[r#"
            Query SELECT CAST(a AS TIMESTAMP_LTZ(3)), TRY_CAST(b AS ROW<`x` INT, `y` ARRAY<MAP<STRING, INT>>>), CAST(c AS MULTISET<STRING NOT NULL>), CAST(d AS BYTES)
            Query SELECT MAP('a', 1, 'b', 2), MAP(), ARRAY[1, 2], ROW(1, 'x'), (1, 2), m['k'], a[1].x, r.f.g, (r).f, f(x).y
            Query SELECT INTERVAL '10' SECOND, INTERVAL '1 10:00:00.5' DAY TO SECOND, INTERVAL -'1' DAY (3), DATE '2020-01-01', TIMESTAMP '2020-01-01 00:00:00', TIME '10:00:00'
            Query SELECT CEIL(ts TO DAY), FLOOR(x), EXTRACT(EPOCH FROM ts), OVERLAY(a PLACING 'x' FROM 2 FOR 1), POSITION('a' IN s), TRIM(BOTH 'x' FROM s), TRIM(s), SUBSTRING(s FROM 2 FOR 3), SUBSTR(s, 1, 2)
            Query SELECT TIMESTAMPADD(DAY, 1, ts), TIMESTAMPDIFF(SECOND, a, b), LISTAGG(DISTINCT s, ','), CURRENT_DATE, LOCALTIMESTAMP, NOW()
            Query SELECT IS_JSON(s, 'VALUE'), NOT (IS_JSON(s, 'ARRAY')), (a BETWEEN b AND c OR a BETWEEN c AND b), a NOT BETWEEN 1 AND 2, a IS NOT DISTINCT FROM b, a IS UNKNOWN, s LIKE 'a' ESCAPE '!', s NOT SIMILAR TO 'x'
            Query SELECT JSON_VALUE(d, '$.a', 'STRING', 'NULL', NULL, 'NULL', NULL), JSON_VALUE(d, '$.a', 'INT', 'NULL', NULL, 'DEFAULT', -1), JSON_QUERY(d, '$', 'ARRAY<STRING>', 'CONDITIONAL', 'EMPTY ARRAY', 'ERROR'), JSON_EXISTS(d, '$.a', 'TRUE')
            Query SELECT JSON_OBJECT('ABSENT', 'vjv', 'a', 1, 'b', JSON_ARRAY('NULL', 'vv', 1, x), 'c', 2), JSON_OBJECT('NULL', ''), JSON_ARRAY('ABSENT', ''), JSON_OBJECTAGG(k, v, 'ABSENT'), JSON_ARRAYAGG(x, 'ABSENT') FILTER (WHERE x > 1)
            Query SELECT X'45F0', U&'\00E4', 'it''s', 1.5e3, .5, -3, a || b, a <> b, NOT a, a % 2, date, `order`, value
            Query SELECT a IN (1, 2), (a, b) IN (SELECT 1, 2), EXISTS (SELECT 1), (SELECT MAX(x) FROM t), a > ALL(SELECT 1), IF(a, b, c), LEFT(s, 2), CASE a WHEN 1 THEN 'x' ELSE 'y' END"#]],
    );
}

#[test]
fn mistakes_are_shown_where_they_are() {
    for (script, shown) in [
        (
            "SELECT a,, b\nFROM t",
            expect![[r#"
            syntax error at line 1, column 10: expected an expression, found ,
              SELECT a,, b
                       ^"#]],
        ),
        (
            "SELECT a\nFROM t\nWHERE",
            expect![[r#"
            syntax error at line 3, column 6: expected an expression, found the end of the statement
              WHERE
                   ^"#]],
        ),
        (
            "SELEC 1",
            expect![[r#"
            syntax error at line 1, column 1: 'SELEC' begins no statement; did you mean SELECT?
              SELEC 1
              ^"#]],
        ),
        (
            "SELECT 'abc",
            expect![[r#"
            syntax error at line 1, column 8: Unterminated string literal
              SELECT 'abc
                     ^"#]],
        ),
        (
            "SELECT 1 2",
            expect![[r#"
            syntax error at line 1, column 10: expected the end of the statement, found 2
              SELECT 1 2
                       ^"#]],
        ),
        (
            "CREATE TABLE t (a INTT)",
            expect![[r#"
            syntax error at line 1, column 19: there is no type 'INTT'; did you mean 'INT'?
              CREATE TABLE t (a INTT)
                                ^"#]],
        ),
        (
            "CREATE TABLE t (a INT, a STRING)",
            expect![[r#"
            syntax error at line 1, column 24: the column 'a' is there twice
              CREATE TABLE t (a INT, a STRING)
                                     ^"#]],
        ),
        (
            "CREATE TABLE t (a INT, PRIMARY KEY (a))",
            expect![[r#"
            syntax error at line 1, column 39: a PRIMARY KEY must be NOT ENFORCED: nothing checks what tables contain
              CREATE TABLE t (a INT, PRIMARY KEY (a))
                                                    ^"#]],
        ),
        (
            "CREATE TABLE t (a INT) WITH ('a' = 'b', 'a' = 'c')",
            expect![[r#"
            syntax error at line 1, column 41: the option 'a' is there twice
              CREATE TABLE t (a INT) WITH ('a' = 'b', 'a' = 'c')
                                                      ^"#]],
        ),
        (
            "CREATE TABLE t (a INT) WITH (a = b)",
            expect![[r#"
            syntax error at line 1, column 30: expected a text in single quotes, found a
              CREATE TABLE t (a INT) WITH (a = b)
                                           ^"#]],
        ),
        (
            "ADD JAR '/x.jar'",
            expect![[r#"
            syntax error at line 1, column 1: ADD JAR is not supported: functions and connectors are written in Rust, and registered by the program that runs the script
              ADD JAR '/x.jar'
              ^"#]],
        ),
        (
            "SHOW PARTITIONS t",
            expect![[r#"
            syntax error at line 1, column 1: SHOW PARTITIONS is not supported: SELECT DISTINCT of the columns that the table is PARTITIONED BY shows them
              SHOW PARTITIONS t
              ^"#]],
        ),
        (
            "CREATE OR REPLACE TABLE t (a INT)",
            expect![[r#"
            syntax error at line 1, column 19: CREATE OR REPLACE is not supported: DROP it first
              CREATE OR REPLACE TABLE t (a INT)
                                ^"#]],
        ),
        (
            "ALTER TABLE t ADD PARTITION (dt = 'x')",
            expect![[r#"
            syntax error at line 1, column 19: ALTER TABLE changes columns, the primary key and the watermark, and no other parts
              ALTER TABLE t ADD PARTITION (dt = 'x')
                                ^"#]],
        ),
        (
            "EXECUTE STATEMENT SET BEGIN SELECT 1; END",
            expect![[r#"
            syntax error at line 1, column 29: expected INSERT or END in a statement set, found SELECT
              EXECUTE STATEMENT SET BEGIN SELECT 1; END
                                          ^"#]],
        ),
        (
            "EXECUTE STATEMENT SET BEGIN INSERT INTO t SELECT 1",
            expect![[r#"
            syntax error at line 1, column 51: expected ;, found the end of the statement
              EXECUTE STATEMENT SET BEGIN INSERT INTO t SELECT 1
                                                                ^"#]],
        ),
        (
            "SELECT CAST(a AS DECIMAL(50, 2)) FROM t",
            expect![[r#"
            syntax error at line 1, column 18: DECIMAL(50, 2): the precision must be from 1 to 38
              SELECT CAST(a AS DECIMAL(50, 2)) FROM t
                               ^"#]],
        ),
        (
            "SELECT MAP[1, 2, 3]",
            expect![[r#"
            syntax error at line 1, column 19: a MAP needs a value for each key
              SELECT MAP[1, 2, 3]
                                ^"#]],
        ),
        (
            "SELECT * FROM t /*+ OPTIONS('a') */",
            expect![[r#"
            syntax error at line 1, column 17: the hint '/*+ OPTIONS('a') */' is not of the form /*+ OPTIONS('key' = 'value') */
              SELECT * FROM t /*+ OPTIONS('a') */
                              ^"#]],
        ),
        (
            "SHOW TABLEZ",
            expect![[r#"
            syntax error at line 1, column 6: expected CATALOGS, DATABASES, TABLES, VIEWS, FUNCTIONS, COLUMNS, CREATE TABLE, CREATE VIEW, JOBS or MODULES, found TABLEZ
              SHOW TABLEZ
                   ^"#]],
        ),
        (
            "SELECT ä, ∑ FROM t",
            expect![[r#"
            syntax error at line 1, column 11: expected an expression, found ∑
              SELECT ä, ∑ FROM t
                        ^"#]],
        ),
        ("", expect![]),
        ("SELECT \"a\" FROM t", expect![[r#"Query SELECT "a" FROM t"#]]),
    ] {
        check(script, shown);
    }
}

#[test]
fn deep_nesting_is_refused() {
    let script = format!("SELECT {}1{}", "(".repeat(5000), ")".repeat(5000));
    check(
        &script,
        expect![[r#"
        syntax error at line 1, column 10009: expressions or queries are nested too deeply
          ))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))
                                                                      ^"#]],
    );
    // What only looks deep is not.
    let long = format!("SELECT {} 1", "1 + ".repeat(2000));
    assert!(parse_script(&long).is_ok());
}
