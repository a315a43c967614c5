//! The operators, one module each.

use flott_core::{Error, Result};

use crate::operator::TableOperator;
use crate::program::{OperatorContext, kind_of};
use crate::spec::{ExprSpec, OperatorSpec};

pub mod async_calc;
pub mod calc;
pub mod changelog_normalize;
pub mod deduplicate;
pub mod drop_update_before;
pub mod expand;
pub mod group_aggregate;
pub mod interval_join;
pub mod join;
pub mod limit;
pub mod local_aggregate;
pub mod lookup_join;
pub mod over;
pub mod pairs;
mod retention;
pub mod sessions;
#[cfg(test)]
mod sides;
pub mod sink_materialize;
pub mod sort;
pub mod temporal_join;
pub mod temporal_sort;
#[cfg(test)]
mod testing;
pub mod top_n;
mod under_way;
pub mod unnest;
pub mod values;
pub mod watermark;
pub mod window_aggregate;
pub mod window_join;
pub mod window_table;
pub mod window_top_n;

/// Makes an operator.
pub fn make(spec: &OperatorSpec, cx: &OperatorContext<'_>) -> Result<Box<dyn TableOperator>> {
    Ok(match spec {
        OperatorSpec::Calc { condition, projection } => match calls_async(condition.as_ref(), projection, cx)? {
            true => Box::new(async_calc::AsyncCalc::new(condition.as_ref(), projection, cx)?),
            false => Box::new(calc::Calc::new(condition.as_ref(), projection, cx)?),
        },
        OperatorSpec::ChangelogNormalize { key, with_update_before, ttl_ms } => {
            Box::new(changelog_normalize::ChangelogNormalize::new(key, *with_update_before, *ttl_ms, cx)?)
        }
        OperatorSpec::Deduplicate(spec) => deduplicate::make(spec, cx)?,
        OperatorSpec::DropUpdateBefore => Box::new(drop_update_before::DropUpdateBefore),
        OperatorSpec::Expand { projections } => Box::new(expand::Expand::new(projections, cx)?),
        OperatorSpec::GroupAggregate(spec) => Box::new(group_aggregate::GroupAggregate::new(spec, cx)?),
        OperatorSpec::Join(spec) => Box::new(join::Join::new(spec, cx)?),
        OperatorSpec::Limit { offset, limit, is_insert_only: true } => Box::new(limit::Limit::new(*offset, *limit)),
        OperatorSpec::Limit { offset, limit, is_insert_only: false } => top_n::limit(*offset, *limit, cx)?,
        OperatorSpec::LocalAggregate(spec) => Box::new(local_aggregate::LocalAggregate::new(spec, cx)?),
        OperatorSpec::Over(spec) => over::make(spec, cx)?,
        OperatorSpec::SinkMaterialize(spec) => Box::new(sink_materialize::SinkMaterialize::new(spec, cx)?),
        OperatorSpec::Sort { order, offset, limit, is_insert_only } => {
            Box::new(sort::Sort::new(order, *offset, *limit, *is_insert_only, cx)?)
        }
        OperatorSpec::TemporalSort { order, is_processing } => {
            Box::new(temporal_sort::TemporalSort::new(order, *is_processing, cx)?)
        }
        OperatorSpec::TopN(spec) => top_n::make(spec, cx)?,
        OperatorSpec::Watermark(spec) => Box::new(watermark::Watermark::new(spec, cx)?),
        OperatorSpec::IntervalJoin(spec) => Box::new(interval_join::IntervalJoin::new(spec, cx)?),
        OperatorSpec::WindowJoin(spec) => Box::new(window_join::WindowJoin::new(spec, cx)?),
        OperatorSpec::TemporalJoin(spec) => Box::new(temporal_join::TemporalJoin::new(spec, cx)?),
        OperatorSpec::Unnest { column, passes_collection, is_outer, with_ordinality } => {
            Box::new(unnest::Unnest::new((*column, *passes_collection), *is_outer, *with_ordinality, cx)?)
        }
        OperatorSpec::WindowAggregate(spec) => window_aggregate::make(spec, cx)?,
        OperatorSpec::WindowTable { window, time, partition, zone } => {
            let clock = window_aggregate::WindowClock::new(time, zone.as_deref())?;
            window_table::make(*window, time, partition, clock, cx)?
        }
        OperatorSpec::WindowTopN(spec) => Box::new(window_top_n::WindowTopN::new(spec, cx)?),
        other => return Err(Error::input(format!("{} cannot be executed yet", kind_of(other)))),
    })
}

/// Whether something in a calculation comes later.
fn calls_async(condition: Option<&ExprSpec>, projection: &[ExprSpec], cx: &OperatorContext<'_>) -> Result<bool> {
    if !cx.functions.has_async() {
        return Ok(false);
    }
    for expr in condition.into_iter().chain(projection) {
        if async_calc::is_async(&expr.physical(&cx.inputs[0], cx.functions)?, cx.functions) {
            return Ok(true);
        }
    }
    Ok(false)
}
