//! Words of a gigabyte of text, counted with an update for each, at parallelism 2: whole processes, from start to
//! end, beside Apache Flink running the same job (`flink/WordCount.java`).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use flott_core::{Error, Result, ResultExt};
use serde::Deserialize;

use crate::harness::{binary, cache, check_same, medians, output, timed};
use crate::report::Figure;

const PARALLELISM: &str = "2";

/// What `flink/run.sh` prints.
#[derive(Deserialize)]
struct Flink {
    process_seconds: f64,
    words: u64,
    distinct: u64,
}

pub(crate) fn run(is_quick: bool) -> Result<Vec<Figure>> {
    let (megabytes, rounds) = if is_quick { (100, 1) } else { (1000, 3) };
    let job = binary("wordcount")?;
    let text = text(megabytes)?;
    let [flott_s, flink_s] = medians(rounds, || {
        let (seconds, (words, distinct)) = flott(&job, &text)?;
        let flink = flink(&text)?;
        check_same("the number of words", words, flink.words)?;
        check_same("the number of different words", distinct, flink.distinct)?;
        Ok([seconds, flink.process_seconds])
    })?;
    Ok(vec![Figure::less("wordcount", "s", flott_s, flink_s).against("Apache Flink 2.3", 5.0)])
}

/// A folder with so much text, which is made once. It has been read, so that no side has to wait for the disk.
fn text(megabytes: u64) -> Result<PathBuf> {
    let folder = cache()?.join(format!("text-{megabytes}"));
    let mut script = Command::new("python3");
    script.arg(sources().join("make-text.py")).arg(&folder).arg(megabytes.to_string());
    output(&mut script)?;
    for entry in fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
        std::io::copy(&mut fs::File::open(entry?.path())?, &mut std::io::sink())?;
    }
    Ok(folder)
}

fn sources() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The seconds that our job takes, the words that it counts, and how many of them are different.
fn flott(job: &Path, text: &Path) -> Result<(f64, (u64, u64))> {
    let mut command = Command::new(job);
    command.args(["-p", PARALLELISM, "--updates", "--discard", "--input"]).arg(text);
    let (seconds, printed) = timed(|| output(&mut command));
    let printed = printed?;
    let mut numbers = printed.split_whitespace().filter_map(|word| word.parse().ok());
    match (numbers.next(), numbers.next()) {
        (Some(words), Some(distinct)) => Ok((seconds, (words, distinct))),
        _ => Err(Error::system(format!("{} printed '{printed}'", job.display()))),
    }
}

fn flink(text: &Path) -> Result<Flink> {
    let printed = output(Command::new(sources().join("flink/run.sh")).arg(text).arg(PARALLELISM))?;
    let last = printed.lines().last().unwrap_or_default();
    serde_json::from_str(last).map_err(|error| Error::system(format!("flink/run.sh printed '{last}': {error}")))
}
