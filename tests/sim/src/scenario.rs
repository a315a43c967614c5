//! What a seed stands for: one or two lines of jobs, a cluster, and what is asked of it or goes wrong when.

use flott_control::{ClaimMode, JobSpec};
use flott_core::Result;
use flott_core::config::Configuration;
use flott_core::ids::{JobId, OperatorId};
use flott_graph::{JobEdge, JobGraph, JobVertex, OperatorDescriptor, Partitioning};

use crate::random::Random;
use crate::task::STEP_ELEMENTS;

/// The vertex of the source.
pub(crate) const SOURCE: u32 = 0;
/// The vertex of the sink.
pub(crate) const SINK: u32 = 1;
/// The operator of the source.
pub(crate) const SOURCE_OPERATOR: OperatorId = OperatorId([1; 16]);
/// The operator of the sink.
pub(crate) const SINK_OPERATOR: OperatorId = OperatorId([2; 16]);

/// The folder of checkpoints.
pub(crate) const CHECKPOINT_DIR: &str = "s3://checkpoints";

/// The folder of savepoints.
pub(crate) const SAVEPOINT_DIR: &str = "s3://savepoints";

/// When the last fault can be, apart from those of an upgrade.
const FAULTS_MS: i64 = 3000;

/// The `number`-th job of a line: jobs that go on from each other, and are to write each record of their input once.
/// Later ones are greater.
pub(crate) fn job_id(line: usize, number: u8) -> JobId {
    let mut id = [0; 16];
    (id[0], id[1]) = (line as u8 + 1, number);
    JobId(id)
}

/// The line that a job belongs to.
pub(crate) fn line_of(job: JobId) -> usize {
    usize::from(job.0[0].saturating_sub(1))
}

/// What becomes of a job that is started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Version {
    /// It works.
    #[default]
    Good,
    /// It never gets to run.
    Fails,
    /// It runs, and completes no checkpoint.
    CompletesNothing,
    /// It completes its first checkpoint at about the time by which that is due.
    Slow,
    /// It fails for good as soon as it has completed a checkpoint.
    Fleeting,
    /// It cannot start from the state that there is, which a check tells.
    Refused,
}

const VERSIONS: &[Version] = &[
    Version::Good,
    Version::Good,
    Version::Good,
    Version::Fails,
    Version::Fails,
    Version::CompletesNothing,
    Version::CompletesNothing,
    Version::Slow,
    Version::Slow,
    Version::Fleeting,
    Version::Refused,
];

impl Version {
    /// As the job carries it: in its arguments.
    fn to_args(self) -> Vec<String> {
        if self == Self::Good { Vec::new() } else { vec![format!("{self:?}")] }
    }

    /// The version of a job.
    pub(crate) fn of(spec: &JobSpec) -> Self {
        VERSIONS.iter().copied().find(|version| version.to_args() == spec.args).unwrap_or_default()
    }

    /// Whether it can never do anything.
    pub(crate) fn is_hopeless(self) -> bool {
        matches!(self, Self::Fails | Self::CompletesNothing)
    }

    pub(crate) fn draw(random: &mut Random) -> Self {
        random.pick(VERSIONS).unwrap_or_default()
    }
}

/// Something that happens to the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// A TaskManager dies; its workers follow a moment later. Another one is started.
    TaskManager,
    /// A worker dies.
    Worker,
    /// The JobManager dies and starts again from its log.
    JobManager,
    /// A task fails.
    Task,
    /// A process loses its connection to the JobManager; both live.
    Connection,
    /// Two workers lose their connection.
    DataConnection,
    /// Nothing that a process says arrives any more, though it hears what it is told.
    Silence,
    /// A process stands still for a while.
    Pause,
    /// A TaskManager joins.
    NewTaskManager,
    /// A client asks for a savepoint.
    Savepoint,
    /// A client asks for a checkpoint.
    Checkpoint,
    /// A client asks for another parallelism, which may be impossible.
    Rescale,
    /// A client stops the job with a savepoint, drained or not; another job goes on from there, at another parallelism.
    Stop,
    /// A client upgrades the job.
    Upgrade,
    /// A client that upgrades a job dies.
    Client,
    /// A client cancels the job. If its checkpoints are retained, another job goes on from the last.
    Cancel,
}

/// What can be asked of a cluster that is sound.
const REQUESTS: &[Fault] =
    &[Fault::Rescale, Fault::Rescale, Fault::Rescale, Fault::Savepoint, Fault::Checkpoint, Fault::NewTaskManager];

/// What can go wrong.
const ACCIDENTS: &[Fault] = &[
    Fault::TaskManager,
    Fault::Worker,
    Fault::Worker,
    Fault::JobManager,
    Fault::JobManager,
    Fault::Task,
    Fault::Connection,
    Fault::DataConnection,
    Fault::Silence,
    Fault::Pause,
];

/// What a line of jobs reads.
#[derive(Clone, Debug)]
pub(crate) struct Input {
    /// How many records each split has.
    pub(crate) splits: Vec<u32>,
    /// How long a source takes for a step, at least: so that the job is still there when something happens.
    pub(crate) pace_ms: i64,
}

impl Input {
    fn draw(random: &mut Random, least_ms: i64) -> Self {
        let split_count = random.between(1, 7);
        let splits: Vec<u32> = (0..split_count).map(|_| random.between(0, 400) as u32).collect();
        let steps = splits.iter().copied().map(i64::from).sum::<i64>() / STEP_ELEMENTS as i64;
        // For a single source. There are two or three in most jobs.
        Self { pace_ms: (random.between(least_ms, 2 * least_ms) / steps.max(1)).clamp(2, 150), splits }
    }

    /// How many records there are.
    pub(crate) fn records(&self) -> u64 {
        self.splits.iter().copied().map(u64::from).sum()
    }
}

/// One run.
#[derive(Clone, Debug)]
pub(crate) struct Scenario {
    /// One for each line of jobs.
    pub(crate) inputs: Vec<Input>,
    /// How many TaskManagers there are at first.
    pub(crate) task_managers: u32,
    /// How many slots each of them offers.
    pub(crate) slots: u32,
    /// How many key groups there are.
    pub(crate) max_parallelism: u32,
    /// The cluster's configuration.
    pub(crate) config: Configuration,
    /// Whether the parallelism follows the slots.
    pub(crate) is_reactive: bool,
    /// Whether workers go on from one execution to the next.
    pub(crate) keeps_workers: bool,
    /// Whether checkpoints stay when the job is cancelled or fails.
    pub(crate) retains_ended: bool,
    /// Whether each source forwards to a sink of its own: then each pair is a region that a failure may spare.
    pub(crate) is_forward: bool,
    /// Whether nothing goes wrong.
    pub(crate) is_calm: bool,
    /// What happens when.
    pub(crate) faults: Vec<(i64, Fault)>,
    /// From when on nothing goes wrong any more, unless an upgrade begins.
    pub(crate) calm_ms: i64,
    /// How many manifests in a hundred cannot be written until then.
    pub(crate) write_failures_percent: u64,
    /// How many snapshots in a hundred are declined until then.
    pub(crate) declines_percent: u64,
    /// How many requests of clients that upgrade a job, or the answers to them, are lost, in a hundred, until then.
    pub(crate) lost_answers_percent: u64,
}

impl Scenario {
    /// Draws a run.
    pub(crate) fn draw(random: &mut Random) -> Result<Self> {
        let is_calm = random.chance(20);
        let is_reactive = random.chance(20);
        let keeps_workers = random.chance(80);
        let retains_ended = random.chance(50);
        let is_forward = random.chance(40);
        let lines = if random.chance(30) { 2 } else { 1 };
        let upgrades = if random.chance(50) { random.between(1, 2) } else { 0 };
        // Upgrades take their time, and come after each other.
        let least_ms = if upgrades > 0 { 10_000 } else { 5_000 };
        let inputs = (0..lines).map(|_| Input::draw(random, least_ms)).collect();
        let mut faults = draw_faults(random, is_calm, if upgrades > 0 { 2 } else { 5 });
        faults.extend((0..upgrades).map(|_| (random.between(300, FAULTS_MS), Fault::Upgrade)));
        Ok(Self {
            inputs,
            task_managers: random.between(2, 3) as u32,
            slots: random.between(2, 3) as u32,
            max_parallelism: random.pick(&[5, 8, 128]).unwrap_or(128),
            config: draw_config(random, is_reactive, keeps_workers, retains_ended)?,
            is_reactive,
            keeps_workers,
            retains_ended,
            is_forward,
            is_calm,
            calm_ms: if is_calm { 0 } else { FAULTS_MS },
            faults,
            write_failures_percent: 8,
            declines_percent: 1,
            lost_answers_percent: random.pick(&[0, 3, 12]).unwrap_or(0),
        })
    }

    /// What goes wrong while a client upgrades a job, and how long after it has begun. That takes a second or more.
    pub(crate) fn draw_accidents(&mut self, random: &mut Random, now_ms: i64) -> Vec<(i64, Fault)> {
        let mut faults = Vec::new();
        if self.is_calm {
            return faults;
        }
        if random.chance(25) {
            faults.push((random.between(0, 3000), Fault::Client));
        }
        for _ in 0..random.between(0, 3) {
            faults.extend(random.pick(ACCIDENTS).map(|accident| (random.between(0, 4000), accident)));
        }
        let last_ms = faults.iter().map(|(after_ms, _)| *after_ms).max().unwrap_or(0);
        self.calm_ms = self.calm_ms.max(now_ms + last_ms);
        faults
    }

    /// What the line of a job reads.
    pub(crate) fn input_of(&self, job: JobId) -> &Input {
        &self.inputs[line_of(job)]
    }

    /// A job at any parallelism that the cluster has slots for.
    pub(crate) fn draw_job(&self, random: &mut Random, version: Version, savepoint: Option<String>) -> JobSpec {
        // Two lines compete for slots, but mostly run at once.
        let lines = self.inputs.len() as u32;
        let slots_max = i64::from(self.task_managers * self.slots / lines + lines - 1);
        let mut config = Configuration::default();
        if version == Version::Fleeting || version.is_hopeless() && random.chance(50) {
            config.set("restart-strategy.type", "none").expect("that is one of its values");
        }
        let mut parallelism = || random.between(1, slots_max.min(4)) as u32;
        let (sources, sinks) = (parallelism(), parallelism());
        let (sinks, partitioning) =
            if self.is_forward { (sources, Partitioning::Forward) } else { (sinks, Partitioning::Hash) };
        let vertex = |name: &str, id: OperatorId, parallelism: u32| JobVertex {
            name: name.into(),
            operators: vec![OperatorDescriptor {
                id,
                uid: None,
                kind: name.into(),
                name: name.into(),
                node: usize::from(id != SOURCE_OPERATOR),
            }],
            parallelism,
            max_parallelism: self.max_parallelism,
            is_source: id == SOURCE_OPERATOR,
            is_non_parallel: false,
        };
        let graph = JobGraph {
            name: "numbers".into(),
            vertices: vec![vertex("Source: Numbers", SOURCE_OPERATOR, sources), vertex("Sink", SINK_OPERATOR, sinks)],
            edges: vec![JobEdge { source: SOURCE, target: SINK, partitioning, stream_edge: 0 }],
            config,
        };
        let claim_mode = if random.chance(50) { ClaimMode::Claim } else { ClaimMode::NoClaim };
        let args = version.to_args();
        JobSpec { graph, artifact: None, args, payload: None, savepoint, allow_non_restored_state: false, claim_mode }
    }
}

fn draw_config(
    random: &mut Random,
    is_reactive: bool,
    keeps_workers: bool,
    retains_ended: bool,
) -> Result<Configuration> {
    let mut config = Configuration::default();
    config.set("execution.checkpointing.dir", CHECKPOINT_DIR)?;
    config.set("execution.checkpointing.savepoint-dir", SAVEPOINT_DIR)?;
    config.set("execution.checkpointing.interval", &format!("{} ms", random.between(30, 400)))?;
    config.set("execution.checkpointing.min-pause", &format!("{} ms", random.between(0, 50)))?;
    config.set("execution.checkpointing.timeout", &format!("{} ms", random.between(1500, 4000)))?;
    config.set("execution.checkpointing.num-retained", &random.between(1, 3).to_string())?;
    let tolerable = if random.chance(50) { 1000 } else { 1 };
    config.set("execution.checkpointing.tolerable-failed-checkpoints", &format!("{tolerable}"))?;
    config.set("restart-strategy.exponential-delay.max-backoff", "1 s")?;
    config.set("execution.state-recovery.from-local", &keeps_workers.to_string())?;
    if retains_ended {
        config.set("execution.checkpointing.externalized-checkpoint-retention", "RETAIN_ON_CANCELLATION")?;
    }
    if is_reactive {
        config.set("scheduler-mode", "reactive")?;
        let patience = format!("{} ms", random.between(50, 600));
        config.set("jobmanager.adaptive-scheduler.executing.resource-stabilization-timeout", &patience)?;
    }
    Ok(config)
}

/// Up to four requests and, unless all is calm, up to so many accidents, some of them just when something else is under way.
fn draw_faults(random: &mut Random, is_calm: bool, accidents_max: i64) -> Vec<(i64, Fault)> {
    let mut faults: Vec<(i64, Fault)> = Vec::new();
    for _ in 0..random.between(0, 4) {
        faults.extend(random.pick(REQUESTS).map(|request| (random.between(200, FAULTS_MS), request)));
    }
    if random.chance(30) {
        faults.push((random.between(300, FAULTS_MS), Fault::Stop));
    }
    if random.chance(12) {
        faults.push((random.between(0, FAULTS_MS), Fault::Cancel));
    }
    for (at_ms, request) in faults.clone() {
        if request != Fault::NewTaskManager && random.chance(40) {
            let others = if is_calm || random.chance(50) { REQUESTS } else { ACCIDENTS };
            let another = random.pick(others);
            faults.extend(another.map(|another| ((at_ms + random.between(-60, 120)).clamp(0, FAULTS_MS), another)));
        }
    }
    if !is_calm {
        for _ in 0..random.between(1, accidents_max) {
            faults.extend(random.pick(ACCIDENTS).map(|accident| (random.between(0, FAULTS_MS), accident)));
        }
    }
    faults
}
