//! What must hold in every run.

use std::collections::{BTreeMap, BTreeSet};

use flott_control::{CompletedCheckpoint, ExecutionId, Fact, JobEnd};
use flott_core::ids::{CheckpointId, Generation, JobId, SubtaskId};
use flott_core::status::JobStatus;

use crate::task::Committable;

/// A rule that was broken.
pub(crate) type Violation = String;

/// One job, as its facts tell it.
#[derive(Clone, Debug, Default)]
pub(crate) struct JobFacts {
    pub(crate) generation: Generation,
    /// Those that are retained.
    pub(crate) checkpoints: BTreeMap<CheckpointId, CompletedCheckpoint>,
    /// The last one that each generation completed.
    completed: BTreeMap<Generation, CheckpointId>,
    pub(crate) latest: Option<CompletedCheckpoint>,
    pub(crate) end: Option<JobEnd>,
}

/// Watches the log and the outside world.
#[derive(Clone, Debug, Default)]
pub(crate) struct Oracle {
    pub(crate) jobs: BTreeMap<JobId, JobFacts>,
    tokens: BTreeSet<String>,
    visible: BTreeSet<u64>,
    counts: BTreeMap<ExecutionId, BTreeMap<SubtaskId, u64>>,
}

impl Oracle {
    /// A fact became durable.
    pub(crate) fn durable(&mut self, fact: &Fact) -> Result<(), Violation> {
        match fact {
            Fact::JobSubmitted { job, .. } => match self.jobs.insert(*job, JobFacts::default()) {
                Some(_) => Err(format!("job {job} was submitted twice")),
                None => Ok(()),
            },
            Fact::GenerationStarted { job, generation } => {
                let facts = self.running(*job)?;
                if *generation != facts.generation + 1 {
                    return Err(format!("generation {generation} of {job} followed {}", facts.generation));
                }
                facts.generation = *generation;
                Ok(())
            }
            Fact::JobRescaled { .. } => Ok(()),
            Fact::CheckpointCompleted { job, checkpoint } => {
                let facts = self.running(*job)?;
                let latest = facts.latest.as_ref().map_or(0, |latest| latest.id);
                if checkpoint.generation != facts.generation || checkpoint.id <= latest {
                    return Err(format!(
                        "checkpoint {} of generation {} became durable after checkpoint {latest}, in generation {}",
                        checkpoint.id, checkpoint.generation, facts.generation
                    ));
                }
                facts.checkpoints.insert(checkpoint.id, checkpoint.clone());
                facts.completed.insert(checkpoint.generation, checkpoint.id);
                facts.latest = Some(checkpoint.clone());
                Ok(())
            }
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
                Ok(())
            }
        }
    }

    fn running(&mut self, job: JobId) -> Result<&mut JobFacts, Violation> {
        match self.jobs.get_mut(&job) {
            Some(facts) if facts.end.is_none() => Ok(facts),
            Some(_) => Err(format!("something happened to job {job} after its end")),
            None => Err(format!("something happened to job {job} before its submission")),
        }
    }

    /// A sink made records visible.
    pub(crate) fn committed(&mut self, committable: &Committable) -> Result<(), Violation> {
        let Committable { token, execution, checkpoint, records } = committable;
        // Only a checkpoint of the execution that made it can have made it durable first.
        let completed = self.jobs.get(&execution.job).and_then(|facts| facts.completed.get(&execution.generation));
        if completed.is_none_or(|completed| completed < checkpoint) {
            return Err(format!("{token} became visible before a checkpoint that covers it was durable"));
        }
        if !self.tokens.insert(token.clone()) {
            return Ok(());
        }
        match records.iter().find(|&&record| !self.visible.insert(record)) {
            Some(record) => Err(format!("record {record:#x} became visible twice, the second time by {token}")),
            None => Ok(()),
        }
    }

    /// A sink finished after so many records.
    pub(crate) fn finished(&mut self, execution: ExecutionId, subtask: SubtaskId, count: u64) {
        self.counts.entry(execution).or_default().insert(subtask, count);
    }

    /// The last job is over.
    pub(crate) fn check_end(&self, job: JobId, records: u64) -> Result<(), Violation> {
        let Some(facts) = self.jobs.get(&job) else { return Err(format!("job {job} was never submitted")) };
        match &facts.end {
            Some(JobEnd { status: JobStatus::Finished, .. }) => {
                let visible = self.visible.len() as u64;
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
            Some(JobEnd { status, error, .. }) => Err(format!("job {job} is {status}: {error:?}")),
            None => Err(format!("job {job} has no end")),
        }
    }
}
