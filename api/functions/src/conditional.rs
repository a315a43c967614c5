//! IF, COALESCE and their kin, GREATEST and LEAST.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, new_null_array};
use arrow::compute::interleave;
use arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::logical_expr::ScalarUDF;

use crate::compare::{Keys, equal, unified};
use crate::define::{Call, Function, Takes, Types, is};
use crate::types::coerce::common_type;

pub(crate) fn all() -> Vec<Arc<ScalarUDF>> {
    use Takes::{Any, Bool};
    let common = |of: &Types<'_>| common_type(&of.types).filter(|of| *of != DataType::Null);
    let functions = vec![
        Function::new(
            "flink_if",
            &[Bool, Any, Any],
            |of| common_type(&of.types[1..]),
            |call| {
                let conditions = call.bools(0)?;
                choose(call, 1, |row| Some(if conditions.get(row) == Some(true) { 1 } else { 2 }))
            },
        ),
        Function::new("ifnull", &[Any, Any], common, coalesce),
        Function::new("flink_coalesce", &[Any], common, coalesce).variadic(),
        Function::new("flink_nullif", &[Any, Any], is::first, |call| {
            let same = equal(call)?;
            let same = same.as_boolean();
            choose(call, 0, |row| (same.is_null(row) || !same.value(row)).then_some(0))
        }),
        Function::new("flink_greatest", &[Any], common, |call| best(call, Ordering::Greater)).variadic().strict(),
        Function::new("flink_least", &[Any], common, |call| best(call, Ordering::Less)).variadic().strict(),
        Function::new("flink_is_null", &[Any], is::boolean, |call| {
            let of = call.array(0)?;
            call.make_bools(|row| Some(of.is_null(row)))
        })
        .never_null(),
    ];
    functions.into_iter().map(Function::make).collect()
}

/// For each row one of the arguments, by its number; from `first` on they are of one type.
pub(crate) fn choose(call: &Call<'_>, first: usize, of: impl Fn(usize) -> Option<usize>) -> Result<ArrayRef> {
    let all: Vec<_> = (first..call.columns.len()).collect();
    let wanted = if first == 0 && !call.has(2) { &all[..1] } else { &all[..] };
    let mut sources = match call.data_type(first) == call.returns && wanted.len() == 1 {
        true => vec![call.array(first)?],
        false => unified(call, &all, call.returns)?,
    };
    sources.push(new_null_array(call.returns, 1));
    let null = (sources.len() - 1, 0);
    let picks: Vec<_> = (0..call.rows).map(|row| of(row).map_or(null, |at| (at - first, row))).collect();
    let sources: Vec<&dyn Array> = sources.iter().map(|source| source.as_ref()).collect();
    Ok(interleave(&sources, &picks)?)
}

fn coalesce(call: &Call<'_>) -> Result<ArrayRef> {
    let all: Vec<_> = (0..call.columns.len()).collect();
    let sources = unified(call, &all, call.returns)?;
    let picks: Vec<_> =
        (0..call.rows).map(|row| (sources.iter().position(|source| source.is_valid(row)).unwrap_or(0), row)).collect();
    let sources: Vec<&dyn Array> = sources.iter().map(|source| source.as_ref()).collect();
    Ok(interleave(&sources, &picks)?)
}

/// NULL if any is.
fn best(call: &Call<'_>, wanted: Ordering) -> Result<ArrayRef> {
    let all: Vec<_> = (0..call.columns.len()).collect();
    let sources = unified(call, &all, call.returns)?;
    let keys = Keys::new(&sources)?;
    let pick = |row: usize| {
        if let Some(null) = sources.iter().position(|source| source.is_null(row)) {
            return (null, row);
        }
        let better = |found: usize, next: usize| {
            if keys.get(next, row).cmp(&keys.get(found, row)) == wanted { next } else { found }
        };
        ((1..sources.len()).fold(0, better), row)
    };
    let picks: Vec<_> = (0..call.rows).map(pick).collect();
    let sources: Vec<&dyn Array> = sources.iter().map(|source| source.as_ref()).collect();
    Ok(interleave(&sources, &picks)?)
}
