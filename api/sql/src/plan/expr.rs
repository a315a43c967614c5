//! Expressions by column position, and what the planner asks of them.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::array::RecordBatchOptions;
use arrow::datatypes::{DataType, Schema};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, DataFusionError, ScalarValue};
use datafusion::logical_expr::execution_props::ExecutionProps;
use datafusion::logical_expr::{ColumnarValue, Expr, Operator};
use datafusion::physical_expr::expressions::{BinaryExpr, CaseExpr, CastExpr, Column, Literal};
use datafusion::physical_expr::utils::{collect_columns, split_conjunction};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr, create_physical_expr};
use datafusion::physical_expr_common::physical_expr::fmt_sql;
use flott_core::{Error, Result};
use flott_sql_runtime::spec::ExprSpec;

use super::names::duration;

/// An expression over the columns of one input.
pub(super) type PExpr = Arc<dyn PhysicalExpr>;

/// What DataFusion refuses, in our words.
pub(super) fn refused(error: DataFusionError) -> Error {
    Error::input(error.strip_backtrace())
}

/// `expr` over columns that stand as in `schema`.
pub(super) fn physical(expr: &Expr, schema: &DFSchema) -> Result<PExpr> {
    create_physical_expr(expr, schema, &ExecutionProps::new()).map_err(refused)
}

/// A column.
pub(super) fn column(index: usize) -> PExpr {
    Arc::new(Column::new("", index))
}

/// A constant.
pub(super) fn literal(value: ScalarValue) -> PExpr {
    Arc::new(Literal::new(value))
}

/// The column that `expr` is, if it is nothing else.
pub(super) fn as_column(expr: &PExpr) -> Option<usize> {
    expr.downcast_ref::<Column>().map(Column::index)
}

/// The columns that `expr` uses.
pub(super) fn columns_of(expr: &PExpr) -> BTreeSet<usize> {
    collect_columns(expr).iter().map(Column::index).collect()
}

/// How often `expr` uses each column: adds to `counts`.
pub(super) fn count_columns(expr: &PExpr, counts: &mut [usize]) {
    let _ = expr.apply(|expr| {
        if let Some(column) = as_column(expr) {
            counts[column] += 1;
        }
        Ok(TreeNodeRecursion::Continue)
    });
}

/// `expr` with something else in place of its columns.
pub(super) fn replace(expr: &PExpr, with: &dyn Fn(usize) -> PExpr) -> Result<PExpr> {
    let new = Arc::clone(expr).transform_down(|expr| {
        Ok(match as_column(&expr) {
            Some(column) => Transformed::new(with(column), true, TreeNodeRecursion::Jump),
            None => Transformed::no(expr),
        })
    });
    Ok(new.map_err(refused)?.data)
}

/// `expr` with its columns elsewhere.
pub(super) fn remap(expr: &PExpr, to: &dyn Fn(usize) -> usize) -> Result<PExpr> {
    replace(expr, &|index| column(to(index)))
}

/// The conditions that all must be true.
pub(super) fn conjuncts(expr: &PExpr) -> Vec<PExpr> {
    split_conjunction(expr).into_iter().map(Arc::clone).collect()
}

/// One condition for all.
pub(super) fn all_of(conditions: &[PExpr]) -> Option<PExpr> {
    let and = |all: PExpr, next: PExpr| -> PExpr { Arc::new(BinaryExpr::new(all, Operator::And, next)) };
    conditions.iter().cloned().reduce(and)
}

/// The same, where a later condition is computed only for rows for which the earlier ones are true if it can fail:
/// `b <> 0 AND a / b > 1` divides nothing by 0.
pub(super) fn in_order(conditions: &[PExpr]) -> Result<Option<PExpr>> {
    let mut all: Option<PExpr> = None;
    for condition in conditions.iter().rev() {
        all = Some(match all {
            None => Arc::clone(condition),
            Some(rest) if can_fail(&rest) => {
                let when = vec![(Arc::clone(condition), rest)];
                Arc::new(CaseExpr::try_new(None, when, Some(literal(false.into()))).map_err(refused)?)
            }
            Some(rest) => Arc::new(BinaryExpr::new(Arc::clone(condition), Operator::And, rest)),
        });
    }
    Ok(all)
}

/// Whether there are values for which it is an error.
fn can_fail(expr: &PExpr) -> bool {
    let fails = |expr: &PExpr| {
        let name = call(expr).map(|(name, _)| name);
        matches!(name, Some("flink_divide" | "flink_mod" | "flink_cast" | "element"))
    };
    expr.exists(|expr| Ok(fails(expr))).unwrap_or(true)
}

/// Whether it may have another value each time.
pub(super) fn is_volatile(expr: &PExpr) -> bool {
    !is_proctime(expr) && expr.exists(|expr| Ok(expr.is_volatile_node())).unwrap_or(true)
}

/// Whether it is `PROCTIME()`.
pub(super) fn is_proctime(expr: &PExpr) -> bool {
    call(expr).is_some_and(|(name, _)| name == "proctime" || name == "flink_proctime")
}

fn call(expr: &PExpr) -> Option<(&str, &[PExpr])> {
    expr.downcast_ref::<ScalarFunctionExpr>().map(|call| (call.name(), call.args()))
}

/// Whether it costs next to nothing: a column, a constant, the clock.
pub(super) fn is_trivial(expr: &PExpr) -> bool {
    as_column(expr).is_some() || expr.downcast_ref::<Literal>().is_some() || is_proctime(expr)
}

/// Its value, if it has the same for all rows.
pub(super) fn constant(expr: &PExpr) -> Option<ScalarValue> {
    if let Some(literal) = expr.downcast_ref::<Literal>() {
        return Some(literal.value().clone());
    }
    if !columns_of(expr).is_empty() || is_proctime(expr) || is_volatile(expr) {
        return None;
    }
    let one_row = RecordBatchOptions::new().with_row_count(Some(1));
    let row = RecordBatch::try_new_with_options(Arc::new(Schema::empty()), Vec::new(), &one_row).ok()?;
    match expr.evaluate(&row).ok()? {
        ColumnarValue::Scalar(value) => Some(value),
        ColumnarValue::Array(values) => ScalarValue::try_from_array(&values, 0).ok(),
    }
}

/// A whole number.
pub(super) fn integer(value: &ScalarValue) -> Option<i64> {
    match value {
        ScalarValue::Int8(value) => value.map(i64::from),
        ScalarValue::Int16(value) => value.map(i64::from),
        ScalarValue::Int32(value) => value.map(i64::from),
        ScalarValue::Int64(value) => *value,
        ScalarValue::UInt8(value) => value.map(i64::from),
        ScalarValue::UInt16(value) => value.map(i64::from),
        ScalarValue::UInt32(value) => value.map(i64::from),
        ScalarValue::UInt64(value) => value.and_then(|value| i64::try_from(value).ok()),
        ScalarValue::Decimal128(Some(value), _, 0) => i64::try_from(*value).ok(),
        _ => None,
    }
}

/// An interval in milliseconds, if it is of a fixed length.
pub(super) fn millis(value: &ScalarValue) -> Option<i64> {
    match value {
        ScalarValue::DurationSecond(value) => value.and_then(|value| value.checked_mul(1000)),
        ScalarValue::DurationMillisecond(value) => *value,
        ScalarValue::DurationMicrosecond(value) => value.map(|value| value.div_euclid(1000)),
        ScalarValue::DurationNanosecond(value) => value.map(|value| value.div_euclid(1_000_000)),
        ScalarValue::IntervalDayTime(Some(value)) => {
            Some(i64::from(value.days) * 86_400_000 + i64::from(value.milliseconds))
        }
        ScalarValue::IntervalMonthDayNano(Some(value)) if value.months == 0 => {
            Some(i64::from(value.days) * 86_400_000 + value.nanoseconds.div_euclid(1_000_000))
        }
        _ => None,
    }
}

/// `left operator right`, however it is written.
pub(super) fn comparison(expr: &PExpr) -> Option<(PExpr, Operator, PExpr)> {
    if let Some(binary) = expr.downcast_ref::<BinaryExpr>() {
        return Some((Arc::clone(binary.left()), *binary.op(), Arc::clone(binary.right())));
    }
    let (name, [left, right]) = call(expr)? else { return None };
    let operator = match name.strip_prefix("flink_").unwrap_or(name) {
        "eq" | "equals" => Operator::Eq,
        "lt" | "less_than" => Operator::Lt,
        "lt_eq" | "le" | "lteq" | "less_than_or_equal" => Operator::LtEq,
        "gt" | "greater_than" => Operator::Gt,
        "gt_eq" | "ge" | "gteq" | "greater_than_or_equal" => Operator::GtEq,
        _ => return None,
    };
    Some((Arc::clone(left), operator, Arc::clone(right)))
}

/// A point in time or a span: a column, if there is one, and so many milliseconds.
pub(super) fn instant(expr: &PExpr) -> Option<(Option<usize>, i64)> {
    if let Some(index) = as_column(expr) {
        return Some((Some(index), 0));
    }
    if let Some(span) = constant(expr).as_ref().and_then(millis) {
        return Some((None, span));
    }
    if let Some(cast) = expr.downcast_ref::<CastExpr>() {
        return matches!(cast.cast_type(), DataType::Timestamp(..)).then(|| instant(cast.expr()))?;
    }
    let sum = |left: &PExpr, right: &PExpr, sign: i64| match (instant(left)?, instant(right)?) {
        ((column, a), (None, b)) => Some((column, a.checked_add(sign * b)?)),
        ((None, a), (column, b)) if sign == 1 => Some((column, a.checked_add(b)?)),
        _ => None,
    };
    if let Some(binary) = expr.downcast_ref::<BinaryExpr>() {
        return match binary.op() {
            Operator::Plus => sum(binary.left(), binary.right(), 1),
            Operator::Minus => sum(binary.left(), binary.right(), -1),
            _ => None,
        };
    }
    let (name, arguments) = call(expr)?;
    match (name.strip_prefix("flink_").unwrap_or(name), arguments) {
        ("cast", [inner, ..]) => {
            let to = expr.downcast_ref::<ScalarFunctionExpr>().map(ScalarFunctionExpr::return_type);
            matches!(to, Some(DataType::Timestamp(..))).then(|| instant(inner))?
        }
        ("plus" | "add" | "timestamp_plus" | "timestamp_add" | "datetime_plus", [left, right]) => sum(left, right, 1),
        ("minus" | "subtract" | "timestamp_minus" | "timestamp_sub" | "datetime_minus", [left, right]) => {
            sum(left, right, -1)
        }
        _ => None,
    }
}

/// How it reads, with columns by these names.
pub(super) fn text(expr: &PExpr, name: &dyn Fn(usize) -> String) -> String {
    let named = Arc::clone(expr).transform_up(|expr| {
        let text = match (as_column(&expr), expr.downcast_ref::<Literal>().map(Literal::value)) {
            (Some(index), _) => name(index),
            (_, Some(ScalarValue::Utf8(Some(text)))) => format!("'{text}'"),
            (_, Some(value)) => match millis(value) {
                Some(span) => format!("INTERVAL '{}'", duration(span)),
                None => return Ok(Transformed::no(expr)),
            },
            _ => return Ok(Transformed::no(expr)),
        };
        let shown: PExpr = Arc::new(Column::new(&text, 0));
        Ok(Transformed::yes(shown))
    });
    named.map_or_else(|_| expr.to_string(), |named| fmt_sql(named.data.as_ref()).to_string())
}

/// What it means: equal texts are equal expressions, whatever columns are called.
pub(super) fn meaning(expr: &PExpr) -> String {
    meaning_by(expr, &|index| format!("${index}"))
}

/// The same, where columns mean this.
pub(super) fn meaning_by(expr: &PExpr, column: &dyn Fn(usize) -> String) -> String {
    let mut meaning = text(expr, column);
    let _ = expr.apply(|expr| {
        if let Some(literal) = expr.downcast_ref::<Literal>() {
            meaning.push_str(&format!(" {:?}", literal.value()));
        }
        Ok(TreeNodeRecursion::Continue)
    });
    meaning
}

/// The meanings of several.
pub(super) fn meanings(exprs: &[PExpr]) -> String {
    exprs.iter().map(meaning).collect::<Vec<_>>().join("; ")
}

/// The form that ships, over columns of `schema`.
pub(super) fn spec(expr: &PExpr, schema: &Schema) -> Result<ExprSpec> {
    let name = |index: usize| schema.fields().get(index).map_or_else(|| format!("${index}"), |f| f.name().clone());
    let named = replace(expr, &|index| Arc::new(Column::new(&name(index), index)))?;
    let mut spec = ExprSpec::new(&named)?;
    spec.text = text(expr, &name);
    Ok(spec)
}
