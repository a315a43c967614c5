//! How long key groups have no output while a gigabyte of state moves: after a `kill -9`, in a rescale, in an upgrade;
//! and how much slower a job is while its state is written. Whole processes; `state-job` notes when there was output.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use flott_core::ids::JobId;
use flott_core::{Error, Result};
use flott_local::client::Client;
use serde::Deserialize;
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::cluster::{Cluster, kill};
use crate::harness::{MAX_PARALLELISM, binary, median, medians, output, runtime};
use crate::outputs::{Outputs, Window};
use crate::plot::Plot;
use crate::report::Figure;

/// The bytes of each key's state.
const ENTRY_BYTES: u64 = 1000;

/// What a job has to do that is not at its limit: each key group has output every three milliseconds.
const PACE: u32 = 50_000;

/// How often outputs are read: rarely, since that takes time from what is measured.
const LOOK_PAUSE: Duration = Duration::from_secs(5);

/// How long it may take until the state is filled, or until output flows again.
const PATIENCE: Duration = Duration::from_secs(300);

/// All is back when each key group had output in so much time before it was looked.
const BACK_MS: i64 = 1000;

/// What is younger may not be written yet.
const UNWRITTEN_MS: i64 = 20;

/// From the end of a checkpoint to the trigger of the next, where throughput with and without them is compared.
const CHECKPOINT_PAUSE: Duration = Duration::from_secs(2);

/// What plots show before and after what happens, and in which steps.
const PLOT_MS: Window = (-2000, 8000);
const PLOT_STEP_MS: i64 = 10;

/// A TaskManager is killed: the others have slots for its subtasks.
pub(crate) fn killed(is_quick: bool) -> Result<Vec<Figure>> {
    let [lost_s, any_s] = medians(rounds(is_quick), || {
        let job = Job::start(&Setup { task_managers: 3, slots: 2, subtasks: 4, is_paced: true, is_quick })?;
        let owners = job.outputs()?.owners(i64::MAX);
        let victim = owners.iter().flatten().map(|worker| worker.task_manager).next();
        let victim = victim.ok_or_else(|| Error::system("no key group has an owner"))?;
        let seen = job.watch(|_| kill(victim))?;
        seen.plot(is_quick, "kill", "kill -9 of one of three TaskManagers", &[(seen.began_ms, "killed")])?;
        // What it had when it was killed.
        let owners = seen.outputs.owners(seen.began_ms);
        let is_lost = |group: usize| owners[group].is_some_and(|worker| worker.task_manager == victim);
        Ok([seen.longest_gap_s(is_lost)?, seen.longest_gap_s(|_| true)?])
    })?;
    let mut figures =
        vec![Figure::limited("kill_lost_groups", "s", lost_s, 2.0), Figure::limited("kill_any_group", "s", any_s, 2.0)];
    figures.extend(flink("kill", is_quick).map(|flink| flink.gap("kill_beside_flink", any_s)));
    Ok(figures)
}

/// From 4 subtasks to 12, on the TaskManagers that are there.
pub(crate) fn rescaled(is_quick: bool) -> Result<Vec<Figure>> {
    let [any_s, unmoved_s, command_s] = medians(rounds(is_quick), || {
        let job = Job::start(&Setup { task_managers: 3, slots: 4, subtasks: 4, is_paced: true, is_quick })?;
        let seen = job.watch(|job| job.flott("rescale", &["-p", "12"]))?;
        let marks = [(seen.began_ms, "flott rescale -p 12"), (seen.done_ms, "done")];
        seen.plot(is_quick, "rescale", "rescale from 4 to 12", &marks)?;
        let (before, after) = (seen.outputs.owners(seen.began_ms), seen.outputs.owners(seen.end_ms));
        let unmoved_s = seen.longest_gap_s(|group| before[group] == after[group])?;
        Ok([seen.longest_gap_s(|_| true)?, unmoved_s, (seen.done_ms - seen.began_ms) as f64 / 1e3])
    })?;
    let mut figures = vec![
        Figure::limited("rescale_any_group", "s", any_s, 2.0),
        Figure::limited("rescale_unmoved_groups", "s", unmoved_s, 2.0),
        Figure::alone("rescale_command", "s", command_s),
    ];
    figures.extend(flink("rescale", is_quick).map(|flink| flink.gap("rescale_beside_flink", any_s)));
    Ok(figures)
}

/// To the same program: savepoint, check, stop, start.
pub(crate) fn upgraded(is_quick: bool) -> Result<Vec<Figure>> {
    let [any_s] = medians(rounds(is_quick), || {
        let job = Job::start(&Setup { task_managers: 3, slots: 2, subtasks: 4, is_paced: true, is_quick })?;
        let savepoints = job.savepoints();
        let mut arguments = vec![job.program.as_str(), "--savepoint-dir", &savepoints, "--"];
        arguments.extend(job.arguments.iter().map(String::as_str));
        let seen = job.watch(|job| job.flott("upgrade", &arguments))?;
        let marks = [(seen.began_ms, "flott upgrade"), (seen.done_ms, "done")];
        seen.plot(is_quick, "upgrade", "upgrade", &marks)?;
        Ok([seen.longest_gap_s(|_| true)?])
    })?;
    let mut figures = vec![Figure::limited("upgrade_any_group", "s", any_s, 3.0)];
    figures.extend(flink("upgrade", is_quick).map(|flink| flink.gap("upgrade_beside_flink", any_s)));
    Ok(figures)
}

/// As fast as it can, with and without a checkpoint or savepoint under way.
pub(crate) fn flowing(is_quick: bool) -> Result<Vec<Figure>> {
    let (checkpoints, savepoints) = if is_quick { (4, 2) } else { (15, 3) };
    let job = Job::start(&Setup { task_managers: 1, slots: 2, subtasks: 2, is_paced: false, is_quick })?;
    let savepoint_dir = job.savepoints();
    for _ in 0..checkpoints {
        job.runtime.block_on(job.client.checkpoint(job.id))?;
        std::thread::sleep(CHECKPOINT_PAUSE);
    }
    for _ in 0..savepoints {
        job.runtime.block_on(job.client.savepoint(job.id, Some(&savepoint_dir), None))?;
        std::thread::sleep(Duration::from_secs(if is_quick { 1 } else { 5 }));
    }
    let history = job.history()?;
    let outputs = job.outputs()?;
    let pick = |is_savepoint: bool, count: usize| -> Result<Vec<&Checkpoint>> {
        let mut of_kind: Vec<_> = history.iter().filter(|done| done.is_savepoint == is_savepoint).collect();
        of_kind.sort_by_key(|done| done.trigger_timestamp);
        // The first ones came with the start.
        let picked = of_kind.split_off(of_kind.len().saturating_sub(count));
        if picked.len() == count { Ok(picked) } else { Err(Error::system("the job's history has not all checkpoints")) }
    };
    let (checkpoints, savepoints) = (pick(false, checkpoints)?, pick(true, savepoints)?);
    let during = |written: &[&Checkpoint]| written.iter().map(|done| done.window()).collect::<Vec<Window>>();
    let between = |written: &[&Checkpoint]| -> Vec<Window> {
        written.windows(2).map(|pair| (pair[0].window().1, pair[1].window().0)).collect()
    };
    let flow = |name, written: &[&Checkpoint]| {
        let (ours, peer) = (outputs.rate(&during(written)), outputs.rate(&between(written)));
        Figure::more(name, "M rows/s", ours / 1e6, peer / 1e6)
    };
    // All of the time from the first checkpoint to the last, those included.
    let ends = checkpoints.first().zip(checkpoints.last());
    let (first, last) = ends.ok_or_else(|| Error::system("the job has no checkpoints"))?;
    let all = outputs.rate(&[(first.window().0, last.window().0)]) / 1e6;
    let undisturbed = outputs.rate(&between(&checkpoints)) / 1e6;
    let sync_ms = checkpoints.iter().map(|done| done.sync_micros_max as f64 / 1e3).collect();
    let savepoint_s = median(savepoints.iter().map(|done| done.seconds()).collect());
    let longest = savepoints.iter().flat_map(|done| outputs.gaps_ms(done.window())).max().unwrap_or_default();
    let rate = (keys(is_quick) * ENTRY_BYTES) as f64 / 1e6 / savepoint_s;
    // Its cluster is not to disturb the peer's.
    drop(job);
    let savepoint_rate = match flink("savepoint", is_quick) {
        Some(flink) => flink.rate("savepoint_rate", rate),
        None => Figure::alone("savepoint_rate", "MB/s", rate),
    };
    Ok(vec![
        Figure::more("checkpoint_flow", "M rows/s", all, undisturbed).against("no checkpoints", 0.95),
        flow("checkpoint_flow_during", &checkpoints).beside("no checkpoint"),
        Figure::limited("checkpoint_sync", "ms", median(sync_ms), 10.0),
        flow("savepoint_flow", &savepoints).beside("no savepoint"),
        Figure::alone("savepoint_longest_gap", "ms", longest as f64),
        savepoint_rate,
    ])
}

/// What `flink/state.py` prints.
#[derive(Deserialize)]
struct Flink {
    state_bytes: f64,
    #[serde(default)]
    gap_seconds: f64,
    #[serde(default)]
    savepoint_seconds: f64,
}

impl Flink {
    fn gap(&self, name: &'static str, ours_s: f64) -> Figure {
        Figure::less(name, "s", ours_s, self.gap_seconds).beside("Apache Flink 2.3")
    }

    fn rate(&self, name: &'static str, ours: f64) -> Figure {
        Figure::more(name, "MB/s", ours, self.state_bytes / 1e6 / self.savepoint_seconds).beside("Apache Flink 2.3")
    }
}

/// The same on Apache Flink. Where that cannot be had, our own figures count all the same.
fn flink(case: &str, is_quick: bool) -> Option<Flink> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("flink/state.py");
    let megabytes = (keys(is_quick) * ENTRY_BYTES / 1_000_000).to_string();
    let printed = output(Command::new(script).args([case, &megabytes]));
    let flink = printed.and_then(|printed| {
        serde_json::from_str(&printed).map_err(|error| Error::system(format!("state.py printed '{printed}': {error}")))
    });
    flink.map_err(|error| eprintln!("no figure of Apache Flink: {error}")).ok()
}

fn rounds(is_quick: bool) -> usize {
    if is_quick { 1 } else { 3 }
}

fn keys(is_quick: bool) -> u64 {
    if is_quick { 100_000 } else { 1_000_000 }
}

/// How a job is started.
struct Setup {
    task_managers: u32,
    slots: u32,
    subtasks: u32,
    /// At a pace that it can keep easily and with a checkpoint now and then, or as fast as it can and without.
    is_paced: bool,
    is_quick: bool,
}

/// A job with its state, and a cluster for it. They end first, then their folder.
struct Job {
    cluster: Cluster,
    client: Client,
    runtime: Runtime,
    id: JobId,
    program: String,
    arguments: Vec<String>,
    outputs: PathBuf,
    folder: TempDir,
}

/// The answer of `flott run -o json`.
#[derive(Deserialize)]
struct Submitted {
    jobid: JobId,
}

/// The answer of `GET /jobs/:id/checkpoints`.
#[derive(Deserialize)]
struct Checkpoints {
    history: Vec<Checkpoint>,
}

/// A checkpoint or savepoint that has ended.
#[derive(Deserialize)]
struct Checkpoint {
    status: String,
    is_savepoint: bool,
    trigger_timestamp: i64,
    latest_ack_timestamp: i64,
    #[serde(default)]
    sync_micros_max: u64,
}

impl Checkpoint {
    fn window(&self) -> Window {
        (self.trigger_timestamp, self.latest_ack_timestamp)
    }

    fn seconds(&self) -> f64 {
        (self.latest_ack_timestamp - self.trigger_timestamp) as f64 / 1e3
    }
}

impl Job {
    /// Starts a cluster and a job, and waits until the job has all its state and a checkpoint of that.
    fn start(setup: &Setup) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let outputs = folder.path().join("outputs");
        fs::create_dir(&outputs)?;
        let cluster = Cluster::start(&folder.path().join("cluster"), setup.task_managers, setup.slots)?;
        let program = binary("state-job")?.display().to_string();
        let mut options = vec![
            ("--keys", keys(setup.is_quick).to_string()),
            ("--bytes", ENTRY_BYTES.to_string()),
            ("--subtasks", setup.subtasks.to_string()),
            ("--outputs", outputs.display().to_string()),
        ];
        if setup.is_paced {
            options.extend([("--rows-per-second", PACE.to_string()), ("--checkpoint-interval", "2s".to_owned())]);
        }
        let arguments: Vec<String> = options.into_iter().flat_map(|(name, value)| [name.to_owned(), value]).collect();
        let mut run: Vec<String> = ["-d", "-o", "json", &program, "--"].map(str::to_owned).into();
        run.extend_from_slice(&arguments);
        let answer = cluster.flott("run", &run)?;
        let submitted: Submitted = serde_json::from_str(&answer)
            .map_err(|error| Error::system(format!("flott run answered '{answer}': {error}")))?;
        let client = Client::new(cluster.rest())?;
        let job =
            Self { cluster, client, runtime: runtime()?, id: submitted.jobid, program, arguments, outputs, folder };

        let keys = keys(setup.is_quick);
        job.await_outputs("the state is not filled", Duration::from_secs(1), |outputs, _| outputs.records() >= keys)?;
        job.runtime.block_on(job.client.checkpoint(job.id))?;
        std::thread::sleep(LOOK_PAUSE);
        Ok(job)
    }

    /// Where its savepoints go.
    fn savepoints(&self) -> String {
        format!("file://{}", self.folder.path().join("savepoints").display())
    }

    fn outputs(&self) -> Result<Outputs> {
        Outputs::read(&self.outputs)
    }

    /// The checkpoints and savepoints that were completed lately.
    fn history(&self) -> Result<Vec<Checkpoint>> {
        let path = format!("/jobs/{}/checkpoints", self.id);
        let answer = self.runtime.block_on(self.client.get(&path))?;
        let mut answer: Checkpoints =
            serde_json::from_value(answer).map_err(|error| Error::system(format!("{path}: {error}")))?;
        answer.history.retain(|checkpoint| checkpoint.status == "COMPLETED");
        Ok(answer.history)
    }

    /// Runs `flott VERB JOB ARGUMENTS` to its end.
    fn flott(&self, verb: &str, arguments: &[&str]) -> Result<()> {
        let id = self.id.to_string();
        let arguments: Vec<String> = [&[id.as_str()][..], arguments].concat().into_iter().map(str::to_owned).collect();
        self.cluster.flott(verb, &arguments).map(drop)
    }

    /// Does something to the job, and waits until output flows again.
    fn watch(&self, act: impl FnOnce(&Self) -> Result<()>) -> Result<Seen> {
        let began_ms = flott_env::now_ms();
        act(self)?;
        let done_ms = flott_env::now_ms();
        let missing = "some key groups have no output any more";
        let (outputs, end_ms) = self.await_outputs(missing, LOOK_PAUSE, |outputs, end_ms| {
            outputs.gaps_ms((end_ms - BACK_MS, end_ms)).iter().all(|gap| *gap < BACK_MS)
        })?;
        Ok(Seen { outputs, began_ms, done_ms, end_ms })
    }

    /// Reads the outputs again and again, until they are as they should be. Also returns the time until which they
    /// are all there.
    fn await_outputs(
        &self,
        missing: &str,
        pause: Duration,
        is_good: impl Fn(&Outputs, i64) -> bool,
    ) -> Result<(Outputs, i64)> {
        let began = flott_env::monotonic();
        loop {
            std::thread::sleep(pause);
            let end_ms = flott_env::now_ms() - UNWRITTEN_MS;
            let outputs = self.outputs()?;
            if is_good(&outputs, end_ms) {
                return Ok((outputs, end_ms));
            }
            if flott_env::monotonic().saturating_sub(began) > PATIENCE {
                return Err(Error::system(format!("{missing} after {PATIENCE:?}")));
            }
        }
    }
}

/// The outputs around something that was done.
struct Seen {
    outputs: Outputs,
    began_ms: i64,
    done_ms: i64,
    end_ms: i64,
}

impl Seen {
    /// The longest time without output of the key groups that `is_meant` says yes to.
    fn longest_gap_s(&self, is_meant: impl Fn(usize) -> bool) -> Result<f64> {
        let gaps = self.outputs.gaps_ms((self.began_ms, self.end_ms));
        let meant = (0..MAX_PARALLELISM as usize).filter(|group| is_meant(*group)).map(|group| gaps[group]);
        let longest = meant.max().ok_or_else(|| Error::system("no key group is of the kind that is measured"))?;
        Ok(longest as f64 / 1e3)
    }

    /// Draws what happened, if the run is one to be kept.
    fn plot(&self, is_quick: bool, name: &str, what: &str, marks: &[(i64, &str)]) -> Result<()> {
        if is_quick || cfg!(debug_assertions) {
            return Ok(());
        }
        let (before_ms, after_ms) = PLOT_MS;
        let window = (self.began_ms + before_ms, self.end_ms.min(self.began_ms + after_ms));
        let title = format!("Output of a job with 1 GB of state: {what}");
        let steps = self.outputs.steps(window, PLOT_STEP_MS);
        Plot { title: &title, steps: &steps, step_ms: PLOT_STEP_MS, from_ms: window.0, marks }.save(name)
    }
}
