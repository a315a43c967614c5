use std::collections::{BTreeMap, BTreeSet};

use arrow::datatypes::{Field, Schema, TimeUnit};
use proptest::prelude::*;

use super::*;
use crate::operators::testing::Bed;
use crate::spec::{AggregateFunction, AggregateSpec, OperatorSpec};
use crate::windows::AlignedWindows;

/// Key, time, value.
type Row = (i64, i64, i64);

fn timestamp() -> DataType {
    DataType::Timestamp(TimeUnit::Millisecond, None)
}

fn fields(all: &[(&str, DataType)]) -> SchemaRef {
    let field = |(name, data_type): &(&str, DataType)| Field::new(*name, data_type.clone(), true);
    Arc::new(Schema::new(all.iter().map(field).collect::<Vec<_>>()))
}

fn input() -> SchemaRef {
    fields(&[("k", DataType::Int64), ("ts", timestamp()), ("v", DataType::Int64)])
}

fn chunk(rows: &[Row]) -> Chunk {
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.0))),
        Arc::new(TimestampMillisecondArray::from_iter_values(rows.iter().map(|row| row.1))),
        Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.2))),
    ];
    Chunk::of_columns(&input(), columns, rows.len(), vec![RowKind::Insert; rows.len()]).unwrap()
}

fn aggregate(function: AggregateFunction, is_distinct: bool) -> AggregateSpec {
    let (arguments, order) = (vec![2], Vec::new());
    let text = format!("{function:?}");
    AggregateSpec { function, arguments, filter: None, is_distinct, order, result: DataType::Int64, text }
}

fn spec(window: WindowSpec, time: TimeSpec) -> WindowAggregateSpec {
    use AggregateFunction as F;
    let aggregates =
        vec![aggregate(F::Count, false), aggregate(F::Sum, false), aggregate(F::Max, false), aggregate(F::Count, true)];
    let window_columns = vec![WindowColumn::Start, WindowColumn::End];
    WindowAggregateSpec {
        keys: vec![0],
        aggregates,
        window,
        time,
        zone: None,
        window_columns,
        is_insert_only: true,
        has_partials: false,
    }
}

fn output() -> SchemaRef {
    let (number, time) = (DataType::Int64, timestamp());
    let names = ["k", "n", "s", "m", "d", "start", "end"];
    let types = [&number, &number, &number, &number, &number, &time, &time].map(DataType::clone);
    fields(&names.into_iter().zip(types).collect::<Vec<_>>())
}

fn bed(spec: &WindowAggregateSpec) -> Bed {
    Bed::keyed(OperatorSpec::WindowAggregate(spec.clone()), std::slice::from_ref(&spec.keys), &[input()], &output())
}

/// A time within the first minute, as it is shown.
fn shown(time: i64) -> String {
    let column: ArrayRef = Arc::new(TimestampMillisecondArray::from(vec![time]));
    let mut text = String::new();
    flott_chunk::display::write_value(&column, 0, &mut text);
    text
}

/// What the rows of a key in a window result in.
fn line(key: i64, window: TimeWindow, values: &[i64]) -> String {
    let distinct: BTreeSet<i64> = values.iter().copied().collect();
    let (sum, max) = (values.iter().sum::<i64>(), values.iter().max().unwrap());
    let (start, end) = (shown(window.start), shown(window.end));
    format!("+I\t{key}\t{}\t{sum}\t{max}\t{}\t{start}\t{end}", values.len(), distinct.len())
}

/// Rows with the watermark behind each, put into windows one by one.
fn naive(spec: WindowSpec, rows: &[(Row, i64)]) -> Vec<String> {
    let mut windows: BTreeMap<(i64, TimeWindow), Vec<i64>> = BTreeMap::new();
    let mut now = i64::MIN;
    for ((key, time, value), watermark) in rows {
        match spec {
            WindowSpec::Session { gap_ms } => {
                let mut window = TimeWindow { start: *time, end: time + gap_ms };
                let touching: Vec<(i64, TimeWindow)> = windows
                    .keys()
                    .filter(|(other, open)| other == key && open.max_timestamp() > now && open.intersects(window))
                    .copied()
                    .collect();
                touching.iter().for_each(|(_, open)| window = window.cover(*open));
                if window.max_timestamp() > now {
                    let mut values: Vec<i64> = touching.iter().flat_map(|open| windows.remove(open).unwrap()).collect();
                    values.push(*value);
                    windows.insert((*key, window), values);
                }
            }
            spec => {
                for window in AlignedWindows::new(spec).unwrap().unwrap().all_of(*time) {
                    if window.max_timestamp() > now {
                        windows.entry((*key, window)).or_default().push(*value);
                    }
                }
            }
        }
        now = now.max(*watermark);
    }
    let mut lines: Vec<String> = windows.iter().map(|((key, window), values)| line(*key, *window, values)).collect();
    lines.sort();
    lines
}

fn windows() -> impl Strategy<Value = WindowSpec> {
    prop_oneof![
        (1..9_i64, -2..5_i64).prop_map(|(size_ms, offset_ms)| WindowSpec::Tumble { size_ms, offset_ms }),
        (1..6_i64, 1..13_i64, 0..3_i64).prop_map(|(slide_ms, size_ms, offset_ms)| WindowSpec::Hop {
            slide_ms,
            size_ms,
            offset_ms
        }),
        (1..5_i64, 1..5_i64).prop_map(|(step_ms, times)| WindowSpec::Cumulate {
            step_ms,
            size_ms: step_ms * times,
            offset_ms: 0
        }),
        (1..6_i64).prop_map(|gap_ms| WindowSpec::Session { gap_ms }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn rows_count_in_the_windows_that_are_open(
        spec_of in windows(),
        steps in prop::collection::vec((0..3_i64, -3..6_i64, 0..4_i64, prop::bool::weighted(0.3), 0..12_u32), 1..40),
    ) {
        let spec = spec(spec_of, TimeSpec::Event(1));
        let (mut together, mut apart) = (bed(&spec), bed(&spec));
        let (mut watermark, mut rows, mut pending): (i64, Vec<(Row, i64)>, Vec<Row>) = (0, Vec::new(), Vec::new());
        for (key, ahead, value, moves, restart) in steps {
            let row = (key, watermark + ahead, value);
            pending.push(row);
            apart.push(&chunk(&[row]));
            if moves {
                watermark = watermark.max(row.1);
                together.push(&chunk(&std::mem::take(&mut pending)));
                together.watermark(watermark);
                apart.watermark(watermark);
            }
            rows.push((row, if moves { watermark } else { i64::MIN }));
            if (1..4).contains(&restart) {
                apart.restart(restart);
            }
        }
        if !pending.is_empty() {
            together.push(&chunk(&pending));
        }
        let expected = naive(spec_of, &rows);
        for bed in [together, apart] {
            let mut log = bed.finish();
            log.sort();
            prop_assert_eq!(&log, &expected);
        }
    }
}

/// The rows of one script, which Flink 2.3 gave the results for; the watermark follows each row.
const ROWS: [Row; 12] = [
    (0, 1000, 1),
    (1, 6000, 2),
    (0, 3000, 3),
    (0, 12_000, 4),
    (0, 20_000, 5),
    (0, 17_000, 6),
    (0, 14_000, 7),
    (1, 21_000, 8),
    (0, 25_000, 9),
    (0, 40_000, 10),
    (0, 33_000, 11),
    (0, 35_000, 12),
];

fn results(window: WindowSpec) -> Vec<String> {
    let mut bed = bed(&spec(window, TimeSpec::Event(1)));
    for (index, row) in ROWS.iter().enumerate() {
        bed.push(&chunk(&[*row]));
        bed.watermark(row.1);
        if index % 4 == 3 {
            bed.restart(index as u32 % 3 + 1);
        }
    }
    let log = bed.finish();
    // Key, count, sum, start and end in seconds.
    let seconds = |text: &str| {
        text.rsplit_once(':').map_or("", |(_, seconds)| if text.len() > 16 { seconds } else { "00" }).to_owned()
    };
    log.iter()
        .map(|line| {
            let columns: Vec<&str> = line.split('\t').collect();
            format!("{} {} {} {}..{}", columns[1], columns[2], columns[3], seconds(columns[6]), seconds(columns[7]))
        })
        .collect()
}

#[test]
fn windows_are_those_of_flink() {
    let mut tumble = results(WindowSpec::Tumble { size_ms: 5000, offset_ms: 0 });
    let mut expected = [
        "0 1 1 00..05",
        "1 1 2 05..10",
        "0 1 4 10..15",
        "0 1 5 20..25",
        "1 1 8 20..25",
        "0 1 9 25..30",
        "0 1 10 40..45",
    ];
    tumble.sort();
    expected.sort_unstable();
    assert_eq!(tumble, expected);
    let mut hop = results(WindowSpec::Hop { slide_ms: 5000, size_ms: 10_000, offset_ms: 0 });
    hop.sort();
    let mut expected = [
        "0 1 1 55..05",
        "1 1 2 00..10",
        "0 2 4 00..10",
        "1 1 2 05..15",
        "0 1 4 05..15",
        "0 1 4 10..20",
        "0 2 11 15..25",
        "1 1 8 15..25",
        "0 2 14 20..30",
        "1 1 8 20..30",
        "0 1 9 25..35",
        "0 2 22 35..45",
        "0 1 10 40..50",
    ];
    expected.sort_unstable();
    assert_eq!(hop, expected);
    let mut session = results(WindowSpec::Session { gap_ms: 5000 });
    let mut expected = [
        "0 1 1 01..06",
        "0 1 3 03..08",
        "1 1 2 06..11",
        "0 1 4 12..17",
        "1 1 8 21..26",
        "0 4 27 14..30",
        "0 2 22 35..45",
    ];
    session.sort();
    expected.sort_unstable();
    assert_eq!(session, expected);
    let mut cumulate = results(WindowSpec::Cumulate { step_ms: 5000, size_ms: 20_000, offset_ms: 0 });
    cumulate.sort();
    let mut expected = [
        "0 1 1 00..05",
        "1 1 2 00..10",
        "0 2 4 00..10",
        "1 1 2 00..15",
        "0 3 8 00..15",
        "1 1 2 00..20",
        "0 3 8 00..20",
        "0 1 5 20..25",
        "1 1 8 20..25",
        "0 2 14 20..30",
        "1 1 8 20..30",
        "0 2 14 20..35",
        "1 1 8 20..35",
        "0 2 14 20..40",
        "1 1 8 20..40",
        "0 1 10 40..45",
        "0 1 10 40..50",
        "0 1 10 40..55",
        "0 1 10 40..00",
    ];
    expected.sort_unstable();
    assert_eq!(cumulate, expected);
}

#[test]
fn windows_of_the_clock_end_with_it_and_with_the_input() {
    let mut bed = bed(&spec(WindowSpec::Hop { slide_ms: 5, size_ms: 10, offset_ms: 0 }, TimeSpec::Processing));
    bed.time(107);
    bed.push(&chunk(&[(1, 0, 3), (1, 0, 4)]));
    bed.time(109);
    assert_eq!(bed.take(), Vec::<String>::new());
    bed.restart(2);
    bed.time(110);
    assert_eq!(bed.take(), [line(1, TimeWindow { start: 100, end: 110 }, &[3, 4])]);
    assert_eq!(bed.finish(), [line(1, TimeWindow { start: 105, end: 115 }, &[3, 4])]);
}

#[test]
fn closed_windows_leave_nothing_behind() {
    for window in [WindowSpec::Tumble { size_ms: 5, offset_ms: 0 }, WindowSpec::Session { gap_ms: 5 }] {
        let mut bed = bed(&spec(window, TimeSpec::Event(1)));
        let rows: Vec<Row> = (0..500).map(|key| (key, key % 7, 1)).collect();
        bed.push(&chunk(&rows));
        bed.restart(3);
        bed.watermark(100);
        assert!(bed.entries().values().all(|entries| *entries == 0), "{window:?}");
        // A late row leaves nothing either.
        bed.push(&chunk(&[(7, 3, 1)]));
        assert!(bed.entries().values().all(|entries| *entries == 0), "{window:?}");
    }
}

#[test]
fn windows_that_rows_have_close_as_theirs_do() {
    let window = WindowSpec::Tumble { size_ms: 5, offset_ms: 0 };
    let spec = spec(window, TimeSpec::Window { start: 1, end: 2 });
    let input = fields(&[("k", DataType::Int64), ("start", timestamp()), ("v", timestamp())]);
    let spec = WindowAggregateSpec {
        aggregates: vec![AggregateSpec { arguments: Vec::new(), ..spec.aggregates[0].clone() }],
        ..spec
    };
    let output =
        fields(&[("k", DataType::Int64), ("n", DataType::Int64), ("start", timestamp()), ("end", timestamp())]);
    let mut bed = Bed::keyed(OperatorSpec::WindowAggregate(spec), &[vec![0]], std::slice::from_ref(&input), &output);
    let rows = |rows: &[(i64, i64, i64)]| {
        let times = |at: fn(&(i64, i64, i64)) -> i64| -> ArrayRef {
            Arc::new(TimestampMillisecondArray::from_iter_values(rows.iter().map(at)))
        };
        let keys: ArrayRef = Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.0)));
        let columns = vec![keys, times(|row| row.1), times(|row| row.2)];
        Chunk::of_columns(&input, columns, rows.len(), vec![RowKind::Insert; rows.len()]).unwrap()
    };
    bed.push(&rows(&[(1, 0, 5), (1, 0, 10), (1, 0, 5), (2, 5, 10)]));
    bed.watermark(4);
    bed.push(&rows(&[(1, 0, 5), (2, 0, 10)]));
    let mut log = bed.finish();
    log.sort();
    let at = |ms: i64| shown(ms);
    let line = |key: i64, n: i64, start: i64, end: i64| format!("+I\t{key}\t{n}\t{}\t{}", at(start), at(end));
    let mut expected = vec![line(1, 2, 0, 5), line(1, 1, 0, 10), line(2, 1, 0, 10), line(2, 1, 5, 10)];
    expected.sort();
    assert_eq!(log, expected);
}

#[test]
fn window_tables_add_the_windows_of_each_row() {
    let columns = [("k", DataType::Int64), ("ts", timestamp()), ("v", DataType::Int64)];
    let behind = [("window_start", timestamp()), ("window_end", timestamp()), ("window_time", timestamp())];
    let output = fields(&columns.into_iter().chain(behind).collect::<Vec<_>>());
    let table = |window, partition: Vec<usize>| {
        let spec =
            OperatorSpec::WindowTable { window, time: TimeSpec::Event(1), partition: partition.clone(), zone: None };
        Bed::keyed(spec, &[partition], &[input()], &output)
    };
    let line = |(key, time, value): Row, start: i64, end: i64| {
        let times = [time, start, end, end - 1].map(shown);
        format!("+I\t{key}\t{}\t{value}\t{}\t{}\t{}", times[0], times[1], times[2], times[3])
    };
    let mut hop = table(WindowSpec::Hop { slide_ms: 5, size_ms: 10, offset_ms: 0 }, vec![0]);
    hop.push(&chunk(&[(1, 7, 1)]));
    assert_eq!(hop.finish(), [line((1, 7, 1), 5, 15), line((1, 7, 1), 0, 10)]);
    let mut session = table(WindowSpec::Session { gap_ms: 5 }, vec![0]);
    session.push(&chunk(&[(1, 7, 1), (2, 8, 2)]));
    session.restart(2);
    session.push(&chunk(&[(1, 12, 3)]));
    session.watermark(13);
    assert_eq!(
        session.take().iter().filter(|line| line.starts_with("+I")).collect::<Vec<_>>(),
        [&line((2, 8, 2), 8, 13)]
    );
    session.push(&chunk(&[(2, 7, 4)]));
    assert_eq!(session.finish(), [line((1, 7, 1), 7, 17), line((1, 12, 3), 7, 17)]);
}
