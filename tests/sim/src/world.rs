//! Time, the network, the log and the JobManager's process.
//!
//! Everything that takes time is an occurrence in one queue, ordered by its time and then by when
//! it was put there. `processes` is what TaskManagers and workers do; `store` keeps their files.

use std::collections::{BTreeMap, VecDeque};

use flott_control::{CompletedCheckpoint, Down, ExecutionId, Fact, JobSpec, Up};
use flott_core::ids::{JobId, SubtaskId};
use flott_core::status::JobStatus;
use flott_core::{Error, Result};
use flott_jobmanager_core::{Checkpoint, Cluster, Command, Event, Request, SessionId};

use crate::oracle::{Oracle, Violation};
use crate::random::Random;
use crate::scenario::{Fault, Scenario};
use crate::task::Element;
use crate::trace::Trace;
use crate::world::processes::{Process, ProcessId};
use crate::world::store::Store;

mod processes;
mod store;

/// A run that takes longer is stuck.
const TIME_MS_MAX: i64 = 900_000;
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
    /// How many executions there were, over all jobs.
    pub generations: u64,
    /// How many checkpoints and savepoints became durable.
    pub checkpoints: usize,
    /// How many times the JobManager was started.
    pub leaders: u64,
    /// How the last job ended.
    pub status: Option<JobStatus>,
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
        subtask: SubtaskId,
    },
    /// A task processes a little.
    StepTask {
        worker: ProcessId,
        subtask: SubtaskId,
    },
    /// A worker says something that took it some time.
    Say {
        worker: ProcessId,
        message: Up,
    },
    Fault(Fault),
    /// The client looks after its jobs.
    Client,
}

/// A connection as the JobManager sees it. In each direction nothing overtakes.
#[derive(Clone, Copy, Debug)]
struct Link {
    process: ProcessId,
    up_last_ms: i64,
    down_last_ms: i64,
    is_mute: bool,
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
    log: Vec<Fact>,
    proposals: VecDeque<Fact>,
    durable_last_ms: i64,
    store: Store,

    links: BTreeMap<SessionId, Link>,
    sessions: SessionId,
    processes: BTreeMap<ProcessId, Process>,
    process_count: ProcessId,
    channels: BTreeMap<(ExecutionId, SubtaskId, SubtaskId), VecDeque<Element>>,
    homes: BTreeMap<(ExecutionId, SubtaskId), ProcessId>,

    jobs: Vec<(JobId, JobSpec)>,
    submitted_in: Option<u64>,
    requests: u64,
    is_over: bool,
    oracle: Oracle,
    violation: Option<Violation>,
}

impl World {
    fn new(seed: u64, is_verbose: bool) -> Result<Self> {
        let mut random = Random::new(seed);
        let scenario = Scenario::draw(&mut random)?;
        let spec = scenario.draw_job(&mut random, None);
        Ok(Self {
            random,
            trace: Trace::new(is_verbose),
            scenario,
            now_ms: 0,
            occurrences: 0,
            queue: BTreeMap::new(),
            queued: 0,
            cluster: None,
            epoch: 1,
            tick_at_ms: None,
            log: Vec::new(),
            proposals: VecDeque::new(),
            durable_last_ms: 0,
            store: Store::default(),
            links: BTreeMap::new(),
            sessions: 0,
            processes: BTreeMap::new(),
            process_count: 0,
            channels: BTreeMap::new(),
            homes: BTreeMap::new(),
            jobs: vec![(JobId([1; 16]), spec)],
            submitted_in: None,
            requests: 0,
            is_over: false,
            oracle: Oracle::default(),
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
        self.after(1, 1, Occurrence::Client);
        while !self.is_over {
            let Some(((at_ms, _), occurrence)) = self.queue.pop_first() else {
                return Err("nothing is left to happen".into());
            };
            self.now_ms = at_ms;
            self.occurrences += 1;
            self.happen(occurrence);
            if let Some(violation) = self.violation.take() {
                return Err(format!("at {} ms: {violation}", self.now_ms));
            }
            if self.now_ms > TIME_MS_MAX || self.occurrences > OCCURRENCES_MAX {
                let jobs = self.cluster.as_ref().map(Cluster::jobs).unwrap_or_default();
                let statuses: Vec<_> = jobs.iter().map(|job| (job.status, &job.waiting_for)).collect();
                return Err(format!("stuck after {} ms: {statuses:?}", self.now_ms));
            }
        }
        let (job, _) = self.current_job();
        self.oracle.check_end(job, self.scenario.records())?;
        if self.scenario.faults.is_empty() && !self.store.is_empty() {
            return Err(format!("the job left files: {:?}", self.store));
        }
        let facts = self.oracle.jobs.values();
        Ok(Outcome {
            trace_hash: self.trace.hash(),
            occurrences: self.occurrences,
            time_ms: self.now_ms,
            generations: facts.map(|facts| facts.generation).sum(),
            checkpoints: self.log.iter().filter(|fact| matches!(fact, Fact::CheckpointCompleted { .. })).count(),
            leaders: self.epoch,
            status: self.oracle.jobs.get(&job).and_then(|facts| facts.end.as_ref()).map(|end| end.status),
        })
    }

    fn current_job(&self) -> (JobId, JobSpec) {
        // There is one from the beginning, and none is ever removed.
        self.jobs[self.jobs.len() - 1].clone()
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
            Occurrence::Fault(fault) => self.inject(fault),
            Occurrence::StartJobManager => self.start_job_manager(),
            Occurrence::Client => self.client(),
            occurrence => self.happen_to_process(occurrence),
        }
    }

    /// Gives an event to the JobManager, if there is one, and carries out what it wants.
    fn feed(&mut self, event: Event) {
        let Some(cluster) = &mut self.cluster else { return };
        let commands = cluster.step(self.now_ms, event);
        let deadline_ms = cluster.next_deadline();
        for command in commands {
            self.carry_out(command);
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
            Command::Send { session, message } => self.send_down(session, message),
            Command::Close { session } => {
                if let Some(link) = self.links.remove(&session) {
                    let at_ms = link.down_last_ms.max(self.now_ms + self.random.between(1, 8));
                    self.at(at_ms, Occurrence::DownClosed { process: link.process, session });
                }
            }
            Command::Propose(fact) => {
                self.trace.line(self.now_ms, format_args!("propose {}", name_of(&fact)));
                self.proposals.push_back(fact);
                let at_ms = self.durable_last_ms.max(self.now_ms + self.random.between(0, 10));
                self.durable_last_ms = at_ms;
                self.at(at_ms, Occurrence::Durable { epoch });
            }
            Command::Reply { id, reply } => self.trace.line(self.now_ms, format_args!("reply {id} {reply:?}")),
            Command::WriteManifest(checkpoint) => {
                let event = self.write_manifest(checkpoint);
                self.after(1, 30, Occurrence::Answer { epoch, event });
            }
            Command::LoadManifest { job, generation, location, sha256 } => {
                self.trace.line(self.now_ms, format_args!("load {location} for generation {generation}"));
                let result = self.store.load(&location, sha256.as_deref());
                let result = result.map(|manifest| (location, Box::new(manifest)));
                self.after(
                    1,
                    50,
                    Occurrence::Answer { epoch, event: Event::ManifestLoaded { job, generation, result } },
                );
            }
            Command::Delete { files, folders } => {
                self.trace.line(self.now_ms, format_args!("delete {files:?} {folders:?}"));
                let result = self.store.delete(&files, &folders, &self.oracle);
                self.expect(result);
            }
        }
    }

    fn write_manifest(&mut self, checkpoint: Checkpoint) -> Event {
        let Checkpoint { location, manifest } = checkpoint;
        let (job, generation, id) = (manifest.job, manifest.generation, manifest.checkpoint);
        let fails = self.random.chance(self.scenario.write_failures_percent);
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

    fn make_durable(&mut self, fact: Fact) {
        self.trace.line(self.now_ms, format_args!("durable {}", name_of(&fact)));
        let result = self.oracle.durable(&fact);
        self.expect(result);
        self.log.push(fact);
    }

    /// A JobManager reads its log and begins.
    fn start_job_manager(&mut self) {
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
    fn kill_job_manager(&mut self) {
        if self.cluster.take().is_none() {
            return;
        }
        let proposals = std::mem::take(&mut self.proposals);
        let durable = self.random.between(0, proposals.len() as i64) as usize;
        for fact in proposals.into_iter().take(durable) {
            self.make_durable(fact);
        }
        // What it was waiting for finds nobody.
        self.epoch += 1;
        for (session, link) in std::mem::take(&mut self.links) {
            self.after(1, 50, Occurrence::DownClosed { process: link.process, session });
        }
        self.after(50, 2000, Occurrence::StartJobManager);
    }

    fn send_down(&mut self, session: SessionId, message: Down) {
        let delay_ms = self.random.between(1, 8);
        let Some(link) = self.links.get_mut(&session) else { return };
        let at_ms = link.down_last_ms.max(self.now_ms + delay_ms);
        link.down_last_ms = at_ms;
        let process = link.process;
        self.at(at_ms, Occurrence::Down { process, session, message });
    }

    fn send_up(&mut self, session: SessionId, message: Up) {
        let delay_ms = self.random.between(1, 8);
        let Some(link) = self.links.get_mut(&session).filter(|link| !link.is_mute) else { return };
        let at_ms = link.up_last_ms.max(self.now_ms + delay_ms);
        link.up_last_ms = at_ms;
        self.at(at_ms, Occurrence::Up { session, message });
    }

    /// The JobManager is to see a connection end, after all that was sent over it.
    fn close_up(&mut self, session: SessionId) {
        let delay_ms = self.random.between(1, 8);
        if let Some(link) = self.links.get(&session) {
            let at_ms = link.up_last_ms.max(self.now_ms + delay_ms);
            self.at(at_ms, Occurrence::UpClosed { session });
        }
    }

    fn inject(&mut self, fault: Fault) {
        self.trace.line(self.now_ms, format_args!("fault {fault:?}"));
        let (job, _) = self.current_job();
        match fault {
            Fault::JobManager => self.kill_job_manager(),
            Fault::Connection => {
                let sessions: Vec<SessionId> = self.links.keys().copied().collect();
                if let Some(session) = self.random.pick(&sessions) {
                    self.close_up(session);
                    if let Some(Link { process, .. }) = self.links.get(&session).copied() {
                        self.after(1, 50, Occurrence::DownClosed { process, session });
                    }
                }
            }
            Fault::Silence => {
                let sessions: Vec<SessionId> = self.links.keys().copied().collect();
                let session = self.random.pick(&sessions);
                if let Some(link) = session.and_then(|session| self.links.get_mut(&session)) {
                    link.is_mute = true;
                }
            }
            Fault::Savepoint | Fault::Stop => {
                let (stop, suffix) = (fault == Fault::Stop, format!("{}", self.requests));
                self.request(Request::Savepoint { job, target: None, stop, drain: false, suffix });
            }
            Fault::Checkpoint => self.request(Request::Checkpoint { job }),
            Fault::Cancel => self.request(Request::Cancel { job }),
            Fault::TaskManager | Fault::Worker | Fault::Task => self.inject_into_process(fault),
        }
    }

    fn request(&mut self, request: Request) {
        self.requests += 1;
        let id = self.requests;
        self.feed(Event::Request { id, request });
    }

    /// Submits what is not in the log, and starts another job where one was stopped with a savepoint.
    fn client(&mut self) {
        let (job, spec) = self.current_job();
        let facts = self.oracle.jobs.get(&job);
        let end = facts.and_then(|facts| facts.end.as_ref()).map(|end| end.status);
        let latest = facts.and_then(|facts| facts.latest.clone());
        match (facts.is_some(), end, latest) {
            (false, ..) if self.cluster.is_some() && self.submitted_in != Some(self.epoch) => {
                self.submitted_in = Some(self.epoch);
                self.request(Request::Submit { job, spec: Box::new(spec) });
            }
            // Its last checkpoint is a savepoint, so it stopped with that one.
            (_, Some(JobStatus::Finished), Some(latest)) if latest.is_savepoint => {
                let id = JobId([self.jobs.len() as u8 + 1; 16]);
                let spec = self.scenario.draw_job(&mut self.random, Some(latest.location));
                self.jobs.push((id, spec));
                self.submitted_in = None;
            }
            (_, Some(_), _) => self.is_over = self.cluster.is_some(),
            _ => {}
        }
        self.after(20, 200, Occurrence::Client);
    }
}

fn name_of(fact: &Fact) -> String {
    match fact {
        Fact::JobSubmitted { job, .. } => format!("submitted {job}"),
        Fact::GenerationStarted { generation, .. } => format!("generation {generation}"),
        Fact::JobRescaled { parallelism, .. } => format!("rescaled {parallelism:?}"),
        Fact::CheckpointCompleted { checkpoint, .. } => format!("checkpoint {} {}", checkpoint.id, checkpoint.location),
        Fact::CheckpointDropped { checkpoint, .. } => format!("drop {checkpoint}"),
        Fact::JobEnded { end, .. } => format!("end {:?}", end),
    }
}
