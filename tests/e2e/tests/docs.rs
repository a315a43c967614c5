//! The pages of docs/ whose commands run as they are written do.

use std::fs;
use std::process::Command;
use std::time::Duration;

use flott_e2e::{binary, free_port, repository, run_command};

const TIMEOUT: Duration = Duration::from_secs(180);

/// Commands go to the page's own cluster, on ports of its own.
const PROLOGUE: &str = r#"
set -eu -o pipefail
trap 'kill $(jobs -p) 2>/dev/null || :' EXIT
flott() {
  case $1 in
    run|rescale|savepoint|checkpoint|upgrade|cancel|stop|list|info) command flott "$1" -m "127.0.0.1:$REST_PORT" "${@:2}" ;;
    cluster) command flott "$@" $([ "$2" = start ] && echo "-D rest.port=$REST_PORT -D jobmanager.rpc.port=$RPC_PORT") ;;
    # In the background, where its process is to be the one that the page ends.
    taskmanager) exec flott "$@" -D "jobmanager.rpc.port=$RPC_PORT" ;;
    *) command flott "$@" ;;
  esac
}
"#;

/// The lines of all `sh` blocks of a page, without those that build and install.
fn commands(page: &str) -> String {
    let text = fs::read_to_string(repository().join("docs").join(page)).expect("the page");
    // In a list, all lines of a block are indented as its first one is.
    let mut indent = None;
    let mut script = String::new();
    for line in text.lines() {
        match (line.trim(), indent) {
            ("```sh", _) => indent = Some(line.len() - line.trim_start().len()),
            ("```", _) => indent = None,
            (other, Some(indent))
                if !["cargo ", "PATH=", "scripts/setup.sh"].iter().any(|skip| other.starts_with(skip)) =>
            {
                script.push_str(line.get(indent..).unwrap_or_default());
                script.push('\n');
            }
            _ => {}
        }
    }
    assert!(script.contains("flott cluster start"), "{page} starts a cluster");
    script
}

/// Runs a page in a folder of its own; everything that it started ends with it.
fn run(page: &str) -> String {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let cluster = dir.path().join("flott-docs");
    let bins = binary("flott").parent().expect("a program lies in a folder").to_owned();
    let script = commands(page)
        .replace("/tmp/flott-docs", cluster.to_str().expect("its name is UTF-8"))
        .replace("127.0.0.1:8081", "127.0.0.1:$REST_PORT")
        .replace("target/debug", bins.to_str().expect("its name is UTF-8"));
    let path = format!("{}:{}", bins.display(), std::env::var("PATH").unwrap_or_default());
    let mut command = Command::new("bash");
    command.args(["-c", &format!("{PROLOGUE}{script}")]).current_dir(repository()).env("PATH", path);
    command.env("REST_PORT", free_port().to_string()).env("RPC_PORT", free_port().to_string());
    let output = run_command(&mut command, TIMEOUT);
    if output.code != Some(0) {
        let _ = Command::new(binary("flott")).args(["cluster", "stop", "--dir"]).arg(&cluster).output();
    }
    output.succeeded().text()
}

#[test]
fn the_page_on_checkpoints_runs() {
    let output = run("checkpoints.md");
    for expected in ["/chk-", "'completed':", "/savepoints/savepoint-", "account", "'is_savepoint': False"] {
        assert!(output.contains(expected), "no '{expected}' in {output}");
    }
}

#[test]
fn the_page_on_backends_runs() {
    let output = run("state-backends.md");
    for expected in ["flott-state-", "Accounts [{", "stateDiskBytes{", "slotStateLimit{"] {
        assert!(output.contains(expected), "no '{expected}' in {output}");
    }
}

#[test]
fn the_page_on_rescaling_runs() {
    let output = run("rescaling.md");
    assert!(output.contains("\"upperBound\""), "{output}");
}

#[test]
fn the_page_on_state_runs() {
    let output = run("state.md");
    for expected in ["total_cents", "migrated", "balance_cents"] {
        assert!(output.contains(expected), "no '{expected}' in {output}");
    }
}

#[test]
fn the_page_on_the_table_api_runs() {
    let output = run("table-api.md");
    assert!(output.starts_with("78\n"), "{output}");
}

#[test]
fn the_tutorial_of_sql_runs() {
    let output = run("sql-tutorial.md");
    for expected in [
        "+U\t2\t35\n",
        "| +I | 2026-01-01 09:00:00.000 |                    3 |         105 |",
        "+I\t4\tCleo\t50\n",
        "restored",
        "+I\t3334\t100000\t2550000\n",
    ] {
        assert!(output.contains(expected), "no '{expected}' in {output}");
    }
}

#[test]
fn the_page_on_sql_runs() {
    let output = run("sql.md");
    for expected in [
        "| +I |                              a |           4 |",
        "+I\t2024-01-02T00:00\t",
        "\n500\n",
        "+I\t99\t9801\n",
        "the job runs on\n",
        " is upgraded: job ",
        "it would start without the counts of the other query\n",
    ] {
        assert!(output.contains(expected), "no '{expected}' in {output}");
    }
}
