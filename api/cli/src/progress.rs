//! What a followed job is at, as one line.

use std::collections::VecDeque;
use std::time::Duration;

use flott_core::status::JobStatus;
use flott_core::{Error, Result};
use serde_json::Value;

use crate::format;

/// The time over which a rate is taken. Workers report twice a second, so a short one would jump.
const RATE_WINDOW: Duration = Duration::from_secs(3);
const RATE_WINDOW_MIN: Duration = Duration::from_secs(1);

/// A job's figures at one time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Progress {
    pub(crate) status: JobStatus,
    /// Since the submission.
    pub(crate) duration: Duration,
    /// Which slots the job waits for, in words.
    pub(crate) waiting_for: Option<String>,
    /// What its sources have read since the last restart.
    pub(crate) records_read: u64,
    pub(crate) checkpoints: u64,
    pub(crate) restarts: u64,
}

impl Default for Progress {
    fn default() -> Self {
        Self {
            status: JobStatus::Created,
            duration: Duration::ZERO,
            waiting_for: None,
            records_read: 0,
            checkpoints: 0,
            restarts: 0,
        }
    }
}

impl Progress {
    /// From the answers of `GET /jobs/:id` and `GET /jobs/:id/checkpoints`.
    pub(crate) fn from_rest(details: &Value, checkpoints: &Value) -> Result<Self> {
        let status = serde_json::from_value(details["state"].clone()).map_err(|_| {
            Error::input(format!("the JobManager says that the job is {}: is it of another version?", details["state"]))
        })?;
        let nodes = items(&details["plan"]["nodes"]);
        let sources = items(&details["vertices"]).zip(nodes).filter(|&(_, node)| is_source(node));
        let read = sources.filter_map(|(vertex, _)| vertex["metrics"]["read-records"].as_u64());
        Ok(Self {
            status,
            duration: format::millis(details["duration"].as_i64().unwrap_or(0)),
            waiting_for: details["waiting-for"].as_str().map(str::to_owned),
            records_read: read.fold(0, u64::saturating_add),
            checkpoints: checkpoints["counts"]["completed"].as_u64().unwrap_or(0),
            restarts: details["generation"].as_u64().unwrap_or(0).saturating_sub(1),
        })
    }

    /// Whether more than counts has changed.
    pub(crate) fn is_news_after(&self, last: &Self) -> bool {
        (self.status, self.restarts, &self.waiting_for) != (last.status, last.restarts, &last.waiting_for)
    }
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

/// Whether a node of a plan has no inputs.
fn is_source(node: &Value) -> bool {
    items(&node["inputs"]).next().is_none()
}

/// `RUNNING for 12.3 s, 40,000 records/s, 1,234,567 read, 3 checkpoints, 1 restart`
pub(crate) fn line(progress: &Progress, rate: Option<u64>) -> String {
    let mut parts = vec![format!("{} for {}", progress.status, format::duration(progress.duration))];
    if let Some(slots) = &progress.waiting_for {
        parts.push(format!("waiting for slots ({slots})"));
    }
    parts.extend(rate.map(|rate| format!("{} records/s", format::count(rate))));
    parts.extend(figures(progress));
    parts.join(", ")
}

/// What a job did, for its end: `12.3 s, 1,234,567 read, 3 checkpoints`
pub(crate) fn summary(progress: &Progress) -> String {
    let mut parts = vec![format::duration(progress.duration)];
    parts.extend(figures(progress));
    parts.join(", ")
}

fn figures(progress: &Progress) -> impl Iterator<Item = String> {
    let figure = |number: u64, text: String| (number > 0).then_some(text);
    let Progress { records_read, checkpoints, restarts, .. } = *progress;
    [
        figure(records_read, format!("{} read", format::count(records_read))),
        figure(checkpoints, format::counted(checkpoints, "checkpoint")),
        figure(restarts, format::counted(restarts, "restart")),
    ]
    .into_iter()
    .flatten()
}

/// Records a second, over the last few seconds.
#[derive(Debug, Default)]
pub(crate) struct Rate {
    samples: VecDeque<(Duration, u64)>,
}

impl Rate {
    /// Notes that `records` had been read at `now`. Returns the rate, once enough time has been seen.
    pub(crate) fn add(&mut self, now: Duration, records: u64) -> Option<u64> {
        // A job that was restarted counts from 0.
        if self.samples.back().is_some_and(|&(_, last)| records < last) {
            self.samples.clear();
        }
        self.samples.push_back((now, records));
        while self.samples.get(1).is_some_and(|&(at, _)| now.saturating_sub(at) >= RATE_WINDOW) {
            self.samples.pop_front();
        }
        let &(since, first) = self.samples.front()?;
        let elapsed = now.saturating_sub(since);
        (elapsed >= RATE_WINDOW_MIN).then(|| ((records - first) as f64 / elapsed.as_secs_f64()) as u64)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_sources_read_counts() {
        let details = json!({
            "state": "RUNNING",
            "duration": 12_300,
            "generation": 2,
            "waiting-for": null,
            "vertices": [
                { "metrics": { "read-records": 1_000_000 } },
                { "metrics": { "read-records": 234_567 } },
                { "metrics": { "read-records": 77 } },
            ],
            "plan": { "nodes": [{ "inputs": [] }, { "inputs": [] }, { "inputs": [{ "num": 0 }] }] },
        });
        let progress = Progress::from_rest(&details, &json!({ "counts": { "completed": 3 } })).unwrap();
        assert_eq!(
            line(&progress, Some(40_000)),
            "RUNNING for 12.3 s, 40,000 records/s, 1,234,567 read, 3 checkpoints, 1 restart"
        );
        assert_eq!(summary(&progress), "12.3 s, 1,234,567 read, 3 checkpoints, 1 restart");
        let error = Progress::from_rest(&json!({ "state": "SLEEPING" }), &json!({})).unwrap_err();
        assert!(error.to_string().contains("\"SLEEPING\""), "{error}");
    }

    #[test]
    fn a_job_that_waits_for_slots_says_so() {
        let progress = Progress {
            waiting_for: Some("needs 4 slots, 2 of 4 free on 2 TaskManagers".into()),
            duration: Duration::from_millis(1_500),
            ..Progress::default()
        };
        assert_eq!(
            line(&progress, None),
            "CREATED for 1.5 s, waiting for slots (needs 4 slots, 2 of 4 free on 2 TaskManagers)"
        );
    }

    #[test]
    fn the_rate_is_that_of_the_last_seconds() {
        let mut rate = Rate::default();
        let at = |ms| Duration::from_millis(ms);
        assert_eq!(rate.add(at(0), 0), None);
        assert_eq!(rate.add(at(500), 500), None);
        assert_eq!(rate.add(at(1_000), 1_000), Some(1_000));
        assert_eq!(rate.add(at(6_000), 1_000), Some(0), "what was long ago is forgotten");
        assert_eq!(rate.add(at(7_000), 3_000), Some(333));
        assert_eq!(rate.add(at(8_000), 10), None, "a restart starts over");
        assert_eq!(rate.add(at(9_000), 110), Some(100));
    }
}
