use std::sync::Arc;

use arrow::array::{Array, BooleanArray, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Schema};
use proptest::prelude::*;

use super::*;
use crate::aggregates::Aggregates;
use crate::aggregates::grouping::Grouping;
use crate::row::KeyEncoder;
use crate::spec::{AggregateFunction as F, AggregateSpec};

/// A row: key, value, whether it passes the filter.
type Row = (i64, i64, bool);

fn specs(retracts: bool) -> Vec<AggregateSpec> {
    let spec = |function: F, arguments: &[usize], result: DataType| AggregateSpec {
        text: format!("{function:?}"),
        function,
        arguments: arguments.to_vec(),
        filter: None,
        is_distinct: false,
        order: Vec::new(),
        result,
    };
    let count = spec(F::Count, &[1], DataType::Int64);
    let mut specs = vec![
        spec(F::Count, &[], DataType::Int64),
        spec(F::Sum, &[1], DataType::Int64),
        spec(F::Avg, &[1], DataType::Int64),
        spec(F::Min, &[1], DataType::Int64),
        spec(F::Max, &[1], DataType::Int64),
        AggregateSpec { filter: Some(2), ..count.clone() },
        AggregateSpec { is_distinct: true, ..count.clone() },
        AggregateSpec { is_distinct: true, filter: Some(2), ..count },
        spec(F::Percentile { at: vec![0.3_f64.to_bits()] }, &[1], DataType::Float64),
    ];
    if !retracts {
        specs.push(spec(F::VarPop, &[1], DataType::Float64));
    }
    specs
}

fn chunk(rows: &[(Row, bool)]) -> Chunk {
    let numbers = |of: fn(&Row) -> i64| -> ArrayRef {
        Arc::new(Int64Array::from_iter_values(rows.iter().map(|(row, _)| of(row))))
    };
    let passes: ArrayRef = Arc::new(BooleanArray::from_iter(rows.iter().map(|(row, _)| Some(row.2))));
    let columns = [("k", numbers(|row| row.0)), ("x", numbers(|row| row.1)), ("f", passes)];
    let kind = |is_addition: bool| if is_addition { RowKind::Insert } else { RowKind::Delete };
    Chunk::new(
        RecordBatch::try_from_iter(columns).unwrap(),
        rows.iter().map(|(_, is_addition)| kind(*is_addition)).collect(),
    )
}

/// The results for the keys 0 to 2, of chunks of which some are made partial; `in_one` is whether they are put together on their
/// way.
fn results(chunks: &[(Chunk, bool)], retracts: bool, in_one: bool) -> Vec<ArrayRef> {
    let schema = chunks[0].0.batch.schema();
    let aggregates = Aggregates::new(&specs(retracts), &schema, retracts).unwrap();
    assert!(aggregates.are_mergeable());
    let fields = schema.fields().iter().cloned().chain([partial_field()]);
    let wide: SchemaRef = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let mut keys = KeyEncoder::new(&[0], &[DataType::Int64, DataType::Int64, DataType::Boolean]).unwrap();
    let (mut grouping, mut local, mut arena) = (Grouping::default(), aggregates.arena(), aggregates.arena());
    (0..3).for_each(|_| assert!(arena.add() < 3));
    let send = |(chunk, is_partial): &(Chunk, bool)| match is_partial {
        true => {
            grouping.assign(keys.encode(chunk.batch.columns(), chunk.len(), None).unwrap());
            aggregates.partials(&mut local, chunk, &grouping.groups, &grouping.firsts, &wide).unwrap()
        }
        false => as_they_are(chunk, &wide).unwrap(),
    };
    let mut all: Vec<Chunk> = chunks.iter().map(send).collect();
    if in_one {
        all = vec![Chunk::concat(&all).unwrap()];
    }
    for sent in all {
        let groups: Vec<u32> = sent
            .column(0)
            .as_primitive::<arrow::datatypes::Int64Type>()
            .values()
            .iter()
            .map(|key| *key as u32)
            .collect();
        aggregates.take_in(&mut arena, &sent, &groups, sent.batch.columns().last()).unwrap();
    }
    let mut columns = aggregates.results(&arena).unwrap();
    columns.push(Arc::new(Int64Array::from(arena.rows.clone())));
    columns
}

fn row() -> impl Strategy<Value = Row> {
    (0..3_i64, -3..3_i64, any::<bool>())
}

proptest! {
    #[test]
    fn two_phases_have_the_results_of_one(
        chunks in prop::collection::vec((prop::collection::vec((row(), any::<bool>()), 1..8), any::<bool>()), 1..6),
        retracts in any::<bool>(),
        in_one in any::<bool>(),
    ) {
        let mut there: Vec<Row> = Vec::new();
        let mut sent = Vec::new();
        for (rows, is_partial) in chunks {
            let mut changes = Vec::new();
            for (row, is_addition) in rows {
                match there.iter().position(|other| *other == row) {
                    Some(found) if retracts && !is_addition => {
                        there.remove(found);
                        changes.push((row, false));
                    }
                    _ => {
                        there.push(row);
                        changes.push((row, true));
                    }
                }
            }
            sent.push((chunk(&changes), is_partial));
        }
        let one: Vec<_> = sent.iter().map(|(chunk, _)| (chunk.clone(), false)).collect();
        let (one, two) = (results(&one, retracts, false), results(&sent, retracts, in_one));
        for (index, (one, two)) in one.iter().zip(&two).enumerate() {
            match one.as_primitive_opt::<arrow::datatypes::Float64Type>() {
                Some(one) => {
                    let two = two.as_primitive::<arrow::datatypes::Float64Type>();
                    prop_assert!((0..3).all(|row| one.is_null(row) == two.is_null(row)));
                    prop_assert!((0..3).all(|row| one.is_null(row) || (one.value(row) - two.value(row)).abs() < 1e-9));
                }
                None => prop_assert_eq!(one, two, "aggregate {}", index),
            }
        }
    }
}

#[test]
fn rows_that_cancel_each_other_out_are_not_sent() {
    let changes = chunk(&[((1, 5, true), false), ((2, 5, true), true), ((1, 5, true), true), ((2, 7, true), false)]);
    let schema = changes.batch.schema();
    let aggregates = Aggregates::new(&specs(true), &schema, true).unwrap();
    let fields = schema.fields().iter().cloned().chain([partial_field()]);
    let wide: SchemaRef = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let sent = aggregates.partials(&mut aggregates.arena(), &changes, &[0, 1, 0, 1], &[0, 1], &wide).unwrap();
    // A 5 that is there in place of a 7 leaves no more rows, but another sum.
    assert_eq!(sent.len(), 1);
    assert_eq!(sent.column(0).as_primitive::<arrow::datatypes::Int64Type>().value(0), 2);
    let sum = &specs(false)[1];
    let doubles = AggregateSpec { function: F::VarPop, result: DataType::Float64, ..sum.clone() };
    assert!(!Aggregates::new(&[doubles], &schema, true).unwrap().are_mergeable());
    let first = AggregateSpec { function: F::FirstValue, ..sum.clone() };
    assert!(!Aggregates::new(&[first], &schema, false).unwrap().are_mergeable());
}
