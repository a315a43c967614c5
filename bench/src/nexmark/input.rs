//! Files of events, made once, that both sides read.

use std::fs::{self, File};
use std::hint::black_box;
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::{AsArray, RecordBatch, StructArray};
use flott_chunk::Chunk;
use flott_core::{Error, Result, ResultExt};
use flott_datagen::MakeRows;
use flott_formats::Encoder;
use flott_nexmark::{NexmarkConfig, NexmarkTable, wide_schema};
use flott_tables::json::{JsonEncoder, JsonOptions};

use crate::harness::{cache, timed};

/// How many events are made at a time.
const BATCH: u64 = 10_000;

/// How many the connector makes at a time.
const CHUNK: usize = 4096;

/// When the first event is: files are the same whenever they are made.
const BASE_TIME_MS: i64 = 1_704_067_200_000;

/// Keys of the side input.
const SIDE_KEYS: u32 = 10_000;

/// The name of the folder has it: other files for another form or other events.
const VERSION: u32 = 1;

/// A folder with the files of so many events, all of which have been read, so that no side waits for the disk.
pub(super) fn folder(events: u64) -> Result<PathBuf> {
    let folder = cache()?.join(format!("nexmark-{VERSION}-{events}"));
    if !folder.is_dir() {
        eprintln!("making {events} events in {}", folder.display());
        let partial = folder.with_extension(format!("partial-{}", std::process::id()));
        fs::create_dir_all(&partial).with_context(|| partial.display().to_string())?;
        write(&partial, events)?;
        fs::rename(&partial, &folder).with_context(|| folder.display().to_string())?;
    }
    for entry in fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
        std::io::copy(&mut File::open(entry?.path())?, &mut std::io::sink())?;
    }
    Ok(folder)
}

/// How many million events a second our generator makes on one core, for nobody.
pub(super) fn generator_rate(events: u64) -> Result<f64> {
    let table = NexmarkTable::new("events", &Arc::new(wide_schema()), &NexmarkConfig::default())?;
    let numbers: Vec<u64> = (0..events).collect();
    let (seconds, made) = timed(|| {
        numbers
            .chunks(CHUNK)
            .try_for_each(|numbers| table.make(BASE_TIME_MS, numbers).map(|chunk| drop(black_box(chunk))))
    });
    made.map(|()| events as f64 / seconds / 1e6)
}

fn write(folder: &std::path::Path, events: u64) -> Result<()> {
    let failed = |error| Error::system(format!("making events: {error}"));
    let config = NexmarkConfig { base_time_ms: Some(BASE_TIME_MS), ..NexmarkConfig::default() };
    let schema = Arc::new(wide_schema());
    let table = NexmarkTable::new("events", &schema, &config)?;
    let create = |name: &str| File::create(folder.join(name)).map(BufWriter::new);
    let mut files = [create("person.json")?, create("auction.json")?, create("bid.json")?];
    let mut encoder = JsonEncoder::new(JsonOptions::default());
    let mut out = Vec::new();
    for start in (0..events).step_by(BATCH as usize) {
        let numbers: Vec<u64> = (start..events.min(start + BATCH)).collect();
        let chunk = table.make(BASE_TIME_MS, &numbers)?;
        for (index, file) in files.iter_mut().enumerate() {
            let rows = chunk.column(index + 1);
            let is_there = arrow::compute::is_not_null(rows).map_err(failed)?;
            let rows = arrow::compute::filter(rows, &is_there).map_err(failed)?;
            let rows: &StructArray = rows.as_struct();
            out.clear();
            encoder.encode(&[Chunk::inserts(RecordBatch::from(rows))], true, &mut out)?;
            file.write_all(&out)?;
        }
    }
    files.iter_mut().try_for_each(Write::flush)?;
    let mut side = create("side_input.csv")?;
    (0..SIDE_KEYS).try_for_each(|key| writeln!(side, "{key},{key}"))?;
    side.flush()?;
    Ok(())
}
