use arrow::array::{Int32Builder, ListArray, ListBuilder, MapBuilder, StringBuilder, StructBuilder};
use arrow::datatypes::{Field, Fields, Int32Type, Schema};
use flott_chunk::RowKind;

use super::*;
use crate::operators::testing::Bed;
use crate::spec::OperatorSpec;

/// Unnests the collections, one a row with an id from 1. They may be put out, too.
fn unnest(collections: ArrayRef, elements: &[DataType], is_outer: bool, with_ordinality: bool) -> Vec<String> {
    let alone = unnested(Arc::clone(&collections), elements, (false, is_outer), with_ordinality);
    let without_collection = |line: String| {
        let mut parts: Vec<&str> = line.split('\t').collect();
        parts.remove(2);
        parts.join(" ")
    };
    let beside = unnested(collections, elements, (true, is_outer), with_ordinality);
    assert_eq!(beside.into_iter().map(without_collection).collect::<Vec<_>>(), alone);
    alone
}

fn unnested(
    collections: ArrayRef,
    elements: &[DataType],
    (passes_collection, is_outer): (bool, bool),
    with_ordinality: bool,
) -> Vec<String> {
    let rows = collections.len();
    let fields = vec![Field::new("id", DataType::Int32, true), Field::new("xs", collections.data_type().clone(), true)];
    let input = Arc::new(Schema::new(fields.clone()));
    let mut output = fields;
    output.truncate(if passes_collection { 2 } else { 1 });
    output.extend(
        elements.iter().enumerate().map(|(index, element)| Field::new(format!("e{index}"), element.clone(), true)),
    );
    if with_ordinality {
        output.push(Field::new("o", DataType::Int32, true));
    }
    let spec = OperatorSpec::Unnest { column: 1, passes_collection, is_outer, with_ordinality };
    let mut bed = Bed::new(spec, std::slice::from_ref(&input), &Arc::new(Schema::new(output)));
    let ids: ArrayRef = Arc::new(Int32Array::from_iter_values(1..=rows as i32));
    let kinds = (0..rows).map(|row| if row % 2 == 0 { RowKind::Insert } else { RowKind::Delete }).collect();
    bed.push(&Chunk::of_columns(&input, vec![ids, collections], rows, kinds).unwrap());
    let lines = bed.finish();
    match passes_collection {
        true => lines,
        false => lines.into_iter().map(|line| line.replace('\t', " ")).collect(),
    }
}

fn lists(rows: &[Option<&[Option<i32>]>]) -> ArrayRef {
    Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(
        rows.iter().map(|row| row.map(|row| row.iter().copied())),
    ))
}

#[test]
fn r08_an_outer_join_keeps_its_left_row() {
    let rows = lists(&[Some(&[Some(7), Some(8)]), Some(&[]), None, Some(&[None, Some(7), Some(7)])]);
    let int = [DataType::Int32];
    let inner = ["+I 1 7 1", "+I 1 8 2", "-D 4 null 1", "-D 4 7 2", "-D 4 7 3"];
    assert_eq!(unnest(Arc::clone(&rows), &int, false, true), inner);
    let outer = ["+I 1 7", "+I 1 8", "-D 2 null", "+I 3 null", "-D 4 null", "-D 4 7", "-D 4 7"];
    assert_eq!(unnest(rows, &int, true, false), outer);
}

#[test]
fn rows_give_their_fields_and_null_rows_nothing() {
    let fields = Fields::from(vec![Field::new("a", DataType::Int32, true), Field::new("b", DataType::Utf8, true)]);
    let mut builder = ListBuilder::new(StructBuilder::from_fields(fields, 0));
    let mut add = |rows: &[Option<(Option<i32>, Option<&str>)>]| {
        for row in rows {
            let (a, b) = row.unwrap_or_default();
            builder.values().field_builder::<Int32Builder>(0).unwrap().append_option(a);
            builder.values().field_builder::<StringBuilder>(1).unwrap().append_option(b);
            builder.values().append(row.is_some());
        }
        builder.append(true);
    };
    add(&[Some((Some(1), Some("x"))), None, Some((None, None))]);
    add(&[]);
    add(&[None]);
    let rows: ArrayRef = Arc::new(builder.finish());
    let types = [DataType::Int32, DataType::Utf8];
    let outer = ["+I 1 1 x 1", "+I 1 null null 3", "-D 2 null null null", "+I 3 null null null"];
    assert_eq!(unnest(Arc::clone(&rows), &types, true, true), outer);
    assert_eq!(unnest(rows, &types, false, false), ["+I 1 1 x", "+I 1 null null"]);
}

/// The entries of a map, if there is one.
type Entries<'a> = Option<&'a [(&'a str, Option<i32>)]>;

fn maps(rows: &[Entries<'_>]) -> ArrayRef {
    let mut builder = MapBuilder::new(None, StringBuilder::new(), Int32Builder::new());
    for row in rows {
        for (key, value) in row.unwrap_or_default() {
            builder.keys().append_value(key);
            builder.values().append_option(*value);
        }
        builder.append(row.is_some()).unwrap();
    }
    Arc::new(builder.finish())
}

#[test]
fn maps_give_their_entries_and_multisets_each_element_as_often_as_it_is_there() {
    let rows = maps(&[Some(&[("a", Some(1)), ("b", Some(2))]), None, Some(&[("c", Some(3))])]);
    let types = [DataType::Utf8, DataType::Int32];
    let entries = ["+I 1 a 1 1", "+I 1 b 2 2", "-D 2 null null null", "+I 3 c 3 1"];
    assert_eq!(unnest(Arc::clone(&rows), &types, true, true), entries);
    let elements = ["+I 1 a 1", "+I 1 b 2", "+I 1 b 3", "+I 3 c 1", "+I 3 c 2", "+I 3 c 3"];
    assert_eq!(unnest(rows, &types[..1], false, true), elements);
}

#[test]
fn large_collections_come_in_several_chunks() {
    let rows = maps(&[None, Some(&[("a", Some(20_000))]), Some(&[("b", Some(3))])]);
    let found = unnest(rows, &[DataType::Utf8], true, true);
    let of_row = |id: i32| found.iter().filter(|line| line[3..].starts_with(&format!("{id} "))).count();
    assert_eq!([1, 2, 3].map(of_row), [1, 20_000, 3]);
    assert_eq!(found[20_000], "-D 2 a 20000");
}

/// With a copy of the array for each element these would be 40 GB.
#[test]
fn a_long_array_is_not_copied_for_each_element() {
    let long: Vec<Option<i32>> = (0..100_000).map(Some).collect();
    let rows = lists(&[Some(&long), Some(&[Some(7)])]);
    let lines = unnested(rows, &[DataType::Int32], (false, false), true);
    assert_eq!(lines.len(), 100_001);
    assert_eq!(lines[99_999], "+I 1 99999 100000");
    assert_eq!(lines[100_000], "-D 2 7 1");
}
