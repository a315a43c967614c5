//! A checkpoint whose files are not what they were, or not of this version, is refused with the name of the file: files of
//! state, of records in flight, and of state on disk. Those of savepoints are in `savepoints.rs`.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use flott_checkpoint::manifest::{FORMAT_VERSION, METADATA_FILE};
use flott_checkpoint::{Manifest, SubtaskSnapshot};
use flott_e2e::{
    Cluster, binary, change_file, copy_folder, files_below, repository, run_command, until, visible_lines,
};
use sha2::{Digest, Sha256};

/// The goldens of this build's version, and the ends of their files' names.
const FILES: [(&str, &str); 3] = [("checkpoint", ".state"), ("checkpoint", ".channels"), ("runs", ".run")];

const LIMIT: Duration = Duration::from_secs(60);

/// A copy of a golden in a folder of its own; returns the first of its files whose name ends so.
fn copy_of(cluster: &Cluster, golden: &str, name: &str, end: &str) -> (String, PathBuf) {
    let copy = cluster.path(&format!("{name}{end}"));
    let golden = repository().join(format!("tests/e2e/golden/format-{FORMAT_VERSION}/kinds/{golden}"));
    copy_folder(golden, &copy);
    let file = files_below(&copy, end).into_iter().next().expect("the golden has such a file");
    (copy, file)
}

/// A run from a checkpoint is refused, and nothing has come of it.
fn run_refused(cluster: &Cluster, checkpoint: &str, expected: &[&str]) {
    let none = cluster.path("none");
    let run = cluster.run(&binary("e2e-job"), &["-p", "2", "-s", checkpoint], &["--case", "kinds", "--output", &none]);
    run.refused(expected);
    assert!(visible_lines(&none).is_empty());
}

fn check_refused(cluster: &Cluster, checkpoint: &str, expected: &[&str]) {
    let (job, none) = (binary("e2e-job"), cluster.path("none"));
    let mut command = cluster.command();
    command.args(["savepoint", "-m", &cluster.address(), "--check"]).arg(job);
    command.args([checkpoint, "--", "--case", "kinds", "--output", &none]);
    assert_eq!(run_command(&mut command, LIMIT).refused(expected).code, Some(1));
}

#[test]
fn a_file_that_is_missing_cut_or_altered_is_named() {
    let cluster = Cluster::start(1, 2);
    type Damage = fn(&Path);
    let damages: [(&str, Damage, &str); 3] = [
        ("missing", |file| fs::remove_file(file).expect("it can be removed"), "does not exist"),
        ("cut", |file| change_file(file, |bytes| bytes.truncate(bytes.len() - 1)), "truncated"),
        // The length is right, so it takes reading to see it.
        ("altered", |file| change_file(file, |bytes| bytes[20] ^= 1), "is damaged: its SHA-256 is"),
    ];
    for (golden, end) in FILES {
        for (name, damage, expected) in damages {
            let (copy, file) = copy_of(&cluster, golden, name, end);
            damage(&file);
            let expected = [file.to_str().expect("its name is UTF-8"), expected];
            check_refused(&cluster, &copy, &expected);
            run_refused(&cluster, &copy, &expected);
        }
    }
    until("all slots to be free", LIMIT, || match cluster.try_rest("/overview")?["slots-available"].clone() {
        slots if slots == 2 => Ok(()),
        slots => Err(slots.to_string()),
    });
}

/// Writes into the manifest what the file is now.
fn vouch_for(checkpoint: &str, file: &Path) {
    let bytes = fs::read(file).expect("it can be read");
    let sha256: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    let metadata = Path::new(checkpoint).join(METADATA_FILE);
    let content = fs::read(&metadata).expect("it can be read");
    let mut manifest = Manifest::from_bytes(checkpoint, &content).expect("it is whole");
    let subtasks = manifest.vertices.iter_mut().flat_map(|vertex| &mut vertex.subtasks);
    for handle in subtasks.flat_map(SubtaskSnapshot::files_mut).filter(|handle| file.ends_with(&handle.path)) {
        handle.sha256.clone_from(&sha256);
    }
    fs::write(&metadata, manifest.to_bytes().expect("it has a form")).expect("it can be written");
}

#[test]
fn a_file_of_a_later_version_is_refused_by_its_number_with_the_way_out() {
    let cluster = Cluster::start(1, 2);
    for (golden, end) in FILES {
        let (copy, file) = copy_of(&cluster, golden, "later", end);
        // Whole, as a later build would have written it.
        change_file(&file, |bytes| bytes[7] = b'9');
        vouch_for(&copy, &file);
        let name = file.to_str().expect("its name is UTF-8");
        run_refused(&cluster, &copy, &[name, "it has format version 9", "use the build that wrote it, or a newer one"]);
    }
}
