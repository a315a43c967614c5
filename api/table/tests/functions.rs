//! Functions of a program in SQL, in the embedded cluster.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use flott::datagen::GeneratorSource;
use flott::prelude::*;
use flott_table::functions::{
    AggregateFunction, Bytes, Date, Decimal, Row, Timestamp, TimestampLtz, aggregate, scalar, table, vectorized,
};
use flott_table::prelude::*;
use serde::{Deserialize, Serialize};

fn tables() -> StreamTableEnvironment {
    StreamTableEnvironment::create(&StreamExecutionEnvironment::new())
}

/// The rows of a query in batch mode.
fn rows<T: serde::de::DeserializeOwned>(tables: &StreamTableEnvironment, query: &str) -> Vec<T> {
    tables.set("execution.runtime-mode", "batch").unwrap();
    tables.execute_sql(query).and_then(|result| result.collect()).unwrap_or_else(|error| panic!("{query}: {error}"))
}

fn refused(tables: &StreamTableEnvironment, query: &str) -> String {
    let failed = tables.execute_sql(query).and_then(TableResult::print);
    failed.err().unwrap_or_else(|| panic!("{query} is refused")).to_string()
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Point {
    x: i32,
    label: Option<String>,
}

#[test]
fn parameters_and_results_have_all_types() {
    let tables = tables();
    let functions = [
        ("not_", scalar(|value: bool| !value)),
        ("tiny", scalar(|a: i8, b: i16| i32::from(a) * i32::from(b))),
        ("halved", scalar(|value: f64| value / 2.0)),
        ("fourth", scalar(|value: f32| value / 4.0)),
        ("shout", scalar(|text: String| text.to_uppercase())),
        ("bytes_of", scalar(|text: String| Bytes(text.into_bytes()))),
        ("length_of", scalar(|bytes: Bytes| bytes.0.len() as i64)),
        ("tomorrow", scalar(|day: Date| Date(day.0 + 1))),
        ("later", scalar(|time: Timestamp| Timestamp(time.0 + 1500))),
        ("as_instant", scalar(|millis: i64| TimestampLtz(millis))),
        ("cents", scalar(|price: Decimal<10, 2>| price.0 as i64)),
        ("price", scalar(|cents: i64| Decimal::<10, 2>(i128::from(cents)))),
        ("sum_of", scalar(|all: Vec<Option<i32>>| all.into_iter().flatten().sum::<i32>())),
        ("up_to", scalar(|n: i32| (1..=n).collect::<Vec<i32>>())),
        ("point", scalar(|x: i32, label: Option<String>| Row(Point { x, label }))),
        ("mirrored", scalar(|point: Row<Point>| Row(Point { x: -point.0.x, ..point.0 }))),
        ("answer", scalar(|| 42_i32)),
    ];
    for (name, function) in functions {
        tables.create_temporary_system_function(name, function).unwrap();
    }
    let texts = [
        ("not_(TRUE)", "FALSE"),
        ("tiny(CAST(3 AS TINYINT), CAST(-4 AS SMALLINT))", "-12"),
        ("halved(3)", "1.5"),
        ("fourth(CAST(1 AS FLOAT))", "0.25"),
        ("shout('straße')", "STRASSE"),
        ("length_of(bytes_of('grün'))", "5"),
        ("tomorrow(DATE '2024-02-28')", "2024-02-29"),
        ("later(TIMESTAMP '2024-01-01 00:00:00')", "2024-01-01 00:00:01.500"),
        ("as_instant(0) = TO_TIMESTAMP_LTZ(0, 3)", "TRUE"),
        ("cents(CAST(12.34 AS DECIMAL(10, 2)))", "1234"),
        ("price(-5)", "-0.05"),
        ("sum_of(ARRAY[1, CAST(NULL AS INT), 3])", "4"),
        ("CARDINALITY(up_to(3))", "3"),
        ("up_to(3)[3]", "3"),
        ("point(1, NULL).x", "1"),
        ("mirrored(point(7, 'seven')).x", "-7"),
        ("mirrored(point(7, 'seven')).label", "seven"),
        ("ANSWER() + 1", "43"),
    ];
    for (expression, expected) in texts {
        let found: Vec<(String,)> = rows(&tables, &format!("SELECT CAST({expression} AS STRING)"));
        assert_eq!(found, [(expected.to_owned(),)], "{expression}");
    }
}

#[test]
fn rows_and_constants_give_the_same_and_null_is_not_asked() {
    let tables = tables();
    let calls = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&calls);
    tables
        .create_temporary_system_function(
            "twice",
            scalar(move |n: i64| {
                counted.fetch_add(1, Ordering::Relaxed);
                n * 2
            }),
        )
        .unwrap();
    tables.create_temporary_system_function("or_zero", scalar(|n: Option<i64>| n.unwrap_or(0))).unwrap();
    let found: Vec<(Option<i64>, i64)> =
        rows(&tables, "SELECT twice(n), or_zero(n) FROM (VALUES (1), (CAST(NULL AS INT)), (3)) AS t (n)");
    assert_eq!(found, [(Some(2), 1), (None, 0), (Some(6), 3)]);
    assert_eq!(calls.load(Ordering::Relaxed), 2);
    let found: Vec<(String, i64)> = rows(
        &tables,
        "SELECT k, SUM(twice(n)) FROM (VALUES ('a', 1), ('a', 5)) AS t (k, n) WHERE twice(n) > 2 GROUP BY k",
    );
    assert_eq!(found, [("a".to_owned(), 10)]);
}

#[test]
fn wrong_calls_are_refused_with_both_types() {
    let tables = tables();
    tables.create_temporary_system_function("score", scalar(|n: i32, _: String| n)).unwrap();
    tables
        .create_temporary_system_function(
            "parse",
            scalar(|text: String| -> flott::Result<i64> {
                text.parse().map_err(|_| flott::Error::user_code(format!("'{text}' is no number")))
            }),
        )
        .unwrap();
    tables
        .create_temporary_system_function(
            "wrong_length",
            vectorized(&["INT"], "INT", |columns| Ok(columns[0].slice(0, 0))),
        )
        .unwrap();
    let error = refused(&tables, "SELECT score(1)");
    assert!(error.contains("score(INT, STRING)") && error.contains("(INT)"), "{error}");
    let error = refused(&tables, "SELECT score(CAST(1 AS BIGINT), 'x')");
    assert!(error.contains("(BIGINT, STRING)") && error.contains("CAST"), "{error}");
    let error = refused(&tables, "SELECT scroe(1, 'x')");
    assert!(error.contains("there is no function 'scroe'") && error.contains("SCORE"), "{error}");
    let error = refused(&tables, "CREATE FUNCTION f AS 'scor'");
    assert!(error.contains("no function 'scor'") && error.contains("'score'"), "{error}");
    let error = refused(&tables, "SELECT parse(x) FROM (VALUES ('1'), ('x')) AS t (x)");
    assert!(error.contains("'x' is no number"), "{error}");
    let error = refused(&tables, "SELECT wrong_length(x) FROM (VALUES (1), (2)) AS t (x)");
    assert!(error.contains("gave 0 values"), "{error}");
    let taken = |name: &str| tables.create_temporary_system_function(name, scalar(|| 1_i32)).unwrap_err().to_string();
    assert!(taken("SCORE").contains("registered already"), "{}", taken("SCORE"));
    assert!(taken("upper").contains("built-in"), "{}", taken("upper"));
    assert!(taken("my function").contains("no name"), "{}", taken("my function"));
    let error = tables
        .create_temporary_system_function("t", vectorized(&["BIGNIT"], "INT", |c| Ok(Arc::clone(&c[0]))))
        .unwrap_err();
    assert!(error.to_string().contains("'t'") && error.to_string().contains("BIGNIT"), "{error}");
}

#[test]
fn functions_have_other_names_in_scripts() {
    let tables = tables();
    tables.create_temporary_system_function("score", scalar(|n: i32| n + 1)).unwrap();
    tables.execute_sql("CREATE FUNCTION points AS 'score'").unwrap();
    let found: Vec<i32> = rows(&tables, "SELECT Points(x) FROM (VALUES (1), (2)) AS t (x)");
    assert_eq!(found, [2, 3]);
    tables.execute_sql("DROP FUNCTION points").unwrap();
    assert!(refused(&tables, "SELECT points(1)").contains("'points'"));
}

#[test]
fn table_functions_give_rows_for_each_row() {
    let tables = tables();
    tables
        .create_temporary_system_function(
            "points",
            table(|n: i32| {
                (0..n).map(|x| Row(Point { x, label: (x > 0).then(|| "p".repeat(x as usize)) })).collect::<Vec<_>>()
            }),
        )
        .unwrap();
    tables
        .create_temporary_system_function(
            "chars",
            table(|text: String| text.chars().map(String::from).collect::<Vec<_>>()),
        )
        .unwrap();
    let found: Vec<(i32, i32, Option<String>)> = rows(
        &tables,
        "SELECT n, x, label FROM (VALUES (2), (0), (CAST(NULL AS INT)), (1)) AS t (n), LATERAL TABLE(points(n)) WHERE n < 3",
    );
    assert_eq!(found, [(2, 0, None), (2, 1, Some("p".to_owned())), (1, 0, None)]);
    let found: Vec<(i32, Option<i32>)> = rows(
        &tables,
        "SELECT n, x FROM (VALUES (1), (0)) AS t (n) LEFT JOIN LATERAL TABLE(points(n)) AS p (x, l) ON TRUE",
    );
    assert_eq!(found, [(1, Some(0)), (0, None)]);
    let letters = tables.sql_query("SELECT * FROM (VALUES ('ab'), ('')) AS t (word)").unwrap();
    let joined = letters.left_outer_join_lateral("chars(word) AS c (letter)").unwrap();
    let found: Vec<(String, Option<String>)> = joined.execute().unwrap().collect().unwrap();
    let pair = |word: &str, letter: Option<&str>| (word.to_owned(), letter.map(str::to_owned));
    assert_eq!(found, [pair("ab", Some("a")), pair("ab", Some("b")), pair("", None)]);
    let error = refused(&tables, "SELECT chars('x')");
    assert!(error.contains("LATERAL TABLE"), "{error}");
    let error = refused(&tables, "SELECT * FROM LATERAL TABLE(char('x'))");
    assert!(error.contains("no table function 'char'") && error.contains("'CHARS'"), "{error}");
}

/// The value in the middle, with all that there are kept.
struct Median;

impl AggregateFunction for Median {
    type Input = (i64,);
    type Accumulator = BTreeMap<i64, i64>;
    type Output = Option<i64>;

    const RETRACTS: bool = true;
    const MERGES: bool = true;

    fn create_accumulator(&self) -> BTreeMap<i64, i64> {
        BTreeMap::new()
    }

    fn accumulate(&self, values: &mut BTreeMap<i64, i64>, (value,): (i64,)) {
        *values.entry(value).or_insert(0) += 1;
    }

    fn retract(&self, values: &mut BTreeMap<i64, i64>, (value,): (i64,)) {
        *values.entry(value).or_insert(0) -= 1;
        values.retain(|_, count| *count != 0);
    }

    fn merge(&self, values: &mut BTreeMap<i64, i64>, later: BTreeMap<i64, i64>) {
        later.into_iter().for_each(|(value, count)| *values.entry(value).or_insert(0) += count);
    }

    fn get_value(&self, values: &BTreeMap<i64, i64>) -> Option<i64> {
        let count: i64 = values.values().sum();
        let mut left = (count + 1) / 2;
        values
            .iter()
            .find(|(_, count)| {
                left -= **count;
                left <= 0
            })
            .map(|(value, _)| *value)
    }
}

/// A sum that can do nothing else.
struct PlainSum;

impl AggregateFunction for PlainSum {
    type Input = (Option<i64>, i64);
    type Accumulator = i64;
    type Output = i64;

    fn create_accumulator(&self) -> i64 {
        0
    }

    fn accumulate(&self, sum: &mut i64, (value, times): (Option<i64>, i64)) {
        *sum += value.unwrap_or(1000) * times;
    }

    fn get_value(&self, sum: &i64) -> i64 {
        *sum
    }
}

fn median(mut values: Vec<i64>) -> i64 {
    values.sort_unstable();
    values[(values.len() - 1) / 2]
}

#[test]
fn aggregates_work_wherever_built_in_ones_do() {
    let tables = tables();
    tables.create_temporary_system_function("median", aggregate(Median)).unwrap();
    tables.create_temporary_system_function("plain_sum", aggregate(PlainSum)).unwrap();
    let values = "(VALUES ('a', 1), ('b', 7), ('a', 5), ('a', CAST(NULL AS INT)), ('a', 2), ('a', 5)) AS t (k, v)";
    let found: Vec<(String, i64, i64, i64, i64)> = rows(
        &tables,
        &format!(
            "SELECT k, median(v), median(DISTINCT v), plain_sum(v, 1), median(v) FILTER (WHERE v > 2) FROM {values} GROUP BY k"
        ),
    );
    let mut found = found;
    found.sort();
    assert_eq!(found, [("a".to_owned(), 2, 2, 1013, 5), ("b".to_owned(), 7, 7, 7, 7)]);
    let nothing: Vec<(Option<i64>, i64)> =
        rows(&tables, &format!("SELECT median(v), plain_sum(v, 1) FROM {values} WHERE v > 100"));
    assert_eq!(nothing, [(None, 0)]);
}

#[test]
fn aggregates_take_rows_back_and_merge_windows() {
    let env = StreamExecutionEnvironment::new();
    env.set_parallelism(2);
    let tables = StreamTableEnvironment::create(&env);
    tables.create_temporary_system_function("median", aggregate(Median)).unwrap();
    tables.create_temporary_system_function("plain_sum", aggregate(PlainSum)).unwrap();
    let value = |index: i64| index * 7919 % 101;
    let events = env
        .from_collection((0..600_i64).map(move |index| (index * 100, value(index))))
        .assign_timestamps_and_watermarks(WatermarkStrategy::monotonous(|event: &(i64, i64)| event.0));
    let schema =
        Schema::builder().column_by_metadata("ts", "TIMESTAMP(3)").watermark("ts", "SOURCE_WATERMARK()").build();
    let events = tables.from_data_stream_with(events, &schema).unwrap().alias(&["ms", "v", "ts"]).unwrap();
    tables.create_temporary_view("events", &events).unwrap();
    let hops = tables
        .sql_query(
            "SELECT window_start, median(v) FROM TABLE(HOP(TABLE events, DESCRIPTOR(ts), INTERVAL '5' SECOND, INTERVAL '10' SECOND))
             GROUP BY window_start, window_end",
        )
        .unwrap();
    let hops = hops.to_data_stream::<(i64, i64)>().unwrap().collect();
    // The maximum of each key is taken back as it grows.
    let maxima =
        tables.sql_query("SELECT median(m) FROM (SELECT MAX(v) AS m FROM events GROUP BY MOD(ms, 1000))").unwrap();
    let maxima = maxima.to_changelog_stream::<i64>().unwrap().collect();
    let last = tables
        .sql_query("SELECT ms, median(v) OVER (ORDER BY ts ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) FROM events")
        .unwrap();
    let last = last.to_data_stream::<(i64, i64)>().unwrap().collect();
    env.execute("medians").unwrap();

    let mut hops = hops.take();
    hops.sort_unstable();
    let expected: Vec<(i64, i64)> = (-1..12)
        .map(|slide| {
            let window = (slide * 50).max(0)..((slide + 2) * 50).min(600);
            (slide * 5000, median(window.map(value).collect()))
        })
        .collect();
    assert_eq!(hops, expected);

    let maxima = maxima.take();
    let of_key = |key: i64| (0..600).filter(|index| index % 10 == key).map(value).max().unwrap();
    // Two subtasks have collected them, in whatever order.
    let mut left: BTreeMap<i64, i64> = BTreeMap::new();
    for (kind, value) in maxima {
        let count = if matches!(kind, RowKind::Insert | RowKind::UpdateAfter) { 1 } else { -1 };
        *left.entry(value).or_default() += count;
    }
    left.retain(|_, count| *count != 0);
    assert_eq!(left, BTreeMap::from([(median((0..10).map(of_key).collect()), 1)]));

    let mut last = last.take();
    last.sort_unstable();
    let expected: Vec<(i64, i64)> =
        (0..600_i64).map(|index| (index * 100, median(((index - 2).max(0)..=index).map(value).collect()))).collect();
    assert_eq!(last, expected);
}

#[test]
fn what_an_aggregate_lacks_is_said_before_anything_runs() {
    let env = StreamExecutionEnvironment::new();
    let tables = StreamTableEnvironment::create(&env);
    tables.create_temporary_system_function("plain_sum", aggregate(PlainSum)).unwrap();
    let updated = "SELECT plain_sum(n, 1) FROM (SELECT COUNT(*) AS n FROM (VALUES (1), (1)) AS t (k) GROUP BY k)";
    let error = refused(&tables, updated);
    assert!(error.contains("'plain_sum'") && error.contains("retract"), "{error}");
    let events = env
        .from_collection([(1_i64, 1_i64)])
        .assign_timestamps_and_watermarks(WatermarkStrategy::monotonous(|event: &(i64, i64)| event.0));
    let schema =
        Schema::builder().column_by_metadata("ts", "TIMESTAMP(3)").watermark("ts", "SOURCE_WATERMARK()").build();
    tables.create_temporary_view("events", &tables.from_data_stream_with(events, &schema).unwrap()).unwrap();
    let sessions = "SELECT plain_sum(f1, 1) FROM TABLE(SESSION(TABLE events, DESCRIPTOR(ts), INTERVAL '5' SECOND))
         GROUP BY window_start, window_end";
    let error = refused(&tables, sessions);
    assert!(error.contains("'plain_sum'") && error.contains("merge"), "{error}");
}

#[test]
fn accumulators_survive_failures() {
    let env = StreamExecutionEnvironment::new();
    env.set_parallelism(2)
        .set("execution.checkpointing.interval", "20 ms")
        .set("restart-strategy.type", "fixed-delay")
        .set("restart-strategy.fixed-delay.attempts", "10")
        .set("restart-strategy.fixed-delay.delay", "10 ms");
    let tables = StreamTableEnvironment::create(&env);
    tables.create_temporary_system_function("median", aggregate(Median)).unwrap();
    let failures = Arc::new(AtomicU32::new(0));
    let failing = Arc::clone(&failures);
    let value = |index: u64| (index * 7919 % 1009) as i64;
    let events = env.from_generator(GeneratorSource::new(|index| index).count(12_000).rows_per_second(20_000.0)).map(
        move |index| {
            if index % 4_000 == 3_333 && failing.fetch_add(1, Ordering::Relaxed) < 3 {
                panic!("record {index} is cursed");
            }
            ((index % 10) as i64, value(index))
        },
    );
    let events = tables.from_data_stream(events).unwrap();
    let medians = events.group_by("f0").unwrap().select("f0, COUNT(*), median(f1)").unwrap();
    let medians = medians.to_changelog_stream::<(i64, i64, i64)>().unwrap().collect();
    env.execute("medians").unwrap();
    assert!(failures.load(Ordering::Relaxed) >= 3);
    let mut last = BTreeMap::new();
    for (kind, (key, count, median)) in medians.take() {
        if kind.is_addition() {
            last.insert(key, (count, median));
        }
    }
    for key in 0..10 {
        let values: Vec<i64> = (0..12_000).filter(|index| index % 10 == key).map(value).collect();
        assert_eq!(last[&(key as i64)], (1200, median(values)), "key {key}");
    }
}
