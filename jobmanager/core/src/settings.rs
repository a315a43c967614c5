//! What a job's configuration means to the JobManager, read once.

use std::time::Duration;

use flott_checkpoint::Store;
use flott_core::config::Configuration;
use flott_core::config::options::{self, FailoverStrategy, Retention, SchedulerMode};
use flott_core::{Error, Result, ResultExt};

/// Longer than any cluster lives, and short enough that adding it to a time cannot overflow.
const DURATION_MS_MAX: i64 = 1 << 52;

/// The settings of one job.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// How often a checkpoint is triggered; `None` means only on request and at the end.
    pub(crate) interval_ms: Option<i64>,
    /// After how long a checkpoint is given up.
    pub(crate) timeout_ms: i64,
    /// The least time between the end of a checkpoint and the start of the next periodic one.
    pub(crate) min_pause_ms: i64,
    /// The folder of all jobs' checkpoints, without a slash at its end; empty if not set.
    pub(crate) checkpoint_dir: String,
    /// The folder of savepoints whose request names none; empty if not set.
    pub(crate) savepoint_dir: String,
    /// How many completed checkpoints are kept.
    pub(crate) retained_max: usize,
    /// How many checkpoints in a row may fail before the job does.
    pub(crate) tolerable_failures: u32,
    /// What becomes of the last checkpoint when the job ends.
    pub(crate) retention: Retention,
    /// Whether files that nothing refers to are looked for.
    pub(crate) cleans_orphans: bool,
    /// How long the job waits for slots.
    pub(crate) slot_timeout_ms: i64,
    /// Whether workers that survive a failure go on to the next execution.
    pub(crate) keeps_workers: bool,
    /// Whether subtasks that a failure does not reach go on as they are, in the workers that do.
    pub(crate) spares_regions: bool,
    /// Whether the parallelism follows the slots that there are.
    pub(crate) is_reactive: bool,
    /// How long the number of slots must stay the same for that.
    pub(crate) stabilization_ms: i64,
}

impl Settings {
    /// Reads the merged configuration of cluster and job.
    pub(crate) fn read(config: &Configuration) -> Result<Self> {
        let folder = |text: String| if text.is_empty() { Ok(text) } else { folder_url(&text) };
        Ok(Self {
            interval_ms: config.get(options::CHECKPOINT_INTERVAL)?.map(millis).filter(|&interval| interval > 0),
            timeout_ms: millis(config.get(options::CHECKPOINT_TIMEOUT)?),
            min_pause_ms: millis(config.get(options::CHECKPOINT_MIN_PAUSE)?),
            checkpoint_dir: folder(config.get(options::CHECKPOINT_DIR)?).context(options::CHECKPOINT_DIR.key)?,
            savepoint_dir: folder(config.get(options::SAVEPOINT_DIR)?).context(options::SAVEPOINT_DIR.key)?,
            retained_max: config.get(options::CHECKPOINTS_RETAINED)? as usize,
            tolerable_failures: config.get(options::CHECKPOINT_TOLERABLE_FAILURES)?,
            retention: config.get(options::CHECKPOINT_RETENTION)?,
            cleans_orphans: config.get(options::CHECKPOINT_CLEANER_ORPHANS)?,
            slot_timeout_ms: millis(config.get(options::SLOT_REQUEST_TIMEOUT)?).max(1),
            keeps_workers: config.get(options::RECOVERY_FROM_LOCAL)?,
            spares_regions: config.get(options::FAILOVER_STRATEGY)? == FailoverStrategy::Region,
            is_reactive: config.get(options::SCHEDULER_MODE)? == SchedulerMode::Reactive,
            stabilization_ms: millis(config.get(options::RESOURCE_STABILIZATION_TIMEOUT)?).max(1),
        })
    }

    /// Refuses a job that could not take a checkpoint.
    pub(crate) fn check(&self) -> Result<()> {
        if self.checkpoint_dir.is_empty() {
            return Err(Error::input(format!(
                "{} is not set: give the cluster or the job a folder for checkpoints",
                options::CHECKPOINT_DIR.key
            )));
        }
        Ok(())
    }
}

/// A folder as a URL in its normal form, without a slash at its end. What tasks write below it is named in the
/// same form. An absolute path is one of the machine's file system; a relative one would mean another folder in
/// every process.
pub(crate) fn folder_url(text: &str) -> Result<String> {
    let is_url = text.split_once("://").is_some_and(|(scheme, _)| !scheme.contains('/')) || text.starts_with("file:/");
    if !is_url && !text.starts_with('/') {
        return Err(Error::input(format!(
            "'{text}' is not a folder that every process can find: write an absolute path, or a URL such as 's3://bucket/folder'"
        )));
    }
    let url = Store::normalize(text)?;
    Ok(url.strip_suffix('/').unwrap_or(&url).to_owned())
}

/// Whole milliseconds, at most [`DURATION_MS_MAX`].
pub(crate) fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(DURATION_MS_MAX).min(DURATION_MS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_can_be_read_but_lack_a_folder() {
        let settings = Settings::read(&Configuration::default()).unwrap();
        assert_eq!((settings.interval_ms, settings.retained_max), (None, 1));
        assert!(settings.check().unwrap_err().to_string().contains("execution.checkpointing.dir is not set"));
    }

    #[test]
    fn folders_are_urls_without_a_slash_at_the_end() {
        assert_eq!(folder_url("/tmp/x/").unwrap(), "file:///tmp/x");
        assert_eq!(folder_url("s3a://bucket//x/").unwrap(), "s3://bucket/x");
        assert_eq!(folder_url("/").unwrap(), "file://");
        assert!(folder_url("x").unwrap_err().to_string().contains("'x' is not a folder"));
    }
}
