//! `CURRENT_WATERMARK(…)`: the watermark of the operator that evaluates it.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use arrow::array::RecordBatch;
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, FieldRef, Schema};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use flott_core::time::{Timestamp, WATERMARK_MIN};

/// The name of the function. It has no value by itself.
const FUNCTION: &str = "current_watermark";

/// An operator's watermark, which its expressions see.
#[derive(Clone, Debug)]
pub struct CurrentWatermark(Arc<AtomicI64>);

impl Default for CurrentWatermark {
    fn default() -> Self {
        Self(Arc::new(AtomicI64::new(WATERMARK_MIN)))
    }
}

impl CurrentWatermark {
    /// Event time has come this far.
    pub fn set(&self, watermark: Timestamp) {
        self.0.store(watermark, Ordering::Relaxed);
    }

    /// How far it has come; [`WATERMARK_MIN`] before the first watermark.
    pub fn get(&self) -> Timestamp {
        self.0.load(Ordering::Relaxed)
    }

    /// `expr` with this watermark in place of calls of the function, and whether there are any.
    pub(super) fn bind(&self, expr: Arc<dyn PhysicalExpr>) -> Result<(Arc<dyn PhysicalExpr>, bool)> {
        let bound = expr.transform_up(|expr| {
            let Some(call) = expr.downcast_ref::<ScalarFunctionExpr>().filter(|call| call.fun().name() == FUNCTION)
            else {
                return Ok(Transformed::no(expr));
            };
            let field = Arc::new(Field::new(FUNCTION, call.return_type().clone(), true));
            let node: Arc<dyn PhysicalExpr> = Arc::new(Node { watermark: self.clone(), field });
            Ok(Transformed::yes(node))
        })?;
        Ok((bound.data, bound.transformed))
    }
}

#[derive(Debug)]
struct Node {
    watermark: CurrentWatermark,
    field: FieldRef,
}

impl PartialEq for Node {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.watermark.0, &other.watermark.0) && self.field == other.field
    }
}

impl Eq for Node {}

impl Hash for Node {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.field.hash(state);
    }
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CURRENT_WATERMARK()")
    }
}

impl PhysicalExpr for Node {
    fn return_field(&self, _: &Schema) -> Result<FieldRef> {
        Ok(Arc::clone(&self.field))
    }

    fn evaluate(&self, _: &RecordBatch) -> Result<ColumnarValue> {
        let millis = match self.watermark.get() {
            WATERMARK_MIN => None,
            watermark => Some(watermark),
        };
        let zone = match self.field.data_type() {
            DataType::Timestamp(_, zone) => zone.clone(),
            _ => None,
        };
        let value = ScalarValue::TimestampMillisecond(millis, zone).to_array()?;
        Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&cast(&value, self.field.data_type())?, 0)?))
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        Vec::new()
    }

    fn with_new_children(self: Arc<Self>, _: Vec<Arc<dyn PhysicalExpr>>) -> Result<Arc<dyn PhysicalExpr>> {
        Ok(self)
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }

    fn is_volatile_node(&self) -> bool {
        true
    }
}
