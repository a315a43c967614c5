//! A `main` for jobs: arguments of the job and of the engine, and errors that people can read.

use std::process::ExitCode;

use clap::{Args, Parser};
use flott_core::Result;
use flott_local::{EngineArgs, Launcher, processes};

use crate::environment::StreamExecutionEnvironment;

#[derive(Parser)]
#[command(about = "A Flott job", version = env!("CARGO_PKG_VERSION"))]
struct CommandLine<A: Args> {
    #[command(flatten)]
    job: A,
    #[command(flatten)]
    engine: EngineArgs,
}

/// Runs a job whose arguments are `A`, a type that derives [`clap::Args`]. `--help` shows them beside the engine's.
/// `build` builds the program on the environment and calls [`execute`](StreamExecutionEnvironment::execute).
///
/// With `jobmanager` or `taskmanager` as its first argument the binary is that process of a cluster instead.
///
/// ```no_run
/// use flott::clap;
/// use flott::prelude::*;
///
/// #[derive(clap::Args)]
/// struct Arguments {
///     /// The file to read
///     #[arg(long)]
///     input: String,
/// }
///
/// fn main() -> std::process::ExitCode {
///     flott::run(|env: &StreamExecutionEnvironment, arguments: Arguments| {
///         env.read_text(&arguments.input).print();
///         env.execute("cat").map(drop)
///     })
/// }
/// ```
pub fn run<A: Args>(build: impl FnOnce(&StreamExecutionEnvironment, A) -> Result<()>) -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    let outcome = processes::run_role(&arguments).unwrap_or_else(|| {
        let CommandLine { job, engine } = CommandLine::<A>::parse();
        let env = StreamExecutionEnvironment::with_launcher(Launcher::new(engine)?);
        build(&env, job)
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            if let Some(backtrace) = &error.backtrace {
                eprintln!("{backtrace}");
            }
            ExitCode::FAILURE
        }
    }
}
