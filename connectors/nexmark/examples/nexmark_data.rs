//! Writes events as JSON lines, or makes them and nothing else to see how fast that is.
//!
//! `cargo run --release -p flott-nexmark --example nexmark_data -- 10000000` prints events a second;
//! `… -- 2000 FOLDER key=value…` writes person.json, auction.json and bid.json, with options of the table.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;

use arrow::array::{AsArray, RecordBatch, StructArray};
use flott_chunk::Chunk;
use flott_datagen::MakeRows;
use flott_formats::Encoder;
use flott_nexmark::{NexmarkConfig, NexmarkTable, wide_schema};
use flott_tables::json::{JsonEncoder, JsonOptions};
use flott_tables::options::Options;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let count: u64 = args.next().ok_or("how many events?")?.parse()?;
    let folder = args.next();
    let options: BTreeMap<String, String> =
        args.filter_map(|arg| arg.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned()))).collect();
    let options = Options::new("events", options);
    let config = NexmarkConfig::read(&options)?;
    options.finish()?;
    let table = NexmarkTable::new("events", &Arc::new(wide_schema()), &config)?;
    let numbers: Vec<u64> = (0..count).collect();
    let Some(folder) = folder else {
        let (start, mut bytes) = (flott_env::monotonic(), 0);
        for numbers in numbers.chunks(4096) {
            bytes += table.make(0, numbers)?.bytes();
        }
        let seconds = (flott_env::monotonic() - start).as_secs_f64();
        println!("{:.2} million events/s, {} bytes each", count as f64 / seconds / 1e6, bytes / count.max(1));
        return Ok(());
    };
    let chunk = table.make(config.base_time_ms.unwrap_or(0), &numbers)?;
    for (index, name) in [(1, "person"), (2, "auction"), (3, "bid")] {
        let rows = chunk.column(index);
        let rows = arrow::compute::filter(rows, &arrow::compute::is_not_null(rows)?)?;
        let rows: &StructArray = rows.as_struct();
        let mut out = Vec::new();
        JsonEncoder::new(JsonOptions::default()).encode(&[Chunk::inserts(RecordBatch::from(rows))], true, &mut out)?;
        std::fs::write(format!("{folder}/{name}.json"), out)?;
    }
    Ok(())
}
