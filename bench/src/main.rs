//! The benchmarks: each measures Flott beside a peer, on the same machine, in one run, and prints the ratio.
//!
//! - [`chain`]: `map → filter → map`, beside a loop
//! - [`keyed_sum`]: a sum per key, beside a loop over a hash map
//! - [`shuffle`]: batches between two processes, beside plain TCP
//! - [`wordcount`]: a whole job over a gigabyte of text, beside Apache Flink
//! - [`checkpoint`]: a large state of which little changed, beside its full snapshot
//! - [`tables`]: savepoints of a large state, beside the same columns written by hand
//! - [`rewind`]: going back to a checkpoint in memory, beside reading its file
//! - [`gaps`]: output while a large state moves: after a kill, in a rescale, in an upgrade, while it is written
//! - [`spill`]: state of more and more times its memory
//! - [`nexmark`]: the queries of the Nexmark suite in SQL, beside Apache Flink
//! - [`startup`]: the time to the first result, and the memory of idle processes, beside what we allow ourselves
//!
//! [`harness`] has what they share, [`cluster`] starts processes, [`outputs`] reads when a job had output and [`plot`]
//! draws it, [`report`] has the table and the file of results.

mod chain;
mod checkpoint;
mod cluster;
mod gaps;
mod harness;
mod keyed_sum;
mod nexmark;
mod outputs;
mod plot;
mod report;
mod rewind;
mod shuffle;
mod spill;
mod startup;
mod tables;
mod wordcount;

use std::process::ExitCode;

use clap::{Parser, Subcommand, ValueEnum};
use flott_core::Result;

use crate::report::Figure;

#[derive(Parser)]
#[command(about = "Flott's benchmarks, side by side with their peers")]
struct CommandLine {
    #[command(subcommand)]
    role: Option<Role>,

    /// Runs only this benchmark; may be repeated
    #[arg(long, value_name = "NAME")]
    only: Vec<Benchmark>,

    /// A tenth of the data and fewer runs: to see that all of it works. Keeps no results
    #[arg(long)]
    quick: bool,
}

/// What a process is that a benchmark started.
#[derive(Subcommand)]
enum Role {
    #[command(hide = true)]
    ShuffleReceiver(shuffle::ReceiverArgs),
    #[command(hide = true)]
    ShuffleSender(shuffle::SenderArgs),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
enum Benchmark {
    Chain,
    KeyedSum,
    Shuffle,
    Wordcount,
    Checkpoint,
    Tables,
    Rewind,
    Spill,
    Kill,
    Rescale,
    Upgrade,
    Flow,
    Startup,
    Nexmark,
}

impl Benchmark {
    fn run(self, is_quick: bool) -> Result<Vec<Figure>> {
        match self {
            Self::Chain => chain::run(is_quick),
            Self::KeyedSum => keyed_sum::run(is_quick),
            Self::Shuffle => shuffle::run(is_quick),
            Self::Wordcount => wordcount::run(is_quick),
            Self::Checkpoint => checkpoint::run(is_quick),
            Self::Tables => tables::run(is_quick),
            Self::Rewind => rewind::run(is_quick),
            Self::Spill => spill::run(is_quick),
            Self::Kill => gaps::killed(is_quick),
            Self::Rescale => gaps::rescaled(is_quick),
            Self::Upgrade => gaps::upgraded(is_quick),
            Self::Flow => gaps::flowing(is_quick),
            Self::Startup => startup::run(is_quick),
            Self::Nexmark => nexmark::run(is_quick),
        }
    }
}

fn main() -> ExitCode {
    let CommandLine { role, only, quick } = CommandLine::parse();
    let outcome = match role {
        Some(Role::ShuffleReceiver(arguments)) => arguments.run(),
        Some(Role::ShuffleSender(arguments)) => arguments.run(),
        None => run(&only, quick),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the benchmarks one by one. One that fails does not keep the others from running.
fn run(only: &[Benchmark], is_quick: bool) -> Result<()> {
    if cfg!(debug_assertions) {
        eprintln!("this is a debug build: its figures mean nothing; run 'make bench'");
    }
    let (mut figures, mut failure) = (Vec::new(), None);
    for benchmark in Benchmark::value_variants().iter().filter(|one| only.is_empty() || only.contains(one)) {
        eprintln!("running {benchmark:?}");
        match benchmark.run(is_quick) {
            Ok(measured) => figures.extend(measured),
            Err(error) => {
                let error = error.context(format!("benchmark {benchmark:?}"));
                eprintln!("error: {error}");
                failure = Some(error);
            }
        }
    }
    report::print(&figures);
    if !is_quick && !cfg!(debug_assertions) {
        report::append(&figures)?;
    }
    failure.map_or(Ok(()), Err)
}
