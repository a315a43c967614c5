//! What happens to a job from its start to its end.

use std::fmt::Write as _;
use std::sync::{Arc, LazyLock};

use flott_control::CheckpointKind;
use flott_core::ids::{CheckpointId, Generation, JobId};
use flott_core::time::Timestamp;
use flott_core::{Error, Result, ResultExt};
use flott_e2e::Random;
use flott_operators::Program;
use flott_sql::session::Job;
use flott_sql_runtime::expr::Functions;
use flott_sql_runtime::program::{self, Connectors};
use flott_sql_runtime::spec::CompiledPlan;

use crate::bed::Bed;
use crate::execution::{Beginning, Execution, Setup};
use crate::pending::Saved;
use crate::results::Results;
use crate::tables::{Pace, PacedTables};

static FUNCTIONS: LazyLock<Functions> = LazyLock::new(|| Functions::new(flott_sql_functions::all()));

/// Into how many parts, by rows, a job with faults is divided: one thing happens behind each but the last.
const PARTS: u64 = 10;

/// More memory than keyed state of any test takes; and so little, for each row of a table too, that most of it has to go to disk.
const MEMORY_BYTES: u64 = 1 << 24;
const LITTLE_BYTES: u64 = 500;
const LITTLE_BYTES_A_ROW: u64 = 16;

/// What ends an execution before its time.
#[derive(Clone, Copy, Debug)]
pub enum Event {
    /// It stops with a savepoint.
    Stop,
    /// It loses some of its subtasks.
    Kill,
    /// It loses all of them.
    Crash,
}

/// What a job with faults went through.
#[derive(Debug, Default)]
pub struct Told {
    /// How many rows its tables have, VALUES that come at once aside.
    pub rows: u64,
    /// The checkpoints that were complete while rows were still to be read.
    pub checkpoints: usize,
    /// The most that keyed state was seen to take on disk.
    pub disk_bytes: u64,
    /// All that happened, in words.
    pub text: String,
}

/// A job and what it has put out.
pub struct Story<'a> {
    bed: &'a Bed,
    job: &'a Job,
    id: JobId,
    results: Results,
    random: Random,
    next_checkpoint: CheckpointId,
    generation: Generation,
    told: Told,
}

impl<'a> Story<'a> {
    /// A job to which happens what `seed` says, and which has its name of it: jobs of one bed, or that write one table, have
    /// different seeds.
    pub fn new(bed: &'a Bed, job: &'a Job, seed: u64) -> Self {
        let id = JobId((u128::from(seed) + 1).to_be_bytes());
        let (results, random) = (Results::default(), Random::new(seed));
        Self { bed, job, id, results, random, next_checkpoint: 1, generation: 0, told: Told::default() }
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

    /// Runs it to its end with one subtask, to which rows come one by one: each is through, and `pause_ms` have passed, before
    /// the next.
    ///
    /// # Errors
    /// It failed.
    pub fn run_row_by_row(&mut self, pause_ms: Timestamp) -> Result<()> {
        let tables = self.tables(1, true)?;
        let program = self.program(&tables, 1, false)?;
        let pace = tables.pace.clone();
        let mut execution = self.start(program, &pace, Setup::default(), Beginning::default())?;
        for rows in 1.. {
            pace.limit(rows);
            let is_read = |execution: &Execution<'_>| pace.handed() >= rows || execution.has_ended();
            execution.run_until(&mut self.random, is_read)?;
            execution.settle()?;
            execution.wait(pause_ms);
            if execution.has_ended() {
                break;
            }
        }
        execution.finish(1, &mut self.random)
    }

    /// Runs it to its end, with a checkpoint behind so many rows, and soon after it one event.
    ///
    /// # Errors
    /// It failed.
    pub fn run_with(&mut self, event: Event, rows: u64) -> Result<()> {
        let tables = self.tables(1, true)?;
        let pace = tables.pace.clone();
        let program = self.program(&tables, 1, false)?;
        let mut execution = self.start_at(program, &pace, rows)?;
        self.checkpoint(&mut execution)?;
        pace.limit(u64::MAX);
        let beginning = self.end(execution, event)?;
        let program = self.program(&tables, 2, false)?;
        let execution = self.start(program, &pace, Setup::default(), beginning)?;
        let last = self.checkpoint_id();
        execution.finish(last, &mut self.random)
    }

    /// What it keeps behind so many rows: a checkpoint, with how many entries its keyed states have.
    ///
    /// # Errors
    /// It failed, or has ended by then.
    pub fn kept_after(&mut self, rows: u64) -> Result<(Saved, u64)> {
        let tables = self.tables(u64::MAX, true)?;
        let program = self.program(&tables, 1, false)?;
        let mut execution = self.start_at(program, &tables.pace, rows)?;
        let id = self.checkpoint_id();
        execution.checkpoint(id, CheckpointKind::Checkpoint, &mut self.random)?;
        let saved = execution.saved().cloned().ok_or_else(|| Error::system("there is no checkpoint"))?;
        let subtasks = saved.manifest.vertices.iter().flat_map(|vertex| &vertex.subtasks);
        let states = subtasks.flat_map(|subtask| &subtask.keyed_states);
        let entries: u64 = states.map(|state| state.rows).sum();
        Ok((saved, entries))
    }

    /// Starts it, and lets so many rows through.
    fn start_at(&mut self, program: Program, pace: &Pace, rows: u64) -> Result<Execution<'a>> {
        pace.limit(rows);
        let mut execution = self.start(program, pace, Setup::default(), Beginning::default())?;
        let is_read = |execution: &Execution<'_>| pace.handed() >= rows || execution.has_ended();
        execution.run_until(&mut self.random, is_read)?;
        execution.settle()?;
        Ok(execution)
    }

    /// Runs it to its end with stops, kills and crashes in between; `rows` is how many rows its tables have. Unless
    /// `may_overtake`, no barrier overtakes records: watermarks among them are not kept when the channels become others, so
    /// rows behind them are no longer late.
    ///
    /// # Errors
    /// It failed, or took back a row that was not there.
    pub fn run_with_faults(&mut self, rows: u64, may_overtake: bool) -> Result<()> {
        let little_bytes = LITTLE_BYTES + LITTLE_BYTES_A_ROW * rows;
        let setup = Setup {
            channel_bytes: if self.random.coin() { 1 << 20 } else { 300 },
            is_disk: self.random.below(4) == 0,
            memory_bytes: if self.random.coin() { MEMORY_BYTES } else { little_bytes },
        };
        let is_unaligned = self.random.coin() && may_overtake;
        // In one of four jobs VALUES come at once, as in real ones.
        let paces_values = self.random.below(4) != 0;
        let tables = self.tables(rows.div_ceil(60), paces_values)?;
        let rows = rows.saturating_sub(tables.rows_at_once);
        // How many rows had been read when each checkpoint was complete.
        let mut checkpoints = Vec::new();
        let parallelism = self.parallelism();
        self.tell(&format!("starts with {parallelism} subtasks, {setup:?}, unaligned {is_unaligned}"));
        let program = self.program(&tables, parallelism, is_unaligned)?;
        let mut execution = self.start(program, &tables.pace, setup, Beginning::default())?;
        let mut parallelism = parallelism;
        let pace = tables.pace.clone();
        for part in 1..PARTS {
            let until = rows * part / PARTS;
            // What happens takes a while: some rows are left for what happens next, however fast they are read.
            pace.limit(rows * (part + 1) / PARTS);
            let told = self.told.text.clone();
            let is_read = |execution: &Execution<'_>| pace.handed() >= until || execution.has_ended();
            execution.run_until(&mut self.random, is_read).with_context(|| told)?;
            if rows == 0 {
                self.go_on(&mut execution)?;
            }
            self.told.disk_bytes = self.told.disk_bytes.max(execution.disk_bytes());
            let event = match part {
                3 => Event::Stop,
                5 => Event::Kill,
                7 => Event::Crash,
                _ => {
                    self.checkpoint(&mut execution)?;
                    checkpoints.push(pace.handed());
                    self.results.table()?;
                    continue;
                }
            };
            let beginning = self.end(execution, event)?;
            if part == 3 || self.random.coin() {
                parallelism = 1 + (parallelism + self.random.below(2) as u32) % 3;
            }
            self.tell(&format!(
                "goes on with {parallelism} subtasks from checkpoint {}, with {} key groups in memory",
                beginning.saved.as_ref().map_or(0, |saved| saved.id),
                beginning.held.len()
            ));
            let program = self.program(&tables, parallelism, is_unaligned)?;
            execution = self.start(program, &pace, setup, beginning)?;
            self.results.table().with_context(|| self.told.text.clone())?;
        }
        pace.limit(u64::MAX);
        let last = self.checkpoint_id();
        execution.finish(last, &mut self.random)?;
        self.told.rows = pace.handed();
        self.told.checkpoints = checkpoints.into_iter().filter(|read| *read < self.told.rows).count();
        Ok(())
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
        Execution::start(self.bed, program, self.id, self.generation, pace.clone(), setup, beginning)
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

    /// Ends an execution; what the next one begins with.
    fn end(&mut self, execution: Execution<'_>, event: Event) -> Result<Beginning> {
        match event {
            Event::Stop => self.stop(execution),
            Event::Kill => self.kill(execution),
            Event::Crash => self.crash(execution),
        }
    }

    fn stop(&mut self, mut execution: Execution<'_>) -> Result<Beginning> {
        let id = self.checkpoint_id();
        self.tell(&format!("stops with savepoint {id}"));
        let dir = self.bed.url(&format!("savepoint-{}-{id}", self.id))?;
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
        let mut paced = self.job.plan.clone();
        let pace = Pace::new(rows_max, self.random.number());
        let mut connectors = PacedTables::new(pace.clone(), self.results.clone());
        let values = connectors.take_values(&mut paced, &FUNCTIONS)?;
        let (plan, rows_at_once) = if paces_values { (paced, 0) } else { (self.job.plan.clone(), values) };
        Ok(Tables { plan, connectors: Arc::new(connectors), pace, rows_at_once })
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
    /// The rows of VALUES that are not handed out a few at a time.
    rows_at_once: u64,
}
