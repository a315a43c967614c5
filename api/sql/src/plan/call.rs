//! Calls of aggregate functions, by the names that queries have them under.

use arrow::array::AsArray;
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::logical_expr::expr::NullTreatment;
use datafusion::logical_expr::{Expr, SortExpr};
use flott_core::{Error, Result};
use flott_sql_runtime::spec::{AggregateFunction, AggregateSpec};

use super::Planner;
use super::calc::Needed;
use super::expr::{PExpr, as_column, constant, integer, physical, refused, text};
use super::rel::field;

/// A call of an aggregate function, in a GROUP BY or OVER a window.
pub(super) struct AggregateCall<'a> {
    pub name: &'a str,
    pub arguments: &'a [Expr],
    pub filter: Option<&'a Expr>,
    pub is_distinct: bool,
    pub order: &'a [SortExpr],
    pub nulls: Option<NullTreatment>,
    pub result: DataType,
}

impl AggregateCall<'_> {
    /// The aggregate, with its arguments among what is needed.
    pub(super) fn spec(&self, schema: &DFSchema, needed: &mut Needed) -> Result<AggregateSpec> {
        let mut exprs = self.arguments.iter().map(|expr| physical(expr, schema)).collect::<Result<Vec<_>>>()?;
        let function = self.function(&mut exprs)?;
        let place = |expr: PExpr, needed: &mut Needed| -> Result<usize> {
            let data_type = expr.data_type(schema.as_arrow()).map_err(refused)?;
            let known = as_column(&expr).map(|index| schema.field(index).name().clone());
            Ok(needed.position(expr, |index| field(known.unwrap_or_else(|| format!("$f{index}")), data_type)))
        };
        let name = |expr: &PExpr| text(expr, &|index| schema.field(index).name().clone());
        let shown: Vec<String> = exprs.iter().map(name).collect();
        let arguments = exprs.into_iter().map(|expr| place(expr, needed)).collect::<Result<Vec<_>>>()?;
        let (mut filter, mut condition) = (None, String::new());
        if let Some(expr) = self.filter {
            let expr = physical(expr, schema)?;
            condition = format!(" FILTER (WHERE {})", name(&expr));
            filter = Some(place(expr, needed)?);
        }
        let order = Planner::sort_columns(self.order, schema, needed)?;
        let distinct = if self.is_distinct { "DISTINCT " } else { "" };
        let shown =
            if shown.is_empty() && function == AggregateFunction::Count { "*".to_owned() } else { shown.join(", ") };
        let text = format!("{}({distinct}{shown}){condition}", self.name.trim_start_matches("flink_").to_uppercase());
        Ok(AggregateSpec {
            function,
            arguments,
            filter,
            is_distinct: self.is_distinct,
            order,
            result: self.result.clone(),
            text,
        })
    }

    /// The function, with what its constant arguments say taken out of `arguments`.
    fn function(&self, arguments: &mut Vec<PExpr>) -> Result<AggregateFunction> {
        let number = |arguments: &[PExpr], index: usize, default: u64| -> Result<u64> {
            let Some(expr) = arguments.get(index) else { return Ok(default) };
            let value = constant(expr).as_ref().and_then(integer);
            let value = value.and_then(|value| u64::try_from(value).ok());
            value.ok_or_else(|| {
                Error::input(format!("{} needs a constant number that is not negative", self.name.to_uppercase()))
            })
        };
        let name = self.name.strip_prefix("flink_").unwrap_or(self.name);
        if self.nulls == Some(NullTreatment::IgnoreNulls) && !matches!(name, "first_value" | "last_value") {
            return Err(Error::input(format!("{} cannot IGNORE NULLS", name.to_uppercase())));
        }
        Ok(match name {
            "count" => {
                // COUNT(1) is COUNT(*): a constant is never null, unless it is.
                if let [only] = &arguments[..]
                    && constant(only).is_some_and(|value| !value.is_null())
                    && !self.is_distinct
                {
                    arguments.clear();
                }
                AggregateFunction::Count
            }
            "sum" => AggregateFunction::Sum,
            "sum0" | "$sum0" => AggregateFunction::Sum0,
            "avg" => AggregateFunction::Avg,
            "min" => AggregateFunction::Min,
            "max" => AggregateFunction::Max,
            "first_value" => AggregateFunction::FirstValue,
            "last_value" => AggregateFunction::LastValue,
            "listagg" | "string_agg" => {
                let separator = match arguments.get(1).map(constant) {
                    None => Some(",".to_owned()),
                    Some(Some(ScalarValue::Utf8(Some(text)) | ScalarValue::Utf8View(Some(text)))) => Some(text),
                    Some(_) => None,
                };
                if separator.is_some() {
                    arguments.truncate(1);
                }
                AggregateFunction::ListAgg { separator }
            }
            "collect" => AggregateFunction::Collect,
            "array_agg" => AggregateFunction::ArrayAgg,
            "percentile" => {
                let at = if arguments.len() > 1 { constant(&arguments.remove(1)) } else { None };
                AggregateFunction::Percentile { at: places(at)? }
            }
            "stddev_pop" => AggregateFunction::StddevPop,
            "stddev_samp" | "stddev" => AggregateFunction::StddevSamp,
            "var_pop" => AggregateFunction::VarPop,
            "var_samp" | "variance" | "var" => AggregateFunction::VarSamp,
            "approx_count_distinct" | "approx_distinct" => AggregateFunction::ApproxCountDistinct,
            "single_value" => AggregateFunction::SingleValue,
            "json_objectagg" | "json_objectagg_null_on_null" => {
                AggregateFunction::JsonObjectAgg { absent_on_null: false }
            }
            "json_objectagg_absent_on_null" => AggregateFunction::JsonObjectAgg { absent_on_null: true },
            "json_arrayagg" | "json_arrayagg_absent_on_null" => {
                AggregateFunction::JsonArrayAgg { absent_on_null: true }
            }
            "json_arrayagg_null_on_null" => AggregateFunction::JsonArrayAgg { absent_on_null: false },
            "row_number" => AggregateFunction::RowNumber,
            "rank" => AggregateFunction::Rank,
            "dense_rank" => AggregateFunction::DenseRank,
            "percent_rank" => AggregateFunction::PercentRank,
            "cume_dist" => AggregateFunction::CumeDist,
            "lag" | "lead" => {
                let offset = number(arguments, 1, 1)?;
                if arguments.len() > 1 {
                    arguments.remove(1);
                }
                if name == "lag" { AggregateFunction::Lag { offset } } else { AggregateFunction::Lead { offset } }
            }
            "ntile" => {
                let buckets = number(arguments, 0, 1)?;
                arguments.clear();
                AggregateFunction::Ntile { buckets }
            }
            other => AggregateFunction::User(other.to_owned()),
        })
    }
}

/// The percentages of PERCENTILE, one or an array of some, in bits.
fn places(at: Option<ScalarValue>) -> Result<Vec<u64>> {
    let wrong = |found: &str| {
        Error::input(format!("PERCENTILE needs constant percentages from 0 to 1, or an ARRAY of such; found {found}"))
    };
    let at = match at {
        None => return Err(wrong("an expression of columns")),
        Some(at) if at.is_null() => return Err(wrong("NULL")),
        Some(ScalarValue::List(list)) => list.value(0),
        Some(at) => at.to_array().map_err(refused)?,
    };
    let at = cast(&at, &DataType::Float64).map_err(|error| Error::input(error.to_string()))?;
    let place = |place: Option<f64>| match place {
        Some(place) if (0.0..=1.0).contains(&place) => Ok(place.to_bits()),
        Some(place) => Err(wrong(&place.to_string())),
        None => Err(wrong("NULL")),
    };
    at.as_primitive::<Float64Type>().iter().map(place).collect()
}
