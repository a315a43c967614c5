//! Connectors of a program, whose tables are asked for rows by key.

use std::collections::BTreeMap;
use std::sync::Arc;

use flott_core::{Error, Result};
use flott_sql_runtime::operators::lookup_join::CacheOptions;
use flott_sql_runtime::operators::lookup_join::asked::AskedTable;
use flott_sql_runtime::spec::{LookupJoinSpec, SourceSpec};
use flott_tables::lookup::LookupConnector;
use flott_tables::options::Options;

use super::NAMES;
use crate::logical::Readable;
use crate::plan::Changelog;

/// How often the same is asked again, as in Flink.
const RETRIES_MAX: u32 = 3;

/// The connectors of a program whose tables are asked for rows by key, by name.
#[derive(Clone, Default)]
pub struct LookupConnectors(Arc<BTreeMap<String, Arc<dyn LookupConnector>>>);

impl LookupConnectors {
    /// The same, and another one.
    ///
    /// # Errors
    /// The name is taken, or empty.
    pub fn with(&self, name: &str, connector: Arc<dyn LookupConnector>) -> Result<Self> {
        if name.is_empty() {
            return Err(Error::input("a connector has a name, which tables give as their option 'connector'"));
        }
        if NAMES.contains(&name) || self.has(name) {
            return Err(Error::input(format!("there is a connector '{name}' already: take another name")));
        }
        let mut connectors = self.0.as_ref().clone();
        connectors.insert(name.to_owned(), connector);
        Ok(Self(Arc::new(connectors)))
    }

    /// Whether a connector is one of them.
    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// What a table of theirs is that is read, with its options checked; `None` if it is none of theirs.
    ///
    /// # Errors
    /// The options are wrong, or the connector has no such columns.
    pub fn readable(&self, spec: &SourceSpec) -> Result<Option<Readable>> {
        let Some((name, connector)) = self.of(spec) else { return Ok(None) };
        super::refuse_metadata(spec, name)?;
        let options = super::options(&spec.table, &spec.options);
        options.get("connector");
        Asking::read(&options)?;
        connector.check(&options, &spec.table_schema)?;
        options.finish()?;
        Ok(Some(Readable {
            changelog: Changelog::InsertOnly,
            is_lookup: true,
            is_scan: false,
            has_watermarks: false,
            takes_limit: false,
        }))
    }

    /// What an operator asks; `None` if the table is none of theirs.
    pub(super) fn open(&self, spec: &LookupJoinSpec) -> Result<Option<AskedTable>> {
        let table = &spec.table;
        let Some((_, connector)) = self.of(table) else { return Ok(None) };
        let options = super::options(&table.table, &table.options);
        let Asking { cache, retries_max } = Asking::read(&options)?;
        let schema = super::projected(table)?;
        let keys = super::projected(&SourceSpec { projection: spec.right_keys.clone(), ..table.clone() })?;
        let asked = connector.open(&options, Arc::clone(&keys), Arc::clone(&schema))?;
        Ok(Some(AskedTable { name: table.table.clone(), table: asked, keys, schema, retries_max, cache }))
    }

    fn of(&self, spec: &SourceSpec) -> Option<(&str, &dyn LookupConnector)> {
        let (name, connector) = self.0.get_key_value(spec.options.get("connector")?)?;
        Some((name.as_str(), connector.as_ref()))
    }
}

/// Flink's options of how any table is asked.
struct Asking {
    cache: Option<CacheOptions>,
    retries_max: u32,
}

impl Asking {
    fn read(options: &Options) -> Result<Self> {
        let is_cached = match options.get("lookup.cache") {
            None => false,
            Some(kind) if kind.eq_ignore_ascii_case("none") => false,
            Some(kind) if kind.eq_ignore_ascii_case("partial") => true,
            Some(kind) => {
                let instead = "NONE or PARTIAL: the table is asked for keys, and cannot be read as a whole";
                return Err(options.wrong("lookup.cache", kind, instead));
            }
        };
        let millis = |key: &str| -> Result<Option<u64>> {
            let time = options.duration(key)?;
            Ok(time.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX)))
        };
        let positive = |text: &str| text.parse::<usize>().ok().filter(|rows| *rows > 0);
        let rows_max = options.parsed("lookup.partial-cache.max-rows", "a number from 1", positive)?;
        let (missing, default) = ("lookup.partial-cache.cache-missing-key", CacheOptions::default());
        let cache = CacheOptions {
            rows_max: rows_max.unwrap_or(default.rows_max),
            expire_after_write_ms: millis("lookup.partial-cache.expire-after-write")?,
            expire_after_access_ms: millis("lookup.partial-cache.expire-after-access")?,
            caches_missing_keys: options.flag(missing, default.caches_missing_keys)?,
        };
        let retries_max = options.number("lookup.max-retries")?.unwrap_or(RETRIES_MAX);
        Ok(Self { cache: is_cached.then_some(cache), retries_max })
    }
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
    use flott_connector_spi::{Finding, LookUp};

    use super::*;

    /// Knows `url`, and gives nothing.
    struct Database;

    impl LookupConnector for Database {
        fn check(&self, options: &Options, _: &SchemaRef) -> Result<()> {
            options.required("url").map(drop)
        }

        fn open(&self, options: &Options, keys: SchemaRef, columns: SchemaRef) -> Result<Arc<dyn LookUp>> {
            assert_eq!(options.required("url")?, "db");
            let names =
                |schema: SchemaRef| schema.fields().iter().map(|field| field.name().clone()).collect::<Vec<_>>();
            assert_eq!((names(keys), names(columns)), (vec!["id".to_owned()], vec!["name".to_owned()]));
            Ok(Arc::new(Nothing))
        }
    }

    struct Nothing;

    impl LookUp for Nothing {
        fn look_up(&self, _: arrow::array::RecordBatch) -> Finding<'_> {
            Box::pin(async { Err(Error::system("nothing is there")) })
        }
    }

    fn spec(options: &[(&str, &str)]) -> LookupJoinSpec {
        let fields = [("id", DataType::Int64), ("name", DataType::Utf8)];
        let fields: Vec<Field> = fields.into_iter().map(|(name, kind)| Field::new(name, kind, true)).collect();
        let all = [("connector", "db"), ("url", "db")];
        let table = SourceSpec {
            table: "users".to_owned(),
            options: all.iter().chain(options).map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
            table_schema: Arc::new(Schema::new(fields)),
            metadata: BTreeMap::new(),
            partition_keys: Vec::new(),
            projection: vec![1],
            limit: None,
            filters: Vec::new(),
            is_batch: false,
        };
        LookupJoinSpec {
            table,
            left_keys: vec![0],
            right_keys: vec![0],
            is_left_outer: false,
            condition: None,
            is_insert_only: true,
            timeout_ms: 1000,
            requests_max: 1,
        }
    }

    fn connectors() -> LookupConnectors {
        LookupConnectors::default().with("db", Arc::new(Database)).unwrap()
    }

    #[test]
    fn options_of_flink_say_how_a_table_is_asked() {
        let open = |options: &[(&str, &str)]| {
            let spec = spec(options);
            let readable = connectors().readable(&spec.table).unwrap().unwrap();
            assert!(readable.is_lookup && !readable.is_scan);
            connectors().open(&spec).unwrap().unwrap()
        };
        let plain = open(&[]);
        assert_eq!((plain.cache, plain.retries_max), (None, 3));
        let cached = open(&[
            ("lookup.cache", "partial"),
            ("lookup.max-retries", "0"),
            ("lookup.partial-cache.max-rows", "7"),
            ("lookup.partial-cache.expire-after-write", "1 min"),
            ("lookup.partial-cache.expire-after-access", "10 s"),
            ("lookup.partial-cache.cache-missing-key", "false"),
        ]);
        let cache = CacheOptions {
            rows_max: 7,
            expire_after_write_ms: Some(60_000),
            expire_after_access_ms: Some(10_000),
            caches_missing_keys: false,
        };
        assert_eq!((cached.cache, cached.retries_max), (Some(cache), 0));
    }

    #[test]
    fn what_is_wrong_is_refused_when_the_table_is_planned() {
        let cases = [
            ("lookup.cache", "FULL", "NONE or PARTIAL"),
            ("lookup.partial-cache.max-rows", "0", "a number from 1"),
            ("lookup.max-retries", "some", "a number"),
            ("ulr", "db", "'url'"),
        ];
        for (option, value, reason) in cases {
            let error = connectors().readable(&spec(&[(option, value)]).table).unwrap_err().to_string();
            assert!(error.contains(option) && error.contains(reason) && error.contains("users"), "{error}");
        }
        for name in ["db", "filesystem", ""] {
            assert!(connectors().with(name, Arc::new(Database)).is_err());
        }
        let other = spec(&[("connector", "filesystem")]);
        assert!(connectors().readable(&other.table).unwrap().is_none() && connectors().open(&other).unwrap().is_none());
    }
}
