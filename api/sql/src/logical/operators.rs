//! Operators of SQL as Flink's functions, with Flink's types; comparisons as DataFusion's, where these give the same.

use arrow::datatypes::{DataType, Field};
use datafusion::common::{Column, DFSchema, ExprSchema, Result, ScalarValue, TableReference};
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{Expr, ExprSchemable, Operator, binary_expr, lit};
use datafusion::sql::sqlparser::ast::BinaryOperator;

use super::coerce::{call, compared_as, converted};
use super::errors::{mistake, mistake_at};
use crate::types::coerce::{Arithmetic, arithmetic_type};
use crate::types::name_of;

/// The operator that `IS DISTINCT FROM` stands as while a query is planned.
pub(super) const DISTINCT: &str = "IS DISTINCT FROM";
/// The same for `IS NOT DISTINCT FROM`.
pub(super) const NOT_DISTINCT: &str = "IS NOT DISTINCT FROM";

/// Plans operators.
#[derive(Debug)]
pub(super) struct Operators;

impl ExprPlanner for Operators {
    fn plan_binary_op(&self, raw: RawBinaryExpr, schema: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
        let RawBinaryExpr { op, left, right } = &raw;
        let (Ok(left_type), Ok(right_type)) = (left.get_type(schema), right.get_type(schema)) else {
            // A column that is not there: what comes next says so, and where it stands.
            if let Some(unknown) = unknown_column(&raw, schema) {
                return Err(unknown);
            }
            left.get_type(schema)?;
            right.get_type(schema)?;
            return Ok(PlannerResult::Original(raw));
        };
        let planned = match op {
            BinaryOperator::Plus => arithmetic(Arithmetic::Add, "flink_add", &raw, left_type, right_type)?,
            BinaryOperator::Minus => arithmetic(Arithmetic::Subtract, "flink_subtract", &raw, left_type, right_type)?,
            BinaryOperator::Multiply => {
                arithmetic(Arithmetic::Multiply, "flink_multiply", &raw, left_type, right_type)?
            }
            BinaryOperator::Divide => arithmetic(Arithmetic::Divide, "flink_divide", &raw, left_type, right_type)?,
            BinaryOperator::Modulo => arithmetic(Arithmetic::Modulo, "flink_mod", &raw, left_type, right_type)?,
            BinaryOperator::StringConcat => {
                let is_text = |of: &DataType| matches!(of, DataType::Utf8 | DataType::Binary | DataType::Null);
                if !is_text(&left_type) || !is_text(&right_type) {
                    return Err(impossible(&raw, &left_type, &right_type));
                }
                call("flink_concat", vec![left.clone(), right.clone()])?
            }
            BinaryOperator::And | BinaryOperator::Or => {
                let is_truth = |of: &DataType| matches!(of, DataType::Boolean | DataType::Null);
                if !is_truth(&left_type) || !is_truth(&right_type) {
                    return Err(impossible(&raw, &left_type, &right_type));
                }
                let operator = if *op == BinaryOperator::And { Operator::And } else { Operator::Or };
                let left = converted(left.clone(), &left_type, &DataType::Boolean)?;
                binary_expr(left, operator, converted(right.clone(), &right_type, &DataType::Boolean)?)
            }
            _ => match comparison(op) {
                Some(operator) => {
                    let common = compared_as(&left_type, &right_type);
                    let common = common.filter(|common| is_equality(operator) || is_ordered(common));
                    let common = common.ok_or_else(|| impossible(&raw, &left_type, &right_type))?;
                    let common = if common == DataType::Null { DataType::Boolean } else { common };
                    let left = converted(left.clone(), &left_type, &common)?;
                    compare(operator, left, converted(right.clone(), &right_type, &common)?, &common)?
                }
                None => return Err(mistake(format!("the operator {op} is not supported"))),
            },
        };
        Ok(PlannerResult::Planned(planned))
    }

    fn plan_compound_identifier(
        &self,
        field: &Field,
        qualifier: Option<&TableReference>,
        nested: &[String],
    ) -> Result<PlannerResult<Vec<Expr>>> {
        let mut found = Expr::Column(Column::new(qualifier.cloned(), field.name()));
        let mut of = field.data_type();
        for name in nested {
            let DataType::Struct(fields) = of else {
                return Ok(PlannerResult::Original(Vec::new()));
            };
            let Some(part) = fields.iter().find(|field| field.name() == name) else {
                return Ok(PlannerResult::Original(Vec::new()));
            };
            of = part.data_type();
            found = call("flink_get_field", vec![found, lit(name.as_str())])?;
        }
        let name = nested.last().map_or("", String::as_str);
        Ok(PlannerResult::Planned(found.alias(name)))
    }
}

fn arithmetic(
    operator: Arithmetic,
    name: &str,
    raw: &RawBinaryExpr,
    left_type: DataType,
    right_type: DataType,
) -> Result<Expr> {
    // A NULL without a type is what would fit.
    let typed = |of: &DataType, other: &DataType| match (of, other) {
        (DataType::Null, DataType::Null) => DataType::Int32,
        (DataType::Null, other) => other.clone(),
        (of, _) => of.clone(),
    };
    let (left, right) = (typed(&left_type, &right_type), typed(&right_type, &left_type));
    if arithmetic_type(operator, &left, &right).is_none() {
        return Err(impossible(raw, &left_type, &right_type));
    }
    let arguments =
        vec![converted(raw.left.clone(), &left_type, &left)?, converted(raw.right.clone(), &right_type, &right)?];
    call(name, arguments)
}

fn comparison(op: &BinaryOperator) -> Option<Operator> {
    Some(match op {
        BinaryOperator::Eq => Operator::Eq,
        BinaryOperator::NotEq => Operator::NotEq,
        BinaryOperator::Lt => Operator::Lt,
        BinaryOperator::LtEq => Operator::LtEq,
        BinaryOperator::Gt => Operator::Gt,
        BinaryOperator::GtEq => Operator::GtEq,
        BinaryOperator::Custom(name) if name == DISTINCT => Operator::IsDistinctFrom,
        BinaryOperator::Custom(name) if name == NOT_DISTINCT => Operator::IsNotDistinctFrom,
        _ => return None,
    })
}

fn is_equality(operator: Operator) -> bool {
    use Operator::{Eq, IsDistinctFrom, IsNotDistinctFrom, NotEq};
    matches!(operator, Eq | NotEq | IsDistinctFrom | IsNotDistinctFrom)
}

/// Whether values of a type have an order.
pub(super) fn is_ordered(of: &DataType) -> bool {
    !matches!(of, DataType::Struct(_) | DataType::List(_) | DataType::Map(..))
}

/// `left operator right`, both of the type `of`.
pub(super) fn compare(operator: Operator, left: Expr, right: Expr, of: &DataType) -> Result<Expr> {
    // Arrow's order of DOUBLE has two zeros, and it compares no maps.
    let is_ours = matches!(of, DataType::Float64 | DataType::Float32) || !is_ordered(of);
    if !is_ours {
        return Ok(binary_expr(left, operator, right));
    }
    Ok(match operator {
        Operator::Eq => call("flink_equal", vec![left, right])?,
        Operator::NotEq => Expr::Not(Box::new(call("flink_equal", vec![left, right])?)),
        Operator::Lt => call("flink_less", vec![left, right])?,
        Operator::LtEq => call("flink_less_or_equal", vec![left, right])?,
        Operator::Gt => call("flink_less", vec![right, left])?,
        Operator::GtEq => call("flink_less_or_equal", vec![right, left])?,
        other => binary_expr(left, other, right),
    })
}

fn impossible(raw: &RawBinaryExpr, left: &DataType, right: &DataType) -> datafusion::common::DataFusionError {
    let reason =
        format!("'{}' is not possible between {} and {}: CAST one of them", raw.op, name_of(left), name_of(right));
    match first_place(&raw.left).or_else(|| first_place(&raw.right)) {
        Some(at) => mistake_at(reason, at),
        None => mistake(reason),
    }
}

/// Where the first column of an expression stands.
fn first_place(expr: &Expr) -> Option<datafusion::sql::sqlparser::tokenizer::Location> {
    let mut columns: Vec<&Column> = expr.column_refs().into_iter().collect();
    columns.sort_by_key(|column| column.spans.first().map(|span| (span.start.line, span.start.column)));
    let span = columns.iter().find_map(|column| column.spans.first())?;
    Some(datafusion::sql::sqlparser::tokenizer::Location::new(span.start.line, span.start.column))
}

fn unknown_column(raw: &RawBinaryExpr, schema: &DFSchema) -> Option<datafusion::common::DataFusionError> {
    for expr in [&raw.left, &raw.right] {
        for column in expr.column_refs() {
            if let Err(error) = schema.field_from_column(column) {
                if let datafusion::common::DataFusionError::SchemaError(inner, _) = &error
                    && let datafusion::common::SchemaError::FieldNotFound { valid_fields, .. } = inner.as_ref()
                {
                    let field = Box::new(column.clone());
                    let valid_fields = valid_fields.clone();
                    let error = datafusion::common::SchemaError::FieldNotFound { field, valid_fields };
                    return Some(datafusion::common::DataFusionError::SchemaError(Box::new(error), Box::new(None)));
                }
                return Some(error);
            }
        }
    }
    None
}

/// The value of a constant that was put aside, by its placeholder's name.
pub(super) fn constant<'a>(constants: &'a [ScalarValue], id: &str) -> Option<&'a ScalarValue> {
    let number: usize = id.strip_prefix('$')?.parse().ok()?;
    constants.get(number.checked_sub(1)?)
}
