//! One execution of a job: its workers, its tasks, and the splits of its sources.

use std::collections::{BTreeMap, BTreeSet};

use flott_checkpoint::assign::task_restore;
use flott_checkpoint::{Manifest, TaskRestore};
use flott_control::{ExecutionId, JobDeployment, TaskDeployment, TaskMetrics, WorkerAddress};
use flott_core::config::Configuration;
use flott_core::ids::{CheckpointId, Generation, SubtaskId, TaskManagerId, VertexId};
use flott_core::status::TaskStatus;
use flott_graph::JobGraph;

use crate::api::SessionId;
use crate::coordinator::Progress;
use crate::rescale::parallelism_of;
use crate::scheduler::{Affinity, Resized, affinity};
use crate::splits::SplitAssigner;
use crate::view::{SubtaskView, VertexView};
use crate::worker::Worker;

mod carrying;

pub(crate) use carrying::Sparing;

/// The checkpoint that an execution starts from.
#[derive(Clone, Debug)]
pub(crate) struct Restore {
    /// Its folder, as a URL.
    pub(crate) location: String,
    /// Its content.
    pub(crate) manifest: Box<Manifest>,
    /// Whether it lies in the job's own folder, so that new checkpoints may refer to its files.
    pub(crate) is_own: bool,
    /// Whether state that nobody claims is dropped.
    pub(crate) allow_non_restored_state: bool,
}

impl Restore {
    fn of_task(&self, graph: &JobGraph, subtask: SubtaskId) -> TaskRestore {
        let mut restore = task_restore(&self.manifest, &self.location, graph, subtask);
        // Savepoints and other jobs' checkpoints may be deleted at any time: nothing is to build on them.
        restore.is_same_range &= self.is_own;
        restore.allow_non_restored_state = self.allow_non_restored_state;
        restore
    }

    /// The splits that were unassigned in the source whose operators these are, if they were known.
    fn splits_of(&self, graph: &JobGraph, vertex: VertexId) -> SplitAssigner {
        let operators = &graph.vertices[vertex as usize].operators;
        let old =
            self.manifest.vertices.iter().find(|old| {
                old.splits_discovered && operators.iter().any(|operator| old.operators.contains(&operator.id))
            });
        old.map_or_else(SplitAssigner::default, |old| SplitAssigner::restored(old.unassigned_splits.clone()))
    }
}

#[derive(Clone, Debug)]
struct Task {
    worker: u32,
    /// Its slot, counted within its worker.
    slot: u32,
    status: TaskStatus,
    since_ms: i64,
    /// The execution that it was started in.
    attempt: Generation,
    /// Whether it carries over from the execution before.
    is_carried: bool,
    started_ms: Option<i64>,
    metrics: Option<TaskMetrics>,
}

/// See the module's documentation.
#[derive(Clone, Debug)]
pub(crate) struct Execution {
    pub(crate) id: ExecutionId,
    /// The TaskManager of each slot.
    slots: Vec<TaskManagerId>,
    /// How many subtasks each vertex has.
    parallelism: Vec<u32>,
    pub(crate) workers: Vec<Worker>,
    tasks: BTreeMap<SubtaskId, Task>,
    pub(crate) splits: BTreeMap<VertexId, SplitAssigner>,
    restore: Option<Restore>,
    /// Until when all workers must have registered; `None` once they have.
    pub(crate) register_by_ms: Option<i64>,
    /// Whether all tasks have been running.
    pub(crate) has_run: bool,
    /// Whether there are workers that were kept from the execution before.
    pub(crate) is_continued: bool,
    /// Whether these have been told to continue.
    has_told: bool,
    /// Which of its regions are spared, now that it has failed.
    pub(crate) sparing: Sparing,
}

impl Execution {
    /// Puts subtask `s` of every vertex into slot `s`, with one worker on each TaskManager that gives slots: that of
    /// `kept`, which is taken out of it, or a new one.
    pub(crate) fn new(
        id: ExecutionId,
        graph: &JobGraph,
        slots: Vec<TaskManagerId>,
        restore: Option<Restore>,
        kept: &mut BTreeMap<TaskManagerId, Worker>,
        (now_ms, register_by_ms): (i64, i64),
    ) -> Self {
        let mut workers: Vec<Worker> = Vec::new();
        let mut slots_taken: Vec<u32> = Vec::new();
        let mut places: Vec<(u32, u32)> = Vec::with_capacity(slots.len());
        for task_manager in &slots {
            let worker = workers.iter().position(|worker| worker.task_manager == *task_manager).unwrap_or_else(|| {
                let continued = kept.remove(task_manager).map(Worker::continued);
                workers.push(continued.unwrap_or_else(|| Worker::new(task_manager.clone(), id)));
                slots_taken.push(0);
                workers.len() - 1
            });
            places.push((worker as u32, slots_taken[worker]));
            slots_taken[worker] += 1;
        }
        let mut tasks = BTreeMap::new();
        let mut splits = BTreeMap::new();
        for (vertex, description) in (0..).zip(&graph.vertices) {
            for (index, &(worker, slot)) in (0..description.parallelism).zip(&places) {
                let status = TaskStatus::Deploying;
                let task = Task {
                    worker,
                    slot,
                    status,
                    since_ms: now_ms,
                    attempt: id.generation,
                    is_carried: false,
                    started_ms: None,
                    metrics: None,
                };
                tasks.insert(SubtaskId { vertex, index }, task);
            }
            if description.is_source {
                let assigner = restore.as_ref().map(|restore| restore.splits_of(graph, vertex));
                splits.insert(vertex, assigner.unwrap_or_default());
            }
        }
        Self {
            id,
            slots,
            parallelism: parallelism_of(graph),
            is_continued: workers.iter().any(|worker| worker.session.is_some()),
            workers,
            tasks,
            splits,
            restore,
            register_by_ms: Some(register_by_ms),
            has_run: false,
            has_told: false,
            sparing: Sparing::Nobody,
        }
    }

    /// The TaskManager of each slot.
    pub(crate) fn slots(&self) -> &[TaskManagerId] {
        &self.slots
    }

    /// Where the key groups of each slot were in this execution, if `graph` is given another parallelism.
    pub(crate) fn affinity(&self, graph: &JobGraph, parallelism: &[u32]) -> Affinity {
        let vertices = graph.vertices.iter().zip(self.parallelism.iter().zip(parallelism));
        let resized = vertices.map(|(vertex, (&old, &new))| Resized { old, new, max: vertex.max_parallelism });
        affinity(&self.slots, resized)
    }

    /// The worker on a TaskManager.
    pub(crate) fn worker_on(&mut self, task_manager: &TaskManagerId) -> Option<&mut Worker> {
        self.workers.iter_mut().find(|worker| worker.task_manager == *task_manager)
    }

    /// The worker with a session, whether it has registered for this execution or not.
    pub(crate) fn worker_of(&mut self, session: SessionId) -> Option<&mut Worker> {
        self.workers.iter_mut().find(|worker| worker.session == Some(session))
    }

    /// The sessions of all workers that have registered and can be reached.
    pub(crate) fn sessions(&self) -> impl Iterator<Item = SessionId> {
        let workers = self.workers.iter().filter(|worker| worker.is_registered && worker.is_reachable());
        workers.filter_map(|worker| worker.session)
    }

    /// The session of the worker that runs a subtask.
    pub(crate) fn session_of(&self, subtask: SubtaskId) -> Option<SessionId> {
        let task = self.tasks.get(&subtask)?;
        self.workers.get(task.worker as usize)?.session
    }

    /// The TaskManager that runs a subtask.
    pub(crate) fn task_manager_of(&self, subtask: SubtaskId) -> Option<&TaskManagerId> {
        let task = self.tasks.get(&subtask)?;
        self.workers.get(task.worker as usize).map(|worker| &worker.task_manager)
    }

    /// A worker registered. Returns whether it was one that was waited for.
    pub(crate) fn register(&mut self, task_manager: &TaskManagerId, session: SessionId, data_address: String) -> bool {
        match self.worker_on(task_manager) {
            Some(worker)
                if !worker.is_registered
                    && worker.is_reachable()
                    && worker.session.is_none_or(|own| own == session) =>
            {
                worker.session = Some(session);
                worker.data_address = data_address;
                worker.is_registered = true;
                true
            }
            _ => false,
        }
    }

    /// The workers that were kept from the execution before, once, when all that had to be started have registered: so
    /// that they work on while others start, and stand still for a moment only.
    pub(crate) fn take_continued(&mut self) -> Vec<SessionId> {
        if !self.is_continued || self.has_told || self.workers.iter().any(|worker| worker.session.is_none()) {
            return Vec::new();
        }
        self.has_told = true;
        self.workers.iter().filter(|worker| !worker.is_registered).filter_map(|worker| worker.session).collect()
    }

    /// The checkpoint that it starts from, until its parts are deployed.
    pub(crate) fn checkpoint(&self) -> Option<CheckpointId> {
        self.restore.as_ref().map(|restore| restore.manifest.checkpoint)
    }

    /// None of its workers goes on.
    pub(crate) fn keep_nobody(&mut self) {
        self.workers.iter_mut().for_each(|worker| worker.is_kept = false);
    }

    /// Whether some of its workers go on to the next.
    pub(crate) fn has_kept(&self) -> bool {
        self.workers.iter().any(|worker| worker.is_kept)
    }

    /// The slots whose workers go on.
    pub(crate) fn kept_slots(&self) -> Vec<TaskManagerId> {
        let kept = self.workers.iter().filter(|worker| worker.is_kept).map(|worker| &worker.task_manager);
        let kept: BTreeSet<&TaskManagerId> = kept.collect();
        self.slots.iter().filter(|task_manager| kept.contains(task_manager)).cloned().collect()
    }

    /// The workers that go on.
    pub(crate) fn into_kept(self) -> BTreeMap<TaskManagerId, Worker> {
        let kept = self.workers.into_iter().filter(|worker| worker.is_kept);
        kept.map(|worker| (worker.task_manager.clone(), worker)).collect()
    }

    /// The parts of all workers, once all of them have registered. What is restored is forgotten with that.
    pub(crate) fn deploy(
        &mut self,
        now_ms: i64,
        graph: &JobGraph,
        config: &Configuration,
        checkpoint_dir: &str,
    ) -> Vec<(SessionId, JobDeployment)> {
        let session = |worker: &Worker| worker.session.filter(|_| worker.is_registered);
        let sessions: Option<Vec<SessionId>> = self.workers.iter().map(session).collect();
        let Some(sessions) = sessions.filter(|_| self.register_by_ms.is_some()) else { return Vec::new() };
        self.register_by_ms = None;
        let restore = self.restore.take();
        let address = |worker: &Worker| WorkerAddress {
            task_manager: worker.task_manager.clone(),
            data_address: worker.data_address.clone(),
        };
        let workers: Vec<WorkerAddress> = self.workers.iter().map(address).collect();
        let mut placement: Vec<Vec<u32>> = vec![Vec::new(); graph.vertices.len()];
        for (subtask, task) in &self.tasks {
            placement[subtask.vertex as usize].push(task.worker);
        }
        for task in self.tasks.values_mut().filter(|task| !task.is_carried) {
            task.started_ms = Some(now_ms);
        }
        let description = graph.describe();
        let part = |(this_worker, session): (u32, SessionId)| {
            let new = self.tasks.iter().filter(|(_, task)| task.worker == this_worker && !task.is_carried);
            let tasks = new.map(|(&subtask, task)| {
                let restore = restore.as_ref().map(|restore| restore.of_task(graph, subtask));
                TaskDeployment { subtask, slot: task.slot, restore }
            });
            let deployment = JobDeployment {
                graph: description.clone(),
                config: config.clone(),
                checkpoint_dir: checkpoint_dir.to_owned(),
                workers: workers.clone(),
                this_worker,
                placement: placement.clone(),
                tasks: tasks.collect(),
            };
            (session, deployment)
        };
        (0..).zip(sessions).map(part).collect()
    }

    /// A subtask changed its state. Returns whether it exists and had not ended before.
    pub(crate) fn set_status(&mut self, now_ms: i64, subtask: SubtaskId, status: TaskStatus) -> bool {
        match self.tasks.get_mut(&subtask) {
            Some(task) if !has_ended(task.status) => {
                if task.status != status {
                    task.status = status;
                    task.since_ms = now_ms;
                }
                true
            }
            _ => false,
        }
    }

    /// Whatever has not ended is in this state from now on.
    pub(crate) fn set_remaining(&mut self, now_ms: i64, status: TaskStatus) {
        for task in self.tasks.values_mut().filter(|task| !has_ended(task.status) && task.status != status) {
            task.status = status;
            task.since_ms = now_ms;
        }
    }

    /// The figures of subtasks.
    pub(crate) fn set_metrics(&mut self, metrics: Vec<TaskMetrics>) {
        for figures in metrics {
            if let Some(task) = self.tasks.get_mut(&figures.subtask) {
                task.metrics = Some(figures);
            }
        }
    }

    /// What the tasks are doing, all in all.
    pub(crate) fn progress(&self) -> Progress {
        let all = |statuses: &[TaskStatus]| self.tasks.values().all(|task| statuses.contains(&task.status));
        Progress {
            is_running: all(&[TaskStatus::Running, TaskStatus::Finishing]),
            is_finishing: all(&[TaskStatus::Finishing]),
        }
    }

    /// Whether every task has finished.
    pub(crate) fn is_finished(&self) -> bool {
        self.tasks.values().all(|task| task.status == TaskStatus::Finished)
    }

    /// Whether nothing runs any more, in whatever way it ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.tasks.values().all(|task| {
            has_ended(task.status) || self.workers.get(task.worker as usize).is_none_or(|worker| !worker.is_reachable())
        })
    }

    /// Whether all workers that are not kept are gone, or at least lost.
    pub(crate) fn is_unreachable(&self) -> bool {
        self.workers.iter().all(|worker| worker.is_kept || !worker.is_reachable())
    }

    /// Whether all workers that are not kept are gone.
    pub(crate) fn is_gone(&self) -> bool {
        self.workers.iter().all(|worker| worker.is_kept || worker.is_gone)
    }

    /// What can be seen.
    pub(crate) fn view(&self) -> Vec<VertexView> {
        let subtask = |subtask: SubtaskId| {
            self.tasks.get(&subtask).map(|task| SubtaskView {
                status: task.status,
                task_manager: self.task_manager_of(subtask).cloned(),
                since_ms: task.since_ms,
                attempt: task.attempt,
                started_ms: task.started_ms,
                metrics: task.metrics.clone(),
            })
        };
        let vertex = |(vertex, &parallelism): (VertexId, &u32)| VertexView {
            subtasks: (0..parallelism).filter_map(|index| subtask(SubtaskId { vertex, index })).collect(),
        };
        (0..).zip(&self.parallelism).map(vertex).collect()
    }
}

fn has_ended(status: TaskStatus) -> bool {
    matches!(status, TaskStatus::Finished | TaskStatus::Canceled | TaskStatus::Failed)
}

/// The name of a subtask, as Flink writes it: `Map (2/4)`.
pub(crate) fn task_name(graph: &JobGraph, subtask: SubtaskId) -> String {
    match graph.vertices.get(subtask.vertex as usize) {
        Some(vertex) => format!("{} ({}/{})", vertex.name, subtask.index + 1, vertex.parallelism),
        None => format!("subtask {subtask}"),
    }
}

/// The vertices of a job that has never run.
pub(crate) fn view_unplaced(graph: &JobGraph, since_ms: i64) -> Vec<VertexView> {
    let status = TaskStatus::Created;
    let subtask = SubtaskView { status, task_manager: None, since_ms, attempt: 0, started_ms: None, metrics: None };
    let vertex =
        |vertex: &flott_graph::JobVertex| VertexView { subtasks: vec![subtask.clone(); vertex.parallelism as usize] };
    graph.vertices.iter().map(vertex).collect()
}

#[cfg(test)]
mod tests;
