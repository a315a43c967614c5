//! `x > ALL (SELECT …)`, `x < ANY (…)`, `x <> SOME (…)`: comparisons with the least or the greatest value of a query.
//!
//! As in Flink, that is one row, which is joined with each of the outer query. It says besides whether a NULL is among the
//! values. `= ANY` is IN and `<> ALL` is NOT IN: in the syntax tree already.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, JoinType, Result, ScalarValue, TableReference};
use datafusion::logical_expr::expr::{AggregateFunction, AggregateFunctionParams, SetComparison, SetQuantifier};
use datafusion::logical_expr::{Case, Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Operator, Subquery, lit};

use super::coerce::{compared_as, converted};
use super::errors::mistake;
use super::functions::Functions;
use super::operators::{compare, is_ordered};
use super::settle::query_as;
use crate::types::name_of;

/// What is compared, in one type.
pub(super) fn typed(found: SetComparison, schema: &DFSchema) -> Result<Expr> {
    let (left, right) = (found.expr.get_type(schema)?, found.subquery.subquery.schema().field(0).data_type().clone());
    let common = compared_as(&left, &right).filter(is_ordered).ok_or_else(|| {
        let (left, right) = (name_of(&left), name_of(&right));
        mistake(format!("'{}' is not possible between {left} and a query of {right}: CAST one of them", found.op))
    })?;
    let subquery = query_as(&found.subquery, &common)?;
    let expr = Box::new(converted(*found.expr, &left, &common)?);
    Ok(Expr::SetComparison(SetComparison::new(expr, subquery, found.op, found.quantifier)))
}

/// A filter or projection over rows that have what its comparisons are with.
pub(super) fn joined(plan: LogicalPlan) -> Result<LogicalPlan> {
    let mut has_some = false;
    plan.apply_expressions(|expr| {
        has_some |= expr.exists(|expr| Ok(matches!(expr, Expr::SetComparison(_))))?;
        Ok(TreeNodeRecursion::Continue)
    })?;
    match plan {
        _ if !has_some => Ok(plan),
        LogicalPlan::Filter(filter) => {
            let columns: Vec<Expr> = filter.input.schema().columns().into_iter().map(Expr::Column).collect();
            let mut rows = Rows::over(&filter.input);
            let predicate = rows.compared(filter.predicate)?;
            LogicalPlanBuilder::from(rows.plan).filter(predicate)?.project(columns)?.build()
        }
        LogicalPlan::Projection(projection) => {
            let mut rows = Rows::over(&projection.input);
            let exprs = projection.expr.into_iter().map(|expr| rows.compared(expr)).collect::<Result<Vec<_>>>()?;
            LogicalPlanBuilder::from(rows.plan).project(exprs)?.build()
        }
        _ => Err(mistake("ALL (…), ANY (…) and SOME (…) stand in SELECT, WHERE or HAVING: compute them there")),
    }
}

/// Rows with what is compared.
struct Rows {
    plan: LogicalPlan,
    /// How many comparisons there are.
    comparisons: usize,
}

impl Rows {
    fn over(input: &LogicalPlan) -> Self {
        Self { plan: input.clone(), comparisons: 0 }
    }

    fn compared(&mut self, expr: Expr) -> Result<Expr> {
        let compared = |expr: Expr| -> Result<Transformed<Expr>> {
            match expr {
                Expr::SetComparison(found) => Ok(Transformed::yes(self.comparison(&found)?)),
                other => Ok(Transformed::no(other)),
            }
        };
        Ok(expr.transform_up(compared)?.data)
    }

    fn comparison(&mut self, found: &SetComparison) -> Result<Expr> {
        let is_all = matches!(found.quantifier, SetQuantifier::All);
        // What is so for ALL is the opposite for none.
        let operator = if is_all { found.op.negate().unwrap_or(found.op) } else { found.op };
        let extremes: &[&str] = match operator {
            Operator::Gt | Operator::GtEq => &["min"],
            Operator::Lt | Operator::LtEq => &["max"],
            _ => &["min", "max"],
        };
        let query = found.subquery.subquery.as_ref();
        let value = Expr::Column(Column::from(query.schema().qualified_field(0)));
        let of = query.schema().field(0).data_type().clone();
        let mut row = extremes.iter().map(|&name| aggregate(name, value.clone(), name)).collect::<Result<Vec<_>>>()?;
        row.push(aggregate("max", value.is_null(), "has_null")?);
        let row = LogicalPlanBuilder::from(query.clone()).aggregate(Vec::<Expr>::new(), row)?.build()?;
        let outer_ref_columns = row.all_out_ref_exprs();
        let row = if outer_ref_columns.is_empty() {
            row
        } else {
            let spans = found.subquery.spans.clone();
            LogicalPlan::Subquery(Subquery { subquery: Arc::new(row), outer_ref_columns, spans })
        };
        let alias = format!("__quantified{}", self.comparisons);
        self.comparisons += 1;
        let row = LogicalPlanBuilder::from(row).alias(alias.as_str())?.build()?;
        self.plan = LogicalPlanBuilder::from(self.plan.clone()).join_on(row, JoinType::Left, [lit(true)])?.build()?;
        let column = |name: &str| Expr::Column(Column::new(Some(TableReference::bare(alias.as_str())), name));
        let each = extremes.iter().map(|&name| compare(operator, found.expr.as_ref().clone(), column(name), &of));
        let each = each.collect::<Result<Vec<_>>>()?;
        let any = each.into_iter().reduce(Expr::or).unwrap_or_else(|| lit(false));
        let null = Expr::Literal(ScalarValue::Boolean(None), None);
        let unknown = Case::new(None, vec![(Box::new(column("has_null")), Box::new(null))], Some(Box::new(lit(false))));
        // Of nothing it is not known whether a NULL is among it: it is true for none, and for ALL.
        let some = column("has_null").is_not_null().and(any.or(Expr::Case(unknown)));
        Ok(if is_all { Expr::Not(Box::new(some)) } else { some })
    }
}

fn aggregate(function: &str, of: Expr, name: &str) -> Result<Expr> {
    let func = Functions::all().aggregate(function);
    let func = Arc::clone(func.ok_or_else(|| mistake(format!("there is no function '{function}'")))?);
    let params = AggregateFunctionParams {
        args: vec![of],
        distinct: false,
        filter: None,
        order_by: vec![],
        null_treatment: None,
    };
    Ok(Expr::AggregateFunction(AggregateFunction { func, params }).alias(name))
}
