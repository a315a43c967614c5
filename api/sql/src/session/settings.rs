//! SET and RESET.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema};
use flott_core::config::Configuration;
use flott_core::{Error, Result, ResultExt};

use crate::plan::Settings;

/// Keys that are about SQL or its client: the engine does not know them.
const OF_SQL: [&str; 5] =
    ["table.", "sql-client.", "pipeline.name", "execution.state-recovery.path", "execution.savepoint.path"];

/// What was SET, and what RESET goes back to.
#[derive(Clone, Debug, Default)]
pub struct SessionConfig {
    first: BTreeMap<String, String>,
    now: BTreeMap<String, String>,
    engine: Configuration,
}

impl SessionConfig {
    /// The settings that a session begins with.
    ///
    /// # Errors
    /// An option does not exist, or cannot have its value.
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

    /// `SET 'key' = 'value'`.
    ///
    /// # Errors
    /// The option does not exist, or cannot have this value.
    pub fn set(&mut self, key: &str, value: &str) -> Result<()> {
        let mut now = self.now.clone();
        now.insert(key.to_owned(), value.to_owned());
        let engine = engine_of(&now)?;
        Settings::new(&now)?;
        (self.now, self.engine) = (now, engine);
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
        if !OF_SQL.iter().any(|prefix| key.starts_with(prefix)) {
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
        let error = config.set("execution.checkpointing.interva", "3s").unwrap_err();
        assert!(error.message.contains("execution.checkpointing.interva"), "{error}");
        let error = config.set("table.exec.state.ttl", "soon").unwrap_err();
        assert!(error.message.contains("duration"), "{error}");
        assert_eq!(config.values()["table.exec.state.ttl"], "1 h");
        config.set("table.exec.state.ttl", "2 h").unwrap();
        config.reset("table.exec.state.ttl");
        assert_eq!(config.values()["table.exec.state.ttl"], "1 h");
        config.reset_all();
        assert_eq!(config.engine().iter().count(), 0);
    }
}
