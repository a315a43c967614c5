//! Jobs whose processes are killed at random: what their sinks have committed is, record by record, what an undisturbed
//! run commits.
//!
//! `FLOTT_CHAOS_KILLS` is the number of kills over all runs. The victims and the pauses depend on a seed, which is printed;
//! `FLOTT_CHAOS_SEED` takes it again.

use std::env;
use std::process::Command;
use std::thread;
use std::time::Duration;

use flott_e2e::{
    Cluster, CommandOutput, Numbers, Random, assert_same, binary, flights_events, repository, run_command, signal,
    until, visible_lines,
};

/// How often each job is run.
const SESSIONS_RUNS: u64 = 3;
const FLIGHTS_RUNS: u64 = 4;
const NUMBERS_RUNS: u64 = 2;
const RUNS: u64 = SESSIONS_RUNS + FLIGHTS_RUNS + NUMBERS_RUNS;

const KILLS_DEFAULT: u64 = 72;

/// How much undisturbed work there is for each kill. Between two kills a job gets less done, so it outlives them all, also
/// where a JobManager that it runs on without takes long to start.
const SECONDS_PER_KILL: u64 = 4;

const SESSIONS_PER_SECOND: u64 = 4_000;
const FLIGHTS: u64 = 336_776;

/// How long a job may take to finish after the last kill.
const FINISH_TIMEOUT: Duration = Duration::from_secs(180);

const ENGINE: &[&str] = &[
    "-p",
    "2",
    "-D",
    "execution.checkpointing.interval=400ms",
    "-D",
    "restart-strategy.type=exponential-delay",
    "-D",
    "restart-strategy.exponential-delay.initial-backoff=50ms",
    "-D",
    "restart-strategy.exponential-delay.max-backoff=300ms",
];

fn kills_per_run() -> u64 {
    let kills = env::var("FLOTT_CHAOS_KILLS").map(|kills| kills.parse::<u64>().expect("FLOTT_CHAOS_KILLS is a number"));
    kills.unwrap_or(KILLS_DEFAULT).div_ceil(RUNS)
}

/// The random numbers of one run. Each run of a job has a seed of its own, unless one is given.
fn seeded(job: &str) -> Random {
    let given = env::var("FLOTT_CHAOS_SEED").map(|seed| seed.parse::<u64>().expect("FLOTT_CHAOS_SEED is a number"));
    let seed = given.unwrap_or_else(|_| flott_env::random_u64());
    println!("{job}: {} kills, FLOTT_CHAOS_SEED={seed}", kills_per_run());
    Random::new(seed)
}

#[derive(Clone, Copy, Debug)]
enum Victim {
    TaskManager(usize),
    Worker,
    JobManager,
    All,
}

fn pick(random: &mut Random, task_managers: usize) -> Victim {
    match random.below(10) {
        0..=3 => Victim::TaskManager(random.below(task_managers as u64) as usize),
        4..=6 => Victim::Worker,
        7..=8 => Victim::JobManager,
        _ => Victim::All,
    }
}

/// Kills processes of the cluster, one after the other, while `job` runs. Each is started again after a while.
fn kill_at_random(cluster: &mut Cluster, job: &str, random: &mut Random) {
    cluster.wait_for_checkpoints(job, 1);
    let mut checkpoint = cluster.last_checkpoint(job);
    for kill in 1..=kills_per_run() {
        // Half of the kills hit a job that has just got on, the others whatever it is doing, recoveries included.
        if random.coin() {
            cluster.wait_for_checkpoints(job, checkpoint + 1);
        }
        thread::sleep(random.millis(200, 1500));
        checkpoint = checkpoint.max(cluster.last_checkpoint(job));
        let status = cluster.rest(&format!("/jobs/{job}"))["state"].as_str().unwrap_or_default().to_owned();
        let is_over = ["FINISHED", "FAILED", "CANCELED"].contains(&status.as_str());
        assert!(!is_over, "the job is {status} before kill {kill}: {}", cluster.exceptions(job));

        let victim = pick(random, cluster.task_managers());
        let away = random.millis(0, 1000);
        println!("kill {kill}: {victim:?} of a job that is {status}, after checkpoint {checkpoint}; back in {away:?}");
        strike(cluster, job, victim, random, away);
    }
}

fn strike(cluster: &mut Cluster, job: &str, victim: Victim, random: &mut Random, away: Duration) {
    match victim {
        Victim::TaskManager(index) => {
            cluster.kill_task_manager(index);
            thread::sleep(away);
            cluster.start_task_manager(index);
        }
        Victim::Worker => {
            let mut workers = until("a worker to kill", Duration::from_secs(60), || match cluster.workers_of(job) {
                workers if workers.is_empty() => Err(cluster.exceptions(job)),
                workers => Ok(workers),
            });
            workers.sort_unstable();
            signal(workers[random.below(workers.len() as u64) as usize], "KILL");
        }
        Victim::JobManager => {
            cluster.kill_job_manager();
            thread::sleep(away);
            cluster.start_job_manager();
        }
        Victim::All => {
            cluster.kill_job_manager();
            for index in 0..cluster.task_managers() {
                cluster.kill_task_manager(index);
            }
            thread::sleep(away);
            cluster.start_job_manager();
            for index in 0..cluster.task_managers() {
                cluster.start_task_manager(index);
            }
        }
    }
}

/// Runs a program in its own process, where nothing disturbs it.
fn undisturbed(program: &str, arguments: &[&str]) -> CommandOutput {
    let mut command = Command::new(binary(program));
    run_command(command.args(["-p", "2"]).args(arguments), Duration::from_secs(180)).succeeded()
}

#[test]
fn sessions_are_the_same_after_kills() {
    let events = (SESSIONS_PER_SECOND * SECONDS_PER_KILL * kills_per_run()).to_string();
    let job_arguments = |output: &str| -> Vec<String> {
        ["--events", &events, "--users", "1000", "--seed", "7", "--output", output].map(str::to_owned).to_vec()
    };
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let expected = folder.path().join("sessions");
    let arguments = job_arguments(expected.to_str().expect("its name is UTF-8"));
    undisturbed("sessions", &arguments.iter().map(String::as_str).collect::<Vec<_>>());
    let expected = visible_lines(expected);
    assert!(expected.len() > 1000, "{} sessions are too few to tell anything", expected.len());

    for _ in 0..SESSIONS_RUNS {
        let mut random = seeded("sessions");
        let mut cluster = Cluster::start(2, 2);
        let output = cluster.path("sessions");
        let rate = SESSIONS_PER_SECOND.to_string();
        let mut arguments = job_arguments(&output);
        arguments.extend(["--rows-per-second".to_owned(), rate]);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let job = cluster.run_job(&binary("sessions"), ENGINE, &arguments);
        kill_at_random(&mut cluster, &job, &mut random);
        cluster.wait_for_status(&job, "FINISHED", FINISH_TIMEOUT);
        assert_same("sessions after kills", &visible_lines(output), &expected);
    }
}

#[test]
fn flights_are_the_same_after_kills() {
    let input = flights_events();
    let input = input.to_str().expect("its name is UTF-8");
    let golden = |name: &str| visible_lines(repository().join("examples/flights/golden").join(name));
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let path = |name: &str| folder.path().join(name).to_str().expect("its name is UTF-8").to_owned();
    undisturbed("flights", &["--input", input, "--output", &path("hourly"), "--late", &path("late")]);
    let (hourly, late) = (visible_lines(path("hourly")), visible_lines(path("late")));
    assert_same("hours of an undisturbed run", &hourly, &golden("hourly.csv"));
    assert_same("late flights of an undisturbed run", &late, &golden("late.csv"));

    for _ in 0..FLIGHTS_RUNS {
        let mut random = seeded("flights");
        let mut cluster = Cluster::start(2, 2);
        let (hourly_after, late_after) = (cluster.path("hourly"), cluster.path("late"));
        let rate = (FLIGHTS / (SECONDS_PER_KILL * kills_per_run())).to_string();
        let arguments =
            ["--input", input, "--output", &hourly_after, "--late", &late_after, "--rows-per-second", &rate];
        let job = cluster.run_job(&binary("flights"), ENGINE, &arguments);
        kill_at_random(&mut cluster, &job, &mut random);
        cluster.wait_for_status(&job, "FINISHED", FINISH_TIMEOUT);
        assert_same("hours after kills", &visible_lines(hourly_after), &hourly);
        assert_same("late flights after kills", &visible_lines(late_after), &late);
    }
}

#[test]
fn every_number_is_there_once_after_kills() {
    for _ in 0..NUMBERS_RUNS {
        let mut random = seeded("numbers");
        let mut cluster = Cluster::start(2, 2);
        let output = cluster.path("numbers");
        let job = cluster.run_job(&binary("e2e-job"), ENGINE, &["--case", "numbers", "--output", &output]);
        kill_at_random(&mut cluster, &job, &mut random);
        cluster.wait_for_status(&job, "RUNNING", FINISH_TIMEOUT);
        // It must get on after the last kill as well.
        let committed = Numbers::read(&visible_lines(&output)).len();
        until("further numbers", FINISH_TIMEOUT, || match Numbers::read(&visible_lines(&output)).len() {
            now if now > committed => Ok(()),
            _ => Err(cluster.exceptions(&job)),
        });
        cluster.stop(&job, &cluster.path("savepoints"), false);
        let numbers = Numbers::read(&visible_lines(&output));
        numbers.assert_no_gaps();
        println!("{} numbers", numbers.len());
    }
}
