//! `flott upgrade`: the same job in a new version, from where the old one stopped; or the old one again.
//!
//! Everything that can be found out before the old job stops is: the new graph, the upload, and by a savepoint that
//! the job does not notice whether its state fits. What is left is then in the gap: the stop, and the start.
//!
//! - `steps`: what has been done, how long it took, and what to do by hand if this process ends
//! - `health`: whether the new job works

mod health;
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
use health::{Health, takes_checkpoints};
use steps::{ByHand, Steps};

pub(crate) const EXAMPLES: &str = "\
Examples:
  flott savepoint --check ./new-job SAVEPOINT              what would become of the state, before anything is done
  flott upgrade 'word count' ./new-job -- --input data.csv
  flott upgrade 1a2b3c ./new-job -p 8 --savepoint-dir s3://bucket/savepoints --timeout 5min

The job is stopped with a savepoint only after the new version has been checked against one. If the new version does not
run, and complete its first checkpoint, within the timeout, the old one is started again from the same savepoint.

Exit codes: 0 the new version runs, 1 it does not: the old one was left alone, or goes on again";

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

    /// How long the new version may take to run and to complete its first checkpoint
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, default_value = "60s")]
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
        let unharmed = format!("job {} runs on unharmed", self.job);
        let (prepared, report) = self.prepare(&graph).await.with_context(|| unharmed.clone())?;
        if report.is_refused() {
            let outcome = Outcome {
                name: "refused",
                text: format!("The new version is refused, {unharmed}"),
                new_job: None,
                savepoint: &prepared.savepoint,
                report: &report,
                reason: check::refusal(&report, &prepared.savepoint).err().map(|error| error.message),
                code: ExitCode::FAILURE,
            };
            return self.print(&outcome);
        }
        let trigger = self.client.trigger_savepoint(self.job, self.target.as_deref(), Some(Drain(false))).await;
        let trigger = trigger.with_context(|| unharmed)?;
        self.steps.gap_begins();
        let savepoint = self.stopped(&trigger).await?;

        let by_hand = ByHand::new(&self.client, self.job, &savepoint, &self.args.binary);
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
            Err(error) => return Err(error.context(by_hand.undecided())),
        };
        self.back(new_job, &savepoint, &report, reason).await
    }

    /// Everything before the old job is touched.
    async fn prepare(&mut self, graph: &JobGraph) -> Result<(Prepared, RestoreReport)> {
        let (status, _) = self.client.status(self.job).await?;
        if status != JobStatus::Running {
            return Err(Error::input(format!("it is {status}: only a running job can be upgraded")));
        }
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

    /// Waits for the old job's end; returns its savepoint.
    async fn stopped(&mut self, trigger: &str) -> Result<String> {
        let stopping = self.client.savepoint_location(self.job, trigger);
        let stopped = self.steps.step("stop with savepoint", format!("stopping job {}", self.job), stopping).await;
        let error = match stopped {
            Ok(savepoint) => return Ok(savepoint),
            Err(error) => error,
        };
        // The JobManager may have died meanwhile, and the stop have been done all the same.
        Err(match self.client.status(self.job).await {
            Ok((status, _)) if status.is_terminal() => error.context(format!(
                "job {} has stopped, but its last savepoint is not known: look for the newest one in {}, and start from it with `flott run -s`",
                self.job,
                self.target.as_deref().unwrap_or("execution.checkpointing.savepoint-dir")
            )),
            _ => error.context(format!("job {} was not stopped, and goes on", self.job)),
        })
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
        let by_hand = ByHand::new(&self.client, self.job, savepoint, &self.args.binary).old();
        if let Some(new_job) = new_job {
            self.end(new_job).await.with_context(|| by_hand.clone())?;
        }
        let restarted = self.client.restart(self.job, savepoint).await;
        let again = restarted.with_context(|| by_hand.clone())?;
        let mut health = Health::new(&self.client, again, false, self.args.timeout);
        let running = self.steps.step("old version", format!("waiting for job {again}"), health.wait()).await;
        running.with_context(|| by_hand.clone())?;
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
