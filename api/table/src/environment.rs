//! [`StreamTableEnvironment`]: where SQL and the Table API begin.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use flott::{DataStream, StreamExecutionEnvironment, embed};
use flott_core::{Data, Error, Result};
use flott_sql::connect::LookupConnectors;
use flott_sql::execute;
use flott_sql::parse::{self, Insert, Statement};
use flott_sql::session::{Answer, Session, SessionConfig};
use flott_sql_runtime::expr::Functions;
use flott_tables::lookup::LookupConnector;

use crate::RowKind;
use crate::functions::Function;
use crate::job;
use crate::result::TableResult;
use crate::schema::{Schema, quoted};
use crate::shape::Shape;
use crate::statement_set::StatementSet;
use crate::stream::{CHANGELOG, CONNECTOR, ChangelogMode, Records, STREAM, StreamConnectors, StreamTable};
use crate::table::Table;

/// Tables, views, functions and settings, and the statements that use them. A clone is the same environment.
///
/// ```
/// use flott::prelude::*;
/// use flott_table::prelude::*;
///
/// # fn main() -> flott::Result<()> {
/// let tables = StreamTableEnvironment::create(&StreamExecutionEnvironment::new());
/// tables.execute_sql("CREATE TEMPORARY VIEW numbers AS SELECT * FROM (VALUES (1), (2), (3)) AS t (n)")?;
/// let sums: Vec<(RowKind, i32)> = tables.sql_query("SELECT SUM(n) FROM numbers WHERE n > 1")?.execute()?.changes()?;
/// assert_eq!(sums.last().map(|sum| sum.1), Some(5));
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct StreamTableEnvironment {
    pub(crate) env: StreamExecutionEnvironment,
    pub(crate) inner: Rc<RefCell<Inner>>,
}

/// What the clones of an environment share.
pub(crate) struct Inner {
    pub(crate) session: Session,
    /// Those of SQL and of the program.
    pub(crate) functions: Functions,
    pub(crate) lookups: LookupConnectors,
    pub(crate) streams: Vec<Rc<dyn StreamTable>>,
    /// How many tables have been made that nobody gave a name.
    unnamed: usize,
}

impl Inner {
    fn new(env: &StreamExecutionEnvironment) -> Self {
        let config = env.config();
        // Each option was checked when it was set.
        let config = SessionConfig::new(config.iter()).unwrap_or_default();
        Self {
            session: Session::new(config).with_connectors(Arc::new(StreamConnectors::default())),
            functions: execute::functions().clone(),
            lookups: LookupConnectors::default(),
            streams: Vec::new(),
            unnamed: 0,
        }
    }
}

impl StreamTableEnvironment {
    /// Tables beside the streams of `env`. What has been set on that counts here too.
    pub fn create(env: &StreamExecutionEnvironment) -> Self {
        Self { env: env.clone(), inner: Rc::new(Inner::new(env).into()) }
    }

    /// The tables that `env` has itself: the same for all its clones, and whenever it is asked. What had been set on it when it
    /// was first asked counts here too. See [`SqlEnvironment`](crate::SqlEnvironment).
    pub fn of(env: &StreamExecutionEnvironment) -> Self {
        // Streams that are tables hold on to the program, and so it never ends: a process has few programs.
        let inner = embed::attached(env, || RefCell::new(Inner::new(env)));
        Self { env: env.clone(), inner }
    }

    /// Sets an option of SQL or of the engine, as `SET 'key' = 'value'` does. Of a key that does nothing a warning is printed to
    /// standard error.
    ///
    /// # Errors
    /// The option cannot have this value.
    pub fn set(&self, key: &str, value: &str) -> Result<&Self> {
        self.session_answer(&Statement::Set(Some((key.to_owned(), value.to_owned()))))?;
        Ok(self)
    }

    /// Gives queries a function under a name, in any case; see [`functions`](crate::functions). `CREATE FUNCTION f AS 'name'`
    /// gives it another name.
    ///
    /// # Errors
    /// The name is taken or is none, or the function's types are not in SQL.
    pub fn create_temporary_system_function(&self, name: &str, function: Function) -> Result<()> {
        let mut inner = self.inner.borrow_mut();
        let (planned, functions) = function.named(name, &inner.functions)?;
        inner.session.register(name, planned)?;
        inner.functions = functions;
        Ok(())
    }

    /// Gives SQL a connector whose tables are asked for rows by key, such as those of a database; see [`lookup`](crate::lookup).
    /// Tables name it as their option `connector`.
    ///
    /// # Errors
    /// The name is taken.
    pub fn create_temporary_lookup_connector(
        &self,
        name: &str,
        connector: impl LookupConnector + 'static,
    ) -> Result<()> {
        let mut inner = self.inner.borrow_mut();
        let lookups = inner.lookups.with(name, Arc::new(connector))?;
        inner.session.set_connectors(Arc::new(StreamConnectors { lookups: lookups.clone() }));
        inner.lookups = lookups;
        Ok(())
    }

    /// Executes one statement. An INSERT runs to its end, or until it is submitted if that was asked for (`-d`); the rows
    /// of a query are in the result.
    ///
    /// A statement that reads data streams runs with the program that was built on their environment so far, as
    /// [`execute`](StreamExecutionEnvironment::execute) does.
    ///
    /// # Errors
    /// It is no statement, or not possible; or the job failed.
    pub fn execute_sql(&self, statement: &str) -> Result<TableResult> {
        let statement = one_statement(statement)?;
        match self.session_answer(&statement)? {
            Answer::Done => Ok(TableResult::done()),
            Answer::Rows(rows) => Ok(TableResult::of_rows(rows)),
            Answer::Select(job) => self.select(&job),
            Answer::Insert(job) => self.insert(&job),
        }
    }

    /// What the session makes of a statement. Whatever is to be said of settings is printed.
    fn session_answer(&self, statement: &Statement) -> Result<Answer> {
        let mut inner = self.inner.borrow_mut();
        let answer = inner.session.execute(statement);
        job::warn(&inner.session.take_warnings());
        answer
    }

    /// The table that a query gives. It runs when something is done with the table.
    ///
    /// # Errors
    /// The text is no query, or names what is not there.
    pub fn sql_query(&self, query: &str) -> Result<Table> {
        match one_statement(query)? {
            Statement::Query(_) => self.derived(query),
            _ => Err(Error::input("sql_query takes a query: execute_sql takes other statements")),
        }
    }

    /// The table or view of a name: up to three parts, with dots between.
    ///
    /// # Errors
    /// There is none; the message has the nearest name.
    pub fn from(&self, name: &str) -> Result<Table> {
        let parts: Vec<String> = name.split('.').map(|part| quoted(part.trim_matches('`'))).collect();
        self.derived(&format!("SELECT * FROM {}", parts.join(".")))
    }

    /// Gives a table a name that SQL may use.
    ///
    /// # Errors
    /// The name is taken.
    pub fn create_temporary_view(&self, name: &str, table: &Table) -> Result<()> {
        self.run(&format!("CREATE TEMPORARY VIEW {} AS SELECT * FROM {table}", quoted(name)))
    }

    /// Takes the name of a table away.
    ///
    /// # Errors
    /// There is none.
    pub fn drop_temporary_view(&self, name: &str) -> Result<()> {
        self.run(&format!("DROP TEMPORARY VIEW {}", quoted(name)))
    }

    /// A data stream as a table: a column for each field of its type, or `f0`, `f1`, … for those of a tuple.
    ///
    /// # Errors
    /// Values of the type are no rows.
    pub fn from_data_stream<T: Data>(&self, stream: DataStream<T>) -> Result<Table> {
        self.from_data_stream_with(stream, &Schema::default())
    }

    /// The same, with a schema: types, computed columns, event time, a key.
    ///
    /// ```
    /// use std::time::Duration;
    /// use flott::prelude::*;
    /// use flott_table::prelude::*;
    ///
    /// # fn main() -> flott::Result<()> {
    /// let env = StreamExecutionEnvironment::new();
    /// let tables = StreamTableEnvironment::create(&env);
    /// let clicks = env.from_collection([("ada".to_owned(), 1_000_i64), ("bob".to_owned(), 3_000), ("ada".to_owned(), 11_000)]);
    /// let clicks = clicks.assign_timestamps_and_watermarks(WatermarkStrategy::monotonous(|click: &(String, i64)| click.1));
    /// let schema = Schema::builder()
    ///     .column_by_metadata("ts", "TIMESTAMP_LTZ(3)")
    ///     .watermark("ts", "SOURCE_WATERMARK()")
    ///     .build();
    /// let clicks = tables.from_data_stream_with(clicks, &schema)?;
    /// let windows = tables.sql_query(&format!(
    ///     "SELECT COUNT(*) FROM TABLE(TUMBLE(TABLE {clicks}, DESCRIPTOR(ts), INTERVAL '10' SECOND)) GROUP BY window_start, window_end"
    /// ))?;
    /// let counts: Vec<i64> = windows.execute()?.collect()?;
    /// assert_eq!(counts, [2, 1]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Values of the type are no rows, or the schema does not fit them.
    pub fn from_data_stream_with<T: Data>(&self, stream: DataStream<T>, schema: &Schema) -> Result<Table> {
        self.stream_table::<T, T>(stream, schema, ChangelogMode::InsertOnly, |value| (RowKind::Insert, value))
    }

    /// A stream of changes as a table: all four kinds.
    ///
    /// # Errors
    /// As for [`Self::from_data_stream`].
    pub fn from_changelog_stream<T: Data>(&self, stream: DataStream<(RowKind, T)>) -> Result<Table> {
        self.from_changelog_stream_with(stream, &Schema::default(), ChangelogMode::All)
    }

    /// The same, with a schema and which changes come. Upserts need a primary key.
    ///
    /// # Errors
    /// As for [`Self::from_data_stream_with`]; or upserts have no key.
    pub fn from_changelog_stream_with<T: Data>(
        &self,
        stream: DataStream<(RowKind, T)>,
        schema: &Schema,
        mode: ChangelogMode,
    ) -> Result<Table> {
        if mode == ChangelogMode::Upsert && !schema.has_primary_key() {
            return Err(Error::input("a stream of upserts has a primary key: name it in the schema"));
        }
        self.stream_table::<(RowKind, T), T>(stream, schema, mode, |record| record)
    }

    /// Several INSERTs that run as one job.
    pub fn create_statement_set(&self) -> StatementSet {
        StatementSet::new(self.clone())
    }

    /// The same as `EXPLAIN` of a statement.
    ///
    /// # Errors
    /// It is not possible.
    pub fn explain_sql(&self, statement: &str) -> Result<String> {
        let rows: Vec<String> = self.execute_sql(&format!("EXPLAIN {statement}"))?.collect()?;
        Ok(rows.concat())
    }

    fn stream_table<T: Data, V: Data>(
        &self,
        stream: DataStream<T>,
        schema: &Schema,
        mode: ChangelogMode,
        split: fn(T) -> (RowKind, V),
    ) -> Result<Table> {
        if !embed::is_of(&stream, &self.env) {
            return Err(Error::input("the data stream belongs to another environment than the tables"));
        }
        let shape = Shape::of::<V>()?;
        let definition = schema.definition(&shape.columns()?)?;
        let mut options = format!("'connector' = '{CONNECTOR}', '{CHANGELOG}' = '{}'", mode.option());
        if let Some(parallelism) = embed::parallelism_of(&stream) {
            // Changes stay in order where their stream has them.
            options.push_str(&format!(", 'scan.parallelism' = '{parallelism}'"));
        }
        let number = {
            let mut inner = self.inner.borrow_mut();
            inner.streams.push(Rc::new(Records { stream, shape, split }));
            inner.streams.len() - 1
        };
        let name = self.unnamed();
        self.run(&format!(
            "CREATE TEMPORARY TABLE {} {definition} WITH ({options}, '{STREAM}' = '{number}')",
            quoted(&name)
        ))?;
        Ok(Table::new(self.clone(), name))
    }

    /// The table of a query.
    pub(crate) fn derived(&self, query: &str) -> Result<Table> {
        let name = self.unnamed();
        self.run(&format!("CREATE TEMPORARY VIEW {} AS {query}", quoted(&name))).map_err(|error| {
            // The place would be in a statement that nobody wrote.
            Error {
                message: error.message.replace(&format!("CREATE TEMPORARY VIEW {} AS ", quoted(&name)), ""),
                ..error
            }
        })?;
        Ok(Table::new(self.clone(), name))
    }

    fn unnamed(&self) -> String {
        let mut inner = self.inner.borrow_mut();
        inner.unnamed += 1;
        format!("*anonymous_{}*", inner.unnamed)
    }

    /// Executes a statement that starts no job.
    fn run(&self, statement: &str) -> Result<()> {
        let statement = one_statement(statement)?;
        self.inner.borrow_mut().session.execute(&statement).map(drop)
    }

    /// The INSERT of a statement that is one.
    pub(crate) fn insert_of(statement: &str) -> Result<Insert> {
        match one_statement(statement)? {
            Statement::Insert(insert) => Ok(insert),
            _ => Err(Error::input("a statement set has INSERTs, and nothing else")),
        }
    }
}

fn one_statement(text: &str) -> Result<Statement> {
    let mut statements = parse::parse_script(text)?;
    match statements.len() {
        1 => Ok(statements.remove(0)),
        0 => Err(Error::input("there is no statement in the text")),
        more => Err(Error::input(format!("there are {more} statements in the text: execute one at a time"))),
    }
}
