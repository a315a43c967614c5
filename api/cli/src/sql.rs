//! `flott sql`: scripts and statements of Flink SQL.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::ValueEnum;
use flott_core::status::JobStatus;
use flott_core::{Error, Result, ResultExt};
use flott_local::{EngineArgs, Launcher};
use flott_sql::execute::{self, Next};
use flott_sql::parse::{Piece, split};
use flott_sql::session::{Answer, Job, Session, SessionConfig};

use crate::terminal;

mod live;
mod render;
mod shell;
mod words;

use render::{Form, Renderer};

pub(crate) const EXAMPLES: &str = "\
Examples:
  flott sql -f script.sql
  flott sql -e \"SELECT 1 + 1\"
  flott sql -f script.sql -o changelog
  flott sql -m localhost:8081 -f job.sql
  flott sql --check -f script.sql
  flott sql

With neither -f nor -e statements are read from standard input: on a terminal interactively, with history and completion.

Without -m jobs run in this process, each to its end before the next statement. With -m they run in the cluster: an INSERT is
submitted, and the script goes on unless 'table.dml-sync' is true; the rows of a SELECT are shown here.

Exit codes: 0 done, 1 a statement failed, 2 wrong usage";

/// What workers are told: their plan is the payload of the job.
const COMPILED: [&str; 2] = ["sql", "--compiled"];

/// Where Flink says which savepoint a job starts from.
const SAVEPOINT_KEYS: [&str; 2] = ["execution.state-recovery.path", "execution.savepoint.path"];

/// How rows are shown if `-o` does not say so.
const RESULT_MODE: &str = "sql-client.execution.result-mode";

/// The arguments.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Runs the statements of this file; `-` is standard input
    #[arg(short, long, value_name = "FILE", conflicts_with = "execute")]
    file: Option<PathBuf>,

    /// Runs these statements
    #[arg(short, long, value_name = "SQL")]
    execute: Option<String>,

    /// Runs the statements of this file first, and prints nothing of what they answer
    #[arg(short, long, value_name = "FILE")]
    init: Option<PathBuf>,

    /// How rows are shown; else as 'sql-client.execution.result-mode' says
    #[arg(short, long, value_enum, value_name = "FORM")]
    output: Option<Form>,

    /// Only checks the statements, and plans the jobs without running them
    #[arg(long)]
    check: bool,

    /// What a worker runs
    #[arg(long, hide = true)]
    compiled: bool,

    #[command(flatten)]
    engine: EngineArgs,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    if args.compiled {
        execute::work(&Launcher::new(args.engine.clone())?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut script =
        Script { args, session: Session::new(given(&args.engine)?), is_silent: true, is_interactive: false };
    if let Some(init) = &args.init {
        script.run(&read(init)?, &init.display().to_string())?;
    }
    script.is_silent = false;
    match (&args.file, &args.execute) {
        (Some(file), _) => script.run(&read(file)?, &file.display().to_string())?,
        (None, Some(text)) => script.run(text, "-e")?,
        (None, None) if std::io::stdin().is_terminal() => {
            script.is_interactive = true;
            shell::run(&mut script)?;
        }
        (None, None) => script.run(&read(Path::new("-"))?, "standard input")?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The settings that `-D` and `-p` make: a script may SET them anew, and RESET goes back to them.
fn given(engine: &EngineArgs) -> Result<SessionConfig> {
    let pairs = engine.define.iter().map(|pair| {
        let parts = pair.split_once('=').map(|(key, value)| (key.trim(), value.trim()));
        let parts = parts.filter(|(key, _)| !key.is_empty());
        parts.ok_or_else(|| {
            Error::input(format!("-D takes KEY=VALUE, such as -D parallelism.default=2: '{pair}' is none"))
        })
    });
    let mut pairs = pairs.collect::<Result<Vec<_>>>()?;
    let parallelism = engine.parallelism.map(|parallelism| parallelism.to_string());
    pairs.extend(parallelism.iter().map(|parallelism| ("parallelism.default", parallelism.as_str())));
    SessionConfig::new(pairs)
}

fn read(file: &Path) -> Result<String> {
    match file.to_str() {
        Some("-") => std::io::read_to_string(std::io::stdin()).context("reading standard input"),
        _ => std::fs::read_to_string(file).with_context(|| format!("reading {}", file.display())),
    }
}

/// Runs statements one after the other.
struct Script<'a> {
    args: &'a Args,
    session: Session,
    /// Whether what statements answer is not shown.
    is_silent: bool,
    /// Whether someone types them.
    is_interactive: bool,
}

impl Script<'_> {
    fn run(&mut self, text: &str, name: &str) -> Result<()> {
        let pieces = split(text).context(name)?;
        for (done, piece) in pieces.iter().enumerate() {
            self.statement(piece).map_err(|error| failed(error, name, &pieces, done))?;
        }
        Ok(())
    }

    fn statement(&mut self, piece: &Piece<'_>) -> Result<()> {
        let answer = self.session.execute(&piece.statement()?)?;
        match answer {
            Answer::Done => {
                if self.is_interactive {
                    terminal::say("[INFO] Execute statement succeeded.");
                }
                Ok(())
            }
            Answer::Rows(_) if self.is_silent => Ok(()),
            Answer::Rows(rows) => render::rows(self.form()?, &rows),
            Answer::Select(job) | Answer::Insert(job) if self.args.check => {
                warn(&job);
                Ok(())
            }
            Answer::Select(job) => self.select(&job),
            Answer::Insert(job) => self.insert(&job),
        }
    }

    fn select(&self, job: &Job) -> Result<()> {
        warn(job);
        let is_batch = self.session.config().value("execution.runtime-mode") == Some("batch");
        let form = self.form()?;
        let running = execute::select(job, self.launcher()?, &COMPILED)?;
        let mut renderer = Renderer::new(form, &job.schema, is_batch)?;
        loop {
            let is_read = match running.next(render::REDRAW_PAUSE) {
                Next::Rows(chunk) => renderer.chunk(&chunk)?,
                Next::Pause => renderer.pause()?,
                Next::End => break,
            };
            if !is_read {
                // A reader such as `head` has seen enough.
                return running.give_up();
            }
        }
        match running.end()?.status {
            JobStatus::Canceled if self.is_interactive => renderer.cancelled(),
            JobStatus::Canceled => Err(Error::user_code(format!("job '{}' was cancelled", job.plan.name))),
            _ => renderer.end(),
        }
    }

    fn form(&self) -> Result<Form> {
        if let Some(form) = self.args.output {
            return Ok(form);
        }
        match self.session.config().value(RESULT_MODE) {
            None if self.is_interactive && std::io::stdout().is_terminal() => Ok(Form::Table),
            None => Ok(Form::Tableau),
            Some(mode) => Form::from_str(mode, true).map_err(|_| {
                Error::input(format!("SET '{RESULT_MODE}' = '{mode}' is not table, changelog, tableau or json"))
            }),
        }
    }

    fn insert(&self, job: &Job) -> Result<()> {
        warn(job);
        let outcome = execute::insert(job, &self.launcher()?, &COMPILED)?;
        if self.args.engine.jobmanager.is_some() && !self.is_silent {
            terminal::say(format_args!("Job ID: {}", outcome.job));
        }
        Ok(())
    }

    /// What runs the next job: with the savepoint that was SET for it.
    fn launcher(&self) -> Result<Launcher> {
        // What was given is in the session's settings already, where a script may have SET it anew.
        let mut engine = EngineArgs {
            define: Vec::new(),
            parallelism: None,
            is_interactive: self.is_interactive,
            ..self.args.engine.clone()
        };
        let config = self.session.config();
        engine.detached |= config.value("table.dml-sync").is_none_or(|value| !value.eq_ignore_ascii_case("true"));
        let savepoint = SAVEPOINT_KEYS.iter().find_map(|key| config.value(key));
        if let Some(savepoint) = savepoint.filter(|path| !path.is_empty()) {
            engine.savepoint = Some(savepoint.to_owned());
        }
        Launcher::new(engine)
    }
}

fn warn(job: &Job) {
    for warning in &job.warnings {
        terminal::say(format_args!("warning: {warning}"));
    }
}

/// The error of a statement, with which it was and which ran before.
fn failed(error: Error, name: &str, pieces: &[Piece<'_>], done: usize) -> Error {
    let piece = &pieces[done];
    let before = match done {
        0 => "no statement ran before it".to_owned(),
        1 => format!("the statement before it (line {}) ran", pieces[0].line),
        _ => format!("the {done} statements before it ran, the last of line {}", pieces[done - 1].line),
    };
    let after = match pieces.len() - done - 1 {
        0 => String::new(),
        1 => "; the one after it did not".to_owned(),
        rest => format!("; the {rest} after it did not"),
    };
    let first: String = piece.text.lines().next().unwrap_or_default().chars().take(80).collect();
    Error {
        message: format!(
            "{}\nin statement {} of {name}, line {}: {first}\n{before}{after}",
            error.message,
            done + 1,
            piece.line
        ),
        ..error
    }
}
