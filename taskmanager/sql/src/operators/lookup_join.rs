//! `LookupJoin`: each left row with the rows of a table as it is when the row comes.
//!
//! - [`whole`]: the table is read as a whole, and kept
//! - [`asked`]: it is asked for keys, such as one of a database; `cache` keeps what it has said
//!
//! Nothing of the table is state: after a restart it is read, or asked, again. Rows pass with their kinds, so a row that is taken
//! back may find other partners than it did when it came, as in Flink.

use arrow::datatypes::{Schema, SchemaRef};
use flott_core::{Error, Result};
use flott_operators::TaskContext;

use crate::expr::{ExprSpec, Functions};
use crate::operator::TableOperator;
use crate::spec::LookupJoinSpec;

pub mod asked;
mod cache;
mod pairing;
pub mod whole;

pub use cache::CacheOptions;

use asked::{AskedLookupJoin, AskedTable, Patience};
use whole::{WholeLookupJoin, WholeTable};

/// A table that rows are looked up in, in the way that its connector has.
pub enum LookupTable {
    /// It is read as a whole.
    Whole(WholeTable),
    /// It is asked for keys.
    Asked(AskedTable),
}

/// How left rows are joined.
pub struct LookupCondition<'a> {
    /// The columns of the left that are looked up by.
    pub left_keys: &'a [usize],
    /// Whether left rows without a match stay.
    pub is_left_outer: bool,
    /// What else pairs must fulfil; over the left columns, then the right ones.
    pub condition: Option<&'a ExprSpec>,
    /// The functions that it may call.
    pub functions: &'a Functions,
}

/// Makes the operator that joins rows of `left` with those of `table`.
///
/// # Errors
/// The types of the keys differ, or cannot be compared.
pub fn make(
    spec: &LookupJoinSpec,
    table: LookupTable,
    left: &SchemaRef,
    functions: &Functions,
    task: &TaskContext,
) -> Result<Box<dyn TableOperator>> {
    let on = LookupCondition {
        left_keys: &spec.left_keys,
        is_left_outer: spec.is_left_outer,
        condition: spec.condition.as_ref(),
        functions,
    };
    let (io, waker) = (task.io.clone(), task.waker.clone());
    Ok(match table {
        LookupTable::Whole(table) => Box::new(WholeLookupJoin::new(left, &on, table, io, waker)?),
        LookupTable::Asked(table) => Box::new(AskedLookupJoin::new(left, &on, table, Patience::from(spec), io, waker)?),
    })
}

/// That what is compared has one type.
fn check_keys<'a>(
    table: &str,
    left: &Schema,
    left_keys: &[usize],
    right_keys: impl Iterator<Item = &'a arrow::datatypes::Field>,
) -> Result<()> {
    for (left_key, right_field) in left_keys.iter().zip(right_keys) {
        let left_field = left.field(*left_key);
        if left_field.data_type() != right_field.data_type() {
            return Err(Error::input(format!(
                "'{table}' is looked up by '{}' of the type {}, and its column '{}' has the type {}: CAST one to the other's",
                left_field.name(),
                left_field.data_type(),
                right_field.name(),
                right_field.data_type()
            )));
        }
    }
    Ok(())
}
