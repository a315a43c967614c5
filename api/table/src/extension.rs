//! [`SqlEnvironment`]: SQL on the environment of data streams itself.

use flott::{DataStream, StreamExecutionEnvironment};
use flott_core::{Data, Result};

use crate::{ChangelogMode, RowKind, Schema, StreamTableEnvironment, Table, TableResult};

/// SQL in one step: a [`StreamExecutionEnvironment`] has tables too, one [`StreamTableEnvironment`] for all its clones.
///
/// It is a trait since `flott` knows nothing of SQL: a job with data streams alone builds without a planner.
///
/// ```
/// use flott::prelude::*;
/// use flott_table::prelude::*;
///
/// # fn main() -> flott::Result<()> {
/// let env = StreamExecutionEnvironment::new();
/// env.execute_sql("CREATE TEMPORARY VIEW prices AS SELECT * FROM (VALUES ('chair', 12), ('table', 9)) AS t (item, price)")?;
/// let dear = env.sql("SELECT * FROM prices WHERE price > 10")?.select("UPPER(item)")?;
/// let dear = dear.to_data_stream::<String>()?.map(|item| format!("{item}!")).collect();
/// env.execute("dear")?;
/// assert_eq!(dear.take(), ["CHAIR!"]);
/// # Ok(()) }
/// ```
#[expect(clippy::wrong_self_convention, reason = "the names of the Table API")]
pub trait SqlEnvironment {
    /// The tables of this environment, with all else that they can do.
    fn tables(&self) -> StreamTableEnvironment;

    /// The table that a query gives: [`StreamTableEnvironment::sql_query`].
    ///
    /// # Errors
    /// The text is no query, or names what is not there.
    fn sql(&self, query: &str) -> Result<Table> {
        self.tables().sql_query(query)
    }

    /// Executes one statement: [`StreamTableEnvironment::execute_sql`].
    ///
    /// # Errors
    /// It is no statement, or not possible; or the job failed.
    fn execute_sql(&self, statement: &str) -> Result<TableResult> {
        self.tables().execute_sql(statement)
    }

    /// A data stream as a table: [`StreamTableEnvironment::from_data_stream`].
    ///
    /// # Errors
    /// Values of the type are no rows.
    fn from_data_stream<T: Data>(&self, stream: DataStream<T>) -> Result<Table> {
        self.tables().from_data_stream(stream)
    }

    /// The same, with a schema: [`StreamTableEnvironment::from_data_stream_with`].
    ///
    /// # Errors
    /// Values of the type are no rows, or the schema does not fit them.
    fn from_data_stream_with<T: Data>(&self, stream: DataStream<T>, schema: &Schema) -> Result<Table> {
        self.tables().from_data_stream_with(stream, schema)
    }

    /// A stream of changes as a table: [`StreamTableEnvironment::from_changelog_stream`].
    ///
    /// # Errors
    /// Values of the type are no rows.
    fn from_changelog_stream<T: Data>(&self, stream: DataStream<(RowKind, T)>) -> Result<Table> {
        self.tables().from_changelog_stream(stream)
    }

    /// The same, with a schema and which changes come: [`StreamTableEnvironment::from_changelog_stream_with`].
    ///
    /// # Errors
    /// Values of the type are no rows, the schema does not fit them, or upserts have no key.
    fn from_changelog_stream_with<T: Data>(
        &self,
        stream: DataStream<(RowKind, T)>,
        schema: &Schema,
        mode: ChangelogMode,
    ) -> Result<Table> {
        self.tables().from_changelog_stream_with(stream, schema, mode)
    }
}

impl SqlEnvironment for StreamExecutionEnvironment {
    fn tables(&self) -> StreamTableEnvironment {
        StreamTableEnvironment::of(self)
    }
}
