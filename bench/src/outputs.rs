//! When each key group had output: the notes that `state-job` takes, read again.

use std::fs;
use std::path::Path;

use flott_core::{Error, Result, ResultExt};

use crate::harness::MAX_PARALLELISM;

/// From one time to another, in milliseconds; the second is the first that is not in it.
pub(crate) type Window = (i64, i64);

/// A worker of the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Worker {
    /// The process of its TaskManager.
    pub(crate) task_manager: u32,
    /// Its own.
    pub(crate) pid: u32,
}

/// Records of a key group in a millisecond.
#[derive(Clone, Copy, Debug)]
struct Output {
    ms: i64,
    group: usize,
    records: u64,
    worker: Worker,
}

/// All notes, in the order of time.
pub(crate) struct Outputs(Vec<Output>);

impl Outputs {
    /// Reads the notes of all subtasks.
    pub(crate) fn read(folder: &Path) -> Result<Self> {
        let mut outputs = Vec::new();
        for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
            let path = entry?.path();
            let malformed = |what: &str| Error::system(format!("{}: '{what}' is no note", path.display()));
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let mut ids = name.split('-').map_while(|id| id.parse::<u32>().ok());
            let (Some(task_manager), Some(pid)) = (ids.next(), ids.next()) else { return Err(malformed(name)) };
            let worker = Worker { task_manager, pid };
            let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
            // The last line may be half written.
            let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
            for line in whole.lines() {
                outputs.push(parse(line, worker).ok_or_else(|| malformed(line))?);
            }
        }
        outputs.sort_by_key(|output: &Output| output.ms);
        Ok(Self(outputs))
    }

    fn within(&self, (from_ms, to_ms): Window) -> &[Output] {
        let start = self.0.partition_point(|output| output.ms < from_ms);
        let end = self.0.partition_point(|output| output.ms < to_ms);
        &self.0[start..end.max(start)]
    }

    /// How many records there were.
    pub(crate) fn records(&self) -> u64 {
        self.0.iter().map(|output| output.records).sum()
    }

    /// Records a second in all these windows together.
    pub(crate) fn rate(&self, windows: &[Window]) -> f64 {
        let records: u64 = windows.iter().flat_map(|window| self.within(*window)).map(|output| output.records).sum();
        let ms: i64 = windows.iter().map(|(from_ms, to_ms)| to_ms - from_ms).sum();
        records as f64 * 1e3 / ms as f64
    }

    /// Records in each step of a window.
    pub(crate) fn steps(&self, (from_ms, to_ms): Window, step_ms: i64) -> Vec<u64> {
        let mut steps = vec![0; ((to_ms - from_ms) / step_ms) as usize];
        for output in self.within((from_ms, to_ms)) {
            if let Some(step) = steps.get_mut(((output.ms - from_ms) / step_ms) as usize) {
                *step += output.records;
            }
        }
        steps
    }

    /// The worker that each key group had output from last before `ms`.
    pub(crate) fn owners(&self, ms: i64) -> Vec<Option<Worker>> {
        let mut owners = vec![None; MAX_PARALLELISM as usize];
        for output in self.within((i64::MIN, ms)) {
            owners[output.group] = Some(output.worker);
        }
        owners
    }

    /// The longest time without output that each key group had in a window.
    pub(crate) fn gaps_ms(&self, (from_ms, to_ms): Window) -> Vec<i64> {
        let mut gaps = vec![0_i64; MAX_PARALLELISM as usize];
        let mut last = vec![from_ms; MAX_PARALLELISM as usize];
        for output in self.within((from_ms, to_ms)) {
            gaps[output.group] = gaps[output.group].max(output.ms - last[output.group]);
            last[output.group] = output.ms;
        }
        gaps.iter().zip(last).map(|(gap, last_ms)| *gap.max(&(to_ms - last_ms))).collect()
    }
}

fn parse(line: &str, worker: Worker) -> Option<Output> {
    let mut words = line.split(' ');
    let (ms, group, records) = (words.next()?, words.next()?, words.next()?);
    let group = group.parse::<usize>().ok().filter(|group| *group < MAX_PARALLELISM as usize)?;
    Some(Output { ms: ms.parse().ok()?, group, records: records.parse().ok()?, worker })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outputs(files: &[(&str, &str)]) -> Result<Outputs> {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            fs::write(folder.path().join(name), text).unwrap();
        }
        Outputs::read(folder.path())
    }

    #[test]
    fn gaps_are_those_of_a_group_whoever_had_it() {
        let outputs = outputs(&[("1-2-0", "100 0 1\n110 0 2\n"), ("1-3-0", "150 0 4\n105 1 8\n16")]).unwrap();
        assert_eq!(outputs.records(), 15);
        let gaps = outputs.gaps_ms((90, 160));
        assert_eq!(gaps[..3], [40, 55, 70], "a group may have none at all, at the end or anywhere");
        let owners = outputs.owners(150);
        assert_eq!(owners[0], Some(Worker { task_manager: 1, pid: 2 }));
        assert_eq!(outputs.owners(151)[0], Some(Worker { task_manager: 1, pid: 3 }));
        assert_eq!((owners[1].map(|worker| worker.pid), owners[2]), (Some(3), None));
    }

    #[test]
    fn rates_are_those_of_the_windows() {
        let outputs = outputs(&[("1-2-0", "100 0 10\n150 3 20\n200 0 40\n")]).unwrap();
        assert_eq!(outputs.rate(&[(100, 150), (150, 200)]), 300.0);
        assert_eq!(outputs.rate(&[(150, 160), (200, 210)]), 3000.0);
        assert_eq!(outputs.steps((100, 220), 50), [10, 20], "the last step is not whole");
    }

    #[test]
    fn what_is_no_note_is_refused() {
        for (name, text) in [("1-2-0", "100 0\n"), ("1-2-0", "100 128 1\n"), ("notes", "")] {
            assert!(outputs(&[(name, text)]).is_err(), "{name} {text}");
        }
    }
}
