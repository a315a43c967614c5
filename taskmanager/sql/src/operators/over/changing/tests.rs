use std::collections::BTreeMap;

use arrow::datatypes::DataType;
use proptest::prelude::*;
use proptest::sample::Index;

use super::*;
use crate::operators::testing::{Bed, Value, columns, fold, fold_by_key, int, row, timestamp};
use crate::sort_key::SortColumn;
use crate::spec::{AggregateFunction as F, AggregateSpec, OperatorSpec, OverInput, TimeSpec};

/// Key, id, time, value.
type Row = (i64, i64, Option<i64>, i64);

fn values((key, id, time, value): Row) -> Vec<Value> {
    vec![Value::Int(key), Value::Int(id), time.map_or(Value::Null, Value::Int), Value::Int(value)]
}

fn functions() -> Vec<AggregateSpec> {
    let spec = |function: F, arguments: &[usize], is_distinct: bool| AggregateSpec {
        text: format!("{function:?}"),
        result: match function {
            F::PercentRank | F::CumeDist => DataType::Float64,
            _ => DataType::Int64,
        },
        function,
        arguments: arguments.to_vec(),
        filter: None,
        is_distinct,
        order: Vec::new(),
    };
    vec![
        spec(F::Sum, &[3], false),
        spec(F::Count, &[3], true),
        spec(F::Max, &[3], false),
        spec(F::FirstValue, &[3], false),
        spec(F::LastValue, &[1], false),
        spec(F::RowNumber, &[], false),
        spec(F::Rank, &[], false),
        spec(F::DenseRank, &[], false),
        spec(F::Lag { offset: 2 }, &[3, 1], false),
        spec(F::Lead { offset: 1 }, &[3], false),
        spec(F::Ntile { buckets: 2 }, &[], false),
        spec(F::PercentRank, &[], false),
        spec(F::CumeDist, &[], false),
    ]
}

/// Some orders: by time, the other way round, by value first, by nothing.
fn order(number: usize) -> Vec<SortColumn> {
    let by = |column, is_descending, nulls_first| SortColumn { column, is_descending, nulls_first };
    match number {
        0 => vec![by(2, false, true)],
        1 => vec![by(2, true, false)],
        2 => vec![by(3, true, false), by(2, false, false)],
        _ => Vec::new(),
    }
}

const CHANGING: OverInput = OverInput::Changing { with_update_before: true };

fn spec(order: Vec<SortColumn>, frame: OverFrame, aggregates: Vec<AggregateSpec>) -> OverSpec {
    let (partition, time) = (vec![0], TimeSpec::Processing);
    OverSpec { partition, time, order, frame, aggregates, ttl_ms: 0, input: CHANGING }
}

fn bed(spec: &OverSpec) -> Bed {
    let input = [("k", int()), ("id", int()), ("ts", timestamp()), ("v", int())];
    let results: Vec<String> = (0..spec.aggregates.len()).map(|index| format!("a{index}")).collect();
    let results = results.iter().zip(&spec.aggregates).map(|(name, spec)| (name.as_str(), spec.result.clone()));
    let output: Vec<(&str, DataType)> = input.iter().cloned().chain(results).collect();
    let operator = OperatorSpec::Over(spec.clone());
    Bed::keyed(operator, std::slice::from_ref(&spec.partition), &[columns(&input)], &columns(&output))
}

fn in_batch_mode(spec: &OverSpec, rows: &[Row]) -> BTreeMap<String, i64> {
    let mut bed = bed(&OverSpec { input: OverInput::Whole, ..spec.clone() });
    if !rows.is_empty() {
        bed.insert(0, &rows.iter().copied().map(values).collect::<Vec<_>>());
    }
    bed.end();
    fold(&bed.take_rows())
}

/// A window with some of the functions.
fn window() -> impl Strategy<Value = OverSpec> {
    let frame = prop_oneof![
        Just(OverFrame::Rows(None)),
        Just(OverFrame::Range(None)),
        (0..3_u64).prop_map(|rows| OverFrame::Rows(Some(rows))),
        (0..4_i64).prop_map(|ms| OverFrame::Range(Some(ms))),
    ];
    (0..4_usize, frame, 1..1_u32 << functions().len(), any::<bool>()).prop_map(|(number, frame, chosen, is_one)| {
        let frame = match frame {
            OverFrame::Range(Some(_)) if number > 1 => OverFrame::Range(None),
            frame => frame,
        };
        // One alone reaches less far than all together.
        let chosen = if is_one { 1 << chosen.trailing_zeros() } else { chosen };
        let functions = functions().into_iter().enumerate();
        let aggregates = functions.filter(|(index, _)| (chosen >> index) & 1 == 1).map(|(_, spec)| spec).collect();
        spec(order(number), frame, aggregates)
    })
}

/// A new row; one that is there; what happens; whether the chunk ends with it; whether there is a restart.
type Step = (Row, Index, u32, bool, u32);

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let row = (0..2_i64, 0..2_i64, prop::option::weighted(0.9, 0..8_i64), 0..4_i64);
    prop::collection::vec((row, any::<Index>(), 0..6_u32, any::<bool>(), 0..8_u32), 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn what_is_left_is_what_batch_mode_gives_for_the_rows_that_are_left(spec in window(), steps in steps()) {
        let mut bed = bed(&spec);
        // In the order in which they came. Some are equal.
        let (mut all, mut chunk, mut log): (Vec<Row>, Vec<_>, Vec<String>) = Default::default();
        for (new, which, what, ends, restart) in steps {
            let old = (what < 4 && !all.is_empty()).then(|| which.index(all.len())).map(|index| all[index]);
            if let Some(old) = old {
                // Of equal ones the first goes.
                all.remove(all.iter().position(|row| *row == old).unwrap());
            }
            let (is_update, is_new) = (old.is_some() && what < 2, old.is_none() || what < 2);
            if let Some(old) = old {
                chunk.push((if is_update { RowKind::UpdateBefore } else { RowKind::Delete }, values(old)));
            }
            if is_new {
                all.push(new);
                chunk.push((if is_update { RowKind::UpdateAfter } else { RowKind::Insert }, values(new)));
            }
            if ends || restart == 0 {
                bed.change(0, &std::mem::take(&mut chunk));
                log.extend(bed.take_rows());
                prop_assert_eq!(fold(&log), in_batch_mode(&spec, &all), "{:#?}", log);
            }
            if restart == 0 {
                bed.restart(1 + all.len() as u32 % 3);
            }
        }
    }

    #[test]
    fn rows_that_have_a_key_need_not_be_told_before_updates(spec in window(), steps in steps()) {
        let mut bed = bed(&OverSpec { input: OverInput::Changing { with_update_before: false }, ..spec.clone() });
        let (mut all, mut chunk, mut log): (Vec<Row>, Vec<_>, Vec<String>) = Default::default();
        for ((.., time, value), which, what, ends, restart) in steps {
            let id = which.index(7) as i64;
            let new = (id % 2, id, time, value);
            let old = all.iter().position(|row| row.1 == id).map(|index| all.remove(index));
            if let Some(old) = old {
                chunk.push((RowKind::UpdateBefore, values(old)));
            }
            if old.is_none() || what > 1 {
                all.push(new);
                chunk.push((RowKind::UpdateAfter, values(new)));
            }
            if ends || restart == 0 {
                bed.change(0, &std::mem::take(&mut chunk));
                log.extend(bed.take_rows());
                let left: BTreeMap<String, i64> =
                    fold_by_key(&log, &[1]).into_values().map(|row| (row, 1)).collect();
                prop_assert_eq!(left, in_batch_mode(&spec, &all), "{:#?}", log);
            }
            if restart == 0 {
                bed.restart(1 + all.len() as u32 % 3);
            }
        }
    }
}

/// Sums over a row and the one before it.
fn pairs() -> OverSpec {
    spec(order(0), OverFrame::Rows(Some(1)), functions().into_iter().take(1).collect())
}

/// The change of a row of the one key.
fn change(kind: RowKind, id: i64, time: i64, value: i64) -> (RowKind, Vec<Value>) {
    (kind, row![0_i64, id, time, value])
}

/// What has come out, without the key and times: id, value, result.
fn shown(bed: &mut Bed) -> Vec<String> {
    let shown = |line: String| {
        let fields: Vec<&str> = line.split('\t').collect();
        [fields[0], fields[2], fields[4], fields[5]].join(" ")
    };
    bed.take_rows().into_iter().map(shown).collect()
}

#[test]
fn no_more_is_told_than_has_become_another() {
    let mut bed = bed(&pairs());
    let rows: Vec<_> = (1..6).map(|id| change(RowKind::Insert, id, id * 10, id)).collect();
    bed.change(0, &rows);
    assert_eq!(shown(&mut bed), ["+I 1 1 1", "+I 2 2 3", "+I 3 3 5", "+I 4 4 7", "+I 5 5 9"]);
    bed.restart(2);
    bed.change(0, &[change(RowKind::Insert, 9, 25, 9)]);
    assert_eq!(shown(&mut bed), ["+I 9 9 11", "-U 3 3 5", "+U 3 3 12"]);
    // Whatever goes is told before what comes.
    bed.change(0, &[change(RowKind::UpdateBefore, 2, 20, 2), change(RowKind::UpdateAfter, 2, 45, 2)]);
    assert_eq!(shown(&mut bed), ["-D 2 2 3", "-U 9 9 11", "+U 9 9 10", "+I 2 2 6", "-U 5 5 9", "+U 5 5 7"]);
    bed.change(0, &[change(RowKind::Delete, 5, 50, 5)]);
    assert_eq!(shown(&mut bed), ["-D 5 5 7"]);
}

#[test]
fn changes_of_a_chunk_that_come_to_nothing_are_not_told() {
    let mut bed = bed(&pairs());
    bed.change(0, &[change(RowKind::Insert, 1, 10, 1), change(RowKind::Insert, 2, 20, 2)]);
    shown(&mut bed);
    let (come, go) = (change(RowKind::Insert, 3, 15, 3), change(RowKind::Delete, 3, 15, 3));
    bed.change(0, &[come, go]);
    bed.change(0, &[change(RowKind::UpdateBefore, 1, 10, 1), change(RowKind::UpdateAfter, 1, 10, 1)]);
    // What never came cannot go.
    bed.change(0, &[change(RowKind::Delete, 4, 15, 4), change(RowKind::Delete, 2, 20, 5)]);
    assert_eq!(shown(&mut bed), Vec::<String>::new());
}

#[test]
fn a_checkpoint_has_what_a_change_reaches() {
    let mut bed = bed(&pairs());
    let rows: Vec<_> = (0..1000).map(|id| change(RowKind::Insert, id, id, 1)).collect();
    bed.change(0, &rows);
    assert_eq!(bed.entries()["rows"], 1000);
    assert!(bed.changed_bytes() > 20_000);
    bed.change(0, &[change(RowKind::UpdateBefore, 7, 7, 1), change(RowKind::UpdateAfter, 7, 7, 5)]);
    assert!(bed.changed_bytes() < 1000);
}

#[test]
fn unused_keys_go_with_their_rows() {
    let mut bed = bed(&OverSpec { ttl_ms: 1000, ..pairs() });
    bed.time(5000);
    bed.insert(0, &[row![1_i64, 1_i64, 1_i64, 1_i64], row![2_i64, 2_i64, 1_i64, 2_i64]]);
    bed.restart(2);
    bed.time(5500);
    bed.insert(0, &[row![2_i64, 3_i64, 2_i64, 3_i64]]);
    bed.time(6000);
    assert_eq!(bed.entries()["rows"], 2);
    shown(&mut bed);
    bed.insert(0, &[row![1_i64, 4_i64, 9_i64, 4_i64], row![2_i64, 5_i64, 9_i64, 5_i64]]);
    let mut lines = shown(&mut bed);
    lines.sort();
    assert_eq!(lines, ["+I 4 4 4", "+I 5 5 8"]);
}
