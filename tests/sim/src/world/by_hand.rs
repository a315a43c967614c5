//! What a user does after an upgrade has ended, or its client has died: looks, and goes on as the client has told.

use flott_control::{ClaimMode, JobSpec};
use flott_core::ids::JobId;
use flott_core::status::JobStatus;
use flott_jobmanager_core::Request;

use super::World;
use super::client::Care;
use super::upgrade::Upgrading;
use crate::oracle::JobFacts;
use crate::scenario::{SAVEPOINT_DIR, Version};

/// What a client has told its user.
#[derive(Clone, Debug, Default)]
pub(super) struct Screen {
    /// That the job is about to be stopped. Its savepoint will be the newest one, and is not this one.
    pub(super) checked: Option<String>,
    /// The savepoint that the job was stopped with.
    pub(super) savepoint: Option<String>,
}

/// A user who was left alone with a job.
#[derive(Clone, Debug)]
pub(super) struct ByHand {
    pub(super) screen: Screen,
    pub(super) upgrading: Upgrading,
    /// Nobody looks at once.
    pub(super) look_at_ms: i64,
}

/// What a user makes of what can be seen.
enum Choice {
    /// This job is the one from now on.
    Keep(JobId),
    /// It can never work, so it is to end.
    Withdraw(JobId),
    /// None runs.
    Start,
}

impl World {
    pub(super) fn look_by_hand(&mut self, line: usize) {
        let Care::ByHand(by_hand) = &self.lines[line].care else { return };
        // Whoever looks sees what was asked for before, once the JobManager answers.
        let is_settled = self.cluster.is_some() && self.proposals.is_empty();
        if !is_settled || self.now_ms < by_hand.look_at_ms.max(self.leader_resumes_ms + 20) {
            return;
        }
        let ByHand { screen, upgrading, .. } = (**by_hand).clone();
        let last = [upgrading.again, upgrading.new, upgrading.old].into_iter();
        let last = last.filter_map(|job| Some((job, self.oracle.jobs.get(&job)?))).next();
        let Some((job, facts)) = last else { return };
        match choose(&screen, &upgrading, job, facts) {
            Choice::Keep(job) => {
                self.trace.line(self.now_ms, format_args!("user {line} keeps {job}"));
                let spec = self.lines[line].current.1.clone();
                self.lines[line].set_current(self.now_ms, job, spec);
            }
            Choice::Withdraw(job) => self.request(Request::Withdraw { job }),
            Choice::Start => self.start_by_hand(line, &screen, upgrading),
        }
    }

    /// Starts one of the versions from the savepoint that the client has named.
    fn start_by_hand(&mut self, line: usize, screen: &Screen, upgrading: Upgrading) {
        let Upgrading { old, again, spec, .. } = upgrading;
        let prefix: String = old.to_string().chars().take(6).collect();
        let newest = || self.store.newest(&format!("{SAVEPOINT_DIR}/savepoint-{prefix}-")).map(str::to_owned);
        let savepoint = screen.savepoint.clone().or_else(newest);
        let expected = self.oracle.jobs.get(&old).and_then(|facts| facts.latest.as_ref());
        if savepoint.as_ref() != expected.map(|latest| &latest.location) {
            let expected = expected.map(|latest| &latest.location);
            let violation = format!("the user of job {old} would go on from {savepoint:?}, not from {expected:?}");
            return self.expect(Err(violation));
        }
        let takes_new = Version::of(&spec) == Version::Good && screen.savepoint.is_none() && self.random.chance(50);
        let (job, spec) = if takes_new {
            (self.lines[line].next_id(line), spec)
        } else {
            (again, self.lines[line].current.1.clone())
        };
        let spec = JobSpec { savepoint, claim_mode: ClaimMode::NoClaim, ..spec };
        self.trace.line(self.now_ms, format_args!("user {line} starts {job} from {:?}", spec.savepoint));
        self.by_hand += 1;
        self.lines[line].set_current(self.now_ms, job, spec);
    }
}

/// What to do about the last job that there is.
fn choose(screen: &Screen, upgrading: &Upgrading, job: JobId, facts: &JobFacts) -> Choice {
    let is_old = job == upgrading.old;
    match (facts.end.as_ref().map(|end| end.status), &facts.latest) {
        (None, None) if facts.version.is_hopeless() => Choice::Withdraw(job),
        (None, _) => Choice::Keep(job),
        // It was the client that stopped it, as far as its user knows.
        (Some(JobStatus::Finished), Some(latest)) if is_old && latest.ends_job && screen.checked.is_some() => {
            Choice::Start
        }
        (Some(JobStatus::Canceled | JobStatus::Failed), None) if job == upgrading.new => Choice::Start,
        (Some(_), _) => Choice::Keep(job),
    }
}
