//! Data streams and tables of each other, in the embedded cluster.

use std::collections::BTreeMap;
use std::time::Duration;

use flott::datagen::GeneratorSource;
use flott::prelude::*;
use flott_table::prelude::*;
use serde::{Deserialize, Serialize};

fn environment(parallelism: u32) -> (StreamExecutionEnvironment, StreamTableEnvironment) {
    let env = StreamExecutionEnvironment::new();
    env.set_parallelism(parallelism);
    let tables = StreamTableEnvironment::create(&env);
    (env, tables)
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum Status {
    Open,
    Paid,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Address {
    city: String,
    zip: Option<u32>,
}

/// A type with all that serde gives.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Order {
    order_id: u64,
    is_gift: bool,
    small: i8,
    ratio: f32,
    note: Option<String>,
    status: Status,
    address: Address,
    tags: Vec<String>,
    prices: BTreeMap<String, i64>,
}

fn order(order_id: u64) -> Order {
    Order {
        order_id,
        is_gift: order_id.is_multiple_of(2),
        small: -(order_id as i8),
        ratio: order_id as f32 / 4.0,
        note: (order_id > 1).then(|| format!("grüße {order_id}")),
        status: if order_id > 1 { Status::Paid } else { Status::Open },
        address: Address { city: "Łódź".to_owned(), zip: (order_id > 2).then_some(4_000_000_000) },
        tags: (0..order_id).map(|tag| tag.to_string()).collect(),
        prices: [("net".to_owned(), order_id as i64 * 100)].into(),
    }
}

#[test]
fn values_come_back_as_they_went() {
    let (env, tables) = environment(2);
    let orders: Vec<Order> = (1..=3).map(order).collect();
    let table = tables.from_data_stream(env.from_collection(orders.clone())).unwrap();
    let types: Vec<String> = table.columns().unwrap().into_iter().map(|(name, of)| format!("{name} {of}")).collect();
    assert_eq!(
        types,
        [
            "orderId BIGINT",
            "isGift BOOLEAN",
            "small TINYINT",
            "ratio FLOAT",
            "note STRING",
            "status STRING",
            "address ROW<`city` STRING NOT NULL, `zip` BIGINT>",
            "tags ARRAY<STRING NOT NULL>",
            "prices MAP<STRING NOT NULL, BIGINT NOT NULL>",
        ]
    );
    let back = table.filter("orderId > 1").unwrap().to_data_stream::<Order>().unwrap().collect();
    let cities = table.select("address.city, tags[1], prices['net'] + 1").unwrap();
    let cities = cities.to_data_stream::<(String, Option<String>, i64)>().unwrap().collect();
    env.execute("orders").unwrap();
    let mut back = back.take();
    back.sort_by_key(|order| order.order_id);
    assert_eq!(back, orders[1..]);
    let mut cities = cities.take();
    cities.sort();
    let expected = [101, 201, 301].map(|price| ("Łódź".to_owned(), Some("0".to_owned()), price));
    assert_eq!(cities, expected);
}

#[test]
fn event_time_goes_through_both_ways() {
    let (env, tables) = environment(2);
    let clicks = env
        .from_collection((0..1000_i64).map(|index| (index % 3, index * 10)))
        .assign_timestamps_and_watermarks(WatermarkStrategy::monotonous(|click: &(i64, i64)| click.1));
    let schema = Schema::builder()
        .column("f0", "BIGINT")
        .column_by_metadata("ts", "TIMESTAMP(3)")
        .watermark("ts", "SOURCE_WATERMARK()")
        .build();
    let clicks = tables.from_data_stream_with(clicks, &schema).unwrap();
    // The window of the DataStream API sees the time that the table had.
    let counts = clicks
        .to_data_stream::<(i64, i64)>()
        .unwrap()
        .key_by(|click| click.0)
        .window(TumblingEventTimeWindows::of(Duration::from_secs(1)))
        .aggregate_with(Count, |key, window, count| (*key, window.start, count))
        .collect();
    tables.create_temporary_view("clicks", &clicks).unwrap();
    let in_sql = tables
        .sql_query(
            "SELECT f0, window_start, COUNT(*) AS n FROM TABLE(TUMBLE(TABLE clicks, DESCRIPTOR(ts), INTERVAL '1' SECOND))
             GROUP BY f0, window_start, window_end",
        )
        .unwrap();
    let in_sql = in_sql.to_data_stream::<(i64, i64, i64)>().unwrap().collect();
    env.execute("clicks").unwrap();
    let sorted = |mut rows: Vec<(i64, i64, i64)>| {
        rows.sort();
        rows
    };
    let expected: Vec<(i64, i64, i64)> = {
        let mut counts = BTreeMap::new();
        (0..1000_i64).for_each(|index| *counts.entry((index % 3, index * 10 / 1000 * 1000)).or_insert(0) += 1);
        counts.into_iter().map(|((key, start), count)| (key, start, count)).collect()
    };
    assert_eq!(sorted(counts.take()), expected);
    assert_eq!(sorted(in_sql.take()), expected);
}

#[derive(Clone, Copy)]
struct Count;

impl flott::AggregateFunction<(i64, i64)> for Count {
    type Accumulator = i64;
    type Output = i64;

    fn create(&self) -> i64 {
        0
    }

    fn add(&self, count: &mut i64, _: (i64, i64)) {
        *count += 1;
    }

    fn merge(&self, count: &mut i64, other: i64) {
        *count += other;
    }

    fn result(&self, count: &i64) -> i64 {
        *count
    }
}

/// What is left of a table after its changes.
fn folded<T: Ord + Clone>(changes: Vec<(RowKind, T)>) -> BTreeMap<T, i64> {
    let mut rows = BTreeMap::new();
    for (kind, row) in changes {
        *rows.entry(row).or_insert(0) += if kind.is_addition() { 1 } else { -1 };
    }
    rows.retain(|_, count| *count != 0);
    rows
}

#[test]
fn changes_go_through_both_ways() {
    use RowKind::{Delete, Insert, UpdateAfter, UpdateBefore};
    let changes = [
        (Insert, ("ada", 1_i64)),
        (Insert, ("bob", 2)),
        (UpdateBefore, ("ada", 1)),
        (UpdateAfter, ("ada", 5)),
        (Insert, ("cyd", 7)),
        (Delete, ("bob", 2)),
    ]
    .map(|(kind, (name, n))| (kind, (name.to_owned(), n)));
    for parallelism in [1, 3] {
        let (env, tables) = environment(parallelism);
        let table =
            tables.from_changelog_stream(env.from_collection(changes.clone())).unwrap().alias(&["name", "n"]).unwrap();
        let all = table.to_changelog_stream::<(String, i64)>().unwrap().collect();
        let total = table.select("SUM(n) AS total, COUNT(*) AS rows_").unwrap();
        let total = total.to_changelog_stream::<(i64, i64)>().unwrap().collect();
        env.execute("changes").unwrap();
        assert_eq!(folded(all.take()), [(("ada".to_owned(), 5), 1), (("cyd".to_owned(), 7), 1)].into());
        assert_eq!(folded(total.take()), [((12, 2), 1)].into());
    }
}

#[test]
fn upserts_are_completed_by_their_key() {
    let (env, tables) = environment(1);
    let changes =
        [(RowKind::Insert, ("ada", 1_i64)), (RowKind::UpdateAfter, ("ada", 5)), (RowKind::Insert, ("bob", 2))]
            .map(|(kind, (name, n))| (kind, (name.to_owned(), n)));
    let schema = Schema::builder().primary_key(&["f0"]).build();
    let stream = env.from_collection(changes);
    let table = tables.from_changelog_stream_with(stream.clone(), &schema, ChangelogMode::Upsert).unwrap();
    let sums = table.select("SUM(f1)").unwrap().to_changelog_stream::<i64>().unwrap().collect();
    let error = tables.from_changelog_stream_with(stream, &Schema::default(), ChangelogMode::Upsert).unwrap_err();
    assert!(error.to_string().contains("primary key"), "{error}");
    env.execute("upserts").unwrap();
    assert_eq!(folded(sums.take()), [(7, 1)].into());
}

#[test]
fn a_statement_that_reads_a_stream_runs_its_program() {
    let folder = tempfile::tempdir().unwrap();
    let (env, tables) = environment(2);
    let numbers = tables.from_data_stream(env.from_generator(GeneratorSource::new(|n| n as i64).count(100))).unwrap();
    tables
        .execute_sql(&format!(
            "CREATE TABLE files (n BIGINT) WITH ('connector' = 'filesystem', 'path' = '{}', 'format' = 'csv')",
            folder.path().display()
        ))
        .unwrap();
    let result = numbers.filter("MOD(f0, 10) = 0").unwrap().execute_insert("files").unwrap();
    assert!(result.job().is_some());
    let lines: usize = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap().lines().count())
        .sum();
    assert_eq!(lines, 10);
    // Its records are gone with the program.
    let error = numbers.execute().and_then(|result| result.collect::<i64>()).unwrap_err();
    assert!(error.to_string().contains("executed already"), "{error}");
    // What reads no stream runs as often as it is wanted.
    let known = tables.sql_query("SELECT 1 + 1").unwrap();
    assert_eq!(known.execute().unwrap().collect::<i32>().unwrap(), [2]);
    assert_eq!(known.execute().unwrap().collect::<i32>().unwrap(), [2]);
}

#[test]
fn mistakes_name_the_column_and_the_way_out() {
    let (env, tables) = environment(1);
    let orders = tables.from_data_stream(env.from_collection([order(1)])).unwrap();

    #[derive(Clone, Debug, Serialize, Deserialize)]
    struct Other {
        #[serde(rename = "orderIds")]
        _order_ids: i64,
    }
    let error = orders.to_data_stream::<Other>().err().unwrap().to_string();
    assert!(error.contains("'orderIds'") && error.contains("did you mean 'orderId'"), "{error}");
    let error = orders.select("note").unwrap().to_data_stream::<i64>().err().unwrap().to_string();
    assert!(error.contains("STRING") && error.contains("BIGINT") && error.contains("CAST"), "{error}");
    let error = orders.select("orderId, small").unwrap().to_data_stream::<i64>().err().unwrap().to_string();
    assert!(error.contains("(orderId, small)"), "{error}");
    let error = orders.select("COUNT(*)").unwrap().to_data_stream::<i64>().err().unwrap().to_string();
    assert!(error.contains("to_changelog_stream"), "{error}");
    let error = orders.select("oderId").err().unwrap().to_string();
    assert!(error.contains("oderId") && error.contains("orderId"), "{error}");
    let error = tables.from("orders").err().unwrap().to_string();
    assert!(error.contains("'orders'"), "{error}");
    let error = tables.execute_sql("SELECT 1; SELECT 2").err().unwrap().to_string();
    assert!(error.contains("2 statements"), "{error}");

    let time = Schema::builder().column_by_metadata("ts", "TIMESTAMP(3)").watermark("ts", "SOURCE_WATERMARK()").build();
    let timeless = tables.from_data_stream_with(env.from_collection([1_i64]), &time).unwrap();
    let stream = timeless.to_data_stream::<(i64, i64)>().unwrap();
    drop(stream.collect());
    env.set("restart-strategy.type", "none");
    let error = env.execute("timeless").unwrap_err().to_string();
    assert!(error.contains("assign_timestamps_and_watermarks"), "{error}");

    let other = StreamExecutionEnvironment::new();
    let error = tables.from_data_stream(other.from_collection([1_i64])).unwrap_err().to_string();
    assert!(error.contains("another environment"), "{error}");
}

#[test]
fn the_environment_of_streams_has_sql_itself() {
    let env = StreamExecutionEnvironment::new();
    env.set_parallelism(2);
    let orders = env.from_collection([("ada".to_owned(), 3_i64), ("bob".to_owned(), 1), ("ada".to_owned(), 4)]);
    let orders = env.from_data_stream(orders).unwrap();
    env.tables().create_temporary_view("orders", &orders).unwrap();
    // A clone has the same tables.
    let large = env.clone().sql("SELECT f0, f1 FROM orders WHERE f1 > 1").unwrap().select("f0, f1 * 10").unwrap();
    let large = large.to_data_stream::<(String, i64)>().unwrap().collect();
    let counts = env.sql("SELECT f0, COUNT(*) FROM orders GROUP BY f0").unwrap();
    let counts = counts.to_changelog_stream::<(String, i64)>().unwrap().collect();
    env.execute("orders").unwrap();
    let mut large = large.take();
    large.sort();
    assert_eq!(large, [("ada".to_owned(), 30), ("ada".to_owned(), 40)]);
    let counts = counts.take().into_iter().filter(|(kind, _)| kind.is_addition()).map(|(_, count)| count);
    assert_eq!(counts.collect::<BTreeMap<_, _>>(), [("ada".to_owned(), 2), ("bob".to_owned(), 1)].into());

    // What is no stream is there for the next program too; tables that are created are others.
    env.execute_sql("CREATE TEMPORARY VIEW numbers AS SELECT * FROM (VALUES (1), (2)) AS t (n)").unwrap();
    let numbers = env.sql("SELECT n FROM numbers WHERE n > 1").unwrap().to_data_stream::<i32>().unwrap().collect();
    env.execute("numbers").unwrap();
    assert_eq!(numbers.take(), [2]);
    let error = StreamTableEnvironment::create(&env).from("numbers").unwrap_err().to_string();
    assert!(error.contains("'numbers'"), "{error}");
}

#[test]
fn a_null_in_a_field_that_has_none_fails_the_job() {
    let (env, tables) = environment(1);
    env.set("restart-strategy.type", "none");
    let orders = tables.from_data_stream(env.from_collection([order(1)])).unwrap();
    drop(orders.select("note").unwrap().to_data_stream::<String>().unwrap().collect());
    let error = env.execute("nulls").unwrap_err().to_string();
    assert!(error.contains("Option"), "{error}");
}

#[test]
fn source_watermarks_are_for_streams_that_have_them() {
    let (_, tables) = environment(1);
    tables
        .execute_sql(
            "CREATE TABLE made (ts TIMESTAMP(3), WATERMARK FOR ts AS SOURCE_WATERMARK()) WITH ('connector' = 'datagen')",
        )
        .unwrap();
    let error = tables.execute_sql("SELECT * FROM made").err().unwrap().to_string();
    assert!(error.contains("SOURCE_WATERMARK()") && error.contains("sends none"), "{error}");
}
