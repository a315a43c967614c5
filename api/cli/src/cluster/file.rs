//! `DIR/cluster.json`: the processes of the cluster in a folder.

use std::io::{ErrorKind, Write};
use std::path::Path;

use flott_core::{Error, Result, ResultExt};
use serde::{Deserialize, Serialize};

use super::process::Process;

const NAME: &str = "cluster.json";

/// A cluster that was started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ClusterFile {
    /// Its processes, the JobManager first.
    pub(super) processes: Vec<Process>,
    /// The `host:port` of its REST API.
    pub(super) rest: String,
}

impl ClusterFile {
    /// The cluster of a folder, if the folder names one.
    pub(super) fn read(dir: &Path) -> Result<Option<Self>> {
        let path = dir.join(NAME);
        let text = match std::fs::read(&path) {
            Ok(text) => text,
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(None),
            Err(error) => return Err(Error::from(error).context(format!("reading {}", path.display()))),
        };
        serde_json::from_slice(&text).map(Some).map_err(|error| {
            Error::input(format!(
                "{} does not describe a cluster ({error}): end its processes yourself, then delete the file",
                path.display()
            ))
        })
    }

    /// Writes the file whole or not at all.
    pub(super) fn write(&self, dir: &Path) -> Result<()> {
        let place = || format!("writing {}", dir.join(NAME).display());
        let text = serde_json::to_vec_pretty(self).map_err(|error| Error::system(format!("{}: {error}", place())))?;
        let mut file = tempfile::NamedTempFile::new_in(dir).with_context(place)?;
        file.write_all(&text).with_context(place)?;
        file.persist(dir.join(NAME)).map_err(|error| Error::from(error.error)).with_context(place)?;
        Ok(())
    }

    /// Removes the file, if it is there.
    pub(super) fn remove(dir: &Path) -> Result<()> {
        match std::fs::remove_file(dir.join(NAME)) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(Error::from(error).context(format!("removing {}", dir.join(NAME).display())))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::process::Role;
    use super::*;

    #[test]
    fn a_cluster_is_read_as_it_was_written() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(ClusterFile::read(dir.path()).unwrap(), None);
        assert_eq!(ClusterFile::read(&dir.path().join("nowhere")).unwrap(), None);
        let process = Process {
            role: Role::TaskManager,
            pid: 17,
            log: dir.path().join("log/taskmanager-1.log"),
            dir: dir.path().join("taskmanager-1"),
        };
        let cluster = ClusterFile { processes: vec![process], rest: "127.0.0.1:8081".into() };
        cluster.write(dir.path()).unwrap();
        cluster.write(dir.path()).unwrap();
        assert_eq!(ClusterFile::read(dir.path()).unwrap(), Some(cluster));
        let value: serde_json::Value = serde_json::from_slice(&std::fs::read(dir.path().join(NAME)).unwrap()).unwrap();
        assert_eq!(value["processes"][0]["role"], "taskmanager");
        assert_eq!(value["processes"][0]["pid"], 17);
        ClusterFile::remove(dir.path()).unwrap();
        ClusterFile::remove(dir.path()).unwrap();
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "nothing is left behind");
    }

    #[test]
    fn a_damaged_file_is_refused_by_name() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(NAME), "{\"processes\": [").unwrap();
        let error = ClusterFile::read(dir.path()).unwrap_err().to_string();
        assert!(error.contains("cluster.json does not describe a cluster"), "{error}");
    }
}
