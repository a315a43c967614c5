use std::sync::Arc;

use arrow::datatypes::{DataType, Schema};

use super::*;
use crate::aggregates::partial::partial_field;
use crate::operators::testing::{Bed, Value, columns, int, row, timestamp};
use crate::spec::{AggregateFunction, AggregateSpec, OperatorSpec, WindowSpec};

/// Two subtasks, which count the rows of each key.
fn bed(windows: Option<(WindowSpec, TimeSpec)>, zone: Option<&str>) -> Bed {
    let count = AggregateSpec {
        function: AggregateFunction::Count,
        arguments: Vec::new(),
        filter: None,
        is_distinct: false,
        order: Vec::new(),
        result: DataType::Int64,
        text: "COUNT(*)".to_owned(),
    };
    let zone = zone.map(str::to_owned);
    let spec = LocalAggregateSpec { keys: vec![0], aggregates: vec![count], windows, zone, is_insert_only: true };
    let input = columns(&[("k", int()), ("ts", timestamp())]);
    let fields = input.fields().iter().cloned().chain([partial_field()]);
    let output: SchemaRef = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let mut bed = Bed::new(OperatorSpec::LocalAggregate(spec), std::slice::from_ref(&input), &output);
    bed.restart(2);
    bed
}

/// For each row that comes out of these, whether it may stand for several.
fn sent(bed: &mut Bed, rows: &[Vec<Value>]) -> Vec<bool> {
    bed.insert(0, rows);
    bed.take_rows().iter().map(|line| !line.ends_with("\tnull")).collect()
}

#[test]
fn rows_go_on_as_they_are_where_keys_do_not_repeat() {
    let (same, different) = ([1, 1, 1, 2, 2, 2], [1, 2, 3, 4, 5, 6]);
    let rows = |keys: [i64; 6]| keys.map(|key| row![key, 0_i64]);
    let mut bed = bed(None, None);
    assert_eq!(sent(&mut bed, &rows(same)), [true; 2]);
    assert_eq!(sent(&mut bed, &rows(different)), [false; 6]);
    assert_eq!(sent(&mut bed, &rows(same)), [false; 6], "it is tried again after a chunk");
    assert_eq!(sent(&mut bed, &rows(same)), [true; 2]);
    bed.restart(1);
    assert_eq!(sent(&mut bed, &rows(same)), [false; 6], "rows that do not leave the subtask");
}

#[test]
fn rows_of_different_windows_stay_apart() {
    const HOUR_MS: i64 = 3_600_000;
    // The evening of 2024-07-01, and in Berlin the next day's first hour.
    let midnight: i64 = 1_719_871_200_000;
    let rows: Vec<Vec<Value>> = (0..6).map(|n| row![1_i64, midnight + (n / 3 - 1) * HOUR_MS]).collect();
    let days = || Some((WindowSpec::Tumble { size_ms: 24 * HOUR_MS, offset_ms: 0 }, TimeSpec::Event(1)));
    assert_eq!(sent(&mut bed(days(), Some("Europe/Berlin")), &rows), [true; 2]);
    assert_eq!(sent(&mut bed(days(), None), &rows), [true]);
    assert_eq!(sent(&mut bed(None, None), &rows), [true]);
}
