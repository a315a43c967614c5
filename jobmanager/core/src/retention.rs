//! Which checkpoints exist, and which files nothing needs any more.
//!
//! Incremental checkpoints share files, so a file goes only when no retained checkpoint refers to
//! it. Nothing is ever listed to decide that (a listing only says which files there are to decide about, see [`orphans`]), and
//! nothing outside the job's own folder is touched: a job may have been started from a savepoint or from another job's
//! checkpoint.
//!
//! The exception is a savepoint or checkpoint that the job *claimed* when it was started from it. No checkpoint of the
//! job builds on it, and as soon as there are enough of them it is dropped, as [`CLAIMED`], with all its files.
//!
//! A folder whose checkpoint was dropped or aborted is *garbage* until it can be removed whole. That
//! waits for a later regular checkpoint: until then a running task may still build on files that it
//! wrote for the aborted one.
//!
//! [`orphans`]: crate::orphans

use std::collections::{BTreeMap, BTreeSet};

use flott_checkpoint::manifest::METADATA_FILE;
use flott_control::CompletedCheckpoint;
use flott_core::ids::{CheckpointId, Generation, JobId};

use crate::api::Command;
use crate::orphans::origin_of;

/// The number by which the log drops the claimed checkpoint. The job's own are counted from 1.
const CLAIMED: CheckpointId = 0;

/// The number of folders that may go whatever was completed since. The job's own are counted from 1.
const LONG_AGO: CheckpointId = 0;

/// How many folders may wait for their removal. Beyond that the oldest stay until the job ends.
const GARBAGE_FOLDERS_MAX: usize = 1024;

#[derive(Clone, Debug)]
struct Retained {
    checkpoint: CompletedCheckpoint,
    /// Full URLs of its files; unknown after a restart of the JobManager, until it is loaded.
    files: Option<BTreeSet<String>>,
    /// Whether its end has been proposed to the log.
    is_dropping: bool,
}

/// The checkpoint that the job was started from and owns.
#[derive(Clone, Debug, Default)]
struct Claimed {
    /// Its folder and the full URLs of its files, once it has been loaded.
    content: Option<(String, BTreeSet<String>)>,
    /// Whether its end has been proposed to the log.
    is_dropping: bool,
}

/// The completed checkpoints and savepoints of one job, as the log has them.
#[derive(Clone, Debug)]
pub(crate) struct CompletedCheckpoints {
    /// The folder of this job's checkpoints, which belongs to it alone.
    job_dir: String,
    retained_max: usize,
    retained: BTreeMap<CheckpointId, Retained>,
    claimed: Option<Claimed>,
    garbage_folders: BTreeSet<(CheckpointId, String)>,
    /// Files of dropped checkpoints that may be shared with retained ones.
    loose_files: BTreeSet<String>,
}

impl CompletedCheckpoints {
    /// None yet. `checkpoint_dir` is the folder of all jobs.
    pub(crate) fn new(job: JobId, checkpoint_dir: &str, retained_max: usize) -> Self {
        Self {
            job_dir: format!("{checkpoint_dir}/{job}"),
            retained_max,
            retained: BTreeMap::new(),
            claimed: None,
            garbage_folders: BTreeSet::new(),
            loose_files: BTreeSet::new(),
        }
    }

    /// The folder that belongs to this job alone.
    pub(crate) fn job_dir(&self) -> &str {
        &self.job_dir
    }

    /// The job owns the checkpoint that it starts from.
    pub(crate) fn claim(&mut self) {
        self.claimed = Some(Claimed::default());
    }

    /// Whether it does, and its files are not known yet.
    pub(crate) fn has_unknown_claim(&self) -> bool {
        self.claimed.as_ref().is_some_and(|claimed| claimed.content.is_none())
    }

    /// The claimed checkpoint was loaded.
    pub(crate) fn claimed(&mut self, location: String, files: BTreeSet<String>) {
        if let Some(claimed) = &mut self.claimed {
            claimed.content = Some((location, files));
        }
    }

    /// The log has a new checkpoint. Its files are unknown when the log is only read again.
    pub(crate) fn add(&mut self, checkpoint: CompletedCheckpoint, files: Option<BTreeSet<String>>) {
        self.retained.insert(checkpoint.id, Retained { checkpoint, files, is_dropping: false });
    }

    /// The files of a checkpoint became known.
    pub(crate) fn set_files(&mut self, id: CheckpointId, files: BTreeSet<String>) {
        if !self.retained.contains_key(&id) {
            return;
        }
        // Its older files lie in folders of checkpoints that were dropped long ago.
        let folders: BTreeSet<String> = files.iter().filter_map(|file| self.own_folder(file)).collect();
        for folder in folders {
            self.add_garbage(id, folder);
        }
        if let Some(retained) = self.retained.get_mut(&id) {
            retained.files = Some(files);
        }
    }

    /// The checkpoint to recover from. A savepoint is one only if the job stopped with it.
    pub(crate) fn latest(&self) -> Option<&CompletedCheckpoint> {
        let mut newest_first = self.retained.values().rev().map(|retained| &retained.checkpoint);
        newest_first.find(|checkpoint| !checkpoint.is_savepoint || checkpoint.ends_job)
    }

    fn regular(&self) -> impl DoubleEndedIterator<Item = &Retained> {
        self.retained.values().filter(|retained| !retained.checkpoint.is_savepoint)
    }

    /// The newest checkpoint that is not the user's.
    pub(crate) fn newest(&self) -> Option<&CompletedCheckpoint> {
        self.regular().next_back().map(|retained| &retained.checkpoint)
    }

    /// Whether the files of all checkpoints are known that may share some. As long as those of one are not, any file may be one
    /// of them.
    pub(crate) fn knows_files(&self) -> bool {
        self.regular().all(|retained| retained.files.is_some())
    }

    /// Whether a checkpoint or savepoint is or lies in this folder.
    pub(crate) fn has_below(&self, folder: &str) -> bool {
        let mut locations = self.retained.values().map(|retained| retained.checkpoint.location.as_str());
        locations.any(|location| location == folder || is_below(location, folder))
    }

    /// Whether there are checkpoints that are not the user's.
    pub(crate) fn has_regular(&self) -> bool {
        self.regular().next().is_some()
    }

    /// The regular checkpoints that are too many by now; each is named once.
    pub(crate) fn surplus(&mut self) -> Vec<CheckpointId> {
        let ids: Vec<CheckpointId> =
            self.regular().rev().skip(self.retained_max).map(|retained| retained.checkpoint.id).collect();
        let mut ids = self.dropping(ids);
        // It is older than all others.
        let is_enough = self.regular().count() >= self.retained_max;
        let claimed = self.claimed.as_mut().filter(|claimed| is_enough && claimed.content.is_some());
        if claimed.is_some_and(|claimed| !std::mem::replace(&mut claimed.is_dropping, true)) {
            ids.insert(0, CLAIMED);
        }
        ids
    }

    /// All regular checkpoints, since the job is over and keeps none.
    pub(crate) fn discard_all(&mut self) -> Vec<CheckpointId> {
        let ids = self.regular().map(|retained| retained.checkpoint.id).collect();
        self.dropping(ids)
    }

    fn dropping(&mut self, mut ids: Vec<CheckpointId>) -> Vec<CheckpointId> {
        ids.retain(|id| {
            self.retained.get_mut(id).is_some_and(|retained| !std::mem::replace(&mut retained.is_dropping, true))
        });
        ids.sort_unstable();
        ids
    }

    /// The log says that a checkpoint is no longer kept. Returns what to delete at once, which is the claimed one; for
    /// all others see [`Self::sweep`].
    pub(crate) fn drop_checkpoint(&mut self, id: CheckpointId) -> Option<Command> {
        if id == CLAIMED {
            let (folder, files) = self.claimed.take()?.content?;
            let files = files.into_iter().filter(|file| !is_below(file, &folder)).collect();
            return Some(Command::Delete { files, folders: vec![folder] });
        }
        let retained = self.retained.remove(&id)?;
        let location = retained.checkpoint.location;
        for file in retained.files.into_iter().flatten() {
            if let Some(folder) = self.own_folder(&file) {
                self.add_garbage(id, folder);
                self.loose_files.insert(file);
            }
        }
        let metadata = format!("{location}/{METADATA_FILE}");
        if let Some(folder) = self.own_folder(&metadata) {
            self.loose_files.insert(metadata);
            self.add_garbage(id, folder);
        }
        None
    }

    /// A checkpoint was aborted; its folder may hold files already.
    pub(crate) fn abandon(&mut self, id: CheckpointId, location: String) {
        self.add_garbage(id, location);
    }

    fn add_garbage(&mut self, id: CheckpointId, folder: String) {
        self.garbage_folders.insert((id, folder));
        if self.garbage_folders.len() > GARBAGE_FOLDERS_MAX {
            self.garbage_folders.pop_first();
        }
    }

    /// The folder of a file, if it is one that this job made.
    fn own_folder(&self, file: &str) -> Option<String> {
        let (folder, _) = file.rsplit_once('/')?;
        is_below(folder, &self.job_dir).then(|| folder.to_owned())
    }

    /// These files are in the job's folder, whoever knows of them. Returns what can be deleted now: all that nothing refers to
    /// and that is older than the newest checkpoint, on which whatever is still being written builds. When the job `has_ended`,
    /// nothing is being written.
    pub(crate) fn found(&mut self, files: Vec<String>, has_ended: bool) -> Option<Command> {
        let end = match self.newest() {
            _ if has_ended => (Generation::MAX, CheckpointId::MAX),
            // A leader that dies takes the numbers of pending checkpoints along, so in a later generation they come again.
            newest => newest.map(|newest| (newest.generation, newest.id))?,
        };
        for file in files {
            let origin = origin_of(&self.job_dir, &file);
            if let Some((_, folder)) = origin.filter(|(origin, _)| *origin < end) {
                let folder = folder.to_owned();
                self.add_garbage(LONG_AGO, folder);
                self.loose_files.insert(file);
            }
        }
        self.delete_before(end.1)
    }

    /// What can be deleted now.
    pub(crate) fn sweep(&mut self) -> Option<Command> {
        let newest = self.newest()?.id;
        self.delete_before(newest)
    }

    /// Deletes files that nothing refers to, and such folders, of checkpoints before this one.
    fn delete_before(&mut self, end: CheckpointId) -> Option<Command> {
        if !self.knows_files() {
            return None;
        }
        let metadata = |retained: &Retained| format!("{}/{METADATA_FILE}", retained.checkpoint.location);
        let metadata: Vec<String> = self.retained.values().map(metadata).collect();
        let files = self.retained.values().flat_map(|retained| retained.files.iter().flatten());
        let needed: BTreeSet<&str> = files.chain(&metadata).map(String::as_str).collect();
        let is_needed = |folder: &str| {
            let prefix = format!("{folder}/");
            needed.range::<&str, _>(prefix.as_str()..).next().is_some_and(|file| file.starts_with(&prefix))
        };
        let (folders, garbage_folders): (BTreeSet<_>, BTreeSet<_>) = std::mem::take(&mut self.garbage_folders)
            .into_iter()
            .partition(|(id, folder)| *id < end && !is_needed(folder));
        let folders: BTreeSet<String> = folders.into_iter().map(|(_, folder)| folder).collect();
        // A file that is still needed comes back here when the checkpoint that needs it is dropped.
        let files: Vec<String> = std::mem::take(&mut self.loose_files)
            .into_iter()
            .filter(|file| !needed.contains(file.as_str()))
            .filter(|file| file.rsplit_once('/').is_none_or(|(folder, _)| !folders.contains(folder)))
            .collect();
        let folders: Vec<String> = folders.into_iter().collect();
        self.garbage_folders = garbage_folders;
        if files.is_empty() && folders.is_empty() { None } else { Some(Command::Delete { files, folders }) }
    }

    /// The job is over and keeps no checkpoint of its own: everything that it wrote can go, unless a savepoint of
    /// the user lies there.
    pub(crate) fn delete_everything(&mut self) -> Option<Command> {
        let is_shared = self
            .retained
            .values()
            .any(|retained| retained.checkpoint.is_savepoint && is_below(&retained.checkpoint.location, &self.job_dir));
        self.garbage_folders.clear();
        self.loose_files.clear();
        (!is_shared).then(|| Command::Delete { files: Vec::new(), folders: vec![self.job_dir.clone()] })
    }
}

/// Whether a folder lies below another one.
pub(crate) fn is_below(folder: &str, parent: &str) -> bool {
    folder.strip_prefix(parent).is_some_and(|rest| rest.starts_with('/'))
}

#[cfg(test)]
mod found_tests;

#[cfg(test)]
mod tests {
    use super::*;

    const JOB: JobId = JobId([0xab; 16]);

    fn dir() -> String {
        format!("s3://c/{JOB}/g1")
    }

    fn checkpoint(id: CheckpointId) -> CompletedCheckpoint {
        CompletedCheckpoint {
            id,
            generation: 1,
            location: format!("{}/chk-{id}", dir()),
            manifest_sha256: String::new(),
            is_savepoint: false,
            ends_job: false,
            triggered_ms: 0,
            completed_ms: 0,
            bytes_written: 0,
            bytes_total: 0,
        }
    }

    fn files(names: &[&str]) -> Option<BTreeSet<String>> {
        Some(
            names
                .iter()
                .map(|name| if name.contains("://") { (*name).into() } else { format!("{}/{name}", dir()) })
                .collect(),
        )
    }

    fn swept(completed: &mut CompletedCheckpoints) -> String {
        match completed.sweep() {
            Some(Command::Delete { files, folders }) => {
                format!("files {files:?} folders {folders:?}").replace(&format!("{}/", dir()), "")
            }
            _ => "nothing".into(),
        }
    }

    fn new() -> CompletedCheckpoints {
        CompletedCheckpoints::new(JOB, "s3://c", 1)
    }

    #[test]
    fn a_shared_file_outlives_the_checkpoint_that_wrote_it() {
        let mut completed = new();
        completed.add(checkpoint(1), files(&["chk-1/base", "chk-1/other"]));
        completed.add(checkpoint(2), files(&["chk-1/base", "chk-2/change"]));
        assert_eq!(completed.surplus(), [1]);
        assert!(completed.surplus().is_empty(), "proposed once");
        completed.drop_checkpoint(1);
        assert_eq!(swept(&mut completed), r#"files ["chk-1/_metadata", "chk-1/other"] folders []"#);
        completed.add(checkpoint(3), files(&["chk-3/base"]));
        completed.surplus();
        completed.drop_checkpoint(2);
        assert_eq!(swept(&mut completed), r#"files [] folders ["chk-1", "chk-2"]"#);
    }

    #[test]
    fn an_aborted_checkpoint_is_removed_after_a_later_one() {
        let mut completed = new();
        completed.add(checkpoint(1), files(&["chk-1/a"]));
        completed.abandon(2, format!("{}/chk-2", dir()));
        assert_eq!(swept(&mut completed), "nothing");
        completed.add(checkpoint(3), files(&["chk-2/a", "chk-3/a"]));
        assert_eq!(swept(&mut completed), "nothing", "3 builds on what was written for 2");
        completed.add(checkpoint(4), files(&["chk-4/a"]));
        completed.drop_checkpoint(1);
        completed.drop_checkpoint(3);
        assert_eq!(swept(&mut completed), r#"files [] folders ["chk-1", "chk-2", "chk-3"]"#);
    }

    #[test]
    fn nothing_is_deleted_while_files_are_unknown() {
        let mut completed = CompletedCheckpoints::new(JOB, "s3://c", 2);
        completed.add(checkpoint(1), None);
        completed.add(checkpoint(2), None);
        completed.drop_checkpoint(1);
        assert_eq!(swept(&mut completed), "nothing");
        completed.set_files(2, files(&["chk-1/base", "chk-2/b"]).unwrap_or_default());
        assert_eq!(swept(&mut completed), r#"files ["chk-1/_metadata"] folders []"#);
        completed.add(checkpoint(3), files(&["chk-3/base"]));
        completed.drop_checkpoint(2);
        assert_eq!(swept(&mut completed), r#"files [] folders ["chk-1", "chk-2"]"#);
    }

    #[test]
    fn nothing_outside_the_jobs_folder_is_deleted() {
        let mut completed = new();
        completed.add(checkpoint(1), files(&["s3://c/other-job/g1/chk-9/base", "chk-1/a"]));
        completed.add(checkpoint(2), files(&["chk-2/a"]));
        completed.drop_checkpoint(1);
        assert_eq!(swept(&mut completed), r#"files [] folders ["chk-1"]"#);
    }

    #[test]
    fn a_claimed_checkpoint_is_dropped_when_enough_have_followed() {
        let mut completed = CompletedCheckpoints::new(JOB, "s3://c", 2);
        completed.claim();
        assert!(completed.has_unknown_claim());
        completed.add(checkpoint(5), files(&["chk-5/a"]));
        let folder = "s3://other/chk-4";
        let claimed = files(&["s3://other/chk-4/b", "s3://other/chk-3/a"]).unwrap_or_default();
        completed.claimed(folder.into(), claimed);
        assert!(completed.surplus().is_empty(), "one is not enough");
        completed.add(checkpoint(6), files(&["chk-6/a"]));
        assert_eq!(completed.surplus(), [CLAIMED]);
        completed.add(checkpoint(7), files(&["chk-7/a"]));
        assert_eq!(completed.surplus(), [5], "proposed once");
        match completed.drop_checkpoint(CLAIMED) {
            Some(Command::Delete { files, folders }) => {
                assert_eq!((files, folders), (vec!["s3://other/chk-3/a".to_owned()], vec![folder.to_owned()]));
            }
            other => panic!("{other:?}"),
        }
        assert!(completed.drop_checkpoint(CLAIMED).is_none());
    }

    #[test]
    fn a_claimed_checkpoint_stays_when_its_files_are_unknown_or_nothing_follows() {
        let mut completed = new();
        completed.claim();
        completed.add(checkpoint(5), files(&["chk-5/a"]));
        assert!(completed.surplus().is_empty());
        let mut completed = new();
        completed.claim();
        completed.claimed("s3://other/chk-4".into(), BTreeSet::new());
        assert!(completed.surplus().is_empty() && completed.discard_all().is_empty());
    }

    #[test]
    fn savepoints_are_never_surplus_and_recovery_points_only_at_the_end() {
        let mut completed = new();
        completed.add(checkpoint(1), files(&["chk-1/a"]));
        let savepoint =
            CompletedCheckpoint { is_savepoint: true, location: "s3://s/savepoint-1".into(), ..checkpoint(2) };
        completed.add(savepoint, files(&["s3://s/savepoint-1/a"]));
        assert_eq!(completed.latest().map(|checkpoint| checkpoint.id), Some(1), "the user may delete it");
        assert!(completed.surplus().is_empty());
        assert_eq!(completed.discard_all(), [1]);
        assert!(completed.delete_everything().is_some());
        let inside = CompletedCheckpoint { is_savepoint: true, ..checkpoint(3) };
        let last = CompletedCheckpoint { ends_job: true, ..inside.clone() };
        completed.add(last, None);
        assert_eq!(completed.latest().map(|checkpoint| checkpoint.id), Some(3));
        completed.add(inside, None);
        assert!(completed.delete_everything().is_none());
    }
}
