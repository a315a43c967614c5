use std::collections::BTreeMap;

use proptest::prelude::*;

use crate::operators::testing::{Bed, Value, columns, fold, fold_by_key, int, row, text, timestamp};
use crate::spec::{DeduplicateSpec, OperatorSpec, TimeSpec};

fn bed(time: TimeSpec, keeps_last: bool, with_update_before: bool) -> Bed {
    let schema = columns(&[("k", text()), ("v", int()), ("ts", timestamp())]);
    let spec = DeduplicateSpec { partition: vec![0], time, keeps_last, with_update_before, ttl_ms: 0 };
    Bed::keyed(OperatorSpec::Deduplicate(spec), &[vec![0]], std::slice::from_ref(&schema), &schema)
}

/// Rows with seconds for times.
fn rows(rows: &[(&str, i64, i64)]) -> Vec<Vec<Value>> {
    rows.iter().map(|(k, v, second)| row![*k, *v, second * 1000]).collect()
}

/// Key, value and second of lines.
fn short(lines: &[String]) -> Vec<String> {
    lines.iter().map(|line| line.rsplit_once('\t').unwrap().0.replace('\t', " ")).collect()
}

/// Rows of which Flink 2.3 was asked, each with the watermark behind it.
const ROWS: [(&str, i64, i64); 10] = [
    ("a", 1, 10),
    ("b", 2, 10),
    ("b", 3, 10),
    ("b", 4, 9),
    ("a", 5, 20),
    ("c", 6, 12),
    ("d", 7, 15),
    ("e", 8, 10),
    ("a", 9, 26),
    ("c", 10, 22),
];

#[test]
fn the_first_by_time_waits_for_the_watermark_as_in_flink() {
    for restarts in [false, true] {
        let mut bed = bed(TimeSpec::Event(2), false, true);
        let mut watermark = i64::MIN;
        for (place, changes) in ROWS.iter().enumerate() {
            bed.insert(0, &rows(&[*changes]));
            if (changes.2 - 5) * 1000 > watermark {
                watermark = (changes.2 - 5) * 1000;
                bed.watermark(watermark);
            }
            if restarts {
                bed.restart(1 + place as u32 % 3);
            }
        }
        bed.end();
        let mut lines = short(&bed.take_rows());
        lines.sort();
        assert_eq!(lines, ["+I a 1", "+I b 4", "+I c 10", "+I d 7"]);
        assert_eq!(bed.late(), 2, "c at 12 and e at 10");
    }
}

#[test]
fn the_last_by_time_is_known_at_once_as_in_flink() {
    let mut bed = bed(TimeSpec::Event(2), true, true);
    for changes in ROWS {
        bed.insert(0, &rows(&[changes]));
        bed.watermark((changes.2 - 5) * 1000);
    }
    let expected = [
        "+I a 1", "+I b 2", "-U b 2", "+U b 3", "-U a 1", "+U a 5", "+I c 6", "+I d 7", "+I e 8", "-U a 5", "+U a 9",
        "-U c 6", "+U c 10",
    ];
    assert_eq!(short(&bed.take_rows()), expected);
}

#[test]
fn changes_of_a_chunk_are_netted_and_equal_rows_are_nothing_new() {
    let mut bed = bed(TimeSpec::Processing, true, true);
    bed.insert(0, &rows(&[("a", 1, 0), ("b", 1, 0), ("a", 2, 0)]));
    bed.insert(0, &rows(&[("a", 3, 0), ("a", 2, 0), ("b", 2, 0), ("c", 1, 0)]));
    assert_eq!(short(&bed.take()), ["+I a 2", "+I b 1", "-U b 1", "+U b 2", "+I c 1"]);
}

#[test]
fn the_first_to_come_stays() {
    let mut bed = bed(TimeSpec::Processing, false, false);
    bed.insert(0, &rows(&[("a", 1, 9), ("b", 1, 0), ("a", 2, 0)]));
    bed.restart(3);
    bed.insert(0, &rows(&[("a", 3, 0), ("c", 1, 0), ("b", 2, 0)]));
    assert_eq!(short(&bed.take()), ["+I a 1", "+I b 1", "+I c 1"]);
}

#[test]
fn an_unused_key_goes_and_a_used_one_stays() {
    for keeps_last in [true, false] {
        let schema = columns(&[("k", text()), ("v", int()), ("ts", timestamp())]);
        let (partition, time) = (vec![0], TimeSpec::Processing);
        let spec = DeduplicateSpec { partition, time, keeps_last, with_update_before: false, ttl_ms: 1000 };
        let mut bed = Bed::keyed(OperatorSpec::Deduplicate(spec), &[vec![0]], std::slice::from_ref(&schema), &schema);
        bed.time(5000);
        bed.insert(0, &rows(&[("a", 1, 0), ("b", 1, 0)]));
        bed.time(5900);
        bed.insert(0, &rows(&[("b", 2, 0)]));
        bed.restart(2);
        bed.time(6100);
        bed.take();
        bed.insert(0, &rows(&[("a", 2, 0)]));
        bed.insert(0, &rows(&[("b", 2, 0)]));
        // The first row counts from when it came; the last is told again, so that those behind know that it is in use.
        let expected = if keeps_last { ["+I a 2", "+U b 2"] } else { ["+I a 2", "+I b 2"] };
        assert_eq!(short(&bed.take()), expected);
    }
}

proptest! {
    #[test]
    fn the_last_of_each_key_is_left(
        rows in prop::collection::vec((0..4_i64, 0..50_i64, any::<bool>(), 0..10_u32), 1..40),
        by_time in any::<bool>(),
        with_update_before in any::<bool>(),
    ) {
        let time = if by_time { TimeSpec::Event(2) } else { TimeSpec::Processing };
        let mut bed = bed(time, true, with_update_before);
        let mut last: BTreeMap<String, (i64, usize)> = BTreeMap::new();
        let mut chunk = Vec::new();
        for (v, (key, second, ends, restart)) in rows.into_iter().enumerate() {
            chunk.push(row![format!("k{key}").as_str(), v as i64, second]);
            let kept = last.entry(format!("k{key}")).or_insert((i64::MIN, 0));
            if !by_time || second >= kept.0 {
                *kept = (second, v);
            }
            if ends {
                bed.insert(0, &std::mem::take(&mut chunk));
            }
            if restart == 0 {
                bed.restart(1 + v as u32 % 3);
            }
        }
        bed.insert(0, &chunk);
        let lines = bed.take_rows();
        let left: Vec<String> = match with_update_before {
            true => fold(&lines).into_keys().collect(),
            false => fold_by_key(&lines, &[0]).into_values().collect(),
        };
        let left: BTreeMap<String, usize> = left.iter().map(|row| {
            let mut fields = row.split('\t');
            (fields.next().unwrap().to_owned(), fields.next().unwrap().parse().unwrap())
        }).collect();
        prop_assert_eq!(left, last.into_iter().map(|(key, (_, v))| (key, v)).collect::<BTreeMap<_, _>>());
    }
}
