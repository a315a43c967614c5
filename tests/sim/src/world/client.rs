//! Clients: what they ask for, what they are answered, and how one job follows another. And the faults.

use std::collections::BTreeMap;

use flott_control::{CompletedCheckpoint, ExecutionId, JobSpec};
use flott_core::Result;
use flott_core::ids::{Generation, JobId};
use flott_core::status::JobStatus;
use flott_jobmanager_core::{Event, Parallelism, Reply, Request, RequestId, SessionId};

use super::processes::ProcessId;
use super::{Occurrence, World};
use crate::oracle::Violation;
use crate::scenario::{Fault, SINK};

/// A request that waits for its reply.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    request: Request,
    /// The job's generation at the time.
    generation: Generation,
}

impl World {
    pub(super) fn inject(&mut self, fault: Fault) {
        self.trace.line(self.now_ms, format_args!("fault {fault:?}"));
        let (job, _) = self.current_job();
        match fault {
            Fault::JobManager => self.kill_job_manager(),
            Fault::Connection => {
                if let Some(session) = self.pick_session() {
                    self.break_link(session);
                }
            }
            Fault::Silence => {
                let session = self.pick_session();
                if let Some(link) = session.and_then(|session| self.links.get_mut(&session)) {
                    link.is_mute = true;
                }
            }
            Fault::DataConnection => self.break_data_connection(),
            Fault::Pause => self.pause(),
            Fault::NewTaskManager => self.after(0, 0, Occurrence::StartTaskManager),
            Fault::TaskManager | Fault::Worker | Fault::Task => self.inject_into_process(fault),
            Fault::Savepoint | Fault::Stop => {
                self.savepoints += 1;
                let (stop, suffix) = (fault == Fault::Stop, self.savepoints.to_string());
                self.request(Request::Savepoint { job, target: None, stop, drain: false, suffix });
            }
            Fault::Checkpoint => self.request(Request::Checkpoint { job }),
            Fault::Cancel => self.request(Request::Cancel { job }),
            Fault::Rescale => {
                let parallelism = self.draw_parallelism();
                self.request(Request::Rescale { job, parallelism });
            }
        }
    }

    fn pick_session(&mut self) -> Option<SessionId> {
        let sessions: Vec<SessionId> = self.links.keys().copied().collect();
        self.random.pick(&sessions)
    }

    /// The JobManager or another process stands still for so long, or so short, that it may be taken for dead or not.
    fn pause(&mut self) {
        let most_ms = if self.random.chance(20) { 8_000 } else { 2_000 };
        let until_ms = self.now_ms + self.random.between(50, most_ms);
        let processes: Vec<ProcessId> = self.processes.keys().copied().collect();
        if self.random.chance(30) {
            self.leader_resumes_ms = until_ms;
        } else if let Some(process) = self.random.pick(&processes) {
            self.paused.insert(process, until_ms);
        }
    }

    /// What a client may ask for. Some of it is impossible, or more than there are slots.
    fn draw_parallelism(&mut self) -> Parallelism {
        let slots = self.slots();
        let key_groups = self.scenario.max_parallelism;
        let mut number = |most: u32| self.random.between(1, i64::from(most.max(1))) as u32;
        let some = number(slots.min(key_groups).min(8));
        match number(10) {
            1 => Parallelism::All(0),
            2 => Parallelism::All(key_groups + number(3)),
            3 => Parallelism::All((slots + number(2)).min(key_groups)),
            4 => Parallelism::Vertices(BTreeMap::from([(number(3) - 1, number(4) - 1)])),
            5 | 6 => Parallelism::Vertices(BTreeMap::from([(number(2) - 1, some)])),
            _ => Parallelism::All(some),
        }
    }

    /// A client sends a request.
    fn request(&mut self, request: Request) {
        self.after(1, 5, Occurrence::Request(request));
    }

    /// A request arrives. Where nobody listens, the client hears so at once.
    pub(super) fn ask(&mut self, request: Request) {
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
            | Request::Savepoint { job, .. }
            | Request::Checkpoint { job }
            | Request::Rescale { job, .. } => {
                self.trace.line(self.now_ms, format_args!("request {id} {request:?}"));
                *job
            }
        };
        let generation = self.oracle.jobs.get(&job).map_or(0, |facts| facts.generation);
        self.asked.insert(id, Asked { request: request.clone(), generation });
        self.feed(Event::Request { id, request });
    }

    /// A client is answered.
    pub(super) fn on_reply(&mut self, id: RequestId, reply: &Result<Reply>) {
        self.trace.line(self.now_ms, format_args!("reply {id} {reply:?}"));
        let result = match self.asked.remove(&id) {
            Some(asked) => self.check_reply(&asked, reply),
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
            (Request::Checkpoint { .. } | Request::Savepoint { stop: false, .. }, Ok(Reply::Completed(location))) => {
                self.oracle.check_exists(location)
            }
            (Request::Savepoint { job, stop: true, .. }, Ok(Reply::Completed(location))) => {
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

    pub(super) fn current_job(&self) -> (JobId, JobSpec) {
        // There is one from the beginning, and none is ever removed.
        self.jobs[self.jobs.len() - 1].clone()
    }

    /// Submits what is not in the log, and starts another job where one has left something to go on from.
    pub(super) fn client(&mut self) {
        let (job, spec) = self.current_job();
        let facts = self.oracle.jobs.get(&job);
        let end = facts.and_then(|facts| facts.end.as_ref()).map(|end| end.status);
        let latest = facts.and_then(|facts| facts.latest.clone());
        match (facts.is_some(), end, latest) {
            (false, ..) if self.cluster.is_some() && self.submitted_in != Some(self.epoch) => {
                self.submitted_in = Some(self.epoch);
                self.request(Request::Submit { job, spec: Box::new(spec) });
            }
            (_, Some(status), Some(latest)) if self.is_left(status, &latest) => {
                let id = JobId([self.jobs.len() as u8 + 1; 16]);
                let spec = self.scenario.draw_job(&mut self.random, Some(latest.location));
                self.trace.line(self.now_ms, format_args!("job {id} follows, as {:?}", spec.claim_mode));
                self.jobs.push((id, spec));
                self.submitted_in = None;
                self.begun_ms = self.now_ms;
            }
            (_, Some(_), _) => self.is_over = self.cluster.is_some(),
            _ => {}
        }
        self.after(20, 200, Occurrence::Client);
    }

    /// Whether a job has left its last checkpoint for another one to go on from.
    fn is_left(&self, status: JobStatus, latest: &CompletedCheckpoint) -> bool {
        match status {
            JobStatus::Finished => latest.ends_job,
            JobStatus::Canceled => self.scenario.retains_cancelled,
            _ => false,
        }
    }
}
