//! Time, and everything that there is.
//!
//! Everything that takes time is an occurrence in one queue, ordered by its time and then by when
//! it was put there.
//!
//! - `leader`: the JobManager's process and its log; `faults`: what goes wrong
//! - `client`: what is asked of the JobManager, and how one job follows another; `upgrade`: clients that upgrade a job,
//!   over `rest`; `by_hand`: what their users do when they are left alone
//! - `network`: sessions
//! - `processes`: TaskManagers and workers; `tasks`: what workers run
//! - `store`: their files

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use flott_checkpoint::SubtaskSnapshot;
use flott_control::upgrade::{Answer, Ask};
use flott_control::{Down, ExecutionId, Fact, Up};
use flott_core::Result;
use flott_core::ids::{CheckpointId, JobId, SubtaskId, TaskManagerId};
use flott_core::status::JobStatus;
use flott_jobmanager_core::{Cluster, Event, Request, RequestId, SessionId};

use crate::oracle::{Oracle, Violation};
use crate::random::Random;
use crate::scenario::{CHECKPOINT_DIR, Fault, Scenario, Version, job_id};
use crate::task::Element;
use crate::trace::Trace;
use crate::world::client::{Asked, Line, Waiter};
use crate::world::network::Link;
use crate::world::processes::{Process, ProcessId};
use crate::world::rest::Operation;
use crate::world::store::Store;

mod by_hand;
mod client;
mod faults;
mod leader;
mod network;
mod processes;
mod rest;
mod store;
mod tasks;
mod upgrade;

/// How long a job may take once nothing goes wrong any more. That is a few heartbeat timeouts, and its records.
const CALM_MS_MAX: i64 = 60_000;
/// A run with more occurrences is stuck.
const OCCURRENCES_MAX: u64 = 2_000_000;

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// A hash of all that happened: the same for the same seed.
    pub trace_hash: u64,
    /// How many things happened.
    pub occurrences: u64,
    /// How long it took, in simulated milliseconds.
    pub time_ms: i64,
    /// How many lines of jobs there were, at once.
    pub lines: usize,
    /// How many jobs there were, over all lines.
    pub jobs: usize,
    /// How many upgrades ended with the new version.
    pub upgrades: u64,
    /// How many upgrades ended with the old version, after the new one did not work.
    pub rollbacks: u64,
    /// How many jobs a user started by hand, because an upgrade had ended with none.
    pub by_hand: u64,
    /// How many jobs were drained when they were stopped.
    pub drained: u64,
    /// How many executions there were, over all jobs.
    pub generations: u64,
    /// How many times a job was given another parallelism.
    pub rescales: u64,
    /// How many times a worker went on from one execution to the next.
    pub continued: u64,
    /// How many times a subtask carried over from one execution to the next.
    pub carried: u64,
    /// How many checkpoints and savepoints became durable.
    pub checkpoints: usize,
    /// How many times the JobManager was started.
    pub leaders: u64,
    /// How the last job of each line ended.
    pub statuses: Vec<JobStatus>,
}

/// Runs one seed to its end. Verbose runs print what happens to standard error.
///
/// The error says which rule was broken, or that the run got stuck.
pub fn run(seed: u64, is_verbose: bool) -> Result<Outcome, String> {
    let mut world = World::new(seed, is_verbose).map_err(|error| error.message)?;
    world.run()
}

/// Something that happens at some time.
#[derive(Clone, Debug)]
enum Occurrence {
    /// The JobManager asked to be woken.
    Tick,
    /// Something that a JobManager of this epoch waits for.
    Answer {
        epoch: u64,
        event: Event,
    },
    /// The first proposal becomes durable.
    Durable {
        epoch: u64,
    },
    /// A message arrives at the JobManager.
    Up {
        session: SessionId,
        message: Up,
    },
    /// The JobManager sees a connection end.
    UpClosed {
        session: SessionId,
    },
    /// A client's request arrives at the JobManager.
    Request(Request),
    /// A message arrives at a process.
    Down {
        process: ProcessId,
        session: SessionId,
        message: Down,
    },
    /// A process sees its connection end.
    DownClosed {
        process: ProcessId,
        session: SessionId,
    },
    StartJobManager,
    StartTaskManager,
    /// A process tries to connect.
    Connect(ProcessId),
    /// A process sends a sign of life.
    Heartbeat(ProcessId),
    /// A TaskManager has what it needs to start a worker.
    SpawnWorker {
        home: ProcessId,
        execution: ExecutionId,
    },
    /// A worker whose TaskManager died follows it.
    KillWorker(ProcessId),
    /// A task is restored and opened.
    RunTask {
        worker: ProcessId,
        /// The execution that it was started in.
        execution: ExecutionId,
        subtask: SubtaskId,
    },
    /// A task processes a little.
    StepTask {
        worker: ProcessId,
        execution: ExecutionId,
        subtask: SubtaskId,
    },
    /// A worker says something that took it some time.
    Say {
        worker: ProcessId,
        message: Up,
    },
    /// A worker has gone back to the checkpoint that its next execution starts from.
    Reregister {
        worker: ProcessId,
        execution: ExecutionId,
    },
    /// A worker sees a connection to another one end.
    LoseConnection {
        worker: ProcessId,
        execution: ExecutionId,
    },
    Fault(Fault),
    /// A client looks after its line of jobs.
    Client {
        line: usize,
    },
    /// A client that upgrades a job sends its request.
    ClientAsks {
        line: usize,
        number: u64,
    },
    /// The request arrives at the JobManager.
    Rest {
        line: usize,
        number: u64,
        ask: Ask,
    },
    /// The client is answered, or gives up waiting.
    ClientHears {
        line: usize,
        number: u64,
        answer: Result<Answer>,
    },
}

struct World {
    random: Random,
    trace: Trace,
    scenario: Scenario,
    now_ms: i64,
    occurrences: u64,
    queue: BTreeMap<(i64, u64), Occurrence>,
    queued: u64,

    cluster: Option<Cluster>,
    epoch: u64,
    tick_at_ms: Option<i64>,
    /// Until when the JobManager stands still.
    leader_resumes_ms: i64,
    log: Vec<Fact>,
    proposals: VecDeque<Fact>,
    durable_last_ms: i64,
    store: Store,

    links: BTreeMap<SessionId, Link>,
    sessions: SessionId,
    processes: BTreeMap<ProcessId, Process>,
    process_count: ProcessId,
    /// Processes that stand still, and until when.
    paused: BTreeMap<ProcessId, i64>,
    /// By the execution in which their subtasks were started, as their homes are.
    channels: BTreeMap<(ExecutionId, SubtaskId, SubtaskId), VecDeque<Element>>,
    homes: BTreeMap<(ExecutionId, SubtaskId), ProcessId>,
    /// Workers that have lost their connection, the lower number first.
    broken: BTreeSet<(ExecutionId, ProcessId, ProcessId)>,
    /// What subtasks gave to checkpoints.
    acknowledged: BTreeMap<(ExecutionId, CheckpointId, SubtaskId), SubtaskSnapshot>,
    /// Which worker on which TaskManager was told what to run.
    placements: BTreeMap<ExecutionId, BTreeMap<TaskManagerId, ProcessId>>,
    continued: u64,
    carried: u64,

    lines: Vec<Line>,
    requests: RequestId,
    asked: BTreeMap<RequestId, Asked>,
    /// What REST does beside the requests that asked for it, by the job and the name that the client gave it.
    operations: BTreeMap<(JobId, u64), Operation>,
    /// What clients have asked, over all of them.
    questions: u64,
    /// Until when a slow version completes nothing.
    slow_until_ms: BTreeMap<JobId, i64>,
    upgrades: u64,
    rollbacks: u64,
    by_hand: u64,
    drained: u64,
    savepoints: u64,
    /// The epoch in which the JobManager promised to cancel a job.
    cancelled: BTreeMap<JobId, u64>,
    oracle: Oracle,
    violation: Option<Violation>,
}

impl World {
    fn new(seed: u64, is_verbose: bool) -> Result<Self> {
        let mut random = Random::new(seed);
        let scenario = Scenario::draw(&mut random)?;
        let lines = 0..scenario.inputs.len();
        let lines = lines.map(|line| {
            let spec = scenario.draw_job(&mut random, Version::Good, None);
            Line::new(job_id(line, 1), spec)
        });
        let lines = lines.collect();
        Ok(Self {
            random,
            trace: Trace::new(is_verbose),
            oracle: Oracle::new(scenario.max_parallelism, scenario.slots, scenario.retains_ended),
            scenario,
            now_ms: 0,
            occurrences: 0,
            queue: BTreeMap::new(),
            queued: 0,
            cluster: None,
            epoch: 1,
            tick_at_ms: None,
            leader_resumes_ms: 0,
            log: Vec::new(),
            proposals: VecDeque::new(),
            durable_last_ms: 0,
            store: Store::default(),
            links: BTreeMap::new(),
            sessions: 0,
            processes: BTreeMap::new(),
            process_count: 0,
            paused: BTreeMap::new(),
            channels: BTreeMap::new(),
            homes: BTreeMap::new(),
            broken: BTreeSet::new(),
            acknowledged: BTreeMap::new(),
            placements: BTreeMap::new(),
            continued: 0,
            carried: 0,
            lines,
            requests: 0,
            asked: BTreeMap::new(),
            operations: BTreeMap::new(),
            questions: 0,
            slow_until_ms: BTreeMap::new(),
            upgrades: 0,
            rollbacks: 0,
            by_hand: 0,
            drained: 0,
            savepoints: 0,
            cancelled: BTreeMap::new(),
            violation: None,
        })
    }

    fn run(&mut self) -> Result<Outcome, String> {
        self.start_job_manager();
        for _ in 0..self.scenario.task_managers {
            self.after(0, 50, Occurrence::StartTaskManager);
        }
        for (at_ms, fault) in self.scenario.faults.clone() {
            self.at(at_ms, Occurrence::Fault(fault));
        }
        for line in 0..self.lines.len() {
            self.after(1, 1, Occurrence::Client { line });
        }
        while !self.lines.iter().all(|line| line.is_over) {
            let Some(((at_ms, number), occurrence)) = self.queue.pop_first() else {
                return Err("nothing is left to happen".into());
            };
            self.now_ms = at_ms;
            let resumes_ms = self.resumes_ms(&occurrence);
            if resumes_ms > at_ms {
                // It waits, and keeps its place among all that waits.
                if matches!(occurrence, Occurrence::Tick) && self.tick_at_ms == Some(at_ms) {
                    self.tick_at_ms = Some(resumes_ms);
                }
                self.queue.insert((resumes_ms, number), occurrence);
                continue;
            }
            self.occurrences += 1;
            self.happen(occurrence);
            if let Some(violation) = self.violation.take() {
                return Err(format!("at {} ms: {violation}", self.now_ms));
            }
            let begun_ms = self.lines.iter().map(|line| line.begun_ms).fold(self.scenario.calm_ms, i64::max);
            let is_late = self.now_ms > begun_ms + CALM_MS_MAX;
            if is_late || self.occurrences > OCCURRENCES_MAX {
                let jobs = self.cluster.as_ref().map(Cluster::jobs).unwrap_or_default();
                let statuses: Vec<_> = jobs.iter().map(|job| (job.status, &job.waiting_for)).collect();
                return Err(format!("stuck after {} ms: {statuses:?}", self.now_ms));
            }
        }
        self.check_end()?;
        let facts = || self.oracle.jobs.values();
        let last = (0..self.lines.len()).filter_map(|line| self.oracle.last_of(line)?.1.end.as_ref());
        Ok(Outcome {
            trace_hash: self.trace.hash(),
            occurrences: self.occurrences,
            time_ms: self.now_ms,
            lines: self.lines.len(),
            jobs: self.oracle.jobs.len(),
            upgrades: self.upgrades,
            rollbacks: self.rollbacks,
            by_hand: self.by_hand,
            drained: self.drained,
            generations: facts().map(|facts| facts.generation).sum(),
            rescales: facts().map(|facts| facts.rescales()).sum(),
            continued: self.continued,
            carried: self.carried,
            checkpoints: self.log.iter().filter(|fact| matches!(fact, Fact::CheckpointCompleted { .. })).count(),
            leaders: self.epoch,
            statuses: last.map(|end| end.status).collect(),
        })
    }

    fn check_end(&self) -> Result<(), Violation> {
        for (line, input) in self.scenario.inputs.iter().enumerate() {
            let last = self.oracle.last_of(line);
            self.oracle.check_end(last.map_or(job_id(line, 1), |(job, _)| job), input.records())?;
        }
        if let Some((id, asked)) = self.asked.first_key_value() {
            return Err(format!("request {id} was never answered: {asked:?}"));
        }
        if self.scenario.is_calm && !self.scenario.retains_ended {
            let left: Vec<&String> = self.store.below(CHECKPOINT_DIR).collect();
            if !left.is_empty() {
                return Err(format!("the jobs left files: {left:?}"));
            }
        }
        Ok(())
    }

    fn at(&mut self, at_ms: i64, occurrence: Occurrence) {
        self.queued += 1;
        self.queue.insert((at_ms.max(self.now_ms), self.queued), occurrence);
    }

    fn after(&mut self, least_ms: i64, most_ms: i64, occurrence: Occurrence) {
        let delay_ms = self.random.between(least_ms, most_ms);
        self.at(self.now_ms + delay_ms, occurrence);
    }

    fn expect(&mut self, result: Result<(), Violation>) {
        if let Err(violation) = result {
            self.violation.get_or_insert(violation);
        }
    }

    /// Until when whoever this happens to stands still.
    fn resumes_ms(&self, occurrence: &Occurrence) -> i64 {
        let process = match occurrence {
            Occurrence::Tick
            | Occurrence::Answer { .. }
            | Occurrence::Durable { .. }
            | Occurrence::Up { .. }
            | Occurrence::UpClosed { .. }
            | Occurrence::Request(_)
            | Occurrence::Rest { .. } => return self.leader_resumes_ms,
            Occurrence::StartJobManager
            | Occurrence::StartTaskManager
            | Occurrence::KillWorker(_)
            | Occurrence::Fault(_)
            | Occurrence::Client { .. }
            | Occurrence::ClientAsks { .. }
            | Occurrence::ClientHears { .. } => return 0,
            Occurrence::Connect(process)
            | Occurrence::Heartbeat(process)
            | Occurrence::Down { process, .. }
            | Occurrence::DownClosed { process, .. }
            | Occurrence::SpawnWorker { home: process, .. }
            | Occurrence::RunTask { worker: process, .. }
            | Occurrence::StepTask { worker: process, .. }
            | Occurrence::Say { worker: process, .. }
            | Occurrence::Reregister { worker: process, .. }
            | Occurrence::LoseConnection { worker: process, .. } => process,
        };
        self.paused.get(process).copied().unwrap_or(0)
    }

    fn happen(&mut self, occurrence: Occurrence) {
        match occurrence {
            Occurrence::Tick => {
                // Later wishes replace earlier ones, whose ticks are still in the queue.
                if self.tick_at_ms == Some(self.now_ms) {
                    self.tick_at_ms = None;
                    self.feed(Event::Tick);
                }
            }
            Occurrence::Answer { epoch, event } if epoch == self.epoch => self.feed(event),
            Occurrence::Durable { epoch } if epoch == self.epoch => {
                if let Some(fact) = self.proposals.pop_front() {
                    self.make_durable(fact.clone());
                    self.feed(Event::Committed(fact));
                }
            }
            Occurrence::Answer { .. } | Occurrence::Durable { .. } => {}
            Occurrence::Up { session, message } => {
                if self.links.contains_key(&session) {
                    self.feed(Event::Message { session, message });
                }
            }
            Occurrence::UpClosed { session } => {
                if self.links.remove(&session).is_some() {
                    self.feed(Event::SessionClosed { session });
                }
            }
            Occurrence::Request(request) => self.ask(request, Waiter::Nobody),
            Occurrence::Rest { line, number, ask } => self.rest(line, number, ask),
            Occurrence::ClientAsks { line, number } => self.client_asks(line, number),
            Occurrence::ClientHears { line, number, answer } => self.client_hears(line, number, answer),
            Occurrence::Fault(fault) => self.inject(fault),
            Occurrence::StartJobManager => self.start_job_manager(),
            Occurrence::Client { line } => self.client(line),
            occurrence => self.happen_to_process(occurrence),
        }
    }
}
