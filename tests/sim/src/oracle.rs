//! What must hold in every run.

use std::collections::{BTreeMap, BTreeSet};

use flott_control::{ClaimMode, CompletedCheckpoint, ExecutionId, Fact, JobDeployment, JobEnd, JobSpec};
use flott_core::ids::{CheckpointId, Generation, JobId, SubtaskId, TaskManagerId};
use flott_core::status::JobStatus;

use crate::scenario::{Version, line_of};
use crate::task::Committable;

/// A rule that was broken.
pub(crate) type Violation = String;

/// One job, as its facts tell it.
#[derive(Clone, Debug, Default)]
pub(crate) struct JobFacts {
    pub(crate) version: Version,
    pub(crate) generation: Generation,
    /// How many subtasks each vertex has, or will have in the next generation.
    pub(crate) parallelism: Vec<u32>,
    /// All that it ever was.
    pub(crate) parallelisms: Vec<Vec<u32>>,
    /// The savepoint or checkpoint that the job was started from.
    pub(crate) savepoint: Option<String>,
    has_claim: bool,
    /// Those that are retained.
    pub(crate) checkpoints: BTreeMap<CheckpointId, CompletedCheckpoint>,
    /// The one with the highest number that each generation completed.
    completed: BTreeMap<Generation, CheckpointId>,
    /// The last one that was no savepoint on which nothing depends, and the last one that was.
    last: CheckpointId,
    last_savepoint: CheckpointId,
    /// The one to recover from.
    pub(crate) latest: Option<CompletedCheckpoint>,
    /// Whether another job has claimed one of its checkpoints and dropped it since. The others may have shared its files.
    is_claimed: bool,
    pub(crate) end: Option<JobEnd>,
}

impl JobFacts {
    fn new(spec: &JobSpec) -> Self {
        let parallelism: Vec<u32> = spec.graph.vertices.iter().map(|vertex| vertex.parallelism).collect();
        Self {
            version: Version::of(spec),
            parallelisms: vec![parallelism.clone()],
            parallelism,
            savepoint: spec.savepoint.clone(),
            has_claim: spec.claim_mode == ClaimMode::Claim && spec.savepoint.is_some(),
            ..Self::default()
        }
    }

    /// How many times it was rescaled.
    pub(crate) fn rescales(&self) -> u64 {
        self.parallelisms.len() as u64 - 1
    }
}

/// The slots of each TaskManager that an execution uses.
#[derive(Clone, Debug, Default)]
struct Used {
    generation: Generation,
    slots: BTreeMap<TaskManagerId, usize>,
}

/// Watches the log and the outside world.
#[derive(Clone, Debug)]
pub(crate) struct Oracle {
    max_parallelism: u32,
    slots_max: usize,
    /// Whether the checkpoints of a job that was cancelled, or has failed, are to stay.
    retains_ended: bool,
    pub(crate) jobs: BTreeMap<JobId, JobFacts>,
    /// Where every checkpoint and savepoint lies or lay.
    locations: BTreeMap<String, (JobId, CheckpointId)>,
    used: BTreeMap<JobId, Used>,
    /// Subtasks, with the execution that they were started in, that carried over to other generations.
    carried: BTreeSet<(ExecutionId, SubtaskId, Generation)>,
    tokens: BTreeSet<String>,
    /// The records of each line that are visible.
    visible: BTreeMap<usize, BTreeSet<u64>>,
    counts: BTreeMap<ExecutionId, BTreeMap<SubtaskId, u64>>,
}

impl Oracle {
    /// Nothing has happened yet. A TaskManager has `slots_max` slots.
    pub(crate) fn new(max_parallelism: u32, slots_max: u32, retains_ended: bool) -> Self {
        Self {
            max_parallelism,
            slots_max: slots_max as usize,
            retains_ended,
            jobs: BTreeMap::new(),
            locations: BTreeMap::new(),
            used: BTreeMap::new(),
            carried: BTreeSet::new(),
            tokens: BTreeSet::new(),
            visible: BTreeMap::new(),
            counts: BTreeMap::new(),
        }
    }

    /// A fact became durable.
    pub(crate) fn durable(&mut self, fact: &Fact) -> Result<(), Violation> {
        match fact {
            Fact::JobSubmitted { job, spec, .. } => {
                let mut of_line = self.jobs.iter().filter(|(other, _)| line_of(**other) == line_of(*job));
                if let Some((other, _)) = of_line.find(|(_, facts)| facts.end.is_none()) {
                    return Err(format!("job {job} was submitted, but {other} of its line has not ended"));
                }
                match self.jobs.insert(*job, JobFacts::new(spec)) {
                    Some(_) => Err(format!("job {job} was submitted twice")),
                    None => Ok(()),
                }
            }
            Fact::GenerationStarted { job, generation } => {
                let facts = self.running(*job)?;
                if *generation != facts.generation + 1 {
                    return Err(format!("generation {generation} of {job} followed {}", facts.generation));
                }
                facts.generation = *generation;
                Ok(())
            }
            Fact::JobRescaled { job, parallelism } => {
                let possible = 1..=self.max_parallelism;
                let facts = self.running(*job)?;
                let is_possible = parallelism.len() == facts.parallelism.len()
                    && parallelism.iter().all(|subtasks| possible.contains(subtasks));
                if !is_possible || *parallelism == facts.parallelism {
                    return Err(format!("job {job} went from parallelism {:?} to {parallelism:?}", facts.parallelism));
                }
                facts.parallelism = parallelism.clone();
                facts.parallelisms.push(parallelism.clone());
                Ok(())
            }
            Fact::SavepointRequested { job, location } => {
                self.running(*job)?;
                match self.locations.get(location) {
                    Some((_, id)) => Err(format!("savepoint {id} lies in {location}, where another one is to be")),
                    None => Ok(()),
                }
            }
            Fact::CheckpointCompleted { job, checkpoint } => self.completed(*job, checkpoint),
            Fact::CheckpointDropped { job, checkpoint: 0 } => self.claim_dropped(*job),
            Fact::CheckpointDropped { job, checkpoint } => {
                let facts = self.jobs.get_mut(job).ok_or_else(|| format!("no job {job}"))?;
                let is_latest = facts.latest.as_ref().is_some_and(|latest| latest.id == *checkpoint);
                if is_latest && facts.end.is_none() {
                    return Err(format!("the latest checkpoint {checkpoint} of {job} was dropped"));
                }
                match facts.checkpoints.remove(checkpoint) {
                    Some(dropped) if dropped.is_savepoint => Err(format!("savepoint {checkpoint} was dropped")),
                    Some(_) => Ok(()),
                    None => Err(format!("checkpoint {checkpoint} of {job} was dropped twice")),
                }
            }
            Fact::JobEnded { job, end } => {
                self.running(*job)?.end = Some(end.clone());
                self.used.remove(job);
                Ok(())
            }
        }
    }

    fn completed(&mut self, job: JobId, checkpoint: &CompletedCheckpoint) -> Result<(), Violation> {
        let facts = self.running(job)?;
        // A savepoint may take longer than checkpoints that were triggered after it, but what ends a job follows all.
        let is_aside = checkpoint.is_savepoint && !checkpoint.ends_job;
        let before = match (is_aside, checkpoint.ends_job) {
            (true, _) => facts.last_savepoint,
            (false, true) => facts.last.max(facts.last_savepoint),
            (false, false) => facts.last,
        };
        if checkpoint.generation != facts.generation || checkpoint.id <= before {
            return Err(format!(
                "checkpoint {} of generation {} became durable after checkpoint {before}, in generation {}",
                checkpoint.id, checkpoint.generation, facts.generation
            ));
        }
        let last = if is_aside { &mut facts.last_savepoint } else { &mut facts.last };
        *last = checkpoint.id;
        facts.checkpoints.insert(checkpoint.id, checkpoint.clone());
        let completed = facts.completed.entry(checkpoint.generation).or_default();
        *completed = checkpoint.id.max(*completed);
        if !is_aside {
            facts.latest = Some(checkpoint.clone());
        }
        match self.locations.insert(checkpoint.location.clone(), (job, checkpoint.id)) {
            Some((_, before)) => Err(format!("checkpoint {} lies where {before} did", checkpoint.id)),
            None => Ok(()),
        }
    }

    /// The job has no use any more for the checkpoint that it claimed when it was started.
    fn claim_dropped(&mut self, job: JobId) -> Result<(), Violation> {
        let facts = self.jobs.get_mut(&job).ok_or_else(|| format!("no job {job}"))?;
        if !std::mem::take(&mut facts.has_claim) || facts.latest.is_none() {
            return Err(format!("job {job} dropped a checkpoint that was not its own, or that it needs"));
        }
        let location = facts.savepoint.clone().unwrap_or_default();
        let Some((owner, id)) = self.locations.get(&location).copied() else {
            return Err(format!("job {job} dropped {location}, which never was"));
        };
        if let Some(owner) = self.jobs.get_mut(&owner) {
            owner.checkpoints.remove(&id);
            owner.is_claimed = true;
        }
        Ok(())
    }

    fn running(&mut self, job: JobId) -> Result<&mut JobFacts, Violation> {
        match self.jobs.get_mut(&job) {
            Some(facts) if facts.end.is_none() => Ok(facts),
            Some(_) => Err(format!("something happened to job {job} after its end")),
            None => Err(format!("something happened to job {job} before its submission")),
        }
    }

    /// Whether an execution is the one that the log knows.
    pub(crate) fn is_current(&self, execution: ExecutionId) -> bool {
        let facts = self.jobs.get(&execution.job);
        facts.is_some_and(|facts| facts.generation == execution.generation && facts.end.is_none())
    }

    /// Every checkpoint and savepoint that must be there, with all its files.
    pub(crate) fn needed(&self) -> impl Iterator<Item = &CompletedCheckpoint> {
        let retains_ended = self.retains_ended;
        self.jobs.values().flat_map(move |facts| {
            let is_retained = match &facts.end {
                None => true,
                Some(end) => end.status != JobStatus::Finished && retains_ended && !facts.is_claimed,
            };
            facts.checkpoints.values().filter(move |checkpoint| checkpoint.is_savepoint || is_retained)
        })
    }

    /// A client was told of a checkpoint or savepoint.
    pub(crate) fn check_exists(&self, location: &str) -> Result<(), Violation> {
        if self.locations.contains_key(location) {
            return Ok(());
        }
        Err(format!("a client was told of {location}, which is not in the log"))
    }

    /// Where the next execution of a job has to start from.
    pub(crate) fn start_location(&self, job: JobId) -> Option<&str> {
        let facts = self.jobs.get(&job)?;
        facts.latest.as_ref().map(|latest| latest.location.as_str()).or(facts.savepoint.as_deref())
    }

    /// A worker is told to start from a checkpoint.
    pub(crate) fn check_start(
        &self,
        execution: ExecutionId,
        checkpoint: Option<CheckpointId>,
    ) -> Result<(), Violation> {
        let ExecutionId { job, generation } = execution;
        if !self.is_current(execution) {
            return Err(format!("generation {generation} of {job} is started, which the log does not have"));
        }
        let latest = self.start_location(job).and_then(|location| self.locations.get(location)).map(|(_, id)| *id);
        if checkpoint != latest {
            return Err(format!(
                "generation {generation} of {job} starts from {checkpoint:?}, but {latest:?} is latest"
            ));
        }
        Ok(())
    }

    /// A worker is told to let a subtask go on, which was started in an earlier execution.
    pub(crate) fn carry(&mut self, started: ExecutionId, subtask: SubtaskId, generation: Generation) {
        self.carried.insert((started, subtask, generation));
    }

    /// A worker is told what to run. Other jobs use `others` slots of its TaskManager.
    pub(crate) fn check_deployment(
        &mut self,
        execution: ExecutionId,
        deployment: &JobDeployment,
        others: usize,
    ) -> Result<(), Violation> {
        for task in &deployment.tasks {
            self.check_start(execution, task.restore.as_ref().map(|restore| restore.checkpoint))?;
        }
        let ExecutionId { job, generation } = execution;
        let parallelism: Vec<u32> = deployment.placement.iter().map(|workers| workers.len() as u32).collect();
        let expected = self.jobs.get(&job).map(|facts| &facts.parallelism);
        if expected != Some(&parallelism) {
            return Err(format!("generation {generation} has parallelism {parallelism:?}, the log says {expected:?}"));
        }
        let worker =
            deployment.workers.get(deployment.this_worker as usize).ok_or("a worker is none of all workers")?;
        let places = (0..).zip(&deployment.placement);
        let places = places.flat_map(|(vertex, workers)| {
            (0..).zip(workers).map(move |(index, worker)| (SubtaskId { vertex, index }, worker))
        });
        let mine: BTreeSet<SubtaskId> =
            places.filter(|(_, worker)| **worker == deployment.this_worker).map(|(subtask, _)| subtask).collect();
        let mut told: Vec<SubtaskId> = deployment.tasks.iter().map(|task| task.subtask).collect();
        told.extend(
            self.carried
                .iter()
                .filter(|(of, subtask, to)| of.job == job && *to == generation && mine.contains(subtask))
                .map(|(_, subtask, _)| *subtask),
        );
        told.sort_unstable();
        if told.len() != mine.len() || !told.iter().all(|subtask| mine.contains(subtask)) {
            return Err(format!("a worker of generation {generation} has {mine:?}, and is to run {told:?}"));
        }
        let slots: BTreeSet<u32> = mine.iter().map(|subtask| subtask.index).collect();
        let used = self.used.entry(job).or_default();
        if used.generation != generation {
            *used = Used { generation, slots: BTreeMap::new() };
        }
        if used.slots.insert(worker.task_manager.clone(), slots.len()).is_some() {
            return Err(format!("generation {generation} has two workers on {}", worker.task_manager));
        }
        let sum = slots.len() + others;
        if sum > self.slots_max {
            return Err(format!("{sum} slots are used on {}, which has {}", worker.task_manager, self.slots_max));
        }
        Ok(())
    }

    /// A sink made records visible.
    pub(crate) fn committed(&mut self, committable: &Committable) -> Result<(), Violation> {
        let Committable { token, execution, subtask, checkpoint, records } = committable;
        // Only a checkpoint of an execution that its maker was in can have made it durable first.
        let facts = self.jobs.get(&execution.job);
        let has_completed = |generation: Generation| {
            facts.and_then(|facts| facts.completed.get(&generation)).is_some_and(|completed| completed >= checkpoint)
        };
        let range = (*execution, *subtask, 0)..=(*execution, *subtask, Generation::MAX);
        if !has_completed(execution.generation) && !self.carried.range(range).any(|(_, _, to)| has_completed(*to)) {
            return Err(format!("{token} became visible before a checkpoint that covers it was durable"));
        }
        if !self.tokens.insert(token.clone()) {
            return Ok(());
        }
        let visible = self.visible.entry(line_of(execution.job)).or_default();
        match records.iter().find(|&&record| !visible.insert(record)) {
            Some(record) => Err(format!("record {record:#x} became visible twice, the second time by {token}")),
            None => Ok(()),
        }
    }

    /// A sink finished after so many records.
    pub(crate) fn finished(&mut self, execution: ExecutionId, subtask: SubtaskId, count: u64) {
        self.counts.entry(execution).or_default().insert(subtask, count);
    }

    /// The last job of a line that the log has.
    pub(crate) fn last_of(&self, line: usize) -> Option<(JobId, &JobFacts)> {
        let last = self.jobs.iter().rev().find(|(job, _)| line_of(**job) == line);
        last.map(|(&job, facts)| (job, facts))
    }

    /// The last job of a line is over.
    pub(crate) fn check_end(&self, job: JobId, records: u64) -> Result<(), Violation> {
        let Some(facts) = self.jobs.get(&job) else { return Err(format!("job {job} was never submitted")) };
        match &facts.end {
            Some(JobEnd { status: JobStatus::Finished, .. }) => {
                let visible = self.visible.get(&line_of(job)).map_or(0, BTreeSet::len) as u64;
                if visible != records {
                    return Err(format!("{visible} of {records} records are visible at the end"));
                }
                let execution = ExecutionId { job, generation: facts.generation };
                let counted: u64 = self.counts.get(&execution).into_iter().flat_map(BTreeMap::values).sum();
                if counted != records {
                    return Err(format!("the sinks counted {counted} records of {records}"));
                }
                Ok(())
            }
            Some(JobEnd { status: JobStatus::Canceled, .. }) => Ok(()),
            // Its checkpoint counted, and was not to be kept.
            Some(JobEnd { status: JobStatus::Failed, .. }) if facts.version == Version::Fleeting => Ok(()),
            Some(JobEnd { status, error, .. }) => Err(format!("job {job} is {status}: {error:?}")),
            None => Err(format!("job {job} has no end")),
        }
    }
}
