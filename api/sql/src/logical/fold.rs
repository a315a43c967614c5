//! The values of constant expressions.

use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::Schema;
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::execution_props::ExecutionProps;
use datafusion::logical_expr::{ColumnarValue, Expr};
use datafusion::physical_expr::create_physical_expr;

/// The value of an expression without columns.
pub(super) fn fold(expr: &Expr) -> Result<ScalarValue> {
    if let Expr::Literal(value, _) = expr {
        return Ok(value.clone());
    }
    let physical = create_physical_expr(expr, &DFSchema::empty(), &ExecutionProps::new())?;
    let one_row = RecordBatchOptions::new().with_row_count(Some(1));
    let row = RecordBatch::try_new_with_options(Arc::new(Schema::empty()), Vec::new(), &one_row)?;
    match physical.evaluate(&row)? {
        ColumnarValue::Scalar(value) => Ok(value),
        ColumnarValue::Array(values) => ScalarValue::try_from_array(&values, 0),
    }
}
