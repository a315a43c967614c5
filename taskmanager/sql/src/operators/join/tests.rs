use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, StringArray};
use arrow::datatypes::{Field, Schema};
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{BinaryExpr, Column};
use proptest::prelude::*;

use super::*;
use crate::expr::ExprSpec;
use crate::operators::testing::{Bed, fold};
use crate::spec::OperatorSpec;

/// A row of a side: key, value.
type Row = (Option<i64>, i64);

fn schema(side: &str) -> SchemaRef {
    let names = [format!("{side}k"), format!("{side}v"), format!("{side}t")];
    let types = [DataType::Int64, DataType::Int64, DataType::Utf8];
    Arc::new(Schema::new(names.into_iter().zip(types).map(|(n, t)| Field::new(n, t, true)).collect::<Vec<_>>()))
}

fn chunk(side: u8, rows: &[(Row, bool)]) -> Chunk {
    let keys: ArrayRef = Arc::new(Int64Array::from_iter(rows.iter().map(|((key, _), _)| *key)));
    let values: ArrayRef = Arc::new(Int64Array::from_iter_values(rows.iter().map(|((_, value), _)| *value)));
    let texts: ArrayRef =
        Arc::new(StringArray::from_iter_values(rows.iter().map(|((_, value), _)| format!("t{value}"))));
    let kinds = rows.iter().map(|(_, is_addition)| if *is_addition { RowKind::Insert } else { RowKind::Delete });
    let schema = schema(if side == 0 { "l" } else { "r" });
    let mut chunk = Chunk::of_columns(&schema, vec![keys, values, texts], rows.len(), kinds.collect()).unwrap();
    chunk.input = side;
    chunk
}

/// Puts chunks through a join; returns what came out.
fn run(kind: JoinKind, with_condition: bool, is_batch: bool, chunks: Vec<Chunk>) -> Vec<String> {
    run_by(kind, with_condition, is_batch, side(), chunks)
}

/// What is known of a side of which nothing is known.
fn side() -> JoinInput {
    JoinInput { keys: vec![0], is_insert_only: false, unique_key: None, ttl_ms: 0 }
}

/// The same; `input` is what is known of both sides.
fn run_by(kind: JoinKind, with_condition: bool, is_batch: bool, input: JoinInput, chunks: Vec<Chunk>) -> Vec<String> {
    let mut bed = bed(kind, with_condition, is_batch, [input.clone(), input]);
    for (index, chunk) in chunks.iter().enumerate() {
        bed.push(chunk);
        if index % 3 == 1 {
            bed.restart(1 + index as u32 % 2);
        }
    }
    bed.finish()
}

/// A join of sides of which that is known.
fn bed(kind: JoinKind, with_condition: bool, is_batch: bool, [left, right]: [JoinInput; 2]) -> Bed {
    let inputs = [schema("l"), schema("r")];
    let is_half = matches!(kind, JoinKind::Semi | JoinKind::Anti);
    let fields = inputs.iter().take(if is_half { 1 } else { 2 }).flat_map(|schema| schema.fields().iter().cloned());
    let output: SchemaRef = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let column = |name: &str, index| Arc::new(Column::new(name, index)) as Arc<dyn PhysicalExpr>;
    let condition: Arc<dyn PhysicalExpr> = Arc::new(BinaryExpr::new(column("lv", 1), Operator::Lt, column("rv", 4)));
    let spec = JoinSpec {
        kind,
        left,
        right,
        nulls_equal: vec![false],
        condition: with_condition.then(|| ExprSpec::new(&condition).unwrap()),
        is_batch,
    };
    Bed::keyed(OperatorSpec::Join(spec), &[vec![0], vec![0]], &inputs, &output)
}

/// The same by nested loops.
fn naive(kind: JoinKind, with_condition: bool, left: &[Row], right: &[Row]) -> BTreeMap<String, i64> {
    let text = |row: Option<&Row>| match row {
        Some((key, value)) => format!("{}\t{value}\tt{value}", key.map_or("null".to_owned(), |key| key.to_string())),
        None => "null\tnull\tnull".to_owned(),
    };
    let matches = |l: &Row, r: &Row| l.0.is_some() && l.0 == r.0 && (!with_condition || l.1 < r.1);
    let mut rows: Vec<String> = Vec::new();
    for l in left {
        let partners: Vec<&Row> = right.iter().filter(|r| matches(l, r)).collect();
        match kind {
            JoinKind::Semi if partners.is_empty() => {}
            JoinKind::Anti if !partners.is_empty() => {}
            JoinKind::Semi | JoinKind::Anti => rows.push(text(Some(l))),
            _ => {
                rows.extend(partners.iter().map(|r| format!("{}\t{}", text(Some(l)), text(Some(r)))));
                if partners.is_empty() && matches!(kind, JoinKind::Left | JoinKind::Full) {
                    rows.push(format!("{}\t{}", text(Some(l)), text(None)));
                }
            }
        }
    }
    if matches!(kind, JoinKind::Right | JoinKind::Full) {
        let alone = right.iter().filter(|r| !left.iter().any(|l| matches(l, r)));
        rows.extend(alone.map(|r| format!("{}\t{}", text(None), text(Some(r)))));
    }
    let mut counts = BTreeMap::new();
    rows.into_iter().for_each(|row| *counts.entry(row).or_default() += 1);
    counts
}

const KINDS: [JoinKind; 6] =
    [JoinKind::Inner, JoinKind::Left, JoinKind::Right, JoinKind::Full, JoinKind::Semi, JoinKind::Anti];

fn row() -> impl Strategy<Value = Row> {
    (prop::option::weighted(0.9, 0..3_i64), 0..4_i64)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn changes_fold_to_the_join_of_what_is_left(
        steps in prop::collection::vec((any::<bool>(), prop::collection::vec((row(), any::<bool>()), 1..6)), 0..12),
        with_condition in any::<bool>(),
    ) {
        let mut sides: [Vec<Row>; 2] = Default::default();
        let mut chunks = Vec::new();
        for (side, rows) in steps {
            let side = usize::from(side);
            let mut changes = Vec::new();
            for (row, is_addition) in rows {
                match sides[side].iter().position(|other| *other == row) {
                    // Only what is there can be taken back.
                    Some(found) if !is_addition => {
                        sides[side].remove(found);
                        changes.push((row, false));
                    }
                    _ => {
                        sides[side].push(row);
                        changes.push((row, true));
                    }
                }
            }
            chunks.push(chunk(side as u8, &changes));
        }
        for kind in KINDS {
            let log = run(kind, with_condition, false, chunks.clone());
            prop_assert_eq!(fold(&log), naive(kind, with_condition, &sides[0], &sides[1]), "{:?} {:?}", kind, log);
        }
    }

    #[test]
    fn rows_that_stay_are_joined_as_others(
        steps in prop::collection::vec((any::<bool>(), prop::collection::vec(row(), 1..6)), 0..8),
        with_condition in any::<bool>(),
    ) {
        let mut sides: [Vec<Row>; 2] = Default::default();
        let mut chunks = Vec::new();
        for (side, rows) in steps {
            chunks.push(chunk(side.into(), &rows.iter().map(|row| (*row, true)).collect::<Vec<_>>()));
            sides[usize::from(side)].extend(rows);
        }
        for kind in KINDS {
            for is_batch in [false, true] {
                let input = JoinInput { is_insert_only: true, ..side() };
                let log = run_by(kind, with_condition, is_batch, input, chunks.clone());
                prop_assert_eq!(fold(&log), naive(kind, with_condition, &sides[0], &sides[1]), "{:?} {:?}", kind, log);
            }
        }
    }

    #[test]
    fn in_batch_mode_rows_are_only_inserted(
        left in prop::collection::vec(row(), 0..12),
        right in prop::collection::vec(row(), 0..12),
        with_condition in any::<bool>(),
    ) {
        let all = |side, rows: &[Row]| chunk(side, &rows.iter().map(|row| (*row, true)).collect::<Vec<_>>());
        let chunks: Vec<Chunk> =
            [all(0, &left), all(1, &right)].into_iter().filter(|chunk| !chunk.is_empty()).collect();
        for kind in KINDS {
            let log = run(kind, with_condition, true, chunks.clone());
            let kinds: BTreeSet<&str> = log.iter().filter_map(|line| line.get(..2)).collect();
            prop_assert!(kinds.iter().all(|kind| *kind == "+I"), "{:?} {:?}", kind, log);
            prop_assert_eq!(fold(&log), naive(kind, with_condition, &left, &right), "{:?} {:?}", kind, log);
        }
    }
}

proptest! {
    #[test]
    fn an_addition_replaces_the_row_with_its_unique_key(
        steps in prop::collection::vec((any::<bool>(), 0..3_i64, 0..4_i64, any::<bool>()), 0..30),
    ) {
        let mut sides: [BTreeMap<i64, i64>; 2] = Default::default();
        let mut chunks = Vec::new();
        for (side, key, value, is_addition) in steps {
            let side = usize::from(side);
            if is_addition {
                sides[side].insert(key, value);
            } else if sides[side].remove(&key).is_none() {
                continue;
            }
            // A delete has any value: the key says which row is meant.
            chunks.push(chunk(side as u8, &[((Some(key), value), is_addition)]));
        }
        let [left, right] = sides.map(|rows| rows.into_iter().map(|(key, value)| (Some(key), value)).collect::<Vec<Row>>());
        for kind in KINDS {
            let log = run_by(kind, false, false, JoinInput { unique_key: Some(vec![0]), ..side() }, chunks.clone());
            prop_assert_eq!(fold(&log), naive(kind, false, &left, &right), "{:?} {:?}", kind, log);
        }
    }
}

#[test]
fn a_row_without_partner_is_taken_back_when_it_finds_one() {
    let chunks = vec![
        chunk(0, &[((Some(1), 1), true)]),
        chunk(1, &[((Some(1), 2), true), ((Some(1), 3), true)]),
        chunk(1, &[((Some(1), 2), false), ((Some(1), 3), false)]),
    ];
    let log = run(JoinKind::Left, false, false, chunks);
    assert_eq!(
        log,
        [
            "+I\t1\t1\tt1\tnull\tnull\tnull",
            "-D\t1\t1\tt1\tnull\tnull\tnull",
            "+I\t1\t1\tt1\t1\t2\tt2",
            "+I\t1\t1\tt1\t1\t3\tt3",
            "-D\t1\t1\tt1\t1\t2\tt2",
            "-D\t1\t1\tt1\t1\t3\tt3",
            "+I\t1\t1\tt1\tnull\tnull\tnull",
        ]
    );
}

/// A row of a side as it is shown.
fn shown((key, value): &Row) -> String {
    format!("{}\t{value}\tt{value}", key.map_or("null".to_owned(), |key| key.to_string()))
}

proptest! {
    /// Each row goes by itself, so long after it came last; it meets what is there. So do rows of which none is taken back.
    #[test]
    fn rows_go_when_they_have_not_been_written_for_so_long(
        steps in prop::collection::vec((0..8_i64, any::<bool>(), row(), 0..4_u8, 0..6_u32), 1..40),
        ttls in (0..12_u64, 0..12_u64),
        is_insert_only in any::<bool>(),
    ) {
        let ttls = [ttls.0, ttls.1];
        let mut bed =
            bed(JoinKind::Inner, false, false, ttls.map(|ttl_ms| JoinInput { ttl_ms, is_insert_only, ..side() }));
        // For each row how often it is there, and when it was written last.
        let mut sides: [BTreeMap<Row, (u32, i64)>; 2] = Default::default();
        let mut now = 1000;
        for (passed, is_right, row, kind, restart) in steps {
            now += passed;
            bed.time(now);
            for (rows, ttl) in sides.iter_mut().zip(ttls) {
                rows.retain(|_, (_, used)| ttl == 0 || *used + ttl as i64 > now);
            }
            let (side, is_addition) = (usize::from(is_right), is_insert_only || kind > 0);
            let known = sides[side].contains_key(&row);
            bed.push(&chunk(side as u8, &[(row, is_addition)]));
            let mut expected = Vec::new();
            // Taken back is also what is not known any more, where rows go.
            if is_addition || known || ttls[side] > 0 {
                for (other, (count, _)) in sides[1 - side].iter().filter(|(other, _)| other.0.is_some() && other.0 == row.0) {
                    let (left, right) = if is_right { (other, &row) } else { (&row, other) };
                    let line = format!("{}\t{}\t{}", if is_addition { "+I" } else { "-D" }, shown(left), shown(right));
                    expected.extend(std::iter::repeat_n(line, *count as usize));
                }
            }
            if is_addition {
                let kept = sides[side].entry(row).or_default();
                *kept = (kept.0 + 1, now);
            } else if let Some(kept) = sides[side].get_mut(&row) {
                *kept = (kept.0 - 1, now);
                if kept.0 == 0 {
                    sides[side].remove(&row);
                }
            }
            let mut lines = bed.take();
            lines.sort();
            expected.sort();
            prop_assert_eq!(lines, expected);
            if restart < 3 {
                bed.restart(1 + restart);
            }
        }
        bed.time(now + 12);
        let entries = bed.entries();
        for (name, ttl) in ["left", "right"].into_iter().zip(ttls) {
            prop_assert!(ttl == 0 || entries[name] == 0, "{:?}", entries);
        }
    }
}

#[test]
fn a_left_row_is_used_when_it_finds_a_partner_as_in_flink() {
    let mut bed = bed(JoinKind::Left, false, false, [(); 2].map(|()| JoinInput { ttl_ms: 1000, ..side() }));
    bed.time(10_000);
    bed.push(&chunk(0, &[((Some(1), 1), true), ((Some(2), 1), true)]));
    bed.time(10_500);
    bed.push(&chunk(1, &[((Some(1), 2), true)]));
    bed.restart(2);
    bed.time(11_200);
    bed.take();
    // Key 2 is gone. The left row of key 1 has been written at 10.5 s, when its partner came.
    bed.push(&chunk(1, &[((Some(1), 3), true), ((Some(2), 3), true)]));
    assert_eq!(bed.take(), ["+I\t1\t1\tt1\t1\t3\tt3"]);
    bed.time(11_600);
    assert_eq!(bed.entries().values().sum::<u64>(), 3);
    // The partner that went by itself is taken back, and the left row still has the other.
    bed.push(&chunk(1, &[((Some(1), 2), false)]));
    bed.push(&chunk(1, &[((Some(1), 3), false)]));
    assert_eq!(bed.take(), ["-D\t1\t1\tt1\t1\t2\tt2", "-D\t1\t1\tt1\t1\t3\tt3", "+I\t1\t1\tt1\tnull\tnull\tnull"]);
    bed.time(13_000);
    assert_eq!(bed.entries().values().sum::<u64>(), 0);
}
