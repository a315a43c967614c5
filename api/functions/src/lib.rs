//! Flink SQL's scalar functions and operators, with Flink's results, as DataFusion functions.
//!
//! Every function that an expression of a plan may call is here, under one name that never changes, since compiled plans
//! refer to it: see [`all`].
mod addresses;
mod arithmetic;
pub mod builtins;
mod cast;
mod collections;
mod compare;
mod conditional;
mod decimal;
mod define;
mod digests;
mod edits;
mod json;
mod matching;
mod moment;
mod numeric;
mod partition_time;
mod patterns;
mod printf;
mod query_time;
mod strings;
mod temporal;
mod text;
mod type_names;
pub mod types;
mod urls;

use std::sync::Arc;

use arrow::array::ArrayRef;
use datafusion::logical_expr::ScalarUDF;

pub use partition_time::PartitionTime;
pub use query_time::at_query_start;

/// How values are shown: as a CAST to STRING shows them, instants in UTC.
///
/// # Errors
/// The type is none of Flink's.
pub fn texts(values: &ArrayRef) -> flott_core::Result<ArrayRef> {
    let cast = cast::Cast { zone: define::Zone::Offset(0), is_try: false };
    cast.show(values).map_err(|error| flott_core::Error::system(error.strip_backtrace()))
}

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
        edits::all(),
        json::all(),
        addresses::all(),
        printf::all(),
        type_names::all(),
    ]
    .concat()
}
