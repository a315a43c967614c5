//! What users get wrong: every mistake ends soon, with an error that names the thing and the way out.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use flott_e2e::{Cluster, CommandOutput, binary, free_port, run_command, visible_lines};
use sha2::{Digest, Sha256};

/// How long a client may try to reach a JobManager, and a mistake may take to be noticed.
const SOON: Duration = Duration::from_secs(30);

fn flott(arguments: &[&str], limit: Duration) -> CommandOutput {
    let mut command = Command::new(binary("flott"));
    run_command(command.args(arguments), limit)
}

#[test]
fn files_are_named_with_the_line_and_the_reason() {
    let cluster = Cluster::start(1, 1);
    let output = cluster.path("out");
    let missing = cluster.path("missing.txt");
    let copy = ["--case", "copy", "--input", &missing, "--output", &output];
    cluster.run(&binary("e2e-job"), &[], &copy).refused(&[&format!("{missing} does not exist")]);

    let readings = cluster.path("readings.csv");
    fs::write(&readings, "sensor,value\na,1.5\nb,warm\nc,2.5\n").expect("it can be written");
    let csv = ["--case", "csv", "--input", &readings, "--output", &output];
    cluster.run(&binary("e2e-job"), &[], &csv).refused(&[&format!("{readings}, line 3: "), "value", "warm"]);
    assert!(visible_lines(&output).is_empty(), "nothing of a failed job is committed");

    let skipping = [&csv[..], &["--skip"]].concat();
    cluster.run(&binary("e2e-job"), &[], &skipping).succeeded();
    assert_eq!(visible_lines(&output), ["a=1.5", "c=2.5"]);
}

#[test]
fn a_graph_that_depends_on_the_process_is_refused_with_the_operator() {
    let cluster = Cluster::start(1, 1);
    let arguments = ["--case", "nondeterministic", "--output", &cluster.path("out")];
    let refusal = cluster.run(&binary("e2e-job"), &[], &arguments);
    refusal.refused(&["the job's graph is not deterministic", "'Process ", "from the program's arguments alone"]);
}

/// This program as if it were for another machine.
fn foreign_binary(folder: &Path) -> PathBuf {
    let mut bytes = fs::read(binary("e2e-job")).expect("it can be read");
    // The machine's number in an ELF header: x86-64 or AArch64, whichever this is not.
    let (x86_64, aarch64) = (62_u16, 183_u16);
    let other = if cfg!(target_arch = "x86_64") { aarch64 } else { x86_64 };
    bytes[18..20].copy_from_slice(&other.to_ne_bytes());
    let path = folder.join("foreign");
    fs::write(&path, bytes).expect("it can be written");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("it can be made executable");
    path
}

#[test]
fn what_is_no_binary_of_this_machine_is_refused() {
    let cluster = Cluster::start(1, 1);
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let foreign = foreign_binary(folder.path());
    cluster.run(&foreign, &[], &[]).refused(&["foreign", "cannot run on this machine"]);
    let text = folder.path().join("job.rs");
    fs::write(&text, "fn main() {}\n").expect("it can be written");
    cluster.run(&text, &[], &[]).refused(&["job.rs"]);
    cluster.run(&folder.path().join("nothing"), &[], &[]).refused(&["nothing"]);

    // A client that uploads without planning.
    let upload = |content: &[u8], expected: &str| {
        let sha256: String = Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect();
        let (status, answer) = cluster.request("PUT", &format!("/artifacts/{sha256}"), content);
        assert_eq!(status, 400, "{answer}");
        let error = answer["errors"][0].as_str().unwrap_or_default();
        assert!(error.contains(expected), "{answer}");
        assert_eq!(cluster.request("GET", &format!("/artifacts/{sha256}"), b"").0, 404);
    };
    let head = fs::read(&foreign).expect("it can be read");
    upload(&head[..4096], "binary for another machine");
    upload(b"fn main() {}\n", "not an ELF executable");
    upload(b"#!/bin/sh\necho this is not a job\n", "but a script");
}

#[test]
fn a_port_in_use_is_named() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let dir = folder.path().to_str().expect("its name is UTF-8");
    let (taken, free) = (free_port(), free_port());
    let _listener = TcpListener::bind(("127.0.0.1", taken)).expect("the port is free");
    for (key, other) in [("rest.port", "jobmanager.rpc.port"), ("jobmanager.rpc.port", "rest.port")] {
        let (taken, free) = (format!("{key}={taken}"), format!("{other}={free}"));
        let refusal = flott(&["jobmanager", "--dir", dir, "-D", &taken, "-D", &free], SOON);
        refusal.refused(&["the port is in use", key]);
    }
}

#[test]
fn an_unknown_option_is_refused_with_the_nearest() {
    let expected = ["unknown configuration key 'rest.prot'", "did you mean 'rest.port'?"];
    for role in ["jobmanager", "taskmanager"] {
        flott(&[role, "-D", "rest.prot=1"], SOON).refused(&expected);
    }
    let job = binary("e2e-job");
    let job = job.to_str().expect("its name is UTF-8");
    flott(&["run", "-D", "rest.prot=1", job, "--", "--case", "numbers", "--output", "/tmp"], SOON).refused(&expected);
    let mut itself = Command::new(job);
    itself.args(["-D", "rest.prot=1", "--case", "numbers", "--output", "/tmp"]);
    run_command(&mut itself, SOON).refused(&expected);

    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let file = folder.path().join("config.yaml");
    fs::write(&file, "rest:\n  prot: 1\n").expect("it can be written");
    let file = file.to_str().expect("its name is UTF-8");
    flott(&["jobmanager", "--config", file], SOON).refused(&[&format!("{file}:2"), expected[0], expected[1]]);
}

#[test]
fn a_job_manager_that_is_not_there_is_given_up() {
    let (rest, rpc) = (free_port(), free_port());
    let address = format!("127.0.0.1:{rest}");
    flott(&["list", "-m", &address], SOON).refused(&["cannot reach the JobManager", &address]);
    let job = binary("e2e-job");
    let job = job.to_str().expect("its name is UTF-8");
    let run = ["run", "-m", &address, job, "--", "--case", "numbers", "--output", "/tmp"];
    flott(&run, SOON).refused(&["cannot reach the JobManager", &address]);

    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let dir = folder.path().to_str().expect("its name is UTF-8");
    let option = format!("jobmanager.rpc.port={rpc}");
    let patience = "taskmanager.registration.timeout=2 s";
    let refusal = flott(&["taskmanager", "--dir", dir, "-D", &option, "-D", patience], SOON);
    refusal.refused(&["gave up after", &format!("127.0.0.1:{rpc}")]);
}

#[test]
fn jobs_that_are_not_there_are_named() {
    let cluster = Cluster::start(0, 1);
    let nobody = "0123456789abcdef0123456789abcdef";
    cluster.flott("cancel", &[nobody]).refused(&[nobody]);
    cluster.flott("stop", &["-p", "/tmp", nobody]).refused(&[nobody]);
    cluster.flott("savepoint", &[nobody, "/tmp"]).refused(&[nobody]);
    cluster.flott("cancel", &["nonsense"]).refused(&["nonsense"]);
    let (status, answer) = cluster.request("GET", "/jobs/nonsense", b"");
    assert_eq!(status, 400, "{answer}");
    let (status, answer) = cluster.request("POST", "/jobs", b"{");
    assert_eq!(status, 400, "{answer}");
}
