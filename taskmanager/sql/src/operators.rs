//! The operators, one module each.

use flott_core::{Error, Result};

use crate::operator::TableOperator;
use crate::program::{OperatorContext, kind_of};
use crate::spec::OperatorSpec;

pub mod calc;
pub mod join;
pub mod values;

/// Makes an operator.
pub fn make(spec: &OperatorSpec, cx: &OperatorContext<'_>) -> Result<Box<dyn TableOperator>> {
    Ok(match spec {
        OperatorSpec::Calc { condition, projection } => Box::new(calc::Calc::new(condition.as_ref(), projection, cx)?),
        OperatorSpec::Join(spec) => Box::new(join::Join::new(spec, cx)?),
        other => return Err(Error::input(format!("{} cannot be executed yet", kind_of(other)))),
    })
}
