//! What a seed stands for: a job, a cluster, and what goes wrong when.

use flott_control::{ClaimMode, JobSpec};
use flott_core::Result;
use flott_core::config::Configuration;
use flott_core::ids::OperatorId;
use flott_graph::{JobEdge, JobGraph, JobVertex, OperatorDescriptor, Partitioning};

use crate::random::Random;

/// The vertex of the source.
pub(crate) const SOURCE: u32 = 0;
/// The vertex of the sink.
pub(crate) const SINK: u32 = 1;
/// The operator of the source.
pub(crate) const SOURCE_OPERATOR: OperatorId = OperatorId([1; 16]);
/// The operator of the sink.
pub(crate) const SINK_OPERATOR: OperatorId = OperatorId([2; 16]);

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
    /// A connection breaks; both processes live.
    Connection,
    /// Nothing that a process says arrives any more, though it hears what it is told.
    Silence,
    /// A client asks for a savepoint.
    Savepoint,
    /// A client asks for a checkpoint.
    Checkpoint,
    /// A client stops the job with a savepoint; another job goes on from there, at another parallelism.
    Stop,
    /// A client cancels the job.
    Cancel,
}

/// One run.
#[derive(Clone, Debug)]
pub(crate) struct Scenario {
    /// How many records each split has.
    pub(crate) splits: Vec<u32>,
    /// How many TaskManagers there are.
    pub(crate) task_managers: u32,
    /// How many slots each of them offers.
    pub(crate) slots: u32,
    /// The cluster's configuration.
    pub(crate) config: Configuration,
    /// What happens when.
    pub(crate) faults: Vec<(i64, Fault)>,
    /// How many manifests in a hundred cannot be written.
    pub(crate) write_failures_percent: u64,
    /// How many snapshots in a hundred are declined.
    pub(crate) declines_percent: u64,
}

impl Scenario {
    /// Draws a run.
    pub(crate) fn draw(random: &mut Random) -> Result<Self> {
        let mut config = Configuration::default();
        config.set("execution.checkpointing.dir", "s3://checkpoints")?;
        config.set("execution.checkpointing.savepoint-dir", "s3://savepoints")?;
        config.set("execution.checkpointing.interval", &format!("{} ms", random.between(30, 300)))?;
        config.set("execution.checkpointing.min-pause", &format!("{} ms", random.between(0, 50)))?;
        config.set("execution.checkpointing.timeout", &format!("{} ms", random.between(1500, 4000)))?;
        config.set("execution.checkpointing.num-retained", &random.between(1, 3).to_string())?;
        let tolerable = if random.chance(50) { 1000 } else { 1 };
        config.set("execution.checkpointing.tolerable-failed-checkpoints", &format!("{tolerable}"))?;
        config.set("restart-strategy.exponential-delay.max-backoff", "1 s")?;
        let is_calm = random.chance(10);
        let kinds = [
            Fault::TaskManager,
            Fault::Worker,
            Fault::JobManager,
            Fault::JobManager,
            Fault::Task,
            Fault::Connection,
            Fault::Silence,
            Fault::Savepoint,
            Fault::Checkpoint,
        ];
        let count = if is_calm { 0 } else { random.between(1, 6) };
        let mut faults: Vec<(i64, Fault)> = Vec::new();
        for _ in 0..count {
            faults.extend(random.pick(&kinds).map(|kind| (random.between(0, 1500), kind)));
        }
        if !is_calm && random.chance(30) {
            faults.push((random.between(100, 1000), Fault::Stop));
        }
        if !is_calm && random.chance(8) {
            faults.push((random.between(0, 1000), Fault::Cancel));
        }
        let split_count = random.between(1, 7);
        Ok(Self {
            splits: (0..split_count).map(|_| random.between(0, 400) as u32).collect(),
            task_managers: random.between(2, 3) as u32,
            slots: random.between(2, 3) as u32,
            config,
            faults,
            write_failures_percent: if is_calm { 0 } else { 8 },
            declines_percent: if is_calm { 0 } else { 1 },
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
            max_parallelism: 128,
            is_source: id == SOURCE_OPERATOR,
        };
        let graph = JobGraph {
            name: "numbers".into(),
            vertices: vec![
                vertex("Source: Numbers", SOURCE_OPERATOR, parallelism()),
                vertex("Sink", SINK_OPERATOR, parallelism()),
            ],
            edges: vec![JobEdge {
                source: SOURCE,
                target: SINK,
                partitioning: Partitioning::Rebalance,
                stream_edge: 0,
            }],
            config: Configuration::default(),
        };
        JobSpec { graph, artifact: None, args: Vec::new(), savepoint, allow_non_restored_state: false, claim_mode: ClaimMode::default() }
    }
}
