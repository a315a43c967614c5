//! Aggregates as the planner knows them: their names and the types of what they give. Operators compute them.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::function::{AccumulatorArgs, PartitionEvaluatorArgs, WindowUDFFieldArgs};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, PartitionEvaluator, Signature, Volatility, WindowUDF, WindowUDFImpl,
};

use super::errors::mistake;
use super::group_id::GROUP_ID;
use crate::types::coerce::{average_type, is_integer, is_numeric, sum_type};
use crate::types::{array_of, as_multiset, multiset_of, name_of};

/// The type of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Gives {
    Count,
    Sum,
    Average,
    Same,
    Text,
    Array,
    Multiset,
    Percentile,
}

/// An aggregate.
#[derive(Debug)]
struct Aggregate {
    name: &'static str,
    gives: Gives,
    /// How many arguments it may have.
    arguments: std::ops::RangeInclusive<usize>,
    signature: Signature,
}

impl PartialEq for Aggregate {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Aggregate {}

impl Hash for Aggregate {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

/// All of them, under the names that the planner knows.
pub(super) fn all() -> Vec<Arc<AggregateUDF>> {
    use Gives::{Array, Average, Count, Multiset, Percentile, Same, Sum, Text};
    let own = [
        ("count", Count, 0..=1),
        ("approx_count_distinct", Count, 1..=1),
        ("sum", Sum, 1..=1),
        ("$sum0", Sum, 1..=1),
        ("avg", Average, 1..=1),
        ("stddev_pop", Average, 1..=1),
        ("stddev_samp", Average, 1..=1),
        ("stddev", Average, 1..=1),
        ("var_pop", Average, 1..=1),
        ("var_samp", Average, 1..=1),
        ("variance", Average, 1..=1),
        ("min", Same, 1..=1),
        ("max", Same, 1..=1),
        ("first_value", Same, 1..=1),
        ("last_value", Same, 1..=1),
        ("single_value", Same, 1..=1),
        ("listagg", Text, 1..=2),
        ("collect", Multiset, 1..=1),
        ("array_agg", Array, 1..=1),
        ("percentile", Percentile, 2..=3),
        (GROUP_ID, Count, 0..=0),
        ("json_objectagg_null_on_null", Text, 2..=2),
        ("json_objectagg_absent_on_null", Text, 2..=2),
        ("json_arrayagg_null_on_null", Text, 1..=1),
        ("json_arrayagg_absent_on_null", Text, 1..=1),
    ];
    let made = own.into_iter().map(|(name, gives, arguments)| {
        let signature = Signature::user_defined(Volatility::Immutable);
        Arc::new(AggregateUDF::new_from_impl(Aggregate { name, gives, arguments, signature }))
    });
    made.chain([datafusion::functions_aggregate::grouping::grouping_udaf()]).collect()
}

impl Aggregate {
    fn wrong(&self, expected: &str, found: &[DataType]) -> datafusion::common::DataFusionError {
        let found: Vec<_> = found.iter().map(name_of).collect();
        let name = self.name.trim_end_matches("_null_on_null").trim_end_matches("_absent_on_null").to_uppercase();
        mistake(format!("{name} takes {expected}, found ({})", found.join(", ")))
    }
}

impl AggregateUDFImpl for Aggregate {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        if !self.arguments.contains(&arguments.len()) {
            let (least, most) = (self.arguments.start(), self.arguments.end());
            let expected = if least == most { format!("{most}") } else { format!("{least} to {most}") };
            return Err(self.wrong(&format!("{expected} argument(s)"), arguments));
        }
        let number = |found: Option<DataType>| found.ok_or_else(|| self.wrong("a number", arguments));
        match self.gives {
            Gives::Count => Ok(DataType::Int64),
            Gives::Sum => number(sum_type(&arguments[0])),
            Gives::Average => number(average_type(&arguments[0])),
            Gives::Same => Ok(arguments[0].clone()),
            Gives::Text if self.name == "listagg" && arguments.iter().any(|of| *of != DataType::Utf8) => {
                Err(self.wrong("STRING and a separator", arguments))
            }
            Gives::Text => Ok(DataType::Utf8),
            Gives::Array => Ok(array_of(Field::new("element", arguments[0].clone(), true))),
            Gives::Multiset => Ok(multiset_of(arguments[0].clone())),
            Gives::Percentile => {
                let are_numbers = is_numeric(&arguments[0]) && arguments[2..].iter().all(is_integer);
                match &arguments[1] {
                    DataType::List(places) if are_numbers && is_numeric(places.data_type()) => {
                        Ok(array_of(Field::new("element", DataType::Float64, true)))
                    }
                    place if are_numbers && is_numeric(place) => Ok(DataType::Float64),
                    _ => {
                        let usage = "a number, a percentage or an ARRAY of such, and how often it counts";
                        Err(self.wrong(usage, arguments))
                    }
                }
            }
        }
    }

    fn return_field(&self, fields: &[FieldRef]) -> Result<FieldRef> {
        let types: Vec<_> = fields.iter().map(|field| field.data_type().clone()).collect();
        let field = Field::new(self.name, self.return_type(&types)?, self.is_nullable());
        Ok(Arc::new(if self.gives == Gives::Multiset { as_multiset(field) } else { field }))
    }

    fn is_nullable(&self) -> bool {
        self.gives != Gives::Count
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        Ok(arguments.to_vec())
    }

    fn default_value(&self, data_type: &DataType) -> Result<ScalarValue> {
        match self.gives {
            Gives::Count => Ok(ScalarValue::Int64(Some(0))),
            _ => ScalarValue::try_from(data_type),
        }
    }

    fn supports_null_handling_clause(&self) -> bool {
        matches!(self.name, "first_value" | "last_value")
    }

    fn accumulator(&self, _: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        Err(mistake(format!("{} is computed by operators", self.name.to_uppercase())))
    }
}

/// A function of a row's place in a window.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Rank {
    name: &'static str,
    signature: Signature,
}

/// Those that there are only OVER a window, and those that DataFusion takes for such there.
pub(super) fn ranks() -> Vec<Arc<WindowUDF>> {
    let rank = |name| {
        let signature = Signature::user_defined(Volatility::Immutable);
        Arc::new(WindowUDF::new_from_impl(Rank { name, signature }))
    };
    let ranks = ["row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile"];
    ranks.into_iter().chain(["lag", "lead", "first_value", "last_value"]).map(rank).collect()
}

impl WindowUDFImpl for Rank {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        Ok(arguments.to_vec())
    }

    fn field(&self, arguments: WindowUDFFieldArgs<'_>) -> Result<FieldRef> {
        let field = match (self.name, arguments.input_fields()) {
            ("lag" | "lead" | "first_value" | "last_value", [first, ..]) => {
                Field::new(arguments.name(), first.data_type().clone(), true)
            }
            ("lag" | "lead", []) => {
                return Err(mistake(format!("{} takes a value, an offset and a default", self.name.to_uppercase())));
            }
            ("first_value" | "last_value", []) => {
                return Err(mistake(format!("{} takes a value", self.name.to_uppercase())));
            }
            ("percent_rank" | "cume_dist", _) => Field::new(arguments.name(), DataType::Float64, false),
            _ => Field::new(arguments.name(), DataType::Int64, false),
        };
        Ok(Arc::new(field))
    }

    fn partition_evaluator(&self, _: PartitionEvaluatorArgs<'_>) -> Result<Box<dyn PartitionEvaluator>> {
        Err(mistake(format!("{} is computed by operators", self.name.to_uppercase())))
    }
}
