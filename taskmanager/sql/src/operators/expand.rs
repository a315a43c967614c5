//! `Expand`: each row several times, with other columns each time: GROUPING SETS.

use arrow::array::ArrayRef;
use arrow::datatypes::SchemaRef;
use flott_core::Result;

use crate::expr::Compiled;
use crate::operator::{Emit, TableOperator};
use crate::program::OperatorContext;
use crate::spec::ExprSpec;
use flott_chunk::{Chunk, batch_of};

/// See the module's documentation.
pub struct Expand {
    projections: Vec<Vec<Compiled>>,
    output: SchemaRef,
}

impl Expand {
    /// Compiles its expressions.
    pub fn new(projections: &[Vec<ExprSpec>], cx: &OperatorContext<'_>) -> Result<Self> {
        let compile =
            |exprs: &Vec<ExprSpec>| exprs.iter().map(|expr| expr.compile(&cx.inputs[0], cx.functions)).collect();
        Ok(Self {
            projections: projections.iter().map(compile).collect::<Result<_>>()?,
            output: SchemaRef::clone(cx.output),
        })
    }
}

impl TableOperator for Expand {
    fn process(&mut self, chunk: Chunk, out: &mut Emit<'_>) -> Result<()> {
        // A projection of all rows at a time: a key is in the order of its rows in each.
        for projection in &self.projections {
            let columns: Vec<ArrayRef> =
                projection.iter().map(|expr| expr.evaluate(&chunk.batch)).collect::<Result<_>>()?;
            out.emit(chunk.with_batch(batch_of(&self.output, columns, chunk.len())?))?;
        }
        Ok(())
    }
}
