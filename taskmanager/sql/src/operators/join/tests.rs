use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use arrow::array::{ArrayRef, Int64Array, StringArray};
use arrow::datatypes::{Field, Schema};
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{BinaryExpr, Column};
use flott_chunk::display::write_changelog;
use flott_core::Batch;
use flott_core::ids::{JobId, SubtaskId};
use flott_operators::push::{Control, Output, Push, SideOutputs};
use flott_operators::{OperatorNode, TaskContext};
use proptest::prelude::*;

use super::*;
use crate::expr::{ExprSpec, Functions};
use crate::operator::OverChunks;

/// A row of a side: key, value.
type Row = (Option<i64>, i64);

struct Recorder(Arc<Mutex<Vec<String>>>);

impl Push<Chunk> for Recorder {
    fn push(&mut self, batch: &mut Batch<Chunk>) -> Result<()> {
        let mut log = self.0.lock().unwrap();
        for chunk in batch.rows.drain(..) {
            log.extend((0..chunk.len()).map(|row| {
                let mut line = String::new();
                write_changelog(&chunk, row, &mut line);
                line
            }));
        }
        Ok(())
    }

    fn control(&mut self, _: &mut Control<'_>) -> Result<()> {
        Ok(())
    }
}

fn context(io: &tokio::runtime::Handle) -> TaskContext {
    TaskContext {
        job: JobId([1; 16]),
        generation: 1,
        subtask: SubtaskId { vertex: 0, index: 0 },
        name: "Join".to_owned(),
        parallelism: 1,
        max_parallelism: 16,
        config: Default::default(),
        counters: Default::default(),
        io: io.clone(),
        waker: flott_connector_spi::Waker::noop(),
        woken: Default::default(),
        splits: Default::default(),
        state: Default::default(),
    }
}

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
    run_by(kind, with_condition, is_batch, None, chunks)
}

/// The same; at most one row of each side has the same values in the columns `unique`.
fn run_by(
    kind: JoinKind,
    with_condition: bool,
    is_batch: bool,
    unique: Option<Vec<usize>>,
    chunks: Vec<Chunk>,
) -> Vec<String> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let task = context(runtime.handle());
    let functions = Functions::new([]);
    let inputs = [schema("l"), schema("r")];
    let is_half = matches!(kind, JoinKind::Semi | JoinKind::Anti);
    let fields = inputs.iter().take(if is_half { 1 } else { 2 }).flat_map(|schema| schema.fields().iter().cloned());
    let output: SchemaRef = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let cx = OperatorContext { task: &task, functions: &functions, inputs: &inputs, output: &output };
    let column = |name: &str, index| Arc::new(Column::new(name, index)) as Arc<dyn PhysicalExpr>;
    let condition: Arc<dyn PhysicalExpr> = Arc::new(BinaryExpr::new(column("lv", 1), Operator::Lt, column("rv", 4)));
    let input = || JoinInput { keys: vec![0], is_insert_only: false, unique_key: unique.clone(), ttl_ms: 0 };
    let spec = JoinSpec {
        kind,
        left: input(),
        right: input(),
        nulls_equal: vec![false],
        condition: with_condition.then(|| ExprSpec::new(&condition).unwrap()),
        is_batch,
    };
    let log = Arc::default();
    let out = Output::new(vec![Box::new(Recorder(Arc::clone(&log))) as Box<dyn Push<Chunk>>], SideOutputs::default());
    let join = OverChunks::new(Join::new(&spec, &cx).unwrap());
    let id = flott_core::ids::OperatorId([1; 16]);
    let mut node: OperatorNode<_, Chunk> = OperatorNode::new(id, "Join", join, out);
    for chunk in chunks {
        node.push(&mut Batch::from_rows(vec![chunk])).unwrap();
    }
    Push::<Chunk>::control(&mut node, &mut Control::EndOfInput).unwrap();
    drop(node);
    Arc::try_unwrap(log).unwrap().into_inner().unwrap()
}

/// The rows that a changelog leaves.
fn fold(log: &[String]) -> BTreeMap<String, i64> {
    let mut rows = BTreeMap::new();
    for line in log {
        let (kind, row) = line.split_once('\t').unwrap();
        let count: &mut i64 = rows.entry(row.to_owned()).or_default();
        *count += if kind.starts_with('+') { 1 } else { -1 };
        assert!(*count >= 0, "{row} is taken back before it is there: {log:?}");
    }
    rows.retain(|_, count| *count != 0);
    rows
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
            let log = run_by(kind, false, false, Some(vec![0]), chunks.clone());
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
