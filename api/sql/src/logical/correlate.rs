//! Table factors that depend on the row that they are joined with: they and the join become one node.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DataFusionError, JoinType, Result, ScalarValue};
use datafusion::logical_expr::{
    Expr, Extension, Join, LogicalPlan, LogicalPlanBuilder, Operator, Projection, binary_expr, lit,
};

use super::errors::mistake;
use super::nodes::{Elements, TemporalJoin, UnnestJoin, Version, joined};
use super::relations::extension;

/// A join, or what it is with such a factor on its right.
pub(super) fn join(join: Join) -> Result<LogicalPlan> {
    if let Some(elements) = marker::<Elements>(&join.right) {
        return unnest(&join, elements.clone());
    }
    if let Some(version) = marker::<Version>(&join.right) {
        return temporal(&join, version.clone());
    }
    Ok(LogicalPlan::Join(join))
}

/// The factor that a plan is, but for names.
pub(super) fn marker<T: 'static>(plan: &LogicalPlan) -> Option<&T> {
    match plan {
        LogicalPlan::SubqueryAlias(alias) => marker(&alias.input),
        LogicalPlan::Subquery(subquery) => marker(&subquery.subquery),
        LogicalPlan::Projection(projection) if only_names(projection) => marker(&projection.input),
        LogicalPlan::Extension(Extension { node }) => node.as_any().downcast_ref(),
        _ => None,
    }
}

/// Whether a projection has all columns of its input, in order.
fn only_names(projection: &Projection) -> bool {
    let columns = projection.input.schema().columns();
    let is_column = |(expr, column): (&Expr, &datafusion::common::Column)| {
        let mut expr = expr;
        while let Expr::Alias(alias) = expr {
            expr = &alias.expr;
        }
        matches!(expr, Expr::Column(found) if found.name == column.name)
    };
    projection.expr.len() == columns.len() && projection.expr.iter().zip(&columns).all(is_column)
}

/// Columns of the outer row are columns of the left side.
fn of_left(expr: Expr) -> Result<Expr> {
    let inner = |expr| {
        Ok(match expr {
            Expr::OuterReferenceColumn(_, column) => Transformed::yes(Expr::Column(column)),
            other => Transformed::no(other),
        })
    };
    Ok(expr.transform_up(inner)?.data)
}

/// Whether rows on the left stay without any on the right.
fn is_left_outer(join: &Join, what: &str) -> Result<bool> {
    match join.join_type {
        JoinType::Inner => Ok(false),
        JoinType::Left => Ok(true),
        other => Err(mistake(format!("a {other} JOIN with {what} is not supported: CROSS JOIN and LEFT JOIN are"))),
    }
}

/// All that the join compares.
fn condition(join: &Join) -> Option<Expr> {
    let pairs = join.on.iter().map(|(left, right)| binary_expr(left.clone(), Operator::Eq, right.clone()));
    let all = pairs.chain(join.filter.clone()).filter(|expr| *expr != lit(true));
    all.reduce(Expr::and)
}

fn unnest(join: &Join, elements: Elements) -> Result<LogicalPlan> {
    let is_outer = is_left_outer(join, "a collection")?;
    let schema = joined(join.left.schema(), join.right.schema(), is_outer)?;
    let plan = extension(UnnestJoin {
        input: join.left.as_ref().clone(),
        collection: of_left(elements.collection)?,
        is_outer,
        with_ordinality: elements.with_ordinality,
        schema,
    });
    match condition(join) {
        None => Ok(plan),
        Some(condition) if !is_outer => LogicalPlanBuilder::from(plan).filter(condition)?.build(),
        Some(_) => Err(mistake("a LEFT JOIN with a collection is ON TRUE: other conditions are not supported")),
    }
}

fn temporal(join: &Join, version: Version) -> Result<LogicalPlan> {
    let is_left_outer = is_left_outer(join, "FOR SYSTEM_TIME AS OF")?;
    // The table itself, under the names that it has here.
    let right = join.right.as_ref().clone().transform_down(|plan| {
        Ok(match plan {
            LogicalPlan::Subquery(subquery) => Transformed::yes(Arc::unwrap_or_clone(subquery.subquery)),
            other => Transformed::no(other),
        })
    })?;
    let right = right.data.transform_down(|plan| {
        Ok(match &plan {
            LogicalPlan::Extension(Extension { node }) => match node.as_any().downcast_ref::<Version>() {
                Some(version) => Transformed::yes(version.input.clone()),
                None => Transformed::no(plan),
            },
            _ => Transformed::no(plan),
        })
    })?;
    let right = right.data.recompute_schema()?;
    let on = condition(join).unwrap_or_else(|| lit(true));
    let schema = joined(join.left.schema(), right.schema(), is_left_outer)?;
    let time = of_left(version.time)?;
    Ok(extension(TemporalJoin { left: join.left.as_ref().clone(), right, on, time, is_left_outer, schema }))
}

/// Collections that depend on no row; what is left depends on one that is not there.
pub(super) fn alone(plan: LogicalPlan) -> Result<LogicalPlan> {
    let plan = plan.transform_up_with_subqueries(|plan| {
        let LogicalPlan::Extension(Extension { node }) = &plan else { return Ok(Transformed::no(plan)) };
        if node.as_any().is::<Version>() {
            return Err(lost("FOR SYSTEM_TIME AS OF"));
        }
        let Some(elements) = node.as_any().downcast_ref::<Elements>() else { return Ok(Transformed::no(plan)) };
        if elements.collection.exists(|expr| Ok(matches!(expr, Expr::OuterReferenceColumn(..))))? {
            return Err(lost("UNNEST"));
        }
        // One row without columns would have no number: it has one, which goes again.
        let row = LogicalPlanBuilder::values(vec![vec![Expr::Literal(ScalarValue::Int32(Some(0)), None)]])?.build()?;
        let schema = joined(row.schema(), &elements.schema, false)?;
        let columns: Vec<_> = elements.schema.columns().into_iter().map(Expr::Column).collect();
        let unnest = extension(UnnestJoin {
            input: row,
            collection: elements.collection.clone(),
            is_outer: false,
            with_ordinality: elements.with_ordinality,
            schema,
        });
        Ok(Transformed::yes(LogicalPlanBuilder::from(unnest).project(columns)?.build()?))
    })?;
    plan.data.recompute_schema()
}

fn lost(what: &str) -> DataFusionError {
    mistake(format!("{what} of another table's columns stands right behind that table: … FROM t CROSS JOIN {what}"))
}
