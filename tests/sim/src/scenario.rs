//! What a seed stands for: a job, a cluster, and what is asked of it or goes wrong when.

use flott_control::{ClaimMode, JobSpec};
use flott_core::Result;
use flott_core::config::Configuration;
use flott_core::ids::OperatorId;
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

/// When the last fault can be.
const FAULTS_MS: i64 = 3000;

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
    /// A client stops the job with a savepoint; another job goes on from there, at another parallelism.
    Stop,
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

/// One run.
#[derive(Clone, Debug)]
pub(crate) struct Scenario {
    /// How many records each split has.
    pub(crate) splits: Vec<u32>,
    /// How long a source takes for a step, at least: so that the job is still there when something happens.
    pub(crate) pace_ms: i64,
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
    /// Whether checkpoints stay when the job is cancelled.
    pub(crate) retains_cancelled: bool,
    /// Whether each source forwards to a sink of its own: then each pair is a region that a failure may spare.
    pub(crate) is_forward: bool,
    /// Whether nothing goes wrong.
    pub(crate) is_calm: bool,
    /// What happens when.
    pub(crate) faults: Vec<(i64, Fault)>,
    /// From when on nothing goes wrong any more.
    pub(crate) calm_ms: i64,
    /// How many manifests in a hundred cannot be written until then.
    pub(crate) write_failures_percent: u64,
    /// How many snapshots in a hundred are declined until then.
    pub(crate) declines_percent: u64,
}

impl Scenario {
    /// Draws a run.
    pub(crate) fn draw(random: &mut Random) -> Result<Self> {
        let is_calm = random.chance(20);
        let is_reactive = random.chance(20);
        let keeps_workers = random.chance(80);
        let retains_cancelled = random.chance(50);
        let is_forward = random.chance(40);
        let split_count = random.between(1, 7);
        let splits: Vec<u32> = (0..split_count).map(|_| random.between(0, 400) as u32).collect();
        let steps = splits.iter().copied().map(i64::from).sum::<i64>() / STEP_ELEMENTS as i64;
        let faults = draw_faults(random, is_calm);
        Ok(Self {
            // For a single source. There are two or three in most jobs.
            pace_ms: (random.between(5_000, 10_000) / steps.max(1)).clamp(2, 150),
            splits,
            task_managers: random.between(2, 3) as u32,
            slots: random.between(2, 3) as u32,
            max_parallelism: random.pick(&[5, 8, 128]).unwrap_or(128),
            config: draw_config(random, is_reactive, keeps_workers, retains_cancelled)?,
            is_reactive,
            keeps_workers,
            retains_cancelled,
            is_forward,
            is_calm,
            faults,
            calm_ms: if is_calm { 0 } else { FAULTS_MS },
            write_failures_percent: 8,
            declines_percent: 1,
        })
    }

    /// How many records there are.
    pub(crate) fn records(&self) -> u64 {
        self.splits.iter().copied().map(u64::from).sum()
    }

    /// A job at any parallelism that the cluster has slots for.
    pub(crate) fn draw_job(&self, random: &mut Random, savepoint: Option<String>) -> JobSpec {
        let slots_max = i64::from(self.task_managers * self.slots);
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
            config: Configuration::default(),
        };
        let claim_mode = if random.chance(50) { ClaimMode::Claim } else { ClaimMode::NoClaim };
        JobSpec { graph, artifact: None, args: Vec::new(), savepoint, allow_non_restored_state: false, claim_mode }
    }
}

fn draw_config(
    random: &mut Random,
    is_reactive: bool,
    keeps_workers: bool,
    retains_cancelled: bool,
) -> Result<Configuration> {
    let mut config = Configuration::default();
    config.set("execution.checkpointing.dir", CHECKPOINT_DIR)?;
    config.set("execution.checkpointing.savepoint-dir", "s3://savepoints")?;
    config.set("execution.checkpointing.interval", &format!("{} ms", random.between(30, 400)))?;
    config.set("execution.checkpointing.min-pause", &format!("{} ms", random.between(0, 50)))?;
    config.set("execution.checkpointing.timeout", &format!("{} ms", random.between(1500, 4000)))?;
    config.set("execution.checkpointing.num-retained", &random.between(1, 3).to_string())?;
    let tolerable = if random.chance(50) { 1000 } else { 1 };
    config.set("execution.checkpointing.tolerable-failed-checkpoints", &format!("{tolerable}"))?;
    config.set("restart-strategy.exponential-delay.max-backoff", "1 s")?;
    config.set("execution.state-recovery.from-local", &keeps_workers.to_string())?;
    if retains_cancelled {
        config.set("execution.checkpointing.externalized-checkpoint-retention", "RETAIN_ON_CANCELLATION")?;
    }
    if is_reactive {
        config.set("scheduler-mode", "reactive")?;
        let patience = format!("{} ms", random.between(50, 600));
        config.set("jobmanager.adaptive-scheduler.executing.resource-stabilization-timeout", &patience)?;
    }
    Ok(config)
}

/// Up to four requests and, unless all is calm, up to five accidents, some of them just when something else is under way.
fn draw_faults(random: &mut Random, is_calm: bool) -> Vec<(i64, Fault)> {
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
        for _ in 0..random.between(1, 5) {
            faults.extend(random.pick(ACCIDENTS).map(|accident| (random.between(0, FAULTS_MS), accident)));
        }
    }
    faults
}
