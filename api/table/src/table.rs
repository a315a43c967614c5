//! [`Table`]: a query that is put together by calls.

use std::fmt;

use flott::DataStream;
use flott_chunk::RowKind;
use flott_core::{Data, Error, Result};
use flott_sql::parse::parse_query;
use flott_sql::session::Job;
use flott_sql::types::SqlType;

use crate::StreamTableEnvironment;
use crate::result::TableResult;
use crate::schema::quoted;
use crate::shape::Shape;
use crate::statement_set;
use crate::stream::to_records;

/// A query. Its methods take expressions of SQL, and give other queries; nothing runs before [`execute`](Self::execute),
/// [`execute_insert`](Self::execute_insert), or the program that its [data stream](Self::to_data_stream) is part of.
///
/// It can be named in SQL: `format!("SELECT * FROM {table}")`.
///
/// ```
/// use flott::prelude::*;
/// use flott_table::prelude::*;
///
/// # fn main() -> flott::Result<()> {
/// let tables = StreamTableEnvironment::create(&StreamExecutionEnvironment::new());
/// tables.set("execution.runtime-mode", "batch")?;
/// let orders = tables.sql_query("SELECT * FROM (VALUES ('ada', 3), ('bob', 1), ('ada', 4)) AS t (customer, items)")?;
/// let sums = orders.group_by("customer")?.select("customer, SUM(items) AS items")?.filter("items > 1")?;
/// let sums: Vec<(String, i32)> = sums.execute()?.collect()?;
/// assert_eq!(sums, [("ada".to_owned(), 7)]);
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Table {
    tables: StreamTableEnvironment,
    /// The view that it is.
    name: String,
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&quoted(&self.name))
    }
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Table").field(&self.name).finish()
    }
}

/// How rows of two tables are put together.
macro_rules! joins {
    ($($(#[doc = $doc:literal])+ $name:ident, $words:literal;)*) => {$(
        $(#[doc = $doc])+
        ///
        /// # Errors
        /// The condition is no expression over the columns of both, whose names differ.
        pub fn $name(&self, right: &Self, condition: &str) -> Result<Self> {
            self.tables.derived(&format!(concat!("SELECT * FROM {} ", $words, " {} ON {}"), self, right, condition))
        }
    )*};
}

/// All rows of two tables.
macro_rules! sets {
    ($($(#[doc = $doc:literal])+ $name:ident, $words:literal;)*) => {$(
        $(#[doc = $doc])+
        ///
        /// # Errors
        /// The columns differ.
        pub fn $name(&self, other: &Self) -> Result<Self> {
            self.tables.derived(&format!(concat!("SELECT * FROM {} ", $words, " SELECT * FROM {}"), self, other))
        }
    )*};
}

impl Table {
    pub(crate) fn new(tables: StreamTableEnvironment, name: String) -> Self {
        Self { tables, name }
    }

    /// Computes columns, or aggregates over all rows: what stands between SELECT and FROM.
    ///
    /// # Errors
    /// An expression is none, or names what is not there.
    pub fn select(&self, expressions: &str) -> Result<Self> {
        self.tables.derived(&format!("SELECT {expressions} FROM {self}"))
    }

    /// The rows for which a condition is true.
    ///
    /// # Errors
    /// It is no condition, or names what is not there.
    pub fn filter(&self, condition: &str) -> Result<Self> {
        self.tables.derived(&format!("SELECT * FROM {self} WHERE {condition}"))
    }

    /// Groups rows by columns or expressions, for aggregates.
    ///
    /// # Errors
    /// There is none.
    pub fn group_by(&self, keys: &str) -> Result<GroupedTable> {
        match keys.trim() {
            "" => Err(Error::input("group_by needs a column: select alone aggregates all rows")),
            keys => Ok(GroupedTable { table: self.clone(), keys: keys.to_owned() }),
        }
    }

    /// All columns, and computed ones behind them.
    ///
    /// # Errors
    /// As for [`Self::select`].
    pub fn add_columns(&self, expressions: &str) -> Result<Self> {
        self.select(&format!("*, {expressions}"))
    }

    /// The columns under other names, all of them in order.
    ///
    /// # Errors
    /// There are not as many.
    pub fn alias(&self, names: &[&str]) -> Result<Self> {
        let names: Vec<String> = names.iter().map(|name| quoted(name)).collect();
        self.tables.derived(&format!("SELECT * FROM {self} AS t ({})", names.join(", ")))
    }

    /// Each row once.
    ///
    /// # Errors
    /// Rows cannot be compared.
    pub fn distinct(&self) -> Result<Self> {
        self.select("DISTINCT *")
    }

    /// In an order: on streams, by ascending event time first.
    ///
    /// # Errors
    /// As for [`Self::select`].
    pub fn order_by(&self, order: &str) -> Result<Self> {
        self.tables.derived(&format!("SELECT * FROM {self} ORDER BY {order}"))
    }

    /// The first rows.
    ///
    /// # Errors
    /// None is expected.
    pub fn limit(&self, rows: u64) -> Result<Self> {
        self.tables.derived(&format!("SELECT * FROM {self} LIMIT {rows}"))
    }

    /// Each row with the rows that a table function gives for it: `words(line) AS w (word, length)`.
    ///
    /// # Errors
    /// The call is none of a table function.
    pub fn join_lateral(&self, call: &str) -> Result<Self> {
        self.tables.derived(&format!("SELECT * FROM {self}, {}", lateral(call)))
    }

    /// The same, with rows for which the function gives none.
    ///
    /// # Errors
    /// As for [`Self::join_lateral`].
    pub fn left_outer_join_lateral(&self, call: &str) -> Result<Self> {
        self.tables.derived(&format!("SELECT * FROM {self} LEFT JOIN {} ON TRUE", lateral(call)))
    }

    joins! {
        /// Pairs of rows for which a condition is true.
        join, "JOIN";
        /// The same, with rows of this table that have no partner.
        left_outer_join, "LEFT JOIN";
        /// The same, with rows of the other table that have no partner.
        right_outer_join, "RIGHT JOIN";
        /// The same, with rows of both that have no partner.
        full_outer_join, "FULL JOIN";
    }

    sets! {
        /// All rows of both.
        union_all, "UNION ALL";
        /// All rows of both, each once.
        union, "UNION";
        /// The rows that are in both, each once.
        intersect, "INTERSECT";
        /// The rows that are not in the other, each once.
        minus, "EXCEPT";
    }

    /// The names and types of the columns.
    ///
    /// # Errors
    /// What the query reads is not there any more.
    pub fn columns(&self) -> Result<Vec<(String, String)>> {
        let query = parse_query(&self.query())?;
        let schema = self.tables.inner.borrow().session.schema(&query)?;
        let typed = |field: &arrow::datatypes::FieldRef| {
            let of = SqlType::from_field(field).map_err(Error::input)?;
            Ok((field.name().clone(), of.kind.to_string()))
        };
        schema.fields().iter().map(typed).collect()
    }

    /// Runs the query. Its rows are in the result.
    ///
    /// # Errors
    /// Streams cannot have it; or the job would run elsewhere, in a cluster.
    pub fn execute(&self) -> Result<TableResult> {
        self.tables.select(&self.job()?)
    }

    /// Writes the rows into a table, and waits for the end as [`execute_sql`](StreamTableEnvironment::execute_sql) does.
    ///
    /// # Errors
    /// The table is not there, or cannot be written with such rows; or the job failed.
    pub fn execute_insert(&self, into: &str) -> Result<TableResult> {
        self.tables.execute_sql(&statement_set::insert(into, self))
    }

    /// What the planner makes of the query.
    ///
    /// # Errors
    /// Streams cannot have it.
    pub fn explain(&self) -> Result<String> {
        self.tables.explain_sql(&self.query())
    }

    /// The rows as a data stream, part of the streams' program. Fields of the type are columns of the same name; those of a
    /// tuple are columns by position. Event time is the records' timestamps.
    ///
    /// # Errors
    /// Rows are updated: [`to_changelog_stream`](Self::to_changelog_stream) tells of it. Or the type has other columns.
    pub fn to_data_stream<T: Data>(&self) -> Result<DataStream<T>> {
        let job = self.job()?;
        if job.results.iter().any(|result| !result.is_insert_only) {
            return Err(Error::input(
                "the table's rows are updated as its inputs change, which a stream of rows does not tell: use to_changelog_stream",
            ));
        }
        self.stream::<T, T>(&job, |_, value| Ok(value))
    }

    /// The changes as a data stream, with the kind of each row.
    ///
    /// ```
    /// use flott::prelude::*;
    /// use flott_table::prelude::*;
    ///
    /// # fn main() -> flott::Result<()> {
    /// let env = StreamExecutionEnvironment::new();
    /// env.set_parallelism(1);
    /// let tables = StreamTableEnvironment::create(&env);
    /// let numbers = tables.from_data_stream(env.from_collection([1_i64, 2]))?;
    /// let sums = numbers.select("SUM(f0) AS total")?.to_changelog_stream::<i64>()?.collect();
    /// env.execute("sums")?;
    /// let sums: Vec<(RowKind, i64)> = sums.take();
    /// assert_eq!(sums.last().map(|change| change.1), Some(3));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The type has other columns.
    pub fn to_changelog_stream<T: Data>(&self) -> Result<DataStream<(RowKind, T)>> {
        self.stream::<(RowKind, T), T>(&self.job()?, |kind, value| Ok((kind, value)))
    }

    fn stream<T: Data, V: Data>(&self, job: &Job, join: fn(RowKind, V) -> Result<T>) -> Result<DataStream<T>> {
        let rowtime = match job.results.first().map(|result| &result.rowtimes[..]) {
            None | Some([]) => None,
            Some([only]) => Some(*only),
            Some(more) => {
                let names: Vec<&str> = more.iter().map(|&at| job.schema.field(at).name().as_str()).collect();
                return Err(Error::input(format!(
                    "the columns {} are all event time, and a record has one timestamp: CAST the others to TIMESTAMP(3)",
                    names.join(", ")
                )));
            }
        };
        let reader = Shape::of::<V>()?.reader(&job.schema)?;
        self.tables.stream_of(job, to_records(reader, rowtime, join))
    }

    fn query(&self) -> String {
        format!("SELECT * FROM {self}")
    }

    fn job(&self) -> Result<Job> {
        self.tables.inner.borrow().session.select(&parse_query(&self.query())?)
    }
}

/// A call of a table function, and what its columns are called, in FROM.
fn lateral(call: &str) -> String {
    // What the columns are called stands behind the parenthesis that closes the call.
    let mut depth = 0_i32;
    let end = call.char_indices().find_map(|(at, letter)| {
        depth += i32::from(letter == '(') - i32::from(letter == ')');
        (letter == ')' && depth == 0).then_some(at + 1)
    });
    let (call, alias) = call.split_at(end.unwrap_or(call.len()));
    format!("LATERAL TABLE({call}){alias}")
}

/// A table whose rows are grouped.
#[derive(Clone, Debug)]
pub struct GroupedTable {
    table: Table,
    keys: String,
}

impl GroupedTable {
    /// Keys and aggregates of each group.
    ///
    /// # Errors
    /// An expression is none, or names a column that is no key outside of an aggregate.
    pub fn select(&self, expressions: &str) -> Result<Table> {
        self.table.tables.derived(&format!("SELECT {expressions} FROM {} GROUP BY {}", self.table, self.keys))
    }
}
