//! Implicit conversions.

use arrow::datatypes::DataType;
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{Cast, Expr, ExprSchemable};

use super::functions::Functions;
use crate::types::coerce::{common_type, decimal_of, is_approximate, is_numeric};

/// A call of one of our functions.
pub(super) fn call(name: &str, arguments: Vec<Expr>) -> Result<Expr> {
    let function = Functions::all().scalar(name);
    let function = function.ok_or_else(|| super::errors::mistake(format!("there is no function '{name}'")))?;
    Ok(Expr::ScalarFunction(ScalarFunction::new_udf(std::sync::Arc::clone(function), arguments)))
}

/// `expr` in the type `to`, as CAST makes it.
pub(super) fn converted(expr: Expr, from: &DataType, to: &DataType) -> Result<Expr> {
    if from == to {
        return Ok(expr);
    }
    if *from == DataType::Null {
        return Ok(Expr::Literal(ScalarValue::try_from(to)?, None));
    }
    if is_lossless(from, to) {
        // DataFusion knows that its own casts keep the order, and looks through them.
        return Ok(match &expr {
            Expr::Literal(value, _) => Expr::Literal(value.cast_to(to)?, None),
            _ => Expr::Cast(Cast::new(Box::new(expr), to.clone())),
        });
    }
    call("flink_cast", vec![expr, Expr::Literal(ScalarValue::try_from(to)?, None)])
}

/// `expr`, that is over `schema`, in the type `to`.
pub(super) fn converted_in(expr: Expr, schema: &DFSchema, to: &DataType) -> Result<Expr> {
    let from = expr.get_type(schema)?;
    converted(expr, &from, to)
}

/// Whether Arrow and Flink convert each value to the same, and none is lost.
fn is_lossless(from: &DataType, to: &DataType) -> bool {
    match (from, to) {
        (DataType::Timestamp(from, None), DataType::Timestamp(to, None))
        | (DataType::Timestamp(from, Some(_)), DataType::Timestamp(to, Some(_))) => from <= to,
        (DataType::Float32, DataType::Float64) => true,
        (_, DataType::Float64) => matches!(from, DataType::Int8 | DataType::Int16 | DataType::Int32),
        _ => match (decimal_of(from), decimal_of(to)) {
            (Some((p1, s1)), Some((p2, s2))) => s1 <= s2 && p1 - s1 <= p2 - s2,
            _ => false,
        },
    }
}

/// The type in which values of two are compared.
pub(super) fn compared_as(left: &DataType, right: &DataType) -> Option<DataType> {
    if let Some(common) = common_type([left, right]) {
        return Some(if is_approximate(&common) { DataType::Float64 } else { common });
    }
    // A text is read as what it is compared with.
    let is_read = |of: &DataType| {
        is_numeric(of)
            || matches!(of, DataType::Boolean | DataType::Date32 | DataType::Time32(_) | DataType::Timestamp(..))
    };
    match (left, right) {
        (DataType::Utf8, other) | (other, DataType::Utf8) if is_read(other) => Some(other.clone()),
        _ => None,
    }
}
