//! `GROUP_ID()`: which of equal grouping sets a row is of, from 0.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, Result};
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::{
    Aggregate, Expr, GroupingSet, LogicalPlan, LogicalPlanBuilder, bitwise_shift_right, cast, lit,
};

/// The name of the function.
pub(super) const GROUP_ID: &str = "group_id";

/// The same plan with the number in place of the calls.
pub(super) fn resolved(plan: LogicalPlan) -> Result<LogicalPlan> {
    let resolve = |plan| match plan {
        LogicalPlan::Aggregate(aggregate) if aggregate.aggr_expr.iter().any(is_call) => {
            Ok(Transformed::yes(without_calls(aggregate)?))
        }
        other => Ok(Transformed::no(other)),
    };
    Ok(plan.transform_up_with_subqueries(resolve)?.data)
}

fn is_call(expr: &Expr) -> bool {
    match expr {
        Expr::Alias(alias) => is_call(&alias.expr),
        Expr::AggregateFunction(AggregateFunction { func, .. }) => func.name() == GROUP_ID,
        _ => false,
    }
}

/// The aggregate without the calls, and above it the columns that it had.
fn without_calls(aggregate: Aggregate) -> Result<LogicalPlan> {
    let columns = aggregate.schema.columns();
    let first = columns.len() - aggregate.aggr_expr.len();
    let calls: Vec<bool> = aggregate.aggr_expr.iter().map(is_call).collect();
    let others = aggregate.aggr_expr.into_iter().filter(|expr| !is_call(expr)).collect();
    let number = number(&aggregate.group_expr);
    let plan = Aggregate::try_new(Arc::clone(&aggregate.input), aggregate.group_expr, others)?;
    let columns = columns.into_iter().enumerate().map(|(at, column)| match at.checked_sub(first) {
        Some(at) if calls[at] => number.clone().alias_qualified(column.relation, column.name),
        _ => Expr::Column(column),
    });
    let columns: Vec<Expr> = columns.collect();
    LogicalPlanBuilder::from(LogicalPlan::Aggregate(plan)).project(columns)?.build()
}

/// The number of a set among its equals: it stands above the bits of the grouping id that say which columns are left out.
fn number(groups: &[Expr]) -> Expr {
    let [Expr::GroupingSet(all @ GroupingSet::GroupingSets(sets))] = groups else { return lit(0_i64) };
    let keys = all.distinct_expr();
    let mut seen = BTreeSet::new();
    if sets.iter().all(|set| seen.insert(keys.iter().map(|key| set.contains(key)).collect::<Vec<bool>>())) {
        return lit(0_i64);
    }
    let id = Expr::Column(Column::from_name(Aggregate::INTERNAL_GROUPING_ID));
    bitwise_shift_right(cast(id, DataType::Int64), lit(keys.len() as i64))
}
