//! The steps of an upgrade, and how long each took.

use std::time::Duration;

use flott_core::Result;
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
}
