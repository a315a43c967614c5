//! Orders of a shop, made in Rust and summed up in SQL, with functions of its own: what each hour brought, by tag and size.

use std::process::ExitCode;
use std::time::Duration;

use flott::Result;
use flott::datagen::GeneratorSource;
use flott::prelude::*;
use flott::time::Timestamp;
use flott_table::functions::{AggregateFunction, aggregate, scalar, table};
use flott_table::prelude::*;
use serde::{Deserialize, Serialize};

/// 2024-01-01T00:00:00Z.
const START_MS: Timestamp = 1_704_067_200_000;

/// Event time between two orders.
const ORDER_EVERY_MS: Timestamp = 500;

/// An order is up to so much behind its place in time. Watermarks allow for more than that, so none is late.
const DISORDER_MS_MAX: Timestamp = 4_999;
const OUT_OF_ORDERNESS: Duration = Duration::from_secs(5);

const TAGS: [&str; 5] = ["books", "garden", "music", "tools", "toys"];

#[derive(clap::Args)]
struct Arguments {
    /// How many orders there are
    #[arg(long, value_name = "N", default_value_t = 50_000)]
    orders: u64,

    /// Another seed gives other orders
    #[arg(long, value_name = "N", default_value_t = 42)]
    seed: u64,

    /// The folder for lines of `hour,tag,size,orders,mean`
    #[arg(long, value_name = "DIR")]
    output: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Order {
    time: Timestamp,
    /// The price of a piece.
    cents: i64,
    pieces: i64,
    /// Tags with spaces between.
    tags: String,
}

fn main() -> ExitCode {
    flott::run(build)
}

fn build(env: &StreamExecutionEnvironment, arguments: Arguments) -> Result<()> {
    let Arguments { orders, seed, output } = arguments;
    let strategy = WatermarkStrategy::bounded_out_of_orderness(OUT_OF_ORDERNESS, |order: &Order| order.time);
    let stream = env
        .from_generator(GeneratorSource::new(move |index| order(index, seed)).count(orders))
        .name("Orders")
        .uid("orders")
        .assign_timestamps_and_watermarks(strategy)
        .uid("event time");

    let tables = StreamTableEnvironment::create(env);
    tables.create_temporary_system_function("size_of", scalar(size_of))?;
    tables.create_temporary_system_function("words", table(words))?;
    tables.create_temporary_system_function("mean_price", aggregate(MeanPrice))?;
    let schema =
        Schema::builder().column_by_metadata("ts", "TIMESTAMP(3)").watermark("ts", "SOURCE_WATERMARK()").build();
    tables.create_temporary_view("orders", &tables.from_data_stream_with(stream, &schema)?)?;
    tables.execute_sql(&format!(
        "CREATE TABLE hours (`hour` STRING, tag STRING, size STRING, orders BIGINT, mean BIGINT)
         WITH ('connector' = 'filesystem', 'path' = '{}', 'format' = 'csv')",
        output.replace('\'', "''")
    ))?;
    tables.set("pipeline.name", "orders-sql")?;
    tables.execute_sql(&format!(
        "INSERT INTO hours
         SELECT DATE_FORMAT(window_start, 'yyyy-MM-dd HH:mm'), tag, size, COUNT(*), mean_price(cents, pieces)
         FROM TABLE(TUMBLE(TABLE {}, DESCRIPTOR(ts), INTERVAL '1' HOUR))
         GROUP BY window_start, window_end, tag, size",
        tagged(&tables)?
    ))?;
    Ok(())
}

/// Each order once for each of its tags, by calls of the Table API.
fn tagged(tables: &StreamTableEnvironment) -> Result<Table> {
    tables
        .from("orders")?
        .filter("pieces > 0")?
        .join_lateral("words(tags) AS w (tag)")?
        .select("ts, tag, size_of(cents * pieces) AS size, cents, pieces")
}

/// How large an order is.
fn size_of(cents: i64) -> String {
    if cents < 10_000 { "small" } else { "large" }.to_owned()
}

/// The words of a text.
fn words(text: String) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}

/// The mean price of a piece, in whole cents.
struct MeanPrice;

impl AggregateFunction for MeanPrice {
    type Input = (i64, i64);
    /// Cents and pieces.
    type Accumulator = (i64, i64);
    type Output = Option<i64>;

    const MERGES: bool = true;

    fn create_accumulator(&self) -> (i64, i64) {
        (0, 0)
    }

    fn accumulate(&self, sum: &mut (i64, i64), (cents, pieces): (i64, i64)) {
        sum.0 += cents * pieces;
        sum.1 += pieces;
    }

    fn merge(&self, sum: &mut (i64, i64), later: (i64, i64)) {
        sum.0 += later.0;
        sum.1 += later.1;
    }

    fn get_value(&self, sum: &(i64, i64)) -> Option<i64> {
        sum.0.checked_div(sum.1)
    }
}

/// Order number `index`: the same whenever and wherever it is made.
fn order(index: u64, seed: u64) -> Order {
    let random = split_mix(seed.wrapping_add(index.wrapping_mul(0x9E37_79B9_7F4A_7C15)));
    let place = START_MS.saturating_add((index as i64).saturating_mul(ORDER_EVERY_MS));
    let tag = |shift: u32| TAGS[(random >> shift) as usize % TAGS.len()];
    let (first, second) = (tag(8), tag(24));
    Order {
        time: place - (random >> 40) as i64 % (DISORDER_MS_MAX + 1),
        cents: 100 + (random >> 16) as i64 % 9_900,
        pieces: (random % 5) as i64,
        tags: if first == second { first.to_owned() } else { format!("{first} {second}") },
    }
}

/// The output function of SplitMix64.
fn split_mix(state: u64) -> u64 {
    let mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}
