//! Results of Flink 2.3 over the same values, where nothing else is said.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanArray, Date32Array, Decimal128Array, Float32Array, Float64Array, Int8Array, Int32Array,
    Int64Array, RecordBatch, StringArray,
};
use arrow::datatypes::{DataType, Field, Fields};
use flott_chunk::display::write_value;
use proptest::prelude::*;

use super::update::Changes;
use super::*;
use crate::spec::{AggregateFunction as F, AggregateSpec};

fn decimals(values: Vec<Option<i128>>, precision: u8, scale: i8) -> ArrayRef {
    Arc::new(Decimal128Array::from(values).with_precision_and_scale(precision, scale).unwrap())
}

fn batch() -> RecordBatch {
    let columns: [(&str, ArrayRef); 9] = [
        ("ti", Arc::new(Int8Array::from(vec![1, 127, 2]))),
        ("i", Arc::new(Int32Array::from(vec![1, 2, 4]))),
        ("f", Arc::new(Float32Array::from(vec![16_777_216.0, 1.0, 1.0]))),
        ("d", Arc::new(Float64Array::from(vec![1.0, f64::NAN, 2.0]))),
        ("dc", decimals(vec![Some(100), Some(200), Some(200)], 10, 2)),
        ("s", Arc::new(StringArray::from(vec![Some("b"), Some("a"), None]))),
        ("b", Arc::new(BooleanArray::from(vec![Some(true), Some(false), None]))),
        ("day", Arc::new(Date32Array::from(vec![Some(3), None, Some(-1)]))),
        ("big", decimals(vec![Some(i128::pow(10, 38) - 1), Some(1), Some(-2)], 38, 0)),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

fn spec(function: F, arguments: &[usize], result: DataType) -> AggregateSpec {
    let text = format!("{function:?}");
    let arguments = arguments.to_vec();
    AggregateSpec { function, arguments, filter: None, is_distinct: false, order: Vec::new(), result, text }
}

fn multiset(element: DataType) -> DataType {
    let pair = Fields::from(vec![Field::new("key", element, false), Field::new("value", DataType::Int32, false)]);
    DataType::Map(Arc::new(Field::new("entries", DataType::Struct(pair), false)), false)
}

/// The result over some rows: at once, and of two groups that became one.
fn result(spec: &AggregateSpec, rows: usize, retracts: bool) -> String {
    let batch = batch().slice(0, rows);
    let aggregates = Aggregates::new(std::slice::from_ref(spec), &batch.schema(), retracts).unwrap();
    let bound = aggregates.bind(&batch).unwrap();
    let mut shown = Vec::new();
    for first in 0..=rows {
        let mut arena = aggregates.arena();
        let groups: Vec<u32> = (0..rows).map(|row| u32::from(row >= first)).collect();
        arena.add();
        arena.add();
        let changes = Changes { groups: &groups, signs: None };
        aggregates.update(&mut arena, &bound, 0..rows, changes).unwrap();
        let mut later = Accumulators::default();
        arena.store(1, &mut later);
        aggregates.merge(&mut arena, 0, &later).unwrap();
        let mut text = String::new();
        write_value(&aggregates.results(&arena).unwrap()[0], 0, &mut text);
        shown.push(text);
    }
    shown.dedup();
    // Floats that are added in another order are rounded in another way.
    if batch.schema().field(spec.arguments.first().copied().unwrap_or(0)).data_type() != &DataType::Float32 {
        assert_eq!(shown.len(), 1, "{spec:?} {shown:?}");
    }
    shown.swap_remove(shown.len() - 1)
}

fn check(function: F, arguments: &[usize], data_type: DataType, expected: [&str; 3]) {
    for (rows, expected) in (1..).zip(expected) {
        for retracts in [false, true] {
            let spec = spec(function.clone(), arguments, data_type.clone());
            assert_eq!(result(&spec, rows, retracts), expected, "{function:?} of {rows} rows, {retracts}");
        }
    }
}

#[test]
fn sums_and_means_are_those_of_flink() {
    use DataType::{Decimal128, Float32, Float64, Int8, Int32};
    check(F::Sum, &[0], Int8, ["1", "-128", "-126"]);
    check(F::Sum, &[1], Int32, ["1", "3", "7"]);
    check(F::Sum, &[2], Float32, ["1.6777216E7", "1.6777216E7", "1.6777216E7"]);
    check(F::Sum, &[3], Float64, ["1.0", "NaN", "NaN"]);
    check(F::Sum, &[4], Decimal128(38, 2), ["1.00", "3.00", "5.00"]);
    check(F::Avg, &[0], Int8, ["1", "64", "43"]);
    check(F::Avg, &[1], Int32, ["1", "1", "2"]);
    check(F::Avg, &[2], Float32, ["1.6777216E7", "8388608.0", "5592406.0"]);
    check(F::Avg, &[4], Decimal128(38, 6), ["1.000000", "1.500000", "1.666667"]);
    // Not Flink's: it would be 10^38, which no decimal is, and then it fits again.
    check(
        F::Sum,
        &[8],
        Decimal128(38, 0),
        ["99999999999999999999999999999999999999", "null", "99999999999999999999999999999999999998"],
    );
}

#[test]
fn deviations_are_those_of_flink() {
    use DataType::{Decimal128, Float64, Int32};
    check(F::StddevPop, &[1], Int32, ["0", "0", "1"]);
    check(F::StddevSamp, &[1], Int32, ["null", "0", "1"]);
    check(F::VarPop, &[1], Int32, ["0", "0", "1"]);
    check(F::VarSamp, &[1], Int32, ["null", "0", "2"]);
    check(F::StddevPop, &[4], Decimal128(38, 6), ["0.000000", "0.500000", "0.471405"]);
    check(F::StddevSamp, &[4], Decimal128(38, 6), ["null", "0.707107", "0.577350"]);
    check(F::VarPop, &[4], Decimal128(38, 6), ["0.000000", "0.250000", "0.222222"]);
    check(F::VarSamp, &[4], Decimal128(38, 6), ["null", "0.500000", "0.333333"]);
    check(F::VarSamp, &[3], Float64, ["null", "NaN", "NaN"]);
}

#[test]
fn extremes_are_those_of_flink() {
    use DataType::{Boolean, Date32, Decimal128, Float32, Float64, Utf8};
    check(F::Max, &[3], Float64, ["1.0", "1.0", "2.0"]);
    check(F::Min, &[3], Float64, ["1.0", "1.0", "1.0"]);
    check(F::Max, &[6], Boolean, ["true", "true", "true"]);
    check(F::Min, &[6], Boolean, ["true", "false", "false"]);
    check(F::Min, &[5], Utf8, ["b", "a", "a"]);
    check(F::Max, &[5], Utf8, ["b", "b", "b"]);
    check(F::Max, &[2], Float32, ["1.6777216E7", "1.6777216E7", "1.6777216E7"]);
    check(F::Min, &[7], Date32, ["1970-01-04", "1970-01-04", "1969-12-31"]);
    check(F::Min, &[8], Decimal128(38, 0), ["99999999999999999999999999999999999999", "1", "-2"]);
}

#[test]
fn collections_are_those_of_flink() {
    use DataType::Utf8;
    let list = |data_type| DataType::List(Arc::new(Field::new("item", data_type, true)));
    check(F::ListAgg { separator: Some("-".to_owned()) }, &[5], Utf8, ["b", "b-a", "b-a"]);
    check(F::Collect, &[5], multiset(Utf8), ["{b=1}", "{a=1, b=1}", "{a=1, b=1}"]);
    check(F::ArrayAgg, &[5], list(Utf8), ["[b]", "[b, a]", "[b, a, null]"]);
    check(F::FirstValue, &[5], Utf8, ["b", "b", "b"]);
    check(F::LastValue, &[5], Utf8, ["b", "a", "a"]);
    check(F::JsonArrayAgg { absent_on_null: true }, &[5], Utf8, ["[\"b\"]", "[\"b\",\"a\"]", "[\"b\",\"a\"]"]);
    check(F::JsonArrayAgg { absent_on_null: false }, &[3], Utf8, ["[1.0]", "[1.0,\"NaN\"]", "[1.0,\"NaN\",2.0]"]);
    check(F::JsonArrayAgg { absent_on_null: true }, &[4], Utf8, ["[1.00]", "[1.00,2.00]", "[1.00,2.00,2.00]"]);
    check(F::JsonArrayAgg { absent_on_null: true }, &[6], Utf8, ["[true]", "[true,false]", "[true,false]"]);
}

#[test]
fn percentiles_are_those_of_flink() {
    use DataType::Float64;
    let list = DataType::List(Arc::new(Field::new("element", Float64, true)));
    let percentile = |at: &[f64]| F::Percentile { at: at.iter().map(|at| at.to_bits()).collect() };
    check(percentile(&[0.25]), &[1], Float64, ["1.0", "1.25", "1.5"]);
    check(percentile(&[0.5]), &[4], Float64, ["1.0", "1.5", "2.0"]);
    check(percentile(&[1.0, 0.0]), &[1], list, ["[1.0, 1.0]", "[2.0, 1.0]", "[4.0, 1.0]"]);
    // So often as another column says: 1, 127 and 2 times.
    check(percentile(&[0.5]), &[1, 0], Float64, ["1.0", "2.0", "2.0"]);
    check(percentile(&[0.0]), &[3], Float64, ["1.0", "1.0", "1.0"]);
    check(percentile(&[1.0]), &[3], Float64, ["1.0", "NaN", "NaN"]);
}

#[test]
fn distinct_values_count_once_also_where_groups_become_one() {
    let mut sum = spec(F::Sum, &[4], DataType::Decimal128(38, 2));
    sum.is_distinct = true;
    let sums: Vec<String> = (1..=3).map(|rows| result(&sum, rows, false)).collect();
    assert_eq!(sums, ["1.00", "3.00", "3.00"]);
}

#[test]
fn nothing_has_the_results_that_it_has_in_flink() {
    let filtered =
        |function, argument, result| AggregateSpec { filter: Some(6), ..spec(function, &[argument], result) };
    let list = DataType::List(Arc::new(Field::new("item", DataType::Utf8, true)));
    let specs = [
        filtered(F::Sum, 1, DataType::Int32),
        filtered(F::Collect, 5, multiset(DataType::Utf8)),
        filtered(F::ArrayAgg, 5, list),
        filtered(F::ListAgg { separator: Some(",".to_owned()) }, 5, DataType::Utf8),
        filtered(F::StddevPop, 3, DataType::Float64),
        filtered(F::Count, 5, DataType::Int64),
        filtered(F::Sum0, 1, DataType::Int32),
    ];
    let batch = batch().slice(1, 2);
    let aggregates = Aggregates::new(&specs, &batch.schema(), false).unwrap();
    let mut arena = aggregates.arena();
    arena.add();
    let changes = Changes { groups: &[0, 0], signs: None };
    aggregates.update(&mut arena, &aggregates.bind(&batch).unwrap(), 0..2, changes).unwrap();
    let shown: Vec<String> = aggregates
        .results(&arena)
        .unwrap()
        .iter()
        .map(|column| {
            let mut text = String::new();
            write_value(column, 0, &mut text);
            text
        })
        .collect();
    assert_eq!(shown, ["null", "{}", "null", "null", "null", "0", "0"]);
}

#[test]
fn a_subquery_for_one_value_must_not_give_more() {
    let batch = batch();
    let only = spec(F::SingleValue, &[1], DataType::Int32);
    let aggregates = Aggregates::new(&[only], &batch.schema(), true).unwrap();
    let mut arena = aggregates.arena();
    arena.add();
    let bound = aggregates.bind(&batch).unwrap();
    let changes = Changes { groups: &[0, 0, 0], signs: None };
    aggregates.update(&mut arena, &bound, 0..3, changes).unwrap();
    let error = aggregates.results(&arena).unwrap_err().to_string();
    assert!(error.contains("gave 3 rows"), "{error}");
    let changes = Changes { groups: &[0, 0, 0], signs: Some(&[-1, -1, 0]) };
    aggregates.update(&mut arena, &bound, 0..3, changes).unwrap();
    assert_eq!(aggregates.results(&arena).unwrap()[0].as_ref(), &Int32Array::from(vec![4]) as &dyn arrow::array::Array);
}

proptest! {
    #[test]
    fn distinct_values_count_once_for_each_filter(
        rows in prop::collection::vec((0..5_i32, any::<bool>(), any::<bool>()), 1..30),
        first in 0..30_usize,
        retracts in any::<bool>(),
    ) {
        let numbers: ArrayRef = Arc::new(Int32Array::from_iter_values(rows.iter().map(|row| row.0)));
        let filters = [rows.iter().map(|row| row.1).collect(), rows.iter().map(|row| row.2).collect::<Vec<_>>()];
        let [a, b] = filters.map(|filter| Arc::new(BooleanArray::from(filter)) as ArrayRef);
        let batch = RecordBatch::try_from_iter([("x", numbers), ("a", a), ("b", b)]).unwrap();
        let count = |filter| AggregateSpec { filter, is_distinct: true, ..spec(F::Count, &[0], DataType::Int64) };
        let specs = [count(Some(2)), count(None), count(Some(1)), count(Some(2))];
        let aggregates = Aggregates::new(&specs, &batch.schema(), retracts).unwrap();
        let bound = aggregates.bind(&batch).unwrap();
        let mut arena = aggregates.arena();
        arena.add();
        arena.add();
        let groups: Vec<u32> = (0..rows.len()).map(|row| u32::from(row >= first)).collect();
        aggregates.update(&mut arena, &bound, 0..rows.len(), Changes { groups: &groups, signs: None }).unwrap();
        let mut later = Accumulators::default();
        arena.store(1, &mut later);
        aggregates.merge(&mut arena, 0, &later).unwrap();
        let distinct = |passes: &dyn Fn(&(i32, bool, bool)) -> bool| {
            let mut values: Vec<i32> = rows.iter().filter(|row| passes(row)).map(|row| row.0).collect();
            values.sort_unstable();
            values.dedup();
            values.len() as i64
        };
        let expected = [distinct(&|row| row.2), distinct(&|_| true), distinct(&|row| row.1), distinct(&|row| row.2)];
        let results = aggregates.results(&arena).unwrap();
        let found: Vec<i64> =
            results.iter().map(|column| column.as_any().downcast_ref::<Int64Array>().unwrap().value(0)).collect();
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn deviations_lose_no_digits(values in prop::collection::vec(-5..5_i32, 2..20), gone in 0..10_usize) {
        // Far from zero, where sums of squares have no digits left for what differs.
        let far = |value: i32| 1e9 + f64::from(value);
        let column: ArrayRef = Arc::new(Float64Array::from_iter_values(values.iter().map(|value| far(*value))));
        let batch = RecordBatch::try_from_iter([("x", column)]).unwrap();
        let aggregates = Aggregates::new(&[spec(F::VarPop, &[0], DataType::Float64)], &batch.schema(), true).unwrap();
        let mut arena = aggregates.arena();
        arena.add();
        let bound = aggregates.bind(&batch).unwrap();
        let groups = vec![0; values.len()];
        aggregates.update(&mut arena, &bound, 0..values.len(), Changes { groups: &groups, signs: None }).unwrap();
        let gone = gone.min(values.len() - 1);
        let signs = vec![-1; values.len()];
        aggregates.update(&mut arena, &bound, 0..gone, Changes { groups: &groups, signs: Some(&signs) }).unwrap();
        let left = &values[gone..];
        let mean = left.iter().sum::<i32>() as f64 / left.len() as f64;
        let expected = left.iter().map(|value| (f64::from(*value) - mean).powi(2)).sum::<f64>() / left.len() as f64;
        let results = aggregates.results(&arena).unwrap();
        let variance = results[0].as_any().downcast_ref::<Float64Array>().unwrap().value(0);
        prop_assert!((variance - expected).abs() < 1e-4, "{} {}", variance, expected);
    }
}
