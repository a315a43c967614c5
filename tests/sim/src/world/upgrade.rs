//! Clients that upgrade a job: the machine of `flott upgrade`, over a network that loses requests and answers.

use std::time::Duration;

use flott_control::upgrade::{Answer, Ask, Outcome, Step, Upgrade};
use flott_control::{ClaimMode, JobSpec};
use flott_core::ids::JobId;
use flott_core::status::JobStatus;
use flott_core::{Error, Result};

use super::by_hand::{ByHand, Screen};
use super::client::Care;
use super::{Occurrence, World};
use crate::oracle::Violation;
use crate::scenario::{Fault, Version, line_of};

/// When the last upgrade may begin.
const LAST_MS: i64 = 8_000;

/// A client that upgrades the job of a line.
#[derive(Clone, Debug)]
pub(super) struct Upgrading {
    pub(super) old: JobId,
    pub(super) new: JobId,
    pub(super) again: JobId,
    /// The new version; its savepoint is still to be known.
    pub(super) spec: JobSpec,
    /// The name of the stop.
    pub(super) trigger: u64,
    timeout_ms: i64,
    machine: Upgrade,
    /// What it waits for the answer to, with its number.
    pub(super) asked: Option<(u64, Ask)>,
    screen: Screen,
}

impl World {
    /// A client begins to upgrade the job of a line, if there is one and nobody else does.
    pub(super) fn begin_upgrade(&mut self, line: usize) {
        let old = self.lines[line].current.0;
        let status = self.cluster.as_ref().and_then(|cluster| cluster.job(old)).map(|view| view.status);
        if status != Some(JobStatus::Running) || !matches!(self.lines[line].care, Care::Plain) {
            // It comes back when there is something to upgrade.
            if self.now_ms < LAST_MS {
                self.after(50, 300, Occurrence::Fault(Fault::Upgrade));
            }
            return;
        }
        for (after_ms, fault) in self.scenario.draw_accidents(&mut self.random, self.now_ms) {
            self.at(self.now_ms + after_ms, Occurrence::Fault(fault));
        }
        let (new, again) = (self.lines[line].next_id(line), self.lines[line].next_id(line));
        let version = Version::draw(&mut self.random);
        let spec = self.scenario.draw_job(&mut self.random, version, None);
        let needs_checkpoint = version != Version::Good || self.random.chance(80);
        let timeout_ms = self.random.between(500, 4000);
        let timeout = Duration::from_millis(timeout_ms.unsigned_abs());
        let machine = Upgrade::new(old, [new, again], needs_checkpoint, timeout);
        self.trace.line(
            self.now_ms,
            format_args!("upgrade of {old} to {new}, {version:?}, in {timeout:?}, or back as {again}"),
        );
        self.questions += 1;
        let upgrading = Upgrading {
            old,
            new,
            again,
            spec: JobSpec { claim_mode: ClaimMode::NoClaim, ..spec },
            trigger: self.questions,
            timeout_ms,
            machine,
            asked: None,
            screen: Screen::default(),
        };
        let first = upgrading.machine.begin();
        self.lines[line].last_upgrade = Some(Box::new(upgrading.clone()));
        self.lines[line].care = Care::Upgrade(Box::new(upgrading));
        self.next_question(line, Duration::ZERO, first);
    }

    fn upgrading(&mut self, line: usize) -> Option<&mut Upgrading> {
        match &mut self.lines[line].care {
            Care::Upgrade(upgrading) => Some(upgrading),
            Care::Plain | Care::ByHand(_) => None,
        }
    }

    fn next_question(&mut self, line: usize, pause: Duration, ask: Ask) {
        self.questions += 1;
        let number = self.questions;
        if let Some(upgrading) = self.upgrading(line) {
            upgrading.asked = Some((number, ask));
            let at_ms = self.now_ms + pause.as_millis() as i64;
            self.at(at_ms, Occurrence::ClientAsks { line, number });
        }
    }

    fn loses(&mut self) -> bool {
        self.now_ms < self.scenario.calm_ms && self.random.chance(self.scenario.lost_answers_percent)
    }

    /// It tells its user what matters if it dies, and asks.
    pub(super) fn client_asks(&mut self, line: usize, number: u64) {
        let Some(upgrading) = self.upgrading(line) else { return };
        let Some((_, ask)) = upgrading.asked.clone().filter(|(asked, _)| *asked == number) else { return };
        let fits = Version::of(&upgrading.spec) != Version::Refused;
        match &ask {
            Ask::Stop => upgrading.screen.checked = upgrading.machine.checked().map(str::to_owned),
            Ask::Start(new, savepoint) => {
                upgrading.screen.savepoint = Some(savepoint.clone());
                let timeout_ms = upgrading.timeout_ms;
                let slow_until_ms = self.now_ms + timeout_ms + self.random.between(-300, 100);
                self.slow_until_ms.entry(*new).or_insert(slow_until_ms);
            }
            _ => {}
        }
        if let Ask::Check(savepoint) = &ask {
            let answer = self.store.load(savepoint, None).map(|_| Answer::Fits(fits));
            return self.after(5, 200, Occurrence::ClientHears { line, number, answer });
        }
        if self.loses() {
            return self.lose(line, number);
        }
        // What goes on for long is asked after, again and again.
        if !matches!(ask, Ask::Savepoint | Ask::StopResult) {
            let answer = Err(Error::system("no answer in time"));
            self.after(2000, 4000, Occurrence::ClientHears { line, number, answer });
        }
        self.after(1, 5, Occurrence::Rest { line, number, ask });
    }

    /// Answers a client.
    pub(super) fn answer(&mut self, line: usize, number: u64, answer: Result<Answer>) {
        if self.loses() {
            return self.lose(line, number);
        }
        self.after(1, 5, Occurrence::ClientHears { line, number, answer });
    }

    /// The connection of a client breaks.
    fn lose(&mut self, line: usize, number: u64) {
        let answer = Err(Error::system("the connection broke"));
        self.after(1, 50, Occurrence::ClientHears { line, number, answer });
    }

    /// The first answer counts.
    pub(super) fn client_hears(&mut self, line: usize, number: u64, answer: Result<Answer>) {
        let now = Duration::from_millis(self.now_ms.unsigned_abs());
        let Some(upgrading) = self.upgrading(line) else { return };
        let Some((_, ask)) = upgrading.asked.take_if(|(asked, _)| *asked == number) else { return };
        let step = upgrading.machine.step(now, answer.clone());
        self.trace.line(self.now_ms, format_args!("client {line} hears {number} {ask:?}: {answer:?}"));
        match step {
            Step::Ask(pause, ask) => self.next_question(line, pause, ask),
            Step::End(outcome) => self.upgrade_ended(line, &outcome),
        }
    }

    fn upgrade_ended(&mut self, line: usize, outcome: &Outcome) {
        self.trace.line(self.now_ms, format_args!("client {line} ends: {outcome:?}"));
        let Some(Upgrading { old, new, again, screen, .. }) = self.upgrading(line).cloned() else { return };
        let result = self.check_outcome(outcome, old, new, again);
        self.expect(result);
        match outcome {
            Outcome::Upgraded => self.upgrades += 1,
            Outcome::RolledBack(_) => self.rollbacks += 1,
            _ => {}
        }
        self.leave_to_user(line, screen);
    }

    /// What a client says when it ends is true.
    fn check_outcome(&self, outcome: &Outcome, old: JobId, new: JobId, again: JobId) -> Result<(), Violation> {
        let facts = |job| self.oracle.jobs.get(&job);
        let has_ended = |job| facts(job).is_some_and(|facts| facts.end.is_some());
        let stopped_at = facts(old).and_then(|facts| facts.latest.as_ref()).filter(|latest| latest.ends_job);
        let started_from = |job| facts(job).and_then(|facts| facts.savepoint.as_ref());
        let goes_on = |job| {
            has_ended(old) && started_from(job).is_some() && started_from(job) == stopped_at.map(|stop| &stop.location)
        };
        let is_true = match outcome {
            Outcome::Refused => facts(new).is_none() && facts(again).is_none(),
            Outcome::NotStopped(_) => facts(new).is_none() && facts(again).is_none(),
            Outcome::Ended(_) => has_ended(old) && facts(new).is_none() && facts(again).is_none(),
            Outcome::Upgraded => goes_on(new) && facts(again).is_none(),
            Outcome::NewEnded(_) => has_ended(new) && facts(again).is_none(),
            Outcome::RolledBack(_) | Outcome::OldSlow(_) => {
                goes_on(again) && facts(new).is_none_or(|facts| facts.end.is_some() && facts.latest.is_none())
            }
            Outcome::OldEnded(_) => facts(again).is_none_or(|facts| facts.end.is_some()),
            Outcome::StopUnknown(_) | Outcome::NotWithdrawn(_) | Outcome::StartUnknown(..) => true,
        };
        if is_true { Ok(()) } else { Err(format!("an upgrade of {old} ended with {outcome:?}, which is not true")) }
    }

    /// One that upgrades a job dies. What it has sent arrives.
    pub(super) fn kill_client(&mut self) {
        for line in 0..self.lines.len() {
            if let Some(screen) = self.upgrading(line).map(|upgrading| upgrading.screen.clone()) {
                self.trace.line(self.now_ms, format_args!("client {line} dies"));
                self.leave_to_user(line, screen);
            }
        }
    }

    fn leave_to_user(&mut self, line: usize, screen: Screen) {
        let Some(upgrading) = self.upgrading(line).cloned() else { return };
        let look_at_ms = self.now_ms + self.random.between(500, 3000);
        debug_assert_eq!(line_of(upgrading.old), line);
        let by_hand = ByHand { screen, upgrading, look_at_ms };
        self.lines[line].care = Care::ByHand(Box::new(by_hand));
    }
}
