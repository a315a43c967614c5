//! What has become of a stop of which nobody told: the answer was lost, or the JobManager that knew of it has ended.

use std::time::Duration;

use flott_core::ids::JobId;
use flott_core::status::JobStatus;
use flott_core::{Error, Result};
use flott_local::client::{Client, Outage};

/// How often the job is looked at.
const LOOK_PAUSE: Duration = Duration::from_millis(100);

/// What the job's state tells of the stop.
#[derive(Debug, PartialEq, Eq)]
enum Fate {
    /// It ended with this savepoint.
    Stopped(String),
    /// It ended otherwise.
    Ended,
    /// It may still end with a savepoint, or the savepoint become known.
    Open,
}

/// `checked` is a savepoint that was taken before the stop.
fn fate(status: JobStatus, savepoint: Option<String>, checked: &str) -> Fate {
    match (status, savepoint) {
        (JobStatus::Finished, Some(savepoint)) if savepoint != checked => Fate::Stopped(savepoint),
        (JobStatus::Finished, _) => Fate::Open,
        (status, _) if status.is_terminal() => Fate::Ended,
        _ => Fate::Open,
    }
}

/// Looks for the savepoint that the job was stopped with, for `patience` since the JobManager answers.
///
/// # Errors
/// The job goes on, has ended without one that is known, or the JobManager stays away; with what is known of it.
pub(super) async fn settle(client: &Client, job: JobId, checked: &str, patience: Duration) -> Result<String> {
    let mut outage = Outage::default();
    let mut answered = None;
    loop {
        let looked = look(client, job).await;
        let now = flott_env::monotonic();
        match looked {
            Ok((status, savepoint)) => {
                outage = Outage::default();
                let since = *answered.get_or_insert(now);
                match fate(status, savepoint, checked) {
                    Fate::Stopped(savepoint) => return Ok(savepoint),
                    Fate::Ended => {
                        return Err(Error::system(format!("job {job} is {status}: it has ended, but not by the stop")));
                    }
                    Fate::Open if now.saturating_sub(since) < patience => {}
                    Fate::Open if status.is_terminal() => {
                        return Err(Error::system(format!(
                            "job {job} is {status}, but no savepoint is known that it ended with"
                        )));
                    }
                    Fate::Open => {
                        return Err(Error::system(format!(
                            "job {job} is {status}: as far as is known it was not stopped. Look again with `flott list` before you do anything else"
                        )));
                    }
                }
            }
            Err(error) => outage.tolerate(error, now).map_err(|error| {
                error.context(format!("it is not known whether job {job} was stopped, nor whether it runs"))
            })?,
        }
        flott_env::sleep(LOOK_PAUSE).await;
    }
}

async fn look(client: &Client, job: JobId) -> Result<(JobStatus, Option<String>)> {
    let (status, _) = client.status(job).await?;
    let savepoint = if status.is_terminal() { last_savepoint(client, job).await? } else { None };
    Ok((status, savepoint))
}

/// The folder of the job's last savepoint that the cluster knows.
pub(super) async fn last_savepoint(client: &Client, job: JobId) -> Result<Option<String>> {
    let checkpoints = client.get(&format!("/jobs/{job}/checkpoints")).await?;
    Ok(checkpoints["latest"]["savepoint"]["external_path"].as_str().map(str::to_owned))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_was_stopped_if_it_finished_with_another_savepoint_than_the_one_before() {
        let fate = |status, savepoint: Option<&str>| fate(status, savepoint.map(str::to_owned), "checked");
        assert_eq!(fate(JobStatus::Finished, Some("last")), Fate::Stopped("last".to_owned()));
        assert_eq!(fate(JobStatus::Finished, Some("checked")), Fate::Open, "it may have ended by itself");
        assert_eq!(fate(JobStatus::Finished, None), Fate::Open);
        assert_eq!(fate(JobStatus::Failed, Some("last")), Fate::Ended);
        assert_eq!(fate(JobStatus::Canceled, None), Fate::Ended);
        assert_eq!(fate(JobStatus::Running, None), Fate::Open);
        assert_eq!(fate(JobStatus::Restarting, None), Fate::Open);
    }
}
