//! The rules by which logical plans become better ones.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::analyzer::AnalyzerRule;
use datafusion::optimizer::analyzer::resolve_grouping_function::ResolveGroupingFunction;
use datafusion::optimizer::{Optimizer, OptimizerContext};

use super::group_id;

/// Rules that streams have no use for: operators have DISTINCT aggregates of their own, and a join drops null keys itself. That
/// for unions moves a projection of one to its inputs by name, and columns of these have other names, or the same in another order.
const LEFT_OUT: [&str; 3] = ["single_distinct_aggregation_to_group_by", "filter_null_join_keys", "optimize_unions"];

/// The same plan, better.
pub(super) fn optimized(plan: LogicalPlan, options: &ConfigOptions) -> Result<LogicalPlan> {
    let plan = group_id::resolved(ResolveGroupingFunction::new().analyze(plan, options)?)?;
    let mut rules = Optimizer::new().rules;
    rules.retain(|rule| !LEFT_OUT.contains(&rule.name()));
    // What time it is, operators say.
    let context =
        OptimizerContext::new_with_config_options(Arc::new(options.clone())).without_query_execution_start_time();
    Optimizer::with_rules(rules).optimize(plan, &context, |_, _| {})
}
