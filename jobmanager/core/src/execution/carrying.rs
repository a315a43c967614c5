//! What of an execution that has failed goes on to the next: sound workers, and the regions that the failure spares.

use std::collections::{BTreeMap, BTreeSet};

use flott_control::ExecutionId;
use flott_core::ids::{CheckpointId, SubtaskId, TaskManagerId, VertexId};
use flott_core::status::TaskStatus;
use flott_graph::JobGraph;

use super::{Execution, Task, has_ended};
use crate::api::SessionId;
use crate::rescale::parallelism_of;
use crate::splits::SplitAssigner;

/// Which regions a failure spares, of those that have lost nobody.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Sparing {
    /// None.
    #[default]
    Nobody,
    /// Those that are on one worker: which connections have broken is not known.
    OnOneWorker,
    /// All of them. Should one have lost a connection after all, its workers say so before the next execution runs.
    All,
}

/// What carries over from one execution to the next: subtasks as they run, and the splits of their sources.
#[derive(Clone, Debug, Default)]
pub(crate) struct Carried {
    tasks: BTreeMap<SubtaskId, Task>,
    splits: BTreeMap<VertexId, SplitAssigner>,
}

impl Execution {
    /// It is over: those of its workers that are sound go on to the next. So do, if `trusts_failed`, those that have
    /// subtasks to spare beside one that failed.
    pub(crate) fn keep_sound(&mut self, graph: &JobGraph, trusts_failed: bool) {
        for worker in &mut self.workers {
            worker.is_kept = worker.is_registered && worker.is_reachable() && (trusts_failed || !worker.has_failed);
        }
        let spared = self.spared(graph, &self.slots);
        let spared: BTreeSet<u32> = spared.iter().filter_map(|id| Some(self.tasks.get(id)?.worker)).collect();
        for (number, worker) in (0..).zip(&mut self.workers) {
            worker.is_kept &= !worker.has_failed || spared.contains(&number);
        }
    }

    /// The subtasks that the failure does not reach, if an execution with this graph and these slots is next: those of
    /// regions that run, and keep their places, on workers that go on.
    pub(crate) fn spared(&self, graph: &JobGraph, slots: &[TaskManagerId]) -> BTreeSet<SubtaskId> {
        if self.sparing == Sparing::Nobody || parallelism_of(graph) != self.parallelism {
            return BTreeSet::new();
        }
        let regions = graph.regions();
        // Where the subtasks of a region are, if all of them are well and have to be, and are, in one place.
        let mut homes: BTreeMap<Option<u32>, Option<u32>> = BTreeMap::new();
        for (&subtask, task) in &self.tasks {
            let is_well = matches!(task.status, TaskStatus::Running | TaskStatus::Finishing)
                && self.workers.get(task.worker as usize).is_some_and(|worker| worker.is_kept)
                && slots.get(subtask.index as usize) == self.slots.get(subtask.index as usize);
            let home = is_well.then_some(if self.sparing == Sparing::All { 0 } else { task.worker });
            let common = homes.entry(regions.of(subtask)).or_insert(home);
            *common = common.filter(|common| home == Some(*common));
        }
        let is_spared = |subtask: &SubtaskId| homes.get(&regions.of(*subtask)).is_some_and(Option::is_some);
        self.tasks.keys().copied().filter(is_spared).collect()
    }

    /// One of its workers turned out to be lost: that is what connections have broken of.
    pub(crate) fn blame_worker(&mut self) {
        if self.sparing == Sparing::OnOneWorker {
            self.sparing = Sparing::All;
        }
    }

    /// Takes out what carries over to an execution with this graph and these slots, which restores `checkpoint`.
    pub(crate) fn take_carried(
        &mut self,
        graph: &JobGraph,
        slots: &[TaskManagerId],
        checkpoint: Option<CheckpointId>,
    ) -> Carried {
        let spared = self.spared(graph, slots);
        let mut splits = std::mem::take(&mut self.splits);
        // Where all subtasks go back, the checkpoint says which splits are left.
        splits.retain(|&vertex, _| spared.iter().any(|subtask| subtask.vertex == vertex));
        for (&vertex, assigner) in &mut splits {
            let goes_back = |index| !spared.contains(&SubtaskId { vertex, index });
            assigner.take_back(checkpoint.unwrap_or(0), goes_back);
        }
        Carried { tasks: self.tasks.extract_if(.., |subtask, _| spared.contains(subtask)).collect(), splits }
    }

    /// These carry over: they are where they were, in the slots that they were in.
    pub(crate) fn carry(&mut self, carried: Carried) {
        let mut numbers: BTreeMap<u32, u32> = BTreeMap::new();
        let mut taken: BTreeSet<(u32, u32)> = BTreeSet::new();
        for (subtask, old) in carried.tasks {
            let Some(task) = self.tasks.get_mut(&subtask) else { continue };
            numbers.insert(subtask.index, old.slot);
            taken.insert((task.worker, old.slot));
            *task = Task { worker: task.worker, is_carried: true, ..old };
        }
        // The other slots get what numbers are left. Subtasks of one index share one.
        for (subtask, task) in self.tasks.iter_mut().filter(|(_, task)| !task.is_carried) {
            let next = || (0..).find(|&slot| taken.insert((task.worker, slot))).unwrap_or(0);
            task.slot = *numbers.entry(subtask.index).or_insert_with(next);
        }
        self.splits.extend(carried.splits);
    }

    /// The subtasks of a worker that carry over from the execution before.
    pub(crate) fn carried_on(&self, session: SessionId) -> Vec<SubtaskId> {
        let carried = self.tasks.iter().filter(|(_, task)| task.is_carried).map(|(subtask, _)| *subtask);
        carried.filter(|subtask| self.session_of(*subtask) == Some(session)).collect()
    }

    /// Whether there are any.
    pub(crate) fn has_carried(&self) -> bool {
        self.tasks.values().any(|task| task.is_carried)
    }

    /// The execution that a subtask's worker believes to be in, when it listens to what its sources are told: `asked_in`, or
    /// this one. Nothing if the subtask is about to go back to a checkpoint.
    pub(crate) fn listens_in(&self, subtask: SubtaskId, asked_in: ExecutionId) -> Option<ExecutionId> {
        let task = self.tasks.get(&subtask)?;
        let worker = self.workers.get(task.worker as usize)?;
        match (worker.is_registered, task.is_carried) {
            (true, _) => Some(self.id),
            (false, true) => Some(if self.has_told { self.id } else { asked_in }),
            (false, false) => None,
        }
    }

    /// It is over, and its workers are gone or go on: what is not spared has ended.
    pub(crate) fn end(&mut self, now_ms: i64, graph: &JobGraph) {
        let spared = self.spared(graph, &self.slots);
        for (_, task) in self.tasks.iter_mut().filter(|(id, task)| !has_ended(task.status) && !spared.contains(id)) {
            task.status = TaskStatus::Canceled;
            task.since_ms = now_ms;
        }
    }
}
