//! Counts the words of text files. A word is a run of ASCII letters and digits, in lower case.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flott::prelude::*;
use flott::time::{Timestamp, WATERMARK_MAX};
use flott::{Batch, Error, Result};

/// Short strings lie in the record itself: no allocation a word.
type Word = compact_str::CompactString;

/// The licence and the documents of this repository.
const INPUTS: [&str; 3] = [
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../LICENSE"),
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md"),
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs"),
];

#[derive(clap::Args)]
struct Arguments {
    /// Files, folders or patterns to read
    #[arg(long, value_name = "PATH", num_args = 1.., default_values = INPUTS)]
    input: Vec<String>,

    /// The folder to write `word,count` lines to; without it they are printed
    #[arg(long, value_name = "DIR")]
    output: Option<String>,

    /// Gives the count of a word with each occurrence, instead of once at the end of the input
    #[arg(long)]
    updates: bool,

    /// Only counts the updates: for benchmarks, in a local run
    #[arg(long, requires = "updates", conflicts_with = "output")]
    discard: bool,
}

fn main() -> ExitCode {
    flott::run(build)
}

fn build(env: &StreamExecutionEnvironment, arguments: Arguments) -> Result<()> {
    let files = arguments.input.iter().map(|path| env.read_text(path).uid(format!("lines of {path}")));
    let lines = files.reduce(DataStream::union).ok_or_else(|| Error::input("--input names no file"))?;
    let words = lines.flat_map(words).name("Words").key_by_ref(|word: &Word| word);
    let counts = if arguments.updates {
        words.fold(0_u64, |count, _word| *count += 1)
    } else {
        words.process(FinalCounts::default())
    };
    let counts = counts.name("Counts").uid("counts");

    if arguments.discard {
        let tally = Tally::default();
        let counted = tally.clone();
        counts.for_each_batch(move |batch| counted.add(batch)).name("Tally");
        env.execute("wordcount")?;
        println!("{} words, {} of them different", tally.updates(), tally.distinct());
        return Ok(());
    }
    match arguments.output {
        Some(folder) => counts.write_csv(folder).uid("files"),
        None => counts.print(),
    };
    env.execute("wordcount").map(drop)
}

/// Appends the words of `line`.
fn words(line: String, out: &mut Vec<Word>) {
    let mut start = 0;
    for (end, byte) in line.bytes().chain([b' ']).enumerate() {
        if !byte.is_ascii_alphanumeric() {
            if start < end {
                // Ends are ASCII or the first byte of a character, so they are boundaries.
                let mut word = Word::new(&line[start..end]);
                word.make_ascii_lowercase();
                out.push(word);
            }
            start = end + 1;
        }
    }
}

/// Counts each word, and gives the count when the input has ended: event time then reaches its end, and with it
/// every timer.
#[derive(Clone, Default)]
struct FinalCounts {
    count: Option<ValueState<u64>>,
}

impl FinalCounts {
    const END: Timestamp = WATERMARK_MAX - 1;

    fn count(&self) -> &ValueState<u64> {
        self.count.as_ref().expect("open() declares it")
    }
}

impl KeyedProcessFunction<Word, Word, (Word, u64)> for FinalCounts {
    fn open(&mut self, states: &mut KeyedStates<Word>) -> Result<()> {
        self.count = Some(states.value("count")?);
        Ok(())
    }

    fn process(
        &mut self,
        _word: Word,
        cx: &mut KeyedContext<'_, Word>,
        _out: &mut Collector<'_, (Word, u64)>,
    ) -> Result<()> {
        let count = self.count().update(cx, || 0);
        *count += 1;
        if *count == 1 {
            cx.register_event_time_timer(Self::END);
        }
        Ok(())
    }

    fn on_timer(
        &mut self,
        _timer: Timer,
        cx: &mut KeyedContext<'_, Word>,
        out: &mut Collector<'_, (Word, u64)>,
    ) -> Result<()> {
        let count = self.count().get(cx).copied().unwrap_or_default();
        out.collect((cx.key().clone(), count));
        Ok(())
    }
}

/// Counts updates instead of keeping them.
#[derive(Clone, Default)]
struct Tally {
    updates: Arc<AtomicU64>,
    distinct: Arc<AtomicU64>,
}

impl Tally {
    fn add(&self, updates: &Batch<(Word, u64)>) {
        let first = updates.rows.iter().filter(|(_, count)| *count == 1).count();
        self.updates.fetch_add(updates.len() as u64, Ordering::Relaxed);
        self.distinct.fetch_add(first as u64, Ordering::Relaxed);
    }

    fn updates(&self) -> u64 {
        self.updates.load(Ordering::Relaxed)
    }

    fn distinct(&self) -> u64 {
        self.distinct.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn words_are_runs_of_letters_and_digits_in_lower_case() {
        let mut words = Vec::new();
        super::words("To be, or  NOT to-be: 2b?".to_owned(), &mut words);
        assert_eq!(words, ["to", "be", "or", "not", "to", "be", "2b"]);
        words.clear();
        super::words("naïve …".to_owned(), &mut words);
        assert_eq!(words, ["na", "ve"]);
    }
}
