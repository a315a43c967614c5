//! `Values`: fixed rows, by one subtask.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, new_empty_array};
use arrow::compute::{cast, concat};
use arrow::datatypes::{DataType, Schema, SchemaRef};
use arrow::error::ArrowError;
use flott_checkpoint::Redistribution;
use flott_connector_spi::ReadStatus;
use flott_core::ids::OperatorId;
use flott_core::{Batch, Error, Result};
use flott_operators::push::Output;
use flott_operators::{Control, SourceTask, TaskContext};

use crate::expr::Functions;
use crate::spec::ExprSpec;
use flott_chunk::{Chunk, batch_of};

const DONE: &str = "done";

/// The head of a chain that begins with fixed rows.
pub fn source(
    id: OperatorId,
    rows: &[Vec<ExprSpec>],
    output: &SchemaRef,
    functions: &Functions,
    cx: &TaskContext,
    out: Output<Chunk>,
) -> Result<Box<dyn SourceTask>> {
    cx.splits.set_bounded();
    let batch = evaluate(rows, output, functions)?;
    Ok(Box::new(Values { id, batch, is_mine: cx.subtask.index == 0, is_done: false, out }))
}

/// The rows as a batch.
///
/// # Errors
/// A value cannot be computed.
pub fn evaluate(rows: &[Vec<ExprSpec>], output: &SchemaRef, functions: &Functions) -> Result<RecordBatch> {
    let nothing = batch_of(&Arc::new(Schema::empty()), Vec::new(), 1)?;
    let failed = |error: ArrowError| Error::system(format!("making the rows of VALUES: {error}"));
    let value = |expr: &ExprSpec, of: &DataType| {
        let value = expr.compile(&Schema::empty(), functions)?.evaluate(&nothing)?;
        // Whether what is in a collection may be null is another thing in each row.
        if value.data_type() == of { Ok(value) } else { cast(&value, of).map_err(failed) }
    };
    let columns: Vec<ArrayRef> = (0..output.fields().len())
        .map(|column| {
            let of = output.field(column).data_type();
            let values: Vec<ArrayRef> = rows.iter().map(|row| value(&row[column], of)).collect::<Result<_>>()?;
            let values: Vec<&dyn arrow::array::Array> = values.iter().map(AsRef::as_ref).collect();
            if values.is_empty() {
                return Ok(new_empty_array(of));
            }
            concat(&values).map_err(failed)
        })
        .collect::<Result<_>>()?;
    batch_of(output, columns, rows.len())
}

struct Values {
    id: OperatorId,
    batch: RecordBatch,
    is_mine: bool,
    is_done: bool,
    out: Output<Chunk>,
}

impl SourceTask for Values {
    fn discover(&mut self) -> Result<Vec<Vec<u8>>> {
        Ok(Vec::new())
    }

    fn add_split(&mut self, _: &[u8]) -> Result<()> {
        Ok(())
    }

    fn poll(&mut self) -> Result<ReadStatus> {
        if self.is_mine && !std::mem::replace(&mut self.is_done, true) && self.batch.num_rows() > 0 {
            self.out.push(&mut Batch::from_rows(vec![Chunk::inserts(self.batch.clone())]))?;
        }
        Ok(ReadStatus::NeedsSplit)
    }

    fn control(&mut self, control: &mut Control<'_>) -> Result<()> {
        match control {
            Control::Open(restored) => {
                let done: Vec<bool> = restored.take_state(self.id, DONE)?;
                self.is_done |= done.contains(&true);
            }
            Control::Barrier(_, snapshot) if self.is_mine => {
                snapshot.add_state(self.id, DONE, Redistribution::Union, &[self.is_done])?;
            }
            _ => {}
        }
        self.out.control(control)
    }
}
