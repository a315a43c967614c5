use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, TimestampMillisecondArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use flott_chunk::{Chunk, RowKind};
use proptest::prelude::*;

use super::*;
use crate::operators::testing::Bed;
use crate::sort_key::SortColumn;
use crate::spec::{AggregateFunction as F, AggregateSpec, OperatorSpec, OverFrame, TimeSpec};

/// Key, time, value.
type Row = (i64, i64, i64);

fn fields(more: usize) -> SchemaRef {
    let timestamp = DataType::Timestamp(TimeUnit::Millisecond, None);
    let mut fields = vec![
        Field::new("k", DataType::Int64, true),
        Field::new("ts", timestamp, true),
        Field::new("v", DataType::Int64, true),
    ];
    fields.extend((0..more).map(|index| Field::new(format!("a{index}"), DataType::Int64, true)));
    Arc::new(Schema::new(fields))
}

fn chunk(rows: &[Row]) -> Chunk {
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.0))),
        Arc::new(TimestampMillisecondArray::from_iter_values(rows.iter().map(|row| row.1))),
        Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.2))),
    ];
    Chunk::of_columns(&fields(0), columns, rows.len(), vec![RowKind::Insert; rows.len()]).unwrap()
}

fn aggregate(function: F, arguments: &[usize], is_distinct: bool) -> AggregateSpec {
    let (arguments, text) = (arguments.to_vec(), format!("{function:?}"));
    AggregateSpec { function, arguments, filter: None, is_distinct, order: Vec::new(), result: DataType::Int64, text }
}

fn spec(frame: OverFrame, is_batch: bool, aggregates: Vec<AggregateSpec>) -> OverSpec {
    let order = vec![SortColumn { column: 1, is_descending: false, nulls_first: true }];
    let input = if is_batch { OverInput::Whole } else { OverInput::InOrder };
    OverSpec { partition: vec![0], time: TimeSpec::Event(1), order, frame, aggregates, ttl_ms: 0, input }
}

fn all() -> Vec<AggregateSpec> {
    vec![
        aggregate(F::Sum, &[2], false),
        aggregate(F::Count, &[2], true),
        aggregate(F::Max, &[2], false),
        aggregate(F::LastValue, &[2], false),
        aggregate(F::RowNumber, &[], false),
        aggregate(F::Rank, &[], false),
        aggregate(F::DenseRank, &[], false),
        aggregate(F::Lag { offset: 2 }, &[2, 0], false),
    ]
}

fn bed(spec: &OverSpec) -> Bed {
    let output = fields(spec.aggregates.len());
    Bed::keyed(OperatorSpec::Over(spec.clone()), std::slice::from_ref(&spec.partition), &[fields(0)], &output)
}

/// What a row is put out as, without its time: `rows` are those of its key that have been put out, and with it its peers,
/// in order, and `index` is its place.
fn line(rows: &[Row], index: usize, frame: OverFrame) -> String {
    let (key, time, value) = rows[index];
    let in_frame: Vec<i64> = rows
        .iter()
        .enumerate()
        .filter(|(other, (_, at, _))| match frame {
            OverFrame::Rows(limit) => {
                *other <= index && limit.is_none_or(|limit| *other as u64 + limit >= index as u64)
            }
            OverFrame::Range(limit) => *at <= time && limit.is_none_or(|limit| *at >= time - limit),
        })
        .map(|(_, row)| row.2)
        .collect();
    let distinct: BTreeSet<i64> = in_frame.iter().copied().collect();
    let rank = rows.iter().filter(|row| row.1 < time).count() + 1;
    let times: BTreeSet<i64> = rows.iter().map(|row| row.1).filter(|other| *other <= time).collect();
    let lag = if index >= 2 { rows[index - 2].2 } else { key };
    let (sum, max, last) = (in_frame.iter().sum::<i64>(), distinct.last().unwrap(), in_frame.last().unwrap());
    format!("{key} {value} {sum} {} {max} {last} {} {rank} {} {lag}", distinct.len(), index + 1, times.len())
}

/// A line that was put out, without its time.
fn shown(log: &[String]) -> Vec<String> {
    let columns = |line: &String| -> Vec<String> { line.split('\t').map(str::to_owned).collect() };
    let shown = |line: &String| {
        let columns = columns(line);
        assert_eq!(columns[0], "+I");
        [&columns[1..2], &columns[3..]].concat().join(" ")
    };
    log.iter().map(shown).collect()
}

fn frame() -> impl Strategy<Value = OverFrame> {
    prop_oneof![
        Just(OverFrame::Rows(None)),
        Just(OverFrame::Range(None)),
        (0..3_u64).prop_map(|rows| OverFrame::Rows(Some(rows))),
        (0..6_i64).prop_map(|ms| OverFrame::Range(Some(ms))),
    ]
}

/// By event time, one watermark after the other.
fn naive(frame: OverFrame, steps: &[(Vec<Row>, i64)]) -> Vec<String> {
    let is_bounded = matches!(frame, OverFrame::Rows(Some(_)) | OverFrame::Range(Some(_)));
    let mut lines = Vec::new();
    let mut now = i64::MIN;
    let (mut done, mut waiting): (Vec<Row>, Vec<Row>) = Default::default();
    for (rows, watermark) in steps {
        for row in rows {
            let last = done.iter().filter(|other| other.0 == row.0).map(|other| other.1).max();
            let limit = if is_bounded { last.unwrap_or(i64::MIN) } else { now };
            if row.1 > limit {
                waiting.push(*row);
            }
        }
        now = now.max(*watermark);
        let (mut ready, rest): (Vec<Row>, Vec<Row>) = waiting.into_iter().partition(|row| row.1 <= now);
        waiting = rest;
        ready.sort_by_key(|row| row.1);
        for time in ready.iter().map(|row| row.1).collect::<BTreeSet<i64>>() {
            for key in 0..3 {
                let mut of_key: Vec<Row> = done.iter().filter(|row| row.0 == key).copied().collect();
                let first = of_key.len();
                of_key.extend(ready.iter().filter(|row| row.0 == key && row.1 == time));
                lines.extend((first..of_key.len()).map(|index| line(&of_key, index, frame)));
                done.extend(&of_key[first..]);
            }
        }
    }
    lines.sort();
    lines
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn rows_have_the_aggregates_of_those_before_them(
        frame in frame(),
        steps in prop::collection::vec((prop::collection::vec((0..3_i64, 0..9_i64, 0..4_i64), 0..6), 0..5_i64, 0..6_u32), 1..10),
    ) {
        let mut bed = bed(&spec(frame, false, all()));
        let (mut watermark, mut told): (i64, Vec<(Vec<Row>, i64)>) = (0, Vec::new());
        for (rows, moves, restart) in steps {
            let rows: Vec<Row> = rows.into_iter().map(|(key, ahead, value)| (key, watermark + ahead - 3, value)).collect();
            watermark += moves;
            if !rows.is_empty() {
                bed.push(&chunk(&rows));
            }
            if (1..4).contains(&restart) {
                bed.restart(restart);
            }
            bed.watermark(watermark);
            told.push((rows, watermark));
        }
        told.push((Vec::new(), i64::MAX));
        let mut lines = shown(&bed.finish());
        lines.sort();
        prop_assert_eq!(lines, naive(frame, &told));
    }

    #[test]
    fn in_batch_mode_all_rows_are_there(
        frame in frame(), rows in prop::collection::vec((0..3_i64, 0..9_i64, 0..4_i64), 1..30), restart in 1..4_u32,
    ) {
        let mut bed = bed(&spec(frame, true, all()));
        let (first, second) = rows.split_at(rows.len() / 2);
        [first, second].into_iter().filter(|rows| !rows.is_empty()).for_each(|rows| {
            bed.push(&chunk(rows));
            bed.restart(restart);
        });
        let mut expected = Vec::new();
        for key in 0..3 {
            let mut of_key: Vec<Row> = rows.iter().filter(|row| row.0 == key).copied().collect();
            of_key.sort_by_key(|row| row.1);
            expected.extend((0..of_key.len()).map(|index| line(&of_key, index, frame)));
        }
        let mut lines = shown(&bed.finish());
        lines.sort();
        expected.sort();
        prop_assert_eq!(lines, expected);
    }
}

/// Rows of a script that Flink 2.3 gave results for, times in seconds; the watermark follows each.
const ROWS: [Row; 12] = [
    (0, 1, 1),
    (1, 6, 2),
    (0, 3, 3),
    (0, 12, 4),
    (0, 20, 5),
    (0, 17, 6),
    (0, 14, 7),
    (1, 21, 8),
    (0, 25, 9),
    (0, 40, 10),
    (0, 33, 11),
    (0, 35, 12),
];

fn results(frame: OverFrame, aggregates: Vec<AggregateSpec>) -> Vec<String> {
    let mut bed = bed(&spec(frame, false, aggregates));
    for (key, time, value) in ROWS {
        bed.push(&chunk(&[(key, time * 1000, value)]));
        bed.watermark(time * 1000);
        bed.restart(value as u32 % 3 + 1);
    }
    shown(&bed.finish())
}

#[test]
fn results_are_those_of_flink() {
    let range = results(
        OverFrame::Range(Some(6000)),
        vec![aggregate(F::Sum, &[2], false), aggregate(F::Count, &[], false), aggregate(F::Max, &[2], false)],
    );
    let expected =
        ["0 1 1 1 1", "1 2 2 1 2", "0 3 4 2 3", "0 4 4 1 4", "0 5 5 1 5", "1 8 8 1 8", "0 9 14 2 9", "0 10 10 1 10"];
    assert_eq!(range, expected);
    let rows = results(
        OverFrame::Rows(Some(1)),
        vec![
            aggregate(F::Sum, &[2], false),
            aggregate(F::FirstValue, &[2], false),
            aggregate(F::LastValue, &[2], false),
        ],
    );
    let expected =
        ["0 1 1 1 1", "1 2 2 2 2", "0 3 4 1 3", "0 4 7 3 4", "0 5 9 4 5", "1 8 10 2 8", "0 9 14 5 9", "0 10 19 9 10"];
    assert_eq!(rows, expected);
    let unbounded =
        results(OverFrame::Range(None), vec![aggregate(F::Sum, &[2], false), aggregate(F::Count, &[2], true)]);
    let expected = ["0 1 1 1", "1 2 2 1", "0 4 5 2", "0 5 10 3", "1 8 10 2", "0 9 19 4", "0 10 29 5"];
    assert_eq!(unbounded, expected);
    let lag = results(OverFrame::Rows(None), vec![aggregate(F::Lag { offset: 1 }, &[2], false)]);
    let expected = ["0 1 null", "1 2 null", "0 4 1", "0 5 4", "1 8 2", "0 9 5", "0 10 9"];
    assert_eq!(lag, expected);
}

#[test]
fn by_the_clock_rows_are_put_out_as_they_come() {
    let by_clock =
        |frame| OverSpec { time: TimeSpec::Processing, ..spec(frame, false, vec![aggregate(F::Sum, &[2], false)]) };
    let mut rows = bed(&by_clock(OverFrame::Rows(Some(1))));
    rows.push(&chunk(&[(1, 9, 1), (1, 5, 2)]));
    rows.restart(2);
    rows.push(&chunk(&[(1, 0, 4)]));
    assert_eq!(shown(&rows.finish()), ["1 1 1", "1 2 3", "1 4 6"]);
    let mut range = bed(&by_clock(OverFrame::Range(Some(10))));
    for (time, value) in [(100, 1), (105, 2), (115, 4), (126, 8)] {
        range.time(time);
        range.push(&chunk(&[(1, 0, value)]));
    }
    assert_eq!(shown(&range.finish()), ["1 1 1", "1 2 3", "1 4 6", "1 8 8"]);
}

#[test]
fn what_comes_later_is_known_in_batch_mode_alone() {
    let later = || vec![aggregate(F::Lead { offset: 1 }, &[2], false), aggregate(F::Ntile { buckets: 2 }, &[], false)];
    let mut bed = bed(&spec(OverFrame::Rows(None), true, later()));
    bed.push(&chunk(&[(1, 3, 30), (1, 1, 10), (1, 2, 20), (2, 0, 5)]));
    let mut lines = shown(&bed.finish());
    lines.sort();
    assert_eq!(lines, ["1 10 20 1", "1 20 30 1", "1 30 null 2", "2 5 null 1"]);
}

#[test]
fn shares_of_all_rows_are_known_in_batch_mode_alone() {
    let double = |function| AggregateSpec { result: DataType::Float64, ..aggregate(function, &[], false) };
    let shares = spec(OverFrame::Rows(None), true, vec![double(F::PercentRank), double(F::CumeDist)]);
    let mut columns = fields(0).fields().to_vec();
    columns.extend(["p", "c"].map(|name| Arc::new(Field::new(name, DataType::Float64, false))));
    let output: SchemaRef = Arc::new(Schema::new(columns));
    let operator = OperatorSpec::Over(shares.clone());
    let mut bed = Bed::keyed(operator, std::slice::from_ref(&shares.partition), &[fields(0)], &output);
    // Two of the first key have the same time.
    bed.push(&chunk(&[(1, 3, 30), (1, 1, 10), (1, 2, 20), (1, 2, 21), (2, 0, 5)]));
    let mut lines = shown(&bed.finish());
    lines.sort();
    let third = 1.0 / 3.0;
    let expected = [
        "1 10 0.0 0.25".to_owned(),
        format!("1 20 {third} 0.75"),
        format!("1 21 {third} 0.75"),
        "1 30 1.0 1.0".to_owned(),
        "2 5 0.0 1.0".to_owned(),
    ];
    assert_eq!(lines, expected);
}

#[test]
fn an_idle_frame_of_time_leaves_nothing_behind() {
    let mut bed = bed(&spec(OverFrame::Range(Some(10)), false, vec![aggregate(F::Sum, &[2], false)]));
    bed.push(&chunk(&[(1, 5, 1), (2, 8, 1)]));
    bed.watermark(21);
    assert_eq!(bed.entries()["partitions"], 1);
    bed.restart(2);
    bed.watermark(24);
    assert_eq!(bed.entries()["partitions"], 0);
}
