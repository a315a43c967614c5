//! `Calc`: chooses rows, then computes columns.

use arrow::array::ArrayRef;
use arrow::datatypes::SchemaRef;
use flott_core::Result;

use crate::expr::Compiled;
use crate::operator::{Emit, TableOperator};
use crate::program::OperatorContext;
use crate::spec::ExprSpec;
use flott_chunk::{Chunk, batch_of};

/// See the module's documentation.
pub struct Calc {
    condition: Option<Compiled>,
    projection: Vec<Compiled>,
    output: SchemaRef,
}

impl Calc {
    /// Compiles its expressions.
    pub fn new(condition: Option<&ExprSpec>, projection: &[ExprSpec], cx: &OperatorContext<'_>) -> Result<Self> {
        let compile = |expr: &ExprSpec| expr.compile(&cx.inputs[0], cx.functions);
        Ok(Self {
            condition: condition.map(compile).transpose()?,
            projection: projection.iter().map(compile).collect::<Result<_>>()?,
            output: SchemaRef::clone(cx.output),
        })
    }
}

impl TableOperator for Calc {
    fn process(&mut self, mut chunk: Chunk, out: &mut Emit<'_>) -> Result<()> {
        if let Some(condition) = &self.condition {
            chunk = chunk.filter(&condition.mask(&chunk.batch)?)?;
            if chunk.is_empty() {
                return Ok(());
            }
        }
        let columns: Vec<ArrayRef> =
            self.projection.iter().map(|expr| expr.evaluate(&chunk.batch)).collect::<Result<_>>()?;
        out.emit(chunk.with_batch(batch_of(&self.output, columns, chunk.len())?))
    }
}
