//! What an upgrade asks for, what it is answered, and how it ends.

use std::time::Duration;

use flott_core::Error;
use flott_core::ids::{CheckpointId, JobId};
use flott_core::status::JobStatus;

/// What to ask for. All but [`Ask::Check`] goes to the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ask {
    /// A savepoint of the old job, which goes on: [`Answer::Savepoint`].
    Savepoint,
    /// Whether the new version can start from this savepoint: [`Answer::Fits`].
    Check(String),
    /// The old job's stop with a savepoint: [`Answer::Done`] when it is accepted. Asked again, it must be the same stop.
    Stop,
    /// The end of that stop: [`Answer::Savepoint`].
    StopResult,
    /// What a job is doing: [`Answer::Job`].
    Look(JobId),
    /// The start of the new version from the savepoint under this id: [`Answer::Done`]. Asked again, it must be the same start.
    Start(JobId, String),
    /// A checkpoint of the new version, rather than to wait for its interval: [`Answer::Done`].
    Checkpoint(JobId),
    /// The end of the new version, unless it has completed a checkpoint: [`Answer::Done`].
    Withdraw(JobId),
    /// The start of the old version from the savepoint under this id: [`Answer::Done`]. Asked again, it must be the same start.
    Restart(JobId, String),
}

/// What the answer is, if there is one. An error of the kind `System` says that nobody knows whether what was asked for will
/// happen; any other one that it will not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It is accepted.
    Done,
    /// The folder of a savepoint that is complete.
    Savepoint(String),
    /// Whether the new version can start.
    Fits(bool),
    /// What a job is doing.
    Job(Seen),
}

/// What can be seen of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Its state.
    pub status: JobStatus,
    /// The last checkpoint that it completed, savepoints apart.
    pub checkpoint: Option<CheckpointId>,
    /// The last savepoint that it completed.
    pub savepoint: Option<LastSavepoint>,
    /// What it waits for, such as slots.
    pub waiting_for: Option<String>,
    /// Its last failure.
    pub failure: Option<String>,
}

/// The last savepoint of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastSavepoint {
    /// Its number.
    pub id: CheckpointId,
    /// Its folder.
    pub location: String,
    /// Whether the job was to stop with it. It may have failed on the way, and gone on.
    pub ends_job: bool,
}

impl Seen {
    /// The savepoint that the job was stopped with, if it was: it did nothing that counts after that one.
    pub fn stopped_with(&self) -> Option<&str> {
        let savepoint = self.savepoint.as_ref().filter(|savepoint| savepoint.ends_job)?;
        let is_last = self.checkpoint.is_none_or(|checkpoint| checkpoint < savepoint.id);
        (self.status == JobStatus::Finished && is_last).then_some(&savepoint.location)
    }

    /// Whether what it wrote counts.
    pub(super) fn has_counted(&self) -> bool {
        self.checkpoint.is_some() || self.status == JobStatus::Finished
    }

    /// What it waits for and its last failure, to be put behind a message.
    pub(super) fn trouble(&self) -> String {
        let waiting = self.waiting_for.as_deref().map(|what| format!("; it {what}")).unwrap_or_default();
        waiting + &self.failure.as_deref().map(|text| format!("; its last failure: {text}")).unwrap_or_default()
    }
}

/// One of the two versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// The one that runs before the upgrade.
    Old,
    /// The one that is to run after it.
    New,
}

/// How an upgrade ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The new version cannot start from the savepoint. The old job has not noticed.
    Refused,
    /// The old job was left alone.
    NotStopped(Error),
    /// The old job ended, but not by the stop.
    Ended(Error),
    /// The stop did not come to an end that is known: look for the old job, and if it is gone, for its savepoint.
    StopUnknown(Error),
    /// The new version runs.
    Upgraded,
    /// The new version completed a checkpoint and ended after that. To go back would write its output twice.
    NewEnded(Error),
    /// The new version may still run, so the old one was not started.
    NotWithdrawn(Error),
    /// The new version does not work, for this reason; the old one runs again.
    RolledBack(String),
    /// It is not known whether the start of a version was accepted, or will be.
    StartUnknown(Version, Error),
    /// Nothing runs: the old version was refused, or has ended again.
    OldEnded(Error),
    /// The old version was accepted, and may still come up.
    OldSlow(Error),
}

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Ask for this, after a pause.
    Ask(Duration, Ask),
    /// The upgrade is over.
    End(Outcome),
}
