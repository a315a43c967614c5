//! Functions whose results come later: scalar and table functions that ask a service.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use arrow::array::ArrayRef;
use arrow::datatypes::DataType;
use flott_core::{Error, Result};
use flott_sql_runtime::operators::async_calc::{AsyncFunction, Later};
use futures::future::{Either, select};
use futures::stream::{StreamExt, iter};

use super::aggregate::Parameters;
use super::value::{Returned, SqlValue};
use super::{Body, Function, Kind};

/// How many calls run at a time, and how long each may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AsyncOptions {
    /// How many calls of a subtask run at a time for a batch of rows; 10 by default.
    pub capacity: usize,
    /// How long a call may take before the job fails; 3 minutes by default.
    pub timeout: Duration,
}

impl Default for AsyncOptions {
    fn default() -> Self {
        Self { capacity: 10, timeout: Duration::from_secs(180) }
    }
}

/// A scalar function whose result is a future. Its parameters are a tuple, of one for one.
///
/// Rows stay in their order, and watermarks and checkpoints in their places among them. After a failure calls that were under
/// way are made again; the result of each row counts once. It is called in SELECT and WHERE.
///
/// ```
/// use std::time::Duration;
/// use flott::prelude::*;
/// use flott_table::functions::{AsyncOptions, async_scalar};
/// use flott_table::prelude::*;
///
/// async fn name_of((id,): (i64,)) -> flott::Result<Option<String>> {
///     // A service would be asked here.
///     Ok((id > 1).then(|| format!("customer {id}")))
/// }
///
/// # fn main() -> flott::Result<()> {
/// let tables = StreamTableEnvironment::create(&StreamExecutionEnvironment::new());
/// let options = AsyncOptions { capacity: 100, timeout: Duration::from_secs(5) };
/// tables.create_temporary_system_function("name_of", async_scalar(name_of, options))?;
/// let query = "SELECT id, name_of(id) FROM (VALUES (1), (2)) AS t (id)";
/// let names: Vec<(i32, Option<String>)> = tables.execute_sql(query)?.collect()?;
/// assert_eq!(names, [(1, None), (2, Some("customer 2".to_owned()))]);
/// # Ok(()) }
/// ```
pub fn async_scalar<Input, Output, Answer>(
    function: impl Fn(Input) -> Answer + Send + Sync + 'static,
    options: AsyncOptions,
) -> Function
where
    Input: Parameters + 'static,
    Output: Returned,
    Answer: Future<Output = Output> + Send + 'static,
{
    Function::new(
        asynchronous::<Input, Output, Answer>(function, options).map(|(body, running)| Kind::Async(body, running)),
    )
}

/// A table function whose result is a future of a `Vec` of rows. See [`async_scalar`], and [`table`](super::table) for how it is
/// called.
pub fn async_table<Input, Output, Answer>(
    function: impl Fn(Input) -> Answer + Send + Sync + 'static,
    options: AsyncOptions,
) -> Function
where
    Input: Parameters + 'static,
    Output: Returned,
    Answer: Future<Output = Output> + Send + 'static,
{
    let kind = asynchronous::<Input, Output, Answer>(function, options).and_then(|(body, running)| match body.result {
        DataType::List(_) => Ok(Kind::AsyncTable(body, running)),
        other => Err(Error::input(format!("a table function gives a Vec of rows, not {other}"))),
    });
    Function::new(kind)
}

fn asynchronous<Input, Output, Answer>(
    function: impl Fn(Input) -> Answer + Send + Sync + 'static,
    options: AsyncOptions,
) -> Result<(Body, Arc<dyn AsyncFunction>)>
where
    Input: Parameters + 'static,
    Output: Returned,
    Answer: Future<Output = Output> + Send + 'static,
{
    if options.capacity == 0 {
        return Err(Error::input("with a capacity of 0 it is never called"));
    }
    let body = Body {
        arguments: Input::types()?,
        result: Output::Value::data_type()?,
        evaluate: Arc::new(|_, _| {
            Err(Error::input("it is asynchronous: call it in SELECT or WHERE of a query, with what depends on a row"))
        }),
    };
    let call = move |arguments: &[ArrayRef], rows: usize| -> Result<Later> {
        let (mut columns, nulls) = Input::columns(arguments)?;
        let mut answers = Vec::with_capacity(rows);
        for row in 0..rows {
            let is_called = nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
            // A future that nobody polls does nothing, so this starts no call.
            answers.push(is_called.then(|| Input::get(arguments, &mut columns, row).map(&function)).transpose()?);
        }
        Ok(Box::pin(async move {
            let answers = iter(answers).map(|answer| async move {
                match answer {
                    None => Ok(None),
                    Some(answer) => in_time(answer, options.timeout).await?.value(),
                }
            });
            let mut answers = pin!(answers.buffered(options.capacity));
            let mut values = Vec::with_capacity(rows);
            while let Some(answer) = answers.next().await {
                values.push(answer?);
            }
            let mut results = Output::Value::builder(rows)?;
            values.into_iter().try_for_each(|value| Output::Value::append(&mut results, value))?;
            Output::Value::finish(results)
        }))
    };
    Ok((body, Arc::new(Calls(call))))
}

/// A call by its closure.
struct Calls<F>(F);

impl<F: Fn(&[ArrayRef], usize) -> Result<Later> + Send + Sync> AsyncFunction for Calls<F> {
    fn call(&self, arguments: &[ArrayRef], rows: usize) -> Result<Later> {
        (self.0)(arguments, rows)
    }
}

async fn in_time<T>(answer: impl Future<Output = T>, timeout: Duration) -> Result<T> {
    match select(pin!(answer), pin!(flott_env::sleep(timeout))).await {
        Either::Left((answer, _)) => Ok(answer),
        Either::Right(_) => Err(Error::user_code(format!(
            "a call has not ended within {timeout:?}: give it a longer timeout, or more capacity to what it asks"
        ))),
    }
}
