//! `flott sql`: scripts and statements of Flink SQL.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::ValueEnum;
use flott_checkpoint::Manifest;
use flott_core::status::JobStatus;
use flott_core::{Error, Result, ResultExt};
use flott_local::{EngineArgs, Launcher};
use flott_sql::execute::{self, Next};
use flott_sql::parse::{Piece, split};
use flott_sql::session::{Answer, Job, Recovery, Session, SessionConfig};

use crate::output::Format;
use crate::upgrade::timeout;
use crate::{check, terminal};

mod live;
mod render;
mod shell;
mod upgrade;
mod words;

use render::{Form, Renderer};

pub(crate) const EXAMPLES: &str = "\
Examples:
  flott sql -f script.sql
  flott sql -e \"SELECT 1 + 1\"
  flott sql -f script.sql -o changelog
  flott sql -m localhost:8081 -f job.sql
  flott sql --check -f script.sql
  flott sql --check -s SAVEPOINT -f new.sql                what would become of the state
  flott sql -m localhost:8081 -s SAVEPOINT -f new.sql
  flott sql -m localhost:8081 -f new.sql --upgrade 'my job'
  flott sql

With neither -f nor -e statements are read from standard input: on a terminal interactively, with history and completion.

Without -m jobs run in this process, each to its end before the next statement. With -m they run in the cluster: an INSERT is
submitted, and the script goes on unless 'table.dml-sync' is true; the rows of a SELECT are shown here.

-s, -n and --claimMode are as SET of 'execution.state-recovery.path', '….ignore-unclaimed-state' and '….claim-mode'. A job is
checked against its savepoint before it starts.

--upgrade does as `flott upgrade` does: the old job is stopped with a savepoint only after the new one has been checked
against one, and is started again if the new one does not run and complete its first checkpoint in time.

Exit codes: 0 done, 1 a statement failed, or the savepoint does not fit, or the new version does not run, 2 wrong usage";

/// What workers are told: their plan is the payload of the job.
const COMPILED: [&str; 2] = ["sql", "--compiled"];

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

    /// Only checks the statements, and plans the jobs without running them; with a savepoint also what they would make of it
    #[arg(long)]
    check: bool,

    /// Replaces this running job by that of the script, or puts it back if that does not work: its id, the beginning of its id, or
    /// its name
    #[arg(long, value_name = "JOB", requires_all = ["jobmanager", "file"], conflicts_with_all = ["check", "savepoint"])]
    upgrade: Option<String>,

    /// The folder or URL that the savepoints of --upgrade get folders in; else execution.checkpointing.savepoint-dir
    #[arg(long, value_name = "DIR", requires = "upgrade")]
    savepoint_dir: Option<String>,

    /// How long the new version may take to run and to complete its first checkpoint, at least 1s
    #[arg(long, value_name = "DURATION", value_parser = timeout, default_value = "60s", requires = "upgrade")]
    timeout: Duration,

    /// What a worker runs
    #[arg(long, hide = true)]
    compiled: bool,

    #[command(flatten)]
    engine: EngineArgs,
}

impl Args {
    /// What is printed that is no row.
    fn format(&self) -> Format {
        if self.output == Some(Form::Json) { Format::Json } else { Format::Text }
    }
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    if args.compiled {
        execute::work(&Launcher::new(args.engine.clone())?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let is_asked = Launcher::new(EngineArgs::default())?.is_asked();
    let mut script = Script {
        args,
        session: Session::new(given(&args.engine)?),
        is_silent: true,
        is_interactive: false,
        kept: (is_asked || args.upgrade.is_some()).then(Vec::new),
        is_refused: false,
    };
    script.warn_of_settings();
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
    match script.kept.take() {
        Some(kept) => script.answer(&kept),
        None if script.is_refused => Ok(ExitCode::FAILURE),
        None => Ok(ExitCode::SUCCESS),
    }
}

/// The settings that `-D`, `-p`, `-s` and the like make: a script may SET them anew, and RESET goes back to them.
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
    let recovery = Recovery {
        path: engine.savepoint.clone(),
        allow_non_restored_state: engine.allow_non_restored_state,
        claim_mode: engine.claim_mode,
    };
    pairs.extend(recovery.settings());
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
    /// The jobs, where what is wanted is about the one of the whole script, rather than to run each in its turn.
    kept: Option<Vec<Job>>,
    /// Whether a job could not start from the savepoint that it was checked against.
    is_refused: bool,
}

impl Script<'_> {
    fn warn_of_settings(&mut self) {
        for warning in self.session.take_warnings() {
            terminal::say(format_args!("warning: {warning}"));
        }
    }

    fn run(&mut self, text: &str, name: &str) -> Result<()> {
        let pieces = split(text).context(name)?;
        for (done, piece) in pieces.iter().enumerate() {
            self.statement(piece).map_err(|error| failed(error, name, &pieces, done))?;
        }
        Ok(())
    }

    fn statement(&mut self, piece: &Piece<'_>) -> Result<()> {
        let answer = self.session.execute(&piece.statement()?)?;
        self.warn_of_settings();
        match answer {
            Answer::Done => {
                if self.is_interactive {
                    terminal::say("[INFO] Execute statement succeeded.");
                }
                Ok(())
            }
            Answer::Rows(_) if self.is_silent => Ok(()),
            Answer::Rows(rows) => render::rows(self.form()?, &rows),
            Answer::Select(job) | Answer::Insert(job) if self.kept.is_some() => {
                warn(&job);
                self.kept.get_or_insert_default().push(job);
                Ok(())
            }
            Answer::Select(job) | Answer::Insert(job) if self.args.check => self.check(&job),
            Answer::Select(job) => self.select(&job),
            Answer::Insert(job) => self.insert(&job),
        }
    }

    /// Answers about the one job of the script, which is asked for.
    fn answer(&self, kept: &[Job]) -> Result<ExitCode> {
        let [job] = kept else {
            return Err(Error::input(format!(
                "the script has {} jobs, and this is about one: put its INSERTs into one EXECUTE STATEMENT SET BEGIN … END",
                kept.len()
            )));
        };
        let launcher = self.launcher()?;
        let is_select = !job.schema.fields().is_empty();
        match &self.args.upgrade {
            Some(_) if is_select => Err(Error::input(
                "a SELECT ends with the client that shows its rows: only a job of INSERTs can be the new version of another",
            )),
            Some(old) => upgrade::run(self.args, old, job, &launcher, self.session.config().recovery()),
            None if is_select => execute::select(job, launcher, &COMPILED).map(|_| ExitCode::SUCCESS),
            None => execute::insert(job, &launcher, &COMPILED).map(|_| ExitCode::SUCCESS),
        }
    }

    /// Shows what a job would make of the savepoint that it would start from, if there is one.
    fn check(&mut self, job: &Job) -> Result<()> {
        warn(job);
        let recovery = self.session.config().recovery();
        let Some(savepoint) = &recovery.path else { return Ok(()) };
        let launcher = self.launcher()?;
        let allow_non_restored_state = recovery.allow_non_restored_state;
        let check = |manifest: &Manifest| execute::check(job, &launcher, manifest, allow_non_restored_state);
        let is_refused = check::print(self.args.format(), savepoint, check)?;
        self.is_refused |= is_refused;
        Ok(())
    }

    /// Refuses a job that cannot start from the savepoint that it is to start from.
    fn before_start(&self, job: &Job, launcher: &Launcher) -> Result<()> {
        let Recovery { path, allow_non_restored_state, .. } = self.session.config().recovery();
        let Some(savepoint) = path else { return Ok(()) };
        check::before_start(savepoint, |manifest| execute::check(job, launcher, manifest, *allow_non_restored_state))
    }

    fn select(&self, job: &Job) -> Result<()> {
        warn(job);
        let launcher = self.launcher()?;
        self.before_start(job, &launcher)?;
        let is_batch = self.session.config().value("execution.runtime-mode") == Some("batch");
        let form = self.form()?;
        let running = execute::select(job, launcher, &COMPILED)?;
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
        let launcher = self.launcher()?;
        self.before_start(job, &launcher)?;
        let outcome = execute::insert(job, &launcher, &COMPILED)?;
        if self.args.engine.jobmanager.is_some() && !self.is_silent {
            terminal::say(format_args!("Job ID: {}", outcome.job));
        }
        Ok(())
    }

    /// What runs the next job: from the savepoint that was SET for it.
    fn launcher(&self) -> Result<Launcher> {
        let config = self.session.config();
        let Recovery { path, allow_non_restored_state, claim_mode } = config.recovery().clone();
        // What was given is in the session's settings already, where a script may have SET it anew.
        let mut engine = EngineArgs {
            define: Vec::new(),
            parallelism: None,
            savepoint: path,
            allow_non_restored_state,
            claim_mode,
            is_interactive: self.is_interactive,
            ..self.args.engine.clone()
        };
        engine.detached |= config.value("table.dml-sync").is_none_or(|value| !value.eq_ignore_ascii_case("true"));
        Launcher::new(engine)
    }
}

/// What the user should know of a job, which is no error.
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
