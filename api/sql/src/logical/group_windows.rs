//! `GROUP BY TUMBLE(ts, size)`: the rows get their windows, and are grouped by these.

use datafusion::common::{Column, Result, ScalarValue};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{Aggregate, Expr, LogicalPlan, LogicalPlanBuilder};
use flott_sql_runtime::spec::WindowSpec;

use super::errors::mistake;
use super::grouping_sets::enumerated;
use super::relations::windowed;
use super::special::GROUP_WINDOW;

const BOUNDS: [&str; 3] = ["window_start", "window_end", "window_time"];

fn unaliased(mut expr: &Expr) -> &Expr {
    while let Expr::Alias(alias) = expr {
        expr = &alias.expr;
    }
    expr
}

/// The window that a key of GROUP BY is.
pub(super) fn window_of(expr: &Expr) -> Option<&ScalarFunction> {
    match unaliased(expr) {
        Expr::ScalarFunction(call) if call.func.name() == GROUP_WINDOW => Some(call),
        _ => None,
    }
}

/// The name of a bound of the window that is the column `window`.
fn name_of_bound(window: &str, bound: &str) -> String {
    format!("{window}.{bound}")
}

/// A part of a window that was grouped by is a column of its own.
pub(super) fn bound(call: &ScalarFunction) -> Option<Expr> {
    match &call.args[..] {
        [Expr::Column(window), Expr::Literal(ScalarValue::Utf8(Some(bound)), _)]
            if window.name.starts_with(GROUP_WINDOW) =>
        {
            Some(Expr::Column(Column::new_unqualified(name_of_bound(&window.name, bound))))
        }
        _ => None,
    }
}

/// An aggregate, by windows if it is grouped by one.
pub(super) fn aggregate(aggregate: Aggregate) -> Result<LogicalPlan> {
    let Some(at) = aggregate.group_expr.iter().position(|expr| window_of(expr).is_some()) else {
        let is_within = |expr: &Expr| window_of(expr).is_some();
        for expr in &aggregate.group_expr {
            if let Expr::GroupingSet(set) = expr
                && set.distinct_expr().into_iter().any(is_within)
            {
                return Err(mistake("windows in GROUPING SETS, ROLLUP or CUBE: use the table function TUMBLE"));
            }
        }
        return enumerated(aggregate).map(LogicalPlan::Aggregate);
    };
    let mut groups = aggregate.group_expr.clone();
    let window = groups.remove(at);
    let name = window.schema_name().to_string();
    let Some(call) = window_of(&window) else { return Ok(LogicalPlan::Aggregate(aggregate)) };
    if groups.iter().any(|expr| window_of(expr).is_some()) {
        return Err(mistake("GROUP BY has more than one window: use the table function TUMBLE for one of them"));
    }
    let (kind, time, lengths) = match &call.args[..] {
        [Expr::Literal(ScalarValue::Utf8(Some(kind)), _), time, lengths @ ..] => (kind.as_str(), time, lengths),
        _ => return Err(mistake("a window of GROUP BY needs a time and a length")),
    };
    let length = |expr: &Expr| match expr {
        Expr::Literal(ScalarValue::DurationMillisecond(Some(millis)), _) if *millis > 0 => Ok(*millis),
        _ => Err(mistake("the length of a window is an INTERVAL that is longer than 0, such as INTERVAL '10' MINUTE")),
    };
    let window = match (kind, lengths) {
        ("tumble", [size]) => WindowSpec::Tumble { size_ms: length(size)?, offset_ms: 0 },
        ("hop", [slide, size]) => WindowSpec::Hop { slide_ms: length(slide)?, size_ms: length(size)?, offset_ms: 0 },
        ("session", [gap]) => WindowSpec::Session { gap_ms: length(gap)? },
        _ => return Err(mistake("expected TUMBLE(ts, size), HOP(ts, slide, size) or SESSION(ts, gap) in GROUP BY")),
    };
    // Sessions are those of a group.
    let partition = match window {
        WindowSpec::Session { .. } => groups.iter().map(|expr| unaliased(expr).clone()).collect(),
        _ => Vec::new(),
    };
    let input = windowed(aggregate.input.as_ref().clone(), window, time.clone(), partition)?;
    let columns = input.schema().columns();
    let bounds = columns[columns.len() - BOUNDS.len()..].iter().cloned().map(Expr::Column);
    let others = aggregate.schema.columns();
    let grouped = LogicalPlanBuilder::from(input)
        .aggregate(groups.into_iter().chain(bounds.clone()).collect::<Vec<_>>(), aggregate.aggr_expr.clone())?;
    let kept = others.into_iter().enumerate().filter(|(index, _)| *index != at).map(|(_, column)| Expr::Column(column));
    let bounds = bounds.zip(BOUNDS).map(|(bound, part)| bound.alias(name_of_bound(&name, part)));
    grouped.project(kept.chain(bounds).collect::<Vec<_>>())?.build()
}
