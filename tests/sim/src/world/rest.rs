//! What the JobManager's REST API makes of the requests of clients that upgrade a job.

use flott_control::upgrade::{Answer, Ask, LastSavepoint, Seen};
use flott_control::{ClaimMode, JobSpec};
use flott_core::ids::JobId;
use flott_core::{Error, Result};
use flott_jobmanager_core::view::{CheckpointView, JobView};
use flott_jobmanager_core::{Reply, Request};

use super::client::{Care, Waiter};
use super::{Occurrence, World};

/// What takes long, and is asked after.
#[derive(Clone, Debug)]
pub(super) enum Operation {
    /// It goes on, and these clients wait for its end.
    Pending(Vec<(usize, u64)>),
    Ended(Result<Answer>),
}

impl World {
    /// A request arrives at the JobManager. Its client may be dead.
    pub(super) fn rest(&mut self, line: usize, number: u64, ask: Ask) {
        self.trace.line(self.now_ms, format_args!("client {line} asks {number} {ask:?}"));
        if self.cluster.is_none() {
            return self.answer(line, number, Err(Error::system("connection refused")));
        }
        let Some(upgrading) = self.lines[line].last_upgrade.clone() else { return };
        let waiter = Waiter::Client { line, number };
        let old = upgrading.old;
        match ask {
            Ask::Savepoint => {
                let suffix = self.savepoint_suffix();
                let request = Request::Savepoint { job: old, target: None, stop: false, drain: false, suffix };
                self.ask(request, waiter);
            }
            Ask::Stop => {
                if let Err(error) = self.alive(old) {
                    return self.answer(line, number, Err(error));
                }
                let key = (old, upgrading.trigger);
                let is_known = self.operations.contains_key(&key);
                self.operations.entry(key).or_insert_with(|| Operation::Pending(Vec::new()));
                if !is_known {
                    let suffix = self.savepoint_suffix();
                    let request = Request::Savepoint { job: old, target: None, stop: true, drain: false, suffix };
                    self.ask(request, Waiter::Operation(key.0, key.1));
                }
                self.answer(line, number, Ok(Answer::Done));
            }
            Ask::StopResult => match self.operations.get_mut(&(old, upgrading.trigger)) {
                Some(Operation::Pending(waiters)) => waiters.push((line, number)),
                Some(Operation::Ended(result)) => {
                    let result = result.clone();
                    self.answer(line, number, result);
                }
                None => self.answer(line, number, Err(Error::input("the JobManager has no such operation"))),
            },
            Ask::Look(job) => {
                let seen = self.view(job).map(|view| Answer::Job(seen(&view)));
                self.answer(line, number, seen);
            }
            Ask::Start(job, savepoint) => {
                let spec = JobSpec { savepoint: Some(savepoint), ..upgrading.spec };
                self.submit(job, spec, waiter);
            }
            Ask::Restart(job, savepoint) => match self.view(old) {
                Ok(view) if view.status.is_terminal() => {
                    let savepoint = Some(savepoint);
                    self.submit(job, JobSpec { savepoint, claim_mode: ClaimMode::NoClaim, ..view.spec }, waiter);
                }
                Ok(view) => {
                    let error = Error::input(format!("job {old} has not ended: it is {}", view.status));
                    self.answer(line, number, Err(error));
                }
                Err(error) => self.answer(line, number, Err(error)),
            },
            Ask::Checkpoint(job) => {
                let alive = self.alive(job);
                if alive.is_ok() {
                    self.ask(Request::Checkpoint { job }, Waiter::Nobody);
                }
                self.answer(line, number, alive.map(|()| Answer::Done));
            }
            Ask::Withdraw(job) => match self.alive(job) {
                Ok(()) => self.ask(Request::Withdraw { job }, waiter),
                Err(error) => self.answer(line, number, Err(error)),
            },
            // That is not for the JobManager.
            Ask::Check(_) => {}
        }
    }

    /// What is known is not looked at again; anything else must be able to start.
    fn submit(&mut self, job: JobId, spec: JobSpec, waiter: Waiter) {
        let savepoint = spec.savepoint.as_deref().unwrap_or_default();
        match self.store.load(savepoint, None) {
            Err(error) if self.view(job).is_err() => self.pass_on(waiter, &Err(error)),
            _ => self.ask(Request::Submit { job, spec: Box::new(spec) }, waiter),
        }
    }

    fn view(&self, job: JobId) -> Result<JobView> {
        let view = self.cluster.as_ref().and_then(|cluster| cluster.job(job));
        view.ok_or_else(|| Error::input(format!("job {job} not found")))
    }

    fn alive(&self, job: JobId) -> Result<()> {
        let view = self.view(job)?;
        if view.status.is_terminal() {
            return Err(Error::input(format!("job {job} has already ended: it is {}", view.status)));
        }
        Ok(())
    }

    /// Passes a reply on to whoever waits for it.
    pub(super) fn pass_on(&mut self, waiter: Waiter, reply: &Result<Reply>) {
        let answer = reply.clone().map(|reply| match reply {
            Reply::Completed(location) => Answer::Savepoint(location),
            _ => Answer::Done,
        });
        match waiter {
            Waiter::Nobody => {}
            Waiter::Client { line, number } => self.answer(line, number, answer),
            Waiter::Operation(job, trigger) => {
                // What goes wrong in an operation is the JobManager's to tell, as its failure.
                let ended = Operation::Ended(answer.clone());
                if let Some(Operation::Pending(waiters)) = self.operations.insert((job, trigger), ended) {
                    for (line, number) in waiters {
                        self.answer(line, number, answer.clone());
                    }
                }
            }
        }
    }

    /// The JobManager dies: whoever waits for it sees the connection end.
    pub(super) fn forget_requests(&mut self) {
        self.asked.clear();
        self.operations.clear();
        for line in 0..self.lines.len() {
            let Care::Upgrade(upgrading) = &self.lines[line].care else { continue };
            if let Some((number, _)) = upgrading.asked.as_ref().filter(|(_, ask)| !matches!(ask, Ask::Check(_))) {
                let answer = Err(Error::system("connection reset"));
                self.after(1, 50, Occurrence::ClientHears { line, number: *number, answer });
            }
        }
    }
}

fn seen(view: &JobView) -> Seen {
    let completed = |checkpoint: &Option<CheckpointView>| checkpoint.as_ref()?.outcome.clone().ok();
    Seen {
        status: view.status,
        checkpoint: completed(&view.checkpoints.latest_completed).map(|checkpoint| checkpoint.id),
        savepoint: completed(&view.checkpoints.latest_savepoint).map(|savepoint| LastSavepoint {
            id: savepoint.id,
            location: savepoint.location,
            ends_job: savepoint.ends_job,
        }),
        waiting_for: view.waiting_for.clone(),
        failure: view.exceptions.first().map(|exception| exception.message.clone()),
    }
}
