//! State that moves at random: checkpoints, savepoints, rescales, kills, upgrades and new lives of a job from its last savepoint,
//! drained or not, in any order, into each other's recoveries, and kills into upgrades. Every record is committed once, over
//! all lives.
//!
//! The job is one that numbers its records and has more state than memory, or the example `accounts`, which is upgraded from
//! its first version to its second: then it is state in the old form that is moved and lost.
//!
//! `FLOTT_MOVES_STEPS` is the number of moves. They depend on a seed alone, which is printed; `FLOTT_MOVES_SEED` takes it
//! again.

use std::env;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use flott_e2e::{
    Cluster, CommandOutput, Numbers, Random, Setup, account_entries, binary, run_command, signal, visible_lines,
};
use serde_json::Value;

const STEPS_DEFAULT: u64 = 25;

const TASK_MANAGERS: u64 = 2;
const SLOTS: u32 = 2;

/// How long a job may take to get on, whatever has happened to it.
const LIMIT: Duration = Duration::from_secs(60);

/// How long an upgrade may take: the way back included, and a JobManager that is away for a while.
const UPGRADE_LIMIT: Duration = Duration::from_secs(240);

const ENGINE: &[&str] = &[
    "execution.checkpointing.interval=200ms",
    "restart-strategy.type=exponential-delay",
    "restart-strategy.exponential-delay.initial-backoff=50ms",
    "restart-strategy.exponential-delay.max-backoff=300ms",
];

/// What is moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Job {
    /// `e2e-job --case numbers`: 64 keys with 40 kB each, several times as much as memory. Upgrades are to the same program.
    Numbers,
    /// The example `accounts`. All but its first life are of the second version.
    Accounts,
}

impl Job {
    /// What keyed state may take in a TaskManager.
    fn memory(self) -> &'static str {
        match self {
            Self::Numbers => "256kb",
            Self::Accounts => "8kb",
        }
    }

    /// The program of the first life, and that of all others.
    fn programs(self) -> [PathBuf; 2] {
        match self {
            Self::Numbers => [binary("e2e-job"), binary("e2e-job")],
            Self::Accounts => [binary("accounts-v1"), binary("accounts-v2")],
        }
    }

    fn arguments(self, output: &str) -> Vec<&str> {
        let own: &[&str] = match self {
            Self::Numbers => &["--case", "numbers", "--padding", "40000"],
            Self::Accounts => &[],
        };
        [own, &["--rows-per-second", "3000", "--output", output]].concat()
    }

    /// How many records are below a folder, if each is right and none is lost or there twice.
    fn count(self, output: &str) -> u64 {
        match self {
            Self::Numbers => {
                let numbers = Numbers::read(&visible_lines(output));
                numbers.assert_no_gaps();
                numbers.len()
            }
            Self::Accounts => account_entries(output),
        }
    }
}

/// What a life of the job is started with.
#[derive(Clone, Copy, Debug)]
struct Life {
    parallelism: u64,
    unaligned: bool,
    backend: &'static str,
}

impl Life {
    fn pick(random: &mut Random, parallelism: u64) -> Self {
        Self { parallelism, unaligned: random.coin(), backend: if random.coin() { "hashmap" } else { "disk" } }
    }

    /// The engine's arguments.
    fn engine(self) -> Vec<String> {
        let own = [
            format!("state.backend.type={}", self.backend),
            format!("execution.checkpointing.unaligned.enabled={}", self.unaligned),
        ];
        let options = ENGINE.iter().map(|&option| option.to_owned()).chain(own);
        let mut engine: Vec<String> = options.flat_map(|option| ["-D".to_owned(), option]).collect();
        engine.extend(["-p".to_owned(), self.parallelism.to_string()]);
        engine
    }
}

#[derive(Clone, Copy, Debug)]
enum Kill {
    /// One of the job's workers, whichever this number hits.
    Worker(u64),
    TaskManager(usize, Duration),
    JobManager(Duration),
}

impl Kill {
    fn pick(random: &mut Random) -> Self {
        match random.below(4) {
            0..=1 => Self::Worker(random.number()),
            2 => Self::TaskManager(random.below(TASK_MANAGERS) as usize, random.millis(0, 500)),
            _ => Self::JobManager(random.millis(0, 500)),
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Move {
    Checkpoint,
    Savepoint,
    Rescale(u64),
    StopAndStart {
        life: Life,
        drain: bool,
    },
    /// With what dies in the middle of it, how long after its beginning.
    Upgrade(Life, Option<(Duration, Kill)>),
    Kill(Kill),
}

impl Move {
    fn pick(random: &mut Random) -> Self {
        let parallelism = 1 + random.below(TASK_MANAGERS * u64::from(SLOTS));
        match random.below(14) {
            0 => Self::Checkpoint,
            1..=2 => Self::Savepoint,
            3..=5 => Self::Rescale(parallelism),
            6..=7 => Self::StopAndStart { life: Life::pick(random, parallelism), drain: random.coin() },
            8..=11 => Self::Kill(Kill::pick(random)),
            _ => Self::pick_upgrade(random, parallelism),
        }
    }

    fn pick_upgrade(random: &mut Random, parallelism: u64) -> Self {
        let kill = (random.millis(0, 2500), Kill::pick(random));
        Self::Upgrade(Life::pick(random, parallelism), random.coin().then_some(kill))
    }
}

/// A cluster with one job, which has had some lives.
struct Moves {
    kind: Job,
    cluster: Cluster,
    job: String,
    lives: usize,
    /// Whether the job has got on since the last move, so that nothing excuses a refusal.
    is_settled: bool,
}

impl Moves {
    fn start(kind: Job, life: Life) -> Self {
        let setup = Setup::new(TASK_MANAGERS as usize, SLOTS).option("taskmanager.memory.managed.size", kind.memory());
        let mut moves = Self { kind, cluster: setup.start(), job: String::new(), lives: 0, is_settled: false };
        moves.live(life, None);
        moves.settle();
        moves
    }

    /// Starts the job, from a savepoint if there is one, with an output of its own.
    fn live(&mut self, life: Life, savepoint: Option<&str>) {
        let [first, next] = self.kind.programs();
        let program = if savepoint.is_none() { first } else { next };
        let output = self.new_output();
        let engine = life.engine();
        let mut engine: Vec<&str> = engine.iter().map(String::as_str).collect();
        engine.extend(savepoint.iter().flat_map(|savepoint| ["-s", *savepoint]));
        self.job = self.cluster.run_job(&program, &engine, &self.kind.arguments(&output));
    }

    /// The folder of all outputs.
    fn output(&self) -> String {
        self.cluster.path("out")
    }

    fn new_output(&mut self) -> String {
        self.lives += 1;
        format!("{}/{}", self.output(), self.lives)
    }

    /// `flott upgrade` to another life, while something dies, or nothing. Whether it worked or went back, one job goes on.
    fn upgrade(&mut self, life: Life, kill: Option<(Duration, Kill)>) {
        let (output, folder, [_, program]) = (self.new_output(), self.cluster.path("savepoints"), self.kind.programs());
        let mut command = self.cluster.command();
        command.args(["upgrade", "-m", &self.cluster.address(), &self.job]).arg(program);
        command.args(["-o", "json", "--savepoint-dir", &folder, "--timeout", "60s"]).args(life.engine());
        command.arg("--").args(self.kind.arguments(&output));
        let upgrade = thread::spawn(move || run_command(&mut command, UPGRADE_LIMIT));
        if let Some((after, kill)) = kill {
            thread::sleep(after);
            self.kill(kill);
        }
        let answer = upgrade.join().expect("the command ends");
        assert!(!answer.text().contains("panicked at"), "{}", answer.text());
        let said: Value = serde_json::from_str(&answer.stdout).unwrap_or_default();
        match said["new-job"].as_str() {
            Some(job) => {
                println!("    {} as {job}", said["outcome"]);
                self.job = job.to_owned();
            }
            None => {
                println!("    refused: {}", answer.text().trim());
                self.job = self.cluster.running_job();
            }
        }
        let is_done = said["outcome"] == "upgraded";
        let is_excused = !self.is_settled || kill.is_some();
        assert!(is_done || is_excused, "{} failed, though the job runs:\n{}", answer.command, answer.text());
        self.cluster.wait_for_status(&self.job, "RUNNING", LIMIT);
    }

    fn kill(&mut self, kill: Kill) {
        match kill {
            Kill::Worker(choice) => {
                // In the middle of an upgrade it may be the old version's or the new one's.
                let mut workers = self.cluster.workers();
                workers.sort_unstable();
                if !workers.is_empty() {
                    signal(workers[(choice % workers.len() as u64) as usize], "KILL");
                }
            }
            Kill::TaskManager(index, away) => {
                self.cluster.kill_task_manager(index);
                thread::sleep(away);
                self.cluster.start_task_manager(index);
            }
            Kill::JobManager(away) => {
                self.cluster.kill_job_manager();
                thread::sleep(away);
                self.cluster.start_job_manager();
            }
        }
    }

    fn make(&mut self, step: Move) {
        match step {
            Move::Checkpoint => drop(self.ask("checkpoint", &[])),
            Move::Savepoint => drop(self.ask("savepoint", &[&self.cluster.path("savepoints")])),
            Move::Rescale(parallelism) => drop(self.ask("rescale", &["-p", &parallelism.to_string()])),
            Move::StopAndStart { life, drain } => {
                if let Some(savepoint) = self.stop(drain) {
                    self.live(life, Some(&savepoint));
                }
            }
            Move::Upgrade(life, kill) => self.upgrade(life, kill),
            Move::Kill(kill) => self.kill(kill),
        }
        self.is_settled = false;
    }

    /// Asks for something that a job in recovery may refuse, but no other.
    fn ask(&self, verb: &str, arguments: &[&str]) -> Option<CommandOutput> {
        let answer = self.cluster.flott(verb, &[&[self.job.as_str()], arguments].concat());
        if answer.code == Some(0) {
            return Some(answer);
        }
        assert!(!self.is_settled, "{} failed, though the job runs:\n{}", answer.command, answer.text());
        println!("    refused: {}", answer.refused(&["error"]).text().trim());
        self.cluster.wait_for_status(&self.job, "RUNNING", LIMIT);
        None
    }

    /// Neither job has windows or timers, so a drained one goes on as any other.
    fn stop(&self, drain: bool) -> Option<String> {
        let folder = self.cluster.path("savepoints");
        let flags: &[&str] = if drain { &["--drain"] } else { &[] };
        let savepoint = self.ask("stop", &[&["-p", folder.as_str()][..], flags].concat())?.savepoint();
        self.cluster.wait_for_status(&self.job, "FINISHED", LIMIT);
        Some(savepoint)
    }

    /// Waits until nothing is left of the last move. The second checkpoint from now began after the first one's end, so
    /// nobody who is dead already can have taken part in it.
    fn settle(&mut self) {
        self.cluster.wait_for_task_managers();
        for _ in 0..2 {
            self.cluster.wait_for_checkpoints(&self.job, self.cluster.last_checkpoint(&self.job) + 1);
        }
        self.cluster.wait_for_status(&self.job, "RUNNING", LIMIT);
        self.is_settled = true;
    }

    /// Stops the job for good. Returns how many records all lives together have committed.
    fn end(mut self) -> u64 {
        self.settle();
        self.stop(false).expect("a job that has settled can be stopped");
        // Together, so that a record that two lives have committed is found.
        let count = self.kind.count(&self.output());
        println!("{count} records in {} lives", self.lives);
        count
    }
}

fn number(name: &str, default: impl FnOnce() -> u64) -> u64 {
    env::var(name).map_or_else(|_| default(), |text| text.parse().unwrap_or_else(|_| panic!("{name} is a number")))
}

/// The number of moves, and what decides on them.
fn begin() -> (u64, Random) {
    let (seed, steps) =
        (number("FLOTT_MOVES_SEED", flott_env::random_u64), number("FLOTT_MOVES_STEPS", || STEPS_DEFAULT));
    println!("{steps} moves, FLOTT_MOVES_SEED={seed}");
    (steps, Random::new(seed))
}

/// The first life. The oracles take no other parallelism for it.
fn first_life(random: &mut Random) -> Life {
    let parallelism = [1, 2, 4][random.below(3) as usize];
    let life = Life::pick(random, parallelism);
    println!("life: {life:?}");
    life
}

fn make_and_settle(moves: &mut Moves, random: &mut Random, what: &str, step: Move) {
    let (settles, pause) = (random.coin(), random.millis(0, 400));
    println!("move {what}: {step:?}; settles: {settles}");
    moves.make(step);
    if settles { moves.settle() } else { thread::sleep(pause) }
}

#[test]
fn every_number_is_there_once_after_all_moves() {
    let (steps, mut random) = begin();
    let mut moves = Moves::start(Job::Numbers, first_life(&mut random));
    for number in 1..=steps {
        let step = Move::pick(&mut random);
        make_and_settle(&mut moves, &mut random, &number.to_string(), step);
    }
    let count = moves.end();
    assert!(count > 1000, "only {count} numbers");
}

/// There is one first life in each round, and so one time at which the old form of the state is moved to the new one.
#[test]
fn every_entry_of_an_account_is_there_once_after_its_upgrade() {
    let (steps, mut random) = begin();
    let rounds = steps.div_ceil(10);
    for round in 1..=rounds {
        let mut moves = Moves::start(Job::Accounts, first_life(&mut random));
        // What comes before and behind the upgrade differs in each round.
        let before = random.below(3);
        for number in 1..=6 {
            let parallelism = 1 + random.below(TASK_MANAGERS * u64::from(SLOTS));
            let is_upgrade = number == before + 1;
            let step = if is_upgrade { Move::pick_upgrade(&mut random, parallelism) } else { Move::pick(&mut random) };
            make_and_settle(&mut moves, &mut random, &format!("{round}.{number}"), step);
        }
        let count = moves.end();
        assert!(count > 1000, "only {count} entries");
    }
}
