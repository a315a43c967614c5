//! What TaskManagers and workers do.

use std::collections::{BTreeMap, BTreeSet};

use flott_control::{Down, ExecutionId, JobDeployment, PROTOCOL_VERSION, TaskManagerInfo, Up};
use flott_core::Error;
use flott_core::ids::{SubtaskId, TaskManagerId};
use flott_core::status::TaskStatus;
use flott_jobmanager_core::{SessionId, platform};

use super::{Link, Occurrence, World};
use crate::scenario::{Fault, SINK, SOURCE};
use crate::task::{Effect, Sink, Source, Split};

/// A process, numbered by the world.
pub(super) type ProcessId = u64;

/// How often a process sends a sign of life.
const HEARTBEAT_MS: i64 = 500;

#[derive(Clone, Debug)]
pub(super) struct TaskManager {
    id: TaskManagerId,
    starting: BTreeSet<ExecutionId>,
    workers: BTreeMap<ExecutionId, ProcessId>,
}

#[derive(Clone, Debug)]
enum Model {
    Source(Source),
    Sink(Sink),
}

#[derive(Clone, Debug)]
struct Task {
    status: TaskStatus,
    model: Model,
    is_scheduled: bool,
}

impl Task {
    fn is_alive(&self) -> bool {
        matches!(self.status, TaskStatus::Running | TaskStatus::Finishing)
    }
}

#[derive(Clone, Debug)]
pub(super) struct Worker {
    execution: ExecutionId,
    home: ProcessId,
    task_manager: TaskManagerId,
    tasks: BTreeMap<SubtaskId, Task>,
}

#[derive(Clone, Debug)]
enum Kind {
    TaskManager(TaskManager),
    Worker(Worker),
}

#[derive(Clone, Debug)]
pub(super) struct Process {
    session: Option<SessionId>,
    kind: Kind,
}

impl World {
    pub(super) fn happen_to_process(&mut self, occurrence: Occurrence) {
        match occurrence {
            Occurrence::StartTaskManager => {
                let id = TaskManagerId(format!("tm-{:03}", self.process_count));
                let (starting, workers) = (BTreeSet::new(), BTreeMap::new());
                self.start_process(Kind::TaskManager(TaskManager { id, starting, workers }));
            }
            Occurrence::Connect(process) => self.connect(process),
            Occurrence::Heartbeat(process) => self.heartbeat(process),
            Occurrence::Down { process, session, message } => {
                if let Some(receiver) = self.processes.get(&process).filter(|p| p.session == Some(session)) {
                    match receiver.kind {
                        Kind::TaskManager(_) => self.tell_task_manager(process, message),
                        Kind::Worker(_) => self.tell_worker(process, message),
                    }
                }
            }
            Occurrence::DownClosed { process, session } => self.disconnected(process, session),
            Occurrence::SpawnWorker { home, execution } => {
                let Some(task_manager) = self.task_manager(home) else { return };
                if task_manager.starting.remove(&execution) {
                    let task_manager = task_manager.id.clone();
                    let worker = Worker { execution, home, task_manager, tasks: BTreeMap::new() };
                    let process = self.start_process(Kind::Worker(worker));
                    if let Some(task_manager) = self.task_manager(home) {
                        task_manager.workers.insert(execution, process);
                    }
                }
            }
            Occurrence::KillWorker(process) => self.end_worker(process, "its TaskManager died"),
            Occurrence::RunTask { worker, subtask } => {
                self.set_status(worker, subtask, TaskStatus::Running, None);
                self.schedule(worker, subtask);
            }
            Occurrence::StepTask { worker, subtask } => self.step(worker, subtask),
            Occurrence::Say { worker, message } => self.say(worker, message),
            _ => {}
        }
    }

    fn start_process(&mut self, kind: Kind) -> ProcessId {
        self.process_count += 1;
        let process = self.process_count;
        self.processes.insert(process, Process { session: None, kind });
        self.after(0, 20, Occurrence::Connect(process));
        self.after(0, HEARTBEAT_MS, Occurrence::Heartbeat(process));
        process
    }

    fn task_manager(&mut self, process: ProcessId) -> Option<&mut TaskManager> {
        match &mut self.processes.get_mut(&process)?.kind {
            Kind::TaskManager(task_manager) => Some(task_manager),
            Kind::Worker(_) => None,
        }
    }

    fn worker(&mut self, process: ProcessId) -> Option<&mut Worker> {
        match &mut self.processes.get_mut(&process)?.kind {
            Kind::Worker(worker) => Some(worker),
            Kind::TaskManager(_) => None,
        }
    }

    fn connect(&mut self, process: ProcessId) {
        let slots = self.scenario.slots;
        let Some(description) = self.processes.get_mut(&process).filter(|process| process.session.is_none()) else {
            return;
        };
        if self.cluster.is_none() {
            self.after(50, 200, Occurrence::Connect(process));
            return;
        }
        self.sessions += 1;
        let session = self.sessions;
        description.session = Some(session);
        let message = match &description.kind {
            Kind::TaskManager(task_manager) => Up::RegisterTaskManager(TaskManagerInfo {
                id: task_manager.id.clone(),
                host: "localhost".into(),
                pid: process as u32,
                slots,
                platform: platform(),
                protocol_version: PROTOCOL_VERSION,
            }),
            Kind::Worker(worker) => Up::RegisterWorker {
                execution: worker.execution,
                task_manager: worker.task_manager.clone(),
                data_address: format!("localhost:{process}"),
            },
        };
        self.links
            .insert(session, Link { process, up_last_ms: self.now_ms, down_last_ms: self.now_ms, is_mute: false });
        self.send_up(session, message);
    }

    fn heartbeat(&mut self, process: ProcessId) {
        let Some(description) = self.processes.get(&process) else { return };
        let execution = match &description.kind {
            Kind::TaskManager(_) => None,
            Kind::Worker(worker) => Some(worker.execution),
        };
        self.say(process, Up::Heartbeat { execution, metrics: Vec::new() });
        self.after(HEARTBEAT_MS, HEARTBEAT_MS, Occurrence::Heartbeat(process));
    }

    fn say(&mut self, process: ProcessId, message: Up) {
        if let Some(session) = self.processes.get(&process).and_then(|process| process.session) {
            self.send_up(session, message);
        }
    }

    /// A TaskManager comes back; a worker may also give itself up.
    fn disconnected(&mut self, process: ProcessId, session: SessionId) {
        let Some(description) = self.processes.get_mut(&process).filter(|process| process.session == Some(session))
        else {
            return;
        };
        description.session = None;
        let is_worker = matches!(description.kind, Kind::Worker(_));
        if is_worker && self.random.chance(50) {
            self.end_worker(process, "it lost its connection");
        } else {
            self.after(20, 300, Occurrence::Connect(process));
        }
    }

    fn tell_task_manager(&mut self, process: ProcessId, message: Down) {
        match message {
            Down::StartWorker { execution, .. } => {
                if let Some(task_manager) = self.task_manager(process) {
                    task_manager.starting.insert(execution);
                    self.after(5, 100, Occurrence::SpawnWorker { home: process, execution });
                }
            }
            Down::StopWorker { execution } => {
                let Some(task_manager) = self.task_manager(process) else { return };
                if task_manager.starting.remove(&execution) {
                    self.say(process, Up::WorkerExited { execution, reason: "never started".into() });
                } else if let Some(worker) = task_manager.workers.get(&execution).copied() {
                    self.end_worker(worker, "it was stopped");
                }
            }
            Down::Refused(_) => self.kill_task_manager(process),
            _ => {}
        }
    }

    /// A worker's process is gone: the JobManager sees its connection end, and its TaskManager says how.
    fn end_worker(&mut self, process: ProcessId, reason: &str) {
        let Some(Process { session, kind: Kind::Worker(worker) }) = self.processes.remove(&process) else { return };
        self.trace.line(self.now_ms, format_args!("worker {process} ended: {reason}"));
        if let Some(session) = session {
            self.close_up(session);
        }
        if let Some(task_manager) = self.task_manager(worker.home) {
            task_manager.workers.remove(&worker.execution);
            self.say(worker.home, Up::WorkerExited { execution: worker.execution, reason: reason.to_owned() });
        }
    }

    /// Its workers live a moment longer than a TaskManager: zombies.
    fn kill_task_manager(&mut self, process: ProcessId) {
        let Some(Process { session, kind: Kind::TaskManager(task_manager) }) = self.processes.remove(&process) else {
            return;
        };
        if let Some(session) = session {
            self.close_up(session);
        }
        for worker in task_manager.workers.into_values() {
            self.after(0, 300, Occurrence::KillWorker(worker));
        }
        self.after(50, 1500, Occurrence::StartTaskManager);
    }

    pub(super) fn inject_into_process(&mut self, fault: Fault) {
        let is_wanted = |process: &Process| match &process.kind {
            Kind::TaskManager(_) => fault == Fault::TaskManager,
            Kind::Worker(worker) => match fault {
                Fault::Worker => true,
                Fault::Task => worker.tasks.values().any(Task::is_alive),
                _ => false,
            },
        };
        let wanted: Vec<ProcessId> =
            self.processes.iter().filter(|(_, process)| is_wanted(process)).map(|(&id, _)| id).collect();
        let Some(process) = self.random.pick(&wanted) else { return };
        match fault {
            Fault::TaskManager => self.kill_task_manager(process),
            Fault::Worker => self.end_worker(process, "signal 9 (SIGKILL)"),
            _ => {
                let Some(worker) = self.worker(process) else { return };
                let alive: Vec<SubtaskId> =
                    worker.tasks.iter().filter(|(_, task)| task.is_alive()).map(|(&id, _)| id).collect();
                if let Some(subtask) = self.random.pick(&alive) {
                    self.set_status(process, subtask, TaskStatus::Failed, Some(Error::user_code("panicked")));
                }
            }
        }
    }

    fn tell_worker(&mut self, process: ProcessId, message: Down) {
        let Some(worker) = self.worker(process) else { return };
        let id = worker.execution;
        match message {
            Down::Refused(_) => self.end_worker(process, "it was refused"),
            Down::Deploy { execution, deployment } if execution == id => self.deploy(process, id, deployment),
            Down::DiscoverSplits { execution, vertex } if execution == id => {
                let splits = (0..).zip(&self.scenario.splits);
                let splits = splits.map(|(id, &count)| Split { id, count, position: 0 }.encode()).collect();
                let message = Up::SplitsDiscovered { execution, vertex, splits };
                self.after(1, 30, Occurrence::Say { worker: process, message });
            }
            Down::AddSplits { execution, subtask, splits, is_last } if execution == id => {
                if let Some(Task { model: Model::Source(source), .. }) = worker.tasks.get_mut(&subtask) {
                    source.add_splits(&splits, is_last);
                    self.schedule(process, subtask);
                }
            }
            Down::TriggerCheckpoint { execution, checkpoint, kind, .. } if execution == id => {
                self.each_task(process, |task, effects| {
                    if let Model::Source(source) = &mut task.model {
                        source.trigger(checkpoint, &kind, effects);
                    }
                });
            }
            Down::CheckpointCompleted { execution, checkpoint, is_last } if execution == id => {
                self.each_task(process, |task, effects| {
                    if let Model::Sink(sink) = &mut task.model {
                        sink.complete(checkpoint, effects);
                    }
                });
                if is_last {
                    self.end_tasks(process, TaskStatus::Finished);
                }
            }
            Down::CheckpointAborted { execution, checkpoint } if execution == id => {
                self.each_task(process, |task, _| {
                    if let Model::Sink(sink) = &mut task.model {
                        sink.abort(checkpoint);
                    }
                });
            }
            Down::CancelTasks { execution } if execution == id => self.end_tasks(process, TaskStatus::Canceled),
            _ => {}
        }
    }

    fn deploy(&mut self, process: ProcessId, execution: ExecutionId, deployment: JobDeployment) {
        let parallelism = |vertex: u32| deployment.placement[vertex as usize].len() as u32;
        let is_current =
            self.oracle.jobs.get(&execution.job).is_some_and(|facts| facts.generation == execution.generation);
        for task in &deployment.tasks {
            let (subtask, restore) = (task.subtask, task.restore.as_ref());
            let mut files = restore.into_iter().flat_map(|restore| restore.keyed.iter().flat_map(|source| &source.files));
            if let Some(missing) = files.find(|file| is_current && !self.store.files.contains(&file.path)) {
                self.violation = Some(format!("{} was deleted under a restore", missing.path));
                return;
            }
            let mut effects = Vec::new();
            let model = if subtask.vertex == SOURCE {
                Model::Source(Source::new(parallelism(SINK), restore))
            } else {
                let (sources, dir) = (parallelism(SOURCE), &deployment.checkpoint_dir);
                Model::Sink(Sink::new(execution, subtask, sources, dir, restore, &mut effects))
            };
            if let Some(worker) = self.worker(process) {
                let task = Task { status: TaskStatus::Deploying, model, is_scheduled: false };
                worker.tasks.insert(subtask, task);
            }
            self.homes.insert((execution, subtask), process);
            self.apply(process, execution, subtask, effects);
            self.set_status(process, subtask, TaskStatus::Initializing, None);
            self.after(1, 60, Occurrence::RunTask { worker: process, subtask });
        }
    }

    /// Does something with every task that lives, and lets all of them go on.
    fn each_task(&mut self, process: ProcessId, mut act: impl FnMut(&mut Task, &mut Vec<Effect>)) {
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

    fn end_tasks(&mut self, process: ProcessId, status: TaskStatus) {
        let Some(worker) = self.worker(process) else { return };
        let execution = worker.execution;
        let subtasks: Vec<SubtaskId> = worker.tasks.keys().copied().collect();
        let mut counts = Vec::new();
        for (&subtask, task) in &worker.tasks {
            if let (Model::Sink(sink), TaskStatus::Finished) = (&task.model, status) {
                counts.push((subtask, sink.count));
            }
        }
        for (subtask, count) in counts {
            self.oracle.finished(execution, subtask, count);
        }
        for subtask in subtasks {
            self.set_status(process, subtask, status, None);
        }
    }

    fn set_status(&mut self, process: ProcessId, subtask: SubtaskId, status: TaskStatus, error: Option<Error>) {
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

    /// Lets a task go on soon, if it lives.
    fn schedule(&mut self, process: ProcessId, subtask: SubtaskId) {
        let task = self.worker(process).and_then(|worker| worker.tasks.get_mut(&subtask));
        if let Some(task) = task.filter(|task| task.is_alive() && !task.is_scheduled) {
            task.is_scheduled = true;
            self.after(2, 8, Occurrence::StepTask { worker: process, subtask });
        }
    }

    fn step(&mut self, process: ProcessId, subtask: SubtaskId) {
        // The task is taken out meanwhile, since it reads from channels that belong to the world.
        let Some(worker) = self.worker(process) else { return };
        let execution = worker.execution;
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
                    self.channels.entry((execution, subtask, to)).or_default().push_back(element);
                    if let Some(home) = self.homes.get(&(execution, to)).copied() {
                        self.schedule(home, to);
                    }
                }
                Effect::RequestSplit => self.say(process, Up::RequestSplit { execution, subtask }),
                Effect::Snapshot(checkpoint, snapshot) => {
                    let message = if self.random.chance(self.scenario.declines_percent) {
                        let reason = Error::system("no space left on device");
                        Up::CheckpointDeclined { execution, subtask, checkpoint, reason }
                    } else {
                        Up::CheckpointAcknowledged { execution, subtask, checkpoint, snapshot }
                    };
                    self.after(1, 40, Occurrence::Say { worker: process, message });
                }
                Effect::Write(file) => {
                    self.store.files.insert(file);
                }
                Effect::Commit(committable) => {
                    self.trace.line(self.now_ms, format_args!("commit {}", committable.token));
                    let result = self.oracle.committed(&committable);
                    self.expect(result);
                }
                Effect::Finishing => self.set_status(process, subtask, TaskStatus::Finishing, None),
            }
        }
    }
}
