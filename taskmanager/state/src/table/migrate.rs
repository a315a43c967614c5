//! What a checkpoint has of another version of the job: the entries are read in the form that they had then.
//!
//! The groups stay untracked, so that the next snapshot has all of them: nothing may build on files whose values have another
//! form.

use flott_core::codec::Decoder;
use flott_core::key_group::KeyGroup;
use flott_core::{Data, Error, Result, ResultExt};

use super::{KeyedTable, Namespace};
use crate::cold::{ColdOptions, ColdStore};
use crate::columns::OldValues;
use crate::snapshot::{LocalRun, Section, SectionKind};

impl<K: Data + Eq, N: Namespace, V: Data> KeyedTable<K, N, V> {
    pub(super) fn migrate_section(&mut self, schema: &str, section: &Section<'_>) -> Result<()> {
        let values: OldValues<V> = OldValues::new::<K, N>(schema)?;
        let index = self.index_of(section.group);
        if section.kind == SectionKind::Base {
            self.clear_restored(index)?;
        }
        let mut body = Decoder::new(section.body);
        for _ in 0..section.entries {
            let is_removal: bool = body.read()?;
            let (key, namespace): (K, N) = (body.read()?, body.read()?);
            if is_removal {
                self.remove_restored(index, &key, &namespace);
            } else {
                self.restore_entry(index, key, namespace, values.read(&mut body)?)?;
            }
        }
        self.check_end(section.group, &body)
    }

    pub(super) fn migrate_runs(
        &mut self,
        schema: &str,
        runs: &[LocalRun],
        is_wanted: &dyn Fn(KeyGroup) -> bool,
    ) -> Result<()> {
        let values: OldValues<V> = OldValues::new::<K, N>(schema)?;
        let directory = self.backend.table_directory(&self.name).ok_or_else(|| self.no_directory())?;
        // A store of its own, which goes with what it links.
        let mut store =
            ColdStore::open(&directory, ColdOptions::default()).with_context(|| format!("state '{}'", self.name))?;
        for run in runs {
            store.adopt_run(&run.path, &run.dropped)?;
        }
        for group in (self.range.start..self.range.end).map(|group| group as KeyGroup).filter(|group| is_wanted(*group))
        {
            let index = self.index_of(group);
            let mut scan = store.scan_group(group)?;
            while let Some(entry) = scan.next_entry()? {
                let (mut key, mut value) = (Decoder::new(entry.key), Decoder::new(entry.value));
                let restored = (key.read()?, key.read()?, values.read(&mut value)?);
                self.check_end(group, &key)?;
                self.check_end(group, &value)?;
                self.restore_entry(index, restored.0, restored.1, restored.2)?;
            }
        }
        Ok(())
    }

    fn check_end(&self, group: KeyGroup, rest: &Decoder<'_>) -> Result<()> {
        match rest.remaining() {
            0 => Ok(()),
            bytes => Err(Error::system(format!(
                "state '{}' of key group {group} has {bytes} bytes behind its last entry",
                self.name
            ))),
        }
    }
}
