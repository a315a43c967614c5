//! SET and RESET.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema};
use flott_core::config::{Configuration, options};
use flott_core::{Error, Result, ResultExt};

use super::keys;
use super::recovery::Recovery;
use crate::plan::Settings;

/// What was SET, and what RESET goes back to.
#[derive(Clone, Debug, Default)]
pub struct SessionConfig {
    first: BTreeMap<String, String>,
    now: BTreeMap<String, String>,
    engine: Configuration,
    recovery: Recovery,
    /// What nobody has been told yet.
    warnings: Vec<String>,
}

impl SessionConfig {
    /// The settings that a session begins with.
    ///
    /// # Errors
    /// An option cannot have its value.
    pub fn new<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self> {
        let mut config = Self::default();
        for (key, value) in pairs {
            config.set(key, value)?;
        }
        config.first.clone_from(&config.now);
        Ok(config)
    }

    /// All settings, by key.
    pub fn values(&self) -> &BTreeMap<String, String> {
        &self.now
    }

    /// The value of a key, if it was set.
    pub fn value(&self, key: &str) -> Option<&str> {
        self.now.get(key).map(String::as_str)
    }

    /// Those that are the engine's.
    pub fn engine(&self) -> &Configuration {
        &self.engine
    }

    /// What jobs start from.
    pub fn recovery(&self) -> &Recovery {
        &self.recovery
    }

    /// What is to be said of keys that do nothing, once each time that one was set.
    pub(super) fn take_warnings(&mut self) -> Vec<String> {
        std::mem::take(&mut self.warnings)
    }

    /// `SET 'key' = 'value'`. As in Flink there may be any keys; of one that does nothing a warning is kept.
    ///
    /// # Errors
    /// The option cannot have this value.
    pub fn set(&mut self, key: &str, value: &str) -> Result<()> {
        let mut now = self.now.clone();
        now.insert(key.to_owned(), value.to_owned());
        let engine = engine_of(&now)?;
        let recovery = Recovery::of(&now)?;
        Settings::new(&now)?;
        (self.now, self.engine, self.recovery) = (now, engine, recovery);
        self.warnings.extend(keys::warning(key));
        Ok(())
    }

    /// `RESET 'key'`.
    pub fn reset(&mut self, key: &str) {
        match self.first.get(key) {
            Some(value) => self.now.insert(key.to_owned(), value.clone()),
            None => self.now.remove(key),
        };
        self.derive();
    }

    /// `RESET`.
    pub fn reset_all(&mut self) {
        self.now.clone_from(&self.first);
        self.derive();
    }

    fn derive(&mut self) {
        // Each setting was good when it was made, and none depends on another.
        self.engine = engine_of(&self.now).unwrap_or_default();
        self.recovery = Recovery::of(&self.now).unwrap_or_default();
    }

    /// `SET`: keys and values.
    pub(super) fn rows(&self) -> Result<RecordBatch> {
        let columns = ["key", "value"].map(|name| Field::new(name, DataType::Utf8, false));
        let keys: ArrayRef = Arc::new(StringArray::from_iter_values(self.now.keys()));
        let values: ArrayRef = Arc::new(StringArray::from_iter_values(self.now.values()));
        RecordBatch::try_new(Arc::new(Schema::new(columns.to_vec())), vec![keys, values])
            .map_err(|error| Error::system(error.to_string()))
    }
}

fn engine_of(all: &BTreeMap<String, String>) -> Result<Configuration> {
    let mut engine = Configuration::default();
    for (key, value) in all {
        if options::find(key).is_some() {
            engine.set(key, value).with_context(|| format!("SET '{key}' = '{value}'"))?;
        }
    }
    Ok(engine)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_checked_when_they_are_made() {
        let mut config = SessionConfig::new([("table.exec.state.ttl", "1 h")]).unwrap();
        config.set("execution.checkpointing.interval", "3s").unwrap();
        assert_eq!(config.engine().iter().collect::<Vec<_>>(), [("execution.checkpointing.interval", "3s")]);
        let error = config.set("execution.checkpointing.interval", "soon").unwrap_err();
        assert!(error.message.contains("execution.checkpointing.interval"), "{error}");
        let error = config.set("table.exec.state.ttl", "soon").unwrap_err();
        assert!(error.message.contains("duration"), "{error}");
        assert_eq!(config.values()["table.exec.state.ttl"], "1 h");
        config.set("table.exec.state.ttl", "2 h").unwrap();
        config.reset("table.exec.state.ttl");
        assert_eq!(config.values()["table.exec.state.ttl"], "1 h");
        config.set("execution.state-recovery.path", "/s").unwrap();
        assert_eq!(config.recovery().path.as_deref(), Some("/s"));
        config.reset_all();
        assert_eq!(config.engine().iter().count(), 0);
        assert_eq!(config.recovery(), &Recovery::default());
    }

    #[test]
    fn keys_that_do_nothing_are_kept_with_a_warning() {
        let mut config = SessionConfig::new([("execution.checkpointing.interva", "3s")]).unwrap();
        config.set("table.exec.mini-batch.enabled", "true").unwrap();
        let warnings = config.take_warnings();
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert!(warnings[0].contains("did you mean 'execution.checkpointing.interval'?"), "{warnings:?}");
        assert_eq!(config.values().len(), 2);
        assert_eq!((config.engine().iter().count(), config.take_warnings().len()), (0, 0));
    }
}
