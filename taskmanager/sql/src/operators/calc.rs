//! `Calc`: chooses rows, then computes columns.

use arrow::array::ArrayRef;
use arrow::datatypes::SchemaRef;
use flott_checkpoint::Redistribution;
use flott_core::Result;
use flott_core::time::Timestamp;
use flott_network::Barrier;
use flott_operators::operator::{OpenContext, OperatorSnapshot};
use flott_operators::timestamps::{WATERMARK_STATE, restored_watermark};

use crate::expr::{Compiled, CurrentWatermark, Parts};
use crate::operator::{Emit, TableOperator};
use crate::program::OperatorContext;
use crate::spec::ExprSpec;
use flott_chunk::{Chunk, batch_of};

/// See the module's documentation.
pub struct Calc {
    condition: Option<Compiled>,
    /// Over the parts, if there is a condition.
    projection: Vec<Compiled>,
    parts: Option<Parts>,
    output: SchemaRef,
    /// `None` if no expression asks for it.
    watermark: Option<CurrentWatermark>,
}

impl Calc {
    /// Compiles its expressions.
    pub fn new(condition: Option<&ExprSpec>, projection: &[ExprSpec], cx: &OperatorContext<'_>) -> Result<Self> {
        let (watermark, mut is_asked) = (CurrentWatermark::default(), false);
        let mut compile = |expr: &ExprSpec| {
            let (compiled, is_asking) = expr.compile_with_watermark(&cx.inputs[0], cx.functions, &watermark)?;
            is_asked |= is_asking;
            Ok(compiled)
        };
        let condition = condition.map(&mut compile).transpose()?;
        let mut projection = projection.iter().map(&mut compile).collect::<Result<Vec<_>>>()?;
        let parts = condition.as_ref().map(|_| Parts::take(&mut projection)).transpose()?;
        Ok(Self {
            condition,
            projection,
            parts,
            output: SchemaRef::clone(cx.output),
            watermark: is_asked.then_some(watermark),
        })
    }
}

impl TableOperator for Calc {
    fn process(&mut self, mut chunk: Chunk, out: &mut Emit<'_>) -> Result<()> {
        if let (Some(condition), Some(parts)) = (&self.condition, &self.parts) {
            let mask = condition.mask(&chunk.batch)?;
            if mask.true_count() == 0 {
                return Ok(());
            }
            chunk = chunk.with_batch(parts.of(&chunk.batch)?).filter(&mask)?;
        }
        let columns: Vec<ArrayRef> =
            self.projection.iter().map(|expr| expr.evaluate(&chunk.batch)).collect::<Result<_>>()?;
        out.emit(chunk.with_batch(batch_of(&self.output, columns, chunk.len())?))
    }

    fn open(&mut self, cx: &mut OpenContext<'_>) -> Result<()> {
        if let Some(watermark) = &self.watermark {
            watermark.set(restored_watermark(cx)?);
        }
        Ok(())
    }

    fn on_watermark(&mut self, watermark: Timestamp, _: &mut Emit<'_>) -> Result<()> {
        if let Some(current) = &self.watermark {
            current.set(watermark);
        }
        Ok(())
    }

    fn snapshot(&mut self, _: &Barrier, snapshot: &mut OperatorSnapshot<'_>) -> Result<()> {
        match &self.watermark {
            Some(watermark) => snapshot.add(WATERMARK_STATE, Redistribution::Union, &[watermark.get()]),
            None => Ok(()),
        }
    }
}
