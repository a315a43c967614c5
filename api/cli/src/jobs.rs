//! The jobs of a cluster, and how users name one.

use flott_core::ids::JobId;
use flott_core::status::JobStatus;
use flott_core::{Error, Result};
use flott_local::client::Client;
use serde::Deserialize;
use serde_json::Value;

use crate::format;

/// How many jobs an error lists.
const LISTED_MAX: usize = 10;

/// One job of `GET /jobs/overview`.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct JobSummary {
    #[serde(rename = "jid")]
    pub(crate) id: JobId,
    pub(crate) name: String,
    #[serde(rename = "state")]
    pub(crate) status: JobStatus,
    #[serde(rename = "start-time")]
    pub(crate) start_ms: i64,
    #[serde(rename = "duration")]
    pub(crate) duration_ms: i64,
    pub(crate) tasks: TaskCounts,
    #[serde(rename = "waiting-for")]
    pub(crate) waiting_for: Option<String>,
}

/// How many of a job's tasks are in which state.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct TaskCounts {
    pub(crate) total: u64,
    pub(crate) running: u64,
}

/// The jobs of `overview`, an answer of `GET /jobs/overview`.
pub(crate) fn summaries(overview: &Value) -> Result<Vec<JobSummary>> {
    Vec::deserialize(&overview["jobs"])
        .map_err(|error| Error::system(format!("the JobManager's list of jobs cannot be read: {error}")))
}

/// The job that `text` names: an id, the beginning of one, or the name of a job that has not ended.
pub(crate) async fn find(client: &Client, text: &str) -> Result<JobId> {
    match text.parse() {
        Ok(id) => Ok(id),
        Err(_) => resolve(text, &summaries(&client.get("/jobs/overview").await?)?),
    }
}

fn resolve(text: &str, jobs: &[JobSummary]) -> Result<JobId> {
    let prefix = text.to_ascii_lowercase();
    let is_meant = |job: &&JobSummary| {
        let has_prefix = !prefix.is_empty() && job.id.to_string().starts_with(&prefix);
        has_prefix || (!job.status.is_terminal() && job.name == text)
    };
    let meant: Vec<&JobSummary> = jobs.iter().filter(is_meant).collect();
    match meant[..] {
        [job] => Ok(job.id),
        [] => {
            let running: Vec<&JobSummary> = jobs.iter().filter(|job| !job.status.is_terminal()).collect();
            let known = match running[..] {
                [] => "there is no running job".to_owned(),
                _ => format!("the running jobs are {}", listed(&running)),
            };
            Err(Error::input(format!(
                "no job has an id that begins with '{text}', and no running one that name: {known}"
            )))
        }
        _ => Err(Error::input(format!(
            "'{text}' could be {} jobs: {}; give more of the id",
            meant.len(),
            listed(&meant)
        ))),
    }
}

fn listed(jobs: &[&JobSummary]) -> String {
    let describe = |job: &&JobSummary| format!("{} '{}' ({})", job.id, format::printable(&job.name), job.status);
    let mut list: Vec<String> = jobs.iter().take(LISTED_MAX).map(describe).collect();
    if jobs.len() > LISTED_MAX {
        list.push(format!("and {} more", jobs.len() - LISTED_MAX));
    }
    list.join(", ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn jobs() -> Vec<JobSummary> {
        let job = |id: &str, name: &str, state: &str| {
            json!({
                "jid": format!("{id:0<32}"), "name": name, "state": state, "start-time": 5, "end-time": -1,
                "duration": 7, "tasks": { "total": 4, "running": 3, "finished": 1 }, "waiting-for": null,
            })
        };
        let overview = json!({ "jobs": [
            job("abc1", "word count", "RUNNING"),
            job("abc2", "flights", "FINISHED"),
            job("d", "flights", "CREATED"),
            job("e", "twins", "RUNNING"),
            job("f", "twins", "RESTARTING"),
        ]});
        summaries(&overview).unwrap()
    }

    fn found(text: &str) -> Result<String> {
        resolve(text, &jobs()).map(|id| id.to_string().trim_end_matches('0').to_owned())
    }

    #[test]
    fn an_id_may_be_cut_short() {
        assert_eq!(found("abc1").unwrap(), "abc1");
        assert_eq!(found("ABC2").unwrap(), "abc2", "ended ones too");
        assert_eq!(found("d").unwrap(), "d");
    }

    #[test]
    fn a_name_is_that_of_a_running_job() {
        assert_eq!(found("word count").unwrap(), "abc1");
        assert_eq!(found("flights").unwrap(), "d", "the other one has ended");
    }

    #[test]
    fn what_is_not_clear_is_refused_with_candidates() {
        let error = found("abc").unwrap_err().to_string();
        assert!(error.starts_with("'abc' could be 2 jobs: abc1"), "{error}");
        assert!(error.contains("'flights' (FINISHED)"), "{error}");
        assert!(found("twins").unwrap_err().to_string().contains("could be 2 jobs"));
        let error = found("sessions").unwrap_err().to_string();
        assert!(error.contains("the running jobs are abc1"), "{error}");
        assert!(!error.contains("abc2"), "{error}");
        assert!(found("").is_err());
        assert!(resolve("x", &[]).unwrap_err().to_string().contains("there is no running job"));
    }

    #[test]
    fn long_lists_are_cut() {
        let job = jobs().remove(0);
        assert!(listed(&[&job; 12]).ends_with(", and 2 more"));
    }
}
