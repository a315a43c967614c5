//! State that moves at random: checkpoints, savepoints, rescales, kills, upgrades and new lives of a job from its last savepoint,
//! in any order and into each other's recoveries. Every number is committed once, over all lives.
//!
//! `FLOTT_MOVES_STEPS` is the number of moves. They depend on a seed alone, which is printed; `FLOTT_MOVES_SEED` takes it
//! again.

use std::env;
use std::thread;
use std::time::Duration;

use flott_e2e::{Cluster, CommandOutput, Numbers, Random, Setup, binary, signal, visible_lines};
use serde_json::Value;

const STEPS_DEFAULT: u64 = 25;

const TASK_MANAGERS: u64 = 2;
const SLOTS: u32 = 2;

/// What keyed state may take in a TaskManager, and what each of the 64 keys has: several times as much in all.
const MEMORY: &str = "256kb";
const PADDING: &str = "40000";

/// How long a job may take to get on, whatever has happened to it.
const LIMIT: Duration = Duration::from_secs(60);

const ENGINE: &[&str] = &[
    "execution.checkpointing.interval=200ms",
    "restart-strategy.type=exponential-delay",
    "restart-strategy.exponential-delay.initial-backoff=50ms",
    "restart-strategy.exponential-delay.max-backoff=300ms",
];

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
enum Move {
    Checkpoint,
    Savepoint,
    Rescale(u64),
    StopAndStart(Life),
    Upgrade(Life),
    /// One of the job's workers, whichever this number hits.
    KillWorker(u64),
    KillTaskManager(usize, Duration),
    KillJobManager(Duration),
}

impl Move {
    fn pick(random: &mut Random) -> Self {
        let parallelism = 1 + random.below(TASK_MANAGERS * u64::from(SLOTS));
        match random.below(14) {
            0 => Self::Checkpoint,
            1..=2 => Self::Savepoint,
            3..=5 => Self::Rescale(parallelism),
            6..=7 => Self::StopAndStart(Life::pick(random, parallelism)),
            8..=9 => Self::KillWorker(random.number()),
            10 => Self::KillTaskManager(random.below(TASK_MANAGERS) as usize, random.millis(0, 500)),
            11..=12 => Self::Upgrade(Life::pick(random, parallelism)),
            _ => Self::KillJobManager(random.millis(0, 500)),
        }
    }
}

fn job_arguments(output: &str) -> [&str; 8] {
    ["--case", "numbers", "--output", output, "--padding", PADDING, "--rows-per-second", "3000"]
}

/// A cluster with one job, which has had some lives.
struct Moves {
    cluster: Cluster,
    job: String,
    outputs: Vec<String>,
    /// Whether the job has got on since the last move, so that nothing excuses a refusal.
    is_settled: bool,
}

impl Moves {
    fn start(life: Life) -> Self {
        let setup = Setup::new(TASK_MANAGERS as usize, SLOTS).option("taskmanager.memory.managed.size", MEMORY);
        let mut moves = Self { cluster: setup.start(), job: String::new(), outputs: Vec::new(), is_settled: false };
        moves.live(life, None);
        moves.settle();
        moves
    }

    /// Starts the job, from a savepoint if there is one, with an output of its own.
    fn live(&mut self, life: Life, savepoint: Option<&str>) {
        let output = self.new_output();
        let engine = life.engine();
        let mut engine: Vec<&str> = engine.iter().map(String::as_str).collect();
        engine.extend(savepoint.iter().flat_map(|savepoint| ["-s", *savepoint]));
        self.job = self.cluster.run_job(&binary("e2e-job"), &engine, &job_arguments(&output));
    }

    fn new_output(&mut self) -> String {
        let output = self.cluster.path(&format!("out-{}", self.outputs.len()));
        self.outputs.push(output.clone());
        output
    }

    /// `flott upgrade` to another life. Whether it worked or went back, it says which job goes on.
    fn upgrade(&mut self, life: Life) {
        let (output, folder, program) = (self.new_output(), self.cluster.path("savepoints"), binary("e2e-job"));
        let program = program.to_str().expect("its name is UTF-8");
        let own = ["-o", "json", "--savepoint-dir", &folder, "--timeout", "60s"];
        let engine = life.engine();
        let engine: Vec<&str> = engine.iter().map(String::as_str).collect();
        let arguments = [&[self.job.as_str(), program], &own[..], &engine, &["--"], &job_arguments(&output)].concat();
        let answer = self.cluster.flott("upgrade", &arguments);
        let said: Value = serde_json::from_str(&answer.stdout).unwrap_or_default();
        match said["new-job"].as_str() {
            Some(job) => {
                println!("    {} as {job}", said["outcome"]);
                self.job = job.to_owned();
            }
            None => println!("    refused: {}", answer.text().trim()),
        }
        let is_done = said["outcome"] == "upgraded";
        assert!(is_done || !self.is_settled, "{} failed, though the job runs:\n{}", answer.command, answer.text());
        self.cluster.wait_for_status(&self.job, "RUNNING", LIMIT);
    }

    fn make(&mut self, step: Move) {
        match step {
            Move::Checkpoint => drop(self.ask("checkpoint", &[])),
            Move::Savepoint => drop(self.ask("savepoint", &[&self.cluster.path("savepoints")])),
            Move::Rescale(parallelism) => drop(self.ask("rescale", &["-p", &parallelism.to_string()])),
            Move::StopAndStart(life) => {
                if let Some(savepoint) = self.stop() {
                    self.live(life, Some(&savepoint));
                }
            }
            Move::Upgrade(life) => self.upgrade(life),
            Move::KillWorker(choice) => {
                let mut workers = self.cluster.workers_of(&self.job);
                workers.sort_unstable();
                if !workers.is_empty() {
                    signal(workers[(choice % workers.len() as u64) as usize], "KILL");
                }
            }
            Move::KillTaskManager(index, away) => {
                self.cluster.kill_task_manager(index);
                thread::sleep(away);
                self.cluster.start_task_manager(index);
            }
            Move::KillJobManager(away) => {
                self.cluster.kill_job_manager();
                thread::sleep(away);
                self.cluster.start_job_manager();
            }
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

    fn stop(&self) -> Option<String> {
        let savepoint = self.ask("stop", &["-p", &self.cluster.path("savepoints")])?.savepoint();
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
}

fn number(name: &str, default: impl FnOnce() -> u64) -> u64 {
    env::var(name).map_or_else(|_| default(), |text| text.parse().unwrap_or_else(|_| panic!("{name} is a number")))
}

#[test]
fn every_number_is_there_once_after_all_moves() {
    let (seed, steps) =
        (number("FLOTT_MOVES_SEED", flott_env::random_u64), number("FLOTT_MOVES_STEPS", || STEPS_DEFAULT));
    println!("{steps} moves, FLOTT_MOVES_SEED={seed}");
    let mut random = Random::new(seed);
    // The oracle takes no other parallelism for the first life.
    let parallelism = [1, 2, 4][random.below(3) as usize];
    let life = Life::pick(&mut random, parallelism);
    println!("life: {life:?}");
    let mut moves = Moves::start(life);
    for number in 1..=steps {
        let (step, settles, pause) = (Move::pick(&mut random), random.coin(), random.millis(0, 400));
        println!("move {number}: {step:?}; settles: {settles}");
        moves.make(step);
        if settles { moves.settle() } else { thread::sleep(pause) }
    }
    moves.settle();
    moves.stop().expect("a job that has settled can be stopped");

    // Together, so that a number that two lives have committed is found.
    let lines: Vec<String> = moves.outputs.iter().flat_map(visible_lines).collect();
    let numbers = Numbers::read(&lines);
    numbers.assert_no_gaps();
    println!("{} numbers in {} lives", numbers.len(), moves.outputs.len());
    assert!(numbers.len() > 1000, "only {} numbers", numbers.len());
}
