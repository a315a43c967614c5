//! Tables of a program's connectors that rows are looked up in, in the embedded cluster.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use flott::datagen::GeneratorSource;
use flott::prelude::*;
use flott_table::arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch, StringArray};
use flott_table::arrow::datatypes::{Int64Type, SchemaRef};
use flott_table::lookup::{Finding, Found, LookUp, LookupConnector, Options};
use flott_table::prelude::*;

/// Answers a batch of keys after some time, or fails.
type Act = Arc<dyn Fn(&[i64]) -> (Duration, flott::Result<()>) + Send + Sync>;

/// A table `(id BIGINT, kind STRING, name STRING)` with two rows for each even id below 1000, of the kinds `a` and `b`.
#[derive(Clone)]
struct Even {
    act: Act,
    calls: Arc<Mutex<Vec<RecordBatch>>>,
}

impl Even {
    fn new(act: impl Fn(&[i64]) -> (Duration, flott::Result<()>) + Send + Sync + 'static) -> Self {
        Self { act: Arc::new(act), calls: Arc::default() }
    }

    /// After a while that differs from batch to batch.
    fn slow() -> Self {
        Self::new(|ids| (Duration::from_micros(ids[0].unsigned_abs() * 7919 % 3000), Ok(())))
    }

    fn keys_asked(&self) -> usize {
        self.calls.lock().unwrap().iter().map(RecordBatch::num_rows).sum()
    }
}

impl LookupConnector for Even {
    fn check(&self, options: &Options, _: &SchemaRef) -> flott::Result<()> {
        options.flag("upper", false).map(drop)
    }

    fn open(&self, options: &Options, keys: SchemaRef, columns: SchemaRef) -> flott::Result<Arc<dyn LookUp>> {
        Ok(Arc::new(Table { even: self.clone(), is_upper: options.flag("upper", false)?, keys, columns }))
    }
}

struct Table {
    even: Even,
    is_upper: bool,
    keys: SchemaRef,
    columns: SchemaRef,
}

impl LookUp for Table {
    fn look_up(&self, keys: RecordBatch) -> Finding<'_> {
        Box::pin(async move {
            self.even.calls.lock().unwrap().push(keys.clone());
            let place = |name: &str| self.keys.fields().iter().position(|field| field.name() == name);
            let ids = place("id").map(|at| keys.column(at).as_primitive::<Int64Type>().values().to_vec()).unwrap();
            let kinds = place("kind").map(|at| keys.column(at).as_string::<i32>().clone());
            let (delay, outcome) = (self.even.act)(&ids);
            flott_env::sleep(delay).await;
            outcome?;
            let mut found: Vec<(u32, i64, &str)> = Vec::new();
            for kind in ["a", "b"] {
                for (key, id) in ids.iter().enumerate().filter(|(_, id)| **id % 2 == 0 && (0..1000).contains(*id)) {
                    if kinds.as_ref().is_none_or(|kinds| kinds.value(key) == kind) {
                        found.push((key as u32, *id, kind));
                    }
                }
            }
            let name = |id: i64, kind: &str| match self.is_upper {
                true => format!("{}{id}", kind.to_uppercase()),
                false => format!("{kind}{id}"),
            };
            let column = |column: &str| -> ArrayRef {
                match column {
                    "id" => Arc::new(Int64Array::from_iter_values(found.iter().map(|(_, id, _)| *id))),
                    "kind" => Arc::new(StringArray::from_iter_values(found.iter().map(|(.., kind)| *kind))),
                    _ => Arc::new(StringArray::from_iter_values(found.iter().map(|(_, id, kind)| name(*id, kind)))),
                }
            };
            let columns = self.columns.fields().iter().map(|field| column(field.name())).collect();
            let rows = RecordBatch::try_new(Arc::clone(&self.columns), columns).unwrap();
            Ok(Found { rows, keys: found.iter().map(|(key, ..)| *key).collect() })
        })
    }
}

/// Tables, with `even` among them.
fn environment(parallelism: u32, even: &Even, options: &str) -> (StreamExecutionEnvironment, StreamTableEnvironment) {
    let env = StreamExecutionEnvironment::new();
    env.set_parallelism(parallelism);
    let tables = StreamTableEnvironment::create(&env);
    tables.create_temporary_lookup_connector("even", even.clone()).unwrap();
    let table = format!("CREATE TABLE even (id BIGINT, kind STRING, name STRING) WITH ('connector' = 'even'{options})");
    tables.execute_sql(&table).unwrap();
    (env, tables)
}

fn with_proctime() -> Schema {
    Schema::builder().column_by_expression("pt", "PROCTIME()").build()
}

#[test]
fn inner_and_left_joins_keep_the_order_of_rows() {
    let even = Even::slow();
    let (env, tables) = environment(1, &even, "");
    let numbers = tables.from_data_stream_with(env.from_collection(0..3_000_i64), &with_proctime()).unwrap();
    let join = |kind: &str| {
        let query = format!(
            "SELECT n.f0, e.name FROM {numbers} AS n {kind} JOIN even FOR SYSTEM_TIME AS OF n.pt AS e ON n.f0 = e.id AND e.kind <> 'c'"
        );
        tables.sql_query(&query).unwrap()
    };
    let inner = join("").to_data_stream::<(i64, String)>().unwrap().collect();
    let left = join("LEFT").to_data_stream::<(i64, Option<String>)>().unwrap().collect();
    env.execute("look-ups").unwrap();
    let pairs = (0..1_000).filter(|n| n % 2 == 0).flat_map(|n| [(n, format!("a{n}")), (n, format!("b{n}"))]);
    assert_eq!(inner.take(), pairs.collect::<Vec<_>>());
    let all = (0..3_000_i64).flat_map(|n| match n < 1_000 && n % 2 == 0 {
        true => vec![(n, Some(format!("a{n}"))), (n, Some(format!("b{n}")))],
        false => vec![(n, None)],
    });
    assert_eq!(left.take(), all.collect::<Vec<_>>());
}

#[test]
fn constants_are_part_of_the_key() {
    let even = Even::slow();
    let (_, tables) = environment(1, &even, ", 'upper' = 'true'");
    let rows = "(SELECT n, PROCTIME() AS pt FROM (VALUES (2), (3), (CAST(NULL AS INT))) AS t (n)) AS n";
    let query = format!(
        "SELECT n.n, e.name FROM {rows} LEFT JOIN even FOR SYSTEM_TIME AS OF n.pt AS e ON CAST(n.n AS BIGINT) = e.id AND e.kind = 'b'"
    );
    let found: Vec<(Option<i32>, Option<String>)> = tables.execute_sql(&query).unwrap().collect().unwrap();
    assert_eq!(found, [(Some(2), Some("B2".to_owned())), (Some(3), None), (None, None)]);
    let calls = even.calls.lock().unwrap();
    assert!(calls.iter().all(|keys| keys.num_columns() == 2 && keys.column(1).as_string::<i32>().value(0) == "b"));
    assert_eq!(calls.iter().map(RecordBatch::num_rows).sum::<usize>(), 2, "NULL is not asked for");
}

#[test]
fn rows_under_way_survive_failures_once_each() {
    let failures = Arc::new(AtomicU32::new(0));
    let failing = Arc::clone(&failures);
    let even = Even::new(move |ids| {
        let is_cursed = ids.iter().any(|id| id % 1_000 == 777) && failing.fetch_add(1, Ordering::Relaxed) < 3;
        // What is wrong is not tried again by itself.
        let outcome = if is_cursed { Err(flott::Error::user_code("cursed")) } else { Ok(()) };
        (Duration::from_millis(ids[0].unsigned_abs() % 7 * 5), outcome)
    });
    let (env, tables) = environment(2, &even, "");
    env.set("execution.checkpointing.interval", "20 ms")
        .set("restart-strategy.type", "fixed-delay")
        .set("restart-strategy.fixed-delay.attempts", "10")
        .set("restart-strategy.fixed-delay.delay", "10 ms");
    let numbers = env.from_generator(GeneratorSource::new(|n| n as i64).count(8_000).rows_per_second(16_000.0));
    let numbers = tables.from_data_stream_with(numbers, &with_proctime()).unwrap();
    let joined = tables
        .sql_query(&format!(
            "SELECT n.f0, e.name FROM {numbers} AS n LEFT JOIN even FOR SYSTEM_TIME AS OF n.pt AS e ON MOD(n.f0, 1000) = e.id AND e.kind = 'a'"
        ))
        .unwrap();
    let joined = joined.to_data_stream::<(i64, Option<String>)>().unwrap().collect();
    env.execute("look-ups").unwrap();
    assert!(failures.load(Ordering::Relaxed) >= 3);
    let mut joined = joined.take();
    joined.sort_unstable();
    let name = |n: i64| (n % 2 == 0).then(|| format!("a{}", n % 1_000));
    assert_eq!(joined, (0..8_000).map(|n| (n, name(n))).collect::<Vec<_>>());
}

#[test]
fn updates_and_deletes_pass_with_their_kinds() {
    let even = Even::slow();
    let (env, tables) = environment(2, &even, "");
    let numbers = env.from_generator(GeneratorSource::new(|n| (n as i64 % 10, n as i64)).count(3_000));
    let counts = tables.from_data_stream(numbers).unwrap().group_by("f0").unwrap().select("f0, COUNT(*) AS n").unwrap();
    let counts = counts.select("f0, n, PROCTIME() AS pt").unwrap();
    let joined = tables
        .sql_query(&format!(
            "SELECT c.f0, c.n, e.name FROM {counts} AS c JOIN even FOR SYSTEM_TIME AS OF c.pt AS e ON c.f0 = e.id AND e.kind = 'a'"
        ))
        .unwrap();
    let changes = joined.to_changelog_stream::<(i64, i64, String)>().unwrap().collect();
    env.execute("look-ups").unwrap();
    let mut rows: BTreeMap<i64, i64> = BTreeMap::new();
    for (kind, (key, n, name)) in changes.take() {
        assert_eq!(name, format!("a{key}"));
        match kind {
            RowKind::Insert => assert_eq!(rows.insert(key, n), None),
            RowKind::UpdateBefore => assert_eq!(rows.get(&key), Some(&n)),
            RowKind::UpdateAfter => assert!(rows.insert(key, n).is_some_and(|before| before < n)),
            RowKind::Delete => panic!("nothing is deleted"),
        }
    }
    assert_eq!(rows, (0..5).map(|key| (key * 2, 300)).collect());
}

#[test]
fn a_cache_answers_what_was_asked_before() {
    let (without, with) = (Even::slow(), Even::slow());
    for (even, options) in [(&without, ", 'lookup.cache' = 'NONE'"), (&with, ", 'lookup.cache' = 'PARTIAL'")] {
        let (env, tables) = environment(1, even, options);
        let numbers = GeneratorSource::new(|n| n as i64 % 50).count(20_000).rows_per_second(100_000.0);
        let numbers = env.from_generator(numbers);
        let numbers = tables.from_data_stream_with(numbers, &with_proctime()).unwrap();
        let query = format!(
            "SELECT n.f0, e.name FROM {numbers} AS n LEFT JOIN even FOR SYSTEM_TIME AS OF n.pt AS e ON n.f0 = e.id AND e.kind = 'a'"
        );
        let joined = tables.sql_query(&query).unwrap().to_data_stream::<(i64, Option<String>)>().unwrap().collect();
        env.execute("look-ups").unwrap();
        let name = |n: i64| (n % 2 == 0).then(|| format!("a{n}"));
        assert_eq!(joined.take(), (0..20_000).map(|n| (n % 50, name(n % 50))).collect::<Vec<_>>());
    }
    assert!(with.keys_asked() < without.keys_asked(), "{} of {}", with.keys_asked(), without.keys_asked());
}

#[test]
fn what_goes_wrong_names_the_table() {
    let never = Even::new(|_| (Duration::from_secs(3600), Ok(())));
    let (_, tables) = environment(1, &never, "");
    let error = tables.create_temporary_lookup_connector("even", never.clone()).unwrap_err().to_string();
    assert!(error.contains("'even'"), "{error}");
    tables.set("restart-strategy.type", "none").unwrap();
    let fails = |query: &str| {
        let failed = tables.execute_sql(query).and_then(TableResult::print);
        failed.err().unwrap_or_else(|| panic!("{query} fails")).to_string()
    };
    let rows = "(SELECT CAST(n AS BIGINT) AS n, PROCTIME() AS pt FROM (VALUES (2), (3)) AS t (n)) AS n";
    let join = |on: &str| format!("SELECT * FROM {rows} JOIN even FOR SYSTEM_TIME AS OF n.pt AS e ON {on}");
    tables.set("table.exec.async-lookup.timeout", "30 ms").unwrap();
    let error = fails(&join("n.n = e.id"));
    assert!(error.contains("looking up 2 keys") && error.contains("even'") && error.contains("30ms"), "{error}");
    let error = fails(&join("n.n > e.id"));
    assert!(error.contains("even'") && error.contains("constant"), "{error}");
    let error = fails("SELECT * FROM even");
    assert!(error.contains("FOR SYSTEM_TIME AS OF"), "{error}");
    let error = fails("INSERT INTO even SELECT 1, 'a', 'b'");
    assert!(error.contains("cannot be written"), "{error}");
    let create = |name: &str, option: &str| {
        format!("CREATE TABLE {name} (id BIGINT, kind STRING, name STRING) WITH ('connector' = 'even', {option})")
    };
    for (name, option, reason) in [
        ("whole", "'lookup.cache' = 'FULL'", "NONE or PARTIAL"),
        ("misspelt", "'uper' = 'true'", "'upper'"),
        ("unclear", "'upper' = 'maybe'", "true or false"),
    ] {
        tables.execute_sql(&create(name, option)).unwrap();
        let query = format!("SELECT * FROM {rows} JOIN {name} FOR SYSTEM_TIME AS OF n.pt AS e ON n.n = e.id");
        let error = fails(&query);
        assert!(error.contains(reason), "{error}");
    }
}
