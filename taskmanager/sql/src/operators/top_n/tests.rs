use std::collections::BTreeMap;

use proptest::prelude::*;

use crate::operators::testing::{Bed, Value, columns, fold, fold_by_key, int, row};
use crate::sort_key::SortColumn;
use crate::spec::{OperatorSpec, TopNInput, TopNSpec};
use flott_chunk::RowKind;

/// Rows of (key, id, value), ordered by value, the greatest first.
fn spec(from: u64, to: u64, with_rank: bool, input: TopNInput) -> TopNSpec {
    TopNSpec {
        partition: vec![0],
        order: vec![SortColumn { column: 2, is_descending: true, nulls_first: false }],
        from,
        to,
        with_rank,
        input,
        with_update_before: true,
        ttl_ms: 0,
        is_batch: false,
    }
}

fn bed(spec: TopNSpec) -> Bed {
    let input = columns(&[("k", int()), ("id", int()), ("v", int())]);
    let mut output = vec![("k", int()), ("id", int()), ("v", int())];
    output.extend(spec.with_rank.then(|| ("rank", int())));
    Bed::keyed(OperatorSpec::TopN(spec), &[vec![0]], &[input], &columns(&output))
}

type Row = (i64, i64, i64);

fn line((k, id, v): Row, rank: Option<usize>) -> String {
    let rank = rank.map(|rank| format!("\t{rank}")).unwrap_or_default();
    format!("{k}\t{id}\t{v}{rank}")
}

/// The ranks of the rows that there are, which are in the order in which they came.
fn naive(rows: &[Row], spec: &TopNSpec) -> BTreeMap<String, i64> {
    let mut keys: BTreeMap<i64, Vec<Row>> = BTreeMap::new();
    rows.iter().for_each(|row| keys.entry(row.0).or_default().push(*row));
    let mut lines = BTreeMap::new();
    for rows in keys.values_mut() {
        rows.sort_by_key(|row| -row.2);
        let ranks = (1..).zip(&*rows).skip(spec.from as usize - 1).take((spec.to - spec.from + 1) as usize);
        for (rank, row) in ranks {
            *lines.entry(line(*row, spec.with_rank.then_some(rank))).or_default() += 1;
        }
    }
    lines
}

/// What a changelog leaves: by rank, if `-U` is left out and there are ranks; else by rows.
fn left(lines: &[String], spec: &TopNSpec) -> BTreeMap<String, i64> {
    if spec.with_update_before {
        return fold(lines);
    }
    match spec.with_rank {
        // Whether a row is known by its rank or by its id must not matter.
        true => {
            let by_rank: BTreeMap<_, _> = fold_by_key(lines, &[0, 3]).into_values().map(|row| (row, 1)).collect();
            let by_id: BTreeMap<_, _> = fold_by_key(lines, &[1]).into_values().map(|row| (row, 1)).collect();
            assert_eq!(by_rank, by_id);
            by_rank
        }
        false => fold_by_key(lines, &[1]).into_values().map(|row| (row, 1)).collect(),
    }
}

fn shape() -> impl Strategy<Value = (u64, u64, bool, bool)> {
    (1..4_u64, 0..3_u64, any::<bool>(), any::<bool>())
        .prop_map(|(from, more, with_rank, with_update_before)| (from, from + more, with_rank, with_update_before))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn the_first_of_inserted_rows(
        rows in prop::collection::vec((0..3_i64, 0..6_i64, any::<bool>(), 0..8_u32), 1..40),
        (from, to, with_rank, with_update_before) in shape(),
        is_batch in any::<bool>(),
    ) {
        let spec = TopNSpec { with_update_before, is_batch, ..spec(from, to, with_rank, TopNInput::InsertOnly) };
        let mut bed = bed(spec.clone());
        let (mut all, mut chunk, mut log) = (Vec::new(), Vec::new(), Vec::new());
        for (id, (k, v, ends, restart)) in rows.into_iter().enumerate() {
            all.push((k, id as i64, v));
            chunk.push(row![k, id as i64, v]);
            if ends || restart == 0 {
                bed.insert(0, &std::mem::take(&mut chunk));
                log.extend(bed.take_rows());
                let seen = if is_batch { BTreeMap::new() } else { naive(&all, &spec) };
                prop_assert_eq!(left(&log, &spec), seen, "{:#?}", log);
            }
            if restart == 0 {
                bed.restart(1 + id as u32 % 3);
            }
        }
        bed.insert(0, &chunk);
        bed.end();
        log.extend(bed.take_rows());
        prop_assert!(!is_batch || log.iter().all(|line| line.starts_with("+I")));
        prop_assert_eq!(left(&log, &spec), naive(&all, &spec), "{:#?}", log);
    }

    #[test]
    fn the_first_of_rows_that_get_better(
        updates in prop::collection::vec((0..8_i64, 0..4_i64, any::<bool>(), 0..8_u32), 1..40),
        (from, to, with_rank, with_update_before) in shape(),
    ) {
        let spec = TopNSpec { with_update_before, ..spec(from, to, with_rank, TopNInput::Improving(vec![0, 1])) };
        let mut bed = bed(spec.clone());
        let mut all: Vec<Row> = Vec::new();
        let (mut chunk, mut log) = (Vec::new(), Vec::new());
        for (step, (id, more, ends, restart)) in updates.into_iter().enumerate() {
            let k = id % 2;
            match all.iter().position(|row| row.1 == id) {
                Some(found) => {
                    let v = all[found].2 + more;
                    // One that gets better ranks behind those that were as good before.
                    if more == 0 { all[found].2 = v } else {
                        all.remove(found);
                        all.push((k, id, v));
                    }
                    chunk.push((RowKind::UpdateAfter, row![k, id, v]));
                }
                None => {
                    all.push((k, id, more));
                    chunk.push((RowKind::Insert, row![k, id, more]));
                }
            }
            if ends || restart == 0 {
                bed.change(0, &std::mem::take(&mut chunk));
                log.extend(bed.take_rows());
                prop_assert_eq!(left(&log, &spec), naive(&all, &spec), "{:#?}", log);
            }
            if restart == 0 {
                bed.restart(1 + step as u32 % 3);
            }
        }
    }

    #[test]
    fn the_first_of_rows_that_come_and_go(
        steps in prop::collection::vec((0..10_i64, 0..5_i64, any::<bool>(), 0..8_u32), 1..50),
        (from, to, with_rank, with_update_before) in shape(),
        is_batch in any::<bool>(),
    ) {
        let spec = TopNSpec { with_update_before, is_batch, ..spec(from, to, with_rank, TopNInput::Retract) };
        let mut bed = bed(spec.clone());
        let mut all: Vec<Row> = Vec::new();
        let (mut chunk, mut log) = (Vec::new(), Vec::new());
        for (step, (id, v, ends, restart)) in steps.into_iter().enumerate() {
            let k = id % 2;
            match all.iter().position(|row| row.1 == id) {
                Some(found) => {
                    let old = all.remove(found);
                    if v == 0 {
                        chunk.push((RowKind::Delete, row![old.0, old.1, old.2]));
                    } else {
                        chunk.push((RowKind::UpdateBefore, row![old.0, old.1, old.2]));
                        chunk.push((RowKind::UpdateAfter, row![k, id, v]));
                        all.push((k, id, v));
                    }
                }
                None => {
                    all.push((k, id, v));
                    chunk.push((RowKind::Insert, row![k, id, v]));
                }
            }
            if ends || restart == 0 {
                bed.change(0, &std::mem::take(&mut chunk));
                log.extend(bed.take_rows());
                let seen = if is_batch { BTreeMap::new() } else { naive(&all, &spec) };
                prop_assert_eq!(left(&log, &spec), seen, "{:#?}", log);
            }
            if restart == 0 {
                bed.restart(1 + step as u32 % 3);
            }
        }
        bed.change(0, &chunk);
        bed.end();
        log.extend(bed.take_rows());
        prop_assert_eq!(left(&log, &spec), naive(&all, &spec), "{:#?}", log);
    }
}

/// A row of the one key, with how it changes.
fn change(kind: RowKind, id: i64, v: i64) -> (RowKind, Vec<Value>) {
    (kind, row![0_i64, id, v])
}

#[test]
fn r10_a_row_that_was_pushed_out_and_deleted_does_not_come_back() {
    let mut bed = bed(spec(1, 1, false, TopNInput::Retract));
    let steps = [
        vec![change(RowKind::Insert, 1, 5)],
        vec![change(RowKind::Insert, 2, 7)],
        vec![change(RowKind::Insert, 3, 6)],
        vec![change(RowKind::Delete, 1, 5)],
        vec![change(RowKind::Delete, 2, 7)],
        vec![change(RowKind::UpdateBefore, 3, 6), change(RowKind::UpdateAfter, 3, 1)],
        vec![change(RowKind::Insert, 4, 2)],
    ];
    steps.iter().for_each(|step| bed.change(0, step));
    let lines: Vec<String> = bed.take().iter().map(|line| line.replace("\t0\t", " ").replace('\t', ":")).collect();
    let expected = ["+I 1:5", "-U 1:5", "+U 2:7", "-U 2:7", "+U 3:6", "-U 3:6", "+U 3:1", "-U 3:1", "+U 4:2"];
    assert_eq!(lines, expected);
}

#[test]
fn changes_of_ranks_are_those_of_flink() {
    // Flink 2.3: rows of key 'a' with the values 1, 3, 4, 5, and the first two with their ranks.
    let mut bed = bed(spec(1, 2, true, TopNInput::InsertOnly));
    for (id, v) in [(0, 1), (1, 3), (2, 4), (3, 4), (4, 1)] {
        bed.insert(0, &[row![0_i64, id as i64, v as i64]]);
    }
    let lines: Vec<String> = bed.take().iter().map(|line| line.replace("\t0\t", " ").replace('\t', " ")).collect();
    let expected = [
        "+I 0 1 1", "-U 0 1 1", "+U 1 3 1", "+I 0 1 2", "-U 1 3 1", "+U 2 4 1", "-U 0 1 2", "+U 1 3 2", "-U 1 3 2",
        "+U 3 4 2",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn nulls_rank_where_the_query_says() {
    for (nulls_first, first) in [(true, "+I\t0\t1\tnull"), (false, "+I\t0\t2\t5")] {
        let mut spec = spec(1, 1, false, TopNInput::InsertOnly);
        spec.order[0].nulls_first = nulls_first;
        let mut bed = bed(spec);
        bed.insert(0, &[vec![Value::Int(0), Value::Int(1), Value::Null], row![0_i64, 2_i64, 5_i64]]);
        assert_eq!(bed.take(), [first]);
    }
}

#[test]
fn a_limit_of_rows_that_change_counts_those_that_are_there() {
    let schema = columns(&[("k", int()), ("n", int())]);
    let spec = OperatorSpec::Limit { offset: 1, limit: 1, is_insert_only: false };
    let mut bed = Bed::new(spec, std::slice::from_ref(&schema), &schema);
    let change = |kind, k: i64, n: i64| (kind, row![k, n]);
    bed.change(0, &[change(RowKind::Insert, 1, 1), change(RowKind::Insert, 2, 1), change(RowKind::Insert, 3, 1)]);
    bed.restart(1);
    bed.change(0, &[change(RowKind::Delete, 1, 1)]);
    bed.change(0, &[change(RowKind::Delete, 2, 1)]);
    assert_eq!(bed.take(), ["+I\t2\t1", "-U\t2\t1", "+U\t3\t1", "-D\t3\t1"]);
}

#[test]
fn unused_keys_go_whatever_is_kept_of_them() {
    for input in [TopNInput::InsertOnly, TopNInput::Retract] {
        let mut bed = bed(TopNSpec { ttl_ms: 1000, ..spec(1, 1, false, input) });
        bed.time(5000);
        bed.insert(0, &[row![1_i64, 1_i64, 5_i64], row![2_i64, 2_i64, 5_i64]]);
        bed.restart(2);
        bed.time(5500);
        bed.insert(0, &[row![2_i64, 3_i64, 6_i64]]);
        bed.time(6000);
        bed.take();
        bed.insert(0, &[row![1_i64, 4_i64, 1_i64]]);
        bed.insert(0, &[row![2_i64, 5_i64, 1_i64]]);
        assert_eq!(bed.take(), ["+I\t1\t4\t1"], "key 2 still knows better");
    }
}
