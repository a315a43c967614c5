//! Clients: what they ask for, what they are answered, and how one job follows another.

use flott_control::{CompletedCheckpoint, ExecutionId, JobSpec};
use flott_core::Result;
use flott_core::ids::{Generation, JobId};
use flott_core::status::JobStatus;
use flott_jobmanager_core::{Event, Parallelism, Reply, Request, RequestId};

use super::by_hand::ByHand;
use super::upgrade::Upgrading;
use super::{Occurrence, World};
use crate::oracle::Violation;
use crate::scenario::{SINK, Version, job_id};

/// A request that waits for its reply.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    request: Request,
    /// The job's generation at the time.
    generation: Generation,
    waiter: Waiter,
}

/// Who waits for a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waiter {
    Nobody,
    /// A client that upgrades the job of a line, with the number of its request.
    Client {
        line: usize,
        number: u64,
    },
    /// An operation of REST.
    Operation(JobId, u64),
}

/// Jobs that go on from each other, and who looks after them.
#[derive(Clone, Debug)]
pub(super) struct Line {
    /// The job that is to run.
    pub(super) current: (JobId, JobSpec),
    /// How many ids were given to jobs of the line.
    numbers: u8,
    /// When the current job was thought of.
    pub(super) begun_ms: i64,
    submitted_in: Option<u64>,
    pub(super) is_over: bool,
    pub(super) care: Care,
    /// The last client that upgraded a job of the line, for what it has sent.
    pub(super) last_upgrade: Option<Box<Upgrading>>,
}

/// Who looks after a line.
#[derive(Clone, Debug)]
pub(super) enum Care {
    /// Somebody who submits the current job, and another one where that was stopped.
    Plain,
    /// A client that upgrades the current job.
    Upgrade(Box<Upgrading>),
    /// Its user, after it has ended or died.
    ByHand(Box<ByHand>),
}

impl Line {
    pub(super) fn new(job: JobId, spec: JobSpec) -> Self {
        Self {
            current: (job, spec),
            numbers: 1,
            begun_ms: 0,
            submitted_in: None,
            is_over: false,
            care: Care::Plain,
            last_upgrade: None,
        }
    }

    /// The id of another job of the line.
    pub(super) fn next_id(&mut self, line: usize) -> JobId {
        self.numbers += 1;
        job_id(line, self.numbers)
    }

    /// This is the job from now on, to be submitted unless it was.
    pub(super) fn set_current(&mut self, now_ms: i64, job: JobId, spec: JobSpec) {
        self.current = (job, spec);
        self.submitted_in = None;
        self.begun_ms = now_ms;
        self.care = Care::Plain;
    }
}

impl World {
    /// A client sends a request.
    pub(super) fn request(&mut self, request: Request) {
        self.after(1, 5, Occurrence::Request(request));
    }

    /// A request arrives. Where nobody listens, the client hears so at once.
    pub(super) fn ask(&mut self, request: Request, waiter: Waiter) {
        if self.cluster.is_none() {
            return;
        }
        self.requests += 1;
        let id = self.requests;
        let job = match &request {
            Request::Submit { job, .. } => {
                self.trace.line(self.now_ms, format_args!("request {id} submit {job}"));
                *job
            }
            Request::Cancel { job }
            | Request::Withdraw { job }
            | Request::Savepoint { job, .. }
            | Request::Checkpoint { job }
            | Request::Rescale { job, .. } => {
                self.trace.line(self.now_ms, format_args!("request {id} {request:?}"));
                *job
            }
        };
        let generation = self.oracle.jobs.get(&job).map_or(0, |facts| facts.generation);
        self.asked.insert(id, Asked { request: request.clone(), generation, waiter });
        self.feed(Event::Request { id, request });
    }

    /// A client is answered.
    pub(super) fn on_reply(&mut self, id: RequestId, reply: &Result<Reply>) {
        self.trace.line(self.now_ms, format_args!("reply {id} {reply:?}"));
        let result = match self.asked.remove(&id) {
            Some(asked) => {
                self.pass_on(asked.waiter, reply);
                self.check_reply(&asked, reply)
            }
            None => Err(format!("nobody waits for reply {id}: {reply:?}")),
        };
        self.expect(result);
    }

    fn check_reply(&mut self, asked: &Asked, reply: &Result<Reply>) -> Result<(), Violation> {
        match (&asked.request, reply) {
            (Request::Submit { job, .. }, Ok(Reply::Submitted)) if self.oracle.jobs.contains_key(job) => Ok(()),
            (Request::Cancel { job }, Ok(Reply::Cancelling)) => {
                self.cancelled.insert(*job, self.epoch);
                Ok(())
            }
            (Request::Withdraw { job }, Ok(Reply::Cancelling)) => {
                self.cancelled.insert(*job, self.epoch);
                match self.oracle.jobs.get(job).and_then(|facts| facts.latest.as_ref()) {
                    Some(latest) => Err(format!("job {job} was withdrawn after checkpoint {}", latest.id)),
                    None => Ok(()),
                }
            }
            (Request::Checkpoint { .. } | Request::Savepoint { stop: false, .. }, Ok(Reply::Completed(location))) => {
                self.oracle.check_exists(location)
            }
            (Request::Savepoint { job, stop: true, drain, .. }, Ok(Reply::Completed(location))) => {
                self.drained += u64::from(*drain);
                if self.oracle.jobs.get(job).is_none_or(|facts| facts.end.is_none()) {
                    return Err(format!("a client was told that job {job} has stopped, which the log does not say"));
                }
                self.oracle.check_exists(location)
            }
            (Request::Rescale { job, parallelism }, Ok(Reply::Rescaled(subtasks))) => {
                self.check_view(*job)?;
                self.check_rescaled(*job, asked.generation, parallelism, subtasks)
            }
            // Refused or failed: it is on one of the two sides.
            (Request::Rescale { job, .. }, Err(_)) => self.check_view(*job),
            (_, Err(_)) => Ok(()),
            (request, Ok(reply)) => Err(format!("{request:?} was answered with {reply:?}")),
        }
    }

    /// A client was told that a job has been rescaled, which it asked for in the execution `before`.
    fn check_rescaled(
        &self,
        job: JobId,
        before: Generation,
        wanted: &Parallelism,
        subtasks: &[u32],
    ) -> Result<(), Violation> {
        let Some(facts) = self.oracle.jobs.get(&job) else { return Err(format!("there is no job {job}")) };
        let is_met = match wanted {
            Parallelism::All(wanted) => *wanted > 0 && subtasks.contains(wanted),
            Parallelism::Vertices(wanted) => wanted.iter().all(|(&vertex, &wanted)| {
                vertex <= SINK && wanted > 0 && subtasks.get(vertex as usize) == Some(&wanted)
            }),
        };
        if !is_met || self.scenario.is_reactive || subtasks != facts.parallelism.as_slice() {
            return Err(format!("{wanted:?} was answered with {subtasks:?}, the log says {:?}", facts.parallelism));
        }
        let after = facts.generation;
        // Before its first execution a job is rescaled without anything being moved.
        if before == 0 || after == before || !self.scenario.is_calm || !self.scenario.keeps_workers {
            return Ok(());
        }
        let processes = |generation| self.placements.get(&ExecutionId { job, generation });
        let (Some(old), Some(new)) = (processes(before), processes(after)) else {
            return Err(format!("generation {after} runs, but nothing was deployed"));
        };
        for (task_manager, process) in new {
            if old.get(task_manager).is_some_and(|before| before != process) {
                return Err(format!("the rescale to {subtasks:?} replaced the worker on {task_manager}"));
            }
        }
        if after != before + 1 {
            return Err(format!("a rescale without a fault went from generation {before} to {after}"));
        }
        Ok(())
    }

    /// Somebody looks after a line.
    pub(super) fn client(&mut self, line: usize) {
        match self.lines[line].care {
            Care::Plain => self.look_after(line),
            Care::Upgrade(_) => {}
            Care::ByHand(_) => self.look_by_hand(line),
        }
        self.after(20, 200, Occurrence::Client { line });
    }

    /// Submits what is not in the log, and starts another job where one has left something to go on from.
    fn look_after(&mut self, line: usize) {
        let (job, spec) = self.lines[line].current.clone();
        let facts = self.oracle.jobs.get(&job);
        let end = facts.and_then(|facts| facts.end.as_ref()).map(|end| end.status);
        let latest = facts.and_then(|facts| facts.latest.clone());
        match (facts.is_some(), end, latest) {
            (false, ..) if self.cluster.is_some() && self.lines[line].submitted_in != Some(self.epoch) => {
                self.lines[line].submitted_in = Some(self.epoch);
                self.request(Request::Submit { job, spec: Box::new(spec) });
            }
            (_, Some(status), Some(latest)) if self.is_left(status, &latest) => {
                let id = self.lines[line].next_id(line);
                let spec = self.scenario.draw_job(&mut self.random, Version::Good, Some(latest.location));
                self.trace.line(self.now_ms, format_args!("job {id} follows, as {:?}", spec.claim_mode));
                self.lines[line].set_current(self.now_ms, id, spec);
            }
            (_, Some(_), _) => self.lines[line].is_over = self.cluster.is_some(),
            _ => {}
        }
    }

    /// Whether a job has left its last checkpoint for another one to go on from.
    fn is_left(&self, status: JobStatus, latest: &CompletedCheckpoint) -> bool {
        match status {
            JobStatus::Finished => latest.ends_job,
            JobStatus::Canceled | JobStatus::Failed => self.scenario.retains_ended,
            _ => false,
        }
    }
}
