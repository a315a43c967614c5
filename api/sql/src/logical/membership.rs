//! `(a, b) IN (SELECT x, y …)`: whether there is a row whose columns are equal to these.
//!
//! While types are found, the query has one column: DataFusion takes no more. Settled, IN asks whether there EXISTS a row of
//! which all columns are equal, and NOT IN whether there is none of which all may be: NULL may be equal to anything.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DFSchema, ExprSchema, Result, Spans};
use datafusion::logical_expr::expr::{Exists, InSubquery, ScalarFunction};
use datafusion::logical_expr::{
    BinaryExpr, Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Operator, Subquery, lit,
};

use super::coerce::{compared_as, converted};
use super::correlate::marker;
use super::errors::mistake;
use super::nodes::Tuples;
use super::operators::compare;
use super::relations::extension;
use crate::types::name_of;

/// The name that the query of several columns has while types are found.
pub(super) const TUPLES: &str = "__tuples";

/// What stands for such a query.
pub(super) fn tuples(input: LogicalPlan) -> Result<LogicalPlan> {
    // Nobody asks for its type.
    let column = (None, Arc::new(Field::new("__tuple", DataType::Boolean, false)));
    let schema = Arc::new(DFSchema::new_with_metadata(vec![column], Default::default())?);
    Ok(extension(Tuples { input, schema }))
}

/// The query of `IN`, if it stands for one of several columns.
fn query_of(found: &InSubquery) -> Option<&LogicalPlan> {
    marker::<Tuples>(&found.subquery.subquery).map(|tuples| &tuples.input)
}

/// Whether an expression is such an IN.
pub(super) fn is_of_tuples(found: &InSubquery) -> bool {
    query_of(found).is_some()
}

/// An expression over `schema` with EXISTS in place of such INs. In a condition NULL is as good as FALSE.
pub(super) fn resolved(expr: Expr, schema: &DFSchema, is_condition: bool) -> Result<Expr> {
    let has_some = expr.exists(|expr| Ok(matches!(expr, Expr::InSubquery(found) if is_of_tuples(found))))?;
    if !has_some {
        return Ok(expr);
    }
    match expr {
        Expr::InSubquery(found) if is_of_tuples(&found) => existence(&found, found.negated, schema, is_condition),
        Expr::Not(inner) => match *inner {
            Expr::InSubquery(found) if is_of_tuples(&found) => existence(&found, !found.negated, schema, is_condition),
            inner => Ok(Expr::Not(Box::new(resolved(inner, schema, false)?))),
        },
        Expr::BinaryExpr(BinaryExpr { left, op: op @ (Operator::And | Operator::Or), right }) => {
            let left = Box::new(resolved(*left, schema, is_condition)?);
            let right = Box::new(resolved(*right, schema, is_condition)?);
            Ok(Expr::BinaryExpr(BinaryExpr { left, op, right }))
        }
        other => Ok(other.map_children(|part| Ok(Transformed::yes(resolved(part, schema, false)?)))?.data),
    }
}

/// Whether there is an equal row; negated, whether there is none that may be equal.
fn existence(found: &InSubquery, negated: bool, schema: &DFSchema, is_condition: bool) -> Result<Expr> {
    let (Expr::ScalarFunction(ScalarFunction { args, .. }), Some(query)) = (found.expr.as_ref(), query_of(found))
    else {
        return Err(mistake("a query of several columns is compared with a row: (a, b) IN (SELECT x, y …)"));
    };
    let (columns, fields) = (query.schema().columns(), query.schema().fields());
    if args.len() != columns.len() {
        let (here, there) = (args.len(), columns.len());
        return Err(mistake(format!("IN compares {here} columns with {there}")));
    }
    let (mut there, mut conditions) = (Vec::new(), Vec::new());
    for (at, ((arg, column), field)) in args.iter().zip(columns).zip(fields).enumerate() {
        let (left, right) = (arg.get_type(schema)?, field.data_type());
        let common = compared_as(&left, right).ok_or_else(|| {
            mistake(format!("IN compares {} with {}: CAST one of them", name_of(&left), name_of(right)))
        })?;
        let may_be_null = arg.nullable(schema)? || field.is_nullable();
        if may_be_null && !is_condition {
            return Err(mistake(
                "(…) IN (SELECT …) of columns that may be NULL is supported as a condition, beside AND and OR: write it as a JOIN",
            ));
        }
        // A name that is none of the outer query's.
        let name = format!("__in{at}");
        there.push(converted(Expr::Column(column), right, &common)?.alias(&name));
        let arg = outer(converted(arg.clone(), &left, &common)?, schema)?;
        let equal = compare(Operator::Eq, arg, Expr::Column(Column::new_unqualified(name)), &common)?;
        conditions.push(if negated && may_be_null { equal.clone().or(equal.is_null()) } else { equal });
    }
    let condition = conditions.into_iter().reduce(Expr::and).unwrap_or_else(|| lit(true));
    let plan = LogicalPlanBuilder::from(query.clone()).project(there)?.filter(condition)?.build()?;
    let outer_ref_columns = plan.all_out_ref_exprs();
    let subquery = Subquery { subquery: Arc::new(plan), outer_ref_columns, spans: Spans::new() };
    Ok(Expr::Exists(Exists { subquery, negated }))
}

/// Columns of `schema` as those of the outer query.
fn outer(expr: Expr, schema: &DFSchema) -> Result<Expr> {
    let refer = |expr: Expr| -> Result<Transformed<Expr>> {
        match expr {
            Expr::Column(column) => {
                let field = Arc::clone(schema.field_from_column(&column)?);
                Ok(Transformed::yes(Expr::OuterReferenceColumn(field, column)))
            }
            other => Ok(Transformed::no(other)),
        }
    };
    Ok(expr.transform_up(refer)?.data)
}
