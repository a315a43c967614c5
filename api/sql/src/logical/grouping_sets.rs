//! GROUPING SETS, ROLLUP and CUBE: as sets of columns.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, Result};
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::{Aggregate, Expr, GroupingSet, LogicalPlan, LogicalPlanBuilder};

use super::errors::mistake;
use super::group_windows::window_of;

/// How many columns CUBE may have: there are two sets for each more.
const CUBE_MAX: usize = 12;

/// What grouping sets are of besides columns: their names would be lost when they settle. Windows are not: they are refused, by
/// name.
pub(super) fn computed(aggregate: &Aggregate) -> Vec<Expr> {
    let [Expr::GroupingSet(set)] = &aggregate.group_expr[..] else { return Vec::new() };
    let keys = set.distinct_expr();
    if keys.iter().any(|key| window_of(key).is_some()) {
        return Vec::new();
    }
    let mut found: Vec<Expr> = Vec::new();
    for key in keys {
        if !matches!(key, Expr::Column(_)) && !found.contains(key) {
            found.push(key.clone());
        }
    }
    found
}

fn name_of(expr: &Expr) -> String {
    expr.schema_name().to_string()
}

/// The rows of an aggregate with what is computed as columns of their own, under the names that it has above.
pub(super) fn below(aggregate: &Aggregate, computed: &[Expr]) -> Result<LogicalPlan> {
    let columns = aggregate.input.schema().columns().into_iter().map(Expr::Column);
    let computed = computed.iter().map(|expr| expr.clone().alias(name_of(expr)));
    LogicalPlanBuilder::from(aggregate.input.as_ref().clone())
        .project(columns.chain(computed).collect::<Vec<_>>())?
        .build()
}

/// The aggregate over such rows.
pub(super) fn above(aggregate: Aggregate, input: LogicalPlan, computed: &[Expr]) -> Result<Aggregate> {
    let column = |expr: Expr| match computed.contains(&expr) {
        true => Expr::Column(Column::new_unqualified(name_of(&expr))),
        false => expr,
    };
    let columns = |keys: Vec<Expr>| keys.into_iter().map(column).collect::<Vec<_>>();
    let of_set = |set: GroupingSet| match set {
        GroupingSet::Rollup(keys) => GroupingSet::Rollup(columns(keys)),
        GroupingSet::Cube(keys) => GroupingSet::Cube(columns(keys)),
        GroupingSet::GroupingSets(sets) => GroupingSet::GroupingSets(sets.into_iter().map(columns).collect()),
    };
    let groups = aggregate.group_expr.into_iter().map(|expr| match expr {
        Expr::GroupingSet(set) => Expr::GroupingSet(of_set(set)),
        other => other,
    });
    // GROUPING(…) names keys. What other aggregates are of is not null where a key is left out.
    let of_grouping = |expr: Expr| {
        Ok(match expr {
            Expr::AggregateFunction(AggregateFunction { func, mut params }) if func.name() == "grouping" => {
                params.args = columns(params.args);
                Transformed::yes(Expr::AggregateFunction(AggregateFunction { func, params }))
            }
            other => Transformed::no(other),
        })
    };
    let aggregates = aggregate.aggr_expr.into_iter().map(|expr| Ok(expr.transform_up(of_grouping)?.data));
    let aggregates = aggregates.collect::<Result<Vec<_>>>()?;
    Aggregate::try_new(Arc::new(input), groups.collect(), aggregates)
}

/// ROLLUP and CUBE as the sets that they are, the largest first.
pub(super) fn enumerated(aggregate: Aggregate) -> Result<Aggregate> {
    let sets: Vec<Vec<Expr>> = match &aggregate.group_expr[..] {
        [Expr::GroupingSet(GroupingSet::Rollup(keys))] => {
            (0..=keys.len()).rev().map(|length| keys[..length].to_vec()).collect()
        }
        [Expr::GroupingSet(GroupingSet::Cube(keys))] if keys.len() <= CUBE_MAX => {
            let all = (1_u32 << keys.len()) - 1;
            let of = |set: u32| {
                let is_in = |(at, _): &(usize, &Expr)| set & (1 << (keys.len() - 1 - at)) != 0;
                keys.iter().enumerate().filter(is_in).map(|(_, key)| key.clone()).collect()
            };
            (0..=all).rev().map(of).collect()
        }
        [Expr::GroupingSet(GroupingSet::Cube(keys))] => {
            return Err(mistake(format!("CUBE has {} columns: more than {CUBE_MAX} make too many sets", keys.len())));
        }
        _ => return Ok(aggregate),
    };
    let sets = Expr::GroupingSet(GroupingSet::GroupingSets(sets));
    Aggregate::try_new(aggregate.input, vec![sets], aggregate.aggr_expr)
}
