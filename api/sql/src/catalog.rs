//! What names mean: catalogs, databases, tables, views and functions.
//!
//! Names are as they were written: `Orders` and `orders` are two tables. Functions and keywords are not so.

mod alter;
pub mod define;
mod space;
mod table;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use datafusion::logical_expr::{AggregateUDF, ScalarUDF};
use datafusion::sql::sqlparser::ast::Query;
use flott_core::{Error, Result};

pub use alter::alter;
pub use space::Catalog;
pub use table::{Column, ColumnKind, Table, Watermark};

/// Where an object is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Path {
    /// The catalog.
    pub catalog: String,
    /// The database in it.
    pub database: String,
    /// The object in that.
    pub name: String,
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.catalog, self.database, self.name)
    }
}

/// What rows can be read from.
#[derive(Clone, Debug)]
pub enum Relation {
    /// A table.
    Table(Arc<Table>),
    /// A view.
    View(Arc<View>),
}

/// A query with a name.
#[derive(Clone, Debug, PartialEq)]
pub struct View {
    /// The query. What it names without a catalog is in `catalog` and `database`.
    pub query: Box<Query>,
    /// Names of its columns, the query's if there are none.
    pub columns: Vec<String>,
    /// `COMMENT 'c'`.
    pub comment: Option<String>,
    /// The catalog that was in use when it was created.
    pub catalog: String,
    /// The database that was.
    pub database: String,
}

/// A function of the user's program.
#[derive(Clone, Debug)]
pub enum UserFunction {
    /// From values to a value.
    Scalar(Arc<ScalarUDF>),
    /// From rows to a value.
    Aggregate(Arc<AggregateUDF>),
    /// From values to rows: it returns an array, of rows if there are several columns.
    Table(Arc<ScalarUDF>),
}

/// What a program offers, by the identifiers that CREATE FUNCTION names.
pub type Implementations = BTreeMap<String, UserFunction>;

/// The candidate that looks most like `name`, if one does.
pub fn nearest<T: AsRef<str>>(name: &str, candidates: impl IntoIterator<Item = T>) -> Option<String> {
    let lower = name.to_lowercase();
    let distance = |candidate: &str| strsim::damerau_levenshtein(&candidate.to_lowercase(), &lower);
    let scored = candidates.into_iter().map(|candidate| (distance(candidate.as_ref()), candidate.as_ref().to_owned()));
    let (distance, found) = scored.min()?;
    (distance <= name.chars().count().div_ceil(3).max(1)).then_some(found)
}

/// "; did you mean 'x'?", if there is something like `name`.
pub fn suggestion<T: AsRef<str>>(name: &str, candidates: impl IntoIterator<Item = T>) -> String {
    nearest(name, candidates).map_or_else(String::new, |found| format!("; did you mean '{found}'?"))
}

fn unknown<T: AsRef<str>>(what: &str, name: &str, candidates: impl IntoIterator<Item = T>) -> Error {
    Error::input(format!("there is no {what} '{name}'{}", suggestion(name, candidates)))
}

fn exists<T>(what: &str, name: impl fmt::Display) -> Result<T> {
    Err(Error::input(format!("the {what} '{name}' exists already: say IF NOT EXISTS, or DROP it first")))
}
