//! Functions of a program that its queries call.
//!
//! | | made with | called as |
//! |---|---|---|
//! | a value of values | [`scalar`], or [`vectorized`] over Arrow arrays | `f(x)` |
//! | a value of many rows | [`aggregate`] | `f(x)` with GROUP BY, in windows, OVER |
//! | rows of values | [`table`] | `LATERAL TABLE(f(x))` |
//! | a value, or rows, that come later | [`async_scalar`], [`async_table`] | `f(x)` in SELECT and WHERE, `LATERAL TABLE(f(x))` |
//!
//! A program registers them with
//! [`create_temporary_system_function`](crate::StreamTableEnvironment::create_temporary_system_function). Workers run the same
//! program, so they know them too.
//!
//! Which types parameters and results have, [`SqlValue`] says.

use std::fmt;
use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::DataType;
use datafusion::logical_expr::{AggregateUDF, ScalarUDF};
use flott_core::{Error, Result};
use flott_sql::catalog::UserFunction;
use flott_sql_runtime::aggregates::user::UserAggregate;
use flott_sql_runtime::expr::{Asynchronous, Functions};
use flott_sql_runtime::operators::async_calc::AsyncFunction;

mod aggregate;
mod asynchronous;
mod scalar;
mod table;
mod udf;
mod value;

pub use aggregate::{AggregateFunction, Parameters, aggregate};
pub use asynchronous::{AsyncOptions, async_scalar, async_table};
pub use scalar::{ScalarFunction, scalar, vectorized};
pub use table::{TableFunction, table};
pub use value::{Argument, Bytes, Date, Decimal, Returned, Row, SqlValue, Timestamp, TimestampLtz};

use aggregate::Udaf;
use udf::Udf;

/// Computes the results of a batch of calls.
pub(crate) type Evaluate = Arc<dyn Fn(&[ArrayRef], usize) -> Result<ArrayRef> + Send + Sync>;

/// A function, ready to be registered under a name.
#[derive(Clone)]
pub struct Function {
    kind: Kind,
    is_deterministic: bool,
}

#[derive(Clone)]
enum Kind {
    /// From values to a value.
    Scalar(Body),
    /// From values to rows: an array of them.
    Table(Body),
    /// From rows to a value.
    Aggregate(aggregate::Planned, Arc<dyn UserAggregate>),
    /// From values to a value that comes later.
    Async(Body, Arc<dyn AsyncFunction>),
    /// From values to rows that come later.
    AsyncTable(Body, Arc<dyn AsyncFunction>),
    /// It cannot be one: why.
    Broken(Error),
}

/// What a function takes and gives, and how.
#[derive(Clone)]
pub(crate) struct Body {
    pub arguments: Vec<DataType>,
    pub result: DataType,
    pub evaluate: Evaluate,
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            Kind::Scalar(_) => "a scalar function",
            Kind::Table(_) => "a table function",
            Kind::Async(..) => "an asynchronous function",
            Kind::AsyncTable(..) => "an asynchronous table function",
            Kind::Aggregate(..) => "an aggregate function",
            Kind::Broken(_) => "a function with a mistake",
        })
    }
}

impl Function {
    fn new(kind: Result<Kind>) -> Self {
        Self { kind: kind.unwrap_or_else(Kind::Broken), is_deterministic: true }
    }

    /// Says that the function may give another result for the same arguments, so that it is called for each row.
    #[must_use]
    pub fn non_deterministic(mut self) -> Self {
        self.is_deterministic = false;
        self
    }

    /// The function under a name: for the planner, and among those that operators call.
    pub(crate) fn named(self, name: &str, functions: &Functions) -> Result<(UserFunction, Functions)> {
        // What comes later is never computed beforehand.
        let is_deterministic = self.is_deterministic && !matches!(self.kind, Kind::Async(..) | Kind::AsyncTable(..));
        let made = |body| Arc::new(ScalarUDF::new_from_impl(Udf::new(name, body, is_deterministic)));
        Ok(match self.kind {
            Kind::Scalar(body) => {
                let made = made(body);
                (UserFunction::Scalar(Arc::clone(&made)), functions.with_scalar(made))
            }
            Kind::Table(body) => {
                let made = made(body);
                (UserFunction::Table(Arc::clone(&made)), functions.with_scalar(made))
            }
            Kind::Async(body, running) => {
                let made = Arc::new(Asynchronous::of(made(body)));
                (UserFunction::Scalar(Arc::clone(&made)), functions.with_async(made, running))
            }
            Kind::AsyncTable(body, running) => {
                let made = Arc::new(Asynchronous::of(made(body)));
                (UserFunction::Table(Arc::clone(&made)), functions.with_async(made, running))
            }
            Kind::Aggregate(planned, running) => {
                let udaf = AggregateUDF::new_from_impl(Udaf::new(name, planned));
                let functions = functions.with_aggregate(udaf.name(), running);
                (UserFunction::Aggregate(Arc::new(udaf)), functions)
            }
            Kind::Broken(error) => return Err(error.context(format!("the function '{name}'"))),
        })
    }
}
