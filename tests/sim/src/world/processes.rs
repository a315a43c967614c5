//! TaskManagers and workers as processes: how they start, connect, obey and die.

use std::collections::{BTreeMap, BTreeSet};

use flott_control::{Down, ExecutionId, PROTOCOL_VERSION, TaskManagerInfo, Up, WORKER_STOPPED};
use flott_core::Error;
use flott_core::ids::{CheckpointId, JobId, SubtaskId, TaskManagerId};
use flott_core::status::TaskStatus;
use flott_jobmanager_core::{SessionId, platform};

use super::tasks::{Model, Task};
use super::{Occurrence, World};
use crate::scenario::{Fault, Version};
use crate::state::Held;
use crate::task::Split;

/// A process, numbered by the world.
pub(super) type ProcessId = u64;

/// How often a process sends a sign of life.
const HEARTBEAT_MS: i64 = 500;

#[derive(Clone, Debug)]
pub(super) struct TaskManager {
    id: TaskManagerId,
    starting: BTreeSet<ExecutionId>,
    /// By what they were started for.
    workers: BTreeMap<ExecutionId, ProcessId>,
}

#[derive(Clone, Debug)]
pub(super) struct Worker {
    /// What it was started for: the name that its TaskManager has for it.
    started_for: ExecutionId,
    pub(super) execution: ExecutionId,
    home: ProcessId,
    task_manager: TaskManagerId,
    pub(super) tasks: BTreeMap<SubtaskId, Task>,
    /// What it has of the execution before, until it is told what to run.
    pub(super) held: Held,
    /// Its subtasks that wait for a split.
    pub(super) requested: BTreeSet<SubtaskId>,
    /// Checkpoints of which it has not heard whether they are complete.
    pub(super) in_flight: BTreeSet<CheckpointId>,
    /// While it goes from one execution to the next, the subtasks that go on meanwhile.
    pub(super) leaving: Option<Vec<SubtaskId>>,
    /// Whether it has said that it has lost a connection to another worker.
    pub(super) has_lost_connection: bool,
    /// The regions that it has said to have failed.
    pub(super) failed: BTreeSet<u32>,
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
            Occurrence::SpawnWorker { home, execution } => self.spawn_worker(home, execution),
            Occurrence::KillWorker(process) => self.end_worker(process, "its TaskManager died"),
            Occurrence::RunTask { worker, execution, subtask } => self.run_task(worker, execution, subtask),
            Occurrence::StepTask { worker, execution, subtask } => self.step(worker, execution, subtask),
            Occurrence::Say { worker, message } => {
                // What belongs to an execution that the worker has left is dropped.
                let execution = self.worker(worker).map(|worker| worker.execution);
                if execution.is_some() && execution == execution_of(&message) {
                    self.say(worker, message);
                }
            }
            Occurrence::Reregister { worker, execution } => self.enter_generation(worker, execution),
            Occurrence::LoseConnection { worker, execution } => self.lose_connection(worker, execution),
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

    fn spawn_worker(&mut self, home: ProcessId, execution: ExecutionId) {
        let Some(task_manager) = self.task_manager(home) else { return };
        if !task_manager.starting.remove(&execution) {
            return;
        }
        let worker = Worker {
            started_for: execution,
            execution,
            home,
            task_manager: task_manager.id.clone(),
            tasks: BTreeMap::new(),
            held: Held::default(),
            requested: BTreeSet::new(),
            in_flight: BTreeSet::new(),
            leaving: None,
            has_lost_connection: false,
            failed: BTreeSet::new(),
        };
        let process = self.start_process(Kind::Worker(worker));
        if let Some(task_manager) = self.task_manager(home) {
            task_manager.workers.insert(execution, process);
        }
    }

    fn task_manager(&mut self, process: ProcessId) -> Option<&mut TaskManager> {
        match &mut self.processes.get_mut(&process)?.kind {
            Kind::TaskManager(task_manager) => Some(task_manager),
            Kind::Worker(_) => None,
        }
    }

    pub(super) fn worker(&mut self, process: ProcessId) -> Option<&mut Worker> {
        match &mut self.processes.get_mut(&process)?.kind {
            Kind::Worker(worker) => Some(worker),
            Kind::TaskManager(_) => None,
        }
    }

    /// Whether a job has a worker on a TaskManager that the JobManager can reach.
    pub(super) fn has_linked_worker(&self, job: JobId, task_manager: &TaskManagerId) -> bool {
        self.processes.values().any(|process| match &process.kind {
            Kind::Worker(worker) => {
                let is_linked = process.session.is_some_and(|session| self.links.contains_key(&session));
                is_linked && worker.execution.job == job && worker.task_manager == *task_manager
            }
            Kind::TaskManager(_) => false,
        })
    }

    /// How many slots there are.
    pub(super) fn slots(&self) -> u32 {
        let task_managers = self.processes.values().filter(|process| matches!(process.kind, Kind::TaskManager(_)));
        task_managers.count() as u32 * self.scenario.slots
    }

    fn connect(&mut self, process: ProcessId) {
        let slots = self.scenario.slots;
        let Some(description) = self.processes.get(&process).filter(|process| process.session.is_none()) else {
            return;
        };
        if self.cluster.is_none() {
            self.after(50, 200, Occurrence::Connect(process));
            return;
        }
        let message = match &description.kind {
            Kind::TaskManager(task_manager) => Up::RegisterTaskManager(TaskManagerInfo {
                id: task_manager.id.clone(),
                host: "localhost".into(),
                pid: process as u32,
                slots,
                platform: platform(),
                protocol_version: PROTOCOL_VERSION,
            }),
            Kind::Worker(worker) => worker.registration(process),
        };
        let session = self.open_link(process);
        if let Some(description) = self.processes.get_mut(&process) {
            description.session = Some(session);
        }
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

    pub(super) fn say(&mut self, process: ProcessId, message: Up) {
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
                    self.end_worker(worker, WORKER_STOPPED);
                }
            }
            Down::Refused(_) => self.kill_task_manager(process),
            _ => {}
        }
    }

    fn tell_worker(&mut self, process: ProcessId, message: Down) {
        let Some(worker) = self.worker(process) else { return };
        let id = worker.execution;
        match message {
            Down::Refused(_) => self.end_worker(process, "it was refused"),
            Down::Continue { execution, checkpoint, carried }
                if execution.job == id.job && execution.generation > id.generation =>
            {
                self.leave_generation(process, execution, checkpoint, &carried);
            }
            Down::Deploy { execution, deployment } if execution == id => self.deploy(process, id, &deployment),
            Down::DiscoverSplits { execution, vertex } if execution == id => {
                let splits = (0..).zip(&self.scenario.input_of(execution.job).splits);
                let splits = splits.map(|(id, &count)| Split { id, count, position: 0 }.encode()).collect();
                let message = Up::SplitsDiscovered { execution, vertex, splits };
                self.after(1, 30, Occurrence::Say { worker: process, message });
            }
            Down::AddSplits { execution, subtask, splits, is_last } if execution == id => {
                worker.requested.remove(&subtask);
                if let Some(Task { model: Model::Source(source), .. }) = worker.tasks.get_mut(&subtask) {
                    source.add_splits(&splits, is_last);
                    self.schedule(process, subtask);
                }
            }
            Down::TriggerCheckpoint { execution, checkpoint, kind, .. } if execution == id => {
                worker.in_flight.insert(checkpoint);
                self.each_task(process, |task, effects| {
                    if let Model::Source(source) = &mut task.model {
                        source.trigger(checkpoint, &kind, effects);
                    }
                });
            }
            Down::CheckpointCompleted { execution, checkpoint, is_last } if execution == id => {
                worker.in_flight.retain(|pending| *pending > checkpoint);
                self.settle(process, checkpoint, true);
                if is_last {
                    self.end_tasks(process, TaskStatus::Finished);
                } else if self.version_of(execution.job) == Version::Fleeting {
                    self.fail_any_task(process);
                }
            }
            Down::CheckpointAborted { execution, checkpoint } if execution == id => {
                worker.in_flight.remove(&checkpoint);
                self.settle(process, checkpoint, false);
            }
            Down::CancelTasks { execution } if execution == id => self.end_tasks(process, TaskStatus::Canceled),
            _ => {}
        }
    }

    /// A worker's process is gone: the JobManager sees its connection end, its TaskManager says how, and others that it
    /// was connected to may say that they cannot go on.
    fn end_worker(&mut self, process: ProcessId, reason: &str) {
        let Some(Process { session, kind: Kind::Worker(worker) }) = self.processes.remove(&process) else { return };
        self.trace.line(self.now_ms, format_args!("worker {process} ended: {reason}"));
        if let Some(session) = session {
            self.close_up(session);
        }
        if let Some(task_manager) = self.task_manager(worker.home) {
            task_manager.workers.remove(&worker.started_for);
            let execution = worker.started_for;
            self.say(worker.home, Up::WorkerExited { execution, reason: reason.to_owned() });
        }
        for (peer, execution) in self.running_workers() {
            // Those that each keep to themselves are not connected.
            if execution == worker.execution && !self.scenario.is_forward && self.random.chance(70) {
                self.after(0, 60, Occurrence::LoseConnection { worker: peer, execution });
            }
        }
    }

    /// The workers that have been told what to run.
    fn running_workers(&self) -> Vec<(ProcessId, ExecutionId)> {
        let running = self.processes.iter().filter_map(|(&process, description)| match &description.kind {
            Kind::Worker(worker) if !worker.tasks.is_empty() => Some((process, worker.execution)),
            _ => None,
        });
        running.collect()
    }

    /// A worker sees a connection to another one end. It says so once, and keeps its state.
    fn lose_connection(&mut self, process: ProcessId, execution: ExecutionId) {
        let worker = self.worker(process).filter(|worker| worker.execution == execution && !worker.has_lost_connection);
        let Some(worker) = worker else { return };
        worker.has_lost_connection = true;
        self.trace.line(self.now_ms, format_args!("worker {process} lost a connection"));
        let error = Error::system("a connection to another worker was lost");
        self.say(process, Up::ConnectionLost { execution, error });
    }

    /// Two workers lose their connection. One of them sees it, and mostly the other one too.
    pub(super) fn break_data_connection(&mut self) {
        let running = self.running_workers();
        let Some((worker, execution)) = self.random.pick(&running) else { return };
        let peers: Vec<ProcessId> =
            running.into_iter().filter(|&(peer, of)| of == execution && peer != worker).map(|(peer, _)| peer).collect();
        let Some(peer) = self.random.pick(&peers) else { return };
        self.broken.insert((execution, worker.min(peer), worker.max(peer)));
        self.after(0, 30, Occurrence::LoseConnection { worker, execution });
        if self.random.chance(70) {
            self.after(0, 150, Occurrence::LoseConnection { worker: peer, execution });
        }
    }

    /// Its workers live a moment longer than a TaskManager: zombies.
    fn kill_task_manager(&mut self, process: ProcessId) {
        let Some(Process { session, kind: Kind::TaskManager(task_manager) }) = self.processes.remove(&process) else {
            return;
        };
        self.trace.line(self.now_ms, format_args!("TaskManager {process} ended"));
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
            _ => self.fail_any_task(process),
        }
    }

    fn fail_any_task(&mut self, process: ProcessId) {
        let Some(worker) = self.worker(process) else { return };
        let alive: Vec<SubtaskId> =
            worker.tasks.iter().filter(|(_, task)| task.is_alive()).map(|(&id, _)| id).collect();
        if let Some(subtask) = self.random.pick(&alive) {
            self.fail_task(process, subtask);
        }
    }
}

impl Worker {
    /// How it registers for its execution, for which it listens on a port of its own.
    pub(super) fn registration(&self, process: ProcessId) -> Up {
        Up::RegisterWorker {
            execution: self.execution,
            task_manager: self.task_manager.clone(),
            data_address: format!("localhost:{process}/{}", self.execution.generation),
        }
    }
}

/// The execution that something which took a worker some time is about.
fn execution_of(message: &Up) -> Option<ExecutionId> {
    match message {
        Up::SplitsDiscovered { execution, .. }
        | Up::SavepointTaken { execution, .. }
        | Up::CheckpointAcknowledged { execution, .. }
        | Up::CheckpointDeclined { execution, .. } => Some(*execution),
        _ => None,
    }
}
