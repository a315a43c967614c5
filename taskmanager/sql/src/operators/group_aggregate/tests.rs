use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{BooleanArray, Float64Array, Int64Array, StringArray};
use arrow::datatypes::{Field, Schema};
use flott_core::Batch;
use flott_graph::Partitioning;
use flott_network::{Element, Payload, Signal, local_channel};
use flott_operators::push::{Control, Push};
use proptest::prelude::*;

use super::*;
use crate::aggregates::partial::{as_they_are, partial_field};
use crate::exchange::ChunkWriter;
use crate::operators::testing::Bed;
use crate::program::types_of;
use crate::spec::{AggregateFunction, AggregateSpec, OperatorSpec};

/// Key, number, text.
type Row = (i64, Option<i64>, Option<&'static str>);

fn schema() -> SchemaRef {
    let field = |name: &str, data_type| Field::new(name, data_type, true);
    Arc::new(Schema::new(vec![
        field("k", DataType::Int64),
        field("v", DataType::Int64),
        field("s", DataType::Utf8),
        field("d", DataType::Float64),
        field("is_even", DataType::Boolean),
    ]))
}

/// The columns of rows that may stand for several.
fn wide() -> SchemaRef {
    let narrow = schema();
    let fields = narrow.fields().iter().cloned().chain([partial_field()]);
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

fn chunk(rows: &[(Row, bool)]) -> Chunk {
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int64Array::from_iter_values(rows.iter().map(|((key, ..), _)| *key))),
        Arc::new(Int64Array::from_iter(rows.iter().map(|((_, value, _), _)| *value))),
        Arc::new(StringArray::from_iter(rows.iter().map(|((.., text), _)| *text))),
        Arc::new(Float64Array::from_iter(rows.iter().map(|((_, value, _), _)| value.map(|value| value as f64 / 2.0)))),
        Arc::new(BooleanArray::from_iter(rows.iter().map(|((_, value, _), _)| value.map(|value| value % 2 == 0)))),
    ];
    let kinds = rows.iter().map(|(_, is_addition)| if *is_addition { RowKind::Insert } else { RowKind::Delete });
    Chunk::of_columns(&schema(), columns, rows.len(), kinds.collect()).unwrap()
}

fn aggregate(function: AggregateFunction, column: Option<usize>, result: DataType) -> AggregateSpec {
    let text = format!("{function:?}({column:?})");
    let arguments = column.into_iter().collect();
    AggregateSpec { function, arguments, filter: None, is_distinct: false, order: Vec::new(), result, text }
}

fn distinct(mut spec: AggregateSpec) -> AggregateSpec {
    spec.is_distinct = true;
    spec
}

fn filtered(mut spec: AggregateSpec, column: usize) -> AggregateSpec {
    spec.filter = Some(column);
    spec
}

fn spec(keys: Vec<usize>, aggregates: Vec<AggregateSpec>) -> GroupAggregateSpec {
    GroupAggregateSpec {
        keys,
        aggregates,
        is_insert_only: false,
        with_update_before: true,
        ttl_ms: 0,
        is_batch: false,
        has_partials: false,
    }
}

fn bed(spec: &GroupAggregateSpec) -> Bed {
    let input = if spec.has_partials { wide() } else { schema() };
    let mut fields: Vec<Field> = spec.keys.iter().map(|key| input.field(*key).clone()).collect();
    fields.extend(spec.aggregates.iter().map(|a| Field::new(&a.text, a.result.clone(), true)));
    let output: SchemaRef = Arc::new(Schema::new(fields));
    Bed::keyed(OperatorSpec::GroupAggregate(spec.clone()), std::slice::from_ref(&spec.keys), &[input], &output)
}

/// The rows that a changelog leaves. What it says must be true when it says it.
fn fold(log: &[String]) -> Vec<String> {
    let mut rows: BTreeMap<&str, i64> = BTreeMap::new();
    for line in log {
        let (kind, row) = line.split_once('\t').unwrap();
        let count = rows.entry(row).or_default();
        *count += if kind.starts_with('+') { 1 } else { -1 };
        assert!((0..=1).contains(count), "{line} in {log:?}");
    }
    rows.retain(|_, count| *count > 0);
    rows.into_keys().map(str::to_owned).collect()
}

/// Aggregates of every shape of state.
fn all() -> Vec<AggregateSpec> {
    use AggregateFunction as F;
    vec![
        aggregate(F::Count, None, DataType::Int64),
        aggregate(F::Count, Some(1), DataType::Int64),
        aggregate(F::Sum, Some(1), DataType::Int64),
        aggregate(F::Sum0, Some(1), DataType::Int64),
        aggregate(F::Avg, Some(1), DataType::Int64),
        aggregate(F::Min, Some(1), DataType::Int64),
        aggregate(F::Max, Some(1), DataType::Int64),
        aggregate(F::Max, Some(2), DataType::Utf8),
        aggregate(F::FirstValue, Some(2), DataType::Utf8),
        aggregate(F::LastValue, Some(2), DataType::Utf8),
        aggregate(F::ListAgg { separator: Some("-".to_owned()) }, Some(2), DataType::Utf8),
        distinct(aggregate(F::Count, Some(1), DataType::Int64)),
        distinct(aggregate(F::Sum, Some(1), DataType::Int64)),
        aggregate(F::Avg, Some(3), DataType::Float64),
        filtered(distinct(aggregate(F::Count, Some(1), DataType::Int64)), 4),
        aggregate(F::Percentile { at: vec![0.5_f64.to_bits()] }, Some(1), DataType::Float64),
    ]
}

/// What half of the values are not above.
fn median(mut values: Vec<i64>) -> Option<f64> {
    values.sort_unstable();
    let last = values.len().checked_sub(1)?;
    Some((values[last / 2] + values[last.div_ceil(2)]) as f64 / 2.0)
}

/// The texts of each key, in the order in which they came. The first of equal ones goes first, in whatever row it was.
#[derive(Default)]
struct Texts(BTreeMap<i64, Vec<&'static str>>);

impl Texts {
    fn change(&mut self, (key, _, text): Row, is_addition: bool) {
        let (Some(text), texts) = (text, self.0.entry(key).or_default()) else { return };
        match texts.iter().position(|other| *other == text) {
            Some(found) if !is_addition => {
                texts.remove(found);
            }
            _ => texts.push(text),
        }
    }
}

/// The same by looking at all rows that are there.
fn naive(rows: &[Row], texts: &Texts) -> Vec<String> {
    let mut groups: BTreeMap<i64, Vec<Row>> = BTreeMap::new();
    rows.iter().for_each(|row| groups.entry(row.0).or_default().push(*row));
    let show = |value: Option<String>| value.unwrap_or_else(|| "null".to_owned());
    let mut lines: Vec<String> = groups
        .into_iter()
        .map(|(key, rows)| {
            let values: Vec<i64> = rows.iter().filter_map(|row| row.1).collect();
            let texts = texts.0.get(&key).cloned().unwrap_or_default();
            let mut different = values.clone();
            different.sort_unstable();
            different.dedup();
            let sum = (!values.is_empty()).then(|| values.iter().sum::<i64>());
            let number = |value: Option<i64>| show(value.map(|value| value.to_string()));
            let text = |value: Option<&&str>| show(value.map(|value| (*value).to_owned()));
            let double = sum.map(|sum| sum as f64 / 2.0 / values.len() as f64);
            [
                key.to_string(),
                rows.len().to_string(),
                values.len().to_string(),
                number(sum),
                sum.unwrap_or(0).to_string(),
                number(sum.map(|sum| sum / values.len() as i64)),
                number(values.iter().min().copied()),
                number(values.iter().max().copied()),
                text(texts.iter().max()),
                text(texts.first()),
                text(texts.last()),
                show((!texts.is_empty()).then(|| texts.join("-"))),
                different.len().to_string(),
                number((!different.is_empty()).then(|| different.iter().sum())),
                show(double.map(|double| format!("{double:?}"))),
                different.iter().filter(|value| *value % 2 == 0).count().to_string(),
                show(median(values).map(|median| format!("{median:?}"))),
            ]
            .join("\t")
        })
        .collect();
    lines.sort();
    lines
}

fn row() -> impl Strategy<Value = Row> {
    let text = prop_oneof![Just(None), Just(Some("")), Just(Some("a")), Just(Some("é")), Just(Some("zz"))];
    (0..3_i64, prop::option::weighted(0.8, -3..4_i64), text)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn changes_fold_to_the_aggregates_of_what_is_left(
        steps in prop::collection::vec(prop::collection::vec((row(), prop::bool::weighted(0.6)), 1..8), 1..10),
        restart in 0..10_usize,
    ) {
        let mut bed = bed(&spec(vec![0], all()));
        let (mut rows, mut texts, mut log): (Vec<Row>, Texts, Vec<String>) = Default::default();
        for (index, step) in steps.iter().enumerate() {
            let mut changes = Vec::new();
            for (row, is_addition) in step {
                let found = rows.iter().position(|other| other == row).filter(|_| !is_addition);
                match found {
                    Some(found) => drop(rows.remove(found)),
                    None => rows.push(*row),
                }
                texts.change(*row, found.is_none());
                changes.push((*row, found.is_none()));
            }
            bed.push(&chunk(&changes));
            log.extend(bed.take());
            prop_assert_eq!(fold(&log), naive(&rows, &texts));
            if index == restart {
                bed.restart(3);
            }
        }
        let groups = rows.iter().map(|row| row.0).collect::<std::collections::BTreeSet<_>>();
        prop_assert_eq!(bed.entries()["groups"], groups.len() as u64, "keys without rows are nobody's");
    }

    #[test]
    fn what_only_comes_has_the_same_results(
        steps in prop::collection::vec(prop::collection::vec(row(), 1..8), 1..10),
        is_batch: bool,
    ) {
        let insert_only = GroupAggregateSpec { is_insert_only: true, is_batch, ..spec(vec![0], all()) };
        let mut bed = bed(&insert_only);
        for step in &steps {
            bed.push(&chunk(&step.iter().map(|row| (*row, true)).collect::<Vec<_>>()));
            bed.restart(2);
        }
        let log = bed.finish();
        prop_assert!(!is_batch || log.iter().all(|line| line.starts_with("+I")), "{:?}", log);
        let (rows, mut texts) = (steps.concat(), Texts::default());
        rows.iter().for_each(|row| texts.change(*row, true));
        prop_assert_eq!(fold(&log), naive(&rows, &texts));
    }

    /// Rows that were taken together in front of it count as they would by themselves.
    #[test]
    fn two_phases_have_the_results_of_one(
        steps in prop::collection::vec(
            (prop::collection::vec((row(), prop::bool::weighted(0.6)), 1..8), any::<bool>(), 0..6_u32),
            1..10,
        ),
        retracts: bool,
    ) {
        let mut aggregates = all();
        let are_mergeable = |spec: &AggregateSpec| {
            Aggregates::new(std::slice::from_ref(spec), &schema(), retracts).unwrap().are_mergeable()
        };
        aggregates.retain(are_mergeable);
        let local = Aggregates::new(&aggregates, &schema(), retracts).unwrap();
        let mut keys = KeyEncoder::new(&[0], &types_of(&schema())).unwrap();
        let (mut grouping, mut arena) = (Grouping::default(), local.arena());
        // Where keys may go, values are kept otherwise.
        let ttl_ms = if retracts { 0 } else { 1000 };
        let one = GroupAggregateSpec { is_insert_only: !retracts, ttl_ms, ..spec(vec![0], aggregates) };
        let two = GroupAggregateSpec { has_partials: true, ..one.clone() };
        let (mut one, mut two) = (bed(&one), bed(&two));
        let mut rows: Vec<Row> = Vec::new();
        for (step, is_partial, restart) in steps {
            let mut changes = Vec::new();
            for (row, is_addition) in step {
                let found = rows.iter().position(|other| *other == row).filter(|_| retracts && !is_addition);
                match found {
                    Some(found) => drop(rows.remove(found)),
                    None => rows.push(row),
                }
                changes.push((row, found.is_none()));
            }
            let chunk = chunk(&changes);
            one.push(&chunk);
            grouping.assign(keys.encode(chunk.batch.columns(), chunk.len(), None).unwrap());
            let sent = match is_partial {
                true => local.partials(&mut arena, &chunk, &grouping.groups, &grouping.firsts, &wide()),
                false => as_they_are(&chunk, &wide()),
            };
            two.push(&sent.unwrap());
            if restart < 3 {
                one.restart(1 + restart);
                two.restart(1 + restart);
            }
        }
        prop_assert_eq!(one.entries(), two.entries());
        prop_assert_eq!(fold(&one.finish()), fold(&two.finish()));
    }
}

#[test]
fn deletes_are_as_in_flink() {
    // The rows of FLINK-13216's kind, with duplicates, and deletes of what was never there; results are Flink 2.3's.
    let rows: [(Row, bool); 11] = [
        ((1, Some(5), Some("x")), true),
        ((1, None, None), true),
        ((1, Some(7), Some("y")), true),
        ((1, Some(5), Some("x")), true),
        ((1, Some(9), Some("z")), true),
        ((1, Some(5), Some("x")), false),
        ((1, Some(5), Some("x")), false),
        ((2, Some(1), Some("q")), true),
        ((2, Some(1), Some("q")), false),
        ((3, Some(1), Some("q")), false),
        ((3, Some(2), Some("r")), true),
    ];
    use AggregateFunction as F;
    let aggregates = vec![
        aggregate(F::Count, None, DataType::Int64),
        aggregate(F::Avg, Some(1), DataType::Int64),
        aggregate(F::Max, Some(1), DataType::Int64),
        aggregate(F::FirstValue, Some(1), DataType::Int64),
        aggregate(F::LastValue, Some(1), DataType::Int64),
        aggregate(F::ListAgg { separator: Some(",".to_owned()) }, Some(2), DataType::Utf8),
        distinct(aggregate(F::Sum, Some(1), DataType::Int64)),
        aggregate(F::StddevPop, Some(1), DataType::Int64),
        aggregate(F::VarSamp, Some(1), DataType::Int64),
        aggregate(F::JsonArrayAgg { absent_on_null: false }, Some(1), DataType::Utf8),
    ];
    let mut bed = bed(&spec(vec![0], aggregates));
    rows.iter().for_each(|row| bed.push(&chunk(&[*row])));
    assert_eq!(
        bed.finish(),
        [
            "+I\t1\t1\t5\t5\t5\t5\tx\t5\t0\tnull\t[5]",
            "-U\t1\t1\t5\t5\t5\t5\tx\t5\t0\tnull\t[5]",
            "+U\t1\t2\t5\t5\t5\t5\tx\t5\t0\tnull\t[5,null]",
            "-U\t1\t2\t5\t5\t5\t5\tx\t5\t0\tnull\t[5,null]",
            "+U\t1\t3\t6\t7\t5\t7\tx,y\t12\t1\t2\t[5,null,7]",
            "-U\t1\t3\t6\t7\t5\t7\tx,y\t12\t1\t2\t[5,null,7]",
            "+U\t1\t4\t5\t7\t5\t5\tx,y,x\t12\t0\t1\t[5,null,7,5]",
            "-U\t1\t4\t5\t7\t5\t5\tx,y,x\t12\t0\t1\t[5,null,7,5]",
            "+U\t1\t5\t6\t9\t5\t9\tx,y,x,z\t21\t1\t3\t[5,null,7,5,9]",
            "-U\t1\t5\t6\t9\t5\t9\tx,y,x,z\t21\t1\t3\t[5,null,7,5,9]",
            "+U\t1\t4\t7\t9\t7\t9\ty,x,z\t21\t1\t4\t[null,7,5,9]",
            "-U\t1\t4\t7\t9\t7\t9\ty,x,z\t21\t1\t4\t[null,7,5,9]",
            "+U\t1\t3\t8\t9\t7\t9\ty,z\t16\t1\t2\t[null,7,9]",
            "+I\t2\t1\t1\t1\t1\t1\tq\t1\t0\tnull\t[1]",
            "-D\t2\t1\t1\t1\t1\t1\tq\t1\t0\tnull\t[1]",
            "+I\t3\t1\t2\t2\t2\t2\tr\t2\t0\tnull\t[2]",
        ]
    );
}

#[test]
fn a_key_is_put_out_once_a_chunk_and_not_at_all_if_nothing_changed() {
    let mut bed = bed(&spec(vec![0], vec![aggregate(AggregateFunction::Max, Some(1), DataType::Int64)]));
    bed.push(&chunk(&[((1, Some(1), None), true), ((1, Some(3), None), true), ((2, Some(2), None), true)]));
    bed.push(&chunk(&[((1, Some(2), None), true), ((2, Some(4), None), true), ((2, Some(4), None), false)]));
    bed.push(&chunk(&[((3, Some(2), None), true), ((3, Some(2), None), false)]));
    assert_eq!(bed.finish(), ["+I\t1\t3", "+I\t2\t2"]);
}

/// What Flink's mini-batches are for: rows that come one by one are one update of each key, without another delay than that of the
/// exchange in front.
#[test]
fn small_chunks_that_an_exchange_puts_together_are_one_update_of_each_key() {
    let sum = aggregate(AggregateFunction::Sum, Some(1), DataType::Int64);
    let mut bed = bed(&GroupAggregateSpec { is_insert_only: true, ..spec(vec![0], vec![sum]) });
    let (sender, receiver) = local_channel(1 << 20, Signal::new(), Signal::new());
    let keys = KeyEncoder::new(&[0], &types_of(&schema())).unwrap();
    let mut exchange = ChunkWriter::new(Partitioning::Hash, Some(keys), 0, 16, vec![sender], &bed.task(0, 1));
    let mut updates = Vec::new();
    for first in [0, 100] {
        for v in first..first + 100 {
            let one = chunk(&[((v % 2, Some(v), None), true)]);
            exchange.push(&mut Batch::from_rows(vec![one])).unwrap();
        }
        assert!(receiver.pop().is_none(), "they wait for each other");
        exchange.control(&mut Control::Flush).unwrap();
        let Some(Element::Batch(Payload::Local { batch, rows, .. })) = receiver.pop() else { panic!("no chunk") };
        assert_eq!(rows, 100);
        assert!(receiver.pop().is_none(), "it is one");
        bed.push(&batch.downcast::<Chunk>().unwrap());
        updates.push(bed.take());
    }
    assert_eq!(updates[0], ["+I\t0\t2450", "+I\t1\t2500"]);
    assert_eq!(updates[1], ["-U\t0\t2450", "+U\t0\t9900", "-U\t1\t2500", "+U\t1\t10000"]);
}

#[test]
fn in_batch_mode_no_rows_have_one_result_without_a_key() {
    let count = || vec![aggregate(AggregateFunction::Count, None, DataType::Int64), all()[2].clone()];
    for (is_batch, expected) in [(true, vec!["+I\t0\tnull"]), (false, vec![])] {
        let mut bed = bed(&GroupAggregateSpec { is_batch, ..spec(Vec::new(), count()) });
        bed.restart(2);
        assert_eq!(bed.finish(), expected);
    }
    let empty = bed(&GroupAggregateSpec { is_batch: true, ..spec(vec![0], count()) });
    assert_eq!(empty.finish(), Vec::<String>::new());
}

#[test]
fn unused_keys_go_and_used_ones_are_told_of_again() {
    let max = || vec![aggregate(AggregateFunction::Max, Some(1), DataType::Int64)];
    let mut bed = bed(&GroupAggregateSpec { ttl_ms: 1000, is_insert_only: true, ..spec(vec![0], max()) });
    bed.time(10_000);
    bed.push(&chunk(&[((1, Some(5), None), true), ((2, Some(5), None), true)]));
    bed.time(10_800);
    bed.push(&chunk(&[((1, Some(3), None), true)]));
    assert_eq!(bed.take(), ["+I\t1\t5", "+I\t2\t5", "-U\t1\t5", "+U\t1\t5"]);
    bed.restart(3);
    bed.time(11_100);
    assert_eq!(bed.entries()["groups"], 1);
    bed.push(&chunk(&[((2, Some(1), None), true), ((1, Some(2), None), true)]));
    let mut log = bed.take();
    log.sort();
    assert_eq!(log, ["+I\t2\t1", "+U\t1\t5", "-U\t1\t5"]);
    bed.time(12_200);
    assert_eq!(bed.entries()["groups"], 0);
}

#[test]
fn what_cannot_be_computed_is_refused_by_name() {
    let refused = |aggregate: AggregateSpec, is_insert_only: bool| {
        let error = Aggregates::new(&[aggregate], &schema(), !is_insert_only).err().unwrap().to_string();
        assert!(error.contains("cannot be computed"), "{error}");
        error
    };
    let text = refused(aggregate(AggregateFunction::Sum, Some(2), DataType::Int64), true);
    assert!(text.contains("Utf8"), "{text}");
    let approximate = aggregate(AggregateFunction::ApproxCountDistinct, Some(1), DataType::Int64);
    assert!(refused(approximate, false).contains("COUNT(DISTINCT"));
    let user = aggregate(AggregateFunction::User("my_median".to_owned()), Some(1), DataType::Int64);
    assert!(refused(user, true).contains("'my_median'"));
}

/// What changed is a value or two of the group, however many it has.
#[test]
fn a_change_of_a_large_group_is_small_in_a_checkpoint() {
    use AggregateFunction as F;
    let distinct = AggregateSpec { is_distinct: true, ..aggregate(F::Count, Some(1), DataType::Int64) };
    let aggregates = vec![distinct, aggregate(F::Max, Some(1), DataType::Int64)];
    for is_insert_only in [false, true] {
        let mut bed = bed(&GroupAggregateSpec { is_insert_only, ..spec(vec![0], aggregates.clone()) });
        let rows: Vec<(Row, bool)> = (0..20_000).map(|v| ((1, Some(v), None), true)).collect();
        rows.chunks(1000).for_each(|rows| bed.push(&chunk(rows)));
        assert!(bed.changed_bytes() > 20_000);
        bed.take();
        bed.push(&chunk(&[((1, Some(30_000), None), true)]));
        assert!(bed.changed_bytes() < 1000);
        bed.restart(2);
        bed.push(&chunk(&[((1, Some(40_000), None), true), ((1, Some(7), None), true)]));
        assert_eq!(bed.take().last().unwrap(), "+U\t1\t20002\t40000");
    }
}
