//! The object store: what was written is there, in one piece, until it is deleted.

use std::collections::BTreeMap;

use flott_checkpoint::Manifest;
use flott_checkpoint::manifest::METADATA_FILE;
use flott_control::CompletedCheckpoint;
use flott_core::{Error, Result};

use crate::oracle::{Oracle, Violation};
use crate::state::Entries;
use crate::trace::hash_of;

#[derive(Clone, Debug)]
struct StoredManifest {
    bytes: Vec<u8>,
    hash: String,
    /// The full URLs of what it names.
    files: Vec<String>,
    /// How many were written before it.
    number: usize,
}

/// Files by URL, manifests by the URL of their folder.
#[derive(Clone, Debug, Default)]
pub(super) struct Store {
    pub(super) files: BTreeMap<String, Entries>,
    manifests: BTreeMap<String, StoredManifest>,
    written: usize,
}

impl Store {
    /// Writes a manifest and returns its hash.
    pub(super) fn write(&mut self, location: &str, manifest: &Manifest) -> Result<String> {
        let bytes = manifest.relative_to(location).to_bytes()?;
        let hash = hash_of(&bytes);
        let files = manifest.files().map(|file| file.resolve(location).path).collect();
        self.written += 1;
        let stored = StoredManifest { bytes, hash: hash.clone(), files, number: self.written };
        self.manifests.insert(location.to_owned(), stored);
        Ok(hash)
    }

    /// Reads a manifest, and checks that everything it names is there.
    pub(super) fn load(&self, location: &str, hash: Option<&str>) -> Result<Manifest> {
        let manifest = self.check(location, hash)?;
        Manifest::from_bytes(&format!("{location}/{METADATA_FILE}"), &manifest.bytes)
    }

    /// The folder that got its manifest last, of those that begin so.
    pub(super) fn newest(&self, prefix: &str) -> Option<&str> {
        let manifests = self.manifests.iter().filter(|(location, _)| location.starts_with(prefix));
        manifests.max_by_key(|(_, manifest)| manifest.number).map(|(location, _)| location.as_str())
    }

    fn check(&self, location: &str, hash: Option<&str>) -> Result<&StoredManifest> {
        let place = format!("{location}/{METADATA_FILE}");
        let manifest = self.manifests.get(location).ok_or_else(|| Error::input(format!("{place} does not exist")))?;
        if hash.is_some_and(|hash| hash != manifest.hash) {
            return Err(Error::input(format!("{place} is not what the log says")));
        }
        match manifest.files.iter().find(|file| !self.files.contains_key(*file)) {
            Some(file) => Err(Error::system(format!("{place} names {file}, which does not exist"))),
            None => Ok(manifest),
        }
    }

    /// Deletes, and checks that no checkpoint that is still needed has lost a file.
    pub(super) fn delete(&mut self, files: &[String], folders: &[String], oracle: &Oracle) -> Result<(), Violation> {
        for file in files {
            self.files.remove(file);
            if let Some(folder) = file.strip_suffix(&format!("/{METADATA_FILE}")) {
                self.manifests.remove(folder);
            }
        }
        for folder in folders {
            let prefix = format!("{folder}/");
            self.files.retain(|file, _| !file.starts_with(&prefix));
            self.manifests.retain(|location, _| location != folder && !location.starts_with(&prefix));
        }
        for CompletedCheckpoint { id, location, manifest_sha256, .. } in oracle.needed() {
            self.check(location, Some(manifest_sha256))
                .map_err(|error| format!("deleting broke checkpoint {id}: {error}"))?;
        }
        Ok(())
    }

    /// The URLs of all files below a folder.
    pub(super) fn list(&self, folder: &str) -> Vec<String> {
        let prefix = format!("{folder}/");
        let manifests = self.manifests.keys().map(|location| format!("{location}/{METADATA_FILE}"));
        self.files.keys().cloned().chain(manifests).filter(|file| file.starts_with(&prefix)).collect()
    }

    /// What there is below a folder.
    pub(super) fn below(&self, folder: &str) -> impl Iterator<Item = &String> {
        let prefix = format!("{folder}/");
        self.files.keys().chain(self.manifests.keys()).filter(move |path| path.starts_with(&prefix))
    }
}
