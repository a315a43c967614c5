//! Calls that stand for grammar while a query is planned, so that its types are Flink's from the beginning. In the plan they
//! are expressions of DataFusion again.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, TimeUnit};
use datafusion::common::Result;
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::errors::mistake;
use crate::types::coerce::common_type;
use crate::types::name_of;

/// `CASE`: conditions and values in turn, at the end the value of ELSE.
pub(super) const CASE: &str = "__case";
/// `x IN (…)`.
pub(super) const IN: &str = "__in";
/// `x NOT IN (…)`.
pub(super) const NOT_IN: &str = "__not_in";

/// `TUMBLE(ts, size)` in GROUP BY: a row of the window's bounds and its time. The first argument is which window.
pub(super) const GROUP_WINDOW: &str = "__group_window";

#[derive(Debug, PartialEq, Eq, Hash)]
struct Special {
    name: &'static str,
    signature: Signature,
}

/// All of them.
pub(super) fn all() -> Vec<Arc<ScalarUDF>> {
    let make = |name| {
        let signature = Signature::user_defined(Volatility::Immutable);
        Arc::new(ScalarUDF::new_from_impl(Special { name, signature }))
    };
    [CASE, IN, NOT_IN, GROUP_WINDOW].into_iter().map(make).collect()
}

/// The values among the arguments of CASE.
pub(super) fn values_of_case<T>(arguments: &[T]) -> Vec<&T> {
    let last = arguments.len().saturating_sub(1);
    arguments.iter().enumerate().filter(|(at, _)| at % 2 == 1 || *at == last).map(|(_, value)| value).collect()
}

/// The type that values of all these have, or what is wrong with them.
pub(super) fn unified(what: &str, types: &[&DataType]) -> Result<DataType> {
    common_type(types.iter().copied()).ok_or_else(|| {
        let mut names: Vec<_> = types.iter().map(|of| name_of(of)).collect();
        names.dedup();
        mistake(format!("{what} has values of different types: {}; CAST them to one", names.join(", ")))
    })
}

fn bounds(arguments: &[DataType]) -> Result<DataType> {
    let zone = match arguments.get(1) {
        Some(DataType::Timestamp(_, zone)) => zone.clone(),
        Some(other) => {
            let of = name_of(other);
            return Err(mistake(format!("windows are made by a TIMESTAMP or TIMESTAMP_LTZ, found {of}")));
        }
        None => return Err(mistake("a window of GROUP BY needs a time and a length")),
    };
    let field = |name, zone| Field::new(name, DataType::Timestamp(TimeUnit::Millisecond, zone), false);
    let fields = vec![field("window_start", None), field("window_end", None), field("window_time", zone)];
    Ok(DataType::Struct(fields.into()))
}

impl ScalarUDFImpl for Special {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        Ok(arguments.to_vec())
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        match self.name {
            CASE => {}
            GROUP_WINDOW => return bounds(arguments),
            _ => return Ok(DataType::Boolean),
        }
        for (at, condition) in arguments.iter().enumerate() {
            let is_condition = at % 2 == 0 && at + 1 < arguments.len();
            if is_condition && !matches!(condition, DataType::Boolean | DataType::Null) {
                return Err(mistake(format!("WHEN needs a BOOLEAN, found {}", name_of(condition))));
            }
        }
        unified("CASE", &values_of_case(arguments))
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let types: Vec<_> = arguments.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        let values = values_of_case(arguments.arg_fields);
        let is_nullable =
            self.name != CASE && self.name != GROUP_WINDOW || values.iter().any(|field| field.is_nullable());
        Ok(Arc::new(Field::new(self.name, self.return_type(&types)?, is_nullable)))
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Err(mistake(format!("{} is not a function", self.name)))
    }
}
