use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::operators::sides::{Row, changes, inserts, joined, less, shown, sides};
use crate::operators::testing::Bed;
use crate::spec::{JoinKind, OperatorSpec};

fn bed(is_left_outer: bool, with_condition: bool, is_event_time: bool) -> Bed {
    bed_with_ttl(is_left_outer, with_condition, is_event_time, 0)
}

fn bed_with_ttl(is_left_outer: bool, with_condition: bool, is_event_time: bool, ttl_ms: u64) -> Bed {
    let time = if is_event_time { TimeSpec::Event(1) } else { TimeSpec::Processing };
    let spec = TemporalJoinSpec {
        is_left_outer,
        left_keys: vec![0],
        right_keys: vec![0],
        left_time: time.clone(),
        right_time: time,
        ttl_ms,
        condition: with_condition.then(less),
    };
    Bed::keyed(OperatorSpec::TemporalJoin(spec), &[vec![0], vec![0]], &sides(), &joined(JoinKind::Left))
}

/// The join with the last version by each row's time, each key's versions by their time.
fn naive(left: &[(Row, RowKind)], right: &[(Row, RowKind)], is_left_outer: bool, with_condition: bool) -> Vec<String> {
    let mut versions: BTreeMap<(i64, i64), (Row, RowKind)> = BTreeMap::new();
    for (row, kind) in right {
        if let (Some(key), Some(time), true) = (row.0, row.1, *kind != RowKind::UpdateBefore) {
            versions.insert((key, time), (*row, *kind));
        }
    }
    let mut lines = Vec::new();
    for (row, kind) in left {
        let version = match (row.0, row.1) {
            (Some(key), Some(time)) => versions.range((key, i64::MIN)..=(key, time)).next_back(),
            _ => None,
        };
        let version = version.map(|(_, version)| version).filter(|(_, kind)| kind.is_addition());
        let version = version.filter(|(version, _)| !with_condition || row.2 < version.2);
        if version.is_some() || is_left_outer {
            let version = version.map(|(version, _)| version);
            lines.push(format!("{}\t{}\t{}", kind.short(), shown(Some(row)), shown(version)));
        }
    }
    lines.sort();
    lines
}

fn change() -> impl Strategy<Value = (Row, RowKind)> {
    let row = (prop::option::weighted(0.9, 0..3_i64), 0..10_i64, 0..4_i64);
    (row, 0..4_u8)
        .prop_map(|((key, time, value), kind)| ((key, Some(time), value), RowKind::from_number(kind).unwrap()))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn rows_that_are_in_time_meet_the_version_of_their_time(
        is_left_outer in any::<bool>(),
        with_condition in any::<bool>(),
        steps in prop::collection::vec((0..2_usize, prop::collection::vec(change(), 1..5), 0..6_i64, 1..4_u32), 0..12),
    ) {
        let mut bed = bed(is_left_outer, with_condition, true);
        let (mut rows, mut now, mut lines) = (<[Vec<(Row, RowKind)>; 2]>::default(), 0, Vec::new());
        for (side, new, step, parallelism) in steps {
            let new: Vec<(Row, RowKind)> =
                new.into_iter().map(|(row, kind)| ((row.0, row.1.map(|time| time + now + 1), row.2), kind)).collect();
            bed.push(&changes(side, &new));
            rows[side].extend(new);
            now += step;
            bed.watermark(now);
            lines.extend(bed.take());
            bed.restart(parallelism);
        }
        lines.retain(|line| !line.starts_with("watermark"));
        lines.extend(bed.finish());
        lines.sort();
        prop_assert_eq!(lines, naive(&rows[0], &rows[1], is_left_outer, with_condition));
    }
}

#[test]
fn rows_leave_in_the_order_in_which_they_came() {
    let mut bed = bed(true, false, true);
    bed.push(&inserts(
        0,
        &[(Some(1), Some(3), 1), (Some(1), Some(1), 2), (Some(1), Some(9), 3), (Some(1), Some(2), 4)],
    ));
    bed.push(&inserts(1, &[(Some(1), Some(2), 5)]));
    bed.watermark(5);
    let mut lines = bed.take();
    assert_eq!(lines.pop().unwrap(), "watermark 5");
    let values: Vec<(&str, &str)> = lines
        .iter()
        .map(|line| {
            let parts: Vec<&str> = line.split('\t').collect();
            (parts[3], parts[6])
        })
        .collect();
    assert_eq!(values, [("1", "5"), ("2", "null"), ("4", "5")]);
}

#[test]
fn of_versions_only_those_stay_that_can_be_seen() {
    let mut bed = bed(false, false, true);
    for time in 1..100 {
        bed.push(&inserts(1, &[(Some(1), Some(time), time)]));
    }
    bed.watermark(98);
    // A late row meets the version that is left, if that began before it.
    bed.push(&inserts(0, &[(Some(1), Some(97), 1), (Some(1), Some(98), 2), (Some(1), Some(99), 3)]));
    let lines = bed.finish();
    let versions: Vec<&str> = lines.iter().filter_map(|line| line.rsplit('\t').next()).collect();
    assert_eq!(versions, ["98", "99"]);
}

#[test]
fn a_key_that_was_deleted_leaves_nothing() {
    let mut bed = bed(false, false, true);
    bed.push(&inserts(1, &[(Some(1), Some(1), 1)]));
    bed.watermark(1);
    assert_eq!(bed.entries()["versions"], 1);
    bed.push(&changes(1, &[((Some(1), Some(2), 1), RowKind::Delete)]));
    bed.watermark(2);
    assert_eq!(bed.entries()["versions"], 0);
    bed.push(&inserts(0, &[(Some(1), Some(3), 2)]));
    assert_eq!(bed.finish(), [""; 0]);
}

#[test]
fn by_the_wall_clock_the_latest_version_counts() {
    let mut bed = bed(true, true, false);
    bed.push(&inserts(0, &[(Some(1), None, 1)]));
    bed.push(&inserts(1, &[(Some(1), None, 2)]));
    bed.restart(2);
    bed.push(&inserts(0, &[(Some(1), None, 1), (Some(1), None, 3)]));
    bed.push(&changes(1, &[((Some(1), None, 2), RowKind::Delete)]));
    bed.push(&inserts(0, &[(Some(1), None, 1)]));
    let found: Vec<String> = bed.finish();
    assert_eq!(found.len(), 4, "{found:?}");
    let versions: Vec<&str> = found.iter().filter_map(|line| line.rsplit('\t').next()).collect();
    assert_eq!(versions, ["null", "2", "null", "null"]);
}

#[test]
fn unused_versions_go_unless_rows_wait_for_them() {
    let mut bed = bed_with_ttl(false, false, true, 1000);
    bed.time(5000);
    bed.push(&inserts(1, &[(Some(1), Some(1), 1), (Some(2), Some(1), 1), (Some(3), Some(1), 1)]));
    bed.push(&inserts(0, &[(Some(3), Some(9), 7)]));
    bed.time(5900);
    bed.push(&inserts(0, &[(Some(2), Some(2), 8)]));
    bed.watermark(5);
    bed.restart(2);
    bed.take();
    bed.time(6200);
    assert_eq!(bed.entries()["versions"], 2, "key 2 was used, and a row of key 3 waits");
    bed.watermark(9);
    assert_eq!(bed.take().into_iter().filter(|line| line.contains('\t')).count(), 1);
    bed.time(8000);
    assert_eq!(bed.entries()["versions"], 0);
}
