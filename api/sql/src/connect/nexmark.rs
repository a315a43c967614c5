//! `nexmark`: the events of the Nexmark suite, in one wide table.

use flott_core::Result;
use flott_datagen::RowsSource;
use flott_nexmark::{NexmarkConfig, NexmarkTable};
use flott_sql_runtime::spec::SourceSpec;

/// The events that are read.
pub(super) fn source(spec: &SourceSpec) -> Result<RowsSource<NexmarkTable>> {
    let options = super::scan_options(spec);
    super::refuse_metadata(spec, "nexmark")?;
    let config = NexmarkConfig::read(&options)?;
    options.finish()?;
    // All columns are checked, also those that are not read.
    NexmarkTable::new(&spec.table, &spec.table_schema, &config)?;
    let table = NexmarkTable::new(&spec.table, &super::projected(spec)?, &config)?;
    Ok(config.source(table))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use arrow::datatypes::{DataType, Field, Schema};
    use flott_connector_spi::{Boundedness, Source};

    use super::*;

    fn spec(options: &[(&str, &str)]) -> SourceSpec {
        let bid = DataType::Struct(vec![Field::new("price", DataType::Int64, true)].into());
        SourceSpec {
            table: "events".to_owned(),
            options: options.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
            table_schema: Arc::new(Schema::new(vec![
                Field::new("event_type", DataType::Int32, true),
                Field::new("bid", bid, true),
            ])),
            metadata: BTreeMap::new(),
            partition_keys: Vec::new(),
            projection: vec![1],
            limit: None,
            filters: Vec::new(),
            is_batch: false,
        }
    }

    #[test]
    fn options_of_the_suite_are_taken_and_others_refused() {
        let suite = [
            ("connector", "nexmark"),
            ("first-event.rate", "10000000"),
            ("next-event.rate", "10000000"),
            ("events.num", "100"),
            ("person.proportion", "1"),
            ("auction.proportion", "3"),
            ("bid.proportion", "46"),
            ("scan.parallelism", "2"),
        ];
        assert_eq!(source(&spec(&suite)).unwrap().boundedness(), Boundedness::Bounded);
        assert_eq!(source(&spec(&[("connector", "nexmark")])).unwrap().boundedness(), Boundedness::Unbounded);
        let error = source(&spec(&[("connector", "nexmark"), ("event.num", "1")])).err().unwrap().to_string();
        assert!(error.contains("'event.num'") && error.contains("'events.num'"), "{error}");
    }
}
