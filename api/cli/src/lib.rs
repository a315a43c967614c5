//! The command line: Flink's verbs on a cluster, and the processes that a cluster is made of.
//!
//! ```
//! let command = flott_cli::command();
//! let verbs: Vec<&str> = command.get_subcommands().map(|verb| verb.get_name()).collect();
//! assert!(verbs.contains(&"run") && verbs.contains(&"savepoint"));
//! ```
//!
//! One module a verb:
//!
//! - `run`: plans, uploads and submits a job, and follows it with `follow`, `progress` and `terminal`
//! - `info`: the plan alone, with `plan`; also lists the options
//! - `list`, `cancel`, `stop`, `savepoint`, `checkpoint`, `rescale`: jobs of a cluster, named as `jobs` allows
//! - `upgrade`: a job in a new version, with `check` to tell first what becomes of its state
//! - `state`: what a savepoint holds, as tables; `verify` reads its files before
//! - `sql`: scripts and statements of Flink SQL; `upgrade` does its part of `sql --upgrade`
//! - `cluster`: a local cluster of processes
//! - `jobmanager`, `taskmanager`: one such process
//!
//! Whatever a cluster is asked goes through [`flott_local::client::Client`]; nothing here knows a server.
//! Results go to standard output by `output`, as text or JSON; everything else goes to standard error.

mod cancel;
mod check;
mod checkpoint;
mod cluster;
mod follow;
mod format;
mod info;
mod jobmanager;
mod jobs;
mod list;
mod output;
mod plan;
mod progress;
mod rescale;
mod run;
mod savepoint;
mod sql;
mod state;
mod stop;
mod suggest;
mod taskmanager;
mod terminal;
mod upgrade;
mod verify;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use flott_core::{Result, ResultExt};
use flott_local::processes::ProcessArgs;

#[derive(Parser)]
#[command(
    name = "flott",
    version,
    about = "Runs stream-processing jobs, and the clusters that they run on",
    after_help = "\
Examples:
  flott cluster start --taskmanagers 2 --slots 2 --dir /tmp/flott
  flott run -p 2 ./job -- --input data.csv
  flott list
  flott cluster stop --dir /tmp/flott

Exit codes: 0 done, 1 an error or a failed job, 2 wrong usage or a cancelled job"
)]
struct CommandLine {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Submits a job's binary to a cluster and follows the job to its end
    #[command(after_help = run::EXAMPLES)]
    Run(run::Args),
    /// Lists jobs: those that have not ended, or those that the flags name
    #[command(after_help = list::EXAMPLES)]
    List(list::Args),
    /// Shows the graph of a job without running it, or all configuration options
    #[command(after_help = info::EXAMPLES)]
    Info(info::Args),
    /// Ends a job at once, without a savepoint
    #[command(after_help = cancel::EXAMPLES)]
    Cancel(cancel::Args),
    /// Ends a job with a savepoint, and prints where the savepoint is
    #[command(after_help = stop::EXAMPLES)]
    Stop(stop::Args),
    /// Takes a savepoint of a job that goes on, and prints where it is; or checks one against a new version of the job
    #[command(after_help = savepoint::EXAMPLES)]
    Savepoint(savepoint::Args),
    /// Takes a checkpoint of a job now, and prints where it is
    #[command(after_help = checkpoint::EXAMPLES)]
    Checkpoint(checkpoint::Args),
    /// Gives a running job another parallelism
    #[command(after_help = rescale::EXAMPLES)]
    Rescale(rescale::Args),
    /// Replaces a running job by a new version of it, or puts the old one back if that does not work
    #[command(after_help = upgrade::EXAMPLES)]
    Upgrade(upgrade::Args),
    /// Lists the states of a savepoint or checkpoint, or queries those of a savepoint with SQL
    #[command(after_help = state::EXAMPLES)]
    State(state::Args),
    /// Runs scripts and statements of Flink SQL
    #[command(after_help = sql::EXAMPLES)]
    Sql(sql::Args),
    /// Starts or stops a local cluster of processes
    #[command(subcommand)]
    Cluster(cluster::Verb),
    /// Runs one JobManager until it is told to end
    #[command(name = "jobmanager", after_help = jobmanager::EXAMPLES)]
    JobManager(ProcessArgs),
    /// Runs one TaskManager until it is told to end
    #[command(name = "taskmanager", after_help = taskmanager::EXAMPLES)]
    TaskManager(ProcessArgs),
}

/// The command line's description: verbs, arguments, help.
pub fn command() -> clap::Command {
    CommandLine::command()
}

/// Does what the process's arguments ask for; returns its exit code. Wrong arguments end the process.
pub fn main() -> ExitCode {
    match execute(CommandLine::parse().verb) {
        Ok(code) => code,
        Err(error) => {
            terminal::say(format_args!("error: {error}"));
            if let Some(backtrace) = &error.backtrace {
                terminal::say(backtrace);
            }
            ExitCode::FAILURE
        }
    }
}

fn execute(verb: Verb) -> Result<ExitCode> {
    match verb {
        Verb::Run(args) => run::run(&args),
        Verb::List(args) => list::run(&args),
        Verb::Info(args) => info::run(&args),
        Verb::Cancel(args) => cancel::run(&args),
        Verb::Stop(args) => stop::run(&args),
        Verb::Savepoint(args) => savepoint::run(&args),
        Verb::Checkpoint(args) => checkpoint::run(&args),
        Verb::Rescale(args) => rescale::run(&args),
        Verb::Upgrade(args) => upgrade::run(&args),
        Verb::State(args) => state::run(&args),
        Verb::Sql(args) => sql::run(&args),
        Verb::Cluster(verb) => cluster::run(&verb),
        Verb::JobManager(args) => jobmanager::run(&args),
        Verb::TaskManager(args) => taskmanager::run(&args),
    }
}

/// Runs a client's work to its end.
fn block_on<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.context("starting the I/O of the client")?.block_on(work)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_description_is_consistent() {
        command().debug_assert();
    }

    #[test]
    fn what_follows_the_dashes_is_the_jobs() {
        let parsed = CommandLine::try_parse_from(["flott", "run", "-d", "-p", "2", "./job", "--", "-p", "x"]).unwrap();
        let Verb::Run(args) = parsed.verb else { panic!("not a run") };
        assert_eq!(args.plan.args, ["-p", "x"]);
        assert!(CommandLine::try_parse_from(["flott", "run", "./job", "--input", "x"]).is_err());
        assert!(CommandLine::try_parse_from(["flott", "info"]).is_err());
        assert!(CommandLine::try_parse_from(["flott", "info", "--options"]).is_ok());
    }

    fn is_accepted(line: &str) -> bool {
        CommandLine::try_parse_from(line.split(' ')).is_ok()
    }

    #[test]
    fn a_savepoint_is_taken_of_a_job_or_checked_against_a_binary() {
        assert!(is_accepted("flott savepoint 1a2b /tmp/s"));
        assert!(is_accepted("flott savepoint --check ./job -n -p 2 /tmp/s/savepoint-1 -- --input x"));
        assert!(!is_accepted("flott savepoint --check ./job 1a2b /tmp/s"));
        assert!(!is_accepted("flott savepoint -n 1a2b"));
        assert!(is_accepted("flott upgrade 1a2b ./job -p 2 -n --savepoint-dir s --timeout 5min -- --input x"));
        assert!(!is_accepted("flott upgrade 1a2b ./job --timeout soon"));
        assert!(!is_accepted("flott upgrade 1a2b ./job --timeout 60"), "that is 60 ms");
        assert!(is_accepted("flott run --claimMode CLAIM -s /tmp/s ./job"));
        assert!(!is_accepted("flott run --claimMode claim ./job"), "there is nothing to claim");
    }

    #[test]
    fn a_script_is_the_new_version_of_a_job_of_a_cluster() {
        assert!(is_accepted("flott sql -m h:1 -f new.sql --upgrade 1a2b -n -p 2 --savepoint-dir s --timeout 5min"));
        assert!(is_accepted("flott sql -i init.sql -f new.sql -s /tmp/s -n"));
        assert!(is_accepted("flott sql --check -f new.sql -s /tmp/s"));
        assert!(!is_accepted("flott sql -f new.sql --upgrade 1a2b"), "where?");
        assert!(!is_accepted("flott sql -m h:1 --upgrade 1a2b"), "to what?");
        assert!(!is_accepted("flott sql -m h:1 -f new.sql --upgrade 1a2b -s /tmp/s"), "it starts from its own");
        assert!(!is_accepted("flott sql -m h:1 -f new.sql --upgrade 1a2b --check"));
        assert!(!is_accepted("flott sql -f new.sql --savepoint-dir s"));
    }

    #[test]
    fn a_rescale_says_to_what() {
        assert!(is_accepted("flott rescale 1a2b -p 4 --vertex 1=2 --vertex 0=1"));
        assert!(is_accepted("flott rescale 1a2b --vertex 1=2"));
        assert!(!is_accepted("flott rescale 1a2b"));
        assert!(!is_accepted("flott rescale 1a2b -p 0"));
    }
}
