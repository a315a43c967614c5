//! Rows of both sides of joins, for their tests.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, TimestampMillisecondArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{BinaryExpr, Column};
use flott_chunk::{Chunk, RowKind};

use crate::expr::ExprSpec;
use crate::spec::JoinKind;

/// All kinds of joins.
pub(crate) const KINDS: [JoinKind; 6] =
    [JoinKind::Inner, JoinKind::Left, JoinKind::Right, JoinKind::Full, JoinKind::Semi, JoinKind::Anti];

/// A row of one side of a join: key, time in milliseconds, value.
pub(crate) type Row = (Option<i64>, Option<i64>, i64);

fn side(name: &str) -> SchemaRef {
    let names = [format!("{name}k"), format!("{name}t"), format!("{name}v")];
    let types = [DataType::Int64, DataType::Timestamp(TimeUnit::Millisecond, None), DataType::Int64];
    Arc::new(Schema::new(names.into_iter().zip(types).map(|(n, t)| Field::new(n, t, true)).collect::<Vec<_>>()))
}

/// The columns of both sides.
pub(crate) fn sides() -> Vec<SchemaRef> {
    vec![side("l"), side("r")]
}

/// The columns of a join's result.
pub(crate) fn joined(kind: JoinKind) -> SchemaRef {
    let wanted = if matches!(kind, JoinKind::Semi | JoinKind::Anti) { 1 } else { 2 };
    let fields: Vec<_> =
        sides().iter().take(wanted).flat_map(|schema| schema.fields().iter().cloned().collect::<Vec<_>>()).collect();
    Arc::new(Schema::new(fields))
}

/// The condition that the left value is below the right one.
pub(crate) fn less() -> ExprSpec {
    let column = |name: &str, index| Arc::new(Column::new(name, index)) as Arc<dyn PhysicalExpr>;
    let less: Arc<dyn PhysicalExpr> = Arc::new(BinaryExpr::new(column("lv", 2), Operator::Lt, column("rv", 5)));
    ExprSpec::new(&less).unwrap()
}

/// Rows of a side.
pub(crate) fn changes(side: usize, rows: &[(Row, RowKind)]) -> Chunk {
    let keys: ArrayRef = Arc::new(Int64Array::from_iter(rows.iter().map(|(row, _)| row.0)));
    let times: ArrayRef = Arc::new(TimestampMillisecondArray::from_iter(rows.iter().map(|(row, _)| row.1)));
    let values: ArrayRef = Arc::new(Int64Array::from_iter_values(rows.iter().map(|(row, _)| row.2)));
    let kinds = rows.iter().map(|(_, kind)| *kind).collect();
    let mut chunk = Chunk::of_columns(&sides()[side], vec![keys, times, values], rows.len(), kinds).unwrap();
    chunk.input = side as u8;
    chunk
}

/// New rows of a side.
pub(crate) fn inserts(side: usize, rows: &[Row]) -> Chunk {
    changes(side, &rows.iter().map(|row| (*row, RowKind::Insert)).collect::<Vec<_>>())
}

/// How a row of a side is shown, within the first minute of time.
pub(crate) fn shown(row: Option<&Row>) -> String {
    let Some((key, time, value)) = row else { return "null\tnull\tnull".to_owned() };
    let time = match *time {
        None => "null".to_owned(),
        Some(0) => "1970-01-01T00:00".to_owned(),
        Some(ms) if ms % 1000 == 0 => format!("1970-01-01T00:00:{:02}", ms / 1000),
        Some(ms) => format!("1970-01-01T00:00:{:02}.{:03}", ms / 1000, ms % 1000),
    };
    format!("{}\t{time}\t{value}", key.map_or("null".to_owned(), |key| key.to_string()))
}
