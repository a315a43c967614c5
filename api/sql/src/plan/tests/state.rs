//! What operators are said to keep, and what is warned of.

use super::world::{batch, select, settings};
use crate::plan::{Settings, plan};

fn warnings(sql: &str, settings: &Settings) -> Vec<String> {
    let planned = plan(&[select(sql)], settings).unwrap_or_else(|error| panic!("{sql}: {error}"));
    planned.warnings().map(str::to_owned).collect()
}

/// That one operator, and no other, is said to keep this without end.
fn grows(sql: &str, operator: &str, what: &str) {
    let found = warnings(sql, &settings());
    let [warning] = &found[..] else { panic!("{sql}: {found:?}") };
    assert!(warning.starts_with(&format!("{operator} keeps {what} for ")), "{sql}: {warning}");
}

fn does_not_grow(sql: &str) {
    assert_eq!(warnings(sql, &settings()), Vec::<String>::new(), "{sql}");
}

fn with_ttl() -> Settings {
    Settings { state_ttl_ms: 3_600_000, ..settings() }
}

#[test]
fn one_key_grows_with_the_values_that_its_aggregates_keep() {
    does_not_grow("SELECT count(*), sum(price), max(price), min(channel) FROM bid");
    for (aggregate, text) in
        [("count(DISTINCT price)", "COUNT(DISTINCT price)"), ("array_agg(price)", "ARRAY_AGG(price)")]
    {
        let sql = format!("SELECT count(*), {aggregate} FROM bid");
        grows(&sql, "GroupAggregate", &format!("one row of aggregates, with the values of {text}"));
        // Its only key is never unused.
        assert_eq!(warnings(&sql, &with_ttl()), warnings(&sql, &settings()));
        assert_eq!(warnings(&sql, &batch()), Vec::<String>::new(), "it ends with its input");
    }
}

#[test]
fn the_least_of_what_may_go_keeps_the_others() {
    let sql = "SELECT sum(n), max(n) FROM (SELECT count(*) AS n FROM bid GROUP BY auction)";
    let found = warnings(sql, &settings());
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].contains("a row of aggregates for each key for ever"), "{found:?}");
    assert!(found[1].contains("one row of aggregates, with the values of MAX("), "{found:?}");
    let found = warnings(sql, &with_ttl());
    assert!(matches!(&found[..], [only] if only.contains("MAX(")), "{found:?}");
}

#[test]
fn windows_over_rows_grow_with_keys_and_with_values() {
    let over = |aggregate: &str, window: &str| format!("SELECT {aggregate} OVER ({window}) FROM bid");
    does_not_grow(&over("sum(price)", "ORDER BY ts"));
    does_not_grow(&over("sum(price)", "ORDER BY ts ROWS BETWEEN 2 PRECEDING AND CURRENT ROW"));
    does_not_grow(&over("array_agg(price)", "ORDER BY ts ROWS BETWEEN 2 PRECEDING AND CURRENT ROW"));
    grows(
        &over("array_agg(price)", "ORDER BY ts"),
        "OverAggregate",
        "one row of aggregates, with the values of ARRAY_AGG(price)",
    );
    grows(&over("sum(price)", "PARTITION BY auction ORDER BY ts"), "OverAggregate", "a row of aggregates for each key");
    grows(
        &over("sum(price)", "PARTITION BY auction ORDER BY ts ROWS BETWEEN 2 PRECEDING AND CURRENT ROW"),
        "OverAggregate",
        "the last rows of each key",
    );
    // Ordered by what is no time, any row may still count, and go.
    grows(&over("sum(price)", "ORDER BY price"), "OverAggregate", "all rows, with what they result in");
    let window = "PARTITION BY auction ORDER BY price ROWS BETWEEN 2 PRECEDING AND CURRENT ROW";
    grows(&over("sum(price)", window), "OverAggregate", "all rows of each key, with what they result in");
    assert_eq!(warnings(&over("sum(price)", window), &with_ttl()), Vec::<String>::new());
}

#[test]
fn versions_grow_with_the_keys_of_their_table() {
    let sql = "SELECT price * rate AS yen FROM converted";
    let what = "the right table's last version of each key, and left rows until their time has come";
    grows(sql, "TemporalJoin", what);
    assert_eq!(warnings(sql, &with_ttl()), Vec::<String>::new());
    grows("SELECT price * rate AS yen FROM converted_now", "TemporalJoin", "the right table's row of each key");
}

#[test]
fn the_first_rows_of_all_are_few_unless_some_may_go() {
    does_not_grow("SELECT auction FROM bid ORDER BY price DESC LIMIT 5");
    let counted = "SELECT auction, count(*) AS n FROM bid GROUP BY auction";
    let found = warnings(&format!("SELECT auction FROM ({counted}) ORDER BY n LIMIT 5"), &with_ttl());
    assert!(matches!(&found[..], [only] if only.starts_with("Rank keeps all rows for as long")), "{found:?}");
}

#[test]
fn what_is_kept_is_named() {
    for (sql, operator, what) in [
        ("SELECT price FROM bid", "TableSourceScan", "how far it has read"),
        ("SELECT value FROM looked_up", "LookupJoin", "the table, in memory alone"),
    ] {
        let planned = plan(&[select(sql)], &settings()).expect("a plan");
        let mut kept = planned.plan.nodes.iter().zip(&planned.notes);
        let found = kept.find(|(node, _)| node.name.starts_with(operator)).expect("the operator");
        assert_eq!(found.1.state.as_deref(), Some(what), "{sql}");
    }
    let mut written = select("SELECT price FROM bid");
    written.sink.options.insert("connector".to_owned(), "filesystem".to_owned());
    let planned = plan(&[written], &settings()).expect("a plan");
    let last = planned.notes.last().and_then(|note| note.state.as_deref());
    assert_eq!(last, Some("files that no checkpoint has published yet"));
    let planned = plan(&[select("SELECT price FROM bid ORDER BY price")], &batch()).expect("a plan");
    let states: Vec<&str> = planned.notes.iter().filter_map(|note| note.state.as_deref()).collect();
    assert_eq!(states, ["how far it has read", "all rows, until the input ends"]);
}
