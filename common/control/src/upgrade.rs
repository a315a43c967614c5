//! The upgrade of a job to a new version, as its client drives it.
//!
//! [`Upgrade`] takes the cluster's answers and says what to ask for next, one thing at a time: a savepoint, the check of the
//! new version against it, the stop, the start, and the way back. It has no clock and sends nothing, so `flott upgrade`
//! and the simulator drive the same machine.
//!
//! Whatever is lost on the way, and whoever dies:
//!
//! - **Never two versions at once.** A start whose answer was lost is repeated under the same id, which is the same start.
//!   The old version is started again only when the new one has ended, or the cluster has said that there is none.
//! - **Never none without a word.** The upgrade ends with one of the two versions, or with an [`Outcome`] that says what
//!   is known and from which savepoint to go on.
//! - **Nothing twice.** A new version that has completed a checkpoint stays: what it wrote counts. It can only be withdrawn
//!   before, and the JobManager, which alone knows, decides that.
//! - **If the client dies**, the job is left in one of the two versions, or stopped with a savepoint. Before [`Ask::Stop`] the
//!   user has to be told where that savepoint will be, and before [`Ask::Start`] its name. Nothing goes back by itself then.

mod values;

use std::time::Duration;

use flott_core::ids::JobId;
use flott_core::status::JobStatus;
use flott_core::{Error, ErrorKind, Result};

pub use values::{Answer, Ask, LastSavepoint, Outcome, Seen, Step, Version};

/// How often the new version is looked at: the gap is measured by it.
const LOOK_PAUSE: Duration = Duration::from_millis(20);

/// How long to wait before something is asked for again.
const REPEAT_PAUSE: Duration = Duration::from_millis(100);

/// How long a job whose stop failed, or was forgotten, is looked at until it counts as one that goes on.
const SETTLE_MAX: Duration = Duration::from_secs(5);

/// How long the new version may take to end: functions of the user may take their time to stop.
const WITHDRAW_MAX: Duration = Duration::from_secs(30);

/// How long the old version may take to run again, at least: whatever the new one was given, it is known to work.
const BACK_TIMEOUT_MIN: Duration = Duration::from_secs(60);

/// How long a JobManager may be away: time enough to start it again.
const OUTAGE_MAX: Duration = Duration::from_secs(60);

#[derive(Clone, Debug)]
enum Phase {
    Checking,
    /// `is_doubtful`, here and below: it was asked for before, and no answer came.
    Stopping {
        is_doubtful: bool,
    },
    Stopped,
    /// The stop's end is not known; this was the answer. It is looked for since then.
    Settling {
        error: Error,
        since: Option<Duration>,
    },
    Starting {
        is_doubtful: bool,
    },
    /// An execution of the new version is asked for a checkpoint once.
    Watching {
        deadline: Duration,
        is_asked: bool,
    },
    /// `is_look`: whether the job was looked at, not told to end. It has not ended since then.
    Withdrawing {
        reason: String,
        since: Option<Duration>,
        is_look: bool,
    },
    Restarting {
        reason: String,
        is_doubtful: bool,
    },
    WatchingOld {
        reason: String,
        deadline: Duration,
    },
}

/// See the module's documentation.
#[derive(Clone, Debug)]
pub struct Upgrade {
    old: JobId,
    /// The new version's job, and that of the old version after it.
    new: JobId,
    again: JobId,
    needs_checkpoint: bool,
    timeout: Duration,
    phase: Phase,
    checked: Option<String>,
    savepoint: Option<String>,
    stop_accepted: Option<Duration>,
    running_since: Option<Duration>,
    away_since: Option<Duration>,
}

impl Upgrade {
    /// The upgrade of `old`. Nobody else may know the ids `new`, of the new version, and `again`, of the old one should it have
    /// to be started again. `timeout` is how long the new version may take to run and, if `needs_checkpoint`, to
    /// complete its first checkpoint.
    pub fn new(old: JobId, [new, again]: [JobId; 2], needs_checkpoint: bool, timeout: Duration) -> Self {
        Self {
            old,
            new,
            again,
            needs_checkpoint,
            timeout,
            phase: Phase::Checking,
            checked: None,
            savepoint: None,
            stop_accepted: None,
            running_since: None,
            away_since: None,
        }
    }

    /// What to ask for first.
    pub fn begin(&self) -> Ask {
        Ask::Savepoint
    }

    /// The savepoint that the new version was checked against.
    pub fn checked(&self) -> Option<&str> {
        self.checked.as_deref()
    }

    /// The savepoint that the old job was stopped with.
    pub fn savepoint(&self) -> Option<&str> {
        self.savepoint.as_deref()
    }

    /// Why the new version is given up, if it is.
    pub fn going_back(&self) -> Option<&str> {
        match &self.phase {
            Phase::Withdrawing { reason, .. }
            | Phase::Restarting { reason, .. }
            | Phase::WatchingOld { reason, .. } => Some(reason),
            _ => None,
        }
    }

    /// From the stop's acceptance until the new version ran, if it runs.
    pub fn gap(&self) -> Option<Duration> {
        Some(self.running_since?.saturating_sub(self.stop_accepted?))
    }

    /// Takes the answer to what was asked for, at a time since any beginning.
    pub fn step(&mut self, now: Duration, answer: Result<Answer>) -> Step {
        // The JobManager has answered, if only that it will not.
        let is_away = answer.as_ref().is_err_and(|error| error.kind == ErrorKind::System);
        if !is_away {
            self.away_since = None;
        }
        match self.phase.clone() {
            Phase::Checking => self.checking(answer),
            Phase::Stopping { is_doubtful } => self.stopping(now, answer, is_doubtful),
            Phase::Stopped => match answer {
                Ok(Answer::Savepoint(savepoint)) => self.start(savepoint),
                other => self.settle(unfit(other)),
            },
            Phase::Settling { error, since } => self.settling(now, answer, error, since),
            Phase::Starting { is_doubtful } => self.starting(now, answer, is_doubtful),
            Phase::Watching { deadline, is_asked } => self.watching(now, answer, deadline, is_asked),
            Phase::Withdrawing { reason, since, is_look } => self.withdrawing(now, answer, reason, since, is_look),
            Phase::Restarting { reason, is_doubtful } => self.restarting(now, answer, reason, is_doubtful),
            Phase::WatchingOld { reason, deadline } => self.watching_old(now, answer, reason, deadline),
        }
    }

    /// Whether a JobManager that does not answer may still be back in time.
    fn tolerates(&mut self, now: Duration, error: &Error) -> bool {
        let since = *self.away_since.get_or_insert(now);
        error.kind == ErrorKind::System && now.saturating_sub(since) < OUTAGE_MAX
    }

    fn checking(&mut self, answer: Result<Answer>) -> Step {
        match answer {
            Ok(Answer::Savepoint(savepoint)) => {
                self.checked = Some(savepoint.clone());
                ask(Ask::Check(savepoint))
            }
            Ok(Answer::Fits(true)) => {
                self.phase = Phase::Stopping { is_doubtful: false };
                ask(Ask::Stop)
            }
            Ok(Answer::Fits(false)) => Step::End(Outcome::Refused),
            other => Step::End(Outcome::NotStopped(unfit(other))),
        }
    }

    fn stopping(&mut self, now: Duration, answer: Result<Answer>, is_doubtful: bool) -> Step {
        // Without an answer it may have been accepted as well.
        self.stop_accepted.get_or_insert(now);
        match answer {
            Ok(_) => {
                self.phase = Phase::Stopped;
                ask(Ask::StopResult)
            }
            Err(error) if self.tolerates(now, &error) => {
                self.phase = Phase::Stopping { is_doubtful: true };
                Step::Ask(REPEAT_PAUSE, Ask::Stop)
            }
            Err(error) if error.kind == ErrorKind::System => Step::End(Outcome::StopUnknown(error)),
            // It was accepted before, perhaps, and is over.
            Err(error) if is_doubtful => self.settle(error),
            Err(error) => Step::End(Outcome::NotStopped(error)),
        }
    }

    fn settle(&mut self, error: Error) -> Step {
        self.phase = Phase::Settling { error, since: None };
        ask(Ask::Look(self.old))
    }

    fn settling(&mut self, now: Duration, answer: Result<Answer>, error: Error, since: Option<Duration>) -> Step {
        let old = self.old;
        let end = |outcome: fn(Error) -> Outcome, what: String| Step::End(outcome(error.clone().context(what)));
        match answer {
            Ok(Answer::Job(seen)) => {
                let since = since.unwrap_or(now);
                let status = seen.status;
                if let Some(savepoint) = seen.stopped_with() {
                    return self.start(savepoint.to_owned());
                }
                if status.is_terminal() {
                    return end(Outcome::Ended, format!("job {old} is {status}: it has ended, but not by the stop"));
                }
                if now.saturating_sub(since) >= SETTLE_MAX {
                    return end(
                        Outcome::StopUnknown,
                        format!("job {old} is {status}: as far as is known it was not stopped"),
                    );
                }
                self.phase = Phase::Settling { error, since: Some(since) };
            }
            other => {
                if !self.tolerates(now, &unfit(other)) {
                    return end(
                        Outcome::StopUnknown,
                        format!("it is not known whether job {old} was stopped, nor whether it runs"),
                    );
                }
            }
        }
        Step::Ask(REPEAT_PAUSE, Ask::Look(old))
    }

    fn start(&mut self, savepoint: String) -> Step {
        self.savepoint = Some(savepoint.clone());
        self.phase = Phase::Starting { is_doubtful: false };
        ask(Ask::Start(self.new, savepoint))
    }

    fn starting(&mut self, now: Duration, answer: Result<Answer>, is_doubtful: bool) -> Step {
        match answer {
            Ok(_) => {
                self.phase = Phase::Watching { deadline: now + self.timeout, is_asked: false };
                ask(Ask::Look(self.new))
            }
            Err(error) if self.tolerates(now, &error) => {
                self.phase = Phase::Starting { is_doubtful: true };
                Step::Ask(REPEAT_PAUSE, Ask::Start(self.new, self.savepoint.clone().unwrap_or_default()))
            }
            Err(error) if error.kind == ErrorKind::System => Step::End(Outcome::StartUnknown(Version::New, error)),
            Err(error) if is_doubtful => self.withdraw(error.message),
            // The cluster has looked at it and said no.
            Err(error) => self.restart(error.message),
        }
    }

    fn watching(&mut self, now: Duration, answer: Result<Answer>, deadline: Duration, is_asked: bool) -> Step {
        let missing = match answer {
            Ok(Answer::Job(seen)) if seen.status.is_terminal() => {
                return match self.new_ended(now, &seen) {
                    Some(outcome) => Step::End(outcome),
                    None => self.restart(ended(self.new, &seen).message),
                };
            }
            Ok(Answer::Job(seen)) if seen.status == JobStatus::Running => {
                self.running_since.get_or_insert(now);
                if !self.needs_checkpoint || seen.has_counted() {
                    return Step::End(Outcome::Upgraded);
                }
                if !is_asked {
                    self.phase = Phase::Watching { deadline, is_asked: true };
                    return ask(Ask::Checkpoint(self.new));
                }
                format!("it has not completed its first checkpoint{}", seen.trouble())
            }
            Ok(Answer::Job(seen)) => {
                self.running_since = None;
                self.phase = Phase::Watching { deadline, is_asked: false };
                format!("it is {}{}", seen.status, seen.trouble())
            }
            // The checkpoint, which comes or not.
            Ok(_) => "it has not completed its first checkpoint".to_owned(),
            Err(error) => {
                if error.kind != ErrorKind::System || self.tolerates(now, &error) {
                    error.message
                } else {
                    return self.withdraw(error.message);
                }
            }
        };
        if now >= deadline {
            return self.withdraw(format!("job {} does not work after {:?}: {missing}", self.new, self.timeout));
        }
        Step::Ask(LOOK_PAUSE, Ask::Look(self.new))
    }

    /// The new version has ended before it was known to work: what that means, unless that nothing of it counts.
    fn new_ended(&mut self, now: Duration, seen: &Seen) -> Option<Outcome> {
        if seen.status == JobStatus::Finished {
            self.running_since.get_or_insert(now);
            return Some(Outcome::Upgraded);
        }
        seen.has_counted().then(|| Outcome::NewEnded(ended(self.new, seen)))
    }

    fn withdraw(&mut self, reason: String) -> Step {
        self.phase = Phase::Withdrawing { reason, since: None, is_look: false };
        ask(Ask::Withdraw(self.new))
    }

    fn withdrawing(
        &mut self,
        now: Duration,
        answer: Result<Answer>,
        reason: String,
        since: Option<Duration>,
        is_look: bool,
    ) -> Step {
        let new = self.new;
        let seen = match answer {
            Ok(Answer::Job(seen)) => seen,
            Err(error) if error.kind == ErrorKind::System => {
                if !self.tolerates(now, &error) {
                    return Step::End(Outcome::NotWithdrawn(error));
                }
                self.phase = Phase::Withdrawing { reason, since, is_look: true };
                return Step::Ask(REPEAT_PAUSE, Ask::Look(new));
            }
            // There is no such job: its start, whose answer was lost, was refused.
            Err(_) if is_look => return self.restart(reason),
            // Accepted or refused, what counts is what becomes of the job.
            _ => {
                self.phase = Phase::Withdrawing { reason, since, is_look: true };
                return ask(Ask::Look(new));
            }
        };
        let status = seen.status;
        if status.is_terminal() {
            return match self.new_ended(now, &seen) {
                Some(outcome) => Step::End(outcome),
                None => self.restart(reason),
            };
        }
        if seen.has_counted() {
            return Step::End(Outcome::Upgraded);
        }
        let since = since.unwrap_or(now);
        if now.saturating_sub(since) >= WITHDRAW_MAX {
            let error = Error::system(format!("job {new} is {status}, it does not end"));
            return Step::End(Outcome::NotWithdrawn(error));
        }
        // A JobManager that was started again has forgotten it.
        let is_look = status == JobStatus::Cancelling;
        self.phase = Phase::Withdrawing { reason, since: Some(since), is_look };
        Step::Ask(REPEAT_PAUSE, if is_look { Ask::Look(new) } else { Ask::Withdraw(new) })
    }

    fn restart(&mut self, reason: String) -> Step {
        // What ran does not run any more.
        self.running_since = None;
        self.phase = Phase::Restarting { reason, is_doubtful: false };
        ask(self.again())
    }

    fn again(&self) -> Ask {
        Ask::Restart(self.again, self.savepoint.clone().unwrap_or_default())
    }

    fn restarting(&mut self, now: Duration, answer: Result<Answer>, reason: String, is_doubtful: bool) -> Step {
        match answer {
            Err(error) if self.tolerates(now, &error) => {
                self.phase = Phase::Restarting { reason, is_doubtful: true };
                Step::Ask(REPEAT_PAUSE, self.again())
            }
            Err(error) if error.kind == ErrorKind::System => Step::End(Outcome::StartUnknown(Version::Old, error)),
            Err(error) if !is_doubtful => Step::End(Outcome::OldEnded(error)),
            // It is accepted, or may have been.
            _ => {
                let deadline = now + self.timeout.max(BACK_TIMEOUT_MIN);
                self.phase = Phase::WatchingOld { reason, deadline };
                ask(Ask::Look(self.again))
            }
        }
    }

    fn watching_old(&mut self, now: Duration, answer: Result<Answer>, reason: String, deadline: Duration) -> Step {
        let again = self.again;
        let missing = match answer {
            Ok(Answer::Job(seen)) if matches!(seen.status, JobStatus::Running | JobStatus::Finished) => {
                return Step::End(Outcome::RolledBack(reason));
            }
            Ok(Answer::Job(seen)) if seen.status.is_terminal() => {
                return Step::End(Outcome::OldEnded(ended(again, &seen)));
            }
            Ok(Answer::Job(seen)) => format!("it is {}{}", seen.status, seen.trouble()),
            other => {
                let error = unfit(other);
                if error.kind != ErrorKind::System {
                    return Step::End(Outcome::OldEnded(error));
                }
                if !self.tolerates(now, &error) {
                    return Step::End(Outcome::OldSlow(error));
                }
                error.message
            }
        };
        if now >= deadline {
            return Step::End(Outcome::OldSlow(Error::system(format!("job {again} does not run yet: {missing}"))));
        }
        Step::Ask(LOOK_PAUSE, Ask::Look(again))
    }
}

fn ask(ask: Ask) -> Step {
    Step::Ask(Duration::ZERO, ask)
}

/// The error for a job that has ended.
fn ended(job: JobId, seen: &Seen) -> Error {
    let cause = seen.failure.as_deref().map(|cause| format!(": {cause}")).unwrap_or_default();
    Error::user_code(format!("job {job} is {}{cause}", seen.status))
}

/// The error in an answer, which may also be an answer to something else.
fn unfit(answer: Result<Answer>) -> Error {
    match answer {
        Ok(answer) => Error::system(format!("{answer:?} is no answer to that")),
        Err(error) => error,
    }
}

#[cfg(test)]
mod tests;
