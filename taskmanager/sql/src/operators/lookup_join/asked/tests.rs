use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{LazyLock, Mutex};

use arrow::array::AsArray;
use arrow::datatypes::Int64Type;
use flott_chunk::RowKind;
use flott_connector_spi::Finding;
use proptest::prelude::*;
use tokio::runtime::{Builder, Runtime};

use super::*;
use crate::expr::Functions;
use crate::operators::sides::{Row, changes, inserts, less, shown, sides};
use crate::operators::testing::{Bed, Value, row};

static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap());

/// After how long it answers the call of a number, from 1, for keys, and whether it does.
type Act = Box<dyn Fn(usize, &[i64]) -> (Duration, Result<()>) + Send + Sync>;

/// A table that acts as it is told.
struct Mock {
    rows: Mutex<Vec<Row>>,
    act: Act,
    calls: Mutex<Vec<Vec<i64>>>,
}

impl Mock {
    fn new(rows: &[Row], act: impl Fn(usize, &[i64]) -> (Duration, Result<()>) + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self { rows: Mutex::new(rows.to_vec()), act: Box::new(act), calls: Mutex::default() })
    }

    /// One that answers at once.
    fn quick(rows: &[Row]) -> Arc<Self> {
        Self::new(rows, |_, _| (Duration::ZERO, Ok(())))
    }

    fn calls(&self) -> Vec<Vec<i64>> {
        self.calls.lock().unwrap().clone()
    }
}

impl LookUp for Mock {
    fn look_up(&self, keys: RecordBatch) -> Finding<'_> {
        let asked = keys.column(0).as_primitive::<Int64Type>().values().to_vec();
        let call = {
            let mut calls = self.calls.lock().unwrap();
            calls.push(asked.clone());
            calls.len()
        };
        let (delay, outcome) = (self.act)(call, &asked);
        Box::pin(async move {
            flott_env::sleep(delay).await;
            outcome?;
            let number = |row: &Row| asked.iter().position(|key| Some(*key) == row.0).map(|number| number as u32);
            // In the table's order, not in that of the keys.
            let rows = self.rows.lock().unwrap();
            let found = rows.iter().filter_map(|row| Some((*row, number(row)?)));
            let (rows, keys): (Vec<Row>, Vec<u32>) = found.unzip();
            Ok(Found { rows: inserts(1, &rows).batch, keys })
        })
    }
}

struct Setting {
    is_left_outer: bool,
    with_condition: bool,
    cache: Option<CacheOptions>,
    retries_max: u32,
    patience: Patience,
}

impl Default for Setting {
    fn default() -> Self {
        let patience = Patience { timeout: Duration::from_secs(60), requests_max: 100, is_insert_only: true };
        Self { is_left_outer: false, with_condition: false, cache: None, retries_max: 3, patience }
    }
}

/// Rows do not wait beside others: what comes of them is there when they were pushed.
fn waiting() -> Patience {
    Patience { is_insert_only: false, ..Setting::default().patience }
}

fn bed(table: Arc<dyn LookUp>, setting: Setting) -> Bed {
    let schemas = sides();
    let (left, right) = (Arc::clone(&schemas[0]), Arc::clone(&schemas[1]));
    Bed::of(
        move |task| {
            let condition = setting.with_condition.then(less);
            let on = LookupCondition {
                left_keys: &[0],
                is_left_outer: setting.is_left_outer,
                condition: condition.as_ref(),
                functions: &Functions::new([]),
            };
            let table = AskedTable {
                name: "t".to_owned(),
                table: Arc::clone(&table),
                keys: Arc::new(right.project(&[0]).unwrap()),
                schema: Arc::clone(&right),
                retries_max: setting.retries_max,
                cache: setting.cache.clone(),
            };
            let io = RUNTIME.handle().clone();
            Ok(Box::new(AskedLookupJoin::new(&left, &on, table, setting.patience, io, task.waker.clone())?))
        },
        &[vec![0]],
        &schemas[..1],
    )
}

fn left(key: i64) -> Row {
    (Some(key), None, key)
}

/// The line of a left row with the right row of the same key that has `value`.
fn pair(key: i64, value: i64) -> String {
    format!("+I\t{}\t{}", shown(Some(&left(key))), shown(Some(&(Some(key), None, value))))
}

/// What comes out until there are so many lines.
fn await_lines(bed: &mut Bed, lines: usize) -> Vec<String> {
    let mut log = Vec::new();
    for now in 1.. {
        bed.time(now);
        log.extend(bed.take());
        if log.len() >= lines {
            return log;
        }
        assert!(now < 5000, "nothing more comes: {log:?}");
        std::thread::sleep(Duration::from_millis(2));
    }
    log
}

fn failure(bed: &mut Bed, keys: &[i64]) -> String {
    let rows: Vec<Vec<Value>> = keys.iter().map(|key| row![*key, 0, 0]).collect();
    bed.try_insert(0, &rows).unwrap_err().to_string()
}

fn any_row() -> impl Strategy<Value = Row> {
    (prop::option::weighted(0.9, 0..4_i64), Just(Some(0)), 0..4_i64)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn rows_are_joined_as_by_nested_loops(
        table in prop::collection::vec(any_row(), 0..12),
        left in prop::collection::vec((any_row(), 0..4_u8), 1..20),
        at_once in 1..6_usize,
        (is_left_outer, with_condition, is_insert_only) in any::<(bool, bool, bool)>(),
        rows_max in prop::option::of(1..6_usize),
        restart_after in 0..8_usize,
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
        // Calls overtake each other.
        let mock = Mock::new(&table, |call, _| (Duration::from_micros(call as u64 * 7919 % 3 * 700), Ok(())));
        let cache = rows_max.map(|rows_max| CacheOptions { rows_max, ..CacheOptions::default() });
        let patience = Patience { is_insert_only, requests_max: 3, ..waiting() };
        let mut bed = bed(mock, Setting { is_left_outer, with_condition, cache, patience, ..Setting::default() });
        for (number, rows) in left.chunks(at_once).enumerate() {
            bed.push(&changes(0, rows));
            if number == restart_after {
                bed.restart(1);
            }
        }
        prop_assert_eq!(bed.finish(), expected);
    }
}

#[test]
fn rows_and_watermarks_keep_their_order_whatever_comes_first() {
    // The first is answered last.
    let mock = Mock::new(&[(Some(1), None, 10), (Some(2), None, 20), (Some(3), None, 30)], |_, keys| {
        (Duration::from_millis(if keys == [1, 2] { 60 } else { 1 }), Ok(()))
    });
    let mut bed = bed(Arc::clone(&mock) as _, Setting::default());
    bed.push(&inserts(0, &[left(1), left(2)]));
    bed.watermark(5);
    bed.push(&inserts(0, &[left(3)]));
    bed.push(&inserts(0, &[left(2), left(1)]));
    bed.watermark(6);
    let lines = await_lines(&mut bed, 7);
    let expected = [
        pair(1, 10),
        pair(2, 20),
        "watermark 5".to_owned(),
        pair(3, 30),
        pair(2, 20),
        pair(1, 10),
        "watermark 6".to_owned(),
    ];
    assert_eq!(lines, expected);
    let mut calls = mock.calls();
    calls.sort();
    assert_eq!(calls, [vec![1, 2], vec![2, 1], vec![3]], "all keys of a chunk together");
    bed.watermark(7);
    assert_eq!(bed.take_watermarks(), [7], "with nothing under way it passes on at once");
}

#[test]
fn a_restart_between_request_and_answer_loses_nothing_and_doubles_nothing() {
    let rows: Vec<Row> = (0..20).map(|key| (Some(key), None, key * 10)).collect();
    for parallelism in [1, 3] {
        let is_open = Arc::new(AtomicBool::new(false));
        let gate = Arc::clone(&is_open);
        // Before the gate is open, answers take longer than the test.
        let mock = Mock::new(&rows, move |_, _| match gate.load(Ordering::SeqCst) {
            true => (Duration::ZERO, Ok(())),
            false => (Duration::from_secs(3600), Ok(())),
        });
        let mut bed = bed(Arc::clone(&mock) as _, Setting::default());
        for key in 0..10 {
            bed.push(&inserts(0, &[left(key), left(key + 10)]));
        }
        for _ in 0..5000 {
            if mock.calls().len() < 10 {
                std::thread::sleep(Duration::from_millis(2));
            }
        }
        assert_eq!(mock.calls().len(), 10, "all are under way");
        is_open.store(true, Ordering::SeqCst);
        bed.restart(parallelism);
        let mut lines = await_lines(&mut bed, 20);
        lines.extend(bed.finish());
        let mut expected: Vec<String> =
            (0..10).flat_map(|key| [key, key + 10]).map(|key| pair(key, key * 10)).collect();
        if parallelism > 1 {
            lines.sort();
            expected.sort();
        }
        assert_eq!(lines, expected);
    }
}

#[test]
fn no_more_is_under_way_than_may_be() {
    let mock = Mock::new(&[], |_, _| (Duration::from_millis(30), Ok(())));
    let patience = Patience { requests_max: 2, ..Setting::default().patience };
    let mut bed = bed(Arc::clone(&mock) as _, Setting { is_left_outer: true, patience, ..Setting::default() });
    bed.push(&inserts(0, &[left(1)]));
    bed.push(&inserts(0, &[left(2)]));
    bed.push(&inserts(0, &[left(3)]));
    assert!(!bed.take_rows().is_empty(), "the third waits for the first");
}

#[test]
fn what_was_looked_up_is_not_asked_for_again_before_its_time() {
    let mock = Mock::quick(&[(Some(1), None, 10), (Some(2), None, 20), (Some(2), None, 21)]);
    let cache = Some(CacheOptions { expire_after_write_ms: Some(100), ..CacheOptions::default() });
    let mut bed = bed(Arc::clone(&mock) as _, Setting { cache, patience: waiting(), ..Setting::default() });
    bed.time(1000);
    bed.push(&inserts(0, &[left(1), left(2), left(1)]));
    bed.push(&inserts(0, &[left(3), left(2)]));
    // That there is nothing is known, too; and what the table has now is not.
    mock.rows.lock().unwrap()[0].2 = 11;
    bed.time(1099);
    bed.push(&inserts(0, &[left(3), left(1)]));
    assert_eq!(mock.calls(), [vec![1, 2], vec![3]]);
    let (one, two) = (pair(1, 10), [pair(2, 20), pair(2, 21)]);
    let expected = [one.clone(), two[0].clone(), two[1].clone(), one.clone(), two[0].clone(), two[1].clone(), one];
    assert_eq!(bed.take_rows(), expected);
    bed.time(1100);
    bed.push(&inserts(0, &[left(1)]));
    assert_eq!(bed.take_rows(), [pair(1, 11)]);
    // It is no state.
    bed.restart(1);
    bed.push(&inserts(0, &[left(1)]));
    assert_eq!(mock.calls(), [vec![1, 2], vec![3], vec![1], vec![1]]);
}

#[test]
fn keys_without_rows_are_asked_for_again_if_that_is_wanted() {
    let mock = Mock::quick(&[(Some(1), None, 10)]);
    let cache = Some(CacheOptions { caches_missing_keys: false, ..CacheOptions::default() });
    let setting = Setting { is_left_outer: true, cache, patience: waiting(), ..Setting::default() };
    let mut bed = bed(Arc::clone(&mock) as _, setting);
    bed.push(&inserts(0, &[left(1), left(2)]));
    bed.push(&inserts(0, &[left(1), left(2)]));
    assert_eq!(mock.calls(), [vec![1, 2], vec![2]]);
    assert_eq!(bed.finish().len(), 4);
}

#[test]
fn null_is_never_asked_for() {
    let mock = Mock::quick(&[(None, None, 10)]);
    let mut bed = bed(Arc::clone(&mock) as _, Setting { is_left_outer: true, ..Setting::default() });
    let row = (None, None, 1);
    bed.push(&inserts(0, &[row]));
    assert_eq!(bed.finish(), [format!("+I\t{}\t{}", shown(Some(&row)), shown(None))]);
    assert!(mock.calls().is_empty());
}

#[test]
fn a_table_that_does_not_answer_is_named() {
    let mock = Mock::new(&[], |_, _| (Duration::from_secs(3600), Ok(())));
    let patience = Patience { timeout: Duration::from_millis(20), ..waiting() };
    let error = failure(&mut bed(mock, Setting { patience, ..Setting::default() }), &[1, 2, 1]);
    assert!(error.contains("looking up 2 keys in table 't'") && error.contains("20ms"), "{error}");
}

#[test]
fn what_fails_is_tried_again() {
    let failing = |times: usize, error: fn(&'static str) -> Error| {
        Mock::new(&[(Some(1), None, 10)], move |call, _| {
            (Duration::ZERO, if call <= times { Err(error("connection refused")) } else { Ok(()) })
        })
    };
    let setting = |retries_max| Setting { retries_max, patience: waiting(), ..Setting::default() };
    let mock = failing(2, Error::system);
    let mut good = bed(Arc::clone(&mock) as _, setting(2));
    good.push(&inserts(0, &[left(1)]));
    assert_eq!(good.take_rows(), [pair(1, 10)]);
    assert_eq!(mock.calls().len(), 3);

    let error = failure(&mut bed(failing(2, Error::system), setting(1)), &[1]);
    assert!(error.contains("tried 2 times: connection refused"), "{error}");
    let error = failure(&mut bed(failing(1, Error::system), setting(0)), &[1]);
    assert!(error.ends_with("in table 't': connection refused"), "{error}");
    // What is wrong stays wrong.
    let mock = failing(1, Error::input);
    let error = failure(&mut bed(Arc::clone(&mock) as _, setting(3)), &[1]);
    assert!(error.contains("connection refused") && mock.calls().len() == 1, "{error}");
}

type Answer = fn() -> Found;

/// Answers with what it was made with.
struct Wrong(Answer);

impl LookUp for Wrong {
    fn look_up(&self, _: RecordBatch) -> Finding<'_> {
        Box::pin(async move { Ok((self.0)()) })
    }
}

#[test]
fn answers_to_other_questions_are_refused() {
    let cases: [(Answer, &str); 4] = [
        (|| Found { rows: inserts(1, &[left(1)]).batch, keys: vec![] }, "1 rows, and the keys of 0"),
        (|| Found { rows: inserts(1, &[left(1)]).batch, keys: vec![1] }, "key at 1"),
        (
            || Found { rows: inserts(1, &[left(1)]).batch.project(&[0, 1]).unwrap(), keys: vec![0] },
            "columns of the types",
        ),
        (|| panic!("no such table"), "panicked"),
    ];
    for (answer, reason) in cases {
        let setting = Setting { patience: waiting(), ..Setting::default() };
        let error = failure(&mut bed(Arc::new(Wrong(answer)), setting), &[1]);
        assert!(error.contains(reason) && error.contains("looking up 1 key in table 't'"), "{error}");
    }
}

#[test]
fn keys_of_different_types_are_refused() {
    let schemas = sides();
    let table = AskedTable {
        name: "rates".to_owned(),
        table: Mock::quick(&[]),
        keys: Arc::new(schemas[1].project(&[1]).unwrap()),
        schema: Arc::clone(&schemas[1]),
        retries_max: 0,
        cache: None,
    };
    let functions = Functions::new([]);
    let on = LookupCondition { left_keys: &[0], is_left_outer: false, condition: None, functions: &functions };
    let join = AskedLookupJoin::new(&schemas[0], &on, table, waiting(), RUNTIME.handle().clone(), Waker::noop());
    let error = join.err().unwrap().to_string();
    assert!(error.contains("'rates'") && error.contains("Int64") && error.contains("CAST"), "{error}");
}
