use arrow::array::{Array, AsArray};
use arrow::datatypes::{Int32Type, Int64Type, TimestampMillisecondType};
use flott_connector_spi::conformance::check_source;
use flott_tables::options::Options;

use super::*;

fn schema() -> SchemaRef {
    Arc::new(wide_schema())
}

fn table(config: &NexmarkConfig) -> NexmarkTable {
    NexmarkTable::new("events", &schema(), config).unwrap()
}

fn events(config: &NexmarkConfig, count: u64) -> Chunk {
    table(config).make(0, &(0..count).collect::<Vec<_>>()).unwrap()
}

/// A field of a row, of the events that have it.
fn field(chunk: &Chunk, row: &str, name: &str) -> ArrayRef {
    let row = chunk.batch.column_by_name(row).unwrap().as_struct();
    let field = row.column_by_name(name).unwrap();
    assert_eq!(row.logical_nulls(), field.logical_nulls(), "a field is null where its row is");
    arrow::compute::filter(field, &arrow::compute::is_not_null(field).unwrap()).unwrap()
}

fn numbers(chunk: &Chunk, row: &str, name: &str) -> Vec<i64> {
    field(chunk, row, name).as_primitive::<Int64Type>().values().to_vec()
}

fn times(chunk: &Chunk, row: &str, name: &str) -> Vec<i64> {
    field(chunk, row, name).as_primitive::<TimestampMillisecondType>().values().to_vec()
}

fn bytes_mean(chunk: &Chunk, row: &str, name: &str) -> f64 {
    let texts = field(chunk, row, name);
    let texts = texts.as_string::<i32>();
    texts.iter().flatten().map(str::len).sum::<usize>() as f64 / texts.len() as f64
}

fn part<T>(values: &[T], of: impl Fn(&T) -> bool) -> f64 {
    values.iter().filter(|value| of(value)).count() as f64 / values.len() as f64
}

#[track_caller]
fn assert_near(value: f64, expected: f64, tolerance: f64) {
    assert!((value - expected).abs() <= tolerance, "{value} instead of {expected}");
}

#[test]
fn rows_are_those_of_their_kind() {
    let chunk = events(&NexmarkConfig::default(), 500);
    let types = chunk.column(0).as_primitive::<Int32Type>().values().to_vec();
    for (kind, count) in [(0, 10), (1, 30), (2, 460)] {
        assert_eq!(types.iter().filter(|of| **of == kind).count(), count);
        let row = chunk.column(kind as usize + 1);
        assert!((0..500).all(|index| row.is_valid(index) == (types[index] == kind)));
    }
    assert_eq!(numbers(&chunk, "person", "id"), (1000..1010).collect::<Vec<_>>());
    assert_eq!(numbers(&chunk, "auction", "id"), (1000..1030).collect::<Vec<_>>());
}

#[test]
fn distributions_are_those_of_the_reference() {
    let chunk = events(&NexmarkConfig::default(), 100_000);
    // Half of the bids are on the hot auction, and those of the other half that hit it by chance.
    let auctions = numbers(&chunk, "bid", "auction");
    let hot = |auction: &i64| auction % 100 == 0;
    assert_near(part(&auctions, hot), 0.5 + 0.5 * 0.01, 0.01);
    let bidders = numbers(&chunk, "bid", "bidder");
    assert_near(part(&bidders, |bidder| bidder % 100 == 1), 0.75 + 0.25 * 0.01, 0.01);
    let sellers = numbers(&chunk, "auction", "seller");
    assert_near(part(&sellers, |seller| seller % 100 == 0), 0.75 + 0.25 * 0.01, 0.02);
    // Ids are of those that there are, or will be soon.
    assert!(auctions.iter().all(|id| (1000..7010).contains(id)) && bidders.iter().all(|id| (1000..3010).contains(id)));
    let prices = numbers(&chunk, "bid", "price");
    assert!(prices.iter().all(|price| (100..=100_000_000).contains(price)));
    for power in 1..6 {
        let limit = 100 * 10_i64.pow(power);
        assert_near(part(&prices, |price| *price < limit), f64::from(power) / 6.0, 0.01);
    }
    let channels = field(&chunk, "bid", "channel");
    let channels: Vec<&str> = channels.as_string::<i32>().iter().flatten().collect();
    assert_near(part(&channels, |channel| *channel == "Apple"), 0.125, 0.01);
    assert_near(part(&channels, |channel| channel.starts_with("channel-")), 0.5, 0.01);
    let categories = numbers(&chunk, "auction", "category");
    (10..15).for_each(|category| assert_near(part(&categories, |other| *other == category), 0.2, 0.02));
    assert_near(bytes_mean(&chunk, "bid", "extra"), 68.0, 1.0);
    assert_near(bytes_mean(&chunk, "auction", "itemName"), 11.0, 0.5);
    assert_near(bytes_mean(&chunk, "auction", "extra"), 391.0, 5.0);
    assert_near(bytes_mean(&chunk, "person", "extra"), 138.0, 2.0);
    let reserves = numbers(&chunk, "auction", "reserve");
    let first = numbers(&chunk, "auction", "initialBid");
    assert!(reserves.iter().zip(&first).all(|(reserve, first)| reserve > first));
    // An auction is open for 1666 events on average: 167 ms at 10,000 events a second.
    let opened = times(&chunk, "auction", "dateTime");
    let open_ms: Vec<i64> =
        times(&chunk, "auction", "expires").iter().zip(&opened).map(|(end, start)| end - start).collect();
    assert!(open_ms.iter().all(|ms| (1..=334).contains(ms)));
    assert_near(open_ms.iter().sum::<i64>() as f64 / open_ms.len() as f64, 167.0, 4.0);
    assert!(times(&chunk, "bid", "dateTime").is_sorted());
}

#[test]
fn an_event_is_the_same_however_it_is_made() {
    let config = NexmarkConfig { bid_proportion: 4, ..NexmarkConfig::default() };
    let all = events(&config, 300);
    let some: Vec<u64> = (0..300).filter(|number| number % 7 < 3).collect();
    let rows: Vec<u32> = some.iter().map(|number| *number as u32).collect();
    assert_eq!(table(&config).make(0, &some).unwrap().batch, all.take(&rows).unwrap().batch);

    let bid = Field::new("bid", DataType::Struct(vec![Field::new("url", DataType::Utf8, true)].into()), true);
    let narrow = NexmarkTable::new("events", &Arc::new(Schema::new(vec![bid])), &config).unwrap();
    let narrow = narrow.make(0, &some).unwrap();
    assert_eq!(*field(&narrow, "bid", "url"), *field(&all.take(&rows).unwrap(), "bid", "url"));

    let other = events(&NexmarkConfig { seed: 1, ..config }, 300);
    assert_ne!(numbers(&other, "bid", "price"), numbers(&all, "bid", "price"));
}

#[test]
fn events_survive_restarts_and_rescaling() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
    let config =
        NexmarkConfig { events: Some(23), bid_proportion: 1, base_time_ms: Some(0), ..NexmarkConfig::default() };
    let all = events(&config, 23);
    let expected: Vec<Chunk> = (0..23).map(|row| all.take(&[row]).unwrap()).collect();
    check_source(&config.source(table(&config)).rows_each(1), runtime.handle(), &expected);
}

#[test]
fn options_are_those_of_the_reference() {
    let read = |options: &[(&str, &str)]| NexmarkConfig::read(&Options::new("t", options.iter().copied()));
    let flink = read(&[("first-event.rate", "100"), ("next-event.rate", "100"), ("events.num", "0"), ("stop-at", "7")]);
    assert_eq!(flink.unwrap(), NexmarkConfig { rate: 100, events: Some(7), ..NexmarkConfig::default() });
    let sizes =
        read(&[("bid.avg-size", "1kb"), ("base-time", "1970-01-01 00:00:01"), ("max-emit-speed", "false")]).unwrap();
    assert_eq!((sizes.bid_bytes, sizes.base_time_ms, sizes.is_rate_limited), (1024, Some(1000), true));
    for (key, value, message) in [
        ("first-event.rate", "0", "should be a number of at least 1"),
        ("next-event.rate", "5", "a rate that changes is not there"),
        ("keep-alive", "true", "is not there"),
        ("person.proportion", "0", "at least 1"),
        ("bid.avg-size", "1gb", "a size of up to 64 kb"),
        ("rate.shape", "ROUND", "one of SQUARE, SINE"),
    ] {
        let error = read(&[(key, value)]).unwrap_err().to_string();
        assert!(error.contains(key) && error.contains(message), "{error}");
    }
}

#[test]
fn other_columns_are_refused() {
    let refuse = |field: Field| {
        let schema = Arc::new(Schema::new(vec![field]));
        NexmarkTable::new("t", &schema, &NexmarkConfig::default()).err().unwrap().to_string()
    };
    let person = |field| Field::new("person", DataType::Struct(vec![field].into()), true);
    let message = refuse(Field::new("event", DataType::Int32, true));
    assert!(message.contains("no column 'event'; it has event_type"), "{message}");
    let message = refuse(person(Field::new("age", DataType::Int64, true)));
    assert!(message.contains("no field 'age'; it has id, name"), "{message}");
    let message = refuse(person(Field::new("id", DataType::Utf8, true)));
    assert!(message.contains("'person.id'") && message.contains("BIGINT"), "{message}");
}
