//! Flink SQL: from scripts to compiled plans, and how they are run.
//!
//! - `parse`: statements; `types`: Flink's types and Arrow's; `catalog`: tables, views, functions
//! - `logical`: queries as DataFusion's logical plans, with Flink's meaning
//! - `plan`: from these to a [`CompiledPlan`](flott_sql_runtime::spec::CompiledPlan)
//! - `session`: what a script or a client has done so far, and how statements are executed
//! - [`ship`]: a plan as arguments; [`results`]: the rows of a SELECT

pub mod catalog;
pub mod connect;
pub mod logical;
pub mod parse;
pub mod plan;
pub mod results;
pub mod ship;

pub use flott_sql_functions::types;
