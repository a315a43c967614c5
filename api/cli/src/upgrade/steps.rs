//! The steps of an upgrade, and how long each took.

use std::time::Duration;

use flott_control::upgrade::{Ask, Outcome, Step};
use indicatif::ProgressBar;
use serde_json::{Value, json};

use super::millis;
use crate::{format, terminal};

/// What has been done, and is being done.
#[derive(Default)]
pub(super) struct Steps {
    done: Vec<(&'static str, Duration)>,
    current: Option<Current>,
    said: String,
}

struct Current {
    name: &'static str,
    began: Duration,
    spinner: ProgressBar,
}

impl Steps {
    /// What is next may end the step that goes on, which is told with how long it took, and begin another one.
    pub(super) fn enter(&mut self, next: &Step, doing: &str) {
        let name = match next {
            Step::Ask(_, asked) => match name_of(asked) {
                Some(name) => name,
                // It belongs to what goes on.
                None => return,
            },
            Step::End(_) => "",
        };
        if self.current.as_ref().is_some_and(|current| current.name == name) {
            return;
        }
        if let Some(Current { name, began, spinner }) = self.current.take() {
            let took = flott_env::monotonic().saturating_sub(began);
            spinner.finish_and_clear();
            let outcome = if is_failure(next) { "failed" } else { "done" };
            terminal::say(format_args!("{name}: {outcome} in {}", format::duration(took)));
            self.done.push((name, took));
        }
        if !name.is_empty() {
            let spinner = terminal::spinner(doing);
            self.current = Some(Current { name, began: flott_env::monotonic(), spinner });
        }
    }

    /// Prints what was not printed last.
    pub(super) fn say_once(&mut self, text: String) {
        if text != self.said {
            match &self.current {
                Some(current) => current.spinner.suspend(|| terminal::say(&text)),
                None => terminal::say(&text),
            }
            self.said = text;
        }
    }

    pub(super) fn json(&self) -> Value {
        self.done.iter().map(|(name, took)| json!({ "name": name, "duration": millis(*took) })).collect()
    }
}

/// The step that begins with this, if one does; nothing has a name that is done here.
fn name_of(asked: &Ask) -> Option<&'static str> {
    match asked {
        Ask::Savepoint => Some("savepoint to check"),
        Ask::Check(_) => Some(""),
        Ask::Stop => Some("stop with savepoint"),
        Ask::Start(..) => Some("new version"),
        Ask::Withdraw(_) => Some("end of the new version"),
        Ask::Restart(..) => Some("old version"),
        Ask::StopResult | Ask::Look(_) | Ask::Checkpoint(_) => None,
    }
}

/// Whether what was before has failed.
fn is_failure(next: &Step) -> bool {
    match next {
        Step::Ask(_, Ask::Withdraw(_)) => true,
        Step::Ask(..) => false,
        Step::End(outcome) => !matches!(outcome, Outcome::Refused | Outcome::Upgraded | Outcome::RolledBack(_)),
    }
}

#[cfg(test)]
mod tests {
    use flott_core::Error;
    use flott_core::ids::JobId;

    use super::*;

    #[test]
    fn steps_are_kept_with_their_times() {
        let mut steps = Steps::default();
        let job = JobId([1; 16]);
        for asked in [
            Ask::Savepoint,
            Ask::Check("s".into()),
            Ask::Stop,
            Ask::Stop,
            Ask::StopResult,
            Ask::Start(job, "s".into()),
            Ask::Look(job),
        ] {
            steps.enter(&Step::Ask(Duration::ZERO, asked), "waiting");
        }
        steps.enter(&Step::End(Outcome::Upgraded), "");
        let names: Vec<Value> = steps.json().as_array().unwrap().iter().map(|step| step["name"].clone()).collect();
        assert_eq!(names, ["savepoint to check", "stop with savepoint", "new version"]);
    }

    #[test]
    fn what_is_given_up_has_failed() {
        let job = JobId([1; 16]);
        assert!(is_failure(&Step::Ask(Duration::ZERO, Ask::Withdraw(job))));
        assert!(!is_failure(&Step::Ask(Duration::ZERO, Ask::Restart(job, "s".into()))), "the withdrawal was done");
        assert!(is_failure(&Step::End(Outcome::OldSlow(Error::system("late")))));
        assert!(!is_failure(&Step::End(Outcome::RolledBack("late".into()))));
    }
}
