//! Flink SQL: from scripts to compiled plans, and how they are run.
//!
//! - [`parse`]: statements; [`types`]: Flink's types and Arrow's; [`catalog`]: tables, views, functions
//! - [`logical`]: from queries to DataFusion's logical plans, with Flink's meaning
//! - [`plan`]: from logical plans to a [`CompiledPlan`](flott_sql_runtime::spec::CompiledPlan)
//! - [`session`]: what statements change and answer
//! - [`execute`]: from a compiled plan to a running job; [`connect`]: the connectors of tables; [`results`]: the rows of a
//!   SELECT; [`ship`]: a plan as arguments

pub mod catalog;
pub mod connect;
pub mod execute;
pub mod logical;
pub mod parse;
pub mod plan;
pub mod results;
pub mod session;
pub mod ship;

pub use flott_sql_functions::types;
