//! The JobManager's process: what it decides is carried out, logged, and checked.

use std::collections::BTreeSet;

use flott_control::{CompletedCheckpoint, Down, ExecutionId, Fact};
use flott_core::ids::{JobId, SubtaskId, TaskManagerId};
use flott_core::status::{JobStatus, TaskStatus};
use flott_core::{Error, Result};
use flott_jobmanager_core::{Checkpoint, Cluster, Command, Event, SessionId};

use super::{Occurrence, World};
use crate::oracle::{JobFacts, Violation};
use crate::scenario::{SINK, SOURCE, Version};

impl World {
    /// Gives an event to the JobManager, if there is one, and carries out what it wants.
    pub(super) fn feed(&mut self, event: Event) {
        let Some(cluster) = &mut self.cluster else { return };
        let changed = match &event {
            Event::Committed(Fact::GenerationStarted { job, .. } | Fact::JobRescaled { job, .. }) => Some(*job),
            _ => None,
        };
        let commands = cluster.step(self.now_ms, event);
        let deadline_ms = cluster.next_deadline();
        for command in commands {
            self.carry_out(command);
        }
        if let Some(job) = changed {
            let result = self.check_view(job);
            self.expect(result);
        }
        if let Some(deadline_ms) = deadline_ms {
            // A deadline in the past would be a bug that makes the server spin; here it shows as a run without end.
            let at_ms = deadline_ms.max(self.now_ms + 1);
            if self.tick_at_ms.is_none_or(|tick_at_ms| at_ms < tick_at_ms || tick_at_ms <= self.now_ms) {
                self.tick_at_ms = Some(at_ms);
                self.at(at_ms, Occurrence::Tick);
            }
        }
    }

    fn carry_out(&mut self, command: Command) {
        let epoch = self.epoch;
        match command {
            Command::Send { session, message } => {
                let result = self.check_message(session, &message);
                self.expect(result);
                self.send_down(session, message);
            }
            Command::Close { session } => self.close_down(session),
            Command::Propose(fact) => {
                self.trace.line(self.now_ms, format_args!("propose {}", name_of(&fact)));
                self.proposals.push_back(fact);
                let at_ms = self.durable_last_ms.max(self.now_ms + self.random.between(0, 10));
                self.durable_last_ms = at_ms;
                self.at(at_ms, Occurrence::Durable { epoch });
            }
            Command::Reply { id, reply } => self.on_reply(id, &reply),
            Command::WriteManifest(checkpoint) => {
                let result = self.check_manifest(&checkpoint);
                self.expect(result);
                let event = self.write_manifest(checkpoint);
                self.after(1, 30, Occurrence::Answer { epoch, event });
            }
            Command::LoadManifest { job, generation, location, sha256 } => {
                self.trace.line(self.now_ms, format_args!("load {location} for generation {generation}"));
                if generation > 0 && self.oracle.start_location(job) != Some(location.as_str()) {
                    self.expect(Err(format!("generation {generation} of {job} starts from {location}")));
                }
                let result = self.store.load(&location, sha256.as_deref());
                let result = result.map(|manifest| (location, Box::new(manifest)));
                let event = Event::ManifestLoaded { job, generation, result };
                self.after(1, 50, Occurrence::Answer { epoch, event });
            }
            Command::ListFiles { job, folder } => {
                self.trace.line(self.now_ms, format_args!("list {folder}"));
                let result = match self.now_ms < self.scenario.calm_ms && self.random.chance(10) {
                    true => Err(Error::system("503 Slow Down")),
                    false => Ok(self.store.list(&folder)),
                };
                let event = Event::FilesListed { job, result };
                self.after(1, 200, Occurrence::Answer { epoch, event });
            }
            Command::Delete { files, folders } => {
                self.trace.line(self.now_ms, format_args!("delete {files:?} {folders:?}"));
                let result = self.store.delete(&files, &folders, &self.oracle);
                self.expect(result);
            }
        }
    }

    /// A worker is kept only if that is wanted, and starts only from the latest checkpoint.
    fn check_message(&mut self, session: SessionId, message: &Down) -> Result<(), Violation> {
        match message {
            Down::Continue { execution, checkpoint, carried } => {
                if !self.scenario.keeps_workers {
                    return Err(format!("a worker was kept for generation {}", execution.generation));
                }
                self.continued += 1;
                self.carried += carried.len() as u64;
                self.check_carried(session, *execution, carried)?;
                self.oracle.check_start(*execution, *checkpoint)
            }
            Down::Deploy { execution, deployment } => {
                let worker = &deployment.workers[deployment.this_worker as usize];
                let others = self.slots_of_others(execution.job, &worker.task_manager);
                self.oracle.check_deployment(*execution, deployment, others)?;
                if let Some(link) = self.links.get(&session) {
                    let processes = self.placements.entry(*execution).or_default();
                    processes.insert(worker.task_manager.clone(), link.process);
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// What carries over is there, with all that it exchanges data with.
    fn check_carried(
        &mut self,
        session: SessionId,
        execution: ExecutionId,
        carried: &[SubtaskId],
    ) -> Result<(), Violation> {
        let process = self.links.get(&session).map_or(0, |link| link.process);
        for &subtask in carried {
            let partner = SubtaskId { vertex: SOURCE + SINK - subtask.vertex, index: subtask.index };
            if !self.scenario.is_forward || !carried.contains(&partner) {
                return Err(format!("{subtask} carries over to generation {}, alone", execution.generation));
            }
            // One that died has not heard of it, and takes it along.
            let worker = self.worker(process);
            let started = worker.and_then(|worker| worker.tasks.get(&subtask)).map(|task| task.execution);
            if let Some(started) = started {
                self.oracle.carry(started, subtask, execution.generation);
            }
        }
        Ok(())
    }

    /// How many slots of a TaskManager other jobs have subtasks in, as far as the JobManager knows.
    fn slots_of_others(&self, job: JobId, task_manager: &TaskManagerId) -> usize {
        let jobs = self.cluster.iter().flat_map(Cluster::jobs).filter(|other| other.id != job);
        // What a TaskManager had before it registered again counts no more.
        let jobs = jobs.filter(|other| self.has_linked_worker(other.id, task_manager));
        let slots = jobs.map(|other| {
            let used = other.vertices.iter().flat_map(|vertex| vertex.subtasks.iter().enumerate());
            let used = used.filter(|(_, subtask)| {
                let is_over =
                    matches!(subtask.status, TaskStatus::Finished | TaskStatus::Canceled | TaskStatus::Failed);
                !is_over && subtask.task_manager.as_ref() == Some(task_manager)
            });
            used.map(|(slot, _)| slot).collect::<BTreeSet<usize>>().len()
        });
        slots.sum()
    }

    /// A checkpoint is made of what the subtasks of the current execution have acknowledged, and of nothing else.
    fn check_manifest(&mut self, Checkpoint { manifest, .. }: &Checkpoint) -> Result<(), Violation> {
        let execution = ExecutionId { job: manifest.job, generation: manifest.generation };
        if !self.oracle.is_current(execution) {
            return Err(format!(
                "generation {} is over and takes checkpoint {}",
                manifest.generation, manifest.checkpoint
            ));
        }
        let parallelism: Vec<u32> = manifest.vertices.iter().map(|vertex| vertex.subtasks.len() as u32).collect();
        let expected = self.oracle.jobs.get(&manifest.job).map(|facts| &facts.parallelism);
        if expected != Some(&parallelism) {
            return Err(format!("checkpoint {} has {parallelism:?} subtasks, not {expected:?}", manifest.checkpoint));
        }
        for (vertex, description) in (0..).zip(&manifest.vertices) {
            for (index, snapshot) in (0..).zip(&description.subtasks) {
                let subtask = SubtaskId { vertex, index };
                if self.acknowledged.get(&(execution, manifest.checkpoint, subtask)) != Some(snapshot) {
                    return Err(format!("checkpoint {} has what {subtask} did not say", manifest.checkpoint));
                }
            }
        }
        self.acknowledged.retain(|(of, checkpoint, _), _| *of != execution || *checkpoint != manifest.checkpoint);
        Ok(())
    }

    /// What can be seen is what the log says: no vertex has another parallelism than it should have.
    pub(super) fn check_view(&self, job: JobId) -> Result<(), Violation> {
        let view = self.cluster.as_ref().and_then(|cluster| cluster.job(job));
        let (Some(view), Some(facts)) = (view, self.oracle.jobs.get(&job)) else { return Ok(()) };
        let parallelism: Vec<u32> = view.spec.graph.vertices.iter().map(|vertex| vertex.parallelism).collect();
        let subtasks: Vec<u32> = view.vertices.iter().map(|vertex| vertex.subtasks.len() as u32).collect();
        let is_between = match view.status {
            JobStatus::Running => subtasks != facts.parallelism,
            _ => !facts.parallelisms.contains(&subtasks),
        };
        if parallelism != facts.parallelism || is_between {
            return Err(format!(
                "job {job} is {} with parallelism {parallelism:?} and {subtasks:?} subtasks, the log says {:?}",
                view.status, facts.parallelism
            ));
        }
        Ok(())
    }

    fn write_manifest(&mut self, checkpoint: Checkpoint) -> Event {
        let Checkpoint { location, manifest } = checkpoint;
        let (job, generation, id) = (manifest.job, manifest.generation, manifest.checkpoint);
        let fails = self.now_ms < self.scenario.calm_ms && self.random.chance(self.scenario.write_failures_percent);
        let lands = !fails || self.random.chance(50);
        let hash = if lands { self.store.write(&location, &manifest) } else { Ok(String::new()) };
        let result = match hash {
            Ok(manifest_sha256) if !fails => Ok(CompletedCheckpoint {
                id,
                generation,
                location,
                manifest_sha256,
                is_savepoint: manifest.is_savepoint,
                ends_job: false,
                triggered_ms: manifest.triggered_ms,
                completed_ms: self.now_ms,
                bytes_written: manifest.bytes_written(),
                bytes_total: manifest.bytes_total(),
            }),
            Ok(_) => Err(Error::system("503 Slow Down")),
            Err(error) => Err(error),
        };
        Event::ManifestWritten { job, generation, checkpoint: id, result }
    }

    pub(super) fn make_durable(&mut self, fact: Fact) {
        self.trace.line(self.now_ms, format_args!("durable {}", name_of(&fact)));
        let result = self.oracle.durable(&fact).and_then(|()| self.check_end_of_job(&fact));
        self.expect(result);
        self.log.push(fact);
    }

    fn check_end_of_job(&self, fact: &Fact) -> Result<(), Violation> {
        let Fact::JobEnded { job, end } = fact else { return Ok(()) };
        if self.cancelled.get(job) == Some(&self.epoch) && end.status != JobStatus::Canceled {
            return Err(format!("job {job} was to be cancelled, and is {}", end.status));
        }
        let facts = self.oracle.jobs.get(job);
        let generations_max = facts.map_or(0, |facts| 1 + facts.rescales());
        let is_good = |facts: &&JobFacts| facts.version == Version::Good;
        if self.scenario.is_calm && facts.filter(is_good).is_some_and(|facts| facts.generation > generations_max) {
            return Err(format!("job {job} was restarted without a reason"));
        }
        Ok(())
    }

    /// A JobManager reads its log and begins.
    pub(super) fn start_job_manager(&mut self) {
        self.trace.line(self.now_ms, format_args!("start JobManager in epoch {}", self.epoch));
        let mut cluster = Cluster::new(self.scenario.config.clone());
        for fact in &self.log {
            let commands = cluster.step(self.now_ms, Event::Committed(fact.clone()));
            if !commands.is_empty() {
                self.violation = Some(format!("reading the log had effects: {commands:?}"));
            }
        }
        self.cluster = Some(cluster);
        self.tick_at_ms = None;
        self.feed(Event::Recovered);
    }

    /// The JobManager dies. Of what it proposed, any first part may have become durable.
    pub(super) fn kill_job_manager(&mut self) {
        if self.cluster.take().is_none() {
            return;
        }
        let proposals = std::mem::take(&mut self.proposals);
        let durable = self.random.between(0, proposals.len() as i64) as usize;
        for fact in proposals.into_iter().take(durable) {
            self.make_durable(fact);
        }
        // What it was waiting for finds nobody, and so does who waits for it.
        self.epoch += 1;
        self.forget_requests();
        self.leader_resumes_ms = 0;
        self.close_all();
        self.after(50, 2000, Occurrence::StartJobManager);
    }
}

fn name_of(fact: &Fact) -> String {
    match fact {
        Fact::JobSubmitted { job, .. } => format!("submitted {job}"),
        Fact::GenerationStarted { generation, .. } => format!("generation {generation}"),
        Fact::JobRescaled { parallelism, .. } => format!("parallelism {parallelism:?}"),
        Fact::SavepointRequested { location, .. } => format!("savepoint {location}"),
        Fact::CheckpointCompleted { checkpoint, .. } => format!("checkpoint {} {}", checkpoint.id, checkpoint.location),
        Fact::CheckpointDropped { checkpoint, .. } => format!("drop {checkpoint}"),
        Fact::JobEnded { end, .. } => format!("end {:?}", end),
    }
}
