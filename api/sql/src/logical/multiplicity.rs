//! INTERSECT ALL and EXCEPT ALL: how often a row is there counts.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr::{AggregateFunction, AggregateFunctionParams};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, lit};

use super::coerce::call;
use super::errors::mistake;
use super::functions::Functions;
use super::nodes::{UnnestJoin, joined};
use super::relations::extension;

/// The name that INTERSECT ALL has while a query is planned.
pub(super) const INTERSECT: &str = "__intersect_all";
/// The name of EXCEPT ALL.
pub(super) const EXCEPT: &str = "__except_all";

/// Each row as often as it is in both, or in the left and not in the right.
pub(super) fn counted(name: &str, left: LogicalPlan, right: LogicalPlan) -> Result<LogicalPlan> {
    if left.schema().fields().len() != right.schema().fields().len() {
        let name = if name == INTERSECT { "INTERSECT" } else { "EXCEPT" };
        return Err(mistake(format!("{name} queries have different number of columns")));
    }
    let names: Vec<String> = (0..left.schema().fields().len()).map(|at| format!("__c{at}")).collect();
    let counted = |plan: LogicalPlan, ones: [i64; 2]| {
        let columns = plan.schema().columns().into_iter().zip(&names);
        let columns = columns.map(|(column, name)| Expr::Column(column).alias(name));
        let ones = ["__l", "__r"].into_iter().zip(ones).map(|(name, one)| lit(one).alias(name));
        LogicalPlanBuilder::from(plan).project(columns.chain(ones).collect::<Vec<_>>())?.build()
    };
    let shown = left.schema().columns();
    let both = LogicalPlanBuilder::from(counted(left, [1, 0])?).union(counted(right, [0, 1])?)?;
    let groups: Vec<Expr> = both.schema().columns().into_iter().take(names.len()).map(Expr::Column).collect();
    let sums = both.schema().columns().into_iter().skip(names.len()).map(Expr::Column);
    let sums = sums.zip(["__left", "__right"]).map(|(ones, name)| sum(ones, name)).collect::<Result<Vec<_>>>()?;
    let grouped = both.aggregate(groups, sums)?;
    let column = |name: &str| Expr::Column(datafusion::common::Column::new_unqualified(name));
    let sides = vec![column("__left"), column("__right")];
    let times = if name == INTERSECT { call("flink_least", sides)? } else { call("flink_subtract", sides)? };
    let grouped = grouped.filter(times.clone().gt(lit(0_i64)))?.build()?;
    // An array of so many elements.
    let collection = call("split", vec![call("flink_repeat", vec![lit("x"), times])?, lit("")])?;
    let element = (None, Arc::new(Field::new("__times", DataType::Utf8, true)));
    let element = DFSchema::new_with_metadata(vec![element], Default::default())?;
    let schema = joined(grouped.schema(), &element, false)?;
    let columns = grouped.schema().columns().into_iter().zip(shown);
    let columns: Vec<_> = columns.map(|(column, shown)| Expr::Column(column).alias(shown.name)).collect();
    let repeated =
        extension(UnnestJoin { input: grouped, collection, is_outer: false, with_ordinality: false, schema });
    LogicalPlanBuilder::from(repeated).project(columns)?.build()
}

fn sum(of: Expr, name: &str) -> Result<Expr> {
    let func = Functions::all().aggregate("sum").ok_or_else(|| mistake("there is no function 'sum'"))?;
    let params = AggregateFunctionParams {
        args: vec![of],
        distinct: false,
        filter: None,
        order_by: vec![],
        null_treatment: None,
    };
    Ok(Expr::AggregateFunction(AggregateFunction { func: Arc::clone(func), params }).alias(name))
}
