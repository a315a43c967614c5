//! What happens to a job from its start to its end.

use std::fmt::Write as _;
use std::sync::{Arc, LazyLock};

use flott_control::CheckpointKind;
use flott_core::ids::{CheckpointId, Generation};
use flott_core::{Result, ResultExt};
use flott_e2e::Random;
use flott_operators::Program;
use flott_sql::session::Job;
use flott_sql_runtime::expr::Functions;
use flott_sql_runtime::program::{self, Connectors};
use flott_sql_runtime::spec::CompiledPlan;

use crate::bed::Bed;
use crate::execution::{Beginning, Execution, Setup};
use crate::results::Results;
use crate::tables::{Pace, PacedTables};

static FUNCTIONS: LazyLock<Functions> = LazyLock::new(|| Functions::new(flott_sql_functions::all()));

/// Into how many parts, by rows, a job with faults is divided: one thing happens behind each but the last.
const PARTS: u64 = 10;

/// What a job with faults went through.
#[derive(Debug, Default)]
pub struct Told {
    /// The checkpoints that were complete while rows were still to be read.
    pub checkpoints: usize,
    /// All that happened, in words.
    pub text: String,
}

/// A job and what it has put out.
pub struct Story<'a> {
    bed: &'a Bed,
    job: &'a Job,
    results: Results,
    random: Random,
    next_checkpoint: CheckpointId,
    generation: Generation,
    told: Told,
}

impl<'a> Story<'a> {
    /// A job to which happens what `seed` says.
    pub fn new(bed: &'a Bed, job: &'a Job, seed: u64) -> Self {
        let random = Random::new(seed);
        let results = Results::default();
        Self { bed, job, results, random, next_checkpoint: 1, generation: 0, told: Told::default() }
    }

    /// What it has committed.
    pub fn results(&self) -> &Results {
        &self.results
    }

    /// What has happened.
    pub fn told(&self) -> &Told {
        &self.told
    }

    /// Runs it to its end with nothing in between. Returns how many rows its tables have.
    ///
    /// # Errors
    /// It failed.
    pub fn run(&mut self, parallelism: u32) -> Result<u64> {
        let tables = self.tables(u64::MAX, true)?;
        let program = self.program(&tables, parallelism, false)?;
        let pace = tables.pace.clone();
        let execution = self.start(program, &pace, Setup::default(), Beginning::default())?;
        execution.finish(1, &mut self.random)?;
        Ok(pace.handed())
    }

    /// Runs it to its end with stops, kills and crashes in between; `rows` is how many rows its tables have. Unless
    /// `may_overtake`, no barrier overtakes records: watermarks among them are not kept when the channels become others, so
    /// rows behind them are no longer late.
    ///
    /// # Errors
    /// It failed, or took back a row that was not there.
    pub fn run_with_faults(&mut self, rows: u64, may_overtake: bool) -> Result<()> {
        let setup =
            Setup { channel_bytes: if self.random.coin() { 1 << 20 } else { 300 }, is_disk: self.random.below(4) == 0 };
        let is_unaligned = self.random.coin() && may_overtake;
        // In one of four jobs VALUES come at once, as in real ones.
        let paces_values = self.random.below(4) != 0;
        let tables = self.tables(rows.div_ceil(60), paces_values)?;
        let parallelism = self.parallelism();
        self.tell(&format!("starts with {parallelism} subtasks, {setup:?}, unaligned {is_unaligned}"));
        let program = self.program(&tables, parallelism, is_unaligned)?;
        let mut execution = self.start(program, &tables.pace, setup, Beginning::default())?;
        let mut parallelism = parallelism;
        for part in 1..PARTS {
            let until = rows * part / PARTS;
            let pace = tables.pace.clone();
            let told = self.told.text.clone();
            execution
                .run_until(&mut self.random, |execution| pace.handed() >= until || execution.has_ended())
                .with_context(|| told)?;
            let is_reading = pace.handed() < rows || rows < PARTS;
            let beginning = match part {
                3 => self.stop(execution)?,
                5 => self.kill(execution)?,
                7 => self.crash(execution)?,
                _ => {
                    self.checkpoint(&mut execution)?;
                    self.told.checkpoints += usize::from(is_reading);
                    self.results.table()?;
                    continue;
                }
            };
            if part == 3 || self.random.coin() {
                parallelism = 1 + (parallelism + self.random.below(2) as u32) % 3;
            }
            self.tell(&format!(
                "goes on with {parallelism} subtasks from checkpoint {}, with {} key groups in memory",
                beginning.saved.as_ref().map_or(0, |saved| saved.id),
                beginning.held.len()
            ));
            let program = self.program(&tables, parallelism, is_unaligned)?;
            execution = self.start(program, &tables.pace, setup, beginning)?;
            self.results.table().with_context(|| self.told.text.clone())?;
        }
        let last = self.checkpoint_id();
        execution.finish(last, &mut self.random)
    }

    fn parallelism(&mut self) -> u32 {
        1 + self.random.below(3) as u32
    }

    fn checkpoint_id(&mut self) -> CheckpointId {
        self.next_checkpoint += 1;
        self.next_checkpoint - 1
    }

    fn tell(&mut self, what: &str) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.told.text, "  {what}");
    }

    fn start(&mut self, program: Program, pace: &Pace, setup: Setup, beginning: Beginning) -> Result<Execution<'a>> {
        self.generation += 1;
        Execution::start(self.bed, program, self.generation, pace.clone(), setup, beginning)
    }

    /// A checkpoint, and sometimes one before it that is given up.
    fn checkpoint(&mut self, execution: &mut Execution<'_>) -> Result<()> {
        if self.random.below(4) == 0 {
            let id = self.checkpoint_id();
            execution.trigger(id, CheckpointKind::Checkpoint)?;
            self.go_on(execution)?;
            execution.give_up();
            self.tell(&format!("gives up checkpoint {id}, unless it was complete"));
        }
        let id = self.checkpoint_id();
        self.tell(&format!("takes checkpoint {id}"));
        execution.checkpoint(id, CheckpointKind::Checkpoint, &mut self.random)
    }

    /// Some turns, in which a checkpoint may or may not become complete.
    fn go_on(&mut self, execution: &mut Execution<'_>) -> Result<()> {
        let turns = self.random.below(40);
        (0..turns).try_for_each(|_| execution.turn(&mut self.random).map(drop))
    }

    fn stop(&mut self, mut execution: Execution<'_>) -> Result<Beginning> {
        let id = self.checkpoint_id();
        self.tell(&format!("stops with savepoint {id}"));
        let dir = self.bed.url(&format!("savepoint-{id}"))?;
        let kind = CheckpointKind::Savepoint { dir, stop: true, drain: false };
        execution.checkpoint(id, kind, &mut self.random)?;
        execution.kill(|_| true)
    }

    /// Maybe in the middle of a checkpoint, of whose completion the subtasks do not always hear.
    fn fall(&mut self, execution: &mut Execution<'_>) -> Result<()> {
        if self.random.coin() {
            let id = self.checkpoint_id();
            execution.is_deaf = self.random.coin();
            execution.trigger(id, CheckpointKind::Checkpoint)?;
            self.tell(&format!("is taking checkpoint {id}"));
        }
        self.go_on(execution)
    }

    fn kill(&mut self, mut execution: Execution<'_>) -> Result<Beginning> {
        self.fall(&mut execution)?;
        let bits = self.random.number();
        self.tell("loses some of its subtasks");
        execution.kill(|id| bits >> ((id.vertex * 3 + id.index) % 64) & 1 == 0)
    }

    fn crash(&mut self, mut execution: Execution<'_>) -> Result<Beginning> {
        self.fall(&mut execution)?;
        self.tell("loses all of its subtasks");
        execution.kill(|_| true)
    }

    fn tables(&mut self, rows_max: u64, paces_values: bool) -> Result<Tables> {
        let mut plan = self.job.plan.clone();
        let pace = Pace::new(rows_max, self.random.number());
        let mut connectors = PacedTables::new(pace.clone(), self.results.clone());
        if paces_values {
            connectors.take_values(&mut plan, &FUNCTIONS)?;
        }
        Ok(Tables { plan, connectors: Arc::new(connectors), pace })
    }

    fn program(&self, tables: &Tables, parallelism: u32, is_unaligned: bool) -> Result<Program> {
        let mut config = self.job.config.clone();
        config.set("parallelism.default", &parallelism.to_string())?;
        config.set("execution.checkpointing.unaligned", if is_unaligned { "true" } else { "false" })?;
        program::build(&tables.plan, &config, Arc::clone(&tables.connectors), &FUNCTIONS)
    }
}

/// A plan and the tables that it reads.
struct Tables {
    plan: CompiledPlan,
    connectors: Arc<dyn Connectors>,
    pace: Pace,
}
