//! The steps of an upgrade: how long each took, and how to go on by hand.

use std::path::Path;
use std::time::Duration;

use flott_core::Result;
use flott_core::ids::JobId;
use flott_local::client::Client;
use serde_json::{Value, json};

use super::millis;
use crate::{format, terminal};

/// What has been done.
#[derive(Default)]
pub(super) struct Steps {
    done: Vec<(&'static str, Duration)>,
    stop_accepted: Option<Duration>,
    running: Option<Duration>,
}

impl Steps {
    /// Does `work`, shows `doing` meanwhile, and tells how long it took.
    pub(super) async fn step<T>(
        &mut self,
        name: &'static str,
        doing: String,
        work: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let spinner = terminal::spinner(doing);
        let began = flott_env::monotonic();
        let result = work.await;
        let took = flott_env::monotonic().saturating_sub(began);
        spinner.finish_and_clear();
        let outcome = if result.is_ok() { "done" } else { "failed" };
        terminal::say(format_args!("{name}: {outcome} in {}", format::duration(took)));
        self.done.push((name, took));
        result
    }

    /// The old job has been told to stop.
    pub(super) fn gap_begins(&mut self) {
        self.stop_accepted = Some(flott_env::monotonic());
    }

    /// The new job runs since then, if it does.
    pub(super) fn gap_ended(&mut self, running: Option<Duration>) {
        self.running = running;
    }

    /// From the stop's acceptance until the new job ran.
    pub(super) fn gap(&self) -> Option<Duration> {
        Some(self.running?.saturating_sub(self.stop_accepted?))
    }

    pub(super) fn json(&self) -> Value {
        self.done.iter().map(|(name, took)| json!({ "name": name, "duration": millis(*took) })).collect()
    }
}

/// How to go on without this process, between the old job's end and the new one's start.
pub(super) struct ByHand {
    new: String,
    old: String,
}

impl ByHand {
    pub(super) fn new(client: &Client, job: JobId, savepoint: &str, binary: &Path) -> Self {
        let address = client.address();
        let body = json!({ "savepointPath": savepoint });
        Self {
            new: format!("flott run -d -m {address} -s '{savepoint}' {} -- ARGS", binary.display()),
            old: format!("curl -X POST http://{address}/jobs/{job}/restart -d '{body}'"),
        }
    }

    /// For everybody to see while it is true.
    pub(super) fn if_interrupted(&self) -> String {
        format!(
            "the old job has ended; if this command is interrupted now, start one version by hand:\n  the new one  {}\n  the old one  {}",
            self.new, self.old
        )
    }

    /// When it is not known whether the new version was accepted.
    pub(super) fn undecided(&self) -> String {
        format!(
            "it is not known whether the new version was accepted: look with `flott list`, and if it was not, start one version by hand.\n  the new one  {}\n  the old one  {}\n",
            self.new, self.old
        )
    }

    /// When the way back is blocked.
    pub(super) fn old(&self) -> String {
        format!("the old version does not run: start it by hand when this is mended: {}", self.old)
    }
}

#[cfg(test)]
mod tests {
    use flott_core::Error;

    use super::*;

    #[tokio::test]
    async fn steps_are_kept_with_their_times() {
        let mut steps = Steps::default();
        assert_eq!(steps.step("one", String::new(), async { Ok(1) }).await.unwrap(), 1);
        let failed: Result<()> = steps.step("two", String::new(), async { Err(Error::input("no")) }).await;
        failed.unwrap_err();
        let names: Vec<Value> = steps.json().as_array().unwrap().iter().map(|step| step["name"].clone()).collect();
        assert_eq!(names, ["one", "two"]);
        assert_eq!(steps.gap(), None);
        steps.gap_begins();
        steps.gap_ended(None);
        assert_eq!(steps.gap(), None, "it never ran");
        steps.gap_ended(Some(flott_env::monotonic()));
        assert!(steps.gap().is_some());
    }

    #[test]
    fn both_versions_can_be_started_by_hand() {
        let client = Client::new("host:8081").unwrap();
        let by_hand = ByHand::new(&client, JobId([1; 16]), "s3://b/savepoint-1", Path::new("./new-job"));
        let text = by_hand.if_interrupted();
        assert!(text.contains("flott run -d -m host:8081 -s 's3://b/savepoint-1' ./new-job -- ARGS"), "{text}");
        let restart = "curl -X POST http://host:8081/jobs/01010101010101010101010101010101/restart -d '{\"savepointPath\":\"s3://b/savepoint-1\"}'";
        assert!(text.contains(restart), "{text}");
        assert!(by_hand.old().ends_with(restart), "{}", by_hand.old());
        assert!(by_hand.undecided().contains("flott list"));
    }
}
