//! The rows of a SELECT that a cluster runs: each is shown once, whatever dies, and nobody works for a client that is gone.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

use flott_e2e::{Cluster, Setup, run_command, signal, until};

const LIMIT: Duration = Duration::from_secs(120);

/// A script that shows the numbers below `count`, of which so many come in a second, behind settings.
fn script(settings: &[(&str, &str)], count: u64, rate: u64) -> String {
    let settings: String = settings.iter().map(|(key, value)| format!("SET '{key}' = '{value}';\n")).collect();
    format!(
        "{settings}CREATE TABLE numbers (n BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '{rate}',
           'fields.n.kind' = 'sequence', 'fields.n.start' = '0', 'fields.n.end' = '{}');
         SELECT n, 'row ' || CAST(n AS STRING) FROM numbers;\n",
        count - 1
    )
}

/// Settings of a job that is to survive what is done to it.
const DURABLE: &[(&str, &str)] = &[
    ("execution.checkpointing.interval", "200ms"),
    ("restart-strategy.type", "exponential-delay"),
    ("restart-strategy.exponential-delay.initial-backoff", "50ms"),
    ("restart-strategy.exponential-delay.max-backoff", "300ms"),
];

/// A client that shows rows.
struct Client {
    child: Child,
    stderr: String,
}

impl Client {
    /// Runs a script on a cluster; its rows go to `stdout`.
    fn start(cluster: &Cluster, script: &str, arguments: &[&str], stdout: impl Into<Stdio>) -> Self {
        let (file, stderr) = (cluster.path("select.sql"), cluster.path("select.err"));
        fs::write(&file, script).expect("written");
        let mut command = cluster.command();
        command.args(["sql", "-m", &cluster.address(), "-f", &file, "-o", "changelog"]).args(arguments);
        let errors = File::create(&stderr).expect("a file");
        let child = command.stdin(Stdio::null()).stdout(stdout).stderr(errors).spawn().expect("flott starts");
        Self { child, stderr }
    }

    fn said(&self) -> String {
        fs::read_to_string(&self.stderr).unwrap_or_default()
    }

    /// Waits until its job is submitted; the job's id.
    #[track_caller]
    fn job(&self) -> String {
        until("a job", LIMIT, || {
            let said = self.said();
            let id = said.lines().find_map(|line| line.strip_prefix("job ")?.split_once(" is submitted"));
            id.map(|(id, _)| id.to_owned()).ok_or(said)
        })
    }

    /// Waits for its end; its exit code.
    #[track_caller]
    fn end(&mut self) -> Option<i32> {
        until("the end of the client", LIMIT, || match self.child.try_wait().expect("a child") {
            Some(status) => Ok(status.code()),
            None => Err(self.said()),
        })
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // Both fail only for a process that has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[track_caller]
fn wait_for_rows(file: &str, count: usize) {
    until(&format!("{count} rows"), LIMIT, || {
        let found = fs::read_to_string(file).unwrap_or_default().lines().count();
        if found >= count { Ok(()) } else { Err(format!("{found} rows")) }
    });
}

/// That each number below `count` has been shown once.
#[track_caller]
fn assert_once(shown: &str, count: u64) {
    let mut times: BTreeMap<u64, usize> = BTreeMap::new();
    for line in shown.lines() {
        let parts: Vec<&str> = line.split('\t').collect();
        let ["+I", n, text] = parts[..] else { panic!("'{line}' is no row") };
        assert_eq!(text, format!("row {n}"));
        *times.entry(n.parse().unwrap_or_else(|error| panic!("{line}: {error}"))).or_default() += 1;
    }
    let missing: Vec<u64> = (0..count).filter(|n| !times.contains_key(n)).take(5).collect();
    let often: Vec<_> = times.iter().filter(|(n, times)| **times != 1 || **n >= count).take(5).collect();
    assert!(missing.is_empty() && often.is_empty(), "missing {missing:?}; wrong or too often {often:?}");
}

#[test]
fn each_row_is_shown_once_whatever_dies() {
    const ROWS: u64 = 45_000;
    let mut cluster = Cluster::start(2, 2);
    let rows = cluster.path("rows");
    let mut client =
        Client::start(&cluster, &script(DURABLE, ROWS, 2500), &["-p", "2"], File::create(&rows).expect("a file"));
    wait_for_rows(&rows, 1000);
    let job = client.job();

    // The worker with the sink, whichever that is; a TaskManager; the JobManager, which both ends talk through.
    for worker in cluster.workers_of(&job) {
        signal(worker, "KILL");
    }
    cluster.wait_for_checkpoints(&job, cluster.last_checkpoint(&job) + 2);
    cluster.kill_task_manager(1);
    cluster.start_task_manager(1);
    cluster.wait_for_checkpoints(&job, cluster.last_checkpoint(&job) + 2);
    let before = cluster.last_checkpoint(&job);
    cluster.kill_job_manager();
    cluster.start_job_manager();
    cluster.wait_for_checkpoints(&job, before + 2);
    cluster.flott("rescale", &[&job, "-p", "1"]).succeeded();

    assert_eq!(client.end(), Some(0), "{}", client.said());
    cluster.wait_for_status(&job, "FINISHED", LIMIT);
    assert_once(&fs::read_to_string(&rows).expect("rows"), ROWS);
}

#[test]
fn rows_look_as_those_of_a_local_query() {
    let cluster = Cluster::start(1, 2);
    let query = "SELECT k, SUM(v) AS s, CAST(NULL AS STRING) AS x FROM (VALUES ('a', 1), ('b', 2), ('a', 3)) AS t (k, v) GROUP BY k";
    let empty = "SELECT * FROM (VALUES (1)) AS t (a) WHERE a > 1";
    for form in ["changelog", "json", "tableau", "table"] {
        for query in [query, empty] {
            let local = run_command(cluster.command().args(["sql", "-e", query, "-o", form]), LIMIT).succeeded();
            let there = cluster.flott("sql", &["-e", query, "-o", form]).succeeded();
            assert_eq!(there.stdout, local.stdout, "{form}: {query}");
        }
    }
    let failed = cluster.flott("sql", &["-e", "SELECT CAST(a AS INT) FROM (VALUES ('x')) AS t (a)"]);
    assert_eq!(failed.code, Some(1), "{}", failed.text());
}

#[test]
fn a_slow_client_holds_the_job_up_and_loses_nothing() {
    const ROWS: u64 = 1_500_000;
    let cluster = Cluster::start(1, 1);
    let mut client = Client::start(&cluster, &script(&[], ROWS, 1_000_000_000), &[], Stdio::piped());
    let job = client.job();
    // Nobody reads, so the job comes to a stand soon, far from its end.
    let read = || {
        let vertices = cluster.rest(&format!("/jobs/{job}"))["vertices"].clone();
        let read = vertices.as_array().into_iter().flatten().map(|vertex| vertex["metrics"]["write-records"].as_u64());
        read.flatten().max().unwrap_or_default()
    };
    let stood = until("the job to stand still", LIMIT, || {
        let before = read();
        std::thread::sleep(Duration::from_secs(3));
        if before > 0 && read() == before { Ok(before) } else { Err(format!("{before} rows")) }
    });
    assert!(stood < ROWS, "all rows are on their way");
    assert_eq!(cluster.rest(&format!("/jobs/{job}"))["state"], "RUNNING");

    let mut shown = String::new();
    client.child.stdout.take().expect("a pipe").read_to_string(&mut shown).expect("text");
    assert_eq!(client.end(), Some(0), "{}", client.said());
    assert_once(&shown, ROWS);
}

#[test]
fn a_query_that_nobody_looks_at_any_more_is_cancelled() {
    let cluster = Setup::new(1, 1).option("client.heartbeat.timeout", "3s").start();
    let endless = script(&[], 1_000_000_000, 100);
    let rows = cluster.path("rows");

    // Ctrl-C.
    let mut client = Client::start(&cluster, &endless, &[], File::create(&rows).expect("a file"));
    wait_for_rows(&rows, 10);
    let job = client.job();
    signal(client.child.id(), "INT");
    assert_eq!(client.end(), Some(1));
    assert!(client.said().contains("was cancelled"), "{}", client.said());
    cluster.wait_for_status(&job, "CANCELED", LIMIT);

    // Whoever reads the client's output has seen enough.
    let mut client = Client::start(&cluster, &endless, &[], Stdio::piped());
    let mut output = client.child.stdout.take().expect("a pipe");
    output.read_exact(&mut [0; 20]).expect("rows");
    let job = client.job();
    drop(output);
    assert_eq!(client.end(), Some(0), "{}", client.said());
    cluster.wait_for_status(&job, "CANCELED", LIMIT);

    // The client is gone without a word.
    let client = Client::start(&cluster, &endless, &[], File::create(&rows).expect("a file"));
    wait_for_rows(&rows, 10);
    let job = client.job();
    drop(client);
    cluster.wait_for_status(&job, "CANCELED", LIMIT);
}

#[test]
fn a_restart_without_checkpoints_is_no_silent_repetition() {
    let cluster = Cluster::start(1, 1);
    let rows = cluster.path("rows");
    let settings = [("restart-strategy.type", "fixed-delay"), ("restart-strategy.fixed-delay.attempts", "10")];
    let endless = script(&settings, 1_000_000_000, 100);
    let mut client = Client::start(&cluster, &endless, &[], File::create(&rows).expect("a file"));
    wait_for_rows(&rows, 10);
    let job = client.job();
    signal(cluster.workers_of(&job)[0], "KILL");
    assert_eq!(client.end(), Some(1));
    assert!(client.said().contains("execution.checkpointing.interval"), "{}", client.said());
    cluster.wait_for_status(&job, "CANCELED", LIMIT);
}

#[test]
fn options_of_tables_are_in_no_command_line() {
    let cluster = Cluster::start(1, 1);
    let script = cluster.path("secret.sql");
    let sink = "CREATE TABLE written (n BIGINT, t STRING) WITH ('connector' = 'blackhole'); INSERT INTO written SELECT";
    fs::write(&script, self::script(&[], 1_000_000_000, 10).replace("SELECT", sink)).expect("written");
    cluster.flott("sql", &["-f", &script]).succeeded();
    let job = cluster.running_job();
    let worker =
        until("a worker", LIMIT, || cluster.workers_of(&job).first().copied().ok_or_else(|| "none".to_owned()));
    let arguments = fs::read(Path::new("/proc").join(worker.to_string()).join("cmdline")).expect("a process");
    let arguments: Vec<_> = arguments.split(|byte| *byte == 0).filter(|part| !part.is_empty()).collect();
    assert_eq!(arguments[1..], [&b"sql"[..], b"--compiled"], "the plan goes another way");
    cluster.flott("cancel", &[&job]).succeeded();
}
