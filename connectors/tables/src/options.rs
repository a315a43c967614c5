//! What stands in `WITH (…)`: typed, and nothing of it passed over in silence.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;
use std::time::Duration;

use flott_core::{Error, Result};

/// The options of a table. Whoever reads one says what it knows; what nobody has asked for is refused at the end.
///
/// ```
/// use flott_tables::options::Options;
/// let options = Options::new("t", [("format", "json"), ("json.ignore-parse-error", "true")]);
/// assert_eq!(options.required("format").unwrap(), "json");
/// assert!(!options.flag("json.ignore-parse-errors", false).unwrap());
/// let error = options.finish().unwrap_err().to_string();
/// assert!(error.contains("'json.ignore-parse-error'") && error.contains("'json.ignore-parse-errors'"), "{error}");
/// ```
#[derive(Clone, Debug)]
pub struct Options {
    table: String,
    values: BTreeMap<String, String>,
    known: RefCell<BTreeSet<String>>,
}

impl Options {
    /// The options of this table.
    pub fn new<K: Into<String>, V: Into<String>>(
        table: impl Into<String>,
        values: impl IntoIterator<Item = (K, V)>,
    ) -> Self {
        let values = values.into_iter().map(|(key, value)| (key.into(), value.into())).collect();
        Self { table: table.into(), values, known: RefCell::default() }
    }

    /// The table's name.
    pub fn table(&self) -> &str {
        &self.table
    }

    /// An option's text.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.known.borrow_mut().insert(key.to_owned());
        self.values.get(key).map(String::as_str)
    }

    /// An option that has to be there.
    pub fn required(&self, key: &str) -> Result<&str> {
        self.get(key)
            .ok_or_else(|| Error::input(format!("table '{}' has no option '{key}': add it to WITH (…)", self.table)))
    }

    /// Reads an option's text.
    pub fn parsed<T>(&self, key: &str, what: &str, parse: impl FnOnce(&str) -> Option<T>) -> Result<Option<T>> {
        let Some(text) = self.get(key) else { return Ok(None) };
        parse(text.trim()).map(Some).ok_or_else(|| self.wrong(key, text, what))
    }

    /// A number, or anything else that can be read from text.
    pub fn number<T: FromStr>(&self, key: &str) -> Result<Option<T>> {
        self.parsed(key, "a number", |text| text.parse().ok())
    }

    /// `true` or `false`.
    pub fn flag(&self, key: &str, default: bool) -> Result<bool> {
        let parse = |text: &str| match text.to_ascii_lowercase().as_str() {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        };
        Ok(self.parsed(key, "true or false", parse)?.unwrap_or(default))
    }

    /// One of some names, in any case.
    pub fn choice<T: Copy>(&self, key: &str, choices: &[(&str, T)]) -> Result<Option<T>> {
        let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
        let find =
            |text: &str| choices.iter().find(|(name, _)| name.eq_ignore_ascii_case(text)).map(|(_, value)| *value);
        self.parsed(key, &format!("one of {}", names.join(", ")), find)
    }

    /// A single ASCII character; `\t` and the like may be written so.
    pub fn character(&self, key: &str) -> Result<Option<u8>> {
        self.parsed(key, "a single ASCII character", |_| None::<u8>).or_else(|_| {
            let text = self.get(key).unwrap_or_default();
            match text {
                "\\t" => Ok(Some(b'\t')),
                "\\n" => Ok(Some(b'\n')),
                "\\r" => Ok(Some(b'\r')),
                _ if text.len() == 1 && text.is_ascii() => Ok(Some(text.as_bytes()[0])),
                _ => Err(self.wrong(key, text, "a single ASCII character")),
            }
        })
    }

    /// A length of time such as `5 s`.
    pub fn duration(&self, key: &str) -> Result<Option<Duration>> {
        self.parsed(key, "a length of time such as '10 s' or '1 min'", |text| {
            flott_core::time::parse_duration(text).ok()
        })
    }

    /// An amount of memory such as `128 mb`, in bytes.
    pub fn bytes(&self, key: &str) -> Result<Option<u64>> {
        self.parsed(key, "an amount of memory such as '128 mb'", |text| flott_core::memory::parse_bytes(text).ok())
    }

    /// That an option's value is wrong, and what it should be.
    pub fn wrong(&self, key: &str, text: &str, what: &str) -> Error {
        Error::input(format!("table '{}': option '{key}' is '{text}', and should be {what}", self.table))
    }

    /// Refuses what nobody has asked for.
    pub fn finish(&self) -> Result<()> {
        let known = self.known.borrow();
        let Some(unknown) = self.values.keys().find(|key| !known.contains(*key)) else { return Ok(()) };
        let near = known.iter().min_by_key(|key| strsim::damerau_levenshtein(key, unknown));
        let hint = near.map(|near| format!("; the nearest that it has is '{near}'")).unwrap_or_default();
        Err(Error::input(format!("table '{}' has no option '{unknown}'{hint}", self.table)))
    }
}
