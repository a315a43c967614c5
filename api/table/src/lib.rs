//! SQL and the Table API for programs in Rust: queries over tables and data streams, with functions of one's own.
//!
//! A [`StreamTableEnvironment`] stands beside a [`StreamExecutionEnvironment`](flott::StreamExecutionEnvironment):
//! statements of SQL define and fill tables, [`Table`]s are queries that are put together by calls, and both go to data
//! streams and back. With [`SqlEnvironment`] it is there without being created: `env.sql(…)`.
//!
//! ```
//! use flott::prelude::*;
//! use flott_table::functions::scalar;
//! use flott_table::prelude::*;
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Clone, Serialize, Deserialize)]
//! struct Order {
//!     customer: String,
//!     cents: i64,
//! }
//!
//! # fn main() -> flott::Result<()> {
//! let env = StreamExecutionEnvironment::new();
//! let tables = StreamTableEnvironment::create(&env);
//! tables.create_temporary_system_function("euros", scalar(|cents: i64| cents as f64 / 100.0))?;
//!
//! let orders = env.from_collection([
//!     Order { customer: "ada".to_owned(), cents: 250 },
//!     Order { customer: "bob".to_owned(), cents: 100 },
//! ]);
//! let orders = tables.from_data_stream(orders)?;
//! let large = orders.filter("cents > 200")?.select("customer, euros(cents) AS euros")?;
//! let large = large.to_data_stream::<(String, f64)>()?.collect();
//! env.execute("large orders")?;
//! assert_eq!(large.take(), [("ada".to_owned(), 2.5)]);
//! # Ok(()) }
//! ```
//!
//! - [`StreamTableEnvironment`]: names, settings, statements; [`SqlEnvironment`]: the same on the environment of streams
//! - [`Table`], [`GroupedTable`]: queries
//! - [`TableResult`]: what a statement answers; [`StatementSet`]: several INSERTs as one job
//! - [`functions`]: functions of a program
//! - [`lookup`]: connectors of a program, whose tables are asked for rows by key
//! - [`Schema`], [`ChangelogMode`]: how a data stream is a table

mod environment;
mod extension;
pub mod functions;
mod job;
pub mod lookup;
mod result;
mod schema;
mod shape;
mod statement_set;
mod stream;
mod table;

pub use arrow;
pub use environment::StreamTableEnvironment;
pub use extension::SqlEnvironment;
pub use flott_chunk::RowKind;
pub use result::{Changes, TableResult};
pub use schema::{Schema, SchemaBuilder};
pub use statement_set::StatementSet;
pub use stream::ChangelogMode;
pub use table::{GroupedTable, Table};

/// What most programs use.
pub mod prelude {
    pub use crate::{
        ChangelogMode, RowKind, Schema, SqlEnvironment, StatementSet, StreamTableEnvironment, Table, TableResult,
    };
}

/// The examples of the guide run.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/table-api.md")]
struct Guide;
