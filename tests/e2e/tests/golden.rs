//! Savepoints and checkpoints that earlier builds wrote are restored by this one.
//!
//! `golden/format-N` holds one of each, of the job `windows` at parallelism 2, written by the last build whose manifests have
//! format version N. They are never written again: what a user keeps must stay readable.

use std::path::PathBuf;
use std::time::Duration;

use flott_checkpoint::manifest::FORMAT_VERSION;
use flott_e2e::{Cluster, KEYS, binary, copy_folder, repository, visible_lines};

const FINISH_TIMEOUT: Duration = Duration::from_secs(60);

fn golden(format: u32, kind: &str) -> PathBuf {
    repository().join(format!("tests/e2e/golden/format-{format}/{kind}"))
}

#[test]
fn savepoints_and_checkpoints_of_every_format_are_restored() {
    let cluster = Cluster::start(1, 4);
    for format in 1..=FORMAT_VERSION {
        for (kind, parallelism) in [("savepoint", "2"), ("savepoint", "3"), ("checkpoint", "2"), ("checkpoint", "1")] {
            // A copy, so that the folder is another one than where it was written.
            let copy = cluster.path(&format!("format-{format}-{kind}-{parallelism}"));
            copy_folder(golden(format, kind), &copy);
            let output = cluster.path(&format!("out-{format}-{kind}-{parallelism}"));
            let count = 200 * KEYS;
            let job = cluster.run_job(
                &binary("e2e-job"),
                &["-p", parallelism, "-s", &copy],
                &[
                    "--case",
                    "windows",
                    "--output",
                    &output,
                    "--count",
                    &count.to_string(),
                    "--rows-per-second",
                    "50000",
                ],
            );
            cluster.wait_for_status(&job, "FINISHED", FINISH_TIMEOUT);
            let mut totals: Vec<String> = visible_lines(&output);
            totals.sort();
            let mut expected: Vec<String> = (0..KEYS).map(|key| format!("{key},200")).collect();
            expected.sort();
            assert_eq!(totals, expected, "{kind} of format {format} at parallelism {parallelism}");
        }
    }
}
