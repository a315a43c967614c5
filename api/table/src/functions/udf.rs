//! Functions as the planner and expressions know them.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};
use flott_sql::types::coerce::common_type;
use flott_sql::types::name_of;

use super::Body;

/// A function of the program.
pub(super) struct Udf {
    name: String,
    body: Body,
    signature: Signature,
}

impl Udf {
    pub(super) fn new(name: &str, body: Body, is_deterministic: bool) -> Self {
        let volatility = if is_deterministic { Volatility::Immutable } else { Volatility::Volatile };
        Self { name: name.to_lowercase(), body, signature: Signature::user_defined(volatility) }
    }
}

/// The arguments as a function takes them, if they can be converted without a CAST.
pub(super) fn converted(name: &str, takes: &[DataType], given: &[DataType]) -> Result<Vec<DataType>> {
    let fits = |from: &DataType, to: &DataType| {
        from == to || *from == DataType::Null || common_type([from, to]).as_ref() == Some(to)
    };
    let is_right = given.len() == takes.len() && given.iter().zip(takes).all(|(from, to)| fits(from, to));
    if is_right {
        return Ok(takes.to_vec());
    }
    let shown = |types: &[DataType]| types.iter().map(name_of).collect::<Vec<_>>().join(", ");
    Err(DataFusionError::Plan(format!(
        "expected {}({}), found ({}): CAST what differs",
        name,
        shown(takes),
        shown(given)
    )))
}

impl fmt::Debug for Udf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Udf").field("name", &self.name).finish_non_exhaustive()
    }
}

impl PartialEq for Udf {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Udf {}

impl Hash for Udf {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl ScalarUDFImpl for Udf {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.body.result.clone())
    }

    fn coerce_types(&self, given: &[DataType]) -> Result<Vec<DataType>> {
        converted(&self.name, &self.body.arguments, given)
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        // Calls without arguments are not converted, so they are looked at here.
        if arguments.arg_fields.len() != self.body.arguments.len() {
            let given: Vec<DataType> = arguments.arg_fields.iter().map(|field| field.data_type().clone()).collect();
            converted(&self.name, &self.body.arguments, &given)?;
        }
        Ok(Arc::new(Field::new(&self.name, self.body.result.clone(), true)))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_constant = self.signature.volatility == Volatility::Immutable
            && arguments.args.iter().all(|value| matches!(value, ColumnarValue::Scalar(_)));
        let rows = if is_constant { 1 } else { arguments.number_rows };
        let columns: Vec<ArrayRef> =
            arguments.args.into_iter().map(|value| value.into_array(rows)).collect::<Result<_>>()?;
        let made = (self.body.evaluate)(&columns, rows)
            .map_err(|error| DataFusionError::Execution(format!("{}: {}", self.name, error.message)))?;
        if made.len() != rows || *made.data_type() != self.body.result {
            return Err(DataFusionError::Execution(format!(
                "{} gave {} values of {} for {rows} rows, and said that it gives {}",
                self.name,
                made.len(),
                made.data_type(),
                self.body.result
            )));
        }
        Ok(match is_constant {
            true => ColumnarValue::Scalar(ScalarValue::try_from_array(&made, 0)?),
            false => ColumnarValue::Array(made),
        })
    }
}
