//! How to go on by hand where this process cannot: never in a way that two versions run at once.

use std::path::Path;

use flott_core::ids::JobId;
use flott_local::client::Client;
use serde_json::json;

use crate::format::shell;
use crate::plan::PlanArgs;

/// What stands for a savepoint that is not known yet.
pub(super) const UNKNOWN: &str = "SAVEPOINT";

/// The command that starts the new version, but for where and from what.
#[derive(Clone, Debug)]
pub(crate) struct Start {
    verb: &'static str,
    /// What stands behind the rest.
    arguments: String,
}

impl Start {
    /// Of a binary.
    pub(super) fn of_binary(binary: &Path, plan: &PlanArgs) -> Self {
        let mut arguments = settings(plan.parallelism, &plan.define);
        arguments += &format!(" {}", shell(&binary.display().to_string()));
        if !plan.args.is_empty() {
            arguments += " --";
        }
        for argument in &plan.args {
            arguments += &format!(" {}", shell(argument));
        }
        Self { verb: "run -d", arguments }
    }

    /// Of a SQL script, in files that are given with these flags.
    pub(crate) fn of_script(parallelism: Option<u32>, define: &[String], files: &[(&str, &Path)]) -> Self {
        let mut arguments = settings(parallelism, define);
        for (flag, file) in files {
            arguments += &format!(" {flag} {}", shell(&file.display().to_string()));
        }
        Self { verb: "sql", arguments }
    }
}

fn settings(parallelism: Option<u32>, define: &[String]) -> String {
    let mut text = parallelism.map(|parallelism| format!(" -p {parallelism}")).unwrap_or_default();
    for pair in define {
        text += &format!(" -D {}", shell(pair));
    }
    text
}

/// The commands that start either version from a savepoint.
pub(super) struct ByHand {
    address: String,
    job: JobId,
    savepoint: String,
    new: String,
    old: String,
}

impl ByHand {
    pub(super) fn new(
        client: &Client,
        [job, again]: [JobId; 2],
        savepoint: &str,
        Start { verb, arguments }: &Start,
        allow_non_restored_state: bool,
    ) -> Self {
        let address = client.address();
        let drops = if allow_non_restored_state { " -n" } else { "" };
        let new = format!("flott {verb} -m {} -s {}{drops}{arguments}", shell(address), shell(savepoint));
        let body = json!({ "savepointPath": savepoint }).to_string();
        // Under the id that the upgrade gives it: whoever asks, it is started once.
        let restart = format!("http://{address}/jobs/{job}/restart?jobid={again}");
        let old = format!("curl -X POST {} -d {}", shell(&restart), shell(&body));
        Self { address: address.to_owned(), job, savepoint: savepoint.to_owned(), new, old }
    }

    fn commands(&self) -> String {
        format!("  the new one  {}\n  the old one  {}", self.new, self.old)
    }

    /// Before the stop, whose savepoint gets a folder in `folder`; `checked` is there already.
    pub(super) fn before_stop(&self, folder: &str, checked: &str) -> String {
        format!(
            "stopping job {} with a savepoint in {folder}\nIf this command ends before the new version runs: {}",
            self.job,
            self.stop_unknown(folder, checked)
        )
    }

    /// When it is not known what has become of the stop.
    pub(super) fn stop_unknown(&self, folder: &str, checked: &str) -> String {
        let Self { address, job, .. } = self;
        let prefix: String = job.to_string().chars().take(6).collect();
        format!(
            "look with `flott list -m {address}`. While job {job} is there, it is not stopped. If no version runs, {UNKNOWN} is the \
             newest savepoint-{prefix}-… in {folder} that has a _metadata file (not {checked}, which was only for the check); \
             start one version from it:\n{}",
            self.commands()
        )
    }

    /// For everybody to see while it is true.
    pub(super) fn if_interrupted(&self) -> String {
        format!(
            "the old job has ended; if this command is interrupted now, look with `flott list -m {}`, and if no version runs, start \
             one by hand:\n{}",
            self.address,
            self.commands()
        )
    }

    /// When it is not known whether a version was accepted.
    pub(super) fn undecided(&self, version: &str) -> String {
        format!(
            "It is not known whether the {version} version was accepted: look with `flott list -m {}`, and only if no version runs, \
             start one by hand:\n{}",
            self.address,
            self.commands()
        )
    }

    /// When the old version was not accepted, or has ended again: nothing runs.
    pub(super) fn old(&self) -> String {
        format!("The old version does not run. When this is mended, start it by hand:\n  {}", self.old)
    }

    /// When the old version was accepted: another start would be a second one.
    pub(super) fn old_is_started(&self, again: JobId) -> String {
        format!(
            "The old version was started as job {again} from {}, and may still come up: look with `flott list -m {}`. Do not start \
             it once more",
            self.savepoint, self.address
        )
    }

    /// When the new version ended after what it wrote counted.
    pub(super) fn new_counts(&self, new_job: JobId) -> String {
        let Self { address, savepoint, .. } = self;
        format!(
            "It had completed a checkpoint, so the old version was not started again: it would write the same once more. Go on \
             from the new version's last checkpoint, if it was to be kept (execution.checkpointing.externalized-checkpoint-retention): \
             http://{address}/jobs/{new_job}/checkpoints names it as latest.completed. Or, with output that is there twice, from {savepoint}:\n{}",
            self.commands()
        )
    }

    /// When the new version may not have ended: the old one must not run beside it.
    pub(super) fn new_may_run(&self, new_job: JobId) -> String {
        let Self { address, savepoint, .. } = self;
        format!(
            "The new version, job {new_job}, may still run, so the old one is not started. First look with \
             `flott list -a -m {address}`, and end it with `flott cancel -m {address} {new_job}`. Both versions go on from {savepoint}, \
             but only when job {new_job} has ended"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by_hand(savepoint: &str, plan: &PlanArgs) -> ByHand {
        let client = Client::new("host:8081").unwrap();
        let start = Start::of_binary(Path::new("./new job"), plan);
        ByHand::new(&client, [JobId([1; 16]), JobId([3; 16])], savepoint, &start, true)
    }

    const RESTART: &str = "curl -X POST 'http://host:8081/jobs/01010101010101010101010101010101/restart?jobid=03030303030303030303030303030303' -d '{\"savepointPath\":\"s3://b/savepoint-1\"}'";

    #[test]
    fn both_versions_can_be_started_by_hand_with_all_that_was_given() {
        let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
        let plan = PlanArgs {
            parallelism: Some(3),
            define: words(&["a.b=10s", "c=two words"]),
            args: words(&["--input", "it's.csv", ""]),
        };
        let by_hand = by_hand("s3://b/savepoint-1", &plan);
        let new = r"flott run -d -m host:8081 -s s3://b/savepoint-1 -n -p 3 -D a.b=10s -D 'c=two words' './new job' -- --input 'it'\''s.csv' ''";
        for text in [by_hand.if_interrupted(), by_hand.undecided("new")] {
            assert!(text.contains(new) && text.contains(RESTART) && text.contains("flott list"), "{text}");
        }
        assert!(by_hand.old().ends_with(RESTART), "{}", by_hand.old());
        let counts = by_hand.new_counts(JobId([2; 16]));
        assert!(counts.contains(new) && counts.contains("twice") && counts.contains(&"02".repeat(16)), "{counts}");
    }

    #[test]
    fn a_script_is_started_with_the_files_that_were_given() {
        let files = [("-i", Path::new("init.sql")), ("-f", Path::new("my job.sql"))];
        let start = Start::of_script(Some(2), &["a.b=10s".to_owned()], &files);
        let client = Client::new("host:8081").unwrap();
        let by_hand = ByHand::new(&client, [JobId([1; 16]), JobId([3; 16])], "/s", &start, false);
        let new = "flott sql -m host:8081 -s /s -p 2 -D a.b=10s -i init.sql -f 'my job.sql'\n";
        assert!(by_hand.undecided("new").contains(new), "{}", by_hand.undecided("new"));
    }

    #[test]
    fn the_commands_are_known_before_the_savepoint_is() {
        let plan = PlanArgs { parallelism: None, define: Vec::new(), args: Vec::new() };
        let text = by_hand(UNKNOWN, &plan).before_stop("s3://b", "s3://b/savepoint-0");
        assert!(
            text.starts_with("stopping job 01010101010101010101010101010101 with a savepoint in s3://b\n"),
            "{text}"
        );
        assert!(text.contains("savepoint-010101-") && text.contains("not s3://b/savepoint-0"), "{text}");
        assert!(text.contains("-s SAVEPOINT -n './new job'\n"), "no dashes without arguments: {text}");
        assert!(text.ends_with("{\"savepointPath\":\"SAVEPOINT\"}'"), "{text}");
    }

    #[test]
    fn what_may_run_is_not_started_again() {
        let plan = PlanArgs { parallelism: None, define: Vec::new(), args: Vec::new() };
        let by_hand = by_hand("s3://b/savepoint-1", &plan);
        for text in [by_hand.old_is_started(JobId([2; 16])), by_hand.new_may_run(JobId([2; 16]))] {
            assert!(text.contains(&"02".repeat(16)) && text.contains("flott list"), "{text}");
            assert!(!text.contains("curl") && !text.contains("flott run"), "{text}");
        }
    }
}
