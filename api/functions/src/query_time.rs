//! In batch mode a query has one time: that at which it starts.

use chrono::{DateTime, NaiveDateTime};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Expr, LogicalPlan};

use crate::cast::day_and_millis;
use crate::define::{user_error, zone_of};

/// `plan` with `now_ms`, milliseconds since 1970, where it asks for the current time: `CURRENT_TIMESTAMP`, `NOW`,
/// `LOCALTIMESTAMP`, `CURRENT_DATE`, `CURRENT_TIME` and `LOCALTIME`. `CURRENT_ROW_TIMESTAMP` and `PROCTIME` stay: each row has its own.
/// `zone` is the session's.
///
/// # Errors
/// There is no such zone.
pub fn at_query_start(plan: LogicalPlan, now_ms: i64, zone: &str) -> Result<LogicalPlan> {
    let found = zone_of(zone).ok_or_else(|| user_error(format!("there is no time zone '{zone}'")))?;
    let now = DateTime::from_timestamp_millis(now_ms)
        .ok_or_else(|| DataFusionError::Internal(format!("{now_ms} is no point in time")))?;
    let local = found.to_local(now.naive_utc());
    let replaced = plan.transform_up_with_subqueries(|plan| {
        let names = NamePreserver::new(&plan);
        plan.map_expressions(|expr| {
            let name = names.save(&expr);
            let replaced = expr.transform_up(|expr| {
                let Expr::ScalarFunction(call) = &expr else { return Ok(Transformed::no(expr)) };
                Ok(match value(call.func.name(), now_ms, local) {
                    Some(value) => Transformed::yes(Expr::Literal(value, None)),
                    None => Transformed::no(expr),
                })
            })?;
            Ok(replaced.update_data(|expr| name.restore(expr)))
        })
    })?;
    Ok(replaced.data)
}

fn value(function: &str, now_ms: i64, local: NaiveDateTime) -> Option<ScalarValue> {
    let (day, millis) = day_and_millis(local);
    Some(match function {
        "flink_current_timestamp" => ScalarValue::TimestampMillisecond(Some(now_ms), Some("UTC".into())),
        "localtimestamp" => ScalarValue::TimestampMillisecond(Some(local.and_utc().timestamp_millis()), None),
        "flink_current_date" => ScalarValue::Date32(Some(day)),
        "flink_current_time" => ScalarValue::Time32Millisecond(Some(millis)),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::logical_expr::{LogicalPlanBuilder, ScalarUDF};
    use expect_test::expect;

    use super::*;

    fn call(name: &str) -> Expr {
        let is_it = |function: &&Arc<ScalarUDF>| {
            function.name() == name || function.aliases().iter().any(|alias| alias == name)
        };
        crate::all().iter().find(is_it).expect("the function").call(Vec::new())
    }

    #[test]
    fn is_one_for_a_query() {
        let names = [
            "flink_current_timestamp",
            "flink_now",
            "localtimestamp",
            "flink_current_date",
            "localtime",
            "current_row_timestamp",
            "proctime",
        ];
        let plan = LogicalPlanBuilder::empty(true)
            .project(names.iter().enumerate().map(|(at, name)| call(name).alias(format!("c{at}"))))
            .and_then(LogicalPlanBuilder::build)
            .expect("a plan");
        let schema = Arc::clone(plan.schema());
        let found = at_query_start(plan, 1_709_245_000_000, "Asia/Tokyo").expect("a plan");
        assert_eq!(*found.schema(), schema);
        expect![[r#"
            Projection: TimestampMillisecond(1709245000000, Some("UTC")) AS c0, TimestampMillisecond(1709245000000, Some("UTC")) AS c1, TimestampMillisecond(1709277400000, None) AS c2, Date32("2024-03-01") AS c3, Time32Millisecond("26200000") AS c4, current_row_timestamp() AS c5, proctime() AS c6
              EmptyRelation: rows=1"#]].assert_eq(&found.to_string());
        let none = LogicalPlanBuilder::empty(false).build().expect("a plan");
        assert!(at_query_start(none, 0, "Nowhere").is_err());
    }
}
