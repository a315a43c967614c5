//! `datagen`: rows that are made, with Flink's options.
//!
//! A row is a function of its number and of the names of table and column: a job makes the same rows each time, also when it
//! starts again, at any parallelism. In Flink, random fields are others each time. Times follow the rate from the first start
//! on, in place of the clock, for the same reason.

use std::collections::BTreeMap;

use arrow::array::ArrayRef;
use arrow::datatypes::SchemaRef;
use flott_chunk::{Chunk, batch_of};
use flott_core::hash::stable_hash;
use flott_core::time::Timestamp;
use flott_core::{Error, Result};
use flott_datagen::{MakeRows, RowsSource};
use flott_sql_runtime::spec::SourceSpec;

use field::{Field, FieldOptions, Positions};

mod field;

/// Flink's default of `rows-per-second`.
const ROWS_PER_SECOND: u64 = 10_000;

/// Makes the columns that are read.
#[derive(Debug)]
pub(super) struct DatagenTable {
    schema: SchemaRef,
    fields: Vec<Field>,
    rows_per_second: u64,
}

/// The rows that are made.
pub(super) fn source(spec: &SourceSpec) -> Result<RowsSource<DatagenTable>> {
    let options = super::scan_options(spec);
    super::refuse_metadata(spec, "datagen")?;
    let positive = |text: &str| text.parse::<u64>().ok().filter(|number| *number > 0);
    let rows_per_second = options.parsed("rows-per-second", "a number of at least 1", positive)?;
    let rows_per_second = rows_per_second.unwrap_or(ROWS_PER_SECOND);
    let mut count = options.number::<u64>("number-of-rows")?;
    let mut fields = BTreeMap::new();
    for (index, column) in spec.table_schema.fields().iter().enumerate() {
        let name = format!("fields.{}", column.name());
        let seed = stable_hash(&(spec.table.as_str(), column.name().as_str()));
        let field = Field::new(&FieldOptions { options: &options, name, seed }, column.data_type())?;
        count = [count, field.count()].into_iter().flatten().min();
        fields.insert(index, field);
    }
    options.finish()?;
    let fields = spec.projection.iter().map(|index| {
        let field = fields.remove(index);
        field.ok_or_else(|| Error::system(format!("table '{}': column {index} is read twice or not there", spec.table)))
    });
    let table =
        DatagenTable { schema: super::projected(spec)?, fields: fields.collect::<Result<_>>()?, rows_per_second };
    Ok(RowsSource::new(table).count(count).rows_per_second(Some(rows_per_second as f64)))
}

impl MakeRows for DatagenTable {
    type Item = Chunk;

    fn make(&self, start_ms: Timestamp, rows: &[u64]) -> Result<Chunk> {
        let rate = self.rows_per_second;
        // Whole seconds apart, so that no number of rows is too large.
        let time = |row: &u64| start_ms.saturating_add((row / rate) as i64 * 1000 + (row % rate * 1000 / rate) as i64);
        let times_ms: Vec<Timestamp> = rows.iter().map(time).collect();
        let positions = Positions { rows, times_ms: &times_ms };
        let arrays: Vec<ArrayRef> = self.fields.iter().map(|field| field.array(&positions)).collect::<Result<_>>()?;
        Ok(Chunk::inserts(batch_of(&self.schema, arrays, rows.len())?))
    }
}

#[cfg(test)]
mod tests;
