//! Configuration with Flink's keys: typed, checked, and refused with the nearest known key.
//!
//! ```
//! use flott_core::config::{Configuration, options};
//! let mut config = Configuration::default();
//! config.set("execution.checkpointing.interval", "10 s").unwrap();
//! assert_eq!(config.get(options::CHECKPOINT_INTERVAL).unwrap().unwrap().as_secs(), 10);
//! let error = config.set("execution.checkpointing.intervall", "10 s").unwrap_err();
//! assert!(error.to_string().contains("did you mean 'execution.checkpointing.interval'"));
//! ```

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

pub mod options;
mod yaml;

/// A setting that exists: its key, its default, and how its text is read.
#[derive(Debug)]
pub struct ConfigOption<T: 'static> {
    /// Flink's key.
    pub key: &'static str,
    /// The text of its default.
    pub default: &'static str,
    /// Reads its text.
    pub parse: fn(&str) -> Result<T>,
}

// Derived impls would ask for `T: Clone`, which an option does not need.
impl<T> Clone for ConfigOption<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for ConfigOption<T> {}

/// The settings that were given, by key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Configuration {
    values: BTreeMap<String, String>,
}

impl Configuration {
    /// Reads a YAML file's text. Keys may be nested or dotted; a key given twice is refused with its line.
    pub fn from_yaml(file: &str, text: &str) -> Result<Self> {
        let mut config = Self::default();
        for setting in yaml::flatten(file, text)? {
            let settings = config.values.len();
            let result = config.set(&setting.key, &setting.value).and_then(|()| {
                // Keys are told apart by the YAML already, so this one is another name of an earlier one.
                if config.values.len() > settings { Ok(()) } else { Err(given_by_another_name(&setting.key)) }
            });
            result.map_err(|error| error.context(format_args!("{file}:{}", setting.line(text))))?;
        }
        Ok(config)
    }

    /// Sets one key. Unknown keys, and values that the key cannot have, are refused.
    pub fn set(&mut self, key: &str, value: &str) -> Result<()> {
        let known = options::find(key).ok_or_else(|| unknown(key))?;
        (known.check)(value).map_err(|error| error.context(known.key))?;
        self.values.insert(known.key.to_owned(), value.to_owned());
        Ok(())
    }

    /// Sets `key=value`, as `-D` gives it.
    pub fn set_pair(&mut self, pair: &str) -> Result<()> {
        let (key, value) = pair
            .split_once('=')
            .ok_or_else(|| Error::input(format!("'{pair}' is not a setting: write -D key=value")))?;
        self.set(key.trim(), value.trim())
    }

    /// The value of `option`, or its default.
    pub fn get<T>(&self, option: ConfigOption<T>) -> Result<T> {
        let text = self.values.get(option.key).map_or(option.default, String::as_str);
        (option.parse)(text).map_err(|error| error.context(option.key))
    }

    /// Whether `option` was given.
    pub fn is_set<T>(&self, option: ConfigOption<T>) -> bool {
        self.values.contains_key(option.key)
    }

    /// Puts the settings of `over` over these.
    pub fn extend(&mut self, over: &Self) {
        self.values.extend(over.values.iter().map(|(key, value)| (key.clone(), value.clone())));
    }

    /// The settings as a JSON object, for another process.
    pub fn to_json(&self) -> String {
        serde_json::to_string(&self.values).unwrap_or_default()
    }

    /// Reads [`Configuration::to_json`]'s text.
    pub fn from_json(text: &str) -> Result<Self> {
        let values = serde_json::from_str(text)
            .map_err(|error| Error::input(format!("a configuration that is not JSON: {error}")))?;
        Ok(Self { values })
    }

    /// The settings that were given, by key.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.values.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }
}

fn unknown(key: &str) -> Error {
    let nearest = options::keys().map(|known| (strsim::damerau_levenshtein(key, known), known)).min();
    match nearest {
        Some((distance, known)) if distance <= known.len() / 2 => {
            Error::input(format!("unknown configuration key '{key}': did you mean '{known}'?"))
        }
        _ => Error::input(format!("unknown configuration key '{key}': `flott info --options` lists the known ones")),
    }
}

fn given_by_another_name(key: &str) -> Error {
    let option = options::find(key);
    let other = option.map(|option| if key == option.key { option.alias.unwrap_or(option.key) } else { option.key });
    Error::input(format!("'{key}' is also given as '{}': remove one", other.unwrap_or(key)))
}

/// Reads an optional duration; the empty text is none.
fn optional_duration(text: &str) -> Result<Option<Duration>> {
    if text.is_empty() { Ok(None) } else { crate::time::parse_duration(text).map(Some) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_older_key_sets_the_option_of_today() {
        let mut config = Configuration::default();
        config.set("state.checkpoints.dir", "file:///tmp/c").unwrap();
        assert_eq!(config.get(options::CHECKPOINT_DIR).unwrap(), "file:///tmp/c");
        assert_eq!(config.iter().collect::<Vec<_>>(), [("execution.checkpointing.dir", "file:///tmp/c")]);
    }

    #[test]
    fn defaults_hold_until_something_is_set() {
        let mut config = Configuration::default();
        assert_eq!(config.get(options::MAX_PARALLELISM).unwrap(), 128);
        assert!(!config.is_set(options::MAX_PARALLELISM));
        config.set_pair("pipeline.max-parallelism = 64").unwrap();
        assert_eq!(config.get(options::MAX_PARALLELISM).unwrap(), 64);
        let mut over = Configuration::default();
        over.set("pipeline.max-parallelism", "32").unwrap();
        config.extend(&over);
        assert_eq!(config.get(options::MAX_PARALLELISM).unwrap(), 32);
    }

    #[test]
    fn every_default_is_a_value_that_its_option_can_have() {
        for option in options::all() {
            (option.check)(option.default).unwrap_or_else(|error| panic!("{}: {error}", option.key));
            if let Some(alias) = option.alias {
                assert_eq!(options::find(alias).map(|found| found.key), Some(option.key));
            }
        }
    }

    fn refused(result: Result<impl Sized>, message: &str) {
        match result {
            Ok(_) => panic!("must be refused: {message}"),
            Err(error) => assert_eq!(error.to_string(), message),
        }
    }

    #[test]
    fn an_unknown_key_is_refused_with_the_nearest() {
        let mut config = Configuration::default();
        refused(config.set("rest.prot", "1"), "unknown configuration key 'rest.prot': did you mean 'rest.port'?");
        refused(config.set("x", "1"), "unknown configuration key 'x': `flott info --options` lists the known ones");
        refused(config.set_pair("rest.port"), "'rest.port' is not a setting: write -D key=value");
    }

    #[test]
    fn a_bad_value_is_refused_with_its_key() {
        let mut config = Configuration::default();
        refused(config.set("rest.port", "70000"), "rest.port: '70000' is not a port: the range is 0 to 65535");
        refused(
            config.set("pipeline.max-parallelism", "40000"),
            "pipeline.max-parallelism: 40000 key groups are too many: the most is 32768",
        );
        refused(
            config.set("state.backend.incremental", "yes"),
            "execution.checkpointing.incremental: 'yes' is neither true nor false",
        );
    }

    #[test]
    fn a_file_is_refused_with_file_and_line() {
        let config = Configuration::from_yaml("config.yaml", "rest:\n  port: 0 # free\n").unwrap();
        assert_eq!(config.get(options::REST_PORT).unwrap(), 0);
        refused(
            Configuration::from_yaml("config.yaml", "rest:\n  address: h\n  port: -1\n"),
            "config.yaml:3: rest.port: '-1' is not a port: the range is 0 to 65535",
        );
        refused(
            Configuration::from_yaml("config.yaml", "\nrest:\n  prot: 1\n"),
            "config.yaml:3: unknown configuration key 'rest.prot': did you mean 'rest.port'?",
        );
        refused(
            Configuration::from_yaml("config.yaml", "state.checkpoints.dir: a\nexecution.checkpointing.dir: b\n"),
            "config.yaml:2: 'execution.checkpointing.dir' is also given as 'state.checkpoints.dir': remove one",
        );
    }
}
