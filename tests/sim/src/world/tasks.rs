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
use crate::task::{Effect, Element, Sink, Source};

#[derive(Clone, Debug)]
pub(super) enum Model {
    Source(Source),
    Sink(Box<Sink>),
}

#[derive(Clone, Debug)]
pub(super) struct Task {
    /// The execution that it was started in.
    pub(super) execution: ExecutionId,
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
        for task in worker.tasks.values_mut() {
            if let Model::Sink(sink) = &mut task.model {
                sink.carry_over(&deployment.checkpoint_dir);
            }
        }
        let parallelism = |vertex: u32| deployment.placement[vertex as usize].len() as u32;
        let (max_parallelism, is_forward) = (self.scenario.max_parallelism, self.scenario.is_forward);
        let partners = |index: u32, vertex: u32| if is_forward { index..index + 1 } else { 0..parallelism(vertex) };
        for task in &deployment.tasks {
            let (subtask, restore) = (task.subtask, task.restore.as_ref());
            let mut effects = Vec::new();
            let model = if subtask.vertex == SOURCE {
                Model::Source(Source::new(partners(subtask.index, SINK), max_parallelism, restore))
            } else {
                let counts = match self.restore(execution, subtask, parallelism(SINK), restore, &mut held) {
                    Ok(Some(counts)) => counts,
                    Ok(None) => return,
                    violation => return self.expect(violation.map(drop)),
                };
                let (sources, dir) = (partners(subtask.index, SOURCE), &deployment.checkpoint_dir);
                Model::Sink(Box::new(Sink::new(execution, subtask, sources, dir, counts, restore, &mut effects)))
            };
            if let Some(worker) = self.worker(process) {
                let task = Task { execution, status: TaskStatus::Deploying, model, is_scheduled: false };
                worker.tasks.insert(subtask, task);
            }
            self.homes.insert((execution, subtask), process);
            self.apply(process, subtask, effects);
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
        Ok(Some(Counts::new(
            range,
            max_parallelism,
            entries,
            checkpoint,
            (!self.scenario.is_forward, self.scenario.keeps_workers),
        )))
    }

    /// The worker stops its tasks, except for some, and goes back to a checkpoint for another execution.
    pub(super) fn leave_generation(
        &mut self,
        process: ProcessId,
        execution: ExecutionId,
        checkpoint: Option<CheckpointId>,
        carried: &[SubtaskId],
    ) {
        let Some(worker) = self.worker(process) else { return };
        worker.execution = execution;
        worker.has_lost_connection = false;
        worker.failed.clear();
        worker.requested.retain(|subtask| carried.contains(subtask));
        worker.leaving = Some(carried.to_vec());
        let pending = std::mem::take(&mut worker.in_flight);
        if worker.held.checkpoint != checkpoint {
            worker.held = Held { checkpoint, groups: BTreeMap::new() };
        }
        let tasks: BTreeMap<SubtaskId, Task> =
            worker.tasks.extract_if(.., |subtask, _| !carried.contains(subtask)).collect();
        for pending in pending {
            self.settle(process, pending, Some(pending) == checkpoint);
        }
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

    /// A checkpoint is complete, or will never be.
    pub(super) fn settle(&mut self, process: ProcessId, checkpoint: CheckpointId, is_complete: bool) {
        self.each_task(process, |task, effects| {
            if let Model::Sink(sink) = &mut task.model {
                if is_complete { sink.complete(checkpoint, effects) } else { sink.abort(checkpoint) }
            }
        });
    }

    /// It has gone back, registers, and says how the tasks are that it did not stop.
    pub(super) fn enter_generation(&mut self, process: ProcessId, execution: ExecutionId) {
        let Some(worker) = self.worker(process).filter(|worker| worker.execution == execution) else { return };
        let Some(carried) = worker.leaving.take() else { return };
        let message = worker.registration(process);
        let mut messages = vec![message];
        for subtask in carried {
            let status = worker.tasks.get(&subtask).map_or(TaskStatus::Failed, |task| task.status);
            let error = (status == TaskStatus::Failed).then(|| Error::user_code("panicked"));
            messages.push(Up::TaskStatus { execution, subtask, status, error });
            if worker.requested.contains(&subtask) {
                messages.push(Up::RequestSplit { execution, subtask });
            }
        }
        for message in messages {
            self.say(process, message);
        }
    }

    /// Does something with every task that lives, and lets all of them go on.
    pub(super) fn each_task(&mut self, process: ProcessId, mut act: impl FnMut(&mut Task, &mut Vec<Effect>)) {
        let Some(worker) = self.worker(process) else { return };
        let mut all = Vec::new();
        for (&subtask, task) in worker.tasks.iter_mut().filter(|(_, task)| task.is_alive()) {
            let mut effects = Vec::new();
            act(task, &mut effects);
            all.push((subtask, effects));
        }
        for (subtask, effects) in all {
            self.apply(process, subtask, effects);
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

    /// A task panics. Its worker says so, unless another one of its region has failed before.
    pub(super) fn fail_task(&mut self, process: ProcessId, subtask: SubtaskId) {
        let region = if self.scenario.is_forward { subtask.index } else { 0 };
        let Some(worker) = self.worker(process) else { return };
        if !worker.failed.insert(region) {
            if let Some(task) = worker.tasks.get_mut(&subtask) {
                task.status = TaskStatus::Failed;
            }
            return;
        }
        self.set_status(process, subtask, TaskStatus::Failed, Some(Error::user_code("panicked")));
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
        let task = self.worker(process).and_then(|worker| worker.tasks.get(&subtask));
        if task.is_some_and(|task| task.execution == execution) {
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
        let task = worker.tasks.get_mut(&subtask);
        if let Some(task) = task.filter(|task| task.is_alive() && !task.is_scheduled) {
            task.is_scheduled = true;
            let execution = task.execution;
            let least_ms = if subtask.vertex == SOURCE { self.scenario.input_of(execution.job).pace_ms } else { 2 };
            self.after(least_ms, least_ms + 6, Occurrence::StepTask { worker: process, execution, subtask });
        }
    }

    pub(super) fn step(&mut self, process: ProcessId, execution: ExecutionId, subtask: SubtaskId) {
        // The task is taken out meanwhile, since it reads from channels that belong to the world.
        let Some(worker) = self.worker(process) else { return };
        if worker.tasks.get(&subtask).is_none_or(|task| task.execution != execution) {
            return;
        }
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
        self.apply(process, subtask, effects);
        if has_more {
            self.schedule(process, subtask);
        }
    }

    /// A barrier never follows another one into a channel whose checkpoint is still under way: what would a subtask make
    /// of the two?
    fn check_barrier(
        &self,
        (execution, started): (ExecutionId, ExecutionId),
        (from, to): (SubtaskId, SubtaskId),
        checkpoint: CheckpointId,
    ) -> Result<(), Violation> {
        let view = self.cluster.as_ref().and_then(|cluster| cluster.job(execution.job));
        let (Some(view), Some(channel)) = (view, self.channels.get(&(started, from, to))) else { return Ok(()) };
        let is_under_way = |id: CheckpointId| view.checkpoints.in_progress.iter().any(|pending| pending.id == id);
        let before = channel.iter().find_map(|element| match element {
            Element::Barrier(before, _) if is_under_way(*before) => Some(*before),
            _ => None,
        });
        match before.filter(|_| self.oracle.is_current(execution)) {
            Some(before) => Err(format!("the barrier of {checkpoint} follows that of {before} from {from} to {to}")),
            None => Ok(()),
        }
    }

    fn apply(&mut self, process: ProcessId, subtask: SubtaskId, effects: Vec<Effect>) {
        let Some(worker) = self.worker(process) else { return };
        let execution = worker.execution;
        let Some(started) = worker.tasks.get(&subtask).map(|task| task.execution) else { return };
        for effect in effects {
            match effect {
                Effect::Push(to, element) => {
                    if let Element::Barrier(checkpoint, _) = &element {
                        let result = self.check_barrier((execution, started), (subtask, to), *checkpoint);
                        self.expect(result);
                    }
                    let home = self.homes.get(&(started, to)).copied();
                    let is_broken =
                        home.is_some_and(|home| self.broken.contains(&(started, process.min(home), process.max(home))));
                    // What is sent after a connection broke is lost, and so is all that follows.
                    if !is_broken {
                        self.channels.entry((started, subtask, to)).or_default().push_back(element);
                    }
                    if let Some(home) = home {
                        self.schedule(home, to);
                    }
                }
                Effect::RequestSplit => {
                    if let Some(worker) = self.worker(process) {
                        worker.requested.insert(subtask);
                    }
                    self.say(process, Up::RequestSplit { execution, subtask });
                }
                Effect::Snapshot(checkpoint, snapshot) => {
                    let is_savepoint = snapshot.keyed_states.iter().any(|state| state.table.is_some());
                    let mut most_ms = 40;
                    if is_savepoint {
                        let message = Up::SavepointTaken { execution, subtask, checkpoint };
                        self.after(1, 40, Occurrence::Say { worker: process, message });
                        // To make it durable may take longer than some checkpoints take in all.
                        most_ms = 1000;
                    }
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
                    self.after(1, most_ms, Occurrence::Say { worker: process, message });
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
