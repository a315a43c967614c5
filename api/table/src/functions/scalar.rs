//! Scalar functions.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef};
use arrow::buffer::NullBuffer;
use arrow::datatypes::DataType;
use flott_core::{Error, Result, ResultExt};
use flott_sql::parse::parse_type;

use super::value::{Argument, Returned, SqlValue};
use super::{Body, Function, Kind};

/// What [`scalar`] takes: a closure over up to eight parameters.
pub trait ScalarFunction<Arguments>: Send + Sync + 'static {
    /// The types of its parameters.
    ///
    /// # Errors
    /// SQL has no such type.
    fn arguments() -> Result<Vec<DataType>>;

    /// The type of its result.
    ///
    /// # Errors
    /// SQL has no such type.
    fn result() -> Result<DataType>;

    /// Its result for each row.
    ///
    /// # Errors
    /// A call failed.
    fn evaluate(&self, columns: &[ArrayRef], rows: usize) -> Result<ArrayRef>;
}

/// A scalar function of a closure. Its parameters and its result are [`SqlValue`](super::SqlValue)s.
///
/// With NULL for a parameter that is no `Option` it is not called: the result is NULL. A result that is an `Err` fails the job.
///
/// ```
/// use flott::prelude::*;
/// use flott_table::functions::scalar;
/// use flott_table::prelude::*;
///
/// # fn main() -> flott::Result<()> {
/// let tables = StreamTableEnvironment::create(&StreamExecutionEnvironment::new());
/// tables.create_temporary_system_function("gross", scalar(|net: i64, percent: Option<i64>| {
///     net + net * percent.unwrap_or(19) / 100
/// }))?;
/// let rows: Vec<(i64, i64)> = tables.execute_sql("SELECT gross(100, 7), gross(100, NULL)")?.collect()?;
/// assert_eq!(rows, [(107, 119)]);
/// # Ok(()) }
/// ```
pub fn scalar<Arguments, F: ScalarFunction<Arguments>>(function: F) -> Function {
    let body = || {
        Ok(Kind::Scalar(Body {
            arguments: F::arguments()?,
            result: F::result()?,
            evaluate: Arc::new(move |columns, rows| function.evaluate(columns, rows)),
        }))
    };
    Function::new(body())
}

/// A scalar function over Arrow arrays, a batch at a time: the fast way where Arrow has a kernel. `arguments` and `result` are
/// types of SQL. NULLs are the function's own affair.
///
/// ```
/// use std::sync::Arc;
/// use flott::prelude::*;
/// use flott_table::arrow::array::{ArrayRef, AsArray};
/// use flott_table::arrow::datatypes::Int64Type;
/// use flott_table::functions::vectorized;
/// use flott_table::prelude::*;
///
/// # fn main() -> flott::Result<()> {
/// let tables = StreamTableEnvironment::create(&StreamExecutionEnvironment::new());
/// tables.create_temporary_system_function("twice", vectorized(&["BIGINT"], "BIGINT", |columns| {
///     let numbers = columns[0].as_primitive::<Int64Type>();
///     Ok(Arc::new(numbers.unary::<_, Int64Type>(|number| number * 2)) as ArrayRef)
/// }))?;
/// let rows: Vec<i64> = tables.execute_sql("SELECT twice(x) FROM (VALUES (1), (2)) AS t (x)")?.collect()?;
/// assert_eq!(rows, [2, 4]);
/// # Ok(()) }
/// ```
pub fn vectorized(
    arguments: &[&str],
    result: &str,
    function: impl Fn(&[ArrayRef]) -> Result<ArrayRef> + Send + Sync + 'static,
) -> Function {
    let body = || {
        let types = arguments.iter().map(|text| Ok(parse_type(text)?.to_arrow())).collect::<Result<Vec<_>>>()?;
        if types.is_empty() {
            return Err(Error::input(
                "a function over arrays has an argument at least: it could not tell how many rows there are",
            ));
        }
        Ok(Kind::Scalar(Body {
            arguments: types,
            result: parse_type(result).context("its result")?.to_arrow(),
            evaluate: Arc::new(move |columns, _| function(columns)),
        }))
    };
    Function::new(body())
}

/// The NULLs of an argument that a function is not called with.
pub(super) fn nulls_of<A: Argument>(column: &ArrayRef) -> Option<NullBuffer> {
    if A::TAKES_NULL { None } else { column.logical_nulls() }
}

/// The parameter of a row.
#[inline]
pub(super) fn parameter<A: Argument>(
    array: &ArrayRef,
    column: &mut <A::Value as SqlValue>::Column,
    row: usize,
) -> Result<A> {
    match A::TAKES_NULL && array.is_null(row) {
        true => A::of(None),
        false => A::of(Some(A::Value::get(column, row)?)),
    }
}

macro_rules! arities {
    ($($($name:ident $at:tt),*;)*) => {$(
        impl<Call, Output, $($name),*> ScalarFunction<($($name,)*)> for Call
        where
            Call: Fn($($name),*) -> Output + Send + Sync + 'static,
            Output: Returned,
            $($name: Argument,)*
        {
            fn arguments() -> Result<Vec<DataType>> {
                Ok(vec![$($name::Value::data_type()?),*])
            }

            fn result() -> Result<DataType> {
                Output::Value::data_type()
            }

            #[allow(non_snake_case, unused_variables, reason = "a parameter's column has the name of its type, and there may be none")]
            fn evaluate(&self, columns: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
                let nulls: Option<NullBuffer> = None;
                $(let nulls = NullBuffer::union(nulls.as_ref(), nulls_of::<$name>(&columns[$at]).as_ref());)*
                $(let mut $name = $name::Value::column(&columns[$at])?;)*
                let mut results = Output::Value::builder(rows)?;
                for row in 0..rows {
                    let value = match nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
                        true => None,
                        false => self($(parameter::<$name>(&columns[$at], &mut $name, row)?),*).value()?,
                    };
                    Output::Value::append(&mut results, value)?;
                }
                Output::Value::finish(results)
            }
        }
    )*};
}

arities! {
    ;
    A 0;
    A 0, B 1;
    A 0, B 1, C 2;
    A 0, B 1, C 2, D 3;
    A 0, B 1, C 2, D 3, E 4;
    A 0, B 1, C 2, D 3, E 4, G 5;
    A 0, B 1, C 2, D 3, E 4, G 5, H 6;
    A 0, B 1, C 2, D 3, E 4, G 5, H 6, I 7;
}
