//! `flott upgrade`: the same job in a new version, from where the old one stopped; or the old one again.
//!
//! Everything that can be found out before the old job stops is: the new graph, the upload, and by a savepoint that
//! the job does not notice whether its state fits. What is left is then in the gap: the stop, and the start.
//!
//! - `steps`: what has been done, and how long it took
//! - `by_hand`: what to do if this process ends, or cannot go on
//! - `settle`: whether the old job has stopped, where the answer was lost
//! - `health`: whether the new job can work, and does

mod by_hand;
mod health;
mod settle;
mod steps;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use flott_checkpoint::Store;
use flott_control::{ClaimMode, JobSpec};
use flott_core::ids::JobId;
use flott_core::status::JobStatus;
use flott_core::time::parse_duration;
use flott_core::{Error, ErrorKind, Result, ResultExt};
use flott_graph::JobGraph;
use flott_local::check::RestoreReport;
use flott_local::client::{Client, Drain};
use serde_json::json;

use crate::output::{ClientArgs, Format};
use crate::plan::PlanArgs;
use crate::{block_on, cancel, check, format, jobs, run, terminal};
use by_hand::ByHand;
use health::{Health, check_slots, takes_checkpoints};
use settle::{last_savepoint, settle};
use steps::Steps;

pub(crate) const EXAMPLES: &str = "\
Examples:
  flott savepoint --check ./new-job SAVEPOINT              what would become of the state, before anything is done
  flott upgrade 'word count' ./new-job -- --input data.csv
  flott upgrade 1a2b3c ./new-job -p 8 --savepoint-dir s3://bucket/savepoints --timeout 5min

The job is stopped with a savepoint only after the new version has been checked against one. If the new version does not
run, and complete its first checkpoint, within the timeout, the old one is started again from the same savepoint.

Exit codes: 0 the new version runs, 1 it does not: the old one was left alone, or goes on again";

/// How long the old version may take to run again, at least: whatever the new one was given, it is known to work.
const BACK_TIMEOUT_MIN: Duration = Duration::from_secs(60);

/// How long a job whose stop is over, or was forgotten, is looked at until it counts as one that goes on.
const SETTLE_AFTER_STOP: Duration = Duration::from_secs(5);

/// The arguments.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The job: its id, the beginning of its id, or its name
    job: String,

    /// The new version's binary
    binary: PathBuf,

    /// The folder or URL that the savepoints get folders in; else execution.checkpointing.savepoint-dir
    #[arg(long, value_name = "DIR")]
    savepoint_dir: Option<String>,

    /// How long the new version may take to run and to complete its first checkpoint, at least 1s
    #[arg(long, value_name = "DURATION", value_parser = timeout, default_value = "60s")]
    timeout: Duration,

    /// Drops state that no operator of the new version claims
    #[arg(short = 'n', long = "allowNonRestoredState")]
    allow_non_restored_state: bool,

    #[command(flatten)]
    plan: PlanArgs,

    #[command(flatten)]
    client: ClientArgs,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let client = args.client.client()?;
    // A relative path means a folder here, not one of the JobManager's.
    let target = args.savepoint_dir.as_deref().map(Store::normalize).transpose()?;
    let graph = args.plan.plan(&args.binary)?;
    block_on(async {
        let job = jobs::find(&client, &args.job).await?;
        let upgrade = Upgrade { args, client, target, job, steps: Steps::default() };
        upgrade.run(graph).await
    })
}

/// A bare number is milliseconds, in which nothing starts.
fn timeout(text: &str) -> Result<Duration> {
    let timeout = parse_duration(text)?;
    if timeout < Duration::from_secs(1) {
        return Err(Error::input(format!("'{text}' is {timeout:?}, no version starts in that: give 1s or more")));
    }
    Ok(timeout)
}

/// The error with what to do below it.
fn hinted(error: Error, hint: impl std::fmt::Display) -> Error {
    Error { message: format!("{}\n{hint}", error.message), ..error }
}

/// The folder that a savepoint lies in.
fn parent(savepoint: &str) -> &str {
    savepoint.rsplit_once('/').map_or(savepoint, |(folder, _)| folder)
}

struct Upgrade<'a> {
    args: &'a Args,
    client: Client,
    /// Where savepoints go.
    target: Option<String>,
    /// The old job.
    job: JobId,
    steps: Steps,
}

/// What came of it, beside the steps.
struct Outcome<'a> {
    name: &'static str,
    text: String,
    new_job: Option<JobId>,
    savepoint: &'a str,
    report: &'a RestoreReport,
    reason: Option<String>,
    code: ExitCode,
}

impl Upgrade<'_> {
    async fn run(mut self, graph: JobGraph) -> Result<ExitCode> {
        let (status, _) = self.client.status(self.job).await?;
        if status != JobStatus::Running {
            return Err(self.not_running(status).await);
        }
        let not_stopped = format!("job {} was not stopped", self.job);
        let (prepared, report) = self.prepare(&graph).await.with_context(|| not_stopped.clone())?;
        if report.is_refused() {
            let outcome = Outcome {
                name: "refused",
                text: format!("The new version is refused, {not_stopped}"),
                new_job: None,
                savepoint: &prepared.savepoint,
                report: &report,
                reason: check::refusal(&report, &prepared.savepoint).err().map(|error| error.message),
                code: ExitCode::FAILURE,
            };
            return self.print(&outcome);
        }
        let savepoint = self.stop(&prepared.savepoint).await?;
        let by_hand = self.by_hand(&savepoint);
        terminal::say(by_hand.if_interrupted());
        let spec = JobSpec {
            graph,
            artifact: Some(prepared.artifact.clone()),
            args: self.args.plan.args.clone(),
            savepoint: Some(savepoint.clone()),
            allow_non_restored_state: self.args.allow_non_restored_state,
            claim_mode: ClaimMode::NoClaim,
        };
        let (new_job, reason) = match self.client.submit(&spec).await {
            Ok(new_job) => {
                let mut health = Health::new(&self.client, new_job, prepared.takes_checkpoints, self.args.timeout);
                let healthy = self.steps.step("new version", format!("waiting for job {new_job}"), health.wait()).await;
                self.steps.gap_ended(health.running_since());
                match healthy {
                    Ok(()) => return self.upgraded(new_job, &savepoint, &report),
                    Err(error) => (Some(new_job), error.message),
                }
            }
            // The cluster has looked at it and said no.
            Err(error) if error.kind == ErrorKind::Input => (None, error.message),
            // Nobody knows whether it was accepted, and both versions must not run at once.
            Err(error) => return Err(hinted(error, by_hand.undecided("new"))),
        };
        self.back(new_job, &savepoint, &report, reason).await
    }

    /// Everything before the old job is touched.
    async fn prepare(&mut self, graph: &JobGraph) -> Result<(Prepared, RestoreReport)> {
        check_slots(&self.client, self.job, graph).await?;
        let takes_checkpoints = takes_checkpoints(&self.client, graph).await?;
        let artifact = run::upload(&self.client, &self.args.binary).await?;
        let taken = self.client.savepoint(self.job, self.target.as_deref(), None);
        let taken = self.steps.step("savepoint to check", "taking a savepoint".to_owned(), taken).await;
        let savepoint = taken.context("the savepoint to check the new version against failed")?;
        let loaded = Store::default().load_manifest(&savepoint, None).await;
        let (_, manifest) =
            loaded.context("the savepoint cannot be read here, so the new version cannot be checked")?;
        let report = self.args.plan.check(&self.args.binary, &manifest, self.args.allow_non_restored_state)?;
        if self.args.client.format.output == Format::Text {
            terminal::say(check::table(&report));
        }
        Ok((Prepared { artifact, savepoint, takes_checkpoints }, report))
    }

    /// Stops the old job; returns its last savepoint. `checked` is the one before.
    async fn stop(&mut self, checked: &str) -> Result<String> {
        let (by_hand, folder) = (self.by_hand(by_hand::UNKNOWN), parent(checked));
        // From here on it matters if this process dies.
        terminal::say(by_hand.before_stop(folder, checked));
        let trigger = self.client.trigger_savepoint(self.job, self.target.as_deref(), Some(Drain(false))).await;
        self.steps.gap_begins();
        let (error, patience) = match trigger {
            Ok(trigger) => {
                let stopping = self.client.savepoint_location(self.job, &trigger);
                let doing = format!("stopping job {}", self.job);
                match self.steps.step("stop with savepoint", doing, stopping).await {
                    Ok(savepoint) => return Ok(savepoint),
                    Err(error) => (error, SETTLE_AFTER_STOP),
                }
            }
            // The cluster has looked at it and said no.
            Err(error) if error.kind == ErrorKind::Input => {
                return Err(error.context(format!("job {} was not stopped", self.job)));
            }
            // It may have been accepted, and be under way.
            Err(error) => (error, self.args.timeout),
        };
        terminal::say(format_args!("{error}\nlooking what has become of job {}", self.job));
        let settled = settle(&self.client, self.job, checked, patience).await;
        settled.map_err(|unsettled| hinted(unsettled.context(error), by_hand.stop_unknown(folder, checked)))
    }

    /// The error for a job that has ended, or does not run at the moment.
    async fn not_running(&self, status: JobStatus) -> Error {
        let job = self.job;
        if !status.is_terminal() {
            return Error::input(format!("job {job} is {status}: only a running job can be upgraded"));
        }
        let savepoint = match last_savepoint(&self.client, job).await {
            Ok(Some(savepoint)) => format!(", {savepoint}"),
            _ => String::new(),
        };
        Error::input(format!(
            "job {job} is {status}: only a running job can be upgraded. `flott run -s` starts a new version from its last savepoint{savepoint}"
        ))
    }

    fn by_hand(&self, savepoint: &str) -> ByHand {
        let Args { binary, plan, allow_non_restored_state, .. } = self.args;
        ByHand::new(&self.client, self.job, savepoint, binary, plan, *allow_non_restored_state)
    }

    fn upgraded(&self, new_job: JobId, savepoint: &str, report: &RestoreReport) -> Result<ExitCode> {
        let gap = self.steps.gap().map(|gap| format!(" after a gap of {}", format::duration(gap)));
        self.print(&Outcome {
            name: "upgraded",
            text: format!("Job {} is upgraded: job {new_job} runs{}", self.job, gap.unwrap_or_default()),
            new_job: Some(new_job),
            savepoint,
            report,
            reason: None,
            code: ExitCode::SUCCESS,
        })
    }

    /// Starts the old version again.
    async fn back(
        mut self,
        new_job: Option<JobId>,
        savepoint: &str,
        report: &RestoreReport,
        reason: String,
    ) -> Result<ExitCode> {
        terminal::say(format_args!("the new version does not work, going back to the old one: {reason}"));
        let by_hand = self.by_hand(savepoint);
        if let Some(new_job) = new_job {
            self.end(new_job).await.map_err(|error| hinted(error, by_hand.new_may_run(new_job)))?;
        }
        let restarted = self.client.restart(self.job, savepoint).await;
        let again = restarted.map_err(|error| match error.kind {
            // The cluster has looked at it and said no.
            ErrorKind::Input => hinted(error, by_hand.old()),
            _ => hinted(error, by_hand.undecided("old")),
        })?;
        let mut health = Health::new(&self.client, again, false, self.args.timeout.max(BACK_TIMEOUT_MIN));
        let running = self.steps.step("old version", format!("waiting for job {again}"), health.wait()).await;
        running.map_err(|error| match error.kind {
            // It has ended again.
            ErrorKind::UserCode => hinted(error, by_hand.old()),
            _ => hinted(error, by_hand.old_is_started(again)),
        })?;
        self.print(&Outcome {
            name: "rolled-back",
            text: format!(
                "The new version does not work: {reason}\nThe old version goes on as job {again} from {savepoint}"
            ),
            new_job: Some(again),
            savepoint,
            report,
            reason: Some(reason),
            code: ExitCode::FAILURE,
        })
    }

    /// Cancels the new job, and waits until nothing of it is left: two versions must not write at once.
    async fn end(&self, new_job: JobId) -> Result<()> {
        let (status, _) = self.client.status(new_job).await?;
        if !status.is_terminal() {
            // It may end by itself right now: what counts is that it has ended.
            let cancelled = self.client.cancel(new_job).await;
            let status = cancel::wait(&self.client, new_job).await?;
            if !status.is_terminal() {
                cancelled?;
                return Err(Error::system(format!("job {new_job} is {status}, it does not end")));
            }
        }
        if health::has_checkpoint(&self.client, new_job).await {
            terminal::say(
                "warning: the new version had completed a checkpoint: what it wrote since the savepoint is written again",
            );
        }
        Ok(())
    }

    fn print(&self, outcome: &Outcome<'_>) -> Result<ExitCode> {
        let value = json!({
            "outcome": outcome.name,
            "job": self.job.to_string(),
            "new-job": outcome.new_job.map(|job| job.to_string()),
            "savepoint": outcome.savepoint,
            "savepointDir": parent(outcome.savepoint),
            "gap": self.steps.gap().map(millis),
            "steps": self.steps.json(),
            "check": check::json(outcome.report),
            "reason": outcome.reason,
        });
        self.args.client.print(&outcome.text, &value)?;
        Ok(outcome.code)
    }
}

/// What is known before the old job is stopped.
struct Prepared {
    /// The new binary's SHA-256.
    artifact: String,
    /// The savepoint that the new version was checked against.
    savepoint: String,
    /// Whether the new job takes checkpoints, so that its first one is waited for.
    takes_checkpoints: bool,
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_is_long_enough_for_a_start() {
        assert_eq!(timeout("1s").unwrap(), Duration::from_secs(1));
        let error = timeout("30").unwrap_err().to_string();
        assert_eq!(error, "'30' is 30ms, no version starts in that: give 1s or more");
        assert!(timeout("0s").is_err());
    }

    #[test]
    fn what_to_do_stands_below_the_error() {
        let error = hinted(Error::system("away"), "look");
        assert_eq!((error.kind, error.message.as_str()), (ErrorKind::System, "away\nlook"));
        assert_eq!(parent("s3://b/savepoints/savepoint-1"), "s3://b/savepoints");
    }
}
