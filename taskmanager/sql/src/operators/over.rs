//! `OverAggregate`: each row with aggregates over the rows before it.
//!
//! What becomes of rows is planned first, in state: which come into the frame of which row, and which leave it. Then the plan
//! is [carried out](work) over columns, for all keys at once.
//!
//! - [`stream`]: rows of a stream, by event time (a row waits for the watermark) or as they come
//! - [`batch`]: all rows, at the end of the input
//! - [`work`]: what is planned, and how it is carried out
//! - [`positions`]: what depends on the place of a row: ranks, LAG, LEAD, NTILE

use flott_core::Result;

use crate::operator::TableOperator;
use crate::program::OperatorContext;
use crate::spec::OverSpec;

pub mod batch;
pub mod positions;
pub mod stream;
pub mod work;

/// Makes the operator for rows of a stream, or for all rows at once.
pub fn make(spec: &OverSpec, cx: &OperatorContext<'_>) -> Result<Box<dyn TableOperator>> {
    if spec.is_batch {
        Ok(Box::new(batch::BatchOver::new(spec, cx)?))
    } else {
        Ok(Box::new(stream::StreamOver::new(spec, cx)?))
    }
}

#[cfg(test)]
mod tests;
