//! A query on Flott and on Flink: how long it takes, how long planning does, and how many rows it has.
//!
//! Start-up is measured apart: on both sides the same statement runs over few events as well, and what that takes is not
//! counted. Flink does that in the same process, so that only its warm start-up is not counted, which is shorter.

use std::path::{Path, PathBuf};
use std::process::Command;

use flott_core::{Error, Result, ResultExt};
use serde::Deserialize;

use super::queries::{Query, file_tables, generated_tables};
use crate::harness::{binary, median, output, timed};

/// What a side reads.
#[derive(Clone, Debug)]
pub(super) enum Input {
    /// Files in a folder, and few of the same kind in another.
    Files { all: PathBuf, few: PathBuf },
    /// Its own generator; the folder has the side input.
    Generator { folder: PathBuf, all: u64, few: u64 },
}

impl Input {
    fn tables(&self, is_all: bool) -> Vec<String> {
        match self {
            Self::Files { all, few } => file_tables(if is_all { all } else { few }),
            Self::Generator { folder, all, few } => generated_tables(folder, if is_all { *all } else { *few }),
        }
    }
}

/// What was measured of a query on one side.
#[derive(Clone, Copy, Debug)]
pub(super) struct Measured {
    /// The seconds that the events take that are in all and not in few.
    pub(super) seconds: f64,
    /// The milliseconds of planning it for the first time in a process.
    pub(super) planning_ms: f64,
    /// The rows of its result over few events. None where that was not asked.
    pub(super) rows: Option<u64>,
}

fn insert(select: &str) -> String {
    format!("CREATE TABLE taken WITH ('connector' = 'blackhole')\nAS {select}")
}

fn count(select: &str) -> String {
    format!("SELECT COUNT(*) FROM (\n{select}\n)")
}

/// A command whose threads share one core, so that both sides have as much, if this machine can do that.
fn on_one_core(program: &Path) -> Command {
    let last = std::thread::available_parallelism().map_or(0, |cores| cores.get() - 1).to_string();
    let has_taskset = Command::new("taskset").arg("--version").output().is_ok();
    match has_taskset {
        true => {
            let mut command = Command::new("taskset");
            command.args(["-c", &last]).arg(program);
            command
        }
        false => Command::new(program),
    }
}

/// Runs `query` on Flott, of few events `rounds` times.
pub(super) fn flott(query: &Query, input: &Input, counts: bool, rounds: usize, folder: &Path) -> Result<Measured> {
    let flott = binary("flott")?;
    let script = |name: &str, statements: &[String]| -> Result<PathBuf> {
        let path = folder.join(name);
        std::fs::write(&path, statements.join(";\n") + ";\n").with_context(|| path.display().to_string())?;
        Ok(path)
    };
    let run = |script: &Path, arguments: &[&str]| {
        let mut command = on_one_core(&flott);
        command.args(["sql", "-p", "1", "-f"]).arg(script).args(arguments);
        let (seconds, printed) = timed(|| output(&mut command));
        printed.map(|printed| (seconds, printed))
    };
    let with = |is_all, statement: String| [input.tables(is_all), vec![statement]].concat();
    let tables = script("tables.sql", &input.tables(true))?;
    let all = script("all.sql", &with(true, insert(&query.ours)))?;
    let few = script("few.sql", &with(false, insert(&query.ours)))?;
    let seconds = |script: &Path, arguments: &[&str]| -> Result<f64> {
        let all = (0..rounds).map(|_| run(script, arguments).map(|(seconds, _)| seconds));
        all.collect::<Result<Vec<_>>>().map(median)
    };
    let planning_ms = (seconds(&all, &["--check"])? - seconds(&tables, &["--check"])?) * 1e3;
    let rows = match counts {
        true => {
            let count = script("count.sql", &with(false, count(&query.ours)))?;
            let (_, printed) = run(&count, &["-o", "changelog"])?;
            let last = printed.lines().last().and_then(|line| line.split('\t').nth(1)).map(str::parse);
            match last {
                None => Some(0),
                Some(Ok(rows)) => Some(rows),
                Some(Err(_)) => return Err(Error::system(format!("a count is {:?}", printed.lines().last()))),
            }
        }
        false => None,
    };
    let few_s = seconds(&few, &[])?;
    let (all_s, _) = run(&all, &[])?;
    Ok(Measured { seconds: all_s - few_s, planning_ms, rows })
}

/// What `flink/sql.sh` prints of a statement.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Line {
    Planning { planning_ms: f64 },
    Inserted { seconds: f64 },
    Selected { last: u64 },
}

/// Runs `query` on Flink. `classes` has its generator.
pub(super) fn flink(
    query: &Query,
    input: &Input,
    counts: bool,
    classes: Option<&str>,
    folder: &Path,
) -> Result<Measured> {
    let select = query.flinks.as_ref().ok_or_else(|| Error::input(format!("Flink cannot run {}", query.name)))?;
    let mut statements = Vec::new();
    for (database, is_all) in [("few", false), ("many", true)] {
        statements.extend([format!("CREATE DATABASE {database}"), format!("USE {database}")]);
        statements.extend(input.tables(is_all));
        if !is_all {
            statements.push(format!("EXPLAIN {select}"));
            if counts {
                statements.push(count(select));
            }
            // Once more, since only the second is that of a warm process.
            statements.push(insert(select));
            statements.push(insert(select).replace("taken", "taken_again"));
            continue;
        }
        statements.push(insert(select));
    }
    let path = folder.join("flink.sql");
    std::fs::write(&path, statements.join("\n;\n") + "\n;\n").with_context(|| path.display().to_string())?;
    let mut command = on_one_core(&Path::new(env!("CARGO_MANIFEST_DIR")).join("flink/sql.sh"));
    command.arg(&path).envs(classes.map(|classes| ("FLINK_CLASSES", classes)));
    let printed = output(&mut command)?;
    let (mut planning, mut rows, mut all) = (0.0, None, Vec::new());
    for line in printed.lines() {
        match serde_json::from_str(line) {
            Ok(Line::Planning { planning_ms }) => planning = planning_ms,
            Ok(Line::Selected { last }) => rows = Some(last),
            Ok(Line::Inserted { seconds }) => all.push(seconds),
            Err(error) => return Err(Error::system(format!("flink/sql.sh printed '{line}': {error}"))),
        }
    }
    match all[..] {
        [_, few, all] => Ok(Measured { seconds: all - few, planning_ms: planning, rows }),
        _ => Err(Error::system(format!("flink/sql.sh printed '{printed}'"))),
    }
}

/// The classes of the generator that Flink has in the suite; an error if they cannot be had.
pub(super) fn generator() -> Result<String> {
    let printed = output(&mut Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("flink/nexmark.sh")))?;
    Ok(printed.trim().to_owned())
}
