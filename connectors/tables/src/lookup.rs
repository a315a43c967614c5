//! Connectors whose tables are asked for rows by key.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use flott_connector_spi::LookUp;
use flott_core::Result;

use crate::options::Options;

/// A connector whose tables are asked for rows by key, such as those of a database: `JOIN t FOR SYSTEM_TIME AS OF …`.
///
/// The options are those of the table, but for `connector`, and for those of Flink that say how any table is looked up
/// (`lookup.…`). What a connector does not ask for is refused when the table is planned, with the nearest that it does.
pub trait LookupConnector: Send + Sync {
    /// Checks a table, when it is planned: `columns` are those of its declaration. It connects to nothing.
    ///
    /// # Errors
    /// An option is missing or wrong, or a column's type is none that the connector has.
    fn check(&self, options: &Options, columns: &SchemaRef) -> Result<()>;

    /// What a subtask asks, by these columns of the key, for these columns. It must not wait, so it connects when it is asked
    /// first.
    ///
    /// # Errors
    /// As for [`check`](LookupConnector::check).
    fn open(&self, options: &Options, keys: SchemaRef, columns: SchemaRef) -> Result<Arc<dyn LookUp>>;
}
