use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::operators::sides::{KINDS, Row, inserts as chunk, joined, less, shown, sides};
use crate::operators::testing::Bed;
use crate::spec::OperatorSpec;

#[derive(Clone, Copy, Debug)]
struct Case {
    kind: JoinKind,
    lower: i64,
    upper: i64,
    /// Whether pairs must have a left value below the right one.
    with_condition: bool,
    is_event_time: bool,
}

impl Case {
    fn bed(self) -> Bed {
        let time = if self.is_event_time { TimeSpec::Event(1) } else { TimeSpec::Processing };
        let spec = IntervalJoinSpec {
            kind: self.kind,
            left_keys: vec![0],
            right_keys: vec![0],
            left_time: time.clone(),
            right_time: time,
            lower_ms: self.lower,
            upper_ms: self.upper,
            condition: self.with_condition.then(less),
        };
        Bed::keyed(OperatorSpec::IntervalJoin(spec), &[vec![0], vec![0]], &sides(), &joined(self.kind))
    }

    fn is_pair(self, left: &Row, right: &Row) -> bool {
        let is_near = |left: i64, right: i64| (right + self.lower..=right + self.upper).contains(&left);
        left.0.is_some()
            && left.0 == right.0
            && matches!((left.1, right.1), (Some(left), Some(right)) if is_near(left, right))
            && (!self.with_condition || left.2 < right.2)
    }

    fn is_outer(self, side: usize) -> bool {
        let sides: &[usize] = match self.kind {
            JoinKind::Full => &[0, 1],
            JoinKind::Left | JoinKind::Anti => &[0],
            JoinKind::Right => &[1],
            JoinKind::Inner | JoinKind::Semi => &[],
        };
        sides.contains(&side)
    }

    fn line(self, left: Option<&Row>, right: Option<&Row>) -> String {
        match self.kind {
            JoinKind::Semi | JoinKind::Anti => format!("+I\t{}", shown(left)),
            _ => format!("+I\t{}\t{}", shown(left), shown(right)),
        }
    }

    /// The whole result, by nested loops.
    fn naive(self, left: &[Row], right: &[Row]) -> Vec<String> {
        let mut lines = Vec::new();
        for l in left {
            let partners: Vec<&Row> = right.iter().filter(|r| self.is_pair(l, r)).collect();
            match self.kind {
                JoinKind::Semi if !partners.is_empty() => lines.push(self.line(Some(l), None)),
                JoinKind::Semi | JoinKind::Anti => {}
                _ => lines.extend(partners.iter().map(|r| self.line(Some(l), Some(r)))),
            }
            if partners.is_empty() && self.is_outer(0) {
                lines.push(self.line(Some(l), None));
            }
        }
        let is_alone = |r: &&Row| self.is_outer(1) && !left.iter().any(|l| self.is_pair(l, r));
        lines.extend(right.iter().filter(is_alone).map(|r| self.line(None, Some(r))));
        lines.sort();
        lines
    }
}

/// Flink's operator, a row at a time: what it does with rows that are late, too.
struct Model {
    case: Case,
    now: i64,
    expired: [i64; 2],
    /// For each key, the rows of each side and whether they have had a partner.
    kept: BTreeMap<i64, [Vec<(Row, bool)>; 2]>,
    timers: BTreeMap<(i64, usize), i64>,
    lines: Vec<String>,
}

impl Model {
    fn new(case: Case) -> Self {
        let (kept, timers, lines) = Default::default();
        Self { case, now: i64::MIN, expired: [i64::MIN; 2], kept, timers, lines }
    }

    fn wait(&self, side: usize) -> i64 {
        [-self.case.lower, self.case.upper][side]
    }

    fn expiry(&self, side: usize) -> i64 {
        match self.now {
            i64::MAX | i64::MIN => self.now,
            now => now - self.wait(side) - 1,
        }
    }

    fn put_out(&mut self, side: usize, row: &Row, other: Option<&Row>) {
        let (left, right) = if side == 0 { (Some(row), other) } else { (other, Some(row)) };
        self.lines.push(self.case.line(left, right));
    }

    fn push(&mut self, side: usize, row: Row) {
        let case = self.case;
        let is_half = matches!(case.kind, JoinKind::Semi | JoinKind::Anti);
        let (Some(key), Some(time)) = (row.0, row.1) else {
            if case.is_outer(side) {
                self.put_out(side, &row, None);
            }
            return;
        };
        let other = 1 - side;
        let mut has_partner = false;
        if self.expired[other] < time + self.wait(side) {
            self.expired[other] = self.expiry(other);
            let mut others = std::mem::take(&mut self.kept.entry(key).or_default()[other]);
            for (candidate, is_matched) in &mut others {
                let (l, r) = if side == 0 { (&row, &*candidate) } else { (&*candidate, &row) };
                if !case.is_pair(l, r) {
                    continue;
                }
                let is_first = if side == 0 { !has_partner } else { !*is_matched };
                match case.kind {
                    JoinKind::Semi if is_first => self.lines.push(case.line(Some(l), None)),
                    JoinKind::Semi | JoinKind::Anti => {}
                    _ => self.lines.push(case.line(Some(l), Some(r))),
                }
                (has_partner, *is_matched) = (true, true);
            }
            let expired = self.expired[other];
            let (gone, stays) = others.into_iter().partition(|(row, _)| row.1 <= Some(expired));
            self.kept.entry(key).or_default()[other] = stays;
            self.release(other, gone);
        }
        if self.now < time + self.wait(side) {
            if !(is_half && side == 0 && has_partner) {
                self.kept.entry(key).or_default()[side].push((row, has_partner));
                let timer = time + self.wait(side) + 1;
                self.timers.entry((key, side)).or_insert(timer);
            }
        } else if !has_partner && case.is_outer(side) {
            self.put_out(side, &row, None);
        }
    }

    fn release(&mut self, side: usize, gone: Vec<(Row, bool)>) {
        for (row, is_matched) in gone {
            if !is_matched && self.case.is_outer(side) {
                self.put_out(side, &row, None);
            }
        }
    }

    fn watermark(&mut self, watermark: i64) {
        self.now = self.now.max(watermark);
        while let Some(((key, side), _)) = self.timers.iter().find(|(_, timer)| **timer <= self.now) {
            let (key, side) = (*key, *side);
            self.timers.remove(&(key, side));
            self.expired[side] = self.expiry(side);
            let rows = std::mem::take(&mut self.kept.entry(key).or_default()[side]);
            let (gone, stays): (Vec<_>, Vec<_>) =
                rows.into_iter().partition(|(row, _)| row.1 <= Some(self.expired[side]));
            self.release(side, gone);
            if let Some(time) = stays.iter().filter_map(|(row, _)| row.1).min() {
                self.timers.insert((key, side), time + self.wait(side) + 1);
            }
            self.kept.entry(key).or_default()[side] = stays;
        }
    }

    fn take(&mut self) -> Vec<String> {
        let mut lines = std::mem::take(&mut self.lines);
        lines.sort();
        lines
    }
}

fn row() -> impl Strategy<Value = Row> {
    (prop::option::weighted(0.95, 0..3_i64), prop::option::weighted(0.95, 0..40_i64), 0..4_i64)
}

fn case() -> impl Strategy<Value = Case> {
    (0..6_usize, -8..8_i64, 0..10_i64, any::<bool>()).prop_map(|(kind, lower, width, with_condition)| Case {
        kind: KINDS[kind],
        lower,
        upper: lower + width,
        with_condition,
        is_event_time: true,
    })
}

fn rows_of(bed: &mut Bed) -> Vec<String> {
    let mut lines = bed.take();
    lines.retain(|line| !line.starts_with("watermark"));
    lines.sort();
    lines
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn rows_that_are_in_time_are_joined_as_by_nested_loops(
        case in case(),
        steps in prop::collection::vec((0..2_usize, prop::collection::vec(row(), 1..5), 1..4_u32), 0..12),
    ) {
        let mut bed = case.bed();
        let mut sides: [Vec<Row>; 2] = Default::default();
        let mut result = Vec::new();
        let mut watermark = -1;
        for (index, (side, rows, parallelism)) in steps.into_iter().enumerate() {
            // Later by the watermark, so that none is late.
            let rows: Vec<Row> = rows.into_iter().map(|row| (row.0, row.1.map(|time| time + watermark + 1), row.2)).collect();
            bed.push(&chunk(side, &rows));
            sides[side].extend(rows);
            watermark += index as i64 % 3 * 7;
            bed.watermark(watermark);
            result.extend(rows_of(&mut bed));
            bed.restart(parallelism);
        }
        result.extend(bed.finish());
        result.sort();
        prop_assert_eq!(result, case.naive(&sides[0], &sides[1]));
    }

    #[test]
    fn late_rows_are_joined_as_flink_does_whatever_chunks_they_come_in(
        case in case(),
        steps in prop::collection::vec((0..2_usize, prop::collection::vec(row(), 1..6), -5..45_i64, any::<bool>()), 0..12),
    ) {
        let (mut bed, mut model) = (case.bed(), Model::new(case));
        for (side, rows, watermark, restarts) in steps {
            bed.push(&chunk(side, &rows));
            rows.iter().for_each(|row| model.push(side, *row));
            prop_assert_eq!(rows_of(&mut bed), model.take());
            bed.watermark(watermark);
            model.watermark(watermark);
            prop_assert_eq!(rows_of(&mut bed), model.take());
            if restarts {
                bed.restart(1);
            }
        }
        model.watermark(i64::MAX);
        let mut rest = bed.finish();
        rest.sort();
        prop_assert_eq!(rest, model.take());
    }
}

fn case_of(kind: JoinKind, lower: i64, upper: i64) -> Case {
    Case { kind, lower, upper, with_condition: false, is_event_time: true }
}

#[test]
fn r20_a_row_without_partner_waits_until_none_can_come() {
    // right.ts BETWEEN left.ts AND left.ts + 10 s
    let mut bed = case_of(JoinKind::Left, -10_000, 0).bed();
    bed.push(&chunk(0, &[(Some(1), Some(0), 0), (Some(2), Some(0), 0)]));
    bed.watermark(10_000);
    assert_eq!(bed.take(), ["watermark 0"]);
    bed.push(&chunk(1, &[(Some(1), Some(10_000), 0), (Some(2), Some(10_001), 0)]));
    assert_eq!(bed.take(), ["+I\t1\t1970-01-01T00:00\t0\t1\t1970-01-01T00:00:10\t0"]);
    bed.watermark(10_001);
    assert_eq!(bed.take(), ["+I\t2\t1970-01-01T00:00\t0\tnull\tnull\tnull", "watermark 1"]);
    bed.push(&chunk(0, &[(Some(3), Some(59_000), 0)]));
    assert_eq!(bed.finish(), ["+I\t3\t1970-01-01T00:00:59\t0\tnull\tnull\tnull"]);
}

#[test]
fn rows_leave_state_with_the_watermark() {
    let mut bed = case_of(JoinKind::Inner, -5, 5).bed();
    for time in 0..100 {
        bed.push(&chunk((time % 2) as usize, &[(Some(time), Some(time), 0)]));
        bed.watermark(time);
    }
    assert!(bed.entries().values().all(|entries| *entries <= 4), "{:?}", bed.entries());
    bed.watermark(106);
    assert!(bed.entries().values().all(|entries| *entries == 0), "{:?}", bed.entries());
}

#[test]
fn an_interval_that_nothing_is_in_joins_nothing() {
    let mut bed = case_of(JoinKind::Full, 5, 4).bed();
    bed.push(&chunk(0, &[(Some(1), Some(5), 1)]));
    bed.push(&chunk(1, &[(Some(1), Some(0), 2)]));
    let rows = ["+I\t1\t1970-01-01T00:00:00.005\t1\tnull\tnull\tnull", "+I\tnull\tnull\tnull\t1\t1970-01-01T00:00\t2"];
    assert_eq!(bed.take(), rows);
}

#[test]
fn by_the_wall_clock_rows_are_near_that_came_soon_after_each_other() {
    let mut bed = Case { is_event_time: false, ..case_of(JoinKind::Left, -10, 10) }.bed();
    bed.time(100);
    bed.push(&chunk(0, &[(Some(1), None, 1)]));
    bed.time(110);
    bed.push(&chunk(1, &[(Some(1), None, 2)]));
    assert_eq!(bed.take(), ["+I\t1\tnull\t1\t1\tnull\t2"]);
    bed.push(&chunk(0, &[(Some(2), None, 3)]));
    bed.time(121);
    assert_eq!(bed.take(), ["+I\t2\tnull\t3\tnull\tnull\tnull"]);
    bed.push(&chunk(1, &[(Some(2), None, 4)]));
    bed.push(&chunk(0, &[(Some(3), None, 5)]));
    assert_eq!(bed.finish(), ["+I\t3\tnull\t5\tnull\tnull\tnull"]);
}
