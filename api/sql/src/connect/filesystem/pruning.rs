//! Files and row groups that are not read, because no row of them is wanted.
//!
//! Conditions are checked behind the source all the same. So whatever is not certain is read.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, RecordBatch};
use arrow::datatypes::{Field, Schema};
use datafusion::common::{Column, ScalarValue};
use datafusion::physical_optimizer::pruning::{PruningPredicate, PruningStatistics};
use flott_core::Result;
use flott_sql_runtime::expr::{Compiled, Functions};
use flott_sql_runtime::spec::SourceSpec;
use flott_tables::parquet::{RowGroups, Statistics};

use super::layout::Reading;
use crate::connect::projected;

/// Whether rows of a folder are wanted, by a row that has its values.
pub(super) type Folders = Box<dyn Fn(&RecordBatch) -> Result<bool> + Send + Sync>;

/// The conditions over what is read.
fn conditions(spec: &SourceSpec, functions: &Functions) -> Result<Vec<Compiled>> {
    let schema = projected(spec)?;
    spec.filters.iter().map(|filter| filter.compile(&schema, functions)).collect()
}

/// The conditions that the names of folders alone decide; `None` if there are none.
pub(super) fn folders(spec: &SourceSpec, reading: &Reading, functions: &Functions) -> Result<Option<Folders>> {
    let mut decided = conditions(spec, functions)?;
    decided.retain(|condition| condition.columns().iter().all(|column| reading.is_key(*column)));
    if decided.is_empty() {
        return Ok(None);
    }
    Ok(Some(Box::new(move |row| {
        // One that fails does so where it is checked, with the message that it has there.
        let is_wanted = |condition: &Compiled| condition.mask(row).map_or(true, |mask| mask.value(0));
        Ok(decided.iter().all(is_wanted))
    })))
}

/// The row groups that can have rows for which all conditions are true.
pub(super) fn row_groups(spec: &SourceSpec, functions: &Functions) -> Option<RowGroups> {
    let schema = projected(spec).ok()?;
    let nullable = |field: &Arc<Field>| field.as_ref().clone().with_nullable(true);
    let schema = Arc::new(Schema::new(schema.fields().iter().map(nullable).collect::<Vec<_>>()));
    // A column of the file that is called like one of metadata says nothing of that.
    let is_metadata = |column: &usize| spec.metadata.contains_key(&spec.projection[*column]);
    let mut conditions = conditions(spec, functions).ok()?;
    conditions.retain(|condition| !condition.columns().iter().any(is_metadata));
    let predicate =
        |condition: &Compiled| PruningPredicate::try_new(Arc::clone(condition.physical()), schema.clone()).ok();
    let mut predicates: Vec<PruningPredicate> = conditions.iter().filter_map(predicate).collect();
    predicates.retain(|predicate| !predicate.always_true());
    if predicates.is_empty() {
        return None;
    }
    Some(Arc::new(move |statistics| {
        let mut is_wanted = vec![true; statistics.row_groups()];
        for predicate in &predicates {
            if let Ok(wanted) = predicate.prune(&OfRowGroups(statistics)) {
                is_wanted.iter_mut().zip(wanted).for_each(|(all, this)| *all &= this);
            }
        }
        Ok(is_wanted)
    }))
}

/// The statistics of row groups in DataFusion's form.
struct OfRowGroups<'a>(&'a dyn Statistics);

impl PruningStatistics for OfRowGroups<'_> {
    fn min_values(&self, column: &Column) -> Option<ArrayRef> {
        self.0.least(&column.name)
    }

    fn max_values(&self, column: &Column) -> Option<ArrayRef> {
        self.0.greatest(&column.name)
    }

    fn num_containers(&self) -> usize {
        self.0.row_groups()
    }

    fn null_counts(&self, column: &Column) -> Option<ArrayRef> {
        self.0.nulls(&column.name)
    }

    fn row_counts(&self) -> Option<ArrayRef> {
        self.0.rows()
    }

    fn contained(&self, _: &Column, _: &HashSet<ScalarValue>) -> Option<BooleanArray> {
        None
    }
}
