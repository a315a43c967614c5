//! Comparisons of what Arrow does not compare as Flink does: DOUBLE, numbers of different types, rows, arrays and maps.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, ListArray, UInt64Array};
use arrow::buffer::OffsetBuffer;
use arrow::compute::{and_kleene, take};
use arrow::datatypes::{DataType, Float64Type};
use arrow::row::{RowConverter, SortField};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::ScalarUDF;

use crate::cast::Cast;
use crate::define::{Call, Function, Takes, Types, convert};
use crate::types::coerce::{common_type, is_approximate};
use crate::types::name_of;

pub(crate) fn all() -> Vec<Arc<ScalarUDF>> {
    const BOTH: &[Takes] = &[Takes::Any, Takes::Any];
    let boolean = |of: &Types<'_>| common_type(&of.types).map(|_| DataType::Boolean);
    vec![
        Function::new("flink_equal", BOTH, boolean, equal).strict_within().make(),
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

/// Both arguments in the type that they are compared in.
fn sides(call: &Call<'_>) -> Result<(Vec<ArrayRef>, DataType)> {
    let (left, right) = (call.data_type(0), call.data_type(1));
    let common = common_type([left, right]).ok_or_else(|| {
        DataFusionError::Plan(format!("{} cannot be compared with {}", name_of(left), name_of(right)))
    })?;
    // Any FLOAT is a DOUBLE.
    let common = if is_approximate(&common) { DataType::Float64 } else { common };
    Ok((unified(call, &[0, 1], &common)?, common))
}

/// Whether the first two arguments are equal; unknown if one of them is NULL.
pub(crate) fn equal(call: &Call<'_>) -> Result<ArrayRef> {
    let (sides, _) = sides(call)?;
    Ok(Arc::new(equality(&sides[0], &sides[1])?))
}

/// Of arrays of one type. Rows are equal if each field is: unknown where a field is, unless another one says no.
fn equality(left: &ArrayRef, right: &ArrayRef) -> Result<BooleanArray> {
    let is_valid = |row: usize| left.is_valid(row) && right.is_valid(row);
    let each = |of: &dyn Fn(usize) -> Option<bool>| (0..left.len()).map(of).collect::<BooleanArray>();
    Ok(match left.data_type() {
        DataType::Float64 => {
            let (left, right) = (left.as_primitive::<Float64Type>(), right.as_primitive::<Float64Type>());
            each(&|row| is_valid(row).then(|| left.value(row) == right.value(row)))
        }
        DataType::Float32 => {
            let wide = |of: &ArrayRef| convert(of, &DataType::Float64);
            equality(&wide(left)?, &wide(right)?)?
        }
        DataType::Null => each(&|_| None),
        DataType::Struct(_) => {
            let mut same = each(&|_| Some(true));
            for (left, right) in left.as_struct().columns().iter().zip(right.as_struct().columns()) {
                same = and_kleene(&same, &equality(left, right)?)?;
            }
            each(&|row| (is_valid(row) && same.is_valid(row)).then(|| same.value(row)))
        }
        _ => {
            let keys = Keys::new(&[Arc::clone(left), Arc::clone(right)])?;
            each(&|row| is_valid(row).then(|| keys.get(0, row) == keys.get(1, row)))
        }
    })
}

fn compare(call: &Call<'_>, of: impl Fn(Option<Ordering>) -> bool) -> Result<ArrayRef> {
    let (sides, common) = sides(call)?;
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

/// Arrow orders no maps: their entries as a list, in the order of the keys, since a map has none.
fn without_maps(array: &ArrayRef) -> Result<ArrayRef> {
    match array.data_type() {
        DataType::Map(entries, _) => {
            let map = array.as_map();
            let keys = Keys::new(&[Arc::clone(map.keys())])?;
            let (mut order, mut lengths) = (Vec::with_capacity(map.keys().len()), Vec::with_capacity(map.len()));
            for bounds in map.value_offsets().windows(2) {
                let from = order.len();
                order.extend(bounds[0] as u64..bounds[1] as u64);
                order[from..].sort_by(|left, right| keys.get(0, *left as usize).cmp(&keys.get(0, *right as usize)));
                lengths.push(order.len() - from);
            }
            let sorted = take(map.entries(), &UInt64Array::from(order), None)?;
            let lengths = OffsetBuffer::from_lengths(lengths);
            let list = ListArray::try_new(Arc::clone(entries), lengths, sorted, map.nulls().cloned())?;
            Ok(Arc::new(list))
        }
        _ => Ok(Arc::clone(array)),
    }
}
