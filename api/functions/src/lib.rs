//! Flink SQL's scalar functions and operators, with Flink's results, as DataFusion functions.
//!
//! Every function that an expression of a plan may call is here, under one name that never changes, since compiled plans
//! refer to it: see [`all`].
pub mod types;

use std::sync::Arc;

use datafusion::logical_expr::ScalarUDF;

/// All functions.
pub fn all() -> Vec<Arc<ScalarUDF>> {
    Vec::new()
}
