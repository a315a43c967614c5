//! Arrays, maps and rows. An array function picks elements of what it is given, by place.

use std::cmp::Ordering;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, ListArray, MapArray, StructArray, UInt64Array, new_null_array};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute::{concat, take};
use arrow::datatypes::{DataType, Field, Fields, Int32Type};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::ScalarUDF;

use crate::cast::Cast;
use crate::compare::Keys;
use crate::define::{Call, Function, Takes, Types, is, user_error};
use crate::types::coerce::common_type;
use crate::types::{array_of, map_of};

use Takes::{Any, Array as List, Bool, Int, Map, Text};

pub(crate) fn all() -> Vec<Arc<ScalarUDF>> {
    let functions = vec![
        Function::new(
            "flink_array",
            &[Any],
            |of| {
                Some(array_of(Field::new(
                    "element",
                    common_type(&of.types)?,
                    of.fields.iter().any(|field| field.is_nullable()),
                )))
            },
            array,
        )
        .variadic()
        .never_null(),
        Function::new("flink_map", &[Any], map_type, map).least(2).variadic().never_null(),
        Function::new("flink_row", &[Any], row_type, row).variadic().never_null(),
        Function::new("flink_get_field", &[Any, Text], field_type, get_field),
        Function::new("flink_item", &[Any, Any], item_type, item),
        Function::new(
            "flink_cardinality",
            &[Any],
            |of| matches!(of.types[0], DataType::List(_) | DataType::Map(..)).then_some(DataType::Int32),
            |call| {
                let lengths = offsets(&call.array(0)?)?;
                let of = call.array(0)?;
                call.make::<Int32Type>(|row| of.is_valid(row).then(|| (lengths[row + 1] - lengths[row]) as i32))
            },
        )
        .strict(),
        Function::new("element", &[List], element_type, |call| {
            one(call, |range, _| match range.len() {
                0 => Ok(None),
                1 => Ok(Some(range.start)),
                count => Err(user_error(format!("ELEMENT of an array of {count}"))),
            })
        }),
        Function::new("flink_array_contains", &[List, Any], is::boolean, |call| {
            let found = position(call)?;
            call.make_bools(|row| found(row).map(|at| at > 0))
        }),
        Function::new("flink_array_position", &[List, Any], is::int, |call| {
            let found = position(call)?;
            let wanted = call.array(1)?;
            call.make::<Int32Type>(|row| found(row).filter(|_| wanted.is_valid(row)))
        }),
        Function::new("flink_array_distinct", &[List], is::first, |call| {
            pick(call, &[0], |_, keys, sides| {
                let mut seen = HashSet::new();
                sides[0].clone().filter(|at| seen.insert(keys.get(0, *at))).collect()
            })
        }),
        Function::new("flink_array_reverse", &[List], is::first, |call| {
            pick(call, &[0], |_, _, sides| sides[0].clone().rev().collect())
        }),
        Function::new("flink_array_concat", &[List], common, |call| {
            let all: Vec<_> = (0..call.columns.len()).collect();
            pick(call, &all, |_, _, sides| sides.iter().cloned().flatten().collect())
        })
        .variadic(),
        Function::new("flink_array_union", &[List, List], common, |call| {
            pick(call, &[0, 1], |_, keys, sides| {
                let mut seen = HashSet::new();
                sides.iter().cloned().flatten().filter(|at| seen.insert(keys.get(0, *at))).collect()
            })
        }),
        Function::new("flink_array_intersect", &[List, List], common, |call| {
            pick(call, &[0, 1], |_, keys, sides| {
                let other: HashSet<_> = sides[1].clone().map(|at| keys.get(0, at)).collect();
                let mut seen = HashSet::new();
                sides[0]
                    .clone()
                    .filter(|at| other.contains(&keys.get(0, *at)) && seen.insert(keys.get(0, *at)))
                    .collect()
            })
        }),
        Function::new("flink_array_except", &[List, List], common, |call| {
            pick(call, &[0, 1], |_, keys, sides| {
                let mut seen: HashSet<_> = sides[1].clone().map(|at| keys.get(0, at)).collect();
                sides[0].clone().filter(|at| seen.insert(keys.get(0, *at))).collect()
            })
        }),
        Function::new("flink_array_slice", &[List, Int, Int], is::first, |call| {
            let starts = call.ints(1)?;
            let ends = if call.has(2) { Some(call.ints(2)?) } else { None };
            let is_given =
                |row: usize| starts.get(row).is_some() && ends.as_ref().is_none_or(|ends| ends.get(row).is_some());
            pick_where(call, &[0], is_given, |row, _, sides| {
                let length = sides[0].len() as i64;
                let place = |at: i64| if at < 0 { at + length + 1 } else { at.max(1) };
                let start = place(starts.get(row).unwrap_or(1)).max(1);
                let end = ends.as_ref().map_or(length, |ends| place(ends.get(row).unwrap_or(length))).min(length);
                let first = sides[0].start;
                if start > end { Vec::new() } else { (first + start as usize - 1..first + end as usize).collect() }
            })
        })
        .least(2),
        Function::new("flink_array_sort", &[List, Bool, Bool], is::first, |call| {
            let ascending = if call.has(1) { Some(call.bools(1)?) } else { None };
            let nulls_first = if call.has(2) { Some(call.bools(2)?) } else { None };
            let elements = elements(&call.array(0)?)?;
            let is_given =
                |row: usize| [&ascending, &nulls_first].into_iter().flatten().all(|given| given.get(row).is_some());
            pick_where(call, &[0], is_given, |row, keys, sides| {
                let is_ascending = ascending.as_ref().and_then(|given| given.get(row)).unwrap_or(true);
                let is_first = nulls_first.as_ref().and_then(|given| given.get(row)).unwrap_or(is_ascending);
                let mut all: Vec<_> = sides[0].clone().collect();
                all.sort_by(|a, b| match (elements.is_null(*a), elements.is_null(*b)) {
                    (true, true) => Ordering::Equal,
                    (true, false) => {
                        if is_first {
                            Ordering::Less
                        } else {
                            Ordering::Greater
                        }
                    }
                    (false, true) => {
                        if is_first {
                            Ordering::Greater
                        } else {
                            Ordering::Less
                        }
                    }
                    _ if is_ascending => keys.get(0, *a).cmp(&keys.get(0, *b)),
                    _ => keys.get(0, *b).cmp(&keys.get(0, *a)),
                });
                all
            })
        })
        .least(1),
        Function::new("flink_array_max", &[List], element_type, |call| best(call, Ordering::Greater)),
        Function::new("flink_array_min", &[List], element_type, |call| best(call, Ordering::Less)),
        Function::new("flink_array_join", &[List, Text, Text], is::text, |call| {
            let array = call.array(0)?;
            let shown = Cast { zone: call.zone, is_try: true }.show(&elements(&array)?)?;
            let (shown, offsets) = (shown.as_string::<i32>(), offsets(&array)?);
            let separators = call.texts(1)?;
            let nulls = if call.has(2) { Some(call.texts(2)?) } else { None };
            call.make_texts(|row| {
                let null = match &nulls {
                    Some(nulls) => Some(nulls.get(row)?),
                    None => None,
                };
                let separator = separators.get(row)?;
                let text = |at: usize| if shown.is_valid(at) { Some(shown.value(at)) } else { null };
                let parts = (offsets[row]..offsets[row + 1]).filter_map(text);
                array.is_valid(row).then(|| parts.collect::<Vec<_>>().join(separator))
            })
        })
        .least(2),
        Function::new(
            "flink_map_keys",
            &[Map],
            |of| part_type(of, 0),
            |call| map_part(call, |map| Arc::clone(map.keys())),
        ),
        Function::new(
            "flink_map_values",
            &[Map],
            |of| part_type(of, 1),
            |call| map_part(call, |map| Arc::clone(map.values())),
        ),
        Function::new(
            "flink_map_entries",
            &[Map],
            |of| match &of.types[0] {
                DataType::Map(entries, _) => Some(array_of(Field::new("element", entries.data_type().clone(), false))),
                _ => None,
            },
            |call| map_part(call, |map| Arc::new(map.entries().clone())),
        ),
    ];
    functions.into_iter().map(Function::make).collect()
}

pub(crate) type Range = std::ops::Range<usize>;

pub(crate) fn element(of: &DataType) -> Option<&Arc<Field>> {
    match of {
        DataType::List(element) => Some(element),
        _ => None,
    }
}

fn element_type(of: &Types<'_>) -> Option<DataType> {
    Some(element(&of.types[0])?.data_type().clone())
}

pub(crate) fn common(of: &Types<'_>) -> Option<DataType> {
    common_type(&of.types)
}

pub(crate) fn elements(of: &ArrayRef) -> Result<ArrayRef> {
    Ok(match of.data_type() {
        DataType::List(_) => Arc::clone(of.as_list::<i32>().values()),
        DataType::Map(..) => Arc::new(of.as_map().entries().clone()),
        other => return Err(DataFusionError::Internal(format!("{other} has no elements"))),
    })
}

pub(crate) fn offsets(of: &ArrayRef) -> Result<Vec<usize>> {
    let offsets = match of.data_type() {
        DataType::List(_) => of.as_list::<i32>().value_offsets(),
        DataType::Map(..) => of.as_map().value_offsets(),
        other => return Err(DataFusionError::Internal(format!("{other} has no elements"))),
    };
    Ok(offsets.iter().map(|at| *at as usize).collect())
}

/// Arrays of elements of those given, by their place in all of them; NULL if one of the arrays is.
pub(crate) fn pick(
    call: &Call<'_>,
    of: &[usize],
    choose: impl Fn(usize, &Keys, &[Range]) -> Vec<usize>,
) -> Result<ArrayRef> {
    pick_where(call, of, |_| true, choose)
}

/// The same; NULL also in other rows than those.
fn pick_where(
    call: &Call<'_>,
    of: &[usize],
    is_given: impl Fn(usize) -> bool,
    choose: impl Fn(usize, &Keys, &[Range]) -> Vec<usize>,
) -> Result<ArrayRef> {
    let field = element(call.returns).ok_or_else(|| DataFusionError::Internal("no array".to_owned()))?;
    let cast = Cast { zone: call.zone, is_try: true };
    let lists = of.iter().map(|at| call.array(*at)).collect::<Result<Vec<_>>>()?;
    let sources =
        lists.iter().map(|list| cast.cast(&elements(list)?, field.data_type())).collect::<Result<Vec<_>>>()?;
    let starts: Vec<usize> =
        sources.iter().scan(0, |start, source| Some(std::mem::replace(start, *start + source.len()))).collect();
    let places = lists.iter().map(offsets).collect::<Result<Vec<_>>>()?;
    let all = concat(&sources.iter().map(|source| source.as_ref()).collect::<Vec<_>>())?;
    let keys = Keys::new(&[Arc::clone(&all)])?;
    let (mut picked, mut lengths, mut valid) =
        (Vec::new(), Vec::with_capacity(call.rows), Vec::with_capacity(call.rows));
    for row in 0..call.rows {
        let is_valid = is_given(row) && lists.iter().all(|list| list.is_valid(row));
        let before = picked.len();
        if is_valid {
            let range = |(start, places): (&usize, &Vec<usize>)| start + places[row]..start + places[row + 1];
            let ranges: Vec<_> = starts.iter().zip(&places).map(range).collect();
            picked.extend(choose(row, &keys, &ranges).into_iter().map(|at| at as u64));
        }
        lengths.push(picked.len() - before);
        valid.push(is_valid);
    }
    let values = take(&all, &UInt64Array::from(picked), None)?;
    let made = ListArray::try_new(
        Arc::clone(field),
        OffsetBuffer::from_lengths(lengths),
        values,
        Some(NullBuffer::from(valid)),
    )?;
    Ok(Arc::new(made))
}

/// One element of each array, or NULL.
fn one(call: &Call<'_>, choose: impl Fn(Range, usize) -> Result<Option<usize>>) -> Result<ArrayRef> {
    let list = call.array(0)?;
    let places = offsets(&list)?;
    let choice = |row: usize| match list.is_valid(row) {
        true => choose(places[row]..places[row + 1], row).map(|at| at.map(|at| at as u64)),
        false => Ok(None),
    };
    let picked = (0..call.rows).map(choice).collect::<Result<Vec<_>>>()?;
    Ok(take(&elements(&list)?, &UInt64Array::from(picked), None)?)
}

fn best(call: &Call<'_>, wanted: Ordering) -> Result<ArrayRef> {
    let all = elements(&call.array(0)?)?;
    let keys = Keys::new(&[Arc::clone(&all)])?;
    let better =
        |found: usize, next: usize| if keys.get(0, next).cmp(&keys.get(0, found)) == wanted { next } else { found };
    one(call, |range, _| Ok(range.filter(|at| all.is_valid(*at)).reduce(better)))
}

/// From 1; 0 if it is not there.
fn position<'a>(call: &'a Call<'_>) -> Result<impl Fn(usize) -> Option<i32> + 'a> {
    let list = call.array(0)?;
    let places = offsets(&list)?;
    let values = elements(&list)?;
    let common = common_type([values.data_type(), call.data_type(1)])
        .ok_or_else(|| DataFusionError::Plan("the array has no such elements".to_owned()))?;
    let cast = Cast { zone: call.zone, is_try: true };
    let keys = Keys::new(&[cast.cast(&values, &common)?, cast.cast(&call.array(1)?, &common)?])?;
    Ok(move |row: usize| {
        let found = (places[row]..places[row + 1]).position(|at| keys.get(0, at) == keys.get(1, row));
        list.is_valid(row).then(|| found.map_or(0, |at| at as i32 + 1))
    })
}

fn array(call: &Call<'_>) -> Result<ArrayRef> {
    let field = element(call.returns).ok_or_else(|| DataFusionError::Internal("no array".to_owned()))?;
    let values = side_by_side(call, 0, 1, field.data_type())?;
    let lengths = OffsetBuffer::from_lengths(vec![call.columns.len(); call.rows]);
    Ok(Arc::new(ListArray::try_new(Arc::clone(field), lengths, values, None)?))
}

/// Every `step`th argument from one on: all of a row, then all of the next.
fn side_by_side(call: &Call<'_>, first: usize, step: usize, of: &DataType) -> Result<ArrayRef> {
    let cast = Cast { zone: call.zone, is_try: true };
    let columns = (first..call.columns.len()).step_by(step).map(|at| cast.cast(&call.array(at)?, of));
    let columns = columns.collect::<Result<Vec<_>>>()?;
    let places: Vec<_> = (0..call.rows).flat_map(|row| (0..columns.len()).map(move |column| (column, row))).collect();
    let columns: Vec<&dyn Array> = columns.iter().map(|column| column.as_ref()).collect();
    Ok(arrow::compute::interleave(&columns, &places)?)
}

fn map_type(of: &Types<'_>) -> Option<DataType> {
    if of.types.len() % 2 == 1 {
        return None;
    }
    let is_nullable = of.fields.iter().skip(1).step_by(2).any(|field| field.is_nullable());
    let value = Field::new("value", common_type(of.types.iter().skip(1).step_by(2))?, is_nullable);
    Some(map_of(common_type(of.types.iter().step_by(2))?, value))
}

fn map(call: &Call<'_>) -> Result<ArrayRef> {
    let DataType::Map(entries, is_sorted) = call.returns else {
        return Err(DataFusionError::Internal("no map".to_owned()));
    };
    let DataType::Struct(pair) = entries.data_type() else {
        return Err(DataFusionError::Internal("no map".to_owned()));
    };
    let keys = side_by_side(call, 0, 2, pair[0].data_type())?;
    let values = side_by_side(call, 1, 2, pair[1].data_type())?;
    if keys.null_count() > 0 {
        return Err(user_error("a key of MAP[…] is NULL: no map can hold it"));
    }
    let known = Keys::new(&[Arc::clone(&keys)])?;
    let each = call.columns.len() / 2;
    let (mut picks, mut lengths) = (Vec::with_capacity(keys.len()), Vec::with_capacity(call.rows));
    for row in 0..call.rows {
        let kept = last_of_each(row * each..(row + 1) * each, |at| known.get(0, at));
        lengths.push(kept.len());
        picks.extend(kept.into_iter().map(|at| at as u64));
    }
    let picks = UInt64Array::from(picks);
    let pairs =
        StructArray::try_new(pair.clone(), vec![take(&keys, &picks, None)?, take(&values, &picks, None)?], None)?;
    let lengths = OffsetBuffer::from_lengths(lengths);
    Ok(Arc::new(MapArray::try_new(Arc::clone(entries), lengths, pairs, None, *is_sorted)?))
}

/// Of entries with the same key only the last, where the first one stands.
pub(crate) fn last_of_each<T: Copy, K: Eq + Hash>(all: impl Iterator<Item = T>, key: impl Fn(T) -> K) -> Vec<T> {
    let (mut kept, mut places) = (Vec::new(), HashMap::new());
    for one in all {
        match places.entry(key(one)) {
            Entry::Occupied(place) => kept[*place.get()] = one,
            Entry::Vacant(place) => {
                place.insert(kept.len());
                kept.push(one);
            }
        }
    }
    kept
}

fn row_type(of: &Types<'_>) -> Option<DataType> {
    let field = |(at, field): (usize, &Arc<Field>)| field.as_ref().clone().with_name(format!("EXPR${at}"));
    Some(DataType::Struct(of.fields.iter().enumerate().map(field).collect::<Fields>()))
}

fn row(call: &Call<'_>) -> Result<ArrayRef> {
    let DataType::Struct(fields) = call.returns else {
        return Err(DataFusionError::Internal("no row".to_owned()));
    };
    let columns = (0..call.columns.len()).map(|at| call.array(at)).collect::<Result<Vec<_>>>()?;
    Ok(Arc::new(StructArray::try_new(fields.clone(), columns, None)?))
}

fn field_type(of: &Types<'_>) -> Option<DataType> {
    match &of.types[0] {
        DataType::Struct(fields) => Some(fields.find(of.constant(1)?)?.1.data_type().clone()),
        _ => None,
    }
}

fn get_field(call: &Call<'_>) -> Result<ArrayRef> {
    let array = call.array(0)?;
    let row = array.as_struct();
    let names = call.texts(1)?;
    match names.get(0).and_then(|name| row.column_by_name(name)) {
        // NULL where the row is.
        Some(column) if row.null_count() > 0 => {
            let places = (0..call.rows).map(|at| row.is_valid(at).then_some(at as u64));
            Ok(take(column, &places.collect::<UInt64Array>(), None)?)
        }
        Some(column) => Ok(Arc::clone(column)),
        None => Ok(new_null_array(call.returns, call.rows)),
    }
}

fn item_type(of: &Types<'_>) -> Option<DataType> {
    match &of.types[0] {
        DataType::List(element) => Int.accepts(&of.types[1]).then(|| element.data_type().clone()),
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(pair) => {
                common_type([pair[0].data_type(), &of.types[1]]).map(|_| pair[1].data_type().clone())
            }
            _ => None,
        },
        _ => None,
    }
}

fn item(call: &Call<'_>) -> Result<ArrayRef> {
    let collection = call.array(0)?;
    if let DataType::List(_) = collection.data_type() {
        let places = call.ints(1)?;
        return one(call, |range, row| {
            let at =
                places.get(row).and_then(|at| usize::try_from(at).ok()).filter(|at| (1..=range.len()).contains(at));
            Ok(at.map(|at| range.start + at - 1))
        });
    }
    let map = collection.as_map();
    let wanted = Cast { zone: call.zone, is_try: true }.cast(&call.array(1)?, map.keys().data_type())?;
    let keys = Keys::new(&[Arc::clone(map.keys()), wanted])?;
    let places = offsets(&collection)?;
    let found = |row: usize| {
        let at = (places[row]..places[row + 1]).find(|at| keys.get(0, *at) == keys.get(1, row))?;
        map.is_valid(row).then_some(at as u64)
    };
    Ok(take(map.values(), &(0..call.rows).map(found).collect::<UInt64Array>(), None)?)
}

fn part_type(of: &Types<'_>, part: usize) -> Option<DataType> {
    match &of.types[0] {
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(pair) => Some(array_of(pair[part].as_ref().clone())),
            _ => None,
        },
        _ => None,
    }
}

fn map_part(call: &Call<'_>, part: impl Fn(&MapArray) -> ArrayRef) -> Result<ArrayRef> {
    let field = element(call.returns).ok_or_else(|| DataFusionError::Internal("no array".to_owned()))?;
    let array = call.array(0)?;
    let map = array.as_map();
    Ok(Arc::new(ListArray::try_new(Arc::clone(field), map.offsets().clone(), part(map), map.nulls().cloned())?))
}
