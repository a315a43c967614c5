//! [`StatementSet`]: several INSERTs as one job.

use std::mem;

use flott_core::{Error, Result};
use flott_sql::parse::{Insert, Statement};
use flott_sql::session::Answer;

use crate::StreamTableEnvironment;
use crate::result::TableResult;
use crate::schema::quoted;
use crate::table::Table;

/// INSERTs that run as one job: what they have in common is computed once.
///
/// ```
/// use flott::prelude::*;
/// use flott_table::prelude::*;
///
/// # fn main() -> flott::Result<()> {
/// let tables = StreamTableEnvironment::create(&StreamExecutionEnvironment::new());
/// tables.execute_sql("CREATE TABLE nowhere (n INT) WITH ('connector' = 'blackhole')")?;
/// tables.execute_sql("CREATE TABLE elsewhere (n INT) WITH ('connector' = 'blackhole')")?;
/// let numbers = tables.sql_query("SELECT * FROM (VALUES (1), (2)) AS t (n)")?;
/// let set = tables.create_statement_set();
/// set.add_insert("nowhere", &numbers)?;
/// set.add_insert_sql(&format!("INSERT INTO elsewhere SELECT n + 1 FROM {numbers}"))?;
/// set.execute()?;
/// # Ok(()) }
/// ```
pub struct StatementSet {
    tables: StreamTableEnvironment,
    inserts: std::cell::RefCell<Vec<Insert>>,
}

impl StatementSet {
    pub(crate) fn new(tables: StreamTableEnvironment) -> Self {
        Self { tables, inserts: Vec::new().into() }
    }

    /// Adds an INSERT.
    ///
    /// # Errors
    /// The statement is none.
    pub fn add_insert_sql(&self, statement: &str) -> Result<&Self> {
        self.inserts.borrow_mut().push(StreamTableEnvironment::insert_of(statement)?);
        Ok(self)
    }

    /// Adds an INSERT of a table's rows into another table.
    ///
    /// # Errors
    /// The name is none.
    pub fn add_insert(&self, into: &str, table: &Table) -> Result<&Self> {
        self.add_insert_sql(&insert(into, table))
    }

    /// Runs them all. The set is empty then.
    ///
    /// # Errors
    /// A table cannot be written with such rows, or the job failed.
    pub fn execute(&self) -> Result<TableResult> {
        let inserts = mem::take(&mut *self.inserts.borrow_mut());
        if inserts.is_empty() {
            return Err(Error::input("the statement set has no INSERT"));
        }
        let answer = self.tables.inner.borrow_mut().session.execute(&Statement::StatementSet(inserts))?;
        match answer {
            Answer::Insert(job) => self.tables.insert(&job),
            _ => Err(Error::system("a statement set is no job")),
        }
    }
}

/// The INSERT of a table's rows into the table of a name of up to three parts.
pub(crate) fn insert(into: &str, table: &Table) -> String {
    let parts: Vec<String> = into.split('.').map(|part| quoted(part.trim_matches('`'))).collect();
    format!("INSERT INTO {} SELECT * FROM {table}", parts.join("."))
}
