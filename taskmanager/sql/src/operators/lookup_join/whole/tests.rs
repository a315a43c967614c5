use std::sync::atomic::{AtomicI64, Ordering};

use flott_chunk::RowKind;
use proptest::prelude::*;

use super::*;
use crate::expr::Functions;
use crate::operators::sides::{Row, changes, inserts, less, shown, sides};
use crate::operators::testing::Bed;

/// The rows of a table as they are now.
type Table = Arc<Mutex<Vec<Row>>>;

fn bed(table: &Table, is_left_outer: bool, with_condition: bool, reload_ms: Option<u64>) -> Bed {
    let (table, schemas) = (Arc::clone(table), sides());
    let (left, right) = (Arc::clone(&schemas[0]), Arc::clone(&schemas[1]));
    Bed::of(
        move |task| {
            let table = Arc::clone(&table);
            // In two batches, as files come.
            let load = move || {
                let rows = table.lock().unwrap().clone();
                let (first, second) = rows.split_at(rows.len() / 2);
                Ok([first, second].map(|rows| inserts(1, rows).batch).to_vec())
            };
            let condition = with_condition.then(less);
            let on = LookupCondition {
                left_keys: &[0],
                is_left_outer,
                condition: condition.as_ref(),
                functions: &Functions::new([]),
            };
            let (name, load) = ("t".to_owned(), Arc::new(load) as Load);
            let table = WholeTable { name, load, schema: Arc::clone(&right), width: 3, keys: vec![0], reload_ms };
            let join = WholeLookupJoin::new(&left, &on, table, task.io.clone(), task.waker.clone());
            Ok(Box::new(join?))
        },
        &[vec![0]],
        &schemas[..1],
    )
}

fn row() -> impl Strategy<Value = Row> {
    (prop::option::weighted(0.9, 0..4_i64), Just(Some(0)), 0..4_i64)
}

proptest! {
    #[test]
    fn rows_are_joined_as_by_nested_loops(
        table in prop::collection::vec(row(), 0..12),
        left in prop::collection::vec((row(), 0..4_u8), 1..12),
        is_left_outer in any::<bool>(),
        with_condition in any::<bool>(),
    ) {
        let left: Vec<(Row, RowKind)> =
            left.into_iter().map(|(row, kind)| (row, RowKind::from_number(kind).unwrap())).collect();
        let mut expected = Vec::new();
        for (l, kind) in &left {
            let is_pair = |r: &&Row| l.0.is_some() && l.0 == r.0 && (!with_condition || l.2 < r.2);
            let before = expected.len();
            let line = |right| format!("{}\t{}\t{}", kind.short(), shown(Some(l)), shown(right));
            expected.extend(table.iter().filter(is_pair).map(|r| line(Some(r))));
            if is_left_outer && expected.len() == before {
                expected.push(line(None));
            }
        }
        let mut bed = bed(&Arc::new(Mutex::new(table)), is_left_outer, with_condition, None);
        bed.push(&changes(0, &left));
        prop_assert_eq!(bed.finish(), expected);
    }
}

#[test]
fn a_table_is_read_again_when_its_time_is_over() {
    let table = Table::default();
    let mut bed = bed(&table, true, false, Some(100));
    bed.time(1000);
    table.lock().unwrap().push((Some(1), None, 7));
    bed.push(&inserts(0, &[(Some(1), None, 1)]));
    bed.time(1099);
    bed.push(&inserts(0, &[(Some(1), None, 2)]));
    bed.time(1100);
    // It is read in the background: some time later it is there.
    let tries = AtomicI64::new(0);
    while !bed.take().last().is_some_and(|line| line.ends_with("7")) {
        assert!(tries.fetch_add(1, Ordering::Relaxed) < 1000, "it was never read");
        std::thread::sleep(std::time::Duration::from_millis(5));
        bed.push(&inserts(0, &[(Some(1), None, 3)]));
    }
    bed.restart(2);
    bed.push(&inserts(0, &[(Some(1), None, 4)]));
    assert!(bed.finish()[0].ends_with("7"));
}

#[test]
fn keys_of_different_types_are_refused() {
    let schemas = sides();
    let table = WholeTable {
        name: "rates".to_owned(),
        load: Arc::new(|| Ok(Vec::new())),
        schema: Arc::clone(&schemas[1]),
        width: 3,
        keys: vec![1],
        reload_ms: None,
    };
    let functions = Functions::new([]);
    let on = LookupCondition { left_keys: &[0], is_left_outer: false, condition: None, functions: &functions };
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let join = WholeLookupJoin::new(&schemas[0], &on, table, runtime.handle().clone(), Waker::noop());
    let error = join.err().unwrap().to_string();
    assert!(error.contains("'rates'") && error.contains("Int64") && error.contains("CAST"), "{error}");
}
