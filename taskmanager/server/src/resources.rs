//! What a worker may take of its machine: memory for keyed state, and a folder for what has no room there.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use flott_control::ExecutionId;
use flott_core::config::{Configuration, options};
use flott_core::{Error, Result, ResultExt};

/// The part of the machine's memory that keyed state may take unless it is told, in percent; Flink's default as well. The
/// rest is for channels, snapshots, the user's own, and what the estimate of state misses.
const MANAGED_PERCENT: u64 = 40;

/// What keyed state may take where the machine does not say what it has.
const MANAGED_UNKNOWN: u64 = 1 << 30;

/// The names of folders of workers begin so; that of the file which its worker holds locked ends so.
const PREFIX: &str = "flott-state-";
const LOCK: &str = ".lock";

/// How long it takes to see that a folder is not there.
const LOCK_PAUSE: Duration = Duration::from_millis(20);

/// How much memory the keyed state of one slot may take.
pub(crate) fn slot_memory(config: &Configuration) -> Result<u64> {
    let managed = match config.get(options::MANAGED_MEMORY)? {
        Some(bytes) => bytes,
        None => machine_memory().map_or(MANAGED_UNKNOWN, |bytes| bytes / 100 * MANAGED_PERCENT),
    };
    Ok(managed / u64::from(config.get(options::TASK_SLOTS)?))
}

/// The memory of the machine, or of the container if that has less.
fn machine_memory() -> Option<u64> {
    let machine = fs::read_to_string("/proc/meminfo").ok().and_then(|text| total(&text));
    let limit = |path: &str| fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
    let containers = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];
    machine.into_iter().chain(containers.into_iter().filter_map(limit)).min()
}

fn total(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kilobytes.checked_mul(1024)
}

/// A folder of the worker's own, which goes with it.
///
/// Beside it is a file that is locked as long as the worker lives. So a folder whose worker was killed is known, also to
/// workers in other containers, for which the number of its process means nothing.
#[derive(Debug)]
pub(crate) struct Scratch {
    path: PathBuf,
    lock_path: PathBuf,
    _lock: File,
}

impl Scratch {
    /// The folder of the worker of an execution, in the one that is configured.
    pub(crate) fn create(config: &Configuration, execution: ExecutionId) -> Result<Self> {
        let dir = directory(config)?;
        let job = &execution.job.to_string()[..8];
        let name = format!("{PREFIX}{}-{job}-{}", std::process::id(), execution.generation);
        Self::create_in(&dir, &name)
            .with_context(|| format!("making a folder for state ({})", options::IO_TMP_DIRS.key))
    }

    fn create_in(dir: &Path, name: &str) -> Result<Self> {
        let (path, lock_path) = (dir.join(name), dir.join(format!("{name}{LOCK}")));
        fs::create_dir_all(dir).with_context(|| dir.display().to_string())?;
        // Before the folder is there, so that nobody takes it for one that was left behind.
        let lock = lock(&lock_path).or_else(|_| {
            // Somebody may be looking at the file right now, to whom it belongs to nobody yet.
            std::thread::sleep(LOCK_PAUSE);
            self::lock(&lock_path)
        })?;
        fs::create_dir_all(&path).with_context(|| path.display().to_string())?;
        Ok(Self { path, lock_path, _lock: lock })
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

/// Removes the folders of workers that were killed. What cannot be removed stays.
pub(crate) fn sweep(config: &Configuration) {
    if let Ok(dir) = directory(config) {
        sweep_in(&dir);
    }
}

fn sweep_in(dir: &Path) {
    let Ok(entries) = fs::read_dir(dir) else { return };
    for lock_path in entries.flatten().map(|entry| entry.path()) {
        let name = lock_path.file_name().and_then(|name| name.to_str());
        if !name.is_some_and(|name| name.starts_with(PREFIX) && name.ends_with(LOCK)) {
            continue;
        }
        let Ok(lock) = File::open(&lock_path) else { continue };
        // One that is alive holds it, also in this process.
        if lock.try_lock().is_ok() {
            let path = lock_path.with_extension("");
            tracing::info!(path = %path.display(), "removing what a worker left behind");
            remove(&path, &lock_path);
        }
    }
}

fn directory(config: &Configuration) -> Result<PathBuf> {
    Ok(match config.get(options::IO_TMP_DIRS)? {
        dir if dir.is_empty() => std::env::temp_dir(),
        dir => PathBuf::from(dir),
    })
}

impl Drop for Scratch {
    fn drop(&mut self) {
        remove(&self.path, &self.lock_path);
    }
}

fn lock(path: &Path) -> Result<File> {
    let file = File::create(path).with_context(|| path.display().to_string())?;
    file.try_lock().map_err(|error| Error::system(format!("locking {}: {error}", path.display())))?;
    // Somebody may have taken it for one that was left behind, before it was locked.
    let is_there = fs::metadata(path).and_then(|there| Ok(there.ino() == file.metadata()?.ino())).unwrap_or(false);
    if !is_there {
        return Err(Error::system(format!("{} was removed", path.display())));
    }
    Ok(file)
}

fn remove(path: &Path, lock_path: &Path) {
    // A slot may be writing still. Then what is left is found by the next worker, as long as the other file is there.
    if fs::remove_dir_all(path).is_ok() || !path.exists() {
        let _ = fs::remove_file(lock_path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_share_the_memory() {
        let mut config = Configuration::default();
        config.set(options::TASK_SLOTS.key, "4").unwrap();
        let shared = slot_memory(&config).unwrap();
        assert!(shared > 10 << 20, "{shared}");
        config.set(options::MANAGED_MEMORY.key, "1g").unwrap();
        assert_eq!(slot_memory(&config).unwrap(), 256 << 20);
    }

    #[test]
    fn the_machine_says_what_memory_it_has() {
        assert_eq!(total("MemFree: 1 kB\nMemTotal:       32768 kB\n"), Some(32 << 20));
        assert_eq!(total("MemTotal: much"), None);
    }

    #[test]
    fn a_folder_goes_with_its_worker_or_after_it() {
        let dir = tempfile::tempdir().unwrap();
        let names = || {
            let entries = fs::read_dir(dir.path()).unwrap();
            let mut names: Vec<String> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
            names.sort();
            names
        };
        let alive = Scratch::create_in(dir.path(), "flott-state-1-aa-1").unwrap();
        fs::write(alive.path().join("run"), "x").unwrap();
        assert!(Scratch::create_in(dir.path(), "flott-state-1-aa-1").is_err(), "it is taken");
        // A worker that was killed holds no lock.
        fs::create_dir_all(dir.path().join("flott-state-2-bb-1/0-0")).unwrap();
        fs::write(dir.path().join("flott-state-2-bb-1.lock"), "").unwrap();
        fs::create_dir(dir.path().join("precious.lock")).unwrap();
        let other = Scratch::create_in(dir.path(), "flott-state-3-cc-1").unwrap();
        sweep_in(dir.path());
        let expected =
            ["flott-state-1-aa-1", "flott-state-1-aa-1.lock", "flott-state-3-cc-1", "flott-state-3-cc-1.lock"];
        assert_eq!(names()[..4], expected);
        drop(other);
        drop(alive);
        assert_eq!(names(), ["precious.lock"]);
    }
}
