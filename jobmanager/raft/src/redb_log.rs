//! A log in one file.

use std::path::{Path, PathBuf};

use flott_control::Fact;
use flott_core::{Error, Result, ResultExt};
use redb::{Database, DatabaseError, ReadableDatabase, ReadableTable, TableDefinition};

use crate::{FactLog, entry};

/// The file in the log's folder.
pub const FILE_NAME: &str = "facts.redb";

/// Entries by their index, counted from 1 without gaps.
const ENTRIES: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("entries");

/// The log is written once and read once, so a cache is of little use.
const CACHE_BYTES: usize = 2 << 20;

/// A log in a file. One process at a time can have it open.
pub struct RedbLog {
    path: PathBuf,
    database: Database,
    last_index: u64,
}

impl RedbLog {
    /// Opens the log in the folder `dir`, or starts one there. Refuses a log that another process has open
    /// and one that is damaged in any place.
    pub fn open(dir: &Path) -> Result<Self> {
        std::fs::create_dir_all(dir).with_context(|| format!("creating {}", dir.display()))?;
        let path = dir.join(FILE_NAME);
        let database = Database::builder()
            .set_cache_size(CACHE_BYTES)
            // Together with two-phase commits this finds any damage, and never answers it by
            // going back to an earlier commit.
            .set_check_integrity_on_open(true)
            .create(&path)
            .map_err(|error| open_error(&path, &error))?;
        let mut log = Self { path, database, last_index: 0 };
        log.last_index = log.read()?.len() as u64;
        Ok(log)
    }

    fn read(&self) -> Result<Vec<Fact>> {
        let transaction = self.database.begin_read().map_err(|error| self.failed("reading", &error))?;
        let table = match transaction.open_table(ENTRIES) {
            Ok(table) => table,
            Err(redb::TableError::TableDoesNotExist(_)) => return Ok(Vec::new()),
            Err(error) => return Err(self.failed("reading", &error)),
        };
        let mut facts = Vec::new();
        for row in table.iter().map_err(|error| self.failed("reading", &error))? {
            let (index, bytes) = row.map_err(|error| self.failed("reading", &error))?;
            let expected = facts.len() as u64 + 1;
            if index.value() != expected {
                return Err(self.damaged(expected, Error::system("it is missing")));
            }
            facts.push(entry::decode(expected, bytes.value()).map_err(|error| self.damaged(expected, error))?);
        }
        Ok(facts)
    }

    fn write(&self, index: u64, bytes: &[u8]) -> Result<(), redb::Error> {
        let mut transaction = self.database.begin_write()?;
        // Durability is immediate by default. Two phases, because after a crash a commit of one phase that
        // does not verify counts as never made, also if it was acknowledged and damaged later.
        transaction.set_two_phase_commit(true);
        {
            let mut table = transaction.open_table(ENTRIES)?;
            table.insert(index, bytes)?;
        }
        transaction.commit()?;
        Ok(())
    }

    fn damaged(&self, index: u64, error: Error) -> Error {
        error.context(format!(
            "the JobManager's log {} cannot be used, entry {index} is damaged (restore the file from a backup, or move it away to start without the jobs that it knows)",
            self.path.display()
        ))
    }

    fn failed(&self, what: &str, error: &dyn std::error::Error) -> Error {
        Error::system(format!("{what} the JobManager's log {}: {error}", self.path.display()))
    }
}

impl FactLog for RedbLog {
    fn append(&mut self, fact: &Fact) -> Result<()> {
        let index = self.last_index + 1;
        let bytes = entry::encode(index, fact)?;
        self.write(index, &bytes).map_err(|error| self.failed("writing", &error))?;
        self.last_index = index;
        Ok(())
    }

    fn replay(&mut self) -> Result<Vec<Fact>> {
        self.read()
    }
}

fn open_error(path: &Path, error: &DatabaseError) -> Error {
    let path = path.display();
    match error {
        DatabaseError::DatabaseAlreadyOpen => Error::input(format!(
            "the JobManager's log {path} is in use by another process: stop the other JobManager, or give this one a folder of its own (high-availability.storageDir)"
        )),
        error => Error::system(format!(
            "the JobManager's log {path} cannot be opened: {error} (if it is damaged, restore it from a backup, or move it away to start without the jobs that it knows)"
        )),
    }
}

#[cfg(test)]
mod tests {
    use flott_core::ids::JobId;

    use super::*;

    fn fact(generation: u64) -> Fact {
        Fact::GenerationStarted { job: JobId([1; 16]), generation }
    }

    fn open_error_of(dir: &Path) -> String {
        RedbLog::open(dir).err().expect("the log should be refused").to_string()
    }

    #[test]
    fn a_second_process_is_refused_with_the_way_out() {
        let dir = tempfile::tempdir().unwrap();
        let _log = RedbLog::open(dir.path()).unwrap();
        let error = open_error_of(dir.path());
        assert!(error.contains("facts.redb is in use by another process"), "{error}");
        assert!(error.contains("high-availability.storageDir"), "{error}");
    }

    #[test]
    fn a_bad_entry_is_named_and_not_skipped() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = RedbLog::open(dir.path()).unwrap();
        log.append(&fact(1)).unwrap();
        log.append(&fact(2)).unwrap();
        let mut bytes = entry::encode(1, &fact(1)).unwrap();
        let last = bytes.len() - 3;
        bytes[last] ^= 1;
        log.write(1, &bytes).unwrap();
        drop(log);
        let error = open_error_of(dir.path());
        assert!(error.contains("facts.redb") && error.contains("entry 1") && error.contains("checksum"), "{error}");
    }

    #[test]
    fn a_missing_entry_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let log = RedbLog::open(dir.path()).unwrap();
        log.write(2, &entry::encode(2, &fact(2)).unwrap()).unwrap();
        drop(log);
        let error = open_error_of(dir.path());
        assert!(error.contains("entry 1 is damaged") && error.contains("missing"), "{error}");
    }

    #[test]
    fn a_file_altered_by_one_byte_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(FILE_NAME);
        let mut log = RedbLog::open(dir.path()).unwrap();
        log.append(&fact(1)).unwrap();
        log.append(&fact(2)).unwrap();
        drop(log);
        let mut bytes = std::fs::read(&path).unwrap();
        // Old pages hold copies of entries as well, so all of them are altered.
        let needle = br#""generation":2"#;
        let places: Vec<usize> =
            (0..bytes.len() - needle.len()).filter(|&at| bytes[at..].starts_with(needle)).collect();
        assert!(!places.is_empty());
        for at in places {
            bytes[at + needle.len() - 1] = b'3';
        }
        std::fs::write(&path, bytes).unwrap();
        let error = open_error_of(dir.path());
        assert!(error.contains("facts.redb"), "{error}");
    }

    #[test]
    fn what_is_not_a_log_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(FILE_NAME), "not a log").unwrap();
        assert!(open_error_of(dir.path()).contains("cannot be opened"));
    }
}
