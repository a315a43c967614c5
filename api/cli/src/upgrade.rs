//! `flott upgrade`: the same job in a new version, from where the old one stopped; or the old one again.
//!
//! Everything that can be found out before the old job stops is: the new graph, the upload, and by a savepoint that
//! the job does not notice whether its state fits. What is left is then in the gap: the stop, and the start.
//!
//! What is asked for when is decided by [`flott_control::upgrade`]; here it is asked for, and told to the user.
//!
//! - `version`: the new version, a binary or the job of a SQL script
//! - `steps`: what has been done, and how long it took
//! - `by_hand`: what to do if this process ends, or cannot go on
//! - `look`: what can be seen of a job
//! - `health`: whether the new job could work

mod by_hand;
mod health;
mod look;
mod steps;
mod version;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use flott_checkpoint::Store;
use flott_control::upgrade::{Answer, Ask, Outcome, Seen, Step, Upgrade, Version};
use flott_control::{ClaimMode, JobSpec};
use flott_core::ids::JobId;
use flott_core::status::JobStatus;
use flott_core::time::parse_duration;
use flott_core::{Error, ErrorKind, Result, ResultExt};
use flott_local::check::RestoreReport;
use flott_local::client::{Client, Drain};
use serde_json::json;

use crate::output::{ClientArgs, Format};
use crate::plan::PlanArgs;
use crate::{block_on, check, format, jobs, run, terminal};
use by_hand::ByHand;
pub(crate) use by_hand::Start;
use health::{check_slots, takes_checkpoints};
use look::look;
use steps::Steps;
pub(crate) use version::NewVersion;

pub(crate) const EXAMPLES: &str = "\
Examples:
  flott savepoint --check ./new-job SAVEPOINT              what would become of the state, before anything is done
  flott upgrade 'word count' ./new-job -- --input data.csv
  flott upgrade 1a2b3c ./new-job -p 8 --savepoint-dir s3://bucket/savepoints --timeout 5min

The job is stopped with a savepoint only after the new version has been checked against one. If the new version does not
run, and complete its first checkpoint, within the timeout, the old one is started again from the same savepoint.

`flott sql --upgrade` does the same with the job of a SQL script.

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

/// Which job is to become what, and how.
pub(crate) struct Order<'a> {
    /// The job, as users name it.
    pub(crate) job: &'a str,
    pub(crate) client: Client,
    /// What the result is printed as.
    pub(crate) format: Format,
    /// Where savepoints go; else execution.checkpointing.savepoint-dir.
    pub(crate) target: Option<String>,
    /// How long the new version may take.
    pub(crate) timeout: Duration,
    pub(crate) version: NewVersion<'a>,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    replace(Order {
        job: &args.job,
        client: args.client.client()?,
        format: args.client.format.output,
        target: target(args.savepoint_dir.as_deref())?,
        timeout: args.timeout,
        version: NewVersion::of_binary(&args.binary, &args.plan, args.allow_non_restored_state)?,
    })
}

/// Replaces a job; the exit code tells whether its new version runs.
pub(crate) fn replace(order: Order<'_>) -> Result<ExitCode> {
    block_on(async { Upgrading::prepare(order).await?.run().await })
}

/// A relative path means a folder here, not one of the JobManager's.
pub(crate) fn target(folder: Option<&str>) -> Result<Option<String>> {
    folder.map(Store::normalize).transpose()
}

/// A bare number is milliseconds, in which nothing starts.
pub(crate) fn timeout(text: &str) -> Result<Duration> {
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

/// The client's side of an upgrade: it asks for what the machine wants.
struct Upgrading<'a> {
    order: Order<'a>,
    /// The old job, the new version's, and the old version's should it have to run again.
    job: JobId,
    new_job: JobId,
    again: JobId,
    /// The id of the stop, so that it can be asked for again.
    trigger: String,
    /// The new binary's SHA-256.
    artifact: String,
    report: RestoreReport,
    machine: Upgrade,
    steps: Steps,
}

/// What is printed of an outcome, beside the steps.
struct Printed {
    name: &'static str,
    text: String,
    new_job: Option<JobId>,
    savepoint: String,
    reason: Option<String>,
    code: ExitCode,
}

impl<'a> Upgrading<'a> {
    /// Everything that can be found out before the cluster is asked for anything.
    async fn prepare(order: Order<'a>) -> Result<Self> {
        let Order { client, version, .. } = &order;
        let job = jobs::find(client, order.job).await?;
        let seen = look(client, job).await?;
        if seen.status != JobStatus::Running {
            return Err(not_running(job, &seen));
        }
        let not_stopped = || not_stopped(job);
        let graph = &version.planned.graph;
        check_slots(client, job, graph).await.with_context(not_stopped)?;
        let takes_checkpoints = takes_checkpoints(client, graph).await.with_context(not_stopped)?;
        let artifact = run::upload(client, &version.binary).await.with_context(not_stopped)?;
        let random_id = || JobId(flott_env::random_id());
        let (new_job, again) = (random_id(), random_id());
        Ok(Self {
            job,
            new_job,
            again,
            trigger: random_id().to_string(),
            artifact,
            report: RestoreReport::default(),
            machine: Upgrade::new(job, [new_job, again], takes_checkpoints, order.timeout),
            steps: Steps::default(),
            order,
        })
    }

    async fn run(mut self) -> Result<ExitCode> {
        let mut next = Step::Ask(Duration::ZERO, self.machine.begin());
        loop {
            self.steps.enter(&next, &self.doing(&next));
            let (pause, asked) = match next {
                Step::Ask(pause, asked) => (pause, asked),
                Step::End(outcome) => return self.conclude(outcome),
            };
            flott_env::sleep(pause).await;
            self.announce(&asked);
            let answer = self.ask(&asked).await;
            self.explain(&asked, &answer);
            next = self.machine.step(flott_env::monotonic(), answer);
        }
    }

    async fn ask(&mut self, asked: &Ask) -> Result<Answer> {
        let (client, target) = (&self.order.client, self.order.target.as_deref());
        match asked {
            Ask::Savepoint => {
                let taken = client.savepoint(self.job, target, None).await;
                let taken = taken.context("the savepoint to check the new version against failed")?;
                return Ok(Answer::Savepoint(taken));
            }
            Ask::Check(savepoint) => return self.check(savepoint).await.map(Answer::Fits),
            Ask::StopResult => {
                let location = client.savepoint_location(self.job, &self.trigger).await;
                return location.map(Answer::Savepoint);
            }
            Ask::Look(job) => return look(client, *job).await.map(Answer::Job),
            Ask::Stop => drop(client.trigger_stop(self.job, target, Drain(false), Some(&self.trigger)).await?),
            Ask::Start(job, savepoint) => client.submit_as(*job, &self.spec(savepoint)).await?,
            Ask::Checkpoint(job) => drop(client.post(&format!("/jobs/{job}/checkpoints"), &json!({})).await?),
            Ask::Withdraw(job) => client.withdraw(*job).await?,
            Ask::Restart(job, savepoint) => client.restart(self.job, savepoint, *job).await?,
        }
        Ok(Answer::Done)
    }

    /// Whether the new version can start from the savepoint.
    async fn check(&mut self, savepoint: &str) -> Result<bool> {
        let loaded = Store::default().load_manifest(savepoint, None).await;
        let (_, manifest) =
            loaded.context("the savepoint cannot be read here, so the new version cannot be checked")?;
        self.report = (self.order.version.check)(&manifest)?;
        if self.order.format == Format::Text {
            terminal::say(check::table(&self.report));
        }
        Ok(!self.report.is_refused())
    }

    fn spec(&self, savepoint: &str) -> JobSpec {
        let NewVersion { planned, allow_non_restored_state, .. } = &self.order.version;
        JobSpec {
            graph: planned.graph.clone(),
            artifact: Some(self.artifact.clone()),
            args: planned.recipe.arguments.clone(),
            payload: planned.recipe.payload.clone(),
            savepoint: Some(savepoint.to_owned()),
            allow_non_restored_state: *allow_non_restored_state,
            claim_mode: ClaimMode::NoClaim,
        }
    }

    /// What is shown while it goes on.
    fn doing(&self, next: &Step) -> String {
        match next {
            Step::Ask(_, Ask::Savepoint) => "taking a savepoint".to_owned(),
            Step::Ask(_, Ask::Stop) => format!("stopping job {}", self.job),
            Step::Ask(_, Ask::Start(job, _) | Ask::Restart(job, _)) => format!("waiting for job {job}"),
            Step::Ask(_, Ask::Withdraw(job)) => format!("cancelling job {job}"),
            _ => String::new(),
        }
    }

    /// Tells what matters if this process dies in the next step, once.
    fn announce(&mut self, asked: &Ask) {
        let text = match asked {
            Ask::Stop => {
                let checked = self.machine.checked().unwrap_or_default();
                self.by_hand(by_hand::UNKNOWN).before_stop(parent(checked), checked)
            }
            Ask::Start(_, savepoint) => self.by_hand(savepoint).if_interrupted(),
            Ask::Withdraw(_) | Ask::Restart(..) => {
                let reason = self.machine.going_back().unwrap_or_default();
                format!("the new version does not work, going back to the old one: {reason}")
            }
            _ => return,
        };
        self.steps.say_once(text);
    }

    /// Tells of an answer that was lost, or of a stop that failed.
    fn explain(&mut self, asked: &Ask, answer: &Result<Answer>) {
        let Err(error) = answer else { return };
        match asked {
            Ask::StopResult => {
                self.steps.say_once(format!("{error}\nlooking what has become of job {}", self.job));
            }
            Ask::Stop | Ask::Start(..) | Ask::Restart(..) if error.kind == ErrorKind::System => {
                self.steps.say_once(format!("{error}\ntrying again"));
            }
            _ => {}
        }
    }

    fn by_hand(&self, savepoint: &str) -> ByHand {
        let NewVersion { start, allow_non_restored_state, .. } = &self.order.version;
        ByHand::new(&self.order.client, [self.job, self.again], savepoint, start, *allow_non_restored_state)
    }

    fn conclude(&self, outcome: Outcome) -> Result<ExitCode> {
        let checked = self.machine.checked().unwrap_or_default();
        let savepoint = self.machine.savepoint().unwrap_or(checked).to_owned();
        let by_hand = self.by_hand(&savepoint);
        let (job, new_job, again) = (self.job, self.new_job, self.again);
        let printed = match outcome {
            Outcome::NotStopped(error) => return Err(error.context(not_stopped(job))),
            Outcome::Ended(error) => return Err(hinted(error, "The new version was not started")),
            Outcome::StopUnknown(error) => {
                let by_hand = self.by_hand(by_hand::UNKNOWN);
                return Err(hinted(error, by_hand.stop_unknown(parent(checked), checked)));
            }
            Outcome::NewEnded(error) => return Err(hinted(error, by_hand.new_counts(new_job))),
            Outcome::NotWithdrawn(error) => return Err(hinted(error, by_hand.new_may_run(new_job))),
            Outcome::StartUnknown(Version::New, error) => return Err(hinted(error, by_hand.undecided("new"))),
            Outcome::StartUnknown(Version::Old, error) => return Err(hinted(error, by_hand.undecided("old"))),
            Outcome::OldEnded(error) => return Err(hinted(error, by_hand.old())),
            Outcome::OldSlow(error) => return Err(hinted(error, by_hand.old_is_started(again))),
            Outcome::Refused => Printed {
                name: "refused",
                text: format!("The new version is refused, {}", not_stopped(job)),
                new_job: None,
                reason: check::refusal(&self.report, &savepoint).err().map(|error| error.message),
                savepoint,
                code: ExitCode::FAILURE,
            },
            Outcome::Upgraded => {
                let gap = self.machine.gap().map(|gap| format!(" after a gap of {}", format::duration(gap)));
                Printed {
                    name: "upgraded",
                    text: format!("Job {job} is upgraded: job {new_job} runs{}", gap.unwrap_or_default()),
                    new_job: Some(new_job),
                    savepoint,
                    reason: None,
                    code: ExitCode::SUCCESS,
                }
            }
            Outcome::RolledBack(reason) => Printed {
                name: "rolled-back",
                text: format!(
                    "The new version does not work: {reason}\nThe old version goes on as job {again} from {savepoint}"
                ),
                new_job: Some(again),
                savepoint,
                reason: Some(reason),
                code: ExitCode::FAILURE,
            },
        };
        self.print(&printed)
    }

    fn print(&self, printed: &Printed) -> Result<ExitCode> {
        let value = json!({
            "outcome": printed.name,
            "job": self.job.to_string(),
            "new-job": printed.new_job.map(|job| job.to_string()),
            "savepoint": printed.savepoint,
            "savepointDir": parent(&printed.savepoint),
            "gap": self.machine.gap().map(millis),
            "steps": self.steps.json(),
            "check": check::json(&self.report),
            "reason": printed.reason,
        });
        self.order.format.print(&printed.text, &value)?;
        Ok(printed.code)
    }
}

fn not_stopped(job: JobId) -> String {
    format!("job {job} was not stopped")
}

/// The error for a job that has ended, or does not run at the moment.
fn not_running(job: JobId, seen: &Seen) -> Error {
    let way_out = match seen.stopped_with() {
        Some(savepoint) => {
            format!(
                ". `flott run -s` or `flott sql -s` starts a new version from the savepoint that it was stopped with, {savepoint}"
            )
        }
        None => String::new(),
    };
    Error::input(format!("job {job} is {}: only a running job can be upgraded{way_out}", seen.status))
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
