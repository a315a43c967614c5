//! The scripts that a user runs from the Makefile do what they say.

use std::process::Command;
use std::time::Duration;

use flott_e2e::{binary, repository, run_command};

/// Eight jobs start in it, and one of them is given ten seconds to fail.
const LIMIT: Duration = Duration::from_secs(300);

#[test]
fn the_upgrade_demo_ends_with_every_entry_right() {
    let bins = binary("flott").parent().expect("a program lies in a folder").to_owned();
    let mut command = Command::new(repository().join("scripts/upgrade.sh"));
    command.env("FLOTT_BIN_DIR", bins);
    let output = run_command(&mut command, LIMIT).succeeded().stdout;
    let expected = [
        "migrated",
        "is upgraded: job",
        "balance_cents",
        "each as in one uninterrupted run: none lost, none twice, balances continuous",
        "== stopping everything",
    ];
    for part in expected {
        assert!(output.contains(part), "no '{part}' in {output}");
    }
}

#[test]
fn make_lists_all_that_it_can_do() {
    let makefile = std::fs::read_to_string(repository().join("Makefile")).expect("there is a Makefile");
    let listed = run_command(Command::new("make").arg("help").current_dir(repository()), LIMIT).succeeded().stdout;
    let phony = makefile.lines().filter_map(|line| line.strip_prefix(".PHONY:")).flat_map(str::split_whitespace);
    // Those are steps of others.
    for target in phony.filter(|target| !["setup", "setup-bench", "data"].contains(target)) {
        assert!(listed.contains(&format!("make {target} ")), "'make help' does not list {target}:\n{listed}");
    }
}
