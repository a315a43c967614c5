//! The job of the benchmarks about state that moves: numbers that fill a state of a given size and then go on changing
//! one key in a hundred of it, and a note of when each key group had output.
//!
//! The notes bypass all sinks, since a sink would hold records back until a checkpoint. Each subtask appends lines
//! `TIME GROUP RECORDS`, one a millisecond and key group, to a file of its own; the file's name begins with the ids of
//! the TaskManager's process and of its own.

use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU32, Ordering};

use flott::datagen::GeneratorSource;
use flott::prelude::*;
use flott::{Batch, Error, ResultExt};
use flott_core::hash::stable_hash;
use flott_core::key_group::{KeyGroup, group_of};
use serde::{Deserialize, Serialize};

const MAX_PARALLELISM: u32 = 128;

/// How many keys a number fills as long as there are new ones: a paced source fills the state quickly, too.
const KEYS_PER_NUMBER: u64 = 20;

/// One key in so many changes afterwards.
const UNCHANGED: u64 = 100;

/// How long notes may stay in memory, where a kill loses them.
const NOTES_KEPT_MS: i64 = 5;

#[derive(clap::Args)]
struct Arguments {
    /// How many keys the state has
    #[arg(long)]
    keys: u64,

    /// How many bytes each of them has
    #[arg(long)]
    bytes: usize,

    /// How many numbers come in a second; as many as can if not given
    #[arg(long)]
    rows_per_second: Option<f64>,

    /// The parallelism
    #[arg(long)]
    subtasks: u32,

    /// How often a checkpoint is taken; never if not given
    #[arg(long)]
    checkpoint_interval: Option<String>,

    /// The folder that notes go to
    #[arg(long)]
    outputs: PathBuf,
}

fn main() -> ExitCode {
    flott::run(|env: &StreamExecutionEnvironment, arguments: Arguments| {
        let Arguments { keys, bytes, rows_per_second, subtasks, checkpoint_interval, outputs } = arguments;
        env.set_parallelism(subtasks).set_max_parallelism(MAX_PARALLELISM);
        if let Some(interval) = &checkpoint_interval {
            env.set("execution.checkpointing.interval", interval);
        }
        let mut source = GeneratorSource::new(|number: u64| number);
        if let Some(rows) = rows_per_second {
            source = source.rows_per_second(rows);
        }
        let mut outputs = Outputs::new(outputs);
        env.from_generator(source)
            .uid("numbers")
            .flat_map(move |number: u64, out: &mut Vec<u64>| {
                let first = number.saturating_mul(KEYS_PER_NUMBER);
                if first < keys {
                    out.extend(first..keys.min(first + KEYS_PER_NUMBER));
                } else {
                    // No order that a cache could like: the golden ratio's digits.
                    out.push((number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20) % keys.div_ceil(UNCHANGED));
                }
            })
            .key_by(|key: &u64| *key)
            .process(Accounts { bytes, state: None })
            .uid("accounts")
            .for_each_batch(move |batch: &mut Batch<KeyGroup>| {
                if let Err(error) = outputs.add(flott_env::now_ms(), &batch.rows) {
                    panic!("{error}");
                }
            });
        env.execute("state").map(drop)
    })
}

/// What is known of a key.
#[derive(Clone, Serialize, Deserialize)]
struct Account {
    count: u64,
    note: String,
}

/// Counts the records of each key, and says which key group had one.
#[derive(Clone)]
struct Accounts {
    bytes: usize,
    state: Option<ValueState<Account>>,
}

impl KeyedProcessFunction<u64, u64, KeyGroup> for Accounts {
    fn open(&mut self, states: &mut KeyedStates<u64>) -> flott::Result<()> {
        self.state = Some(states.value("account")?);
        Ok(())
    }

    fn process(
        &mut self,
        key: u64,
        cx: &mut KeyedContext<'_, u64>,
        out: &mut Collector<'_, KeyGroup>,
    ) -> flott::Result<()> {
        let state = self.state.as_ref().ok_or_else(|| Error::system("it was not opened"))?;
        let account = state.update(cx, || Account { count: 0, note: note(key, self.bytes) });
        account.count += 1;
        out.collect(group_of(stable_hash(&key), MAX_PARALLELISM));
        Ok(())
    }
}

/// So many letters, different for each key and without an order that a compression could find.
fn note(key: u64, bytes: usize) -> String {
    let mut state = stable_hash(&key);
    let letters = (0..bytes).map(|_| {
        state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
        char::from(b'@' + (state >> 59) as u8)
    });
    letters.collect()
}

/// When each key group had output. A clone has a file of its own.
struct Outputs {
    folder: PathBuf,
    /// The millisecond that is being counted, and the records of each key group in it.
    now_ms: i64,
    records: Vec<u32>,
    /// Lines of earlier milliseconds, the first of them this one.
    lines: String,
    lines_since_ms: i64,
    file: Option<File>,
}

impl Outputs {
    fn new(folder: PathBuf) -> Self {
        let records = vec![0; MAX_PARALLELISM as usize];
        Self { folder, now_ms: 0, records, lines: String::new(), lines_since_ms: 0, file: None }
    }

    /// Counts records of these key groups.
    fn add(&mut self, now_ms: i64, groups: &[KeyGroup]) -> flott::Result<()> {
        if now_ms != self.now_ms {
            self.end_millisecond();
            self.now_ms = now_ms;
            if now_ms - self.lines_since_ms >= NOTES_KEPT_MS {
                self.write()?;
                self.lines_since_ms = now_ms;
            }
        }
        for group in groups {
            self.records[usize::from(*group)] += 1;
        }
        Ok(())
    }

    fn end_millisecond(&mut self) {
        for (group, records) in self.records.iter_mut().enumerate().filter(|(_, records)| **records > 0) {
            // Writing to a string cannot fail.
            let _ = writeln!(self.lines, "{} {group} {records}", self.now_ms);
            *records = 0;
        }
    }

    fn write(&mut self) -> flott::Result<()> {
        if self.lines.is_empty() {
            return Ok(());
        }
        let mut file = self.file.take().map_or_else(|| create(&self.folder), Ok)?;
        file.write_all(self.lines.as_bytes()).context("noting when there was output")?;
        self.file = Some(file);
        self.lines.clear();
        Ok(())
    }
}

fn create(folder: &Path) -> flott::Result<File> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let path = folder.join(format!("{}-{}-{number}", std::os::unix::process::parent_id(), std::process::id()));
    OpenOptions::new().append(true).create_new(true).open(&path).with_context(|| path.display().to_string())
}

impl Clone for Outputs {
    fn clone(&self) -> Self {
        Self::new(self.folder.clone())
    }
}

impl Drop for Outputs {
    fn drop(&mut self) {
        self.end_millisecond();
        // Who reads the notes sees that the last ones are missing as a gap, which is the safe side.
        let _ = self.write();
    }
}
