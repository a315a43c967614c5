//! Parts: their names, and what a place to keep them can do.

use flott_connector_spi::{Committable, SinkContext};
use flott_core::ids::{Generation, JobId};
use flott_core::{Error, Result};
use serde::{Deserialize, Serialize};

use crate::system::FilePath;

/// The version of the encoding of committables.
const FORMAT_VERSION: u32 = 1;

/// The length of a part of which only the names are known.
pub(crate) const UNKNOWN_BYTES: u64 = u64::MAX;

/// The end of the name of a file that is being written.
const IN_PROGRESS: &str = ".inprogress";

/// A closed part: durable, and not visible yet. It becomes visible by getting its target's name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ClosedPart {
    version: u32,
    pub(crate) staged: FilePath,
    pub(crate) target: FilePath,
    pub(crate) bytes: u64,
}

impl ClosedPart {
    pub(crate) fn new(staged: FilePath, target: FilePath, bytes: u64) -> Self {
        Self { version: FORMAT_VERSION, staged, target, bytes }
    }

    pub(crate) fn encode(&self) -> Result<Committable> {
        serde_json::to_vec(self).map_err(|error| Error::system(format!("encoding the part {}: {error}", self.target)))
    }

    pub(crate) fn decode(committable: &[u8]) -> Result<Self> {
        let part: Self = serde_json::from_slice(committable)
            .map_err(|error| Error::input(format!("a part in the state of the file sink is damaged: {error}")))?;
        if part.version != FORMAT_VERSION {
            return Err(Error::input(format!(
                "a part in the state of the file sink has format version {}, this build reads version {FORMAT_VERSION}: use the build that wrote it, or a newer one",
                part.version
            )));
        }
        Ok(part)
    }

    /// What it means that neither name exists. A part of another job was committed when that job stopped with the
    /// savepoint that this one began with, and has been taken away since. A part of this job is lost; whoever knows no more of
    /// it than its names leaves that to its writer.
    pub(crate) fn missing(&self, names: &PartNames) -> Result<()> {
        if self.bytes == UNKNOWN_BYTES || !names.is_own(&self.target.to_string()) {
            tracing::warn!(part = %self.target, "a part that an earlier job committed is not there any more");
            return Ok(());
        }
        Err(Error::input(format!(
            "{} was written and is to become visible now, but it is gone, and so is {}: its records are lost, or were moved away after an earlier commit; restore a checkpoint whose parts exist",
            self.target, self.staged
        )))
    }
}

/// Makes names that nothing else uses: the job and its generation make them different from all of other executions.
#[derive(Clone)]
pub(crate) struct PartNames {
    prefix: String,
    suffix: String,
    subtask: u32,
    parallelism: u32,
    generation: Generation,
    job: JobId,
    counter: u64,
}

impl PartNames {
    pub(crate) fn new(prefix: &str, suffix: &str, cx: &SinkContext) -> Self {
        let (prefix, suffix) = (prefix.to_owned(), suffix.to_owned());
        let SinkContext { subtask, parallelism, generation, job, .. } = *cx;
        Self { prefix, suffix, subtask, parallelism, generation, job, counter: 0 }
    }

    /// Whether a visible file is this job's.
    pub(crate) fn is_own(&self, file: &str) -> bool {
        file.contains(&self.job.to_string())
    }

    /// The name of the next part.
    pub(crate) fn next(&mut self) -> String {
        let Self { prefix, suffix, subtask, generation, job, counter, .. } = self;
        let name = format!("{prefix}-{subtask}-{counter}-g{generation}-{job}{suffix}");
        *counter += 1;
        name
    }

    /// The name of a file while the part `name` is written to it.
    pub(crate) fn in_progress(name: &str) -> String {
        format!(".{name}{IN_PROGRESS}")
    }

    /// The name of a file from when the part `name` is closed until it becomes visible.
    pub(crate) fn pending(name: &str) -> String {
        format!(".{name}.pending")
    }

    /// Whether `file` was being written by this subtask in an earlier generation of this job, with this prefix and
    /// suffix. No committable refers to it, since those refer to pending files; and its writer, should it still live,
    /// is fenced: no checkpoint of its will complete.
    ///
    /// Files of other subtasks are theirs to remove: a subtask that a failure did not reach writes on under the
    /// generation that it was started in. Those that there are no longer, since there are fewer now, are shared out.
    pub(crate) fn is_abandoned(&self, file: &str) -> bool {
        let maker = || -> Option<(u32, Generation)> {
            let name = file.strip_prefix('.')?.strip_suffix(IN_PROGRESS)?;
            let name = name.strip_prefix(&self.prefix)?.strip_prefix('-')?;
            let name = name.strip_suffix(&self.suffix)?.strip_suffix(&self.job.to_string())?;
            let (place, generation) = name.strip_suffix('-')?.rsplit_once("-g")?;
            Some((place.split_once('-')?.0.parse().ok()?, generation.parse().ok()?))
        };
        maker().is_some_and(|(subtask, generation)| {
            generation < self.generation && subtask % self.parallelism.max(1) == self.subtask
        })
    }
}

/// A place for parts.
pub(crate) trait Folder: Send {
    /// Begins the part `name` in a bucket.
    fn create(&mut self, bucket: &str, name: &str) -> Result<Box<dyn OpenPart>>;

    /// Makes the names of closed parts durable.
    fn sync(&mut self, parts: &[ClosedPart]) -> Result<()>;

    /// Makes closed parts visible. Repeatable. `names` are those of the writer.
    fn commit(&mut self, parts: &[ClosedPart], names: &PartNames) -> Result<()>;

    /// Removes the visible files in and below a bucket, but those of this job.
    fn clear(&mut self, bucket: &str, names: &PartNames) -> Result<()>;

    /// Writes an empty file into a bucket, or leaves the one that is there.
    fn touch(&mut self, bucket: &str, name: &str) -> Result<()>;
}

/// A part that is being written. Dropped without being closed, it leaves nothing behind.
pub(crate) trait OpenPart: Send {
    /// How it will be called when it is closed, and when it is visible.
    fn names(&self) -> (FilePath, FilePath);

    /// Adds bytes.
    fn write(&mut self, bytes: &[u8]) -> Result<()>;

    /// Makes its bytes durable.
    fn close(self: Box<Self>) -> Result<ClosedPart>;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(generation: Generation, job: u8) -> PartNames {
        let (prefix, suffix) = ("part".to_owned(), ".txt".to_owned());
        PartNames { prefix, suffix, subtask: 3, parallelism: 4, generation, job: JobId([job; 16]), counter: 0 }
    }

    #[test]
    fn only_files_of_dead_generations_of_the_job_are_abandoned() {
        let name = names(2, 1).next();
        assert_eq!(name, "part-3-0-g2-01010101010101010101010101010101.txt");
        let file = PartNames::in_progress(&name);
        assert!(names(3, 1).is_abandoned(&file));
        assert!(!names(2, 1).is_abandoned(&file));
        assert!(!names(3, 2).is_abandoned(&file));
        assert!(!names(3, 1).is_abandoned(&PartNames::pending(&name)));
        assert!(!names(3, 1).is_abandoned(&name));
        assert!(!names(3, 1).is_abandoned(".inprogress"));
    }

    #[test]
    fn a_subtask_removes_its_own_files_and_those_of_subtasks_that_are_no_more() {
        let of = |subtask: u32| PartNames::in_progress(&PartNames { subtask, ..names(2, 1) }.next());
        assert!(!names(3, 1).is_abandoned(&of(0)), "subtask 0 may run on since generation 2");
        assert!(names(3, 1).is_abandoned(&of(3)));
        assert!(names(3, 1).is_abandoned(&of(7)), "there are four");
        assert!(!names(3, 1).is_abandoned(&of(8)));
    }

    #[test]
    fn committables_are_checked() {
        let path = |name: &str| FilePath::Local(name.to_owned());
        let part = ClosedPart::new(path("/a/.b.pending"), path("/a/b"), 7);
        let bytes = part.encode().unwrap();
        let golden = r#"{"version":1,"staged":{"Local":"/a/.b.pending"},"target":{"Local":"/a/b"},"bytes":7}"#;
        assert_eq!(String::from_utf8_lossy(&bytes), golden);
        assert_eq!(ClosedPart::decode(&bytes).unwrap(), part);
        assert!(ClosedPart::decode(&bytes[1..]).unwrap_err().message.contains("damaged"));
        let newer = golden.replace("\"version\":1", "\"version\":2");
        assert!(ClosedPart::decode(newer.as_bytes()).unwrap_err().message.contains("format version 2"));
    }
}
