//! Flink SQL's scalar functions and operators, with Flink's results, as DataFusion functions.
//!
//! Every function that an expression of a plan may call is here, under one name that never changes, since compiled plans
//! refer to it: see [`all`].
mod arithmetic;
mod cast;
mod collections;
mod compare;
mod conditional;
mod decimal;
mod define;
mod digests;
mod json;
mod matching;
mod moment;
mod numeric;
mod patterns;
mod strings;
mod temporal;
mod text;
pub mod types;

use std::sync::Arc;

use datafusion::logical_expr::ScalarUDF;

/// All functions. SQL's `f` is named `f`, or `flink_f` if DataFusion has another one of that name.
pub fn all() -> Vec<Arc<ScalarUDF>> {
    [
        arithmetic::all(),
        cast::all(),
        compare::all(),
        conditional::all(),
        numeric::all(),
        strings::all(),
        temporal::all(),
        matching::all(),
        digests::all(),
        collections::all(),
        json::all(),
    ]
    .concat()
}
