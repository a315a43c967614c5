//! What expressions need of a batch: columns, and fields of rows. They are taken out without a copy before rows are chosen, so that
//! nothing else is copied for those that stay.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::Schema;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::physical_expr::expressions::{Column, Literal};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use flott_chunk::batch_of;
use flott_core::Result;

use super::Compiled;

/// The function that takes a field out of a row.
const FIELD: &str = "get_field";

/// See the module's documentation.
pub struct Parts {
    parts: Vec<Compiled>,
}

impl Parts {
    /// Those of these expressions, which become expressions over the parts.
    pub fn take(exprs: &mut [Compiled]) -> Result<Self> {
        let mut parts: Vec<Compiled> = Vec::new();
        for compiled in exprs.iter_mut() {
            let text = Arc::clone(&compiled.text);
            let over_parts = Arc::clone(&compiled.expr).transform_down(|expr| {
                if !is_part(&expr) {
                    return Ok(Transformed::no(expr));
                }
                let place = match parts.iter().position(|part| part.expr.as_ref() == expr.as_ref()) {
                    Some(known) => known,
                    None => {
                        let column = expr.downcast_ref::<Column>().map(Column::index);
                        parts.push(Compiled { expr, column, text: Arc::clone(&text) });
                        parts.len() - 1
                    }
                };
                let column: Arc<dyn PhysicalExpr> = Arc::new(Column::new(&format!("$p{place}"), place));
                Ok(Transformed::new(column, true, TreeNodeRecursion::Jump))
            });
            let over_parts = over_parts.map_err(|error| compiled.failed(&error))?.data;
            compiled.column = over_parts.downcast_ref::<Column>().map(Column::index);
            compiled.expr = over_parts;
        }
        Ok(Self { parts })
    }

    /// The parts of a batch.
    pub fn of(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let (mut fields, mut columns) = (Vec::with_capacity(self.parts.len()), Vec::with_capacity(self.parts.len()));
        for part in &self.parts {
            // What is known of a column may differ from batch to batch, where they are those of a union.
            fields.push(part.expr.return_field(batch.schema_ref()).map_err(|error| part.failed(&error))?);
            columns.push(part.evaluate(batch)?);
        }
        batch_of(&Arc::new(Schema::new(fields)), columns, batch.num_rows())
    }
}

/// Whether an expression is a column, or a field of a row that is one.
fn is_part(expr: &Arc<dyn PhysicalExpr>) -> bool {
    if expr.downcast_ref::<Column>().is_some() {
        return true;
    }
    let Some(call) = expr.downcast_ref::<ScalarFunctionExpr>().filter(|call| call.fun().name() == FIELD) else {
        return false;
    };
    match call.args() {
        [row, names @ ..] => is_part(row) && names.iter().all(|name| name.downcast_ref::<Literal>().is_some()),
        [] => false,
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int64Array, StringArray, StructArray};
    use arrow::datatypes::{DataType, Field, Int64Type};
    use datafusion::common::ScalarValue;
    use datafusion::common::config::ConfigOptions;
    use datafusion::logical_expr::Operator;
    use datafusion::physical_expr::expressions::BinaryExpr;

    use super::*;
    use crate::expr::{ExprSpec, Functions};

    #[test]
    fn only_what_is_needed_of_rows_is_taken() {
        let x: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3]));
        let y: ArrayRef = Arc::new(StringArray::from(vec!["a", "b", "c"]));
        let row = StructArray::try_from(vec![("x", Arc::clone(&x)), ("y", y)]).expect("a row");
        let a: ArrayRef = Arc::new(Int64Array::from(vec![10, 20, 30]));
        let batch = RecordBatch::try_from_iter([("a", a), ("s", Arc::new(row) as ArrayRef)]).expect("a batch");
        let get_field = datafusion::functions::core::get_field();
        let functions = Functions::new([Arc::clone(&get_field)]);
        let column = |name: &str, index| Arc::new(Column::new(name, index)) as Arc<dyn PhysicalExpr>;
        let name: Arc<dyn PhysicalExpr> = Arc::new(Literal::new(ScalarValue::from("x")));
        let field = Arc::new(Field::new("x", DataType::Int64, true));
        let options = Arc::new(ConfigOptions::default());
        let of_row: Arc<dyn PhysicalExpr> =
            Arc::new(ScalarFunctionExpr::new(FIELD, get_field, vec![column("s", 1), name], field, options));
        let sum: Arc<dyn PhysicalExpr> = Arc::new(BinaryExpr::new(column("a", 0), Operator::Plus, Arc::clone(&of_row)));
        let seven: Arc<dyn PhysicalExpr> = Arc::new(Literal::new(ScalarValue::from(7_i64)));
        let mut exprs: Vec<Compiled> = [of_row, sum, seven, column("s", 1)]
            .iter()
            .map(|expr| ExprSpec::new(expr).and_then(|spec| spec.compile(&batch.schema(), &functions)))
            .collect::<Result<_>>()
            .expect("expressions");
        let parts = Parts::take(&mut exprs).expect("parts");
        let taken = parts.of(&batch).expect("parts of the batch");
        let types: Vec<&DataType> = taken.columns().iter().map(|column| column.data_type()).collect();
        assert_eq!(types[..2], [&DataType::Int64, &DataType::Int64]);
        assert_eq!(types.len(), 3, "the field, the number, and the row");
        assert_eq!(taken.column(0), &x);
        let mask = BooleanArray::from(vec![true, false, true]);
        let chosen = arrow::compute::filter_record_batch(&taken, &mask).expect("chosen rows");
        let values = |expr: &Compiled| {
            let column = expr.evaluate(&chosen).expect("a value for each row");
            column.as_primitive::<Int64Type>().values().to_vec()
        };
        assert_eq!([values(&exprs[0]), values(&exprs[1]), values(&exprs[2])], [vec![1, 3], vec![11, 33], vec![7, 7]]);
        assert_eq!(exprs[3].evaluate(&chosen).expect("rows").len(), 2);
        assert_eq!((exprs[0].as_column(), exprs[1].as_column()), (Some(0), None));
    }
}
