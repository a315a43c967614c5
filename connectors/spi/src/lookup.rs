//! Tables that are asked for rows by key.

use std::pin::Pin;

use arrow::array::RecordBatch;
use flott_core::Result;

/// What was found for a batch of keys.
#[derive(Clone, Debug)]
pub struct Found {
    /// The rows, with the columns that are wanted. Those of one key are passed on in the order that they have here.
    pub rows: RecordBatch,
    /// For each row the position of its key in the batch. A key without rows is in none of them.
    pub keys: Vec<u32>,
}

/// What is found, later.
pub type Finding<'a> = Pin<Box<dyn Future<Output = Result<Found>> + Send + 'a>>;

/// A table that can be asked for the rows of some keys, such as one of a database.
///
/// ```
/// use std::sync::Arc;
/// use arrow::array::{ArrayRef, AsArray, RecordBatch, StringArray};
/// use arrow::datatypes::Int64Type;
/// use flott_connector_spi::{Finding, Found, LookUp};
/// use flott_core::Error;
///
/// /// Small numbers have names.
/// struct Names;
///
/// impl LookUp for Names {
///     fn look_up(&self, keys: RecordBatch) -> Finding<'_> {
///         Box::pin(async move {
///             // A database would be asked here, for all of them at a time.
///             let numbers = keys.column(0).as_primitive::<Int64Type>().values();
///             let found = numbers.iter().enumerate().filter(|(_, number)| **number < 10);
///             let (keys, names): (Vec<u32>, Vec<String>) =
///                 found.map(|(key, number)| (key as u32, format!("no. {number}"))).unzip();
///             let names: ArrayRef = Arc::new(StringArray::from(names));
///             let rows = RecordBatch::try_from_iter([("name", names)]);
///             Ok(Found { rows: rows.map_err(|error| Error::system(error.to_string()))?, keys })
///         })
///     }
/// }
/// ```
pub trait LookUp: Send + Sync {
    /// Finds the rows of these keys. Each is there once, and no part of it is NULL. How many there are is for the table to cope
    /// with: it may divide them. Several batches may be under way at a time, and the same may be asked for again after a
    /// failure.
    ///
    /// It runs on the process's tokio runtime. When its time is over, the future is dropped.
    ///
    /// # Errors
    /// The table cannot be read. An error of [`ErrorKind::System`](flott_core::ErrorKind::System) may be over soon: then the
    /// same keys are asked for again, a few times.
    fn look_up(&self, keys: RecordBatch) -> Finding<'_>;
}
