//! Functions whose results come later, as expressions call them.

use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::Result;
use datafusion::common::tree_node::TreeNode;
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};

/// A function that says what it takes and gives, and that planning tells by its type from one that is evaluated at once.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Asynchronous(Arc<ScalarUDF>);

impl Asynchronous {
    /// Makes one of `function`, which is never evaluated.
    pub fn of(function: Arc<ScalarUDF>) -> ScalarUDF {
        ScalarUDF::new_from_impl(Self(function))
    }

    /// Whether an expression calls one.
    pub fn is_called_by(expr: &Arc<dyn PhysicalExpr>) -> bool {
        let is_one = |call: &ScalarFunctionExpr| call.fun().inner().is::<Self>();
        expr.exists(|expr| Ok(expr.downcast_ref::<ScalarFunctionExpr>().is_some_and(is_one))).unwrap_or(false)
    }
}

impl ScalarUDFImpl for Asynchronous {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn signature(&self) -> &Signature {
        self.0.signature()
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        self.0.return_type(arguments)
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        self.0.coerce_types(arguments)
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        self.0.return_field_from_args(arguments)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        self.0.invoke_with_args(arguments)
    }
}
