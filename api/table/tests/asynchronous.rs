//! Asynchronous functions of a program, in the embedded cluster.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use flott::datagen::GeneratorSource;
use flott::prelude::*;
use flott_table::functions::{AsyncOptions, Function, Row, async_scalar, async_table};
use flott_table::prelude::*;

const OPTIONS: AsyncOptions = AsyncOptions { capacity: 16, timeout: Duration::from_secs(20) };

fn environment(parallelism: u32) -> (StreamExecutionEnvironment, StreamTableEnvironment) {
    let env = StreamExecutionEnvironment::new();
    env.set_parallelism(parallelism);
    let tables = StreamTableEnvironment::create(&env);
    (env, tables)
}

/// The square of a number, after a while that differs from call to call.
fn slow_square(running: &Arc<AtomicU32>, most: &Arc<AtomicU32>) -> Function {
    let (running, most) = (Arc::clone(running), Arc::clone(most));
    async_scalar(
        move |(n,): (i64,)| {
            let (running, most) = (Arc::clone(&running), Arc::clone(&most));
            async move {
                most.fetch_max(running.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
                flott_env::sleep(Duration::from_micros((n * 7919 % 1000) as u64)).await;
                running.fetch_sub(1, Ordering::Relaxed);
                n * n
            }
        },
        OPTIONS,
    )
}

#[test]
fn rows_stay_in_order_and_calls_are_bounded() {
    let (env, tables) = environment(1);
    let (running, most) = (Arc::default(), Arc::default());
    tables.create_temporary_system_function("square", slow_square(&running, &most)).unwrap();
    let numbers = tables.from_data_stream(env.from_collection(0..3_000_i64)).unwrap();
    let squares = numbers.filter("MOD(f0, 3) <> 0 AND square(f0) > 100").unwrap();
    let squares = squares.select("f0, square(f0), square(f0) + square(f0 + 1)").unwrap();
    let squares = squares.to_data_stream::<(i64, i64, i64)>().unwrap().collect();
    env.execute("squares").unwrap();
    let expected: Vec<(i64, i64, i64)> =
        (0..3_000).filter(|n| n % 3 != 0 && n * n > 100).map(|n| (n, n * n, n * n + (n + 1) * (n + 1))).collect();
    assert_eq!(squares.take(), expected);
    let most = most.load(Ordering::Relaxed);
    assert!((2..1_000).contains(&most), "{most} calls at a time");
}

#[test]
fn what_is_under_way_is_explained() {
    let (env, tables) = environment(1);
    let square = slow_square(&Arc::default(), &Arc::default());
    tables.create_temporary_system_function("square", square).unwrap();
    let numbers = tables.from_data_stream(env.from_collection(0..3_i64)).unwrap();
    let explained = tables.explain_sql(&format!("SELECT square(f0) FROM {numbers}")).unwrap();
    assert!(explained.contains("): rows whose calls are under way\n"), "{explained}");
}

#[test]
fn watermarks_do_not_overtake_rows() {
    let (env, tables) = environment(2);
    let (running, most) = (Arc::default(), Arc::default());
    tables.create_temporary_system_function("square", slow_square(&running, &most)).unwrap();
    env.set("pipeline.auto-watermark-interval", "1 ms");
    let events = env
        .from_collection(0..2_000_i64)
        .assign_timestamps_and_watermarks(WatermarkStrategy::monotonous(|n: &i64| n * 10));
    let schema =
        Schema::builder().column_by_metadata("ts", "TIMESTAMP(3)").watermark("ts", "SOURCE_WATERMARK()").build();
    let events = tables.from_data_stream_with(events, &schema).unwrap().select("square(f0) AS s, ts").unwrap();
    let sums = tables
        .sql_query(&format!(
            "SELECT window_start, COUNT(*), SUM(s) FROM TABLE(TUMBLE(TABLE {events}, DESCRIPTOR(ts), INTERVAL '1' SECOND))
             GROUP BY window_start, window_end"
        ))
        .unwrap();
    let sums = sums.to_data_stream::<(i64, i64, i64)>().unwrap().collect();
    env.execute("windows").unwrap();
    let mut sums = sums.take();
    sums.sort_unstable();
    let expected: Vec<(i64, i64, i64)> =
        (0..20).map(|w| (w * 1000, 100, (w * 100..(w + 1) * 100).map(|n| n * n).sum())).collect();
    assert_eq!(sums, expected, "no row is late");
}

#[test]
fn rows_under_way_survive_failures_once_each() {
    let (env, tables) = environment(2);
    env.set("execution.checkpointing.interval", "20 ms")
        .set("restart-strategy.type", "fixed-delay")
        .set("restart-strategy.fixed-delay.attempts", "10")
        .set("restart-strategy.fixed-delay.delay", "10 ms");
    let failures = Arc::new(AtomicU32::new(0));
    let failing = Arc::clone(&failures);
    let square = async_scalar(
        move |(n,): (i64,)| {
            let failing = Arc::clone(&failing);
            async move {
                flott_env::sleep(Duration::from_millis((n % 7) as u64 * 5)).await;
                if n % 2_000 == 1_777 && failing.fetch_add(1, Ordering::Relaxed) < 3 {
                    return Err(flott::Error::user_code(format!("{n} is cursed")));
                }
                Ok(n * n)
            }
        },
        AsyncOptions { capacity: 200, ..OPTIONS },
    );
    tables.create_temporary_system_function("square", square).unwrap();
    let numbers = env.from_generator(GeneratorSource::new(|n| n as i64).count(8_000).rows_per_second(16_000.0));
    let numbers = tables.from_data_stream(numbers).unwrap();
    let squares = numbers.select("f0, square(f0)").unwrap().to_data_stream::<(i64, i64)>().unwrap().collect();
    env.execute("squares").unwrap();
    assert!(failures.load(Ordering::Relaxed) >= 3);
    let mut squares = squares.take();
    squares.sort_unstable();
    assert_eq!(squares, (0..8_000).map(|n| (n, n * n)).collect::<Vec<_>>());
}

#[test]
fn updates_stay_in_order() {
    let (env, tables) = environment(2);
    let (running, most) = (Arc::default(), Arc::default());
    tables.create_temporary_system_function("square", slow_square(&running, &most)).unwrap();
    let numbers = env.from_generator(GeneratorSource::new(|n| (n as i64 % 10, n as i64)).count(3_000));
    let counts = tables.from_data_stream(numbers).unwrap().group_by("f0").unwrap().select("f0, COUNT(*) AS n").unwrap();
    let squares = counts.select("f0, square(n)").unwrap().to_changelog_stream::<(i64, i64)>().unwrap().collect();
    env.execute("squares").unwrap();
    let mut rows: BTreeMap<i64, i64> = BTreeMap::new();
    for (kind, (key, square)) in squares.take() {
        match kind {
            RowKind::Insert => assert_eq!(rows.insert(key, square), None),
            RowKind::UpdateBefore => assert_eq!(rows.get(&key), Some(&square)),
            RowKind::UpdateAfter => assert!(rows.insert(key, square).is_some_and(|before| before < square)),
            RowKind::Delete => panic!("nothing is deleted"),
        }
    }
    assert_eq!(rows, (0..10).map(|key| (key, 90_000)).collect());
}

#[test]
fn table_functions_may_be_asynchronous() {
    let (_, tables) = environment(1);
    let parts = async_table(
        |(text, least): (String, Option<i32>)| async move {
            text.split('-')
                .map(|part| Row((part.to_owned(), part.len() as i32)))
                .filter(|part| part.0.1 >= least.unwrap_or(0))
                .collect::<Vec<_>>()
        },
        OPTIONS,
    );
    tables.create_temporary_system_function("parts", parts).unwrap();
    let query = "SELECT part, n FROM (VALUES ('a-bcd'), (CAST(NULL AS STRING)), ('ef')) AS t (x), LATERAL TABLE(parts(x, 2)) AS p (part, n)";
    let found: Vec<(String, i32)> = tables.execute_sql(query).unwrap().collect().unwrap();
    assert_eq!(found, [("bcd".to_owned(), 3), ("ef".to_owned(), 2)]);
}

#[test]
fn what_goes_wrong_says_which_function() {
    let (env, tables) = environment(1);
    env.set("restart-strategy.type", "none");
    let never = async_scalar(
        |(n,): (i64,)| async move {
            flott_env::sleep(Duration::from_secs(60)).await;
            n
        },
        AsyncOptions { capacity: 1, timeout: Duration::from_millis(20) },
    );
    let panics = async_scalar(
        |(n,): (i64,)| async move {
            assert!(n < 0, "no such number");
            n
        },
        OPTIONS,
    );
    let none = async_scalar(|(n,): (i64,)| async move { n }, AsyncOptions { capacity: 0, ..OPTIONS });
    tables.create_temporary_system_function("never", never).unwrap();
    tables.create_temporary_system_function("panics", panics).unwrap();
    let error = tables.create_temporary_system_function("none", none).unwrap_err().to_string();
    assert!(error.contains("'none'") && error.contains("capacity"), "{error}");
    tables.set("restart-strategy.type", "none").unwrap();
    let fails = |query: &str| {
        tables
            .execute_sql(query)
            .and_then(TableResult::print)
            .err()
            .unwrap_or_else(|| panic!("{query} fails"))
            .to_string()
    };
    let values = "FROM (VALUES (1), (2)) AS t (n)";
    let error = fails(&format!("SELECT never(n) {values}"));
    assert!(error.contains("never") && error.contains("20ms"), "{error}");
    let error = fails(&format!("SELECT panics(n) {values}"));
    assert!(error.contains("panics"), "{error}");
    let error = fails(&format!("SELECT never(panics(n)) {values}"));
    assert!(error.contains("subquery"), "{error}");
    let error = fails(&format!(
        "SELECT * FROM (SELECT n {values}) AS l JOIN (SELECT n AS m {values}) AS r ON never(n + m) = 1"
    ));
    assert!(error.contains("asynchronous"), "{error}");
}
