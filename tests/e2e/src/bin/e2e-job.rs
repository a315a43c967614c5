//! The jobs of the end-to-end tests that no example needs: numbers that can be counted, and everything that goes wrong.

use std::fs;
use std::process::ExitCode;
use std::time::Duration;

use flott::datagen::GeneratorSource;
use flott::filesystem::FileSource;
use flott::prelude::*;
use flott::{DataStreamSink, Error, OnError};
use flott_e2e::{KEYS, all_kinds, line};
use serde::{Deserialize, Serialize};

/// Which job it is.
#[derive(Clone, Copy, clap::ValueEnum)]
enum Case {
    /// Counts the numbers of each key and writes a line for each number
    Numbers,
    /// Counts the numbers of each key in one window that only the end of the input closes
    Windows,
    /// Keeps something of each number in state of every kind, and writes all of it when the input ends
    Kinds,
    /// Panics in a function, between operators that forward to each other
    Panic,
    /// Counts as `numbers`, and panics beside it
    Pair,
    /// Reads a CSV file
    Csv,
    /// Copies lines of text
    Copy,
    /// Names an operator after its process
    Nondeterministic,
}

#[derive(clap::Args)]
struct Arguments {
    /// Which job
    #[arg(long)]
    case: Case,

    /// The file, folder or URL to read
    #[arg(long, default_value = "")]
    input: String,

    /// The folder or URL to write to
    #[arg(long)]
    output: String,

    /// How many numbers there are; endless if not given
    #[arg(long)]
    count: Option<u64>,

    /// How many numbers come in a second
    #[arg(long, default_value_t = 2000.0)]
    rows_per_second: f64,

    /// The uid of the operator that counts
    #[arg(long, default_value = "count")]
    count_uid: String,

    /// How many keys the numbers are counted by
    #[arg(long, default_value_t = KEYS)]
    keys: u64,

    /// How many bytes of further state each key has
    #[arg(long, default_value_t = 0)]
    padding: usize,

    /// The number that must not come
    #[arg(long, default_value_t = 1000)]
    unlucky: u64,

    /// The file that makes one number unlucky; it is gone then
    #[arg(long)]
    trigger: Option<String>,

    /// Skips malformed records
    #[arg(long)]
    skip: bool,
}

fn main() -> ExitCode {
    flott::run(|env: &StreamExecutionEnvironment, arguments: Arguments| {
        let (name, _sink) = match arguments.case {
            Case::Numbers => ("numbers", count_numbers(env, &arguments)),
            Case::Windows => ("windows", count_in_windows(env, &arguments)),
            Case::Kinds => ("kinds", keep_all_kinds(env, &arguments)),
            Case::Panic => ("panic", explode(env, &arguments, &arguments.output)),
            Case::Pair => {
                let _lines = count_numbers(env, &arguments);
                ("pair", explode(env, &arguments, &format!("{}-beside", arguments.output)))
            }
            Case::Csv => ("csv", read_csv(env, &arguments)),
            Case::Copy => ("copy", copy(env, &arguments)),
            Case::Nondeterministic => ("nondeterministic", name_by_process(env, &arguments)),
        };
        env.execute(name).map(drop)
    })
}

/// 0, 1, 2, …
fn numbers(env: &StreamExecutionEnvironment, arguments: &Arguments, uid: &str) -> DataStream<u64> {
    let mut source = GeneratorSource::new(|number: u64| number).rows_per_second(arguments.rows_per_second);
    if let Some(count) = arguments.count {
        source = source.count(count);
    }
    env.from_generator(source).name("Numbers").uid(uid)
}

fn count_numbers(env: &StreamExecutionEnvironment, arguments: &Arguments) -> DataStreamSink {
    let keys = arguments.keys;
    numbers(env, arguments, "numbers")
        .key_by(move |number: &u64| number % keys)
        .process(Count { padding_bytes: arguments.padding, states: None })
        .name("Count")
        .uid(arguments.count_uid.clone())
        .write_text(&arguments.output)
        .uid("lines")
}

/// Writes each number with how many of its key there were.
#[derive(Clone)]
struct Count {
    padding_bytes: usize,
    /// The padding is a text, since one is copied at once in debug builds too, and bytes in a `Vec` are written one by one.
    states: Option<(ValueState<u64>, ValueState<String>)>,
}

impl KeyedProcessFunction<u64, u64, String> for Count {
    fn open(&mut self, states: &mut KeyedStates<u64>) -> flott::Result<()> {
        self.states = Some((states.value("count")?, states.value("padding")?));
        Ok(())
    }

    fn process(
        &mut self,
        number: u64,
        cx: &mut KeyedContext<'_, u64>,
        out: &mut Collector<'_, String>,
    ) -> flott::Result<()> {
        let (counter, padding) = self.states.as_ref().ok_or_else(|| Error::system("it was not opened"))?;
        let count = counter.update(cx, || 0);
        *count += 1;
        let count = *count;
        if count == 1 && self.padding_bytes > 0 {
            padding.set(cx, "7".repeat(self.padding_bytes));
        }
        out.collect(line(number, count));
        Ok(())
    }
}

fn count_in_windows(env: &StreamExecutionEnvironment, arguments: &Arguments) -> DataStreamSink {
    numbers(env, arguments, "numbers")
        .assign_timestamps_and_watermarks(WatermarkStrategy::monotonous(|number: &u64| *number as i64))
        .uid("time")
        .key_by(|number: &u64| number % KEYS)
        .window(TumblingEventTimeWindows::of(Duration::from_secs(1_000_000_000)))
        .aggregate_with(Counted, |key, _, count| format!("{key},{count}"))
        .name("Count")
        .uid(arguments.count_uid.clone())
        .write_text(&arguments.output)
        .uid("lines")
}

/// How many there were.
#[derive(Clone)]
struct Counted;

impl AggregateFunction<u64> for Counted {
    type Accumulator = u64;
    type Output = u64;

    fn create(&self) -> u64 {
        0
    }

    fn add(&self, accumulator: &mut u64, _: u64) {
        *accumulator += 1;
    }

    fn merge(&self, accumulator: &mut u64, other: u64) {
        *accumulator += other;
    }

    fn result(&self, accumulator: &u64) -> u64 {
        *accumulator
    }
}

fn keep_all_kinds(env: &StreamExecutionEnvironment, arguments: &Arguments) -> DataStreamSink {
    all_kinds(numbers(env, arguments, "numbers"), arguments.padding).write_text(&arguments.output).uid("lines")
}

fn explode(env: &StreamExecutionEnvironment, arguments: &Arguments, output: &str) -> DataStreamSink {
    let (unlucky, trigger) = (arguments.unlucky, arguments.trigger.clone());
    let check = move |number: u64| {
        let is_triggered = || trigger.as_ref().is_some_and(|path| fs::remove_file(path).is_ok());
        let is_unlucky = number == unlucky || is_triggered();
        assert!(!is_unlucky, "{number} is unlucky");
        number
    };
    numbers(env, arguments, "unlucky").map(check).name("Explodes").disable_chaining().write_text(output)
}

#[derive(Clone, Deserialize, Serialize)]
struct Reading {
    sensor: String,
    value: f64,
}

fn read_csv(env: &StreamExecutionEnvironment, arguments: &Arguments) -> DataStreamSink {
    let on_error = if arguments.skip { OnError::Skip } else { OnError::Fail };
    env.from_source("Readings", FileSource::<Reading>::csv(&arguments.input).on_error(on_error))
        .map(|reading: Reading| format!("{}={}", reading.sensor, reading.value))
        .write_text(&arguments.output)
}

fn copy(env: &StreamExecutionEnvironment, arguments: &Arguments) -> DataStreamSink {
    env.read_text(&arguments.input).write_text(&arguments.output)
}

fn name_by_process(env: &StreamExecutionEnvironment, arguments: &Arguments) -> DataStreamSink {
    numbers(env, arguments, "numbers")
        .map(|number: u64| number)
        .name(format!("Process {}", std::process::id()))
        .write_text(&arguments.output)
}
