//! The object store: what was written is there, in one piece, until it is deleted.

use std::collections::{BTreeMap, BTreeSet};

use flott_checkpoint::Manifest;
use flott_checkpoint::manifest::METADATA_FILE;
use flott_core::{Error, Result};

use crate::oracle::{Oracle, Violation};
use crate::trace::hash_of;

/// Files by URL, manifests by the URL of their folder.
#[derive(Clone, Debug, Default)]
pub(super) struct Store {
    pub(super) files: BTreeSet<String>,
    manifests: BTreeMap<String, Vec<u8>>,
}

impl Store {
    /// Writes a manifest and returns its hash.
    pub(super) fn write(&mut self, location: &str, manifest: &Manifest) -> Result<String> {
        let bytes = manifest.relative_to(location).to_bytes()?;
        let hash = hash_of(&bytes);
        self.manifests.insert(location.to_owned(), bytes);
        Ok(hash)
    }

    /// Reads a manifest, and checks that everything it names is there.
    pub(super) fn load(&self, location: &str, hash: Option<&str>) -> Result<Manifest> {
        let place = format!("{location}/{METADATA_FILE}");
        let bytes = self.manifests.get(location).ok_or_else(|| Error::input(format!("{place} does not exist")))?;
        if hash.is_some_and(|hash| hash != hash_of(bytes)) {
            return Err(Error::input(format!("{place} is not what the log says")));
        }
        let manifest = Manifest::from_bytes(&place, bytes)?;
        let missing = manifest.files().map(|file| file.resolve(location).path).find(|file| !self.files.contains(file));
        match missing {
            Some(file) => Err(Error::system(format!("{place} names {file}, which does not exist"))),
            None => Ok(manifest),
        }
    }

    /// Deletes, and checks that no retained checkpoint of a job that runs has lost a file.
    pub(super) fn delete(&mut self, files: &[String], folders: &[String], oracle: &Oracle) -> Result<(), Violation> {
        for file in files {
            self.files.remove(file);
            if let Some(folder) = file.strip_suffix(&format!("/{METADATA_FILE}")) {
                self.manifests.remove(folder);
            }
        }
        for folder in folders {
            let prefix = format!("{folder}/");
            self.files.retain(|file| !file.starts_with(&prefix));
            self.manifests.retain(|location, _| location != folder && !location.starts_with(&prefix));
        }
        for facts in oracle.jobs.values().filter(|facts| facts.end.is_none()) {
            for checkpoint in facts.checkpoints.values() {
                self.load(&checkpoint.location, Some(&checkpoint.manifest_sha256))
                    .map_err(|error| format!("deleting broke checkpoint {}: {error}", checkpoint.id))?;
            }
        }
        Ok(())
    }

    /// Whether nothing is left.
    pub(super) fn is_empty(&self) -> bool {
        self.files.is_empty() && self.manifests.is_empty()
    }
}
