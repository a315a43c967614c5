//! Comparisons of what Arrow does not compare as Flink does: DOUBLE, numbers of different types, rows, arrays and maps.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{DataType, Float64Type};
use arrow::row::{RowConverter, SortField};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::ScalarUDF;

use crate::cast::Cast;
use crate::define::{Call, Function, Takes, Types};
use crate::types::coerce::{common_type, is_approximate};
use crate::types::name_of;

pub(crate) fn all() -> Vec<Arc<ScalarUDF>> {
    const BOTH: &[Takes] = &[Takes::Any, Takes::Any];
    let boolean = |of: &Types<'_>| common_type(&of.types).map(|_| DataType::Boolean);
    vec![
        Function::new("flink_equal", BOTH, boolean, |call| compare(call, |order| order == Some(Ordering::Equal)))
            .strict()
            .make(),
        Function::new("flink_less", BOTH, boolean, |call| compare(call, |order| order == Some(Ordering::Less)))
            .strict()
            .make(),
        Function::new("flink_less_or_equal", BOTH, boolean, |call| {
            compare(call, |order| matches!(order, Some(Ordering::Less | Ordering::Equal)))
        })
        .strict()
        .make(),
    ]
}

/// All arguments in the type that fits all.
pub(crate) fn unified(call: &Call<'_>, arguments: &[usize], to: &DataType) -> Result<Vec<ArrayRef>> {
    let cast = Cast { zone: call.zone, is_try: true };
    arguments.iter().map(|at| cast.cast(&call.array(*at)?, to)).collect()
}

fn compare(call: &Call<'_>, of: impl Fn(Option<Ordering>) -> bool) -> Result<ArrayRef> {
    let (left, right) = (call.data_type(0), call.data_type(1));
    let common = common_type([left, right]).ok_or_else(|| {
        DataFusionError::Plan(format!("{} cannot be compared with {}", name_of(left), name_of(right)))
    })?;
    // Any FLOAT is a DOUBLE.
    let common = if is_approximate(&common) { DataType::Float64 } else { common };
    let sides = unified(call, &[0, 1], &common)?;
    let is_valid = |row: usize| sides[0].is_valid(row) && sides[1].is_valid(row);
    if common == DataType::Float64 {
        let (left, right) = (sides[0].as_primitive::<Float64Type>(), sides[1].as_primitive::<Float64Type>());
        return call.make_bools(|row| is_valid(row).then(|| of(left.value(row).partial_cmp(&right.value(row)))));
    }
    let rows = Keys::new(&sides)?;
    call.make_bools(|row| is_valid(row).then(|| of(Some(rows.get(0, row).cmp(&rows.get(1, row))))))
}

/// Values as bytes that compare as they do; NULL is lowest.
pub(crate) struct Keys {
    sides: Vec<arrow::row::Rows>,
}

impl Keys {
    /// Of arrays of one type.
    pub(crate) fn new(arrays: &[ArrayRef]) -> Result<Self> {
        let plain = arrays.iter().map(|array| without_maps(array)).collect::<Result<Vec<_>>>()?;
        let of = plain.first().map_or(DataType::Null, |array| array.data_type().clone());
        let converter = RowConverter::new(vec![SortField::new(of)])?;
        let sides = plain.into_iter().map(|array| Ok(converter.convert_columns(&[array])?)).collect::<Result<_>>()?;
        Ok(Self { sides })
    }

    #[inline]
    pub(crate) fn get(&self, side: usize, row: usize) -> arrow::row::Row<'_> {
        self.sides[side].row(row)
    }
}

/// Arrow orders no maps: their entries as a list.
fn without_maps(array: &ArrayRef) -> Result<ArrayRef> {
    match array.data_type() {
        DataType::Map(entries, _) => {
            let map = array.as_map();
            let list = arrow::array::ListArray::try_new(
                Arc::clone(entries),
                map.offsets().clone(),
                Arc::new(map.entries().clone()),
                map.nulls().cloned(),
            )?;
            Ok(Arc::new(list))
        }
        _ => Ok(Arc::clone(array)),
    }
}
