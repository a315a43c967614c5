use proptest::prelude::*;

use super::*;
use crate::operators::sides::{KINDS, Row, inserts, joined, less, shown, sides};
use crate::operators::testing::Bed;
use crate::spec::OperatorSpec;

fn bed(kind: JoinKind, with_condition: bool) -> Bed {
    let spec = WindowJoinSpec {
        kind,
        left_keys: vec![0],
        right_keys: vec![0],
        left_window_end: 1,
        right_window_end: 1,
        zone: None,
        condition: with_condition.then(less),
    };
    Bed::keyed(OperatorSpec::WindowJoin(spec), &[vec![0], vec![0]], &sides(), &joined(kind))
}

/// The result by nested loops.
fn naive(kind: JoinKind, with_condition: bool, [left, right]: &[Vec<Row>; 2]) -> Vec<String> {
    let is_pair = |l: &Row, r: &Row| l.0.is_some() && l.0 == r.0 && l.1 == r.1 && (!with_condition || l.2 < r.2);
    let is_half = matches!(kind, JoinKind::Semi | JoinKind::Anti);
    let line = |l: Option<&Row>, r: Option<&Row>| match is_half {
        true => format!("+I\t{}", shown(l)),
        false => format!("+I\t{}\t{}", shown(l), shown(r)),
    };
    let mut lines = Vec::new();
    for l in left {
        let partners: Vec<&Row> = right.iter().filter(|r| is_pair(l, r)).collect();
        match kind {
            JoinKind::Semi if !partners.is_empty() => lines.push(line(Some(l), None)),
            _ if is_half => {}
            _ => lines.extend(partners.iter().map(|r| line(Some(l), Some(r)))),
        }
        if partners.is_empty() && matches!(kind, JoinKind::Left | JoinKind::Full | JoinKind::Anti) {
            lines.push(line(Some(l), None));
        }
    }
    if matches!(kind, JoinKind::Right | JoinKind::Full) {
        let alone = right.iter().filter(|r| !left.iter().any(|l| is_pair(l, r)));
        lines.extend(alone.map(|r| line(None, Some(r))));
    }
    lines.sort();
    lines
}

fn row() -> impl Strategy<Value = Row> {
    (prop::option::weighted(0.9, 0..3_i64), 1..5_i64, 0..4_i64)
        .prop_map(|(key, end, value)| (key, Some(end * 10), value))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn rows_in_the_same_window_are_joined_unless_they_are_late(
        kind in 0..6_usize,
        with_condition in any::<bool>(),
        steps in prop::collection::vec((0..2_usize, prop::collection::vec(row(), 1..6), 0..45_i64, 1..4_u32), 0..10),
    ) {
        let kind = KINDS[kind];
        let mut bed = bed(kind, with_condition);
        let (mut rows, mut now, mut lines) = (<[Vec<Row>; 2]>::default(), i64::MIN, Vec::new());
        for (side, new, watermark, parallelism) in steps {
            bed.push(&inserts(side, &new));
            // A window has ended with the watermark of its last millisecond.
            rows[side].extend(new.iter().filter(|row| row.1.is_some_and(|end| end - 1 > now)));
            now = now.max(watermark);
            bed.watermark(watermark);
            lines.extend(bed.take());
            bed.restart(parallelism);
        }
        lines.retain(|line| !line.starts_with("watermark"));
        lines.extend(bed.finish());
        lines.sort();
        prop_assert_eq!(lines, naive(kind, with_condition, &rows));
    }
}

#[test]
fn a_window_is_put_out_with_the_watermark_of_its_last_millisecond() {
    let mut bed = bed(JoinKind::Inner, false);
    bed.push(&inserts(0, &[(Some(1), Some(1000), 1), (Some(1), Some(2000), 2)]));
    bed.push(&inserts(1, &[(Some(1), Some(1000), 3), (Some(2), Some(1000), 4)]));
    bed.watermark(998);
    assert_eq!(bed.take(), ["watermark 998"]);
    bed.watermark(999);
    assert_eq!(bed.take(), ["+I\t1\t1970-01-01T00:00:01\t1\t1\t1970-01-01T00:00:01\t3", "watermark 999"]);
    // Late, and nothing of the window is left.
    bed.push(&inserts(1, &[(Some(1), Some(1000), 5)]));
    assert_eq!(bed.entries().values().sum::<u64>(), 1);
    assert_eq!(bed.finish(), [""; 0]);
}

#[test]
fn many_pairs_come_in_several_chunks() {
    let rows: Vec<Row> = (0..200).map(|value| (Some(1), Some(10), value)).collect();
    let mut bed = bed(JoinKind::Full, true);
    bed.push(&inserts(0, &rows));
    bed.push(&inserts(1, &rows));
    assert_eq!(bed.finish().len(), 200 * 199 / 2 + 2);
}
