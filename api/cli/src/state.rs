//! `flott state`: what a savepoint holds, as a list and as tables.
//!
//! - `states`: the states of a manifest, and the names of their tables
//! - `columns`: the columns of a state, for people
//! - `list`: the states as a list
//! - `query`: SQL over them, with `table` for the files of one
//! - `rows`: the rows of a result

mod columns;
mod list;
mod query;
mod rows;
mod states;
mod table;

use std::process::ExitCode;

use clap::ValueEnum;
use flott_checkpoint::{Manifest, Store};
use flott_core::{Error, Result, ResultExt};

use crate::{format, terminal, verify};
use states::State;

pub(crate) const EXAMPLES: &str = "\
Examples:
  flott state savepoints/savepoint-1a2b3c-0123456789ab
  flott state s3://bucket/savepoints/savepoint-1a2b3c-0123456789ab --verify
  flott state SAVEPOINT 'SELECT key, value FROM counts ORDER BY value DESC LIMIT 10'
  flott state SAVEPOINT 'SELECT count(*) FROM \"Sum -> Sink\".totals' -o csv

Each keyed state is a table with the state's name, or \"OPERATOR\".STATE where several operators have a state of that name;
SHOW TABLES and DESCRIBE tell more. Names are taken as they are written. Checkpoints can be listed, not queried.";

/// The arguments.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The folder of the savepoint or checkpoint, as a path or a file:// or s3:// URL
    #[arg(value_name = "SAVEPOINT")]
    savepoint: String,

    /// A query in SQL; without one the states are listed
    #[arg(value_name = "SQL")]
    query: Option<String>,

    /// Reads all files first and checks their SHA-256, not only their lengths; a query does so with those of its tables
    #[arg(long)]
    verify: bool,

    /// What the result is printed as
    #[arg(short, long = "output", value_enum, default_value_t, value_name = "FORMAT")]
    output: Form,
}

/// The form of a result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Form {
    /// For people
    #[default]
    #[value(alias = "text")]
    Table,
    /// For scripts: the list is one JSON value, a query's result one object a line
    Json,
    /// A header and a line for each row
    Csv,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    // Not the runtime of a client: a query is computed here, on all cores.
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.context("starting the threads of the query")?.block_on(show(args))?;
    Ok(ExitCode::SUCCESS)
}

async fn show(args: &Args) -> Result<()> {
    let store = Store::default();
    // This checks the length of every file.
    let (folder, manifest) = store.load_manifest(&args.savepoint, None).await?;
    if args.verify {
        let (files, bytes) = verify::all(&store, &folder, &manifest).await?;
        terminal::say(format_args!("{} verified, {} bytes", format::counted(files, "file"), format::count(bytes)));
    }
    let states = states::of(&manifest, &folder);
    match &args.query {
        None => list::print(args.output, &folder, &manifest, &states),
        Some(sql) => {
            check_has_tables(&folder, &manifest, &states)?;
            let rows = query::run(&store, &states, sql, args.verify).await?;
            rows::print(args.output, rows).await
        }
    }
}

/// Refuses what is no tables.
fn check_has_tables(folder: &str, manifest: &Manifest, states: &[State]) -> Result<()> {
    if !manifest.is_savepoint {
        return Err(Error::input(format!(
            "{folder} is a checkpoint, whose files have a private format: take a savepoint with `flott savepoint JOB`, and query that"
        )));
    }
    if states.iter().any(|state| !state.is_described) {
        return Err(Error::input(format!(
            "{folder} has format version {}, whose state is not in tables: start the job from it, and take a new savepoint",
            manifest.version
        )));
    }
    Ok(())
}
