//! What a worker does with its tasks: restore them, let them go on, and take their state to the next execution.

use std::collections::BTreeMap;

use flott_checkpoint::TaskRestore;
use flott_control::{ExecutionId, JobDeployment, Up};
use flott_core::Error;
use flott_core::ids::{CheckpointId, JobId, SubtaskId};
use flott_core::key_group::{KeyGroup, range_of};
use flott_core::status::TaskStatus;

use super::processes::ProcessId;
use super::{Occurrence, World};
use crate::oracle::Violation;
use crate::scenario::{SINK, SOURCE, Version};
use crate::state::{Counts, Entries, Held};
use crate::task::{Effect, Sink, Source};

#[derive(Clone, Debug)]
pub(super) enum Model {
    Source(Source),
    Sink(Box<Sink>),
}

#[derive(Clone, Debug)]
pub(super) struct Task {
    status: TaskStatus,
    pub(super) model: Model,
    is_scheduled: bool,
}

impl Task {
    pub(super) fn is_alive(&self) -> bool {
        matches!(self.status, TaskStatus::Running | TaskStatus::Finishing)
    }
}

impl World {
    pub(super) fn version_of(&self, job: JobId) -> Version {
        self.oracle.jobs.get(&job).map(|facts| facts.version).unwrap_or_default()
    }

    fn completes_nothing(&self, job: JobId) -> bool {
        match self.version_of(job) {
            Version::CompletesNothing => true,
            Version::Slow => self.slow_until_ms.get(&job).is_some_and(|until_ms| self.now_ms < *until_ms),
            _ => false,
        }
    }

    pub(super) fn deploy(&mut self, process: ProcessId, execution: ExecutionId, deployment: &JobDeployment) {
        let Some(worker) = self.worker(process) else { return };
        let mut held = std::mem::take(&mut worker.held);
        let parallelism = |vertex: u32| deployment.placement[vertex as usize].len() as u32;
        let max_parallelism = self.scenario.max_parallelism;
        for task in &deployment.tasks {
            let (subtask, restore) = (task.subtask, task.restore.as_ref());
            let mut effects = Vec::new();
            let model = if subtask.vertex == SOURCE {
                Model::Source(Source::new(parallelism(SINK), max_parallelism, restore))
            } else {
                let counts = match self.restore(execution, subtask, parallelism(SINK), restore, &mut held) {
                    Ok(Some(counts)) => counts,
                    Ok(None) => return,
                    violation => return self.expect(violation.map(drop)),
                };
                let (sources, dir) = (parallelism(SOURCE), &deployment.checkpoint_dir);
                Model::Sink(Box::new(Sink::new(execution, subtask, sources, dir, counts, restore, &mut effects)))
            };
            if let Some(worker) = self.worker(process) {
                let task = Task { status: TaskStatus::Deploying, model, is_scheduled: false };
                worker.tasks.insert(subtask, task);
            }
            self.homes.insert((execution, subtask), process);
            self.apply(process, execution, subtask, effects);
            self.set_status(process, subtask, TaskStatus::Initializing, None);
            self.after(1, 60, Occurrence::RunTask { worker: process, execution, subtask });
        }
    }

    /// The keyed state that a sink starts from: what is held of it, and the rest from files. Nothing if its execution is
    /// over, and its files have been deleted.
    fn restore(
        &self,
        execution: ExecutionId,
        subtask: SubtaskId,
        sinks: u32,
        restore: Option<&TaskRestore>,
        held: &mut Held,
    ) -> Result<Option<Counts>, Violation> {
        let max_parallelism = self.scenario.max_parallelism;
        let range = range_of(sinks, subtask.index, max_parallelism);
        let checkpoint = restore.map(|restore| restore.checkpoint);
        let mut entries = Entries::new();
        for source in restore.into_iter().flat_map(|restore| &restore.keyed) {
            let tables = source.states.iter().filter_map(|state| state.table.as_ref());
            for file in source.files.iter().chain(tables) {
                let Some(content) = self.store.files.get(&file.path) else {
                    if self.oracle.is_current(execution) {
                        return Err(format!("{} was deleted under a restore", file.path));
                    }
                    return Ok(None);
                };
                let mine = content.iter().filter(|(key, _)| range.contains(key.group(max_parallelism)));
                entries.extend(mine.map(|(&key, &count)| (key, count)));
            }
        }
        if !held.groups.is_empty() && held.checkpoint != checkpoint {
            return Err(format!("{subtask} starts from {checkpoint:?}, its worker went back to {:?}", held.checkpoint));
        }
        let groups: Vec<KeyGroup> = held.groups.keys().copied().filter(|&group| range.contains(group)).collect();
        for group in groups {
            let in_memory = held.groups.remove(&group).unwrap_or_default();
            let in_files: Entries = entries
                .iter()
                .filter(|(key, _)| key.group(max_parallelism) == group)
                .map(|(&key, &count)| (key, count))
                .collect();
            if in_memory != in_files {
                return Err(format!(
                    "key group {group} of checkpoint {checkpoint:?} is {in_memory:?} in memory, and {in_files:?} in files"
                ));
            }
        }
        Ok(Some(Counts::new(range, max_parallelism, entries, checkpoint, self.scenario.keeps_workers)))
    }

    /// The worker stops its tasks, and goes back to a checkpoint for another execution.
    pub(super) fn leave_generation(
        &mut self,
        process: ProcessId,
        execution: ExecutionId,
        checkpoint: Option<CheckpointId>,
    ) {
        let Some(worker) = self.worker(process) else { return };
        worker.execution = execution;
        worker.has_failed = false;
        if worker.held.checkpoint != checkpoint {
            worker.held = Held { checkpoint, groups: BTreeMap::new() };
        }
        let tasks = std::mem::take(&mut worker.tasks);
        let mut groups: BTreeMap<KeyGroup, Entries> = BTreeMap::new();
        for task in tasks.into_values().filter(Task::is_alive) {
            if let (Model::Sink(sink), Some(checkpoint)) = (task.model, checkpoint) {
                groups.extend(sink.release(checkpoint));
            }
        }
        let count = groups.len();
        // What is needed to go back is bounded: some key groups have to be read from files.
        groups.retain(|_, _| !self.random.chance(10));
        self.trace.line(
            self.now_ms,
            format_args!("worker {process} goes back to {checkpoint:?} with {} of {count} key groups", groups.len()),
        );
        if let Some(worker) = self.worker(process) {
            worker.held.groups.extend(groups);
        }
        let is_slow = self.now_ms < self.scenario.calm_ms && self.random.chance(3);
        let (least_ms, most_ms) = if is_slow { (9_000, 12_000) } else { (1, 200) };
        self.after(least_ms, most_ms, Occurrence::Reregister { worker: process, execution });
    }

    /// Does something with every task that lives, and lets all of them go on.
    pub(super) fn each_task(&mut self, process: ProcessId, mut act: impl FnMut(&mut Task, &mut Vec<Effect>)) {
        let Some(worker) = self.worker(process) else { return };
        let execution = worker.execution;
        let mut all = Vec::new();
        for (&subtask, task) in worker.tasks.iter_mut().filter(|(_, task)| task.is_alive()) {
            let mut effects = Vec::new();
            act(task, &mut effects);
            all.push((subtask, effects));
        }
        for (subtask, effects) in all {
            self.apply(process, execution, subtask, effects);
            self.schedule(process, subtask);
        }
    }

    pub(super) fn end_tasks(&mut self, process: ProcessId, status: TaskStatus) {
        let Some(worker) = self.worker(process) else { return };
        let execution = worker.execution;
        let subtasks: Vec<SubtaskId> = worker.tasks.keys().copied().collect();
        let mut counts = Vec::new();
        for (&subtask, task) in &worker.tasks {
            if let (Model::Sink(sink), TaskStatus::Finished) = (&task.model, status) {
                counts.push((subtask, sink.total()));
            }
        }
        for (subtask, count) in counts {
            self.oracle.finished(execution, subtask, count);
        }
        for subtask in subtasks {
            self.set_status(process, subtask, status, None);
        }
    }

    /// A task panics. Its worker stops the others, and says so unless it has said already that it cannot go on.
    pub(super) fn fail_task(&mut self, process: ProcessId, subtask: SubtaskId) {
        let Some(worker) = self.worker(process) else { return };
        if std::mem::replace(&mut worker.has_failed, true) {
            if let Some(task) = worker.tasks.get_mut(&subtask) {
                task.status = TaskStatus::Failed;
            }
            return;
        }
        self.set_status(process, subtask, TaskStatus::Failed, Some(Error::user_code("panicked")));
        self.end_tasks(process, TaskStatus::Canceled);
    }

    pub(super) fn set_status(
        &mut self,
        process: ProcessId,
        subtask: SubtaskId,
        status: TaskStatus,
        error: Option<Error>,
    ) {
        let Some(worker) = self.worker(process) else { return };
        let execution = worker.execution;
        let Some(task) = worker.tasks.get_mut(&subtask) else { return };
        if matches!(task.status, TaskStatus::Finished | TaskStatus::Canceled | TaskStatus::Failed) {
            return;
        }
        task.status = status;
        self.trace.line(self.now_ms, format_args!("{subtask} of generation {} is {status:?}", execution.generation));
        self.say(process, Up::TaskStatus { execution, subtask, status, error });
    }

    /// A task is restored and open.
    pub(super) fn run_task(&mut self, process: ProcessId, execution: ExecutionId, subtask: SubtaskId) {
        if self.worker(process).is_some_and(|worker| worker.execution == execution) {
            if subtask.vertex == SINK && self.version_of(execution.job) == Version::Fails {
                return self.fail_task(process, subtask);
            }
            self.set_status(process, subtask, TaskStatus::Running, None);
            self.schedule(process, subtask);
        }
    }

    /// Lets a task go on soon, if it lives.
    pub(super) fn schedule(&mut self, process: ProcessId, subtask: SubtaskId) {
        let Some(worker) = self.worker(process) else { return };
        let execution = worker.execution;
        let task = worker.tasks.get_mut(&subtask);
        if let Some(task) = task.filter(|task| task.is_alive() && !task.is_scheduled) {
            task.is_scheduled = true;
            let least_ms = if subtask.vertex == SOURCE { self.scenario.input_of(execution.job).pace_ms } else { 2 };
            self.after(least_ms, least_ms + 6, Occurrence::StepTask { worker: process, execution, subtask });
        }
    }

    pub(super) fn step(&mut self, process: ProcessId, execution: ExecutionId, subtask: SubtaskId) {
        // The task is taken out meanwhile, since it reads from channels that belong to the world.
        let Some(worker) = self.worker(process).filter(|worker| worker.execution == execution) else { return };
        let Some(mut task) = worker.tasks.remove(&subtask) else { return };
        task.is_scheduled = false;
        let mut effects = Vec::new();
        let has_more = task.is_alive()
            && match &mut task.model {
                Model::Source(source) => source.step(&mut effects),
                Model::Sink(sink) => {
                    let channels = &mut self.channels;
                    let pop = |index| {
                        let source = SubtaskId { vertex: SOURCE, index };
                        channels.get_mut(&(execution, source, subtask))?.pop_front()
                    };
                    sink.step(pop, &mut effects)
                }
            };
        if let Some(worker) = self.worker(process) {
            worker.tasks.insert(subtask, task);
        }
        self.apply(process, execution, subtask, effects);
        if has_more {
            self.schedule(process, subtask);
        }
    }

    fn apply(&mut self, process: ProcessId, execution: ExecutionId, subtask: SubtaskId, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Push(to, element) => {
                    let home = self.homes.get(&(execution, to)).copied();
                    let is_broken = home
                        .is_some_and(|home| self.broken.contains(&(execution, process.min(home), process.max(home))));
                    // What is sent after a connection broke is lost, and so is all that follows.
                    if !is_broken {
                        self.channels.entry((execution, subtask, to)).or_default().push_back(element);
                    }
                    if let Some(home) = home {
                        self.schedule(home, to);
                    }
                }
                Effect::RequestSplit => self.say(process, Up::RequestSplit { execution, subtask }),
                Effect::Snapshot(checkpoint, snapshot) => {
                    let is_calm = self.now_ms >= self.scenario.calm_ms;
                    let declines = self.completes_nothing(execution.job)
                        || !is_calm && self.random.chance(self.scenario.declines_percent);
                    let message = if declines {
                        let reason = Error::system("no space left on device");
                        Up::CheckpointDeclined { execution, subtask, checkpoint, reason }
                    } else {
                        self.acknowledged.insert((execution, checkpoint, subtask), (*snapshot).clone());
                        Up::CheckpointAcknowledged { execution, subtask, checkpoint, snapshot: *snapshot }
                    };
                    self.after(1, 40, Occurrence::Say { worker: process, message });
                }
                Effect::Write(file, content) => {
                    self.store.files.insert(file, content);
                }
                Effect::Commit(committable) => {
                    self.trace.line(self.now_ms, format_args!("commit {}", committable.token));
                    let result = self.oracle.committed(&committable);
                    self.expect(result);
                }
                Effect::Finishing => self.set_status(process, subtask, TaskStatus::Finishing, None),
                Effect::Violation(violation) => self.expect(Err(violation)),
            }
        }
    }
}
