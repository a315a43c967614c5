//! Table functions.

use std::sync::Arc;

use arrow::datatypes::DataType;

use super::scalar::ScalarFunction;
use super::{Body, Function, Kind};
use flott_core::{Error, Result};

/// What [`table`] takes: a closure over up to eight parameters that gives a `Vec`.
pub trait TableFunction<Arguments>: ScalarFunction<Arguments> {}

impl<Arguments, F: ScalarFunction<Arguments>> TableFunction<Arguments> for F {}

/// A table function of a closure, whose result is a `Vec`: of values, or of [`Row`](super::Row)s with a column for each field.
///
/// With NULL for a parameter that is no `Option` it gives no rows.
///
/// ```
/// use flott::prelude::*;
/// use flott_table::functions::{Row, table};
/// use flott_table::prelude::*;
///
/// # fn main() -> flott::Result<()> {
/// let tables = StreamTableEnvironment::create(&StreamExecutionEnvironment::new());
/// tables.create_temporary_system_function("words", table(|text: String| {
///     text.split(' ').map(|word| Row((word.to_owned(), word.len() as i32))).collect::<Vec<_>>()
/// }))?;
/// let query = "SELECT word, length FROM (VALUES ('to be')) AS t (line), LATERAL TABLE(words(line)) AS w (word, length)";
/// let rows: Vec<(String, i32)> = tables.execute_sql(query)?.collect()?;
/// assert_eq!(rows, [("to".to_owned(), 2), ("be".to_owned(), 2)]);
/// # Ok(()) }
/// ```
pub fn table<Arguments, F: TableFunction<Arguments>>(function: F) -> Function {
    let body = || -> Result<Kind> {
        let result = F::result()?;
        if !matches!(result, DataType::List(_)) {
            return Err(Error::input(format!("a table function gives a Vec of rows, not {result}")));
        }
        Ok(Kind::Table(Body {
            arguments: F::arguments()?,
            result,
            evaluate: Arc::new(move |columns, rows| function.evaluate(columns, rows)),
        }))
    };
    Function::new(body())
}
