//! What nobody remembers: files that were pending, aborted or dropped under a leader that died, or that a worker wrote after
//! it was given up.
//!
//! No list of them survives, so the job's folder is looked through: once in each execution but the first, when
//! that has completed a checkpoint, and at the end of a job whose checkpoints stay. What a listing shows only makes
//! candidates. It is what the log says that decides about them ([`CompletedCheckpoints::found`]), at the time when the listing
//! is there, so it does no harm that it may be old.
//!
//! Savepoints lie where users want them, among things that are not ours. There nothing is looked for: the log has the
//! folder of each that was asked for, and those that never became complete are deleted at the same moments.
//!
//! [`CompletedCheckpoints::found`]: crate::retention::CompletedCheckpoints::found

use std::collections::BTreeSet;

use flott_core::ids::{CheckpointId, Generation};

/// How many more checkpoints of an execution are followed by a look if the one before could not be taken.
const RETRIES_MAX: u32 = 3;

/// When to look, and which savepoints there are to delete.
#[derive(Clone, Debug)]
pub(crate) struct Orphans {
    is_wanted: bool,
    is_due: bool,
    /// How often one may be taken again in this execution.
    retries: u32,
    has_ended: bool,
    /// Folders of savepoints that an earlier leader was asked for, and that are not in the log.
    savepoints: BTreeSet<String>,
}

impl Orphans {
    /// `is_wanted`: whether anything is looked for at all.
    pub(crate) fn new(is_wanted: bool) -> Self {
        Self { is_wanted, is_due: false, retries: 0, has_ended: false, savepoints: BTreeSet::new() }
    }

    /// Nothing is looked for.
    pub(crate) fn give_up(&mut self) {
        self.is_wanted = false;
    }

    /// An earlier leader was asked for a savepoint.
    pub(crate) fn requested(&mut self, location: String) {
        self.savepoints.insert(location);
    }

    /// A checkpoint or savepoint is in the log.
    pub(crate) fn completed(&mut self, location: &str) {
        self.savepoints.remove(location);
    }

    /// All tasks of an execution run. Before the first there was nobody who could have left anything.
    pub(crate) fn begin(&mut self, generation: Generation) {
        self.is_due = self.is_wanted && generation > 1;
        self.retries = RETRIES_MAX;
    }

    /// The folder could not be listed.
    pub(crate) fn failed(&mut self) {
        self.is_due = self.retries > 0;
        self.retries = self.retries.saturating_sub(1);
    }

    /// Whether the folder is to be looked through in this execution, and has not been.
    pub(crate) fn take_due(&mut self) -> bool {
        std::mem::take(&mut self.is_due)
    }

    /// The job is over. Returns whether there is one more look to take.
    pub(crate) fn end(&mut self) -> bool {
        self.has_ended = true;
        self.is_wanted
    }

    /// Whether the job is over: then nothing is pending.
    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// The folders of savepoints that nobody completes any more.
    pub(crate) fn take_savepoints(&mut self) -> Vec<String> {
        if self.is_wanted { std::mem::take(&mut self.savepoints).into_iter().collect() } else { Vec::new() }
    }
}

/// Which checkpoint a file of the job was written for, and its folder: `JOB/g2/chk-7/NAME` is of checkpoint 7 of generation 2.
/// Whatever else lies in the job's folder was put there by somebody else.
pub(crate) fn origin_of<'a>(job_dir: &str, file: &'a str) -> Option<((Generation, CheckpointId), &'a str)> {
    let (folder, _) = file.rsplit_once('/')?;
    let (generation, checkpoint) = folder.strip_prefix(job_dir)?.strip_prefix("/g")?.split_once("/chk-")?;
    let number = |text: &str| text.parse::<u64>().ok().filter(|number| number.to_string() == text);
    Some(((number(generation)?, number(checkpoint)?), folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_of_checkpoints_have_an_origin() {
        fn origin(file: &str) -> Option<((Generation, CheckpointId), &str)> {
            origin_of("s3://c/ab", file)
        }
        assert_eq!(origin("s3://c/ab/g2/chk-7/0-0.state"), Some(((2, 7), "s3://c/ab/g2/chk-7")));
        assert_eq!(origin("s3://c/ab/g2/chk-7/_metadata").map(|origin| origin.0), Some((2, 7)));
        for file in [
            "s3://c/ab/notes",
            "s3://c/ab/g2/notes",
            "s3://c/ab/g2/chk-7",
            "s3://c/ab/g2/chk-7/savepoint-ab-x/_metadata",
            "s3://c/ab/g2/x/chk-7/a",
            "s3://c/ab/g02/chk-7/a",
            "s3://c/ab/g2/chk-+7/a",
            "s3://c/ab/g2/chk-/a",
            "s3://c/ab/g/chk-7/a",
            "s3://c/abc/g2/chk-7/a",
            "s3://c/cd/g2/chk-7/a",
            "",
        ] {
            assert_eq!(origin(file), None, "{file}");
        }
    }

    #[test]
    fn there_is_one_look_in_each_execution_but_the_first() {
        let mut orphans = Orphans::new(true);
        orphans.begin(1);
        assert!(!orphans.take_due());
        orphans.begin(2);
        assert!(orphans.take_due() && !orphans.take_due());
        orphans.begin(3);
        for _ in 0..=RETRIES_MAX {
            assert!(orphans.take_due());
            orphans.failed();
        }
        assert!(!orphans.take_due());
        orphans.give_up();
        orphans.begin(4);
        assert!(!orphans.take_due() && !orphans.end());
    }
}
