//! `OverAggregate`: each row with aggregates over the rows before it.
//!
//! What becomes of rows is planned first, in state: which come into the frame of which row, and which leave it. Then the plan
//! is [carried out](work) over columns, for all keys at once.
//!
//! - [`stream`]: rows of a stream, by event time (a row waits for the watermark) or as they come
//! - [`changing`]: rows that come and go, anywhere in the order; [`reach`]: which of them are computed anew
//! - [`batch`]: all rows, at the end of the input
//! - [`ordered`]: rows of a key in order, as the last two have them; [`times`]: which of them are near each other
//! - [`work`]: what is planned, and how it is carried out
//! - [`positions`]: what depends on the place of a row: ranks, LAG, LEAD, NTILE, shares of all rows

use flott_core::Result;

use crate::operator::TableOperator;
use crate::program::OperatorContext;
use crate::spec::{OverInput, OverSpec};

pub mod batch;
pub mod changing;
pub mod ordered;
pub mod positions;
pub mod reach;
pub mod stream;
pub mod times;
pub mod work;

/// Makes the operator for rows as they come.
pub fn make(spec: &OverSpec, cx: &OperatorContext<'_>) -> Result<Box<dyn TableOperator>> {
    Ok(match spec.input {
        OverInput::InOrder => Box::new(stream::StreamOver::new(spec, cx)?),
        OverInput::Changing { with_update_before } => {
            Box::new(changing::ChangingOver::new(spec, with_update_before, cx)?)
        }
        OverInput::Whole => Box::new(batch::BatchOver::new(spec, cx)?),
    })
}

#[cfg(test)]
mod tests;
