//! Following a job to its end, and what Ctrl-C does meanwhile.

use std::time::Duration;

use flott_core::ids::JobId;
use flott_core::status::JobStatus;
use flott_core::{Result, ResultExt};
use flott_local::client::{Client, Outage};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

use crate::progress::{Progress, Rate};
use crate::terminal::{self, StatusLine};

/// How often the job is looked at.
const LOOK_PAUSE: Duration = Duration::from_millis(200);

const QUESTION: &str = "detach (d), cancel the job (c), or go on (any other key)?";

/// Shows what the job is at until it ends; returns its last figures. `None`: the user does not want to wait.
///
/// # Errors
/// The job is unknown, or the JobManager stays away.
pub(crate) async fn follow(client: &Client, job: JobId) -> Result<Option<Progress>> {
    // Kept over the whole loop, so that no Ctrl-C is lost between two rounds.
    let mut interrupts = signal(SignalKind::interrupt()).context("listening for Ctrl-C")?;
    let mut question: Option<oneshot::Receiver<String>> = None;
    let mut status = StatusLine::new();
    let mut failures = Failures::default();
    let mut outage = Outage::default();
    let mut rate = Rate::default();
    let mut pause = Duration::ZERO;
    loop {
        tokio::select! {
            look = look(client, job, pause) => {
                pause = LOOK_PAUSE;
                let now = flott_env::monotonic();
                let progress = match look {
                    Ok(progress) => progress,
                    Err(error) => {
                        outage.tolerate(error, now)?;
                        if question.is_none() {
                            status.set(format!("the JobManager at {} does not answer, trying again", client.address()));
                        }
                        continue;
                    }
                };
                outage = Outage::default();
                if progress.status.is_terminal() {
                    if question.is_some() {
                        terminal::say("");
                    }
                    status.clear();
                    return Ok(Some(progress));
                }
                let failure = failures.news(client, job, &progress).await;
                let rate = rate.add(now, progress.records_read);
                if question.is_none() {
                    failure.into_iter().for_each(|failure| status.note(failure));
                    status.show(&progress, rate, now);
                }
            }
            _ = interrupts.recv() => {
                status.clear();
                if question.is_some() || !terminal::can_ask() {
                    return Ok(None);
                }
                question = Some(terminal::ask(QUESTION));
            }
            answer = answered(&mut question) => {
                question = None;
                match choice(&answer) {
                    Choice::Detach => return Ok(None),
                    Choice::GoOn => {}
                    Choice::Cancel => {
                        // The job may have ended meanwhile: the next look tells.
                        if let Err(error) = client.cancel(job).await {
                            status.note(error);
                        }
                    }
                }
            }
        }
    }
}

async fn look(client: &Client, job: JobId, pause: Duration) -> Result<Progress> {
    flott_env::sleep(pause).await;
    let details = client.get(&format!("/jobs/{job}")).await?;
    let checkpoints = client.get(&format!("/jobs/{job}/checkpoints")).await?;
    Progress::from_rest(&details, &checkpoints)
}

/// Waits for the answer; for ever if nothing was asked.
async fn answered(question: &mut Option<oneshot::Receiver<String>>) -> String {
    match question {
        Some(answer) => answer.await.unwrap_or_default(),
        None => std::future::pending().await,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Choice {
    Detach,
    Cancel,
    GoOn,
}

fn choice(answer: &str) -> Choice {
    match answer.trim().to_ascii_lowercase().as_str() {
        "d" | "detach" => Choice::Detach,
        "c" | "cancel" => Choice::Cancel,
        _ => Choice::GoOn,
    }
}

/// The failures of the job that have been told: one that is restarted for ever must not do so in silence.
#[derive(Default)]
struct Failures {
    restarts: u64,
    status: Option<JobStatus>,
    told_ms: Option<i64>,
}

impl Failures {
    /// Why the job was or will be restarted, if that is new.
    async fn news(&mut self, client: &Client, job: JobId, progress: &Progress) -> Option<String> {
        let is_down = matches!(progress.status, JobStatus::Restarting | JobStatus::Failing);
        let is_new = progress.restarts > self.restarts || is_down && self.status != Some(progress.status);
        (self.restarts, self.status) = (progress.restarts, Some(progress.status));
        if !is_new {
            return None;
        }
        // Without an answer the job goes on all the same, and the next failure is told.
        let exceptions = client.get(&format!("/jobs/{job}/exceptions")).await.ok()?;
        let at_ms = exceptions["timestamp"].as_i64()?;
        if self.told_ms.replace(at_ms) == Some(at_ms) {
            return None;
        }
        let cause = exceptions["root-exception"].as_str()?.lines().next()?;
        Some(format!("the job failed and is restarted: {}", crate::format::printable(cause)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_a_letter_or_a_word() {
        assert_eq!(choice(" D\n"), Choice::Detach);
        assert_eq!(choice("cancel"), Choice::Cancel);
        assert_eq!(choice(""), Choice::GoOn);
        assert_eq!(choice("x"), Choice::GoOn);
    }

    #[tokio::test]
    async fn an_answer_is_waited_for_only_after_a_question() {
        let waits = tokio::time::timeout(Duration::from_millis(5), answered(&mut None)).await;
        assert!(waits.is_err());
        let (sender, receiver) = oneshot::channel();
        sender.send("d".to_owned()).unwrap();
        assert_eq!(answered(&mut Some(receiver)).await, "d");
    }
}
