//! Arrays with an element more or less, and maps made of arrays and of maps.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, ListArray, MapArray, StructArray, UInt64Array};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute::{interleave, take};
use arrow::datatypes::{DataType, Field, Fields};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::ScalarUDF;

use crate::cast::Cast;
use crate::collections::{common, element, elements, last_of_each, offsets, pick};
use crate::compare::{Keys, unified};
use crate::define::{Call, Function, Takes, Types, is, user_error};
use crate::types::coerce::common_type;
use crate::types::map_of;

use Takes::{Any, Array as List, Map};

pub(crate) fn all() -> Vec<Arc<ScalarUDF>> {
    let functions = vec![
        Function::new("flink_array_append", &[List, Any], with_element, |call| insert(call, false)),
        Function::new("flink_array_prepend", &[List, Any], with_element, |call| insert(call, true)),
        Function::new(
            "flink_array_remove",
            &[List, Any],
            |of| with_element(of).and_then(|_| is::first(of)),
            |call| {
                let list = call.array(0)?;
                let values = elements(&list)?;
                let wanted = cast(call, values.data_type())?;
                let keys = Keys::new(&[values, wanted])?;
                pick(call, &[0], |row, _, sides| {
                    sides[0].clone().filter(|at| keys.get(0, *at) != keys.get(1, row)).collect()
                })
            },
        ),
        Function::new("map_from_arrays", &[List, List], map_type, map_from_arrays),
        Function::new("map_union", &[Map], common, map_union).variadic(),
    ];
    functions.into_iter().map(Function::make).collect()
}

/// The value must fit into the array as it is.
fn with_element(of: &Types<'_>) -> Option<DataType> {
    let field = element(&of.types[0])?;
    let is_fit = common_type([field.data_type(), &of.types[1]])? == *field.data_type();
    let is_nullable = field.is_nullable() || of.fields[1].is_nullable();
    is_fit.then(|| DataType::List(Arc::new(field.as_ref().clone().with_nullable(is_nullable))))
}

/// The second argument as elements of the first.
fn cast(call: &Call<'_>, to: &DataType) -> Result<ArrayRef> {
    Cast { zone: call.zone, is_try: true }.cast(&call.array(1)?, to)
}

fn insert(call: &Call<'_>, is_front: bool) -> Result<ArrayRef> {
    let field = element(call.returns).ok_or_else(|| DataFusionError::Internal("no array".to_owned()))?;
    let list = call.array(0)?;
    let (places, values) = (offsets(&list)?, elements(&list)?);
    let new = cast(call, values.data_type())?;
    let mut picks = Vec::with_capacity(values.len() + call.rows);
    let mut lengths = Vec::with_capacity(call.rows);
    for row in 0..call.rows {
        let before = picks.len();
        if list.is_valid(row) {
            if is_front {
                picks.push((1, row));
            }
            picks.extend((places[row]..places[row + 1]).map(|at| (0, at)));
            if !is_front {
                picks.push((1, row));
            }
        }
        lengths.push(picks.len() - before);
    }
    let values = interleave(&[values.as_ref(), new.as_ref()], &picks)?;
    let offsets = OffsetBuffer::from_lengths(lengths);
    Ok(Arc::new(ListArray::try_new(Arc::clone(field), offsets, values, list.nulls().cloned())?))
}

fn map_type(of: &Types<'_>) -> Option<DataType> {
    let (key, value) = (element(&of.types[0])?, element(&of.types[1])?);
    Some(map_of(key.data_type().clone(), value.as_ref().clone()))
}

/// The entries of maps of a type, and that it is sorted.
fn pair_of(of: &DataType) -> Result<(&Arc<Field>, &Fields, bool)> {
    if let DataType::Map(entries, is_sorted) = of
        && let DataType::Struct(pair) = entries.data_type()
    {
        return Ok((entries, pair, *is_sorted));
    }
    Err(DataFusionError::Internal(format!("{of} is no map")))
}

/// Maps of these entries, so many each.
fn maps(
    of: &DataType,
    keys: ArrayRef,
    values: ArrayRef,
    lengths: Vec<usize>,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef> {
    let (entries, pair, is_sorted) = pair_of(of)?;
    let pairs = StructArray::try_new(pair.clone(), vec![keys, values], None)?;
    Ok(Arc::new(MapArray::try_new(Arc::clone(entries), OffsetBuffer::from_lengths(lengths), pairs, nulls, is_sorted)?))
}

fn map_from_arrays(call: &Call<'_>) -> Result<ArrayRef> {
    let (keys, values) = (call.array(0)?, call.array(1)?);
    let (key_places, value_places) = (offsets(&keys)?, offsets(&values)?);
    let all_keys = elements(&keys)?;
    let (mut of_keys, mut of_values, mut lengths) = (Vec::new(), Vec::new(), Vec::with_capacity(call.rows));
    for row in 0..call.rows {
        if keys.is_null(row) || values.is_null(row) {
            lengths.push(0);
            continue;
        }
        let (keys, values) = (key_places[row]..key_places[row + 1], value_places[row]..value_places[row + 1]);
        if keys.len() != values.len() {
            let (keys, values) = (keys.len(), values.len());
            return Err(user_error(format!("MAP_FROM_ARRAYS has {keys} keys and {values} values: each key needs one")));
        }
        if keys.clone().any(|at| all_keys.is_null(at)) {
            return Err(user_error("MAP_FROM_ARRAYS has a key that is NULL: no map can hold it"));
        }
        lengths.push(keys.len());
        of_keys.extend(keys.map(|at| at as u64));
        of_values.extend(values.map(|at| at as u64));
    }
    let all_keys = take(&all_keys, &UInt64Array::from(of_keys), None)?;
    let all_values = take(&elements(&values)?, &UInt64Array::from(of_values), None)?;
    maps(call.returns, all_keys, all_values, lengths, NullBuffer::union(keys.nulls(), values.nulls()))
}

/// Of the entries with one key, the last one counts.
fn map_union(call: &Call<'_>) -> Result<ArrayRef> {
    let all: Vec<_> = (0..call.columns.len()).collect();
    let given = unified(call, &all, call.returns)?;
    let keys: Vec<ArrayRef> = given.iter().map(|map| Arc::clone(map.as_map().keys())).collect();
    let places = given.iter().map(offsets).collect::<Result<Vec<_>>>()?;
    let known = Keys::new(&keys)?;
    let (mut picks, mut lengths) = (Vec::new(), Vec::with_capacity(call.rows));
    let mut nulls = None;
    for map in &given {
        nulls = NullBuffer::union(nulls.as_ref(), map.nulls());
    }
    for row in 0..call.rows {
        if nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
            lengths.push(0);
            continue;
        }
        let entries =
            (0..given.len()).flat_map(|map| (places[map][row]..places[map][row + 1]).map(move |at| (map, at)));
        let kept = last_of_each(entries, |(map, at)| known.get(map, at));
        lengths.push(kept.len());
        picks.extend(kept);
    }
    let values: Vec<ArrayRef> = given.iter().map(|map| Arc::clone(map.as_map().values())).collect();
    let chosen = |of: &[ArrayRef]| interleave(&of.iter().map(AsRef::as_ref).collect::<Vec<&dyn Array>>(), &picks);
    maps(call.returns, chosen(&keys)?, chosen(&values)?, lengths, nulls)
}
